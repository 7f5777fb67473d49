// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options of Oracle's UEK kernel that have another meaning in mainline RDS, or
 * none: an administrator has connections made anew.
 *
 * The errors are that kernel's, as the programs are: -EACCES without the
 * capability, and 0 if there is no such connection.
 */
#include <linux/capability.h>
#include <linux/net_namespace.h>

#include "conn/conn.h"
#include "sock/sock.h"
#include "xrds.h"

static_assert(sizeof(struct xrds_uek_reset) == 12);
static_assert(sizeof(struct xrds_uek_reset6) == 36);

static int xrds_opt_uek_reset(struct xrds_net *xn, const struct in6_addr *src,
			      const struct in6_addr *dst, u8 tos)
{
	struct xrds_conn_match m = { .laddr = src, .faddr = dst, .tos = tos };

	if (!dst)
		m.tos = -1;
	xrds_conn_net_reset(xn, &m);
	return 0;
}

/**
 * xrds_opt_uek_reset4 - XRDS_UEK_CONN_RESET
 * @xs: socket; it says which namespace, and need not be bound
 * @optval: struct xrds_uek_reset
 *
 * Context: process.
 * Return: 0, -EACCES without CAP_NET_ADMIN in the namespace, -EFAULT.
 */
int xrds_opt_uek_reset4(struct xrds_sock *xs, sockptr_t optval)
{
	struct in6_addr src, dst;
	struct xrds_uek_reset arg;

	if (!ns_capable(xs->xn->net->user_ns, CAP_NET_ADMIN))
		return -EACCES;
	if (copy_from_sockptr(&arg, optval, sizeof(arg)))
		return -EFAULT;
	ipv6_addr_set_v4mapped(arg.src, &src);
	ipv6_addr_set_v4mapped(arg.dst, &dst);
	return xrds_opt_uek_reset(xs->xn, &src, arg.dst ? &dst : NULL, arg.tos);
}

/**
 * xrds_opt_uek_reset6 - XRDS_UEK_CONN_RESET6
 * @xs: socket; it says which namespace, and need not be bound
 * @optval: struct xrds_uek_reset6
 * @optlen: its size, bytes
 *
 * Context: process.
 * Return: as xrds_opt_uek_reset4(), and -EINVAL for a wrong size.
 */
int xrds_opt_uek_reset6(struct xrds_sock *xs, sockptr_t optval,
			unsigned int optlen)
{
	struct xrds_uek_reset6 arg;
	struct in6_addr src, dst;

	if (!ns_capable(xs->xn->net->user_ns, CAP_NET_ADMIN))
		return -EACCES;
	if (optlen != sizeof(arg))
		return -EINVAL;
	if (copy_from_sockptr(&arg, optval, sizeof(arg)))
		return -EFAULT;
	memcpy(&src, arg.src, sizeof(src));
	memcpy(&dst, arg.dst, sizeof(dst));
	return xrds_opt_uek_reset(xs->xn, &src,
				  ipv6_addr_any(&dst) ? NULL : &dst, arg.tos);
}
