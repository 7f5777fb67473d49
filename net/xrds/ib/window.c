// SPDX-License-Identifier: GPL-2.0-only
/*
 * The window of large messages: how many of their fragments may be in progress.
 *
 * A small message waits for all fragments that the device was given before it, so
 * they are few: as many as the link carries in two round trips, from
 * XRDS_IB_WINDOW_MIN to XRDS_IB_WINDOW_MAX. One round trip would do if completions
 * came at once; the second one covers the time until they are handled.
 *
 * The round trip is the shortest one that was measured, of any send. The rate is
 * measured with a fragment at a time: fragments that have completed while it was in
 * progress. Of those that are posted together it is the last one, as they complete
 * together as well. So on a link with a long round trip the window doubles with each, up
 * to the rate of the link. On a slow link, which soft-RoCE is, most of the time
 * that a fragment takes is that of others in front of it, and the window stays at
 * the minimum. A round trip that becomes longer in the life of an endpoint leaves
 * the window too small: large messages are slower then, and nobody waits longer.
 *
 * This file is pure: it knows neither fragments nor locks. Its callers hold
 * conn->tx_lock.
 */
#include <linux/math64.h>
#include <linux/minmax.h>

#include "ib/window.h"

/**
 * xrds_ib_window_init - the window of a new endpoint
 * @win: window
 * @most: fragments that the send queue has room for beside small messages
 *
 * Context: any.
 */
void xrds_ib_window_init(struct xrds_ib_window *win, u32 most)
{
	*win = (struct xrds_ib_window){
		.frags	= XRDS_IB_WINDOW_MIN,
		.most	= clamp(most, (u32)XRDS_IB_WINDOW_MIN,
				(u32)XRDS_IB_WINDOW_MAX),
	};
}

/**
 * xrds_ib_window_rtt - a round trip was measured
 * @win: window
 * @ns: its length, not 0
 *
 * Context: any.
 */
void xrds_ib_window_rtt(struct xrds_ib_window *win, u64 ns)
{
	if (!win->least_ns || ns < win->least_ns)
		win->least_ns = ns;
}

/**
 * xrds_ib_window_fresh - has no fragment completed since a measurement began?
 * @win: window with a fragment that is being measured
 *
 * Context: any.
 * Return: true if so: it is better to measure a later one instead.
 */
bool xrds_ib_window_fresh(const struct xrds_ib_window *win)
{
	return win->begin_done == win->done;
}

/**
 * xrds_ib_window_begin - a fragment is about to be posted that can be measured
 * @win: window; another fragment is measured no longer
 * @now: the time, ns
 *
 * Context: any.
 */
void xrds_ib_window_begin(struct xrds_ib_window *win, u64 now)
{
	win->begin_ns = now;
	win->begin_done = win->done;
}

/**
 * xrds_ib_window_end - the measured fragment has completed
 * @win: window; @win->done counts the fragment
 * @now: the time, ns
 *
 * Context: any.
 */
void xrds_ib_window_end(struct xrds_ib_window *win, u64 now)
{
	u64 ns = max(now - win->begin_ns, (u64)1);
	u32 done = win->done - win->begin_done;
	u64 frags;

	xrds_ib_window_rtt(win, ns);
	frags = div64_u64(2 * done * win->least_ns, ns);
	win->frags = clamp(frags, (u64)XRDS_IB_WINDOW_MIN, (u64)win->most);
}
