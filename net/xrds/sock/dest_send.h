/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A destination's sending state: the table at the head of space.c.
 *
 * Pure: plain values in, plain values out, no lock and no memory. xrds_space_set()
 * applies the transitions; the unit tests compare them with the table.
 */
#ifndef _XRDS_DEST_SEND_H
#define _XRDS_DEST_SEND_H

#include <linux/types.h>

/* How the last send to it ended */
enum xrds_dest_send {
	XRDS_SEND_OPEN,		/* it was accepted, or there was none */
	XRDS_SEND_FULL,		/* refused for want of space */
	XRDS_SEND_CONGESTED,	/* refused for congestion, in sendmsg() only */
	XRDS_SEND_TOLD,		/* the same, and the program knows */
	XRDS_SEND_READY,	/* refused, and would be accepted now */
};

enum xrds_dest_event {
	XRDS_SENT,		/* a send was accepted, or nobody will send */
	XRDS_SENT_NO_SPACE,	/* refused for want of space */
	XRDS_SENT_WAITS,	/* refused for congestion; the call waits */
	XRDS_SENT_TOLD,		/* the same, and the program is told */
	XRDS_SEND_FITS,		/* there is space for the message */
	XRDS_SEND_CLEAR,	/* congestion has ended */
};

static inline enum xrds_dest_send
xrds_dest_send_next(enum xrds_dest_send from, enum xrds_dest_event event)
{
	switch (event) {
	case XRDS_SENT:
		return XRDS_SEND_OPEN;
	case XRDS_SENT_NO_SPACE:
		return XRDS_SEND_FULL;
	case XRDS_SENT_WAITS:
		/* the news is still due */
		return from == XRDS_SEND_TOLD ? from : XRDS_SEND_CONGESTED;
	case XRDS_SENT_TOLD:
		return XRDS_SEND_TOLD;
	case XRDS_SEND_FITS:
		return from == XRDS_SEND_FULL ? XRDS_SEND_READY : from;
	case XRDS_SEND_CLEAR:
		return from == XRDS_SEND_CONGESTED || from == XRDS_SEND_TOLD ?
		       XRDS_SEND_FULL : from;
	}
	return from;
}

/* Would another send wait, as the last one did? */
static inline bool xrds_dest_send_blocked(enum xrds_dest_send send)
{
	return send != XRDS_SEND_OPEN && send != XRDS_SEND_READY;
}

/* Are senders and pollers woken? */
static inline bool xrds_dest_send_wakes(enum xrds_dest_send from,
					enum xrds_dest_send to)
{
	return xrds_dest_send_blocked(from) && !xrds_dest_send_blocked(to);
}

/* Is the end of congestion news to the program? */
static inline bool xrds_dest_send_is_news(enum xrds_dest_send from,
					  enum xrds_dest_send to)
{
	return from == XRDS_SEND_TOLD && to != XRDS_SEND_TOLD;
}

#endif /* _XRDS_DEST_SEND_H */
