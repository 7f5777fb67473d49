// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_congested LOCAL REMOTE PORT [BYTES [slowly]]
 *
 * A sender against a receiver that does not read (helper_late_reader): it must
 * be refused for congestion, stay refused without spinning, and get through
 * soon after the receiver reads. If it sends slowly, one message is acknowledged
 * before the next one goes, so that none waits in the queue at the end. Says
 * "blocked" when it waits, "released" at the end. Its exit status is the verdict.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include "congest.h"
#include "sock.h"
#include "tap.h"

enum {
	BYTES		= 8192,
	LIMIT_MS	= 30000,
	QUIET_MS	= 500,
	TIMEOUT_MS	= 300,
	TICK_MS		= 10,		/* of the slowest kernel */
	MAX_TURNS	= 20,		/* wake-ups before it may send */
};

static char data[BYTES];

/* A signal ends the wait of a send */
static void interrupted(int fd, const union addr *to)
{
	rds_timeout(fd, SO_SNDTIMEO, LIMIT_MS);
	tap_interrupt(TIMEOUT_MS, 0);
	check_err(rds_send(fd, data, 1, 0, to), EINTR);
	tap_interrupt(0, 0);
}

int main(int argc, char **argv)
{
	long long start;
	size_t bytes = argc >= 5 ? strtoul(argv[4], NULL, 0) : BYTES;
	union addr to;
	ssize_t sent = -1;
	int fd;

	if (argc < 4 || argc > 6 || !bytes || bytes > BYTES)
		tap_fail("usage: helper_congested LOCAL REMOTE PORT [BYTES [slowly]]");
	fd = rds_bound_to(argv[1], 0, NULL);
	to = addr_of(argv[2], atoi(argv[3]));
	if (argc == 6)
		congest_slowly(fd, &to, bytes);
	printf("refused after %ld bytes\n",
	       send_until(fd, &to, bytes, ENOBUFS, LIMIT_MS));
	check_err(rds_send(fd, data, 1, MSG_DONTWAIT, &to), ENOBUFS);
	check_eq(poll_one(fd, POLLOUT, QUIET_MS), 0);
	rds_timeout(fd, SO_SNDTIMEO, TIMEOUT_MS);
	start = tap_tick_ms();
	check_err(rds_send(fd, data, 1, 0, &to), ETIMEDOUT);
	check_range(tap_now_ms() - start, TIMEOUT_MS - TICK_MS, LIMIT_MS);
	interrupted(fd, &to);
	printf("blocked\n");
	fflush(stdout);
	/* as long as the test has to do with others; messages that were still on
	 * their way may make the port congested once more
	 */
	for (int turns = 0; turns < MAX_TURNS; turns++) {
		check_eq(poll_one(fd, POLLOUT, -1), POLLOUT);
		sent = rds_send(fd, data, 1, MSG_DONTWAIT, &to);
		if (sent >= 0 || errno != ENOBUFS)
			break;
	}
	check_ret(sent, 1);
	printf("released\n");
	tap_child_exit();
}
