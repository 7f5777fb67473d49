// SPDX-License-Identifier: GPL-2.0-only
/*
 * Identifiers of RDMA ops, and the barrier: by ioctl, blocking and not, by a
 * control message of sendmsg(), with poll() and recvmsg().
 *
 * The loopback holds ops that must be under way while something is looked at,
 * and delays those whose time counts.
 *
 * timeout: 180
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "counters.h"
#include "dump.h"
#include "rdma.h"
#include "tap.h"
#include "turns.h"
#include "waker.h"

enum {
	SMALL		= 64,
	DELAY_MS	= 300,
	SHORT_MS	= 100,		/* shorter than the delay */
	EARLY_MS	= 10,		/* a tick of the slowest kernel */
	LATE_MS		= 3000,		/* of a loaded machine */
	NODES		= 3,
	PAST_NODES	= 12,
	MOST_NODES	= 1024,		/* known, with one destination */
	NODE_COST	= 256,
	COST		= 1024,		/* of a destination */
	UNDER_WAY	= 256,		/* ops of one socket, at most */
};

#define WRITABLE RDS_RDMA_READWRITE
#define EVENT (POLLIN | POLLRDBAND)

static char small[SMALL];

/* Of all cases: a socket, memory that it sends ops to, the answer of a call */
static int fd;
static struct target t;
static struct xrds_barrier b;

static void begin(void)
{
	fd = rds_bound(NULL);
	target_open(&t, PAGE_BYTES, WRITABLE);
}

static void end(void)
{
	target_close(&t);
	close(fd);
}

/* For the op of this identifier, which is under way */
static void arm(u64 id)
{
	check_err(barrier(fd, &t.addr, id, XRDS_BARRIER_NONBLOCK, 0, &b),
		  EAGAIN);
}

/* Sends an op that asks for its identifier, and returns that */
static u64 issue(int from, const struct target *to)
{
	struct op op = op_write(to, 0, small, sizeof(small));
	u64 id = 0;

	op.id = &id;
	must(op_send(from, &to->addr, &op));
	return id;
}

/* A target at another address of this node */
static void target_at(struct target *other, const char *host)
{
	const char *home = tap_host;

	tap_host = host;
	target_open(other, PAGE_BYTES, WRITABLE);
	tap_host = home;
}

/* ------------------------------------------------------------- identifiers */

static void ids(void)
{
	int other = rds_bound(NULL);

	begin();
	check_eq(issued(fd, &t.addr), 0);
	for (u64 i = 1; i <= 20; i++)
		check_eq(issue(fd, &t), i);
	/* another socket counts for itself */
	check_eq(issue(other, &t), 1);
	check_eq(issue(fd, &t), 21);
	check_eq(issued(fd, &t.addr), 21);
	check_eq(issued(other, &t.addr), 1);
	close(other);
	end();
}

/* Toward each node on its own; the port is of no meaning */
static void ids_nodes(void)
{
	struct target far;
	union addr port;
	int other;

	loop_only();
	begin();
	target_at(&far, "127.0.0.2");
	for (u64 i = 1; i <= 5; i++) {
		check_eq(issue(fd, &t), 2 * i - 1);
		check_eq(issue(fd, &far), i);
		port = t.addr;
		other = rds_bound(&t.addr);
		check_eq(issue(fd, &t), 2 * i);
		close(other);
		t.addr = port;
	}
	check_eq(issued(fd, &t.addr), 10);
	check_eq(issued(fd, &far.addr), 5);
	addr_set_port(&port, 1);
	check_eq(issued(fd, &port), 10);
	target_close(&far);
	end();
}

/* Ops that nobody asked an identifier of, and messages without op */
static void ids_mixed(void)
{
	struct op op;

	begin();
	check_eq(issue(fd, &t), 1);
	must(rds_send(fd, "x", 1, 0, &t.addr));
	op = op_write(&t, 0, small, sizeof(small));
	must(op_send(fd, &t.addr, &op));
	check_eq(issue(fd, &t), 3);
	/* one that fails is one, too */
	op = op_write(&t, PAGE_BYTES, small, 1);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_REMOTE_ERROR);
	check_eq(issue(fd, &t), 5);
	end();
}

/* An op whose identifier cannot be stored gets none; the next op has it */
static void id_pointer(void)
{
	char *wall = before_wall(PROT_READ | PROT_WRITE);
	void *bad[] = { (char *)8, wall, wall - 4,
			before_wall(PROT_READ) - PAGE_BYTES,
			(char *)0xffffffff81000000ul, (char *)(1ul << 63) };
	struct op op;
	long pinned;

	begin();
	check_eq(issue(fd, &t), 1);
	pinned = pinned_kb();
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		tap_context("pointer %p", bad[i]);
		op = op_write(&t, 0, "w", 1);
		op.id = (u64 *)bad[i];
		check_err(op_send(fd, &t.addr, &op), EFAULT);
		check_eq(issued(fd, &t.addr), 1);
	}
	tap_context("afterwards");
	check_eq(issue(fd, &t), 2);
	check_pinned_falls(pinned);
	check(t.mem[0] != 'w');
	end();
}

static void in_status(void)
{
	struct xrds_dest_status st;

	begin();
	hold_ops();
	for (u64 i = 1; i <= 3; i++)
		check_eq(issue(fd, &t), i);
	must(dest_status(fd, &t.addr, &st));
	check_eq(st.rdma_issued, 3);
	check_eq(st.rdma_completed, 0);
	release_ops();
	must(barrier(fd, &t.addr, 3, 0, 0, &b));
	must(dest_status(fd, &t.addr, &st));
	check_eq(st.rdma_issued, 3);
	check_eq(st.rdma_completed, 3);
	end();
}

/* ---------------------------------------------------------------- the call */

static void query(void)
{
	union addr nowhere = addr_of(tap_host, 4000);

	begin();
	tap_context("nothing was ever sent");
	check_ret(barrier(fd, &nowhere, 0, 0, 0, &b), 0);
	check_eq(b.issued, 0);
	check_eq(b.completed, 0);
	check_err(barrier(fd, &nowhere, 1, 0, 0, &b), EINVAL);

	tap_context("under way");
	hold_ops();
	issue(fd, &t);
	issue(fd, &t);
	check_ret(barrier(fd, &t.addr, 0, 0, 0, &b), 0);
	check_eq(b.issued, 2);
	check_eq(b.completed, 0);
	check_ret(barrier(fd, &t.addr, 0, XRDS_BARRIER_NONBLOCK, 0, &b), 0);

	tap_context("done");
	release_ops();
	check_ret(barrier(fd, &t.addr, 2, 0, 0, &b), 0);
	check_eq(b.issued, 2);
	check_eq(b.completed, 2);
	check_ret(barrier(fd, &t.addr, 1, 0, 0, &b), 0);
	check_eq(b.completed, 2);
	check_ret(barrier(fd, &t.addr, 2, XRDS_BARRIER_NONBLOCK, 0, &b), 0);
	/* a query has armed nothing, and its answer is no event */
	check_quiet(fd);
	end();
}

static void bad_calls(void)
{
	static const char * const no_dests[] = {
		"0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1",
		"fe80::1",
	};
	int unbound = rds_socket();
	union addr none = { 0 };
	char *wall;

	begin();
	issue(fd, &t);
	check_err(barrier(fd, &t.addr, 2, 0, 0, &b), EINVAL);
	check_err(barrier(fd, &t.addr, ~0ull, 0, 0, &b), EINVAL);
	/* filled in by 0, EAGAIN and ETIMEDOUT only */
	check_eq(b.issued, ~0ull);
	for (int bit = 1; bit < 32; bit++) {
		tap_context("flag %d", bit);
		check_err(barrier(fd, &t.addr, 1, 1u << bit, 0, &b), EINVAL);
		check_err(barrier(fd, &t.addr, 0, 1u << bit | 1, 0, &b),
			  EINVAL);
	}
	tap_context("no node");
	check_err(barrier(fd, &none, 0, 0, 0, &b), EINVAL);
	none.sa.sa_family = AF_UNIX;
	check_err(barrier(fd, &none, 1, 0, 0, &b), EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(no_dests); i++) {
		tap_context("%s", no_dests[i]);
		none = addr_of(no_dests[i], 4000);
		check_err(barrier(fd, &none, 0, 0, 0, &b), EINVAL);
		check_err(barrier(fd, &none, 1, 0, 0, &b), EINVAL);
	}
	tap_context("unbound");
	check_err(barrier(unbound, &t.addr, 0, 0, 0, &b), ENOTCONN);
	check_err(barrier(unbound, &t.addr, 1, 0, 0, &b), ENOTCONN);

	tap_context("pointer");
	wall = before_wall(PROT_READ | PROT_WRITE);
	check_err(ioctl(fd, SIOCXRDSBARRIER, 8), EFAULT);
	check_err(ioctl(fd, SIOCXRDSBARRIER, wall), EFAULT);
	check_err(ioctl(fd, SIOCXRDSBARRIER, wall - sizeof(b) + 1), EFAULT);
	memset(&b, 0, sizeof(b));
	memcpy(&b.dest, &t.addr, sizeof(t.addr));
	memcpy(wall - sizeof(b), &b, sizeof(b));
	check_ret(ioctl(fd, SIOCXRDSBARRIER, wall - sizeof(b)), 0);
	must(mprotect(wall - PAGE_BYTES, PAGE_BYTES, PROT_READ));
	check_err(ioctl(fd, SIOCXRDSBARRIER, wall - sizeof(b)), EFAULT);
	close(unbound);
	end();
}

static void blocking(void)
{
	long long start;

	begin();
	slow_ops(DELAY_MS);
	turns_begin();
	start = tap_tick_ms();
	for (int i = 0; i < 3; i++)
		issue(fd, &t);
	check_ret(barrier(fd, &t.addr, 2, 0, 0, &b), 0);
	check_took(start, tap_ms(DELAY_MS) - EARLY_MS,
		   tap_ms(DELAY_MS + LATE_MS));
	check_range(b.completed, 2, 3);
	check_eq(b.issued, 3);
	check(filled(t.mem, sizeof(small), 0));
	check_ret(barrier(fd, &t.addr, 3, 0, 0, &b), 0);
	end();
}

/* A barrier covers all earlier ops, those that fail among them */
static void covers_failed(void)
{
	struct op op;

	begin();
	for (int i = 0; i < 10; i++) {
		op = op_write(&t, i % 2 * PAGE_BYTES, small, 1);
		op_set(&op, RDS_RDMA_SILENT, 0);
		must(op_send(fd, &t.addr, &op));
	}
	check_ret(barrier(fd, &t.addr, 10, 0, tap_ms(WAIT_MS), &b), 0);
	check_eq(b.completed, 10);
	end();
}

static bool all_under_way(void *arg)
{
	return dump_rows(*(int *)arg, RDS6_INFO_RETRANS_MESSAGES) == UNDER_WAY;
}

/* Ops that are cancelled in the queue end before those under way, and do not move
 * the mark.
 */
static void waits_for_earlier(void)
{
	long long failed = counter_now("rdma_failed");

	begin();
	hold_ops();
	for (u64 i = 1; i <= UNDER_WAY + 1; i++)
		check_eq(issue(fd, &t), i);
	must_wait(all_under_way, &fd, WAIT_MS);
	must(setsockopt(fd, SOL_RDS, RDS_CANCEL_SENT_TO, &t.addr,
			sizeof(t.addr)));
	check_eq(counter_now("rdma_failed") - failed, 1);
	check_ret(barrier(fd, &t.addr, 0, 0, 0, &b), 0);
	check_eq(b.completed, 0);
	check_eq(b.issued, UNDER_WAY + 1);
	release_ops();
	check_ret(barrier(fd, &t.addr, UNDER_WAY + 1, 0, tap_ms(WAIT_MS), &b),
		  0);
	end();
}

/* After SHORT_MS, which this or SO_RCVTIMEO says */
static void check_times_out(int timeout_ms)
{
	long long start;

	turns_begin();
	start = tap_tick_ms();
	check_err(barrier(fd, &t.addr, 1, 0, timeout_ms, &b), ETIMEDOUT);
	check_took(start, SHORT_MS - EARLY_MS, SHORT_MS + LATE_MS);
	check_eq(b.completed, 0);
	check_eq(b.issued, 1);
}

static void timeouts(void)
{
	begin();
	hold_ops();
	issue(fd, &t);
	check_times_out(SHORT_MS);
	tap_context("SO_RCVTIMEO");
	rds_timeout(fd, SO_RCVTIMEO, SHORT_MS);
	check_times_out(0);
	tap_context("timeout_ms has precedence");
	release_ops();
	check_ret(barrier(fd, &t.addr, 1, 0, tap_ms(WAIT_MS), &b), 0);
	check_eq(b.completed, 1);
	end();
}

static void interrupted(void)
{
	begin();
	hold_ops();
	issue(fd, &t);
	for (int restart = 0; restart < 2; restart++) {
		tap_context("%s SA_RESTART", restart ? "with" : "without");
		tap_interrupt(SHORT_MS, restart ? SA_RESTART : 0);
		check_err(barrier(fd, &t.addr, 1, 0, 0, &b), EINTR);
	}
	tap_interrupt(0, 0);
	tap_context("afterwards");
	check_eq(mark(fd, &t.addr), 0);
	release_ops();
	check_ret(barrier(fd, &t.addr, 1, 0, tap_ms(WAIT_MS), &b), 0);
	end();
}

/* ------------------------------------------------------------ arm and poll */

/* The one event there is: of this node, with these numbers at least */
static void read_event(u64 completed)
{
	struct got got;
	union addr dest;

	check_ret(got_within(fd, &got, WAIT_MS), 0);
	if (!check_eq(got.nr_events, 1))
		return;
	memcpy(&dest, &got.events[0].dest, sizeof(dest));
	addr_set_port(&dest, addr_port(&t.addr));
	check(addr_same(&dest, &t.addr));
	check_range(got.events[0].completed, completed, got.events[0].issued);
	check_eq(got.nr_status, 0);
}

static void armed(void)
{
	begin();
	for (int by_file = 0; by_file < 2; by_file++) {
		u64 last = 2 * (by_file + 1);

		tap_context("%s", by_file ? "O_NONBLOCK" : "by flag");
		hold_ops();
		issue(fd, &t);
		issue(fd, &t);
		must(fcntl(fd, F_SETFL, by_file ? O_NONBLOCK : 0));
		check_err(barrier(fd, &t.addr, last, by_file ? 0 :
				  XRDS_BARRIER_NONBLOCK, 0, &b), EAGAIN);
		check_eq(b.completed, last - 2);
		check_eq(b.issued, last);
		check_eq(poll_one(fd, EVENT, 0), 0);
		release_ops();
		check_eq(poll_one(fd, EVENT, tap_ms(WAIT_MS)), EVENT);
		/* level, until it is read */
		check_eq(poll_one(fd, EVENT, 0), EVENT);
		read_event(last);
		check_eq(poll_one(fd, EVENT, 0), 0);
		check_ret(barrier(fd, &t.addr, last, 0, 0, &b), 0);
		check_eq(b.completed, last);
	}
	end();
}

/* An op that does not end before it is released, and a barrier for it */
static void begin_armed(void)
{
	begin();
	hold_ops();
	issue(fd, &t);
	arm(1);
}

static void armed_wakes(void)
{
	struct waker w;

	begin_armed();
	waker_start(&w, fd, POLLRDBAND);
	release_ops();
	pthread_join(w.thread, NULL);
	check_eq(w.seen, POLLRDBAND);
	check_eq(mark(fd, &t.addr), 1);
	end();
}

/* A thread in recvmsg() is woken, too. It has no room for the event, which stays. */
static void armed_wakes_reader(void)
{
	struct waker w;

	begin_armed();
	waker_start_reader(&w, fd);
	release_ops();
	check_eq(pthread_join(w.thread, NULL), 0);
	read_event(1);
	end();
}

/* A barrier call takes the event, too */
static void cleared_by_call(void)
{
	begin_armed();
	release_ops();
	check_eq(poll_one(fd, EVENT, tap_ms(WAIT_MS)), EVENT);
	check_ret(barrier(fd, &t.addr, 1, XRDS_BARRIER_NONBLOCK, 0, &b), 0);
	check_quiet(fd);
	end();
}

/* Only the barrier armed last counts. The second op is sent a while after the
 * first, and so ends a while after it.
 */
static void armed_again(void)
{
	begin_armed();
	poll(NULL, 0, tap_ms(DELAY_MS));
	issue(fd, &t);
	arm(2);
	slow_ops(DELAY_MS);
	/* the first completes, and is not told */
	check_eq(poll_one(fd, EVENT, tap_ms(WAIT_MS)), EVENT);
	read_event(2);
	check_quiet(fd);
	/* and nothing is armed any more: each op asked about is an event */
	issue(fd, &t);
	check_eq(poll_one(fd, EVENT, tap_ms(WAIT_MS)), EVENT);
	read_event(3);
	end();
}

static void armed_nodes(void)
{
	static const char * const hosts[NODES] = {
		"127.0.0.2", "127.0.0.3", "127.0.0.4",
	};
	struct target nodes[NODES];
	struct got got;
	int seen = 0;

	loop_only();
	fd = rds_bound(NULL);
	for (int i = 0; i < NODES; i++)
		target_at(&nodes[i], hosts[i]);
	hold_ops();
	for (int i = 0; i < NODES; i++) {
		for (int j = 0; j <= i; j++)
			issue(fd, &nodes[i]);
		check_err(barrier(fd, &nodes[i].addr, i + 1,
				  XRDS_BARRIER_NONBLOCK, 0, &b), EAGAIN);
	}
	release_ops();
	while (seen != (1 << NODES) - 1 && got_within(fd, &got, WAIT_MS) >= 0) {
		for (int i = 0; i < got.nr_events; i++) {
			union addr dest;
			int node;

			memcpy(&dest, &got.events[i].dest, sizeof(dest));
			node = (ntohl(dest.in.sin_addr.s_addr) & 0xff) - 2;
			if (!check_range(node, 0, NODES - 1))
				continue;
			check(!(seen & 1 << node));
			seen |= 1 << node;
			check_eq(got.events[i].completed, node + 1);
			check_eq(got.events[i].issued, node + 1);
		}
	}
	check_eq(seen, (1 << NODES) - 1);
	check_quiet(fd);
	for (int i = 0; i < NODES; i++)
		target_close(&nodes[i]);
	close(fd);
}

/* With nothing armed, each op whose identifier was asked for is an event */
static void not_armed(void)
{
	struct op op;

	begin();
	slow_ops(SHORT_MS);
	op = op_write(&t, 0, small, sizeof(small));
	must(op_send(fd, &t.addr, &op));
	check_ret(barrier(fd, &t.addr, 1, 0, tap_ms(WAIT_MS), &b), 0);
	check_quiet(fd);
	issue(fd, &t);
	check_eq(poll_one(fd, EVENT, tap_ms(WAIT_MS)), EVENT);
	read_event(2);
	issue(fd, &t);
	check_eq(poll_one(fd, EVENT, tap_ms(WAIT_MS)), EVENT);
	check_eq(mark(fd, &t.addr), 3);
	check_quiet(fd);
	end();
}

/* A read returns the event that is there, alone; the notice of a later op comes
 * with a later read.
 */
static void event_first(void)
{
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;

	target_open(&t, PAGE_BYTES, WRITABLE);
	issue(fd, &t);
	check_eq(poll_one(fd, EVENT, tap_ms(WAIT_MS)), EVENT);
	slow_ops(SHORT_MS);
	op = op_write(&t, 0, small, sizeof(small));
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check_quiet(fd);
	target_close(&t);
	close(fd);
}

/* ----------------------------------------------------- armed by sendmsg() */

static void by_message(void)
{
	struct xrds_barrier to_arm = { 0 };
	struct ctl ctl = { 0 };
	struct op op;

	begin();
	slow_ops(SHORT_MS);
	tap_context("this op");
	op = op_write(&t, 0, small, sizeof(small));
	op.barrier = &to_arm;
	must(op_send(fd, &t.addr, &op));
	check_eq(poll_one(fd, EVENT, tap_ms(WAIT_MS)), EVENT);
	read_event(1);

	tap_context("this op, node named, with identifier");
	memcpy(&to_arm.dest, &t.addr, sizeof(t.addr));
	to_arm.rdma_id = 2;
	to_arm.flags = XRDS_BARRIER_NONBLOCK;
	op = op_write(&t, 0, small, sizeof(small));
	op.barrier = &to_arm;
	must(op_send(fd, &t.addr, &op));
	read_event(2);

	/* under way until it is armed for: else its end is an event already */
	tap_context("an earlier op, by a message without op");
	hold_ops();
	issue(fd, &t);
	to_arm.rdma_id = 3;
	ctl_add(&ctl, XRDS_CMSG_BARRIER, &to_arm, sizeof(to_arm));
	must(ctl_send(fd, &t.addr, &ctl, "x", 1, 0));
	release_ops();
	read_event(3);

	tap_context("done already");
	to_arm.rdma_id = 1;
	memset(&ctl, 0, sizeof(ctl));
	ctl_add(&ctl, XRDS_CMSG_BARRIER, &to_arm, sizeof(to_arm));
	must(ctl_send(fd, &t.addr, &ctl, "x", 1, 0));
	read_event(3);
	check_quiet(fd);
	end();
}

/* An event that nobody has read yet is not forgotten for the next one. */
static void again_by_message(void)
{
	struct xrds_barrier to_arm = { 0 };
	struct op op;

	begin();
	for (int i = 0; i < 2; i++) {
		op = op_write(&t, 0, small, sizeof(small));
		op.barrier = &to_arm;
		must(op_send(fd, &t.addr, &op));
		check_eq(poll_one(fd, EVENT, tap_ms(WAIT_MS)), EVENT);
		hold_ops();
	}
	read_event(1);
	check_eq(poll_one(fd, EVENT, 0), 0);
	release_ops();
	read_event(2);
	end();
}

static void bad_by_message(void)
{
	struct xrds_barrier to_arm = { .rdma_id = 3 };
	struct op op;

	begin();
	op = op_write(&t, 0, small, sizeof(small));
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	op = op_write(&t, 0, small, sizeof(small));
	op.barrier = &to_arm;
	/* this op would be 2 */
	check_err(op_send(fd, &t.addr, &op), EINVAL);
	to_arm.rdma_id = 2;
	to_arm.flags = 2;
	check_err(op_send(fd, &t.addr, &op), EINVAL);
	to_arm.flags = 0;
	to_arm.dest.ss_family = AF_UNIX;
	check_err(op_send(fd, &t.addr, &op), EINVAL);
	check_eq(issued(fd, &t.addr), 1);
	check_quiet(fd);
	end();
}

/* An event without room for it stays, as one that cannot be copied does */
static void event_stays(void)
{
	size_t one = CMSG_SPACE(sizeof(struct xrds_barrier_event));
	struct msghdr msg = { .msg_controllen = one };
	struct got got;

	begin();
	issue(fd, &t);
	check_eq(poll_one(fd, EVENT, tap_ms(WAIT_MS)), EVENT);
	for (int i = 0; i < 2; i++) {
		check_ret(got_now(fd, &got, i ? one - 1 : 0), 0);
		check_eq(got.nr_events, 0);
		check(got.flags & MSG_CTRUNC);
		check_eq(poll_one(fd, EVENT, 0), EVENT);
	}
	msg.msg_control = before_wall(PROT_READ) - PAGE_BYTES;
	check_err(recvmsg(fd, &msg, MSG_DONTWAIT), EFAULT);
	check_eq(poll_one(fd, EVENT, 0), EVENT);
	check_ret(got_now(fd, &got, one), 0);
	check_eq(got.nr_events, 1);
	check(!(got.flags & MSG_CTRUNC));
	check_quiet(fd);
	end();
}

static bool is_idle(void *arg)
{
	struct xrds_dest_status st;

	must(dest_status(fd, arg, &st));
	return !st.queued_msgs;
}

/*
 * Ops to more nodes, one after the other, than a socket may hold queues for. It
 * goes on where it was with each of them.
 */
static void ids_past(void)
{
	struct target past[PAST_NODES];
	char host[16];

	loop_only();
	fd = rds_bound(NULL);
	knob("net/xrds/sock_max_dests", 1);
	for (int i = 0; i < PAST_NODES; i++) {
		snprintf(host, sizeof(host), "127.0.0.%d", i + 2);
		target_at(&past[i], host);
	}
	for (u64 round = 1; round <= 2; round++) {
		for (int i = 0; i < PAST_NODES; i++) {
			tap_context("node %d, op %d", i, (int)round);
			check_eq(issue(fd, &past[i]), round);
			check_ret(barrier(fd, &past[i].addr, round, 0, WAIT_MS,
					  &b), 0);
			must_wait(is_idle, &past[i].addr, WAIT_MS);
		}
		for (int i = 0; i < PAST_NODES; i++) {
			tap_context("node %d after op %d", i, (int)round);
			check_eq(mark(fd, &past[i].addr), round);
			check_eq(issued(fd, &past[i].addr), round);
			check_err(barrier(fd, &past[i].addr, round + 1,
					  XRDS_BARRIER_NONBLOCK, 0, &b),
				  EINVAL);
		}
	}
	for (int i = 0; i < PAST_NODES; i++)
		target_close(&past[i]);
	close(fd);
}

/* No more than so many, each on the user's account until the socket is freed */
static void ids_past_bounds(void)
{
	long long before, error = 0;
	int nr = 0;

	loop_only();
	begin();
	knob("net/xrds/sock_max_dests", 1);
	before = counter_now("used_memory");
	for (; nr <= MOST_NODES && !error; nr++) {
		struct target none = { .addr = t.addr, .cookie = 1 };
		struct op op = op_write(&none, 0, small, sizeof(small));

		none.addr.in.sin_addr.s_addr = htonl(0x7f010000 + nr);
		if (op_send(fd, &none.addr, &op) < 0)
			error = errno;
		must_wait(is_idle, &none.addr, WAIT_MS);
	}
	check_eq(error, ENFILE);
	check_eq(nr, MOST_NODES + 1);
	check_range(counter_now("used_memory") - before,
		    MOST_NODES * NODE_COST,
		    (MOST_NODES + 1) * (NODE_COST + COST));
	/* those that it knows go on */
	check_eq(issued(fd, &t.addr), 0);
	end();
}

static const struct tap_case cases[] = {
	{ "ids", "from 1, by 1, for each socket", ids, TAP_EACH_FAMILY, 0 },
	{ "ids_nodes", "each node has its own identifiers, the port has none",
	  ids_nodes, 0, 0 },
	{ "ids_past", "sock_max_dests bounds no nodes of ops that have ended",
	  ids_past, 0, 0 },
	{ "ids_past_bounds", "but these are bounded, and count as memory",
	  ids_past_bounds, 0, 60 },
	{ "ids_mixed", "ops that nobody asked about count, messages do not",
	  ids_mixed, 0, 0 },
	{ "id_pointer", "a bad pointer refuses the op and uses no identifier",
	  id_pointer, 0, 0 },
	{ "in_status", "XRDS_DEST_STATUS shows identifiers and mark",
	  in_status, 0, 0 },
	{ "query", "identifier 0 reports at once and arms nothing", query,
	  TAP_EACH_FAMILY, 0 },
	{ "bad_calls", "bad arguments and pointers of the call are refused",
	  bad_calls, 0, 0 },
	{ "blocking", "it sleeps until the op has ended", blocking,
	  TAP_EACH_FAMILY, 0 },
	{ "covers_failed", "failed ops pass the mark as well", covers_failed,
	  0, 0 },
	{ "waits_for_earlier", "the mark waits for ops that others overtook",
	  waits_for_earlier, 0, 0 },
	{ "timeouts", "timeout_ms and SO_RCVTIMEO bound it", timeouts, 0, 60 },
	{ "interrupted", "a signal ends it with EINTR", interrupted, 0, 60 },
	{ "armed", "EAGAIN arms: poll reports, recvmsg tells", armed,
	  TAP_EACH_FAMILY, 0 },
	{ "armed_wakes", "a sleeping poll is woken", armed_wakes, 0, 0 },
	{ "armed_wakes_reader", "and a sleeping reader", armed_wakes_reader, 0, 0 },
	{ "cleared_by_call", "a barrier call takes the event",
	  cleared_by_call, 0, 0 },
	{ "armed_again", "arming again replaces", armed_again, 0, 0 },
	{ "armed_nodes", "several nodes at once, one event each", armed_nodes,
	  0, 0 },
	{ "not_armed", "unarmed, each op asked about is an event", not_armed,
	  0, 0 },
	{ "event_first", "an event does not wait for a later op's notice",
	  event_first, 0, 0 },
	{ "by_message", "a control message arms in the same call", by_message,
	  TAP_EACH_FAMILY, 0 },
	{ "again_by_message", "it stays when another one is armed for", again_by_message,
	  0, 0 },
	{ "bad_by_message", "or refuses the op with the barrier",
	  bad_by_message, 0, 0 },
	{ "event_stays", "an event without room for it stays", event_stays,
	  0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
