/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A thread that asks for the high-water mark all the time: it never falls, nor
 * does the number of ops that were issued, and it is never above that.
 */
#ifndef _XRDS_TEST_WATCHER_H
#define _XRDS_TEST_WATCHER_H

#include <pthread.h>

#include "sock.h"

/**
 * struct watcher - the thread
 * @thread:	itself
 * @fd:		the socket whose mark it asks for
 * @to:		toward this node
 * @stop:	it is to end
 * @samples:	so often it has asked
 */
struct watcher {
	pthread_t thread;
	int fd;
	union addr to;
	bool stop;
	long samples;
};

void watcher_start(struct watcher *w, int fd, const union addr *to);
/* Ends the thread, which has asked at least once */
void watcher_end(struct watcher *w);

#endif /* _XRDS_TEST_WATCHER_H */
