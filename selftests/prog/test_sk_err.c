// SPDX-License-Identifier: GPL-2.0-only
/*
 * A call that ends early leaves no error behind: a later call of any kind does
 * as it would have done without the first.
 *
 * timeout: 120
 */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"
#include "uring.h"

enum {
	TIMEOUT_MS	= 150,
	TICK_MS		= 50,
	BYTES		= 3,
	CALL		= 7,
	CANCEL		= 8,
	BATCH		= 2,
};

/* ------------------------------------------------------ ends of a call */

/* One message is queued; the second receive fails */
static int batch(int fd, void *second)
{
	char first[BYTES];
	struct iovec iov[BATCH] = {
		{ first, sizeof(first) }, { second, BYTES },
	};
	struct mmsghdr two[BATCH] = {
		{ .msg_hdr = { .msg_iov = &iov[0], .msg_iovlen = 1 } },
		{ .msg_hdr = { .msg_iov = &iov[1], .msg_iovlen = 1 } },
	};

	return recvmmsg(fd, two, BATCH, 0, NULL);
}

static void queue_one(int fd)
{
	union addr self = rds_self(fd);

	must(rds_send(fd, "abc", BYTES, 0, &self));
	check(poll_one(fd, POLLIN, tap_ms(WAIT_MS)) & POLLIN);
}

static void batch_timeout(int fd)
{
	char data[BYTES];

	queue_one(fd);
	rds_timeout(fd, SO_RCVTIMEO, TIMEOUT_MS);
	check_ret(batch(fd, data), 1);
}

static void batch_signal(int fd)
{
	char data[BYTES];

	queue_one(fd);
	tap_interrupt(TICK_MS, 0);
	check_ret(batch(fd, data), 1);
	tap_interrupt(0, 0);
}

static void batch_restart(int fd)
{
	char data[BYTES];

	queue_one(fd);
	tap_interrupt(TICK_MS, SA_RESTART);
	check_ret(batch(fd, data), 1);
	tap_interrupt(0, SA_RESTART);
}

static void batch_signal_timed(int fd)
{
	rds_timeout(fd, SO_RCVTIMEO, WAIT_MS);
	batch_signal(fd);
}

static void batch_fault(int fd)
{
	char data[BYTES];

	queue_one(fd);
	queue_one(fd);
	check_ret(batch(fd, (void *)1), 1);
	/* the message that could not be copied is still there */
	check_ret(rds_recv(fd, data, sizeof(data), MSG_DONTWAIT, NULL), BYTES);
}

static void batch_none(int fd)
{
	char data[BYTES];

	rds_timeout(fd, SO_RCVTIMEO, TIMEOUT_MS);
	check_err(batch(fd, data), ETIMEDOUT);
}

static void recv_timeout(int fd)
{
	char data[BYTES];

	rds_timeout(fd, SO_RCVTIMEO, TIMEOUT_MS);
	check_err(rds_recv(fd, data, sizeof(data), 0, NULL), ETIMEDOUT);
}

static void recv_signal(int fd)
{
	char data[BYTES];

	tap_interrupt(TICK_MS, 0);
	check_err(rds_recv(fd, data, sizeof(data), 0, NULL), EINTR);
	tap_interrupt(0, 0);
}

static void recv_fault(int fd)
{
	char data[BYTES];

	queue_one(fd);
	check_err(rds_recv(fd, (void *)1, BYTES, 0, NULL), EFAULT);
	check_ret(rds_recv(fd, data, sizeof(data), MSG_DONTWAIT, NULL), BYTES);
}

static void ring_recv(struct uring *ring, int fd, void *data)
{
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_RECV,
		.fd = fd,
		.addr = (uintptr_t)data,
		.len = BYTES,
		.user_data = CALL,
	};

	uring_submit(ring, &sqe);
}

static void ring_cancel(struct uring *ring)
{
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_ASYNC_CANCEL,
		.fd = -1,
		.addr = CALL,
		.user_data = CANCEL,
	};

	uring_submit(ring, &sqe);
}

static void ring_cancelled(int fd)
{
	struct io_uring_cqe cqe;
	char data[BYTES];
	struct uring ring;

	uring_open(&ring);
	ring_recv(&ring, fd, data);
	ring_cancel(&ring);
	for (int i = 0; i < 2; i++) {
		if (!uring_next(&ring, &cqe, tap_ms(WAIT_MS)))
			tap_fail("completion %d did not come", i);
		check_eq(cqe.res, cqe.user_data == CALL ? -ECANCELED : 0);
	}
	uring_close(&ring);
}

/* ------------------------------------------------- looks at the socket */

static void look_error(int fd)
{
	check_eq(rds_get_int(fd, SOL_SOCKET, SO_ERROR), 0);
}

static void look_poll(int fd)
{
	check_eq(poll_one(fd, POLLIN | POLLOUT | POLLERR, 0),
		 POLLIN | POLLOUT);
}

static void look_epoll(int fd)
{
	struct epoll_event event = { .events = EPOLLIN }, got = { 0 };
	int ep = must(epoll_create1(0));

	must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event));
	check_ret(epoll_wait(ep, &got, 1, 0), 1);
	check_eq(got.events, EPOLLIN);
	close(ep);
}

static void look_recv(int fd)
{
	char data[BYTES];

	check_ret(rds_recv(fd, data, sizeof(data), MSG_DONTWAIT, NULL), BYTES);
}

static void look_recvmmsg(int fd)
{
	char data[BYTES];
	struct iovec iov = { data, sizeof(data) };
	struct mmsghdr one = {
		.msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 },
	};

	check_ret(recvmmsg(fd, &one, 1, MSG_DONTWAIT, NULL), 1);
	check_eq(one.msg_len, BYTES);
}

static void look_send(int fd)
{
	union addr self = rds_self(fd);

	check_ret(rds_send(fd, "abc", BYTES, MSG_DONTWAIT, &self), BYTES);
}

static void look_ring(int fd)
{
	struct io_uring_cqe cqe = { 0 };
	char data[BYTES];
	struct uring ring;

	uring_open(&ring);
	ring_recv(&ring, fd, data);
	check(uring_next(&ring, &cqe, tap_ms(WAIT_MS)));
	check_eq(cqe.res, BYTES);
	uring_close(&ring);
}

static void look_ring_poll(int fd)
{
	struct io_uring_cqe cqe = { 0 };
	struct uring ring;

	uring_open(&ring);
	uring_poll(&ring, fd, POLLIN | POLLERR, false, CALL);
	check(uring_next(&ring, &cqe, tap_ms(WAIT_MS)));
	check_eq(cqe.res, POLLIN);
	uring_close(&ring);
}

static const struct {
	const char *name;
	void (*look)(int fd);
} looks[] = {
	{ "SO_ERROR", look_error },	{ "poll", look_poll },
	{ "epoll", look_epoll },	{ "recv", look_recv },
	{ "recvmmsg", look_recvmmsg },	{ "send", look_send },
	{ "io_uring recv", look_ring },	{ "io_uring poll", look_ring_poll },
};

static void look_after(void (*end)(int fd), unsigned int i)
{
	int fd = rds_bound(NULL);

	tap_context("then %s", looks[i].name);
	end(fd);
	queue_one(fd);
	looks[i].look(fd);
	tap_context("then %s, and afterwards", looks[i].name);
	check_eq(rds_get_int(fd, SOL_SOCKET, SO_ERROR), 0);
	check(!(poll_one(fd, POLLIN, 0) & POLLERR));
	close(fd);
}

/* Each look is the first after the end of a call, on a socket of its own and in
 * a process of its own, as the end of a ring interrupts a later wait.
 */
static void leaves_nothing(void (*end)(int fd))
{
	for (size_t i = 0; i < ARRAY_SIZE(looks); i++) {
		pid_t pid = must(fork());

		if (!pid) {
			look_after(end, i);
			tap_child_exit();
		}
		tap_child_join(pid);
	}
}

static void after_batch_timeout(void)
{
	leaves_nothing(batch_timeout);
}

static void after_batch_signal(void)
{
	leaves_nothing(batch_signal);
}

static void after_batch_restart(void)
{
	leaves_nothing(batch_restart);
}

static void after_batch_signal_timed(void)
{
	leaves_nothing(batch_signal_timed);
}

static void after_batch_fault(void)
{
	leaves_nothing(batch_fault);
}

static void after_batch_none(void)
{
	leaves_nothing(batch_none);
}

static void after_recv_timeout(void)
{
	leaves_nothing(recv_timeout);
}

static void after_recv_signal(void)
{
	leaves_nothing(recv_signal);
}

static void after_recv_fault(void)
{
	leaves_nothing(recv_fault);
}

static void after_ring_cancelled(void)
{
	leaves_nothing(ring_cancelled);
}

static const struct tap_case cases[] = {
	{ "batch_timeout", "recvmmsg with a message, then SO_RCVTIMEO",
	  after_batch_timeout, 0, 0 },
	{ "batch_signal", "recvmmsg with a message, then a signal",
	  after_batch_signal, 0, 0 },
	{ "batch_restart", "recvmmsg with a message, then a signal with SA_RESTART",
	  after_batch_restart, 0, 0 },
	{ "batch_signal_timed", "recvmmsg with SO_RCVTIMEO, a message, then a signal",
	  after_batch_signal_timed, 0, 0 },
	{ "batch_fault", "recvmmsg with a message, then EFAULT",
	  after_batch_fault, 0, 0 },
	{ "batch_none", "recvmmsg without a message: its error is returned only",
	  after_batch_none, 0, 0 },
	{ "recv_timeout", "recvmsg that ends by SO_RCVTIMEO",
	  after_recv_timeout, 0, 0 },
	{ "recv_signal", "recvmsg that ends by a signal",
	  after_recv_signal, 0, 0 },
	{ "recv_fault", "recvmsg that ends by EFAULT",
	  after_recv_fault, 0, 0 },
	{ "ring_cancelled", "a receive of io_uring that is cancelled",
	  after_ring_cancelled, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
