// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: a small message passes large ones, but not those to its
 * own port.
 *
 *   test_pass recv LOCAL PORT
 *   test_pass send LOCAL REMOTE PORT
 *
 * The sender queues large messages to PORT, a small one to the port behind it
 * from another socket, and a small one to PORT from the first. The receiver sees
 * how many of the large ones are there when that to the other port is: if
 * nothing ever passed, all. It says "ready", and how many it saw; its exit
 * status is the verdict.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "sock.h"
#include "tap.h"

enum {
	LARGE		= 16,
	BYTES		= 1 << 20,
	SPACE		= 2 * LARGE * BYTES,
	LIMIT_MS	= 60000,
};

static char data[BYTES], want[BYTES];

/* Takes the next message to the first port, if there is one. */
static bool take(int fd, int number, int flags)
{
	size_t bytes = number < LARGE ? BYTES : 1;
	ssize_t got;

	got = flags ? rds_recv(fd, data, sizeof(data), flags, NULL) :
		      rds_recv_within(fd, data, sizeof(data), LIMIT_MS, NULL);
	if (got < 0 && flags)
		return false;
	check_ret(got, (long)bytes);
	memset(want, number, bytes);
	check(!memcmp(data, want, bytes));
	return true;
}

static void receive(const char *local, int port)
{
	int fd = rds_bound_to(local, port, NULL);
	int other = rds_bound_to(local, port + 1, NULL);
	int number = 0;
	char byte;

	rds_set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, SPACE);
	printf("ready\n");
	fflush(stdout);

	check_ret(rds_recv_within(other, &byte, 1, LIMIT_MS, NULL), 1);
	while (take(fd, number, MSG_DONTWAIT))
		number++;
	printf("%d of %d were there\n", number, LARGE);
	check(number < LARGE);
	while (number <= LARGE)
		take(fd, number++, 0);
}

static bool acknowledged(void *arg)
{
	return !rds_outq(*(int *)arg);
}

static void send_all(const char *local, const char *remote, int port)
{
	union addr to = addr_of(remote, port), there = addr_of(remote, port + 1);
	union addr warm = addr_of(remote, port + 2);
	int fd = rds_bound_to(local, 0, NULL);
	int other = rds_bound_to(local, 0, NULL);

	rds_set_int(fd, SOL_SOCKET, SO_SNDBUFFORCE, SPACE);
	/* the connection is up, and both ends know what the other one can */
	check_ret(rds_send(other, "w", 1, 0, &warm), 1);
	check(tap_wait(acknowledged, &other, LIMIT_MS));

	for (int i = 0; i < LARGE; i++) {
		memset(data, i, BYTES);
		check_ret(rds_send(fd, data, BYTES, 0, &to), BYTES);
	}
	memset(data, LARGE, 1);
	check_ret(rds_send(fd, data, 1, 0, &to), 1);
	check_ret(rds_send(other, "s", 1, 0, &there), 1);
	check(tap_wait(acknowledged, &fd, LIMIT_MS));
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "recv"))
		receive(argv[2], atoi(argv[3]));
	else if (argc == 5 && !strcmp(argv[1], "send"))
		send_all(argv[2], argv[3], atoi(argv[4]));
	else
		tap_fail("usage: test_pass recv|send LOCAL [REMOTE] PORT");
	fflush(stdout);
	tap_child_exit();
}
