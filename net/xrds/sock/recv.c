// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receiving, the socket's share: from a message that a connection passes on to
 * recvmsg().
 *
 * The queue is the socket's sk_receive_queue. Its lock guards the messages in
 * it, and the congestion that follows from their number, see rcvbuf.c. With
 * XRDS_REPLY_RESERVE a reader takes them by source, see srcq.c and reply.c.
 */
#include <linux/uio.h>
#include <linux/errqueue.h>

#include "conn/conn.h"
#include "sock/dest.h"
#include "msg.h"
#include "rdma/rdma.h"
#include "sock/sock.h"
#include "tracepoints.h"
#include "transport.h"
#include "xrds.h"

/* A message that nobody is going to read goes. */
static void xrds_recv_free(struct xrds_sock *xs, struct sk_buff *skb)
{
	if (xrds_skb(skb)->flags & XRDS_F_REPLY)
		xrds_reply_read(xs, skb);
	kfree_skb(skb);
}

/* Queue a message on a socket, or say why not. Consumes the skb. */
static enum xrds_counter xrds_recv_enqueue(struct xrds_sock *xs,
					   struct sk_buff *skb,
					   struct xrds_conn *conn,
					   struct xrds_recv_news *news)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	bool mark = xrds_skb(skb)->flags & XRDS_F_EOS;

	/* a hint only: one more or less does no harm */
	if ((xrds_skb(skb)->flags & XRDS_F_REPLY) &&
	    (!READ_ONCE(xs->port.congested) || !xrds_reply_came(xs, skb)))
		xrds_skb(skb)->flags &= ~XRDS_F_REPLY;

	spin_lock(&queue->lock);
	if (sock_flag(&xs->sk, SOCK_DEAD)) {
		spin_unlock(&queue->lock);
		kfree_skb(skb);
		return XRDS_C_RECV_DROP_DEAD_SOCK;
	}
	/* a peer does not make a long row of nothing but ends */
	if (mark && xrds_source_has_ended(xs, xrds_skb(skb))) {
		spin_unlock(&queue->lock);
		kfree_skb(skb);
		return XRDS_C_RECV_DROP_EOS;
	}
	news->xs = xs;
	news->ended = xrds_source_note(xs, xrds_skb(skb), conn,
				       &news->contact);
	if (READ_ONCE(xs->sk.sk_shutdown) & RCV_SHUTDOWN) {
		spin_unlock(&queue->lock);
		xrds_recv_free(xs, skb);
		return XRDS_C_RECV_DROP_SHUTDOWN;
	}
	if ((mark || xrds_skb(skb)->reply) &&
	    (conn->key.loop || xrds_rcvbuf_taken(xs, skb)) &&
	    xrds_rcvbuf_overflows(xs, skb, false)) {
		news->lost = xrds_rcvbuf_tell_loss(xs);
		spin_unlock(&queue->lock);
		xrds_recv_free(xs, skb);
		return mark ? XRDS_C_RECV_DROP_EOS : XRDS_C_RECV_DROP_REPLY;
	}
	xrds_rcvbuf_own(xs, skb);
	if (xrds_timestamp_wanted(xs))
		xrds_timestamp_queued(xs, skb);
	xrds_srcq_enqueue(xs, skb);
	WRITE_ONCE(xs->marks_passed, false);
	xrds_rcvbuf_charge_skb(xs, skb);
	news->congested = xrds_rcvbuf_congests(xs);
	spin_unlock(&queue->lock);
	news->data = true;
	return mark ? XRDS_C_RECV_EOS : XRDS_C_RECV_QUEUED;
}

/* Fill the control block of a message. */
static void xrds_recv_fill(const struct xrds_conn *conn,
			   const struct xrds_wire_msg *wm, struct sk_buff *skb)
{
	struct xrds_skb_cb *cb = xrds_skb(skb);

	memset(cb, 0, sizeof(*cb));
	cb->saddr = *xrds_conn_rx_saddr(conn);
	cb->scope = conn->key.scope;
	cb->len = wm->len;
	cb->charge = xrds_recv_charge(wm->len);
	cb->sport = wm->sport;
	cb->reply = wm->flags & XRDS_F_REPLY;
	cb->flags = wm->flags & (XRDS_F_EOS | XRDS_F_REPLY);
	xrds_skb_trace(skb)->seq = wm->seq;
	xrds_skb_trace(skb)->tos = conn->key.tos;
	if (wm->has & XRDS_HAS_RDMA_DEST)
		cb->cookie = (u64)wm->dest_off << 32 | wm->dest_rkey;
	if (cb->flags & XRDS_F_EOS)
		cb->eos_reason = wm->eos_reason;
}

/**
 * xrds_recv_direct_fits - may a message go straight to its receiver?
 * @dest: where to
 * @conn: its loopback connection
 * @skb: the payload, or less
 *
 * Context: process with BH disabled, under rcu_read_lock(); the sender's xs->lock
 * held.
 * Return: false if the receiver's account is too full for it.
 */
bool xrds_recv_direct_fits(struct xrds_dest *dest, struct xrds_conn *conn,
			   struct sk_buff *skb)
{
	struct xrds_sock *xs;

	lockdep_assert_held(&dest->key.xs->lock);

	xs = xrds_bind_lookup_again(conn->xn, &dest->receiver, &dest->key.addr,
				    conn->key.scope, dest->key.port);
	return !xs || !xrds_rcvbuf_tight(xs, skb->truesize);
}

/**
 * xrds_recv_direct - put a plain message of a sender on this node into its
 *	receiver's queue
 * @dest: where to
 * @conn: its loopback connection
 * @skb: the payload; consumed
 * @seq: number of the message
 * @len: its length, bytes
 * @news: result, for xrds_recv_tell()
 *
 * Context: process with BH disabled, under rcu_read_lock(); the sender's xs->lock
 * held.
 * Return: the counter of the outcome.
 */
enum xrds_counter xrds_recv_direct(struct xrds_dest *dest,
				   struct xrds_conn *conn, struct sk_buff *skb,
				   u64 seq, u32 len,
				   struct xrds_recv_news *news)
{
	const struct xrds_bind_key *from = &dest->key.xs->bind;
	struct xrds_skb_cb *cb = xrds_skb(skb);
	struct xrds_sock *xs;

	lockdep_assert_held(&dest->key.xs->lock);

	xs = xrds_bind_lookup_again(conn->xn, &dest->receiver, &dest->key.addr,
				    conn->key.scope, dest->key.port);
	if (!xs) {
		kfree_skb(skb);
		return XRDS_C_RECV_DROP_NO_SOCK;
	}
	memset(cb, 0, sizeof(*cb));
	cb->saddr = from->addr;
	cb->scope = conn->key.scope;
	cb->len = len;
	cb->charge = xrds_recv_charge(len);
	cb->sport = from->port;
	xrds_skb_trace(skb)->seq = seq;
	xrds_skb_trace(skb)->tos = conn->key.tos;
	return xrds_recv_enqueue(xs, skb, conn, news);
}

/**
 * xrds_recv_tell - tell readers and senders that a message has come
 * @conn: connection that has brought it
 * @news: from xrds_recv_enqueue()
 *
 * All senders are told if the socket has become congested, and the peer that has
 * sent its first message if the socket is congested.
 *
 * Context: BH, or process with BH disabled or enabled, under rcu_read_lock();
 * without L3, L4, L5.
 */
void xrds_recv_tell(struct xrds_conn *conn, const struct xrds_recv_news *news)
{
	struct xrds_sock *xs = news->xs;
	bool contact = news->contact;

	if (!xs)
		return;
	/* the node is watched from now on */
	if (unlikely(contact) && READ_ONCE(xs->node_events))
		xrds_sibling_look(conn);
	if (unlikely(contact))
		contact = xrds_link_heard(conn, &xs->port);
	if (unlikely(news->congested))
		xrds_cong_local_full(&xs->port);
	else if (unlikely(contact) && READ_ONCE(xs->port.congested))
		xrds_cong_tell(conn, &xs->port);
	if (news->data)
		xs->sk.sk_data_ready(&xs->sk);
	else if (news->lost)
		sk_error_report(&xs->sk);
	/* a poller for the end alone is not woken for data */
	if (unlikely(news->ended))
		xs->sk.sk_state_change(&xs->sk);
}

/**
 * xrds_recv_deliver - put a message into its socket's queue
 * @conn: connection that has brought it
 * @wm: its decoded header
 * @skb: its payload; consumed
 *
 * Context: BH, or process with BH disabled.
 * Return: the counter of the outcome; XRDS_C_RECV_DROP_OVERFLOW: it is refused,
 * and must come again.
 */
enum xrds_counter xrds_recv_deliver(struct xrds_conn *conn,
				    const struct xrds_wire_msg *wm,
				    struct sk_buff *skb)
{
	struct xrds_recv_news news = {};
	enum xrds_counter result;
	struct xrds_sock *xs;

	xrds_recv_fill(conn, wm, skb);

	/* freed sockets stay valid until the end of the grace period */
	rcu_read_lock();
	xs = xrds_bind_lookup(conn->xn, xrds_conn_rx_daddr(conn),
			      conn->key.scope, wm->dport);
	if (xs && !wm->sport &&
	    (READ_ONCE(xs->port.congested) ||
	     xrds_rcvbuf_overflows(xs, skb, false))) {
		/* of a kernel, which nobody has asked whether it may send, and
		 * which does not repeat it
		 */
		result = XRDS_C_RECV_DROP_PONG;
		kfree_skb(skb);
	} else if (xs && wm->sport && !conn->key.loop &&
		   xrds_rcvbuf_overflows(xs, skb, conn->legacy.heard) &&
		   !xrds_rcvbuf_taken(xs, skb)) {
		result = XRDS_C_RECV_DROP_OVERFLOW;
		/* it is told of the port with the refusal */
		xrds_link_heard(conn, &xs->port);
		if (xrds_rcvbuf_refuses(xs, skb))
			xrds_cong_local_full(&xs->port);
		kfree_skb(skb);
	} else if (xs) {
		result = xrds_recv_enqueue(xs, skb, conn, &news);
		xrds_recv_tell(conn, &news);
	} else {
		result = wm->flags & XRDS_F_EOS ? XRDS_C_RECV_DROP_EOS :
						  XRDS_C_RECV_DROP_NO_SOCK;
		kfree_skb(skb);
	}
	rcu_read_unlock();
	return result;
}

/* Is it the end of a stream? */
static bool xrds_recv_is_mark(struct sk_buff *skb)
{
	return xrds_skb(skb)->flags & XRDS_F_EOS;
}

/* Take the first message. Ends of streams in front of it are dropped, taken, or
 * stay; one that stays is returned with a reference. Returns NULL if there is none.
 */
static struct sk_buff *xrds_recv_take(struct xrds_sock *xs,
				      enum xrds_recv_marks marks, bool *cleared)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	struct sk_buff *skb;
	u32 n;

	do {
		spin_lock_bh(&queue->lock);
		for (n = 0; n < XRDS_END_BATCH; n++) {
			skb = skb_peek(queue);
			if (!skb || marks || !xrds_recv_is_mark(skb))
				break;
			*cleared |= xrds_rcvbuf_drop_mark(xs, skb);
		}
		if (n < XRDS_END_BATCH && skb) {
			if (marks == XRDS_MARKS_STAY && xrds_recv_is_mark(skb)) {
				skb_get(skb);
			} else {
				xrds_srcq_unlink(xs, skb);
				*cleared |= xrds_rcvbuf_uncharge(xs, skb);
			}
		}
		spin_unlock_bh(&queue->lock);
		xrds_hold_count(XRDS_HOLD_END, n);
	} while (n == XRDS_END_BATCH);
	return skb;
}

/* Look for the first message that the reader would take; it stays. The look drops
 * the lock now and then, and keeps its place by a reference. Returns the message
 * with a reference, NULL if there is none.
 */
static struct sk_buff *xrds_recv_peek(struct xrds_sock *xs, bool marks)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	struct sk_buff *skb, *at = NULL, *old;
	u32 n;

	do {
		old = at;
		at = NULL;
		spin_lock_bh(&queue->lock);
		/* another reader may have taken it */
		skb = old && old->next ? old : skb_peek(queue);
		for (n = 0; skb && !marks && xrds_recv_is_mark(skb); n++) {
			if (n == XRDS_END_BATCH) {
				at = skb;
				break;
			}
			skb = skb_queue_is_last(queue, skb) ? NULL :
			      skb_queue_next(queue, skb);
		}
		if (skb)
			skb_get(skb);
		spin_unlock_bh(&queue->lock);
		xrds_hold_count(XRDS_HOLD_END, n);
		kfree_skb(old);
	} while (at);
	return skb;
}

/* The next message, with a reference; taken off the queue unless peeked, or the end
 * of a stream that stays.
 */
static struct sk_buff *xrds_recv_dequeue(struct xrds_sock *xs, bool peek,
					 enum xrds_recv_marks marks)
{
	bool cleared = false;
	struct sk_buff *skb;

	/* a reader who can see them: all of this is news to him */
	if (unlikely(READ_ONCE(xs->marks_passed)) && (marks || !peek))
		WRITE_ONCE(xs->marks_passed, false);
	/* before a reader sleeps it looks again */
	if (skb_queue_empty_lockless(&xs->sk.sk_receive_queue))
		return NULL;
	if (READ_ONCE(xs->reply_reserve)) {
		skb = xrds_reply_dequeue(xs, peek, marks);
		/* it may be off meanwhile */
		if (skb || READ_ONCE(xs->reply_reserve))
			return skb;
	}

	if (peek)
		return xrds_recv_peek(xs, marks);
	skb = xrds_recv_take(xs, marks, &cleared);
	if (cleared)
		xrds_cong_local_clear(&xs->port);
	return skb;
}

/* Is there something else than ends of streams? */
static bool xrds_recv_has_message(struct xrds_sock *xs)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	bool has;

	spin_lock_bh(&queue->lock);
	has = skb_queue_len(queue) > xs->rcv_marks;
	spin_unlock_bh(&queue->lock);
	return has;
}

/**
 * xrds_recv_ready - can a message be read now?
 * @xs: socket
 * @marks: an end of a stream counts as one; not for a reader that peeks and has
 *	no space for its control message, as it stays unread then
 *
 * Context: any, without L4.
 * Return: whether it can.
 */
bool xrds_recv_ready(struct xrds_sock *xs, bool marks)
{
	if (skb_queue_empty_lockless(&xs->sk.sk_receive_queue))
		return false;
	if (READ_ONCE(xs->reply_reserve))
		return xrds_reply_ready(xs, marks);
	return marks || xrds_recv_has_message(xs);
}

/* A reader that cannot see the ends of streams that wait gets nothing. poll()
 * does not report the same ends to it again.
 */
static void xrds_recv_pass_marks(struct xrds_sock *xs)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;

	/* the next arrival takes it back */
	spin_lock_bh(&queue->lock);
	WRITE_ONCE(xs->marks_passed, true);
	spin_unlock_bh(&queue->lock);
	if (xrds_recv_ready(xs, false))
		WRITE_ONCE(xs->marks_passed, false);
}

/* A message that could not be copied out goes back to where it was, and the
 * space for its reply back to the destination.
 */
static void xrds_recv_requeue(struct xrds_sock *xs, struct sk_buff *skb)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	struct xrds_addr from = xrds_skb_from(xrds_skb(skb));
	bool shut;

	if (READ_ONCE(xs->reply_reserve) &&
	    !(xrds_skb(skb)->flags & XRDS_F_EOS))
		xrds_sockopt_release_reply(xs, &from);

	spin_lock_bh(&queue->lock);
	shut = READ_ONCE(xs->sk.sk_shutdown) & RCV_SHUTDOWN;
	if (!shut) {
		xrds_srcq_requeue(xs, skb);
		xrds_rcvbuf_charge_skb(xs, skb);
	}
	spin_unlock_bh(&queue->lock);
	if (shut) {
		xrds_recv_free(xs, skb);
		return;
	}
	/* another reader may have gone to sleep meanwhile */
	xs->sk.sk_data_ready(&xs->sk);
}

/* A wake-up for senders or pollers does not use up a reader's exclusive turn.
 */
static int xrds_recv_wake(struct wait_queue_entry *wait, unsigned int mode,
			  int sync, void *key)
{
	const __poll_t readable = EPOLLRDNORM | EPOLLRDBAND | EPOLLPRI |
				  EPOLLERR;

	if (key && !(key_to_poll(key) & readable))
		return 0;
	return autoremove_wake_function(wait, mode, sync, key);
}

/* The reader's control buffer decides whether it takes the end of a stream. */
static enum xrds_recv_marks xrds_recv_marks(const struct msghdr *m)
{
	if (!m->msg_controllen)
		return XRDS_MARKS_DROP;
	return xrds_cmsg_room(m, sizeof(u32)) ? XRDS_MARKS_TAKE :
						XRDS_MARKS_STAY;
}

/* How much is left behind a message. */
static int xrds_recv_put_inq(struct xrds_sock *xs, struct msghdr *m)
{
	int bytes;

	if (!READ_ONCE(xs->inq))
		return 0;
	bytes = xrds_recv_inq(xs);
	return put_cmsg(m, SOL_RDS, XRDS_UEK_CMSG_INQ, sizeof(bytes), &bytes);
}

/* Is there something that ends the wait? */
static bool xrds_recv_awake(const struct sock *sk, bool peek, bool marks)
{
	return xrds_recv_ready(xrds_sk(sk), marks) || READ_ONCE(sk->sk_err) ||
	       READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN ||
	       (!peek && xrds_notify_pending(xrds_sk(sk)));
}

/* Sleep until there may be something. Returns 0 or a negative errno. */
static noinline int xrds_recv_wait(struct sock *sk, bool peek, bool marks,
				   long *timeo)
{
	DEFINE_WAIT_FUNC(wait, xrds_recv_wake);
	int ret = 0;

	/* a peeking thread must not be woken in the place of a reader */
	if (peek)
		prepare_to_wait(sk_sleep(sk), &wait, TASK_INTERRUPTIBLE);
	else
		prepare_to_wait_exclusive(sk_sleep(sk), &wait,
					  TASK_INTERRUPTIBLE);
	if (!xrds_recv_awake(sk, peek, marks)) {
		if (signal_pending(current))
			ret = sock_intr_errno(*timeo);
		else if (!*timeo)
			ret = -ETIMEDOUT;
		else
			*timeo = schedule_timeout(*timeo);
	}
	finish_wait(sk_sleep(sk), &wait);
	/* we may have been woken in the place of another reader */
	return ret && xrds_recv_awake(sk, peek, marks) ? 0 : ret;
}

/* Over loopback a small payload is in one piece. Returns 0 or -EFAULT. */
static int xrds_recv_copy_payload(struct sk_buff *skb, struct msghdr *m,
				  size_t n)
{
	if (n > skb_headlen(skb))
		return skb_copy_datagram_msg(skb, 0, m, n);
	return copy_to_iter(skb->data, n, &m->msg_iter) == n ? 0 : -EFAULT;
}

static int xrds_recv_copy(struct xrds_sock *xs, struct sk_buff *skb,
			  struct msghdr *m, size_t size)
{
	struct xrds_skb_cb *cb = xrds_skb(skb);
	struct xrds_addr from = xrds_skb_from(cb);
	size_t n = min_t(size_t, size, cb->len);

	if (cb->flags & XRDS_F_EOS) {
		u32 reason = cb->eos_reason;

		if (!xrds_cmsg_room(m, sizeof(reason))) {
			m->msg_flags |= MSG_CTRUNC;
			return -ENOBUFS;
		}
		if (put_cmsg(m, SOL_RDS, XRDS_CMSG_EOS, sizeof(reason),
			     &reason))
			return -EFAULT;
	}
	if (n && xrds_recv_copy_payload(skb, m, n))
		return -EFAULT;
	if (m->msg_name)
		m->msg_namelen = xrds_addr_build_name(&from, m->msg_name);
	if (n < cb->len)
		m->msg_flags |= MSG_TRUNC;
	if (cb->cookie && put_cmsg(m, SOL_RDS, RDS_CMSG_RDMA_DEST,
				   sizeof(cb->cookie), &cb->cookie))
		return -EFAULT;
	if (cb->flags & XRDS_F_EOS)
		return n;
	if (xrds_timestamp_wanted(xs) && xrds_timestamp_read(xs, skb, m))
		return -EFAULT;
	if (xrds_recv_put_inq(xs, m))
		return -EFAULT;
	return n;
}

/* A message, notices or events; as xrds_recvmsg() */
static int xrds_recv_call(struct xrds_sock *xs, struct msghdr *m, size_t size,
			  int flags)
{
	bool peek = flags & MSG_PEEK;
	struct sock *sk = &xs->sk;
	bool slept = false;
	struct sk_buff *skb;
	long timeo, bound;
	int ret;

	bound = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	timeo = bound;
	for (;;) {
		ret = sock_error(sk);
		/* others are left by a recvmmsg() of another thread */
		if (ret == -ENOBUFS)
			return ret;
		/* Notices come alone; without room for them data comes first.
		 * They cannot be peeked at. A reader that was woken for some
		 * and has no space for them wakes the next reader.
		 */
		if (!peek && (xrds_notify_pending(xs) ||
			      (unlikely(!list_empty(&xs->unnamed)) &&
			       xrds_monitor_unnamed(xs, m)))) {
			ret = xrds_notify_read(xs, m);
			if (slept && m->msg_flags & MSG_CTRUNC)
				sk->sk_data_ready(sk);
			if (ret)
				return min(ret, 0);
		}
		skb = xrds_recv_dequeue(xs, peek, xrds_recv_marks(m));
		if (IS_ERR(skb))
			return PTR_ERR(skb);
		if (skb)
			break;
		if (m->msg_flags & MSG_CTRUNC ||
		    READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
			return 0;
		if (!bound) {
			if (peek && !m->msg_controllen)
				xrds_recv_pass_marks(xs);
			return -EAGAIN;
		}
		ret = xrds_recv_wait(sk, peek, !peek || m->msg_controllen,
				     &timeo);
		if (ret)
			return ret;
		slept = true;
	}

	ret = xrds_recv_copy(xs, skb, m, size);
	if (ret == -ENOBUFS) {
		/* the end of a stream has stayed; another reader may have space */
		consume_skb(skb);
		if (slept)
			sk->sk_data_ready(sk);
		return 0;
	}
	if (ret < 0 && !peek) {
		xrds_recv_requeue(xs, skb);
		return ret;
	}
	if (ret >= 0) {
		xrds_count(xs->xn, XRDS_C_RECV_DELIVERED);
		xrds_count_add(xs->xn, XRDS_C_COPY_TO_USER, ret);
		if (flags & MSG_TRUNC)
			ret = xrds_skb(skb)->len;
	}
	if (!peek && xrds_skb(skb)->flags & XRDS_F_REPLY)
		xrds_reply_read(xs, skb);
	consume_skb(skb);
	return ret;
}

/**
 * xrds_recvmsg - proto_ops.recvmsg
 * @sock: socket
 * @m: where to
 * @size: room for payload, bytes
 * @flags: MSG_*
 *
 * A message whose payload cannot be copied stays in the queue.
 *
 * Context: process, may sleep unless MSG_DONTWAIT.
 * Return: bytes copied, with MSG_TRUNC the whole length, or a negative errno.
 */
int xrds_recvmsg(struct socket *sock, struct msghdr *m, size_t size,
		 int flags)
{
	struct xrds_sock *xs = xrds_sk(sock->sk);
	int ret;

	/* there is none, as mainline says it */
	if (flags & MSG_OOB)
		return 0;
	if (flags & MSG_ERRQUEUE)
		return sock_recv_errqueue(&xs->sk, m, size, SOL_IP,
					  IP_RECVERR);

	ret = xrds_recv_call(xs, m, size, flags);
	return ret < 0 ? xrds_sk_err_forget(xs, ret) : ret;
}

/**
 * xrds_recv_shutdown - the socket receives nothing more
 * @xs: socket
 *
 * Context: process, socket locked.
 */
void xrds_recv_shutdown(struct xrds_sock *xs)
{
	struct sock *sk = &xs->sk;

	/* under the lock, so that nothing is queued behind the purge */
	spin_lock_bh(&sk->sk_receive_queue.lock);
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | RCV_SHUTDOWN);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	xrds_recv_purge(xs);
}

/**
 * xrds_recv_purge - drop what a socket has not read, and will not
 * @xs: socket, closed or shut down
 *
 * One by one, so that the lock is free in between, and a message that is on no
 * list is not in the queue (opt_info_msg.c).
 *
 * Context: process, may sleep.
 */
void xrds_recv_purge(struct xrds_sock *xs)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	bool cleared = false;
	struct sk_buff *skb;

	do {
		spin_lock_bh(&queue->lock);
		skb = skb_peek(queue);
		if (skb) {
			xrds_srcq_unlink(xs, skb);
			cleared |= xrds_rcvbuf_uncharge(xs, skb);
		}
		spin_unlock_bh(&queue->lock);
		if (skb)
			xrds_recv_free(xs, skb);
		cond_resched();
	} while (skb);
	cleared |= xrds_rcvbuf_close(xs);
	if (cleared)
		xrds_cong_local_clear(&xs->port);
}

/**
 * xrds_recv_inq - SIOCINQ
 * @xs: socket
 *
 * Context: process.
 * Return: payload bytes that wait to be read.
 */
int xrds_recv_inq(struct xrds_sock *xs)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	u64 bytes;

	spin_lock_bh(&queue->lock);
	bytes = xs->rcv_payload;
	spin_unlock_bh(&queue->lock);
	return min_t(u64, bytes, INT_MAX);
}
