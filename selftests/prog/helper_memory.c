// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: how much of a node's memory messages take.
 *
 *   helper_memory queue LOCAL REMOTE PORT KEPT PASSING
 *   helper_memory fill LOCAL REMOTE PORT KEPT PASSING
 *   helper_memory sink LOCAL PORT
 *
 * Both of the former send messages of KEPT bytes to PORT, each followed by some
 * of PASSING bytes to the next port, unless that is 0.
 *
 * The first one sends to a node that is away, and cancels the messages to the
 * next port. It goes on until the sending user has no memory (EDQUOT), and says
 * by how many KiB there is less than before, and how many KiB are counted. The
 * second one goes on until PORT is congested. The receiver says "ready". It reads
 * nothing at PORT and everything at the next one.
 *
 * An endless one ends at LIMIT messages. The caller has set the bounds.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "counters.h"
#include "dump.h"
#include "sock.h"
#include "tap.h"

enum {
	PASSING_NR	= 8,		/* to be cancelled */
	READ_NR		= 4,		/* to be read */
	LIMIT		= 100000,
	ROOM		= 1 << 28,
	LIMIT_MS	= 20000,
	POLL_MS		= 100,
};

static char data[1 << 20];

struct sender {
	int fd;
	union addr kept;
	union addr passing;
	size_t kept_len;
	size_t passing_len;
};

static struct sender open_sender(char **argv)
{
	struct sender s = {
		.fd = rds_bound_to(argv[0], 0, NULL),
		.kept = addr_of(argv[1], atoi(argv[2])),
		.passing = addr_of(argv[1], atoi(argv[2]) + 1),
		.kept_len = atol(argv[3]),
		.passing_len = atol(argv[4]),
	};
	struct linger abort = { 1, 0 };

	must(setsockopt(s.fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
	return s;
}

/* By a socket that there is: none can be made when there is no memory for it. */
static long long used_memory(int fd)
{
	struct dump d = dump_read(fd, RDS_INFO_COUNTERS,
				  sizeof(struct rds_info_counter));
	struct counters c = { .all = d.rows, .nr = d.nr };
	long long value = counters_get(&c, "used_memory");

	dump_free(&d);
	return value;
}

static void queue(char **argv)
{
	struct xrds_dest_sndbuf arg = { .bytes = ~0u };
	struct sender s = open_sender(argv);
	long long before = memory_available();
	int n = 0;

	must(setsockopt(s.fd, SOL_RDS, XRDS_DEST_SNDBUF, &arg, sizeof(arg)));
	while (n < LIMIT && rds_send(s.fd, data, s.kept_len, MSG_DONTWAIT,
				     &s.kept) >= 0) {
		n++;
		if (!s.passing_len)
			continue;
		for (int i = 0; i < PASSING_NR; i++)
			rds_send(s.fd, data, s.passing_len, MSG_DONTWAIT,
				 &s.passing);
		must(setsockopt(s.fd, SOL_RDS, RDS_CANCEL_SENT_TO, &s.passing,
				addr_len(&s.passing)));
	}
	check_eq(errno, EDQUOT);
	printf("taken %lld of %d, counted %lld\n",
	       (before - memory_available()) >> 10, n,
	       used_memory(s.fd) >> 10);
}

/* False if the port is congested */
static bool send_on(const struct sender *s, const union addr *to, size_t len)
{
	long long end = tap_now_ms() + tap_ms(LIMIT_MS);

	while (tap_now_ms() < end) {
		if (rds_send(s->fd, data, len, MSG_DONTWAIT, to) >= 0)
			return true;
		if (errno == ENOBUFS)
			return false;
		check_eq(errno, EAGAIN);
		/* This does not end when the port becomes congested; and it ends
		 * at once while the other port may be sent to.
		 */
		poll_one(s->fd, POLLOUT, POLL_MS);
	}
	tap_fail("no space");
}

/* Messages that are still queued wait for the port. */
static bool nothing_under_way(void *fd)
{
	struct dump d = dump_read(*(int *)fd, RDS6_INFO_RETRANS_MESSAGES,
				  sizeof(struct rds6_info_message));
	bool nothing = !d.nr;

	dump_free(&d);
	return nothing;
}

static void fill(char **argv)
{
	struct sender s = open_sender(argv);
	int n = 0;

	while (n < LIMIT && send_on(&s, &s.kept, s.kept_len)) {
		n++;
		for (int i = 0; s.passing_len && i < READ_NR; i++)
			send_on(&s, &s.passing, s.passing_len);
	}
	check(n < LIMIT);
	must_wait(nothing_under_way, &s.fd, LIMIT_MS);
	printf("sent %d\n", n);
}

static void sink(char **argv)
{
	int size = ROOM, port = atoi(argv[1]);
	int kept = rds_bound_to(argv[0], port, NULL);
	int passing = rds_bound_to(argv[0], port + 1, NULL);

	must(setsockopt(kept, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)));
	printf("ready\n");
	fflush(stdout);
	for (;;)
		rds_recv(passing, data, sizeof(data), 0, NULL);
}

int main(int argc, char **argv)
{
	if (argc == 7 && !strcmp(argv[1], "queue"))
		queue(argv + 2);
	else if (argc == 7 && !strcmp(argv[1], "fill"))
		fill(argv + 2);
	else if (argc == 4 && !strcmp(argv[1], "sink"))
		sink(argv + 2);
	else
		tap_fail("see the source");
	tap_child_exit();
}
