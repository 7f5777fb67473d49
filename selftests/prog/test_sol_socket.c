// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options of other levels than SOL_RDS. Each is honoured, refused, or has no
 * effect and stands in the table of xrds(7): selftests/check/docs compares that
 * table with no_effect[].
 *
 * Those that are honoured have tests of their own: test_options, test_trace,
 * test_send, test_recv, helper_stream_ends.
 *
 * timeout: 120
 */
#include <linux/filter.h>
#include <poll.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"

enum {
	LAST_OPTION	= 255,		/* the kernel has 84 of them */
	LAST_LEVEL	= 300,
	ROOM		= 1024,
	BYTES		= 100,
};

/* Of newer kernels: the C library's headers may lack them */
enum {
	RCVTIMEO_NEW = 66, SNDTIMEO_NEW = 67, TIMESTAMP_NEW = 63,
	TIMESTAMPNS_NEW = 64, TIMESTAMPING_NEW = 65,
	PREFER_BUSY_POLL = 69, BUSY_POLL_BUDGET = 70, BUF_LOCK = 72,
	RESERVE_MEM = 73, TXREHASH = 74, RCVMARK = 75, PASSPIDFD = 76,
	RCVPRIORITY = 82, PASSRIGHTS = 83, INQ = 84,
};

static const int honoured[] = {
	SO_SNDBUF, SO_SNDBUFFORCE, SO_RCVBUF, SO_RCVBUFFORCE, SO_LINGER,
	SO_RCVTIMEO, RCVTIMEO_NEW, SO_SNDTIMEO, SNDTIMEO_NEW,
	SO_TIMESTAMP, TIMESTAMP_NEW, SO_TIMESTAMPNS, TIMESTAMPNS_NEW,
	SO_TIMESTAMPING, TIMESTAMPING_NEW, SO_ZEROCOPY,
};

static const struct { int option; const char *name; } no_effect[] = {
	{ SO_DEBUG, "SO_DEBUG" },
	{ SO_REUSEADDR, "SO_REUSEADDR" },
	{ SO_REUSEPORT, "SO_REUSEPORT" },
	{ SO_DONTROUTE, "SO_DONTROUTE" },
	{ SO_BROADCAST, "SO_BROADCAST" },
	{ SO_KEEPALIVE, "SO_KEEPALIVE" },
	{ SO_OOBINLINE, "SO_OOBINLINE" },
	{ SO_NO_CHECK, "SO_NO_CHECK" },
	{ SO_PRIORITY, "SO_PRIORITY" },
	{ SO_BSDCOMPAT, "SO_BSDCOMPAT" },
	{ SO_PASSCRED, "SO_PASSCRED" },
	{ SO_RCVLOWAT, "SO_RCVLOWAT" },
	{ SO_BINDTODEVICE, "SO_BINDTODEVICE" },
	{ SO_BINDTOIFINDEX, "SO_BINDTOIFINDEX" },
	{ SO_ATTACH_FILTER, "SO_ATTACH_FILTER" },
	{ SO_ATTACH_BPF, "SO_ATTACH_BPF" },
	{ SO_ATTACH_REUSEPORT_CBPF, "SO_ATTACH_REUSEPORT_CBPF" },
	{ SO_ATTACH_REUSEPORT_EBPF, "SO_ATTACH_REUSEPORT_EBPF" },
	{ SO_DETACH_FILTER, "SO_DETACH_FILTER" },
	{ SO_LOCK_FILTER, "SO_LOCK_FILTER" },
	{ SO_PASSSEC, "SO_PASSSEC" },
	{ SO_MARK, "SO_MARK" },
	{ SO_RXQ_OVFL, "SO_RXQ_OVFL" },
	{ SO_WIFI_STATUS, "SO_WIFI_STATUS" },
	{ SO_NOFCS, "SO_NOFCS" },
	{ SO_SELECT_ERR_QUEUE, "SO_SELECT_ERR_QUEUE" },
	{ SO_BUSY_POLL, "SO_BUSY_POLL" },
	{ PREFER_BUSY_POLL, "SO_PREFER_BUSY_POLL" },
	{ BUSY_POLL_BUDGET, "SO_BUSY_POLL_BUDGET" },
	{ SO_MAX_PACING_RATE, "SO_MAX_PACING_RATE" },
	{ SO_INCOMING_CPU, "SO_INCOMING_CPU" },
	{ SO_CNX_ADVICE, "SO_CNX_ADVICE" },
	{ SO_TXTIME, "SO_TXTIME" },
	{ BUF_LOCK, "SO_BUF_LOCK" },
	{ RESERVE_MEM, "SO_RESERVE_MEM" },
	{ TXREHASH, "SO_TXREHASH" },
	{ RCVMARK, "SO_RCVMARK" },
	{ PASSPIDFD, "SO_PASSPIDFD" },
	{ RCVPRIORITY, "SO_RCVPRIORITY" },
	{ PASSRIGHTS, "SO_PASSRIGHTS" },
	{ INQ, "SO_INQ" },
};

static const char *name_of(int option)
{
	for (size_t i = 0; i < ARRAY_SIZE(no_effect); i++)
		if (no_effect[i].option == option)
			return no_effect[i].name;
	return NULL;
}

static bool is_honoured(int option)
{
	for (size_t i = 0; i < ARRAY_SIZE(honoured); i++)
		if (honoured[i] == option)
			return true;
	return false;
}

/* Does the kernel take it, with any argument that an option may have? */
static bool accepted(int fd, int option)
{
	static struct sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
	static const int ints[] = { 1, 0, 0x7fffffff };
	struct sock_fprog filter = { 1, &drop_all };
	struct { int clock, flags; } txtime = { 1, 0 };
	struct linger linger = { 1, 1 };
	struct timeval time = { 1, 0 };
	bool taken;

	taken = !setsockopt(fd, SOL_SOCKET, option, "lo", 3);
	taken |= !setsockopt(fd, SOL_SOCKET, option, &filter, sizeof(filter));
	taken |= !setsockopt(fd, SOL_SOCKET, option, &txtime, sizeof(txtime));
	taken |= !setsockopt(fd, SOL_SOCKET, option, &linger, sizeof(linger));
	taken |= !setsockopt(fd, SOL_SOCKET, option, &time, sizeof(time));
	for (size_t i = 0; i < ARRAY_SIZE(ints) && !taken; i++)
		taken = !setsockopt(fd, SOL_SOCKET, option, &ints[i],
				    sizeof(ints[i]));
	return taken;
}

/* A message comes as ever: at once, whole, and alone */
static void check_message(int fd)
{
	char control[ROOM], data[BYTES] = "", got[BYTES];
	struct iovec iov = { got, sizeof(got) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	union addr self = rds_self(fd);

	check_ret(rds_send(fd, data, sizeof(data), 0, &self), sizeof(data));
	check_eq(poll_one(fd, POLLIN, tap_ms(WAIT_MS)), POLLIN);
	check_ret(recvmsg(fd, &msg, MSG_DONTWAIT), sizeof(data));
	check_eq(msg.msg_controllen, 0);
	check_eq(msg.msg_flags, 0);
	check_eq(rds_get_int(fd, SOL_SOCKET, SO_ERROR), 0);
}

static void every_option(void)
{
	unsigned int refused = 0, listed = 0;

	for (int option = 0; option <= LAST_OPTION; option++) {
		int fd = rds_bound(NULL);

		tap_context("option %d", option);
		if (is_honoured(option))
			check(accepted(fd, option));
		else if (!accepted(fd, option))
			refused++;
		else if (!name_of(option))
			tap_fail("accepted, and not in the table of xrds(7)");
		else
			listed++;
		if (!is_honoured(option))
			check_message(fd);
		close(fd);
	}
	tap_diag("%u refused, %u without effect", refused, listed);
}

static void other_levels(void)
{
	int fd = rds_bound(NULL), value = 1;
	socklen_t len;

	for (int level = 0; level <= LAST_LEVEL; level++) {
		if (level == SOL_SOCKET || level == SOL_RDS)
			continue;
		tap_context("level %d", level);
		for (int option = 0; option < 4; option++) {
			len = sizeof(value);
			check_err(setsockopt(fd, level, option, &value, len),
				  ENOPROTOOPT);
			check_err(getsockopt(fd, level, option, &value, &len),
				  ENOPROTOOPT);
		}
	}
	close(fd);
}

static const struct tap_case cases[] = {
	{ "every_option", "SOL_SOCKET: honoured, refused, or in the table",
	  every_option, 0, 0 },
	{ "other_levels", "other levels have no options", other_levels, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
