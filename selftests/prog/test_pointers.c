// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every user pointer of every call, aimed at memory that cannot be used. The
 * answer is EFAULT, no message is lost or half sent, and the socket goes on.
 *
 * timeout: 120
 */
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rdma.h"
#include "sock.h"
#include "tap.h"

enum {
	PAGE		= 4096,
	ROUNDS		= 300,
	LARGE		= 256 * 1024,
};

struct bad {
	const char *what;
	char *address;
	bool readable;
	bool user;	/* an address that user space can have */
};

static struct bad bads[6];

/* Half of the last page of a mapping: a longer buffer runs into nothing */
static char *edge(int prot)
{
	char *map = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		tap_fail("mmap: %s", tap_errno_name(errno));
	must(munmap(map + 2 * PAGE, PAGE));
	must(mprotect(map, 2 * PAGE, prot));
	return map + 2 * PAGE;
}

static void make_bads(void)
{
	char *none = edge(PROT_NONE) - PAGE;
	char *read_only = edge(PROT_READ) - PAGE;

	bads[0] = (struct bad){ "page zero", (char *)8, false, true };
	bads[1] = (struct bad){ "unmapped", edge(PROT_READ), false, true };
	bads[2] = (struct bad){ "no access", none, false, true };
	bads[3] = (struct bad){ "kernel", (char *)0xffffffff81000000ul,
				false, false };
	bads[4] = (struct bad){ "hole", (char *)0x8000000000000000ul,
				false, false };
	bads[5] = (struct bad){ "read-only", read_only, true, true };
}

#define FOR_EACH_BAD \
	for (struct bad *b = bads; b < bads + ARRAY_SIZE(bads); b++)

/* Of all cases: a socket, and its address */
static int fd;
static union addr self;

static void begin(void)
{
	fd = rds_bound(&self);
	make_bads();
}

/* A message to itself shows that the socket still works. */
static void end(void)
{
	char byte;

	tap_context("afterwards");
	check_ret(rds_send(fd, "x", 1, MSG_DONTWAIT, &self), 1);
	check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL), 1);
	check_eq(byte, 'x');
	check_eq(poll_one(fd, POLLIN, 0), 0);
	close(fd);
}

static ssize_t send_iov(void *data, size_t len)
{
	char good[PAGE] = "";
	struct iovec iov[] = { { good, sizeof(good) }, { data, len } };
	struct msghdr msg = {
		.msg_name = (void *)&self.sa, .msg_namelen = addr_len(&self),
		.msg_iov = iov, .msg_iovlen = 2,
	};

	return sendmsg(fd, &msg, MSG_DONTWAIT);
}

static void send_payload(void)
{
	begin();
	FOR_EACH_BAD {
		if (b->readable)
			continue;
		tap_context("%s", b->what);
		check_err(rds_send(fd, b->address, 1, MSG_DONTWAIT, &self),
			  EFAULT);
		check_err(rds_send(fd, b->address, LARGE, MSG_DONTWAIT, &self),
			  EFAULT);
		check_err(send_iov(b->address, 1), EFAULT);
	}
	tap_context("runs into nothing");
	check_err(rds_send(fd, edge(PROT_READ) - 10, 11, MSG_DONTWAIT, &self),
		  EFAULT);
	check_err(rds_send(fd, edge(PROT_READ) - PAGE, LARGE, MSG_DONTWAIT,
			   &self), EFAULT);
	end();
}

static void send_payload_leak(void)
{
	char *near_end = edge(PROT_READ) - 2 * PAGE;
	struct xrds_dest_status st;
	int bytes = -1;

	begin();
	/* far more than all the space there is, if it were not given back */
	for (int i = 0; i < ROUNDS; i++)
		check_err(rds_send(fd, near_end, LARGE, MSG_DONTWAIT, &self),
			  EFAULT);
	must(ioctl(fd, SIOCOUTQ, &bytes));
	check_eq(bytes, 0);
	must(dest_status(fd, &self, &st));
	check_eq(st.queued_bytes, 0);
	check_eq(st.queued_msgs, 0);
	end();
}

static void send_headers(void)
{
	struct iovec iov = { "x", 1 };
	struct msghdr msg;

	begin();
	FOR_EACH_BAD {
		if (b->readable)
			continue;
		tap_context("%s", b->what);
		msg = (struct msghdr){ .msg_name = b->address,
			.msg_namelen = addr_len(&self),
			.msg_iov = &iov, .msg_iovlen = 1 };
		check_err(sendmsg(fd, &msg, MSG_DONTWAIT), EFAULT);
		msg = (struct msghdr){ .msg_name = &self,
			.msg_namelen = addr_len(&self),
			.msg_iov = (void *)b->address, .msg_iovlen = 1 };
		check_err(sendmsg(fd, &msg, MSG_DONTWAIT), EFAULT);
		msg = (struct msghdr){ .msg_name = &self,
			.msg_namelen = addr_len(&self),
			.msg_iov = &iov, .msg_iovlen = 1,
			.msg_control = b->address, .msg_controllen = 32 };
		check_err(sendmsg(fd, &msg, MSG_DONTWAIT), EFAULT);
		check_err(sendmsg(fd, (void *)b->address, MSG_DONTWAIT),
			  EFAULT);
	}
	end();
}

static void recv_payload(void)
{
	char data[64], good[2];
	struct iovec iov[2] = { { good, 2 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	begin();
	must(rds_send(fd, "hello", 5, 0, &self));
	check(poll_one(fd, POLLIN, tap_ms(WAIT_MS)));
	FOR_EACH_BAD {
		tap_context("%s", b->what);
		check_err(rds_recv(fd, b->address, 8, MSG_DONTWAIT, NULL),
			  EFAULT);
		check_err(rds_recv(fd, b->address, 8, MSG_DONTWAIT | MSG_PEEK,
				   NULL), EFAULT);
		iov[1] = (struct iovec){ b->address, 8 };
		check_err(recvmsg(fd, &msg, MSG_DONTWAIT), EFAULT);
		/* a reliable message is not lost by that */
		check(poll_one(fd, POLLIN, 0));
	}
	tap_context("runs into nothing");
	check_err(rds_recv(fd, edge(PROT_READ | PROT_WRITE) - 4, 8,
			   MSG_DONTWAIT, NULL), EFAULT);
	tap_context("read again");
	check_ret(rds_recv(fd, data, sizeof(data), MSG_DONTWAIT, NULL), 5);
	check(!memcmp(data, "hello", 5));
	end();
}

static void recv_nothing(void)
{
	/* nothing is copied, so nothing is wrong */
	begin();
	FOR_EACH_BAD {
		if (!b->user)
			continue;	/* the core refuses these up front */
		tap_context("%s", b->what);
		check_err(rds_recv(fd, b->address, 8, MSG_DONTWAIT, NULL),
			  EAGAIN);
	}
	end();
}

static void recv_headers(void)
{
	char data[8];
	struct iovec iov = { data, sizeof(data) };
	struct msghdr msg;

	begin();
	FOR_EACH_BAD {
		tap_context("%s", b->what);
		if (!b->readable)
			check_err(recvmsg(fd, (void *)b->address, MSG_DONTWAIT),
				  EFAULT);
		must(rds_send(fd, "hello", 5, 0, &self));
		check(poll_one(fd, POLLIN, tap_ms(WAIT_MS)));
		msg = (struct msghdr){ .msg_name = b->address,
			.msg_namelen = sizeof(union addr),
			.msg_iov = &iov, .msg_iovlen = 1 };
		/* the core copies the name last: the message is read */
		check_err(recvmsg(fd, &msg, MSG_DONTWAIT), EFAULT);
		rds_recv(fd, data, sizeof(data), MSG_DONTWAIT, NULL);
	}
	end();
}

/* An end of stream whose reason cannot be copied stays; each address is one at
 * which the control message would begin.
 */
static void recv_control(void)
{
	int tx = rds_bound(NULL);
	struct msghdr msg;
	struct got got;
	char byte;

	begin();
	must(rds_send(tx, "x", 1, 0, &self));
	close(tx);
	check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL), 1);
	check(poll_one(fd, POLLIN, tap_ms(WAIT_MS)));
	FOR_EACH_BAD {
		tap_context("%s", b->what);
		msg = (struct msghdr){ .msg_control = b->address,
			.msg_controllen = CMSG_SPACE(sizeof(u32)) };
		check_err(recvmsg(fd, &msg, MSG_DONTWAIT), EFAULT);
		check_err(recvmsg(fd, &msg, MSG_DONTWAIT | MSG_PEEK), EFAULT);
		check(poll_one(fd, POLLIN, 0));
	}
	tap_context("read again");
	check_ret(got_now(fd, &got, 1024), 0);
	check(got.ended);
	end();
}

static void names(void)
{
	socklen_t len;
	union addr a;

	make_bads();
	fd = rds_socket();
	a = addr_of(tap_host, 0);
	FOR_EACH_BAD {
		if (b->readable)
			continue;
		tap_context("%s", b->what);
		check_err(bind(fd, (void *)b->address, addr_len(&a)), EFAULT);
		check_err(connect(fd, (void *)b->address, addr_len(&a)),
			  EFAULT);
	}
	must(bind(fd, &a.sa, addr_len(&a)));
	self = rds_self(fd);
	must(connect(fd, &self.sa, addr_len(&self)));
	FOR_EACH_BAD {
		tap_context("%s", b->what);
		len = sizeof(a);
		check_err(getsockname(fd, (void *)b->address, &len), EFAULT);
		len = sizeof(a);
		check_err(getpeername(fd, (void *)b->address, &len), EFAULT);
		check_err(getsockname(fd, &a.sa, (void *)b->address), EFAULT);
		check_err(getpeername(fd, &a.sa, (void *)b->address), EFAULT);
	}
	end();
}

static void set_options(void)
{
	static const struct { int option; socklen_t len; } options[] = {
		{ RDS_CANCEL_SENT_TO, sizeof(struct sockaddr_in) },
		{ RDS_RECVERR, sizeof(int) },
		{ RDS_CONG_MONITOR, sizeof(int) },
		{ XRDS_DEST_SNDBUF, sizeof(struct xrds_dest_sndbuf) },
		{ XRDS_CONG_EAGAIN, sizeof(int) },
		{ XRDS_DELIVERED_EVENT, sizeof(int) },
		{ XRDS_REPLY_RESERVE, sizeof(u32) },
		{ XRDS_REPLY_RELEASE, sizeof(struct sockaddr_storage) },
		{ SO_RDS_MSG_RXPATH_LATENCY, sizeof(struct rds_rx_trace_so) },
		{ RDS_GET_MR, sizeof(struct rds_get_mr_args) },
		{ RDS_GET_MR_FOR_DEST,
		  sizeof(struct rds_get_mr_for_dest_args) },
		{ RDS_FREE_MR, sizeof(struct rds_free_mr_args) },
		{ SO_TIMESTAMP, sizeof(int) },
	};
	int unbound = rds_socket();

	begin();
	FOR_EACH_BAD {
		if (b->readable)
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
			tap_context("option %d, %s", options[i].option,
				    b->what);
			check_err(setsockopt(fd, SOL_RDS, options[i].option,
					     b->address, options[i].len),
				  EFAULT);
		}
		tap_context("transport, %s", b->what);
		check_err(setsockopt(unbound, SOL_RDS, SO_RDS_TRANSPORT,
				     b->address, sizeof(int)), EFAULT);
	}
	end();
}

static void get_options(void)
{
	static const struct { int option; socklen_t len; } options[] = {
		{ RDS_RECVERR, sizeof(int) },
		{ XRDS_DEST_STATUS, sizeof(struct xrds_dest_status) },
		{ XRDS_DEST_SNDBUF, sizeof(struct xrds_dest_sndbuf) },
		{ XRDS_CONG_EAGAIN, sizeof(int) },
		{ XRDS_DELIVERED_EVENT, sizeof(int) },
		{ XRDS_REPLY_RESERVE, sizeof(int) },
		{ SO_RDS_TRANSPORT, sizeof(int) },
		{ RDS_INFO_COUNTERS, 64 * 1024 },
		{ RDS_INFO_SOCKETS, 64 * 1024 },
	};
	char data[1024] = "";
	socklen_t len;

	begin();
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		FOR_EACH_BAD {
			tap_context("option %d, %s", options[i].option,
				    b->what);
			/* zeroes, where they can be read, name no address */
			if (b->readable &&
			    options[i].option == XRDS_DEST_STATUS)
				continue;
			len = options[i].len;
			check_err(getsockopt(fd, SOL_RDS, options[i].option,
					     b->address, &len), EFAULT);
			if (b->readable)
				continue;
			memcpy(data, &self, sizeof(self));
			check_err(getsockopt(fd, SOL_RDS, options[i].option,
					     data, (void *)b->address), EFAULT);
		}
	}
	end();
}

static void ioctls(void)
{
	begin();
	FOR_EACH_BAD {
		tap_context("%s", b->what);
		check_err(ioctl(fd, SIOCINQ, b->address), EFAULT);
		check_err(ioctl(fd, SIOCOUTQ, b->address), EFAULT);
		check_err(ioctl(fd, SIOCRDSGETTOS, b->address), EFAULT);
		check_err(ioctl(fd, SIOCXRDSBARRIER, b->address),
			  b->readable ? EINVAL : EFAULT);
		if (!b->readable)
			check_err(ioctl(fd, SIOCRDSSETTOS, b->address),
				  EFAULT);
	}
	end();
}

static const struct tap_case cases[] = {
	{ "send_payload", "payload that cannot be read is not sent",
	  send_payload, TAP_EACH_FAMILY, 0 },
	{ "send_payload_leak", "and its space is given back",
	  send_payload_leak, 0, 0 },
	{ "send_headers", "sendmsg's structures", send_headers, 0, 0 },
	{ "recv_payload", "a message that cannot be copied stays",
	  recv_payload, TAP_EACH_FAMILY, 0 },
	{ "recv_nothing", "an empty queue touches no buffer", recv_nothing,
	  0, 0 },
	{ "recv_headers", "recvmsg's structures", recv_headers, 0, 0 },
	{ "recv_control", "an end of stream that cannot be told stays",
	  recv_control, TAP_EACH_FAMILY, 0 },
	{ "names", "bind, connect, getsockname, getpeername", names, 0, 0 },
	{ "set_options", "setsockopt's values", set_options, 0, 0 },
	{ "get_options", "getsockopt's values and lengths", get_options, 0, 0 },
	{ "ioctls", "arguments and results of ioctl()", ioctls, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
