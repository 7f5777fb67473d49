// SPDX-License-Identifier: GPL-2.0-only
/*
 * What an event means in each state of a connection, and the names of states.
 *
 * There is a cell for every pair, so that one that was forgotten would be seen.
 * state.c does what the cell says, and explains why; only its work item looks
 * here.
 */
#include "conn/state.h"

#define DO(x) XRDS_DO_##x

/* enum xrds_action */
const u8 xrds_state_table[XRDS_ST_NR][XRDS_EV_NR] = {
	[XRDS_ST_DOWN] = {
		[XRDS_EV_DESTROY]	= DO(KILL),
		[XRDS_EV_REMOVED]	= DO(NOTHING),
		[XRDS_EV_ERROR]		= DO(NOTHING),
		[XRDS_EV_REQUEST]	= DO(ACCEPT),
		[XRDS_EV_RESOLVED]	= DO(NOTHING),
		[XRDS_EV_ESTABLISHED]	= DO(NOTHING),
		[XRDS_EV_CTS]		= DO(NOTHING),
		[XRDS_EV_BYE]		= DO(NOTHING),
		[XRDS_EV_BYE_ACK]	= DO(NOTHING),
		[XRDS_EV_IDLE]		= DO(REST),
		[XRDS_EV_WANT]		= DO(DIAL),
		[XRDS_EV_TIMEOUT]	= DO(REDIAL),
	},
	[XRDS_ST_RESOLVING] = {
		[XRDS_EV_DESTROY]	= DO(KILL),
		[XRDS_EV_REMOVED]	= DO(FAIL),
		[XRDS_EV_ERROR]		= DO(FAIL),
		[XRDS_EV_REQUEST]	= DO(REPLACE),
		[XRDS_EV_RESOLVED]	= DO(ADVANCE),
		[XRDS_EV_ESTABLISHED]	= DO(NOTHING),
		[XRDS_EV_CTS]		= DO(NOTHING),
		[XRDS_EV_BYE]		= DO(NOTHING),
		[XRDS_EV_BYE_ACK]	= DO(NOTHING),
		[XRDS_EV_IDLE]		= DO(NOTHING),
		[XRDS_EV_WANT]		= DO(NOTHING),
		[XRDS_EV_TIMEOUT]	= DO(EXPIRE),
	},
	[XRDS_ST_CONNECTING] = {
		[XRDS_EV_DESTROY]	= DO(KILL),
		[XRDS_EV_REMOVED]	= DO(FAIL),
		[XRDS_EV_ERROR]		= DO(FAIL),
		[XRDS_EV_REQUEST]	= DO(CROSS),
		[XRDS_EV_RESOLVED]	= DO(NOTHING),
		[XRDS_EV_ESTABLISHED]	= DO(START),
		[XRDS_EV_CTS]		= DO(START_EARLY),
		[XRDS_EV_BYE]		= DO(KEEP),
		[XRDS_EV_BYE_ACK]	= DO(NOTHING),
		[XRDS_EV_IDLE]		= DO(NOTHING),
		[XRDS_EV_WANT]		= DO(NOTHING),
		[XRDS_EV_TIMEOUT]	= DO(EXPIRE),
	},
	[XRDS_ST_WAIT_CTS] = {
		[XRDS_EV_DESTROY]	= DO(KILL),
		[XRDS_EV_REMOVED]	= DO(FAIL),
		[XRDS_EV_ERROR]		= DO(FAIL),
		[XRDS_EV_REQUEST]	= DO(RENEW),
		[XRDS_EV_RESOLVED]	= DO(NOTHING),
		[XRDS_EV_ESTABLISHED]	= DO(NOTHING),
		[XRDS_EV_CTS]		= DO(OPEN),
		[XRDS_EV_BYE]		= DO(KEEP),
		[XRDS_EV_BYE_ACK]	= DO(NOTHING),
		[XRDS_EV_IDLE]		= DO(NOTHING),
		[XRDS_EV_WANT]		= DO(NOTHING),
		[XRDS_EV_TIMEOUT]	= DO(EXPIRE),
	},
	[XRDS_ST_UP] = {
		[XRDS_EV_DESTROY]	= DO(LEAVE),
		[XRDS_EV_REMOVED]	= DO(UNPLUG),
		[XRDS_EV_ERROR]		= DO(FAIL),
		[XRDS_EV_REQUEST]	= DO(RENEW),
		[XRDS_EV_RESOLVED]	= DO(NOTHING),
		[XRDS_EV_ESTABLISHED]	= DO(NOTHING),
		[XRDS_EV_CTS]		= DO(NOTHING),
		[XRDS_EV_BYE]		= DO(PART),
		[XRDS_EV_BYE_ACK]	= DO(NOTHING),
		[XRDS_EV_IDLE]		= DO(TICK),
		[XRDS_EV_WANT]		= DO(PUMP),
		[XRDS_EV_TIMEOUT]	= DO(TICK),
	},
	[XRDS_ST_CLOSING] = {
		[XRDS_EV_DESTROY]	= DO(LEAVE),
		[XRDS_EV_REMOVED]	= DO(UNPLUG),
		[XRDS_EV_ERROR]		= DO(GONE),
		[XRDS_EV_REQUEST]	= DO(OVERTAKEN),
		[XRDS_EV_RESOLVED]	= DO(NOTHING),
		[XRDS_EV_ESTABLISHED]	= DO(NOTHING),
		[XRDS_EV_CTS]		= DO(NOTHING),
		[XRDS_EV_BYE]		= DO(ANSWER),
		[XRDS_EV_BYE_ACK]	= DO(ANSWERED),
		[XRDS_EV_IDLE]		= DO(CHECK),
		[XRDS_EV_WANT]		= DO(KEEP),
		[XRDS_EV_TIMEOUT]	= DO(GIVE_UP),
	},
	[XRDS_ST_PARTING] = {
		[XRDS_EV_DESTROY]	= DO(LEAVE),
		[XRDS_EV_REMOVED]	= DO(UNPLUG),
		[XRDS_EV_ERROR]		= DO(GONE),
		[XRDS_EV_REQUEST]	= DO(OVERTAKEN),
		[XRDS_EV_RESOLVED]	= DO(NOTHING),
		[XRDS_EV_ESTABLISHED]	= DO(NOTHING),
		[XRDS_EV_CTS]		= DO(NOTHING),
		[XRDS_EV_BYE]		= DO(NOTHING),
		[XRDS_EV_BYE_ACK]	= DO(NOTHING),
		[XRDS_EV_IDLE]		= DO(CHECK),
		[XRDS_EV_WANT]		= DO(KEEP),
		[XRDS_EV_TIMEOUT]	= DO(GIVE_UP),
	},
};

#undef DO

/* in the order of enum xrds_state */
static const char * const xrds_state_names[] = {
#define X(sym, text) text
#include "list_states.h"
#undef X
};

static_assert(ARRAY_SIZE(xrds_state_names) == XRDS_ST_NR);

/**
 * xrds_state_name - the name of a state in dumps and log lines
 * @state: state
 *
 * Context: any.
 * Return: the name.
 */
const char *xrds_state_name(enum xrds_state state)
{
	return state < XRDS_ST_NR ? xrds_state_names[state] : "?";
}

/* in the order of enum xrds_event */
static const char * const xrds_event_names[] = {
#define X(sym, text) text
#include "list_events.h"
#undef X
};

static_assert(ARRAY_SIZE(xrds_event_names) == XRDS_EV_NR);

/**
 * xrds_event_name - the name of an event in traces
 * @ev: event
 *
 * Context: any.
 * Return: the name.
 */
const char *xrds_event_name(enum xrds_event ev)
{
	return ev < XRDS_EV_NR ? xrds_event_names[ev] : "?";
}
