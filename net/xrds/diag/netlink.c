// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family "xrds": the objects of a namespace, and news of
 * connections and nodes (nl_news.c).
 *
 * Documentation/netlink/specs/xrds.yaml is the definition, and
 * include/uapi/linux/xrds_netlink.h is made from it. A dump takes no attribute:
 * a program picks rows itself. With CAP_NET_ADMIN in the namespace it may have
 * connections made anew, and drain the namespace (conn/net.c) and undrain it.
 *
 * Visibility. As with RDS_INFO_*, all users may see counters, connections, their
 * peers and devices of their namespace. Numbers of queue pairs, keys of memory and the
 * objects of another user's sockets need CAP_NET_ADMIN there:
 * they would help to forge packets, or to get at memory. There is one rule for
 * sockets and for all that belongs to one.
 *
 * A dump goes in steps, each as long as its part of the answer is room for;
 * nl_dump.c has the walks. A dump has a reference on the module while it
 * lasts, so none is under way when the module goes, and its socket has one on
 * the namespace.
 */
#include <linux/module.h>

#include "diag/diag.h"
#include "diag/netlink.h"

static const struct genl_multicast_group xrds_nl_groups[] = {
	[XRDS_NL_GROUP_CONN] = { .name = XRDS_MCGRP_CONN },
};

/* ------------------------------------------------------------- counters */

/**
 * struct xrds_nl_counters - a step of the dump of counters
 * @skb:	part of the answer
 * @cb:		the dump; args[0] is the number of counters told
 * @nr:		number of the counter that is looked at
 */
struct xrds_nl_counters {
	struct sk_buff *skb;
	struct netlink_callback *cb;
	long nr;
};

static int xrds_nl_counter(void *arg, const struct xrds_counter_row *row)
{
	struct xrds_nl_counters *c = arg;
	struct sk_buff *skb = c->skb;
	void *hdr;
	bool full;
	int ret;

	if (c->nr++ < c->cb->args[0])
		return 0;
	hdr = xrds_nl_dump_put(skb, c->cb, XRDS_CMD_COUNTER_GET);
	full = !hdr || nla_put_string(skb, XRDS_A_COUNTER_NAME, row->name) ||
	       nla_put_u64_64bit(skb, XRDS_A_COUNTER_VALUE, row->value,
				 XRDS_A_COUNTER_PAD) ||
	       nla_put_string(skb, XRDS_A_COUNTER_HELP, row->help) ||
	       (row->level && nla_put_flag(skb, XRDS_A_COUNTER_LEVEL));
	ret = xrds_nl_dump_end(skb, hdr, full);
	if (!ret)
		c->cb->args[0]++;
	return ret;
}

static int xrds_nl_dump_counters(struct sk_buff *skb,
				 struct netlink_callback *cb)
{
	struct xrds_nl_counters c = { .skb = skb, .cb = cb };
	int ret;

	ret = xrds_stats_each(xrds_net(sock_net(cb->skb->sk)),
			      xrds_nl_counter, &c);
	return ret && ret != -EMSGSIZE ? ret : skb->len;
}

/* -------------------------------------------------------------- devices */

static bool xrds_nl_put_limits(struct sk_buff *skb,
			       const struct xrds_device_detail *d)
{
	return nla_put_u32(skb, XRDS_A_DEVICE_MAX_QP, d->max_qp) ||
	       nla_put_u32(skb, XRDS_A_DEVICE_MAX_QP_WR, d->max_qp_wr) ||
	       nla_put_u32(skb, XRDS_A_DEVICE_MAX_CQE, d->max_cqe) ||
	       nla_put_u32(skb, XRDS_A_DEVICE_MAX_SGE, d->max_sge) ||
	       nla_put_u32(skb, XRDS_A_DEVICE_MAX_SRQ, d->max_srq) ||
	       nla_put_u32(skb, XRDS_A_DEVICE_MAX_SRQ_WR, d->max_srq_wr) ||
	       nla_put_u32(skb, XRDS_A_DEVICE_MAX_MR, d->max_mr) ||
	       nla_put_u32(skb, XRDS_A_DEVICE_MAX_MR_PAGES, d->max_mr_pages) ||
	       nla_put_u32(skb, XRDS_A_DEVICE_MAX_RD_ATOMIC, d->max_rd_atomic);
}

/* The use of a device is the sum over all namespaces that share it. So the
 * first namespace is told, and no container.
 */
static bool xrds_nl_sees_load(const struct netlink_callback *cb)
{
	return net_eq(sock_net(cb->skb->sk), &init_net) ||
	       netlink_capable(cb->skb, CAP_NET_ADMIN);
}

static bool xrds_nl_put_load(struct sk_buff *skb,
			     const struct xrds_device_detail *d)
{
	return nla_put_u32(skb, XRDS_A_DEVICE_ENDPOINTS, d->endpoints) ||
	       nla_put_u32(skb, XRDS_A_DEVICE_REGIONS, d->regions) ||
	       nla_put_u32(skb, XRDS_A_DEVICE_RECV_POSTED, d->recv_posted) ||
	       nla_put_u32(skb, XRDS_A_DEVICE_RECV_BYTES, d->recv_bytes);
}

static int xrds_nl_put_device(struct sk_buff *skb, struct netlink_callback *cb,
			      const struct xrds_device_detail *d,
			      const char *transport)
{
	u32 flags = (d->shared_rq ? XRDS_DEVICE_FLAG_SHARED_RQ : 0) |
		    (d->fences ? XRDS_DEVICE_FLAG_FENCES : 0) |
		    (d->atomics ? XRDS_DEVICE_FLAG_ATOMICS : 0);
	void *hdr = xrds_nl_dump_put(skb, cb, XRDS_CMD_DEVICE_GET);

	if (!hdr)
		return -EMSGSIZE;
	if (nla_put_string(skb, XRDS_A_DEVICE_NAME, d->name) ||
	    nla_put_string(skb, XRDS_A_DEVICE_TRANSPORT, transport) ||
	    nla_put_u64_64bit(skb, XRDS_A_DEVICE_GUID, d->guid,
			      XRDS_A_DEVICE_PAD) ||
	    nla_put_u32(skb, XRDS_A_DEVICE_FLAGS, flags) ||
	    (xrds_nl_sees_load(cb) && xrds_nl_put_load(skb, d)) ||
	    xrds_nl_put_limits(skb, d)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genl_dump_check_consistent(cb, hdr);
	genlmsg_end(skb, hdr);
	return 0;
}

/* It goes by numbers. When a device goes, those behind it get other ones, and one
 * may be passed over: then the dump is marked as interrupted.
 */
static int xrds_nl_dump_devices(struct sk_buff *skb,
				struct netlink_callback *cb)
{
	const struct net *net = sock_net(cb->skb->sk);
	struct xrds_device_detail d;
	const char *transport;
	unsigned int nr;

	for (nr = cb->args[0]; ; nr++) {
		if (xrds_transport_device(net, &nr, &d, &transport,
					  &cb->seq) ||
		    xrds_nl_put_device(skb, cb, &d, transport))
			break;
	}
	cb->args[0] = nr;
	return skb->len;
}

/* --------------------------------------------------------------- resets */

static int xrds_nl_reset(struct genl_info *info)
{
	struct nlattr *laddr = info->attrs[XRDS_A_CONN_LADDR];
	struct nlattr *faddr = info->attrs[XRDS_A_CONN_FADDR];
	struct nlattr *tos = info->attrs[XRDS_A_CONN_TOS];
	struct xrds_conn_match m = { .tos = tos ? nla_get_u8(tos) : -1 };
	struct in6_addr from, to;

	if (laddr) {
		from = nla_get_in6_addr(laddr);
		m.laddr = &from;
	}
	if (faddr) {
		to = nla_get_in6_addr(faddr);
		m.faddr = &to;
	}
	/* a mistyped address is told; all of none is all */
	if (!xrds_conn_net_reset(xrds_net(genl_info_net(info)), &m) &&
	    (laddr || faddr || tos))
		return -ENOENT;
	return 0;
}

/* Namespaces are freed before the family goes, and unlike a dump the core takes no
 * reference on the module for this.
 */
static int xrds_nl_do(struct sk_buff *skb, struct genl_info *info)
{
	struct xrds_net *xn;
	int ret = 0;

	if (!try_module_get(THIS_MODULE))
		return -ENODEV;
	xn = xrds_net(genl_info_net(info));
	switch (info->genlhdr->cmd) {
	case XRDS_CMD_CONN_RESET:
		ret = xrds_nl_reset(info);
		break;
	case XRDS_CMD_DRAIN:
		xrds_conn_net_drain(xn);
		break;
	case XRDS_CMD_UNDRAIN:
		xrds_conn_net_undrain(xn);
		break;
	}
	module_put(THIS_MODULE);
	return ret;
}

static const struct nla_policy xrds_nl_reset_policy[XRDS_A_CONN_TOS + 1] = {
	[XRDS_A_CONN_LADDR] = NLA_POLICY_EXACT_LEN(sizeof(struct in6_addr)),
	[XRDS_A_CONN_FADDR] = NLA_POLICY_EXACT_LEN(sizeof(struct in6_addr)),
	[XRDS_A_CONN_TOS] = { .type = NLA_U8 },
};

/* --------------------------------------------------------------- family */

static const struct genl_ops xrds_nl_ops[] = {
	{
		.cmd	= XRDS_CMD_SOCKET_GET,
		.dumpit	= xrds_nl_dump_socks,
	},
	{
		.cmd	= XRDS_CMD_DEST_GET,
		.start	= xrds_nl_dump_start_table,
		.dumpit	= xrds_nl_dump_table,
		.done	= xrds_nl_dump_done_table,
	},
	{
		.cmd	= XRDS_CMD_NODE_GET,
		.dumpit	= xrds_nl_dump_nodes,
	},
	{
		.cmd	= XRDS_CMD_CONN_GET,
		.start	= xrds_nl_dump_start_table,
		.dumpit	= xrds_nl_dump_table,
		.done	= xrds_nl_dump_done_table,
	},
	{
		.cmd	= XRDS_CMD_PEER_GET,
		.start	= xrds_nl_dump_start_table,
		.dumpit	= xrds_nl_dump_table,
		.done	= xrds_nl_dump_done_table,
	},
	{
		.cmd	= XRDS_CMD_REGION_GET,
		.start	= xrds_nl_dump_start_table,
		.dumpit	= xrds_nl_dump_table,
		.done	= xrds_nl_dump_done_table,
	},
	{
		.cmd	= XRDS_CMD_COUNTER_GET,
		.dumpit	= xrds_nl_dump_counters,
	},
	{
		.cmd	= XRDS_CMD_DEVICE_GET,
		.dumpit	= xrds_nl_dump_devices,
	},
	{
		.cmd	= XRDS_CMD_CONN_RESET,
		.flags	= GENL_UNS_ADMIN_PERM,
		.doit	= xrds_nl_do,
		.policy	= xrds_nl_reset_policy,
		.maxattr = ARRAY_SIZE(xrds_nl_reset_policy) - 1,
	},
	{
		.cmd	= XRDS_CMD_STATUS_GET,
		.dumpit	= xrds_nl_status_dump,
	},
	{
		.cmd	= XRDS_CMD_FEATURE_GET,
		.dumpit	= xrds_nl_status_dump_features,
	},
	{
		.cmd	= XRDS_CMD_DRAIN,
		.flags	= GENL_UNS_ADMIN_PERM,
		.doit	= xrds_nl_do,
	},
	{
		.cmd	= XRDS_CMD_UNDRAIN,
		.flags	= GENL_UNS_ADMIN_PERM,
		.doit	= xrds_nl_do,
	},
};

struct genl_family xrds_netlink_family __ro_after_init = {
	.name		= XRDS_FAMILY_NAME,
	.version	= XRDS_FAMILY_VERSION,
	.module		= THIS_MODULE,
	.netnsok	= true,
	/* the commands share no state */
	.parallel_ops	= true,
	.ops		= xrds_nl_ops,
	.n_ops		= ARRAY_SIZE(xrds_nl_ops),
	.mcgrps		= xrds_nl_groups,
	.n_mcgrps	= ARRAY_SIZE(xrds_nl_groups),
};

/**
 * xrds_netlink_init - register the family
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int __init xrds_netlink_init(void)
{
	return genl_register_family(&xrds_netlink_family);
}

/**
 * xrds_netlink_exit - unregister the family
 *
 * Context: process.
 */
void xrds_netlink_exit(void)
{
	genl_unregister_family(&xrds_netlink_family);
}
