// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receiving: from a whole message in the transport's hands to recvmsg().
 *
 * A transport hands every message over once it is complete, one at a time for
 * each connection. Sequence numbers tell duplicates, which a retransmission
 * after a reconnect may bring, from new messages; a number is taken as
 * received, and so acknowledged, only after the message is in the socket's
 * queue. Acknowledgments ride on data that flows back; without any, one is
 * sent after a number of messages or bytes, when the sender asks, or after
 * XRDS_ACK_DELAY_MS.
 *
 * The queue is the socket's sk_receive_queue. Its lock guards what waits in it,
 * and the congested mark that comes of it, see recv_mem.c. A message for which
 * there is no memory left is not acknowledged, nor is anything behind it: it
 * comes again, on a new connection.
 */
#include <linux/uio.h>
#include <linux/errqueue.h>

#include "conn.h"
#include "dest.h"
#include "msg.h"
#include "rdma.h"
#include "sock.h"
#include "tracepoints.h"
#include "transport.h"
#include "xrds.h"

enum {
	XRDS_ACK_DELAY_MS	= 20,
};

/* Who this connection's peer talks to, and who it is, seen from here. */
static const struct in6_addr *xrds_recv_daddr(const struct xrds_conn *conn)
{
	return conn->key.loop ? &conn->key.faddr : &conn->key.laddr;
}

static const struct in6_addr *xrds_recv_saddr(const struct xrds_conn *conn)
{
	return conn->key.loop ? &conn->key.laddr : &conn->key.faddr;
}

/* A message that nobody is going to read goes. */
static void xrds_recv_free(struct xrds_sock *xs, struct sk_buff *skb)
{
	if (xrds_skb(skb)->flags & XRDS_F_REPLY)
		xrds_reply_read(xs, skb);
	kfree_skb(skb);
}

/* The receiver has lost something: it is told once, until it reads. */
static bool xrds_recv_tell_loss(struct xrds_sock *xs)
{
	bool told = xs->loss_told;

	lockdep_assert_held(&xs->sk.sk_receive_queue.lock);

	xs->loss_told = true;
	if (!told) {
		xs->losses++;
		WRITE_ONCE(xs->sk.sk_err, ENOBUFS);
	}
	return !told;
}

/* It must not look as if a message behind the refused one were the next. */
static void xrds_recv_stop(struct xrds_conn *conn)
{
	conn->rx_stopped = true;
	net_warn_ratelimited("xrds: %pI6c: dropping the connection: a socket has too much to read\n",
			     &conn->key.faddr);
	xrds_conn_ep_event(conn, READ_ONCE(conn->ep_gen), XRDS_EV_ERROR,
			   -ENOBUFS);
}

/* Queue a message on a socket, or say why not. Consumes the skb. */
static enum xrds_counter xrds_recv_enqueue(struct xrds_sock *xs,
					   struct sk_buff *skb,
					   unsigned long reborn)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	bool mark = xrds_skb(skb)->flags & XRDS_F_EOS;
	bool congested, ended, lost, tell;

	/* a hint only: one more or less does no harm */
	if ((xrds_skb(skb)->flags & XRDS_F_REPLY) &&
	    (!READ_ONCE(xs->congested) || !xrds_reply_came(xs, skb)))
		xrds_skb(skb)->flags &= ~XRDS_F_REPLY;

	spin_lock_bh(&queue->lock);
	if (sock_flag(&xs->sk, SOCK_DEAD)) {
		spin_unlock_bh(&queue->lock);
		kfree_skb(skb);
		return XRDS_C_RECV_DROP_DEAD_SOCK;
	}
	ended = xrds_source_hear(xs, xrds_skb(skb), reborn);
	if (READ_ONCE(xs->sk.sk_shutdown) & RCV_SHUTDOWN) {
		spin_unlock_bh(&queue->lock);
		xrds_recv_free(xs, skb);
		return XRDS_C_RECV_DROP_SHUTDOWN;
	}
	lost = unlikely(xrds_recv_overflows(xs)) && xrds_recv_taken(xs, skb);
	if (lost) {
		tell = xrds_recv_tell_loss(xs);
		spin_unlock_bh(&queue->lock);
		xrds_recv_free(xs, skb);
		if (tell)
			sk_error_report(&xs->sk);
		goto out;
	}
	skb_set_owner_r(skb, &xs->sk);
	xrds_trace_queued(xs, skb);
	__skb_queue_tail(queue, skb);
	WRITE_ONCE(xs->marks_passed, false);
	xrds_recv_charge_skb(xs, skb);
	congested = xrds_recv_congests(xs);
	spin_unlock_bh(&queue->lock);

	if (congested)
		xrds_cong_local(xs, true);
	xs->sk.sk_data_ready(&xs->sk);
out:
	/* who waits for nothing but the end hears no news of data */
	if (ended)
		xs->sk.sk_state_change(&xs->sk);
	if (mark)
		return lost ? XRDS_C_RECV_DROP_EOS : XRDS_C_RECV_EOS;
	return lost ? XRDS_C_RECV_DROP_REPLY : XRDS_C_RECV_QUEUED;
}

static enum xrds_counter xrds_recv_deliver(struct xrds_conn *conn,
					   const struct xrds_wire_msg *wm,
					   struct sk_buff *skb)
{
	struct xrds_skb_cb *cb = xrds_skb(skb);
	enum xrds_counter result;
	struct xrds_sock *xs;

	memset(cb, 0, sizeof(*cb));
	cb->saddr = *xrds_recv_saddr(conn);
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

	/* freed sockets stay valid until the end of the grace period */
	rcu_read_lock();
	xs = xrds_bind_lookup(conn->xn, xrds_recv_daddr(conn),
			      conn->key.scope, wm->dport);
	if (xs && !wm->sport && READ_ONCE(xs->congested)) {
		/* of a kernel, which nobody has asked whether it may send */
		result = XRDS_C_RECV_DROP_PONG;
		kfree_skb(skb);
	} else if (xs && !conn->key.loop && xrds_recv_overflows(xs) &&
		   !xrds_recv_taken(xs, skb)) {
		result = XRDS_C_RECV_DROP_OVERFLOW;
		kfree_skb(skb);
	} else if (xs) {
		result = xrds_recv_enqueue(xs, skb,
					   READ_ONCE(conn->reborn));
	} else {
		result = cb->flags & XRDS_F_EOS ? XRDS_C_RECV_DROP_EOS :
						  XRDS_C_RECV_DROP_NO_SOCK;
		kfree_skb(skb);
	}
	rcu_read_unlock();
	return result;
}

/* The peer waits for an acknowledgment: it gets one for all that has come at
 * once.
 */
static void xrds_recv_need_ack(struct xrds_conn *conn)
{
	if (conn->rx_batch)
		conn->rx_batch_ack = true;
	else
		xrds_xmit_need_ack(conn);
}

/**
 * xrds_recv_batch - several messages come at once
 * @conn: connection
 * @on: they are about to; else they have
 *
 * Context: as xrds_recv_msg().
 */
void xrds_recv_batch(struct xrds_conn *conn, bool on)
{
	conn->rx_batch = on;
	if (on || !conn->rx_batch_ack)
		return;
	conn->rx_batch_ack = false;
	xrds_xmit_need_ack(conn);
}
EXPORT_SYMBOL_GPL(xrds_recv_batch);

/* Does this message call for an acknowledgment, now or later? */
static void xrds_recv_ack(struct xrds_conn *conn,
			  const struct xrds_wire_msg *wm)
{
	struct xrds_net *xn = conn->xn;
	u32 msgs = READ_ONCE(conn->rx_unacked_msgs) + 1;
	u32 bytes = READ_ONCE(conn->rx_unacked_bytes) + wm->len;

	/* Written here and reset, without a lock, by who sends an
	 * acknowledgment: a lost update only shifts when the next is sent.
	 */
	WRITE_ONCE(conn->rx_unacked_msgs, msgs);
	WRITE_ONCE(conn->rx_unacked_bytes, bytes);

	if (wm->flags & XRDS_F_ACK_REQUIRED) {
		xrds_count(xn, XRDS_C_RECV_ACK_REQUIRED);
	} else if (msgs < READ_ONCE(xn->max_unacked_packets) &&
		 bytes < READ_ONCE(xn->max_unacked_bytes)) {
		if (!delayed_work_pending(&conn->ack_work))
			xrds_conn_delay_ack(conn, XRDS_ACK_DELAY_MS);
		return;
	}
	xrds_recv_need_ack(conn);
}

/**
 * xrds_recv_ack_work - send the acknowledgment that found no data to ride on
 * @work: ack_work of a connection
 *
 * Context: process.
 */
void xrds_recv_ack_work(struct work_struct *work)
{
	struct xrds_conn *conn = container_of(to_delayed_work(work),
					      struct xrds_conn, ack_work);

	xrds_xmit_need_ack(conn);
}

static void xrds_recv_drop(struct xrds_conn *conn,
			   const struct xrds_wire_msg *wm, struct sk_buff *skb,
			   enum xrds_counter why)
{
	xrds_count(conn->xn, why);
	trace_xrds_msg_rx(conn, wm, why);
	kfree_skb(skb);
}

/**
 * xrds_recv_msg - a whole message has arrived
 * @conn: connection
 * @wm: its decoded header
 * @skb: its payload; consumed
 *
 * Calls for one connection never overlap: each endpoint has one completion
 * queue, and a new endpoint is made after the old one was drained.
 *
 * Context: BH, or process with BH disabled.
 */
void xrds_recv_msg(struct xrds_conn *conn, const struct xrds_wire_msg *wm,
		   struct sk_buff *skb)
{
	enum xrds_counter result;
	struct xrds_net *xn = conn->xn;

	if (conn->rx_stopped) {
		xrds_recv_drop(conn, wm, skb, XRDS_C_RECV_DROP_OVERFLOW);
		return;
	}
	if (unlikely(wm->kind == XRDS_KIND_VOID)) {
		/* it has no number; as mainline says what has come before it */
		xrds_recv_drop(conn, wm, skb, XRDS_C_RECV_DROP_VOID);
		if (wm->flags & XRDS_F_ACK_REQUIRED)
			xrds_recv_need_ack(conn);
		return;
	}
	if (wm->seq < conn->rx_next && xrds_classic_duplicate(conn, wm)) {
		xrds_recv_drop(conn, wm, skb, XRDS_C_RECV_DROP_OLD_SEQ);
		if (conn->classic.heard)
			WRITE_ONCE(conn->rx_ack, wm->seq);
		/* who retransmits has missed our acknowledgment */
		if (!conn->key.loop)
			xrds_recv_need_ack(conn);
		return;
	}

	if (wm->has & XRDS_HAS_RDMA)
		xrds_mr_used(xn, xrds_recv_daddr(conn), wm->rdma_rkey);

	if (wm->has & XRDS_HAS_SILENT) {
		kfree_skb(skb);
	} else if (!wm->dport) {
		kfree_skb(skb);
		trace_xrds_msg_rx(conn, wm, XRDS_C_RECV_PING);
		/* of those without ports only a heartbeat wants an answer,
		 * which xrds_ib_classic_hdr() makes of what has none either
		 */
		if (wm->sport)
			xrds_pong(conn, wm->sport);
		else if (wm->flags & XRDS_F_HB_PING)
			xrds_pong_queue(conn, 0, true);
	} else {
		result = xrds_recv_deliver(conn, wm, skb);
		xrds_count(xn, result);
		trace_xrds_msg_rx(conn, wm, result);
		if (result == XRDS_C_RECV_DROP_OVERFLOW) {
			xrds_recv_stop(conn);
			return;
		}
	}

	/* rx_ack is read by xrds_xmit_ack_value(): only now is the message
	 * received
	 */
	WRITE_ONCE(conn->rx_next, wm->seq + 1);
	WRITE_ONCE(conn->rx_ack, wm->seq);
	if (!conn->key.loop)
		xrds_recv_ack(conn, wm);
}
EXPORT_SYMBOL_GPL(xrds_recv_msg);

/**
 * xrds_recv_drop_mark - drop the end of a stream
 * @xs: socket
 * @skb: in its receive queue
 *
 * A program that takes no control messages could not tell it from an empty
 * message, and programs that are older than these ends do not expect any: they
 * do not get to see them.
 *
 * Context: any, the queue's lock held.
 * Return: as xrds_recv_uncharge().
 */
bool xrds_recv_drop_mark(struct xrds_sock *xs, struct sk_buff *skb)
{
	bool cleared = xrds_recv_uncharge(xs, skb);

	__skb_unlink(skb, &xs->sk.sk_receive_queue);
	xrds_count(xs->xn, XRDS_C_RECV_DROP_EOS);
	kfree_skb(skb);
	return cleared;
}

/* The first message that the reader takes; who peeks changes nothing. */
static struct sk_buff *xrds_recv_first(struct xrds_sock *xs, bool peek,
				       bool marks, bool *cleared)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	struct sk_buff *skb, *next;

	lockdep_assert_held(&queue->lock);

	skb_queue_walk_safe(queue, skb, next) {
		if (marks || !(xrds_skb(skb)->flags & XRDS_F_EOS))
			return skb;
		if (!peek)
			*cleared |= xrds_recv_drop_mark(xs, skb);
	}
	return NULL;
}

/* The next message, with a reference; taken off the queue unless peeked. */
static struct sk_buff *xrds_recv_dequeue(struct xrds_sock *xs, bool peek,
					 bool marks)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	bool cleared = false;
	struct sk_buff *skb;

	/* a reader who can see them: all of this is news to him */
	if (unlikely(READ_ONCE(xs->marks_passed)) && (marks || !peek))
		WRITE_ONCE(xs->marks_passed, false);
	if (READ_ONCE(xs->reply_reserve))
		return xrds_reply_dequeue(xs, peek, marks);

	spin_lock_bh(&queue->lock);
	skb = xrds_recv_first(xs, peek, marks, &cleared);
	if (skb && peek) {
		refcount_inc(&skb->users);
	} else if (skb) {
		__skb_unlink(skb, queue);
		cleared |= xrds_recv_uncharge(xs, skb);
	}
	spin_unlock_bh(&queue->lock);

	if (cleared)
		xrds_cong_local(xs, false);
	return skb;
}

/* Is there something else than ends of streams? */
static bool xrds_recv_has_message(struct xrds_sock *xs)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	struct sk_buff *skb;

	spin_lock_bh(&queue->lock);
	skb = xrds_recv_first(xs, true, false, NULL);
	spin_unlock_bh(&queue->lock);
	return skb;
}

/**
 * xrds_recv_ready - can a message be read now?
 * @xs: socket
 * @marks: an end of a stream will do; it does not for who only peeks, and has
 *	no room for it: it is not given to him, and remains
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

/* A reader who cannot see what waits goes away empty-handed, and comes back
 * when poll() says so: not for the same ends of streams.
 */
static void xrds_recv_pass_marks(struct xrds_sock *xs)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;

	/* what comes from now on takes it back */
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
	struct xrds_addr from = {
		.addr	= xrds_skb(skb)->saddr,
		.scope	= xrds_skb(skb)->scope,
		.port	= xrds_skb(skb)->sport,
	};

	if (READ_ONCE(xs->reply_reserve) &&
	    !(xrds_skb(skb)->flags & XRDS_F_EOS))
		xrds_dest_release_promise(xs, &from);

	spin_lock_bh(&queue->lock);
	__skb_queue_head(queue, skb);
	xrds_recv_charge_skb(xs, skb);
	spin_unlock_bh(&queue->lock);
	/* another reader may have gone to sleep meanwhile */
	xs->sk.sk_data_ready(&xs->sk);
}

/* News for who wants to send, or polls, is not spent on a reader. */
static int xrds_recv_wake(struct wait_queue_entry *wait, unsigned int mode,
			  int sync, void *key)
{
	const __poll_t readable = EPOLLRDNORM | EPOLLRDBAND | EPOLLERR;

	if (key && !(key_to_poll(key) & readable))
		return 0;
	return autoremove_wake_function(wait, mode, sync, key);
}

/* Sleep until there may be something. Returns 0 or a negative errno. */
static int xrds_recv_wait(struct sock *sk, bool peek, bool marks, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, xrds_recv_wake);
	int ret = 0;

	/* who only peeks must not be woken in the place of a reader */
	if (peek)
		prepare_to_wait(sk_sleep(sk), &wait, TASK_INTERRUPTIBLE);
	else
		prepare_to_wait_exclusive(sk_sleep(sk), &wait,
					  TASK_INTERRUPTIBLE);
	if (!xrds_recv_ready(xrds_sk(sk), marks) && !READ_ONCE(sk->sk_err) &&
	    !(READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN) &&
	    (peek || !xrds_notices_pending(xrds_sk(sk)))) {
		if (signal_pending(current))
			ret = sock_intr_errno(*timeo);
		else if (!*timeo)
			ret = -ETIMEDOUT;
		else
			*timeo = schedule_timeout(*timeo);
	}
	finish_wait(sk_sleep(sk), &wait);
	return ret;
}

static int xrds_recv_copy(struct xrds_sock *xs, struct sk_buff *skb,
			  struct msghdr *m, size_t size)
{
	struct xrds_skb_cb *cb = xrds_skb(skb);
	struct xrds_addr from = {
		.addr	= cb->saddr,
		.scope	= cb->scope,
		.port	= cb->sport,
	};
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
	if (n && skb_copy_datagram_msg(skb, 0, m, n))
		return -EFAULT;
	if (m->msg_name)
		m->msg_namelen = xrds_addr_build(&from, m->msg_name);
	if (n < cb->len)
		m->msg_flags |= MSG_TRUNC;
	if (cb->cookie && put_cmsg(m, SOL_RDS, RDS_CMSG_RDMA_DEST,
				   sizeof(cb->cookie), &cb->cookie))
		return -EFAULT;
	if (!(cb->flags & XRDS_F_EOS) && xrds_trace_read(xs, skb, m))
		return -EFAULT;
	return n;
}

/* A message, or what else there is to be read; as xrds_recvmsg() */
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
		 * They cannot be peeked at. Who was woken for some that he has
		 * no room for wakes the next reader.
		 */
		if (!peek && xrds_notices_pending(xs)) {
			ret = xrds_notices_read(xs, m);
			if (slept && m->msg_flags & MSG_CTRUNC)
				sk->sk_data_ready(sk);
			if (ret)
				return min(ret, 0);
		}
		skb = xrds_recv_dequeue(xs, peek, m->msg_controllen);
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
	if (ret < 0 && !peek) {
		xrds_recv_requeue(xs, skb);
		return ret == -ENOBUFS ? 0 : ret;
	}
	if (ret == -ENOBUFS)
		ret = 0;
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
 * Context: process.
 */
void xrds_recv_purge(struct xrds_sock *xs)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	struct sk_buff_head drop;
	struct sk_buff *skb;
	bool cleared;

	__skb_queue_head_init(&drop);
	spin_lock_bh(&queue->lock);
	skb_queue_splice_init(queue, &drop);
	cleared = xrds_recv_uncharge_all(xs);
	spin_unlock_bh(&queue->lock);

	while ((skb = __skb_dequeue(&drop)))
		xrds_recv_free(xs, skb);
	if (cleared)
		xrds_cong_local(xs, false);
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
	struct sk_buff *skb;
	u64 bytes = 0;

	spin_lock_bh(&queue->lock);
	skb_queue_walk(queue, skb)
		bytes += xrds_skb(skb)->len;
	spin_unlock_bh(&queue->lock);
	return min_t(u64, bytes, INT_MAX);
}
