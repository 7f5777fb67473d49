// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDS_INFO_*_MESSAGES: messages, in rows.
 *
 * A queue may be very long, and its lock is wanted for each message that comes and
 * goes. So a hold of the lock looks at XRDS_DUMP_BATCH messages, and the walk keeps
 * a reference on the last one. Messages ascend in numbers along the list: those of
 * a flow in the order in which they were queued (stamp), those in a receive queue
 * in the order in which they came (nr). When the last one has left the list
 * meanwhile, the walk begins at the front and passes over lower numbers, which are
 * mostly gone, too. So a message that stays has one row. The walk ends at the
 * message that was the last one when it began, however many come.
 *
 * Messages on their way out are on the lists of a connection, and move between
 * them. But each is on that of its flow, too, and stays there until it ends.
 */
#include "conn/conn.h"
#include "msg.h"
#include "sock/sock.h"
#include "xrds.h"

/**
 * struct xrds_msg_row - a message, as both forms of the dump have it
 * @laddr:	address on this node
 * @faddr:	the other one
 * @lport:	port on this node
 * @fport:	the other one
 * @seq:	sequence number
 * @len:	payload, bytes
 * @tos:	type of service
 */
struct xrds_msg_row {
	const struct in6_addr *laddr;
	const struct in6_addr *faddr;
	u16 lport;
	u16 fport;
	u64 seq;
	u32 len;
	u8 tos;
};

static void xrds_dump_msg(struct xrds_dump *d, const struct xrds_msg_row *m)
{
	struct rds6_info_message *row6 = xrds_dump_row(d);
	struct rds_info_message *row4 = (void *)row6;

	if (!row6)
		return;
	if (d->v6) {
		row6->seq = m->seq;
		row6->len = m->len;
		row6->laddr = *m->laddr;
		row6->faddr = *m->faddr;
		row6->lport = htons(m->lport);
		row6->fport = htons(m->fport);
		row6->tos = m->tos;
	} else {
		row4->seq = m->seq;
		row4->len = m->len;
		row4->laddr = m->laddr->s6_addr32[3];
		row4->faddr = m->faddr->s6_addr32[3];
		row4->lport = htons(m->lport);
		row4->fport = htons(m->fport);
		row4->tos = m->tos;
	}
}

/* The number that a message will get, if all are sent in the order in which they
 * were queued.
 */
static u64 xrds_dump_next_seq(const struct xrds_conn *conn,
			      const struct xrds_msg *msg)
{
	u64 sent = conn->stamp - conn->nr_new;

	return conn->tx_seq + (msg->stamp > sent ? msg->stamp - sent : 1);
}

/* ------------------------------------------------------ on their way out */

/**
 * struct xrds_dump_out - a walk of the messages of a connection
 * @d:		the dump
 * @conn:	connection, with a reference
 * @inflight:	those that have a number; else those that have none
 * @msg:	the last message, with a reference; NULL: begin at the front
 * @stamp:	its stamp
 * @end:	stamp of the last message to look at
 */
struct xrds_dump_out {
	struct xrds_dump *d;
	struct xrds_conn *conn;
	bool inflight;
	struct xrds_msg *msg;
	u64 stamp;
	u64 end;
};

/* Ends of streams are no messages of a program. */
static void xrds_dump_out_row(struct xrds_dump_out *w,
			      const struct xrds_msg *msg)
{
	struct xrds_conn *conn = w->conn;
	struct xrds_msg_row row = {
		.laddr	= &conn->key.laddr,
		.faddr	= &conn->key.faddr,
		.tos	= conn->key.tos,
		.seq	= msg->seq ?: xrds_dump_next_seq(conn, msg),
		.len	= msg->len,
		.lport	= msg->sport,
		.fport	= msg->dport,
	};

	lockdep_assert_held(&conn->lock);

	if (!!msg->seq == w->inflight && !(msg->flags & XRDS_F_EOS))
		xrds_dump_msg(w->d, &row);
}

/* The message to go on with, which may be the list's head */
static struct xrds_msg *xrds_dump_out_at(struct xrds_dump_out *w,
					 struct xrds_flow *flow)
{
	if (w->msg && !list_empty(&w->msg->flow_node))
		return list_next_entry(w->msg, flow_node);
	return list_first_entry(&flow->msgs, struct xrds_msg, flow_node);
}

/* Some messages of a flow. Returns whether there may be more. */
static bool xrds_dump_out_some(struct xrds_dump_out *w, struct xrds_flow *flow)
{
	struct xrds_msg *msg, *last = NULL;
	u32 n = 0;

	spin_lock_bh(&w->conn->lock);
	/* else it has left a dead connection, and so have its messages */
	if (flow->conn == w->conn) {
		msg = xrds_dump_out_at(w, flow);
		list_for_each_entry_from(msg, &flow->msgs, flow_node) {
			if (n == XRDS_DUMP_BATCH ||
			    msg->stamp > w->end)
				break;
			if (msg->stamp > w->stamp) {
				xrds_dump_out_row(w, msg);
				w->stamp = msg->stamp;
			}
			last = msg;
			n++;
		}
	}
	if (last)
		xrds_msg_get(last);
	spin_unlock_bh(&w->conn->lock);
	xrds_hold_count(XRDS_HOLD_DUMP, n);
	if (w->msg)
		xrds_msg_put(w->msg);
	w->msg = last;
	return n == XRDS_DUMP_BATCH;
}

static void xrds_dump_out_flow(struct xrds_dump_out *w, struct xrds_flow *flow)
{
	w->stamp = 0;
	while (xrds_dump_out_some(w, flow))
		cond_resched();
	if (w->msg)
		xrds_msg_put(w->msg);
	w->msg = NULL;
}

static int xrds_dump_out(struct xrds_dump *d, bool inflight)
{
	struct xrds_dump_out w = { .d = d, .inflight = inflight };
	struct xrds_flow *flow;

	while ((w.conn = xrds_conn_net_walk(d->xn, w.conn))) {
		if (!xrds_dump_takes(d, &w.conn->key.laddr))
			continue;
		spin_lock_bh(&w.conn->lock);
		w.end = w.conn->stamp;
		spin_unlock_bh(&w.conn->lock);
		xrds_dump_out_flow(&w, w.conn->own);
		flow = NULL;
		while ((flow = xrds_flow_walk(w.conn, flow))) {
			xrds_dump_out_flow(&w, flow);
			cond_resched();
		}
	}
	return 0;
}

/**
 * xrds_opt_info_msg_send - messages that have no number yet
 * @d: dump
 *
 * Context: process, may sleep.
 * Return: 0.
 */
int xrds_opt_info_msg_send(struct xrds_dump *d)
{
	return xrds_dump_out(d, false);
}

/**
 * xrds_opt_info_msg_retrans - messages that have one, and no acknowledgment
 * @d: dump
 *
 * Context: process, may sleep.
 * Return: 0.
 */
int xrds_opt_info_msg_retrans(struct xrds_dump *d)
{
	return xrds_dump_out(d, true);
}

/* ------------------------------------------------------- on their way in */

/**
 * struct xrds_dump_in - a walk of a receive queue
 * @d:		the dump
 * @xs:		socket, with a reference
 * @skb:	the last message, with a reference; NULL: begin at the front
 * @nr:		its number
 * @end:	number of the last message to look at
 */
struct xrds_dump_in {
	struct xrds_dump *d;
	struct xrds_sock *xs;
	struct sk_buff *skb;
	u32 nr;
	u32 end;
};

/* Ends of streams are no messages of a program. */
static void xrds_dump_in_row(struct xrds_dump_in *w, struct sk_buff *skb)
{
	const struct xrds_skb_cb *cb = xrds_skb(skb);
	struct xrds_msg_row row = {
		.laddr	= &w->xs->bind.addr,
		.lport	= w->xs->bind.port,
		.faddr	= &cb->saddr,
		.fport	= cb->sport,
		.seq	= xrds_skb_trace(skb)->seq,
		.tos	= xrds_skb_trace(skb)->tos,
		.len	= cb->len,
	};

	if (!(cb->flags & XRDS_F_EOS))
		xrds_dump_msg(w->d, &row);
}

/* Some messages of a socket. Returns whether there may be more. */
static bool xrds_dump_in_some(struct xrds_dump_in *w)
{
	struct sk_buff_head *queue = &w->xs->sk.sk_receive_queue;
	struct sk_buff *skb, *last = NULL;
	u32 n = 0, nr;

	spin_lock_bh(&queue->lock);
	/* A message that is not in the queue is on no list. One that a reader has
	 * put back is at the front, with the lowest number: those before the
	 * last one come again.
	 */
	skb = w->skb && w->skb->next ? w->skb->next : queue->next;
	skb_queue_walk_from(queue, skb) {
		nr = xrds_skb(skb)->nr;
		if (n == XRDS_DUMP_BATCH || (s32)(nr - w->end) > 0)
			break;
		if ((s32)(nr - w->nr) > 0) {
			xrds_dump_in_row(w, skb);
			w->nr = nr;
		}
		last = skb;
		n++;
	}
	if (last)
		skb_get(last);
	spin_unlock_bh(&queue->lock);
	xrds_hold_count(XRDS_HOLD_DUMP, n);
	consume_skb(w->skb);
	w->skb = last;
	return n == XRDS_DUMP_BATCH;
}

static void xrds_dump_in_sock(struct xrds_dump_in *w)
{
	spin_lock_bh(&w->xs->sk.sk_receive_queue.lock);
	w->end = w->xs->rcv_nr;
	spin_unlock_bh(&w->xs->sk.sk_receive_queue.lock);
	w->nr = w->end - S32_MAX;
	while (xrds_dump_in_some(w))
		cond_resched();
	consume_skb(w->skb);
	w->skb = NULL;
}

/**
 * xrds_opt_info_msg_recv - messages that were not read
 * @d: dump
 *
 * Context: process, may sleep.
 * Return: 0.
 */
int xrds_opt_info_msg_recv(struct xrds_dump *d)
{
	struct xrds_dump_in w = { .d = d };

	while ((w.xs = xrds_walk_sock(d->xn, w.xs))) {
		if (xrds_sk_bound(w.xs) &&
		    xrds_dump_takes(d, &w.xs->bind.addr))
			xrds_dump_in_sock(&w);
	}
	return 0;
}
