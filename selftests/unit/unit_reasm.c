// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of the wire format: fragments and how they become messages.
 */
#include "unit.h"

#define MAX_PAYLOAD	(XRDS_WIRE_MIN_FRAG_BYTES - XRDS_WIRE_HDR_BYTES)

static const struct xrds_wire_msg first_msg = {
	.seq = 10, .ack = 3, .len = 10000, .sport = 5, .dport = 6,
	.kind = XRDS_KIND_DATA,
};

static int add(struct xrds_wire_reasm *r, const struct xrds_wire_msg *msg,
	       __u32 payload, int ver, int *done)
{
	int err;

	*done = -1;
	err = unit_note(xrds_wire_reasm_add(r, msg, payload, MAX_PAYLOAD, ver,
					    done));
	CHECK(*done == 0 || *done == 1);
	if (err) {
		CHECK(!*done);
		CHECK(!r->busy);
	} else {
		CHECK(*done == !r->busy);
		CHECK(r->got <= r->first.len && r->take <= payload);
		CHECK(!*done || r->got == r->first.len);
	}
	return err;
}

static void single(void)
{
	struct xrds_wire_reasm r = { };
	struct xrds_wire_msg msg = first_msg;
	int done;

	for (msg.len = 0; msg.len <= 4096; msg.len++) {
		msg.seq++;
		CHECK(!add(&r, &msg, msg.len, XRDS_VER_3_1, &done) && done);
		CHECK(unit_same(&r.first, &msg));
		CHECK(!add(&r, &msg, msg.len, XRDS_VER_XRDS, &done) && done);
		CHECK(unit_same(&r.first, &msg));
	}
	msg.len = MAX_PAYLOAD;
	CHECK(!add(&r, &msg, msg.len, XRDS_VER_XRDS, &done) && done);
	msg.len++;
	CHECK(add(&r, &msg, msg.len, XRDS_VER_XRDS, &done) ==
	      XRDS_WIRE_FRAG_LEN);
	msg.len = 8192;
	CHECK(!add(&r, &msg, msg.len, XRDS_VER_4_1, &done) && done);
	msg.len = 8193;
	CHECK(add(&r, &msg, msg.len, XRDS_VER_4_1, &done) ==
	      XRDS_WIRE_FRAG_LEN);
}

static void classic(void)
{
	static const __u32 lens[] = {
		4097, 8191, 8192, 8193, 65536, 1048575, 1048576
	};
	struct xrds_wire_reasm r = { };
	struct xrds_wire_msg msg = first_msg;
	__u32 at, size;
	unsigned int i;
	int done;

	for (i = 0; i < 2 * ARRAY_SIZE(lens); i++) {
		size = i % 2 ? 4096 : 8192;
		msg.len = lens[i / 2];
		msg.flags = 0;
		for (at = 0; at < msg.len; at += size) {
			__u32 rest = msg.len - at;

			/* not in legacy headers, so not looked at */
			msg.tag = 0;
			msg.frag = 0;
			CHECK(!add(&r, &msg, rest < size ? rest : size,
				   XRDS_VER_4_1, &done));
			CHECK(done == (rest <= size));
			CHECK(done || r.got == at + size);
			msg.ack++;
		}
	}
}

static void classic_lengths(void)
{
	static const __u32 bad[] = {
		0, 1, 4095, 4097, 8191, 8193, 12288, 0xffffffff
	};
	struct xrds_wire_msg long_msg = first_msg;
	unsigned int i;
	int done;

	/* so that none of them is the last one */
	long_msg.len = 40000;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		struct xrds_wire_reasm r = { };

		CHECK(add(&r, &long_msg, bad[i], XRDS_VER_3_1, &done) ==
		      XRDS_WIRE_FRAG_LEN);
		CHECK(!add(&r, &long_msg, 4096, XRDS_VER_3_1, &done));
		CHECK(add(&r, &long_msg, bad[i], XRDS_VER_3_1, &done) ==
		      XRDS_WIRE_FRAG_LEN);
	}
	/* the last fragment: 10000 - 2 * 4096 = 1808 */
	for (i = 0; i <= 8193; i++) {
		struct xrds_wire_reasm r = { };
		int valid = i >= 1808 && i <= 8192;

		CHECK(!add(&r, &first_msg, 4096, XRDS_VER_3_1, &done));
		CHECK(r.take == 4096);
		CHECK(!add(&r, &first_msg, 4096, XRDS_VER_3_1, &done));
		CHECK((add(&r, &first_msg, i, XRDS_VER_3_1, &done) == 0) ==
		      valid);
		CHECK(done == valid);
		/* bytes behind the end of the message are none of it */
		CHECK(!valid || r.take == 1808);
	}
}

/* The two sizes may alternate: only their sum counts. */
static void classic_sizes(void)
{
	struct xrds_wire_msg long_msg = first_msg;
	struct xrds_wire_reasm r = { };
	int done;

	long_msg.len = 4096 + 8192 + 4096;
	CHECK(!add(&r, &long_msg, 4096, XRDS_VER_4_1, &done) && !done);
	CHECK(!add(&r, &long_msg, 8192, XRDS_VER_4_1, &done) && !done);
	CHECK(!add(&r, &long_msg, 4096, XRDS_VER_4_1, &done) && done);
	/* XRDS mode has its own limit */
	CHECK(!add(&r, &long_msg, MAX_PAYLOAD, XRDS_VER_XRDS, &done) && !done);
}

/* Any split that keeps the rules makes a message. */
static void random_splits(void)
{
	int i, done;

	for (i = 0; i < 20000; i++) {
		struct xrds_wire_reasm r = { };
		struct xrds_wire_msg msg = first_msg;
		__u32 got = 0;

		msg.len = unit_below(XRDS_WIRE_MAX_MSG_BYTES + 1);
		msg.tag = unit_below(2) * unit_random();
		do {
			__u32 n = 4096 + unit_below(MAX_PAYLOAD - 4096 + 1);

			if (n > msg.len - got)
				n = msg.len - got;
			msg.seq = msg.tag && n < msg.len - got ? 0 : 99;
			CHECK(!add(&r, &msg, n, XRDS_VER_XRDS, &done));
			got += n;
			CHECK(r.got == got);
			CHECK(done == (got == msg.len));
			msg.frag++;
			msg.credit = unit_below(100);
			msg.ack += unit_below(3);
			msg.flags = unit_random() & (XRDS_F_ACK_REQUIRED |
						     XRDS_F_RETRANSMITTED);
		} while (!done);
		CHECK(r.first.frag == 0 && r.first.ack == first_msg.ack);
		CHECK(r.first.seq == 99);
		CHECK(msg.frag <= 257);
	}
}

static void xrds_lengths(void)
{
	static const __u32 bad[] = {
		0, 1, 4095, 10001, MAX_PAYLOAD + 1, 0xffffffff
	};
	struct xrds_wire_reasm r = { };
	struct xrds_wire_msg msg;
	unsigned int i;
	int done;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		msg = first_msg;
		CHECK(add(&r, &msg, bad[i], XRDS_VER_XRDS, &done) ==
		      XRDS_WIRE_FRAG_LEN);
		CHECK(!add(&r, &msg, 5000, XRDS_VER_XRDS, &done));
		msg.frag = 1;
		CHECK(add(&r, &msg, bad[i], XRDS_VER_XRDS, &done) ==
		      XRDS_WIRE_FRAG_LEN);
	}
	/* an empty message has no room for anything */
	msg = first_msg;
	msg.len = 0;
	CHECK(add(&r, &msg, 1, XRDS_VER_XRDS, &done) == XRDS_WIRE_FRAG_LEN);
}

static void order(void)
{
	static const __u16 bad[] = { 0, 2, 3, 0xffff };
	struct xrds_wire_reasm r = { };
	struct xrds_wire_msg msg;
	unsigned int i;
	int done;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		msg = first_msg;
		CHECK(!add(&r, &msg, 4096, XRDS_VER_XRDS, &done));
		msg.frag = bad[i];
		CHECK(add(&r, &msg, 4096, XRDS_VER_XRDS, &done) ==
		      XRDS_WIRE_FRAG);
	}
	/* a message does not begin in its middle */
	msg = first_msg;
	msg.frag = 1;
	CHECK(add(&r, &msg, 4096, XRDS_VER_XRDS, &done) == XRDS_WIRE_FRAG);
}

static void headers(void)
{
	int i, v, done;

	for (v = 0; v < 2; v++) {
		int ver = v ? XRDS_VER_XRDS : XRDS_VER_4_1;

		for (i = 0; i < 10; i++) {
			struct xrds_wire_reasm r = { };
			struct xrds_wire_msg msg = first_msg;
			int want = XRDS_WIRE_FRAG_HDR;

			CHECK(!add(&r, &msg, 4096, ver, &done));
			msg.frag = v;
			msg.seq += i == 0;
			msg.len -= i == 1;
			msg.sport += i == 2;
			msg.dport += i == 3;
			msg.tag += v && i == 4;
			/* these are not compared in legacy modes */
			if (!v && i >= 4 && i <= 6)
				want = XRDS_WIRE_OK;
			if (i == 5)
				msg.flags = XRDS_F_EXT_EXTENSION;
			if (i == 6)
				msg.kind = XRDS_KIND_PING;
			if (i == 7) {
				msg.flags = XRDS_F_ACK_REQUIRED |
					    XRDS_F_RETRANSMITTED;
				want = XRDS_WIRE_OK;
			}
			if (i == 8) {
				msg.ack += 5;
				msg.credit = 9;
				want = XRDS_WIRE_OK;
			}
			if (i == 9)
				want = XRDS_WIRE_OK;
			CHECK((int)add(&r, &msg, 4096, ver, &done) == want);
			CHECK(want || r.first.kind == XRDS_KIND_DATA);
		}
	}
}

/* A legacy heartbeat between the fragments of a message is nothing but an
 * acknowledgment.
 */
static void heartbeat_between(void)
{
	struct xrds_wire_msg beat = {
		.seq = first_msg.seq + 1, .flags = XRDS_F_HB_PING,
		.kind = XRDS_KIND_PING,
	};
	struct xrds_wire_reasm r = { };
	int done;

	CHECK(!add(&r, &first_msg, 4096, XRDS_VER_4_1, &done) && !done);
	CHECK(!add(&r, &beat, 0, XRDS_VER_4_1, &done) && !done);
	CHECK(!r.take && r.got == 4096 && r.next == 1);
	CHECK(!add(&r, &first_msg, 4096, XRDS_VER_4_1, &done) && !done);
	CHECK(!add(&r, &beat, 0, XRDS_VER_4_1, &done) && !done);
	CHECK(!add(&r, &first_msg, 1808, XRDS_VER_4_1, &done) && done);
	CHECK(unit_same(&r.first, &first_msg));
	/* and else it is a message of its own */
	CHECK(!add(&r, &beat, 0, XRDS_VER_4_1, &done) && done);
	/* with a payload it is one between others */
	CHECK(!add(&r, &first_msg, 4096, XRDS_VER_4_1, &done) && !done);
	beat.len = 5;
	CHECK(add(&r, &beat, 5, XRDS_VER_4_1, &done) == XRDS_WIRE_FRAG_HDR);
}

/* After an error, and between the fragments of another tag. */
static void independent(void)
{
	struct xrds_wire_msg big = first_msg, small = first_msg;
	struct xrds_wire_reasm r[2] = { };
	int done;

	big.tag = 1;
	big.seq = 0;
	small.len = 7;
	CHECK(!add(&r[1], &big, 5000, XRDS_VER_XRDS, &done) && !done);
	for (small.seq = 11; small.seq < 20; small.seq++)
		CHECK(!add(&r[0], &small, 7, XRDS_VER_XRDS, &done) && done);
	big.frag = 1;
	big.seq = 20;
	CHECK(!add(&r[1], &big, 5000, XRDS_VER_XRDS, &done) && done);
	CHECK(r[1].first.seq == 20);

	CHECK(add(&r[1], &big, 5000, XRDS_VER_XRDS, &done) == XRDS_WIRE_FRAG);
	big.frag = 0;
	big.seq = 0;
	CHECK(!add(&r[1], &big, 5000, XRDS_VER_XRDS, &done) && !done);
	big.frag = 1;
	big.seq = 21;
	CHECK(!add(&r[1], &big, 5000, XRDS_VER_XRDS, &done) && done);
}

/* A message with a tag has its number in the last fragment, and nowhere else. */
static void numbers(void)
{
	struct xrds_wire_msg msg = first_msg;
	struct xrds_wire_reasm r = { };
	int done;

	msg.tag = 1;
	CHECK(add(&r, &msg, 5000, XRDS_VER_XRDS, &done) == XRDS_WIRE_SEQ);
	CHECK(!done);
	msg.seq = 0;
	CHECK(!add(&r, &msg, 5000, XRDS_VER_XRDS, &done) && !done);
	msg.frag = 1;
	CHECK(add(&r, &msg, 5000, XRDS_VER_XRDS, &done) == XRDS_WIRE_SEQ);
	CHECK(!done);

	/* in one fragment */
	msg.frag = 0;
	msg.len = 7;
	CHECK(add(&r, &msg, 7, XRDS_VER_XRDS, &done) == XRDS_WIRE_SEQ);
	msg.seq = 9;
	CHECK(!add(&r, &msg, 7, XRDS_VER_XRDS, &done) && done);
	CHECK(r.first.seq == 9);
}

const struct unit_test unit_reasm_tests[] = {
	{ single, "messages of one fragment" },
	{ classic, "legacy messages of several fragments" },
	{ classic_lengths, "legacy fragments have few lengths" },
	{ classic_sizes, "legacy fragments of either size" },
	{ random_splits, "random splits of random messages" },
	{ xrds_lengths, "fragments too long or too short" },
	{ order, "fragments out of order" },
	{ headers, "fragments of different messages" },
	{ heartbeat_between, "a heartbeat between the fragments of a message" },
	{ independent, "messages of different tags, and after an error" },
	{ numbers, "the number of a message with a tag" },
	{ }
};
