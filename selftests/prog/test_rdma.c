// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMA reads and writes: local buffers, immediate messages, notices, and many
 * of them at once.
 *
 * timeout: 400
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counters.h"
#include "rdma.h"
#include "tap.h"

enum {
	SMALL		= 100,
	VECTORS		= 1024,		/* UIO_MAXIOV */
	FLOOD		= 10000,
	/* over loopback these take many pieces */
	LONG_OPS	= 4,
	LONG_BYTES	= (256 << 10) + 100,
	LONGER_BYTES	= 32 << 20,
};

#define WRITABLE RDS_RDMA_READWRITE

static char small[SMALL];

/* ---------------------------------------------------------- local buffers */

static void vector_one(int fd, size_t nr)
{
	static struct rds_iovec vec[VECTORS];
	size_t room = 512 * 1024, bytes;
	char *mem = pages(room), *want = pages(room), *flat = pages(room);
	struct target t;
	struct op op;

	tap_context("%zu buffers", nr);
	bytes = vector_make(vec, nr, mem, room);
	target_open(&t, bytes, WRITABLE);

	stamp(mem, room, nr);
	vector_gather(vec, nr, flat);
	op = op_write(&t, 0, NULL, bytes);
	op_vector(&op, vec, nr);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(!memcmp(t.mem, flat, bytes));

	/* the bytes between the buffers stay as they are */
	stamp(t.mem, bytes, nr + 1);
	memcpy(flat, mem, room);
	vector_scatter(vec, nr, t.mem);
	memcpy(want, mem, room);
	memcpy(mem, flat, room);
	op = op_read(&t, 0, NULL, bytes);
	op_vector(&op, vec, nr);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(!memcmp(mem, want, room));
	target_close(&t);
	munmap(mem, room);
	munmap(want, room);
	munmap(flat, room);
}

static void vectors(void)
{
	static const size_t sizes[] = { 1, 2, 3, 16, 255, 512, 1023, VECTORS };
	int fd = rds_bound(NULL);

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		vector_one(fd, sizes[i]);
	close(fd);
}

/* The remote side may be larger than the local buffer */
static void shorter(void)
{
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;

	target_open(&t, PAGE_BYTES, WRITABLE);
	op = op_write(&t, 10, "ab", 2);
	op.rdma.remote_vec.bytes = 50;
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(!memcmp(t.mem + 9, "\0ab\0", 4));
	target_close(&t);
	close(fd);
}

/* A device reads read-only memory, and is not allowed to write to it */
static void read_only_local(void)
{
	char *mem = pages(PAGE_BYTES);
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;

	stamp(mem, PAGE_BYTES, 3);
	must(mprotect(mem, PAGE_BYTES, PROT_READ));
	target_open(&t, PAGE_BYTES, WRITABLE);
	op = op_write(&t, 0, mem, PAGE_BYTES);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(stamped(t.mem, PAGE_BYTES, 3));
	op = op_read(&t, 0, mem, PAGE_BYTES);
	check_err(op_send(fd, &t.addr, &op), EFAULT);
	target_close(&t);
	close(fd);
}

/* ------------------------------------------------------ immediate messages */

static void immediate(void)
{
	static const struct {
		const char *payload;
		u64 flags;
		bool delivered;
	} ways[] = {
		{ "payload", 0, true },
		{ "payload", RDS_RDMA_SILENT, true },
		{ "", 0, true },
		{ "", RDS_RDMA_SILENT, false },
		{ "last", 0, true },	/* shows that nothing came before */
	};
	int fd = rds_bound(NULL);
	struct target t;
	struct got got;
	struct op op;

	target_open(&t, PAGE_BYTES, WRITABLE);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		size_t len = strlen(ways[i].payload);

		tap_context("'%s', flags %#llx", ways[i].payload,
			    ways[i].flags);
		memset(small, 'a' + i, sizeof(small));
		op = op_write(&t, i * SMALL, small, sizeof(small));
		op.payload = ways[i].payload;
		op.len = len;
		op_set(&op, ways[i].flags, 0);
		check_ret(op_send(fd, &t.addr, &op), len);
		if (!ways[i].delivered)
			continue;
		check_ret(got_within(t.fd, &got, WAIT_MS), len);
		check(!memcmp(got.data, ways[i].payload, len));
		/* the data that it announces are there */
		check(filled(t.mem + i * SMALL, SMALL, 'a' + i));
		check(!got.has_cookie && !got.other);
	}
	check_quiet(t.fd);
	check_quiet(fd);
	target_close(&t);
	close(fd);
}

/* A failed op takes its immediate message with it, and nothing else */
static void immediate_of_failed(void)
{
	int fd = rds_bound(NULL);
	struct target t;
	struct got got;
	struct op op;

	target_open(&t, SMALL, WRITABLE);
	op = op_write(&t, 1, small, SMALL);
	op.payload = "lie";
	op.len = 3;
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_REMOTE_ERROR);
	must(rds_send(fd, "next", 4, 0, &t.addr));
	check_ret(got_within(t.fd, &got, WAIT_MS), 4);
	check(!memcmp(got.data, "next", 4));
	check_quiet(t.fd);
	target_close(&t);
	close(fd);
}

/* Until the op has ended; its identifier is known. */
static void send_and_wait(int fd, const union addr *to, struct op *op, u64 id)
{
	struct xrds_barrier b;

	check_ret(op_send(fd, to, op), 0);
	check_ret(barrier(fd, to, id, 0, tap_ms(WAIT_MS), &b), 0);
}

/* The one notice that there is */
static void check_notice(int fd, u64 token, int status)
{
	struct got got;

	check_ret(got_within(fd, &got, WAIT_MS), 0);
	check_eq(got.nr_status, 1);
	check_eq(got.status[0].user_token, token);
	check_eq(got.status[0].status, status);
}

static void flags_all(void)
{
	static const u64 flags[] = {
		RDS_RDMA_FENCE, RDS_RDMA_INVALIDATE, RDS_RDMA_USE_ONCE,
		RDS_RDMA_DONTWAIT, RDS_RDMA_NOTIFY_ME, RDS_RDMA_SILENT,
	};
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;
	u64 id = 0;

	target_open(&t, PAGE_BYTES, WRITABLE);
	for (int mask = 0; mask < 1 << ARRAY_SIZE(flags); mask++) {
		u64 all = 0;

		for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
			all |= mask & 1 << i ? flags[i] : 0;
		tap_context("flags %#llx", all);
		small[0] = mask;
		op = op_write(&t, mask, small, 1);
		op_set(&op, all, mask);
		send_and_wait(fd, &t.addr, &op, ++id);
		check_eq(t.mem[mask], mask);
		if (!(all & RDS_RDMA_NOTIFY_ME))
			continue;
		check_notice(fd, mask, RDS_RDMA_SUCCESS);
	}
	check_quiet(fd);
	target_close(&t);
	close(fd);
}

/* ---------------------------------------------------------------- notices */

/* A notice is given for each op that asked for one, and with RECVERR for
 * failures
 */
static void notices(void)
{
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;
	u64 id = 0;

	target_open(&t, SMALL, WRITABLE);
	for (int way = 0; way < 8; way++) {
		bool fails = way & 1, notify = way & 2, recverr = way & 4;
		u64 token = 0xfedcba9876543210ull + way;

		tap_context("%s, %s, %s", fails ? "fails" : "succeeds",
			    notify ? "NOTIFY_ME" : "-",
			    recverr ? "RECVERR" : "-");
		rds_set_int(fd, SOL_RDS, RDS_RECVERR, recverr);
		op = op_write(&t, fails, small, SMALL);
		op_set(&op, notify ? RDS_RDMA_NOTIFY_ME : 0, token);
		send_and_wait(fd, &t.addr, &op, ++id);
		if (!notify && !(fails && recverr)) {
			check_quiet(fd);
			continue;
		}
		check_notice(fd, token, fails ? RDS_RDMA_REMOTE_ERROR :
						RDS_RDMA_SUCCESS);
		check_quiet(fd);
	}
	target_close(&t);
	close(fd);
}

/* Sends a few ops that notify and waits for their end, not reading notices */
static void leave_notices(int fd, struct target *t, int nr)
{
	struct xrds_barrier b;
	struct op op;
	u64 id = 0;

	for (int i = 0; i < nr; i++) {
		op = op_write(t, 0, small, SMALL);
		op.id = &id;
		op_set(&op, RDS_RDMA_NOTIFY_ME, i);
		must(op_send(fd, &t->addr, &op));
	}
	must(barrier(fd, &t->addr, id, 0, tap_ms(WAIT_MS), &b));
}

/* No room, or a little of it: notices that do not fit stay, and MSG_CTRUNC says
 * so
 */
static void notices_stay(void)
{
	size_t one = CMSG_SPACE(sizeof(struct rds_rdma_notify));
	const struct {
		size_t control;
		int nr;
		bool more;
	} reads[] = {
		{ 0, 0, true }, { one - 1, 0, true }, { one, 1, true },
		{ 2 * one, 2, true }, { 4 * one, 1, false },
	};
	int fd = rds_bound(NULL), next = 0;
	struct target t;
	struct got got;

	target_open(&t, SMALL, WRITABLE);
	leave_notices(fd, &t, 4);
	for (size_t i = 0; i < ARRAY_SIZE(reads); i++) {
		tap_context("%zu bytes of control space", reads[i].control);
		check_ret(got_now(fd, &got, reads[i].control), 0);
		check_eq(got.nr_status, reads[i].nr);
		check_eq(!!(got.flags & MSG_CTRUNC), reads[i].more);
		for (int j = 0; j < got.nr_status; j++)
			check_eq(got.status[j].user_token, next++);
	}
	check_quiet(fd);
	target_close(&t);
	close(fd);
}

static int statuses(struct msghdr *m)
{
	struct cmsghdr *c;
	int n = 0;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		n += c->cmsg_level == SOL_RDS &&
		     c->cmsg_type == RDS_CMSG_RDMA_STATUS;
	return n;
}

/* recvmmsg(): each of its messages has as many as find room. */
static void notices_recvmmsg(void)
{
	enum { VLEN = 4, ROOM = 2, NR = 5 };
	char control[VLEN][ROOM * CMSG_SPACE(sizeof(struct rds_rdma_notify))];
	struct mmsghdr m[VLEN] = {};
	int fd = rds_bound(NULL), i;
	struct target t;

	target_open(&t, PAGE_BYTES, WRITABLE);
	leave_notices(fd, &t, NR);
	for (i = 0; i < VLEN; i++) {
		m[i].msg_hdr.msg_control = control[i];
		m[i].msg_hdr.msg_controllen = sizeof(control[i]);
	}
	check_ret(recvmmsg(fd, m, VLEN, MSG_DONTWAIT, NULL), 3);
	for (i = 0; i < 3; i++) {
		check_eq(m[i].msg_len, 0);
		check_eq(statuses(&m[i].msg_hdr), i < 2 ? ROOM : 1);
		check_eq(!!(m[i].msg_hdr.msg_flags & MSG_CTRUNC), i < 2);
	}
	check_quiet(fd);
	target_close(&t);
	close(fd);
}

/* A reader without room for notices still gets data */
static void notices_pass_data(void)
{
	union addr self;
	int fd = rds_bound(&self);
	struct target t;
	struct got got;

	target_open(&t, SMALL, WRITABLE);
	leave_notices(fd, &t, 1);
	must(rds_send(fd, "data", 4, 0, &self));
	must(rds_send(fd, "more", 4, 0, &self));
	for (int i = 0; i < 2; i++) {
		long long end = tap_now_ms() + tap_ms(WAIT_MS);

		do
			must(got_now(fd, &got, 0));
		while (!got.ret && tap_now_ms() < end);
		check_eq(got.ret, 4);
		check(!memcmp(got.data, i ? "more" : "data", 4));
		check(got.flags & MSG_CTRUNC);
	}
	check_ret(got_within(fd, &got, WAIT_MS), 0);
	check_eq(got.nr_status, 1);
	target_close(&t);
	close(fd);
}

/* A notice that cannot be copied out is not lost */
static void notices_bad_pointer(void)
{
	char *wall = before_wall(PROT_READ | PROT_WRITE), byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	void *bad[] = { (char *)8, wall, before_wall(PROT_READ) - PAGE_BYTES };
	int fd = rds_bound(NULL);
	struct target t;
	struct got got;

	target_open(&t, SMALL, WRITABLE);
	leave_notices(fd, &t, 3);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		tap_context("pointer %zu", i);
		msg.msg_control = bad[i];
		msg.msg_controllen = 1024;
		check_err(recvmsg(fd, &msg, MSG_DONTWAIT), EFAULT);
	}
	tap_context("afterwards");
	check_ret(got_within(fd, &got, tap_ms(WAIT_MS) / 10), 0);
	check_eq(got.nr_status, 3);
	target_close(&t);
	close(fd);
}

/* --------------------------------------------------------------- many ops */

struct bystander {
	bool stop;
	long sent;
};

/* Messages between two other sockets: each arrives, in order */
static void *bystander_thread(void *arg)
{
	struct bystander *b = arg;
	union addr to;
	int rx = rds_bound(&to), tx = rds_bound(NULL);
	long got;

	while (!READ_ONCE(b->stop)) {
		if (rds_send(tx, &b->sent, sizeof(b->sent), 0, &to) < 0 ||
		    rds_recv_within(rx, &got, sizeof(got), WAIT_MS, NULL) < 0)
			break;
		check_eq(got, b->sent);
		b->sent++;
	}
	check(READ_ONCE(b->stop));
	close(tx);
	close(rx);
	return NULL;
}

/* Ops without payload that no wire message follows visibly, many at once */
static void flood_run(u64 offset, u64 flags, int status)
{
	static bool seen[FLOOD];
	int fd = rds_bound(NULL), sent = 0, done = 0;
	struct bystander bystander = { 0 };
	struct target t;
	struct got got;
	pthread_t thread;
	struct op op;

	target_open(&t, SMALL, WRITABLE);
	memset(seen, 0, sizeof(seen));
	pthread_create(&thread, NULL, bystander_thread, &bystander);
	while (done < FLOOD) {
		while (sent < FLOOD) {
			op = op_write(&t, offset, small, SMALL);
			op.msg_flags = MSG_DONTWAIT;
			op_set(&op, flags, sent);
			if (op_send(fd, &t.addr, &op) < 0)
				break;
			sent++;
		}
		if (got_within(fd, &got, WAIT_MS) < 0)
			break;
		done += got.nr_status;
		for (int i = 0; i < got.nr_status; i++) {
			check_eq(got.status[i].status, status);
			check(!seen[got.status[i].user_token]);
			seen[got.status[i].user_token] = true;
		}
	}
	check_eq(sent, FLOOD);
	check_eq(done, FLOOD);
	check_quiet(fd);
	check_eq(mark(fd, &t.addr), FLOOD);
	WRITE_ONCE(bystander.stop, true);
	pthread_join(thread, NULL);
	check(bystander.sent > 0);
	/* the target heard nothing of it */
	check_quiet(t.fd);
	target_close(&t);
	close(fd);
}

static void flood(void)
{
	flood_run(0, RDS_RDMA_SILENT | RDS_RDMA_NOTIFY_ME, RDS_RDMA_SUCCESS);
}

static void flood_failing(void)
{
	flood_run(1, RDS_RDMA_SILENT | RDS_RDMA_NOTIFY_ME,
		  RDS_RDMA_REMOTE_ERROR);
}

/* ------------------------------------------------------------------- long ops */

static void next_is(int fd, const char *text)
{
	struct got got;

	check_eq(got_within(fd, &got, WAIT_MS), strlen(text));
	check(!memcmp(got.data, text, strlen(text)));
}

/* Messages of ops, and others, come in their turn, and after the ops. */
static void long_in_order(void)
{
	char *mem = pages(LONG_OPS * LONG_BYTES), name[16];
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;

	target_open(&t, LONG_OPS * LONG_BYTES, WRITABLE);
	for (int i = 0; i < LONG_OPS; i++) {
		char *from = mem + i * LONG_BYTES;

		stamp(from, LONG_BYTES, i + 1);
		op = op_write(&t, i * LONG_BYTES, from, LONG_BYTES);
		snprintf(name, sizeof(name), "op %d", i);
		op.payload = name;
		op.len = strlen(name);
		check_eq(op_send(fd, &t.addr, &op), (ssize_t)op.len);
		must(rds_send(fd, "small", 5, 0, &t.addr));
	}
	for (int i = 0; i < LONG_OPS; i++) {
		snprintf(name, sizeof(name), "op %d", i);
		next_is(t.fd, name);
		check(stamped(t.mem + i * LONG_BYTES, LONG_BYTES, i + 1));
		next_is(t.fd, "small");
	}
	target_close(&t);
	close(fd);
	munmap(mem, LONG_OPS * LONG_BYTES);
}

/* A key that is made void ends an op, and the memory is the owner's again. */
static void long_freed(void)
{
	char *mem = pages(LONGER_BYTES);
	int fd = rds_bound(NULL), failed = 0;
	struct target t;
	struct got got;
	struct op op;

	loop_only();
	memset(mem, 'w', LONGER_BYTES);
	target_open(&t, LONGER_BYTES, WRITABLE);
	/* the connection is there from now on */
	op = op_write(&t, 0, mem, 1);
	op_set(&op, RDS_RDMA_SILENT, 0);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	for (int i = 0; i < 8; i++) {
		tap_context("round %d", i);
		op = op_write(&t, 0, mem, LONGER_BYTES);
		op_set(&op, RDS_RDMA_SILENT | RDS_RDMA_NOTIFY_ME, i);
		check_eq(op_send(fd, &t.addr, &op), 0);
		/* at some moment or other */
		usleep(i * 500);
		must(mr_free(t.fd, t.cookie));
		memset(t.mem, 'f', LONGER_BYTES);
		got_within(fd, &got, WAIT_MS);
		if (!check_eq(got.nr_status, 1))
			break;
		check(got.status[0].status == RDS_RDMA_SUCCESS ||
		      got.status[0].status == RDS_RDMA_REMOTE_ERROR);
		failed += got.status[0].status == RDS_RDMA_REMOTE_ERROR;
		check(filled(t.mem, LONGER_BYTES, 'f'));
		must(mr_get(t.fd, t.mem, LONGER_BYTES, WRITABLE, &t.cookie));
	}
	check(failed > 0);
	target_close(&t);
	close(fd);
	munmap(mem, LONGER_BYTES);
}

/* Each ends once, whenever the connection is reset. */
static void long_reset(void)
{
	char *mem = pages(LONGER_BYTES);
	long long resets;
	int fd = rds_bound(NULL), status;
	struct target t;
	struct op op;

	loop_only();
	target_open(&t, LONGER_BYTES, WRITABLE);
	resets = counter_now("conn_reset");
	knob("net/xrds/loop/bounce_ms", 10);
	for (int i = 0; i < 20; i++) {
		op = op_write(&t, 0, mem, LONGER_BYTES);
		op_set(&op, RDS_RDMA_SILENT, i);
		status = op_run(fd, &t.addr, &op);
		tap_context("round %d, status %d", i, status);
		check(status == RDS_RDMA_SUCCESS || status == RDS_RDMA_DROPPED);
		check_quiet(fd);
	}
	knob("net/xrds/loop/bounce_ms", 0);
	check(counter_now("conn_reset") > resets);
	target_close(&t);
	close(fd);
	munmap(mem, LONGER_BYTES);
}

/* The state that an op without delivered message has left survives a reset */
static void reset_after(bool fails)
{
	int fd = rds_bound(NULL), breaker;
	struct target t;
	struct got got;
	struct op op;

	loop_only();
	breaker = must(open("/sys/kernel/debug/xrds/break", O_WRONLY));
	target_open(&t, SMALL, WRITABLE);
	for (int i = 0; i < 3; i++) {
		long long resets = counter_now("conn_reset");

		tap_context("round %d", i);
		op = op_write(&t, fails, small, SMALL);
		op_set(&op, RDS_RDMA_SILENT, 0);
		check_eq(op_run(fd, &t.addr, &op), fails ?
			 RDS_RDMA_REMOTE_ERROR : RDS_RDMA_SUCCESS);
		check_ret(write(breaker, "1", 1), 1);
		check(counter_reaches("conn_reset", resets + 1, WAIT_MS));
		must(rds_send(fd, "x", 1, 0, &t.addr));
		if (!check_ret(got_within(t.fd, &got, WAIT_MS), 1))
			break;
	}
	target_close(&t);
	close(breaker);
	close(fd);
}

static void reset_after_silent(void)
{
	reset_after(false);
}

static void reset_after_failed(void)
{
	reset_after(true);
}

static const struct tap_case cases[] = {
	{ "vectors", "up to 1024 local buffers of odd lengths", vectors,
	  TAP_EACH_FAMILY, 60 },
	{ "shorter", "an op may move less than the remote range", shorter,
	  0, 0 },
	{ "read_only_local", "read-only memory is written from, not read to",
	  read_only_local, 0, 0 },
	{ "immediate", "a message is delivered after its op, unless SILENT",
	  immediate, TAP_EACH_FAMILY, 0 },
	{ "immediate_of_failed", "a failed op's message is not delivered",
	  immediate_of_failed, TAP_EACH_FAMILY, 0 },
	{ "flags_all", "each mixture of flags ends, with a notice if asked",
	  flags_all, 0, 0 },
	{ "notices", "NOTIFY_ME and RECVERR give exactly one notice", notices,
	  TAP_EACH_FAMILY, 0 },
	{ "notices_stay", "without room they stay and MSG_CTRUNC is set",
	  notices_stay, 0, 0 },
	{ "notices_recvmmsg", "recvmmsg() spreads them over its messages",
	  notices_recvmmsg, 0, 0 },
	{ "notices_pass_data", "and data is read nevertheless",
	  notices_pass_data, 0, 0 },
	{ "notices_bad_pointer", "a bad control pointer loses no notice",
	  notices_bad_pointer, 0, 0 },
	{ "flood", "10000 silent ops all notify, others are not disturbed",
	  flood, TAP_EACH_FAMILY, 120 },
	{ "flood_failing", "10000 that fail do, too", flood_failing, 0, 120 },
	{ "long_in_order", "long ops and messages keep their order",
	  long_in_order, TAP_EACH_FAMILY, 60 },
	{ "long_freed", "a key made void during a long op protects the memory",
	  long_freed, 0, 60 },
	{ "long_reset", "a long op that meets a reset ends once", long_reset,
	  0, 60 },
	{ "reset_after_silent", "a reset after a silent op loses nothing",
	  reset_after_silent, 0, 60 },
	{ "reset_after_failed", "nor does one after a failed op",
	  reset_after_failed, 0, 60 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
