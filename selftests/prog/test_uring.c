// SPDX-License-Identifier: GPL-2.0-only
/*
 * io_uring's poll, single and multishot: it reports what poll() would, when it
 * would, and nothing else. And IORING_OP_SEND and RECVMSG, which wait as the ring
 * can.
 *
 * timeout: 120
 */
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "congest.h"
#include "counters.h"
#include "rdma.h"
#include "sock.h"
#include "tap.h"
#include "uring.h"

enum {
	CHUNK		= 4096,
	SPACE		= 64 * 1024,
	QUIET_MS	= 200,		/* long enough for a wrong event */
	ROUNDS		= 5,
	ID		= 77,
	REMOVAL		= 0,
};

static char chunk[CHUNK];
static struct uring ring;

/* The events of the next completion; whether more may follow is as given */
static int next_events(int ms, bool more)
{
	struct io_uring_cqe cqe;

	if (!uring_next(&ring, &cqe, ms))
		return 0;
	check_eq(cqe.user_data, ID);
	check_eq(!!(cqe.flags & IORING_CQE_F_MORE), more);
	return cqe.res;
}

static void check_no_event(void)
{
	check_eq(next_events(QUIET_MS, false), 0);
}

static int read_one(int fd)
{
	return rds_recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT, NULL);
}

/* ------------------------------------------------------------------ input */

static void input(void)
{
	union addr self;
	int fd = rds_bound(&self);

	uring_open(&ring);
	uring_poll(&ring, fd, POLLIN | POLLRDNORM, false, ID);
	check_no_event();
	must(rds_send(fd, "x", 1, 0, &self));
	check_eq(next_events(tap_ms(WAIT_MS), false), POLLIN | POLLRDNORM);
	/* once */
	must(rds_send(fd, "x", 1, 0, &self));
	check_no_event();
	/* a message that is there already is reported at once */
	uring_poll(&ring, fd, POLLIN, false, ID);
	check_eq(next_events(0, false), POLLIN);
	uring_close(&ring);
	close(fd);
}

static void input_multishot(void)
{
	int tx = rds_bound(NULL), fd;
	union addr to;

	fd = rds_bound(&to);
	uring_open(&ring);
	uring_poll(&ring, fd, POLLIN, true, ID);
	check_no_event();
	for (int i = 0; i < ROUNDS; i++) {
		tap_context("message %d", i);
		must(rds_send(tx, "x", 1, 0, &to));
		check_eq(next_events(tap_ms(WAIT_MS), true), POLLIN);
		check_ret(read_one(fd), 1);
	}
	/* each is an event, though nobody reads */
	for (int i = 0; i < ROUNDS; i++) {
		must(rds_send(tx, "x", 1, 0, &to));
		check_eq(next_events(tap_ms(WAIT_MS), true), POLLIN);
	}
	check_no_event();
	uring_close(&ring);
	close(fd);
	close(tx);
}

/* ----------------------------------------------------------------- output */

static void output_full(bool multishot)
{
	int fd = rds_bound(NULL), rx;
	union addr to;

	rx = rds_bound(&to);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	uring_open(&ring);
	for (int i = 0; i < 1 + multishot; i++) {
		stall_loop();
		send_until(fd, &to, CHUNK, EAGAIN, WAIT_MS);
		if (!i)
			uring_poll(&ring, fd, POLLOUT, multishot, ID);
		check_no_event();
		knob("net/xrds/loop/delay_ms", 0);
		check_eq(next_events(tap_ms(WAIT_MS), multishot), POLLOUT);
		check_ret(rds_send(fd, chunk, CHUNK, MSG_DONTWAIT, &to), CHUNK);
		must_wait(rds_all_acked, &fd, WAIT_MS);
		drain(rx);
	}
	uring_close(&ring);
	close(fd);
	close(rx);
}

static void output_full_once(void)
{
	output_full(false);
}

static void output_full_multishot(void)
{
	output_full(true);
}

static void output_congested(void)
{
	int fd = rds_bound(NULL), rx;
	union addr to;

	rx = small_receiver(&to);
	uring_open(&ring);
	for (int i = 0; i < ROUNDS; i++) {
		tap_context("round %d", i);
		send_until(fd, &to, CHUNK, ENOBUFS, WAIT_MS);
		uring_poll(&ring, fd, POLLOUT, false, ID);
		check_no_event();
		drain(rx);
		check_eq(next_events(tap_ms(WAIT_MS), false), POLLOUT);
	}
	/* the news, as an input event */
	send_until(fd, &to, CHUNK, ENOBUFS, WAIT_MS);
	uring_poll(&ring, fd, POLLWRBAND, false, ID);
	/* of the rounds before: they were polled for space only */
	if (next_events(0, false) == POLLWRBAND)
		uring_poll(&ring, fd, POLLWRBAND, false, ID);
	check_no_event();
	drain(rx);
	check_eq(next_events(tap_ms(WAIT_MS), false), POLLWRBAND);
	/* and a poll for space as well, when there is none */
	send_until(fd, &to, CHUNK, ENOBUFS, WAIT_MS);
	drain(rx);
	send_until(fd, &to, CHUNK, ENOBUFS, WAIT_MS);
	uring_poll(&ring, fd, POLLOUT | POLLWRBAND, false, ID);
	check_eq(next_events(tap_ms(WAIT_MS), false), POLLWRBAND);
	uring_close(&ring);
	close(fd);
	close(rx);
}

/* ------------------------------------------------------------------- send */

static void ring_send(int fd, int flags)
{
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_SEND,
		.flags = flags,
		.fd = fd,
		.addr = (uintptr_t)chunk,
		.len = CHUNK,
		.user_data = ID,
	};

	uring_submit(&ring, &sqe);
}

/* A blocking socket, to a congested destination */
static void send_congested(void)
{
	int fd = rds_bound(NULL), rx;
	union addr to;

	rx = small_receiver(&to);
	must(connect(fd, &to.sa, addr_len(&to)));
	uring_open(&ring);

	/* the ring tries without waiting, and is refused as any such caller */
	send_until(fd, &to, CHUNK, ENOBUFS, WAIT_MS);
	ring_send(fd, 0);
	check_eq(next_events(tap_ms(WAIT_MS), false), -ENOBUFS);

	/* a worker of the ring tries in the same way */
	ring_send(fd, IOSQE_ASYNC);
	check_eq(next_events(tap_ms(WAIT_MS), false), -ENOBUFS);

	rds_set_int(fd, SOL_RDS, XRDS_CONG_EAGAIN, 1);
	ring_send(fd, 0);
	check_no_event();
	drain(rx);
	check_eq(next_events(tap_ms(WAIT_MS), false), CHUNK);

	uring_close(&ring);
	close(fd);
	close(rx);
}

/* No space, which is EAGAIN anyway */
static void send_full(void)
{
	int fd = rds_bound(NULL), rx;
	union addr to;

	rx = rds_bound(&to);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	must(connect(fd, &to.sa, addr_len(&to)));
	stall_loop();
	uring_open(&ring);
	send_until(fd, &to, CHUNK, EAGAIN, WAIT_MS);
	ring_send(fd, 0);
	check_no_event();
	knob("net/xrds/loop/delay_ms", 0);
	check_eq(next_events(tap_ms(WAIT_MS), false), CHUNK);
	uring_close(&ring);
	close(fd);
	close(rx);
}

/* --------------------------------------------------------------- the rest */

static void barrier_reached(void)
{
	struct xrds_barrier b;
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;

	target_open(&t, PAGE_BYTES, RDS_RDMA_READWRITE);
	hold_ops();
	uring_open(&ring);
	op = op_write(&t, 0, pages(PAGE_BYTES), 64);
	check(op_send(fd, &t.addr, &op) >= 0);
	check_err(barrier(fd, &t.addr, 1, XRDS_BARRIER_NONBLOCK, 0, &b),
		  EAGAIN);
	uring_poll(&ring, fd, POLLIN | POLLRDBAND, false, ID);
	check_no_event();
	release_ops();
	check_eq(next_events(tap_ms(WAIT_MS), false), POLLIN | POLLRDBAND);
	check_ret(barrier(fd, &t.addr, 1, XRDS_BARRIER_NONBLOCK, 0, &b), 0);
	uring_close(&ring);
	close(fd);
	target_close(&t);
}

static void removed(void)
{
	struct io_uring_cqe cqe;
	int fd = rds_bound(NULL);

	uring_open(&ring);
	for (int multishot = 0; multishot < 2; multishot++) {
		uring_poll(&ring, fd, POLLIN, multishot, ID);
		uring_remove(&ring, ID);
		for (int i = 0; i < 2; i++) {
			check(uring_next(&ring, &cqe, tap_ms(WAIT_MS)));
			check_eq(cqe.res,
				 cqe.user_data == ID ? -ECANCELED : 0);
		}
	}
	check_no_event();
	uring_close(&ring);
	close(fd);
}

static bool all_closed(void *arg)
{
	return protocol_sockets() == *(long long *)arg;
}

static void closed(void)
{
	long long before = protocol_sockets();
	union addr self;
	int fd = rds_bound(&self);

	uring_open(&ring);
	uring_poll(&ring, fd, POLLIN, true, ID);
	uring_poll(&ring, fd, POLLERR, false, ID);
	must(rds_send(fd, "x", 1, 0, &self));
	close(fd);
	/* the polls hold the socket, and the ring the polls */
	uring_close(&ring);
	must_wait(all_closed, &before, WAIT_MS);
}

/* IORING_OP_RECVMSG waits for a notice as for a message. */
static void notice(void)
{
	char control[CMSG_SPACE(sizeof(struct rds_rdma_notify))] __aligned(8);
	struct iovec iov = { chunk, sizeof(chunk) };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int fd = rds_bound(NULL);
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_RECVMSG, .fd = fd,
		.addr = (uintptr_t)&m, .len = 1, .user_data = ID,
	};
	struct io_uring_cqe cqe;
	struct cmsghdr *c;
	struct target t;
	struct op op;

	target_open(&t, PAGE_BYTES, RDS_RDMA_READWRITE);
	uring_open(&ring);
	uring_submit(&ring, &sqe);
	check(!uring_next(&ring, &cqe, QUIET_MS));
	op = op_write(&t, 0, chunk, sizeof(chunk));
	op_set(&op, RDS_RDMA_NOTIFY_ME, ID);
	must(op_send(fd, &t.addr, &op));
	check(uring_next(&ring, &cqe, tap_ms(WAIT_MS)));
	check_eq(cqe.res, 0);
	c = CMSG_FIRSTHDR(&m);
	check(c && c->cmsg_type == RDS_CMSG_RDMA_STATUS);
	uring_close(&ring);
	target_close(&t);
	close(fd);
}

static const struct tap_case cases[] = {
	{ "input", "a message completes a poll, once", input, TAP_EACH_FAMILY,
	  0 },
	{ "input_multishot", "each message completes a multishot poll",
	  input_multishot, TAP_EACH_FAMILY, 0 },
	{ "output_full", "space completes a poll", output_full_once, 0, 0 },
	{ "output_full_multishot", "space does so each time it comes",
	  output_full_multishot, 0, 0 },
	{ "output_congested", "the end of congestion completes polls",
	  output_congested, TAP_EACH_FAMILY, 0 },
	{ "send_congested", "IORING_OP_SEND waits for the end of congestion, if told",
	  send_congested, 0, 0 },
	{ "send_full", "IORING_OP_SEND waits for space", send_full, 0, 0 },
	{ "barrier", "a barrier that is reached completes a poll",
	  barrier_reached, 0, 0 },
	{ "notice", "IORING_OP_RECVMSG waits for a notice", notice, 0, 0 },
	{ "removed", "a poll can be taken back", removed, 0, 0 },
	{ "closed", "a ring that ends lets go of the socket", closed, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
