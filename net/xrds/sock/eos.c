// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a stream: a mark that a receiver reads behind the last message of
 * a socket that stops sending.
 *
 * Sending. shutdown() and close() begin the end of the socket's streams, of
 * one to each destination it has sent to.
 *
 *   NONE -> DUE (on xs->eos_due) -> QUEUED (in its connection) -> DONE
 *
 * The mark is a message like any other: it has a sequence number, is sent
 * again after a reconnect, and the socket lingers until it is acknowledged. At
 * close() nobody else sends, and the marks are queued behind all messages. The
 * port is given up only then, so that the next socket on it cannot be taken for
 * the stream that ends. At shutdown() other threads may be about to queue
 * messages that have their space already. Where that can be, because something
 * is queued, the mark becomes due with the last acknowledgment, or at close().
 *
 * The caller of shutdown() or close() queues the marks that are due, on new
 * connections where it must. A work item queues a mark that becomes due later,
 * on the connection of the destination's last message and on no other: the
 * socket may be closed by then, and its transport about to go. That work runs
 * in xrds_conn_wq, which xrds_conn_net_unload() flushes after the last
 * connection of the transport is dead. It leaves all marks to the caller as
 * long as that is at work (xs->eos_callers), as theirs may need a connection.
 *
 * A destination that was evicted has read all messages, and no end. past.c keeps
 * its address. When all streams end it is made anew, for the mark alone.
 *
 * The receiving half is in source.c. Everything here is guarded by xs->lock
 * (L4).
 */
#include "conn/conn.h"
#include "sock/dest.h"
#include "msg.h"
#include "sock/sock.h"
#include "xrds.h"

enum {
	/* until the next attempt, when there was no memory for a mark */
	XRDS_EOS_RETRY_MS	= 20,
};

/* The streams end: make all destinations anew that were evicted. */
static void xrds_eos_restore_all(struct xrds_sock *xs)
{
	struct xrds_dest *dest;
	struct xrds_addr to;

	while (xrds_past_take(xs, &to)) {
		dest = xrds_dest_find_or_create(xs, &to);
		if (IS_ERR(dest)) {
			xrds_delivered_drop_eos(xs);
		} else {
			xrds_flow_begin(&dest->flow);
			xrds_dest_put(dest);
		}
		cond_resched();
	}
}

/* The next mark that is due. @dial: for a caller, else for the work */
static struct xrds_dest *xrds_eos_next(struct xrds_sock *xs, bool dial)
{
	struct xrds_dest *dest;

	spin_lock_bh(&xs->lock);
	dest = list_first_entry_or_null(&xs->eos_due, struct xrds_dest,
					eos_node);
	if (!dial && xs->eos_callers)
		dest = NULL;
	if (dest) {
		list_del_init(&dest->eos_node);
		dest->eos = XRDS_EOS_QUEUED;
		/* it is linked as long as its end is under way */
		xrds_flow_get(&dest->flow);
	}
	spin_unlock_bh(&xs->lock);
	return dest;
}

static void xrds_eos_later(struct xrds_dest *dest)
{
	struct xrds_sock *xs = dest->key.xs;

	spin_lock_bh(&xs->lock);
	dest->eos = XRDS_EOS_DUE;
	list_add_tail(&dest->eos_node, &xs->eos_due);
	spin_unlock_bh(&xs->lock);
}

/* Returns 0, -ESTALE when the connection is dead, or -ENOMEM. */
static int xrds_eos_queue(struct xrds_dest *dest, struct xrds_conn *conn)
{
	struct xrds_sock *xs = dest->key.xs;
	struct xrds_msg *msg;
	int ret = 0;

	msg = xrds_msg_alloc(xs->xn, 0, GFP_KERNEL | __GFP_NOWARN);
	if (!msg)
		return -ENOMEM;
	msg->sport = xs->bind.port;
	msg->dport = dest->key.port;
	msg->flags = XRDS_F_EOS;
	msg->eos_reason = READ_ONCE(xs->eos_reason);
	msg->flow = &dest->flow;
	xrds_flow_get(&dest->flow);
	if (conn->trans->prepare)
		ret = conn->trans->prepare(conn, msg);
	if (!ret)
		ret = xrds_tx_queue(conn, msg, true);
	if (ret)
		xrds_msg_put(msg);
	else
		xrds_count(xs->xn, XRDS_C_SEND_EOS);
	return ret;
}

/* The connection that the destination's last message went over, if it is
 * still there.
 */
static struct xrds_conn *xrds_eos_conn(struct xrds_dest *dest)
{
	struct xrds_sock *xs = dest->key.xs;
	struct xrds_conn *conn;

	spin_lock_bh(&xs->lock);
	conn = dest->flow.conn;
	if (conn && READ_ONCE(conn->state) != XRDS_ST_DEAD)
		xrds_conn_get(conn);
	else
		conn = ERR_PTR(-ESTALE);
	spin_unlock_bh(&xs->lock);
	return conn;
}

/* One mark. Returns -ENOMEM if it must be tried again later, else 0. */
static int xrds_eos_send_one(struct xrds_dest *dest, bool dial)
{
	struct xrds_sock *xs = dest->key.xs;
	struct xrds_conn *conn;
	int ret;

	do {
		conn = dial ? xrds_dest_conn(dest) : xrds_eos_conn(dest);
		ret = PTR_ERR_OR_ZERO(conn);
		if (ret)
			break;
		ret = xrds_eos_queue(dest, conn);
		xrds_conn_put(conn);
	} while (ret == -ESTALE && dial);

	/* given up, by one who had looked for it before it was queued? */
	if (!ret && !READ_ONCE(xs->ending))
		xrds_cancel_end(dest);
	if (ret == -ENOMEM) {
		xrds_eos_later(dest);
	} else if (ret) {
		xrds_delivered_drop_eos(xs);
		xrds_upcall_eos_done(dest);
		ret = 0;
	}
	return ret;
}

static int xrds_eos_send(struct xrds_sock *xs, bool dial)
{
	struct xrds_dest *dest;
	int ret = 0;

	while (!ret && (dest = xrds_eos_next(xs, dial))) {
		ret = xrds_eos_send_one(dest, dial);
		xrds_dest_put(dest);
		cond_resched();
	}
	return ret;
}

/**
 * xrds_eos_work - queue the marks that have become due
 * @work: eos_work of a socket, with a reference on it
 *
 * Context: process.
 */
void xrds_eos_work(struct work_struct *work)
{
	struct xrds_sock *xs = container_of(to_delayed_work(work),
					    struct xrds_sock, eos_work);

	if (xrds_eos_send(xs, false) &&
	    queue_delayed_work(xrds_conn_wq, &xs->eos_work,
			       msecs_to_jiffies(XRDS_EOS_RETRY_MS)))
		return;
	sock_put(&xs->sk);
}

static void xrds_eos_end(struct xrds_dest *dest)
{
	xrds_dest_eos_due(dest);
	wake_up_interruptible(&dest->space);
}

/* The mark of a destination with something queued is due with the end of that. */
static void xrds_eos_end_idle(struct xrds_dest *dest)
{
	if (dest->queued_msgs)
		wake_up_interruptible(&dest->space);
	else
		xrds_eos_end(dest);
}

/**
 * xrds_eos_begin - a socket sends nothing more
 * @xs: bound socket; the caller has it open
 * @reason: XRDS_EOS_FINISHED or XRDS_EOS_ABORTED
 * @closing: nobody else uses the socket any more
 *
 * Sends that wait fail from here on, those that have space already do not.
 * Readers need no space for replies any more; the caller wakes them.
 *
 * Context: process, may sleep.
 */
void xrds_eos_begin(struct xrds_sock *xs, u32 reason, bool closing)
{
	bool more, done;

	spin_lock_bh(&xs->lock);
	WRITE_ONCE(xs->ending, true);
	xs->eos_callers++;
	WRITE_ONCE(xs->eos_reason, reason);
	xrds_space_release_all(xs);
	spin_unlock_bh(&xs->lock);

	/* The port is given up behind the marks. The work takes no more of them, and
	 * may have one in its hands.
	 */
	if (closing && cancel_delayed_work_sync(&xs->eos_work))
		sock_put(&xs->sk);
	/* from here on none is evicted */
	xrds_eos_restore_all(xs);

	xrds_dest_walk_all(xs, closing ? xrds_eos_end : xrds_eos_end_idle);
	xrds_eos_send(xs, true);

	/* for want of memory, or because they became due just now */
	spin_lock_bh(&xs->lock);
	xs->eos_callers--;
	more = !list_empty(&xs->eos_due);
	done = xrds_delivered_check(xs);
	spin_unlock_bh(&xs->lock);
	if (more)
		xrds_dest_eos_kick(xs);
	if (done)
		xrds_delivered_wake(xs);
}

/**
 * xrds_eos_give_up - a socket has lingered for too long
 * @xs: closed socket
 *
 * The caller cancels the messages and marks that are queued already.
 *
 * Context: process.
 */
void xrds_eos_give_up(struct xrds_sock *xs)
{
	struct xrds_dest *dest;

	spin_lock_bh(&xs->lock);
	WRITE_ONCE(xs->ending, false);
	spin_unlock_bh(&xs->lock);

	while ((dest = xrds_eos_next(xs, true))) {
		xrds_delivered_drop_eos(xs);
		xrds_upcall_eos_done(dest);
		xrds_dest_put(dest);
		cond_resched();
	}
}
