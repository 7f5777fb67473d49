// SPDX-License-Identifier: GPL-2.0-only
/*
 * Deferred destroy of identifiers of the connection manager.
 *
 *   endpoint or request -> destroyed at once, by a work item
 *                       -> deferred (list) -> destroyed, interface is up
 *
 * Destroying a connected identifier sends a message to the peer, through the
 * special queue pair that all connections of the port share. On soft-RoCE a
 * message that finds no route, because the network interface is down, moves
 * that queue pair to the error state, and only making the device anew brings it
 * back: until then it receives no request and no reply. On Linux 6.12 and 7.2 a
 * message that the interface drops because it has no carrier does the same. An
 * interface that goes down is also the usual reason why endpoints end.
 *
 * So while the interface is down nothing is sent to the peer. The endpoint is
 * destroyed as always, with its queue pair; only the identifier is kept, with a
 * handler of its own that does nothing, and destroyed when the interface is up
 * again. If the device is removed before that, the handler leaves the
 * identifier to the connection manager. The manager calls the handler of each
 * identifier once, and then waits until all of them are destroyed. So as soon as
 * the removal has begun nothing is deferred any more.
 *
 * The same goes for an interface that has lost the address. That may be
 * permanent: such identifiers stay until the device is removed, but no more of
 * them than XRDS_IB_MAX_DEFERRED, which is the usual bound of connections.
 *
 * The identifier of an attempt that has sent nothing is not kept: its end is not
 * told either. Attempts go on while the interface is down, and would fill the list.
 *
 * Each of the others is destroyed at once, by a work item of its own:
 * destroying waits until the device has sent the message to the peer, and
 * soft-RoCE has been seen to forget one. The connection goes on meanwhile.
 *
 * xrds_ib_deferred_lock guards the list.
 */
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <net/addrconf.h>
#include <net/sch_generic.h>

#include "ib/ib.h"

enum {
	XRDS_IB_MAX_DEFERRED	= 1 << 16,
	/* interval of checks whether the interface is up */
	XRDS_IB_DEFERRED_MS	= 200,
};

/**
 * struct xrds_ib_deferred - an identifier without endpoint
 * @entry:	in xrds_ib_deferred_ids while it waits for its interface
 * @work:	destroys it
 * @id:		identifier; its context is this
 */
struct xrds_ib_deferred {
	struct list_head entry;
	struct work_struct work;
	struct rdma_cm_id *id;
};

static struct workqueue_struct *xrds_ib_cm_id_wq;

static DEFINE_SPINLOCK(xrds_ib_deferred_lock);
static LIST_HEAD(xrds_ib_deferred_ids);
static unsigned int xrds_ib_nr_deferred;

static void xrds_ib_deferred_retry(struct work_struct *work);
static DECLARE_DELAYED_WORK(xrds_ib_deferred_work, xrds_ib_deferred_retry);

/* Under RCU. A RoCE device has the address in its table as well, but a little
 * longer, and under another index after it has come back.
 */
static const struct net_device *xrds_ib_cm_id_ndev(const struct rdma_cm_id *id)
{
	const struct rdma_addr *route = &id->route.addr;
	const struct sockaddr_in6 *sin6;
	const struct sockaddr_in *sin;

	if (route->src_addr.ss_family == AF_INET) {
		sin = (const struct sockaddr_in *)&route->src_addr;
		return __ip_dev_find(route->dev_addr.net, sin->sin_addr.s_addr,
				     false);
	}
	sin6 = (const struct sockaddr_in6 *)&route->src_addr;
	if (!ipv6_mod_enabled())
		return NULL;
	return ipv6_dev_find(route->dev_addr.net, &sin6->sin6_addr, NULL);
}

/* The queue of an interface without carrier drops all packets, and is the last
 * part to come back with the carrier.
 */
static bool xrds_ib_ndev_up(const struct net_device *ndev)
{
	return READ_ONCE(ndev->flags) & IFF_UP && netif_carrier_ok(ndev) &&
	       !qdisc_tx_is_noop(ndev);
}

/**
 * xrds_ib_cm_id_up - can messages be sent to an identifier's peer?
 * @id: identifier, bound to a device or not
 *
 * Context: any.
 * Return: false while the network interface is down, or lacks carrier or
 * address.
 */
bool xrds_ib_cm_id_up(const struct rdma_cm_id *id)
{
	const struct net_device *ndev;
	bool up;

	if (!id->device || !rdma_protocol_roce(id->device, id->port_num))
		return true;
	rcu_read_lock();
	ndev = xrds_ib_cm_id_ndev(id);
	up = ndev && xrds_ib_ndev_up(ndev);
	rcu_read_unlock();
	return up;
}

/* A namespace that only this list keeps alive will not use the port again. */
static bool xrds_ib_deferred_is_due(const struct xrds_ib_deferred *deferred)
{
	const struct net *net = deferred->id->route.addr.dev_addr.net;

	return xrds_ib_cm_id_up(deferred->id) ||
	       xrds_conn_netns_unused(xrds_net(net));
}

static void xrds_ib_deferred_unlist(struct xrds_ib_deferred *deferred)
{
	lockdep_assert_held(&xrds_ib_deferred_lock);

	list_del_init(&deferred->entry);
	xrds_ib_nr_deferred--;
}

/* Take the oldest identifier off the list. */
static struct xrds_ib_deferred *xrds_ib_deferred_take(void)
{
	struct xrds_ib_deferred *deferred;

	spin_lock(&xrds_ib_deferred_lock);
	deferred = list_first_entry_or_null(&xrds_ib_deferred_ids,
					    struct xrds_ib_deferred, entry);
	if (deferred)
		xrds_ib_deferred_unlist(deferred);
	spin_unlock(&xrds_ib_deferred_lock);
	return deferred;
}

/* Destroying waits for the handler, after which nothing refers to @deferred. */
static void xrds_ib_deferred_destroy(struct work_struct *work)
{
	struct xrds_ib_deferred *deferred =
		container_of(work, struct xrds_ib_deferred, work);

	rdma_destroy_id(deferred->id);
	kfree(deferred);
}

static void xrds_ib_deferred_start(struct xrds_ib_deferred *deferred)
{
	queue_work(xrds_ib_cm_id_wq, &deferred->work);
}

/* Look at some of @left identifiers, and destroy those that are due. Those that have to
 * wait go to the end of the list. Returns how many are left.
 */
static u32 xrds_ib_deferred_some(u32 left)
{
	u32 n, most = min_t(u32, left, XRDS_END_BATCH);
	struct xrds_ib_deferred *deferred;

	spin_lock(&xrds_ib_deferred_lock);
	for (n = 0; n < most && !list_empty(&xrds_ib_deferred_ids); n++) {
		deferred = list_first_entry(&xrds_ib_deferred_ids,
					    struct xrds_ib_deferred, entry);
		if (xrds_ib_deferred_is_due(deferred)) {
			xrds_ib_deferred_unlist(deferred);
			xrds_ib_deferred_start(deferred);
		} else {
			list_move_tail(&deferred->entry, &xrds_ib_deferred_ids);
		}
	}
	spin_unlock(&xrds_ib_deferred_lock);
	xrds_hold_count(XRDS_HOLD_END, n);
	return n ? left - n : 0;
}

static void xrds_ib_deferred_retry(struct work_struct *work)
{
	u32 left = READ_ONCE(xrds_ib_nr_deferred);

	while ((left = xrds_ib_deferred_some(left)))
		cond_resched();
	if (READ_ONCE(xrds_ib_nr_deferred))
		queue_delayed_work(xrds_ib_wq, &xrds_ib_deferred_work,
				   msecs_to_jiffies(XRDS_IB_DEFERRED_MS));
}

/* Handler of a deferred identifier. With 1 the manager destroys it. */
static int xrds_ib_deferred_event(struct rdma_cm_id *id,
				  struct rdma_cm_event *event)
{
	struct xrds_ib_deferred *deferred = id->context;
	bool ours;

	if (event->event != RDMA_CM_EVENT_DEVICE_REMOVAL)
		return 0;
	spin_lock(&xrds_ib_deferred_lock);
	ours = !list_empty(&deferred->entry);
	if (ours)
		xrds_ib_deferred_unlist(deferred);
	spin_unlock(&xrds_ib_deferred_lock);
	/* else its work item waits for this handler to destroy it */
	if (!ours)
		return 0;
	kfree(deferred);
	return 1;
}

/* Is the interface down, and the removal of the device still to come? A device
 * leaves the list before rdma_cm calls a handler because of its removal. Context:
 * handler mutex of @id held.
 */
static bool xrds_ib_cm_id_must_wait(const struct rdma_cm_id *id)
{
	struct xrds_ib_dev *ibdev;

	if (xrds_ib_cm_id_up(id))
		return false;
	ibdev = xrds_ib_dev_find(id->device);
	if (!ibdev)
		return false;
	xrds_ib_dev_put(ibdev);
	return true;
}

/* Keep the identifier until its interface is up. */
static void xrds_ib_deferred_add(struct xrds_ib_deferred *deferred)
{
	struct xrds_ib_deferred *oldest = NULL;

	spin_lock(&xrds_ib_deferred_lock);
	list_add_tail(&deferred->entry, &xrds_ib_deferred_ids);
	xrds_ib_nr_deferred++;
	spin_unlock(&xrds_ib_deferred_lock);

	if (READ_ONCE(xrds_ib_nr_deferred) > XRDS_IB_MAX_DEFERRED)
		oldest = xrds_ib_deferred_take();
	if (oldest)
		xrds_ib_deferred_start(oldest);
	queue_delayed_work(xrds_ib_wq, &xrds_ib_deferred_work,
			   msecs_to_jiffies(XRDS_IB_DEFERRED_MS));
}

/**
 * xrds_ib_cm_id_destroy - destroy an identifier once its interface is up
 * @id: identifier without queue pair
 * @tells: its end may be told to the peer, by a message
 *
 * When it returns the identifier's handler does not run any more, and its
 * context is not used.
 *
 * Context: process, not a handler.
 */
void xrds_ib_cm_id_destroy(struct rdma_cm_id *id, bool tells)
{
	struct xrds_ib_deferred *deferred;
	bool wait;

	deferred = kzalloc(sizeof(*deferred), GFP_KERNEL);
	if (!deferred) {
		rdma_destroy_id(id);
		return;
	}
	INIT_LIST_HEAD(&deferred->entry);
	INIT_WORK(&deferred->work, xrds_ib_deferred_destroy);
	deferred->id = id;

	rdma_lock_handler(id);
	id->context = deferred;
	id->event_handler = xrds_ib_deferred_event;
	/* before the handler can get the removal of the device */
	wait = tells && xrds_ib_cm_id_must_wait(id);
	if (wait)
		xrds_ib_deferred_add(deferred);
	rdma_unlock_handler(id);
	if (!wait)
		xrds_ib_deferred_start(deferred);
}

/**
 * xrds_ib_cm_id_init - module init
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int xrds_ib_cm_id_init(void)
{
	/* No WQ_MEM_RECLAIM: rdma_cm flushes workqueues without it. As many as
	 * possible may wait for a device that does not send.
	 */
	xrds_ib_cm_id_wq = alloc_workqueue("xrds_ib_id", WQ_UNBOUND,
					   WQ_UNBOUND_MAX_ACTIVE);
	return xrds_ib_cm_id_wq ? 0 : -ENOMEM;
}

/**
 * xrds_ib_cm_id_exit - destroy all identifiers that wait
 *
 * Context: process, when no endpoint is left.
 */
void xrds_ib_cm_id_exit(void)
{
	struct xrds_ib_deferred *deferred;

	cancel_delayed_work_sync(&xrds_ib_deferred_work);
	while ((deferred = xrds_ib_deferred_take()))
		xrds_ib_deferred_start(deferred);
	destroy_workqueue(xrds_ib_cm_id_wq);
}
