// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of the wire format: private data, version negotiation, refusals.
 */
#include "unit.h"

static const __u8 v4_bytes[XRDS_WIRE_PRIV_V4_BYTES] = {
	0x0a, 0x01, 0x02, 0x03, 0xc0, 0xa8, 0x00, 0x09,
	0x04, 0x01, 0x01, 0x03, 0x05, 0x06, 0x00, 0x00,
	0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
	0x11, 0x12, 0x13, 0x14, 0x00, 0x00, 0x00, 0x00,
};

static const __u8 v6_bytes[XRDS_WIRE_PRIV_V6_BYTES] = {
	0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
	0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xab, 0xcd,
	0x04, 0x01, 0x01, 0x03, 0x05, 0x06, 0x00, 0x00,
	0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
	0x11, 0x12, 0x13, 0x14, 0x00, 0x00, 0x00, 0x00,
};

/* Decodes from a buffer of exactly this size, at an odd address. */
static int try(struct xrds_wire_priv *priv, const void *buf, __u32 bytes,
	       int v6)
{
	__u8 *copy = malloc(bytes + 1);
	int err;

	memcpy(copy + 1, buf, bytes);
	err = unit_note(xrds_wire_priv_decode(priv, copy + 1, bytes, v6));
	free(copy);
	return err;
}

static void known(const __u8 *bytes, __u32 size, int v6)
{
	struct xrds_wire_priv priv;
	__u8 buf[1 + XRDS_WIRE_PRIV_V6_BYTES];

	CHECK(!try(&priv, bytes, size, v6));
	CHECK(priv.major == 4 && priv.minor == 1 && priv.mask == 0x0103);
	CHECK(priv.tos == 5 && priv.epoch == 6);
	CHECK(priv.ack == 0x0102030405060708);
	CHECK(priv.credits == 0x11121314);
	if (v6) {
		CHECK(!memcmp(priv.saddr.s6_addr, bytes, 16));
		CHECK(!memcmp(priv.daddr.s6_addr, bytes + 16, 16));
	} else {
		CHECK(!memcmp(priv.saddr.s6_addr,
			      "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\1\2\3", 16));
		CHECK(!memcmp(priv.daddr.s6_addr,
			      "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\xa8\0\x09", 16));
	}

	memset(buf, 0xff, sizeof(buf));
	CHECK(xrds_wire_priv_encode(buf + 1, &priv, v6) == size);
	CHECK(!memcmp(buf + 1, bytes, size));
}

static void priv_known(void)
{
	known(v4_bytes, sizeof(v4_bytes), 0);
	known(v6_bytes, sizeof(v6_bytes), 1);
}

/* No bit of the old content of a buffer goes out, nor a byte too many. */
static void padding(void)
{
	__u8 zero[XRDS_WIRE_PRIV_V6_BYTES + 1], ones[sizeof(zero)];
	struct xrds_wire_priv priv;
	__u32 bytes;
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		bytes = v6 ? sizeof(v6_bytes) : sizeof(v4_bytes);
		CHECK(!try(&priv, v6 ? v6_bytes : v4_bytes, bytes, v6));
		memset(zero, 0, sizeof(zero));
		memset(ones, 0xff, sizeof(ones));
		CHECK(xrds_wire_priv_encode(zero, &priv, v6) == bytes);
		CHECK(xrds_wire_priv_encode(ones, &priv, v6) == bytes);
		CHECK(!memcmp(zero, ones, bytes));
		CHECK(ones[bytes] == 0xff);
	}
	memset(zero, 0, sizeof(zero));
	memset(ones, 0xff, sizeof(ones));
	bytes = xrds_wire_reject_encode(zero, XRDS_REJECT_CROSSED);
	CHECK(xrds_wire_reject_encode(ones, XRDS_REJECT_CROSSED) == bytes);
	CHECK(bytes < sizeof(ones) && !memcmp(zero, ones, bytes));
	CHECK(ones[bytes] == 0xff);
}

static void priv_lengths(void)
{
	struct xrds_wire_priv priv;
	__u8 buf[224] = { };
	__u32 bytes;

	memcpy(buf, v4_bytes, sizeof(v4_bytes));
	for (bytes = 0; bytes <= sizeof(buf); bytes++)
		CHECK(try(&priv, buf, bytes, 0) ==
		      (bytes < 32 ? XRDS_WIRE_PRIV_LEN : XRDS_WIRE_OK));
	memcpy(buf, v6_bytes, sizeof(v6_bytes));
	for (bytes = 0; bytes <= sizeof(buf); bytes++)
		CHECK(try(&priv, buf, bytes, 1) ==
		      (bytes < 56 ? XRDS_WIRE_PRIV_LEN : XRDS_WIRE_OK));
}

static void priv_reserved(void)
{
	struct xrds_wire_priv priv;
	__u8 buf[XRDS_WIRE_PRIV_V4_BYTES];

	memcpy(buf, v4_bytes, sizeof(buf));
	buf[31] = 1;
	CHECK(!try(&priv, buf, sizeof(buf), 0));
}

/* Oracle's kernels put 16384 there, in 4.1; mainline 0. */
static void fragment_sizes(void)
{
	static const struct {
		__u16 theirs;
		__u32 size;
	} table[] = {
		{ 0, 4096 }, { 1, 4096 }, { 4096, 4096 }, { 6000, 4096 },
		{ 8191, 4096 }, { 8192, 8192 }, { 16384, 8192 },
		{ 65535, 8192 },
	};
	struct xrds_wire_priv priv;
	__u8 buf[XRDS_WIRE_PRIV_V6_BYTES];
	unsigned int i;
	int v6;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		for (v6 = 0; v6 < 2; v6++) {
			__u8 *half = buf + (v6 ? 38 : 14);
			__u32 bytes = v6 ? sizeof(v6_bytes) : sizeof(v4_bytes);

			memcpy(buf, v6 ? v6_bytes : v4_bytes, bytes);
			half[0] = table[i].theirs >> 8;
			half[1] = table[i].theirs;
			CHECK(!try(&priv, buf, bytes, v6));
			CHECK(priv.payload == table[i].theirs);
			CHECK(xrds_wire_priv_legacy_payload(&priv, XRDS_VER_4_1) ==
			      table[i].size);
			CHECK(xrds_wire_priv_legacy_payload(&priv, XRDS_VER_4_0) ==
			      4096);
			CHECK(xrds_wire_priv_legacy_payload(&priv, XRDS_VER_3_1) ==
			      4096);
			half[0] = 0;
			xrds_wire_priv_encode(buf, &priv, v6);
			CHECK(half[0] == table[i].theirs >> 8);
		}
	}
}

static void priv_addresses(void)
{
	static const char * const bad4[] = {
		"\0\0\0\0", "\xe0\0\0\1", "\xef\xff\xff\xff",
		"\xff\xff\xff\xff", NULL
	};
	static const char * const bad6[] = {
		"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
		"\xff\2\0\0\0\0\0\0\0\0\0\0\0\0\0\1",
		"\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\1", NULL
	};
	struct xrds_wire_priv priv;
	__u8 buf[XRDS_WIRE_PRIV_V6_BYTES];
	int i, place;

	for (place = 0; place < 2; place++) {
		for (i = 0; bad4[i]; i++) {
			memcpy(buf, v4_bytes, sizeof(v4_bytes));
			memcpy(buf + 4 * place, bad4[i], 4);
			CHECK(try(&priv, buf, sizeof(v4_bytes), 0) ==
			      XRDS_WIRE_PRIV_ADDR);
		}
		for (i = 0; bad6[i]; i++) {
			memcpy(buf, v6_bytes, sizeof(v6_bytes));
			memcpy(buf + 16 * place, bad6[i], 16);
			CHECK(try(&priv, buf, sizeof(v6_bytes), 1) ==
			      XRDS_WIRE_PRIV_ADDR);
		}
	}
	memcpy(buf, v4_bytes, sizeof(v4_bytes));
	memcpy(buf, "\xdf\xff\xff\xff\xf0\0\0\1", 8);
	CHECK(!try(&priv, buf, sizeof(v4_bytes), 0));
}

static void versions(void)
{
	static const struct {
		__u8 major, minor;
		__u16 theirs, ours;
		int ver;
	} table[] = {
		{ 4, 1, 0x0103, 0x0103, XRDS_VER_XRDS },
		{ 4, 8, 0x0103, 0x0103, XRDS_VER_XRDS },
		{ 4, 1, 0x0100, 0x0103, XRDS_VER_XRDS },
		{ 4, 1, 0x0103, 0x0003, XRDS_VER_4_1 },
		{ 4, 1, 0x0003, 0x0103, XRDS_VER_4_1 },
		{ 4, 0, 0x0002, 0x0103, XRDS_VER_4_1 },
		{ 4, 0, 0x0001, 0x0103, XRDS_VER_4_0 },
		{ 4, 1, 0xfefc, 0x0103, 0 },
		{ 4, 1, 0xffff, 0x0103, XRDS_VER_XRDS },
		{ 4, 1, 0x0000, 0x0103, 0 },
		{ 3, 1, 0x0000, 0x0103, XRDS_VER_3_1 },
		{ 3, 1, 0x0003, 0x0103, XRDS_VER_3_1 },
		{ 3, 0, 0x0003, 0x0103, 0 },
		{ 3, 2, 0x0003, 0x0103, 0 },
		{ 0, 0, 0x0103, 0x0103, 0 },
		{ 5, 1, 0x0103, 0x0103, 0 },
		{ 255, 255, 0xffff, 0xffff, 0 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		struct xrds_wire_priv priv = {
			.major = table[i].major, .minor = table[i].minor,
			.mask = table[i].theirs,
		};

		CHECK(xrds_wire_priv_version(&priv, table[i].ours) == table[i].ver);
	}
}

static void versions_chosen(void)
{
	int major, minor;

	for (major = 0; major < 256; major++) {
		for (minor = 0; minor < 256; minor++) {
			struct xrds_wire_priv priv = {
				.major = major, .minor = minor, .mask = 0xffff,
			};
			int ver = XRDS_VER(major, minor);
			int known = ver == 0x0301 || ver == 0x0400 ||
				    ver == 0x0401 || ver == 0x0408;

			CHECK(xrds_wire_priv_version_chosen(&priv, 0x0103) ==
			      (known ? ver : 0));
			known = ver == 0x0301 || ver == 0x0401;
			CHECK(xrds_wire_priv_version_chosen(&priv, 0x0002) ==
			      (known ? ver : 0));
		}
	}
}

static void refusals(void)
{
	__u8 buf[8];
	int i;

	for (i = 0; i <= XRDS_REJECT_CROSSED; i++) {
		__u32 v = i;

		CHECK(xrds_wire_reject_encode(buf + 1, i) == 4);
		CHECK(!memcmp(buf + 1, &v, 4));
		CHECK((int)xrds_wire_reject_decode(buf + 1, 4) == i);
	}
	CHECK(xrds_wire_reject_decode("\1\0\0\0", 4) == XRDS_REJECT_VERSION);
	CHECK(xrds_wire_reject_decode("\0\0\0\1", 4) == XRDS_REJECT_VERSION);
	CHECK(xrds_wire_reject_decode("\2\0\0\0\xff", 5) ==
	      XRDS_REJECT_CROSSED);
	CHECK(!xrds_wire_reject_decode("\1\0\0\0", 3));
	CHECK(!xrds_wire_reject_decode(NULL, 0));
	CHECK(!xrds_wire_reject_decode("\1\0\0\1", 4));
	CHECK(!xrds_wire_reject_decode("\1\1\0\0", 4));
	CHECK(!xrds_wire_reject_decode("\1\0\1\0", 4));
	CHECK(!xrds_wire_reject_decode("\3\0\0\0", 4));
}

static void error_names(void)
{
	int err, other;

	for (err = 0; err < XRDS_WIRE_NR_ERRORS; err++) {
		const char *text = xrds_wire_strerror(err);

		CHECK(text && *text);
		for (other = 0; other < err; other++)
			CHECK(strcmp(text, xrds_wire_strerror(other)));
	}
	CHECK(!strcmp(xrds_wire_strerror(XRDS_WIRE_NR_ERRORS),
		      "unknown error"));
	CHECK(!strcmp(xrds_wire_strerror(XRDS_WIRE_OK), "no error"));
}

const struct unit_test unit_priv_tests[] = {
	{ priv_known, "private data written by hand" },
	{ padding, "every byte of private data is written" },
	{ priv_lengths, "private data of every length" },
	{ priv_reserved, "bytes that legacy nodes put into reserved fields" },
	{ fragment_sizes, "which size of fragments two sides agree on" },
	{ priv_addresses, "addresses that no node has" },
	{ versions, "version that answers a request" },
	{ versions_chosen, "version that a reply settles on" },
	{ refusals, "reasons of a refusal" },
	{ error_names, "every error has a text of its own" },
	{ }
};
