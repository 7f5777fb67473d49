// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests with three nodes: one destination that makes no progress must not
 * slow down another.
 *
 *   test_isolation sink LOCAL PORT            reads, and answers each BATCH
 *   test_isolation send LOCAL LIVE VICTIM PORT
 *
 * The sender measures how fast BATCH messages reach the live node, says
 * "measured", and waits for SIGUSR1: by then the victim makes no progress. Then
 * it fills its space toward the victim and measures again, beside a socket that
 * never talked to the victim. Other things that go on in the machine slow some
 * rounds down, so the best ones count.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"

enum {
	BATCH		= 10000,
	BYTES		= 1024,
	ROUNDS		= 3,
	MORE_ROUNDS	= 12,		/* when the first ones disagree */
	PERCENT		= 95,
	LIMIT_MS	= 60000,
};

static char data[BYTES];

static void __noreturn sink(const char *local, int port)
{
	int fd = rds_bound_to(local, port, NULL);
	union addr from;

	printf("ready\n");
	fflush(stdout);
	for (;;) {
		for (int i = 0; i < BATCH; i++)
			check_ret(rds_recv(fd, data, BYTES, 0, &from), BYTES);
		check_ret(rds_send(fd, "x", 1, 0, &from), 1);
	}
}

/* Messages per second to a sink */
static double rate(int fd, const union addr *to)
{
	long long start = tap_now_ms();

	for (int i = 0; i < BATCH; i++)
		check_ret(rds_send(fd, data, BYTES, 0, to), BYTES);
	check_ret(rds_recv_within(fd, data, 1, LIMIT_MS, NULL), 1);
	return BATCH * 1e3 / (tap_now_ms() - start);
}

static double max(double a, double b)
{
	return a > b ? a : b;
}

/* Until it refuses, and does so for good */
static void fill(int fd, const union addr *to)
{
	long long end = tap_now_ms() + tap_ms(LIMIT_MS);

	do {
		while (rds_send(fd, data, BYTES, MSG_DONTWAIT, to) > 0)
			;
		if (errno != EAGAIN && errno != ENOBUFS)
			tap_fail("victim: %s", tap_errno_name(errno));
		if (tap_now_ms() > end)
			tap_fail("the victim goes on taking messages");
	} while (poll_one(fd, POLLOUT, 300));
}

static void send_all(const char *local, const char *live, const char *lost,
		     int port)
{
	union addr to = addr_of(live, port), victim = addr_of(lost, port);
	int fd = rds_bound_to(local, 0, NULL), other, sig, n;
	double before = 0, after = 0;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* both connections are up */
	check_ret(rds_send(fd, data, BYTES, 0, &victim), BYTES);
	rate(fd, &to);
	for (int i = 0; i < ROUNDS; i++)
		before = max(before, rate(fd, &to));
	printf("measured\n");
	fflush(stdout);
	sigwait(&set, &sig);

	fill(fd, &victim);
	other = rds_bound_to(local, 0, NULL);
	for (n = 0; n < ROUNDS + MORE_ROUNDS; n++) {
		after = max(after, rate(fd, &to));
		before = max(before, rate(other, &to));
		if (n >= ROUNDS - 1 && after * 100 >= before * PERCENT)
			break;
	}
	printf("%.0f %% of the undisturbed rate, %d rounds\n",
	       after * 100 / before, n + 1);
	check(after * 100 >= before * PERCENT);
	/* the victim is still full */
	check(rds_send(fd, data, BYTES, MSG_DONTWAIT, &victim) < 0);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "sink"))
		sink(argv[2], atoi(argv[3]));
	if (argc != 6 || strcmp(argv[1], "send"))
		tap_fail("usage: test_isolation sink|send ...");
	send_all(argv[2], argv[3], argv[4], atoi(argv[5]));
	tap_child_exit();
}
