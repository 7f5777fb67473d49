// SPDX-License-Identifier: GPL-2.0-only
/*
 * Knobs of a namespace: /proc/sys/net/rds has those of mainline RDS and of
 * Oracle's UEK kernel, with their names; /proc/sys/net/xrds has the others.
 *
 * A knob of theirs that fits one of ours is another name for it. Each of the
 * rest keeps its value, for scripts that write and read it, and has no effect:
 * Documentation/differences.rst lists them.
 */
#include <linux/capability.h>
#include <linux/sysctl.h>

#include "diag/diag.h"
#include "conn/conn.h"
#include "xrds.h"

static unsigned int xrds_one = 1;
static unsigned int xrds_min_dead_ms = 500;
static unsigned int xrds_max_ms = 3600 * 1000;
static unsigned int xrds_max_idle_ms = 24 * 3600 * 1000;
static unsigned int xrds_max_dests = 65536;
static unsigned int xrds_hundred = 100;
/* bound of sizes that struct sock keeps as signed numbers */
static unsigned int xrds_max_kb = 1 << 20;
static unsigned int xrds_thousand = 1000;
static unsigned int xrds_max_s = 3600;
/* for programs that ask for the family and the level */
static unsigned int xrds_pf_rds = PF_RDS;
static unsigned int xrds_sol_rds = SOL_RDS;

/* Connections have a deadline from the value before. */
static int xrds_sysctl_idle(XRDS_CTL_CONST struct ctl_table *table, int write,
			    void *buffer, size_t *lenp, loff_t *ppos)
{
	int ret = proc_douintvec_minmax(table, write, buffer, lenp, ppos);

	if (!ret && write)
		xrds_conn_net_look_idle(container_of((unsigned int *)table->data,
						     struct xrds_net, idle_ms));
	return ret;
}

/* The same, if their nodes are watched */
static int xrds_sysctl_dead(XRDS_CTL_CONST struct ctl_table *table, int write,
			    void *buffer, size_t *lenp, loff_t *ppos)
{
	int ret = proc_douintvec_minmax(table, write, buffer, lenp, ppos);

	if (!ret && write)
		xrds_conn_net_look_idle(container_of((unsigned int *)table->data,
						     struct xrds_net,
						     peer_dead_ms));
	return ret;
}

static int xrds_sysctl_beat(XRDS_CTL_CONST struct ctl_table *table, int write,
			    void *buffer, size_t *lenp, loff_t *ppos)
{
	int ret = proc_douintvec_minmax(table, write, buffer, lenp, ppos);

	if (!ret && write)
		xrds_conn_net_look_idle(container_of((unsigned int *)table->data,
						     struct xrds_net,
						     heartbeat_ms));
	return ret;
}

/* Messages that wait have a time from the value before. */
static int xrds_sysctl_delay(XRDS_CTL_CONST struct ctl_table *table, int write,
			     void *buffer, size_t *lenp, loff_t *ppos)
{
	int ret = proc_douintvec_minmax(table, write, buffer, lenp, ppos);
	struct xrds_conn *conn = NULL;
	struct xrds_net *xn;

	if (ret || !write)
		return ret;
	xn = container_of((unsigned int *)table->data, struct xrds_net,
			  loop_delay_ms);
	while ((conn = xrds_conn_net_walk(xn, conn)))
		if (conn->key.loop)
			xrds_loop_look(conn);
	return 0;
}

/* Heartbeats in whole seconds; the value is in milliseconds. */
static int xrds_sysctl_beat_s(XRDS_CTL_CONST struct ctl_table *table, int write,
			      void *buffer, size_t *lenp, loff_t *ppos)
{
	unsigned int *ms = table->data;
	unsigned int s = DIV_ROUND_UP(READ_ONCE(*ms), MSEC_PER_SEC);
	struct ctl_table tmp = *table;
	int ret;

	tmp.data = &s;
	ret = proc_douintvec_minmax(&tmp, write, buffer, lenp, ppos);
	if (ret || !write)
		return ret;
	WRITE_ONCE(*ms, s * MSEC_PER_SEC);
	xrds_conn_net_look_idle(container_of(ms, struct xrds_net, heartbeat_ms));
	return 0;
}

/* A constant */
static int xrds_sysctl_fixed(XRDS_CTL_CONST struct ctl_table *table, int write,
			     void *buffer, size_t *lenp, loff_t *ppos)
{
	struct ctl_table tmp = *table;

	tmp.data = table->extra1;
	return proc_douintvec(&tmp, write, buffer, lenp, ppos);
}

/* In the templates @data is an offset into struct xrds_net. */
#define XRDS_KNOB(_name, _field, _min, _max) \
	XRDS_KNOB_BY(proc_douintvec_minmax, _name, _field, _min, _max)

#define XRDS_BOUND(_name, _field, _min, _max) \
	XRDS_KNOB_BY(xrds_limit_sysctl, _name, _field, _min, _max)

#define XRDS_INERT(_name, _which) \
	XRDS_KNOB(_name, inert[XRDS_INERT_##_which], NULL, NULL)

#define XRDS_FIXED(_name, _value) { \
	.procname	= _name, \
	.maxlen		= sizeof(unsigned int), \
	.mode		= 0444, \
	.proc_handler	= xrds_sysctl_fixed, \
	.extra1		= _value, \
}

#define XRDS_KNOB_BY(_handler, _name, _field, _min, _max) { \
	.procname	= _name, \
	.data		= (void *)offsetof(struct xrds_net, _field), \
	.maxlen		= sizeof(unsigned int), \
	.mode		= 0644, \
	.proc_handler	= _handler, \
	.extra1		= _min, \
	.extra2		= _max, \
}

static const struct ctl_table xrds_rds_table[] = {
	XRDS_KNOB("reconnect_min_delay_ms", reconnect_min_ms, &xrds_one,
		  &xrds_max_ms),
	XRDS_KNOB("reconnect_max_delay_ms", reconnect_max_ms, &xrds_one,
		  &xrds_max_ms),
	XRDS_KNOB("max_unacked_packets", max_unacked_packets, &xrds_one, NULL),
	XRDS_KNOB("max_unacked_bytes", max_unacked_bytes, &xrds_one, NULL),
	XRDS_KNOB("ping_enable", ping_enable, NULL, &xrds_one),
	/* of Oracle's kernel */
	XRDS_FIXED("pf_rds", &xrds_pf_rds),
	XRDS_FIXED("sol_rds", &xrds_sol_rds),
	XRDS_KNOB("sock_max_peers", sock_max_dests, &xrds_one,
		  &xrds_max_dests),
	XRDS_KNOB_BY(xrds_sysctl_beat_s, "conn_heartbeat_interval_secs",
		     heartbeat_ms, NULL, &xrds_max_s),
	XRDS_INERT("conn_heartbeat_timeout_secs", BEAT_TIMEOUT_S),
	XRDS_INERT("reconnect_passive_min_delay_ms", PASSIVE_MIN_MS),
	XRDS_INERT("dr_sock_cancel_delay_ms", CANCEL_MS),
	XRDS_INERT("enable_payload_csums", PAYLOAD_CSUMS),
	XRDS_INERT("shutdown_trace_start_time", TRACE_START),
	XRDS_INERT("shutdown_trace_end_time", TRACE_END),
};

static const struct ctl_table xrds_xrds_table[] = {
	XRDS_KNOB("linger_ms", linger_ms, NULL, &xrds_max_ms),
	XRDS_KNOB("sock_max_dests", sock_max_dests, &xrds_one,
		  &xrds_max_dests),
	XRDS_KNOB("connect_timeout_ms", connect_timeout_ms, &xrds_one,
		  &xrds_max_ms),
	XRDS_KNOB_BY(xrds_sysctl_beat, "heartbeat_ms", heartbeat_ms, NULL,
		     &xrds_max_ms),
	XRDS_KNOB_BY(xrds_sysctl_dead, "peer_dead_ms", peer_dead_ms,
		     &xrds_min_dead_ms, &xrds_max_ms),
	XRDS_KNOB_BY(xrds_sysctl_idle, "idle_ms", idle_ms, NULL,
		     &xrds_max_idle_ms),
	XRDS_KNOB("uek_rows", uek_rows, NULL, &xrds_one),
	XRDS_BOUND("sock_max_recv_kb", sock_max_recv_kb, NULL, &xrds_max_kb),
	XRDS_BOUND("max_memory_kb", max[XRDS_LIMIT_MEM], NULL, NULL),
	XRDS_BOUND("max_pinned_kb", max[XRDS_LIMIT_PINNED], NULL, NULL),
	XRDS_BOUND("max_keys", max[XRDS_LIMIT_KEYS], NULL, NULL),
	XRDS_BOUND("max_connections", max[XRDS_LIMIT_CONNS], NULL, NULL),
	XRDS_BOUND("max_recv_kb", max[XRDS_LIMIT_RECV], NULL, NULL),
	XRDS_BOUND("max_sources_kb", max[XRDS_LIMIT_SOURCES], NULL, NULL),
	XRDS_BOUND("max_connects_per_s", max_dials, &xrds_one, NULL),
	XRDS_BOUND("user_percent", user_percent, &xrds_one, &xrds_hundred),
	XRDS_BOUND("unprivileged", unprivileged, NULL, &xrds_one),
};

static const struct ctl_table xrds_loop_table[] = {
	XRDS_KNOB_BY(xrds_sysctl_delay, "delay_ms", loop_delay_ms, NULL,
		     &xrds_max_ms),
	XRDS_KNOB("loss_permille", loop_loss_permille, NULL, &xrds_thousand),
	XRDS_KNOB("bounce_ms", loop_bounce_ms, NULL, &xrds_max_ms),
};

/**
 * struct xrds_sysctl_dir - one directory of knobs
 * @path: below /proc/sys
 * @table: template
 * @nr: its entries
 */
struct xrds_sysctl_dir {
	const char *path;
	const struct ctl_table *table;
	unsigned int nr;
};

static const struct xrds_sysctl_dir xrds_sysctl_dirs[XRDS_SYSCTL_DIRS] = {
	{ "net/rds", xrds_rds_table, ARRAY_SIZE(xrds_rds_table) },
	{ "net/xrds", xrds_xrds_table, ARRAY_SIZE(xrds_xrds_table) },
	{ "net/xrds/loop", xrds_loop_table, ARRAY_SIZE(xrds_loop_table) },
};

static struct ctl_table_header *
xrds_sysctl_register(struct xrds_net *xn, const struct xrds_sysctl_dir *dir)
{
	struct ctl_table_header *header;
	struct ctl_table *table;
	unsigned int i;

	/* kernels before 6.6 want an empty entry at the end */
	table = kcalloc(dir->nr + 1, sizeof(*table), GFP_KERNEL);
	if (!table)
		return NULL;
	for (i = 0; i < dir->nr; i++) {
		table[i] = dir->table[i];
		table[i].data = (char *)xn + (uintptr_t)table[i].data;
	}
	header = register_net_sysctl_sz(xn->net, dir->path, table, dir->nr);
	if (!header)
		kfree(table);
	return header;
}

static void xrds_sysctl_unregister(struct ctl_table_header *header)
{
	const struct ctl_table *table;

	if (!header)
		return;
	table = header->ctl_table_arg;
	unregister_net_sysctl_table(header);
	kfree(table);
}

/**
 * xrds_sysctl_net_init - set defaults and show the knobs
 * @xn: namespace
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int xrds_sysctl_net_init(struct xrds_net *xn)
{
	unsigned int i;

	xn->reconnect_min_ms = 1;
	xn->reconnect_max_ms = 1000;
	xn->max_unacked_packets = 32;
	xn->max_unacked_bytes = 256 << 10;
	xn->ping_enable = 1;
	xn->linger_ms = 60000;
	xn->sock_max_dests = 8192;
	xn->connect_timeout_ms = 10000;
	xn->heartbeat_ms = 5000;
	xn->peer_dead_ms = 5000;
	xn->idle_ms = 300 * 1000;
	xn->inert[XRDS_INERT_PASSIVE_MIN_MS] = 3000;
	xn->inert[XRDS_INERT_BEAT_TIMEOUT_S] = 10;
	xn->inert[XRDS_INERT_CANCEL_MS] = 6000;

	for (i = 0; i < XRDS_SYSCTL_DIRS; i++) {
		xn->sysctl[i] = xrds_sysctl_register(xn, &xrds_sysctl_dirs[i]);
		if (!xn->sysctl[i]) {
			xrds_sysctl_net_exit(xn);
			return -ENOMEM;
		}
	}
	return 0;
}

/**
 * xrds_sysctl_net_exit - remove the knobs
 * @xn: namespace
 *
 * Context: process.
 */
void xrds_sysctl_net_exit(struct xrds_net *xn)
{
	unsigned int i = XRDS_SYSCTL_DIRS;

	while (i--)
		xrds_sysctl_unregister(xn->sysctl[i]);
}
