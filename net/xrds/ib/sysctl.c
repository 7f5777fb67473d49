// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sysctls of the RDMA transport, for each namespace: net/rds/ib with the names
 * of mainline RDS and of Oracle's UEK kernel, net/xrds/ib with ours. See
 * diag/sysctl.c about those without effect.
 *
 * A table is copied for the namespace when that starts, and freed when it ends.
 * Values are written by programs at any time; readers use READ_ONCE().
 */
#include <linux/sysctl.h>

#include "ib/ib.h"

enum {
	XRDS_IB_MIN_SEND_WR		= 16,
	XRDS_IB_MAX_SEND_WR		= 4096,
	XRDS_IB_MIN_RECV_WR		= 64,
	XRDS_IB_MAX_RECV_WR		= 16384,
	XRDS_IB_MAX_UNSIGNALED_WR	= 64,
	XRDS_IB_MIN_WINDOW		= 8,
	XRDS_IB_MAX_WINDOW		= 1024,
	XRDS_IB_MAX_RETRY_COUNT		= 6,	/* 7: for ever */
	XRDS_IB_MIN_ACK_TIMEOUT		= 12,	/* 17 ms */
	XRDS_IB_MAX_ACK_TIMEOUT		= 20,	/* 4.3 s */
	XRDS_IB_MAX_HALF_OPEN		= 65536,
	XRDS_IB_MAX_CONNS		= 1 << 20,
	XRDS_IB_MAX_AUTOCORK_US		= 1000000,
};

#define XRDS_IB_SYSCTL(_name, _field, _min, _max)			\
	XRDS_IB_SYSCTL_BY(proc_douintvec_minmax, _name, _field, _min, _max)

#define XRDS_IB_BOUND(_name, _field, _min, _max)			\
	XRDS_IB_SYSCTL_BY(xrds_limit_sysctl, _name, _field, _min, _max)

#define XRDS_IB_INERT(_name, _which)					\
	XRDS_IB_SYSCTL(_name, inert[XRDS_IB_INERT_##_which], 0, UINT_MAX)

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
	XRDS_IB_INERT("max_recv_allocation", RECV_ALLOCATION),
	XRDS_IB_INERT("flow_control", FLOW_CONTROL),
	/* of Oracle's kernel */
	XRDS_IB_SYSCTL("local_ack_timeout", ack_timeout,
		       XRDS_IB_MIN_ACK_TIMEOUT, XRDS_IB_MAX_ACK_TIMEOUT),
	XRDS_IB_INERT("max_unsolicited_wr", UNSOLICITED_WR),
	XRDS_IB_INERT("disable_unmap_mr_cpu_assignment", UNMAP_CPU),
	XRDS_IB_INERT("frwr_gc_interval", GC_INTERVAL),
	XRDS_IB_INERT("frwr_ibmr_gc_idle_time", GC_IDLE),
	XRDS_IB_INERT("frwr_ibmr_qrtn_time", QUARANTINE),
	XRDS_IB_INERT("frwr_poll_timeout_secs", POLL_TIMEOUT_S),
	XRDS_IB_INERT("conn_dev_free_delay", FREE_DELAY),
	XRDS_IB_INERT("yield_after_ms", YIELD_MS),
	XRDS_IB_INERT("cm_watchdog_ms", WATCHDOG_MS),
	XRDS_IB_INERT("check_conn_addrs", CHECK_ADDRS),
	XRDS_IB_INERT("refill_from_send", REFILL),
	XRDS_IB_INERT("ring_low_permille", RING_LOW),
	XRDS_IB_INERT("ring_mid_permille", RING_MID),
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
	XRDS_IB_SYSCTL("autocork_us", autocork_us,
		       0, XRDS_IB_MAX_AUTOCORK_US),
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

/* Values of the first namespace; the others start with a copy of them. */
static void xrds_ib_sysctl_defaults(struct xrds_ib_net *xin)
{
	/* with the other work requests of an endpoint 60 makes up a power of
	 * two; soft-RoCE rounds up its queues, and those for completions
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
	xin->autocork_us = 50;
}

/* That kernel's; a new namespace begins with them. */
static const unsigned int xrds_ib_inert_defaults[XRDS_IB_INERT_NR] = {
	[XRDS_IB_INERT_RECV_ALLOCATION]	= 32768,
	[XRDS_IB_INERT_UNSOLICITED_WR]	= 16,
	[XRDS_IB_INERT_GC_INTERVAL]	= 5000,
	[XRDS_IB_INERT_GC_IDLE]		= 1000,
	[XRDS_IB_INERT_QUARANTINE]	= 300000,
	[XRDS_IB_INERT_POLL_TIMEOUT_S]	= 10,
	[XRDS_IB_INERT_FREE_DELAY]	= 10000,
	[XRDS_IB_INERT_YIELD_MS]	= 2000,
	[XRDS_IB_INERT_CHECK_ADDRS]	= 1,
	[XRDS_IB_INERT_REFILL]		= 2,
	[XRDS_IB_INERT_RING_LOW]	= 250,
	[XRDS_IB_INERT_RING_MID]	= 375,
};

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
	xin->autocork_us = READ_ONCE(first->autocork_us);
}

/**
 * xrds_ib_sysctl_init - sysctls of a namespace
 * @xin: the transport's state of it; its values are set here
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int xrds_ib_sysctl_init(struct xrds_ib_net *xin)
{
	if (net_eq(xin->net, &init_net))
		xrds_ib_sysctl_defaults(xin);
	else
		xrds_ib_sysctl_inherit(xin, xrds_ib_net(&init_net));
	memcpy(xin->inert, xrds_ib_inert_defaults, sizeof(xin->inert));

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

/**
 * xrds_ib_sysctl_exit - take the sysctls of a namespace away
 * @xin: the transport's state of it
 *
 * Context: process.
 */
void xrds_ib_sysctl_exit(struct xrds_ib_net *xin)
{
	xrds_ib_sysctl_unregister(xin->ctl_xrds);
	xrds_ib_sysctl_unregister(xin->ctl_rds);
}
