// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gates: ports of the peer, open or shut.
 *
 * A gate is a part that all flows to one port share. It is shut while the peer
 * takes no messages to the port: the peer has said that the port is congested
 * (cong.c), or has refused a message (refuse.c). Flows wait at it. So the end of
 * congestion touches those that wait for that port, and no others.
 *
 * Over loopback a gate has no state: the receiving socket is looked at. A flow or
 * sender that begins to wait gets a link to it (link.c), so that its end of congestion
 * finds the gate.
 *
 * conn->cong has the congested ports of the peer, with and without flows; the
 * connection's work writes it. conn->lock guards gates.
 */
#include "conn/conn.h"
#include "transport.h"
#include "xrds.h"

/* Is the socket at a port congested, over loopback? */
static bool xrds_gate_local_congested(const struct xrds_conn *conn, u16 port)
{
	const struct xrds_port *local;
	bool congested;

	/* mostly no port is */
	if (list_empty(&conn->xn->cong_ports))
		return false;
	rcu_read_lock();
	local = xrds_bind_port(conn->xn, &conn->key.faddr, conn->key.scope, port);
	congested = local && READ_ONCE(local->congested);
	rcu_read_unlock();
	return congested;
}

/**
 * xrds_gate_port_shut - does the peer refuse messages to a port?
 * @conn: connection
 * @port: destination port
 *
 * Over loopback there is nothing to remember: the receiving socket is looked at.
 *
 * Context: any.
 * Return: whether it does.
 */
bool xrds_gate_port_shut(const struct xrds_conn *conn, u16 port)
{
	const unsigned long *map;

	if (conn->key.loop)
		return xrds_gate_local_congested(conn, port);
	/* pairs with the release in xrds_cong_note() */
	map = smp_load_acquire(&conn->cong);
	return map && test_bit(port, map);
}

/**
 * xrds_gate_shut - is the port of a flow shut?
 * @conn: its connection
 * @flow: flow
 *
 * Context: any; without conn->lock the answer may be old.
 * Return: whether it is.
 */
bool xrds_gate_shut(const struct xrds_conn *conn, const struct xrds_flow *flow)
{
	const struct xrds_gate *gate;
	bool shut;

	if (conn->key.loop)
		return xrds_gate_port_shut(conn, flow->port);
	rcu_read_lock();
	gate = READ_ONCE(flow->gate);
	shut = gate && READ_ONCE(gate->shut);
	rcu_read_unlock();
	return shut;
}

/**
 * xrds_gate_waits - is the port of a flow shut, so that the flow or its sender waits?
 * @conn: its connection
 * @flow: flow with a gate
 *
 * Over loopback the port opens the gate later.
 *
 * Context: any, conn->lock held.
 * Return: whether it is.
 */
bool xrds_gate_waits(struct xrds_conn *conn, const struct xrds_flow *flow)
{
	lockdep_assert_held(&conn->lock);

	if (!conn->key.loop)
		return flow->gate->shut;
	return xrds_gate_port_shut(conn, flow->port) &&
	       xrds_link_waits(conn, flow->port);
}

/**
 * xrds_gate_find - find the gate of a port
 * @conn: connection
 * @port: the peer's port
 *
 * Context: any, conn->lock held.
 * Return: the gate, without a reference, or NULL: no flow goes there.
 */
struct xrds_gate *xrds_gate_find(struct xrds_conn *conn, u16 port)
{
	struct xrds_part *part = xrds_part_find(conn, XRDS_PART_GATE, port);

	return part ? container_of(part, struct xrds_gate, part) : NULL;
}

/**
 * xrds_gate_get - find or make the gate of a port
 * @conn: connection
 * @port: the peer's port
 *
 * Context: any, conn->lock held.
 * Return: the gate with a reference, or NULL without memory.
 */
struct xrds_gate *xrds_gate_get(struct xrds_conn *conn, u16 port)
{
	struct xrds_gate *gate = xrds_gate_find(conn, port);
	struct xrds_part *part;

	if (gate) {
		xrds_part_get(&gate->part);
		return gate;
	}
	part = xrds_part_make(conn, XRDS_PART_GATE, port, sizeof(*gate));
	if (!part)
		return NULL;
	gate = container_of(part, struct xrds_gate, part);
	INIT_LIST_HEAD(&gate->shut_node);
	INIT_LIST_HEAD(&gate->parked);
	INIT_LIST_HEAD(&gate->waiters);
	/* Of a change that comes at this moment either the table has it already,
	 * or the gate is found.
	 */
	if (!conn->key.loop && xrds_gate_port_shut(conn, port))
		xrds_gate_close(gate);
	return gate;
}

/**
 * xrds_gate_put - drop a reference on a gate
 * @gate: gate
 *
 * Context: any, conn->lock held.
 */
void xrds_gate_put(struct xrds_gate *gate)
{
	if (gate->part.users == 1)
		list_del_init(&gate->shut_node);
	xrds_part_put(&gate->part);
}

/**
 * xrds_gate_close - the peer takes no more messages to a port
 * @gate: its gate
 *
 * Context: any, conn->lock held.
 */
void xrds_gate_close(struct xrds_gate *gate)
{
	struct xrds_conn *conn = gate->part.key.conn;

	lockdep_assert_held(&conn->lock);

	WRITE_ONCE(gate->shut, true);
	list_move_tail(&gate->shut_node, &conn->gates);
}
