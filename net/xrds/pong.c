// SPDX-License-Identifier: GPL-2.0-only
/*
 * Answers to pings: a message to port 0 is for the kernel, which sends back an
 * empty one. A heartbeat of a classic peer is answered the same way.
 */
#include "conn.h"
#include "msg.h"
#include "xrds.h"

enum {
	/* answers that may wait in one connection's queue, or for their
	 * acknowledgment: of some who ping at once, with 64 each
	 */
	XRDS_MAX_PONGS		= 256,
};

/* The connection that carries answers: the same one, but over loopback that
 * of the other direction. With a reference, or ERR_PTR().
 */
static struct xrds_conn *xrds_pong_conn(struct xrds_conn *conn)
{
	struct xrds_conn_key key = conn->key;

	if (!conn->key.loop || ipv6_addr_equal(&key.laddr, &key.faddr)) {
		xrds_conn_get(conn);
		return conn;
	}
	key.laddr = conn->key.faddr;
	key.faddr = conn->key.laddr;
	return xrds_conn_get_for(conn->xn, conn->user, &key, conn->trans,
				 GFP_ATOMIC);
}

/**
 * xrds_pong_queue - have an answer sent, or count why not
 * @conn: connection that carries it
 * @port: who has asked; 0: the kernel of a classic peer, with a heartbeat
 * @pump: see xrds_xmit_queue()
 *
 * When there is no memory, or too many answers wait already, or who has asked
 * does not read what he gets, there is no answer.
 *
 * Context: any, without L3, L4; tx_lock only without @pump.
 */
void xrds_pong_queue(struct xrds_conn *conn, u16 port, bool pump)
{
	struct xrds_net *xn = conn->xn;
	struct xrds_msg *msg;

	if (READ_ONCE(conn->kmsgs) >= XRDS_MAX_PONGS ||
	    (port && xrds_cong_blocked(conn, port))) {
		xrds_count(xn, XRDS_C_SEND_DROP_PONG);
		return;
	}
	msg = xrds_msg_alloc(xn, 0, GFP_ATOMIC | __GFP_NOWARN);
	if (!msg) {
		xrds_count(xn, XRDS_C_SEND_DROP_PONG_NO_MEM);
		return;
	}
	msg->dport = port;
	if (!xrds_xmit_queue(conn, msg, pump)) {
		xrds_count(xn, XRDS_C_SEND_PONG);
		return;
	}
	xrds_msg_put(msg);
	xrds_count(xn, XRDS_C_SEND_DROP_CONN_DEAD);
}

/**
 * xrds_pong - answer a message to port 0
 * @conn: connection that has brought it
 * @port: who has asked
 *
 * Context: any, without L3, L4; tx_lock only over loopback.
 */
void xrds_pong(struct xrds_conn *conn, u16 port)
{
	struct xrds_net *xn = conn->xn;

	xrds_count(xn, XRDS_C_RECV_PING);
	if (!port || !READ_ONCE(xn->ping_enable))
		return;
	conn = xrds_pong_conn(conn);
	if (IS_ERR(conn)) {
		/* that there are too many is counted where it is found */
		if (PTR_ERR(conn) == -ENOMEM)
			xrds_count(xn, XRDS_C_SEND_DROP_PONG_NO_MEM);
		return;
	}
	/* over loopback we are inside the pump already: leave it to the work */
	xrds_pong_queue(conn, port, !conn->key.loop);
	xrds_conn_put(conn);
}
