// SPDX-License-Identifier: GPL-2.0-only
/*
 * Edge-triggered epoll against a model (harness/edges.h): no edge is lost in
 * any sequence of calls.
 *
 * The sockets send to each other, so the model knows of input as well: a socket
 * must be told of it when something came since it was told last and since it
 * has read all there was. When all sockets that were told of input have read
 * it, all others must be told.
 *
 * timeout: 300
 */
#include <limits.h>

#include "edges.h"
#include "tap.h"

enum {
	STEPS		= 20000,
};

static long looks;

static void send_some(struct edges_socket *s)
{
	int to = edges_send(s);

	if (to >= 0)
		edges[to].input = true;
}

static void read_some(struct edges_socket *s, int most)
{
	edges_read(s, most);
	if (s->got == s->sent)
		s->input = false;
}

static void read_all(int number)
{
	read_some(&edges[number], INT_MAX);
}

static bool waits(int number)
{
	return edges[number].input;
}

static void settle(void)
{
	looks += edges_settle(waits, read_all, WAIT_MS);
}

static void step(void)
{
	struct edges_socket *s =
		&edges[prng_below(&edges_dice, EDGES_SOCKETS)];

	switch (prng_below(&edges_dice, 8)) {
	case 0 ... 3:
		send_some(s);
		break;
	case 4 ... 5:
		read_some(s, prng_below(&edges_dice, EDGES_BATCH));
		break;
	case 6:
		edges_look(0);
		break;
	default:
		if (!prng_below(&edges_dice, 8))
			settle();
	}
}

static void no_edge_lost(void)
{
	edges_begin();
	for (int i = 0; i < EDGES_SOCKETS; i++) {
		union addr self;
		int fd = rds_bound(&self);

		edges_add(i, fd, &self);
	}
	for (int i = 0; i < tap_count(STEPS); i++)
		step();
	settle();
	for (int i = 0; i < EDGES_SOCKETS; i++) {
		read_all(i);
		check_eq(edges[i].got, edges[i].sent);
	}
	tap_diag("%lld events, %lld refusals, %ld looks", edges_told,
		 edges_refusals, looks);
	check(edges_refusals > tap_count(STEPS) / 100);
	edges_end();
}

static const struct tap_case cases[] = {
	{ "no_edge_lost", "no edge of input or space is lost", no_edge_lost,
	  TAP_EACH_FAMILY, 120 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
