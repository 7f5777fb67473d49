// SPDX-License-Identifier: GPL-2.0-only
/*
 * Streams of messages both ways between two sides, checked for exactly once
 * and in order by content; also the soak program.
 *
 * A side is N sockets with ports BASE + i (side a) and BASE + N + i (side b).
 * Each socket sends to each socket of the other side: a flow. A flow's
 * messages, their number, lengths and content are a function of the seed, so
 * the receiver knows the next message and compares all of it. Both sides may be
 * one process (role both), or two on different nodes that agree on all options;
 * nothing passes between them but the streams.
 *
 * A message to a port that is not bound yet would be dropped. So socket 0 says
 * hello to the other side's socket 0 until it hears a hello; by then all
 * sockets of the other side are bound. One more hello answers it, and data
 * flows. At the end of a flow the receiver sends "done" on the flow back. A
 * side that has everything sends "bye" on each flow when all of its messages
 * are acknowledged, and is finished when it has all byes of the other side.
 * Each flow is in order: a message that came twice would come before its bye.
 *
 * SIGUSR1 ends the flows of a side early: it says on each how many messages
 * there were. A test that breaks connections can so go on until it has broken
 * enough, and everything is checked all the same.
 *
 * Stalls (link down, peer reconnecting) are fine up to a limit. Any node may send
 * to any port: messages of unknown senders are counted, and no fault.
 */
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counters.h"
#include "pattern.h"
#include "sock.h"
#include "tap.h"
#include "zcopy.h"

enum {
	MAX_SOCKETS	= 64,		/* a side */
	MAX_ADDRESSES	= 8,
	BURST		= 16,		/* messages a socket sends in a row */
	HELLO_MS	= 200,
	ACK_MS		= 10,		/* between looks for acknowledgments */
	PROGRESS_MS	= 5000,
	EXIT_WRONG	= 1,		/* a message was wrong */
	EXIT_USAGE	= 2,
	EXIT_STALL	= 3,		/* no progress for too long */
};

#define MAGIC_HELLO	0x6f6c6c65687f5851ull
#define MAGIC_DONE	0x656e6f64007f5851ull
#define MAGIC_STOP	0x706f7473007f5851ull
#define MAGIC_BYE	0x65796200007f5851ull

/* As messages of a flow never look, being pseudo-random */
struct signal_msg {
	u64 magic;
	u64 seed;
	u64 count;		/* stop: messages of the flow */
};

/* Messages between a socket and one of the other side, both ways */
struct flow {
	union addr to;
	u64 sent, rcvd;		/* messages */
	u64 to_send, to_rcv;	/* messages in all */
	bool refused;		/* by the last send */
	bool stop_due;		/* to_send is smaller than the other side knows */
	bool done_sent, done_rcvd;
	bool bye_sent, bye_rcvd;
};

struct end {
	int fd;
	u32 id;			/* in keys: index + 1000 on side b */
	int nr_left;		/* flows that still have something to send */
	int next;		/* flow to go on with */
	struct flow flows[MAX_SOCKETS];
};

struct side {
	char name;
	bool local;		/* in this process */
	bool heard;		/* a hello of the other side */
	bool answered;
	long long hello_due_ms;
	char *hosts[MAX_ADDRESSES];
	int nr_hosts;
	struct end ends[MAX_SOCKETS];
};

static struct {
	u64 count;		/* messages each way */
	u64 per_flow;
	int sockets;
	u64 seed;
	int port;
	size_t max;
	int sndbuf, rcvbuf;
	int stall_s;
	int time_s;
	int user;		/* to become; 0: nobody else */
	bool batch;		/* say of most messages that more follow */
	bool zcopy;		/* send with MSG_ZEROCOPY */
} opt = {
	.count = 10000, .sockets = 4, .seed = 1, .port = 5000,
	.max = MSG_MAX_BYTES, .stall_s = 60,
};

static struct side sides[2] = { { .name = 'a' }, { .name = 'b' } };
static char *buffer;
static long long start_ms, progress_ms, max_gap_ms;

static sig_atomic_t stop_asked;
static bool leaving;		/* everything is there and acknowledged */

static struct {
	u64 sent, rcvd, signals, bytes_sent, bytes_rcvd;
	u64 eagain, enobufs, idle_wakes, unknown;
} total;

static struct side *other(const struct side *side)
{
	return side == &sides[0] ? &sides[1] : &sides[0];
}

static void __noreturn finish(const char *result, int code)
{
	double secs = (tap_now_ms() - start_ms) / 1000.0;

	printf("stream: result=%s seed=%llu sent=%llu rcvd=%llu ", result,
	       opt.seed, total.sent, total.rcvd);
	printf("bytes_sent=%llu bytes_rcvd=%llu eagain=%llu enobufs=%llu ",
	       total.bytes_sent, total.bytes_rcvd, total.eagain,
	       total.enobufs);
	printf("idle_wakes=%llu unknown=%llu max_gap_ms=%lld secs=%.1f\n",
	       total.idle_wakes, total.unknown, max_gap_ms, secs);
	fflush(stdout);
	exit(code);
}

static void progress(void)
{
	long long now = tap_now_ms(), gap = now - progress_ms;

	if (gap > max_gap_ms)
		max_gap_ms = gap;
	progress_ms = now;
}

/* ---------------------------------------------------------------- set-up */

static u32 end_id(const struct side *side, int i)
{
	return i + (side->name == 'b' ? 1000 : 0);
}

static union addr end_addr(const struct side *side, int i)
{
	int base = opt.port + (side->name == 'b' ? opt.sockets : 0);

	return addr_of(side->hosts[i % side->nr_hosts], base + i);
}

static void open_end(struct side *side, int i)
{
	struct end *end = &side->ends[i];
	union addr self = end_addr(side, i);

	end->fd = rds_socket();
	end->id = end_id(side, i);
	end->nr_left = opt.sockets;
	if (opt.sndbuf)
		rds_set_int(end->fd, SOL_SOCKET, SO_SNDBUF, opt.sndbuf);
	if (opt.rcvbuf)
		rds_set_int(end->fd, SOL_SOCKET, SO_RCVBUF, opt.rcvbuf);
	if (opt.zcopy)
		rds_set_int(end->fd, SOL_SOCKET, SO_ZEROCOPY, 1);
	must(bind(end->fd, &self.sa, addr_len(&self)));
	for (int j = 0; j < opt.sockets; j++) {
		end->flows[j].to = end_addr(other(side), j);
		end->flows[j].to_send = opt.per_flow;
		end->flows[j].to_rcv = opt.per_flow;
	}
}

static void parse_hosts(struct side *side, char *list)
{
	for (char *host = strtok(list, ","); host; host = strtok(NULL, ",")) {
		if (side->nr_hosts == MAX_ADDRESSES)
			tap_fail("too many addresses");
		side->hosts[side->nr_hosts++] = host;
	}
	if (!side->nr_hosts)
		tap_fail("no address for side %c", side->name);
}

/* ----------------------------------------------------------------- hello */

/*
 * A refusal does not matter: hellos are repeated, and a queue that is full
 * holds some.
 */
static void say_hello(struct side *side)
{
	struct signal_msg hello = { MAGIC_HELLO, opt.seed, 0 };
	struct end *end = &side->ends[0];

	if (side->heard && side->answered)
		return;
	if (!side->heard && tap_now_ms() < side->hello_due_ms)
		return;
	if (rds_send(end->fd, &hello, sizeof(hello), MSG_DONTWAIT,
		     &end->flows[0].to) == sizeof(hello) && side->heard)
		side->answered = true;
	side->hello_due_ms = tap_now_ms() + HELLO_MS;
}

static void __noreturn wrong_signal(const struct flow *flow, const char *what)
{
	tap_diag("%s from %s, sent %llu of %llu, received %llu of %llu", what,
		 addr_text(&flow->to), flow->sent, flow->to_send, flow->rcvd,
		 flow->to_rcv);
	finish("wrong", EXIT_WRONG);
}

/* All that comes before a signal on its flow has come once; nothing follows. */
static void take_signal(struct side *side, struct flow *flow,
			const struct signal_msg *msg)
{
	switch (msg->magic) {
	case MAGIC_HELLO:
		side->heard = true;
		return;
	case MAGIC_STOP:
		if (msg->count != flow->rcvd || flow->to_rcv != opt.per_flow)
			wrong_signal(flow, "stop");
		flow->to_rcv = msg->count;
		break;
	case MAGIC_DONE:
		if (flow->done_rcvd || flow->sent != flow->to_send)
			wrong_signal(flow, "done");
		flow->done_rcvd = true;
		break;
	case MAGIC_BYE:
		if (flow->bye_rcvd || !flow->done_rcvd ||
		    flow->rcvd != flow->to_rcv)
			wrong_signal(flow, "bye");
		flow->bye_rcvd = true;
		break;
	}
	total.signals++;
}

/* False if the message is one of the flow's own */
static bool is_signal(struct signal_msg *msg, size_t len)
{
	if (len != sizeof(*msg))
		return false;
	memcpy(msg, buffer, sizeof(*msg));
	if (msg->magic != MAGIC_HELLO && msg->magic != MAGIC_DONE &&
	    msg->magic != MAGIC_STOP && msg->magic != MAGIC_BYE)
		return false;
	if (msg->seed != opt.seed) {
		tap_diag("the other side's seed is %llu", msg->seed);
		finish("wrong", EXIT_WRONG);
	}
	return true;
}

/* --------------------------------------------------------------- receive */

/* NULL if the sender is unknown */
static struct flow *find_flow(struct end *end, const union addr *from)
{
	int i = addr_port(from) - addr_port(&end->flows[0].to);

	if (i < 0 || i >= opt.sockets || !addr_same(from, &end->flows[i].to))
		return NULL;
	return &end->flows[i];
}

static void take_message(struct side *side, struct end *end, size_t len,
			 const union addr *from)
{
	struct flow *flow = find_flow(end, from);
	struct pattern_key key = { .to = end->id };
	struct signal_msg msg;
	char text[160];

	if (!flow) {
		if (!total.unknown++)
			tap_diag("socket %u: a message of an unknown sender, %s",
				 end->id, addr_text(from));
		return;
	}
	if (is_signal(&msg, len)) {
		take_signal(side, flow, &msg);
		return;
	}
	key.from = end_id(other(side), flow - end->flows);
	key.seq = flow->rcvd;
	if (flow->rcvd < flow->to_rcv && len == pattern_size(&key, opt.max) &&
	    pattern_same(buffer, len, &key)) {
		flow->rcvd++;
		if (!total.rcvd++) {
			tap_diag("data flows");	/* scripts wait for it */
			fflush(stdout);
		}
		total.bytes_rcvd += len;
		return;
	}
	pattern_explain(buffer, len, &key, text, sizeof(text));
	tap_diag("from %s to socket %u: %zu bytes instead of message %llu of %llu (%zu bytes): %s",
		 addr_text(from), end->id, len, flow->rcvd, flow->to_rcv,
		 pattern_size(&key, opt.max), text);
	finish("wrong", EXIT_WRONG);
}

/* Was there anything but hellos, which are no progress? */
static bool receive(struct side *side, struct end *end)
{
	u64 before = total.rcvd + total.signals;
	union addr from;
	ssize_t len;
	bool mark;

	for (int n = 0; n < BURST; n++) {
		len = opt.zcopy ?
		      zcopy_recv(end->fd, buffer, MSG_MAX_BYTES + 1, &from,
				 &mark) :
		      rds_recv_or_mark(end->fd, buffer, MSG_MAX_BYTES + 1,
				       &from, &mark);
		if (len < 0 && errno == EAGAIN)
			break;
		if (len < 0) {
			tap_diag("recvmsg: %s", tap_errno_name(errno));
			finish("wrong", EXIT_WRONG);
		}
		/* the other side leaves when it has read everything */
		if (!mark)
			take_message(side, end, len, &from);
	}
	return total.rcvd + total.signals != before;
}

/* ------------------------------------------------------------------ send */

static bool try_send(struct end *end, struct flow *flow, size_t len,
		     bool more)
{
	int flags = MSG_DONTWAIT | (more && opt.batch ? MSG_BATCH : 0);
	ssize_t ret;

	if (opt.zcopy && !zcopy_ready())
		return false;
	ret = opt.zcopy ?
	      zcopy_send(end->fd, buffer, len, flags, &flow->to) :
	      rds_send(end->fd, buffer, len, flags, &flow->to);
	if (ret == (ssize_t)len)
		return true;
	if (ret >= 0 || (errno != EAGAIN && errno != ENOBUFS)) {
		tap_diag("sendmsg to %s, %zu bytes: %s", addr_text(&flow->to),
			 len, ret < 0 ? tap_errno_name(errno) : "cut short");
		finish("wrong", EXIT_WRONG);
	}
	if (errno == EAGAIN)
		total.eagain++;
	else
		total.enobufs++;
	flow->refused = true;
	return false;
}

/* The next message that the flow has to send. Done waits for all that comes
 * in.
 */
static u64 next_signal(const struct flow *flow)
{
	if (flow->stop_due)
		return MAGIC_STOP;
	if (!flow->done_sent && flow->rcvd == flow->to_rcv)
		return MAGIC_DONE;
	if (!flow->bye_sent && leaving)
		return MAGIC_BYE;
	return 0;
}

static bool has_work(const struct flow *flow)
{
	return flow->sent < flow->to_send || next_signal(flow);
}

static bool send_signal(struct end *end, struct flow *flow, bool more)
{
	struct signal_msg msg = { next_signal(flow), opt.seed, flow->sent };

	memcpy(buffer, &msg, sizeof(msg));
	if (!try_send(end, flow, sizeof(msg), more))
		return false;
	if (msg.magic == MAGIC_STOP)
		flow->stop_due = false;
	else if (msg.magic == MAGIC_DONE)
		flow->done_sent = true;
	else
		flow->bye_sent = true;
	return true;
}

static bool send_next(struct side *side, struct end *end, struct flow *flow,
		      bool more)
{
	struct pattern_key key = {
		.from = end->id,
		.to = end_id(other(side), flow - end->flows),
		.seq = flow->sent,
	};
	size_t len;

	if (flow->sent == flow->to_send)
		return send_signal(end, flow, more);
	len = pattern_size(&key, opt.max);
	pattern_fill(buffer, len, &key);
	if (!try_send(end, flow, len, more))
		return false;
	flow->sent++;
	total.sent++;
	total.bytes_sent += len;
	return true;
}

/* One message for each flow that can take one, a few times round. None may
 * follow where that was said.
 */
static bool transmit(struct side *side, struct end *end)
{
	bool any = false;

	if (!side->answered)
		return false;
	for (int n = 0; n < BURST; n++) {
		struct flow *flow = &end->flows[end->next];

		end->next = (end->next + 1) % opt.sockets;
		if (has_work(flow) && !flow->refused)
			any |= send_next(side, end, flow, n < BURST - 1);
	}
	return any;
}

/* ------------------------------------------------------------------ loop */

/* Every flow that has work was refused: only poll can tell when to go on */
static bool blocked(const struct end *end)
{
	bool any = false;

	for (int i = 0; i < opt.sockets; i++) {
		if (!has_work(&end->flows[i]))
			continue;
		if (!end->flows[i].refused)
			return false;
		any = true;
	}
	return any;
}

static bool can_go_on(const struct side *side, const struct end *end)
{
	if (!side->answered || (opt.zcopy && !zcopy_ready()))
		return false;
	for (int i = 0; i < opt.sockets; i++)
		if (has_work(&end->flows[i]) && !end->flows[i].refused)
			return true;
	return false;
}

static bool flow_finished(const struct flow *flow)
{
	return flow->sent == flow->to_send && flow->rcvd == flow->to_rcv &&
	       flow->done_sent && flow->done_rcvd &&
	       (!leaving || (flow->bye_sent && flow->bye_rcvd));
}

static bool finished(void)
{
	for (int s = 0; s < 2; s++)
		for (int i = 0; sides[s].local && i < opt.sockets; i++)
			for (int j = 0; j < opt.sockets; j++)
				if (!flow_finished(&sides[s].ends[i].flows[j]))
					return false;
	return true;
}

static void on_stop(int signum)
{
	(void)signum;
	__atomic_store_n(&stop_asked, 1, __ATOMIC_RELAXED);
}

/* No flow of this side begins another message. */
static void stop_flows(void)
{
	for (int s = 0; s < 2; s++)
		for (int i = 0; sides[s].local && i < opt.sockets; i++)
			for (int j = 0; j < opt.sockets; j++) {
				struct flow *flow = &sides[s].ends[i].flows[j];

				if (flow->sent == flow->to_send)
					continue;
				flow->to_send = flow->sent;
				flow->stop_due = true;
			}
}

static void print_flow(const struct side *side, int i, int j)
{
	const struct end *end = &side->ends[i];
	const struct flow *flow = &end->flows[j];
	struct xrds_dest_status st;

	if (dest_status(end->fd, &flow->to, &st))
		memset(&st, 0, sizeof(st));
	tap_diag("%c%d-%d: sent %llu of %llu rcvd %llu of %llu%s%s%s%s%s",
		 side->name, i, j, flow->sent, flow->to_send, flow->rcvd,
		 flow->to_rcv, flow->refused ? " refused" : "",
		 flow->done_sent ? " done-sent" : "",
		 flow->done_rcvd ? " done-rcvd" : "",
		 flow->bye_sent ? " bye-sent" : "",
		 flow->bye_rcvd ? " bye-rcvd" : "");
	tap_diag("      queued %llu in flight %llu bytes, state %u flags %#x",
		 st.queued_bytes, st.inflight_bytes, st.state, st.flags);
}

static void print_flows(const struct side *side)
{
	for (int i = 0; i < opt.sockets; i++)
		for (int j = 0; j < opt.sockets; j++)
			if (!flow_finished(&side->ends[i].flows[j]))
				print_flow(side, i, j);
}

static void stalled(const char *why)
{
	struct counters counters;

	tap_diag("%s", why);
	for (int s = 0; s < 2; s++)
		if (sides[s].local)
			print_flows(&sides[s]);
	counters = counters_read();
	counters_print(&counters);
	counters_free(&counters);
	finish("stall", EXIT_STALL);
}

/* Prints progress, and ends the program when there is none */
static void watch(void)
{
	static u64 last_sent, last_rcvd;
	static long long next_ms;
	long long now = tap_now_ms();

	if (now - progress_ms > opt.stall_s * 1000LL)
		stalled("no progress for too long");
	if (opt.time_s && now - start_ms > opt.time_s * 1000LL)
		stalled("not finished in time");
	if (now < next_ms)
		return;
	next_ms = now + PROGRESS_MS;
	tap_diag("%lld s: sent %llu (+%llu) rcvd %llu (+%llu), idle %lld ms",
		 (now - start_ms) / 1000, total.sent, total.sent - last_sent,
		 total.rcvd, total.rcvd - last_rcvd, now - progress_ms);
	fflush(stdout);
	last_sent = total.sent;
	last_rcvd = total.rcvd;
}

static bool handle(struct side *side, struct end *end, short revents)
{
	bool any = false;

	if (revents & POLLERR) {
		tap_diag("POLLERR: %s",
			 tap_errno_name(rds_get_int(end->fd, SOL_SOCKET,
						    SO_ERROR)));
		finish("wrong", EXIT_WRONG);
	}
	if (revents & POLLOUT)
		for (int i = 0; i < opt.sockets; i++)
			end->flows[i].refused = false;
	if (revents & POLLIN)
		any |= receive(side, end);
	return any | transmit(side, end);
}

static void step(void)
{
	struct pollfd pfds[2 * MAX_SOCKETS];
	int n = 0, timeout = finished() ? ACK_MS : HELLO_MS;
	bool any = false, woken;

	for (int s = 0; s < 2; s++)
		for (int i = 0; sides[s].local && i < opt.sockets; i++) {
			struct end *end = &sides[s].ends[i];

			pfds[n].fd = end->fd;
			pfds[n++].events = POLLIN |
				(blocked(end) ? POLLOUT : 0);
			if (can_go_on(&sides[s], end))
				timeout = 0;
		}
	woken = poll(pfds, n, timeout) > 0;
	if (!woken)		/* nothing, or the signal to stop */
		memset(pfds, 0, sizeof(pfds));
	n = 0;
	for (int s = 0; s < 2; s++) {
		for (int i = 0; sides[s].local && i < opt.sockets; i++)
			any |= handle(&sides[s], &sides[s].ends[i],
				      pfds[n++].revents);
		if (sides[s].local)
			say_hello(&sides[s]);
	}
	if (any)
		progress();
	else if (woken)
		total.idle_wakes++;
}

static bool acknowledged(void)
{
	for (int s = 0; s < 2; s++)
		for (int i = 0; sides[s].local && i < opt.sockets; i++)
			if (rds_outq(sides[s].ends[i].fd))
				return false;
	return true;
}

/* Until everything is there, sent and acknowledged */
static void run(void)
{
	bool stopped = false;

	while (!finished() || !acknowledged() || !zcopy_idle()) {
		step();
		watch();
		if (!stopped && __atomic_load_n(&stop_asked, __ATOMIC_RELAXED)) {
			stop_flows();
			stopped = true;
		}
	}
}

static void usage_exit(const char *program, int code)
{
	fprintf(code ? stderr : stdout,
		"usage: %s [OPTION]... -l ADDRESSES [-r ADDRESSES]\n"
		"  -R, --role a|b|both  which side this process is [both]\n"
		"  -l, --local LIST     addresses of this side\n"
		"  -r, --remote LIST    addresses of the other side [as -l]\n"
		"  -s, --sockets N      sockets a side [4]\n"
		"  -c, --count N        messages each way [10000]\n"
		"  -m, --max BYTES      largest message [1048576]\n"
		"  -S, --seed N         of lengths and content [1]\n"
		"  -p, --port N         lowest port [5000]\n"
		"  -i, --stall SECONDS  longest time without progress [60]\n"
		"  -T, --time SECONDS   longest time in all [no limit]\n"
		"  -b, --sndbuf BYTES   SO_SNDBUF\n"
		"  -B, --rcvbuf BYTES   SO_RCVBUF\n"
		"  -M, --batch          send as sendmmsg() does\n"
		"  -z, --zerocopy       send with MSG_ZEROCOPY\n"
		"  -u, --user UID       belong to this user\n"
		"Exit status: 0 all arrived once and in order, 1 not, 2 usage,\n"
		"3 no progress in time.\n", program);
	exit(code);
}

static const struct option options[] = {
	{ "role", required_argument, NULL, 'R' },
	{ "local", required_argument, NULL, 'l' },
	{ "remote", required_argument, NULL, 'r' },
	{ "sockets", required_argument, NULL, 's' },
	{ "count", required_argument, NULL, 'c' },
	{ "max", required_argument, NULL, 'm' },
	{ "seed", required_argument, NULL, 'S' },
	{ "port", required_argument, NULL, 'p' },
	{ "stall", required_argument, NULL, 'i' },
	{ "time", required_argument, NULL, 'T' },
	{ "sndbuf", required_argument, NULL, 'b' },
	{ "rcvbuf", required_argument, NULL, 'B' },
	{ "batch", no_argument, NULL, 'M' },
	{ "zerocopy", no_argument, NULL, 'z' },
	{ "user", required_argument, NULL, 'u' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

struct arguments {
	const char *role;
	char *local, *remote;
};

static void parse(int argc, char **argv, struct arguments *arg)
{
	int c;

	while ((c = getopt_long(argc, argv, "R:l:r:s:c:m:S:p:i:T:b:B:Mzu:h",
				options, NULL)) != -1) {
		switch (c) {
		case 'R':
			arg->role = optarg;
			break;
		case 'l':
			arg->local = optarg;
			break;
		case 'r':
			arg->remote = optarg;
			break;
		case 's':
			opt.sockets = atoi(optarg);
			break;
		case 'c':
			opt.count = strtoull(optarg, NULL, 0);
			break;
		case 'm':
			opt.max = strtoul(optarg, NULL, 0);
			break;
		case 'S':
			opt.seed = strtoull(optarg, NULL, 0);
			break;
		case 'p':
			opt.port = atoi(optarg);
			break;
		case 'i':
			opt.stall_s = atoi(optarg);
			break;
		case 'T':
			opt.time_s = atoi(optarg);
			break;
		case 'b':
			opt.sndbuf = atoi(optarg);
			break;
		case 'B':
			opt.rcvbuf = atoi(optarg);
			break;
		case 'M':
			opt.batch = true;
			break;
		case 'z':
			opt.zcopy = true;
			break;
		case 'u':
			opt.user = atoi(optarg);
			break;
		default:
			usage_exit(argv[0], c == 'h' ? 0 : EXIT_USAGE);
		}
	}
	if (!arg->local || optind != argc || opt.sockets < 1 ||
	    opt.sockets > MAX_SOCKETS || opt.max > MSG_MAX_BYTES ||
	    (strcmp(arg->role, "both") && !arg->remote))
		usage_exit(argv[0], EXIT_USAGE);
}

static void set_up(struct arguments *arg)
{
	bool both = !strcmp(arg->role, "both");
	int me = *arg->role == 'b' && !both;

	if (!both && strcmp(arg->role, "a") && strcmp(arg->role, "b"))
		tap_fail("role '%s'?", arg->role);
	opt.per_flow = (opt.count + opt.sockets * opt.sockets - 1) /
		       (opt.sockets * opt.sockets);
	parse_hosts(&sides[!me], strdup(arg->remote ? arg->remote :
					arg->local));
	parse_hosts(&sides[me], arg->local);
	sides[me].local = true;
	sides[!me].local = both;
	buffer = malloc(MSG_MAX_BYTES + 1);
	if (!buffer)
		tap_fail("no memory");
	pattern_init(opt.seed);
	if (opt.zcopy)
		zcopy_init();
	for (int s = 0; s < 2; s++)
		for (int i = 0; sides[s].local && i < opt.sockets; i++)
			open_end(&sides[s], i);
}

int main(int argc, char **argv)
{
	struct arguments arg = { .role = "both" };

	parse(argc, argv, &arg);
	if (opt.user)
		must(setresuid(opt.user, opt.user, opt.user));
	set_up(&arg);
	start_ms = tap_now_ms();
	progress_ms = start_ms;
	progress();
	signal(SIGUSR1, on_stop);
	run();
	leaving = true;
	run();
	finish("ok", 0);
}
