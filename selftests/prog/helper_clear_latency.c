// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: how soon a sender learns that a port is free again, or
 * that it has space.
 *
 *   helper_clear_latency serve LOCAL PORT
 *   helper_clear_latency send LOCAL REMOTE PORT
 *   helper_clear_latency mixed LOCAL REMOTE PORT	to a helper_late_reader
 *
 * The server reads what has come to PORT when it is told to by a message to the
 * next port, and may be told to answer that behind the last message. The time from
 * the order to the answer is compared with the time from an order without one to
 * the end of the sender's poll(): both have the same messages to read, on the same
 * way, however slow the machine is. Says "ready"; the exit status of the sender is
 * the verdict.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "congest.h"
#include "counters.h"
#include "sock.h"
#include "tap.h"

enum {
	BYTES		= 32 * 1024,
	SPACE		= 64 * 1024,
	ROUNDS		= 25,
	PROMPT_US	= 10000,
	LIMIT_MS	= 30000,
	SPIN_MS		= 2000,
	CALLS_PER_S	= 10,
	PAIRS		= 50,
	SMALL		= 4096,
	LARGE		= 128 * 1024,	/* more than all space */
};

enum { READ = 'r', ANSWER = 'a' };	/* orders */

static char data[LARGE];

static long now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000L + ts.tv_nsec / 1000;
}

static void serve(const char *local, int port)
{
	int fd = rds_bound_to(local, port, NULL);
	int orders = rds_bound_to(local, port + 1, NULL);
	union addr from;
	char order;

	rds_set_int(fd, SOL_SOCKET, SO_RCVBUF, SPACE);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		if (rds_recv(orders, &order, 1, 0, &from) != 1)
			continue;
		while (rds_recv(fd, data, BYTES, MSG_DONTWAIT, NULL) >= 0)
			;
		if (order == ANSWER)
			must(rds_send(orders, &order, 1, 0, &from));
	}
}

/* From the order to read a congested port to the answer, or to the port's end of
 * congestion
 */
static long released(int fd, const union addr *to, int orders,
		     const union addr *where, char order)
{
	long start;
	char answer;

	congest_slowly(fd, to, BYTES);
	check_err(rds_send(fd, data, 1, MSG_DONTWAIT, to), ENOBUFS);
	check_eq(poll_one(fd, POLLOUT, 0), 0);
	start = now_us();
	must(rds_send(orders, &order, 1, 0, where));
	if (order == ANSWER)
		check_ret(rds_recv_within(orders, &answer, 1, LIMIT_MS, NULL), 1);
	else
		check_eq(poll_one(fd, POLLOUT, tap_ms(LIMIT_MS)), POLLOUT);
	start = now_us() - start;
	check_eq(poll_one(fd, POLLOUT, tap_ms(LIMIT_MS)), POLLOUT);
	check_ret(rds_send(fd, data, 1, MSG_DONTWAIT, to), 1);
	return start;
}

/* poll() and send, as a program would that has nothing else to do */
static void no_spin(int fd, const union addr *to)
{
	long long end = tap_now_ms() + SPIN_MS, left;
	int calls = 0;

	while ((left = end - tap_now_ms()) > 0) {
		calls++;
		if (!poll_one(fd, POLLOUT, left))
			continue;
		calls++;
		if (rds_send(fd, data, 1, MSG_DONTWAIT, to) >= 0)
			tap_fail("a congested destination took a message");
	}
	check_range(calls, 1, SPIN_MS / 1000 * CALLS_PER_S);
	printf("%d system calls in %d ms\n", calls, SPIN_MS);
}

static int by_size(const void *a, const void *b)
{
	const long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void send_all(const char *local, const char *remote, int port)
{
	union addr to = addr_of(remote, port), where = addr_of(remote, port + 1);
	int fd = rds_bound_to(local, 0, NULL);
	int orders = rds_bound_to(local, 0, NULL);
	long answered[ROUNDS], took[ROUNDS];

	/* in turns: other things that the machine does are to hit both */
	for (int i = 0; i < ROUNDS; i++) {
		answered[i] = released(fd, &to, orders, &where, ANSWER);
		took[i] = released(fd, &to, orders, &where, READ);
	}
	qsort(answered, ROUNDS, sizeof(answered[0]), by_size);
	qsort(took, ROUNDS, sizeof(took[0]), by_size);
	printf("answered %ld us, at best %ld; released %ld us, at best %ld\n",
	       answered[ROUNDS / 2], answered[0], took[ROUNDS / 2], took[0]);
	/* a work at either end has the news, and none the answer */
	check(took[ROUNDS / 2] <= 2 * answered[ROUNDS / 2] + tap_ms(PROMPT_US));
	send_until(fd, &to, BYTES, ENOBUFS, LIMIT_MS);
	no_spin(fd, &to);
}

/* A small message asks for no acknowledgment, as there is space. A sender that
 * waits for it then must not wait until the peer acknowledges by itself.
 */
static void mixed(const char *local, const char *remote, int port)
{
	long long asked = counter_now("send_ask"), start = tap_now_ms();
	union addr to = addr_of(remote, port);
	int fd = rds_bound_to(local, 0, NULL);

	for (int i = 0; i < PAIRS; i++) {
		check_ret(rds_send(fd, data, SMALL, 0, &to), SMALL);
		check_ret(rds_send(fd, data, LARGE, 0, &to), LARGE);
	}
	asked = counter_now("send_ask") - asked;
	printf("%d pairs in %lld ms, asked %lld times\n", PAIRS,
	       tap_now_ms() - start, asked);
	check_range(asked, PAIRS / 2, 2 * PAIRS);
}

/* Refused behind a small message; false if that has been acknowledged. */
static bool refused(int fd, const union addr *to)
{
	check_ret(rds_send(fd, data, SMALL, 0, to), SMALL);
	if (rds_send(fd, data, LARGE, MSG_DONTWAIT, to) > 0)
		return false;
	check_eq(errno, EAGAIN);
	return true;
}

/* A sender that is refused while a question of another socket is under way asks
 * as well, when the other question is answered.
 */
static void mixed_two(const char *local, const char *remote, int port)
{
	int fds[] = { rds_bound_to(local, 0, NULL), rds_bound_to(local, 0, NULL) };
	long long asked = counter_now("send_ask");
	union addr to = addr_of(remote, port);
	int nr = 0;

	for (int i = 0; i < PAIRS; i++) {
		bool waits[] = { refused(fds[0], &to), refused(fds[1], &to) };

		for (int j = 0; j < 2; j++)
			if (waits[j])
				check_eq(poll_one(fds[j], POLLOUT,
						  tap_ms(LIMIT_MS)), POLLOUT);
		nr += waits[0] + waits[1];
	}
	asked = counter_now("send_ask") - asked;
	printf("refused %d times, asked %lld times\n", nr, asked);
	check(nr > 0);
	check_range(asked, nr * 9 / 10, nr);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "serve"))
		serve(argv[2], atoi(argv[3]));
	if (argc != 5)
		tap_fail("usage: helper_clear_latency serve|send|mixed LOCAL [REMOTE] PORT");
	if (!strcmp(argv[1], "mixed")) {
		mixed(argv[2], argv[3], atoi(argv[4]));
		mixed_two(argv[2], argv[3], atoi(argv[4]));
	} else {
		send_all(argv[2], argv[3], atoi(argv[4]));
	}
	fflush(stdout);
	tap_child_exit();
}
