// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_edges LOCAL REMOTE STEPS
 *
 * Edge-triggered epoll against a model, as test_edges, with the other sockets
 * at another node: the same program runs there. Each side sends at random,
 * reads at random and asks for events at random. From time to time both stop
 * and tell each other how much they have sent. From then on a socket is read
 * only if epoll has said that there is something since it was empty last. All
 * must be read in the end, and who was refused told of space: else an edge is
 * lost. Says "bound", begins at SIGUSR1, when the other side is bound, too; its
 * exit status is the verdict.
 */
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "pattern.h"
#include "sock.h"
#include "tap.h"

enum {
	PORT		= 4300,		/* of the reports; the sockets' follow */
	NR		= 4,
	MAX_BYTES	= 9000,
	SPACE		= 24 * 1024,
	BATCH		= 16,
	SETTLE_EVERY	= 200,		/* steps */
	LIMIT_MS	= 60000,
};

struct side {
	int fd;
	union addr peer;	/* the socket of this number there */
	bool empty;		/* found so, and not told of input since */
	u64 got;		/* messages */
	u64 sent;		/* to the socket of this number there */
	bool refused;		/* must be told of space */
	int to;			/* by this one */
};

struct report {
	u64 round;
	u64 sent[NR];
};

static struct side sides[NR];
static struct prng dice;
static int ep, reports;
static union addr reports_to;
static char data[MAX_BYTES];
static long refusals, told;

static void note_events(int ms)
{
	struct epoll_event events[NR];
	int n = must(epoll_wait(ep, events, NR, ms));

	for (int i = 0; i < n; i++) {
		struct side *s = &sides[events[i].data.u32];

		told++;
		if (events[i].events & EPOLLIN)
			s->empty = false;
		if (events[i].events & EPOLLOUT)
			s->refused = false;
	}
}

static void send_some(struct side *s)
{
	int to = prng_below(&dice, NR), n = prng_below(&dice, BATCH);

	while (n--) {
		if (rds_send(s->fd, data, prng_below(&dice, MAX_BYTES),
			     MSG_DONTWAIT, &sides[to].peer) >= 0) {
			sides[to].sent++;
			if (s->to == to)
				s->refused = false;
			continue;
		}
		if (errno != EAGAIN && errno != ENOBUFS)
			tap_fail("send: %s", tap_errno_name(errno));
		s->refused = true;
		s->to = to;
		refusals++;
		return;
	}
}

static void read_some(struct side *s, int most)
{
	while (most--) {
		if (rds_recv(s->fd, data, sizeof(data), MSG_DONTWAIT,
			     NULL) < 0) {
			s->empty = true;
			return;
		}
		s->got++;
	}
}

/* Tell the other side, and hear how far it is */
static struct report exchange(u64 round)
{
	struct report mine = { .round = round }, theirs;

	for (int i = 0; i < NR; i++)
		mine.sent[i] = sides[i].sent;
	must(rds_send(reports, &mine, sizeof(mine), 0, &reports_to));
	if (rds_recv_within(reports, &theirs, sizeof(theirs), LIMIT_MS,
			    NULL) != sizeof(theirs) || theirs.round != round)
		tap_fail("no report of round %llu", round);
	return theirs;
}

static void settle(u64 round)
{
	struct report all = exchange(2 * round);
	long long end = tap_now_ms() + tap_ms(LIMIT_MS);
	bool open;

	do {
		for (int i = 0; i < NR; i++)
			if (!sides[i].empty)
				read_some(&sides[i], INT_MAX);
		note_events(1);
		open = false;
		for (int i = 0; i < NR; i++)
			open |= sides[i].got < all.sent[i] || sides[i].refused;
	} while (open && tap_now_ms() < end);

	for (int i = 0; i < NR; i++) {
		if (sides[i].got < all.sent[i])
			tap_fail("socket %d was not told of input: poll says %#x",
				 i, poll_one(sides[i].fd, POLLIN | POLLOUT, 0));
		check_eq(sides[i].got, all.sent[i]);
		if (sides[i].refused)
			tap_fail("socket %d was not told of space toward %d",
				 i, sides[i].to);
	}
	/* nobody sends before the other side has seen this, too */
	exchange(2 * round + 1);
}

static void step(void)
{
	struct side *s = &sides[prng_below(&dice, NR)];

	switch (prng_below(&dice, 8)) {
	case 0 ... 3:
		send_some(s);
		break;
	case 4 ... 5:
		read_some(s, prng_below(&dice, BATCH));
		break;
	default:
		note_events(prng_below(&dice, 2));
	}
}

static void open_all(const char *local, const char *remote)
{
	reports = rds_bound_to(local, PORT, NULL);
	reports_to = addr_of(remote, PORT);
	ep = must(epoll_create1(EPOLL_CLOEXEC));
	for (int i = 0; i < NR; i++) {
		struct epoll_event event = {
			.events = EPOLLIN | EPOLLOUT | EPOLLET,
			.data.u32 = i,
		};

		sides[i].fd = rds_bound_to(local, PORT + 1 + i, NULL);
		sides[i].peer = addr_of(remote, PORT + 1 + i);
		sides[i].empty = true;
		rds_set_int(sides[i].fd, SOL_SOCKET, SO_SNDBUF, SPACE);
		rds_set_int(sides[i].fd, SOL_SOCKET, SO_RCVBUF, SPACE);
		must(epoll_ctl(ep, EPOLL_CTL_ADD, sides[i].fd, &event));
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
	dice.state = (u64)tap_now_ms() ^ (u64)getpid() << 32;
	tap_context("seed %llu", dice.state);
	open_all(argv[1], argv[2]);
	sigwait(&set, &sig);
	for (u64 i = 1; i <= steps; i++) {
		step();
		if (i % SETTLE_EVERY == 0)
			settle(round++);
	}
	settle(round);
	printf("%ld events, %ld refusals, %llu rounds\n", told, refusals,
	       round);
	check(refusals > 0);
	fflush(stdout);
	tap_child_exit();
}
