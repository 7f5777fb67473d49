// SPDX-License-Identifier: GPL-2.0-only
/*
 * Refused messages: a receiver that has no room costs its own senders time, and
 * nobody else anything. Documentation/xrds-wire.rst has the rules.
 *
 * Receiving side. A message that its socket cannot take (rcvbuf.c) is dropped,
 * and its number counts as received. A refusal remembers the stream and that
 * number, and everything behind it in the stream is dropped as well, until a
 * message comes with XRDS_F_RESUME.
 *
 *   noted (conn->refused_due) -> told (conn->refused) -> ended by a message
 *              ^                       |
 *              +------- reconnect -----+
 *
 * No acknowledgment covers a number before the peer was told of its refusal
 * (xrds_refuse_ack()). Both lists are in the order of numbers. The state of the
 * port is told behind each refusal, so that the sender hears when to go on. A
 * refusal goes with its connection, or when the peer is another one. Without
 * memory for one the connection is reset, and nothing is acknowledged.
 *
 * Sending side. The messages of the stream from that number on go back to the
 * head of their flow's queue, the gate of the port is shut, and the flow's next
 * message says that it ends the refusal.
 *
 * conn->lock guards all of it.
 */
#include "conn/conn.h"
#include "msg.h"
#include "tracepoints.h"
#include "xrds.h"

enum {
	/* streams of one peer that are refused; with more it is reset */
	XRDS_REFUSE_MAX		= 16384,
	/* so many are remembered also when the namespace has too many */
	XRDS_REFUSE_LEAST	= 16,
};

/**
 * struct xrds_refusal - a stream of the peer that is refused
 * @part:	by both ports
 * @node:	in conn->refused or conn->refused_due
 * @seq:	number of the first refused message
 */
struct xrds_refusal {
	struct xrds_part part;
	struct list_head node;
	u64 seq;
};

/* The lowest number that the peer was not told of yet; 0: none */
static void xrds_refuse_set_floor(struct xrds_conn *conn)
{
	struct xrds_refusal *r;

	lockdep_assert_held(&conn->lock);

	r = list_first_entry_or_null(&conn->refused_due, struct xrds_refusal,
				     node);
	WRITE_ONCE(conn->refused_floor, r ? r->seq : 0);
}

static void xrds_refuse_free(struct xrds_conn *conn, struct xrds_refusal *r)
{
	list_del(&r->node);
	conn->nr_refused_streams--;
	xrds_limit_uncharge(conn->xn, NULL, XRDS_LIMIT_SOURCES,
			    XRDS_REFUSAL_COST_BYTES);
	xrds_part_put(&r->part);
}

/* ------------------------------------------------------ receiving side */

static struct xrds_refusal *xrds_refuse_find(struct xrds_conn *conn,
					     const struct xrds_wire_msg *wm)
{
	struct xrds_part *part;

	part = xrds_part_find(conn, XRDS_PART_REFUSAL,
			      xrds_part_ports(wm->sport, wm->dport));
	return part ? container_of(part, struct xrds_refusal, part) : NULL;
}

/**
 * xrds_refuse_drops - is a message of a stream that is refused?
 * @conn: connection
 * @wm: its header; if it ends the refusal the answer is no
 *
 * Context: the receive path.
 * Return: whether it is, and to be dropped.
 */
bool xrds_refuse_drops(struct xrds_conn *conn, const struct xrds_wire_msg *wm)
{
	struct xrds_refusal *r;
	bool drops;

	/* written by this path */
	if (likely(!READ_ONCE(conn->nr_refused_streams)))
		return false;
	spin_lock_bh(&conn->lock);
	r = xrds_refuse_find(conn, wm);
	drops = r && !(wm->flags & XRDS_F_RESUME);
	if (r && !drops) {
		xrds_refuse_free(conn, r);
		xrds_refuse_set_floor(conn);
	}
	spin_unlock_bh(&conn->lock);
	return drops;
}

/* The peer decides how many there are, for sockets of any user. */
static struct xrds_refusal *xrds_refuse_alloc(struct xrds_conn *conn,
					      const struct xrds_wire_msg *wm)
{
	struct xrds_part *part;

	lockdep_assert_held(&conn->lock);

	if (conn->nr_refused_streams >= XRDS_REFUSE_MAX)
		return NULL;
	if (conn->nr_refused_streams < XRDS_REFUSE_LEAST)
		xrds_limit_change(conn->xn, NULL, XRDS_LIMIT_SOURCES,
				  XRDS_REFUSAL_COST_BYTES);
	else if (xrds_limit_charge(conn->xn, NULL, XRDS_LIMIT_SOURCES,
				   XRDS_REFUSAL_COST_BYTES))
		return NULL;
	part = xrds_part_make(conn, XRDS_PART_REFUSAL,
			      xrds_part_ports(wm->sport, wm->dport),
			      sizeof(struct xrds_refusal));
	if (part)
		return container_of(part, struct xrds_refusal, part);
	xrds_limit_uncharge(conn->xn, NULL, XRDS_LIMIT_SOURCES,
			    XRDS_REFUSAL_COST_BYTES);
	return NULL;
}

/**
 * xrds_refuse_note - refuse a message, and those behind it in its stream
 * @conn: connection
 * @wm: its header; its number is not acknowledged yet
 *
 * Context: the receive path.
 * Return: false without memory, or when there are too many.
 */
bool xrds_refuse_note(struct xrds_conn *conn, const struct xrds_wire_msg *wm)
{
	struct xrds_refusal *r;

	spin_lock_bh(&conn->lock);
	r = xrds_refuse_alloc(conn, wm);
	if (r) {
		r->seq = wm->seq;
		list_add_tail(&r->node, &conn->refused_due);
		WRITE_ONCE(conn->nr_refused_streams,
			   conn->nr_refused_streams + 1);
		xrds_refuse_set_floor(conn);
	}
	spin_unlock_bh(&conn->lock);
	return r;
}

/* The next refusals that the peer is to be told. Returns how many. */
static u32 xrds_refuse_collect(struct xrds_conn *conn,
			       struct xrds_wire_refused *list)
{
	struct xrds_refusal *r;
	u32 nr = 0;

	spin_lock(&conn->lock);
	list_for_each_entry(r, &conn->refused_due, node) {
		if (nr == XRDS_WIRE_REFUSED_MAX_ENTRIES)
			break;
		list[nr].seq = r->seq;
		list[nr].sport = r->part.key.id >> 16;
		list[nr++].dport = r->part.key.id & U16_MAX;
	}
	spin_unlock(&conn->lock);
	return nr;
}

/* It was told these. One may have ended meanwhile. */
static void xrds_refuse_told(struct xrds_conn *conn,
			     const struct xrds_wire_refused *list, u32 nr)
{
	struct xrds_refusal *r;
	u32 i;

	spin_lock(&conn->lock);
	for (i = 0; i < nr; i++) {
		r = list_first_entry_or_null(&conn->refused_due,
					     struct xrds_refusal, node);
		if (r && r->seq == list[i].seq)
			list_move_tail(&r->node, &conn->refused);
	}
	xrds_refuse_set_floor(conn);
	spin_unlock(&conn->lock);
	xrds_count_add(conn->xn, XRDS_C_SEND_REFUSAL, nr);
}

/**
 * xrds_refuse_xmit - tell the peer of refusals
 * @conn: connection
 *
 * Context: the pump, tx_lock held.
 * Return: 0, or the error of the transport's xmit_ctl().
 */
int xrds_refuse_xmit(struct xrds_conn *conn)
{
	struct xrds_wire_refused list[XRDS_WIRE_REFUSED_MAX_ENTRIES];
	u8 buf[XRDS_WIRE_REFUSED_MAX_ENTRIES * XRDS_WIRE_REFUSED_BYTES];
	u32 i, nr;
	int ret;

	lockdep_assert_held(&conn->tx_lock);
	BUILD_BUG_ON(sizeof(buf) > XRDS_CTL_INLINE_BYTES);

	while (unlikely(READ_ONCE(conn->refused_floor))) {
		nr = xrds_refuse_collect(conn, list);
		/* the last one has just ended */
		if (!nr)
			break;
		for (i = 0; i < nr; i++)
			xrds_wire_refused_put(buf, i, &list[i]);
		ret = conn->trans->xmit_ctl(conn, XRDS_CTL_REFUSED, buf,
					    nr * XRDS_WIRE_REFUSED_BYTES);
		if (ret)
			return ret;
		xrds_refuse_told(conn, list, nr);
		/* the sender is to hear when the port is open, or that it is */
		for (i = 0; i < nr; i++)
			xrds_cong_mark(conn, list[i].dport);
	}
	return 0;
}

/**
 * xrds_refuse_close - an endpoint ends: the next one tells all refusals again
 * @conn: connection
 *
 * Context: the connection's work; nothing is received any more.
 */
void xrds_refuse_close(struct xrds_conn *conn)
{
	spin_lock_bh(&conn->lock);
	list_splice_init(&conn->refused, &conn->refused_due);
	xrds_refuse_set_floor(conn);
	spin_unlock_bh(&conn->lock);
}

/**
 * xrds_refuse_forget - the peer is another one, or the connection is dead
 * @conn: connection
 *
 * Context: any, without L3; no message is received meanwhile.
 */
void xrds_refuse_forget(struct xrds_conn *conn)
{
	struct xrds_refusal *r;
	u32 n;

	do {
		n = 0;
		spin_lock_bh(&conn->lock);
		list_splice_tail_init(&conn->refused, &conn->refused_due);
		while (n < XRDS_END_BATCH && !list_empty(&conn->refused_due)) {
			r = list_first_entry(&conn->refused_due,
					     struct xrds_refusal, node);
			xrds_refuse_free(conn, r);
			n++;
		}
		xrds_refuse_set_floor(conn);
		spin_unlock_bh(&conn->lock);
		xrds_hold_count(XRDS_HOLD_END, n);
	} while (n == XRDS_END_BATCH);
}

/* -------------------------------------------------------- sending side */

/* The messages of a flow from this number on go back to its queue. */
static u32 xrds_refuse_flow(struct xrds_conn *conn, struct xrds_flow *flow,
			    u64 seq)
{
	struct xrds_msg *msg, *last = NULL;
	u32 n = 0;

	/* not more than a stream may have in flight */
	list_for_each_entry(msg, &flow->msgs, flow_node) {
		if (!msg->inflight)
			break;
		last = msg;
	}
	msg = last;
	if (!msg)
		return 0;
	/* the youngest first: each goes in front of the one before */
	list_for_each_entry_from_reverse(msg, &flow->msgs, flow_node) {
		if (msg->seq < seq)
			break;
		xrds_txq_unsend(conn, msg);
		n++;
	}
	return n;
}

/* Has a message that ends this refusal been posted on this endpoint, in part or as
 * a whole? It and those behind it are on their way: the peer repeats an old refusal
 * after a reconnect, or was told of one in between.
 */
static bool xrds_refuse_ended(const struct xrds_conn *conn,
			      const struct xrds_stream *stream, u64 seq)
{
	const struct xrds_msg *bulk = conn->tx_bulk;

	return (stream->resumed > seq && stream->resumed_gen == conn->ep_gen) ||
	       (bulk && bulk->flags & XRDS_F_RESUME &&
		bulk->flow->stream == stream);
}

static void xrds_refuse_stream(struct xrds_conn *conn,
			       struct xrds_stream *stream, u64 seq)
{
	struct xrds_flow *flow, *last = NULL;
	u32 n = 0;

	lockdep_assert_held(&conn->lock);

	if (xrds_refuse_ended(conn, stream, seq))
		return;
	/* one that was behind another has nothing in flight, nor have those
	 * behind it, unless the message of which the transport has a part was its
	 */
	list_for_each_entry(flow, &stream->flows, stream_node) {
		if (flow->state == XRDS_FLOW_BEHIND && !flow->inflight_msgs)
			break;
		n += xrds_refuse_flow(conn, flow, seq);
		last = flow;
	}
	stream->resume = true;
	stream->refused = true;
	list_for_each_entry(flow, &stream->flows, stream_node) {
		xrds_flow_update(conn, flow);
		if (flow == last)
			break;
	}
	xrds_count_add(conn->xn, XRDS_C_SEND_REFUSED, n);
	/* as many as a stream may have in flight */
	xrds_hold_count(XRDS_HOLD_END, n);
}

static void xrds_refuse_apply(struct xrds_conn *conn,
			      const struct xrds_wire_refused *e)
{
	struct xrds_part *part;
	struct xrds_gate *gate;

	/* a message that is being posted keeps its number that long */
	spin_lock_bh(&conn->tx_lock);
	spin_lock(&conn->lock);
	gate = xrds_gate_find(conn, e->dport);
	if (gate)
		xrds_gate_close(gate);
	part = xrds_part_find(conn, XRDS_PART_STREAM,
			      xrds_part_ports(e->sport, e->dport));
	if (part)
		xrds_refuse_stream(conn, container_of(part, struct xrds_stream,
						      part), e->seq);
	spin_unlock(&conn->lock);
	spin_unlock_bh(&conn->tx_lock);
}

/**
 * xrds_refuse_recv - the peer has refused messages
 * @conn: connection
 * @skb: the list of them; consumed
 *
 * Context: the receive path.
 */
void xrds_refuse_recv(struct xrds_conn *conn, struct sk_buff *skb)
{
	struct xrds_wire_refused list[XRDS_WIRE_REFUSED_MAX_ENTRIES];
	u8 buf[XRDS_WIRE_REFUSED_MAX_ENTRIES * XRDS_WIRE_REFUSED_BYTES];
	enum xrds_wire_err err;
	int i, nr;

	nr = xrds_wire_refused_count(skb->len);
	err = nr < 0 ? -nr : XRDS_WIRE_OK;
	/* it must not fail for want of memory: the acknowledgment behind the list
	 * covers the messages that it refuses
	 */
	if (!err)
		skb_copy_bits(skb, 0, buf, nr * XRDS_WIRE_REFUSED_BYTES);
	for (i = 0; i < nr && !err; i++) {
		err = xrds_wire_refused_entry(buf, i, &list[i]);
		if (!err && list[i].seq > READ_ONCE(conn->tx_seq))
			err = XRDS_WIRE_REFUSED;
	}
	for (i = 0; i < nr && !err; i++)
		xrds_refuse_apply(conn, &list[i]);
	kfree_skb(skb);
	if (err)
		xrds_conn_wire_error(conn, READ_ONCE(conn->ep_gen), err);
}
EXPORT_SYMBOL_GPL(xrds_refuse_recv);
