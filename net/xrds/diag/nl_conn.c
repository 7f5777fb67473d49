// SPDX-License-Identifier: GPL-2.0-only
/*
 * A connection as netlink shows it.
 *
 * The transport describes its endpoint (detail()), in terms of the core, while
 * tx_lock keeps the endpoint. The rest is read without a lock: each number is
 * right at some moment, and they need not be of the same one.
 */
#include "diag/netlink.h"

/* the specification has the states in the order of list_states.h */
static_assert((int)XRDS_ST_UP == (int)XRDS_CONN_STATE_UP);
static_assert((int)XRDS_ST_DEAD == (int)XRDS_CONN_STATE_DEAD);

/**
 * struct xrds_nl_conn - what is read under locks
 * @waiting:	messages wait to be posted
 * @tx_seq:	last sequence number given out
 * @acked:	highest acknowledgment taken
 * @tx_bytes:	payload that was sent
 * @queued:	messages that have not ended
 * @has_ep:	there is an endpoint, and @d is valid
 * @d:		the transport's description of it
 */
struct xrds_nl_conn {
	bool waiting;
	u64 tx_seq;
	u64 acked;
	u64 tx_bytes;
	u32 queued;
	bool has_ep;
	struct xrds_conn_detail d;
};

static void xrds_nl_conn_read(struct xrds_conn *conn, struct xrds_nl_conn *c)
{
	u32 state;

	spin_lock_bh(&conn->tx_lock);
	c->tx_seq = READ_ONCE(conn->tx_seq);
	/* complete once hello was sent, which was under the lock too */
	state = READ_ONCE(conn->state);
	if (conn->ep && conn->trans->detail && state >= XRDS_ST_WAIT_CTS) {
		c->has_ep = true;
		conn->trans->detail(conn, &c->d);
	}
	spin_unlock_bh(&conn->tx_lock);

	spin_lock_bh(&conn->lock);
	c->acked = conn->acked;
	c->tx_bytes = conn->tx_bytes;
	c->queued = conn->nr_msgs;
	c->waiting = conn->nr_new || !list_empty(&conn->again);
	spin_unlock_bh(&conn->lock);
}

static u32 xrds_nl_conn_flags(const struct xrds_conn *conn,
			      const struct xrds_nl_conn *c)
{
	return (READ_ONCE(conn->dialled) ? XRDS_CONN_FLAG_DIALLED : 0) |
	       (READ_ONCE(conn->failed) ? XRDS_CONN_FLAG_FAILED : 0) |
	       (READ_ONCE(conn->legacy.on) ? XRDS_CONN_FLAG_CLASSIC : 0) |
	       (c->waiting ? XRDS_CONN_FLAG_WAITING : 0) |
	       (c->d.shared_rq ? XRDS_CONN_FLAG_SHARED_RQ : 0);
}

static bool xrds_nl_conn_put_key(struct sk_buff *skb,
				 const struct xrds_conn *conn)
{
	const struct xrds_conn_key *key = &conn->key;

	return nla_put_in6_addr(skb, XRDS_A_CONN_LADDR, &key->laddr) ||
	       nla_put_in6_addr(skb, XRDS_A_CONN_FADDR, &key->faddr) ||
	       (key->scope &&
		nla_put_u32(skb, XRDS_A_CONN_SCOPE, key->scope)) ||
	       nla_put_u8(skb, XRDS_A_CONN_TOS, key->tos) ||
	       nla_put_u8(skb, XRDS_A_CONN_LANE, key->lane) ||
	       nla_put_string(skb, XRDS_A_CONN_TRANSPORT, conn->trans->name);
}

static bool xrds_nl_conn_put_detail(struct sk_buff *skb,
				    const struct xrds_conn_detail *d,
				    bool admin)
{
	return nla_put_string(skb, XRDS_A_CONN_DEVICE, d->device) ||
	       (admin && nla_put_u32(skb, XRDS_A_CONN_QPN, d->qpn)) ||
	       (admin && d->peer_qpn &&
		nla_put_u32(skb, XRDS_A_CONN_PEER_QPN, d->peer_qpn)) ||
	       (d->version &&
		nla_put_u32(skb, XRDS_A_CONN_VERSION, d->version)) ||
	       (d->mtu && nla_put_u32(skb, XRDS_A_CONN_MTU, d->mtu)) ||
	       nla_put_u32(skb, XRDS_A_CONN_FRAGMENT, d->fragment) ||
	       nla_put_u32(skb, XRDS_A_CONN_SEND_SLOTS, d->send_slots) ||
	       nla_put_u32(skb, XRDS_A_CONN_SEND_USED, d->send_used) ||
	       nla_put_u32(skb, XRDS_A_CONN_CREDITS, d->credits) ||
	       nla_put_u32(skb, XRDS_A_CONN_RECV_WINDOW, d->recv_window) ||
	       nla_put_u32(skb, XRDS_A_CONN_RETRY_COUNT, d->retry_count) ||
	       (d->rtt_ns && nla_put_u64_64bit(skb, XRDS_A_CONN_RTT_NS,
					       d->rtt_ns, XRDS_A_CONN_PAD));
}

static bool xrds_nl_conn_put_ms(struct sk_buff *skb, int attr,
				unsigned long since)
{
	return nla_put_u64_64bit(skb, attr,
				 jiffies64_to_msecs(jiffies - since),
				 XRDS_A_CONN_PAD);
}

static bool xrds_nl_conn_put_sent(struct sk_buff *skb,
				  const struct xrds_conn *conn,
				  const struct xrds_nl_conn *c)
{
	return nla_put_u64_64bit(skb, XRDS_A_CONN_TX_SEQ, c->tx_seq,
				 XRDS_A_CONN_PAD) ||
	       nla_put_u64_64bit(skb, XRDS_A_CONN_ACKED_SEQ, c->acked,
				 XRDS_A_CONN_PAD) ||
	       nla_put_u64_64bit(skb, XRDS_A_CONN_RX_SEQ,
				 READ_ONCE(conn->rx_next) - 1,
				 XRDS_A_CONN_PAD) ||
	       nla_put_u64_64bit(skb, XRDS_A_CONN_TX_BYTES, c->tx_bytes,
				 XRDS_A_CONN_PAD) ||
	       nla_put_u64_64bit(skb, XRDS_A_CONN_RX_BYTES,
				 READ_ONCE(conn->rx_bytes), XRDS_A_CONN_PAD) ||
	       nla_put_u32(skb, XRDS_A_CONN_QUEUED_MSGS, c->queued);
}

/**
 * xrds_nl_conn_fill - put the attributes of a connection
 * @skb: message
 * @conn: connection
 * @admin: all of them
 *
 * Context: any, without locks of the connection.
 * Return: 0 or -EMSGSIZE.
 */
int xrds_nl_conn_fill(struct sk_buff *skb, struct xrds_conn *conn, bool admin)
{
	u32 state = READ_ONCE(conn->state);
	struct xrds_nl_conn c = {};

	xrds_nl_conn_read(conn, &c);
	if (xrds_nl_conn_put_key(skb, conn) ||
	    nla_put_u32(skb, XRDS_A_CONN_STATE, state) ||
	    nla_put_u32(skb, XRDS_A_CONN_FLAGS, xrds_nl_conn_flags(conn, &c)) ||
	    nla_put_u32(skb, XRDS_A_CONN_RETRIES, READ_ONCE(conn->retries)) ||
	    nla_put_u32(skb, XRDS_A_CONN_LOST, READ_ONCE(conn->nr_lost)) ||
	    (state == XRDS_ST_UP &&
	     xrds_nl_conn_put_ms(skb, XRDS_A_CONN_UP_MS,
				 READ_ONCE(conn->up_at))) ||
	    xrds_nl_conn_put_sent(skb, conn, &c))
		return -EMSGSIZE;
	if (c.has_ep && xrds_nl_conn_put_detail(skb, &c.d, admin))
		return -EMSGSIZE;
	return 0;
}

/**
 * xrds_nl_conn_fill_past - put what has happened to a connection before
 * @skb: message
 * @conn: connection
 *
 * Context: any.
 * Return: 0 or -EMSGSIZE.
 */
int xrds_nl_conn_fill_past(struct sk_buff *skb, const struct xrds_conn *conn)
{
	u32 dials = READ_ONCE(conn->nr_dials), reason = READ_ONCE(conn->down_by);
	int error = READ_ONCE(conn->failed_by);

	if (nla_put_u32(skb, XRDS_A_CONN_ATTEMPTS, dials) ||
	    (dials && xrds_nl_conn_put_ms(skb, XRDS_A_CONN_ATTEMPT_MS,
					  READ_ONCE(conn->dialled_at))) ||
	    (reason && nla_put_u32(skb, XRDS_A_CONN_REASON, reason)) ||
	    (error && (nla_put_u32(skb, XRDS_A_CONN_ERROR, -error) ||
		       xrds_nl_conn_put_ms(skb, XRDS_A_CONN_FAILED_MS,
					   READ_ONCE(conn->failed_at)))))
		return -EMSGSIZE;
	return 0;
}
