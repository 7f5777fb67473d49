// SPDX-License-Identifier: GPL-2.0-only
/*
 * News of connections and nodes, for programs that have joined the group of the
 * netlink family.
 *
 * News of a connection are made by its work item, which alone knows why it
 * changes state, those of a node by the same or by its own, and only while
 * somebody listens. They may be lost, like all of netlink: then the reader is
 * told so (ENOBUFS).
 */
#include "diag/netlink.h"

static bool xrds_nl_news_listened(struct net *net)
{
	return genl_has_listeners(&xrds_netlink_family, net, XRDS_NL_GROUP_CONN);
}

static struct sk_buff *xrds_nl_news_begin(u8 cmd, void **hdr)
{
	struct sk_buff *skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);

	if (skb)
		*hdr = genlmsg_put(skb, 0, 0, &xrds_netlink_family, 0, cmd);
	return skb;
}

/* @full: it has no room for all of it. The listeners are told that something is
 * lost, as without memory.
 */
static void xrds_nl_news_send(struct net *net, struct sk_buff *skb, void *hdr,
			      bool full)
{
	if (!skb || full) {
		nlmsg_free(skb);
		genl_set_err(&xrds_netlink_family, net, 0, XRDS_NL_GROUP_CONN,
			     -ENOBUFS);
		return;
	}
	genlmsg_end(skb, hdr);
	genlmsg_multicast_netns(&xrds_netlink_family, net, skb, 0,
				XRDS_NL_GROUP_CONN, GFP_KERNEL);
}

static void xrds_nl_news_tell(struct xrds_conn *conn, u8 cmd,
			      unsigned int reason, int error)
{
	struct net *net = conn->xn->net;
	struct sk_buff *skb;
	bool full = false;
	void *hdr;

	if (!xrds_nl_news_listened(net))
		return;
	skb = xrds_nl_news_begin(cmd, &hdr);
	/* anybody may listen */
	if (skb)
		full = !hdr || xrds_nl_conn_fill(skb, conn, false) ||
		       (reason && nla_put_u32(skb, XRDS_A_CONN_REASON,
					      reason)) ||
		       (reason == XRDS_DOWN_REASON_LOST &&
			nla_put_u32(skb, XRDS_A_CONN_ERROR, -error));
	xrds_nl_news_send(net, skb, hdr, full);
}

/**
 * xrds_nl_news_up - a connection has come up
 * @conn: connection
 *
 * Context: the connection's work.
 */
void xrds_nl_news_up(struct xrds_conn *conn)
{
	xrds_nl_news_tell(conn, XRDS_CMD_CONN_UP_NTF, XRDS_DOWN_REASON_NONE, 0);
}

/**
 * xrds_nl_news_down - a connection that was up is about to lose its endpoint
 * @conn: connection
 * @reason: enum xrds_down_reason
 * @error: with XRDS_DOWN_REASON_LOST, negative errno
 *
 * Context: the connection's work.
 */
void xrds_nl_news_down(struct xrds_conn *conn, unsigned int reason, int error)
{
	xrds_nl_news_tell(conn, XRDS_CMD_CONN_DOWN_NTF, reason, error);
}

/**
 * xrds_nl_news_peer - a node has gone down, or come up
 * @peer: the node
 * @state: enum xrds_peer_state, as it is told
 *
 * Context: process, without L6.
 */
void xrds_nl_news_peer(struct xrds_peer *peer, u32 state)
{
	struct net *net = peer->xn->net;
	struct sk_buff *skb;
	bool full = false;
	void *hdr;

	if (!xrds_nl_news_listened(net))
		return;
	skb = xrds_nl_news_begin(XRDS_CMD_PEER_NTF, &hdr);
	if (skb)
		full = !hdr || xrds_nl_peer_fill(skb, peer, state);
	xrds_nl_news_send(net, skb, hdr, full);
}
