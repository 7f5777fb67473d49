// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nobody waits for a long queue: while one user lists or delivers very many messages
 * others get the processor and the locks. A message that stays has one row in each
 * list, while others come and go. Nor does a call hold a lock for long that has to do
 * with very many of its own things.
 *
 * timeout: 300
 * memory: 1024
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "dump.h"
#include "sock.h"
#include "tap.h"

enum {
	QUEUED		= 100000,	/* messages */
	SPACE		= 64 << 20,	/* of a destination, bytes */
	PERIOD_US	= 2000,		/* of a bystander's calls */
	CALLS		= 201,		/* in each measurement; odd */
	TIMES		= 20,		/* a call may take as many medians */
	SENDERS		= 400,
	WINDOW		= 250,		/* in flight at once, of each */
	TURNS		= 3,		/* one hold of the lock gives one */
	STAY		= 1000,		/* messages that nobody takes */
	SHORTEST	= 2,		/* length of the first of these */
	BURST		= 100,		/* others that go at once */
	BURSTS		= 20,
	READS		= 20,		/* dumps meanwhile */
	REPLY		= 64 * 1024,	/* all of the space of a destination */
	IN_FLIGHT	= 256,		/* the window of a stream */
	OWNERS		= 8,		/* of its port, one after another */
	EACH		= 128,		/* messages of an owner */
	DESTS		= 2500,		/* more than two holds take */
	MARKS		= 1500,		/* more than one does */
};

static long long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ll + t.tv_nsec / 1000;
}

/* All processes of a case share one processor. */
static void one_processor(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	must(sched_setaffinity(0, sizeof(set), &set));
}

/* Runs as soon as it has something to do and the kernel lets it. */
static void be_first(void)
{
	struct sched_param param = { .sched_priority = 1 };

	must(sched_setscheduler(0, SCHED_FIFO, &param));
}

static void be_normal(void)
{
	struct sched_param param = { 0 };

	must(sched_setscheduler(0, SCHED_OTHER, &param));
}

static void much_memory(void)
{
	static const struct rlimit files = { 2 * SENDERS, 2 * SENDERS };

	knob("net/xrds/max_memory_kb", 1 << 20);
	knob("net/xrds/max_recv_kb", 1 << 20);
	knob("net/xrds/sock_max_recv_kb", 1 << 20);
	must(setrlimit(RLIMIT_NOFILE, &files));
}

static int large_receiver(union addr *self)
{
	int fd = rds_bound(self);

	rds_set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, SPACE);
	return fd;
}

static int large_sender(void)
{
	int fd = rds_bound(NULL);

	rds_set_int(fd, SOL_SOCKET, SO_SNDBUFFORCE, SPACE);
	return fd;
}

static void send_many(int fd, const union addr *to, int nr)
{
	for (int i = 0; i < nr; i++)
		must(rds_send(fd, "", 1, 0, to));
}

/* ------------------------------------------------------------- bystanders */

/**
 * struct bystander - a program that has nothing to do with the others' messages
 * @fd:		its socket
 * @to:		where it sends
 * @reads:	it sends to itself, and reads
 * @next_us:	when its next call is due
 */
struct bystander {
	int fd;
	union addr to;
	bool reads;
	long long next_us;
};

/* Returns how long after its time the call is over. */
static long long call_us(struct bystander *b)
{
	struct timespec at;
	char byte;

	b->next_us += PERIOD_US;
	if (b->next_us < now_us())
		b->next_us = now_us() + PERIOD_US;
	at.tv_sec = b->next_us / 1000000;
	at.tv_nsec = b->next_us % 1000000 * 1000;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	must(rds_send(b->fd, "", 1, 0, &b->to));
	if (b->reads)
		must(rds_recv(b->fd, &byte, 1, 0, NULL));
	return now_us() - b->next_us;
}

static int by_size(const void *a, const void *b)
{
	long long x = *(const long long *)a, y = *(const long long *)b;

	return x < y ? -1 : x > y;
}

/* A host that is busy delays some calls a lot, so half of them are asked. */
static long long median_us(struct bystander *b)
{
	long long us[CALLS];

	for (int i = 0; i < CALLS; i++)
		us[i] = call_us(b);
	qsort(us, CALLS, sizeof(us[0]), by_size);
	return us[CALLS / 2];
}

/* It has gone on until now. */
static void end_process(pid_t child)
{
	int status;

	must(kill(child, SIGKILL));
	must(waitpid(child, &status, 0));
	check(WIFSIGNALED(status));
}

/* A process that dumps for ever; its first dump is over when this returns. */
static pid_t dumper(int what, size_t least)
{
	const size_t each = sizeof(struct rds6_info_message);
	int ready[2];
	pid_t child;
	char byte;

	must(pipe(ready));
	child = must(fork());
	if (!child) {
		int fd = rds_socket();

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		be_normal();
		for (bool first = true;; first = false) {
			struct dump d = dump_read(fd, what, each);

			if (d.nr < least)
				tap_fail("%zu rows, not %zu", d.nr, least);
			dump_free(&d);
			if (first)
				must(write(ready[1], "", 1));
		}
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		tap_fail("no dump was complete");
	close(ready[0]);
	return child;
}

static void beside_dumps(struct bystander *b, int what, size_t least)
{
	long long alone, beside;
	pid_t child;

	one_processor();
	be_first();
	b->next_us = now_us();
	alone = median_us(b);
	child = dumper(what, least);
	beside = median_us(b);
	tap_diag("half of the calls: %lld us alone, %lld us beside dumps",
		 alone, beside);
	check_range(beside, 0, TIMES * alone);
	end_process(child);
	close(b->fd);
}

static void dumps_in(void)
{
	int tx = large_sender(), rx, queued = tap_count(QUEUED);
	struct bystander b = { .reads = true };
	union addr to;

	much_memory();
	rx = large_receiver(&to);
	send_many(tx, &to, queued);
	b.fd = rds_bound(&b.to);
	beside_dumps(&b, RDS6_INFO_RECV_MESSAGES, queued);
	close(tx);
	close(rx);
}

static void dumps_out(void)
{
	int tx = large_sender(), rx, queued = tap_count(QUEUED);
	struct bystander b = { .reads = false };
	union addr to;

	much_memory();
	rx = large_receiver(&to);
	stall_loop();
	send_many(tx, &to, queued);
	/* one whose message is only queued */
	b.fd = rds_bound(NULL);
	b.to = to;
	beside_dumps(&b, RDS6_INFO_SEND_MESSAGES, queued - 2 * WINDOW);
	close(tx);
	close(rx);
}

/* Are so many messages under way? */
static bool under_way(void *want)
{
	int fd = rds_socket();
	struct dump d = dump_read(fd, RDS6_INFO_RETRANS_MESSAGES,
				  sizeof(struct rds6_info_message));
	bool are = d.nr == (size_t)*(int *)want;

	dump_free(&d);
	close(fd);
	return are;
}

/* Messages of many senders are under way over the loopback, and arrive. */
static void delivery(void)
{
	int tx[SENDERS], rx, turns = 0, senders = tap_count(SENDERS);
	struct bystander b = { .reads = false };
	int bytes, all = senders * WINDOW;
	union addr to;

	much_memory();
	rx = large_receiver(&to);
	/* the work that delivers runs where the first message was sent */
	one_processor();
	stall_loop();
	for (int i = 0; i < senders; i++) {
		tx[i] = rds_bound(NULL);
		send_many(tx[i], &to, WINDOW);
	}
	must_wait(under_way, &all, 4 * WAIT_MS);
	be_first();
	b.fd = rds_bound(NULL);
	b.to = addr_of(tap_host, 4000);
	b.next_us = now_us();
	knob("net/xrds/loop/delay_ms", 0);
	do {
		call_us(&b);
		must(ioctl(rx, SIOCINQ, &bytes));
		turns += bytes > 0;
	} while (bytes < all);
	tap_diag("%d turns", turns);
	check(turns >= TURNS);
	for (int i = 0; i < senders; i++)
		close(tx[i]);
	close(b.fd);
	close(rx);
}

/* -------------------------------------------------------------- whole rows */

/* Those who take messages do so in the midst of a dump. */
static pid_t taker(void (*take)(int fd, const union addr *to), int fd,
		   const union addr *to)
{
	struct timespec pause = { 0, 200000 };
	pid_t child = must(fork());

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	be_first();
	for (;;) {
		take(fd, to);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
}

/* The messages that stay ascend in length: each has one row. */
static void check_rows(int fd, int what, int want)
{
	struct dump d = dump_read(fd, what, sizeof(struct rds6_info_message));
	const struct rds6_info_message *row = d.rows;
	int found = 0;
	u32 last = 0;

	for (size_t i = 0; i < d.nr; i++) {
		if (row[i].len < SHORTEST)
			continue;
		if (row[i].len <= last)
			tap_fail("%u bytes behind %u", row[i].len, last);
		last = row[i].len;
		found++;
	}
	check_eq(found, want);
	dump_free(&d);
}

static void send_staying(int fd, const union addr *to)
{
	static char data[SHORTEST + STAY];

	for (int i = 0; i < STAY; i++)
		must(rds_send(fd, data, SHORTEST + i, 0, to));
}

/* Reads those in front, up to the messages that stay. One is put back each time.
 */
static void read_some(int fd, const union addr *to)
{
	char byte;

	(void)to;
	for (int i = 0; i < BURST; i++) {
		if (rds_recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC,
			     NULL) != 1)
			return;
		if (!i && !check_err(rds_recv(fd, NULL, 1, MSG_DONTWAIT, NULL),
				     EFAULT))
			tap_child_exit();
		must(rds_recv(fd, &byte, 1, MSG_DONTWAIT, NULL));
	}
}

static void stays_in(void)
{
	int tx = large_sender(), rx, fd = rds_socket();
	union addr to;
	pid_t child;

	much_memory();
	one_processor();
	rx = large_receiver(&to);
	for (int i = 0; i < READS; i++) {
		tap_context("dump %d", i);
		send_many(tx, &to, BURSTS * BURST);
		send_staying(tx, &to);
		must_wait(rds_all_acked, &tx, WAIT_MS);
		child = taker(read_some, rx, NULL);
		check_rows(fd, RDS6_INFO_RECV_MESSAGES, STAY);
		end_process(child);
		must(shutdown(rx, SHUT_RD));
		close(rx);
		rx = large_receiver(&to);
	}
	close(tx);
	close(rx);
	close(fd);
}

/* Reads those behind messages that are held back, and has no reply to them. */
static void read_unheld(int fd, const union addr *to)
{
	union addr from;
	char byte;

	(void)to;
	for (int i = 0; i < BURST; i++) {
		if (rds_recv(fd, &byte, 1, MSG_DONTWAIT, &from) != 1)
			return;
		must(setsockopt(fd, SOL_RDS, XRDS_REPLY_RELEASE, &from.ss,
				sizeof(from.ss)));
	}
}

static void held_in(void)
{
	int held = large_sender(), tx, rx, fd = rds_socket();
	u32 reply = REPLY;
	union addr to;
	pid_t child;
	char byte;

	much_memory();
	one_processor();
	rx = large_receiver(&to);
	rds_set_int(rx, SOL_SOCKET, SO_SNDBUF, REPLY);
	must(setsockopt(rx, SOL_RDS, XRDS_REPLY_RESERVE, &reply,
			sizeof(reply)));
	/* there is space for one reply */
	must(rds_send(held, "x", 1, 0, &to));
	must(rds_recv_within(rx, &byte, 1, WAIT_MS, NULL));
	send_staying(held, &to);
	for (int i = 0; i < READS; i++) {
		tap_context("dump %d", i);
		/* the last one may have died with space for a reply */
		tx = large_sender();
		send_many(tx, &to, BURSTS * BURST);
		child = taker(read_unheld, rx, NULL);
		check_rows(fd, RDS6_INFO_RECV_MESSAGES, STAY);
		end_process(child);
		close(tx);
	}
	close(held);
	close(rx);
	close(fd);
}

/* Cancels the messages of a socket, and queues others. */
static void cancel_some(int fd, const union addr *to)
{
	must(setsockopt(fd, SOL_RDS, RDS_CANCEL_SENT_TO, &to->in,
			sizeof(to->in)));
	send_many(fd, to, BURST);
}

static void stays_out(void)
{
	int tx = large_sender(), others = large_sender(), rx, fd = rds_socket();
	union addr to;
	pid_t child;

	much_memory();
	one_processor();
	rx = large_receiver(&to);
	stall_loop();
	send_many(others, &to, BURST);
	send_staying(tx, &to);
	must_wait(under_way, &(int){ IN_FLIGHT + BURST }, WAIT_MS);
	child = taker(cancel_some, others, &to);
	for (int i = 0; i < READS; i++) {
		tap_context("dump %d", i);
		check_rows(fd, RDS6_INFO_SEND_MESSAGES, STAY - IN_FLIGHT);
		check_rows(fd, RDS6_INFO_RETRANS_MESSAGES, IN_FLIGHT);
	}
	end_process(child);
	close(tx);
	close(others);
	close(rx);
	close(fd);
}

/* ----------------------------------------------------------- what is bounded */

/* Calls that concern all destinations of a socket take them in turns: the rig looks
 * at the most steps in one hold of a lock.
 */
static void destinations(void)
{
	int fd = rds_bound(NULL), size = SPACE;
	union addr to;

	knob("net/xrds/sock_max_dests", DESTS);
	for (int i = 0; i < DESTS; i++) {
		to = addr_of(tap_host, 1 + i);
		must(rds_send(fd, "", 1, 0, &to));
	}
	must_wait(rds_all_acked, &fd, WAIT_MS);
	must(setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)));
	for (int on = 1; on >= 0; on--) {
		rds_set_int(fd, SOL_RDS, XRDS_NODE_EVENTS, on);
		rds_set_int(fd, SOL_RDS, XRDS_REPLY_RESERVE, on);
	}
	must(setsockopt(fd, SOL_RDS, RDS_CANCEL_SENT_TO, NULL, 0));
	must(shutdown(fd, SHUT_WR));
	close(fd);
}

/* A reader that peeks passes over the ends of streams, one that takes none drops all
 * that wait.
 */
static void marks(void)
{
	const struct rlimit files = { 2 * MARKS, 2 * MARKS };
	int rx, tx[MARKS], fd = rds_bound(NULL);
	union addr to;
	char byte;

	much_memory();
	must(setrlimit(RLIMIT_NOFILE, &files));
	rx = large_receiver(&to);
	for (int i = 0; i < MARKS; i++) {
		tx[i] = rds_bound(NULL);
		must(rds_send(tx[i], "", 1, 0, &to));
	}
	for (int i = 0; i < MARKS; i++) {
		must(shutdown(tx[i], SHUT_WR));
		close(tx[i]);
	}
	for (int i = 0; i < MARKS; i++)
		must(rds_recv_within(rx, &byte, 1, WAIT_MS, NULL));
	must(rds_send(fd, "x", 1, 0, &to));
	for (int flags = MSG_PEEK | MSG_DONTWAIT;; flags = MSG_DONTWAIT) {
		byte = 0;
		check_ret(rds_recv(rx, &byte, 1, flags, NULL), 1);
		check_eq(byte, 'x');
		if (!(flags & MSG_PEEK))
			break;
	}
	check_err(rds_recv(rx, &byte, 1, MSG_DONTWAIT, NULL), EAGAIN);
	close(fd);
	close(rx);
}

/* Sockets that had a port one after another have one window together: a refusal of
 * the first message concerns all that is in flight. The messages come in order.
 */
static void port_in_turn(void)
{
	union addr to, self = { 0 };
	int rx = large_receiver(&to), tx;
	u32 number, next = 0;

	stall_loop();
	for (int i = 0; i < OWNERS; i++) {
		tx = rds_bound_to(tap_host, i ? addr_port(&self) : 0, &self);
		rds_set_int(tx, SOL_SOCKET, SO_SNDBUFFORCE, SPACE);
		for (int n = 0; n < EACH; n++, next++)
			must(rds_send(tx, &next, sizeof(next), 0, &to));
		close(tx);
	}
	/* the end of the first stream is one of them, and has no row */
	must_wait(under_way, &(int){ IN_FLIGHT - 1 }, WAIT_MS);
	knob("net/xrds/loop/delay_ms", 0);
	for (u32 n = 0; n < next; n++) {
		must(rds_recv_within(rx, &number, sizeof(number), WAIT_MS,
				     NULL));
		if (!check_eq(number, n))
			break;
	}
	close(rx);
}

static const struct tap_case cases[] = {
	{ "dumps_in", "others work while 100,000 unread messages are listed",
	  dumps_in, 0, 120 },
	{ "dumps_out", "others work while 100,000 queued messages are listed",
	  dumps_out, 0, 120 },
	{ "delivery", "others work while 100,000 messages arrive over loopback",
	  delivery, 0, 120 },
	{ "stays_in", "a message that stays unread has one row", stays_in, 0,
	  120 },
	{ "held_in", "and so has one that is held back", held_in, 0, 120 },
	{ "stays_out", "a message that stays queued has one row", stays_out, 0,
	  120 },
	{ "destinations", "no call holds a lock for all of a socket's destinations",
	  destinations, TAP_EACH_FAMILY, 120 },
	{ "marks", "no read does for all ends of streams", marks, 0, 120 },
	{ "port_in_turn", "sockets that share a port in turn share a window",
	  port_in_turn, TAP_EACH_FAMILY, 60 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
