// SPDX-License-Identifier: GPL-2.0-only
/*
 * Destinations: what one socket has under way to one (address, port).
 *
 * A destination is made by the first send to it, found through one table per
 * namespace (an idle socket costs nothing), and lives while a message refers to
 * it. Those with nothing queued are kept, to remember settings and counters,
 * until the socket closes or needs their place; their number is bounded by
 * net.xrds.sock_max_dests. Its send space is the matter of space.c.
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

static const struct rhashtable_params xrds_dest_params = {
	.key_len	= sizeof(struct xrds_dest_key),
	.key_offset	= offsetof(struct xrds_dest, key),
	.head_offset	= offsetof(struct xrds_dest, node),
	.automatic_shrinking = true,
};

/**
 * xrds_dest_init - make a namespace's table of destinations
 * @xn: namespace
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int xrds_dest_init(struct xrds_net *xn)
{
	return rhashtable_init(&xn->dests, &xrds_dest_params);
}

/**
 * xrds_dest_exit - free a namespace's table of destinations
 * @xn: namespace without sockets
 *
 * Context: process.
 */
void xrds_dest_exit(struct xrds_net *xn)
{
	rhashtable_destroy(&xn->dests);
}

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
	list_del_init(&dest->xs_node);
	list_del_init(&dest->idle_node);
	list_del_init(&dest->cleared_node);
	xs->nr_dests--;
	xs->nr_promises -= dest->promises;
	WRITE_ONCE(dest->promises, 0);
	if (dest->refused)
		xs->nr_refused--;
	if (dest->ready)
		xs->nr_ready--;
	WRITE_ONCE(dest->refused, false);
	dest->ready = false;
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
	struct xrds_dest_key key = {
		.xs	= xs,
		.addr	= to->addr,
		.scope	= to->scope,
		.port	= to->port,
	};
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

/* What has left the table is not remembered: nobody would forget it. */
static void xrds_dest_remember(struct xrds_dest *dest)
{
	struct xrds_sock *xs = dest->key.xs;

	spin_lock_bh(&xs->lock);
	if (dest->linked)
		WRITE_ONCE(xs->last_dest, dest);
	spin_unlock_bh(&xs->lock);
}

/**
 * xrds_dest_release - let go of what an unlinked destination still holds
 * @dest: destination; with it goes the reference that the table had
 *
 * Context: any, without L3 or L4.
 */
void xrds_dest_release(struct xrds_dest *dest)
{
	/* Nobody waits on it again: sends look at dest->linked before, and a
	 * closed socket has none under way.
	 */
	xrds_cong_unwait(&dest->flow);
	xrds_dest_put(dest);
}

/* Has an idle destination no state that a program could miss? One that has
 * refused, and would take a message now, is a reason for POLLOUT: it goes where
 * nothing else can.
 */
static bool xrds_dest_spare(const struct xrds_dest *dest, bool refused)
{
	return !dest->sndbuf && !dest->promises && !dest->unread &&
	       list_empty(&dest->cleared_node) && !xrds_eos_pending(dest) &&
	       (!dest->refused || (refused && dest->ready));
}

/* Make room for one more */
static struct xrds_dest *xrds_dest_evict(struct xrds_sock *xs)
{
	struct xrds_dest *dest, *ready = NULL;

	lockdep_assert_held(&xs->lock);

	list_for_each_entry(dest, &xs->idle_dests, idle_node) {
		if (xrds_dest_spare(dest, false))
			goto found;
		if (!ready && xrds_dest_spare(dest, true))
			ready = dest;
	}
	if (!ready)
		return NULL;
	dest = ready;
	/* until a send after the one that this makes room for */
	xs->ready_gone = 2;
found:
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
	xrds_flow_init(&dest->flow, to->port, &xs->lock);
	/* the table's reference and the caller's */
	refcount_set(&dest->flow.ref, 2);
	INIT_LIST_HEAD(&dest->xs_node);
	INIT_LIST_HEAD(&dest->idle_node);
	INIT_LIST_HEAD(&dest->cleared_node);
	INIT_LIST_HEAD(&dest->eos_node);
	init_waitqueue_head(&dest->space);
	sock_hold(&xs->sk);
	atomic_inc(&xs->xn->nr_dests);
	return dest;
}

/**
 * xrds_dest_get_for - find or make a destination
 * @xs: bound socket
 * @to: address and port
 *
 * Context: process, may sleep.
 * Return: the destination with a reference, or ERR_PTR(): -ENOMEM, -EDQUOT,
 * -ENFILE when the socket has too many that hold queues.
 */
struct xrds_dest *xrds_dest_get_for(struct xrds_sock *xs,
				    const struct xrds_addr *to)
{
	struct xrds_dest *dest, *old, *evicted = NULL;

	dest = xrds_dest_find_last(xs, to);
	if (dest)
		return dest;
	dest = xrds_dest_find(xs, to);
	if (dest) {
		xrds_dest_remember(dest);
		return dest;
	}

	dest = xrds_dest_alloc(xs, to);
	if (IS_ERR(dest))
		return dest;

	spin_lock_bh(&xs->lock);
	if (xs->nr_dests >= READ_ONCE(xs->xn->sock_max_dests)) {
		evicted = xrds_dest_evict(xs);
		if (!evicted) {
			old = ERR_PTR(-ENFILE);
			goto out;
		}
	}
	old = rhashtable_lookup_get_insert_fast(&xs->xn->dests, &dest->node,
						xrds_dest_params);
	if (!old) {
		dest->linked = true;
		list_add_tail(&dest->xs_node, &xs->dests);
		list_add_tail(&dest->idle_node, &xs->idle_dests);
		xs->nr_dests++;
	} else if (!IS_ERR(old)) {
		/* cannot be zero: the table's reference goes under xs->lock */
		xrds_flow_get(&old->flow);
	} else if (PTR_ERR(old) != -ENOMEM) {
		old = ERR_PTR(-ENOMEM);
	}
out:
	spin_unlock_bh(&xs->lock);

	if (evicted)
		xrds_dest_release(evicted);
	if (!old)
		return dest;
	xrds_dest_put(dest);
	xrds_dest_put(dest);
	return old;
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
	const struct xrds_transport *trans = xs->trans;
	struct xrds_conn_key key;
	struct xrds_conn *conn;

	spin_lock_bh(&xs->lock);
	conn = dest->flow.conn;
	if (conn && READ_ONCE(conn->state) != XRDS_ST_DEAD) {
		xrds_conn_get(conn);
		spin_unlock_bh(&xs->lock);
		return conn;
	}
	spin_unlock_bh(&xs->lock);
	xrds_flow_leave(&dest->flow, false);

	memset(&key, 0, sizeof(key));
	key.laddr = xs->bind.addr;
	key.faddr = dest->key.addr;
	key.scope = dest->key.scope ?: xs->bind.scope;
	/* constant since the destination was made */
	key.tos = READ_ONCE(xs->tos);
	if (ipv6_addr_equal(&key.laddr, &key.faddr)) {
		trans = &xrds_loop_transport;
	} else if (xrds_addr_is_loopback(&key.laddr) !=
		   xrds_addr_is_loopback(&key.faddr)) {
		return ERR_PTR(-EHOSTUNREACH);
	}
	key.loop = trans == &xrds_loop_transport;

	/* The old one is dead, so nobody begins to wait on it any more, and
	 * its own end wakes who still does.
	 */
	conn = xrds_conn_get_for(xs->xn, xs->user, &key, trans, GFP_KERNEL);
	return IS_ERR(conn) ? conn : xrds_flow_join(&dest->flow, conn);
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
	struct xrds_dest *dest, *tmp;
	LIST_HEAD(gone);

	spin_lock_bh(&xs->lock);
	list_for_each_entry_safe(dest, tmp, &xs->dests, xs_node) {
		list_del_init(&dest->cleared_node);
		if (dest->queued_msgs || xrds_eos_pending(dest))
			continue;
		xrds_dest_unlink(dest);
		list_add(&dest->xs_node, &gone);
	}
	spin_unlock_bh(&xs->lock);

	list_for_each_entry_safe(dest, tmp, &gone, xs_node) {
		list_del_init(&dest->xs_node);
		xrds_dest_release(dest);
	}
}

/**
 * xrds_dest_get_sndbuf - XRDS_DEST_SNDBUF
 * @xs: socket
 * @arg: in: dest; out: the rest
 *
 * Context: process.
 * Return: 0 or -EINVAL.
 */
int xrds_dest_get_sndbuf(struct xrds_sock *xs, struct xrds_dest_sndbuf *arg)
{
	struct xrds_dest *dest;
	struct xrds_addr to;

	arg->bytes = READ_ONCE(xs->dest_sndbuf) ?: xrds_sk_sndbuf(xs);
	arg->reserved = 0;
	if (arg->dest.ss_family == AF_UNSPEC)
		return 0;
	if (xrds_addr_parse(&to, &arg->dest, sizeof(arg->dest)))
		return -EINVAL;
	dest = xrds_dest_find(xs, &to);
	if (dest) {
		arg->bytes = xrds_dest_sndbuf(dest);
		xrds_dest_put(dest);
	}
	return 0;
}

static void xrds_dest_fill_status(struct xrds_dest *dest,
				  struct xrds_dest_status *st)
{
	struct xrds_sock *xs = dest->key.xs;

	st->sndbuf = xrds_dest_sndbuf(dest);
	spin_lock_bh(&xs->lock);
	st->reserved_bytes = xrds_dest_promised(dest);
	st->queued_bytes = dest->queued_bytes;
	st->queued_msgs = dest->queued_msgs;
	st->acked_msgs = dest->acked_msgs;
	st->last_progress_ns = dest->last_progress_ns;
	if (dest->refused && !dest->ready)
		st->flags |= XRDS_DEST_BLOCKED;
	if (dest->eos == XRDS_EOS_QUEUED || dest->eos == XRDS_EOS_DONE)
		st->flags |= XRDS_DEST_EOS_SENT;
	spin_unlock_bh(&xs->lock);
}

static u64 xrds_dest_inflight(const struct xrds_dest *dest,
			      struct xrds_conn *conn)
{
	u64 bytes = 0;

	spin_lock_bh(&conn->lock);
	if (dest->flow.conn == conn)
		bytes = dest->flow.inflight_bytes;
	spin_unlock_bh(&conn->lock);
	return bytes;
}

/* Something queued means that a connection is being made, or soon will be. */
static u32 xrds_dest_conn_state(const struct xrds_conn *conn, bool queued)
{
	enum xrds_state state = READ_ONCE(conn->state);

	if (state == XRDS_ST_UP)
		return XRDS_DEST_UP;
	if (READ_ONCE(conn->failed))
		return XRDS_DEST_ERROR;
	if (queued || state == XRDS_ST_RESOLVING ||
	    state == XRDS_ST_CONNECTING || state == XRDS_ST_WAIT_CTS)
		return XRDS_DEST_CONNECTING;
	return XRDS_DEST_IDLE;
}

/**
 * xrds_dest_status - XRDS_DEST_STATUS
 * @xs: socket
 * @st: in: dest; out: everything else
 *
 * A destination that was never used is idle and empty.
 *
 * Context: process.
 * Return: 0, -EINVAL, -ENOTCONN.
 */
int xrds_dest_status(struct xrds_sock *xs, struct xrds_dest_status *st)
{
	struct xrds_conn *conn;
	struct xrds_dest *dest;
	struct xrds_addr to;

	if (xrds_addr_parse(&to, &st->dest, sizeof(st->dest)) ||
	    xrds_addr_check_dest(&to))
		return -EINVAL;
	if (!xrds_sk_bound(xs))
		return -ENOTCONN;

	memset_startat(st, 0, state);
	st->sndbuf = READ_ONCE(xs->dest_sndbuf) ?: xrds_sk_sndbuf(xs);
	xrds_node_marks(&xs->rdma, &to, &st->rdma_issued, &st->rdma_completed);
	if (xrds_source_ended(xs, &to))
		st->flags |= XRDS_DEST_EOS_RCVD;

	dest = xrds_dest_find(xs, &to);
	if (!dest)
		return 0;
	xrds_dest_fill_status(dest, st);
	conn = xrds_flow_conn(&dest->flow);
	if (conn) {
		st->state = xrds_dest_conn_state(conn, st->queued_msgs);
		st->inflight_bytes = xrds_dest_inflight(dest, conn);
		if (xrds_cong_blocked(conn, to.port))
			st->flags |= XRDS_DEST_CONGESTED;
		xrds_conn_put(conn);
	}
	xrds_dest_put(dest);
	return 0;
}
