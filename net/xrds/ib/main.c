// SPDX-License-Identifier: GPL-2.0-only
/*
 * XRDS over RDMA: the module.
 *
 * What it registers, in this order: the devices (ib_dev.c), per namespace its
 * counters and sysctls, the listeners of the first one (ib_listen.c), and at last
 * the transport, by which the core starts to use it. Unloading goes the other
 * way round. The core holds a
 * reference on the module for every bound socket that uses the transport, so
 * what is there to end by then are connections without sockets: each
 * namespace lets go of its listeners, so that nothing new comes, and has its
 * connections destroyed, which waits for them. After that no endpoint exists
 * and the devices can be forgotten.
 */
#include <linux/module.h>
#include <linux/sysctl.h>

#include "ib/ib.h"

static unsigned int xrds_ib_net_id;
struct workqueue_struct *xrds_ib_wq;
DEFINE_PER_CPU(struct xrds_ib_counters, xrds_ib_dev_counters);

/**
 * xrds_ib_net - the transport's state of a namespace
 * @net: namespace
 *
 * Context: any.
 * Return: the state; it lives as long as the namespace and the module.
 */
struct xrds_ib_net *xrds_ib_net(const struct net *net)
{
	return net_generic(net, xrds_ib_net_id);
}

/* ------------------------------------------------------------- counters */

static const char * const xrds_ib_counter_names[] = {
#define X(sym, name, ...) #name
#include "ib/list_counters.h"
#undef X
};

static const char * const xrds_ib_counter_helps[] = {
#define X(sym, name, ...) "" __VA_ARGS__
#include "ib/list_counters.h"
#undef X
};

static void xrds_ib_counters_sum(struct net *net, u64 *values)
{
	struct xrds_ib_net *xin = xrds_ib_net(net);
	int cpu, i;

	memset(values, 0, sizeof(struct xrds_ib_counters));
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

static struct xrds_extra_counters xrds_ib_counters = {
	.nr	= XRDS_IB_C_NR,
	.names	= xrds_ib_counter_names,
	.helps	= xrds_ib_counter_helps,
	.sum	= xrds_ib_counters_sum,
};

/* -------------------------------------------------------------- sysctls */

enum {
	XRDS_IB_MIN_SEND_WR		= 16,
	XRDS_IB_MAX_SEND_WR		= 4096,
	XRDS_IB_MIN_RECV_WR		= 64,
	XRDS_IB_MAX_RECV_WR		= 16384,
	XRDS_IB_MAX_UNSIGNALED_WR	= 64,
	XRDS_IB_MIN_WINDOW		= 8,
	XRDS_IB_MAX_WINDOW		= 1024,
	XRDS_IB_MAX_RETRY_COUNT		= 6,	/* 7 is for ever on most devices */
	XRDS_IB_MIN_ACK_TIMEOUT		= 12,	/* 17 ms */
	XRDS_IB_MAX_ACK_TIMEOUT		= 20,	/* 4.3 s */
	XRDS_IB_MAX_HALF_OPEN		= 65536,
	XRDS_IB_MAX_CONNS		= 1 << 20,
};

#define XRDS_IB_SYSCTL(_name, _field, _min, _max)			\
	XRDS_IB_SYSCTL_BY(proc_douintvec_minmax, _name, _field, _min, _max)

#define XRDS_IB_BOUND(_name, _field, _min, _max)			\
	XRDS_IB_SYSCTL_BY(xrds_limit_sysctl, _name, _field, _min, _max)

#define XRDS_IB_SYSCTL_BY(_handler, _name, _field, _min, _max)		\
	{								\
		.procname	= _name,				\
		.data		= (void *)offsetof(struct xrds_ib_net, _field), \
		.maxlen		= sizeof(unsigned int),			\
		.mode		= 0644,					\
		.proc_handler	= _handler,				\
		.extra1		= &(unsigned int){ _min },		\
		.extra2		= &(unsigned int){ _max },		\
	}

/* Names that mainline has; .data is an offset until a namespace copies it. */
static const struct ctl_table xrds_ib_table_rds[] = {
	XRDS_IB_BOUND("max_send_wr", max_send_wr,
		      XRDS_IB_MIN_SEND_WR, XRDS_IB_MAX_SEND_WR),
	XRDS_IB_BOUND("max_recv_wr", max_recv_wr,
		      XRDS_IB_MIN_RECV_WR, XRDS_IB_MAX_RECV_WR),
	XRDS_IB_SYSCTL("max_unsignaled_wr", max_unsignaled_wr,
		       1, XRDS_IB_MAX_UNSIGNALED_WR),
};

static const struct ctl_table xrds_ib_table_xrds[] = {
	XRDS_IB_SYSCTL("max_unsignaled_wr", max_unsignaled_wr,
		       1, XRDS_IB_MAX_UNSIGNALED_WR),
	XRDS_IB_BOUND("recv_window", recv_window,
		      XRDS_IB_MIN_WINDOW, XRDS_IB_MAX_WINDOW),
	XRDS_IB_SYSCTL("retry_count", retry_count,
		       0, XRDS_IB_MAX_RETRY_COUNT),
	XRDS_IB_SYSCTL("ack_timeout", ack_timeout,
		       XRDS_IB_MIN_ACK_TIMEOUT, XRDS_IB_MAX_ACK_TIMEOUT),
	XRDS_IB_BOUND("max_half_open", max_half_open,
		      1, XRDS_IB_MAX_HALF_OPEN),
	XRDS_IB_BOUND("max_conns", max_conns, 1, XRDS_IB_MAX_CONNS),
	XRDS_IB_SYSCTL("bundle_bytes", bundle_bytes,
		       0, XRDS_WIRE_MAX_BUNDLE_BYTES),
};

static struct ctl_table_header *
xrds_ib_sysctl_register(struct xrds_ib_net *xin, const char *path,
			const struct ctl_table *from, size_t nr)
{
	struct ctl_table_header *header;
	struct ctl_table *table;
	size_t i;

	/* kernels before 6.6 want an empty entry at the end */
	table = kcalloc(nr + 1, sizeof(*table), GFP_KERNEL);
	if (!table)
		return NULL;
	for (i = 0; i < nr; i++) {
		table[i] = from[i];
		table[i].data = (char *)xin + (uintptr_t)from[i].data;
	}
	header = register_net_sysctl_sz(xin->net, path, table, nr);
	if (!header)
		kfree(table);
	return header;
}

static void xrds_ib_sysctl_unregister(struct ctl_table_header *header)
{
	const struct ctl_table *table = header->ctl_table_arg;

	unregister_net_sysctl_table(header);
	kfree(table);
}

/* Of the first namespace; the others begin with what that has. */
static void xrds_ib_sysctl_defaults(struct xrds_ib_net *xin)
{
	/* with what else an endpoint posts, what a power of two holds: soft-RoCE
	 * rounds queues up, and those for completions too
	 */
	xin->max_send_wr = 60;
	xin->max_recv_wr = 1024;
	xin->max_unsignaled_wr = 16;
	xin->recv_window = 40;
	xin->retry_count = 6;
	xin->ack_timeout = 16;
	xin->max_half_open = 1024;
	xin->max_conns = 16384;
	xin->bundle_bytes = XRDS_WIRE_MAX_BUNDLE_BYTES;
}

static void xrds_ib_sysctl_inherit(struct xrds_ib_net *xin,
				   const struct xrds_ib_net *first)
{
	xin->max_send_wr = READ_ONCE(first->max_send_wr);
	xin->max_recv_wr = READ_ONCE(first->max_recv_wr);
	xin->max_unsignaled_wr = READ_ONCE(first->max_unsignaled_wr);
	xin->recv_window = READ_ONCE(first->recv_window);
	xin->retry_count = READ_ONCE(first->retry_count);
	xin->ack_timeout = READ_ONCE(first->ack_timeout);
	xin->max_half_open = READ_ONCE(first->max_half_open);
	xin->max_conns = READ_ONCE(first->max_conns);
	xin->bundle_bytes = READ_ONCE(first->bundle_bytes);
}

static int xrds_ib_sysctl_init(struct xrds_ib_net *xin)
{
	if (net_eq(xin->net, &init_net))
		xrds_ib_sysctl_defaults(xin);
	else
		xrds_ib_sysctl_inherit(xin, xrds_ib_net(&init_net));

	xin->ctl_rds = xrds_ib_sysctl_register(xin, "net/rds/ib",
					       xrds_ib_table_rds,
					       ARRAY_SIZE(xrds_ib_table_rds));
	if (!xin->ctl_rds)
		return -ENOMEM;
	xin->ctl_xrds = xrds_ib_sysctl_register(xin, "net/xrds/ib",
						xrds_ib_table_xrds,
						ARRAY_SIZE(xrds_ib_table_xrds));
	if (!xin->ctl_xrds) {
		xrds_ib_sysctl_unregister(xin->ctl_rds);
		return -ENOMEM;
	}
	return 0;
}

static void xrds_ib_sysctl_exit(struct xrds_ib_net *xin)
{
	xrds_ib_sysctl_unregister(xin->ctl_xrds);
	xrds_ib_sysctl_unregister(xin->ctl_rds);
}

/* ------------------------------------------------------------ namespace */

static int __net_init xrds_ib_net_init(struct net *net)
{
	struct xrds_ib_net *xin = xrds_ib_net(net);
	int ret;

	xin->net = net;
	mutex_init(&xin->listen_lock);
	xin->counters = alloc_percpu(struct xrds_ib_counters);
	if (!xin->counters)
		return -ENOMEM;
	ret = xrds_ib_sysctl_init(xin);
	if (ret)
		goto err_counters;
	/* for good, so that peers are answered that have messages for nobody */
	if (net_eq(net, &init_net))
		ret = xrds_ib_enter(net);
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

	if (net_eq(net, &init_net))
		xrds_ib_leave(net);
	xrds_conn_destroy_all(xrds_net(net), &xrds_ib_transport);
	/* there are no sockets, so all others have ended */
	xrds_mr_flush();
	xrds_ib_sysctl_exit(xin);
	free_percpu(xin->counters);
}

static struct pernet_operations xrds_ib_net_ops = {
	.init	= xrds_ib_net_init,
	.exit	= xrds_ib_net_exit,
	.id	= &xrds_ib_net_id,
	.size	= sizeof(struct xrds_ib_net),
};

/* --------------------------------------------------------------- module */

struct xrds_transport xrds_ib_transport = {
	.name		= "infiniband",
	.owner		= THIS_MODULE,
	.type		= RDS_TRANS_IB,
	.caps		= XRDS_CAP_RDMA,
	.local		= xrds_ib_local,
	.enter		= xrds_ib_enter,
	.leave		= xrds_ib_leave,
	.dial		= xrds_ib_dial,
	.advance	= xrds_ib_advance,
	.accept		= xrds_ib_accept,
	.refuse		= xrds_ib_refuse,
	.start		= xrds_ib_start,
	.flushed	= xrds_ib_flushed,
	.stop		= xrds_ib_stop,
	.prepare	= xrds_ib_prepare,
	.xmit		= xrds_ib_xmit,
	.xmit_ctl	= xrds_ib_xmit_ctl,
	.mr_reg		= xrds_ib_mr_reg,
	.mr_unreg	= xrds_ib_mr_unreg,
	.describe	= xrds_ib_describe,
	.detail		= xrds_ib_detail,
	.device		= xrds_ib_device,
};

static int __init xrds_ib_init(void)
{
	int ret;

	BUILD_BUG_ON(ARRAY_SIZE(xrds_ib_counter_names) != XRDS_IB_C_NR);

	xrds_ib_wq = alloc_workqueue("xrds_ib", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!xrds_ib_wq)
		return -ENOMEM;
	ret = xrds_ib_id_init();
	if (ret)
		goto err_wq;
	ret = xrds_ib_dev_init();
	if (ret)
		goto err_id;
	ret = register_pernet_subsys(&xrds_ib_net_ops);
	if (ret)
		goto err_dev;
	xrds_transport_register(&xrds_ib_transport);
	xrds_counters_register(&xrds_ib_counters);
	return 0;

err_dev:
	xrds_ib_dev_exit();
err_id:
	xrds_ib_id_exit();
err_wq:
	destroy_workqueue(xrds_ib_wq);
	return ret;
}

static void __exit xrds_ib_exit(void)
{
	xrds_counters_unregister(&xrds_ib_counters);
	xrds_transport_unregister(&xrds_ib_transport);
	xrds_conn_end_transport(&xrds_ib_transport);
	unregister_pernet_subsys(&xrds_ib_net_ops);
	xrds_ib_id_exit();
	xrds_ib_dev_exit();
	destroy_workqueue(xrds_ib_wq);
}

module_init(xrds_ib_init);
module_exit(xrds_ib_exit);

MODULE_DESCRIPTION("XRDS: reliable datagram sockets over RDMA");
MODULE_LICENSE("GPL");
