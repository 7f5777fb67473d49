// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of fair queueing, conn/fq.c: a crowd of members sends, comes and
 * leaves at random. A model counts the bytes of each.
 *
 * Most checks know of bytes alone: how many each has sent while others waited. The
 * order in a line is checked against the tags of a model, which has them in a
 * plain array.
 */
#include "unit.h"
#include "conn/fq.h"

enum {
	MAX_MEMBERS	= 64,
	MIN_MSG		= 64,
	MAX_MSG		= 1 << 20,
};

/* A member, and the model's record of it */
struct member {
	struct xrds_fq_node node;
	bool in[XRDS_CLASSES];
	__u64 tag;
	__u64 came[XRDS_CLASSES];	/* when it got its place, in events */
	__u64 sent;
};

struct crowd {
	struct xrds_fq fq;
	struct member m[MAX_MEMBERS];
	__u32 nr;
	__u32 largest;
	__u64 now;	/* virtual time */
	__u64 events;
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
	c.now = XRDS_FQ_CATCH_UP_BYTES + XRDS_FQ_FIRST_BYTES;
	xrds_fq_init(&c.fq);
	for (i = 0; i < nr; i++)
		xrds_fq_init_node(&c.m[i].node);
}

static bool waits(const struct member *m)
{
	return m->in[XRDS_SMALL] || m->in[XRDS_LARGE];
}

/* The lowest tag of those that wait, or @none. Virtual time follows it. */
static __u64 lowest(__u64 none)
{
	const struct member *m;
	__u64 tag = ~0ULL;

	for (m = c.m; m < c.m + c.nr; m++)
		if (waits(m) && m->tag < tag)
			tag = m->tag;
	if (tag == ~0ULL)
		tag = none;
	if (tag > c.now)
		c.now = tag;
	return tag;
}

static void came(struct member *m, enum xrds_class class)
{
	m->in[class] = true;
	m->came[class] = ++c.events;
	CHECK(!xrds_fq_empty(&c.fq, class));
}

static void come(struct member *m, enum xrds_class class)
{
	__u64 least = lowest(c.now);

	if (least > c.now - XRDS_FQ_FIRST_BYTES)
		least = c.now - XRDS_FQ_FIRST_BYTES;
	if (!waits(m) && m->tag < least)
		m->tag = least;
	xrds_fq_add(&c.fq, &m->node, class);
	came(m, class);
}

static void come_late(struct member *m, enum xrds_class class)
{
	lowest(c.now);
	if (!waits(m) && m->tag + XRDS_FQ_CATCH_UP_BYTES < c.now)
		m->tag = c.now - XRDS_FQ_CATCH_UP_BYTES;
	xrds_fq_add_late(&c.fq, &m->node, class);
	came(m, class);
}

static void leave(struct member *m, enum xrds_class class)
{
	m->in[class] = false;
	xrds_fq_del(&c.fq, &m->node, class);
	lowest(m->tag);
}

/* The member whose turn it is, and a check that it is */
static struct member *first(enum xrds_class class)
{
	struct member *m, *least = NULL;

	for (m = c.m; m < c.m + c.nr; m++) {
		if (!m->in[class])
			continue;
		if (!least || m->tag < least->tag ||
		    (m->tag == least->tag &&
		     m->came[class] < least->came[class]))
			least = m;
	}
	CHECK((struct member *)xrds_fq_first(&c.fq, class) == least);
	CHECK(xrds_fq_empty(&c.fq, class) == !least);
	return least;
}

static void moved(struct member *m)
{
	__u32 i;

	for (i = 0; i < XRDS_CLASSES; i++)
		m->came[i] = ++c.events;
}

static void charge(struct member *m, __u32 bytes)
{
	m->tag += bytes;
	m->sent += bytes;
	moved(m);
	xrds_fq_charge(&c.fq, &m->node, bytes);
}

/* A member sends while nobody waits: as if it had come, and left again. */
static void pass(struct member *m)
{
	__u32 bytes = message();

	if (m->tag < c.now - XRDS_FQ_FIRST_BYTES)
		m->tag = c.now - XRDS_FQ_FIRST_BYTES;
	m->tag += bytes;
	m->sent += bytes;
	lowest(m->tag);
	xrds_fq_pass(&c.fq, &m->node, bytes);
	CHECK(m->node.start == m->tag && c.fq.now == c.now);
}

/* The transport does not take it: the turn remains. */
static void try(enum xrds_class class)
{
	struct member *m = first(class);
	__u32 bytes = message();

	charge(m, bytes);
	xrds_fq_refund(&c.fq, &m->node, bytes);
	m->tag -= bytes;
	m->sent -= bytes;
	moved(m);
}

/* Does the member whose turn it is send? Sometimes it is not able to. */
static struct member *send(enum xrds_class class)
{
	struct member *m = first(class);

	if (m && !unit_below(4)) {
		try(class);
		m = first(class);
	}
	if (m)
		charge(m, message());
	return m;
}

static void ends_empty(void)
{
	__u32 i, class;

	for (class = 0; class < XRDS_CLASSES; class++) {
		for (i = 0; i < c.nr; i++)
			if (c.m[i].in[class])
				leave(&c.m[i], class);
		CHECK(!first(class));
	}
}

/* All orders of coming, sending and leaving, in both lines */
static void random_members(void)
{
	__u32 run, step;

	for (run = 0; run < 300; run++) {
		__u32 rate = 1 + unit_below(8);

		begin(1 + unit_below(24), MIN_MSG << unit_below(15));
		for (step = 0; step < 2000; step++) {
			struct member *m = &c.m[unit_below(c.nr)];
			enum xrds_class class = unit_below(XRDS_CLASSES);

			if (!m->in[class] && unit_below(2))
				come(m, class);
			else if (!m->in[class])
				come_late(m, class);
			else if (!unit_below(4))
				leave(m, class);
			if (!unit_below(rate))
				send(unit_below(XRDS_CLASSES));
			/* one that has a part of a message in progress */
			if (!unit_below(16))
				charge(m, message());
			if (!first(XRDS_SMALL) && !first(XRDS_LARGE))
				pass(&c.m[unit_below(c.nr)]);
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

		begin(2 + unit_below(MAX_MEMBERS - 2), MIN_MSG << unit_below(15));
		for (i = 0; i < c.nr; i++)
			come(&c.m[i], XRDS_LARGE);
		for (step = 0; step < 5000; step++) {
			struct member *m = first(XRDS_LARGE);

			/* one of them with large messages only */
			charge(m, m == c.m ? c.largest : message());
		}
		for (i = 0; i < c.nr; i++) {
			least = c.m[i].sent < least ? c.m[i].sent : least;
			most = c.m[i].sent > most ? c.m[i].sent : most;
		}
		CHECK(most - least <= c.largest);
		ends_empty();
	}
}

/* Each waits until a part of its messages is acknowledged. */
static void held_back(void)
{
	struct member *large = &c.m[0], *small = &c.m[1];
	__u32 large_away = 0, small_away = 0, in_flight = 0, step;

	begin(2, MAX_MSG);
	come(large, XRDS_LARGE);
	come(small, XRDS_LARGE);
	for (step = 0; step < 100000; step++) {
		struct member *m = first(XRDS_LARGE);

		if (m == large) {
			charge(m, MAX_MSG);
			leave(m, XRDS_LARGE);
			large_away = 1 + unit_below(10);
		} else if (m) {
			charge(m, MAX_MSG / 16);
			if (!(++in_flight % 16)) {
				leave(m, XRDS_LARGE);
				small_away = 1 + unit_below(3);
			}
		}
		if (!large->in[XRDS_LARGE] && (!large_away || !large_away--))
			come_late(large, XRDS_LARGE);
		if (!small->in[XRDS_LARGE] && (!small_away || !small_away--))
			come_late(small, XRDS_LARGE);
	}
	CHECK(large->sent > small->sent / 10 * 9);
	CHECK(small->sent > large->sent / 10 * 9);
	ends_empty();
}

/* One that was held back for long goes first. A newcomer waits for one message of
 * its, not for all that it may catch up on.
 */
static void late(void)
{
	struct member *busy = &c.m[0], *held = &c.m[1], *fresh = &c.m[2];

	begin(3, MAX_MSG);
	come(busy, XRDS_SMALL);
	come(held, XRDS_SMALL);
	charge(held, MIN_MSG);
	leave(held, XRDS_SMALL);
	while (busy->sent < 20 * MAX_MSG)
		charge(busy, MAX_MSG);
	come_late(held, XRDS_SMALL);
	while (first(XRDS_SMALL) == held)
		charge(held, MAX_MSG / 16);
	CHECK(held->sent >= XRDS_FQ_CATCH_UP_BYTES);
	CHECK(held->sent <= XRDS_FQ_CATCH_UP_BYTES + MAX_MSG / 8);
	leave(held, XRDS_SMALL);
	charge(busy, 4 * MAX_MSG);
	come_late(held, XRDS_SMALL);
	come(fresh, XRDS_SMALL);
	charge(held, MIN_MSG);
	CHECK(first(XRDS_SMALL) == fresh);
	ends_empty();
}

/* A newcomer goes before all that are busy, but only once. */
static void newcomers(void)
{
	struct member *m;
	__u32 i;

	begin(10, 4096);
	for (i = 0; i < c.nr - 1; i++)
		come(&c.m[i], XRDS_SMALL);
	for (i = 0; i < 1000; i++)
		send(XRDS_SMALL);
	m = &c.m[c.nr - 1];
	come(m, XRDS_SMALL);
	while (m->sent < XRDS_FQ_FIRST_BYTES) {
		CHECK(first(XRDS_SMALL) == m);
		charge(m, 1024);
	}
	/* it comes back at once: its part is used up */
	leave(m, XRDS_SMALL);
	come(m, XRDS_SMALL);
	charge(m, 1024);
	CHECK(first(XRDS_SMALL) != m);
	/* and when the others have sent much it is a newcomer again */
	leave(m, XRDS_SMALL);
	for (i = 0; i < 1000; i++)
		send(XRDS_SMALL);
	come(m, XRDS_SMALL);
	CHECK(first(XRDS_SMALL) == m);
	ends_empty();
}

/* Members that come and go send no more than one that stays, and what newcomers
 * may.
 */
static void comers_and_goers(void)
{
	__u32 run, step, i;

	for (run = 0; run < 50; run++) {
		struct member *busy = &c.m[0];

		begin(2 + unit_below(30), XRDS_FQ_FIRST_BYTES << unit_below(6));
		come(busy, XRDS_SMALL);
		for (step = 0; step < 3000; step++) {
			struct member *m = &c.m[1 + unit_below(c.nr - 1)];

			if (!m->in[XRDS_SMALL])
				come(m, XRDS_SMALL);
			m = first(XRDS_SMALL);
			charge(m, unit_below(2) ? c.largest : message());
			if (m != busy && unit_below(2))
				leave(m, XRDS_SMALL);
		}
		for (i = 1; i < c.nr; i++)
			CHECK(c.m[i].sent <= busy->sent + XRDS_FQ_FIRST_BYTES +
					     2 * c.largest);
		ends_empty();
	}
}

/* Nor do those that cease to exist each time, and a few at once are remembered. */
static void made_anew(void)
{
	struct xrds_fq_past past = { 0 };
	struct member *busy = &c.m[0];
	__u32 nr, step, i;

	for (nr = 1; nr <= XRDS_FQ_PAST; nr++) {
		begin(1 + nr, 4096);
		memset(&past, 0, sizeof(past));
		come(busy, XRDS_SMALL);
		for (step = 0; step < 3000; step++) {
			for (i = 1; i <= nr; i++) {
				xrds_fq_init_node(&c.m[i].node);
				xrds_fq_recall(&past, &c.m[i].node, i);
				CHECK(c.m[i].node.start == c.m[i].tag);
				come(&c.m[i], XRDS_SMALL);
			}
			charge(first(XRDS_SMALL), 4096);
			for (i = 1; i <= nr; i++) {
				leave(&c.m[i], XRDS_SMALL);
				xrds_fq_forget(&past, &c.m[i].node, i);
			}
		}
		for (i = 1; i <= nr; i++)
			CHECK(c.m[i].sent <=
			      busy->sent + XRDS_FQ_FIRST_BYTES + 8192);
		ends_empty();
	}
}

/* One that comes and goes takes nobody else's place. */
static void comes_and_goes(void)
{
	struct xrds_fq_past past = { 0 };
	struct xrds_fq_node node;
	__u32 i;

	xrds_fq_init_node(&node);
	node.start = 1;
	xrds_fq_forget(&past, &node, 1);
	for (i = 0; i < 2 * XRDS_FQ_PAST; i++) {
		node.start = 2 + i;
		xrds_fq_forget(&past, &node, 2);
		xrds_fq_init_node(&node);
		xrds_fq_recall(&past, &node, 2);
		CHECK(node.start == 2 + i);
	}
	xrds_fq_init_node(&node);
	xrds_fq_recall(&past, &node, 1);
	CHECK(node.start == 1);
}

/* One that waits in one line is not made later by the other one. */
static void two_lines(void)
{
	struct member *both = &c.m[0], *other = &c.m[1];
	__u32 i;

	begin(2, 4096);
	come(both, XRDS_LARGE);
	come(other, XRDS_SMALL);
	for (i = 0; i < 1000; i++)
		charge(other, 4096);
	come(both, XRDS_SMALL);
	CHECK(first(XRDS_SMALL) == both);
	charge(both, 999 * 4096);
	CHECK(first(XRDS_SMALL) == both);
	CHECK(first(XRDS_LARGE) == both);
	charge(both, 2 * 4096);
	CHECK(first(XRDS_SMALL) == other);
	ends_empty();
}

const struct unit_test unit_fq_tests[] = {
	{ newcomers, "a newcomer goes first, once" },
	{ equal_shares, "members that stay send as many bytes each" },
	{ held_back, "members that are held back share nevertheless" },
	{ late, "a member that was held back catches up" },
	{ random_members, "random members keep the order of tags" },
	{ comers_and_goers, "a member that comes and goes gains nothing" },
	{ made_anew, "nor does one that is made anew each time" },
	{ comes_and_goes, "one that comes and goes takes nobody else's place" },
	{ two_lines, "lines share the tags of their members" },
	{ }
};
