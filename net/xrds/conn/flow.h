/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Flows, and the objects that they share on a connection: shares of users, ports
 * of the peer, streams.
 * conn.h includes it.
 */
#ifndef _XRDS_CONN_FLOW_H
#define _XRDS_CONN_FLOW_H

#include <linux/list.h>
#include <linux/rhashtable.h>

#include "conn/fq.h"
#include "transport.h"
#include "xrds.h"

/* -------------------------------------------------------------- part.c */

enum xrds_part_kind {
	XRDS_PART_SHARE,	/* by user */
	XRDS_PART_GATE,		/* by port of the peer */
	XRDS_PART_STREAM,	/* by both ports */
	XRDS_PART_REFUSAL,	/* by both ports, of the peer's stream */
	XRDS_PART_LINK,		/* by struct xrds_port, of a socket of ours */
};

/**
 * struct xrds_part_key - key of the table of parts
 * @conn:	the connection
 * @id:		which; by kind
 * @kind:	enum xrds_part_kind; 64 bits wide so that there is no padding
 */
struct xrds_part_key {
	struct xrds_conn *conn;
	u64 id;
	u64 kind;
};

/**
 * struct xrds_part - something that flows of a connection share
 * @node:	in xn->parts
 * @key:	which
 * @users:	references; conn->lock
 * @rcu:	for lookups of others
 */
struct xrds_part {
	struct rhash_head node;
	struct xrds_part_key key;
	u32 users;
	struct rcu_head rcu;
};

extern const struct rhashtable_params xrds_part_params;

struct xrds_part *xrds_part_find(struct xrds_conn *conn,
				 enum xrds_part_kind kind, u64 id);
struct xrds_part *xrds_part_make(struct xrds_conn *conn,
				 enum xrds_part_kind kind, u64 id, size_t size);
void xrds_part_get(struct xrds_part *part);
void xrds_part_put(struct xrds_part *part);

/* The id of a stream: source port and destination port */
static inline u64 xrds_part_ports(u16 sport, u16 dport)
{
	return (u32)sport << 16 | dport;
}

/* -------------------------------------------------------------- gate.c */

/**
 * struct xrds_gate - a port of the peer; conn->lock
 * @part:	by the port; every flow to it has a reference
 * @shut:	the peer takes no messages to it; also read without the lock
 * @shut_node:	in conn->gates while @shut
 * @parked:	flows that wait until it is open
 * @waiters:	flows whose sender was refused for it, each with a reference
 */
struct xrds_gate {
	struct xrds_part part;
	bool shut;
	struct list_head shut_node;
	struct list_head parked;
	struct list_head waiters;
};

bool xrds_gate_port_shut(const struct xrds_conn *conn, u16 port);
bool xrds_gate_shut(const struct xrds_conn *conn, const struct xrds_flow *flow);
bool xrds_gate_waits(struct xrds_conn *conn, const struct xrds_flow *flow);
struct xrds_gate *xrds_gate_find(struct xrds_conn *conn, u16 port);
struct xrds_gate *xrds_gate_get(struct xrds_conn *conn, u16 port);
void xrds_gate_put(struct xrds_gate *gate);
void xrds_gate_close(struct xrds_gate *gate);

/* ------------------------------------------------------------- share.c */

/**
 * struct xrds_share - the share of one user in a connection; conn->lock
 * @part:	by the user; every flow of the user's has a reference
 * @node:	among the users, in conn->fq
 * @fq:		the user's flows
 * @conn_node:	in conn->shares
 * @dial:	the connection's place in the user's row (dialq.c)
 */
struct xrds_share {
	struct xrds_part part;
	struct xrds_fq_node node;
	struct xrds_fq fq;
	struct list_head conn_node;
	struct xrds_dial dial;
};

struct xrds_share *xrds_share_get(struct xrds_conn *conn,
				  struct xrds_user *user);
void xrds_share_put(struct xrds_share *share);

/* -------------------------------------------------------------- flow.c */

/* The window of a stream: the most that its flows may have in flight together, and
 * that a refusal takes back at once
 */
enum {
	XRDS_FLOW_WINDOW_BYTES	= 1 << 20,
	XRDS_FLOW_WINDOW_MSGS	= 256,
};

/**
 * struct xrds_stream - flows between two ports; conn->lock
 * @part:	by both ports
 * @flows:	mostly one; more if closed sockets still have messages there; the
 *		oldest first
 * @queued:	those of them that have something in their queue, in the same
 *		order: the first one may send
 * @joined:	flows that have joined, ever
 * @inflight_msgs: messages of all flows in flight
 * @inflight_bytes: payload of these
 * @resumed:	number of the last message that was to end a refusal, 0: none
 * @resumed_gen: conn->ep_gen when it went out
 * @resume:	the next message ends a refusal, if there is one
 * @refused:	there is one
 */
struct xrds_stream {
	struct xrds_part part;
	struct list_head flows;
	struct list_head queued;
	u64 joined;
	u32 inflight_msgs;
	u64 inflight_bytes;
	u64 resumed;
	u32 resumed_gen;
	bool resume;
	bool refused;
};

enum xrds_flow_state {
	XRDS_FLOW_IDLE,		/* nothing is queued */
	XRDS_FLOW_BEHIND,	/* an older flow of its stream goes first */
	XRDS_FLOW_READY,	/* waits in its user's share */
	XRDS_FLOW_PART,		/* the transport has a part of a message of its stream */
	XRDS_FLOW_WINDOW,	/* too much is in flight */
	XRDS_FLOW_GATE,		/* parked at its port, which is shut */
	XRDS_FLOW_OP,		/* an earlier op of its socket goes first */
};

/**
 * struct xrds_flow - what one socket has on one connection toward one port
 * @ref:	references on the destination that it is a member of
 * @lport:	its socket's port; constant
 * @port:	the peer's port; constant
 * @begun:	a message was sent, and no ping: the stream ends with a mark
 * @lock:	its socket's, L4
 * @user:	its socket's; constant
 * @conn:	connection to the node, with a reference; written under both
 *		that connection's lock and @lock, read under either. RCU
 *		readers look again under a lock
 * @conn_node:	in conn->flows while @conn is set; guarded the same way
 * @share:	its user's, while @conn is set; conn->lock, as all below
 * @gate:	the peer's port, while @conn is set, NULL for port 0; also RCU
 *		readers
 * @stream:	all flows with these ports, while @conn is set
 * @stream_node: in stream->flows
 * @queued_node: in stream->queued while @queue is not empty
 * @age:	stream->joined when it joined
 * @state:	enum xrds_flow_state
 * @class:	in which line it is, while READY
 * @fq_node:	among the flows of its user
 * @parked:	in gate->parked
 * @replies:	messages in @queue that were sent on a reservation
 * @queue:	messages that were not sent, oldest first
 * @msgs:	the same, and those in flight before them
 * @inflight_msgs: messages that were transmitted, and not acknowledged
 * @inflight_bytes: payload of these
 * @unasked:	charges of messages that went out since an acknowledgment was
 *		asked for; tx_lock of its connection; bytes
 * @cong_node:	in gate->waiters after a refusal for congestion; both
 *		conn->lock and @lock
 */
struct xrds_flow {
	refcount_t ref;
	u16 lport;
	u16 port;
	bool begun;
	spinlock_t *lock;		/* L4 of its socket */
	struct xrds_user *user;
	struct xrds_conn *conn;
	struct list_head conn_node;
	struct xrds_share *share;
	struct xrds_gate *gate;
	struct xrds_stream *stream;
	struct list_head stream_node;
	struct list_head queued_node;
	u64 age;
	u8 state;
	u8 class;
	struct xrds_fq_node fq_node;
	struct list_head parked;
	u32 replies;
	struct list_head queue;
	struct list_head msgs;
	u32 inflight_msgs;
	u64 inflight_bytes;
	u64 unasked;
	struct list_head cong_node;
};

/* Begin a flow, zeroed, of a socket with this lock (L4) and user */
static inline void xrds_flow_init(struct xrds_flow *flow, u16 lport, u16 port,
				  spinlock_t *lock, struct xrds_user *user)
{
	flow->lport = lport;
	flow->port = port;
	flow->lock = lock;
	flow->user = user;
	INIT_LIST_HEAD(&flow->conn_node);
	INIT_LIST_HEAD(&flow->stream_node);
	INIT_LIST_HEAD(&flow->queued_node);
	INIT_LIST_HEAD(&flow->parked);
	INIT_LIST_HEAD(&flow->queue);
	INIT_LIST_HEAD(&flow->msgs);
	INIT_LIST_HEAD(&flow->cong_node);
	xrds_fq_init_node(&flow->fq_node);
}

struct xrds_conn *xrds_flow_conn(struct xrds_flow *flow);
struct xrds_conn *xrds_flow_join(struct xrds_flow *flow,
				 struct xrds_conn *conn);
void xrds_flow_leave_dead(struct xrds_flow *flow);
void xrds_flow_leave_all(struct xrds_conn *conn);
struct xrds_flow *xrds_flow_walk(struct xrds_conn *conn,
				 struct xrds_flow *flow);
void xrds_flow_put(struct xrds_flow *flow);
bool xrds_flow_update(struct xrds_conn *conn, struct xrds_flow *flow);
struct xrds_msg *xrds_flow_next(struct xrds_conn *conn);
bool xrds_flow_bulk_holds(struct xrds_conn *conn);
bool xrds_flow_large(const struct xrds_conn *conn, const struct xrds_msg *msg);
bool xrds_flow_any_ready(const struct xrds_conn *conn);
bool xrds_flow_passes(const struct xrds_conn *conn,
		      const struct xrds_flow *flow, const struct xrds_msg *msg);
void xrds_flow_pass(struct xrds_flow *flow, u64 bytes);
void xrds_flow_charge(struct xrds_flow *flow, u64 bytes);
void xrds_flow_refund(struct xrds_flow *flow, u64 bytes);

/* A message can fail no more: its stream has begun, and will end with a mark. A
 * ping begins none. The message still has its space, and whether a mark is due
 * is asked under @flow->lock when that is given back.
 */
static inline void xrds_flow_begin(struct xrds_flow *flow)
{
	WRITE_ONCE(flow->begun, flow->port != 0);
}

static inline void xrds_flow_get(struct xrds_flow *flow)
{
	refcount_inc(&flow->ref);
}

#endif /* _XRDS_CONN_FLOW_H */
