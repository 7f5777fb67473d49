// SPDX-License-Identifier: GPL-2.0-only
/*
 * Flows: the messages of one socket on one connection toward one port.
 *
 * A flow is a member of its destination. conn/ knows flows, and neither
 * destinations nor sockets. A flow joins a connection with the first message
 * and leaves it when the connection is dead, or with its last reference. Its
 * messages are on its list while the connection has them.
 *
 * The fields that tie a flow to a connection are guarded by both the
 * connection's lock (L3) and the flow's lock, which is its socket's (L4).
 */
#include "conn/conn.h"
#include "msg.h"
#include "upcall.h"
#include "xrds.h"

/**
 * xrds_flow_init - begin a flow
 * @flow: flow, zeroed
 * @port: the peer's port
 * @lock: its socket's lock, L4
 *
 * Context: any.
 */
void xrds_flow_init(struct xrds_flow *flow, u16 port, spinlock_t *lock)
{
	flow->port = port;
	flow->lock = lock;
	INIT_LIST_HEAD(&flow->conn_node);
	INIT_LIST_HEAD(&flow->msgs);
	INIT_LIST_HEAD(&flow->cong_node);
}

/**
 * xrds_flow_conn - the connection that a flow has
 * @flow: flow
 *
 * Context: any, without L4.
 * Return: the connection, be it dead, with a reference, or NULL.
 */
struct xrds_conn *xrds_flow_conn(struct xrds_flow *flow)
{
	struct xrds_conn *conn;

	spin_lock_bh(flow->lock);
	conn = flow->conn;
	if (conn)
		xrds_conn_get(conn);
	spin_unlock_bh(flow->lock);
	return conn;
}

/* Messages that are still queued on a dead connection leave the flow's list:
 * that is guarded by another lock as soon as there is another connection.
 */
static void xrds_flow_disown_msgs(struct xrds_flow *flow)
{
	struct xrds_msg *msg, *tmp;

	lockdep_assert_held(&flow->conn->lock);

	list_for_each_entry_safe(msg, tmp, &flow->msgs, flow_node) {
		list_del_init(&msg->flow_node);
		msg->inflight = false;
	}
	flow->inflight_bytes = 0;
}

/**
 * xrds_flow_leave - give back the reference on the connection, if there is one
 * @flow: flow
 * @last: nobody else uses the flow; else it leaves a dead connection only, as a
 *	sender may have found another one meanwhile
 *
 * Context: any, without L3 or L4.
 */
void xrds_flow_leave(struct xrds_flow *flow, bool last)
{
	struct xrds_conn *conn = xrds_flow_conn(flow);
	bool left = false;

	if (!conn)
		return;

	spin_lock_bh(&conn->lock);
	spin_lock(flow->lock);
	if (flow->conn == conn && (last || conn->state == XRDS_ST_DEAD)) {
		xrds_flow_disown_msgs(flow);
		list_del_init(&flow->conn_node);
		flow->conn = NULL;
		left = true;
	}
	spin_unlock(flow->lock);
	spin_unlock_bh(&conn->lock);

	if (left)
		xrds_conn_put(conn);
	xrds_conn_put(conn);
}

/**
 * xrds_flow_leave_all - the flows of a dead connection leave it
 * @conn: connection in state DEAD, which no flow joins any more
 *
 * Context: the connection's work.
 */
void xrds_flow_leave_all(struct xrds_conn *conn)
{
	struct xrds_flow *flow, *tmp;
	unsigned int n = 0;

	/* dropping the last reference on a flow takes it off the list before
	 * anything is freed
	 */
	spin_lock_bh(&conn->lock);
	list_for_each_entry_safe(flow, tmp, &conn->flows, conn_node) {
		spin_lock(flow->lock);
		xrds_flow_disown_msgs(flow);
		list_del_init(&flow->conn_node);
		flow->conn = NULL;
		spin_unlock(flow->lock);
		n++;
	}
	spin_unlock_bh(&conn->lock);
	while (n--)
		xrds_conn_put(conn);
}

/**
 * xrds_flow_join - use a connection from now on
 * @flow: flow
 * @conn: connection; takes over the caller's reference
 *
 * Of two senders that come here with different connections the second uses that
 * of the first. A connection that has died meanwhile is not remembered:
 * queueing the message will fail.
 *
 * Context: any, without L3 or L4.
 * Return: the connection to use, with a reference.
 */
struct xrds_conn *xrds_flow_join(struct xrds_flow *flow,
				 struct xrds_conn *conn)
{
	struct xrds_conn *other = NULL;

	spin_lock_bh(&conn->lock);
	spin_lock(flow->lock);
	if (flow->conn) {
		other = flow->conn;
		xrds_conn_get(other);
	} else if (conn->state != XRDS_ST_DEAD) {
		flow->conn = conn;
		list_add_tail(&flow->conn_node, &conn->flows);
		xrds_conn_get(conn);
	}
	spin_unlock(flow->lock);
	spin_unlock_bh(&conn->lock);
	if (!other)
		return conn;
	xrds_conn_put(conn);
	return other;
}

/**
 * xrds_flow_put - drop a reference on a flow
 * @flow: flow
 *
 * The last one leaves the connection, and frees the destination.
 *
 * Context: any, without L3 or L4.
 */
void xrds_flow_put(struct xrds_flow *flow)
{
	if (refcount_dec_and_test(&flow->ref)) {
		xrds_flow_leave(flow, true);
		xrds_dest_free(flow);
	}
}
