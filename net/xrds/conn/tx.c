// SPDX-License-Identifier: GPL-2.0-only
/*
 * Transmission: the pump, which gives messages to the transport.
 *
 *   xrds_tx_queue -> flow->queue -> pump -> inflight -> acknowledged -> freed
 *                `---------------------------^
 *
 * The flows of a connection share it (flow.c), and their messages get their
 * numbers in the order in which they go out (txq.c). A message leaves by a
 * cumulative acknowledgment of the peer's kernel, by cancellation, or with the
 * connection: xrds_txq_end(). One that the peer refuses goes back to its flow
 * (refuse.c). tx_resume.c handles the messages in flight when there is a new
 * endpoint.
 *
 * The pump runs where there is a reason: in sendmsg(), in a completion that
 * brought back credits or slots, in the receive path when an acknowledgment has
 * made a flow ready, in the worker after the connection came up or a port was
 * opened. tx_lock makes it one at a time and keeps the order. Two kinds of messages
 * do not pump, so that they can go with others: of a sendmmsg() all but the last, and
 * small ones while the transport is about to pump anyway (tx_corked). If that pump is
 * late, or the call ends early, a work pumps in a moment.
 *
 * A transport that puts several messages into one SEND takes those behind the
 * first by itself, with xrds_tx_dequeue_small(). They go the same way; a SEND
 * is nothing that this file knows.
 *
 * A message moves to inflight before the transport sees it: the peer's answer
 * may be processed on another CPU before xmit() returns.
 */
#include "conn/conn.h"
#include "msg.h"
#include "tracepoints.h"
#include "transport.h"
#include "wire/wire.h"
#include "xrds.h"

enum {
	/* steps of the pump: most of them in one turn, each message of a bundle
	 * is one; an op over loopback, which is copied as it is posted, is many
	 */
	XRDS_PUMP_TURN		= XRDS_WIRE_MAX_BUNDLE_MSGS,
	XRDS_PUMP_COPIED	= 16,
	/* messages that may wait to go together */
	XRDS_CORK_MSGS		= XRDS_WIRE_MAX_BUNDLE_MSGS / 2,
	/* messages after which the peer is asked to acknowledge */
	XRDS_ASK_ACK_MSGS	= 64,
	/* the same of a legacy peer */
	XRDS_LEGACY_ASK_MSGS	= 8,
};

static bool xrds_tx_is_mark(const struct xrds_msg *msg)
{
	return !IS_ERR_OR_NULL(msg) && msg->flags & XRDS_F_EOS;
}

/* Ends of streams that stand in front are over: legacy peers do not know them.
 * Returns whether there may be more.
 */
static bool xrds_tx_skip_marks(struct xrds_conn *conn)
{
	struct xrds_msg *msg;
	LIST_HEAD(marks);
	u32 n = 0;

	lockdep_assert_held(&conn->tx_lock);

	spin_lock(&conn->lock);
	for (; n < XRDS_END_BATCH; n++) {
		msg = xrds_txq_next(conn);
		if (!xrds_tx_is_mark(msg))
			break;
		xrds_txq_end(conn, msg, &marks);
	}
	spin_unlock(&conn->lock);
	xrds_hold_count(XRDS_HOLD_END, n);
	xrds_upcall_msgs_done(conn->xn, &marks, XRDS_C_SEND_ACKED,
			      RDS_RDMA_DROPPED);
	return n == XRDS_END_BATCH;
}

/* Take the next message; with a reference. From here on the transport ends its
 * op. @again: it was posted before. Returns NULL or an ERR_PTR() as
 * xrds_txq_next(), or -EBUSY to go on.
 */
static struct xrds_msg *xrds_tx_next(struct xrds_conn *conn, bool *again)
{
	struct xrds_msg *msg;

	lockdep_assert_held(&conn->tx_lock);

	if (conn->legacy.on && xrds_tx_skip_marks(conn))
		return ERR_PTR(-EBUSY);
	spin_lock(&conn->lock);
	msg = xrds_txq_next(conn);
	/* it was queued this moment */
	if (conn->legacy.on && xrds_tx_is_mark(msg))
		msg = ERR_PTR(-EBUSY);
	if (!IS_ERR_OR_NULL(msg))
		*again = xrds_txq_take(conn, msg);
	spin_unlock(&conn->lock);
	return msg;
}

/* The transport could not take it. A message that was cancelled meanwhile has
 * left its op to us.
 */
static void xrds_tx_putback(struct xrds_conn *conn, struct xrds_msg *msg,
			    bool again, int error)
{
	/* One with an op has a new number if it was posted before: the peer has
	 * refused it, and those of an earlier endpoint have ended with that.
	 */
	bool unsent = error == -EAGAIN && (!again || msg->rop);
	bool untried = unsent && !again;
	bool ended;

	spin_lock(&conn->lock);
	if (untried && !msg->ended)
		msg->posted = false;
	ended = xrds_txq_back(conn, msg, unsent);
	spin_unlock(&conn->lock);
	if (ended && untried && msg->rop)
		xrds_rop_done(msg->rop, RDS_RDMA_CANCELED);
}

/* Should a message to a legacy peer ask for an acknowledgment? The last one does: one
 * that is queued from now on asks as well.
 */
static bool xrds_tx_ask_legacy(struct xrds_conn *conn)
{
	const struct xrds_msg *next;
	bool last;

	if (conn->tx_unasked + 1 >= XRDS_LEGACY_ASK_MSGS)
		return true;
	spin_lock(&conn->lock);
	next = xrds_txq_next(conn);
	last = IS_ERR_OR_NULL(next) || xrds_tx_is_mark(next);
	spin_unlock(&conn->lock);
	return last;
}

/* The window of a flow must open before it is used up. */
static bool xrds_tx_ask_window(const struct xrds_msg *msg)
{
	return msg->flow->unasked + msg->len >= XRDS_FLOW_WINDOW_BYTES / 4;
}

/* The flags of a message that goes out now; true if it asks for an
 * acknowledgment.
 */
static bool xrds_tx_flags(struct xrds_conn *conn, struct xrds_msg *msg,
			  bool again)
{
	u8 ask = 0;

	/* a notice waits for the acknowledgment */
	if (conn->tx_unasked + 1 >= XRDS_ASK_ACK_MSGS ||
	    READ_ONCE(msg->notice) ||
	    (msg->flow && (xrds_space_ack_wanted(msg->flow, msg->len) ||
			   xrds_tx_ask_window(msg))) ||
	    (conn->legacy.on && xrds_tx_ask_legacy(conn)))
		ask = XRDS_F_ACK_REQUIRED;
	msg->flags &= ~(XRDS_F_ACK_REQUIRED | XRDS_F_RETRANSMITTED);
	msg->flags |= ask;
	if (again)
		msg->flags |= XRDS_F_RETRANSMITTED;
	/* one with several fragments when the last one does */
	if (!msg->bulk)
		trace_xrds_msg_post(msg);
	return ask;
}

/* A message with these flags has gone out. */
static void xrds_tx_went(struct xrds_conn *conn, const struct xrds_msg *msg,
			 bool ask, bool again)
{
	lockdep_assert_held(&conn->tx_lock);

	if (msg->flow)
		msg->flow->unasked = ask ? 0 : msg->flow->unasked +
					       xrds_msg_charge(msg->len);
	conn->tx_unasked = ask ? 0 : conn->tx_unasked + 1;
	if (ask)
		xrds_count(conn->xn, XRDS_C_SEND_ACK_REQUIRED);
	if (again)
		xrds_count(conn->xn, XRDS_C_SEND_RETRANSMIT);
}

static int xrds_tx_one(struct xrds_conn *conn, struct xrds_msg *msg,
		       bool again)
{
	bool ask = xrds_tx_flags(conn, msg, again);
	int ret;

	/* one whose op was posted before comes alone, and its node may be gone */
	if (msg->rop && !again)
		trace_xrds_rop_post(msg->rop);
	ret = conn->trans->xmit(conn, msg);
	if (ret)
		return ret;
	xrds_txq_went(conn, msg);
	xrds_tx_went(conn, msg, ask, again);
	return 0;
}

/* Can the message whose turn it is go with another one? */
static struct xrds_msg *xrds_tx_small(struct xrds_conn *conn, u32 room)
{
	struct xrds_msg *msg;

	lockdep_assert_held(&conn->lock);

	msg = xrds_txq_next(conn);
	return !IS_ERR_OR_NULL(msg) && !msg->rop && msg->len <= room ? msg :
								       NULL;
}

/**
 * xrds_tx_waits - do messages wait behind the one at hand?
 * @conn: connection
 *
 * Context: the transport, tx_lock held.
 * Return: whether some do, also if they cannot go yet, or if it is a large one
 * and has no number.
 */
bool xrds_tx_waits(struct xrds_conn *conn)
{
	bool waits;

	lockdep_assert_held(&conn->tx_lock);

	spin_lock(&conn->lock);
	waits = conn->nr_new || !list_empty(&conn->again);
	spin_unlock(&conn->lock);
	return waits;
}
EXPORT_SYMBOL_GPL(xrds_tx_waits);

/**
 * xrds_tx_has_small - does a message wait that could go with the one at hand?
 * @conn: connection
 * @room: most payload that it may have, bytes
 *
 * Context: the transport's xmit(), tx_lock held.
 * Return: whether one does; by the time it is asked for it may be gone.
 */
bool xrds_tx_has_small(struct xrds_conn *conn, u32 room)
{
	bool waits;

	lockdep_assert_held(&conn->tx_lock);

	/* the usual case; one that is queued now is pumped by its sender */
	if (list_empty(&conn->again) && !xrds_flow_any_ready(conn))
		return false;
	spin_lock(&conn->lock);
	waits = xrds_tx_small(conn, room);
	spin_unlock(&conn->lock);
	return waits;
}
EXPORT_SYMBOL_GPL(xrds_tx_has_small);

/**
 * xrds_tx_dequeue_small - take another message, to go with the one at hand
 * @conn: connection
 * @room: most payload that it may have, bytes
 *
 * It has been handed to the transport then, which must not answer with an error
 * any more: the one at hand would go back to the queue, behind this one.
 *
 * Context: the transport's xmit(), tx_lock held.
 * Return: the message, with a reference; NULL: none waits, or not a small one.
 */
struct xrds_msg *xrds_tx_dequeue_small(struct xrds_conn *conn, u32 room)
{
	struct xrds_msg *msg;
	bool again = false;

	lockdep_assert_held(&conn->tx_lock);

	spin_lock(&conn->lock);
	msg = xrds_tx_small(conn, room);
	if (msg)
		again = xrds_txq_take(conn, msg);
	spin_unlock(&conn->lock);
	if (!msg)
		return NULL;
	xrds_tx_went(conn, msg, xrds_tx_flags(conn, msg, again), again);
	conn->tx_taken++;
	return msg;
}
EXPORT_SYMBOL_GPL(xrds_tx_dequeue_small);

/* Acknowledge what no data has acknowledged on its way. */
static int xrds_tx_ack(struct xrds_conn *conn)
{
	int ret = 0;

	lockdep_assert_held(&conn->tx_lock);

	if (!test_and_clear_bit(0, &conn->tx_ack_due))
		return 0;
	if (conn->tx_ack_sent == xrds_refuse_ack(conn))
		return 0;
	ret = conn->trans->xmit_ctl(conn, 0, NULL, 0);
	if (ret)
		set_bit(0, &conn->tx_ack_due);
	else
		xrds_count(conn->xn, XRDS_C_SEND_ACK_ONLY);
	return ret;
}

static int xrds_tx_ctl_msg(struct xrds_conn *conn)
{
	struct xrds_msg *msg = conn->ctl_msg;
	int ret;

	lockdep_assert_held(&conn->tx_lock);

	if (!msg)
		return 0;
	ret = conn->trans->xmit(conn, msg);
	if (ret)
		return ret;
	conn->ctl_msg = NULL;
	xrds_msg_put(msg);
	return 0;
}

static int xrds_tx_keepalive(struct xrds_conn *conn)
{
	int ret;

	lockdep_assert_held(&conn->tx_lock);

	if (likely(!conn->tx_beat_due && !conn->tx_ask_due))
		return 0;
	/* In front of the rest of a large message it would ask too soon; the
	 * transport pumps when it has all of that. One question at a time: the
	 * answer to the last one pumps, too.
	 */
	if (!conn->tx_beat_due &&
	    (conn->tx_bulk || READ_ONCE(conn->acked) < conn->tx_asked))
		return 0;
	ret = conn->trans->xmit_ctl(conn, XRDS_CTL_KEEPALIVE, NULL, 0);
	/* a send under way tells as much as a heartbeat would */
	if (ret == -EINPROGRESS) {
		conn->tx_beat_due = false;
		return conn->tx_ask_due ? -EAGAIN : 0;
	}
	if (ret)
		return ret;
	if (conn->tx_beat_due)
		xrds_count(conn->xn, XRDS_C_SEND_HEARTBEAT);
	conn->tx_beat_due = false;
	if (conn->tx_ask_due && !conn->tx_bulk) {
		xrds_count(conn->xn, XRDS_C_SEND_ASK);
		WRITE_ONCE(conn->tx_ask_due, false);
		WRITE_ONCE(conn->tx_asked, conn->tx_seq);
	}
	return 0;
}

/* Send BYE or BYE_ACK, if one is due. Returns 0, or the error of xmit_ctl(). */
static int xrds_tx_bye(struct xrds_conn *conn)
{
	int ret;

	lockdep_assert_held(&conn->tx_lock);

	if (!conn->tx_bye)
		return 0;
	ret = conn->trans->xmit_ctl(conn, conn->tx_bye, NULL, 0);
	if (ret)
		return ret;
	if (conn->tx_bye == XRDS_CTL_BYE)
		conn->tx_bye_ack = conn->tx_ack_sent;
	conn->tx_bye = 0;
	/* the worker may wait for that alone */
	xrds_conn_event(conn, XRDS_EV_IDLE);
	return 0;
}

/* The messages that wait have sent more than the large one: it goes on first.
 * Returns 0, -EAGAIN: they go on when it has caught up, or an error.
 */
static int xrds_tx_hold(struct xrds_conn *conn)
{
	int ret;

	lockdep_assert_held(&conn->tx_lock);

	conn->tx_held = true;
	ret = conn->trans->xmit(conn, conn->tx_bulk);
	return ret ?: conn->tx_held ? -EAGAIN : 0;
}

/* Returns 0 when nothing is left, -EAGAIN, -EBUSY to go on, or an error. */
static int xrds_tx_some(struct xrds_conn *conn)
{
	struct xrds_msg *msg;
	bool again;
	int ret;

	lockdep_assert_held(&conn->tx_lock);

	/* first what goes although a long op holds up all messages */
	ret = xrds_refuse_xmit(conn);
	if (unlikely(conn->tx_closing))
		return ret ?: xrds_tx_bye(conn);
	if (!ret)
		ret = xrds_tx_keepalive(conn);
	if (!ret)
		ret = xrds_tx_ctl_msg(conn);
	if (!ret)
		ret = xrds_cong_xmit(conn);
	if (ret)
		return ret;

	while (conn->tx_taken <= XRDS_PUMP_BATCH - XRDS_PUMP_TURN) {
		msg = xrds_tx_next(conn, &again);
		if (!msg)
			return 0;
		if (IS_ERR(msg)) {
			ret = PTR_ERR(msg);
			if (ret != -EAGAIN)
				return ret;
			ret = xrds_tx_hold(conn);
			if (ret)
				return ret;
			conn->tx_taken++;
			continue;
		}
		conn->tx_taken += msg->rop && conn->key.loop ?
				  XRDS_PUMP_COPIED : 1;
		ret = xrds_tx_one(conn, msg, again);
		if (ret)
			xrds_tx_putback(conn, msg, again, ret);
		xrds_msg_put(msg);
		if (ret)
			return ret;
	}
	return -EBUSY;
}

/**
 * xrds_tx_pump - post what waits, as far as the transport takes it
 * @conn: connection
 *
 * Context: any, without L2, L3, L4.
 */
void xrds_tx_pump(struct xrds_conn *conn)
{
	int ret = 0;
	u32 gen;

	spin_lock_bh(&conn->tx_lock);
	/* constant while there is an endpoint */
	gen = READ_ONCE(conn->ep_gen);
	conn->tx_taken = 0;
	if (conn->tx_open) {
		ret = xrds_tx_some(conn);
		/* a long op holds up messages, and may not hold up the peer's */
		if (!ret || ret == -EAGAIN)
			ret = xrds_tx_ack(conn) ?: ret;
	}
	xrds_hold_count(XRDS_HOLD_PUMP, conn->tx_taken);
	spin_unlock_bh(&conn->tx_lock);

	if (ret == -EBUSY)
		xrds_conn_event(conn, XRDS_EV_WANT);
	else if (ret && ret != -EAGAIN)
		xrds_conn_ep_event(conn, gen, XRDS_EV_ERROR, ret);
}
EXPORT_SYMBOL_GPL(xrds_tx_pump);

/* A message that needs no queue goes to the transport at once. Where somebody
 * holds tx_lock it is queued, so that it can go with others. Returns whether it
 * was taken.
 */
static bool xrds_tx_pass(struct xrds_conn *conn, struct xrds_msg *msg)
{
	bool passed;
	int ret = 0;
	u32 gen;

	if (!READ_ONCE(conn->tx_open) || !spin_trylock_bh(&conn->tx_lock))
		return false;
	/* constant while there is an endpoint */
	gen = READ_ONCE(conn->ep_gen);
	passed = conn->tx_open && !conn->tx_closing &&
		 xrds_txq_pass(conn, msg);
	if (passed) {
		ret = xrds_tx_one(conn, msg, false);
		if (ret)
			xrds_tx_putback(conn, msg, false, ret);
	}
	spin_unlock_bh(&conn->tx_lock);
	if (!passed)
		return false;
	xrds_msg_put(msg);
	if (ret && ret != -EAGAIN)
		xrds_conn_ep_event(conn, gen, XRDS_EV_ERROR, ret);
	return true;
}

/* Does a small message wait for those behind it? The end of the cork pumps: either
 * its pump sees the message, which has been queued, or we see no cork. A packet that
 * is lost makes that late.
 */
static bool xrds_tx_waits_for_more(const struct xrds_conn *conn, bool small)
{
	return small && READ_ONCE(conn->tx_corked) &&
	       READ_ONCE(conn->nr_new) < XRDS_CORK_MSGS;
}

/* Have the queued messages posted in a moment. The work may be running, too late to
 * see the message: it is queued again then.
 */
static void xrds_tx_push_later(struct xrds_conn *conn)
{
	xrds_conn_get(conn);
	if (!queue_delayed_work(xrds_conn_wq, &conn->push_work, 1))
		xrds_conn_put(conn);
}

/**
 * xrds_tx_queue - give a message to its connection
 * @conn: connection
 * @msg: message; on success the queue owns the caller's reference
 * @pump: post it at once where possible; false where tx_lock may be held
 *
 * Context: any, without L2, L3, L4 (L2 allowed without @pump).
 * Return: 0, -ESTALE when the connection is dead.
 */
int xrds_tx_queue(struct xrds_conn *conn, struct xrds_msg *msg, bool pump)
{
	bool small = msg->len <= XRDS_CORK_BYTES && !msg->rop;
	enum xrds_state state;

	if (pump && !xrds_tx_waits_for_more(conn, small) &&
	    xrds_tx_pass(conn, msg))
		return 0;
	state = xrds_txq_append(conn, msg);
	if (state == XRDS_ST_DEAD)
		return -ESTALE;
	/* see xrds_fsm_pause(): it sees the message, or we saw DOWN */
	if (state == XRDS_ST_DOWN || state == XRDS_ST_CLOSING ||
	    (state == XRDS_ST_UP && !pump)) {
		xrds_conn_event(conn, XRDS_EV_WANT);
	} else if (pump && READ_ONCE(conn->tx_open)) {
		/* it comes before UP; the worker, which sets UP, pumps then */
		if (xrds_tx_waits_for_more(conn, small))
			xrds_tx_push_later(conn);
		else
			xrds_tx_pump(conn);
	}
	return 0;
}

/**
 * xrds_tx_queue_more - the same, and more will follow at once
 * @conn: connection
 * @msg: message; on success the queue owns the caller's reference
 *
 * The message waits for those behind it, to go with them, if that is worth
 * while. The sender of the last of them pumps; should that not happen, a work
 * does in a moment.
 *
 * Context: process, without L2, L3, L4.
 * Return: 0, 1: the message may wait, -ESTALE when the connection is dead.
 */
int xrds_tx_queue_more(struct xrds_conn *conn, struct xrds_msg *msg)
{
	enum xrds_state state;

	/* one that goes alone anyway need not wait, nor what is before it */
	if (!READ_ONCE(conn->tx_bundles) ||
	    msg->len > XRDS_WIRE_MAX_BUNDLE_BYTES - 2 * XRDS_WIRE_HDR_BYTES)
		return xrds_tx_queue(conn, msg, true);
	state = xrds_txq_append(conn, msg);
	if (state == XRDS_ST_DEAD)
		return -ESTALE;
	if (state == XRDS_ST_DOWN || state == XRDS_ST_CLOSING)
		xrds_conn_event(conn, XRDS_EV_WANT);
	else
		xrds_tx_push_later(conn);
	return 1;
}

/**
 * xrds_tx_beat - send something, so that a peer that is gone is noticed
 * @conn: connection that is up
 *
 * Context: process, without L2, L3, L4.
 * Return: false when the one before could not be sent yet: the peer has not
 * taken anything since.
 */
bool xrds_tx_beat(struct xrds_conn *conn)
{
	bool late;

	spin_lock_bh(&conn->tx_lock);
	late = conn->tx_beat_due;
	conn->tx_beat_due = true;
	spin_unlock_bh(&conn->tx_lock);
	if (late)
		return false;
	xrds_tx_pump(conn);
	return true;
}

/**
 * xrds_tx_ask - a sender waits for space: ask for an acknowledgment
 * @conn: connection
 * @flow: flow on it
 * @room: bytes that may be under way to it without a question
 *
 * One at a time: threads that wait for much, and others that go on to send
 * little, would ask for each message. The next question goes when the last one
 * is answered. In-tree RDS does not know this, and is asked often enough; over
 * loopback nobody need ask.
 *
 * Context: any, without L2, L3, L4.
 */
void xrds_tx_ask(struct xrds_conn *conn, struct xrds_flow *flow, u64 room)
{
	bool ask;

	if (conn->key.loop)
		return;
	spin_lock_bh(&conn->tx_lock);
	ask = conn->tx_open && !conn->legacy.on && flow->unasked > room;
	if (ask) {
		/* either the answer to the last question sees this, or the
		 * pump sees the answer
		 */
		spin_lock(&conn->lock);
		WRITE_ONCE(conn->tx_ask_due, true);
		spin_unlock(&conn->lock);
		flow->unasked = 0;
	}
	spin_unlock_bh(&conn->tx_lock);
	if (ask)
		xrds_tx_pump(conn);
}

/**
 * xrds_tx_need_ack - the peer waits for an acknowledgment, or a refusal
 * @conn: connection
 *
 * A pump that is under way sends the acknowledgment last, and sees what has come
 * meanwhile. But it tells refusals first.
 *
 * Context: any, without L2, L3, L4.
 */
void xrds_tx_need_ack(struct xrds_conn *conn)
{
	if (!test_and_set_bit(0, &conn->tx_ack_due) ||
	    unlikely(READ_ONCE(conn->refused_floor)))
		xrds_tx_pump(conn);
}
EXPORT_SYMBOL_GPL(xrds_tx_need_ack);

/**
 * xrds_tx_ack_value - what to put into the header that is sent now
 * @conn: connection
 *
 * Context: any, tx_lock held.
 * Return: the acknowledgment.
 */
u64 xrds_tx_ack_value(struct xrds_conn *conn)
{
	u64 ack = xrds_refuse_ack(conn);

	lockdep_assert_held(&conn->tx_lock);

	if (conn->tx_ack_sent != ack) {
		conn->tx_ack_sent = ack;
		/* see xrds_rx_ack() */
		WRITE_ONCE(conn->rx_unacked_msgs, 0);
		WRITE_ONCE(conn->rx_unacked_bytes, 0);
	}
	return ack;
}
EXPORT_SYMBOL_GPL(xrds_tx_ack_value);

/**
 * xrds_tx_push_work - post messages that have waited for others
 * @work: push_work of a connection
 *
 * Context: process.
 */
void xrds_tx_push_work(struct work_struct *work)
{
	struct xrds_conn *conn = container_of(to_delayed_work(work),
					      struct xrds_conn, push_work);

	xrds_tx_pump(conn);
	xrds_conn_put(conn);
}
