// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_delivered LOCAL REMOTE PORT COUNT
 *
 * Sends a message, says "sent" when it is acknowledged, and waits for SIGUSR1.
 * Then it sends COUNT messages and ends its streams: "ended" when that has left
 * something to deliver. XRDS_DELIVERED_EVENT tells it when that is over:
 * "delivered", "undelivered". Its exit status is the verdict.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sock.h"
#include "tap.h"

enum {
	BYTES		= 8192,
	QUIET_MS	= 500,
	LIMIT_MS	= 120000,
};

static char data[BYTES];

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

static u32 read_reason(int fd)
{
	char control[CMSG_SPACE(sizeof(u32))] __aligned(8);
	union addr from;
	struct iovec iov = { data, sizeof(data) };
	struct msghdr m = {
		.msg_name = &from, .msg_namelen = sizeof(from),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	u32 reason;

	check_ret(recvmsg(fd, &m, MSG_DONTWAIT), 0);
	check_eq(m.msg_namelen, 0);
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_type != XRDS_CMSG_EOS)
		tap_fail("something else was read");
	memcpy(&reason, CMSG_DATA(c), sizeof(reason));
	return reason;
}

int main(int argc, char **argv)
{
	union addr to;
	sigset_t set;
	int fd, sig;
	u32 reason;

	if (argc != 5)
		tap_fail("usage: helper_delivered LOCAL REMOTE PORT COUNT");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = rds_bound_to(argv[1], 0, NULL);
	to = addr_of(argv[2], atoi(argv[3]));
	rds_set_int(fd, SOL_RDS, XRDS_DELIVERED_EVENT, 1);
	check_ret(rds_send(fd, data, BYTES, 0, &to), BYTES);
	must_wait(rds_all_acked, &fd, LIMIT_MS);
	say("sent");
	sigwait(&set, &sig);
	for (int i = 0; i < atoi(argv[4]); i++)
		check_ret(rds_send(fd, data, BYTES, 0, &to), BYTES);
	must(shutdown(fd, SHUT_WR));
	if (!poll_one(fd, POLLIN, QUIET_MS))
		say("ended");
	check_eq(poll_one(fd, POLLIN, tap_ms(LIMIT_MS)), POLLIN);
	check_eq(rds_outq(fd), 0);
	reason = read_reason(fd);
	say(reason == XRDS_EOS_DELIVERED ? "delivered" :
	    reason == XRDS_EOS_UNDELIVERED ? "undelivered" : "something else");
	check_eq(poll_one(fd, POLLIN, QUIET_MS), 0);
	tap_child_exit();
}
