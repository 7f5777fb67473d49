// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many connections: helper_connect_mesh LOCALS REMOTES
 *
 * Both are lists of addresses, with commas between. A socket at each local
 * address pings each remote one, so there is a connection for each pair. Says
 * "connected N" when all have answered, and holds the sockets until it is
 * killed.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"

enum {
	MAX		= 64,
	ANSWER_MS	= 60000,
};

static char *locals[MAX], *remotes[MAX];
static int fds[MAX];

static int split(char *list, char **out)
{
	int n = 0;

	for (char *host = strtok(list, ","); host; host = strtok(NULL, ",")) {
		if (n == MAX)
			tap_fail("too many addresses");
		out[n++] = host;
	}
	return n;
}

static void ping_all(int fd, int nr)
{
	union addr to;

	for (int i = 0; i < nr; i++) {
		to = addr_of(remotes[i], 0);
		must(rds_send(fd, "", 0, 0, &to));
	}
}

static void answers(int fd, int nr)
{
	union addr from;
	char byte;

	while (nr--)
		must(rds_recv_within(fd, &byte, 1, ANSWER_MS, &from));
}

int main(int argc, char **argv)
{
	int nr_locals, nr_remotes;

	if (argc != 3)
		tap_fail("usage: helper_connect_mesh LOCALS REMOTES");
	nr_locals = split(argv[1], locals);
	nr_remotes = split(argv[2], remotes);
	for (int i = 0; i < nr_locals; i++)
		fds[i] = rds_bound_to(locals[i], 0, NULL);
	/* one socket after the other, so that progress is bounded */
	for (int i = 0; i < nr_locals; i++) {
		ping_all(fds[i], nr_remotes);
		answers(fds[i], nr_remotes);
	}
	printf("connected %d\n", nr_locals * nr_remotes);
	fflush(stdout);
	for (;;)
		pause();
}
