// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: messages behind ops that are refused, and the keys of the ops,
 * which are to be used once.
 *
 *   helper_refused_op sink LOCAL PORT
 *   helper_refused_op send LOCAL REMOTE PORT COOKIE...
 *
 * The receiver has a region for each op, and says "ready COOKIE COOKIE". The sender
 * says "connected". After SIGUSR1, with the receiver's node stopped, it sends a
 * message that takes all room, writes to each region, with a message behind it, and
 * says "sent". After SIGUSR1 the receiver finds that both regions have ended, and
 * reads all messages.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdma.h"
#include "sock.h"
#include "tap.h"

enum {
	OPS		= 2,
	LARGE		= 64 << 10,
	LIMIT_MS	= 60000,
};

static char data[LARGE];

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

static void await_signal(void)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &sig);
}

static void hear(int fd, ssize_t bytes)
{
	check_ret(rds_recv_within(fd, data, sizeof(data), LIMIT_MS, NULL), bytes);
}

static void sink(const char *local, int port)
{
	int fd = rds_bound_to(local, port, NULL);
	char *mem = pages(PAGE_BYTES);
	u64 cookies[OPS];

	rds_set_int(fd, SOL_SOCKET, SO_RCVBUF, 1);
	for (int i = 0; i < OPS; i++)
		must(mr_get(fd, mem, PAGE_BYTES, RDS_RDMA_READWRITE |
			    RDS_RDMA_USE_ONCE, &cookies[i]));
	printf("ready %llu %llu\n", cookies[0], cookies[1]);
	fflush(stdout);
	hear(fd, 1);
	await_signal();
	for (int i = 0; i < OPS; i++)
		check_err(mr_free(fd, cookies[i]), EINVAL);
	hear(fd, LARGE);
	for (int i = 0; i < OPS; i++)
		hear(fd, 1);
	say("done");
}

static void send_all(const char *local, const union addr *to, char **cookies)
{
	int fd = rds_bound_to(local, 0, NULL);
	struct op op;

	must(rds_send(fd, data, 1, 0, to));
	must_wait(rds_all_acked, &fd, LIMIT_MS);
	say("connected");
	await_signal();
	must(rds_send(fd, data, LARGE, 0, to));
	for (int i = 0; i < OPS; i++) {
		struct target t = { .cookie = strtoull(cookies[i], NULL, 0) };

		op = op_write(&t, 0, "w", 1);
		op.payload = "m";
		op.len = 1;
		must(op_send(fd, to, &op));
	}
	say("sent");
	must_wait(rds_all_acked, &fd, LIMIT_MS);
	say("done");
}

int main(int argc, char **argv)
{
	union addr to;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	must(sigprocmask(SIG_BLOCK, &set, NULL));
	if (argc == 4 && !strcmp(argv[1], "sink")) {
		sink(argv[2], atoi(argv[3]));
	} else if (argc == 5 + OPS && !strcmp(argv[1], "send")) {
		to = addr_of(argv[3], atoi(argv[4]));
		send_all(argv[2], &to, argv + 5);
	} else {
		tap_fail("usage: helper_refused_op sink|send ...");
	}
	tap_child_exit();
}
