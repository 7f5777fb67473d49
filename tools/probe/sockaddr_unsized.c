// SPDX-License-Identifier: GPL-2.0-only
/* proto_ops take a struct sockaddr_unsized since 6.19, before a sockaddr. */
#include <linux/net.h>

int probe(const struct proto_ops *ops, struct socket *sock,
	  struct sockaddr_unsized *addr)
{
	return ops->bind(sock, addr, 0);
}
