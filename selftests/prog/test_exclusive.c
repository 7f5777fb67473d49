// SPDX-License-Identifier: GPL-2.0-only
/*
 * EPOLLEXCLUSIVE: several threads wait for one socket, and an event that one of
 * them can handle wakes one; it is not spent on threads that wait for something
 * else.
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
#include "waker.h"

enum {
	NR		= 8,
	OTHERS		= 3,
	CHUNK		= 4096,
	SPACE		= 64 * 1024,
	QUIET_MS	= 100,		/* long enough for a wrong wake-up */
};

struct team {
	struct waker w[NR];
	int nr;
};

static char chunk[CHUNK], whole[SPACE];

/* One more that waits for a socket; the wait queue is in the order of calls */
static void team_add(struct team *team, int fd, unsigned int events)
{
	struct epoll_event event = { .events = events | EPOLLEXCLUSIVE };
	int ep = must(epoll_create1(EPOLL_CLOEXEC));

	must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event));
	waker_start_epoll(&team->w[team->nr++], ep);
}

static int team_woken(const struct team *team)
{
	int n = 0;

	for (int i = 0; i < team->nr; i++)
		n += READ_ONCE(team->w[i].returns);
	return n;
}

static bool any_woken(void *arg)
{
	return team_woken(arg);
}

static void team_end(struct team *team)
{
	for (int i = 0; i < team->nr; i++) {
		waker_stop(&team->w[i]);
		close(team->w[i].fd);
	}
	team->nr = 0;
}

/* How often those have slept who were not told anything */
static long sleeps_of_rest(const struct team *team)
{
	long n = 0;

	for (int i = 0; i < team->nr; i++)
		if (!READ_ONCE(team->w[i].returns))
			n += waker_sleeps(&team->w[i]);
	return n;
}

static void wait_for_next(struct team *team, int woken)
{
	long long end = tap_now_ms() + tap_ms(WAIT_MS);

	while (team_woken(team) < woken && tap_now_ms() < end)
		usleep(1000);
	usleep(QUIET_MS * 1000);
	check_eq(team_woken(team), woken);
}

static void one_message(void)
{
	int tx = rds_bound(NULL), fd;
	struct team team = { 0 };
	union addr to;
	char byte;

	fd = rds_bound(&to);
	for (int i = 0; i < NR; i++)
		team_add(&team, fd, EPOLLIN);
	for (int i = 1; i <= NR; i++) {
		tap_context("message %d", i);
		must(rds_send(tx, "x", 1, 0, &to));
		wait_for_next(&team, i);
		/* the others have not even looked */
		check_eq(sleeps_of_rest(&team), NR - i);
		check_ret(rds_recv(fd, &byte, 1, MSG_DONTWAIT, NULL), 1);
	}
	for (int i = 0; i < NR; i++)
		check_eq(team.w[i].seen, EPOLLIN);
	team_end(&team);
	close(fd);
	close(tx);
}

/* One message takes all of the space: so there is space again once. The message
 * is held until the whole team waits.
 */
static void fill(int fd, const union addr *to)
{
	struct xrds_dest_sndbuf space = { .bytes = SPACE };

	must(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &space, sizeof(space)));
	hold_ops();
	check_ret(rds_send(fd, whole, SPACE, MSG_DONTWAIT, to), SPACE);
	check_err(rds_send(fd, chunk, 1, MSG_DONTWAIT, to), EAGAIN);
}

static void space(void)
{
	int fd = rds_bound(NULL), rx;
	struct team team = { 0 };
	union addr to;

	rx = rds_bound(&to);
	fill(fd, &to);
	/* in front are some that it is not for */
	for (int i = 0; i < OTHERS; i++)
		team_add(&team, fd, EPOLLIN);
	for (int i = OTHERS; i < NR; i++)
		team_add(&team, fd, EPOLLOUT);
	release_ops();
	wait_for_next(&team, 1);
	check_eq(sleeps_of_rest(&team), NR - 1);
	check_eq(team.w[OTHERS].seen, EPOLLOUT);
	check_ret(rds_send(fd, chunk, CHUNK, MSG_DONTWAIT, &to), CHUNK);
	team_end(&team);
	close(fd);
	close(rx);
}

static void message_among_senders(void)
{
	int fd, full, tx = rds_bound(NULL);
	struct team team = { 0 };
	union addr self, to;

	fd = rds_bound(&self);
	full = small_receiver(&to);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	congest(fd, &to);
	for (int i = 0; i < OTHERS; i++)
		team_add(&team, fd, EPOLLOUT);
	for (int i = OTHERS; i < NR; i++)
		team_add(&team, fd, EPOLLIN);
	must(rds_send(tx, "x", 1, 0, &self));
	must_wait(any_woken, &team, WAIT_MS);
	wait_for_next(&team, 1);
	check_eq(team.w[OTHERS].seen, EPOLLIN);
	team_end(&team);
	close(fd);
	close(full);
	close(tx);
}

static void end_reader(struct waker *reader, const union addr *to)
{
	int tx = rds_bound(NULL);

	must(rds_send(tx, "x", 1, 0, to));
	waker_stop(reader);
	close(tx);
}

/* In front of all is one who reads: space is nothing to him. */
static void space_behind_reader(void)
{
	struct team team = { 0 };
	union addr self, to;
	struct waker reader;
	int fd, rx;

	fd = rds_bound(&self);
	rx = rds_bound(&to);
	fill(fd, &to);
	waker_start_reader(&reader, fd);
	for (int i = 0; i < OTHERS; i++)
		team_add(&team, fd, EPOLLOUT);
	release_ops();
	wait_for_next(&team, 1);
	team_end(&team);
	end_reader(&reader, &self);
	close(fd);
	close(rx);
}

/* Nor is the end of congestion, which poll() tells. */
static void news_behind_reader(void)
{
	struct team team = { 0 };
	union addr self, to;
	struct waker reader;
	int fd, full;

	fd = rds_bound(&self);
	full = small_receiver(&to);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	congest(fd, &to);
	waker_start_reader(&reader, fd);
	team_add(&team, fd, EPOLLIN);
	while (rds_recv(full, chunk, CHUNK, MSG_DONTWAIT, NULL) > 0)
		;
	wait_for_next(&team, 1);
	check_eq(team.w[0].seen & EPOLLIN, EPOLLIN);
	team_end(&team);
	end_reader(&reader, &self);
	close(fd);
	close(full);
}

/* A notice is, but one who has no room for it wakes the next. */
static void notice_behind_reader(void)
{
	struct team team = { 0 };
	struct waker reader;
	int fd = rds_bound(NULL);
	struct target t;
	struct got got;
	struct op op;

	target_open(&t, CHUNK, RDS_RDMA_READWRITE);
	waker_start_reader(&reader, fd);
	team_add(&team, fd, EPOLLIN);
	op = op_write(&t, 0, chunk, CHUNK);
	op.rdma.flags |= RDS_RDMA_NOTIFY_ME;
	check_ret(op_send(fd, &t.addr, &op), 0);
	wait_for_next(&team, 1);
	check(READ_ONCE(reader.returns));
	check_ret(got_within(fd, &got, WAIT_MS), 0);
	check_eq(got.nr_status, 1);
	waker_stop(&reader);
	team_end(&team);
	target_close(&t);
	close(fd);
}

static const struct tap_case cases[] = {
	{ "one_message", "one message wakes one of those who wait", one_message,
	  TAP_EACH_FAMILY, 0 },
	{ "space", "space wakes one of those who want to send", space, 0, 0 },
	{ "message_among_senders", "a message wakes no sender, and one reader",
	  message_among_senders, 0, 0 },
	{ "space_behind_reader", "space is not spent on one who reads",
	  space_behind_reader, 0, 0 },
	{ "news_behind_reader", "nor is the news of congestion that has ended",
	  news_behind_reader, 0, 0 },
	{ "notice_behind_reader", "a notice is passed on by one without room for it",
	  notice_behind_reader, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
