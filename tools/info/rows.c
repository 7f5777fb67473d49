// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints rows as text: tables not wider than the terminal, or with --long one
 * line for each attribute.
 *
 * A column is as wide as its widest value. Columns that do not fit are left
 * out, from the right, except for the first ones: a row says little without its
 * addresses and its state. If the last column that fits in part is text, it is
 * cut. A file or a pipe is as wide as it must be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "info.h"
#include "out.h"

enum {
	COLUMNS_MAX	= 32,
	WIDTH_DEFAULT	= 80,
	WIDTH_MIN	= 40,
	WIDTH_NONE	= 1 << 20,	/* a file or a pipe */
	RATE_BUCKETS	= 1024,
	GAP		= 2,
	NEEDED		= 3,		/* columns of every table */
};

/**
 * struct table - the cells of a table
 * @object:	the kind of object that it shows
 * @columns:	its columns
 * @heads:	their heads
 * @nr_columns:	how many
 * @width:	of each, characters
 * @right:	it is a number
 * @cells:	row by row
 * @nr_rows:	how many
 * @room:	how many rows fit into @cells
 */
struct table {
	const struct object *object;
	const struct field *columns[COLUMNS_MAX];
	const char *heads[COLUMNS_MAX];
	int nr_columns;
	int width[COLUMNS_MAX];
	bool right[COLUMNS_MAX];
	char **cells;
	int nr_rows;
	int room;
};

/**
 * struct rate - a number that was shown before
 * @next:	in its bucket
 * @key:	hash of the row's name, the attribute and the namespace
 * @value:	the number
 * @ns:		when it was shown
 */
static struct rate {
	struct rate *next;
	uint64_t key;
	uint64_t value;
	uint64_t ns;
} *rates[RATE_BUCKETS];

static int terminal_width(void)
{
	const char *text = getenv("COLUMNS");
	struct winsize size;
	int width = text ? atoi(text) : 0;

	if (!width && !isatty(STDOUT_FILENO))
		return WIDTH_NONE;
	if (!width && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		width = size.ws_col;
	if (!width)
		width = WIDTH_DEFAULT;
	return width < WIDTH_MIN ? WIDTH_MIN : width;
}

static char *copy(const char *text)
{
	char *made = strdup(text);

	if (!made) {
		fprintf(stderr, "xrds-info: no memory\n");
		exit(EXIT_ERROR);
	}
	return made;
}

/* FNV-1a */
static uint64_t hash(uint64_t key, const void *data, size_t len)
{
	const unsigned char *byte = data;

	while (len--)
		key = (key ^ *byte++) * 0x100000001b3ull;
	return key;
}

/* A name of the row among those of all objects and namespaces */
static uint64_t rate_key(const struct object *object, int number,
			 const struct row *row)
{
	static const int names[] = { XRDS_A_COUNTER_NAME };
	static const int conns[] = {
		XRDS_A_CONN_LADDR, XRDS_A_CONN_FADDR, XRDS_A_CONN_SCOPE,
		XRDS_A_CONN_TOS, XRDS_A_CONN_LANE,
	};
	bool conn = object->cmd == XRDS_CMD_CONN_GET;
	size_t nr = conn ? sizeof(conns) / sizeof(*conns) : 1, i;
	const int *attrs = conn ? conns : names;
	uint64_t key = 0xcbf29ce484222325ull;
	const struct nlattr *attr;
	struct stat st = {};

	stat("/proc/self/ns/net", &st);
	key = hash(key, &st.st_ino, sizeof(st.st_ino));
	key = hash(key, &number, sizeof(number));
	for (i = 0; i < nr; i++) {
		attr = row->attrs[attrs[i]];
		if (attr)
			key = hash(key, attr, attr->nla_len);
	}
	return key;
}

static struct rate *rate_of(uint64_t key)
{
	struct rate **bucket = &rates[key % RATE_BUCKETS], *rate;

	for (rate = *bucket; rate; rate = rate->next)
		if (rate->key == key)
			return rate;
	rate = calloc(1, sizeof(*rate));
	if (!rate) {
		fprintf(stderr, "xrds-info: no memory\n");
		exit(EXIT_ERROR);
	}
	rate->key = key;
	rate->next = *bucket;
	*bucket = rate;
	return rate;
}

/* The growth since it was shown last, in a second */
static const char *rate_text(const struct object *object, int number,
			     const struct row *row, char *out)
{
	uint64_t value = mnl_attr_get_u64(row->attrs[number]), ns;
	struct rate *last = rate_of(rate_key(object, number, row));
	struct timespec ts;

	*out = '\0';
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ns = ts.tv_sec * 1000000000ull + ts.tv_nsec;
	if (last->ns && value > last->value)
		snprintf(out, TEXT_MAX, "%.1f",
			 (double)(value - last->value) * 1e9 /
			 (ns - last->ns));
	last->value = value;
	last->ns = ns;
	return out;
}

/* An address is followed by its port, if both share a column. */
static char *cell(const struct object *object, const struct field *f,
		  const struct row *row)
{
	const struct nlattr *attr = row->attrs[f->attr], *port;
	char text[TEXT_MAX], both[TEXT_MAX + 16];
	const char *addr;

	if (!attr)
		return copy("-");
	addr = f->kind == KIND_RATE ? rate_text(object, f->attr, row, text) :
				      field_short(f, attr, text);
	port = f->port ? row->attrs[f->port] : NULL;
	if (!port)
		return copy(*addr ? addr : "-");
	snprintf(both, sizeof(both), strchr(addr, ':') ? "[%s]:%u" : "%s:%u",
		 addr, mnl_attr_get_u16(port));
	return copy(both);
}

static bool is_number(enum kind kind)
{
	return kind <= KIND_RATE;
}

static void add_row(const struct row *row, void *arg)
{
	struct table *t = arg;
	int i, len;
	char **at;

	if (!row_wanted(t->object, row))
		return;
	if (t->nr_rows == t->room) {
		t->room = 2 * t->room + 16;
		t->cells = realloc(t->cells, t->room * sizeof(*t->cells) *
				   (t->nr_columns ? t->nr_columns : 1));
		if (!t->cells) {
			fprintf(stderr, "xrds-info: no memory\n");
			exit(EXIT_ERROR);
		}
	}
	at = t->cells + t->nr_rows++ * t->nr_columns;
	for (i = 0; i < t->nr_columns; i++) {
		at[i] = cell(t->object, t->columns[i], row);
		len = strlen(at[i]);
		if (len > t->width[i])
			t->width[i] = len;
	}
}

static void add_column(struct table *t, const struct field *f,
		       const char *head)
{
	if (t->nr_columns == COLUMNS_MAX)
		return;
	t->right[t->nr_columns] = is_number(f->kind);
	t->width[t->nr_columns] = strlen(head);
	t->heads[t->nr_columns] = head;
	t->columns[t->nr_columns++] = f;
}

/* Those that were asked for, in that order */
static void choose_named(struct table *t)
{
	const char *name = opt.columns;
	const struct field *f;
	size_t len;

	for (; *name; name += len + (name[len] == ',')) {
		len = strcspn(name, ",");
		for (f = t->object->fields; f->name; f++)
			if (strlen(f->name) == len &&
			    !strncmp(f->name, name, len))
				add_column(t, f, f->column ?: f->name);
	}
}

static void choose_columns(struct table *t)
{
	const struct field *f;

	if (opt.columns) {
		choose_named(t);
		return;
	}
	for (f = t->object->fields; f->name; f++)
		if (f->column && (f->kind != KIND_RATE || opt.watch))
			add_column(t, f, f->column);
}

/* How many columns fit; the last one may be made narrower for that. */
static int fit(struct table *t)
{
	int left = terminal_width(), i;

	for (i = 0; i < t->nr_columns; i++) {
		int gap = i ? GAP : 0;

		if (left < gap + t->width[i] &&
		    (i >= NEEDED || t->columns[i]->kind == KIND_TEXT))
			break;
		left -= gap + t->width[i];
	}
	if (i < t->nr_columns && t->columns[i]->kind == KIND_TEXT &&
	    left >= GAP + (int)strlen(t->heads[i])) {
		t->width[i] = left - GAP;
		i++;
	}
	return i;
}

static void print_cell(const struct table *t, int i, int n, const char *text)
{
	const char *gap = i ? "  " : "";

	if (t->right[i])
		printf("%s%*s", gap, t->width[i], text);
	else if (i == n - 1)
		printf("%s%.*s", gap, t->width[i], text);
	else
		printf("%s%-*s", gap, t->width[i], text);
}

static void print_table(struct table *t)
{
	int n = fit(t), row, i;

	for (i = 0; i < n; i++)
		print_cell(t, i, n, t->heads[i]);
	putchar('\n');
	for (row = 0; row < t->nr_rows; row++) {
		for (i = 0; i < n; i++)
			print_cell(t, i, n, t->cells[row * t->nr_columns + i]);
		putchar('\n');
	}
}

static void print_lines(const struct row *row, void *arg)
{
	const struct object *object = arg;
	const struct field *f;
	char text[TEXT_MAX];

	if (!row_wanted(object, row))
		return;
	for (f = object->fields; f->name; f++)
		if (row->attrs[f->attr] && *f->name)
			printf("%-16s %s\n", f->name,
			       field_text(f, row->attrs[f->attr], text));
	putchar('\n');
}

/* Objects of sockets: the kernel shows a user those of his own. */
static bool is_private(const struct object *object)
{
	return object->cmd == XRDS_CMD_SOCKET_GET ||
	       object->cmd == XRDS_CMD_DEST_GET ||
	       object->cmd == XRDS_CMD_NODE_GET ||
	       object->cmd == XRDS_CMD_REGION_GET;
}

static const char *none_text(const struct object *object)
{
	if (object->cmd != XRDS_CMD_DEVICE_GET || opt.nr_filters)
		return "none";
	return access("/sys/module/xrds_ib", F_OK) ?
	       "none (xrds_ib is not loaded: modprobe xrds_ib)" :
	       "none (those of this machine: rdma link)";
}

void rows_show(const struct object *object)
{
	struct table t = { .object = object };
	int i;

	printf("%s%s\n", object->name, is_private(object) && geteuid() ?
	       " (of this user; root sees all)" : "");
	if (opt.lines) {
		nl_rows(object->cmd, print_lines, (void *)object);
		return;
	}
	choose_columns(&t);
	if (!t.nr_columns)
		return;
	nl_rows(object->cmd, add_row, &t);
	if (t.nr_rows)
		print_table(&t);
	else
		printf("%s\n", none_text(object));
	for (i = 0; i < t.nr_rows * t.nr_columns; i++)
		free(t.cells[i]);
	free(t.cells);
}

static const char *event_text(const struct field *f, const struct row *row,
			      int attr, char *out)
{
	for (; f->name; f++)
		if (f->attr == attr && row->attrs[attr])
			return field_text(f, row->attrs[attr], out);
	return "";
}

static void conn_event(int cmd, const struct row *row)
{
	char laddr[TEXT_MAX], faddr[TEXT_MAX], tos[TEXT_MAX], text[TEXT_MAX];
	const struct field *f = conn_fields;

	printf("%-4s %s -> %s tos %s",
	       cmd == XRDS_CMD_CONN_UP_NTF ? "up" : "down",
	       event_text(f, row, XRDS_A_CONN_LADDR, laddr),
	       event_text(f, row, XRDS_A_CONN_FADDR, faddr),
	       event_text(f, row, XRDS_A_CONN_TOS, tos));
	if (row->attrs[XRDS_A_CONN_REASON])
		printf(" %s", event_text(f, row, XRDS_A_CONN_REASON, text));
	if (row->attrs[XRDS_A_CONN_ERROR])
		printf(": %s", event_text(f, row, XRDS_A_CONN_ERROR, text));
}

static void node_event(const struct row *row)
{
	char laddr[TEXT_MAX], faddr[TEXT_MAX], state[TEXT_MAX], text[TEXT_MAX];
	const struct field *f = peer_fields;

	printf("node %s -> %s %s",
	       event_text(f, row, XRDS_A_PEER_LADDR, laddr),
	       event_text(f, row, XRDS_A_PEER_FADDR, faddr),
	       event_text(f, row, XRDS_A_PEER_STATE, state));
	if (row->attrs[XRDS_A_PEER_REASON])
		printf(" %s", event_text(f, row, XRDS_A_PEER_REASON, text));
}

void rows_event(int cmd, const struct row *row)
{
	time_t now = time(NULL);
	char stamp[32];

	strftime(stamp, sizeof(stamp), "%F %T", localtime(&now));
	printf("%s ", stamp);
	if (cmd == XRDS_CMD_PEER_NTF)
		node_event(row);
	else
		conn_event(cmd, row);
	putchar('\n');
	out_flush();
}
