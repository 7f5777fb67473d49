// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ops that are refused: bad arguments, pointers and combinations of control
 * messages. The error is the right one, nothing stays pinned, no identifier
 * is used up, and the next op works.
 *
 * timeout: 120
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rdma.h"
#include "tap.h"

enum {
	SMALL		= 64,
	TOO_MANY	= 1025,		/* UIO_MAXIOV + 1 */
};

#define WRITABLE RDS_RDMA_READWRITE

static char small[SMALL] __aligned(8);
static struct target target;
static int fd;
static long pinned;
static u64 last_id;

static void begin(void)
{
	fd = rds_bound(NULL);
	target_open(&target, PAGE_BYTES, WRITABLE);
	pinned = pinned_kb();
}

/* One that is refused, then one that is not */
static void refuse_ctl(const struct ctl *ctl, int error)
{
	struct xrds_barrier b;

	check_err(ctl_send(fd, &target.addr, ctl, "x", 1, MSG_DONTWAIT),
		  error);
	must(barrier(fd, &target.addr, 0, 0, 0, &b));
	check_eq(b.issued, last_id);
}

static void refuse(struct op *op, int error)
{
	check_err(op_send(fd, &target.addr, op), error);
	check_eq(issued(fd, &target.addr), last_id);
}

static void end(void)
{
	struct op op = op_write(&target, 0, "w", 1);

	tap_context("afterwards");
	check_pinned_falls(pinned);
	check_eq(op_run(fd, &target.addr, &op), RDS_RDMA_SUCCESS);
	check_eq(issued(fd, &target.addr), last_id + 1);
	check_eq(target.mem[0], 'w');
	check(filled(target.mem + 1, PAGE_BYTES - 1, 0));
	target_close(&target);
	close(fd);
	check_pinned_falls(0);
}

static struct op good(void)
{
	return op_write(&target, 0, small, sizeof(small));
}

static void arguments(void)
{
	struct op op;

	begin();
	tap_context("no local buffer");
	op = good();
	op.rdma.nr_local = 0;
	refuse(&op, EINVAL);
	tap_context("too many");
	op = good();
	op.rdma.nr_local = TOO_MANY;
	refuse(&op, EMSGSIZE);
	op.rdma.nr_local = 1ull << 32 | 1;
	refuse(&op, EMSGSIZE);
	op.rdma.nr_local = ~0ull;
	refuse(&op, EMSGSIZE);
	tap_context("empty buffer");
	op = good();
	op.vec.bytes = 0;
	refuse(&op, EINVAL);
	tap_context("larger than the remote range");
	op = good();
	op.rdma.remote_vec.bytes--;
	refuse(&op, EINVAL);
	op.rdma.remote_vec.bytes = 0;
	refuse(&op, EINVAL);
	tap_context("remote range wraps");
	op = good();
	op.rdma.remote_vec.addr = ~0ull - 10;
	refuse(&op, EINVAL);
	op.rdma.cookie |= 1ull << 63;
	op.rdma.remote_vec.addr = ~0ull;
	refuse(&op, EINVAL);
	tap_context("local range wraps");
	op = good();
	op.vec.bytes = ~0ull;
	op.rdma.remote_vec.bytes = ~0ull;
	refuse(&op, EINVAL);
	tap_context("far too large");
	op.vec.bytes = 1ull << 40;
	refuse(&op, EMSGSIZE);
	end();
}

/* Together they are too large, or their sum wraps */
static void vector_sums(void)
{
	struct rds_iovec vec[3] = {
		{ (uintptr_t)small, SMALL },
		{ (uintptr_t)small, 1ull << 30 },
		{ (uintptr_t)small, SMALL },
	};
	struct op op;

	begin();
	op = good();
	op.rdma.local_vec_addr = (uintptr_t)vec;
	op.rdma.nr_local = 3;
	op.rdma.remote_vec.bytes = ~0ull;
	refuse(&op, EMSGSIZE);
	vec[1].bytes = 1ull << 62;
	vec[2].bytes = 3ull << 62;
	vec[2].addr = 0;
	refuse(&op, EMSGSIZE);
	tap_context("one empty member");
	vec[1].bytes = SMALL;
	vec[2].bytes = 0;
	refuse(&op, EINVAL);
	end();
}

static void unknown_flags(void)
{
	struct op op;

	begin();
	for (int bit = 8; bit < 64; bit++) {
		tap_context("bit %d", bit);
		op = good();
		op.rdma.flags |= 1ull << bit;
		refuse(&op, EINVAL);
		op = op_fadd(&target, 0, 1, (u64 *)small);
		op.atomic.flags |= 1ull << bit;
		refuse(&op, EINVAL);
	}
	end();
}

static void unaligned_atomics(void)
{
	struct op op;

	begin();
	for (int off = 1; off < 8; off++) {
		tap_context("offset %d", off);
		op = op_fadd(&target, off, 1, (u64 *)small);
		refuse(&op, EINVAL);
		op = op_cswp(&target, 0, 1, 2, (u64 *)(small + off));
		refuse(&op, EINVAL);
	}
	end();
}

static void pointers(void)
{
	char *wall = before_wall(PROT_READ | PROT_WRITE);
	char *none = before_wall(PROT_NONE) - PAGE_BYTES;
	void *bad[] = { (char *)8, wall, none, (char *)0xffffffff81000000ul,
			(char *)(1ul << 63) };
	struct rds_iovec vec[2] = { { (uintptr_t)small, 1 } };
	struct op op;

	begin();
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		tap_context("pointer %p", bad[i]);
		op = good();
		op.rdma.local_vec_addr = (uintptr_t)bad[i];
		refuse(&op, EFAULT);
		op = op_write(&target, 0, bad[i], 8);
		refuse(&op, EFAULT);
		op = op_read(&target, 0, bad[i], 8);
		refuse(&op, EFAULT);
		op = op_fadd(&target, 0, 1, (u64 *)bad[i]);
		refuse(&op, EFAULT);
		/* the first buffer is fine, and must be let go */
		vec[1].addr = (uintptr_t)bad[i];
		vec[1].bytes = 8;
		op = op_read(&target, 0, small, 9);
		op.rdma.local_vec_addr = (uintptr_t)vec;
		op.rdma.nr_local = 2;
		refuse(&op, EFAULT);
		/* accepted op, bad payload */
		op = good();
		op.payload = bad[i];
		op.len = 8;
		refuse(&op, EFAULT);
	}
	tap_context("runs into a wall");
	op = good();
	op.rdma.local_vec_addr = (uintptr_t)wall - 8;
	refuse(&op, EFAULT);
	op = op_write(&target, 0, wall - 10, 11);
	refuse(&op, EFAULT);
	end();
}

/* ------------------------------------------------------- control messages */

struct all_args {
	struct rds_rdma_args rdma;
	struct rds_atomic_args atomic;
	struct rds_get_mr_args map;
	u64 cookie;
	u64 id;
	struct xrds_barrier barrier;
};

static struct all_args make_args(void)
{
	static u64 id;
	struct op op = good();
	struct all_args a = {
		.map.vec = { (uintptr_t)small, sizeof(small) },
		.cookie = target.cookie,
		.id = (uintptr_t)&id,
	};
	static struct rds_iovec vec;

	vec = op.vec;
	a.rdma = op.rdma;
	a.rdma.local_vec_addr = (uintptr_t)&vec;
	a.atomic = op_fadd(&target, 0, 1, (u64 *)small).atomic;
	memcpy(&a.barrier.dest, &target.addr, sizeof(target.addr));
	return a;
}

#define AT(field) offsetof(struct all_args, field)

static const struct arg {
	int type;
	size_t at, len;
} args[] = {
	{ RDS_CMSG_RDMA_ARGS, AT(rdma), sizeof(struct rds_rdma_args) },
	{ RDS_CMSG_ATOMIC_FADD, AT(atomic), sizeof(struct rds_atomic_args) },
	{ RDS_CMSG_ATOMIC_CSWP, AT(atomic), sizeof(struct rds_atomic_args) },
	{ RDS_CMSG_MASKED_ATOMIC_FADD, AT(atomic),
	  sizeof(struct rds_atomic_args) },
	{ RDS_CMSG_MASKED_ATOMIC_CSWP, AT(atomic),
	  sizeof(struct rds_atomic_args) },
	{ RDS_CMSG_RDMA_DEST, AT(cookie), sizeof(u64) },
	{ RDS_CMSG_RDMA_MAP, AT(map), sizeof(struct rds_get_mr_args) },
};

/* These go with an op */
static const struct arg extras[] = {
	{ XRDS_CMSG_RDMA_ID, AT(id), sizeof(u64) },
	{ XRDS_CMSG_BARRIER, AT(barrier), sizeof(struct xrds_barrier) },
};

static void add_arg(struct ctl *ctl, const struct all_args *a,
		    const struct arg *arg)
{
	ctl_add(ctl, arg->type, (const char *)a + arg->at, arg->len);
}

/* A message has one op or one cookie, as in mainline */
static void combinations(void)
{
	struct all_args a;

	begin();
	a = make_args();
	/* the socket's own, which may be offered */
	must(mr_get(fd, small, sizeof(small), WRITABLE, &a.cookie));
	for (size_t i = 0; i < ARRAY_SIZE(args); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(args); j++) {
			struct ctl ctl = { 0 };

			tap_context("%d and %d", args[i].type, args[j].type);
			add_arg(&ctl, &a, &args[i]);
			add_arg(&ctl, &a, &args[j]);
			refuse_ctl(&ctl, EINVAL);
		}
	}
	must(mr_free(fd, a.cookie));
	end();
}

static void sizes(void)
{
	struct all_args a;

	begin();
	a = make_args();
	for (size_t i = 0; i < ARRAY_SIZE(args) + ARRAY_SIZE(extras); i++) {
		const struct arg *arg = i < ARRAY_SIZE(args) ? &args[i] :
					&extras[i - ARRAY_SIZE(args)];
		const char *data = (const char *)&a + arg->at;
		const size_t lens[] = { 0, 1, arg->len - 1 };

		for (size_t j = 0; j < ARRAY_SIZE(lens); j++) {
			struct ctl ctl = { 0 };

			tap_context("type %d, %zu bytes", arg->type, lens[j]);
			/* in front of an op where it needs one */
			if (i >= ARRAY_SIZE(args))
				add_arg(&ctl, &a, &args[0]);
			ctl_add(&ctl, arg->type, data, lens[j]);
			refuse_ctl(&ctl, EINVAL);
		}
	}
	end();
}

/* A control message about an op needs one */
static void without_op(void)
{
	struct all_args a;
	struct ctl ctl = { 0 };

	begin();
	a = make_args();
	ctl_add(&ctl, XRDS_CMSG_RDMA_ID, &a.id, sizeof(a.id));
	refuse_ctl(&ctl, EINVAL);
	memset(&ctl, 0, sizeof(ctl));
	ctl_add(&ctl, XRDS_CMSG_BARRIER, &a.barrier, sizeof(a.barrier));
	refuse_ctl(&ctl, EINVAL);
	end();
}

static void twice(void)
{
	struct all_args a;

	begin();
	a = make_args();
	for (size_t i = 0; i < ARRAY_SIZE(extras); i++) {
		struct ctl ctl = { 0 };

		tap_context("type %d", extras[i].type);
		add_arg(&ctl, &a, &args[0]);
		add_arg(&ctl, &a, &extras[i]);
		add_arg(&ctl, &a, &extras[i]);
		refuse_ctl(&ctl, EINVAL);
	}
	end();
}

/* An op toward a destination that takes nothing more is not half accepted */
static void no_space(void)
{
	int sent = 0;
	struct op op;

	begin();
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, 16 * 1024);
	hold_ops();
	for (;;) {
		op = good();
		op.msg_flags = MSG_DONTWAIT;
		if (op_send(fd, &target.addr, &op) < 0)
			break;
		sent++;
	}
	check_eq(errno, EAGAIN);
	check(sent > 0);
	last_id = sent;
	refuse(&op, EAGAIN);
	release_ops();
	while (mark(fd, &target.addr) < last_id)
		must(barrier(fd, &target.addr, last_id, 0, tap_ms(WAIT_MS),
			     &(struct xrds_barrier){ 0 }));
	end();
}

static const struct tap_case cases[] = {
	{ "arguments", "counts, lengths and ranges", arguments,
	  TAP_EACH_FAMILY, 0 },
	{ "vector_sums", "sums over the local buffers", vector_sums, 0, 0 },
	{ "unknown_flags", "each flag that is none", unknown_flags, 0, 0 },
	{ "unaligned_atomics", "atomics on parts of two words",
	  unaligned_atomics, 0, 0 },
	{ "pointers", "every pointer of an op, aimed at nothing", pointers,
	  TAP_EACH_FAMILY, 0 },
	{ "combinations", "two ops, two cookies, or one of each", combinations,
	  0, 0 },
	{ "sizes", "control messages of a wrong size", sizes, 0, 0 },
	{ "without_op", "an identifier or a barrier for no op", without_op,
	  0, 0 },
	{ "twice", "the same control message twice", twice, 0, 0 },
	{ "no_space", "a full destination refuses the whole op", no_space,
	  0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
