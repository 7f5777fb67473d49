// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests with several nodes: everybody asks everybody, and answers.
 *
 *   helper_echo_mesh LOCAL PORT SECONDS PEER...
 *
 * One socket that is client and server, with buffers for a few messages, so
 * that it is full most of the time. A reply must never be refused, each request
 * must be answered, and the receive queue stays bounded. Says "ready", starts
 * at SIGUSR1, says "answered" when all that it has asked is, and goes on
 * answering until SIGTERM.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <linux/sockios.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"

enum {
	BYTES		= 4096,
	SNDBUF		= 4 * BYTES,
	RCVBUF		= 8 * BYTES,
	WINDOW		= 32,		/* unanswered requests */
	MAX_PEERS	= 16,
	STALL_MS	= 30000,
};

struct msg {
	u32 is_reply;
	u32 seq;
	char pad[BYTES - 8];
};

static union addr peers[MAX_PEERS];
static int nr_peers, fd;
static long long asked, answered, served, refused, most_queued;

static bool serve(void)
{
	union addr from;
	struct msg msg;
	ssize_t n = rds_recv(fd, &msg, sizeof(msg), MSG_DONTWAIT, &from);

	if (n < 0) {
		if (errno != EAGAIN)
			tap_fail("recv: %s", tap_errno_name(errno));
		return false;
	}
	check_ret(n, sizeof(msg));
	if (msg.is_reply) {
		answered++;
		check_ret(setsockopt(fd, SOL_RDS, XRDS_REPLY_RELEASE, &from.ss,
				     sizeof(from.ss)), 0);
		return true;
	}
	served++;
	msg.is_reply = 1;
	if (rds_send(fd, &msg, sizeof(msg), MSG_DONTWAIT, &from) < 0)
		tap_fail("a reply was refused: %s", tap_errno_name(errno));
	return true;
}

static bool request(void)
{
	struct msg msg = { .seq = asked };
	int tries = nr_peers;

	while (asked - answered < WINDOW && tries--) {
		if (rds_send(fd, &msg, sizeof(msg), MSG_DONTWAIT,
			     &peers[(asked + tries) % nr_peers]) > 0) {
			asked++;
			return true;
		}
		refused++;
	}
	return false;
}

static void measure(void)
{
	int queued;

	must(ioctl(fd, SIOCINQ, &queued));
	if (queued > most_queued)
		most_queued = queued;
}

static int next_signal(int sfd)
{
	struct signalfd_siginfo info;

	return read(sfd, &info, sizeof(info)) == sizeof(info) ?
	       (int)info.ssi_signo : 0;
}

static void run(int sfd, int seconds)
{
	long long end = tap_now_ms() + seconds * 1000;
	bool told = false, asking;
	struct pollfd fds[2];
	long long left;

	for (;;) {
		left = end - tap_now_ms();
		asking = left > 0;
		while (serve() || (asking && request()))
			measure();
		if (!asking && answered == asked && !told) {
			printf("answered\n");
			fflush(stdout);
			told = true;
		}
		fds[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
		if (asking && asked - answered < WINDOW)
			fds[0].events |= POLLOUT;
		fds[1] = (struct pollfd){ .fd = sfd, .events = POLLIN };
		/* a client that has all answers has nothing more to wait for */
		if (!must(poll(fds, 2, told ? -1 : asking ? left :
			       tap_ms(STALL_MS))) && !asking)
			tap_fail("stuck: asked %lld, answered %lld", asked,
				 answered);
		if (fds[1].revents && next_signal(sfd) == SIGTERM)
			return;
	}
}

int main(int argc, char **argv)
{
	u32 reply = sizeof(struct msg);
	sigset_t set;
	int sfd;

	if (argc < 5 || argc - 4 > MAX_PEERS)
		tap_fail("usage: helper_echo_mesh LOCAL PORT SECONDS PEER...");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sfd = must(signalfd(-1, &set, SFD_CLOEXEC));

	fd = rds_bound_to(argv[1], atoi(argv[2]), NULL);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SNDBUF);
	rds_set_int(fd, SOL_SOCKET, SO_RCVBUF, RCVBUF);
	check_ret(setsockopt(fd, SOL_RDS, XRDS_REPLY_RESERVE, &reply,
			     sizeof(reply)), 0);
	for (nr_peers = 0; nr_peers < argc - 4; nr_peers++)
		peers[nr_peers] = addr_of(argv[4 + nr_peers], atoi(argv[2]));
	printf("ready\n");
	fflush(stdout);
	if (next_signal(sfd) != SIGUSR1)
		tap_fail("no start");
	run(sfd, atoi(argv[3]));

	printf("%lld answers, %lld served, %lld requests refused, most queued %lld\n",
	       answered, served, refused, most_queued);
	check_eq(answered, asked);
	check(answered > 100);
	/* it was tight */
	check(refused > 0);
	/* messages that may arrive after it is full: the space toward it, and
	 * answers
	 */
	check_range(most_queued, 0,
		    RCVBUF + nr_peers * SNDBUF + WINDOW * BYTES);
	tap_child_exit();
}
