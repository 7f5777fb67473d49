// SPDX-License-Identifier: GPL-2.0-only
/*
 * Edge-triggered epoll and events that are no messages: each event is an edge, also
 * while the one before has not been read.
 *
 * timeout: 120
 */
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "congest.h"
#include "rdma.h"
#include "sock.h"
#include "tap.h"

enum { BYTES = 64 };

static char data[BYTES];

/* Watches a socket on which nothing has happened yet. */
static int watch(int fd, u32 events)
{
	struct epoll_event ev = { .events = events | EPOLLET };
	int ep = must(epoll_create1(0));

	must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	check_eq(epoll_wait(ep, &ev, 1, 0), 0);
	return ep;
}

static void expect_edge(int ep, u32 events)
{
	struct epoll_event ev = {};

	check_eq(epoll_wait(ep, &ev, 1, tap_ms(WAIT_MS)), 1);
	check_eq(ev.events & events, events);
	/* one event may wake several times */
	while (epoll_wait(ep, &ev, 1, 0) == 1)
		;
}

static void marks(void)
{
	union addr to;
	int rx = rds_bound(&to), ep = watch(rx, EPOLLIN | EPOLLRDHUP), tx[2];

	for (int i = 0; i < 2; i++) {
		tx[i] = rds_bound(NULL);
		check_ret(rds_send(tx[i], data, BYTES, 0, &to), BYTES);
		expect_edge(ep, EPOLLIN);
	}
	for (int i = 0; i < 2; i++) {
		close(tx[i]);
		/* all streams have ended with the second */
		expect_edge(ep, i ? EPOLLIN | EPOLLRDHUP : EPOLLIN);
	}
	close(ep);
	close(rx);
}

static void barriers(void)
{
	int fd = rds_bound(NULL), ep = watch(fd, EPOLLIN | EPOLLRDBAND);
	struct xrds_barrier b;
	struct target t;

	target_open(&t, PAGE_BYTES, RDS_RDMA_READWRITE);
	for (u64 id = 1; id <= 3; id++) {
		struct op op = op_write(&t, 0, data, BYTES);

		hold_ops();
		must(op_send(fd, &t.addr, &op));
		check_err(barrier(fd, &t.addr, id, XRDS_BARRIER_NONBLOCK, 0,
				  &b), EAGAIN);
		release_ops();
		expect_edge(ep, EPOLLIN | EPOLLRDBAND);
	}
	target_close(&t);
	close(ep);
	close(fd);
}

static void cleared(void)
{
	int fd = rds_bound(NULL), ep, rx[2];
	union addr to[2];

	rds_set_int(fd, SOL_RDS, RDS_CONG_MONITOR, 1);
	for (int i = 0; i < 2; i++) {
		rx[i] = small_receiver(&to[i]);
		congest(fd, &to[i]);
	}
	ep = watch(fd, EPOLLIN | EPOLLWRBAND);
	for (int i = 0; i < 2; i++) {
		close(rx[i]);
		expect_edge(ep, EPOLLIN | EPOLLWRBAND);
	}
	close(ep);
	close(fd);
}

static void delivered(void)
{
	union addr to;
	int rx = rds_bound(&to), fd = rds_bound(NULL), ep;

	rds_set_int(fd, SOL_RDS, XRDS_DELIVERED_EVENT, 1);
	ep = watch(fd, EPOLLIN);
	stall_loop();
	check_ret(rds_send(fd, data, BYTES, 0, &to), BYTES);
	must(shutdown(fd, SHUT_WR));
	check_eq(poll_one(fd, POLLIN, 0), 0);
	knob("net/xrds/loop/delay_ms", 0);
	expect_edge(ep, EPOLLIN);
	close(ep);
	close(fd);
	close(rx);
}

static const struct tap_case cases[] = {
	{ "marks", "ends of streams", marks, TAP_EACH_FAMILY, 0 },
	{ "barriers", "armed barriers", barriers, TAP_EACH_FAMILY, 0 },
	{ "cleared", "destinations that are congested no more", cleared,
	  TAP_EACH_FAMILY, 0 },
	{ "delivered", "all is delivered", delivered, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
