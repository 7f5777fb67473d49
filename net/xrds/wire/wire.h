/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wire format of RDS over RDMA: layouts, limits and the pure functions that
 * encode, decode and validate them. Documentation/xrds-wire.rst is the
 * specification; wire*.c implement it.
 *
 * Nothing in here knows a kernel object: the file is also built in user space
 * by the unit tests and by the fuzz target. All layouts are big-endian.
 * "All" behind a field means every protocol version, "XRDS" only connections
 * in XRDS mode (version 4.8), where both ends have shown the bit, "Legacy"
 * the versions 3.1, 4.0 and 4.1.
 */
#ifndef _XRDS_WIRE_H
#define _XRDS_WIRE_H

#include <linux/types.h>
#include <linux/in6.h>
#include <linux/build_bug.h>

/* Protocol versions: major in the high byte, minor in the low one */
#define XRDS_VER(major, minor)	(((major) << 8) | (minor))
#define XRDS_VER_3_1		XRDS_VER(3, 1)
#define XRDS_VER_4_0		XRDS_VER(4, 0)
#define XRDS_VER_4_1		XRDS_VER(4, 1)
#define XRDS_VER_XRDS		XRDS_VER(4, 8)

enum {
	/* rdma_cm service ports, shared with mainline RDS */
	XRDS_WIRE_PORT_V4		= 18634,
	XRDS_WIRE_PORT_V6		= 16385,

	XRDS_WIRE_HDR_BYTES		= 48,
	XRDS_WIRE_EXT_BYTES		= 16,
	XRDS_WIRE_MAX_MSG_BYTES		= 1 << 20,

	/* one SEND carries at most this much, header included */
	XRDS_WIRE_CLASSIC_PAYLOAD	= 4096,
	XRDS_WIRE_CLASSIC_MAX_PAYLOAD	= 8192,		/* if both sides say so */
	XRDS_WIRE_CLASSIC_FRAG_BYTES	= 48 + XRDS_WIRE_CLASSIC_MAX_PAYLOAD,
	XRDS_WIRE_MIN_FRAG_BYTES	= 16 << 10,	/* XRDS */
	XRDS_WIRE_MAX_FRAG_BYTES	= 64 << 10,	/* XRDS */
	XRDS_WIRE_FRAG_UNIT_BYTES	= 4096,		/* XRDS */

	/* least payload of a fragment that is not the last one (XRDS) */
	XRDS_WIRE_MIN_FRAG_PAYLOAD	= 4096,

	/* several messages in one SEND (XRDS) */
	XRDS_WIRE_MAX_BUNDLE_BYTES	= 4096,
	XRDS_WIRE_MAX_BUNDLE_MSGS	= 64,

	/* short headers (XRDS): flows that have one, credits of one */
	XRDS_WIRE_SLOTS			= 128,
	XRDS_WIRE_SHORT_CREDIT		= 63,

	XRDS_WIRE_MAX_CREDIT		= 127,		/* one header */
	XRDS_WIRE_MAX_HELLO_CREDITS	= 32767,
	XRDS_WIRE_MAX_EOS_REASON	= 2,		/* enum xrds_eos_reason */

	XRDS_WIRE_CONG_PORTS		= 1 << 16,
	XRDS_WIRE_CONG_MAP_BYTES	= XRDS_WIRE_CONG_PORTS / 8,
	XRDS_WIRE_CONG_MAX_ENTRIES	= 512,

	XRDS_WIRE_REFUSED_BYTES		= 16,		/* one entry */
	XRDS_WIRE_REFUSED_MAX_ENTRIES	= 13,

	XRDS_WIRE_PRIV_V4_BYTES		= 32,
	XRDS_WIRE_PRIV_V6_BYTES		= 56,
	XRDS_WIRE_HELLO_BYTES		= 48,
};

/* Minor-version mask in the CM private data */
#define XRDS_WIRE_MASK_4_0	0x0001
#define XRDS_WIRE_MASK_4_1	0x0002
#define XRDS_WIRE_MASK_XRDS	0x0100
#define XRDS_WIRE_MASK		(XRDS_WIRE_MASK_4_0 | XRDS_WIRE_MASK_4_1 | \
				 XRDS_WIRE_MASK_XRDS)

/* xrds_hdr.flags */
#define XRDS_F_CONG_BITMAP	0x01	/* Legacy: if nothing else is set */
#define XRDS_F_ACK_REQUIRED	0x02	/* All */
#define XRDS_F_RETRANSMITTED	0x04	/* All */
#define XRDS_F_HB_PING		0x08	/* Legacy: heartbeat, ports are 0 */
#define XRDS_F_RESUME		0x08	/* XRDS: first again of those refused */
#define XRDS_F_HB_PONG		0x10	/* Legacy: its answer, ports are 0 */
#define XRDS_F_REPLY		0x10	/* XRDS: sent on a reservation */
#define XRDS_F_EXT_EXTENSION	0x20	/* All: extensions modify the RDMA one */
#define XRDS_F_CONTROL		0x40	/* XRDS: dport is an enum xrds_ctl_type */
#define XRDS_F_EOS		0x80	/* XRDS: end of stream of sport to dport */

/**
 * struct xrds_hdr - the header in front of every fragment (All)
 * @seq:	sequence number of the message; 0: not sequenced, or a fragment
 *		with a tag that is not the last one
 * @ack:	all messages up to this one were received
 * @len:	payload bytes of the whole message
 * @sport:	source port
 * @dport:	destination port
 * @flags:	XRDS_F_*
 * @credit:	receive buffers granted since the last header (XRDS)
 * @tag:	which partly received message this fragment belongs to; 0: the one
 *		that others do not pass (XRDS)
 * @frag:	index of this fragment, from 0 (XRDS)
 * @csum:	Internet checksum over the 48 bytes with this field zero;
 *		0: none (not allowed in XRDS mode)
 * @ext:	extension headers
 */
struct xrds_hdr {
	__be64	seq;
	__be64	ack;
	__be32	len;
	__be16	sport;
	__be16	dport;
	__u8	flags;
	__u8	credit;
	__be16	tag;
	__be16	frag;
	__be16	csum;
	__u8	ext[XRDS_WIRE_EXT_BYTES];
};

static_assert(sizeof(struct xrds_hdr) == XRDS_WIRE_HDR_BYTES);

/* Extension header types: one byte of type, then a body of fixed length */
enum xrds_ext_type {
	XRDS_EXT_NONE		= 0,	/* All: end of the list */
	XRDS_EXT_VERSION	= 1,	/* All: 4 bytes */
	XRDS_EXT_RDMA		= 2,	/* All: rkey 4 */
	XRDS_EXT_RDMA_DEST	= 3,	/* All: rkey 4, offset 4 */
	XRDS_EXT_RDMA_BYTES	= 4,	/* All: length 4, direction 1, zero 3 */
	XRDS_EXT_NPATHS		= 5,	/* All: 2 */
	XRDS_EXT_GEN_NUM	= 6,	/* All: 4 */
	XRDS_EXT_CAP_BITS	= 7,	/* Legacy, in heartbeats: XRDS_CAP_ 4 */
	XRDS_EXT_SPORT_IDX	= 8,	/* All: 1 */
	XRDS_EXT_CSUM		= 9,	/* Legacy: sum 4, in use 1, any 3 */
	XRDS_EXT_EOS		= 16,	/* XRDS: reason 4 */
	XRDS_EXT_SILENT		= 17,	/* XRDS: no body */
};

/* Body of XRDS_EXT_CAP_BITS: the sender answers heartbeats */
#define XRDS_CAP_HEARTBEAT	0x00000001

/* Control messages: flags has XRDS_F_CONTROL, dport the type, sport 0 */
enum xrds_ctl_type {
	XRDS_CTL_HELLO		= 1,	/* struct xrds_wire_hello; clear to send */
	XRDS_CTL_CONG		= 2,	/* list of ports and their new state */
	XRDS_CTL_CONG_MAP	= 3,	/* complete map, 8 KiB */
	XRDS_CTL_BYE		= 4,	/* no payload; nothing follows it */
	XRDS_CTL_BYE_ACK	= 5,	/* no payload */
	XRDS_CTL_KEEPALIVE	= 6,	/* no payload; carries ack and credit */
	XRDS_CTL_REFUSED	= 7,	/* list of flows and first numbers */
};

/* Why input from the wire was refused */
enum xrds_wire_err {
#define X(sym, name, text) XRDS_WIRE_##sym
#include "wire/list_errors.h"
#undef X
	XRDS_WIRE_NR_ERRORS
};

/* Which of the optional extension headers of struct xrds_wire_msg are there */
#define XRDS_HAS_RDMA		0x0001
#define XRDS_HAS_RDMA_DEST	0x0002
#define XRDS_HAS_RDMA_BYTES	0x0004
#define XRDS_HAS_NPATHS		0x0008
#define XRDS_HAS_GEN_NUM	0x0010
#define XRDS_HAS_SPORT_IDX	0x0020
#define XRDS_HAS_EOS		0x0040
#define XRDS_HAS_SILENT		0x0080	/* not to be delivered */
#define XRDS_HAS_CAP_BITS	0x0100
#define XRDS_HAS_CSUM		0x0200

/* xrds_wire_msg.rdma_dir: direction of the op in front of the message */
#define XRDS_RDMA_DIR_WRITE	0x01
#define XRDS_RDMA_DIR_READ	0x02

/* Kind of message; follows from the header's flags, ports and length */
enum xrds_wire_kind {
	XRDS_KIND_DATA,		/* from a socket to a socket */
	XRDS_KIND_ACK,		/* carries ack and credit and nothing else */
	XRDS_KIND_PING,		/* to port 0: answer it, drop its payload;
				 * from port 0: a heartbeat (Legacy)
				 */
	XRDS_KIND_PONG,		/* the answer, from port 0; no payload but from
				 * legacy peers
				 */
	XRDS_KIND_EOS,		/* XRDS: end of stream; no payload */
	XRDS_KIND_CTL,		/* XRDS: @dport is an enum xrds_ctl_type */
	XRDS_KIND_CONG_MAP,	/* Legacy: congestion map; @seq is nothing */
	XRDS_KIND_VOID,		/* Legacy: means nothing; @seq is nothing */
};

/* xrds_wire_msg.brief: a short header */
enum xrds_wire_brief {
	XRDS_BRIEF_NOT,		/* a full one */
	XRDS_BRIEF_MORE,	/* the message goes on */
	XRDS_BRIEF_LAST,	/* it ends here */
};

/**
 * struct xrds_wire_msg - a header in host byte order
 * @seq:	see struct xrds_hdr, as all fields up to @frag
 * @ack:	see struct xrds_hdr
 * @len:	see struct xrds_hdr
 * @sport:	see struct xrds_hdr
 * @dport:	see struct xrds_hdr
 * @tag:	see struct xrds_hdr
 * @frag:	see struct xrds_hdr
 * @flags:	see struct xrds_hdr
 * @credit:	see struct xrds_hdr
 * @has:	XRDS_HAS_*: which of the following are present
 * @cap_bits:	XRDS_CAP_* of the sender
 * @csum:	sum of the payload, see xrds_wire_csum_same()
 * @sport_idx:	multipath source port index
 * @npaths:	number of paths of the sender
 * @gen_num:	generation number of the sender
 * @rdma_rkey:	key that the op in front of this message used
 * @dest_rkey:	key of memory offered to the receiver
 * @dest_off:	offset into that memory, bytes
 * @rdma_bytes:	bytes moved by the op
 * @rdma_dir:	XRDS_RDMA_DIR_*
 * @kind:	enum xrds_wire_kind; set by decoding, ignored by encoding
 * @brief:	enum xrds_wire_brief; set by decoding, ignored by encoding
 * @eos_reason:	enum xrds_eos_reason
 */
struct xrds_wire_msg {
	__u64	seq;
	__u64	ack;
	__u32	len;
	__u16	sport;
	__u16	dport;
	__u16	tag;
	__u16	frag;
	__u8	flags;
	__u8	credit;
	__u16	has;
	__u32	cap_bits;
	__u32	csum;
	__u8	sport_idx;
	__u16	npaths;
	__u32	gen_num;
	__u32	rdma_rkey;
	__u32	dest_rkey;
	__u32	dest_off;
	__u32	rdma_bytes;
	__u8	rdma_dir;
	__u8	kind;
	__u8	brief;
	__u32	eos_reason;
};

int xrds_wire_csum_same(__u32 csum, __u16 sum);
void xrds_wire_hdr_encode(struct xrds_hdr *hdr, const struct xrds_wire_msg *msg);
enum xrds_wire_err xrds_wire_hdr_decode(struct xrds_wire_msg *msg,
					const void *buf, __u32 bytes, int ver);
int xrds_wire_hdr_is_hello(const void *buf, __u32 bytes);

/**
 * struct xrds_wire_context - what the headers of one direction have said (XRDS)
 * @seq:	the last number
 * @ack:	the highest acknowledgment
 * @ports:	source and destination of the last flow of each slot; 0: none
 */
struct xrds_wire_context {
	__u64	seq;
	__u64	ack;
	__u32	ports[XRDS_WIRE_SLOTS];
};

void xrds_wire_context_note(struct xrds_wire_context *ctx,
			    const struct xrds_wire_msg *msg);
int xrds_wire_short_fits(const struct xrds_wire_context *ctx,
			 const struct xrds_wire_msg *msg, int last);
__u32 xrds_wire_short_encode(struct xrds_wire_context *ctx,
			     const struct xrds_wire_msg *msg, int last,
			     __u32 bytes);
enum xrds_wire_err xrds_wire_short_decode(struct xrds_wire_msg *msg,
					  struct xrds_wire_context *ctx,
					  __u32 imm, __u32 bytes);

/**
 * struct xrds_wire_reasm - progress of one partly received message
 * @first:	header of fragment 0; valid until the next message begins
 * @got:	payload bytes received so far
 * @take:	of those, in the last fragment; bytes behind them are none of
 *		the message (Legacy)
 * @next:	index of the next fragment
 * @busy:	a message has begun and not ended
 * @open:	its length is not known: all its headers were short
 */
struct xrds_wire_reasm {
	struct xrds_wire_msg first;
	__u32	got;
	__u32	take;
	__u16	next;
	__u8	busy;
	__u8	open;
};

enum xrds_wire_err xrds_wire_reasm_add(struct xrds_wire_reasm *r,
				       const struct xrds_wire_msg *msg,
				       __u32 payload, __u32 max_payload,
				       int ver, int *done);

/**
 * struct xrds_wire_bundle - a SEND with several messages, as far as it was read
 * @bytes:	length of the SEND
 * @payload:	where the payload of the message is that was read last
 * @next:	where the next header is; @bytes: there is none
 * @nr:		messages read
 */
struct xrds_wire_bundle {
	__u32	bytes;
	__u32	payload;
	__u32	next;
	__u16	nr;
};

int xrds_wire_bundled(const struct xrds_wire_msg *msg, __u32 payload);
enum xrds_wire_err xrds_wire_bundle_first(struct xrds_wire_bundle *b,
					  const struct xrds_wire_msg *msg,
					  __u32 bytes);
enum xrds_wire_err xrds_wire_bundle_next(struct xrds_wire_bundle *b,
					 struct xrds_wire_msg *msg,
					 const void *buf);

/**
 * struct xrds_wire_hello - clear-to-send, first message each way (XRDS)
 * @revision:	revision of XRDS mode that the sender speaks, at least 3; the
 *		lower of the two is in force
 * @flags:	XRDS_HELLO_*
 * @frag_bytes:	largest SEND the sender of this can receive, header included
 * @credits:	receive buffers granted
 * @tags:	messages it can receive interleaved, at least 1
 * @lane:	number of this connection between the two nodes
 * @epoch:	the sender's epoch after this connection came up, see
 *		struct xrds_wire_priv
 * @node:	number of the sender's namespace; not 0
 * @peer_node:	number of the namespace that @ack belongs to; 0: none known
 * @ack:	last sequence number received from @peer_node; 0 without it
 */
struct xrds_wire_hello {
	__u16	revision;
	__u16	flags;
	__u32	frag_bytes;
	__u16	credits;
	__u16	tags;
	__u8	lane;
	__u8	epoch;
	__u64	node;
	__u64	peer_node;
	__u64	ack;
};

/* Revisions of XRDS mode */
enum {
	XRDS_REVISION_FIRST	= 3,	/* earlier ones are refused */
	XRDS_REVISION_UNCHECKED	= 4,	/* short headers without a number */
	XRDS_REVISION_NUMBERED	= 5,	/* with a number, and no check of the length */
	XRDS_REVISION_SHORT	= 6,	/* adds those that we know */
	XRDS_REVISION		= 6,	/* ours */
};

/* Flags of a hello */
enum {
	XRDS_HELLO_BUNDLES	= 1,	/* the sender takes several messages in one SEND */
	XRDS_HELLO_KNOWN	= 2,	/* the sender has received messages */
	XRDS_HELLO_UNCHECKED	= 4,	/* it takes those of that revision */
	XRDS_HELLO_NUMBERED	= 8,	/* the same */
	XRDS_HELLO_SHORT	= 16,	/* the sender takes short headers */
};

void xrds_wire_hello_encode(void *buf, const struct xrds_wire_hello *hello);
enum xrds_wire_err xrds_wire_hello_decode(struct xrds_wire_hello *hello,
					  const void *buf, __u32 bytes);

/**
 * struct xrds_wire_cong - a decoded list of congestion changes (XRDS)
 * @full:	the list replaces all earlier state
 * @count:	number of entries
 * @entries:	the entries as they came; read with xrds_wire_cong_entry()
 */
struct xrds_wire_cong {
	__u8	full;
	__u16	count;
	const __u8 *entries;
};

__u32 xrds_wire_cong_bytes(__u16 count);
void xrds_wire_cong_begin(void *buf, __u8 full, __u16 count);
void xrds_wire_cong_put(void *buf, __u16 index, __u16 port, __u8 congested);
enum xrds_wire_err xrds_wire_cong_decode(struct xrds_wire_cong *cong,
					 const void *buf, __u32 bytes);
void xrds_wire_cong_entry(const struct xrds_wire_cong *cong, __u16 index,
			  __u16 *port, __u8 *congested);
int xrds_wire_cong_map_test(const void *map, __u16 port);
void xrds_wire_cong_map_set(void *map, __u16 port);

/**
 * struct xrds_wire_refused - messages of one flow that were refused (XRDS)
 * @seq:	number of the first of them; not 0
 * @sport:	source port in their headers; not 0
 * @dport:	destination port in their headers; not 0
 */
struct xrds_wire_refused {
	__u64	seq;
	__u16	sport;
	__u16	dport;
};

void xrds_wire_refused_put(void *buf, __u16 index,
			   const struct xrds_wire_refused *entry);
int xrds_wire_refused_count(__u32 bytes);
enum xrds_wire_err xrds_wire_refused_entry(const void *buf, __u16 index,
					   struct xrds_wire_refused *entry);

/**
 * struct xrds_wire_priv - CM private data in host byte order
 * @saddr:	address of the node that sends this; IPv4 mapped
 * @daddr:	address of the other node
 * @major:	protocol version offered (REQ) or chosen (REP)
 * @minor:	see @major
 * @mask:	minor versions of major 4 the sender speaks
 * @tos:	type of service
 * @epoch:	how often the sender's connection has come up, modulo 256, from
 *		a random number on; tells a REQ that crossed an established
 *		connection from one that replaces it (XRDS). Reserved byte of
 *		mainline.
 * @payload:	largest payload of a fragment that the sender takes (REQ), or
 *		that both send (REP); 0: XRDS_WIRE_CLASSIC_PAYLOAD (4.1)
 * @ack:	last sequence received (legacy modes)
 * @credits:	0
 */
struct xrds_wire_priv {
	struct in6_addr saddr;
	struct in6_addr daddr;
	__u8	major;
	__u8	minor;
	__u16	mask;
	__u8	tos;
	__u8	epoch;
	__u16	payload;
	__u64	ack;
	__u32	credits;
};

/* Why a request was refused, in the private data of the refusal */
enum xrds_wire_reject {
	XRDS_REJECT_NONE	= 0,	/* no reason was given */
	XRDS_REJECT_VERSION	= 1,	/* All; legacy nodes: any reason */
	XRDS_REJECT_CROSSED	= 2,	/* XRDS: another request has won */
};

enum { XRDS_WIRE_REJECT_BYTES = 4 };

__u32 xrds_wire_priv_encode(void *buf, const struct xrds_wire_priv *priv,
			    int v6);
enum xrds_wire_err xrds_wire_priv_decode(struct xrds_wire_priv *priv,
					 const void *buf, __u32 bytes, int v6);
int xrds_wire_priv_version(const struct xrds_wire_priv *priv, __u16 mask);
int xrds_wire_priv_version_chosen(const struct xrds_wire_priv *priv, __u16 mask);
__u32 xrds_wire_priv_legacy_payload(const struct xrds_wire_priv *priv, int ver);
__u32 xrds_wire_reject_encode(void *buf, enum xrds_wire_reject reason);
enum xrds_wire_reject xrds_wire_reject_decode(const void *buf, __u32 bytes);
const char *xrds_wire_strerror(enum xrds_wire_err err);

#endif /* _XRDS_WIRE_H */
