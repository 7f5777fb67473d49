/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages, one after the other: how they leave a program, and how they reach
 * one.
 *
 * On its way out a message is a struct xrds_msg. send.c makes it, with a
 * reference on its destination; the lists of its connection own it from then
 * on, under conn->lock (L3), until the peer has acknowledged it. On its way in
 * it is an skb: a transport makes it, and it waits in the receive queue of its
 * socket, under that queue's lock (L5), until it is read. What else is to be
 * known of it is in its control block.
 */
#ifndef _XRDS_MSG_H
#define _XRDS_MSG_H

#include <linux/bvec.h>
#include <linux/list.h>
#include <linux/net.h>
#include <linux/refcount.h>
#include <linux/skbuff.h>

#include "xrds.h"

/* --------------------------------------------------------------- msg.c */

/* What a message costs at least, in the send space of its destination and in
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

/**
 * struct xrds_msg - a message on its way out
 * @ref:	one for the list it is on, one per posting
 * @node:	on exactly one of conn->sendq, conn->bulkq and conn->inflight;
 *		conn->lock
 * @dest_node:	in dest->msgs while it is on one of them; conn->lock
 * @dest_nr:	how many have been there; conn->lock
 * @xn:		namespace, for accounting
 * @dest:	where its space is charged, with a reference; NULL for messages
 *		of the kernel itself
 * @accepted:	jiffies when it was queued
 * @seq:	sequence number; 0 until first transmission, and until then on
 *		conn->bulkq; conn->tx_lock
 * @stamp:	when it was queued, by conn->stamp; conn->lock
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
 * @posted:	was handed to the transport at least once, or is now; conn->lock,
 *		constant once @ended is set
 * @ended:	was taken out of the queues; conn->lock
 * @inflight:	counted in dest->inflight_bytes; conn->lock
 * @bulk:	large, and small ones may pass it: it is on conn->bulkq, or
 *		ended there; conn->lock, constant while the transport has it
 * @eos_reason:	with XRDS_F_EOS: enum xrds_eos_reason
 * @skb:	loopback: the receiver's view, made when the message was
 * @nr_bv:	entries of @bv
 * @bv:		payload; each holds a page reference
 */
struct xrds_msg {
	refcount_t ref;
	struct list_head node;
	struct list_head dest_node;
	struct xrds_net *xn;
	struct xrds_dest *dest;
	unsigned long accepted;
	u64 seq;
	u32 stamp;
	u32 dest_nr;
	u32 len;
	u16 sport;
	u16 dport;
	u8 flags;
	u8 has;
	bool posted;
	bool ended;
	bool inflight;
	bool bulk;
	u32 eos_reason;
	u32 rdma_rkey;
	u32 dest_rkey;
	u32 dest_off;
	struct xrds_rop *rop;
	struct sk_buff *skb;
	unsigned int nr_bv;
	struct bio_vec bv[];
};

struct xrds_msg *xrds_msg_alloc(struct xrds_net *xn, unsigned int nr_bv,
				gfp_t gfp);
void xrds_msg_put(struct xrds_msg *msg);
struct page *xrds_msg_page(u32 len, u32 *bytes);
int xrds_msg_frag(struct bio_vec *bv, struct iov_iter *from, u32 len);
struct xrds_msg *xrds_msg_around(struct xrds_net *xn, struct sk_buff *skb,
				 u32 len);
struct xrds_msg *xrds_msg_from_user(struct xrds_net *xn, struct msghdr *m,
				    u32 len);

struct sk_buff *xrds_skb_alloc(u32 len, gfp_t gfp);

static inline void xrds_msg_get(struct xrds_msg *msg)
{
	refcount_inc(&msg->ref);
}

/* -------------------------------------------------------------- send.c */

int xrds_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
void xrds_send_push(struct xrds_sock *xs);

/* -------------------------------------------------------------- recv.c */

/**
 * struct xrds_skb_cb - what a queued message remembers
 * @saddr:	source address, IPv4 mapped
 * @scope:	its scope
 * @len:	payload, bytes
 * @charge:	what it costs of the receive buffer, bytes
 * @sport:	source port
 * @flags:	XRDS_F_EOS; XRDS_F_REPLY when it has come as a reply while the
 *		socket was congested, and is counted by its destination
 * @eos_reason:	with XRDS_F_EOS
 * @cookie:	RDMA cookie that came with it; 0: none
 * @reply:	it has come as a reply
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
};

static inline struct xrds_skb_cb *xrds_skb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct xrds_skb_cb) >
		     sizeof_field(struct sk_buff, cb));
	return (struct xrds_skb_cb *)skb->cb;
}

/* Where a message passes on its way in: what RDS_CMSG_RXPATH_LATENCY measures
 * lies between them.
 */
enum xrds_rx_point {
	XRDS_RX_HDR,		/* a header that begins a message */
	XRDS_RX_START,		/* its first fragment is taken */
	XRDS_RX_END,		/* it is whole, and queued on the socket */
	XRDS_RX_POINTS
};

static_assert((int)XRDS_RX_POINTS == (int)RDS_MSG_RX_DGRAM_TRACE_MAX);

/**
 * struct xrds_skb_trace - what a queued message remembers for those who look
 *	closely; in front of its payload
 * @seq:	sequence number
 * @at:		local_clock() at each point, 0: nobody has looked
 * @tos:	type of service of the connection
 */
struct xrds_skb_trace {
	u64 seq;
	u64 at[XRDS_RX_POINTS];
	u8 tos;
};

static inline struct xrds_skb_trace *xrds_skb_trace(const struct sk_buff *skb)
{
	return (struct xrds_skb_trace *)skb->head;
}

void xrds_recv_msg(struct xrds_conn *conn, const struct xrds_wire_msg *wm,
		   struct sk_buff *skb);
void xrds_recv_batch(struct xrds_conn *conn, bool on);
void xrds_recv_ack_work(struct work_struct *work);
int xrds_recvmsg(struct socket *sock, struct msghdr *msg, size_t size,
		 int flags);
void xrds_recv_purge(struct xrds_sock *xs);
bool xrds_recv_drop_mark(struct xrds_sock *xs, struct sk_buff *skb);
bool xrds_recv_ready(struct xrds_sock *xs, bool marks);
void xrds_recv_shutdown(struct xrds_sock *xs);
int xrds_recv_inq(struct xrds_sock *xs);

/* ------------------------------------------------------------ sk_err.c */

/* Is there an error, and is it the socket's own? */
static inline bool xrds_sk_err_ours(const struct sock *sk)
{
	return READ_ONCE(sk->sk_err) == ENOBUFS;
}

int xrds_sk_err_forget(struct xrds_sock *xs, int error);

/* ---------------------------------------------------------- recv_mem.c */

bool xrds_recv_overflows(struct xrds_sock *xs);
bool xrds_recv_taken(struct xrds_sock *xs, struct sk_buff *skb);
void xrds_recv_charge_skb(struct xrds_sock *xs, struct sk_buff *skb);
bool xrds_recv_congests(struct xrds_sock *xs);
bool xrds_recv_uncharge(struct xrds_sock *xs, const struct sk_buff *skb);
bool xrds_recv_uncharge_all(struct xrds_sock *xs);

/* -------------------------------------------------------------- pong.c */

void xrds_pong_queue(struct xrds_conn *conn, u16 port, bool pump);
void xrds_pong(struct xrds_conn *conn, u16 port);

/* ------------------------------------------------------------- reply.c */

bool xrds_reply_ready(struct xrds_sock *xs, bool marks);
struct sk_buff *xrds_reply_dequeue(struct xrds_sock *xs, bool peek,
				   bool marks);
int xrds_reply_set(struct xrds_sock *xs, u32 bytes);
bool xrds_reply_came(struct xrds_sock *xs, const struct sk_buff *skb);
void xrds_reply_read(struct xrds_sock *xs, const struct sk_buff *skb);

/* ------------------------------------------------------------- trace.c */

void xrds_trace_queued(struct xrds_sock *xs, struct sk_buff *skb);
int xrds_trace_read(struct xrds_sock *xs, struct sk_buff *skb,
		    struct msghdr *m);
int xrds_trace_set(struct xrds_sock *xs, const struct rds_rx_trace_so *arg);
int xrds_stamp_set(struct xrds_sock *xs, int optname, bool on);

#endif /* _XRDS_MSG_H */
