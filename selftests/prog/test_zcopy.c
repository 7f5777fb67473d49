// SPDX-License-Identifier: GPL-2.0-only
/*
 * MSG_ZEROCOPY: what asks for it, and when its completion comes. Here the payload
 * is copied; rxe/zcopy has what a device reads from the program's memory.
 *
 * timeout: 60
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rdma.h"
#include "sock.h"
#include "tap.h"

enum {
	COOKIE	= 0x5eed,
	SENDS	= 20,
	UNREAD	= 20000,	/* more than any kernel's optmem_max is for */
};

static int zcopy_bound(void)
{
	int fd = rds_bound(NULL);

	rds_set_int(fd, SOL_SOCKET, SO_ZEROCOPY, 1);
	return fd;
}

static ssize_t send_cookie(int fd, const union addr *to, u32 cookie,
			   const void *data, size_t len)
{
	struct ctl ctl = { 0 };

	ctl_add(&ctl, RDS_CMSG_ZCOPY_COOKIE, &cookie, sizeof(cookie));
	return ctl_send(fd, to, &ctl, data, len,
			MSG_ZEROCOPY | MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* ---------------------------------------------------------------- asking */

static void refused(void)
{
	u64 cookie = COOKIE;
	struct ctl ctl = { 0 };
	int fd = zcopy_bound();
	union addr to;
	int rx = rds_bound(&to);

	tap_context("the flag without a cookie");
	check_err(rds_send(fd, "x", 1, MSG_ZEROCOPY, &to), EINVAL);
	tap_context("a cookie without the flag");
	check_err(rds_send_cmsg(fd, &to, RDS_CMSG_ZCOPY_COOKIE, &cookie, 4),
		  EINVAL);
	for (size_t len = 0; len <= sizeof(cookie); len++) {
		if (len == sizeof(u32))
			continue;
		tap_context("a cookie of %zu bytes", len);
		memset(&ctl, 0, sizeof(ctl));
		ctl_add(&ctl, RDS_CMSG_ZCOPY_COOKIE, &cookie, len);
		check_err(ctl_send(fd, &to, &ctl, "x", 1, MSG_ZEROCOPY),
			  EINVAL);
	}
	tap_context("two cookies");
	memset(&ctl, 0, sizeof(ctl));
	ctl_add(&ctl, RDS_CMSG_ZCOPY_COOKIE, &cookie, sizeof(u32));
	ctl_add(&ctl, RDS_CMSG_ZCOPY_COOKIE, &cookie, sizeof(u32));
	check_err(ctl_send(fd, &to, &ctl, "x", 1, MSG_ZEROCOPY), EINVAL);
	tap_context("%s", "");
	check_quiet(fd);
	check_quiet(rx);
	close(fd);
	close(rx);
}

/* An op has a notice of its own: whichever comes first, nothing is sent. */
static void with_op(void)
{
	static u64 word;
	struct rds_iovec vec = { (uintptr_t)&word, sizeof(word) };
	int fd = zcopy_bound();
	struct target t;

	target_open(&t, PAGE_BYTES, RDS_RDMA_READWRITE);
	for (int i = 0; i < 6; i++) {
		u32 cookie = COOKIE;
		struct ctl ctl = { 0 };
		struct op op;

		tap_context("%s, %s", i & 1 ? "atomic" : "write",
			    i < 2 ? "cookie behind it" :
			    i < 4 ? "cookie before it" : "no cookie");
		if (i & 1)
			op = op_fadd(&t, 0, 1, &word);
		else
			op = op_write(&t, 0, &word, sizeof(word));
		if (i >= 2 && i < 4)
			ctl_add(&ctl, RDS_CMSG_ZCOPY_COOKIE, &cookie,
				sizeof(cookie));
		if (i & 1) {
			ctl_add(&ctl, op.type, &op.atomic, sizeof(op.atomic));
		} else {
			op_vector(&op, &vec, 1);
			ctl_add(&ctl, op.type, &op.rdma, sizeof(op.rdma));
		}
		if (i < 2)
			ctl_add(&ctl, RDS_CMSG_ZCOPY_COOKIE, &cookie,
				sizeof(cookie));
		check_err(ctl_send(fd, &t.addr, &ctl, "x", 1, MSG_ZEROCOPY),
			  EINVAL);
	}
	tap_context("%s", "");
	check_quiet(fd);
	check_quiet(t.fd);
	check(filled(t.mem, t.bytes, 0));
	target_close(&t);
	close(fd);
}

static void no_option(void)
{
	int fd = rds_bound(NULL);
	union addr to;
	int rx = rds_bound(&to);

	check_err(rds_send(fd, "x", 1, MSG_ZEROCOPY, &to), EINVAL);
	check_err(send_cookie(fd, &to, COOKIE, "x", 1), EINVAL);
	check_quiet(fd);
	close(fd);
	close(rx);
}

/* ----------------------------------------------------------- completions */

static void completes(void)
{
	static const size_t sizes[] = {
		0, 1, 1664, 4096, 4097, 100000, MSG_MAX_BYTES,
	};
	char *data = pages(MSG_MAX_BYTES), *copy = pages(MSG_MAX_BYTES);
	int fd = zcopy_bound();
	struct got got;
	union addr to;
	int rx = rds_bound(&to);

	stamp(data, MSG_MAX_BYTES, COOKIE);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		tap_context("%zu bytes", sizes[i]);
		check_ret(send_cookie(fd, &to, COOKIE + i, data, sizes[i]),
			  sizes[i]);
		check_eq(poll_one(fd, POLLIN, tap_ms(WAIT_MS)), POLLIN);
		check_ret(got_within(fd, &got, WAIT_MS), 0);
		if (check_eq(got.nr_zcopied, 1))
			check_eq(got.zcopied[0], COOKIE + i);
		check_eq(got.other, 0);
		memset(copy, 0, sizes[i]);
		check_ret(rds_recv_within(rx, copy, MSG_MAX_BYTES, WAIT_MS,
					  NULL), sizes[i]);
		check(!memcmp(copy, data, sizes[i]));
	}
	check_quiet(fd);
	close(fd);
	close(rx);
}

/* Several in one control message, in their order */
static void many(void)
{
	int fd = zcopy_bound(), nr = 0, calls = 0;
	struct got got;
	union addr to;
	int rx = rds_bound(&to);

	for (int i = 0; i < SENDS; i++)
		must(send_cookie(fd, &to, i, "x", 1));
	while (nr < SENDS && got_within(fd, &got, WAIT_MS) == 0) {
		calls++;
		check(got.nr_zcopied);
		for (int i = 0; i < got.nr_zcopied; i++)
			check_eq(got.zcopied[i], nr++);
	}
	check_eq(nr, SENDS);
	check_eq(calls, 1);
	close(fd);
	close(rx);
}

/* With too little room they stay, and data comes first */
static void no_room(void)
{
	const size_t room = CMSG_SPACE(sizeof(struct rds_zcopy_cookies));
	const size_t short_room = CMSG_LEN(sizeof(struct rds_zcopy_cookies)) - 1;
	union addr to, self;
	struct got got;
	int fd, rx;

	fd = rds_bound(&self);
	rds_set_int(fd, SOL_SOCKET, SO_ZEROCOPY, 1);
	rx = rds_bound(&to);
	for (int i = 0; i < RDS_MAX_ZCOOKIES + 1; i++)
		must(send_cookie(fd, &to, i, "x", 1));
	must(rds_send(rx, "data", 4, 0, &self));
	must_wait(rds_all_acked, &rx, WAIT_MS);
	tap_context("no room");
	check_ret(got_now(fd, &got, 0), 4);
	check_ret(got_now(fd, &got, 0), 0);
	check_eq(got.flags & MSG_CTRUNC, MSG_CTRUNC);
	tap_context("a byte less");
	check_ret(got_now(fd, &got, short_room), 0);
	check_eq(got.nr_zcopied, 0);
	check_eq(got.flags & MSG_CTRUNC, MSG_CTRUNC);
	tap_context("room for one");
	check_ret(got_now(fd, &got, room), 0);
	check_eq(got.nr_zcopied, RDS_MAX_ZCOOKIES);
	check_eq(got.flags & MSG_CTRUNC, MSG_CTRUNC);
	check_ret(got_now(fd, &got, room), 0);
	check_eq(got.nr_zcopied, 1);
	check_eq(got.flags & MSG_CTRUNC, 0);
	tap_context("%s", "");
	check_quiet(fd);
	close(fd);
	close(rx);
}

/* With room that cannot be written they stay, in their order */
static void unwritable(void)
{
	struct msghdr msg = {
		.msg_control = before_wall(PROT_READ) - PAGE_BYTES,
		.msg_controllen = CMSG_SPACE(sizeof(struct rds_zcopy_cookies)),
	};
	int fd = zcopy_bound();
	struct got got;
	union addr to;
	int rx = rds_bound(&to);

	for (int i = 0; i < 2; i++)
		must(send_cookie(fd, &to, i, "x", 1));
	must_wait(rds_all_acked, &fd, WAIT_MS);
	for (int i = 0; i < 2; i++)
		check_err(recvmsg(fd, &msg, MSG_DONTWAIT), EFAULT);
	check_eq(poll_one(fd, POLLIN, 0), POLLIN);
	check_ret(got_now(fd, &got, 1024), 0);
	if (check_eq(got.nr_zcopied, 2))
		check(!got.zcopied[0] && got.zcopied[1] == 1);
	check_quiet(fd);
	close(fd);
	close(rx);
}

/* A send that has failed has no completion; unread ones go with the socket. */
static void failed(void)
{
	char *data = pages(MSG_MAX_BYTES);
	int fd = zcopy_bound(), sent = 0;
	struct got got;
	union addr to;
	int rx = rds_bound(&to);

	stall_loop();
	while (send_cookie(fd, &to, sent, data, MSG_MAX_BYTES / 8) > 0)
		sent++;
	check_eq(errno, EAGAIN);
	check_range(sent, 1, MAX_ZCOPIED);
	check_ret(got_within(fd, &got, WAIT_MS), 0);
	check_eq(got.nr_zcopied, sent);
	check_quiet(fd);
	must(shutdown(fd, SHUT_WR));
	check_err(send_cookie(fd, &to, COOKIE, data, 1), EPIPE);
	check_quiet(fd);
	close(fd);

	fd = zcopy_bound();
	must(send_cookie(fd, &to, COOKIE, data, 1));
	close(fd);
	close(rx);
}

/* Nobody reads them: they have a bound, and the socket goes on when some are read.
 */
static void unread(void)
{
	int fd = zcopy_bound(), sent = 0;
	struct got got;
	union addr to;
	int rx = rds_bound(&to);
	char byte;

	while (sent < UNREAD && send_cookie(fd, &to, sent, "x", 1) == 1) {
		check_ret(rds_recv_within(rx, &byte, 1, WAIT_MS, NULL), 1);
		sent++;
	}
	check_eq(errno, ENOMEM);
	check_range(sent, RDS_MAX_ZCOOKIES, UNREAD - 1);
	check_ret(got_within(fd, &got, WAIT_MS), 0);
	check(got.nr_zcopied);
	check_ret(send_cookie(fd, &to, sent, "x", 1), 1);
	close(fd);
	close(rx);
}

int main(int argc, char **argv)
{
	static const struct tap_case cases[] = {
		{ "refused", "flag and cookie come together", refused, 0, 0 },
		{ "with_op", "no op goes with it", with_op, 0, 0 },
		{ "no_option", "SO_ZEROCOPY comes first", no_option, 0, 0 },
		{ "completes", "each size has one completion", completes,
		  TAP_EACH_FAMILY, 0 },
		{ "many", "one call reads many", many, 0, 0 },
		{ "no_room", "the rest stays", no_room, 0, 0 },
		{ "unwritable", "none is lost", unwritable, 0, 0 },
		{ "unread", "unread completions have a bound", unread, 0, 0 },
		{ "failed", "a failed send has none", failed, 0, 0 },
	};

	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
