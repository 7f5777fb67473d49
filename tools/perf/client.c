// SPDX-License-Identifier: GPL-2.0-only
/*
 * The client: sends the order to the server, makes the load, and measures the
 * time. perf.h has the protocol between the two. One function for each mode
 * runs until the number or the time of the options is reached; a sync with the
 * server's child begins and ends the measurement.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "perf.h"

enum {
	CHECK_EVERY	= 64,		/* messages between looks at the clock */
	LOOK_MS		= 100,		/* between looks whether the peer is there */
	SLOW_MS		= 10,		/* a turn that takes longer looks at once */
	HINT_MS		= 2000,		/* without an answer to the order */
	HINTS		= 3,		/* so often, then nobody listens */
};

#define NSEC_PER_MSEC	1000000ull

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

static void __attribute__((noreturn)) server_ended(void)
{
	die("the server has ended", ECONNRESET);
}

static void __attribute__((noreturn)) op_failed(int status)
{
	static const char * const names[] = {
		[RDS_RDMA_SUCCESS] = "success",
		[RDS_RDMA_REMOTE_ERROR] = "refused by the server's device: has the server ended?",
		[RDS_RDMA_CANCELED] = "cancelled",
		[RDS_RDMA_DROPPED] = "the connection was lost",
		[RDS_RDMA_OTHER_ERROR] = "an error of this node",
	};
	bool known = status >= 0 && status <= RDS_RDMA_OTHER_ERROR;

	fflush(stdout);
	fprintf(stderr, "xrds-perf: an RDMA op has failed: %s\n",
		known ? names[status] : "?");
	exit(EXIT_ERROR);
}

static uint64_t looked_ns;	/* when the next function has last looked */

/* Is the peer still there? A look that takes no time to speak of */
static void look(uint64_t now)
{
	struct arrival arrival;

	if (now - looked_ns < LOOK_MS * NSEC_PER_MSEC)
		return;
	looked_ns = now;
	if (opt.over_unix)
		return;
	while (receive_now(fds[0], in, MAX_BYTES, &arrival)) {
		if (arrival.failed)
			op_failed(arrival.status);
		if (arrival.ended || arrival.reborn)
			server_ended();
	}
}

static void wait_note(int fd, enum kind what, struct arrival *arrival)
{
	do {
		receive(fd, in, MAX_BYTES, arrival);
		if (arrival->ended)
			server_ended();
	} while (!is_note(in, arrival->bytes) ||
		 ntohl(((struct note *)in)->kind) != what);
}

static void sync_up(void)
{
	struct arrival arrival;

	send_note(fds[0], &peer, SYNC, total);
	wait_note(fds[0], DONE, &arrival);
}

/* Failed ops give notices, which look() finds. */
static void want_failures(void)
{
	int on = 1;

	if (setsockopt(fds[0], SOL_RDS, RDS_RECVERR, &on, sizeof(on)))
		die("RDS_RECVERR", errno);
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
	/* one socket is enough to tell of a node */
	if (!opt.over_unix)
		want_news(fds[0]);
}

/* Create destinations: nobody reads there, so the messages are dropped. */
static void meet_strangers(struct address server)
{
	for (uint32_t i = 0; i < opt.strangers; i++) {
		set_port(&server, STRANGE_PORT + i);
		send_plain(fds[0], &server, NULL, 0);
	}
}

static void __attribute__((noreturn)) no_server(const char *why)
{
	fprintf(stderr, "xrds-perf: %s port %u: %s\n", opt.host, opt.port, why);
	exit(EXIT_ERROR);
}

/* The order was sent, and nothing came back: tell why. A message to a port that
 * nobody has bound is acknowledged, and lost. Returns whether the order has
 * arrived.
 */
static bool order_arrived(const struct address *server)
{
	static const char *last;
	struct xrds_dest_status s = { 0 };
	socklen_t len = sizeof(s);
	const char *why;

	memcpy(&s.dest, &server->ss, sizeof(server->ss));
	if (getsockopt(fds[0], SOL_RDS, XRDS_DEST_STATUS, &s, &len))
		return false;
	if (s.state == XRDS_DEST_UP && !s.queued_msgs)
		return true;
	why = s.state == XRDS_DEST_UP ?
	      "connected, but the message is not acknowledged" :
	      "no connection yet: nobody answers, or no RDS is loaded there";
	if (why != last)
		fprintf(stderr, "xrds-perf: %s: %s\n", opt.host, why);
	last = why;
	return false;
}

static void wait_ready(const struct address *server)
{
	struct pollfd pfd = { .fd = fds[0], .events = POLLIN };
	int left = PATIENCE_S * 1000 / HINT_MS, arrived = 0;

	if (opt.over_unix || !has_barrier())
		return;
	while (!poll(&pfd, 1, HINT_MS)) {
		if (order_arrived(server) && ++arrived == HINTS)
			no_server("nobody listens: is xrds-perf -s running there?");
		if (!--left)
			no_server("no connection");
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
	if (opt.mode == WRITE || opt.mode == READ)
		want_failures();
	meet_strangers(server);
	send_note(fds[0], &server, ORDER, 0);
	wait_ready(&server);
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
			server_ended();
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
		report_done(1);
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
		report_done(1);
		if (++sent % CHECK_EVERY == 0)
			look(now_ns());
	}
	while (opt.batch > 1 && !over(span, sent)) {
		uint64_t left = span->count ? span->count - sent : opt.batch;
		uint32_t n = left < opt.batch ? left : opt.batch;

		send_batch(fds[sent / opt.batch % opt.sockets], &peer, memory,
			   opt.bytes, n);
		report_done(n);
		sent += n;
		look(now_ns());
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
	struct xrds_barrier barrier = { .rdma_id = id, .timeout_ms = 1000 };
	uint64_t end = now_ns() + PATIENCE_S * NSEC_PER_SEC;

	memcpy(&barrier.dest, &peer.ss, sizeof(peer.ss));
	while (ioctl(fds[0], SIOCXRDSBARRIER, &barrier)) {
		if (errno != EINTR && errno != ETIMEDOUT)
			die("barrier", errno);
		look(now_ns());
		if (now_ns() >= end)
			die("the peer is silent", ETIMEDOUT);
	}
}

static void wait_notices(uint32_t wanted)
{
	struct arrival arrival;
	uint32_t got = 0;

	while (got < wanted) {
		receive(fds[0], in, MAX_BYTES, &arrival);
		if (arrival.failed)
			op_failed(arrival.status);
		if (arrival.ended)
			server_ended();
		got += arrival.notices;
	}
}

/* Repeatedly send opt.depth ops and wait for all of them. */
static uint64_t rdma_loop(const struct span *span, bool measure)
{
	uint64_t issued = 0, id = 0, begin, now;
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
		now = now_ns();
		if (now - begin >= SLOW_MS * NSEC_PER_MSEC)
			looked_ns = 0;
		look(now);
		report_done(i);
		if (measure)
			report_latency(now - begin);
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
	report_seconds();
	report_begin();
	begin = now_ns();
	span.end_ns = begin + opt.time_ns;
	done = loop(&span, true);
	report_end(done, now_ns() - begin);
	send_note(fds[0], &peer, BYE, 0);
}
