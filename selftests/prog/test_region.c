// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions: how they are registered, which bytes and which access a key
 * grants, and how they end.
 *
 * Each refusal is followed by a look at the memory: nothing of a refused op
 * may show in it.
 *
 * timeout: 300
 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "rdma.h"
#include "tap.h"

enum {
	SMALL		= 100,
	COOKIES		= 64,		/* regions whose cookies are compared */
	VIEWS		= 256,		/* of one MiB, one after another */
	LARGE_REGIONS	= 100,		/* one in 16 could end above 4 GiB */
	REGIONS		= 120000,	/* nearly all that a namespace may have */
	GUESSES		= 1000000,	/* of one of their cookies */
	MIB		= 1 << 20,
	LONG_BYTES	= 64 * MIB,	/* of an op that lasts */
	COPY_MS		= 20000,
	STALE_ROUNDS	= 20,
	LOADED		= 64 * 1024,	/* of a region whose users are busy */
};

#define WRITABLE RDS_RDMA_READWRITE

static char small[SMALL];

/* Writes one byte with a key: the status */
static int try_write(int fd, const struct target *t)
{
	struct op op = op_write(t, 0, "w", 1);

	return op_run(fd, &t->addr, &op);
}

/* ----------------------------------------------------------- registration */

/* There is no connection: registering is a local matter */
static void before_connection(void)
{
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;

	target_open(&t, sizeof(small), WRITABLE);
	/* as the memory is aligned */
	check_eq((t.cookie >> 32) % sizeof(u64), 0);
	stamp(small, sizeof(small), 1);
	op = op_write(&t, 0, small, sizeof(small));
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(stamped(t.mem, sizeof(small), 1));
	memset(small, 0, sizeof(small));
	op = op_read(&t, 0, small, sizeof(small));
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(stamped(small, sizeof(small), 1));
	check_ret(mr_free(t.fd, t.cookie), 0);
	target_close(&t);
	close(fd);
}

static void for_dest(void)
{
	union addr self;
	int fd = rds_bound(&self);
	struct target t;

	target_open(&t, PAGE_BYTES, WRITABLE);
	must(mr_free(t.fd, t.cookie));
	must(mr_get_for(t.fd, &self, t.mem, PAGE_BYTES, WRITABLE, &t.cookie));
	check_eq(try_write(fd, &t), RDS_RDMA_SUCCESS);
	check_eq(t.mem[0], 'w');
	check_ret(mr_free(t.fd, t.cookie), 0);
	target_close(&t);
	close(fd);
}

/* The owner offers its memory in a message, the other side uses it */
static void by_message(void)
{
	union addr self;
	int fd = rds_bound(&self);
	char *mem = pages(PAGE_BYTES);
	u64 cookie = 0;
	struct rds_get_mr_args args = {
		.vec = { (uintptr_t)mem + 3, SMALL },
		.cookie_addr = (uintptr_t)&cookie,
		.flags = WRITABLE,
	};
	struct ctl ctl = { 0 };
	struct target t = { 0 };
	struct got got;

	t.fd = rds_bound(&t.addr);
	ctl_add(&ctl, RDS_CMSG_RDMA_MAP, &args, sizeof(args));
	check_ret(ctl_send(t.fd, &self, &ctl, "here", 4, 0), 4);
	check_ret(got_within(fd, &got, WAIT_MS), 4);
	check(!memcmp(got.data, "here", 4));
	check(got.has_cookie);
	check_eq(got.cookie, cookie);
	t.cookie = got.cookie;
	check_eq(try_write(fd, &t), RDS_RDMA_SUCCESS);
	check_eq(mem[3], 'w');

	tap_context("a cookie that there is already");
	memset(&ctl, 0, sizeof(ctl));
	ctl_add(&ctl, RDS_CMSG_RDMA_DEST, &cookie, sizeof(cookie));
	check_ret(ctl_send(t.fd, &self, &ctl, NULL, 0, 0), 0);
	check_ret(got_within(fd, &got, WAIT_MS), 0);
	check(got.has_cookie);
	check_eq(got.cookie, cookie);
	tap_context("another socket's");
	check_err(ctl_send(fd, &self, &ctl, NULL, 0, 0), EINVAL);
	tap_context("one that has ended");
	check_ret(mr_free(t.fd, cookie), 0);
	check_err(ctl_send(t.fd, &self, &ctl, NULL, 0, 0), EINVAL);
	close(t.fd);
	close(fd);
}

/* The number alone does not name a region: one that has ended may have had it. */
static void other_place(void)
{
	struct ctl ctl = { 0 };
	struct target t;
	u64 cookie;

	target_open(&t, PAGE_BYTES, WRITABLE);
	cookie = t.cookie + ((u64)PAGE_BYTES << 32);
	check_err(mr_free(t.fd, cookie), EINVAL);
	ctl_add(&ctl, RDS_CMSG_RDMA_DEST, &cookie, sizeof(cookie));
	check_err(ctl_send(t.fd, &t.addr, &ctl, NULL, 0, 0), EINVAL);
	/* its last byte; in-tree RDS lets programs move the offset */
	cookie = t.cookie + ((u64)(PAGE_BYTES - 1) << 32);
	check_ret(mr_free(t.fd, cookie), 0);
	check_err(mr_free(t.fd, t.cookie), EINVAL);
	target_close(&t);
}

/* In-tree RDS lets programs move the offset: it is no more than 32 bits wide in
 * the last byte, too. The region is large, and its memory is small.
 */
static void last_place(void)
{
	int fd = rds_bound(NULL), mem = memfd_create("region", 0);
	char *at = mmap(NULL, (size_t)VIEWS * MIB, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u64 cookie;
	int i;

	/* devices have their limits, loopback has not */
	loop_only();
	must(at == MAP_FAILED ? -1 : ftruncate(mem, MIB));
	for (i = 0; i < VIEWS; i++)
		must(mmap(at + (size_t)i * MIB, MIB, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_FIXED, mem, 0) == MAP_FAILED ? -1 : 0);
	for (i = 0; i < LARGE_REGIONS; i++) {
		must(mr_get(fd, at, (size_t)VIEWS * MIB, WRITABLE, &cookie));
		if (!check((cookie >> 32) + (u64)VIEWS * MIB <= 1ULL << 32))
			break;
		cookie += (u64)(VIEWS * MIB - 1) << 32;
		if (!check_ret(mr_free(fd, cookie), 0))
			break;
	}
	munmap(at, (size_t)VIEWS * MIB);
	close(mem);
	close(fd);
}

/* A message whose cookie cannot be copied out stays, with it */
static void cookie_bad_pointer(void)
{
	struct msghdr msg = {
		.msg_control = before_wall(PROT_READ) - PAGE_BYTES,
		.msg_controllen = CMSG_SPACE(sizeof(u64)),
	};
	struct ctl ctl = { 0 };
	struct got got;
	union addr self;
	int fd = rds_bound(&self);
	u64 cookie;

	must(mr_get(fd, pages(PAGE_BYTES), PAGE_BYTES, 0, &cookie));
	ctl_add(&ctl, RDS_CMSG_RDMA_DEST, &cookie, sizeof(cookie));
	must(ctl_send(fd, &self, &ctl, "x", 1, 0));
	check_eq(poll_one(fd, POLLIN, tap_ms(WAIT_MS)), POLLIN);
	check_err(recvmsg(fd, &msg, MSG_DONTWAIT), EFAULT);
	check_ret(got_within(fd, &got, WAIT_MS), 1);
	check_eq(got.cookie, cookie);
	close(fd);
}

/* A send that fails takes its region along */
static void map_undone(void)
{
	union addr to = addr_of(tap_host, 4000);
	char *mem = pages(PAGE_BYTES);
	struct rds_get_mr_args args = { .vec = { (uintptr_t)mem, PAGE_BYTES } };
	long before = pinned_kb();
	int fd = rds_bound(NULL);
	struct ctl ctl = { 0 };

	ctl_add(&ctl, RDS_CMSG_RDMA_MAP, &args, sizeof(args));
	check_err(ctl_send(fd, &to, &ctl, (char *)8, 1, 0), EFAULT);
	ctl_add(&ctl, 99, &args, sizeof(args));
	check_err(ctl_send(fd, &to, &ctl, "x", 1, 0), EINVAL);
	check_pinned_falls(before);
	close(fd);
}

/* ----------------------------------------------------------------- bounds */

/* All of a region of odd place and size, and the bytes around it */
static void odd_one(int fd, size_t start, size_t bytes)
{
	size_t whole = (start + bytes + PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES;
	char *local = pages(whole), *mem = pages(whole);
	struct target t = { .mem = mem };
	struct op op;

	tap_context("%zu bytes at %zu", bytes, start);
	t.fd = rds_bound(&t.addr);
	must(mr_get(t.fd, mem + start, bytes, WRITABLE, &t.cookie));
	stamp(local + start / 2, bytes, start + bytes);
	op = op_write(&t, 0, local + start / 2, bytes);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(stamped(mem + start, bytes, start + bytes));
	check(filled(mem, start, 0));
	check(filled(mem + start + bytes, whole - start - bytes, 0));

	memset(local, 0, whole);
	op = op_read(&t, 0, local + 1, bytes);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(stamped(local + 1, bytes, start + bytes));
	check(filled(local + 1 + bytes, whole - 1 - bytes, 0));
	close(t.fd);
	munmap(local, whole);
	munmap(mem, whole);
}

static void odd_ranges(void)
{
	static const size_t starts[] = { 0, 1, 7, 2048, 4095 };
	static const size_t sizes[] = { 1, 2, 63, 4095, 4096, 4097, 12289 };
	int fd = rds_bound(NULL);

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		for (size_t j = 0; j < ARRAY_SIZE(sizes); j++)
			odd_one(fd, starts[i], sizes[j]);
	close(fd);
}

/* A part of a region, anywhere in it */
static void inside(void)
{
	static const size_t places[] = { 1, 99, 4094, 4096, 8191, 10000 };
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;

	target_open(&t, 3 * PAGE_BYTES, WRITABLE);
	stamp(small, sizeof(small), 5);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		size_t at = places[i];

		tap_context("at %zu", at);
		memset(t.mem, 0, t.bytes);
		op = op_write(&t, at, small, sizeof(small));
		check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
		check(stamped(t.mem + at, sizeof(small), 5));
		check(filled(t.mem, at, 0));
		check(filled(t.mem + at + SMALL, t.bytes - at - SMALL, 0));
	}
	target_close(&t);
	close(fd);
}

/* Whoever guesses a region has to guess both halves of its cookie. */
static void not_guessed(void)
{
	int fd = rds_bound(NULL);
	u32 keys = 0, offsets = 0;
	char *mem = pages(PAGE_BYTES);
	u64 first = 0, cookie;

	/* a device draws its own keys */
	loop_only();
	for (int i = 0; i < COOKIES; i++) {
		check_ret(mr_get(fd, mem, PAGE_BYTES, WRITABLE, &cookie), 0);
		if (!i)
			first = cookie;
		keys |= (u32)(cookie ^ first);
		offsets |= (u32)((cookie ^ first) >> 32);
	}
	check_eq(keys, ~0u);
	check_eq(offsets, ~0u & ~(u32)(sizeof(u64) - 1));
	munmap(mem, PAGE_BYTES);
	close(fd);
}

/* A program that tries cookies at random, beside as many regions as there may be.
 * Every region is one page, which has no 'g' before. A half of the cookies
 * have the offset of a region without chance.
 */
static void guessed(void)
{
	struct target t = { .mem = pages(PAGE_BYTES) };
	int fd = rds_bound(NULL), regions = tap_count(REGIONS);
	int guesses = tap_count(GUESSES);
	u64 tried[32];
	struct op op;

	/* a wrong key ends the connection there, so each guess takes a while */
	loop_only();
	/* the page counts once for each */
	knob("net/xrds/max_pinned_kb", 2 * REGIONS * (PAGE_BYTES >> 10));
	t.fd = rds_bound(&t.addr);
	for (int i = 0; i < regions; i++)
		must(mr_get(t.fd, t.mem, PAGE_BYTES, WRITABLE, &t.cookie));
	check_eq(try_write(fd, &t), RDS_RDMA_SUCCESS);
	check_eq(t.mem[0], 'w');
	op = op_write(&t, 0, "g", 1);
	op_set(&op, RDS_RDMA_SILENT, 0);
	for (int i = 0; i < guesses; i++) {
		if (!(i % ARRAY_SIZE(tried)))
			must(getrandom(tried, sizeof(tried), 0));
		op.rdma.cookie = tried[i % ARRAY_SIZE(tried)];
		if (i % 2)
			op.rdma.cookie = (u32)op.rdma.cookie;
		must(op_send(fd, &t.addr, &op));
	}
	must_wait(rds_all_acked, &fd, WAIT_MS);
	check(!memchr(t.mem, 'g', PAGE_BYTES));
	check_eq(try_write(fd, &t), RDS_RDMA_SUCCESS);
	close(fd);
	target_close(&t);
}

static void outside_one(int fd, const struct target *t, u64 offset, u64 bytes)
{
	char *local = pages(bytes);
	struct op op;

	tap_context("%llu bytes at %llu, key offset %llu", bytes, offset,
		    t->cookie >> 32);
	memset(local, 'w', bytes);
	op = op_write(t, offset, local, bytes);
	check_eq(op_run(fd, &t->addr, &op), RDS_RDMA_REMOTE_ERROR);
	check(filled(t->mem, 2 * PAGE_BYTES, 't'));
	op = op_read(t, offset, local, bytes);
	check_eq(op_run(fd, &t->addr, &op), RDS_RDMA_REMOTE_ERROR);
	check(filled(local, bytes, 'w'));
	munmap(local, bytes);
}

/* The region is bytes 500 to 5499 of two pages */
static void outside(void)
{
	enum { START = 500, BYTES = 5000 };
	struct target t = { .mem = pages(2 * PAGE_BYTES) };
	int fd = rds_bound(NULL);
	u64 cookie;

	memset(t.mem, 't', 2 * PAGE_BYTES);
	t.fd = rds_bound(&t.addr);
	must(mr_get(t.fd, t.mem + START, BYTES, WRITABLE, &cookie));
	t.cookie = cookie;
	outside_one(fd, &t, 0, BYTES + 1);
	outside_one(fd, &t, 1, BYTES);
	outside_one(fd, &t, BYTES - 1, 2);
	outside_one(fd, &t, BYTES, 1);
	outside_one(fd, &t, BYTES + 1, 1);
	outside_one(fd, &t, 1ull << 40, 1);
	/* in front of it: by a cookie that the kernel has not made */
	t.cookie = cookie - (1ull << 32);
	outside_one(fd, &t, 0, 1);
	outside_one(fd, &t, 0, BYTES + 1);
	t.cookie = (u32)cookie;
	outside_one(fd, &t, 0, 1);
	/* nor inside: both halves have to be right */
	t.cookie = cookie + (8ull << 32);
	outside_one(fd, &t, 0, 1);
	t.cookie = cookie - (8ull << 32);
	outside_one(fd, &t, 8, 1);
	tap_context("afterwards");
	t.cookie = cookie;
	check_eq(try_write(fd, &t), RDS_RDMA_SUCCESS);
	close(t.fd);
	close(fd);
}

static void large_one(int fd, size_t bytes)
{
	char *local = pages(bytes);
	struct target t;
	struct op op;

	tap_context("%zu bytes", bytes);
	target_open(&t, bytes, WRITABLE);
	stamp(local, bytes, bytes);
	op = op_write(&t, 0, local, bytes);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(!memcmp(t.mem, local, bytes));
	memset(local, 0, bytes);
	op = op_read(&t, 0, local, bytes);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(!memcmp(t.mem, local, bytes));
	target_close(&t);
	munmap(local, bytes);
}

static void large(void)
{
	int fd = rds_bound(NULL);

	large_one(fd, 5 * PAGE_BYTES);
	large_one(fd, MIB);
	/* devices have their limits, loopback has not */
	loop_only();
	large_one(fd, 8 * MIB);
	close(fd);
}

/* ------------------------------------------------------------------- keys */

static void read_only(void)
{
	int fd = rds_bound(NULL);
	struct target t;
	u64 old = 7;
	struct op op;

	target_open(&t, PAGE_BYTES, 0);
	memset(t.mem, 't', PAGE_BYTES);
	check_eq(try_write(fd, &t), RDS_RDMA_REMOTE_ERROR);
	op = op_fadd(&t, 0, 1, &old);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_REMOTE_ERROR);
	op = op_cswp(&t, 0, 0x7474747474747474, 0, &old);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_REMOTE_ERROR);
	check_eq(old, 7);
	check(filled(t.mem, PAGE_BYTES, 't'));
	op = op_read(&t, 0, small, sizeof(small));
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(filled(small, sizeof(small), 't'));
	target_close(&t);
	close(fd);
}

/* Peers read the bytes that the owner stores after registering */
static void read_only_fresh(void)
{
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;

	/* nobody has touched these pages before they are pinned */
	t.fd = rds_bound(&t.addr);
	t.bytes = 2 * PAGE_BYTES;
	t.mem = pages(t.bytes);
	must(mr_get(t.fd, t.mem, t.bytes, 0, &t.cookie));
	stamp(t.mem, t.bytes, 9);
	op = op_read(&t, PAGE_BYTES - 10, small, sizeof(small));
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(!memcmp(small, t.mem + PAGE_BYTES - 10, sizeof(small)));
	target_close(&t);
	close(fd);
}

static void wrong_key(void)
{
	int fd = rds_bound(NULL);
	struct target t;
	u64 cookie;

	target_open(&t, PAGE_BYTES, WRITABLE);
	cookie = t.cookie;
	for (int bit = 0; bit < 32; bit++) {
		tap_context("bit %d of the key wrong", bit);
		t.cookie = cookie ^ 1ull << bit;
		check_eq(try_write(fd, &t), RDS_RDMA_REMOTE_ERROR);
	}
	tap_context("key 0");
	t.cookie = 0;
	check_eq(try_write(fd, &t), RDS_RDMA_REMOTE_ERROR);
	tap_context("freed key");
	t.cookie = cookie;
	must(mr_free(t.fd, cookie));
	check_eq(try_write(fd, &t), RDS_RDMA_REMOTE_ERROR);
	check(filled(t.mem, PAGE_BYTES, 0));
	target_close(&t);
	close(fd);
}

/* A key is of an address, and of a socket */
static void others_key(void)
{
	union addr there = addr_of("127.0.0.2", 4000);
	int fd = rds_bound(NULL), other = rds_bound(NULL);
	struct target t;
	struct op op;

	loop_only();
	target_open(&t, PAGE_BYTES, WRITABLE);
	op = op_write(&t, 0, "w", 1);
	check_eq(op_run(fd, &there, &op), RDS_RDMA_REMOTE_ERROR);
	check_eq(t.mem[0], 0);
	check_err(mr_free(other, t.cookie), EINVAL);
	check_eq(try_write(fd, &t), RDS_RDMA_SUCCESS);
	check_eq(t.mem[0], 'w');
	target_close(&t);
	close(other);
	close(fd);
}

static void use_once(void)
{
	static const u64 flags[] = { 0, RDS_RDMA_SILENT };
	long before = pinned_kb();
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		tap_context("op flags %#llx", flags[i]);
		target_open(&t, PAGE_BYTES, WRITABLE | RDS_RDMA_USE_ONCE);
		op = op_write(&t, 0, "1", 1);
		op_set(&op, flags[i], 0);
		check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
		check_eq(t.mem[0], '1');
		op = op_write(&t, 0, "2", 1);
		op_set(&op, flags[i], 0);
		check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_REMOTE_ERROR);
		check_eq(t.mem[0], '1');
		check_err(mr_free(t.fd, t.cookie), EINVAL);
		/* the pages are given back, with the socket open */
		check_pinned_falls(before);
		target_close(&t);
	}
	close(fd);
}

/* The message behind an op is cancelled while the op is copied, and another one
 * arrives before the op has ended.
 */
static void use_once_canceled(void)
{
	char *local = pages(LONG_BYTES);
	int fd = rds_bound(NULL);
	bool overtaken = false;
	struct target t;
	struct got got;
	struct op op;

	/* a device keeps the order */
	loop_only();
	for (int i = 0; i < 5 && !overtaken; i++) {
		target_open(&t, LONG_BYTES, WRITABLE | RDS_RDMA_USE_ONCE);
		/* the connection is up from now on, so the op begins at once */
		must(rds_send(fd, "x", 1, 0, &t.addr));
		check_ret(got_within(t.fd, &got, WAIT_MS), 1);
		must_wait(rds_all_acked, &fd, WAIT_MS);
		op = op_write(&t, 0, local, LONG_BYTES);
		op_set(&op, RDS_RDMA_NOTIFY_ME, 1);
		must(op_send(fd, &t.addr, &op));
		must(setsockopt(fd, SOL_RDS, RDS_CANCEL_SENT_TO, &t.addr,
				addr_len(&t.addr)));
		must(rds_send(fd, "x", 1, 0, &t.addr));
		/* the one of the op, if we have stood still for so long */
		overtaken = got_within(t.fd, &got, WAIT_MS) == 1 &&
			    !poll_one(fd, POLLIN, 0);
		must(got_within(fd, &got, tap_ms(COPY_MS)));
		check_eq(got.nr_status, 1);
		check_eq(got.status[0].status, RDS_RDMA_SUCCESS);
		check_err(mr_free(t.fd, t.cookie), EINVAL);
		target_close(&t);
	}
	check(overtaken);
	munmap(local, LONG_BYTES);
	close(fd);
}

static void closed(void)
{
	int fd = rds_bound(NULL);
	long before = pinned_kb();
	struct target t;

	target_open(&t, PAGE_BYTES, WRITABLE);
	check_eq(try_write(fd, &t), RDS_RDMA_SUCCESS);
	t.mem[0] = 't';
	close(t.fd);
	check_eq(try_write(fd, &t), RDS_RDMA_REMOTE_ERROR);
	check_eq(t.mem[0], 't');
	check_pinned_falls(before);
	close(fd);
}

/* A peer that keeps using the region, and the status of its ops */
struct user {
	pthread_t thread;
	struct target *t;
	bool write;
	bool stop;
	long done, refused, other;
};

static void *user_thread(void *arg)
{
	char *mem = pages(LOADED);
	struct user *u = arg;
	int fd = rds_bound(NULL), status;
	struct op op;

	memset(mem, 'w', LOADED);
	while (!READ_ONCE(u->stop)) {
		/* nobody reads messages there */
		op = u->write ? op_write(u->t, 0, mem, LOADED) :
				op_read(u->t, 0, mem, LOADED);
		op_set(&op, RDS_RDMA_SILENT, 0);
		status = op_run(fd, &u->t->addr, &op);
		u->done += status == RDS_RDMA_SUCCESS;
		u->refused += status == RDS_RDMA_REMOTE_ERROR;
		u->other += status != RDS_RDMA_SUCCESS &&
			    status != RDS_RDMA_REMOTE_ERROR;
	}
	close(fd);
	return NULL;
}

static void user_start(struct user *u, struct target *t, bool write)
{
	*u = (struct user){ .t = t, .write = write };
	pthread_create(&u->thread, NULL, user_thread, u);
}

static void user_end(struct user *u)
{
	WRITE_ONCE(u->stop, true);
	pthread_join(u->thread, NULL);
	check_eq(u->other, 0);
	check(u->done > 0);
}

static bool written(void *arg)
{
	return READ_ONCE(*(char *)arg) == 'w';
}

static void mr_end(const struct target *t, u32 flags)
{
	struct rds_free_mr_args args = { .cookie = t->cookie, .flags = flags };

	check_ret(setsockopt(t->fd, SOL_RDS, RDS_FREE_MR, &args, sizeof(args)),
		  0);
}

/* Peers keep writing and reading: bytes that are stored after RDS_FREE_MR stay.
 * A user of another region at the same address notices nothing.
 */
static void freed_in_use(u32 flags)
{
	struct user users[4], bystander;
	struct target t, other;
	long refused = 0;
	u64 cookie;

	target_open(&t, LOADED, WRITABLE);
	target_open(&other, LOADED, WRITABLE);
	for (int i = 0; i < 4; i++)
		user_start(&users[i], &t, i % 2);
	user_start(&bystander, &other, true);
	for (int i = 0; i < STALE_ROUNDS; i++) {
		must_wait(written, t.mem, WAIT_MS);
		mr_end(&t, flags);
		memset(t.mem, 'f', LOADED);
		/* no condition to wait for: nothing is to happen */
		usleep(i % 5 * 500);
		check(filled(t.mem, LOADED, 'f'));
		must(mr_get(t.fd, t.mem, LOADED, WRITABLE, &cookie));
		WRITE_ONCE(t.cookie, cookie);
	}
	for (int i = 0; i < 4; i++) {
		user_end(&users[i]);
		refused += users[i].refused;
	}
	check(refused > 0);
	user_end(&bystander);
	check_eq(bystander.refused, 0);
	target_close(&other);
	target_close(&t);
}

static void free_in_use(void)
{
	freed_in_use(0);
}

static void invalidate_in_use(void)
{
	freed_in_use(RDS_RDMA_INVALIDATE);
}

static const struct tap_case cases[] = {
	{ "before_connection", "a region works before there is any connection",
	  before_connection, TAP_EACH_FAMILY, 0 },
	{ "not_guessed", "all bits of a cookie are random, but three for atomics",
	  not_guessed, 0, 0 },
	{ "guessed", "none of a million cookies that are tried is one of 120,000",
	  guessed, 0, 240 },
	{ "for_dest", "RDS_GET_MR_FOR_DEST does the same", for_dest,
	  TAP_EACH_FAMILY, 0 },
	{ "by_message", "RDMA_MAP and RDMA_DEST arrive as a cookie",
	  by_message, TAP_EACH_FAMILY, 0 },
	{ "other_place", "a cookie that lies outside its region names none",
	  other_place, 0, 0 },
	{ "last_place", "a large region ends below 4 GiB", last_place, 0, 120 },
	{ "cookie_bad_pointer", "a cookie that cannot be copied is not lost",
	  cookie_bad_pointer, 0, 0 },
	{ "map_undone", "a failed send leaves no region", map_undone, 0, 0 },
	{ "odd_ranges", "any start and length, exact to the byte", odd_ranges,
	  0, 60 },
	{ "inside", "any part of a region", inside, TAP_EACH_FAMILY, 0 },
	{ "outside", "one byte outside is refused and touches nothing",
	  outside, 0, 0 },
	{ "large", "20 KiB, 1 MiB and 8 MiB in one op", large, 0, 60 },
	{ "read_only", "a read-only region is read but not written", read_only,
	  TAP_EACH_FAMILY, 0 },
	{ "read_only_fresh", "peers read what is stored after registering",
	  read_only_fresh, 0, 0 },
	{ "wrong_key", "unknown and freed keys are refused", wrong_key, 0, 0 },
	{ "others_key", "a key is good at its address, freed by its socket",
	  others_key, 0, 0 },
	{ "use_once_canceled", "so it does if the op's message is cancelled",
	  use_once_canceled, 0, 60 },
	{ "use_once", "a region to be used once ends with its use", use_once,
	  0, 0 },
	{ "closed", "closing the socket ends its regions", closed, 0, 0 },
	{ "free_in_use", "after RDS_FREE_MR no peer touches the memory",
	  free_in_use, 0, 60 },
	{ "invalidate_in_use", "the same with RDS_RDMA_INVALIDATE",
	  invalidate_in_use, 0, 60 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
