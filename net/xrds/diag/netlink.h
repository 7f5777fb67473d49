/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the files of the generic netlink family.
 */
#ifndef _XRDS_NETLINK_H
#define _XRDS_NETLINK_H

#if XRDS_LEVEL < 5
#error "for diag/ and the folders above, see Kbuild"
#endif

#include <linux/xrds_netlink.h>
#include <net/genetlink.h>

#include "conn/conn.h"
#include "sock/dest.h"
#include "rdma/rdma.h"
#include "sock/sock.h"
#include "transport.h"
#include "xrds.h"

/* netlink.c */
extern struct genl_family xrds_netlink_family;

/* multicast groups, in the family's order */
enum { XRDS_NL_GROUP_CONN };

/**
 * struct xrds_nl_view - the objects that a requester may see
 * @xn:		namespace
 * @admin:	all objects there
 * @uid:	else those of this user
 * @user_ns:	user ids are shown as this namespace has them
 */
struct xrds_nl_view {
	struct xrds_net *xn;
	struct user_namespace *user_ns;
	bool admin;
	kuid_t uid;
};

static inline bool xrds_nl_sees(const struct xrds_nl_view *view,
				const struct xrds_sock *xs)
{
	return view->admin || uid_eq(view->uid, xs->uid);
}

/* End a row: with @full there was no room for it, and it is taken back. */
static inline int xrds_nl_dump_end(struct sk_buff *skb, void *hdr, bool full)
{
	if (full) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

/* nl_dump.c */
void *xrds_nl_dump_put(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd);
int xrds_nl_dump_socks(struct sk_buff *skb, struct netlink_callback *cb);
int xrds_nl_dump_nodes(struct sk_buff *skb, struct netlink_callback *cb);
int xrds_nl_dump_start_table(struct netlink_callback *cb);
int xrds_nl_dump_table(struct sk_buff *skb, struct netlink_callback *cb);
int xrds_nl_dump_done_table(struct netlink_callback *cb);

/* nl_status.c */
int xrds_nl_status_dump_features(struct sk_buff *skb, struct netlink_callback *cb);
int xrds_nl_status_dump(struct sk_buff *skb, struct netlink_callback *cb);

/* nl_conn.c */
int xrds_nl_conn_fill(struct sk_buff *skb, struct xrds_conn *conn, bool admin);
int xrds_nl_conn_fill_past(struct sk_buff *skb, const struct xrds_conn *conn);

/* nl_peer.c */
int xrds_nl_peer_fill(struct sk_buff *skb, struct xrds_peer *peer, u32 state);

#endif /* _XRDS_NETLINK_H */
