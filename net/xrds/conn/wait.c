// SPDX-License-Identifier: GPL-2.0-only
/*
 * Flows and senders that wait for a port of the peer.
 *
 * A gate (gate.c) that is shut holds up flows, which are parked at it, and senders
 * that were refused for it, each of which has a reference on its flow there. When it
 * opens, the flows go on, and the senders are woken. Both are handled in batches.
 * Over loopback a socket that is clear finds the gates of its port by links (link.c).
 */
#include "conn/conn.h"
#include "tracepoints.h"
#include "upcall.h"
#include "xrds.h"

/* flows, and senders, that go on over loopback before others get the processor */
enum { XRDS_WAIT_SOME = 64 };

/**
 * xrds_wait_begin - be told when a destination is no longer congested
 * @conn: its connection
 * @flow: flow that was refused
 *
 * Context: process.
 * Return: false when it is not congested any more.
 */
bool xrds_wait_begin(struct xrds_conn *conn, struct xrds_flow *flow)
{
	bool wait;

	/* A gate opens before conn->lock is taken to look for waiters: either we
	 * see it open, or we are found. A flow that leaves a dead connection is
	 * woken by that.
	 */
	spin_lock_bh(&conn->lock);
	spin_lock(flow->lock);
	wait = flow->conn == conn && conn->state != XRDS_ST_DEAD &&
	       flow->gate && xrds_gate_waits(conn, flow);
	if (wait && list_empty(&flow->cong_node)) {
		xrds_flow_get(flow);
		list_add_tail(&flow->cong_node, &flow->gate->waiters);
		conn->nr_waiters++;
	}
	spin_unlock(flow->lock);
	spin_unlock_bh(&conn->lock);
	return wait;
}

/**
 * xrds_wait_end - stop waiting
 * @flow: flow; the caller has a reference of its own
 *
 * Context: any, without L3 or L4.
 */
void xrds_wait_end(struct xrds_flow *flow)
{
	struct xrds_conn *conn = xrds_flow_conn(flow);
	bool waited;

	if (!conn)
		return;
	spin_lock_bh(&conn->lock);
	spin_lock(flow->lock);
	waited = flow->conn == conn && !list_empty(&flow->cong_node);
	if (waited) {
		list_del_init(&flow->cong_node);
		conn->nr_waiters--;
	}
	spin_unlock(flow->lock);
	spin_unlock_bh(&conn->lock);

	if (waited)
		xrds_flow_put(flow);
	xrds_conn_put(conn);
}

/* Let some parked flows of an open gate go on. Returns whether there are more. */
static bool xrds_wait_unpark(struct xrds_conn *conn, struct xrds_gate *gate,
			     u32 most, bool *ready)
{
	struct xrds_flow *flow, *tmp;
	u32 n = 0;

	lockdep_assert_held(&conn->lock);

	list_for_each_entry_safe(flow, tmp, &gate->parked, parked) {
		if (n == most)
			break;
		*ready |= xrds_flow_update(conn, flow);
		/* shut again */
		if (flow->state == XRDS_FLOW_GATE)
			break;
		n++;
	}
	xrds_hold_count(XRDS_HOLD_END, n);
	return n == most;
}

/* Wake some of the senders that wait; the lock is dropped for each. Returns whether
 * there are more.
 */
static bool xrds_wait_wake(struct xrds_conn *conn, struct list_head *waiters, u32 most)
{
	struct xrds_flow *flow;
	__poll_t mask;
	u32 n;

	lockdep_assert_held(&conn->lock);

	for (n = 0; n < most && !list_empty(waiters); n++) {
		flow = list_first_entry(waiters, struct xrds_flow, cong_node);
		conn->nr_waiters--;
		xrds_count(conn->xn, XRDS_C_CONG_WOKEN);
		mask = xrds_space_uncongested(flow, true);
		spin_unlock_bh(&conn->lock);
		xrds_space_wake(flow, mask);
		xrds_flow_put(flow);
		spin_lock_bh(&conn->lock);
	}
	return !list_empty(waiters);
}

/**
 * xrds_wait_open_gate - a gate is open: its flows go on
 * @conn: connection
 * @gate: gate
 *
 * Context: any, conn->lock held; it is dropped meanwhile.
 * Return: whether there is something to post.
 */
bool xrds_wait_open_gate(struct xrds_conn *conn, struct xrds_gate *gate)
{
	bool ready = false;
	LIST_HEAD(waiters);

	lockdep_assert_held(&conn->lock);

	xrds_part_get(&gate->part);
	WRITE_ONCE(gate->shut, false);
	list_del_init(&gate->shut_node);
	while (xrds_wait_unpark(conn, gate, XRDS_END_BATCH, &ready)) {
		spin_unlock_bh(&conn->lock);
		cpu_relax();
		spin_lock_bh(&conn->lock);
	}
	list_splice_init(&gate->waiters, &waiters);
	xrds_wait_wake(conn, &waiters, U32_MAX);
	xrds_gate_put(gate);
	return ready;
}

/**
 * xrds_wait_open_gates - the same of all gates on a list
 * @conn: connection
 * @list: gates; those of ports in conn->cong stay shut
 *
 * Context: any, without L3.
 * Return: whether there is something to post.
 */
bool xrds_wait_open_gates(struct xrds_conn *conn, struct list_head *list)
{
	struct xrds_gate *gate;
	bool ready = false;

	spin_lock_bh(&conn->lock);
	while (!list_empty(list)) {
		gate = list_first_entry(list, struct xrds_gate, shut_node);
		if (xrds_gate_port_shut(conn, gate->part.key.id))
			list_move_tail(&gate->shut_node, &conn->gates);
		else
			ready |= xrds_wait_open_gate(conn, gate);
		/* let others in */
		spin_unlock_bh(&conn->lock);
		spin_lock_bh(&conn->lock);
	}
	spin_unlock_bh(&conn->lock);
	return ready;
}

/* Open a gate for some, and have the port open it for the rest, so that a reader who
 * has made room does not work for all of its senders. A port that is gone opens
 * nothing: then nobody is left, unless another socket has the port, and is full.
 */
static void xrds_wait_open_some(struct xrds_conn *conn, struct xrds_gate *gate,
				bool *ready)
{
	u16 port = gate->part.key.id;
	bool more;

	xrds_part_get(&gate->part);
	do {
		more = xrds_wait_unpark(conn, gate, XRDS_WAIT_SOME, ready);
		more |= xrds_wait_wake(conn, &gate->waiters, XRDS_WAIT_SOME);
		if (!more || xrds_link_again(conn, port))
			break;
		spin_unlock_bh(&conn->lock);
		cpu_relax();
		spin_lock_bh(&conn->lock);
	} while (!xrds_gate_port_shut(conn, port) || !xrds_link_waits(conn, port));
	xrds_gate_put(gate);
}

static bool xrds_wait_nobody(const struct xrds_gate *gate)
{
	return list_empty(&gate->parked) && list_empty(&gate->waiters);
}

/**
 * xrds_wait_open_local - the flows that wait for a socket over loopback go on
 * @conn: loopback connection
 * @port: the socket's port
 *
 * The caller may have dropped the link that it has found us by.
 *
 * Context: any, without L3, L4.
 */
void xrds_wait_open_local(struct xrds_conn *conn, u16 port)
{
	struct xrds_gate *gate;
	bool ready = false;

	spin_lock_bh(&conn->lock);
	gate = xrds_gate_find(conn, port);
	/* if it is shut again, or another socket has the port by now, that one
	 * opens it later
	 */
	if (gate && !xrds_wait_nobody(gate) &&
	    !(xrds_gate_port_shut(conn, port) && xrds_link_waits(conn, port)))
		xrds_wait_open_some(conn, gate, &ready);
	spin_unlock_bh(&conn->lock);
	/* we may be inside its pump */
	if (ready)
		xrds_conn_event(conn, XRDS_EV_WANT);
}
