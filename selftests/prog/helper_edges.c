// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_edges LOCAL REMOTE STEPS
 *
 * Edge-triggered epoll against a model (harness/edges.h), with the sockets that
 * messages go to at another node: the same program runs there. From time to
 * time both sides stop and tell each other how much they have sent. From then
 * on a socket is read only if epoll has said that there is something since it
 * was empty last. All must be read in the end, and each refused sender must be
 * told of space: else an edge is lost. Says "bound" and begins at SIGUSR1, when
 * the other side is bound, too; its exit status is the verdict.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "edges.h"
#include "tap.h"

enum {
	PORT		= 4300,		/* of the reports; the sockets' follow */
	SETTLE_EVERY	= 200,		/* steps */
	LIMIT_MS	= 60000,
};

struct report {
	u64 round;
	u64 sent[EDGES_SOCKETS];
};

static int reports;
static union addr reports_to;
static struct report theirs;

/* Tells the other side how much was sent, and hears the same of it */
static void exchange(u64 round)
{
	struct report mine = { .round = round };

	for (int i = 0; i < EDGES_SOCKETS; i++)
		mine.sent[i] = edges[i].sent;
	must(rds_send(reports, &mine, sizeof(mine), 0, &reports_to));
	if (rds_recv_within(reports, &theirs, sizeof(theirs), LIMIT_MS,
			    NULL) != sizeof(theirs) || theirs.round != round)
		tap_fail("no report of round %llu", round);
}

static void read_some(struct edges_socket *s, int most)
{
	if (edges_read(s, most))
		s->input = true;
}

static void read_all(int number)
{
	read_some(&edges[number], INT_MAX);
}

static bool waits(int number)
{
	return edges[number].got < theirs.sent[number];
}

static void settle(u64 round)
{
	exchange(2 * round);
	edges_settle(waits, read_all, LIMIT_MS);
	for (int i = 0; i < EDGES_SOCKETS; i++)
		check_eq(edges[i].got, theirs.sent[i]);
	/* nobody sends before the other side has seen this, too */
	exchange(2 * round + 1);
}

static void step(void)
{
	struct edges_socket *s =
		&edges[prng_below(&edges_dice, EDGES_SOCKETS)];

	switch (prng_below(&edges_dice, 8)) {
	case 0 ... 3:
		edges_send(s);
		break;
	case 4 ... 5:
		read_some(s, prng_below(&edges_dice, EDGES_BATCH));
		break;
	default:
		edges_look(prng_below(&edges_dice, 2));
	}
}

static void open_all(const char *local, const char *remote)
{
	reports = rds_bound_to(local, PORT, NULL);
	reports_to = addr_of(remote, PORT);
	edges_begin();
	for (int i = 0; i < EDGES_SOCKETS; i++) {
		union addr dest = addr_of(remote, PORT + 1 + i);

		edges_add(i, rds_bound_to(local, PORT + 1 + i, NULL), &dest);
		edges[i].input = true;
	}
	printf("bound\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	u64 steps, round = 0;
	sigset_t set;
	int sig;

	if (argc != 4)
		tap_fail("usage: helper_edges LOCAL REMOTE STEPS");
	steps = strtoull(argv[3], NULL, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	open_all(argv[1], argv[2]);
	sigwait(&set, &sig);
	for (u64 i = 1; i <= steps; i++) {
		step();
		if (i % SETTLE_EVERY == 0)
			settle(round++);
	}
	settle(round);
	printf("%lld events, %lld refusals, %llu rounds\n", edges_told,
	       edges_refusals, round);
	check(edges_refusals > 0);
	fflush(stdout);
	tap_child_exit();
}
