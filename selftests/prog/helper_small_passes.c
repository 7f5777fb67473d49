// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: a small message passes large ones, but not those to its
 * own port.
 *
 *   helper_small_passes recv LOCAL PORT
 *   helper_small_passes send LOCAL REMOTE PORT
 *
 * The sender connects, says "connected", and waits for SIGCONT. Then it queues
 * large messages to PORT, a small one to the port behind it from another socket,
 * and a small one to PORT from the first, and says "queued". The receiver sees by
 * their time stamps how many of the large ones were there when that to the other
 * port was: none, as the device is given only a small part of one at a time. It
 * says "ready", and how many; its exit status is the verdict.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "sock.h"
#include "tap.h"

enum {
	LARGE		= 16,
	BYTES		= 1 << 20,
	SPACE		= 2 * LARGE * BYTES,
	LIMIT_MS	= 60000,
};

static char data[BYTES], want[BYTES];

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

/* Takes the next message; when it came, in microseconds */
static long long take(int fd, char byte, size_t bytes)
{
	char control[CMSG_SPACE(sizeof(struct timeval))] __aligned(8);
	struct iovec iov = { data, sizeof(data) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	struct timeval came;

	check_eq(poll_one(fd, POLLIN, tap_ms(LIMIT_MS)), POLLIN);
	check_ret(recvmsg(fd, &msg, MSG_DONTWAIT), (long)bytes);
	memset(want, byte, bytes);
	check(!memcmp(data, want, bytes));
	cmsg = CMSG_FIRSTHDR(&msg);
	if (!cmsg || cmsg->cmsg_type != SCM_TIMESTAMP)
		tap_fail("no time stamp");
	memcpy(&came, CMSG_DATA(cmsg), sizeof(came));
	return came.tv_sec * 1000000ll + came.tv_usec;
}

static void receive(const char *local, int port)
{
	int fd = rds_bound_to(local, port, NULL);
	int other = rds_bound_to(local, port + 1, NULL);
	long long came[LARGE + 1], passing;
	int number = 0;

	rds_set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, SPACE);
	rds_set_int(fd, SOL_SOCKET, SO_TIMESTAMP, 1);
	rds_set_int(other, SOL_SOCKET, SO_TIMESTAMP, 1);
	say("ready");

	for (int i = 0; i <= LARGE; i++)
		came[i] = take(fd, i, i < LARGE ? BYTES : 1);
	passing = take(other, 's', 1);
	while (number < LARGE && came[number] <= passing)
		number++;
	printf("%d of %d were there\n", number, LARGE);
	check_eq(number, 0);
}

static void send_all(const char *local, const char *remote, int port)
{
	union addr to = addr_of(remote, port), there = addr_of(remote, port + 1);
	union addr warm = addr_of(remote, port + 2);
	int fd = rds_bound_to(local, 0, NULL);
	int other = rds_bound_to(local, 0, NULL), number;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCONT);
	must(sigprocmask(SIG_BLOCK, &set, NULL));
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUFFORCE, SPACE);
	/* the connection is up, and both ends know the features of the other */
	check_ret(rds_send(other, "w", 1, 0, &warm), 1);
	check(tap_wait(rds_all_acked, &other, LIMIT_MS));
	say("connected");
	check_eq(sigwait(&set, &number), 0);

	for (int i = 0; i < LARGE; i++) {
		memset(data, i, BYTES);
		check_ret(rds_send(fd, data, BYTES, 0, &to), BYTES);
	}
	memset(data, LARGE, 1);
	check_ret(rds_send(fd, data, 1, 0, &to), 1);
	check_ret(rds_send(other, "s", 1, 0, &there), 1);
	say("queued");
	check(tap_wait(rds_all_acked, &fd, LIMIT_MS));
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "recv"))
		receive(argv[2], atoi(argv[3]));
	else if (argc == 5 && !strcmp(argv[1], "send"))
		send_all(argv[2], argv[3], atoi(argv[4]));
	else
		tap_fail("usage: helper_small_passes recv|send LOCAL [REMOTE] PORT");
	fflush(stdout);
	tap_child_exit();
}
