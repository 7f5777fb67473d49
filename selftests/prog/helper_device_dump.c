// SPDX-License-Identifier: GPL-2.0-only
/*
 * helper_device_dump COMMAND: asks for a dump of devices, has the shell run the
 * command while the kernel has made no more than the first part, and reads the
 * answer then. Prints the number of rows, and whether the dump is marked as
 * interrupted.
 */
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/xrds_netlink.h>

#include "tap.h"

/* The kernel makes parts of about this size at first. */
enum { PART_BYTES = 4096 };

static char part[PART_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));

static void ask(int fd, int type, int flags, int cmd, const char *name)
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
		.a = { .nla_len = NLA_HDRLEN + strlen(name) + 1,
		       .nla_type = CTRL_ATTR_FAMILY_NAME },
	};

	strcpy(m.name, name);
	if (*name)
		m.h.nlmsg_len += NLA_ALIGN(m.a.nla_len);
	must(send(fd, &m, m.h.nlmsg_len, 0));
}

static int family(int fd)
{
	const struct nlmsghdr *h = (void *)part;
	const struct nlattr *a;
	const char *at, *end;
	u16 id = 0;

	ask(fd, GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY, XRDS_FAMILY_NAME);
	must(recv(fd, part, sizeof(part), 0));
	end = part + h->nlmsg_len;
	for (at = part + NLMSG_HDRLEN + GENL_HDRLEN; at < end;
	     at += NLA_ALIGN(a->nla_len)) {
		a = (const void *)at;
		if (a->nla_type == CTRL_ATTR_FAMILY_ID)
			memcpy(&id, at + NLA_HDRLEN, sizeof(id));
	}
	check(id);
	return id;
}

int main(int argc, char **argv)
{
	bool interrupted = false, done = false;
	const struct nlmsghdr *h;
	int fd, id, len, rows = 0;

	if (argc != 2)
		tap_fail("usage: helper_device_dump COMMAND");
	fd = must(socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC));
	id = family(fd);
	ask(fd, id, NLM_F_DUMP, XRDS_CMD_DEVICE_GET, "");
	check_eq(system(argv[1]), 0);
	while (!done) {
		len = must(recv(fd, part, sizeof(part), 0));
		for (h = (void *)part; NLMSG_OK(h, (unsigned int)len);
		     h = NLMSG_NEXT(h, len)) {
			interrupted |= !!(h->nlmsg_flags & NLM_F_DUMP_INTR);
			if (h->nlmsg_type == id)
				rows++;
			else
				done = true;
		}
	}
	printf("%d rows, %s\n", rows, interrupted ? "interrupted" : "whole");
	tap_child_exit();
}
