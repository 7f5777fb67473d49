// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters, and the RDS_INFO_* dumps through getsockopt().
 *
 * Each namespace counts for itself, per CPU, in one array that is indexed by
 * enum xrds_counter; names come from the same X-macro. A transport adds its
 * own with xrds_counters_register().
 *
 * A dump answers with the size of one element. A buffer that is too short
 * gets -ENOSPC and the length that would do, as mainline RDS has it.
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

static void xrds_counter_put(struct rds_info_counter *out, const char *name,
			     u64 value)
{
	/* the structure goes to user space as it is: no byte unset */
	memset(out, 0, sizeof(*out));
	strscpy((char *)out->name, name, sizeof(out->name));
	out->value = value;
}

/* How much is alive: a test wants to see all of it at zero. */
static unsigned int xrds_info_objects(struct xrds_net *xn,
				      struct rds_info_counter *out)
{
	const struct {
		const char *name;
		const atomic_t *value;
	} objects[] = {
		{ "obj_socks", &xn->nr_socks },
		{ "obj_dests", &xn->nr_dests },
		{ "obj_conns", &xn->nr_conns },
		{ "obj_msgs", &xn->nr_msgs },
		{ "obj_rops", &xn->nr_rops },
		{ "obj_mrs", &xn->nr_mrs },
	};
	unsigned int i;

	for (i = 0; out && i < ARRAY_SIZE(objects); i++)
		xrds_counter_put(&out[i], objects[i].name,
				 atomic_read(objects[i].value));
	return ARRAY_SIZE(objects);
}

static unsigned int xrds_info_nr_counters(struct xrds_net *xn)
{
	unsigned int nr = XRDS_C_NR + xrds_info_objects(xn, NULL);
	struct xrds_extra_counters *extra;

	lockdep_assert_held(&xrds_extra_lock);

	list_for_each_entry(extra, &xrds_extra, node)
		nr += extra->nr;
	return nr;
}

static void xrds_info_fill_counters(struct xrds_net *xn,
				    struct rds_info_counter *out, u64 *values)
{
	struct xrds_extra_counters *extra;
	unsigned int i;

	xrds_counters_sum(xn, values);
	for (i = 0; i < XRDS_C_NR; i++)
		xrds_counter_put(out++, xrds_counter_names[i], values[i]);
	out += xrds_info_objects(xn, out);
	list_for_each_entry(extra, &xrds_extra, node) {
		extra->sum(xn->net, values);
		for (i = 0; i < extra->nr; i++)
			xrds_counter_put(out++, extra->names[i], values[i]);
	}
}

static int xrds_info_counters(struct xrds_net *xn, char __user *optval,
			      unsigned int len, unsigned int *need)
{
	struct rds_info_counter *out;
	unsigned int nr;
	u64 *values;
	int ret = 0;

	mutex_lock(&xrds_extra_lock);
	nr = xrds_info_nr_counters(xn);
	*need = nr * sizeof(*out);
	if (len < *need) {
		mutex_unlock(&xrds_extra_lock);
		return -ENOSPC;
	}

	/* one source has fewer values than all together */
	values = kvmalloc_array(nr, sizeof(*values), GFP_KERNEL);
	out = kvmalloc_array(nr, sizeof(*out), GFP_KERNEL);
	if (values && out)
		xrds_info_fill_counters(xn, out, values);
	else
		ret = -ENOMEM;
	mutex_unlock(&xrds_extra_lock);

	if (!ret && copy_to_user(optval, out, *need))
		ret = -EFAULT;
	kvfree(values);
	kvfree(out);
	return ret ?: sizeof(*out);
}

/**
 * xrds_info_getsockopt - RDS_INFO_*
 * @sk: socket
 * @optname: which
 * @optval: user buffer
 * @optlen: user's length; out: bytes written or needed
 *
 * Context: process.
 * Return: size of one element, -ENOSPC, -EFAULT, -EINVAL, -ENOPROTOOPT.
 */
int xrds_info_getsockopt(struct sock *sk, int optname, char __user *optval,
			 int __user *optlen)
{
	struct xrds_net *xn = xrds_sk(sk)->xn;
	unsigned int need = 0;
	int len, ret;

	if (get_user(len, optlen))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;

	switch (optname) {
	case RDS_INFO_COUNTERS:
		ret = xrds_info_counters(xn, optval, len, &need);
		break;
	default:
		return -ENOPROTOOPT;
	}

	if ((ret > 0 || ret == -ENOSPC) && put_user(need, optlen))
		return -EFAULT;
	return ret;
}
