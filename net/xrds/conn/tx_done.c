// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of messages on their way out: acknowledged, cancelled by their socket,
 * or gone with their connection.
 *
 *   inflight -> acknowledged -+
 *   any list -> cancelled    -+-> xrds_xmit_end -> xrds_xmit_done -> freed
 *   any list -> dropped      -+
 *
 * It has two steps. Under conn->lock a message is taken out of its queue and
 * marked as ended, so that whoever comes next, the pump included, which may just
 * have it at the transport, knows that it is not his any more. Without that lock
 * its space is given back, and it is put: that takes xs->lock and may wake its
 * sender.
 *
 * An acknowledgment says that the peer's kernel has the message. It is taken
 * only while the connection is open, for the numbers of an earlier incarnation
 * of the peer mean nothing. What is cancelled may still arrive, as the device
 * may have it. An op that the transport has never had ends here.
 *
 * Called by the receive path of transports, the connection's work, and the calls
 * of programs that close or cancel.
 */
#include "conn/conn.h"
#include "msg.h"
#include "tracepoints.h"
#include "xrds.h"

/**
 * xrds_xmit_end - take a message out of its queue, to its end
 * @conn: connection
 * @msg: message
 * @list: for xrds_xmit_done()
 *
 * Context: any, conn->lock held.
 */
void xrds_xmit_end(struct xrds_conn *conn, struct xrds_msg *msg,
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
	xrds_xmit_set_inflight(msg, false);
	list_del_init(&msg->flow_node);
	msg->ended = true;
	list_move_tail(&msg->node, list);
}

/**
 * xrds_xmit_acked - the peer has received messages
 * @conn: connection
 * @ack: up to this one
 *
 * Context: any, without L3 or L4.
 * Return: 0, -EPROTO when it acknowledges what was never sent.
 */
int xrds_xmit_acked(struct xrds_conn *conn, u64 ack)
{
	struct xrds_msg *msg, *tmp;
	bool asks, parted;
	LIST_HEAD(acked);

	/* The common header brings nothing new. Until the connection is open
	 * the numbers may be those of an incarnation that is gone;
	 * xrds_xmit_open() takes the peer's word from its clear-to-send.
	 */
	if (ack <= READ_ONCE(conn->acked) || !READ_ONCE(conn->tx_open))
		return 0;
	if (ack > READ_ONCE(conn->tx_seq))
		return -EPROTO;

	spin_lock_bh(&conn->lock);
	list_for_each_entry_safe(msg, tmp, &conn->inflight, node) {
		if (msg->seq > ack)
			break;
		xrds_xmit_end(conn, msg, &acked);
	}
	if (ack > conn->acked)
		WRITE_ONCE(conn->acked, ack);
	asks = READ_ONCE(conn->tx_ask_due) && ack >= READ_ONCE(conn->tx_asked);
	parted = READ_ONCE(conn->tx_closing) && list_empty(&conn->inflight);
	spin_unlock_bh(&conn->lock);

	xrds_xmit_done(conn->xn, &acked, XRDS_C_SEND_ACKED, RDS_RDMA_DROPPED);
	/* loopback, whose pump calls this, never asks */
	if (unlikely(asks))
		xrds_xmit_pump(conn);
	if (parted)
		xrds_conn_event(conn, XRDS_EV_IDLE);
	return 0;
}
EXPORT_SYMBOL_GPL(xrds_xmit_acked);

/**
 * xrds_xmit_drop_all - end all messages of a dead connection
 * @conn: connection
 *
 * Context: the connection's work, after it was made dead.
 */
void xrds_xmit_drop_all(struct xrds_conn *conn)
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
			xrds_xmit_end(conn, msg, &drop);
		}
		spin_unlock_bh(&conn->lock);

		xrds_xmit_done(conn->xn, &drop, XRDS_C_SEND_DROP_CONN_DEAD,
			       RDS_RDMA_DROPPED);
		cond_resched();
	} while (n > XRDS_END_BATCH);
}
