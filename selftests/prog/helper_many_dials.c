// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_many_dials LOCAL FIRST COUNT UID
 *
 * A user sends a message to each of COUNT nodes, the first of which has the address
 * FIRST: so many connections wait to be made. Says "waiting" when all messages are
 * queued, and holds its sockets until it is killed.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"

enum {
	PORT		= 4000,
	EACH		= 4000,		/* destinations of a socket */
};

static int open_socket(const char *local)
{
	struct linger abort = { 1, 0 };
	int fd = rds_bound_to(local, 0, NULL);

	must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
	return fd;
}

int main(int argc, char **argv)
{
	union addr to;
	u32 first;
	int fd = -1;

	if (argc != 5)
		tap_fail("usage: helper_many_dials LOCAL FIRST COUNT UID");
	must(setresuid(atoi(argv[4]), atoi(argv[4]), atoi(argv[4])));
	to = addr_of(argv[2], PORT);
	first = ntohl(to.in.sin_addr.s_addr);
	for (int i = 0; i < atoi(argv[3]); i++) {
		if (i % EACH == 0)
			fd = open_socket(argv[1]);
		to.in.sin_addr.s_addr = htonl(first + i);
		must(rds_send(fd, "x", 1, MSG_DONTWAIT, &to));
	}
	printf("waiting\n");
	fflush(stdout);
	for (;;)
		pause();
}
