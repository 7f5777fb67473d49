// SPDX-License-Identifier: GPL-2.0-only
/*
 * The list of RDMA devices, and the device of an address.
 *
 * A device is in the list from xrds_ib_dev_publish() to
 * xrds_ib_dev_make_dead(). It is freed when its last reference is dropped:
 * endpoints, receive queues and memory regions have one each. main.c adds and
 * removes devices.
 *
 * xrds_ib_devs_lock guards the list, ibdev->lock the endpoints and regions of a
 * device.
 */
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <rdma/ib_cache.h>

#include "ib/ib.h"

static DEFINE_MUTEX(xrds_ib_devs_lock);
static LIST_HEAD(xrds_ib_devs);

/**
 * xrds_ib_dev_publish - let endpoints and regions find a device
 * @ibdev: device
 *
 * Context: process.
 */
void xrds_ib_dev_publish(struct xrds_ib_dev *ibdev)
{
	mutex_lock(&xrds_ib_devs_lock);
	list_add_tail(&ibdev->entry, &xrds_ib_devs);
	mutex_unlock(&xrds_ib_devs_lock);
}

/**
 * xrds_ib_dev_make_dead - a device is being removed: tell its endpoints
 * @ibdev: device
 *
 * When it returns no endpoint finds the device, and each endpoint that uses it
 * was told.
 *
 * Context: process.
 */
void xrds_ib_dev_make_dead(struct xrds_ib_dev *ibdev)
{
	struct xrds_ib_ep *ep, *tmp;
	LIST_HEAD(todo);
	u32 n;

	mutex_lock(&xrds_ib_devs_lock);
	list_del(&ibdev->entry);
	xrds_transport_device_gone();
	mutex_unlock(&xrds_ib_devs_lock);

	spin_lock_bh(&ibdev->lock);
	ibdev->removed = true;
	list_splice_init(&ibdev->eps, &todo);
	spin_unlock_bh(&ibdev->lock);
	/* endpoints that end meanwhile leave either list, and no new ones come */
	do {
		n = 0;
		spin_lock_bh(&ibdev->lock);
		list_for_each_entry_safe(ep, tmp, &todo, dev_entry) {
			if (n == XRDS_END_BATCH)
				break;
			list_move_tail(&ep->dev_entry, &ibdev->eps);
			xrds_ib_event_fail(ep, XRDS_EV_REMOVED, -ENODEV);
			n++;
		}
		spin_unlock_bh(&ibdev->lock);
		xrds_hold_count(XRDS_HOLD_END, n);
		cond_resched();
	} while (n == XRDS_END_BATCH);
}

/**
 * xrds_ib_dev_find - find the transport's object for a device
 * @dev: device; the caller keeps it from being freed
 *
 * Context: process.
 * Return: the device with a reference, or NULL if it is not usable or is
 * being removed.
 */
struct xrds_ib_dev *xrds_ib_dev_find(const struct ib_device *dev)
{
	struct xrds_ib_dev *ibdev, *found = NULL;

	mutex_lock(&xrds_ib_devs_lock);
	list_for_each_entry(ibdev, &xrds_ib_devs, entry) {
		if (ibdev->dev == dev) {
			xrds_ib_dev_get(ibdev);
			found = ibdev;
			break;
		}
	}
	mutex_unlock(&xrds_ib_devs_lock);
	return found;
}

/**
 * xrds_ib_dev_next - walk over all devices
 * @scan: number of the walk, another one than that of the walk before
 *
 * Context: process.
 * Return: a device where the walk has not been, with a reference, or NULL.
 */
struct xrds_ib_dev *xrds_ib_dev_next(u32 scan)
{
	struct xrds_ib_dev *ibdev, *found = NULL;

	mutex_lock(&xrds_ib_devs_lock);
	list_for_each_entry(ibdev, &xrds_ib_devs, entry) {
		if (ibdev->scan != scan) {
			ibdev->scan = scan;
			xrds_ib_dev_get(ibdev);
			found = ibdev;
			break;
		}
	}
	mutex_unlock(&xrds_ib_devs_lock);
	return found;
}

/* Does the identifier belong to an interface of this namespace? An interface of
 * another one may have the same address.
 */
static bool xrds_ib_dev_gid_in(const struct net *net,
			       const struct ib_gid_attr *attr)
{
	const struct net_device *ndev;
	bool in;

	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	in = !IS_ERR(ndev) && net_eq(dev_net(ndev), net);
	rcu_read_unlock();
	return in;
}

/* Does a RoCE device have an address that is not link-local? Then it stands in the
 * device's table of identifiers.
 */
static bool xrds_ib_dev_owns(struct xrds_ib_dev *ibdev, const struct net *net,
			     const struct in6_addr *addr)
{
	const struct ib_gid_attr *attr;
	union ib_gid gid;
	bool in;

	BUILD_BUG_ON(sizeof(gid) != sizeof(*addr));
	memcpy(&gid, addr, sizeof(gid));
	attr = rdma_find_gid(ibdev->dev, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP,
			     NULL);
	if (IS_ERR(attr))
		return false;
	in = xrds_ib_dev_gid_in(net, attr);
	rdma_put_gid_attr(attr);
	return in;
}

static struct xrds_ib_dev *xrds_ib_dev_find_gid(const struct net *net,
						const struct in6_addr *addr)
{
	struct xrds_ib_dev *ibdev, *found = NULL;

	mutex_lock(&xrds_ib_devs_lock);
	list_for_each_entry(ibdev, &xrds_ib_devs, entry) {
		if (!xrds_ib_dev_owns(ibdev, net, addr))
			continue;
		xrds_ib_dev_get(ibdev);
		found = ibdev;
		break;
	}
	mutex_unlock(&xrds_ib_devs_lock);
	return found;
}

static int xrds_ib_dev_cm_event(struct rdma_cm_id *id,
				struct rdma_cm_event *event)
{
	return 0;
}

/* rdma_cm believes the scope of a link-local address, and a RoCE device has
 * that address in its table even while IPv6 is disabled on the interface.
 */
static bool xrds_ib_dev_scope_valid(struct net *net,
				    const struct in6_addr *addr, u32 scope)
{
	const struct net_device *ndev;
	bool there;

	if (!scope)
		return true;
	if (!ipv6_mod_enabled())
		return false;
	rcu_read_lock();
	ndev = dev_get_by_index_rcu(net, scope);
	there = ndev && ipv6_chk_addr(net, addr, ndev, 0);
	rcu_read_unlock();
	return there;
}

/* Is the interface on which the device found the address in the namespace? All
 * namespaces share the device itself unless the administrator has changed that.
 * On Linux 7.2 a namespace that has the same address on its loopback interface
 * is given the device of the first namespace.
 */
static bool xrds_ib_dev_id_in(const struct rdma_cm_id *id,
			      const struct net *net)
{
	const struct ib_gid_attr *gid = id->route.addr.dev_addr.sgid_attr;

	return !gid || !rdma_protocol_roce(id->device, id->port_num) ||
	       xrds_ib_dev_gid_in(net, gid);
}

/* The connection manager binds an identifier to the device that has the
 * address.
 */
static struct xrds_ib_dev *xrds_ib_dev_bound(struct net *net,
					     const struct in6_addr *addr,
					     u32 scope)
{
	struct xrds_addr local = { .addr = *addr, .scope = scope };
	struct xrds_ib_dev *ibdev = NULL;
	struct sockaddr_storage ss;
	struct rdma_cm_id *id;

	if (!xrds_ib_dev_scope_valid(net, addr, scope))
		return NULL;
	/* a region that a peer has used may outlive all else in its namespace */
	if (!maybe_get_net(net))
		return NULL;
	id = rdma_create_id(net, xrds_ib_dev_cm_event, NULL, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id))
		goto out;
	xrds_addr_build(&local, &ss);
	if (!rdma_bind_addr(id, (struct sockaddr *)&ss) && id->device &&
	    xrds_ib_dev_id_in(id, net))
		ibdev = xrds_ib_dev_find(id->device);
	rdma_destroy_id(id);
out:
	put_net(net);
	return ibdev;
}

/**
 * xrds_ib_dev_find_addr - find the device that owns an address
 * @net: namespace
 * @addr: address, IPv4 mapped
 * @scope: interface index of a link-local address, else 0
 *
 * Context: process, may sleep.
 * Return: the device with a reference, or NULL.
 */
struct xrds_ib_dev *xrds_ib_dev_find_addr(struct net *net,
					  const struct in6_addr *addr,
					  u32 scope)
{
	struct xrds_ib_dev *ibdev = NULL;

	/* a lookup in a table, for an address without scope */
	if (!scope)
		ibdev = xrds_ib_dev_find_gid(net, addr);
	return ibdev ?: xrds_ib_dev_bound(net, addr, scope);
}

/**
 * xrds_ib_dev_has_lost - has an address moved to another device?
 * @ibdev: device that had it
 * @net: namespace
 * @addr: address, IPv4 mapped
 * @scope: interface index of a link-local address, else 0
 *
 * Context: process, may sleep.
 * Return: whether another device has it now; nobody may have it.
 */
bool xrds_ib_dev_has_lost(struct xrds_ib_dev *ibdev, struct net *net,
			  const struct in6_addr *addr, u32 scope)
{
	struct xrds_ib_dev *other;

	if (!scope && xrds_ib_dev_owns(ibdev, net, addr))
		return false;
	other = xrds_ib_dev_find_addr(net, addr, scope);
	if (!other)
		return false;
	xrds_ib_dev_put(other);
	return other != ibdev;
}

/**
 * xrds_ib_dev_conn_moved - is a connection's address one of another RoCE device?
 * @ibdev: device of its endpoint
 * @conn: connection
 *
 * Over InfiniBand a request may come on any port whose interface answers for the
 * address, and its endpoint stays there.
 *
 * Context: process, may sleep.
 * Return: whether it is, and not @ibdev's as well; nobody may have it.
 */
bool xrds_ib_dev_conn_moved(struct xrds_ib_dev *ibdev,
			    const struct xrds_conn *conn)
{
	const struct in6_addr *addr = &conn->key.laddr;
	const struct net *net = conn->xn->net;
	struct xrds_ib_dev *other;

	if (conn->key.scope || xrds_ib_dev_owns(ibdev, net, addr))
		return false;
	other = xrds_ib_dev_find_gid(net, addr);
	if (!other)
		return false;
	xrds_ib_dev_put(other);
	return other != ibdev;
}

/**
 * xrds_ib_dev_conn_gone - has no interface of the namespace a connection's address?
 * @conn: connection
 *
 * One that IPv6 is still probing for duplicates is there.
 *
 * Context: any.
 * Return: whether none has it.
 */
bool xrds_ib_dev_conn_gone(const struct xrds_conn *conn)
{
	const struct in6_addr *addr = &conn->key.laddr;
	struct net *net = conn->xn->net;
	bool there;

	if (conn->key.scope)
		return false;
	if (!ipv6_addr_v4mapped(addr))
		return ipv6_mod_enabled() &&
		       !ipv6_chk_addr_and_flags(net, addr, NULL, true, 0, 0);
	rcu_read_lock();
	there = __ip_dev_find(net, addr->s6_addr32[3], false);
	rcu_read_unlock();
	return !there;
}

/* Is a connection's address away, and has it been for long? Sets @again when it has
 * not. An attempt ends anyway, it is looked at when it has led to something. Context:
 * the worker of lost.c, the lock of the endpoint's device held.
 */
static bool xrds_ib_dev_ep_gone(struct xrds_ib_ep *ep, bool *again)
{
	if (!xrds_ib_dev_conn_gone(ep->conn)) {
		ep->gone_since = 0;
		return false;
	}
	if (!ep->gone_since)
		ep->gone_since = jiffies ?: 1;
	if (READ_ONCE(ep->conn->state) == XRDS_ST_UP &&
	    time_after_eq(jiffies, ep->gone_since +
				   msecs_to_jiffies(XRDS_IB_GONE_MS)))
		return true;
	*again = true;
	return false;
}

/**
 * xrds_ib_dev_fail_moved - end the endpoints whose local address has moved, or gone
 * @ibdev: device, with a reference
 *
 * The endpoints that it has when this begins are looked at once each.
 *
 * Context: the worker of lost.c.
 * Return: whether some have an address that has gone, but not for long: look again.
 */
bool xrds_ib_dev_fail_moved(struct xrds_ib_dev *ibdev)
{
	u32 left = READ_ONCE(ibdev->nr_eps), gen;
	bool again = false, gone;
	struct xrds_conn *conn;
	struct xrds_ib_ep *ep;

	while (left--) {
		spin_lock_bh(&ibdev->lock);
		ep = list_first_entry_or_null(&ibdev->eps, struct xrds_ib_ep,
					      dev_entry);
		if (ep) {
			list_move_tail(&ep->dev_entry, &ibdev->eps);
			conn = ep->conn;
			xrds_conn_get(conn);
			gen = ep->gen;
			gone = xrds_ib_dev_ep_gone(ep, &again);
		}
		spin_unlock_bh(&ibdev->lock);
		if (!ep)
			break;
		/* the endpoint may end from here on, not the connection */
		if (gone || xrds_ib_dev_conn_moved(ibdev, conn))
			xrds_conn_ep_event(conn, gen, XRDS_EV_ERROR,
					   -EADDRNOTAVAIL);
		xrds_conn_put(conn);
		cond_resched();
	}
	return again;
}

/**
 * xrds_ib_dev_put - drop a reference on a device
 * @ibdev: device
 *
 * Context: any. The caller must not touch the device afterwards.
 */
void xrds_ib_dev_put(struct xrds_ib_dev *ibdev)
{
	if (refcount_dec_and_test(&ibdev->ref))
		complete(&ibdev->gone);
}

/**
 * xrds_ib_dev_local - does an RDMA device own an address?
 * @net: namespace
 * @addr: address, IPv4 mapped
 * @scope: interface index of a link-local address, else 0
 *
 * Context: process.
 * Return: 0 or -EADDRNOTAVAIL.
 */
int xrds_ib_dev_local(struct net *net, const struct in6_addr *addr, u32 scope)
{
	struct xrds_ib_dev *ibdev = xrds_ib_dev_bound(net, addr, scope);

	if (!ibdev)
		return -EADDRNOTAVAIL;
	xrds_ib_dev_put(ibdev);
	return 0;
}

/**
 * xrds_ib_dev_add_ep - add an endpoint to its device
 * @ibdev: device
 * @ep: endpoint
 *
 * Context: process.
 * Return: 0; -ENODEV if the device is being removed.
 */
int xrds_ib_dev_add_ep(struct xrds_ib_dev *ibdev, struct xrds_ib_ep *ep)
{
	int ret = -ENODEV;

	spin_lock_bh(&ibdev->lock);
	if (!ibdev->removed) {
		list_add_tail(&ep->dev_entry, &ibdev->eps);
		ibdev->nr_eps++;
		ret = 0;
	}
	spin_unlock_bh(&ibdev->lock);
	return ret;
}

/**
 * xrds_ib_dev_del_ep - remove an endpoint from its device
 * @ibdev: device
 * @ep: endpoint, whether it was added or not
 *
 * Context: process.
 */
void xrds_ib_dev_del_ep(struct xrds_ib_dev *ibdev, struct xrds_ib_ep *ep)
{
	spin_lock_bh(&ibdev->lock);
	if (!list_empty(&ep->dev_entry))
		ibdev->nr_eps--;
	list_del_init(&ep->dev_entry);
	spin_unlock_bh(&ibdev->lock);
}

static void xrds_ib_dev_describe(struct xrds_ib_dev *ibdev,
				 struct xrds_device_detail *d)
{
	const struct ib_device_attr *attrs = &ibdev->dev->attrs;

	/* unlike dev_name() it is not freed when the device is renamed */
	strscpy(d->name, ibdev->dev->name, sizeof(d->name));
	d->guid = be64_to_cpu(ibdev->dev->node_guid);
	d->shared_rq = ibdev->shared;
	d->fences = !ibdev->quirks.weak_fences;
	d->atomics = !READ_ONCE(ibdev->no_atomics) &&
		     !ibdev->quirks.no_atomics &&
		     attrs->atomic_cap != IB_ATOMIC_NONE;
	d->max_qp = attrs->max_qp;
	d->max_qp_wr = attrs->max_qp_wr;
	d->max_cqe = attrs->max_cqe;
	d->max_sge = attrs->max_send_sge;
	d->max_srq = attrs->max_srq;
	d->max_srq_wr = attrs->max_srq_wr;
	d->max_mr = attrs->max_mr;
	d->max_mr_pages = attrs->max_fast_reg_page_list_len;
	d->max_rd_atomic = attrs->max_qp_rd_atom;

	spin_lock_bh(&ibdev->lock);
	d->endpoints = ibdev->nr_eps;
	d->regions = ibdev->nr_mrs;
	spin_unlock_bh(&ibdev->lock);

	mutex_lock(&ibdev->rq_lock);
	if (ibdev->rq) {
		d->recv_posted = READ_ONCE(ibdev->rq->nr_posted);
		d->recv_bytes = ibdev->rq->buf_bytes;
	}
	mutex_unlock(&ibdev->rq_lock);
}

/**
 * xrds_ib_dev_detail - a device's attributes for the netlink family
 * @net: namespace
 * @nr: number of the device, from 0 on
 * @d: result, zeroed
 *
 * Context: process.
 * Return: 0; -ENOENT when @nr is too high; -EAGAIN when the namespace may not
 * use the device.
 */
int xrds_ib_dev_detail(const struct net *net, unsigned int nr,
		       struct xrds_device_detail *d)
{
	struct xrds_ib_dev *ibdev;
	int ret = -ENOENT;

	mutex_lock(&xrds_ib_devs_lock);
	list_for_each_entry(ibdev, &xrds_ib_devs, entry) {
		if (nr--)
			continue;
		ret = -EAGAIN;
		if (rdma_dev_access_netns(ibdev->dev, net)) {
			xrds_ib_dev_describe(ibdev, d);
			ret = 0;
		}
		break;
	}
	mutex_unlock(&xrds_ib_devs_lock);
	return ret;
}
