// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of sources: the senders that a socket remembers.
 *
 * If there are too many, in the socket or of its user or namespace, the source
 * goes that ended last, or else the one that is open for longest, unless it has
 * messages (srcq.c). A socket may have a few of them however many others have.
 *
 * The sources of a socket are guarded by the lock of its receive queue (L5).
 */
#include <linux/jhash.h>

#include "msg.h"
#include "sock/dest.h"
#include "sock/sock.h"
#include "xrds.h"

/* A socket's own: they cost as much as it does. */
enum { XRDS_SRCTAB_LEAST = XRDS_SOCK_COST_BYTES / XRDS_SOURCE_COST_BYTES };

const struct rhashtable_params xrds_srctab_params = {
	.key_len	= sizeof(struct xrds_dest_key),
	.key_offset	= offsetof(struct xrds_source, key),
	.head_offset	= offsetof(struct xrds_source, node),
	.automatic_shrinking = true,
};

/* A source leaves its place in the list: the walk goes on with the next one. */
static void xrds_srctab_pass(struct xrds_sock *xs, struct xrds_source *src)
{
	if (xs->next_source != src)
		return;
	WRITE_ONCE(xs->next_source, list_is_last(&src->list, &xs->sources) ?
				    NULL : list_next_entry(src, list));
}

/**
 * xrds_srctab_watch - watch the node of a source if the socket asks for that
 * @xs: socket
 * @src: source
 *
 * Without memory the next message tries again.
 *
 * Context: any, the receive queue's lock held.
 * Return: 0, -ENOMEM, -EDQUOT.
 */
int xrds_srctab_watch(struct xrds_sock *xs, struct xrds_source *src)
{
	lockdep_assert_held(&xs->sk.sk_receive_queue.lock);

	if (READ_ONCE(xs->node_events))
		return xrds_node_watch(&src->watch, &src->key);
	xrds_node_unwatch(&src->watch);
	return 0;
}

/**
 * xrds_srctab_set_lost - is a stream open whose source is not remembered?
 * @xs: socket
 * @key: key of the source
 * @lost: it is; otherwise it is remembered, or has ended
 *
 * Context: any, the receive queue's lock held.
 */
void xrds_srctab_set_lost(struct xrds_sock *xs, const struct xrds_dest_key *key,
			  bool lost)
{
	u32 print, i;

	lockdep_assert_held(&xs->sk.sk_receive_queue.lock);

	if (xs->nr_lost > XRDS_LOST_MOST)
		return;
	print = jhash2((const u32 *)key, sizeof(*key) / sizeof(u32), 0);
	for (i = 0; i < xs->nr_lost && xs->lost[i] != print; i++)
		;
	if (!lost && i < xs->nr_lost) {
		xs->lost[i] = xs->lost[--xs->nr_lost];
	} else if (lost && i == xs->nr_lost) {
		if (i < XRDS_LOST_MOST)
			xs->lost[i] = print;
		xs->nr_lost++;
	}
}

static void xrds_srctab_free(struct xrds_sock *xs, struct xrds_source *src)
{
	lockdep_assert_held(&xs->sk.sk_receive_queue.lock);

	xrds_srctab_pass(xs, src);
	xrds_node_unwatch(&src->watch);
	rhashtable_remove_fast(&xs->xn->sources, &src->node,
			       xrds_srctab_params);
	list_del(&src->list);
	xs->nr_sources--;
	xrds_limit_uncharge(xs->xn, xs->user, XRDS_LIMIT_SOURCES,
			    XRDS_SOURCE_COST_BYTES);
	if (xs->last_source == src)
		xs->last_source = NULL;
	if (!src->ended) {
		xs->nr_open--;
		xrds_srctab_set_lost(xs, &src->key, true);
	}
	src->linked = false;
	/* xrds_source_lost_work() may have it in its hands */
	kfree_rcu(src, rcu);
}

/**
 * xrds_srctab_place - put a source into the order in which they are forgotten
 * @xs: socket
 * @src: source
 *
 * Those that have ended come first, unless they have messages.
 *
 * Context: any, the receive queue's lock held.
 */
void xrds_srctab_place(struct xrds_sock *xs, struct xrds_source *src)
{
	xrds_srctab_pass(xs, src);
	xrds_srctab_watch(xs, src);
	if (src->ended && !src->first)
		list_move(&src->list, &xs->sources);
	else
		list_move_tail(&src->list, &xs->sources);
}

/* Must one be forgotten before there is another? */
static bool xrds_srctab_full(const struct xrds_sock *xs)
{
	return xs->nr_sources >= READ_ONCE(xs->xn->sock_max_dests) ||
	       (xs->nr_sources >= XRDS_SRCTAB_LEAST &&
		xrds_limit_over(xs->xn, xs->user, XRDS_LIMIT_SOURCES, 4));
}

/* One in place of one, and more when the bound was lowered. Those with messages
 * stay: the memory of these bounds their number.
 */
static void xrds_srctab_evict(struct xrds_sock *xs)
{
	struct xrds_source *src;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		src = list_first_entry_or_null(&xs->sources, struct xrds_source,
					       list);
		if (!src || !xrds_srctab_full(xs))
			return;
		if (src->first) {
			xrds_srctab_place(xs, src);
			continue;
		}
		xrds_count(xs->xn, XRDS_C_LIMIT_SOURCES);
		xrds_srctab_free(xs, src);
	}
}

/**
 * xrds_srctab_add - remember a source
 * @xs: socket
 * @key: its key
 *
 * Context: any, the receive queue's lock held.
 * Return: the source, of which nothing is known; NULL: there is no memory.
 */
struct xrds_source *xrds_srctab_add(struct xrds_sock *xs,
				    const struct xrds_dest_key *key)
{
	struct xrds_source *src;

	src = kzalloc(sizeof(*src), GFP_ATOMIC | __GFP_NOWARN);
	if (!src)
		return NULL;
	src->key = *key;
	src->ended = true;
	INIT_LIST_HEAD(&src->data_node);
	INIT_LIST_HEAD(&src->mark_node);
	if (rhashtable_insert_fast(&xs->xn->sources, &src->node,
				   xrds_srctab_params)) {
		kfree(src);
		return NULL;
	}
	xrds_srctab_evict(xs);
	list_add(&src->list, &xs->sources);
	src->linked = true;
	xs->nr_sources++;
	xrds_limit_change(xs->xn, xs->user, XRDS_LIMIT_SOURCES,
			  XRDS_SOURCE_COST_BYTES);
	xs->last_source = src;
	return src;
}

/**
 * xrds_srctab_find - the source with an address
 * @xs: socket
 * @key: its key
 *
 * Messages mostly come in a row, so the last source is tried first: the table
 * costs as much as the lookup of the socket does.
 *
 * Context: any, the receive queue's lock held.
 * Return: the source, or NULL.
 */
struct xrds_source *xrds_srctab_find(struct xrds_sock *xs,
				     const struct xrds_dest_key *key)
{
	struct xrds_source *src = xs->last_source;

	lockdep_assert_held(&xs->sk.sk_receive_queue.lock);

	if (!src || memcmp(&src->key, key, sizeof(*key)))
		src = rhashtable_lookup_fast(&xs->xn->sources, key,
					     xrds_srctab_params);
	if (src)
		xs->last_source = src;
	return src;
}

/**
 * xrds_srctab_of - the source of a message, which is made if there is none
 * @xs: socket
 * @skb: message
 *
 * Context: any, the receive queue's lock held.
 * Return: the source; NULL: there is no memory for it.
 */
struct xrds_source *xrds_srctab_of(struct xrds_sock *xs, struct sk_buff *skb)
{
	struct xrds_addr from = xrds_skb_from(xrds_skb(skb));
	struct xrds_dest_key key = xrds_dest_key(xs, &from);

	return xrds_srctab_find(xs, &key) ?: xrds_srctab_add(xs, &key);
}

/**
 * xrds_srctab_watch_some - watch the nodes of the next sources, or end that
 * @xs: socket
 * @keys: result: those whose connections are to be probed
 *
 * Context: process; the socket is locked or closed.
 * Return: how many keys, -ENOMEM, -EDQUOT.
 */
int xrds_srctab_watch_some(struct xrds_sock *xs, struct xrds_dest_key *keys)
{
	struct xrds_source *src;
	int i, n = 0, ret = 0;
	bool down = false;

	spin_lock_bh(&xs->sk.sk_receive_queue.lock);
	for (i = 0; i < XRDS_WATCH_BATCH && xs->next_source && !ret; i++) {
		src = xs->next_source;
		xrds_srctab_pass(xs, src);
		ret = xrds_srctab_watch(xs, src);
		down |= xrds_node_down(src->watch);
		if (src->watch)
			keys[n++] = src->key;
	}
	spin_unlock_bh(&xs->sk.sk_receive_queue.lock);
	if (down)
		xrds_node_wake(&xs->sk);
	return ret ?: n;
}

/**
 * xrds_srctab_free_all - a socket is closed
 * @xs: socket without messages, SOCK_DEAD is set
 *
 * Context: process.
 */
void xrds_srctab_free_all(struct xrds_sock *xs)
{
	struct xrds_source *src, *tmp;
	u32 n;

	/* messages that are under way make no new ones */
	do {
		n = 0;
		spin_lock_bh(&xs->sk.sk_receive_queue.lock);
		list_for_each_entry_safe(src, tmp, &xs->sources, list) {
			if (n == XRDS_END_BATCH)
				break;
			xrds_srctab_free(xs, src);
			n++;
		}
		spin_unlock_bh(&xs->sk.sk_receive_queue.lock);
		xrds_hold_count(XRDS_HOLD_END, n);
		cond_resched();
	} while (n == XRDS_END_BATCH);
}
