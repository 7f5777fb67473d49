// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_posted_bound LOCAL REMOTE PORT
 *
 * Says "connected" once a message was acknowledged, and waits for SIGCONT.
 * Meanwhile the peer is cut off, so that nothing is acknowledged any more. Then
 * a large message is sent, and the program says "large" and waits again. Then a
 * small one to another port must be handed to the transport at once, although
 * most of the large one waits: "passed". Its exit status is the verdict.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "sock.h"
#include "tap.h"

enum {
	LARGE	= 1 << 20,
	SPACE	= 4 << 20,
	SMALL	= 100,
};

static char data[LARGE];

static void say_and_wait(const char *what)
{
	sigset_t set;
	int number;

	puts(what);
	fflush(stdout);
	sigemptyset(&set);
	sigaddset(&set, SIGCONT);
	check_eq(sigwait(&set, &number), 0);
}

struct sender {
	int fd;
	union addr to;
};

static bool handed_over(void *arg)
{
	struct xrds_dest_status st;
	struct sender *s = arg;

	must(dest_status(s->fd, &s->to, &st));
	return st.inflight_bytes == SMALL;
}

int main(int argc, char **argv)
{
	struct sender small;
	union addr to;
	sigset_t set;
	int fd;

	if (argc != 4)
		tap_fail("usage: helper_posted_bound LOCAL REMOTE PORT");
	sigemptyset(&set);
	sigaddset(&set, SIGCONT);
	must(sigprocmask(SIG_BLOCK, &set, NULL));
	to = addr_of(argv[2], atoi(argv[3]));
	small.to = addr_of(argv[2], atoi(argv[3]) + 1);
	fd = rds_bound_to(argv[1], 0, NULL);
	small.fd = rds_bound_to(argv[1], 0, NULL);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUFFORCE, SPACE);
	check_ret(rds_send(fd, data, SMALL, 0, &to), SMALL);
	must_wait(rds_all_acked, &fd, WAIT_MS);
	say_and_wait("connected");
	check_ret(rds_send(fd, data, LARGE, 0, &to), LARGE);
	say_and_wait("large");
	check_ret(rds_send(small.fd, data, SMALL, 0, &small.to), SMALL);
	check(tap_wait(handed_over, &small, WAIT_MS));
	puts("passed");
	fflush(stdout);
	tap_child_exit();
}
