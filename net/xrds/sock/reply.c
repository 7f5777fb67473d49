// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reply reservation: no request is read before its answer can be queued.
 *
 * With XRDS_REPLY_RESERVE a message is handed to the program only together
 * with send space toward its source. The space stays the program's: its next
 * message to that source, if it is not larger, draws on it and is queued in any
 * state of the destination. Messages whose source has no space left wait in the
 * receive queue, and count there, so that the socket becomes congested and a
 * peer that asks too much is stopped. Those of other sources are handed out
 * meanwhile; of one source none overtakes another.
 *
 * Such replies are delivered to a congested source, too: it may be congested
 * because it cannot read before we have. But one that asks and never reads
 * would pile them up. So the replies that come to a congested socket are
 * counted by the destination they are from, and while more than SO_RCVBUF of
 * them are unread, nothing more can be asked there. Replies themselves always
 * pass, so nobody waits for another in a circle.
 *
 * All reservations of a socket have the same size, so a destination counts
 * them. One that holds messages back is marked, and wakes readers when it has
 * space. A socket that sends nothing more gives them all back.
 *
 * xs->lock (L4) guards it all; the receive queue's lock (L5) is taken inside.
 */
#include "conn/conn.h"
#include "sock/dest.h"
#include "msg.h"
#include "sock/sock.h"
#include "xrds.h"

static bool xrds_reply_same_source(const struct sk_buff *a,
				   const struct sk_buff *b)
{
	const struct xrds_skb_cb *x = xrds_skb((struct sk_buff *)a);
	const struct xrds_skb_cb *y = xrds_skb((struct sk_buff *)b);

	return x->sport == y->sport && x->scope == y->scope &&
	       ipv6_addr_equal(&x->saddr, &y->saddr);
}

static void xrds_reply_source(const struct sk_buff *skb, struct xrds_addr *a)
{
	const struct xrds_skb_cb *cb = xrds_skb((struct sk_buff *)skb);

	a->addr = cb->saddr;
	a->scope = cb->scope;
	a->port = cb->sport;
}

/* Are messages from the same source held back? */
static bool xrds_reply_held(struct xrds_sock *xs, const struct sk_buff *skb)
{
	struct xrds_dest *dest;
	struct xrds_addr from;
	bool held;

	xrds_reply_source(skb, &from);
	dest = xrds_dest_find(xs, &from);
	if (!dest)
		return false;
	/* see xrds_space_can_reserve_reply(); the walk has met those of this
	 * source
	 */
	held = dest->holds;
	/* not the last reference: the table's goes under xs->lock */
	xrds_dest_put(dest);
	return held;
}

/* Needs a message no reservation? The kernel's answer to a ping is not to be
 * answered, and the end of a stream is not either. A socket that sends nothing
 * more answers nothing. The option may be off since the reader looked at it.
 */
static bool xrds_reply_none_due(const struct xrds_sock *xs,
				const struct sk_buff *skb)
{
	const struct xrds_skb_cb *cb = xrds_skb((struct sk_buff *)skb);

	lockdep_assert_held(&xs->lock);

	return !xs->reply_reserve || xs->ending || !cb->sport ||
	       cb->flags & XRDS_F_EOS;
}

/* The first message whose source can be answered, or NULL. Ends of streams are
 * among them if @marks is set; else those in front of it go, in the same pass,
 * as the row of held messages may be long. With @peek none goes, and *cleared
 * is not needed. *dest is the destination of the message's source, with a
 * reference, or NULL if there is none yet or none is needed.
 */
static struct sk_buff *xrds_reply_find(struct xrds_sock *xs, bool peek,
				       bool marks, bool *cleared,
				       struct xrds_dest **dest)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	const struct sk_buff *held = NULL;
	struct sk_buff *skb, *next;
	struct xrds_addr from;

	lockdep_assert_held(&xs->lock);
	lockdep_assert_held(&queue->lock);

	skb_queue_walk_safe(queue, skb, next) {
		*dest = NULL;
		if (xrds_skb(skb)->flags & XRDS_F_EOS) {
			/* the end of a stream overtakes nothing of it */
			if ((peek && !marks) || xrds_reply_held(xs, skb))
				continue;
			if (marks)
				return skb;
			*cleared |= xrds_rcvbuf_drop_mark(xs, skb);
			continue;
		}
		if (xrds_reply_none_due(xs, skb))
			return skb;
		/* mostly they come in a row */
		if (held && xrds_reply_same_source(held, skb))
			continue;
		xrds_reply_source(skb, &from);
		*dest = xrds_dest_find(xs, &from);
		if (!*dest || xrds_space_can_reserve_reply(*dest))
			return skb;
		/* not the last reference: the table's goes under xs->lock */
		xrds_dest_put(*dest);
		held = skb;
	}
	*dest = NULL;
	return NULL;
}

/**
 * xrds_reply_ready - is there a message that may be handed out?
 * @xs: socket with XRDS_REPLY_RESERVE
 * @marks: or the end of a stream
 *
 * Context: any, without L4.
 * Return: whether there is.
 */
bool xrds_reply_ready(struct xrds_sock *xs, bool marks)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	struct xrds_dest *dest;
	bool ready;

	spin_lock_bh(&xs->lock);
	spin_lock(&queue->lock);
	ready = xrds_reply_find(xs, true, marks, NULL, &dest);
	spin_unlock(&queue->lock);
	spin_unlock_bh(&xs->lock);
	if (dest)
		xrds_dest_put(dest);
	return ready;
}

/* One attempt; *from is a source that needs a destination first. */
static struct sk_buff *xrds_reply_try(struct xrds_sock *xs, bool peek,
				      bool marks, bool *cleared,
				      struct xrds_addr *from)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	struct xrds_dest *dest;
	struct sk_buff *skb;

	from->port = 0;
	spin_lock_bh(&xs->lock);
	spin_lock(&queue->lock);
	skb = xrds_reply_find(xs, peek, marks, cleared, &dest);
	if (skb && peek) {
		refcount_inc(&skb->users);
	} else if (skb && (dest || xrds_reply_none_due(xs, skb))) {
		if (dest)
			xrds_space_reserve_reply(dest);
		__skb_unlink(skb, queue);
		*cleared |= xrds_rcvbuf_uncharge(xs, skb);
	} else if (skb) {
		xrds_reply_source(skb, from);
		skb = NULL;
	}
	spin_unlock(&queue->lock);
	spin_unlock_bh(&xs->lock);
	if (dest)
		xrds_dest_put(dest);
	return skb;
}

/* Space for several replies wakes one reader, and that one the next. */
static void xrds_reply_pass_on(struct xrds_sock *xs)
{
	bool sleeper;

	rcu_read_lock();
	sleeper = skwq_has_sleeper(rcu_dereference(xs->sk.sk_wq));
	rcu_read_unlock();
	if (sleeper && xrds_reply_ready(xs, true))
		xs->sk.sk_data_ready(&xs->sk);
}

/**
 * xrds_reply_dequeue - the next message that may be handed out
 * @xs: socket with XRDS_REPLY_RESERVE
 * @peek: leave it in the queue, and reserve nothing
 * @marks: ends of streams as well; else they are dropped
 *
 * Context: process, may sleep.
 * Return: the message with a reference; NULL when there is none; ERR_PTR():
 * -ENOMEM, -ENFILE when the source cannot be made a destination.
 */
struct sk_buff *xrds_reply_dequeue(struct xrds_sock *xs, bool peek, bool marks)
{
	struct xrds_dest *dest = NULL;
	struct xrds_addr from;
	bool cleared = false;
	struct sk_buff *skb;

	/* with a reference it may still be evicted, but not for ever */
	while (!(skb = xrds_reply_try(xs, peek, marks, &cleared, &from)) &&
	       from.port) {
		if (dest)
			xrds_dest_put(dest);
		dest = xrds_dest_find_or_create(xs, &from);
		if (IS_ERR(dest)) {
			skb = ERR_CAST(dest);
			break;
		}
	}
	if (!IS_ERR_OR_NULL(dest))
		xrds_dest_put(dest);
	if (cleared)
		xrds_cong_local(&xs->port, false);
	if (!IS_ERR_OR_NULL(skb) && !peek)
		xrds_reply_pass_on(xs);
	return skb;
}

/**
 * xrds_reply_set - XRDS_REPLY_RESERVE
 * @xs: socket
 * @bytes: space reserved for the reply to each message; 0 turns it off, and
 *	gives all reservations back
 *
 * Context: process.
 * Return: 0; -EINVAL when it is more than the send space of a destination;
 * -EBUSY when the program still has reservations of another size.
 */
int xrds_reply_set(struct xrds_sock *xs, u32 bytes)
{
	int ret = 0;

	if (bytes > XRDS_WIRE_MAX_MSG_BYTES ||
	    bytes > (READ_ONCE(xs->dest_sndbuf) ?: xrds_sk_sndbuf(xs)))
		return -EINVAL;

	spin_lock_bh(&xs->lock);
	if (!bytes)
		xrds_space_release_all(xs);
	else if (xs->nr_reservations && bytes != xs->reply_reserve)
		ret = -EBUSY;
	if (!ret)
		WRITE_ONCE(xs->reply_reserve, bytes);
	spin_unlock_bh(&xs->lock);

	/* messages held back may be read now, by all readers that wait */
	if (!ret)
		xs->sk.sk_state_change(&xs->sk);
	return ret;
}

static struct xrds_dest *xrds_reply_dest(struct xrds_sock *xs,
					 const struct sk_buff *skb)
{
	struct xrds_addr from;

	xrds_reply_source(skb, &from);
	return xrds_dest_find(xs, &from);
}

/**
 * xrds_reply_came - a reply has come, although its receiver is congested
 * @xs: receiver
 * @skb: reply
 *
 * Context: any, without L3, L4, L5.
 * Return: whether it is counted, so that xrds_reply_read() is to be called;
 * a socket that has not asked there is not the one to stop.
 */
bool xrds_reply_came(struct xrds_sock *xs, const struct sk_buff *skb)
{
	struct xrds_dest *dest = xrds_reply_dest(xs, skb);
	bool counted;

	if (!dest)
		return false;
	spin_lock_bh(&xs->lock);
	counted = dest->linked;
	if (counted)
		dest->unread += xrds_skb((struct sk_buff *)skb)->charge;
	spin_unlock_bh(&xs->lock);
	xrds_dest_put(dest);
	return counted;
}

/**
 * xrds_reply_read - a reply that was counted has been read
 * @xs: receiver
 * @skb: reply
 *
 * Context: any, without L4, L5.
 */
void xrds_reply_read(struct xrds_sock *xs, const struct sk_buff *skb)
{
	struct xrds_dest *dest = xrds_reply_dest(xs, skb);

	/* with replies to count it is not evicted */
	if (!dest)
		return;
	xrds_space_reply_read(dest, xrds_skb((struct sk_buff *)skb)->charge);
	xrds_dest_put(dest);
}
