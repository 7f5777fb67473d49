// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-peer: the loads of xrds-perf, over what competes with it. It runs on
 * nodes, for "make bench":
 *
 *   bench-peer [OPTION]... tcp|udp|sctp NEAR FAR	addresses of both ends
 *   bench-peer [OPTION]... tipc
 *
 * The options -m (echo or stream), -l, -a, -d, -S, -n, -w and -P are those of
 * xrds-perf, and so is the output; -N PATH names the network namespace of
 * the far end.
 *
 * The far end is a child. Both know how many messages there are, and go round
 * the sockets in the same order, so nobody has to poll. A pipe tells when the
 * far end is there, and when it has all of a round.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <linux/sctp.h>
#include <linux/tcp.h>
#include <linux/tipc.h>

#include "../../tools/perf/perf.h"

enum {
	IP_PORT		= 18900,
	SERVICE		= 18900,	/* of TIPC */
	MIN_BUFFER	= 256 << 10,
	PLENTY		= 256 << 20,	/* UDP loses what finds no room */
	TRIES		= 1000,
	TRY_US		= 10000,
	NODELAY		= 1,
};

static const struct protocol {
	const char *name;
	int family, type, number;
	int level, nodelay;	/* the option against waiting, if it has one */
} protocols[] = {
	{ "tcp", AF_INET, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_NODELAY },
	{ "udp", AF_INET, SOCK_DGRAM, IPPROTO_UDP, 0, 0 },
	{ "sctp", AF_INET, SOCK_STREAM, IPPROTO_SCTP, IPPROTO_SCTP,
	  SCTP_NODELAY },
	{ "tipc", AF_TIPC, SOCK_SEQPACKET, 0, 0, 0 },
};

#define NR_PROTOCOLS (sizeof(protocols) / sizeof(*protocols))

const char * const mode_names[NR_MODES] = {
	[ECHO]		= "echo",
	[STREAM]	= "stream",
};

struct options opt = {
	.bytes = 64,
	.answer = 16,
	.depth = 1,
	.sockets = 1,
	.tasks = 1,
	.count = 1000,
	.warm_up = 32,
};

static const struct protocol *protocol;
static const char *namespace;
static struct address near_end, far_end;
static int fds[MAX_SOCKETS];
static char *memory;
static int news[2];		/* a pipe: from the far end */

/* ------------------------------------------------------------------ basics */

void die(const char *what, int error)
{
	fprintf(stderr, "bench-peer: %s: %s\n", what, strerror(error));
	exit(EXIT_ERROR);
}

static int must(int result, const char *what)
{
	if (result < 0)
		die(what, errno);
	return result;
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void tell(void)
{
	must(write(news[1], "", 1), "pipe");
}

static void hear(void)
{
	char byte;

	if (read(news[0], &byte, 1) != 1)
		die("the far end", ECONNRESET);
}

static bool is_udp(void)
{
	return protocol->number == IPPROTO_UDP;
}

/* ----------------------------------------------------------------- sockets */

static void set(int fd, int level, int option, int value)
{
	must(setsockopt(fd, level, option, &value, sizeof(value)),
	     "setsockopt");
}

static int open_one(void)
{
	int room = 4 * opt.bytes > MIN_BUFFER ? 4 * opt.bytes : MIN_BUFFER;
	struct timeval patience = { .tv_sec = PATIENCE_S };
	int fd = must(socket(protocol->family, protocol->type,
			     protocol->number), "socket");

	/* TCP and TIPC size their buffers themselves */
	if (is_udp() || protocol->number == IPPROTO_SCTP) {
		set(fd, SOL_SOCKET, SO_SNDBUF, room);
		set(fd, SOL_SOCKET, SO_RCVBUF, is_udp() ? PLENTY : room);
	}
	if (protocol->level)
		set(fd, protocol->level, protocol->nodelay, NODELAY);
	if (protocol->family == AF_INET)
		set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
			sizeof(patience)), "SO_RCVTIMEO");
	return fd;
}

static void ip_address(const char *text, uint16_t port, struct address *a)
{
	struct sockaddr_in *sin = (void *)&a->ss;

	sin->sin_family = AF_INET;
	sin->sin_port = htons(port);
	if (inet_pton(AF_INET, text, &sin->sin_addr) != 1)
		die(text, EINVAL);
	a->len = sizeof(*sin);
}

static void tipc_service(bool range, struct address *a)
{
	struct sockaddr_tipc *st = (void *)&a->ss;

	memset(a, 0, sizeof(*a));
	st->family = AF_TIPC;
	st->scope = TIPC_CLUSTER_SCOPE;
	st->addrtype = range ? TIPC_SERVICE_RANGE : TIPC_SERVICE_ADDR;
	/* the type and the instance, or the lower and the upper one */
	st->addr.nameseq.type = SERVICE;
	st->addr.nameseq.lower = 1;
	st->addr.nameseq.upper = range ? 1 : 0;
	a->len = sizeof(*st);
}

/* The name of a TIPC service takes a while to spread. */
static void connect_one(int fd)
{
	for (int i = 0; i < TRIES; i++) {
		if (!connect(fd, (void *)&far_end.ss, far_end.len))
			return;
		if (protocol->family != AF_TIPC || errno != EHOSTUNREACH)
			break;
		usleep(TRY_US);
	}
	die("connect", errno);
}

static void open_near(void)
{
	if (protocol->family == AF_TIPC)
		tipc_service(false, &far_end);
	for (uint32_t i = 0; i < opt.sockets; i++) {
		fds[i] = open_one();
		if (near_end.len)
			must(bind(fds[i], (void *)&near_end.ss, near_end.len),
			     "bind");
		connect_one(fds[i]);
	}
}

/* A listener, or with UDP the one socket that all talk to */
static int open_far(void)
{
	int fd;

	if (namespace)
		must(setns(must(open(namespace, O_RDONLY), namespace),
			   CLONE_NEWNET), namespace);
	if (protocol->family == AF_TIPC)
		tipc_service(true, &far_end);
	fd = open_one();
	must(bind(fd, (void *)&far_end.ss, far_end.len), "bind");
	if (!is_udp())
		must(listen(fd, MAX_SOCKETS), "listen");
	return fd;
}

static void accept_all(int fd)
{
	for (uint32_t i = 0; i < opt.sockets; i++) {
		fds[i] = must(accept(fd, NULL, NULL), "accept");
		if (protocol->level)
			set(fds[i], protocol->level, protocol->nodelay, NODELAY);
	}
}

/* ---------------------------------------------------------------- messages */

static void send_all(int fd, uint32_t bytes, const struct address *to)
{
	uint32_t done = 0;
	ssize_t n;

	do {
		n = sendto(fd, memory + done, bytes - done, 0,
			   to ? (void *)&to->ss : NULL, to ? to->len : 0);
		done += must(n, "send");
	} while (done < bytes);
}

/* All of a message, in one piece or in several */
static void take_all(int fd, uint32_t bytes, struct address *from)
{
	uint32_t done = 0;
	ssize_t n;

	if (from)
		from->len = sizeof(from->ss);
	do {
		n = recvfrom(fd, memory + done, bytes - done, 0,
			     from ? (void *)&from->ss : NULL,
			     from ? &from->len : NULL);
		if (!must(n, "receive"))
			die("receive", ECONNRESET);
		done += n;
	} while (done < bytes);
}

static void far_round(int udp, uint64_t count)
{
	struct address from;

	for (uint64_t i = 0; i < count; i++) {
		int fd = is_udp() ? udp : fds[i % opt.sockets];

		take_all(fd, opt.bytes, is_udp() ? &from : NULL);
		if (opt.mode == ECHO)
			send_all(fd, opt.answer, is_udp() ? &from : NULL);
	}
	tell();
}

static uint64_t rest(void)
{
	usleep((opt.pause_ns / 2 + random() % opt.pause_ns) / 1000);
	return now_ns();
}

static void echo_round(uint64_t count, bool measure)
{
	static uint64_t sent_ns[MAX_SOCKETS][MAX_DEPTH];
	uint64_t sent = 0, got = 0, now = now_ns(), *then;

	while (got < count) {
		while (sent < count &&
		       sent - got < (uint64_t)opt.sockets * opt.depth) {
			then = sent_ns[sent % opt.sockets];
			then[sent / opt.sockets % opt.depth] = now;
			send_all(fds[sent % opt.sockets], opt.bytes, NULL);
			sent++;
		}
		take_all(fds[got % opt.sockets], opt.answer, NULL);
		now = now_ns();
		then = sent_ns[got % opt.sockets];
		if (measure)
			report_latency(now - then[got / opt.sockets %
						  opt.depth]);
		got++;
		if (opt.pause_ns)
			now = rest();
	}
}

static void near_round(uint64_t count, bool measure)
{
	if (opt.mode == ECHO) {
		echo_round(count, measure);
		return;
	}
	for (uint64_t i = 0; i < count; i++)
		send_all(fds[i % opt.sockets], opt.bytes, NULL);
	hear();
}

/* -------------------------------------------------------------------- main */

static void __attribute__((noreturn)) far(void)
{
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = open_far();
	tell();
	if (!is_udp())
		accept_all(fd);
	far_round(fd, opt.warm_up);
	far_round(fd, opt.count);
	pause();		/* until the near end ends, and closes first */
	exit(0);
}

static void measure(void)
{
	uint64_t begin;

	open_near();
	near_round(opt.warm_up, false);
	if (opt.mode == ECHO)
		hear();
	report_begin();
	begin = now_ns();
	near_round(opt.count, true);
	report_end(opt.count, now_ns() - begin);
}

static uint32_t number(const char *text, uint32_t most)
{
	unsigned long value = strtoul(text, NULL, 0);

	if (!value || value > most)
		die(text, ERANGE);
	return value;
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "m:l:a:d:S:n:w:P:N:")) != -1) {
		switch (c) {
		case 'm':
			opt.mode = strcmp(optarg, "stream") ? ECHO : STREAM;
			break;
		case 'l':
			opt.bytes = number(optarg, MAX_BYTES);
			break;
		case 'a':
			opt.answer = number(optarg, MAX_BYTES);
			break;
		case 'd':
			opt.depth = number(optarg, MAX_DEPTH);
			break;
		case 'S':
			opt.sockets = number(optarg, MAX_SOCKETS);
			break;
		case 'n':
			opt.count = number(optarg, UINT32_MAX);
			break;
		case 'w':
			opt.warm_up = number(optarg, UINT32_MAX);
			break;
		case 'P':
			opt.pause_ns = 1000ull * number(optarg, 1000000);
			break;
		case 'N':
			namespace = optarg;
			break;
		default:
			exit(EXIT_ERROR);
		}
	}
	opt.json = true;
	for (size_t i = 0; i < NR_PROTOCOLS && argv[optind]; i++) {
		if (!strcmp(argv[optind], protocols[i].name))
			protocol = &protocols[i];
	}
	if (!protocol ||
	    argc - optind != (protocol->family == AF_INET ? 3 : 1)) {
		fprintf(stderr, "bench-peer: what to what?\n");
		exit(EXIT_ERROR);
	}
	if (protocol->family == AF_INET) {
		ip_address(argv[optind + 1], 0, &near_end);
		ip_address(argv[optind + 2], IP_PORT, &far_end);
	}
}

int main(int argc, char **argv)
{
	pid_t child;

	parse(argc, argv);
	memory = mmap(NULL, MAX_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		die("memory", errno);
	must(pipe(news), "pipe");
	child = must(fork(), "fork");
	if (!child)
		far();
	close(news[1]);
	hear();
	measure();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}
