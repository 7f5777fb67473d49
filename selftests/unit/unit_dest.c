// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of sock/dest_send.h: the sending state of a destination is that of
 * the table in sock/space.c.
 */
#include "unit.h"
#include "sock/dest_send.h"

enum {
	STATES	= XRDS_SEND_READY + 1,
	EVENTS	= XRDS_SEND_CLEAR + 1,
	STEPS	= 100000,
};

/* The rows of the table, and its columns; with "clear" nothing fits */
static const char *const table[STATES][EVENTS] = {
	[XRDS_SEND_OPEN] = {
		"OPEN",    "FULL",   "CONG", "TOLD", "OPEN",    "OPEN",
	},
	[XRDS_SEND_FULL] = {
		"OPEN *",  "FULL",   "CONG", "TOLD", "READY *", "FULL",
	},
	[XRDS_SEND_CONGESTED] = {
		"OPEN *",  "FULL",   "CONG", "TOLD", "CONG",    "FULL",
	},
	[XRDS_SEND_TOLD] = {
		"OPEN *!", "FULL !", "TOLD", "TOLD", "TOLD",    "FULL !",
	},
	[XRDS_SEND_READY] = {
		"OPEN",    "FULL",   "CONG", "TOLD", "READY",   "READY",
	},
};

static const char *const names[STATES] = {
	"OPEN", "FULL", "CONG", "TOLD", "READY",
};

static void follows_table(void)
{
	int from, event;

	for (from = 0; from < STATES; from++) {
		for (event = 0; event < EVENTS; event++) {
			const char *cell = table[from][event];
			int to = xrds_dest_send_next(from, event);

			CHECK(to >= 0 && to < STATES);
			CHECK(!strncmp(cell, names[to], strlen(names[to])));
			CHECK(xrds_dest_send_wakes(from, to) ==
			      !!strchr(cell, '*'));
			CHECK(xrds_dest_send_is_news(from, to) ==
			      !!strchr(cell, '!'));
		}
	}
}

/* Against a model of a sender, which sleeps or polls after a refusal, and of the
 * news that a program waits for
 */
static void wakes_once(void)
{
	int state = XRDS_SEND_OPEN, i;
	bool waits = false, due = false;

	for (i = 0; i < STEPS; i++) {
		int event = unit_below(EVENTS);
		bool full = state == XRDS_SEND_FULL;
		int to = xrds_dest_send_next(state, event);
		bool ends = event == XRDS_SENT ||
			    (event == XRDS_SEND_FITS && full);
		bool told = due && (ends || event == XRDS_SENT_NO_SPACE ||
				    event == XRDS_SEND_CLEAR);

		CHECK(xrds_dest_send_wakes(state, to) == (waits && ends));
		CHECK(xrds_dest_send_is_news(state, to) == told);
		waits = event == XRDS_SENT_NO_SPACE ||
			event == XRDS_SENT_WAITS || event == XRDS_SENT_TOLD ||
			(waits && !ends);
		due = event == XRDS_SENT_TOLD || (due && !told);
		CHECK(xrds_dest_send_blocked(to) == waits);
		state = to;
	}
}

const struct unit_test unit_dest_tests[] = {
	{ follows_table, "the sending state follows its table" },
	{ wakes_once, "each refusal ends with one wake-up, and with its news" },
	{ }
};
