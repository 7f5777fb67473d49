/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loops under spin locks: X(symbol, name). The steps in one hold are bounded by
 * XRDS_<symbol>_BATCH. A loop counts its steps, and lets others in when it has
 * made that many, see hold.c.
 */
X(END, end),	/* messages, ops and others that end, or are moved */
X(PUMP, pump),	/* messages that are posted */
X(LINK, link),	/* connections that are told of a port */
X(DUMP, dump),	/* rows of a dump that are looked at */
X(SORT, sort),	/* messages that are sorted by source */
X(LOOP, loop),	/* messages that loopback delivers */
