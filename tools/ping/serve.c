// SPDX-License-Identifier: GPL-2.0-only
/*
 * Offers memory for RDMA probes. Each client that asks gets memory of its own,
 * until its stream ends. When there are too many clients the oldest one loses
 * its memory.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hint.h"
#include "ping.h"

enum {
	CLIENTS		= 16,		/* at a time */
};

struct client {
	struct sockaddr_storage addr;
	rds_rdma_cookie_t cookie;
	unsigned long turn;		/* when the client came; 0: free */
	size_t bytes;
	void *memory;
};

static int fd;
static struct client clients[CLIENTS];
static unsigned long turns;

static void take_back(struct client *c)
{
	struct rds_free_mr_args args = { .cookie = c->cookie };

	if (c->cookie && setsockopt(fd, SOL_RDS, RDS_FREE_MR, &args,
				    sizeof(args)))
		die("RDS_FREE_MR", errno);
	if (c->memory)
		munmap(c->memory, c->bytes);
	memset(c, 0, sizeof(*c));
}

static struct client *find(const struct sockaddr_storage *peer)
{
	for (int i = 0; i < CLIENTS; i++)
		if (clients[i].turn &&
		    !memcmp(&clients[i].addr, peer, addr_len))
			return &clients[i];
	return NULL;
}

/* Find a place for a client: a free one, or the oldest */
static struct client *place(const struct sockaddr_storage *peer)
{
	struct client *c = find(peer);

	if (!c) {
		c = &clients[0];
		for (int i = 1; i < CLIENTS; i++)
			if (clients[i].turn < c->turn)
				c = &clients[i];
	}
	if (c->turn)
		take_back(c);
	c->turn = ++turns;
	memcpy(&c->addr, peer, sizeof(*peer));
	return c;
}

/* Returns 0 or the errno. */
static int lend(struct client *c, size_t bytes)
{
	struct rds_get_mr_args args = {
		.cookie_addr = (uintptr_t)&c->cookie,
		.flags = RDS_RDMA_READWRITE,
	};
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return errno;
	c->memory = memory;
	c->bytes = bytes;
	args.vec.addr = (uintptr_t)memory;
	args.vec.bytes = bytes;
	return setsockopt(fd, SOL_RDS, RDS_GET_MR, &args, sizeof(args)) ?
	       errno : 0;
}

/* Send the cookie, or the error. If that cannot be sent either, the client gets
 * no answer.
 */
static void answer(struct client *c, const char *text)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(rds_rdma_cookie_t))];
	} control = { 0 };
	struct iovec iov = { (void *)text, strlen(text) };
	struct msghdr m = {
		.msg_name = &c->addr, .msg_namelen = addr_len,
		.msg_iov = &iov, .msg_iovlen = 1,
	};
	struct cmsghdr *cmsg;

	if (c->cookie) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		cmsg = CMSG_FIRSTHDR(&m);
		cmsg->cmsg_level = SOL_RDS;
		cmsg->cmsg_type = RDS_CMSG_RDMA_DEST;
		cmsg->cmsg_len = CMSG_LEN(sizeof(c->cookie));
		memcpy(CMSG_DATA(cmsg), &c->cookie, sizeof(c->cookie));
	}
	if (sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 || !c->cookie)
		take_back(c);
}

static void asked(const struct sockaddr_storage *peer, const char *text)
{
	unsigned long bytes;
	struct client *c;
	char why[160];
	int error = 0;

	if (sscanf(text, "lend %lu", &bytes) != 1 || !bytes ||
	    bytes > MAX_BYTES)
		return;
	/* a client asks again while the answer is under way */
	c = find(peer);
	if (!c || c->bytes != bytes) {
		c = place(peer);
		error = lend(c, bytes);
	}
	snprintf(why, sizeof(why), "%s%s", error ? strerror(error) : "lent",
		 error ? hint_memory(error) : "");
	answer(c, why);
}

static bool is_end(struct msghdr *m)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == SOL_RDS && c->cmsg_type == XRDS_CMSG_EOS)
			return true;
	return false;
}

/* Offer memory until a signal ends the program. */
void serve(void)
{
	union {
		struct cmsghdr align;
		char bytes[512];
	} control;

	fd = open_socket(0);
	printf("offering memory at %s port %u\n", from_text, opt.serve);
	fflush(stdout);
	for (;;) {
		/* it is compared as a whole, so its padding must be 0 */
		struct sockaddr_storage peer = { 0 };
		char text[80];
		struct iovec iov = { text, sizeof(text) - 1 };
		struct msghdr m = {
			.msg_name = &peer, .msg_namelen = sizeof(peer),
			.msg_iov = &iov, .msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control),
		};
		ssize_t n = recvmsg(fd, &m, 0);
		struct client *c;

		if (n < 0)
			die("receive", errno);
		text[n] = 0;
		if (!is_end(&m)) {
			asked(&peer, text);
			continue;
		}
		c = find(&peer);
		if (c)
			take_back(c);
	}
}
