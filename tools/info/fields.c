// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tables of the attributes of each dump. Their names are those of
 * Documentation/netlink/specs/xrds.yaml. objects[] lists the dumps, rows.c and
 * json.c print the attributes with field_text().
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "info.h"

static const char * const states[] = {
	"down", "resolving", "connecting", "wait-cts", "up", "closing",
	"parting", "dead", NULL
};

static const char * const reasons[] = {
	"none", "lost", "replaced", "idle", "peer", "device", "gone", NULL
};

static const char * const peer_states[] = {
	"idle", "up", "down", "reborn", NULL
};

static const char * const socket_flags[] = {
	"bound", "connected", "congested", "ending", NULL
};

static const char * const dest_flags[] = {
	"blocked", "congested", "eos-sent", "closed", NULL
};

static const char * const region_flags[] = { "write", "use-once", NULL };

static const char * const conn_flags[] = {
	"dialled", "failed", "classic", "waiting", "shared-rq", NULL
};

static const char * const device_flags[] = {
	"shared-rq", "fences", "atomics", NULL
};

#define FIELD(_set, _attr, _kind, _name, _column, _port, _names) { \
	.attr = XRDS_A_##_set##_##_attr, .kind = KIND_##_kind, .name = _name, \
	.column = _column, .port = _port, .names = _names }

/* Kinds of fields: not in the table; in it; address and port; named values */
#define PLAIN(set, attr, kind, name) \
	FIELD(set, attr, kind, name, NULL, 0, NULL)
#define COLUMN(set, attr, kind, name, column) \
	FIELD(set, attr, kind, name, column, 0, NULL)
#define ENDPOINT(set, attr, name, column, port) \
	FIELD(set, attr, ADDR, name, column, XRDS_A_##set##_##port, NULL)
#define NAMED(set, attr, kind, name, column, names) \
	FIELD(set, attr, kind, name, column, 0, names)

static const struct field socket_fields[] = {
	COLUMN(SOCKET, ID, U32, "id", "ID"),
	ENDPOINT(SOCKET, LADDR, "laddr", "LOCAL", LPORT),
	PLAIN(SOCKET, LPORT, U16, "lport"),
	ENDPOINT(SOCKET, FADDR, "faddr", "PEER", FPORT),
	PLAIN(SOCKET, FPORT, U16, "fport"),
	PLAIN(SOCKET, SCOPE, U32, "scope"),
	COLUMN(SOCKET, QUEUED_BYTES, U64, "queued-bytes", "SENDQ"),
	COLUMN(SOCKET, RECV_BYTES, U64, "recv-bytes", "RECVQ"),
	COLUMN(SOCKET, DESTS, U32, "dests", "DESTS"),
	COLUMN(SOCKET, UID, U32, "uid", "UID"),
	COLUMN(SOCKET, INODE, U64, "inode", "INODE"),
	COLUMN(SOCKET, TRANSPORT, TEXT, "transport", "TRANSPORT"),
	NAMED(SOCKET, FLAGS, BITS, "flags", "FLAGS", socket_flags),
	PLAIN(SOCKET, TOS, U8, "tos"),
	PLAIN(SOCKET, SNDBUF, U32, "sndbuf"),
	PLAIN(SOCKET, RCVBUF, U32, "rcvbuf"),
	PLAIN(SOCKET, QUEUED_MSGS, U64, "queued-msgs"),
	PLAIN(SOCKET, NODES, U32, "nodes"),
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
	COLUMN(DEST, ACKED_MSGS, U64, "acked-msgs", "ACKED"),
	NAMED(DEST, FLAGS, BITS, "flags", "FLAGS", dest_flags),
	COLUMN(DEST, SNDBUF, U32, "sndbuf", "SNDBUF"),
	PLAIN(DEST, PROGRESS_NS, U64, "progress-ns"),
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
	COLUMN(CONN, QPN, U32, "qpn", "QPN"),
	COLUMN(CONN, PEER_QPN, U32, "peer-qpn", "PEERQPN"),
	COLUMN(CONN, RTT_NS, U64, "rtt-ns", "RTT/ns"),
	COLUMN(CONN, TX_SEQ, U64, "tx-seq", "SENT"),
	COLUMN(CONN, ACKED_SEQ, U64, "acked-seq", "ACKED"),
	COLUMN(CONN, RX_SEQ, U64, "rx-seq", "RECEIVED"),
	COLUMN(CONN, TOS, U8, "tos", "TOS"),
	COLUMN(CONN, LANE, U8, "lane", "LANE"),
	COLUMN(CONN, RETRIES, U32, "retries", "RETRIES"),
	COLUMN(CONN, DEVICE, TEXT, "device", "DEVICE"),
	COLUMN(CONN, VERSION, VERSION, "version", "VERSION"),
	COLUMN(CONN, TRANSPORT, TEXT, "transport", "TRANSPORT"),
	NAMED(CONN, FLAGS, BITS, "flags", "FLAGS", conn_flags),
	PLAIN(CONN, UP_MS, U64, "up-ms"),
	PLAIN(CONN, MTU, U32, "mtu"),
	PLAIN(CONN, FRAGMENT, U32, "fragment"),
	PLAIN(CONN, SEND_SLOTS, U32, "send-slots"),
	PLAIN(CONN, SEND_USED, U32, "send-used"),
	PLAIN(CONN, CREDITS, U32, "credits"),
	PLAIN(CONN, RECV_WINDOW, U32, "recv-window"),
	PLAIN(CONN, RETRY_COUNT, U32, "retry-count"),
	PLAIN(CONN, SCOPE, U32, "scope"),
	NAMED(CONN, REASON, NAME, "reason", NULL, reasons),
	PLAIN(CONN, ERROR, ERRNO, "error"),
	{ .name = NULL }
};

const struct field peer_fields[] = {
	COLUMN(PEER, FADDR, ADDR, "faddr", "NODE"),
	COLUMN(PEER, LADDR, ADDR, "laddr", "LOCAL"),
	NAMED(PEER, STATE, NAME, "state", "STATE", peer_states),
	COLUMN(PEER, SINCE_MS, U64, "since-ms", "SINCE/ms"),
	NAMED(PEER, REASON, NAME, "reason", "REASON", reasons),
	COLUMN(PEER, UP_CONNS, U32, "up-conns", "UP"),
	COLUMN(PEER, CONNS, U32, "conns", "OF"),
	COLUMN(PEER, WATCHES, U32, "watches", "WATCHES"),
	PLAIN(PEER, SILENT_MS, U64, "silent-ms"),
	PLAIN(PEER, OUTAGE_MS, U64, "outage-ms"),
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
	COLUMN(COUNTER, HELP, TEXT, "help", "WHAT"),
	PLAIN(COUNTER, LEVEL, PRESENT, "level"),
	{ .name = NULL }
};

static const struct field device_fields[] = {
	COLUMN(DEVICE, NAME, TEXT, "name", "NAME"),
	COLUMN(DEVICE, ENDPOINTS, U32, "endpoints", "QPS"),
	COLUMN(DEVICE, MAX_QP, U32, "max-qp", "OF"),
	COLUMN(DEVICE, REGIONS, U32, "regions", "REGIONS"),
	COLUMN(DEVICE, MAX_MR, U32, "max-mr", "OF"),
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

const struct object objects[] = {
	{ "devices", XRDS_CMD_DEVICE_GET, device_fields },
	{ "connections", XRDS_CMD_CONN_GET, conn_fields },
	{ "sockets", XRDS_CMD_SOCKET_GET, socket_fields },
	{ "destinations", XRDS_CMD_DEST_GET, dest_fields },
	{ "nodes", XRDS_CMD_PEER_GET, peer_fields },
	{ "marks", XRDS_CMD_NODE_GET, node_fields },
	{ "regions", XRDS_CMD_REGION_GET, region_fields },
	{ "counters", XRDS_CMD_COUNTER_GET, counter_fields },
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
		if (bits & 1)
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
		return out;
	case KIND_PRESENT:
		return "yes";
	case KIND_NAME:
		return name_text(v, f->names);
	case KIND_BITS:
		return bits_text(v, f->names, out);
	case KIND_ERRNO:
		return strerror(v);
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
