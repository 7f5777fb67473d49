// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread that asks for the high-water mark all the time.
 */
#include <string.h>

#include "rdma.h"
#include "tap.h"
#include "watcher.h"

static void *watcher_thread(void *arg)
{
	u64 completed = 0, last = 0;
	struct watcher *w = arg;
	struct xrds_barrier b;

	while (!READ_ONCE(w->stop)) {
		must(barrier(w->fd, &w->to, 0, 0, 0, &b));
		if (!check(b.completed >= completed) ||
		    !check(b.issued >= last) ||
		    !check(b.completed <= b.issued))
			break;
		completed = b.completed;
		last = b.issued;
		w->samples++;
	}
	return NULL;
}

void watcher_start(struct watcher *w, int fd, const union addr *to)
{
	memset(w, 0, sizeof(*w));
	w->fd = fd;
	w->to = *to;
	pthread_create(&w->thread, NULL, watcher_thread, w);
}

void watcher_end(struct watcher *w)
{
	WRITE_ONCE(w->stop, true);
	pthread_join(w->thread, NULL);
	check(w->samples > 0);
}
