// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters, and their dump.
 *
 * Each namespace counts for itself, per CPU, in one array that is indexed by
 * enum xrds_counter; names and descriptions come from the same X-macro. A
 * transport adds its own with xrds_stats_register().
 */
#include <linux/mm.h>

#include "xrds.h"

/* in the order of enum xrds_counter */
static const struct xrds_counter_text xrds_counter_texts[] = {
#define X(sym, name, ...) { #name, "" __VA_ARGS__ }
#include "list_counters.h"
#undef X
#define X(sym, name, text) { "wire_" #name, "input refused: " text }
#include "wire/list_errors.h"
#undef X
};

static_assert(ARRAY_SIZE(xrds_counter_texts) == XRDS_C_NR);

/**
 * xrds_stats_name - the name of a counter
 * @c: counter
 *
 * Context: any.
 * Return: the name.
 */
const char *xrds_stats_name(enum xrds_counter c)
{
	return c < XRDS_C_NR ? xrds_counter_texts[c].name : "?";
}

static DEFINE_MUTEX(xrds_extra_lock);
static LIST_HEAD(xrds_extra);

/**
 * xrds_stats_register - add counters to the dump
 * @set: the counters; stay the caller's
 *
 * Context: process.
 */
void xrds_stats_register(struct xrds_counter_set *set)
{
	mutex_lock(&xrds_extra_lock);
	list_add_tail(&set->node, &xrds_extra);
	mutex_unlock(&xrds_extra_lock);
}
EXPORT_SYMBOL_GPL(xrds_stats_register);

/**
 * xrds_stats_unregister - take counters out of the dump
 * @set: the counters; not in use any more on return
 *
 * Context: process.
 */
void xrds_stats_unregister(struct xrds_counter_set *set)
{
	mutex_lock(&xrds_extra_lock);
	list_del(&set->node);
	mutex_unlock(&xrds_extra_lock);
}
EXPORT_SYMBOL_GPL(xrds_stats_unregister);

static void xrds_counters_sum(struct net *net, u64 *values)
{
	struct xrds_net *xn = xrds_net(net);
	int cpu, i;

	for_each_possible_cpu(cpu)
		for (i = 0; i < XRDS_C_NR; i++)
			values[i] += per_cpu_ptr(xn->counters, cpu)->v[i];
}

static const struct xrds_counter_set xrds_core_counters = {
	.nr	= XRDS_C_NR,
	.texts	= xrds_counter_texts,
	.sum	= xrds_counters_sum,
};

/* How many objects are alive: a test wants to see all of them at zero. Then how much
 * is used of the bounded resources, see limit.c.
 */
enum { XRDS_NR_OBJECTS = 6 };

static const struct xrds_counter_text xrds_level_texts[] = {
	{ "obj_socks", "sockets, closed ones that still deliver included" },
	{ "obj_dests", "destinations" },
	{ "obj_conns", "connections" },
	{ "obj_msgs", "messages on their way out" },
	{ "obj_rops", "RDMA ops" },
	{ "obj_mrs", "memory regions" },
	[XRDS_NR_OBJECTS + XRDS_LIMIT_MEM] = { "used_memory",
		"bytes of sockets and of what they send" },
	[XRDS_NR_OBJECTS + XRDS_LIMIT_PINNED] = { "used_pinned",
		"bytes of programs' memory that are pinned" },
	[XRDS_NR_OBJECTS + XRDS_LIMIT_KEYS] = { "used_keys",
		"memory regions on the account of users" },
	[XRDS_NR_OBJECTS + XRDS_LIMIT_CONNS] = { "used_connections",
		"connections on the account of users" },
	[XRDS_NR_OBJECTS + XRDS_LIMIT_RECV] = { "used_recv",
		"bytes of memory of what waits to be read" },
	[XRDS_NR_OBJECTS + XRDS_LIMIT_SOURCES] = { "used_sources",
		"bytes of the senders that sockets remember" },
};

static_assert(ARRAY_SIZE(xrds_level_texts) == XRDS_NR_OBJECTS + XRDS_LIMITS);

static void xrds_levels_sum(struct net *net, u64 *values)
{
	struct xrds_net *xn = xrds_net(net);
	const atomic_t *objects[XRDS_NR_OBJECTS] = {
		&xn->nr_socks, &xn->nr_dests, &xn->nr_conns,
		&xn->nr_msgs, &xn->nr_rops, &xn->nr_mrs,
	};
	unsigned int i;

	for (i = 0; i < XRDS_NR_OBJECTS; i++)
		*values++ = atomic_read(objects[i]);
	for (i = 0; i < XRDS_LIMITS; i++)
		*values++ = percpu_counter_sum_positive(&xn->used[i]);
}

static const struct xrds_counter_set xrds_level_counters = {
	.nr	= ARRAY_SIZE(xrds_level_texts),
	.level	= true,
	.texts	= xrds_level_texts,
	.sum	= xrds_levels_sum,
};

static int xrds_stats_each_of(struct xrds_net *xn,
			      const struct xrds_counter_set *set,
			      xrds_counter_fn fn, void *arg)
{
	unsigned int i;
	u64 *values;
	int ret = 0;

	values = kcalloc(set->nr, sizeof(*values), GFP_KERNEL);
	if (!values)
		return -ENOMEM;
	set->sum(xn->net, values);
	for (i = 0; i < set->nr && !ret; i++)
		ret = fn(arg, &(struct xrds_counter_row){
			.name = set->texts[i].name,
			.help = set->texts[i].help,
			.value = values[i],
			.level = set->level,
		});
	kfree(values);
	return ret;
}

/**
 * xrds_stats_each - show all counters of a namespace, always in one order
 * @xn: namespace
 * @fn: is called with each; ends the walk with a value that is not 0
 * @arg: its first argument
 *
 * Context: process, may sleep.
 * Return: 0, the error of @fn, or -ENOMEM.
 */
int xrds_stats_each(struct xrds_net *xn, xrds_counter_fn fn, void *arg)
{
	const struct xrds_counter_set *set;
	int ret;

	ret = xrds_stats_each_of(xn, &xrds_core_counters, fn, arg);
	if (!ret)
		ret = xrds_stats_each_of(xn, &xrds_level_counters, fn, arg);
	if (ret)
		return ret;

	mutex_lock(&xrds_extra_lock);
	list_for_each_entry(set, &xrds_extra, node) {
		ret = xrds_stats_each_of(xn, set, fn, arg);
		if (ret)
			break;
	}
	mutex_unlock(&xrds_extra_lock);
	return ret;
}
