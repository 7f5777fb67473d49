// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several connections to one node, one for each type of service. News of the node
 * that comes to one of them goes from here to the others. sock/ calls this file when
 * a socket begins to watch a node.
 *
 * They are on a list of their peer (peer.c) while they are in the table. conn.c puts
 * them there and takes them off. The list is read under RCU, without a spin lock. It
 * has at most as many entries as there are types of service.
 */
#include "conn/conn.h"
#include "transport.h"
#include "xrds.h"

/**
 * xrds_sibling_look - a node is watched: have its connections look what is due
 * @conn: one of them
 *
 * Each is to be probed. The node is not down as long as one is up that has not
 * noticed its end.
 *
 * Context: any, without L3, L6.
 */
void xrds_sibling_look(struct xrds_conn *conn)
{
	struct xrds_conn *other;

	/* it may have left the list already */
	xrds_conn_event(conn, XRDS_EV_IDLE);
	/* once is enough: a peer can have this called for each of its messages */
	if (!conn->peer || !xrds_peer_look(conn->peer))
		return;
	rcu_read_lock();
	list_for_each_entry_rcu(other, &conn->peer->conns, peer_entry) {
		if (other != conn)
			xrds_conn_event(other, XRDS_EV_IDLE);
	}
	rcu_read_unlock();
}

/**
 * xrds_sibling_meet - it is known which node is at the other end of all of them
 * @conn: the connection that has met it
 * @node: its number, or XRDS_NODE_LEGACY
 *
 * A program that is told of the node may send to it over the others, which may not
 * have lost their endpoints to the old one yet.
 *
 * Context: any, without L3.
 */
void xrds_sibling_meet(struct xrds_conn *conn, u64 node)
{
	struct xrds_conn *other;

	if (!conn->peer)
		return;
	rcu_read_lock();
	list_for_each_entry_rcu(other, &conn->peer->conns, peer_entry) {
		if (other == conn)
			continue;
		spin_lock_bh(&other->lock);
		/* messages of one that knows no node are for any */
		if (other->tx_node || other->legacy.was)
			xrds_tx_resume_meet(other, node);
		spin_unlock_bh(&other->lock);
	}
	rcu_read_unlock();
}
