// SPDX-License-Identifier: GPL-2.0-only
/*
 * The canonical XRDS program: one socket, one poll(), everything in one wait.
 *
 *   poll-loop LOCAL PORT                 writes blocks to a peer's memory
 *   poll-loop LOCAL PORT REMOTE PORT     offers memory, until "done" arrives
 *
 * Build it with -Iinclude/uapi, or with the installed header. poll() returns
 * when one of these happens:
 *
 *   POLLIN               recvmsg() has a message, or a notice: an op has failed,
 *                        or all that was sent before shutdown() is delivered
 *   POLLIN | POLLRDBAND  the barrier was reached: buffers are free again
 *   POLLOUT              there is space, after sendmsg() failed for lack of it
 *
 * poll() may return early, so the program tries each call and looks at the
 * result. Each write has an identifier. Its buffer may be used again when the
 * high-water mark has reached the identifier, also if the write failed.
 *
 * With io_uring instead of poll(), set XRDS_CONG_EAGAIN: the ring tries each
 * send without waiting, and waits after EAGAIN, but not after ENOBUFS.
 */
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/xrds.h>

enum { NR_BLOCKS = 16, BLOCK_BYTES = 65536, COUNT = 200 };

static int fd;
static char memory[NR_BLOCKS][BLOCK_BYTES];	/* offered, or written from */
static struct sockaddr_storage peer;
static __u64 mine, theirs;	/* keys of the memory offered; 0: none (yet) */
static __u64 issued, completed;	/* last identifier, high-water mark */
static int offered, ended, done;

/* Send a message; 0: no space, try again later. */
static int send_one(const char *text, void *control, size_t len)
{
	struct iovec iov = { (void *)text, strlen(text) };
	struct msghdr m = {
		.msg_name = &peer, .msg_namelen = sizeof(peer),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = len,
	};

	if (sendmsg(fd, &m, MSG_DONTWAIT) >= 0)
		return 1;
	if (errno != EAGAIN && errno != ENOBUFS)
		err(1, "sendmsg");
	return 0;
}

/* Add a control message behind those that use so many bytes. */
static size_t put(char *control, size_t used, int type, const void *data,
		  size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)(control + used);

	c->cmsg_len = CMSG_LEN(len);
	c->cmsg_level = SOL_RDS;
	c->cmsg_type = type;
	memcpy(CMSG_DATA(c), data, len);
	return used + CMSG_SPACE(len);
}

static int send_offer(void)
{
	char control[CMSG_SPACE(sizeof(mine))] __attribute__((aligned(8))) = { 0 };
	size_t used = put(control, 0, RDS_CMSG_RDMA_DEST, &mine, sizeof(mine));

	return send_one("offer", control, used);
}

static int send_block(void)
{
	__u64 nr = issued % NR_BLOCKS, id = 0, id_addr = (uintptr_t)&id;
	struct rds_iovec vec = { (uintptr_t)memory[nr], BLOCK_BYTES };
	struct rds_rdma_args args = {
		theirs, { nr * BLOCK_BYTES, BLOCK_BYTES }, (uintptr_t)&vec, 1,
		RDS_RDMA_READWRITE | RDS_RDMA_SILENT, 0,
	};
	char control[CMSG_SPACE(sizeof(args)) + CMSG_SPACE(sizeof(id_addr))]
		__attribute__((aligned(8))) = { 0 };
	size_t used = put(control, 0, RDS_CMSG_RDMA_ARGS, &args, sizeof(args));

	used = put(control, used, XRDS_CMSG_RDMA_ID, &id_addr, sizeof(id_addr));
	memset(memory[nr], issued + 1, BLOCK_BYTES);
	if (!send_one("", control, used))
		return 0;
	/* after a failed call it has no meaning */
	issued = id;
	return 1;
}

/* Send as much as possible now; 0: no space was left. */
static int send_all(void)
{
	int room = 1;

	if (mine && !offered)
		room = offered = send_offer();
	while (theirs && issued < COUNT && issued - completed < NR_BLOCKS && room)
		room = send_block();
	/* none has failed: the notices were read after the mark */
	if (completed == COUNT && !ended) {
		room = ended = send_one("done", NULL, 0);
		/* poll() tells when the peer has all of it */
		if (ended && shutdown(fd, SHUT_WR))
			err(1, "shutdown");
	}
	return room;
}

/* Read one message, or some notices; 0: nothing left. */
static int receive(void)
{
	char text[16], control[1024] __attribute__((aligned(8)));
	struct sockaddr_storage from = { 0 };
	struct iovec iov = { text, sizeof(text) };
	struct msghdr m = {
		.msg_name = &from, .msg_namelen = sizeof(from),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);
	struct xrds_barrier_event event;
	struct cmsghdr *c;
	__u32 reason;

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < 0)
		err(1, "recvmsg");
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_type == XRDS_CMSG_BARRIER) {
			memcpy(&event, CMSG_DATA(c), sizeof(event));
			completed = event.completed;
		} else if (c->cmsg_type == RDS_CMSG_RDMA_DEST && !theirs) {
			memcpy(&theirs, CMSG_DATA(c), sizeof(theirs));
			peer = from;
		} else if (c->cmsg_type == RDS_CMSG_RDMA_STATUS) {
			errx(1, "a write has failed");
		} else if (c->cmsg_type == XRDS_CMSG_EOS) {
			memcpy(&reason, CMSG_DATA(c), sizeof(reason));
			done |= reason == XRDS_EOS_DELIVERED;
			if (!done && (!ended || reason == XRDS_EOS_UNDELIVERED))
				errx(1, "the peer has gone");
		}
	}
	done |= n == 4 && !memcmp(text, "done", 4);
	return 1;
}

/* Ask to be woken when half of the writes have ended; 1: they have already. */
static int arm(void)
{
	struct xrds_barrier b = { .flags = XRDS_BARRIER_NONBLOCK };
	int ret;

	b.rdma_id = completed + (issued - completed + 1) / 2;
	memcpy(&b.dest, &peer, sizeof(peer));
	ret = ioctl(fd, SIOCXRDSBARRIER, &b);
	if (ret && errno != EAGAIN)
		err(1, "barrier");
	completed = b.completed;
	return !ret;
}

static struct addrinfo *address(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *ai;

	if (getaddrinfo(host, port, &hints, &ai))
		errx(2, "%s %s is not an address", host, port);
	return ai;
}

static void begin(struct addrinfo *local, struct addrinfo *remote)
{
	struct rds_get_mr_args args = {
		{ (uintptr_t)memory, sizeof(memory) }, (uintptr_t)&mine,
		RDS_RDMA_READWRITE,
	};
	int on = 1;

	fd = socket(AF_RDS, SOCK_SEQPACKET, 0);
	if (fd < 0 || bind(fd, local->ai_addr, local->ai_addrlen) ||
	    setsockopt(fd, SOL_RDS, RDS_RECVERR, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_RDS, XRDS_DELIVERED_EVENT, &on, sizeof(on)) ||
	    (remote && setsockopt(fd, SOL_RDS, RDS_GET_MR, &args, sizeof(args))))
		err(1, "socket");
	if (remote)
		memcpy(&peer, remote->ai_addr, remote->ai_addrlen);
}

int main(int argc, char **argv)
{
	struct pollfd pfd = { 0 };

	if (argc != 3 && argc != 5)
		errx(2, "usage: %s LOCAL PORT [REMOTE PORT]", argv[0]);
	begin(address(argv[1], argv[2]),
	      argc == 5 ? address(argv[3], argv[4]) : NULL);
	pfd.fd = fd;
	for (;;) {
		while (receive())
			;
		pfd.events = POLLIN | POLLRDBAND | (send_all() ? 0 : POLLOUT);
		if (done)
			break;
		if (issued > completed && arm())
			continue;
		if (poll(&pfd, 1, -1) < 0 && errno != EINTR)
			err(1, "poll");
	}
	printf("done: block 0 begins with %d\n", memory[0][0]);
	return 0;
}
