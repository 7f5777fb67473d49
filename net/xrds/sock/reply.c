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
 * meanwhile; of one source none overtakes another. So messages are sorted by
 * source, see srcq.c, and a call looks at no message or source that is held back.
 *
 * A source needs a destination, and there may be too many of these, or no memory
 * for one; or the memory of the reply, which is charged with the reservation, is
 * beyond a bound. Then the source is barred, and readers pass it over. A work item
 * makes the destination of a barred source, and looks at the bound: when a
 * destination of the socket has become idle, and some times in a second at first,
 * ever less often later, as others may have freed memory. It takes them in turn until
 * one can be read. When a message of that one is read, the next one follows.
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

enum {
	/* the first retry comes after that, and later ones ever later, up to: */
	XRDS_REPLY_RETRY_MS	= 200,
	XRDS_REPLY_REST_MS	= 3200,
	/* barred sources that are tried then, until one can be read */
	XRDS_REPLY_TRIES	= 16,
};

/* Result of a look for a message */
enum xrds_reply_look {
	XRDS_REPLY_NONE,	/* no message that may be read */
	XRDS_REPLY_FOUND,	/* a message */
	XRDS_REPLY_AGAIN,	/* look again: it has changed something */
	XRDS_REPLY_NO_DEST,	/* its source needs a destination first */
	XRDS_REPLY_NO_CHARGE,	/* the memory of a reply is beyond a bound */
	XRDS_REPLY_NO_MEM,	/* messages cannot be sorted for want of memory */
};

/**
 * struct xrds_reply_pick - a message that may be read
 * @src:	its source
 * @skb:	the message
 * @dest:	destination of the source, with a reference; NULL if there is none
 *		yet, or none is needed
 */
struct xrds_reply_pick {
	struct xrds_source *src;
	struct sk_buff *skb;
	struct xrds_dest *dest;
};

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

/* Try to make a destination for a barred source, after a time. */
static void xrds_reply_later(struct xrds_sock *xs)
{
	lockdep_assert_held(&xs->lock);

	sock_hold(&xs->sk);
	if (!queue_delayed_work(xrds_conn_wq, &xs->reply_work,
				msecs_to_jiffies(xs->reply_retry_ms)))
		sock_put(&xs->sk);
}

/* The same after the shortest delay; a longer one ends, but a short one goes on. */
static void xrds_reply_soon(struct xrds_sock *xs)
{
	bool late = xs->reply_retry_ms > XRDS_REPLY_RETRY_MS;

	lockdep_assert_held(&xs->lock);

	xs->reply_retry_ms = XRDS_REPLY_RETRY_MS;
	if (!late) {
		xrds_reply_later(xs);
		return;
	}
	sock_hold(&xs->sk);
	if (mod_delayed_work(xrds_conn_wq, &xs->reply_work,
			     msecs_to_jiffies(XRDS_REPLY_RETRY_MS)))
		sock_put(&xs->sk);
}

/**
 * xrds_reply_retry - a destination for a barred source can perhaps be made now
 * @xs: socket
 *
 * Context: any, xs->lock held.
 */
void xrds_reply_retry(struct xrds_sock *xs)
{
	/* a source that is barred meanwhile has found none idle */
	if (likely(list_empty_careful(&xs->srcq.barred)))
		return;
	/* it begins anew with the shortest delay */
	xs->reply_retry_ms = XRDS_REPLY_RETRY_MS / 2;
	sock_hold(&xs->sk);
	if (mod_delayed_work(xrds_conn_wq, &xs->reply_work, 0))
		sock_put(&xs->sk);
}

/* The end of a stream that comes first at its source, or NULL */
static struct xrds_source *xrds_reply_first_mark(struct xrds_sock *xs)
{
	return list_first_entry_or_null(&xs->srcq.marks, struct xrds_source,
					mark_node);
}

/* The source whose turn it is, or NULL */
static struct xrds_source *xrds_reply_first_ready(struct xrds_sock *xs)
{
	return list_first_entry_or_null(&xs->srcq.ready, struct xrds_source,
					data_node);
}

/* Has the source of a message space for a reply, or no destination yet? If not
 * it is held from now on.
 */
static bool xrds_reply_may_read(struct xrds_sock *xs,
				struct xrds_reply_pick *pick)
{
	struct xrds_addr from;

	if (xrds_reply_none_due(xs, pick->skb))
		return true;
	from = xrds_skb_from(xrds_skb(pick->skb));
	pick->dest = xrds_dest_find(xs, &from);
	if (!pick->dest || xrds_space_can_reserve_reply(pick->dest))
		return true;
	/* not the last reference: the table's goes under xs->lock */
	xrds_dest_put(pick->dest);
	pick->dest = NULL;
	list_move_tail(&pick->src->data_node, &xs->srcq.held);
	return false;
}

/* Look for a message whose source can be answered. Ends of streams are among
 * them if @marks is set; else those that come first at their source go. With
 * @peek none goes, and *cleared is not needed.
 */
static enum xrds_reply_look xrds_reply_find(struct xrds_sock *xs, bool peek,
					    bool marks, bool *cleared,
					    struct xrds_reply_pick *pick)
{
	bool sorted;

	lockdep_assert_held(&xs->lock);
	lockdep_assert_held(&xs->sk.sk_receive_queue.lock);

	memset(pick, 0, sizeof(*pick));
	sorted = xrds_srcq_sort(xs);
	pick->src = xrds_reply_first_mark(xs);
	if (pick->src && (marks || !peek)) {
		pick->skb = pick->src->first;
		if (marks)
			return XRDS_REPLY_FOUND;
		*cleared |= xrds_rcvbuf_drop_mark(xs, pick->skb);
		return XRDS_REPLY_AGAIN;
	}
	pick->src = xrds_reply_first_ready(xs);
	if (pick->src) {
		pick->skb = xrds_srcq_data(pick->src);
		return xrds_reply_may_read(xs, pick) ? XRDS_REPLY_FOUND :
						       XRDS_REPLY_AGAIN;
	}
	if (!sorted)
		return XRDS_REPLY_NO_MEM;
	return xs->srcq.unsorted ? XRDS_REPLY_AGAIN : XRDS_REPLY_NONE;
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
	enum xrds_reply_look look;
	struct xrds_reply_pick pick;

	do {
		spin_lock_bh(&xs->lock);
		spin_lock(&queue->lock);
		look = xrds_reply_find(xs, true, marks, NULL, &pick);
		spin_unlock(&queue->lock);
		spin_unlock_bh(&xs->lock);
		if (pick.dest)
			xrds_dest_put(pick.dest);
	} while (look == XRDS_REPLY_AGAIN);
	/* without memory a reader tries again, and is told */
	return look != XRDS_REPLY_NONE;
}

/* A message is read together with space for the reply, if there is one to come. */
static int xrds_reply_reserve(struct xrds_sock *xs, struct xrds_dest *dest)
{
	int ret = dest ? xrds_space_reserve_reply(dest) : 0;

	if (dest && !ret && unlikely(xs->reply_probe)) {
		xs->reply_probe = false;
		xrds_reply_retry(xs);
	}
	return ret;
}

/* One attempt; *from is a source that cannot be read before it has a destination,
 * or memory.
 */
static enum xrds_reply_look xrds_reply_try(struct xrds_sock *xs, bool peek,
					   enum xrds_recv_marks marks,
					   bool *cleared,
					   struct xrds_addr *from,
					   struct sk_buff **skb)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	enum xrds_reply_look look;
	struct xrds_reply_pick pick;

	spin_lock_bh(&xs->lock);
	spin_lock(&queue->lock);
	look = xrds_reply_find(xs, peek, marks, cleared, &pick);
	if (look != XRDS_REPLY_FOUND) {
		/* nothing to take */
	} else if (peek || (marks == XRDS_MARKS_STAY &&
			    xrds_skb(pick.skb)->flags & XRDS_F_EOS)) {
		*skb = skb_get(pick.skb);
	} else if (!pick.dest && !xrds_reply_none_due(xs, pick.skb)) {
		*from = xrds_skb_from(xrds_skb(pick.skb));
		look = XRDS_REPLY_NO_DEST;
	} else if (xrds_reply_reserve(xs, pick.dest)) {
		*from = xrds_skb_from(xrds_skb(pick.skb));
		look = XRDS_REPLY_NO_CHARGE;
	} else {
		xrds_srcq_unlink(xs, pick.skb);
		*cleared |= xrds_rcvbuf_uncharge(xs, pick.skb);
		*skb = pick.skb;
	}
	spin_unlock(&queue->lock);
	spin_unlock_bh(&xs->lock);
	if (pick.dest)
		xrds_dest_put(pick.dest);
	return look;
}

/* A source cannot be read for now: others go on. */
static void xrds_reply_bar(struct xrds_sock *xs, const struct xrds_addr *from)
{
	spin_lock_bh(&xs->lock);
	/* without reservation none is needed any more */
	if (xs->reply_reserve && !xs->ending && xrds_srcq_bar(xs, from)) {
		xrds_count(xs->xn, XRDS_C_REPLY_BARRED);
		xrds_reply_soon(xs);
	}
	spin_unlock_bh(&xs->lock);
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
 * @marks: ends of streams are dropped, stay, or are taken
 *
 * Context: process, may sleep.
 * Return: the message with a reference; NULL when there is none;
 * ERR_PTR(-ENOMEM) when there is no memory to sort the messages by source.
 */
struct sk_buff *xrds_reply_dequeue(struct xrds_sock *xs, bool peek,
				   enum xrds_recv_marks marks)
{
	struct xrds_dest *dest = NULL;
	struct sk_buff *skb = NULL;
	enum xrds_reply_look look;
	struct xrds_addr from;
	bool cleared = false;

	do {
		look = xrds_reply_try(xs, peek, marks, &cleared, &from, &skb);
		if (look == XRDS_REPLY_NO_CHARGE) {
			xrds_reply_bar(xs, &from);
			look = XRDS_REPLY_AGAIN;
		}
		if (look != XRDS_REPLY_NO_DEST)
			continue;
		/* with a reference it may still be evicted, but not for ever;
		 * one that failed is enough for a call
		 */
		if (!IS_ERR_OR_NULL(dest))
			xrds_dest_put(dest);
		if (!IS_ERR(dest))
			dest = xrds_dest_find_or_create(xs, &from);
		if (IS_ERR(dest))
			xrds_reply_bar(xs, &from);
	} while (look == XRDS_REPLY_NO_DEST || look == XRDS_REPLY_AGAIN);
	if (!IS_ERR_OR_NULL(dest))
		xrds_dest_put(dest);
	if (cleared)
		xrds_cong_local_clear(&xs->port);
	if (look == XRDS_REPLY_NO_MEM)
		return ERR_PTR(-ENOMEM);
	if (skb && !peek)
		xrds_reply_pass_on(xs);
	return skb;
}

/* The source whose last attempt is the oldest; the others are tried before it is
 * again
 */
static bool xrds_reply_next_barred(struct xrds_sock *xs,
				   struct xrds_dest_key *key)
{
	struct xrds_source *src;

	spin_lock_bh(&xs->sk.sk_receive_queue.lock);
	src = list_first_entry_or_null(&xs->srcq.barred, struct xrds_source,
				       data_node);
	if (src) {
		*key = src->key;
		list_move_tail(&src->data_node, &xs->srcq.barred);
	}
	spin_unlock_bh(&xs->sk.sk_receive_queue.lock);
	return src;
}

/* Look for a destination of a barred source, or make it. *make: that may be tried, and
 * it has not failed. Returns whether the source may be read.
 */
static bool xrds_reply_unbar(struct xrds_sock *xs,
			     const struct xrds_dest_key *key, bool *make)
{
	struct xrds_addr from = {
		.addr = key->addr, .scope = key->scope, .port = key->port,
	};
	struct xrds_dest *dest;
	bool may_read;

	dest = xrds_dest_find(xs, &from);
	if (!dest && *make) {
		dest = xrds_dest_find_or_create(xs, &from);
		*make = !IS_ERR(dest);
	}
	if (IS_ERR_OR_NULL(dest))
		return false;
	spin_lock_bh(&xs->lock);
	/* the reader charges it again */
	may_read = !xrds_space_reserve_reply(dest);
	if (may_read) {
		xrds_space_release_replies(dest, 1);
		xrds_srcq_unhold(xs, key);
		xs->reply_probe = true;
	}
	spin_unlock_bh(&xs->lock);
	xrds_dest_put(dest);
	return may_read;
}

/**
 * xrds_reply_work - try to have a barred source read
 * @work: xs->reply_work, with a reference on the socket
 *
 * Context: process.
 */
void xrds_reply_work(struct work_struct *work)
{
	struct xrds_sock *xs = container_of(work, struct xrds_sock,
					    reply_work.work);
	bool may_read = false, make = true;
	struct xrds_dest_key key, first = {};
	u32 n;

	for (n = 0; n < XRDS_REPLY_TRIES && !may_read; n++) {
		if (!xrds_reply_next_barred(xs, &key))
			break;
		/* all were tried */
		if (n && !memcmp(&key, &first, sizeof(key)))
			break;
		if (!n)
			first = key;
		may_read = xrds_reply_unbar(xs, &key, &make);
		cond_resched();
	}
	spin_lock_bh(&xs->lock);
	xs->reply_retry_ms = may_read ? XRDS_REPLY_RETRY_MS :
			     min_t(u32, 2 * xs->reply_retry_ms, XRDS_REPLY_REST_MS);
	if (!list_empty(&xs->srcq.barred))
		xrds_reply_later(xs);
	spin_unlock_bh(&xs->lock);
	if (may_read)
		xs->sk.sk_data_ready(&xs->sk);
	sock_put(&xs->sk);
}

/**
 * xrds_reply_stop - a socket is closed: it makes no destinations any more
 * @xs: socket without sources
 *
 * Context: process, may sleep.
 */
void xrds_reply_stop(struct xrds_sock *xs)
{
	/* A caller that has seen a barred source queues the work before this,
	 * and nobody sees one afterwards. From Linux 6.10 on mod_delayed_work()
	 * queues nothing while the work is cancelled, and says the same as if it
	 * had: the caller would leave a reference behind.
	 */
	spin_lock_bh(&xs->lock);
	spin_unlock_bh(&xs->lock);
	if (cancel_delayed_work_sync(&xs->reply_work))
		sock_put(&xs->sk);
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
		xrds_srcq_set(xs, bytes);
	spin_unlock_bh(&xs->lock);

	/* messages held back may be read now, by all readers that wait */
	if (!ret)
		xs->sk.sk_state_change(&xs->sk);
	if (!bytes)
		xrds_space_changed(&xs->sk);
	return ret;
}

static struct xrds_dest *xrds_reply_dest(struct xrds_sock *xs,
					 const struct sk_buff *skb)
{
	struct xrds_addr from = xrds_skb_from(xrds_skb((struct sk_buff *)skb));

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
