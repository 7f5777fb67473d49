// SPDX-License-Identifier: GPL-2.0-only
/*
 * The receive queue by source, for readers with XRDS_REPLY_RESERVE.
 *
 * All messages of a socket are in sk_receive_queue, in the order in which they
 * came. With the option each is in the row of its source as well, in the same
 * order: it is sorted. A source with messages is on one of three lists:
 *
 *	ready	its next reply may have space. Readers take turns through the
 *		list, a message each.
 *	held	its destination has no space. Space makes it ready, see space.c.
 *	barred	no destination could be made for it. reply.c tries again.
 *
 * The end of a stream needs no space. So sources whose first message is one are
 * on another list as well, marks, and a source with nothing else is on no other
 * one. No call walks sources or messages that are held back.
 *
 * Messages that came while the option was off are not sorted, nor are those
 * whose source could not be noted. Readers sort them, in the order of the queue,
 * from srcq.unsorted. While there are any, all that come are sorted after them.
 * When the option is switched off messages stay in their rows, and readers take
 * the first message of the queue. So of one source those in its row are older
 * than the others, and readers always take the first of a row.
 *
 * Everything here is guarded by the lock of the receive queue (L5).
 */
#include "msg.h"
#include "sock/dest.h"
#include "sock/sock.h"
#include "xrds.h"

static bool xrds_srcq_is_mark(struct sk_buff *skb)
{
	return xrds_skb(skb)->flags & XRDS_F_EOS;
}

/* The lists follow the row. */
static void xrds_srcq_update(struct xrds_sock *xs, struct xrds_source *src)
{
	struct sk_buff *first = src->first;

	lockdep_assert_held(&xs->sk.sk_receive_queue.lock);

	if (!first || !xrds_srcq_is_mark(first))
		list_del_init(&src->mark_node);
	else if (list_empty(&src->mark_node))
		list_add_tail(&src->mark_node, &xs->srcq.marks);
	if (!src->nr_data)
		list_del_init(&src->data_node);
	else if (list_empty(&src->data_node))
		list_add_tail(&src->data_node, &xs->srcq.ready);
}

static void xrds_srcq_added(struct xrds_sock *xs, struct xrds_source *src,
			    struct sk_buff *skb)
{
	xrds_skb(skb)->sorted = true;
	src->nr_data += !xrds_srcq_is_mark(skb);
	xrds_srcq_update(xs, src);
}

/* Put a message into the row of its source, behind the others. */
static void xrds_srcq_add(struct xrds_sock *xs, struct xrds_source *src,
			  struct sk_buff *skb)
{
	xrds_skb_trace(skb)->next = NULL;
	if (src->first)
		xrds_skb_trace(src->last)->next = skb;
	else
		src->first = skb;
	src->last = skb;
	xrds_srcq_added(xs, src, skb);
}

/* The same, in front of the others. */
static void xrds_srcq_return(struct xrds_sock *xs, struct xrds_source *src,
			     struct sk_buff *skb)
{
	xrds_skb_trace(skb)->next = src->first;
	if (!src->first)
		src->last = skb;
	src->first = skb;
	xrds_srcq_added(xs, src, skb);
}

/* Take the first message out of its row. A source that is ready has its next
 * turn after the others.
 */
static void xrds_srcq_take(struct xrds_sock *xs, struct xrds_source *src,
			   struct sk_buff *skb)
{
	xrds_skb(skb)->sorted = false;
	src->first = xrds_skb_trace(skb)->next;
	if (!xrds_srcq_is_mark(skb)) {
		src->nr_data--;
		list_move_tail(&src->data_node, &xs->srcq.ready);
	}
	xrds_srcq_update(xs, src);
	/* it may be forgotten now */
	if (!src->first && src->ended)
		xrds_srctab_place(xs, src);
}

/**
 * xrds_srcq_enqueue - put a message into the receive queue
 * @xs: socket
 * @skb: message that has come
 *
 * Context: any, the receive queue's lock held.
 */
void xrds_srcq_enqueue(struct xrds_sock *xs, struct sk_buff *skb)
{
	struct xrds_source *src;

	xrds_skb(skb)->nr = ++xs->rcv_nr;
	__skb_queue_tail(&xs->sk.sk_receive_queue, skb);
	if (likely(!READ_ONCE(xs->reply_reserve)) || xs->srcq.unsorted)
		return;
	src = xrds_srctab_of(xs, skb);
	if (src)
		xrds_srcq_add(xs, src, skb);
	else
		xs->srcq.unsorted = skb;
}

/**
 * xrds_srcq_requeue - put a message back in front of all others
 * @xs: socket
 * @skb: message that could not be read
 *
 * Context: any, the receive queue's lock held.
 */
void xrds_srcq_requeue(struct xrds_sock *xs, struct sk_buff *skb)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	struct sk_buff *first = skb_peek(queue);
	struct xrds_source *src;

	/* numbers ascend, although others may be held back from before it */
	if (first)
		xrds_skb(skb)->nr = xrds_skb(first)->nr - 1;
	__skb_queue_head(queue, skb);
	src = xrds_srctab_of(xs, skb);
	if (src)
		xrds_srcq_return(xs, src, skb);
	else if (xs->reply_reserve)
		xs->srcq.unsorted = skb;
}

/* Where sorting goes on behind a message */
static struct sk_buff *xrds_srcq_next(struct xrds_sock *xs, struct sk_buff *skb)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;

	return skb_queue_is_last(queue, skb) ? NULL :
					       skb_queue_next(queue, skb);
}

/**
 * xrds_srcq_unlink - take a message out of the receive queue
 * @xs: socket
 * @skb: first message of the queue, or of the row of its source
 *
 * Context: any, the receive queue's lock held.
 */
void xrds_srcq_unlink(struct xrds_sock *xs, struct sk_buff *skb)
{
	lockdep_assert_held(&xs->sk.sk_receive_queue.lock);

	if (unlikely(xs->srcq.unsorted == skb))
		xs->srcq.unsorted = xrds_srcq_next(xs, skb);
	__skb_unlink(skb, &xs->sk.sk_receive_queue);
	/* a source with messages is there */
	if (unlikely(xrds_skb(skb)->sorted))
		xrds_srcq_take(xs, xrds_srctab_of(xs, skb), skb);
}

/**
 * xrds_srcq_sort - sort some messages by source
 * @xs: socket
 *
 * As long as srcq.unsorted is set there are more.
 *
 * Context: any, the receive queue's lock held.
 * Return: false when there is no memory for the source of the first one.
 */
bool xrds_srcq_sort(struct xrds_sock *xs)
{
	struct xrds_source *src;
	struct sk_buff *skb;
	u32 n;

	lockdep_assert_held(&xs->sk.sk_receive_queue.lock);

	for (n = 0; n < XRDS_SORT_BATCH && xs->srcq.unsorted; n++) {
		skb = xs->srcq.unsorted;
		if (!xrds_skb(skb)->sorted) {
			src = xrds_srctab_of(xs, skb);
			if (!src)
				return false;
			xrds_srcq_add(xs, src, skb);
		}
		xs->srcq.unsorted = xrds_srcq_next(xs, skb);
	}
	xrds_hold_count(XRDS_HOLD_SORT, n);
	return true;
}

/**
 * xrds_srcq_data - the first message of a source that is no end of a stream
 * @src: source with such a message
 *
 * Readers take the end of a stream before the messages behind it, but for those
 * that peek and have no space for it. Between two ends there are messages.
 *
 * Context: any, the receive queue's lock held.
 * Return: the message.
 */
struct sk_buff *xrds_srcq_data(const struct xrds_source *src)
{
	struct sk_buff *skb = src->first;

	while (skb && xrds_srcq_is_mark(skb))
		skb = xrds_skb_trace(skb)->next;
	return skb;
}

/**
 * xrds_srcq_ready_all - all messages may be read, as far as is known
 * @xs: socket
 *
 * Context: any, without L5.
 */
void xrds_srcq_ready_all(struct xrds_sock *xs)
{
	spin_lock_bh(&xs->sk.sk_receive_queue.lock);
	list_splice_tail_init(&xs->srcq.held, &xs->srcq.ready);
	list_splice_tail_init(&xs->srcq.barred, &xs->srcq.ready);
	spin_unlock_bh(&xs->sk.sk_receive_queue.lock);
}

/**
 * xrds_srcq_set - change XRDS_REPLY_RESERVE
 * @xs: socket
 * @reserve: its new value
 *
 * Sorting passes over messages that are sorted from an earlier time.
 *
 * Context: process, xs->lock held, without L5.
 */
void xrds_srcq_set(struct xrds_sock *xs, u32 reserve)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;

	lockdep_assert_held(&xs->lock);

	spin_lock(&queue->lock);
	if (!reserve)
		xs->srcq.unsorted = NULL;
	else if (!xs->reply_reserve)
		xs->srcq.unsorted = skb_peek(queue);
	WRITE_ONCE(xs->reply_reserve, reserve);
	spin_unlock(&queue->lock);
	xrds_srcq_ready_all(xs);
}

/**
 * xrds_srcq_unhold - a destination has space again, or there is one now
 * @xs: socket
 * @key: key of the destination, and of the source
 *
 * Context: any, without L5.
 */
void xrds_srcq_unhold(struct xrds_sock *xs, const struct xrds_dest_key *key)
{
	struct xrds_source *src;

	spin_lock_bh(&xs->sk.sk_receive_queue.lock);
	src = xrds_srctab_find(xs, key);
	if (src && src->nr_data)
		list_move_tail(&src->data_node, &xs->srcq.ready);
	spin_unlock_bh(&xs->sk.sk_receive_queue.lock);
}

/**
 * xrds_srcq_bar - no destination can be made, or charged, for a source now
 * @xs: socket
 * @from: source
 *
 * Context: any, without L5.
 * Return: whether messages of it wait until there is one.
 */
bool xrds_srcq_bar(struct xrds_sock *xs, const struct xrds_addr *from)
{
	struct xrds_dest_key key = xrds_dest_key(xs, from);
	struct xrds_source *src;
	bool barred;

	spin_lock_bh(&xs->sk.sk_receive_queue.lock);
	src = xrds_srctab_find(xs, &key);
	barred = src && src->nr_data;
	if (barred)
		list_move_tail(&src->data_node, &xs->srcq.barred);
	spin_unlock_bh(&xs->sk.sk_receive_queue.lock);
	return barred;
}
