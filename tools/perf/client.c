// SPDX-License-Identifier: GPL-2.0-only
/*
 * The client: sends the order to the server, makes the load, and measures the
 * time. perf.h has the protocol between the two. One function for each mode
 * runs until the number or the time of the options is reached; a sync with the
 * server's child begins and ends the measurement.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "perf.h"

enum { CHECK_EVERY = 64 };	/* messages between looks at the clock */

static int fds[MAX_SOCKETS];
static struct address peer;	/* the child that serves this client */
static uint64_t cookie;		/* of the child's memory */
static char *memory, *in;
static uint64_t total;		/* messages that the child should have got */

/* How long a loop goes on */
struct span {
	uint64_t count;		/* 0: until the end */
	uint64_t end_ns;
};

/* ------------------------------------------------------------------- order */

static void wait_note(int fd, enum kind what, struct arrival *arrival)
{
	do {
		receive(fd, in, MAX_BYTES, arrival);
		if (arrival->ended)
			die("the server", ECONNRESET);
	} while (!is_note(in, arrival->bytes) ||
		 ntohl(((struct note *)in)->kind) != what);
}

static void sync_up(void)
{
	struct arrival arrival;

	send_note(fds[0], &peer, SYNC, total);
	wait_note(fds[0], DONE, &arrival);
}

/* Mainline's AF_RDS has none. */
static bool has_barrier(void)
{
	socklen_t len = sizeof(int);
	int value;

	return !getsockopt(fds[0], SOL_RDS, XRDS_CONG_EAGAIN, &value, &len);
}

static void open_sockets(const struct address *from)
{
	struct rlimit files = { opt.sockets + opt.idle + 64,
				opt.sockets + opt.idle + 64 };

	if (opt.sockets + opt.idle > 1000 && setrlimit(RLIMIT_NOFILE, &files))
		die("RLIMIT_NOFILE", errno);
	for (uint32_t i = 0; i < opt.idle; i++)
		open_socket(from);
	for (uint32_t i = 0; i < opt.sockets; i++) {
		fds[i] = open_socket(from);
		set_buffers(fds[i]);
		set_patience(fds[i], PATIENCE_S);
	}
}

/* Create destinations: nobody reads there, so the messages are dropped. */
static void meet_strangers(struct address server)
{
	for (uint32_t i = 0; i < opt.strangers; i++) {
		set_port(&server, STRANGE_PORT + i);
		send_plain(fds[0], &server, NULL, 0);
	}
}

static void give_order(void)
{
	struct address server, from = {};
	struct arrival arrival;

	resolve(opt.host, opt.port, &server);
	if (opt.over_unix) {
		open_sockets(NULL);
		if (connect(fds[0], (struct sockaddr *)&server.ss, server.len))
			die("connect", errno);
		server.len = 0;
	} else {
		if (opt.source)
			resolve(opt.source, 0, &from);
		else
			choose_source(&server, &from);
		open_sockets(&from);
	}
	if (!opt.over_unix && !has_barrier())
		opt.notices = true;
	meet_strangers(server);
	send_note(fds[0], &server, ORDER, 0);
	wait_note(fds[0], READY, &arrival);
	if (opt.over_unix)
		return;
	peer = arrival.from;
	cookie = arrival.cookie;
	if ((opt.mode == WRITE || opt.mode == READ) && !arrival.cookie_came)
		die("no key came with the answer", EPROTO);
}

/* ------------------------------------------------------------------- loops */

static bool over(const struct span *span, uint64_t done)
{
	if (span->count)
		return done >= span->count;
	return done % CHECK_EVERY == 0 && now_ns() >= span->end_ns;
}

static void take_answer(int fd)
{
	struct arrival arrival;

	do {
		receive(fd, in, MAX_BYTES, &arrival);
		if (arrival.ended)
			die("the server", ECONNRESET);
	} while (arrival.notices);
}

/* A random time from half to one and a half of it: no rhythm, so that the
 * pauses do not fall in step with those of other programs.
 */
static uint64_t rest(void)
{
	uint64_t ns = opt.pause_ns / 2 + random() % opt.pause_ns;
	struct timespec ts = { ns / NSEC_PER_SEC, ns % NSEC_PER_SEC };

	nanosleep(&ts, NULL);
	return now_ns();
}

/* Up to opt.depth messages of a socket wait for answers, in order. */
static uint64_t echo_loop(const struct span *span, bool measure)
{
	static uint64_t sent_ns[MAX_SOCKETS][MAX_DEPTH];
	uint64_t sent = 0, got = 0, now = now_ns();
	uint32_t socket, slot;

	while (sent < (uint64_t)opt.sockets * opt.depth && !over(span, sent)) {
		socket = sent % opt.sockets;
		sent_ns[socket][sent / opt.sockets] = now;
		send_plain(fds[socket], &peer, memory, opt.bytes);
		sent++;
	}
	while (got < sent) {
		socket = got % opt.sockets;
		slot = got / opt.sockets % opt.depth;
		take_answer(fds[socket]);
		now = now_ns();
		if (measure)
			report_latency(now - sent_ns[socket][slot]);
		got++;
		if (over(span, sent))
			continue;
		if (opt.pause_ns)
			now = rest();
		sent_ns[socket][slot] = now;
		send_plain(fds[socket], &peer, memory, opt.bytes);
		sent++;
	}
	total += sent;
	return sent;
}

static uint64_t stream_loop(const struct span *span)
{
	uint64_t sent = 0;

	while (opt.batch == 1 && !over(span, sent)) {
		send_plain(fds[sent % opt.sockets], &peer, memory, opt.bytes);
		sent++;
	}
	while (opt.batch > 1 && !over(span, sent)) {
		uint64_t left = span->count ? span->count - sent : opt.batch;
		uint32_t n = left < opt.batch ? left : opt.batch;

		send_batch(fds[sent / opt.batch % opt.sockets], &peer, memory,
			   opt.bytes, n);
		sent += n;
	}
	total += sent;
	sync_up();
	return sent;
}

/* Send an op; its identifier goes to *id, unless that is NULL. */
static void send_op(uint32_t index, uint64_t *id)
{
	char control[256] __attribute__((aligned(8))) = {};
	uint64_t offset = 0, room = MAX_BYTES, where = (uintptr_t)id;
	struct rds_rdma_args args = { .cookie = cookie, .nr_local = 1 };
	struct rds_iovec vec;
	size_t used = 0;

	if (opt.bytes)
		offset = index % (room / opt.bytes) * opt.bytes;
	vec.addr = (uintptr_t)memory + offset;
	vec.bytes = opt.bytes;
	args.remote_vec.addr = offset;
	args.remote_vec.bytes = opt.bytes;
	args.local_vec_addr = (uintptr_t)&vec;
	args.flags = (opt.mode == WRITE ? RDS_RDMA_READWRITE : 0) |
		     (opt.notices ? RDS_RDMA_NOTIFY_ME : 0) |
		     (opt.silent ? RDS_RDMA_SILENT : 0);
	/* as in mainline: a message must not overtake its op */
	if (opt.mode == READ && !opt.silent)
		args.flags |= RDS_RDMA_FENCE;
	put_control(control, &used, RDS_CMSG_RDMA_ARGS, &args, sizeof(args));
	if (id)
		put_control(control, &used, XRDS_CMSG_RDMA_ID, &where,
			    sizeof(where));
	send_control(fds[0], &peer, NULL, 0, control, used);
}

static void wait_barrier(uint64_t id)
{
	struct xrds_barrier barrier = {
		.rdma_id = id,
		.timeout_ms = PATIENCE_S * 1000,
	};

	memcpy(&barrier.dest, &peer.ss, sizeof(peer.ss));
	while (ioctl(fds[0], SIOCXRDSBARRIER, &barrier)) {
		if (errno == EINTR)
			continue;
		die("barrier", errno);
	}
}

static void wait_notices(uint32_t wanted)
{
	struct arrival arrival;
	uint32_t got = 0;

	while (got < wanted) {
		receive(fds[0], in, MAX_BYTES, &arrival);
		if (arrival.failed)
			die("an RDMA op", EIO);
		if (arrival.ended)
			die("the server", ECONNRESET);
		got += arrival.notices;
	}
}

/* Repeatedly send opt.depth ops and wait for all of them. */
static uint64_t rdma_loop(const struct span *span, bool measure)
{
	uint64_t issued = 0, id = 0, begin;
	uint32_t i;

	for (;;) {
		begin = now_ns();
		if (span->count ? issued >= span->count : begin >= span->end_ns)
			break;
		for (i = 0; i < opt.depth; i++) {
			bool last = i == opt.depth - 1 ||
				    issued + 1 == span->count;

			send_op(i, last && !opt.notices ? &id : NULL);
			issued++;
			if (last) {
				i++;
				break;
			}
		}
		if (opt.notices)
			wait_notices(i);
		else
			wait_barrier(id);
		if (measure)
			report_latency(now_ns() - begin);
	}
	if (!opt.silent) {
		total += issued;
		sync_up();
	}
	return issued;
}

static uint64_t loop(const struct span *span, bool measure)
{
	switch (opt.mode) {
	case ECHO:
		return echo_loop(span, measure);
	case STREAM:
		return stream_loop(span);
	default:
		return rdma_loop(span, measure);
	}
}

void run_client(void)
{
	struct span warm_up = { .count = opt.warm_up };
	struct span span = { .count = opt.count };
	uint64_t begin, done;

	memory = take_memory(MAX_BYTES);
	in = take_memory(MAX_BYTES);
	give_order();
	if (opt.warm_up)
		loop(&warm_up, false);
	sync_up();
	report_begin();
	begin = now_ns();
	span.end_ns = begin + opt.time_ns;
	done = loop(&span, true);
	report_end(done, now_ns() - begin);
	send_note(fds[0], &peer, BYE, 0);
}
