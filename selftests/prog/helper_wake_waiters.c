// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_wake_waiters LOCAL REMOTE PORT
 *
 * Many sockets on this node, and two receivers that do not read
 * (helper_late_reader) on the other, at PORT and at the next one. Some senders
 * wait for the first, as many for the second, and a thousand sockets for
 * nothing in particular. Says "waiting". When the first receiver has read, the
 * senders that wait for it are woken and no other socket is, with other traffic
 * between the nodes meanwhile. Its exit status is the verdict.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "congest.h"
#include "sock.h"
#include "tap.h"
#include "waker.h"

enum {
	BYTES		= 8192,
	IDLE		= 1000,
	WAITERS		= 100,
	LIMIT_MS	= 60000,
};

static struct waker mine[WAITERS], others[WAITERS];
static char data[BYTES];

static void all_wait(struct waker *w, const char *local, const union addr *to)
{
	int first = rds_bound_to(local, 0, NULL);

	send_until(first, to, BYTES, ENOBUFS, LIMIT_MS);
	close(first);
	for (int i = 0; i < WAITERS; i++) {
		int fd = rds_bound_to(local, 0, NULL);

		check_err(rds_send(fd, data, 1, MSG_DONTWAIT, to), ENOBUFS);
		waker_start(&w[i], fd, POLLOUT);
	}
}

static int idle_sockets(const char *local)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLPRI | EPOLLRDHUP,
	};
	int ep = must(epoll_create1(EPOLL_CLOEXEC));

	for (int i = 0; i < IDLE; i++)
		must(epoll_ctl(ep, EPOLL_CTL_ADD, rds_bound_to(local, 0, NULL),
			       &event));
	return ep;
}

static bool first_is_woken(void *arg)
{
	(void)arg;
	return READ_ONCE(mine[0].returns);
}

static long sleeps_of_others(void)
{
	long n = 0;

	for (int i = 0; i < WAITERS; i++)
		n += waker_sleeps(&others[i]);
	return n;
}

int main(int argc, char **argv)
{
	struct rlimit files = { 4096, 4096 };
	long idle_before, others_before;
	union addr to[2];
	struct waker idle;

	if (argc != 4)
		tap_fail("usage: helper_wake_waiters LOCAL REMOTE PORT");
	must(setrlimit(RLIMIT_NOFILE, &files));
	for (int i = 0; i < 2; i++)
		to[i] = addr_of(argv[2], atoi(argv[3]) + i);
	/* every wake-up of one of them wakes the thread that polls the epoll */
	waker_start(&idle, idle_sockets(argv[1]), POLLIN);
	idle_before = waker_sleeps(&idle);
	all_wait(mine, argv[1], &to[0]);
	all_wait(others, argv[1], &to[1]);
	others_before = sleeps_of_others();
	printf("waiting\n");
	fflush(stdout);

	must_wait(first_is_woken, NULL, LIMIT_MS);
	for (int i = 0; i < WAITERS; i++) {
		pthread_join(mine[i].thread, NULL);
		check_eq(mine[i].seen, POLLOUT);
	}
	check_eq(sleeps_of_others(), others_before);
	check_eq(waker_sleeps(&idle), idle_before);
	check_eq(idle.returns, 0);
	for (int i = 0; i < WAITERS; i++) {
		check_eq(others[i].returns, 0);
		waker_stop(&others[i]);
	}
	waker_stop(&idle);
	tap_child_exit();
}
