// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sends or receives a few messages and prints a line about each, for people to
 * look at: its size and a digest of its content, the same at both ends.
 *
 * A message carries its own description and a checksum where it is large
 * enough; smaller ones are compared with the message that is expected at their
 * place.
 */
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pattern.h"
#include "sock.h"
#include "tap.h"

enum {
	SEED		= 20240229,
	MAX_SIZES	= 64,
};

static struct {
	const char *bind, *to, *sizes;
	int port, count, limit_s;
} opt = {
	.sizes = "0,1,64,4096,16384,65536,1048576",
	.port = 4000, .limit_s = 60,
};

static char *buffer;

static void __noreturn usage_exit(int code)
{
	fprintf(code ? stderr : stdout,
		"usage: helper_messages recv --bind ADDRESS [--port N] --count N\n"
		"       helper_messages send --bind ADDRESS --to ADDRESS [--port N]\n"
		"                     [--sizes BYTES,BYTES,...]\n"
		"  --timeout SECONDS    give up after this time [60]\n");
	exit(code);
}

static void line(const char *what, const char *peer, int number, size_t len,
		 const char *verdict)
{
	printf("%s %s message %d: %7zu bytes, digest %016llx, %s\n", what,
	       peer, number, len, digest(buffer, len), verdict);
	fflush(stdout);
}

/* ----------------------------------------------------------------- receive */

static bool right(size_t len, int number)
{
	struct pattern_key want = { 0, 0, number };

	return pattern_same(buffer, len, &want);
}

static int do_recv(void)
{
	int fd = rds_bound_to(opt.bind, opt.port, NULL), bad = 0;
	union addr self = rds_self(fd), from;
	ssize_t len;

	printf("listening on %s\n", addr_text(&self));
	fflush(stdout);
	for (int i = 0; i < opt.count; i++) {
		len = rds_recv_within(fd, buffer, MSG_MAX_BYTES,
				      opt.limit_s * 1000, &from);
		if (len < 0) {
			fprintf(stderr, "message %d: %s\n", i,
				strerror(errno));
			return 1;
		}
		if (!right(len, i))
			bad++;
		line("from", addr_text(&from), i, len,
		     right(len, i) ? "content and order ok" : "WRONG");
	}
	printf("%d of %d messages right\n", opt.count - bad, opt.count);
	return bad ? 1 : 0;
}

/* -------------------------------------------------------------------- send */

static int parse_sizes(size_t *sizes)
{
	char *list = strdup(opt.sizes);
	int n = 0;

	for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
		if (n == MAX_SIZES)
			usage_exit(2);
		sizes[n] = strtoul(word, NULL, 0);
		if (sizes[n++] > MSG_MAX_BYTES)
			usage_exit(2);
	}
	free(list);
	return n;
}

static int do_send(void)
{
	int fd = rds_bound_to(opt.bind, 0, NULL), n;
	union addr to = addr_of(opt.to, opt.port);
	size_t sizes[MAX_SIZES];

	n = parse_sizes(sizes);
	rds_timeout(fd, SO_SNDTIMEO, opt.limit_s * 1000);
	for (int i = 0; i < n; i++) {
		struct pattern_key key = { 0, 0, i };

		pattern_fill(buffer, sizes[i], &key);
		if (rds_send(fd, buffer, sizes[i], 0, &to) < 0) {
			fprintf(stderr, "message %d: %s\n", i,
				strerror(errno));
			return 1;
		}
		line("to", addr_text(&to), i, sizes[i], "accepted");
	}
	if (!tap_wait(rds_all_acked, &fd, opt.limit_s * 1000)) {
		fprintf(stderr, "not acknowledged\n");
		return 1;
	}
	printf("%d messages acknowledged by the peer's kernel\n", n);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "bind", required_argument, NULL, 'b' },
		{ "to", required_argument, NULL, 't' },
		{ "port", required_argument, NULL, 'p' },
		{ "sizes", required_argument, NULL, 's' },
		{ "count", required_argument, NULL, 'c' },
		{ "timeout", required_argument, NULL, 'w' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'b':
			opt.bind = optarg;
			break;
		case 't':
			opt.to = optarg;
			break;
		case 'p':
			opt.port = atoi(optarg);
			break;
		case 's':
			opt.sizes = optarg;
			break;
		case 'c':
			opt.count = atoi(optarg);
			break;
		case 'w':
			opt.limit_s = atoi(optarg);
			break;
		default:
			usage_exit(c == 'h' ? 0 : 2);
		}
	}
	buffer = malloc(MSG_MAX_BYTES);
	if (optind != argc - 1 || !opt.bind || !buffer)
		usage_exit(2);
	pattern_init(SEED);
	if (!strcmp(argv[optind], "recv") && opt.count > 0)
		return do_recv();
	if (!strcmp(argv[optind], "send") && opt.to)
		return do_send();
	usage_exit(2);
}
