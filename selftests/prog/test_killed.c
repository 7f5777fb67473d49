// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process that is killed in any call of the man pages ends promptly, and so does
 * its network namespace, over the loopback.
 *
 * XRDS_KILLED_ROUNDS in the environment is how often in each; with more of them it
 * takes a larger XRDS_SLOW.
 *
 * timeout: 240
 * kernels: 6.1 6.12 7.2
 */
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "congest.h"
#include "dump.h"
#include "netns.h"
#include "rdma.h"
#include "tap.h"
#include "turns.h"
#include "uring.h"

enum {
	ROUNDS		= 5,
	LATEST_US	= 20000,	/* the rounds kill at times up to that */
	RCVBUF		= 64 * 1024,
	REGION_BYTES	= 8 << 20,
	OP_BYTES	= 1 << 20,
	BATCH		= 16,
	LINGER_S	= 600,
	LINGER_MS	= 100,
	EVER		= -1,
};

/* Of the process that will be killed */
static struct target target;
static char *mem;
static int own;

static void nothing(void)
{
}

/* Nothing arrives any more. The kernel does not try for long. */
static void to_nowhere(void)
{
	knob("net/xrds/linger_ms", LINGER_MS);
	stall_loop();
}

/* --------------------------------------------------------------- messages */

static void bind_close(void)
{
	union addr a = addr_of(tap_host, 4000);
	int fd = rds_socket();

	bind(fd, &a.sa, addr_len(&a));
	connect(fd, &target.addr.sa, addr_len(&target.addr));
	close(fd);
}

static void send_recv(void)
{
	rds_send(own, mem, MSG_MAX_BYTES, MSG_DONTWAIT, &target.addr);
	rds_recv(target.fd, mem, MSG_MAX_BYTES, MSG_DONTWAIT, NULL);
}

static void many_messages(void)
{
	struct iovec iov = { mem, 100 };
	struct mmsghdr msgs[BATCH];

	for (int i = 0; i < BATCH; i++)
		msgs[i].msg_hdr = (struct msghdr){
			.msg_name = &target.addr,
			.msg_namelen = addr_len(&target.addr),
			.msg_iov = &iov,
			.msg_iovlen = 1,
		};
	sendmmsg(own, msgs, BATCH, MSG_DONTWAIT);
	recvmmsg(target.fd, msgs, BATCH, MSG_DONTWAIT, NULL);
}

static void may_zero_copy(void)
{
	rds_set_int(own, SOL_SOCKET, SO_ZEROCOPY, 1);
}

static void zero_copy(void)
{
	struct ctl ctl = {};
	struct got got;
	u32 cookie = 1;

	ctl_add(&ctl, RDS_CMSG_ZCOPY_COOKIE, &cookie, sizeof(cookie));
	ctl_send(own, &target.addr, &ctl, mem, OP_BYTES,
		 MSG_ZEROCOPY | MSG_DONTWAIT);
	rds_recv(target.fd, mem, MSG_MAX_BYTES, MSG_DONTWAIT, NULL);
	got_now(own, &got, sizeof(ctl));
}

static void by_ring(void)
{
	static struct uring u;
	struct io_uring_cqe done;
	struct io_uring_sqe send = {
		.opcode = IORING_OP_SEND,
		.fd = own,
		.addr = (uintptr_t)mem,
		.len = 100,
	};

	if (!u.rings) {
		must(connect(own, &target.addr.sa, addr_len(&target.addr)));
		uring_open(&u);
	}
	uring_poll(&u, target.fd, POLLIN, false, 1);
	uring_submit(&u, &send);
	rds_recv(target.fd, mem, MSG_MAX_BYTES, 0, NULL);
	while (uring_take(&u, &done))
		;
}

static void waits_for_space(void)
{
	rds_send(own, mem, MSG_MAX_BYTES, 0, &target.addr);
}

/* Of the receiver that does not read */
static void congested(void)
{
	rds_set_int(target.fd, SOL_SOCKET, SO_RCVBUF, RCVBUF);
	congest(own, &target.addr);
}

static void waits_for_port(void)
{
	rds_send(own, mem, 100, 0, &target.addr);
}

static void waits_for_message(void)
{
	rds_recv(own, mem, 1, 0, NULL);
}

static void waits_for_messages(void)
{
	struct iovec iov = { mem, 1 };
	struct mmsghdr msg = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };

	recvmmsg(own, &msg, 1, 0, NULL);
}

static void waits_in_poll(void)
{
	poll_one(own, POLLIN, EVER);
}

static void waits_in_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int ep = must(epoll_create1(0));

	must(epoll_ctl(ep, EPOLL_CTL_ADD, own, &event));
	epoll_wait(ep, &event, 1, EVER);
}

static void waits_in_close(void)
{
	struct linger linger = { 1, LINGER_S };
	int fd = rds_bound(NULL);

	must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	rds_send(fd, mem, 100, 0, &target.addr);
	close(fd);
}

static void shut_down(void)
{
	int fd = rds_bound(NULL);

	rds_send(fd, mem, 100, 0, &target.addr);
	shutdown(fd, SHUT_WR);
	close(fd);
	rds_recv(target.fd, mem, MSG_MAX_BYTES, MSG_DONTWAIT, NULL);
}

/* ---------------------------------------------------------- options, dumps */

static void options(void)
{
	struct xrds_dest_sndbuf space = { .bytes = OP_BYTES };
	struct xrds_dest_status st;
	int size = OP_BYTES;

	setsockopt(own, SOL_RDS, XRDS_DEST_SNDBUF, &space, sizeof(space));
	setsockopt(own, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	rds_set_int(own, SOL_RDS, XRDS_NODE_EVENTS, 1);
	rds_send(own, mem, 100, MSG_DONTWAIT, &target.addr);
	dest_status(own, &target.addr, &st);
	ioctl(own, SIOCOUTQ, &size);
	ioctl(target.fd, SIOCINQ, &size);
	rds_reserve(target.fd, 100);
	rds_recv(target.fd, mem, MSG_MAX_BYTES, MSG_DONTWAIT, NULL);
	rds_release(target.fd, &target.addr);
	rds_set_int(own, SOL_RDS, XRDS_NODE_EVENTS, 0);
}

static void cancel(void)
{
	rds_send(own, mem, OP_BYTES, MSG_DONTWAIT, &target.addr);
	setsockopt(own, SOL_RDS, RDS_CANCEL_SENT_TO, &target.addr,
		   addr_len(&target.addr));
}

static void dumps(void)
{
	struct dump d;

	for (int what = RDS_INFO_FIRST; what <= RDS_INFO_LAST; what++)
		if (!dump_try(own, what, &d))
			dump_free(&d);
}

/* ------------------------------------------------------------------- RDMA */

static void regions(void)
{
	u64 cookie;

	if (!mr_get(own, mem, REGION_BYTES, RDS_RDMA_READWRITE, &cookie))
		mr_free(own, cookie);
	if (!mr_get_for(own, &target.addr, mem, REGION_BYTES, RDS_RDMA_USE_ONCE,
			&cookie))
		mr_free(own, cookie);
}

static void region_by_message(void)
{
	u64 cookie;
	struct rds_get_mr_args args = {
		.vec = { (uintptr_t)mem, OP_BYTES },
		.cookie_addr = (uintptr_t)&cookie,
		.flags = RDS_RDMA_USE_ONCE,
	};

	rds_send_cmsg(own, &target.addr, RDS_CMSG_RDMA_MAP, &args, sizeof(args));
	rds_recv(target.fd, mem, MSG_MAX_BYTES, MSG_DONTWAIT, NULL);
}

static void ops(void)
{
	struct op op = op_write(&target, 0, mem, OP_BYTES);

	op_run(own, &target.addr, &op);
	op = op_read(&target, 0, mem, OP_BYTES);
	op_run(own, &target.addr, &op);
	rds_recv(target.fd, mem, MSG_MAX_BYTES, MSG_DONTWAIT, NULL);
}

static void atomics(void)
{
	struct op op;
	u64 old;

	op = op_fadd(&target, 0, 1, &old);
	op_run(own, &target.addr, &op);
	rds_recv(target.fd, mem, MSG_MAX_BYTES, MSG_DONTWAIT, NULL);
}

static void barrier_by_message(void)
{
	struct op op = op_write(&target, 0, mem, OP_BYTES);
	struct xrds_barrier to_arm = {};
	struct got got;

	op.barrier = &to_arm;
	op_send(own, &target.addr, &op);
	got_now(own, &got, sizeof(struct ctl));
	rds_recv(target.fd, mem, MSG_MAX_BYTES, MSG_DONTWAIT, NULL);
}

/* An op that will not end soon */
static void slow_op(void)
{
	struct op op = op_write(&target, 0, mem, OP_BYTES);

	knob("net/xrds/linger_ms", LINGER_MS);
	hold_ops();
	must(op_send(own, &target.addr, &op));
}

static void waits_in_barrier(void)
{
	struct xrds_barrier b;

	barrier(own, &target.addr, 1, 0, 0, &b);
}

/* ------------------------------------------------------------------ killed */

struct call {
	const char *name;
	void (*prepare)(void);
	void (*make)(void);	/* again and again, unless it waits */
};

static const struct call calls[] = {
	{ "bind, connect, close", nothing, bind_close },
	{ "sendmsg, recvmsg", nothing, send_recv },
	{ "sendmmsg, recvmmsg", nothing, many_messages },
	{ "MSG_ZEROCOPY", may_zero_copy, zero_copy },
	{ "io_uring", nothing, by_ring },
	{ "sendmsg waits", to_nowhere, waits_for_space },
	{ "sendmsg waits for the port", congested, waits_for_port },
	{ "recvmsg waits", nothing, waits_for_message },
	{ "recvmmsg waits", nothing, waits_for_messages },
	{ "poll waits", nothing, waits_in_poll },
	{ "epoll waits", nothing, waits_in_epoll },
	{ "close waits", to_nowhere, waits_in_close },
	{ "shutdown", nothing, shut_down },
	{ "options", nothing, options },
	{ "RDS_CANCEL_SENT_TO", to_nowhere, cancel },
	{ "RDS_INFO", nothing, dumps },
	{ "regions", nothing, regions },
	{ "RDS_CMSG_RDMA_MAP", nothing, region_by_message },
	{ "RDMA", nothing, ops },
	{ "atomics", nothing, atomics },
	{ "XRDS_CMSG_BARRIER", nothing, barrier_by_message },
	{ "a barrier waits", slow_op, waits_in_barrier },
};

static void __noreturn busy(const struct call *call, pid_t home, int ready)
{
	tap_new_netns();
	netns_mark(home);
	mem = pages(REGION_BYTES);
	own = rds_bound(NULL);
	target_open(&target, OP_BYTES, RDS_RDMA_READWRITE);
	call->prepare();
	must(write(ready, "r", 1));
	for (;;)
		call->make();
}

static void kill_in(const struct call *call, int after_us)
{
	const struct timespec delay = { .tv_nsec = after_us * 1000L };
	pid_t home = getpid(), pid;
	int pipe_fd[2], status;
	long long start;
	char byte;

	must(pipe(pipe_fd));
	pid = must(fork());
	if (!pid)
		busy(call, home, pipe_fd[1]);
	close(pipe_fd[1]);
	if (read(pipe_fd[0], &byte, 1) != 1)
		tap_fail("the process did not get ready");
	close(pipe_fd[0]);
	check(netns_marked());
	nanosleep(&delay, NULL);
	start = tap_now_ms();
	tap_kill(pid, &status);
	check_range(turns_since(start), 0, tap_ms(TAP_KILL_MS));
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	check(netns_ends(WAIT_MS));
}

static void in_any_call(void)
{
	const char *text = getenv("XRDS_KILLED_ROUNDS");
	int rounds = text ? atoi(text) : ROUNDS;

	turns_begin();
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		for (int n = 0; n < rounds; n++) {
			int after_us = (long)LATEST_US * n / rounds;

			tap_context("%s, after %d us", calls[i].name, after_us);
			kill_in(&calls[i], after_us);
		}
}

static const struct tap_case cases[] = {
	{ "in_any_call", "a process that is killed ends, and its namespace",
	  in_any_call, 0, 200 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
