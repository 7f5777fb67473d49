// SPDX-License-Identifier: GPL-2.0-only
/*
 * Closed sockets that still deliver what they have sent.
 *
 *   close -> xrds_linger_begin  its streams end, behind the queued messages;
 *                               or those are dropped
 *         -> xrds_linger_wait   if SO_LINGER asks for it
 *         -> xrds_linger_start  in the queue, with a reference
 *              -> xrds_upcall_drained  everything is acknowledged
 *              -> xrds_linger_work     or its time is over
 *
 * The queue is the namespace's, under xn->lock (L5), in the order of deadlines,
 * and one work looks at its head. Taking a socket off the queue includes its
 * reference, so that is dropped once. A socket can be drained before it is in
 * the queue: xrds_linger_start() checks for that.
 *
 * A socket has left the bind table by then; only its messages find it. It pins
 * no module: the end of the namespace's connections ends all that linger.
 */
#include "conn/conn.h"
#include "sock/dest.h"
#include "sock/sock.h"
#include "xrds.h"

/**
 * xrds_linger_begin - a bound socket is being closed: its streams end
 * @xs: socket
 *
 * SO_LINGER without a time is an abort: queued messages are dropped.
 *
 * Context: process, without locks.
 */
void xrds_linger_begin(struct xrds_sock *xs)
{
	struct sock *sk = &xs->sk;

	/* the wait of close() is a part of it */
	xs->linger_node.expires =
		ktime_add_ms(ktime_get(), READ_ONCE(xs->xn->linger_ms));
	if (sock_flag(sk, SOCK_LINGER) && !sk->sk_lingertime) {
		/* of a stream that was ending, too, see xrds_shutdown() */
		WRITE_ONCE(xs->eos_reason, XRDS_EOS_ABORTED);
		xrds_cancel_all(xs);
		xrds_eos_begin(xs, XRDS_EOS_ABORTED, true);
	} else {
		xrds_eos_begin(xs, XRDS_EOS_FINISHED, true);
	}
}

static bool xrds_linger_is_drained(struct xrds_sock *xs)
{
	bool drained;

	spin_lock_bh(&xs->lock);
	drained = !xs->queued_msgs && !xs->nr_eos;
	spin_unlock_bh(&xs->lock);
	return drained;
}

/**
 * xrds_linger_wait - wait until everything is acknowledged
 * @xs: socket that is being closed
 *
 * SO_LINGER with a time asks for that. A signal ends the wait. There is no wait
 * when a process ends, nor when a ring or a message held the socket last: then
 * a worker closes it, which closes the files of all others, too, and gets no
 * signals.
 *
 * Context: process, without locks; may sleep for as long as SO_LINGER says.
 */
void xrds_linger_wait(struct xrds_sock *xs)
{
	struct sock *sk = &xs->sk;

	if (sock_flag(sk, SOCK_LINGER) && sk->sk_lingertime &&
	    !(current->flags & (PF_EXITING | PF_KTHREAD)))
		wait_event_interruptible_timeout(xs->drained,
						 xrds_linger_is_drained(xs),
						 sk->sk_lingertime);
}

/* Until a socket gives up, jiffies; 0: its time is over */
static unsigned long xrds_linger_left(const struct xrds_sock *xs)
{
	ktime_t left = ktime_sub(xs->linger_node.expires, ktime_get());

	return left <= 0 ? 0 : nsecs_to_jiffies(left) + 1;
}

/**
 * xrds_linger_start - let a closed socket deliver what it has queued
 * @xs: socket
 *
 * Context: process, without locks.
 */
void xrds_linger_start(struct xrds_sock *xs)
{
	struct xrds_net *xn = xs->xn;

	sock_hold(&xs->sk);
	spin_lock_bh(&xn->lock);
	/* the work may wait for one that is gone, for longer */
	if (timerqueue_add(&xn->lingering, &xs->linger_node))
		mod_delayed_work(xrds_conn_wq, &xn->linger_work,
				 xrds_linger_left(xs));
	spin_unlock_bh(&xn->lock);

	/* the last message may have gone before we were in the queue */
	if (xrds_linger_is_drained(xs))
		xrds_upcall_drained(xs);
}

/* The first in the queue if its time is over, else NULL and when that is. */
static struct xrds_sock *xrds_linger_expired(struct xrds_net *xn,
					     unsigned long *wait)
{
	struct timerqueue_node *node;
	struct xrds_sock *xs = NULL;

	*wait = 0;
	spin_lock_bh(&xn->lock);
	node = timerqueue_getnext(&xn->lingering);
	if (node) {
		xs = container_of(node, struct xrds_sock, linger_node);
		*wait = xrds_linger_left(xs);
	}
	if (*wait)
		xs = NULL;
	if (xs)
		timerqueue_del(&xn->lingering, node);
	spin_unlock_bh(&xn->lock);
	return xs;
}

/**
 * xrds_linger_work - give up on closed sockets whose time is over
 * @work: xn->linger_work
 *
 * Context: process.
 */
void xrds_linger_work(struct work_struct *work)
{
	struct xrds_net *xn = container_of(to_delayed_work(work),
					   struct xrds_net, linger_work);
	struct xrds_sock *xs;
	unsigned long wait;
	u32 n;

	for (n = 0; n < XRDS_END_BATCH; n++) {
		xs = xrds_linger_expired(xn, &wait);
		if (!xs)
			break;
		xrds_eos_give_up(xs);
		xrds_cancel_all_ends(xs);
		sock_put(&xs->sk);
		cond_resched();
	}
	/* a flush of the queue does not wait for later sockets */
	if (wait || n == XRDS_END_BATCH)
		queue_delayed_work(xrds_conn_wq, &xn->linger_work, wait);
}
