// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wire format: encode, decode and validate the packets of RDS nodes. Here: the
 * header, which travels in front of every fragment, with its extensions.
 *
 *   frag.c    messages in several SENDs
 *   bundle.c  several messages in one SEND
 *   short.c   SENDs without a header
 *   hello.c   packets before the first message: private data, hello
 *   cong.c    lists and maps of congested ports
 *   refused.c lists of refused messages
 *
 * Documentation/xrds-wire.rst is the specification.
 *
 * Everything that arrives is hostile until it has passed one of the decoders of
 * these files: lengths are checked before anything is read, a decoder reads
 * each byte once, into a copy, and hands out host byte order. Decoders make all
 * checks that need the bytes alone. The caller makes those that need the state
 * of the connection: an acknowledgment is for a message that was sent, a tag is
 * one of those offered, credits do not add up to too many, a sequence number is
 * new, a hello comes first, bundles were agreed upon.
 *
 * The legacy versions and XRDS mode differ in strictness. A legacy peer may
 * be any RDS that was ever deployed, so values beyond the specification are
 * ignored where that is harmless. In XRDS mode unknown values are refused, so
 * that each unused bit can get a meaning later.
 *
 * Called by the transports for each SEND, in any context. The functions are
 * pure: no allocation, no global state, no kernel object; the unit tests and
 * the fuzz target build these files in user space as they are. They must never
 * believe a length that they have not compared with the bytes that arrived.
 */
#include <linux/export.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "wire/wire.h"

/* Known flags, in XRDS mode by the others that may be set with them */
#define FLAGS_LEGACY	(XRDS_F_ACK_REQUIRED | XRDS_F_RETRANSMITTED | \
			 XRDS_F_EXT_EXTENSION)
#define FLAGS_DATA	(FLAGS_LEGACY | XRDS_F_REPLY | XRDS_F_RESUME)
#define FLAGS_EOS	(XRDS_F_ACK_REQUIRED | XRDS_F_RETRANSMITTED | \
			 XRDS_F_EOS | XRDS_F_RESUME)
#define FLAGS_CTL	(XRDS_F_ACK_REQUIRED | XRDS_F_CONTROL)

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

/**
 * xrds_wire_csum_same() - do two sums of a payload agree?
 * @csum:	sum of the sender, of 32 bits (Legacy)
 * @sum:	sum of the 16-bit words, little-endian, that have arrived
 *
 * The sender has added words of any length in one's complement arithmetic, so
 * only the remainders by 65535 are the same.
 *
 * Context: any.
 * Return: whether they do.
 */
int xrds_wire_csum_same(__u32 csum, __u16 sum)
{
	return csum % 0xffff == sum % 0xffff;
}
EXPORT_SYMBOL_GPL(xrds_wire_csum_same);

/* -------------------------------------------------------------- headers */

/* Versions that have an extension */
enum {
	EXT_LEGACY	= 1,
	EXT_XRDS	= 2,
	EXT_ALL		= EXT_LEGACY | EXT_XRDS,
};

/* Length of each extension, type and body, the versions that have it, and its
 * bit in xrds_wire_msg.has, 0 if its content is of no interest.
 */
static const struct {
	__u8	bytes;
	__u8	versions;
	__u16	has;
} ext_types[XRDS_EXT_SILENT + 1] = {
	[XRDS_EXT_VERSION]	= { 1 + 4, EXT_ALL, 0 },
	[XRDS_EXT_RDMA]		= { 1 + 4, EXT_ALL, XRDS_HAS_RDMA },
	[XRDS_EXT_RDMA_DEST]	= { 1 + 8, EXT_ALL, XRDS_HAS_RDMA_DEST },
	[XRDS_EXT_RDMA_BYTES]	= { 1 + 8, EXT_ALL, XRDS_HAS_RDMA_BYTES },
	[XRDS_EXT_NPATHS]	= { 1 + 2, EXT_ALL, XRDS_HAS_NPATHS },
	[XRDS_EXT_GEN_NUM]	= { 1 + 4, EXT_ALL, XRDS_HAS_GEN_NUM },
	[XRDS_EXT_CAP_BITS]	= { 1 + 4, EXT_LEGACY, XRDS_HAS_CAP_BITS },
	[XRDS_EXT_SPORT_IDX]	= { 1 + 1, EXT_ALL, XRDS_HAS_SPORT_IDX },
	[XRDS_EXT_CSUM]		= { 1 + 8, EXT_LEGACY, XRDS_HAS_CSUM },
	[XRDS_EXT_EOS]		= { 1 + 4, EXT_XRDS, XRDS_HAS_EOS },
	[XRDS_EXT_SILENT]	= { 1, EXT_XRDS, XRDS_HAS_SILENT },
};

/* The order in which extensions are written. Receivers stop at the first type
 * they do not know, so types that each version understands go first.
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
	XRDS_EXT_CAP_BITS,
	XRDS_EXT_CSUM,
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
	case XRDS_EXT_CAP_BITS:
		put32(body, msg->cap_bits);
		break;
	case XRDS_EXT_SPORT_IDX:
		body[0] = msg->sport_idx;
		break;
	case XRDS_EXT_CSUM:
		put32(body, msg->csum);
		body[4] = 1;
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
	case XRDS_EXT_CAP_BITS:
		msg->cap_bits = get32(body);
		break;
	case XRDS_EXT_SPORT_IDX:
		msg->sport_idx = body[0];
		break;
	case XRDS_EXT_CSUM:
		msg->csum = body[4] ? get32(body) : 0;
		/* without this byte the sum means nothing */
		if (!body[4])
			msg->has &= ~XRDS_HAS_CSUM;
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

/* Take the extension at @pos, if @version has its type. Its bytes; 0 if the type
 * is unknown or the body does not fit.
 */
static __u32 ext_take(struct xrds_wire_msg *msg, const __u8 *ext, __u32 pos,
		      int version)
{
	__u8 type = ext[pos];
	__u32 bytes;

	if (type > XRDS_EXT_SILENT || !(ext_types[type].versions & version))
		return 0;
	bytes = ext_types[type].bytes;
	if (bytes > XRDS_WIRE_EXT_BYTES - pos)
		return 0;
	msg->has |= ext_types[type].has;
	ext_get(msg, ext + pos + 1, type);
	return bytes;
}

/* The list of a legacy peer ends at an unknown type; some peers add an extension
 * once more when they send again.
 */
static void ext_decode_legacy(struct xrds_wire_msg *msg, const __u8 *ext)
{
	__u32 pos = 0, bytes;

	while (pos < XRDS_WIRE_EXT_BYTES && ext[pos] != XRDS_EXT_NONE) {
		bytes = ext_take(msg, ext, pos, EXT_LEGACY);
		if (!bytes)
			return;
		pos += bytes;
	}
}

static enum xrds_wire_err ext_decode(struct xrds_wire_msg *msg,
				     const __u8 *ext)
{
	__u32 pos = 0, bytes;
	__u16 before;

	while (pos < XRDS_WIRE_EXT_BYTES && ext[pos] != XRDS_EXT_NONE) {
		before = msg->has;
		bytes = ext_take(msg, ext, pos, EXT_XRDS);
		if (!bytes || before & ext_types[ext[pos]].has)
			return XRDS_WIRE_EXT;
		pos += bytes;
	}
	return XRDS_WIRE_OK;
}

/**
 * xrds_wire_hdr_encode() - write a header, checksum included
 * @hdr:	where to
 * @msg:	its content; @kind is ignored
 *
 * Extension headers that do not fit are left out.
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

/* Length that a control message must announce */
static int ctl_len_valid(__u16 type, __u32 len)
{
	switch (type) {
	case XRDS_CTL_HELLO:
		return len == XRDS_WIRE_HELLO_BYTES;
	case XRDS_CTL_CONG:
		return len >= xrds_wire_cong_bytes(0) &&
		       len <= xrds_wire_cong_bytes(XRDS_WIRE_CONG_MAX_ENTRIES);
	case XRDS_CTL_CONG_MAP:
		return len == XRDS_WIRE_CONG_MAP_BYTES;
	case XRDS_CTL_REFUSED:
		return xrds_wire_refused_count(len) > 0;
	default:
		return len == 0;
	}
}

static enum xrds_wire_err ctl_check(struct xrds_wire_msg *msg, __u32 payload)
{
	msg->kind = XRDS_KIND_CTL;
	if (msg->flags & ~FLAGS_CTL)
		return XRDS_WIRE_FLAGS;
	if (msg->dport < XRDS_CTL_HELLO || msg->dport > XRDS_CTL_REFUSED)
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

/* A message without a source port: an acknowledgment or a pong */
static enum xrds_wire_err portless_check(struct xrds_wire_msg *msg)
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
static inline enum xrds_wire_err data_check(struct xrds_wire_msg *msg)
{
	if (!msg->sport)
		return portless_check(msg);
	/* only the last fragment of a tagged message has a number */
	if (!msg->seq && !msg->tag)
		return XRDS_WIRE_SEQ;
	msg->kind = msg->dport ? XRDS_KIND_DATA : XRDS_KIND_PING;
	return XRDS_WIRE_OK;
}

/* A bare header of a legacy peer: no ports, and nothing behind it */
static inline int is_bare(const struct xrds_wire_msg *msg, __u32 payload)
{
	return !payload && !msg->sport && !msg->dport;
}

/* Flags of a legacy header. Those of a heartbeat and its answer mean something
 * without ports, and only one of the two.
 */
static __u8 legacy_flags(const struct xrds_wire_msg *msg, __u8 flags)
{
	__u8 beat = flags & (XRDS_F_HB_PING | XRDS_F_HB_PONG);

	flags &= FLAGS_LEGACY | XRDS_F_CONG_BITMAP;
	if (msg->sport || msg->dport ||
	    beat == (XRDS_F_HB_PING | XRDS_F_HB_PONG))
		return flags;
	return flags | beat;
}

/* The kind of a legacy peer's header is found as mainline does it, from all its
 * flags, known or not. A message that would count as received but has no number
 * is refused: mainline's numbers begin anew with it.
 */
static enum xrds_wire_err legacy_check(struct xrds_wire_msg *msg, __u8 flags,
				       __u32 payload)
{
	if (is_bare(msg, payload)) {
		msg->flags &= ~XRDS_F_CONG_BITMAP;
		msg->kind = msg->seq ? XRDS_KIND_PING : XRDS_KIND_ACK;
		return XRDS_WIRE_OK;
	}
	if (flags == XRDS_F_CONG_BITMAP) {
		msg->kind = msg->len == XRDS_WIRE_CONG_MAP_BYTES ?
			    XRDS_KIND_CONG_MAP : XRDS_KIND_VOID;
		return XRDS_WIRE_OK;
	}
	msg->flags &= ~XRDS_F_CONG_BITMAP;
	if (!msg->sport && !msg->dport) {
		msg->kind = msg->seq ? XRDS_KIND_PING : XRDS_KIND_VOID;
		return XRDS_WIRE_OK;
	}
	if (!msg->seq)
		return XRDS_WIRE_SEQ;
	if (!msg->sport)
		msg->kind = XRDS_KIND_PONG;
	else
		msg->kind = msg->dport ? XRDS_KIND_DATA : XRDS_KIND_PING;
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
	/* only messages from a socket to a socket are refused */
	if (msg->flags & XRDS_F_RESUME && (!msg->sport || !msg->dport))
		return XRDS_WIRE_FLAGS;
	if (msg->has & XRDS_HAS_EOS)
		return XRDS_WIRE_EXT;
	if (msg->has & XRDS_HAS_SILENT && (msg->len || !msg->sport))
		return XRDS_WIRE_EXT;
	return data_check(msg);
}

/**
 * xrds_wire_hdr_decode() - read and validate the header of a SEND
 * @msg:	its content; undefined on error
 * @buf:	the SEND, of any alignment
 * @bytes:	length of the SEND, header and payload
 * @ver:	negotiated version, XRDS_VER_*
 *
 * In legacy modes the fields of XRDS mode alone (tag, frag, credit, its flags)
 * are zero in @msg for any content of theirs, and so is the length of a header
 * without ports and payload.
 *
 * Context: any.
 * Return: XRDS_WIRE_OK, or the error: SHORT, CSUM, LEN, SEQ, and in XRDS
 * mode FLAGS, PORT, EXT, FRAG, TAG, CREDIT, CTL_TYPE, CTL_LEN.
 */
enum xrds_wire_err xrds_wire_hdr_decode(struct xrds_wire_msg *msg,
					const void *buf, __u32 bytes, int ver)
{
	__u32 payload = bytes - XRDS_WIRE_HDR_BYTES;
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
	if (!strict && is_bare(msg, payload))
		msg->len = 0;
	if (msg->len > XRDS_WIRE_MAX_MSG_BYTES)
		return XRDS_WIRE_LEN;
	if (!strict) {
		ext_decode_legacy(msg, hdr.ext);
		msg->flags = legacy_flags(msg, hdr.flags);
		return legacy_check(msg, hdr.flags, payload);
	}
	err = ext_decode(msg, hdr.ext);
	if (err)
		return err;
	msg->flags = hdr.flags;
	msg->credit = hdr.credit;
	msg->tag = __be16_to_cpu(hdr.tag);
	msg->frag = __be16_to_cpu(hdr.frag);
	return xrds_check(msg, payload);
}
EXPORT_SYMBOL_GPL(xrds_wire_hdr_decode);

/**
 * xrds_wire_hdr_is_hello() - does a connection begin with a clear-to-send?
 * @buf:	the first SEND, of any alignment
 * @bytes:	its length, header and payload
 *
 * For a dialler that does not know yet which version was chosen. A flag alone
 * does not tell: one that only XRDS mode has means nothing in others.
 *
 * Context: any.
 * Return: 1: XRDS mode; 0: a legacy version.
 */
int xrds_wire_hdr_is_hello(const void *buf, __u32 bytes)
{
	struct xrds_wire_msg msg;

	return !xrds_wire_hdr_decode(&msg, buf, bytes, XRDS_VER_XRDS) &&
	       msg.kind == XRDS_KIND_CTL && msg.dport == XRDS_CTL_HELLO;
}
EXPORT_SYMBOL_GPL(xrds_wire_hdr_is_hello);

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
#include "wire/list_errors.h"
#undef X
	};

	if ((unsigned int)err >= XRDS_WIRE_NR_ERRORS)
		return "unknown error";
	return text[err];
}
EXPORT_SYMBOL_GPL(xrds_wire_strerror);
