// SPDX-License-Identifier: GPL-2.0-only
/*
 * The messages in the queues of the namespace. The kernel has them as rows of
 * RDS6_INFO_*_MESSAGES, for getsockopt(); here they get the form of a row of
 * netlink, so that they are printed like all others.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/rds.h>

#include "hint.h"
#include "info.h"

#ifndef AF_RDS
#define AF_RDS 21
#endif

enum { ROW_BYTES = 512 };

/* The dump of each enum message_queue */
static const int dumps[] = {
	[QUEUE_SEND]	  = RDS6_INFO_SEND_MESSAGES,
	[QUEUE_IN_FLIGHT] = RDS6_INFO_RETRANS_MESSAGES,
	[QUEUE_RECEIVE]	  = RDS6_INFO_RECV_MESSAGES,
};

/* The rows of each, until they are shown */
static struct {
	struct rds6_info_message *rows;
	size_t nr;
} queues[NR_QUEUES];

static void __attribute__((noreturn)) die(const char *why, const char *hint)
{
	fprintf(stderr, "xrds-info: messages: %s%s\n", why, hint);
	exit(EXIT_ERROR);
}

/* All rows of a dump; the queues may grow between two calls. */
static struct rds6_info_message *read_rows(int fd, int dump, size_t *nr)
{
	struct rds6_info_message *rows = NULL;
	socklen_t len = 0;
	int ret;

	for (;;) {
		ret = getsockopt(fd, SOL_RDS, dump, rows, &len);
		if (ret >= 0)
			break;
		if (errno != ENOSPC)
			die(strerror(errno), "");
		len += len / 4;
		rows = realloc(rows, len);
		if (!rows)
			die("no memory", "");
	}
	if (len && ret != sizeof(*rows))
		die("the kernel has another format", "");
	*nr = len / sizeof(*rows);
	return rows;
}

static void show(uint32_t queue, const struct rds6_info_message *m, row_fn fn,
		 void *arg)
{
	char buffer[ROW_BYTES] __attribute__((aligned(MNL_ALIGNTO)));
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	const struct nlattr *attr;
	struct row row = {};

	mnl_attr_put_u32(nlh, MESSAGE_QUEUE, queue);
	mnl_attr_put(nlh, MESSAGE_LADDR, sizeof(m->laddr), &m->laddr);
	mnl_attr_put_u16(nlh, MESSAGE_LPORT, ntohs(m->lport));
	mnl_attr_put(nlh, MESSAGE_FADDR, sizeof(m->faddr), &m->faddr);
	mnl_attr_put_u16(nlh, MESSAGE_FPORT, ntohs(m->fport));
	mnl_attr_put_u32(nlh, MESSAGE_BYTES, m->len);
	mnl_attr_put_u64(nlh, MESSAGE_SEQ, m->seq);
	mnl_attr_put_u8(nlh, MESSAGE_TOS, m->tos);
	mnl_attr_for_each(attr, nlh, 0)
		row.attrs[mnl_attr_get_type(attr)] = attr;
	fn(&row, arg);
}

void messages_read(void)
{
	int fd = socket(AF_RDS, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int error = errno, i;

	if (fd < 0)
		die(strerror(error), hint_socket(error));
	for (i = 0; i < NR_QUEUES; i++)
		queues[i].rows = read_rows(fd, dumps[i], &queues[i].nr);
	close(fd);
}

void messages_rows(row_fn fn, void *arg)
{
	uint32_t queue;
	size_t i;

	for (queue = 0; queue < NR_QUEUES; queue++) {
		for (i = 0; i < queues[queue].nr; i++)
			show(queue, &queues[queue].rows[i], fn, arg);
		free(queues[queue].rows);
	}
}
