/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages, one after the other: how they leave a program, and how they reach
 * one.
 *
 * On its way out a message is a struct xrds_msg. send.c makes it, with a
 * reference on its destination. From then on the queue of its flow owns it, and
 * the lists of its connection once it has a number, all under conn->lock (L3),
 * until the peer has acknowledged it. On its way in
 * it is an skb: a transport makes it, and it waits in the receive queue of its
 * socket, under that queue's lock (L5), until it is read. The other
 * fields of it are in its control block.
 */
#ifndef _XRDS_MSG_H
#define _XRDS_MSG_H

#include <linux/bvec.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/refcount.h>
#include <linux/skbuff.h>

#include "xrds.h"

/* --------------------------------------------------------------- msg.c */

/* The least charge of a message, in the send space of its destination and in
 * the receive buffer, both of which are in bytes of payload. The former bounds
 * how many may be under way to a receiver that has no room any more: each takes
 * 768 bytes of memory there, be it empty.
 */
enum {
	XRDS_MSG_MIN_CHARGE_BYTES	= 64,
	XRDS_RECV_MIN_CHARGE_BYTES	= 16,
};

static inline u32 xrds_msg_charge(u32 len)
{
	return max_t(u32, len, XRDS_MSG_MIN_CHARGE_BYTES);
}

static inline u32 xrds_recv_charge(u32 len)
{
	return max_t(u32, len, XRDS_RECV_MIN_CHARGE_BYTES);
}

enum {
	/* struct xrds_skb_trace, 8 bytes aligned */
	XRDS_SKB_TRACE_BYTES	= 48,
	/* The head of an skb beside its payload: the trace before it, and behind
	 * it the shared part, which begins in a cache line of its own. Rounding up
	 * to that line takes less than a line more than this: it reaches no power
	 * of two that the sum does not reach.
	 */
	XRDS_SKB_HEAD_BYTES	= SKB_DATA_ALIGN(sizeof(struct skb_shared_info)) +
				  SKB_DATA_ALIGN(XRDS_SKB_TRACE_BYTES),
	/* A payload up to this is in one slab object of half a page with the
	 * message, or with the rest of an skb's head. A larger one has pages of its
	 * own. So none shares its memory with another message.
	 */
	XRDS_MSG_SMALL_BYTES	= PAGE_SIZE / 2 - XRDS_SKB_HEAD_BYTES,
	/* see xrds_msg_mem() */
	XRDS_MSG_OBJS_BYTES	= 512,
};

/* The memory that a message takes until it is acknowledged, bytes. It is known
 * before the payload is copied, and at least what a transport takes: over
 * loopback the message, an skb with its head, and pages. Without an skb it is
 * less.
 */
static inline u32 xrds_msg_mem(u32 len)
{
	u32 head = XRDS_SKB_HEAD_BYTES;
	u32 pages = 0;

	if (len > XRDS_MSG_SMALL_BYTES)
		pages = PAGE_ALIGN(len);
	else
		head += len;
	return XRDS_MSG_OBJS_BYTES + roundup_pow_of_two(head) + pages;
}

/**
 * struct xrds_zcopy - a send with MSG_ZEROCOPY
 * @node:	in xs->zcopied from its end until that is read
 * @pin:	the program's memory; NULL: the payload was copied, or it has ended
 * @cookie:	the program's name for it
 */
struct xrds_zcopy {
	struct list_head node;
	struct xrds_pin *pin;
	u32 cookie;
};

/**
 * struct xrds_msg - a message on its way out
 * @ref:	one for the list it is on, one per posting
 * @node:	on exactly one of its flow's queue, conn->again and
 *		conn->inflight; conn->lock
 * @flow_node:	in flow->msgs while it is on one of them; conn->lock
 * @xn:		namespace, for accounting
 * @flow:	of its destination, with a reference; NULL for messages
 *		of the kernel itself
 * @life:	conn->tx_life when it was queued; constant
 * @seq:	sequence number, 0 while in its flow's queue; written under
 *		conn->tx_lock and conn->lock
 * @stamp:	when it was queued, by conn->stamp; constant
 * @len:	payload, bytes
 * @sport:	source port
 * @dport:	destination port
 * @flags:	XRDS_F_* of its header; conn->tx_lock
 * @has:	XRDS_HAS_RDMA, XRDS_HAS_RDMA_DEST: which keys its header has
 * @rdma_rkey:	see struct xrds_wire_msg
 * @dest_rkey:	see struct xrds_wire_msg
 * @dest_off:	see struct xrds_wire_msg
 * @rop:	op in front of it, with a reference; ends at the transport once
 *		@posted is set
 * @notice:	comes, or may come, when the message ends; NULL:
 *		none; the pump reads it without a lock
 * @zcopy:	the payload is the program's memory, and this ends with the
 *		message; NULL: it is not
 * @posted:	was handed to the transport at least once, or is now; conn->lock,
 *		constant once @ended is set
 * @ended:	was taken out of the queues; conn->lock
 * @inflight:	counted in flow->inflight_bytes; conn->lock
 * @bulk:	large, and the transport has it in part: it is conn->tx_bulk
 * @eos_reason:	with XRDS_F_EOS: enum xrds_eos_reason
 * @borrowed:	no reference is held on the pages of @bv: the payload is behind
 *		@bv, or pinned
 * @scattered:	only an XRDS node can get it: the payload is in pieces
 * @kept:	a device may read the payload for good, so its memory is not
 *		freed; conn->tx_lock, while there is a reference
 * @skb:	loopback: the receiver's view, made when the message was
 * @nr_bv:	entries of @bv
 * @bv:		payload; each holds a page reference, unless @borrowed
 */
struct xrds_msg {
	refcount_t ref;
	struct list_head node;
	struct list_head flow_node;
	struct xrds_net *xn;
	struct xrds_flow *flow;
	u64 seq;
	u64 stamp;
	u32 life;
	u32 len;
	u16 sport;
	u16 dport;
	u8 flags;
	u8 has;
	bool posted;
	bool ended;
	bool inflight;
	bool bulk;
	bool borrowed;
	bool scattered;
	bool kept;
	u32 eos_reason;
	u32 rdma_rkey;
	u32 dest_rkey;
	u32 dest_off;
	struct xrds_rop *rop;
	struct xrds_notice *notice;
	struct xrds_zcopy *zcopy;
	struct sk_buff *skb;
	unsigned int nr_bv;
	struct bio_vec bv[];
};

struct xrds_msg *xrds_msg_alloc(struct xrds_net *xn, unsigned int nr_bv,
				gfp_t gfp);
void xrds_msg_put(struct xrds_msg *msg);
struct page *xrds_msg_page(u32 len, u32 *bytes);
struct xrds_msg *xrds_msg_around(struct xrds_net *xn, struct sk_buff *skb,
				 u32 len);
struct xrds_msg *xrds_msg_from_user(struct xrds_net *xn, struct msghdr *m,
				    u32 len);
u32 xrds_msg_copy_to(const struct xrds_msg *msg, void *to);

struct sk_buff *xrds_msg_alloc_skb(u32 len, gfp_t gfp);

static inline void xrds_msg_get(struct xrds_msg *msg)
{
	refcount_inc(&msg->ref);
}

/* ---------------------------------------------------- on their way in */

/**
 * struct xrds_skb_cb - what a queued message remembers
 * @saddr:	source address, IPv4 mapped
 * @scope:	its scope
 * @len:	payload, bytes
 * @charge:	its charge to the receive buffer, bytes
 * @sport:	source port
 * @flags:	XRDS_F_EOS; XRDS_F_REPLY when it has come as a reply while the
 *		socket was congested, and is counted by its destination
 * @eos_reason:	with XRDS_F_EOS
 * @cookie:	RDMA cookie that came with it; 0: none
 * @reply:	it has come as a reply
 * @sorted:	its source has it, see srcq.c
 * @nr:		ascends along the receive queue: xs->rcv_nr when it came
 */
struct xrds_skb_cb {
	struct in6_addr saddr;
	u32 scope;
	u32 len;
	u32 charge;
	u16 sport;
	u8 flags;
	u8 eos_reason;
	u64 cookie;
	bool reply;
	bool sorted;
	u32 nr;
};

static inline struct xrds_skb_cb *xrds_skb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct xrds_skb_cb) >
		     sizeof_field(struct sk_buff, cb));
	return (struct xrds_skb_cb *)skb->cb;
}

/* Whom is a queued message from? */
static inline struct xrds_addr xrds_skb_from(const struct xrds_skb_cb *cb)
{
	return (struct xrds_addr){
		.addr	= cb->saddr,
		.scope	= cb->scope,
		.port	= cb->sport,
	};
}

/* Points of a message's way in. RDS_CMSG_RXPATH_LATENCY measures the times
 * between them.
 */
enum xrds_rx_point {
	XRDS_RX_HDR,		/* a header that begins a message */
	XRDS_RX_START,		/* its first fragment is taken */
	XRDS_RX_END,		/* it is whole, and queued on the socket */
	XRDS_RX_POINTS
};

static_assert((int)XRDS_RX_POINTS == (int)RDS_MSG_RX_DGRAM_TRACE_MAX);

/**
 * struct xrds_skb_trace - fields of a queued message that its control block has
 *	no space for; in front of its payload
 * @next:	the next message of its source, see srcq.c
 * @seq:	sequence number
 * @at:		local_clock() at each point, 0: nobody has looked
 * @tos:	type of service of the connection
 */
struct xrds_skb_trace {
	struct sk_buff *next;
	u64 seq;
	u64 at[XRDS_RX_POINTS];
	u8 tos;
};

static_assert(ALIGN(sizeof(struct xrds_skb_trace), 8) == XRDS_SKB_TRACE_BYTES);

static inline struct xrds_skb_trace *xrds_skb_trace(const struct sk_buff *skb)
{
	return (struct xrds_skb_trace *)skb->head;
}

#endif /* _XRDS_MSG_H */
