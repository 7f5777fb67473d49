// SPDX-License-Identifier: GPL-2.0-only
/*
 * The orderly end of a connection, and the collection of idle ones.
 *
 * The side that wants to end says BYE behind everything it has sent, and then
 * nothing but acknowledgments: it is CLOSING. The other side, PARTING, says
 * BYE_ACK behind everything it has sent, and then nothing but credits. BYE_ACK
 * acknowledges all that was received, so the first side has nothing in flight
 * any more; it acknowledges what it has received itself, waits until the
 * peer's device has that, and disconnects. The second side waits for
 * the disconnection and for its last acknowledgment, whichever is later.
 * Messages that were queued in between stay queued, and go over the next
 * connection. state.c lists the events that can come in between.
 *
 * If both say BYE, one of them disconnects first, and its device may acknowledge
 * nothing any more. The other one waits a moment for that, and no longer if its
 * BYE has acknowledged all that was received: BYE_ACK says that BYE has come. But
 * it keeps its memory of the peer then, which may have gone without having waited
 * for the answer.
 *
 * Each wait is bounded. The disconnection may get lost on its way: then the
 * second side has waited for nothing else, and that was an end in order as
 * well. An end that was cut short is one like any other loss of a connection:
 * both sides keep their memory, and settle when they meet again.
 *
 * Idle is a connection without messages either way for net.xrds.idle_ms, with
 * nothing queued and nobody who waits for the end of congestion. The worker
 * looks from time to time whether the sequence numbers have moved; so nothing
 * is to be done where messages are sent and received, and heartbeats do not
 * count. After an orderly end the connection itself is freed: its numbers and
 * its record of the peer are of no further use, because nothing is in flight, and
 * its successor goes on with higher numbers (xrds_conn_unhash()). One that
 * is down for other reasons stays as long as a socket is bound here, since the
 * peer may ask what has arrived; then it goes, too. It goes before that if there are
 * many. One that was never up goes soon after an attempt has failed, or its last flow
 * has left, unless somebody wants another. In a namespace other than the first all
 * are idle as soon as its last socket is closed. They end, without regard to their
 * peers, as soon as none lingers.
 */
#include <linux/xrds_netlink.h>

#include "conn/conn.h"
#include "msg.h"
#include "tracepoints.h"
#include "transport.h"
#include "xrds.h"

enum {
	/* how long unload and removal of a device wait for the peer */
	XRDS_CLOSE_MS		= 2000,
	/* how long completions may come behind the news that the peer has
	 * disconnected
	 */
	XRDS_CLOSE_HEARD_MS	= 1000,
	/* of max_connections: above it those that were lost do not stay */
	XRDS_CLOSE_QUARTERS	= 3,
};

/* ----------------------------------------------------------- orderly end */

static void xrds_close_tell(struct xrds_conn *conn, bool orderly)
{
	const struct xrds_closing *why = &conn->closing;

	if (why->kill)
		xrds_peer_down(conn, XRDS_DOWN_REASON_GONE, 0);
	else if (why->removed)
		xrds_peer_down(conn, XRDS_DOWN_REASON_DEVICE, 0);
	else if (!orderly)
		xrds_peer_down(conn, XRDS_DOWN_REASON_LOST,
			       why->error ?: -ETIMEDOUT);
	else if (why->drained)
		xrds_peer_down(conn, XRDS_DOWN_REASON_DRAINED, 0);
	else
		xrds_peer_down(conn, why->idle ? XRDS_DOWN_REASON_IDLE :
			       XRDS_DOWN_REASON_PEER, 0);
}

/* Make a connection without endpoint DEAD unless it is needed. Returns whether
 * it is dead.
 */
static bool xrds_close_forget(struct xrds_conn *conn)
{
	bool dead;

	/* A sender queues its message under the lock: either we see it, or
	 * the sender sees DEAD, and does not find us in the table again.
	 */
	spin_lock_bh(&conn->lock);
	dead = xrds_idle_unused(conn);
	if (dead) {
		xrds_conn_unhash(conn);
		trace_xrds_conn_state(conn, XRDS_ST_DEAD);
		WRITE_ONCE(conn->state, XRDS_ST_DEAD);
	}
	spin_unlock_bh(&conn->lock);
	if (!dead)
		return false;
	xrds_count(conn->xn, XRDS_C_CONN_COLLECTED);
	xrds_fsm_dead(conn);
	return true;
}

/* The last step: forget the connection, or go DOWN. @sure: it was an end in order
 * for the peer as well.
 */
static void xrds_close_finish(struct xrds_conn *conn, bool orderly, bool sure)
{
	struct xrds_closing why = conn->closing;

	xrds_close_tell(conn, orderly);
	xrds_fsm_stop(conn);
	xrds_count(conn->xn, orderly ? XRDS_C_CONN_CLOSED : XRDS_C_CONN_RESET);
	/* a legacy peer does not tell the last number that it has received */
	conn->settled = sure && !conn->legacy.on;
	if (orderly && !conn->legacy.on)
		xrds_tx_resume_clear_posted(conn);
	if (orderly)
		WRITE_ONCE(conn->legacy.told, false);
	if (why.kill) {
		xrds_fsm_kill(conn, 0);
		return;
	}
	/* ops are not for later, unless nothing has happened */
	if (why.removed || !orderly)
		xrds_tx_resume_drop_ops(conn);
	if ((why.idle || why.drained) && sure && xrds_close_forget(conn))
		return;
	if (why.removed || !orderly)
		xrds_fsm_failed(conn);
	else
		xrds_fsm_down(conn);
	/* it was not taken while we were busy */
	if (READ_ONCE(conn->pending))
		xrds_conn_event(conn, XRDS_EV_REQUEST);
}

static void xrds_close_end(struct xrds_conn *conn, bool orderly)
{
	xrds_close_finish(conn, orderly, orderly);
}

/* Has the peer's device all that we have sent? As transport->flushed() */
static int xrds_close_heard(struct xrds_conn *conn)
{
	return conn->trans->flushed ? conn->trans->flushed(conn) : 1;
}

static bool xrds_close_acks(struct xrds_conn *conn)
{
	bool acks;

	spin_lock_bh(&conn->tx_lock);
	acks = conn->tx_ack_sent == READ_ONCE(conn->rx_ack);
	spin_unlock_bh(&conn->tx_lock);
	return acks;
}

/* The peer has nothing in flight toward us once it has our acknowledgment. */
static int xrds_close_flush(struct xrds_conn *conn)
{
	if (!xrds_close_acks(conn)) {
		set_bit(0, &conn->tx_ack_due);
		xrds_tx_pump(conn);
		if (!xrds_close_acks(conn))
			return min(xrds_close_heard(conn), 0);
	}
	return xrds_close_heard(conn);
}

/* Both have said BYE, and answered. Has the peer gone, and was our BYE the last
 * acknowledgment that it needs?
 */
static bool xrds_close_known(struct xrds_conn *conn)
{
	const struct xrds_closing *why = &conn->closing;
	bool last;

	if (!why->gone || !why->peer || !why->answered)
		return false;
	spin_lock_bh(&conn->tx_lock);
	last = !conn->tx_bye && conn->tx_bye_ack == READ_ONCE(conn->rx_ack);
	spin_unlock_bh(&conn->tx_lock);
	return last;
}

static bool xrds_close_due(struct xrds_conn *conn)
{
	bool due;

	spin_lock_bh(&conn->tx_lock);
	due = conn->tx_bye;
	spin_unlock_bh(&conn->tx_lock);
	return due;
}

/* Is all acknowledged? Some of it may not have ended yet, see tx_acked.c. */
static bool xrds_close_acked(struct xrds_conn *conn)
{
	bool acked;

	spin_lock_bh(&conn->lock);
	acked = list_empty(&conn->inflight) ||
		list_last_entry(&conn->inflight, struct xrds_msg,
				node)->seq <= conn->acked;
	spin_unlock_bh(&conn->lock);
	return acked;
}

/* Nothing more will come. */
static void xrds_close_last(struct xrds_conn *conn)
{
	if (xrds_close_known(conn))
		xrds_close_finish(conn, true, false);
	else
		xrds_close_end(conn, false);
}

/**
 * xrds_close_check - is the end reached?
 * @conn: connection that is CLOSING or PARTING
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_close_check(struct xrds_conn *conn, int error)
{
	bool due = xrds_close_due(conn);
	int ret;

	if (conn->state == XRDS_ST_CLOSING) {
		if (!conn->closing.answered || due)
			return;
		ret = xrds_close_flush(conn);
		if (ret > 0)
			xrds_close_end(conn, true);
		else if (ret)
			xrds_close_last(conn);
		return;
	}
	if (!conn->closing.gone)
		return;
	if (due)
		/* it did not wait for our answer */
		xrds_close_end(conn, false);
	else if (xrds_close_acked(conn))
		xrds_close_end(conn, true);
}

/* The end may not take longer than this any more. */
static void xrds_close_within(struct xrds_conn *conn, unsigned int ms)
{
	unsigned long by = xrds_conn_deadline(ms);

	if (time_before(by, conn->deadline))
		xrds_fsm_set(conn, conn->state, by);
}

static void xrds_close_say(struct xrds_conn *conn, enum xrds_state state,
			   u8 type, unsigned int ms)
{
	spin_lock_bh(&conn->tx_lock);
	WRITE_ONCE(conn->tx_closing, true);
	conn->tx_bye = type;
	spin_unlock_bh(&conn->tx_lock);
	/* there is no word for it: it is the last acknowledgment that is sent
	 */
	conn->closing.answered |= conn->legacy.on;
	xrds_fsm_set(conn, state, xrds_conn_deadline(ms));
	xrds_tx_pump(conn);
}

static unsigned int xrds_close_timeout_ms(const struct xrds_conn *conn)
{
	return READ_ONCE(conn->xn->connect_timeout_ms);
}

/* End a connection for a reason that cannot wait long. */
static void xrds_close_soon(struct xrds_conn *conn)
{
	if (conn->key.loop)
		xrds_close_end(conn, true);
	else if (conn->state == XRDS_ST_UP)
		xrds_close_say(conn, XRDS_ST_CLOSING, XRDS_CTL_BYE,
			       XRDS_CLOSE_MS);
	else
		xrds_close_within(conn, XRDS_CLOSE_MS);
}

/**
 * xrds_close_leave - end a connection in order, for good
 * @conn: connection that is UP, CLOSING or PARTING
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_close_leave(struct xrds_conn *conn, int error)
{
	conn->closing.kill = true;
	xrds_close_soon(conn);
}

/**
 * xrds_close_unplug - end a connection in order, as its device goes
 * @conn: connection that is UP, CLOSING or PARTING
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_close_unplug(struct xrds_conn *conn, int error)
{
	conn->closing.removed = true;
	xrds_close_soon(conn);
}

/**
 * xrds_close_part - the peer's BYE has come
 * @conn: connection that is UP
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_close_part(struct xrds_conn *conn, int error)
{
	unsigned int ms = xrds_close_timeout_ms(conn);

	conn->closing.peer = true;
	xrds_close_say(conn, XRDS_ST_PARTING, XRDS_CTL_BYE_ACK,
		       xrds_probe_bound_ms(conn, ms));
}

/**
 * xrds_close_answer - the peer's BYE has come, as we are saying ours
 * @conn: connection that is CLOSING
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_close_answer(struct xrds_conn *conn, int error)
{
	bool said;

	conn->closing.peer = true;
	spin_lock_bh(&conn->tx_lock);
	/* our own may not have got out yet: then the answer is enough */
	said = conn->tx_bye != XRDS_CTL_BYE;
	conn->tx_bye = XRDS_CTL_BYE_ACK;
	spin_unlock_bh(&conn->tx_lock);
	if (!said)
		xrds_fsm_set(conn, XRDS_ST_PARTING, conn->deadline);
	xrds_tx_pump(conn);
	xrds_close_check(conn, 0);
}

/**
 * xrds_close_answered - the peer's BYE_ACK has come
 * @conn: connection that is CLOSING
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_close_answered(struct xrds_conn *conn, int error)
{
	conn->closing.answered = true;
	xrds_close_check(conn, 0);
}

/**
 * xrds_close_gone - the peer has disconnected, or the endpoint is broken
 * @conn: connection that is CLOSING or PARTING
 * @error: how
 *
 * A disconnection in order may be heard of before the peer's last words, and
 * before the completion of ours. Both are here already, or never come.
 *
 * Context: the connection's work.
 */
void xrds_close_gone(struct xrds_conn *conn, int error)
{
	bool more = error == -ECONNRESET && conn->closing.peer;

	conn->closing.gone = true;
	conn->closing.error = error;
	xrds_close_check(conn, 0);
	if (conn->state != XRDS_ST_CLOSING && conn->state != XRDS_ST_PARTING)
		return;
	if (more)
		xrds_close_within(conn, XRDS_CLOSE_HEARD_MS);
	else
		xrds_close_last(conn);
}

/**
 * xrds_close_overtaken - the peer has disconnected, and dials again
 * @conn: connection that is CLOSING or PARTING
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_close_overtaken(struct xrds_conn *conn, int error)
{
	/* an event may tell of one that an earlier step has taken */
	if (READ_ONCE(conn->pending))
		xrds_close_gone(conn, -ECONNRESET);
}

/**
 * xrds_close_expire - the peer has not answered in time
 * @conn: connection that is CLOSING or PARTING
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_close_expire(struct xrds_conn *conn, int error)
{
	/* That the peer has disconnected is told by a datagram, and that is not
	 * repeated. Nothing depends on it.
	 */
	if (conn->state == XRDS_ST_PARTING && !xrds_close_due(conn) &&
	    xrds_close_acked(conn) && xrds_close_heard(conn) > 0) {
		xrds_close_end(conn, true);
		return;
	}
	if (!xrds_close_known(conn))
		xrds_count(conn->xn, XRDS_C_CONN_TIMEOUT);
	xrds_close_last(conn);
}

/* ------------------------------------------------------------------ idle */

/* Is it to end because its namespace is drained? It delivers what is queued
 * first, for as long as an attempt to connect may take.
 */
static bool xrds_close_drains(struct xrds_conn *conn)
{
	unsigned long by = READ_ONCE(conn->xn->drain_by);
	bool wanted;

	if (!xrds_conn_drained(conn))
		return false;
	spin_lock_bh(&conn->lock);
	wanted = xrds_conn_wanted(conn);
	spin_unlock_bh(&conn->lock);
	return !wanted || time_after(jiffies, by);
}

/**
 * xrds_close_collect - end a connection if it is idle, or drained
 * @conn: connection that is UP
 *
 * Context: the connection's work.
 * Return: whether its end has begun.
 */
bool xrds_close_collect(struct xrds_conn *conn)
{
	u64 tx_seq = READ_ONCE(conn->tx_seq);
	u64 rx_next = READ_ONCE(conn->rx_next);
	/* not even a lingering one: the messages that are queued then are the kernel's */
	bool ownerless = xrds_conn_netns_unused(conn->xn) &&
			 !atomic_read(&conn->xn->nr_socks);
	bool unused;

	if (xrds_close_drains(conn)) {
		conn->closing.drained = true;
		xrds_close_say(conn, XRDS_ST_CLOSING, XRDS_CTL_BYE,
			       xrds_close_timeout_ms(conn));
		return true;
	}
	/* it would dial again at once, if there is somebody to dial to */
	if (conn->legacy.on && !ownerless)
		return false;
	if (conn->quiet.tx_seq != tx_seq || conn->quiet.rx_next != rx_next) {
		conn->quiet.tx_seq = tx_seq;
		conn->quiet.rx_next = rx_next;
		conn->quiet.since = jiffies;
	}
	spin_lock_bh(&conn->lock);
	unused = xrds_idle_unused(conn);
	spin_unlock_bh(&conn->lock);
	if (!ownerless &&
	    (!unused || !xrds_idle_timed_out(conn) || xrds_cong_told(conn)))
		return false;

	conn->closing.idle = true;
	if (conn->key.loop)
		xrds_close_end(conn, true);
	else
		xrds_close_say(conn, XRDS_ST_CLOSING, XRDS_CTL_BYE,
			       ownerless ? XRDS_CLOSE_MS :
					   xrds_close_timeout_ms(conn));
	return true;
}

/* Are there so many that peers have made that others were refused, or does its user
 * have nearly as many as there may be? Then those that have been lost for long go,
 * although their peers may come again.
 */
static bool xrds_close_crowded(const struct xrds_conn *conn)
{
	u32 refused_at = READ_ONCE(conn->xn->asked_refused_at);

	if (conn->user)
		return xrds_idle_timed_out(conn) &&
		       xrds_limit_over(conn->xn, conn->user, XRDS_LIMIT_CONNS,
				       XRDS_CLOSE_QUARTERS);
	if (atomic_read(&conn->xn->nr_asked) <= refused_at / 2) {
		WRITE_ONCE(conn->xn->asked_refused_at, 0);
		return false;
	}
	return refused_at && xrds_idle_timed_out(conn);
}

/**
 * xrds_close_go_idle - a connection is down, and nobody wants it
 * @conn: connection that is DOWN
 *
 * Context: the connection's work.
 */
void xrds_close_go_idle(struct xrds_conn *conn)
{
	bool known = conn->peer_node || conn->legacy.heard;
	bool free = conn->settled || conn->key.loop || !known ||
		    xrds_close_crowded(conn) ||
		    !xrds_bind_used(conn->xn, &conn->key.laddr);

	if (free && xrds_idle_timed_out(conn) && xrds_close_forget(conn))
		return;
	xrds_fsm_set(conn, XRDS_ST_DOWN, xrds_idle_check_at(conn));
}
