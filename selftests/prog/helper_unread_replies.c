// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_unread_replies LOCAL PORT COUNT [REMOTE]
 *
 * With REMOTE somebody who asks the server there COUNT times, and reads nothing
 * until SIGUSR1: says "asked", then, once it has been told that replies were
 * lost and has read the others, "read N". Without, the server: it reserves space
 * for replies of 1 MiB, answers each request, and says "answered" when all of
 * them are acknowledged.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"

enum { LINGER_S = 60 };

static char data[MSG_MAX_BYTES];

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

static void serve(int fd, int count)
{
	struct xrds_dest_sndbuf room = { .bytes = ~0u };
	struct linger wait = { 1, LINGER_S };
	u32 reply = sizeof(data);
	union addr from;

	must(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &room, sizeof(room)));
	must(setsockopt(fd, SOL_RDS, XRDS_REPLY_RESERVE, &reply,
			sizeof(reply)));
	say("ready");
	for (int i = 0; i < count; i++) {
		check_ret(rds_recv(fd, data, sizeof(data), 0, &from), 1);
		check_ret(rds_send(fd, data, sizeof(data), MSG_DONTWAIT, &from),
			  sizeof(data));
	}
	must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &wait, sizeof(wait)));
	must(close(fd));
	say("answered");
}

static void ask(int fd, const union addr *to, int count)
{
	sigset_t set;
	int sig, got = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < count; i++)
		check_ret(rds_send(fd, "x", 1, 0, to), 1);
	say("asked");
	sigwait(&set, &sig);
	check_err(rds_recv(fd, data, sizeof(data), MSG_DONTWAIT, NULL),
		  ENOBUFS);
	while (rds_recv(fd, data, sizeof(data), MSG_DONTWAIT, NULL) ==
	       sizeof(data))
		got++;
	printf("read %d\n", got);
}

int main(int argc, char **argv)
{
	union addr to;
	int fd;

	if (argc != 4 && argc != 5)
		tap_fail("usage: helper_unread_replies LOCAL PORT COUNT [REMOTE]");
	fd = rds_bound_to(argv[1], argc == 4 ? atoi(argv[2]) : 0, NULL);
	if (argc == 4) {
		serve(fd, atoi(argv[3]));
	} else {
		to = addr_of(argv[4], atoi(argv[2]));
		ask(fd, &to, atoi(argv[3]));
	}
	tap_child_exit();
}
