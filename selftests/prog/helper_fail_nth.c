// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every system call with its first, second, third, ... allocation or copy
 * failing, until a run has nothing left to fail: an error that a program can
 * understand, and the same call works afterwards. The debug kernel's
 * /proc/self/fail-nth does it, for this task alone; loop/faultinject and
 * rxe/inject do it to the workers that act for a call.
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
#include "pattern.h"
#include "rdma.h"
#include "tap.h"

enum {
	MAX_NTH		= 4000,	/* far more than any call needs */
	DENSE		= 48,	/* every failure up to here, then some */
	STRIDE		= 13,
	SETTLE_MS	= 10000,
	CASE_S		= 300,
	PUMPS		= 2,
	NOBODY_PORT	= 3999,
	DELAYED_RUNS	= 32,
};

static const int sizes[] = { 0, 1, 4096, 16385, 65536, MSG_MAX_BYTES };

static char out[MSG_MAX_BYTES], in[MSG_MAX_BYTES];

/* Sockets and memory that a call works on; made anew for each run */
static struct {
	int fd, peer;
	size_t len;		/* of a message */
	int option, optlen;
	union addr to;
	char optval[65536];
} on;

/* ----------------------------------------------------------- fail-nth */

static int nth_fd = -1;

static void nth_open(void)
{
	nth_fd = must(open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC));
	/* a page fault must not fail in its place */
	must(mlockall(MCL_CURRENT | MCL_FUTURE));
}

static void nth_set(int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", nth);

	must(pwrite(nth_fd, text, len, 0));
}

/* Whether it struck since nth_set(); it will not any more. */
static bool nth_end(void)
{
	char text[16] = "";
	bool struck;

	/* this copy may be the one that fails: then nothing did before */
	struck = pread(nth_fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
	while (pwrite(nth_fd, "0", 1, 0) < 0)
		;
	return struck;
}

/* --------------------------------------------------------------- a call */

struct call {
	void (*prepare)(void);
	int (*call)(void);	/* -1 and errno */
	void (*proof)(void);	/* it has worked; NULL: nothing to see */
	void (*finish)(void);
	int also;		/* an errno beyond those of check_errno() */
};

static void check_errno(int error, int also)
{
	check(error == ENOMEM || error == ENOBUFS || error == EAGAIN ||
	      error == EFAULT || (also && error == also));
}

static bool run_once(const struct call *c, int nth)
{
	int ret, error;
	bool struck;

	c->prepare();
	nth_set(nth);
	ret = c->call();
	error = errno;
	struck = nth_end();
	if (ret < 0) {
		tap_context("failure %d: %s", nth, tap_errno_name(error));
		check(struck);
		check_errno(error, c->also);
		check(c->call() >= 0);
	}
	if (c->proof)
		c->proof();
	c->finish();
	return struck;
}

/* How often it has struck. */
static int run(const struct call *c)
{
	int nth, runs = 0;

	for (nth = 1; nth < MAX_NTH; nth += nth < DENSE ? 1 : STRIDE) {
		runs++;
		tap_context("failure %d", nth);
		if (!run_once(c, nth))
			break;
	}
	tap_context("%s", "");
	tap_note("%d runs, none left to fail from %d on", runs, nth);
	check(nth < MAX_NTH);
	return runs - 1;
}

static bool settled(void *arg)
{
	struct counters c = counters_read();
	/* one is enough */
	bool ok = counters_get(&c, "obj_socks") == 1 &&
		!counters_get(&c, "obj_dests") &&
		!counters_get(&c, "obj_msgs");

	if (!ok && arg)
		counters_print(&c);
	counters_free(&c);
	return ok;
}

static void check_settled(void)
{
	if (!check(tap_wait(settled, NULL, SETTLE_MS)))
		settled((void *)1);
}

static void close_all(void)
{
	if (on.fd >= 0)
		close(on.fd);
	if (on.peer >= 0)
		close(on.peer);
	on.fd = -1;
	on.peer = -1;
}

/* ---------------------------------------------- socket, bind, connect, close */

static void none(void)
{
	on.fd = -1;
	on.peer = -1;
}

static void unbound(void)
{
	none();
	on.fd = rds_socket();
}

static void bound(void)
{
	none();
	on.fd = rds_bound(NULL);
}

static void pair(void)
{
	on.fd = rds_bound(NULL);
	on.peer = rds_bound(&on.to);
}

static int do_socket(void)
{
	on.fd = socket(AF_RDS, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	return on.fd;
}

static int do_bind(void)
{
	union addr a = addr_of(tap_host, 0);

	return bind(on.fd, &a.sa, addr_len(&a));
}

static int do_connect(void)
{
	return connect(on.fd, &on.to.sa, addr_len(&on.to));
}

static int do_getname(void)
{
	union addr a;
	socklen_t len = sizeof(a);

	return getsockname(on.fd, &a.sa, &len);
}

static int do_close(void)
{
	close(on.fd);
	on.fd = -1;
	return 0;
}

static void test_socket(void)
{
	struct call c = { none, do_socket, NULL, close_all, 0 };

	nth_open();
	/* the socket layer's word for no memory */
	c.also = ENFILE;
	check(run(&c) > 0);
	check_settled();
}

static void test_bind(void)
{
	nth_open();
	run(&(struct call){ unbound, do_bind, NULL, close_all, 0 });
	check_settled();
}

static void test_connect(void)
{
	nth_open();
	run(&(struct call){ pair, do_connect, NULL, close_all, 0 });
	run(&(struct call){ bound, do_getname, NULL, close_all, 0 });
	check_settled();
}

/* ------------------------------------------------------- send and receive */

static int do_send(void)
{
	int ret = rds_send(on.fd, out, on.len, 0, &on.to);

	if (ret >= 0)
		check_eq(ret, on.len);
	return ret;
}

static int do_recv(void)
{
	int ret = rds_recv(on.peer, in, sizeof(in), 0, NULL);

	if (ret >= 0)
		check(ret == (int)on.len && !memcmp(in, out, on.len));
	return ret;
}

/* It has arrived, and once only: a mark sent after it is the next. */
static void arrived(void)
{
	char mark[2];

	rds_timeout(on.peer, SO_RCVTIMEO, WAIT_MS);
	check(do_recv() >= 0);
	check_ret(rds_send(on.fd, "m", 1, 0, &on.to), 1);
	check_ret(rds_recv_within(on.peer, mark, sizeof(mark), WAIT_MS, NULL),
		  1);
}

/* Each run has an address of its own, so no connection yet. */
static void cold_pair(void)
{
	static int last;
	char host[32];

	last = last % 250 + 1;
	snprintf(host, sizeof(host), "127.0.1.%d", last);
	on.fd = rds_bound_to(host, 0, NULL);
	on.peer = rds_bound_to(host, 0, &on.to);
}

/* The connection is there, and a destination, and memory for neither. */
static void warm_pair(void)
{
	pair();
	must(rds_send(on.fd, "w", 1, 0, &on.to));
	must(rds_recv_within(on.peer, in, sizeof(in), WAIT_MS, NULL));
}

static void waiting_pair(void)
{
	pair();
	must(rds_send(on.fd, out, on.len, 0, &on.to));
	must(poll_one(on.peer, POLLIN, WAIT_MS));
}

static void each_size(const struct call *c)
{
	nth_open();
	pattern_init(1);
	pattern_fill(out, sizeof(out), &(struct pattern_key){ 1, 2, 3 });
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		on.len = sizes[i];
		tap_note("%d bytes", sizes[i]);
		/* an empty message may need nothing */
		check(run(c) > 0 || !on.len);
	}
	check_settled();
}

static void test_send_first(void)
{
	each_size(&(struct call){ cold_pair, do_send, arrived, close_all, 0 });
}

static void test_send(void)
{
	each_size(&(struct call){ warm_pair, do_send, arrived, close_all, 0 });
}

/* An error takes no message away: the next call has it. */
static void test_recv(void)
{
	each_size(&(struct call){ waiting_pair, do_recv, NULL, close_all, 0 });
}

/* The socket knows that all streams have ended, whatever it could not note. */
static void stream_ends(void)
{
	check_ret(rds_recv_within(on.peer, in, sizeof(in), WAIT_MS, NULL),
		  on.len);
	must(shutdown(on.fd, SHUT_WR));
	check_eq(poll_one(on.peer, POLLRDHUP, WAIT_MS), POLLRDHUP);
}

static void reserving_pair(void)
{
	pair();
	rds_set_int(on.peer, SOL_RDS, XRDS_REPLY_RESERVE, 1);
}

static void test_streams(void)
{
	const struct call reserving = {
		reserving_pair, do_send, stream_ends, close_all, 0
	};
	union addr to;
	int tx = rds_bound(NULL), rx = rds_bound(&to);

	/* their connection is there: it delivers within the call */
	must(rds_send(tx, "w", 1, 0, &to));
	must(rds_recv_within(rx, in, sizeof(in), WAIT_MS, NULL));
	nth_open();
	on.len = 1;
	run(&(struct call){ pair, do_send, stream_ends, close_all, 0 });
	run(&reserving);
	close(tx);
	close(rx);
	check_settled();
}

/* ------------------------------------- several at a time, ends of streams */

enum { BATCH = 8 };

static int sent;		/* of a batch */

static void batch_prepare(void)
{
	warm_pair();
	sent = 0;
}

/* The rest of the batch, as a program would go on after an error */
static int do_sendmmsg(void)
{
	struct mmsghdr m[BATCH] = { 0 };
	struct iovec iov = { out, on.len };
	int ret;

	for (int i = 0; i < BATCH; i++)
		m[i].msg_hdr = (struct msghdr){
			.msg_name = &on.to, .msg_namelen = addr_len(&on.to),
			.msg_iov = &iov, .msg_iovlen = 1,
		};
	while (sent < BATCH) {
		ret = sendmmsg(on.fd, m, BATCH - sent, 0);
		if (ret < 0)
			return ret;
		sent += ret;
	}
	return 0;
}

static void batch_arrived(void)
{
	rds_timeout(on.peer, SO_RCVTIMEO, WAIT_MS);
	for (int i = 0; i < BATCH; i++)
		check(do_recv() >= 0);
	check_err(rds_recv(on.peer, in, 1, MSG_DONTWAIT, NULL), EAGAIN);
}

static void test_sendmmsg(void)
{
	nth_open();
	on.len = 100;
	run(&(struct call){
		batch_prepare, do_sendmmsg, batch_arrived, close_all, 0
	});
	on.len = 0;
	check_settled();
}

static int do_shutdown(void)
{
	return shutdown(on.fd, SHUT_WR);
}

/* Without the name, which the core copies when the mark is gone */
static int do_recv_end(void)
{
	char control[CMSG_SPACE(sizeof(u32))] __aligned(8);
	struct msghdr msg = { .msg_control = control,
			      .msg_controllen = sizeof(control) };
	int ret = recvmsg(on.peer, &msg, MSG_DONTWAIT);
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	check(ret < 0 || (cmsg && cmsg->cmsg_type == XRDS_CMSG_EOS));
	return ret;
}

/* The end of the stream has come, and once only */
static void ended(void)
{
	check(poll_one(on.peer, POLLIN, tap_ms(WAIT_MS)));
	check_ret(do_recv_end(), 0);
	check_err(rds_recv(on.peer, in, 1, MSG_DONTWAIT, NULL), EAGAIN);
}

static void ended_pair(void)
{
	warm_pair();
	must(shutdown(on.fd, SHUT_WR));
	check(poll_one(on.peer, POLLIN, tap_ms(WAIT_MS)));
}

static void test_ends(void)
{
	nth_open();
	run(&(struct call){ warm_pair, do_shutdown, ended, close_all, 0 });
	run(&(struct call){ ended_pair, do_recv_end, NULL, close_all, 0 });
	check_settled();
}

/* ------------------------------------------------------- regions and ops */

/* Memory of either side, for ops that go with a message */
static struct {
	char *mem;
	u64 old, id;
	struct target target;
	struct op op;
} rdma;

static void bare_pair(void)
{
	warm_pair();
	rdma.mem = pages(PAGE_BYTES);
}

static void bare_finish(void)
{
	close_all();
	munmap(rdma.mem, PAGE_BYTES);
	check_pinned_falls(0);
}

static int do_get_mr(void)
{
	return mr_get(on.fd, rdma.mem, 100, RDS_RDMA_READWRITE, &rdma.old);
}

static int do_get_mr_for(void)
{
	return mr_get_for(on.fd, &on.to, rdma.mem, 100, 0, &rdma.old);
}

/* The key is good for one end, and there is no other region. */
static void registered(void)
{
	check_ret(mr_free(on.fd, rdma.old), 0);
	check_eq(counter_now("obj_mrs"), 0);
}

static void with_region(void)
{
	bare_pair();
	must(do_get_mr());
}

static int do_free_mr(void)
{
	return mr_free(on.fd, rdma.old);
}

static int do_map(void)
{
	struct rds_get_mr_args args = {
		.vec = { (uintptr_t)rdma.mem, 100 },
		.cookie_addr = (uintptr_t)&rdma.old,
		.flags = RDS_RDMA_READWRITE,
	};

	return rds_send_cmsg(on.fd, &on.to, RDS_CMSG_RDMA_MAP, &args,
			     sizeof(args));
}

static void test_regions(void)
{
	nth_open();
	run(&(struct call){ bare_pair, do_get_mr, registered, bare_finish, 0 });
	run(&(struct call){ bare_pair, do_get_mr_for, registered, bare_finish, 0
	    });
	run(&(struct call){ with_region, do_free_mr, NULL, bare_finish, 0 });
	run(&(struct call){ bare_pair, do_map, registered, bare_finish, 0 });
	check_settled();
}

static void op_prepare(void)
{
	target_open(&rdma.target, PAGE_BYTES, RDS_RDMA_READWRITE);
	on.to = rdma.target.addr;
	on.peer = -1;
	on.fd = rds_bound(NULL);
	must(rds_send(on.fd, "w", 1, 0, &on.to));
	must(poll_one(rdma.target.fd, POLLIN, WAIT_MS));
	rdma.old = 0;
	rdma.id = 0;
}

static void write_prepare(void)
{
	op_prepare();
	rdma.op = op_write(&rdma.target, 0, &rdma.old, sizeof(rdma.old));
}

static void read_prepare(void)
{
	op_prepare();
	rdma.op = op_read(&rdma.target, 0, &rdma.old, sizeof(rdma.old));
}

static void atomic_prepare(void)
{
	op_prepare();
	rdma.op = op_fadd(&rdma.target, 0, 1, &rdma.old);
}

static int do_op(void)
{
	op_set(&rdma.op, RDS_RDMA_NOTIFY_ME, 7);
	rdma.op.id = &rdma.id;
	return op_send(on.fd, &on.to, &rdma.op);
}

/* The first identifier, one outcome, and an atomic at most once */
static void op_proof(void)
{
	struct got got = { 0 };
	int nr = 0;

	check_eq(rdma.id, 1);
	/* the end of an op that was asked about is an event of its own */
	while (!nr && got_within(on.fd, &got, WAIT_MS) >= 0)
		nr += got.nr_status;
	check_eq(nr, 1);
	check_eq(mark(on.fd, &on.to), 1);
	check(got_now(on.fd, &got, 1024) < 0);
	if (rdma.op.type == RDS_CMSG_ATOMIC_FADD)
		check(*(u64 *)rdma.target.mem <= 1);
}

static void op_finish(void)
{
	close_all();
	target_close(&rdma.target);
	check_pinned_falls(0);
}

/* An op that is over, and its notice and event not read */
static void done_prepare(void)
{
	write_prepare();
	must(do_op());
	check(poll_one(on.fd, POLLIN, tap_ms(WAIT_MS)));
}

static int do_recv_notice(void)
{
	struct got got;
	int ret = got_now(on.fd, &got, 1024);

	check(ret < 0 || got.nr_status == 1);
	return ret;
}

static int do_barrier(void)
{
	struct xrds_barrier b;

	return barrier(on.fd, &on.to, rdma.id, 0, tap_ms(WAIT_MS), &b);
}

static void issued_prepare(void)
{
	write_prepare();
	must(do_op());
}

static void test_outcomes(void)
{
	nth_open();
	run(&(struct call){ done_prepare, do_recv_notice, NULL, op_finish, 0 });
	run(&(struct call){ issued_prepare, do_barrier, op_proof, op_finish, 0
	    });
	check_settled();
	check_eq(counter_now("obj_rops"), 0);
}

static void test_ops(void)
{
	nth_open();
	run(&(struct call){ write_prepare, do_op, op_proof, op_finish, 0 });
	run(&(struct call){ read_prepare, do_op, op_proof, op_finish, 0 });
	run(&(struct call){ atomic_prepare, do_op, op_proof, op_finish, 0 });
	check_settled();
	check_eq(counter_now("obj_rops"), 0);
}

static void *pump_thread(void *arg)
{
	union addr to = addr_of(tap_host, NOBODY_PORT);
	int fd = rds_bound(NULL);

	while (!READ_ONCE(*(bool *)arg))
		rds_send(fd, "x", 1, MSG_DONTWAIT, &to);
	close(fd);
	return NULL;
}

/* An op that the transport could not take has one outcome, although others pump
 * its connection before that is reset.
 */
static void test_ops_delayed(void)
{
	const struct call c = { write_prepare, do_op, op_proof, op_finish, 0 };
	pthread_t threads[PUMPS];
	bool stop = false;

	nth_open();
	/* then it needs memory to queue what it is given */
	knob("net/xrds/loop/delay_ms", 1);
	knob("net/rds/reconnect_max_delay_ms", 5);
	for (int i = 0; i < PUMPS; i++)
		must(-pthread_create(&threads[i], NULL, pump_thread, &stop));
	for (int i = 0; i < tap_count(DELAYED_RUNS); i++)
		run(&c);
	WRITE_ONCE(stop, true);
	for (int i = 0; i < PUMPS; i++)
		pthread_join(threads[i], NULL);
	check_settled();
	check_eq(counter_now("obj_rops"), 0);
}

/* ------------------------------------------------------------------ close */

static void test_close(void)
{
	on.len = 1;
	nth_open();
	run(&(struct call){ bound, do_close, NULL, close_all, 0 });
	run(&(struct call){ warm_pair, do_close, NULL, close_all, 0 });
	run(&(struct call){ waiting_pair, do_close, NULL, close_all, 0 });
	check_settled();
}

/* ------------------------------------------------------------------ options */

static int do_set(void)
{
	return setsockopt(on.fd, SOL_RDS, on.option, on.optval, on.optlen);
}

static int do_get(void)
{
	socklen_t len = on.optlen;

	return getsockopt(on.fd, SOL_RDS, on.option, on.optval, &len);
}

static void set_option(int option, const void *value, size_t len)
{
	on.option = option;
	on.optlen = len;
	memcpy(on.optval, value, len);
	tap_note("set %d", option);
	run(&(struct call){ warm_pair, do_set, NULL, close_all, 0 });
}

static void test_setsockopt(void)
{
	struct xrds_dest_sndbuf sndbuf = { .bytes = 65536 };
	union addr to = addr_of(tap_host, 4000);
	int one = 1;

	nth_open();
	memcpy(&sndbuf.dest, &to, sizeof(to));
	set_option(RDS_RECVERR, &one, sizeof(one));
	set_option(RDS_CONG_MONITOR, &one, sizeof(one));
	set_option(XRDS_CONG_EAGAIN, &one, sizeof(one));
	set_option(XRDS_DELIVERED_EVENT, &one, sizeof(one));
	set_option(XRDS_DEST_SNDBUF, &sndbuf, sizeof(sndbuf));
	set_option(XRDS_REPLY_RESERVE, &one, sizeof(one));
	set_option(SO_TIMESTAMP, &one, sizeof(one));
	set_option(RDS_CANCEL_SENT_TO, &to, sizeof(to.in));
	check_settled();
}

static void get_option(int option, const union addr *to, size_t len)
{
	on.option = option;
	on.optlen = len;
	if (to)
		memcpy(on.optval, to, sizeof(*to));
	tap_note("get %d", option);
	run(&(struct call){ warm_pair, do_get, NULL, close_all, 0 });
}

static void test_getsockopt(void)
{
	union addr to = addr_of(tap_host, 4000);

	nth_open();
	get_option(RDS_RECVERR, NULL, sizeof(int));
	get_option(RDS_CONG_MONITOR, NULL, sizeof(int));
	get_option(XRDS_CONG_EAGAIN, NULL, sizeof(int));
	get_option(XRDS_DELIVERED_EVENT, NULL, sizeof(int));
	get_option(XRDS_REPLY_RESERVE, NULL, sizeof(int));
	get_option(SO_RDS_TRANSPORT, NULL, sizeof(int));
	get_option(XRDS_DEST_SNDBUF, &to, sizeof(struct xrds_dest_sndbuf));
	get_option(XRDS_DEST_STATUS, &to, sizeof(struct xrds_dest_status));
	get_option(RDS_INFO_COUNTERS, NULL, sizeof(on.optval));
	get_option(RDS_INFO_SOCKETS, NULL, sizeof(on.optval));
	get_option(RDS_INFO_CONNECTIONS, NULL, sizeof(on.optval));
	check_settled();
}

static const struct tap_case cases[] = {
	{ "socket", "socket()", test_socket, 0, CASE_S },
	{ "bind", "bind()", test_bind, 0, CASE_S },
	{ "connect", "connect() and getsockname()", test_connect, 0, CASE_S },
	{ "send_first", "sendmsg() that starts a connection", test_send_first,
	  0, CASE_S },
	{ "send", "sendmsg() on a connection", test_send, 0, CASE_S },
	{ "recv", "recvmsg(): an error takes no message away", test_recv, 0,
	  CASE_S },
	{ "streams", "sendmsg() that begins a stream: its end is reported",
	  test_streams, 0, CASE_S },
	{ "sendmmsg", "sendmmsg(), which may have sent some", test_sendmmsg, 0,
	  CASE_S },
	{ "ends", "shutdown() and the end of a stream", test_ends, 0, CASE_S },
	{ "regions", "memory regions, by option and by message", test_regions,
	  0, CASE_S },
	{ "ops", "sendmsg() with an RDMA op or an atomic", test_ops, 0,
	  CASE_S },
	{ "ops_delayed", "the same where it is queued on the way",
	  test_ops_delayed, 0, CASE_S },
	{ "outcomes", "notices and the barrier", test_outcomes, 0, CASE_S },
	{ "setsockopt", "each option", test_setsockopt, 0, CASE_S },
	{ "getsockopt", "each option, and the counters", test_getsockopt, 0,
	  CASE_S },
	{ "close", "close(), with and without traffic", test_close, 0, CASE_S },
};

int main(int argc, char **argv)
{
	if (access("/proc/thread-self/fail-nth", W_OK)) {
		puts("1..0 # SKIP this kernel injects no faults");
		return 0;
	}
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
