// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_cancel LOCAL REMOTE PORT OTHERS
 *
 * The other node cannot be reached. OTHERS empty messages are queued to it by
 * many sockets; in the midst of them one socket queues some to each of two
 * ports. Those to the first port are cancelled: no other message is looked at,
 * and none is dropped. Its exit status is the verdict.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "counters.h"
#include "sock.h"
#include "tap.h"

enum {
	SENDERS		= 16,		/* sockets of others */
	PORTS		= 16,		/* that each of them sends to */
	MINE		= 100,		/* messages to each of two ports */
	BATCH		= 512,
};

static int roomy(const char *local)
{
	struct xrds_dest_sndbuf arg = { .bytes = ~0u };
	struct linger abort = { 1, 0 };
	int fd = rds_bound_to(local, 0, NULL);

	must(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &arg, sizeof(arg)));
	must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
	return fd;
}

static void queue(int fd, const union addr *to, int nr)
{
	static struct mmsghdr batch[BATCH];
	int n, sent;

	for (int i = 0; i < BATCH; i++)
		batch[i].msg_hdr = (struct msghdr){
			.msg_name = (void *)to, .msg_namelen = addr_len(to),
		};
	for (; nr; nr -= sent) {
		n = nr < BATCH ? nr : BATCH;
		sent = must(sendmmsg(fd, batch, n, MSG_DONTWAIT));
	}
}

static u64 queued(int fd, const union addr *to)
{
	struct xrds_dest_status st;

	must(dest_status(fd, to, &st));
	return st.queued_msgs;
}

/* Each of the others queues so many messages to each of its ports. */
static void queue_others(const int *others, union addr to, int port, int nr)
{
	for (int p = 0; p < PORTS; p++) {
		addr_set_port(&to, port + p);
		for (int s = 0; s < SENDERS; s++)
			queue(others[s], &to, nr);
	}
}

static void check_others(const int *others, union addr to, int port, u64 nr)
{
	for (int p = 0; p < PORTS; p++) {
		addr_set_port(&to, port + p);
		for (int s = 0; s < SENDERS; s++)
			check_eq(queued(others[s], &to), nr);
	}
}

int main(int argc, char **argv)
{
	int others[SENDERS], port, half, mine;
	long long looked, dropped;
	union addr to, second;

	if (argc != 5)
		tap_fail("usage: helper_cancel LOCAL REMOTE PORT OTHERS");
	port = atoi(argv[3]);
	half = atoi(argv[4]) / 2 / SENDERS / PORTS;
	to = addr_of(argv[2], port);
	second = addr_of(argv[2], port + 1);
	for (int s = 0; s < SENDERS; s++)
		others[s] = roomy(argv[1]);
	mine = roomy(argv[1]);

	queue_others(others, to, port, half);
	for (int i = 0; i < MINE; i++) {
		queue(mine, &to, 1);
		queue(mine, &second, 1);
	}
	queue_others(others, to, port, half);
	printf("%lld messages are queued\n", counter_now("obj_msgs"));
	fflush(stdout);

	dropped = counter_now("send_drop_closed");
	looked = counter_now("send_cancel_looked");
	must(setsockopt(mine, SOL_RDS, RDS_CANCEL_SENT_TO, &to, sizeof(to.in)));
	check_eq(counter_now("send_cancel_looked") - looked, MINE);
	check_eq(counter_now("send_drop_closed") - dropped, MINE);
	check_eq(queued(mine, &to), 0);
	check_eq(queued(mine, &second), MINE);
	check_others(others, to, port, 2 * half);
	tap_child_exit();
}
