// SPDX-License-Identifier: GPL-2.0-only
/*
 * Time in which the node ran, for upper bounds.
 */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"
#include "turns.h"
#include "types.h"

enum {
	TURN_MS		= 10,
	KEPT		= 1 << 14,	/* turns, the latest ones */
};

struct processor {
	int number;
	unsigned long nr;		/* turns so far */
	long long ended_ms[KEPT];
};

static struct processor *processors[CPU_SETSIZE];
static int nr_processors;
static pid_t owner;		/* of the threads */

static void *turns_thread(void *arg)
{
	const struct timespec turn = { .tv_nsec = TURN_MS * 1000000 };
	struct processor *p = arg;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(p->number, &one);
	must(sched_setaffinity(0, sizeof(one), &one));
	for (;;) {
		nanosleep(&turn, NULL);
		WRITE_ONCE(p->ended_ms[p->nr % KEPT], tap_now_ms());
		WRITE_ONCE(p->nr, p->nr + 1);
	}
	return NULL;
}

static void begin_on(int number)
{
	struct processor *p = calloc(1, sizeof(*p));
	pthread_t thread;

	p->number = number;
	processors[nr_processors++] = p;
	errno = pthread_create(&thread, NULL, turns_thread, p);
	if (errno)
		tap_fail("pthread_create: %s", tap_errno_name(errno));
}

void turns_begin(void)
{
	sigset_t all, before;
	cpu_set_t ours;

	if (owner == getpid())
		return;
	owner = getpid();
	nr_processors = 0;
	must(sched_getaffinity(0, sizeof(ours), &ours));
	/* signals are for the threads of the test */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &ours))
			begin_on(i);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static long long turns_of(const struct processor *p, long long since_ms)
{
	unsigned long nr = READ_ONCE(p->nr), n = 0;

	while (n < nr && n < KEPT - 1 &&
	       READ_ONCE(p->ended_ms[(nr - n - 1) % KEPT]) > since_ms)
		n++;
	return n * TURN_MS;
}

long long turns_since(long long since_ms)
{
	long long fewest = turns_of(processors[0], since_ms), turns;

	for (int i = 1; i < nr_processors; i++) {
		turns = turns_of(processors[i], since_ms);
		if (turns < fewest)
			fewest = turns;
	}
	return fewest;
}

void turns_check(long long since_ms, long long min_ms, long long max_ms,
		 const struct tap_where *where)
{
	tap_check_range(tap_now_ms() - since_ms, min_ms, LLONG_MAX, where);
	tap_check_range(turns_since(since_ms), 0, max_ms, where);
}
