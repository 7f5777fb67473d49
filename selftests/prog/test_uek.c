// SPDX-License-Identifier: GPL-2.0-only
/*
 * What programs of Oracle's UEK kernel ask for: numbers that mean something
 * else in mainline RDS, or nothing.
 *
 * timeout: 120
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "congest.h"
#include "counters.h"
#include "dump.h"
#include "rdma.h"
#include "sock.h"
#include "tap.h"

enum {
	NOBODY		= 65534,
	RESETS		= 50,
	BURST		= 20,		/* messages between two resets */
	TOS		= 3,
	OPTION_BYTES	= 64,
	TOKEN		= 77,
	HOUR_MS		= 3600000,
	REMOTE_NOTIFY	= RDS_RDMA_NOTIFY_ME | XRDS_UEK_REMOTE_COMPLETE,
};

/* ------------------------------------------------------------------ resets */

static int reset4(int fd, const char *src, const char *dst, u8 tos)
{
	struct xrds_uek_reset arg = { .tos = tos, .pad = { 1, 2, 3 } };

	arg.src = inet_addr(src);
	arg.dst = inet_addr(dst);
	return setsockopt(fd, SOL_RDS, XRDS_UEK_CONN_RESET, &arg, sizeof(arg));
}

static int reset6(int fd, const char *src, const char *dst, u8 tos)
{
	struct xrds_uek_reset6 arg = { .tos = tos, .pad = { 1, 2, 3 } };

	must(inet_pton(AF_INET6, src, arg.src) == 1 ? 0 : -1);
	must(inet_pton(AF_INET6, dst, arg.dst) == 1 ? 0 : -1);
	return setsockopt(fd, SOL_RDS, XRDS_UEK_CONN_RESET6, &arg,
			  sizeof(arg));
}

/* Those of the address under test, with themselves */
static int reset_self(int fd)
{
	return strchr(tap_host, ':') ? reset6(fd, tap_host, tap_host, 0) :
				       reset4(fd, tap_host, tap_host, 0);
}

static void lengths(void)
{
	static const struct { int option; socklen_t len; } taken[] = {
		{ XRDS_UEK_CONN_RESET, 12 }, { XRDS_UEK_CONN_RESET6, 36 },
		{ XRDS_UEK_INQ, 4 },
	};
	char data[OPTION_BYTES] = "";
	int fd = rds_socket();

	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		for (socklen_t len = 0; len < sizeof(data); len++) {
			bool fits = len == taken[i].len ||
				    (taken[i].option == XRDS_UEK_INQ &&
				     len >= sizeof(int));

			/* that is the transport, see below */
			if (taken[i].option == SO_RDS_TRANSPORT &&
			    len == sizeof(int))
				continue;
			tap_context("option %d, %u bytes", taken[i].option,
				    len);
			if (fits)
				check_ret(setsockopt(fd, SOL_RDS,
						     taken[i].option, data,
						     len), 0);
			else
				check_err(setsockopt(fd, SOL_RDS,
						     taken[i].option, data,
						     len), EINVAL);
		}
	close(fd);
}

static void transport(void)
{
	static const int options[] = { SO_RDS_TRANSPORT, XRDS_UEK_TRANSPORT };
	int bad = RDS_TRANS_COUNT, value = RDS_TRANS_GAP, fd;
	char data[OPTION_BYTES] = "";

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		tap_context("option %d", options[i]);
		fd = rds_socket();
		check_eq(rds_get_int(fd, SOL_RDS, options[i]), RDS_TRANS_NONE);
		check_err(setsockopt(fd, SOL_RDS, options[i], &bad,
				     sizeof(bad)), EINVAL);
		check_err(setsockopt(fd, SOL_RDS, options[i], data, 8), EINVAL);
		check_err(setsockopt(fd, SOL_RDS, options[i], &value,
				     sizeof(value)), ENOPROTOOPT);
		close(fd);
		fd = rds_bound(NULL);
		check_eq(rds_get_int(fd, SOL_RDS, options[i]),
			 rds_get_int(fd, SOL_RDS, options[!i]));
		check_err(setsockopt(fd, SOL_RDS, options[i], &value,
				     sizeof(value)), EOPNOTSUPP);
		close(fd);
	}
	tap_context("option 9, 12 bytes");
	fd = rds_socket();
	check_err(setsockopt(fd, SOL_RDS, XRDS_UEK_TRANSPORT, data, 12),
		  EINVAL);
	close(fd);
}

static void permission(void)
{
	int fd = rds_bound(NULL), value = 1;
	pid_t pid = must(fork());

	if (!pid) {
		must(setuid(NOBODY));
		check_err(reset4(fd, "127.0.0.1", "127.0.0.1", 0), EACCES);
		check_err(reset6(fd, "::1", "::", 0), EACCES);
		check_err(setsockopt(fd, SOL_RDS, XRDS_UEK_CONN_RESET6, &value,
				     sizeof(value)), EACCES);
		check_ret(setsockopt(fd, SOL_RDS, XRDS_UEK_INQ, &value,
				     sizeof(value)), 0);
		tap_child_exit();
	}
	tap_child_join(pid);
	close(fd);
}

/* A connection from one address to another that is up */
static void connect_up(const char *src, const char *dst, u8 tos)
{
	int tx = rds_bound_to(src, 0, NULL), rx;
	union addr to;
	char byte = 0;

	rx = rds_bound_to(dst, 0, &to);
	if (tos)
		must(ioctl(tx, SIOCRDSSETTOS, &tos));
	must(rds_send(tx, &byte, 1, 0, &to));
	must(rds_recv_within(rx, &byte, 1, WAIT_MS, NULL));
	must_wait(rds_all_acked, &tx, WAIT_MS);
	close(tx);
	close(rx);
}

static void numbered(int fd, const union addr *to, u32 from)
{
	for (u32 n = from; n < from + BURST; n++)
		must(rds_send(fd, &n, sizeof(n), 0, to));
}

static void order(void)
{
	long long before = counter_now("conn_reset");
	int tx = rds_bound(NULL), rx;
	u32 next = 0, got;
	union addr to;

	rx = rds_bound(&to);
	/* the first reset, at least, is one of a connection that is up */
	must(rds_send(tx, &next, sizeof(next), 0, &to));
	must(rds_recv_within(rx, &got, sizeof(got), WAIT_MS, NULL));
	/* some of them are under way when the connection is lost */
	knob("net/xrds/loop/delay_ms", 2);
	for (int i = 0; i < RESETS; i++) {
		numbered(tx, &to, i * BURST);
		check_ret(reset_self(tx), 0);
	}
	while (next < RESETS * BURST) {
		must(rds_recv_within(rx, &got, sizeof(got), WAIT_MS, NULL));
		if (!check_eq(got, next))
			break;
		next++;
	}
	must_wait(rds_all_acked, &tx, WAIT_MS);
	check_err(rds_recv(rx, &got, sizeof(got), MSG_DONTWAIT, NULL), EAGAIN);
	check(counter_reaches("conn_reset", before + 1, WAIT_MS));
	close(tx);
	close(rx);
}

/* The first messages of a connection are under way when it is lost; numbers of
 * messages go on from those of a connection that was forgotten before.
 */
static void order_first(void)
{
	long long collected = counter_now("conn_collected");
	long long up, reset;
	int tx = rds_bound(NULL), rx;
	u32 got, next = 0;
	union addr to;

	rx = rds_bound(&to);
	connect_up("127.0.0.1", "127.0.0.77", 0);
	up = counter_now("conn_up") + 1;
	knob("net/xrds/idle_ms", 20);
	check(counter_reaches("conn_collected", collected + 1, WAIT_MS));
	knob("net/xrds/idle_ms", HOUR_MS);
	knob("net/xrds/loop/delay_ms", HOUR_MS);
	numbered(tx, &to, 0);
	check(counter_reaches("conn_up", up, WAIT_MS));
	reset = counter_now("conn_reset") + 1;
	check_ret(reset_self(tx), 0);
	check(counter_reaches("conn_reset", reset, WAIT_MS));
	knob("net/xrds/loop/delay_ms", 0);
	for (; next < BURST; next++) {
		must(rds_recv_within(rx, &got, sizeof(got), WAIT_MS, NULL));
		check_eq(got, next);
	}
	close(tx);
	close(rx);
}

static bool resets_are(void *want)
{
	return counter_now("conn_reset") == *(long long *)want;
}

static void check_resets(long long *want, int more)
{
	*want += more;
	if (!tap_wait(resets_are, want, WAIT_MS))
		check_eq(counter_now("conn_reset"), *want);
}

static void selection(void)
{
	int fd = rds_socket();
	long long want = counter_now("conn_reset");

	connect_up("127.0.0.1", "127.0.0.2", 0);
	connect_up("127.0.0.1", "127.0.0.2", TOS);
	connect_up("127.0.0.1", "127.0.0.3", 0);
	connect_up("127.0.0.4", "127.0.0.2", 0);
	connect_up("::1", "::1", 0);

	tap_context("no such connection");
	check_ret(reset4(fd, "127.0.0.1", "127.0.0.9", 0), 0);
	check_ret(reset4(fd, "127.0.0.1", "127.0.0.2", TOS + 1), 0);
	check_ret(reset4(fd, "0.0.0.0", "0.0.0.0", 0), 0);
	check_ret(reset6(fd, "::", "::", 0), 0);
	check_resets(&want, 0);
	tap_context("one of two types of service");
	check_ret(reset4(fd, "127.0.0.1", "127.0.0.2", TOS), 0);
	check_resets(&want, 1);
	connect_up("127.0.0.1", "127.0.0.2", TOS);
	tap_context("IPv4 with the larger structure");
	check_ret(reset6(fd, "::ffff:127.0.0.4", "::ffff:127.0.0.2", 0), 0);
	check_resets(&want, 1);
	connect_up("127.0.0.4", "127.0.0.2", 0);
	tap_context("all of one address");
	check_ret(reset4(fd, "127.0.0.1", "0.0.0.0", 9), 0);
	check_resets(&want, 3);
	tap_context("IPv6");
	check_ret(reset6(fd, "::1", "::", 0), 0);
	check_resets(&want, 1);
	close(fd);
}

/* The connections of this namespace, by a socket of another one */
static void namespaces(void)
{
	long long want = counter_now("conn_reset");
	/* without a socket the namespace would lose its connections */
	int here = rds_socket(), there;
	pid_t pid;

	connect_up("127.0.0.1", "127.0.0.1", 0);
	pid = must(fork());
	if (!pid) {
		tap_new_netns();
		there = rds_socket();
		check_ret(reset4(there, "127.0.0.1", "0.0.0.0", 0), 0);
		tap_child_exit();
	}
	tap_child_join(pid);
	check_resets(&want, 0);
	check_ret(reset4(here, "127.0.0.1", "0.0.0.0", 0), 0);
	check_resets(&want, 1);
	close(here);
}

/* --------------------------------------------------------------- RDS_INQ */

/* Reads a message; the value of RDS_CMSG_INQ, or -1 */
static int recv_inq(int fd, int flags)
{
	char control[CMSG_SPACE(sizeof(int))] __aligned(8);
	char data[OPTION_BYTES];
	struct iovec iov = { data, sizeof(data) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	int inq;

	must(recvmsg(fd, &msg, MSG_DONTWAIT | flags));
	cmsg = CMSG_FIRSTHDR(&msg);
	if (!cmsg)
		return -1;
	check_eq(cmsg->cmsg_level, SOL_RDS);
	check_eq(cmsg->cmsg_type, XRDS_UEK_CMSG_INQ);
	check_eq(cmsg->cmsg_len, CMSG_LEN(sizeof(int)));
	memcpy(&inq, CMSG_DATA(cmsg), sizeof(inq));
	return inq;
}

static bool queued_is_60(void *fd)
{
	int bytes = 0;

	must(ioctl(*(int *)fd, FIONREAD, &bytes));
	return bytes == 60;
}

static void inq(void)
{
	char data[OPTION_BYTES] = "";
	int tx = rds_bound(NULL), rx;
	union addr to;

	rx = rds_bound(&to);
	check_eq(rds_get_int(rx, SOL_RDS, XRDS_UEK_INQ), 0);
	rds_set_int(rx, SOL_RDS, XRDS_UEK_INQ, 7);
	check_eq(rds_get_int(rx, SOL_RDS, XRDS_UEK_INQ), 1);
	for (int len = 10; len <= 30; len += 10)
		must(rds_send(tx, data, len, 0, &to));
	must_wait(queued_is_60, &rx, WAIT_MS);
	check_eq(recv_inq(rx, MSG_PEEK), 60);
	check_eq(recv_inq(rx, 0), 50);
	check_eq(recv_inq(rx, 0), 30);
	rds_set_int(rx, SOL_RDS, XRDS_UEK_INQ, 0);
	check_eq(recv_inq(rx, 0), -1);
	close(tx);
	close(rx);
}

/* --------------------------------------------------------------- notices */

static ssize_t send_asked(int fd, const union addr *to, u64 token, u64 flags)
{
	struct xrds_uek_asend arg = { .user_token = token, .flags = flags };

	return rds_send_cmsg(fd, to, XRDS_UEK_CMSG_ASYNC_SEND, &arg,
			     sizeof(arg));
}

static void check_notice(int fd, u64 token, int status)
{
	struct got got;

	check(poll_one(fd, POLLIN, tap_ms(WAIT_MS)) & POLLIN);
	/* others may be there, and stay */
	check_ret(got_now(fd, &got, CMSG_SPACE(sizeof(got.status[0]))), 0);
	if (!check_eq(got.nr_status, 1))
		return;
	check_eq(got.status[0].user_token, token);
	check_eq(got.status[0].status, status);
}

static void async_send(void)
{
	int tx = rds_bound(NULL), rx;
	union addr to;
	char byte;

	rx = rds_bound(&to);
	must(send_asked(tx, &to, TOKEN, XRDS_UEK_SEND_NOTIFY_ME | 1ull << 40));
	check_notice(tx, TOKEN, RDS_RDMA_SUCCESS);
	/* a success is not told unless that is asked for */
	must(send_asked(tx, &to, TOKEN + 1, 0));
	must_wait(rds_all_acked, &tx, WAIT_MS);
	check_quiet(tx);
	for (int i = 0; i < 2; i++)
		must(rds_recv_within(rx, &byte, 1, WAIT_MS, NULL));
	close(tx);
	close(rx);
}

static void async_cancelled(void)
{
	int tx = rds_bound(NULL), rx;
	union addr to;

	rx = rds_bound(&to);
	stall_loop();
	must(send_asked(tx, &to, TOKEN, 0));
	must(send_asked(tx, &to, TOKEN + 1, XRDS_UEK_SEND_NOTIFY_ME));
	must(setsockopt(tx, SOL_RDS, RDS_CANCEL_SENT_TO, &to, sizeof(to)));
	check_notice(tx, TOKEN, RDS_RDMA_CANCELED);
	check_notice(tx, TOKEN + 1, RDS_RDMA_CANCELED);
	/* unread ones go with their socket */
	must(send_asked(tx, &to, TOKEN, XRDS_UEK_SEND_NOTIFY_ME));
	must(setsockopt(tx, SOL_RDS, RDS_CANCEL_SENT_TO, &to, sizeof(to)));
	close(tx);
	close(rx);
}

static void async_refused(void)
{
	struct xrds_uek_asend arg = { .user_token = TOKEN };
	struct target t;
	struct ctl ctl = { 0 };
	struct op op;
	char data[8] = "";
	int tx = rds_bound(NULL);

	target_open(&t, PAGE_BYTES, RDS_RDMA_READWRITE);
	for (size_t len = 0; len < sizeof(arg); len++) {
		tap_context("%zu bytes", len);
		check_err(rds_send_cmsg(tx, &t.addr, XRDS_UEK_CMSG_ASYNC_SEND,
					&arg, len), EINVAL);
	}
	tap_context("two");
	ctl_add(&ctl, XRDS_UEK_CMSG_ASYNC_SEND, &arg, sizeof(arg));
	ctl_add(&ctl, XRDS_UEK_CMSG_ASYNC_SEND, &arg, sizeof(arg));
	check_err(ctl_send(tx, &t.addr, &ctl, "", 0, 0), EINVAL);
	tap_context("with an op");
	op = op_write(&t, 0, data, sizeof(data));
	op.rdma.local_vec_addr = (uintptr_t)&op.vec;
	op.rdma.nr_local = 1;
	memset(&ctl, 0, sizeof(ctl));
	ctl_add(&ctl, RDS_CMSG_RDMA_ARGS, &op.rdma, sizeof(op.rdma));
	ctl_add(&ctl, XRDS_UEK_CMSG_ASYNC_SEND, &arg, sizeof(arg));
	check_err(ctl_send(tx, &t.addr, &ctl, "", 0, 0), EINVAL);
	close(tx);
	target_close(&t);
}

/* The op is done at once; its message is under way for a while */
static void remote_complete(void)
{
	struct target t;
	struct got got;
	char *mem = pages(PAGE_BYTES), byte;
	int tx = rds_bound(NULL);
	struct op op;

	target_open(&t, PAGE_BYTES, RDS_RDMA_READWRITE);
	stamp(mem, PAGE_BYTES, 1);
	op = op_write(&t, 0, mem, PAGE_BYTES);
	op_set(&op, REMOTE_NOTIFY, TOKEN);
	op.payload = "x";
	op.len = 1;
	must(op_send(tx, &t.addr, &op));
	check_notice(tx, TOKEN, RDS_RDMA_SUCCESS);
	check(stamped(t.mem, PAGE_BYTES, 1));
	/* the message was there before its notice */
	check_ret(rds_recv(t.fd, &byte, 1, MSG_DONTWAIT, NULL), 1);

	tap_context("a wrong key");
	op = op_write(&t, 0, mem, PAGE_BYTES);
	op.rdma.cookie ^= 0x5a5a;
	op_set(&op, REMOTE_NOTIFY, TOKEN + 1);
	must(op_send(tx, &t.addr, &op));
	check_notice(tx, TOKEN + 1, RDS_RDMA_REMOTE_ERROR);
	check(got_now(tx, &got, sizeof(struct ctl)) < 0);
	check_quiet(tx);
	close(tx);
	target_close(&t);
}

/* ------------------------------------------------------------------ rows */

/* The rest of the row of a socket of this address */
static struct xrds_uek_socket_more more_of(int fd, int what, size_t each,
					   const union addr *self)
{
	struct dump d = dump_read(fd, what, each + 8);
	struct xrds_uek_socket_more more = { 0 };
	const struct rds6_info_socket *row6;
	const struct rds_info_socket *row4;
	bool found = false;

	for (size_t i = 0; i < d.nr; i++) {
		row6 = d.rows + i * d.each;
		row4 = (const void *)row6;
		if ((each == sizeof(*row6) ? row6->bound_port :
					     row4->bound_port) != self->in.sin_port)
			continue;
		check(!found);
		found = true;
		memcpy(&more, (const char *)row6 + each, sizeof(more));
	}
	check(found);
	dump_free(&d);
	return more;
}

static void check_more(int fd, const union addr *self, pid_t pid, int congested)
{
	static const struct { int what; size_t each; } dumps[] = {
		{ RDS6_INFO_SOCKETS, 52 }, { RDS_INFO_SOCKETS, 28 },
	};
	struct xrds_uek_socket_more more;

	for (size_t i = 0; i < ARRAY_SIZE(dumps); i++) {
		if (i && self->sa.sa_family == AF_INET6)
			continue;
		more = more_of(fd, dumps[i].what, dumps[i].each, self);
		check_eq(more.pid, pid);
		check_eq(more.congested, congested);
	}
}

static void rows(void)
{
	int tx = rds_bound(NULL), rx;
	struct dump d;
	union addr to;
	pid_t pid;

	rx = small_receiver(&to);
	d = dump_read(rx, RDS_INFO_SOCKETS, sizeof(struct rds_info_socket));
	dump_free(&d);
	knob("net/xrds/uek_rows", 1);
	check_more(rx, &to, getpid(), -1);
	congest(tx, &to);
	check_more(rx, &to, getpid(), 1);
	pid = must(fork());
	if (!pid) {
		must(setuid(NOBODY));
		check_more(rx, &to, 0, 1);
		tap_child_exit();
	}
	tap_child_join(pid);
	close(tx);
	close(rx);
}

/* Its number may be that of another process now. */
static void rows_orphan(void)
{
	struct xrds_uek_socket_more more;
	pid_t pid, parent;
	int to[2], fd;
	union addr a;

	knob("net/xrds/uek_rows", 1);
	must(pipe(to));
	pid = must(fork());
	if (!pid) {
		fd = rds_bound_to("127.0.0.1", 0, &a);
		parent = getpid();
		if (must(fork()))
			_exit(0);
		while (!kill(parent, 0))
			usleep(1000);
		more = more_of(fd, RDS_INFO_SOCKETS,
			       sizeof(struct rds_info_socket), &a);
		must(write(to[1], &more, sizeof(more)));
		_exit(0);
	}
	must(waitpid(pid, NULL, 0));
	close(to[1]);
	check_ret(read(to[0], &more, sizeof(more)), sizeof(more));
	check_eq(more.pid, 0);
	check_eq(more.congested, -1);
	close(to[0]);
}

/* ----------------------------------------------------------------- paths */

static void paths(void)
{
	bool v6 = strchr(tap_host, ':');
	int fd = rds_bound(NULL);
	long long want = counter_now("conn_reset");
	const struct xrds_uek_conn_paths *row;
	struct dump d;

	connect_up(tap_host, tap_host, 0);
	d = dump_read(fd, XRDS_UEK_INFO_CONN_PATHS, 346);
	check_eq(d.nr, !v6);
	dump_free(&d);
	d = dump_read(fd, XRDS_UEK_INFO6_CONN_PATHS, 346);
	if (!check_eq(d.nr, 1))
		return;
	row = d.rows;
	check_eq(row->npaths, 1);
	check_eq(row->tos, 0);
	check(!strcmp((char *)row->transport, "loopback"));
	check(!memcmp(row->local_addr, row->peer_addr, 16));
	check_eq(row->paths[0].flags, RDS_INFO_CONNECTION_FLAG_CONNECTED);
	check_range(row->paths[0].attempt_time, time(NULL) - 60,
		    time(NULL) + 1);
	check_range(row->paths[0].connect_time, time(NULL) - 60,
		    time(NULL) + 1);
	check_eq(row->paths[0].reset_time, 0);
	check_eq(row->paths[0].disconnect_reason, XRDS_UEK_REASON_NONE);
	dump_free(&d);

	check_ret(reset_self(fd), 0);
	check_resets(&want, 1);
	d = dump_read(fd, XRDS_UEK_INFO6_CONN_PATHS, 346);
	row = d.rows;
	check_range(row->paths[0].reset_time, time(NULL) - 60, time(NULL) + 1);
	check_eq(row->paths[0].disconnect_reason, XRDS_UEK_REASON_USER_RESET);
	dump_free(&d);
	close(fd);
}

static const struct tap_case cases[] = {
	{ "lengths", "an option is known by its number and its length",
	  lengths, 0, 0 },
	{ "transport", "8 and 9 with 4 bytes are the transport", transport,
	  0, 0 },
	{ "permission", "a reset needs CAP_NET_ADMIN: EACCES", permission,
	  0, 0 },
	{ "order", "resets lose, double and reorder nothing", order,
	  TAP_EACH_FAMILY, 0 },
	{ "order_first", "nor those that are the first of a connection",
	  order_first, TAP_EACH_FAMILY, 0 },
	{ "selection", "the connections asked for are reset, and no others",
	  selection, 0, 0 },
	{ "namespaces", "a socket resets connections of its namespace only",
	  namespaces, 0, 0 },
	{ "async_send", "a notice when the peer's kernel has a message",
	  async_send, TAP_EACH_FAMILY, 0 },
	{ "async_cancelled", "a notice of each message that is dropped",
	  async_cancelled, 0, 0 },
	{ "async_refused", "bad arguments: EINVAL", async_refused, 0, 0 },
	{ "remote_complete", "a notice when the peer's kernel has the message",
	  remote_complete, TAP_EACH_FAMILY, 0 },
	{ "rows", "net.xrds.uek_rows: process and congestion of a socket", rows,
	  TAP_EACH_FAMILY, 0 },
	{ "rows_orphan", "the process that made a socket has ended", rows_orphan,
	  0, 0 },
	{ "paths", "RDS_INFO_CONN_PATHS", paths, TAP_EACH_FAMILY, 0 },
	{ "inq", "RDS_CMSG_INQ: the bytes that are still queued", inq,
	  TAP_EACH_FAMILY, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
