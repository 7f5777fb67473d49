// SPDX-License-Identifier: GPL-2.0-only
/*
 * A crowd of waiters: many receivers that are all congested, destinations that
 * all of them have refused, and a bystander on the same connection.
 *
 * Other programs hold a machine up now and then, which is nobody's fault here.
 * So the bystander notes its longest round trip while the port changes once, and
 * the median of these is judged. A machine that is busy all the time makes it
 * longer as well. That is seen with a port for which nobody of the crowd waits,
 * before and after. One that is busy for the whole of one measurement is at rest
 * in another: a walk over the crowd takes its time in each.
 *
 * The bystander has a processor for itself. Beside another thread each round trip
 * takes either microseconds or a time slice, as the scheduler likes.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "congest.h"
#include "counters.h"
#include "crowd.h"
#include "tap.h"

enum {
	BYTES		= 2048,		/* more than the smallest SO_RCVBUF */
	TRIP_BYTES	= 64,
	TRIPS		= 101,		/* odd */
	TOGGLES		= 41,		/* odd */
	FACTOR		= 20,
	FACTOR_TOGGLED	= 2,
	TRIES		= 5,
	LIMIT_MS	= 60000,
};

static const char data[BYTES];

static int by_size(const void *a, const void *b)
{
	const long long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static long long now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000LL + ts.tv_nsec / 1000;
}

static void more_files(void)
{
	struct rlimit files = { CROWD_PORTS + 256, CROWD_PORTS + 256 };

	must(setrlimit(RLIMIT_NOFILE, &files));
}

/* On the first processor, or on all others */
static void place(bool first)
{
	int nr = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	if (nr < 2)
		return;
	CPU_ZERO(&set);
	for (int i = first ? 0 : 1; i < (first ? 1 : nr); i++)
		CPU_SET(i, &set);
	must(sched_setaffinity(0, sizeof(set), &set));
}

/* --------------------------------------------------------------- receivers */

void crowd_listen(const char *host, u16 port, int nr, int *fds)
{
	more_files();
	for (int i = 0; i <= nr; i++) {
		fds[i] = rds_bound_to(host, port + i, NULL);
		rds_set_int(fds[i], SOL_SOCKET, SO_RCVBUF, 1);
	}
}

void crowd_read(int nr, const int *fds)
{
	struct pollfd ready[] = {
		{ .fd = fds[0], .events = POLLIN },
		{ .fd = fds[nr], .events = POLLIN },
	};

	place(false);
	for (;;) {
		must(poll(ready, ARRAY_SIZE(ready), -1));
		for (size_t i = 0; i < ARRAY_SIZE(ready); i++)
			if (ready[i].revents)
				drain(ready[i].fd);
	}
}

/* ----------------------------------------------------------------- waiters */

static union addr crowd_port(const struct crowd *c, int number)
{
	union addr to = c->to;

	addr_set_port(&to, addr_port(&c->to) + number);
	return to;
}

static void refuse_all(struct crowd *c)
{
	int first = rds_bound_to(c->local, 0, NULL);
	union addr to;

	more_files();
	for (int i = 0; i < c->ports; i++) {
		to = crowd_port(c, i);
		must(rds_send(first, data, BYTES, 0, &to));
	}
	must_wait(rds_all_acked, &first, LIMIT_MS);
	for (int s = 0; s < c->senders; s++)
		c->fds[s] = rds_bound_to(c->local, 0, NULL);
	for (int i = 0; i < c->ports; i++) {
		to = crowd_port(c, i);
		/* news of its congestion may come behind the acknowledgment */
		if (i == 0 || i == c->ports - 1)
			send_until(first, &to, 1, ENOBUFS, LIMIT_MS);
		for (int s = 0; s < c->senders; s++)
			if (rds_send(c->fds[s], data, 1, MSG_DONTWAIT, &to) >= 0 ||
			    errno != ENOBUFS)
				tap_fail("sender %d to %s: %s", s,
					 addr_text(&to), tap_errno_name(errno));
	}
	/* it was refused as well */
	must(close(first));
}

/* ---------------------------------------------------------------- bystander */

static long long trip_us(struct crowd *c)
{
	long long start = now_us();
	char back[TRIP_BYTES];

	check_ret(rds_send(c->by_tx, data, TRIP_BYTES, 0, &c->by_to),
		  TRIP_BYTES);
	if (rds_recv_within(c->by_rx, back, sizeof(back), LIMIT_MS, NULL) < 0)
		tap_fail("bystander: %s", tap_errno_name(errno));
	return now_us() - start;
}

static long long median_us(struct crowd *c)
{
	long long us[TRIPS];

	trip_us(c);
	for (int i = 0; i < TRIPS; i++)
		us[i] = trip_us(c);
	qsort(us, TRIPS, sizeof(us[0]), by_size);
	return us[TRIPS / 2];
}

/* Each message congests the port, and waits until the one before was read. */
static void *toggle(void *arg)
{
	struct crowd *c = arg;
	int fd = rds_bound_to(c->local, 0, NULL);

	place(false);
	rds_timeout(fd, SO_SNDTIMEO, tap_ms(LIMIT_MS));
	while (c->toggles < TOGGLES) {
		must(rds_send(fd, data, BYTES, 0, &c->toggled));
		WRITE_ONCE(c->toggles, c->toggles + 1);
	}
	must(close(fd));
	return NULL;
}

/* The median of the longest round trips, with a port toggling */
static long long toggled_us(struct crowd *c, int number)
{
	long long longest[TOGGLES] = { 0 }, us;
	pthread_t thread;
	int n = 0, now;

	c->toggled = crowd_port(c, number);
	c->toggles = 0;
	if (pthread_create(&thread, NULL, toggle, c))
		tap_fail("no thread");
	while (n < TOGGLES) {
		us = trip_us(c);
		now = READ_ONCE(c->toggles);
		for (; n <= now && n < TOGGLES; n++)
			if (us > longest[n])
				longest[n] = us;
		n = now;
	}
	pthread_join(thread, NULL);
	qsort(longest, TOGGLES, sizeof(longest[0]), by_size);
	return longest[TOGGLES / 2];
}

/* -1 if there is no such counter */
static long long woken(void)
{
	struct counters all = counters_read();
	long long value = counters_get(&all, "cong_woken");

	counters_free(&all);
	return value;
}

static bool all_woken(void *arg)
{
	struct crowd *c = arg;

	for (int s = 0; s < c->senders; s++)
		if (!poll_one(c->fds[s], POLLOUT, 0))
			return false;
	return true;
}

/* Whether the bystander is as fast beside the crowd's port as beside another */
static bool as_fast(struct crowd *c, long long alone)
{
	long long before = toggled_us(c, c->ports);
	long long beside = toggled_us(c, 0);
	long long after = toggled_us(c, c->ports);
	long long other = before > after ? before : after;

	tap_diag("a round trip takes %lld us, %lld us with a port that toggles",
		 alone, beside);
	tap_diag("%lld us and %lld us with one that nobody waits for", before,
		 after);
	return beside <= FACTOR * alone || beside <= FACTOR_TOGGLED * other;
}

void crowd_check(struct crowd *c, void (*release)(struct crowd *c))
{
	long long alone, before, after;
	int tries = 0;

	refuse_all(c);
	tap_diag("%d waiters", c->ports * c->senders);
	alone = median_us(c);
	check(!poll_one(c->fds[0], POLLOUT, 0));
	before = woken();
	release(c);
	must_wait(all_woken, c, LIMIT_MS);
	after = woken();
	place(true);
	while (!as_fast(c, alone))
		if (++tries == TRIES)
			tap_fail("it is slower in each of %d tries", TRIES);
	if (before < 0)
		tap_fail("no counter cong_woken");
	tap_diag("%lld waiters were looked at, %d wait for the port",
		 after - before, c->senders);
	check_eq(after - before, c->senders);
}
