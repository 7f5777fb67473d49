// SPDX-License-Identifier: GPL-2.0-only
/*
 * The list of transports. Loopback is always there; others come and go with
 * their modules. A bound socket holds a reference on the module of its
 * transport, so a transport goes only when no socket is bound to one of its
 * addresses; connections that closed sockets have left are ended then.
 */
#include <linux/module.h>
#include <net/net_namespace.h>

#include "transport.h"
#include "xrds.h"

static DECLARE_RWSEM(xrds_transport_lock);
static LIST_HEAD(xrds_transports);
/* How often devices have gone; the numbers of others may have changed then. It
 * begins with 1, as 0 is no state of a dump.
 */
static atomic_t xrds_transport_nr_gone = ATOMIC_INIT(1);

/**
 * xrds_transport_device_gone - a device has left the list of its transport
 *
 * Context: any, under the lock of that list.
 */
void xrds_transport_device_gone(void)
{
	atomic_inc(&xrds_transport_nr_gone);
}
EXPORT_SYMBOL_GPL(xrds_transport_device_gone);

/**
 * xrds_transport_register - offer a transport
 * @trans: transport; must stay until xrds_transport_unregister()
 *
 * Context: process.
 */
void xrds_transport_register(struct xrds_transport *trans)
{
	down_write(&xrds_transport_lock);
	list_add_tail(&trans->node, &xrds_transports);
	up_write(&xrds_transport_lock);
}
EXPORT_SYMBOL_GPL(xrds_transport_register);

/**
 * xrds_transport_unregister - withdraw a transport
 * @trans: transport without bound sockets; xrds_conn_net_end_transport() follows
 *
 * Context: process.
 */
void xrds_transport_unregister(struct xrds_transport *trans)
{
	down_write(&xrds_transport_lock);
	list_del(&trans->node);
	xrds_transport_device_gone();
	/* peers that have more for us dial again as soon as we have closed */
	WRITE_ONCE(trans->leaving, true);
	up_write(&xrds_transport_lock);
}
EXPORT_SYMBOL_GPL(xrds_transport_unregister);

/**
 * xrds_transport_get - find a transport by its type
 * @type: RDS_TRANS_*
 *
 * Context: process, may sleep.
 * Return: the transport with a reference on its module, or NULL.
 */
const struct xrds_transport *xrds_transport_get(u32 type)
{
	const struct xrds_transport *found = NULL;
	struct xrds_transport *trans;

	down_read(&xrds_transport_lock);
	list_for_each_entry(trans, &xrds_transports, node) {
		if (trans->type == type && try_module_get(trans->owner)) {
			found = trans;
			break;
		}
	}
	up_read(&xrds_transport_lock);
	return found;
}

/**
 * xrds_transport_for - which transport owns a local address?
 * @net: namespace
 * @addr: address, IPv4 mapped
 * @scope: interface of a link-local address, else 0
 *
 * Context: process, may sleep.
 * Return: the transport with a reference on its module, or NULL.
 */
const struct xrds_transport *xrds_transport_for(struct net *net,
						const struct in6_addr *addr,
						u32 scope)
{
	const struct xrds_transport *found = NULL;
	struct xrds_transport *trans;

	down_read(&xrds_transport_lock);
	list_for_each_entry(trans, &xrds_transports, node) {
		if (trans->local(net, addr, scope))
			continue;
		if (try_module_get(trans->owner)) {
			found = trans;
			break;
		}
	}
	up_read(&xrds_transport_lock);
	return found;
}

/**
 * xrds_transport_device - a device of any transport, by its number
 * @net: namespace
 * @nr: number, from 0 on; out: that of the device found
 * @d: result
 * @transport: result: name of its transport
 * @gone: result: changes when a device goes, which changes the numbers of others;
 *	never 0
 *
 * Context: process, may sleep.
 * Return: 0; -ENOENT when no device has this number or a higher one.
 */
int xrds_transport_device(const struct net *net, unsigned int *nr,
			  struct xrds_device_detail *d, const char **transport,
			  unsigned int *gone)
{
	struct xrds_transport *trans;
	unsigned int first = 0, i;
	int ret = -ENOENT;

	down_read(&xrds_transport_lock);
	/* first: the next call tells of a device that goes meanwhile */
	*gone = atomic_read(&xrds_transport_nr_gone);
	list_for_each_entry(trans, &xrds_transports, node) {
		if (!trans->device)
			continue;
		for (i = 0; ; i++) {
			memset(d, 0, sizeof(*d));
			ret = trans->device(net, i, d);
			if (ret == -ENOENT)
				break;
			if (!ret && first + i >= *nr)
				goto found;
		}
		first += i;
	}
	up_read(&xrds_transport_lock);
	return ret;
found:
	*nr = first + i;
	*transport = trans->name;
	up_read(&xrds_transport_lock);
	return 0;
}
