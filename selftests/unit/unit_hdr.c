// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of the wire format: headers, checksums and extensions.
 *
 * Known answers are written out by hand from Documentation/xrds-wire.rst, not
 * taken from the encoder.
 */
#include <stddef.h>
#include "unit.h"

static const int versions[] = {
	XRDS_VER_3_1, XRDS_VER_4_0, XRDS_VER_4_1, XRDS_VER_XRDS
};

#define NR_VERSIONS	((int)ARRAY_SIZE(versions))

static const struct xrds_wire_msg data_msg = {
	.seq = 0x0102030405060708, .ack = 0x1112131415161718, .len = 64,
	.sport = 0x1234, .dport = 0x5678, .flags = XRDS_F_ACK_REQUIRED,
	.credit = 3, .tag = 4, .frag = 5, .kind = XRDS_KIND_DATA,
};

static const __u8 data_bytes[XRDS_WIRE_HDR_BYTES] = {
	0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
	0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
	0x00, 0x00, 0x00, 0x40, 0x12, 0x34, 0x56, 0x78,
	0x02, 0x03, 0x00, 0x04, 0x00, 0x05, 0x34, 0x9f,
};

static const struct xrds_wire_msg rdma_msg = {
	.seq = 7, .ack = 6, .sport = 4000, .dport = 4001,
	.flags = XRDS_F_ACK_REQUIRED | XRDS_F_EXT_EXTENSION,
	.has = XRDS_HAS_RDMA | XRDS_HAS_RDMA_BYTES, .rdma_rkey = 0xdeadbeef,
	.rdma_bytes = 65536, .rdma_dir = XRDS_RDMA_DIR_WRITE,
	.kind = XRDS_KIND_DATA,
};

static const __u8 rdma_bytes[XRDS_WIRE_HDR_BYTES] = {
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x06,
	0x00, 0x00, 0x00, 0x00, 0x0f, 0xa0, 0x0f, 0xa1,
	0x22, 0x00, 0x00, 0x00, 0x00, 0x00, 0x1e, 0x0f,
	0x02, 0xde, 0xad, 0xbe, 0xef, 0x04, 0x00, 0x01,
	0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00,
};

static const struct xrds_wire_msg silent_msg = {
	.seq = 7, .ack = 6, .sport = 4000, .dport = 4001,
	.has = XRDS_HAS_RDMA | XRDS_HAS_SILENT, .rdma_rkey = 0xdeadbeef,
	.kind = XRDS_KIND_DATA,
};

static const __u8 silent_bytes[XRDS_WIRE_HDR_BYTES] = {
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x06,
	0x00, 0x00, 0x00, 0x00, 0x0f, 0xa0, 0x0f, 0xa1,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x41, 0x03,
	0x02, 0xde, 0xad, 0xbe, 0xef, 0x11,
};

static const struct xrds_wire_msg eos_msg = {
	.seq = 9, .ack = 8, .sport = 4000, .dport = 4001,
	.flags = XRDS_F_EOS, .credit = 1, .has = XRDS_HAS_EOS,
	.eos_reason = 2, .kind = XRDS_KIND_EOS,
};

static const __u8 eos_bytes[XRDS_WIRE_HDR_BYTES] = {
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x09,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08,
	0x00, 0x00, 0x00, 0x00, 0x0f, 0xa0, 0x0f, 0xa1,
	0x80, 0x01, 0x00, 0x00, 0x00, 0x00, 0x4e, 0xac,
	0x10, 0x00, 0x00, 0x00, 0x02,
};

static const struct xrds_wire_msg keepalive_msg = {
	.ack = 5, .dport = XRDS_CTL_KEEPALIVE, .credit = 127,
	.flags = XRDS_F_CONTROL | XRDS_F_ACK_REQUIRED, .kind = XRDS_KIND_CTL,
};

static const __u8 keepalive_bytes[XRDS_WIRE_HDR_BYTES] = {
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x06,
	0x42, 0x7f, 0x00, 0x00, 0x00, 0x00, 0xbd, 0x75,
};

static void layout(void)
{
	CHECK(offsetof(struct xrds_hdr, seq) == 0);
	CHECK(offsetof(struct xrds_hdr, ack) == 8);
	CHECK(offsetof(struct xrds_hdr, len) == 16);
	CHECK(offsetof(struct xrds_hdr, sport) == 20);
	CHECK(offsetof(struct xrds_hdr, dport) == 22);
	CHECK(offsetof(struct xrds_hdr, flags) == 24);
	CHECK(offsetof(struct xrds_hdr, credit) == 25);
	CHECK(offsetof(struct xrds_hdr, tag) == 26);
	CHECK(offsetof(struct xrds_hdr, frag) == 28);
	CHECK(offsetof(struct xrds_hdr, csum) == 30);
	CHECK(offsetof(struct xrds_hdr, ext) == 32);
}

static void known(const struct xrds_wire_msg *msg, const __u8 *bytes)
{
	struct xrds_wire_msg out;
	struct xrds_hdr hdr;

	memset(&hdr, 0xff, sizeof(hdr));
	xrds_wire_hdr_encode(&hdr, msg);
	CHECK(!memcmp(&hdr, bytes, sizeof(hdr)));
	CHECK(!unit_decode(&out, bytes, sizeof(hdr) + msg->len,
			   XRDS_VER_XRDS));
	CHECK(unit_same(&out, msg));
}

static void known_answers(void)
{
	known(&data_msg, data_bytes);
	known(&rdma_msg, rdma_bytes);
	known(&silent_msg, silent_bytes);
	known(&eos_msg, eos_bytes);
	known(&keepalive_msg, keepalive_bytes);
}

/* A message that is valid in XRDS mode, with a payload of len bytes. */
static void random_msg(struct xrds_wire_msg *msg)
{
	memset(msg, 0, sizeof(*msg));
	msg->seq = unit_random() | 1;
	msg->ack = unit_random();
	msg->len = unit_below(XRDS_WIRE_MAX_MSG_BYTES + 1);
	msg->sport = 1 + unit_below(65535);
	msg->dport = 1 + unit_below(65535);
	msg->tag = unit_random();
	msg->frag = unit_random();
	msg->credit = unit_below(XRDS_WIRE_MAX_CREDIT + 1);
	msg->flags = unit_random() & (XRDS_F_ACK_REQUIRED |
				      XRDS_F_RETRANSMITTED |
				      XRDS_F_EXT_EXTENSION);
	do {
		msg->has = unit_random() & (XRDS_HAS_EOS - 1);
	} while (unit_ext_bytes(msg->has) > XRDS_WIRE_EXT_BYTES);
	if (msg->has & XRDS_HAS_RDMA)
		msg->rdma_rkey = unit_random();
	if (msg->has & XRDS_HAS_RDMA_DEST) {
		msg->dest_rkey = unit_random();
		msg->dest_off = unit_random();
	}
	if (msg->has & XRDS_HAS_RDMA_BYTES) {
		msg->rdma_bytes = unit_random();
		msg->rdma_dir = unit_random();
	}
	if (msg->has & XRDS_HAS_NPATHS)
		msg->npaths = unit_random();
	if (msg->has & XRDS_HAS_GEN_NUM)
		msg->gen_num = unit_random();
	if (msg->has & XRDS_HAS_SPORT_IDX)
		msg->sport_idx = unit_random();

	switch (unit_below(8)) {
	case 0:
		msg->kind = XRDS_KIND_PING;
		msg->dport = 0;
		break;
	case 1:
		msg->kind = XRDS_KIND_PONG;
		msg->sport = 0;
		msg->len = 0;
		break;
	default:
		msg->kind = XRDS_KIND_DATA;
		break;
	}
}

static void roundtrip(void)
{
	int i, v;

	for (i = 0; i < 20000; i++) {
		struct xrds_wire_msg in, want, out;
		struct xrds_hdr hdr, again;

		random_msg(&in);
		xrds_wire_hdr_encode(&hdr, &in);
		for (v = 0; v < NR_VERSIONS; v++) {
			want = in;
			if (versions[v] != XRDS_VER_XRDS) {
				want.tag = 0;
				want.frag = 0;
				want.credit = 0;
			}
			CHECK(!unit_decode(&out, &hdr, sizeof(hdr),
					   versions[v]));
			CHECK(unit_same(&want, &out));
		}
		xrds_wire_hdr_encode(&again, &out);
		CHECK(!memcmp(&hdr, &again, sizeof(hdr)));
	}
}

/* No bit of the old content of a buffer goes out. */
static void padding(void)
{
	struct xrds_hdr zero, ones;
	struct xrds_wire_msg msg;
	int i;

	for (i = 0; i < 20000; i++) {
		random_msg(&msg);
		memset(&zero, 0, sizeof(zero));
		memset(&ones, 0xff, sizeof(ones));
		xrds_wire_hdr_encode(&zero, &msg);
		xrds_wire_hdr_encode(&ones, &msg);
		CHECK(!memcmp(&zero, &ones, sizeof(zero)));
	}
}

static void checksum_reference(void)
{
	int i;

	for (i = 0; i < 20000; i++) {
		struct xrds_wire_msg msg;
		struct xrds_hdr hdr;
		__u16 csum;

		random_msg(&msg);
		/* many equal bytes find mistakes in the carries */
		if (i & 1) {
			msg.seq = ~0ULL;
			msg.ack = ~0ULL << unit_below(64);
		}
		xrds_wire_hdr_encode(&hdr, &msg);
		csum = unit_csum((const __u8 *)&hdr);
		CHECK(((const __u8 *)&hdr)[30] == csum >> 8);
		CHECK(((const __u8 *)&hdr)[31] == (csum & 0xff));
	}
}

static void checksum_errors(void)
{
	struct xrds_wire_msg out;
	__u8 hdr[XRDS_WIRE_HDR_BYTES];
	int bit, v;

	for (v = 0; v < NR_VERSIONS; v++) {
		for (bit = 0; bit < 8 * XRDS_WIRE_HDR_BYTES; bit++) {
			memcpy(hdr, data_bytes, sizeof(hdr));
			hdr[bit / 8] ^= 1 << (bit % 8);
			CHECK(unit_decode(&out, hdr, sizeof(hdr),
					  versions[v]) == XRDS_WIRE_CSUM);
		}
	}
}

static void checksum_zero(void)
{
	struct xrds_wire_msg out;
	__u8 hdr[XRDS_WIRE_HDR_BYTES];
	int v;

	for (v = 0; v < NR_VERSIONS; v++) {
		memcpy(hdr, data_bytes, sizeof(hdr));
		hdr[30] = 0;
		hdr[31] = 0;
		CHECK(unit_decode(&out, hdr, sizeof(hdr), versions[v]) ==
		      (versions[v] == XRDS_VER_XRDS ? XRDS_WIRE_CSUM :
						      XRDS_WIRE_OK));
		/* an acknowledgment that consists of zeros, and says so */
		memset(hdr, 0, sizeof(hdr));
		CHECK(unit_decode(&out, hdr, sizeof(hdr), versions[v]) ==
		      (versions[v] == XRDS_VER_XRDS ? XRDS_WIRE_CSUM :
						      XRDS_WIRE_OK));
	}

	/* 0 as the checksum that the sum happens to have */
	memcpy(hdr, data_bytes, sizeof(hdr));
	hdr[8] = 0x45;
	hdr[9] = 0xb1;
	unit_seal(hdr);
	CHECK(!hdr[30] && !hdr[31]);
	CHECK(!unit_decode(&out, hdr, sizeof(hdr), XRDS_VER_XRDS));
}

static void too_short(void)
{
	struct xrds_wire_msg out;
	__u32 bytes;
	int v;

	for (v = 0; v < NR_VERSIONS; v++) {
		for (bytes = 0; bytes < XRDS_WIRE_HDR_BYTES; bytes++)
			CHECK(unit_decode(&out, data_bytes, bytes,
					  versions[v]) == XRDS_WIRE_SHORT);
	}
}

static void lengths(void)
{
	struct xrds_wire_msg msg = data_msg;
	int v;

	for (v = 0; v < NR_VERSIONS; v++) {
		msg.len = 0;
		CHECK(!unit_try(&msg, 0, versions[v]));
		msg.len = XRDS_WIRE_MAX_MSG_BYTES;
		CHECK(!unit_try(&msg, 0, versions[v]));
		msg.len = XRDS_WIRE_MAX_MSG_BYTES + 1;
		CHECK(unit_try(&msg, 0, versions[v]) == XRDS_WIRE_LEN);
		msg.len = 0xffffffff;
		CHECK(unit_try(&msg, 0, versions[v]) == XRDS_WIRE_LEN);
	}
}

/* Ports, length and sequence number decide on the kind, or are refused; in
 * legacy modes what is behind the header as well.
 */
static void kinds(void)
{
	static const struct {
		__u16 sport, dport;
		__u32 len;
		__u64 seq;
		int err, kind;
		/* of a legacy peer */
		int lax_err, lax_kind;
	} table[] = {
		{ 1, 1, 0, 1, XRDS_WIRE_OK, XRDS_KIND_DATA, 0, XRDS_KIND_DATA },
		{ 1, 1, 9, 1, XRDS_WIRE_OK, XRDS_KIND_DATA, 0, XRDS_KIND_DATA },
		{ 1, 1, 9, 0, XRDS_WIRE_SEQ, 0, XRDS_WIRE_SEQ },
		{ 1, 0, 0, 1, XRDS_WIRE_OK, XRDS_KIND_PING, 0, XRDS_KIND_PING },
		{ 1, 0, 9, 1, XRDS_WIRE_OK, XRDS_KIND_PING, 0, XRDS_KIND_PING },
		{ 1, 0, 0, 0, XRDS_WIRE_SEQ, 0, XRDS_WIRE_SEQ },
		{ 0, 1, 0, 1, XRDS_WIRE_OK, XRDS_KIND_PONG, 0, XRDS_KIND_PONG },
		{ 0, 1, 9, 1, XRDS_WIRE_LEN, 0, 0, XRDS_KIND_PONG },
		{ 0, 1, 0, 0, XRDS_WIRE_SEQ, 0, XRDS_WIRE_SEQ },
		{ 0, 0, 0, 0, XRDS_WIRE_OK, XRDS_KIND_ACK, 0, XRDS_KIND_ACK },
		{ 0, 0, 0, 1, XRDS_WIRE_SEQ, 0, 0, XRDS_KIND_PING },
		{ 0, 0, 9, 1, XRDS_WIRE_LEN, 0, 0, XRDS_KIND_PING },
		{ 0, 0, 9, 0, XRDS_WIRE_LEN, 0, 0, XRDS_KIND_VOID },
		{ 0, 1, 9, 0, XRDS_WIRE_LEN, 0, XRDS_WIRE_SEQ },
	};
	unsigned int i;
	int v;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		struct xrds_wire_msg msg = {
			.sport = table[i].sport, .dport = table[i].dport,
			.len = table[i].len, .seq = table[i].seq,
		};
		struct xrds_wire_msg out;
		struct xrds_hdr hdr;

		xrds_wire_hdr_encode(&hdr, &msg);
		for (v = 0; v < NR_VERSIONS; v++) {
			int lax = versions[v] != XRDS_VER_XRDS;
			int err = unit_decode(&out, &hdr, sizeof(hdr) + msg.len,
					      versions[v]);

			CHECK(err == (lax ? table[i].lax_err : table[i].err));
			CHECK(err || out.kind == (lax ? table[i].lax_kind :
							table[i].kind));
		}
	}
}

/* Decodes a legacy header in all legacy versions, and is refused in XRDS mode. */
static void decode_legacy(struct xrds_wire_msg *out, const void *buf,
			  __u32 bytes)
{
	int v, err;

	for (v = 0; v < NR_VERSIONS; v++) {
		err = unit_decode(out, buf, bytes, versions[v]);
		CHECK((versions[v] == XRDS_VER_XRDS) == !!err);
	}
	CHECK(!unit_decode(out, buf, bytes, XRDS_VER_4_1));
}

/* As Oracle's kernels send it, and the answer to it. */
static void heartbeat(void)
{
	static const __u8 ping[XRDS_WIRE_HDR_BYTES] = {
		[7] = 5, [15] = 4, [24] = 0x0a,
		[32] = 7, [36] = 1,
	};
	static const __u8 pong_ext[] = { 7, 0, 0, 0, 1, 0 };
	struct xrds_wire_msg msg = {
		.seq = 6, .ack = 5, .flags = XRDS_F_HB_PONG,
		.has = XRDS_HAS_CAP_BITS, .cap_bits = XRDS_CAP_HEARTBEAT,
	};
	__u8 hdr[XRDS_WIRE_HDR_BYTES];
	struct xrds_wire_msg out;
	struct xrds_hdr answer;

	xrds_wire_hdr_encode(&answer, &msg);
	CHECK(answer.flags == 0x10);
	CHECK(!memcmp(answer.ext, pong_ext, sizeof(pong_ext)));
	memcpy(hdr, ping, sizeof(hdr));
	unit_seal(hdr);
	decode_legacy(&out, hdr, sizeof(hdr));
	CHECK(out.kind == XRDS_KIND_PING && out.seq == 5 && out.ack == 4);
	CHECK(out.flags == (XRDS_F_HB_PING | XRDS_F_ACK_REQUIRED));
	CHECK(out.has == XRDS_HAS_CAP_BITS && out.cap_bits == 1);
	decode_legacy(&out, &answer, sizeof(answer));
	CHECK(out.kind == XRDS_KIND_PING && out.flags == XRDS_F_HB_PONG);
	CHECK(out.has == XRDS_HAS_CAP_BITS && out.cap_bits == 1);
	/* other bits are for others, and none at all is an old kernel */
	hdr[33] = 0x80;
	hdr[36] = 0xfe;
	unit_seal(hdr);
	decode_legacy(&out, hdr, sizeof(hdr));
	CHECK(out.cap_bits == 0x800000fe);
	hdr[32] = 0;
	unit_seal(hdr);
	decode_legacy(&out, hdr, sizeof(hdr));
	CHECK(!out.has && out.flags & XRDS_F_HB_PING);
	/* not both in one */
	hdr[24] = 0x18;
	unit_seal(hdr);
	decode_legacy(&out, hdr, sizeof(hdr));
	CHECK(!out.flags);
}

/* As Oracle's kernels send it, in front of another extension. */
static void payload_csum(void)
{
	static const __u8 data[XRDS_WIRE_HDR_BYTES] = {
		[7] = 5, [19] = 4, [21] = 1, [23] = 2,
		[32] = 9, 0x12, 0x34, 0x56, 0x78, 1, 0xaa, 0xbb, 0xcc,
		2, 0xde, 0xad, 0xbe, 0xef,
	};
	__u8 hdr[XRDS_WIRE_HDR_BYTES];
	struct xrds_wire_msg out;

	memcpy(hdr, data, sizeof(hdr));
	unit_seal(hdr);
	decode_legacy(&out, hdr, sizeof(hdr) + 4);
	CHECK(out.has == (XRDS_HAS_CSUM | XRDS_HAS_RDMA));
	CHECK(out.csum == 0x12345678 && out.rdma_rkey == 0xdeadbeef);
	/* switched off */
	hdr[37] = 0;
	unit_seal(hdr);
	decode_legacy(&out, hdr, sizeof(hdr) + 4);
	CHECK(out.has == XRDS_HAS_RDMA);
	/* the body does not fit behind two others */
	memset(hdr + 32, 0, 16);
	hdr[32] = 3;
	hdr[41] = 9;
	unit_seal(hdr);
	decode_legacy(&out, hdr, sizeof(hdr) + 4);
	CHECK(out.has == XRDS_HAS_RDMA_DEST);
}

/* Sums of the same words, of 16 or 32 bits, or carried in another way */
static void payload_sums(void)
{
	__u32 sum32 = 0, words[64], i, k;
	__u16 sum16;

	CHECK(xrds_wire_csum_same(0, 0));
	CHECK(xrds_wire_csum_same(0xffffffff, 0xffff));
	CHECK(xrds_wire_csum_same(0xffff, 0));
	CHECK(xrds_wire_csum_same(0x00010000, 1));
	CHECK(!xrds_wire_csum_same(0x00010000, 2));
	for (k = 0; k < 1000; k++) {
		__u64 wide = 0, narrow = 0;

		for (i = 0; i < ARRAY_SIZE(words); i++) {
			words[i] = unit_random();
			wide += words[i];
			narrow += (words[i] & 0xffff) + (words[i] >> 16);
		}
		while (wide >> 32)
			wide = (wide & 0xffffffff) + (wide >> 32);
		while (narrow >> 16)
			narrow = (narrow & 0xffff) + (narrow >> 16);
		sum32 = wide;
		sum16 = narrow;
		CHECK(xrds_wire_csum_same(sum32, sum16));
		CHECK(xrds_wire_csum_same(sum16, sum16));
		/* one bit of the payload */
		i = 1U << unit_below(16);
		CHECK(!xrds_wire_csum_same(sum32 ^ i, sum16));
	}
}

static void ack_rules(void)
{
	struct xrds_wire_msg msg = { .ack = 3, .credit = 100 };

	CHECK(!unit_try(&msg, 0, XRDS_VER_XRDS));
	msg.flags = XRDS_F_ACK_REQUIRED;
	CHECK(unit_try(&msg, 0, XRDS_VER_XRDS) == XRDS_WIRE_FLAGS);
	CHECK(!unit_try(&msg, 0, XRDS_VER_4_1));
	msg.flags = 0;
	msg.tag = 1;
	CHECK(unit_try(&msg, 0, XRDS_VER_XRDS) == XRDS_WIRE_TAG);
	CHECK(!unit_try(&msg, 0, XRDS_VER_4_1));
	msg.tag = 0;
	msg.frag = 1;
	CHECK(unit_try(&msg, 0, XRDS_VER_XRDS) == XRDS_WIRE_FRAG);
	CHECK(!unit_try(&msg, 0, XRDS_VER_4_1));
	msg.frag = 0;
	msg.has = XRDS_HAS_GEN_NUM;
	CHECK(unit_try(&msg, 0, XRDS_VER_XRDS) == XRDS_WIRE_EXT);
	CHECK(!unit_try(&msg, 0, XRDS_VER_4_1));
}

static void flags_xrds(void)
{
	int flags;

	for (flags = 0; flags < 256; flags++) {
		struct xrds_wire_msg msg = data_msg;
		int want = XRDS_WIRE_OK;

		msg.flags = flags;
		if (flags & ~0x3e)
			want = XRDS_WIRE_FLAGS;
		CHECK((unit_try(&msg, 64, XRDS_VER_XRDS) == want) ||
		      (flags & (XRDS_F_CONTROL | XRDS_F_EOS)));

		msg = eos_msg;
		msg.flags = flags | XRDS_F_EOS;
		want = XRDS_WIRE_OK;
		if (flags & ~(XRDS_F_EOS | 0x0e))
			want = XRDS_WIRE_FLAGS;
		CHECK(unit_try(&msg, 0, XRDS_VER_XRDS) == want);

		msg = keepalive_msg;
		msg.flags = flags | XRDS_F_CONTROL;
		want = XRDS_WIRE_OK;
		if (flags & ~(XRDS_F_CONTROL | 0x02))
			want = XRDS_WIRE_FLAGS;
		CHECK(unit_try(&msg, 0, XRDS_VER_XRDS) == want);
	}
}

/* The flag is for messages from a socket to a socket. */
static void resume_rules(void)
{
	struct xrds_wire_msg msg = data_msg;

	msg.flags = XRDS_F_RESUME | XRDS_F_RETRANSMITTED;
	CHECK(!unit_try(&msg, 64, XRDS_VER_XRDS));
	CHECK(TRY_WITH(msg, dport, 0, 64, XRDS_VER_XRDS) == XRDS_WIRE_FLAGS);
	CHECK(TRY_WITH(msg, sport, 0, 64, XRDS_VER_XRDS) == XRDS_WIRE_FLAGS);
	/* only the last fragment of a tagged message has a number */
	CHECK(!TRY_WITH(msg, seq, 0, 64, XRDS_VER_XRDS));
	msg.tag = 0;
	CHECK(TRY_WITH(msg, seq, 0, 64, XRDS_VER_XRDS) == XRDS_WIRE_SEQ);
	/* a message behind an op */
	CHECK(!TRY_WITH(silent_msg, flags, XRDS_F_RESUME, 0, XRDS_VER_XRDS));
	CHECK(!TRY_WITH(eos_msg, flags, XRDS_F_EOS | XRDS_F_RESUME, 0,
			XRDS_VER_XRDS));

	/* an acknowledgment, a pong; with an extension it is no heartbeat */
	memset(&msg, 0, sizeof(msg));
	msg.flags = XRDS_F_RESUME;
	msg.has = XRDS_HAS_GEN_NUM;
	CHECK(unit_try(&msg, 0, XRDS_VER_XRDS) == XRDS_WIRE_FLAGS);
	msg.seq = 1;
	msg.dport = 1;
	CHECK(unit_try(&msg, 0, XRDS_VER_XRDS) == XRDS_WIRE_FLAGS);
	/* a control message */
	msg = keepalive_msg;
	msg.flags |= XRDS_F_RESUME;
	CHECK(unit_try(&msg, 0, XRDS_VER_XRDS) == XRDS_WIRE_FLAGS);
}

static void credits(void)
{
	struct xrds_wire_msg msg = data_msg;
	int credit;

	for (credit = 0; credit < 256; credit++) {
		msg.credit = credit;
		CHECK(unit_try(&msg, 64, XRDS_VER_XRDS) ==
		      (credit > 127 ? XRDS_WIRE_CREDIT : XRDS_WIRE_OK));
		CHECK(!unit_try(&msg, 64, XRDS_VER_3_1));
	}
}

static void control_rules(void)
{
	static const __u32 lens[] = { 0, 48, 4, 8192, 0, 0, 0, 16 };
	struct xrds_wire_msg msg;
	__u32 type, len;

	for (type = 0; type < 65536; type++) {
		msg = keepalive_msg;
		msg.dport = type;
		if (type < XRDS_CTL_HELLO || type > XRDS_CTL_REFUSED) {
			CHECK(unit_try(&msg, 0, XRDS_VER_XRDS) ==
			      XRDS_WIRE_CTL_TYPE);
			continue;
		}
		for (len = 0; len < 10000; len++) {
			int valid = len == lens[type];

			if (type == XRDS_CTL_CONG)
				valid = len >= 4 && len <= 4 + 4 * 512;
			if (type == XRDS_CTL_REFUSED)
				valid = len && len <= 208 && !(len % 16);
			msg.len = len;
			CHECK(unit_try(&msg, len, XRDS_VER_XRDS) ==
			      (valid ? XRDS_WIRE_OK : XRDS_WIRE_CTL_LEN));
		}
		msg.len = lens[type];
		CHECK(unit_try(&msg, msg.len + 1, XRDS_VER_XRDS) ==
		      XRDS_WIRE_CTL_LEN);
	}

	CHECK(TRY_WITH(keepalive_msg, sport, 1, 0, XRDS_VER_XRDS) ==
	      XRDS_WIRE_PORT);
	CHECK(TRY_WITH(keepalive_msg, seq, 1, 0, XRDS_VER_XRDS) ==
	      XRDS_WIRE_SEQ);
	CHECK(TRY_WITH(keepalive_msg, tag, 1, 0, XRDS_VER_XRDS) ==
	      XRDS_WIRE_TAG);
	CHECK(TRY_WITH(keepalive_msg, frag, 1, 0, XRDS_VER_XRDS) ==
	      XRDS_WIRE_FRAG);
	msg = keepalive_msg;
	msg.has = XRDS_HAS_RDMA;
	CHECK(unit_try(&msg, 0, XRDS_VER_XRDS) == XRDS_WIRE_EXT);
	msg.has = XRDS_HAS_EOS;
	CHECK(unit_try(&msg, 0, XRDS_VER_XRDS) == XRDS_WIRE_EXT);
}

static void eos_rules(void)
{
	struct xrds_wire_msg msg = eos_msg;

	for (msg.eos_reason = 0; msg.eos_reason < 5; msg.eos_reason++)
		CHECK(unit_try(&msg, 0, XRDS_VER_XRDS) ==
		      (msg.eos_reason > 2 ? XRDS_WIRE_EXT : XRDS_WIRE_OK));
	CHECK(TRY_WITH(eos_msg, len, 1, 0, XRDS_VER_XRDS) == XRDS_WIRE_LEN);
	CHECK(TRY_WITH(eos_msg, seq, 0, 0, XRDS_VER_XRDS) == XRDS_WIRE_SEQ);
	CHECK(TRY_WITH(eos_msg, sport, 0, 0, XRDS_VER_XRDS) == XRDS_WIRE_PORT);
	CHECK(TRY_WITH(eos_msg, dport, 0, 0, XRDS_VER_XRDS) == XRDS_WIRE_PORT);
	msg = eos_msg;
	msg.has = 0;
	CHECK(unit_try(&msg, 0, XRDS_VER_XRDS) == XRDS_WIRE_EXT);
	msg.has = XRDS_HAS_EOS | XRDS_HAS_NPATHS;
	CHECK(unit_try(&msg, 0, XRDS_VER_XRDS) == XRDS_WIRE_EXT);
	/* the extension without the flag */
	CHECK(TRY_WITH(eos_msg, flags, 0, 0, XRDS_VER_XRDS) == XRDS_WIRE_EXT);
	/* toward legacy peers neither means anything */
	CHECK(!unit_try(&eos_msg, 0, XRDS_VER_4_1));
}

static void silent_rules(void)
{
	struct xrds_wire_msg msg = silent_msg;

	CHECK(!unit_try(&msg, 0, XRDS_VER_XRDS));
	msg.len = 1;
	CHECK(unit_try(&msg, 1, XRDS_VER_XRDS) == XRDS_WIRE_EXT);
	/* to any port */
	CHECK(!TRY_WITH(silent_msg, dport, 0, 0, XRDS_VER_XRDS));
	/* a pong, an acknowledgment, a control message */
	msg = silent_msg;
	msg.sport = 0;
	CHECK(unit_try(&msg, 0, XRDS_VER_XRDS) == XRDS_WIRE_EXT);
	msg.seq = 0;
	msg.dport = 0;
	CHECK(unit_try(&msg, 0, XRDS_VER_XRDS) == XRDS_WIRE_EXT);
	CHECK(TRY_WITH(keepalive_msg, has, XRDS_HAS_SILENT, 0, XRDS_VER_XRDS) ==
	      XRDS_WIRE_EXT);
	/* legacy peers do not know it */
	CHECK(!unit_try(&silent_msg, 0, XRDS_VER_4_1));
}

/* One extension of every type at every place in the list. */
static void ext_places(void)
{
	static const int bytes[256] = {
		[1] = 5, [2] = 5, [3] = 9, [4] = 9, [5] = 3, [6] = 5, [8] = 2,
		[16] = 5, [17] = 1,
	};
	struct xrds_wire_msg out;
	int type, pos, i;

	for (type = 1; type < 256; type++) {
		for (pos = 0; pos < 16; pos += 5) {
			int fits = pos + bytes[type] <= 16;
			__u8 hdr[XRDS_WIRE_HDR_BYTES];
			int legacy, strict;

			/* fill up with extensions of four bytes */
			memcpy(hdr, data_bytes, sizeof(hdr));
			for (i = 0; i < pos; i += 5)
				hdr[32 + i] = XRDS_EXT_VERSION;
			hdr[32 + pos] = type;
			unit_seal(hdr);
			legacy = unit_decode(&out, hdr, 48, XRDS_VER_4_1);
			strict = unit_decode(&out, hdr, 48, XRDS_VER_XRDS);
			if (!bytes[type]) {
				CHECK(!legacy);
				CHECK(strict == XRDS_WIRE_EXT);
			} else if (type == XRDS_EXT_EOS) {
				CHECK(!legacy);
				CHECK(strict == XRDS_WIRE_EXT);
			} else if (type == XRDS_EXT_SILENT) {
				/* and the message has a payload */
				CHECK(!legacy);
				CHECK(strict == XRDS_WIRE_EXT);
			} else if (fits) {
				CHECK(!legacy);
				CHECK(!strict);
			} else {
				/* as mainline, which stops there */
				CHECK(!legacy);
				CHECK(strict == XRDS_WIRE_EXT);
			}
		}
	}
}

static void ext_lists(void)
{
	struct xrds_wire_msg out;
	__u8 hdr[XRDS_WIRE_HDR_BYTES];

	/* full to the last byte, without an end */
	memcpy(hdr, data_bytes, sizeof(hdr));
	memcpy(hdr + 32, "\x02\x01\x02\x03\x04\x04\x00\x00\x10\x00\x02\0\0\0"
	       "\x08\x07", 16);
	unit_seal(hdr);
	CHECK(!unit_decode(&out, hdr, 48, XRDS_VER_XRDS));
	CHECK(out.has == (XRDS_HAS_RDMA | XRDS_HAS_RDMA_BYTES |
			  XRDS_HAS_SPORT_IDX));
	CHECK(out.rdma_rkey == 0x01020304 && out.rdma_bytes == 4096);
	CHECK(out.rdma_dir == XRDS_RDMA_DIR_READ && out.sport_idx == 7);

	/* an unknown type hides what is behind it from legacy modes */
	memset(hdr + 32, 0, 16);
	memcpy(hdr + 32, "\x08\x07\x09\x01\x08\x09", 6);
	unit_seal(hdr);
	CHECK(!unit_decode(&out, hdr, 48, XRDS_VER_4_0));
	CHECK(out.has == XRDS_HAS_SPORT_IDX && out.sport_idx == 7);
	CHECK(unit_decode(&out, hdr, 48, XRDS_VER_XRDS) == XRDS_WIRE_EXT);

	/* repeated: the last one counts, or refused */
	memset(hdr + 32, 0, 16);
	memcpy(hdr + 32, "\x08\x07\x08\x09", 4);
	unit_seal(hdr);
	CHECK(!unit_decode(&out, hdr, 48, XRDS_VER_4_0));
	CHECK(out.sport_idx == 9);
	CHECK(unit_decode(&out, hdr, 48, XRDS_VER_XRDS) == XRDS_WIRE_EXT);

	/* nothing is read behind the end of the list */
	memset(hdr + 32, 0xff, 16);
	hdr[32] = 0;
	unit_seal(hdr);
	CHECK(!unit_decode(&out, hdr, 48, XRDS_VER_XRDS));
	CHECK(!out.has);
}

/* For any set that is asked for, a valid list is written. */
static void ext_space(void)
{
	int has;

	for (has = 0; has < 256; has++) {
		struct xrds_wire_msg msg = data_msg;
		struct xrds_wire_msg out;
		struct xrds_hdr hdr;

		msg.len = 0;
		msg.has = has & ~XRDS_HAS_EOS;
		xrds_wire_hdr_encode(&hdr, &msg);
		CHECK(!unit_decode(&out, &hdr, sizeof(hdr), XRDS_VER_XRDS));
		CHECK(!(out.has & ~msg.has));
		CHECK(unit_ext_bytes(out.has) <= XRDS_WIRE_EXT_BYTES);
		if (unit_ext_bytes(msg.has) <= XRDS_WIRE_EXT_BYTES)
			CHECK(out.has == msg.has);
	}
}

/* Random headers with a good checksum: an accepted header keeps the rules. */
static void random_headers(void)
{
	int i, j, v;

	for (i = 0; i < 200000; i++) {
		struct xrds_wire_msg msg, again;
		__u8 buf[XRDS_WIRE_HDR_BYTES];
		struct xrds_hdr hdr;

		for (j = 0; j < (int)sizeof(buf); j++)
			buf[j] = unit_below(3) ? 0 : unit_random() >> 8;
		if (unit_below(2))
			buf[24] &= 0xe7;
		unit_seal(buf);
		v = versions[unit_below(NR_VERSIONS)];
		if (unit_decode(&msg, buf, sizeof(buf), v))
			continue;
		CHECK(msg.len <= XRDS_WIRE_MAX_MSG_BYTES);
		CHECK(msg.credit <= XRDS_WIRE_MAX_CREDIT);
		CHECK(v == XRDS_VER_XRDS || !(msg.tag | msg.frag | msg.credit));
		CHECK(msg.sport || !msg.len || msg.kind == XRDS_KIND_CTL ||
		      msg.kind == XRDS_KIND_CONG_MAP ||
		      msg.kind == XRDS_KIND_VOID ||
		      (v != XRDS_VER_XRDS && msg.seq));
		xrds_wire_hdr_encode(&hdr, &msg);
		CHECK(!unit_decode(&again, &hdr, sizeof(hdr), v));
		CHECK(unit_same(&msg, &again));
	}
}

const struct unit_test unit_hdr_tests[] = {
	{ layout, "header fields are where the specification has them" },
	{ known_answers, "headers written by hand" },
	{ roundtrip, "an encoded header is decoded, in every version" },
	{ padding, "every byte of a header is written" },
	{ checksum_reference, "checksum agrees with a second one" },
	{ checksum_errors, "every flipped bit is found" },
	{ checksum_zero, "checksum 0 is for legacy modes only" },
	{ too_short, "less than a header is refused" },
	{ lengths, "message length ends at 1 MiB" },
	{ kinds, "ports, length and sequence number make the kind" },
	{ heartbeat, "heartbeats of Oracle's kernels, and the answer" },
	{ payload_csum, "payload checksums of Oracle's kernels" },
	{ payload_sums, "which payload checksums are the same" },
	{ ack_rules, "an acknowledgment carries nothing else" },
	{ flags_xrds, "flags in XRDS mode" },
	{ resume_rules, "messages that follow a refusal" },
	{ credits, "credits of one header" },
	{ control_rules, "control messages" },
	{ eos_rules, "end of stream" },
	{ silent_rules, "messages that are not delivered" },
	{ ext_places, "every extension type at every place" },
	{ ext_lists, "lists of extensions" },
	{ ext_space, "extensions never outgrow the header" },
	{ random_headers, "random headers" },
	{ }
};
