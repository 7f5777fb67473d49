// SPDX-License-Identifier: GPL-2.0-only
/*
 * Socket options, control messages and ioctls: each that exists answers, each
 * that does not says so, and bad arguments are refused without harm.
 *
 * timeout: 120
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

#include "congest.h"
#include "counters.h"
#include "sock.h"
#include "tap.h"

enum {
	POISON	= 0xa5,
	BIG	= 512,		/* bytes; larger than any option */
};

/* ---------------------------------------------------------------- unknown */

static void unknown_options(void)
{
	static const int options[] = {
		0, 4, 13, 99, 100, 108, 200, 9999, 10002, 10018, -1,
	};
	int fd = rds_bound(NULL), value = 1;
	socklen_t len;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		tap_context("option %d", options[i]);
		check_err(setsockopt(fd, SOL_RDS, options[i], &value,
				     sizeof(value)), ENOPROTOOPT);
		len = sizeof(value);
		check_err(getsockopt(fd, SOL_RDS, options[i], &value, &len),
			  ENOPROTOOPT);
	}
	tap_context("level");
	check_err(setsockopt(fd, SOL_RDS + 1, 1, &value, sizeof(value)),
		  ENOPROTOOPT);
	len = sizeof(value);
	check_err(getsockopt(fd, SOL_RDS + 1, 1, &value, &len), ENOPROTOOPT);
	close(fd);
}

static void one_way_options(void)
{
	struct xrds_dest_status st = { 0 };
	char address[128] = "";
	socklen_t len = sizeof(address);
	int fd = rds_bound(NULL);

	check_err(getsockopt(fd, SOL_RDS, XRDS_UEK_CONN_RESET6, address, &len),
		  ENOPROTOOPT);
	check_err(setsockopt(fd, SOL_RDS, XRDS_DEST_STATUS, &st, sizeof(st)),
		  ENOPROTOOPT);
	check_err(getsockopt(fd, SOL_RDS, XRDS_REPLY_RELEASE, address, &len),
		  ENOPROTOOPT);
	check_err(getsockopt(fd, SOL_RDS, RDS_CANCEL_SENT_TO, address, &len),
		  ENOPROTOOPT);
	close(fd);
}

static void unknown_cmsgs(void)
{
	static const int types[] = { 0, 10, 14, 99, 100, 103, 104, 105, 9999 };
	char data[64] = "";
	union addr self;
	int fd = rds_bound(&self);

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		tap_context("type %d", types[i]);
		check_err(rds_send_cmsg(fd, &self, types[i], data,
					sizeof(data)), EINVAL);
		check_err(rds_send_cmsg(fd, &self, types[i], data, 0), EINVAL);
	}
	tap_context("nothing was sent");
	check_eq(poll_one(fd, POLLIN, 0), 0);
	close(fd);
}

static void other_cmsgs(void)
{
	char control[CMSG_SPACE(4)] __aligned(8) = { 0 };
	struct iovec iov = { "x", 1 };
	union addr self;
	int fd = rds_bound(&self);
	struct msghdr msg = {
		.msg_name = &self, .msg_namelen = addr_len(&self),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	char byte;

	/* another level's: not ours to judge */
	cmsg->cmsg_len = CMSG_LEN(4);
	cmsg->cmsg_level = SOL_IP;
	cmsg->cmsg_type = 99;
	check_ret(sendmsg(fd, &msg, 0), 1);
	check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL), 1);
	/* broken lengths */
	cmsg->cmsg_level = SOL_RDS;
	cmsg->cmsg_len = CMSG_LEN(0) - 1;
	check_err(sendmsg(fd, &msg, 0), EINVAL);
	cmsg->cmsg_len = sizeof(control) + 1;
	check_err(sendmsg(fd, &msg, 0), EINVAL);
	check_eq(poll_one(fd, POLLIN, 0), 0);
	close(fd);
}

static void unknown_ioctls(void)
{
	char data[BIG] = "";
	int fd = rds_bound(NULL);

	for (int i = 2; i < 16; i++) {
		if (SIOCPROTOPRIVATE + i == SIOCXRDSBARRIER)
			continue;
		tap_context("SIOCPROTOPRIVATE + %d", i);
		check_err(ioctl(fd, SIOCPROTOPRIVATE + i, data), ENOTTY);
	}
	close(fd);
}

/* ------------------------------------------------------------------ sizes */

static void set_sizes(void)
{
	static const struct { int option; socklen_t len; } options[] = {
		{ XRDS_DEST_SNDBUF, sizeof(struct xrds_dest_sndbuf) },
		{ XRDS_CONG_EAGAIN, sizeof(int) },
		{ XRDS_DELIVERED_EVENT, sizeof(int) },
		{ RDS_RECVERR, sizeof(int) },
		{ RDS_CONG_MONITOR, sizeof(int) },
		{ XRDS_UEK_INQ, sizeof(int) },
	};
	char data[BIG] = "";
	int fd = rds_bound(NULL);

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		for (socklen_t len = 0; len < options[i].len; len++) {
			tap_context("option %d, %u bytes", options[i].option,
				    len);
			check_err(setsockopt(fd, SOL_RDS, options[i].option,
					     data, len), EINVAL);
		}
	check_err(setsockopt(fd, SOL_RDS, XRDS_CONG_EAGAIN, data,
			     sizeof(int) + 1), EINVAL);
	check_err(setsockopt(fd, SOL_RDS, XRDS_DELIVERED_EVENT, data,
			     sizeof(int) + 1), EINVAL);
	tap_context("negative");
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		check_err(setsockopt(fd, SOL_RDS, options[i].option, data, -1),
			  EINVAL);
	close(fd);
}

static void get_sizes(void)
{
	static const struct { int option; socklen_t len; } options[] = {
		{ XRDS_DEST_STATUS, sizeof(struct xrds_dest_status) },
		{ XRDS_DEST_SNDBUF, sizeof(struct xrds_dest_sndbuf) },
		{ XRDS_CONG_EAGAIN, sizeof(int) },
		{ XRDS_DELIVERED_EVENT, sizeof(int) },
		{ RDS_RECVERR, sizeof(int) },
		{ XRDS_UEK_TRANSPORT, sizeof(int) },
		{ XRDS_UEK_INQ, sizeof(int) },
	};
	unsigned char data[BIG];
	int fd = rds_bound(NULL);
	union addr to = addr_of(tap_host, 4000);
	socklen_t len;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		for (socklen_t size = 0; size < options[i].len; size++) {
			tap_context("option %d, %u bytes", options[i].option,
				    size);
			len = size;
			check_err(getsockopt(fd, SOL_RDS, options[i].option,
					     data, &len), EINVAL);
		}
		tap_context("option %d", options[i].option);
		memset(data, POISON, sizeof(data));
		memcpy(data, &to, sizeof(to));
		len = sizeof(data);
		check_ret(getsockopt(fd, SOL_RDS, options[i].option, data,
				     &len), 0);
		check_eq(len, options[i].len);
		for (size_t j = options[i].len; j < sizeof(data); j++)
			if (data[j] != (j < sizeof(to) ?
					((unsigned char *)&to)[j] : POISON))
				tap_fail("byte %zu was written", j);
	}
	close(fd);
}

static void reserved_fields(void)
{
	struct xrds_dest_sndbuf arg = { .bytes = 65536, .reserved = 1 };
	int fd = rds_bound(NULL);

	arg.dest.ss_family = AF_UNSPEC;
	check_err(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &arg, sizeof(arg)),
		  EINVAL);
	arg.reserved = 0;
	check_ret(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &arg, sizeof(arg)),
		  0);
	arg.dest.ss_family = AF_UNIX;
	check_err(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &arg, sizeof(arg)),
		  EINVAL);
	close(fd);
}

/* Addresses that nothing can be sent to */
static void no_dests(void)
{
	static const char * const hosts[] = {
		"0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1",
		"fe80::1",
	};
	struct xrds_dest_sndbuf arg = { .bytes = 65536 };
	struct xrds_dest_status st = { 0 };
	socklen_t len = sizeof(arg), size = sizeof(st);
	int fd = rds_bound(NULL);
	union addr to;

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		tap_context("%s", hosts[i]);
		to = addr_of(hosts[i], 4000);
		memcpy(&arg.dest, &to.ss, sizeof(arg.dest));
		memcpy(&st.dest, &to.ss, sizeof(st.dest));
		check_err(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &arg, len),
			  EINVAL);
		check_err(getsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &arg, &len),
			  EINVAL);
		check_err(getsockopt(fd, SOL_RDS, XRDS_DEST_STATUS, &st, &size),
			  EINVAL);
	}
	close(fd);
}

/* ----------------------------------------------------------------- values */

static int get_sndbuf(int fd, const union addr *dest)
{
	struct xrds_dest_sndbuf arg = { .bytes = 1, .reserved = 0 };
	socklen_t len = sizeof(arg);

	if (dest)
		memcpy(&arg.dest, dest, sizeof(*dest));
	must(getsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &arg, &len));
	check_eq(arg.reserved, 0);
	return arg.bytes;
}

static void set_sndbuf(int fd, const union addr *dest, u32 bytes)
{
	struct xrds_dest_sndbuf arg = { .bytes = bytes };

	if (dest)
		memcpy(&arg.dest, dest, sizeof(*dest));
	must(setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &arg, sizeof(arg)));
}

static void dest_sndbuf(void)
{
	union addr a = addr_of(tap_host, 4000), b = addr_of(tap_host, 4001);
	int fd = rds_bound(NULL);

	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, 100000);
	check_eq(get_sndbuf(fd, NULL), 100000);
	check_eq(get_sndbuf(fd, &a), 100000);
	set_sndbuf(fd, &a, 50000);
	check_eq(get_sndbuf(fd, &a), 50000);
	check_eq(get_sndbuf(fd, &b), 100000);
	set_sndbuf(fd, NULL, 70000);
	check_eq(get_sndbuf(fd, NULL), 70000);
	check_eq(get_sndbuf(fd, &a), 50000);
	check_eq(get_sndbuf(fd, &b), 70000);
	close(fd);
}

static void buffers(void)
{
	struct xrds_dest_status st;
	union addr to = addr_of(tap_host, 4000);
	int fd = rds_bound(NULL);

	/* the core stores twice the value; RDS uses the value that was asked
	 * for
	 */
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, 50000);
	rds_set_int(fd, SOL_SOCKET, SO_RCVBUF, 60000);
	check_eq(rds_get_int(fd, SOL_SOCKET, SO_SNDBUF), 2 * 50000);
	check_eq(rds_get_int(fd, SOL_SOCKET, SO_RCVBUF), 2 * 60000);
	must(dest_status(fd, &to, &st));
	check_eq(st.sndbuf, 50000);
	close(fd);
}

static void status_idle(void)
{
	struct xrds_dest_status st, want = { 0 };
	union addr to = addr_of(tap_host, 4000);
	int fd = rds_bound(NULL);

	/* asking about a destination must not make one */
	memcpy(&want.dest, &to, sizeof(to));
	want.sndbuf = rds_get_int(fd, SOL_SOCKET, SO_SNDBUF) / 2;
	memset(&st, POISON, sizeof(st));
	must(dest_status(fd, &to, &st));
	check_range(st.state, XRDS_DEST_IDLE, XRDS_DEST_UP);
	want.state = st.state;
	check(!memcmp(&st, &want, sizeof(st)));
	to = (union addr){ .sa.sa_family = AF_UNIX };
	check_err(dest_status(fd, &to, &st), EINVAL);
	close(fd);
}

/* A socket that has sent nothing there is told what others' messages have shown. */
static void status_of_others(void)
{
	int fd = rds_bound(NULL), tx = rds_bound(NULL), rx;
	struct xrds_dest_status st;
	union addr to;

	rx = small_receiver(&to);
	congest(tx, &to);
	must(dest_status(fd, &to, &st));
	check_eq(st.state, XRDS_DEST_UP);
	check_eq(st.flags, XRDS_DEST_CONGESTED);
	drain(rx);
	must(dest_status(fd, &to, &st));
	check_eq(st.flags, 0);
	close(rx);
	close(tx);
	close(fd);
}

static void status_unbound(void)
{
	struct xrds_dest_status st;
	union addr to = addr_of(tap_host, 4000);
	int fd = rds_socket();

	check_err(dest_status(fd, &to, &st), ENOTCONN);
	close(fd);
}

static void booleans(void)
{
	static const int options[] = { XRDS_CONG_EAGAIN, RDS_RECVERR,
				       XRDS_DELIVERED_EVENT };
	int fd = rds_bound(NULL);

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		tap_context("option %d", options[i]);
		check_eq(rds_get_int(fd, SOL_RDS, options[i]), 0);
		rds_set_int(fd, SOL_RDS, options[i], 7);
		check_eq(rds_get_int(fd, SOL_RDS, options[i]), 1);
		rds_set_int(fd, SOL_RDS, options[i], 0);
		check_eq(rds_get_int(fd, SOL_RDS, options[i]), 0);
	}
	close(fd);
}

static void timeouts(void)
{
	int fd = rds_bound(NULL);
	struct timeval tv = { 0 };
	socklen_t len = sizeof(tv);

	rds_timeout(fd, SO_SNDTIMEO, 1500);
	rds_timeout(fd, SO_RCVTIMEO, 2500);
	must(getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, &len));
	check_eq(tv.tv_sec * 1000 + tv.tv_usec / 1000, 1500);
	must(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, &len));
	check_eq(tv.tv_sec * 1000 + tv.tv_usec / 1000, 2500);
	close(fd);
}

static void so_error(void)
{
	int fd = rds_bound(NULL);

	check_eq(rds_get_int(fd, SOL_SOCKET, SO_ERROR), 0);
	check_eq(rds_get_int(fd, SOL_SOCKET, SO_ACCEPTCONN), 0);
	close(fd);
}

/* ------------------------------------------------------------------- info */

static void info_counters(void)
{
	int fd = rds_bound(NULL), ret;
	unsigned char data[16384];
	socklen_t len = 0, need;

	check_err(getsockopt(fd, SOL_RDS, RDS_INFO_COUNTERS, NULL, &len),
		  ENOSPC);
	need = len;
	check(need > 0 && need < sizeof(data) &&
	      !(need % sizeof(struct rds_info_counter)));
	len = need - 1;
	check_err(getsockopt(fd, SOL_RDS, RDS_INFO_COUNTERS, data, &len),
		  ENOSPC);
	check_eq(len, need);
	memset(data, POISON, sizeof(data));
	len = sizeof(data);
	ret = must(getsockopt(fd, SOL_RDS, RDS_INFO_COUNTERS, data, &len));
	check_eq(ret, sizeof(struct rds_info_counter));
	check_eq(len, need);
	check_eq(data[need], POISON);
	for (size_t at = 0; at < need; at += ret) {
		size_t name = strnlen((char *)data + at, 32);

		check(name > 0 && name < 32);
		for (; name < 32; name++)
			if (data[at + name])
				tap_fail("bytes behind a name");
	}
	close(fd);
}

static void counters_count(void)
{
	struct counters before = counters_read(), after;
	static const char * const names[] = {
		"send_queued", "recv_queued", "recv_delivered", "copy_to_user",
		"copy_from_user",
	};
	union addr self;
	int fd = rds_bound(&self);
	char data[100] = "";

	must(rds_send(fd, data, sizeof(data), 0, &self));
	must(rds_recv_within(fd, data, sizeof(data), WAIT_MS, NULL));
	after = counters_read();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		tap_context("%s", names[i]);
		check(counters_get(&before, names[i]) >= 0);
		check(counters_get(&after, names[i]) >
		      counters_get(&before, names[i]));
	}
	counters_free(&before);
	counters_free(&after);
	close(fd);
}

static void before_bind(void)
{
	char data[BIG] = "";
	int fd = rds_socket();
	socklen_t len;

	/* the answer may be an errno or success, and there is no harm */
	for (int option = 0; option < 128; option++) {
		len = sizeof(data);
		getsockopt(fd, SOL_RDS, option, data, &len);
		setsockopt(fd, SOL_RDS, option, data, sizeof(data));
		setsockopt(fd, SOL_RDS, option, data, 4);
	}
	for (int i = 0; i < 16; i++)
		ioctl(fd, SIOCPROTOPRIVATE + i, data);
	close(fd);
	fd = rds_bound(NULL);
	close(fd);
}

static const struct tap_case cases[] = {
	{ "unknown_options", "unknown options: ENOPROTOOPT", unknown_options,
	  0, 0 },
	{ "one_way_options", "set-only and get-only options: ENOPROTOOPT",
	  one_way_options, 0, 0 },
	{ "unknown_cmsgs", "unknown control messages: EINVAL, nothing sent",
	  unknown_cmsgs, 0, 0 },
	{ "other_cmsgs", "other levels' are ignored, broken lengths: EINVAL",
	  other_cmsgs, 0, 0 },
	{ "unknown_ioctls", "unknown ioctls: ENOTTY", unknown_ioctls, 0, 0 },
	{ "set_sizes", "short options to set: EINVAL", set_sizes, 0, 0 },
	{ "get_sizes", "short buffers to get: EINVAL; exact length otherwise",
	  get_sizes, 0, 0 },
	{ "reserved_fields", "reserved fields must be zero: EINVAL",
	  reserved_fields, 0, 0 },
	{ "no_dests", "nor may an address be one that nothing is sent to",
	  no_dests, 0, 0 },
	{ "dest_sndbuf", "XRDS_DEST_SNDBUF: own value, default, SO_SNDBUF",
	  dest_sndbuf, TAP_EACH_FAMILY, 0 },
	{ "buffers", "SO_SNDBUF and SO_RCVBUF mean the bytes asked for",
	  buffers, 0, 0 },
	{ "status_idle", "an unused destination's status is all zero",
	  status_idle, TAP_EACH_FAMILY, 0 },
	{ "status_of_others", "but for the state of its connection and port",
	  status_of_others, TAP_EACH_FAMILY, 0 },
	{ "status_unbound", "an unbound socket has no status: ENOTCONN",
	  status_unbound, 0, 0 },
	{ "booleans", "boolean options read as 0 or 1", booleans, 0, 0 },
	{ "timeouts", "timeouts read as they were set", timeouts, 0, 0 },
	{ "so_error", "SO_ERROR is clean", so_error, 0, 0 },
	{ "info_counters", "RDS_INFO_COUNTERS: lengths, names, no stray byte",
	  info_counters, 0, 0 },
	{ "counters_count", "a message is counted on both sides",
	  counters_count, 0, 0 },
	{ "before_bind", "any option of an unbound socket is harmless",
	  before_bind, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
