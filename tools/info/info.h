/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations that the files of xrds-info share.
 *
 *   xrds-info.c  arguments, watching
 *   fields.c     names and meaning of the attributes of each dump
 *   nl.c         the netlink socket: dumps, events
 *   messages.c   the messages in queues
 *   netns.c      all network namespaces
 *   program.c    the programs that have the sockets
 *   rows.c       prints rows as a table or as text
 *   json.c       prints rows as JSON
 */
#ifndef _XRDS_INFO_H
#define _XRDS_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libmnl/libmnl.h>
#include <linux/xrds_netlink.h>

enum {
	EXIT_ERROR	= 2,
	ATTRS_MAX	= 64,
	TEXT_MAX	= 256,
	FILTERS_MAX	= 8,
	NR_OBJECTS	= 11,
	CMD_MESSAGES	= -1,		/* instead of an XRDS_CMD_* */
};

/* Attributes of a message; they are ours, not those of the specification. */
enum message_attr {
	MESSAGE_QUEUE = 1,
	MESSAGE_LADDR,
	MESSAGE_LPORT,
	MESSAGE_FADDR,
	MESSAGE_FPORT,
	MESSAGE_BYTES,
	MESSAGE_SEQ,
	MESSAGE_TOS,
};

/* Queues of messages */
enum message_queue {
	QUEUE_SEND,			/* was not sent yet */
	QUEUE_IN_FLIGHT,		/* was sent, and is not acknowledged */
	QUEUE_RECEIVE,			/* was not read */
	NR_QUEUES,
};

/* How the value of an attribute is read */
enum kind {
	KIND_U8,
	KIND_U16,
	KIND_U32,
	KIND_U64,
	KIND_MS,		/* u64, a time in milliseconds */
	KIND_NS,		/* u64, a time in nanoseconds */
	KIND_SINCE,		/* u64, a time of CLOCK_MONOTONIC in nanoseconds */
	KIND_RATE,		/* u64, shown as its growth a second */
	KIND_ADDR,		/* struct in6_addr, IPv4 mapped */
	KIND_TEXT,
	KIND_PRESENT,		/* true when it is there */
	KIND_NAME,		/* u32, index into names */
	KIND_BITS,		/* u32, bits named by names */
	KIND_ERRNO,		/* u32 */
	KIND_PROGRAM,		/* u64, inode of a socket: the program that has it */
	KIND_HEX,		/* u32 or u64 */
	KIND_VERSION,		/* u32, 256 * major + minor */
};

/**
 * struct field - an attribute
 * @attr:	its number
 * @kind:	how it is read
 * @name:	its name in the specification; "": it is for tables only
 * @column:	head of its column; NULL: not in the table
 * @port:	for an address: attribute of its port, 0: none
 * @names:	for KIND_NAME and KIND_BITS, ends with NULL
 */
struct field {
	int attr;
	enum kind kind;
	const char *name;
	const char *column;
	int port;
	const char * const *names;
};

/**
 * struct object - a kind of object that the kernel dumps
 * @name:	its name on the command line
 * @cmd:	XRDS_CMD_*, or CMD_MESSAGES
 * @fields:	most important first; a field without name ends them
 */
struct object {
	const char *name;
	int cmd;
	const struct field *fields;
};

/**
 * struct filter - a condition that rows must fulfil
 * @name:	of an attribute
 * @value:	its text; of flags, one of them
 */
struct filter {
	char *name;
	char *value;
};

struct options {
	bool json;
	bool all;
	bool lines;
	bool namespaces;
	double watch;
	char *columns;			/* names, with commas; NULL: as usual */
	struct filter filters[FILTERS_MAX];
	int nr_filters;
};

extern struct options opt;
extern const struct object objects[NR_OBJECTS + 1];
extern const struct field conn_fields[];
extern const struct field peer_fields[];

const struct object *object_find(const char *name);
const char *field_text(const struct field *f, const struct nlattr *attr,
		       char *out);

const char *field_short(const struct field *f, const struct nlattr *attr,
			char *out);

struct row {
	const struct nlattr *attrs[ATTRS_MAX];
};

/* Do the options of the command line let the row pass? */
bool row_wanted(const struct object *object, const struct row *row);
/* Whether an object has an attribute of this name */
bool object_has(const struct object *object, const char *name, size_t len);

/* program.c */
void program_scan(void);
const char *program_text(uint64_t inode, char *out);

/* netns.c */
bool netns_each(void (*fn)(const char *name));

/* nl.c; all end the program on errors */
typedef void (*row_fn)(const struct row *row, void *arg);

void nl_open(void);
/* Reads the rows of an object; nl_rows() then calls @fn with each of them. */
void nl_read(int cmd);
void nl_rows(int cmd, row_fn fn, void *arg);
void nl_listen(void (*fn)(int cmd, const struct row *row));
/* Resets the connections to a peer, from an address of this node; NULL: any */
void nl_reset(const char *faddr, const char *laddr);
/* Ends the connections to other nodes and refuses new ones, or allows them */
void nl_drain(bool on);

/* messages.c */
void messages_read(void);
void messages_rows(row_fn fn, void *arg);

/* rows.c */
void rows_show(const struct object *object);
void rows_event(int cmd, const struct row *row);

/* json.c */
/* @netns: its name, NULL: it is not told */
void json_begin(const char *netns);
void json_object(const struct object *object);
void json_end(void);
void json_event(int cmd, const struct row *row);

#endif /* _XRDS_INFO_H */
