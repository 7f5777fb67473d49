// SPDX-License-Identifier: GPL-2.0-only
/*
 * Addresses and the bind table.
 *
 * Inside, an address is an in6_addr (IPv4 mapped) with a scope and a port in
 * host byte order. This file alone knows the sockaddr flavours: everything
 * that comes from user space passes xrds_addr_parse(), everything that goes
 * there is made by xrds_addr_build().
 *
 * A bound socket is found by (address, scope, port) in its namespace's table,
 * under RCU. It enters the table in bind() and leaves it in close(); a lookup
 * takes a reference, and sockets are freed after a grace period.
 */
#include <linux/in.h>
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <net/ip.h>
#include <net/route.h>

#include "sock/sock.h"
#include "xrds.h"

enum {
	/* ports 0 (ping) and 1 (probe) cannot be bound */
	XRDS_PORT_PROBE		= 1,
	XRDS_PORT_FIRST		= 2,
};

static const struct rhashtable_params xrds_bind_params = {
	.key_len	= sizeof(struct xrds_bind_key),
	.key_offset	= offsetof(struct xrds_sock, bind),
	.head_offset	= offsetof(struct xrds_sock, bind_node),
	.automatic_shrinking = true,
};

/**
 * xrds_addr_parse - read a socket address given by a program
 * @out: result
 * @sa: kernel copy of the address
 * @len: its length, bytes
 *
 * An IPv4-mapped IPv6 address is the same as the IPv4 address.
 *
 * Context: any.
 * Return: 0, -EINVAL when it is too short, -EAFNOSUPPORT when it is neither
 * IPv4 nor IPv6.
 */
int xrds_addr_parse(struct xrds_addr *out, const void *sa, int len)
{
	const struct sockaddr_in6 *sin6 = sa;
	const struct sockaddr_in *sin = sa;

	if (len < (int)sizeof(sin->sin_family))
		return -EINVAL;

	switch (sin->sin_family) {
	case AF_INET:
		if (len < (int)sizeof(*sin))
			return -EINVAL;
		ipv6_addr_set_v4mapped(sin->sin_addr.s_addr, &out->addr);
		out->scope = 0;
		out->port = ntohs(sin->sin_port);
		return 0;
	case AF_INET6:
		if (len < (int)sizeof(*sin6))
			return -EINVAL;
		out->addr = sin6->sin6_addr;
		out->scope = ipv6_addr_type(&out->addr) & IPV6_ADDR_LINKLOCAL ?
			     sin6->sin6_scope_id : 0;
		out->port = ntohs(sin6->sin6_port);
		return 0;
	default:
		return -EAFNOSUPPORT;
	}
}
EXPORT_SYMBOL_GPL(xrds_addr_parse);

/**
 * xrds_addr_check_dest - can messages be sent to this address?
 * @a: the address
 *
 * Context: any.
 * Return: 0, -EDESTADDRREQ for the wildcard, -EINVAL for multicast, broadcast
 * and link-local addresses without scope.
 */
int xrds_addr_check_dest(const struct xrds_addr *a)
{
	int type;

	if (ipv6_addr_v4mapped(&a->addr)) {
		__be32 v4 = a->addr.s6_addr32[3];

		if (v4 == htonl(INADDR_ANY))
			return -EDESTADDRREQ;
		if (v4 == htonl(INADDR_BROADCAST) || ipv4_is_multicast(v4))
			return -EINVAL;
		return 0;
	}

	type = ipv6_addr_type(&a->addr);
	if (type == IPV6_ADDR_ANY)
		return -EDESTADDRREQ;
	if (type & IPV6_ADDR_MULTICAST)
		return -EINVAL;
	if ((type & IPV6_ADDR_LINKLOCAL) && !a->scope)
		return -EINVAL;
	return 0;
}

/**
 * xrds_addr_build - make the socket address a program gets
 * @a: the address
 * @ss: result; every byte of it is written
 *
 * Context: any.
 * Return: the length of the address, bytes.
 */
int xrds_addr_build(const struct xrds_addr *a, struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof(*ss));
	if (ipv6_addr_v4mapped(&a->addr)) {
		sin->sin_family = AF_INET;
		sin->sin_port = htons(a->port);
		sin->sin_addr.s_addr = a->addr.s6_addr32[3];
		return sizeof(*sin);
	}
	sin6->sin6_family = AF_INET6;
	sin6->sin6_port = htons(a->port);
	sin6->sin6_addr = a->addr;
	sin6->sin6_scope_id = a->scope;
	return sizeof(*sin6);
}
EXPORT_SYMBOL_GPL(xrds_addr_build);

/**
 * xrds_addr_is_loopback - is it 127.0.0.0/8 or ::1?
 * @addr: address, IPv4 mapped
 *
 * Context: any.
 * Return: whether it is.
 */
bool xrds_addr_is_loopback(const struct in6_addr *addr)
{
	if (ipv6_addr_v4mapped(addr))
		return ipv4_is_loopback(addr->s6_addr32[3]);
	return ipv6_addr_loopback(addr);
}

/**
 * xrds_bind_init - make a namespace's bind table
 * @xn: namespace
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int xrds_bind_init(struct xrds_net *xn)
{
	return rhashtable_init(&xn->binds, &xrds_bind_params);
}

/**
 * xrds_bind_exit - free a namespace's bind table
 * @xn: namespace without sockets
 *
 * Context: process.
 */
void xrds_bind_exit(struct xrds_net *xn)
{
	rhashtable_destroy(&xn->binds);
}

static int xrds_bind_insert(struct xrds_sock *xs, const struct xrds_addr *a,
			    u16 port)
{
	xs->bind.addr = a->addr;
	xs->bind.scope = a->scope;
	xs->bind.port = port;
	return rhashtable_lookup_insert_fast(&xs->xn->binds, &xs->bind_node,
					     xrds_bind_params);
}

/* Where other families have their automatic ports: below them programs find
 * the ports that they have agreed on.
 */
static int xrds_bind_insert_any(struct xrds_sock *xs, const struct xrds_addr *a)
{
	struct net *net = xs->xn->net;
	int low, high, ret = -EEXIST;
	u32 nr, start, i;

	inet_get_local_port_range(net, &low, &high);
	low = max_t(int, low, XRDS_PORT_FIRST);
	if (low > high)
		return ret;
	nr = high - low + 1;
	start = get_random_u32();
	for (i = 0; i < nr && ret == -EEXIST; i++) {
		u16 port = low + (start + i) % nr;

		if (!inet_is_local_reserved_port(net, port))
			ret = xrds_bind_insert(xs, a, port);
		cond_resched();
	}
	return ret;
}

/**
 * xrds_bind_add - enter a socket into the bind table
 * @xs: an unbound socket
 * @a: address; port 0 picks one
 *
 * Context: process, socket locked.
 * Return: 0, -EADDRINUSE, -EINVAL for a reserved port, -ENOMEM.
 */
int xrds_bind_add(struct xrds_sock *xs, const struct xrds_addr *a)
{
	int ret;

	sock_owned_by_me(&xs->sk);

	if (a->port == XRDS_PORT_PROBE)
		return -EINVAL;

	if (a->port)
		ret = xrds_bind_insert(xs, a, a->port);
	else
		ret = xrds_bind_insert_any(xs, a);
	if (ret == -EEXIST)
		return -EADDRINUSE;
	return ret ? -ENOMEM : 0;
}

/**
 * xrds_bind_del - take a socket out of the bind table
 * @xs: a bound socket
 *
 * Readers that found it before may still use it until they drop their
 * reference.
 *
 * Context: process.
 */
void xrds_bind_del(struct xrds_sock *xs)
{
	rhashtable_remove_fast(&xs->xn->binds, &xs->bind_node,
			       xrds_bind_params);
}

/**
 * xrds_bind_lookup - find who is bound to an address and port
 * @xn: namespace
 * @addr: address, IPv4 mapped
 * @scope: interface of a link-local address, else 0
 * @port: port, host byte order
 *
 * Context: any, under rcu_read_lock().
 * Return: the socket without a reference, or NULL.
 */
struct xrds_sock *xrds_bind_lookup(struct xrds_net *xn,
				   const struct in6_addr *addr, u32 scope,
				   u16 port)
{
	struct xrds_bind_key key = {
		.addr	= *addr,
		.scope	= scope,
		.port	= port,
	};

	return rhashtable_lookup(&xn->binds, &key, xrds_bind_params);
}
