// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of the window of large messages, ib/window.c: a sender keeps as many
 * fragments in progress as the window allows, on a model of a link.
 */
#include "unit.h"
#include "ib/window.h"

enum {
	FRAGMENTS	= 5000,
	RING		= 64,		/* more than may be in progress */
	US		= 1000,		/* ns */
};

/* A link: each fragment takes @frag_ns of it, and its completion comes @rtt_ns after
 * that. Completions that come within @poll_ns are handled together. All times are in
 * ns.
 */
struct link {
	__u64 frag_ns;
	__u64 rtt_ns;
	__u64 poll_ns;
	__u64 now;
	__u64 free;		/* the link has carried all that is posted */
	__u64 ends[RING];	/* when those in progress complete */
	__u32 posted;
	__u32 done;
	__u32 run;		/* posted since the last signalled one */
	_Bool signalled[RING];
	__u32 measured;		/* number of the measured one */
	_Bool measuring;
};

static void post(struct link *link, struct xrds_ib_window *win)
{
	__u32 i = link->posted % RING;

	if (link->free < link->now)
		link->free = link->now;
	link->free += link->frag_ns;
	link->ends[i] = link->free + link->rtt_ns;
	link->signalled[i] = ++link->run >= win->frags / 2;
	if (link->signalled[i]) {
		link->run = 0;
		if (!link->measuring || xrds_ib_window_fresh(win)) {
			link->measuring = 1;
			link->measured = link->posted;
			xrds_ib_window_begin(win, link->now);
		}
	}
	link->posted++;
}

/* The next signalled one has completed, and so have those before it. */
static void complete(struct link *link, struct xrds_ib_window *win)
{
	_Bool signalled;

	do {
		signalled = link->signalled[link->done % RING];
		if (signalled && link->now < link->ends[link->done % RING])
			link->now = link->ends[link->done % RING];
		win->done++;
		if (link->measuring && link->measured == link->done) {
			link->measuring = 0;
			xrds_ib_window_end(win, link->now);
		}
		link->done++;
	} while (!signalled);
}

/* Is there a completion that is handled together with the last one? */
static _Bool another(const struct link *link)
{
	__u32 i;

	for (i = link->done; i != link->posted; i++)
		if (link->signalled[i % RING])
			return link->ends[i % RING] <= link->now + link->poll_ns;
	return 0;
}

/* The window after many fragments */
static __u32 stream(struct xrds_ib_window *win, __u64 frag_ns, __u64 rtt_ns,
		    __u64 poll_ns)
{
	struct link link = { .frag_ns = frag_ns, .rtt_ns = rtt_ns,
			     .poll_ns = poll_ns, .now = 1 };

	while (link.done < FRAGMENTS) {
		while (link.posted - link.done < win->frags)
			post(&link, win);
		do
			complete(&link, win);
		while (another(&link));
		CHECK(win->frags >= XRDS_IB_WINDOW_MIN &&
		      win->frags <= XRDS_IB_WINDOW_MAX);
	}
	return win->frags;
}

/* The same for a new endpoint, which has measured a small message before */
static __u32 settles(__u64 frag_ns, __u64 rtt_ns, __u64 poll_ns)
{
	struct xrds_ib_window win;

	xrds_ib_window_init(&win, RING);
	xrds_ib_window_rtt(&win, rtt_ns + frag_ns / 10);
	return stream(&win, frag_ns, rtt_ns, poll_ns);
}

static void slow(void)
{
	/* soft-RoCE, 10 and 100 Gbit/s */
	CHECK(settles(500 * US, 200 * US, 0) == XRDS_IB_WINDOW_MIN);
	CHECK(settles(13 * US, 10 * US, 0) == XRDS_IB_WINDOW_MIN);
	CHECK(settles(13 * US / 10, 4 * US, 0) == XRDS_IB_WINDOW_MIN);
}

static void fast(void)
{
	__u32 frags = settles(330, 5 * US, 0);

	/* 400 Gbit/s: two round trips are 30 fragments */
	CHECK(frags >= 24 && frags <= XRDS_IB_WINDOW_MAX);
	frags = settles(13 * US / 10, 10 * US, 0);
	CHECK(frags >= 12 && frags <= 18);
}

static void far(void)
{
	CHECK(settles(13 * US, 1000 * US, 0) == XRDS_IB_WINDOW_MAX);
	CHECK(settles(500 * US, 120000 * US, 0) == XRDS_IB_WINDOW_MAX);
	/* all that are in progress complete at once */
	CHECK(settles(13 * US, 10000 * US, 1000 * US) == XRDS_IB_WINDOW_MAX);
}

static void changes(void)
{
	struct xrds_ib_window win;

	xrds_ib_window_init(&win, RING);
	CHECK(stream(&win, 13 * US, 1000 * US, 0) == XRDS_IB_WINDOW_MAX);
	/* a small message finds the way shorter */
	xrds_ib_window_rtt(&win, 11 * US);
	CHECK(stream(&win, 13 * US, 10 * US, 0) == XRDS_IB_WINDOW_MIN);
	/* nothing tells a longer way from a longer queue */
	CHECK(stream(&win, 13 * US, 1000 * US, 0) == XRDS_IB_WINDOW_MIN);
}

static void bounds(void)
{
	struct xrds_ib_window win;
	__u32 i, most;
	__u64 now;

	for (i = 0; i < FRAGMENTS; i++) {
		most = unit_below(2 * RING);
		xrds_ib_window_init(&win, most);
		now = unit_random() >> unit_below(64);
		xrds_ib_window_begin(&win, now);
		win.done += unit_below(RING);
		xrds_ib_window_end(&win, now + unit_below(1U << 31));
		CHECK(win.frags >= XRDS_IB_WINDOW_MIN);
		CHECK(win.frags <= XRDS_IB_WINDOW_MAX);
		CHECK(most < XRDS_IB_WINDOW_MIN || win.frags <= most);
	}
}

const struct unit_test unit_window_tests[] = {
	{ slow, "a slow or short link has the smallest window" },
	{ fast, "the window of a fast link covers two round trips" },
	{ far, "a distant peer has the largest window" },
	{ changes, "the window shrinks with the round trip" },
	{ bounds, "the window keeps its limits" },
	{ }
};
