// SPDX-License-Identifier: GPL-2.0-only
/*
 * Addresses.
 *
 * Inside, an address is an in6_addr (IPv4 mapped) with a scope and a port in
 * host byte order. This file alone knows the sockaddr flavours: everything
 * that comes from user space passes xrds_addr_parse(), everything that goes
 * there is made by xrds_addr_build().
 */
#include <linux/in.h>
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <net/ip.h>
#include <net/route.h>

#include "xrds.h"

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
 * xrds_addr_build_name - make the socket address a program gets as a name
 * @a: the address
 * @name: result; every byte of the address is written, and none behind it
 *
 * Context: any.
 * Return: the length of the address, bytes.
 */
int xrds_addr_build_name(const struct xrds_addr *a, void *name)
{
	struct sockaddr_in6 *sin6 = name;
	struct sockaddr_in *sin = name;

	if (ipv6_addr_v4mapped(&a->addr)) {
		*sin = (struct sockaddr_in){
			.sin_family	= AF_INET,
			.sin_port	= htons(a->port),
			.sin_addr.s_addr = a->addr.s6_addr32[3],
		};
		return sizeof(*sin);
	}
	*sin6 = (struct sockaddr_in6){
		.sin6_family	= AF_INET6,
		.sin6_port	= htons(a->port),
		.sin6_addr	= a->addr,
		.sin6_scope_id	= a->scope,
	};
	return sizeof(*sin6);
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
	memset(ss, 0, sizeof(*ss));
	return xrds_addr_build_name(a, ss);
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
 * xrds_addr_text - an address as a log line has it
 * @addr: address, IPv4 mapped
 * @text: buffer
 *
 * Context: any.
 * Return: the text, in the buffer; IPv4 without the prefix of mapped addresses.
 */
const char *xrds_addr_text(const struct in6_addr *addr,
			   struct xrds_addr_text *text)
{
	if (ipv6_addr_v4mapped(addr))
		snprintf(text->s, sizeof(text->s), "%pI4",
			 &addr->s6_addr32[3]);
	else
		snprintf(text->s, sizeof(text->s), "%pI6c", addr);
	return text->s;
}
EXPORT_SYMBOL_GPL(xrds_addr_text);
