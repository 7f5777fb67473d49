// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of congestion of one port costs those who wait for it, and nobody who
 * waits for another one. Over the wire: rxe/waiters.
 *
 * timeout: 300
 * memory: 1024
 */
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "congest.h"
#include "crowd.h"
#include "sock.h"
#include "tap.h"
#include "turns.h"

enum {
	PORT		= 10000,
	PORTS		= 8000,
	SENDERS		= 13,
	MEMORY_KB	= 900 << 10,
	CONNS		= 6000,		/* connections to one port */
	SLOWER		= 3,		/* so many times */
	TURNS		= 3,		/* of each kind, by turns */
	LIMIT_MS	= 60000,
	THREADS		= 8,
	EACH		= 3000,		/* messages */
	ROUNDS		= 5,
	FEW		= 100,
	FEW_FACTOR	= 8,
	TRIES		= 5,
};

static int sinks[PORTS + 1];

static void *reader(void *arg)
{
	const struct crowd *c = arg;

	crowd_read(c->ports, sinks);
}

static void release(struct crowd *c)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, reader, c))
		tap_fail("no thread");
}

static void one_port(void)
{
	static struct crowd c;

	knob("net/xrds/max_memory_kb", MEMORY_KB);
	knob("net/xrds/max_recv_kb", MEMORY_KB);
	c.local = tap_host;
	c.to = addr_of(tap_host, PORT);
	c.ports = tap_count(PORTS);
	c.senders = SENDERS;
	c.by_rx = rds_bound(&c.by_to);
	c.by_tx = rds_bound(NULL);
	crowd_listen(tap_host, PORT, c.ports, sinks);
	crowd_check(&c, release);
}

/* --------------------------------------------- each over its own connection */

static int senders[CONNS];

static int all_conns(void)
{
	struct rlimit files = { CONNS + 256, CONNS + 256 };

	must(setrlimit(RLIMIT_NOFILE, &files));
	return tap_count(CONNS);
}

/* Senders with an address each, so with a connection each */
static void senders_open(int nr, const union addr *to)
{
	char host[32];

	for (int i = 0; i < nr; i++) {
		snprintf(host, sizeof(host), "127.1.%d.%d", i >> 8, i & 255);
		senders[i] = rds_bound_to(host, 0, NULL);
		must(rds_send(senders[i], "x", 1, 0, to));
	}
	for (int i = 0; i < nr; i++)
		must_wait(rds_all_acked, &senders[i], LIMIT_MS);
}

/* Closes them, the last or the first one first. */
static void senders_close(int nr, bool last)
{
	for (int i = 0; i < nr; i++)
		must(close(senders[last ? nr - 1 - i : i]));
}

static void in_any_order(void)
{
	long long start, first = LLONG_MAX, last = LLONG_MAX;
	int nr = all_conns();
	union addr to;
	int rx = rds_bound(&to);

	/* the fastest ones are compared: a busy host only ever makes one slower */
	for (int i = 0; i < 2 * TURNS; i++) {
		long long *best = i % 2 ? &first : &last;

		senders_open(nr, &to);
		start = tap_now_ms();
		senders_close(nr, best == &last);
		if (tap_now_ms() - start < *best)
			*best = tap_now_ms() - start;
		drain(rx);
	}
	tap_diag("%d sockets: %lld ms, %lld ms in the order of their age", nr, last,
		 first);
	check(first <= SLOWER * last);
	close(rx);
}

/* All of them are refused, and all are woken. */
static void all_woken(void)
{
	int nr = all_conns(), rx;
	union addr to;

	rx = rds_bound(&to);
	senders_open(nr, &to);
	drain(rx);
	rds_set_int(rx, SOL_SOCKET, SO_RCVBUF, 1);
	congest(senders[0], &to);
	for (int i = 1; i < nr; i++)
		check_err(rds_send(senders[i], "x", 1, MSG_DONTWAIT, &to),
			  ENOBUFS);
	check(!poll_one(senders[nr - 1], POLLOUT, 0));
	drain(rx);
	for (int i = 0; i < nr; i++)
		check_eq(poll_one(senders[i], POLLOUT, tap_ms(LIMIT_MS)), POLLOUT);
	senders_close(nr, false);
	close(rx);
}

/* ----------------------------------------------------- the reader's own work */

/* Of this thread: the work that wakes the rest may take its processor. */
static long long cpu_us(void)
{
	struct timespec ts;

	must(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts));
	return ts.tv_sec * 1000000LL + ts.tv_nsec / 1000;
}

/* How long reading takes that wakes so many, at best */
static long long read_us(int rx, int nr, const union addr *to)
{
	long long best = LIMIT_MS * 1000LL, us;

	for (int round = 0; round < ROUNDS; round++) {
		congest(senders[0], to);
		for (int i = 1; i < nr; i++)
			check_err(rds_send(senders[i], "x", 1, MSG_DONTWAIT, to),
				  ENOBUFS);
		us = cpu_us();
		drain(rx);
		us = cpu_us() - us;
		if (us < best)
			best = us;
		for (int i = 0; i < nr; i++)
			check_eq(poll_one(senders[i], POLLOUT,
					  tap_ms(LIMIT_MS)), POLLOUT);
	}
	return best;
}

/* A reader does not wake everybody itself. */
static void reader_goes_on(void)
{
	int nr = all_conns(), rx;
	long long few = 0, many = 0;
	union addr to;

	rx = rds_bound(&to);
	rds_set_int(rx, SOL_SOCKET, SO_RCVBUF, 1);
	for (int i = 0; i < nr; i++)
		senders[i] = rds_bound(NULL);
	/* the kernel may have other things to do on this processor, for a while */
	for (int i = 0; i < TRIES; i++) {
		few = read_us(rx, FEW, &to);
		many = read_us(rx, nr, &to);
		tap_diag("reading takes %lld us with %d waiters, %lld us with %d",
			 few, FEW, many, nr);
		if (many <= FEW_FACTOR * few)
			break;
	}
	check(many <= FEW_FACTOR * few);
	senders_close(nr, false);
	close(rx);
}

/* ------------------------------------------------------- one port for many */

static union addr crowded;

/* Sends, and waits for room again and again. */
static void *sends(void *arg)
{
	int number = (int)(long)arg, fd;
	char host[32];

	snprintf(host, sizeof(host), "127.2.0.%d", number + 1);
	fd = rds_bound_to(host, 0, NULL);
	rds_timeout(fd, SO_SNDTIMEO, tap_ms(WAIT_MS));
	for (int i = tap_count(EACH); i; i--)
		check_ret(rds_send(fd, "x", 1, 0, &crowded), 1);
	must(close(fd));
	return NULL;
}

/* The port is full with each message, and clear when it is read: with that others
 * fill it at once. Nobody is forgotten.
 */
static void all_get_in(void)
{
	int rx = rds_bound(&crowded), nr = tap_count(EACH) * THREADS;
	pthread_t threads[THREADS];
	char byte;

	rds_set_int(rx, SOL_SOCKET, SO_RCVBUF, 1);
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, sends, (void *)i))
			tap_fail("no thread");
	while (nr--)
		check_ret(rds_recv_within(rx, &byte, 1, WAIT_MS, NULL), 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	close(rx);
}

static const struct tap_case cases[] = {
	{ "one_port", "a port that clears costs its own waiters, of 100,000",
	  one_port, 0, 240 },
	{ "reader_goes_on", "the rest is woken behind the reader's back",
	  reader_goes_on, 0, 120 },
	{ "in_any_order", "senders with connections of their own end alike",
	  in_any_order, 0, 120 },
	{ "all_woken", "and are all woken when the port clears", all_woken, 0,
	  120 },
	{ "all_get_in", "senders at a port that is full all the time get in",
	  all_get_in, 0, 120 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
