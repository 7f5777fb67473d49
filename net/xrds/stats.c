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

/**
 * struct xrds_counter_text - name and description of a counter
 * @name:	name
 * @help:	the rest, a line
 */
struct xrds_counter_text {
	const char *name;
	const char *help;
};

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
 * @extra: the counters; stay the caller's
 *
 * Context: process.
 */
void xrds_stats_register(struct xrds_extra_counters *extra)
{
	mutex_lock(&xrds_extra_lock);
	list_add_tail(&extra->node, &xrds_extra);
	mutex_unlock(&xrds_extra_lock);
}
EXPORT_SYMBOL_GPL(xrds_stats_register);

/**
 * xrds_stats_unregister - take counters out of the dump
 * @extra: the counters; not in use any more on return
 *
 * Context: process.
 */
void xrds_stats_unregister(struct xrds_extra_counters *extra)
{
	mutex_lock(&xrds_extra_lock);
	list_del(&extra->node);
	mutex_unlock(&xrds_extra_lock);
}
EXPORT_SYMBOL_GPL(xrds_stats_unregister);

static void xrds_counters_sum(struct xrds_net *xn, u64 *values)
{
	int cpu, i;

	memset(values, 0, XRDS_C_NR * sizeof(*values));
	for_each_possible_cpu(cpu)
		for (i = 0; i < XRDS_C_NR; i++)
			values[i] += per_cpu_ptr(xn->counters, cpu)->v[i];
}

/* The bounded resources, see limit.c */
static int xrds_counters_used(struct xrds_net *xn, xrds_counter_fn fn,
			      void *arg)
{
	static const struct xrds_counter_text texts[XRDS_LIMITS] = {
		[XRDS_LIMIT_MEM] = { "used_memory",
			"bytes of sockets and of what they send" },
		[XRDS_LIMIT_PINNED] = { "used_pinned",
			"bytes of programs' memory that are pinned" },
		[XRDS_LIMIT_KEYS] = { "used_keys",
			"memory regions on the account of users" },
		[XRDS_LIMIT_CONNS] = { "used_connections",
			"connections on the account of users" },
		[XRDS_LIMIT_RECV] = { "used_recv",
			"bytes of memory of what waits to be read" },
		[XRDS_LIMIT_SOURCES] = { "used_sources",
			"bytes of the senders that sockets remember" },
	};
	unsigned int i;
	int ret = 0;

	for (i = 0; i < XRDS_LIMITS && !ret; i++)
		ret = fn(arg, &(struct xrds_counter_row){
			.name = texts[i].name,
			.help = texts[i].help,
			.value = percpu_counter_sum_positive(&xn->used[i]),
			.level = true,
		});
	return ret;
}

/* How much is alive: a test wants to see all of it at zero. */
static int xrds_counters_objects(struct xrds_net *xn, xrds_counter_fn fn,
				 void *arg)
{
	const struct {
		const char *name;
		const char *help;
		const atomic_t *value;
	} objects[] = {
		{ "obj_socks", "sockets, closed ones that still deliver included",
		  &xn->nr_socks },
		{ "obj_dests", "destinations", &xn->nr_dests },
		{ "obj_conns", "connections", &xn->nr_conns },
		{ "obj_msgs", "messages on their way out", &xn->nr_msgs },
		{ "obj_rops", "RDMA ops", &xn->nr_rops },
		{ "obj_mrs", "memory regions", &xn->nr_mrs },
	};
	unsigned int i;
	int ret = 0;

	for (i = 0; i < ARRAY_SIZE(objects) && !ret; i++)
		ret = fn(arg, &(struct xrds_counter_row){
			.name = objects[i].name,
			.help = objects[i].help,
			.value = atomic_read(objects[i].value),
			.level = true,
		});
	return ret;
}

static int xrds_counters_core(struct xrds_net *xn, xrds_counter_fn fn,
			      void *arg)
{
	unsigned int i;
	u64 *values;
	int ret = 0;

	values = kcalloc(XRDS_C_NR, sizeof(*values), GFP_KERNEL);
	if (!values)
		return -ENOMEM;
	xrds_counters_sum(xn, values);
	for (i = 0; i < XRDS_C_NR && !ret; i++)
		ret = fn(arg, &(struct xrds_counter_row){
			.name = xrds_counter_texts[i].name,
			.help = xrds_counter_texts[i].help,
			.value = values[i],
		});
	kfree(values);
	return ret;
}

static int xrds_counters_extra(struct xrds_net *xn,
			       const struct xrds_extra_counters *extra,
			       xrds_counter_fn fn, void *arg)
{
	unsigned int i;
	u64 *values;
	int ret = 0;

	lockdep_assert_held(&xrds_extra_lock);

	values = kcalloc(extra->nr, sizeof(*values), GFP_KERNEL);
	if (!values)
		return -ENOMEM;
	extra->sum(xn->net, values);
	for (i = 0; i < extra->nr && !ret; i++)
		ret = fn(arg, &(struct xrds_counter_row){
			.name = extra->names[i],
			.help = extra->helps[i],
			.value = values[i],
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
	const struct xrds_extra_counters *extra;
	int ret;

	ret = xrds_counters_core(xn, fn, arg);
	if (!ret)
		ret = xrds_counters_objects(xn, fn, arg);
	if (!ret)
		ret = xrds_counters_used(xn, fn, arg);
	if (ret)
		return ret;

	mutex_lock(&xrds_extra_lock);
	list_for_each_entry(extra, &xrds_extra, node) {
		ret = xrds_counters_extra(xn, extra, fn, arg);
		if (ret)
			break;
	}
	mutex_unlock(&xrds_extra_lock);
	return ret;
}
