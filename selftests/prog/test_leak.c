// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel copies no byte to a program by mistake: before each call its stack
 * and heap are filled with one pattern, the program's memory with another. The
 * bytes that the call says it has written may have no run of either, and every
 * byte behind them is as it was.
 *
 * timeout: 180
 */
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <unistd.h>

#include "dump.h"
#include "rdma.h"
#include "tap.h"

enum {
	DIRT		= 0xa5,		/* in the kernel */
	POISON		= 0x5a,		/* here */
	RUN		= 4,		/* bytes that no value has by chance */
	ROOM		= 65536,
	IN_FLIGHT	= 256,		/* the window of a stream */
	NAME_ROOM	= 256,
	CONTROL_ROOM	= 4096,
	SPACE		= 16384,
	STAMP_OLD	= 29,		/* SO_TIMESTAMP_OLD */
};

static unsigned char out[ROOM];

/* A control message of a level that nobody reads is copied all the same: into
 * the kernel's stack if it is small, else into memory of its size.
 */
static void dirty_heap(void)
{
	static char control[16384] __aligned(8);
	struct cmsghdr *cmsg = (struct cmsghdr *)control;
	static int fd = -1;
	struct iovec iov = { control, 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = control };

	if (fd < 0)
		fd = rds_socket();
	memset(control, DIRT, sizeof(control));
	cmsg->cmsg_level = SOL_SOCKET + 100;
	for (size_t len = 32; len <= sizeof(control); len *= 2)
		for (int i = 0; i < 4; i++) {
			cmsg->cmsg_len = len;
			msg.msg_controllen = len;
			/* it has no destination: nothing is sent */
			if (sendmsg(fd, &msg, MSG_DONTWAIT) != -1)
				tap_fail("a message went nowhere");
		}
}

/* select() keeps its sets on the stack. */
static void dirty_stack(void)
{
	struct timeval now = { 0, 0 };
	fd_set sets[3];

	memset(sets, DIRT, sizeof(sets));
	/* most are not open: EBADF, which is as good */
	select(320, &sets[0], &sets[1], &sets[2], &now);
}

static void dirty(void)
{
	dirty_heap();
	dirty_stack();
	memset(out, POISON, sizeof(out));
}

static bool has_run(const unsigned char *data, size_t len, int byte)
{
	size_t run = 0;

	for (size_t i = 0; i < len; i++) {
		run = data[i] == byte ? run + 1 : 0;
		if (run == RUN)
			return true;
	}
	return false;
}

/* @len bytes of @data were written, the rest of @room were not. */
static void check_bytes(const void *data, size_t len, size_t room)
{
	const unsigned char *byte = data;

	if (len > room)
		tap_fail("%zu bytes in a room of %zu", len, room);
	check(!has_run(byte, len, DIRT));
	check(!has_run(byte, len, POISON));
	for (size_t i = len; i < room; i++)
		if (byte[i] != POISON)
			tap_fail("byte %zu behind %zu was written", i, len);
}

/* ---------------------------------------------------------------- options */

static void options_of(int fd, const union addr *to)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len;

	memcpy(&ss, to, sizeof(*to));
	for (int option = 0; option < 160; option++)
		for (socklen_t room = 4; room <= 1024; room *= 2) {
			tap_context("option %d, room for %u", option, room);
			dirty();
			/* a reader of an address finds one */
			if (option == XRDS_DEST_STATUS ||
			    option == XRDS_DEST_SNDBUF)
				memcpy(out, &ss, sizeof(ss));
			len = room;
			if (!getsockopt(fd, SOL_RDS, option, out, &len))
				check_bytes(out, len, ROOM);
			else if (option != XRDS_DEST_STATUS &&
				 option != XRDS_DEST_SNDBUF)
				check_bytes(out, 0, ROOM);
		}
}

static void options(void)
{
	union addr self;
	int fd = rds_socket();

	self = addr_of(tap_host, 4000);
	options_of(fd, &self);
	close(fd);
	fd = rds_bound(&self);
	options_of(fd, &self);
	must(rds_send(fd, "o", 1, 0, &self));
	options_of(fd, &self);
	close(fd);
}

static void names(void)
{
	union addr to = addr_of(tap_host, 4000);
	int fd = rds_socket();
	socklen_t len;

	for (int i = 0; i < 2; i++) {
		dirty();
		len = NAME_ROOM;
		must(getsockname(fd, (struct sockaddr *)out, &len));
		check_bytes(out, len, ROOM);
		if (!i) {
			close(fd);
			fd = rds_bound(NULL);
		}
	}
	must(connect(fd, &to.sa, addr_len(&to)));
	dirty();
	len = NAME_ROOM;
	must(getpeername(fd, (struct sockaddr *)out, &len));
	check_bytes(out, len, ROOM);
	close(fd);
}

static void ioctls(void)
{
	struct xrds_barrier *b = (struct xrds_barrier *)out;
	union addr self;
	int fd = rds_bound(&self);

	must(rds_send(fd, "i", 1, 0, &self));
	dirty();
	must(ioctl(fd, SIOCINQ, out));
	check_bytes(out, sizeof(int), ROOM);
	dirty();
	must(ioctl(fd, SIOCOUTQ, out));
	check_bytes(out, sizeof(int), ROOM);
	dirty();
	must(ioctl(fd, SIOCRDSGETTOS, out));
	check_bytes(out, sizeof(rds_tos_t), ROOM);
	dirty();
	memset(b, 0, sizeof(*b));
	memcpy(&b->dest, &self, sizeof(self));
	must(ioctl(fd, SIOCXRDSBARRIER, b));
	check_bytes(out, sizeof(*b), ROOM);
	close(fd);
}

/* --------------------------------------------------------------- received */

/* All that one recvmsg() has written: payload, name and control messages */
static struct {
	char name[NAME_ROOM];
	unsigned char control[CONTROL_ROOM] __aligned(8);
	struct msghdr msg;
} in;

static ssize_t receive(int fd, size_t control)
{
	struct iovec iov = { out, SPACE };

	dirty();
	memset(&in, POISON, sizeof(in));
	in.msg = (struct msghdr){
		.msg_name = in.name, .msg_namelen = sizeof(in.name),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = in.control, .msg_controllen = control,
	};
	return recvmsg(fd, &in.msg, MSG_DONTWAIT);
}

/* Padding behind a control message is nobody's: as it was, or zero. */
static void check_control(void)
{
	size_t len = in.msg.msg_controllen, end;
	struct cmsghdr *cmsg;

	for (cmsg = CMSG_FIRSTHDR(&in.msg); cmsg;
	     cmsg = CMSG_NXTHDR(&in.msg, cmsg)) {
		tap_context("control message %d", cmsg->cmsg_type);
		check(!has_run((void *)cmsg, cmsg->cmsg_len, DIRT));
		check(!has_run((void *)cmsg, cmsg->cmsg_len, POISON));
		end = (unsigned char *)cmsg + cmsg->cmsg_len - in.control;
		for (; end % sizeof(long); end++)
			check(end >= sizeof(in.control) || !in.control[end] ||
			      in.control[end] == POISON);
	}
	for (size_t i = len; i < sizeof(in.control); i++)
		if (in.control[i] != POISON)
			tap_fail("control byte %zu behind %zu was written", i,
				 len);
}

/* @len bytes of payload, and @nr control messages; a source if there is any */
static void check_received(ssize_t ret, ssize_t len, int nr, bool named)
{
	struct cmsghdr *cmsg;

	check_ret(ret, len);
	if (ret < 0)
		return;
	check_bytes(out, ret, ROOM);
	if (named)
		check_bytes(in.name, in.msg.msg_namelen, sizeof(in.name));
	check_control();
	for (cmsg = CMSG_FIRSTHDR(&in.msg); cmsg;
	     cmsg = CMSG_NXTHDR(&in.msg, cmsg))
		nr--;
	check_eq(nr, 0);
}

static void send_cookie(int fd, const union addr *to, u64 cookie)
{
	struct ctl ctl = { 0 };

	ctl_add(&ctl, RDS_CMSG_RDMA_DEST, &cookie, sizeof(cookie));
	check_ret(ctl_send(fd, to, &ctl, "data", 4, 0), 4);
}

/* Name, payload, a cookie, a time stamp, latencies; then the end of a stream */
static void received(void)
{
	struct rds_rx_trace_so so = { 2, { 1, 2 } };
	struct target t;
	union addr to;
	int rx = rds_bound(&to);

	target_open(&t, PAGE_BYTES, RDS_RDMA_READWRITE);
	rds_set_int(rx, SOL_RDS, STAMP_OLD, 1);
	must(setsockopt(rx, SOL_RDS, SO_RDS_MSG_RXPATH_LATENCY, &so,
			sizeof(so)));
	for (int room = 0; room < 200; room += 8) {
		send_cookie(t.fd, &to, t.cookie);
		must(poll_one(rx, POLLIN, WAIT_MS));
		tap_context("control space of %d", room);
		check_ret(receive(rx, room), 4);
		check_bytes(out, 4, ROOM);
		check_bytes(in.name, in.msg.msg_namelen, sizeof(in.name));
		check_control();
	}
	send_cookie(t.fd, &to, t.cookie);
	must(poll_one(rx, POLLIN, WAIT_MS));
	check_received(receive(rx, CONTROL_ROOM), 4, 3, true);
	must(shutdown(t.fd, SHUT_WR));
	must(poll_one(rx, POLLIN, WAIT_MS));
	check_received(receive(rx, CONTROL_ROOM), 0, 1, true);
	/* nothing to read writes nothing */
	check_received(receive(rx, CONTROL_ROOM), -1, 0, false);
	check_bytes(out, 0, ROOM);
	check_bytes(in.name, 0, sizeof(in.name));
	target_close(&t);
	close(rx);
}

static void notice_of_op(int fd, struct target *t)
{
	struct op op = op_write(t, 0, "n", 1);
	u64 id;

	op_set(&op, RDS_RDMA_NOTIFY_ME | RDS_RDMA_SILENT, 0x1122334455667788);
	op.id = &id;
	must(op_send(fd, &t->addr, &op));
	for (int nr = 0; nr < 2;) {
		if (!(poll_one(fd, POLLIN, WAIT_MS) & POLLIN))
			tap_fail("no notice");
		check_ret(receive(fd, CONTROL_ROOM), 0);
		check_bytes(out, 0, ROOM);
		check_control();
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&in.msg); c;
		     c = CMSG_NXTHDR(&in.msg, c))
			nr++;
	}
}

static void notice_of_congestion(int fd)
{
	union addr to;
	int rx = rds_bound(&to);

	rds_set_int(fd, SOL_RDS, RDS_CONG_MONITOR, 1);
	rds_set_int(rx, SOL_SOCKET, SO_RCVBUF, SPACE);
	while (rds_send(fd, out, SPACE / 2, MSG_DONTWAIT, &to) > 0 ||
	       errno == EAGAIN)
		poll_one(fd, POLLOUT, 100);
	check_eq(errno, ENOBUFS);
	while (!(poll_one(fd, POLLIN, 10) & POLLIN))
		rds_recv(rx, out, SPACE, MSG_DONTWAIT, NULL);
	check_received(receive(fd, CONTROL_ROOM), 0, 2, false);
	close(rx);
}

/* The ends of ops, barriers, and the end of congestion */
static void notices(void)
{
	int fd = rds_bound(NULL);
	struct target t;

	target_open(&t, PAGE_BYTES, RDS_RDMA_READWRITE);
	notice_of_op(fd, &t);
	notice_of_congestion(fd);
	target_close(&t);
	close(fd);
}

/* ------------------------------------------------------------------- dumps */

static void one_dump(int fd, int what)
{
	socklen_t len = ROOM;
	int each;

	tap_context("dump %d", what);
	dirty();
	each = getsockopt(fd, SOL_RDS, what, out, &len);
	if (each < 0) {
		check_err(each, ENOPROTOOPT);
		check_bytes(out, 0, ROOM);
		return;
	}
	check(each && !(len % each));
	check_bytes(out, len, ROOM);
	/* too little room: nothing, not a part */
	if (!len)
		return;
	dirty();
	len--;
	check_err(getsockopt(fd, SOL_RDS, what, out, &len), ENOSPC);
	check_bytes(out, 0, ROOM);
}

static bool all_under_way(void *fd)
{
	return dump_rows(*(int *)fd, RDS6_INFO_RETRANS_MESSAGES) == IN_FLIGHT;
}

/* With sockets, connections, and messages in each state that there is */
static void dumps(void)
{
	union addr v4, v6, stalled;
	int fd4 = rds_bound_to("127.0.0.1", 4000, &v4);
	int fd6 = rds_bound_to("::1", 4000, &v6);
	int unbound = rds_socket(), sink;

	must(connect(fd4, &v4.sa, addr_len(&v4)));
	must(rds_send(fd4, "4", 1, 0, &v4));
	must(rds_send(fd6, "6", 1, 0, &v6));
	must(poll_one(fd4, POLLIN, WAIT_MS));
	must(poll_one(fd6, POLLIN, WAIT_MS));
	stall_loop();
	sink = rds_bound_to("127.0.0.2", 4000, &stalled);
	for (int i = 0; i < IN_FLIGHT + 20; i++)
		must(rds_send(fd4, "s", 1, MSG_DONTWAIT, &stalled));
	/* they do not go from one list to another while these are read */
	must_wait(all_under_way, &fd4, WAIT_MS);
	for (int what = RDS_INFO_FIRST; what <= RDS_INFO_LAST; what++)
		one_dump(fd4, what);
	close(unbound);
	close(sink);
	close(fd6);
	close(fd4);
}

static const struct tap_case cases[] = {
	{ "options", "every option, in rooms of all sizes", options,
	  TAP_EACH_FAMILY, 60 },
	{ "names", "getsockname and getpeername", names, TAP_EACH_FAMILY, 0 },
	{ "ioctls", "every ioctl that answers", ioctls, TAP_EACH_FAMILY, 0 },
	{ "received", "names, payload and control messages", received,
	  TAP_EACH_FAMILY, 60 },
	{ "notices", "ends of ops, barriers and congestion", notices,
	  TAP_EACH_FAMILY, 60 },
	{ "dumps", "RDS_INFO_*, of everything there is", dumps, 0, 60 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
