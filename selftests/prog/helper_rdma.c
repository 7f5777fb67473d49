// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: RDMA reads, writes and atomics, and the memory they use,
 * while nothing is wrong with the network. See remote.h for the command line.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "counters.h"
#include "pattern.h"
#include "remote.h"
#include "tap.h"
#include "turns.h"

enum {
	VECTORS		= 1024,		/* UIO_MAXIOV */
	GUARD		= 64,		/* bytes around what is written */
	ROOM		= 512 * 1024,
	PIECE_BYTES	= 2000,
	SMALL		= 100,
	IN_FLIGHT	= 64,		/* ops that memory is pinned for */
	PIN_BYTES	= 256 * 1024,
	LIMIT_PAGES	= 16,
	GUESSES		= 64,		/* wrong keys in a second */
	SECONDS		= 20,
	NOBODY		= 65534,
};

#define WRITABLE RDS_RDMA_READWRITE

/* The script stops the remote node, so that nothing ends meanwhile */
static int holds;

static void hold(void)
{
	remote_ask("hold", ++holds);
}

static void let_go(void)
{
	remote_ask("go", holds);
}

/* ------------------------------------------------------------------ smoke */

static void smoke(void)
{
	char *mem = pages(PAGE_BYTES);
	int fd = rds_bound(NULL);
	struct target t;
	struct remote r;
	struct op op;
	u64 old = 0;

	remote_open(&r);
	t = remote_get(&r, 0, PAGE_BYTES, WRITABLE);
	stamp(mem, PAGE_BYTES, 1);
	op = op_write(&t, 0, mem, PAGE_BYTES);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(remote_stamped(&r, 0, PAGE_BYTES, 1));
	remote_stamp(&r, 0, PAGE_BYTES, 2);
	op = op_read(&t, 0, mem, PAGE_BYTES);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(stamped(mem, PAGE_BYTES, 2));
	remote_poke(&r, 8, 40);
	op = op_fadd(&t, 8, 2, &old);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check_eq(old, 40);
	check_eq(remote_peek(&r, 8), 42);
	op = op_cswp(&t, 8, 42, 7, &old);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check_eq(old, 42);
	check_eq(remote_peek(&r, 8), 7);
	remote_free(&r, &t);
}

/* ---------------------------------------------------------- local buffers */

/* Writes and reads back with @nr local buffers, @offset into the region */
static void vector_one(struct remote *r, int fd, size_t nr, u64 offset)
{
	static struct rds_iovec vec[VECTORS];
	char *mem = pages(ROOM), *was = pages(ROOM), *flat = pages(ROOM);
	size_t bytes = vector_make(vec, nr, mem, ROOM);
	struct target t = remote_get(r, GUARD + offset, bytes, WRITABLE);
	u64 before, behind;
	struct op op;

	tap_context("%zu buffers", nr);
	before = remote_digest(r, 0, GUARD + offset);
	behind = remote_digest(r, GUARD + offset + bytes, GUARD);
	stamp(mem, ROOM, nr);
	vector_gather(vec, nr, flat);
	op = op_write(&t, 0, NULL, bytes);
	op_vector(&op, vec, nr);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(remote_digest(r, GUARD + offset, bytes) == digest(flat, bytes));
	check(remote_digest(r, 0, GUARD + offset) == before);
	check(remote_digest(r, GUARD + offset + bytes, GUARD) == behind);

	/* the bytes between the buffers stay as they are */
	remote_stamp(r, GUARD + offset, bytes, nr + 1);
	memcpy(was, mem, ROOM);
	stamp(flat, bytes, nr + 1);
	vector_scatter(vec, nr, flat);
	memcpy(flat, mem, ROOM);
	memcpy(mem, was, ROOM);
	op = op_read(&t, 0, NULL, bytes);
	op_vector(&op, vec, nr);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(!memcmp(mem, flat, ROOM));
	remote_free(r, &t);
	munmap(mem, ROOM);
	munmap(was, ROOM);
	munmap(flat, ROOM);
}

static void vectors(void)
{
	static const size_t sizes[] = { 1, 2, 6, 7, 12, 13, 255, 1023,
					VECTORS };
	int fd = rds_bound(NULL);
	struct remote r;

	remote_open(&r);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		vector_one(&r, fd, sizes[i], i * 1111);
}

/* One buffer of @bytes at odd places on both sides */
static void size_one(struct remote *r, int fd, u64 bytes, u64 here, u64 there)
{
	char *mem = pages(DEVICE_BYTES + PAGE_BYTES);
	struct target t = remote_get(r, there, bytes, WRITABLE);
	struct op op;

	tap_context("%llu bytes", bytes);
	stamp(mem + here, bytes, bytes);
	op = op_write(&t, 0, mem + here, bytes);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(remote_stamped(r, there, bytes, bytes));
	remote_stamp(r, there, bytes, bytes + 1);
	memset(mem, 'x', DEVICE_BYTES + PAGE_BYTES);
	op = op_read(&t, 0, mem + here, bytes);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(stamped(mem + here, bytes, bytes + 1));
	check(filled(mem, here, 'x'));
	check(filled(mem + here + bytes,
		     DEVICE_BYTES + PAGE_BYTES - here - bytes, 'x'));
	remote_free(r, &t);
	munmap(mem, DEVICE_BYTES + PAGE_BYTES);
}

static void sizes(void)
{
	static const u64 all[] = { 1, 2, 7, 8, 1023, 1024, 1025, 4095, 4096,
				   4097, 65535, 65537, 262144, 262145,
				   (1 << 20) - 1, 1 << 20 };
	int fd = rds_bound(NULL);
	struct remote r;
	u64 cookie;

	remote_open(&r);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		size_one(&r, fd, all[i], i * 3 % 17, i * 5 % 19);
	tap_context("the most that the device takes");
	size_one(&r, fd, DEVICE_BYTES, 0, 0);
	size_one(&r, fd, DEVICE_BYTES - 7, 3, 7);
	check_err(mr_get(fd, pages(DEVICE_BYTES + PAGE_BYTES),
			 DEVICE_BYTES + 1, 0, &cookie), EMSGSIZE);
}

/* As many work requests as possible, and so slots of the connection */
static void pieces(void)
{
	static struct rds_iovec vec[VECTORS];
	char *mem = pages(VECTORS * PAGE_BYTES), *flat = pages(DEVICE_BYTES);
	size_t bytes = VECTORS * PIECE_BYTES;
	int fd = rds_bound(NULL);
	struct target t;
	struct remote r;
	struct op op;

	remote_open(&r);
	t = remote_get(&r, 0, bytes, WRITABLE);
	stamp(flat, bytes, 1);
	for (size_t i = 0; i < VECTORS; i++) {
		vec[i].addr = (uintptr_t)mem + i * PAGE_BYTES;
		vec[i].bytes = PIECE_BYTES;
	}
	vector_scatter(vec, VECTORS, flat);
	op = op_write(&t, 0, NULL, bytes);
	op_vector(&op, vec, VECTORS);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(remote_stamped(&r, 0, bytes, 1));
}

/* --------------------------------------------------------------- atomics */

static void atomics(void)
{
	static const u64 values[] = { 0, 1, 7, ~0ull, 1ull << 63, 0xffffffff };
	u64 old, a, b;
	struct target t;
	struct remote r;
	struct op op;
	int fd = rds_bound(NULL);

	remote_open(&r);
	t = remote_get(&r, 40, PAGE_BYTES, WRITABLE);
	for (size_t i = 0; i < 36; i++) {
		a = values[i / 6];
		b = values[i % 6];
		tap_context("%#llx and %#llx", a, b);
		remote_poke(&r, 48, a);
		op = op_fadd(&t, 8, b, &old);
		check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
		check_eq(old, a);
		check_eq(remote_peek(&r, 48), a + b);
		remote_poke(&r, 48, a);
		op = op_cswp(&t, 8, b, 42, &old);
		check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
		check_eq(old, a);
		check_eq(remote_peek(&r, 48), a == b ? 42 : a);
	}
	check_eq(remote_peek(&r, 40), 0);
	check_eq(remote_peek(&r, 56), 0);
}

/* The device has them, or says that it has not; masks that make no difference
 * need no such device
 */
/* As an ordinary user */
static void masked(void)
{
	u64 old, id = 0, last;
	int fd = rds_bound(NULL);
	struct target t;
	struct remote r;
	struct op op;

	must(setresuid(NOBODY, NOBODY, NOBODY));
	remote_open(&r);
	t = remote_get(&r, 0, PAGE_BYTES, WRITABLE);
	remote_poke(&r, 8, 5);
	op = op_fadd(&t, 8, 1, &old);
	op.type = RDS_CMSG_MASKED_ATOMIC_FADD;
	op.atomic.m_fadd.add = 1;
	op.atomic.m_fadd.nocarry_mask = 0;
	op.id = &id;
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check_eq(old, 5);
	check_eq(remote_peek(&r, 8), 6);
	last = id;

	remote_poke(&r, 8, 0x00000001ffffffff);
	op.atomic.m_fadd.nocarry_mask = 0x80000000;
	op_set(&op, RDS_RDMA_NOTIFY_ME, 0);
	if (op_send(fd, &t.addr, &op) < 0) {
		check_err(-1, EOPNOTSUPP);
		/* it has no identifier, and the next one has its */
		check_eq(issued(fd, &t.addr), last);
		remote_say("masked: refused");
		return;
	}
	check(tally_all(fd, &(struct tally){ .sent = 1 }, WAIT_MS));
	check_eq(remote_peek(&r, 8), 0x0000000100000000);
	remote_say("masked: done");
}

/* At the address of a device on this node an ordinary user may try few keys in a
 * second; then the right one is as good as a wrong one, for the rest of it.
 */
static void guesses(void)
{
	int fd, status = RDS_RDMA_SUCCESS;
	struct target right, wrong;
	struct remote r;
	struct op op;

	must(setresuid(NOBODY, NOBODY, NOBODY));
	fd = rds_bound(NULL);
	remote_open(&r);
	right = remote_get(&r, 0, PAGE_BYTES, WRITABLE);
	wrong = right;
	wrong.cookie ^= 1 << 30;
	/* a slow machine may need more than a second for so many */
	for (int i = 0; i < SECONDS && status == RDS_RDMA_SUCCESS; i++) {
		for (int n = 0; n < GUESSES; n++) {
			op = op_write(&wrong, 0, "g", 1);
			check_eq(op_run(fd, &wrong.addr, &op),
				 RDS_RDMA_REMOTE_ERROR);
		}
		op = op_write(&right, 0, "w", 1);
		status = op_run(fd, &right.addr, &op);
	}
	check_eq(status, RDS_RDMA_REMOTE_ERROR);
	check_eq(remote_peek(&r, 0), 0);
	for (int i = 0; i < SECONDS && status != RDS_RDMA_SUCCESS; i++) {
		usleep(1000000);
		op = op_write(&right, 0, "w", 1);
		status = op_run(fd, &right.addr, &op);
	}
	check_eq(status, RDS_RDMA_SUCCESS);
	check_eq(remote_peek(&r, 0), 'w');
}

/* -------------------------------------------------------------- messages */

/* A message is delivered after its op, in order, and only if it is to be */
static void immediate(void)
{
	enum { COUNT = 200 };
	static char mem[COUNT][SMALL];
	struct tally tally = { 0 };
	struct remote_heard h;
	int fd = rds_bound(NULL);
	u64 heard = 0, number = 0;
	struct target t;
	struct remote r;
	struct op op;

	remote_open(&r);
	t = remote_get(&r, 0, COUNT * SMALL, WRITABLE);
	for (int i = 0; i < COUNT; i++) {
		bool payload = i % 2, silent = i % 3;

		memset(mem[i], i + 1, SMALL);
		op = i % 5 ? op_write(&t, i * SMALL, mem[i], SMALL) :
			     op_read(&t, i * SMALL, mem[i], SMALL);
		if (payload) {
			op.payload = &number;
			op.len = sizeof(number);
			number++;
		}
		op_set(&op, RDS_RDMA_NOTIFY_ME |
			    (silent ? RDS_RDMA_SILENT : 0), i);
		must(op_send(fd, &t.addr, &op));
		tally.sent++;
		heard += payload || !silent;
	}
	check(tally_all(fd, &tally, REMOTE_WAIT_MS));
	check_eq(tally.success, COUNT);
	h = remote_heard(&r);
	check_eq(h.count, heard);
	check_eq(h.last, number);
	check_eq(h.disorder, 0);
	for (int i = 0; i < COUNT; i++)
		if (i % 5)
			check(remote_digest(&r, i * SMALL, SMALL) ==
			      digest(mem[i], SMALL));
		else
			check(filled(mem[i], SMALL, 0));
}

/* ---------------------------------------------------------------- regions */

/* The other side writes to memory of ours, and reads it */
static void mapped(void)
{
	char *mem = pages(2 * PAGE_BYTES);
	struct rds_get_mr_args map = {
		.vec = { (uintptr_t)mem + 100, PAGE_BYTES },
		.flags = WRITABLE | RDS_RDMA_USE_ONCE,
	};
	u64 cookie, before, destroyed;
	struct remote r;

	remote_open(&r);
	remote_stamp(&r, 0, PAGE_BYTES, 1);
	before = pinned_kb();
	destroyed = counter_now("ib_rdma_mr_destroyed");
	tap_context("mapped with the message, used once");
	map.cookie_addr = (uintptr_t)&cookie;
	check_eq(remote_write_mapped(&r, &map, 0), RDS_RDMA_SUCCESS);
	check(stamped(mem + 100, PAGE_BYTES, 1));
	check(filled(mem, 100, 0));
	check_pinned_falls(before);
	/* a soft-RoCE device has no late copy into the pages that were given back */
	check_eq(counter_now("ib_rdma_mr_destroyed"), destroyed + 1);
	check_err(mr_free(r.fd, cookie), EINVAL);
	check_eq(remote_write_here(&r, cookie, 0, 1), RDS_RDMA_REMOTE_ERROR);

	tap_context("for a destination");
	must(mr_get_for(r.fd, &r.to, mem + 50, PAGE_BYTES, WRITABLE, &cookie));
	check_range(pinned_kb(), before + 1, before + 100);
	for (int i = 2; i < 5; i++) {
		remote_stamp(&r, 0, PAGE_BYTES, i);
		check_eq(remote_write_here(&r, cookie, 0, PAGE_BYTES),
			 RDS_RDMA_SUCCESS);
		check(stamped(mem + 50, PAGE_BYTES, i));
		stamp(mem + 50, PAGE_BYTES, i + 10);
		check_eq(remote_read_here(&r, cookie, 0, PAGE_BYTES),
			 RDS_RDMA_SUCCESS);
		check(remote_stamped(&r, 0, PAGE_BYTES, i + 10));
	}
	tap_context("freed");
	check_ret(mr_free(r.fd, cookie), 0);
	check_pinned_falls(before);
	memset(mem, 'x', 2 * PAGE_BYTES);
	check_eq(remote_write_here(&r, cookie, 0, PAGE_BYTES),
		 RDS_RDMA_REMOTE_ERROR);
	check(filled(mem, 2 * PAGE_BYTES, 'x'));
	check_err(mr_free(r.fd, cookie), EINVAL);
}

/* Many keys that come and go: a stale one is never good again */
static void stale(void)
{
	enum { ROUNDS = 100 };
	u64 cookies[ROUNDS];
	char *mem = pages(PAGE_BYTES);
	struct remote r;

	remote_open(&r);
	remote_stamp(&r, 0, PAGE_BYTES, 1);
	for (int i = 0; i < ROUNDS; i++) {
		must(mr_get(r.fd, mem, PAGE_BYTES, WRITABLE, &cookies[i]));
		for (int j = 0; j < i; j++)
			check(cookies[i] != cookies[j]);
		check_eq(remote_write_here(&r, cookies[i], 0, PAGE_BYTES),
			 RDS_RDMA_SUCCESS);
		check(stamped(mem, PAGE_BYTES, 1));
		memset(mem, 'x', PAGE_BYTES);
		must(mr_free(r.fd, cookies[i]));
	}
	for (int i = 0; i < ROUNDS; i += ROUNDS / 4)
		check_eq(remote_write_here(&r, cookies[i], 0, PAGE_BYTES),
			 RDS_RDMA_REMOTE_ERROR);
	check(filled(mem, PAGE_BYTES, 'x'));
}

/* --------------------------------------------------------------- barriers */

/* One of several nodes that are waited for */
struct peer {
	struct remote remote;
	struct target target;
	char *mem;
	u64 id;
	bool reached;
};

enum {
	MAX_PEERS	= 4,
	READS		= 8,
	READ_BYTES	= 1 << 20,
};

static void peer_read(int fd, struct peer *p, int nr)
{
	struct op op;

	while (nr--) {
		op = op_read(&p->target, 0, p->mem, READ_BYTES);
		op.id = &p->id;
		op_set(&op, RDS_RDMA_SILENT, 0);
		must(op_send(fd, &p->target.addr, &op));
	}
}

/* All armed at once; each event is of one of them that was reached */
static void peers_armed(int fd, struct peer *peers, int nr)
{
	struct xrds_barrier b;
	struct got got;
	int left = nr;

	hold();
	for (int i = 0; i < nr; i++) {
		peers[i].reached = false;
		peer_read(fd, &peers[i], READS);
	}
	for (int i = 0; i < nr; i++) {
		check_err(barrier(fd, &peers[i].target.addr, peers[i].id,
				  XRDS_BARRIER_NONBLOCK, 0, &b), EAGAIN);
		check_eq(b.issued, peers[i].id);
		check_eq(b.completed, peers[i].id - READS);
	}
	let_go();
	while (left) {
		if (!check(poll_one(fd, POLLIN | POLLRDBAND,
				    tap_ms(REMOTE_WAIT_MS)) & POLLRDBAND))
			return;
		must(got_within(fd, &got, 0));
		for (int i = 0; i < got.nr_events; i++) {
			union addr dest = { 0 };

			memcpy(&dest, &got.events[i].dest, sizeof(dest));
			addr_set_port(&dest, REMOTE_PORT);
			for (int j = 0; j < nr; j++) {
				if (!addr_same(&dest, &peers[j].target.addr))
					continue;
				check(!peers[j].reached);
				peers[j].reached = true;
				check_eq(got.events[i].completed, peers[j].id);
				check(filled(peers[j].mem, READ_BYTES, 0));
				left--;
			}
		}
	}
	check_quiet(fd);
}

static void peer_blocking(int fd, struct peer *p)
{
	const union addr *to = &p->target.addr;
	struct xrds_barrier b;

	tap_context("toward %s", addr_text(to));
	check_ret(barrier(fd, to, 0, 0, 0, &b), 0);
	check_eq(b.issued, 0);
	check_eq(b.completed, 0);
	check_err(barrier(fd, to, 1, 0, 0, &b), EINVAL);
	hold();
	peer_read(fd, p, READS);
	check_eq(p->id, READS);
	check_err(barrier(fd, to, p->id, 0, 1, &b), ETIMEDOUT);
	check_eq(b.issued, p->id);
	check_eq(b.completed, 0);
	check_err(barrier(fd, to, p->id + 1, 0, 0, &b), EINVAL);
	let_go();
	check_ret(barrier(fd, to, p->id, 0, 0, &b), 0);
	check_eq(b.completed, p->id);
	rds_timeout(fd, SO_RCVTIMEO, 1);
	hold();
	peer_read(fd, p, READS);
	check_err(barrier(fd, to, p->id, 0, 0, &b), ETIMEDOUT);
	rds_timeout(fd, SO_RCVTIMEO, 0);
	let_go();
	check_ret(barrier(fd, to, p->id, 0, 0, &b), 0);
	check_quiet(fd);
}

/* The node, and more of them: addresses as arguments */
static void barriers(void)
{
	struct peer peers[MAX_PEERS] = { 0 };
	int fd = rds_bound(NULL), nr = 1 + remote_argc;

	for (int i = 0; i < nr; i++) {
		remote_open_at(&peers[i].remote, i ? remote_argv[i - 1] :
						     remote_host);
		peers[i].target = remote_get(&peers[i].remote, 0, READ_BYTES,
					     0);
		peers[i].mem = pages(READ_BYTES);
		peer_blocking(fd, &peers[i]);
	}
	tap_context("all at once");
	for (int i = 0; i < 3; i++)
		peers_armed(fd, peers, nr);
	remote_say("done");
}

/* ---------------------------------------------------------------- pinning */

static void read_many(int fd, const struct target *t, char *mem, u64 *id)
{
	struct op op;

	for (int i = 0; i < IN_FLIGHT; i++) {
		op = op_read(t, 0, mem, PIN_BYTES);
		op.id = id;
		op_set(&op, RDS_RDMA_SILENT, 0);
		must(op_send(fd, &t->addr, &op));
	}
	check_eq(mark(fd, &t->addr), 0);
}

/* Memory that was unmapped under way belongs to others, and they see no change
 * of it
 */
static void unmapped(struct remote *r, const struct target *t)
{
	char *mem = pages(PIN_BYTES), *again;
	int fd = rds_bound(NULL);
	struct xrds_barrier b;
	u64 id;

	tap_context("munmap");
	hold();
	read_many(fd, t, mem, &id);
	must(munmap(mem, PIN_BYTES));
	again = mmap(mem, PIN_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	check(again == mem);
	memset(again, 'x', PIN_BYTES);
	let_go();
	check_ret(barrier(fd, &t->addr, id, 0, tap_ms(REMOTE_WAIT_MS), &b), 0);
	check(filled(again, PIN_BYTES, 'x'));
	munmap(again, PIN_BYTES);
	close(fd);
	remote_nop(r);
	check_pinned_falls(0);
}

/* A child shares neither memory nor charge; the data comes to the parent */
static void forked(const struct target *t)
{
	char *mem = pages(PIN_BYTES);
	int fd = rds_bound(NULL);
	struct xrds_barrier b;
	pid_t pid;
	u64 id;

	tap_context("fork");
	memset(mem, 'p', PIN_BYTES);
	hold();
	read_many(fd, t, mem, &id);
	pid = must(fork());
	if (!pid) {
		memset(mem, 'c', PIN_BYTES);
		check_eq(pinned_kb(), 0);
		check_ret(barrier(fd, &t->addr, id, 0, tap_ms(REMOTE_WAIT_MS),
				  &b), 0);
		check(filled(mem, PIN_BYTES, 'c'));
		tap_child_exit();
	}
	let_go();
	check_ret(barrier(fd, &t->addr, id, 0, tap_ms(REMOTE_WAIT_MS), &b), 0);
	check(stamped(mem, PIN_BYTES, 1));
	tap_child_join(pid);
	check(stamped(mem, PIN_BYTES, 1));
	munmap(mem, PIN_BYTES);
	close(fd);
	check_pinned_falls(0);
}

static bool no_rops(void *arg)
{
	(void)arg;
	return !counter_now("obj_rops");
}

/* Ends with ops under way: at once, and nothing stays behind */
static void exited(const struct target *t)
{
	long long start;
	pid_t pid;
	u64 id, cookie;

	tap_context("exit");
	hold();
	pid = must(fork());
	if (!pid) {
		char *mem = pages(PIN_BYTES);
		int fd = rds_bound(NULL);

		must(mr_get(fd, mem, PIN_BYTES, WRITABLE, &cookie));
		read_many(fd, t, mem, &id);
		tap_child_exit();
	}
	turns_begin();
	start = tap_now_ms();
	tap_child_join(pid);
	check_range(turns_since(start), 0, tap_ms(WAIT_MS));
	let_go();
	must_wait(no_rops, NULL, REMOTE_WAIT_MS);
}

/* As an ordinary user: the limit has clear errors and leaves nothing */
static void limited(const struct target *t)
{
	struct rlimit limit = { LIMIT_PAGES * PAGE_BYTES,
				LIMIT_PAGES * PAGE_BYTES };
	char *mem = pages(2 * LIMIT_PAGES * PAGE_BYTES);
	int fd = rds_bound(NULL);
	struct op op;
	u64 cookie;
	pid_t pid;

	tap_context("RLIMIT_MEMLOCK");
	pid = must(fork());
	if (pid) {
		tap_child_join(pid);
		munmap(mem, 2 * LIMIT_PAGES * PAGE_BYTES);
		close(fd);
		return;
	}
	must(setrlimit(RLIMIT_MEMLOCK, &limit));
	must(setresuid(NOBODY, NOBODY, NOBODY));
	check_err(mr_get(fd, mem, (LIMIT_PAGES + 1) * PAGE_BYTES, 0, &cookie),
		  ENOMEM);
	op = op_read(t, 0, mem, (LIMIT_PAGES + 1) * PAGE_BYTES);
	check_err(op_send(fd, &t->addr, &op), ENOMEM);
	check_eq(issued(fd, &t->addr), 0);
	must(mr_get(fd, mem, LIMIT_PAGES * PAGE_BYTES, 0, &cookie));
	op = op_read(t, 0, mem, 1);
	check_err(op_send(fd, &t->addr, &op), ENOMEM);
	must(mr_free(fd, cookie));
	check_pinned_falls(0);
	op = op_read(t, 0, mem, LIMIT_PAGES * PAGE_BYTES);
	check_eq(op_run(fd, &t->addr, &op), RDS_RDMA_SUCCESS);
	check_pinned_falls(0);
	limit = (struct rlimit){ 0, 0 };
	must(setrlimit(RLIMIT_MEMLOCK, &limit));
	check_err(mr_get(fd, mem, 1, 0, &cookie), EPERM);
	op = op_read(t, 0, mem, 1);
	check_err(op_send(fd, &t->addr, &op), EPERM);
	check_eq(pinned_kb(), 0);
	tap_child_exit();
}

static void pinning(void)
{
	struct target t;
	struct remote r;

	remote_open(&r);
	t = remote_get(&r, 0, PIN_BYTES, 0);
	remote_stamp(&r, 0, PIN_BYTES, 1);
	unmapped(&r, &t);
	forked(&t);
	exited(&t);
	limited(&t);
	remote_say("done");
}

static const struct mode modes[] = {
	{ "smoke", smoke },
	{ "vectors", vectors },
	{ "sizes", sizes },
	{ "pieces", pieces },
	{ "atomics", atomics },
	{ "masked", masked },
	{ "guesses", guesses },
	{ "immediate", immediate },
	{ "mapped", mapped },
	{ "stale", stale },
	{ "barriers", barriers },
	{ "pinning", pinning },
};

int main(int argc, char **argv)
{
	return remote_main(argc, argv, modes, ARRAY_SIZE(modes));
}
