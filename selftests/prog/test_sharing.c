// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sockets shared by processes, network namespaces, and the end of both.
 *
 * timeout: 240
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counters.h"
#include "lazy.h"
#include "rdma.h"
#include "sock.h"
#include "tap.h"
#include "turns.h"

enum {
	CHUNK		= 4096,
	NETNS_ROUNDS	= 20,
	CLOSE_ROUNDS	= 300,
};

static char chunk[CHUNK];

/* ---------------------------------------------------- memory that is not there */

static struct {
	int fd;
	struct lazy memory;
	struct target target;
	union addr name;
	bool named;
} lazy;

static void *op_thread(void *arg)
{
	char data[8] = "";
	struct op op = op_write(&lazy.target, 0, data, sizeof(data));

	(void)arg;
	op.id = (u64 *)lazy.memory.page;
	check_ret(op_send(lazy.fd, &lazy.target.addr, &op), 0);
	return NULL;
}

static void *option_thread(void *arg)
{
	(void)arg;
	/* any value does: it only has to be read */
	setsockopt(lazy.fd, SOL_RDS, SO_RDS_TRANSPORT, lazy.memory.page,
		   sizeof(int));
	return NULL;
}

static void *name_thread(void *arg)
{
	socklen_t len = sizeof(lazy.name);

	(void)arg;
	check_ret(getsockname(lazy.fd, &lazy.name.sa, &len), 0);
	WRITE_ONCE(lazy.named, true);
	return NULL;
}

static bool is_named(void *arg)
{
	(void)arg;
	return READ_ONCE(lazy.named);
}

/* While a call on lazy.fd waits for its memory another call comes through. */
static void others_pass(void *(*call)(void *))
{
	pthread_t caller, namer;

	lazy_open(&lazy.memory);
	lazy.named = false;
	if (pthread_create(&caller, NULL, call, NULL))
		tap_fail("no thread");
	lazy_await(&lazy.memory);
	if (pthread_create(&namer, NULL, name_thread, NULL))
		tap_fail("no thread");
	check(tap_wait(is_named, NULL, WAIT_MS));
	lazy_fill(&lazy.memory);
	pthread_join(caller, NULL);
	pthread_join(namer, NULL);
	lazy_close(&lazy.memory);
}

static void memory_waits(void)
{
	target_open(&lazy.target, PAGE_BYTES, RDS_RDMA_READWRITE);
	lazy.fd = rds_bound(NULL);
	others_pass(op_thread);
	check_eq(*(u64 *)lazy.memory.page, 1);
	close(lazy.fd);
	target_close(&lazy.target);
	lazy.fd = rds_socket();
	others_pass(option_thread);
	close(lazy.fd);
}

/* --------------------------------------------- memory to be filled, pinned */

static int lend(u64 flags)
{
	u64 cookie;

	return mr_get(lazy.fd, lazy.memory.page, PAGE_BYTES, flags, &cookie);
}

static int lend_to_read(void)
{
	return lend(0);
}

static int lend_to_write(void)
{
	return lend(RDS_RDMA_READWRITE);
}

static int op_from(void)
{
	struct op op = op_write(&lazy.target, 0, lazy.memory.page,
				PAGE_BYTES);

	return op_send(lazy.fd, &lazy.target.addr, &op);
}

static int op_into(void)
{
	struct op op = op_read(&lazy.target, 0, lazy.memory.page,
			       PAGE_BYTES);

	return op_send(lazy.fd, &lazy.target.addr, &op);
}

static struct {
	int (*call)(void);
	int error;
	bool ended;
} pinning;

static void *pin_thread(void *arg)
{
	(void)arg;
	pinning.error = pinning.call() ? errno : 0;
	WRITE_ONCE(pinning.ended, true);
	return NULL;
}

/* Whether the call waits until its memory is there */
static bool pin_waits(int (*call)(void))
{
	bool waited = false;
	pthread_t caller;

	lazy_open(&lazy.memory);
	pinning.call = call;
	pinning.ended = false;
	if (pthread_create(&caller, NULL, pin_thread, NULL))
		tap_fail("no thread");
	while (!waited && !READ_ONCE(pinning.ended))
		waited = poll_one(lazy.memory.fd, POLLIN, 10) & POLLIN;
	if (waited)
		lazy_fill(&lazy.memory);
	pthread_join(caller, NULL);
	lazy_close(&lazy.memory);
	return waited;
}

/* 6.1 cannot wait for memory that is to be written: it says so at once, and
 * keeps none of it pinned.
 */
static void memory_pinned(void)
{
	static const struct {
		const char *name;
		int (*call)(void);
		bool written;
	} calls[] = {
		{ "a region to read", lend_to_read, false },
		{ "a region to write", lend_to_write, true },
		{ "the source of an op", op_from, false },
		{ "the sink of an op", op_into, true },
	};
	long before;

	target_open(&lazy.target, PAGE_BYTES, RDS_RDMA_READWRITE);
	before = pinned_kb();
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		tap_context("%s", calls[i].name);
		lazy.fd = rds_bound(NULL);
		if (pin_waits(calls[i].call)) {
			check_eq(pinning.error, 0);
		} else {
			tap_diag("%s is not waited for", calls[i].name);
			check(calls[i].written);
			check_eq(pinning.error, EFAULT);
		}
		close(lazy.fd);
		check_pinned_falls(before);
	}
	target_close(&lazy.target);
}

/* ------------------------------------------------------------- processes */

static void forked(void)
{
	union addr self;
	int fd = rds_bound(&self);
	char byte;
	pid_t pid;

	pid = must(fork());
	if (!pid) {
		check_ret(rds_send(fd, "c", 1, 0, &self), 1);
		close(fd);
		tap_child_exit();
	}
	tap_child_join(pid);
	/* the child's close was not the last one */
	check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL), 1);
	check_eq(byte, 'c');
	check_ret(rds_send(fd, "p", 1, 0, &self), 1);
	check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL), 1);
	close(fd);
}

static void pass_fd(int unix_fd, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] __aligned(8) = { 0 };
	struct iovec iov = { "x", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	must(sendmsg(unix_fd, &msg, 0));
}

static int take_fd(int unix_fd)
{
	char control[CMSG_SPACE(sizeof(int))] __aligned(8) = { 0 }, byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control) };
	int fd;

	must(recvmsg(unix_fd, &msg, 0));
	if (!CMSG_FIRSTHDR(&msg))
		tap_fail("no descriptor came");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

static void passed(void)
{
	int pair[2], fd;
	union addr self;
	char byte;
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	pid = must(fork());
	if (!pid) {
		fd = take_fd(pair[1]);
		self = rds_self(fd);
		check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL), 1);
		check_eq(byte, 'p');
		check_ret(rds_send(fd, "c", 1, 0, &self), 1);
		check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL), 1);
		check_eq(byte, 'c');
		tap_child_exit();
	}
	fd = rds_bound(&self);
	check_ret(rds_send(fd, "p", 1, 0, &self), 1);
	pass_fd(pair[0], fd);
	close(fd);
	tap_child_join(pid);
	close(pair[0]);
	close(pair[1]);
}

/* Over an AF_RDS socket a descriptor cannot be passed, and none gets lost */
static void not_passed_over(void)
{
	char control[CMSG_SPACE(sizeof(int))] __aligned(8) = { 0 };
	struct iovec iov = { "x", 1 };
	union addr self;
	int fd = rds_bound(&self);
	struct msghdr msg = { .msg_name = &self, .msg_namelen = addr_len(&self),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	char byte;

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	if (sendmsg(fd, &msg, 0) == 1) {
		memset(control, 0, sizeof(control));
		must(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL));
	}
	close(fd);
}

/* ---------------------------------------------------------------- killing */

static void fill(int fd, const union addr *to)
{
	while (rds_send(fd, chunk, CHUNK, MSG_DONTWAIT, to) > 0)
		;
}

static void ready(int fd)
{
	must(write(fd, "r", 1));
}

static void busy_queued(int ready_fd)
{
	union addr to = addr_of(tap_host, 4000);
	int fd = rds_bound(NULL);

	fill(fd, &to);
	ready(ready_fd);
}

static void busy_sending(int ready_fd)
{
	union addr to = addr_of(tap_host, 4000);
	int fd = rds_bound(NULL);

	fill(fd, &to);
	ready(ready_fd);
	for (;;)
		rds_send(fd, chunk, CHUNK, 0, &to);
}

static void busy_receiving(int ready_fd)
{
	int fd = rds_bound(NULL);
	char byte;

	ready(ready_fd);
	rds_recv(fd, &byte, 1, 0, NULL);
}

static void busy_traffic(int ready_fd)
{
	union addr self;
	int fd = rds_bound(&self);

	ready(ready_fd);
	for (;;) {
		rds_send(fd, chunk, CHUNK, MSG_DONTWAIT, &self);
		rds_recv(fd, chunk, CHUNK, MSG_DONTWAIT, NULL);
	}
}

static void killed(void)
{
	/* a process that is killed cannot end that itself */
	stall_loop();
	tap_context("messages queued to a destination without progress");
	tap_kill_busy(busy_queued);
	tap_context("waiting in sendmsg");
	tap_kill_busy(busy_sending);
	tap_context("waiting in recvmsg");
	tap_kill_busy(busy_receiving);
	knob("net/xrds/loop/delay_ms", 0);
	tap_context("under traffic");
	for (int i = 0; i < 5; i++)
		tap_kill_busy(busy_traffic);
}

static bool rebound(void *arg)
{
	union addr a = addr_of(tap_host, 4000);
	int fd = rds_socket(), ret;

	(void)arg;
	ret = bind(fd, &a.sa, addr_len(&a));
	close(fd);
	return !ret;
}

static void busy_bound(int ready_fd)
{
	rds_bound_to(tap_host, 4000, NULL);
	ready(ready_fd);
}

static void port_after_kill(void)
{
	tap_kill_busy(busy_bound);
	must_wait(rebound, NULL, WAIT_MS);
}

/* ---------------------------------------------------------------- closing */

static void close_delivers(void)
{
	enum { MESSAGES = 50 };
	union addr to;
	u32 number;
	int rx, tx;

	rx = rds_bound(&to);
	knob("net/xrds/loop/delay_ms", 50);
	tx = rds_bound(NULL);
	for (u32 i = 0; i < MESSAGES; i++)
		check_ret(rds_send(tx, &i, sizeof(i), 0, &to), sizeof(i));
	close(tx);
	for (u32 i = 0; i < MESSAGES; i++) {
		must(rds_recv_within(rx, &number, sizeof(number), WAIT_MS,
				     NULL));
		check_eq(number, i);
	}
	close(rx);
}

static void close_returns(void)
{
	union addr to;
	int rx, tx;
	long long start;

	turns_begin();
	rx = rds_bound(&to);
	stall_loop();
	tx = rds_bound(NULL);
	fill(tx, &to);
	start = tap_now_ms();
	close(tx);
	check_range(turns_since(start), 0, tap_ms(TAP_KILL_MS));
	close(rx);
}

static void *receiver_thread(void *arg)
{
	char byte;

	rds_recv(*(int *)arg, &byte, 1, 0, NULL);
	return NULL;
}

static void *sender_thread(void *arg)
{
	int fd = *(int *)arg;
	union addr to = addr_of(tap_host, 4000);

	for (int i = 0; i < 10; i++)
		rds_send(fd, "x", 1, MSG_DONTWAIT, &to);
	return NULL;
}

static void close_races(void)
{
	int sink = rds_bound_to(tap_host, 4000, NULL);
	pthread_t threads[2];
	union addr self;
	char byte;
	int fd;

	for (int i = 0; i < tap_count(CLOSE_ROUNDS); i++) {
		fd = rds_bound(&self);
		pthread_create(&threads[0], NULL, receiver_thread, &fd);
		pthread_create(&threads[1], NULL, sender_thread, &fd);
		rds_send(sink, "x", 1, MSG_DONTWAIT, &self);
		close(fd);
		pthread_join(threads[1], NULL);
		/* the receiver holds the file while it waits: wake it */
		while (pthread_tryjoin_np(threads[0], NULL)) {
			rds_send(sink, "x", 1, MSG_DONTWAIT, &self);
			poll_one(sink, POLLIN, 1);
		}
		while (rds_recv(sink, &byte, 1, MSG_DONTWAIT, NULL) >= 0)
			;
	}
	close(sink);
}

/* ------------------------------------------------------------- namespaces */

static void two_namespaces(void)
{
	int ours = rds_bound_to(tap_host, 4000, NULL), theirs, home;
	union addr self = rds_self(ours);
	char byte;

	home = must(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
	tap_new_netns();
	theirs = rds_bound_to(tap_host, 4000, NULL);
	check_ret(rds_send(theirs, "t", 1, 0, &self), 1);
	check_ret(rds_send(ours, "o", 1, 0, &self), 1);
	check_ret(rds_recv_within(theirs, &byte, 1, WAIT_MS, NULL), 1);
	check_eq(byte, 't');
	check_ret(rds_recv_within(ours, &byte, 1, WAIT_MS, NULL), 1);
	check_eq(byte, 'o');
	check_eq(poll_one(ours, POLLIN, 0), 0);
	check_eq(poll_one(theirs, POLLIN, 0), 0);
	must(setns(home, CLONE_NEWNET));
	close(theirs);
	check_ret(rds_send(ours, "o", 1, 0, &self), 1);
	check_ret(rds_recv_within(ours, &byte, 1, WAIT_MS, NULL), 1);
	close(ours);
}

static void own_counters(void)
{
	long long before = counter_now("send_queued");
	union addr self;
	int fd, home;
	char byte;

	home = must(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
	tap_new_netns();
	check_eq(counter_now("send_queued"), 0);
	fd = rds_bound(&self);
	must(rds_send(fd, "x", 1, 0, &self));
	must(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL));
	check(counter_now("send_queued") > 0);
	close(fd);
	must(setns(home, CLONE_NEWNET));
	check_eq(counter_now("send_queued"), before);
	close(home);
}

static void own_knobs(void)
{
	int fd, home;
	char value[16] = "";

	home = must(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
	knob("net/xrds/loop/delay_ms", 7);
	must(unshare(CLONE_NEWNET));
	fd = must(open("/proc/sys/net/xrds/loop/delay_ms", O_RDONLY));
	must(read(fd, value, sizeof(value) - 1));
	check_eq(atoi(value), 0);
	close(fd);
	must(setns(home, CLONE_NEWNET));
	close(home);
}

/* Messages queued, under way and unread; some senders are at work */
static void namespace_life(int round)
{
	union addr to = addr_of(tap_host, 4000);
	int rx, tx;

	tap_new_netns();
	rx = rds_bound_to(tap_host, 4000, NULL);
	tx = rds_bound(NULL);
	knob("net/xrds/loop/delay_ms", round % 3 * 20);
	knob("net/xrds/loop/bounce_ms", round % 2 * 5);
	fill(tx, &to);
	rds_recv(rx, chunk, CHUNK, MSG_DONTWAIT, NULL);
	if (round % 4 == 3)
		kill(getpid(), SIGKILL);
	_exit(0);
}

static void namespace_ends(void)
{
	pid_t pid;

	for (int i = 0; i < tap_count(NETNS_ROUNDS); i++) {
		pid = must(fork());
		if (!pid)
			namespace_life(i);
		waitpid(pid, NULL, 0);
	}
}

static const struct tap_case cases[] = {
	{ "forked", "a socket lives until the last process closes it", forked,
	  0, 0 },
	{ "passed", "a socket works on in the process it is passed to",
	  passed, 0, 0 },
	{ "not_passed_over", "descriptors sent over it are not leaked",
	  not_passed_over, 0, 0 },
	{ "killed", "a killed process ends within a second in any call", killed,
	  TAP_EACH_FAMILY, 60 },
	{ "memory_waits", "a call that waits for its memory holds up no other",
	  memory_waits, 0, 60 },
	{ "memory_pinned", "memory that a program has yet to fill can be lent",
	  memory_pinned, 0, 60 },
	{ "port_after_kill", "a killed process's port is free", port_after_kill,
	  0, 0 },
	{ "close_delivers", "messages accepted before close arrive",
	  close_delivers, TAP_EACH_FAMILY, 0 },
	{ "close_returns", "close does not wait for delivery", close_returns,
	  0, 0 },
	{ "close_races", "close against a sender and a receiver", close_races,
	  0, 60 },
	{ "two_namespaces", "namespaces share no port and no message",
	  two_namespaces, TAP_EACH_FAMILY, 0 },
	{ "own_counters", "each namespace counts for itself", own_counters,
	  0, 0 },
	{ "own_knobs", "each namespace has its own sysctls", own_knobs, 0, 0 },
	{ "namespace_ends", "a namespace ends under traffic", namespace_ends,
	  0, 120 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
