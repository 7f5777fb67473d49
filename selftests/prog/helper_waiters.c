// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: one of many congested ports clears.
 *
 *   helper_waiters ports LOCAL PORT PORTS
 *   helper_waiters wait LOCAL REMOTE PORT PORTS SENDERS ECHO_PORT
 *
 * The receiver has PORTS sockets that a message congests. It says "ready", and
 * from SIGUSR1 on it reads the first of them. The other side has SENDERS sockets
 * refused by each, and says "waiting". A bystander exchanges messages with
 * helper_round_trips at ECHO_PORT. The exit status is the verdict.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"
#include "sock.h"
#include "tap.h"

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

static void ports(const char *local, int port, int nr)
{
	static int fds[CROWD_PORTS + 1];
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	crowd_listen(local, port, nr, fds);
	say("ready");
	sigwait(&set, &sig);
	crowd_read(nr, fds);
}

static void release(struct crowd *c)
{
	(void)c;
	say("waiting");
}

static void wait_all(const char *local, char **argv)
{
	static struct crowd c;

	c.local = local;
	c.to = addr_of(argv[0], atoi(argv[1]));
	c.ports = atoi(argv[2]);
	c.senders = atoi(argv[3]);
	c.by_rx = rds_bound_to(local, 0, NULL);
	c.by_tx = c.by_rx;
	c.by_to = addr_of(argv[0], atoi(argv[4]));
	crowd_check(&c, release);
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "ports") &&
	    atoi(argv[4]) <= CROWD_PORTS)
		ports(argv[2], atoi(argv[3]), atoi(argv[4]));
	else if (argc == 8 && !strcmp(argv[1], "wait") &&
		 atoi(argv[6]) <= CROWD_SENDERS)
		wait_all(argv[2], argv + 3);
	else
		tap_fail("usage: helper_waiters ports|wait ...");
	fflush(stdout);
	tap_child_exit();
}
