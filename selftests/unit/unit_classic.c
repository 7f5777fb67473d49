// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of the wire format: packets of legacy peers.
 *
 * Packets that mainline tolerates are tolerated where they do no harm, and not
 * in XRDS mode.
 * Documentation/differences.rst has the table.
 */
#include "unit.h"

static const int versions[] = { XRDS_VER_3_1, XRDS_VER_4_0, XRDS_VER_4_1 };

/* Decodes in all three versions, which must agree. */
static int decode(const struct xrds_wire_msg *msg, __u32 payload, int flags,
		  struct xrds_wire_msg *out)
{
	struct xrds_wire_msg other;
	__u8 hdr[XRDS_WIRE_HDR_BYTES];
	unsigned int v;
	int err;

	xrds_wire_hdr_encode((struct xrds_hdr *)hdr, msg);
	hdr[24] = flags;
	unit_seal(hdr);
	err = unit_decode(out, hdr, sizeof(hdr) + payload, versions[0]);
	for (v = 1; v < ARRAY_SIZE(versions); v++) {
		CHECK(unit_decode(&other, hdr, sizeof(hdr) + payload,
				  versions[v]) == err);
		CHECK(err || unit_same(out, &other));
	}
	return err;
}

static int refused_in_xrds(const struct xrds_wire_msg *msg, __u32 payload)
{
	return unit_try(msg, payload, XRDS_VER_XRDS) != XRDS_WIRE_OK;
}

/* The flags that are left without ports: one of the two of heartbeats, not both */
static int portless_flags(int flags)
{
	return (flags & 0x18) == 0x18 ? flags & 0x26 : flags & 0x3e;
}

/* A header without ports and payload: flags and length do not count. */
static void bare(void)
{
	static const __u32 lens[] = {
		0, 1, 8192, XRDS_WIRE_MAX_MSG_BYTES, 0xffffffff
	};
	struct xrds_wire_msg msg = { .ack = 3 }, out;
	unsigned int i;
	int flags;

	for (flags = 0; flags < 256; flags++) {
		for (i = 0; i < ARRAY_SIZE(lens); i++) {
			msg.len = lens[i];
			msg.seq = 0;
			CHECK(!decode(&msg, 0, flags, &out));
			CHECK(out.kind == XRDS_KIND_ACK);
			CHECK(!out.len && out.ack == 3);
			msg.seq = 9;
			CHECK(!decode(&msg, 0, flags, &out));
			CHECK(out.kind == XRDS_KIND_PING);
			CHECK(!out.len && out.seq == 9);
			CHECK(out.flags == portless_flags(flags));
		}
	}
	CHECK(refused_in_xrds(&msg, 0));
}

/* A map has this flag, no other one, and the length of a map. */
static void map(void)
{
	struct xrds_wire_msg msg = {
		.ack = 1, .len = XRDS_WIRE_CONG_MAP_BYTES,
		.flags = XRDS_F_CONG_BITMAP,
	};
	struct xrds_wire_msg out;

	CHECK(!decode(&msg, 4096, 0x01, &out));
	CHECK(out.kind == XRDS_KIND_CONG_MAP);
	CHECK(refused_in_xrds(&msg, 4096));
	/* its number and its ports mean nothing */
	msg.seq = 5;
	CHECK(!decode(&msg, 4096, 0x01, &out));
	CHECK(out.kind == XRDS_KIND_CONG_MAP);
	msg.sport = 1;
	msg.dport = 2;
	CHECK(!decode(&msg, 4096, 0x01, &out));
	CHECK(out.kind == XRDS_KIND_CONG_MAP);
	/* of another length it is none, and nothing else either */
	msg.len--;
	CHECK(!decode(&msg, 4096, 0x01, &out));
	CHECK(out.kind == XRDS_KIND_VOID);
	msg.len += 2;
	CHECK(!decode(&msg, 4096, 0x01, &out));
	CHECK(out.kind == XRDS_KIND_VOID);
	msg.len = 0;
	CHECK(!decode(&msg, 0, 0x01, &out));
	CHECK(out.kind == XRDS_KIND_VOID);
	/* no message is larger */
	msg.len = XRDS_WIRE_MAX_MSG_BYTES + 1;
	CHECK(decode(&msg, 4096, 0x01, &out) == XRDS_WIRE_LEN);
}

/* Unknown flags are ignored, except that a map has none. */
static void any_flags(void)
{
	struct xrds_wire_msg msg = {
		.seq = 7, .len = 64, .sport = 5, .dport = 6,
	};
	struct xrds_wire_msg out;
	int flags;

	for (flags = 0; flags < 256; flags++) {
		CHECK(!decode(&msg, 64, flags, &out));
		if (flags == 0x01) {
			CHECK(out.kind == XRDS_KIND_VOID);
			continue;
		}
		CHECK(out.kind == XRDS_KIND_DATA);
		CHECK(out.flags == (flags & 0x26));
	}
}

/* The ports and the number of a map with other flags decide about it. */
static void flags_of_a_map(void)
{
	struct xrds_wire_msg msg = { .len = XRDS_WIRE_CONG_MAP_BYTES };
	struct xrds_wire_msg out;
	int flags;

	for (flags = 3; flags < 256; flags += 2) {
		msg.seq = 0;
		msg.sport = 0;
		msg.dport = 0;
		CHECK(!decode(&msg, 4096, flags, &out));
		CHECK(out.kind == XRDS_KIND_VOID);
		CHECK(out.flags == portless_flags(flags));
		msg.seq = 4;
		CHECK(!decode(&msg, 4096, flags, &out));
		CHECK(out.kind == XRDS_KIND_PING);
		msg.dport = 9;
		CHECK(!decode(&msg, 4096, flags, &out));
		CHECK(out.kind == XRDS_KIND_PONG);
		msg.sport = 8;
		CHECK(!decode(&msg, 4096, flags, &out));
		CHECK(out.kind == XRDS_KIND_DATA);
		msg.seq = 0;
		CHECK(decode(&msg, 4096, flags, &out) == XRDS_WIRE_SEQ);
	}
}

/* A dialler knows the version before it is told, with any flags in the first
 * message of a legacy peer.
 */
static void first_message(void)
{
	struct xrds_wire_msg hello = {
		.len = XRDS_WIRE_HELLO_BYTES, .dport = XRDS_CTL_HELLO,
		.flags = XRDS_F_CONTROL,
	};
	__u8 buf[XRDS_WIRE_HDR_BYTES];
	__u32 bytes = sizeof(buf) + XRDS_WIRE_HELLO_BYTES;
	int flags;

	xrds_wire_hdr_encode((struct xrds_hdr *)buf, &hello);
	CHECK(xrds_wire_hdr_is_hello(buf, bytes));
	CHECK(!xrds_wire_hdr_is_hello(buf, bytes - 1));
	CHECK(!xrds_wire_hdr_is_hello(buf, 0));
	buf[23] = XRDS_CTL_KEEPALIVE;
	unit_seal(buf);
	CHECK(!xrds_wire_hdr_is_hello(buf, bytes));
	for (flags = 0; flags < 256; flags++) {
		memset(buf, 0, sizeof(buf));
		buf[7] = 1;
		buf[19] = XRDS_WIRE_HELLO_BYTES;
		buf[21] = 5;
		buf[23] = XRDS_CTL_HELLO;
		buf[24] = flags;
		unit_seal(buf);
		CHECK(!xrds_wire_hdr_is_hello(buf, bytes));
	}
}

const struct unit_test unit_classic_tests[] = {
	{ bare, "a bare header of a legacy peer" },
	{ map, "legacy congestion maps" },
	{ any_flags, "flags in legacy modes" },
	{ flags_of_a_map, "legacy congestion maps with other flags" },
	{ first_message, "the first message tells the version" },
	{ }
};
