// SPDX-License-Identifier: GPL-2.0-only
/*
 * poll() and epoll: events that are reported, events that are not, and the
 * number of wake-ups of a sleeper.
 *
 * timeout: 180
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "congest.h"
#include "sock.h"
#include "tap.h"
#include "waker.h"

enum {
	CHUNK		= 4096,
	SPACE		= 64 * 1024,
	QUIET_MS	= 300,		/* long enough for a wrong event */
	SPIN_MS		= 2000,
	CALLS_PER_S	= 10,
	TRAFFIC		= 500,
};

static char chunk[CHUNK];

/* Sends until refused; the error */
static int fill(int fd, const union addr *to)
{
	while (rds_send(fd, chunk, CHUNK, MSG_DONTWAIT, to) > 0)
		;
	return errno;
}

/* -------------------------------------------------------------------- in */

static void input(void)
{
	union addr self;
	int fd = rds_bound(&self);
	char byte;

	check_eq(poll_one(fd, POLLIN | POLLRDNORM, 0), 0);
	must(rds_send(fd, "x", 1, 0, &self));
	check_eq(poll_one(fd, POLLIN | POLLRDNORM, tap_ms(WAIT_MS)),
		 POLLIN | POLLRDNORM);
	/* level: as long as it is there */
	check_eq(poll_one(fd, POLLIN | POLLRDNORM, 0), POLLIN | POLLRDNORM);
	must(rds_recv(fd, &byte, 1, MSG_DONTWAIT, NULL));
	check_eq(poll_one(fd, POLLIN | POLLRDNORM, 0), 0);
	close(fd);
}

static void input_empty(void)
{
	union addr self;
	int fd = rds_bound(&self);
	char byte;

	must(rds_send(fd, NULL, 0, 0, &self));
	check_eq(poll_one(fd, POLLIN, tap_ms(WAIT_MS)), POLLIN);
	check_ret(rds_recv(fd, &byte, 1, MSG_DONTWAIT, NULL), 0);
	check_eq(poll_one(fd, POLLIN, 0), 0);
	close(fd);
}

static void input_wakes(void)
{
	int fd = rds_bound(NULL), tx = rds_bound(NULL);
	union addr to = rds_self(fd);
	struct waker w;

	waker_start(&w, fd, POLLIN);
	must(rds_send(tx, "x", 1, 0, &to));
	pthread_join(w.thread, NULL);
	check_eq(w.seen, POLLIN);
	close(fd);
	close(tx);
}

static void fresh(void)
{
	int fd = rds_socket();

	check_eq(poll_one(fd, POLLIN | POLLRDHUP | POLLPRI, 0), 0);
	close(fd);
	fd = rds_bound(NULL);
	check_eq(poll_one(fd, POLLIN | POLLOUT | POLLRDHUP | POLLPRI, 0),
		 POLLOUT);
	close(fd);
}

/* ------------------------------------------------------------------- out */

static void output_full(void)
{
	int fd = rds_bound(NULL), rx;
	union addr to;

	rx = rds_bound(&to);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	stall_loop();
	check_eq(fill(fd, &to), EAGAIN);
	check_eq(poll_one(fd, POLLOUT | POLLWRNORM, QUIET_MS), 0);
	knob("net/xrds/loop/delay_ms", 0);
	check_eq(poll_one(fd, POLLOUT | POLLWRNORM, tap_ms(WAIT_MS)),
		 POLLOUT | POLLWRNORM);
	check_ret(rds_send(fd, chunk, CHUNK, MSG_DONTWAIT, &to), CHUNK);
	close(fd);
	close(rx);
}

static void output_congested(void)
{
	int fd = rds_bound(NULL), rx;
	union addr to;

	rx = small_receiver(&to);
	congest(fd, &to);
	check_eq(poll_one(fd, POLLOUT | POLLWRNORM, QUIET_MS), 0);
	check_eq(drain_until(rx, fd, POLLOUT), POLLOUT);
	check_ret(rds_send(fd, chunk, CHUNK, MSG_DONTWAIT, &to), CHUNK);
	close(fd);
	close(rx);
}

static void output_any_dest(void)
{
	int fd = rds_bound(NULL), full, live;
	union addr to_full, to_live;
	char byte;

	full = rds_bound(&to_full);
	live = rds_bound(&to_live);
	rds_set_int(full, SOL_SOCKET, SO_RCVBUF, SPACE);
	congest(fd, &to_full);
	/* the live one was never refused and goes on without being asked */
	check_ret(rds_send(fd, "x", 1, MSG_DONTWAIT, &to_live), 1);
	check_ret(rds_recv_within(live, &byte, 1, WAIT_MS, NULL), 1);
	check_eq(poll_one(fd, POLLOUT, QUIET_MS), 0);
	close(fd);
	close(full);
	close(live);
}

static void no_spin(void)
{
	int fd = rds_bound(NULL), rx, loops = 0;
	long long end, left;
	union addr to;

	rx = small_receiver(&to);
	congest(fd, &to);
	end = tap_now_ms() + SPIN_MS;
	for (; (left = end - tap_now_ms()) > 0; loops++) {
		if (!(poll_one(fd, POLLOUT, left) & POLLOUT))
			continue;
		if (rds_send(fd, chunk, CHUNK, MSG_DONTWAIT, &to) > 0)
			tap_fail("a congested destination took a message");
	}
	/* one poll(), and a send where it has reported something */
	check_range(loops, 1, SPIN_MS / 1000 * CALLS_PER_S / 2);
	close(fd);
	close(rx);
}

static void news_for_refused(void)
{
	int fd = rds_bound(NULL), rx;
	union addr to;

	rx = small_receiver(&to);
	congest(fd, &to);
	check_eq(drain_until(rx, fd, POLLIN | POLLWRBAND),
		 POLLIN | POLLWRBAND);
	/* the poll that reports it ends it */
	check_eq(poll_one(fd, POLLIN | POLLWRBAND, 0), 0);
	check_eq(poll_one(fd, POLLOUT, 0), POLLOUT);
	close(fd);
	close(rx);
}

/* A poll for something else does not take the news away */
static void news_kept(void)
{
	int fd = rds_bound(NULL), rx;
	union addr to;

	rx = small_receiver(&to);
	congest(fd, &to);
	check_eq(drain_until(rx, fd, POLLOUT), POLLOUT);
	check_eq(poll_one(fd, POLLRDHUP | POLLPRI, 0), 0);
	check_eq(poll_one(fd, POLLWRBAND, 0), POLLWRBAND);
	check_eq(poll_one(fd, POLLIN | POLLWRBAND, 0), 0);
	close(fd);
	close(rx);
}

/* --------------------------------------------------------------- wake-ups */

/* Traffic between two sockets, with congestion and its end in it */
static void traffic(void)
{
	int tx = rds_bound(NULL), rx;
	union addr to;

	rx = rds_bound(&to);
	rds_set_int(rx, SOL_SOCKET, SO_RCVBUF, SPACE / 4);
	for (int i = 0; i < TRAFFIC; i++) {
		if (rds_send(tx, chunk, CHUNK, MSG_DONTWAIT, &to) > 0)
			continue;
		drain(rx);
		poll_one(tx, POLLOUT, 50);
	}
	close(tx);
	close(rx);
}

static void idle_sleeps(void)
{
	int idle = rds_bound(NULL);
	struct waker w;
	long before;

	waker_start(&w, idle, POLLIN | POLLPRI | POLLRDHUP);
	before = waker_sleeps(&w);
	traffic();
	check_eq(waker_sleeps(&w), before);
	check_eq(w.returns, 0);
	waker_stop(&w);
	close(idle);
}

static void refused_sleeps(void)
{
	int fd = rds_bound(NULL), rx;
	struct waker w;
	union addr to;
	long before;

	/* refused by one destination; news about others are not for it */
	rx = small_receiver(&to);
	congest(fd, &to);
	waker_start(&w, fd, POLLIN | POLLOUT);
	before = waker_sleeps(&w);
	traffic();
	check_eq(waker_sleeps(&w), before);
	check_eq(w.returns, 0);
	waker_stop(&w);
	close(fd);
	close(rx);
}

/* ------------------------------------------------------------------ epoll */

static int epoll_on(int fd, unsigned int events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };
	int ep = must(epoll_create1(EPOLL_CLOEXEC));

	must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event));
	return ep;
}

/* The events of the one socket, 0 at the timeout */
static unsigned int epoll_one(int ep, int ms)
{
	struct epoll_event event = { 0 };

	return must(epoll_wait(ep, &event, 1, ms)) ? event.events : 0;
}

static void edge_input(void)
{
	union addr self;
	int fd = rds_bound(&self), ep = epoll_on(fd, EPOLLIN | EPOLLET);
	char byte;

	check_eq(epoll_one(ep, 0), 0);
	for (int i = 0; i < 5; i++) {
		must(rds_send(fd, "x", 1, 0, &self));
		/* each arrival is an edge, though nobody has read */
		check_eq(epoll_one(ep, tap_ms(WAIT_MS)), EPOLLIN);
		check_eq(epoll_one(ep, 0), 0);
	}
	for (int i = 0; i < 5; i++)
		check_ret(rds_recv(fd, &byte, 1, MSG_DONTWAIT, NULL), 1);
	check_eq(epoll_one(ep, 0), 0);
	close(ep);
	close(fd);
}

static void edge_output_full(void)
{
	int fd = rds_bound(NULL), rx, ep;
	union addr to;

	rx = rds_bound(&to);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	ep = epoll_on(fd, EPOLLOUT | EPOLLET);
	check_eq(epoll_one(ep, 0), EPOLLOUT);
	check_eq(epoll_one(ep, 0), 0);
	for (int round = 0; round < 3; round++) {
		tap_context("round %d", round);
		stall_loop();
		check_eq(fill(fd, &to), EAGAIN);
		check_eq(epoll_one(ep, 0), 0);
		knob("net/xrds/loop/delay_ms", 0);
		check_eq(epoll_one(ep, tap_ms(WAIT_MS)), EPOLLOUT);
		check_ret(rds_send(fd, "x", 1, MSG_DONTWAIT, &to), 1);
		must_wait(rds_all_acked, &fd, WAIT_MS);
		/* the rest of the space was no edge: nothing was refused */
		check_eq(epoll_one(ep, 0), 0);
		drain(rx);
	}
	close(ep);
	close(fd);
	close(rx);
}

static void edge_output_congested(void)
{
	int fd = rds_bound(NULL), rx, ep;
	unsigned int events;
	long long end;
	union addr to;

	rx = small_receiver(&to);
	ep = epoll_on(fd, EPOLLOUT | EPOLLET);
	check_eq(epoll_one(ep, 0), EPOLLOUT);
	for (int round = 0; round < 3; round++) {
		tap_context("round %d", round);
		congest(fd, &to);
		epoll_one(ep, 0);	/* of space, while it filled */
		events = 0;
		end = tap_now_ms() + tap_ms(WAIT_MS);
		while (!events && tap_now_ms() < end) {
			drain(rx);
			events = epoll_one(ep, 10);
		}
		check_eq(events, EPOLLOUT);
	}
	close(ep);
	close(fd);
	close(rx);
}

static void oneshot(void)
{
	union addr self;
	int fd = rds_bound(&self), ep = epoll_on(fd, EPOLLIN | EPOLLONESHOT);
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };

	must(rds_send(fd, "x", 1, 0, &self));
	check_eq(epoll_one(ep, tap_ms(WAIT_MS)), EPOLLIN);
	must(rds_send(fd, "x", 1, 0, &self));
	check_eq(epoll_one(ep, 50), 0);
	must(epoll_ctl(ep, EPOLL_CTL_MOD, fd, &event));
	check_eq(epoll_one(ep, tap_ms(WAIT_MS)), EPOLLIN);
	close(ep);
	close(fd);
}

/* ---------------------------------------------------------------- select */

enum { READABLE = 1, WRITABLE = 2, EXCEPTIONAL = 4 };

static int selected(int fd, int ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	fd_set in, out, other;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	out = in;
	other = in;
	must(select(fd + 1, &in, &out, &other, &tv));
	return (FD_ISSET(fd, &in) ? READABLE : 0) |
	       (FD_ISSET(fd, &out) ? WRITABLE : 0) |
	       (FD_ISSET(fd, &other) ? EXCEPTIONAL : 0);
}

/* The same events by their older names */
static void by_select(void)
{
	union addr to;
	int tx = rds_bound(NULL), rx = rds_bound(&to), what = 0;
	long long end;

	rds_set_int(rx, SOL_SOCKET, SO_RCVBUF, SPACE);
	check_eq(selected(tx, 0), WRITABLE);
	congest(tx, &to);
	check_eq(selected(tx, QUIET_MS), 0);
	check_eq(selected(rx, WAIT_MS), READABLE | WRITABLE);
	end = tap_now_ms() + tap_ms(WAIT_MS);
	while (!what && tap_now_ms() < end) {
		drain(rx);
		what = selected(tx, 10);
	}
	/* the first is news, and told once */
	check_eq(what, READABLE | WRITABLE);
	check_eq(selected(tx, 0), WRITABLE);
	close(tx);
	close(rx);
}

/* select() for writing alone */
static bool can_write(int fd, int ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	fd_set out;

	FD_ZERO(&out);
	FD_SET(fd, &out);
	return must(select(fd + 1, NULL, &out, NULL, &tv));
}

static void select_room(void)
{
	union addr to;
	int tx = rds_bound(NULL), rx = rds_bound(&to);

	rds_set_int(rx, SOL_SOCKET, SO_RCVBUF, SPACE);
	rds_set_int(tx, SOL_RDS, RDS_CONG_MONITOR, 1);
	congest(tx, &to);
	check_eq(drain_until(rx, tx, POLLOUT), POLLOUT);
	congest(tx, &to);
	/* the first end is still to be read, and is no room */
	check(!can_write(tx, QUIET_MS));
	check_eq(poll_one(tx, POLLIN | POLLWRBAND, 0), POLLIN | POLLWRBAND);
	check_eq(poll_one(tx, POLLOUT | POLLWRBAND, 0), POLLWRBAND);
	check_eq(drain_until(rx, tx, POLLOUT), POLLOUT);
	check(can_write(tx, 0));
	close(tx);
	close(rx);
}

static void select_keeps(void)
{
	union addr to;
	int tx = rds_bound(NULL), rx = rds_bound(&to);

	rds_set_int(rx, SOL_SOCKET, SO_RCVBUF, SPACE);
	congest(tx, &to);
	check_eq(drain_until(rx, tx, POLLOUT), POLLOUT);
	check(can_write(tx, 0));
	check_eq(poll_one(tx, POLLOUT | POLLWRBAND, 0), POLLOUT | POLLWRBAND);
	check_eq(poll_one(tx, POLLIN | POLLWRBAND, 0), 0);
	close(tx);
	close(rx);
}

static const struct tap_case cases[] = {
	{ "input", "a message is POLLIN|POLLRDNORM until it is read", input,
	  TAP_EACH_FAMILY, 0 },
	{ "input_empty", "an empty message is POLLIN too", input_empty, 0, 0 },
	{ "input_wakes", "a sleeping poll is woken by a message", input_wakes,
	  TAP_EACH_FAMILY, 0 },
	{ "fresh", "a new socket can send and has nothing to read", fresh,
	  0, 0 },
	{ "output_full", "a full destination takes POLLOUT away until acked",
	  output_full, TAP_EACH_FAMILY, 0 },
	{ "output_congested", "so does a congested one until it is drained",
	  output_congested, TAP_EACH_FAMILY, 0 },
	{ "output_any_dest", "sending elsewhere does not bring POLLOUT back",
	  output_any_dest, 0, 0 },
	{ "no_spin", "a poll and send loop sleeps while congested", no_spin,
	  0, 0 },
	{ "news_for_refused", "the end of congestion is POLLIN|POLLWRBAND once",
	  news_for_refused, TAP_EACH_FAMILY, 0 },
	{ "news_kept", "and not taken away by a poll for something else",
	  news_kept, 0, 0 },
	{ "idle_sleeps", "an idle socket is not woken by others' traffic",
	  idle_sleeps, TAP_EACH_FAMILY, 0 },
	{ "refused_sleeps", "a refused socket is woken by its destination only",
	  refused_sleeps, 0, 0 },
	{ "edge_input", "EPOLLET: each arrival is an edge", edge_input,
	  TAP_EACH_FAMILY, 0 },
	{ "edge_output_full", "EPOLLET: space after EAGAIN is an edge",
	  edge_output_full, TAP_EACH_FAMILY, 0 },
	{ "edge_output_congested", "EPOLLET: the end of congestion is an edge",
	  edge_output_congested, 0, 0 },
	{ "oneshot", "EPOLLONESHOT reports once", oneshot, 0, 0 },
	{ "select", "select() reports the same", by_select, 0, 0 },
	{ "select_room", "for writing it takes no news for room", select_room,
	  0, 0 },
	{ "select_keeps", "and leaves them to a poll that asks for them",
	  select_keeps, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
