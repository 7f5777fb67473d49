// SPDX-License-Identifier: GPL-2.0-only
/*
 * Edge-triggered epoll against a model: whatever a program does, no edge is
 * lost.
 *
 * A few sockets send to each other at random, read at random, and ask for
 * events at random. The model knows what each must be told: of input when
 * something came since it was told last and since it has read all there was; of
 * space when it was refused since and has not tried again with success. When
 * all who were told of input have read it, everybody else must be told.
 *
 * timeout: 300
 */
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <linux/sockios.h>
#include <unistd.h>

#include "pattern.h"
#include "sock.h"
#include "tap.h"

enum {
	NR		= 4,
	STEPS		= 20000,
	MAX_BYTES	= 9000,
	SPACE		= 24 * 1024,
	BATCH		= 16,
};

struct side {
	int fd;
	union addr self;
	bool in;	/* must be told of input */
	int unread;	/* messages for it, accepted and not read */
	bool refused;	/* must be told of space */
	int to;		/* by this one */
};

static struct side sides[NR];
static struct prng dice;
static int ep;
static char data[MAX_BYTES];
static long long told, refusals, waits;

static void note_events(int ms)
{
	struct epoll_event events[NR];
	int n = must(epoll_wait(ep, events, NR, ms));

	for (int i = 0; i < n; i++) {
		struct side *s = &sides[events[i].data.u32];

		told++;
		if (events[i].events & EPOLLIN)
			s->in = false;
		if (events[i].events & EPOLLOUT)
			s->refused = false;
	}
}

static void send_some(struct side *s)
{
	int to = prng_below(&dice, NR), n = prng_below(&dice, BATCH);
	size_t len;

	while (n--) {
		len = prng_below(&dice, MAX_BYTES);
		if (rds_send(s->fd, data, len, MSG_DONTWAIT,
			     &sides[to].self) >= 0) {
			sides[to].in = true;
			sides[to].unread++;
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
	while (most-- && rds_recv(s->fd, data, sizeof(data), MSG_DONTWAIT,
				  NULL) >= 0)
		s->unread--;
	if (!s->unread)
		s->in = false;
}

static int bytes(const struct side *s, unsigned long which)
{
	int n;

	must(ioctl(s->fd, which, &n));
	return n;
}

static void settle(void)
{
	long long end = tap_now_ms() + tap_ms(WAIT_MS);
	bool open;

	do {
		for (int i = 0; i < NR; i++) {
			if (!sides[i].in)
				read_some(&sides[i], INT_MAX);
		}
		note_events(1);
		waits++;
		open = false;
		for (int i = 0; i < NR; i++)
			open |= sides[i].in || sides[i].refused;
	} while (open && tap_now_ms() < end);

	for (int i = 0; i < NR; i++) {
		if (sides[i].in)
			tap_fail("socket %d was not told of input: %d bytes, poll says %#x",
				 i, bytes(&sides[i], SIOCINQ),
				 poll_one(sides[i].fd, POLLIN | POLLOUT, 0));
		if (sides[i].refused)
			tap_fail("socket %d was not told of space toward %d",
				 i, sides[i].to);
	}
}

static void edges(void)
{
	u64 seed = (u64)tap_now_ms() ^ (u64)getpid() << 32;

	dice.state = seed;
	tap_context("seed %llu", (unsigned long long)seed);
	ep = must(epoll_create1(EPOLL_CLOEXEC));
	for (int i = 0; i < NR; i++) {
		struct epoll_event event = {
			.events = EPOLLIN | EPOLLOUT | EPOLLET,
			.data.u32 = i,
		};

		memset(&sides[i], 0, sizeof(sides[i]));
		sides[i].fd = rds_bound(&sides[i].self);
		rds_set_int(sides[i].fd, SOL_SOCKET, SO_SNDBUF, SPACE);
		rds_set_int(sides[i].fd, SOL_SOCKET, SO_RCVBUF, SPACE);
		must(epoll_ctl(ep, EPOLL_CTL_ADD, sides[i].fd, &event));
	}
	for (int step = 0; step < tap_count(STEPS); step++) {
		struct side *s = &sides[prng_below(&dice, NR)];

		switch (prng_below(&dice, 8)) {
		case 0 ... 3:
			send_some(s);
			break;
		case 4 ... 5:
			read_some(s, prng_below(&dice, BATCH));
			break;
		case 6:
			note_events(0);
			break;
		default:
			if (!prng_below(&dice, 8))
				settle();
		}
	}
	settle();
	for (int i = 0; i < NR; i++) {
		read_some(&sides[i], INT_MAX);
		check_eq(sides[i].unread, 0);
	}
	tap_diag("%lld events, %lld refusals, %lld looks", told, refusals,
		 waits);
	check(refusals > tap_count(STEPS) / 100);
	for (int i = 0; i < NR; i++)
		close(sides[i].fd);
	close(ep);
}

static const struct tap_case cases[] = {
	{ "edges", "no edge of input or space is lost", edges,
	  TAP_EACH_FAMILY, 120 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
