// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bounds in KiB bound the node's memory: messages of any size, and mixtures,
 * take no more of it than the sysctl allows. A debug kernel takes more for its
 * own purposes.
 *
 * timeout: 300
 * kernels: 6.1 6.12 7.2
 */
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "counters.h"
#include "lazy.h"
#include "rdma.h"
#include "sock.h"
#include "tap.h"

enum {
	BOUND_KB	= 12 << 10,
	KEPT		= 600,		/* a message that stays */
	PASSING		= 4096,		/* others, which are read at once */
	PASSING_NR	= 7,
	LOOK		= 64,		/* small messages between two looks */
	READERS		= 100,
	ROOM		= 1 << 28,
	HOUR_MS		= 3600000,
	DRAIN_MS	= 20000,
};

static char data[1 << 20];

/* Of the node's memory; the kernel keeps some of it in caches. */
static void check_taken(long long before, const char *what)
{
	long long taken = before - memory_available();

	tap_diag("%s: %lld KiB of %d KiB", what, taken >> 10, BOUND_KB);
	check(taken <= BOUND_KB * 1024LL * 13 / 10);
}

static bool too_much(long long before)
{
	return before - memory_available() > 2 * BOUND_KB * 1024LL;
}

/* Until a message is refused */
static void fill(int fd, size_t bytes, const union addr *to, long long before)
{
	for (int n = 1; rds_send(fd, data, bytes, MSG_DONTWAIT, to) >= 0; n++)
		if ((n % LOOK == 0 || bytes > PASSING) && too_much(before))
			break;
}

static int roomy(void)
{
	struct xrds_dest_sndbuf arg = { .bytes = ~0u };
	int fd = rds_bound(NULL);

	must(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &arg, sizeof(arg)));
	return fd;
}

static int reader(union addr *me)
{
	int fd = rds_bound(me), size = ROOM;

	must(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)));
	return fd;
}

static const size_t sizes[] = { 1, 64, 1 << 10, 4 << 10, 64 << 10, 1 << 20 };

static bool none_left(void *counter)
{
	return !counter_now(counter);
}

static void queued(void)
{
	union addr to = addr_of(tap_host, 4000);
	long long before;
	int sink, fd;

	knob("net/xrds/max_memory_kb", BOUND_KB);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		tap_context("%zu bytes", sizes[i]);
		knob("net/xrds/loop/delay_ms", HOUR_MS);
		sink = rds_bound_to(tap_host, 4000, NULL);
		fd = roomy();
		before = memory_available();
		fill(fd, sizes[i], &to, before);
		check_eq(errno, EDQUOT);
		check_taken(before, "queued");
		must(setsockopt(fd, SOL_RDS, RDS_CANCEL_SENT_TO, NULL, 0));
		/* cancelled messages that are under way arrive only now */
		knob("net/xrds/loop/delay_ms", 0);
		close(fd);
		must_wait(none_left, "obj_msgs", DRAIN_MS);
		close(sink);
	}
}

static void unread(void)
{
	long long before;
	union addr to;
	int tx, rx;

	knob("net/xrds/max_recv_kb", BOUND_KB);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		tap_context("%zu bytes", sizes[i]);
		tx = roomy();
		rx = reader(&to);
		before = memory_available();
		fill(tx, sizes[i], &to, before);
		check_eq(errno, ENOBUFS);
		check_taken(before, "unread");
		close(rx);
		close(tx);
	}
}

/* It makes no difference how many sockets they wait in. */
static void unread_by_many(void)
{
	int tx, rx[READERS], taken;
	union addr to[READERS];
	long long before;

	knob("net/xrds/max_recv_kb", BOUND_KB);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		tap_context("%zu bytes", sizes[i]);
		tx = roomy();
		for (int n = 0; n < READERS; n++)
			rx[n] = reader(&to[n]);
		before = memory_available();
		do {
			taken = 0;
			for (int n = 0; n < READERS; n++)
				taken += rds_send(tx, data, sizes[i],
						  MSG_DONTWAIT, &to[n]) >= 0;
		} while (taken && !too_much(before));
		check_eq(taken, 0);
		check_eq(errno, ENOBUFS);
		check_taken(before, "unread");
		for (int n = 0; n < READERS; n++)
			close(rx[n]);
		close(tx);
	}
}

/* Each message stays alone of those that were sent with it. */
static void unread_alone(void)
{
	union addr to, passing;
	int tx = roomy(), rx = reader(&to), other = reader(&passing);
	long long before = memory_available();

	knob("net/xrds/max_recv_kb", BOUND_KB);
	for (int n = 1; rds_send(tx, data, KEPT, MSG_DONTWAIT, &to) >= 0; n++) {
		for (int i = 0; i < PASSING_NR; i++) {
			check_ret(rds_send(tx, data, PASSING, 0, &passing),
				  PASSING);
			check_ret(rds_recv(other, data, PASSING, 0, NULL),
				  PASSING);
		}
		if (n % LOOK == 0 && too_much(before))
			break;
	}
	check_taken(before, "unread");
	check_eq(rds_send(tx, data, KEPT, MSG_DONTWAIT, &to), -1);
	close(rx);
	close(other);
	close(tx);
}

static struct {
	int fd;
	struct lazy memory;
	ssize_t ret;
} slow;

static void *read_slowly(void *arg)
{
	(void)arg;
	slow.ret = rds_recv(slow.fd, slow.memory.page, PAGE_BYTES, MSG_TRUNC,
			    NULL);
	return NULL;
}

/* A reader that sleeps for its own memory has the message. */
static void half_read(void)
{
	int tx = rds_bound(NULL);
	pthread_t thread;
	union addr to;

	lazy_open(&slow.memory);
	slow.fd = rds_bound(&to);
	must(rds_send(tx, data, sizeof(data), 0, &to));
	check_eq(pthread_create(&thread, NULL, read_slowly, NULL), 0);
	lazy_await(&slow.memory);
	check(!poll_one(slow.fd, POLLIN, 0));
	check(counter_now("used_recv") >= (long long)sizeof(data));
	lazy_fill(&slow.memory);
	pthread_join(thread, NULL);
	check_eq(slow.ret, sizeof(data));
	check_eq(counter_now("used_recv"), 0);
	lazy_close(&slow.memory);
	close(slow.fd);
	close(tx);
}

static const struct tap_case cases[] = {
	{ "queued", "messages that wait to be sent take what the bound says",
	  queued, 0, 120 },
	{ "unread", "so do messages that wait to be read", unread, 0, 120 },
	{ "unread_by_many", "so do those of many sockets together",
	  unread_by_many, 0, 120 },
	{ "unread_alone", "also if all others of the same time were read",
	  unread_alone, 0, 120 },
	{ "half_read", "a message counts until its reader has all of it",
	  half_read, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
