// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages that a socket has queued are dropped: RDS_CANCEL_SENT_TO, an abort,
 * the end of the time for which a closed socket lingers.
 *
 * The flow of each destination has a list of its own messages, queued and in
 * flight, under the lock of its connection. So the messages of others are not
 * looked at. That lock is held for a part of them at a time only.
 */
#include "conn/conn.h"
#include "sock/dest.h"
#include "msg.h"
#include "sock/sock.h"
#include "xrds.h"

/**
 * struct xrds_cancel - messages of a flow that are being dropped
 * @last:	stamp of the last one that is meant
 * @marks:	ends of streams, too
 * @at:		the next message, with a reference; NULL: begin at the last one
 * @drop:	those that were taken out of the queues
 */
struct xrds_cancel {
	u64 last;
	bool marks;
	struct xrds_msg *at;
	struct list_head drop;
};

/* The youngest first: the messages that still go out meanwhile have no gaps. If
 * the next one has ended meanwhile, those that were queued since are passed over
 * again. Returns whether there are more.
 */
static bool xrds_cancel_some(struct xrds_cancel *c, struct xrds_conn *conn,
			     struct xrds_flow *flow)
{
	struct xrds_msg *old = c->at, *msg, *next;
	u32 n;

	spin_lock_bh(&conn->lock);
	msg = old && !list_empty(&old->flow_node) ? old :
	      list_last_entry(&flow->msgs, struct xrds_msg, flow_node);
	c->at = NULL;
	for (n = 0; flow->conn == conn &&
	     !list_entry_is_head(msg, &flow->msgs, flow_node); n++, msg = next) {
		if (n == XRDS_END_BATCH) {
			xrds_msg_get(msg);
			c->at = msg;
			break;
		}
		next = list_prev_entry(msg, flow_node);
		xrds_count(conn->xn, XRDS_C_SEND_CANCEL_LOOKED);
		/* messages that were queued since are not meant */
		if (msg->stamp > c->last ||
		    (msg->flags & XRDS_F_EOS && !c->marks))
			continue;
		xrds_txq_end(conn, msg, &c->drop);
		/* their ops end in order */
		list_move(&msg->node, &c->drop);
	}
	spin_unlock_bh(&conn->lock);
	xrds_hold_count(XRDS_HOLD_END, n);
	if (old)
		xrds_msg_put(old);
	return c->at;
}

static void xrds_cancel_dest(struct xrds_dest *dest, bool marks)
{
	struct xrds_conn *conn = xrds_flow_conn(&dest->flow);
	struct xrds_cancel c = { .marks = marks };
	bool more;

	if (!conn)
		return;
	INIT_LIST_HEAD(&c.drop);
	spin_lock_bh(&conn->lock);
	c.last = conn->stamp;
	spin_unlock_bh(&conn->lock);
	do {
		more = xrds_cancel_some(&c, conn, &dest->flow);
		/* Ops of other destinations waited for those of this one. And over
		 * loopback one of the messages may be on its way to its receiver: it
		 * is there before the destination has room, and so before a message
		 * that does not wait for the pump (direct.c).
		 */
		xrds_tx_pump(conn);
		xrds_upcall_msgs_done(conn->xn, &c.drop, XRDS_C_SEND_DROP_CLOSED,
				      RDS_RDMA_CANCELED);
		cond_resched();
	} while (more);
	xrds_conn_put(conn);
}

/* The next destination that has something queued, with a reference */
static struct xrds_dest *xrds_cancel_next(struct xrds_sock *xs,
					  struct xrds_dest_walk *walk)
{
	struct xrds_dest *dest;
	u32 n;

	do {
		spin_lock_bh(&xs->lock);
		for (n = 0; n < XRDS_END_BATCH; n++) {
			dest = xrds_dest_walk_next(walk);
			if (!dest || dest->queued_msgs ||
			    dest->eos == XRDS_EOS_QUEUED)
				break;
		}
		if (n < XRDS_END_BATCH && dest)
			xrds_flow_get(&dest->flow);
		spin_unlock_bh(&xs->lock);
		xrds_hold_count(XRDS_HOLD_END, n);
		cond_resched();
	} while (n == XRDS_END_BATCH);
	return dest;
}

static void xrds_cancel_dests(struct xrds_sock *xs, bool marks)
{
	struct xrds_dest_walk walk;
	struct xrds_dest *dest;

	xrds_dest_walk_begin(&walk, xs);
	while ((dest = xrds_cancel_next(xs, &walk))) {
		xrds_cancel_dest(dest, marks);
		xrds_dest_put(dest);
	}
	xrds_dest_walk_end(&walk);
}

/**
 * xrds_cancel_to - drop the messages that a socket has queued for a destination
 * @xs: socket
 * @to: the destination
 *
 * A message that the device has already may still arrive, but is not sent
 * again. Nobody else's messages are looked at, and no lock is held for long,
 * however many there are.
 *
 * Context: process, may sleep.
 */
void xrds_cancel_to(struct xrds_sock *xs, const struct xrds_addr *to)
{
	struct xrds_dest *dest = xrds_dest_find(xs, to);

	if (!dest)
		return;
	xrds_cancel_dest(dest, false);
	xrds_dest_put(dest);
}

/**
 * xrds_cancel_all - the same for all destinations
 * @xs: socket, with xs->walk_lock, or closed
 *
 * Context: process, may sleep.
 */
void xrds_cancel_all(struct xrds_sock *xs)
{
	xrds_cancel_dests(xs, false);
}

/**
 * xrds_cancel_end - cancel what is queued to a destination, and its mark
 * @dest: destination of a socket that has lingered for too long
 *
 * Context: process, may sleep.
 */
void xrds_cancel_end(struct xrds_dest *dest)
{
	xrds_cancel_dest(dest, true);
}

/**
 * xrds_cancel_all_ends - the same, and the ends of streams
 * @xs: socket
 *
 * Context: process, may sleep.
 */
void xrds_cancel_all_ends(struct xrds_sock *xs)
{
	xrds_cancel_dests(xs, true);
}
