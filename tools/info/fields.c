// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tables of the attributes of each dump. Their names are those of
 * Documentation/netlink/specs/xrds.yaml, except for messages. objects[] lists the dumps, rows.c and
 * json.c print the attributes with field_text().
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "info.h"
#include "text.h"

static const char * const states[] = {
	"down", "resolving", "connecting", "wait-cts", "up", "closing",
	"parting", "dead", NULL
};

static const char * const reasons[] = {
	"none", "lost", "replaced", "idle", "peer", "device", "gone",
	"drained", NULL
};

static const char * const peer_states[] = {
	"idle", "up", "down", "reborn", NULL
};

static const char * const socket_flags[] = {
	"bound", "connected", "congested", "ending", NULL
};

/* The address of a socket tells the first two. */
static const char * const socket_marks[] = {
	"", "", "congested", "ending", NULL
};

static const char * const dest_flags[] = {
	"congested", "blocked", "eos-sent", "eos-rcvd", "closed", NULL
};

static const char * const region_flags[] = { "write", "use-once", NULL };

static const char * const conn_flags[] = {
	"dialled", "failed", "classic", "waiting", "shared-rq", NULL
};

static const char * const device_flags[] = {
	"shared-rq", "fences", "atomics", NULL
};

static const char * const queues[] = {
	"send", "in-flight", "receive", NULL
};

#define FIELD(_set, _attr, _kind, _name, _column, _port, _names) { \
	.attr = XRDS_A_##_set##_##_attr, .kind = KIND_##_kind, .name = _name, \
	.column = _column, .port = _port, .names = _names }

/* Kinds of fields: not in the table; in it; address and port; named values; in
 * the table only
 */
#define PLAIN(set, attr, kind, name) \
	FIELD(set, attr, kind, name, NULL, 0, NULL)
#define COLUMN(set, attr, kind, name, column) \
	FIELD(set, attr, kind, name, column, 0, NULL)
#define ENDPOINT(set, attr, name, column, port) \
	FIELD(set, attr, ADDR, name, column, XRDS_A_##set##_##port, NULL)
#define NAMED(set, attr, kind, name, column, names) \
	FIELD(set, attr, kind, name, column, 0, names)

#define SHORT(set, attr, kind, column, names) \
	FIELD(set, attr, kind, "", column, 0, names)

static const struct field socket_fields[] = {
	COLUMN(SOCKET, ID, U32, "id", "ID"),
	ENDPOINT(SOCKET, LADDR, "laddr", "LOCAL", LPORT),
	PLAIN(SOCKET, LPORT, U16, "lport"),
	ENDPOINT(SOCKET, FADDR, "faddr", "PEER", FPORT),
	PLAIN(SOCKET, FPORT, U16, "fport"),
	PLAIN(SOCKET, SCOPE, U32, "scope"),
	COLUMN(SOCKET, QUEUED_BYTES, U64, "queued-bytes", "SENDQ"),
	COLUMN(SOCKET, RECV_BYTES, U64, "recv-bytes", "RECVQ"),
	COLUMN(SOCKET, RCVBUF, U32, "rcvbuf", "RCVBUF"),
	SHORT(SOCKET, FLAGS, BITS, "FLAGS", socket_marks),
	FIELD(SOCKET, INODE, PROGRAM, "program", "PROGRAM", 0, NULL),
	COLUMN(SOCKET, DESTS, U32, "dests", "DESTS"),
	COLUMN(SOCKET, UID, U32, "uid", "UID"),
	COLUMN(SOCKET, INODE, U64, "inode", "INODE"),
	COLUMN(SOCKET, TRANSPORT, TEXT, "transport", "TRANSPORT"),
	NAMED(SOCKET, FLAGS, BITS, "flags", NULL, socket_flags),
	COLUMN(SOCKET, SNDBUF, U32, "sndbuf", "SNDBUF"),
	COLUMN(SOCKET, QUEUED_MSGS, U64, "queued-msgs", "MSGS"),
	COLUMN(SOCKET, TOS, U8, "tos", "TOS"),
	PLAIN(SOCKET, NODES, U32, "nodes"),
	PLAIN(SOCKET, PID, U32, "pid"),
	{ .name = NULL }
};

static const struct field dest_fields[] = {
	ENDPOINT(DEST, LADDR, "laddr", "LOCAL", LPORT),
	PLAIN(DEST, LPORT, U16, "lport"),
	ENDPOINT(DEST, FADDR, "faddr", "DESTINATION", FPORT),
	PLAIN(DEST, FPORT, U16, "fport"),
	NAMED(DEST, CONN_STATE, NAME, "conn-state", "STATE", states),
	COLUMN(DEST, QUEUED_BYTES, U64, "queued-bytes", "QUEUED"),
	COLUMN(DEST, QUEUED_MSGS, U64, "queued-msgs", "MSGS"),
	NAMED(DEST, FLAGS, BITS, "flags", "FLAGS", dest_flags),
	COLUMN(DEST, ACKED_MSGS, U64, "acked-msgs", "ACKED"),
	COLUMN(DEST, SNDBUF, U32, "sndbuf", "SNDBUF"),
	COLUMN(DEST, PROGRESS_NS, SINCE, "progress-ns", "PROGRESS"),
	PLAIN(DEST, SCOPE, U32, "scope"),
	PLAIN(DEST, SOCKET, U32, "socket"),
	{ .name = NULL }
};

static const struct field node_fields[] = {
	ENDPOINT(NODE, LADDR, "laddr", "LOCAL", LPORT),
	PLAIN(NODE, LPORT, U16, "lport"),
	COLUMN(NODE, FADDR, ADDR, "faddr", "NODE"),
	COLUMN(NODE, ISSUED, U64, "issued", "ISSUED"),
	COLUMN(NODE, COMPLETED, U64, "completed", "COMPLETED"),
	COLUMN(NODE, ARMED, U64, "armed", "ARMED"),
	PLAIN(NODE, SCOPE, U32, "scope"),
	COLUMN(NODE, SOCKET, U32, "socket", "SOCKET"),
	{ .name = NULL }
};

const struct field conn_fields[] = {
	COLUMN(CONN, LADDR, ADDR, "laddr", "LOCAL"),
	COLUMN(CONN, FADDR, ADDR, "faddr", "PEER"),
	NAMED(CONN, STATE, NAME, "state", "STATE", states),
	SHORT(CONN, TX_BYTES, RATE, "TX/s", NULL),
	SHORT(CONN, RX_BYTES, RATE, "RX/s", NULL),
	COLUMN(CONN, UP_MS, MS, "up-ms", "UP"),
	COLUMN(CONN, FAILED_MS, MS, "failed-ms", "FAILED"),
	COLUMN(CONN, ERROR, ERRNO, "error", "ERROR"),
	COLUMN(CONN, LOST, U32, "lost", "LOST"),
	COLUMN(CONN, RETRIES, U32, "retries", "RETRIES"),
	COLUMN(CONN, ATTEMPT_MS, MS, "attempt-ms", "TRIED"),
	COLUMN(CONN, QUEUED_MSGS, U32, "queued-msgs", "QUEUED"),
	COLUMN(CONN, DEVICE, TEXT, "device", "DEVICE"),
	COLUMN(CONN, RTT_NS, NS, "rtt-ns", "RTT"),
	COLUMN(CONN, TX_BYTES, U64, "tx-bytes", "TXBYTES"),
	COLUMN(CONN, RX_BYTES, U64, "rx-bytes", "RXBYTES"),
	COLUMN(CONN, TX_SEQ, U64, "tx-seq", "SENT"),
	COLUMN(CONN, ACKED_SEQ, U64, "acked-seq", "ACKED"),
	COLUMN(CONN, RX_SEQ, U64, "rx-seq", "RECEIVED"),
	COLUMN(CONN, TOS, U8, "tos", "TOS"),
	COLUMN(CONN, LANE, U8, "lane", "LANE"),
	COLUMN(CONN, QPN, U32, "qpn", "QPN"),
	COLUMN(CONN, PEER_QPN, U32, "peer-qpn", "PEERQPN"),
	COLUMN(CONN, VERSION, VERSION, "version", "VERSION"),
	COLUMN(CONN, TRANSPORT, TEXT, "transport", "TRANSPORT"),
	NAMED(CONN, FLAGS, BITS, "flags", "FLAGS", conn_flags),
	PLAIN(CONN, MTU, U32, "mtu"),
	PLAIN(CONN, FRAGMENT, U32, "fragment"),
	PLAIN(CONN, SEND_SLOTS, U32, "send-slots"),
	PLAIN(CONN, SEND_USED, U32, "send-used"),
	PLAIN(CONN, CREDITS, U32, "credits"),
	PLAIN(CONN, RECV_WINDOW, U32, "recv-window"),
	PLAIN(CONN, RETRY_COUNT, U32, "retry-count"),
	PLAIN(CONN, SCOPE, U32, "scope"),
	PLAIN(CONN, ATTEMPTS, U32, "attempts"),
	NAMED(CONN, REASON, NAME, "reason", "REASON", reasons),
	{ .name = NULL }
};

const struct field peer_fields[] = {
	COLUMN(PEER, FADDR, ADDR, "faddr", "NODE"),
	COLUMN(PEER, LADDR, ADDR, "laddr", "LOCAL"),
	NAMED(PEER, STATE, NAME, "state", "STATE", peer_states),
	COLUMN(PEER, SINCE_MS, MS, "since-ms", "SINCE"),
	NAMED(PEER, REASON, NAME, "reason", "REASON", reasons),
	COLUMN(PEER, UP_CONNS, U32, "up-conns", "UP"),
	COLUMN(PEER, CONNS, U32, "conns", "CONNS"),
	COLUMN(PEER, WATCHES, U32, "watches", "WATCHES"),
	COLUMN(PEER, SILENT_MS, MS, "silent-ms", "SILENT"),
	COLUMN(PEER, OUTAGE_MS, MS, "outage-ms", "OUTAGE"),
	PLAIN(PEER, SCOPE, U32, "scope"),
	{ .name = NULL }
};

static const struct field region_fields[] = {
	ENDPOINT(REGION, LADDR, "laddr", "OWNER", LPORT),
	PLAIN(REGION, LPORT, U16, "lport"),
	COLUMN(REGION, RKEY, HEX, "rkey", "KEY"),
	COLUMN(REGION, BYTES, U64, "bytes", "BYTES"),
	COLUMN(REGION, PAGES, U32, "pages", "PAGES"),
	NAMED(REGION, FLAGS, BITS, "flags", "FLAGS", region_flags),
	COLUMN(REGION, UID, U32, "uid", "UID"),
	COLUMN(REGION, TRANSPORT, TEXT, "transport", "TRANSPORT"),
	COLUMN(REGION, SOCKET, U32, "socket", "SOCKET"),
	{ .name = NULL }
};

static const struct field counter_fields[] = {
	COLUMN(COUNTER, NAME, TEXT, "name", "NAME"),
	COLUMN(COUNTER, VALUE, U64, "value", "VALUE"),
	SHORT(COUNTER, VALUE, RATE, "PER/s", NULL),
	COLUMN(COUNTER, HELP, TEXT, "help", "WHAT"),
	PLAIN(COUNTER, LEVEL, PRESENT, "level"),
	{ .name = NULL }
};

static const struct field device_fields[] = {
	COLUMN(DEVICE, NAME, TEXT, "name", "NAME"),
	COLUMN(DEVICE, ENDPOINTS, U32, "endpoints", "QPS"),
	COLUMN(DEVICE, MAX_QP, U32, "max-qp", "MAXQPS"),
	COLUMN(DEVICE, REGIONS, U32, "regions", "REGIONS"),
	COLUMN(DEVICE, MAX_MR, U32, "max-mr", "MAXREG"),
	COLUMN(DEVICE, RECV_POSTED, U32, "recv-posted", "BUFFERS"),
	COLUMN(DEVICE, RECV_BYTES, U32, "recv-bytes", "BYTES"),
	NAMED(DEVICE, FLAGS, BITS, "flags", "FLAGS", device_flags),
	COLUMN(DEVICE, TRANSPORT, TEXT, "transport", "TRANSPORT"),
	COLUMN(DEVICE, GUID, HEX, "guid", "GUID"),
	PLAIN(DEVICE, MAX_QP_WR, U32, "max-qp-wr"),
	PLAIN(DEVICE, MAX_CQE, U32, "max-cqe"),
	PLAIN(DEVICE, MAX_SGE, U32, "max-sge"),
	PLAIN(DEVICE, MAX_SRQ, U32, "max-srq"),
	PLAIN(DEVICE, MAX_SRQ_WR, U32, "max-srq-wr"),
	PLAIN(DEVICE, MAX_MR_PAGES, U32, "max-mr-pages"),
	PLAIN(DEVICE, MAX_RD_ATOMIC, U32, "max-rd-atomic"),
	{ .name = NULL }
};

static const struct field status_fields[] = {
	COLUMN(STATUS, DRAINED, PRESENT, "drained", "DRAINED"),
	COLUMN(STATUS, CONNS, U32, "conns", "CONNECTIONS"),
	{ .name = NULL }
};

static const struct field feature_fields[] = {
	COLUMN(FEATURE, NAME, TEXT, "name", "NAME"),
	COLUMN(FEATURE, REVISION, U32, "revision", "REVISION"),
	COLUMN(FEATURE, HELP, TEXT, "help", "WHAT"),
	{ .name = NULL }
};

static const struct field message_fields[] = {
	{ MESSAGE_QUEUE, KIND_NAME, "queue", "QUEUE", 0, queues },
	{ MESSAGE_LADDR, KIND_ADDR, "laddr", "LOCAL", MESSAGE_LPORT, NULL },
	{ MESSAGE_LPORT, KIND_U16, "lport", NULL, 0, NULL },
	{ MESSAGE_FADDR, KIND_ADDR, "faddr", "PEER", MESSAGE_FPORT, NULL },
	{ MESSAGE_FPORT, KIND_U16, "fport", NULL, 0, NULL },
	{ MESSAGE_BYTES, KIND_U32, "bytes", "BYTES", 0, NULL },
	{ MESSAGE_SEQ, KIND_U64, "seq", "SEQ", 0, NULL },
	{ MESSAGE_TOS, KIND_U8, "tos", "TOS", 0, NULL },
	{ .name = NULL }
};

/* @name of an object may be shortened: the first one that fits is meant. */
const struct object objects[NR_OBJECTS + 1] = {
	{ "devices", XRDS_CMD_DEVICE_GET, device_fields },
	{ "connections", XRDS_CMD_CONN_GET, conn_fields },
	{ "sockets", XRDS_CMD_SOCKET_GET, socket_fields },
	{ "destinations", XRDS_CMD_DEST_GET, dest_fields },
	{ "nodes", XRDS_CMD_PEER_GET, peer_fields },
	{ "marks", XRDS_CMD_NODE_GET, node_fields },
	{ "regions", XRDS_CMD_REGION_GET, region_fields },
	{ "counters", XRDS_CMD_COUNTER_GET, counter_fields },
	{ "status", XRDS_CMD_STATUS_GET, status_fields },
	{ "features", XRDS_CMD_FEATURE_GET, feature_fields },
	{ "messages", CMD_MESSAGES, message_fields },
	{ NULL, 0, NULL }
};

/* @name is the beginning of its name; NULL if there is none. */
const struct object *object_find(const char *name)
{
	const struct object *o;

	for (o = objects; o->name; o++)
		if (*name && !strncmp(o->name, name, strlen(name)))
			return o;
	return NULL;
}

static const char *addr_text(const struct nlattr *attr, char *out)
{
	const struct in6_addr *addr = mnl_attr_get_payload(attr);

	if (mnl_attr_get_payload_len(attr) != sizeof(*addr))
		return "?";
	if (IN6_IS_ADDR_V4MAPPED(addr))
		return inet_ntop(AF_INET, &addr->s6_addr[12], out, TEXT_MAX);
	return inet_ntop(AF_INET6, addr, out, TEXT_MAX);
}

static const char *bits_text(uint32_t bits, const char * const *names,
			     char *out)
{
	size_t len = 0;

	*out = '\0';
	for (; *names; names++, bits >>= 1)
		if (bits & 1 && **names)
			len += snprintf(out + len, TEXT_MAX - len, "%s%s",
					len ? "," : "", *names);
	return out;
}

static const char *name_text(uint32_t i, const char * const *names)
{
	while (*names && i) {
		names++;
		i--;
	}
	return *names ? *names : "?";
}

/* A time, in units of which a second has so many: as "71us", "2.0s", "3d04h" */
static const char *time_text(uint64_t v, uint64_t second, char *out)
{
	uint64_t s = v / second, us = v % second * (1000000 / (double)second);

	if (s >= 86400)
		snprintf(out, TEXT_MAX, "%" PRIu64 "d%02" PRIu64 "h",
			 s / 86400, s / 3600 % 24);
	else if (s >= 3600)
		snprintf(out, TEXT_MAX, "%" PRIu64 "h%02" PRIu64 "m",
			 s / 3600, s / 60 % 60);
	else if (s >= 60)
		snprintf(out, TEXT_MAX, "%" PRIu64 "m%02" PRIu64 "s",
			 s / 60, s % 60);
	else if (s)
		snprintf(out, TEXT_MAX, "%" PRIu64 ".%" PRIu64 "s", s,
			 us / 100000);
	else if (us >= 10000 || second == 1000)
		snprintf(out, TEXT_MAX, "%" PRIu64 "ms", us / 1000);
	else
		snprintf(out, TEXT_MAX, "%" PRIu64 "us", us);
	return out;
}

/* Since that time of CLOCK_MONOTONIC; 0: never */
static const char *since_text(uint64_t ns, char *out)
{
	struct timespec ts;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = ts.tv_sec * 1000000000ull + ts.tv_nsec;
	if (!ns)
		return "never";
	return time_text(now > ns ? (now - ns) / 1000000 : 0, 1000, out);
}

static uint64_t number(const struct nlattr *attr)
{
	switch (mnl_attr_get_payload_len(attr)) {
	case 1:
		return mnl_attr_get_u8(attr);
	case 2:
		return mnl_attr_get_u16(attr);
	case 4:
		return mnl_attr_get_u32(attr);
	case 8:
		return mnl_attr_get_u64(attr);
	default:
		return 0;
	}
}

/* As a table has it: short, with units */
const char *field_short(const struct field *f, const struct nlattr *attr,
			char *out)
{
	const char *name;

	switch (f->kind) {
	case KIND_MS:
		return time_text(number(attr), 1000, out);
	case KIND_NS:
		return time_text(number(attr), 1000000000, out);
	case KIND_SINCE:
		return since_text(number(attr), out);
	case KIND_ERRNO:
		name = strerrorname_np(number(attr));
		return name ?: field_text(f, attr, out);
	default:
		return field_text(f, attr, out);
	}
}

/* The value as text; @out has TEXT_MAX bytes, and need not be used */
const char *field_text(const struct field *f, const struct nlattr *attr,
		       char *out)
{
	uint64_t v = number(attr);

	switch (f->kind) {
	case KIND_ADDR:
		return addr_text(attr, out);
	case KIND_TEXT:
		snprintf(out, TEXT_MAX, "%.*s",
			 (int)mnl_attr_get_payload_len(attr),
			 mnl_attr_get_str(attr));
		return text_printable(out);
	case KIND_PRESENT:
		return "yes";
	case KIND_NAME:
		return name_text(v, f->names);
	case KIND_BITS:
		return bits_text(v, f->names, out);
	case KIND_ERRNO:
		return strerror(v);
	case KIND_PROGRAM:
		return program_text(v, out);
	case KIND_RATE:
		return "";
	case KIND_HEX:
		snprintf(out, TEXT_MAX, "0x%" PRIx64, v);
		return out;
	case KIND_VERSION:
		snprintf(out, TEXT_MAX, "%u.%u", (unsigned int)v >> 8,
			 (unsigned int)v & 0xff);
		return out;
	default:
		snprintf(out, TEXT_MAX, "%" PRIu64, v);
		return out;
	}
}

bool object_has(const struct object *object, const char *name, size_t len)
{
	const struct field *f;

	for (f = object->fields; f->name; f++)
		if (len && strlen(f->name) == len && !strncmp(f->name, name, len))
			return true;
	return false;
}

static bool fits(const struct field *f, const struct row *row,
		 const char *value)
{
	const struct nlattr *attr = row->attrs[f->attr];
	const char * const *name = f->names;
	char text[TEXT_MAX];
	uint32_t bits;

	if (!attr)
		return false;
	if (f->kind != KIND_BITS)
		return !strcmp(field_text(f, attr, text), value);
	for (bits = mnl_attr_get_u32(attr); *name; name++, bits >>= 1)
		if (bits & 1 && !strcmp(*name, value))
			return true;
	return false;
}

/* An object that does not have the attribute is not filtered by it. */
static bool passes(const struct object *object, const struct row *row,
		   const struct filter *filter)
{
	const struct field *f;

	for (f = object->fields; f->name; f++)
		if (!strcmp(f->name, filter->name))
			return fits(f, row, filter->value);
	return true;
}

bool row_wanted(const struct object *object, const struct row *row)
{
	const struct nlattr *value = row->attrs[XRDS_A_COUNTER_VALUE];
	int i;

	if (!opt.all && object->cmd == XRDS_CMD_COUNTER_GET && value &&
	    !mnl_attr_get_u64(value))
		return false;
	for (i = 0; i < opt.nr_filters; i++)
		if (!passes(object, row, &opt.filters[i]))
			return false;
	return true;
}
