// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bind table: a bound socket is found by (address, scope, port) in its
 * namespace's table, under RCU. It enters the table in bind() and leaves it in
 * close(). A lookup takes no reference: sockets are freed after a grace period.
 */
#include <net/ip.h>

#include "sock/dest.h"
#include "sock/sock.h"
#include "upcall.h"
#include "xrds.h"

enum {
	/* ports 0 (ping) and 1 (probe) cannot be bound */
	XRDS_PORT_PROBE		= 1,
	XRDS_PORT_FIRST		= 2,
};

const struct rhashtable_params xrds_bind_params = {
	.key_len	= sizeof(struct xrds_bind_key),
	.key_offset	= offsetof(struct xrds_sock, bind),
	.head_offset	= offsetof(struct xrds_sock, bind_node),
	.automatic_shrinking = true,
};

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
	start = reciprocal_scale(get_random_u32(), nr);
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
	/* pairs with the load-acquire in xrds_bind_lookup_again() */
	atomic64_inc_return_release(&xs->xn->unbinds);
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

/**
 * xrds_bind_lookup_again - find who is bound to an address and port, by the last
 *	answer if that still holds
 * @xn: namespace
 * @last: the last answer, of this address and port; the caller's lock
 * @addr: address, IPv4 mapped
 * @scope: interface of a link-local address, else 0
 * @port: port, host byte order
 *
 * A socket leaves the table before its grace period begins. So either we see
 * that it has left, or it is not freed before our rcu_read_unlock().
 *
 * Context: any, under rcu_read_lock().
 * Return: as xrds_bind_lookup().
 */
struct xrds_sock *xrds_bind_lookup_again(struct xrds_net *xn,
					 struct xrds_bind_last *last,
					 const struct in6_addr *addr, u32 scope,
					 u16 port)
{
	/* pairs with the release in xrds_bind_del() */
	s64 unbinds = atomic64_read_acquire(&xn->unbinds);

	/* one that is closed has left a moment before it counts as gone, and its port
	 * may have another owner
	 */
	if (last->xs && last->unbinds == unbinds &&
	    !sock_flag(&last->xs->sk, SOCK_DEAD))
		return last->xs;
	last->xs = xrds_bind_lookup(xn, addr, scope, port);
	last->unbinds = unbinds;
	return last->xs;
}

/**
 * xrds_bind_port - find the port of the socket at an address and port
 * @xn: namespace
 * @addr: address, IPv4 mapped
 * @scope: interface of a link-local address, else 0
 * @port: port, host byte order
 *
 * Context: any, under rcu_read_lock().
 * Return: the port, or NULL.
 */
struct xrds_port *xrds_bind_port(struct xrds_net *xn,
				 const struct in6_addr *addr, u32 scope,
				 u16 port)
{
	struct xrds_sock *xs = xrds_bind_lookup(xn, addr, scope, port);

	return xs ? &xs->port : NULL;
}

/**
 * xrds_bind_used - is a socket bound to an address?
 * @xn: namespace
 * @addr: address, IPv4 mapped
 *
 * Context: process.
 * Return: whether one is.
 */
bool xrds_bind_used(struct xrds_net *xn, const struct in6_addr *addr)
{
	struct rhashtable_iter iter;
	struct xrds_sock *xs;
	bool found = false;
	u32 n = 0;

	rhashtable_walk_enter(&xn->binds, &iter);
	rhashtable_walk_start(&iter);
	while (!found && (xs = rhashtable_walk_next(&iter))) {
		found = !IS_ERR(xs) && ipv6_addr_equal(&xs->bind.addr, addr);
		xrds_hold_pause(&iter, ++n);
	}
	rhashtable_walk_stop(&iter);
	rhashtable_walk_exit(&iter);
	return found;
}
