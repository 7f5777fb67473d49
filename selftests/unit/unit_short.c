// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of the wire format: SENDs without a header, and the contexts of
 * both ends.
 */
#include "unit.h"

#define MAX_PAYLOAD	(XRDS_WIRE_MIN_FRAG_BYTES - XRDS_WIRE_HDR_BYTES)
#define MORE		0x100

/* One direction: the contexts of both ends, and messages that the receiver has in
 * part
 */
struct direction {
	struct xrds_wire_context tx;
	struct xrds_wire_context rx;
	struct xrds_wire_reasm reasm[2];
};

static const struct xrds_wire_msg flow_msg = {
	.seq = 10, .ack = 3, .len = 100, .sport = 5, .dport = 6,
	.kind = XRDS_KIND_DATA,
};

static int take(struct direction *d, const struct xrds_wire_msg *msg,
		__u32 payload, int *done)
{
	return unit_note(xrds_wire_reasm_add(&d->reasm[msg->tag], msg, payload,
					     MAX_PAYLOAD, XRDS_VER_XRDS, done));
}

/* A full header goes from one end to the other. */
static int pass_full(struct direction *d, const struct xrds_wire_msg *msg,
		     __u32 payload, int *done)
{
	xrds_wire_context_note(&d->tx, msg);
	xrds_wire_context_note(&d->rx, msg);
	CHECK(!memcmp(&d->tx, &d->rx, sizeof(d->tx)));
	return take(d, msg, payload, done);
}

/* Any immediate data with the right number; the sender is taken to have known its
 * content.
 */
static int take_imm(struct direction *d, __u32 imm, __u32 payload, int *done)
{
	struct xrds_wire_msg out;

	imm |= ((d->rx.seq + !(imm & MORE) + (payload >> 8) +
		 (payload >> 12)) & 0x0f) << 16;
	CHECK(!xrds_wire_short_decode(&out, &d->rx, imm, payload));
	d->tx = d->rx;
	return take(d, &out, payload, done);
}

/* And a short one; the receiver gets all of it. */
static int pass_short(struct direction *d, const struct xrds_wire_msg *msg,
		      __u32 payload, int last, int *done)
{
	struct xrds_wire_msg out;
	__u32 imm;

	CHECK(xrds_wire_short_fits(&d->tx, msg, last));
	imm = xrds_wire_short_encode(&d->tx, msg, last, payload);
	CHECK(!xrds_wire_short_decode(&out, &d->rx, imm, payload));
	CHECK(!memcmp(&d->tx, &d->rx, sizeof(d->tx)));
	CHECK(out.ack == d->tx.ack && out.credit == msg->credit);
	CHECK(out.flags == msg->flags && out.tag == msg->tag);
	CHECK(out.kind == XRDS_KIND_DATA && !out.has);
	CHECK(out.seq == (last ? d->tx.seq : 0));
	CHECK(msg->frag || (out.sport == msg->sport &&
			    out.dport == msg->dport));
	return take(d, &out, payload, done);
}

static struct direction begun(void)
{
	struct direction d = { };
	int done;

	CHECK(!pass_full(&d, &flow_msg, flow_msg.len, &done) && done);
	return d;
}

static void layout(void)
{
	struct xrds_wire_context ctx = { };
	struct xrds_wire_msg msg = flow_msg;
	__u32 slot;

	xrds_wire_context_note(&ctx, &msg);
	CHECK(ctx.seq == 10 && ctx.ack == 3);
	for (slot = 0; slot < XRDS_WIRE_SLOTS; slot++)
		if (ctx.ports[slot])
			break;
	/* (5 << 16 | 6) * 0x9e3779b1, the highest seven bits */
	CHECK(slot == 0x0a && ctx.ports[slot] == (5 << 16 | 6));
	CHECK(xrds_wire_short_encode(&ctx, &msg, 1, 0) == 0x003b000a);
	CHECK(ctx.seq == 11);
	msg.ack = 0x12345;
	CHECK(xrds_wire_short_encode(&ctx, &msg, 1, 0) == 0x345c000a);
	CHECK(ctx.seq == 12 && ctx.ack == 0x12345);
	msg.credit = 63;
	CHECK(xrds_wire_short_encode(&ctx, &msg, 1, 0) == 0x345dfc0a);
	msg.credit = 0;
	msg.flags = XRDS_F_ACK_REQUIRED;
	CHECK(xrds_wire_short_encode(&ctx, &msg, 1, 0) == 0x345e020a);
	CHECK(xrds_wire_short_encode(&ctx, &msg, 0, 0) == 0x345e030a);
	msg.tag = 1;
	CHECK(xrds_wire_short_encode(&ctx, &msg, 1, 0) == 0x345f028a);
	/* behind the first fragment its index is in the place of the slot */
	msg.frag = 130;
	CHECK(xrds_wire_short_encode(&ctx, &msg, 1, 0) == 0x34500282);
	/* 17, and 0x123 packets of 256 bytes, or 0x12 of 4096 */
	CHECK(xrds_wire_short_encode(&ctx, &msg, 1, 0x12345) == 0x34560282);
}

static void fits(void)
{
	struct xrds_wire_context ctx = { };
	struct xrds_wire_msg msg = flow_msg;
	int i;

	CHECK(!xrds_wire_short_fits(&ctx, &msg, 1));
	xrds_wire_context_note(&ctx, &msg);
	CHECK(!xrds_wire_short_fits(&ctx, &msg, 1));
	msg.seq++;
	CHECK(xrds_wire_short_fits(&ctx, &msg, 1));
	msg.seq++;
	CHECK(!xrds_wire_short_fits(&ctx, &msg, 1));
	/* the last fragment alone has a number */
	CHECK(xrds_wire_short_fits(&ctx, &msg, 0));
	msg.seq--;

#define FITS_WITH(field, value) \
	({ \
		struct xrds_wire_msg changed = msg; \
		changed.field = (value); \
		xrds_wire_short_fits(&ctx, &changed, 1); \
	})
	CHECK(!FITS_WITH(sport, 7) && !FITS_WITH(dport, 7));
	CHECK(!FITS_WITH(dport, 0) && !FITS_WITH(sport, 0));
	for (i = 0; i < 8; i++)
		CHECK(FITS_WITH(flags, 1 << i) ==
		      (1 << i == XRDS_F_ACK_REQUIRED));
	for (i = 0; i < 10; i++)
		CHECK(!FITS_WITH(has, 1 << i));
	CHECK(FITS_WITH(tag, 1) && !FITS_WITH(tag, 2));
	/* an older acknowledgment is known, one far ahead does not fit */
	CHECK(FITS_WITH(ack, 0) && FITS_WITH(ack, 3 + 0xfff));
	CHECK(!FITS_WITH(ack, 3 + 0x1000));
	/* the slot is that of the first fragment */
	msg.frag = 1;
	CHECK(FITS_WITH(sport, 7));
}

/* The op behind which a header stands may be taken back. */
static void ops_leave_nothing(void)
{
	struct xrds_wire_context ctx = { }, before;
	struct xrds_wire_msg msg = flow_msg;

	xrds_wire_context_note(&ctx, &msg);
	before = ctx;
	msg.seq = 11;
	msg.ack = 99;
	msg.sport = 77;
	msg.has = XRDS_HAS_RDMA;
	xrds_wire_context_note(&ctx, &msg);
	CHECK(!memcmp(&ctx, &before, sizeof(ctx)));
}

static void whole(void)
{
	struct direction d = begun();
	struct xrds_wire_msg msg = flow_msg;
	int done;

	for (msg.len = 0; msg.len <= XRDS_WIRE_MIN_FRAG_BYTES; msg.len++) {
		msg.seq++;
		msg.ack += unit_below(3);
		msg.credit = unit_below(64);
		CHECK(!pass_short(&d, &msg, msg.len, 1, &done) && done);
		CHECK(d.reasm[0].first.seq == msg.seq);
		CHECK(d.reasm[0].first.len == msg.len);
	}
	CHECK(take_imm(&d, 0x0a, XRDS_WIRE_MIN_FRAG_BYTES + 1, &done) ==
	      XRDS_WIRE_FRAG_LEN);
}

static void unknown_flow(void)
{
	struct direction d = begun();
	int slot, known = 0, done;

	for (slot = 0; slot < XRDS_WIRE_SLOTS; slot++) {
		int err = take_imm(&d, slot, 7, &done);

		CHECK(!err || err == XRDS_WIRE_SLOT);
		known += !err;
	}
	CHECK(known == 1);
}

static void several(void)
{
	struct direction d = begun();
	struct xrds_wire_msg msg = flow_msg, other = flow_msg;
	int done;

	/* others pass it, and it gets its number in the end */
	msg.tag = 1;
	msg.seq = 0;
	CHECK(!pass_short(&d, &msg, 8192, 0, &done) && !done);
	other.seq = 11;
	CHECK(!pass_short(&d, &other, 100, 1, &done) && done);
	msg.frag = 1;
	CHECK(!pass_short(&d, &msg, 4096, 0, &done) && !done);
	msg.frag = 2;
	msg.seq = 12;
	CHECK(!pass_short(&d, &msg, 1, 1, &done) && done);
	CHECK(d.reasm[1].first.seq == 12 && d.reasm[1].first.len == 12289);
	CHECK(d.reasm[1].first.sport == 5 && d.reasm[1].first.dport == 6);
}

static void mixed(void)
{
	struct direction d = begun();
	struct xrds_wire_msg msg = flow_msg;
	int done;

	/* full ones in front and in the middle, without a number */
	msg.tag = 1;
	msg.len = 20000;
	msg.seq = 0;
	CHECK(!pass_full(&d, &msg, 5000, &done) && !done);
	msg.frag = 1;
	CHECK(!pass_short(&d, &msg, 5000, 0, &done) && !done);
	msg.frag = 2;
	CHECK(!pass_full(&d, &msg, 5000, &done) && !done);
	msg.frag = 3;
	msg.seq = 11;
	CHECK(!pass_short(&d, &msg, 5000, 1, &done) && done);
	CHECK(d.reasm[1].first.seq == 11 && d.reasm[1].first.len == 20000);

	/* a full one at the end, as numbers are missing */
	msg.frag = 0;
	msg.seq = 0;
	CHECK(!pass_short(&d, &msg, 16384, 0, &done) && !done);
	msg.frag = 1;
	msg.seq = 99;
	CHECK(!pass_full(&d, &msg, 3616, &done) && done);
	CHECK(d.reasm[1].first.seq == 99 && d.reasm[1].first.len == 20000);

	/* with tag 0 a full one has the number: full ones follow */
	msg = flow_msg;
	msg.seq = 100;
	msg.len = 20000;
	CHECK(!pass_short(&d, &msg, 8000, 0, &done) && !done);
	msg.frag = 1;
	CHECK(!pass_full(&d, &msg, 8000, &done) && !done);
	msg.frag = 2;
	CHECK(!pass_full(&d, &msg, 4000, &done) && done);
	CHECK(d.reasm[0].first.seq == 100 && d.reasm[0].first.len == 20000);
}

/* After each error the message is over. */
static void refused(void)
{
	struct direction d = begun();
	struct xrds_wire_msg msg = flow_msg;
	int done;

	/* fragments too short, too long, out of order, empty */
	CHECK(take_imm(&d, MORE | 0x0a, 4095, &done) == XRDS_WIRE_FRAG_LEN);
	CHECK(take_imm(&d, MORE | 0x0a, XRDS_WIRE_MIN_FRAG_BYTES + 1, &done) ==
	      XRDS_WIRE_FRAG_LEN);
	CHECK(!take_imm(&d, MORE | 0x0a, 4096, &done) && !done);
	CHECK(take_imm(&d, MORE | 2, 4096, &done) == XRDS_WIRE_FRAG);
	CHECK(!take_imm(&d, MORE | 0x0a, 4096, &done) && !done);
	CHECK(take_imm(&d, 1, 0, &done) == XRDS_WIRE_FRAG_LEN);

	/* longer or shorter than a full header has said */
	msg.tag = 1;
	msg.seq = 0;
	msg.len = 10000;
	CHECK(!pass_full(&d, &msg, 5000, &done) && !done);
	CHECK(take_imm(&d, 0x80 | 1, 5001, &done) == XRDS_WIRE_FRAG_LEN);
	CHECK(!pass_full(&d, &msg, 5000, &done) && !done);
	CHECK(take_imm(&d, 0x80 | 1, 4999, &done) == XRDS_WIRE_FRAG_LEN);
	CHECK(!pass_full(&d, &msg, 5000, &done) && !done);
	CHECK(take_imm(&d, MORE | 0x80 | 1, 5000, &done) ==
	      XRDS_WIRE_FRAG_LEN);

	/* a full header that tells less than there was, or of other ports */
	msg.frag = 1;
	msg.seq = 200;
	CHECK(!take_imm(&d, MORE | 0x8a, 10001, &done) && !done);
	CHECK(pass_full(&d, &msg, 0, &done) == XRDS_WIRE_FRAG_HDR);
	/* or one without payload that says that this was all */
	CHECK(!take_imm(&d, MORE | 0x8a, 10000, &done) && !done);
	CHECK(pass_full(&d, &msg, 0, &done) == XRDS_WIRE_FRAG_LEN);
	CHECK(!take_imm(&d, MORE | 0x8a, 5000, &done) && !done);
	msg.sport++;
	CHECK(pass_full(&d, &msg, 5000, &done) == XRDS_WIRE_FRAG_HDR);

	/* behind a number, or extensions */
	msg = flow_msg;
	msg.seq = 300;
	msg.len = 10000;
	CHECK(!pass_full(&d, &msg, 5000, &done) && !done);
	CHECK(take_imm(&d, 1, 5000, &done) == XRDS_WIRE_FRAG_HDR);
	msg.tag = 1;
	msg.seq = 0;
	msg.has = XRDS_HAS_RDMA;
	CHECK(!pass_full(&d, &msg, 5000, &done) && !done);
	CHECK(take_imm(&d, 0x80 | 1, 5000, &done) == XRDS_WIRE_FRAG_HDR);
}

static void longest(void)
{
	struct direction d = begun();
	int i, done;

	for (i = 0; i < 63; i++)
		CHECK(!take_imm(&d, MORE | (i ?: 0x0a), 16384, &done) && !done);
	CHECK(take_imm(&d, MORE | 63, 16384, &done) == XRDS_WIRE_FRAG_LEN);
	for (i = 0; i < 63; i++)
		CHECK(!take_imm(&d, MORE | (i ?: 0x0a), 16384, &done) && !done);
	CHECK(!take_imm(&d, 63, 16384, &done) && done);
	CHECK(d.reasm[0].first.len == XRDS_WIRE_MAX_MSG_BYTES);
	/* the index goes round */
	for (i = 0; i < 255; i++)
		CHECK(!take_imm(&d, MORE | (i % 128 ?: i ? 0 : 0x0a), 4096,
				&done) && !done);
	CHECK(!take_imm(&d, 127, 4096, &done) && done);
	for (i = 0; i < 63; i++)
		CHECK(!take_imm(&d, MORE | (i ?: 0x0a), 16384, &done) && !done);
	CHECK(take_imm(&d, 63, 16385, &done) == XRDS_WIRE_FRAG_LEN);
}

/* A SEND is lost, or comes twice: the next short header does not fit. */
static void out_of_order(void)
{
	struct xrds_wire_msg msg = flow_msg, out;
	struct xrds_wire_context ahead, rx;
	struct direction d = begun();
	__u32 imm = 0;
	int i;

	for (i = 1; i <= 16; i++) {
		imm = xrds_wire_short_encode(&d.tx, &msg, 1, 0);
		/* the receiver has none of those before */
		rx = d.rx;
		CHECK(unit_note(xrds_wire_short_decode(&out, &rx, imm, 0)) ==
		      (i == 1 ? XRDS_WIRE_OK : XRDS_WIRE_ORDER));
		ahead = d.tx;
		imm = xrds_wire_short_encode(&ahead, &msg, 0, 0);
		rx = d.rx;
		CHECK(xrds_wire_short_decode(&out, &rx, imm, 0) ==
		      (i < 16 ? XRDS_WIRE_ORDER : XRDS_WIRE_OK));
	}
	d = begun();
	imm = xrds_wire_short_encode(&d.tx, &msg, 1, 0);
	CHECK(!xrds_wire_short_decode(&out, &d.rx, imm, 0));
	CHECK(xrds_wire_short_decode(&out, &d.rx, imm, 0) == XRDS_WIRE_ORDER);
}

/* A packet of a SEND is lost, or comes twice: its short header does not fit. */
static void packets(void)
{
	struct xrds_wire_msg msg = flow_msg, out;
	struct direction d = begun();
	struct xrds_wire_context rx;
	__u32 imm, bytes, mtu;

	for (bytes = 0; bytes <= MAX_PAYLOAD; bytes += 97) {
		imm = xrds_wire_short_encode(&d.tx, &msg, 1, bytes);
		for (mtu = 256; mtu <= 4096; mtu *= 2) {
			rx = d.rx;
			CHECK(xrds_wire_short_decode(&out, &rx, imm,
						     bytes + mtu) ==
			      XRDS_WIRE_ORDER);
			rx = d.rx;
			CHECK(bytes < mtu ||
			      xrds_wire_short_decode(&out, &rx, imm,
						     bytes - mtu) ==
			      XRDS_WIRE_ORDER);
		}
		CHECK(!xrds_wire_short_decode(&out, &d.rx, imm, bytes));
	}
}

/* Any stream of messages, of few flows and of many, arrives as it was sent. */
static void streams(void)
{
	struct direction d = { };
	__u64 seq = 1, shorts = 0;
	int i, done;

	for (i = 0; i < 50000; i++) {
		struct xrds_wire_msg msg = flow_msg;
		int near = unit_below(2);

		/* now and then a number is left out */
		seq += 1 + !unit_below(10);
		msg.seq = seq;
		msg.ack = d.tx.ack + unit_below(near ? 3 : 0x20000);
		msg.sport = 1 + unit_below(near ? 2 : 1000);
		msg.dport = 1 + unit_below(near ? 2 : 1000);
		msg.flags = unit_below(2) * XRDS_F_ACK_REQUIRED;
		msg.has = unit_below(8) ? 0 : XRDS_HAS_RDMA_DEST;
		msg.len = unit_below(MAX_PAYLOAD);
		if (xrds_wire_short_fits(&d.tx, &msg, 1)) {
			CHECK(!pass_short(&d, &msg, msg.len, 1, &done));
			CHECK(d.rx.ack == msg.ack);
			shorts++;
		} else {
			CHECK(!pass_full(&d, &msg, msg.len, &done));
		}
		CHECK(done && d.reasm[0].first.seq == seq);
		CHECK(d.reasm[0].first.len == msg.len);
		CHECK(d.reasm[0].first.sport == msg.sport);
		CHECK(d.reasm[0].first.dport == msg.dport);
	}
	CHECK(shorts > 1000);
}

const struct unit_test unit_short_tests[] = {
	{ layout, "the layout of a short header" },
	{ fits, "messages that have a short header, and others" },
	{ ops_leave_nothing, "a header behind an op leaves no context" },
	{ whole, "messages of one fragment with a short header" },
	{ unknown_flow, "a short header of an empty slot" },
	{ several, "several fragments with short headers" },
	{ mixed, "short and full headers in one message" },
	{ refused, "short headers that do not fit their message" },
	{ longest, "the longest messages of short headers" },
	{ out_of_order, "a SEND with a short header that is lost, or comes twice" },
	{ packets, "a packet of a short SEND that is lost, or comes twice" },
	{ streams, "random streams with short headers" },
	{ }
};
