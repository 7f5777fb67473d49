// SPDX-License-Identifier: GPL-2.0-only
/*
 * Edge-triggered epoll against a model.
 */
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "edges.h"
#include "tap.h"

enum {
	MAX_BYTES	= 9000,
	SPACE		= 24 * 1024,
};

struct edges_socket edges[EDGES_SOCKETS];
struct prng edges_dice;
long long edges_told, edges_refusals;

static char data[MAX_BYTES];
static int ep;

void edges_begin(void)
{
	edges_dice.state = (u64)tap_now_ms() ^ (u64)getpid() << 32;
	tap_context("seed %llu", (unsigned long long)edges_dice.state);
	memset(edges, 0, sizeof(edges));
	ep = must(epoll_create1(EPOLL_CLOEXEC));
}

void edges_add(int number, int fd, const union addr *dest)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLOUT | EPOLLET,
		.data.u32 = number,
	};

	edges[number].fd = fd;
	edges[number].dest = *dest;
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	rds_set_int(fd, SOL_SOCKET, SO_RCVBUF, SPACE);
	must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event));
}

void edges_end(void)
{
	for (int i = 0; i < EDGES_SOCKETS; i++)
		close(edges[i].fd);
	close(ep);
}

void edges_look(int ms)
{
	struct epoll_event events[EDGES_SOCKETS];
	int n = must(epoll_wait(ep, events, EDGES_SOCKETS, ms));

	for (int i = 0; i < n; i++) {
		struct edges_socket *s = &edges[events[i].data.u32];

		edges_told++;
		if (events[i].events & EPOLLIN)
			s->input = false;
		if (events[i].events & EPOLLOUT)
			s->refused = false;
	}
}

int edges_send(struct edges_socket *s)
{
	int to = prng_below(&edges_dice, EDGES_SOCKETS);
	int n = prng_below(&edges_dice, EDGES_BATCH);
	u64 before = edges[to].sent;

	while (n--) {
		if (rds_send(s->fd, data, prng_below(&edges_dice, MAX_BYTES),
			     MSG_DONTWAIT, &edges[to].dest) >= 0) {
			edges[to].sent++;
			if (s->refuser == to)
				s->refused = false;
			continue;
		}
		if (errno != EAGAIN && errno != ENOBUFS)
			tap_fail("send: %s", tap_errno_name(errno));
		s->refused = true;
		s->refuser = to;
		edges_refusals++;
		break;
	}
	return edges[to].sent > before ? to : -1;
}

bool edges_read(struct edges_socket *s, int most)
{
	while (most--) {
		if (rds_recv(s->fd, data, sizeof(data), MSG_DONTWAIT,
			     NULL) < 0)
			return true;
		s->got++;
	}
	return false;
}

static void check_told(int number, bool input)
{
	const struct edges_socket *s = &edges[number];
	int bytes;

	must(ioctl(s->fd, SIOCINQ, &bytes));
	if (input)
		tap_fail("socket %d was not told of input: %d bytes, poll says %#x",
			 number, bytes,
			 poll_one(s->fd, POLLIN | POLLOUT, 0));
	if (s->refused)
		tap_fail("socket %d was not told of space toward %d", number,
			 s->refuser);
}

long edges_settle(bool (*waits)(int number), void (*read_all)(int number),
		  int ms)
{
	long long end = tap_now_ms() + tap_ms(ms);
	long looks = 0;
	bool open;

	do {
		for (int i = 0; i < EDGES_SOCKETS; i++)
			if (!edges[i].input)
				read_all(i);
		edges_look(1);
		looks++;
		open = false;
		for (int i = 0; i < EDGES_SOCKETS; i++)
			open |= waits(i) || edges[i].refused;
	} while (open && tap_now_ms() < end);

	for (int i = 0; i < EDGES_SOCKETS; i++)
		check_told(i, waits(i));
	return looks;
}
