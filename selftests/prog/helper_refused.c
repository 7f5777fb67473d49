// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: more messages than a receiver may hold, all queued before
 * its node can say so.
 *
 *   helper_refused sink LOCAL PORT BYTES SENDERS COUNT STEP [RCVBUF]
 *   helper_refused send LOCAL REMOTE PORT BYTES UID SENDERS COUNT
 *
 * The sender becomes another user and opens SENDERS sockets. Each queues COUNT
 * numbered messages of BYTES, in turn with the others. It says "queued", and
 * "delivered" when all of them are acknowledged.
 *
 * The receiver says "ready" and reads nothing. At each SIGUSR1 it reads STEP more
 * messages, or what is left, and says "read N", the number so far. Each message
 * must be the next one of its sender, byte by byte. Behind the last one nothing
 * but ends of streams may come. Its exit status is the verdict.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pattern.h"
#include "sock.h"
#include "tap.h"

enum {
	MAX_SENDERS	= 512,
	LIMIT_MS	= 120000,
	QUIET_MS	= 300,
	SEED		= 11,
};

static char data[MSG_MAX_BYTES + 1];

static void say(const char *what, long number)
{
	if (number < 0)
		printf("%s\n", what);
	else
		printf("%s %ld\n", what, number);
	fflush(stdout);
}

/* ---------------------------------------------------------------- receiver */

struct sink {
	int fd;
	ssize_t bytes;
	u32 senders;
	long all;
	long got;
	u64 next[MAX_SENDERS];
};

static void take(struct sink *s, ssize_t len)
{
	struct pattern_key key;
	u64 want;

	if (len != s->bytes || !pattern_intact(data, len, &key) ||
	    key.from >= s->senders)
		tap_fail("after %ld messages: one of %zd bytes is damaged",
			 s->got, len);
	want = s->next[key.from];
	if (key.seq != want || !pattern_same(data, len, &key))
		tap_fail("sender %u: message %llu instead of %llu", key.from,
			 key.seq, want);
	s->next[key.from]++;
	s->got++;
}

/* Reads the next message; false if none comes within @ms */
static bool next(struct sink *s, int ms)
{
	long long end = tap_now_ms() + tap_ms(ms);
	union addr from;
	ssize_t len;
	bool mark;

	do {
		len = rds_recv_or_mark(s->fd, data, sizeof(data), &from, &mark);
		if (len >= 0 && !mark) {
			take(s, len);
			return true;
		}
		if (len < 0)
			poll_one(s->fd, POLLIN, ms);
	} while (tap_now_ms() < end);
	return false;
}

static void sink(const char *local, char **argv)
{
	static struct sink s;
	long step = atol(argv[4]);
	sigset_t set;
	int sig;

	s.bytes = atoi(argv[1]);
	s.senders = atoi(argv[2]);
	s.all = s.senders * atol(argv[3]);
	s.fd = rds_bound_to(local, atoi(argv[0]), NULL);
	if (argv[5])
		rds_set_int(s.fd, SOL_SOCKET, SO_RCVBUF, atoi(argv[5]));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	say("ready", -1);
	while (s.got < s.all) {
		sigwait(&set, &sig);
		for (long n = 0; n < step && s.got < s.all; n++)
			if (!next(&s, LIMIT_MS))
				tap_fail("%ld of %ld messages have come",
					 s.got, s.all);
		say("read", s.got);
	}
	check(!next(&s, QUIET_MS));
}

/* ------------------------------------------------------------------ sender */

static int open_sender(const char *local)
{
	struct xrds_dest_sndbuf arg = { .bytes = ~0u };
	int fd = rds_bound_to(local, 0, NULL);
	struct linger abort = { 1, 0 };

	/* nothing is left of one that a test kills */
	must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
	must(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &arg, sizeof(arg)));
	return fd;
}

static void send_all(const char *local, char **argv)
{
	union addr to = addr_of(argv[0], atoi(argv[1]));
	int bytes = atoi(argv[2]), user = atoi(argv[3]), fds[MAX_SENDERS];
	u32 senders = atoi(argv[4]);
	u64 count = atol(argv[5]);

	if (senders > MAX_SENDERS)
		tap_fail("%u senders", senders);
	must(setresuid(user, user, user));
	for (u32 i = 0; i < senders; i++)
		fds[i] = open_sender(local);
	for (u64 n = 0; n < count; n++) {
		for (u32 i = 0; i < senders; i++) {
			struct pattern_key key = { .from = i, .seq = n };

			pattern_fill(data, bytes, &key);
			if (rds_send(fds[i], data, bytes, MSG_DONTWAIT, &to) !=
			    bytes)
				tap_fail("sender %u, message %llu: %s", i, n,
					 tap_errno_name(errno));
		}
	}
	say("queued", -1);
	for (u32 i = 0; i < senders; i++)
		must_wait(rds_all_acked, &fds[i], 4 * LIMIT_MS);
	say("delivered", -1);
}

int main(int argc, char **argv)
{
	pattern_init(SEED);
	if ((argc == 8 || argc == 9) && !strcmp(argv[1], "sink"))
		sink(argv[2], argv + 3);
	else if (argc == 9 && !strcmp(argv[1], "send"))
		send_all(argv[2], argv + 3);
	else
		tap_fail("usage: helper_refused sink|send ...");
	tap_child_exit();
}
