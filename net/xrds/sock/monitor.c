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
 * xs->lock (L4) guards the list.
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
	if (list_empty(&dest->cleared_node))
		list_add_tail(&dest->cleared_node, &xs->cleared);
	return EPOLLIN | EPOLLRDNORM | EPOLLWRBAND;
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
	struct xrds_dest *dest, *tmp;

	spin_lock_bh(&xs->lock);
	WRITE_ONCE(xs->cong_monitor, on);
	if (!on)
		list_for_each_entry_safe(dest, tmp, &xs->cleared, cleared_node)
			list_del_init(&dest->cleared_node);
	spin_unlock_bh(&xs->lock);
}

/* Take up to @max destinations off the list, and note them in @mask; without
 * @ss take all. Returns how many are in @ss.
 */
static int xrds_monitor_take(struct xrds_sock *xs, struct sockaddr_storage *ss,
			     int max, u64 *mask)
{
	struct xrds_dest *dest, *tmp;
	struct xrds_addr addr;
	int n = 0;

	spin_lock_bh(&xs->lock);
	list_for_each_entry_safe(dest, tmp, &xs->cleared, cleared_node) {
		if (ss && n == max)
			break;
		addr.addr = dest->key.addr;
		addr.scope = dest->key.scope;
		addr.port = dest->key.port;
		if (ss)
			xrds_addr_build(&addr, &ss[n++]);
		*mask |= RDS_CONG_MONITOR_MASK(dest->key.port);
		list_del_init(&dest->cleared_node);
	}
	spin_unlock_bh(&xs->lock);
	return n;
}

/* How many addresses have room behind the mask */
static int xrds_monitor_room(const struct msghdr *m)
{
	size_t fixed = CMSG_SPACE(sizeof(u64)) + CMSG_LEN(0);

	if (!m->msg_control || m->msg_controllen < fixed)
		return 0;
	return min_t(size_t, (m->msg_controllen - fixed) /
			     sizeof(struct sockaddr_storage),
		     XRDS_CLEARED_MAX);
}

/**
 * xrds_monitor_read - tell a reader which destinations became uncongested
 * @xs: socket
 * @m: result; those that do not fit stay, and MSG_CTRUNC is set
 *
 * A reader without room for an address knows RDS_CMSG_CONG_UPDATE only, and
 * is told all by that.
 *
 * Context: process, may sleep.
 * Return: 1 when something was told, 0 when there is nothing to tell or no
 * room, -EFAULT, -ENOMEM.
 */
int xrds_monitor_read(struct xrds_sock *xs, struct msghdr *m)
{
	int max = xrds_monitor_room(m), n, ret = 0;
	struct sockaddr_storage *ss = NULL;
	u64 mask = 0;

	if (list_empty_careful(&xs->cleared))
		return 0;
	if (!xrds_cmsg_room(m, sizeof(mask))) {
		m->msg_flags |= MSG_CTRUNC;
		return 0;
	}
	if (max) {
		ss = kcalloc(max, sizeof(*ss), GFP_KERNEL);
		if (!ss)
			return -ENOMEM;
	}
	n = xrds_monitor_take(xs, ss, max, &mask);
	if (mask)
		ret = put_cmsg(m, SOL_RDS, RDS_CMSG_CONG_UPDATE, sizeof(mask),
			       &mask);
	if (!ret && n)
		ret = put_cmsg(m, SOL_RDS, XRDS_CMSG_CONG_CLEARED,
			       n * sizeof(*ss), ss);
	kfree(ss);
	if (ret) {
		/* the next poll tells that there was something */
		spin_lock_bh(&xs->lock);
		xs->cong_news = true;
		spin_unlock_bh(&xs->lock);
	} else if (!list_empty_careful(&xs->cleared)) {
		m->msg_flags |= MSG_CTRUNC;
	}
	return ret ?: !!mask;
}
