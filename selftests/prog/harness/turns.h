/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Time in which the node ran, for upper bounds.
 *
 * A busy host stops a node, or one of its processors, for as long as seconds. The
 * code under test cannot help that, and the node's clock goes on. So a thread on each
 * processor sleeps for 10 ms, again and again, and only these turns count.
 */
#ifndef _XRDS_TEST_TURNS_H
#define _XRDS_TEST_TURNS_H

#include "tap.h"

/* In each process, before the times that are asked for */
void turns_begin(void);
/* How many ms have passed since then, by tap_now_ms(): as turns of the processor
 * that has had the fewest. It counts no further than 160 s.
 */
long long turns_since(long long since_ms);

/* So much time has passed since then: at least @min_ms by the clock, and at most
 * @max_ms in turns
 */
#define check_took(since_ms, min_ms, max_ms) \
	turns_check(since_ms, min_ms, max_ms, TAP_HERE("time since " #since_ms))
void turns_check(long long since_ms, long long min_ms, long long max_ms,
		 const struct tap_where *where);

#endif /* _XRDS_TEST_TURNS_H */
