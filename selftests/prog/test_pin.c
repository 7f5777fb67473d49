// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of a program that devices use: some cannot be registered, it is
 * charged to the user and the process, and the program may unmap it, fork, or
 * die while it is in use.
 *
 * timeout: 180
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counters.h"
#include "rdma.h"
#include "tap.h"

enum {
	NOBODY		= 65534,
	LIMIT_PAGES	= 16,
	HUGE_BYTES	= 2 << 20,
	SMALL		= 100,
	IN_FLIGHT	= 100,		/* ops */
	TIGHT_ROUNDS	= 100,
	UNREAD		= 16,		/* notices */
	TARGET_PORT	= 4000,
};

#define WRITABLE RDS_RDMA_READWRITE

static char small[SMALL];

static int try_write(int fd, const struct target *t)
{
	struct op op = op_write(t, 0, "w", 1);

	return op_run(fd, &t->addr, &op);
}

/* A socket and the key of its region, to another process */
static void fd_pass(int unix_fd, int fd, const void *data, size_t len)
{
	char control[CMSG_SPACE(sizeof(fd))] __aligned(8) = { 0 };
	struct iovec iov = { (void *)data, len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	must(sendmsg(unix_fd, &m, 0));
}

static int fd_take(int unix_fd, void *data, size_t len)
{
	char control[CMSG_SPACE(sizeof(int))] __aligned(8);
	struct iovec iov = { data, len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	int fd = -1;

	check_eq(must(recvmsg(unix_fd, &m, 0)), len);
	if (CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return must(fd);
}

/* --------------------------------------------------------- what is refused */

static void refused(void)
{
	char *wall = before_wall(PROT_READ | PROT_WRITE);
	char *read_only_page = before_wall(PROT_READ) - PAGE_BYTES;
	char *none = before_wall(PROT_NONE) - PAGE_BYTES;
	const struct {
		const char *what;
		void *mem;
		u64 bytes, flags;
		int error;
	} bad[] = {
		{ "no bytes", wall - 10, 0, 0, EINVAL },
		{ "wraps", wall - 10, ~0ull - 8, 0, EINVAL },
		{ "all there is", 0, ~0ull, 0, EMSGSIZE },
		{ "4 GiB", wall - 10, 1ull << 32, 0, EMSGSIZE },
		{ "unknown flag", wall - 10, 1, 1 << 7, EINVAL },
		{ "high flag", wall - 10, 1, 1ull << 32, EINVAL },
		{ "SILENT", wall - 10, 1, RDS_RDMA_SILENT, EINVAL },
		{ "page zero", (void *)8, 1, 0, EFAULT },
		{ "runs into a wall", wall - 10, 11, 0, EFAULT },
		{ "begins in a wall", wall, 1, 0, EFAULT },
		{ "no access", none, 1, 0, EFAULT },
		{ "read-only, for writing", read_only_page, 1, WRITABLE,
		  EFAULT },
		{ "kernel", (void *)0xffffffff81000000ul, 1, 0, EFAULT },
		{ "not canonical", (void *)(1ul << 63), 1, 0, EFAULT },
	};
	long before = pinned_kb();
	int fd = rds_bound(NULL);
	u64 cookie;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		tap_context("%s", bad[i].what);
		check_err(mr_get(fd, bad[i].mem, bad[i].bytes, bad[i].flags,
				 &cookie), bad[i].error);
	}
	tap_context("nobody is told the cookie");
	check_err(mr_get(fd, wall - 10, 10, 0, (u64 *)8), EFAULT);
	check_err(mr_get(fd, wall - 10, 10, 0, (u64 *)wall), EFAULT);
	check_err(mr_get(fd, wall - 10, 10, 0, (u64 *)none), EFAULT);
	check_pinned_falls(before);
	tap_context("and correct ones");
	check_ret(mr_get(fd, wall - 10, 10, WRITABLE, &cookie), 0);
	check_ret(mr_get(fd, read_only_page, 10, 0, &cookie), 0);
	check_ret(mr_get(fd, read_only_page, 10, 0, NULL), 0);
	close(fd);
	check_pinned_falls(before);
}

static void option_sizes(void)
{
	struct rds_get_mr_for_dest_args args = {
		.vec = { (uintptr_t)small, 1 },
	};
	static const struct { int option; socklen_t len; } options[] = {
		{ RDS_GET_MR, sizeof(struct rds_get_mr_args) },
		{ RDS_GET_MR_FOR_DEST, sizeof(args) },
		{ RDS_FREE_MR, sizeof(struct rds_free_mr_args) },
	};
	int fd = rds_bound(NULL), unbound = rds_socket();

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		int option = options[i].option;
		socklen_t len = options[i].len;

		tap_context("option %d", option);
		check_err(setsockopt(fd, SOL_RDS, option, &args, len - 1),
			  EINVAL);
		check_err(setsockopt(fd, SOL_RDS, option, &args, 0), EINVAL);
		check_err(setsockopt(fd, SOL_RDS, option, (void *)8, len),
			  EFAULT);
		check_err(setsockopt(unbound, SOL_RDS, option, &args, len),
			  option == RDS_FREE_MR ? EINVAL : ENOTCONN);
	}
	close(unbound);
	close(fd);
}

static void freed(void)
{
	int fd = rds_bound(NULL);
	struct rds_free_mr_args args = { 0 };
	u64 cookie = 0;

	must(mr_get(fd, small, 1, 0, &cookie));
	check_err(mr_free(fd, cookie + 1), EINVAL);
	args.cookie = cookie;
	args.flags = 1 << 7;
	check_err(setsockopt(fd, SOL_RDS, RDS_FREE_MR, &args, sizeof(args)),
		  EINVAL);
	args.flags = RDS_RDMA_INVALIDATE;
	check_ret(setsockopt(fd, SOL_RDS, RDS_FREE_MR, &args, sizeof(args)), 0);
	check_err(mr_free(fd, cookie), EINVAL);
	check_ret(mr_free(fd, 0), 0);
	close(fd);
}

/* Huge pages of the program's own, which it has made read-only, can be read. */
static void huge_read_only(void)
{
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;
	u64 cookie;
	char *mem;

	if (!knob_exists("vm/nr_hugepages"))
		tap_skip("no huge pages in this kernel");
	knob("vm/nr_hugepages", 1);
	mem = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		   MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (mem == MAP_FAILED)
		tap_fail("no huge page: %s", tap_errno_name(errno));
	memset(mem, 'h', HUGE_BYTES);
	must(mprotect(mem, HUGE_BYTES, PROT_READ));
	check_err(mr_get(fd, mem, PAGE_BYTES, WRITABLE, &cookie), EFAULT);
	check_ret(mr_get(fd, mem, PAGE_BYTES, 0, &cookie), 0);
	target_open(&t, PAGE_BYTES, WRITABLE);
	op = op_write(&t, 0, mem + HUGE_BYTES - PAGE_BYTES, PAGE_BYTES);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(filled(t.mem, PAGE_BYTES, 'h'));
	target_close(&t);
	close(fd);
	must(munmap(mem, HUGE_BYTES));
}

/* --------------------------------------------------------- RLIMIT_MEMLOCK */

static void be_nobody(rlim_t limit)
{
	struct rlimit rlim = { limit, limit };

	must(setrlimit(RLIMIT_MEMLOCK, &rlim));
	must(setresgid(NOBODY, NOBODY, NOBODY));
	must(setresuid(NOBODY, NOBODY, NOBODY));
}

static void memlock(void)
{
	u64 limit = LIMIT_PAGES * PAGE_BYTES, cookie;
	char *mem = pages(4 * limit);
	int fd = rds_bound(NULL);
	struct target t = { 0 };
	long before;
	struct op op;

	t.addr = rds_self(fd);
	be_nobody(limit);
	before = pinned_kb();
	check_eq(before, 0);
	check_err(mr_get(fd, mem, limit + 1, WRITABLE, &cookie), ENOMEM);
	check_err(mr_get(fd, mem, 4 * limit, WRITABLE, &cookie), ENOMEM);
	op = op_read(&t, 0, mem, limit + 1);
	check_err(op_send(fd, &t.addr, &op), ENOMEM);
	check_eq(pinned_kb(), before);

	tap_context("to the last page");
	check_ret(mr_get(fd, mem, limit, WRITABLE, &cookie), 0);
	check_eq(pinned_kb(), (long)limit / 1024);
	check_err(mr_get(fd, mem + limit, 1, WRITABLE, &t.cookie), ENOMEM);
	op = op_read(&t, 0, mem + limit, 1);
	check_err(op_send(fd, &t.addr, &op), ENOMEM);
	check_ret(mr_free(fd, cookie), 0);
	check_pinned_falls(before);

	tap_context("and again");
	check_ret(mr_get(fd, mem, limit, WRITABLE, &cookie), 0);
	close(fd);
	check_pinned_falls(before);
}

static void memlock_none(void)
{
	int fd = rds_bound(NULL);
	struct target t = { .addr = rds_self(fd) };
	struct op op;
	u64 cookie;

	be_nobody(0);
	check_err(mr_get(fd, small, 1, WRITABLE, &cookie), EPERM);
	op = op_write(&t, 0, small, 1);
	check_err(op_send(fd, &t.addr, &op), EPERM);
	check_eq(pinned_kb(), 0);
	close(fd);
}

/* Many registrations and ops leave nothing charged */
static void memlock_returns(void)
{
	u64 limit = LIMIT_PAGES * PAGE_BYTES;
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;

	be_nobody(limit);
	for (int i = 0; i < 20; i++) {
		tap_context("round %d", i);
		target_open(&t, limit / 2, WRITABLE);
		op = op_write(&t, 0, small, sizeof(small));
		check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
		if (i % 2)
			check_ret(mr_free(t.fd, t.cookie), 0);
		target_close(&t);
		check_pinned_falls(0);
	}
	close(fd);
}

/* A region that was ended makes room for another at once, though its pages are
 * given back later.
 */
static void memlock_tight(void)
{
	u64 limit = LIMIT_PAGES * PAGE_BYTES, cookie;
	char *mem = pages(limit);
	int fd = rds_bound(NULL);

	be_nobody(limit);
	for (int i = 0; i < TIGHT_ROUNDS; i++) {
		tap_context("round %d", i);
		if (!check_ret(mr_get(fd, mem, limit, WRITABLE, &cookie), 0))
			break;
		check_ret(mr_free(fd, cookie), 0);
	}
	close(fd);
	check_pinned_falls(0);
}

/* ---------------------------------------------------- who pays, and how long */

/* A region of the parent's, ended by a child: the parent is rid of it */
static void freed_by_child(void)
{
	long before = pinned_kb(), nr = pinned_pages();
	struct target t;
	pid_t pid;

	target_open(&t, LIMIT_PAGES * PAGE_BYTES, WRITABLE);
	check_eq(pinned_kb() - before, LIMIT_PAGES * PAGE_BYTES / 1024);
	check_eq(pinned_pages() - nr, LIMIT_PAGES);
	pid = must(fork());
	if (!pid) {
		check_eq(pinned_kb(), 0);
		check_ret(mr_free(t.fd, t.cookie), 0);
		check_pinned_pages_fall(nr);
		check_eq(pinned_kb(), 0);
		tap_child_exit();
	}
	tap_child_join(pid);
	check_pinned_falls(before);
	target_close(&t);
}

/* Registered by a process that leaves us its socket, and ends */
static void target_inherit(struct target *t)
{
	int pair[2];
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	pid = must(fork());
	if (!pid) {
		target_open(t, LIMIT_PAGES * PAGE_BYTES, WRITABLE);
		check_eq(pinned_kb(), LIMIT_PAGES * PAGE_BYTES / 1024);
		fd_pass(pair[1], t->fd, t, sizeof(*t));
		tap_child_exit();
	}
	t->fd = fd_take(pair[0], t, sizeof(*t));
	tap_child_join(pid);
	close(pair[0]);
	close(pair[1]);
}

/* The memory outlives its process, and is given back by the process that has
 * the socket
 */
static void freed_by_heir(void)
{
	int fd = rds_bound(NULL);
	long nr = pinned_pages();
	struct target t;

	for (int i = 0; i < 10; i++) {
		tap_context("round %d", i);
		target_inherit(&t);
		check_eq(pinned_kb(), 0);
		check_eq(pinned_pages() - nr, LIMIT_PAGES);
		check_eq(try_write(fd, &t), RDS_RDMA_SUCCESS);
		if (i % 2) {
			check_ret(mr_free(t.fd, t.cookie), 0);
			check_eq(try_write(fd, &t), RDS_RDMA_REMOTE_ERROR);
		}
		close(t.fd);
		check_pinned_pages_fall(nr);
		check_eq(pinned_kb(), 0);
	}
	close(fd);
}

/* Ops that are over keep no memory, whether their notices are read or not */
static void notices_unread(void)
{
	int fd = rds_bound(NULL), told = 0;
	struct target t;
	struct got got;
	struct op op;
	long before;

	target_open(&t, PAGE_BYTES, WRITABLE);
	before = pinned_kb();
	for (int i = 0; i < UNREAD; i++) {
		op = op_write(&t, 0, small, sizeof(small));
		op_set(&op, RDS_RDMA_NOTIFY_ME, i);
		must(op_send(fd, &t.addr, &op));
	}
	check_pinned_falls(before);
	while (told < UNREAD && got_within(fd, &got, WAIT_MS) >= 0)
		told += got.nr_status;
	check_eq(told, UNREAD);
	target_close(&t);
	close(fd);
}

/* The limit is one for all: mlock() has its own, as with other RDMA memory */
static void limit_of_process(void)
{
	u64 limit = LIMIT_PAGES * PAGE_BYTES, cookie;
	char *mem = pages(2 * limit);
	int fd = rds_bound(NULL), other = rds_bound(NULL);

	be_nobody(limit);
	check_ret(mlock(mem + limit, limit), 0);
	check_ret(mr_get(fd, mem, limit / 2, WRITABLE, &cookie), 0);
	check_ret(mr_get(other, mem, limit / 2, WRITABLE, &cookie), 0);
	check_err(mr_get(other, mem, 1, WRITABLE, &cookie), ENOMEM);
	check_err(mr_get(fd, mem, 1, WRITABLE, &cookie), ENOMEM);
	check_eq(pinned_kb(), (long)limit / 1024);
	close(fd);
	check_pinned_falls(limit / 2 / 1024);
	check_ret(mr_get(other, mem, limit / 2, WRITABLE, &cookie), 0);
	close(other);
	check_pinned_falls(0);
}

/* ------------------------------------------------- regions and their owner */

static void region_unmapped(void)
{
	long before = pinned_kb();
	int fd = rds_bound(NULL);
	struct target t;
	char *other;

	target_open(&t, PAGE_BYTES, WRITABLE);
	must(munmap(t.mem, PAGE_BYTES));
	other = mmap(t.mem, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		     MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	check(other == t.mem);
	memset(other, 'o', PAGE_BYTES);
	/* the region has the old page, and another page may have the address
	 * now
	 */
	check_eq(try_write(fd, &t), RDS_RDMA_SUCCESS);
	check(filled(other, PAGE_BYTES, 'o'));
	check_ret(mr_free(t.fd, t.cookie), 0);
	check_pinned_falls(before);
	target_close(&t);
	close(fd);
}

/* The pages stay the parent's, also if the child writes to them first */
static void region_forked(void)
{
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;
	pid_t pid;

	target_open(&t, PAGE_BYTES, WRITABLE);
	memset(t.mem, 'p', PAGE_BYTES);
	pid = must(fork());
	if (!pid) {
		t.mem[1] = 'c';
		pause();
	}
	t.mem[2] = 'q';
	check_eq(try_write(fd, &t), RDS_RDMA_SUCCESS);
	check_eq(t.mem[0], 'w');
	check_eq(t.mem[1], 'p');
	op = op_read(&t, 0, small, 3);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(!memcmp(small, "wpq", 3));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	target_close(&t);
	close(fd);
}

static struct target killed_target;

static void busy_owner(int ready)
{
	struct target t;

	t.fd = rds_bound_to(tap_host, TARGET_PORT, &t.addr);
	t.mem = pages(PAGE_BYTES);
	must(mr_get(t.fd, t.mem, PAGE_BYTES, WRITABLE, &t.cookie));
	must(write(ready, &t.cookie, sizeof(t.cookie)));
}

/* The peer dies with our ops under way: each of them ends */
static void owner_killed(void)
{
	struct target *t = &killed_target;
	int fd = rds_bound(NULL), pipe_fd[2], status = -1;
	struct got got;
	struct op op;
	int seen = 0;
	pid_t pid;

	must(pipe(pipe_fd));
	pid = must(fork());
	if (!pid) {
		busy_owner(pipe_fd[1]);
		for (;;)
			pause();
	}
	must(read(pipe_fd[0], &t->cookie, sizeof(t->cookie)));
	t->addr = addr_of(tap_host, TARGET_PORT);
	hold_ops();
	for (int i = 0; i < IN_FLIGHT; i++) {
		op = op_write(t, 0, small, sizeof(small));
		op_set(&op, RDS_RDMA_NOTIFY_ME, i);
		must(op_send(fd, &t->addr, &op));
	}
	must(kill(pid, SIGKILL));
	must(waitpid(pid, &status, 0));
	release_ops();
	while (seen < IN_FLIGHT && got_within(fd, &got, WAIT_MS) >= 0) {
		for (int i = 0; i < got.nr_status; i++)
			check_eq(got.status[i].status, RDS_RDMA_REMOTE_ERROR);
		seen += got.nr_status;
	}
	check_eq(seen, IN_FLIGHT);
	check_quiet(fd);
	check_eq(mark(fd, &t->addr), IN_FLIGHT);
	check_pinned_falls(0);
	close(fd);
}

/* ----------------------------------------------- ops and their own process */

/* A device writes to the page that was there, not to the address */
static void op_unmapped(void)
{
	int fd = rds_bound(NULL);
	char *mem = pages(PAGE_BYTES), *other;
	struct target t;
	struct xrds_barrier b;
	struct op op;

	target_open(&t, PAGE_BYTES, WRITABLE);
	memset(t.mem, 't', PAGE_BYTES);
	hold_ops();
	op = op_read(&t, 0, mem, PAGE_BYTES);
	must(op_send(fd, &t.addr, &op));
	must(munmap(mem, PAGE_BYTES));
	other = mmap(mem, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		     MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	check(other == mem);
	memset(other, 'o', PAGE_BYTES);
	check_eq(mark(fd, &t.addr), 0);
	release_ops();
	check_ret(barrier(fd, &t.addr, 1, 0, tap_ms(WAIT_MS), &b), 0);
	check(filled(other, PAGE_BYTES, 'o'));
	target_close(&t);
	close(fd);
	check_pinned_falls(0);
}

static void op_source_unmapped(void)
{
	int fd = rds_bound(NULL);
	char *mem = pages(PAGE_BYTES);
	struct xrds_barrier b;
	struct target t;
	struct op op;

	target_open(&t, PAGE_BYTES, WRITABLE);
	memset(mem, 'w', PAGE_BYTES);
	hold_ops();
	op = op_write(&t, 0, mem, PAGE_BYTES);
	must(op_send(fd, &t.addr, &op));
	must(munmap(mem, PAGE_BYTES));
	check_eq(mark(fd, &t.addr), 0);
	release_ops();
	check_ret(barrier(fd, &t.addr, 1, 0, tap_ms(WAIT_MS), &b), 0);
	check(filled(t.mem, PAGE_BYTES, 'w'));
	target_close(&t);
	close(fd);
	check_pinned_falls(0);
}

/* Neither side's store after the fork moves the page from under the op */
static void op_forked(void)
{
	int fd = rds_bound(NULL);
	char *into = pages(PAGE_BYTES), *from = pages(PAGE_BYTES);
	struct xrds_barrier b;
	struct target t;
	struct op op;
	pid_t pid;

	target_open(&t, 2 * PAGE_BYTES, WRITABLE);
	memset(t.mem, 't', PAGE_BYTES);
	memset(into, 0, PAGE_BYTES);
	memset(from, 'p', PAGE_BYTES);
	hold_ops();
	op = op_read(&t, 0, into, PAGE_BYTES / 2);
	must(op_send(fd, &t.addr, &op));
	op = op_write(&t, PAGE_BYTES, from, PAGE_BYTES);
	must(op_send(fd, &t.addr, &op));
	pid = must(fork());
	if (!pid) {
		memset(into, 'c', PAGE_BYTES);
		memset(from, 'c', PAGE_BYTES);
		_exit(0);
	}
	must(waitpid(pid, NULL, 0));
	into[PAGE_BYTES - 1] = 'x';
	check_eq(mark(fd, &t.addr), 0);
	release_ops();
	check_ret(barrier(fd, &t.addr, 2, 0, tap_ms(WAIT_MS), &b), 0);
	check(filled(into, PAGE_BYTES / 2, 't'));
	check(filled(into + PAGE_BYTES / 2, PAGE_BYTES / 2 - 1, 0));
	check(filled(t.mem + PAGE_BYTES, PAGE_BYTES, 'p'));
	target_close(&t);
	close(fd);
}

static void busy_ops(int ready)
{
	struct target *t = &killed_target;
	char *mem = pages(PAGE_BYTES);
	int fd = rds_bound(NULL);
	struct op op;

	for (int i = 0; i < IN_FLIGHT; i++) {
		if (i % 2)
			op = op_read(t, 0, mem, PAGE_BYTES);
		else
			op = op_write(t, 0, mem, PAGE_BYTES);
		op_set(&op, i % 3 ? RDS_RDMA_NOTIFY_ME : 0, i);
		must(op_send(fd, &t->addr, &op));
	}
	must(write(ready, "r", 1));
}

static void busy_barrier(int ready)
{
	struct xrds_barrier b;
	struct target *t = &killed_target;
	int fd = rds_bound(NULL);
	struct op op = op_write(t, 0, small, sizeof(small));

	must(op_send(fd, &t->addr, &op));
	must(write(ready, "r", 1));
	barrier(fd, &t->addr, 1, 0, 0, &b);
}

/* Ops of a process that is gone end, too, and nobody else is disturbed */
static void op_process_killed(void)
{
	struct target *t = &killed_target;
	long long before = counter_now("rdma_done");
	int fd = rds_bound(NULL);
	long nr;

	target_open(t, PAGE_BYTES, WRITABLE);
	nr = pinned_pages();
	hold_ops();
	tap_context("ops under way");
	tap_kill_busy(busy_ops);
	check_eq(counter_now("rdma_done"), before);
	release_ops();
	check(counter_reaches("rdma_done", before + IN_FLIGHT, WAIT_MS));
	check_pinned_pages_fall(nr);
	tap_context("in a barrier");
	hold_ops();
	tap_kill_busy(busy_barrier);
	tap_context("bystander");
	release_ops();
	check_eq(try_write(fd, t), RDS_RDMA_SUCCESS);
	target_close(t);
	close(fd);
}

static void closed(void)
{
	long long before = counter_now("rdma_done");
	char *mem = pages(PAGE_BYTES);
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;

	target_open(&t, PAGE_BYTES, WRITABLE);
	memset(t.mem, 't', PAGE_BYTES);
	hold_ops();
	for (int i = 0; i < IN_FLIGHT; i++) {
		op = op_read(&t, 0, mem, PAGE_BYTES);
		op_set(&op, RDS_RDMA_NOTIFY_ME, i);
		must(op_send(fd, &t.addr, &op));
	}
	close(fd);
	check_eq(counter_now("rdma_done"), before);
	release_ops();
	check(counter_reaches("rdma_done", before + IN_FLIGHT, WAIT_MS));
	check(filled(mem, PAGE_BYTES, 't'));
	target_close(&t);
	check_pinned_falls(0);
}

static const struct tap_case cases[] = {
	{ "refused", "bad ranges, flags and pointers pin nothing", refused,
	  0, 0 },
	{ "huge_read_only", "read-only huge pages serve as others do",
	  huge_read_only, 0, 0 },
	{ "option_sizes", "sizes, pointers, unbound sockets", option_sizes,
	  0, 0 },
	{ "freed", "RDS_FREE_MR: unknown, twice, flags", freed, 0, 0 },
	{ "memlock", "an ordinary user pins up to RLIMIT_MEMLOCK", memlock,
	  0, 0 },
	{ "memlock_none", "and nothing if that is zero", memlock_none, 0, 0 },
	{ "memlock_returns", "memory of an ended region is not charged",
	  memlock_returns, 0, 0 },
	{ "memlock_tight", "not even at once", memlock_tight, 0, 0 },
	{ "limit_of_process", "the limit is the process's, mlock() apart",
	  limit_of_process, 0, 0 },
	{ "freed_by_child",
	  "a process is not charged for a region that its child ends",
	  freed_by_child, 0, 0 },
	{ "notices_unread", "an op that is over keeps no memory for its notice",
	  notices_unread, 0, 0 },
	{ "freed_by_heir", "memory of a process that is gone is given back",
	  freed_by_heir, 0, 0 },
	{ "region_unmapped", "memory unmapped by its owner stays pinned",
	  region_unmapped, 0, 0 },
	{ "region_forked", "fork leaves registered pages with the parent",
	  region_forked, 0, 0 },
	{ "owner_killed", "ops toward memory of a killed process end",
	  owner_killed, TAP_EACH_FAMILY, 0 },
	{ "op_unmapped", "munmap under a read: nobody else's page is written",
	  op_unmapped, 0, 0 },
	{ "op_source_unmapped", "munmap under a write: the old data arrive",
	  op_source_unmapped, 0, 0 },
	{ "op_forked", "fork under ops: each side keeps its own pages",
	  op_forked, 0, 0 },
	{ "op_process_killed", "a process with ops under way dies promptly",
	  op_process_killed, TAP_EACH_FAMILY, 60 },
	{ "closed", "ops of a closed socket end and unpin", closed, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
