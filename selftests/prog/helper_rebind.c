// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: sockets that are bound to the same port, one after the
 * other, while messages of those before wait.
 *
 *   helper_rebind recv LOCAL PORT LIVES COUNT
 *   helper_rebind send LOCAL REMOTE PORT LIVES COUNT
 *
 * The sender binds a socket to PORT, sends COUNT messages to PORT there and closes
 * it, LIVES times, and says "queued". The receiver says "ready", waits for SIGCONT,
 * and checks that it gets the messages of each socket in order, then the end of
 * that stream, and then those of the next socket.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"

enum {
	BYTES		= 8192,
	LIMIT_MS	= 60000,
};

struct head {
	int life;
	int number;
};

static char data[BYTES];

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

static void take(int fd, int life, int number, int count)
{
	struct head want = { life, number };
	bool mark, last = number == count;
	union addr from;
	ssize_t len;

	check_eq(poll_one(fd, POLLIN, tap_ms(LIMIT_MS)), POLLIN);
	len = rds_recv_or_mark(fd, data, sizeof(data), &from, &mark);
	if (mark != last ||
	    (!mark && (len != BYTES || memcmp(data, &want, sizeof(want)))))
		tap_fail("socket %d, message %d: got %s of socket %d, message %d",
			 life, number, mark ? "the end" : "a message",
			 ((struct head *)data)->life,
			 ((struct head *)data)->number);
}

static void receive(const char *local, int port, int lives, int count)
{
	int fd = rds_bound_to(local, port, NULL), number;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCONT);
	must(sigprocmask(SIG_BLOCK, &set, NULL));
	say("ready");
	check_eq(sigwait(&set, &number), 0);
	for (int life = 0; life < lives; life++)
		for (number = 0; number <= count; number++)
			take(fd, life, number, count);
	say("all there");
}

static void send_all(const char *local, const char *remote, int port, int lives,
		     int count)
{
	union addr to = addr_of(remote, port);
	int fd;

	for (int life = 0; life < lives; life++) {
		fd = rds_bound_to(local, port, NULL);
		for (int number = 0; number < count; number++) {
			struct head head = { life, number };

			memcpy(data, &head, sizeof(head));
			check_ret(rds_send(fd, data, BYTES, MSG_DONTWAIT, &to),
				  BYTES);
		}
		must(close(fd));
	}
	say("queued");
}

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "recv"))
		receive(argv[2], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]));
	else if (argc == 7 && !strcmp(argv[1], "send"))
		send_all(argv[2], argv[3], atoi(argv[4]), atoi(argv[5]),
			 atoi(argv[6]));
	else
		tap_fail("usage: helper_rebind recv|send ...");
	tap_child_exit();
}
