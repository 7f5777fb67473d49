// SPDX-License-Identifier: GPL-2.0-only
/*
 * When a refused sender hears that it can send again: a quarter of the space.
 *
 * timeout: 120
 */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "congest.h"
#include "sock.h"
#include "tap.h"

enum {
	CHUNK		= 4096,
	CHUNKS		= 16,
	SPACE		= CHUNKS * CHUNK,
	AGE_MS		= 800,		/* between the first messages and the rest */
	ROUNDS		= 5,
};

static char chunk[CHUNK];

/* ------------------------------------------------------------------ space */

/* A sender whose destination is full, and the time of its later messages */
struct full {
	int tx;
	int rx;
	union addr to;
	long long since;
};

static void send_chunks(const struct full *f, int nr)
{
	for (int i = 0; i < nr; i++)
		check_ret(rds_send(f->tx, chunk, CHUNK, MSG_DONTWAIT, &f->to),
			  CHUNK);
}

/* Nothing is acknowledged, and @nr messages are much older than the rest */
static void begin_full(struct full *f, int nr)
{
	*f = (struct full){ .tx = rds_bound(NULL), .rx = rds_bound(&f->to) };
	rds_set_int(f->tx, SOL_SOCKET, SO_SNDBUF, SPACE);
	/* the connection is up, and nothing of its start waits */
	check_ret(rds_send(f->tx, "x", 1, 0, &f->to), 1);
	must_wait(rds_all_acked, &f->tx, WAIT_MS);
	stall_loop();
	send_chunks(f, nr);
	check_eq(poll_one(f->tx, POLLIN, AGE_MS), 0);
	f->since = tap_now_ms();
	send_chunks(f, CHUNKS - nr);
	check_err(rds_send(f->tx, chunk, CHUNK, MSG_DONTWAIT, &f->to), EAGAIN);
}

/* From now on the old ones are acknowledged, and the rest later */
static void let_old_go(const struct full *f)
{
	knob("net/xrds/loop/delay_ms",
	     tap_now_ms() - f->since + AGE_MS / 2);
}

static void end_full(struct full *f)
{
	knob("net/xrds/loop/delay_ms", 0);
	must_wait(rds_all_acked, &f->tx, WAIT_MS);
	close(f->tx);
	close(f->rx);
}

/* The machine may be so slow that we look after the rest has gone as well */
static void quarter(void)
{
	bool exact = false;
	struct full f;

	for (int i = 0; i < ROUNDS && !exact; i++) {
		tap_context("round %d", i);
		begin_full(&f, CHUNKS / 4);
		let_old_go(&f);
		check_eq(poll_one(f.tx, POLLOUT, tap_ms(WAIT_MS)), POLLOUT);
		exact = rds_outq(f.tx) == SPACE - SPACE / 4;
		if (exact)
			check_ret(rds_send(f.tx, chunk, CHUNK, MSG_DONTWAIT,
					   &f.to), CHUNK);
		end_full(&f);
	}
	check(exact);
}

static bool old_gone(void *arg)
{
	const struct full *f = arg;

	return rds_outq(f->tx) < SPACE;
}

static void less(void)
{
	bool exact = false;
	struct full f;
	int seen;

	for (int i = 0; i < ROUNDS && !exact; i++) {
		tap_context("round %d", i);
		begin_full(&f, CHUNKS / 4 - 1);
		let_old_go(&f);
		must_wait(old_gone, &f, WAIT_MS);
		seen = poll_one(f.tx, POLLOUT, 0);
		exact = rds_outq(f.tx) == SPACE - (CHUNKS / 4 - 1) * CHUNK;
		if (exact)
			check_eq(seen, 0);
		check_eq(poll_one(f.tx, POLLOUT, tap_ms(WAIT_MS)), POLLOUT);
		end_full(&f);
	}
	check(exact);
}

/* A quarter is free, and the message does not fit */
static void large_waits(void)
{
	static char data[SPACE / 2];
	bool exact = false;
	struct full f;
	int seen;

	for (int i = 0; i < ROUNDS && !exact; i++) {
		tap_context("round %d", i);
		begin_full(&f, CHUNKS / 4);
		check_err(rds_send(f.tx, data, SPACE / 2, MSG_DONTWAIT, &f.to),
			  EAGAIN);
		let_old_go(&f);
		must_wait(old_gone, &f, WAIT_MS);
		seen = poll_one(f.tx, POLLOUT, 0);
		exact = rds_outq(f.tx) == SPACE - SPACE / 4;
		if (exact)
			check_eq(seen, 0);
		check_eq(poll_one(f.tx, POLLOUT, tap_ms(WAIT_MS)), POLLOUT);
		check_ret(rds_send(f.tx, data, SPACE / 2, MSG_DONTWAIT, &f.to),
			  SPACE / 2);
		end_full(&f);
	}
	check(exact);
}

static const struct tap_case cases[] = {
	{ "quarter", "POLLOUT comes with a quarter of the space",
	  quarter, TAP_EACH_FAMILY, 60 },
	{ "less", "and not with less", less, 0, 60 },
	{ "large_waits", "nor without space for the message that was refused",
	  large_waits, 0, 60 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
