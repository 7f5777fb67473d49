// SPDX-License-Identifier: GPL-2.0-only
/*
 * Control messages about RDMA: events of barriers, see rdma/barrier.c, memory
 * regions that were lost, see rdma/mr.c, and notices. A notice says how one op
 * or message has ended, if the program asked for that, or if the op has failed
 * and RDS_RECVERR is on. Those of zcopy.c, monitor.c, node.c and delivered.c come
 * last.
 *
 * Nothing is allocated when one comes: a notice is a part of the op (notice.c),
 * an event is the node, and a lost region is itself, each on a list of the
 * socket. One that does not fit the reader's buffer, or cannot be copied there,
 * stays on its list.
 *
 * All lists here are guarded by xs->lock (L4).
 */
#include "sock/dest.h"
#include "rdma/rdma.h"
#include "sock/sock.h"
#include "xrds.h"

/* A notice was read, or nobody will read it. */
static void xrds_notify_drop(struct xrds_sock *xs, struct xrds_notice *n)
{
	if (n->rop)
		xrds_rop_put(n->rop);
	else
		xrds_notice_free(&xs->rdma, n);
}

/* The length of RDS_CMSG_RDMA_STATUS. On i386 the structure has no padding at its end,
 * and a program no room for it.
 */
static size_t xrds_notice_bytes(const struct msghdr *m)
{
	return m->msg_flags & MSG_CMSG_COMPAT ?
	       sizeof(struct xrds_compat_notify) :
	       sizeof(struct rds_rdma_notify);
}

/* Give one notice. Returns 1, 0 when there is none, or -EFAULT: it stays. */
static int xrds_notice_one(struct xrds_sock *xs, struct msghdr *m)
{
	struct rds_rdma_notify notify;
	struct xrds_notice *n;
	int ret;

	spin_lock_bh(&xs->lock);
	n = list_first_entry_or_null(&xs->rdma.notices, struct xrds_notice,
				     node);
	if (n)
		list_del(&n->node);
	spin_unlock_bh(&xs->lock);
	if (!n)
		return 0;

	memset(&notify, 0, sizeof(notify));
	notify.user_token = n->token;
	notify.status = n->status;
	ret = put_cmsg(m, SOL_RDS, RDS_CMSG_RDMA_STATUS, xrds_notice_bytes(m),
		       &notify);
	if (ret) {
		spin_lock_bh(&xs->lock);
		list_add(&n->node, &xs->rdma.notices);
		spin_unlock_bh(&xs->lock);
		return ret;
	}
	xrds_notify_drop(xs, n);
	return 1;
}

/* The same with one event. */
static int xrds_event_one(struct xrds_sock *xs, struct msghdr *m)
{
	struct xrds_barrier_event event;
	struct xrds_addr addr = {};
	struct xrds_rdma_peer *node;
	int ret;

	memset(&event, 0, sizeof(event));
	spin_lock_bh(&xs->lock);
	node = list_first_entry_or_null(&xs->rdma.events, struct xrds_rdma_peer,
					event_node);
	if (node) {
		xrds_barrier_clear(node);
		event.completed = node->completed;
		event.issued = node->issued;
	}
	spin_unlock_bh(&xs->lock);
	if (!node)
		return 0;

	addr.addr = node->key.addr;
	addr.scope = node->key.scope;
	xrds_addr_build_name(&addr, &event.dest);
	ret = put_cmsg(m, SOL_RDS, XRDS_CMSG_BARRIER, sizeof(event), &event);
	if (ret) {
		spin_lock_bh(&xs->lock);
		if (list_empty(&node->event_node))
			list_add(&node->event_node, &xs->rdma.events);
		spin_unlock_bh(&xs->lock);
		return ret;
	}
	return 1;
}

/* The same with one region that was lost. */
static int xrds_lost_one(struct xrds_sock *xs, struct msghdr *m)
{
	struct xrds_mr_event event;
	struct xrds_mr *mr;
	int ret;

	memset(&event, 0, sizeof(event));
	spin_lock_bh(&xs->lock);
	mr = list_first_entry_or_null(&xs->rdma.lost, struct xrds_mr,
				      lost_node);
	if (mr) {
		list_del_init(&mr->lost_node);
		xrds_mr_get(mr);
	}
	spin_unlock_bh(&xs->lock);
	if (!mr)
		return 0;

	event.cookie = xrds_mr_cookie(mr);
	event.reason = mr->lost;
	ret = put_cmsg(m, SOL_RDS, XRDS_CMSG_MR_LOST, sizeof(event), &event);
	if (ret) {
		spin_lock_bh(&xs->lock);
		if (mr->linked)
			list_add(&mr->lost_node, &xs->rdma.lost);
		spin_unlock_bh(&xs->lock);
	}
	xrds_mr_put(mr);
	return ret ?: 1;
}

/**
 * struct xrds_notify_kind - a kind of notices or events
 * @list:	where they wait
 * @bytes:	length of the control message of one
 * @read:	gives one to a reader, as xrds_notice_one()
 */
struct xrds_notify_kind {
	const struct list_head *list;
	size_t bytes;
	int (*read)(struct xrds_sock *xs, struct msghdr *m);
};

/**
 * xrds_notify_mask - which notices and events are there to read?
 * @xs: socket
 *
 * Context: any. Lockless; for xrds_notify_pending().
 * Return: the poll mask of them.
 */
__poll_t xrds_notify_mask(struct xrds_sock *xs)
{
	__poll_t mask = 0;

	if (!list_empty_careful(&xs->rdma.notices) ||
	    !list_empty_careful(&xs->rdma.lost) ||
	    !list_empty_careful(&xs->zcopied))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (!list_empty_careful(&xs->rdma.events))
		mask |= EPOLLIN | EPOLLRDBAND;
	if (!list_empty_careful(&xs->cleared))
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLWRBAND;
	if (!list_empty_careful(&xs->news))
		mask |= EPOLLIN | EPOLLPRI;
	if (xrds_delivered_pending(xs))
		mask |= EPOLLIN | EPOLLRDNORM;
	return mask;
}

/**
 * xrds_notify_read - give notices to a reader
 * @xs: socket
 * @m: result; those that do not fit stay, and MSG_CTRUNC is set
 *
 * However much room there is, one call gives about XRDS_END_BATCH of them.
 *
 * Context: process.
 * Return: how many were given, or -EFAULT when none could be copied.
 */
int xrds_notify_read(struct xrds_sock *xs, struct msghdr *m)
{
	const struct xrds_notify_kind kinds[] = {
		{ &xs->rdma.notices, xrds_notice_bytes(m), xrds_notice_one },
		{ &xs->rdma.events, sizeof(struct xrds_barrier_event), xrds_event_one },
		{ &xs->rdma.lost, sizeof(struct xrds_mr_event), xrds_lost_one },
		{ &xs->zcopied, sizeof(struct rds_zcopy_cookies), xrds_zcopy_read },
	};
	int n = 0, ret = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds) && ret >= 0; i++) {
		ret = 1;
		while (ret > 0 && n < XRDS_END_BATCH &&
		       xrds_cmsg_room(m, kinds[i].bytes)) {
			ret = kinds[i].read(xs, m);
			n += ret > 0;
		}
	}
	if (ret >= 0) {
		ret = xrds_monitor_read(xs, m, n);
		n += ret > 0;
	}
	if (ret >= 0) {
		ret = xrds_node_read(xs, m);
		n += ret > 0;
	}
	if (ret >= 0) {
		ret = xrds_delivered_read(xs, m);
		n += ret > 0;
	}
	if (ret < 0) {
		/* it is there again for threads that saw none, and sleep */
		xs->sk.sk_state_change(&xs->sk);
		return n ?: ret;
	}
	/* not for later arrivals that would have fitted */
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!list_empty_careful(kinds[i].list) &&
		    !xrds_cmsg_room(m, kinds[i].bytes))
			m->msg_flags |= MSG_CTRUNC;
	}
	return n;
}

/**
 * xrds_notify_purge - drop what a closed socket has not read
 * @xs: socket, SOCK_DEAD is set
 *
 * Context: process, may sleep.
 */
void xrds_notify_purge(struct xrds_sock *xs)
{
	struct xrds_notice *n, *tmp;
	LIST_HEAD(drop);

	spin_lock_bh(&xs->lock);
	list_splice_init(&xs->rdma.notices, &drop);
	spin_unlock_bh(&xs->lock);
	list_for_each_entry_safe(n, tmp, &drop, node) {
		xrds_notify_drop(xs, n);
		cond_resched();
	}
	xrds_zcopy_purge(xs);
}
