// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a stream: what a receiver reads behind the last message of a
 * socket that stops sending.
 *
 * Sending. shutdown() and close() begin the end of the socket's streams, of
 * one to each destination it has sent to.
 *
 *   NONE -> DUE (on xs->eos_due) -> QUEUED (in its connection) -> DONE
 *
 * The mark is a message like any other: it has a sequence number, is sent
 * again after a reconnect, and the socket lingers until it is acknowledged. At
 * close() nobody else sends, and the marks are queued behind what was sent; the
 * port is given up only then, so that who binds it next cannot be taken for the
 * stream that ends. At shutdown() other threads may be about to queue messages
 * that have their space already. Where that can be, because something is
 * queued, the mark becomes due with the last acknowledgment, or at close().
 *
 * The caller of shutdown() or close() queues what is due, on new connections
 * where it must. What becomes due later is queued by a work item, on the
 * connection that has just acknowledged the last message and on no other: the
 * socket may be closed by then, and its transport about to go. That work runs
 * in xrds_conn_wq, which xrds_conn_destroy_all() flushes after the last
 * connection of the transport is dead.
 *
 * Receiving. A socket knows its sources: who has spoken to it, and whether
 * that stream has ended. When all have, it polls EPOLLRDHUP. A source is noted
 * when its first message arrives. If there is no memory for that, or too many
 * are open, the socket no longer knows, and reports no EPOLLRDHUP. When a node
 * comes back without the sockets it had, the streams from it have ended, and
 * the marks for that are made here.
 *
 * The sending half is guarded by xs->lock (L4), the receiving half by the lock
 * of the receive queue (L5).
 */
#include "conn/conn.h"
#include "sock/dest.h"
#include "msg.h"
#include "sock/sock.h"
#include "transport.h"
#include "xrds.h"

enum {
	/* until the next attempt, when there was no memory for a mark */
	XRDS_EOS_RETRY_MS	= 20,
};

/* what clocks of two nodes, and the time a hello needs, may differ by */
#define XRDS_EOS_SLACK	(HZ / 10)

/* -------------------------------------------------------------- sending */

static struct xrds_dest *xrds_eos_next(struct xrds_sock *xs)
{
	struct xrds_dest *dest;

	spin_lock_bh(&xs->lock);
	dest = list_first_entry_or_null(&xs->eos_due, struct xrds_dest,
					eos_node);
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

	if (ret == -ENOMEM) {
		xrds_eos_later(dest);
	} else if (ret) {
		xrds_count(dest->key.xs->xn, XRDS_C_SEND_DROP_EOS);
		xrds_upcall_eos_done(dest);
		ret = 0;
	}
	return ret;
}

static int xrds_eos_send(struct xrds_sock *xs, bool dial)
{
	struct xrds_dest *dest;
	int ret = 0;

	while (!ret && (dest = xrds_eos_next(xs))) {
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
	struct xrds_dest *dest;

	spin_lock_bh(&xs->lock);
	xs->ending = true;
	WRITE_ONCE(xs->eos_reason, reason);
	xrds_space_release_all(xs);
	list_for_each_entry(dest, &xs->dests, xs_node) {
		if (closing || !dest->queued_msgs)
			xrds_dest_eos_due(dest);
		wake_up_interruptible(&dest->space);
	}
	spin_unlock_bh(&xs->lock);

	if (xrds_eos_send(xs, true))
		xrds_dest_eos_kick(xs);
}

/**
 * xrds_eos_give_up - a socket has lingered for too long
 * @xs: closed socket
 *
 * The caller cancels what is queued already.
 *
 * Context: process.
 */
void xrds_eos_give_up(struct xrds_sock *xs)
{
	struct xrds_dest *dest;

	spin_lock_bh(&xs->lock);
	xs->ending = false;
	spin_unlock_bh(&xs->lock);

	while ((dest = xrds_eos_next(xs))) {
		xrds_count(xs->xn, XRDS_C_SEND_DROP_EOS);
		xrds_upcall_eos_done(dest);
		xrds_dest_put(dest);
	}
}

/* ------------------------------------------------------------ receiving */

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

static void xrds_source_free(struct xrds_sock *xs, struct xrds_source *src)
{
	lockdep_assert_held(&xs->sk.sk_receive_queue.lock);

	rhashtable_remove_fast(&xs->xn->sources, &src->node,
			       xrds_source_params);
	list_del(&src->list);
	xs->nr_sources--;
	if (xs->last_source == src)
		xs->last_source = NULL;
	src->linked = false;
	xrds_limit_uncharge(xs->xn, xs->user, XRDS_LIMIT_MEM,
			    XRDS_SOURCE_COST_BYTES);
	/* xrds_source_lost_all() may have it in its hands */
	kfree_rcu(src, rcu);
}

/* Those that have ended stand at the head of the list. */
static bool xrds_source_evict(struct xrds_sock *xs)
{
	struct xrds_source *src;

	src = list_first_entry_or_null(&xs->sources, struct xrds_source, list);
	if (!src || !src->ended)
		return false;
	xrds_source_free(xs, src);
	return true;
}

static struct xrds_source *xrds_source_add(struct xrds_sock *xs,
					   const struct xrds_dest_key *key)
{
	struct xrds_source *src;

	if (xs->nr_sources >= READ_ONCE(xs->xn->sock_max_dests) &&
	    !xrds_source_evict(xs))
		return NULL;
	if (xrds_limit_charge(xs->xn, xs->user, XRDS_LIMIT_MEM,
			      XRDS_SOURCE_COST_BYTES))
		return NULL;
	src = kzalloc(sizeof(*src), GFP_ATOMIC | __GFP_NOWARN);
	if (!src)
		goto err_uncharge;
	src->key = *key;
	src->ended = true;
	if (rhashtable_insert_fast(&xs->xn->sources, &src->node,
				   xrds_source_params)) {
		kfree(src);
		goto err_uncharge;
	}
	list_add(&src->list, &xs->sources);
	src->linked = true;
	xs->nr_sources++;
	return src;

err_uncharge:
	xrds_limit_uncharge(xs->xn, xs->user, XRDS_LIMIT_MEM,
			    XRDS_SOURCE_COST_BYTES);
	return NULL;
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
	bool ended = xs->heard && !xs->nr_open && !xs->sources_lost;
	bool news = ended && !xs->all_ended;

	WRITE_ONCE(xs->all_ended, ended);
	return news;
}

static void xrds_source_set(struct xrds_sock *xs, struct xrds_source *src,
			    bool ended)
{
	if (src->ended == ended)
		return;
	src->ended = ended;
	if (ended) {
		xs->nr_open--;
		list_move(&src->list, &xs->sources);
	} else {
		xs->nr_open++;
		list_move_tail(&src->list, &xs->sources);
	}
}

/* A mark that is made here, for a stream whose node has forgotten it. As of what
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

/* Has its node come back without the sockets that this was heard from? */
static bool xrds_source_stale(const struct xrds_source *src,
			      unsigned long reborn)
{
	return reborn && !src->ended &&
	       time_before(src->heard_at + XRDS_EOS_SLACK, reborn);
}

/**
 * xrds_source_note - a message has come for a socket
 * @xs: socket
 * @cb: what is known of the message
 * @reborn: conn->reborn
 *
 * Context: any, the receive queue's lock held.
 * Return: whether all streams to the socket have ended by it.
 */
bool xrds_source_note(struct xrds_sock *xs, const struct xrds_skb_cb *cb,
		      unsigned long reborn)
{
	struct xrds_dest_key key;
	struct xrds_source *src;

	/* answers to pings are nobody's stream */
	if (!cb->sport)
		return false;
	xrds_source_key(&key, xs, cb);
	src = xrds_source_find(xs, &key);
	if (!src)
		src = xrds_source_add(xs, &key);
	xs->heard = true;
	if (!src) {
		xs->sources_lost = true;
		return xrds_source_evaluate(xs);
	}
	if (xrds_source_stale(src, reborn))
		xrds_source_lost(xs, src);
	src->heard_at = jiffies;
	xrds_source_set(xs, src, cb->flags & XRDS_F_EOS);
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

static void xrds_source_check(struct xrds_source *src, unsigned long reborn)
{
	struct xrds_sock *xs = src->key.xs;
	bool news = false;

	spin_lock_bh(&xs->sk.sk_receive_queue.lock);
	if (src->linked && xrds_source_stale(src, reborn)) {
		xrds_source_lost(xs, src);
		xrds_source_evaluate(xs);
		news = true;
	}
	spin_unlock_bh(&xs->sk.sk_receive_queue.lock);
	if (news)
		xs->sk.sk_state_change(&xs->sk);
}

/**
 * xrds_source_lost_all - a node has come back without the sockets it had
 * @conn: connection to it; conn->reborn says since when
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
			xrds_source_check(src, conn->reborn);
	}
	rhashtable_walk_stop(&iter);
	rhashtable_walk_exit(&iter);
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

	spin_lock_bh(&xs->sk.sk_receive_queue.lock);
	list_for_each_entry_safe(src, tmp, &xs->sources, list)
		xrds_source_free(xs, src);
	spin_unlock_bh(&xs->sk.sk_receive_queue.lock);
}
