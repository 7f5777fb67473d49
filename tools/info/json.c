// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints rows as JSON: one object whose members are lists of rows. Names are
 * those of the specification. A number is a JSON number, flags are a list of
 * names, and an attribute that the kernel does not send is left out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "info.h"
#include "out.h"
#include "text.h"

static bool first_object, first_row;

static void bits(const struct field *f, uint32_t v)
{
	const char * const *name = f->names;
	bool first = true;

	putchar('[');
	for (; *name; name++, v >>= 1) {
		if (!(v & 1))
			continue;
		printf("%s\"%s\"", first ? "" : ", ", *name);
		first = false;
	}
	putchar(']');
}

static void value(const struct field *f, const struct nlattr *attr)
{
	char text[TEXT_MAX];

	switch (f->kind) {
	case KIND_U8:
	case KIND_U16:
	case KIND_U32:
	case KIND_U64:
	case KIND_MS:
	case KIND_NS:
	case KIND_SINCE:
		fputs(field_text(f, attr, text), stdout);
		break;
	case KIND_PRESENT:
		fputs("true", stdout);
		break;
	case KIND_BITS:
		bits(f, mnl_attr_get_u32(attr));
		break;
	default:
		text_json(field_text(f, attr, text));
	}
}

static bool program_known(const struct field *f, const struct row *row)
{
	char text[TEXT_MAX];

	return *field_text(f, row->attrs[f->attr], text);
}

static void members(const struct field *f, const struct row *row)
{
	const char *comma = "";

	for (; f->name; f++) {
		if (!row->attrs[f->attr] || !*f->name ||
		    (f->kind == KIND_PROGRAM && !program_known(f, row)))
			continue;
		printf("%s\"%s\": ", comma, f->name);
		value(f, row->attrs[f->attr]);
		comma = ", ";
	}
}

static void put_row(const struct row *row, void *arg)
{
	const struct object *object = arg;

	if (!row_wanted(object, row))
		return;
	printf("%s\n    {", first_row ? "" : ",");
	members(object->fields, row);
	putchar('}');
	first_row = false;
}

/* The time as ISO 8601 */
static void put_time(void)
{
	char text[TEXT_MAX];
	struct timespec ts;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &ts);
	strftime(text, sizeof(text), "%FT%T", localtime_r(&ts.tv_sec, &tm));
	printf("\"time\": \"%s.%03ld", text, ts.tv_nsec / 1000000);
	strftime(text, sizeof(text), "%z", &tm);
	printf("%s\"", text);
}

void json_begin(const char *netns)
{
	putchar('{');
	first_object = true;
	if (netns) {
		fputs("\n  \"namespace\": ", stdout);
		text_json(netns);
		first_object = false;
	}
	if (opt.watch) {
		fputs(first_object ? "\n  " : ",\n  ", stdout);
		put_time();
		first_object = false;
	}
}

void json_object(const struct object *object)
{
	printf("%s\n  \"%s\": [", first_object ? "" : ",", object->name);
	first_object = false;
	first_row = true;
	nl_rows(object->cmd, put_row, (void *)object);
	printf("%s]", first_row ? "" : "\n  ");
}

void json_end(void)
{
	printf("\n}\n");
	out_flush();
}

static const char *event_name(int cmd)
{
	switch (cmd) {
	case XRDS_CMD_CONN_UP_NTF:
		return "up";
	case XRDS_CMD_CONN_DOWN_NTF:
		return "down";
	default:
		return "node";
	}
}

void json_event(int cmd, const struct row *row)
{
	putchar('{');
	put_time();
	printf(", \"event\": \"%s\", ", event_name(cmd));
	members(cmd == XRDS_CMD_PEER_NTF ? peer_fields : conn_fields, row);
	printf("}\n");
	out_flush();
}
