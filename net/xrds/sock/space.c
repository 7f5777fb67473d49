// SPDX-License-Identifier: GPL-2.0-only
/*
 * Send space.
 *
 * It belongs to a destination, so that one which makes no progress takes
 * nothing from another. A message has its space from the moment that sendmsg()
 * is sure to queue it until the peer's kernel acknowledges it, or it is
 * dropped. Reservations for replies are space that is in use already, but a
 * destination with nothing queued takes any message beside them. All of a
 * socket's can be given back at once: a destination's count is void then, as it has
 * an old number (dest->reserve_gen).
 *
 * A destination's sending state, enum xrds_dest_send, says how its last send
 * ended, and whether another one would end in the same way (dest_send.h):
 *
 *	           accepted  no space  congested:         fits     clear
 *	                               waits      told
 *	OPEN       OPEN      FULL      CONGESTED  TOLD    -        -
 *	FULL       OPEN *    FULL      CONGESTED  TOLD    READY *  -
 *	CONGESTED  OPEN *    FULL      CONGESTED  TOLD    -        FULL, READY *
 *	TOLD       OPEN *!   FULL !    TOLD       TOLD    -        FULL !, READY *!
 *	READY      OPEN      FULL      CONGESTED  TOLD    -        -
 *
 * The first four events are a send that is accepted, or refused: for want of
 * space, or for congestion. After the latter sendmsg() waits, or the program is
 * told; that is so, too, when a signal or the timeout ends the wait. "fits":
 * there is space for the message that was refused, with some to spare. "clear":
 * congestion has ended; whether the message fits decides between two states.
 *
 * *: senders that sleep are woken, and the socket polls as writable. !: the end
 * of congestion is news to the program, see monitor.c; so it is when a signal
 * ends the wait after it was clear. Only the end of all streams (eos.c) wakes
 * senders besides. So a program that polls and sends again succeeds; it never
 * spins.
 *
 * Everything here is guarded by xs->lock (L4).
 */
#include <linux/sched/signal.h>

#include "conn/conn.h"
#include "sock/dest.h"
#include "msg.h"
#include "sock/sock.h"
#include "xrds.h"

/* events of a poll for space */
#define XRDS_POLL_SPACE		(EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND)

/**
 * xrds_space_sndbuf - how much a destination may have queued
 * @dest: destination
 *
 * Context: any.
 * Return: bytes.
 */
u32 xrds_space_sndbuf(const struct xrds_dest *dest)
{
	const struct xrds_sock *xs = dest->key.xs;

	return READ_ONCE(dest->sndbuf) ?: READ_ONCE(xs->dest_sndbuf) ?:
	       xrds_sk_sndbuf(xs);
}

/**
 * xrds_space_nr_reserved - reservations for replies that are not used yet
 * @dest: destination
 *
 * Context: any; xs->lock held, but for an estimate.
 * Return: how many.
 */
u32 xrds_space_nr_reserved(const struct xrds_dest *dest)
{
	u32 gen = READ_ONCE(dest->key.xs->reserve_gen);

	return READ_ONCE(dest->reserve_gen) == gen ?
	       READ_ONCE(dest->reservations) : 0;
}

/* A count from before all reservations were given back is void. */
static void xrds_space_renew_gen(struct xrds_dest *dest)
{
	u32 gen = dest->key.xs->reserve_gen;

	lockdep_assert_held(&dest->key.xs->lock);

	if (likely(dest->reserve_gen == gen))
		return;
	WRITE_ONCE(dest->reservations, 0);
	dest->holds = false;
	WRITE_ONCE(dest->reserve_gen, gen);
}

/* Bytes that are reserved for replies; without xs->lock an estimate */
static u64 xrds_space_reserved(const struct xrds_dest *dest)
{
	return (u64)xrds_space_nr_reserved(dest) *
	       xrds_msg_charge(READ_ONCE(dest->key.xs->reply_reserve));
}

static bool xrds_space_left(const struct xrds_dest *dest, u32 charge)
{
	return dest->charged + xrds_space_reserved(dest) + charge <=
	       xrds_space_sndbuf(dest);
}

/* With nothing queued a message of any size fits, beside reservations as well:
 * nothing that is acknowledged would make room for it.
 */
static bool xrds_space_fits(const struct xrds_dest *dest, u32 charge)
{
	return !dest->charged || xrds_space_left(dest, charge);
}

/* One reservation fits in any space. */
static bool xrds_space_fits_reply(const struct xrds_dest *dest)
{
	return (!dest->charged && !xrds_space_nr_reserved(dest)) ||
	       xrds_space_left(dest,
			       xrds_msg_charge(dest->key.xs->reply_reserve));
}

/**
 * xrds_space_set - a destination's sending state changes, or stays
 * @dest: destination
 * @event: the cause
 *
 * Context: any, xs->lock held.
 * Return: events for pollers; pass them to xrds_space_wake().
 */
__poll_t xrds_space_set(struct xrds_dest *dest, enum xrds_dest_event event)
{
	enum xrds_dest_send from = dest->send, to;
	struct xrds_sock *xs = dest->key.xs;
	__poll_t mask = 0;

	lockdep_assert_held(&xs->lock);

	to = xrds_dest_send_next(from, event);
	WRITE_ONCE(dest->send, to);
	xs->nr_refused += (to != XRDS_SEND_OPEN) - (from != XRDS_SEND_OPEN);
	xs->nr_ready += (to == XRDS_SEND_READY) - (from == XRDS_SEND_READY);
	if (xrds_dest_send_wakes(from, to))
		mask = XRDS_POLL_SPACE;
	if (xrds_dest_send_is_news(from, to))
		mask |= xrds_monitor_note(dest);
	return mask;
}

/* Is there space for the send that was refused, with so much in use at most? */
static __poll_t xrds_space_recheck_most(struct xrds_dest *dest, u64 most)
{
	struct xrds_sock *xs = dest->key.xs;

	lockdep_assert_held(&xs->lock);

	if (dest->send != XRDS_SEND_FULL ||
	    dest->unread > xrds_sk_rcvbuf(xs) / 2 ||
	    !xrds_space_fits(dest, dest->want) || dest->charged > most)
		return 0;
	return xrds_space_set(dest, XRDS_SEND_FITS);
}

/* Beside the message, a quarter of the space must be free: a wake-up for each
 * acknowledgment would cost more than the messages do.
 */
static __poll_t xrds_space_recheck(struct xrds_dest *dest)
{
	u32 sndbuf = xrds_space_sndbuf(dest);

	return xrds_space_recheck_most(dest, sndbuf - sndbuf / 4);
}

/* Can messages from it that were held back be read now? Returns the events that
 * readers poll for.
 */
static __poll_t xrds_space_recheck_held(struct xrds_dest *dest)
{
	xrds_space_renew_gen(dest);
	if (!dest->holds || !xrds_space_fits_reply(dest))
		return 0;
	dest->holds = false;
	xrds_srcq_unhold(dest->key.xs, &dest->key);
	return EPOLLIN | EPOLLRDNORM;
}

/**
 * xrds_space_resized - a destination has another amount of space
 * @dest: destination
 *
 * It is to be used, be it little more than before.
 *
 * Context: any, xs->lock held.
 * Return: events for pollers; pass them to xrds_space_wake().
 */
__poll_t xrds_space_resized(struct xrds_dest *dest)
{
	return xrds_space_recheck_held(dest) |
	       xrds_space_recheck_most(dest, U64_MAX);
}

/**
 * xrds_space_freed - some of a destination's space is free again
 * @dest: destination
 *
 * Context: any, xs->lock held.
 * Return: events for pollers; pass them to xrds_space_wake().
 */
__poll_t xrds_space_freed(struct xrds_dest *dest)
{
	return xrds_space_recheck_held(dest) | xrds_space_recheck(dest);
}

/**
 * xrds_space_wake - wake those who wait for a destination, in sendmsg() or poll
 * @flow: flow of the destination
 * @mask: events for pollers; 0: none, and nobody is woken
 *
 * Context: any.
 */
void xrds_space_wake(struct xrds_flow *flow, __poll_t mask)
{
	struct xrds_dest *dest = xrds_dest_of(flow);
	struct sock *sk = &dest->key.xs->sk;
	struct socket_wq *wq;

	if (!mask)
		return;
	/* sleepers queue themselves before they look at dest->send */
	wake_up_interruptible(&dest->space);

	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	/* one call wakes one of those who share a socket, so one for each */
	if (mask & EPOLLOUT) {
		if (skwq_has_sleeper(wq))
			wake_up_interruptible_poll(&wq->wait, XRDS_POLL_SPACE);
		/* the state says that a send was refused: no bit is needed */
		sk_wake_async(sk, SOCK_WAKE_IO, POLL_OUT);
	}
	if (mask & EPOLLIN) {
		mask &= ~(EPOLLOUT | EPOLLWRNORM);
		if (skwq_has_sleeper(wq))
			wake_up_interruptible_poll(&wq->wait, mask);
		sk_wake_async(sk, SOCK_WAKE_WAITD, POLL_IN);
	}
	rcu_read_unlock();
}

static void xrds_space_charge(struct xrds_dest *dest, u32 len)
{
	struct xrds_sock *xs = dest->key.xs;

	lockdep_assert_held(&xs->lock);

	WRITE_ONCE(dest->charged, dest->charged + xrds_msg_charge(len));
	dest->queued_bytes += len;
	dest->queued_msgs++;
	xs->queued_bytes += len;
	xs->queued_msgs++;
	list_del_init(&dest->idle_node);
}

/**
 * xrds_space_release_replies - reservations for replies are not needed any more
 * @dest: destination
 * @nr: how many of them
 *
 * Context: any, xs->lock held.
 */
void xrds_space_release_replies(struct xrds_dest *dest, u32 nr)
{
	struct xrds_sock *xs = dest->key.xs;

	lockdep_assert_held(&xs->lock);

	if (!nr)
		return;
	WRITE_ONCE(dest->reservations, dest->reservations - nr);
	xs->nr_reservations -= nr;
	xrds_limit_uncharge(xs->xn, xs->user, XRDS_LIMIT_MEM,
			    (u64)nr * xrds_msg_mem(xs->reply_reserve));
}

/* How much may be under way behind the last message that asked for an
 * acknowledgment, so that its answer makes room for this?
 */
static u64 xrds_space_tail_avail(const struct xrds_dest *dest, u32 charge)
{
	u64 used = xrds_space_reserved(dest) + charge;
	u64 sndbuf = xrds_space_sndbuf(dest);

	return used < sndbuf ? sndbuf - used : 0;
}

/**
 * xrds_space_try_reserve - one attempt to set space aside for a message
 * @dest: destination
 * @conn: its connection
 * @len: payload, bytes
 * @patient: the program does not learn of a refusal
 *
 * Context: process.
 * Return: 0; 1: a reservation was used; -EAGAIN: no space; -ENOBUFS: congested;
 * -EPIPE: shut down; -ESTALE: the destination was evicted after the caller had
 * found it; -EDQUOT: the user has too much queued.
 */
int xrds_space_try_reserve(struct xrds_dest *dest, struct xrds_conn *conn,
			   u32 len, bool patient)
{
	struct xrds_sock *xs = dest->key.xs;
	u32 charge = xrds_msg_charge(len);
	__poll_t mask = 0;
	u64 room = 0;
	bool blocked;
	int ret = 0;

	/* a reply passes: there is memory for it */
	if (conn->key.loop && !READ_ONCE(xs->ending) &&
	    !(xrds_space_nr_reserved(dest) &&
	      len <= READ_ONCE(xs->reply_reserve)))
		xrds_rcvbuf_admit(conn, dest->key.port, len);
	blocked = xrds_gate_shut(conn, &dest->flow);

	spin_lock_bh(&xs->lock);
	if (unlikely(xs->ready_gone))
		xs->ready_gone--;
	if (xs->ending) {
		ret = -EPIPE;
	} else if (!dest->linked) {
		ret = -ESTALE;
	} else if (xrds_space_nr_reserved(dest) && len <= xs->reply_reserve) {
		xrds_space_release_replies(dest, 1);
		xrds_limit_change(xs->xn, xs->user, XRDS_LIMIT_MEM,
				  xrds_msg_mem(len));
		xrds_space_charge(dest, len);
		if (dest->send == XRDS_SEND_READY)
			mask = xrds_space_set(dest, XRDS_SENT);
		/* mostly a reply is smaller than its reservation */
		mask |= xrds_space_freed(dest);
		ret = 1;
	} else if (!blocked && xrds_space_fits(dest, charge) &&
		   dest->unread <= xrds_sk_rcvbuf(xs)) {
		/* a sender that was refused before, and sleeps, looks again */
		mask = xrds_space_set(dest, XRDS_SENT);
		ret = xrds_limit_charge(xs->xn, xs->user, XRDS_LIMIT_MEM,
					xrds_msg_mem(len));
		if (!ret)
			xrds_space_charge(dest, len);
	} else {
		WRITE_ONCE(dest->want, charge);
		mask = xrds_space_set(dest, !blocked ? XRDS_SENT_NO_SPACE :
					    patient ? XRDS_SENT_WAITS :
						      XRDS_SENT_TOLD);
		room = xrds_space_tail_avail(dest, charge);
		ret = blocked ? -ENOBUFS : -EAGAIN;
	}
	spin_unlock_bh(&xs->lock);

	xrds_space_wake(&dest->flow, mask);
	/* A message that is given to the transport from now on sees that, the
	 * others are counted. Messages that do not ask take at most half of the
	 * space.
	 */
	if (ret == -EAGAIN && room < xrds_space_sndbuf(dest) / 2)
		xrds_tx_ask(conn, &dest->flow, room);
	/* The destination may have become uncongested meanwhile, without
	 * knowing that we wait: then there is nothing to wait for.
	 */
	if (ret == -ENOBUFS && !xrds_wait_begin(conn, &dest->flow))
		xrds_space_wake(&dest->flow, xrds_space_uncongested(&dest->flow, false));
	return ret;
}

/**
 * xrds_space_uncongested - a destination that refused is no longer congested
 * @flow: its flow
 * @waiting: it is on a list of waiters, and leaves it; the caller holds the
 *	lock of that list
 *
 * Context: any; conn->lock may be held.
 * Return: events for pollers; pass them to xrds_space_wake() without a lock, as
 * a program has as many sleepers as it likes.
 */
__poll_t xrds_space_uncongested(struct xrds_flow *flow, bool waiting)
{
	struct xrds_dest *dest = xrds_dest_of(flow);
	struct xrds_sock *xs = dest->key.xs;
	__poll_t mask = 0;

	spin_lock_bh(&xs->lock);
	if (waiting)
		list_del_init(&flow->cong_node);
	/* a sender in sendmsg() is woken now, or when there is space */
	if (dest->send == XRDS_SEND_CONGESTED || dest->send == XRDS_SEND_TOLD) {
		mask = xrds_space_set(dest, XRDS_SEND_CLEAR);
		mask |= xrds_space_recheck(dest);
	}
	spin_unlock_bh(&xs->lock);
	return mask;
}

/**
 * xrds_space_interrupted - a signal has ended the wait for congestion
 * @dest: destination
 *
 * The program knows of the refusal after all. The end of congestion may have
 * come already.
 *
 * Context: process.
 */
void xrds_space_interrupted(struct xrds_dest *dest)
{
	struct xrds_sock *xs = dest->key.xs;
	__poll_t mask = 0;

	spin_lock_bh(&xs->lock);
	if (dest->send == XRDS_SEND_CONGESTED)
		mask = xrds_space_set(dest, XRDS_SENT_TOLD);
	else if (dest->send == XRDS_SEND_FULL || dest->send == XRDS_SEND_READY)
		mask = xrds_monitor_note(dest);
	spin_unlock_bh(&xs->lock);
	xrds_space_wake(&dest->flow, mask);
}

/* ------------------------------------------------- reserved for replies */

/**
 * xrds_space_can_reserve_reply - is there space to reserve for a reply?
 * @dest: destination; when there is not, it will wake readers
 *
 * Context: any, xs->lock held.
 * Return: whether there is.
 */
bool xrds_space_can_reserve_reply(struct xrds_dest *dest)
{
	xrds_space_renew_gen(dest);
	if (xrds_space_fits_reply(dest))
		return true;
	if (!dest->holds)
		xrds_count(dest->key.xs->xn, XRDS_C_REPLY_HELD);
	dest->holds = true;
	return false;
}

static void xrds_space_add_reply(struct xrds_dest *dest)
{
	xrds_space_renew_gen(dest);
	WRITE_ONCE(dest->reservations, dest->reservations + 1);
	dest->key.xs->nr_reservations++;
}

/**
 * xrds_space_reserve_reply - reserve space for a reply
 * @dest: destination that has it
 *
 * Its memory is charged now: nothing may refuse the reply.
 *
 * Context: any, xs->lock held.
 * Return: 0 or -EDQUOT.
 */
int xrds_space_reserve_reply(struct xrds_dest *dest)
{
	struct xrds_sock *xs = dest->key.xs;
	int ret;

	lockdep_assert_held(&xs->lock);

	ret = xrds_limit_charge(xs->xn, xs->user, XRDS_LIMIT_MEM,
				xrds_msg_mem(xs->reply_reserve));
	if (!ret)
		xrds_space_add_reply(dest);
	return ret;
}

/**
 * xrds_space_renew_reply - a reply was not sent after all
 * @dest: destination whose space it had
 *
 * Context: process.
 */
void xrds_space_renew_reply(struct xrds_dest *dest)
{
	struct xrds_sock *xs = dest->key.xs;

	spin_lock_bh(&xs->lock);
	if (dest->linked && xs->reply_reserve && !xs->ending) {
		xrds_limit_change(xs->xn, xs->user, XRDS_LIMIT_MEM,
				  xrds_msg_mem(xs->reply_reserve));
		xrds_space_add_reply(dest);
	}
	spin_unlock_bh(&xs->lock);
}

/**
 * xrds_space_release_all - give all reservations for replies back
 * @xs: socket; the caller wakes its readers, and then its senders, by
 *	xrds_space_changed() or in its own way
 *
 * Context: process, xs->lock held.
 */
void xrds_space_release_all(struct xrds_sock *xs)
{
	lockdep_assert_held(&xs->lock);

	xrds_srcq_ready_all(xs);
	xrds_limit_uncharge(xs->xn, xs->user, XRDS_LIMIT_MEM,
			    (u64)xs->nr_reservations *
			    xrds_msg_mem(xs->reply_reserve));
	xs->nr_reservations = 0;
	WRITE_ONCE(xs->reserve_gen, xs->reserve_gen + 1);
}

/**
 * xrds_space_reply_read - a reply that was counted in @unread has been read
 * @dest: destination that has sent it
 * @charge: its charge
 *
 * Context: process.
 */
void xrds_space_reply_read(struct xrds_dest *dest, u32 charge)
{
	struct xrds_sock *xs = dest->key.xs;
	__poll_t mask;

	spin_lock_bh(&xs->lock);
	dest->unread -= charge;
	mask = xrds_space_recheck(dest);
	spin_unlock_bh(&xs->lock);
	xrds_space_wake(&dest->flow, mask);
}

/**
 * xrds_space_ack_wanted - should a message ask for an acknowledgment?
 * @flow: flow of its destination
 * @len: length of the message, bytes
 *
 * When more than half of the space is in use the sender may soon need it. One
 * answer for a quarter of the space is enough: the messages behind the last one
 * that asked take less than that, so its answer brings space for all senders
 * that wait, but for those that want more than the rest.
 *
 * Context: its connection's tx_lock held. The lockless reads only decide how
 * early the peer answers.
 * Return: whether it should.
 */
bool xrds_space_ack_wanted(struct xrds_flow *flow, u32 len)
{
	const struct xrds_dest *dest = xrds_dest_of(flow);
	u64 tail = dest->flow.unasked + xrds_msg_charge(len);
	u64 sndbuf = xrds_space_sndbuf(dest);

	if (xrds_dest_blocked(dest) &&
	    tail > xrds_space_tail_avail(dest, READ_ONCE(dest->want)))
		return true;
	return READ_ONCE(dest->charged) > sndbuf / 2 && tail >= sndbuf / 4;
}

/* The next destination that somebody is to be woken for, with a reference */
static struct xrds_dest *xrds_space_next_resized(struct xrds_dest_walk *walk,
						 __poll_t *mask)
{
	struct xrds_sock *xs = walk->xs;
	struct xrds_dest *dest;
	u32 n;

	do {
		spin_lock_bh(&xs->lock);
		for (n = 0; n < XRDS_END_BATCH; n++) {
			dest = xrds_dest_walk_next(walk);
			*mask = dest ? xrds_space_resized(dest) : 0;
			if (!dest || *mask)
				break;
		}
		if (n < XRDS_END_BATCH && dest)
			xrds_flow_get(&dest->flow);
		spin_unlock_bh(&xs->lock);
		xrds_hold_count(XRDS_HOLD_END, n);
	} while (n == XRDS_END_BATCH);
	return dest;
}

/**
 * xrds_space_changed - the space of a socket's destinations has another size
 * @sk: socket
 *
 * sk->sk_write_space: SO_SNDBUF ends with it. A message that was refused may
 * fit now.
 *
 * Context: any, without L4.
 */
void xrds_space_changed(struct sock *sk)
{
	struct xrds_dest_walk walk;
	struct xrds_dest *dest;
	__poll_t mask;

	xrds_dest_walk_begin(&walk, xrds_sk(sk));
	while ((dest = xrds_space_next_resized(&walk, &mask))) {
		xrds_space_wake(&dest->flow, mask);
		xrds_dest_put(dest);
	}
	xrds_dest_walk_end(&walk);
}
