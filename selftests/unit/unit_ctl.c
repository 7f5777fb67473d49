// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of the wire format: payloads of control messages.
 */
#include "unit.h"

static const struct xrds_wire_hello hello_val = {
	.revision = 3, .flags = 1, .frag_bytes = 65536, .credits = 0x0102, .tags = 4,
	.lane = 3, .epoch = 0x85, .node = 0x1112131415161718,
	.peer_node = 0x2122232425262728, .ack = 0x3132333435363738,
};

static const __u8 hello_bytes[XRDS_WIRE_HELLO_BYTES] = {
	0x00, 0x03, 0x00, 0x01, 0x00, 0x01, 0x00, 0x00,
	0x01, 0x02, 0x00, 0x04, 0x03, 0x85, 0x00, 0x00,
	0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
	0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
	0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
};

static int same_hello(const struct xrds_wire_hello *a,
		      const struct xrds_wire_hello *b)
{
	return a->revision == b->revision && a->flags == b->flags &&
	       a->frag_bytes == b->frag_bytes && a->credits == b->credits &&
	       a->tags == b->tags && a->lane == b->lane &&
	       a->epoch == b->epoch && a->node == b->node &&
	       a->peer_node == b->peer_node && a->ack == b->ack;
}

/* Decodes from a buffer of exactly this size, at an odd address. */
static int hello_bytes_try(struct xrds_wire_hello *hello, const void *buf,
			   __u32 bytes)
{
	__u8 *copy = malloc(bytes + 1);
	int err;

	memcpy(copy + 1, buf, bytes);
	err = unit_note(xrds_wire_hello_decode(hello, copy + 1, bytes));
	free(copy);
	return err;
}

static int hello_try(const struct xrds_wire_hello *hello)
{
	struct xrds_wire_hello out;
	__u8 buf[XRDS_WIRE_HELLO_BYTES];
	int err;

	xrds_wire_hello_encode(buf, hello);
	err = hello_bytes_try(&out, buf, sizeof(buf));
	CHECK(err || same_hello(&out, hello));
	return err;
}

static void hello_known(void)
{
	struct xrds_wire_hello out;
	__u8 buf[1 + XRDS_WIRE_HELLO_BYTES];

	memset(buf, 0xff, sizeof(buf));
	xrds_wire_hello_encode(buf + 1, &hello_val);
	CHECK(!memcmp(buf + 1, hello_bytes, sizeof(hello_bytes)));
	CHECK(!hello_bytes_try(&out, hello_bytes, sizeof(hello_bytes)));
	CHECK(same_hello(&out, &hello_val));
}

static void hello_lengths(void)
{
	struct xrds_wire_hello out;
	__u8 buf[100] = { };
	__u32 bytes;

	memcpy(buf, hello_bytes, sizeof(hello_bytes));
	for (bytes = 0; bytes <= sizeof(buf); bytes++)
		CHECK(hello_bytes_try(&out, buf, bytes) ==
		      (bytes == 48 ? XRDS_WIRE_OK : XRDS_WIRE_CTL_LEN));
}

static void hello_fields(void)
{
	struct xrds_wire_hello h = hello_val;
	__u32 v;

	for (v = 0; v < 200000; v++) {
		h.frag_bytes = v;
		CHECK(!hello_try(&h) ==
		      (v >= 16384 && v <= 65536 && v % 4096 == 0));
	}
	h = hello_val;
	for (v = 0; v < 65536; v++) {
		h.credits = v;
		CHECK(!hello_try(&h) == (v >= 1 && v <= 32767));
	}
	h = hello_val;
	for (v = 0; v < 65536; v++) {
		h.tags = v;
		CHECK(!hello_try(&h) == !!v);
	}
	h = hello_val;
	for (v = 0; v < 256; v++) {
		h.lane = v;
		CHECK(!hello_try(&h));
	}
	h = hello_val;
	for (v = 0; v < 256; v++) {
		h.epoch = v;
		CHECK(!hello_try(&h));
	}
	h = hello_val;
	for (v = 0; v < 65536; v++) {
		h.revision = v;
		CHECK(!hello_try(&h) == (v >= 3));
	}
	h = hello_val;
	for (v = 0; v < 65536; v++) {
		h.flags = v;
		h.revision = 3;
		CHECK(!hello_try(&h) == (v <= 3));
		h.revision = 4;
		CHECK(!hello_try(&h) == (v <= 7));
	}
	h = hello_val;
	h.node = 0;
	CHECK(hello_try(&h) == XRDS_WIRE_HELLO);
	h = hello_val;
	h.peer_node = 0;
	CHECK(hello_try(&h) == XRDS_WIRE_HELLO);
	h.ack = 0;
	CHECK(!hello_try(&h));
	h = hello_val;
	h.ack = 0;
	CHECK(!hello_try(&h));
}

static void hello_reserved(void)
{
	static const int reserved[] = {
		2, 3, 14, 15, 40, 41, 42, 43, 44, 45, 46, 47
	};
	struct xrds_wire_hello out;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(reserved); i++) {
		__u8 buf[XRDS_WIRE_HELLO_BYTES];

		memcpy(buf, hello_bytes, sizeof(buf));
		buf[reserved[i]] = 0x80;
		CHECK(hello_bytes_try(&out, buf, sizeof(buf)) ==
		      XRDS_WIRE_HELLO);
		buf[1] = XRDS_REVISION;
		CHECK(hello_bytes_try(&out, buf, sizeof(buf)) ==
		      XRDS_WIRE_HELLO);
		/* a later revision may use it */
		buf[1] = XRDS_REVISION + 1;
		CHECK(!hello_bytes_try(&out, buf, sizeof(buf)));
		CHECK(out.revision == XRDS_REVISION + 1);
	}
}

static int cong_try(struct xrds_wire_cong *cong, const void *buf, __u32 bytes)
{
	return unit_note(xrds_wire_cong_decode(cong, buf, bytes));
}

static void cong_known(void)
{
	static const __u8 bytes[] = {
		0x00, 0x01, 0x00, 0x02,
		0x12, 0x34, 0x01, 0x00,
		0xff, 0xfe, 0x00, 0x00,
	};
	struct xrds_wire_cong cong;
	__u8 congested;
	__u8 buf[13];
	__u16 port;

	memset(buf, 0xff, sizeof(buf));
	CHECK(xrds_wire_cong_bytes(2) == sizeof(bytes));
	/* one port's state costs little, with its header */
	CHECK(XRDS_WIRE_HDR_BYTES + xrds_wire_cong_bytes(1) <= 128);
	xrds_wire_cong_begin(buf + 1, 1, 2);
	xrds_wire_cong_put(buf + 1, 0, 0x1234, 5);
	xrds_wire_cong_put(buf + 1, 1, 0xfffe, 0);
	CHECK(!memcmp(buf + 1, bytes, sizeof(bytes)));

	CHECK(!cong_try(&cong, buf + 1, sizeof(bytes)));
	CHECK(cong.full == 1 && cong.count == 2);
	xrds_wire_cong_entry(&cong, 0, &port, &congested);
	CHECK(port == 0x1234 && congested == 1);
	xrds_wire_cong_entry(&cong, 1, &port, &congested);
	CHECK(port == 0xfffe && congested == 0);
}

static void cong_roundtrip(void)
{
	__u32 count, i;

	for (count = 0; count <= XRDS_WIRE_CONG_MAX_ENTRIES; count++) {
		__u32 bytes = xrds_wire_cong_bytes(count);
		__u16 salt = unit_random();
		__u8 *buf = malloc(bytes);
		struct xrds_wire_cong cong;

		CHECK(bytes == 4 + 4 * count);
		xrds_wire_cong_begin(buf, count & 1, count);
		for (i = 0; i < count; i++)
			xrds_wire_cong_put(buf, i, (i ^ salt) | 1, i & 2);
		CHECK(!cong_try(&cong, buf, bytes));
		CHECK(cong.full == (count & 1) && cong.count == count);
		for (i = 0; i < cong.count; i++) {
			__u8 congested;
			__u16 port;

			xrds_wire_cong_entry(&cong, i, &port, &congested);
			CHECK(port == (__u16)((i ^ salt) | 1));
			CHECK(congested == !!(i & 2));
		}
		free(buf);
	}
}

static int refused_try(const void *buf, __u32 bytes,
		       struct xrds_wire_refused *entries)
{
	int i, err, count = xrds_wire_refused_count(bytes);

	if (count < 0)
		return unit_note(-count);
	for (i = 0; i < count; i++) {
		err = unit_note(xrds_wire_refused_entry(buf, i, entries + i));
		if (err)
			return err;
	}
	return XRDS_WIRE_OK;
}

static void refused_known(void)
{
	static const __u8 bytes[] = {
		0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
		0x12, 0x34, 0xff, 0xfe, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x09,
		0x00, 0x01, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00,
	};
	static const struct xrds_wire_refused in[] = {
		{ 0x0102030405060708, 0x1234, 0xfffe },
		{ 9, 1, 2 },
	};
	struct xrds_wire_refused out[2];
	__u8 buf[33];
	int i;

	memset(buf, 0xff, sizeof(buf));
	for (i = 0; i < 2; i++)
		xrds_wire_refused_put(buf + 1, i, &in[i]);
	CHECK(!memcmp(buf + 1, bytes, sizeof(bytes)));
	CHECK(!refused_try(buf + 1, sizeof(bytes), out));
	for (i = 0; i < 2; i++)
		CHECK(out[i].seq == in[i].seq && out[i].sport == in[i].sport &&
		      out[i].dport == in[i].dport);
}

static void refused_roundtrip(void)
{
	struct xrds_wire_refused in[XRDS_WIRE_REFUSED_MAX_ENTRIES];
	struct xrds_wire_refused out[XRDS_WIRE_REFUSED_MAX_ENTRIES];
	int count, i;

	CHECK(XRDS_WIRE_REFUSED_MAX_ENTRIES == 13);
	for (count = 1; count <= XRDS_WIRE_REFUSED_MAX_ENTRIES; count++) {
		__u8 *buf = malloc(16 * count);

		memset(buf, 0xff, 16 * count);
		for (i = 0; i < count; i++) {
			in[i].seq = unit_random() | 1;
			in[i].sport = 1 + unit_below(65535);
			in[i].dport = 1 + unit_below(65535);
			xrds_wire_refused_put(buf, i, &in[i]);
		}
		CHECK(!refused_try(buf, 16 * count, out));
		for (i = 0; i < count; i++)
			CHECK(out[i].seq == in[i].seq &&
			      out[i].sport == in[i].sport &&
			      out[i].dport == in[i].dport);
		free(buf);
	}
}

static void refused_errors(void)
{
	static const struct xrds_wire_refused valid = { 5, 1, 2 };
	struct xrds_wire_refused out[2];
	__u8 buf[32];
	__u32 bytes;
	int bit, at;

	for (bytes = 0; bytes < 1000; bytes++) {
		int valid_len = bytes && bytes % 16 == 0 && bytes <= 208;

		CHECK(xrds_wire_refused_count(bytes) ==
		      (valid_len ? (int)bytes / 16 : -XRDS_WIRE_REFUSED));
	}
	CHECK(xrds_wire_refused_count(0xfffffff0) == -XRDS_WIRE_REFUSED);
	CHECK(xrds_wire_refused_count(1U << 20) == -XRDS_WIRE_REFUSED);

	/* a field that is zero, of either entry */
	for (at = 0; at < 2; at++) {
		struct xrds_wire_refused entry = valid;

		xrds_wire_refused_put(buf, !at, &valid);
		xrds_wire_refused_put(buf, at, &entry);
		CHECK(!refused_try(buf, sizeof(buf), out));
		entry.seq = 0;
		xrds_wire_refused_put(buf, at, &entry);
		CHECK(refused_try(buf, sizeof(buf), out) == XRDS_WIRE_REFUSED);
		entry = valid;
		entry.sport = 0;
		xrds_wire_refused_put(buf, at, &entry);
		CHECK(refused_try(buf, sizeof(buf), out) == XRDS_WIRE_REFUSED);
		entry = valid;
		entry.dport = 0;
		xrds_wire_refused_put(buf, at, &entry);
		CHECK(refused_try(buf, sizeof(buf), out) == XRDS_WIRE_REFUSED);
		/* a reserved bit that is not */
		for (bit = 0; bit < 32; bit++) {
			xrds_wire_refused_put(buf, at, &valid);
			buf[16 * at + 12 + bit / 8] = 1 << (bit % 8);
			CHECK(refused_try(buf, sizeof(buf), out) ==
			      XRDS_WIRE_REFUSED);
		}
	}
}

/* No bit of the old content of a buffer goes out, nor a byte too many. */
static void padding(void)
{
	static const struct xrds_wire_refused refused = { 5, 1, 2 };
	__u8 zero[4096], ones[4096];
	__u32 i, bytes, count = 100;

	memset(zero, 0, sizeof(zero));
	memset(ones, 0xff, sizeof(ones));
	xrds_wire_hello_encode(zero, &hello_val);
	xrds_wire_hello_encode(ones, &hello_val);
	CHECK(!memcmp(zero, ones, XRDS_WIRE_HELLO_BYTES));
	CHECK(ones[XRDS_WIRE_HELLO_BYTES] == 0xff);

	memset(zero, 0, sizeof(zero));
	memset(ones, 0xff, sizeof(ones));
	bytes = xrds_wire_cong_bytes(count);
	CHECK(bytes < sizeof(ones));
	xrds_wire_cong_begin(zero, 1, count);
	xrds_wire_cong_begin(ones, 1, count);
	for (i = 0; i < count; i++) {
		xrds_wire_cong_put(zero, i, 7 * i, i & 1);
		xrds_wire_cong_put(ones, i, 7 * i, i & 1);
	}
	CHECK(!memcmp(zero, ones, bytes));
	CHECK(ones[bytes] == 0xff);

	memset(zero, 0, sizeof(zero));
	memset(ones, 0xff, sizeof(ones));
	xrds_wire_refused_put(zero, 0, &refused);
	xrds_wire_refused_put(ones, 0, &refused);
	CHECK(!memcmp(zero, ones, XRDS_WIRE_REFUSED_BYTES));
	CHECK(ones[XRDS_WIRE_REFUSED_BYTES] == 0xff);
}

static void cong_errors(void)
{
	struct xrds_wire_cong cong;
	__u8 buf[4 + 4 * 600] = { };
	__u32 bytes;
	int i;

	/* for any length nothing behind it is read */
	for (bytes = 0; bytes < 40; bytes++) {
		__u8 *exact = malloc(bytes ? bytes : 1);

		memset(exact, 1, bytes);
		if (bytes >= 4)
			memcpy(exact, "\0\0\0\x05", 4);
		CHECK(cong_try(&cong, exact, bytes) ==
		      (bytes == 24 ? XRDS_WIRE_CONG : XRDS_WIRE_CTL_LEN));
		free(exact);
	}

	for (i = 1; i < 16; i++) {
		memset(buf, 0, sizeof(buf));
		buf[1 - i / 8] = 1 << (i % 8);
		CHECK(cong_try(&cong, buf, 4) == XRDS_WIRE_CONG);
	}

	xrds_wire_cong_begin(buf, 0, 513);
	for (i = 0; i < 513; i++)
		xrds_wire_cong_put(buf, i, 1 + i, 1);
	CHECK(cong_try(&cong, buf, 4 + 4 * 513) == XRDS_WIRE_CONG);
	xrds_wire_cong_begin(buf, 0, 512);
	CHECK(!cong_try(&cong, buf, 4 + 4 * 512));
	CHECK(cong_try(&cong, buf, 4 + 4 * 513) == XRDS_WIRE_CTL_LEN);

	xrds_wire_cong_begin(buf, 0, 2);
	buf[10] = 2;
	CHECK(cong_try(&cong, buf, 12) == XRDS_WIRE_CONG);
	buf[10] = 1;
	CHECK(!cong_try(&cong, buf, 12));
	buf[11] = 1;
	CHECK(cong_try(&cong, buf, 12) == XRDS_WIRE_CONG);
	xrds_wire_cong_put(buf, 1, 0, 1);
	CHECK(cong_try(&cong, buf, 12) == XRDS_WIRE_CONG);
}

static void maps(void)
{
	__u8 *map = calloc(1, XRDS_WIRE_CONG_MAP_BYTES);
	__u32 port;
	int i;

	for (port = 0; port < XRDS_WIRE_CONG_PORTS; port++) {
		CHECK(!xrds_wire_cong_map_test(map, port));
		xrds_wire_cong_map_set(map, port);
		CHECK(xrds_wire_cong_map_test(map, port) == 1);
		CHECK(map[port >> 3] >> (port & 7) == 1);
	}
	for (i = 0; i < XRDS_WIRE_CONG_MAP_BYTES; i++)
		CHECK(map[i] == 0xff);

	memset(map, 0, XRDS_WIRE_CONG_MAP_BYTES);
	xrds_wire_cong_map_set(map, 0);
	xrds_wire_cong_map_set(map, 9);
	xrds_wire_cong_map_set(map, 65535);
	CHECK(map[0] == 0x01 && map[1] == 0x02 && map[8191] == 0x80);
	free(map);
}

const struct unit_test unit_ctl_tests[] = {
	{ hello_known, "clear-to-send written by hand" },
	{ hello_lengths, "clear-to-send of a wrong length" },
	{ hello_fields, "every field of a clear-to-send" },
	{ hello_reserved, "reserved bytes of a clear-to-send" },
	{ cong_known, "congestion list written by hand" },
	{ cong_roundtrip, "congestion lists of every length" },
	{ padding, "every byte of a control message is written" },
	{ cong_errors, "malformed congestion lists" },
	{ maps, "congestion map" },
	{ refused_known, "refused messages written by hand" },
	{ refused_roundtrip, "lists of refused messages of every length" },
	{ refused_errors, "malformed lists of refused messages" },
	{ }
};
