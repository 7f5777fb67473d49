// SPDX-License-Identifier: GPL-2.0-only
/*
 * Congestion: receivers that are full stop their senders, port by port.
 *
 * Local side. A socket over its receive limit is congested until half of it
 * is drained. Connections that end at the socket's address are marked with
 * the port, and the pump tells the peer. What is told is the state at that
 * moment, not the transition, so updates can be merged, repeated and resent
 * without harm. Too many marks become one complete list, sent by the worker.
 *
 * Remote side. A connection remembers the congested ports of its peer. The
 * memory is as old as the endpoint: a new endpoint starts with none, and the
 * peer tells all it has after the clear-to-send. So a lost update cannot keep
 * a sender stopped. Updates are applied by the worker, as noting a port takes
 * memory.
 *
 * Senders that were refused wait on their connection's list; an update that
 * clears their port, or the end of the endpoint, wakes them and nobody else.
 * Over loopback there is nothing to tell: the receiving socket is looked at.
 *
 * A waiting destination is referenced by the list it is on, that of
 * flow->cong_conn. Joining and leaving need both conn->lock and xs->lock, as
 * a connection that has died may still hold a destination which uses the next
 * one already. The list does not keep its connection: who takes waiters off it,
 * to wake them, has a reference until the last one is woken, so that the
 * connection of a waiting destination can always be taken hold of.
 */
#include "conn/conn.h"
#include "msg.h"
#include "tracepoints.h"
#include "transport.h"
#include "xrds.h"

enum {
	/* updates that may wait for the worker; more is an attack */
	XRDS_CONG_MAX_RX	= 256,
	/* updates that the worker applies before it looks at events again */
	XRDS_CONG_BATCH		= 4,
};

/**
 * xrds_cong_blocked - does the peer refuse messages to a port?
 * @conn: connection
 * @port: destination port
 *
 * Context: any.
 * Return: whether it does.
 */
bool xrds_cong_blocked(struct xrds_conn *conn, u16 port)
{
	/* Mostly no port is congested. A port is noted before the next message
	 * to it is sent, and struck out before its waiters are woken.
	 */
	if (conn->key.loop)
		return !list_empty(&conn->xn->cong_ports) &&
		       xrds_bind_congested(conn->xn, &conn->key.faddr,
					   conn->key.scope, port);
	return !xa_empty(&conn->cong) && xa_load(&conn->cong, port);
}

/**
 * xrds_cong_wait - be told when a destination is no longer congested
 * @conn: its connection
 * @flow: flow that was refused
 *
 * Context: process.
 * Return: false when it is not congested any more.
 */
bool xrds_cong_wait(struct xrds_conn *conn, struct xrds_flow *flow)
{
	bool wait;

	/* Who clears a port does so before it takes conn->lock to look for
	 * waiters: either we see it clear, or we are found. On the list of a
	 * connection that has died we are found by its end.
	 */
	spin_lock_bh(&conn->lock);
	wait = conn->state != XRDS_ST_DEAD &&
	       xrds_cong_blocked(conn, flow->port);
	spin_lock(flow->lock);
	if (wait && !flow->cong_conn) {
		xrds_flow_get(flow);
		flow->cong_conn = conn;
		list_add_tail(&flow->cong_node, &conn->cong_waiters);
	}
	spin_unlock(flow->lock);
	spin_unlock_bh(&conn->lock);
	return wait;
}

/**
 * xrds_cong_unwait - stop waiting
 * @flow: flow; the caller has a reference of its own
 *
 * Context: any, without L3 or L4.
 */
void xrds_cong_unwait(struct xrds_flow *flow)
{
	struct xrds_conn *conn;
	bool waited = false;

	/* it has its table's reference while we are on its list, and later that
	 * of who is about to wake us
	 */
	spin_lock_bh(flow->lock);
	conn = flow->cong_conn;
	if (conn)
		xrds_conn_get(conn);
	spin_unlock_bh(flow->lock);
	if (!conn)
		return;

	spin_lock_bh(&conn->lock);
	spin_lock(flow->lock);
	if (flow->cong_conn == conn) {
		list_del_init(&flow->cong_node);
		flow->cong_conn = NULL;
		waited = true;
	}
	spin_unlock(flow->lock);
	spin_unlock_bh(&conn->lock);

	if (waited)
		xrds_flow_put(flow);
	xrds_conn_put(conn);
}

/* Wake the waiters whose port is clear, or all of them. The caller has a
 * reference: with the list empty nobody else need have one.
 */
static void xrds_cong_wake(struct xrds_conn *conn, bool all)
{
	struct xrds_flow *flow, *tmp;
	LIST_HEAD(woken);

	spin_lock_bh(&conn->lock);
	list_for_each_entry_safe(flow, tmp, &conn->cong_waiters, cong_node)
		if (all || !xrds_cong_blocked(conn, flow->port))
			list_move_tail(&flow->cong_node, &woken);
	/* their references are dropped without the lock: one by one */
	while (!list_empty(&woken)) {
		flow = list_first_entry(&woken, struct xrds_flow, cong_node);
		xrds_space_uncongested(flow, true);
		spin_unlock_bh(&conn->lock);
		xrds_flow_put(flow);
		spin_lock_bh(&conn->lock);
	}
	spin_unlock_bh(&conn->lock);
}

/* --------------------------------------------------------- local side */

/* Note that the state of a port must be told; who sends is told elsewhere. */
static void xrds_cong_mark(struct xrds_conn *conn, u16 port)
{
	unsigned int i;

	spin_lock_bh(&conn->lock);
	for (i = 0; i < conn->cong_nr; i++)
		if (conn->cong_ports[i] == port)
			goto out;
	if (conn->cong_full)
		goto out;
	if (conn->cong_nr < XRDS_CONG_PENDING && !conn->legacy.on) {
		conn->cong_ports[conn->cong_nr++] = port;
	} else {
		conn->cong_nr = 0;
		conn->cong_full = true;
	}
out:
	spin_unlock_bh(&conn->lock);
}

/* Wake who waits for a socket over loopback. Without a reference left the
 * connection has woken everybody at its end.
 */
static void xrds_cong_wake_local(struct xrds_conn *conn)
{
	if (!refcount_inc_not_zero(&conn->ref))
		return;
	trace_xrds_ref_get("conn", conn, refcount_read(&conn->ref), _RET_IP_);
	xrds_cong_wake(conn, false);
	xrds_conn_put(conn);
}

/**
 * xrds_cong_local - a socket has become congested, or is so no longer
 * @port: its port
 * @congested: which; a hint only, port->congested is what counts
 *
 * Context: any, without L3, L4, L5.
 */
void xrds_cong_local(struct xrds_port *port, bool congested)
{
	const struct xrds_bind_key *bind = port->bind;
	struct xrds_net *xn = port->xn;
	struct xrds_conn *conn;

	trace_xrds_cong_local(&bind->addr, bind->port, congested);
	/* calls may overtake each other: the last one sees the last state */
	spin_lock_bh(&xn->cong_lock);
	if (!READ_ONCE(port->congested))
		list_del_init(&port->node);
	else if (list_empty(&port->node))
		list_add_tail(&port->node, &xn->cong_ports);
	spin_unlock_bh(&xn->cong_lock);

	rcu_read_lock();
	list_for_each_entry_rcu(conn, &xn->conn_list, list) {
		const struct in6_addr *local = conn->key.loop ?
			&conn->key.faddr : &conn->key.laddr;

		if (conn->key.scope != bind->scope ||
		    !ipv6_addr_equal(local, &bind->addr))
			continue;
		if (!conn->key.loop) {
			xrds_count(xn, XRDS_C_CONG_UPDATE_QUEUED);
			xrds_cong_mark(conn, bind->port);
			if (READ_ONCE(conn->state) == XRDS_ST_UP)
				xrds_conn_event(conn, XRDS_EV_WANT);
		} else if (!congested) {
			xrds_cong_wake_local(conn);
		}
	}
	rcu_read_unlock();
}

/**
 * xrds_cong_xmit - tell the peer about the ports that changed
 * @conn: connection
 *
 * Context: the pump, tx_lock held.
 * Return: 0, or what the transport's xmit_ctl() returned.
 */
int xrds_cong_xmit(struct xrds_conn *conn)
{
	u8 buf[XRDS_CTL_INLINE_BYTES];
	u16 ports[XRDS_CONG_PENDING];
	unsigned int i, nr;
	int ret;

	lockdep_assert_held(&conn->tx_lock);
	BUILD_BUG_ON(sizeof(buf) < 4 + 4 * XRDS_CONG_PENDING);

	if (likely(!READ_ONCE(conn->cong_nr)) || conn->key.loop)
		return 0;

	spin_lock(&conn->lock);
	nr = conn->cong_nr;
	memcpy(ports, conn->cong_ports, nr * sizeof(ports[0]));
	conn->cong_nr = 0;
	spin_unlock(&conn->lock);

	xrds_wire_cong_begin(buf, 0, nr);
	for (i = 0; i < nr; i++)
		xrds_wire_cong_put(buf, i, ports[i],
				   xrds_bind_congested(conn->xn,
						       &conn->key.laddr,
						       conn->key.scope,
						       ports[i]));
	ret = conn->trans->xmit_ctl(conn, XRDS_CTL_CONG, buf,
				    xrds_wire_cong_bytes(nr));
	/* the transport pumps again once it can take it */
	if (ret)
		for (i = 0; i < nr; i++)
			xrds_cong_mark(conn, ports[i]);
	return ret;
}

/* A message with room for all our congested ports. */
static struct xrds_msg *xrds_cong_full_alloc(struct xrds_net *xn)
{
	struct xrds_msg *msg;
	struct page *page;

	/* a list of 512 ports, or the map: two pages hold either */
	page = alloc_pages(GFP_KERNEL | __GFP_COMP | __GFP_ZERO,
			   get_order(XRDS_WIRE_CONG_MAP_BYTES));
	if (!page)
		return NULL;
	msg = xrds_msg_alloc(xn, 1, GFP_KERNEL);
	if (!msg) {
		put_page(page);
		return NULL;
	}
	msg->bv[0].bv_page = page;
	msg->bv[0].bv_offset = 0;
	msg->nr_bv = 1;
	return msg;
}

/* No change may be sent between this and what hands it to the transport. */
static void xrds_cong_full_fill(struct xrds_conn *conn, struct xrds_msg *msg)
{
	u8 *buf = page_address(msg->bv[0].bv_page);
	bool legacy = conn->legacy.on;
	struct xrds_net *xn = conn->xn;
	struct xrds_port *port;
	unsigned int n = 0;

	lockdep_assert_held(&conn->tx_lock);

	msg->flags = legacy ? XRDS_F_CONG_BITMAP : XRDS_F_CONTROL;

	spin_lock_bh(&xn->cong_lock);
	list_for_each_entry(port, &xn->cong_ports, node)
		if (ipv6_addr_equal(&port->bind->addr, &conn->key.laddr) &&
		    port->bind->scope == conn->key.scope)
			n++;
	msg->dport = legacy || n > XRDS_WIRE_CONG_MAX_ENTRIES ?
		     XRDS_CTL_CONG_MAP : XRDS_CTL_CONG;
	if (msg->dport == XRDS_CTL_CONG)
		xrds_wire_cong_begin(buf, 1, n);
	n = 0;
	list_for_each_entry(port, &xn->cong_ports, node) {
		if (!ipv6_addr_equal(&port->bind->addr, &conn->key.laddr) ||
		    port->bind->scope != conn->key.scope)
			continue;
		if (msg->dport == XRDS_CTL_CONG)
			xrds_wire_cong_put(buf, n++, port->bind->port, 1);
		else
			xrds_wire_map_set(buf, port->bind->port);
	}
	spin_unlock_bh(&xn->cong_lock);

	msg->len = msg->dport == XRDS_CTL_CONG ? xrds_wire_cong_bytes(n) :
						 XRDS_WIRE_CONG_MAP_BYTES;
	msg->bv[0].bv_len = msg->len;
	if (legacy)
		msg->dport = 0;
}

/**
 * xrds_cong_told - has the peer been told of a port that is congested?
 * @conn: connection
 *
 * Context: process.
 * Return: whether it has, or will be: then it may have sockets that wait.
 */
bool xrds_cong_told(struct xrds_conn *conn)
{
	struct xrds_net *xn = conn->xn;
	struct xrds_port *port;
	bool told = false;

	spin_lock_bh(&xn->cong_lock);
	list_for_each_entry(port, &xn->cong_ports, node)
		told |= ipv6_addr_equal(&port->bind->addr, &conn->key.laddr) &&
			port->bind->scope == conn->key.scope;
	spin_unlock_bh(&xn->cong_lock);
	return told;
}

/* Returns whether a message with all our congested ports is to be sent. */
static bool xrds_cong_send_full(struct xrds_conn *conn)
{
	struct xrds_msg *msg, *old;
	bool due;

	spin_lock_bh(&conn->lock);
	due = conn->cong_full && conn->state == XRDS_ST_UP;
	spin_unlock_bh(&conn->lock);
	if (!due)
		return false;

	msg = xrds_cong_full_alloc(conn->xn);
	if (!msg) {
		/* the peer must not go without: start over with a new one */
		xrds_conn_ep_event(conn, conn->ep_gen, XRDS_EV_ERROR, -ENOMEM);
		return false;
	}
	spin_lock_bh(&conn->tx_lock);
	/* From here on changes are marked again. They need tx_lock to be sent,
	 * so the peer hears of them after this, which may be older.
	 */
	spin_lock(&conn->lock);
	conn->cong_full = false;
	spin_unlock(&conn->lock);
	xrds_cong_full_fill(conn, msg);
	old = conn->ctl_msg;
	conn->ctl_msg = msg;
	spin_unlock_bh(&conn->tx_lock);
	if (old)
		xrds_msg_put(old);
	return true;
}

/**
 * xrds_cong_open - the connection is up: the peer must know our state
 * @conn: connection
 *
 * Context: the connection's work.
 */
void xrds_cong_open(struct xrds_conn *conn)
{
	struct xrds_net *xn = conn->xn;
	bool any;

	spin_lock_bh(&xn->cong_lock);
	any = !list_empty(&xn->cong_ports);
	spin_unlock_bh(&xn->cong_lock);
	if (!any || conn->key.loop)
		return;

	spin_lock_bh(&conn->lock);
	conn->cong_nr = 0;
	conn->cong_full = true;
	spin_unlock_bh(&conn->lock);
}

/**
 * xrds_cong_close - the endpoint is gone, and the peer's state with it
 * @conn: connection
 *
 * Context: the connection's work; nothing is received any more.
 */
void xrds_cong_close(struct xrds_conn *conn)
{
	skb_queue_purge(&conn->cong_rx);
	xa_destroy(&conn->cong);
	spin_lock_bh(&conn->lock);
	conn->cong_nr = 0;
	conn->cong_full = false;
	spin_unlock_bh(&conn->lock);
	xrds_cong_wake(conn, true);
}

/* -------------------------------------------------------- remote side */

/**
 * xrds_cong_recv - an update has arrived
 * @conn: connection
 * @type: XRDS_CTL_CONG or XRDS_CTL_CONG_MAP
 * @skb: its payload; consumed
 *
 * Context: the receive path.
 */
void xrds_cong_recv(struct xrds_conn *conn, enum xrds_ctl_type type,
		    struct sk_buff *skb)
{
	xrds_count(conn->xn, XRDS_C_CONG_UPDATE_RECEIVED);
	/* it replaces what was told before */
	if (type == XRDS_CTL_CONG_MAP)
		skb_queue_purge(&conn->cong_rx);
	if (skb_queue_len_lockless(&conn->cong_rx) >= XRDS_CONG_MAX_RX) {
		kfree_skb(skb);
		xrds_conn_wire_error(conn, READ_ONCE(conn->ep_gen),
				     XRDS_WIRE_CONG);
		return;
	}
	xrds_skb(skb)->sport = type;
	skb_queue_tail(&conn->cong_rx, skb);
	xrds_conn_event(conn, XRDS_EV_WANT);
}
EXPORT_SYMBOL_GPL(xrds_cong_recv);

static int xrds_cong_set(struct xrds_conn *conn, u16 port, bool congested)
{
	trace_xrds_cong_peer(&conn->key.faddr, port, congested);
	if (!congested) {
		xa_erase(&conn->cong, port);
		return 0;
	}
	return xa_err(xa_store(&conn->cong, port, xa_mk_value(1), GFP_KERNEL));
}

static int xrds_cong_apply_list(struct xrds_conn *conn,
				const struct sk_buff *skb)
{
	struct xrds_wire_cong cong;
	u8 congested;
	int ret = 0;
	u16 i, port;

	if (xrds_wire_cong_decode(&cong, skb->data, skb->len))
		return -EPROTO;
	if (cong.full)
		xa_destroy(&conn->cong);
	for (i = 0; i < cong.count && !ret; i++) {
		xrds_wire_cong_entry(&cong, i, &port, &congested);
		ret = xrds_cong_set(conn, port, congested);
	}
	return ret;
}

static int xrds_cong_apply_map(struct xrds_conn *conn,
			       const struct sk_buff *skb)
{
	u32 port;
	int ret = 0;

	if (skb->len != XRDS_WIRE_CONG_MAP_BYTES)
		return -EPROTO;
	xa_destroy(&conn->cong);
	for (port = 0; port < XRDS_WIRE_CONG_PORTS && !ret; port++)
		if (xrds_wire_map_test(skb->data, port))
			ret = xrds_cong_set(conn, port, true);
	return ret;
}

static int xrds_cong_apply(struct xrds_conn *conn, struct sk_buff *skb)
{
	int ret = skb_linearize(skb);

	if (ret)
		return ret;
	return xrds_skb(skb)->sport == XRDS_CTL_CONG_MAP ?
	       xrds_cong_apply_map(conn, skb) :
	       xrds_cong_apply_list(conn, skb);
}

/**
 * xrds_cong_work - the worker's share
 * @conn: connection
 *
 * A peer may send updates as fast as they are applied. So the worker comes back
 * for more of them, and sees in between whether the connection is to end.
 *
 * Context: the connection's work.
 * Return: whether there is something to post.
 */
bool xrds_cong_work(struct xrds_conn *conn)
{
	int batch = XRDS_CONG_BATCH;
	bool changed = false;
	struct sk_buff *skb;
	int ret;

	while (batch-- && (skb = skb_dequeue(&conn->cong_rx))) {
		ret = xrds_cong_apply(conn, skb);
		kfree_skb(skb);
		changed = true;
		if (ret == -EPROTO)
			xrds_conn_wire_error(conn, conn->ep_gen,
					     XRDS_WIRE_CONG);
		else if (ret)
			xrds_conn_ep_event(conn, conn->ep_gen, XRDS_EV_ERROR,
					   ret);
	}
	if (changed)
		xrds_cong_wake(conn, false);
	if (!skb_queue_empty(&conn->cong_rx))
		xrds_conn_event(conn, XRDS_EV_WANT);
	return xrds_cong_send_full(conn);
}
