// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: messages are cancelled of which the first is on its way in
 * part, or some have been refused.
 *
 *   helper_cancel_part recv LOCAL PORT [COUNT]
 *   helper_cancel_part send LOCAL REMOTE PORT [COUNT BYTES]
 *
 * The sender queues some large messages, or COUNT of BYTES, says "queued" and
 * waits for SIGUSR1. Then it cancels them and sends small ones, all numbered. It
 * says "delivered" when these are acknowledged.
 *
 * The receiver says "ready"; with COUNT it reads nothing before SIGUSR1. Of the
 * large messages the first may come, as a whole, and no other; of COUNT as many as
 * there are, but the first ones, and in order. All small ones must come behind
 * them, once and in order. Its exit status is the verdict.
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

static void wait_signal(void)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigwait(&set, &sig);
}

/* @count: messages to be cancelled; @most: those of them that may come */
static void receive(int fd, long count, long most)
{
	long seq, first = 0;

	while ((seq = next(fd, LIMIT_MS)) == first && first < most)
		first++;
	printf("# %ld of those to be cancelled have come\n", first);
	for (long want = count; want < count + SMALL; want++) {
		if (seq != want)
			tap_fail("message %ld instead of %ld", seq, want);
		seq = next(fd, want == count + SMALL - 1 ? QUIET_MS : LIMIT_MS);
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

static void send_all(int fd, const union addr *to, long count, size_t bytes)
{
	struct xrds_dest_sndbuf space = { .bytes = ~0u };
	struct xrds_dest_status st;
	long seq;

	must(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &space, sizeof(space)));
	for (seq = 0; seq < count; seq++)
		queue(fd, to, seq, bytes);
	say("queued");
	wait_signal();
	must(setsockopt(fd, SOL_RDS, RDS_CANCEL_SENT_TO, to, sizeof(to->in)));
	must(dest_status(fd, to, &st));
	check_eq(st.queued_msgs, 0);
	for (; seq < count + SMALL; seq++)
		queue(fd, to, seq, SMALL_BYTES);
	must_wait(rds_all_acked, &fd, LIMIT_MS);
	say("delivered");
}

int main(int argc, char **argv)
{
	long count = LARGE, most = 1;
	size_t bytes = MSG_MAX_BYTES;
	union addr to;
	int fd;

	pattern_init(SEED);
	if (argc < 4)
		tap_fail("usage: helper_cancel_part recv|send ...");
	if (!strcmp(argv[1], "recv")) {
		if (argc == 5) {
			count = atol(argv[4]);
			most = count;
		}
		fd = rds_bound_to(argv[2], atoi(argv[3]), NULL);
		say("ready");
		if (argc == 5)
			wait_signal();
		receive(fd, count, most);
	} else {
		if (argc == 7) {
			count = atol(argv[5]);
			bytes = atol(argv[6]);
		}
		to = addr_of(argv[3], atoi(argv[4]));
		fd = rds_bound_to(argv[2], 0, NULL);
		send_all(fd, &to, count, bytes);
	}
	tap_child_exit();
}
