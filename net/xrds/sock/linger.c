// SPDX-License-Identifier: GPL-2.0-only
/*
 * Closed sockets that still deliver what they have sent.
 *
 *   close -> xrds_linger_begin  its streams end, behind the queued messages;
 *                               or those are dropped
 *         -> xrds_linger_wait   if SO_LINGER asks for it
 *         -> xrds_linger_start  on the list, with a reference
 *              -> xrds_upcall_drained  everything is acknowledged
 *              -> xrds_linger_work     or its time is over
 *
 * The list is the namespace's, under xn->lock (L5), in the order of deadlines,
 * and one work looks at its head. Taking a socket off the list includes its
 * reference, so that is dropped once. A socket can be drained before it is on
 * the list: xrds_linger_start() checks for that.
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
	xs->linger_end = jiffies +
			 msecs_to_jiffies(READ_ONCE(xs->xn->linger_ms));
	if (sock_flag(sk, SOCK_LINGER) && !sk->sk_lingertime) {
		/* of a stream that was ending, too, see xrds_shutdown() */
		WRITE_ONCE(xs->eos_reason, XRDS_EOS_ABORTED);
		xrds_cancel(xs, NULL, false);
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

/**
 * xrds_linger_start - let a closed socket deliver what it has queued
 * @xs: socket
 *
 * It goes on the list of those that do, behind those that give up earlier:
 * mostly at its end.
 *
 * Context: process, without locks.
 */
void xrds_linger_start(struct xrds_sock *xs)
{
	long left = xs->linger_end - jiffies;
	struct xrds_net *xn = xs->xn;
	struct xrds_sock *before;
	bool first;

	sock_hold(&xs->sk);
	spin_lock_bh(&xn->lock);
	list_for_each_entry_reverse(before, &xn->lingering, linger_node)
		if (!time_before(xs->linger_end, before->linger_end))
			break;
	list_add(&xs->linger_node, &before->linger_node);
	first = list_is_first(&xs->linger_node, &xn->lingering);
	spin_unlock_bh(&xn->lock);
	/* it may be waiting for one that is gone, for longer */
	if (first)
		mod_delayed_work(system_wq, &xn->linger_work, max(left, 0L));

	/* the last message may have gone before we were on the list */
	if (xrds_linger_is_drained(xs))
		xrds_upcall_drained(xs);
}

/* The first on the list if its time is over, else NULL and when that is. */
static struct xrds_sock *xrds_linger_expired(struct xrds_net *xn,
					     unsigned long *wait)
{
	unsigned long now = jiffies;
	struct xrds_sock *xs;

	*wait = 0;
	spin_lock_bh(&xn->lock);
	xs = list_first_entry_or_null(&xn->lingering, struct xrds_sock,
				      linger_node);
	if (xs && time_before(now, xs->linger_end)) {
		*wait = xs->linger_end - now;
		xs = NULL;
	}
	if (xs)
		list_del_init(&xs->linger_node);
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

	while ((xs = xrds_linger_expired(xn, &wait))) {
		xrds_eos_give_up(xs);
		xrds_cancel(xs, NULL, true);
		sock_put(&xs->sk);
		cond_resched();
	}
	if (wait)
		queue_delayed_work(system_wq, &xn->linger_work, wait);
}
