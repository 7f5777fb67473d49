// SPDX-License-Identifier: GPL-2.0-only
/*
 * Destinations: the messages of one socket to one (address, port).
 *
 * A destination is made by the first send to it, found through one table per
 * namespace (an idle socket costs nothing), and lives while a message refers to
 * it. Those with nothing queued are kept, to remember settings and counters,
 * until the socket closes or needs their place; their number is bounded by
 * net.xrds.sock_max_dests. Of one that is evicted only the address is kept, as
 * the end of its stream is still to come, see past.c. Its send space is the
 * matter of space.c.
 *
 * Everything here is guarded by xs->lock (L4). After close the destination
 * goes when its last message does.
 */
#include "conn/conn.h"
#include "sock/dest.h"
#include "msg.h"
#include "rdma/rdma.h"
#include "sock/sock.h"
#include "transport.h"
#include "xrds.h"

const struct rhashtable_params xrds_dest_params = {
	.key_len	= sizeof(struct xrds_dest_key),
	.key_offset	= offsetof(struct xrds_dest, key),
	.head_offset	= offsetof(struct xrds_dest, node),
	.automatic_shrinking = true,
};

/**
 * xrds_dest_free - the last reference on a destination is dropped
 * @flow: its flow, which has left its connection
 *
 * Context: any, without L3 or L4.
 */
void xrds_dest_free(struct xrds_flow *flow)
{
	struct xrds_dest *dest = xrds_dest_of(flow);
	struct xrds_sock *xs = dest->key.xs;

	atomic_dec(&xs->xn->nr_dests);
	xrds_limit_uncharge(xs->xn, xs->user, XRDS_LIMIT_MEM,
			    XRDS_DEST_COST_BYTES);
	sock_put(&xs->sk);
	kfree_rcu(dest, rcu);
}

/**
 * xrds_dest_unlink - take a destination out of the table
 * @dest: destination; the caller owns the table's reference from now on, which
 *	goes by xrds_dest_release()
 *
 * Context: any, xs->lock held.
 */
void xrds_dest_unlink(struct xrds_dest *dest)
{
	struct xrds_sock *xs = dest->key.xs;

	lockdep_assert_held(&xs->lock);

	dest->linked = false;
	if (xs->last_dest == dest)
		WRITE_ONCE(xs->last_dest, NULL);
	rhashtable_remove_fast(&xs->xn->dests, &dest->node, xrds_dest_params);
	list_del_init(&dest->xs_link.node);
	list_del_init(&dest->idle_node);
	list_del_init(&dest->cleared_node);
	xrds_node_unwatch(&dest->watch);
	xs->nr_dests--;
	xrds_space_release_replies(dest, xrds_space_nr_reserved(dest));
	/* nobody waits for it */
	xrds_space_set(dest, XRDS_SENT);
}

/**
 * xrds_dest_find - look a destination up
 * @xs: socket
 * @to: address and port
 *
 * Context: any.
 * Return: the destination with a reference, or NULL.
 */
struct xrds_dest *xrds_dest_find(struct xrds_sock *xs,
				 const struct xrds_addr *to)
{
	struct xrds_dest_key key = xrds_dest_key(xs, to);
	struct xrds_dest *dest;

	rcu_read_lock();
	dest = rhashtable_lookup(&xs->xn->dests, &key, xrds_dest_params);
	if (dest && !refcount_inc_not_zero(&dest->flow.ref))
		dest = NULL;
	rcu_read_unlock();
	return dest;
}

/* Messages mostly go where the last one went: no need to hash for that. */
static struct xrds_dest *xrds_dest_find_last(struct xrds_sock *xs,
					     const struct xrds_addr *to)
{
	struct xrds_dest *dest;

	rcu_read_lock();
	dest = READ_ONCE(xs->last_dest);
	if (dest && (dest->key.port != to->port ||
		     dest->key.scope != to->scope ||
		     !ipv6_addr_equal(&dest->key.addr, &to->addr) ||
		     !refcount_inc_not_zero(&dest->flow.ref)))
		dest = NULL;
	rcu_read_unlock();
	return dest;
}

/* Only a destination in the table: leaving it resets xs->last_dest. */
static void xrds_dest_remember(struct xrds_dest *dest)
{
	struct xrds_sock *xs = dest->key.xs;

	spin_lock_bh(&xs->lock);
	if (dest->linked)
		WRITE_ONCE(xs->last_dest, dest);
	spin_unlock_bh(&xs->lock);
}

/**
 * xrds_dest_release - drop the table's reference on an unlinked destination
 * @dest: destination; its wait for the end of congestion is cancelled
 *
 * Context: any, without L3 or L4.
 */
void xrds_dest_release(struct xrds_dest *dest)
{
	/* Nobody waits on it again: sends look at dest->linked before, and a
	 * closed socket has none under way.
	 */
	xrds_wait_end(&dest->flow);
	xrds_dest_put(dest);
}

/* Has an idle destination no state that a program could miss? One that has
 * refused, and would take a message now, is a reason for POLLOUT, and a program
 * that was told its port may ask for its address: these go where nothing else
 * can.
 */
static bool xrds_dest_spare(const struct xrds_dest *dest, bool last)
{
	return !dest->sndbuf && !xrds_space_nr_reserved(dest) && !dest->unread &&
	       (list_empty(&dest->cleared_node) || (last && dest->unnamed)) &&
	       !xrds_dest_eos_pending(dest) &&
	       (dest->send == XRDS_SEND_OPEN ||
		(last && dest->send == XRDS_SEND_READY));
}

/**
 * struct xrds_dest_look - a look for a destination that may give its place up
 * @left:	how many idle ones it still looks at, at most
 * @last:	those that are the last to go, too
 */
struct xrds_dest_look {
	u32 left;
	bool last;
};

/* Looks at some, and moves those that stay to the end. Returns one that may go, or
 * NULL; look->left is 0 if all were looked at.
 */
static struct xrds_dest *xrds_dest_find_spare(struct xrds_sock *xs,
					      struct xrds_dest_look *look)
{
	struct xrds_dest *dest, *first = NULL, *spare = NULL;
	u32 n;

	lockdep_assert_held(&xs->lock);

	for (n = 0; look->left && n < XRDS_END_BATCH; n++, look->left--) {
		dest = list_first_entry_or_null(&xs->idle_dests,
						struct xrds_dest, idle_node);
		if (!dest || dest == first) {
			look->left = 0;
			break;
		}
		if (xrds_dest_spare(dest, look->last)) {
			spare = dest;
			break;
		}
		first = first ?: dest;
		list_move_tail(&dest->idle_node, &xs->idle_dests);
	}
	xrds_hold_count(XRDS_HOLD_END, n);
	return spare;
}

/* Make room for one more. Returns the one that goes, which the caller releases,
 * or ERR_PTR(): -EAGAIN: there are more to look at; -ENFILE, or why the end of its
 * stream cannot be remembered.
 */
static struct xrds_dest *xrds_dest_evict(struct xrds_sock *xs,
					 struct xrds_dest_look *look)
{
	struct xrds_dest *dest;
	int ret;

	lockdep_assert_held(&xs->lock);

	dest = xrds_dest_find_spare(xs, look);
	if (!dest && !look->left && look->last)
		return ERR_PTR(-ENFILE);
	if (!dest && !look->left) {
		look->last = true;
		look->left = xs->nr_dests;
	}
	if (!dest)
		return ERR_PTR(-EAGAIN);
	ret = xrds_past_add(dest);
	if (ret)
		return ERR_PTR(ret);
	/* until a send after the one that this makes room for */
	if (dest->send == XRDS_SEND_READY)
		xs->ready_gone = 2;
	xrds_dest_unlink(dest);
	return dest;
}

static struct xrds_dest *xrds_dest_alloc(struct xrds_sock *xs,
					 const struct xrds_addr *to)
{
	struct xrds_dest *dest;
	int ret;

	ret = xrds_limit_charge(xs->xn, xs->user, XRDS_LIMIT_MEM,
				XRDS_DEST_COST_BYTES);
	if (ret)
		return ERR_PTR(ret);
	dest = kzalloc(sizeof(*dest), GFP_KERNEL_ACCOUNT);
	if (!dest) {
		xrds_limit_uncharge(xs->xn, xs->user, XRDS_LIMIT_MEM,
				    XRDS_DEST_COST_BYTES);
		return ERR_PTR(-ENOMEM);
	}

	dest->key.xs = xs;
	dest->key.addr = to->addr;
	dest->key.scope = to->scope;
	dest->key.port = to->port;
	xrds_flow_init(&dest->flow, xs->bind.port, to->port, &xs->lock,
		       xs->user);
	/* the table's reference and the caller's */
	refcount_set(&dest->flow.ref, 2);
	INIT_LIST_HEAD(&dest->xs_link.node);
	INIT_LIST_HEAD(&dest->idle_node);
	INIT_LIST_HEAD(&dest->cleared_node);
	INIT_LIST_HEAD(&dest->eos_node);
	init_waitqueue_head(&dest->space);
	sock_hold(&xs->sk);
	atomic_inc(&xs->xn->nr_dests);
	return dest;
}

/* The transport to an address, and the key of the connection; NULL: there is no way
 * to it.
 */
static const struct xrds_transport *
xrds_dest_conn_key(const struct xrds_sock *xs, const struct in6_addr *addr, u32 scope,
		   struct xrds_conn_key *key)
{
	const struct xrds_transport *trans = xs->trans;

	memset(key, 0, sizeof(*key));
	key->laddr = xs->bind.addr;
	key->faddr = *addr;
	key->scope = scope ?: xs->bind.scope;
	/* constant since the first destination was made */
	key->tos = READ_ONCE(xs->tos);
	if (ipv6_addr_equal(&key->laddr, &key->faddr))
		trans = &xrds_loop_transport;
	else if (xrds_addr_is_loopback(&key->laddr) !=
		 xrds_addr_is_loopback(&key->faddr))
		return NULL;
	key->loop = trans == &xrds_loop_transport;
	return trans;
}

/* The connection from a bound socket to an address; with a reference, or
 * ERR_PTR() as xrds_dest_conn().
 */
static struct xrds_conn *xrds_dest_find_conn(struct xrds_sock *xs,
					     const struct in6_addr *addr,
					     u32 scope)
{
	const struct xrds_transport *trans;
	struct xrds_conn_key key;

	trans = xrds_dest_conn_key(xs, addr, scope, &key);
	if (!trans)
		return ERR_PTR(-EHOSTUNREACH);
	return xrds_conn_find_or_create(xs->xn, xs->user, &key, trans,
					GFP_KERNEL);
}

/**
 * xrds_dest_peek_conn - the connection to an address, if there is one
 * @xs: bound socket
 * @to: the address
 *
 * Context: process.
 * Return: the connection with a reference, or NULL.
 */
struct xrds_conn *xrds_dest_peek_conn(const struct xrds_sock *xs,
				      const struct xrds_addr *to)
{
	struct xrds_conn_key key;

	return xrds_dest_conn_key(xs, &to->addr, to->scope, &key) ?
	       xrds_conn_find(xs->xn, &key) : NULL;
}

/* Have the connection to a node made, and all of them watched: without one the node is
 * down in a while.
 */
static void xrds_dest_probe(struct xrds_sock *xs, const struct in6_addr *addr,
			    u32 scope)
{
	struct xrds_conn *conn;
	bool dead;

	do {
		conn = xrds_dest_find_conn(xs, addr, scope);
		if (IS_ERR(conn))
			return;
		/* under conn->lock, as the end of an idle connection: either
		 * that sees the watch, or we see DEAD
		 */
		xrds_sibling_look(conn);
		dead = READ_ONCE(conn->state) == XRDS_ST_DEAD;
		xrds_conn_put(conn);
	} while (dead);
}

/* Make a destination, or find one that was made meanwhile. Returns as
 * xrds_dest_find_or_create().
 */
static struct xrds_dest *xrds_dest_create(struct xrds_sock *xs,
					  const struct xrds_addr *to)
{
	struct xrds_dest_look look = { .left = READ_ONCE(xs->nr_dests) };
	struct xrds_dest *dest, *old, *evicted = NULL;
	bool watched, down;

	dest = xrds_dest_alloc(xs, to);
	if (IS_ERR(dest))
		return dest;

	spin_lock_bh(&xs->lock);
	/* at the end of all streams the evicted ones come back */
	while (!evicted && !xs->ending &&
	       xs->nr_dests >= READ_ONCE(xs->xn->sock_max_dests)) {
		old = xrds_dest_evict(xs, &look);
		if (!IS_ERR(old)) {
			evicted = old;
		} else if (PTR_ERR(old) != -EAGAIN) {
			goto out;
		} else {
			spin_unlock_bh(&xs->lock);
			cond_resched();
			spin_lock_bh(&xs->lock);
		}
	}
	if (unlikely(xs->node_events)) {
		old = ERR_PTR(xrds_node_watch(&dest->watch, &dest->key));
		if (old)
			goto out;
	}
	old = rhashtable_lookup_get_insert_fast(&xs->xn->dests, &dest->node,
						xrds_dest_params);
	if (!old) {
		dest->linked = true;
		list_add_tail(&dest->xs_link.node, &xs->dests);
		list_add_tail(&dest->idle_node, &xs->idle_dests);
		xs->nr_dests++;
		xrds_past_restore(dest);
	} else if (!IS_ERR(old)) {
		/* cannot be zero: the table's reference goes under xs->lock */
		xrds_flow_get(&old->flow);
	} else if (PTR_ERR(old) != -ENOMEM) {
		old = ERR_PTR(-ENOMEM);
	}
out:
	if (old)
		xrds_node_unwatch(&dest->watch);
	watched = dest->watch;
	down = xrds_node_down(dest->watch);
	spin_unlock_bh(&xs->lock);

	if (down)
		xrds_node_wake(&xs->sk);
	if (evicted)
		xrds_dest_release(evicted);
	if (watched)
		xrds_dest_probe(xs, &to->addr, to->scope);
	if (!old)
		return dest;
	xrds_dest_put(dest);
	xrds_dest_put(dest);
	return old;
}

/* Find or make a destination that is not the last one. Returns as
 * xrds_dest_find_or_create().
 */
static noinline struct xrds_dest *
xrds_dest_find_other_or_create(struct xrds_sock *xs, const struct xrds_addr *to)
{
	struct xrds_dest *dest = xrds_dest_find(xs, to);

	if (!dest)
		return xrds_dest_create(xs, to);
	xrds_dest_remember(dest);
	return dest;
}

/**
 * xrds_dest_addr_fits - have a socket and a destination the same kind of address?
 * @xs: socket that is bound
 * @to: destination
 *
 * A connection has one scope for both of its ends, and all that looks for a socket
 * by the address of one end relies on that. So a link-local address of IPv6 goes
 * with others of its interface only.
 *
 * Context: any.
 * Return: 0; -EOPNOTSUPP; -EINVAL when they are of two interfaces.
 */
int xrds_dest_addr_fits(const struct xrds_sock *xs, const struct xrds_addr *to)
{
	if (ipv6_addr_v4mapped(&to->addr) !=
	    ipv6_addr_v4mapped(&xs->bind.addr) ||
	    !to->scope != !xs->bind.scope)
		return -EOPNOTSUPP;
	return to->scope == xs->bind.scope ? 0 : -EINVAL;
}

/**
 * xrds_dest_find_or_create - find or make a destination
 * @xs: bound socket
 * @to: address and port
 *
 * Context: process, may sleep.
 * Return: the destination with a reference, or ERR_PTR(): -ENOMEM, -EDQUOT,
 * -ENFILE when the socket has too many that hold queues.
 */
struct xrds_dest *xrds_dest_find_or_create(struct xrds_sock *xs,
					   const struct xrds_addr *to)
{
	return xrds_dest_find_last(xs, to) ?:
	       xrds_dest_find_other_or_create(xs, to);
}

/**
 * xrds_dest_conn - the connection that carries messages to a destination
 * @dest: destination of a bound socket
 *
 * Makes the connection when there is none, or when the one in use has ended.
 *
 * Context: process, may sleep.
 * Return: the connection with a reference, or ERR_PTR(): -ENOMEM, -EDQUOT,
 * -EHOSTUNREACH when the socket's transport has no path to it.
 */
struct xrds_conn *xrds_dest_conn(struct xrds_dest *dest)
{
	struct xrds_sock *xs = dest->key.xs;
	struct xrds_conn *conn;

	spin_lock_bh(&xs->lock);
	conn = dest->flow.conn;
	if (conn && READ_ONCE(conn->state) != XRDS_ST_DEAD) {
		xrds_conn_get(conn);
		spin_unlock_bh(&xs->lock);
		return conn;
	}
	spin_unlock_bh(&xs->lock);
	xrds_flow_leave_dead(&dest->flow);

	/* Nobody waits on the old one: leaving it has woken the senders that
	 * did, and on a dead connection no wait begins.
	 */
	conn = xrds_dest_find_conn(xs, &dest->key.addr, dest->key.scope);
	return IS_ERR(conn) ? conn : xrds_flow_join(&dest->flow, conn);
}

/* Watch the nodes of some destinations, or end that. @keys gets those of the
 * destinations whose connections are to be probed. Returns how many, -EAGAIN at the
 * end, or another negative errno.
 */
static int xrds_dest_watch_some(struct xrds_sock *xs, struct xrds_dest_walk *walk,
				struct xrds_dest_key *keys)
{
	struct xrds_dest *dest;
	int i, n = 0, ret = 0;
	bool down = false;

	spin_lock_bh(&xs->lock);
	for (i = 0; i < XRDS_WATCH_BATCH && !ret; i++) {
		dest = xrds_dest_walk_next(walk);
		if (!dest) {
			ret = i ? 0 : -EAGAIN;
			break;
		}
		if (!xs->node_events) {
			xrds_node_unwatch(&dest->watch);
			continue;
		}
		ret = xrds_node_watch(&dest->watch, &dest->key);
		down |= xrds_node_down(dest->watch);
		if (dest->watch)
			keys[n++] = dest->key;
	}
	spin_unlock_bh(&xs->lock);
	if (down)
		xrds_node_wake(&xs->sk);
	return ret ?: n;
}

/* Destinations and sources that are new from now on go by @on. */
static void xrds_dest_watch_set(struct xrds_sock *xs, bool on)
{
	spin_lock_bh(&xs->lock);
	spin_lock(&xs->sk.sk_receive_queue.lock);
	WRITE_ONCE(xs->node_events, on);
	WRITE_ONCE(xs->next_source,
		   list_first_entry_or_null(&xs->sources, struct xrds_source,
					    list));
	spin_unlock(&xs->sk.sk_receive_queue.lock);
	spin_unlock_bh(&xs->lock);
}

/**
 * xrds_dest_watch_all - begin or end to watch the nodes of all destinations and
 *	sources
 * @xs: socket
 * @on: which
 *
 * Destinations that are made meanwhile go to the end of the list. Sources that
 * move in theirs go by the new state.
 *
 * Context: process, may sleep; the socket is locked or closed.
 * Return: 0, -ENOMEM, -EDQUOT.
 */
int xrds_dest_watch_all(struct xrds_sock *xs, bool on)
{
	struct xrds_dest_key keys[XRDS_WATCH_BATCH];
	struct xrds_dest_walk walk;
	bool dests = true;
	int n = 0;

	xrds_dest_watch_set(xs, on);
	xrds_dest_walk_begin(&walk, xs);
	while (dests || READ_ONCE(xs->next_source)) {
		n = dests ? xrds_dest_watch_some(xs, &walk, keys) :
			    xrds_srctab_watch_some(xs, keys);
		if (dests && n == -EAGAIN) {
			dests = false;
			n = 0;
		}
		if (n < 0)
			break;
		for (; n > 0; n--)
			xrds_dest_probe(xs, &keys[n - 1].addr,
					keys[n - 1].scope);
		cond_resched();
	}
	xrds_dest_walk_end(&walk);
	return n;
}

/* Some go if they have nothing under way. Returns how many were looked at. */
static u32 xrds_dest_close_some(struct xrds_sock *xs, struct xrds_dest_walk *walk)
{
	struct xrds_dest *dest, *tmp;
	LIST_HEAD(gone);
	u32 n = 0;

	spin_lock_bh(&xs->lock);
	while (n < XRDS_END_BATCH && (dest = xrds_dest_walk_next(walk))) {
		n++;
		list_del_init(&dest->cleared_node);
		if (dest->queued_msgs || xrds_dest_eos_pending(dest))
			continue;
		xrds_dest_unlink(dest);
		list_add(&dest->xs_link.node, &gone);
	}
	spin_unlock_bh(&xs->lock);
	xrds_hold_count(XRDS_HOLD_END, n);

	list_for_each_entry_safe(dest, tmp, &gone, xs_link.node) {
		list_del_init(&dest->xs_link.node);
		xrds_dest_release(dest);
	}
	return n;
}

/**
 * xrds_dest_close_all - the socket is closed
 * @xs: socket, SOCK_DEAD is set
 *
 * Drops the destinations with nothing under way; the others go with the last
 * that is.
 *
 * Context: process.
 */
void xrds_dest_close_all(struct xrds_sock *xs)
{
	struct xrds_dest_walk walk;

	xrds_dest_walk_begin(&walk, xs);
	while (xrds_dest_close_some(xs, &walk))
		cond_resched();
	xrds_dest_walk_end(&walk);
}

/**
 * xrds_dest_eos_due - nothing is queued: does a destination's stream end now?
 * @dest: destination
 *
 * Context: any, xs->lock held. After it is dropped the caller calls
 * xrds_dest_eos_kick() if so.
 * Return: whether it does.
 */
bool xrds_dest_eos_due(struct xrds_dest *dest)
{
	struct xrds_sock *xs = dest->key.xs;

	lockdep_assert_held(&xs->lock);

	if (!xs->ending || !READ_ONCE(dest->flow.begun) ||
	    dest->eos != XRDS_EOS_NONE)
		return false;
	dest->eos = XRDS_EOS_DUE;
	list_add_tail(&dest->eos_node, &xs->eos_due);
	xs->nr_eos++;
	return true;
}

/**
 * xrds_dest_eos_kick - have the marks queued that are due
 * @xs: socket; the caller has a reference
 *
 * Context: any.
 */
void xrds_dest_eos_kick(struct xrds_sock *xs)
{
	sock_hold(&xs->sk);
	if (!queue_delayed_work(xrds_conn_wq, &xs->eos_work, 0))
		sock_put(&xs->sk);
}
