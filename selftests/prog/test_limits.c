// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bounds of a namespace and of a user: a call over them is refused with
 * EDQUOT and counted, nothing is left of it, and an object that ends makes
 * room. Messages of others cannot be refused: with too many of them the sockets
 * are congested.
 *
 * timeout: 240
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counters.h"
#include "rdma.h"
#include "tap.h"

enum {
	NOBODY		= 65534,
	CHUNK		= 65536,
	BOUND_KB	= 2070,		/* leaves room for sockets */
	COST		= 1024,		/* of a message, beside its payload */
	SOCK_COST	= 4096,
	SOURCE_COST	= 256,
	HEARD		= 32,
	HEARD_LEAST	= 16,
	SOURCES		= 200,
	PINNED_KB	= 64,
	KEYS		= 5,
	CONNS		= 8,
	PER_SECOND	= 5,
	DIALS		= 3 * PER_SECOND,
	MANY_DIALS	= 250,
	FEW_DIALS	= 16,
	READERS		= 16,
	RCVBUF		= 1 << 20,
	RECV_KB		= 8192,
	UNIT		= 98304,	/* a socket may have it when others fill all */
	NOTICES_KB	= 256,
	ROP_COST	= 512,
	NOTICE_COST	= 64,
	QUIET_MS	= 300,
	EMPTY		= 6,
	CLIENTS		= 16,
	REPLIES_KB	= 2048,
	GROUP_MSGS	= 128,
	GROUP_CONNS	= 2000,
	CONN_BYTES	= 3000,
	MANY		= 600,
	DEATHS		= 5,
	TIMES		= 10,		/* looks at the queue: over 100 */
	MANY_MSGS	= 40000,
};

#define GROUPS	"/sys/fs/cgroup"
#define GROUP	GROUPS "/xrds"

static char chunk[CHUNK], large[1 << 20];

/* Sockets that look at counters go late themselves. */
static bool used_at_most(void *arg)
{
	return counter_now("used_memory") <= *(long long *)arg + CHUNK;
}

/* Sends until the queue takes no more; how many were taken */
static int fill(int fd, const union addr *to)
{
	int n = 0;

	while (rds_send(fd, chunk, CHUNK, MSG_DONTWAIT, to) == CHUNK)
		if (++n > BOUND_KB)
			tap_fail("there is no bound");
	check_eq(errno, EDQUOT);
	return n;
}

/* Sends until the receiver is congested; how many were taken. Each message has
 * arrived before the next is sent: messages under way are not counted yet.
 */
static int fill_reader(int fd, const union addr *to)
{
	int n = 0;

	while (rds_send(fd, chunk, CHUNK, MSG_DONTWAIT, to) == CHUNK) {
		if (++n > BOUND_KB)
			tap_fail("there is no bound");
		must_wait(rds_all_acked, &fd, WAIT_MS);
	}
	check_eq(errno, ENOBUFS);
	return n;
}

/* A socket whose own send space is no limit */
static int roomy(void)
{
	struct xrds_dest_sndbuf arg = { .bytes = ~0u };
	int fd = rds_bound(NULL);

	must(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &arg, sizeof(arg)));
	return fd;
}

/* For a while, or for good */
static void as_user(uid_t uid)
{
	must(setresuid(uid, uid, 0));
}

static void as_nobody(void)
{
	must(setresgid(NOBODY, NOBODY, NOBODY));
	must(setresuid(NOBODY, NOBODY, NOBODY));
}

/* ----------------------------------------------------------- the namespace */

static void queued(void)
{
	union addr to = addr_of(tap_host, 4000), other;
	int sink = rds_bound_to(tap_host, 4000, NULL), fd, fd2, n;
	long long before;

	stall_loop();
	fd = roomy();
	fd2 = roomy();
	other = rds_self(fd2);
	before = counter_now("limit_mem");
	knob("net/xrds/max_memory_kb", BOUND_KB);
	n = fill(fd, &to);
	check_range(n, BOUND_KB * 1024 / (CHUNK + COST) - 2,
		    BOUND_KB * 1024 / (CHUNK + COST));
	check(counter_now("limit_mem") > before);
	check_range(counter_now("used_memory"), n * (CHUNK + COST),
		    BOUND_KB * 1024);

	/* it is the namespace's: waiting is of no use, nor another socket */
	check_err(rds_send(fd, chunk, CHUNK, 0, &to), EDQUOT);
	check_err(rds_send(fd2, chunk, CHUNK, 0, &other), EDQUOT);
	check_eq(rds_outq(fd), n * CHUNK);

	/* dropped messages make room, all of them */
	must(setsockopt(fd, SOL_RDS, RDS_CANCEL_SENT_TO, NULL, 0));
	check_eq(fill(fd, &to), n);
	close(fd);
	close(fd2);
	close(sink);
}

/* A closed socket still holds what it has not delivered, and then no more. */
static void lingering(void)
{
	union addr to = addr_of(tap_host, 4000);
	int sink = rds_bound_to(tap_host, 4000, NULL), fd = roomy();
	long long before = counter_now("used_memory");

	stall_loop();
	knob("net/xrds/max_memory_kb", BOUND_KB);
	fill(fd, &to);
	close(fd);
	fd = rds_bound(NULL);
	check_err(rds_send(fd, chunk, CHUNK, MSG_DONTWAIT, &to), EDQUOT);
	close(fd);
	knob("net/xrds/loop/delay_ms", 0);
	/* sockets that look, and go late, must not be refused */
	knob("net/xrds/max_memory_kb", 1 << 20);
	/* nothing waits for the receiver */
	close(sink);
	check(tap_wait(used_at_most, &before, WAIT_MS * 3));
}

/* -------------------------------------------------------------- the cgroup */

static long long group_bytes(void)
{
	long long bytes = -1;
	FILE *file = fopen(GROUP "/memory.current", "r");

	if (!file || fscanf(file, "%lld", &bytes) != 1)
		tap_fail("no %s", GROUP "/memory.current");
	fclose(file);
	return bytes;
}

static void group_write(const char *path, const char *text)
{
	int fd = must(open(path, O_WRONLY | O_CLOEXEC));

	must(write(fd, text, strlen(text)));
	close(fd);
}

static void group_enter(void)
{
	if (access(GROUPS "/cgroup.controllers", R_OK))
		tap_skip("no control groups");
	group_write(GROUPS "/cgroup.subtree_control", "+memory");
	if (mkdir(GROUP, 0700) && errno != EEXIST)
		tap_fail("mkdir: %s", tap_errno_name(errno));
	group_write(GROUP "/cgroup.procs", "0");
}

static bool group_at_most(void *arg)
{
	return group_bytes() <= *(long long *)arg;
}

/*
 * Messages that a process has queued are charged to its memory cgroup, wherever
 * they go. The rest of that group's memory is small, and comes and goes.
 */
static void cgroup(void)
{
	union addr to = addr_of(tap_host, 4000);
	int sink = rds_bound_to(tap_host, 4000, NULL), fd;
	long long before, queued;

	group_enter();
	stall_loop();
	fd = roomy();
	before = group_bytes();
	for (int i = 0; i < GROUP_MSGS; i++)
		check_ret(rds_send(fd, chunk, CHUNK, 0, &to), CHUNK);
	queued = rds_outq(fd);
	check_eq(queued, GROUP_MSGS * CHUNK);
	/* each processor has up to 64 pages in hand for the group */
	check_range(group_bytes() - before, queued - queued / 8, 2 * queued);

	/* until nobody has it any more */
	must(setsockopt(fd, SOL_RDS, RDS_CANCEL_SENT_TO, NULL, 0));
	knob("net/xrds/loop/delay_ms", 0);
	close(sink);
	before += queued / 4;
	check(tap_wait(group_at_most, &before, WAIT_MS));
	close(fd);
}

static bool delivered(void *arg)
{
	return !rds_outq(*(int *)arg);
}

/* So is a connection that it makes. Its message has left when that is measured. */
static void cgroup_conns(void)
{
	union addr to = addr_of("127.1.0.1", 4000);
	int fd = rds_bound_to("127.0.0.1", 0, NULL);
	long long before;

	group_enter();
	before = group_bytes();
	for (int i = 0; i < GROUP_CONNS; i++) {
		to.in.sin_addr.s_addr = htonl(0x7f010001 + i);
		check_ret(rds_send(fd, "x", 1, 0, &to), 1);
	}
	check(tap_wait(delivered, &fd, WAIT_MS));
	/* the destination and its flow take less than half of it */
	check_range((group_bytes() - before) / GROUP_CONNS, CONN_BYTES,
		    4 * CONN_BYTES);
	close(fd);
}

static bool sources_only(void *arg)
{
	return counter_now("obj_dests") == 0 &&
	       counter_now("used_memory") < *(long long *)arg;
}

/* A socket remembers each sender, at its own user's cost: not as messages, be they
 * sent or waiting to be read.
 */
static void heard(void)
{
	long long limit = counter_now("used_memory"), before;
	int rx, fd, senders = 0;
	static bool known[1 << 16];
	union addr to, self;

	memset(known, 0, sizeof(known));
	rx = rds_bound(&to);

	before = counter_now("used_sources");
	must(shutdown(rx, SHUT_RD));
	/* the receiver itself, and the socket that looks */
	limit += 3 * SOCK_COST;
	for (int i = 0; i < SOURCES; i++) {
		fd = rds_bound(&self);
		check_ret(rds_send(fd, "x", 1, 0, &to), 1);
		close(fd);
		/* a port may come again */
		senders += !known[addr_port(&self)];
		known[addr_port(&self)] = true;
	}
	check(tap_wait(sources_only, &limit, WAIT_MS * 3));
	check_eq(counter_now("used_sources") - before, senders * SOURCE_COST);
	close(rx);
	check_eq(counter_now("used_sources"), before);
}

/* From new senders; their streams stay open */
static void hear(int rx, const union addr *to, int *fds, int n)
{
	char byte;

	for (int i = 0; i < n; i++) {
		fds[i] = rds_bound(NULL);
		check_ret(rds_send(fds[i], "x", 1, 0, to), 1);
		check_ret(rds_recv(rx, &byte, 1, 0, NULL), 1);
	}
}

/* Above the bound one is forgotten for each new one; a few are kept in any case */
static void heard_bound(void)
{
	long long before = counter_now("limit_sources");
	int rx, fds[3 * HEARD];
	union addr to;

	check_eq(counter_now("used_sources"), 0);
	rx = rds_bound(&to);
	knob("net/xrds/max_sources_kb", HEARD * SOURCE_COST / 1024);
	hear(rx, &to, fds, 2 * HEARD);
	/* the one that finds the bound passed is one above it */
	check_eq(counter_now("used_sources"), (HEARD + 1) * SOURCE_COST);
	check_eq(counter_now("limit_sources") - before, HEARD - 1);

	knob("net/xrds/max_sources_kb", 0);
	hear(rx, &to, fds + 2 * HEARD, HEARD);
	check_eq(counter_now("used_sources"), HEARD_LEAST * SOURCE_COST);

	/* messages need the bound of messages only */
	knob("net/xrds/max_recv_kb", 0);
	check_ret(rds_send(fds[0], chunk, CHUNK, MSG_DONTWAIT, &to), CHUNK);
	check_ret(rds_recv(rx, chunk, CHUNK, 0, NULL), CHUNK);
	for (int i = 0; i < 3 * HEARD; i++)
		close(fds[i]);
	close(rx);
	check_eq(counter_now("used_sources"), 0);
}

static bool may_open(void *arg)
{
	int fd = socket(AF_RDS, SOCK_SEQPACKET, 0);

	(void)arg;
	close(fd);
	return fd >= 0;
}

static void sockets(void)
{
	enum { MAX = 64 };
	int fds[MAX], n;

	knob("net/xrds/max_memory_kb", 40);
	for (n = 0; n < MAX; n++) {
		fds[n] = socket(AF_RDS, SOCK_SEQPACKET, 0);
		if (fds[n] < 0)
			break;
	}
	check_eq(n, 10);
	check_eq(errno, EDQUOT);
	while (n--)
		close(fds[n]);
	/* they go after a grace period */
	check(tap_wait(may_open, NULL, WAIT_MS));
}

static void pinned(void)
{
	char *mem = pages(2 * PINNED_KB * 1024);
	int fd = rds_bound(NULL);
	long long before = counter_now("limit_pinned");
	u64 one, other;

	knob("net/xrds/max_pinned_kb", PINNED_KB);
	check_ret(mr_get(fd, mem, PINNED_KB * 1024, 0, &one), 0);
	check_err(mr_get(fd, mem, 1, 0, &other), EDQUOT);
	check_eq(counter_now("limit_pinned"), before + 1);
	check_eq(counter_now("used_keys"), 1);
	check_ret(mr_free(fd, one), 0);
	check_pinned_falls(0);
	check_err(mr_get(fd, mem, PINNED_KB * 1024 + 1, 0, &one), EDQUOT);
	check_eq(pinned_kb(), 0);
	check_ret(mr_get(fd, mem, PINNED_KB * 1024, 0, &one), 0);
	close(fd);
	check_pinned_falls(0);
	check_eq(counter_now("used_keys"), 0);
}

/* An op is refused as a region is, and has no identifier then. */
static void pinned_ops(void)
{
	char *mem = pages(2 * PINNED_KB * 1024);
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;

	target_open(&t, PAGE_BYTES, RDS_RDMA_READWRITE);
	knob("net/xrds/max_pinned_kb", PINNED_KB);
	op = op_read(&t, 0, mem, PINNED_KB * 1024);
	check_err(op_send(fd, &t.addr, &op), EDQUOT);
	check_eq(issued(fd, &t.addr), 0);
	op = op_read(&t, 0, mem, PAGE_BYTES);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check_eq(issued(fd, &t.addr), 1);
	target_close(&t);
	close(fd);
}

/* Reads notices until none is left; how many there were */
static int read_notices(int fd)
{
	struct got got;
	int n = 0;

	while (got_now(fd, &got, sizeof(struct ctl)) >= 0)
		n += got.nr_status;
	check_eq(errno, EAGAIN);
	return n;
}

/* Those of ops are unread for as long as the program likes. */
static void op_notices(void)
{
	char *mem = pages(PAGE_BYTES);
	int fd = rds_bound(NULL), n = 0;
	struct target t;
	struct op op;

	target_open(&t, PAGE_BYTES, RDS_RDMA_READWRITE);
	knob("net/xrds/max_memory_kb", NOTICES_KB);
	op = op_write(&t, 0, mem, 8);
	op_set(&op, RDS_RDMA_READWRITE | RDS_RDMA_NOTIFY_ME | RDS_RDMA_SILENT,
	       0);
	while (op_send(fd, &t.addr, &op) >= 0) {
		must_wait(rds_all_acked, &fd, WAIT_MS);
		if (++n > NOTICES_KB * 1024 / ROP_COST)
			break;
	}
	check_eq(errno, EDQUOT);
	check_range(n, NOTICES_KB * 1024 / ROP_COST / 2,
		    NOTICES_KB * 1024 / ROP_COST);
	/* reading them makes room */
	check_eq(read_notices(fd), n);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	target_close(&t);
	close(fd);
}

/* So are those of messages. */
static void msg_notices(void)
{
	struct xrds_uek_asend arg = { .flags = XRDS_UEK_SEND_NOTIFY_ME };
	int fd = rds_bound(NULL), rx, n = 0;
	union addr to;
	char byte;

	rx = rds_bound(&to);
	knob("net/xrds/max_memory_kb", NOTICES_KB);
	while (rds_send_cmsg(fd, &to, XRDS_UEK_CMSG_ASYNC_SEND, &arg,
			     sizeof(arg)) >= 0) {
		must(rds_recv_within(rx, &byte, 1, WAIT_MS, NULL));
		must_wait(rds_all_acked, &fd, WAIT_MS);
		if (++n > NOTICES_KB * 1024 / NOTICE_COST)
			break;
	}
	check_eq(errno, EDQUOT);
	check_range(n, NOTICES_KB * 1024 / NOTICE_COST / 2,
		    NOTICES_KB * 1024 / NOTICE_COST);
	check_eq(read_notices(fd), n);
	must(rds_send_cmsg(fd, &to, XRDS_UEK_CMSG_ASYNC_SEND, &arg,
			   sizeof(arg)));
	close(fd);
	check(counter_now("used_memory") < NOTICES_KB * 1024 / 4);
	close(rx);
}

static void keys(void)
{
	char *mem = pages(PAGE_BYTES);
	int fd = rds_bound(NULL), fd2 = rds_bound(NULL);
	long long before = counter_now("limit_keys");
	u64 cookie[KEYS + 1];

	knob("net/xrds/max_keys", KEYS);
	for (int i = 0; i < KEYS; i++)
		must(mr_get(i & 1 ? fd : fd2, mem, 8, 0, &cookie[i]));
	check_err(mr_get(fd, mem, 8, 0, &cookie[KEYS]), EDQUOT);
	check_eq(counter_now("limit_keys"), before + 1);
	check_ret(mr_free(fd2, cookie[0]), 0);
	check_ret(mr_get(fd, mem, 8, 0, &cookie[KEYS]), 0);
	close(fd);
	close(fd2);
	check_eq(counter_now("used_keys"), 0);
	check_pinned_falls(0);
}

static union addr node_addr(int number)
{
	char host[32];

	snprintf(host, sizeof(host), "127.0.%d.%d", 2 + number / 256,
		 number % 256);
	return addr_of(host, 4000);
}

static void connections(void)
{
	long long before = counter_now("limit_conns");
	int fd = rds_bound_to("127.0.0.1", 0, NULL);
	union addr to;

	knob("net/xrds/max_connections", CONNS);
	for (int i = 1; i <= CONNS; i++) {
		to = node_addr(i);
		check_ret(rds_send(fd, "c", 1, 0, &to), 1);
	}
	to = node_addr(CONNS + 1);
	check_err(rds_send(fd, "c", 1, 0, &to), EDQUOT);
	check_eq(counter_now("limit_conns"), before + 1);
	check_eq(counter_now("used_connections"), CONNS);
	/* those that there are do not mind */
	to = node_addr(1);
	check_ret(rds_send(fd, "c", 1, 0, &to), 1);
	close(fd);
}

static void connects(void)
{
	long long before = counter_now("limit_dials"), start;
	int fd = rds_bound_to("127.0.0.1", 0, NULL);
	union addr to;

	knob("net/xrds/max_connects_per_s", PER_SECOND);
	start = tap_now_ms();
	for (int i = 1; i <= DIALS; i++) {
		to = node_addr(i);
		check_ret(rds_send(fd, "c", 1, 0, &to), 1);
	}
	check(tap_wait(rds_all_acked, &fd, 3 * WAIT_MS));
	/* the third second has begun; ticks may have come late at first */
	check(tap_now_ms() - start >= 1500);
	check(counter_now("limit_dials") > before);
	close(fd);
}

/* A socket of @uid that sends to @nr nodes, from @first on. It aborts. */
static int sends_to_nodes(uid_t uid, int first, int nr)
{
	struct linger abort = { .l_onoff = 1 };
	union addr to;
	int fd;

	as_user(uid);
	fd = rds_bound_to("127.0.0.1", 0, NULL);
	as_user(0);
	must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
	for (int i = first; i < first + nr; i++) {
		to = node_addr(i);
		check_ret(rds_send(fd, "c", 1, 0, &to), 1);
	}
	return fd;
}

static bool most_acked(void *arg)
{
	int *fds = arg, nr = 0;

	for (int i = 0; i < FEW_DIALS; i++)
		nr += rds_all_acked(&fds[i]);
	return nr >= FEW_DIALS * 3 / 4;
}

/* The rows of users take turns; a few may have the same row as another one. */
static void connects_beside(void)
{
	long long before = counter_now("limit_dials"), dials;
	int floods[2], fds[FEW_DIALS];

	knob("net/xrds/max_connects_per_s", PER_SECOND);
	for (int i = 0; i < 2; i++)
		floods[i] = sends_to_nodes(NOBODY - i, 1 + i * MANY_DIALS,
					   MANY_DIALS);
	dials = counter_now("conn_dial");
	for (int i = 0; i < FEW_DIALS; i++)
		fds[i] = sends_to_nodes(NOBODY - 2 - i, 1 + 2 * MANY_DIALS + i,
					1);
	must_wait(most_acked, fds, 3 * WAIT_MS);
	check(counter_now("conn_dial") - dials <= 3 * FEW_DIALS);
	/* each waits once, however long that is */
	check_range(counter_now("limit_dials") - before, MANY_DIALS,
		    2 * MANY_DIALS + FEW_DIALS);
	/* they leave their rows */
	close(floods[0]);
	close(floods[1]);
}

/* -------------------------------------------------------- what is not read */

/* A socket that may have much more to read than its share of a bound */
static int reader(union addr *me)
{
	int fd = rds_bound(me), size = RCVBUF;

	must(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)));
	return fd;
}

/* They cannot have more unread by being many; nor does that stop one who reads. */
static void unread(void)
{
	long long before = counter_now("limit_recv");
	int fd = roomy(), fds[READERS], n[READERS], more, all = 0;
	union addr me[READERS], to;
	pid_t pid;

	knob("net/xrds/max_recv_kb", RECV_KB);
	for (int i = 0; i < READERS; i++) {
		tap_context("socket %d", i);
		fds[i] = reader(&me[i]);
		n[i] = fill_reader(fd, &me[i]);
		/* its own messages are charged to no other */
		check(n[i] >= 1);
		all += n[i];
	}
	tap_context("all");
	check_range(all, RECV_KB * 1024 / CHUNK / 2,
		    RECV_KB * 1024 / CHUNK + 2 * READERS);
	check_range(counter_now("used_recv"), RECV_KB * 1024,
		    RECV_KB * 1024 + READERS * 2 * UNIT);
	/* the first ones have all that they may have */
	check(counter_now("limit_recv") >= before + READERS -
	      RECV_KB * 1024 / RCVBUF - 1);

	/* a socket that reads its messages notices nothing */
	more = reader(&to);
	for (int i = 0; i < 1000; i++) {
		check_ret(rds_send(fd, chunk, CHUNK / 8, MSG_DONTWAIT, &to),
			  CHUNK / 8);
		check_ret(rds_recv(more, chunk, CHUNK, 0, NULL), CHUNK / 8);
	}
	close(more);

	/* each that is read receives again, however little others read */
	for (int i = READERS - 1; i >= 0; i--) {
		tap_context("socket %d", i);
		pid = must(fork());
		if (!pid) {
			check_ret(rds_send(fd, chunk, CHUNK, 0, &me[i]), CHUNK);
			tap_child_exit();
		}
		/* that of the child comes last */
		for (int left = n[i] + 1; left; left--)
			check_ret(rds_recv(fds[i], chunk, CHUNK, 0, NULL),
				  CHUNK);
		tap_child_join(pid);
	}
	tap_context("all read");
	check_eq(counter_now("used_recv"), 0);

	/* and dropped messages are charged to nobody */
	fill_reader(fd, &me[0]);
	check(counter_now("used_recv") > 0);
	for (int i = 0; i < READERS; i++)
		close(fds[i]);
	check_eq(counter_now("used_recv"), 0);
	close(fd);
}

/* An empty socket takes one message more than the others, if it is read or not, and
 * is congested when all of that is too much. It is clear again when others have read,
 * or are gone. So are its senders when it is closed meanwhile.
 */
static void unread_waits(void)
{
	int tx[2] = { roomy(), roomy() }, full, more[EMPTY], idle, took;
	union addr to, filled, others[EMPTY];

	knob("net/xrds/max_recv_kb", RECV_KB);
	for (int closes = 0; closes < 2; closes++) {
		tap_context(closes ? "it is closed" : "the others are");
		full = reader(&filled);
		idle = reader(&to);
		must(setsockopt(full, SOL_SOCKET, SO_RCVBUFFORCE,
				&(int){ 2 * RECV_KB * 1024 }, sizeof(int)));
		fill_reader(tx[0], &filled);
		took = 0;
		for (int i = 0; i < EMPTY; i++) {
			more[i] = reader(&others[i]);
			took += rds_send(tx[0], large, sizeof(large),
					 MSG_DONTWAIT, &others[i]) > 0;
		}
		check_range(took, 1, EMPTY - 1);
		check_err(rds_send(tx[1], large, CHUNK, MSG_DONTWAIT, &to),
			  ENOBUFS);
		check(!(poll_one(tx[1], POLLOUT, tap_ms(QUIET_MS)) & POLLOUT));
		close(closes ? idle : full);
		check(poll_one(tx[1], POLLOUT, tap_ms(WAIT_MS)) & POLLOUT);
		check_ret(rds_send(tx[1], large, CHUNK, MSG_DONTWAIT, &to),
			  CHUNK);
		close(closes ? full : idle);
		for (int i = 0; i < EMPTY; i++)
			close(more[i]);
	}
	close(tx[0]);
	close(tx[1]);
}

/* A message that is longer than the reservation is no reply: the account of the one
 * who asked bounds it like any other.
 */
static void unread_no_reply(void)
{
	int server = roomy(), full, asks[EMPTY], took = 0;
	union addr to = rds_self(server), filled, from[EMPTY];
	char byte;

	knob("net/xrds/max_recv_kb", RECV_KB);
	rds_set_int(server, SOL_RDS, XRDS_REPLY_RESERVE, 1);
	full = reader(&filled);
	must(setsockopt(full, SOL_SOCKET, SO_RCVBUFFORCE,
			&(int){ 2 * RECV_KB * 1024 }, sizeof(int)));
	for (int i = 0; i < EMPTY; i++) {
		asks[i] = rds_bound(NULL);
		must(rds_send(asks[i], "", 1, 0, &to));
		must(rds_recv_within(server, &byte, 1, WAIT_MS, &from[i]));
	}
	fill_reader(server, &filled);
	for (int i = 0; i < EMPTY; i++)
		took += rds_send(server, large, sizeof(large), MSG_DONTWAIT,
				 &from[i]) > 0;
	check_range(took, 0, EMPTY - 1);
	check_ret(rds_send(server, "", 1, MSG_DONTWAIT, &from[EMPTY - 1]), 1);
	for (int i = 0; i < EMPTY; i++)
		close(asks[i]);
	close(full);
	close(server);
}

/* Replies come all the same, but not without end: those who asked are told. */
static void unread_replies(void)
{
	int server = roomy(), fd[CLIENTS], lost = 0;
	union addr to = rds_self(server), from;
	char byte;

	knob("net/xrds/max_recv_kb", REPLIES_KB);
	rds_set_int(server, SOL_RDS, XRDS_REPLY_RESERVE, sizeof(large));
	for (int i = 0; i < CLIENTS; i++) {
		fd[i] = rds_bound(NULL);
		must(rds_send(fd[i], "", 1, 0, &to));
		must(rds_recv_within(server, &byte, 1, WAIT_MS, &from));
		check_ret(rds_send(server, large, sizeof(large), MSG_DONTWAIT,
				   &from), sizeof(large));
	}
	must_wait(rds_all_acked, &server, WAIT_MS);
	check_range(counter_now("used_recv"), 2 * REPLIES_KB * 1024,
		    2 * REPLIES_KB * 1024 + 2 * (int)sizeof(large));
	for (int i = 0; i < CLIENTS; i++) {
		if (rds_recv(fd[i], large, sizeof(large), MSG_DONTWAIT, NULL) < 0) {
			check_eq(errno, ENOBUFS);
			lost++;
		}
		close(fd[i]);
	}
	check(lost >= CLIENTS - 2 * REPLIES_KB / 1024 - 1);
	close(server);
}

/* ---------------------------------------------------------------- the user */

/* The share of the first namespace's bound is his, in all namespaces. */
static void user_queued(void)
{
	union addr to = addr_of(tap_host, 4000);
	int fd[2], n = 0;
	pid_t pid;

	knob("net/xrds/max_memory_kb", 4 * BOUND_KB);
	knob("net/xrds/user_percent", 25);
	pid = must(fork());
	if (!pid) {
		for (int i = 0; i < 2; i++) {
			tap_new_netns();
			/* of this one only, and nobody puts it back */
			stall_loop();
			as_user(NOBODY);
			fd[i] = roomy();
			if (!i)
				while (++n < 10)
					check_ret(rds_send(fd[0], chunk, CHUNK,
							   MSG_DONTWAIT, &to),
						  CHUNK);
			else
				n += fill(fd[1], &to);
			as_user(0);
		}
		check_range(n, BOUND_KB * 1024 / (CHUNK + COST) - 2,
			    BOUND_KB * 1024 / (CHUNK + COST) + 1);
		/* the administrator is none of his */
		fd[0] = roomy();
		check_ret(rds_send(fd[0], chunk, CHUNK, MSG_DONTWAIT, &to),
			  CHUNK);
		as_user(NOBODY);
		check_err(rds_send(fd[1], chunk, CHUNK, MSG_DONTWAIT, &to),
			  EDQUOT);
		tap_child_exit();
	}
	tap_child_join(pid);
}

/* All messages that wait for a user are one share, at any socket; others have
 * theirs.
 */
static void user_unread(void)
{
	int tx = -1, fd, size = RCVBUF, n = 0;
	union addr to;
	pid_t pid;

	knob("net/xrds/max_recv_kb", 4 * RECV_KB);
	knob("net/xrds/user_percent", 25);
	pid = must(fork());
	if (!pid) {
		for (int i = 0; i < READERS; i++) {
			if (i % (READERS / 2) == 0) {
				tap_new_netns();
				tx = roomy();
			}
			as_user(NOBODY);
			fd = rds_bound(&to);
			as_user(0);
			must(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size,
					sizeof(size)));
			n += fill_reader(tx, &to);
		}
		check_range(n, RECV_KB * 1024 / CHUNK / 2,
			    RECV_KB * 1024 / CHUNK + 2 * READERS);
		fd = reader(&to);
		check(fill_reader(tx, &to) >= RCVBUF / CHUNK);
		tap_child_exit();
	}
	tap_child_join(pid);
}

/* A user who has filled the namespace does not disturb one who has little in
 * it.
 */
static void user_little(void)
{
	int tx, fd, size = RCVBUF, n = 0;
	union addr to;

	knob("net/xrds/max_recv_kb", RECV_KB);
	knob("net/xrds/user_percent", 100);
	tx = roomy();
	for (uid_t uid = NOBODY; uid >= NOBODY - 1; uid--) {
		for (int i = 0; i < (uid == NOBODY ? READERS : 2); i++) {
			as_user(uid);
			fd = rds_bound(&to);
			as_user(0);
			must(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size,
					sizeof(size)));
			n = fill_reader(tx, &to);
		}
		if (uid == NOBODY)
			check(n < RCVBUF / CHUNK / 2);
		else
			check(n >= RCVBUF / CHUNK);
	}
}

/* Write the maps of a child that has made a user namespace */
static void map_ids(pid_t pid)
{
	static const char * const maps[] = { "uid_map", "gid_map" };
	static const char map[] = "0 65534 1\n1 200000 16\n";
	char path[64];
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, maps[i]);
		fd = must(open(path, O_WRONLY | O_CLOEXEC));
		check_ret(write(fd, map, sizeof(map) - 1), sizeof(map) - 1);
		close(fd);
	}
}

/* All ids of a namespace that somebody has made are his, but root's are not. */
static void many_ids(uid_t maker, int most)
{
	char *mem = pages(PAGE_BYTES);
	int made[2], mapped[2], fd, n = 0;
	u64 cookie;
	pid_t pid;
	char c;

	if (knob_exists("kernel/unprivileged_userns_clone"))
		knob("kernel/unprivileged_userns_clone", 1);
	knob("net/xrds/max_keys", 2 * KEYS);
	knob("net/xrds/user_percent", 50);
	must(pipe2(made, O_CLOEXEC));
	must(pipe2(mapped, O_CLOEXEC));
	pid = must(fork());
	if (!pid) {
		as_user(maker);
		must(unshare(CLONE_NEWUSER));
		must(write(made[1], "", 1));
		must(read(mapped[0], &c, 1));
		for (int id = 0; id < 2; id++) {
			must(setresuid(id, id, 0));
			fd = rds_bound(NULL);
			while (n < most && !mr_get(fd, mem, 8, 0, &cookie))
				n++;
			must(setresuid(0, 0, 0));
		}
		check_eq(n, most);
		check_err(mr_get(fd, mem, 8, 0, &cookie), EDQUOT);
		tap_child_exit();
	}
	must(read(made[0], &c, 1));
	map_ids(pid);
	must(write(mapped[1], "", 1));
	tap_child_join(pid);
}

static void user_namespace(void)
{
	many_ids(NOBODY, KEYS);
}

static void user_container(void)
{
	many_ids(0, 2 * KEYS);
}

static void user_keys(void)
{
	char *mem = pages(PAGE_BYTES);
	u64 cookie;
	pid_t pid;
	int fd;

	knob("net/xrds/max_keys", 2 * KEYS);
	knob("net/xrds/user_percent", 50);
	pid = must(fork());
	if (!pid) {
		as_nobody();
		fd = rds_bound(NULL);
		for (int i = 0; i < KEYS; i++)
			check_ret(mr_get(fd, mem, 8, 0, &cookie), 0);
		check_err(mr_get(fd, mem, 8, 0, &cookie), EDQUOT);
		close(fd);
		tap_child_exit();
	}
	tap_child_join(pid);
	fd = rds_bound(NULL);
	for (int i = 0; i < 2 * KEYS; i++)
		check_ret(mr_get(fd, mem, 8, 0, &cookie), 0);
	check_err(mr_get(fd, mem, 8, 0, &cookie), EDQUOT);
	close(fd);
}

/* -------------------------------------------------------------- permissions */

static int write_knob(const char *name, const char *value)
{
	char path[128];
	int fd, ret;

	snprintf(path, sizeof(path), "/proc/sys/net/xrds/%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ret = write(fd, value, strlen(value));
	close(fd);
	return ret < 0 ? -1 : 0;
}

/* One whom the host does not know as administrator, in a world of his own */
static void own_world(void)
{
	static const char * const bounds[] = {
		"sock_max_recv_kb", "max_memory_kb", "max_pinned_kb", "max_keys",
		"max_connections", "max_recv_kb", "max_sources_kb",
		"max_connects_per_s", "user_percent", "unprivileged",
	};

	must(unshare(CLONE_NEWUSER));
	must(unshare(CLONE_NEWNET));
	check_err(socket(AF_RDS, SOCK_SEQPACKET, 0), EPERM);
	for (size_t i = 0; i < ARRAY_SIZE(bounds); i++) {
		tap_context("%s", bounds[i]);
		check_err(write_knob(bounds[i], "1"), EPERM);
	}
	/* others are his to set: he is administrator there */
	tap_context("linger_ms");
	check_ret(write_knob("linger_ms", "1000"), 0);
	check_err(socket(AF_RDS, SOCK_SEQPACKET, 0), EPERM);
}

static void administrators(void)
{
	long long before = counter_now("limit_unprivileged");
	pid_t pid;
	int fd;

	if (knob_exists("kernel/unprivileged_userns_clone"))
		knob("kernel/unprivileged_userns_clone", 1);
	knob("net/xrds/unprivileged", 0);
	pid = must(fork());
	if (!pid) {
		as_nobody();
		check_err(socket(AF_RDS, SOCK_SEQPACKET, 0), EPERM);
		check_err(write_knob("linger_ms", "1000"), EACCES);
		check_err(write_knob("unprivileged", "1"), EACCES);
		own_world();
		tap_child_exit();
	}
	tap_child_join(pid);
	check_eq(counter_now("limit_unprivileged"), before + 1);
	fd = must(socket(AF_RDS, SOCK_SEQPACKET, 0));
	close(fd);
	knob("net/xrds/unprivileged", 1);
	pid = must(fork());
	if (!pid) {
		as_nobody();
		check(socket(AF_RDS, SOCK_SEQPACKET, 0) >= 0);
		tap_child_exit();
	}
	tap_child_join(pid);
}

/* ----------------------------------------------------------- the neighbours */

static union addr stalled;

/* Sockets at an address of their own that abort when their process is killed,
 * with so many messages each.
 */
static void many_sockets(const char *host, int has, int ready)
{
	struct rlimit files = { 2 * MANY, 2 * MANY };
	struct linger abort = { .l_onoff = 1 };
	int fd;

	must(setrlimit(RLIMIT_NOFILE, &files));
	for (int i = 0; i < tap_count(MANY); i++) {
		fd = rds_bound_to(host, 0, NULL);
		must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort,
				sizeof(abort)));
		for (int n = 0; n < has; n++)
			must(rds_send(fd, "", 0, MSG_DONTWAIT, &stalled));
	}
	must(write(ready, "x", 1));
	for (;;)
		pause();
}

/* How long a process that has such sockets takes to die */
static long long death_ms(const char *host, int has)
{
	int ready[2], status;
	long long start;
	char byte;
	pid_t pid;

	must(pipe2(ready, O_CLOEXEC));
	pid = must(fork());
	if (!pid)
		many_sockets(host, has, ready[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		tap_fail("the process did not get ready");
	start = tap_now_ms();
	must(kill(pid, SIGKILL));
	must(waitpid(pid, &status, 0));
	start = tap_now_ms() - start;
	check(WIFSIGNALED(status));
	close(ready[0]);
	return start;
}

static int by_size(const void *a, const void *b)
{
	const long long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * A process dies beside a long queue of its own address as fast as it does at
 * another address, where nobody has anything queued: its sockets need not look
 * at messages of somebody else. Both die in turns, so whatever else the
 * machine does slows down both. If each socket looked at the whole queue, that
 * would take much longer than all the rest.
 */
static void neighbours(int has)
{
	struct linger abort = { .l_onoff = 1 };
	long long beside[DEATHS], alone[DEATHS];
	struct xrds_dest_status st;
	int rx, tx = roomy();

	rx = rds_bound(&stalled);
	hold_ops();
	for (int i = 0; i < tap_count(MANY_MSGS); i++)
		must(rds_send(tx, "", 0, MSG_DONTWAIT, &stalled));
	for (int i = 0; i < DEATHS; i++) {
		beside[i] = death_ms(tap_host, has);
		alone[i] = death_ms("127.0.0.2", has);
	}
	must(dest_status(tx, &stalled, &st));
	check_eq(st.queued_msgs, tap_count(MANY_MSGS));
	qsort(beside, DEATHS, sizeof(beside[0]), by_size);
	qsort(alone, DEATHS, sizeof(alone[0]), by_size);
	tap_diag("beside others %lld ms, alone %lld", beside[DEATHS / 2],
		 alone[DEATHS / 2]);
	check_range(beside[DEATHS / 2], 0, TIMES * alone[DEATHS / 2]);
	must(setsockopt(tx, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
	close(tx);
	close(rx);
}

static void neighbour_idle(void)
{
	neighbours(0);
}

static void neighbour_busy(void)
{
	neighbours(1);
}

static const struct tap_case cases[] = {
	{ "queued", "messages that a namespace has queued are bounded: EDQUOT",
	  queued, TAP_EACH_FAMILY, 60 },
	{ "lingering", "closed sockets count as long as they deliver",
	  lingering, 0, 90 },
	{ "cgroup_conns", "a connection is memory of its maker's cgroup",
	  cgroup_conns, 0, 60 },
	{ "cgroup", "a queued message is memory of the sender's cgroup", cgroup,
	  0, 60 },
	{ "heard", "remembered senders count by themselves", heard,
	  TAP_EACH_FAMILY, 60 },
	{ "heard_bound", "remembered senders are bounded", heard_bound,
	  TAP_EACH_FAMILY, 60 },
	{ "sockets", "sockets count as memory", sockets, 0, 60 },
	{ "pinned", "pinned memory is bounded: EDQUOT", pinned, 0, 60 },
	{ "pinned_ops", "that of ops as well", pinned_ops, 0, 60 },
	{ "op_notices", "unread notices of ops count as memory", op_notices, 0,
	  60 },
	{ "msg_notices", "so do those of messages", msg_notices, 0, 60 },
	{ "keys", "keys are bounded: EDQUOT", keys, 0, 60 },
	{ "connections", "connections are bounded: EDQUOT", connections, 0, 0 },
	{ "connects", "attempts to connect wait for their second", connects, 0,
	  90 },
	{ "connects_beside", "users take turns in that", connects_beside, 0, 90 },
	{ "unread", "messages that wait to be read are bounded: congestion",
	  unread, TAP_EACH_FAMILY, 60 },
	{ "unread_waits", "an empty socket is clear again when others have read",
	  unread_waits, TAP_EACH_FAMILY, 60 },
	{ "unread_no_reply", "a message longer than its reservation is no reply",
	  unread_no_reply, TAP_EACH_FAMILY, 60 },
	{ "unread_replies", "replies that nobody reads are bounded, too",
	  unread_replies, TAP_EACH_FAMILY, 60 },
	{ "neighbour_idle",
	  "a user with nothing queued is not held up by others", neighbour_idle,
	  0, 120 },
	{ "neighbour_busy", "nor who has little queued", neighbour_busy, 0,
	  120 },
	{ "user_queued", "a user has one bound in all namespaces",
	  user_queued, TAP_SAME_NETNS, 60 },
	{ "user_unread", "so have the messages that wait for him", user_unread,
	  TAP_SAME_NETNS, 60 },
	{ "user_little", "a user with little receives when others fill it all",
	  user_little, 0, 60 },
	{ "user_keys", "and leaves the rest to others", user_keys,
	  TAP_SAME_NETNS, 60 },
	{ "user_namespace", "a user with many ids is one user still",
	  user_namespace, TAP_SAME_NETNS, 60 },
	{ "user_container", "but not those whom root tells apart",
	  user_container, TAP_SAME_NETNS, 60 },
	{ "administrators", "sockets and bounds can be for them only",
	  administrators, TAP_SAME_NETNS, 60 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
