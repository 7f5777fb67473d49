// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_cong_notice LOCAL REMOTE PORT
 *
 * A sender with RDS_CONG_MONITOR against a receiver that does not read
 * (helper_late_reader). Says "blocked" when it was refused for congestion. When
 * the receiver has read, one recvmsg() names the port in the mask and the
 * address, and there is no second notice. Its exit status is the verdict.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "congest.h"
#include "sock.h"
#include "tap.h"

enum {
	BYTES		= 8192,
	LIMIT_MS	= 30000,
	QUIET_MS	= 300,
	NEWS		= POLLIN | POLLWRBAND,
};

static char data[BYTES];

static void check_notice(int fd, const union addr *to)
{
	char control[1024] __aligned(8);
	struct iovec iov = { data, sizeof(data) };
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	int masks = 0, names = 0;
	struct cmsghdr *c;
	union addr from;
	u64 mask;

	check_ret(recvmsg(fd, &m, MSG_DONTWAIT), 0);
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		check_eq(c->cmsg_level, SOL_RDS);
		if (c->cmsg_type == RDS_CMSG_CONG_UPDATE) {
			memcpy(&mask, CMSG_DATA(c), sizeof(mask));
			check_eq(mask, RDS_CONG_MONITOR_MASK(addr_port(to)));
			masks++;
		} else {
			check_eq(c->cmsg_type, XRDS_CMSG_CONG_CLEARED);
			check_eq(c->cmsg_len, CMSG_LEN(sizeof(from.ss)));
			memcpy(&from.ss, CMSG_DATA(c), sizeof(from.ss));
			check(addr_same(&from, to));
			names++;
		}
	}
	check_eq(masks, 1);
	check_eq(names, 1);
}

int main(int argc, char **argv)
{
	union addr to;
	int fd;

	if (argc != 4)
		tap_fail("usage: helper_cong_notice LOCAL REMOTE PORT");
	fd = rds_bound_to(argv[1], 0, NULL);
	to = addr_of(argv[2], atoi(argv[3]));
	rds_set_int(fd, SOL_RDS, RDS_CONG_MONITOR, 1);
	send_until(fd, &to, BYTES, ENOBUFS, LIMIT_MS);
	check_eq(poll_one(fd, NEWS, QUIET_MS), 0);
	printf("blocked\n");
	fflush(stdout);
	check_eq(poll_one(fd, NEWS, tap_ms(LIMIT_MS)), NEWS);
	check_notice(fd, &to);
	check_eq(poll_one(fd, NEWS, QUIET_MS), 0);
	printf("cleared\n");
	fflush(stdout);
	tap_child_exit();
}
