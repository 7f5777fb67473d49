// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters, and their dump.
 *
 * Each namespace counts for itself, per CPU, in one array that is indexed by
 * enum xrds_counter; names come from the same X-macro. A transport adds its
 * own with xrds_counters_register().
 */
#include <linux/mm.h>

#include "xrds.h"

/* in the order of enum xrds_counter */
static const char * const xrds_counter_names[] = {
#define X(sym, name) #name
#include "list_counters.h"
#undef X
#define X(sym, name, text) "wire_" #name
#include "list_wire_errors.h"
#undef X
};

static_assert(ARRAY_SIZE(xrds_counter_names) == XRDS_C_NR);

static DEFINE_MUTEX(xrds_extra_lock);
static LIST_HEAD(xrds_extra);

/**
 * xrds_counters_register - add counters to the dump
 * @extra: what to add; stays the caller's
 *
 * Context: process.
 */
void xrds_counters_register(struct xrds_extra_counters *extra)
{
	mutex_lock(&xrds_extra_lock);
	list_add_tail(&extra->node, &xrds_extra);
	mutex_unlock(&xrds_extra_lock);
}
EXPORT_SYMBOL_GPL(xrds_counters_register);

/**
 * xrds_counters_unregister - take counters out of the dump
 * @extra: what was added; not in use any more on return
 *
 * Context: process.
 */
void xrds_counters_unregister(struct xrds_extra_counters *extra)
{
	mutex_lock(&xrds_extra_lock);
	list_del(&extra->node);
	mutex_unlock(&xrds_extra_lock);
}
EXPORT_SYMBOL_GPL(xrds_counters_unregister);

static void xrds_counters_sum(struct xrds_net *xn, u64 *values)
{
	int cpu, i;

	memset(values, 0, XRDS_C_NR * sizeof(*values));
	for_each_possible_cpu(cpu)
		for (i = 0; i < XRDS_C_NR; i++)
			values[i] += per_cpu_ptr(xn->counters, cpu)->v[i];
}

static void xrds_counter_put(struct xrds_dump *d, const char *name, u64 value)
{
	struct rds_info_counter *row = xrds_dump_row(d);

	if (!row)
		return;
	strscpy((char *)row->name, name, sizeof(row->name));
	row->value = value;
}

/* What is bounded, see limit.c */
static void xrds_counters_used(struct xrds_dump *d)
{
	static const char * const names[XRDS_LIMITS] = {
		[XRDS_LIMIT_MEM]	= "used_memory",
		[XRDS_LIMIT_PINNED]	= "used_pinned",
		[XRDS_LIMIT_KEYS]	= "used_keys",
		[XRDS_LIMIT_CONNS]	= "used_connections",
	};
	unsigned int i;

	for (i = 0; i < XRDS_LIMITS; i++)
		xrds_counter_put(d, names[i], atomic64_read(&d->xn->used[i]));
}

/* How much is alive: a test wants to see all of it at zero. */
static void xrds_counters_objects(struct xrds_dump *d)
{
	const struct {
		const char *name;
		const atomic_t *value;
	} objects[] = {
		{ "obj_socks", &d->xn->nr_socks },
		{ "obj_dests", &d->xn->nr_dests },
		{ "obj_conns", &d->xn->nr_conns },
		{ "obj_msgs", &d->xn->nr_msgs },
		{ "obj_rops", &d->xn->nr_rops },
		{ "obj_mrs", &d->xn->nr_mrs },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(objects); i++)
		xrds_counter_put(d, objects[i].name,
				 atomic_read(objects[i].value));
}

static int xrds_counters_extra(struct xrds_dump *d,
			       const struct xrds_extra_counters *extra)
{
	unsigned int i;
	u64 *values;

	lockdep_assert_held(&xrds_extra_lock);

	values = kcalloc(extra->nr, sizeof(*values), GFP_KERNEL);
	if (!values)
		return -ENOMEM;
	extra->sum(d->xn->net, values);
	for (i = 0; i < extra->nr; i++)
		xrds_counter_put(d, extra->names[i], values[i]);
	kfree(values);
	return 0;
}

/**
 * xrds_counters_dump - rows of RDS_INFO_COUNTERS
 * @d: dump
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int xrds_counters_dump(struct xrds_dump *d)
{
	const struct xrds_extra_counters *extra;
	unsigned int i;
	u64 *values;
	int ret = 0;

	values = kcalloc(XRDS_C_NR, sizeof(*values), GFP_KERNEL);
	if (!values)
		return -ENOMEM;
	xrds_counters_sum(d->xn, values);
	for (i = 0; i < XRDS_C_NR; i++)
		xrds_counter_put(d, xrds_counter_names[i], values[i]);
	kfree(values);
	xrds_counters_objects(d);
	xrds_counters_used(d);

	mutex_lock(&xrds_extra_lock);
	list_for_each_entry(extra, &xrds_extra, node) {
		ret = xrds_counters_extra(d, extra);
		if (ret)
			break;
	}
	mutex_unlock(&xrds_extra_lock);
	return ret;
}
