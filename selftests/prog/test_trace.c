// SPDX-License-Identifier: GPL-2.0-only
/*
 * When a message came, and how long it took: SO_TIMESTAMP and
 * RDS_CMSG_RXPATH_LATENCY. And which transport a socket is for.
 *
 * timeout: 120
 */
#include <poll.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"

enum {
	STAMP_OLD	= 29,	/* SO_TIMESTAMP_OLD, SO_TIMESTAMP_NEW */
	STAMP_NEW	= 63,
	STAMPNS_OLD	= 35,	/* SO_TIMESTAMPNS_OLD, SO_TIMESTAMPNS_NEW */
	STAMPNS_NEW	= 64,
	STAMPING_OLD	= 37,
	STAMPING_NEW	= 65,
	STAMPING_RX	= 1 << 3 | 1 << 4,	/* in software, and tell of it */
	STAMPING_TX	= 1 << 1 | 1 << 4,
	ROOM		= 256,	/* for control messages */
};

/* All that one message brings */
struct got {
	char control[ROOM];
	struct msghdr msg;
	char data[10];
};

static void send_one(int fd, const union addr *to)
{
	char data[10] = "";

	must(rds_send(fd, data, sizeof(data), 0, to));
}

/* Reads a message that has come; the data of a control message, or NULL */
static const void *read_one(int fd, struct got *got, size_t room, int level,
			    int type, size_t len)
{
	struct iovec iov = { got->data, sizeof(got->data) };
	struct cmsghdr *cmsg;

	if (!(poll_one(fd, POLLIN, WAIT_MS) & POLLIN))
		tap_fail("nothing came");
	memset(got, 0xa5, sizeof(*got));
	got->msg = (struct msghdr){
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = got->control, .msg_controllen = room,
	};
	check_ret(recvmsg(fd, &got->msg, MSG_DONTWAIT), sizeof(got->data));
	for (cmsg = CMSG_FIRSTHDR(&got->msg); cmsg;
	     cmsg = CMSG_NXTHDR(&got->msg, cmsg))
		if (cmsg->cmsg_level == level && cmsg->cmsg_type == type &&
		    cmsg->cmsg_len == CMSG_LEN(len))
			return CMSG_DATA(cmsg);
	return NULL;
}

static long long now_us(void)
{
	struct timespec ts;

	must(clock_gettime(CLOCK_REALTIME, &ts));
	return ts.tv_sec * 1000000ll + ts.tv_nsec / 1000;
}

static void stamped(int level, int option, int type)
{
	long long before, after, came;
	const struct timeval *tv;
	union addr self;
	struct got got;
	int fd = rds_bound(&self);

	tap_context("level %d option %d", level, option);
	rds_set_int(fd, level, option, 1);
	before = now_us();
	send_one(fd, &self);
	check_eq(poll_one(fd, POLLIN, WAIT_MS), POLLIN);
	after = now_us();
	/* both kinds look the same on 64 bits */
	tv = read_one(fd, &got, ROOM, SOL_SOCKET, type, sizeof(*tv));
	check(tv);
	if (tv) {
		came = tv->tv_sec * 1000000ll + tv->tv_usec;
		check_range(came, before, after);
	}
	check(!(got.msg.msg_flags & MSG_CTRUNC));
	send_one(fd, &self);
	check(!read_one(fd, &got, 0, SOL_SOCKET, type, sizeof(*tv)));
	check(got.msg.msg_flags & MSG_CTRUNC);
	rds_set_int(fd, level, option, 0);
	send_one(fd, &self);
	check(!read_one(fd, &got, ROOM, SOL_SOCKET, type, sizeof(*tv)));
	check_eq(got.msg.msg_controllen, 0);
	close(fd);
}

static void stamps(void)
{
	stamped(SOL_SOCKET, STAMP_OLD, STAMP_OLD);
	stamped(SOL_SOCKET, STAMP_NEW, STAMP_NEW);
	stamped(SOL_RDS, STAMP_OLD, STAMP_OLD);
	stamped(SOL_RDS, STAMP_NEW, STAMP_NEW);
}

/* SO_TIMESTAMPING: of receiving, in software, and nothing else */
static void stamping(void)
{
	static const int options[] = { STAMPING_OLD, STAMPING_NEW };
	const struct timespec *ts;
	long long before;
	union addr self;
	struct got got;
	int fd = rds_bound(&self);

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		tap_context("option %d", options[i]);
		rds_set_int(fd, SOL_SOCKET, options[i], STAMPING_RX);
		before = now_us();
		send_one(fd, &self);
		/* of software, none, and of hardware */
		ts = read_one(fd, &got, ROOM, SOL_SOCKET, options[i],
			      3 * sizeof(*ts));
		check(ts);
		if (ts) {
			check_range(ts->tv_sec * 1000000ll +
				    ts->tv_nsec / 1000, before, now_us());
			check_eq(ts[2].tv_sec, 0);
		}
		rds_set_int(fd, SOL_SOCKET, options[i], STAMPING_TX);
		send_one(fd, &self);
		check(!read_one(fd, &got, ROOM, SOL_SOCKET, options[i],
				3 * sizeof(*ts)));
		check_eq(got.msg.msg_controllen, 0);
		check(!(poll_one(fd, POLLIN, 0) & POLLERR));
		rds_set_int(fd, SOL_SOCKET, options[i], 0);
	}
	close(fd);
}

/* SOL_SOCKET has stamps in nanoseconds as well, SOL_RDS has not */
static void stamp_levels(void)
{
	static const struct { int level, kind; } calls[] = {
		{ SOL_SOCKET, STAMPNS_OLD }, { SOL_RDS, STAMP_OLD },
		{ SOL_SOCKET, STAMPNS_NEW }, { SOL_RDS, STAMP_NEW },
		{ SOL_SOCKET, STAMPNS_NEW }, { SOL_RDS, STAMP_OLD },
		{ SOL_SOCKET, STAMP_NEW }, { SOL_RDS, STAMP_OLD },
	};
	/* for STAMPNS_NEW the kernel says that STAMP_NEW is on as well */
	static const int kinds[] = { STAMP_OLD, STAMPNS_OLD, STAMPNS_NEW };
	union addr self;
	struct got got;
	int fd = rds_bound(&self);

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		tap_context("call %zu: level %d, option %d", i, calls[i].level,
			    calls[i].kind);
		rds_set_int(fd, calls[i].level, calls[i].kind, 1);
		send_one(fd, &self);
		check(read_one(fd, &got, ROOM, SOL_SOCKET, calls[i].kind,
			       sizeof(struct timeval)));
		check_eq(rds_get_int(fd, SOL_SOCKET, calls[i].kind), 1);
		for (size_t j = 0; j < ARRAY_SIZE(kinds); j++)
			if (kinds[j] != calls[i].kind)
				check_eq(rds_get_int(fd, SOL_SOCKET, kinds[j]),
					 0);
	}
	tap_context("off");
	rds_set_int(fd, SOL_SOCKET, STAMPNS_OLD, 1);
	rds_set_int(fd, SOL_RDS, STAMP_OLD, 0);
	send_one(fd, &self);
	check(!read_one(fd, &got, ROOM, SOL_SOCKET, STAMPNS_OLD,
			sizeof(struct timeval)));
	check_eq(rds_get_int(fd, SOL_SOCKET, STAMPNS_OLD), 0);
	close(fd);
}

/* From one kind to the other and back */
static void stamp_kinds(void)
{
	static const int kinds[] = { STAMP_NEW, STAMP_OLD, STAMP_NEW };
	union addr self;
	struct got got;
	int fd = rds_bound(&self);

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		rds_set_int(fd, SOL_RDS, kinds[i], 1);
		send_one(fd, &self);
		check(read_one(fd, &got, ROOM, SOL_SOCKET, kinds[i],
			       sizeof(struct timeval)));
	}
	close(fd);
}

static int ask(int fd, int n, int a, int b, int c)
{
	struct rds_rx_trace_so so = { n, { a, b, c } };

	return setsockopt(fd, SOL_RDS, SO_RDS_MSG_RXPATH_LATENCY, &so,
			  sizeof(so));
}

static void latencies(void)
{
	enum { WAITED_US = 20000 };
	const struct rds_cmsg_rx_trace *trace;
	union addr self;
	struct got got;
	int fd = rds_bound(&self);
	char byte = 0;

	/* queued before anybody asked: zero */
	send_one(fd, &self);
	check_eq(poll_one(fd, POLLIN, WAIT_MS), POLLIN);
	must(ask(fd, 3, RDS_MSG_RX_DGRAM_DELIVERED,
		 RDS_MSG_RX_HDR_TO_DGRAM_START, RDS_MSG_RX_DGRAM_REASSEMBLE));
	trace = read_one(fd, &got, ROOM, SOL_RDS, RDS_CMSG_RXPATH_LATENCY,
			 sizeof(*trace));
	check(trace && trace->rx_traces == 3 && !trace->rx_trace[0] &&
	      !trace->rx_trace[1] && !trace->rx_trace[2]);

	send_one(fd, &self);
	check_eq(poll_one(fd, POLLIN, WAIT_MS), POLLIN);
	usleep(WAITED_US);
	trace = read_one(fd, &got, ROOM, SOL_RDS, RDS_CMSG_RXPATH_LATENCY,
			 sizeof(*trace));
	check(trace && trace->rx_traces == 3 &&
	      trace->rx_trace_pos[0] == RDS_MSG_RX_DGRAM_DELIVERED &&
	      trace->rx_trace_pos[1] == RDS_MSG_RX_HDR_TO_DGRAM_START &&
	      trace->rx_trace_pos[2] == RDS_MSG_RX_DGRAM_REASSEMBLE);
	/* it was not read for so long; two CPUs' clocks may differ a little */
	check(trace && trace->rx_trace[0] > WAITED_US * 900ull);

	must(ask(fd, 1, RDS_MSG_RX_DGRAM_REASSEMBLE, 9, 9));
	send_one(fd, &self);
	trace = read_one(fd, &got, ROOM, SOL_RDS, RDS_CMSG_RXPATH_LATENCY,
			 sizeof(*trace));
	check(trace && trace->rx_traces == 1 &&
	      trace->rx_trace_pos[0] == RDS_MSG_RX_DGRAM_REASSEMBLE &&
	      !trace->rx_trace_pos[1] && !trace->rx_trace[1] &&
	      !trace->rx_trace[2]);

	check_err(ask(fd, 4, 0, 1, 2), EFAULT);
	check_err(setsockopt(fd, SOL_RDS, SO_RDS_MSG_RXPATH_LATENCY, &byte, 1),
		  EFAULT);
	must(ask(fd, 0, 0, 0, 0));
	send_one(fd, &self);
	read_one(fd, &got, ROOM, SOL_RDS, RDS_CMSG_RXPATH_LATENCY, 32);
	check_eq(got.msg.msg_controllen, 0);
	/* a refused call ends the earlier request */
	must(ask(fd, 1, 0, 0, 0));
	check_err(ask(fd, 2, 0, 3, 0), EFAULT);
	send_one(fd, &self);
	read_one(fd, &got, ROOM, SOL_RDS, RDS_CMSG_RXPATH_LATENCY, 32);
	check_eq(got.msg.msg_controllen, 0);
	close(fd);
}

/* Without a transport of RDMA there is none to ask for. */
static void transports(void)
{
	static const int none[] = { RDS_TRANS_IB, RDS_TRANS_GAP,
				    RDS_TRANS_TCP };
	static const int bad[] = { -1, 3, 99 };
	int fd = rds_socket(), value = RDS_TRANS_IB;

	check_eq(rds_get_int(fd, SOL_RDS, SO_RDS_TRANSPORT), RDS_TRANS_NONE);
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		check_err(setsockopt(fd, SOL_RDS, SO_RDS_TRANSPORT, &none[i],
				     sizeof(int)), ENOPROTOOPT);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check_err(setsockopt(fd, SOL_RDS, SO_RDS_TRANSPORT, &bad[i],
				     sizeof(int)), EINVAL);
	check_err(setsockopt(fd, SOL_RDS, SO_RDS_TRANSPORT, &value, 3),
		  EINVAL);
	check_err(setsockopt(fd, SOL_RDS, SO_RDS_TRANSPORT, NULL, 4), EFAULT);
	close(fd);
	fd = rds_bound(NULL);
	check_err(setsockopt(fd, SOL_RDS, SO_RDS_TRANSPORT, &value, 4),
		  EOPNOTSUPP);
	check_eq(rds_get_int(fd, SOL_RDS, SO_RDS_TRANSPORT), 3);
	close(fd);
}

static const struct tap_case cases[] = {
	{ "stamps", "SO_TIMESTAMP of both kinds, at both levels", stamps,
	  0, 0 },
	{ "stamping", "SO_TIMESTAMPING tells when a message came", stamping,
	  0, 0 },
	{ "stamp_levels", "the last one counts, at whichever level it was asked for",
	  stamp_levels, 0, 0 },
	{ "stamp_kinds", "the last kind of time stamp asked for counts",
	  stamp_kinds, 0, 0 },
	{ "latencies", "latencies as asked for, and no longer", latencies,
	  TAP_EACH_FAMILY, 0 },
	{ "transports", "SO_RDS_TRANSPORT: once, and existing ones only",
	  transports, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
