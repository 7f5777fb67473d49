// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: messages are cancelled of which the first is on its way in
 * part.
 *
 *   helper_cancel_part recv LOCAL PORT
 *   helper_cancel_part send LOCAL REMOTE PORT
 *
 * The sender queues some large messages, says "queued" and waits for SIGUSR1.
 * Then it cancels them and sends small ones, all numbered. It says "delivered"
 * when these are acknowledged.
 *
 * The receiver says "ready". Of the large messages the first may come, as a whole,
 * and no other. All small ones must come behind it, once and in order. Its exit
 * status is the verdict.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "pattern.h"
#include "sock.h"
#include "tap.h"

enum {
	LARGE		= 3,
	SMALL		= 20,
	SMALL_BYTES	= 200,
	LIMIT_MS	= 60000,
	QUIET_MS	= 300,
	SEED		= 13,
};

static char data[MSG_MAX_BYTES + 1];

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

/* ---------------------------------------------------------------- receiver */

/* Returns the number of the next message, -1 if none comes in so long. */
static long next(int fd, int ms)
{
	long long end = tap_now_ms() + tap_ms(ms);
	struct pattern_key key;
	union addr from;
	ssize_t len;
	bool mark;

	do {
		len = rds_recv_or_mark(fd, data, sizeof(data), &from, &mark);
		if (len < 0)
			poll_one(fd, POLLIN, ms);
		else if (!mark && (!pattern_intact(data, len, &key) ||
				   !pattern_same(data, len, &key)))
			tap_fail("a message of %zd bytes is damaged", len);
		else if (!mark)
			return key.seq;
	} while (tap_now_ms() < end);
	return -1;
}

static void receive(const char *local, int port)
{
	int fd = rds_bound_to(local, port, NULL);
	long seq;

	say("ready");
	seq = next(fd, LIMIT_MS);
	if (!seq) {
		printf("# the first large message has come\n");
		seq = next(fd, LIMIT_MS);
	}
	for (long want = LARGE; want < LARGE + SMALL; want++) {
		if (seq != want)
			tap_fail("message %ld instead of %ld", seq, want);
		seq = next(fd, want == LARGE + SMALL - 1 ? QUIET_MS : LIMIT_MS);
	}
	check_eq(seq, -1);
}

/* ------------------------------------------------------------------ sender */

static void queue(int fd, const union addr *to, long seq, size_t bytes)
{
	struct pattern_key key = { .seq = seq };

	pattern_fill(data, bytes, &key);
	/* it waits while the large message has not been read */
	check_eq(rds_send(fd, data, bytes, 0, to), bytes);
}

static void send_all(const char *local, const char *remote, int port)
{
	struct xrds_dest_sndbuf space = { .bytes = ~0u };
	int sig, fd = rds_bound_to(local, 0, NULL);
	union addr to = addr_of(remote, port);
	struct xrds_dest_status st;
	sigset_t set;
	long seq;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	must(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &space, sizeof(space)));
	for (seq = 0; seq < LARGE; seq++)
		queue(fd, &to, seq, MSG_MAX_BYTES);
	say("queued");
	sigwait(&set, &sig);
	must(setsockopt(fd, SOL_RDS, RDS_CANCEL_SENT_TO, &to, sizeof(to.in)));
	must(dest_status(fd, &to, &st));
	check_eq(st.queued_msgs, 0);
	for (; seq < LARGE + SMALL; seq++)
		queue(fd, &to, seq, SMALL_BYTES);
	must_wait(rds_all_acked, &fd, LIMIT_MS);
	say("delivered");
}

int main(int argc, char **argv)
{
	pattern_init(SEED);
	if (argc == 4 && !strcmp(argv[1], "recv"))
		receive(argv[2], atoi(argv[3]));
	else if (argc == 5 && !strcmp(argv[1], "send"))
		send_all(argv[2], argv[3], atoi(argv[4]));
	else
		tap_fail("usage: helper_cancel_part recv|send ...");
	tap_child_exit();
}
