// SPDX-License-Identifier: GPL-2.0-only
/*
 * The netlink socket, by libmnl.
 *
 * A dump that the kernel marks as interrupted is repeated a few times. After
 * that it is shown as it is, because a busy node may interrupt each dump. So
 * rows are kept until all dumps are complete, and only then shown: an error
 * leaves no output that breaks off.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/genetlink.h>

#include "dump.h"
#include "hint.h"
#include "info.h"

enum {
	TRIES		= 4,
	BUFFER_BYTES	= 64 << 10,
};

static struct mnl_socket *sock;
static int family, group;
static char buffer[BUFFER_BYTES];

/* Messages of the last dump of each kind, one after the other */
static struct kept {
	char *data;
	size_t len;
	size_t room;
} dumps[XRDS_CMD_MAX + 1];

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "xrds-info: %s: %s\n", what, strerror(errno));
	exit(EXIT_ERROR);
}

static void *begin(int type, int flags, int cmd, int version)
{
	static unsigned int seq;
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	struct genlmsghdr *genl;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nlh->nlmsg_seq = ++seq;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = version;
	return nlh;
}

/* ----------------------------------------------------------------- family */

static int take_group(const struct nlattr *attr)
{
	const struct nlattr *pos;
	const char *name = "";
	int id = 0;

	mnl_attr_for_each_nested(pos, attr) {
		if (mnl_attr_get_type(pos) == CTRL_ATTR_MCAST_GRP_NAME)
			name = mnl_attr_get_str(pos);
		if (mnl_attr_get_type(pos) == CTRL_ATTR_MCAST_GRP_ID)
			id = mnl_attr_get_u32(pos);
	}
	return strcmp(name, XRDS_MCGRP_CONN) ? 0 : id;
}

static int take_family(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *attr, *pos;

	(void)arg;
	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID)
			family = mnl_attr_get_u16(attr);
		if (mnl_attr_get_type(attr) != CTRL_ATTR_MCAST_GROUPS)
			continue;
		mnl_attr_for_each_nested(pos, attr)
			if (take_group(pos))
				group = take_group(pos);
	}
	return MNL_CB_OK;
}

/* Reads to the end of the answer. @interrupted: the dump must be repeated. */
static int receive(unsigned int seq, mnl_cb_t fn, void *arg, bool *interrupted)
{
	int ret;

	do {
		ret = mnl_socket_recvfrom(sock, buffer, sizeof(buffer));
		if (ret <= 0)
			return -1;
		*interrupted |= dump_unmark(buffer, ret);
		errno = dump_error(buffer, ret);
		if (errno)
			return -1;
		ret = mnl_cb_run(buffer, ret, seq,
				 mnl_socket_get_portid(sock), fn, arg);
	} while (ret > 0);
	return ret;
}

static void die_not_loaded(void)
{
	fprintf(stderr, "xrds-info: %s\n", hint_no_family());
	exit(EXIT_ERROR);
}

/* Opens a socket and asks for the family, which is 0 without XRDS. */
static void find_family(void)
{
	bool interrupted = false;
	struct nlmsghdr *nlh;

	family = 0;
	sock = mnl_socket_open(NETLINK_GENERIC);
	if (!sock || mnl_socket_bind(sock, 0, MNL_SOCKET_AUTOPID) < 0)
		die("netlink");
	nlh = begin(GENL_ID_CTRL, NLM_F_ACK, CTRL_CMD_GETFAMILY, 1);
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, XRDS_FAMILY_NAME);
	if (mnl_socket_sendto(sock, nlh, nlh->nlmsg_len) < 0)
		die("netlink");
	if (receive(nlh->nlmsg_seq, take_family, NULL, &interrupted) < 0 &&
	    errno != ENOENT)
		die("netlink");
}

void nl_open(void)
{
	/* that of another namespace */
	if (sock)
		mnl_socket_close(sock);
	find_family();
	if (!family)
		die_not_loaded();
}

/* ------------------------------------------------------------------- rows */

static void parse(const struct nlmsghdr *nlh, struct row *row)
{
	const struct nlattr *attr;

	memset(row, 0, sizeof(*row));
	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) < ATTRS_MAX)
			row->attrs[mnl_attr_get_type(attr)] = attr;
}

static int keep(const struct nlmsghdr *nlh, void *arg)
{
	size_t len = MNL_ALIGN(nlh->nlmsg_len);
	struct kept *kept = arg;

	if (kept->len + len > kept->room) {
		kept->room = 2 * (kept->len + len);
		kept->data = realloc(kept->data, kept->room);
		if (!kept->data)
			die("memory");
	}
	memcpy(kept->data + kept->len, nlh, nlh->nlmsg_len);
	kept->len += len;
	return MNL_CB_OK;
}

static bool dump(int cmd)
{
	struct nlmsghdr *nlh = begin(family, NLM_F_DUMP, cmd,
				     XRDS_FAMILY_VERSION);
	bool interrupted = false;

	dumps[cmd].len = 0;
	if (mnl_socket_sendto(sock, nlh, nlh->nlmsg_len) < 0)
		die("netlink");
	if (receive(nlh->nlmsg_seq, keep, &dumps[cmd], &interrupted) < 0) {
		if (errno == ENOENT)
			die_not_loaded();
		die("dump");
	}
	return !interrupted;
}

void nl_read(int cmd)
{
	int tries = TRIES;

	if (cmd == CMD_MESSAGES)
		messages_read();
	else
		while (!dump(cmd) && --tries)
			;
}

void nl_rows(int cmd, row_fn fn, void *arg)
{
	const struct nlmsghdr *nlh;
	struct row row;
	size_t at;

	if (cmd == CMD_MESSAGES) {
		messages_rows(fn, arg);
		return;
	}
	for (at = 0; at < dumps[cmd].len; at += MNL_ALIGN(nlh->nlmsg_len)) {
		nlh = (void *)(dumps[cmd].data + at);
		parse(nlh, &row);
		fn(&row, arg);
	}
}

/* ------------------------------------------------------------------ verbs */

/* @name: an address, IPv4 is mapped; NULL: none */
static void put_addr(struct nlmsghdr *nlh, int attr, const char *name)
{
	struct in6_addr addr = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	if (!name)
		return;
	if (inet_pton(AF_INET, name, &addr.s6_addr[12]) != 1 &&
	    inet_pton(AF_INET6, name, &addr) != 1) {
		fprintf(stderr, "xrds-info: '%s' is not an address\n", name);
		exit(EXIT_ERROR);
	}
	mnl_attr_put(nlh, attr, sizeof(addr), &addr);
}

/* Returns false, and errno, if the kernel refuses it. */
static bool done(struct nlmsghdr *nlh)
{
	unsigned int seq = nlh->nlmsg_seq;
	bool interrupted = false;

	if (mnl_socket_sendto(sock, nlh, nlh->nlmsg_len) < 0)
		die("netlink");
	return receive(seq, NULL, NULL, &interrupted) >= 0;
}

void nl_drain(bool on)
{
	if (!done(begin(family, NLM_F_ACK,
			on ? XRDS_CMD_DRAIN : XRDS_CMD_UNDRAIN,
			XRDS_FAMILY_VERSION)))
		die(on ? "drain" : "undrain");
}

void nl_reset(const char *faddr, const char *laddr)
{
	struct nlmsghdr *nlh = begin(family, NLM_F_ACK, XRDS_CMD_CONN_RESET,
				     XRDS_FAMILY_VERSION);

	put_addr(nlh, XRDS_A_CONN_FADDR, faddr);
	put_addr(nlh, XRDS_A_CONN_LADDR, laddr);
	if (done(nlh))
		return;
	if (errno == ENOENT) {
		fprintf(stderr, "xrds-info: there is no such connection\n");
		exit(EXIT_ERROR);
	}
	die("reset");
}

/* ----------------------------------------------------------------- events */

static void __attribute__((noreturn)) die_unloaded(void)
{
	fprintf(stderr, "xrds-info: XRDS was unloaded\n");
	exit(EXIT_ERROR);
}

/* The end of the family ends the membership of its group without an error, and
 * the group of a module that is loaded again is another one.
 */
static void take_notice(const struct nlmsghdr *nlh)
{
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;

	if (genl->cmd != CTRL_CMD_DELFAMILY)
		return;
	mnl_attr_for_each(attr, nlh, sizeof(*genl))
		if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_NAME &&
		    !strcmp(mnl_attr_get_str(attr), XRDS_FAMILY_NAME))
			die_unloaded();
}

/* The notice may be lost: ask for the family. The answer comes on another
 * socket, because events may come on this one.
 */
static void check_family(void)
{
	struct mnl_socket *listening = sock;
	int before = family;

	find_family();
	mnl_socket_close(sock);
	sock = listening;
	if (family != before)
		die_unloaded();
}

static int take_event(const struct nlmsghdr *nlh, void *arg)
{
	void (*fn)(int cmd, const struct row *row) = *(void **)arg;
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);
	struct row row;

	if (nlh->nlmsg_type == GENL_ID_CTRL)
		take_notice(nlh);
	if (nlh->nlmsg_type != family)
		return MNL_CB_OK;
	switch (genl->cmd) {
	case XRDS_CMD_CONN_UP_NTF:
	case XRDS_CMD_CONN_DOWN_NTF:
	case XRDS_CMD_PEER_NTF:
		parse(nlh, &row);
		fn(genl->cmd, &row);
	}
	/* a newer kernel may tell of other things */
	return MNL_CB_OK;
}

static void join(int id)
{
	if (mnl_socket_setsockopt(sock, NETLINK_ADD_MEMBERSHIP, &id,
				  sizeof(id)) < 0)
		die("events");
}

static bool readable(void)
{
	struct pollfd pfd = { mnl_socket_get_fd(sock), POLLIN, 0 };

	return poll(&pfd, 1, 0) > 0;
}

void nl_listen(void (*fn)(int cmd, const struct row *row))
{
	void *arg = (void *)fn;
	bool lost = false;
	int ret;

	/* the group "notify" of the controller has the number of its family */
	join(GENL_ID_CTRL);
	join(group);
	/* it may have been unloaded before that */
	check_family();
	/* a script that starts us in the background waits for this */
	fprintf(stderr, "xrds-info: listening\n");
	for (;;) {
		/* a socket that overflowed takes nothing until it is empty */
		if (lost && !readable()) {
			lost = false;
			check_family();
		}
		ret = mnl_socket_recvfrom(sock, buffer, sizeof(buffer));
		if (ret < 0 && errno == ENOBUFS) {
			fprintf(stderr, "xrds-info: events were lost\n");
			lost = true;
			continue;
		}
		if (ret < 0 && errno == EINTR)
			continue;
		if (ret < 0)
			die("events");
		mnl_cb_run(buffer, ret, 0, 0, take_event, &arg);
	}
}
