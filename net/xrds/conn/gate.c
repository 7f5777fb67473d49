// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gates: ports of the peer, open or shut.
 *
 * A gate is a part that all flows to one port share. It is shut while the peer
 * takes no messages to the port: the peer has said that the port is congested
 * (cong.c), or has refused a message (refuse.c). Flows wait at it. So the end of
 * congestion touches those that wait for that port, and no others.
 *
 * Over loopback a gate has no state: the receiving socket is looked at. When that
 * is clear its gates are found in a table of the namespace by its address and
 * port, whether or not the socket was there when they were made.
 *
 * conn->cong has the congested ports of the peer, with and without flows; the
 * connection's work writes it. conn->lock guards gates.
 */
#include "conn/conn.h"
#include "transport.h"
#include "xrds.h"

static const struct rhashtable_params xrds_gate_loop_params = {
	.key_len	= sizeof(struct xrds_bind_key),
	.key_offset	= offsetof(struct xrds_gate, local),
	.head_offset	= offsetof(struct xrds_gate, loop_node),
	.automatic_shrinking = true,
};

/**
 * xrds_gate_init - make a namespace's table of gates of loopback connections
 * @xn: namespace
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int xrds_gate_init(struct xrds_net *xn)
{
	return rhltable_init(&xn->loop_gates, &xrds_gate_loop_params);
}

/**
 * xrds_gate_exit - free that table
 * @xn: namespace without connections
 *
 * Context: process.
 */
void xrds_gate_exit(struct xrds_net *xn)
{
	rhltable_destroy(&xn->loop_gates);
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

	/* mostly no port is congested */
	if (conn->key.loop)
		return !list_empty(&conn->xn->cong_ports) &&
		       xrds_bind_congested(conn->xn, &conn->key.faddr,
					   conn->key.scope, port);
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
 * xrds_gate_find_loop - find the gates of loopback connections to a port
 * @xn: namespace
 * @local: its address and number
 *
 * Context: any, under rcu_read_lock().
 * Return: the first, for rhl_for_each_entry_rcu(); their connections may be at
 * their end.
 */
struct rhlist_head *xrds_gate_find_loop(struct xrds_net *xn,
					const struct xrds_bind_key *local)
{
	return rhltable_lookup(&xn->loop_gates, local, xrds_gate_loop_params);
}

/* Returns 0 or a negative errno. */
static int xrds_gate_add_loop(struct xrds_conn *conn, struct xrds_gate *gate)
{
	int ret;

	gate->local.addr = conn->key.faddr;
	gate->local.scope = conn->key.scope;
	gate->local.port = gate->part.key.id;
	ret = rhltable_insert(&conn->xn->loop_gates, &gate->loop_node,
			      xrds_gate_loop_params);
	/* A flow looks at the socket before it waits here. Pairs with the barrier
	 * in xrds_wait_open_loop(): either it sees that the socket is clear, or
	 * the gate is found.
	 */
	smp_mb();
	return ret;
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
	if (conn->key.loop) {
		if (!xrds_gate_add_loop(conn, gate))
			return gate;
		xrds_part_put(part);
		return NULL;
	}
	/* Of a change that comes at this moment either the table has it already,
	 * or the gate is found.
	 */
	if (xrds_gate_port_shut(conn, port))
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
	struct xrds_conn *conn = gate->part.key.conn;

	if (gate->part.users == 1) {
		list_del_init(&gate->shut_node);
		if (conn->key.loop)
			rhltable_remove(&conn->xn->loop_gates, &gate->loop_node,
					xrds_gate_loop_params);
	}
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
