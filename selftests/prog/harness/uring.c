// SPDX-License-Identifier: GPL-2.0-only
/*
 * io_uring by its system calls, as far as tests need it.
 */
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tap.h"
#include "uring.h"

enum {
	ENTRIES	= 8,	/* to submit; one at a time is used */
	ROOM	= 64,	/* completions */
};

static void *map(int fd, size_t bytes, off_t what)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_POPULATE, fd, what);

	if (mem == MAP_FAILED)
		tap_fail("mmap of a ring: %s", tap_errno_name(errno));
	return mem;
}

void uring_open(struct uring *u)
{
	struct io_uring_params p = {
		.flags = IORING_SETUP_CQSIZE,
		.cq_entries = ROOM,
	};
	char *rings;

	u->fd = must(syscall(SYS_io_uring_setup, ENTRIES, &p));
	if (!(p.features & IORING_FEAT_SINGLE_MMAP) ||
	    !(p.features & IORING_FEAT_EXT_ARG))
		tap_fail("an io_uring from before Linux 5.11");
	u->rings_bytes = p.cq_off.cqes + p.cq_entries * sizeof(*u->cqes);
	if (u->rings_bytes < p.sq_off.array + p.sq_entries * sizeof(u32))
		u->rings_bytes = p.sq_off.array + p.sq_entries * sizeof(u32);
	u->rings = map(u->fd, u->rings_bytes, IORING_OFF_SQ_RING);
	u->sqes = map(u->fd, ENTRIES * sizeof(*u->sqes), IORING_OFF_SQES);
	rings = u->rings;
	u->cqes = (void *)(rings + p.cq_off.cqes);
	u->sq_tail = (void *)(rings + p.sq_off.tail);
	u->sq_array = (void *)(rings + p.sq_off.array);
	u->cq_head = (void *)(rings + p.cq_off.head);
	u->cq_tail = (void *)(rings + p.cq_off.tail);
}

void uring_close(struct uring *u)
{
	munmap(u->sqes, ENTRIES * sizeof(*u->sqes));
	munmap(u->rings, u->rings_bytes);
	close(u->fd);
}

/* The kernel takes it before the call returns: the ring is never full */
void uring_submit(struct uring *u, const struct io_uring_sqe *sqe)
{
	u32 tail = *u->sq_tail;

	u->sqes[tail % ENTRIES] = *sqe;
	u->sq_array[tail % ENTRIES] = tail % ENTRIES;
	WRITE_ONCE(*u->sq_tail, tail + 1);
	if (must(syscall(SYS_io_uring_enter, u->fd, 1, 0, 0, NULL, 0)) != 1)
		tap_fail("io_uring took nothing");
}

void uring_poll(struct uring *u, int fd, unsigned int events, bool multishot,
		u64 id)
{
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_POLL_ADD,
		.fd = fd,
		.poll32_events = events,
		.len = multishot ? IORING_POLL_ADD_MULTI : 0,
		.user_data = id,
	};

	uring_submit(u, &sqe);
}

static void end_request(struct uring *u, u8 opcode, u64 id)
{
	struct io_uring_sqe sqe = { .opcode = opcode, .fd = -1, .addr = id };

	uring_submit(u, &sqe);
}

void uring_remove(struct uring *u, u64 id)
{
	end_request(u, IORING_OP_POLL_REMOVE, id);
}

void uring_cancel(struct uring *u, u64 id)
{
	end_request(u, IORING_OP_ASYNC_CANCEL, id);
}

void uring_provide(struct uring *u, void *mem, size_t bytes, int nr, u16 group)
{
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_PROVIDE_BUFFERS,
		.fd = nr,
		.addr = (uintptr_t)mem,
		.len = bytes,
		.buf_group = group,
	};
	struct io_uring_cqe cqe;

	uring_submit(u, &sqe);
	if (!uring_take(u, &cqe) || cqe.res < 0)
		tap_fail("io_uring took no buffers");
}

void uring_keep(struct uring *u, int fd)
{
	must(syscall(SYS_io_uring_register, u->fd, IORING_REGISTER_FILES, &fd,
		     1));
}

bool uring_take(struct uring *u, struct io_uring_cqe *cqe)
{
	u32 head = *u->cq_head;

	if (head == READ_ONCE(*u->cq_tail))
		return false;
	*cqe = u->cqes[head % ROOM];
	WRITE_ONCE(*u->cq_head, head + 1);
	return true;
}

bool uring_next(struct uring *u, struct io_uring_cqe *cqe, int ms)
{
	struct __kernel_timespec ts = {
		.tv_sec = ms / 1000,
		.tv_nsec = ms % 1000 * 1000000LL,
	};
	struct io_uring_getevents_arg arg = { .ts = (uintptr_t)&ts };

	if (uring_take(u, cqe))
		return true;
	if (syscall(SYS_io_uring_enter, u->fd, 0, 1,
		    IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg,
		    sizeof(arg)) < 0 && errno != ETIME)
		tap_fail("io_uring_enter: %s", tap_errno_name(errno));
	return uring_take(u, cqe);
}
