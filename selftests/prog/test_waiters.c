// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of congestion of one port costs those who wait for it, and nobody who
 * waits for another one. Over the wire: rxe/waiters.
 *
 * timeout: 300
 * memory: 1024
 */
#include <pthread.h>

#include "crowd.h"
#include "sock.h"
#include "tap.h"

enum {
	PORT		= 10000,
	PORTS		= 8000,
	SENDERS		= 13,
	MEMORY_KB	= 900 << 10,
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

static const struct tap_case cases[] = {
	{ "one_port", "a port that clears costs its own waiters, of 100,000",
	  one_port, 0, 240 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
