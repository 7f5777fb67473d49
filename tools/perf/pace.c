// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pace of a client: when its next message may be sent, with --rate and -P.
 */
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "perf.h"

enum {
	CATCH_UP_MS	= 100,	/* of the time lost with --rate */
	LOOK_S		= 1,	/* between looks at the peer in a long pause */
};

static uint64_t due_ns;		/* when the next message may be sent */

void pace_seed(void)
{
	srand48(now_ns() ^ getpid());
}

bool pace_is_set(void)
{
	return opt.rate || opt.pause_ns;
}

void pace_begin(uint64_t now)
{
	due_ns = now;
}

bool pace_due(uint64_t now)
{
	return !pace_is_set() || now >= due_ns;
}

/*
 * A random pause has no rhythm, so it does not fall in step with those of other
 * programs. A rate is even, and time that was lost is caught up in part.
 */
void pace_plan(uint64_t now, uint32_t count)
{
	uint64_t catch_up = CATCH_UP_MS * NSEC_PER_MSEC;

	if (opt.rate) {
		due_ns += count * NSEC_PER_SEC / opt.rate;
		if (due_ns + catch_up < now)
			due_ns = now - catch_up;
	} else if (opt.pause_ns) {
		due_ns = now + (uint64_t)(opt.pause_ns * (0.5 + drand48()));
	}
}

void pace_wait(void)
{
	uint64_t now, until;
	struct timespec ts;

	for (now = now_ns(); !pace_due(now); now = now_ns()) {
		client_look(now);
		until = now + LOOK_S * NSEC_PER_SEC;
		if (until > due_ns)
			until = due_ns;
		ts.tv_sec = until / NSEC_PER_SEC;
		ts.tv_nsec = until % NSEC_PER_SEC;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	}
}

bool pace_wait_or(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint64_t now = now_ns(), left = due_ns > now ? due_ns - now : 0;
	struct timespec ts = { left / NSEC_PER_SEC, left % NSEC_PER_SEC };

	return ppoll(&pfd, 1, &ts, NULL) > 0;
}
