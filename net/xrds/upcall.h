/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Upcalls: calls from connections up to sockets and observers.
 *
 * The functions are in sock/, rdma/ and diag/, above the code that calls them.
 * This is the only header of theirs that conn/ sees. Transports call none of
 * them: they tell the connection (transport.h).
 */
#ifndef _XRDS_UPCALL_H
#define _XRDS_UPCALL_H

#include "xrds.h"

/* ---------------------------------------------------------------- sock/ */

/* a message has come */
enum xrds_counter xrds_recv_deliver(struct xrds_conn *conn,
				    const struct xrds_wire_msg *wm,
				    struct sk_buff *skb);
/* messages have ended; the last reference on one is dropped */
void xrds_upcall_msgs_done(struct xrds_net *xn, struct list_head *list,
			   enum xrds_counter fate, s32 status);
void xrds_upcall_msg_free(struct xrds_msg *msg);
/* what is at a local port? is there a socket at an address? */
struct xrds_port *xrds_bind_port(struct xrds_net *xn,
				 const struct in6_addr *addr, u32 scope,
				 u16 port);
bool xrds_bind_used(struct xrds_net *xn, const struct in6_addr *addr);
/* a peer's port is clear, or was never refused by it */
__poll_t xrds_space_uncongested(struct xrds_flow *flow, bool waiting);
void xrds_space_wake(struct xrds_flow *flow, __poll_t mask);
/* is a message of this length to ask for an acknowledgment? */
bool xrds_space_ack_wanted(struct xrds_flow *flow, u32 len);
/* the last reference on a flow is dropped */
void xrds_dest_free(struct xrds_flow *flow);
/* a peer has come back without its sockets */
void xrds_source_lost_work(struct work_struct *work);

/* a node has gone down, or come up */
void xrds_node_tell(struct xrds_peer *peer);

/* ---------------------------------------------------------------- rdma/ */

void xrds_rop_issue(struct xrds_rop *rop);
/* the order of ops of one socket toward one node */
bool xrds_rop_first(const struct xrds_rop *rop);
struct xrds_flow *xrds_rop_pass(struct xrds_rop *rop,
				const struct xrds_conn *conn);

/* ---------------------------------------------------------------- diag/ */

void xrds_nl_news_up(struct xrds_conn *conn);
void xrds_nl_news_down(struct xrds_conn *conn, unsigned int reason, int error);
void xrds_nl_news_peer(struct xrds_peer *peer, u32 state);

#endif /* _XRDS_UPCALL_H */
