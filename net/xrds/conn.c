// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections: one between two nodes (for each type of service and lane),
 * whoever talks over it.
 *
 * A connection is made by the first message toward a node or by the node's
 * request, is found through one table per namespace, and outlives the
 * endpoints that the transport makes for it: an endpoint is one life of a QP,
 * thrown away at the first error. Messages, sequence numbers and back-off
 * belong to the connection.
 *
 * One work item owns the state. Everybody else records an event, a bit in
 * conn->events, and queues the work; the table below says what each event
 * means in each state. Events of an endpoint carry its generation, so that
 * those of one that is gone are ignored. Deadlines (attempt, back-off) are the
 * same work item, delayed.
 *
 * Crossed requests. When both sides dial, the attempt of the lower address
 * wins, and the other side takes that. A request of the peer which meets a
 * connection that is already up either crossed the attempt that led to it, or
 * means that the peer has lost the connection and dials anew; the epoch in the
 * request tells them apart.
 *
 * Removal: make_dead (the worker has stopped the endpoint, drops what is
 * queued, takes the connection out of the table, and sets DEAD, after which
 * no event queues the work), then the table's reference is dropped, then the
 * last user's, and the memory goes after a grace period.
 */
#include <linux/random.h>

#include "xrds.h"

enum {
	/* a connection that lasted this long reconnects without delay */
	XRDS_CONN_STABLE_MS	= 1000,
	/* how long unload waits for closed sockets' messages to be taken */
	XRDS_CONN_FLUSH_MS	= 2000,
};

static struct workqueue_struct *xrds_conn_wq;

static const struct rhashtable_params xrds_conn_params = {
	.key_len	= sizeof(struct xrds_conn_key),
	.key_offset	= offsetof(struct xrds_conn, key),
	.head_offset	= offsetof(struct xrds_conn, node),
	.automatic_shrinking = true,
};

/* What an event does. KEEP leaves it pending until the state changes. */
enum xrds_action {
	XRDS_DO_NOTHING,
	XRDS_DO_KEEP,
	XRDS_DO_DIAL,		/* start an attempt unless backing off */
	XRDS_DO_REDIAL,		/* back-off is over: start if wanted */
	XRDS_DO_ADVANCE,	/* next step of resolving */
	XRDS_DO_ACCEPT,		/* take the peer's request */
	XRDS_DO_REPLACE,	/* drop our endpoint, take the request */
	XRDS_DO_CROSS,		/* lower address wins */
	XRDS_DO_RENEW,		/* crossed, or a new attempt? */
	XRDS_DO_START,		/* post receives, send clear-to-send */
	XRDS_DO_START_EARLY,	/* the same; the CTS came before the CM */
	XRDS_DO_OPEN,		/* data may flow */
	XRDS_DO_PUMP,		/* post what is queued */
	XRDS_DO_FAIL,		/* drop the endpoint; try again if wanted */
	XRDS_DO_EXPIRE,		/* the same for want of an answer */
	XRDS_DO_END,		/* the peer ended it in order */
	XRDS_DO_KILL,		/* for good */
};

#define DO(x) XRDS_DO_##x

static const u8 xrds_conn_table[XRDS_ST_NR][XRDS_EV_NR] = {
	[XRDS_ST_DOWN] = {
		[XRDS_EV_DESTROY]	= DO(KILL),
		[XRDS_EV_REMOVED]	= DO(NOTHING),
		[XRDS_EV_ERROR]		= DO(NOTHING),
		[XRDS_EV_REQUEST]	= DO(ACCEPT),
		[XRDS_EV_RESOLVED]	= DO(NOTHING),
		[XRDS_EV_ESTABLISHED]	= DO(NOTHING),
		[XRDS_EV_CTS]		= DO(NOTHING),
		[XRDS_EV_BYE]		= DO(NOTHING),
		[XRDS_EV_BYE_ACK]	= DO(NOTHING),
		[XRDS_EV_IDLE]		= DO(NOTHING),
		[XRDS_EV_WANT]		= DO(DIAL),
		[XRDS_EV_TIMEOUT]	= DO(REDIAL),
	},
	[XRDS_ST_RESOLVING] = {
		[XRDS_EV_DESTROY]	= DO(KILL),
		[XRDS_EV_REMOVED]	= DO(FAIL),
		[XRDS_EV_ERROR]		= DO(FAIL),
		[XRDS_EV_REQUEST]	= DO(REPLACE),
		[XRDS_EV_RESOLVED]	= DO(ADVANCE),
		[XRDS_EV_ESTABLISHED]	= DO(NOTHING),
		[XRDS_EV_CTS]		= DO(NOTHING),
		[XRDS_EV_BYE]		= DO(NOTHING),
		[XRDS_EV_BYE_ACK]	= DO(NOTHING),
		[XRDS_EV_IDLE]		= DO(NOTHING),
		[XRDS_EV_WANT]		= DO(NOTHING),
		[XRDS_EV_TIMEOUT]	= DO(EXPIRE),
	},
	[XRDS_ST_CONNECTING] = {
		[XRDS_EV_DESTROY]	= DO(KILL),
		[XRDS_EV_REMOVED]	= DO(FAIL),
		[XRDS_EV_ERROR]		= DO(FAIL),
		[XRDS_EV_REQUEST]	= DO(CROSS),
		[XRDS_EV_RESOLVED]	= DO(NOTHING),
		[XRDS_EV_ESTABLISHED]	= DO(START),
		[XRDS_EV_CTS]		= DO(START_EARLY),
		[XRDS_EV_BYE]		= DO(KEEP),
		[XRDS_EV_BYE_ACK]	= DO(NOTHING),
		[XRDS_EV_IDLE]		= DO(NOTHING),
		[XRDS_EV_WANT]		= DO(NOTHING),
		[XRDS_EV_TIMEOUT]	= DO(EXPIRE),
	},
	[XRDS_ST_WAIT_CTS] = {
		[XRDS_EV_DESTROY]	= DO(KILL),
		[XRDS_EV_REMOVED]	= DO(FAIL),
		[XRDS_EV_ERROR]		= DO(FAIL),
		[XRDS_EV_REQUEST]	= DO(RENEW),
		[XRDS_EV_RESOLVED]	= DO(NOTHING),
		[XRDS_EV_ESTABLISHED]	= DO(NOTHING),
		[XRDS_EV_CTS]		= DO(OPEN),
		[XRDS_EV_BYE]		= DO(KEEP),
		[XRDS_EV_BYE_ACK]	= DO(NOTHING),
		[XRDS_EV_IDLE]		= DO(NOTHING),
		[XRDS_EV_WANT]		= DO(NOTHING),
		[XRDS_EV_TIMEOUT]	= DO(EXPIRE),
	},
	[XRDS_ST_UP] = {
		[XRDS_EV_DESTROY]	= DO(KILL),
		[XRDS_EV_REMOVED]	= DO(FAIL),
		[XRDS_EV_ERROR]		= DO(FAIL),
		[XRDS_EV_REQUEST]	= DO(RENEW),
		[XRDS_EV_RESOLVED]	= DO(NOTHING),
		[XRDS_EV_ESTABLISHED]	= DO(NOTHING),
		[XRDS_EV_CTS]		= DO(NOTHING),
		[XRDS_EV_BYE]		= DO(END),
		[XRDS_EV_BYE_ACK]	= DO(NOTHING),
		[XRDS_EV_IDLE]		= DO(NOTHING),
		[XRDS_EV_WANT]		= DO(PUMP),
		[XRDS_EV_TIMEOUT]	= DO(NOTHING),
	},
	[XRDS_ST_CLOSING] = {
		[XRDS_EV_DESTROY]	= DO(KILL),
		[XRDS_EV_REMOVED]	= DO(FAIL),
		[XRDS_EV_ERROR]		= DO(FAIL),
		[XRDS_EV_REQUEST]	= DO(REPLACE),
		[XRDS_EV_RESOLVED]	= DO(NOTHING),
		[XRDS_EV_ESTABLISHED]	= DO(NOTHING),
		[XRDS_EV_CTS]		= DO(NOTHING),
		[XRDS_EV_BYE]		= DO(END),
		[XRDS_EV_BYE_ACK]	= DO(END),
		[XRDS_EV_IDLE]		= DO(NOTHING),
		[XRDS_EV_WANT]		= DO(KEEP),
		[XRDS_EV_TIMEOUT]	= DO(EXPIRE),
	},
};

#undef DO

/* in the order of enum xrds_state */
static const char * const xrds_state_names[] = {
#define X(sym, text) text
#include "list_states.h"
#undef X
};

static_assert(ARRAY_SIZE(xrds_state_names) == XRDS_ST_NR);

/**
 * xrds_state_name - the name of a state in dumps and log lines
 * @state: state
 *
 * Context: any.
 * Return: the name.
 */
const char *xrds_state_name(enum xrds_state state)
{
	return state < XRDS_ST_NR ? xrds_state_names[state] : "?";
}

/* The events that only the endpoint of that moment gives meaning to. */
#define XRDS_EP_EVENTS	(BIT(XRDS_EV_REMOVED) | BIT(XRDS_EV_ERROR) | \
			 BIT(XRDS_EV_RESOLVED) | BIT(XRDS_EV_ESTABLISHED) | \
			 BIT(XRDS_EV_CTS) | BIT(XRDS_EV_BYE) | \
			 BIT(XRDS_EV_BYE_ACK))

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
}
EXPORT_SYMBOL_GPL(xrds_conn_get);

static void xrds_conn_free(struct rcu_head *rcu)
{
	struct xrds_conn *conn = container_of(rcu, struct xrds_conn, rcu);
	struct xrds_net *xn = conn->xn;

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
	/* the worker has emptied every queue before it dropped the table's */
	if (refcount_dec_and_test(&conn->ref))
		call_rcu(&conn->rcu, xrds_conn_free);
}
EXPORT_SYMBOL_GPL(xrds_conn_put);

static void xrds_conn_work(struct work_struct *work);

static struct xrds_conn *xrds_conn_alloc(struct xrds_net *xn,
					 const struct xrds_conn_key *key,
					 const struct xrds_transport *trans,
					 gfp_t gfp)
{
	struct xrds_conn *conn;

	conn = kzalloc(sizeof(*conn), gfp);
	if (!conn)
		return NULL;

	conn->key = *key;
	conn->xn = xn;
	conn->trans = trans;
	/* the table's reference and the caller's */
	refcount_set(&conn->ref, 2);
	INIT_LIST_HEAD(&conn->list);
	INIT_DELAYED_WORK(&conn->work, xrds_conn_work);
	INIT_DELAYED_WORK(&conn->ack_work, xrds_recv_ack_work);
	spin_lock_init(&conn->tx_lock);
	spin_lock_init(&conn->lock);
	INIT_LIST_HEAD(&conn->sendq);
	INIT_LIST_HEAD(&conn->inflight);
	INIT_LIST_HEAD(&conn->cong_waiters);
	skb_queue_head_init(&conn->cong_rx);
	xa_init(&conn->cong);
	conn->state = XRDS_ST_DOWN;
	conn->ep_gen = 1;
	conn->rx_next = 1;
	conn->epoch = get_random_u32();
	do {
		conn->inc = get_random_u64();
	} while (!conn->inc);
	atomic_inc(&xn->nr_conns);
	return conn;
}

/**
 * xrds_conn_get_for - find or make a connection
 * @xn: namespace
 * @key: which
 * @trans: transport of a new one
 * @gfp: allocation flags
 *
 * Context: as @gfp says.
 * Return: the connection with a reference, or ERR_PTR(): -ENOMEM, -ENETDOWN
 * when the namespace is going away.
 */
struct xrds_conn *xrds_conn_get_for(struct xrds_net *xn,
				    const struct xrds_conn_key *key,
				    const struct xrds_transport *trans,
				    gfp_t gfp)
{
	struct xrds_conn *conn, *old;

	rcu_read_lock();
	conn = rhashtable_lookup(&xn->conns, key, xrds_conn_params);
	if (conn && !refcount_inc_not_zero(&conn->ref))
		conn = NULL;
	rcu_read_unlock();
	if (conn)
		return conn;

	conn = xrds_conn_alloc(xn, key, trans, gfp);
	if (!conn)
		return ERR_PTR(-ENOMEM);

	/* xn->lock orders us with xrds_conn_destroy_all() */
	spin_lock_bh(&xn->lock);
	if (xn->exiting) {
		old = ERR_PTR(-ENETDOWN);
		goto out;
	}
	rcu_read_lock();
	old = rhashtable_lookup_get_insert_fast(&xn->conns, &conn->node,
						xrds_conn_params);
	if (!old)
		list_add_tail_rcu(&conn->list, &xn->conn_list);
	else if (!IS_ERR(old) && !refcount_inc_not_zero(&old->ref))
		old = ERR_PTR(-ENOMEM);
	rcu_read_unlock();
out:
	spin_unlock_bh(&xn->lock);
	if (!old)
		return conn;

	xrds_conn_put(conn);
	xrds_conn_put(conn);
	return old;
}
EXPORT_SYMBOL_GPL(xrds_conn_get_for);

/* --------------------------------------------------------------- events */

static void __xrds_conn_event(struct xrds_conn *conn, enum xrds_event ev)
{
	lockdep_assert_held(&conn->lock);

	/* make_dead sets DEAD under the lock: no work is queued after it */
	if (conn->state == XRDS_ST_DEAD)
		return;
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
	xrds_count(conn->xn, XRDS_C_WIRE + err);
	net_warn_ratelimited("xrds: %pI6c: dropping the connection: %s\n",
			     &conn->key.faddr, xrds_wire_strerror(err));
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
 * xrds_conn_delay_ack - send an acknowledgment later
 * @conn: connection with an endpoint
 * @ms: how much later, milliseconds
 *
 * Context: the receive path; the worker cancels it after that has ended.
 */
void xrds_conn_delay_ack(struct xrds_conn *conn, unsigned int ms)
{
	queue_delayed_work(xrds_conn_wq, &conn->ack_work,
			   msecs_to_jiffies(ms));
}

/**
 * xrds_conn_fill_hello - what we tell the peer about this connection
 * @conn: connection
 * @hello: result; the transport adds what is its own
 *
 * Context: the connection's work; no receive path is running.
 */
void xrds_conn_fill_hello(struct xrds_conn *conn,
			  struct xrds_wire_hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	hello->revision = XRDS_HELLO_REVISION;
	hello->lane = conn->key.lane;
	hello->epoch = conn->epoch;
	hello->inc = conn->inc;
	hello->peer_inc = conn->peer_inc;
	hello->ack = conn->rx_next - 1;
}
EXPORT_SYMBOL_GPL(xrds_conn_fill_hello);

/**
 * xrds_conn_hello - the peer's clear-to-send has come
 * @conn: connection
 * @gen: see xrds_conn_ep_event()
 * @hello: its content, valid
 *
 * What concerns receiving takes effect at once, as data may follow before the
 * worker looks: a peer with another incarnation starts from one again.
 *
 * Context: the receive path.
 */
void xrds_conn_hello(struct xrds_conn *conn, u32 gen,
		     const struct xrds_wire_hello *hello)
{
	if (conn->peer_inc != hello->inc) {
		conn->peer_inc = hello->inc;
		WRITE_ONCE(conn->rx_next, 1);
	}
	conn->hello = *hello;
	/* the lock inside makes conn->hello visible before the event */
	xrds_conn_ep_event(conn, gen, XRDS_EV_CTS, 0);
}
EXPORT_SYMBOL_GPL(xrds_conn_hello);

/* --------------------------------------------------------------- worker */

static void xrds_conn_set_state(struct xrds_conn *conn, enum xrds_state state,
				unsigned long deadline)
{
	spin_lock_bh(&conn->lock);
	WRITE_ONCE(conn->state, state);
	conn->deadline = deadline;
	spin_unlock_bh(&conn->lock);
}

static unsigned long xrds_deadline(unsigned int ms)
{
	/* 0 means none */
	return (jiffies + msecs_to_jiffies(ms)) ?: 1;
}

static unsigned long xrds_attempt_deadline(const struct xrds_conn *conn)
{
	return xrds_deadline(READ_ONCE(conn->xn->connect_timeout_ms));
}

/* Take the endpoint away, with everything that it may still announce. */
static void xrds_conn_stop(struct xrds_conn *conn)
{
	xrds_xmit_close(conn);
	conn->trans->stop(conn);
	cancel_delayed_work_sync(&conn->ack_work);
	xrds_cong_close(conn);

	spin_lock_bh(&conn->lock);
	conn->ep_gen++;
	conn->events &= ~XRDS_EP_EVENTS;
	spin_unlock_bh(&conn->lock);
}

/* The delay before the next attempt: none after a connection that lasted,
 * then doubling between the bounds, and a random part of it so that nodes
 * which lost the same switch do not come back in step.
 */
static unsigned int xrds_conn_backoff(struct xrds_conn *conn)
{
	struct xrds_net *xn = conn->xn;
	unsigned int max = READ_ONCE(xn->reconnect_max_ms);
	unsigned int ms = conn->backoff_ms;

	conn->backoff_ms = clamp(ms * 2, READ_ONCE(xn->reconnect_min_ms), max);
	return ms ? ms / 2 + reciprocal_scale(get_random_u32(), ms / 2 + 1) :
		    0;
}

/* To DOWN; a new attempt is due when something is queued. */
static void xrds_conn_down(struct xrds_conn *conn, bool failed)
{
	unsigned int ms = failed ? xrds_conn_backoff(conn) : 0;

	WRITE_ONCE(conn->failed, failed);
	/* A sender queues its message under the lock, and then looks at the
	 * state: either it sees DOWN, or we see the message.
	 */
	spin_lock_bh(&conn->lock);
	WRITE_ONCE(conn->state, XRDS_ST_DOWN);
	if (ms || xrds_xmit_wanted(conn))
		conn->deadline = xrds_deadline(ms);
	else
		conn->deadline = 0;
	spin_unlock_bh(&conn->lock);
	wake_up_all(&conn->xn->gone);
}

static void xrds_conn_fail(struct xrds_conn *conn, int error)
{
	u64 up_ms = 0;

	if (conn->state == XRDS_ST_UP) {
		xrds_count(conn->xn, XRDS_C_CONN_RESET);
		up_ms = div_u64(ktime_get_ns() - conn->connected_ns,
				NSEC_PER_MSEC);
	}
	/* the first failure of a row is worth a line, each retry is not */
	if (!conn->failed && error != -ECONNREFUSED)
		net_info_ratelimited("xrds: %pI6c: connection %s: error %d\n",
				     &conn->key.faddr,
				     xrds_state_name(conn->state), error);
	xrds_conn_stop(conn);
	if (up_ms >= XRDS_CONN_STABLE_MS)
		conn->backoff_ms = 0;
	xrds_conn_down(conn, true);
}

static void xrds_conn_dial(struct xrds_conn *conn)
{
	int ret;

	conn->dialled = true;
	xrds_count(conn->xn, XRDS_C_CONN_DIAL);
	xrds_conn_set_state(conn, XRDS_ST_RESOLVING,
			    xrds_attempt_deadline(conn));
	ret = conn->trans->dial(conn);
	if (ret)
		xrds_conn_fail(conn, ret);
}

static void xrds_conn_redial(struct xrds_conn *conn)
{
	bool wanted;

	spin_lock_bh(&conn->lock);
	conn->deadline = 0;
	wanted = xrds_xmit_wanted(conn);
	spin_unlock_bh(&conn->lock);
	if (wanted)
		xrds_conn_dial(conn);
}

static void xrds_conn_advance(struct xrds_conn *conn)
{
	int ret = conn->trans->advance(conn);

	if (ret == -EINPROGRESS)
		return;
	if (ret)
		xrds_conn_fail(conn, ret);
	else
		xrds_conn_set_state(conn, XRDS_ST_CONNECTING,
				    xrds_attempt_deadline(conn));
}

static void xrds_conn_accept(struct xrds_conn *conn)
{
	int ret;

	/* the peer may have taken it back */
	if (!READ_ONCE(conn->pending))
		return;
	conn->dialled = false;
	xrds_count(conn->xn, XRDS_C_CONN_ACCEPT);
	ret = conn->trans->accept(conn);
	if (ret)
		xrds_conn_fail(conn, ret);
	else
		xrds_conn_set_state(conn, XRDS_ST_CONNECTING,
				    xrds_attempt_deadline(conn));
}

static void xrds_conn_refuse(struct xrds_conn *conn)
{
	struct xrds_request *req = xrds_conn_take_pending(conn);

	if (!req)
		return;
	xrds_count(conn->xn, XRDS_C_CONN_REFUSED);
	conn->trans->refuse(conn, req);
}

static void xrds_conn_replace(struct xrds_conn *conn)
{
	if (!READ_ONCE(conn->pending))
		return;
	if (conn->state == XRDS_ST_UP)
		xrds_count(conn->xn, XRDS_C_CONN_RESET);
	xrds_conn_stop(conn);
	xrds_conn_set_state(conn, XRDS_ST_DOWN, 0);
	xrds_conn_accept(conn);
	/* it may have been taken back, and messages may wait */
	if (conn->state == XRDS_ST_DOWN)
		xrds_conn_down(conn, false);
}

/* Both dialled: the attempt of the lower address goes on. */
static void xrds_conn_cross(struct xrds_conn *conn)
{
	if (!conn->dialled) {
		xrds_conn_replace(conn);
		return;
	}
	xrds_count(conn->xn, XRDS_C_CONN_CROSSED);
	if (ipv6_addr_cmp(&conn->key.laddr, &conn->key.faddr) < 0)
		xrds_conn_refuse(conn);
	else
		xrds_conn_replace(conn);
}

/* A request meets a connection that has been established. If we had dialled
 * it, the request may have crossed ours: then it carries the epoch the peer
 * had before, which its clear-to-send told us. It is refused once; a peer
 * that means it asks again.
 */
static void xrds_conn_renew(struct xrds_conn *conn)
{
	bool crossed = conn->dialled && !conn->crossed;
	struct xrds_request *req;

	spin_lock_bh(&conn->lock);
	req = conn->pending;
	if (req && conn->state == XRDS_ST_UP &&
	    req->epoch != (u8)(conn->hello.epoch - 1))
		crossed = false;
	spin_unlock_bh(&conn->lock);

	if (!crossed) {
		xrds_conn_replace(conn);
		return;
	}
	conn->crossed = true;
	xrds_count(conn->xn, XRDS_C_CONN_CROSSED);
	xrds_conn_refuse(conn);
}

static void xrds_conn_start(struct xrds_conn *conn, bool early)
{
	int ret;

	conn->epoch++;
	conn->crossed = false;
	ret = conn->trans->start(conn);
	if (ret) {
		xrds_conn_fail(conn, ret);
		return;
	}
	xrds_conn_set_state(conn, XRDS_ST_WAIT_CTS,
			    xrds_attempt_deadline(conn));
	if (early)
		xrds_conn_event(conn, XRDS_EV_CTS);
}

static void xrds_conn_open(struct xrds_conn *conn)
{
	int ret;

	ret = xrds_xmit_open(conn, &conn->hello);
	if (ret) {
		xrds_count(conn->xn, XRDS_C_WIRE + XRDS_WIRE_HELLO);
		xrds_conn_fail(conn, ret);
		return;
	}
	xrds_count(conn->xn, XRDS_C_CONN_UP);
	conn->connected_ns = ktime_get_ns();
	WRITE_ONCE(conn->failed, false);
	xrds_conn_set_state(conn, XRDS_ST_UP, 0);
	xrds_cong_open(conn);
	xrds_xmit_pump(conn);
}

/* make_dead, see the head of this file. */
static void xrds_conn_kill(struct xrds_conn *conn)
{
	struct xrds_net *xn = conn->xn;

	xrds_conn_stop(conn);
	xrds_conn_refuse(conn);

	spin_lock_bh(&xn->lock);
	rhashtable_remove_fast(&xn->conns, &conn->node, xrds_conn_params);
	list_del_rcu(&conn->list);
	spin_unlock_bh(&xn->lock);

	spin_lock_bh(&conn->lock);
	WRITE_ONCE(conn->state, XRDS_ST_DEAD);
	spin_unlock_bh(&conn->lock);
	/* an event may have queued us again before; none can any more */
	cancel_delayed_work(&conn->work);

	/* a request that came in between */
	xrds_conn_refuse(conn);
	xrds_xmit_drop_all(conn);
	/* those that came to wait before they could see DEAD */
	xrds_cong_close(conn);
	wake_up_all(&xn->gone);
}

static void xrds_conn_act(struct xrds_conn *conn, enum xrds_action action,
			  int error)
{
	switch (action) {
	case XRDS_DO_NOTHING:
	case XRDS_DO_KEEP:
		break;
	case XRDS_DO_DIAL:
		if (!conn->deadline)
			xrds_conn_dial(conn);
		break;
	case XRDS_DO_REDIAL:
		xrds_conn_redial(conn);
		break;
	case XRDS_DO_ADVANCE:
		xrds_conn_advance(conn);
		break;
	case XRDS_DO_ACCEPT:
		xrds_conn_accept(conn);
		break;
	case XRDS_DO_REPLACE:
		xrds_conn_replace(conn);
		break;
	case XRDS_DO_CROSS:
		xrds_conn_cross(conn);
		break;
	case XRDS_DO_RENEW:
		xrds_conn_renew(conn);
		break;
	case XRDS_DO_START:
		xrds_conn_start(conn, false);
		break;
	case XRDS_DO_START_EARLY:
		xrds_conn_start(conn, true);
		break;
	case XRDS_DO_OPEN:
		xrds_conn_open(conn);
		break;
	case XRDS_DO_PUMP:
		xrds_xmit_pump(conn);
		break;
	case XRDS_DO_FAIL:
		xrds_conn_fail(conn, error);
		break;
	case XRDS_DO_EXPIRE:
		xrds_count(conn->xn, XRDS_C_CONN_TIMEOUT);
		xrds_conn_fail(conn, -ETIMEDOUT);
		break;
	case XRDS_DO_END:
		xrds_conn_stop(conn);
		xrds_conn_down(conn, false);
		break;
	case XRDS_DO_KILL:
		xrds_conn_kill(conn);
		break;
	}
}

/* The next thing to do, or XRDS_DO_NOTHING when no event asks for any. */
static enum xrds_action xrds_conn_next(struct xrds_conn *conn, int *error)
{
	enum xrds_action action = XRDS_DO_NOTHING;
	enum xrds_event ev;

	spin_lock_bh(&conn->lock);
	if (conn->deadline && time_after_eq(jiffies, conn->deadline))
		conn->events |= BIT(XRDS_EV_TIMEOUT);
	for (ev = 0; ev < XRDS_EV_NR; ev++) {
		if (!(conn->events & BIT(ev)))
			continue;
		action = xrds_conn_table[conn->state][ev];
		if (action == XRDS_DO_KEEP) {
			action = XRDS_DO_NOTHING;
			continue;
		}
		conn->events &= ~BIT(ev);
		if (ev == XRDS_EV_TIMEOUT)
			conn->deadline = 0;
		if (action != XRDS_DO_NOTHING)
			break;
	}
	*error = ev == XRDS_EV_ERROR ? conn->error : -ENODEV;
	spin_unlock_bh(&conn->lock);
	return action;
}

static void xrds_conn_arm(struct xrds_conn *conn)
{
	unsigned long now = jiffies;

	spin_lock_bh(&conn->lock);
	/* If the work was queued again meanwhile it stays queued for at once:
	 * mod_delayed_work() would put it off.
	 */
	if (conn->deadline)
		queue_delayed_work(xrds_conn_wq, &conn->work,
				   time_after(conn->deadline, now) ?
				   conn->deadline - now : 0);
	spin_unlock_bh(&conn->lock);
}

static void xrds_conn_work(struct work_struct *work)
{
	struct xrds_conn *conn = container_of(to_delayed_work(work),
					      struct xrds_conn, work);
	enum xrds_action action;
	int error;

	while ((action = xrds_conn_next(conn, &error)) != XRDS_DO_NOTHING) {
		xrds_conn_act(conn, action, error);
		if (conn->state == XRDS_ST_DEAD) {
			/* the table's reference; nothing refers to work */
			xrds_conn_put(conn);
			return;
		}
	}
	xrds_cong_work(conn);
	xrds_conn_arm(conn);
}

/* ------------------------------------------------------------ namespace */

/* Has a connection that is up messages of this transport under way? */
static bool xrds_conns_flushed(struct xrds_net *xn,
			       const struct xrds_transport *trans)
{
	struct xrds_conn *conn;
	bool flushed = true;

	rcu_read_lock();
	list_for_each_entry_rcu(conn, &xn->conn_list, list) {
		if ((trans && conn->trans != trans) ||
		    READ_ONCE(conn->state) != XRDS_ST_UP)
			continue;
		spin_lock_bh(&conn->lock);
		flushed = !xrds_xmit_wanted(conn);
		spin_unlock_bh(&conn->lock);
		if (!flushed)
			break;
	}
	rcu_read_unlock();
	return flushed;
}

static bool xrds_conns_gone(struct xrds_net *xn,
			    const struct xrds_transport *trans)
{
	struct xrds_conn *conn;
	bool gone = true;

	spin_lock_bh(&xn->lock);
	list_for_each_entry(conn, &xn->conn_list, list) {
		if (!trans || conn->trans == trans) {
			gone = false;
			break;
		}
	}
	spin_unlock_bh(&xn->lock);
	return gone;
}

/**
 * xrds_conn_destroy_all - end all connections of a namespace
 * @xn: namespace
 * @trans: only those of this transport, which finds no new ones any more;
 *	NULL: all, and xn->exiting is set
 *
 * What closed sockets have left goes out first where the peer takes it, for
 * a bounded time.
 *
 * Context: process, may sleep.
 */
void xrds_conn_destroy_all(struct xrds_net *xn,
			   const struct xrds_transport *trans)
{
	struct xrds_conn *conn;

	wait_event_timeout(xn->gone, xrds_conns_flushed(xn, trans),
			   msecs_to_jiffies(XRDS_CONN_FLUSH_MS));

	rcu_read_lock();
	list_for_each_entry_rcu(conn, &xn->conn_list, list) {
		if (!trans || conn->trans == trans)
			xrds_conn_event(conn, XRDS_EV_DESTROY);
	}
	rcu_read_unlock();

	/* each worker's waits are bounded, so is this */
	wait_event(xn->gone, xrds_conns_gone(xn, trans));
	/* their workers may still be in the last lines */
	flush_workqueue(xrds_conn_wq);
}
EXPORT_SYMBOL_GPL(xrds_conn_destroy_all);

/**
 * xrds_conn_net_init - make a namespace's connection table
 * @xn: namespace
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int xrds_conn_net_init(struct xrds_net *xn)
{
	INIT_LIST_HEAD(&xn->conn_list);
	return rhashtable_init(&xn->conns, &xrds_conn_params);
}

/**
 * xrds_conn_net_exit - end all connections and free the table
 * @xn: namespace without open sockets
 *
 * Context: process, may sleep.
 */
void xrds_conn_net_exit(struct xrds_net *xn)
{
	spin_lock_bh(&xn->lock);
	xn->exiting = true;
	spin_unlock_bh(&xn->lock);

	xrds_conn_destroy_all(xn, NULL);
	/* messages are gone, so closed sockets go, and with them the rest */
	wait_event(xn->gone,
		   !atomic_read(&xn->nr_conns) && !atomic_read(&xn->nr_socks));
	/* who brought these to zero may not have finished waking us */
	rcu_barrier();
	rhashtable_destroy(&xn->conns);
}

/**
 * xrds_conn_init - module init
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int xrds_conn_init(void)
{
	/* not for reclaim: rdma_cm flushes work queues that are not either */
	xrds_conn_wq = alloc_workqueue("xrds", WQ_UNBOUND, 0);
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
