// SPDX-License-Identifier: GPL-2.0-only
/*
 * XRDS_REPLY_RESERVE: a message that was read can be answered, and one that
 * cannot be answered is not read.
 *
 * timeout: 180
 */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <linux/sockios.h>
#include <unistd.h>

#include "congest.h"
#include "counters.h"
#include "sock.h"
#include "tap.h"
#include "turns.h"
#include "waker.h"

enum {
	SPACE		= 64 * 1024,
	REPLY		= 16 * 1024,
	FIT		= SPACE / REPLY,
	NR_PEERS	= 6,
	ECHOES		= 2000,		/* requests of each peer */
	WINDOW		= 24,		/* unanswered requests of one */
	QUIET_MS	= 300,
	MARKS		= 80,		/* more than the least SO_RCVBUF */
	MARK_BYTES	= 16,		/* the charge of an empty message */
	ANSWERS		= 24,		/* of 1 MiB */
	RECV_KB		= 4096,
	MEMORY_KB	= 8192,
	LITTLE		= 8192,		/* destinations and the like, bytes */
	READERS		= 3,
	TOGGLES		= 20000,
	HELD		= 8000,
	ENDED		= 1000,
	MARK_ROOM	= CMSG_SPACE(sizeof(u32)),
};

static char data[SPACE];
static char large[MSG_MAX_BYTES];

static bool returned(void *arg)
{
	return READ_ONCE(((struct waker *)arg)->returns);
}

static u32 reserved(int fd, const union addr *to)
{
	struct xrds_dest_status st = { 0 };
	socklen_t len = sizeof(st);

	memcpy(&st.dest, &to->ss, sizeof(st.dest));
	must(getsockopt(fd, SOL_RDS, XRDS_DEST_STATUS, &st, &len));
	return st.reserved_bytes;
}

static ssize_t read_now(int fd, union addr *from)
{
	return rds_recv(fd, data, sizeof(data), MSG_DONTWAIT, from);
}

/* A server with space for FIT replies to each client */
static int server(union addr *self)
{
	int fd = rds_bound(self);

	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	check_ret(rds_reserve(fd, REPLY), 0);
	return fd;
}

static void ask(int fd, const union addr *to, int times)
{
	while (times--)
		check_ret(rds_send(fd, "x", 1, 0, to), 1);
}

/* Readable, once all of a number of messages have come */
static void await(int fd, int bytes)
{
	long long end = tap_now_ms() + tap_ms(WAIT_MS);
	int got = 0;

	while (got < bytes && tap_now_ms() < end) {
		poll_one(fd, 0, 1);
		must(ioctl(fd, SIOCINQ, &got));
	}
	check_eq(got, bytes);
}

static bool marks_came(void *arg)
{
	return counter_now("recv_eos") >= *(int *)arg;
}

/* A read that finds nothing may end congestion all the same, as it drops the
 * ends of streams: then the sender is told.
 */
static void clears_in_vain(void)
{
	struct xrds_dest_sndbuf keep = { .bytes = SPACE };
	int rx, tx = rds_bound(NULL), ended[MARKS], nr = MARKS - 1;
	union addr to, other;
	struct waker w;

	rx = rds_bound(&to);
	rds_set_int(rx, SOL_SOCKET, SO_RCVBUF, MARKS * MARK_BYTES - 1);
	for (int i = 0; i < MARKS; i++) {
		ended[i] = rds_bound(NULL);
		ask(ended[i], &to, 1);
		check_ret(rds_recv_within(rx, data, 1, WAIT_MS, NULL), 1);
	}
	check_ret(rds_reserve(rx, 1), 0);
	/* one destination that stays, and room for no other */
	close(rds_bound(&other));
	memcpy(&keep.dest, &other, sizeof(other));
	must(setsockopt(rx, SOL_RDS, XRDS_DEST_SNDBUF, &keep, sizeof(keep)));
	knob("net/xrds/sock_max_dests", 1);
	for (int i = 0; i < nr; i++)
		close(ended[i]);
	must_wait(marks_came, &nr, WAIT_MS);
	ask(tx, &to, 1);
	await(rx, 1);
	close(ended[nr]);
	check_err(rds_send(tx, "x", 1, MSG_DONTWAIT, &to), ENOBUFS);
	waker_start(&w, tx, POLLOUT);
	check_err(rds_recv(rx, data, 1, MSG_DONTWAIT, NULL), EAGAIN);
	check(tap_wait(returned, &w, WAIT_MS));
	waker_stop(&w);
	close(tx);
	close(rx);
}

struct echo {
	int fd;
	union addr to;
	bool stop;
};

/* Sends to itself, and reads that */
static void *echo_thread(void *arg)
{
	struct echo *e = arg;
	char c;

	while (!READ_ONCE(e->stop)) {
		rds_send(e->fd, "x", 1, MSG_DONTWAIT, &e->to);
		rds_recv(e->fd, &c, 1, MSG_DONTWAIT, NULL);
	}
	return NULL;
}

/* A read that has begun with reservation and ends without reserves nothing: its
 * reservations would be in the way of another size.
 */
static void off_at_once(void)
{
	pthread_t threads[READERS];
	struct echo e = { 0 };

	e.fd = rds_bound(&e.to);
	for (int i = 0; i < READERS; i++)
		must(-pthread_create(&threads[i], NULL, echo_thread, &e));
	for (int i = 0; i < tap_count(TOGGLES); i++) {
		if (!check_ret(rds_reserve(e.fd, 1 + i % 2), 0))
			break;
		check_ret(rds_reserve(e.fd, 0), 0);
	}
	WRITE_ONCE(e.stop, true);
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	check_eq(reserved(e.fd, &e.to), 0);
	close(e.fd);
}

/* -------------------------------------------------------------- settings */

static void settings(void)
{
	union addr self, other = { 0 };
	int fd = rds_bound(&self);
	u64 wide = REPLY;

	check_eq(rds_get_int(fd, SOL_RDS, XRDS_REPLY_RESERVE), 0);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	check_err(rds_reserve(fd, SPACE + 1), EINVAL);
	check_err(rds_reserve(fd, MSG_MAX_BYTES + 1), EINVAL);
	check_err(setsockopt(fd, SOL_RDS, XRDS_REPLY_RESERVE, &wide,
			     sizeof(wide)), EINVAL);
	check_err(setsockopt(fd, SOL_RDS, XRDS_REPLY_RESERVE, &wide, 2),
		  EINVAL);
	check_ret(rds_reserve(fd, SPACE), 0);
	check_ret(rds_reserve(fd, REPLY), 0);
	check_eq(rds_get_int(fd, SOL_RDS, XRDS_REPLY_RESERVE), REPLY);
	/* nothing to give back */
	check_err(rds_release(fd, &self), EINVAL);
	check_err(rds_release(fd, &other), EINVAL);
	check_err(setsockopt(fd, SOL_RDS, XRDS_REPLY_RELEASE, &self.in,
			     sizeof(self.in)), EINVAL);
	close(fd);
}

/* The reservation has the size that was asked for, however small a message is. */
static void tiny(void)
{
	int tx = rds_bound(NULL), fd;
	union addr self, from;

	fd = rds_bound(&self);
	check_ret(rds_reserve(fd, 1), 0);
	ask(tx, &self, 3);
	await(fd, 3);
	for (int i = 0; i < 3; i++)
		check_ret(read_now(fd, &from), 1);
	check_eq(reserved(fd, &from), 3);
	close(fd);
	close(tx);
}

static void resized(void)
{
	int tx = rds_bound(NULL), fd;
	union addr self, from;

	fd = server(&self);
	ask(tx, &self, 1);
	await(fd, 1);
	check_ret(read_now(fd, &from), 1);
	check_err(rds_reserve(fd, REPLY / 2), EBUSY);
	check_ret(rds_reserve(fd, REPLY), 0);
	check_eq(reserved(fd, &from), REPLY);
	/* 0 gives all back */
	check_ret(rds_reserve(fd, 0), 0);
	check_eq(reserved(fd, &from), 0);
	check_ret(rds_reserve(fd, REPLY / 2), 0);
	close(fd);
	close(tx);
}

/* --------------------------------------------------------------- replies */

static void answered(void)
{
	int tx = rds_bound(NULL), fd;
	union addr self, from;

	fd = server(&self);
	ask(tx, &self, 2);
	await(fd, 2);
	check_ret(read_now(fd, &from), 1);
	check_ret(read_now(fd, &from), 1);
	check_eq(reserved(fd, &from), 2 * REPLY);
	check_ret(rds_send(fd, data, REPLY, MSG_DONTWAIT, &from), REPLY);
	check_eq(reserved(fd, &from), REPLY);
	/* a smaller one draws on it as well, a larger one does not */
	check_ret(rds_send(fd, data, REPLY + 1, MSG_DONTWAIT, &from),
		  REPLY + 1);
	check_eq(reserved(fd, &from), REPLY);
	check_ret(rds_send(fd, data, 1, MSG_DONTWAIT, &from), 1);
	check_eq(reserved(fd, &from), 0);
	close(fd);
	close(tx);
}

static void congested(void)
{
	int tx = rds_bound(NULL), fd;
	union addr self, from;

	rds_set_int(tx, SOL_SOCKET, SO_RCVBUF, SPACE);
	fd = server(&self);
	ask(tx, &self, 2);
	await(fd, 2);
	check_ret(read_now(fd, &from), 1);
	check_ret(read_now(fd, &from), 1);
	/* larger than a reply, so they leave the reservations alone */
	send_until(fd, &from, REPLY + 1, ENOBUFS, WAIT_MS);
	check_eq(reserved(fd, &from), 2 * REPLY);
	for (int i = 0; i < 2; i++)
		check_ret(rds_send(fd, data, REPLY, MSG_DONTWAIT, &from),
			  REPLY);
	check_err(rds_send(fd, data, REPLY, MSG_DONTWAIT, &from), ENOBUFS);
	close(fd);
	close(tx);
}

static void kept_on_fault(void)
{
	int tx = rds_bound(NULL), fd;
	union addr self, from;

	fd = server(&self);
	ask(tx, &self, 1);
	await(fd, 1);
	/* a reader that could not take it has no reservation */
	check_err(rds_recv(fd, (void *)8, 1, MSG_DONTWAIT, NULL), EFAULT);
	from = rds_self(tx);
	check_eq(reserved(fd, &from), 0);
	check_ret(read_now(fd, &from), 1);
	check_eq(reserved(fd, &from), REPLY);
	/* one that failed to answer still has it */
	check_err(rds_send(fd, (void *)8, 1, MSG_DONTWAIT, &from), EFAULT);
	check_eq(reserved(fd, &from), REPLY);
	close(fd);
	close(tx);
}

/* --------------------------------------------------------------- held back */

static void held(void)
{
	int tx = rds_bound(NULL), fd, inq;
	union addr self, from;

	fd = server(&self);
	ask(tx, &self, FIT + 2);
	await(fd, FIT + 2);
	for (int i = 0; i < FIT; i++)
		check_ret(read_now(fd, &from), 1);
	check_eq(reserved(fd, &from), SPACE);
	check_err(read_now(fd, NULL), EAGAIN);
	check_err(rds_recv(fd, data, 1, MSG_PEEK | MSG_DONTWAIT, NULL),
		  EAGAIN);
	check_eq(poll_one(fd, POLLIN | POLLRDNORM, 0), 0);
	must(ioctl(fd, SIOCINQ, &inq));
	check_eq(inq, 2);

	check_ret(rds_release(fd, &from), 0);
	check_eq(poll_one(fd, POLLIN | POLLRDNORM, 0), POLLIN | POLLRDNORM);
	/* to look at it reserves nothing */
	check_ret(rds_recv(fd, data, 1, MSG_PEEK | MSG_DONTWAIT, NULL), 1);
	check_eq(reserved(fd, &from), SPACE - REPLY);
	check_ret(read_now(fd, NULL), 1);
	check_err(read_now(fd, NULL), EAGAIN);
	/* a reply that was acknowledged makes room, too */
	check_ret(rds_send(fd, data, REPLY, MSG_DONTWAIT, &from), REPLY);
	check_eq(poll_one(fd, POLLIN | POLLRDNORM, tap_ms(WAIT_MS)),
		 POLLIN | POLLRDNORM);
	check_ret(read_now(fd, NULL), 1);
	close(fd);
	close(tx);
}

static void others_pass(void)
{
	int greedy = rds_bound(NULL), modest = rds_bound(NULL), fd;
	union addr self, from, second = rds_self(modest);
	int passed = 0;

	fd = server(&self);
	ask(greedy, &self, FIT + 2);
	await(fd, FIT + 2);
	ask(modest, &self, 1);
	await(fd, FIT + 3);
	for (int i = 0; i < FIT + 1; i++) {
		check_eq(poll_one(fd, POLLIN, 0), POLLIN);
		check_ret(read_now(fd, &from), 1);
		passed += addr_same(&from, &second);
	}
	check_eq(passed, 1);
	check_err(read_now(fd, NULL), EAGAIN);
	close(fd);
	close(greedy);
	close(modest);
}

/* One destination has less space than the others. */
static void small_dest(void)
{
	struct xrds_dest_sndbuf room = { .bytes = 2 * REPLY - 1 };
	int tx = rds_bound(NULL), fd;
	union addr self, from = rds_self(tx);

	fd = server(&self);
	memcpy(&room.dest, &from.ss, sizeof(room.dest));
	must(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &room, sizeof(room)));
	ask(tx, &self, 2);
	await(fd, 2);
	check_ret(read_now(fd, NULL), 1);
	check_err(read_now(fd, NULL), EAGAIN);
	check_eq(poll_one(fd, POLLIN, 0), 0);
	check_eq(reserved(fd, &from), REPLY);
	check_ret(rds_send(fd, data, REPLY, MSG_DONTWAIT, &from), REPLY);
	check_eq(poll_one(fd, POLLIN, tap_ms(WAIT_MS)), POLLIN);
	check_ret(read_now(fd, NULL), 1);
	check_eq(reserved(fd, &from), REPLY);
	close(fd);
	close(tx);
}

/* A message that is larger than a reply waits for those that are queued, and not for
 * the reservations.
 */
static void beside(void)
{
	int tx = rds_bound(NULL), fd;
	union addr self, from;

	fd = server(&self);
	rds_timeout(fd, SO_SNDTIMEO, tap_ms(WAIT_MS));
	ask(tx, &self, FIT);
	await(fd, FIT);
	for (int i = 0; i < FIT; i++)
		check_ret(read_now(fd, &from), 1);
	tap_context("larger than the space");
	check_ret(rds_send(fd, large, 4 * SPACE, 0, &from), 4 * SPACE);
	check_ret(rds_recv_within(tx, large, sizeof(large), WAIT_MS, NULL),
		  4 * SPACE);
	must_wait(rds_all_acked, &fd, WAIT_MS);
	check_eq(reserved(fd, &from), SPACE);

	tap_context("one is queued");
	stall_loop();
	check_ret(rds_send(fd, data, REPLY + 1, MSG_DONTWAIT, &from),
		  REPLY + 1);
	check_err(rds_send(fd, data, REPLY + 1, MSG_DONTWAIT, &from), EAGAIN);
	/* makes room for less than that */
	check_ret(rds_release(fd, &from), 0);
	check_eq(poll_one(fd, POLLOUT, 0), 0);
	check_err(rds_send(fd, data, REPLY + 1, MSG_DONTWAIT, &from), EAGAIN);
	check_eq(reserved(fd, &from), SPACE - REPLY);
	knob("net/xrds/loop/delay_ms", 0);
	check_eq(poll_one(fd, POLLOUT, tap_ms(WAIT_MS)), POLLOUT);
	check_ret(rds_send(fd, data, REPLY + 1, MSG_DONTWAIT, &from),
		  REPLY + 1);
	for (int i = 1; i < FIT; i++)
		check_ret(rds_send(fd, data, REPLY, MSG_DONTWAIT, &from),
			  REPLY);
	close(fd);
	close(tx);
}

static void space_wakes_reader(void)
{
	int tx = rds_bound(NULL), fd;
	union addr self, from;
	struct waker w;

	fd = server(&self);
	ask(tx, &self, FIT + 1);
	await(fd, FIT + 1);
	for (int i = 0; i < FIT; i++)
		check_ret(read_now(fd, &from), 1);
	waker_start(&w, fd, POLLIN);
	check_eq(w.returns, 0);
	check_ret(rds_release(fd, &from), 0);
	pthread_join(w.thread, NULL);
	check_eq(w.seen, POLLIN);
	check_ret(read_now(fd, NULL), 1);
	close(fd);
	close(tx);
}

static void *reader(void *arg)
{
	char byte;

	check_ret(rds_recv(*(int *)arg, &byte, 1, 0, NULL), 1);
	return NULL;
}

/* Space for several replies comes at once: all readers get something. */
static void all_readers(bool off)
{
	struct xrds_dest_sndbuf space = { .bytes = 2 * SPACE };
	int tx = rds_bound(NULL), fd;
	pthread_t threads[FIT];
	union addr self, from;
	long long start;

	fd = server(&self);
	rds_timeout(fd, SO_RCVTIMEO, tap_ms(WAIT_MS));
	ask(tx, &self, 2 * FIT);
	await(fd, 2 * FIT);
	for (int i = 0; i < FIT; i++)
		check_ret(read_now(fd, &from), 1);
	for (int i = 0; i < FIT; i++)
		must(-pthread_create(&threads[i], NULL, reader, &fd));
	check_eq(poll_one(fd, POLLIN, 100), 0);
	turns_begin();
	start = tap_now_ms();
	if (off) {
		check_ret(rds_reserve(fd, 0), 0);
	} else {
		memcpy(&space.dest, &from.ss, sizeof(space.dest));
		check_ret(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &space,
				     sizeof(space)), 0);
	}
	for (int i = 0; i < FIT; i++)
		pthread_join(threads[i], NULL);
	/* at the end of its time a reader looks again */
	check_range(turns_since(start), 0, tap_ms(WAIT_MS) / 2);
	close(fd);
	close(tx);
}

static void readers_space(void)
{
	all_readers(false);
}

static void readers_off(void)
{
	all_readers(true);
}

static void off_hands_out(void)
{
	int tx = rds_bound(NULL), fd;
	union addr self;

	fd = server(&self);
	ask(tx, &self, FIT + 3);
	await(fd, FIT + 3);
	for (int i = 0; i < FIT; i++)
		check_ret(read_now(fd, NULL), 1);
	check_err(read_now(fd, NULL), EAGAIN);
	check_ret(rds_reserve(fd, 0), 0);
	for (int i = 0; i < 3; i++)
		check_ret(read_now(fd, NULL), 1);
	check_err(read_now(fd, NULL), EAGAIN);
	close(fd);
	close(tx);
}

static void throttles(void)
{
	int tx = rds_bound(NULL), fd, inq;
	union addr self;

	fd = server(&self);
	rds_set_int(fd, SOL_SOCKET, SO_RCVBUF, SPACE);
	rds_set_int(tx, SOL_SOCKET, SO_SNDBUF, SPACE);
	for (int i = 0; i < FIT; i++) {
		ask(tx, &self, 1);
		await(fd, 1);
		check_ret(read_now(fd, NULL), 1);
	}
	/* it answers none: requests wait, until the client is stopped */
	send_until(tx, &self, REPLY, ENOBUFS, WAIT_MS);
	check_err(read_now(fd, NULL), EAGAIN);
	must(ioctl(fd, SIOCINQ, &inq));
	check_range(inq, SPACE, 3 * SPACE);
	close(fd);
	close(tx);
}

/* One round of a client that asks if it may, and a server that answers. */
static bool ask_and_answer(int tx, const union addr *to, int fd)
{
	bool any = rds_send(tx, "x", 1, MSG_DONTWAIT, to) > 0;
	struct pollfd fds[] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = tx, .events = POLLOUT },
	};
	union addr from;

	if (!any)
		check_eq(errno, EAGAIN);
	while (read_now(fd, &from) > 0) {
		check_ret(rds_send(fd, data, REPLY, MSG_DONTWAIT, &from),
			  REPLY);
		any = true;
	}
	return any || must(poll(fds, 2, QUIET_MS));
}

/* The bound that xrds(7) states: its limit, as much again of replies, and the
 * answers to its requests so far.
 */
static void never_reads(void)
{
	int tx = rds_bound(NULL), fd, held, queued, most = 0, n = 0;
	union addr self, other, from;
	int rx = rds_bound(&other);

	rds_set_int(tx, SOL_SOCKET, SO_RCVBUF, SPACE);
	fd = server(&self);
	/* With both connections up nothing is asked for that is not answered
	 * at once.
	 */
	ask(tx, &self, 1);
	await(fd, 1);
	check_ret(read_now(fd, &from), 1);
	check_ret(rds_send(fd, data, REPLY, MSG_DONTWAIT, &from), REPLY);
	check_eq(poll_one(tx, POLLIN, WAIT_MS), POLLIN);
	check_ret(read_now(tx, NULL), REPLY);
	while (ask_and_answer(tx, &self, fd) && n++ < ECHOES) {
		must(ioctl(fd, SIOCOUTQ, &queued));
		if (queued > most)
			most = queued;
	}
	must(ioctl(tx, SIOCINQ, &held));
	tap_diag("%d rounds, %d bytes held, %d queued", n, held, most);
	check_range(held, 2 * SPACE, 2 * SPACE + 4 * REPLY);
	check_range(most, 0, SPACE);
	/* it may go on with others, and here once it has read */
	check_err(rds_send(tx, "x", 1, MSG_DONTWAIT, &self), EAGAIN);
	check_ret(rds_send(tx, "x", 1, MSG_DONTWAIT, &other), 1);
	check_eq(poll_one(tx, POLLOUT, 0), 0);
	while (read_now(tx, NULL) > 0)
		;
	check_eq(poll_one(tx, POLLOUT, tap_ms(WAIT_MS)), POLLOUT);
	ask(tx, &self, 1);
	await(fd, 1);
	close(fd);
	close(rx);
	close(tx);
}

/* The client that asked is told, each time, and can ask again when it has read. */
static void overflow(int tx)
{
	struct linger wait = { 1, WAIT_MS / 1000 };
	u32 space = ANSWERS * MSG_MAX_BYTES;
	struct xrds_dest_sndbuf room = { .bytes = space };
	int fd, sent = 0, got = 0, lost;
	union addr self, from;

	fd = rds_bound(&self);
	must(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &room, sizeof(room)));
	check_ret(rds_reserve(fd, MSG_MAX_BYTES), 0);
	lost = counter_now("recv_drop_reply");
	ask(tx, &self, ANSWERS);
	await(fd, ANSWERS);
	for (; sent < ANSWERS; sent++) {
		check_ret(read_now(fd, &from), 1);
		check_ret(rds_send(fd, large, sizeof(large), MSG_DONTWAIT,
				   &from), sizeof(large));
	}
	/* returns when all of it was acknowledged */
	must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &wait, sizeof(wait)));
	check_ret(close(fd), 0);
	lost = counter_now("recv_drop_reply") - lost;

	check(poll_one(tx, POLLIN, 0) & POLLERR);
	check_err(rds_recv(tx, large, sizeof(large), MSG_DONTWAIT, NULL),
		  ENOBUFS);
	check_eq(poll_one(tx, POLLIN, 0), POLLIN);
	while (rds_recv(tx, large, sizeof(large), MSG_DONTWAIT, NULL) ==
	       sizeof(large))
		got++;
	check_eq(got + lost, ANSWERS);
	check_range(got, RECV_KB / 1024, 2 * RECV_KB / 1024);
	/* replies that were dropped are not unread */
	check_ret(rds_send(tx, "x", 1, MSG_DONTWAIT, &self), 1);
}

/* Replies that were asked for and are not read are bounded */
static void overflows(void)
{
	int tx = rds_bound(NULL);

	knob("net/xrds/sock_max_recv_kb", RECV_KB);
	rds_set_int(tx, SOL_SOCKET, SO_RCVBUF, SPACE);
	for (int time = 1; time <= 2; time++) {
		tap_context("time %d", time);
		overflow(tx);
	}
	close(tx);
}

/* A reservation counts as the memory of the reply. Beyond the bound no request is read,
 * and each one that was read can be answered.
 */
static void memory(void)
{
	struct xrds_dest_sndbuf room = { .bytes = ANSWERS * MSG_MAX_BYTES };
	int tx = rds_bound(NULL), fd, nr = 0;
	union addr self, from, nobody;
	long long used;

	fd = rds_bound(&self);
	must(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &room, sizeof(room)));
	check_ret(rds_reserve(fd, MSG_MAX_BYTES), 0);
	ask(tx, &self, ANSWERS);
	await(fd, ANSWERS);
	must_wait(rds_all_acked, &tx, WAIT_MS);
	used = counter_now("used_memory");
	knob("net/xrds/max_memory_kb", MEMORY_KB);
	for (; read_now(fd, &nobody) == 1; from = nobody)
		nr++;
	check_eq(errno, EAGAIN);
	check_range(nr, 1, MEMORY_KB / 1024);
	check_eq(poll_one(fd, POLLIN, QUIET_MS), 0);

	tap_context("a request gets no answer");
	check_ret(rds_release(fd, &from), 0);
	check_ret(rds_recv_within(fd, data, 1, WAIT_MS, &from), 1);
	check_err(read_now(fd, &nobody), EAGAIN);
	for (int i = 0; i < nr; i++) {
		tap_context("reply %d", i);
		check_ret(rds_send(fd, large, sizeof(large), MSG_DONTWAIT,
				   &from), sizeof(large));
	}
	tap_context("%s", "");
	must_wait(rds_all_acked, &fd, WAIT_MS);
	check_ret(rds_recv_within(fd, data, 1, WAIT_MS, NULL), 1);
	check_ret(rds_reserve(fd, 0), 0);
	check_range(counter_now("used_memory") - used, 0, LITTLE);
	close(fd);
	close(tx);
}

/* ------------------------------------------------------------ everybody */

struct msg {
	u32 is_reply;
	u32 seq;
	char pad[4096];
};

struct peer {
	int fd;
	union addr self;
	int asked;
	int answered;
	int next;		/* whom to ask */
};

static struct peer peers[NR_PEERS];
static int echoes;

/* Read what may be read; a request is answered, and that never fails. */
static bool serve(struct peer *p)
{
	union addr from;
	struct msg msg;
	ssize_t n = rds_recv(p->fd, &msg, sizeof(msg), MSG_DONTWAIT, &from);

	if (n < 0)
		return false;
	check_ret(n, sizeof(msg));
	if (msg.is_reply) {
		p->answered++;
		check_ret(rds_release(p->fd, &from), 0);
		return true;
	}
	msg.is_reply = 1;
	check_ret(rds_send(p->fd, &msg, sizeof(msg), MSG_DONTWAIT, &from),
		  sizeof(msg));
	return true;
}

static bool request(struct peer *p)
{
	struct msg msg = { .seq = p->asked };

	if (p->asked == echoes || p->asked - p->answered >= WINDOW)
		return false;
	p->next = (p->next + 1) % NR_PEERS;
	if (&peers[p->next] == p)
		p->next = (p->next + 1) % NR_PEERS;
	if (rds_send(p->fd, &msg, sizeof(msg), MSG_DONTWAIT,
		     &peers[p->next].self) < 0)
		return false;
	p->asked++;
	return true;
}

static void all_to_all(void)
{
	struct pollfd fds[NR_PEERS];
	int open = NR_PEERS, waits = 0;

	echoes = tap_count(ECHOES);
	memset(peers, 0, sizeof(peers));
	for (int i = 0; i < NR_PEERS; i++) {
		struct peer *p = &peers[i];

		p->fd = rds_bound(&p->self);
		p->next = i;
		/* little room: everything is full most of the time */
		rds_set_int(p->fd, SOL_SOCKET, SO_SNDBUF, 3 * sizeof(struct msg));
		rds_set_int(p->fd, SOL_SOCKET, SO_RCVBUF, 4 * sizeof(struct msg));
		check_ret(rds_reserve(p->fd, sizeof(struct msg)), 0);
	}
	while (open) {
		bool any = false;

		open = 0;
		for (int i = 0; i < NR_PEERS; i++) {
			struct peer *p = &peers[i];

			while (request(p))
				any = true;
			while (serve(p))
				any = true;
			open += p->answered < echoes;
			fds[i].fd = p->fd;
			fds[i].events = POLLIN;
			if (p->asked < echoes &&
			    p->asked - p->answered < WINDOW)
				fds[i].events |= POLLOUT;
		}
		if (any || !open)
			continue;
		waits++;
		if (!must(poll(fds, NR_PEERS, tap_ms(WAIT_MS))))
			tap_fail("nobody can go on");
	}
	tap_diag("%d waits for %d echoes", waits, NR_PEERS * echoes);
	for (int i = 0; i < NR_PEERS; i++)
		close(peers[i].fd);
}

/* A reader that peeks without room for an end of stream is not told of it
 * again, though a message is held as well.
 */
static void peek_held(void)
{
	int tx = rds_bound(NULL), other = rds_bound(NULL), nr, fd;
	union addr self;

	fd = server(&self);
	ask(other, &self, 1);
	await(fd, 1);
	check_ret(read_now(fd, NULL), 1);
	ask(tx, &self, FIT + 1);
	await(fd, FIT + 1);
	for (int i = 0; i < FIT; i++)
		check_ret(read_now(fd, NULL), 1);
	check_eq(poll_one(fd, POLLIN, 0), 0);
	nr = counter_now("recv_eos") + 1;
	close(other);
	must_wait(marks_came, &nr, WAIT_MS);
	check(poll_one(fd, POLLIN, 0));
	check_err(rds_recv(fd, data, 1, MSG_PEEK | MSG_DONTWAIT, NULL), EAGAIN);
	check_eq(poll_one(fd, POLLIN, 0), 0);
	close(tx);
	close(fd);
}

/* Streams that are open, with a message each that the server has read */
static void speak(int *streams, int nr, int fd, const union addr *to)
{
	for (int i = 0; i < nr; i++) {
		streams[i] = rds_bound(NULL);
		ask(streams[i], to, 1);
		await(fd, 1);
		check_ret(read_now(fd, NULL), 1);
	}
}

/* One read drops all marks that the reader has no room for, and no message that
 * is held.
 */
static void many_marks(void)
{
	int tx[2] = { rds_bound(NULL), rds_bound(NULL) }, fd, got, lost, last;
	int held = tap_count(HELD), nr = tap_count(ENDED);
	struct rlimit files = { 4096, 4096 };
	static int ended[ENDED];
	union addr self;

	must(setrlimit(RLIMIT_NOFILE, &files));
	fd = server(&self);
	rds_set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE,
		    2 * (held + nr) * MARK_BYTES);
	speak(ended, nr, fd, &self);
	for (int i = 0; i < 2 * FIT; i++) {
		ask(tx[i % 2], &self, 1);
		await(fd, 1);
		check_ret(read_now(fd, NULL), 1);
	}
	for (int i = 0; i < held; i++)
		ask(tx[i % 2], &self, 1);
	await(fd, held);
	last = counter_now("recv_eos") + nr;
	for (int i = 0; i < nr; i++)
		close(ended[i]);
	must_wait(marks_came, &last, WAIT_MS);

	lost = counter_now("recv_drop_eos");
	check_err(read_now(fd, NULL), EAGAIN);
	check_eq(counter_now("recv_drop_eos") - lost, nr);
	must(ioctl(fd, SIOCINQ, &got));
	check_eq(got, held);
	check_ret(rds_reserve(fd, 0), 0);
	for (int i = 0; i < held; i++)
		check_ret(read_now(fd, NULL), 1);
	check_err(read_now(fd, NULL), EAGAIN);
	close(tx[0]);
	close(tx[1]);
	close(fd);
}

/* The space that a reply leaves of its reservation is there at once, not with
 * the acknowledgment.
 */
static void rest_returned(void)
{
	int tx = rds_bound(NULL), fd;
	union addr self, from;
	struct waker w;

	fd = server(&self);
	ask(tx, &self, FIT);
	await(fd, FIT);
	for (int i = 0; i < FIT; i++)
		check_ret(read_now(fd, &from), 1);
	stall_loop();
	check_ret(rds_send(fd, data, 1, MSG_DONTWAIT, &from), 1);
	check_err(rds_send(fd, data, REPLY + 1, MSG_DONTWAIT, &from), EAGAIN);
	waker_start(&w, fd, POLLOUT);
	for (int i = 1; i < FIT; i++)
		check_ret(rds_send(fd, data, 1, MSG_DONTWAIT, &from), 1);
	check_eq(poll_one(fd, POLLOUT, 0), POLLOUT);
	check(tap_wait(returned, &w, WAIT_MS));
	waker_stop(&w);
	check_ret(rds_send(fd, data, REPLY + 1, MSG_DONTWAIT, &from),
		  REPLY + 1);
	close(fd);
	close(tx);
}

/* A destination that refused has room, and is sent to since then, if only a reply:
 * a program that waits for another one sleeps.
 */
static void reply_is_send(void)
{
	int tx = rds_bound(NULL), full, fd;
	union addr self, from, to;

	fd = server(&self);
	ask(tx, &self, FIT);
	await(fd, FIT);
	for (int i = 0; i < FIT; i++)
		check_ret(read_now(fd, &from), 1);
	stall_loop();
	check_ret(rds_send(fd, data, 1, MSG_DONTWAIT, &from), 1);
	check_err(rds_send(fd, data, REPLY + 1, MSG_DONTWAIT, &from), EAGAIN);
	knob("net/xrds/loop/delay_ms", 0);
	for (int i = 1; i < FIT; i++)
		check_ret(rds_send(fd, data, 1, MSG_DONTWAIT, &from), 1);
	check_eq(poll_one(fd, POLLOUT, tap_ms(WAIT_MS)), POLLOUT);
	ask(tx, &self, 1);
	await(fd, 1);
	check_ret(read_now(fd, &from), 1);
	check_ret(rds_send(fd, data, 1, MSG_DONTWAIT, &from), 1);
	full = small_receiver(&to);
	congest(fd, &to);
	check_eq(poll_one(fd, POLLOUT, QUIET_MS), 0);
	drain(full);
	check_eq(poll_one(fd, POLLOUT, tap_ms(WAIT_MS)), POLLOUT);
	close(full);
	close(fd);
	close(tx);
}

/* The reason of an end of stream that is read, or -1 */
static int read_mark(int fd)
{
	char control[MARK_ROOM] __aligned(8);
	struct msghdr m = { .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	u32 reason;

	poll_one(fd, POLLIN, WAIT_MS);
	if (recvmsg(fd, &m, MSG_DONTWAIT) || !m.msg_controllen)
		return -1;
	c = CMSG_FIRSTHDR(&m);
	if (c->cmsg_level != SOL_RDS || c->cmsg_type != XRDS_CMSG_EOS)
		return -1;
	memcpy(&reason, CMSG_DATA(c), sizeof(reason));
	return reason;
}

/* A socket that sends nothing more needs no space to read. */
static void shut_hands_out(void)
{
	int tx = rds_bound(NULL), fd;
	union addr self, from;
	struct waker w;

	fd = server(&self);
	ask(tx, &self, FIT + 2);
	await(fd, FIT + 2);
	for (int i = 0; i < FIT; i++)
		check_ret(read_now(fd, &from), 1);
	check_err(read_now(fd, NULL), EAGAIN);
	waker_start(&w, fd, POLLIN);
	check_ret(shutdown(fd, SHUT_WR), 0);
	check(tap_wait(returned, &w, WAIT_MS));
	waker_stop(&w);
	check_eq(reserved(fd, &from), 0);
	check_ret(read_now(fd, NULL), 1);
	check_ret(read_now(fd, NULL), 1);
	/* nor is any set aside from now on */
	ask(tx, &self, FIT + 1);
	await(fd, FIT + 1);
	for (int i = 0; i <= FIT; i++)
		check_ret(read_now(fd, NULL), 1);
	check_eq(reserved(fd, &from), 0);
	close(tx);
	check_eq(read_mark(fd), XRDS_EOS_FINISHED);
	close(fd);
}

static const struct tap_case cases[] = {
	{ "settings",
	  "values that the options take, and values that they refuse", settings,
	  0, 0 },
	{ "resized", "reservations have one size", resized, 0, 0 },
	{ "answered", "a message that was read can be answered", answered,
	  TAP_EACH_FAMILY, 0 },
	{ "congested", "even while its sender is congested", congested,
	  TAP_EACH_FAMILY, 0 },
	{ "peek_held", "poll() does not send a peeker back for the same",
	  peek_held, 0, 0 },
	{ "kept_on_fault", "a call that fails leaves reservations as they were",
	  kept_on_fault, 0, 0 },
	{ "held", "a message that cannot be answered is not read", held,
	  TAP_EACH_FAMILY, 0 },
	{ "others_pass", "other sources are not held back", others_pass, 0,
	  0 },
	{ "small_dest", "nor one beyond the space of its own destination",
	  small_dest, TAP_EACH_FAMILY, 0 },
	{ "beside", "reservations keep no larger message waiting for ever",
	  beside, TAP_EACH_FAMILY, 0 },
	{ "space_wakes_reader", "space for a reply wakes a reader",
	  space_wakes_reader, 0, 0 },
	{ "readers_space",
	  "several readers get as much as several spaces allow", readers_space,
	  0, 0 },
	{ "readers_off", "and messages that are not held back any more",
	  readers_off, 0, 0 },
	{ "off_hands_out", "without reservation everything can be read",
	  off_hands_out, 0, 0 },
	{ "off_at_once", "and none is made any more", off_at_once, 0, 0 },
	{ "clears_in_vain", "a read that finds nothing may end congestion",
	  clears_in_vain, 0, 0 },
	{ "many_marks", "ends of streams beside held messages go in one read",
	  many_marks, 0, 60 },
	{ "rest_returned", "the space that a reply does not need can be used",
	  rest_returned, TAP_EACH_FAMILY, 0 },
	{ "tiny", "a reservation counts as it was asked for", tiny, 0, 0 },
	{ "reply_is_send", "a reply is a send to a destination that has room",
	  reply_is_send, 0, 0 },
	{ "shut_hands_out",
	  "a socket that sends nothing more can read everything",
	  shut_hands_out, 0, 0 },
	{ "throttles", "a client that asks and is not answered is stopped",
	  throttles, 0, 0 },
	{ "never_reads", "a client that never reads its answers is stopped",
	  never_reads, TAP_EACH_FAMILY, 0 },
	{ "overflows",
	  "a client that asks for more than fits loses replies, and is told",
	  overflows, TAP_EACH_FAMILY, 0 },
	{ "memory", "reservations count as memory", memory, TAP_EACH_FAMILY, 0 },
	{ "all_to_all", "N:N echo with little room: each reply is accepted",
	  all_to_all, TAP_EACH_FAMILY, 60 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
