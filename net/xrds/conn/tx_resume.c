// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is in flight when endpoints come and go: it is kept, sent again, or
 * dropped.
 *
 *   an endpoint ends     xrds_tx_resume_close     nothing is posted any more
 *                        xrds_tx_resume_drop_ops  an op is never repeated
 *                        xrds_tx_resume_clear_posted    if it has ended in order
 *   the next one is up   xrds_tx_resume_open      what the peer has, and has not
 *
 * Toward the same incarnation of the peer everything that it has not
 * acknowledged goes out again, under its old number. Another incarnation has
 * forgotten us: it does not get what was meant for sockets that are gone, nor,
 * if the sockets may be the same, what they may have received already.
 *
 * All of this runs in the connection's work, but for what the receive path
 * asks: whether the peer was born again. From close to open nothing is posted
 * and no acknowledgment is taken, because tx_open is false; senders go on to
 * queue, and who cancels takes out of all lists.
 */
#include "conn/conn.h"
#include "msg.h"
#include "xrds.h"

enum {
	/* ages of peers above this are not told apart */
	XRDS_MAX_AGE_MS		= 3600 * 1000,
};

/* what a hello may need to arrive, and the grain of its clocks */
#define XRDS_AGE_SLACK	(HZ / 10)

/**
 * struct xrds_peer - what a clear-to-send says about an unknown incarnation
 * @restarted:	the peer's sockets are not those of the last connection
 * @born:	jiffies when the peer can have had the first socket
 */
struct xrds_peer {
	bool restarted;
	unsigned long born;
};

static void xrds_tx_resume_evaluate(const struct xrds_conn *conn,
				    const struct xrds_wire_hello *h,
				    struct xrds_peer *peer)
{
	/* beyond that nobody asks, and jiffies stay comparable */
	u32 age_ms = min_t(u32, h->age_ms, XRDS_MAX_AGE_MS);

	peer->born = jiffies - msecs_to_jiffies(age_ms);
	peer->restarted = time_after(peer->born,
				     conn->up_at + XRDS_AGE_SLACK);
}

/**
 * xrds_tx_resume_peer_reborn - has a peer come back without the sockets it had?
 * @conn: connection that was up to another incarnation
 * @h: the peer's clear-to-send
 *
 * Context: any; no clear-to-send of this connection was acted on since.
 * Return: jiffies when it has, 0: the sockets may be the same.
 */
unsigned long xrds_tx_resume_peer_reborn(const struct xrds_conn *conn,
					 const struct xrds_wire_hello *h)
{
	struct xrds_peer peer;

	xrds_tx_resume_evaluate(conn, h, &peer);
	return peer.restarted ? peer.born ?: 1 : 0;
}

/* What a peer of another incarnation must not get: what was meant for sockets
 * that are gone, and what it may have received before it forgot about us. A
 * ping is for whoever is there.
 */
static bool xrds_tx_resume_stale(const struct xrds_peer *peer,
				 const struct xrds_msg *msg)
{
	if (!msg->dport)
		return false;
	return peer->restarted ? time_before(msg->accepted, peer->born) :
				 msg->posted;
}

static void xrds_tx_resume_drop_stale(struct xrds_conn *conn,
				      const struct xrds_peer *peer,
				      struct list_head *queue,
				      struct list_head *stale)
{
	struct xrds_msg *msg, *tmp;

	list_for_each_entry_safe(msg, tmp, queue, node)
		if (xrds_tx_resume_stale(peer, msg))
			xrds_txq_end(conn, msg, stale);
}

/**
 * xrds_tx_resume_open - the peer is ready: data may flow
 * @conn: connection
 * @h: the peer's clear-to-send
 *
 * Takes what it acknowledges, drops what was meant for an earlier
 * incarnation, and puts what remains in flight back to the head of the queue.
 *
 * Context: the connection's work.
 * Return: 0, -EPROTO when the clear-to-send contradicts what was before.
 */
int xrds_tx_resume_open(struct xrds_conn *conn, const struct xrds_wire_hello *h)
{
	/* without an earlier one nothing can be stale */
	bool same = !conn->tx_peer_inc || h->inc == conn->tx_peer_inc;
	u64 ack = h->peer_inc == conn->inc ? h->ack : 0;
	struct xrds_msg *msg, *tmp;
	struct xrds_peer peer;
	LIST_HEAD(acked);
	LIST_HEAD(stale);
	LIST_HEAD(again);

	/* the same peer knows us, and takes back nothing */
	if (ack > conn->tx_seq ||
	    (h->inc == conn->tx_peer_inc &&
	     (h->peer_inc != conn->inc || ack < conn->acked)))
		return -EPROTO;

	xrds_tx_resume_evaluate(conn, h, &peer);
	spin_lock_bh(&conn->tx_lock);
	spin_lock(&conn->lock);
	list_for_each_entry_safe(msg, tmp, &conn->inflight, node) {
		if (msg->seq <= ack) {
			xrds_txq_end(conn, msg, &acked);
		} else if (!same && xrds_tx_resume_stale(&peer, msg)) {
			xrds_txq_end(conn, msg, &stale);
		} else {
			xrds_txq_set_inflight(msg, false);
			list_move_tail(&msg->node, &again);
		}
	}
	if (!same) {
		xrds_tx_resume_drop_stale(conn, &peer, &conn->sendq, &stale);
		xrds_tx_resume_drop_stale(conn, &peer, &conn->bulkq, &stale);
	}
	list_splice(&again, &conn->sendq);
	xrds_txq_bulk_open(conn, h->tags > 1 ?
			     h->frag_bytes - XRDS_WIRE_HDR_BYTES : 0);
	WRITE_ONCE(conn->acked, ack);
	spin_unlock(&conn->lock);
	WRITE_ONCE(conn->tx_peer_inc, h->inc);
	conn->tx_ack_sent = 0;
	conn->tx_unasked = 0;
	WRITE_ONCE(conn->tx_asked, 0);
	WRITE_ONCE(conn->tx_bundles, h->revision >= XRDS_REVISION_BUNDLES);
	WRITE_ONCE(conn->tx_open, true);
	spin_unlock_bh(&conn->tx_lock);

	xrds_upcall_msgs_done(conn->xn, &acked, XRDS_C_SEND_ACKED,
			      RDS_RDMA_DROPPED);
	xrds_upcall_msgs_done(conn->xn, &stale, XRDS_C_SEND_DROP_STALE_PEER,
			      RDS_RDMA_DROPPED);
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

/**
 * xrds_tx_resume_drop_ops - an endpoint has ended: so have its ops
 * @conn: connection without endpoint
 * @unposted: the connection was lost, so ops that still wait end, too
 *
 * Messages without op stay, and will be sent again. An op is never repeated,
 * and its immediate message goes with it.
 *
 * Context: the connection's work.
 */
void xrds_tx_resume_drop_ops(struct xrds_conn *conn, bool unposted)
{
	struct xrds_rop *rop, *tmp;
	LIST_HEAD(drop);

	/* not the messages: this follows each attempt to connect, and there may
	 * be very many of them
	 */
	spin_lock_bh(&conn->lock);
	list_for_each_entry_safe(rop, tmp, &conn->ops, conn_node)
		if (rop->msg->posted || unposted)
			xrds_txq_end(conn, rop->msg, &drop);
	spin_unlock_bh(&conn->lock);

	xrds_upcall_msgs_done(conn->xn, &drop, XRDS_C_SEND_DROP_OP,
			      RDS_RDMA_DROPPED);
}

/**
 * xrds_tx_resume_clear_posted - the endpoint has ended in order
 * @conn: connection without endpoint
 *
 * The peer has acknowledged all it has ever received, so what was posted and
 * is still here has not arrived: whoever answers next may have it.
 *
 * Context: the connection's work.
 */
void xrds_tx_resume_clear_posted(struct xrds_conn *conn)
{
	struct xrds_msg *msg;

	spin_lock_bh(&conn->tx_lock);
	spin_lock(&conn->lock);
	list_for_each_entry(msg, &conn->sendq, node)
		if (!msg->rop)
			msg->posted = false;
	spin_unlock(&conn->lock);
	spin_unlock_bh(&conn->tx_lock);
}

/**
 * xrds_tx_resume_drop_all - end all messages of a dead connection
 * @conn: connection
 *
 * Context: the connection's work, after it was made dead.
 */
void xrds_tx_resume_drop_all(struct xrds_conn *conn)
{
	struct xrds_msg *msg, *tmp;
	LIST_HEAD(drop);
	unsigned int n;

	do {
		n = 0;
		spin_lock_bh(&conn->lock);
		list_splice_tail_init(&conn->sendq, &conn->inflight);
		list_splice_tail_init(&conn->bulkq, &conn->inflight);
		list_for_each_entry_safe(msg, tmp, &conn->inflight, node) {
			if (n++ == XRDS_END_BATCH)
				break;
			xrds_txq_end(conn, msg, &drop);
		}
		spin_unlock_bh(&conn->lock);

		xrds_upcall_msgs_done(conn->xn, &drop, XRDS_C_SEND_DROP_CONN_DEAD,
				      RDS_RDMA_DROPPED);
		cond_resched();
	} while (n > XRDS_END_BATCH);
}
