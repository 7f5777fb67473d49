// SPDX-License-Identifier: GPL-2.0-only
/*
 * Acknowledgments: the messages end that the peer has received.
 *
 * The peer decides how many it acknowledges at once. So the receive path ends one
 * batch of them, and the connection's work the rest. Messages end in order: while
 * the work is at that (conn->acking), later acknowledgments are only noted.
 */
#include "conn/conn.h"
#include "msg.h"
#include "transport.h"
#include "upcall.h"
#include "xrds.h"

/**
 * struct xrds_tx_news - what an acknowledgment has brought about
 * @ready:	a flow may go on
 * @asks:	it answers the last question, and another one waits
 * @parted:	nothing is in flight any more, as the end has to wait for
 */
struct xrds_tx_news {
	bool ready;
	bool asks;
	bool parted;
};

/* End some acknowledged messages in flight. Those that have still to be sent again
 * may have arrived, too: the hello acknowledges less than that where one was refused.
 * Caller holds conn->lock. Returns whether there may be more.
 */
static bool xrds_tx_acked_some(struct xrds_conn *conn, struct list_head *acked,
			       struct xrds_tx_news *news)
{
	struct list_head *lists[] = { &conn->inflight, &conn->again };
	struct xrds_msg *msg, *tmp;
	u32 i, n = 0;

	lockdep_assert_held(&conn->lock);

	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		list_for_each_entry_safe(msg, tmp, lists[i], node) {
			if (msg->seq > conn->acked || n == XRDS_END_BATCH)
				break;
			news->ready |= xrds_txq_end(conn, msg, acked);
			n++;
		}
	}
	news->asks = READ_ONCE(conn->tx_ask_due) &&
		     conn->acked >= READ_ONCE(conn->tx_asked);
	news->parted = READ_ONCE(conn->tx_closing) &&
		       list_empty(&conn->inflight);
	xrds_hold_count(XRDS_HOLD_END, n);
	return n == XRDS_END_BATCH;
}

static void xrds_tx_acked_done(struct xrds_conn *conn, struct list_head *acked)
{
	xrds_upcall_msgs_done(conn->xn, acked, XRDS_C_SEND_ACKED,
			      RDS_RDMA_DROPPED);
}

static void xrds_tx_acked_act(struct xrds_conn *conn,
			      const struct xrds_tx_news *news)
{
	/* loopback never asks, and its pump calls this */
	if (unlikely(news->asks) || (news->ready && !conn->key.loop))
		xrds_tx_pump(conn);
	else if (news->ready)
		xrds_conn_event(conn, XRDS_EV_WANT);
	if (news->parted)
		xrds_conn_event(conn, XRDS_EV_IDLE);
}

/**
 * xrds_tx_acked_rest - end more messages that the peer has received
 * @conn: connection
 *
 * One batch: the peer may go on acknowledging, and other events wait meanwhile.
 * The work comes back for the rest, as long as there is some (conn->acking).
 *
 * Context: the connection's work.
 */
void xrds_tx_acked_rest(struct xrds_conn *conn)
{
	struct xrds_tx_news news = {};
	LIST_HEAD(acked);
	bool more;

	if (likely(!READ_ONCE(conn->acking)))
		return;
	/* messages end in order: those of the next acknowledgment behind these */
	spin_lock_bh(&conn->lock);
	xrds_tx_acked_some(conn, &acked, &news);
	more = !list_empty(&acked);
	WRITE_ONCE(conn->acking, more);
	spin_unlock_bh(&conn->lock);
	xrds_tx_acked_done(conn, &acked);
	xrds_tx_acked_act(conn, &news);
	if (more)
		xrds_conn_event(conn, XRDS_EV_IDLE);
}

/**
 * xrds_tx_acked - the peer has received messages
 * @conn: connection
 * @ack: up to this one
 *
 * Context: any, without L3 or L4.
 * Return: 0, -EPROTO when it acknowledges what was never sent.
 */
int xrds_tx_acked(struct xrds_conn *conn, u64 ack)
{
	struct xrds_tx_news news = {};
	LIST_HEAD(acked);
	bool more;

	/* The common header brings nothing new. Until the connection is open
	 * the numbers may be those of a node that is gone;
	 * xrds_tx_resume_open() takes the peer's word from its clear-to-send.
	 */
	if (ack <= READ_ONCE(conn->acked) || !READ_ONCE(conn->tx_open))
		return 0;
	if (ack > READ_ONCE(conn->tx_seq))
		return -EPROTO;

	spin_lock_bh(&conn->lock);
	if (ack > conn->acked)
		WRITE_ONCE(conn->acked, ack);
	more = !conn->acking && xrds_tx_acked_some(conn, &acked, &news);
	spin_unlock_bh(&conn->lock);
	xrds_tx_acked_done(conn, &acked);
	if (unlikely(more)) {
		spin_lock_bh(&conn->lock);
		WRITE_ONCE(conn->acking, true);
		spin_unlock_bh(&conn->lock);
		xrds_conn_event(conn, XRDS_EV_IDLE);
	}
	xrds_tx_acked_act(conn, &news);
	return 0;
}
EXPORT_SYMBOL_GPL(xrds_tx_acked);

/**
 * xrds_tx_op_failed - an op has failed, and its message goes with it
 * @conn: connection that goes on, of a transport that has not delivered the message
 * @msg: message in flight, or cancelled meanwhile; the caller has a reference
 *
 * Context: any, without L3 or L4.
 */
void xrds_tx_op_failed(struct xrds_conn *conn, struct xrds_msg *msg)
{
	struct xrds_tx_news news = {};
	LIST_HEAD(drop);

	spin_lock_bh(&conn->lock);
	if (!msg->ended)
		news.ready = xrds_txq_end(conn, msg, &drop);
	spin_unlock_bh(&conn->lock);
	xrds_upcall_msgs_done(conn->xn, &drop, XRDS_C_SEND_DROP_OP,
			      RDS_RDMA_DROPPED);
	xrds_tx_acked_act(conn, &news);
}
