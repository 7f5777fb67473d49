// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests with three nodes: one destination that makes no progress must not
 * slow down another.
 *
 *   helper_isolation sink LOCAL PORT		reads, and answers when asked to
 *   helper_isolation send LOCAL LIVE VICTIM PORT lost|kept
 *
 * The sender measures how fast its messages reach the live node: in turn while
 * the victim is healthy, while its space toward a victim that makes no progress
 * is full, and ("lost") once the connection to that was given up, too. It says
 * "break N" and "heal N", and waits for SIGUSR1 until that is done.
 *
 * The machine is shared, and at times slower than a moment ago. So each turn is
 * short, the states alternate, the same number of messages is sent in each, and
 * the fastest turns are compared: others of the machine only ever make a turn
 * slower, and a victim that takes something takes it in every turn. A turn is a
 * number of round trips, one more or less by chance: so it has more than thirty,
 * and a third of the turns is summed. If that is not clear, as many turns follow,
 * up to MOST, and all of them count.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"

enum {
	TURN		= 2000,		/* messages */
	TURNS		= 9,		/* in each state */
	MOST		= 3 * TURNS,
	COMPARED	= 3,		/* one of so many, the fastest */
	BYTES		= 1024,
	PERCENT		= 95,
	LIMIT_MS	= 60000,
	QUIET_MS	= 500,		/* nothing moves any more */
	POLL_MS		= 10,
	PLAIN		= 'p',		/* a message */
	ASKS		= 'a',		/* one that is answered */
};

static const char * const state_names[] = { "healthy", "full", "lost" };
enum { HEALTHY, FULL, LOST, NR_STATES };

struct sender {
	int fd;
	union addr live;
	union addr victim;
	int states;		/* HEALTHY up to this one, exclusive */
	int turns;		/* so far, in each state */
	long long ms[NR_STATES][MOST];
};

static char data[BYTES];

static void __noreturn sink(const char *local, int port)
{
	int fd = rds_bound_to(local, port, NULL);
	union addr from;

	printf("ready\n");
	fflush(stdout);
	for (;;) {
		check_ret(rds_recv(fd, data, BYTES, 0, &from), BYTES);
		if (data[0] == ASKS)
			check_ret(rds_send(fd, data, 1, 0, &from), 1);
	}
}

static void send_one(struct sender *s, char kind)
{
	data[0] = kind;
	check_ret(rds_send(s->fd, data, BYTES, 0, &s->live), BYTES);
}

/* One turn, until the live node has read all of it */
static long long turn(struct sender *s)
{
	long long start = tap_now_ms();

	for (int i = 1; i < TURN; i++)
		send_one(s, PLAIN);
	send_one(s, ASKS);
	check_ret(rds_recv_within(s->fd, data, 1, LIMIT_MS, NULL), 1);
	return tap_now_ms() - start;
}

static struct xrds_dest_status victim_status(struct sender *s)
{
	struct xrds_dest_status st;

	must(dest_status(s->fd, &s->victim, &st));
	return st;
}

static bool drained(void *arg)
{
	struct xrds_dest_status st = victim_status(arg);

	return !st.queued_msgs && st.state == XRDS_DEST_UP &&
	       !(st.flags & XRDS_DEST_CONGESTED);
}

static bool lost(void *arg)
{
	return victim_status(arg).state != XRDS_DEST_UP;
}

/* Does it refuse for good? A connection that will be lost makes no progress, which
 * cannot be told from a rest; a victim that is kept becomes congested.
 */
static bool full(const struct sender *s)
{
	bool kept = s->states <= LOST;

	if (kept && errno != ENOBUFS) {
		poll_one(s->fd, POLLOUT, POLL_MS);
		return false;
	}
	return !poll_one(s->fd, POLLOUT, QUIET_MS);
}

static void fill(struct sender *s)
{
	long long end = tap_now_ms() + tap_ms(LIMIT_MS);

	data[0] = PLAIN;
	do {
		while (rds_send(s->fd, data, BYTES, MSG_DONTWAIT,
				&s->victim) > 0)
			;
		if (errno != EAGAIN && errno != ENOBUFS)
			tap_fail("victim: %s", tap_errno_name(errno));
		if (tap_now_ms() > end)
			tap_fail("the victim goes on taking messages");
	} while (!full(s));
}

static void ask(const char *what, int number)
{
	sigset_t set;
	int sig;

	printf("%s %d\n", what, number);
	fflush(stdout);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &sig);
}

/* A turn in each state */
static void round_of_turns(struct sender *s)
{
	int number = s->turns++;

	must_wait(drained, s, LIMIT_MS);
	s->ms[HEALTHY][number] = turn(s);
	ask("break", number + 1);
	fill(s);
	s->ms[FULL][number] = turn(s);
	if (s->states > LOST) {
		must_wait(lost, s, LIMIT_MS);
		s->ms[LOST][number] = turn(s);
	}
	/* all the time it has been as full as it can be */
	check(rds_send(s->fd, data, BYTES, MSG_DONTWAIT, &s->victim) < 0);
	ask("heal", number + 1);
}

static int by_size(const void *a, const void *b)
{
	const long long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The time of the fastest turns, summed */
static long long fastest(struct sender *s, int state)
{
	long long sum = 0;

	qsort(s->ms[state], s->turns, sizeof(s->ms[state][0]), by_size);
	for (int i = 0; i < s->turns / COMPARED; i++)
		sum += s->ms[state][i];
	return sum;
}

/* The rate in this state, in per cent of that while the victim is healthy */
static long long percent(struct sender *s, int state)
{
	return fastest(s, HEALTHY) * 100 / fastest(s, state);
}

static bool clear(struct sender *s)
{
	for (int i = FULL; i < s->states; i++)
		if (percent(s, i) < PERCENT)
			return false;
	return true;
}

static void rounds(struct sender *s)
{
	for (int n = 0; n < TURNS; n++)
		round_of_turns(s);
}

static void send_all(struct sender *s)
{
	/* connections are up, caches are warm, sleepers have been made */
	data[0] = PLAIN;
	check_ret(rds_send(s->fd, data, BYTES, 0, &s->victim), BYTES);
	turn(s);
	do
		rounds(s);
	while (!clear(s) && s->turns < MOST);
	printf("%d turns, %s %lld/s", s->turns, state_names[HEALTHY],
	       s->turns / COMPARED * TURN * 1000LL / fastest(s, HEALTHY));
	for (int i = FULL; i < s->states; i++)
		printf(", %s %lld %% (%lld to %lld ms)", state_names[i],
		       percent(s, i), s->ms[i][0], s->ms[i][s->turns - 1]);
	check(clear(s));
	printf("\ndone\n");
}

int main(int argc, char **argv)
{
	struct sender s = { .states = LOST };
	sigset_t set;
	int port;

	if (argc == 4 && !strcmp(argv[1], "sink"))
		sink(argv[2], atoi(argv[3]));
	if (argc != 7 || strcmp(argv[1], "send"))
		tap_fail("usage: helper_isolation sink|send ...");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	port = atoi(argv[5]);
	s.fd = rds_bound_to(argv[2], 0, NULL);
	s.live = addr_of(argv[3], port);
	s.victim = addr_of(argv[4], port);
	if (!strcmp(argv[6], "lost"))
		s.states = NR_STATES;
	send_all(&s);
	tap_child_exit();
}
