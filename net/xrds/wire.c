// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wire format: encode, decode and validate what RDS nodes exchange.
 *
 * A header travels in front of every fragment, a hello is the first message
 * each way of a connection in XRDS mode, congestion changes travel as lists
 * of ports or as a map, and private data travels in the connection manager's
 * request and reply. Documentation/xrds-wire.rst is the specification.
 *
 * Everything that arrives is hostile until it has passed one of the decoders
 * here: lengths are checked before anything is read, a decoder reads each
 * byte once, into a copy, and hands out host byte order. What can be judged
 * from the bytes alone is judged here and nowhere else. What needs the state
 * of the connection stays with the caller: that an acknowledgment is for
 * something sent, that a tag is one of those offered, that credits do not add
 * up to too many, that a sequence number is new, that a hello comes first, that
 * bundles were agreed upon.
 *
 * The classic versions and XRDS mode differ in strictness. A classic peer may
 * be any RDS that was ever deployed, so what it sets beyond the specification
 * is ignored where that is harmless. In XRDS mode nothing unknown is let
 * through, so that every bit not used today can be given a meaning later.
 *
 * Called by the transports for each SEND, in any context. The functions are
 * pure: no allocation, no global state, no kernel object; the unit tests and
 * the fuzz target build this file in user space as it is. It must never
 * believe a length that it has not compared with the bytes that arrived.
 */
#include <linux/export.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "wire.h"

/* Flags that are known, in XRDS mode by what they may stand beside */
#define FLAGS_CLASSIC	(XRDS_F_ACK_REQUIRED | XRDS_F_RETRANSMITTED | \
			 XRDS_F_EXT_EXTENSION)
#define FLAGS_DATA	(FLAGS_CLASSIC | XRDS_F_REPLY)
#define FLAGS_EOS	(XRDS_F_ACK_REQUIRED | XRDS_F_RETRANSMITTED | \
			 XRDS_F_EOS)
#define FLAGS_CTL	(XRDS_F_ACK_REQUIRED | XRDS_F_CONTROL)

/* Flags that may differ between the fragments of one message */
#define FLAGS_PER_FRAG	(XRDS_F_ACK_REQUIRED | XRDS_F_RETRANSMITTED)

/* The hello as it travels */
struct hello_layout {
	__be16	revision;
	__be16	flags;
	__be32	frag_bytes;
	__be16	credits;
	__be16	tags;
	__u8	lane;
	__u8	epoch;
	__u8	zero[2];
	__be64	inc;
	__be64	peer_inc;
	__be64	ack;
	__be32	age_ms;
	__be32	reserved;
};

static_assert(sizeof(struct hello_layout) == XRDS_WIRE_HELLO_BYTES);

/* Head of a congestion list, and its entries */
struct cong_layout {
	__be16	flags;
	__be16	count;
};

struct cong_entry_layout {
	__be16	port;
	__u8	congested;
	__u8	zero;
};

static_assert(sizeof(struct cong_layout) == 4);
static_assert(sizeof(struct cong_entry_layout) == 4);

#define CONG_FULL	0x0001	/* cong_layout.flags */

/* Private data behind the two addresses */
struct priv_layout {
	__u8	major;
	__u8	minor;
	__be16	mask;
	__u8	tos;
	__u8	epoch;
	__be16	reserved;
	__be64	ack;
	__be32	credits;
	__be32	pad;
};

static_assert(2 * 4 + sizeof(struct priv_layout) == XRDS_WIRE_PRIV_V4_BYTES);
static_assert(2 * 16 + sizeof(struct priv_layout) == XRDS_WIRE_PRIV_V6_BYTES);

/* ------------------------------------------------------------- checksum */

/* Adds the four 16-bit words at @p, in pairs that cannot overflow the sum. */
static inline __u64 csum_add(__u64 sum, const void *p)
{
	__u64 v;

	memcpy(&v, p, sizeof(v));
	return sum + (v & 0xffffffff) + (v >> 32);
}

/* One's complement sum of a header in 16-bit words (RFC 1071). The sum does
 * not depend on the byte order of the machine as long as it is stored as it
 * was computed, so nothing is swapped here.
 */
static __u16 hdr_sum(const struct xrds_hdr *hdr)
{
	const __u8 *p = (const __u8 *)hdr;
	__u64 sum;

	sum = csum_add(0, p);
	sum = csum_add(sum, p + 8);
	sum = csum_add(sum, p + 16);
	sum = csum_add(sum, p + 24);
	sum = csum_add(sum, p + 32);
	sum = csum_add(sum, p + 40);

	/* at most 12 * 2^32: one step to 33 bits, two more to 16 */
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Writes the checksum, which must be the last change to a header. */
static void hdr_seal(struct xrds_hdr *hdr)
{
	__u16 csum;

	hdr->csum = 0;
	csum = ~hdr_sum(hdr);
	memcpy(&hdr->csum, &csum, sizeof(hdr->csum));
}

/* -------------------------------------------------------------- headers */

/* Length of each extension, type and body, 0 for what is none, and its bit in
 * xrds_wire_msg.has, 0 if its content is of no interest.
 */
static const struct {
	__u8	bytes;
	__u8	has;
} ext_types[XRDS_EXT_SILENT + 1] = {
	[XRDS_EXT_VERSION]	= { 1 + 4, 0 },
	[XRDS_EXT_RDMA]		= { 1 + 4, XRDS_HAS_RDMA },
	[XRDS_EXT_RDMA_DEST]	= { 1 + 8, XRDS_HAS_RDMA_DEST },
	[XRDS_EXT_RDMA_BYTES]	= { 1 + 8, XRDS_HAS_RDMA_BYTES },
	[XRDS_EXT_NPATHS]	= { 1 + 2, XRDS_HAS_NPATHS },
	[XRDS_EXT_GEN_NUM]	= { 1 + 4, XRDS_HAS_GEN_NUM },
	[XRDS_EXT_SPORT_IDX]	= { 1 + 1, XRDS_HAS_SPORT_IDX },
	[XRDS_EXT_EOS]		= { 1 + 4, XRDS_HAS_EOS },
	[XRDS_EXT_SILENT]	= { 1, XRDS_HAS_SILENT },
};

/* The order in which extensions are written. Receivers stop at the first type
 * they do not know, so what every version understands goes first.
 */
static const __u8 ext_order[] = {
	XRDS_EXT_RDMA,
	XRDS_EXT_RDMA_DEST,
	XRDS_EXT_EOS,
	XRDS_EXT_SILENT,
	XRDS_EXT_NPATHS,
	XRDS_EXT_GEN_NUM,
	XRDS_EXT_SPORT_IDX,
	XRDS_EXT_RDMA_BYTES,
	XRDS_EXT_NONE
};

static inline void put16(__u8 *p, __u16 v)
{
	__be16 x = __cpu_to_be16(v);

	memcpy(p, &x, sizeof(x));
}

static inline void put32(__u8 *p, __u32 v)
{
	__be32 x = __cpu_to_be32(v);

	memcpy(p, &x, sizeof(x));
}

static inline __u16 get16(const __u8 *p)
{
	__be16 x;

	memcpy(&x, p, sizeof(x));
	return __be16_to_cpu(x);
}

static inline __u32 get32(const __u8 *p)
{
	__be32 x;

	memcpy(&x, p, sizeof(x));
	return __be32_to_cpu(x);
}

/* Writes the body of one extension; the space was checked. */
static void ext_put(__u8 *body, __u8 type, const struct xrds_wire_msg *msg)
{
	switch (type) {
	case XRDS_EXT_RDMA:
		put32(body, msg->rdma_rkey);
		break;
	case XRDS_EXT_RDMA_DEST:
		put32(body, msg->dest_rkey);
		put32(body + 4, msg->dest_off);
		break;
	case XRDS_EXT_RDMA_BYTES:
		put32(body, msg->rdma_bytes);
		body[4] = msg->rdma_dir;
		break;
	case XRDS_EXT_NPATHS:
		put16(body, msg->npaths);
		break;
	case XRDS_EXT_GEN_NUM:
		put32(body, msg->gen_num);
		break;
	case XRDS_EXT_SPORT_IDX:
		body[0] = msg->sport_idx;
		break;
	case XRDS_EXT_EOS:
		put32(body, msg->eos_reason);
		break;
	}
}

/* Reads the body of one extension; its length was checked. */
static void ext_get(struct xrds_wire_msg *msg, const __u8 *body, __u8 type)
{
	switch (type) {
	case XRDS_EXT_RDMA:
		msg->rdma_rkey = get32(body);
		break;
	case XRDS_EXT_RDMA_DEST:
		msg->dest_rkey = get32(body);
		msg->dest_off = get32(body + 4);
		break;
	case XRDS_EXT_RDMA_BYTES:
		msg->rdma_bytes = get32(body);
		msg->rdma_dir = body[4];
		break;
	case XRDS_EXT_NPATHS:
		msg->npaths = get16(body);
		break;
	case XRDS_EXT_GEN_NUM:
		msg->gen_num = get32(body);
		break;
	case XRDS_EXT_SPORT_IDX:
		msg->sport_idx = body[0];
		break;
	case XRDS_EXT_EOS:
		msg->eos_reason = get32(body);
		break;
	}
}

static void ext_encode(__u8 *ext, const struct xrds_wire_msg *msg)
{
	const __u8 *type;
	__u32 pos = 0;

	for (type = ext_order; *type != XRDS_EXT_NONE; type++) {
		__u32 need = ext_types[*type].bytes;

		if (!(msg->has & ext_types[*type].has))
			continue;
		if (need > XRDS_WIRE_EXT_BYTES - pos)
			continue;
		ext[pos] = *type;
		ext_put(ext + pos + 1, *type, msg);
		pos += need;
	}
}

static enum xrds_wire_err ext_decode(struct xrds_wire_msg *msg,
				     const __u8 *ext, int strict)
{
	__u32 pos = 0;

	while (pos < XRDS_WIRE_EXT_BYTES && ext[pos] != XRDS_EXT_NONE) {
		__u8 type = ext[pos];
		__u8 bytes = type <= XRDS_EXT_SILENT ? ext_types[type].bytes :
						       0;

		/* no version but XRDS mode has ever sent these */
		if (!strict && type >= XRDS_EXT_EOS)
			bytes = 0;
		if (!bytes)
			return strict ? XRDS_WIRE_EXT : XRDS_WIRE_OK;
		if (bytes > XRDS_WIRE_EXT_BYTES - pos)
			return XRDS_WIRE_EXT;
		/* some senders add one again when they send again */
		if (strict && (msg->has & ext_types[type].has))
			return XRDS_WIRE_EXT;

		ext_get(msg, ext + pos + 1, type);
		msg->has |= ext_types[type].has;
		pos += bytes;
	}
	return XRDS_WIRE_OK;
}

/**
 * xrds_wire_ext_bytes() - space that a set of extension headers takes
 * @has:	XRDS_HAS_*
 *
 * Context: any.
 * Return: bytes; the set fits into a header if this is at most
 * XRDS_WIRE_EXT_BYTES.
 */
__u32 xrds_wire_ext_bytes(__u8 has)
{
	const __u8 *type;
	__u32 bytes = 0;

	for (type = ext_order; *type != XRDS_EXT_NONE; type++) {
		if (has & ext_types[*type].has)
			bytes += ext_types[*type].bytes;
	}
	return bytes;
}
EXPORT_SYMBOL_GPL(xrds_wire_ext_bytes);

/**
 * xrds_wire_hdr_encode() - write a header, checksum included
 * @hdr:	where to
 * @msg:	what it says; @kind is ignored
 *
 * Extension headers that do not fit are left out; xrds_wire_ext_bytes() tells
 * beforehand.
 *
 * Context: any.
 */
void xrds_wire_hdr_encode(struct xrds_hdr *hdr, const struct xrds_wire_msg *msg)
{
	hdr->seq = __cpu_to_be64(msg->seq);
	hdr->ack = __cpu_to_be64(msg->ack);
	hdr->len = __cpu_to_be32(msg->len);
	hdr->sport = __cpu_to_be16(msg->sport);
	hdr->dport = __cpu_to_be16(msg->dport);
	hdr->flags = msg->flags;
	hdr->credit = msg->credit;
	hdr->tag = __cpu_to_be16(msg->tag);
	hdr->frag = __cpu_to_be16(msg->frag);
	memset(hdr->ext, 0, sizeof(hdr->ext));
	if (msg->has)
		ext_encode(hdr->ext, msg);
	hdr_seal(hdr);
}
EXPORT_SYMBOL_GPL(xrds_wire_hdr_encode);

/**
 * xrds_wire_hdr_update() - change what differs from one SEND to the next
 * @hdr:	an encoded header
 * @ack:	replaces the acknowledgment
 * @credit:	replaces the credits
 * @set_flags:	added to the flags
 * @frag:	replaces the fragment index; 0 in classic modes
 *
 * The checksum is computed anew: that is twelve additions, no more than to
 * take the old values out of it and the new ones in, and cannot carry on a
 * mistake.
 *
 * Context: any.
 */
void xrds_wire_hdr_update(struct xrds_hdr *hdr, __u64 ack, __u8 credit,
			  __u8 set_flags, __u16 frag)
{
	hdr->ack = __cpu_to_be64(ack);
	hdr->flags |= set_flags;
	hdr->credit = credit;
	hdr->frag = __cpu_to_be16(frag);
	hdr_seal(hdr);
}
EXPORT_SYMBOL_GPL(xrds_wire_hdr_update);

/* Length that a control message must announce */
static int ctl_len_valid(__u16 type, __u32 len)
{
	switch (type) {
	case XRDS_CTL_HELLO:
		return len == XRDS_WIRE_HELLO_BYTES;
	case XRDS_CTL_CONG:
		return len >= sizeof(struct cong_layout) &&
		       len <= xrds_wire_cong_bytes(XRDS_WIRE_CONG_MAX_ENTRIES);
	case XRDS_CTL_CONG_MAP:
		return len == XRDS_WIRE_CONG_MAP_BYTES;
	default:
		return len == 0;
	}
}

static enum xrds_wire_err ctl_check(struct xrds_wire_msg *msg, __u32 payload)
{
	msg->kind = XRDS_KIND_CTL;
	if (msg->flags & ~FLAGS_CTL)
		return XRDS_WIRE_FLAGS;
	if (msg->dport < XRDS_CTL_HELLO || msg->dport > XRDS_CTL_KEEPALIVE)
		return XRDS_WIRE_CTL_TYPE;
	if (msg->sport)
		return XRDS_WIRE_PORT;
	if (msg->seq)
		return XRDS_WIRE_SEQ;
	if (msg->tag)
		return XRDS_WIRE_TAG;
	if (msg->frag)
		return XRDS_WIRE_FRAG;
	if (msg->has)
		return XRDS_WIRE_EXT;
	if (msg->len != payload || !ctl_len_valid(msg->dport, msg->len))
		return XRDS_WIRE_CTL_LEN;
	return XRDS_WIRE_OK;
}

static enum xrds_wire_err eos_check(struct xrds_wire_msg *msg)
{
	msg->kind = XRDS_KIND_EOS;
	if (msg->flags & ~FLAGS_EOS)
		return XRDS_WIRE_FLAGS;
	if (!msg->sport || !msg->dport)
		return XRDS_WIRE_PORT;
	if (!msg->seq)
		return XRDS_WIRE_SEQ;
	if (msg->len)
		return XRDS_WIRE_LEN;
	if (msg->has != XRDS_HAS_EOS ||
	    msg->eos_reason > XRDS_WIRE_MAX_EOS_REASON)
		return XRDS_WIRE_EXT;
	return XRDS_WIRE_OK;
}

/* A message without a source port: an acknowledgment or a pong. */
static enum xrds_wire_err portless_check(struct xrds_wire_msg *msg, int strict)
{
	if (msg->len)
		return XRDS_WIRE_LEN;
	if (msg->dport) {
		msg->kind = XRDS_KIND_PONG;
		return msg->seq ? XRDS_WIRE_OK : XRDS_WIRE_SEQ;
	}

	msg->kind = XRDS_KIND_ACK;
	if (msg->seq)
		return XRDS_WIRE_SEQ;
	if (!strict)
		return XRDS_WIRE_OK;
	if (msg->flags)
		return XRDS_WIRE_FLAGS;
	if (msg->tag)
		return XRDS_WIRE_TAG;
	if (msg->frag)
		return XRDS_WIRE_FRAG;
	return msg->has ? XRDS_WIRE_EXT : XRDS_WIRE_OK;
}

/* A sequenced message. A ping may have a payload: programs can send one to
 * port 0, and that must not cost others their connection.
 */
static inline enum xrds_wire_err data_check(struct xrds_wire_msg *msg,
					    int strict)
{
	if (!msg->sport)
		return portless_check(msg, strict);
	if (!msg->seq)
		return XRDS_WIRE_SEQ;
	msg->kind = msg->dport ? XRDS_KIND_DATA : XRDS_KIND_PING;
	return XRDS_WIRE_OK;
}

static enum xrds_wire_err classic_check(struct xrds_wire_msg *msg, __u8 flags)
{
	if (!(flags & XRDS_F_CONG_BITMAP))
		return data_check(msg, 0);

	msg->kind = XRDS_KIND_CONG_MAP;
	if (flags != XRDS_F_CONG_BITMAP)
		return XRDS_WIRE_FLAGS;
	if (msg->seq)
		return XRDS_WIRE_SEQ;
	if (msg->len != XRDS_WIRE_CONG_MAP_BYTES)
		return XRDS_WIRE_LEN;
	return XRDS_WIRE_OK;
}

static enum xrds_wire_err xrds_check(struct xrds_wire_msg *msg, __u32 payload)
{
	if (msg->credit > XRDS_WIRE_MAX_CREDIT)
		return XRDS_WIRE_CREDIT;
	if (msg->flags & XRDS_F_CONTROL)
		return ctl_check(msg, payload);
	if (msg->flags & XRDS_F_EOS)
		return eos_check(msg);
	if (msg->flags & ~FLAGS_DATA)
		return XRDS_WIRE_FLAGS;
	if (msg->has & XRDS_HAS_EOS)
		return XRDS_WIRE_EXT;
	if (msg->has & XRDS_HAS_SILENT && (msg->len || !msg->sport))
		return XRDS_WIRE_EXT;
	return data_check(msg, 1);
}

/**
 * xrds_wire_hdr_decode() - read and validate the header of a SEND
 * @msg:	what it says; undefined on error
 * @buf:	the SEND, of any alignment
 * @bytes:	length of the SEND, header and payload
 * @ver:	negotiated version, XRDS_VER_*
 *
 * What only XRDS mode has (tag, frag, credit, its flags) is zero in classic
 * modes, whatever the peer put there.
 *
 * Context: any.
 * Return: XRDS_WIRE_OK, or what is wrong: SHORT, CSUM, LEN, FLAGS, PORT, EXT,
 * SEQ, and in XRDS mode FRAG, TAG, CREDIT, CTL_TYPE, CTL_LEN.
 */
enum xrds_wire_err xrds_wire_hdr_decode(struct xrds_wire_msg *msg,
					const void *buf, __u32 bytes, int ver)
{
	int strict = ver == XRDS_VER_XRDS;
	enum xrds_wire_err err;
	struct xrds_hdr hdr;

	if (bytes < sizeof(hdr))
		return XRDS_WIRE_SHORT;
	memcpy(&hdr, buf, sizeof(hdr));
	if ((strict || hdr.csum) && hdr_sum(&hdr) != 0xffff)
		return XRDS_WIRE_CSUM;

	memset(msg, 0, sizeof(*msg));
	msg->seq = __be64_to_cpu(hdr.seq);
	msg->ack = __be64_to_cpu(hdr.ack);
	msg->len = __be32_to_cpu(hdr.len);
	msg->sport = __be16_to_cpu(hdr.sport);
	msg->dport = __be16_to_cpu(hdr.dport);
	if (msg->len > XRDS_WIRE_MAX_MSG_BYTES)
		return XRDS_WIRE_LEN;
	if (hdr.ext[0] != XRDS_EXT_NONE) {
		err = ext_decode(msg, hdr.ext, strict);
		if (err)
			return err;
	}

	if (!strict) {
		msg->flags = hdr.flags & (FLAGS_CLASSIC | XRDS_F_CONG_BITMAP);
		return classic_check(msg, hdr.flags);
	}
	msg->flags = hdr.flags;
	msg->credit = hdr.credit;
	msg->tag = __be16_to_cpu(hdr.tag);
	msg->frag = __be16_to_cpu(hdr.frag);
	return xrds_check(msg, bytes - sizeof(hdr));
}
EXPORT_SYMBOL_GPL(xrds_wire_hdr_decode);

/* ----------------------------------------------------------- reassembly */

static int same_message(const struct xrds_wire_msg *a,
			const struct xrds_wire_msg *b)
{
	return a->seq == b->seq && a->len == b->len &&
	       a->sport == b->sport && a->dport == b->dport &&
	       a->tag == b->tag && a->kind == b->kind &&
	       !((a->flags ^ b->flags) & ~FLAGS_PER_FRAG);
}

/**
 * xrds_wire_reasm_add() - take the next fragment of a message
 * @r:		progress of the message; zeroed before its first use
 * @msg:	decoded header of the fragment
 * @payload:	bytes behind that header
 * @max_payload: most that one fragment may carry (XRDS)
 * @ver:	negotiated version, XRDS_VER_*
 * @done:	set to 1 if the message is complete, else to 0
 *
 * There is one @r per tag, and only one in classic modes. Acknowledgments and
 * control messages are not fragments; they may arrive between those of a
 * message and must not be given to this function. After an error @r is ready
 * for a new message. When a message is complete, @r->first has the header of
 * its first fragment.
 *
 * Context: any; calls for the same @r are serialised by the caller.
 * Return: XRDS_WIRE_OK; FRAG if the index is not the next one, FRAG_HDR if the
 * header does not belong to the message, FRAG_LEN if the payload is too long
 * or too short.
 */
enum xrds_wire_err xrds_wire_reasm_add(struct xrds_wire_reasm *r,
				       const struct xrds_wire_msg *msg,
				       __u32 payload, __u32 max_payload,
				       int ver, int *done)
{
	int classic = ver != XRDS_VER_XRDS;
	__u32 least, rest;

	*done = 0;
	if (!r->busy) {
		r->first = *msg;
		r->got = 0;
		r->next = 0;
	}
	if (r->busy && !same_message(&r->first, msg)) {
		r->busy = 0;
		return XRDS_WIRE_FRAG_HDR;
	}
	/* whatever is wrong below ends the message */
	r->busy = 0;
	if (!classic && msg->frag != r->next)
		return XRDS_WIRE_FRAG;

	least = XRDS_WIRE_MIN_FRAG_PAYLOAD;
	if (classic) {
		max_payload = XRDS_WIRE_CLASSIC_PAYLOAD;
		least = XRDS_WIRE_CLASSIC_PAYLOAD;
	}
	rest = r->first.len - r->got;
	if (payload > max_payload || payload > rest)
		return XRDS_WIRE_FRAG_LEN;
	if (payload < rest && payload < least)
		return XRDS_WIRE_FRAG_LEN;

	/* at most 256 fragments, as all but the last have the least payload */
	r->got += payload;
	r->next++;
	r->busy = payload < rest;
	*done = !r->busy;
	return XRDS_WIRE_OK;
}
EXPORT_SYMBOL_GPL(xrds_wire_reasm_add);

/* ---------------------------------------------------------------- hello */

/**
 * xrds_wire_hello_encode() - write a clear-to-send
 * @buf:	XRDS_WIRE_HELLO_BYTES, of any alignment
 * @hello:	what it says
 *
 * Context: any.
 */
void xrds_wire_hello_encode(void *buf, const struct xrds_wire_hello *hello)
{
	struct hello_layout h = {
		.revision	= __cpu_to_be16(hello->revision),
		.flags		= __cpu_to_be16(hello->flags),
		.frag_bytes	= __cpu_to_be32(hello->frag_bytes),
		.credits	= __cpu_to_be16(hello->credits),
		.tags		= __cpu_to_be16(hello->tags),
		.lane		= hello->lane,
		.epoch		= hello->epoch,
		.inc		= __cpu_to_be64(hello->inc),
		.peer_inc	= __cpu_to_be64(hello->peer_inc),
		.ack		= __cpu_to_be64(hello->ack),
		.age_ms		= __cpu_to_be32(hello->age_ms),
	};

	memcpy(buf, &h, sizeof(h));
}
EXPORT_SYMBOL_GPL(xrds_wire_hello_encode);

/**
 * xrds_wire_hello_decode() - read and validate a clear-to-send
 * @hello:	what it says; undefined on error
 * @buf:	payload of the control message, of any alignment
 * @bytes:	its length
 *
 * A sender of a later revision than ours may have given a meaning to what is
 * reserved, so this is held to be zero only up to ours.
 *
 * Context: any.
 * Return: XRDS_WIRE_OK, CTL_LEN for a wrong length, or HELLO.
 */
enum xrds_wire_err xrds_wire_hello_decode(struct xrds_wire_hello *hello,
					  const void *buf, __u32 bytes)
{
	struct hello_layout h;

	if (bytes != sizeof(h))
		return XRDS_WIRE_CTL_LEN;
	memcpy(&h, buf, sizeof(h));

	hello->revision = __be16_to_cpu(h.revision);
	hello->flags = __be16_to_cpu(h.flags);
	hello->frag_bytes = __be32_to_cpu(h.frag_bytes);
	hello->credits = __be16_to_cpu(h.credits);
	hello->tags = __be16_to_cpu(h.tags);
	hello->lane = h.lane;
	hello->epoch = h.epoch;
	hello->inc = __be64_to_cpu(h.inc);
	hello->peer_inc = __be64_to_cpu(h.peer_inc);
	hello->ack = __be64_to_cpu(h.ack);
	hello->age_ms = __be32_to_cpu(h.age_ms);

	if (hello->revision < XRDS_REVISION_FIRST)
		return XRDS_WIRE_HELLO;
	if (hello->revision <= XRDS_REVISION &&
	    (h.flags || h.zero[0] || h.zero[1] || h.reserved))
		return XRDS_WIRE_HELLO;
	if (hello->frag_bytes < XRDS_WIRE_MIN_FRAG_BYTES ||
	    hello->frag_bytes > XRDS_WIRE_MAX_FRAG_BYTES ||
	    hello->frag_bytes % XRDS_WIRE_FRAG_UNIT_BYTES)
		return XRDS_WIRE_HELLO;
	if (!hello->credits || hello->credits > XRDS_WIRE_MAX_HELLO_CREDITS)
		return XRDS_WIRE_HELLO;
	if (!hello->tags || !hello->inc)
		return XRDS_WIRE_HELLO;
	/* an acknowledgment of nobody's messages */
	if (!hello->peer_inc && hello->ack)
		return XRDS_WIRE_HELLO;
	return XRDS_WIRE_OK;
}
EXPORT_SYMBOL_GPL(xrds_wire_hello_decode);

/* ----------------------------------------------------------- congestion */

/**
 * xrds_wire_cong_bytes() - length of a congestion list
 * @count:	number of entries
 *
 * Context: any.
 * Return: bytes.
 */
__u32 xrds_wire_cong_bytes(__u16 count)
{
	return sizeof(struct cong_layout) +
	       count * sizeof(struct cong_entry_layout);
}

/**
 * xrds_wire_cong_begin() - write the head of a congestion list
 * @buf:	xrds_wire_cong_bytes() of @count, of any alignment
 * @full:	the list replaces all earlier state
 * @count:	entries that follow, at most XRDS_WIRE_CONG_MAX_ENTRIES
 *
 * Context: any.
 */
void xrds_wire_cong_begin(void *buf, __u8 full, __u16 count)
{
	struct cong_layout head = {
		.flags	= __cpu_to_be16(full ? CONG_FULL : 0),
		.count	= __cpu_to_be16(count),
	};

	memcpy(buf, &head, sizeof(head));
}

/**
 * xrds_wire_cong_put() - write one entry of a congestion list
 * @buf:	the list that xrds_wire_cong_begin() was called for
 * @index:	which entry, from 0
 * @port:	a port of the node that sends the list
 * @congested:	whether messages to it must wait
 *
 * Context: any.
 */
void xrds_wire_cong_put(void *buf, __u16 index, __u16 port, __u8 congested)
{
	struct cong_entry_layout entry = {
		.port		= __cpu_to_be16(port),
		.congested	= congested ? 1 : 0,
	};

	memcpy((__u8 *)buf + xrds_wire_cong_bytes(index), &entry,
	       sizeof(entry));
}

/**
 * xrds_wire_cong_decode() - validate a congestion list
 * @cong:	the list; refers to @buf; undefined on error
 * @buf:	payload of the control message, of any alignment
 * @bytes:	its length
 *
 * Context: any.
 * Return: XRDS_WIRE_OK, CTL_LEN for a wrong length, or CONG.
 */
enum xrds_wire_err xrds_wire_cong_decode(struct xrds_wire_cong *cong,
					 const void *buf, __u32 bytes)
{
	struct cong_layout head;
	__u16 flags, i;

	if (bytes < sizeof(head))
		return XRDS_WIRE_CTL_LEN;
	memcpy(&head, buf, sizeof(head));
	flags = __be16_to_cpu(head.flags);
	cong->count = __be16_to_cpu(head.count);
	cong->full = flags & CONG_FULL;
	cong->entries = (const __u8 *)buf + sizeof(head);

	if ((flags & ~CONG_FULL) || cong->count > XRDS_WIRE_CONG_MAX_ENTRIES)
		return XRDS_WIRE_CONG;
	if (bytes != xrds_wire_cong_bytes(cong->count))
		return XRDS_WIRE_CTL_LEN;
	for (i = 0; i < cong->count; i++) {
		struct cong_entry_layout entry;

		memcpy(&entry, cong->entries + i * sizeof(entry),
		       sizeof(entry));
		if (!entry.port || entry.congested > 1 || entry.zero)
			return XRDS_WIRE_CONG;
	}
	return XRDS_WIRE_OK;
}

/**
 * xrds_wire_cong_entry() - read one entry of a congestion list
 * @cong:	a list that xrds_wire_cong_decode() accepted
 * @index:	which entry, below @cong->count
 * @port:	its port
 * @congested:	1 or 0
 *
 * Context: any.
 */
void xrds_wire_cong_entry(const struct xrds_wire_cong *cong, __u16 index,
			  __u16 *port, __u8 *congested)
{
	struct cong_entry_layout entry;

	memcpy(&entry, cong->entries + index * sizeof(entry), sizeof(entry));
	*port = __be16_to_cpu(entry.port);
	*congested = entry.congested & 1;
}

/**
 * xrds_wire_map_test() - look up a port in a congestion map
 * @map:	XRDS_WIRE_CONG_MAP_BYTES
 * @port:	which
 *
 * Context: any.
 * Return: 1 if the port is congested, else 0.
 */
int xrds_wire_map_test(const void *map, __u16 port)
{
	const __u8 *bits = map;

	return bits[port / 8] >> (port % 8) & 1;
}

/**
 * xrds_wire_map_set() - mark a port as congested in a map
 * @map:	XRDS_WIRE_CONG_MAP_BYTES
 * @port:	which
 *
 * Context: any.
 */
void xrds_wire_map_set(void *map, __u16 port)
{
	__u8 *bits = map;

	bits[port / 8] |= 1 << (port % 8);
}

/* --------------------------------------------------------- private data */

static const __u8 v4_mapped[12] = { [10] = 0xff, [11] = 0xff };

/* Whether a node can have this address. */
static int addr_valid(const struct in6_addr *addr, int v6)
{
	static const struct in6_addr none;
	const __u8 *a = addr->s6_addr;

	if (v6)
		return memcmp(addr, &none, sizeof(none)) && a[0] != 0xff &&
		       memcmp(a, v4_mapped, sizeof(v4_mapped));
	/* neither unspecified, nor multicast, nor broadcast */
	return get32(a + 12) && (a[12] & 0xf0) != 0xe0 &&
	       get32(a + 12) != 0xffffffff;
}

static void v4_get(struct in6_addr *addr, const __u8 *p)
{
	memcpy(addr->s6_addr, v4_mapped, sizeof(v4_mapped));
	memcpy(addr->s6_addr + sizeof(v4_mapped), p, 4);
}

/**
 * xrds_wire_priv_encode() - write the private data of a request or reply
 * @buf:	XRDS_WIRE_PRIV_V6_BYTES, of any alignment
 * @priv:	what it says
 * @v6:		the addresses are IPv6, not IPv4 mapped
 *
 * Context: any.
 * Return: bytes written, XRDS_WIRE_PRIV_V4_BYTES or XRDS_WIRE_PRIV_V6_BYTES.
 */
__u32 xrds_wire_priv_encode(void *buf, const struct xrds_wire_priv *priv,
			    int v6)
{
	struct priv_layout tail = {
		.major		= priv->major,
		.minor		= priv->minor,
		.mask		= __cpu_to_be16(priv->mask),
		.tos		= priv->tos,
		.epoch		= priv->epoch,
		.ack		= __cpu_to_be64(priv->ack),
		.credits	= __cpu_to_be32(priv->credits),
	};
	__u32 skip = v6 ? 0 : 12;
	__u32 size = 16 - skip;
	__u8 *p = buf;

	memcpy(p, priv->saddr.s6_addr + skip, size);
	memcpy(p + size, priv->daddr.s6_addr + skip, size);
	memcpy(p + 2 * size, &tail, sizeof(tail));
	return 2 * size + sizeof(tail);
}
EXPORT_SYMBOL_GPL(xrds_wire_priv_encode);

/**
 * xrds_wire_priv_decode() - read and validate private data
 * @priv:	what it says; undefined on error
 * @buf:	private data of the event, of any alignment
 * @bytes:	its length; the connection manager may have padded it
 * @v6:		the connection is between IPv6 addresses
 *
 * Whether the addresses are those of the connection, and whether there is a
 * common version, is for the caller to find out.
 *
 * Context: any.
 * Return: XRDS_WIRE_OK, PRIV_LEN if there is too little, or PRIV_ADDR if an
 * address cannot be that of a node.
 */
enum xrds_wire_err xrds_wire_priv_decode(struct xrds_wire_priv *priv,
					 const void *buf, __u32 bytes, int v6)
{
	__u32 size = v6 ? 16 : 4;
	struct priv_layout tail;
	const __u8 *p = buf;

	if (bytes < 2 * size + sizeof(tail))
		return XRDS_WIRE_PRIV_LEN;
	if (v6) {
		memcpy(priv->saddr.s6_addr, p, size);
		memcpy(priv->daddr.s6_addr, p + size, size);
	} else {
		v4_get(&priv->saddr, p);
		v4_get(&priv->daddr, p + size);
	}
	memcpy(&tail, p + 2 * size, sizeof(tail));
	priv->major = tail.major;
	priv->minor = tail.minor;
	priv->mask = __be16_to_cpu(tail.mask);
	priv->tos = tail.tos;
	priv->epoch = tail.epoch;
	priv->ack = __be64_to_cpu(tail.ack);
	priv->credits = __be32_to_cpu(tail.credits);

	if (!addr_valid(&priv->saddr, v6) || !addr_valid(&priv->daddr, v6))
		return XRDS_WIRE_PRIV_ADDR;
	return XRDS_WIRE_OK;
}
EXPORT_SYMBOL_GPL(xrds_wire_priv_decode);

/**
 * xrds_wire_version() - version to answer a request with
 * @priv:	private data of the request
 * @mask:	minor versions of major 4 that this side speaks
 *
 * Context: any.
 * Return: XRDS_VER_*, the highest that both sides speak; 0: none, refuse.
 */
int xrds_wire_version(const struct xrds_wire_priv *priv, __u16 mask)
{
	__u16 common = priv->mask & mask;

	if (priv->major == 3 && priv->minor == 1)
		return XRDS_VER_3_1;
	if (priv->major != 4)
		return 0;
	if (common & XRDS_WIRE_MASK_XRDS)
		return XRDS_VER_XRDS;
	if (common & XRDS_WIRE_MASK_4_1)
		return XRDS_VER_4_1;
	if (common & XRDS_WIRE_MASK_4_0)
		return XRDS_VER_4_0;
	return 0;
}
EXPORT_SYMBOL_GPL(xrds_wire_version);

/**
 * xrds_wire_version_chosen() - version that a reply settles on
 * @priv:	private data of the reply
 * @mask:	minor versions of major 4 that the request offered
 *
 * Context: any.
 * Return: XRDS_VER_*; 0: the peer chose what was not offered.
 */
int xrds_wire_version_chosen(const struct xrds_wire_priv *priv, __u16 mask)
{
	int ver = XRDS_VER(priv->major, priv->minor);

	switch (ver) {
	case XRDS_VER_3_1:
		return ver;
	case XRDS_VER_4_0:
	case XRDS_VER_4_1:
	case XRDS_VER_XRDS:
		return mask & (1 << priv->minor) ? ver : 0;
	default:
		return 0;
	}
}
EXPORT_SYMBOL_GPL(xrds_wire_version_chosen);

/**
 * xrds_wire_reject_encode() - write the private data of a refusal
 * @buf:	XRDS_WIRE_REJECT_BYTES, of any alignment
 * @reason:	why the request is refused
 *
 * In the byte order of the machine, which is how classic nodes read it.
 *
 * Context: any.
 * Return: bytes written.
 */
__u32 xrds_wire_reject_encode(void *buf, enum xrds_wire_reject reason)
{
	__u32 v = reason;

	memcpy(buf, &v, sizeof(v));
	return sizeof(v);
}
EXPORT_SYMBOL_GPL(xrds_wire_reject_encode);

/**
 * xrds_wire_reject_decode() - read the private data of a refusal
 * @buf:	private data of the event, of any alignment; may be NULL if
 *		@bytes is 0
 * @bytes:	its length
 *
 * Context: any.
 * Return: the reason, in whatever byte order it came; XRDS_REJECT_NONE if
 * there is none or it is not known.
 */
enum xrds_wire_reject xrds_wire_reject_decode(const void *buf, __u32 bytes)
{
	const __u8 *p = buf;
	__u8 v;

	if (bytes < XRDS_WIRE_REJECT_BYTES || p[1] || p[2] || (p[0] && p[3]))
		return XRDS_REJECT_NONE;
	v = p[0] | p[3];
	return v <= XRDS_REJECT_CROSSED ? v : XRDS_REJECT_NONE;
}
EXPORT_SYMBOL_GPL(xrds_wire_reject_decode);

/**
 * xrds_wire_strerror() - what an error means, for the log
 * @err:	the error
 *
 * Context: any.
 * Return: a constant string.
 */
const char *xrds_wire_strerror(enum xrds_wire_err err)
{
	static const char * const text[] = {
#define X(sym, name, text) text
#include "list_wire_errors.h"
#undef X
	};

	if ((unsigned int)err >= XRDS_WIRE_NR_ERRORS)
		return "unknown error";
	return text[err];
}
EXPORT_SYMBOL_GPL(xrds_wire_strerror);
