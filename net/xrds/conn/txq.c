// SPDX-License-Identifier: GPL-2.0-only
/*
 * Large messages let small ones pass.
 *
 *   xrds_txq_bulk_keeps -> bulkq -> the transport, in part
 *                       -> xrds_txq_bulk_number -> inflight
 *
 * A message that needs several SENDs keeps a queue busy for long, and who asks
 * a short question of another process of the same node should not wait for
 * that. So where the peer takes messages in turns such messages have a queue of
 * their own, and one of them at a time is at the transport, which posts its
 * fragments between those messages that are small, and few at a time. Until its
 * last fragment goes out it stays at the head of that queue and has no number:
 * messages are numbered in the order in which they are complete at the peer, so
 * neither side has to remember more than one number.
 *
 * What may not pass follows into the same queue: a message to the same port
 * from the same port, for their order is what programs rely on, and ops, which
 * are done in the order of their ids. Streams are told apart by hash: those
 * that fall together wait for each other without need, and that is all. When
 * its turn has come what followed is a message like any other; and when there
 * is no large one left all of it goes back to the queue of the others.
 *
 * Neither queue starves the other: the message that has waited longest is next.
 * Numbers that were given out before the last reconnect go first of all, in
 * their order, in the queue of the small ones; they pass nothing, and nothing
 * passes them.
 *
 * Everything here runs under conn->lock, and what takes from the queue under
 * conn->tx_lock, too.
 */
#include <linux/hash.h>

#include "conn/conn.h"
#include "msg.h"
#include "tracepoints.h"
#include "xrds.h"

static u32 *xrds_txq_bulk_stream(struct xrds_conn *conn,
				 const struct xrds_msg *msg)
{
	u32 ports = (u32)msg->sport << 16 | msg->dport;

	return &conn->bulk_last[hash_32(ports, XRDS_BULK_STREAMS_BITS)];
}

/* The oldest of those that are not wholly posted; it may have been cancelled
 * while the transport had a part of it.
 */
static const struct xrds_msg *xrds_txq_bulk_oldest(struct xrds_conn *conn)
{
	return conn->tx_bulk ?: list_first_entry_or_null(&conn->bulkq,
							 struct xrds_msg, node);
}

/**
 * xrds_txq_bulk_keeps - put a message in the queue for large ones, or not
 * @conn: connection
 * @msg: message that is on no list
 *
 * Context: any, conn->lock held.
 * Return: whether it did.
 */
bool xrds_txq_bulk_keeps(struct xrds_conn *conn, struct xrds_msg *msg)
{
	const struct xrds_msg *oldest = xrds_txq_bulk_oldest(conn);
	bool large = msg->len > conn->bulk_over;
	u32 *last;

	lockdep_assert_held(&conn->lock);

	msg->stamp = ++conn->stamp;
	/* by far most messages */
	if (!oldest && !large)
		return false;

	last = xrds_txq_bulk_stream(conn, msg);
	if (!large && !msg->rop && (s32)(*last - oldest->stamp) < 0)
		return false;
	*last = msg->stamp;
	msg->bulk = large;
	conn->nr_bulk += large;
	list_add_tail(&msg->node, &conn->bulkq);
	return true;
}

/**
 * xrds_txq_bulk_next - is the next message to begin one of this queue?
 * @conn: connection
 *
 * Context: the pump, conn->tx_lock and conn->lock held.
 * Return: the message, still in the queue, or NULL.
 */
struct xrds_msg *xrds_txq_bulk_next(struct xrds_conn *conn)
{
	struct xrds_msg *small, *msg;

	lockdep_assert_held(&conn->tx_lock);
	lockdep_assert_held(&conn->lock);

	if (list_empty(&conn->bulkq) || conn->tx_bulk)
		return NULL;
	if (!conn->nr_bulk) {
		/* older than what large one there will ever be */
		list_splice_tail_init(&conn->bulkq, &conn->sendq);
		return NULL;
	}
	msg = list_first_entry(&conn->bulkq, struct xrds_msg, node);
	small = list_first_entry_or_null(&conn->sendq, struct xrds_msg, node);
	if (small && (small->seq || (s32)(small->stamp - msg->stamp) < 0))
		return NULL;
	return msg;
}

/**
 * xrds_txq_bulk_take - a large message goes to the transport
 * @conn: connection
 * @msg: message, from xrds_txq_bulk_next(), with msg->bulk; gets a reference
 *
 * Context: the pump, conn->tx_lock and conn->lock held.
 * Return: whether it was there before.
 */
bool xrds_txq_bulk_take(struct xrds_conn *conn, struct xrds_msg *msg)
{
	bool again = msg->posted;

	lockdep_assert_held(&conn->tx_lock);
	lockdep_assert_held(&conn->lock);

	xrds_msg_get(msg);
	conn->tx_bulk = msg;
	/* of what has no op, nothing arrives before its last fragment is out */
	if (msg->rop)
		msg->posted = true;
	xrds_msg_get(msg);
	return again;
}

/* The transport does not have it any more. */
static void xrds_txq_bulk_leave(struct xrds_conn *conn)
{
	struct xrds_msg *msg = conn->tx_bulk;

	lockdep_assert_held(&conn->tx_lock);
	lockdep_assert_held(&conn->lock);

	conn->tx_bulk = NULL;
	if (msg)
		xrds_msg_put(msg);
}

/**
 * xrds_txq_bulk_back - the transport could not take a large message
 * @conn: connection
 * @msg: message
 * @untried: as if nothing had been tried
 *
 * Context: the pump, conn->tx_lock and conn->lock held.
 */
void xrds_txq_bulk_back(struct xrds_conn *conn, struct xrds_msg *msg,
			bool untried)
{
	xrds_txq_bulk_leave(conn);
	if (untried && !msg->ended)
		msg->posted = false;
}

/**
 * xrds_txq_bulk_number - the last fragment of a large message is about to go out
 * @conn: connection
 * @msg: message, with msg->bulk
 *
 * It gets its number, and is in flight from here on. Should the call to the
 * device fail the endpoint ends, and it is sent again under this number.
 *
 * Context: transports, conn->tx_lock held.
 */
void xrds_txq_bulk_number(struct xrds_conn *conn, struct xrds_msg *msg)
{
	lockdep_assert_held(&conn->tx_lock);

	spin_lock(&conn->lock);
	msg->seq = ++conn->tx_seq;
	msg->bulk = false;
	if (!msg->ended) {
		conn->nr_bulk--;
		conn->nr_new--;
		msg->posted = true;
		xrds_txq_set_inflight(msg, true);
		list_move_tail(&msg->node, &conn->inflight);
	}
	trace_xrds_msg_post(msg);
	xrds_txq_bulk_leave(conn);
	spin_unlock(&conn->lock);
}
EXPORT_SYMBOL_GPL(xrds_txq_bulk_number);

/* Large messages were queued before it was known that others may pass them. */
static void xrds_txq_bulk_sort(struct xrds_conn *conn)
{
	struct xrds_msg *msg, *tmp;
	LIST_HEAD(all);

	list_splice_init(&conn->sendq, &all);
	list_for_each_entry_safe(msg, tmp, &all, node) {
		list_del(&msg->node);
		if (msg->seq || !xrds_txq_bulk_keeps(conn, msg))
			list_add_tail(&msg->node, &conn->sendq);
	}
}

/**
 * xrds_txq_bulk_open - is the peer one that takes messages in turns?
 * @conn: connection that is about to be open
 * @over: most payload of one SEND, bytes; 0: it takes one after the other
 *
 * Context: the connection's work, conn->tx_lock and conn->lock held.
 */
void xrds_txq_bulk_open(struct xrds_conn *conn, u32 over)
{
	struct xrds_msg *msg;

	lockdep_assert_held(&conn->lock);

	conn->bulk_over = over ?: U32_MAX;
	if (over) {
		/* else what is there was sorted when it was queued */
		if (list_empty(&conn->bulkq))
			xrds_txq_bulk_sort(conn);
		return;
	}
	/* what is in front of them in their streams is in that queue, too */
	list_for_each_entry(msg, &conn->bulkq, node)
		msg->bulk = false;
	conn->nr_bulk = 0;
	list_splice_tail_init(&conn->bulkq, &conn->sendq);
}

/**
 * xrds_txq_bulk_close - the endpoint ends: what it has of a message is lost
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

static void xrds_txq_append_flow(struct xrds_conn *conn, struct xrds_msg *msg)
{
	struct xrds_flow *flow = msg->flow;

	lockdep_assert_held(&conn->lock);

	/* which it leaves only when that is dead */
	if (WARN_ON_ONCE(flow->conn != conn))
		return;
	xrds_flow_begin(flow);
	msg->flow_nr = ++flow->last_nr;
	list_add_tail(&msg->flow_node, &flow->msgs);
}

static void xrds_txq_append_op(struct xrds_conn *conn, struct xrds_msg *msg)
{
	lockdep_assert_held(&conn->lock);

	msg->rop->msg = msg;
	list_add_tail(&msg->rop->conn_node, &conn->ops);
	xrds_rop_issue(msg->rop);
}

/**
 * xrds_txq_append - put a message at the end of its queue
 * @conn: connection
 * @msg: message; its queue owns the caller's reference, unless it is DEAD
 *
 * Context: any, without L3, L4.
 * Return: the state that the connection had; DEAD: it has not taken it.
 */
enum xrds_state xrds_txq_append(struct xrds_conn *conn,
				struct xrds_msg *msg)
{
	enum xrds_state state;

	spin_lock_bh(&conn->lock);
	msg->life = conn->tx_life;
	state = conn->state;
	if (state != XRDS_ST_DEAD) {
		if (!xrds_txq_bulk_keeps(conn, msg))
			list_add_tail(&msg->node, &conn->sendq);
		if (msg->rop)
			xrds_txq_append_op(conn, msg);
		conn->nr_new++;
		if (msg->flow)
			xrds_txq_append_flow(conn, msg);
		else
			conn->kmsgs++;
		trace_xrds_msg_queue(msg);
	}
	spin_unlock_bh(&conn->lock);
	return state;
}

/**
 * xrds_txq_set_inflight - count a message as transmitted, or no more
 * @msg: message
 * @on: whether it is
 *
 * Context: any, its connection's lock held.
 */
void xrds_txq_set_inflight(struct xrds_msg *msg, bool on)
{
	if (!msg->flow || msg->inflight == on)
		return;
	msg->inflight = on;
	if (on)
		msg->flow->inflight_bytes += msg->len;
	else
		msg->flow->inflight_bytes -= msg->len;
}

/**
 * xrds_txq_take - move a message to inflight
 * @conn: connection
 * @msg: message of sendq; gets a reference
 *
 * Context: the pump, conn->tx_lock and conn->lock held.
 * Return: whether it was posted before.
 */
bool xrds_txq_take(struct xrds_conn *conn, struct xrds_msg *msg)
{
	bool again = msg->posted;

	lockdep_assert_held(&conn->lock);

	xrds_msg_get(msg);
	if (!msg->seq) {
		msg->seq = ++conn->tx_seq;
		conn->nr_new--;
	}
	msg->posted = true;
	xrds_txq_set_inflight(msg, true);
	list_move_tail(&msg->node, &conn->inflight);
	return again;
}

/**
 * xrds_txq_end - take a message out of its queue, to its end
 * @conn: connection
 * @msg: message
 * @list: for xrds_upcall_msgs_done()
 *
 * Context: any, conn->lock held.
 */
void xrds_txq_end(struct xrds_conn *conn, struct xrds_msg *msg,
		  struct list_head *list)
{
	lockdep_assert_held(&conn->lock);

	if (!msg->flow)
		conn->kmsgs--;
	if (msg->bulk)
		conn->nr_bulk--;
	if (!msg->seq)
		conn->nr_new--;
	if (msg->rop)
		list_del_init(&msg->rop->conn_node);
	xrds_txq_set_inflight(msg, false);
	list_del_init(&msg->flow_node);
	msg->ended = true;
	list_move_tail(&msg->node, list);
}
