// SPDX-License-Identifier: GPL-2.0-only
/*
 * XRDS over RDMA: the module.
 *
 * It registers, in this order: the devices, each namespace with its counters
 * and sysctls, the listeners of the first namespace, and last the transport,
 * which the core then starts to use. Unloading goes the other way round. The
 * core holds a reference on the module for each bound socket that uses the
 * transport, so only connections without sockets are left by then. Each
 * namespace gives up its listeners, so that no new request comes, and has its
 * connections destroyed, which waits for them. After that no endpoint exists
 * and the devices can go.
 *
 * A device has the objects that its endpoints share (struct xrds_ib_dev), from
 * the moment its driver registers it until the driver removes it. Removal takes
 * three steps. make_dead: no endpoint finds the device any more, and those that
 * use it get XRDS_EV_REMOVED. Drain: the work items of their connections
 * destroy the endpoints, each of which drops a reference; a receive queue drops
 * its own with its last endpoint; memory regions are ended here, and their
 * owners find nothing left to end. The driver's thread waits for all of these.
 * The wait is bounded, by the slowest drain of a queue pair and the last answer
 * of the registration queue. Destroy: nothing refers to the device.
 *
 * rdma_cm waits in the same way for identifiers that are bound to the device.
 * It registered before this module, so its turn comes after ours, when the
 * endpoints have destroyed their identifiers. An identifier that is bound to
 * the device in between gets RDMA_CM_EVENT_DEVICE_REMOVAL and does not find the
 * device here; its connection fails and destroys it.
 */
#include <linux/module.h>

#include "ib/ib.h"
#include "version.h"

unsigned int xrds_ib_net_id;
struct workqueue_struct *xrds_ib_wq;
static struct xrds_transport xrds_ib_transport;
DEFINE_PER_CPU(struct xrds_ib_counters, xrds_ib_dev_counters);

/* ------------------------------------------------------------- counters */

static const struct xrds_counter_text xrds_ib_counter_texts[] = {
#define X(sym, name, ...) { #name, "" __VA_ARGS__ }
#include "ib/list_counters.h"
#undef X
};

static void xrds_ib_counters_sum(struct net *net, u64 *values)
{
	struct xrds_ib_net *xin = xrds_ib_net(net);
	int cpu, i;

	for_each_possible_cpu(cpu) {
		for (i = 0; i < XRDS_IB_C_NR; i++)
			values[i] += per_cpu_ptr(xin->counters, cpu)->v[i];
	}
	if (!net_eq(net, &init_net))
		return;
	for_each_possible_cpu(cpu) {
		for (i = 0; i < XRDS_IB_C_NR; i++)
			values[i] += per_cpu(xrds_ib_dev_counters, cpu).v[i];
	}
}

static struct xrds_counter_set xrds_ib_counters = {
	.nr	= XRDS_IB_C_NR,
	.texts	= xrds_ib_counter_texts,
	.sum	= xrds_ib_counters_sum,
};

/* -------------------------------------------------------------- devices */

static bool xrds_ib_use_srq = true;
module_param_named(srq, xrds_ib_use_srq, bool, 0444);
MODULE_PARM_DESC(srq, "Share one receive queue per device where possible (default Y)");

static struct ib_client xrds_ib_client;

/* RDS needs InfiniBand or RoCE, and space for a header and payload. */
static bool xrds_ib_dev_usable(struct ib_device *dev)
{
	return dev->node_type == RDMA_NODE_IB_CA &&
	       dev->attrs.max_send_sge >= XRDS_IB_MIN_SGE &&
	       dev->attrs.max_recv_sge >= 1;
}

static int xrds_ib_add_dev(struct ib_device *dev)
{
	struct xrds_ib_dev *ibdev;
	int ret;

	if (!xrds_ib_dev_usable(dev)) {
		pr_info("xrds_ib: %s: not used, the device lacks features\n",
			dev->name);
		return -EOPNOTSUPP;
	}

	ibdev = kzalloc(sizeof(*ibdev), GFP_KERNEL);
	if (!ibdev)
		return -ENOMEM;
	ibdev->dev = dev;
	refcount_set(&ibdev->ref, 1);
	init_completion(&ibdev->gone);
	ibdev->brief_until = jiffies;
	spin_lock_init(&ibdev->lock);
	INIT_LIST_HEAD(&ibdev->eps);
	INIT_LIST_HEAD(&ibdev->mrs);
	xrds_ib_regq_init(&ibdev->regq);
	xrds_ib_frwr_init(&ibdev->mr_pool);
	mutex_init(&ibdev->rq_lock);
	INIT_LIST_HEAD(&ibdev->old_rqs);
	ibdev->shared = xrds_ib_use_srq && dev->attrs.max_srq > 0 &&
			dev->attrs.max_srq_wr > 0 &&
			dev->attrs.max_srq_sge > 0;

	ibdev->pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(ibdev->pd)) {
		ret = PTR_ERR(ibdev->pd);
		goto err_free;
	}
	ret = xrds_ib_quirks_probe(ibdev);
	if (ret)
		goto err_pd;

	ib_set_client_data(dev, &xrds_ib_client, ibdev);
	xrds_ib_dev_publish(ibdev);
	INIT_IB_EVENT_HANDLER(&ibdev->handler, dev, xrds_ib_lost_event);
	ib_register_event_handler(&ibdev->handler);
	pr_info("xrds_ib: %s: device added\n", dev->name);
	return 0;

err_pd:
	ib_dealloc_pd(ibdev->pd);
err_free:
	kfree(ibdev);
	return ret;
}

static void xrds_ib_remove_dev(struct ib_device *dev, void *data)
{
	struct xrds_ib_dev *ibdev = data;
	struct xrds_ib_rq *rq;

	ib_unregister_event_handler(&ibdev->handler);
	xrds_ib_dev_make_dead(ibdev);
	/* after this xrds_ib_rq_get_shared() sees that the device is removed */
	mutex_lock(&ibdev->rq_lock);
	rq = ibdev->rq;
	ibdev->rq = NULL;
	mutex_unlock(&ibdev->rq_lock);
	if (rq)
		xrds_ib_rq_put(rq);

	/* drain */
	xrds_ib_mr_remove_all(ibdev, XRDS_MR_DEVICE_REMOVED);
	xrds_ib_dev_put(ibdev);
	wait_for_completion(&ibdev->gone);

	/* destroy: the last reference has gone, and no new one can come */
	xrds_ib_regq_exit(ibdev);
	xrds_ib_frwr_exit(ibdev);
	/* an object that the device has kept refers to both */
	if (ibdev->stuck)
		return;
	ib_dealloc_pd(ibdev->pd);
	kfree(ibdev);
	pr_info("xrds_ib: %s: device removed\n", dev->name);
}

static struct ib_client xrds_ib_client = {
	.name	= "xrds",
	.add	= xrds_ib_add_dev,
	.remove	= xrds_ib_remove_dev,
};

/* ------------------------------------------------------------ namespace */

static int __net_init xrds_ib_net_init(struct net *net)
{
	struct xrds_ib_net *xin = xrds_ib_net(net);
	int ret;

	xin->net = net;
	xin->transport = &xrds_ib_transport;
	mutex_init(&xin->listen_lock);
	xin->counters = alloc_percpu(struct xrds_ib_counters);
	if (!xin->counters)
		return -ENOMEM;
	ret = xrds_ib_sysctl_init(xin);
	if (ret)
		goto err_counters;
	/* The first namespace keeps its listeners, so that peers get an answer
	 * even when no socket is bound.
	 */
	if (net_eq(net, &init_net))
		ret = xrds_ib_listen_get(net);
	if (ret)
		goto err_sysctl;
	return 0;

err_sysctl:
	xrds_ib_sysctl_exit(xin);
err_counters:
	free_percpu(xin->counters);
	return ret;
}

static void __net_exit xrds_ib_net_exit(struct net *net)
{
	struct xrds_ib_net *xin = xrds_ib_net(net);

	/* there are no sockets, so all other regions have ended */
	xrds_mr_flush(xrds_net(net));
	xrds_ib_sysctl_exit(xin);
	free_percpu(xin->counters);
}

static void __net_exit xrds_ib_net_exit_batch(struct list_head *nets)
{
	struct net *net;

	list_for_each_entry(net, nets, exit_list) {
		if (net_eq(net, &init_net))
			xrds_ib_listen_put(net);
	}
	xrds_conn_net_end_all(nets, &xrds_ib_transport);
	list_for_each_entry(net, nets, exit_list)
		xrds_ib_net_exit(net);
}

static struct pernet_operations xrds_ib_net_ops = {
	.init		= xrds_ib_net_init,
	.exit_batch	= xrds_ib_net_exit_batch,
	.id		= &xrds_ib_net_id,
	.size		= sizeof(struct xrds_ib_net),
};

/* --------------------------------------------------------------- module */

static struct xrds_transport xrds_ib_transport = {
	.name		= "infiniband",
	.owner		= THIS_MODULE,
	.type		= RDS_TRANS_IB,
	.caps		= XRDS_CAP_RDMA,
	.local		= xrds_ib_dev_local,
	.listen_get	= xrds_ib_listen_get,
	.listen_put	= xrds_ib_listen_put,
	.dial		= xrds_ib_cm_dial,
	.advance	= xrds_ib_cm_advance,
	.accept		= xrds_ib_cm_accept,
	.refuse		= xrds_ib_cm_req_refuse,
	.start		= xrds_ib_cm_start,
	.flushed	= xrds_ib_send_flushed,
	.stop		= xrds_ib_ep_stop,
	.prepare	= xrds_ib_rdma_prepare,
	.xmit		= xrds_ib_send_msg,
	.xmit_ctl	= xrds_ib_send_ctl,
	.mr_reg		= xrds_ib_mr_reg,
	.mr_unreg	= xrds_ib_mr_unreg,
	.describe	= xrds_ib_ep_describe,
	.detail		= xrds_ib_ep_detail,
	.device		= xrds_ib_dev_detail,
};

static int __init xrds_ib_init(void)
{
	int ret;

	BUILD_BUG_ON(ARRAY_SIZE(xrds_ib_counter_texts) != XRDS_IB_C_NR);

	xrds_ib_wq = alloc_workqueue("xrds_ib", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!xrds_ib_wq)
		return -ENOMEM;
	ret = xrds_ib_key_init();
	if (ret)
		goto err_wq;
	ret = xrds_ib_cm_id_init();
	if (ret)
		goto err_key;
	ret = xrds_ib_lost_init();
	if (ret)
		goto err_id;
	ret = ib_register_client(&xrds_ib_client);
	if (ret)
		goto err_lost;
	ret = register_pernet_subsys(&xrds_ib_net_ops);
	if (ret)
		goto err_dev;
	xrds_transport_register(&xrds_ib_transport);
	xrds_stats_register(&xrds_ib_counters);
	return 0;

err_dev:
	ib_unregister_client(&xrds_ib_client);
err_lost:
	xrds_ib_lost_exit();
err_id:
	xrds_ib_cm_id_exit();
err_key:
	xrds_ib_key_exit();
err_wq:
	destroy_workqueue(xrds_ib_wq);
	return ret;
}

static void __exit xrds_ib_exit(void)
{
	xrds_stats_unregister(&xrds_ib_counters);
	xrds_transport_unregister(&xrds_ib_transport);
	xrds_conn_net_end_transport(&xrds_ib_transport);
	unregister_pernet_subsys(&xrds_ib_net_ops);
	xrds_ib_cm_id_exit();
	ib_unregister_client(&xrds_ib_client);
	xrds_ib_lost_exit();
	xrds_ib_key_exit();
	destroy_workqueue(xrds_ib_wq);
}

module_init(xrds_ib_init);
module_exit(xrds_ib_exit);

MODULE_DESCRIPTION("XRDS: reliable datagram sockets over RDMA");
MODULE_LICENSE("GPL");
MODULE_VERSION(XRDS_VERSION);
