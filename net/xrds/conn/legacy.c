// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peers that speak a legacy version: mainline RDS, and its predecessors.
 *
 * Such a peer sends no clear-to-send. The connection is open as soon as it is
 * established. The peer has no identity, so both sides draw conclusions from
 * numbers:
 *
 * - It acknowledges, per connection, the messages that have arrived on that
 *   connection. So our messages in flight when one ends are sent again on the
 *   next, marked as retransmitted, and the peer drops those that it had.
 * - It takes a message for a duplicate only if it is marked, and has a lower
 *   number than the last. So a restart of ours must not begin with low numbers:
 *   the first is taken from the clock, see xrds_legacy_number().
 * - A message of the peer that has a lower number than the last, but is not
 *   marked, is of a peer that has restarted: its numbers begin anew. So is a
 *   marked one with a number that the peer must know to be acknowledged, because
 *   its device has taken the acknowledgment: it looks at all that has arrived
 *   before it sends again. Other marked ones are duplicates.
 * - An acknowledgment that was meant for an earlier life of the peer would free
 *   messages that have not arrived. So only messages that have arrived on a
 *   connection are acknowledged on it; conn->rx_ack is 0 until then.
 *
 * It acknowledges only when it is asked to, or has something to send. So the
 * last message that can go asks, besides every few.
 *
 * The ends of streams are not for such peers: they leave the queues when their
 * turn comes. Congestion is told by the map, always all of it. There is no word
 * for the end of a connection: a side that has lost it dials again, at once, so
 * idle connections stay. The heartbeat is an acknowledgment, which the peer's
 * device acknowledges if it is there.
 *
 * That says nothing about the peer's kernel. Oracle's kernels have a heartbeat
 * that the other kernel answers. They send one when a connection has come up,
 * and it says that they answer such heartbeats themselves. From then on this
 * side sends them as well, and ends the connection when no answer comes.
 */
#include <linux/ktime.h>

#include "conn/conn.h"
#include "msg.h"
#include "upcall.h"
#include "xrds.h"

enum {
	/* a port that no program can bind on such peers, as their kernels use
	 * it; messages to it are received, acknowledged and dropped
	 */
	XRDS_LEGACY_NO_PORT	= 1,
	/* times that a heartbeat was due and nothing was received, before the
	 * peer's kernel counts as dead
	 */
	XRDS_LEGACY_MAX_UNANSWERED = 3,
};

/* ------------------------------------------------------------ receiving */

/**
 * xrds_legacy_heard - the first message on a new endpoint is a legacy one
 * @conn: connection
 *
 * Context: the receive path.
 */
void xrds_legacy_heard(struct xrds_conn *conn)
{
	/* a connection to an XRDS node may have been forgotten */
	bool other = conn->peer_node || READ_ONCE(conn->xn->forgot);

	/* numbers of an XRDS node are not this one's */
	if (conn->peer_node) {
		WRITE_ONCE(conn->rx_next, 1);
		WRITE_ONCE(conn->xn->forgot, true);
	}
	conn->peer_node = 0;
	other |= xrds_peer_note_node(conn, XRDS_NODE_LEGACY);
	/* nor are its streams */
	if (other)
		queue_work(xrds_conn_wq, &conn->xn->lost_work);
	xrds_refuse_forget(conn);
	conn->rx_stopped = false;
	conn->legacy.heard = true;
}
EXPORT_SYMBOL_GPL(xrds_legacy_heard);

/**
 * xrds_legacy_duplicate - is a message with a low number a duplicate?
 * @conn: connection
 * @wm: its header
 *
 * Context: the receive path.
 * Return: whether it is; else the peer has restarted.
 */
bool xrds_legacy_duplicate(struct xrds_conn *conn,
			   const struct xrds_wire_msg *wm)
{
	if (!conn->legacy.heard)
		return true;
	if (wm->flags & XRDS_F_RETRANSMITTED &&
	    wm->seq > READ_ONCE(conn->legacy.confirmed))
		return true;
	WRITE_ONCE(conn->legacy.confirmed, 0);
	return false;
}

/**
 * xrds_legacy_confirm - the peer's device has taken an acknowledgment
 * @conn: connection
 * @ack: the acknowledgment
 *
 * Context: completions.
 */
void xrds_legacy_confirm(struct xrds_conn *conn, u64 ack)
{
	if (ack > READ_ONCE(conn->legacy.confirmed))
		WRITE_ONCE(conn->legacy.confirmed, ack);
}
EXPORT_SYMBOL_GPL(xrds_legacy_confirm);

/* --------------------------------------------------------------- opening */

/**
 * xrds_legacy_start - a connection to a legacy peer is established
 * @conn: connection
 * @gen: see xrds_conn_ep_event()
 * @ack: acknowledgment in the peer's private data
 *
 * Context: the connection's work.
 */
void xrds_legacy_start(struct xrds_conn *conn, u32 gen, u64 ack)
{
	WRITE_ONCE(conn->legacy.on, true);
	conn->legacy.ack = ack;
	xrds_conn_ep_event(conn, gen, XRDS_EV_CTS, 0);
}
EXPORT_SYMBOL_GPL(xrds_legacy_start);

/**
 * xrds_legacy_ack - the acknowledgment of a request or reply
 * @conn: connection without endpoint, or whose endpoint has heard nothing
 *
 * Context: the connection's work.
 * Return: the last number that a legacy peer has sent, 0: none.
 */
u64 xrds_legacy_ack(const struct xrds_conn *conn)
{
	return conn->legacy.heard ? conn->rx_next - 1 : 0;
}
EXPORT_SYMBOL_GPL(xrds_legacy_ack);

/* The peer may remember the numbers of an earlier life of this module. */
static void xrds_legacy_number(struct xrds_conn *conn)
{
	u64 us = ktime_get_real_ns() >> 10;

	lockdep_assert_held(&conn->tx_lock);

	if (conn->legacy.numbered)
		return;
	conn->legacy.numbered = true;
	if (us > conn->tx_seq)
		WRITE_ONCE(conn->tx_seq, us);
}

/**
 * xrds_legacy_open - data may flow to a legacy peer
 * @conn: connection
 *
 * Messages in flight are sent again, before all others. But if an XRDS node was
 * there before, all of them were meant for sockets that are gone; and the payload
 * of one that is queued may be in pieces that only XRDS nodes take (zcopy.c).
 *
 * Context: the connection's work.
 */
void xrds_legacy_open(struct xrds_conn *conn)
{
	bool changed;
	u64 ack = conn->legacy.ack;

	spin_lock_bh(&conn->lock);
	changed = xrds_tx_resume_meet(conn, XRDS_NODE_LEGACY);
	spin_unlock_bh(&conn->lock);
	xrds_sibling_meet(conn, XRDS_NODE_LEGACY);
	/* of an earlier life of ours */
	if (ack > conn->tx_seq || changed)
		ack = 0;
	xrds_tx_resume_sort(conn, ack, false);

	spin_lock_bh(&conn->tx_lock);
	spin_lock(&conn->lock);
	conn->bulk_over = U32_MAX;
	if (ack > conn->acked)
		WRITE_ONCE(conn->acked, ack);
	/* the peer remembers the map of an earlier connection */
	conn->cong_nr = 0;
	conn->cong_full = true;
	spin_unlock(&conn->lock);
	xrds_legacy_number(conn);
	conn->tx_ack_sent = 0;
	conn->tx_unasked = 0;
	conn->legacy.unanswered = 0;
	WRITE_ONCE(conn->tx_open, true);
	spin_unlock_bh(&conn->tx_lock);
}

/* --------------------------------------------------------------- sending */

/* Queue a message of the kernel's own, which nobody gets to see. Returns it, with
 * a reference; NULL without memory for it, or when the connection is dead.
 */
static struct xrds_msg *xrds_legacy_queue(struct xrds_conn *conn, u16 port,
					  u8 flags)
{
	struct xrds_msg *msg;

	msg = xrds_msg_alloc(conn->xn, 0, GFP_KERNEL | __GFP_NOWARN);
	if (!msg)
		return NULL;
	msg->sport = port;
	msg->dport = port;
	msg->flags = flags;
	xrds_msg_get(msg);
	if (!xrds_tx_queue(conn, msg, true))
		return msg;
	xrds_msg_put(msg);
	xrds_msg_put(msg);
	return NULL;
}

/* Is the last heartbeat in progress? If not, it is forgotten. */
static bool xrds_legacy_pinging(struct xrds_conn *conn)
{
	struct xrds_msg *ping = conn->legacy.ping;
	bool ended;

	if (!ping)
		return false;
	spin_lock_bh(&conn->lock);
	ended = ping->ended;
	spin_unlock_bh(&conn->lock);
	if (!ended)
		return true;
	conn->legacy.ping = NULL;
	xrds_msg_put(ping);
	return false;
}

/* Send a heartbeat to a peer that answers them, one at a time. The answer may
 * wait behind much that the peer has to send, so any message counts for it.
 */
static bool xrds_legacy_ping(struct xrds_conn *conn)
{
	struct xrds_legacy *legacy = &conn->legacy;
	u64 next = READ_ONCE(conn->rx_next);

	if (legacy->heard_next != next) {
		legacy->heard_next = next;
		legacy->unanswered = 0;
	}
	if (legacy->unanswered == XRDS_LEGACY_MAX_UNANSWERED)
		return false;
	if (!xrds_legacy_pinging(conn)) {
		legacy->ping = xrds_legacy_queue(conn, 0, XRDS_F_HB_PING);
		if (!legacy->ping)
			return true;
		xrds_count(conn->xn, XRDS_C_SEND_HB_PING);
	}
	legacy->unanswered++;
	return true;
}

/**
 * xrds_legacy_close - the endpoint has ended: so has the heartbeat
 * @conn: connection without endpoint
 *
 * It would otherwise be a reason to connect again. The next peer may be another.
 *
 * Context: the connection's work.
 */
void xrds_legacy_close(struct xrds_conn *conn)
{
	struct xrds_msg *ping = conn->legacy.ping;
	LIST_HEAD(ended);

	WRITE_ONCE(conn->legacy.answers, false);
	conn->legacy.ping = NULL;
	if (!ping)
		return;
	spin_lock_bh(&conn->lock);
	if (!ping->ended)
		xrds_txq_end(conn, ping, &ended);
	spin_unlock_bh(&conn->lock);
	xrds_upcall_msgs_done(conn->xn, &ended, XRDS_C_SEND_DROP_CONN_DEAD,
			      RDS_RDMA_DROPPED);
	xrds_msg_put(ping);
}

/**
 * xrds_legacy_beat - have the messages in flight acknowledged
 * @conn: connection that is up
 *
 * The message that was to ask may have been cancelled before it was sent. This
 * one asks in its place, and nobody gets to see it. A heartbeat, where the peer
 * answers them, asks as well.
 *
 * Context: the connection's work, without L2, L3, L4.
 * Return: false when the peer's kernel has answered none of the last heartbeats.
 */
bool xrds_legacy_beat(struct xrds_conn *conn)
{
	struct xrds_msg *msg;
	bool asked;

	if (READ_ONCE(conn->legacy.answers))
		return xrds_legacy_ping(conn);
	spin_lock_bh(&conn->lock);
	asked = list_empty(&conn->inflight) || !list_empty(&conn->again) ||
		xrds_flow_any_ready(conn) || conn->kmsgs;
	spin_unlock_bh(&conn->lock);
	msg = asked ? NULL : xrds_legacy_queue(conn, XRDS_LEGACY_NO_PORT, 0);
	if (msg)
		xrds_msg_put(msg);
	return true;
}
