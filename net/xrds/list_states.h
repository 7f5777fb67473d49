/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * States of a connection: X(symbol, name). Included with X() defined.
 */
X(DOWN,		"down"),	/* no endpoint */
X(RESOLVING,	"resolving"),	/* looking for address and route */
X(CONNECTING,	"connecting"),	/* request or reply is sent */
X(WAIT_CTS,	"wait-cts"),	/* our clear-to-send is sent */
X(UP,		"up"),	/* the peer's has come */
X(CLOSING,	"closing"),	/* we say BYE */
X(PARTING,	"parting"),	/* we answer the peer's */
X(DEAD,		"dead"),
