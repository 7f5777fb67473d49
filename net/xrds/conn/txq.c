// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queues of messages on their way out.
 *
 *   xrds_txq_append -> flow->queue -> xrds_txq_take -> conn->inflight
 *                         ^                                 |
 *                         +-- refused --    conn->again <-- reconnect
 *
 * One that would be the first in all queues goes to inflight at once, with
 * xrds_txq_pass().
 *
 * A message is on exactly one of these lists. It gets its sequence number when
 * the pump takes it from its flow, and keeps it when it is sent again on another
 * endpoint, from conn->again and before all others. One that the peer refuses
 * goes back to its flow, and gets another number (refuse.c).
 *
 * A large message is not taken: it stays at the head of its flow, without a
 * number, while the transport has it in part (conn->tx_bulk). Messages are
 * numbered in the order in which they are complete at the peer, so neither side
 * has to remember more than one number. xrds_txq_bulk_number() moves it to
 * inflight when its last fragment goes out.
 *
 * conn->lock guards all lists. The pump, which takes messages, holds
 * conn->tx_lock, too.
 */
#include "conn/conn.h"
#include "msg.h"
#include "tracepoints.h"
#include "xrds.h"

/* The flow that a message is in: its destination's, or the connection's own */
static struct xrds_flow *xrds_txq_flow(struct xrds_conn *conn,
				       const struct xrds_msg *msg)
{
	return msg->flow ?: conn->own;
}

/* Count a message that comes into its flow's queue, or leaves it. */
static void xrds_txq_count(struct xrds_flow *flow, const struct xrds_msg *msg,
			   int n)
{
	if (msg->flags & XRDS_F_REPLY)
		flow->replies += n;
}

/* An op was posted, or has ended: the next one of its socket and node may go.
 * Returns whether it can go now.
 */
static bool xrds_txq_pass_op(struct xrds_conn *conn, struct xrds_msg *msg)
{
	struct xrds_flow *next;

	next = msg->rop ? xrds_rop_pass(msg->rop, conn) : NULL;
	return next && xrds_flow_update(conn, next);
}

/* A message comes to its connection. */
static void xrds_txq_enter(struct xrds_conn *conn, struct xrds_flow *flow,
			   struct xrds_msg *msg)
{
	msg->life = conn->tx_life;
	msg->stamp = ++conn->stamp;
	list_add_tail(&msg->flow_node, &flow->msgs);
	xrds_flow_begin(flow);
	/* nothing waits, and no peer is there: it is for the next one */
	if (!conn->nr_msgs++ && conn->state != XRDS_ST_UP)
		conn->legacy.was = false;
	if (!msg->flow)
		conn->kmsgs++;
	trace_xrds_msg_queue(msg);
}

/* An XRDS node was at the other end when the payload was looked at (zcopy.c). */
static bool xrds_txq_fits(const struct xrds_conn *conn,
			  const struct xrds_msg *msg)
{
	lockdep_assert_held(&conn->lock);

	return likely(!msg->scattered) || conn->tx_node;
}

/**
 * xrds_txq_append - put a message at the end of its queue
 * @conn: connection
 * @msg: message; its queue owns the caller's reference, unless it is DEAD
 *
 * Context: any, without L3, L4.
 * Return: the state that the connection had; DEAD: it has not taken it, because it is
 * dead, or the XRDS node that the message was made for is there no more.
 */
enum xrds_state xrds_txq_append(struct xrds_conn *conn,
				struct xrds_msg *msg)
{
	struct xrds_flow *flow = xrds_txq_flow(conn, msg);
	enum xrds_state state;
	bool first;

	spin_lock_bh(&conn->lock);
	state = xrds_txq_fits(conn, msg) ? conn->state : XRDS_ST_DEAD;
	/* a flow leaves its connection only when that is dead */
	if (state != XRDS_ST_DEAD && !WARN_ON_ONCE(flow->conn != conn)) {
		xrds_txq_enter(conn, flow, msg);
		first = list_empty(&flow->queue);
		list_add_tail(&msg->node, &flow->queue);
		xrds_txq_count(flow, msg, 1);
		if (msg->rop) {
			msg->rop->msg = msg;
			conn->nr_ops++;
			list_add_tail(&msg->rop->conn_node, &conn->ops);
			xrds_rop_issue(msg->rop);
		}
		conn->nr_new++;
		/* the state follows from the first one, and from replies */
		if (first || msg->flags & XRDS_F_REPLY)
			xrds_flow_update(conn, flow);
	}
	spin_unlock_bh(&conn->lock);
	return state;
}

static void xrds_txq_inflight_add(struct xrds_flow *flow, int msgs, s64 bytes)
{
	flow->inflight_msgs += msgs;
	flow->inflight_bytes += bytes;
	if (flow->stream) {
		flow->stream->inflight_msgs += msgs;
		flow->stream->inflight_bytes += bytes;
	}
}

static void xrds_txq_inflight_begin(struct xrds_flow *flow, struct xrds_msg *msg)
{
	if (msg->inflight)
		return;
	msg->inflight = true;
	xrds_txq_inflight_add(flow, 1, msg->len);
}

static void xrds_txq_inflight_end(struct xrds_flow *flow, struct xrds_msg *msg)
{
	if (!msg->inflight)
		return;
	msg->inflight = false;
	xrds_txq_inflight_add(flow, -1, -(s64)msg->len);
}

/* A message gets its number. */
static void xrds_txq_number(struct xrds_conn *conn, struct xrds_flow *flow,
			    struct xrds_msg *msg)
{
	msg->seq = ++conn->tx_seq;
	conn->tx_bytes += msg->len;
	msg->posted = true;
	xrds_txq_inflight_begin(flow, msg);
}

/* It leaves its flow's queue with it. */
static void xrds_txq_number_queued(struct xrds_conn *conn,
				   struct xrds_flow *flow, struct xrds_msg *msg)
{
	xrds_txq_number(conn, flow, msg);
	conn->nr_new--;
	xrds_txq_count(flow, msg, -1);
	list_move_tail(&msg->node, &conn->inflight);
}

/* The first message behind a refusal says that it is that. */
static void xrds_txq_resume(struct xrds_conn *conn, struct xrds_flow *flow,
			    struct xrds_msg *msg)
{
	struct xrds_stream *stream = flow->stream;

	if (!stream || !stream->resume || conn->legacy.on)
		return;
	stream->resume = false;
	stream->refused = false;
	msg->flags |= XRDS_F_RESUME;
}

/* A message goes out with this number. */
static void xrds_txq_goes(struct xrds_conn *conn, struct xrds_flow *flow,
			  const struct xrds_msg *msg, u64 seq)
{
	lockdep_assert_held(&conn->lock);

	if (!(msg->flags & XRDS_F_RESUME) || !flow->stream)
		return;
	flow->stream->resumed = seq;
	flow->stream->resumed_gen = conn->ep_gen;
}

/**
 * xrds_txq_next - the message that goes next
 * @conn: connection
 *
 * Context: the pump, conn->tx_lock and conn->lock held.
 * Return: as xrds_flow_next().
 */
struct xrds_msg *xrds_txq_next(struct xrds_conn *conn)
{
	lockdep_assert_held(&conn->tx_lock);
	lockdep_assert_held(&conn->lock);

	return list_first_entry_or_null(&conn->again, struct xrds_msg, node) ?:
	       xrds_flow_next(conn);
}

/* Bytes that a message costs its flow when it is taken; an op's count whichever
 * way they go. A large message pays for its payload as that goes out.
 */
static u64 xrds_txq_cost(const struct xrds_conn *conn,
			 const struct xrds_msg *msg)
{
	u64 cost = msg->rop ? msg->rop->bytes : 0;

	if (!xrds_flow_large(conn, msg))
		cost += msg->len + XRDS_WIRE_HDR_BYTES;
	return cost;
}

/**
 * xrds_txq_take - the next message goes to the transport
 * @conn: connection
 * @msg: message, from xrds_txq_next(); gets a reference
 *
 * Context: the pump, conn->tx_lock and conn->lock held.
 * Return: whether it was posted before.
 */
bool xrds_txq_take(struct xrds_conn *conn, struct xrds_msg *msg)
{
	struct xrds_flow *flow = xrds_txq_flow(conn, msg);
	bool again = msg->posted;

	lockdep_assert_held(&conn->tx_lock);
	lockdep_assert_held(&conn->lock);

	xrds_msg_get(msg);
	if (msg->seq) {
		msg->posted = true;
		list_move_tail(&msg->node, &conn->inflight);
		xrds_txq_goes(conn, flow, msg, msg->seq);
		return again;
	}
	xrds_flow_charge(flow, xrds_txq_cost(conn, msg));
	xrds_txq_resume(conn, flow, msg);
	if (xrds_flow_large(conn, msg)) {
		/* nothing arrives before the last fragment: it is not posted */
		xrds_msg_get(msg);
		conn->tx_bulk = msg;
		msg->bulk = true;
	} else {
		xrds_txq_number_queued(conn, flow, msg);
		xrds_txq_goes(conn, flow, msg, msg->seq);
	}
	xrds_flow_update(conn, flow);
	return again;
}

/**
 * xrds_txq_pass - a new message goes to the transport before it was in a queue
 * @conn: connection
 * @msg: message; on success the connection owns the caller's reference, and the
 *	caller gets another one
 *
 * Context: a sender, conn->tx_lock held.
 * Return: false: it must wait for others, or for a port.
 */
bool xrds_txq_pass(struct xrds_conn *conn, struct xrds_msg *msg)
{
	struct xrds_flow *flow = xrds_txq_flow(conn, msg);
	bool passes;

	lockdep_assert_held(&conn->tx_lock);

	spin_lock(&conn->lock);
	passes = xrds_txq_fits(conn, msg) &&
		 xrds_flow_passes(conn, flow, msg);
	if (passes) {
		xrds_msg_get(msg);
		xrds_txq_enter(conn, flow, msg);
		xrds_flow_pass(flow, xrds_txq_cost(conn, msg));
		xrds_txq_resume(conn, flow, msg);
		xrds_txq_number(conn, flow, msg);
		xrds_txq_goes(conn, flow, msg, msg->seq);
		list_add_tail(&msg->node, &conn->inflight);
	}
	spin_unlock(&conn->lock);
	return passes;
}

/**
 * xrds_txq_direct - number a message that passes all queues
 * @conn: connection of a transport that delivers at once
 * @flow: the message's
 * @bytes: its payload
 *
 * It is received and acknowledged by that, so nothing may be in a queue that it
 * could pass. The pump numbers messages that are in a queue, under the same lock.
 *
 * Context: any, conn->lock held.
 * Return: the number; 0: the message is to be queued.
 */
u64 xrds_txq_direct(struct xrds_conn *conn, const struct xrds_flow *flow,
		    u32 bytes)
{
	u64 seq;

	lockdep_assert_held(&conn->lock);

	if (flow->conn != conn || conn->state != XRDS_ST_UP || conn->nr_msgs)
		return 0;
	seq = conn->tx_seq + 1;
	WRITE_ONCE(conn->tx_seq, seq);
	WRITE_ONCE(conn->acked, seq);
	WRITE_ONCE(conn->rx_next, seq + 1);
	conn->tx_bytes += bytes;
	WRITE_ONCE(conn->rx_bytes, conn->rx_bytes + bytes);
	return seq;
}

/* The transport does not have the large message any more. */
static void xrds_txq_bulk_leave(struct xrds_conn *conn)
{
	struct xrds_msg *msg = conn->tx_bulk;

	lockdep_assert_held(&conn->tx_lock);
	lockdep_assert_held(&conn->lock);

	if (!msg)
		return;
	conn->tx_bulk = NULL;
	conn->tx_held = false;
	msg->bulk = false;
	xrds_flow_update(conn, xrds_txq_flow(conn, msg));
	xrds_msg_put(msg);
}

/**
 * xrds_txq_back - the transport could not take a message
 * @conn: connection
 * @msg: message
 * @unsent: the transport lacked room, and the message was not sent under its
 *	number before
 *
 * It is next again. But a message that has ended meanwhile, for it was cancelled,
 * or the peer acknowledges what it never got, is on another list.
 *
 * Context: the pump, conn->tx_lock and conn->lock held.
 * Return: whether it has ended.
 */
bool xrds_txq_back(struct xrds_conn *conn, struct xrds_msg *msg, bool unsent)
{
	struct xrds_flow *flow = xrds_txq_flow(conn, msg);

	lockdep_assert_held(&conn->tx_lock);
	lockdep_assert_held(&conn->lock);

	if (msg->bulk)
		xrds_txq_bulk_leave(conn);
	/* it has not gone out */
	xrds_txq_goes(conn, flow, msg, 0);
	/* there may be a higher number by now: then it keeps its own */
	if (!msg->ended &&
	    (!unsent || (msg->seq && msg->seq != conn->tx_seq))) {
		if (msg->seq)
			list_move(&msg->node, &conn->again);
		return false;
	}
	/* if it does not end the refusal the next message of the stream does */
	if (unsent && msg->flags & XRDS_F_RESUME && flow->stream) {
		msg->flags &= ~XRDS_F_RESUME;
		flow->stream->resume = true;
	}
	if (msg->ended)
		return true;
	if (msg->seq) {
		msg->seq = 0;
		conn->tx_seq--;
		conn->tx_bytes -= msg->len;
		conn->nr_new++;
		xrds_txq_inflight_end(flow, msg);
		list_move(&msg->node, &flow->queue);
		xrds_txq_count(flow, msg, 1);
	}
	xrds_flow_update(conn, flow);
	xrds_flow_refund(flow, xrds_txq_cost(conn, msg));
	return false;
}

/**
 * xrds_txq_went - the transport has a message
 * @conn: connection
 * @msg: message
 *
 * Context: the pump, conn->tx_lock held.
 */
void xrds_txq_went(struct xrds_conn *conn, struct xrds_msg *msg)
{
	lockdep_assert_held(&conn->tx_lock);

	if (!msg->rop)
		return;
	spin_lock(&conn->lock);
	xrds_txq_pass_op(conn, msg);
	spin_unlock(&conn->lock);
}

/**
 * xrds_txq_bulk_went - a part of the large message goes out
 * @conn: connection
 * @bytes: how much, with headers
 *
 * Context: transports, conn->tx_lock held.
 * Return: whether messages that were held back for it may go now.
 */
bool xrds_txq_bulk_went(struct xrds_conn *conn, u32 bytes)
{
	struct xrds_flow *flow = xrds_txq_flow(conn, conn->tx_bulk);
	bool held = conn->tx_held;

	lockdep_assert_held(&conn->tx_lock);

	spin_lock(&conn->lock);
	/* else it was cancelled */
	if (flow->conn == conn)
		xrds_flow_charge(flow, bytes);
	if (held)
		conn->tx_held = xrds_flow_bulk_holds(conn);
	spin_unlock(&conn->lock);
	return held && !conn->tx_held;
}
EXPORT_SYMBOL_GPL(xrds_txq_bulk_went);

/**
 * xrds_txq_bulk_number - the last fragment of a large message is about to go out
 * @conn: connection
 * @msg: message, with msg->bulk
 *
 * It gets its number, and is in flight from here on. Should the call to the
 * device fail the endpoint ends, and it is sent again under this number. If the
 * peer has refused a message in front of it meanwhile it will drop this one, too:
 * it stays in its flow's queue, to be sent again.
 *
 * Context: transports, conn->tx_lock held.
 * Return: the number.
 */
u64 xrds_txq_bulk_number(struct xrds_conn *conn, struct xrds_msg *msg)
{
	struct xrds_flow *flow = xrds_txq_flow(conn, msg);
	bool refused;
	u64 seq;

	lockdep_assert_held(&conn->tx_lock);

	spin_lock(&conn->lock);
	refused = flow->stream && flow->stream->resume;
	seq = conn->tx_seq + 1;
	if (msg->ended || refused)
		conn->tx_seq = seq;
	else
		xrds_txq_number_queued(conn, flow, msg);
	xrds_txq_goes(conn, flow, msg, seq);
	trace_xrds_msg_post(msg);
	xrds_txq_bulk_leave(conn);
	spin_unlock(&conn->lock);
	return seq;
}
EXPORT_SYMBOL_GPL(xrds_txq_bulk_number);

/**
 * xrds_txq_bulk_close - the endpoint ends, and its part of a message is lost
 * @conn: connection
 *
 * Context: the connection's work, conn->tx_lock held.
 */
void xrds_txq_bulk_close(struct xrds_conn *conn)
{
	spin_lock(&conn->lock);
	xrds_txq_bulk_leave(conn);
	spin_unlock(&conn->lock);
}

/**
 * xrds_txq_unsend - a message that the peer has refused goes back to its flow
 * @conn: connection
 * @msg: message in flight; those behind it in its flow are back already
 *
 * Its op, if it had one, was posted, and is not repeated: it goes with the
 * connection, unless it was done. Nor is its key: the region may have ended with the
 * first arrival, and another may have the key when the message comes again.
 *
 * Context: the receive path, conn->lock held.
 */
void xrds_txq_unsend(struct xrds_conn *conn, struct xrds_msg *msg)
{
	struct xrds_flow *flow = xrds_txq_flow(conn, msg);

	lockdep_assert_held(&conn->lock);

	msg->seq = 0;
	conn->nr_new++;
	if (!msg->rop)
		msg->posted = false;
	msg->flags &= ~XRDS_F_RESUME;
	msg->has &= ~XRDS_HAS_RDMA;
	xrds_txq_inflight_end(flow, msg);
	list_move(&msg->node, &flow->queue);
	xrds_txq_count(flow, msg, 1);
}

/**
 * xrds_txq_end - take a message out of its queue, to its end
 * @conn: connection
 * @msg: message
 * @list: for xrds_upcall_msgs_done()
 *
 * Context: any, conn->lock held.
 * Return: whether a flow has become ready by that: the pump has something to do.
 */
bool xrds_txq_end(struct xrds_conn *conn, struct xrds_msg *msg,
		  struct list_head *list)
{
	struct xrds_flow *flow = xrds_txq_flow(conn, msg);
	bool ready;

	lockdep_assert_held(&conn->lock);

	if (!msg->flow)
		conn->kmsgs--;
	if (!msg->seq) {
		conn->nr_new--;
		/* of another connection when it has left this one */
		if (flow->conn == conn)
			xrds_txq_count(flow, msg, -1);
	}
	conn->nr_msgs--;
	if (msg->rop) {
		conn->nr_ops--;
		list_del_init(&msg->rop->conn_node);
	}
	xrds_txq_inflight_end(flow, msg);
	list_del_init(&msg->flow_node);
	msg->ended = true;
	list_move_tail(&msg->node, list);
	ready = xrds_txq_pass_op(conn, msg);
	return xrds_flow_update(conn, flow) || ready;
}
