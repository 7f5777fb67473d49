// SPDX-License-Identifier: GPL-2.0-only
/*
 * Links: which connections must be told of a local port.
 *
 * A link ties a connection to the port of one socket. The receive path makes it
 * with the first message that the connection brings for the port: then the peer
 * has a sender there, and the link stays until the connection is dead or the
 * socket is closed. A link without a sender is made when a peer is told that a
 * port is congested to which it has not sent: a full list has all ports of the
 * address. Such a link goes when the port is clear. So two things always hold:
 *
 * - A peer with senders at a port is told of each change, and no other peer is.
 * - A peer that was told that a port is congested is told when it is clear. A
 *   link is made, and the port is looked at again, whenever that is told.
 *
 * A change is told in batches: the links that were not told of it stand at the
 * head of the port's list, and each goes to the tail. The caller tells the first
 * batch, and a work item the others, as peers decide how many there are. Links are
 * on the account of the socket's owner, as the senders that it remembers are.
 * Without memory for a link, or above the bound, the port remembers that one is
 * missing, and all connections of the address are told of its changes. Ports that
 * have all their links mostly do not wait for that.
 *
 * A link is a part, so conn->lock guards its place in the table and in
 * conn->links. xn->cong_lock, a leaf, guards the list of the port and the fields
 * of links. A port ends its links before its socket is freed.
 *
 * Over loopback the connection is the senders', and nothing is told: when the port is
 * clear the gate is opened. A link is made when a flow or a sender begins to wait. It
 * counts as one without a sender, and so goes each time that the port is clear.
 */
#include "conn/conn.h"
#include "xrds.h"

enum {
	/* one turn in so many is for a port that lacks links, if others wait, too */
	XRDS_LINK_TURNS	= 16,
};

/**
 * struct xrds_link - a connection that is told of a port
 * @part:	by the port
 * @port:	the port; constant
 * @conn_node:	in conn->links; conn->lock
 * @port_node:	in port->links, those that were told last at the tail;
 *		xn->cong_lock, as all below
 * @change:	port->changes when it was told
 * @sender:	a message has come
 * @counted:	in conn->nr_cong_links: there are senders that may wait
 */
struct xrds_link {
	struct xrds_part part;
	struct xrds_port *port;
	struct list_head conn_node;
	struct list_head port_node;
	u32 change;
	bool sender;
	bool counted;
};

/* ------------------------------------------------------- make and drop */

/* May the peer's senders wait for the port, as far as this link is concerned? */
static void xrds_link_count(struct xrds_link *link)
{
	bool counted = link->sender && READ_ONCE(link->port->congested);
	struct xrds_conn *conn = link->part.key.conn;

	lockdep_assert_held(&conn->xn->cong_lock);

	if (link->counted == counted)
		return;
	link->counted = counted;
	WRITE_ONCE(conn->nr_cong_links,
		   conn->nr_cong_links + (counted ? 1 : -1));
}

static struct xrds_link *xrds_link_find(struct xrds_conn *conn,
					struct xrds_port *port)
{
	struct xrds_part *part = xrds_part_find(conn, XRDS_PART_LINK,
						(unsigned long)port);

	return part ? container_of(part, struct xrds_link, part) : NULL;
}

static void xrds_link_uncharge(struct xrds_port *port)
{
	xrds_limit_uncharge(port->xn, port->user, XRDS_LIMIT_SOURCES,
			    XRDS_LINK_COST_BYTES);
}

static struct xrds_link *xrds_link_alloc(struct xrds_conn *conn,
					 struct xrds_port *port)
{
	struct xrds_part *part;

	lockdep_assert_held(&conn->lock);

	if (xrds_limit_charge(port->xn, port->user, XRDS_LIMIT_SOURCES,
			      XRDS_LINK_COST_BYTES))
		return NULL;
	part = xrds_part_make(conn, XRDS_PART_LINK, (unsigned long)port,
			      sizeof(struct xrds_link));
	if (part)
		return container_of(part, struct xrds_link, part);
	xrds_link_uncharge(port);
	return NULL;
}

/* Returns NULL if the connection is dead, the socket closed, or there is no
 * memory for it: then @port remembers that.
 */
static struct xrds_link *xrds_link_make(struct xrds_conn *conn,
					struct xrds_port *port)
{
	struct xrds_link *link;
	bool closed;

	lockdep_assert_held(&conn->lock);

	if (conn->state == XRDS_ST_DEAD)
		return NULL;
	link = xrds_link_alloc(conn, port);

	spin_lock(&conn->xn->cong_lock);
	closed = port->closed;
	if (!link) {
		port->unlinked = true;
	} else if (!closed) {
		link->port = port;
		link->change = port->changes;
		list_add_tail(&link->port_node, &port->links);
		list_add_tail(&link->conn_node, &conn->links);
	}
	spin_unlock(&conn->xn->cong_lock);

	if (!link || !closed)
		return link;
	xrds_link_uncharge(port);
	xrds_part_put(&link->part);
	return NULL;
}

static void xrds_link_drop(struct xrds_link *link)
{
	struct xrds_conn *conn = link->part.key.conn;

	lockdep_assert_held(&conn->lock);

	spin_lock(&conn->xn->cong_lock);
	link->sender = false;
	xrds_link_count(link);
	list_del(&link->port_node);
	spin_unlock(&conn->xn->cong_lock);
	list_del(&link->conn_node);
	xrds_link_uncharge(link->port);
	xrds_part_put(&link->part);
}

/**
 * xrds_link_heard - a connection has brought a message for a port
 * @conn: connection
 * @port: the port; under RCU it may be of a socket that is being closed
 *
 * Context: any, without L3, L5.
 * Return: whether this is the first message: the peer may not know that the port
 * is congested. It is also true if there is no link.
 */
bool xrds_link_heard(struct xrds_conn *conn, struct xrds_port *port)
{
	struct xrds_link *link;
	bool news = true;

	spin_lock_bh(&conn->lock);
	link = xrds_link_find(conn, port) ?: xrds_link_make(conn, port);
	if (link) {
		spin_lock(&conn->xn->cong_lock);
		news = !link->sender;
		link->sender = true;
		xrds_link_count(link);
		spin_unlock(&conn->xn->cong_lock);
	}
	spin_unlock_bh(&conn->lock);
	return news;
}

/**
 * xrds_link_told - the peer is told that a port is congested
 * @conn: connection
 * @port: the port, under RCU
 *
 * Context: any, without L3, L5.
 * Return: whether the port is still congested. Then the peer will be told when it
 * is clear; else the change may be over, and the peer was not part of it.
 */
bool xrds_link_told(struct xrds_conn *conn, struct xrds_port *port)
{
	spin_lock_bh(&conn->lock);
	if (!xrds_link_find(conn, port))
		xrds_link_make(conn, port);
	spin_unlock_bh(&conn->lock);
	/* A change writes @congested before it takes xn->cong_lock: either it
	 * finds the link, or we see the change.
	 */
	return READ_ONCE(port->congested);
}

/**
 * xrds_link_waits - somebody is to wait for a port over loopback
 * @conn: the sender's connection
 * @nr: the port's number
 *
 * Context: any, conn->lock held.
 * Return: whether the port is congested: it opens the gate when it is clear.
 */
bool xrds_link_waits(struct xrds_conn *conn, u16 nr)
{
	struct xrds_port *port;
	bool congested;

	lockdep_assert_held(&conn->lock);

	rcu_read_lock();
	port = xrds_bind_port(conn->xn, &conn->key.faddr, conn->key.scope, nr);
	if (port && !xrds_link_find(conn, port))
		xrds_link_make(conn, port);
	/* as in xrds_link_told() */
	congested = port && READ_ONCE(port->congested);
	rcu_read_unlock();
	return congested;
}

/**
 * xrds_link_again - a port is to open a gate over loopback once more
 * @conn: the sender's connection
 * @nr: the port's number
 *
 * The work that tells of changes does it soon.
 *
 * Context: any, conn->lock held.
 * Return: false if there is no such port, or its socket is being closed.
 */
bool xrds_link_again(struct xrds_conn *conn, u16 nr)
{
	struct xrds_net *xn = conn->xn;
	struct xrds_link *link = NULL;
	struct xrds_port *port;
	bool again = false;

	lockdep_assert_held(&conn->lock);

	rcu_read_lock();
	port = xrds_bind_port(xn, &conn->key.faddr, conn->key.scope, nr);
	if (port) {
		link = xrds_link_find(conn, port) ?: xrds_link_make(conn, port);
		spin_lock(&xn->cong_lock);
		again = !port->closed;
		/* those that were not told stand at the head */
		if (link) {
			link->change = port->changes - 1;
			list_move(&link->port_node, &port->links);
		} else {
			port->all_due = true;
		}
		if (again)
			list_move_tail(&port->late, &xn->cong_late);
		spin_unlock(&xn->cong_lock);
	}
	rcu_read_unlock();
	if (again)
		queue_work(xrds_conn_wq, &xn->cong_work);
	return again;
}

/**
 * xrds_link_cleared - the peer is about to be told that a port is clear
 * @conn: connection
 * @port: the port
 *
 * The caller marks the port for this connection afterwards. If the peer is told
 * meanwhile that the port is congested, the mark corrects that. Over loopback it opens
 * the gate, and looks at the port again.
 *
 * Context: any, without L3, L5.
 */
void xrds_link_cleared(struct xrds_conn *conn, struct xrds_port *port)
{
	struct xrds_link *link;

	spin_lock_bh(&conn->lock);
	link = xrds_link_find(conn, port);
	/* @sender is written under conn->lock, too */
	if (link && !link->sender && !READ_ONCE(port->congested))
		xrds_link_drop(link);
	spin_unlock_bh(&conn->lock);
}

/**
 * xrds_link_leave - a connection is dead
 * @conn: connection in state DEAD, which gets no links any more
 *
 * Context: the connection's work.
 */
void xrds_link_leave(struct xrds_conn *conn)
{
	spin_lock_bh(&conn->lock);
	while (!list_empty(&conn->links)) {
		xrds_link_drop(list_first_entry(&conn->links, struct xrds_link,
						conn_node));
		/* let others in */
		spin_unlock_bh(&conn->lock);
		cond_resched();
		spin_lock_bh(&conn->lock);
	}
	spin_unlock_bh(&conn->lock);
}

/* The first connection of a port, with a reference, or NULL */
static struct xrds_conn *xrds_link_first(struct xrds_port *port)
{
	struct xrds_conn *conn = NULL;
	struct xrds_link *link;

	spin_lock_bh(&port->xn->cong_lock);
	link = list_first_entry_or_null(&port->links, struct xrds_link,
					port_node);
	/* a connection drops its links before the table's reference */
	if (link) {
		conn = link->part.key.conn;
		xrds_conn_get(conn);
	}
	spin_unlock_bh(&port->xn->cong_lock);
	return conn;
}

/**
 * xrds_link_stop - a socket is closed: it gets no links any more
 * @port: its port, which is not congested any more
 *
 * Context: process.
 */
void xrds_link_stop(struct xrds_port *port)
{
	spin_lock_bh(&port->xn->cong_lock);
	port->closed = true;
	list_del_init(&port->late);
	spin_unlock_bh(&port->xn->cong_lock);
}

/**
 * xrds_link_close - drop the links of a closed socket
 * @port: its port, which is stopped; all were told
 *
 * Context: process.
 */
void xrds_link_close(struct xrds_port *port)
{
	struct xrds_conn *conn;
	struct xrds_link *link;

	while ((conn = xrds_link_first(port))) {
		spin_lock_bh(&conn->lock);
		link = xrds_link_find(conn, port);
		if (link)
			xrds_link_drop(link);
		spin_unlock_bh(&conn->lock);
		xrds_conn_put(conn);
		cond_resched();
	}
}

/* ------------------------------------------------------------- changes */

/**
 * xrds_link_change - a port has become congested, or is so no longer
 * @port: the port; @port->congested has the new state
 *
 * Context: any, without L5.
 */
void xrds_link_change(struct xrds_port *port)
{
	struct xrds_net *xn = port->xn;

	spin_lock_bh(&xn->cong_lock);
	/* calls may overtake each other: the last one sees the last state */
	if (!READ_ONCE(port->congested))
		list_del_init(&port->node);
	else if (list_empty(&port->node))
		list_add_tail(&port->node, &xn->cong_ports);
	port->changes++;
	port->all_due |= port->unlinked;
	spin_unlock_bh(&xn->cong_lock);
}

/* The next connections of a port. Returns whether it may have more links. */
static bool xrds_link_take(struct xrds_port *port, struct xrds_link_batch *batch)
{
	struct xrds_link *link;

	lockdep_assert_held(&port->xn->cong_lock);

	batch->port = port;
	batch->bind = *port->bind;
	batch->all = false;
	for (batch->nr = 0; batch->nr < XRDS_LINK_BATCH; batch->nr++) {
		link = list_first_entry_or_null(&port->links, struct xrds_link,
						port_node);
		if (!link || link->change == port->changes)
			break;
		link->change = port->changes;
		list_move_tail(&link->port_node, &port->links);
		xrds_link_count(link);
		batch->conns[batch->nr] = link->part.key.conn;
		xrds_conn_get(link->part.key.conn);
	}
	xrds_hold_count(XRDS_HOLD_LINK, batch->nr);
	return batch->nr == XRDS_LINK_BATCH;
}

/* A port waits for the work: for the next batch of its links, or behind all ports
 * that do, for its turn to tell all connections.
 */
static void xrds_link_queue(struct xrds_port *port, bool more)
{
	struct xrds_net *xn = port->xn;

	lockdep_assert_held(&xn->cong_lock);

	if (more)
		list_move_tail(&port->late, &xn->cong_late);
	else if (port->all_due)
		list_move_tail(&port->late, &xn->cong_late_all);
	else
		list_del_init(&port->late);
}

/**
 * xrds_link_next - the next connections that are to be told of a change
 * @port: the port
 * @batch: result
 *
 * A change that comes meanwhile begins anew, and all callers share the rest.
 *
 * Context: any, without L5.
 * Return: whether there may be more, which xrds_link_next_late() returns.
 */
bool xrds_link_next(struct xrds_port *port, struct xrds_link_batch *batch)
{
	struct xrds_net *xn = port->xn;
	bool more;

	spin_lock_bh(&xn->cong_lock);
	more = xrds_link_take(port, batch);
	if (!port->closed && (more || list_empty(&port->late)))
		xrds_link_queue(port, more);
	more |= port->all_due;
	spin_unlock_bh(&xn->cong_lock);
	return more;
}

/**
 * xrds_link_next_all - the same for a caller that tells all of them
 * @port: the port
 * @batch: result
 *
 * Context: process.
 * Return: whether there may be more.
 */
bool xrds_link_next_all(struct xrds_port *port, struct xrds_link_batch *batch)
{
	bool more;

	spin_lock_bh(&port->xn->cong_lock);
	more = xrds_link_take(port, batch) || port->all_due;
	swap(batch->all, port->all_due);
	spin_unlock_bh(&port->xn->cong_lock);
	return more;
}

/**
 * xrds_link_next_late - the next connections of any port that has more
 * @xn: namespace
 * @batch: result
 *
 * Context: process.
 * Return: false when there is none.
 */
bool xrds_link_next_late(struct xrds_net *xn, struct xrds_link_batch *batch)
{
	struct xrds_port *port;
	bool all, more;

	spin_lock_bh(&xn->cong_lock);
	port = list_first_entry_or_null(&xn->cong_late, struct xrds_port, late);
	all = !port || (!(++xn->cong_turn % XRDS_LINK_TURNS) &&
			!list_empty(&xn->cong_late_all));
	if (all)
		port = list_first_entry_or_null(&xn->cong_late_all,
						struct xrds_port, late);
	if (port) {
		more = xrds_link_take(port, batch);
		/* one that changes all the time always has more links to be told */
		if (all || !(++port->turns % XRDS_LINK_TURNS))
			swap(batch->all, port->all_due);
		xrds_link_queue(port, more);
	}
	spin_unlock_bh(&xn->cong_lock);
	return port;
}
