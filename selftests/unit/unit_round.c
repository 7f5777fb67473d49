// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of turns, conn/round.c: a crowd of members sends, comes and leaves
 * at random. A model counts the bytes and the turns of each.
 *
 * The model counts in bytes and in the order of events. Of the code under test
 * it reads only the credit of a member, to know when a turn has begun or ended.
 */
#include "unit.h"
#include "conn/round.h"

enum {
	MAX_MEMBERS	= 300,
	MIN_MSG		= 64,
	MAX_MSG		= 1 << 20,
};

/* A member, and the model's record of it */
struct member {
	struct xrds_turn turn;
	bool in;
	bool fresh;	/* came as a newcomer, or with a rest of its turn */
	bool stays;	/* never leaves */
	__u32 size;	/* of its next message */
	__s64 order;	/* among those; times are numbers of events */
	__u64 left;
	__u64 over;	/* its last turn ended, or it came without any */
	__u64 sent;
	__u64 others;	/* bytes of others since it had a turn */
	__u64 most;	/* most that @others was */
};

struct crowd {
	struct xrds_round round;
	struct member m[MAX_MEMBERS];
	__u32 nr;
	__u32 largest;
	__u64 now;
	__u32 early;	/* members that went although their credit was used up */
};

static struct crowd c;

/* Mostly small, sometimes the largest, and all between */
static __u32 message(void)
{
	__u32 bits = 6 + unit_below(15);
	__u32 size = MIN_MSG + unit_below(1U << bits);

	if (!unit_below(8))
		size = c.largest;
	return size < c.largest ? size : c.largest;
}

static void begin(__u32 nr, __u32 largest)
{
	__u32 i;

	memset(&c, 0, sizeof(c));
	c.nr = nr;
	c.largest = largest;
	xrds_round_init(&c.round);
	/* counters that wrap do no harm */
	c.round.turns = unit_below(2) ? 0 : -unit_below(1000);
	for (i = 0; i < nr; i++) {
		xrds_round_init_turn(&c.m[i].turn);
		c.m[i].size = message();
	}
}

/* Has each that is in line had a turn since this one left? */
static bool all_had_a_turn(const struct member *m)
{
	const struct member *other;

	for (other = c.m; other < c.m + c.nr; other++)
		if (other->in && !other->fresh && other->over < m->left)
			return false;
	return true;
}

static void come(struct member *m)
{
	bool newcomer = !m->order || all_had_a_turn(m);
	s32 rest = m->turn.credit;

	xrds_round_add(&c.round, &m->turn);
	if (newcomer)
		CHECK(m->turn.credit == XRDS_ROUND_FIRST_BYTES);
	else
		CHECK(m->turn.credit == rest);
	m->in = true;
	m->fresh = m->turn.credit > 0;
	m->order = ++c.now;
	m->over = c.now;
	m->others = 0;
}

static void leave(struct member *m)
{
	xrds_round_del(&c.round, &m->turn);
	CHECK(list_empty(&m->turn.node));
	m->in = false;
	m->left = ++c.now;
}

/* The first of those that go before the others, or NULL */
static struct member *newcomer(void)
{
	struct member *m, *first = NULL;

	for (m = c.m; m < c.m + c.nr; m++)
		if (m->in && m->fresh && (!first || m->order < first->order))
			first = m;
	return first;
}

/* xrds_round_first(), and a check of the members that it passed over */
static struct member *first(void)
{
	static s32 credit[MAX_MEMBERS];
	struct member *fresh = newcomer();
	struct xrds_turn *turn;
	struct member *m;
	__u32 i, gain, steps = 0;

	for (i = 0; i < c.nr; i++)
		credit[i] = c.m[i].turn.credit;
	turn = xrds_round_first(&c.round);
	for (i = 0; i < c.nr; i++) {
		m = &c.m[i];
		gain = m->turn.credit - credit[i];
		if (!gain)
			continue;
		CHECK(m->in && !fresh && credit[i] <= 0);
		CHECK(!(gain % XRDS_ROUND_TURN_BYTES));
		steps += gain / XRDS_ROUND_TURN_BYTES;
		m->others = 0;
		/* it has had turns, which paid for bytes sent before */
		if (m->turn.credit <= 0 || gain > XRDS_ROUND_TURN_BYTES)
			m->over = ++c.now;
	}
	CHECK(steps <= XRDS_ROUND_STEPS);
	if (!turn) {
		CHECK(!c.round.nr);
		return NULL;
	}
	m = (struct member *)turn;
	CHECK(m->in);
	CHECK(!fresh || m == fresh);
	/* it had no more than was looked at: all others were in debt */
	if (turn->credit <= 0) {
		CHECK(steps == XRDS_ROUND_STEPS);
		c.early++;
	}
	return m;
}

static void charge(struct member *m)
{
	__u64 limit = (__u64)c.nr * (XRDS_ROUND_TURN_BYTES +
				     XRDS_ROUND_FIRST_BYTES + c.largest);
	struct member *other;

	xrds_round_charge(&c.round, &m->turn, m->size);
	m->sent += m->size;
	m->others = 0;
	c.now++;
	if (m->turn.credit <= 0) {
		m->fresh = false;
		m->over = c.now;
	}
	for (other = c.m; other < c.m + c.nr; other++) {
		if (other == m || !other->in || other->fresh)
			continue;
		other->others += m->size;
		if (other->others > other->most)
			other->most = other->others;
		CHECK(other->others <= limit);
	}
}

/* The transport does not take it: the turn remains. */
static void try(struct member *m)
{
	struct xrds_turn before = m->turn;

	xrds_round_charge(&c.round, &m->turn, m->size);
	if (m->turn.credit <= 0 && before.credit > 0) {
		m->fresh = true;
		m->order = -(__s64)(++c.now);
	}
	xrds_round_refund(&c.round, &m->turn, m->size);
	CHECK(m->turn.credit == before.credit);
	/* one that was early had no turn to keep */
	if (before.credit > 0)
		CHECK(xrds_round_first(&c.round) == &m->turn);
	else
		m->over = ++c.now;
}

/* The member whose turn it is sends. */
static struct member *go(void)
{
	struct member *m = first();

	if (!m)
		return NULL;
	charge(m);
	m->size = message();
	return m;
}

/* It does, or is not able to; perhaps it has nothing more. */
static void send(__u32 one_in)
{
	struct member *m;

	if (c.round.nr && !unit_below(4)) {
		try(first());
		return;
	}
	m = go();
	if (m && !m->stays && !unit_below(one_in))
		leave(m);
}

static void ends_empty(void)
{
	__u32 i;

	for (i = 0; i < c.nr; i++)
		if (c.m[i].in)
			leave(&c.m[i]);
	CHECK(!c.round.nr && !first());
}

/* All orders of coming, sending and leaving; some of the members stay. */
static void random_members(void)
{
	__u32 run, step, i;

	for (run = 0; run < 300; run++) {
		__u32 rate = 1 + unit_below(8);
		__u32 stay = unit_below(4);

		begin(1 + unit_below(24), MIN_MSG << unit_below(15));
		for (i = 0; i < stay && i < c.nr; i++) {
			c.m[i].stays = true;
			come(&c.m[i]);
		}
		for (step = 0; step < 2000; step++) {
			struct member *m = &c.m[unit_below(c.nr)];

			if (!m->in)
				come(m);
			else if (!m->stays && !unit_below(16))
				leave(m);
			if (!unit_below(rate))
				send(1 + unit_below(8));
		}
		ends_empty();
	}
}

/* Members that are always busy send the same number of bytes. */
static void equal_shares(void)
{
	__u32 run, step, i;

	for (run = 0; run < 100; run++) {
		__u64 least = ~0ULL, most = 0;

		/* so few that nobody goes early */
		begin(2 + unit_below(3), MIN_MSG << unit_below(15));
		for (i = 0; i < c.nr; i++) {
			c.m[i].stays = true;
			come(&c.m[i]);
			/* one of them with large messages only */
			if (!i)
				c.m[i].size = c.largest;
		}
		for (step = 0; step < 20000; step++) {
			send(1);
			c.m[0].size = c.largest;
		}
		CHECK(!c.early);
		for (i = 0; i < c.nr; i++) {
			least = c.m[i].sent < least ? c.m[i].sent : least;
			most = c.m[i].sent > most ? c.m[i].sent : most;
		}
		CHECK(least);
		CHECK(most - least <= c.largest + XRDS_ROUND_TURN_BYTES);
		ends_empty();
	}
}

/* A newcomer goes before all that are busy, but only once. */
static void newcomers(void)
{
	struct member *m;
	__u32 i;

	begin(10, 4096);
	for (i = 0; i < c.nr - 1; i++) {
		c.m[i].stays = true;
		come(&c.m[i]);
	}
	for (i = 0; i < 1000; i++)
		go();
	m = &c.m[c.nr - 1];
	m->stays = true;
	come(m);
	for (i = 0; m->sent < XRDS_ROUND_FIRST_BYTES; i++) {
		CHECK(first() == m);
		go();
	}
	CHECK(first() != m);
	/* it comes back at once, without any credit */
	leave(m);
	come(m);
	CHECK(m->turn.credit <= 0);
	CHECK(first() != m);
	/* and when each has had its turn it is a newcomer again */
	leave(m);
	for (i = 0; i < c.nr * XRDS_ROUND_TURN_BYTES / MIN_MSG; i++)
		go();
	come(m);
	CHECK(first() == m);
	ends_empty();
}

/* Members that come for one message, at the worst time for one that is busy. */
static void comers_and_goers(void)
{
	__u32 run, step, nr, i;

	for (run = 0; run < 20; run++) {
		struct member *busy;

		nr = 2 + unit_below(30);
		begin(nr, XRDS_ROUND_FIRST_BYTES << unit_below(3));
		busy = &c.m[0];
		busy->stays = true;
		come(busy);
		for (step = 0; step < 3000; step++) {
			/* another one is there before the last has gone */
			for (i = 1; i < nr; i++) {
				c.m[i].size = c.largest;
				if (!c.m[i].in && c.m[i].left + 4 < c.now + nr)
					come(&c.m[i]);
				if (unit_below(2))
					break;
			}
			send(1);
		}
		CHECK(busy->sent);
		ends_empty();
	}
}

/* Two that take turns in being away are no newcomers to one that stays. */
static void alternating(void)
{
	struct member *busy;
	__u32 i;

	begin(3, XRDS_ROUND_FIRST_BYTES);
	busy = &c.m[0];
	busy->stays = true;
	for (i = 0; i < c.nr; i++)
		c.m[i].size = XRDS_ROUND_FIRST_BYTES;
	come(busy);
	charge(first());
	for (i = 0; i < 1000; i++) {
		struct member *m = &c.m[1 + i % 2];

		if (!m->in)
			come(m);
		m = first();
		charge(m);
		if (m != busy)
			leave(m);
	}
	CHECK(busy->sent >= 1000 / 5 * XRDS_ROUND_FIRST_BYTES);
	ends_empty();
}

/* Very many that owe more than a call can give: it ends nevertheless. */
static void deep_debts(void)
{
	__u32 i, step;

	begin(MAX_MEMBERS, MAX_MSG);
	for (i = 0; i < c.nr; i++) {
		c.m[i].stays = true;
		c.m[i].size = MAX_MSG;
		come(&c.m[i]);
	}
	for (step = 0; step < 10000; step++)
		send(1);
	CHECK(c.early);
	for (i = 0; i < c.nr; i++)
		CHECK(c.m[i].sent);
	ends_empty();
}

const struct unit_test unit_round_tests[] = {
	{ newcomers, "a newcomer goes first, once" },
	{ equal_shares, "members that stay send as many bytes each" },
	{ random_members, "random members keep the order of turns" },
	{ comers_and_goers, "members that come and go starve nobody" },
	{ alternating, "two that come and go in turn starve nobody" },
	{ deep_debts, "a call looks at a few members only" },
	{ }
};
