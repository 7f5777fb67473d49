// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library to be preloaded: xrds-perf then sends wrong payload once.
 *
 *   TAMPER=N LD_PRELOAD=.../helper_tamper xrds-perf ...
 *
 * The last byte of the Nth message that a process sends, or of the memory of its
 * Nth RDMA op (its first buffer), or of a region that it registers with a message,
 * is another one. The notes of xrds-perf are not counted.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/xrds.h>

static void tamper(uint64_t addr, uint64_t bytes)
{
	uint8_t *last = (uint8_t *)(uintptr_t)addr + bytes - 1;

	if (bytes)
		*last ^= 0x10;
}

static void tamper_control(const struct cmsghdr *c)
{
	struct rds_get_mr_args region;
	struct rds_rdma_args op;
	struct rds_iovec vec;

	switch (c->cmsg_type) {
	case RDS_CMSG_RDMA_MAP:
		memcpy(&region, CMSG_DATA(c), sizeof(region));
		tamper(region.vec.addr, region.vec.bytes);
		break;
	case RDS_CMSG_RDMA_ARGS:
		memcpy(&op, CMSG_DATA(c), sizeof(op));
		memcpy(&vec, (void *)(uintptr_t)op.local_vec_addr, sizeof(vec));
		tamper(vec.addr, vec.bytes);
		break;
	}
}

static int is_note(const struct msghdr *m)
{
	return m->msg_iov->iov_len > 4 &&
	       !memcmp(m->msg_iov->iov_base, "XpRF", 4);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	ssize_t (*next)(int fd, const struct msghdr *m, int flags) =
		dlsym(RTLD_NEXT, "sendmsg");
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	static int count;

	if (is_note(m) ? !!c : ++count == atoi(getenv("TAMPER"))) {
		tamper((uintptr_t)m->msg_iov->iov_base,
		       is_note(m) ? 0 : m->msg_iov->iov_len);
		if (c)
			tamper_control(c);
	}
	return next(fd, m, flags);
}
