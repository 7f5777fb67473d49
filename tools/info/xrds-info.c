// SPDX-License-Identifier: GPL-2.0-only
/*
 * xrds-info: shows the state of XRDS in this network namespace.
 *
 * The generic netlink family "xrds" has all of it. The kernel shows the objects
 * of other users' sockets, and the numbers of queue pairs, only with
 * CAP_NET_ADMIN. This file has the arguments and the loop of --watch; see
 * info.h for the others.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "info.h"

enum { CHOSEN_MAX = 16 };

struct options opt;

static const struct object *chosen[CHOSEN_MAX + 1];
static int nr_chosen;

static void __attribute__((noreturn)) help(int code)
{
	fprintf(code ? stderr : stdout,
		"usage: xrds-info [OPTION]... [OBJECT]...\n"
		"       xrds-info reset {all | PEER [LOCAL]}\n"
		"Shows the state of XRDS in this network namespace, or resets\n"
		"connections.\n"
		"OBJECT is one or more of\n"
		"  devices       RDMA devices and their limits\n"
		"  connections   state, queue pairs, sequence numbers\n"
		"  sockets       addresses, queued bytes\n"
		"  destinations  progress toward each destination\n"
		"  nodes         nodes with connections: up or down, since when\n"
		"  marks         RDMA ops: identifiers and high-water marks\n"
		"  regions       memory registered for peers\n"
		"  counters      counters that are not zero, with their meaning\n"
		"  all           all of these\n"
		"or this one alone:\n"
		"  events        connections and nodes that come up and go down\n"
		"A name may be shortened. Default: devices connections sockets\n"
		"  -a, --all          show counters that are zero, too\n"
		"  -j, --json         print JSON\n"
		"  -l, --long         print all attributes, one in a line\n"
		"  -w, --watch[=SEC]  repeat the output at this interval [1 s]\n"
		"  -h, --help         print this\n"
		"Exit status: 0, or 2 after an error.\n");
	exit(code);
}

static void choose(const struct object *object)
{
	if (nr_chosen < CHOSEN_MAX)
		chosen[nr_chosen++] = object;
}

static void choose_by_name(const char *name)
{
	const struct object *object = object_find(name);

	if (!strcmp(name, "all")) {
		for (object = objects; object->name; object++)
			choose(object);
		return;
	}
	if (!object) {
		fprintf(stderr, "xrds-info: unknown object '%s', see --help\n",
			name);
		exit(EXIT_ERROR);
	}
	choose(object);
}

static double seconds_arg(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value > 0) || value > 1e6) {
		fprintf(stderr, "xrds-info: '%s' is not a time\n", text);
		exit(EXIT_ERROR);
	}
	return value;
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "json", no_argument, NULL, 'j' },
		{ "long", no_argument, NULL, 'l' },
		{ "watch", optional_argument, NULL, 'w' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "ajlw::h", options, NULL)) != -1) {
		switch (c) {
		case 'a':
			opt.all = true;
			break;
		case 'j':
			opt.json = true;
			break;
		case 'l':
			opt.lines = true;
			break;
		case 'w':
			opt.watch = optarg ? seconds_arg(optarg) : 1;
			break;
		default:
			help(c == 'h' ? 0 : EXIT_ERROR);
		}
	}
}

static void show(void)
{
	int i;

	if (opt.json)
		json_begin();
	for (i = 0; i < nr_chosen; i++) {
		if (opt.json) {
			json_object(chosen[i]);
			continue;
		}
		if (i)
			putchar('\n');
		rows_show(chosen[i]);
	}
	if (opt.json)
		json_end();
}

static void wait_for_next(void)
{
	struct timespec ts = {
		.tv_sec = opt.watch,
		.tv_nsec = (opt.watch - (long)opt.watch) * 1e9,
	};

	nanosleep(&ts, NULL);
}

/* "reset all", or "reset PEER [LOCAL]" */
static void reset(int argc, char **argv)
{
	if (argc < 1 || argc > 2)
		help(EXIT_ERROR);
	nl_open();
	nl_reset(strcmp(argv[0], "all") ? argv[0] : NULL,
		 argc > 1 ? argv[1] : NULL);
}

int main(int argc, char **argv)
{
	int i;

	parse(argc, argv);
	if (optind < argc && !strcmp(argv[optind], "reset")) {
		reset(argc - optind - 1, argv + optind + 1);
		return 0;
	}
	if (optind == argc - 1 && !strcmp(argv[optind], "events")) {
		nl_open();
		nl_listen(opt.json ? json_event : rows_event);
		return 0;
	}
	for (i = optind; i < argc; i++)
		choose_by_name(argv[i]);
	for (i = 0; !nr_chosen && i < 3; i++)
		chosen[i] = &objects[i];
	nr_chosen = nr_chosen ? nr_chosen : 3;

	nl_open();
	for (;;) {
		if (opt.watch && !opt.json && isatty(STDOUT_FILENO))
			printf("\033[H\033[2J");
		show();
		fflush(stdout);
		if (!opt.watch)
			return 0;
		if (!opt.json)
			putchar('\n');
		wait_for_next();
	}
}
