// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_many_blocked LOCAL REMOTE PORT NR
 *
 * NR sockets, each with a connection of its own, send to a receiver that does not
 * read (helper_late_reader), until each is refused for congestion. Says "blocked"
 * then, and "released" when all may send again.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "congest.h"
#include "sock.h"
#include "tap.h"

enum {
	BYTES		= 1024,
	MOST		= 256,		/* types of service */
	LIMIT_MS	= 60000,
};

int main(int argc, char **argv)
{
	int nr = argc == 5 ? atoi(argv[4]) : 0;
	union addr to;
	int fds[MOST];

	if (nr < 1 || nr > MOST)
		tap_fail("usage: helper_many_blocked LOCAL REMOTE PORT NR");
	to = addr_of(argv[2], atoi(argv[3]));
	for (int i = 0; i < nr; i++) {
		fds[i] = rds_bound_to(argv[1], 0, NULL);
		must(ioctl(fds[i], SIOCRDSSETTOS, &(rds_tos_t){ i }));
		send_until(fds[i], &to, BYTES, ENOBUFS, LIMIT_MS);
	}
	printf("blocked\n");
	fflush(stdout);
	for (int i = 0; i < nr; i++)
		check_eq(poll_one(fds[i], POLLOUT, -1), POLLOUT);
	printf("released\n");
	tap_child_exit();
}
