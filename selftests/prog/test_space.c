// SPDX-License-Identifier: GPL-2.0-only
/*
 * Send space, receive limit and congestion: each refuses messages, a sender
 * waits as long as it should, and destinations do not take from each other.
 *
 * A destination without progress is made with the loopback's delay: nothing
 * is acknowledged before it has passed. A congested one is a socket that
 * nobody reads.
 *
 * timeout: 240
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "congest.h"
#include "counters.h"
#include "lazy.h"
#include "rdma.h"
#include "sock.h"
#include "tap.h"
#include "turns.h"
#include "waker.h"

enum {
	CHUNK		= 4096,
	SPACE		= 64 * 1024,
	TINY_BYTES	= 4096,
	HUGE_BYTES	= 20 * 1024 * 1024,
	MAX_CHUNKS	= 4096,		/* more than any limit here allows */
	TIMEOUT_MS	= 300,
	EARLY_MS	= 10,		/* a tick of the slowest kernel */
	LATE_MS		= 3000,		/* of a loaded machine */
	OVER_BYTES	= 1024 * 1024,	/* accepted though on the way */
	SMALL_DESTS	= 4,
	STREAM_BYTES	= 1024,
	STREAM_MSGS	= 1000,
	PINGS		= 20000,
	REPLIES		= 5,
	LOOKS		= 30000,
	BURST		= 32,
	PART		= 64 * 1024,
	PARTS		= 64,
	WINDOW		= 1024 * 1024,	/* of a stream */
};

static char chunk[CHUNK];

/* Sends without waiting until refused; how many bytes were accepted */
static long fill(int fd, const union addr *to, size_t len, int *error)
{
	for (int i = 0; i < MAX_CHUNKS; i++) {
		if (rds_send(fd, chunk, len, MSG_DONTWAIT, to) < 0) {
			*error = errno;
			return i * (long)len;
		}
	}
	tap_fail("%d messages of %zu bytes and no end", MAX_CHUNKS, len);
}

/* Of most cases: a sender, a receiver, and its address */
static int src, sink;
static union addr dest;

/* Both have small buffers. */
static void begin(void)
{
	src = rds_bound(NULL);
	sink = small_receiver(&dest);
	rds_set_int(src, SOL_SOCKET, SO_SNDBUF, SPACE);
}

static void begin_congested(void)
{
	begin();
	congest(src, &dest);
}

/* The sender has a small buffer, and nothing is acknowledged. */
static void begin_stalled(void)
{
	src = rds_bound(NULL);
	sink = rds_bound(&dest);
	rds_set_int(src, SOL_SOCKET, SO_SNDBUF, SPACE);
	stall_loop();
}

static void end(void)
{
	close(src);
	close(sink);
}

/* ------------------------------------------------------------------ space */

static void full(void)
{
	int error;

	begin_stalled();
	check_range(fill(src, &dest, CHUNK, &error), SPACE - CHUNK, SPACE + CHUNK);
	check_eq(error, EAGAIN);
	check_err(rds_send(src, chunk, CHUNK, MSG_DONTWAIT, &dest), EAGAIN);
	rds_nonblock(src);
	check_err(rds_send(src, chunk, CHUNK, 0, &dest), EAGAIN);
	end();
}

static void default_space(void)
{
	int fd = rds_bound(NULL), rx, error, space;
	union addr to;

	rx = rds_bound(&to);
	space = rds_get_int(fd, SOL_SOCKET, SO_SNDBUF) / 2;
	stall_loop();
	check_range(fill(fd, &to, CHUNK, &error), space - CHUNK, space + CHUNK);
	check_eq(error, EAGAIN);
	close(fd);
	close(rx);
}

static void partition(void)
{
	static const int nr = SMALL_DESTS;
	int fd = rds_bound(NULL), rx[SMALL_DESTS], error;
	union addr to[SMALL_DESTS];

	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	stall_loop();
	for (int i = 0; i < nr; i++) {
		tap_context("destination %d", i);
		rx[i] = rds_bound(&to[i]);
		check_range(fill(fd, &to[i], CHUNK, &error), SPACE - CHUNK,
			    SPACE + CHUNK);
		check_eq(error, EAGAIN);
	}
	for (int i = 0; i < nr; i++)
		close(rx[i]);
	close(fd);
}

static void one_always(void)
{
	void *data = calloc(1, MSG_MAX_BYTES);

	begin_stalled();
	check_ret(rds_send(src, data, MSG_MAX_BYTES, MSG_DONTWAIT, &dest),
		  MSG_MAX_BYTES);
	check_err(rds_send(src, data, 1, MSG_DONTWAIT, &dest), EAGAIN);
	end();
}

static void empty_messages(void)
{
	int error = 0, n;

	begin_stalled();
	for (n = 0; n < SPACE; n++) {
		if (rds_send(src, NULL, 0, MSG_DONTWAIT, &dest) < 0) {
			error = errno;
			break;
		}
	}
	check_eq(error, EAGAIN);
	check(n > 1 && n < SPACE);
	end();
}

/* Buffers are of payload, as they were asked for: small messages fill them as
 * large ones do.
 */
static void small_messages(void)
{
	int fd = rds_bound(NULL), rx, error;
	union addr to;

	rx = rds_bound(&to);
	for (int i = 0; i < 1000; i++)
		check_ret(rds_send(fd, chunk, 8, 0, &to), 8);
	for (int i = 0; i < 1000; i++)
		check_ret(rds_recv_within(rx, chunk, CHUNK, WAIT_MS, NULL), 8);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	stall_loop();
	check_eq(fill(fd, &to, 64, &error), SPACE);
	check_eq(error, EAGAIN);
	close(fd);
	close(rx);
}

static void dest_sndbuf(void)
{
	struct xrds_dest_sndbuf arg = { .bytes = 4 * SPACE };
	int fd = rds_bound(NULL), rx, other, error;
	union addr to, to_other;

	rx = rds_bound(&to);
	other = rds_bound(&to_other);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	memcpy(&arg.dest, &to, sizeof(to));
	must(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &arg, sizeof(arg)));
	stall_loop();
	check_range(fill(fd, &to, CHUNK, &error), 4 * SPACE - CHUNK,
		    4 * SPACE + CHUNK);
	check_eq(error, EAGAIN);
	check_range(fill(fd, &to_other, CHUNK, &error), SPACE - CHUNK,
		    SPACE + CHUNK);
	check_eq(error, EAGAIN);
	close(fd);
	close(rx);
	close(other);
}

static void dest_sndbuf_default(void)
{
	struct xrds_dest_sndbuf arg = { .bytes = 2 * SPACE };
	int fd = rds_bound(NULL), rx, error;
	union addr to;

	rx = rds_bound(&to);
	arg.dest.ss_family = AF_UNSPEC;
	must(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &arg, sizeof(arg)));
	stall_loop();
	check_range(fill(fd, &to, CHUNK, &error), 2 * SPACE - CHUNK,
		    2 * SPACE + CHUNK);
	check_eq(error, EAGAIN);
	close(fd);
	close(rx);
}

static void max_dests(void)
{
	int fd = rds_bound(NULL), rx[SMALL_DESTS + 1];
	union addr to[SMALL_DESTS + 1];

	for (int i = 0; i <= SMALL_DESTS; i++)
		rx[i] = rds_bound(&to[i]);
	knob("net/xrds/sock_max_dests", SMALL_DESTS);
	stall_loop();
	for (int i = 0; i < SMALL_DESTS; i++)
		check_ret(rds_send(fd, "x", 1, MSG_DONTWAIT, &to[i]), 1);
	check_err(rds_send(fd, "x", 1, MSG_DONTWAIT, &to[SMALL_DESTS]), ENFILE);
	check_ret(rds_send(fd, "x", 1, MSG_DONTWAIT, &to[0]), 1);
	for (int i = 0; i <= SMALL_DESTS; i++)
		close(rx[i]);
	close(fd);
}

struct sender {
	int fd;
	union addr to;
	const void *page;
	ssize_t ret;
	int error;
};

static bool accepted(void *arg)
{
	struct sender *s = arg;

	s->ret = rds_send(s->fd, "x", 1, MSG_DONTWAIT, &s->to);
	if (s->ret < 0)
		check_eq(errno, ENFILE);
	return s->ret > 0;
}

static void idle_dests(void)
{
	struct sender s = { .fd = rds_bound(NULL) };
	char byte;
	int rx;

	knob("net/xrds/sock_max_dests", SMALL_DESTS);
	for (int i = 0; i < 4 * SMALL_DESTS; i++) {
		tap_context("destination %d", i);
		rx = rds_bound(&s.to);
		/* the one before may not be acknowledged yet */
		must_wait(accepted, &s, WAIT_MS);
		check_ret(rds_recv_within(rx, &byte, 1, WAIT_MS, NULL), 1);
		close(rx);
	}
	close(s.fd);
}

/* Nor do those that have refused once, and are not full any more */
static void ready_dests(void)
{
	struct sender s = { .fd = rds_bound(NULL) };
	int rx;

	knob("net/xrds/sock_max_dests", SMALL_DESTS);
	for (int i = 0; i < 4 * SMALL_DESTS; i++) {
		tap_context("destination %d", i);
		rx = rds_bound(&s.to);
		rds_set_int(rx, SOL_SOCKET, SO_RCVBUF, SPACE);
		must_wait(accepted, &s, WAIT_MS);
		congest(s.fd, &s.to);
		close(rx);
		/* news of that is a state, too: it is read here */
		check(poll_one(s.fd, POLLIN, WAIT_MS) & POLLIN);
	}
	close(s.fd);
}

/* A program that waits for such a one tries it once more */
static void ready_gone(void)
{
	int fd = rds_bound(NULL), rx[SMALL_DESTS + 1];
	union addr to[SMALL_DESTS + 1];

	knob("net/xrds/sock_max_dests", SMALL_DESTS);
	for (int i = 0; i <= SMALL_DESTS; i++)
		rx[i] = small_receiver(&to[i]);
	for (int i = 0; i < SMALL_DESTS; i++)
		congest(fd, &to[i]);
	check_eq(poll_one(fd, POLLOUT, 0), 0);
	drain(rx[0]);
	/* the news do not stay, the room does */
	check(poll_one(fd, POLLIN, WAIT_MS) & POLLIN);
	check_eq(poll_one(fd, POLLOUT, 0), POLLOUT);
	check_ret(rds_send(fd, "x", 1, MSG_DONTWAIT, &to[SMALL_DESTS]), 1);
	check_eq(poll_one(fd, POLLOUT, 0), POLLOUT);
	check_err(rds_send(fd, "x", 1, MSG_DONTWAIT, &to[1]), ENOBUFS);
	check_eq(poll_one(fd, POLLOUT, 0), 0);
	for (int i = 0; i <= SMALL_DESTS; i++)
		close(rx[i]);
	close(fd);
}

/* ----------------------------------------------------------------- status */

struct acked {
	int fd;
	const union addr *to;
	u64 msgs;
	u64 inflight;
};

static bool all_acked(void *arg)
{
	const struct acked *a = arg;
	struct xrds_dest_status st;

	must(dest_status(a->fd, a->to, &st));
	return st.acked_msgs >= a->msgs;
}

static bool all_inflight(void *arg)
{
	const struct acked *a = arg;
	struct xrds_dest_status st;

	must(dest_status(a->fd, a->to, &st));
	return st.inflight_bytes >= a->inflight;
}

static void status_counts(void)
{
	struct xrds_dest_status st;
	int fd = rds_bound(NULL), rx;
	struct acked sent;
	union addr to;

	rx = rds_bound(&to);
	sent = (struct acked){ .fd = fd, .to = &to, .inflight = 3000 };
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	stall_loop();
	for (int i = 0; i < 3; i++)
		check_ret(rds_send(fd, chunk, 1000, MSG_DONTWAIT, &to), 1000);
	/* the connection may not have been up when they were sent */
	must_wait(all_inflight, &sent, WAIT_MS);
	must(dest_status(fd, &to, &st));
	check_eq(st.sndbuf, SPACE);
	check_eq(st.queued_msgs, 3);
	check_eq(st.queued_bytes, 3000);
	check_eq(st.inflight_bytes, 3000);
	check_eq(st.acked_msgs, 0);
	check_eq(st.last_progress_ns, 0);
	check_eq(st.reserved_bytes, 0);
	check_eq(st.rdma_issued, 0);
	check_eq(st.rdma_completed, 0);
	check_eq(st.flags, 0);
	check_eq(st.state, XRDS_DEST_UP);
	close(fd);
	close(rx);
}

/* However much space the sender has, it may have little under way. */
static void status_window(void)
{
	static char large[PART];
	struct xrds_dest_status st;
	int fd = rds_bound(NULL), rx;
	union addr to;

	rx = rds_bound(&to);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUFFORCE, 2 * PARTS * PART);
	check_ret(rds_send(fd, "x", 1, 0, &to), 1);
	must_wait(rds_all_acked, &fd, WAIT_MS);
	stall_loop();
	for (int i = 0; i < PARTS; i++)
		check_ret(rds_send(fd, large, PART, MSG_DONTWAIT, &to), PART);
	must(dest_status(fd, &to, &st));
	check_eq(st.queued_bytes, PARTS * PART);
	check_eq(st.inflight_bytes, WINDOW);
	close(fd);
	close(rx);
}

static void status_acked(void)
{
	struct xrds_dest_status st;
	struct acked acked;
	long long start;
	union addr to;
	int fd = rds_bound(NULL), rx;

	rx = rds_bound(&to);
	start = tap_tick_ms();
	for (int i = 0; i < 3; i++)
		check_ret(rds_send(fd, chunk, 1000, 0, &to), 1000);
	acked = (struct acked){ .fd = fd, .to = &to, .msgs = 3 };
	/* acknowledged by the kernel: nobody reads */
	must_wait(all_acked, &acked, WAIT_MS);
	must(dest_status(fd, &to, &st));
	check_eq(st.acked_msgs, 3);
	check_eq(st.queued_msgs, 0);
	check_eq(st.queued_bytes, 0);
	check_eq(st.inflight_bytes, 0);
	check_eq(st.state, XRDS_DEST_UP);
	check_range(st.last_progress_ns / 1000000, start, tap_now_ms());
	close(fd);
	close(rx);
}

struct burst {
	int tx, rx;
	union addr to;
	bool stop;
};

/* Messages come and go; each is in flight for a while. */
static void *burst_thread(void *arg)
{
	struct burst *b = arg;

	while (!READ_ONCE(b->stop)) {
		for (int i = 0; i < BURST; i++)
			check_ret(rds_send(b->tx, chunk, 64, 0, &b->to), 64);
		must_wait(rds_all_acked, &b->tx, WAIT_MS);
		drain(b->rx);
	}
	return NULL;
}

static void status_part(void)
{
	struct xrds_dest_status st;
	u64 most = 0, odd = 0;
	struct burst b = { 0 };
	pthread_t thread;

	b.tx = rds_bound(NULL);
	b.rx = rds_bound(&b.to);
	knob("net/xrds/loop/delay_ms", 1);
	must(-pthread_create(&thread, NULL, burst_thread, &b));
	for (int i = 0; i < tap_count(LOOKS); i++) {
		must(dest_status(b.tx, &b.to, &st));
		odd += st.inflight_bytes > st.queued_bytes;
		if (st.inflight_bytes > most)
			most = st.inflight_bytes;
	}
	WRITE_ONCE(b.stop, true);
	pthread_join(thread, NULL);
	tap_diag("at most %llu bytes in flight, %llu times more than queued",
		 (unsigned long long)most, (unsigned long long)odd);
	check(most);
	check_eq(odd, 0);
	close(b.tx);
	close(b.rx);
}

static void status_blocked(void)
{
	struct xrds_dest_status st;

	begin_congested();
	must(dest_status(src, &dest, &st));
	check_eq(st.flags & (XRDS_DEST_CONGESTED | XRDS_DEST_BLOCKED),
		 XRDS_DEST_CONGESTED | XRDS_DEST_BLOCKED);
	check_eq(drain_until(sink, src, POLLOUT), POLLOUT);
	must(dest_status(src, &dest, &st));
	check_eq(st.flags & XRDS_DEST_BLOCKED, 0);
	end();
}

/* ------------------------------------------------------------- congestion */

static void congested(void)
{
	begin_congested();
	check_err(rds_send(src, chunk, 1, MSG_DONTWAIT, &dest), ENOBUFS);
	check_err(rds_send(src, NULL, 0, MSG_DONTWAIT, &dest), ENOBUFS);
	end();
}

static void cong_eagain(void)
{
	begin_congested();
	rds_set_int(src, SOL_RDS, XRDS_CONG_EAGAIN, 1);
	check_eq(rds_get_int(src, SOL_RDS, XRDS_CONG_EAGAIN), 1);
	check_err(rds_send(src, chunk, 1, MSG_DONTWAIT, &dest), EAGAIN);
	rds_set_int(src, SOL_RDS, XRDS_CONG_EAGAIN, 0);
	check_err(rds_send(src, chunk, 1, MSG_DONTWAIT, &dest), ENOBUFS);
	end();
}

static void self_congested(void)
{
	union addr self;
	int fd = rds_bound(&self);

	rds_set_int(fd, SOL_SOCKET, SO_RCVBUF, SPACE);
	congest(fd, &self);
	check_eq(drain_until(fd, fd, POLLOUT), POLLOUT);
	rds_timeout(fd, SO_SNDTIMEO, tap_ms(WAIT_MS));
	check_ret(rds_send(fd, chunk, 1, 0, &self), 1);
	close(fd);
}

static void receive_limit(void)
{
	long long bytes = CHUNK;
	int refused = 0;

	begin();
	/* the connection is up */
	check_ret(rds_send(src, chunk, CHUNK, 0, &dest), CHUNK);
	must_wait(rds_all_acked, &src, WAIT_MS);
	while (refused < 20 && bytes <= 3 * SPACE + OVER_BYTES) {
		if (rds_send(src, chunk, CHUNK, MSG_DONTWAIT, &dest) > 0) {
			bytes += CHUNK;
			continue;
		}
		refused++;
		poll_one(src, POLLOUT, 50);
	}
	/* the limit, messages on their way, messages that the sender may have
	 * queued
	 */
	check_range(bytes, SPACE, 2 * SPACE + OVER_BYTES);
	check_range(drain(sink) * (long long)CHUNK, SPACE, SPACE + OVER_BYTES);
	end();
}

/* 20 MiB of a blocking sender, into 4 KiB that nobody reads */
static void tiny_limit(void)
{
	int tx = rds_bound(NULL), rx, refused = 0, inq;
	long long bytes = CHUNK, sndbuf;
	union addr to;

	rx = rds_bound(&to);
	rds_set_int(rx, SOL_SOCKET, SO_RCVBUF, TINY_BYTES);
	sndbuf = rds_get_int(tx, SOL_SOCKET, SO_SNDBUF) / 2;
	/* the connection is up */
	check_ret(rds_send(tx, chunk, CHUNK, 0, &to), CHUNK);
	must_wait(rds_all_acked, &tx, WAIT_MS);
	rds_timeout(tx, SO_SNDTIMEO, 20);
	for (int i = 0; i < HUGE_BYTES / CHUNK && refused < 10; i++) {
		if (rds_send(tx, chunk, CHUNK, 0, &to) > 0) {
			bytes += CHUNK;
			continue;
		}
		check_eq(errno, ETIMEDOUT);
		refused++;
	}
	check_eq(refused, 10);
	check_range(bytes, TINY_BYTES, TINY_BYTES + CHUNK + sndbuf);
	must(ioctl(rx, SIOCINQ, &inq));
	check_range(inq, TINY_BYTES, TINY_BYTES + CHUNK + sndbuf);
	close(tx);
	close(rx);
}

static int queued_at(int fd)
{
	int bytes;

	must(ioctl(fd, SIOCINQ, &bytes));
	return bytes;
}

static void half_drained(void)
{
	static char data[CHUNK];

	begin_congested();
	check_range(queued_at(sink), SPACE, SPACE + OVER_BYTES);
	while (queued_at(sink) > SPACE / 2) {
		check_eq(poll_one(src, POLLOUT, 5), 0);
		check_ret(rds_recv(sink, data, CHUNK, MSG_DONTWAIT, NULL), CHUNK);
	}
	/* half of the limit is left, and nothing more is read */
	check_eq(poll_one(src, POLLOUT, tap_ms(WAIT_MS)), POLLOUT);
	check_ret(rds_send(src, chunk, 1, MSG_DONTWAIT, &dest), 1);
	end();
}

static void bystander(void)
{
	union addr to_live;
	int live;
	char byte;

	begin_congested();
	live = rds_bound(&to_live);
	for (int i = 0; i < 1000; i++) {
		check_ret(rds_send(src, "x", 1, 0, &to_live), 1);
		check_ret(rds_recv_within(live, &byte, 1, WAIT_MS, NULL), 1);
	}
	check_err(rds_send(src, chunk, 1, MSG_DONTWAIT, &dest), ENOBUFS);
	close(live);
	end();
}

static void nothing_lost(void)
{
	u64 sent = 0, got = 0, number;
	char data[CHUNK] = "";

	begin();
	for (int round = 0; round < 20; round++) {
		for (;;) {
			memcpy(data, &sent, sizeof(sent));
			if (rds_send(src, data, CHUNK, MSG_DONTWAIT, &dest) < 0)
				break;
			sent++;
		}
		for (int i = 0; i < 5 + round; i++) {
			if (rds_recv(sink, data, CHUNK, MSG_DONTWAIT, NULL) < 0)
				break;
			memcpy(&number, data, sizeof(number));
			if (number != got)
				tap_fail("message %llu, not %llu", number, got);
			got++;
		}
	}
	for (; got < sent; got++) {
		must(rds_recv_within(sink, data, CHUNK, WAIT_MS, NULL));
		memcpy(&number, data, sizeof(number));
		if (number != got)
			tap_fail("message %llu, not %llu", number, got);
	}
	check_err(rds_recv(sink, data, CHUNK, MSG_DONTWAIT, NULL), EAGAIN);
	end();
}

/* --------------------------------------------------------------- timeouts */

static void full_timeout(void)
{
	int fd = rds_bound(NULL), rx, error;
	long long start;
	union addr to;

	rx = rds_bound(&to);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	rds_timeout(fd, SO_SNDTIMEO, TIMEOUT_MS);
	stall_loop();
	fill(fd, &to, CHUNK, &error);
	turns_begin();
	start = tap_tick_ms();
	check_err(rds_send(fd, chunk, CHUNK, 0, &to), ETIMEDOUT);
	check_took(start, TIMEOUT_MS - EARLY_MS, TIMEOUT_MS + tap_ms(LATE_MS));
	close(fd);
	close(rx);
}

static void cong_timeout(void)
{
	long long start;

	begin_congested();
	rds_timeout(src, SO_SNDTIMEO, TIMEOUT_MS);
	turns_begin();
	start = tap_tick_ms();
	check_err(rds_send(src, chunk, CHUNK, 0, &dest), ETIMEDOUT);
	check_took(start, TIMEOUT_MS - EARLY_MS, TIMEOUT_MS + tap_ms(LATE_MS));
	end();
}

static void dontwait(void)
{
	/* a blocking wait would end the case by its time limit */
	begin_congested();
	for (int i = 0; i < 100; i++)
		check_err(rds_send(src, chunk, CHUNK, MSG_DONTWAIT, &dest),
			  ENOBUFS);
	end();
}

static void *send_thread(void *arg)
{
	struct sender *s = arg;

	s->ret = rds_send(s->fd, chunk, CHUNK, 0, &s->to);
	s->error = errno;
	return NULL;
}

static void full_wakes(void)
{
	struct sender s = { .fd = rds_bound(NULL) };
	int rx, error;
	pthread_t thread;

	rx = rds_bound(&s.to);
	rds_set_int(s.fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	stall_loop();
	fill(s.fd, &s.to, CHUNK, &error);
	check_eq(error, EAGAIN);
	pthread_create(&thread, NULL, send_thread, &s);
	/* the refusal that makes it sleep is counted */
	check(counter_reaches("send_queue_full", 2, WAIT_MS));
	knob("net/xrds/loop/delay_ms", 0);
	pthread_join(thread, NULL);
	check_eq(s.ret, CHUNK);
	close(s.fd);
	close(rx);
}

static bool refused(void *arg)
{
	const struct sender *s = arg;
	struct xrds_dest_status st;

	must(dest_status(s->fd, &s->to, &st));
	return st.flags & XRDS_DEST_BLOCKED;
}

/* A message that still fits passes one that waits, which must not be forgotten
 * for that, nor must who polls.
 */
static void overtaken(void)
{
	struct sender s = { .fd = rds_bound(NULL) };
	pthread_t thread;
	struct waker w;
	int rx;

	rx = rds_bound(&s.to);
	rds_set_int(s.fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	rds_timeout(s.fd, SO_SNDTIMEO, tap_ms(WAIT_MS));
	stall_loop();
	for (int i = 0; i < SPACE / CHUNK - 1; i++)
		check_ret(rds_send(s.fd, chunk, CHUNK, 0, &s.to), CHUNK);
	check_ret(rds_send(s.fd, chunk, CHUNK / 2, 0, &s.to), CHUNK / 2);
	pthread_create(&thread, NULL, send_thread, &s);
	must_wait(refused, &s, WAIT_MS);
	waker_start(&w, s.fd, POLLOUT);
	check_ret(rds_send(s.fd, "x", 1, MSG_DONTWAIT, &s.to), 1);
	/* messages under way make room, and not only by being acknowledged */
	must(setsockopt(s.fd, SOL_RDS, RDS_CANCEL_SENT_TO, NULL, 0));
	pthread_join(thread, NULL);
	check_ret(s.ret, CHUNK);
	check_eq(pthread_join(w.thread, NULL), 0);
	check_eq(w.seen, POLLOUT);
	close(s.fd);
	close(rx);
}

static void more_space_once(bool by_option)
{
	struct xrds_dest_sndbuf arg = { .bytes = SPACE + SPACE / 2 };
	struct xrds_dest_status st;
	struct sender s = { .fd = rds_bound(NULL) };
	pthread_t thread;
	struct waker w;
	int rx, error;

	rx = rds_bound(&s.to);
	rds_set_int(s.fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	stall_loop();
	fill(s.fd, &s.to, CHUNK, &error);
	check_eq(error, EAGAIN);
	pthread_create(&thread, NULL, send_thread, &s);
	must_wait(refused, &s, WAIT_MS);
	waker_start(&w, s.fd, POLLOUT);
	arg.dest.ss_family = AF_UNSPEC;
	if (by_option)
		must(setsockopt(s.fd, SOL_RDS, XRDS_DEST_SNDBUF, &arg,
				sizeof(arg)));
	else
		rds_set_int(s.fd, SOL_SOCKET, SO_SNDBUF, SPACE + SPACE / 2);
	pthread_join(thread, NULL);
	check_ret(s.ret, CHUNK);
	check_eq(pthread_join(w.thread, NULL), 0);
	check_eq(w.seen, POLLOUT);
	/* not the first acknowledgment has woken them */
	must(dest_status(s.fd, &s.to, &st));
	check(st.queued_bytes > SPACE);
	close(s.fd);
	close(rx);
}

static void more_space(void)
{
	more_space_once(false);
	more_space_once(true);
}

static void cong_wakes(void)
{
	pthread_t thread;
	struct sender s;

	begin_congested();
	s = (struct sender){ .fd = src, .to = dest };
	pthread_create(&thread, NULL, send_thread, &s);
	/* whether it sleeps already or not: it must get through */
	while (pthread_tryjoin_np(thread, NULL))
		if (!drain(sink))
			poll_one(sink, POLLIN, 10);
	check_eq(s.ret, CHUNK);
	end();
}

static void cong_receiver_closes(void)
{
	pthread_t thread;
	struct sender s;
	int other;

	begin();
	other = rds_bound(NULL);
	congest(other, &dest);
	s = (struct sender){ .fd = src, .to = dest };
	pthread_create(&thread, NULL, send_thread, &s);
	must_wait(refused, &s, WAIT_MS);
	close(sink);
	pthread_join(thread, NULL);
	check_eq(s.ret, CHUNK);
	close(other);
	close(src);
}

/* ---------------------------------------------------------------- signals */

static void signal_full(void)
{
	int error;

	begin_stalled();
	fill(src, &dest, CHUNK, &error);
	tap_interrupt(TIMEOUT_MS, 0);
	check_err(rds_send(src, chunk, CHUNK, 0, &dest), EINTR);
	end();
}

static void signal_restarts(void)
{
	struct sender s;
	pthread_t thread;
	int error;

	begin_stalled();
	fill(src, &dest, CHUNK, &error);
	tap_interrupt(0, SA_RESTART);
	s = (struct sender){ .fd = src, .to = dest };
	pthread_create(&thread, NULL, send_thread, &s);
	must_wait(refused, &s, WAIT_MS);
	check_eq(pthread_kill(thread, SIGALRM), 0);
	knob("net/xrds/loop/delay_ms", 0);
	pthread_join(thread, NULL);
	check_eq(s.ret, CHUNK);
	end();
}

static void signal_congested(void)
{
	begin_congested();
	tap_interrupt(TIMEOUT_MS, 0);
	check_err(rds_send(src, chunk, CHUNK, 0, &dest), EINTR);
	/* with a timeout a restart would wait too long: never restarted */
	rds_timeout(src, SO_SNDTIMEO, tap_ms(WAIT_MS));
	tap_interrupt(TIMEOUT_MS, SA_RESTART);
	check_err(rds_send(src, chunk, CHUNK, 0, &dest), EINTR);
	end();
}

/* ------------------------------------------------------------ acknowledgments */

/* One that has used up most of its space all the time, and asks now and then */
static void few_asks(void)
{
	int fd = rds_bound(NULL), rx;
	long long asked, since;
	union addr to;

	rx = rds_bound(&to);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	knob("net/xrds/loop/delay_ms", 1);
	asked = counter_now("send_ack_required");
	for (int i = 0; i < STREAM_MSGS; i++) {
		must(rds_send(fd, chunk, STREAM_BYTES, 0, &to));
		drain(rx);
	}
	since = counter_now("send_ack_required") - asked;
	/* four times for each filling, and the ends of some */
	check_range(since, STREAM_MSGS * STREAM_BYTES / SPACE,
		    6 * STREAM_MSGS * STREAM_BYTES / SPACE);
	close(fd);
	close(rx);
}

static bool is_zero(void *name)
{
	return !counter_now(name);
}

/* A sender waits, as he has not read his replies, and meanwhile his connection is
 * idle and ends. Then the destination is congested, and he is woken: on a connection
 * that nobody tells of the end of congestion. He can be killed.
 */
static void dead_conn(void)
{
	long long full, collected;
	int rx, tx, filler;
	union addr to, self;
	pid_t pid;

	knob("net/xrds/idle_ms", 20);
	rx = small_receiver(&to);
	rds_set_int(rx, SOL_RDS, XRDS_REPLY_RESERVE, TINY_BYTES);
	filler = rds_bound(NULL);
	tx = rds_bound_to("127.0.0.9", 0, &self);
	rds_set_int(tx, SOL_SOCKET, SO_RCVBUF, TINY_BYTES);
	for (int i = 0; i < REPLIES; i++)
		must(rds_send(tx, "x", 1, 0, &to));
	for (int i = 0; i < REPLIES; i++) {
		check_ret(rds_recv_within(rx, chunk, 1, WAIT_MS, NULL), 1);
		check_ret(rds_send(rx, chunk, TINY_BYTES, 0, &self),
			  TINY_BYTES);
	}
	must_wait(rds_all_acked, &rx, WAIT_MS);
	check_err(rds_send(tx, "x", 1, MSG_DONTWAIT, &to), EAGAIN);
	must_wait(is_zero, "obj_conns", WAIT_MS);
	collected = counter_now("conn_collected");
	full = counter_now("send_queue_full");
	pid = must(fork());
	if (!pid) {
		rds_send(tx, "x", 1, 0, &to);
		_exit(0);
	}
	check(counter_reaches("send_queue_full", full + 1, WAIT_MS));
	check(counter_reaches("conn_collected", collected + 1, WAIT_MS));
	congest(filler, &to);
	check_eq(drain(tx), REPLIES);
	check_range(tap_kill(pid, NULL), 0, tap_ms(TAP_KILL_MS));
	close(filler);
	close(rx);
	close(tx);
}

/* A sender of pings that reads no answer gets no more of them than other
 * messages.
 */
static void unread_pongs(void)
{
	union addr self, zero;
	int fd, nr = 0;
	char byte;

	fd = rds_bound(&self);
	rds_set_int(fd, SOL_SOCKET, SO_RCVBUF, TINY_BYTES);
	zero = self;
	addr_set_port(&zero, 0);
	for (int i = 0; i < PINGS; i++)
		must(rds_send(fd, "", 0, 0, &zero));
	while (rds_recv_within(fd, &byte, 1, nr ? TIMEOUT_MS : WAIT_MS,
			       NULL) >= 0)
		nr++;
	tap_note("%d of %d answered", nr, PINGS);
	check(nr > 0);
	check(nr < PINGS / 4);
	/* and now that they are read they come again */
	must(rds_send(fd, "", 0, 0, &zero));
	check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL), 0);
	close(fd);
}

static void *send_page(void *arg)
{
	struct sender *s = arg;

	s->ret = rds_send(s->fd, s->page, PAGE_BYTES, MSG_DONTWAIT, &s->to);
	s->error = errno;
	return NULL;
}

/* The copy of the payload sleeps, and the receiver is congested when it is over. */
static void congested_meanwhile(void)
{
	int other = rds_bound(NULL);
	struct lazy memory;
	pthread_t thread;
	struct sender s;

	begin();
	lazy_open(&memory);
	s = (struct sender){ .fd = src, .to = dest, .page = memory.page };
	check_ret(rds_send(src, "x", 1, 0, &dest), 1);
	must_wait(rds_all_acked, &src, WAIT_MS);

	check_eq(pthread_create(&thread, NULL, send_page, &s), 0);
	lazy_await(&memory);
	congest(other, &dest);
	lazy_fill(&memory);
	pthread_join(thread, NULL);
	check_eq(s.ret, -1);
	check_eq(s.error, ENOBUFS);
	lazy_close(&memory);
	close(other);
	end();
}

static bool no_conns(void *arg)
{
	(void)arg;
	return !counter_now("obj_conns");
}

/* The only message that a connection was made for cannot be read. */
static void never_up(void)
{
	int fd = rds_bound_to("127.0.0.9", 0, NULL);

	knob("net/xrds/idle_ms", 20);
	begin();
	must_wait(no_conns, NULL, WAIT_MS);
	knob("net/xrds/idle_ms", 0);
	check_err(rds_send(fd, (void *)1, 1, 0, &dest), EFAULT);
	close(fd);
	must_wait(no_conns, NULL, WAIT_MS);
	end();
}

static const struct tap_case cases[] = {
	{ "full", "a destination without progress takes its space, then EAGAIN",
	  full, TAP_EACH_FAMILY, 0 },
	{ "default_space", "the space is SO_SNDBUF's value by default",
	  default_space, 0, 0 },
	{ "partition", "each destination has all of its space", partition,
	  TAP_EACH_FAMILY, 0 },
	{ "one_always", "an empty destination accepts 1 MiB, then nothing",
	  one_always, 0, 0 },
	{ "empty_messages", "empty messages are not without bound",
	  empty_messages, 0, 0 },
	{ "small_messages", "a thousand small ones wait, 64 KiB of them are sent",
	  small_messages, 0, 0 },
	{ "dest_sndbuf", "XRDS_DEST_SNDBUF sets one destination's space",
	  dest_sndbuf, TAP_EACH_FAMILY, 0 },
	{ "dest_sndbuf_default", "XRDS_DEST_SNDBUF sets everyone's space",
	  dest_sndbuf_default, 0, 0 },
	{ "max_dests", "queues for more than sock_max_dests: ENFILE",
	  max_dests, 0, 0 },
	{ "idle_dests", "destinations without a queue do not count", idle_dests,
	  0, 0 },
	{ "ready_dests", "nor do those that would take a message again",
	  ready_dests, 0, 0 },
	{ "ready_gone", "and their space can still be polled for", ready_gone,
	  0, 0 },
	{ "status_counts", "XRDS_DEST_STATUS counts what is queued",
	  status_counts, TAP_EACH_FAMILY, 0 },
	{ "status_window", "XRDS_DEST_STATUS: a stream has 1 MiB in flight at most",
	  status_window, 0, 0 },
	{ "status_part", "XRDS_DEST_STATUS: no more is in flight than is queued",
	  status_part, 0, 0 },
	{ "status_acked", "XRDS_DEST_STATUS counts what was acknowledged",
	  status_acked, TAP_EACH_FAMILY, 0 },
	{ "status_blocked", "XRDS_DEST_STATUS tells congestion and its end",
	  status_blocked, TAP_EACH_FAMILY, 0 },
	{ "congested", "a receiver over SO_RCVBUF refuses: ENOBUFS", congested,
	  TAP_EACH_FAMILY, 0 },
	{ "congested_meanwhile", "so it does if that began during the copy",
	  congested_meanwhile, TAP_EACH_FAMILY, 0 },
	{ "never_up", "a connection goes whose only message cannot be read",
	  never_up, 0, 0 },
	{ "cong_eagain", "XRDS_CONG_EAGAIN makes that EAGAIN", cong_eagain,
	  0, 0 },
	{ "self_congested", "a socket congests itself and recovers",
	  self_congested, 0, 0 },
	{ "tiny_limit", "20 MiB into a receive buffer of 4 KiB stop",
	  tiny_limit, 0, 0 },
	{ "receive_limit", "SO_RCVBUF bounds what a receiver is given",
	  receive_limit, TAP_EACH_FAMILY, 0 },
	{ "half_drained", "congestion ends at half of the limit", half_drained,
	  0, 0 },
	{ "bystander", "a congested destination does not hold up another",
	  bystander, TAP_EACH_FAMILY, 60 },
	{ "nothing_lost", "accepted messages arrive, in order, despite limits",
	  nothing_lost, TAP_EACH_FAMILY, 60 },
	{ "full_timeout", "SO_SNDTIMEO bounds the wait for space: ETIMEDOUT",
	  full_timeout, TAP_EACH_FAMILY, 0 },
	{ "cong_timeout", "SO_SNDTIMEO bounds the wait for congestion",
	  cong_timeout, TAP_EACH_FAMILY, 0 },
	{ "dontwait", "MSG_DONTWAIT does not wait for congestion", dontwait,
	  0, 0 },
	{ "full_wakes", "a sender that waits for space gets it", full_wakes,
	  TAP_EACH_FAMILY, 0 },
	{ "overtaken", "so does one that a smaller message has passed",
	  overtaken, TAP_EACH_FAMILY, 0 },
	{ "more_space", "more space wakes a sender that was refused",
	  more_space, TAP_EACH_FAMILY, 0 },
	{ "cong_wakes", "a sender that waits for congestion gets through",
	  cong_wakes, TAP_EACH_FAMILY, 0 },
	{ "cong_receiver_closes", "a closed receiver does not block for ever",
	  cong_receiver_closes, TAP_EACH_FAMILY, 0 },
	{ "dead_conn",
	  "a sender that waits while its connection ends can be killed",
	  dead_conn, 0, 0 },
	{ "unread_pongs", "answers to pings that nobody reads are few",
	  unread_pongs, 0, 60 },
	{ "few_asks", "a sender short of space asks for few acknowledgments",
	  few_asks, 0, 60 },
	{ "signal_restarts", "with SA_RESTART it goes on", signal_restarts, 0, 0 },
	{ "signal_full", "a signal ends the wait for space: EINTR", signal_full,
	  0, 0 },
	{ "signal_congested", "a signal ends the wait for congestion: EINTR",
	  signal_congested, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
