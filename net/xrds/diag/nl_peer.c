// SPDX-License-Identifier: GPL-2.0-only
/*
 * A node at the other end of connections as netlink shows it.
 */
#include "diag/netlink.h"

/* programs compare the states with enum xrds_node_state of <linux/xrds.h> */
static_assert((int)XRDS_PEER_STATE_UP == (int)XRDS_NODE_UP);
static_assert((int)XRDS_PEER_STATE_DOWN == (int)XRDS_NODE_DOWN);
static_assert((int)XRDS_PEER_STATE_REBORN == (int)XRDS_NODE_REBORN);

static bool xrds_nl_peer_put_ms(struct sk_buff *skb, int attr, u64 ns)
{
	return nla_put_u64_64bit(skb, attr, div_u64(ns, NSEC_PER_MSEC),
				 XRDS_A_PEER_PAD);
}

static bool xrds_nl_peer_put_state(struct sk_buff *skb,
				   const struct xrds_peer *peer, u32 state)
{
	u64 now = ktime_get_ns();

	lockdep_assert_held(&peer->xn->peer_lock);

	return nla_put_u32(skb, XRDS_A_PEER_STATE, state ?: peer->state) ||
	       xrds_nl_peer_put_ms(skb, XRDS_A_PEER_SINCE_MS,
				   now - peer->since_ns) ||
	       (peer->reason &&
		nla_put_u32(skb, XRDS_A_PEER_REASON, peer->reason)) ||
	       nla_put_u32(skb, XRDS_A_PEER_CONNS, peer->nr_conns) ||
	       nla_put_u32(skb, XRDS_A_PEER_UP_CONNS, peer->nr_up) ||
	       nla_put_u32(skb, XRDS_A_PEER_WATCHES, peer->nr_watches) ||
	       (peer->state == XRDS_PEER_STATE_DOWN &&
		xrds_nl_peer_put_ms(skb, XRDS_A_PEER_SILENT_MS,
				    now - peer->heard_ns)) ||
	       (peer->state == XRDS_PEER_STATE_UP && peer->outage_ns &&
		xrds_nl_peer_put_ms(skb, XRDS_A_PEER_OUTAGE_MS,
				    peer->outage_ns));
}

/**
 * xrds_nl_peer_fill - put the attributes of a peer
 * @skb: message
 * @peer: peer
 * @state: enum xrds_peer_state to show in the place of its own; 0: its own
 *
 * Context: any, without L6.
 * Return: 0 or -EMSGSIZE.
 */
int xrds_nl_peer_fill(struct sk_buff *skb, struct xrds_peer *peer, u32 state)
{
	const struct xrds_peer_key *key = &peer->key;
	bool full;

	spin_lock_bh(&peer->xn->peer_lock);
	full = xrds_nl_peer_put_state(skb, peer, state);
	spin_unlock_bh(&peer->xn->peer_lock);
	if (full || nla_put_in6_addr(skb, XRDS_A_PEER_LADDR, &key->laddr) ||
	    nla_put_in6_addr(skb, XRDS_A_PEER_FADDR, &key->faddr) ||
	    (key->scope && nla_put_u32(skb, XRDS_A_PEER_SCOPE, key->scope)))
		return -EMSGSIZE;
	return 0;
}
