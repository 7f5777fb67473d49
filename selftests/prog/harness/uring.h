/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * io_uring by its system calls, as far as tests need it: polling, sending and
 * receiving, and keeping files.
 */
#ifndef _XRDS_TEST_URING_H
#define _XRDS_TEST_URING_H

#include <linux/io_uring.h>
#include <stdbool.h>

#include "types.h"

struct uring {
	int fd;
	void *rings;
	size_t rings_bytes;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	u32 *sq_tail;
	u32 *sq_array;
	u32 *cq_head;
	u32 *cq_tail;
};

/* All of them end the case on failure */
void uring_open(struct uring *u);
void uring_close(struct uring *u);
/* Poll a descriptor, once or until removed; @id names it in completions */
void uring_poll(struct uring *u, int fd, unsigned int events, bool multishot,
		u64 id);
/* Anything else */
void uring_submit(struct uring *u, const struct io_uring_sqe *sqe);
void uring_remove(struct uring *u, u64 id);
/* The same for a request of another kind */
void uring_cancel(struct uring *u, u64 id);
/* Buffers to receive into: @nr of @bytes each, numbered from 0 */
void uring_provide(struct uring *u, void *mem, size_t bytes, int nr, u16 group);
/* The ring has the file, too: a worker of the kernel lets it go at the end */
void uring_keep(struct uring *u, int fd);
/* The next completion; whether there is one */
bool uring_take(struct uring *u, struct io_uring_cqe *cqe);
/* The next completion, within @ms; whether there was one */
bool uring_next(struct uring *u, struct io_uring_cqe *cqe, int ms);

#endif /* _XRDS_TEST_URING_H */
