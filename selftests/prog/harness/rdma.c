// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions, RDMA ops, notices and barriers for tests.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pattern.h"
#include "rdma.h"
#include "tap.h"

enum {
	QUIET_MS	= 100,
	CONTROL_BYTES	= 4096,
	HOLD_MS		= 3600000,	/* no test takes so long */
	RUN_MS		= 40000,	/* an op may need two attempts to connect */
};

/* ----------------------------------------------------------------- memory */

char *pages(size_t bytes)
{
	char *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		tap_fail("mmap %zu: %s", bytes, tap_errno_name(errno));
	return mem;
}

void stamp(void *mem, size_t bytes, u64 seed)
{
	struct prng prng = { .state = seed };
	char *to = mem;
	u64 word = 0;

	for (size_t i = 0; i < bytes; i++) {
		if (!(i % sizeof(word)))
			word = prng_next(&prng);
		to[i] = ((char *)&word)[i % sizeof(word)];
	}
}

bool stamped(const void *mem, size_t bytes, u64 seed)
{
	char *want = malloc(bytes);
	bool same;

	if (!want)
		tap_fail("no memory");
	stamp(want, bytes, seed);
	same = !memcmp(mem, want, bytes);
	free(want);
	return same;
}

bool filled(const void *mem, size_t bytes, char with)
{
	const char *at = mem;

	return !bytes || (at[0] == with && !memcmp(at, at + 1, bytes - 1));
}

char *before_wall(int prot)
{
	char *mem = pages(2 * PAGE_BYTES);

	/* a hole would be filled by the next mapping */
	must(mprotect(mem + PAGE_BYTES, PAGE_BYTES, PROT_NONE));
	must(mprotect(mem, PAGE_BYTES, prot));
	return mem + PAGE_BYTES;
}

long pinned_kb(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long kb = -1;

	if (!file)
		tap_fail("/proc/self/status: %s", tap_errno_name(errno));
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "VmPin: %ld", &kb) == 1)
			break;
	fclose(file);
	return kb;
}

static bool pinned_fell(void *arg)
{
	return pinned_kb() <= *(long *)arg;
}

void check_pinned_falls(long kb)
{
	if (!tap_wait(pinned_fell, &kb, WAIT_MS))
		check_eq(pinned_kb(), kb);
}

long pinned_pages(void)
{
	long acquired = -1, released = 0, value;
	char name[64];
	FILE *file;

	/* each processor has its own count until it is asked for */
	file = fopen("/proc/sys/vm/stat_refresh", "w");
	if (!file || fputs("1", file) < 0 || fclose(file))
		tap_fail("stat_refresh: %s", tap_errno_name(errno));
	file = fopen("/proc/vmstat", "r");
	if (!file)
		tap_fail("/proc/vmstat: %s", tap_errno_name(errno));
	while (fscanf(file, "%63s %ld", name, &value) == 2) {
		if (!strcmp(name, "nr_foll_pin_acquired"))
			acquired = value;
		if (!strcmp(name, "nr_foll_pin_released"))
			released = value;
	}
	fclose(file);
	check(acquired >= 0);
	return acquired - released;
}

static bool pages_fell(void *arg)
{
	return pinned_pages() <= *(long *)arg;
}

void check_pinned_pages_fall(long nr)
{
	if (!tap_wait(pages_fell, &nr, WAIT_MS))
		check_eq(pinned_pages(), nr);
}

/* ---------------------------------------------------------- local buffers */

size_t vector_make(struct rds_iovec *vec, size_t nr, char *mem, size_t room)
{
	struct prng prng = { .state = nr + 20 };
	size_t at = 0, bytes = 0;

	for (size_t i = 0; i < nr; i++) {
		at += prng_below(&prng, 9);
		vec[i].addr = (uintptr_t)mem + at;
		vec[i].bytes = 1 + prng_below(&prng, i % 100 ? 150 : 9000);
		at += vec[i].bytes;
		bytes += vec[i].bytes;
	}
	if (at > room)
		tap_fail("%zu buffers take %zu bytes", nr, at);
	return bytes;
}

void vector_gather(const struct rds_iovec *vec, size_t nr, char *to)
{
	for (size_t i = 0; i < nr; to += vec[i++].bytes)
		memcpy(to, (void *)(uintptr_t)vec[i].addr, vec[i].bytes);
}

void vector_scatter(const struct rds_iovec *vec, size_t nr, const char *from)
{
	for (size_t i = 0; i < nr; from += vec[i++].bytes)
		memcpy((void *)(uintptr_t)vec[i].addr, from, vec[i].bytes);
}

/* ---------------------------------------------------------------- regions */

int mr_get(int fd, void *mem, u64 bytes, u64 flags, u64 *cookie)
{
	struct rds_get_mr_args args = {
		.vec = { (uintptr_t)mem, bytes },
		.cookie_addr = (uintptr_t)cookie,
		.flags = flags,
	};

	return setsockopt(fd, SOL_RDS, RDS_GET_MR, &args, sizeof(args));
}

int mr_get_for(int fd, const union addr *dest, void *mem, u64 bytes, u64 flags,
	       u64 *cookie)
{
	struct rds_get_mr_for_dest_args args = {
		.vec = { (uintptr_t)mem, bytes },
		.cookie_addr = (uintptr_t)cookie,
		.flags = flags,
	};

	memcpy(&args.dest_addr, dest, sizeof(*dest));
	return setsockopt(fd, SOL_RDS, RDS_GET_MR_FOR_DEST, &args,
			  sizeof(args));
}

int mr_free(int fd, u64 cookie)
{
	struct rds_free_mr_args args = { .cookie = cookie };

	return setsockopt(fd, SOL_RDS, RDS_FREE_MR, &args, sizeof(args));
}

void target_open(struct target *t, size_t bytes, u64 flags)
{
	memset(t, 0, sizeof(*t));
	t->fd = rds_bound(&t->addr);
	t->mem = pages((bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
	t->bytes = bytes;
	memset(t->mem, 0, bytes);
	must(mr_get(t->fd, t->mem, bytes, flags, &t->cookie));
}

void target_close(struct target *t)
{
	close(t->fd);
	munmap(t->mem, (t->bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
}

/* -------------------------------------------------------------------- ops */

void ctl_add(struct ctl *ctl, int type, const void *data, size_t len)
{
	struct cmsghdr *cmsg = (struct cmsghdr *)(ctl->data + ctl->len);

	if (ctl->len + CMSG_SPACE(len) > sizeof(ctl->data))
		tap_fail("%zu bytes of control messages", ctl->len + len);
	memset(cmsg, 0, CMSG_SPACE(len));
	cmsg->cmsg_level = SOL_RDS;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(cmsg), data, len);
	ctl->len += CMSG_SPACE(len);
}

ssize_t ctl_send(int fd, const union addr *to, const struct ctl *ctl,
		 const void *payload, size_t len, int flags)
{
	struct iovec iov = { (void *)payload, len };
	struct msghdr msg = {
		.msg_name = (void *)&to->sa,
		.msg_namelen = addr_len(to),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = (void *)ctl->data,
		.msg_controllen = ctl->len,
	};

	return sendmsg(fd, &msg, flags);
}

static struct op op_rdma(const struct target *t, u64 offset, const void *mem,
			 u64 bytes, u64 flags)
{
	return (struct op){
		.type = RDS_CMSG_RDMA_ARGS,
		.rdma = {
			.cookie = t->cookie,
			.remote_vec = { offset, bytes },
			.nr_local = 1,
			.flags = flags,
		},
		.vec = { (uintptr_t)mem, bytes },
	};
}

struct op op_write(const struct target *t, u64 offset, const void *mem,
		   u64 bytes)
{
	return op_rdma(t, offset, mem, bytes, RDS_RDMA_READWRITE);
}

struct op op_read(const struct target *t, u64 offset, void *mem, u64 bytes)
{
	return op_rdma(t, offset, mem, bytes, 0);
}

struct op op_fadd(const struct target *t, u64 offset, u64 add, u64 *old)
{
	return (struct op){
		.type = RDS_CMSG_ATOMIC_FADD,
		.atomic = {
			.cookie = t->cookie,
			.remote_addr = offset,
			.local_addr = (uintptr_t)old,
			.fadd.add = add,
		},
	};
}

struct op op_cswp(const struct target *t, u64 offset, u64 compare, u64 swap,
		  u64 *old)
{
	return (struct op){
		.type = RDS_CMSG_ATOMIC_CSWP,
		.atomic = {
			.cookie = t->cookie,
			.remote_addr = offset,
			.local_addr = (uintptr_t)old,
			.cswp = { compare, swap },
		},
	};
}

void op_set(struct op *op, u64 flags, u64 token)
{
	if (op->type == RDS_CMSG_RDMA_ARGS) {
		op->rdma.flags |= flags;
		op->rdma.user_token = token;
	} else {
		op->atomic.flags |= flags;
		op->atomic.user_token = token;
	}
}

void op_vector(struct op *op, struct rds_iovec *vec, size_t nr)
{
	op->rdma.local_vec_addr = (uintptr_t)vec;
	op->rdma.nr_local = nr;
}

ssize_t op_send(int fd, const union addr *to, struct op *op)
{
	struct ctl ctl = { 0 };
	u64 id = (uintptr_t)op->id;

	if (op->type == RDS_CMSG_RDMA_ARGS) {
		if (!op->rdma.local_vec_addr)
			op->rdma.local_vec_addr = (uintptr_t)&op->vec;
		ctl_add(&ctl, op->type, &op->rdma, sizeof(op->rdma));
	} else {
		ctl_add(&ctl, op->type, &op->atomic, sizeof(op->atomic));
	}
	if (op->id)
		ctl_add(&ctl, XRDS_CMSG_RDMA_ID, &id, sizeof(id));
	if (op->barrier)
		ctl_add(&ctl, XRDS_CMSG_BARRIER, op->barrier,
			sizeof(*op->barrier));
	return ctl_send(fd, to, &ctl, op->payload, op->len, op->msg_flags);
}

int op_run(int fd, const union addr *to, struct op *op)
{
	static __thread u64 token;
	struct got got;

	op_set(op, RDS_RDMA_NOTIFY_ME, ++token);
	must(op_send(fd, to, op));
	do {
		if (got_within(fd, &got, RUN_MS) < 0)
			return -1;
		/* that earlier ops have ended, or that a region was lost, may
		 * be told first, on its own
		 */
	} while (!got.nr_status && (got.nr_events || got.nr_lost));
	if (!got.nr_status)
		return -1;
	check_eq(got.nr_status, 1);
	check_eq(got.status[0].user_token, token);
	return got.status[0].status;
}

/* --------------------------------------------------- notices and barriers */

static bool got_zcopied(struct got *got, const struct rds_zcopy_cookies *told)
{
	if (!told->num || told->num > RDS_MAX_ZCOOKIES ||
	    got->nr_zcopied + told->num > MAX_ZCOPIED)
		return false;
	for (u32 i = 0; i < told->num; i++)
		got->zcopied[got->nr_zcopied++] = told->cookies[i];
	return true;
}

static void got_parse(struct got *got, struct msghdr *msg)
{
	struct cmsghdr *cmsg;
	size_t len;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		len = cmsg->cmsg_len - CMSG_LEN(0);
		if (cmsg->cmsg_level != SOL_RDS) {
			got->other++;
		} else if (cmsg->cmsg_type == RDS_CMSG_RDMA_STATUS &&
			   len == sizeof(got->status[0]) &&
			   got->nr_status < MAX_STATUS) {
			memcpy(&got->status[got->nr_status++], CMSG_DATA(cmsg),
			       len);
		} else if (cmsg->cmsg_type == XRDS_CMSG_BARRIER &&
			   len == sizeof(got->events[0]) &&
			   got->nr_events < MAX_EVENTS) {
			memcpy(&got->events[got->nr_events++], CMSG_DATA(cmsg),
			       len);
		} else if (cmsg->cmsg_type == XRDS_CMSG_MR_LOST &&
			   len == sizeof(got->lost[0]) &&
			   got->nr_lost < MAX_LOST) {
			memcpy(&got->lost[got->nr_lost++], CMSG_DATA(cmsg),
			       len);
		} else if (cmsg->cmsg_type == RDS_CMSG_ZCOPY_COMPLETION &&
			   len == sizeof(struct rds_zcopy_cookies) &&
			   got_zcopied(got, (void *)CMSG_DATA(cmsg))) {
			;
		} else if (cmsg->cmsg_type == RDS_CMSG_RDMA_DEST &&
			   len == sizeof(got->cookie)) {
			memcpy(&got->cookie, CMSG_DATA(cmsg), len);
			got->has_cookie = true;
		} else if (cmsg->cmsg_type == XRDS_CMSG_EOS &&
			   len == sizeof(u32)) {
			got->ended = true;
		} else {
			got->other++;
		}
	}
}

ssize_t got_now(int fd, struct got *got, size_t control)
{
	char data[CONTROL_BYTES] __aligned(8);
	struct iovec iov = { got->data, sizeof(got->data) };
	struct msghdr msg = {
		.msg_name = &got->from,
		.msg_namelen = sizeof(got->from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control ? data : NULL,
		.msg_controllen = control,
	};

	if (control > sizeof(data))
		tap_fail("control space of %zu bytes", control);
	memset(got, 0, sizeof(*got));
	got->ret = recvmsg(fd, &msg, MSG_DONTWAIT);
	if (got->ret < 0)
		return got->ret;
	got->flags = msg.msg_flags;
	got_parse(got, &msg);
	return got->ret;
}

ssize_t got_within(int fd, struct got *got, int ms)
{
	long long end = tap_now_ms() + tap_ms(ms), left;
	/* one more than we have room for would be none of them */
	size_t control = MAX_STATUS * CMSG_SPACE(sizeof(got->status[0]));

	for (;;) {
		if (got_now(fd, got, control) >= 0 || errno != EAGAIN)
			return got->ret;
		left = end - tap_now_ms();
		if (left <= 0)
			break;
		poll_one(fd, POLLIN, left);
	}
	errno = ETIMEDOUT;
	return -1;
}

void check_quiet(int fd)
{
	struct got got;

	if (poll_one(fd, POLLIN | POLLRDBAND, QUIET_MS)) {
		got_within(fd, &got, 0);
		check_eq(got.ret, -1);
		check_eq(got.nr_status, 0);
		check_eq(got.nr_events, 0);
		check_eq(got.nr_lost, 0);
		check_eq(got.nr_zcopied, 0);
	}
}

int barrier(int fd, const union addr *dest, u64 id, u32 flags, u32 timeout_ms,
	    struct xrds_barrier *b)
{
	memset(b, 0, sizeof(*b));
	memcpy(&b->dest, dest, sizeof(*dest));
	b->rdma_id = id;
	b->completed = ~0ull;
	b->issued = ~0ull;
	b->flags = flags;
	b->timeout_ms = timeout_ms;
	return ioctl(fd, SIOCXRDSBARRIER, b);
}

u64 mark(int fd, const union addr *dest)
{
	struct xrds_barrier b;

	must(barrier(fd, dest, 0, 0, 0, &b));
	return b.completed;
}

u64 issued(int fd, const union addr *dest)
{
	struct xrds_barrier b;

	must(barrier(fd, dest, 0, 0, 0, &b));
	return b.issued;
}

void loop_only(void)
{
	union addr a = addr_of(tap_host, 0);

	if (a.sa.sa_family == AF_INET6 ?
	    !IN6_IS_ADDR_LOOPBACK(&a.in6.sin6_addr) :
	    ntohl(a.in.sin_addr.s_addr) >> 24 != IN_LOOPBACKNET)
		tap_skip("%s is not an address of the loopback", tap_host);
}

void slow_ops(int ms)
{
	loop_only();
	knob("net/xrds/loop/delay_ms", tap_ms(ms));
}

void hold_ops(void)
{
	loop_only();
	knob("net/xrds/loop/delay_ms", HOLD_MS);
}

void release_ops(void)
{
	knob("net/xrds/loop/delay_ms", 0);
}
