/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The window of large messages. Pure; see window.c.
 */
#ifndef _XRDS_IB_WINDOW_H
#define _XRDS_IB_WINDOW_H

#include <linux/types.h>

enum {
	XRDS_IB_WINDOW_MIN	= 8,	/* fragments */
	XRDS_IB_WINDOW_MAX	= 32,
};

/**
 * struct xrds_ib_window - fragments of large messages that may be in progress
 * @frags:	how many
 * @most:	upper limit of @frags
 * @done:	fragments that have completed, ever
 * @begin_done:	value of @done when the measured fragment was posted
 * @begin_ns:	time when it was posted
 * @least_ns:	the shortest round trip; 0: none was measured
 */
struct xrds_ib_window {
	u32 frags;
	u32 most;
	u32 done;
	u32 begin_done;
	u64 begin_ns;
	u64 least_ns;
};

void xrds_ib_window_init(struct xrds_ib_window *win, u32 most);
void xrds_ib_window_rtt(struct xrds_ib_window *win, u64 ns);
bool xrds_ib_window_fresh(const struct xrds_ib_window *win);
void xrds_ib_window_begin(struct xrds_ib_window *win, u64 now);
void xrds_ib_window_end(struct xrds_ib_window *win, u64 now);

#endif /* _XRDS_IB_WINDOW_H */
