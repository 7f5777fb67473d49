// SPDX-License-Identifier: GPL-2.0-only
/*
 * The packets of the hostile peer.
 *
 * A packet begins as one of those that the wire format knows, and then some of
 * its fields change. The decoder and a small model of a connection's state tell
 * the right reaction of the other end: a packet is harmless, and the connection
 * stays, or it is fatal. A packet is not sent if the reaction depends on how far
 * the other end is.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/string.h>

#include "hostile.h"

enum {
	TRIES		= 200,
	/* acknowledgments from there on are of the future for sure */
	FUTURE_SHIFT	= 60,
	/* and numbers up to there are not: a legacy peer counts from its clock */
	PAST_SHIFT	= 49,
	MAX_CREDITS	= 32767,
	/* credits that the other end may have used meanwhile */
	CREDIT_SLACK	= 100,
	FRAG_BYTES	= 16 << 10,
	NODE_SECONDS	= 10,
	NODE_FIRST	= 1 << 30,
	NOT_SURE	= XRDS_WIRE_NR_ERRORS,
};

u32 hostile_random(struct hostile_gen *gen, u32 below)
{
	return prandom_u32_state(&gen->rnd) % below;
}

void hostile_fill(struct hostile_gen *gen, void *buf, u32 bytes)
{
	prandom_bytes_state(&gen->rnd, buf, bytes);
}

static u64 random64(struct hostile_gen *gen)
{
	return (u64)prandom_u32_state(&gen->rnd) << 32 |
	       prandom_u32_state(&gen->rnd);
}

/* A number at the edges of the valid range, or anywhere */
static u64 edge(struct hostile_gen *gen, u64 valid)
{
	switch (hostile_random(gen, 8)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return valid - 1;
	case 3:
		return valid + 1;
	case 4:
		return U64_MAX;
	case 5:
		return 1ULL << hostile_random(gen, 64);
	case 6:
		return (1ULL << FUTURE_SHIFT) + random64(gen) / 16;
	default:
		return random64(gen);
	}
}

void hostile_gen_seal(struct xrds_hdr *hdr)
{
	const u8 *p = (const u8 *)hdr;
	u32 sum = 0, i;

	hdr->csum = 0;
	for (i = 0; i < sizeof(*hdr); i += 2)
		sum += p[i] << 8 | p[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	hdr->csum = cpu_to_be16(~sum);
}

/* --------------------------------------------------------- well formed */

static u32 make(void *buf, const struct xrds_wire_msg *wm, u32 payload)
{
	xrds_wire_hdr_encode(buf, wm);
	return XRDS_WIRE_HDR_BYTES + payload;
}

/* The number of the node, which is another one now and then */
u64 hostile_gen_node(void)
{
	return div_u64(get_jiffies_64(), NODE_SECONDS * HZ) + NODE_FIRST;
}

u32 hostile_gen_hello(struct hostile_gen *gen, void *buf)
{
	struct xrds_wire_msg wm = {
		.len	= XRDS_WIRE_HELLO_BYTES,
		.dport	= XRDS_CTL_HELLO,
		.flags	= XRDS_F_CONTROL,
	};
	struct xrds_wire_hello hello = {
		.revision	= XRDS_REVISION_FIRST + hostile_random(gen, 4),
		.flags		= hostile_random(gen, 16) &
				  (XRDS_HELLO_BUNDLES | XRDS_HELLO_SHORT),
		.frag_bytes	= FRAG_BYTES,
		.credits	= hostile_random(gen, 4) ? 500 : MAX_CREDITS,
		.tags		= 1 + hostile_random(gen, 9),
		.lane		= hostile_random(gen, 256),
		.epoch		= hostile_random(gen, 256),
		.node		= gen->node,
	};

	if (hello.revision < XRDS_REVISION_SHORT)
		hello.flags &= ~XRDS_HELLO_SHORT;
	xrds_wire_hello_encode(buf + XRDS_WIRE_HDR_BYTES, &hello);
	gen->granted = hello.credits;
	gen->bundles = hello.flags & XRDS_HELLO_BUNDLES;
	gen->brief = hello.flags & XRDS_HELLO_SHORT;
	return make(buf, &wm, wm.len);
}

/* A whole message */
u32 hostile_gen_data(struct hostile_gen *gen, void *buf, u32 len)
{
	struct xrds_wire_msg wm = {
		.seq	= ++gen->seq,
		.len	= len,
		.sport	= 4000 + hostile_random(gen, 8),
		.dport	= gen->port ?: 3000 + hostile_random(gen, 8),
	};

	return make(buf, &wm, len);
}

/* A message that the other end answers with one, once it sends messages */
u32 hostile_gen_ping(struct hostile_gen *gen, void *buf)
{
	struct xrds_wire_msg wm = {
		.seq	= ++gen->seq,
		.sport	= 4000,
	};

	return make(buf, &wm, 0);
}

/* All ports are congested. */
u32 hostile_gen_map(struct hostile_gen *gen, void *buf)
{
	struct xrds_wire_msg wm = {
		.len	= XRDS_WIRE_CONG_MAP_BYTES,
		.dport	= XRDS_CTL_CONG_MAP,
		.flags	= XRDS_F_CONTROL,
	};

	memset(buf + XRDS_WIRE_HDR_BYTES, 0xff, wm.len);
	return make(buf, &wm, wm.len);
}

/* As many ports as a list may have, of which some are congested */
u32 hostile_gen_list(struct hostile_gen *gen, void *buf)
{
	struct xrds_wire_msg wm = {
		.len	= xrds_wire_cong_bytes(XRDS_WIRE_CONG_MAX_ENTRIES),
		.dport	= XRDS_CTL_CONG,
		.flags	= XRDS_F_CONTROL,
	};
	u8 *payload = buf + XRDS_WIRE_HDR_BYTES;
	u16 i;

	xrds_wire_cong_begin(payload, 0, XRDS_WIRE_CONG_MAX_ENTRIES);
	for (i = 0; i < XRDS_WIRE_CONG_MAX_ENTRIES; i++)
		xrds_wire_cong_put(payload, i, 1 + i, hostile_random(gen, 2));
	return make(buf, &wm, wm.len);
}

/* Refused messages; now and then a field of one of them is not valid. */
static u32 make_refused(struct hostile_gen *gen, void *buf)
{
	u16 i, count = 1 + hostile_random(gen, XRDS_WIRE_REFUSED_MAX_ENTRIES);
	struct xrds_wire_msg wm = {
		.len	= count * XRDS_WIRE_REFUSED_BYTES,
		.dport	= XRDS_CTL_REFUSED,
		.flags	= XRDS_F_CONTROL,
	};
	u8 *payload = buf + XRDS_WIRE_HDR_BYTES;

	for (i = 0; i < count; i++) {
		struct xrds_wire_refused entry = {
			.seq	= 1 + hostile_random(gen, 100),
			.sport	= 1 + hostile_random(gen, 65535),
			.dport	= 1 + hostile_random(gen, 65535),
		};

		switch (hostile_random(gen, 32)) {
		case 0:
			entry.seq = 0;
			break;
		case 1:
			entry.sport = 0;
			break;
		case 2:
			entry.dport = 0;
			break;
		}
		xrds_wire_refused_put(payload, i, &entry);
	}
	/* the last bytes are reserved */
	if (!hostile_random(gen, 8))
		payload[wm.len - 1 - hostile_random(gen, 4)] = 1;
	return make(buf, &wm, wm.len);
}

static u32 make_ctl(struct hostile_gen *gen, void *buf)
{
	static const u8 usual[] = {
		XRDS_CTL_CONG, XRDS_CTL_KEEPALIVE, XRDS_CTL_REFUSED,
	};
	struct xrds_wire_msg wm = { .flags = XRDS_F_CONTROL };
	u8 *payload = buf + XRDS_WIRE_HDR_BYTES;
	u16 i, count = hostile_random(gen, 5);

	/* rarely the end, often what may come at any time */
	wm.dport = hostile_random(gen, 16) ?
		   usual[hostile_random(gen, ARRAY_SIZE(usual))] :
		   1 + hostile_random(gen, XRDS_CTL_REFUSED);
	switch (wm.dport) {
	case XRDS_CTL_HELLO:
		return hostile_gen_hello(gen, buf);
	case XRDS_CTL_CONG:
		if (!hostile_random(gen, 8))
			count = XRDS_WIRE_CONG_MAX_ENTRIES;
		xrds_wire_cong_begin(payload, hostile_random(gen, 2), count);
		for (i = 0; i < count; i++)
			xrds_wire_cong_put(payload, i,
					   1 + hostile_random(gen, 65535),
					   hostile_random(gen, 2));
		wm.len = xrds_wire_cong_bytes(count);
		break;
	case XRDS_CTL_CONG_MAP:
		return hostile_gen_map(gen, buf);
	case XRDS_CTL_REFUSED:
		return make_refused(gen, buf);
	case XRDS_CTL_KEEPALIVE:
		if (hostile_random(gen, 2))
			wm.flags |= XRDS_F_ACK_REQUIRED;
		break;
	}
	return make(buf, &wm, wm.len);
}

/* Is a message in mid-way? */
static bool frag_busy(const struct hostile_gen *gen)
{
	return gen->reasm[0].busy || gen->reasm[1].busy;
}

/* The first fragment of a message, or the next one after the last one sent with
 * its tag
 */
static u32 make_frag(struct hostile_gen *gen, void *buf)
{
	static const u32 lens[] = {
		4097, 8192, 12288, 20000, 65536, XRDS_WIRE_MAX_MSG_BYTES,
	};
	u16 tag = gen->ver == XRDS_VER_XRDS ? hostile_random(gen, HOSTILE_TAGS) :
					      0;
	const struct xrds_wire_reasm *reasm = &gen->reasm[tag];
	struct xrds_wire_msg wm;
	u32 rest;

	if (reasm->busy) {
		wm = reasm->first;
		wm.frag = reasm->next;
		rest = wm.len - reasm->got;
	} else {
		memset(&wm, 0, sizeof(wm));
		wm.seq = tag ? 0 : ++gen->seq;
		wm.len = lens[hostile_random(gen, ARRAY_SIZE(lens))];
		wm.sport = 4000;
		wm.dport = gen->port ?: 3000;
		wm.tag = tag;
		rest = wm.len;
	}
	if (tag && rest <= XRDS_WIRE_CLASSIC_PAYLOAD)
		wm.seq = ++gen->seq;
	return make(buf, &wm, min_t(u32, rest, XRDS_WIRE_CLASSIC_PAYLOAD));
}

/* A message for a bundle; now and then one that does not belong there. */
static u32 make_bundled(struct hostile_gen *gen, void *buf)
{
	static const u8 ops[] = {
		XRDS_HAS_RDMA, XRDS_HAS_RDMA_BYTES, XRDS_HAS_SILENT,
	};
	struct xrds_wire_msg wm = {
		.seq	= ++gen->seq,
		.len	= hostile_random(gen, 100),
		.sport	= 4000 + hostile_random(gen, 8),
		.dport	= gen->port ?: 3000 + hostile_random(gen, 8),
	};
	u32 payload = wm.len;

	switch (hostile_random(gen, 64)) {
	case 0:
		wm.frag = 1 + hostile_random(gen, 3);
		break;
	case 1:
		/* the first fragment of a large one, or bytes too many */
		wm.len = edge(gen, wm.len) & (2 * XRDS_WIRE_MAX_MSG_BYTES - 1);
		break;
	case 2:
		wm.len = 0;
		payload = 0;
		wm.has = ops[hostile_random(gen, ARRAY_SIZE(ops))];
		break;
	case 3:
		wm.credit = 1;
		break;
	case 4:
		memset(&wm, 0, sizeof(wm));
		payload = 0;
		if (hostile_random(gen, 2))
			break;
		wm.flags = XRDS_F_CONTROL;
		wm.dport = XRDS_CTL_KEEPALIVE;
		break;
	case 5:
		wm.tag = 1 + hostile_random(gen, 2);
		break;
	case 6:
		wm.seq = edge(gen, wm.seq);
		break;
	case 7:
		wm.has = XRDS_HAS_RDMA_DEST;
		break;
	}
	return make(buf, &wm, payload);
}

/* Several messages in one SEND: few, many, or too many */
static u32 make_bundle(struct hostile_gen *gen, void *buf)
{
	u32 n = 2 + hostile_random(gen, hostile_random(gen, 8) ? 8 : 80);
	struct xrds_hdr hdr;
	u32 bytes = 0, more;

	while (n--) {
		/* an odd place is no place for a header to be made */
		more = make_bundled(gen, &hdr);
		memcpy(buf + bytes, &hdr, sizeof(hdr));
		hostile_fill(gen, buf + bytes + sizeof(hdr),
			     more - sizeof(hdr));
		bytes += more;
	}
	return bytes;
}

static u32 make_any(struct hostile_gen *gen, void *buf)
{
	struct xrds_wire_msg wm = {};

	if (frag_busy(gen) && hostile_random(gen, 4))
		return make_frag(gen, buf);
	switch (hostile_random(gen, 12)) {
	case 10:
	case 11:
		if (gen->ver == XRDS_VER_XRDS)
			return make_bundle(gen, buf);
		fallthrough;
	case 0:
		return make(buf, &wm, 0);
	case 1:
		wm.sport = 1 + hostile_random(gen, 65535);
		wm.seq = ++gen->seq;
		return make(buf, &wm, 0);
	case 2:
		wm.dport = 1 + hostile_random(gen, 65535);
		wm.seq = ++gen->seq;
		return make(buf, &wm, 0);
	case 3:
		wm.sport = 1 + hostile_random(gen, 65535);
		wm.dport = 1 + hostile_random(gen, 65535);
		wm.seq = ++gen->seq;
		wm.flags = XRDS_F_EOS;
		wm.has = XRDS_HAS_EOS;
		wm.eos_reason = hostile_random(gen, 3);
		return make(buf, &wm, 0);
	case 4:
	case 5:
		return make_ctl(gen, buf);
	case 6:
		return make_frag(gen, buf);
	case 7:
		if (gen->last_bytes) {
			memcpy(buf, &gen->last, sizeof(gen->last));
			return gen->last_bytes;
		}
		fallthrough;
	default:
		return hostile_gen_data(gen, buf, hostile_random(gen, 4) ?
					hostile_random(gen, 200) :
					hostile_random(gen, 8000));
	}
}

/* -------------------------------------------------------------- wrong */

/* Extension headers: random ones, ones that never end, ones that end too late,
 * one type over and over, a key that is none.
 */
static void spoil_ext(struct hostile_gen *gen, u8 *ext)
{
	static const u8 chain[] = { 2, 5, 6, 8, 17, 255 };
	u32 i;

	switch (hostile_random(gen, 5)) {
	case 0:
		hostile_fill(gen, ext, XRDS_WIRE_EXT_BYTES);
		break;
	case 1:
		memset(ext, chain[hostile_random(gen, ARRAY_SIZE(chain))],
		       XRDS_WIRE_EXT_BYTES);
		break;
	case 2:
		/* the body of the last one reaches beyond the end */
		for (i = 0; i < 14; i += 2) {
			ext[i] = XRDS_EXT_SPORT_IDX;
			ext[i + 1] = i;
		}
		ext[14] = XRDS_EXT_RDMA_BYTES;
		break;
	case 3:
		memset(ext, 0, XRDS_WIRE_EXT_BYTES);
		ext[0] = XRDS_EXT_RDMA;
		hostile_fill(gen, ext + 1, 4);
		break;
	default:
		ext[hostile_random(gen, XRDS_WIRE_EXT_BYTES)] =
			hostile_random(gen, 256);
		break;
	}
}

static void spoil_field(struct hostile_gen *gen, struct xrds_hdr *hdr)
{
	switch (hostile_random(gen, 11)) {
	case 0:
		hdr->seq = cpu_to_be64(edge(gen, be64_to_cpu(hdr->seq)));
		break;
	case 1:
		hdr->ack = cpu_to_be64(edge(gen, be64_to_cpu(hdr->ack)));
		break;
	case 2:
		hdr->len = cpu_to_be32(edge(gen, hostile_random(gen, 2) ?
					    XRDS_WIRE_MAX_MSG_BYTES :
					    be32_to_cpu(hdr->len)));
		break;
	case 3:
		hdr->sport = cpu_to_be16(edge(gen, be16_to_cpu(hdr->sport)));
		break;
	case 4:
		hdr->dport = cpu_to_be16(edge(gen, be16_to_cpu(hdr->dport)));
		break;
	case 5:
		hdr->flags ^= 1 << hostile_random(gen, 8);
		break;
	case 6:
		hdr->flags = hostile_random(gen, 256);
		break;
	case 7:
		hdr->credit = edge(gen, XRDS_WIRE_MAX_CREDIT);
		break;
	case 8:
		hdr->tag = cpu_to_be16(edge(gen, 2));
		break;
	case 9:
		hdr->frag = cpu_to_be16(edge(gen, be16_to_cpu(hdr->frag)));
		break;
	default:
		spoil_ext(gen, hdr->ext);
		break;
	}
}

static u32 spoil(struct hostile_gen *gen, u8 *buf, u32 bytes)
{
	struct xrds_hdr *hdr = (struct xrds_hdr *)buf;
	u32 i, n = 1 + hostile_random(gen, 2);

	for (i = 0; i < n; i++) {
		switch (hostile_random(gen, 16)) {
		case 0:
			bytes = hostile_random(gen, bytes + 1);
			break;
		case 1:
			bytes += 1 + hostile_random(gen, 64);
			break;
		case 2:
			buf[hostile_random(gen, bytes + 1)] ^=
				1 << hostile_random(gen, 8);
			hostile_gen_seal(hdr);
			break;
		case 3:
			/* the checksum stays, so it does not match */
			buf[hostile_random(gen, sizeof(*hdr))] ^= 0x5a;
			return bytes;
		default:
			spoil_field(gen, hdr);
			hostile_gen_seal(hdr);
			break;
		}
	}
	return bytes;
}

/* A SEND without a header: often of a flow that was used, rarely with an
 * acknowledgment.
 */
static u32 make_short(struct hostile_gen *gen)
{
	static const u32 lens[] = {
		1, 64, 4095, 4096, 5000, HOSTILE_BUF_BYTES,
	};
	u32 slot = hostile_random(gen, XRDS_WIRE_SLOTS), tries;
	u32 bytes = lens[hostile_random(gen, ARRAY_SIZE(lens))];

	for (tries = 0; tries < 2 * XRDS_WIRE_SLOTS; tries++) {
		if (gen->ctx.ports[slot])
			break;
		slot = hostile_random(gen, XRDS_WIRE_SLOTS);
	}
	gen->with_imm = true;
	gen->imm = hostile_random(gen, 4) ? slot :
		   hostile_random(gen, XRDS_WIRE_SLOTS);
	/* tag, more, and the wish for an acknowledgment */
	gen->imm |= hostile_random(gen, 8) << 7;
	if (!hostile_random(gen, 8))
		gen->imm |= hostile_random(gen, 64) << 10;
	/* the number that comes next, and the length */
	gen->imm |= (hostile_random(gen, 16) ?
		     (u32)gen->ctx.seq + !(gen->imm & BIT(8)) +
		     (bytes >> 8) + (bytes >> 12) :
		     hostile_random(gen, 16)) << 16 & 0xf0000;
	if (!hostile_random(gen, 16))
		gen->imm |= hostile_random(gen, 0xfff) << 20;
	/* the index of the next fragment, if there is one */
	if (hostile_random(gen, 2) && gen->reasm[gen->imm >> 7 & 1].busy)
		gen->imm = (gen->imm & ~(XRDS_WIRE_SLOTS - 1)) |
			   gen->reasm[gen->imm >> 7 & 1].next %
			   XRDS_WIRE_SLOTS;
	return bytes;
}

/* -------------------------------------------------------------- verdict */

/* Note the headers of a SEND, as the other end does. */
void hostile_gen_note(struct hostile_gen *gen, const void *buf, u32 bytes)
{
	struct xrds_wire_bundle b;
	struct xrds_wire_msg wm;
	int err;

	if (gen->ver != XRDS_VER_XRDS ||
	    xrds_wire_hdr_decode(&wm, buf, bytes, gen->ver))
		return;
	xrds_wire_context_note(&gen->ctx, &wm);
	if (!gen->bundles || wm.kind == XRDS_KIND_CTL ||
	    wm.kind == XRDS_KIND_ACK ||
	    !xrds_wire_bundled(&wm, bytes - XRDS_WIRE_HDR_BYTES))
		return;
	err = xrds_wire_bundle_first(&b, &wm, bytes);
	while (!err && b.next < bytes) {
		err = xrds_wire_bundle_next(&b, &wm, buf);
		if (!err)
			xrds_wire_context_note(&gen->ctx, &wm);
	}
}

/* The other end ignores acknowledgments until it sends messages itself. */
static int judge_ack(const struct hostile_gen *gen)
{
	return gen->open ? XRDS_WIRE_ACK : NOT_SURE;
}

/* Whether the other end has sent the number of a well-formed entry is open. */
static int judge_refused(const struct xrds_wire_msg *wm, const u8 *payload)
{
	int i, count = xrds_wire_refused_count(wm->len);
	struct xrds_wire_refused entry;

	for (i = 0; i < count; i++) {
		if (xrds_wire_refused_entry(payload, i, &entry))
			return XRDS_WIRE_REFUSED;
	}
	return NOT_SURE;
}

static int judge_ctl(struct hostile_gen *gen, const struct xrds_wire_msg *wm,
		     const u8 *payload)
{
	struct xrds_wire_cong cong;

	switch (wm->dport) {
	case XRDS_CTL_CONG:
		return xrds_wire_cong_decode(&cong, payload, wm->len) ?
		       XRDS_WIRE_CONG : XRDS_WIRE_OK;
	case XRDS_CTL_REFUSED:
		return judge_refused(wm, payload);
	case XRDS_CTL_CONG_MAP:
	case XRDS_CTL_KEEPALIVE:
		return XRDS_WIRE_OK;
	case XRDS_CTL_BYE:
		if (gen->bye)
			return XRDS_WIRE_CTL_STATE;
		gen->bye = true;
		return XRDS_WIRE_OK;
	default:
		return XRDS_WIRE_CTL_STATE;
	}
}

/* Credits and acknowledgment */
static int judge_credit(struct hostile_gen *gen, const struct xrds_wire_msg *wm)
{
	gen->granted += wm->credit;
	if (wm->credit && gen->granted > MAX_CREDITS + CREDIT_SLACK)
		return XRDS_WIRE_CREDIT;
	if (wm->credit && gen->granted > MAX_CREDITS)
		return NOT_SURE;
	if (wm->ack >> FUTURE_SHIFT)
		return judge_ack(gen);
	return wm->ack ? NOT_SURE : XRDS_WIRE_OK;
}

static int judge_xrds(struct hostile_gen *gen, const struct xrds_wire_msg *wm,
		      const u8 *payload)
{
	struct xrds_wire_hello hello;
	int err;

	if (!gen->hello) {
		if (wm->kind != XRDS_KIND_CTL || wm->dport != XRDS_CTL_HELLO)
			return XRDS_WIRE_CTL_STATE;
		err = xrds_wire_hello_decode(&hello, payload, wm->len);
		/* it is judged by the state of the other end as well */
		if (!err && (hello.peer_node || hello.ack ||
			     hello.frag_bytes != FRAG_BYTES))
			return NOT_SURE;
		gen->hello = !err;
		gen->bundles = !err &&
			       hello.flags & XRDS_HELLO_BUNDLES;
		gen->brief = !err && hello.flags & XRDS_HELLO_SHORT;
		gen->granted = hello.credits;
		return err;
	}
	err = judge_credit(gen, wm);
	if (err)
		return err;
	if (wm->kind == XRDS_KIND_CTL)
		return judge_ctl(gen, wm, payload);
	if (wm->kind != XRDS_KIND_ACK && gen->bye)
		return XRDS_WIRE_CTL_STATE;
	if (wm->kind != XRDS_KIND_ACK && wm->tag >= HOSTILE_TAGS)
		return XRDS_WIRE_TAG;
	return XRDS_WIRE_OK;
}

static int judge_legacy(const struct hostile_gen *gen,
			const struct xrds_wire_msg *wm)
{
	/* a payload that is random has another sum than a random one */
	if (wm->has & XRDS_HAS_CSUM)
		return NOT_SURE;
	if (wm->ack >> FUTURE_SHIFT)
		return judge_ack(gen);
	return wm->ack >> PAST_SHIFT ? NOT_SURE : XRDS_WIRE_OK;
}

static int judge_whole(struct hostile_gen *gen, const struct xrds_wire_msg *wm,
		       u32 payload)
{
	int done;

	return xrds_wire_reasm_add(&gen->reasm[wm->tag], wm, payload,
				   FRAG_BYTES - XRDS_WIRE_HDR_BYTES, gen->ver,
				   &done);
}

static int judge_bundle(struct hostile_gen *gen, struct xrds_wire_msg *wm,
			const u8 *buf, u32 bytes)
{
	struct xrds_wire_bundle b;
	int err;

	err = xrds_wire_bundle_first(&b, wm, bytes);
	while (!err) {
		err = wm->tag >= HOSTILE_TAGS ? XRDS_WIRE_TAG :
		      judge_whole(gen, wm, wm->len);
		if (err || b.next == bytes)
			break;
		err = xrds_wire_bundle_next(&b, wm, buf);
	}
	return err;
}

static int judge_short(struct hostile_gen *gen, u32 bytes)
{
	struct xrds_wire_msg wm;
	int err;

	if (!gen->hello || !gen->brief)
		return XRDS_WIRE_OPCODE;
	err = xrds_wire_short_decode(&wm, &gen->ctx, gen->imm, bytes);
	if (!err)
		err = judge_credit(gen, &wm);
	if (err)
		return err;
	return gen->bye ? XRDS_WIRE_CTL_STATE : judge_whole(gen, &wm, bytes);
}

/* The error that the other end must find; the state moves on accordingly. */
static int judge(struct hostile_gen *gen, const u8 *buf, u32 bytes)
{
	const u8 *payload = buf + XRDS_WIRE_HDR_BYTES;
	bool xrds = gen->ver == XRDS_VER_XRDS;
	struct xrds_wire_msg wm;
	int err;

	err = xrds_wire_hdr_decode(&wm, buf, bytes, gen->ver);
	if (!err)
		err = xrds ? judge_xrds(gen, &wm, payload) :
			     judge_legacy(gen, &wm);
	if (err || wm.kind == XRDS_KIND_CTL || wm.kind == XRDS_KIND_ACK)
		return err;
	if (gen->bundles && xrds_wire_bundled(&wm, bytes - XRDS_WIRE_HDR_BYTES))
		return judge_bundle(gen, &wm, buf, bytes);
	return judge_whole(gen, &wm, bytes - XRDS_WIRE_HDR_BYTES);
}

/* A packet that is wrong, and fatal or not, as asked for. Returns its length,
 * 0 if none was found.
 */
u32 hostile_gen_wrong(struct hostile_gen *gen, void *buf, bool fatal,
		      enum xrds_wire_err *err)
{
	struct hostile_gen next;
	u32 bytes, tries;
	int verdict;

	for (tries = 0; tries < TRIES; tries++) {
		next = *gen;
		if (gen->ver == XRDS_VER_XRDS && !hostile_random(&next, 4)) {
			bytes = make_short(&next);
			verdict = judge_short(&next, bytes);
		} else {
			bytes = make_any(&next, buf);
			bytes = spoil(&next, buf, bytes);
			/* of the same state, with the numbers that were used up
			 */
			verdict = judge(&next, buf, bytes);
		}
		gen->rnd = next.rnd;
		if (bytes > HOSTILE_BUF_BYTES || verdict == NOT_SURE ||
		    !verdict == fatal)
			continue;
		*gen = next;
		*err = verdict;
		memcpy(&gen->last, buf, sizeof(gen->last));
		gen->last_bytes = max_t(u32, bytes, sizeof(gen->last));
		return bytes;
	}
	return 0;
}

/* --------------------------------------------------------- private data */

static void put_addr(struct in6_addr *to, const struct sockaddr_storage *ss)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)ss;
	const struct sockaddr_in *sin = (const struct sockaddr_in *)ss;

	if (ss->ss_family == AF_INET6)
		*to = sin6->sin6_addr;
	else
		ipv6_addr_set_v4mapped(sin->sin_addr.s_addr, to);
}

/* Private data of a request or reply. Wrong data is of any length. */
u32 hostile_gen_priv(struct hostile_gen *gen, void *buf, u32 room,
		     const struct sockaddr_storage *from,
		     const struct sockaddr_storage *to, u8 tos, bool wrong)
{
	struct xrds_wire_priv priv = {
		.major	= gen->ver >> 8,
		.minor	= gen->ver & 0xff,
		.mask	= gen->ver == XRDS_VER_XRDS ? XRDS_WIRE_MASK :
			  XRDS_WIRE_MASK & ~XRDS_WIRE_MASK_XRDS,
		.tos	= tos,
		.epoch	= hostile_random(gen, 256),
		.payload = gen->max_payload,
	};
	u32 bytes, i;

	put_addr(&priv.saddr, from);
	put_addr(&priv.daddr, to);
	memset(buf, 0, room);
	bytes = xrds_wire_priv_encode(buf, &priv, from->ss_family == AF_INET6);
	if (!wrong)
		return bytes;
	switch (hostile_random(gen, 4)) {
	case 0:
		hostile_fill(gen, buf, room);
		return hostile_random(gen, room + 1);
	case 1:
		return hostile_random(gen, bytes);
	default:
		for (i = hostile_random(gen, 3); i < 3; i++)
			((u8 *)buf)[hostile_random(gen, bytes)] =
				edge(gen, 0);
		return bytes + hostile_random(gen, room - bytes + 1);
	}
}
