// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread that sleeps in poll(), epoll_wait() or recv(), and counts.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"
#include "waker.h"

/* The value of a line of the thread's status, or its first letter */
static long status_field(int tid, const char *field, char *letter)
{
	char path[64], line[256];
	long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	file = fopen(path, "r");
	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, field, strlen(field)))
			continue;
		if (letter)
			value = sscanf(line + strlen(field), " %c", letter);
		else
			sscanf(line + strlen(field), "%ld", &value);
		break;
	}
	fclose(file);
	return value;
}

/* The thread sleeps in the next call that it makes. */
static void about_to_sleep(struct waker *w)
{
	struct rusage usage;

	must(getrusage(RUSAGE_THREAD, &usage));
	w->slept = usage.ru_nvcsw;
	WRITE_ONCE(w->tid, gettid());
}

static void *poll_thread(void *arg)
{
	struct waker *w = arg;
	struct pollfd pfds[] = {
		{ .fd = w->fd, .events = w->events },
		{ .fd = w->stop_fd, .events = POLLIN },
	};

	about_to_sleep(w);
	if (poll(pfds, 2, -1) < 0)
		tap_fail("poll: %s", tap_errno_name(errno));
	if (pfds[0].revents) {
		w->seen = pfds[0].revents;
		WRITE_ONCE(w->returns, 1);
	}
	return NULL;
}

static void *epoll_thread(void *arg)
{
	struct waker *w = arg;
	struct epoll_event event = { .events = EPOLLIN, .data.fd = w->stop_fd };

	must(epoll_ctl(w->fd, EPOLL_CTL_ADD, w->stop_fd, &event));
	about_to_sleep(w);
	if (epoll_wait(w->fd, &event, 1, -1) != 1)
		tap_fail("epoll_wait: %s", tap_errno_name(errno));
	if (event.data.fd != w->stop_fd) {
		w->seen = event.events;
		WRITE_ONCE(w->returns, 1);
	}
	return NULL;
}

static void *reader_thread(void *arg)
{
	struct waker *w = arg;
	char byte;

	about_to_sleep(w);
	if (recv(w->fd, &byte, sizeof(byte), 0) < 0)
		tap_fail("recv: %s", tap_errno_name(errno));
	WRITE_ONCE(w->returns, 1);
	return NULL;
}

long waker_sleeps(const struct waker *w)
{
	return status_field(w->tid, "voluntary_ctxt_switches:", NULL) - w->slept;
}

/* Asleep, and in that call: the thread waits for nothing else. It has the state of a
 * sleeper a moment before it gives its processor up, and is counted.
 */
static bool asleep(void *arg)
{
	const struct waker *w = arg;
	char state = 0;

	if (READ_ONCE(w->returns))
		return true;
	return READ_ONCE(w->tid) && waker_sleeps(w) > 0 &&
	       status_field(w->tid, "State:", &state) == 1 && state == 'S';
}

static void start(struct waker *w, int fd, short events,
		  void *(*thread)(void *arg))
{
	memset(w, 0, sizeof(*w));
	w->fd = fd;
	w->events = events;
	w->stop_fd = must(eventfd(0, EFD_CLOEXEC));
	errno = pthread_create(&w->thread, NULL, thread, w);
	if (errno)
		tap_fail("pthread_create: %s", tap_errno_name(errno));
	must_wait(asleep, w, WAIT_MS);
}

void waker_start(struct waker *w, int fd, short events)
{
	start(w, fd, events, poll_thread);
}

void waker_start_epoll(struct waker *w, int ep)
{
	start(w, ep, 0, epoll_thread);
}

void waker_start_reader(struct waker *w, int fd)
{
	start(w, fd, 0, reader_thread);
}

void waker_stop(struct waker *w)
{
	u64 one = 1;

	must(write(w->stop_fd, &one, sizeof(one)));
	pthread_join(w->thread, NULL);
	close(w->stop_fd);
}
