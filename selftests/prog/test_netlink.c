// SPDX-License-Identifier: GPL-2.0-only
/*
 * The dumps and the news of the generic netlink family "xrds", over the
 * loopback: they are complete while things come and go, go on in parts of any
 * size, and show nobody more than he may see.
 *
 * timeout: 240
 */
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/xrds_netlink.h>

#include "counters.h"
#include "rdma.h"
#include "tap.h"

enum {
	NOBODY		= 65534,
	STABLE		= 200,		/* sockets that stay */
	MANY		= 2000,
	DESTS		= 500,
	STEP		= 100,		/* destinations */
	DUMPS		= 60,
	ATTRS		= 64,
	PART_BYTES	= 64 << 10,
	PART_SMALL	= 8 << 10,
};

/* ---------------------------------------------------------------- netlink */

struct row {
	const struct nlattr *attrs[ATTRS];
};

/**
 * struct nl - a netlink socket
 * @fd:		socket
 * @family:	number of the family
 * @group:	and of its multicast group
 * @part:	how much is read at a time
 * @parts:	how many there were of the last dump
 * @interrupted: the last dump is marked so
 */
struct nl {
	int fd;
	int family;
	int group;
	size_t part;
	int parts;
	bool interrupted;
};

static char buffer[PART_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));

static const void *payload(const struct nlattr *a)
{
	return (const char *)a + NLA_HDRLEN;
}

static u32 u32_of(const struct row *row, int attr)
{
	u32 v = 0;

	if (row->attrs[attr])
		memcpy(&v, payload(row->attrs[attr]), sizeof(v));
	return v;
}

static u16 u16_of(const struct row *row, int attr)
{
	u16 v = 0;

	if (row->attrs[attr])
		memcpy(&v, payload(row->attrs[attr]), sizeof(v));
	return v;
}

static u64 u64_of(const struct row *row, int attr)
{
	u64 v = 0;

	if (row->attrs[attr])
		memcpy(&v, payload(row->attrs[attr]), sizeof(v));
	return v;
}

static const char *text_of(const struct row *row, int attr)
{
	return row->attrs[attr] ? payload(row->attrs[attr]) : "";
}

static void attrs_parse(struct row *row, const void *from, int len)
{
	const struct nlattr *a = from;

	memset(row, 0, sizeof(*row));
	while (len >= NLA_HDRLEN && a->nla_len >= NLA_HDRLEN &&
	       a->nla_len <= len) {
		int type = a->nla_type & NLA_TYPE_MASK;

		if (type < ATTRS)
			row->attrs[type] = a;
		len -= NLA_ALIGN(a->nla_len);
		a = (const void *)((const char *)a + NLA_ALIGN(a->nla_len));
	}
}

static void row_parse(struct row *row, const struct nlmsghdr *h)
{
	attrs_parse(row, (const char *)NLMSG_DATA(h) + GENL_HDRLEN,
		    (int)h->nlmsg_len - NLMSG_HDRLEN - GENL_HDRLEN);
}

static int request(struct nl *nl, int type, int flags, int cmd,
		   const char *name)
{
	struct {
		struct nlmsghdr h;
		struct genlmsghdr g;
		struct nlattr a;
		char name[GENL_NAMSIZ];
	} m = {
		.h = { .nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN,
		       .nlmsg_type = type,
		       .nlmsg_flags = NLM_F_REQUEST | flags },
		.g = { .cmd = cmd, .version = 1 },
	};

	if (name) {
		m.a.nla_type = CTRL_ATTR_FAMILY_NAME;
		m.a.nla_len = NLA_HDRLEN + strlen(name) + 1;
		strcpy(m.name, name);
		m.h.nlmsg_len += NLA_ALIGN(m.a.nla_len);
	}
	return send(nl->fd, &m, m.h.nlmsg_len, 0);
}

static void take_family(struct nl *nl, const struct nlmsghdr *h)
{
	struct row row, groups, group;

	row_parse(&row, h);
	nl->family = u16_of(&row, CTRL_ATTR_FAMILY_ID);
	if (!row.attrs[CTRL_ATTR_MCAST_GROUPS])
		return;
	attrs_parse(&groups, payload(row.attrs[CTRL_ATTR_MCAST_GROUPS]),
		    row.attrs[CTRL_ATTR_MCAST_GROUPS]->nla_len - NLA_HDRLEN);
	if (!groups.attrs[1])
		return;
	attrs_parse(&group, payload(groups.attrs[1]),
		    groups.attrs[1]->nla_len - NLA_HDRLEN);
	if (!strcmp(text_of(&group, CTRL_ATTR_MCAST_GRP_NAME),
		    XRDS_MCGRP_CONN))
		nl->group = u32_of(&group, CTRL_ATTR_MCAST_GRP_ID);
}

/* The kernel makes parts as large as the largest read so far, and not smaller
 * than PART_SMALL.
 */
static void nl_open_part(struct nl *nl, size_t part)
{
	memset(nl, 0, sizeof(*nl));
	nl->part = part;
	nl->fd = must(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
			     NETLINK_GENERIC));
	must(request(nl, GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY,
		     XRDS_FAMILY_NAME));
	must(recv(nl->fd, buffer, nl->part, 0));
	take_family(nl, (void *)buffer);
	if (!check(nl->family > 0) || !check(nl->group > 0))
		tap_fail("there is no family");
}

static void nl_open(struct nl *nl)
{
	nl_open_part(nl, sizeof(buffer));
}

typedef void (*row_fn)(const struct row *row, void *arg);

/* One part; whether there is more, or negative errno */
static int part_read(struct nl *nl, row_fn fn, void *arg)
{
	int len = must(recv(nl->fd, buffer, nl->part, 0));
	const struct nlmsghdr *h = (void *)buffer;
	struct row row;

	nl->parts++;
	for (; NLMSG_OK(h, (unsigned int)len); h = NLMSG_NEXT(h, len)) {
		if (h->nlmsg_flags & NLM_F_DUMP_INTR)
			nl->interrupted = true;
		if (h->nlmsg_type == NLMSG_DONE)
			return *(int *)NLMSG_DATA(h);
		if (h->nlmsg_type == NLMSG_ERROR)
			return ((struct nlmsgerr *)NLMSG_DATA(h))->error;
		row_parse(&row, h);
		fn(&row, arg);
	}
	return 1;
}

/* A dump; 0 or negative errno */
static int dump(struct nl *nl, int cmd, row_fn fn, void *arg)
{
	int ret;

	nl->parts = 0;
	nl->interrupted = false;
	must(request(nl, nl->family, NLM_F_DUMP, cmd, NULL));
	do {
		ret = part_read(nl, fn, arg);
	} while (ret > 0);
	return ret;
}

static void count_row(const struct row *row, void *arg)
{
	(void)row;
	++*(int *)arg;
}

static int rows(int cmd)
{
	struct nl nl;
	int n = 0;

	nl_open(&nl);
	check_eq(dump(&nl, cmd, count_row, &n), 0);
	close(nl.fd);
	return n;
}

/* ---------------------------------------------------------------- sockets */

struct seen {
	int nr;
	ino_t *inodes;
	int *times;
	int others;
};

static ino_t inode_of(int fd)
{
	struct stat st;

	must(fstat(fd, &st));
	return st.st_ino;
}

static void more_files(void)
{
	struct rlimit limit = { .rlim_cur = 4096, .rlim_max = 4096 };

	must(setrlimit(RLIMIT_NOFILE, &limit));
}

static void seen_open(struct seen *s, int nr)
{
	int i;

	memset(s, 0, sizeof(*s));
	s->nr = nr;
	s->inodes = calloc(nr, sizeof(*s->inodes));
	s->times = calloc(nr, sizeof(*s->times));
	for (i = 0; i < nr; i++)
		s->inodes[i] = inode_of(i & 1 ? rds_bound(NULL) : rds_socket());
}

static void see(const struct row *row, void *arg)
{
	ino_t inode = u64_of(row, XRDS_A_SOCKET_INODE);
	struct seen *s = arg;
	int i;

	for (i = 0; i < s->nr; i++) {
		if (s->inodes[i] == inode) {
			s->times[i]++;
			return;
		}
	}
	s->others++;
}

static void check_seen(struct seen *s)
{
	int wrong = 0, i;

	for (i = 0; i < s->nr; i++)
		wrong += s->times[i] != 1;
	check_eq(wrong, 0);
	memset(s->times, 0, s->nr * sizeof(*s->times));
	s->others = 0;
}

/* Sockets that come and go, some bound */
static void churn(void)
{
	int fds[32], i;

	for (;;) {
		for (i = 0; i < 32; i++)
			fds[i] = i & 1 ? rds_bound(NULL) : rds_socket();
		for (i = 0; i < 32; i++)
			close(fds[(i * 7) & 31]);
	}
}

static void complete(void)
{
	int n = tap_count(DUMPS), i, status, others = 0;
	struct seen s;
	struct nl nl;
	pid_t pid;

	seen_open(&s, STABLE);
	pid = must(fork());
	if (!pid) {
		churn();
		_exit(0);
	}
	nl_open(&nl);
	for (i = 0; i < n; i++) {
		check_eq(dump(&nl, XRDS_CMD_SOCKET_GET, see, &s), 0);
		others += s.others;
		check_seen(&s);
	}
	must(kill(pid, SIGKILL));
	must(waitpid(pid, &status, 0));
	check(WIFSIGNALED(status));
	check(others);
}

static void many(void)
{
	struct seen s;
	struct nl nl;

	more_files();
	seen_open(&s, MANY);
	nl_open_part(&nl, PART_SMALL);
	check_eq(dump(&nl, XRDS_CMD_SOCKET_GET, see, &s), 0);
	check(nl.parts > 10);
	check_eq(s.others, 0);
	check_seen(&s);
	nl.part = sizeof(buffer);
	check_eq(dump(&nl, XRDS_CMD_SOCKET_GET, see, &s), 0);
	check_seen(&s);
}

struct wanted {
	u16 lport;
	u16 fport;
	int found;
};

static void check_one(const struct row *row, void *arg)
{
	struct wanted *w = arg;

	if (u16_of(row, XRDS_A_SOCKET_LPORT) != w->lport)
		return;
	w->found++;
	check_eq(u32_of(row, XRDS_A_SOCKET_FLAGS),
		 XRDS_SOCKET_FLAG_BOUND | XRDS_SOCKET_FLAG_CONNECTED);
	check_eq(u16_of(row, XRDS_A_SOCKET_FPORT), w->fport);
	check_eq(u32_of(row, XRDS_A_SOCKET_RCVBUF), 100000);
	check_eq(u32_of(row, XRDS_A_SOCKET_UID), getuid());
	check_eq(u32_of(row, XRDS_A_SOCKET_PID), getpid());
	check_eq(u64_of(row, XRDS_A_SOCKET_RECV_BYTES), 1000);
	check_eq(u64_of(row, XRDS_A_SOCKET_QUEUED_BYTES), 0);
	check_eq(u32_of(row, XRDS_A_SOCKET_DESTS), 1);
	check(!strcmp(text_of(row, XRDS_A_SOCKET_TRANSPORT), "loopback"));
}

static void socket_fields(void)
{
	struct wanted w = { .fport = 4711 };
	union addr self, to = addr_of(tap_host, w.fport);
	int fd = rds_bound(&self);
	char data[1000] = {};
	struct nl nl;

	rds_set_int(fd, SOL_SOCKET, SO_RCVBUF, 100000);
	must(connect(fd, &to.sa, addr_len(&to)));
	check_ret(rds_send(fd, data, sizeof(data), 0, &self), sizeof(data));
	check(poll_one(fd, POLLIN, WAIT_MS) & POLLIN);
	w.lport = addr_port(&self);
	while (rds_outq(fd))
		usleep(1000);
	nl_open(&nl);
	check_eq(dump(&nl, XRDS_CMD_SOCKET_GET, check_one, &w), 0);
	check_eq(w.found, 1);
}

/* ----------------------------------------------------------- destinations */

struct ports {
	u16 first;
	int nr;
	int times[DESTS];
	u64 queued;
};

static void see_dest(const struct row *row, void *arg)
{
	struct ports *p = arg;
	int i = u16_of(row, XRDS_A_DEST_FPORT) - p->first;

	if (i >= 0 && i < p->nr)
		p->times[i]++;
	p->queued += u64_of(row, XRDS_A_DEST_QUEUED_MSGS);
}

/* A message to each of these ports, so that there is a destination */
static void send_each(int fd, int first, int nr)
{
	union addr to = addr_of(tap_host, 0);
	int i;

	for (i = 0; i < nr; i++) {
		addr_set_port(&to, first + i);
		check_ret(rds_send(fd, "x", 1, MSG_DONTWAIT, &to), 1);
	}
}

static int missing_of(const struct ports *p)
{
	int i, missing = 0;

	for (i = 0; i < p->nr; i++)
		missing += !p->times[i];
	return missing;
}

static void destinations(void)
{
	static struct ports p = { .first = 5000, .nr = DESTS };
	int fd, i, twice = 0;
	struct nl nl;

	stall_loop();
	fd = rds_bound(NULL);
	send_each(fd, p.first, DESTS);
	nl_open_part(&nl, PART_SMALL);
	check_eq(dump(&nl, XRDS_CMD_DEST_GET, see_dest, &p), 0);
	for (i = 0; i < DESTS; i++)
		twice += p.times[i] > 1;
	check(nl.parts > 3);
	check_eq(missing_of(&p), 0);
	check(!twice || nl.interrupted);
	if (!twice)
		check_eq(p.queued, DESTS);
}

/* The flags of the destination of one socket, and of its stream's end */
struct flags {
	u16 lport;
	u32 flags;
	int rows;
};

static void see_flags(const struct row *row, void *arg)
{
	struct flags *f = arg;

	if (u16_of(row, XRDS_A_DEST_LPORT) != f->lport)
		return;
	f->rows++;
	f->flags = u32_of(row, XRDS_A_DEST_FLAGS);
}

static u32 flags_of(const union addr *a)
{
	struct flags f = { .lport = addr_port(a) };
	struct nl nl;

	nl_open(&nl);
	check_eq(dump(&nl, XRDS_CMD_DEST_GET, see_flags, &f), 0);
	check_eq(f.rows, 1);
	close(nl.fd);
	return f.flags;
}

/* As XRDS_DEST_STATUS has them */
static void dest_flags(void)
{
	struct xrds_dest_status st;
	union addr from, to;
	int tx = rds_bound(&from), rx = rds_bound(&to);
	char byte;

	must(rds_send(tx, "x", 1, 0, &to));
	check_ret(rds_recv_within(rx, &byte, 1, WAIT_MS, NULL), 1);
	must(rds_send(rx, "x", 1, 0, &from));
	check_ret(rds_recv_within(tx, &byte, 1, WAIT_MS, NULL), 1);
	check_eq(flags_of(&from), 0);
	check_eq(flags_of(&to), 0);
	must(shutdown(tx, SHUT_WR));
	/* the end of the stream is read with the next message */
	check_eq(poll_one(rx, POLLIN, tap_ms(WAIT_MS)), POLLIN);
	while (recv(rx, &byte, 1, MSG_DONTWAIT) >= 0)
		;
	check_ret(dest_status(tx, &to, &st), 0);
	check_eq(flags_of(&from), st.flags);
	check_eq(flags_of(&from), XRDS_DEST_EOS_SENT);
	check_ret(dest_status(rx, &from, &st), 0);
	check_eq(flags_of(&to), st.flags);
	check_eq(flags_of(&to), XRDS_DEST_EOS_RCVD);
	close(tx);
	close(rx);
}

/* The table grows while it is dumped: the dump says so, and has all sockets
 * that were there from its begin to its end. The kernel chooses when to grow
 * it, but does so with each doubling of its rows.
 */
static void resized(void)
{
	static struct ports p = { .first = 5000, .nr = STEP };
	bool grown = false;
	int fd, nr;
	struct nl nl;

	stall_loop();
	fd = rds_bound(NULL);
	send_each(fd, p.first, STEP);
	for (nr = STEP; nr < 2 * DESTS && !grown; nr += STEP) {
		memset(p.times, 0, sizeof(p.times));
		nl_open_part(&nl, PART_SMALL);
		must(request(&nl, nl.family, NLM_F_DUMP, XRDS_CMD_DEST_GET,
			     NULL));
		check_eq(part_read(&nl, see_dest, &p), 1);
		send_each(fd, p.first + nr, STEP);
		while (part_read(&nl, see_dest, &p) > 0)
			;
		check_eq(missing_of(&p), 0);
		grown = nl.interrupted;
		close(nl.fd);
	}
	check(grown);
}

/* A program that goes away in the midst of a dump leaves nothing: the rig
 * unloads.
 */
static void abandoned(void)
{
	int fd = rds_bound(NULL), i, n = 0;
	struct nl nl;

	send_each(fd, 5000, DESTS);
	for (i = 0; i < 10; i++) {
		nl_open_part(&nl, PART_SMALL);
		must(request(&nl, nl.family, NLM_F_DUMP, XRDS_CMD_DEST_GET,
			     NULL));
		check_eq(part_read(&nl, count_row, &n), 1);
		close(nl.fd);
	}
	check(n > 0 && n < 10 * DESTS);
}

/* --------------------------------------------------------- nodes, regions */

static void see_region(const struct row *row, void *arg)
{
	struct target *t = arg;

	if (u16_of(row, XRDS_A_REGION_LPORT) != addr_port(&t->addr))
		return;
	check_eq(u32_of(row, XRDS_A_REGION_RKEY), (u32)t->cookie);
	check_eq(u64_of(row, XRDS_A_REGION_BYTES), t->bytes);
	check_eq(u32_of(row, XRDS_A_REGION_FLAGS), XRDS_REGION_FLAG_WRITE);
	check(u32_of(row, XRDS_A_REGION_PAGES) >= t->bytes / PAGE_BYTES);
	t->bytes = 0;
}

static void regions(void)
{
	struct target t;
	struct nl nl;
	size_t bytes;

	target_open(&t, 3 * PAGE_BYTES, RDS_RDMA_READWRITE);
	bytes = t.bytes;
	check_eq(rows(XRDS_CMD_REGION_GET), 1);
	nl_open(&nl);
	check_eq(dump(&nl, XRDS_CMD_REGION_GET, see_region, &t), 0);
	check_eq(t.bytes, 0);
	t.bytes = bytes;
	target_close(&t);
	check_eq(rows(XRDS_CMD_REGION_GET), 0);
}

struct marks {
	u64 issued;
	u64 completed;
	int nodes;
};

static void see_node(const struct row *row, void *arg)
{
	struct marks *m = arg;

	m->issued = u64_of(row, XRDS_A_NODE_ISSUED);
	m->completed = u64_of(row, XRDS_A_NODE_COMPLETED);
	m->nodes++;
}

static bool all_done(void *arg)
{
	const struct xrds_dest_status *st = arg;
	struct nl nl;
	struct marks m = {};

	nl_open(&nl);
	check_eq(dump(&nl, XRDS_CMD_NODE_GET, see_node, &m), 0);
	close(nl.fd);
	check_eq(m.nodes, 1);
	check(m.issued == st->rdma_issued && m.completed <= m.issued);
	return m.completed == m.issued;
}

static void nodes(void)
{
	char *mem = pages(PAGE_BYTES);
	struct xrds_dest_status st;
	struct target t;
	int fd, i;

	target_open(&t, PAGE_BYTES, RDS_RDMA_READWRITE);
	fd = rds_bound(NULL);
	for (i = 0; i < 5; i++) {
		struct op op = op_write(&t, 0, mem, PAGE_BYTES);

		must(op_send(fd, &t.addr, &op));
	}
	must(dest_status(fd, &t.addr, &st));
	check_eq(st.rdma_issued, 5);
	check(tap_wait(all_done, &st, WAIT_MS));
}

/* ----------------------------------------------------------------- rights */

static void as_nobody(void)
{
	must(setresgid(NOBODY, NOBODY, NOBODY));
	must(setresuid(NOBODY, NOBODY, NOBODY));
}

static void check_own(const struct row *row, void *arg)
{
	check_eq(u32_of(row, XRDS_A_SOCKET_UID), NOBODY);
	++*(int *)arg;
}

static void no_numbers(const struct row *row, void *arg)
{
	check(!row->attrs[XRDS_A_CONN_QPN]);
	check(!row->attrs[XRDS_A_CONN_PEER_QPN]);
	++*(int *)arg;
}

static void users(void)
{
	union addr to = addr_of(tap_host, 6000);
	int fd = rds_bound(NULL), n = 0;
	struct target t;
	struct nl nl;
	pid_t pid;

	target_open(&t, PAGE_BYTES, 0);
	check_ret(rds_send(fd, "x", 1, 0, &to), 1);
	check(rows(XRDS_CMD_SOCKET_GET) >= 2);
	check(rows(XRDS_CMD_DEST_GET) >= 1);

	pid = must(fork());
	if (pid) {
		tap_child_join(pid);
		/* the administrator sees both */
		return;
	}
	as_nobody();
	check_eq(rows(XRDS_CMD_SOCKET_GET), 0);
	check_eq(rows(XRDS_CMD_DEST_GET), 0);
	check_eq(rows(XRDS_CMD_NODE_GET), 0);
	check_eq(rows(XRDS_CMD_REGION_GET), 0);
	check(rows(XRDS_CMD_COUNTER_GET) > 50);
	fd = rds_bound(NULL);
	check_ret(rds_send(fd, "x", 1, 0, &to), 1);
	nl_open(&nl);
	check_eq(dump(&nl, XRDS_CMD_SOCKET_GET, check_own, &n), 0);
	check_eq(n, 1);
	check_eq(rows(XRDS_CMD_DEST_GET), 1);
	n = 0;
	check_eq(dump(&nl, XRDS_CMD_CONN_GET, no_numbers, &n), 0);
	check(n > 0);
	tap_child_exit();
}

static void namespaces(void)
{
	union addr to = addr_of(tap_host, 6000);
	int fd = rds_bound(NULL);
	pid_t pid;

	check_ret(rds_send(fd, "x", 1, 0, &to), 1);
	pid = must(fork());
	if (pid) {
		tap_child_join(pid);
		return;
	}
	tap_new_netns();
	check_eq(rows(XRDS_CMD_SOCKET_GET), 0);
	check_eq(rows(XRDS_CMD_DEST_GET), 0);
	check_eq(rows(XRDS_CMD_CONN_GET), 0);
	rds_bound(NULL);
	check_eq(rows(XRDS_CMD_SOCKET_GET), 1);
	tap_child_exit();
}

/* --------------------------------------------------------------- counters */

struct names {
	const struct counters *all;
	int found;
};

static void check_counter(const struct row *row, void *arg)
{
	const char *name = text_of(row, XRDS_A_COUNTER_NAME);
	struct names *n = arg;

	tap_context("%s", name);
	n->found++;
	check(counters_get(n->all, name) >= 0);
	check(strlen(text_of(row, XRDS_A_COUNTER_HELP)) > 3);
	check(row->attrs[XRDS_A_COUNTER_VALUE]);
	check(!!row->attrs[XRDS_A_COUNTER_LEVEL] ==
	      (!strncmp(name, "obj_", 4) || !strncmp(name, "used_", 5)));
	tap_context("%s", "");
}

static void counters(void)
{
	struct counters all = counters_read();
	struct names n = { .all = &all };
	struct nl nl;

	nl_open_part(&nl, PART_SMALL);
	check_eq(dump(&nl, XRDS_CMD_COUNTER_GET, check_counter, &n), 0);
	check_eq(n.found, all.nr);
	check(nl.parts > 1);
	counters_free(&all);
}

/* ------------------------------------------------------------------- news */

/* The next news; its command, or 0 at the deadline */
static int next_news(struct nl *nl, struct row *row, int ms)
{
	const struct nlmsghdr *h = (void *)buffer;

	if (!(poll_one(nl->fd, POLLIN, ms) & POLLIN))
		return 0;
	must(recv(nl->fd, buffer, nl->part, 0));
	check_eq(h->nlmsg_type, nl->family);
	row_parse(row, h);
	return ((struct genlmsghdr *)NLMSG_DATA(h))->cmd;
}

static void news(void)
{
	union addr self;
	int fd = rds_bound(&self);
	struct row row;
	long long end;
	struct nl nl;
	int cmd;

	nl_open(&nl);
	must(setsockopt(nl.fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &nl.group,
			sizeof(nl.group)));
	/* each connection ends so long after it was made */
	knob("net/xrds/loop/bounce_ms", 200);
	check_ret(rds_send(fd, "x", 1, 0, &self), 1);
	check_eq(next_news(&nl, &row, tap_ms(WAIT_MS)), XRDS_CMD_CONN_UP_NTF);
	check_eq(u32_of(&row, XRDS_A_CONN_STATE), XRDS_CONN_STATE_UP);
	check(!row.attrs[XRDS_A_CONN_REASON]);

	end = tap_now_ms() + tap_ms(WAIT_MS);
	do {
		rds_send(fd, "x", 1, MSG_DONTWAIT, &self);
		cmd = next_news(&nl, &row, 50);
	} while (cmd != XRDS_CMD_CONN_DOWN_NTF && tap_now_ms() < end);
	check_eq(cmd, XRDS_CMD_CONN_DOWN_NTF);
	check_eq(u32_of(&row, XRDS_A_CONN_REASON), XRDS_DOWN_REASON_LOST);
	check(u32_of(&row, XRDS_A_CONN_ERROR) > 0);
}

/* ----------------------------------------------------------------- errors */

static void errors(void)
{
	struct nl nl;
	int n = 0;

	nl_open(&nl);
	/* there are dumps only, and no more than the specification has */
	check_eq(dump(&nl, 200, count_row, &n), -EOPNOTSUPP);
	must(request(&nl, nl.family, NLM_F_ACK, XRDS_CMD_SOCKET_GET, NULL));
	check(part_read(&nl, count_row, &n) == -EOPNOTSUPP);
	check_eq(dump(&nl, XRDS_CMD_CONN_UP_NTF, count_row, &n), -EOPNOTSUPP);
	/* and no attributes */
	must(request(&nl, nl.family, NLM_F_DUMP, XRDS_CMD_SOCKET_GET, "x"));
	check(part_read(&nl, count_row, &n) < 0);
	check_eq(n, 0);
}

/* ------------------------------------------------------------------ verbs */

/* A request with one attribute, or none; the kernel's answer */
static int verb(struct nl *nl, int cmd, int attr, const void *value, size_t len)
{
	struct {
		struct nlmsghdr h;
		struct genlmsghdr g;
		struct nlattr a;
		char value[32];
	} m = {
		.h = { .nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN,
		       .nlmsg_type = nl->family,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.g = { .cmd = cmd, .version = 1 },
		.a = { .nla_type = attr, .nla_len = NLA_HDRLEN + len },
	};
	const struct nlmsghdr *h = (void *)buffer;

	if (attr) {
		memcpy(m.value, value, len);
		m.h.nlmsg_len += NLA_ALIGN(m.a.nla_len);
	}
	must(send(nl->fd, &m, m.h.nlmsg_len, 0));
	must(recv(nl->fd, buffer, nl->part, 0));
	check_eq(h->nlmsg_type, NLMSG_ERROR);
	return ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
}

static int reset(struct nl *nl, int attr, const void *value, size_t len)
{
	return verb(nl, XRDS_CMD_CONN_RESET, attr, value, len);
}

static bool resets_are(void *want)
{
	return counter_now("conn_reset") == *(long long *)want;
}

static void check_resets(long long want)
{
	if (!tap_wait(resets_are, &want, WAIT_MS))
		check_eq(counter_now("conn_reset"), want);
}

static void send_self(int fd)
{
	union addr self = rds_self(fd);
	char byte = 0;

	must(rds_send(fd, &byte, 1, 0, &self));
	must(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL));
	must_wait(rds_all_acked, &fd, WAIT_MS);
}

/* It was reset 4 times, and 5 bytes were sent to the sender itself; *@arg
 * attempts had been made in the namespace before.
 */
static void check_past(const struct row *row, void *arg)
{
	check_eq(u32_of(row, XRDS_A_CONN_ATTEMPTS) + *(long long *)arg,
		 counter_now("conn_dial"));
	check_eq(u32_of(row, XRDS_A_CONN_LOST), 4);
	check_eq(u32_of(row, XRDS_A_CONN_REASON), XRDS_DOWN_REASON_LOST);
	check_eq(u32_of(row, XRDS_A_CONN_ERROR), ECONNABORTED);
	check(row->attrs[XRDS_A_CONN_FAILED_MS]);
	check(u64_of(row, XRDS_A_CONN_FAILED_MS) < WAIT_MS);
	/* messages behind the last failure needed an attempt */
	check(row->attrs[XRDS_A_CONN_ATTEMPT_MS]);
	check(u64_of(row, XRDS_A_CONN_ATTEMPT_MS) <=
	      u64_of(row, XRDS_A_CONN_FAILED_MS));
	check_eq(u64_of(row, XRDS_A_CONN_TX_BYTES), 5);
	check_eq(u64_of(row, XRDS_A_CONN_RX_BYTES), 5);
	check_eq(u32_of(row, XRDS_A_CONN_QUEUED_MSGS), 0);
}

static void resets(void)
{
	struct in6_addr self = {
		.s6_addr = { [10] = 0xff, 0xff, 127, 0, 0, 1 },
	};
	struct in6_addr other = {
		.s6_addr = { [10] = 0xff, 0xff, 127, 0, 0, 9 },
	};
	int fd = rds_bound_to("127.0.0.1", 0, NULL);
	long long dials = counter_now("conn_dial");
	u8 tos = 0, wrong = 7;
	struct nl nl;
	pid_t pid;

	nl_open(&nl);
	/* all of none */
	check_eq(reset(&nl, 0, NULL, 0), 0);
	send_self(fd);
	check_eq(reset(&nl, XRDS_A_CONN_FADDR, &other, sizeof(other)), -ENOENT);
	check_eq(reset(&nl, XRDS_A_CONN_TOS, &wrong, 1), -ENOENT);
	check(reset(&nl, XRDS_A_CONN_FADDR, &other, 4) < 0);
	check_resets(0);
	check_eq(reset(&nl, XRDS_A_CONN_FADDR, &self, sizeof(self)), 0);
	check_resets(1);
	send_self(fd);
	check_eq(reset(&nl, XRDS_A_CONN_LADDR, &self, sizeof(self)), 0);
	check_resets(2);
	send_self(fd);
	check_eq(reset(&nl, XRDS_A_CONN_TOS, &tos, 1), 0);
	check_resets(3);
	send_self(fd);
	check_eq(reset(&nl, 0, NULL, 0), 0);
	check_resets(4);
	send_self(fd);
	check_eq(rows(XRDS_CMD_CONN_GET), 1);
	check_eq(dump(&nl, XRDS_CMD_CONN_GET, check_past, &dials), 0);

	pid = must(fork());
	if (!pid) {
		as_nobody();
		nl_open(&nl);
		check_eq(reset(&nl, 0, NULL, 0), -EPERM);
		tap_child_exit();
	}
	tap_child_join(pid);
	check_resets(4);
	close(fd);
}

/* A connection over loopback is not counted. */
static void check_status(const struct row *row, void *arg)
{
	check_eq(!!row->attrs[XRDS_A_STATUS_DRAINED], *(bool *)arg);
	check(row->attrs[XRDS_A_STATUS_CONNS]);
	check_eq(u32_of(row, XRDS_A_STATUS_CONNS), 0);
}

static void status_is(struct nl *nl, bool drained)
{
	check_eq(dump(nl, XRDS_CMD_STATUS_GET, check_status, &drained), 0);
	check_eq(rows(XRDS_CMD_STATUS_GET), 1);
}

static void drain_refused(void)
{
	struct nl nl;
	pid_t pid = must(fork());

	if (!pid) {
		as_nobody();
		nl_open(&nl);
		check_eq(verb(&nl, XRDS_CMD_DRAIN, 0, NULL, 0), -EPERM);
		check_eq(verb(&nl, XRDS_CMD_UNDRAIN, 0, NULL, 0), -EPERM);
		tap_child_exit();
	}
	tap_child_join(pid);
}

/* One namespace is drained; the next check is that ours is not. */
static void drain_other(void)
{
	struct nl nl;
	pid_t pid = must(fork());

	if (!pid) {
		must(unshare(CLONE_NEWNET));
		nl_open(&nl);
		check_eq(verb(&nl, XRDS_CMD_DRAIN, 0, NULL, 0), 0);
		status_is(&nl, true);
		tap_child_exit();
	}
	tap_child_join(pid);
}

static void drain(void)
{
	int fd = rds_bound_to("127.0.0.1", 0, NULL);
	struct nl nl;

	nl_open(&nl);
	drain_refused();
	drain_other();
	status_is(&nl, false);
	check_eq(verb(&nl, XRDS_CMD_DRAIN, 0, NULL, 0), 0);
	check_eq(verb(&nl, XRDS_CMD_DRAIN, 0, NULL, 0), 0);
	drain_refused();
	status_is(&nl, true);
	send_self(fd);
	check_eq(verb(&nl, XRDS_CMD_UNDRAIN, 0, NULL, 0), 0);
	status_is(&nl, false);
	check_eq(verb(&nl, XRDS_CMD_UNDRAIN, 0, NULL, 0), 0);
	send_self(fd);
	close(fd);
}

static void check_feature(const struct row *row, void *arg)
{
	check(*text_of(row, XRDS_A_FEATURE_NAME));
	check(*text_of(row, XRDS_A_FEATURE_HELP));
	check(u32_of(row, XRDS_A_FEATURE_REVISION) >= 1);
	if (!strcmp(text_of(row, XRDS_A_FEATURE_NAME), "drain"))
		++*(int *)arg;
}

static void features(void)
{
	struct nl nl;
	int n = 0;

	nl_open(&nl);
	check_eq(dump(&nl, XRDS_CMD_FEATURE_GET, check_feature, &n), 0);
	check_eq(n, 1);
}

static const struct tap_case cases[] = {
	{ "resets", "connections are reset by address, by an administrator",
	  resets, 0, 0 },
	{ "drain", "a namespace is drained by an administrator; loopback goes on",
	  drain, 0, 0 },
	{ "features", "each feature has a name, a revision and a meaning",
	  features, 0, 0 },
	{ "complete", "a dump has each socket that stays, once, while others come and go",
	  complete, 0, 60 },
	{ "many", "2,000 sockets, in parts of any size", many, 0, 60 },
	{ "socket_fields", "the fields of a socket in a dump", socket_fields,
	  TAP_EACH_FAMILY, 0 },
	{ "destinations", "each destination and its queued messages",
	  destinations, 0, 0 },
	{ "dest_flags", "its flags are those of XRDS_DEST_STATUS", dest_flags,
	  0, 0 },
	{ "resized", "a table that grows in the midst of it", resized, 0, 0 },
	{ "abandoned", "a dump that is given up leaves nothing", abandoned, 0, 0 },
	{ "regions", "memory regions, as long as they are there", regions, 0, 0 },
	{ "nodes", "identifiers and marks, as XRDS_DEST_STATUS has them", nodes, 0, 0 },
	{ "users", "users see their own objects, and no numbers of queue pairs",
	  users, 0, 0 },
	{ "namespaces", "a namespace sees its own objects only", namespaces, 0,
	  0 },
	{ "counters", "each counter, by its name, with its meaning", counters,
	  0, 0 },
	{ "news", "a connection comes up and goes down, and why", news, 0, 0 },
	{ "errors", "requests for unknown objects are refused", errors, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
