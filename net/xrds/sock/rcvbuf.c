// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages that wait to be read take memory: when senders are stopped, and when
 * there is none left.
 *
 * A socket is charged for the messages in its sk_receive_queue: with payload,
 * by which SO_RCVBUF goes, and with memory. The queue's lock guards all of
 * this. A message that a reader has taken is in use until it is freed, and its memory
 * stays on the accounts: the reader's own memory decides how long its copy takes.
 * The congested mark, see cong.c, is set when the payload exceeds
 * SO_RCVBUF and cleared when half of it is drained; and by memory, see below. A
 * message that arrives nevertheless was under way, and is taken. Replies come
 * all the same. A socket that asks for them but never reads them is stopped as
 * well, see reply.c.
 *
 * A peer that does not stop must not fill the memory. So there is a second
 * bound: a message beyond it is refused (conn/refuse.c), and comes again when
 * the socket is clear. With half of that memory in use the socket is congested,
 * however little payload there is in it. A legacy peer knows no refusal: its
 * connection is reset, nothing is acknowledged, and the message comes again on
 * the next one. So for such peers the bound is far above the bytes that may
 * have been under way. But if much of the memory is replies, which come all the
 * same, their senders must not pay for a program that asks and does not read:
 * further replies, over loopback, too, are acknowledged and dropped, so are
 * ends of streams, and the socket gets an error.
 *
 * There may be many sockets. So the memory of their messages is on the account
 * of the user and the namespace, too. Once more is there than max_recv_kb,
 * sockets that receive are congested, and messages that come nevertheless are
 * refused. A socket with nothing to read, or which has no more than
 * XRDS_RECV_LITTLE with the message, does not suffer from the others so soon:
 * it can go on, slowly, until a quarter more than max_recv_kb is there. From
 * then on it may have XRDS_RECV_LEAST. Replies and ends of streams are refused,
 * or dropped, only when twice as much is there. So are messages of legacy
 * peers, if their socket is congested.
 *
 * Over loopback nothing is refused: a sender looks at the account before it queues
 * a message (xrds_rcvbuf_admit()).
 *
 * A socket can be congested for the unread messages of others. It is in
 * xn->recv_waiting then, and a work looks every XRDS_RECV_LOOK_MS whether the
 * account has room again. Not all go on at once: those whose messages find no room
 * have their next turn after the others.
 */
#include "conn/conn.h"
#include "msg.h"
#include "sock/dest.h"
#include "sock/sock.h"
#include "xrds.h"

enum {
	/* legacy peers: memory that so much payload may take at worst: a buffer
	 * of 32 KiB for 4 KiB of it, and rounded up
	 */
	XRDS_RECV_OVERHEAD	= 16,
	/* memory that a socket may have when an account is full, bytes: a message
	 * of 64 KiB
	 */
	XRDS_RECV_LITTLE	= 96 << 10,
	/* the same when an account is fuller than that */
	XRDS_RECV_LEAST		= 4 << 10,
	/* quarters of the bound of an account */
	XRDS_RECV_CLEAR		= 3,
	XRDS_RECV_CONGESTED	= 4,
	XRDS_RECV_TIGHT		= 5,
	XRDS_RECV_OVERFLOW	= 8,
	/* between two looks at the accounts of sockets that wait for them */
	XRDS_RECV_LOOK_MS	= 100,
	/* sockets that go on after one look, and until the next one then */
	XRDS_RECV_TURNS		= 64,
	XRDS_RECV_TURN_MS	= 10,
};

/* Is more memory in use than a share of the socket's bound, 1 / @share?
 * @overhead: so many times SO_RCVBUF are allowed beyond sock_max_recv_kb
 */
static bool xrds_recv_over(struct xrds_sock *xs, u32 share, u32 overhead)
{
	u64 most = (u64)READ_ONCE(xs->xn->sock_max_recv_kb) << 10;

	most += (u64)xrds_sk_rcvbuf(xs) * overhead;
	/* sk_rmem_alloc is signed, and messages under way add to it */
	most = min_t(u64, most, S32_MAX / 2);
	return (u64)atomic_read(&xs->sk.sk_rmem_alloc) * share > most;
}

/* Is there more on the account than so much of the bound, and at least @some of
 * it is this socket's?
 */
static bool xrds_recv_too_many(const struct xrds_sock *xs, u32 some,
			       u32 quarters)
{
	return READ_ONCE(xs->rcv_mem) >= some &&
	       xrds_limit_over(xs->xn, xs->user, XRDS_LIMIT_RECV, quarters);
}

/**
 * xrds_rcvbuf_tight - is a socket's account too full for a message?
 * @xs: socket
 * @more: memory of the message, bytes
 *
 * Context: any.
 * Return: whether it is.
 */
bool xrds_rcvbuf_tight(const struct xrds_sock *xs, u32 more)
{
	u64 before = READ_ONCE(xs->rcv_mem), mem = before + more;
	bool little = !before || mem <= XRDS_RECV_LITTLE;

	return mem > XRDS_RECV_LEAST &&
	       !(READ_ONCE(xs->sk.sk_shutdown) & RCV_SHUTDOWN) &&
	       xrds_limit_over(xs->xn, xs->user, XRDS_LIMIT_RECV,
			       little ? XRDS_RECV_TIGHT : XRDS_RECV_CONGESTED);
}

static bool xrds_recv_is_plain(struct sk_buff *skb)
{
	return !xrds_skb(skb)->reply && !(xrds_skb(skb)->flags & XRDS_F_EOS);
}

/**
 * xrds_rcvbuf_overflows - is there no memory left for a message that has come?
 * @xs: socket
 * @skb: the message
 * @legacy: the peer speaks a legacy version: it cannot be refused a message
 *	without a reset
 *
 * Context: any.
 * Return: whether there is none.
 */
bool xrds_rcvbuf_overflows(struct xrds_sock *xs, struct sk_buff *skb,
			   bool legacy)
{
	/* the message will be dropped */
	if (READ_ONCE(xs->sk.sk_shutdown) & RCV_SHUTDOWN)
		return false;
	if (xrds_recv_over(xs, 1, legacy ? XRDS_RECV_OVERHEAD : 1))
		return true;
	if (!xrds_recv_is_plain(skb))
		return READ_ONCE(xs->rcv_mem) + skb->truesize >
		       XRDS_RECV_LITTLE &&
		       xrds_recv_too_many(xs, 0, XRDS_RECV_OVERFLOW);
	if (!legacy)
		return xrds_rcvbuf_tight(xs, skb->truesize);
	return READ_ONCE(xs->port.congested) &&
	       xrds_recv_too_many(xs, XRDS_RECV_LITTLE, XRDS_RECV_OVERFLOW);
}

/**
 * xrds_rcvbuf_taken - is a message taken although no memory is left?
 * @xs: socket
 * @skb: message for it
 *
 * Plain messages of those who obey congestion bring it to a half at most.
 *
 * Context: any.
 * Return: whether it is, to be dropped.
 */
bool xrds_rcvbuf_taken(struct xrds_sock *xs, struct sk_buff *skb)
{
	return !xrds_recv_is_plain(skb) &&
	       READ_ONCE(xs->reply_mem) * 4 >
	       (u64)atomic_read(&xs->sk.sk_rmem_alloc);
}

/**
 * xrds_rcvbuf_tell_loss - a reply or an end of a stream is lost
 * @xs: socket
 *
 * The receiver is told once, until it reads.
 *
 * Context: any, the queue's lock held.
 * Return: whether it has an error for that now; then it is to be woken.
 */
bool xrds_rcvbuf_tell_loss(struct xrds_sock *xs)
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

/* Are senders to be stopped? Tiny messages take much more memory than payload:
 * half of it is for messages under way by then.
 */
static bool xrds_recv_full(struct xrds_sock *xs)
{
	return xs->rcv_bytes > xrds_sk_rcvbuf(xs) || xrds_recv_over(xs, 2, 1);
}

/* May they go on? A message that a reader is about to copy out still takes
 * memory, and may have been the last one: with an empty queue they do.
 */
static bool xrds_rcvbuf_drained(struct xrds_sock *xs)
{
	return !xs->rcv_bytes || (xs->rcv_bytes <= xrds_sk_rcvbuf(xs) / 2 &&
				  !xrds_recv_over(xs, 4, 1) &&
				  !xrds_recv_too_many(xs, XRDS_RECV_LITTLE / 2,
						      XRDS_RECV_CLEAR));
}

static void xrds_rcvbuf_release(struct sk_buff *skb)
{
	struct xrds_sock *xs = xrds_sk(skb->sk);

	atomic_sub(skb->truesize, &xs->sk.sk_rmem_alloc);
	xrds_limit_change(xs->xn, xs->user, XRDS_LIMIT_RECV,
			  -(s64)skb->truesize);
}

/**
 * xrds_rcvbuf_own - a socket has a message
 * @xs: socket
 * @skb: message; its memory is on the accounts until it is freed, at the latest when
 *	the socket is
 *
 * Context: any.
 */
void xrds_rcvbuf_own(struct xrds_sock *xs, struct sk_buff *skb)
{
	skb_orphan(skb);
	skb->sk = &xs->sk;
	skb->destructor = xrds_rcvbuf_release;
	atomic_add(skb->truesize, &xs->sk.sk_rmem_alloc);
	xrds_limit_change(xs->xn, xs->user, XRDS_LIMIT_RECV, skb->truesize);
}

/**
 * xrds_rcvbuf_charge_skb - a message is in the receive queue
 * @xs: socket
 * @skb: message
 *
 * Context: any, the queue's lock held.
 */
void xrds_rcvbuf_charge_skb(struct xrds_sock *xs, struct sk_buff *skb)
{
	lockdep_assert_held(&xs->sk.sk_receive_queue.lock);

	xs->rcv_bytes += xrds_skb(skb)->charge;
	WRITE_ONCE(xs->rcv_mem, xs->rcv_mem + skb->truesize);
	xs->rcv_payload += xrds_skb(skb)->len;
	xs->rcv_marks += !!(xrds_skb(skb)->flags & XRDS_F_EOS);
	if (xrds_skb(skb)->reply)
		WRITE_ONCE(xs->reply_mem, xs->reply_mem + skb->truesize);
}

/**
 * xrds_rcvbuf_congests - has a charge made the socket congested?
 * @xs: socket
 *
 * Context: any, the queue's lock held.
 * Return: whether it has become so; then xrds_cong_local_full() is to be told.
 */
bool xrds_rcvbuf_congests(struct xrds_sock *xs)
{
	lockdep_assert_held(&xs->sk.sk_receive_queue.lock);

	if (xs->port.congested)
		return false;
	if (!xrds_recv_full(xs)) {
		if (!xrds_recv_too_many(xs, XRDS_RECV_LITTLE,
					XRDS_RECV_CONGESTED))
			return false;
		xrds_count(xs->xn, XRDS_C_LIMIT_RECV);
	}
	WRITE_ONCE(xs->port.congested, true);
	return true;
}

/* The socket waits for its account. */
static void xrds_recv_wait_account(struct xrds_sock *xs, unsigned int ms)
{
	struct xrds_net *xn = xs->xn;

	spin_lock_bh(&xn->cong_lock);
	/* close() and shutdown() have taken it off the list by now, or do so soon */
	if (!sock_flag(&xs->sk, SOCK_DEAD) &&
	    !(READ_ONCE(xs->sk.sk_shutdown) & RCV_SHUTDOWN) &&
	    list_empty(&xs->recv_wait_node)) {
		list_add_tail(&xs->recv_wait_node, &xn->recv_waiting);
		queue_delayed_work(xrds_conn_wq, &xn->recv_work,
				   msecs_to_jiffies(ms));
	}
	spin_unlock_bh(&xn->cong_lock);
}

/* A message waits, here or at its sender: the socket becomes congested. @tight: for
 * want of room on the account. With an empty queue there is no other reason.
 * Returns whether it has become so.
 */
static bool xrds_recv_stop(struct xrds_sock *xs, bool tight)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	bool congests;

	spin_lock_bh(&queue->lock);
	congests = (xs->rcv_bytes || tight) && !xs->port.congested &&
		   !sock_flag(&xs->sk, SOCK_DEAD) &&
		   !(xs->sk.sk_shutdown & RCV_SHUTDOWN);
	if (congests)
		WRITE_ONCE(xs->port.congested, true);
	spin_unlock_bh(&queue->lock);

	if (congests && tight) {
		xrds_recv_wait_account(xs, XRDS_RECV_LOOK_MS);
		xrds_count(xs->xn, XRDS_C_LIMIT_RECV);
	}
	return congests;
}

/**
 * xrds_rcvbuf_refuses - a message is refused: does that make the socket congested?
 * @xs: socket
 * @skb: the message
 *
 * The sender comes again when it hears that the port is clear. With an empty queue
 * and room on the account nothing would clear it: then the sender comes again at
 * once, as a reader is about to let go of the memory.
 *
 * Context: any, without L5.
 * Return: whether it has become so; then xrds_cong_local_full() is to be told.
 */
bool xrds_rcvbuf_refuses(struct xrds_sock *xs, const struct sk_buff *skb)
{
	return xrds_recv_stop(xs, xrds_rcvbuf_tight(xs, skb->truesize));
}

/**
 * xrds_rcvbuf_admit - a sender on this node looks at the account of the receiver
 * @conn: loopback connection
 * @port: where a message is to go
 * @len: its length, bytes
 *
 * If that is full the receiver is congested afterwards.
 *
 * Context: process, without locks.
 */
void xrds_rcvbuf_admit(const struct xrds_conn *conn, u16 port, u32 len)
{
	struct xrds_sock *xs;

	rcu_read_lock();
	xs = xrds_bind_lookup(conn->xn, &conn->key.faddr, conn->key.scope,
			      port);
	if (xs && xrds_rcvbuf_tight(xs, xrds_msg_mem(len)) &&
	    xrds_recv_stop(xs, true))
		xrds_cong_local_full(&xs->port);
	rcu_read_unlock();
}

/* The socket that waits for longest in @list, with a reference, or NULL */
static struct xrds_sock *xrds_recv_next_waiting(struct xrds_net *xn,
						struct list_head *list)
{
	struct xrds_sock *xs;

	spin_lock_bh(&xn->cong_lock);
	xs = list_first_entry_or_null(list, struct xrds_sock, recv_wait_node);
	if (xs) {
		list_del_init(&xs->recv_wait_node);
		sock_hold(&xs->sk);
	}
	spin_unlock_bh(&xn->cong_lock);
	return xs;
}

/* The account has room: congestion ends, unless there is another reason for it.
 * Returns whether it has ended; then xrds_cong_local_clear() is to be told.
 */
static bool xrds_recv_go_on(struct xrds_sock *xs)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	bool clears;

	spin_lock_bh(&queue->lock);
	clears = xs->port.congested && xrds_rcvbuf_drained(xs);
	if (clears)
		WRITE_ONCE(xs->port.congested, false);
	spin_unlock_bh(&queue->lock);
	return clears;
}

/**
 * xrds_rcvbuf_work - look whether accounts have room again
 * @work: xn->recv_work
 *
 * Context: process.
 */
void xrds_rcvbuf_work(struct work_struct *work)
{
	struct xrds_net *xn = container_of(to_delayed_work(work),
					   struct xrds_net, recv_work);
	struct xrds_sock *xs;
	u32 looks = 0, turns = 0;
	LIST_HEAD(todo);

	spin_lock_bh(&xn->cong_lock);
	list_splice_init(&xn->recv_waiting, &todo);
	spin_unlock_bh(&xn->cong_lock);
	while (turns < XRDS_RECV_TURNS && looks++ < XRDS_END_BATCH &&
	       (xs = xrds_recv_next_waiting(xn, &todo))) {
		if (!xrds_rcvbuf_tight(xs, XRDS_RECV_LITTLE) &&
		    xrds_recv_go_on(xs)) {
			xrds_cong_local_clear(&xs->port);
			turns++;
		} else if (READ_ONCE(xs->port.congested)) {
			xrds_recv_wait_account(xs, XRDS_RECV_LOOK_MS);
		}
		sock_put(&xs->sk);
		cond_resched();
	}
	spin_lock_bh(&xn->cong_lock);
	/* those that had no turn are the first next time */
	if (!list_empty(&todo)) {
		list_splice(&todo, &xn->recv_waiting);
		mod_delayed_work(xrds_conn_wq, &xn->recv_work,
				 msecs_to_jiffies(XRDS_RECV_TURN_MS));
	}
	spin_unlock_bh(&xn->cong_lock);
}

/**
 * xrds_rcvbuf_close - a socket reads nothing more
 * @xs: socket, without messages
 *
 * Context: any, without L5.
 * Return: whether congestion has ended; then xrds_cong_local_clear() is to be told.
 */
bool xrds_rcvbuf_close(struct xrds_sock *xs)
{
	struct sk_buff_head *queue = &xs->sk.sk_receive_queue;
	bool clears;

	spin_lock_bh(&queue->lock);
	clears = xs->port.congested;
	WRITE_ONCE(xs->port.congested, false);
	spin_unlock_bh(&queue->lock);

	spin_lock_bh(&xs->xn->cong_lock);
	list_del_init(&xs->recv_wait_node);
	spin_unlock_bh(&xs->xn->cong_lock);
	return clears;
}

/**
 * xrds_rcvbuf_uncharge - take the charge of a message back
 * @xs: socket
 * @skb: message that leaves the receive queue
 *
 * Context: any, the queue's lock held.
 * Return: whether congestion has ended; then xrds_cong_local_clear() is to be told.
 */
bool xrds_rcvbuf_uncharge(struct xrds_sock *xs, const struct sk_buff *skb)
{
	lockdep_assert_held(&xs->sk.sk_receive_queue.lock);

	xs->rcv_bytes -= xrds_skb((struct sk_buff *)skb)->charge;
	WRITE_ONCE(xs->rcv_mem, xs->rcv_mem - skb->truesize);
	xs->rcv_payload -= xrds_skb((struct sk_buff *)skb)->len;
	xs->rcv_marks -= !!(xrds_skb((struct sk_buff *)skb)->flags &
			    XRDS_F_EOS);
	if (xrds_skb((struct sk_buff *)skb)->reply)
		WRITE_ONCE(xs->reply_mem, xs->reply_mem - skb->truesize);
	xs->loss_told = false;
	if (!xs->port.congested || !xrds_rcvbuf_drained(xs))
		return false;
	WRITE_ONCE(xs->port.congested, false);
	return true;
}

/**
 * xrds_rcvbuf_drop_mark - drop the end of a stream
 * @xs: socket
 * @skb: in its receive queue
 *
 * A program that takes no control messages could not tell it from an empty
 * message, and programs that are older than these ends do not expect any: they
 * do not get to see them.
 *
 * Context: any, the queue's lock held.
 * Return: as xrds_rcvbuf_uncharge().
 */
bool xrds_rcvbuf_drop_mark(struct xrds_sock *xs, struct sk_buff *skb)
{
	bool cleared = xrds_rcvbuf_uncharge(xs, skb);

	xrds_srcq_unlink(xs, skb);
	xrds_count(xs->xn, XRDS_C_RECV_DROP_EOS);
	kfree_skb(skb);
	return cleared;
}
