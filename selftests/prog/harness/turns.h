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

/* Once in a process, before the times that are asked for */
void turns_begin(void);
/* How many ms have passed since then, by tap_now_ms(): as turns of the processor
 * that has had the fewest. It counts no further than 160 s.
 */
long long turns_since(long long since_ms);

#endif /* _XRDS_TEST_TURNS_H */
