// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a program is told of the end of its RDMA ops: barriers, which it waits at
 * or arms, and notices, which it reads with recvmsg().
 *
 * A barrier is an identifier at a node. It is reached when the node's high-water
 * mark is, and as every op ends, every barrier is. One that is armed, or where
 * none is armed the end of any op whose identifier was asked for, makes an event,
 * for poll() and a control message. A notice says how one op has ended, if that
 * was wanted, or if it has failed and RDS_RECVERR is on.
 *
 * What a program may want to know is kept in the objects themselves, so that
 * nothing is allocated when an op ends: a notice is the op, on the socket's
 * list of notices; a reached barrier is the node, on the list of events.
 * One that finds no room with its reader stays on its list.
 *
 * All lists here are guarded by xs->lock (L4).
 */
#include <net/compat.h>

#include "sock/dest.h"
#include "rdma/rdma.h"
#include "sock/sock.h"
#include "xrds.h"

/**
 * xrds_notice_wake - tell who waits for completions of a socket
 * @xs: socket
 * @node: node whose mark may have moved
 * @mask: what poll() has to report, 0: nothing
 *
 * Context: any, without L4.
 */
void xrds_notice_wake(struct xrds_sock *xs, struct xrds_node *node,
		      __poll_t mask)
{
	struct socket_wq *wq;

	wake_up_interruptible(&node->wait);
	if (!mask)
		return;
	rcu_read_lock();
	wq = rcu_dereference(xs->sk.sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_poll(&wq->wait, mask);
	sk_wake_async(&xs->sk, SOCK_WAKE_WAITD, POLL_IN);
	rcu_read_unlock();
}

/**
 * xrds_notice_event - has what the program waits for at a node come about?
 * @xs: socket
 * @node: node whose mark may have moved
 * @asked: an op has left whose identifier the program was told
 *
 * Context: any, xs->lock held.
 * Return: whether it has; the node is on the list of events then.
 */
bool xrds_notice_event(struct xrds_sock *xs, struct xrds_node *node,
		       bool asked)
{
	lockdep_assert_held(&xs->lock);

	if (node->armed) {
		if (node->completed < node->armed)
			return false;
		node->armed = 0;
		xs->nr_armed--;
	} else if (!asked || xs->nr_armed) {
		return false;
	}
	if (list_empty(&node->event_node))
		list_add_tail(&node->event_node, &xs->events);
	return true;
}

/* -------------------------------------------------------------- barriers */

/* The event of a node is taken note of, or not of interest any more. */
static void xrds_node_clear(struct xrds_node *node)
{
	list_del_init(&node->event_node);
}

/**
 * xrds_node_arm - ask to be told when an op and all before it have ended
 * @xs: socket
 * @node: node
 * @id: identifier of the op, at most the last one issued
 *
 * Replaces what was armed for this node before. When it has come about
 * already the event is there at once.
 *
 * Context: any.
 */
void xrds_node_arm(struct xrds_sock *xs, struct xrds_node *node, u64 id)
{
	bool event;

	spin_lock_bh(&xs->lock);
	if (!node->armed)
		xs->nr_armed++;
	node->armed = id;
	xrds_node_clear(node);
	event = xrds_notice_event(xs, node, false);
	spin_unlock_bh(&xs->lock);
	if (event)
		xrds_notice_wake(xs, node, EPOLLIN | EPOLLRDBAND);
}

static void xrds_barrier_report(struct xrds_sock *xs, struct xrds_node *node,
				struct xrds_barrier *b)
{
	spin_lock_bh(&xs->lock);
	b->completed = node ? node->completed : 0;
	b->issued = node ? node->issued : 0;
	if (node)
		xrds_node_clear(node);
	spin_unlock_bh(&xs->lock);
}

static int xrds_barrier_wait(struct xrds_sock *xs, struct xrds_node *node,
			     struct xrds_barrier *b)
{
	long timeo = b->timeout_ms ? (long)msecs_to_jiffies(b->timeout_ms) :
				     sock_rcvtimeo(&xs->sk, 0);
	long left;

	/* ops end whatever happens, so a wait without bound ends too */
	left = wait_event_interruptible_timeout(node->wait,
						READ_ONCE(node->completed) >=
						b->rdma_id, timeo);
	if (left < 0)
		return -EINTR;
	xrds_barrier_report(xs, node, b);
	return left ? 0 : -ETIMEDOUT;
}

/**
 * xrds_barrier - SIOCXRDSBARRIER
 * @xs: socket
 * @b: argument; completed and issued are filled in for 0, -EAGAIN, -ETIMEDOUT
 * @nonblock: the file does not block
 *
 * Context: process, may sleep.
 * Return: 0 when the op has ended with all before it, -EAGAIN when it has not
 * and the barrier is armed, -ETIMEDOUT, -EINTR, -EINVAL, -ENOTCONN.
 */
int xrds_barrier(struct xrds_sock *xs, struct xrds_barrier *b, bool nonblock)
{
	struct xrds_node *node;
	struct xrds_addr to;

	if (!xrds_sk_bound(xs))
		return -ENOTCONN;
	if (b->flags & ~XRDS_BARRIER_NONBLOCK ||
	    xrds_addr_parse(&to, &b->dest, sizeof(b->dest)))
		return -EINVAL;

	node = xrds_node_find(xs, &to);
	xrds_barrier_report(xs, node, b);
	if (b->rdma_id > b->issued)
		return -EINVAL;
	if (b->rdma_id <= b->completed)
		return 0;
	if (nonblock || b->flags & XRDS_BARRIER_NONBLOCK) {
		xrds_node_arm(xs, node, b->rdma_id);
		return -EAGAIN;
	}
	return xrds_barrier_wait(xs, node, b);
}

/* --------------------------------------------------------------- notices */

/**
 * xrds_cmsg_room - does one more control message find room?
 * @m: message that is received
 * @len: length of its content, bytes
 *
 * Context: any.
 * Return: whether it does.
 */
bool xrds_cmsg_room(const struct msghdr *m, size_t len)
{
	/* of programs of 32 bits; what only aligns the next is not needed */
	size_t need = m->msg_flags & MSG_CMSG_COMPAT ?
		      sizeof(struct compat_cmsghdr) + len : CMSG_LEN(len);

	return m->msg_control && m->msg_controllen >= need;
}

/* Give one notice. Returns 1, 0 when there is none, or -EFAULT: it stays. */
static int xrds_notice_one(struct xrds_sock *xs, struct msghdr *m)
{
	struct rds_rdma_notify notify;
	struct xrds_rop *rop;
	int ret;

	spin_lock_bh(&xs->lock);
	rop = list_first_entry_or_null(&xs->notices, struct xrds_rop,
				       notice_node);
	if (rop)
		list_del_init(&rop->notice_node);
	spin_unlock_bh(&xs->lock);
	if (!rop)
		return 0;

	memset(&notify, 0, sizeof(notify));
	notify.user_token = rop->token;
	notify.status = rop->status;
	ret = put_cmsg(m, SOL_RDS, RDS_CMSG_RDMA_STATUS, sizeof(notify),
		       &notify);
	if (ret) {
		spin_lock_bh(&xs->lock);
		list_add(&rop->notice_node, &xs->notices);
		spin_unlock_bh(&xs->lock);
		return ret;
	}
	xrds_rop_put(rop);
	return 1;
}

/* The same with one event. */
static int xrds_event_one(struct xrds_sock *xs, struct msghdr *m)
{
	struct xrds_barrier_event event;
	struct sockaddr_storage ss;
	struct xrds_addr addr = {};
	struct xrds_node *node;
	int ret;

	memset(&event, 0, sizeof(event));
	spin_lock_bh(&xs->lock);
	node = list_first_entry_or_null(&xs->events, struct xrds_node,
					event_node);
	if (node) {
		xrds_node_clear(node);
		event.completed = node->completed;
		event.issued = node->issued;
	}
	spin_unlock_bh(&xs->lock);
	if (!node)
		return 0;

	addr.addr = node->key.addr;
	addr.scope = node->key.scope;
	xrds_addr_build(&addr, &ss);
	memcpy(&event.dest, &ss, sizeof(event.dest));
	ret = put_cmsg(m, SOL_RDS, XRDS_CMSG_BARRIER, sizeof(event), &event);
	if (ret) {
		spin_lock_bh(&xs->lock);
		if (list_empty(&node->event_node))
			list_add(&node->event_node, &xs->events);
		spin_unlock_bh(&xs->lock);
		return ret;
	}
	return 1;
}

/**
 * xrds_notices_pending - is there a notice to read?
 * @xs: socket
 *
 * Context: any. Lockless; who is woken looks again.
 * Return: the poll mask of what there is.
 */
__poll_t xrds_notices_pending(struct xrds_sock *xs)
{
	__poll_t mask = 0;

	if (!list_empty_careful(&xs->notices))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (!list_empty_careful(&xs->events))
		mask |= EPOLLIN | EPOLLRDBAND;
	if (!list_empty_careful(&xs->cleared))
		mask |= EPOLLIN | EPOLLWRBAND;
	return mask;
}

/**
 * xrds_notices_read - give notices to a reader
 * @xs: socket
 * @m: where; what finds no room stays, and MSG_CTRUNC is set
 *
 * Context: process.
 * Return: how many were given, or -EFAULT when none could be copied.
 */
int xrds_notices_read(struct xrds_sock *xs, struct msghdr *m)
{
	int n = 0, ret = 1;

	while (ret > 0 && xrds_cmsg_room(m, sizeof(struct rds_rdma_notify))) {
		ret = xrds_notice_one(xs, m);
		n += ret > 0;
	}
	if (!ret)
		ret = 1;
	while (ret > 0 && xrds_cmsg_room(m, sizeof(struct xrds_barrier_event))) {
		ret = xrds_event_one(xs, m);
		n += ret > 0;
	}
	if (ret >= 0) {
		ret = xrds_monitor_read(xs, m);
		n += ret > 0;
	}
	if (ret < 0)
		return n ?: ret;
	/* not for what has come since, and would have found room */
	if ((!list_empty_careful(&xs->notices) &&
	     !xrds_cmsg_room(m, sizeof(struct rds_rdma_notify))) ||
	    (!list_empty_careful(&xs->events) &&
	     !xrds_cmsg_room(m, sizeof(struct xrds_barrier_event))))
		m->msg_flags |= MSG_CTRUNC;
	return n;
}

/**
 * xrds_notices_purge - drop what a closed socket has not read
 * @xs: socket, SOCK_DEAD is set
 *
 * Context: process.
 */
void xrds_notices_purge(struct xrds_sock *xs)
{
	struct xrds_rop *rop, *tmp;
	LIST_HEAD(drop);

	spin_lock_bh(&xs->lock);
	list_splice_init(&xs->notices, &drop);
	spin_unlock_bh(&xs->lock);
	list_for_each_entry_safe(rop, tmp, &drop, notice_node) {
		list_del_init(&rop->notice_node);
		xrds_rop_put(rop);
	}
}
