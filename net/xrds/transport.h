/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Transports: what carries messages between two nodes, as the core sees it.
 *
 * Loopback is always there; RDMA registers when its module is loaded. The core
 * calls a transport by its operations only, and a transport calls the core: of
 * messages, acknowledgments, the ends of ops, and events of its endpoints.
 */
#ifndef _XRDS_TRANSPORT_H
#define _XRDS_TRANSPORT_H

#include <linux/list.h>
#include <linux/net.h>

#include "xrds.h"

struct xrds_request;

/* ----------------------------------------------------------- transport */

/* mainline's number for what is not among RDS_TRANS_* */
enum { XRDS_TRANS_LOOP = 3 };

/* xrds_transport.caps */
#define XRDS_CAP_RDMA		1	/* RDMA ops and memory regions */

enum { XRDS_DEVICE_NAME_BYTES = 64 };

/**
 * struct xrds_conn_detail - what dumps say of an endpoint
 * @device:	name of the device
 * @shared_rq:	receives from the device's shared receive queue
 * @qpn:	number of the queue pair
 * @peer_qpn:	the same of the peer's, 0: not known
 * @version:	of the protocol, 256 * major + minor, 0: not known
 * @mtu:	of the path, bytes, 0: not known
 * @fragment:	most payload of a fragment, bytes
 * @send_slots:	work requests that may be posted
 * @send_used:	those of them that are
 * @credits:	fragments that the peer has granted and that are not used
 * @recv_window: most fragments granted to the peer at a time
 * @retry_count: retransmissions before the peer counts as dead
 * @rtt_ns:	round trip of a send, smoothed, 0: not known
 */
struct xrds_conn_detail {
	char device[XRDS_DEVICE_NAME_BYTES];
	bool shared_rq;
	u32 qpn;
	u32 peer_qpn;
	u32 version;
	u32 mtu;
	u32 fragment;
	u32 send_slots;
	u32 send_used;
	u32 credits;
	u32 recv_window;
	u32 retry_count;
	u64 rtt_ns;
};

/**
 * struct xrds_device_detail - what dumps say of a device
 * @name:	its name
 * @guid:	its number in the world
 * @shared_rq:	endpoints share a receive queue
 * @fences:	can be trusted with fences
 * @atomics:	has atomic operations
 * @endpoints:	queue pairs of connections
 * @regions:	memory regions
 * @recv_posted: buffers in the shared receive queue
 * @recv_bytes:	size of one of them, 0: there is no queue
 * @max_qp:	queue pairs
 * @max_qp_wr:	work requests of a queue pair
 * @max_cqe:	entries of a completion queue
 * @max_sge:	gather entries of a send
 * @max_srq:	shared receive queues
 * @max_srq_wr:	buffers of a shared receive queue
 * @max_mr:	memory regions
 * @max_mr_pages: pages of one of them
 * @max_rd_atomic: reads and atomics under way at a time
 */
struct xrds_device_detail {
	char name[XRDS_DEVICE_NAME_BYTES];
	u64 guid;
	bool shared_rq;
	bool fences;
	bool atomics;
	u32 endpoints;
	u32 regions;
	u32 recv_posted;
	u32 recv_bytes;
	u32 max_qp;
	u32 max_qp_wr;
	u32 max_cqe;
	u32 max_sge;
	u32 max_srq;
	u32 max_srq_wr;
	u32 max_mr;
	u32 max_mr_pages;
	u32 max_rd_atomic;
};

/**
 * struct xrds_transport - what carries messages between two nodes
 * @name:	name in dumps and log lines
 * @owner:	module
 * @type:	RDS_TRANS_*, XRDS_TRANS_LOOP
 * @caps:	XRDS_CAP_*
 * @node:	list of transports
 * @leaving:	being unregistered: no connection is made any more
 * @local:	is the address one of this transport's in the namespace?
 *		Returns 0 or -EADDRNOTAVAIL. Process context.
 * @enter:	a socket is about to be bound to such an address: be ready for
 *		requests. Process context, may sleep. Optional. Returns 0 or a
 *		negative errno.
 * @leave:	one that was, or was about to be, has gone. As @enter.
 * @dial:	start an attempt: make an endpoint, resolve the address. Later
 *		steps are announced by XRDS_EV_RESOLVED.
 *		Returns 0 or a negative errno.
 * @advance:	a step of resolving is done. Returns -EINPROGRESS while steps
 *		remain, 0 when the request was sent, else a negative errno.
 * @accept:	take the pending request (xrds_conn_take_pending()), make an
 *		endpoint for it and reply. Returns 0 or a negative errno.
 * @refuse:	reject and free a pending request.
 * @start:	the endpoint is established: post receive buffers, send the
 *		clear-to-send. Returns 0 or a negative errno.
 * @stop:	take conn->ep away (under tx_lock), disconnect, wait until the
 *		device has returned all buffers, free it. Bounded; does
 *		nothing without endpoint.
 * @flushed:	does the peer's device have all that was posted? Returns 1; 0:
 *		not yet, XRDS_EV_IDLE follows; or a negative errno: it never
 *		will. Optional: it always has.
 * @payload:	process context, may sleep: take the payload of a message from a
 *		program, in the skb that its receiver will get; it becomes
 *		msg->skb. Returns it or an ERR_PTR(). Optional: without it the
 *		payload goes into msg->bv.
 * @direct:	with @payload: hand that of a message, and what else is known of
 *		it, to the receiver at once. Returns 0, and has consumed the
 *		skb; -EAGAIN: the message is to be queued. Process context.
 * @prepare:	process context, may sleep: make what xmit() will need for the
 *		message. Optional. Returns 0 or a negative errno. What it makes
 *		for msg->rop is in one piece, which the core frees with the op.
 * @xmit:	post a whole message; msg->seq and msg->flags are set, but with
 *		msg->bulk it is xrds_bulk_number() that sets msg->seq: to be
 *		called when the last of the message is about to be posted. Called
 *		with tx_lock held and conn->tx_open. Takes its own reference
 *		on the message for as long as it needs it. Returns 0; -EAGAIN
 *		when it lacks slots or credits, in which case it calls
 *		xrds_xmit_pump() once they come; any other error breaks the
 *		connection. Unless it answers -EAGAIN it ends msg->rop, by
 *		xrds_rop_done() exactly once, not later than in @stop. It may
 *		take the messages behind this one with it: xrds_xmit_also().
 * @mr_reg:	register mr->pin for the access asked for; sets mr->key.rkey and
 *		mr->offset. Process context, may sleep. Returns 0 or a negative
 *		errno. This and the next two only with XRDS_CAP_RDMA.
 * @mr_unreg:	make the key void; when it returns no peer touches the memory,
 *		for certain with mr->invalidate, else as far as the device goes
 *		by that. Process context, may sleep.
 * @describe:	fill in what RDS_INFO_IB_CONNECTIONS says of the endpoint. Called
 *		with tx_lock held and an endpoint that is up. Only
 *		RDS_TRANS_IB has it.
 * @detail:	fill in what the netlink family says of the endpoint. Called with
 *		tx_lock held and an endpoint. Optional.
 * @device:	fill in what it says of the device with this number, from 0.
 *		Process context, may sleep. Optional. Returns 0, -ENOENT when
 *		there are no more, -EAGAIN when the namespace does not see
 *		this one.
 * @xmit_ctl:	post a control message of at most XRDS_CTL_INLINE_BYTES, or
 *		an acknowledgment (type 0). Called as xmit(), same returns.
 *
 * dial, advance, accept, start, flushed, stop run in the connection's work and
 * may sleep, but wait for nothing that is not bounded.
 */
struct xrds_transport {
	const char *name;
	struct module *owner;
	u32 type;
	u32 caps;
	struct list_head node;
	bool leaving;

	int (*local)(struct net *net, const struct in6_addr *addr, u32 scope);
	int (*enter)(struct net *net);
	void (*leave)(struct net *net);
	int (*dial)(struct xrds_conn *conn);
	int (*advance)(struct xrds_conn *conn);
	int (*accept)(struct xrds_conn *conn);
	void (*refuse)(struct xrds_conn *conn, struct xrds_request *req);
	int (*start)(struct xrds_conn *conn);
	int (*flushed)(struct xrds_conn *conn);
	void (*stop)(struct xrds_conn *conn);
	struct sk_buff *(*payload)(struct iov_iter *from, u32 len);
	int (*direct)(struct xrds_conn *conn, struct xrds_wire_msg *wm,
		      struct sk_buff *skb);
	int (*prepare)(struct xrds_conn *conn, struct xrds_msg *msg);
	int (*xmit)(struct xrds_conn *conn, struct xrds_msg *msg);
	int (*xmit_ctl)(struct xrds_conn *conn, u8 type, const void *data,
			u32 len);
	int (*mr_reg)(struct xrds_mr *mr);
	void (*mr_unreg)(struct xrds_mr *mr);
	void (*describe)(const struct xrds_conn *conn,
			 struct rds6_info_rdma_connection *row);
	void (*detail)(const struct xrds_conn *conn,
		       struct xrds_conn_detail *d);
	int (*device)(const struct net *net, unsigned int nr,
		      struct xrds_device_detail *d);
};

/* transport.c */
void xrds_transport_register(struct xrds_transport *trans);
void xrds_transport_unregister(struct xrds_transport *trans);
const struct xrds_transport *xrds_transport_get(u32 type);
const struct xrds_transport *xrds_transport_for(struct net *net,
						const struct in6_addr *addr,
						u32 scope);
int xrds_transport_device(const struct net *net, unsigned int *nr,
			  struct xrds_device_detail *d, const char **transport);
int xrds_transport_enter(const struct xrds_transport *trans, struct net *net);
void xrds_transport_leave(const struct xrds_transport *trans, struct net *net);

/* loop.c */
extern struct xrds_transport xrds_loop_transport;

/* loop_rdma.c */
int xrds_loop_mr_reg(struct xrds_mr *mr);
void xrds_loop_mr_unreg(struct xrds_mr *mr);
/* most bytes that an op over loopback copies with softirqs off */
enum { XRDS_LOOP_PIECE_BYTES = 64 << 10 };
s32 xrds_loop_rdma(struct xrds_conn *conn, const struct xrds_rop *rop);
s32 xrds_loop_rdma_long(struct xrds_conn *conn, const struct xrds_rop *rop,
			const bool *stop);

#endif /* _XRDS_TRANSPORT_H */
