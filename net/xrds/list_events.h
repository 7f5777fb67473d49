/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events of a connection: X(symbol, name), in the order in which the work item
 * looks at them. Included with X() defined.
 */
X(DESTROY,	"destroy"),	/* namespace, module or table */
X(REMOVED,	"removed"),	/* the device goes away */
X(ERROR,	"error"),	/* conn->error says which */
X(REQUEST,	"request"),	/* the peer dials; conn->pending */
X(RESOLVED,	"resolved"),	/* a step of resolving is done */
X(ESTABLISHED,	"established"),	/* the CM says so */
X(CTS,		"cts"),	/* conn->hello is valid */
X(BYE,		"bye"),	/* the peer sends nothing more */
X(BYE_ACK,	"bye-ack"),	/* the peer has read our BYE */
X(TURN,		"turn"),	/* it may dial, see dialq.c */
X(IDLE,		"idle"),	/* nothing is under way, or idle_ms changed */
X(WANT,		"want"),	/* something is queued */
X(TIMEOUT,	"timeout"),	/* the state's deadline passed */
