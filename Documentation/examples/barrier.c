// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMA and the barrier, the simple way: every call waits.
 *
 *   barrier LOCAL PORT                 offers its memory to one peer
 *   barrier LOCAL PORT REMOTE PORT     asks for the memory, writes to it, and
 *                                      reads it back
 *
 * xrds(7), xrds-rdma(7) and xrds-barrier(7) explain the calls. The second
 * program writes one buffer to the peer's memory several times. Before it fills
 * the buffer's blocks again, the earlier writes must have ended: it waits for
 * that with the barrier.
 */
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/xrds.h>

enum { NR_BLOCKS = 8, BLOCK_BYTES = 16384, ROUNDS = 10 };

static int fd;
static char buffer[NR_BLOCKS][BLOCK_BYTES];	/* offered, or written from */
static char back[NR_BLOCKS][BLOCK_BYTES];
static struct sockaddr_storage peer;
static socklen_t peer_len;

/* The content of a block after a round */
static int content(int round, int block)
{
	return (round * NR_BLOCKS + block) % 251;
}

static int block_is_right(const char *block, int value)
{
	for (int i = 0; i < BLOCK_BYTES; i++)
		if (block[i] != (char)value)
			return 0;
	return 1;
}

/* Send a text, with one control message or none. */
static void send_text(const char *text, int type, const void *data, size_t len)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct rds_rdma_args))];
	} control = { 0 };
	struct iovec iov = { (void *)text, strlen(text) };
	struct msghdr m = {
		.msg_name = &peer, .msg_namelen = peer_len,
		.msg_iov = &iov, .msg_iovlen = 1,
	};

	if (len) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(len);
		CMSG_FIRSTHDR(&m)->cmsg_level = SOL_RDS;
		CMSG_FIRSTHDR(&m)->cmsg_type = type;
		CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(len);
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), data, len);
	}
	if (sendmsg(fd, &m, 0) < 0)
		err(1, "sendmsg");
}

/*
 * Receive the next text of the peer, and the cookie that comes with it. The
 * sender of a cookie is the peer, else that of the first text. A notice of a failed
 * op ends the program. Returns 0 for a message of another program and, with MSG_DONTWAIT,
 * when there is nothing.
 */
static int receive(char *text, size_t size, rds_rdma_cookie_t *cookie, int flags)
{
	union {
		struct cmsghdr align;
		char bytes[1024];
	} control;
	struct sockaddr_storage from = { 0 };
	struct iovec iov = { text, size - 1 };
	struct msghdr m = {
		.msg_name = &from, .msg_namelen = sizeof(from),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(fd, &m, flags);
	int first = !peer_len, gone = 0;
	struct cmsghdr *c;

	if (n < 0 && errno == EAGAIN && flags)
		return 0;
	if (n < 0)
		err(1, "recvmsg");
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_RDS)
			continue;
		if (c->cmsg_type == RDS_CMSG_RDMA_DEST && cookie) {
			memcpy(cookie, CMSG_DATA(c), sizeof(*cookie));
			first = 1;
		}
		if (c->cmsg_type == RDS_CMSG_RDMA_STATUS)
			errx(1, "an op has failed");
		gone |= c->cmsg_type == XRDS_CMSG_EOS;
	}
	if (first) {
		peer = from;
		peer_len = m.msg_namelen;
	}
	if (memcmp(&from, &peer, sizeof(peer)))
		return 0;
	if (gone)
		errx(1, "the peer has gone");
	text[n] = 0;
	return 1;
}

/* Start a read or write of a block of the memory that @cookie names. */
static void start_op(rds_rdma_cookie_t cookie, int block, void *local, int flags)
{
	struct rds_iovec vec = { (uintptr_t)local, BLOCK_BYTES };
	struct rds_rdma_args args = {
		.cookie = cookie,
		.remote_vec = { block * BLOCK_BYTES, BLOCK_BYTES },
		.local_vec_addr = (uintptr_t)&vec,
		.nr_local = 1,
		.flags = flags | RDS_RDMA_SILENT,
	};

	send_text("", RDS_CMSG_RDMA_ARGS, &args, sizeof(args));
}

static void barrier(struct xrds_barrier *b)
{
	while (ioctl(fd, SIOCXRDSBARRIER, b))
		if (errno != EINTR)
			err(1, "barrier");
}

/* Wait for all ops that were started, then check that none has failed. */
static void wait_for_ops(void)
{
	struct xrds_barrier b = { .timeout_ms = 60000 };
	char none[1];

	memcpy(&b.dest, &peer, sizeof(peer));
	/* identifier 0: only get the last identifier */
	barrier(&b);
	b.rdma_id = b.issued;
	barrier(&b);
	receive(none, sizeof(none), NULL, MSG_DONTWAIT);
}

/* Offer the memory to one peer, and check the bytes that it has written. */
static int lend(void)
{
	rds_rdma_cookie_t cookie;
	struct rds_get_mr_args args = {
		.vec = { (uintptr_t)buffer, sizeof(buffer) },
		.cookie_addr = (uintptr_t)&cookie,
		.flags = RDS_RDMA_READWRITE,
	};
	char text[16];
	int right = 0;

	receive(text, sizeof(text), NULL, 0);
	if (setsockopt(fd, SOL_RDS, RDS_GET_MR, &args, sizeof(args)))
		err(1, "RDS_GET_MR");
	send_text("memory", RDS_CMSG_RDMA_DEST, &cookie, sizeof(cookie));
	/* this text follows the ops: all writes are done */
	while (!receive(text, sizeof(text), NULL, 0))
		;
	for (int i = 0; i < NR_BLOCKS; i++)
		right += block_is_right(buffer[i], content(ROUNDS - 1, i));
	printf("%s: %d of %d blocks are as they should be\n", text, right,
	       NR_BLOCKS);
	return right != NR_BLOCKS;
}

/* Ask for memory, write to it, and read it back. */
static int borrow(void)
{
	rds_rdma_cookie_t cookie = 0;
	char text[16];
	int right = 0;

	send_text("lend", 0, NULL, 0);
	while (!cookie)
		receive(text, sizeof(text), &cookie, 0);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < NR_BLOCKS; i++) {
			memset(buffer[i], content(round, i), BLOCK_BYTES);
			start_op(cookie, i, buffer[i], RDS_RDMA_READWRITE);
		}
		wait_for_ops();
	}
	for (int i = 0; i < NR_BLOCKS; i++)
		start_op(cookie, i, back[i], 0);
	wait_for_ops();
	for (int i = 0; i < NR_BLOCKS; i++)
		right += block_is_right(back[i], content(ROUNDS - 1, i));
	send_text("done", 0, NULL, 0);
	printf("done: %d of %d blocks were read back\n", right, NR_BLOCKS);
	return right != NR_BLOCKS;
}

static struct addrinfo *address(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *ai;

	if (getaddrinfo(host, port, &hints, &ai))
		errx(2, "%s %s is not an address", host, port);
	return ai;
}

int main(int argc, char **argv)
{
	struct addrinfo *ai;
	int on = 1;

	if (argc != 3 && argc != 5)
		errx(2, "usage: %s LOCAL PORT [REMOTE PORT]", argv[0]);
	ai = address(argv[1], argv[2]);
	fd = socket(AF_RDS, SOCK_SEQPACKET, 0);
	if (fd < 0 || bind(fd, ai->ai_addr, ai->ai_addrlen))
		err(1, "socket");
	/* notices of failed ops */
	if (setsockopt(fd, SOL_RDS, RDS_RECVERR, &on, sizeof(on)))
		err(1, "RDS_RECVERR");
	if (argc == 3)
		return lend();
	ai = address(argv[3], argv[4]);
	memcpy(&peer, ai->ai_addr, ai->ai_addrlen);
	peer_len = ai->ai_addrlen;
	return borrow();
}
