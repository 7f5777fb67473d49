// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sources: the senders that a socket has heard of, and whether their streams
 * have ended.
 *
 * When all streams have ended the socket polls EPOLLRDHUP. A source is noted
 * when its first message arrives. If there is no memory for that, the next one
 * notes it. If there are too many, the source goes that ended last, or else the
 * one that is open for longest. An open stream without a source sets a bit, by a
 * hash of its address, and the socket reports no EPOLLRDHUP until that stream
 * sends again. When a node comes back without the sockets it had, the streams
 * from it have ended, and the marks for that are made here.
 *
 * The owner of the socket is charged for sources as for messages to be read.
 *
 * Everything here is guarded by the lock of the receive queue (L5).
 */
#include <linux/jhash.h>

#include "conn/conn.h"
#include "msg.h"
#include "sock/dest.h"
#include "sock/sock.h"
#include "tracepoints.h"
#include "upcall.h"
#include "xrds.h"

static const struct rhashtable_params xrds_source_params = {
	.key_len	= sizeof(struct xrds_dest_key),
	.key_offset	= offsetof(struct xrds_source, key),
	.head_offset	= offsetof(struct xrds_source, node),
	.automatic_shrinking = true,
};

/**
 * xrds_source_init - make a namespace's table of sources
 * @xn: namespace
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int xrds_source_init(struct xrds_net *xn)
{
	return rhashtable_init(&xn->sources, &xrds_source_params);
}

/**
 * xrds_source_exit - free a namespace's table of sources
 * @xn: namespace without sockets
 *
 * Context: process.
 */
void xrds_source_exit(struct xrds_net *xn)
{
	rhashtable_destroy(&xn->sources);
}

static void xrds_source_key(struct xrds_dest_key *key, struct xrds_sock *xs,
			    const struct xrds_skb_cb *cb)
{
	key->xs = xs;
	key->addr = cb->saddr;
	key->scope = cb->scope;
	key->port = cb->sport;
}

/* A source leaves its place in the list: the walk goes on with the next one. */
static void xrds_source_pass(struct xrds_sock *xs, struct xrds_source *src)
{
	if (xs->next_source != src)
		return;
	WRITE_ONCE(xs->next_source, list_is_last(&src->list, &xs->sources) ?
				    NULL : list_next_entry(src, list));
}

/* Watch its node if the socket asks for that, else do not. Without memory the
 * next message tries again.
 */
static int xrds_source_watch(struct xrds_sock *xs, struct xrds_source *src)
{
	lockdep_assert_held(&xs->sk.sk_receive_queue.lock);

	if (READ_ONCE(xs->node_events))
		return xrds_node_watch(&src->watch, &src->key);
	xrds_node_unwatch(&src->watch);
	return 0;
}

/* The bit of a source in xs->lost */
static u64 xrds_source_bit(const struct xrds_dest_key *key)
{
	return BIT_ULL(jhash2((const u32 *)key, sizeof(*key) / sizeof(u32), 0) %
		       BITS_PER_TYPE(u64));
}

static void xrds_source_free(struct xrds_sock *xs, struct xrds_source *src)
{
	lockdep_assert_held(&xs->sk.sk_receive_queue.lock);

	xrds_source_pass(xs, src);
	xrds_node_unwatch(&src->watch);
	rhashtable_remove_fast(&xs->xn->sources, &src->node,
			       xrds_source_params);
	list_del(&src->list);
	xs->nr_sources--;
	xrds_limit_uncharge(xs->xn, xs->user, XRDS_LIMIT_RECV,
			    XRDS_SOURCE_COST_BYTES);
	if (xs->last_source == src)
		xs->last_source = NULL;
	if (!src->ended) {
		xs->nr_open--;
		xs->lost |= xrds_source_bit(&src->key);
	}
	src->linked = false;
	/* xrds_source_lost_all() may have it in its hands */
	kfree_rcu(src, rcu);
}

/* One in place of one, and more when the bound was lowered. */
static void xrds_source_evict(struct xrds_sock *xs)
{
	struct xrds_source *src;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		src = list_first_entry_or_null(&xs->sources, struct xrds_source,
					       list);
		if (!src ||
		    xs->nr_sources < READ_ONCE(xs->xn->sock_max_dests))
			return;
		xrds_source_free(xs, src);
	}
}

static struct xrds_source *xrds_source_add(struct xrds_sock *xs,
					   const struct xrds_dest_key *key)
{
	struct xrds_source *src;

	src = kzalloc(sizeof(*src), GFP_ATOMIC | __GFP_NOWARN);
	if (!src)
		return NULL;
	src->key = *key;
	src->ended = true;
	if (rhashtable_insert_fast(&xs->xn->sources, &src->node,
				   xrds_source_params)) {
		kfree(src);
		return NULL;
	}
	xrds_source_evict(xs);
	list_add(&src->list, &xs->sources);
	src->linked = true;
	xs->nr_sources++;
	xrds_limit_force(xs->xn, xs->user, XRDS_LIMIT_RECV,
			 XRDS_SOURCE_COST_BYTES);
	xs->last_source = src;
	return src;
}

/* Messages mostly come in a row, so the last source is tried first: the table
 * costs as much as the lookup of the socket does.
 */
static struct xrds_source *xrds_source_find(struct xrds_sock *xs,
					    const struct xrds_dest_key *key)
{
	struct xrds_source *src = xs->last_source;

	lockdep_assert_held(&xs->sk.sk_receive_queue.lock);

	if (!src || memcmp(&src->key, key, sizeof(*key)))
		src = rhashtable_lookup_fast(&xs->xn->sources, key,
					     xrds_source_params);
	if (src)
		xs->last_source = src;
	return src;
}

/* Are all streams over, as far as we know? Returns whether that is new. */
static bool xrds_source_evaluate(struct xrds_sock *xs)
{
	bool ended = xs->heard && !xs->nr_open && !xs->lost;
	bool news = ended && !xs->all_ended;

	WRITE_ONCE(xs->all_ended, ended);
	return news;
}

static void xrds_source_set(struct xrds_sock *xs, struct xrds_source *src,
			    bool ended)
{
	if (src->ended == ended)
		return;
	xrds_source_pass(xs, src);
	xrds_source_watch(xs, src);
	src->ended = ended;
	if (ended) {
		xs->nr_open--;
		list_move(&src->list, &xs->sources);
	} else {
		xs->nr_open++;
		list_move_tail(&src->list, &xs->sources);
	}
}

/* Make a mark for a stream whose node has forgotten it. As with a mark that
 * arrives, a socket that receives nothing more gets none.
 */
static void xrds_source_lost(struct xrds_sock *xs, struct xrds_source *src)
{
	struct xrds_skb_cb *cb;
	struct sk_buff *skb;

	xrds_source_set(xs, src, true);
	if (READ_ONCE(xs->sk.sk_shutdown) & RCV_SHUTDOWN)
		return;
	skb = xrds_skb_alloc(0, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb) {
		xrds_count(xs->xn, XRDS_C_RECV_DROP_NO_MEM);
		return;
	}
	cb = xrds_skb(skb);
	memset(cb, 0, sizeof(*cb));
	cb->saddr = src->key.addr;
	cb->scope = src->key.scope;
	cb->sport = src->key.port;
	cb->charge = xrds_recv_charge(0);
	cb->flags = XRDS_F_EOS;
	cb->eos_reason = XRDS_EOS_LOST;
	skb_set_owner_r(skb, &xs->sk);
	__skb_queue_tail(&xs->sk.sk_receive_queue, skb);
	WRITE_ONCE(xs->marks_passed, false);
	xrds_rcvbuf_charge_skb(xs, skb);
	xrds_count(xs->xn, XRDS_C_RECV_EOS_LOST);
}

/* Is another node there than the one that this was heard from? Legacy nodes
 * have no number.
 */
static bool xrds_source_stale(const struct xrds_source *src, u64 peer)
{
	return src->peer && peer && !src->ended &&
	       src->peer != peer;
}

/**
 * xrds_source_note - a message has come for a socket
 * @xs: socket
 * @cb: the message's control block
 * @conn: connection that has brought it
 * @contact: result: it may be the first that this connection brings, see link.c
 *
 * Context: any, the receive queue's lock held.
 * Return: whether all streams to the socket have ended by it.
 */
bool xrds_source_note(struct xrds_sock *xs, const struct xrds_skb_cb *cb,
		      const struct xrds_conn *conn, bool *contact)
{
	u64 peer = READ_ONCE(conn->peer_node);
	struct xrds_dest_key key;
	struct xrds_source *src;

	*contact = false;
	/* answers to pings are nobody's stream */
	if (!cb->sport)
		return false;
	xrds_source_key(&key, xs, cb);
	src = xrds_source_find(xs, &key);
	/* an end is no reason to forget a stream that goes on */
	if (!src && (!(cb->flags & XRDS_F_EOS) ||
		     xs->nr_sources < READ_ONCE(xs->xn->sock_max_dests)))
		src = xrds_source_add(xs, &key);
	xs->heard = true;
	*contact = !conn->key.loop && (!src || src->conn != conn->id);
	if (src || cb->flags & XRDS_F_EOS)
		xs->lost &= ~xrds_source_bit(&key);
	else
		xs->lost |= xrds_source_bit(&key);
	if (!src)
		return xrds_source_evaluate(xs);
	if (xrds_source_stale(src, peer))
		xrds_source_lost(xs, src);
	src->peer = peer;
	src->conn = conn->id;
	xrds_source_set(xs, src, cb->flags & XRDS_F_EOS);
	if (unlikely(READ_ONCE(xs->node_events)))
		xrds_source_watch(xs, src);
	return xrds_source_evaluate(xs);
}

/**
 * xrds_source_ended - has the stream from an address ended?
 * @xs: socket
 * @from: address
 *
 * Context: process.
 * Return: whether it has; false if there was none.
 */
bool xrds_source_ended(struct xrds_sock *xs, const struct xrds_addr *from)
{
	struct xrds_dest_key key = {
		.xs	= xs,
		.addr	= from->addr,
		.scope	= from->scope,
		.port	= from->port,
	};
	struct xrds_source *src;
	bool ended;

	spin_lock_bh(&xs->sk.sk_receive_queue.lock);
	src = rhashtable_lookup_fast(&xs->xn->sources, &key,
				     xrds_source_params);
	ended = src && src->ended;
	spin_unlock_bh(&xs->sk.sk_receive_queue.lock);
	return ended;
}

static void xrds_source_check(struct xrds_source *src, u64 peer)
{
	struct xrds_sock *xs = src->key.xs;
	bool news = false;

	spin_lock_bh(&xs->sk.sk_receive_queue.lock);
	if (src->linked && xrds_source_stale(src, peer)) {
		xrds_source_lost(xs, src);
		xrds_source_evaluate(xs);
		news = true;
	}
	spin_unlock_bh(&xs->sk.sk_receive_queue.lock);
	if (news)
		xs->sk.sk_state_change(&xs->sk);
}

/**
 * xrds_source_lost_all - end the streams of other nodes at a peer's address
 * @conn: connection to it; conn->peer_node is the one that is there now
 *
 * Context: the connection's work.
 */
void xrds_source_lost_all(struct xrds_conn *conn)
{
	struct rhashtable_iter iter;
	struct xrds_source *src;

	/* All sources of the namespace, but nodes die seldom. If the table
	 * moves meanwhile the walk begins again, and finds less to do. A socket
	 * takes its sources away before its last reference and a grace period.
	 */
	rhashtable_walk_enter(&conn->xn->sources, &iter);
	rhashtable_walk_start(&iter);
	while ((src = rhashtable_walk_next(&iter))) {
		if (!IS_ERR(src) && src->key.scope == conn->key.scope &&
		    ipv6_addr_equal(&src->key.addr, &conn->key.faddr) &&
		    ipv6_addr_equal(&src->key.xs->bind.addr,
				    &conn->key.laddr))
			xrds_source_check(src, conn->peer_node);
	}
	rhashtable_walk_stop(&iter);
	rhashtable_walk_exit(&iter);
}

/**
 * xrds_source_watch_some - watch the nodes of the next sources, or end that
 * @xs: socket
 * @keys: result: those whose connections are to be probed
 *
 * Context: process; the socket is locked or closed.
 * Return: how many keys, -ENOMEM, -EDQUOT.
 */
int xrds_source_watch_some(struct xrds_sock *xs, struct xrds_dest_key *keys)
{
	struct xrds_source *src;
	int i, n = 0, ret = 0;

	spin_lock_bh(&xs->sk.sk_receive_queue.lock);
	for (i = 0; i < XRDS_WATCH_BATCH && xs->next_source && !ret; i++) {
		src = xs->next_source;
		xrds_source_pass(xs, src);
		ret = xrds_source_watch(xs, src);
		if (src->watch)
			keys[n++] = src->key;
	}
	spin_unlock_bh(&xs->sk.sk_receive_queue.lock);
	return ret ?: n;
}

/**
 * xrds_source_free_all - a socket is closed
 * @xs: socket, SOCK_DEAD is set
 *
 * Context: process.
 */
void xrds_source_free_all(struct xrds_sock *xs)
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
			xrds_source_free(xs, src);
			n++;
		}
		spin_unlock_bh(&xs->sk.sk_receive_queue.lock);
		xrds_hold_count(XRDS_HOLD_END, n);
		cond_resched();
	} while (n == XRDS_END_BATCH);
}
