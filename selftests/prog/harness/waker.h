/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A thread that sleeps in poll(), epoll_wait() or recv(), and counts.
 *
 * Two numbers matter: whether poll() returned, and how often the thread was
 * woken in the kernel. A wake-up that finds nothing to report lets poll()
 * sleep on and shows only in the second, which is the number of voluntary
 * context switches of the thread.
 */
#ifndef _XRDS_TEST_WAKER_H
#define _XRDS_TEST_WAKER_H

#include <pthread.h>

struct waker {
	pthread_t thread;
	int fd;
	int stop_fd;
	short events;
	int tid;
	long slept;	/* how often before it was to sleep */
	int returns;	/* 1: poll() returned, with events */
	short seen;	/* these */
};

/*
 * Starts the thread; returns once it sleeps. It polls until it has returned
 * once, then ends.
 */
void waker_start(struct waker *w, int fd, short events);
/* The same in epoll_wait() on an epoll instance, which gets a use for it */
void waker_start_epoll(struct waker *w, int ep);
/* The same in recv(), with room for a byte; it has to get a message to end */
void waker_start_reader(struct waker *w, int fd);
/* How often the thread has slept so far; 1 as long as nothing woke it */
long waker_sleeps(const struct waker *w);
/* Stops the thread, if it still sleeps */
void waker_stop(struct waker *w);

#endif /* _XRDS_TEST_WAKER_H */
