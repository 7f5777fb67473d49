// SPDX-License-Identifier: GPL-2.0-only
/*
 * xrds-ping: does a node answer, and how fast?
 *
 * The kernel of a node answers a message to port 0 with an empty message from
 * port 0. No program has to run there. The answer proves the whole path:
 * address resolution, connection, both directions.
 *
 * Messages are reliable: a ping is never lost but may be late. It is answered
 * when the node can be reached again, unless that has given the answer up, after
 * linger_ms. Each unanswered ping has a socket of its
 * own, so a late answer is not taken for the answer of a later ping. When all
 * sockets wait, no new ping is sent.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "hint.h"
#include "out.h"
#include "ping.h"
#include "text.h"

enum {
	SLOTS		= 64,		/* unanswered pings at a time */
	RETRY_MS	= 10,		/* without send space, or with SLOTS in use */
	SILENT_MS	= 1500,		/* then the reason is told */
	RDMA_BYTES	= 4096,		/* of an RDMA probe, by default */
};

/* One socket, and the ping that waits for an answer on it */
struct slot {
	bool waiting;
	unsigned long seq;
	long long sent_ns;
};

struct options opt = { .interval_ns = NSEC_PER_SEC };
struct statistics stats;

struct sockaddr_storage to, from;
socklen_t addr_len;
char to_text[NI_MAXHOST], from_text[NI_MAXHOST];

static char payload[MAX_BYTES];
static struct pollfd pfds[SLOTS];
static struct slot slots[SLOTS];
static int nr_slots;

static int stopped;		/* by a signal */
static bool connected;		/* the next answer needs no new connection */
static long long look_ns;	/* when to look for the reason of silence */

void die(const char *what, int error)
{
	fprintf(stderr, "xrds-ping: %s: %s\n", what, strerror(error));
	exit(EXIT_ERROR);
}

long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

void on_signal(int sig)
{
	(void)sig;
	__atomic_store_n(&stopped, 1, __ATOMIC_RELAXED);
}

void catch_signals(void (*handler)(int sig))
{
	struct sigaction action = { .sa_handler = handler };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* --------------------------------------------------------------- addresses */

static void resolve(const char *name, int family, struct sockaddr_storage *ss,
		    char *text)
{
	struct addrinfo hints = {
		.ai_family = family,
		.ai_socktype = SOCK_DGRAM,
	};
	struct addrinfo *found;
	int ret;

	ret = getaddrinfo(name, NULL, &hints, &found);
	if (ret) {
		fprintf(stderr, "xrds-ping: %s: %s\n", name,
			ret == EAI_SYSTEM ? strerror(errno) :
			gai_strerror(ret));
		exit(EXIT_ERROR);
	}
	memcpy(ss, found->ai_addr, found->ai_addrlen);
	addr_len = found->ai_addrlen;
	freeaddrinfo(found);
	getnameinfo((struct sockaddr *)ss, addr_len, text, NI_MAXHOST, NULL, 0,
		    NI_NUMERICHOST);
}

void set_port(struct sockaddr_storage *ss, unsigned short port)
{
	if (ss->ss_family == AF_INET6)
		((struct sockaddr_in6 *)ss)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)ss)->sin_port = htons(port);
}

/* The address from which the kernel would send UDP to the node */
static void choose_source(void)
{
	struct sockaddr_storage dest = to;
	socklen_t len = sizeof(from);
	int fd;

	/* any port works: nothing is sent */
	set_port(&dest, 9);
	fd = socket(dest.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die("socket", errno);
	if (connect(fd, (struct sockaddr *)&dest, addr_len))
		die(to_text, errno);
	if (getsockname(fd, (struct sockaddr *)&from, &len))
		die("getsockname", errno);
	close(fd);
	set_port(&from, 0);
	getnameinfo((struct sockaddr *)&from, addr_len, from_text, NI_MAXHOST,
		    NULL, 0, NI_NUMERICHOST);
}

/* ----------------------------------------------------------------- sockets */

/* A line about an error, unless it is that of the last one */
static int complain(const char *what, const char *which, int error,
		    const char *hint)
{
	static int last;

	if (error != last)
		fprintf(stderr, "xrds-ping: %s %s: %s%s\n", what, which,
			strerror(error), hint);
	last = error;
	return -error;
}

int try_socket(int flags)
{
	int fd = socket(AF_RDS, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
	int error = errno;

	if (fd < 0)
		return complain("no", "socket", error, hint_socket(error));
	if (bind(fd, (struct sockaddr *)&from, addr_len)) {
		error = errno;
		close(fd);
		return complain("cannot bind", from_text, error,
				hint_bind(error));
	}
	if (opt.tos && ioctl(fd, SIOCRDSSETTOS, &opt.tos))
		die("SIOCRDSSETTOS", errno);
	return fd;
}

int open_socket(int flags)
{
	int fd = try_socket(flags);

	if (fd < 0)
		exit(EXIT_ERROR);
	return fd;
}

/* A socket with nothing outstanding, or NULL */
static struct slot *free_slot(void)
{
	int fd;

	for (int i = 0; i < nr_slots; i++)
		if (!slots[i].waiting)
			return &slots[i];
	if (nr_slots == SLOTS)
		return NULL;
	/* the device may be away for now; the first ping must go */
	fd = stats.sent ? try_socket(SOCK_NONBLOCK) :
			  open_socket(SOCK_NONBLOCK);
	if (fd < 0)
		return NULL;
	pfds[nr_slots].fd = fd;
	pfds[nr_slots].events = POLLIN;
	return &slots[nr_slots++];
}

/* ------------------------------------------------------------------- pings */

/* The kernel's own rds does not take the flags of the call. */
static void die_sending(int error)
{
	if (error == EOPNOTSUPP && !access("/sys/module/rds", F_OK)) {
		fprintf(stderr, "xrds-ping: %s\n", hint_no_family());
		exit(EXIT_ERROR);
	}
	die(to_text, error);
}

static void report_late(void)
{
	for (int i = 0; i < nr_slots; i++) {
		if (!slots[i].waiting)
			continue;
		put_date();
		printf("no answer yet from %s: seq=%lu\n", to_text,
		       slots[i].seq);
	}
	fflush(stdout);
}

/* Returns false if it has to wait for an answer, or for send space. */
static bool send_ping(void)
{
	struct slot *slot = free_slot();
	int fd;

	if (!slot)
		return false;
	fd = pfds[slot - slots].fd;
	slot->sent_ns = now_ns();
	if (sendto(fd, payload, opt.bytes, MSG_NOSIGNAL, (struct sockaddr *)&to,
		   addr_len) < 0) {
		if (errno == EAGAIN || errno == ENOBUFS)
			return false;
		if (!stats.sent)
			die_sending(errno);
		complain("cannot send to", to_text, errno, "");
		return true;
	}
	if (!look_ns)
		look_ns = slot->sent_ns + SILENT_MS * NSEC_PER_MSEC;
	slot->waiting = true;
	slot->seq = ++stats.sent;
	return true;
}

static bool from_port_0(const struct sockaddr_storage *ss)
{
	if (ss->ss_family == AF_INET6)
		return !((struct sockaddr_in6 *)ss)->sin6_port;
	return !((struct sockaddr_in *)ss)->sin_port;
}

/* The time of day with microseconds, as ping -D has it */
void put_date(void)
{
	struct timespec ts;

	if (!opt.dates)
		return;
	clock_gettime(CLOCK_REALTIME, &ts);
	printf("[%lld.%06ld] ", (long long)ts.tv_sec, ts.tv_nsec / 1000);
}

static void add_time(double ms)
{
	stats.timed++;
	stats.sum += ms;
	stats.sum2 += ms * ms;
	if (stats.timed == 1 || ms < stats.min)
		stats.min = ms;
	if (ms > stats.max)
		stats.max = ms;
}

void answered(const char *what, unsigned long seq, long long ns)
{
	double ms = (double)ns / NSEC_PER_MSEC;
	bool setup = !connected;

	stats.received++;
	/* the time to make the connection is told apart */
	connected = true;
	if (setup)
		stats.setup = ms;
	else
		add_time(ms);
	look_ns = 0;
	if (opt.quiet || opt.json)
		return;
	put_date();
	printf("%s %s: seq=%lu time=%.3f ms%s\n", what, to_text, seq, ms,
	       setup ? " (the connection was made)" : "");
	fflush(stdout);
}

static void read_answers(void)
{
	struct sockaddr_storage peer;
	socklen_t len;
	char byte;

	for (int i = 0; i < nr_slots; i++) {
		if (!pfds[i].revents)
			continue;
		len = sizeof(peer);
		if (recvfrom(pfds[i].fd, &byte, 1, 0, (struct sockaddr *)&peer,
			     &len) < 0) {
			if (errno == EAGAIN || errno == EINTR)
				continue;
			die("receive", errno);
		}
		if (!slots[i].waiting || !from_port_0(&peer))
			continue;
		slots[i].waiting = false;
		answered("answer from", slots[i].seq,
			 now_ns() - slots[i].sent_ns);
	}
}

bool finished(long long now, long long end)
{
	return __atomic_load_n(&stopped, __ATOMIC_RELAXED) ||
	       (end && now >= end) || (opt.count && stats.received >= opt.count);
}

static void ping_loop(void)
{
	long long now = now_ns(), next = now, wake, end;
	struct timespec ts;
	bool full;

	end = opt.deadline_ns ? now + opt.deadline_ns : 0;
	while (!finished(now, end)) {
		if (look_ns && now >= look_ns) {
			why_silent();
			look_ns = now + NSEC_PER_SEC;
		}
		full = false;
		if (now >= next && (!opt.count || stats.sent < opt.count)) {
			if (opt.late && !opt.quiet && !opt.json)
				report_late();
			full = !send_ping();
			next += opt.interval_ns;
			if (next < now)
				next = now;
		}
		wake = opt.count && stats.sent >= opt.count ?
		       now + NSEC_PER_SEC : next;
		if (full && wake < now + RETRY_MS * NSEC_PER_MSEC)
			wake = now + RETRY_MS * NSEC_PER_MSEC;
		if (end && wake > end)
			wake = end;
		if (look_ns && wake > look_ns)
			wake = look_ns;
		now = now_ns();
		wake = wake > now ? wake - now : 0;
		ts.tv_sec = wake / NSEC_PER_SEC;
		ts.tv_nsec = wake % NSEC_PER_SEC;
		if (ppoll(pfds, nr_slots, &ts, NULL) > 0)
			read_answers();
		now = now_ns();
	}
}

static double deviation(double mean)
{
	double variance = stats.sum2 / stats.timed - mean * mean;

	return variance > 0 ? sqrt(variance) : 0.0;
}

static void print_json(long long ms)
{
	double mean = stats.timed ? stats.sum / stats.timed : 0;

	printf("{\"host\": ");
	text_json(to_text);
	printf(", \"from\": ");
	text_json(from_text);
	printf(", \"bytes\": %lu, ", opt.bytes);
	if (opt.rdma)
		printf("\"rdma\": %u, ", opt.rdma);
	printf("\"sent\": %lu, \"answered\": %lu, \"ms\": %lld", stats.sent,
	       stats.received, ms);
	if (stats.setup)
		printf(", \"setup_ms\": %.3f", stats.setup);
	if (stats.timed) {
		printf(", \"min_ms\": %.3f, \"mean_ms\": %.3f", stats.min, mean);
		printf(", \"max_ms\": %.3f, \"deviation_ms\": %.3f", stats.max,
		       deviation(mean));
	}
	printf("}\n");
}

int print_statistics(long long ms)
{
	double mean;

	if (opt.json) {
		print_json(ms);
		return stats.received && stats.received == stats.sent ?
		       0 : EXIT_SILENT;
	}
	printf("--- %s: %lu sent, %lu answered, %lld ms\n", to_text,
	       stats.sent, stats.received, ms);
	if (stats.setup)
		printf("first answer, over a new connection: %.3f ms\n",
		       stats.setup);
	if (stats.timed) {
		mean = stats.sum / stats.timed;
		printf("round trip min/mean/max/deviation: %.3f/%.3f/%.3f/%.3f ms\n",
		       stats.min, mean, stats.max, deviation(mean));
	}
	if (!stats.received)
		return EXIT_SILENT;
	return stats.received < stats.sent ? EXIT_SILENT : 0;
}

/* --------------------------------------------------------------- arguments */

static void __attribute__((noreturn)) help(int code)
{
	fprintf(code ? stderr : stdout,
		"usage: xrds-ping [OPTION]... HOST...\n"
		"       xrds-ping -r PORT [OPTION]... HOST...\n"
		"       xrds-ping -l PORT ADDRESS\n"
		"Sends messages to port 0 of a node; its kernel answers. With -r, writes\n"
		"by RDMA to memory that xrds-ping -l offers there, and reads it back.\n"
		"  -c COUNT     stop after so many answers, with -r after so many probes\n"
		"  -i SECONDS   time between two pings [1]\n"
		"  -I ADDRESS   send from this address\n"
		"  -l PORT      offer memory for -r, at an address of this node\n"
		"  -O           report each message that has no answer yet\n"
		"  -D           print the time in front of each line\n"
		"  -Q TOS       type of service, 0 to 255 [0]\n"
		"  -r PORT      do RDMA to the memory offered at this port\n"
		"  -s BYTES     size of a message [0], or of memory [4096]; up to 1 MiB\n"
		"  -w SECONDS   stop after this time\n"
		"  -q           print the statistics only\n"
		"  -j, --json   print the statistics as JSON\n"
		"  -4, -6       IPv4 or IPv6 only\n"
		"  -h, --help   print this\n"
		"  -V, --version  print the version\n"
		"Exit status: 0 all were answered, 1 some were not, 2 error.\n");
	exit(code);
}

static long long seconds_arg(const char *text, const char *what, double min)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= min) || value > 1e6) {
		fprintf(stderr, "xrds-ping: %s: '%s' is not a time\n", what,
			text);
		exit(EXIT_ERROR);
	}
	return value * NSEC_PER_SEC;
}

static unsigned long number_arg(const char *text, const char *what,
				unsigned long min, unsigned long max)
{
	uint64_t value;

	if (!text_number(text, &value) || value < min || value > max) {
		fprintf(stderr, "xrds-ping: '%s' is not a %s\n", text, what);
		exit(EXIT_ERROR);
	}
	return value;
}

static unsigned short port_arg(const char *text)
{
	return number_arg(text, "port", 1, 65535);
}

/* Check which options go together, and set the defaults that follow. */
static void check_options(void)
{
	if (opt.serve && (opt.rdma || opt.count || opt.deadline_ns ||
			  opt.sized || opt.source)) {
		fprintf(stderr, "xrds-ping: -l: not with -r, -c, -w, -s, -I\n");
		exit(EXIT_ERROR);
	}
	if (opt.rdma && opt.sized && !opt.bytes) {
		fprintf(stderr, "xrds-ping: -s: RDMA needs at least one byte\n");
		exit(EXIT_ERROR);
	}
	if (opt.rdma && !opt.sized)
		opt.bytes = RDMA_BYTES;
}

static int parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	int family = AF_UNSPEC, c;

	while ((c = getopt_long(argc, argv, "c:i:I:l:r:s:w:Q:qjODh46V", options,
				NULL)) != -1) {
		switch (c) {
		case 'c':
			opt.count = number_arg(optarg, "count", 1, ULONG_MAX);
			break;
		case 'i':
			opt.interval_ns = seconds_arg(optarg, "-i", 0);
			break;
		case 'I':
			opt.source = optarg;
			break;
		case 'l':
			opt.serve = port_arg(optarg);
			break;
		case 'r':
			opt.rdma = port_arg(optarg);
			break;
		case 'w':
			opt.deadline_ns = seconds_arg(optarg, "-w",
						      1.0 / NSEC_PER_SEC);
			break;
		case 's':
			opt.bytes = number_arg(optarg, "size", 0, MAX_BYTES);
			opt.sized = true;
			break;
		case 'j':
			opt.json = true;
			break;
		case 'q':
			opt.quiet = true;
			break;
		case 'O':
			opt.late = true;
			break;
		case 'D':
			opt.dates = true;
			break;
		case 'Q':
			opt.tos = number_arg(optarg, "type of service", 0, 255);
			break;
		case 'V':
			printf("xrds-ping %s\n", XRDS_VERSION);
			exit(0);
		case '4':
			family = AF_INET;
			break;
		case '6':
			family = AF_INET6;
			break;
		default:
			help(c == 'h' ? 0 : EXIT_ERROR);
		}
	}
	if (optind >= argc || (opt.serve && optind < argc - 1))
		help(EXIT_ERROR);
	check_options();
	return family;
}

long long ping(const char *name, int family)
{
	long long start;

	resolve(name, family, &to, to_text);
	set_port(&to, opt.rdma);
	if (opt.source)
		resolve(opt.source, to.ss_family, &from, from_text);
	else
		choose_source();
	if (!opt.json)
		printf("ping %s (%s) from %s\n", name, to_text, from_text);
	fflush(stdout);
	start = now_ns();
	connected = opt.rdma || why_connected();
	if (opt.rdma)
		rdma_loop();
	else
		ping_loop();
	return (now_ns() - start) / NSEC_PER_MSEC;
}

int main(int argc, char **argv)
{
	int family;

	out_check();
	family = parse(argc, argv);
	if (opt.serve) {
		resolve(argv[optind], family, &from, from_text);
		set_port(&from, opt.serve);
		serve();
	}
	if (optind < argc - 1)
		return ping_hosts(argv + optind, argc - optind, family);
	catch_signals(on_signal);
	return print_statistics(ping(argv[optind], family));
}
