// SPDX-License-Identifier: GPL-2.0-only
/*
 * Destinations that gave their place to others (net.xrds.sock_max_dests) read
 * the end of the stream as all others do: once, behind the messages. Senders that
 * wait for them do not wait longer.
 *
 * timeout: 120
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "congest.h"
#include "counters.h"
#include "sock.h"
#include "tap.h"
#include "turns.h"

enum {
	PLACES		= 3,
	RECEIVERS	= 10 * PLACES,
	NONE		= -1,
	MOST		= 1024,		/* remembered, with so few places */
	COST		= 1024,		/* of a destination */
	MEMORY_KB	= 4096,
	LINGER_S	= 60,
	DELAY_MS	= 200,
	EARLY_MS	= 10,		/* a tick of the slowest kernel */
	CHUNK		= 4096,
	PATIENCE_MS	= 4000,
	PATIENT_MS	= 3000,		/* the part of it before the eviction */
	KEPT		= 3000,		/* more than one hold of a lock looks at */
};

/* Of all cases: the sender, its address, and its receivers */
static int tx;
static union addr from;
static int rx[RECEIVERS];
static union addr to[RECEIVERS];

static void begin(void)
{
	for (int i = 0; i < RECEIVERS; i++)
		rx[i] = rds_bound(&to[i]);
	tx = rds_bound(&from);
	knob("net/xrds/sock_max_dests", PLACES);
}

static void end(void)
{
	for (int i = 0; i < RECEIVERS; i++)
		close(rx[i]);
}

/* A message to each, the places of which are free by then */
static void send_all(int number)
{
	for (int i = 0; i < RECEIVERS; i++) {
		tap_context("message %d to %d", number, i);
		check_ret(rds_send(tx, &number, sizeof(number), 0, &to[i]),
			  sizeof(number));
		must_wait(rds_all_acked, &tx, WAIT_MS);
	}
}

/* The reason of a mark, or NONE; the content of a message */
static int take_any(int fd, int *number, union addr *source)
{
	char control[CMSG_SPACE(sizeof(u32))] __aligned(8);
	struct iovec iov = { number, sizeof(*number) };
	struct msghdr m = {
		.msg_name = source, .msg_namelen = sizeof(*source),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	u32 reason;

	if (!(poll_one(fd, POLLIN, WAIT_MS) & POLLIN))
		tap_fail("nothing comes");
	must(recvmsg(fd, &m, MSG_DONTWAIT));
	c = CMSG_FIRSTHDR(&m);
	if (!c)
		return NONE;
	check_eq(c->cmsg_type, XRDS_CMSG_EOS);
	memcpy(&reason, CMSG_DATA(c), sizeof(reason));
	return reason;
}

/* The same from the sender */
static int take(int fd, int *number)
{
	union addr source = { 0 };
	int reason = take_any(fd, number, &source);

	check(addr_same(&source, &from));
	return reason;
}

/* Each has so many messages to read, then one mark, if any */
static void expect_ends(int messages, int reason)
{
	int number;

	for (int i = 0; i < RECEIVERS; i++) {
		for (int n = 0; n < messages; n++) {
			tap_context("receiver %d, message %d", i, n);
			check_eq(take(rx[i], &number), NONE);
			check_eq(number, n);
		}
		if (reason == NONE)
			continue;
		tap_context("receiver %d, end", i);
		check_eq(take(rx[i], &number), reason);
	}
}

/* A message of another sender comes behind all that is under way */
static void expect_nothing(void)
{
	int other = rds_bound(NULL);
	char byte;

	for (int i = 0; i < RECEIVERS; i++) {
		tap_context("receiver %d, behind the end", i);
		check_ret(rds_send(other, "x", 1, 0, &to[i]), 1);
		must_wait(rds_all_acked, &other, WAIT_MS);
		check_ret(rds_recv_within(rx[i], &byte, 1, WAIT_MS, NULL), 1);
	}
	/* its end would be a mark */
	close(other);
}

/* ------------------------------------------------------------------ ends */

static void shut_wr(void)
{
	begin();
	send_all(0);
	must(shutdown(tx, SHUT_WR));
	expect_ends(1, XRDS_EOS_FINISHED);
	/* once */
	close(tx);
	expect_nothing();
	end();
}

static void by_close(void)
{
	begin();
	send_all(0);
	close(tx);
	expect_ends(1, XRDS_EOS_FINISHED);
	expect_nothing();
	end();
}

static void by_death(void)
{
	pid_t pid;

	begin();
	pid = must(fork());
	if (!pid) {
		send_all(0);
		kill(getpid(), SIGKILL);
	}
	close(tx);
	must(waitpid(pid, NULL, 0));
	expect_ends(1, XRDS_EOS_FINISHED);
	end();
}

static void aborted(void)
{
	struct linger abort = { .l_onoff = 1 };

	begin();
	send_all(0);
	must(setsockopt(tx, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
	close(tx);
	expect_ends(1, XRDS_EOS_ABORTED);
	end();
}

/* SO_LINGER waits for these marks as well */
static void lingers(void)
{
	struct linger value = { .l_onoff = 1, .l_linger = LINGER_S };
	long long start;
	int number;

	begin();
	send_all(0);
	must(setsockopt(tx, SOL_SOCKET, SO_LINGER, &value, sizeof(value)));
	knob("net/xrds/loop/delay_ms", DELAY_MS);
	start = tap_tick_ms();
	close(tx);
	check_range(tap_now_ms() - start, DELAY_MS - EARLY_MS,
		    LINGER_S * 1000 - 1);
	for (int i = 0; i < RECEIVERS; i++) {
		tap_context("receiver %d", i);
		/* nothing is under way any more */
		check(poll_one(rx[i], POLLIN, 0) & POLLIN);
		check_eq(take(rx[i], &number), NONE);
		check(poll_one(rx[i], POLLIN, 0) & POLLIN);
		check_eq(take(rx[i], &number), XRDS_EOS_FINISHED);
	}
	end();
}

/* Those that get another message take a place again: there is one mark */
static void again(void)
{
	begin();
	for (int n = 0; n < 3; n++)
		send_all(n);
	close(tx);
	expect_ends(3, XRDS_EOS_FINISHED);
	expect_nothing();
	end();
}

/*
 * Another mark becomes due, by an acknowledgment, while shutdown() queues those
 * of evicted destinations, which have no connection yet.
 */
static void while_acked(void)
{
	long long dropped = counter_now("send_drop_eos");
	union addr other = addr_of(tap_host, 1);
	int fd, first = rds_bound(NULL);

	knob("net/xrds/sock_max_dests", 2);
	for (int ms = 4; ms <= 128; ms *= 2) {
		tap_context("acknowledged after %d ms", ms);
		fd = rds_bound(NULL);
		knob("net/xrds/loop/delay_ms", 0);
		for (int i = 0; i < MOST / 2; i++) {
			addr_set_port(&other, 10000 + i);
			check_ret(rds_send(fd, "x", 1, 0, &other), 1);
			must_wait(rds_all_acked, &fd, WAIT_MS);
		}
		knob("net/xrds/loop/delay_ms", ms);
		other = rds_self(first);
		check_ret(rds_send(fd, "x", 1, 0, &other), 1);
		must(shutdown(fd, SHUT_WR));
		close(fd);
	}
	knob("net/xrds/loop/delay_ms", 0);
	check_eq(counter_now("send_drop_eos"), dropped);
	close(first);
}

/* A place that was taken in vain leaves nothing that would get a mark */
static void never_sent(void)
{
	struct xrds_dest_status st = { 0 };

	begin();
	for (int i = 0; i < RECEIVERS; i++)
		check_err(rds_send(tx, (void *)1, 1, 0, &to[i]), EFAULT);
	must(shutdown(tx, SHUT_WR));
	check_ret(dest_status(tx, &to[0], &st), 0);
	check_eq(st.flags & XRDS_DEST_EOS_SENT, 0);
	close(tx);
	expect_nothing();
	end();
}

/* ----------------------------------------------------------------- bounds */

static bool used_at_most(void *arg)
{
	return counter_now("used_memory") <= *(long long *)arg;
}

/* They are charged until the socket is closed, and refused beyond a bound */
static void charged(void)
{
	long long before, error = 0;

	begin();
	before = counter_now("used_memory");
	send_all(0);
	check_range(counter_now("used_memory") - before, RECEIVERS * COST,
		    2 * RECEIVERS * COST);
	knob("net/xrds/max_memory_kb", counter_now("used_memory") / 1024 + 8);
	addr_set_port(&to[0], 1000);
	for (int i = 0; i < RECEIVERS && !error; i++) {
		addr_set_port(&to[0], addr_port(&to[0]) + 1);
		if (rds_send(tx, "x", 1, 0, &to[0]) < 0)
			error = errno;
		must_wait(rds_all_acked, &tx, WAIT_MS);
	}
	check_eq(error, EDQUOT);
	knob("net/xrds/max_memory_kb", MEMORY_KB);
	close(tx);
	expect_ends(1, XRDS_EOS_FINISHED);
	check(tap_wait(used_at_most, &before, WAIT_MS));
	end();
}

/* No more than so many are remembered; those above are counted */
static void bounded(void)
{
	long long dropped = counter_now("send_drop_eos");
	union addr other = addr_of(tap_host, 1);
	union addr nobody;
	int number;

	begin();
	rds_set_int(tx, SOL_RDS, XRDS_DELIVERED_EVENT, 1);
	send_all(0);
	for (int i = 0; i < MOST + PLACES; i++) {
		addr_set_port(&other, 10000 + i);
		check_ret(rds_send(tx, "x", 1, 0, &other), 1);
		must_wait(rds_all_acked, &tx, WAIT_MS);
	}
	check_range(counter_now("send_drop_eos") - dropped, RECEIVERS,
		    RECEIVERS + PLACES);
	/* their ends will not arrive */
	must(shutdown(tx, SHUT_WR));
	check_eq(take_any(tx, &number, &nobody), XRDS_EOS_UNDELIVERED);
	close(tx);
	/* the last ones get theirs */
	check_eq(take(rx[0], &number), NONE);
	check_eq(poll_one(rx[0], POLLIN, 0), 0);
	end();
}

/* -------------------------------------------------------- senders that wait */

struct sender {
	pthread_t thread;
	union addr to;
	ssize_t ret;
	int error;
};

static void *send_patiently(void *arg)
{
	struct sender *s = arg;
	long long start = tap_tick_ms();

	s->ret = rds_send(tx, "x", 1, 0, &s->to);
	s->error = errno;
	/* a time-out that begins anew with the eviction ends later */
	check_took(start, PATIENCE_MS - EARLY_MS, PATIENCE_MS + PATIENT_MS / 2);
	return NULL;
}

static bool blocked(void *arg)
{
	struct xrds_dest_status st = { 0 };
	struct sender *s = arg;

	return !dest_status(tx, &s->to, &st) && st.flags & XRDS_DEST_BLOCKED;
}

/* From now on no other thread of this process runs, unless we sleep */
static void run_alone(int policy)
{
	struct sched_param param = { .sched_priority = policy == SCHED_FIFO };

	must(sched_setscheduler(0, policy, &param));
}

/*
 * A sender waits for the end of congestion. When that comes another message takes
 * the place of its destination before it runs, and the new destination refuses
 * it again.
 */
static void one_timeout(void)
{
	static char chunk[CHUNK];
	int full, other = rds_bound(NULL), next;
	struct sender s = { 0 };
	union addr next_to;
	cpu_set_t one;

	turns_begin();
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	must(sched_setaffinity(0, sizeof(one), &one));
	full = small_receiver(&s.to);
	next = rds_bound(&next_to);
	tx = rds_bound(NULL);
	knob("net/xrds/sock_max_dests", 1);
	rds_timeout(tx, SO_SNDTIMEO, PATIENCE_MS);
	congest(other, &s.to);
	check_eq(pthread_create(&s.thread, NULL, send_patiently, &s), 0);
	must_wait(blocked, &s, WAIT_MS);
	check_eq(poll_one(tx, POLLIN, PATIENT_MS), 0);

	run_alone(SCHED_FIFO);
	drain(full);
	check_ret(rds_send(tx, "x", 1, MSG_DONTWAIT, &next_to), 1);
	while (rds_send(other, chunk, sizeof(chunk), MSG_DONTWAIT, &s.to) > 0)
		;
	check_eq(errno, ENOBUFS);
	run_alone(SCHED_OTHER);

	pthread_join(s.thread, NULL);
	check_eq(s.ret, -1);
	check_eq(s.error, ETIMEDOUT);
	close(full);
	close(other);
	close(next);
	close(tx);
}

static void keep(const union addr *a, u32 bytes)
{
	struct xrds_dest_sndbuf room = { .bytes = bytes };

	memcpy(&room.dest, a, sizeof(room.dest));
	must(setsockopt(tx, SOL_RDS, XRDS_DEST_SNDBUF, &room, sizeof(room)));
}

/* Very many destinations that stay, as they have settings, and then one that does
 * not. The rig knows how many are looked at in one hold of a lock.
 */
static void kept(void)
{
	union addr a = { 0 }, next;
	int fd = rds_bound(&next);

	tx = rds_bound(&a);
	knob("net/xrds/sock_max_dests", KEPT);
	for (int i = 0; i < KEPT; i++) {
		addr_set_port(&a, 1000 + i);
		keep(&a, CHUNK);
	}
	check_err(rds_send(tx, "x", 1, MSG_DONTWAIT, &next), ENFILE);
	check_err(rds_send(tx, "x", 1, MSG_DONTWAIT, &next), ENFILE);
	addr_set_port(&a, 1000 + KEPT / 2);
	keep(&a, 0);
	check_ret(rds_send(tx, "x", 1, MSG_DONTWAIT, &next), 1);
	close(tx);
	close(fd);
}

/* The counts of a destination stay, with a place or without. */
static void status(void)
{
	struct xrds_dest_status st;

	begin();
	for (int n = 1; n <= 2; n++) {
		send_all(n);
		for (int i = 0; i < RECEIVERS; i++) {
			must(dest_status(tx, &to[i], &st));
			check_eq(st.acked_msgs, n);
			check(st.last_progress_ns);
		}
	}
	close(tx);
	end();
}

static const struct tap_case cases[] = {
	{ "status", "messages that were acknowledged are not forgotten", status,
	  TAP_EACH_FAMILY, 0 },
	{ "shut_wr", "SHUT_WR: one mark to each", shut_wr, TAP_EACH_FAMILY, 0 },
	{ "by_close", "close(): the same", by_close, TAP_EACH_FAMILY, 0 },
	{ "by_death", "a process that is killed: the same", by_death, 0, 0 },
	{ "aborted", "SO_LINGER {1, 0}: reason 2", aborted, 0, 0 },
	{ "lingers", "SO_LINGER {1, n}: close() waits for their marks", lingers,
	  0, 0 },
	{ "again", "those that come back get one mark, too", again, 0, 0 },
	{ "while_acked", "none is lost when another stream ends meanwhile",
	  while_acked, 0, 60 },
	{ "never_sent", "no mark where every send has failed", never_sent, 0,
	  0 },
	{ "charged", "they count as memory of the sender: EDQUOT", charged, 0,
	  0 },
	{ "bounded", "the oldest are forgotten, and counted", bounded, 0, 60 },
	{ "one_timeout", "SO_SNDTIMEO is one for all destinations of a send",
	  one_timeout, 0, 0 },
	{ "kept", "thousands that stay do not hide one that can go", kept, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
