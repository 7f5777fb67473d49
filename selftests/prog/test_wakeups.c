// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many sockets: when one destination becomes congested or clear, the sockets
 * that wait for it are woken and no other is.
 *
 * timeout: 200
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "congest.h"
#include "sock.h"
#include "tap.h"
#include "waker.h"

enum {
	CHUNK		= 4096,
	SPACE		= 64 * 1024,
	IDLE		= 1000,
	IDLE_MS		= 10000,
	WAITERS		= 100,
	ROUNDS		= 21,
	PROMPT_MS	= 10,
};

static char chunk[CHUNK];

static void many_files(void)
{
	struct rlimit limit = { 4096, 4096 };

	must(setrlimit(RLIMIT_NOFILE, &limit));
}

/* Traffic with congestion and its end in it, for a while */
static int traffic(int ms)
{
	long long end = tap_now_ms() + ms;
	int tx = rds_bound(NULL), rx, rounds = 0;
	union addr to;

	rx = small_receiver(&to);
	while (tap_now_ms() < end) {
		congest(tx, &to);
		drain(rx);
		poll_one(tx, POLLOUT, 100);
		rounds++;
	}
	close(tx);
	close(rx);
	return rounds;
}

static void idle_sockets_sleep(void)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLPRI | EPOLLRDHUP,
	};
	static int fds[IDLE];
	int ep, rounds;
	struct waker w;
	long before;

	many_files();
	ep = must(epoll_create1(EPOLL_CLOEXEC));
	for (int i = 0; i < IDLE; i++) {
		fds[i] = rds_bound(NULL);
		must(epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &event));
	}
	/* every wake-up of one of them wakes the thread that polls the epoll */
	waker_start(&w, ep, POLLIN);
	before = waker_sleeps(&w);
	rounds = traffic(IDLE_MS);
	check_eq(waker_sleeps(&w), before);
	check_eq(w.returns, 0);
	tap_diag("%d times congested and clear", rounds);
	check(rounds > 10);
	/* it would have noticed */
	congest(fds[0], &(union addr){ .ss = rds_self(fds[1]).ss });
	pthread_join(w.thread, NULL);
	check_eq(w.seen, POLLIN);
	for (int i = 0; i < IDLE; i++)
		close(fds[i]);
	close(ep);
}

/* As many senders as there are, each refused by the same receiver */
static void all_wait(struct waker *w, int nr, const union addr *to)
{
	for (int i = 0; i < nr; i++) {
		int fd = rds_bound(NULL);

		check_err(rds_send(fd, chunk, 1, MSG_DONTWAIT, to), ENOBUFS);
		waker_start(&w[i], fd, POLLOUT);
	}
}

static void only_waiters_wake(void)
{
	static struct waker mine[WAITERS], others[WAITERS];
	int first = rds_bound(NULL), rx[2];
	union addr to[2];
	long before = 0, after = 0;

	many_files();
	for (int i = 0; i < 2; i++) {
		rx[i] = small_receiver(&to[i]);
		congest(first, &to[i]);
	}
	all_wait(mine, WAITERS, &to[0]);
	all_wait(others, WAITERS, &to[1]);
	for (int i = 0; i < WAITERS; i++)
		before += waker_sleeps(&others[i]);
	drain(rx[0]);
	for (int i = 0; i < WAITERS; i++) {
		pthread_join(mine[i].thread, NULL);
		check_eq(mine[i].seen, POLLOUT);
	}
	for (int i = 0; i < WAITERS; i++) {
		after += waker_sleeps(&others[i]);
		check_eq(others[i].returns, 0);
	}
	check_eq(after, before);
	for (int i = 0; i < WAITERS; i++) {
		waker_stop(&others[i]);
		close(others[i].fd);
		close(mine[i].fd);
	}
	close(first);
	close(rx[0]);
	close(rx[1]);
}

static int by_size(const void *a, const void *b)
{
	const long long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The same for a file that has nothing to do with XRDS, for comparison */
static long long eventfd_wakes_ms(void)
{
	int fd = must(eventfd(0, EFD_CLOEXEC));
	long long took;
	struct waker w;

	waker_start(&w, fd, POLLIN);
	took = tap_now_ms();
	check_ret(write(fd, &(u64){ 1 }, sizeof(u64)), sizeof(u64));
	pthread_join(w.thread, NULL);
	took = tap_now_ms() - took;
	close(w.stop_fd);
	close(fd);
	return took;
}

/* From the read that ends congestion to the return of poll() */
static void wakes_within_10ms(void)
{
	int tx = rds_bound(NULL), rx;
	long long took[ROUNDS], usual[ROUNDS];
	struct waker w;
	union addr to;

	rx = small_receiver(&to);
	for (int i = 0; i < ROUNDS; i++) {
		congest(tx, &to);
		waker_start(&w, tx, POLLOUT);
		took[i] = tap_now_ms();
		drain(rx);
		pthread_join(w.thread, NULL);
		took[i] = tap_now_ms() - took[i];
		check_eq(w.seen, POLLOUT);
		close(w.stop_fd);
		usual[i] = eventfd_wakes_ms();
	}
	/* other things that run in the machine are not to blame on it */
	qsort(took, ROUNDS, sizeof(took[0]), by_size);
	qsort(usual, ROUNDS, sizeof(usual[0]), by_size);
	tap_diag("half of them: %lld ms, of an eventfd %lld", took[ROUNDS / 2],
		 usual[ROUNDS / 2]);
	check_range(took[ROUNDS / 2], 0,
		    tap_ms(PROMPT_MS) + 2 * usual[ROUNDS / 2]);
	close(tx);
	close(rx);
}

static const struct tap_case cases[] = {
	{ "idle_sockets_sleep", "1000 idle sockets sleep through the traffic of others",
	  idle_sockets_sleep, 0, 60 },
	{ "only_waiters_wake", "100 waiters are woken, and 100 others are not",
	  only_waiters_wake, TAP_EACH_FAMILY, 60 },
	{ "wakes_within_10ms", "a waiter wakes within 10 ms of the end of congestion",
	  wakes_within_10ms, 0, 60 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
