// SPDX-License-Identifier: GPL-2.0-only
/*
 * Flows: the queue of one socket on one connection toward one port.
 *
 * A flow is a member of its destination. conn/ knows flows, and neither
 * destinations nor sockets. A flow joins a connection with the first message
 * and leaves it when the connection is dead, or with its last reference. A
 * message waits in the flow's queue until the pump takes it, unless nothing is
 * before it: then xrds_flow_passes() lets it go at once. From then on it is in
 * flight, on a list of the connection.
 *
 * The state of a flow follows from facts, and xrds_flow_update() is the only
 * function that sets it. The first line that holds counts:
 *
 *   nothing is queued                                  IDLE
 *   an older flow of its stream has something queued   BEHIND
 *   the transport has a part of one of its stream      PART
 *   the window of what is in flight is used up         WINDOW
 *   the first message has an op, an earlier op waits   OP
 *   the port is shut, and nothing below lets it pass   GATE
 *   else                                               READY
 *
 * A first message with an op passes a shut port, and so does the end of a stream.
 * So does a flow that has replies: they were promised room, and two servers that
 * ask each other would wait for ever. After a refusal none of them does.
 *
 * A stream is everything from one port to another. A socket that is bound to the
 * port of a closed one makes another flow of the same stream. Its messages go when
 * all of the closed one have gone, with the mark that ends them. All flows of a
 * stream share one window: a refusal takes back what they have in flight.
 *
 * The READY flows of a user share what he may send, and users share the
 * connection (fq.c). There is a line for messages that go as a whole and one for
 * large messages, of which the transport has one at a time in part. The
 * calls that change a fact update the flow: queueing, taking, acknowledging and
 * cancelling a message (txq.c), the peer's word on a port (cong.c, refuse.c).
 *
 * The fields that tie a flow to a connection are guarded by both the
 * connection's lock (L3) and the flow's lock, which is its socket's (L4); the
 * state and the queue by the connection's lock. The kernel's own messages have a
 * flow in the connection itself.
 */
#include "conn/conn.h"
#include "msg.h"
#include "upcall.h"
#include "xrds.h"

enum {
	/* flows that one call parks, or moves to the other line */
	XRDS_FLOW_STEPS		= 64,
};

/* ------------------------------------------------------------- the lines */

static struct xrds_msg *xrds_flow_head(struct xrds_flow *flow)
{
	return list_first_entry_or_null(&flow->queue, struct xrds_msg, node);
}

static void xrds_flow_enter(struct xrds_conn *conn, struct xrds_flow *flow,
			    enum xrds_class class)
{
	struct xrds_share *share = flow->share;

	if (xrds_fq_empty(&share->fq, class))
		xrds_fq_add(&conn->fq, &share->node, class);
	xrds_fq_add(&share->fq, &flow->fq_node, class);
	flow->class = class;
}

static void xrds_flow_enter_late(struct xrds_conn *conn, struct xrds_flow *flow,
				 enum xrds_class class)
{
	struct xrds_share *share = flow->share;

	if (xrds_fq_empty(&share->fq, class))
		xrds_fq_add_late(&conn->fq, &share->node, class);
	xrds_fq_add_late(&share->fq, &flow->fq_node, class);
	flow->class = class;
}

static void xrds_flow_exit(struct xrds_conn *conn, struct xrds_flow *flow,
			   enum xrds_class class)
{
	struct xrds_share *share = flow->share;

	xrds_fq_del(&share->fq, &flow->fq_node, class);
	if (xrds_fq_empty(&share->fq, class))
		xrds_fq_del(&conn->fq, &share->node, class);
}

/* It keeps its place, as it is in one line all the time. */
static void xrds_flow_change_line(struct xrds_conn *conn,
				  struct xrds_flow *flow, enum xrds_class class)
{
	enum xrds_class old = flow->class;

	if (old == class)
		return;
	xrds_flow_enter(conn, flow, class);
	xrds_flow_exit(conn, flow, old);
}

static bool xrds_flow_full(const struct xrds_flow *flow,
			   const struct xrds_msg *msg)
{
	const struct xrds_stream *stream = flow->stream;
	u32 msgs = stream ? stream->inflight_msgs : flow->inflight_msgs;
	u64 bytes = stream ? stream->inflight_bytes : flow->inflight_bytes;

	return msgs && (msgs >= XRDS_FLOW_WINDOW_MSGS ||
			bytes + msg->len > XRDS_FLOW_WINDOW_BYTES);
}

static bool xrds_flow_held(struct xrds_conn *conn, const struct xrds_flow *flow,
			   const struct xrds_msg *msg)
{
	bool passes = flow->replies || msg->flags & XRDS_F_EOS;

	return flow->gate && (flow->stream->refused || !passes) &&
	       xrds_gate_waits(conn, flow);
}

/* The flow of a stream that may send */
static struct xrds_flow *xrds_flow_queued_first(struct xrds_stream *stream)
{
	return list_first_entry_or_null(&stream->queued, struct xrds_flow,
					queued_node);
}

/* A flow has something in its queue from now on, or nothing any more. */
static void xrds_flow_set_queued(struct xrds_flow *flow)
{
	struct xrds_stream *stream = flow->stream;
	struct xrds_flow *last, *next;

	if (list_empty(&flow->queue) == list_empty(&flow->queued_node))
		return;
	if (list_empty(&flow->queue)) {
		list_del_init(&flow->queued_node);
		return;
	}
	last = list_last_entry(&stream->queued, struct xrds_flow, queued_node);
	if (list_empty(&stream->queued) || last->age < flow->age) {
		list_add_tail(&flow->queued_node, &stream->queued);
		return;
	}
	/* a message of an old flow was refused: those before it have some in
	 * flight, too, which bounds their number
	 */
	list_for_each_entry(next, &stream->queued, queued_node)
		if (next->age > flow->age)
			break;
	list_add_tail(&flow->queued_node, &next->queued_node);
}

/* Do the messages of two flows have one order? */
static bool xrds_flow_shares(const struct xrds_flow *flow,
			     const struct xrds_flow *other)
{
	return flow == other || (flow->stream && flow->stream == other->stream);
}

static enum xrds_flow_state xrds_flow_evaluate(struct xrds_conn *conn,
					       struct xrds_flow *flow)
{
	const struct xrds_msg *msg = xrds_flow_head(flow);

	if (!msg)
		return XRDS_FLOW_IDLE;
	if (flow->stream && xrds_flow_queued_first(flow->stream) != flow)
		return XRDS_FLOW_BEHIND;
	if (conn->tx_bulk && xrds_flow_shares(conn->tx_bulk->flow, flow))
		return XRDS_FLOW_PART;
	if (xrds_flow_full(flow, msg))
		return XRDS_FLOW_WINDOW;
	/* one that was posted before goes without its op */
	if (msg->rop && !msg->posted)
		return xrds_rop_first(msg->rop) ? XRDS_FLOW_READY :
						  XRDS_FLOW_OP;
	return xrds_flow_held(conn, flow, msg) ? XRDS_FLOW_GATE : XRDS_FLOW_READY;
}

/**
 * xrds_flow_large - may other messages pass this one?
 * @conn: connection
 * @msg: message
 *
 * They may not if it has an op: later ops of its socket would overtake that.
 *
 * Context: any, conn->lock held.
 * Return: whether they may.
 */
bool xrds_flow_large(const struct xrds_conn *conn, const struct xrds_msg *msg)
{
	return msg->len > conn->bulk_over && !msg->rop;
}

/* How much goes as a whole is not known until the connection is open. */
static enum xrds_class xrds_flow_class(const struct xrds_conn *conn,
				       struct xrds_flow *flow)
{
	/* the message that the transport has may have been cancelled */
	if (flow->state == XRDS_FLOW_PART)
		return XRDS_LARGE;
	return xrds_flow_large(conn, xrds_flow_head(flow)) ? XRDS_LARGE :
							     XRDS_SMALL;
}

static bool xrds_flow_in_line(enum xrds_flow_state state)
{
	return state == XRDS_FLOW_READY || state == XRDS_FLOW_PART;
}

static void xrds_flow_set(struct xrds_conn *conn, struct xrds_flow *flow,
			  enum xrds_flow_state state)
{
	enum xrds_flow_state old = flow->state;

	if (old == state) {
		/* the message that was first may have been cancelled */
		if (state == XRDS_FLOW_READY)
			xrds_flow_change_line(conn, flow,
					      xrds_flow_class(conn, flow));
		return;
	}
	flow->state = state;
	if (xrds_flow_in_line(old) && xrds_flow_in_line(state))
		xrds_flow_change_line(conn, flow, xrds_flow_class(conn, flow));
	else if (xrds_flow_in_line(old))
		xrds_flow_exit(conn, flow, flow->class);
	else if (old == XRDS_FLOW_WINDOW && xrds_flow_in_line(state))
		xrds_flow_enter_late(conn, flow, xrds_flow_class(conn, flow));
	else if (xrds_flow_in_line(state))
		xrds_flow_enter(conn, flow, xrds_flow_class(conn, flow));
	if (old == XRDS_FLOW_GATE)
		list_del_init(&flow->parked);
	else if (state == XRDS_FLOW_GATE)
		list_add_tail(&flow->parked, &flow->gate->parked);
}

static bool xrds_flow_refresh(struct xrds_conn *conn, struct xrds_flow *flow)
{
	enum xrds_flow_state old = flow->state;

	xrds_flow_set(conn, flow, xrds_flow_evaluate(conn, flow));
	return flow->state == XRDS_FLOW_READY && old != XRDS_FLOW_READY;
}

/**
 * xrds_flow_update - a fact has changed: set the state of a flow
 * @conn: its connection; nothing is done if the flow has left it
 * @flow: flow
 *
 * Context: any, conn->lock held.
 * Return: whether it, or another flow of its stream, has become READY: the pump
 * has something to do.
 */
bool xrds_flow_update(struct xrds_conn *conn, struct xrds_flow *flow)
{
	struct xrds_stream *stream = flow->stream;
	struct xrds_flow *before, *after;
	bool ready = false;

	lockdep_assert_held(&conn->lock);

	if (flow->conn != conn)
		return false;
	if (!stream)
		return xrds_flow_refresh(conn, flow);
	before = xrds_flow_queued_first(stream);
	/* else it was idle, and is: most messages do not wait in a queue */
	if (flow->state != XRDS_FLOW_IDLE || !list_empty(&flow->queue)) {
		xrds_flow_set_queued(flow);
		ready = xrds_flow_refresh(conn, flow);
	}
	/* another one may send, for the window as well, or must not any more */
	after = xrds_flow_queued_first(stream);
	if (before && before != flow && before != after)
		ready |= xrds_flow_refresh(conn, before);
	if (after && after != flow)
		ready |= xrds_flow_refresh(conn, after);
	return ready;
}

static struct xrds_flow *xrds_flow_first(struct xrds_conn *conn,
					 enum xrds_class class)
{
	struct xrds_fq_node *first;
	struct xrds_share *share;

	first = xrds_fq_first(&conn->fq, class);
	if (!first)
		return NULL;
	share = container_of(first, struct xrds_share, node);
	return container_of(xrds_fq_first(&share->fq, class), struct xrds_flow,
			    fq_node);
}

/* Has the large message that is sent in part the turn before this flow? */
static bool xrds_flow_after_bulk(const struct xrds_conn *conn,
				 const struct xrds_flow *flow)
{
	const struct xrds_flow *bulk;

	if (!conn->tx_bulk)
		return false;
	bulk = conn->tx_bulk->flow;
	/* it was cancelled, and its flow has left */
	if (!bulk->share)
		return false;
	if (bulk->share != flow->share)
		return bulk->share->node.start < flow->share->node.start;
	return bulk->fq_node.start < flow->fq_node.start;
}

/**
 * xrds_flow_bulk_holds - do messages wait for the large one that is sent in part?
 * @conn: connection
 *
 * Context: conn->lock held.
 * Return: whether the first of them does.
 */
bool xrds_flow_bulk_holds(struct xrds_conn *conn)
{
	struct xrds_flow *first;

	lockdep_assert_held(&conn->lock);

	first = xrds_flow_first(conn, XRDS_SMALL);
	return first && xrds_flow_after_bulk(conn, first);
}

/**
 * xrds_flow_next - the message whose turn it is
 * @conn: connection
 *
 * A large message begins as soon as the one before it is out. The others pass it
 * until their flows, or users, have sent more than its own.
 *
 * Context: conn->tx_lock and conn->lock held.
 * Return: the message, still in its flow's queue; NULL: there is none;
 * ERR_PTR(-EBUSY): come again, without the lock in between; ERR_PTR(-EAGAIN): the
 * large message, which is sent in part, goes on first.
 */
struct xrds_msg *xrds_flow_next(struct xrds_conn *conn)
{
	int steps = XRDS_FLOW_STEPS;
	struct xrds_flow *flow;
	struct xrds_msg *msg;

	lockdep_assert_held(&conn->lock);

	while (steps--) {
		flow = conn->tx_bulk ? NULL : xrds_flow_first(conn, XRDS_LARGE);
		if (!flow)
			flow = xrds_flow_first(conn, XRDS_SMALL);
		if (!flow)
			return NULL;
		/* nobody was told of flows when the port was shut */
		if (xrds_flow_evaluate(conn, flow) != flow->state)
			xrds_flow_update(conn, flow);
		if (flow->state != XRDS_FLOW_READY)
			continue;
		msg = xrds_flow_head(flow);
		if (flow->class == XRDS_LARGE)
			return msg;
		if (!xrds_flow_large(conn, msg))
			return xrds_flow_after_bulk(conn, flow) ?
			       ERR_PTR(-EAGAIN) : msg;
		xrds_flow_change_line(conn, flow, XRDS_LARGE);
	}
	return ERR_PTR(-EBUSY);
}

/**
 * xrds_flow_any_ready - is there a message that might go now?
 * @conn: connection
 *
 * Context: any; conn->lock held, but for an estimate.
 * Return: whether there is.
 */
bool xrds_flow_any_ready(const struct xrds_conn *conn)
{
	return !xrds_fq_empty(&conn->fq, XRDS_SMALL) ||
	       !xrds_fq_empty(&conn->fq, XRDS_LARGE);
}

/**
 * xrds_flow_passes - may a message go before it is in any queue?
 * @conn: connection
 * @flow: the message's
 * @msg: new message
 *
 * It may if it would be the first in each of them. An op has its turn among those
 * of its socket, and the end of a stream is for XRDS peers only: both are queued.
 *
 * Context: conn->tx_lock and conn->lock held.
 * Return: whether it may.
 */
bool xrds_flow_passes(const struct xrds_conn *conn,
		      const struct xrds_flow *flow, const struct xrds_msg *msg)
{
	lockdep_assert_held(&conn->tx_lock);
	lockdep_assert_held(&conn->lock);

	return flow->conn == conn && conn->state == XRDS_ST_UP &&
	       flow->state == XRDS_FLOW_IDLE &&
	       !msg->rop && !(msg->flags & XRDS_F_EOS) &&
	       !xrds_flow_large(conn, msg) && !conn->tx_bulk &&
	       !xrds_flow_any_ready(conn) && list_empty(&conn->again) &&
	       (!flow->stream || list_empty(&flow->stream->queued)) &&
	       !xrds_flow_full(flow, msg) &&
	       !(flow->gate && xrds_gate_shut(conn, flow));
}

/**
 * xrds_flow_pass - a flow sends a message that passes all queues
 * @flow: flow
 * @bytes: how much, with the header
 *
 * Context: any, conn->lock held.
 */
void xrds_flow_pass(struct xrds_flow *flow, u64 bytes)
{
	struct xrds_share *share = flow->share;

	xrds_fq_pass(&share->fq, &flow->fq_node, bytes);
	xrds_fq_pass(&share->part.key.conn->fq, &share->node, bytes);
}

/**
 * xrds_flow_charge - a flow sends
 * @flow: flow, READY or not
 * @bytes: how much, with headers
 *
 * Context: any, conn->lock held.
 */
void xrds_flow_charge(struct xrds_flow *flow, u64 bytes)
{
	struct xrds_share *share = flow->share;

	xrds_fq_charge(&share->fq, &flow->fq_node, bytes);
	xrds_fq_charge(&share->part.key.conn->fq, &share->node, bytes);
}

/**
 * xrds_flow_refund - it did not, after all
 * @flow: flow
 * @bytes: the same
 *
 * Context: any, conn->lock held.
 */
void xrds_flow_refund(struct xrds_flow *flow, u64 bytes)
{
	struct xrds_share *share = flow->share;

	xrds_fq_refund(&share->fq, &flow->fq_node, bytes);
	xrds_fq_refund(&share->part.key.conn->fq, &share->node, bytes);
}

/* ------------------------------------------------------ join and leave */

/**
 * xrds_flow_conn - the connection that a flow has
 * @flow: flow
 *
 * Context: any, without L4.
 * Return: the connection, be it dead, with a reference, or NULL.
 */
struct xrds_conn *xrds_flow_conn(struct xrds_flow *flow)
{
	struct xrds_conn *conn;

	spin_lock_bh(flow->lock);
	conn = flow->conn;
	if (conn)
		xrds_conn_get(conn);
	spin_unlock_bh(flow->lock);
	return conn;
}

static struct xrds_stream *xrds_flow_get_stream(struct xrds_conn *conn, u64 id)
{
	struct xrds_stream *stream;

	stream = (struct xrds_stream *)xrds_part_find(conn, XRDS_PART_STREAM,
						      id);
	if (stream) {
		xrds_part_get(&stream->part);
		return stream;
	}
	stream = (struct xrds_stream *)xrds_part_make(conn, XRDS_PART_STREAM,
						      id, sizeof(*stream));
	if (stream) {
		INIT_LIST_HEAD(&stream->flows);
		INIT_LIST_HEAD(&stream->queued);
		/* an earlier one with these ports may have left a refusal */
		stream->resume = true;
	}
	return stream;
}

static void xrds_flow_put_parts(struct xrds_flow *flow)
{
	if (flow->share)
		xrds_share_put(flow->share);
	if (flow->gate)
		xrds_gate_put(flow->gate);
	if (flow->stream) {
		list_del_init(&flow->stream_node);
		list_del_init(&flow->queued_node);
		xrds_part_put(&flow->stream->part);
	}
	flow->share = NULL;
	WRITE_ONCE(flow->gate, NULL);
	flow->stream = NULL;
}

/* Returns 0 or -ENOMEM. */
static int xrds_flow_get_parts(struct xrds_conn *conn, struct xrds_flow *flow)
{
	u64 ports = xrds_part_ports(flow->lport, flow->port);

	/* the tag of an earlier connection says nothing here */
	xrds_fq_init_node(&flow->fq_node);
	flow->share = xrds_share_get(conn, flow->user);
	if (flow->port) {
		WRITE_ONCE(flow->gate, xrds_gate_get(conn, flow->port));
		flow->stream = xrds_flow_get_stream(conn, ports);
	}
	if (flow->stream) {
		list_add_tail(&flow->stream_node, &flow->stream->flows);
		flow->age = ++flow->stream->joined;
	}
	if (flow->share && (!flow->port || (flow->gate && flow->stream)))
		return 0;
	xrds_flow_put_parts(flow);
	return -ENOMEM;
}

/* Some messages of a flow leave it, for they stay with a dead connection: another
 * lock guards the flow's list as soon as there is another connection. Returns
 * whether that were all.
 */
static bool xrds_flow_release_some(struct xrds_flow *flow)
{
	struct xrds_msg *msg, *tmp;
	u32 n = 0;

	list_for_each_entry_safe(msg, tmp, &flow->msgs, flow_node) {
		if (n == XRDS_END_BATCH)
			break;
		list_del_init(&msg->flow_node);
		msg->inflight = false;
		n++;
	}
	xrds_hold_count(XRDS_HOLD_END, n);
	return list_empty(&flow->msgs);
}

/* A flow without messages of its own leaves its connection. Returns whether its
 * sender waited for its port.
 */
static bool xrds_flow_detach(struct xrds_conn *conn, struct xrds_flow *flow)
{
	bool waited = !list_empty(&flow->cong_node);

	lockdep_assert_held(&conn->lock);

	list_splice_tail_init(&flow->queue, &conn->inflight);
	if (flow->stream) {
		flow->stream->inflight_msgs -= flow->inflight_msgs;
		flow->stream->inflight_bytes -= flow->inflight_bytes;
	}
	flow->inflight_msgs = 0;
	flow->replies = 0;
	flow->inflight_bytes = 0;
	xrds_flow_set(conn, flow, XRDS_FLOW_IDLE);
	list_del_init(&flow->cong_node);
	conn->nr_waiters -= waited;
	list_del_init(&flow->conn_node);
	xrds_flow_put_parts(flow);
	WRITE_ONCE(flow->conn, NULL);
	return waited;
}

/* A detached flow gives back its references, without L3 and L4. */
static void xrds_flow_detached(struct xrds_conn *conn, struct xrds_flow *flow,
			       bool waited)
{
	if (waited) {
		xrds_space_wake(flow, xrds_space_uncongested(flow, false));
		xrds_flow_put(flow);
	}
	xrds_conn_put(conn);
}

/* Give back the reference on the connection, if there is one; @dead: only on a
 * dead one.
 */
static void xrds_flow_leave(struct xrds_flow *flow, bool dead)
{
	struct xrds_conn *conn = xrds_flow_conn(flow);
	bool leaves, left = false, waited = false;

	if (!conn)
		return;

	do {
		spin_lock_bh(&conn->lock);
		spin_lock(flow->lock);
		leaves = flow->conn == conn &&
			 (!dead || conn->state == XRDS_ST_DEAD);
		if (leaves && xrds_flow_release_some(flow)) {
			waited = xrds_flow_detach(conn, flow);
			left = true;
		}
		spin_unlock(flow->lock);
		spin_unlock_bh(&conn->lock);
	} while (leaves && !left);

	if (left)
		xrds_flow_detached(conn, flow, waited);
	/* it may have been made for nothing */
	if (left && READ_ONCE(conn->state) == XRDS_ST_DOWN &&
	    list_empty_careful(&conn->flows))
		xrds_conn_event(conn, XRDS_EV_IDLE);
	xrds_conn_put(conn);
}

/**
 * xrds_flow_leave_dead - give back the reference on a dead connection
 * @flow: flow; a sender may have found it another connection meanwhile
 *
 * Context: any, without L3 or L4.
 */
void xrds_flow_leave_dead(struct xrds_flow *flow)
{
	xrds_flow_leave(flow, true);
}

/* Take a reference on the next flow of a dead connection. */
static struct xrds_flow *xrds_flow_left_first(struct xrds_conn *conn)
{
	struct xrds_flow *flow;

	/* dropping the last reference on a flow takes it off the list before
	 * anything is freed
	 */
	spin_lock_bh(&conn->lock);
	flow = list_first_entry_or_null(&conn->flows, struct xrds_flow,
					conn_node);
	if (flow && !refcount_inc_not_zero(&flow->ref)) {
		spin_lock(flow->lock);
		xrds_flow_detach(conn, flow);
		spin_unlock(flow->lock);
		flow = ERR_PTR(-EAGAIN);
	}
	spin_unlock_bh(&conn->lock);
	return flow;
}

/**
 * xrds_flow_leave_all - the flows of a dead connection leave it
 * @conn: connection in state DEAD, which no flow joins any more
 *
 * Their messages stay with the connection.
 *
 * Context: the connection's work.
 */
void xrds_flow_leave_all(struct xrds_conn *conn)
{
	struct xrds_flow *flow;

	while ((flow = xrds_flow_left_first(conn))) {
		if (IS_ERR(flow)) {
			xrds_conn_put(conn);
			continue;
		}
		xrds_flow_leave_dead(flow);
		xrds_flow_put(flow);
		cond_resched();
	}
	spin_lock_bh(&conn->lock);
	list_splice_tail_init(&conn->own->queue, &conn->inflight);
	xrds_flow_set(conn, conn->own, XRDS_FLOW_IDLE);
	conn->own->conn = NULL;
	spin_unlock_bh(&conn->lock);
}

/**
 * xrds_flow_walk - the next flow of a connection
 * @conn: connection
 * @flow: the flow before, its reference is dropped; NULL: begin
 *
 * A flow with a reference stays where it is until the connection is dead, and
 * new ones come behind it: so each one that is there all the time is visited once.
 *
 * Context: any, without L3 or L4.
 * Return: the flow, with a reference; NULL: there is none, or the connection is
 * dead.
 */
struct xrds_flow *xrds_flow_walk(struct xrds_conn *conn, struct xrds_flow *flow)
{
	struct xrds_flow *next = NULL, *pos;

	spin_lock_bh(&conn->lock);
	if (!flow || flow->conn == conn) {
		pos = list_prepare_entry(flow, &conn->flows, conn_node);
		/* those about to leave wait for the lock, one a thread */
		list_for_each_entry_continue(pos, &conn->flows, conn_node) {
			if (!refcount_inc_not_zero(&pos->ref))
				continue;
			next = pos;
			break;
		}
	}
	spin_unlock_bh(&conn->lock);
	if (flow)
		xrds_flow_put(flow);
	return next;
}

/**
 * xrds_flow_join - use a connection from now on
 * @flow: flow
 * @conn: connection; takes over the caller's reference
 *
 * Of two senders that come here with different connections the second uses that
 * of the first. A connection that has died meanwhile is not remembered:
 * queueing the message will fail.
 *
 * Context: any, without L3 or L4.
 * Return: the connection to use, with a reference, or ERR_PTR(-ENOMEM).
 */
struct xrds_conn *xrds_flow_join(struct xrds_flow *flow,
				 struct xrds_conn *conn)
{
	struct xrds_conn *other = NULL;

	spin_lock_bh(&conn->lock);
	spin_lock(flow->lock);
	if (flow->conn) {
		other = flow->conn;
		xrds_conn_get(other);
	} else if (conn->state == XRDS_ST_DEAD) {
		/* nothing */
	} else if (xrds_flow_get_parts(conn, flow)) {
		other = ERR_PTR(-ENOMEM);
	} else {
		WRITE_ONCE(flow->conn, conn);
		list_add_tail(&flow->conn_node, &conn->flows);
		xrds_conn_get(conn);
	}
	spin_unlock(flow->lock);
	spin_unlock_bh(&conn->lock);
	if (!other)
		return conn;
	xrds_conn_put(conn);
	return other;
}

/**
 * xrds_flow_put - drop a reference on a flow
 * @flow: flow
 *
 * The last one leaves the connection, and frees the destination.
 *
 * Context: any, without L3 or L4.
 */
void xrds_flow_put(struct xrds_flow *flow)
{
	if (refcount_dec_and_test(&flow->ref)) {
		xrds_flow_leave(flow, false);
		xrds_dest_free(flow);
	}
}
