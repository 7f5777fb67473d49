/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only place that knows that kernels differ. Each XRDS_HAVE_ symbol is
 * found by compiling a snippet (tools/probe/) against the kernel's headers;
 * the code elsewhere reads like the newest supported kernel's.
 */
#ifndef _XRDS_COMPAT_H
#define _XRDS_COMPAT_H

#include <linux/errno.h>
#include <linux/socket.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>

#include "xrds-probes.h"

#if !XRDS_HAVE_SOCKADDR_UNSIZED
#define sockaddr_unsized sockaddr
#endif

#if XRDS_HAVE_CONST_CTL_TABLE
#define XRDS_CTL_CONST	const
#else
#define XRDS_CTL_CONST
#endif

/* the member is there only if 32-bit programs can be */
#ifdef CONFIG_COMPAT
#define XRDS_COMPAT_IOCTL(_ioctl)	.compat_ioctl = _ioctl,
#else
#define XRDS_COMPAT_IOCTL(_ioctl)
#endif

#if !XRDS_HAVE_REGISTER_NET_SYSCTL_SZ
/* the table must have an empty entry at its end */
static inline struct ctl_table_header *
register_net_sysctl_sz(struct net *net, const char *path,
		       struct ctl_table *table, size_t size)
{
	return register_net_sysctl(net, path, table);
}
#endif

#if !XRDS_HAVE_IB_RESIZE_CQ
struct ib_cq;

/* a queue of the kernel's own keeps its size; a larger one is made anew */
static inline int ib_resize_cq(struct ib_cq *cq, int cqe)
{
	return -EOPNOTSUPP;
}
#endif

#endif /* _XRDS_COMPAT_H */
