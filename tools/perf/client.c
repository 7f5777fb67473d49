// SPDX-License-Identifier: GPL-2.0-only
/*
 * The client: sends the order to the server, makes the load, and measures the
 * time. perf.h has the protocol between the two. One function for each mode
 * runs until the number or the time of the options is reached; a sync with the
 * server's child begins and ends the measurement. A client is a process of its
 * own, see task.c.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "perf.h"
#include "text.h"

enum {
	CHECK_EVERY	= 64,		/* small messages between looks at the clock */
	SMALL		= 4096,		/* bytes; beside a larger one a look costs little */
	LOOK_MS		= 100,		/* between looks whether the peer is there */
	ALIVE_S		= 60,		/* between notes that this client is there */
	SLOW_MS		= 10,		/* a turn that takes longer looks at once */
	HINT_MS		= 2000,		/* without an answer to the order */
	HINTS		= 3,		/* so often, then nobody listens */
};

static int fds[MAX_SOCKETS];
static struct address peer;	/* the child that serves this client */
static uint64_t cookie;		/* of the child's memory */
static uint64_t keys[MAX_DEPTH];	/* with --use-once: of each op's memory */
static char *memory, *in;
static uint64_t total;		/* messages that the child should have got */
static uint32_t unread;		/* completions of MSG_ZEROCOPY that will come */

/* For patterns: the ports of our sockets, and their messages */
static struct {
	uint16_t port;
	uint64_t sent, answered;
} ends[MAX_SOCKETS];
static uint64_t turn;		/* of RDMA ops */
static bool dropped;		/* an op of this turn, by a reset */
static bool first_of_peer;	/* it tells of the peer's node, the others do not */

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

static void __attribute__((noreturn)) wrong_payload(const char *text)
{
	fflush(stdout);
	fprintf(stderr, "xrds-perf: %s: wrong payload: %s\n",
		opt.host ?: "AF_UNIX", text);
	exit(EXIT_ERROR);
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

/* End the program if the arrival is an error, or the end of the server. */
static void check(const struct arrival *arrival)
{
	struct note *note = (void *)in;

	unread -= arrival->zcopied;
	if (arrival->failed && opt.reset_ns &&
	    arrival->status == RDS_RDMA_DROPPED)
		dropped = true;
	else if (arrival->failed)
		op_failed(arrival->status);
	if (arrival->ended || arrival->reborn)
		server_ended();
	if (is_note(in, arrival->bytes) && ntohl(note->kind) == BAD) {
		note->text[NOTE_TEXT - 1] = '\0';
		wrong_payload(text_printable(note->text));
	}
}

static void take(int fd, struct arrival *arrival)
{
	receive(fd, in, MAX_BYTES, arrival);
	check(arrival);
}

static uint64_t looked_ns;	/* when client_look() has last looked */
static uint64_t told_ns;	/* when it has last sent, or the client began */

static void look_now(void)
{
	struct arrival arrival;

	while (receive_now(fds[0], in, MAX_BYTES, &arrival))
		check(&arrival);
}

/* Is the peer still there? A look that takes no time to speak of */
void client_look(uint64_t now)
{
	if (now - looked_ns < LOOK_MS * NSEC_PER_MSEC)
		return;
	looked_ns = now;
	if (!opt.over_unix || opt.verify)
		look_now();
	/* the peer may get no other message for long */
	if (now - told_ns < ALIVE_S * NSEC_PER_SEC)
		return;
	told_ns = now;
	send_note(fds[0], &peer, ALIVE, 0, 0);
}

static void wait_note(int fd, enum kind what, struct arrival *arrival)
{
	do
		take(fd, arrival);
	while (!is_note(in, arrival->bytes) ||
	       ntohl(((struct note *)in)->kind) != what);
}

/* All messages have arrived, and so many bytes were written. */
static void sync_up(uint32_t written)
{
	struct arrival arrival;

	send_note(fds[0], &peer, SYNC, total, written);
	wait_note(fds[0], DONE, &arrival);
}

/* Failed ops give notices, which client_look() finds. */
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

static uint16_t port_of(int fd)
{
	struct address own = { .len = sizeof(own.ss) };

	if (getsockname(fd, (struct sockaddr *)&own.ss, &own.len))
		die("getsockname", errno);
	return get_port(&own);
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
		ends[i].port = port_of(fds[i]);
		if (opt.zcopy)
			want_zcopy(fds[i]);
	}
	/* one socket is enough to tell of a node */
	if (first_of_peer && !opt.over_unix)
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
	if (why != last && first_of_peer)
		fprintf(stderr, "xrds-perf: %s: %s\n", opt.host, why);
	last = why;
	return false;
}

/* In a mesh the peer may be started later: an order to nobody is lost. */
static void wait_ready(const struct address *server)
{
	struct pollfd pfd = { .fd = fds[0], .events = POLLIN };
	int left = PATIENCE_S * 1000 / HINT_MS, arrived = 0;

	if (opt.over_unix || (!opt.mesh && !has_barrier()))
		return;
	while (!poll(&pfd, 1, HINT_MS)) {
		if (!--left)
			no_server(arrived ? "xrds-perf does not run there" :
					    "no connection");
		arrived += order_arrived(server);
		if (opt.mesh)
			send_note(fds[0], server, ORDER, 0, 0);
		else if (arrived == HINTS)
			no_server("nobody listens: is xrds-perf -s running there?");
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
	send_note(fds[0], &server, ORDER, 0, 0);
	wait_ready(&server);
	wait_note(fds[0], READY, &arrival);
	if (opt.over_unix)
		return;
	peer = arrival.from;
	cookie = arrival.cookie;
	if ((opt.mode == WRITE || opt.mode == READ) && !opt.use_once &&
	    !arrival.cookie_came)
		die("no key came with the answer", EPROTO);
}

/* ------------------------------------------------------------------- loops */

static bool over(const struct span *span, uint64_t done, uint64_t now)
{
	return span->count ? done >= span->count : now >= span->end_ns;
}

/* The payload of the next message of a socket */
static void fill(uint32_t socket, char *buf)
{
	if (opt.verify)
		pattern_fill(buf, opt.bytes,
			     pattern_of_message(ends[socket].port,
						ends[socket].sent++), 0);
}

static void take_answer(uint32_t socket)
{
	char what[NOTE_TEXT / 2], text[NOTE_TEXT];
	struct arrival arrival;
	uint64_t number;

	do
		take(fds[socket], &arrival);
	while (arrival.notices);
	if (!opt.verify)
		return;
	number = ends[socket].answered++;
	if ((size_t)arrival.bytes != opt.answer)
		snprintf(what, sizeof(what), "%zd bytes instead of %u",
			 arrival.bytes, opt.answer);
	else if (pattern_check(in, opt.answer,
			       pattern_of_answer(ends[socket].port, number), 0,
			       what, sizeof(what)))
		return;
	snprintf(text, sizeof(text), "answer %" PRIu64 " to port %u: %s",
		 number, ends[socket].port, what);
	wrong_payload(text);
}

/* Up to opt.depth messages of a socket wait for answers, in order. */
static uint64_t echo_loop(const struct span *span, bool measure)
{
	static uint64_t sent_ns[MAX_SOCKETS][MAX_DEPTH];
	uint64_t most = (uint64_t)opt.sockets * opt.depth;
	uint64_t sent = 0, got = 0, now = now_ns();
	uint32_t socket;

	pace_begin(now);
	for (;;) {
		bool may_send = sent - got < most && !over(span, sent, now);

		socket = sent % opt.sockets;
		if (may_send && got == sent && pace_is_set()) {
			pace_wait();
			now = now_ns();
		}
		if (may_send && pace_due(now)) {
			sent_ns[socket][sent / opt.sockets % opt.depth] = now;
			fill(socket, memory);
			send_plain(fds[socket], &peer, memory, opt.bytes);
			pace_plan(now, 1);
			/* the first ones wait for no answer */
			if (++sent % CHECK_EVERY == 0)
				now = now_ns();
			continue;
		}
		if (got == sent)
			break;
		socket = got % opt.sockets;
		if (!may_send || pace_wait_or(fds[socket])) {
			take_answer(socket);
			now = now_ns();
			report_done(1);
			if (measure)
				report_latency(now - sent_ns[socket]
					[got / opt.sockets % opt.depth]);
			got++;
		} else {
			now = now_ns();
		}
	}
	total += sent;
	return sent;
}

static void await_completions(uint32_t most)
{
	struct arrival arrival;

	while (unread > most)
		take(fds[0], &arrival);
}

static uint64_t stream_loop(const struct span *span)
{
	size_t stride = opt.verify ? opt.bytes : 0;
	uint64_t sent = 0, now = now_ns();

	pace_begin(now);
	while (!over(span, sent, now)) {
		uint64_t left = span->count ? span->count - sent : opt.batch;
		uint32_t n = left < opt.batch ? left : opt.batch;
		uint32_t socket = sent / opt.batch % opt.sockets;

		pace_wait();
		for (uint32_t i = 0; i < n; i++)
			fill(socket, memory + i * stride);
		if (opt.zcopy) {
			send_zcopy(fds[socket], &peer, memory, opt.bytes);
			unread++;
			await_completions(MAX_UNREAD);
		} else if (n == 1) {
			send_plain(fds[socket], &peer, memory, opt.bytes);
		} else {
			send_batch(fds[socket], &peer, memory, opt.bytes,
				   stride, n);
		}
		report_done(n);
		sent += n;
		if (n > 1 || opt.bytes > SMALL || pace_is_set() ||
		    sent % CHECK_EVERY == 0) {
			now = now_ns();
			pace_plan(now, n);
			client_look(now);
		}
	}
	total += sent;
	sync_up(0);
	await_completions(0);
	return sent;
}

/* Bytes of memory that so many ops use */
static uint64_t used_by(uint32_t ops)
{
	uint64_t bytes = (uint64_t)ops * opt.bytes;

	return bytes < MAX_BYTES ? bytes : MAX_BYTES / opt.bytes * opt.bytes;
}

static void fill_turn(uint32_t ops)
{
	turn++;
	if (opt.mode == WRITE)
		pattern_fill(memory, used_by(ops), pattern_of_memory(turn), 0);
	else
		memset(memory, 0, used_by(ops));
}

/* The server checks writes; reads got its pattern. */
static void check_turn(uint32_t ops)
{
	char what[NOTE_TEXT / 2], text[NOTE_TEXT];

	if (opt.mode == WRITE) {
		sync_up(used_by(ops));
		return;
	}
	for (uint32_t i = 0; i < ops; i++) {
		uint64_t offset = op_offset(i);

		if (pattern_check(memory + offset, opt.bytes,
				  pattern_of_memory(0), offset, what,
				  sizeof(what)))
			continue;
		snprintf(text, sizeof(text), "read %u of turn %" PRIu64 ": %s",
			 i, turn, what);
		wrong_payload(text);
	}
}

/* The memory of an op, in parts; returns their number. */
static uint32_t split(struct rds_iovec *vec, uint64_t offset)
{
	uint32_t count = opt.vectors < opt.bytes ? opt.vectors : opt.bytes ?: 1;
	uint64_t part = opt.bytes / count;

	for (uint32_t i = 0; i < count; i++) {
		vec[i].addr = (uintptr_t)memory + offset + i * part;
		vec[i].bytes = part;
	}
	vec[count - 1].bytes = opt.bytes - (count - 1) * part;
	return count;
}

/* Send an op; its identifier goes to *id, unless that is NULL. */
static void send_op(uint32_t index, uint64_t *id)
{
	char control[256] __attribute__((aligned(8))) = {};
	uint64_t offset = op_offset(index), where = (uintptr_t)id;
	struct rds_rdma_args args = {
		.cookie = opt.use_once ? keys[index] : cookie,
	};
	struct rds_iovec vec[MAX_VECTORS];
	size_t used = 0;

	args.nr_local = split(vec, offset);
	args.remote_vec.addr = opt.use_once ? 0 : offset;
	args.remote_vec.bytes = opt.bytes;
	args.local_vec_addr = (uintptr_t)vec;
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
		client_look(now_ns());
		if (now_ns() >= end)
			die("the peer is silent", ETIMEDOUT);
	}
}

static void wait_notices(uint32_t wanted)
{
	struct arrival arrival;
	uint32_t got = 0;

	while (got < wanted) {
		take(fds[0], &arrival);
		got += arrival.notices;
	}
}

/* A key for each op of a turn */
static void take_keys(uint32_t count)
{
	struct arrival arrival;

	send_note(fds[0], &peer, KEYS, count, 0);
	for (uint32_t i = 0; i < count; i++) {
		wait_note(fds[0], KEY, &arrival);
		keys[i] = arrival.cookie;
	}
}

static void send_ops(uint32_t count)
{
	uint64_t id = 0;

	if (opt.use_once)
		take_keys(count);
	for (uint32_t i = 0; i < count; i++)
		send_op(i, i == count - 1 && !opt.notices ? &id : NULL);
	if (opt.notices)
		wait_notices(count);
	else
		wait_barrier(id);
}

/* A reset ends the ops that are under way. They may have been done, and can be
 * repeated. Their notices are there when they have ended.
 */
static void send_turn(uint32_t count)
{
	do {
		dropped = false;
		send_ops(count);
		if (opt.reset_ns)
			look_now();
	} while (dropped);
}

/* Repeatedly send opt.depth ops and wait for all of them. */
static uint64_t rdma_loop(const struct span *span, bool measure)
{
	uint64_t issued = 0, begin = now_ns(), left, now;
	uint32_t n;

	pace_begin(begin);
	while (!over(span, issued, begin)) {
		left = span->count ? span->count - issued : opt.depth;
		n = left < opt.depth ? left : opt.depth;
		if (opt.verify)
			fill_turn(n);
		pace_wait();
		begin = now_ns();
		send_turn(n);
		now = now_ns();
		if (now - begin >= SLOW_MS * NSEC_PER_MSEC)
			looked_ns = 0;
		client_look(now);
		report_done(n);
		if (measure)
			report_latency(now - begin);
		issued += n;
		if (!opt.silent)
			total += n;
		if (opt.verify)
			check_turn(n);
		pace_plan(now, n);
		begin = now_ns();
	}
	if (!opt.silent)
		sync_up(0);
	return issued;
}

/* Register memory, with a message to the server or alone, and make its key
 * void.
 */
static void map_once(void)
{
	char control[CMSG_SPACE(sizeof(struct rds_get_mr_args))]
		__attribute__((aligned(8))) = {};
	struct rds_free_mr_args gone = { .flags = RDS_RDMA_INVALIDATE };
	struct rds_get_mr_args args = {
		.vec = { .addr = (uintptr_t)memory, .bytes = opt.bytes },
		.cookie_addr = (uintptr_t)&gone.cookie,
		.flags = RDS_RDMA_READWRITE,
	};
	size_t used = 0;

	if (!opt.get_mr) {
		put_control(control, &used, RDS_CMSG_RDMA_MAP, &args,
			    sizeof(args));
		send_control(fds[0], &peer, NULL, 0, control, used);
		total++;
	} else if (setsockopt(fds[0], SOL_RDS, RDS_GET_MR, &args,
			      sizeof(args))) {
		die_memory("RDS_GET_MR", errno);
	}
	if (setsockopt(fds[0], SOL_RDS, RDS_FREE_MR, &gone, sizeof(gone)))
		die("RDS_FREE_MR", errno);
}

static uint64_t map_loop(const struct span *span, bool measure)
{
	uint64_t done, begin, now = now_ns();

	pace_begin(now);
	for (done = 0; !over(span, done, now); done++) {
		pace_wait();
		begin = now_ns();
		map_once();
		report_done(1);
		now = now_ns();
		if (measure)
			report_latency(now - begin);
		pace_plan(begin, 1);
		client_look(now);
	}
	sync_up(0);
	return done;
}

static uint64_t loop(const struct span *span, bool measure)
{
	switch (opt.mode) {
	case MAP:
		return map_loop(span, measure);
	case ECHO:
		return echo_loop(span, measure);
	case STREAM:
		return stream_loop(span);
	default:
		return rdma_loop(span, measure);
	}
}

void client_prepare(bool first)
{
	struct span warm_up = { .count = opt.warm_up };
	size_t bytes = opt.verify ? (size_t)opt.batch * opt.bytes : 0;

	memory = take_memory(bytes > MAX_BYTES ? bytes : MAX_BYTES);
	in = take_memory(MAX_BYTES);
	first_of_peer = first;
	give_order();
	told_ns = now_ns();
	if (opt.warm_up)
		loop(&warm_up, false);
	sync_up(0);
	__atomic_store_n(&result->done, 0, __ATOMIC_RELAXED);
}

void client_run(void)
{
	struct span span = { .count = opt.count };
	uint64_t cpu_ns = report_cpu_ns();

	result->host = opt.host;
	result->begin_ns = now_ns();
	span.end_ns = result->begin_ns + opt.time_ns;
	loop(&span, true);
	result->end_ns = now_ns();
	result->cpu_ns = report_cpu_ns() - cpu_ns;
	/* the server may have found something */
	if (opt.verify)
		sync_up(0);
	send_note(fds[0], &peer, BYE, 0, 0);
}
