/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the states of a connection and its work item share, and nobody else
 * needs: the table of state_table.c, read by state.c.
 */
#ifndef _XRDS_STATE_H
#define _XRDS_STATE_H

#include "conn/conn.h"
#include "xrds.h"

/* What an event does. KEEP leaves it pending until the state changes. */
enum xrds_action {
	XRDS_DO_NOTHING,
	XRDS_DO_KEEP,
	XRDS_DO_DIAL,		/* start an attempt unless backing off */
	XRDS_DO_REDIAL,		/* back-off is over: start if wanted */
	XRDS_DO_ADVANCE,	/* next step of resolving */
	XRDS_DO_ACCEPT,		/* take the peer's request */
	XRDS_DO_REPLACE,	/* drop our endpoint, take the request */
	XRDS_DO_CROSS,		/* lower address wins */
	XRDS_DO_RENEW,		/* crossed, or a new attempt? */
	XRDS_DO_START,		/* post receives, send clear-to-send */
	XRDS_DO_START_EARLY,	/* the same; the CTS came before the CM */
	XRDS_DO_OPEN,		/* data may flow */
	XRDS_DO_PUMP,		/* post what is queued */
	XRDS_DO_TICK,		/* is the peer still there? is it idle? */
	XRDS_DO_REST,		/* DOWN: does anybody still need it? */
	XRDS_DO_FAIL,		/* drop the endpoint; try again if wanted */
	XRDS_DO_EXPIRE,		/* the same for want of an answer */
	XRDS_DO_LEAVE,		/* end it in order, for good */
	XRDS_DO_UNPLUG,		/* end it in order, the device goes */
	XRDS_DO_PART,		/* the peer ends it: answer */
	XRDS_DO_ANSWER,		/* the same while we do */
	XRDS_DO_ANSWERED,	/* the peer's answer has come */
	XRDS_DO_GONE,		/* the peer has disconnected */
	XRDS_DO_OVERTAKEN,	/* it has, and dials again */
	XRDS_DO_CHECK,		/* is the end reached? */
	XRDS_DO_GIVE_UP,	/* it was not in time */
	XRDS_DO_KILL,		/* for good */
};

extern const u8 xrds_state_table[XRDS_ST_NR][XRDS_EV_NR];

#endif
