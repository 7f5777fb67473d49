// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a stream: shutdown(), close(), SO_LINGER, and their effect on
 * receivers and pollers.
 *
 * timeout: 120
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "congest.h"
#include "counters.h"
#include "sock.h"
#include "tap.h"
#include "turns.h"
#include "uring.h"
#include "waker.h"

#ifndef POLLRDHUP
#define POLLRDHUP 0x2000
#endif

enum {
	COUNT		= 10,
	DELAY_MS	= 200,
	LINGER_S	= 3,
	LONG_LINGER_S	= 1000,
	LINGER_MS	= 200,
	PEEK_MS		= 100,
	NONE		= -1,
	MARK_ROOM	= CMSG_SPACE(sizeof(u32)),
	SMALL_BYTES	= 4096,
	QUIET_MS	= 300,
	PROBE		= 1000000,	/* a number that no message has */
	EARLY_MS	= 10,		/* a tick of the slowest kernel */
	STREAMS		= 5,
	SHORT_STREAMS	= 1000,
	FORGETTABLE	= 600,		/* far more than the socket may lose */
	REMEMBERED	= 16,		/* of them */
	GO_ON		= 20,
};

/**
 * struct got - what one recvmsg() brought
 * @ret:	its value
 * @flags:	msg_flags
 * @reason:	XRDS_CMSG_EOS, or NONE
 * @number:	the message's content
 * @from:	its source
 */
struct got {
	ssize_t ret;
	int flags;
	int reason;
	int number;
	union addr from;
};

/**
 * struct little_reader - a thread that reads with little room
 * @fd:		its socket
 * @done:	it ends
 */
struct little_reader {
	int fd;
	bool done;
};

static void recv_flags(struct got *got, int fd, size_t room, int flags)
{
	char control[256] __aligned(8);
	struct iovec iov = { &got->number, sizeof(got->number) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_name = &got->from,
			    .msg_namelen = sizeof(got->from),
			    .msg_control = room ? control : NULL,
			    .msg_controllen = room };
	struct cmsghdr *c;
	u32 reason;

	memset(got, 0, sizeof(*got));
	got->reason = NONE;
	got->ret = recvmsg(fd, &m, flags);
	if (got->ret < 0)
		return;
	got->flags = m.msg_flags;
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		check_eq(c->cmsg_level, SOL_RDS);
		check_eq(c->cmsg_type, XRDS_CMSG_EOS);
		check_eq(c->cmsg_len, CMSG_LEN(sizeof(reason)));
		memcpy(&reason, CMSG_DATA(c), sizeof(reason));
		got->reason = reason;
	}
}

static void recv_now(struct got *got, int fd)
{
	recv_flags(got, fd, MARK_ROOM, MSG_DONTWAIT);
}

static void recv_soon(struct got *got, int fd)
{
	poll_one(fd, POLLIN, WAIT_MS);
	recv_now(got, fd);
}

static void expect_number(int fd, int number)
{
	struct got got;

	recv_soon(&got, fd);
	check_ret(got.ret, sizeof(number));
	check_eq(got.reason, NONE);
	check_eq(got.number, number);
}

static void expect_end(int fd, const union addr *from, int reason)
{
	struct got got;

	recv_soon(&got, fd);
	check_ret(got.ret, 0);
	check_eq(got.reason, reason);
	check(addr_same(&got.from, from));
}

/*
 * A message of another sender is behind all that is under way to the socket.
 * Its sender stays open, as its end would be a mark.
 */
static void expect_nothing(int fd)
{
	int probe = PROBE, tx = rds_bound(NULL);
	union addr to = rds_self(fd);

	check_ret(rds_send(tx, &probe, sizeof(probe), 0, &to), sizeof(probe));
	expect_number(fd, PROBE);
}

static void send_numbers(int fd, const union addr *to, int count)
{
	for (int i = 0; i < count; i++)
		check_ret(rds_send(fd, &i, sizeof(i), 0, to), sizeof(i));
}

static void linger(int fd, int seconds)
{
	struct linger value = { .l_onoff = 1, .l_linger = seconds };

	must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &value, sizeof(value)));
}

/* --------------------------------------------------------------- sending */

static void shut_wr(void)
{
	union addr from, to;
	int tx = rds_bound(&from), rx = rds_bound(&to);

	signal(SIGPIPE, SIG_IGN);
	send_numbers(tx, &to, COUNT);
	check_ret(shutdown(tx, SHUT_WR), 0);
	for (int i = 0; i < COUNT; i++)
		expect_number(rx, i);
	expect_end(rx, &from, XRDS_EOS_FINISHED);
	expect_nothing(rx);

	check_err(rds_send(tx, "x", 1, 0, &to), EPIPE);
	check_err(rds_send(tx, "x", 1, MSG_NOSIGNAL, &to), EPIPE);
	check_eq(poll_one(tx, POLLOUT, 0), POLLOUT);
	/* once, and the other direction goes on */
	check_ret(shutdown(tx, SHUT_WR), 0);
	send_numbers(rx, &from, 1);
	expect_number(tx, 0);
	close(tx);
	close(rx);
}

static bool sigpipe_pending(void)
{
	sigset_t set;

	sigpending(&set);
	return sigismember(&set, SIGPIPE);
}

/* Also by a message that is too long */
static void sigpipe(void)
{
	static const struct timespec now;
	static char big[MSG_MAX_BYTES + 1];
	sigset_t set;
	int fd = rds_bound(NULL);
	union addr to;
	int rx = rds_bound(&to);

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	must(sigprocmask(SIG_BLOCK, &set, NULL));
	must(shutdown(fd, SHUT_WR));
	for (size_t len = 1; len <= sizeof(big); len += MSG_MAX_BYTES) {
		tap_context("%zu bytes", len);
		check_err(rds_send(fd, big, len, MSG_NOSIGNAL, &to), EPIPE);
		check(!sigpipe_pending());
		check_err(rds_send(fd, big, len, 0, &to), EPIPE);
		check_eq(sigtimedwait(&set, NULL, &now), SIGPIPE);
	}
	tap_context("%s", "");
	/* nothing was ever sent there */
	expect_nothing(rx);
	close(fd);
	close(rx);
}

static void bad_calls(void)
{
	int fd = rds_socket();

	check_err(shutdown(fd, SHUT_WR), ENOTCONN);
	close(fd);
	fd = rds_bound(NULL);
	check_err(shutdown(fd, 3), EINVAL);
	check_err(shutdown(fd, -1), EINVAL);
	close(fd);
}

static void by_close(void)
{
	union addr from, to;
	int tx = rds_bound(&from), rx = rds_bound(&to);

	knob("net/xrds/loop/delay_ms", DELAY_MS);
	send_numbers(tx, &to, COUNT);
	close(tx);
	for (int i = 0; i < COUNT; i++)
		expect_number(rx, i);
	expect_end(rx, &from, XRDS_EOS_FINISHED);
	expect_nothing(rx);
	close(rx);
}

static void by_death(void)
{
	union addr from, to;
	int rx = rds_bound(&to), tx;
	pid_t pid;

	knob("net/xrds/loop/delay_ms", DELAY_MS);
	tx = rds_bound(&from);
	pid = must(fork());
	if (!pid) {
		send_numbers(tx, &to, COUNT);
		kill(getpid(), SIGKILL);
	}
	close(tx);
	must(waitpid(pid, NULL, 0));
	for (int i = 0; i < COUNT; i++)
		expect_number(rx, i);
	expect_end(rx, &from, XRDS_EOS_FINISHED);
	close(rx);
}

/* A message that was dropped does not arrive behind the mark. */
static void aborted(void)
{
	union addr from, to;
	int tx = rds_bound(&from), rx = rds_bound(&to);
	struct got got;
	int n = 0;

	knob("net/xrds/loop/delay_ms", DELAY_MS);
	send_numbers(tx, &to, COUNT);
	linger(tx, 0);
	close(tx);
	for (;;) {
		recv_soon(&got, rx);
		if (got.ret != sizeof(got.number))
			break;
		check_eq(got.number, n);
		n++;
	}
	check_ret(got.ret, 0);
	check_eq(got.reason, XRDS_EOS_ABORTED);
	check(addr_same(&got.from, &from));
	expect_nothing(rx);
	close(rx);
}

/* Sends a message, closes, and lingers for so long at most; it takes so many ms */
static void close_takes(int tx, const union addr *to, int seconds, int min_ms,
			int max_ms)
{
	long long start;

	turns_begin();
	start = tap_tick_ms();
	send_numbers(tx, to, 1);
	linger(tx, seconds);
	close(tx);
	check_took(start, min_ms, max_ms);
}

static void lingers(void)
{
	int tx = rds_bound(NULL), rx;
	union addr to;

	rx = rds_bound(&to);
	knob("net/xrds/loop/delay_ms", DELAY_MS);
	/* the mark is right behind the message */
	close_takes(tx, &to, 60, DELAY_MS - EARLY_MS, tap_ms(WAIT_MS));
	check_eq(poll_one(rx, POLLIN, 0), POLLIN);
	expect_number(rx, 0);
	close(rx);
}

/* A tick may be late, and so may we; but not for half as long again. */
static void linger_bound(void)
{
	int tx = rds_bound(NULL), rx;
	union addr to;

	rx = rds_bound(&to);
	stall_loop();
	close_takes(tx, &to, LINGER_S, LINGER_S * 1000 - EARLY_MS,
		    LINGER_S * 1500);
	close(rx);
}

static bool given_up(void *arg)
{
	return counter_now("send_drop_closed") > *(long long *)arg;
}

/*
 * The last one to close it is a worker that closes for everybody: it does not
 * wait, even if a user asked for it.
 */
static void linger_worker(void)
{
	long long dropped = counter_now("send_drop_closed");
	int tx = rds_bound(NULL), rx;
	struct uring ring;
	union addr to;

	rx = rds_bound(&to);
	stall_loop();
	knob("net/xrds/linger_ms", LINGER_MS);
	send_numbers(tx, &to, 1);
	linger(tx, LONG_LINGER_S);
	uring_open(&ring);
	uring_keep(&ring, tx);
	check_ret(close(tx), 0);
	uring_close(&ring);
	check(tap_wait(given_up, &dropped, WAIT_MS));
	close(rx);
}

/* One that closes later may have to give up earlier. */
static void linger_lowered(void)
{
	int first = rds_bound(NULL), tx = rds_bound(NULL), rx;
	long long dropped = counter_now("send_drop_closed");
	union addr to;

	rx = rds_bound(&to);
	send_numbers(first, &to, 1);
	close(first);
	expect_number(rx, 0);
	stall_loop();
	knob("net/xrds/linger_ms", LINGER_MS);
	send_numbers(tx, &to, 1);
	close(tx);
	check(tap_wait(given_up, &dropped, WAIT_MS));
	close(rx);
}

/* Each destination of a message gets one mark, and no other does. */
static void each_destination(void)
{
	union addr from, to[3], silent_to;
	int tx = rds_bound(&from), rx[3], silent = rds_bound(&silent_to);
	struct xrds_dest_sndbuf space = { .bytes = SMALL_BYTES };

	for (int i = 0; i < 3; i++) {
		rx[i] = rds_bound(&to[i]);
		send_numbers(tx, &to[i], i + 1);
	}
	memcpy(&space.dest, &silent_to, sizeof(silent_to));
	must(setsockopt(tx, SOL_RDS, XRDS_DEST_SNDBUF, &space, sizeof(space)));
	must(shutdown(tx, SHUT_WR));
	close(tx);
	for (int i = 0; i < 3; i++) {
		for (int n = 0; n <= i; n++)
			expect_number(rx[i], n);
		expect_end(rx[i], &from, XRDS_EOS_FINISHED);
		expect_nothing(rx[i]);
		close(rx[i]);
	}
	expect_nothing(silent);
	close(silent);
}

static void *send_blocked(void *arg)
{
	const union addr *to = arg;
	int fd = *(int *)(to + 1);

	return (void *)(rds_send(fd, "x", 1, MSG_NOSIGNAL, to) < 0 ?
			(long)errno : 0L);
}

static void blocked_sender(void)
{
	struct { union addr to; int fd; } arg;
	int fd = rds_bound(NULL), rx;
	static char data[SMALL_BYTES];
	pthread_t thread;
	void *error;

	rx = rds_bound(&arg.to);
	arg.fd = fd;
	stall_loop();
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SMALL_BYTES);
	while (rds_send(fd, data, sizeof(data), MSG_DONTWAIT, &arg.to) > 0)
		;
	check_eq(errno, EAGAIN);
	check_eq(pthread_create(&thread, NULL, send_blocked, &arg), 0);
	/* the refusal that makes it sleep is counted */
	check(counter_reaches("send_queue_full", 2, WAIT_MS));
	must(shutdown(fd, SHUT_WR));
	pthread_join(thread, &error);
	check_eq((long)error, EPIPE);
	close(fd);
	close(rx);
}

/* Nothing was sent that could end. */
static void failed_send(void)
{
	struct xrds_barrier barrier = { .rdma_id = 1 };
	union addr to;
	int tx = rds_bound(NULL), rx = rds_bound(&to);
	struct xrds_dest_status st = { 0 };

	check_err(rds_send(tx, (void *)1, SMALL_BYTES, 0, &to), EFAULT);
	/* there was no op that it could wait for */
	check_err(rds_send_cmsg(tx, &to, XRDS_CMSG_BARRIER, &barrier,
				sizeof(barrier)), EINVAL);
	must(shutdown(tx, SHUT_WR));
	check_ret(dest_status(tx, &to, &st), 0);
	check_eq(st.flags & XRDS_DEST_EOS_SENT, 0);
	check_eq(poll_one(rx, POLLIN | POLLRDHUP, QUIET_MS), 0);
	expect_nothing(rx);
	close(tx);
	check_eq(poll_one(rx, POLLIN | POLLRDHUP, QUIET_MS), 0);
	close(rx);
}

/* ------------------------------------------------------------- receiving */

static bool polls_hup(void *arg)
{
	return poll_one(*(int *)arg, POLLRDHUP, 0) & POLLRDHUP;
}

static void rdhup(void)
{
	union addr from[2], to;
	int tx[2], rx = rds_bound(&to), third;

	for (int i = 0; i < 2; i++) {
		tx[i] = rds_bound(&from[i]);
		send_numbers(tx[i], &to, 1);
		expect_number(rx, 0);
	}
	check_eq(poll_one(rx, POLLIN | POLLRDHUP, 0), 0);
	must(shutdown(tx[0], SHUT_WR));
	expect_end(rx, &from[0], XRDS_EOS_FINISHED);
	check_eq(poll_one(rx, POLLIN | POLLRDHUP, 0), 0);
	close(tx[1]);
	/* by its arrival, not by its being read */
	must_wait(polls_hup, &rx, WAIT_MS);
	check_eq(poll_one(rx, POLLIN | POLLRDHUP, 0), POLLIN | POLLRDHUP);
	expect_end(rx, &from[1], XRDS_EOS_FINISHED);
	check_eq(poll_one(rx, POLLIN | POLLRDHUP, 0), POLLRDHUP);

	must(shutdown(rx, SHUT_WR));
	check_eq(poll_one(rx, POLLRDHUP, 0), POLLRDHUP | POLLHUP);

	third = rds_bound(NULL);
	send_numbers(third, &to, 1);
	expect_number(rx, 0);
	check_eq(poll_one(rx, POLLRDHUP, 0), 0);
	close(third);
	close(tx[0]);
	close(rx);
}

/* The last of so many streams that the socket has forgotten some open ones */
static void rdhup_many(void)
{
	long long ends = counter_now("recv_eos");
	int tx[STREAMS], rx;
	union addr to;

	knob("net/xrds/sock_max_dests", STREAMS / 2);
	rx = rds_bound(&to);
	for (int i = 0; i < STREAMS; i++) {
		tx[i] = rds_bound(NULL);
		send_numbers(tx[i], &to, 1);
		expect_number(rx, 0);
	}
	for (int i = 0; i < STREAMS - 1; i++)
		close(tx[i]);
	check(counter_reaches("recv_eos", ends + STREAMS - 1, WAIT_MS));
	check_eq(poll_one(rx, POLLRDHUP, 0), 0);
	close(tx[STREAMS - 1]);
	check_eq(poll_one(rx, POLLRDHUP, tap_ms(WAIT_MS)), POLLRDHUP);
	close(rx);
}

/* The oldest stream is not remembered, and goes on when all others have ended. */
static void rdhup_forgotten(void)
{
	long long ends = counter_now("recv_eos");
	int oldest = rds_bound(NULL), tx[FORGETTABLE], rx;
	union addr to;

	knob("net/xrds/sock_max_dests", FORGETTABLE);
	rx = rds_bound(&to);
	send_numbers(oldest, &to, 1);
	expect_number(rx, 0);
	for (int i = 0; i < FORGETTABLE; i++) {
		tx[i] = rds_bound(NULL);
		send_numbers(tx[i], &to, 1);
		expect_number(rx, 0);
	}
	for (int i = 0; i < FORGETTABLE; i++)
		close(tx[i]);
	check(counter_reaches("recv_eos", ends + FORGETTABLE, WAIT_MS));
	check_eq(poll_one(rx, POLLRDHUP, 0), 0);
	close(oldest);
	check_eq(poll_one(rx, POLLRDHUP, tap_ms(WAIT_MS)), POLLRDHUP);
	close(rx);
}

/* Of very many streams that are not remembered a few go on. */
static void rdhup_few(void)
{
	long long ends = counter_now("recv_eos");
	int tx[FORGETTABLE], rx;
	union addr to;

	knob("net/xrds/sock_max_dests", REMEMBERED);
	rx = rds_bound(&to);
	for (int i = 0; i < FORGETTABLE; i++) {
		tx[i] = rds_bound(NULL);
		send_numbers(tx[i], &to, 1);
		expect_number(rx, 0);
	}
	for (int i = GO_ON; i < FORGETTABLE; i++)
		close(tx[i]);
	check(counter_reaches("recv_eos", ends + FORGETTABLE - GO_ON, WAIT_MS));
	check_eq(poll_one(rx, POLLRDHUP, 0), 0);
	for (int i = 0; i < GO_ON; i++)
		close(tx[i]);
	close(rx);
}

/* The sender whose first message has a stream forgotten does not end it. */
static void rdhup_evicts(void)
{
	union addr from, next_from, to;
	int tx, next, rx;

	knob("net/xrds/sock_max_dests", 1);
	rx = rds_bound(&to);
	for (int i = 0; i < FORGETTABLE; i++) {
		tap_context("stream %d", i);
		tx = rds_bound(&from);
		next = rds_bound(&next_from);
		send_numbers(tx, &to, 1);
		expect_number(rx, 0);
		send_numbers(next, &to, 1);
		expect_number(rx, 0);
		close(next);
		expect_end(rx, &next_from, XRDS_EOS_FINISHED);
		check_eq(poll_one(rx, POLLRDHUP, 0), 0);
		close(tx);
		expect_end(rx, &from, XRDS_EOS_FINISHED);
		check_eq(poll_one(rx, POLLRDHUP, 0), POLLRDHUP);
	}
	close(rx);
}

static void rdhup_wakes(void)
{
	union addr to;
	int tx = rds_bound(NULL), rx = rds_bound(&to);
	struct waker w;

	send_numbers(tx, &to, 1);
	expect_number(rx, 0);
	waker_start(&w, rx, POLLRDHUP);
	must(shutdown(tx, SHUT_WR));
	must_wait(polls_hup, &rx, WAIT_MS);
	check_eq(pthread_join(w.thread, NULL), 0);
	check_eq(w.returns, 1);
	check_eq(w.seen, POLLRDHUP);
	close(tx);
	close(rx);
}

static void shut_rd(void)
{
	long long before = counter_now("recv_drop_shutdown");
	union addr from, to;
	int tx = rds_bound(&from), rx = rds_bound(&to);
	struct got got;

	send_numbers(tx, &to, COUNT);
	check_eq(poll_one(rx, POLLIN, WAIT_MS), POLLIN);
	must(shutdown(rx, SHUT_RD));
	recv_now(&got, rx);
	check_ret(got.ret, 0);
	check_eq(got.reason, NONE);
	check_eq(poll_one(rx, POLLIN | POLLRDHUP, 0), POLLIN | POLLRDHUP);

	send_numbers(tx, &to, COUNT);
	check(counter_reaches("recv_drop_shutdown", before + COUNT, WAIT_MS));
	recv_now(&got, rx);
	check_ret(got.ret, 0);
	/* it may send as before */
	send_numbers(rx, &from, 1);
	expect_number(tx, 0);
	must(shutdown(rx, SHUT_RDWR));
	check_err(rds_send(rx, "x", 1, MSG_NOSIGNAL, &from), EPIPE);
	check_eq(poll_one(rx, POLLRDHUP, 0), POLLRDHUP | POLLHUP);
	close(tx);
	close(rx);
}

static void shut_rd_wakes(void)
{
	int rx = rds_bound(NULL);
	struct waker w;

	waker_start(&w, rx, POLLIN);
	must(shutdown(rx, SHUT_RD));
	check_eq(pthread_join(w.thread, NULL), 0);
	check_eq(w.seen, POLLIN);
	close(rx);
}

/* A receiver that is congested and then stops reading blocks nobody. */
static void shut_rd_clears(void)
{
	static char data[SMALL_BYTES];
	int tx = rds_bound(NULL), rx;
	union addr to;

	rx = rds_bound(&to);
	rds_set_int(rx, SOL_SOCKET, SO_RCVBUF, SMALL_BYTES);
	send_until(tx, &to, SMALL_BYTES, ENOBUFS, WAIT_MS);
	check_eq(poll_one(tx, POLLOUT, 0), 0);
	must(shutdown(rx, SHUT_RD));
	check_eq(poll_one(tx, POLLOUT, WAIT_MS), POLLOUT);
	for (int i = 0; i < COUNT; i++)
		check_ret(rds_send(tx, data, SMALL_BYTES, 0, &to), SMALL_BYTES);
	close(tx);
	close(rx);
}

/* Sends a message and closes; when it returns the receiver has the mark. */
static void one_and_close(int tx, const union addr *to)
{
	long long before = counter_now("recv_eos");

	send_numbers(tx, to, 1);
	close(tx);
	check(counter_reaches("recv_eos", before + 1, WAIT_MS));
}

/* Programs that take no control messages never see a mark. */
static void no_control(void)
{
	union addr to;
	int tx = rds_bound(NULL), other = rds_bound(NULL), rx = rds_bound(&to);
	long long before = counter_now("recv_eos");
	struct got got;

	one_and_close(tx, &to);
	send_numbers(other, &to, 2);
	for (int i = 0; i < 3; i++) {
		poll_one(rx, POLLIN, WAIT_MS);
		recv_flags(&got, rx, 0, MSG_DONTWAIT);
		check_ret(got.ret, sizeof(got.number));
		check_eq(got.number, i > 0 ? i - 1 : 0);
	}
	close(other);
	check(counter_reaches("recv_eos", before + 2, WAIT_MS));
	recv_flags(&got, rx, 0, MSG_DONTWAIT);
	check_err(got.ret, EAGAIN);
	check_eq(poll_one(rx, POLLIN, 0), 0);
	close(rx);
}

/* A reader that peeks changes nothing: to learn a size is not to refuse the
 * mark. And poll() does not report the mark that it has not seen again, until
 * something else arrives.
 */
static void peek_finds_none(int reserve)
{
	int tx, other = rds_bound(NULL), rx;
	union addr from, to;
	struct got got;

	tx = rds_bound(&from);
	rx = rds_bound(&to);
	rds_set_int(rx, SOL_RDS, XRDS_REPLY_RESERVE, reserve);
	one_and_close(tx, &to);
	expect_number(rx, 0);
	check_eq(poll_one(rx, POLLIN, 0), POLLIN);
	recv_flags(&got, rx, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
	check_err(got.ret, EAGAIN);
	check_eq(poll_one(rx, POLLIN, PEEK_MS), 0);
	send_numbers(other, &to, 1);
	check_eq(poll_one(rx, POLLIN, WAIT_MS), POLLIN);
	recv_flags(&got, rx, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
	check_ret(got.ret, sizeof(got.number));
	expect_end(rx, &from, XRDS_EOS_FINISHED);
	expect_number(rx, 0);
	close(other);
	close(rx);
}

/* Another reader that sees the mark, and leaves it, is told again. */
static void peek_by_another(void)
{
	union addr from, to;
	int tx = rds_bound(&from), rx = rds_bound(&to);
	struct got got;

	one_and_close(tx, &to);
	expect_number(rx, 0);
	recv_flags(&got, rx, 0, MSG_PEEK | MSG_DONTWAIT);
	check_err(got.ret, EAGAIN);
	check_eq(poll_one(rx, POLLIN, 0), 0);
	recv_flags(&got, rx, MARK_ROOM, MSG_PEEK | MSG_DONTWAIT);
	check_eq(got.reason, XRDS_EOS_FINISHED);
	check_eq(poll_one(rx, POLLIN, 0), POLLIN);
	expect_end(rx, &from, XRDS_EOS_FINISHED);
	close(rx);
}

static void peek_no_control(void)
{
	peek_finds_none(0);
	peek_finds_none(SMALL_BYTES);
	peek_by_another();
}

/* And it waits for a message as it should: asleep, for a time, until one
 * comes.
 */
static void peek_waits(int reserve)
{
	int tx, other = rds_bound(NULL), rx;
	union addr from, to;
	struct got got;

	tx = rds_bound(&from);
	rx = rds_bound(&to);
	rds_set_int(rx, SOL_RDS, XRDS_REPLY_RESERVE, reserve);
	rds_timeout(rx, SO_RCVTIMEO, PEEK_MS);
	one_and_close(tx, &to);
	expect_number(rx, 0);
	recv_flags(&got, rx, 0, MSG_PEEK);
	check_err(got.ret, ETIMEDOUT);
	send_numbers(other, &to, 1);
	recv_flags(&got, rx, 0, MSG_PEEK);
	check_ret(got.ret, sizeof(got.number));
	expect_end(rx, &from, XRDS_EOS_FINISHED);
	expect_number(rx, 0);
	close(other);
	close(rx);
}

static void peek_no_control_waits(void)
{
	peek_waits(0);
	peek_waits(SMALL_BYTES);
}

static void little_room_finds(int reserve)
{
	union addr from, to;
	int tx = rds_bound(&from), rx = rds_bound(&to);
	struct got got;

	rds_set_int(rx, SOL_RDS, XRDS_REPLY_RESERVE, reserve);
	send_numbers(tx, &to, 1);
	close(tx);
	expect_number(rx, 0);
	poll_one(rx, POLLIN, WAIT_MS);
	recv_flags(&got, rx, CMSG_LEN(0), MSG_DONTWAIT);
	check_ret(got.ret, 0);
	check_eq(got.reason, NONE);
	check(got.flags & MSG_CTRUNC);
	/* it stays, and can be peeked at */
	recv_flags(&got, rx, MARK_ROOM, MSG_DONTWAIT | MSG_PEEK);
	check_ret(got.ret, 0);
	check_eq(got.reason, XRDS_EOS_FINISHED);
	expect_end(rx, &from, XRDS_EOS_FINISHED);
	expect_nothing(rx);
	close(rx);
}

static void little_room(void)
{
	little_room_finds(0);
	little_room_finds(SMALL_BYTES);
}

/* Takes messages, and has too little room for marks. */
static void *read_little(void *arg)
{
	const struct little_reader *r = arg;
	struct got got;

	while (!__atomic_load_n(&r->done, __ATOMIC_RELAXED))
		recv_flags(&got, r->fd, CMSG_LEN(0), MSG_DONTWAIT);
	return NULL;
}

/* A mark that another thread has no room for stays where it is: no message of
 * the next stream is read before it.
 */
static void little_room_order(void)
{
	struct little_reader little = { 0 };
	union addr from = { 0 }, to;
	pthread_t reader;
	int ends = 0;
	struct got got;

	little.fd = rds_bound(&to);
	for (int i = 0; i < SHORT_STREAMS; i++) {
		int tx = i ? rds_bound_to(tap_host, addr_port(&from), NULL) :
			     rds_bound(&from);

		check_ret(rds_send(tx, &i, sizeof(i), 0, &to), sizeof(i));
		linger(tx, LINGER_S);
		close(tx);
	}
	check_eq(pthread_create(&reader, NULL, read_little, &little), 0);
	while (ends < SHORT_STREAMS) {
		recv_now(&got, little.fd);
		check(got.ret >= 0 || errno == EAGAIN);
		if (got.ret > 0)
			check(got.number <= ends);
		ends += got.reason != NONE;
	}
	__atomic_store_n(&little.done, true, __ATOMIC_RELAXED);
	pthread_join(reader, NULL);
	close(little.fd);
}

static void status(void)
{
	union addr from, to;
	int tx = rds_bound(&from), rx = rds_bound(&to);
	struct xrds_dest_status st;

	send_numbers(tx, &to, 1);
	expect_number(rx, 0);
	check_ret(dest_status(tx, &to, &st), 0);
	check_eq(st.flags, 0);
	check_ret(dest_status(rx, &from, &st), 0);
	check_eq(st.flags, 0);
	must(shutdown(tx, SHUT_WR));
	expect_end(rx, &from, XRDS_EOS_FINISHED);
	check_ret(dest_status(tx, &to, &st), 0);
	check_eq(st.flags, XRDS_DEST_EOS_SENT);
	check_eq(st.acked_msgs, 1);
	check_ret(dest_status(rx, &from, &st), 0);
	check_eq(st.flags, XRDS_DEST_EOS_RCVD);
	close(tx);
	close(rx);
}

/* With replies reserved the mark waits for the messages before it. */
static void behind_held(void)
{
	union addr from, to;
	int tx = rds_bound(&from), rx = rds_bound(&to);
	u32 bytes = SMALL_BYTES;
	struct got got;

	rds_set_int(rx, SOL_SOCKET, SO_SNDBUF, SMALL_BYTES);
	must(setsockopt(rx, SOL_RDS, XRDS_REPLY_RESERVE, &bytes,
			sizeof(bytes)));
	send_numbers(tx, &to, 2);
	must(shutdown(tx, SHUT_WR));
	expect_number(rx, 0);
	must_wait(polls_hup, &rx, WAIT_MS);
	/* the second is held back, there is room for one answer */
	recv_now(&got, rx);
	check_err(got.ret, EAGAIN);
	check_ret(setsockopt(rx, SOL_RDS, XRDS_REPLY_RELEASE, &from.ss,
			     sizeof(from.ss)), 0);
	expect_number(rx, 1);
	expect_end(rx, &from, XRDS_EOS_FINISHED);
	close(tx);
	close(rx);
}

static const struct tap_case cases[] = {
	{ "shut_wr", "SHUT_WR: messages, then one mark; sends fail; reads go on",
	  shut_wr, TAP_EACH_FAMILY, 0 },
	{ "sigpipe", "SIGPIPE, unless MSG_NOSIGNAL", sigpipe, 0, 0 },
	{ "bad_calls", "unbound: ENOTCONN; unknown: EINVAL", bad_calls, 0, 0 },
	{ "by_close", "messages under way at close() arrive, then the mark",
	  by_close, TAP_EACH_FAMILY, 0 },
	{ "by_death", "the same for a killed process", by_death, 0, 0 },
	{ "aborted", "SO_LINGER {1, 0}: reason 2, and nothing behind it",
	  aborted, TAP_EACH_FAMILY, 0 },
	{ "lingers", "SO_LINGER {1, n}: close() waits for the acknowledgment",
	  lingers, 0, 0 },
	{ "linger_bound", "and not for longer than n seconds", linger_bound, 0,
	  0 },
	{ "linger_worker", "nor where no process closes it", linger_worker, 0,
	  0 },
	{ "linger_lowered", "linger_ms is that of the time of close()",
	  linger_lowered, 0, 0 },
	{ "each_destination", "one mark to each destination that was sent to",
	  each_destination, 0, 0 },
	{ "blocked_sender", "SHUT_WR wakes a sender that waits for space",
	  blocked_sender, 0, 0 },
	{ "failed_send", "no mark where the only send has failed", failed_send,
	  0, 0 },
	{ "rdhup", "POLLRDHUP when all streams end, POLLHUP if ours has, too",
	  rdhup, TAP_EACH_FAMILY, 0 },
	{ "rdhup_many", "POLLRDHUP when more streams end than are remembered",
	  rdhup_many, 0, 0 },
	{ "rdhup_forgotten", "none while one goes on that is not remembered",
	  rdhup_forgotten, 0, 0 },
	{ "rdhup_few", "nor while some of very many do", rdhup_few, 0, 0 },
	{ "rdhup_evicts", "nor by the sender that took the place of one",
	  rdhup_evicts, 0, 60 },
	{ "rdhup_wakes", "a sleeper for POLLRDHUP only is woken", rdhup_wakes,
	  0, 0 },
	{ "shut_rd", "SHUT_RD drops messages that are queued or arrive",
	  shut_rd, TAP_EACH_FAMILY, 0 },
	{ "shut_rd_wakes", "SHUT_RD wakes a sleeping reader", shut_rd_wakes, 0,
	  0 },
	{ "shut_rd_clears", "and ends congestion", shut_rd_clears, 0, 0 },
	{ "no_control", "without room for control messages no mark is seen",
	  no_control, 0, 0 },
	{ "peek_no_control", "nor is one dropped by a reader that only peeks",
	  peek_no_control, 0, 0 },
	{ "peek_no_control_waits",
	  "a reader that peeks sleeps until there is a message",
	  peek_no_control_waits, 0, 0 },
	{ "little_room", "with too little room it stays", little_room, 0, 0 },
	{ "little_room_order", "in front of the next stream, for all readers",
	  little_room_order, 0, 0 },
	{ "status", "XRDS_DEST_STATUS tells both directions", status, 0, 0 },
	{ "behind_held", "it overtakes no message that is held back",
	  behind_held, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
