// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that io_uring alone has: a send without a copy, and one receive for
 * many messages, each of which goes into a buffer that the ring chooses.
 *
 * timeout: 120
 */
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "rdma.h"
#include "sock.h"
#include "tap.h"
#include "uring.h"

enum {
	ID		= 77,
	GROUP		= 3,
	BUFS		= 16,
	BUF_BYTES	= 2048,
	SENT_BYTES	= 2 * BUF_BYTES,
	QUIET_MS	= 200,		/* long enough for a wrong completion */
	COOKIE		= 0x5eed,
	/* of a buffer of IORING_OP_RECVMSG, without control messages */
	HEAD		= sizeof(struct io_uring_recvmsg_out) +
			  sizeof(union addr),
	ROOM		= BUF_BYTES - HEAD,
};

static char bufs[BUFS][BUF_BYTES];
static char data[SENT_BYTES];
static struct uring ring;
/* The last completion */
static struct io_uring_cqe cqe;

static void begin(void)
{
	stamp(data, sizeof(data), ID);
	uring_open(&ring);
	uring_provide(&ring, bufs, BUF_BYTES, BUFS, GROUP);
}

/* The next completion, of the request under test; its result */
static int next(void)
{
	if (!uring_next(&ring, &cqe, tap_ms(WAIT_MS)))
		tap_fail("no completion");
	check_eq(cqe.user_data, ID);
	return cqe.res;
}

static void check_no_completion(void)
{
	check(!uring_next(&ring, &cqe, QUIET_MS));
}

/* --------------------------------------------------------- without a copy */

static void submit_sendmsg(int fd, int op, int flags, struct msghdr *m)
{
	struct io_uring_sqe sqe = {
		.opcode = op, .fd = fd, .addr = (uintptr_t)m, .len = 1,
		.msg_flags = flags, .user_data = ID,
	};

	uring_submit(&ring, &sqe);
}

static void submit_send_zc(int fd)
{
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_SEND_ZC, .fd = fd,
		.addr = (uintptr_t)data, .len = sizeof(data), .user_data = ID,
	};

	uring_submit(&ring, &sqe);
}

/* The ring promises a notice, before it asks the socket, and keeps its word. */
static void check_unsupported(int fd, int rx)
{
	check_eq(next(), -EOPNOTSUPP);
	if (cqe.flags & IORING_CQE_F_MORE) {
		check_eq(next(), 0);
		check_eq(cqe.flags, IORING_CQE_F_NOTIF);
	}
	check_no_completion();
	check_quiet(fd);
	check_quiet(rx);
}

static void zerocopy(void)
{
	struct iovec iov = { data, sizeof(data) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fd = rds_bound(NULL), rx;
	struct ctl ctl = { 0 };
	u32 cookie = COOKIE;
	struct got got;
	union addr to;

	rx = rds_bound(&to);
	must(connect(fd, &to.sa, addr_len(&to)));
	rds_set_int(fd, SOL_SOCKET, SO_ZEROCOPY, 1);
	begin();

	tap_context("SEND_ZC");
	submit_send_zc(fd);
	check_unsupported(fd, rx);
	tap_context("SENDMSG_ZC");
	submit_sendmsg(fd, IORING_OP_SENDMSG_ZC, 0, &m);
	check_unsupported(fd, rx);
	ctl_add(&ctl, RDS_CMSG_ZCOPY_COOKIE, &cookie, sizeof(cookie));
	m.msg_control = ctl.data;
	m.msg_controllen = ctl.len;
	tap_context("SENDMSG_ZC with a cookie");
	submit_sendmsg(fd, IORING_OP_SENDMSG_ZC, 0, &m);
	check_unsupported(fd, rx);

	/* as sendmsg() does it */
	tap_context("SENDMSG");
	submit_sendmsg(fd, IORING_OP_SENDMSG, MSG_ZEROCOPY, &m);
	check_eq(next(), sizeof(data));
	check_no_completion();
	check_ret(got_within(fd, &got, WAIT_MS), 0);
	check_eq(got.nr_zcopied, 1);
	check_ret(rds_recv_within(rx, data, sizeof(data), WAIT_MS, NULL),
		  sizeof(data));
	tap_context("%s", "");
	uring_close(&ring);
	close(fd);
	close(rx);
}

/* -------------------------------------------------- many messages received */

/* With space for the address and @control bytes of control messages */
static void submit_recvmsg(int fd, int flags, size_t control)
{
	static struct msghdr m;
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_RECVMSG, .flags = IOSQE_BUFFER_SELECT,
		.ioprio = IORING_RECV_MULTISHOT, .fd = fd,
		.addr = (uintptr_t)&m, .len = 1, .msg_flags = flags,
		.buf_group = GROUP, .user_data = ID,
	};

	m = (struct msghdr){
		.msg_namelen = sizeof(union addr), .msg_controllen = control,
	};
	uring_submit(&ring, &sqe);
}

static void submit_recv(int fd, int flags)
{
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_RECV, .flags = IOSQE_BUFFER_SELECT,
		.ioprio = IORING_RECV_MULTISHOT, .fd = fd, .msg_flags = flags,
		.buf_group = GROUP, .user_data = ID,
	};

	uring_submit(&ring, &sqe);
}

static const void *buffer(void)
{
	check(cqe.flags & IORING_CQE_F_BUFFER);
	return bufs[(cqe.flags >> IORING_CQE_BUFFER_SHIFT) % BUFS];
}

static bool more(void)
{
	return cqe.flags & IORING_CQE_F_MORE;
}

/* The next message, @tells bytes long, of which @len are in the buffer */
static void check_recvmsg(const union addr *from, size_t len, size_t tells,
			  int flags)
{
	const struct io_uring_recvmsg_out *out;
	union addr name = { 0 };

	if (!check_eq(next(), HEAD + len))
		return;
	out = buffer();
	check(more() == !!len);
	check_eq(out->payloadlen, tells);
	check_eq(out->controllen, 0);
	check_eq(out->flags, flags);
	if (check_eq(out->namelen, addr_len(from)))
		memcpy(&name, out + 1, out->namelen);
	check(addr_same(&name, from));
	check(!memcmp((const char *)out + HEAD, data, len));
}

/* The same without a head: its length is @res */
static void check_recv(size_t len, size_t res)
{
	if (!check_eq(next(), res))
		return;
	check(more());
	check(!memcmp(buffer(), data, len));
}

/* The request ends, and takes no further message */
static void cancel(int fd, int tx, const union addr *to)
{
	uring_cancel(&ring, ID);
	for (int i = 0; i < 2; i++) {
		if (!check(uring_next(&ring, &cqe, tap_ms(WAIT_MS))))
			return;
		check(!more());
		check_eq(cqe.res, cqe.user_data == ID ? -ECANCELED : 0);
	}
	must(rds_send(tx, data, 1, 0, to));
	check_no_completion();
	check_ret(rds_recv_within(fd, bufs, sizeof(bufs), WAIT_MS, NULL), 1);
}

/* One by one, and some that wait together */
static void many(bool with_head)
{
	static const size_t sizes[] = { 1, 100, 1024, 7, 500, 3, 1000 };
	enum { ALONE = 4 };
	union addr from[2], to;
	int tx[2], fd;

	fd = rds_bound(&to);
	for (int i = 0; i < 2; i++)
		tx[i] = rds_bound(&from[i]);
	begin();
	if (with_head)
		submit_recvmsg(fd, 0, 0);
	else
		submit_recv(fd, 0);
	check_no_completion();
	for (int i = 0, sent = 0; i < (int)ARRAY_SIZE(sizes); i++) {
		tap_context("message %d", i);
		for (; sent <= i || (i == ALONE &&
				     sent < (int)ARRAY_SIZE(sizes)); sent++)
			must(rds_send(tx[sent % 2], data, sizes[sent], 0, &to));
		if (with_head)
			check_recvmsg(&from[i % 2], sizes[i], sizes[i], 0);
		else
			check_recv(sizes[i], sizes[i]);
	}
	tap_context("%s", "");
	check_no_completion();
	cancel(fd, tx[0], &to);
	uring_close(&ring);
	close(fd);
	for (int i = 0; i < 2; i++)
		close(tx[i]);
}

static void recvmsg_many(void)
{
	many(true);
}

static void recv_many(void)
{
	many(false);
}

/* MSG_TRUNC tells the whole length, as it does for recvmsg(). */
static void truncated(void)
{
	union addr from, to;
	int tx = rds_bound(&from), fd = rds_bound(&to);

	begin();
	for (int tell = 0; tell < 2; tell++) {
		tap_context("RECVMSG, flags %#x", tell ? MSG_TRUNC : 0);
		submit_recvmsg(fd, tell ? MSG_TRUNC : 0, 0);
		must(rds_send(tx, data, SENT_BYTES, 0, &to));
		must(rds_send(tx, data, 10, 0, &to));
		check_recvmsg(&from, ROOM, tell ? SENT_BYTES : ROOM, MSG_TRUNC);
		check_recvmsg(&from, 10, 10, 0);
		cancel(fd, tx, &to);

		tap_context("RECV, flags %#x", tell ? MSG_TRUNC : 0);
		submit_recv(fd, tell ? MSG_TRUNC : 0);
		must(rds_send(tx, data, SENT_BYTES, 0, &to));
		must(rds_send(tx, data, 10, 0, &to));
		check_recv(BUF_BYTES, tell ? SENT_BYTES : BUF_BYTES);
		check_recv(10, 10);
		cancel(fd, tx, &to);
	}
	tap_context("%s", "");
	uring_close(&ring);
	close(fd);
	close(tx);
}

/* A message for which no buffer is left stays in the socket. */
static void no_buffers(void)
{
	enum { FEW = 2, OTHERS = 3 };
	union addr from, to;
	int tx = rds_bound(&from), fd = rds_bound(&to);

	stamp(data, sizeof(data), ID);
	uring_open(&ring);
	for (int round = 0; round < 2; round++) {
		tap_context("round %d", round);
		uring_provide(&ring, bufs, BUF_BYTES, FEW, GROUP);
		submit_recvmsg(fd, 0, 0);
		for (size_t i = 1; i <= FEW + OTHERS; i++)
			must(rds_send(tx, data, i, 0, &to));
		for (size_t i = 1; i <= FEW; i++)
			check_recvmsg(&from, i, i, 0);
		check_eq(next(), -ENOBUFS);
		check_eq(cqe.flags, 0);
		check_no_completion();
		for (size_t i = FEW + 1; i <= FEW + OTHERS; i++)
			check_ret(rds_recv_within(fd, bufs[FEW], BUF_BYTES,
						  WAIT_MS, NULL), i);
	}
	tap_context("%s", "");
	check_quiet(fd);
	uring_close(&ring);
	close(fd);
	close(tx);
}

/* A message without payload ends a request: the ring takes it for the end of file. An
 * end of a stream that the request has no space for is none.
 */
static void without_payload(void)
{
	union addr from, to;
	int tx = rds_bound(&from), other = rds_bound(NULL), fd = rds_bound(&to);

	begin();
	submit_recvmsg(fd, 0, 0);
	must(rds_send(other, data, 10, 0, &to));
	check_eq(next(), HEAD + 10);
	close(other);
	check_no_completion();
	must(rds_send(tx, data, 10, 0, &to));
	check_recvmsg(&from, 10, 10, 0);

	must(rds_send(tx, "", 0, 0, &to));
	check_recvmsg(&from, 0, 0, 0);
	must(rds_send(tx, data, 10, 0, &to));
	check_no_completion();
	submit_recvmsg(fd, 0, 0);
	check_recvmsg(&from, 10, 10, 0);
	cancel(fd, tx, &to);

	submit_recv(fd, 0);
	must(rds_send(tx, "", 0, 0, &to));
	check_eq(next(), 0);
	check_no_completion();
	uring_close(&ring);
	close(fd);
	close(tx);
}

/* An op's notice comes with its control message, and has no address. */
static void notice(void)
{
	const size_t control = CMSG_SPACE(sizeof(struct rds_rdma_notify));
	const struct io_uring_recvmsg_out *out;
	const struct cmsghdr *c;
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;

	target_open(&t, PAGE_BYTES, RDS_RDMA_READWRITE);
	begin();
	submit_recvmsg(fd, 0, control);
	op = op_write(&t, 0, data, sizeof(data));
	op_set(&op, RDS_RDMA_NOTIFY_ME, ID);
	must(op_send(fd, &t.addr, &op));
	check_eq(next(), HEAD + control);
	out = buffer();
	c = (const void *)((const char *)out + HEAD);
	check(!more());
	check_eq(out->namelen, 0);
	check_eq(out->payloadlen, 0);
	if (check_eq(out->controllen, control))
		check_eq(c->cmsg_type, RDS_CMSG_RDMA_STATUS);
	check_quiet(fd);
	uring_close(&ring);
	target_close(&t);
	close(fd);
}

static const struct tap_case cases[] = {
	{ "zerocopy", "SEND_ZC and SENDMSG_ZC are refused, and MSG_ZEROCOPY is not",
	  zerocopy, 0, 0 },
	{ "recvmsg_many", "one RECVMSG receives many messages, until cancelled",
	  recvmsg_many, TAP_EACH_FAMILY, 0 },
	{ "recv_many", "so does RECV", recv_many, 0, 0 },
	{ "truncated", "a message too large for its buffer is cut, and no other",
	  truncated, 0, 0 },
	{ "no_buffers", "without a buffer a message stays in the socket",
	  no_buffers, 0, 0 },
	{ "without_payload", "an empty message ends the request",
	  without_payload, 0, 0 },
	{ "notice", "so does a notice, which is complete", notice, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
