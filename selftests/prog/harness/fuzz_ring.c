// SPDX-License-Identifier: GPL-2.0-only
/*
 * io_uring for fuzzers: requests of all kinds on sockets, some of them linked,
 * taken back, or forgotten.
 */
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fuzz.h"
#include "tap.h"
#include "uring.h"

enum {
	ENTRIES		= 8,	/* as uring_open() makes it */
	IDS		= 16,
	BUFFER_BYTES	= 20000,
};

static __thread struct uring ring;
static __thread bool ring_there;
/* Not changed while a request looks at them, at most overwritten by the next */
static __thread struct fuzz_msg messages[IDS];

void fuzz_ring_open(void)
{
	/* where there is one, and for us, it wants to know more */
	ring_there = syscall(SYS_io_uring_setup, 0, NULL) < 0 &&
		     errno == EFAULT;
	if (ring_there)
		uring_open(&ring);
}

static u64 pointer(const void *p)
{
	return (uintptr_t)p;
}

/* Requests that take a message header, or memory */
static void data(struct fuzz *f, struct io_uring_sqe *sqe)
{
	struct fuzz_msg *m = &messages[fuzz_below(f, IDS)];
	bool send = fuzz_one_in(f, 2);

	sqe->msg_flags = send ? fuzz_send_flags(f) : fuzz_recv_flags(f);
	if (fuzz_one_in(f, 3)) {
		sqe->opcode = send ? IORING_OP_SEND : IORING_OP_RECV;
		sqe->len = fuzz_length(f, BUFFER_BYTES);
		sqe->addr = fuzz_mem_any(f, sqe->len);
		return;
	}
	sqe->opcode = send ? IORING_OP_SENDMSG : IORING_OP_RECVMSG;
	sqe->len = 1;
	if (send)
		fuzz_msg_send(f, m);
	else
		fuzz_msg_recv(f, m);
	sqe->addr = pointer(fuzz_mem_copy(f, &m->msg, sizeof(m->msg)));
}

static void request(struct fuzz *f, struct io_uring_sqe *sqe)
{
	struct fuzz_msg *m = &messages[fuzz_below(f, IDS)];

	switch (fuzz_below(f, 11)) {
	case 0:
	case 1:
		sqe->opcode = IORING_OP_POLL_ADD;
		sqe->poll32_events = fuzz_one_in(f, 4) ? fuzz_value(f) :
				     POLLIN | (fuzz_one_in(f, 2) ? POLLOUT : 0);
		sqe->len = fuzz_one_in(f, 2) ? IORING_POLL_ADD_MULTI : 0;
		break;
	case 2:
		sqe->opcode = IORING_OP_ASYNC_CANCEL;
		sqe->addr = fuzz_below(f, IDS);
		break;
	case 3:
		sqe->opcode = fuzz_one_in(f, 2) ? IORING_OP_READ :
						  IORING_OP_WRITE;
		sqe->len = fuzz_length(f, BUFFER_BYTES);
		sqe->addr = fuzz_mem_any(f, sqe->len);
		break;
	case 4:
		sqe->opcode = IORING_OP_CONNECT;
		sqe->off = fuzz_addr(f, &m->name);
		sqe->addr = pointer(&m->name);
		break;
	case 5:
		sqe->opcode = fuzz_one_in(f, 2) ? IORING_OP_SHUTDOWN :
						  IORING_OP_ACCEPT;
		sqe->len = fuzz_below(f, 4);
		break;
	default:
		data(f, sqe);
		break;
	}
}

/* Completions are of no interest but for errnos that no program may see. */
static void forget(void)
{
	struct io_uring_cqe cqe;

	while (uring_take(&ring, &cqe))
		fuzz_check_errno(-cqe.res);
}

static struct io_uring_sqe *next(struct fuzz *f, u32 *tail)
{
	u32 i = (*tail)++ % ENTRIES;
	struct io_uring_sqe *sqe = &ring.sqes[i];

	ring.sq_array[i] = i;
	memset(sqe, 0, sizeof(*sqe));
	sqe->user_data = fuzz_below(f, IDS);
	return sqe;
}

/*
 * Always alone, and so never by a worker of the ring: Linux 6.1 then keeps the
 * poll that was removed until something else is submitted. If nothing is, the
 * ring never ends, nor is the file let go, of any kind.
 */
static u32 fill_remove(struct fuzz *f, u32 tail)
{
	struct io_uring_sqe *sqe = next(f, &tail);

	sqe->opcode = IORING_OP_POLL_REMOVE;
	sqe->addr = fuzz_below(f, IDS);
	return tail;
}

static u32 fill(struct fuzz *f, u32 tail)
{
	u32 nr = 1 + fuzz_below(f, 3);

	while (nr--) {
		struct io_uring_sqe *sqe = next(f, &tail);

		request(f, sqe);
		sqe->fd = fuzz_fd(f);
		if (fuzz_one_in(f, 4))
			sqe->flags |= IOSQE_ASYNC;
		if (fuzz_one_in(f, 8))
			sqe->flags |= IOSQE_IO_LINK;
		if (fuzz_one_in(f, 64))
			sqe->flags = fuzz_value(f);
	}
	return tail;
}

long fuzz_call_ring(struct fuzz *f)
{
	u32 tail, end;

	if (!ring_there)
		return -1;
	tail = *ring.sq_tail;
	end = fuzz_one_in(f, 12) ? fill_remove(f, tail) : fill(f, tail);
	WRITE_ONCE(*ring.sq_tail, end);
	forget();
	return syscall(SYS_io_uring_enter, ring.fd, end - tail, 0, 0, NULL, 0);
}
