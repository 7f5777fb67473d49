// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections: one between two nodes (for each type of service and lane), for
 * all their sockets. This file has their table, their life and the events that
 * reach them. state.c has the action of each event.
 *
 * A connection is made by the first message toward a node or by the node's
 * request, is found through one table per namespace, and outlives the
 * endpoints that the transport makes for it: an endpoint is one life of a QP,
 * thrown away at the first error. Messages, sequence numbers and back-off
 * belong to the connection.
 *
 * An event is a bit in conn->events. Those of an endpoint carry its
 * generation, so that late events of an endpoint that is gone are ignored.
 *
 * Removal: make_dead (the worker has stopped the endpoint, drops all that is
 * queued, takes the connection out of the table, and sets DEAD, after which
 * no event queues the work), then the table's reference is dropped, then the
 * last user's, and the memory goes after a grace period.
 */
#include <linux/bitmap.h>
#include <linux/random.h>

#include "conn/conn.h"
#include "msg.h"
#include "tracepoints.h"
#include "transport.h"
#include "xrds.h"

/* works of connections, and those of sockets that may take long */
struct workqueue_struct *xrds_conn_wq;

/* functions of the files above this one */
static struct xrds_conn_works xrds_conn_works;

const struct rhashtable_params xrds_conn_params = {
	.key_len	= sizeof(struct xrds_conn_key),
	.key_offset	= offsetof(struct xrds_conn, key),
	.head_offset	= offsetof(struct xrds_conn, node),
	.automatic_shrinking = true,
};

/* ------------------------------------------------------------- lifetime */

/**
 * xrds_conn_get - take a reference on a connection
 * @conn: connection the caller has a reference on, or holds a lock that does
 *
 * Context: any.
 */
void xrds_conn_get(struct xrds_conn *conn)
{
	refcount_inc(&conn->ref);
	trace_xrds_ref_get("conn", conn, refcount_read(&conn->ref), _RET_IP_);
}
EXPORT_SYMBOL_GPL(xrds_conn_get);

static void xrds_conn_free(struct rcu_head *rcu)
{
	struct xrds_conn *conn = container_of(rcu, struct xrds_conn, rcu);
	struct xrds_net *xn = conn->xn;

	xrds_limit_uncharge(xn, conn->user, XRDS_LIMIT_CONNS, 1);
	if (!conn->user)
		atomic_dec(&xn->nr_asked);
	xrds_user_put(conn->user);
	xrds_peer_leave(conn);
	bitmap_free(conn->cong);
	kfree(conn);
	if (atomic_dec_and_test(&xn->nr_conns))
		wake_up_all(&xn->gone);
}

/**
 * xrds_conn_put - drop a reference on a connection
 * @conn: connection
 *
 * Context: any.
 */
void xrds_conn_put(struct xrds_conn *conn)
{
	trace_xrds_ref_put("conn", conn, refcount_read(&conn->ref) - 1,
			   _RET_IP_);
	/* the worker has emptied every queue before it dropped the table's */
	if (refcount_dec_and_test(&conn->ref))
		call_rcu(&conn->rcu, xrds_conn_free);
}
EXPORT_SYMBOL_GPL(xrds_conn_put);

/* A connection, with the flow of the kernel's own messages */
struct xrds_conn_own {
	struct xrds_conn conn;
	struct xrds_flow flow;
	struct xrds_share share;
};

static_assert(!offsetof(struct xrds_conn_own, conn));

/* That flow has no port, and does not join. */
static void xrds_conn_init_own(struct xrds_conn_own *own)
{
	struct xrds_conn *conn = &own->conn;

	xrds_flow_init(&own->flow, 0, 0, NULL, NULL);
	xrds_fq_init_node(&own->share.node);
	xrds_fq_init(&own->share.fq);
	own->share.part.key.conn = conn;
	own->flow.share = &own->share;
	own->flow.conn = conn;
	conn->own = &own->flow;
}

static struct xrds_conn *xrds_conn_alloc(struct xrds_net *xn,
					 struct xrds_user *user,
					 const struct xrds_conn_key *key,
					 const struct xrds_transport *trans,
					 gfp_t gfp)
{
	struct xrds_conn_own *own;
	struct xrds_conn *conn;
	int ret;

	ret = xrds_limit_charge(xn, user, XRDS_LIMIT_CONNS, 1);
	if (ret)
		return ERR_PTR(ret);
	/* one that a peer wants is nobody's here */
	if (user)
		gfp |= __GFP_ACCOUNT;
	own = kzalloc(sizeof(*own), gfp);
	if (!own) {
		xrds_limit_uncharge(xn, user, XRDS_LIMIT_CONNS, 1);
		return ERR_PTR(-ENOMEM);
	}
	conn = &own->conn;
	xrds_conn_init_own(own);

	conn->key = *key;
	conn->xn = xn;
	if (xrds_peer_join(conn, gfp)) {
		kfree(own);
		xrds_limit_uncharge(xn, user, XRDS_LIMIT_CONNS, 1);
		return ERR_PTR(-ENOMEM);
	}
	conn->user = xrds_user_get(user);
	conn->trans = trans;
	/* the table's reference and the caller's */
	refcount_set(&conn->ref, 2);
	INIT_LIST_HEAD(&conn->list);
	INIT_LIST_HEAD(&conn->peer_entry);
	INIT_DELAYED_WORK(&conn->work, xrds_conn_works.state);
	INIT_DELAYED_WORK(&conn->ack_work, xrds_conn_works.ack);
	INIT_DELAYED_WORK(&conn->push_work, xrds_conn_works.push);
	spin_lock_init(&conn->tx_lock);
	spin_lock_init(&conn->lock);
	xrds_fq_init(&conn->fq);
	conn->bulk_over = U32_MAX;
	INIT_LIST_HEAD(&conn->dial.node);
	conn->dial.conn = conn;
	INIT_LIST_HEAD(&conn->shares);
	INIT_LIST_HEAD(&conn->again);
	INIT_LIST_HEAD(&conn->gates);
	INIT_LIST_HEAD(&conn->refused);
	INIT_LIST_HEAD(&conn->refused_due);
	INIT_LIST_HEAD(&conn->inflight);
	INIT_LIST_HEAD(&conn->ops);
	INIT_LIST_HEAD(&conn->flows);
	INIT_LIST_HEAD(&conn->links);
	skb_queue_head_init(&conn->cong_rx);
	conn->state = XRDS_ST_DOWN;
	conn->ep_gen = 1;
	conn->rx_next = 1;
	conn->quiet.since = jiffies;
	conn->epoch = get_random_u32();
	atomic_inc(&xn->nr_conns);
	if (!user)
		atomic_inc(&xn->nr_asked);
	return conn;
}

/**
 * xrds_conn_find - find a connection
 * @xn: namespace
 * @key: which
 *
 * Context: any.
 * Return: the connection with a reference, or NULL.
 */
struct xrds_conn *xrds_conn_find(struct xrds_net *xn,
				 const struct xrds_conn_key *key)
{
	struct xrds_conn *conn;

	rcu_read_lock();
	conn = rhashtable_lookup(&xn->conns, key, xrds_conn_params);
	if (conn && !refcount_inc_not_zero(&conn->ref))
		conn = NULL;
	rcu_read_unlock();
	if (conn)
		trace_xrds_ref_get("conn", conn, refcount_read(&conn->ref),
				   _RET_IP_);
	return conn;
}
EXPORT_SYMBOL_GPL(xrds_conn_find);

static void xrds_conn_enlist(struct xrds_conn *conn)
{
	lockdep_assert_held(&conn->xn->lock);

	list_add_tail_rcu(&conn->list, &conn->xn->conn_list);
	if (conn->peer)
		list_add_tail_rcu(&conn->peer_entry, &conn->peer->conns);
}

/**
 * xrds_conn_find_or_create - find or make a connection
 * @xn: namespace
 * @user: a new one is charged to this user; NULL: the peer wants it
 * @key: which
 * @trans: transport of a new one
 * @gfp: allocation flags
 *
 * Context: as @gfp says.
 * Return: the connection with a reference, or ERR_PTR(): -ENOMEM, -EDQUOT when
 * there are too many, -ENETDOWN when the namespace or the transport is going
 * away.
 */
struct xrds_conn *xrds_conn_find_or_create(struct xrds_net *xn,
					   struct xrds_user *user,
					   const struct xrds_conn_key *key,
					   const struct xrds_transport *trans,
					   gfp_t gfp)
{
	struct xrds_conn *conn, *old;

	conn = xrds_conn_find(xn, key);
	if (conn)
		return conn;

	conn = xrds_conn_alloc(xn, user, key, trans, gfp);
	if (IS_ERR(conn))
		return conn;

	/* xn->lock orders us with xrds_conn_net_flush() */
	spin_lock_bh(&xn->lock);
	if (xn->exiting || READ_ONCE(trans->leaving)) {
		old = ERR_PTR(-ENETDOWN);
		goto out;
	}
	/* from here on any CPU may find it */
	conn->id = ++xn->conn_ids;
	conn->tx_seq = xn->last_seq;
	conn->acked = xn->last_seq;
	conn->acked_before = xn->last_seq;
	rcu_read_lock();
	old = rhashtable_lookup_get_insert_fast(&xn->conns, &conn->node,
						xrds_conn_params);
	if (!old)
		xrds_conn_enlist(conn);
	else if (IS_ERR(old) || !refcount_inc_not_zero(&old->ref))
		old = ERR_PTR(-ENOMEM);
	rcu_read_unlock();
out:
	spin_unlock_bh(&xn->lock);
	if (!old) {
		/* nothing else may ever happen to it: it is idle from now on */
		xrds_conn_event(conn, XRDS_EV_IDLE);
		return conn;
	}

	xrds_conn_put(conn);
	xrds_conn_put(conn);
	return old;
}
EXPORT_SYMBOL_GPL(xrds_conn_find_or_create);

/**
 * xrds_conn_unhash - take a connection out of the table
 * @conn: connection without endpoint; the caller owns the table's reference from
 *	now on
 *
 * Its numbers do not come again: the peer may remember them. It becomes DEAD in
 * the same hold of the lock, so one that is not DEAD is on the list.
 *
 * Context: the connection's work, conn->lock held.
 */
void xrds_conn_unhash(struct xrds_conn *conn)
{
	struct xrds_net *xn = conn->xn;

	lockdep_assert_held(&conn->lock);

	spin_lock_bh(&xn->lock);
	xn->last_seq = max(xn->last_seq, READ_ONCE(conn->tx_seq));
	if ((conn->peer_node || conn->legacy.heard) && !conn->key.loop)
		WRITE_ONCE(xn->forgot, true);
	rhashtable_remove_fast(&xn->conns, &conn->node, xrds_conn_params);
	list_del_rcu(&conn->list);
	list_del_rcu(&conn->peer_entry);
	spin_unlock_bh(&xn->lock);
}

/* --------------------------------------------------------------- events */

static void __xrds_conn_event(struct xrds_conn *conn, enum xrds_event ev)
{
	lockdep_assert_held(&conn->lock);

	/* make_dead sets DEAD under the lock: no work is queued after it */
	if (conn->state == XRDS_ST_DEAD)
		return;
	trace_xrds_conn_event(conn, ev, ev == XRDS_EV_ERROR ? conn->error : 0);
	conn->events |= BIT(ev);
	mod_delayed_work(xrds_conn_wq, &conn->work, 0);
}

/**
 * xrds_conn_event - record an event that concerns the connection
 * @conn: connection
 * @ev: event
 *
 * Context: any.
 */
void xrds_conn_event(struct xrds_conn *conn, enum xrds_event ev)
{
	spin_lock_bh(&conn->lock);
	__xrds_conn_event(conn, ev);
	spin_unlock_bh(&conn->lock);
}
EXPORT_SYMBOL_GPL(xrds_conn_event);

/**
 * xrds_conn_ep_event - record an event of an endpoint
 * @conn: connection
 * @gen: value of conn->ep_gen when the endpoint was made
 * @ev: event
 * @error: with XRDS_EV_ERROR the reason, negative errno; the first one counts
 *
 * Context: any.
 */
void xrds_conn_ep_event(struct xrds_conn *conn, u32 gen, enum xrds_event ev,
			int error)
{
	spin_lock_bh(&conn->lock);
	if (conn->ep_gen == gen) {
		if (ev == XRDS_EV_ERROR && !(conn->events & BIT(ev)))
			conn->error = error;
		__xrds_conn_event(conn, ev);
	}
	spin_unlock_bh(&conn->lock);
}
EXPORT_SYMBOL_GPL(xrds_conn_ep_event);

/**
 * xrds_conn_wire_error - the peer broke the protocol
 * @conn: connection
 * @gen: see xrds_conn_ep_event()
 * @err: what it did
 *
 * Context: any.
 */
void xrds_conn_wire_error(struct xrds_conn *conn, u32 gen,
			  enum xrds_wire_err err)
{
	struct xrds_addr_text text;

	xrds_count(conn->xn, err == XRDS_WIRE_CSUM ?
			     XRDS_C_RECV_DROP_BAD_CHECKSUM :
			     XRDS_C_WIRE + err);
	net_warn_ratelimited("xrds: %s: dropping the connection: %s\n",
			     xrds_addr_text(&conn->key.faddr, &text),
			     xrds_wire_strerror(err));
	xrds_conn_ep_event(conn, gen, XRDS_EV_ERROR, -EPROTO);
}
EXPORT_SYMBOL_GPL(xrds_conn_wire_error);

/**
 * xrds_conn_request - the peer wants to connect
 * @conn: connection
 * @req: its request; on success owned by the connection
 *
 * Context: any.
 * Return: false when a request waits already or the connection is dead.
 */
bool xrds_conn_request(struct xrds_conn *conn, struct xrds_request *req)
{
	bool taken = false;

	spin_lock_bh(&conn->lock);
	if (!conn->pending && conn->state != XRDS_ST_DEAD) {
		conn->pending = req;
		__xrds_conn_event(conn, XRDS_EV_REQUEST);
		taken = true;
	}
	spin_unlock_bh(&conn->lock);
	return taken;
}
EXPORT_SYMBOL_GPL(xrds_conn_request);

/**
 * xrds_conn_take_pending - take over the request that waits
 * @conn: connection
 *
 * Context: any; the caller becomes the owner.
 * Return: the request, or NULL.
 */
struct xrds_request *xrds_conn_take_pending(struct xrds_conn *conn)
{
	struct xrds_request *req;

	spin_lock_bh(&conn->lock);
	req = conn->pending;
	conn->pending = NULL;
	spin_unlock_bh(&conn->lock);
	return req;
}
EXPORT_SYMBOL_GPL(xrds_conn_take_pending);

/**
 * xrds_conn_fill_hello - describe this connection for the peer
 * @conn: connection
 * @hello: result; the transport adds what is its own
 *
 * The peer's own may be coming in at this moment, see xrds_rx_hello(). If it was
 * first, the peer is known already, with nothing received yet.
 *
 * Context: the connection's work.
 */
void xrds_conn_fill_hello(struct xrds_conn *conn,
			  struct xrds_wire_hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	hello->revision = XRDS_REVISION;
	hello->lane = conn->key.lane;
	hello->epoch = conn->epoch;
	hello->node = conn->xn->node;
	/* messages of one peer must not be acknowledged to another */
	spin_lock_bh(&conn->lock);
	hello->peer_node = conn->peer_node;
	/* numbers of a legacy peer are nobody's */
	hello->ack = conn->peer_node ? conn->rx_next - 1 : 0;
	if (hello->ack)
		hello->flags |= XRDS_HELLO_KNOWN;
	/* the peer is told of refusals, again, behind this */
	if (conn->refused_floor && hello->ack >= conn->refused_floor)
		hello->ack = conn->refused_floor - 1;
	spin_unlock_bh(&conn->lock);
}
EXPORT_SYMBOL_GPL(xrds_conn_fill_hello);

/* ----------------------------------------------------------------- idle */

/**
 * xrds_conn_netns_unused - has nobody any use for a namespace's connections?
 * @xn: namespace
 *
 * Connections of a transport may hold a reference on their namespace, so one
 * other than the first must lose them when its last socket is closed, for its
 * end to be possible at all. The first one has no end.
 *
 * Context: any.
 * Return: whether it is so.
 */
bool xrds_conn_netns_unused(const struct xrds_net *xn)
{
	return !net_eq(xn->net, &init_net) && list_empty_careful(&xn->socks);
}
EXPORT_SYMBOL_GPL(xrds_conn_netns_unused);

/**
 * xrds_conn_init - module init
 * @works: the works of a connection
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int xrds_conn_init(const struct xrds_conn_works *works)
{
	xrds_conn_works = *works;
	/* Not for reclaim: rdma_cm flushes work queues that are not either. As many
	 * as possible may wait for a device that fails.
	 */
	xrds_conn_wq = alloc_workqueue("xrds", WQ_UNBOUND,
				       WQ_UNBOUND_MAX_ACTIVE);
	return xrds_conn_wq ? 0 : -ENOMEM;
}

/**
 * xrds_conn_exit - module exit
 *
 * Context: process, no connection exists.
 */
void xrds_conn_exit(void)
{
	destroy_workqueue(xrds_conn_wq);
}

/**
 * xrds_conn_deadline - a deadline for xrds_fsm_set()
 * @ms: in so many milliseconds
 *
 * Context: any.
 * Return: jiffies, not 0.
 */
unsigned long xrds_conn_deadline(unsigned int ms)
{
	/* 0 means none */
	return (jiffies + msecs_to_jiffies(ms)) ?: 1;
}
