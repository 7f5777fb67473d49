// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions and endpoints that are lost: a device fails, or an address moves to
 * another device.
 *
 * A region stays on the device that had the address of its socket when it was
 * registered. When another device gets that address, connections follow it,
 * and peers' ops arrive there, where the key is unknown or another region's.
 * The region is void from then on, and mr.c tells its owner. An endpoint on RoCE
 * fails: over it peers' ops would still arrive at the old device, where a region that
 * is registered from now on is not. An address that goes and comes back to its device
 * moves nothing. But one that stays away from the namespace may be another node's: after
 * a second the connections that have it end.
 *
 * Nobody says that an address has moved. So each change of the addresses of an
 * interface or of a RoCE device, and each failure of a device has a work item look at
 * all of them. RoCE devices learn of an address some time after its interface. Those of
 * InfiniBand do not know any: there a bond may change to another device, and its
 * address stays. The addresses of a namespace without regions and endpoints on a device
 * do not matter.
 */
#include <linux/inetdevice.h>
#include <net/addrconf.h>

#include "ib/ib.h"

static void xrds_ib_lost_scan(struct work_struct *work)
{
	struct xrds_ib_dev *ibdev;
	bool again = false;
	static u32 scan;

	scan++;
	while ((ibdev = xrds_ib_dev_next(scan))) {
		if (xchg(&ibdev->failed, false))
			xrds_ib_mr_remove_all(ibdev, XRDS_MR_DEVICE_FAILED);
		else
			xrds_ib_mr_remove_moved(ibdev);
		again |= xrds_ib_dev_fail_moved(ibdev);
		xrds_ib_dev_put(ibdev);
	}
	/* unless it is queued already, for at once */
	if (again)
		queue_delayed_work(xrds_ib_wq, to_delayed_work(work),
				   msecs_to_jiffies(XRDS_IB_GONE_MS));
}

static DECLARE_DELAYED_WORK(xrds_ib_lost_work, xrds_ib_lost_scan);

static void xrds_ib_lost_look(void)
{
	xrds_ib_mr_may_move();
	mod_delayed_work(xrds_ib_wq, &xrds_ib_lost_work, 0);
}

static void xrds_ib_lost_addr(const struct net_device *dev)
{
	/* Pairs with the barriers in xrds_ib_mr_reg() and xrds_ib_ep_setup_dev():
	 * either this sees the region or the endpoint, or that finds the address
	 * at its new device.
	 */
	smp_mb();
	if (atomic_read(&xrds_net(dev_net(dev))->nr_on_devices))
		xrds_ib_lost_look();
}

static int xrds_ib_lost_addr4(struct notifier_block *nb, unsigned long event,
			      void *ptr)
{
	const struct in_ifaddr *ifa = ptr;

	xrds_ib_lost_addr(ifa->ifa_dev->dev);
	return NOTIFY_DONE;
}

static int xrds_ib_lost_addr6(struct notifier_block *nb, unsigned long event,
			      void *ptr)
{
	const struct inet6_ifaddr *ifa = ptr;

	xrds_ib_lost_addr(ifa->idev->dev);
	return NOTIFY_DONE;
}

static int xrds_ib_lost_netdev(struct notifier_block *nb, unsigned long event,
			       void *ptr)
{
	if (event == NETDEV_BONDING_FAILOVER || event == NETDEV_CHANGEADDR)
		xrds_ib_lost_addr(netdev_notifier_info_to_dev(ptr));
	return NOTIFY_DONE;
}

static struct notifier_block xrds_ib_lost_inet = {
	.notifier_call = xrds_ib_lost_addr4,
};

static struct notifier_block xrds_ib_lost_inet6 = {
	.notifier_call = xrds_ib_lost_addr6,
};

static struct notifier_block xrds_ib_lost_devs = {
	.notifier_call = xrds_ib_lost_netdev,
};

/**
 * xrds_ib_lost_event - a device has reported something
 * @handler: member of the device
 * @event: its report
 *
 * Context: any.
 */
void xrds_ib_lost_event(struct ib_event_handler *handler,
			struct ib_event *event)
{
	struct xrds_ib_dev *ibdev = container_of(handler, struct xrds_ib_dev,
						 handler);

	if (event->event == IB_EVENT_DEVICE_FATAL)
		WRITE_ONCE(ibdev->failed, true);
	else if (event->event != IB_EVENT_GID_CHANGE)
		return;
	xrds_ib_lost_look();
}

/**
 * xrds_ib_lost_init - look out for addresses that move
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int xrds_ib_lost_init(void)
{
	int ret = register_inetaddr_notifier(&xrds_ib_lost_inet);

	if (ret)
		return ret;
	ret = register_inet6addr_notifier(&xrds_ib_lost_inet6);
	if (ret)
		goto err_inet;
	ret = register_netdevice_notifier(&xrds_ib_lost_devs);
	if (ret)
		goto err_inet6;
	return 0;

err_inet6:
	unregister_inet6addr_notifier(&xrds_ib_lost_inet6);
err_inet:
	unregister_inetaddr_notifier(&xrds_ib_lost_inet);
	return ret;
}

/**
 * xrds_ib_lost_exit - stop it
 *
 * Context: process, may sleep. All devices have gone.
 */
void xrds_ib_lost_exit(void)
{
	unregister_netdevice_notifier(&xrds_ib_lost_devs);
	unregister_inet6addr_notifier(&xrds_ib_lost_inet6);
	unregister_inetaddr_notifier(&xrds_ib_lost_inet);
	cancel_delayed_work_sync(&xrds_ib_lost_work);
}
