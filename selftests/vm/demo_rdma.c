// SPDX-License-Identifier: GPL-2.0-only
/*
 * The part of "make demo" that shows RDMA: one node offers memory, the other
 * writes to it and reads from it, with one poll() for all that it waits for.
 *
 * The poll loop is that of Documentation/examples/poll-loop.c.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <linux/xrds.h>

#include "demo.h"

enum {
	NR_BLOCKS	= 16,
	BLOCK_BYTES	= 65536,
	ROUNDS		= 4,		/* how often each block is written */
	OPS		= ROUNDS * NR_BLOCKS,
};

static struct {
	int fd;
	struct sockaddr_storage peer;
	socklen_t peer_len;
	uint64_t cookie;		/* 0: has not come yet */
	uint64_t issued, completed;	/* identifiers: given out, the mark */
	uint64_t failed;		/* ops, as far as notices have come */
	unsigned int wakeups;
	char verdict[16];		/* of the other node */
} d;

static uint8_t memory[NR_BLOCKS][BLOCK_BYTES];

/* ------------------------------------------------------------------ blocks */

static void fill(uint8_t *block, uint64_t id)
{
	for (size_t i = 0; i < BLOCK_BYTES; i++)
		block[i] = id * 167 + i + (i >> 8);
}

static bool filled(const uint8_t *block, uint64_t id)
{
	static uint8_t wanted[BLOCK_BYTES];

	fill(wanted, id);
	return !memcmp(block, wanted, BLOCK_BYTES);
}

/* Each block has the content that the last round has written. */
static bool all_filled(void)
{
	for (int i = 0; i < NR_BLOCKS; i++) {
		if (!filled(memory[i], OPS - NR_BLOCKS + 1 + i))
			return false;
	}
	return true;
}

/* ----------------------------------------------------------------- sockets */

static void put(struct msghdr *m, int type, const void *data, size_t len)
{
	struct cmsghdr *c = (void *)((char *)m->msg_control +
				     m->msg_controllen);

	c->cmsg_level = SOL_RDS;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	m->msg_controllen += CMSG_SPACE(len);
}

/* With up to two control messages; false: no space now. */
static bool try_send(const char *text, int type, const void *data, size_t len,
		     const uint64_t *id)
{
	char control[256] __attribute__((aligned(8))) = {};
	struct iovec iov = { (void *)text, strlen(text) };
	struct msghdr m = { &d.peer, d.peer_len, &iov, 1, control, 0, 0 };
	uint64_t where = (uintptr_t)id;

	if (type)
		put(&m, type, data, len);
	if (id)
		put(&m, XRDS_CMSG_RDMA_ID, &where, sizeof(where));
	if (sendmsg(d.fd, &m, MSG_DONTWAIT) >= 0)
		return true;
	if (errno != EAGAIN && errno != ENOBUFS)
		err(1, "sendmsg");
	return false;
}

static bool issue(bool write)
{
	uint64_t id = d.issued + 1, given = 0;
	unsigned int nr = (id - 1) % NR_BLOCKS;
	struct rds_iovec vec = { (uintptr_t)memory[nr], BLOCK_BYTES };
	struct rds_rdma_args args = {
		.cookie = d.cookie,
		.remote_vec = { (uint64_t)nr * BLOCK_BYTES, BLOCK_BYTES },
		.local_vec_addr = (uintptr_t)&vec,
		.nr_local = 1,
		.flags = RDS_RDMA_SILENT | (write ? RDS_RDMA_READWRITE : 0),
	};

	if (write)
		fill(memory[nr], id);
	if (!try_send("", RDS_CMSG_RDMA_ARGS, &args, sizeof(args), &given))
		return false;
	if (given != id)
		errx(1, "identifier %llu instead of %llu",
		     (unsigned long long)given, (unsigned long long)id);
	d.issued = id;
	return true;
}

static void control(const struct cmsghdr *c)
{
	struct xrds_barrier_event event;

	if (c->cmsg_level != SOL_RDS)
		return;
	if (c->cmsg_type == XRDS_CMSG_BARRIER) {
		memcpy(&event, CMSG_DATA(c), sizeof(event));
		d.completed = event.completed;
	} else if (c->cmsg_type == RDS_CMSG_RDMA_DEST) {
		memcpy(&d.cookie, CMSG_DATA(c), sizeof(d.cookie));
	} else if (c->cmsg_type == RDS_CMSG_RDMA_STATUS) {
		d.failed++;
	}
}

/* One message, or the notices there are; false: nothing. */
static bool receive(void)
{
	char text[sizeof(d.verdict)] = "", space[1024] __attribute__((aligned(8)));
	struct sockaddr_storage from;
	struct iovec iov = { text, sizeof(text) - 1 };
	struct msghdr m = { &from, sizeof(from), &iov, 1, space,
			    sizeof(space), 0 };
	ssize_t n = recvmsg(d.fd, &m, MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN)
		err(1, "recvmsg");
	if (n < 0)
		return false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		control(c);
	if (n) {
		memcpy(d.verdict, text, sizeof(d.verdict));
		d.peer = from;
		d.peer_len = m.msg_namelen;
	}
	return true;
}

/* Be woken when half of the buffers are back, or the last. */
static void arm(void)
{
	struct xrds_barrier b = { .flags = XRDS_BARRIER_NONBLOCK };

	memcpy(&b.dest, &d.peer, sizeof(d.peer));
	b.rdma_id = d.completed + (d.issued - d.completed + 1) / 2;
	if (ioctl(d.fd, SIOCXRDSBARRIER, &b) && errno != EAGAIN)
		err(1, "barrier");
	d.completed = b.completed;
}

/* The one wait: for messages, send space, and the barrier. */
static void wait_for_all(bool space)
{
	struct pollfd pfd = {
		.fd = d.fd,
		.events = POLLIN | POLLRDBAND | (space ? POLLOUT : 0),
	};
	uint64_t before = d.completed;
	int n;

	if (d.issued > d.completed)
		arm();
	if (d.completed != before)
		return;		/* meanwhile buffers came back */
	n = poll(&pfd, 1, TIMEOUT_S * 1000);
	if (n < 0)
		err(1, "poll");
	if (!n)
		errx(1, "nothing for %d s: id %llu, mark %llu", TIMEOUT_S,
		     (unsigned long long)d.issued,
		     (unsigned long long)d.completed);
	d.wakeups++;
	while (receive())
		;
}

/* ------------------------------------------------------------ the story */

static void ask(const char *question, const char *answer)
{
	bool sent = false;

	d.verdict[0] = 0;
	while (!d.verdict[0]) {
		if (!sent)
			sent = try_send(question, 0, NULL, 0, NULL);
		wait_for_all(!sent);
	}
	if (strcmp(d.verdict, answer))
		errx(1, "\"%s\" is answered by \"%s\"", question, d.verdict);
}

/* Issue ops up to an identifier, and follow the high-water mark. */
static void ops(bool write, uint64_t last)
{
	const char *what = write ? "writes" : "reads";
	uint64_t first = d.issued + 1, shown = d.completed;
	bool full;

	d.wakeups = 0;
	printf("%s of 64 KiB, ids and mark:", what);
	while (d.completed < last) {
		full = false;
		while (d.issued < last && !full &&
		       d.issued - d.completed < NR_BLOCKS)
			full = !issue(write);
		wait_for_all(full);
		if (d.completed > shown) {
			printf(" %llu/%llu", (unsigned long long)d.issued,
			       (unsigned long long)d.completed);
			shown = d.completed;
		}
	}
	printf("\n%llu %s, %u wake-ups, %llu failed\n",
	       (unsigned long long)(last - first + 1), what, d.wakeups,
	       (unsigned long long)d.failed);
	fflush(stdout);
	if (d.failed)
		errx(1, "no op should have failed");
}

/* Write until the other node is no more; then every buffer comes back. */
static void ops_until_death(void)
{
	uint64_t first = d.issued;
	bool told = false, full;

	while (!d.failed) {
		full = false;
		while (!full && d.issued - d.completed < NR_BLOCKS)
			full = !issue(true);
		wait_for_all(full);
		if (!told && d.completed > first) {
			printf("writing\n");
			fflush(stdout);
			told = true;
		}
	}
	while (d.completed < d.issued)
		wait_for_all(false);
	while (receive())
		;
	printf("last id %llu, mark %llu: all buffers are back, %llu writes failed\n",
	       (unsigned long long)d.issued, (unsigned long long)d.completed,
	       (unsigned long long)d.failed);
}

/**
 * use_memory() - write to the memory of another node, and read from it
 * @local: own address
 * @remote: its address
 */
int use_memory(const char *local, const char *remote)
{
	int on = 1;

	d.fd = open_socket(local, 0, TIMEOUT_S);
	d.peer = parse(remote, PORT);
	d.peer_len = length(&d.peer);
	if (setsockopt(d.fd, SOL_RDS, RDS_RECVERR, &on, sizeof(on)))
		err(1, "RDS_RECVERR");
	ask("memory?", "here");
	if (!d.cookie)
		errx(1, "no key came");

	ops(true, OPS);
	ask("as written?", "yes");
	memset(memory, 0, sizeof(memory));
	ops(false, OPS + NR_BLOCKS);
	if (!all_filled())
		errx(1, "the bytes read differ from those written");
	printf("compared\n");
	ops_until_death();
	return 0;
}

/**
 * offer_memory() - let others write to memory and read from it
 * @local: own address
 */
int offer_memory(const char *local)
{
	struct rds_get_mr_args args = {
		.vec = { (uintptr_t)memory, sizeof(memory) },
		.cookie_addr = (uintptr_t)&d.cookie,
		.flags = RDS_RDMA_READWRITE,
	};
	bool asked;

	d.fd = open_socket(local, PORT, TIMEOUT_S);
	if (setsockopt(d.fd, SOL_RDS, RDS_GET_MR, &args, sizeof(args)))
		err(1, "RDS_GET_MR");
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		wait_for_all(false);
		asked = d.verdict[0] == 'm';
		if (asked)
			try_send("here", RDS_CMSG_RDMA_DEST, &d.cookie,
				 sizeof(d.cookie), NULL);
		else if (d.verdict[0])
			try_send(all_filled() ? "yes" : "no", 0, NULL, 0, NULL);
		d.verdict[0] = 0;
	}
}
