// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sources: the senders that a socket has heard of, and whether their streams
 * have ended.
 *
 * When all streams have ended the socket polls EPOLLRDHUP. A source is noted
 * when its first message arrives, see srctab.c. If there is no memory for that,
 * the next one notes it. Of an open stream without a source the socket keeps a
 * fingerprint, and reports no EPOLLRDHUP until that stream sends again or ends.
 * When more than XRDS_LOST_MOST are without one it never reports it again. When a
 * node comes back without the sockets it had, the streams from it have ended, and
 * the marks for that are made here.
 *
 * Everything here is guarded by the lock of the receive queue (L5).
 */
#include "conn/conn.h"
#include "msg.h"
#include "sock/dest.h"
#include "sock/sock.h"
#include "tracepoints.h"
#include "upcall.h"
#include "xrds.h"

/* Are all streams over, as far as we know? Returns whether that is new. */
static bool xrds_source_evaluate(struct xrds_sock *xs)
{
	bool ended = xs->heard && !xs->nr_open && !xs->nr_lost;
	bool news = ended && !xs->all_ended;

	WRITE_ONCE(xs->all_ended, ended);
	return news;
}

static void xrds_source_set(struct xrds_sock *xs, struct xrds_source *src,
			    bool ended)
{
	if (src->ended == ended)
		return;
	src->ended = ended;
	xs->nr_open += ended ? -1 : 1;
	xrds_srctab_place(xs, src);
}

/* Make a mark for a stream whose node has forgotten it. As with a mark that
 * arrives, a socket that is closed or receives nothing more gets none.
 */
static void xrds_source_lost(struct xrds_sock *xs, struct xrds_source *src)
{
	struct xrds_skb_cb *cb;
	struct sk_buff *skb;

	xrds_source_set(xs, src, true);
	if (sock_flag(&xs->sk, SOCK_DEAD) ||
	    READ_ONCE(xs->sk.sk_shutdown) & RCV_SHUTDOWN)
		return;
	skb = xrds_msg_alloc_skb(0, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb) {
		xrds_count(xs->xn, XRDS_C_RECV_DROP_NO_MEM);
		return;
	}
	cb = xrds_skb(skb);
	memset(cb, 0, sizeof(*cb));
	cb->saddr = src->key.addr;
	cb->scope = src->key.scope;
	cb->sport = src->key.port;
	cb->charge = xrds_recv_charge(0);
	cb->flags = XRDS_F_EOS;
	cb->eos_reason = XRDS_EOS_LOST;
	/* the peer decides how many there are; our callers wake all */
	if (xrds_rcvbuf_overflows(xs, skb, false)) {
		xrds_rcvbuf_tell_loss(xs);
		xrds_count(xs->xn, XRDS_C_RECV_DROP_EOS);
		kfree_skb(skb);
		return;
	}
	xrds_rcvbuf_own(xs, skb);
	xrds_srcq_enqueue(xs, skb);
	WRITE_ONCE(xs->marks_passed, false);
	xrds_rcvbuf_charge_skb(xs, skb);
	xrds_count(xs->xn, XRDS_C_RECV_EOS_LOST);
}

/* Is another node there than the one that this was heard from? Legacy nodes
 * have one number, all of them.
 */
static bool xrds_source_stale(const struct xrds_source *src, u64 peer)
{
	return src->peer && peer && !src->ended &&
	       src->peer != peer;
}

/* Is a message like the one before it? Then nothing about sources changes. */
static bool xrds_source_again(const struct xrds_sock *xs,
			      const struct xrds_skb_cb *cb,
			      const struct xrds_conn *conn, u64 peer)
{
	const struct xrds_source *src = xs->last_source;

	return src && src->conn == conn->id && src->peer == peer &&
	       !src->ended && src->key.port == cb->sport &&
	       src->key.scope == cb->scope &&
	       ipv6_addr_equal(&src->key.addr, &cb->saddr) &&
	       !(cb->flags & XRDS_F_EOS) &&
	       (!READ_ONCE(xs->node_events) || src->watch || conn->key.loop);
}

/* Note the source of a message that is not like the one before it. Returns as
 * xrds_source_note().
 */
static noinline bool xrds_source_change(struct xrds_sock *xs,
					const struct xrds_skb_cb *cb,
					const struct xrds_conn *conn, u64 peer,
					bool *contact)
{
	struct xrds_addr from = xrds_skb_from(cb);
	struct xrds_dest_key key = xrds_dest_key(xs, &from);
	struct xrds_source *src;
	bool lost, watched;

	src = xrds_srctab_find(xs, &key);
	watched = src && src->watch;
	/* an end is no reason to forget a stream that goes on */
	if (!src && (!(cb->flags & XRDS_F_EOS) ||
		     xs->nr_sources < READ_ONCE(xs->xn->sock_max_dests)))
		src = xrds_srctab_add(xs, &key);
	xs->heard = true;
	*contact = !conn->key.loop && (!src || src->conn != conn->id);
	/* mostly no stream is lost, and there is nothing to hash */
	lost = !src && !(cb->flags & XRDS_F_EOS);
	if (unlikely(lost || xs->nr_lost))
		xrds_srctab_set_lost(xs, &key, lost);
	if (!src)
		return xrds_source_evaluate(xs);
	lost = xrds_source_stale(src, peer);
	if (lost)
		xrds_source_lost(xs, src);
	src->peer = peer;
	src->conn = conn->id;
	xrds_source_set(xs, src, cb->flags & XRDS_F_EOS);
	if (unlikely(READ_ONCE(xs->node_events)))
		xrds_srctab_watch(xs, src);
	/* the connection does not know yet that its node is watched */
	if (src->watch && !watched)
		*contact = !conn->key.loop;
	return xrds_source_evaluate(xs) || lost;
}

/**
 * xrds_source_has_ended - is the end of a stream known already?
 * @xs: socket
 * @cb: control block of another end of that stream
 *
 * Context: any, the receive queue's lock held.
 * Return: whether it is.
 */
bool xrds_source_has_ended(struct xrds_sock *xs, const struct xrds_skb_cb *cb)
{
	struct xrds_addr from = xrds_skb_from(cb);
	struct xrds_dest_key key = xrds_dest_key(xs, &from);
	struct xrds_source *src;

	src = xrds_srctab_find(xs, &key);
	return src && src->ended && src->conn;
}

/**
 * xrds_source_note - a message has come for a socket
 * @xs: socket
 * @cb: the message's control block
 * @conn: connection that has brought it
 * @contact: result, false before: it may be the first that this connection
 *	brings, see link.c
 *
 * Context: any, the receive queue's lock held.
 * Return: whether all readers are to be woken: all streams to the socket have ended
 * by it, or there is a mark for a lost one besides the message.
 */
bool xrds_source_note(struct xrds_sock *xs, const struct xrds_skb_cb *cb,
		      const struct xrds_conn *conn, bool *contact)
{
	u64 peer = READ_ONCE(conn->peer_node);

	if (!peer && conn->legacy.heard)
		peer = XRDS_NODE_LEGACY;
	/* answers to pings are nobody's stream */
	if (!cb->sport || likely(xrds_source_again(xs, cb, conn, peer)))
		return false;
	return xrds_source_change(xs, cb, conn, peer, contact);
}

/**
 * xrds_source_ended - has the stream from an address ended?
 * @xs: socket
 * @from: address
 *
 * Context: any, without L5.
 * Return: whether it has; false if there was none.
 */
bool xrds_source_ended(struct xrds_sock *xs, const struct xrds_addr *from)
{
	struct xrds_dest_key key = xrds_dest_key(xs, from);
	struct xrds_source *src;
	bool ended;

	spin_lock_bh(&xs->sk.sk_receive_queue.lock);
	src = xrds_srctab_find(xs, &key);
	ended = src && src->ended && src->conn;
	spin_unlock_bh(&xs->sk.sk_receive_queue.lock);
	return ended;
}

/* The node that is at a source's address now */
static u64 xrds_source_peer(const struct xrds_source *src)
{
	const struct xrds_sock *xs = src->key.xs;
	struct xrds_peer_key key = {
		.laddr	= xs->bind.addr,
		.faddr	= src->key.addr,
		.scope	= src->key.scope,
	};

	return xrds_peer_node(xs->xn, &key);
}

static void xrds_source_check(struct xrds_source *src)
{
	struct xrds_sock *xs = src->key.xs;
	bool news = false;

	spin_lock_bh(&xs->sk.sk_receive_queue.lock);
	/* under the lock, or a message of the new node could come in between */
	if (src->linked && src->peer && !src->ended &&
	    xrds_source_stale(src, xrds_source_peer(src))) {
		xrds_source_lost(xs, src);
		xrds_source_evaluate(xs);
		news = true;
	}
	spin_unlock_bh(&xs->sk.sk_receive_queue.lock);
	if (!news)
		return;
	/* it does not signal programs (SIGIO), and this does not wake all pollers */
	xs->sk.sk_state_change(&xs->sk);
	xs->sk.sk_data_ready(&xs->sk);
}

/**
 * xrds_source_lost_work - end the streams of nodes that are gone
 * @work: xn->lost_work
 *
 * Another node is at their address. It looks at all sources of the namespace, for all
 * such nodes at once. If the table moves meanwhile it begins again, and finds less to
 * do. A socket takes its sources away before its last reference and a grace period.
 *
 * Context: process.
 */
void xrds_source_lost_work(struct work_struct *work)
{
	struct xrds_net *xn = container_of(work, struct xrds_net, lost_work);
	struct rhashtable_iter iter;
	struct xrds_source *src;
	u32 n = 0;

	rhashtable_walk_enter(&xn->sources, &iter);
	rhashtable_walk_start(&iter);
	while ((src = rhashtable_walk_next(&iter))) {
		if (!IS_ERR(src))
			xrds_source_check(src);
		xrds_hold_pause(&iter, ++n);
	}
	rhashtable_walk_stop(&iter);
	rhashtable_walk_exit(&iter);
}
