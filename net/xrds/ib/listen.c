// SPDX-License-Identifier: GPL-2.0-only
/*
 * Listeners of the connection manager.
 *
 * Two identifiers listen in a namespace, one for each address family. Requests
 * that come go to cm_req.c.
 *
 * An identifier holds a reference on its namespace, so a listener would keep a
 * namespace from ever ending. The first namespace, which stays, always has
 * listeners; another one has them for as long as a socket is bound there, which
 * holds a reference anyway. xin->listen_lock guards both identifiers and the
 * count of their users.
 */
#include <net/addrconf.h>

#include "ib/ib.h"

enum {
	XRDS_IB_BACKLOG		= 128,
};

/* An identifier that listens at any address of the family of @any */
static struct rdma_cm_id *xrds_ib_listen_at(struct xrds_ib_net *xin,
					    struct sockaddr *any)
{
	struct rdma_cm_id *id;
	int ret = 0;

	id = rdma_create_id(xin->net, xrds_ib_cm_req_listen, xin, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id))
		return id;
	if (any->sa_family == AF_INET6)
		ret = rdma_set_afonly(id, 1);
	if (!ret)
		ret = rdma_bind_addr(id, any);
	if (!ret)
		ret = rdma_listen(id, XRDS_IB_BACKLOG);
	if (!ret)
		return id;
	rdma_destroy_id(id);
	return ERR_PTR(ret);
}

/* A node without IPv6 is no error. With IPv6 disabled there is no listener for
 * it: rdma_cm would look up the route of a request in tables that do not exist.
 */
static int xrds_ib_listen_start(struct xrds_ib_net *xin)
{
	struct sockaddr_in any = {
		.sin_family	= AF_INET,
		.sin_port	= htons(XRDS_WIRE_PORT_V4),
	};
	struct sockaddr_in6 any6 = {
		.sin6_family	= AF_INET6,
		.sin6_port	= htons(XRDS_WIRE_PORT_V6),
	};
	struct rdma_cm_id *id;

	id = xrds_ib_listen_at(xin, (struct sockaddr *)&any);
	if (IS_ERR(id)) {
		pr_err("xrds_ib: cannot listen on RDMA port %d: %pe; is another RDS loaded?\n",
		       XRDS_WIRE_PORT_V4, id);
		return PTR_ERR(id);
	}
	xin->listen[0] = id;
	if (!ipv6_mod_enabled())
		return 0;
	id = xrds_ib_listen_at(xin, (struct sockaddr *)&any6);
	if (!IS_ERR(id))
		xin->listen[1] = id;
	return 0;
}

/* When it returns no request is being checked. */
static void xrds_ib_listen_stop(struct xrds_ib_net *xin)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(xin->listen); i++) {
		if (xin->listen[i])
			rdma_destroy_id(xin->listen[i]);
		xin->listen[i] = NULL;
	}
}

/**
 * xrds_ib_listen_get - listen for requests; the first call makes the listeners
 * @net: namespace
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno.
 */
int xrds_ib_listen_get(struct net *net)
{
	struct xrds_ib_net *xin = xrds_ib_net(net);
	int ret = 0;

	mutex_lock(&xin->listen_lock);
	if (!xin->listen_users)
		ret = xrds_ib_listen_start(xin);
	if (!ret)
		xin->listen_users++;
	mutex_unlock(&xin->listen_lock);
	return ret;
}

/**
 * xrds_ib_listen_put - undo xrds_ib_listen_get()
 * @net: namespace
 *
 * Context: process, may sleep.
 */
void xrds_ib_listen_put(struct net *net)
{
	struct xrds_ib_net *xin = xrds_ib_net(net);

	mutex_lock(&xin->listen_lock);
	if (!--xin->listen_users)
		xrds_ib_listen_stop(xin);
	mutex_unlock(&xin->listen_lock);
}
