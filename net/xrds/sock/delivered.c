// SPDX-License-Identifier: GPL-2.0-only
/*
 * XRDS_DELIVERED_EVENT: an open socket that has ended its streams learns that all
 * is delivered.
 *
 *   NOT -> NEWS  the last message or mark was acknowledged, or given up
 *       -> TOLD  recvmsg() has returned XRDS_CMSG_EOS without a source
 *
 * The streams end by shutdown(), see eos.c. The state changes whether or not the
 * program has asked for the event, so it may ask later. It has to ask: a program
 * that counts the ends of streams from others would count this one, too.
 *
 * The acknowledgments come from any context. Nothing is allocated for the event.
 */
#include "sock/sock.h"
#include "xrds.h"

/**
 * xrds_delivered_drop_eos - an end of stream is given up, and never read
 * @xs: socket
 *
 * Context: any.
 */
void xrds_delivered_drop_eos(struct xrds_sock *xs)
{
	xrds_count(xs->xn, XRDS_C_SEND_DROP_EOS);
	WRITE_ONCE(xs->undelivered, true);
}

/**
 * xrds_delivered_check - has a socket that sends nothing more delivered all?
 * @xs: socket
 *
 * Context: any, xs->lock held.
 * Return: whether nothing is left to deliver, for the first time; the caller
 * calls xrds_delivered_wake().
 */
bool xrds_delivered_check(struct xrds_sock *xs)
{
	lockdep_assert_held(&xs->lock);

	if (!xs->ending || xs->eos_callers || xs->queued_msgs || xs->nr_eos ||
	    xs->delivered != XRDS_DELIVERED_NOT)
		return false;
	/* pairs with xrds_delivered_read(): behind @undelivered */
	smp_store_release(&xs->delivered, XRDS_DELIVERED_NEWS);
	return true;
}

/**
 * xrds_delivered_pending - is there a reader to be told that all is delivered?
 * @xs: socket
 *
 * Context: any. Lockless; a woken thread looks again.
 * Return: whether there is.
 */
bool xrds_delivered_pending(const struct xrds_sock *xs)
{
	return READ_ONCE(xs->delivered) == XRDS_DELIVERED_NEWS &&
	       READ_ONCE(xs->delivered_event);
}

/**
 * xrds_delivered_wake - wake readers that are to be told
 * @xs: socket
 *
 * Context: any.
 */
void xrds_delivered_wake(struct xrds_sock *xs)
{
	if (xrds_delivered_pending(xs))
		xs->sk.sk_data_ready(&xs->sk);
}

/**
 * xrds_delivered_read - tell a reader that all is delivered
 * @xs: socket
 * @m: result; without space there MSG_CTRUNC is set, and the news stays
 *
 * Context: process.
 * Return: 1 when that was told, 0 when it is not so or finds no space, -EFAULT.
 */
int xrds_delivered_read(struct xrds_sock *xs, struct msghdr *m)
{
	u32 reason;

	if (!xrds_delivered_pending(xs))
		return 0;
	if (!xrds_cmsg_room(m, sizeof(reason))) {
		m->msg_flags |= MSG_CTRUNC;
		return 0;
	}
	/* a full barrier, pairs with xrds_delivered_check(): @undelivered was
	 * written before the news
	 */
	if (cmpxchg(&xs->delivered, XRDS_DELIVERED_NEWS,
		    XRDS_DELIVERED_TOLD) != XRDS_DELIVERED_NEWS)
		return 0;
	reason = READ_ONCE(xs->undelivered) ? XRDS_EOS_UNDELIVERED :
					      XRDS_EOS_DELIVERED;
	if (!put_cmsg(m, SOL_RDS, XRDS_CMSG_EOS, sizeof(reason), &reason))
		return 1;
	WRITE_ONCE(xs->delivered, XRDS_DELIVERED_NEWS);
	return -EFAULT;
}

/**
 * xrds_delivered_set - XRDS_DELIVERED_EVENT
 * @xs: socket
 * @on: its value
 *
 * Context: process.
 */
void xrds_delivered_set(struct xrds_sock *xs, bool on)
{
	/* either we see the news, or the one that brings it sees the option */
	spin_lock_bh(&xs->lock);
	WRITE_ONCE(xs->delivered_event, on);
	spin_unlock_bh(&xs->lock);
	xrds_delivered_wake(xs);
}
