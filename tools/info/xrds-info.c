// SPDX-License-Identifier: GPL-2.0-only
/*
 * xrds-info: shows the state of XRDS in this network namespace.
 *
 * The generic netlink family "xrds" has all of it. The kernel shows the objects
 * of other users' sockets, and the numbers of queue pairs, only with
 * CAP_NET_ADMIN. This file has the arguments and the loop of --watch; see
 * info.h for the others.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "info.h"
#include "out.h"

struct options opt;

static const struct object *chosen[NR_OBJECTS];
static int nr_chosen;

static void __attribute__((noreturn)) help(int code)
{
	fprintf(code ? stderr : stdout,
		"usage: xrds-info [OPTION]... [OBJECT]... [ATTRIBUTE=VALUE]...\n"
		"       xrds-info [-j] reset {all | PEER [LOCAL]}\n"
		"       xrds-info [-j] {drain | undrain | events}\n"
		"Shows the state of XRDS in this network namespace, resets connections,\n"
		"or ends those to other nodes in order and refuses new ones.\n"
		"OBJECT is one or more of\n"
		"  devices       RDMA devices and their limits\n"
		"  connections   state, queue pairs, sequence numbers\n"
		"  sockets       addresses, queued bytes\n"
		"  destinations  progress toward each destination\n"
		"  nodes         nodes with connections: up or down, since when\n"
		"  marks         RDMA ops: identifiers and high-water marks\n"
		"  regions       memory registered for peers\n"
		"  counters      counters that are not zero, with their meaning\n"
		"  status        drained or not, number of connections\n"
		"  features      features of the modules, with their revisions\n"
		"  all           all of these\n"
		"  messages      each message in a queue\n"
		"or this one alone, with -j at most:\n"
		"  events        connections and nodes that come up and go down\n"
		"A name may be shortened. Default: devices connections sockets\n"
		"ATTRIBUTE=VALUE shows only rows like faddr=10.0.0.2, state=up, lport=18800,\n"
		"flags=congested; --long shows the names of attributes.\n"
		"  -a, --all          show counters that are zero, too\n"
		"  -j, --json         print JSON\n"
		"  -l, --long         print all attributes, one in a line\n"
		"  -N, --namespaces   show all network namespaces, one after the other\n"
		"  -o, --columns=ATTRIBUTE,...  the columns of tables\n"
		"  -w, --watch[=SEC]  repeat the output at this interval [1 s]\n"
		"  -h, --help         print this\n"
		"  -V, --version      print the version\n"
		"Exit status: 0, or 2 after an error.\n");
	exit(code);
}

/* Each is shown once. */
static void choose(const struct object *object)
{
	int i;

	for (i = 0; i < nr_chosen; i++)
		if (chosen[i] == object)
			return;
	chosen[nr_chosen++] = object;
}

/* The name, or its beginning, as with objects */
static bool is_events(const char *name)
{
	return *name && !strncmp("events", name, strlen(name));
}

static void choose_by_name(const char *name)
{
	const struct object *object = object_find(name);

	if (!strcmp(name, "all")) {
		for (object = objects; object->name; object++)
			if (object->cmd != CMD_MESSAGES)
				choose(object);
		return;
	}
	if (!object) {
		fprintf(stderr, is_events(name) ? "xrds-info: '%s' stands alone\n" :
			"xrds-info: unknown object '%s', see --help\n", name);
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
		{ "namespaces", no_argument, NULL, 'N' },
		{ "columns", required_argument, NULL, 'o' },
		{ "version", no_argument, NULL, 'V' },
		{ "watch", optional_argument, NULL, 'w' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "ajlNo:w::hV", options, NULL)) != -1) {
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
		case 'N':
			opt.namespaces = true;
			break;
		case 'o':
			opt.columns = optarg;
			break;
		case 'V':
			printf("xrds-info %s\n", XRDS_VERSION);
			exit(0);
		case 'w':
			opt.watch = optarg ? seconds_arg(optarg) : 1;
			break;
		default:
			help(c == 'h' ? 0 : EXIT_ERROR);
		}
	}
}

static bool has_name(const char *name, size_t len)
{
	int i;

	for (i = 0; i < nr_chosen; i++)
		if (object_has(chosen[i], name, len))
			return true;
	return false;
}

static void check_name(const char *name, size_t len)
{
	if (has_name(name, len))
		return;
	fprintf(stderr, "xrds-info: no attribute '%.*s', see --long\n",
		(int)len, name);
	exit(EXIT_ERROR);
}

static void check_names(void)
{
	const char *name = opt.columns ?: "";
	size_t len;
	int i;

	for (; *name; name += len + (name[len] == ',')) {
		len = strcspn(name, ",");
		check_name(name, len);
	}
	for (i = 0; i < opt.nr_filters; i++)
		check_name(opt.filters[i].name, strlen(opt.filters[i].name));
}

static void add_filter(char *arg, char *equals)
{
	if (opt.nr_filters == FILTERS_MAX) {
		fprintf(stderr, "xrds-info: too many conditions\n");
		exit(EXIT_ERROR);
	}
	*equals = '\0';
	opt.filters[opt.nr_filters].name = arg;
	opt.filters[opt.nr_filters++].value = equals + 1;
}

/* Objects, and conditions; by default the first three objects */
static void choose_all(int argc, char **argv)
{
	char *equals;
	int i;

	for (i = 0; i < argc; i++) {
		equals = strchr(argv[i], '=');
		if (equals)
			add_filter(argv[i], equals);
		else
			choose_by_name(argv[i]);
	}
	for (i = 0; !nr_chosen && i < 3; i++)
		chosen[i] = &objects[i];
	nr_chosen = nr_chosen ? nr_chosen : 3;
	check_names();
}

/* Shows the present namespace. @netns: its name; NULL: it is not told */
static void show(const char *netns)
{
	int i;

	for (i = 0; i < nr_chosen; i++)
		nl_read(chosen[i]->cmd);
	if (opt.json)
		json_begin(netns);
	else if (netns)
		printf("namespace %s\n\n", netns);
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
	else if (netns)
		putchar('\n');
}

static void show_namespace(const char *netns)
{
	nl_open();
	show(netns);
}

static void print_time(void)
{
	time_t now = time(NULL);
	char text[32];

	strftime(text, sizeof(text), "%F %T", localtime(&now));
	printf("%s\n", text);
}

static void wait_for_next(void)
{
	struct timespec ts = {
		.tv_sec = opt.watch,
		.tv_nsec = (opt.watch - (long)opt.watch) * 1e9,
	};

	nanosleep(&ts, NULL);
}

/* The effect of a verb, for programs */
static void tell(const char *name)
{
	chosen[0] = object_find(name);
	nr_chosen = 1;
	if (opt.json)
		show(NULL);
}

/* Only rows with this address; written as the rows have it */
static void filter_addr(char *name, const char *text)
{
	static char texts[2][INET6_ADDRSTRLEN];
	int family = strchr(text, ':') ? AF_INET6 : AF_INET;
	struct in6_addr addr;
	const void *at = &addr;

	inet_pton(family, text, &addr);
	if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&addr)) {
		family = AF_INET;
		at = &addr.s6_addr[12];
	}
	opt.filters[opt.nr_filters].name = name;
	opt.filters[opt.nr_filters].value = texts[opt.nr_filters];
	inet_ntop(family, at, texts[opt.nr_filters++], INET6_ADDRSTRLEN);
}

/* "reset all", or "reset PEER [LOCAL]" */
static void reset(int argc, char **argv)
{
	bool all;

	if (argc < 1 || argc > 2)
		help(EXIT_ERROR);
	all = !strcmp(argv[0], "all");
	nl_open();
	nl_reset(all ? NULL : argv[0], argc > 1 ? argv[1] : NULL);
	if (!all)
		filter_addr("faddr", argv[0]);
	if (argc > 1)
		filter_addr("laddr", argv[1]);
	tell("connections");
}

/* Such a word takes no option but -j. */
static void check_alone(const char *word)
{
	if (!opt.all && !opt.lines && !opt.namespaces && !opt.columns &&
	    !opt.watch)
		return;
	fprintf(stderr, "xrds-info: '%s' takes no option but -j\n", word);
	exit(EXIT_ERROR);
}

/* Returns whether the arguments are those of a verb. */
static bool did_verb(int argc, char **argv)
{
	if (argc && !strcmp(*argv, "reset")) {
		check_alone(*argv);
		reset(argc - 1, argv + 1);
		return true;
	}
	if (argc != 1 || (strcmp(*argv, "drain") && strcmp(*argv, "undrain")))
		return false;
	check_alone(*argv);
	nl_open();
	nl_drain(**argv == 'd');
	tell("status");
	return true;
}

int main(int argc, char **argv)
{
	bool all = true;

	out_check();
	parse(argc, argv);
	if (did_verb(argc - optind, argv + optind))
		return 0;
	if (optind == argc - 1 && is_events(argv[optind])) {
		check_alone("events");
		nl_open();
		nl_listen(opt.json ? json_event : rows_event);
		return 0;
	}
	choose_all(argc - optind, argv + optind);
	nl_open();
	for (;;) {
		if (opt.watch && !opt.json && isatty(STDOUT_FILENO))
			printf("\033[H\033[2J");
		if (opt.watch && !opt.json)
			print_time();
		if (has_name("program", strlen("program")))
			program_scan();
		if (opt.namespaces)
			all = netns_each(show_namespace);
		else
			show(NULL);
		out_flush();
		if (!opt.watch)
			return all ? 0 : EXIT_ERROR;
		if (!opt.json)
			putchar('\n');
		wait_for_next();
	}
}
