// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz target of the wire format (libFuzzer).
 *
 * The input goes to every decoder as it is, and a second time with the checksum
 * of the header made right, which a fuzzer cannot guess. After that it is read
 * as a stream of fragments: two bytes of payload length and a header each, and
 * as a SEND with several messages. A message that a decoder accepts must keep
 * the invariants, and so must a short header that is made of it; the sanitizers
 * watch that nothing beyond the input is read.
 */
#include "unit.h"

#define RECORD_BYTES	(2 + XRDS_WIRE_HDR_BYTES)

static const int versions[] = {
	XRDS_VER_3_1, XRDS_VER_4_0, XRDS_VER_4_1, XRDS_VER_XRDS
};

int LLVMFuzzerTestOneInput(const __u8 *data, size_t size);

static void must(int cond)
{
	if (!cond)
		__builtin_trap();
}

/* Each form of a sum of 32 bits is the same, and no other is. */
static void fuzz_csum(__u32 csum)
{
	__u32 sum = (csum & 0xffff) + (csum >> 16);

	sum = (sum & 0xffff) + (sum >> 16);
	must(xrds_wire_csum_same(csum, sum));
	must(!xrds_wire_csum_same(csum, sum ^ 1));
}

static void fuzz_header(const __u8 *data, __u32 size)
{
	int err, v, hello = xrds_wire_hdr_is_hello(data, size);
	struct xrds_wire_msg msg, again;
	struct xrds_hdr hdr;

	for (v = 0; v < 4; v++) {
		int ver = versions[v];

		err = xrds_wire_hdr_decode(&msg, data, size, ver);
		must(err >= 0 && err < XRDS_WIRE_NR_ERRORS);
		must(*xrds_wire_strerror(err));
		must(ver != XRDS_VER_XRDS || !hello ||
		     (!err && msg.kind == XRDS_KIND_CTL));
		if (err)
			continue;
		fuzz_csum(msg.csum);
		must(size >= XRDS_WIRE_HDR_BYTES);
		must(msg.len <= XRDS_WIRE_MAX_MSG_BYTES);
		must(msg.credit <= XRDS_WIRE_MAX_CREDIT);
		must(msg.kind <= XRDS_KIND_VOID);
		must(ver == XRDS_VER_XRDS ||
		     !(msg.tag || msg.frag || msg.credit));
		must(ver == XRDS_VER_XRDS || !(msg.flags & ~0x3f));
		/* heartbeats have no ports */
		must(ver == XRDS_VER_XRDS || !(msg.flags & 0x18) ||
		     !(msg.sport || msg.dport));
		must(msg.kind != XRDS_KIND_CTL ||
		     msg.len == size - XRDS_WIRE_HDR_BYTES);
		must(unit_ext_bytes(msg.has) <= XRDS_WIRE_EXT_BYTES);
		must(ver != XRDS_VER_XRDS || !(msg.flags & XRDS_F_RESUME) ||
		     msg.kind == XRDS_KIND_DATA || msg.kind == XRDS_KIND_EOS);

		xrds_wire_hdr_encode(&hdr, &msg);
		must(!xrds_wire_hdr_decode(&again, &hdr, size, ver));
		must(unit_same(&msg, &again));
	}
}

static void fuzz_stream(const __u8 *data, __u32 size, int ver, __u32 max)
{
	struct xrds_wire_reasm r = { };
	__u8 hdr[XRDS_WIRE_HDR_BYTES];
	struct xrds_wire_msg msg;
	__u32 at;

	for (at = 0; at + RECORD_BYTES <= size; at += RECORD_BYTES) {
		__u32 payload = data[at] << 8 | data[at + 1];
		int err, done = -1;

		memcpy(hdr, data + at + 2, sizeof(hdr));
		unit_seal(hdr);
		if (xrds_wire_hdr_decode(&msg, hdr, sizeof(hdr) + payload, ver))
			continue;
		if (msg.kind == XRDS_KIND_ACK || msg.kind == XRDS_KIND_CTL)
			continue;
		err = xrds_wire_reasm_add(&r, &msg, payload, max, ver, &done);
		must(err == XRDS_WIRE_OK || err == XRDS_WIRE_FRAG ||
		     err == XRDS_WIRE_FRAG_LEN || err == XRDS_WIRE_FRAG_HDR ||
		     (err == XRDS_WIRE_SEQ && msg.tag));
		must(done == 0 || (done == 1 && !err));
		must(done == 0 || r.got == msg.len);
		must(done == 0 || r.first.seq ||
		     r.first.kind == XRDS_KIND_CONG_MAP ||
		     r.first.kind == XRDS_KIND_VOID);
		must(err || r.take <= payload);
		must(err ? !r.busy : r.busy == !done);
		must(!r.busy || r.got < r.first.len);
		must(!r.busy || r.got >= r.next * 4096U);
		must(err || payload <= max || ver != XRDS_VER_XRDS);
		must(err || payload <= 8192 || ver == XRDS_VER_XRDS);
	}
}

/* A message that fits a short header comes out of it as it was, and the contexts of
 * both ends stay the same.
 */
static void fuzz_short_made(const struct xrds_wire_context *ctx,
			    struct xrds_wire_msg msg, int last, __u32 bytes)
{
	struct xrds_wire_context tx = *ctx, rx = *ctx;
	struct xrds_wire_msg got;
	__u32 imm;

	msg.credit %= XRDS_WIRE_SHORT_CREDIT + 1;
	if (!xrds_wire_short_fits(ctx, &msg, last))
		return;
	imm = xrds_wire_short_encode(&tx, &msg, last, bytes);
	must(!xrds_wire_short_decode(&got, &rx, imm, bytes));
	must(!memcmp(&tx, &rx, sizeof(tx)));
	must(got.seq == (last ? msg.seq : 0));
	must(got.ack == (msg.ack > ctx->ack ? msg.ack : ctx->ack));
	must(got.credit == msg.credit && got.tag == msg.tag);
	must(got.flags == msg.flags);
	must(!msg.frag || got.frag == msg.frag % XRDS_WIRE_SLOTS);
	must(msg.frag || (got.sport == msg.sport && got.dport == msg.dport));
}

/* The message of a full header, before it is noted, and the one behind it */
static void fuzz_short_next(struct xrds_wire_context *ctx,
			    struct xrds_wire_msg msg, __u32 bytes)
{
	fuzz_short_made(ctx, msg, 1, bytes);
	xrds_wire_context_note(ctx, &msg);
	msg.seq = ctx->seq + 1;
	msg.ack = ctx->ack + bytes % 4096;
	fuzz_short_made(ctx, msg, 1, bytes);
	fuzz_short_made(ctx, msg, 0, bytes);
}

/* The input as a stream of SENDs with short and full headers: each has two bytes
 * of length, and a header or, if the length is odd, four bytes of immediate data.
 */
static void fuzz_short(const __u8 *data, __u32 size, __u32 max)
{
	struct xrds_wire_reasm r[2] = { };
	struct xrds_wire_context ctx = { };
	__u8 hdr[XRDS_WIRE_HDR_BYTES];
	struct xrds_wire_msg msg;
	__u32 at = 0;

	while (at + RECORD_BYTES <= size) {
		__u32 payload = data[at] << 8 | data[at + 1];
		int err, done = -1;

		memcpy(hdr, data + at + 2, sizeof(hdr));
		at += payload % 2 ? 6 : RECORD_BYTES;
		if (payload % 2) {
			__u32 imm = (__u32)hdr[0] << 24 | hdr[1] << 16 |
				    hdr[2] << 8 | hdr[3];
			__u64 seq = ctx.seq, ack = ctx.ack;

			err = xrds_wire_short_decode(&msg, &ctx, imm, payload);
			must(err == ((imm >> 16 ^ (ctx.seq + (payload >> 8) +
						   (payload >> 12))) & 0x0f ?
				     XRDS_WIRE_ORDER : XRDS_WIRE_OK));
			must(msg.ack - ack <= 0x0fff && msg.ack == ctx.ack);
			must(ctx.seq - seq == (msg.brief == XRDS_BRIEF_LAST));
			must(msg.brief && msg.kind == XRDS_KIND_DATA);
			must(msg.credit <= XRDS_WIRE_MAX_CREDIT && msg.tag < 2);
			must(!(msg.flags & ~XRDS_F_ACK_REQUIRED) && !msg.has);
		} else {
			unit_seal(hdr);
			if (xrds_wire_hdr_decode(&msg, hdr,
						 sizeof(hdr) + payload,
						 XRDS_VER_XRDS))
				continue;
			fuzz_short_next(&ctx, msg, payload);
			if (msg.kind == XRDS_KIND_ACK ||
			    msg.kind == XRDS_KIND_CTL || msg.tag > 1)
				continue;
		}
		err = xrds_wire_reasm_add(&r[msg.tag], &msg, payload, max,
					  XRDS_VER_XRDS, &done);
		must(done == 0 || (done == 1 && !err));
		must(err || r[msg.tag].take == payload);
		must(err || payload <= max + XRDS_WIRE_HDR_BYTES);
		must(err ? !r[msg.tag].busy : r[msg.tag].busy == !done);
		if (err)
			continue;
		must(r[msg.tag].got <= XRDS_WIRE_MAX_MSG_BYTES);
		must(payload || !msg.frag);
		must(done || r[msg.tag].got >= r[msg.tag].next * 4096U);
		must(!done || r[msg.tag].got == r[msg.tag].first.len);
		must(!done || r[msg.tag].first.seq || msg.brief);
		must(r[msg.tag].first.kind != XRDS_KIND_DATA ||
		     r[msg.tag].first.dport);
	}
}

/* The input as a SEND, of which every header that is reached may be made right:
 * one message after the other, none of which reaches beyond the end.
 */
static void fuzz_bundle(const __u8 *data, __u32 size, int fix)
{
	struct xrds_wire_bundle b;
	struct xrds_wire_msg msg;
	__u8 *copy = malloc(size);
	__u32 end = 0;
	int err;

	memcpy(copy, data, size);
	if (fix && size >= XRDS_WIRE_HDR_BYTES)
		unit_seal(copy);
	err = xrds_wire_hdr_decode(&msg, copy, size, XRDS_VER_XRDS);
	if (!err)
		err = xrds_wire_bundle_first(&b, &msg, size);
	while (!err) {
		must(b.bytes == size && size <= XRDS_WIRE_MAX_BUNDLE_BYTES);
		must(b.payload == end + XRDS_WIRE_HDR_BYTES);
		must(b.next == b.payload + msg.len && b.next <= size);
		must(b.nr && b.nr <= XRDS_WIRE_MAX_BUNDLE_MSGS);
		must(!msg.frag && !(msg.has & (XRDS_HAS_RDMA | XRDS_HAS_SILENT)));
		must(msg.seq && msg.kind != XRDS_KIND_ACK &&
		     msg.kind != XRDS_KIND_CTL);
		must(b.nr == 1 || !(msg.ack || msg.credit));
		must(xrds_wire_bundled(&msg, size - b.payload) ==
		     (b.next < size));
		end = b.next;
		if (end == size)
			break;
		if (fix && size - end >= XRDS_WIRE_HDR_BYTES)
			unit_seal(copy + end);
		err = xrds_wire_bundle_next(&b, &msg, copy);
	}
	must(err >= 0 && err < XRDS_WIRE_NR_ERRORS);
	free(copy);
}

static void fuzz_hello(const __u8 *data, __u32 size)
{
	struct xrds_wire_hello hello;
	__u8 buf[XRDS_WIRE_HELLO_BYTES];

	if (xrds_wire_hello_decode(&hello, data, size))
		return;
	must(size == XRDS_WIRE_HELLO_BYTES);
	must(hello.frag_bytes >= 16384 && hello.frag_bytes <= 65536);
	must(hello.credits && hello.credits <= 32767);
	must(hello.tags && hello.node && hello.revision >= 3);
	xrds_wire_hello_encode(buf, &hello);
	must(hello.revision >= XRDS_REVISION ||
	     !(hello.flags & XRDS_HELLO_SHORT));
	must(hello.revision > XRDS_REVISION ||
	     !memcmp(buf, data, size));
}

static void fuzz_cong(const __u8 *data, __u32 size)
{
	struct xrds_wire_cong cong;
	__u8 *buf;
	__u32 i;

	if (xrds_wire_cong_decode(&cong, data, size))
		return;
	must(size == xrds_wire_cong_bytes(cong.count));
	must(cong.count <= XRDS_WIRE_CONG_MAX_ENTRIES);
	buf = malloc(size);
	xrds_wire_cong_begin(buf, cong.full, cong.count);
	for (i = 0; i < cong.count; i++) {
		__u8 congested;
		__u16 port;

		xrds_wire_cong_entry(&cong, i, &port, &congested);
		must(port && congested <= 1);
		xrds_wire_cong_put(buf, i, port, congested);
	}
	must(!memcmp(buf, data, size));
	free(buf);
}

static void fuzz_refused(const __u8 *data, __u32 size)
{
	int i, count = xrds_wire_refused_count(size);
	struct xrds_wire_refused entry;
	__u8 buf[XRDS_WIRE_REFUSED_BYTES];

	must(count == -XRDS_WIRE_REFUSED ||
	     (count > 0 && count <= XRDS_WIRE_REFUSED_MAX_ENTRIES));
	for (i = 0; i < count; i++) {
		if (xrds_wire_refused_entry(data, i, &entry))
			continue;
		must(entry.seq && entry.sport && entry.dport);
		xrds_wire_refused_put(buf, 0, &entry);
		must(!memcmp(buf, data + i * sizeof(buf), sizeof(buf)));
	}
}

/* Ports that are congested, in a map */
static void fuzz_map(const __u8 *data, __u32 size)
{
	__u8 *map = calloc(1, XRDS_WIRE_CONG_MAP_BYTES);
	__u32 i, port;

	for (i = 0; i + 1 < size && i < 64; i += 2) {
		port = data[i] << 8 | data[i + 1];
		xrds_wire_cong_map_set(map, port);
		must(xrds_wire_cong_map_test(map, port) == 1);
		must(map[port / 8]);
	}
	free(map);
}

static void fuzz_reject(const __u8 *data, __u32 size)
{
	__u8 buf[XRDS_WIRE_REJECT_BYTES];
	int reason = xrds_wire_reject_decode(data, size);

	must(xrds_wire_reject_encode(buf, reason) == sizeof(buf));
	must((int)xrds_wire_reject_decode(buf, sizeof(buf)) == reason);
}

static void fuzz_priv(const __u8 *data, __u32 size, int v6)
{
	struct xrds_wire_priv priv, again;
	__u8 buf[XRDS_WIRE_PRIV_V6_BYTES];
	__u32 bytes;
	int ver, v;

	if (xrds_wire_priv_decode(&priv, data, size, v6))
		return;
	bytes = xrds_wire_priv_encode(buf, &priv, v6);
	must(bytes <= size && bytes <= sizeof(buf));
	must(!xrds_wire_priv_decode(&again, buf, bytes, v6));
	must(!memcmp(&priv.saddr, &again.saddr, 16));
	must(!memcmp(&priv.daddr, &again.daddr, 16));
	must(priv.ack == again.ack && priv.mask == again.mask);
	ver = xrds_wire_priv_version(&priv, XRDS_WIRE_MASK);
	must(!ver || ver == XRDS_VER_3_1 || ver == XRDS_VER_4_0 ||
	     ver == XRDS_VER_4_1 || ver == XRDS_VER_XRDS);
	ver = xrds_wire_priv_version_chosen(&priv, XRDS_WIRE_MASK);
	must(!ver || ver == XRDS_VER(priv.major, priv.minor));
	for (v = 0; v < 4; v++) {
		bytes = xrds_wire_priv_legacy_payload(&priv, versions[v]);
		must(bytes == XRDS_WIRE_CLASSIC_PAYLOAD ||
		     (bytes == XRDS_WIRE_CLASSIC_MAX_PAYLOAD &&
		      versions[v] == XRDS_VER_4_1));
	}
}

int LLVMFuzzerTestOneInput(const __u8 *data, size_t size)
{
	__u8 *copy;
	int v;

	must(*xrds_wire_strerror(XRDS_WIRE_NR_ERRORS));
	fuzz_header(data, size);
	if (size >= XRDS_WIRE_HDR_BYTES) {
		copy = malloc(size);
		memcpy(copy, data, size);
		unit_seal(copy);
		fuzz_header(copy, size);
		free(copy);
	}
	for (v = 0; v < 4; v++) {
		fuzz_stream(data, size, versions[v], 16384 - 48);
		fuzz_stream(data, size, versions[v], 65536 - 48);
	}
	fuzz_short(data, size, 16384 - 48);
	fuzz_short(data, size, 65536 - 48);
	fuzz_bundle(data, size, 0);
	fuzz_bundle(data, size, 1);
	fuzz_hello(data, size);
	fuzz_cong(data, size);
	fuzz_refused(data, size);
	fuzz_map(data, size);
	fuzz_reject(data, size);
	fuzz_priv(data, size, 0);
	fuzz_priv(data, size, 1);
	return 0;
}
