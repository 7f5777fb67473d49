// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMA probes: write to memory that a program of the node offers (serve.c),
 * read it back, and compare the bytes.
 *
 * A message asks for the memory, and the answer has its cookie. Then there is
 * one probe at a time: a write, a read, and the barrier, which tells when both
 * have ended. A failed op has a notice, which can be read as soon as the
 * barrier is reached.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "hint.h"
#include "ping.h"
#include "text.h"

enum {
	HINT_SECONDS	= 5,		/* print a hint when no answer came */
};

static const char void_memory[] =
	"the memory there is void: its program has ended or lent it anew, or its device has gone";

static int fd;
static rds_rdma_cookie_t cookie;
static bool failed;			/* an op of this probe */
static unsigned char out[MAX_BYTES], in[MAX_BYTES];

static void __attribute__((noreturn)) give_up(const char *why)
{
	fprintf(stderr, "xrds-ping: %s: %s\n", to_text, why);
	exit(EXIT_ERROR);
}

static void __attribute__((noreturn)) give_up_memory(int error)
{
	char why[160];

	snprintf(why, sizeof(why), "%s%s", strerror(error),
		 hint_memory(error));
	give_up(why);
}

/* Wait for something to read. Returns whether there is. */
static bool readable(long long until)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	long long left = until - now_ns();
	struct timespec ts;

	if (left < 0)
		left = 0;
	ts.tv_sec = left / NSEC_PER_SEC;
	ts.tv_nsec = left % NSEC_PER_SEC;
	return ppoll(&pfd, 1, &ts, NULL) > 0;
}

/* -------------------------------------------------------- receiving */

static void take_control(const struct cmsghdr *c)
{
	struct rds_rdma_notify notice;

	if (c->cmsg_level != SOL_RDS)
		return;
	switch (c->cmsg_type) {
	case RDS_CMSG_RDMA_DEST:
		memcpy(&cookie, CMSG_DATA(c), sizeof(cookie));
		break;
	case RDS_CMSG_RDMA_STATUS:
		memcpy(&notice, CMSG_DATA(c), sizeof(notice));
		/* each such op resets the connection, which others use, too */
		if (notice.status == RDS_RDMA_REMOTE_ERROR)
			give_up(void_memory);
		if (notice.status != RDS_RDMA_SUCCESS)
			failed = true;
		break;
	case XRDS_CMSG_EOS:
		give_up("the program there has ended");
	}
}

/* Read one message or notice. Returns false when there is nothing to read. */
static bool take(void)
{
	union {
		struct cmsghdr align;
		char bytes[1024];
	} control;
	struct sockaddr_storage peer;
	char text[160];
	struct iovec iov = { text, sizeof(text) - 1 };
	struct msghdr m = {
		.msg_name = &peer, .msg_namelen = sizeof(peer),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);
	struct cmsghdr *c;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < 0)
		die("receive", errno);
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		take_control(c);
	text[n] = 0;
	/* an answer without a cookie has the error instead */
	if (n && !cookie)
		give_up(text_printable(text));
	return true;
}

/* -------------------------------------------------------- asking for memory */

static void begin(void)
{
	int on = 1;

	fd = open_socket(0);
	/* notices of ops that fail */
	if (setsockopt(fd, SOL_RDS, RDS_RECVERR, &on, sizeof(on)))
		die("RDS_RECVERR", errno);
}

/* Has all that was sent arrived? If nobody listened, it was dropped there. */
static bool arrived(void)
{
	struct xrds_dest_status s = { 0 };
	socklen_t len = sizeof(s);

	memcpy(&s.dest, &to, sizeof(to));
	return !getsockopt(fd, SOL_RDS, XRDS_DEST_STATUS, &s, &len) &&
	       !s.queued_msgs;
}

/* Asked again, the node may have no room for the message. */
static void ask(void)
{
	char text[80];

	snprintf(text, sizeof(text), "lend %lu", opt.bytes);
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
		   (struct sockaddr *)&to, addr_len) < 0 &&
	    errno != ENOBUFS && errno != EAGAIN)
		die(to_text, errno);
}

static void start_op(void *local, unsigned int flags, __u64 *id)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct rds_rdma_args)) +
			   CMSG_SPACE(sizeof(__u64))];
	} control = { 0 };
	struct rds_iovec vec = { (uintptr_t)local, opt.bytes };
	struct rds_rdma_args args = {
		.cookie = cookie,
		.remote_vec = { 0, opt.bytes },
		.local_vec_addr = (uintptr_t)&vec,
		.nr_local = 1,
		.flags = flags | RDS_RDMA_SILENT,
	};
	struct msghdr m = {
		.msg_name = &to, .msg_namelen = addr_len,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	__u64 id_addr = (uintptr_t)id;
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_RDS;
	c->cmsg_type = RDS_CMSG_RDMA_ARGS;
	c->cmsg_len = CMSG_LEN(sizeof(args));
	memcpy(CMSG_DATA(c), &args, sizeof(args));
	c = CMSG_NXTHDR(&m, c);
	c->cmsg_level = SOL_RDS;
	c->cmsg_type = XRDS_CMSG_RDMA_ID;
	c->cmsg_len = CMSG_LEN(sizeof(id_addr));
	memcpy(CMSG_DATA(c), &id_addr, sizeof(id_addr));
	/* the call pins the local memory */
	if (sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		give_up_memory(errno);
}

/* Returns whether the ops have ended; if not it is time to stop. */
static bool wait_ops(__u64 id, long long end)
{
	struct xrds_barrier b = { .rdma_id = id };
	long long now = now_ns(), left;

	memcpy(&b.dest, &to, sizeof(to));
	while (!finished(now, end)) {
		left = end ? (end - now) / NSEC_PER_MSEC + 1 : 1000;
		b.timeout_ms = left < 1000 ? left : 1000;
		if (!ioctl(fd, SIOCXRDSBARRIER, &b))
			return true;
		if (errno != ETIMEDOUT && errno != EINTR)
			die("barrier", errno);
		now = now_ns();
	}
	return false;
}

static void probe(long long end)
{
	unsigned long seq = ++stats.sent;
	long long start;
	__u64 id;

	for (unsigned long i = 0; i < opt.bytes; i++)
		out[i] = seq * 31 + i * 7 + (i >> 8);
	memset(in, 0, opt.bytes);
	failed = false;
	start = now_ns();
	start_op(out, RDS_RDMA_READWRITE, &id);
	start_op(in, 0, &id);
	if (!wait_ops(id, end))
		return;
	start = now_ns() - start;
	while (take())
		;
	if (failed)
		fprintf(stderr, "xrds-ping: seq=%lu: an op has failed\n", seq);
	else if (memcmp(in, out, opt.bytes))
		fprintf(stderr, "xrds-ping: seq=%lu: wrong bytes came back\n",
			seq);
	else
		answered("written and read back at", seq, start);
}

static void say_nobody(void)
{
	fprintf(stderr, "xrds-ping: no answer yet: does xrds-ping -l %u run there?\n",
		opt.rdma);
}

/* Returns whether memory to probe was offered. */
static bool lent(long long end)
{
	long long now = now_ns(), hint = now + HINT_SECONDS * NSEC_PER_SEC;
	long long until;

	ask();
	while (!cookie && !finished(now, end)) {
		until = now + NSEC_PER_SEC;
		if (end && until > end)
			until = end;
		if (readable(until))
			take();
		else if (arrived())
			ask();
		now = now_ns();
		if (hint && now > hint && !cookie) {
			say_nobody();
			hint = 0;
		}
	}
	return cookie;
}

/* Probe until the count, the time or a signal ends it. */
void rdma_loop(void)
{
	long long now = now_ns(), next, until, end;

	end = opt.deadline_ns ? now + opt.deadline_ns : 0;
	begin();
	if (!lent(end))
		return;
	for (next = now = now_ns(); !finished(now, end); now = now_ns()) {
		if (now >= next) {
			if (opt.count && stats.sent >= opt.count)
				return;
			probe(end);
			next += opt.interval_ns;
			if (next < now)
				next = now;
			continue;
		}
		until = end && end < next ? end : next;
		if (readable(until))
			take();
	}
}
