// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of delivery: XRDS_DELIVERED_EVENT tells an open socket, once, that all
 * it has sent is acknowledged; and how long a closed socket goes on.
 *
 * timeout: 120
 */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counters.h"
#include "rdma.h"
#include "sock.h"
#include "tap.h"
#include "turns.h"
#include "waker.h"

#ifndef POLLRDHUP
#define POLLRDHUP 0x2000
#endif

enum {
	LINGER_S	= 4,
	RECEIVERS	= 3,
	QUIET_MS	= 50,
	ROUNDS		= 100,
	BYTES		= 4096,
	LONG_BYTES	= 128 << 10,	/* of an op that is carried out by a work */
	NONE		= -1,
	ROOM		= CMSG_SPACE(sizeof(u32)),
};

/* Of all cases: the sender, and its receivers */
static int tx;
static int rx[RECEIVERS];
static union addr to[RECEIVERS];

static void begin(int event)
{
	tx = rds_bound(NULL);
	for (int i = 0; i < RECEIVERS; i++)
		rx[i] = rds_bound(&to[i]);
	rds_set_int(tx, SOL_RDS, XRDS_DELIVERED_EVENT, event);
}

static void end(void)
{
	close(tx);
	for (int i = 0; i < RECEIVERS; i++)
		close(rx[i]);
}

static void send_to_each(void)
{
	for (int i = 0; i < RECEIVERS; i++)
		check_ret(rds_send(tx, "x", 1, 0, &to[i]), 1);
}

/* One recvmsg() without waiting: XRDS_CMSG_EOS, or NONE; *m is its result */
static int read_event(int fd, void *control, size_t room, struct msghdr *m,
		      ssize_t *ret)
{
	static union addr from;
	static char data;
	struct iovec iov = { &data, 1 };
	struct cmsghdr *c;
	u32 reason;

	*m = (struct msghdr){
		.msg_name = &from, .msg_namelen = sizeof(from),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = room,
	};
	*ret = recvmsg(fd, m, MSG_DONTWAIT);
	m->msg_iov = NULL;
	c = *ret < 0 ? NULL : CMSG_FIRSTHDR(m);
	if (!c)
		return NONE;
	check_eq(c->cmsg_level, SOL_RDS);
	check_eq(c->cmsg_type, XRDS_CMSG_EOS);
	check_eq(c->cmsg_len, CMSG_LEN(sizeof(reason)));
	memcpy(&reason, CMSG_DATA(c), sizeof(reason));
	return reason;
}

static void expect_event(int reason)
{
	char control[ROOM] __aligned(8);
	struct msghdr m;
	ssize_t ret;

	/* SHUT_RDWR is a hangup as well */
	check_eq(poll_one(tx, POLLIN | POLLRDNORM, tap_ms(WAIT_MS)) & ~POLLHUP,
		 POLLIN | POLLRDNORM);
	check_eq(read_event(tx, control, ROOM, &m, &ret), reason);
	check_ret(ret, 0);
	check_eq(m.msg_namelen, 0);
	check_eq(m.msg_flags & MSG_CTRUNC, 0);
}

static void expect_none(void)
{
	char control[ROOM] __aligned(8);
	struct msghdr m;
	ssize_t ret;

	check_eq(poll_one(tx, POLLIN, QUIET_MS), 0);
	check_eq(read_event(tx, control, ROOM, &m, &ret), NONE);
	check_err(ret, EAGAIN);
}

/* Each receiver has its message and the end of the stream, without waiting. */
static void expect_arrived(void)
{
	char control[ROOM] __aligned(8);
	struct msghdr m;
	ssize_t ret;

	for (int i = 0; i < RECEIVERS; i++) {
		tap_context("receiver %d", i);
		check_eq(read_event(rx[i], control, ROOM, &m, &ret), NONE);
		check_ret(ret, 1);
		check_eq(read_event(rx[i], control, ROOM, &m, &ret),
			 XRDS_EOS_FINISHED);
		check_ret(ret, 0);
	}
	tap_context("afterwards");
}

/* ------------------------------------------------------------------ event */

static void shut_wr(void)
{
	begin(1);
	send_to_each();
	expect_none();
	stall_loop();
	send_to_each();
	check_ret(shutdown(tx, SHUT_WR), 0);
	expect_none();
	knob("net/xrds/loop/delay_ms", 0);
	expect_event(XRDS_EOS_DELIVERED);
	for (int i = 0; i < RECEIVERS; i++)
		check_ret(rds_recv(rx[i], &(char){ 0 }, 1, MSG_DONTWAIT, NULL),
			  1);
	expect_arrived();
	/* once */
	expect_none();
	check_ret(shutdown(tx, SHUT_WR), 0);
	expect_none();
	end();
}

static void shut_rdwr(void)
{
	char control[ROOM] __aligned(8);
	struct msghdr m;
	long long until;
	ssize_t ret;
	int reason;

	begin(1);
	stall_loop();
	send_to_each();
	check_ret(shutdown(tx, SHUT_RDWR), 0);
	/* always readable now; and there is no event yet */
	check_eq(read_event(tx, control, ROOM, &m, &ret), NONE);
	check_ret(ret, 0);
	check_eq(m.msg_flags & MSG_CTRUNC, 0);
	knob("net/xrds/loop/delay_ms", 0);
	do {
		poll_one(tx, POLLIN, QUIET_MS);
	} while (rds_outq(tx));
	/* the marks are behind */
	for (int i = 0; i < RECEIVERS; i++) {
		check_eq(poll_one(rx[i], POLLRDHUP, tap_ms(WAIT_MS)),
			 POLLRDHUP);
	}
	/* which came a moment before their acknowledgment; and poll() does not wait */
	until = tap_now_ms() + tap_ms(WAIT_MS);
	do {
		reason = read_event(tx, control, ROOM, &m, &ret);
		check_ret(ret, 0);
	} while (reason == NONE && tap_now_ms() < until);
	check_eq(reason, XRDS_EOS_DELIVERED);
	check_eq(m.msg_namelen, 0);
	check_eq(m.msg_flags & MSG_CTRUNC, 0);
	check_eq(read_event(tx, control, ROOM, &m, &ret), NONE);
	check_ret(ret, 0);
	expect_arrived();
	end();
}

static void no_streams(void)
{
	begin(1);
	check_err(rds_send(tx, (void *)1, BYTES, 0, &to[0]), EFAULT);
	check_ret(shutdown(tx, SHUT_WR), 0);
	check_eq(poll_one(tx, POLLIN, 0), POLLIN);
	expect_event(XRDS_EOS_DELIVERED);
	expect_none();
	end();
}

static void all_acked(void)
{
	begin(1);
	send_to_each();
	must_wait(rds_all_acked, &tx, WAIT_MS);
	check_ret(shutdown(tx, SHUT_WR), 0);
	expect_event(XRDS_EOS_DELIVERED);
	expect_arrived();
	end();
}

/* To one that has not asked it is no event, until it asks. */
static void not_asked(void)
{
	struct waker w;

	begin(0);
	send_to_each();
	check_ret(shutdown(tx, SHUT_WR), 0);
	for (int i = 0; i < RECEIVERS; i++)
		check_eq(poll_one(rx[i], POLLRDHUP, tap_ms(WAIT_MS)),
			 POLLRDHUP);
	expect_none();
	waker_start(&w, tx, POLLIN);
	rds_set_int(tx, SOL_RDS, XRDS_DELIVERED_EVENT, 1);
	check_eq(pthread_join(w.thread, NULL), 0);
	check_eq(w.seen, POLLIN);
	rds_set_int(tx, SOL_RDS, XRDS_DELIVERED_EVENT, 0);
	expect_none();
	rds_set_int(tx, SOL_RDS, XRDS_DELIVERED_EVENT, 1);
	expect_event(XRDS_EOS_DELIVERED);
	end();
}

static void wakes(void)
{
	struct waker polls, reads;

	begin(1);
	stall_loop();
	send_to_each();
	check_ret(shutdown(tx, SHUT_WR), 0);
	waker_start(&polls, tx, POLLIN);
	waker_start_reader(&reads, tx);
	knob("net/xrds/loop/delay_ms", 0);
	check_eq(pthread_join(polls.thread, NULL), 0);
	check_eq(polls.returns, 1);
	check_eq(polls.seen, POLLIN);
	/* it has no space for the event */
	check_eq(pthread_join(reads.thread, NULL), 0);
	expect_event(XRDS_EOS_DELIVERED);
	end();
}

static void stays(void)
{
	char control[ROOM] __aligned(8);
	struct msghdr m;
	ssize_t ret;

	begin(1);
	check_ret(shutdown(tx, SHUT_WR), 0);
	check_eq(read_event(tx, NULL, 0, &m, &ret), NONE);
	check_ret(ret, 0);
	check(m.msg_flags & MSG_CTRUNC);
	check_eq(read_event(tx, control, CMSG_LEN(0), &m, &ret), NONE);
	check_ret(ret, 0);
	check(m.msg_flags & MSG_CTRUNC);
	check_eq(read_event(tx, before_wall(PROT_READ | PROT_WRITE), ROOM, &m,
			    &ret), NONE);
	check_err(ret, EFAULT);
	expect_event(XRDS_EOS_DELIVERED);
	expect_none();
	end();
}

/* The program wants these dropped: nothing else is. */
static void cancelled(void)
{
	begin(1);
	stall_loop();
	send_to_each();
	check_ret(shutdown(tx, SHUT_WR), 0);
	must(setsockopt(tx, SOL_RDS, RDS_CANCEL_SENT_TO, NULL, 0));
	expect_none();
	knob("net/xrds/loop/delay_ms", 0);
	expect_event(XRDS_EOS_DELIVERED);
	end();
}

/* An evicted destination is to read its end first. */
static void evicted(void)
{
	begin(1);
	knob("net/xrds/sock_max_dests", 1);
	for (int i = 0; i < RECEIVERS; i++) {
		check_ret(rds_send(tx, "x", 1, 0, &to[i]), 1);
		must_wait(rds_all_acked, &tx, WAIT_MS);
	}
	stall_loop();
	check_ret(shutdown(tx, SHUT_WR), 0);
	expect_none();
	knob("net/xrds/loop/delay_ms", 0);
	expect_event(XRDS_EOS_DELIVERED);
	expect_arrived();
	end();
}

/* The message of an op that fails goes with it, as it does over the wire. */
static void failed_op(size_t bytes)
{
	long long dropped = counter_now("send_drop_op");
	char *mem = pages(bytes);
	struct xrds_dest_status st;
	struct target target;
	struct op op;

	tap_context("op of %zu bytes", bytes);
	begin(1);
	target_open(&target, PAGE_BYTES, RDS_RDMA_READWRITE);
	op = op_write(&target, PAGE_BYTES, mem, bytes);
	op.payload = "x";
	op.len = 1;
	check_ret(op_send(tx, &target.addr, &op), 1);
	must_wait(rds_all_acked, &tx, WAIT_MS);
	check_ret(dest_status(tx, &target.addr, &st), 0);
	check_eq(st.acked_msgs, 0);
	check_eq(counter_now("send_drop_op"), dropped + 1);
	check_ret(shutdown(tx, SHUT_WR), 0);
	expect_event(XRDS_EOS_UNDELIVERED);
	target_close(&target);
	munmap(mem, bytes);
	end();
}

static void failed_ops(void)
{
	failed_op(BYTES);
	failed_op(LONG_BYTES);
}

/* ------------------------------------------------------------------- chance */

static void *send_many(void *arg)
{
	static const char data[BYTES];
	long *sent = arg;

	while (rds_send(tx, data, 1, MSG_NOSIGNAL, &to[*sent % RECEIVERS]) == 1)
		WRITE_ONCE(*sent, *sent + 1);
	check_eq(errno, EPIPE);
	return NULL;
}

static bool some_sent(void *arg)
{
	return READ_ONCE(*(long *)arg) >= RECEIVERS;
}

/* While a thread sends: the event is behind all that it has sent. */
static void while_sending(void)
{
	pthread_t thread;
	long sent, got;
	char byte;

	for (int round = 0; round < tap_count(ROUNDS); round++) {
		tap_context("round %d", round);
		begin(1);
		sent = 0;
		got = 0;
		if (round % 2)
			knob("net/xrds/loop/delay_ms", 1);
		check_eq(pthread_create(&thread, NULL, send_many, &sent), 0);
		must_wait(some_sent, &sent, WAIT_MS);
		check_ret(shutdown(tx, SHUT_WR), 0);
		expect_event(XRDS_EOS_DELIVERED);
		pthread_join(thread, NULL);
		for (int i = 0; i < RECEIVERS; i++)
			while (rds_recv(rx[i], &byte, 1, MSG_DONTWAIT,
					NULL) == 1)
				got++;
		check_eq(got, sent);
		expect_none();
		end();
		knob("net/xrds/loop/delay_ms", 0);
	}
}

/* ----------------------------------------------------------------- close() */

static bool given_up(void *arg)
{
	return counter_now("send_drop_closed") > *(long long *)arg;
}

/* close() waits for as long as the kernel delivers: nothing is left after it. */
static void linger_once(void)
{
	struct linger value = { .l_onoff = 1, .l_linger = LINGER_S };
	long long dropped = counter_now("send_drop_closed");
	int tx = rds_bound(NULL), rx;
	long long start;
	union addr to;

	rx = rds_bound(&to);
	stall_loop();
	knob("net/xrds/linger_ms", LINGER_S * 1000);
	check_ret(rds_send(tx, "x", 1, 0, &to), 1);
	must(setsockopt(tx, SOL_SOCKET, SO_LINGER, &value, sizeof(value)));
	turns_begin();
	start = tap_now_ms();
	close(tx);
	must_wait(given_up, &dropped, WAIT_MS);
	/* a time that begins behind that of close() ends after twice as long */
	check_range(turns_since(start), 0, LINGER_S * 1500);
	close(rx);
}

static const struct tap_case cases[] = {
	{ "shut_wr", "SHUT_WR: one event when the last stream is acknowledged",
	  shut_wr, TAP_EACH_FAMILY, 0 },
	{ "shut_rdwr", "SHUT_RDWR: the same", shut_rdwr, TAP_EACH_FAMILY, 0 },
	{ "no_streams", "without a stream it comes at once", no_streams, 0, 0 },
	{ "all_acked", "all acknowledged before: the marks are left", all_acked,
	  0, 0 },
	{ "not_asked", "only to a socket that asks, then or later", not_asked,
	  0, 0 },
	{ "wakes", "sleepers in poll() and recvmsg() are woken", wakes, 0, 0 },
	{ "stays", "it stays until a reader has got it", stays, 0, 0 },
	{ "cancelled", "messages that the program cancels are no loss",
	  cancelled, 0, 0 },
	{ "evicted", "it is behind the marks of evicted destinations", evicted,
	  0, 0 },
	{ "failed_ops", "messages of failed ops are lost", failed_ops, 0, 0 },
	{ "while_sending", "it is behind all that another thread sends",
	  while_sending, 0, 60 },
	{ "linger_once", "linger_ms begins with close(), not after its wait",
	  linger_once, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
