// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_late_reader LOCAL PORT RCVBUF
 *
 * A receiver that reads nothing until SIGUSR1, then everything. Says "ready"
 * once bound and "reading" once it reads.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"

int main(int argc, char **argv)
{
	char *data = malloc(MSG_MAX_BYTES);
	sigset_t set;
	int fd, sig;

	if (argc != 4 || !data)
		tap_fail("usage: helper_late_reader LOCAL PORT RCVBUF");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = rds_bound_to(argv[1], atoi(argv[2]), NULL);
	rds_set_int(fd, SOL_SOCKET, SO_RCVBUF, atoi(argv[3]));
	printf("ready\n");
	fflush(stdout);
	sigwait(&set, &sig);
	printf("reading\n");
	fflush(stdout);
	for (;;)
		must(rds_recv(fd, data, MSG_MAX_BYTES, 0, NULL));
}
