// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages that XRDS_REPLY_RESERVE holds back: calls take as long as without
 * them, their order stays, and a source that cannot be answered stops no other.
 *
 * timeout: 300
 * memory: 1024
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <linux/sockios.h>
#include <time.h>
#include <unistd.h>

#include "counters.h"
#include "dump.h"
#include "sock.h"
#include "tap.h"

enum {
	REPLY		= 64 * 1024,	/* all of the space of a destination */
	HELD		= 100000,
	SOURCES		= 1000,
	ROUNDS		= 101,
	FACTOR		= 20,
	MEMORY_KB	= 900 << 10,
	RCVBUF		= 64 << 20,
	QUIET_MS	= 1000,
	WAKES		= 20,		/* in that time */
	STEPS		= 20000,
	PEERS		= 5,
	IN_A_ROW	= 200,
};

static char data[REPLY];

static ssize_t read_now(int fd, union addr *from)
{
	return rds_recv(fd, data, sizeof(data), MSG_DONTWAIT, from);
}

/* A server with space for one reply to each client */
static int server(union addr *self)
{
	int fd;

	knob("net/xrds/max_memory_kb", MEMORY_KB);
	knob("net/xrds/max_recv_kb", MEMORY_KB);
	knob("net/xrds/sock_max_recv_kb", MEMORY_KB);
	fd = rds_bound(self);
	rds_set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, RCVBUF);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, REPLY);
	return fd;
}

static int unread(int fd)
{
	int bytes;

	must(ioctl(fd, SIOCINQ, &bytes));
	return bytes;
}

static void await(int fd, int bytes)
{
	long long end = tap_now_ms() + tap_ms(WAIT_MS);

	while (unread(fd) != bytes && tap_now_ms() < end)
		poll_one(fd, 0, 1);
	check_eq(unread(fd), bytes);
}

/* ------------------------------------------------------------------ speed */

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	long long x = *(const long long *)a, y = *(const long long *)b;

	return (x > y) - (x < y);
}

/* Median of a call that finds nothing to read */
static long long vain_ns(int fd, bool polls)
{
	long long ns[ROUNDS], start;

	for (int i = 0; i < ROUNDS; i++) {
		start = now_ns();
		if (polls)
			check_eq(poll_one(fd, POLLIN, 0), 0);
		else
			check_err(read_now(fd, NULL), EAGAIN);
		ns[i] = now_ns() - start;
	}
	qsort(ns, ROUNDS, sizeof(*ns), compare);
	return ns[ROUNDS / 2];
}

/* Median of a request of a client that is answered at once */
static long long echo_ns(int fd, int client, const union addr *to)
{
	long long ns[ROUNDS], start;
	union addr from;

	for (int i = 0; i < ROUNDS; i++) {
		start = now_ns();
		check_ret(rds_send(client, "x", 1, 0, to), 1);
		check_eq(poll_one(fd, POLLIN, tap_ms(WAIT_MS)), POLLIN);
		check_ret(read_now(fd, &from), 1);
		check_ret(rds_send(fd, "y", 1, MSG_DONTWAIT, &from), 1);
		check_ret(rds_recv_within(client, data, 1, WAIT_MS, NULL), 1);
		ns[i] = now_ns() - start;
	}
	qsort(ns, ROUNDS, sizeof(*ns), compare);
	return ns[ROUNDS / 2];
}

static void as_fast(const char *call, long long before, long long after)
{
	tap_diag("%s: %lld ns, with held messages %lld ns", call, before,
		 after);
	check_range(after, 0, FACTOR * before);
}

/* So many messages, which sources send in turns, are held back. */
static void held_of(int nr)
{
	int client = rds_bound(NULL), tx[SOURCES], held = tap_count(HELD), fd;
	long long polls, reads, echoes;
	struct rlimit files = { 4096, 4096 };
	union addr self;

	must(setrlimit(RLIMIT_NOFILE, &files));
	fd = server(&self);
	check_ret(rds_reserve(fd, REPLY), 0);
	polls = vain_ns(fd, true);
	reads = vain_ns(fd, false);
	echoes = echo_ns(fd, client, &self);
	for (int i = 0; i < nr; i++) {
		tx[i] = rds_bound(NULL);
		check_ret(rds_send(tx[i], "x", 1, 0, &self), 1);
		await(fd, 1);
		check_ret(read_now(fd, NULL), 1);
	}
	for (int i = 0; i < held; i++)
		if (!check_ret(rds_send(tx[i % nr], "x", 1, 0, &self), 1))
			break;
	await(fd, held);
	as_fast("poll()", polls, vain_ns(fd, true));
	as_fast("recvmsg()", reads, vain_ns(fd, false));
	as_fast("a request and its answer", echoes,
		echo_ns(fd, client, &self));
	/* without reservation they can be read, one after the other */
	check_ret(rds_reserve(fd, 0), 0);
	for (int i = 0; i < held; i++)
		if (!check_ret(read_now(fd, NULL), 1))
			break;
	check_err(read_now(fd, NULL), EAGAIN);
	for (int i = 0; i < nr; i++)
		close(tx[i]);
	close(client);
	close(fd);
}

static void of_two(void)
{
	held_of(2);
}

static void of_many(void)
{
	held_of(SOURCES);
}

/* ------------------------------------------------------------------ order */

struct peer {
	int fd;
	union addr self;
	u32 sent;
	u32 got;
};

static struct peer peers[PEERS];

static void peers_open(int nr)
{
	memset(peers, 0, sizeof(peers));
	for (int i = 0; i < nr; i++)
		peers[i].fd = rds_bound(&peers[i].self);
}

static void peers_close(int nr)
{
	for (int i = 0; i < nr; i++)
		close(peers[i].fd);
}

static void say(int i, const union addr *to, int times)
{
	for (; times; times--, peers[i].sent++)
		check_ret(rds_send(peers[i].fd, &peers[i].sent, sizeof(u32), 0,
				   to), sizeof(u32));
}

/* Reads the next message: its peer or -1. Those of a peer come in order. */
static int hear(int fd)
{
	union addr from;
	u32 number;

	if (rds_recv(fd, &number, sizeof(number), MSG_DONTWAIT, &from) < 0) {
		check_eq(errno, EAGAIN);
		return -1;
	}
	for (int i = 0; i < PEERS; i++) {
		if (!peers[i].fd || !addr_same(&from, &peers[i].self))
			continue;
		check_eq(number, peers[i].got);
		peers[i].got = number + 1;
		return i;
	}
	tap_fail("a message of nobody");
}

/* Of each source a message, however many wait of one */
static void turns(void)
{
	union addr self;
	int fd = rds_bound(&self);

	peers_open(3);
	check_ret(rds_reserve(fd, 1), 0);
	say(0, &self, 50);
	say(1, &self, 2);
	say(2, &self, 1);
	await(fd, 53 * sizeof(u32));
	for (int i = 0; i < 3; i++)
		check_eq(hear(fd), i);
	check_eq(hear(fd), 0);
	check_eq(hear(fd), 1);
	for (int i = 0; i < 48; i++)
		check_eq(hear(fd), 0);
	check_eq(hear(fd), -1);
	peers_close(3);
	close(fd);
}

/* Without reservation in the order of arrival, even those that were held back */
static void as_arrived(void)
{
	union addr self;
	int fd = rds_bound(&self);

	peers_open(2);
	check_ret(rds_reserve(fd, 1), 0);
	say(0, &self, 1);
	await(fd, sizeof(u32));
	check_eq(hear(fd), 0);
	say(0, &self, 2);
	await(fd, 2 * sizeof(u32));
	say(1, &self, 1);
	await(fd, 3 * sizeof(u32));
	check_ret(rds_reserve(fd, 0), 0);
	say(0, &self, 1);
	await(fd, 4 * sizeof(u32));
	check_eq(hear(fd), 0);
	check_eq(hear(fd), 0);
	check_eq(hear(fd), 1);
	check_eq(hear(fd), 0);
	check_eq(hear(fd), -1);
	peers_close(2);
	close(fd);
}

/* Messages that came before the option are held as well: more than are sorted
 * at once.
 */
static void came_before(void)
{
	union addr self;
	int fd = server(&self);

	peers_open(2);
	say(0, &self, IN_A_ROW);
	await(fd, IN_A_ROW * sizeof(u32));
	say(1, &self, 1);
	await(fd, (IN_A_ROW + 1) * sizeof(u32));
	check_ret(rds_reserve(fd, REPLY), 0);
	say(1, &self, 1);
	await(fd, (IN_A_ROW + 2) * sizeof(u32));
	check_eq(hear(fd), 0);
	/* the others are held, and the other source is found behind them */
	check_eq(poll_one(fd, POLLIN, 0), POLLIN);
	check_eq(hear(fd), 1);
	check_eq(poll_one(fd, POLLIN, 0), 0);
	check_eq(hear(fd), -1);
	check_ret(rds_release(fd, &peers[0].self), 0);
	check_eq(poll_one(fd, POLLIN, 0), POLLIN);
	check_eq(hear(fd), 0);
	check_eq(hear(fd), -1);
	peers_close(2);
	close(fd);
}

/* With all of this messages of one source stay in order, and none is lost. */
static void in_order(void)
{
	u32 sent = 0, got = 0, kept[PEERS] = { 0 };
	int fd, n, left = tap_count(STEPS);
	unsigned int seed = 1;
	union addr self;
	bool on = false;

	fd = server(&self);
	peers_open(PEERS);
	while (left--) {
		n = rand_r(&seed) % PEERS;
		switch (rand_r(&seed) % 16) {
		case 0:
			if (!on || rand_r(&seed) % 4 == 0) {
				on = !on;
				check_ret(rds_reserve(fd, on ? REPLY : 0), 0);
				memset(kept, 0, sizeof(kept));
			}
			break;
		case 1 ... 4:
			if (kept[n]) {
				check_ret(rds_release(fd, &peers[n].self), 0);
				kept[n]--;
			}
			break;
		case 5 ... 9:
			if (sent - got > 1000)
				break;
			say(n, &self, 1);
			sent++;
			break;
		case 10:
			/* a call that fails puts the message back */
			rds_recv(fd, (void *)8, 4, MSG_DONTWAIT, NULL);
			break;
		default:
			n = hear(fd);
			if (n < 0)
				break;
			got++;
			kept[n] += on;
		}
	}
	await(fd, (sent - got) * sizeof(u32));
	check_ret(rds_reserve(fd, 0), 0);
	while (hear(fd) >= 0)
		got++;
	check_eq(got, sent);
	peers_close(PEERS);
	close(fd);
}

/* A dump has the messages that are held back, and the one that a reader has put
 * in front of them.
 */
static void listed(void)
{
	union addr self;
	int fd = server(&self);

	peers_open(2);
	check_ret(rds_reserve(fd, REPLY), 0);
	say(0, &self, 3);
	await(fd, 3 * sizeof(u32));
	check_eq(hear(fd), 0);
	say(1, &self, 1);
	await(fd, 3 * sizeof(u32));
	check_err(rds_recv(fd, (void *)8, 4, MSG_DONTWAIT, NULL), EFAULT);
	check_eq(dump_rows(fd, RDS6_INFO_RECV_MESSAGES), 3);
	check_eq(hear(fd), 1);
	check_eq(hear(fd), -1);
	check_eq(dump_rows(fd, RDS6_INFO_RECV_MESSAGES), 2);
	peers_close(2);
	close(fd);
}

/* Held messages go with the socket, and with SHUT_RD. */
static void dropped(void)
{
	union addr self;
	int fd = server(&self);

	peers_open(2);
	check_ret(rds_reserve(fd, REPLY), 0);
	say(0, &self, 3);
	say(1, &self, 3);
	await(fd, 6 * sizeof(u32));
	check_eq(hear(fd), 0);
	check_eq(hear(fd), 1);
	check_eq(hear(fd), -1);
	must(shutdown(fd, SHUT_RD));
	check_eq(unread(fd), 0);
	check_ret(read_now(fd, NULL), 0);
	close(fd);

	fd = server(&self);
	check_ret(rds_reserve(fd, REPLY), 0);
	say(0, &self, 3);
	await(fd, 3 * sizeof(u32));
	close(fd);
	peers_close(2);
}

/* ----------------------------------------------------- without destination */

/* How often poll() reports something within a time, and a read finds nothing */
static int vain_wakes(int fd)
{
	long long end = tap_now_ms() + QUIET_MS, now;
	int wakes = 0;

	while ((now = tap_now_ms()) < end)
		if (poll_one(fd, POLLIN, end - now)) {
			check_err(read_now(fd, NULL), EAGAIN);
			wakes++;
		}
	return wakes;
}

/* There is place for one destination, and it is in use: the other source waits
 * for that, while the first goes on.
 */
static void no_place(void)
{
	union addr self;
	int fd = server(&self);
	long long barred;

	knob("net/xrds/sock_max_dests", 1);
	peers_open(2);
	check_ret(rds_reserve(fd, 1), 0);
	say(0, &self, 1);
	await(fd, sizeof(u32));
	check_eq(hear(fd), 0);
	barred = counter_now("reply_barred");
	say(1, &self, 2);
	await(fd, 2 * sizeof(u32));
	check_eq(hear(fd), -1);
	check(counter_now("reply_barred") > barred);
	check_range(vain_wakes(fd), 0, WAKES);
	for (int i = 0; i < 3; i++) {
		say(0, &self, 1);
		check_eq(poll_one(fd, POLLIN, tap_ms(WAIT_MS)), POLLIN);
		check_eq(hear(fd), 0);
	}
	for (int i = 0; i < 4; i++)
		check_ret(rds_release(fd, &peers[0].self), 0);
	check_eq(poll_one(fd, POLLIN, tap_ms(WAIT_MS)), POLLIN);
	check_eq(hear(fd), 1);
	check_eq(hear(fd), 1);
	peers_close(2);
	close(fd);
}

/* There is no memory for a destination, until others give theirs back: nothing
 * happens on this socket then.
 */
static void no_memory(void)
{
	union addr self;
	int fd = server(&self);

	peers_open(2);
	check_ret(rds_reserve(fd, 1), 0);
	say(0, &self, 1);
	await(fd, sizeof(u32));
	check_eq(hear(fd), 0);
	say(1, &self, 1);
	await(fd, sizeof(u32));
	knob("net/xrds/max_memory_kb", 1);
	check_eq(hear(fd), -1);
	check_eq(poll_one(fd, POLLIN, QUIET_MS / 2), 0);
	knob("net/xrds/max_memory_kb", MEMORY_KB);
	check_eq(poll_one(fd, POLLIN, tap_ms(WAIT_MS)), POLLIN);
	check_eq(hear(fd), 1);
	peers_close(2);
	close(fd);
}

/* The source that has waited for longest gets no place: the one behind it, which
 * has one, goes on when there is memory.
 */
static void no_place_first(void)
{
	union addr self;
	int fd = server(&self);

	knob("net/xrds/sock_max_dests", 1);
	peers_open(2);
	check_ret(rds_reserve(fd, 1), 0);
	say(0, &self, 1);
	await(fd, sizeof(u32));
	check_eq(hear(fd), 0);
	say(1, &self, 1);
	await(fd, sizeof(u32));
	check_eq(hear(fd), -1);
	say(0, &self, 1);
	await(fd, 2 * sizeof(u32));
	knob("net/xrds/max_memory_kb", 1);
	check_eq(hear(fd), -1);
	knob("net/xrds/max_memory_kb", MEMORY_KB);
	check_eq(poll_one(fd, POLLIN, tap_ms(WAIT_MS)), POLLIN);
	check_eq(hear(fd), 0);
	check_eq(hear(fd), -1);
	peers_close(2);
	close(fd);
}

static const struct tap_case cases[] = {
	{ "of_two", "calls are as fast with 100,000 held messages of 2 sources",
	  of_two, 0, 120 },
	{ "of_many", "and with as many of 1,000 sources", of_many, 0, 120 },
	{ "turns", "sources take turns", turns, 0, 0 },
	{ "as_arrived", "but without reservation", as_arrived, 0, 0 },
	{ "came_before", "messages that came before the option are held, too",
	  came_before, 0, 0 },
	{ "in_order", "messages of a source stay in order", in_order,
	  TAP_EACH_FAMILY, 60 },
	{ "listed", "held messages and one that was put back are listed",
	  listed, 0, 0 },
	{ "dropped", "held messages go with SHUT_RD and close()", dropped, 0,
	  0 },
	{ "no_place", "a source without destination stops no other", no_place,
	  0, 0 },
	{ "no_memory", "and is read when there is memory for one", no_memory, 0,
	  0 },
	{ "no_place_first", "nor does it stop one that waits for memory",
	  no_place_first, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
