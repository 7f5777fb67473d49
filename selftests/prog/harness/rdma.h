/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory regions, RDMA ops, notices and barriers for tests.
 *
 * A target is a socket and memory that it offers; a test knows its address, its
 * key and its content. An op is described by a struct op, sent by op_send(),
 * and ends with a notice or at a barrier.
 */
#ifndef _XRDS_TEST_RDMA_H
#define _XRDS_TEST_RDMA_H

#include <stdint.h>

#include "sock.h"
#include "types.h"

enum {
	PAGE_BYTES	= 4096,
};

/* ----------------------------------------------------------------- memory */

/* Pages of zeros that nobody shares; never freed unless by munmap() */
char *pages(size_t bytes);
/* Fills memory with bytes that depend on the seed and the position */
void stamp(void *mem, size_t bytes, u64 seed);
bool stamped(const void *mem, size_t bytes, u64 seed);
bool filled(const void *mem, size_t bytes, char with);
/* The end of a page with this protection; behind it is one without access */
char *before_wall(int prot);
/* VmPin of this process, kB: memory that devices may touch */
long pinned_kb(void);
/* Waits until it is at most this, which a work item sees to */
void check_pinned_falls(long kb);
/* Pages that are pinned for all processes, as far as the kernel counts */
long pinned_pages(void);
void check_pinned_pages_fall(long nr);

/* ---------------------------------------------------------- local buffers */

/* Many buffers of odd lengths at odd places in @room bytes of memory; how many
 * bytes they have
 */
size_t vector_make(struct rds_iovec *vec, size_t nr, char *mem, size_t room);
/* The content of the buffers in one piece, from them or to them */
void vector_gather(const struct rds_iovec *vec, size_t nr, char *to);
void vector_scatter(const struct rds_iovec *vec, size_t nr, const char *from);

/* ---------------------------------------------------------------- regions */

/* The calls, with errno as they leave it */
int mr_get(int fd, void *mem, u64 bytes, u64 flags, u64 *cookie);
int mr_get_for(int fd, const union addr *dest, void *mem, u64 bytes, u64 flags,
	       u64 *cookie);
int mr_free(int fd, u64 cookie);

/**
 * struct target - a socket that offers memory
 * @fd:		bound to tap_host
 * @addr:	its address
 * @mem:	the memory, of whole pages, each byte 0
 * @bytes:	how much of it is registered, from @mem on
 * @cookie:	key and offset
 */
struct target {
	int fd;
	union addr addr;
	char *mem;
	size_t bytes;
	u64 cookie;
};

void target_open(struct target *t, size_t bytes, u64 flags);
void target_close(struct target *t);

/* -------------------------------------------------------------------- ops */

/* Control messages of one sendmsg() */
struct ctl {
	size_t len;
	char data[2048] __aligned(8);
};

/* Any length is allowed, to see the kernel's answer */
void ctl_add(struct ctl *ctl, int type, const void *data, size_t len);
ssize_t ctl_send(int fd, const union addr *to, const struct ctl *ctl,
		 const void *payload, size_t len, int flags);

/**
 * struct op - an RDMA op or atomic
 * @type:	RDS_CMSG_RDMA_ARGS or an atomic's
 * @rdma:	its arguments; without local_vec_addr @vec is meant
 * @atomic:	those of an atomic
 * @vec:	a single local buffer
 * @id:		where the identifier goes; NULL: not asked for
 * @barrier:	to arm, or NULL
 * @payload:	of the immediate message
 * @len:	its length
 * @msg_flags:	MSG_*
 */
struct op {
	int type;
	union {
		struct rds_rdma_args rdma;
		struct rds_atomic_args atomic;
	};
	struct rds_iovec vec;
	u64 *id;
	const struct xrds_barrier *barrier;
	const void *payload;
	size_t len;
	int msg_flags;
};

/* Between local memory and @offset bytes into the target; flags as in uapi */
struct op op_write(const struct target *t, u64 offset, const void *mem,
		   u64 bytes);
struct op op_read(const struct target *t, u64 offset, void *mem, u64 bytes);
/* On the word at @offset of the target; its old value goes to *old */
struct op op_fadd(const struct target *t, u64 offset, u64 add, u64 *old);
struct op op_cswp(const struct target *t, u64 offset, u64 compare, u64 swap,
		  u64 *old);
/* The same with many local buffers, which stay the caller's */
void op_vector(struct op *op, struct rds_iovec *vec, size_t nr);
/* The flags and the token, wherever they are */
void op_set(struct op *op, u64 flags, u64 token);
/* sendmsg(): the length of the payload, or -1 and errno */
ssize_t op_send(int fd, const union addr *to, struct op *op);
/* Sends with RDS_RDMA_NOTIFY_ME and waits: the status, or -1 if none came */
int op_run(int fd, const union addr *to, struct op *op);

/* ------------------------------------------------- notices and barriers */

enum {
	MAX_STATUS	= 64,
	MAX_EVENTS	= 8,
	MAX_LOST	= 8,
	MAX_ZCOPIED	= 64,
};

/**
 * struct got - what one recvmsg() returned
 * @ret:	its value
 * @flags:	msg_flags
 * @nr_status:	RDS_CMSG_RDMA_STATUS
 * @nr_events:	XRDS_CMSG_BARRIER
 * @nr_lost:	XRDS_CMSG_MR_LOST
 * @nr_zcopied:	cookies of RDS_CMSG_ZCOPY_COMPLETION
 * @has_cookie:	RDS_CMSG_RDMA_DEST
 * @ended:	XRDS_CMSG_EOS
 * @other:	control messages that are none of these
 * @from:	the sender of the data
 * @data:	payload
 */
struct got {
	ssize_t ret;
	int flags;
	int nr_status;
	struct rds_rdma_notify status[MAX_STATUS];
	int nr_events;
	struct xrds_barrier_event events[MAX_EVENTS];
	int nr_lost;
	struct xrds_mr_event lost[MAX_LOST];
	int nr_zcopied;
	u32 zcopied[MAX_ZCOPIED];
	bool has_cookie;
	u64 cookie;
	bool ended;
	int other;
	union addr from;
	char data[64] __aligned(8);
};

/* recvmsg() without waiting, with this much control space */
ssize_t got_now(int fd, struct got *got, size_t control);
/* With plenty of it, waiting; -1 with ETIMEDOUT */
ssize_t got_within(int fd, struct got *got, int ms);
/* Nothing more to read comes within a short time */
void check_quiet(int fd);

/* SIOCXRDSBARRIER; b gets the kernel's answer */
int barrier(int fd, const union addr *dest, u64 id, u32 flags, u32 timeout_ms,
	    struct xrds_barrier *b);
/* The high-water mark toward a node, and the last identifier */
u64 mark(int fd, const union addr *dest);
u64 issued(int fd, const union addr *dest);

/* Skips the case unless the address under test is one of the loopback */
void loop_only(void);
/* From now on ops (of loopback) take this long */
void slow_ops(int ms);
/* No op (of loopback) ends, one under way included, until they are released */
void hold_ops(void);
void release_ops(void);

#endif /* _XRDS_TEST_RDMA_H */
