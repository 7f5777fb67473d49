// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages in flight when endpoints come and go: they are kept, sent again, or
 * dropped.
 *
 *   an endpoint ends     xrds_tx_resume_close     nothing is posted any more
 *                        xrds_tx_resume_drop_posted    an op is never repeated
 *                        xrds_tx_resume_clear_posted    if it has ended in order
 *   the peer stays away  xrds_tx_resume_drop_answers    it need not be dialled
 *   the next one is up   xrds_tx_resume_open      what the peer has, and has not
 *
 * Messages that the same node has not acknowledged go out again, under their old
 * numbers. Another node does not get the messages that were queued for the one
 * before: those sockets are gone (xrds_tx_resume_meet() counts the lives of the peer).
 * A node that has forgotten an acknowledgment does not get the posted messages:
 * it may have received them before.
 *
 * All of this runs in the connection's work. From close to open nothing is
 * posted and no acknowledgment is taken, because tx_open is false. Senders go on
 * to queue, and messages that are cancelled leave all lists.
 */
#include "conn/conn.h"
#include "msg.h"
#include "xrds.h"

/* Numbers that a peer may have counted too many, to be met; or the highest number that
 * its word leads to. Connections that are made later begin above it, so a peer could use
 * up the numbers of the namespace. Those of legacy.c, from the clock, are higher.
 */
#define XRDS_RESUME_LEAP	BIT_ULL(16)
#define XRDS_RESUME_MOST	BIT_ULL(48)

/**
 * xrds_tx_resume_meet - it is known which node is at the other end
 * @conn: connection
 * @node: its number, or XRDS_NODE_LEGACY
 *
 * Messages queued until now were for the node that the connection knew. Those queued
 * from now on are for this one. If it knew none, all of them are.
 *
 * Context: BH, @conn->lock held.
 * Return: whether it is another one.
 */
bool xrds_tx_resume_meet(struct xrds_conn *conn, u64 node)
{
	u64 old = conn->legacy.was ? XRDS_NODE_LEGACY : conn->tx_node;
	bool other = old && old != node;

	lockdep_assert_held(&conn->lock);

	if (other)
		conn->tx_life++;
	conn->legacy.was = node == XRDS_NODE_LEGACY;
	WRITE_ONCE(conn->tx_node, conn->legacy.was ? 0 : node);
	return other;
}

/* Is this message for a node that is not there any more? A ping is for any. The next
 * node may be known already (sibling.c): messages for that one stay.
 */
static bool xrds_tx_resume_stale(const struct xrds_msg *msg, u32 life)
{
	return msg->dport && (s32)(msg->life - life) < 0;
}

/* Look at the messages in flight. The others are on conn->again after it. */
static void xrds_tx_resume_sort_inflight(struct xrds_conn *conn, u64 ack,
					 u32 life, bool forgot)
{
	struct xrds_msg *msg, *tmp;
	LIST_HEAD(acked);
	LIST_HEAD(stale);
	LIST_HEAD(todo);
	u32 n;

	spin_lock_bh(&conn->lock);
	list_splice_tail_init(&conn->again, &conn->inflight);
	list_splice_init(&conn->inflight, &todo);
	spin_unlock_bh(&conn->lock);
	do {
		n = 0;
		spin_lock_bh(&conn->lock);
		list_for_each_entry_safe(msg, tmp, &todo, node) {
			if (n == XRDS_END_BATCH)
				break;
			n++;
			if (msg->seq <= ack)
				xrds_txq_end(conn, msg, &acked);
			else if (xrds_tx_resume_stale(msg, life) ||
				 (forgot && msg->posted && msg->dport))
				xrds_txq_end(conn, msg, &stale);
			else
				list_move_tail(&msg->node, &conn->again);
		}
		spin_unlock_bh(&conn->lock);
		xrds_hold_count(XRDS_HOLD_END, n);
		xrds_upcall_msgs_done(conn->xn, &acked, XRDS_C_SEND_ACKED,
				      RDS_RDMA_DROPPED);
		xrds_upcall_msgs_done(conn->xn, &stale,
				      XRDS_C_SEND_DROP_STALE_PEER,
				      RDS_RDMA_DROPPED);
		cond_resched();
	} while (n == XRDS_END_BATCH);
}

/* The same of messages that are queued. They have not been received: those of them
 * that were posted were refused. In a flow the stale messages are the oldest.
 */
static void xrds_tx_resume_drop_flow(struct xrds_conn *conn,
				     struct xrds_flow *flow, u32 life)
{
	struct xrds_msg *msg;
	LIST_HEAD(stale);
	u32 n;

	do {
		spin_lock_bh(&conn->lock);
		for (n = 0; n < XRDS_END_BATCH; n++) {
			msg = list_first_entry_or_null(&flow->queue,
						       struct xrds_msg, node);
			if (!msg || !xrds_tx_resume_stale(msg, life))
				break;
			xrds_txq_end(conn, msg, &stale);
		}
		spin_unlock_bh(&conn->lock);
		xrds_hold_count(XRDS_HOLD_END, n);
		xrds_upcall_msgs_done(conn->xn, &stale,
				      XRDS_C_SEND_DROP_STALE_PEER,
				      RDS_RDMA_DROPPED);
		cond_resched();
	} while (n == XRDS_END_BATCH);
}

static void xrds_tx_resume_drop_queued(struct xrds_conn *conn, u32 life)
{
	struct xrds_flow *flow = NULL;

	while ((flow = xrds_flow_walk(conn, flow)))
		xrds_tx_resume_drop_flow(conn, flow, life);
}

/**
 * xrds_tx_resume_sort - what becomes of messages when there is a new endpoint
 * @conn: connection that is about to be open
 * @ack: the peer has messages up to this one
 * @forgot: the peer may have received the rest, and forgotten that
 *
 * Nothing is posted or acknowledged yet. Messages for a new node that were posted on
 * the endpoint to the old one have not been received by either.
 *
 * Context: the connection's work, without L2, L3, L4.
 */
void xrds_tx_resume_sort(struct xrds_conn *conn, u64 ack, bool forgot)
{
	/* another connection may meet the next node meanwhile */
	u32 life = READ_ONCE(conn->tx_life);
	bool other = life != conn->tx_life_open;

	xrds_tx_resume_sort_inflight(conn, ack, life, forgot && !other);
	if (other)
		xrds_tx_resume_drop_queued(conn, life);
	conn->tx_life_open = life;
}

/* The peer has counted messages that were never sent: its device has delivered one
 * twice, or this node has gone back to a snapshot of its memory. The numbers go on
 * behind them, otherwise no attempt would be better.
 */
static void xrds_tx_resume_leap(struct xrds_conn *conn, u64 ack)
{
	spin_lock_bh(&conn->tx_lock);
	if (ack - conn->tx_seq <= XRDS_RESUME_LEAP || ack <= XRDS_RESUME_MOST)
		WRITE_ONCE(conn->tx_seq, ack);
	spin_unlock_bh(&conn->tx_lock);
}

/**
 * xrds_tx_resume_open - the peer is ready: data may flow
 * @conn: connection
 * @h: the peer's clear-to-send
 *
 * Ends acknowledged messages, drops stale ones, and has the others that are in
 * flight sent again, before all else.
 *
 * The acknowledgment may be lower than an earlier one, as it stays below the
 * numbers of refused messages, which the peer tells again. A peer that has
 * forgotten us does not say that it has received anything, whether it knows us
 * again by our hello or not, or it says so to the node that had our address
 * meanwhile. Nor does a peer that has received nothing yet, but it has
 * acknowledged nothing either, since it has forgotten us last.
 *
 * Context: the connection's work.
 * Return: 0, -EPROTO when it acknowledges what was never sent; mostly the next attempt
 * is good.
 */
int xrds_tx_resume_open(struct xrds_conn *conn, const struct xrds_wire_hello *h)
{
	bool us = h->peer_node == conn->xn->node;
	bool forgot = conn->acked > conn->acked_before &&
		      !(us && h->flags & XRDS_HELLO_KNOWN);
	u64 ack = us ? h->ack : 0;

	if (ack > conn->tx_seq) {
		xrds_tx_resume_leap(conn, ack);
		return -EPROTO;
	}

	xrds_tx_resume_sort(conn, ack, forgot);
	/* its acknowledgments are older than that */
	if (forgot)
		conn->acked_before = conn->acked;

	spin_lock_bh(&conn->tx_lock);
	spin_lock(&conn->lock);
	conn->bulk_over = h->tags > 1 ? h->frag_bytes : U32_MAX;
	WRITE_ONCE(conn->acked, max(conn->acked, ack));
	spin_unlock(&conn->lock);
	conn->tx_ack_sent = 0;
	conn->tx_unasked = 0;
	WRITE_ONCE(conn->tx_asked, 0);
	WRITE_ONCE(conn->tx_bundles, h->flags & XRDS_HELLO_BUNDLES);
	WRITE_ONCE(conn->tx_open, true);
	spin_unlock_bh(&conn->tx_lock);
	return 0;
}

/**
 * xrds_tx_resume_close - nothing may be posted any more
 * @conn: connection
 *
 * Context: the connection's work.
 */
void xrds_tx_resume_close(struct xrds_conn *conn)
{
	struct xrds_msg *ctl;

	spin_lock_bh(&conn->tx_lock);
	WRITE_ONCE(conn->tx_open, false);
	WRITE_ONCE(conn->tx_bundles, false);
	WRITE_ONCE(conn->tx_corked, false);
	xrds_txq_bulk_close(conn);
	ctl = conn->ctl_msg;
	conn->ctl_msg = NULL;
	clear_bit(0, &conn->tx_ack_due);
	conn->tx_beat_due = false;
	WRITE_ONCE(conn->tx_ask_due, false);
	WRITE_ONCE(conn->tx_closing, false);
	conn->tx_bye = 0;
	spin_unlock_bh(&conn->tx_lock);
	if (ctl)
		xrds_msg_put(ctl);
}

/* Has the peer refused the message of an op that was done? It waits for room
 * there. No endpoint is left that could end the op otherwise.
 */
static bool xrds_tx_resume_op_done(const struct xrds_rop *rop)
{
	return !rop->msg->seq && READ_ONCE(rop->done) && !rop->status;
}

/* End some ops, or move them to @keep. Returns whether there are more. */
static bool xrds_tx_resume_drop_some(struct xrds_conn *conn, bool unposted,
				     struct list_head *todo,
				     struct list_head *keep)
{
	struct xrds_rop *rop;
	LIST_HEAD(drop);
	bool more;
	u32 n;

	spin_lock_bh(&conn->lock);
	for (n = 0; n < XRDS_END_BATCH && !list_empty(todo); n++) {
		rop = list_first_entry(todo, struct xrds_rop, conn_node);
		if ((rop->msg->posted ||
		     (unposted && rop->msg->stamp <= conn->stamp_stopped)) &&
		    !xrds_tx_resume_op_done(rop))
			xrds_txq_end(conn, rop->msg, &drop);
		else
			list_move_tail(&rop->conn_node, keep);
	}
	more = !list_empty(todo);
	if (!more)
		list_splice_init(keep, &conn->ops);
	spin_unlock_bh(&conn->lock);

	xrds_hold_count(XRDS_HOLD_END, n);
	xrds_upcall_msgs_done(conn->xn, &drop, XRDS_C_SEND_DROP_OP,
			      RDS_RDMA_DROPPED);
	return more;
}

static void xrds_tx_resume_drop(struct xrds_conn *conn, bool unposted)
{
	LIST_HEAD(todo);
	LIST_HEAD(keep);

	/* Not the messages: this follows each attempt to connect, and there may
	 * be very many of them. Nor ops that are queued meanwhile, without end.
	 */
	spin_lock_bh(&conn->lock);
	list_splice_init(&conn->ops, &todo);
	spin_unlock_bh(&conn->lock);
	while (xrds_tx_resume_drop_some(conn, unposted, &todo, &keep))
		cond_resched();
}

/**
 * xrds_tx_resume_drop_posted - an endpoint has ended: so have its ops
 * @conn: connection without endpoint
 *
 * Messages without op stay, and will be sent again. An op is never repeated,
 * and its immediate message goes with it.
 *
 * Context: the connection's work.
 */
void xrds_tx_resume_drop_posted(struct xrds_conn *conn)
{
	xrds_tx_resume_drop(conn, false);
}

/**
 * xrds_tx_resume_drop_ops - the connection was lost: ops that wait end as well
 * @conn: connection without endpoint
 *
 * Those that came since the end of the endpoint began stay.
 *
 * Context: the connection's work.
 */
void xrds_tx_resume_drop_ops(struct xrds_conn *conn)
{
	xrds_tx_resume_drop(conn, true);
}

/**
 * xrds_tx_resume_drop_answers - the peer of the kernel's own messages is away
 * @conn: connection without endpoint
 *
 * Peers cause answers to pings, so these are no reason to dial for ever. They stay
 * as long as the messages of a closed socket.
 *
 * Context: the connection's work.
 */
void xrds_tx_resume_drop_answers(struct xrds_conn *conn)
{
	struct xrds_msg *msg;
	LIST_HEAD(drop);
	u32 n;

	do {
		spin_lock_bh(&conn->lock);
		for (n = 0; n < XRDS_END_BATCH; n++) {
			msg = list_first_entry_or_null(&conn->own->msgs,
						       struct xrds_msg,
						       flow_node);
			if (!msg)
				break;
			xrds_txq_end(conn, msg, &drop);
		}
		spin_unlock_bh(&conn->lock);
		xrds_hold_count(XRDS_HOLD_END, n);
		xrds_upcall_msgs_done(conn->xn, &drop, XRDS_C_SEND_DROP_PONG,
				      RDS_RDMA_DROPPED);
	} while (n == XRDS_END_BATCH);
}

/**
 * xrds_tx_resume_clear_posted - the endpoint has ended in order
 * @conn: connection without endpoint
 *
 * The peer has acknowledged all it has ever received. So posted messages that
 * are still here have not arrived, and may be sent even if the peer forgets us.
 * If there are none, those queued later are for the node that answers next: the
 * peer may have gone for good.
 *
 * Context: the connection's work.
 */
void xrds_tx_resume_clear_posted(struct xrds_conn *conn)
{
	struct xrds_msg *msg;
	LIST_HEAD(todo);
	u32 n;

	spin_lock_bh(&conn->lock);
	list_splice_init(&conn->again, &todo);
	spin_unlock_bh(&conn->lock);
	/* without an endpoint none comes to conn->again, but some are cancelled */
	do {
		spin_lock_bh(&conn->lock);
		for (n = 0; n < XRDS_END_BATCH && !list_empty(&todo); n++) {
			msg = list_first_entry(&todo, struct xrds_msg, node);
			if (!msg->rop)
				msg->posted = false;
			list_move_tail(&msg->node, &conn->again);
		}
		spin_unlock_bh(&conn->lock);
		xrds_hold_count(XRDS_HOLD_END, n);
		cond_resched();
	} while (n == XRDS_END_BATCH);

	spin_lock_bh(&conn->tx_lock);
	spin_lock(&conn->lock);
	if (!xrds_conn_wanted(conn))
		WRITE_ONCE(conn->tx_node, 0);
	spin_unlock(&conn->lock);
	spin_unlock_bh(&conn->tx_lock);
}

/**
 * xrds_tx_resume_drop_all - end all messages of a dead connection
 * @conn: connection that no flow uses any more
 *
 * Context: the connection's work, after it was made dead.
 */
void xrds_tx_resume_drop_all(struct xrds_conn *conn)
{
	struct xrds_msg *msg, *tmp;
	LIST_HEAD(drop);
	u32 n;

	do {
		n = 0;
		spin_lock_bh(&conn->lock);
		list_splice_tail_init(&conn->again, &conn->inflight);
		list_for_each_entry_safe(msg, tmp, &conn->inflight, node) {
			if (n == XRDS_END_BATCH)
				break;
			xrds_txq_end(conn, msg, &drop);
			n++;
		}
		spin_unlock_bh(&conn->lock);
		xrds_hold_count(XRDS_HOLD_END, n);

		xrds_upcall_msgs_done(conn->xn, &drop, XRDS_C_SEND_DROP_CONN_DEAD,
				      RDS_RDMA_DROPPED);
		cond_resched();
	} while (n == XRDS_END_BATCH);
}
