// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receiving, the connection's share: from a whole message in the transport's
 * hands to the socket layer, and the acknowledgment.
 *
 * A transport passes each message on once it is complete, one at a time for
 * each connection. Sequence numbers tell duplicates, which a retransmission
 * after a reconnect may bring, from new messages. A number is taken as
 * received, and so acknowledged, only after the message is in its socket's
 * queue, or was refused (refuse.c). Acknowledgments ride on data that flows
 * back. Without any, one is sent after a number of messages or bytes, when the
 * sender asks, or after XRDS_ACK_DELAY_MS.
 *
 * A message for which there is no memory left is refused. That is not possible
 * if it comes from a legacy peer, or if there is no memory to note the refusal.
 * Then it is not acknowledged, nor is anything behind it: it comes again, on a
 * new connection.
 */
#include "conn/conn.h"
#include "msg.h"
#include "tracepoints.h"
#include "transport.h"
#include "upcall.h"
#include "xrds.h"

enum {
	XRDS_ACK_DELAY_MS	= 20,
	/* answers to pings that may wait in one connection's queue, or for
	 * their acknowledgment: of some who ping at once, with 64 each
	 */
	XRDS_MAX_PONGS		= 256,
};

/* The message at hand is lost, and must come again. It must not look as if one
 * behind it were the next.
 */
static void xrds_rx_stop(struct xrds_conn *conn)
{
	struct xrds_addr_text text;

	conn->rx_stopped = true;
	net_warn_ratelimited("xrds: %s: dropping the connection: a socket has too much to read\n",
			     xrds_addr_text(&conn->key.faddr, &text));
	xrds_conn_ep_event(conn, READ_ONCE(conn->ep_gen), XRDS_EV_ERROR,
			   -ENOBUFS);
}

/* The peer waits for an acknowledgment: it gets one for all that has come at
 * once.
 */
static void xrds_rx_need_ack(struct xrds_conn *conn)
{
	if (conn->rx_batch)
		conn->rx_batch_ack = true;
	else
		xrds_tx_need_ack(conn);
}

/* The worker cancels it after the receive path has ended. */
static void xrds_rx_delay_ack(struct xrds_conn *conn)
{
	queue_delayed_work(xrds_conn_wq, &conn->ack_work,
			   msecs_to_jiffies(XRDS_ACK_DELAY_MS));
}

/* Does this message call for an acknowledgment, now or later? */
static void xrds_rx_ack(struct xrds_conn *conn,
			const struct xrds_wire_msg *wm)
{
	struct xrds_net *xn = conn->xn;
	u32 msgs = READ_ONCE(conn->rx_unacked_msgs) + 1;
	u32 bytes = READ_ONCE(conn->rx_unacked_bytes) + wm->len;

	/* Written here, and reset without a lock where an acknowledgment is
	 * sent: a lost update only shifts the time of the next one.
	 */
	WRITE_ONCE(conn->rx_unacked_msgs, msgs);
	WRITE_ONCE(conn->rx_unacked_bytes, bytes);

	if (wm->flags & XRDS_F_ACK_REQUIRED) {
		xrds_count(xn, XRDS_C_RECV_ACK_REQUIRED);
	} else if (msgs < READ_ONCE(xn->max_unacked_packets) &&
		 bytes < READ_ONCE(xn->max_unacked_bytes)) {
		/* either the work sees rx_ack, or we see that it has begun; the
		 * other half is in set_work_pool_and_clear_pending()
		 */
		smp_mb();
		if (!delayed_work_pending(&conn->ack_work))
			xrds_rx_delay_ack(conn);
		return;
	}
	xrds_rx_need_ack(conn);
}

/* The peer needs an acknowledgment, although the last one may have been the same:
 * it may have come before the peer was ready for one. Once for all duplicates that
 * come together.
 */
static void xrds_rx_ack_again(struct xrds_conn *conn)
{
	if (!delayed_work_pending(&conn->ack_work)) {
		spin_lock_bh(&conn->tx_lock);
		conn->tx_ack_sent = 0;
		spin_unlock_bh(&conn->tx_lock);
		xrds_rx_delay_ack(conn);
	}
	xrds_rx_need_ack(conn);
}

/**
 * xrds_rx_ack_work - send the acknowledgment that found no data to ride on
 * @work: ack_work of a connection
 *
 * Context: process.
 */
void xrds_rx_ack_work(struct work_struct *work)
{
	struct xrds_conn *conn = container_of(to_delayed_work(work),
					      struct xrds_conn, ack_work);

	xrds_tx_need_ack(conn);
}

/* The connection that carries answers: the same one, but over loopback that
 * of the other direction. With a reference, or ERR_PTR().
 */
static struct xrds_conn *xrds_rx_pong_conn(struct xrds_conn *conn)
{
	struct xrds_conn_key key = conn->key;

	if (!conn->key.loop || ipv6_addr_equal(&key.laddr, &key.faddr)) {
		xrds_conn_get(conn);
		return conn;
	}
	key.laddr = conn->key.faddr;
	key.faddr = conn->key.laddr;
	return xrds_conn_find_or_create(conn->xn, conn->user, &key, conn->trans,
					GFP_ATOMIC);
}

/* Have an answer sent, or count why not: to a ping of @port, or with 0 to a
 * heartbeat of a legacy peer's kernel. There is none without memory, when too
 * many wait already, or when the socket that pings is congested.
 */
static void xrds_rx_pong_queue(struct xrds_conn *conn, u16 port, bool pump)
{
	struct xrds_net *xn = conn->xn;
	struct xrds_msg *msg;

	if (READ_ONCE(conn->kmsgs) >= XRDS_MAX_PONGS ||
	    (port && xrds_gate_port_shut(conn, port))) {
		xrds_count(xn, XRDS_C_SEND_DROP_PONG);
		return;
	}
	msg = xrds_msg_alloc(xn, 0, GFP_ATOMIC | __GFP_NOWARN);
	if (!msg)
		goto err_no_mem;
	msg->dport = port;
	msg->flags = port ? 0 : XRDS_F_HB_PONG;
	if (conn->trans->prepare && conn->trans->prepare(conn, msg))
		goto err_msg;
	if (!xrds_tx_queue(conn, msg, pump)) {
		xrds_count(xn, XRDS_C_SEND_PONG);
		return;
	}
	xrds_msg_put(msg);
	xrds_count(xn, XRDS_C_SEND_DROP_CONN_DEAD);
	return;

err_msg:
	xrds_msg_put(msg);
err_no_mem:
	xrds_count(xn, XRDS_C_SEND_DROP_PONG_NO_MEM);
}

/* Answer a message to port 0, a ping. */
static void xrds_rx_pong(struct xrds_conn *conn, u16 port)
{
	struct xrds_net *xn = conn->xn;

	xrds_count(xn, XRDS_C_RECV_PING);
	if (!port)
		return;
	if (!READ_ONCE(xn->ping_enable)) {
		xrds_count(xn, XRDS_C_RECV_DROP_PING);
		return;
	}
	conn = xrds_rx_pong_conn(conn);
	if (IS_ERR(conn)) {
		/* that there are too many is counted where it is found */
		if (PTR_ERR(conn) == -ENOMEM)
			xrds_count(xn, XRDS_C_SEND_DROP_PONG_NO_MEM);
		return;
	}
	/* over loopback we are inside the pump already: leave it to the work */
	xrds_rx_pong_queue(conn, port, !conn->key.loop);
	xrds_conn_put(conn);
}

/* A message without ports: a heartbeat of a legacy peer's kernel, the answer to
 * ours, or neither of the two.
 */
static void xrds_rx_beat(struct xrds_conn *conn, const struct xrds_wire_msg *wm)
{
	u8 beat = wm->flags & (XRDS_F_HB_PING | XRDS_F_HB_PONG);

	if (beat && wm->has & XRDS_HAS_CAP_BITS)
		WRITE_ONCE(conn->legacy.answers,
			   wm->cap_bits & XRDS_CAP_HEARTBEAT);
	if (beat == XRDS_F_HB_PING)
		xrds_rx_pong_queue(conn, 0, true);
	else if (beat)
		xrds_count(conn->xn, XRDS_C_RECV_HB_PONG);
}

static void xrds_rx_drop(struct xrds_conn *conn, const struct xrds_wire_msg *wm,
			 struct sk_buff *skb, enum xrds_counter why)
{
	xrds_count(conn->xn, why);
	trace_xrds_msg_rx(conn, wm, why);
	kfree_skb(skb);
}

/* Pass a message on to its socket, or refuse it. Returns the counter of the
 * outcome; XRDS_C_RECV_DROP_OVERFLOW: it must come again.
 */
static enum xrds_counter xrds_rx_deliver(struct xrds_conn *conn,
					 const struct xrds_wire_msg *wm,
					 struct sk_buff *skb)
{
	enum xrds_counter result;

	result = xrds_recv_deliver(conn, wm, skb);
	if (result != XRDS_C_RECV_DROP_OVERFLOW || conn->legacy.heard ||
	    !xrds_refuse_note(conn, wm))
		return result;
	/* the peer is told with the acknowledgment */
	conn->rx_refused = true;
	return XRDS_C_RECV_DROP_REFUSED;
}

/* If the message is behind an op, a region for one use ends with it. It ends before a
 * program can read the message, and also if that is refused: the message comes again
 * without the key (xrds_txq_unsend()), as another region may have the key by then.
 */
static void xrds_rx_used(struct xrds_conn *conn, const struct xrds_wire_msg *wm)
{
	if (wm->has & XRDS_HAS_RDMA)
		xrds_mr_used(conn->xn, xrds_conn_rx_daddr(conn), wm->rdma_rkey);
}

/**
 * xrds_rx_msg - a whole message has arrived
 * @conn: connection
 * @wm: its decoded header
 * @skb: its payload; consumed
 *
 * Calls for one connection never overlap: each endpoint has one completion
 * queue, and a new endpoint is made after the old one was drained.
 *
 * Context: BH, or process with BH disabled.
 */
void xrds_rx_msg(struct xrds_conn *conn, const struct xrds_wire_msg *wm,
		 struct sk_buff *skb)
{
	enum xrds_counter result;
	struct xrds_net *xn = conn->xn;

	if (conn->rx_stopped) {
		xrds_rx_drop(conn, wm, skb, XRDS_C_RECV_DROP_OVERFLOW);
		return;
	}
	if (unlikely(wm->kind == XRDS_KIND_VOID)) {
		/* it has no number; as in mainline, earlier ones are acked */
		xrds_rx_drop(conn, wm, skb, XRDS_C_RECV_DROP_VOID);
		if (wm->flags & XRDS_F_ACK_REQUIRED)
			xrds_rx_need_ack(conn);
		return;
	}
	if (wm->seq < conn->rx_next && xrds_legacy_duplicate(conn, wm)) {
		xrds_rx_drop(conn, wm, skb, XRDS_C_RECV_DROP_OLD_SEQ);
		if (conn->legacy.heard)
			WRITE_ONCE(conn->rx_ack, wm->seq);
		/* a peer that retransmits has missed our acknowledgment */
		if (!conn->key.loop)
			xrds_rx_ack_again(conn);
		return;
	}

	xrds_rx_used(conn, wm);
	if (xrds_refuse_drops(conn, wm)) {
		xrds_rx_drop(conn, wm, skb, XRDS_C_RECV_DROP_REFUSED);
	} else if (wm->has & XRDS_HAS_SILENT) {
		kfree_skb(skb);
	} else if (!wm->dport) {
		kfree_skb(skb);
		trace_xrds_msg_rx(conn, wm, XRDS_C_RECV_PING);
		if (wm->sport)
			xrds_rx_pong(conn, wm->sport);
		else
			xrds_rx_beat(conn, wm);
	} else {
		result = xrds_rx_deliver(conn, wm, skb);
		xrds_count(xn, result);
		trace_xrds_msg_rx(conn, wm, result);
		if (result == XRDS_C_RECV_DROP_OVERFLOW) {
			xrds_rx_stop(conn);
			return;
		}
	}

	/* rx_ack is read by xrds_tx_ack_value(): only now is the message
	 * received
	 */
	WRITE_ONCE(conn->rx_next, wm->seq + 1);
	WRITE_ONCE(conn->rx_bytes, conn->rx_bytes + wm->len);
	/* pairs with the load-acquire in xrds_refuse_ack() */
	smp_store_release(&conn->rx_ack, wm->seq);
	if (unlikely(conn->rx_refused)) {
		conn->rx_refused = false;
		xrds_rx_need_ack(conn);
	} else if (!conn->key.loop) {
		xrds_rx_ack(conn, wm);
	}
}
EXPORT_SYMBOL_GPL(xrds_rx_msg);

/**
 * xrds_rx_hello - the peer's hello has come
 * @conn: connection
 * @gen: see xrds_conn_ep_event()
 * @hello: its content, valid
 *
 * For receiving it takes effect at once, as data may follow before the worker
 * looks: another node starts from one again. For sending as well: a message that is
 * queued next may be the answer to one that comes right behind.
 *
 * Context: the receive path.
 */
void xrds_rx_hello(struct xrds_conn *conn, u32 gen,
		   const struct xrds_wire_hello *hello)
{
	bool other;

	spin_lock_bh(&conn->lock);
	xrds_tx_resume_meet(conn, hello->node);
	other = conn->peer_node != hello->node;
	if (other) {
		conn->reborn |= conn->peer_node || conn->legacy.heard ||
				READ_ONCE(conn->xn->forgot);
		WRITE_ONCE(conn->peer_node, hello->node);
		WRITE_ONCE(conn->rx_next, 1);
	}
	spin_unlock_bh(&conn->lock);
	if (other)
		xrds_refuse_forget(conn);
	xrds_peer_note_node(conn, hello->node);
	xrds_sibling_meet(conn, hello->node);
	conn->legacy.heard = false;
	conn->rx_stopped = false;
	WRITE_ONCE(conn->rx_ack, conn->rx_next - 1);
	conn->hello = *hello;
	/* the lock inside makes conn->hello visible before the event */
	xrds_conn_ep_event(conn, gen, XRDS_EV_CTS, 0);
}
EXPORT_SYMBOL_GPL(xrds_rx_hello);
