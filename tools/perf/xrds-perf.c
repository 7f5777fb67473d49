// SPDX-License-Identifier: GPL-2.0-only
/*
 * xrds-perf: measures the speed of AF_RDS sockets. One end is the server, the
 * other one measures; perf.h has the protocol between them.
 *
 * It uses only features of AF_RDS that mainline has, too, except for barriers.
 * Where the socket has no barriers it waits for the notices of RDMA ops.
 *
 * This file has the arguments.
 */
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "out.h"
#include "perf.h"
#include "text.h"

const char * const mode_names[NR_MODES] = {
	[ECHO]		= "echo",
	[STREAM]	= "stream",
	[WRITE]		= "write",
	[READ]		= "read",
	[MAP]		= "map",
};

struct options opt = {
	.bytes = 64,
	.answer = 16,
	.depth = 1,
	.batch = 1,
	.sockets = 1,
	.tasks = 1,
	.vectors = 1,
	.warm_up = 32,
	.port = DEFAULT_PORT,
	.time_ns = 10 * NSEC_PER_SEC,
};

static void __attribute__((noreturn)) help(int code)
{
	fprintf(code ? stderr : stdout,
		"usage: xrds-perf -s [-p PORT] [-u] ADDRESS	be the server\n"
		"       xrds-perf [OPTION]... HOST	measure against a server\n"
		"       xrds-perf -X [OPTION]... ADDRESS...	be one node of a mesh\n"
		"  -m MODE      echo, stream, write, read or map [echo]\n"
		"  -l BYTES     size of a message or RDMA op; 4K, 1M [64]\n"
		"  -a BYTES     size of an answer to echo [16]\n"
		"  -d DEPTH     messages of a socket, or ops, in flight [1]\n"
		"  -M COUNT     messages of a stream in one sendmmsg() [1]\n"
		"  -S SOCKETS   send from so many sockets in turn [1]\n"
		"  -T TASKS     so many processes, with sockets of their own [1]\n"
		"  -i SOCKETS   bind so many more, which do nothing [0]\n"
		"  -D COUNT     first send to so many unbound ports there [0]\n"
		"  -n COUNT     stop after so many messages or ops\n"
		"  -t SECONDS   stop after this time instead [10]\n"
		"  -w COUNT     messages or ops before the clock starts [32]\n"
		"  -P MICROSEC  pause before each message or turn, about so long\n"
		"  -r, --rate=COUNT  messages or ops of a task a second, evenly paced\n"
		"  -Q TOS       type of service, 0 to 255 [0]\n"
		"  -v, --verify  check all payload, at both ends\n"
		"  -b BYTES     size of the socket buffers, at both ends\n"
		"  -B BYTES     size of the receive buffers only\n"
		"  -N           wait for notices of RDMA ops, not for barriers\n"
		"  -L COUNT     local buffers of an RDMA op [1]\n"
		"  -g           register memory with RDS_GET_MR, not with a message\n"
		"  -U, --use-once  a region of the server's memory for each op\n"
		"  -R, --reset=SECONDS  reset the connections at this interval\n"
		"  -A, --abort=SECONDS  end in the midst of it after this time\n"
		"  -q           the server gets no message of an RDMA op\n"
		"  -z           send a stream with MSG_ZEROCOPY, from one socket\n"
		"  -X           the same command runs at each address, and each sends\n"
		"               to all others\n"
		"  -I ADDRESS   send from this address\n"
		"  -p PORT      port of the server [%u]\n"
		"  -u           use AF_UNIX instead of AF_RDS, for comparison\n"
		"  -j           print JSON\n"
		"  -c, --csv    print CSV: a line of names, a line of values\n"
		"  -H           print the histogram of latencies\n"
		"  -o, --outliers=COUNT  print the slowest ones, and when they were\n"
		"  -4, -6       IPv4 or IPv6 only\n"
		"  -h, --help   print this\n"
		"  -V, --version  print the version\n"
		"Exit status: 0, or 2 after an error.\n", DEFAULT_PORT);
	exit(code);
}

static void __attribute__((noreturn)) refuse(int option, const char *text)
{
	fprintf(stderr, "xrds-perf: -%c: '%s'?\n", option, text);
	exit(EXIT_ERROR);
}

static uint64_t number(int option, const char *text, uint64_t min,
		       uint64_t max)
{
	uint64_t value;

	if (!text_number(text, &value) || value < min || value > max)
		refuse(option, text);
	return value;
}

static uint64_t nanoseconds(int option, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value > 0) || value > 1e6)
		refuse(option, text);
	return value * NSEC_PER_SEC;
}

static enum mode mode_of(const char *text)
{
	for (int i = 0; i < NR_MODES; i++) {
		if (!strcmp(text, mode_names[i]))
			return i;
	}
	refuse('m', text);
}

static void number_option(int c)
{
	switch (c) {
	case 'l':
		opt.bytes = number(c, optarg, 0, MAX_BYTES);
		break;
	case 'a':
		opt.answer = number(c, optarg, 0, MAX_BYTES);
		break;
	case 'd':
		opt.depth = number(c, optarg, 1, MAX_DEPTH);
		break;
	case 'M':
		opt.batch = number(c, optarg, 1, MAX_BATCH);
		break;
	case 'S':
		opt.sockets = number(c, optarg, 1, MAX_SOCKETS);
		break;
	case 'i':
		opt.idle = number(c, optarg, 0, 1000000);
		break;
	case 'D':
		opt.strangers = number(c, optarg, 0, MAX_STRANGERS);
		break;
	case 'n':
		opt.count = number(c, optarg, 1, UINT64_MAX);
		break;
	case 'T':
		opt.tasks = number(c, optarg, 1, MAX_TASKS);
		break;
	case 'L':
		opt.vectors = number(c, optarg, 1, MAX_VECTORS);
		break;
	case 'r':
		opt.rate = number(c, optarg, 1, NSEC_PER_SEC);
		break;
	case 'Q':
		opt.tos = number(c, optarg, 0, UINT8_MAX);
		break;
	case 'o':
		opt.outliers = number(c, optarg, 1, MAX_OUTLIERS);
		break;
	case 'w':
		opt.warm_up = number(c, optarg, 0, 1000000);
		break;
	case 'P':
		opt.pause_ns = 1000 * number(c, optarg, 1, 1000000000);
		break;
	case 'b':
		opt.buffer = number(c, optarg, 1, 1 << 30);
		break;
	case 'B':
		opt.room = number(c, optarg, 1, 1 << 30);
		break;
	case 'p':
		opt.port = number(c, optarg, 1, 65535);
		break;
	}
}

static void flag_option(int c)
{
	switch (c) {
	case 's':
		opt.server = true;
		break;
	case 'N':
		opt.notices = true;
		break;
	case 'g':
		opt.get_mr = true;
		break;
	case 'U':
		opt.use_once = true;
		break;
	case 'q':
		opt.silent = true;
		break;
	case 'z':
		opt.zcopy = true;
		break;
	case 'u':
		opt.over_unix = true;
		break;
	case 'j':
		opt.json = true;
		break;
	case 'c':
		opt.csv = true;
		break;
	case 'v':
		opt.verify = true;
		break;
	case 'X':
		opt.mesh = true;
		break;
	case 'H':
		opt.histogram = true;
		break;
	case '4':
		opt.family = AF_INET;
		break;
	case '6':
		opt.family = AF_INET6;
		break;
	case 'V':
		printf("xrds-perf %s\n", XRDS_VERSION);
		exit(0);
	default:
		help(c == 'h' ? 0 : EXIT_ERROR);
	}
}

static void __attribute__((noreturn)) conflict(const char *text)
{
	fprintf(stderr, "xrds-perf: %s\n", text);
	exit(EXIT_ERROR);
}

static bool is_rdma(void)
{
	return opt.mode == WRITE || opt.mode == READ;
}

static void check_options(int addresses)
{
	if (opt.over_unix && (opt.sockets > 1 || opt.strangers || opt.tos ||
			      opt.mesh || opt.mode > STREAM))
		conflict("-u: one socket, echo or stream");
	/* such a message is the end of a connection of AF_UNIX */
	if (opt.over_unix && (!opt.bytes || (!opt.answer && opt.mode == ECHO)))
		conflict("-u: -l and -a are at least 1");
	if (opt.zcopy && (opt.over_unix || opt.verify || opt.sockets > 1 ||
			  opt.batch > 1 || opt.mode != STREAM))
		conflict("-z: a stream of one socket, without -v and -M");
	if (opt.mode == MAP && !opt.bytes)
		conflict("-m map: -l is at least 1");
	if (opt.json && opt.csv)
		conflict("-j: not with -c");
	if (opt.pause_ns && opt.rate)
		conflict("-P: not with -r");
	if (opt.outliers && opt.mode == STREAM)
		conflict("-o: a stream has no latencies");
	if (opt.use_once &&
	    (!is_rdma() || !opt.bytes || opt.silent || opt.reset_ns))
		conflict("-U: write or read, -l at least 1, without -q and -R");
	if (opt.reset_ns && opt.over_unix)
		conflict("-R: not with -u");
	if (opt.reset_ns && is_rdma() && !opt.silent)
		conflict("-R: write and read need -q");
	if (opt.mesh && (addresses < 2 || addresses > MAX_NODES))
		conflict("-X: give the addresses of all nodes");
	if (opt.mesh && (addresses - 1) * opt.tasks > MAX_TASKS)
		conflict("-T: too many tasks");
	if (!opt.mesh && addresses != 1 && !opt.over_unix)
		help(EXIT_ERROR);
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "abort", required_argument, NULL, 'A' },
		{ "csv", no_argument, NULL, 'c' },
		{ "outliers", required_argument, NULL, 'o' },
		{ "rate", required_argument, NULL, 'r' },
		{ "reset", required_argument, NULL, 'R' },
		{ "use-once", no_argument, NULL, 'U' },
		{ "verify", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv,
				"sm:l:a:d:M:S:T:i:D:n:t:w:P:r:Q:vb:B:NL:gUR:A:qzXI:p:ujcHo:46hV",
				options, NULL)) != -1) {
		if (c == 'm')
			opt.mode = mode_of(optarg);
		else if (c == 't')
			opt.time_ns = nanoseconds(c, optarg);
		else if (c == 'R')
			opt.reset_ns = nanoseconds(c, optarg);
		else if (c == 'A')
			opt.abort_ns = nanoseconds(c, optarg);
		else if (c == 'I')
			opt.source = optarg;
		else if (c != 'h' && strchr("laSdMTiDnwPrQobBLp", c))
			number_option(c);
		else
			flag_option(c);
	}
	check_options(argc - optind);
}

int main(int argc, char **argv)
{
	out_check();
	parse(argc, argv);
	/* mainline does not support MSG_NOSIGNAL */
	signal(SIGPIPE, SIG_IGN);
	opt.host = argv[optind];
	if (opt.server)
		serve(0);
	if (opt.mesh)
		run_mesh(argv + optind, argc - optind);
	else
		run_tasks(argv + optind, 1);
	return 0;
}
