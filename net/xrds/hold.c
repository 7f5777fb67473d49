// SPDX-License-Identifier: GPL-2.0-only
/*
 * How much is done in one hold of a spin lock.
 *
 * A processor that waits for a spin lock does nothing else, and softirqs of the
 * holder's processor wait, too. So a loop under one must not grow with the number
 * of objects that programs or peers have made. It makes a constant number of steps,
 * releases the lock, and goes on from there. XRDS_*_BATCH are the constants. The
 * loop finds its place again in one of these ways:
 *
 * - It takes objects off the list, or moves them to another one, so that the list
 *   is the rest (tx_resume.c).
 * - It has a reference on an object that stays on the list as long as somebody has
 *   one (xrds_flow_walk(), xrds_conn_net_walk()).
 * - It has a reference on the last object, and each has a number that ascends
 *   along the list. If that object has left the list the loop begins at the
 *   front, and passes over lower numbers (opt_info_msg.c).
 *
 * Each loop tells how many steps it has made. The highest numbers are in debugfs,
 * and the tests compare them with the constants. It is always on, as a hold costs
 * one comparison with a value that seldom changes.
 */
#include "xrds.h"

/* in the order of enum xrds_hold */
static const struct xrds_hold_kind xrds_hold_kinds[XRDS_HOLDS] = {
#define X(sym, name) { #name, XRDS_##sym##_BATCH }
#include "list_holds.h"
#undef X
};

static u32 xrds_hold_seen[XRDS_HOLDS];

/**
 * xrds_hold_count - note how much was done in one hold of a spin lock
 * @hold: which loop
 * @n: its steps
 *
 * Context: any.
 */
void xrds_hold_count(enum xrds_hold hold, u32 n)
{
	u32 seen = READ_ONCE(xrds_hold_seen[hold]), old;

	while (unlikely(n > seen)) {
		old = cmpxchg(&xrds_hold_seen[hold], seen, n);
		if (old == seen)
			break;
		seen = old;
	}
}
EXPORT_SYMBOL_GPL(xrds_hold_count);

/**
 * xrds_hold_most - the most that was done in one hold
 * @hold: which loop
 * @kind: result: its name and its bound
 *
 * Context: any.
 * Return: steps, since the module was loaded.
 */
u32 xrds_hold_most(enum xrds_hold hold, struct xrds_hold_kind *kind)
{
	*kind = xrds_hold_kinds[hold];
	return READ_ONCE(xrds_hold_seen[hold]);
}

/**
 * xrds_hold_pause - release RCU now and then in a walk over a hash table
 * @iter: the walk, which has started
 * @n: its steps so far
 *
 * Context: process, may sleep.
 */
void xrds_hold_pause(struct rhashtable_iter *iter, u32 n)
{
	if (n % XRDS_END_BATCH)
		return;
	rhashtable_walk_stop(iter);
	cond_resched();
	/* then the last object that was seen may be freed, and not each kernel
	 * forgets it by itself
	 */
	if (rhashtable_walk_start_check(iter))
		iter->p = NULL;
}
