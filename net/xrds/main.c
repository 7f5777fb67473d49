// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module: namespaces, and the registrations at load, in this order: the
 * objects of all namespaces, the loopback transport, the socket family, the
 * netlink family.
 *
 * A closed socket does not pin the module: unloading ends sockets that linger,
 * after a short time for their messages to get out.
 */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/rhashtable.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "conn/conn.h"
#include "diag/diag.h"
#include "rdma/rdma.h"
#include "sock/dest.h"
#include "sock/sock.h"
#include "transport.h"
#include "version.h"
#include "xrds.h"

unsigned int xrds_net_id;
EXPORT_SYMBOL_GPL(xrds_net_id);

/**
 * struct xrds_net_table - a hash table of each namespace
 * @at:		its offset in struct xrds_net
 * @params:	those that its users pass, too
 */
struct xrds_net_table {
	size_t at;
	const struct rhashtable_params *params;
};

static const struct xrds_net_table xrds_net_tables[] = {
	{ offsetof(struct xrds_net, binds), &xrds_bind_params },
	{ offsetof(struct xrds_net, conns), &xrds_conn_params },
	{ offsetof(struct xrds_net, dests), &xrds_dest_params },
	{ offsetof(struct xrds_net, nodes), &xrds_rdma_peer_params },
	{ offsetof(struct xrds_net, mrs), &xrds_mr_params },
	{ offsetof(struct xrds_net, sources), &xrds_srctab_params },
	{ offsetof(struct xrds_net, past), &xrds_past_params },
	{ offsetof(struct xrds_net, parts), &xrds_part_params },
	{ offsetof(struct xrds_net, peers), &xrds_peer_params },
	{ offsetof(struct xrds_net, watches), &xrds_node_params },
};

static struct rhashtable *xrds_net_table(struct xrds_net *xn, unsigned int i)
{
	return (void *)xn + xrds_net_tables[i].at;
}

/* Free the first @nr tables, which are empty. */
static void xrds_net_tables_exit(struct xrds_net *xn, unsigned int nr)
{
	while (nr--)
		rhashtable_destroy(xrds_net_table(xn, nr));
}

static int __net_init xrds_net_tables_init(struct xrds_net *xn)
{
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(xrds_net_tables); i++) {
		ret = rhashtable_init(xrds_net_table(xn, i),
				      xrds_net_tables[i].params);
		if (ret) {
			xrds_net_tables_exit(xn, i);
			return ret;
		}
	}
	return 0;
}

static int __net_init xrds_net_init(struct net *net)
{
	struct xrds_net *xn = xrds_net(net);
	int ret;

	xn->net = net;
	do {
		xn->node = get_random_u64();
	} while (!xn->node);
	spin_lock_init(&xn->lock);
	spin_lock_init(&xn->cong_lock);
	spin_lock_init(&xn->peer_lock);
	INIT_LIST_HEAD(&xn->socks);
	xa_init_flags(&xn->sock_ids, XA_FLAGS_ALLOC1);
	INIT_LIST_HEAD(&xn->conn_list);
	timerqueue_init_head(&xn->lingering);
	INIT_LIST_HEAD(&xn->cong_ports);
	INIT_LIST_HEAD(&xn->cong_late);
	INIT_LIST_HEAD(&xn->cong_late_all);
	INIT_WORK(&xn->cong_work, xrds_cong_tell_work);
	INIT_WORK(&xn->lost_work, xrds_source_lost_work);
	INIT_LIST_HEAD(&xn->mrs_used);
	INIT_WORK(&xn->mrs_work, xrds_mr_work);
	INIT_LIST_HEAD(&xn->unpins);
	INIT_LIST_HEAD(&xn->recv_waiting);
	INIT_DELAYED_WORK(&xn->linger_work, xrds_linger_work);
	INIT_DELAYED_WORK(&xn->recv_work, xrds_rcvbuf_work);
	xrds_dialq_init(xn);
	init_waitqueue_head(&xn->gone);

	xn->counters = alloc_percpu(struct xrds_counters);
	if (!xn->counters)
		return -ENOMEM;
	ret = xrds_limit_net_init(xn);
	if (ret)
		goto err_counters;
	ret = xrds_net_tables_init(xn);
	if (ret)
		goto err_limits;
	ret = xrds_sysctl_net_init(xn);
	if (ret)
		goto err_tables;
	ret = xrds_proc_net_init(xn);
	if (ret)
		goto err_sysctl;
	return 0;

err_sysctl:
	xrds_sysctl_net_exit(xn);
err_tables:
	xrds_net_tables_exit(xn, ARRAY_SIZE(xrds_net_tables));
err_limits:
	xrds_limit_net_exit(xn);
err_counters:
	free_percpu(xn->counters);
	return ret;
}

/* It makes no connections any more. */
static void __net_exit xrds_net_pre_exit(struct net *net)
{
	struct xrds_net *xn = xrds_net(net);

	spin_lock_bh(&xn->lock);
	xn->exiting = true;
	spin_unlock_bh(&xn->lock);
}

/* Its connections have ended, and with them its sockets. */
static void __net_exit xrds_net_exit(struct xrds_net *xn)
{
	cancel_delayed_work_sync(&xn->dialq.work);
	cancel_work_sync(&xn->cong_work);
	cancel_work_sync(&xn->lost_work);
	cancel_delayed_work_sync(&xn->linger_work);
	cancel_delayed_work_sync(&xn->recv_work);
	xrds_mr_flush(xn);
	xrds_pin_net_exit(xn);
	xrds_peer_exit(xn);
	xrds_net_tables_exit(xn, ARRAY_SIZE(xrds_net_tables));
	xrds_limit_net_exit(xn);
	free_percpu(xn->counters);
}

static void __net_exit xrds_net_exit_batch(struct list_head *nets)
{
	struct net *net;

	list_for_each_entry(net, nets, exit_list) {
		xrds_proc_net_exit(xrds_net(net));
		xrds_sysctl_net_exit(xrds_net(net));
	}
	xrds_conn_net_end_all(nets, NULL);
	list_for_each_entry(net, nets, exit_list)
		xrds_net_exit(xrds_net(net));
}

static struct pernet_operations xrds_pernet_ops = {
	.init		= xrds_net_init,
	.pre_exit	= xrds_net_pre_exit,
	.exit_batch	= xrds_net_exit_batch,
	.id		= &xrds_net_id,
	.size		= sizeof(struct xrds_net),
};

/* Another module has the family: name it, and say how to unload it. */
static void __init xrds_tell_owner(void)
{
	const char *name = "another module";
	struct socket *sock;

	if (!sock_create_kern(&init_net, AF_RDS, SOCK_SEQPACKET, 0, &sock)) {
		name = module_name(sock->ops->owner);
		pr_err("xrds: PF_RDS is held by module %s: close its sockets, then 'modprobe -r rds_rdma rds_tcp %s'\n",
		       name, name);
		sock_release(sock);
		return;
	}
	pr_err("xrds: PF_RDS is held by %s\n", name);
}

static int __init xrds_claim(const struct net_proto_family *family)
{
	int ret = sock_register(family);

	if (ret != -EEXIST)
		return ret;
	xrds_tell_owner();
	/* modprobe takes the other for "it is loaded already" */
	return -EBUSY;
}

static int xrds_create_none(struct net *net, struct socket *sock, int protocol,
			    int kern)
{
	return -EAFNOSUPPORT;
}

/* Is the family free? It is not kept: a program that asks for a socket
 * meanwhile waits until we are loaded.
 */
static int __init xrds_family_free(void)
{
	static const struct net_proto_family probe = {
		.family	= AF_RDS,
		.create	= xrds_create_none,
		.owner	= THIS_MODULE,
	};
	int ret = xrds_claim(&probe);

	if (!ret)
		sock_unregister(AF_RDS);
	return ret;
}

static int __init xrds_init(void)
{
	static const struct xrds_conn_works works = {
		.state	= xrds_state_work,
		.ack	= xrds_rx_ack_work,
		.push	= xrds_tx_push_work,
	};
	int ret;

	/* first: in-tree RDS has knobs of the same names, too */
	ret = xrds_family_free();
	if (ret)
		return ret;
	ret = xrds_conn_init(&works);
	if (ret)
		return ret;
	ret = xrds_loop_init();
	if (ret)
		goto err_conn;
	ret = xrds_pin_init();
	if (ret)
		goto err_loop;
	ret = xrds_mr_load();
	if (ret)
		goto err_pin;
	ret = proto_register(&xrds_socket_proto, 1);
	if (ret)
		goto err_mr;
	ret = register_pernet_subsys(&xrds_pernet_ops);
	if (ret)
		goto err_proto;
	xrds_transport_register(&xrds_loop_transport);
	ret = xrds_claim(&xrds_socket_family);
	if (ret)
		goto err_transport;
	/* last: a dump may begin at once, and keeps no module that fails */
	ret = xrds_netlink_init();
	if (ret)
		goto err_family;
	xrds_debugfs_init();
	return 0;

err_family:
	sock_unregister(AF_RDS);
err_transport:
	xrds_transport_unregister(&xrds_loop_transport);
	xrds_conn_net_end_transport(&xrds_loop_transport);
	unregister_pernet_subsys(&xrds_pernet_ops);
err_proto:
	proto_unregister(&xrds_socket_proto);
err_mr:
	xrds_mr_unload();
err_pin:
	xrds_pin_exit();
err_loop:
	xrds_loop_exit();
err_conn:
	xrds_conn_exit();
	return ret;
}

static void __exit xrds_exit(void)
{
	sock_unregister(AF_RDS);
	xrds_debugfs_exit();
	xrds_transport_unregister(&xrds_loop_transport);
	xrds_conn_net_end_transport(&xrds_loop_transport);
	unregister_pernet_subsys(&xrds_pernet_ops);
	/* connections have told of their end. Nobody has looked at namespaces
	 * meanwhile: a dump takes a reference on the module.
	 */
	xrds_netlink_exit();
	/* sockets and destinations are freed after a grace period */
	rcu_barrier();
	proto_unregister(&xrds_socket_proto);
	xrds_mr_unload();
	xrds_pin_exit();
	xrds_loop_exit();
	xrds_conn_exit();
}

module_init(xrds_init);
module_exit(xrds_exit);

MODULE_DESCRIPTION("Reliable Datagram Sockets");
MODULE_LICENSE("GPL");
MODULE_VERSION(XRDS_VERSION);
MODULE_ALIAS_NETPROTO(PF_RDS);
