// SPDX-License-Identifier: GPL-2.0-only
/*
 * News of congestion that has ended.
 *
 * A destination that has refused a socket for congestion, and is clear again,
 * is news to that socket and to no other. Without RDS_CONG_MONITOR the next
 * poll tells that there was something, once. With it the destinations
 * themselves are on a list until recvmsg() has told them: by a mask of ports,
 * as programs have always been told, and by address.
 *
 *   xs->cleared   news: poll() reports them
 *   xs->unnamed   a reader without space for an address was told the ports: the
 *                 first reader with space is told the addresses. poll() does not
 *                 report them, as a program that knows the mask only would never
 *                 sleep.
 *
 * A reader keeps those that it is told on a list of its own meanwhile. When they
 * cannot be copied out they are news again.
 *
 * xs->lock (L4) guards the lists.
 */
#include "sock/dest.h"
#include "rdma/rdma.h"
#include "sock/sock.h"
#include "xrds.h"

/* addresses that one XRDS_CMSG_CONG_CLEARED has at most */
enum { XRDS_CLEARED_MAX = 32 };

/**
 * xrds_monitor_note - congestion of a destination that refused has ended
 * @dest: destination
 *
 * That is news to the program, whether there is space now or not.
 *
 * Context: any, xs->lock held.
 * Return: the poll mask of the news; with EPOLLIN while RDS_CONG_MONITOR is on, as
 * there is a notice to read then.
 */
__poll_t xrds_monitor_note(struct xrds_dest *dest)
{
	struct xrds_sock *xs = dest->key.xs;

	lockdep_assert_held(&xs->lock);

	if (!dest->linked || sock_flag(&xs->sk, SOCK_DEAD))
		return 0;
	if (!xs->cong_monitor) {
		xs->cong_news = true;
		return EPOLLIN | EPOLLWRBAND;
	}
	dest->unnamed = false;
	list_move_tail(&dest->cleared_node, &xs->cleared);
	return EPOLLIN | EPOLLRDNORM | EPOLLWRBAND;
}

/* The next one to tell, or NULL. */
static struct xrds_dest *xrds_monitor_next(struct xrds_sock *xs, bool name)
{
	lockdep_assert_held(&xs->lock);

	if (name && !list_empty(&xs->unnamed))
		return list_first_entry(&xs->unnamed, struct xrds_dest,
					cleared_node);
	return list_first_entry_or_null(&xs->cleared, struct xrds_dest,
					cleared_node);
}

/**
 * xrds_monitor_set - RDS_CONG_MONITOR
 * @xs: socket
 * @on: its value
 *
 * Context: process.
 */
void xrds_monitor_set(struct xrds_sock *xs, bool on)
{
	struct xrds_dest *dest;
	u32 n;

	spin_lock_bh(&xs->lock);
	WRITE_ONCE(xs->cong_monitor, on);
	spin_unlock_bh(&xs->lock);
	/* all of it is news to nobody */
	do {
		n = 0;
		spin_lock_bh(&xs->lock);
		while (!xs->cong_monitor && n < XRDS_END_BATCH &&
		       (dest = xrds_monitor_next(xs, true))) {
			dest->unnamed = false;
			list_del_init(&dest->cleared_node);
			n++;
		}
		spin_unlock_bh(&xs->lock);
		xrds_hold_count(XRDS_HOLD_END, n);
		cond_resched();
	} while (n == XRDS_END_BATCH);
}

/* Move up to @max destinations to @taken, and note them in @mask and in @ss, if
 * there is one. Returns how many.
 */
static int xrds_monitor_take(struct xrds_sock *xs, struct sockaddr_storage *ss,
			     int max, u64 *mask, struct list_head *taken)
{
	struct xrds_dest *dest;
	struct xrds_addr addr;
	int n = 0;

	spin_lock_bh(&xs->lock);
	while (n < max && (dest = xrds_monitor_next(xs, ss))) {
		addr.addr = dest->key.addr;
		addr.scope = dest->key.scope;
		addr.port = dest->key.port;
		if (ss)
			xrds_addr_build(&addr, &ss[n]);
		*mask |= RDS_CONG_MONITOR_MASK(dest->key.port);
		list_move_tail(&dest->cleared_node, taken);
		n++;
	}
	spin_unlock_bh(&xs->lock);
	return n;
}

/* The destinations in @taken go to the list @to; NULL: they are told. */
static void xrds_monitor_put(struct xrds_sock *xs, struct list_head *taken,
			     struct list_head *to)
{
	struct xrds_dest *dest, *tmp;

	spin_lock_bh(&xs->lock);
	/* the option may be off meanwhile */
	if (!xs->cong_monitor)
		to = NULL;
	list_for_each_entry_safe(dest, tmp, taken, cleared_node) {
		dest->unnamed = to == &xs->unnamed;
		list_del_init(&dest->cleared_node);
		if (to)
			list_add_tail(&dest->cleared_node, to);
	}
	spin_unlock_bh(&xs->lock);
}

/* How many addresses have space behind the mask */
static int xrds_monitor_room(const struct msghdr *m)
{
	/* of programs of 32 bits; the mask needs no padding */
	size_t head = m->msg_flags & MSG_CMSG_COMPAT ?
		      sizeof(struct compat_cmsghdr) : CMSG_LEN(0);
	size_t fixed = head + sizeof(u64) + head;

	if (!m->msg_control || m->msg_controllen < fixed)
		return 0;
	return min_t(size_t, (m->msg_controllen - fixed) /
			     sizeof(struct sockaddr_storage),
		     XRDS_CLEARED_MAX);
}

/**
 * xrds_monitor_unnamed - is there something that only this reader can be told?
 * @xs: socket
 * @m: result
 *
 * Context: process. Lockless.
 * Return: whether it has space for addresses, of which another reader was told
 * the ports only.
 */
bool xrds_monitor_unnamed(struct xrds_sock *xs, const struct msghdr *m)
{
	return !list_empty_careful(&xs->unnamed) && xrds_monitor_room(m);
}

/**
 * xrds_monitor_read - tell a reader which destinations became uncongested
 * @xs: socket
 * @m: result; those that do not fit stay, and MSG_CTRUNC is set
 * @before: notices that took space in @m
 *
 * A reader without space for an address is told the ports by
 * RDS_CMSG_CONG_UPDATE, as it may know nothing else. But where other notices
 * took that space the next call has it.
 *
 * Context: process, may sleep.
 * Return: 1 when something was told, 0 when there is nothing to tell or no
 * space, -EFAULT, -ENOMEM: it stays.
 */
int xrds_monitor_read(struct xrds_sock *xs, struct msghdr *m, int before)
{
	int max = xrds_monitor_room(m), n, ret;
	struct sockaddr_storage *ss = NULL;
	LIST_HEAD(taken);
	u64 mask = 0;

	if (list_empty_careful(&xs->cleared) && !xrds_monitor_unnamed(xs, m))
		return 0;
	if (!xrds_cmsg_room(m, sizeof(mask)) || (before && !max)) {
		m->msg_flags |= MSG_CTRUNC;
		return 0;
	}
	if (max) {
		ss = kcalloc(max, sizeof(*ss), GFP_KERNEL);
		if (!ss)
			return -ENOMEM;
	}
	n = xrds_monitor_take(xs, ss, max ?: XRDS_CLEARED_MAX, &mask, &taken);
	ret = n ? put_cmsg(m, SOL_RDS, RDS_CMSG_CONG_UPDATE, sizeof(mask),
			   &mask) : 0;
	if (!ret && n && max)
		ret = put_cmsg(m, SOL_RDS, XRDS_CMSG_CONG_CLEARED,
			       n * sizeof(*ss), ss);
	kfree(ss);
	xrds_monitor_put(xs, &taken, ret ? &xs->cleared :
				     max ? NULL : &xs->unnamed);
	if (!ret && (!list_empty_careful(&xs->cleared) ||
		     !list_empty_careful(&xs->unnamed)))
		m->msg_flags |= MSG_CTRUNC;
	return ret ?: !!n;
}
