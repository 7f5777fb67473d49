// SPDX-License-Identifier: GPL-2.0-only
/*
 * Answers to pings: a message to port 0 is for the kernel, which sends back an
 * empty one.
 */
#include "conn/conn.h"
#include "msg.h"
#include "transport.h"
#include "xrds.h"

enum {
	/* answers to pings that may wait in one connection's queue, or for
	 * their acknowledgment: of some who ping at once, with 64 each
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
 * xrds_pong - answer a message to port 0
 * @conn: connection that has brought it
 * @port: who has asked
 *
 * When there is no memory, or too many answers wait already, or who has asked
 * does not read what he gets, the ping goes unanswered.
 *
 * Context: any, without L3, L4; tx_lock only over loopback.
 */
void xrds_pong(struct xrds_conn *conn, u16 port)
{
	struct xrds_net *xn = conn->xn;
	struct xrds_msg *msg;

	xrds_count(xn, XRDS_C_RECV_PING);
	if (!port || !READ_ONCE(xn->ping_enable))
		return;
	conn = xrds_pong_conn(conn);
	if (IS_ERR(conn))
		return;
	if (READ_ONCE(conn->kmsgs) >= XRDS_MAX_PONGS ||
	    xrds_cong_blocked(conn, port))
		goto out;

	msg = xrds_msg_alloc(xn, 0, GFP_ATOMIC | __GFP_NOWARN);
	if (!msg)
		goto out;
	msg->dport = port;
	/* over loopback we are inside the pump already: leave it to the work */
	if ((conn->trans->prepare && conn->trans->prepare(conn, msg)) ||
	    xrds_xmit_queue(conn, msg, !conn->key.loop))
		xrds_msg_put(msg);
	else
		xrds_count(xn, XRDS_C_SEND_PONG);
out:
	xrds_conn_put(conn);
}
