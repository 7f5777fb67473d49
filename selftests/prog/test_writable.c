// SPDX-License-Identifier: GPL-2.0-only
/*
 * When a refused sender hears that it can send again, and that no call takes
 * the news away from another: a quarter of the space, SIGIO, and the news of
 * congestion under epoll_ctl().
 *
 * timeout: 120
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "congest.h"
#include "rdma.h"
#include "sigio.h"
#include "sock.h"
#include "tap.h"

enum {
	CHUNK		= 4096,
	CHUNKS		= 16,
	SPACE		= CHUNKS * CHUNK,
	AGE_MS		= 2000,		/* between the first messages and the rest */
	ROUNDS		= 5,
	NEWS		= EPOLLIN | EPOLLWRBAND,
};

static char chunk[CHUNK];

/* ------------------------------------------------------------------ space */

/* A sender whose destination is full, when its later messages were sent, and when
 * they begin to be acknowledged
 */
struct full {
	int tx;
	int rx;
	union addr to;
	int nr_old;
	long long since;
	long long until;
};

static void send_chunks(const struct full *f, int nr)
{
	for (int i = 0; i < nr; i++)
		check_ret(rds_send(f->tx, chunk, CHUNK, MSG_DONTWAIT, &f->to),
			  CHUNK);
}

/* Nothing is acknowledged, and @nr messages are much older than the rest */
static void begin_full(struct full *f, int nr)
{
	f->tx = rds_bound(NULL);
	f->rx = rds_bound(&f->to);
	rds_set_int(f->tx, SOL_SOCKET, SO_SNDBUF, SPACE);
	/* the connection is up, and nothing of its start waits */
	check_ret(rds_send(f->tx, "x", 1, 0, &f->to), 1);
	must_wait(rds_all_acked, &f->tx, WAIT_MS);
	stall_loop();
	f->nr_old = nr;
	send_chunks(f, nr);
	check_eq(poll_one(f->tx, POLLIN, AGE_MS), 0);
	f->since = tap_tick_ms();
	send_chunks(f, CHUNKS - nr);
	check_err(rds_send(f->tx, chunk, CHUNK, MSG_DONTWAIT, &f->to), EAGAIN);
}

/* From now on the old ones are acknowledged, and the rest later */
static void let_old_go(struct full *f)
{
	f->until = tap_now_ms() + AGE_MS / 2;
	knob("net/xrds/loop/delay_ms", f->until - f->since);
}

static bool old_gone(void *arg)
{
	const struct full *f = arg;

	return rds_outq(f->tx) <= SPACE - f->nr_old * CHUNK;
}

/* Only the old ones had gone when the caller looked. On a slow machine it may have
 * looked later: then this round says nothing, and there is another one.
 */
static bool in_time(const struct full *f)
{
	return tap_now_ms() < f->until;
}

static void end_full(struct full *f)
{
	knob("net/xrds/loop/delay_ms", 0);
	must_wait(rds_all_acked, &f->tx, WAIT_MS);
	close(f->tx);
	close(f->rx);
}

static void quarter(void)
{
	bool looked = false;
	struct full f;
	int seen, left;

	for (int i = 0; i < ROUNDS && !looked; i++) {
		tap_context("round %d", i);
		begin_full(&f, CHUNKS / 4);
		let_old_go(&f);
		seen = poll_one(f.tx, POLLOUT, tap_ms(WAIT_MS));
		left = rds_outq(f.tx);
		looked = in_time(&f);
		if (looked) {
			check_eq(seen, POLLOUT);
			check_eq(left, SPACE - SPACE / 4);
			check_ret(rds_send(f.tx, chunk, CHUNK, MSG_DONTWAIT,
					   &f.to), CHUNK);
		}
		end_full(&f);
	}
	check(looked);
}

/* Fewer have gone than POLLOUT takes, or than the message of @bytes that was
 * refused needs
 */
static void no_space_yet(int nr_old, size_t bytes)
{
	static char data[SPACE / 2];
	bool looked = false;
	struct full f;
	int seen, left;

	for (int i = 0; i < ROUNDS && !looked; i++) {
		tap_context("round %d", i);
		begin_full(&f, nr_old);
		check_err(rds_send(f.tx, data, bytes, MSG_DONTWAIT, &f.to),
			  EAGAIN);
		let_old_go(&f);
		must_wait(old_gone, &f, WAIT_MS);
		seen = poll_one(f.tx, POLLOUT, 0);
		left = rds_outq(f.tx);
		looked = in_time(&f);
		if (looked) {
			check_eq(seen, 0);
			check_eq(left, SPACE - nr_old * CHUNK);
		}
		check_eq(poll_one(f.tx, POLLOUT, tap_ms(WAIT_MS)), POLLOUT);
		check_ret(rds_send(f.tx, data, bytes, MSG_DONTWAIT, &f.to),
			  bytes);
		end_full(&f);
	}
	check(looked);
}

static void less(void)
{
	no_space_yet(CHUNKS / 4 - 1, CHUNK);
}

/* A quarter is free, and the message does not fit */
static void large_waits(void)
{
	no_space_yet(CHUNKS / 4, SPACE / 2);
}

/* ------------------------------------------------------------------ SIGIO */

static void sigio_space(void)
{
	int tx = rds_bound(NULL), rx;
	union addr to;
	sigset_t set;

	rx = rds_bound(&to);
	rds_set_int(tx, SOL_SOCKET, SO_SNDBUF, SPACE);
	sigio_start(tx, &set);
	stall_loop();
	while (rds_send(tx, chunk, CHUNK, MSG_DONTWAIT, &to) > 0)
		;
	check_eq(errno, EAGAIN);
	check_eq(sigio_reason(&set, tx, 0), 0);
	knob("net/xrds/loop/delay_ms", 0);
	check_eq(sigio_reason(&set, tx, tap_ms(WAIT_MS)), POLL_OUT);
	check_ret(rds_send(tx, chunk, CHUNK, MSG_DONTWAIT, &to), CHUNK);
	/* one for the refusal, and none for the other acknowledgments */
	must_wait(rds_all_acked, &tx, WAIT_MS);
	check_eq(sigio_reason(&set, tx, 0), 0);
	close(tx);
	close(rx);
}

static void sigio_congested(void)
{
	int tx = rds_bound(NULL), rx, got[2];
	union addr to;
	sigset_t set;

	rx = small_receiver(&to);
	congest(tx, &to);
	must_wait(rds_all_acked, &tx, WAIT_MS);
	sigio_start(tx, &set);
	check_eq(sigio_reason(&set, tx, 0), 0);
	drain(rx);
	/* space, and the news that congestion has ended */
	for (int i = 0; i < 2; i++)
		got[i] = sigio_reason(&set, tx, tap_ms(WAIT_MS));
	check_eq(got[0], POLL_OUT);
	check_eq(got[1], POLL_IN);
	check_eq(sigio_reason(&set, tx, 0), 0);
	close(tx);
	close(rx);
}

/* An op that asks for a notice, or for its identifier: then its end is an event. */
static void sigio_op(int flags, u64 *id)
{
	int fd = rds_bound(NULL);
	struct target target;
	struct op op;
	sigset_t set;

	target_open(&target, PAGE_BYTES, RDS_RDMA_READWRITE);
	sigio_start(fd, &set);
	op = op_write(&target, 0, chunk, 1);
	op_set(&op, flags, 0);
	op.id = id;
	check_ret(op_send(fd, &target.addr, &op), 0);
	check_eq(sigio_reason(&set, fd, tap_ms(WAIT_MS)), POLL_IN);
	check_eq(poll_one(fd, POLLIN, 0), POLLIN);
	close(fd);
	target_close(&target);
}

static void sigio_notice(void)
{
	sigio_op(RDS_RDMA_NOTIFY_ME, NULL);
}

static void sigio_event(void)
{
	u64 id;

	sigio_op(0, &id);
}

/* ------------------------------------------------------------------- news */

/* A socket with news: a destination that has refused is clear again */
static int with_news(int *rx, union addr *to)
{
	int fd = rds_bound(NULL);

	*rx = small_receiver(to);
	congest(fd, to);
	/* space says so, and does not take the news */
	check_eq(drain_until(*rx, fd, POLLOUT), POLLOUT);
	return fd;
}

static int epoll_ctl_to(int ep, int fd, int op, unsigned int events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return must(epoll_ctl(ep, op, fd, &event));
}

static unsigned int epoll_one(int ep, int ms)
{
	struct epoll_event event = { 0 };

	return must(epoll_wait(ep, &event, 1, ms)) ? event.events : 0;
}

static void added(unsigned int how)
{
	int rx, fd, ep = must(epoll_create1(EPOLL_CLOEXEC));
	union addr to;

	fd = with_news(&rx, &to);
	epoll_ctl_to(ep, fd, EPOLL_CTL_ADD, NEWS | how);
	check_eq(epoll_one(ep, tap_ms(WAIT_MS)), NEWS);
	check_eq(epoll_one(ep, 0), 0);
	check_eq(poll_one(fd, NEWS, 0), 0);
	close(ep);
	close(fd);
	close(rx);
}

static void add_level(void)
{
	added(0);
}

static void add_edge(void)
{
	added(EPOLLET);
}

static void modified(unsigned int how)
{
	int rx, fd, ep = must(epoll_create1(EPOLL_CLOEXEC));
	union addr to;

	fd = with_news(&rx, &to);
	epoll_ctl_to(ep, fd, EPOLL_CTL_ADD, EPOLLRDHUP | how);
	check_eq(epoll_one(ep, 0), 0);
	for (int i = 0; i < 3; i++)
		epoll_ctl_to(ep, fd, EPOLL_CTL_MOD, NEWS | how);
	check_eq(epoll_one(ep, tap_ms(WAIT_MS)), NEWS);
	check_eq(epoll_one(ep, 0), 0);
	epoll_ctl_to(ep, fd, EPOLL_CTL_MOD, NEWS | how);
	check_eq(epoll_one(ep, 0), 0);
	close(ep);
	close(fd);
	close(rx);
}

static void mod_level(void)
{
	modified(0);
}

static void mod_edge(void)
{
	modified(EPOLLET);
}

/* Other sets, and poll(), have it as before */
static void add_elsewhere(void)
{
	int rx, fd, ep = must(epoll_create1(EPOLL_CLOEXEC));
	union addr to;

	fd = with_news(&rx, &to);
	epoll_ctl_to(ep, fd, EPOLL_CTL_ADD, NEWS);
	check_eq(poll_one(fd, NEWS, 0), NEWS);
	check_eq(poll_one(fd, NEWS, 0), 0);
	/* taken by poll(), so there is nothing left to report */
	check_eq(epoll_one(ep, 0), 0);
	close(ep);
	close(fd);
	close(rx);
}

/* A set in a set. To wait for the outer one takes the news, and the inner one does
 * not have it then; it still has the space.
 */
static void nested(void)
{
	int rx, fd, inner = must(epoll_create1(EPOLL_CLOEXEC));
	int outer = must(epoll_create1(EPOLL_CLOEXEC));
	union addr to;

	fd = with_news(&rx, &to);
	epoll_ctl_to(inner, fd, EPOLL_CTL_ADD, NEWS);
	/* that looks at the socket, too, and takes nothing */
	epoll_ctl_to(outer, inner, EPOLL_CTL_ADD, EPOLLIN);
	check_eq(epoll_one(outer, tap_ms(WAIT_MS)), EPOLLIN);
	check_eq(epoll_one(outer, 0), 0);
	check_eq(epoll_one(inner, 0), 0);
	epoll_ctl_to(inner, fd, EPOLL_CTL_MOD, NEWS | EPOLLOUT);
	check_eq(epoll_one(outer, 0), EPOLLIN);
	check_eq(epoll_one(inner, 0), EPOLLOUT);
	close(outer);
	close(inner);
	close(fd);
	close(rx);
}

/* Reads the news, as a program with RDS_CONG_MONITOR does. */
static ssize_t read_news(int fd)
{
	char control[1024] __aligned(8);
	struct msghdr m = { .msg_control = control,
			    .msg_controllen = sizeof(control) };

	return recvmsg(fd, &m, MSG_DONTWAIT);
}

/* With RDS_CONG_MONITOR both have it until it is read. */
static void nested_monitor(void)
{
	int rx, fd = rds_bound(NULL), inner = must(epoll_create1(EPOLL_CLOEXEC));
	int outer = must(epoll_create1(EPOLL_CLOEXEC));
	union addr to;

	rds_set_int(fd, SOL_RDS, RDS_CONG_MONITOR, 1);
	rx = small_receiver(&to);
	epoll_ctl_to(inner, fd, EPOLL_CTL_ADD, NEWS);
	epoll_ctl_to(outer, inner, EPOLL_CTL_ADD, EPOLLIN);
	congest(fd, &to);
	check_eq(epoll_one(outer, 0), 0);
	drain(rx);
	check_eq(epoll_one(outer, tap_ms(WAIT_MS)), EPOLLIN);
	check_eq(epoll_one(outer, 0), EPOLLIN);
	check_eq(epoll_one(inner, 0), NEWS);
	check_eq(epoll_one(inner, 0), NEWS);
	check_ret(read_news(fd), 0);
	check_eq(epoll_one(inner, 0), 0);
	check_eq(epoll_one(outer, 0), 0);
	close(outer);
	close(inner);
	close(fd);
	close(rx);
}

/* It wakes a set that the socket is in already. */
static void wakes(unsigned int how)
{
	int fd = rds_bound(NULL), rx, ep = must(epoll_create1(EPOLL_CLOEXEC));
	union addr to;

	rx = small_receiver(&to);
	epoll_ctl_to(ep, fd, EPOLL_CTL_ADD, NEWS | how);
	congest(fd, &to);
	check_eq(epoll_one(ep, 0), 0);
	drain(rx);
	check_eq(epoll_one(ep, tap_ms(WAIT_MS)), NEWS);
	check_eq(epoll_one(ep, 0), 0);
	close(ep);
	close(fd);
	close(rx);
}

static void wakes_level(void)
{
	wakes(0);
}

static void wakes_edge(void)
{
	wakes(EPOLLET);
}

static const struct tap_case cases[] = {
	{ "quarter", "POLLOUT comes with a quarter of the space",
	  quarter, TAP_EACH_FAMILY, 60 },
	{ "less", "and not with less", less, 0, 60 },
	{ "large_waits", "nor without space for the message that was refused",
	  large_waits, 0, 60 },
	{ "sigio_space", "SIGIO says that there is space: POLL_OUT",
	  sigio_space, TAP_EACH_FAMILY, 0 },
	{ "sigio_congested", "and that congestion has ended", sigio_congested,
	  0, 0 },
	{ "sigio_notice", "that an op has a notice", sigio_notice, 0, 0 },
	{ "sigio_event", "and that a barrier was reached", sigio_event, 0, 0 },
	{ "add_level", "EPOLL_CTL_ADD leaves the news to epoll_wait()",
	  add_level, TAP_EACH_FAMILY, 0 },
	{ "add_edge", "with EPOLLET, too", add_edge, 0, 0 },
	{ "mod_level", "and so does EPOLL_CTL_MOD", mod_level, 0, 0 },
	{ "mod_edge", "with EPOLLET, too", mod_edge, 0, 0 },
	{ "add_elsewhere", "EPOLL_CTL_ADD leaves it to poll(), once",
	  add_elsewhere, 0, 0 },
	{ "nested", "epoll_wait() takes it for a set in the set as well",
	  nested, TAP_EACH_FAMILY, 0 },
	{ "nested_monitor", "with RDS_CONG_MONITOR both sets have it",
	  nested_monitor, 0, 0 },
	{ "wakes_level", "the news wakes epoll_wait(), once", wakes_level, 0,
	  0 },
	{ "wakes_edge", "with EPOLLET, too", wakes_edge, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
