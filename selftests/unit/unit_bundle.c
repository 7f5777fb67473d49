// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of the wire format: several messages in one SEND.
 */
#include "unit.h"

enum { ROOM = 2 * XRDS_WIRE_MAX_BUNDLE_BYTES };

static const struct xrds_wire_msg plain = {
	.seq = 10, .len = 100, .sport = 5, .dport = 6,
	.kind = XRDS_KIND_DATA,
};

/* A SEND that is being made */
struct send {
	__u8 data[ROOM];
	__u32 bytes;
};

static void put(struct send *s, const struct xrds_wire_msg *msg)
{
	struct xrds_hdr hdr;

	xrds_wire_hdr_encode(&hdr, msg);
	memcpy(s->data + s->bytes, &hdr, sizeof(hdr));
	s->bytes += sizeof(hdr);
	memset(s->data + s->bytes, msg->seq, msg->len);
	s->bytes += msg->len;
}

/* Replaces a header. */
static void replace(struct send *s, __u32 at, const struct xrds_wire_msg *msg)
{
	struct xrds_hdr hdr;

	xrds_wire_hdr_encode(&hdr, msg);
	memcpy(s->data + at, &hdr, sizeof(hdr));
}

/* Reads a SEND to its end, or to an error; @nr is how many messages it had. */
static int read_all(const struct send *s, struct xrds_wire_msg *msgs, __u32 *nr)
{
	/* exactly as long, so that the sanitizer sees a read beyond, and one
	 * byte in, so that no alignment is relied upon
	 */
	__u8 *copy = malloc(s->bytes + 1), *buf = copy + 1;
	struct xrds_wire_bundle b;
	struct xrds_wire_msg msg;
	int err;

	*nr = 0;
	memcpy(buf, s->data, s->bytes);
	err = unit_note(xrds_wire_hdr_decode(&msg, buf, s->bytes,
					     XRDS_VER_XRDS));
	if (!err)
		err = unit_note(xrds_wire_bundle_first(&b, &msg, s->bytes));
	while (!err) {
		CHECK(b.next == b.payload + msg.len && b.next <= s->bytes);
		CHECK(b.nr == *nr + 1);
		CHECK(!msg.len || buf[b.payload] == (__u8)msg.seq);
		if (msgs)
			msgs[*nr] = msg;
		++*nr;
		if (b.next == s->bytes)
			break;
		err = unit_note(xrds_wire_bundle_next(&b, &msg, buf));
	}
	free(copy);
	return err;
}

static int error(const struct send *s)
{
	__u32 nr;

	return read_all(s, NULL, &nr);
}

/* @msg between two that are in order */
static int between(const struct xrds_wire_msg *msg)
{
	struct send s = { };

	put(&s, &plain);
	put(&s, msg);
	put(&s, &plain);
	return error(&s);
}

static int in_front(const struct xrds_wire_msg *msg)
{
	struct send s = { };

	put(&s, msg);
	put(&s, &plain);
	return error(&s);
}

static void told_apart(void)
{
	struct xrds_wire_msg msg = plain;

	CHECK(!xrds_wire_bundled(&msg, 0));
	CHECK(!xrds_wire_bundled(&msg, 99));
	CHECK(!xrds_wire_bundled(&msg, 100));
	CHECK(xrds_wire_bundled(&msg, 101));
	msg.kind = XRDS_KIND_CTL;
	CHECK(!xrds_wire_bundled(&msg, 101));
	msg.kind = XRDS_KIND_ACK;
	msg.len = 0;
	CHECK(!xrds_wire_bundled(&msg, 48));
	msg.kind = XRDS_KIND_EOS;
	CHECK(xrds_wire_bundled(&msg, 48));
}

/* Each allowed message comes out as it went in. */
static void round_trips(void)
{
	static struct xrds_wire_msg in[XRDS_WIRE_MAX_BUNDLE_MSGS];
	static struct xrds_wire_msg out[XRDS_WIRE_MAX_BUNDLE_MSGS];
	__u32 i, j, nr, got;

	for (i = 0; i < 2000; i++) {
		struct send s = { };

		nr = 1 + unit_below(XRDS_WIRE_MAX_BUNDLE_MSGS);
		for (j = 0; j < nr; j++) {
			struct xrds_wire_msg *msg = &in[j];

			*msg = plain;
			msg->seq = 1 + unit_below(1 << 30);
			msg->len = unit_below(4 * 4048 / nr);
			msg->sport = 1 + unit_below(0xffff);
			if (unit_below(2))
				msg->flags = XRDS_F_ACK_REQUIRED;
			if (!unit_below(4)) {
				msg->has = XRDS_HAS_RDMA_DEST;
				msg->dest_rkey = unit_random();
			} else if (!unit_below(4)) {
				msg->len = 0;
				msg->kind = XRDS_KIND_EOS;
				msg->flags |= XRDS_F_EOS;
				msg->has = XRDS_HAS_EOS;
			} else if (!unit_below(4)) {
				msg->dport = 0;
				msg->kind = XRDS_KIND_PING;
			} else if (!unit_below(4)) {
				msg->sport = 0;
				msg->len = 0;
				msg->kind = XRDS_KIND_PONG;
			}
			if (!j) {
				msg->ack = unit_random();
				msg->credit = unit_below(128);
			}
			if (s.bytes + XRDS_WIRE_HDR_BYTES + msg->len >
			    XRDS_WIRE_MAX_BUNDLE_BYTES)
				break;
			put(&s, msg);
		}
		if (!j)
			continue;
		CHECK(!read_all(&s, out, &got) && got == j);
		while (j--)
			CHECK(unit_same(&in[j], &out[j]));
	}
}

static void most_messages(void)
{
	struct xrds_wire_msg msg = plain;
	struct send s = { };
	__u32 i, nr;

	msg.len = 0;
	for (i = 0; i < XRDS_WIRE_MAX_BUNDLE_MSGS; i++)
		put(&s, &msg);
	CHECK(!read_all(&s, NULL, &nr) && nr == XRDS_WIRE_MAX_BUNDLE_MSGS);
	put(&s, &msg);
	CHECK(error(&s) == XRDS_WIRE_BUNDLE);
}

static void most_bytes(void)
{
	struct xrds_wire_msg msg = plain;
	struct send s = { };

	put(&s, &plain);
	msg.len = XRDS_WIRE_MAX_BUNDLE_BYTES - s.bytes - XRDS_WIRE_HDR_BYTES;
	put(&s, &msg);
	CHECK(s.bytes == XRDS_WIRE_MAX_BUNDLE_BYTES && !error(&s));
	s.bytes = 0;
	put(&s, &plain);
	msg.len++;
	put(&s, &msg);
	CHECK(error(&s) == XRDS_WIRE_BUNDLE);
}

static void wrong_kinds(void)
{
	struct xrds_wire_msg msg = { };

	CHECK(between(&msg) == XRDS_WIRE_BUNDLE);
	/* control messages are as long as the SEND, says the decoder */
	msg.flags = XRDS_F_CONTROL;
	msg.dport = XRDS_CTL_KEEPALIVE;
	CHECK(between(&msg) == XRDS_WIRE_CTL_LEN);
	CHECK(in_front(&msg) == XRDS_WIRE_CTL_LEN);
	{
		struct send s = { };

		put(&s, &plain);
		put(&s, &msg);
		CHECK(error(&s) == XRDS_WIRE_BUNDLE);
	}
	msg = plain;
	msg.seq = 0;
	CHECK(between(&msg) == XRDS_WIRE_SEQ);
}

static void fragments(void)
{
	struct xrds_wire_msg msg = plain;
	struct send s = { };
	__u32 len;

	msg.frag = 1;
	CHECK(between(&msg) == XRDS_WIRE_BUNDLE);
	CHECK(in_front(&msg) == XRDS_WIRE_BUNDLE);
	/* the first fragment of a large message, at the end */
	for (len = 101; len < 10000; len += 777) {
		msg = plain;
		msg.len = 100;
		s.bytes = 0;
		put(&s, &plain);
		put(&s, &msg);
		msg.len = len;
		replace(&s, 148, &msg);
		CHECK(error(&s) == XRDS_WIRE_BUNDLE);
	}
}

static void ops(void)
{
	static const __u8 bad[] = {
		XRDS_HAS_RDMA, XRDS_HAS_RDMA_BYTES, XRDS_HAS_SILENT,
	};
	struct xrds_wire_msg msg = plain;
	unsigned int i;

	msg.len = 0;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		msg.has = bad[i];
		CHECK(between(&msg) == XRDS_WIRE_BUNDLE);
		CHECK(in_front(&msg) == XRDS_WIRE_BUNDLE);
	}
	msg.has = XRDS_HAS_RDMA_DEST;
	CHECK(!between(&msg) && !in_front(&msg));
}

static void said_once(void)
{
	struct xrds_wire_msg msg = plain;

	msg.ack = 1;
	CHECK(!in_front(&msg));
	CHECK(between(&msg) == XRDS_WIRE_BUNDLE);
	msg.ack = 0;
	msg.credit = 1;
	CHECK(!in_front(&msg));
	CHECK(between(&msg) == XRDS_WIRE_BUNDLE);
}

/* Lengths that lie, and bytes that are left over. */
static void lengths(void)
{
	struct xrds_wire_msg msg = plain;
	struct send s = { };
	__u32 extra, err;

	for (extra = 1; extra <= 100; extra++) {
		s.bytes = 0;
		put(&s, &plain);
		put(&s, &plain);
		s.bytes += extra;
		err = error(&s);
		CHECK(err == (extra < XRDS_WIRE_HDR_BYTES ? XRDS_WIRE_SHORT :
							    XRDS_WIRE_CSUM));
	}
	/* shorter or longer than it is: the rest is no header */
	for (msg.len = 0; msg.len < 300; msg.len++) {
		s.bytes = 0;
		put(&s, &plain);
		put(&s, &plain);
		put(&s, &plain);
		replace(&s, 0, &msg);
		err = error(&s);
		CHECK(!err == (msg.len == 100 || msg.len == 248));
		CHECK(!err || err == XRDS_WIRE_CSUM);
	}
	/* cut off anywhere */
	s.bytes = 0;
	put(&s, &plain);
	put(&s, &plain);
	while (--s.bytes > 148)
		CHECK(error(&s) == (s.bytes < 148 + XRDS_WIRE_HDR_BYTES ?
				    XRDS_WIRE_SHORT : XRDS_WIRE_BUNDLE));
}

const struct unit_test unit_bundle_tests[] = {
	{ told_apart, "bundles are told from other messages" },
	{ round_trips, "random bundles" },
	{ most_messages, "as many messages as a bundle may have" },
	{ most_bytes, "as many bytes as a bundle may have" },
	{ wrong_kinds, "messages that do not belong into a bundle" },
	{ fragments, "fragments in a bundle" },
	{ ops, "messages of operations in a bundle" },
	{ said_once, "acknowledgment and credit stand in the first header" },
	{ lengths, "lengths that lie, and bytes that are left over" },
	{ }
};
