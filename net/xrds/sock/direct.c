// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plain message over loopback goes straight into its receiver's queue.
 *
 * Nothing is reserved or kept for it, as it waits nowhere: sendmsg() copies its
 * payload, into the skb that the receiver will get, and returns when that is in
 * the queue. The connection has only to be up, and gives the message a number, so
 * that dumps and messages that are queued know of it.
 *
 * All others go the usual way (send.c): ops and messages with control messages,
 * pings, replies with reserved space, messages with something queued before them,
 * and those that may have to wait for space, for the receiver's account, or for the
 * end of congestion. So do all
 * messages while one of the knobs of loop.c makes the loopback slow or lossy.
 *
 * The socket's lock (L4) is held until the message is in the queue. So it passes no
 * message of this socket, and no end of a stream passes it. The connection's lock
 * (L3) is held for the number only, so senders to different receivers do not wait
 * for one another's.
 */
#include <linux/uio.h>

#include "conn/conn.h"
#include "msg.h"
#include "sock/dest.h"
#include "sock/sock.h"
#include "tracepoints.h"
#include "transport.h"
#include "xrds.h"

/* Is nothing of a destination in use or awaited, and is its port clear? Then there
 * is space for a message of any size. All other cases are for
 * xrds_space_try_reserve(). Without xs->lock the answer is an estimate.
 */
static bool xrds_direct_fits(const struct xrds_dest *dest,
			     const struct xrds_conn *conn)
{
	const struct xrds_sock *xs = dest->key.xs;

	return READ_ONCE(dest->send) == XRDS_SEND_OPEN &&
	       READ_ONCE(dest->linked) && !READ_ONCE(dest->charged) &&
	       !xrds_space_nr_reserved(dest) && !READ_ONCE(xs->ending) &&
	       !READ_ONCE(xs->ready_gone) &&
	       READ_ONCE(dest->unread) <= xrds_sk_rcvbuf(xs) &&
	       (likely(list_empty(&xs->xn->cong_ports)) ||
		!xrds_gate_shut(conn, &dest->flow));
}

/* An estimate, before the payload is copied */
static bool xrds_direct_may(const struct xrds_dest *dest)
{
	const struct xrds_net *xn = dest->key.xs->xn;
	const struct xrds_conn *conn;
	bool may;

	rcu_read_lock();
	conn = READ_ONCE(dest->flow.conn);
	/* while sockets wait for their account it is looked at before the copy */
	may = conn && conn->key.loop && dest->key.port &&
	      likely(list_empty(&xn->recv_waiting)) &&
	      !READ_ONCE(conn->nr_msgs) && !READ_ONCE(xn->loop_delay_ms) &&
	      !READ_ONCE(xn->loop_loss_permille) &&
	      xrds_direct_fits(dest, conn);
	rcu_read_unlock();
	return may;
}

/* A message has gone. Its destination is idle all along, and the last to be
 * evicted now.
 */
static void xrds_direct_gone(struct xrds_dest *dest)
{
	struct xrds_sock *xs = dest->key.xs;

	lockdep_assert_held(&xs->lock);

	xrds_flow_begin(&dest->flow);
	dest->acked_msgs++;
	dest->last_progress_ns = ktime_get_ns();
	if (!list_is_last(&dest->idle_node, &xs->idle_dests))
		list_move_tail(&dest->idle_node, &xs->idle_dests);
}

static void xrds_direct_trace(const struct xrds_dest *dest,
			      const struct xrds_conn *conn, u64 seq, u32 len,
			      enum xrds_counter result)
{
	struct xrds_wire_msg wm = {
		.seq	= seq,
		.len	= len,
		.sport	= dest->key.xs->bind.port,
		.dport	= dest->key.port,
	};

	trace_xrds_msg_rx(conn, &wm, result);
}

/* Returns whether the receiver's queue has consumed the skb. */
static bool xrds_direct_pass(struct xrds_dest *dest, struct sk_buff *skb, u32 len)
{
	struct xrds_sock *xs = dest->key.xs;
	struct xrds_recv_news news = {};
	enum xrds_counter result;
	struct xrds_conn *conn;
	u64 seq = 0;

	rcu_read_lock();
	conn = READ_ONCE(dest->flow.conn);
	if (!conn)
		goto out;
	spin_lock_bh(&conn->lock);
	spin_lock(&xs->lock);
	/* the port may be congested since the copy began */
	if (xrds_direct_fits(dest, conn) &&
	    xrds_recv_direct_fits(dest, conn, skb))
		seq = xrds_txq_direct(conn, &dest->flow, len);
	spin_unlock(&conn->lock);
	if (seq) {
		result = xrds_recv_direct(dest, conn, skb, seq, len, &news);
		xrds_direct_gone(dest);
	}
	spin_unlock_bh(&xs->lock);
	if (seq) {
		xrds_recv_tell(conn, &news);
		xrds_count(xs->xn, result);
		if (trace_xrds_msg_rx_enabled())
			xrds_direct_trace(dest, conn, seq, len, result);
	}
out:
	rcu_read_unlock();
	return seq;
}

/**
 * xrds_direct_send - send a plain message if it can go at once
 * @dest: destination
 * @m: the program's message
 * @len: its length, bytes
 *
 * Context: process, may sleep.
 * Return: @len; -ENOMEM, -EFAULT; -EAGAIN: it goes the usual way.
 */
int xrds_direct_send(struct xrds_dest *dest, struct msghdr *m, u32 len)
{
	struct xrds_net *xn = dest->key.xs->xn;
	struct sk_buff *skb;

	if (!xrds_direct_may(dest))
		return -EAGAIN;
	skb = xrds_loop_transport.payload(&m->msg_iter, len);
	if (IS_ERR(skb))
		return PTR_ERR(skb);
	if (!xrds_direct_pass(dest, skb, len)) {
		kfree_skb(skb);
		iov_iter_revert(&m->msg_iter, len);
		return -EAGAIN;
	}
	xrds_count_add(xn, XRDS_C_COPY_FROM_USER, len);
	xrds_count(xn, XRDS_C_SEND_QUEUED);
	xrds_count(xn, XRDS_C_SEND_ACKED);
	return len;
}
