// SPDX-License-Identifier: GPL-2.0-only
/*
 * The canonical XRDS program: one socket, one poll(), everything in one wait.
 *
 *   poll-loop LOCAL PORT                      offers memory, until told "done"
 *   poll-loop LOCAL PORT REMOTE PORT [COUNT]  writes COUNT blocks into it
 *
 * Built with -Iinclude/uapi.
 *
 * Three things can hold the loop up, and poll() returns for each of them:
 *
 *   no message yet    POLLIN      recvmsg() has a message or a notice
 *   no send space     POLLOUT     sendmsg() said EAGAIN or ENOBUFS before
 *   no free buffer    POLLRDBAND  the barrier was reached: buffers are back
 *
 * Each RDMA write is told its identifier. A buffer may be used again when the
 * high-water mark has reached the identifier, whatever became of the op. The
 * barrier asks to be woken for that, and is armed only before going to sleep.
 * poll() may return early: nothing here believes it without trying.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/xrds.h>

#define NR_BLOCKS	16
#define BLOCK_BYTES	65536
#define RETRY_MS	1000

static int fd;
static char memory[NR_BLOCKS][BLOCK_BYTES];	/* offered, or written from */
static struct sockaddr_storage peer;
static socklen_t peer_len;
static __u64 mine;		/* key of our memory */
static __u64 cookie;		/* key of the peer's; 0: not known yet */
static __u64 issued, completed;	/* identifiers: given out, passed by the mark */
static __u64 count;		/* blocks to write */
static int peer_done;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static socklen_t parse(const char *host, const char *port,
		       struct sockaddr_storage *ss)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *ai;

	if (getaddrinfo(host, port, &hints, &ai)) {
		fprintf(stderr, "%s %s: not an address\n", host, port);
		exit(2);
	}
	memcpy(ss, ai->ai_addr, ai->ai_addrlen);
	return ai->ai_addrlen;
}

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

/* A message with up to two control messages; 0: no space, try again later. */
static int send_one(const char *text, int type, const void *data, size_t len,
		    const __u64 *id)
{
	char control[256] __attribute__((aligned(8))) = { 0 };
	struct iovec iov = { (void *)text, strlen(text) };
	struct msghdr m = { &peer, peer_len, &iov, 1, control, 0, 0 };
	__u64 where = (uintptr_t)id;

	if (type)
		put(&m, type, data, len);
	if (id)
		put(&m, XRDS_CMSG_RDMA_ID, &where, sizeof(where));
	if (sendmsg(fd, &m, MSG_DONTWAIT) >= 0)
		return 1;
	if (errno != EAGAIN && errno != ENOBUFS)
		die("sendmsg");
	return 0;
}

static int send_block(void)
{
	unsigned int nr = issued % NR_BLOCKS;
	struct rds_iovec vec = { (uintptr_t)memory[nr], BLOCK_BYTES };
	struct rds_rdma_args args = {
		.cookie = cookie,
		.remote_vec = { (__u64)nr * BLOCK_BYTES, BLOCK_BYTES },
		.local_vec_addr = (uintptr_t)&vec,
		.nr_local = 1,
		.flags = RDS_RDMA_READWRITE | RDS_RDMA_SILENT,
	};

	memset(memory[nr], issued, BLOCK_BYTES);
	return send_one("", RDS_CMSG_RDMA_ARGS, &args, sizeof(args), &issued);
}

static void control(const struct cmsghdr *c)
{
	struct xrds_barrier_event event;
	struct rds_rdma_notify notify;

	if (c->cmsg_level != SOL_RDS)
		return;
	if (c->cmsg_type == XRDS_CMSG_BARRIER) {
		memcpy(&event, CMSG_DATA(c), sizeof(event));
		completed = event.completed;
	} else if (c->cmsg_type == RDS_CMSG_RDMA_DEST) {
		memcpy(&cookie, CMSG_DATA(c), sizeof(cookie));
	} else if (c->cmsg_type == RDS_CMSG_RDMA_STATUS) {
		/* RDS_RECVERR: only ops that failed */
		memcpy(&notify, CMSG_DATA(c), sizeof(notify));
		fprintf(stderr, "a write failed: %d\n", notify.status);
		exit(1);
	}
}

/* Read one message or the notices there are; 0: nothing left. */
static int receive(void)
{
	char text[16], space[1024] __attribute__((aligned(8)));
	struct sockaddr_storage from;
	struct iovec iov = { text, sizeof(text) };
	struct msghdr m = { &from, sizeof(from), &iov, 1, space,
			    sizeof(space), 0 };
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);
	struct cmsghdr *c;

	if (n < 0 && errno != EAGAIN)
		die("recvmsg");
	if (n < 0)
		return 0;
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		control(c);
	if (n == 5 && !memcmp(text, "hello", 5)) {
		/* whoever asks is the peer; it asks again if we have no space */
		memcpy(&peer, &from, m.msg_namelen);
		peer_len = m.msg_namelen;
		send_one("memory", RDS_CMSG_RDMA_DEST, &mine, sizeof(mine), NULL);
	}
	if (n == 4 && !memcmp(text, "done", 4))
		peer_done = 1;
	return 1;
}

/* Nothing can be done but wait: for a half of the buffers, or for the last. */
static void arm(void)
{
	struct xrds_barrier b = { .flags = XRDS_BARRIER_NONBLOCK };

	memcpy(&b.dest, &peer, sizeof(peer));
	b.rdma_id = completed + (issued - completed + 1) / 2;
	if (ioctl(fd, SIOCXRDSBARRIER, &b) && errno != EAGAIN)
		die("barrier");
	completed = b.completed;
}

static void loop(void)
{
	struct pollfd pfd = { .fd = fd };
	int waits_for_cookie, full;
	__u64 before;

	while (!peer_done) {
		full = 0;
		waits_for_cookie = count && !cookie;
		if (waits_for_cookie)
			full = !send_one("hello", 0, NULL, 0, NULL);
		while (cookie && issued < count &&
		       issued - completed < NR_BLOCKS && !full)
			full = !send_block();
		if (count && completed == count) {
			if (send_one("done", 0, NULL, 0, NULL))
				return;
			full = 1;
		}
		before = completed;
		if (issued > completed)
			arm();
		if (completed != before)
			continue;	/* buffers came back meanwhile */
		pfd.events = POLLIN | POLLRDBAND | (full ? POLLOUT : 0);
		if (poll(&pfd, 1, waits_for_cookie ? RETRY_MS : -1) < 0)
			die("poll");
		while (receive())
			;
	}
}

int main(int argc, char **argv)
{
	struct rds_get_mr_args args = {
		.vec = { (uintptr_t)memory, sizeof(memory) },
		.cookie_addr = (uintptr_t)&mine,
		.flags = RDS_RDMA_READWRITE,
	};
	struct sockaddr_storage local;
	socklen_t len;
	int on = 1;

	if (argc != 3 && argc != 5 && argc != 6) {
		fprintf(stderr, "usage: %s LOCAL PORT [REMOTE PORT [COUNT]]\n",
			argv[0]);
		return 2;
	}
	len = parse(argv[1], argv[2], &local);
	fd = socket(AF_RDS, SOCK_SEQPACKET, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&local, len) ||
	    setsockopt(fd, SOL_RDS, RDS_RECVERR, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_RDS, RDS_GET_MR, &args, sizeof(args)))
		die("socket");
	if (argc > 3) {
		peer_len = parse(argv[3], argv[4], &peer);
		count = argc > 5 ? strtoull(argv[5], NULL, 0) : 1000;
	}
	loop();
	if (count)
		printf("wrote %llu blocks, all buffers are back\n", completed);
	else
		printf("the peer is done, block 0 begins with %d\n",
		       memory[0][0]);
	return 0;
}
