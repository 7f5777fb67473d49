// SPDX-License-Identifier: GPL-2.0-only
/*
 * Congestion: receivers that are full stop their senders, port by port.
 *
 * Local side. A socket over its receive limit is congested until half of it
 * is drained. Connections that have a link to the port (link.c) are marked with
 * it, and the pump tells the peer. It tells the state at that moment, not the
 * transition, so updates can be merged, repeated and resent without harm. Too
 * many marks become one complete list, sent by the worker. A peer that sends its
 * first message to a port that is congested is told then.
 *
 * Remote side. A connection remembers the congested ports of its peer, and the
 * gates of these ports are shut (gate.c). The memory is as old as the endpoint: a
 * new endpoint starts with none, and the peer tells all it has after the
 * clear-to-send. So a lost update cannot keep a sender stopped. Updates are
 * applied by the worker, as noting a port takes memory. Those that wait for it are
 * bounded, for the connection and for all of a namespace: with more the connection
 * ends, and the peer tells all it has on the next one.
 *
 * A gate that opens lets flows and senders go on (wait.c). Over loopback there is
 * nothing to tell: the receiving socket is looked at, and opens the gates of those
 * that wait for it.
 */
#include <linux/bitmap.h>

#include "conn/conn.h"
#include "msg.h"
#include "tracepoints.h"
#include "transport.h"
#include "xrds.h"

enum {
	/* updates that may wait for the worker */
	XRDS_CONG_MAX_RX	= 256,
	/* Memory of those of a connection, bytes: with less it is not asked how
	 * much all of the namespace have.
	 */
	XRDS_CONG_FREE_RX	= 64 << 10,
	/* updates that the worker applies before it looks at events again */
	XRDS_CONG_BATCH		= 4,
	/* batches of connections that are told in one run of the work */
	XRDS_CONG_LATE		= 64,
};

/* --------------------------------------------------------- local side */

/**
 * xrds_cong_mark - note that the state of a port must be told
 * @conn: connection
 * @port: port of ours
 *
 * The pump tells it. When too many are to be told, the worker does.
 *
 * Context: any, without L3.
 */
void xrds_cong_mark(struct xrds_conn *conn, u16 port)
{
	unsigned int i;
	bool full;

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
	full = conn->cong_full && conn->state == XRDS_ST_UP;
	spin_unlock_bh(&conn->lock);
	if (full)
		xrds_conn_event(conn, XRDS_EV_WANT);
}

static void xrds_cong_tell_nr(struct xrds_conn *conn, u16 port)
{
	xrds_count(conn->xn, XRDS_C_CONG_UPDATE_QUEUED);
	xrds_cong_mark(conn, port);
	if (READ_ONCE(conn->state) == XRDS_ST_UP)
		xrds_conn_event(conn, XRDS_EV_WANT);
}

/**
 * xrds_cong_tell - the peer must be told of a port
 * @conn: connection
 * @port: the port
 *
 * Context: any, without L3, L4, L5.
 */
void xrds_cong_tell(struct xrds_conn *conn, struct xrds_port *port)
{
	xrds_cong_tell_nr(conn, port->bind->port);
}

static void xrds_cong_tell_linked(struct xrds_conn *conn, u16 port)
{
	if (conn->key.loop)
		xrds_wait_open_local(conn, port);
	else
		xrds_cong_tell_nr(conn, port);
}

/* Links are missing: tell all connections of the address. */
static void xrds_cong_tell_all(struct xrds_net *xn,
			       const struct xrds_bind_key *bind)
{
	struct xrds_conn *conn = NULL;

	while ((conn = xrds_conn_net_walk(xn, conn)))
		if (conn->key.scope == bind->scope &&
		    ipv6_addr_equal(xrds_conn_rx_daddr(conn), &bind->addr))
			xrds_cong_tell_linked(conn, bind->port);
}

static void xrds_cong_tell_batch(struct xrds_link_batch *batch)
{
	u32 i;

	for (i = 0; i < batch->nr; i++) {
		/* the mark, or the opening of the gate, comes behind it */
		xrds_link_cleared(batch->conns[i], batch->port);
		xrds_cong_tell_linked(batch->conns[i], batch->bind.port);
		xrds_conn_put(batch->conns[i]);
	}
}

static bool xrds_cong_tell_late(struct xrds_net *xn, struct xrds_link_batch *batch)
{
	bool more;

	/* meanwhile no other socket gets the memory of the port */
	rcu_read_lock();
	more = xrds_link_next_late(xn, batch);
	if (more)
		xrds_cong_tell_batch(batch);
	rcu_read_unlock();
	return more;
}

/**
 * xrds_cong_tell_work - tell more peers of ports that have changed
 * @work: xn->cong_work
 *
 * Context: process.
 */
void xrds_cong_tell_work(struct work_struct *work)
{
	struct xrds_net *xn = container_of(work, struct xrds_net, cong_work);
	struct xrds_link_batch batch;
	u32 n;

	for (n = 0; n < XRDS_CONG_LATE; n++) {
		if (!xrds_cong_tell_late(xn, &batch))
			return;
		if (batch.all)
			xrds_cong_tell_all(xn, &batch.bind);
		cond_resched();
	}
	/* a flush of the queue does not wait for later changes */
	queue_work(xrds_conn_wq, &xn->cong_work);
}

/* Tell the peers to look at a port. */
static void xrds_cong_change(struct xrds_port *port)
{
	struct xrds_link_batch batch;

	xrds_link_change(port);
	if (xrds_link_next(port, &batch))
		queue_work(xrds_conn_wq, &port->xn->cong_work);
	xrds_cong_tell_batch(&batch);
}

/**
 * xrds_cong_unbind - a socket is closed
 * @port: its port, which is not congested any more
 *
 * Context: process.
 */
void xrds_cong_unbind(struct xrds_port *port)
{
	struct xrds_link_batch batch;
	bool more;

	/* from now on a thread that tells others goes on to the end */
	xrds_link_stop(port);
	/* Peers that wait for the port are told before the links go. The thread
	 * that has cleared it may not have come so far.
	 */
	if (!list_empty_careful(&port->node))
		xrds_link_change(port);
	do {
		more = xrds_link_next_all(port, &batch);
		xrds_cong_tell_batch(&batch);
		if (batch.all)
			xrds_cong_tell_all(port->xn, &batch.bind);
		cond_resched();
	} while (more);
	xrds_link_close(port);
}

/**
 * xrds_cong_local_full - a socket has become congested
 * @port: its port; port->congested has changed, and counts
 *
 * Context: any, without L3, L4, L5.
 */
void xrds_cong_local_full(struct xrds_port *port)
{
	trace_xrds_cong_local(&port->bind->addr, port->bind->port, true);
	xrds_cong_change(port);
}

/**
 * xrds_cong_local_clear - a socket is not congested any more
 * @port: its port; port->congested has changed, and counts
 *
 * Context: any, without L3, L4, L5.
 */
void xrds_cong_local_clear(struct xrds_port *port)
{
	trace_xrds_cong_local(&port->bind->addr, port->bind->port, false);
	xrds_cong_change(port);
}

/* What is the peer to be told of a port, if there is one? */
static bool xrds_cong_state(struct xrds_conn *conn, u16 nr)
{
	struct xrds_port *port;
	bool congested;

	rcu_read_lock();
	port = xrds_bind_port(conn->xn, &conn->key.laddr, conn->key.scope, nr);
	congested = port && READ_ONCE(port->congested) &&
		    xrds_link_told(conn, port);
	rcu_read_unlock();
	return congested;
}

/**
 * xrds_cong_xmit - tell the peer about the ports that changed
 * @conn: connection
 *
 * Context: the pump, tx_lock held.
 * Return: 0, or the error of the transport's xmit_ctl().
 */
int xrds_cong_xmit(struct xrds_conn *conn)
{
	u8 buf[XRDS_CTL_INLINE_BYTES];
	u16 ports[XRDS_CONG_PENDING];
	unsigned int i, nr;
	int ret;

	lockdep_assert_held(&conn->tx_lock);
	BUILD_BUG_ON(sizeof(buf) < 4 + 4 * XRDS_CONG_PENDING);

	if (likely(!READ_ONCE(conn->cong_nr)) || conn->key.loop ||
	    conn->cong_filling)
		return 0;

	spin_lock(&conn->lock);
	nr = conn->cong_nr;
	memcpy(ports, conn->cong_ports, nr * sizeof(ports[0]));
	conn->cong_nr = 0;
	spin_unlock(&conn->lock);

	xrds_wire_cong_begin(buf, 0, nr);
	for (i = 0; i < nr; i++)
		xrds_wire_cong_put(buf, i, ports[i],
				   xrds_cong_state(conn, ports[i]));
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

/* Some more of our congested ports. @cursor is on their list, without a bind key, and
 * keeps the place. Returns whether there may be more.
 */
static bool xrds_cong_full_some(struct xrds_conn *conn, struct xrds_msg *msg,
				struct xrds_port *cursor, u32 *nr)
{
	u8 *buf = page_address(msg->bv[0].bv_page);
	struct xrds_net *xn = conn->xn;
	struct xrds_port *port;
	bool more = false;
	u32 n = 0;

	spin_lock_bh(&xn->cong_lock);
	while (!list_is_last(&cursor->node, &xn->cong_ports)) {
		more = n == XRDS_END_BATCH;
		if (more)
			break;
		n++;
		port = list_next_entry(cursor, node);
		list_move(&cursor->node, &port->node);
		if (!port->bind || port->bind->scope != conn->key.scope ||
		    !ipv6_addr_equal(&port->bind->addr, &conn->key.laddr))
			continue;
		if (msg->dport == XRDS_CTL_CONG_MAP)
			xrds_wire_cong_map_set(buf, port->bind->port);
		else if (*nr < XRDS_WIRE_CONG_MAX_ENTRIES)
			xrds_wire_cong_put(buf, *nr, port->bind->port, 1);
		++*nr;
	}
	spin_unlock_bh(&xn->cong_lock);
	xrds_hold_count(XRDS_HOLD_END, n);
	return more;
}

/* All our congested ports, as a map or as a list. Returns how many. */
static u32 xrds_cong_full_walk(struct xrds_conn *conn, struct xrds_msg *msg,
			       enum xrds_ctl_type type)
{
	struct xrds_net *xn = conn->xn;
	struct xrds_port cursor = {};
	u32 nr = 0;

	msg->dport = type;
	spin_lock_bh(&xn->cong_lock);
	list_add(&cursor.node, &xn->cong_ports);
	spin_unlock_bh(&xn->cong_lock);
	while (xrds_cong_full_some(conn, msg, &cursor, &nr))
		cond_resched();
	spin_lock_bh(&xn->cong_lock);
	list_del(&cursor.node);
	spin_unlock_bh(&xn->cong_lock);
	return nr;
}

static void xrds_cong_full_fill(struct xrds_conn *conn, struct xrds_msg *msg)
{
	u8 *buf = page_address(msg->bv[0].bv_page);
	bool list = !conn->legacy.on;
	u32 nr;

	if (list) {
		nr = xrds_cong_full_walk(conn, msg, XRDS_CTL_CONG);
		list = nr <= XRDS_WIRE_CONG_MAX_ENTRIES;
	}
	if (list) {
		xrds_wire_cong_begin(buf, 1, nr);
		msg->len = xrds_wire_cong_bytes(nr);
	} else {
		memset(buf, 0, XRDS_WIRE_CONG_MAP_BYTES);
		nr = xrds_cong_full_walk(conn, msg, XRDS_CTL_CONG_MAP);
		msg->len = XRDS_WIRE_CONG_MAP_BYTES;
	}
	if (nr && conn->legacy.on)
		WRITE_ONCE(conn->legacy.told, true);
	msg->bv[0].bv_len = msg->len;
	msg->flags = conn->legacy.on ? XRDS_F_CONG_BITMAP : XRDS_F_CONTROL;
	if (conn->legacy.on)
		msg->dport = 0;
}

/* The next port in a message with all congested ports. Returns whether there is
 * one.
 */
static bool xrds_cong_full_next(const struct xrds_msg *msg, u32 *pos, u16 *port)
{
	const u8 *buf = page_address(msg->bv[0].bv_page);
	struct xrds_wire_cong cong;
	u8 congested;

	if (msg->len == XRDS_WIRE_CONG_MAP_BYTES) {
		while (*pos < XRDS_WIRE_CONG_PORTS &&
		       !xrds_wire_cong_map_test(buf, *pos))
			++*pos;
		*port = *pos;
		return (*pos)++ < XRDS_WIRE_CONG_PORTS;
	}
	if (xrds_wire_cong_decode(&cong, buf, msg->len) || *pos >= cong.count)
		return false;
	xrds_wire_cong_entry(&cong, (*pos)++, port, &congested);
	return true;
}

/* The peer is told of all these ports, and must hear when they are clear. Those
 * that are so by now are marked: the mark goes out behind the message.
 */
static void xrds_cong_full_link(struct xrds_conn *conn,
				const struct xrds_msg *msg)
{
	u32 pos = 0;
	u16 port;

	while (xrds_cong_full_next(msg, &pos, &port)) {
		if (!xrds_cong_state(conn, port))
			xrds_cong_mark(conn, port);
		cond_resched();
	}
}

/**
 * xrds_cong_told - has the peer senders at a port that is congested?
 * @conn: connection
 *
 * Context: any.
 * Return: whether it has: they may wait. Sockets that wait because of a full list
 * do not count: the end of the connection wakes them, and the next one tells them
 * again.
 */
bool xrds_cong_told(struct xrds_conn *conn)
{
	return READ_ONCE(conn->nr_cong_links);
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
	/* From here on changes are marked again, and wait: the peer must hear
	 * of them after the message, which may be older.
	 */
	spin_lock_bh(&conn->tx_lock);
	conn->cong_filling = true;
	spin_lock(&conn->lock);
	conn->cong_full = false;
	spin_unlock(&conn->lock);
	spin_unlock_bh(&conn->tx_lock);
	xrds_cong_full_fill(conn, msg);
	xrds_msg_get(msg);
	spin_lock_bh(&conn->tx_lock);
	old = conn->ctl_msg;
	conn->ctl_msg = msg;
	conn->cong_filling = false;
	spin_unlock_bh(&conn->tx_lock);
	xrds_cong_full_link(conn, msg);
	xrds_msg_put(msg);
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

/* The map of the peer's congested ports; it stays as long as the connection. */
static int xrds_cong_note(struct xrds_conn *conn, u16 port, bool congested)
{
	unsigned long *map = conn->cong;

	if (!map && congested) {
		map = bitmap_zalloc(XRDS_WIRE_CONG_PORTS, GFP_KERNEL);
		if (!map)
			return -ENOMEM;
		/* pairs with the acquire in xrds_gate_port_shut() */
		smp_store_release(&conn->cong, map);
	}
	if (congested)
		set_bit(port, map);
	else if (map)
		clear_bit(port, map);
	return 0;
}

static void xrds_cong_note_none(struct xrds_conn *conn)
{
	if (conn->cong)
		bitmap_zero(conn->cong, XRDS_WIRE_CONG_PORTS);
}

static void xrds_cong_rx_account(struct xrds_conn *conn, int bytes)
{
	atomic_add(bytes, &conn->cong_rx_mem);
	atomic64_add(bytes, &conn->xn->cong_rx_mem);
}

static struct sk_buff *xrds_cong_rx_take(struct xrds_conn *conn)
{
	struct sk_buff *skb = skb_dequeue(&conn->cong_rx);

	if (skb)
		xrds_cong_rx_account(conn, -(int)xrds_skb(skb)->charge);
	return skb;
}

static void xrds_cong_rx_purge(struct xrds_conn *conn)
{
	struct sk_buff *skb;

	while ((skb = xrds_cong_rx_take(conn)))
		kfree_skb(skb);
}

/**
 * xrds_cong_close - the endpoint is gone, and the peer's state with it
 * @conn: connection
 *
 * Context: the connection's work; nothing is received any more.
 */
void xrds_cong_close(struct xrds_conn *conn)
{
	LIST_HEAD(gates);

	xrds_cong_rx_purge(conn);
	xrds_cong_note_none(conn);
	spin_lock_bh(&conn->lock);
	conn->cong_nr = 0;
	conn->cong_full = false;
	list_splice_init(&conn->gates, &gates);
	spin_unlock_bh(&conn->lock);
	xrds_wait_open_gates(conn, &gates);
}

/* -------------------------------------------------------- remote side */

/* Do too many updates wait for another one? All of a namespace may have a quarter
 * of max_recv_kb, which is in KiB.
 */
static bool xrds_cong_rx_full(const struct xrds_conn *conn)
{
	const struct xrds_net *xn = conn->xn;
	u64 most = (u64)READ_ONCE(xn->max[XRDS_LIMIT_RECV]) << 8;

	return skb_queue_len_lockless(&conn->cong_rx) >= XRDS_CONG_MAX_RX ||
	       (atomic_read(&conn->cong_rx_mem) >= XRDS_CONG_FREE_RX &&
		atomic64_read(&xn->cong_rx_mem) >= most);
}

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
		xrds_cong_rx_purge(conn);
	if (xrds_cong_rx_full(conn)) {
		kfree_skb(skb);
		xrds_count(conn->xn, XRDS_C_CONG_UPDATE_LIMIT);
		xrds_conn_ep_event(conn, READ_ONCE(conn->ep_gen),
				   XRDS_EV_ERROR, -ENOBUFS);
		return;
	}
	xrds_skb(skb)->sport = type;
	/* to linearize it later may change its size */
	xrds_skb(skb)->charge = skb->truesize;
	xrds_cong_rx_account(conn, skb->truesize);
	skb_queue_tail(&conn->cong_rx, skb);
	xrds_conn_event(conn, XRDS_EV_WANT);
}
EXPORT_SYMBOL_GPL(xrds_cong_recv);

/* Note the state of a port. @ready: a flow may go on. Returns 0 or -ENOMEM. */
static int xrds_cong_set(struct xrds_conn *conn, u16 port, bool congested,
			 bool *ready)
{
	struct xrds_gate *gate;
	int ret;

	trace_xrds_cong_peer(&conn->key.faddr, port, congested);
	ret = xrds_cong_note(conn, port, congested);
	spin_lock_bh(&conn->lock);
	gate = xrds_gate_find(conn, port);
	if (gate && congested)
		xrds_gate_close(gate);
	else if (gate)
		*ready |= xrds_wait_open_gate(conn, gate);
	spin_unlock_bh(&conn->lock);
	return ret;
}

static int xrds_cong_apply_list(struct xrds_conn *conn,
				const struct xrds_wire_cong *cong, bool *ready)
{
	u8 congested;
	int ret = 0;
	u16 i, port;

	for (i = 0; i < cong->count && !ret; i++) {
		xrds_wire_cong_entry(cong, i, &port, &congested);
		ret = xrds_cong_set(conn, port, congested, ready);
	}
	return ret;
}

static int xrds_cong_apply_map(struct xrds_conn *conn, const void *map,
			       bool *ready)
{
	u32 port;
	int ret = 0;

	for (port = 0; port < XRDS_WIRE_CONG_PORTS && !ret; port++) {
		if (xrds_wire_cong_map_test(map, port))
			ret = xrds_cong_set(conn, port, true, ready);
		if (!(port % XRDS_END_BATCH))
			cond_resched();
	}
	return ret;
}

/* A full list replaces all earlier state, and opens the gates of all other ports. */
static int xrds_cong_apply(struct xrds_conn *conn, struct sk_buff *skb,
			   bool *ready)
{
	bool map = xrds_skb(skb)->sport == XRDS_CTL_CONG_MAP;
	struct xrds_wire_cong cong = {};
	int ret = skb_linearize(skb);
	LIST_HEAD(gates);

	if (ret)
		return ret;
	if (map ? skb->len != XRDS_WIRE_CONG_MAP_BYTES :
		  xrds_wire_cong_decode(&cong, skb->data, skb->len))
		return -EPROTO;
	if (!map && !cong.full)
		return xrds_cong_apply_list(conn, &cong, ready);

	xrds_cong_note_none(conn);
	spin_lock_bh(&conn->lock);
	list_splice_init(&conn->gates, &gates);
	spin_unlock_bh(&conn->lock);
	ret = map ? xrds_cong_apply_map(conn, skb->data, ready) :
		    xrds_cong_apply_list(conn, &cong, ready);
	*ready |= xrds_wait_open_gates(conn, &gates);
	return ret;
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
	bool ready = false;
	struct sk_buff *skb;
	int ret;

	while (batch-- && (skb = xrds_cong_rx_take(conn))) {
		ret = xrds_cong_apply(conn, skb, &ready);
		kfree_skb(skb);
		if (ret == -EPROTO)
			xrds_conn_wire_error(conn, conn->ep_gen,
					     XRDS_WIRE_CONG);
		else if (ret)
			xrds_conn_ep_event(conn, conn->ep_gen, XRDS_EV_ERROR,
					   ret);
	}
	if (!skb_queue_empty(&conn->cong_rx))
		xrds_conn_event(conn, XRDS_EV_WANT);
	return xrds_cong_send_full(conn) || ready;
}
