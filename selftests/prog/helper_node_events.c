// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watches nodes with poll() alone, and prints each event on a line. One socket must be
 * told of each by a signal as well.
 *
 * helper_node_events LOCAL REMOTE PORT SOCKETS MESSAGES
 *
 * SOCKETS sockets ask for events, and one more does not. Their ports are those from
 * PORT + OWN_PORTS on. Each sends MESSAGES messages to REMOTE first, and those that
 * are told that it is down send as many again. With 0 for MESSAGES they send none:
 * each receives one first, when "bound" is printed, and the first socket has asked
 * before that. Upon SIGUSR1 the first socket asks again, and the result is printed.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <linux/xrds.h>

#include "sigio.h"
#include "tap.h"
#include "turns.h"

static struct sockaddr_in addr_of(const char *text, int port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_port = htons(port),
	};

	if (inet_pton(AF_INET, text, &sin.sin_addr) != 1)
		errx(1, "%s is no address", text);
	return sin;
}

enum {
	OWN_PORTS	= 5300,		/* above the remote port */
	SIGNAL_MS	= 10000,
};

static struct sockaddr_in to;
static sigset_t signals;
static int msgs, nr;

static void send_all(int fd)
{
	int i;

	for (i = 0; i < msgs; i++)
		if (sendto(fd, "x", 1, MSG_DONTWAIT, (const void *)&to,
			   sizeof(to)) != 1)
			err(1, "sendto");
}

static void ask(int fd, int asks)
{
	if (setsockopt(fd, SOL_RDS, XRDS_NODE_EVENTS, &asks, sizeof(asks)))
		err(1, "XRDS_NODE_EVENTS");
	send_all(fd);
}

static void receive(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	char data[16];

	if (poll(&pfd, 1, -1) < 0 || recv(fd, data, sizeof(data), 0) < 0)
		err(1, "receive");
}

/* The last socket does not ask. */
static void begin(const struct pollfd *fds)
{
	int i;

	if (!msgs)
		ask(fds[0].fd, 1);
	for (i = 0; i <= nr; i++) {
		if (!msgs)
			receive(fds[i].fd);
		ask(fds[i].fd, i < nr);
	}
	printf("watching\n");
	fflush(stdout);
}

/* How long ago something was heard: by the clock, and in turns of the node, in which
 * it does not stand still
 */
static void show_silence(const struct xrds_node_event *event)
{
	long long heard_ms = event->down_ns / 1000000;

	printf(" silent for %lld ms, %lld in turns, heard at %lld ms",
	       tap_now_ms() - heard_ms, turns_since(heard_ms), heard_ms);
}

static void show(int i, const struct xrds_node_event *event)
{
	static const char * const names[] = { "none", "up", "down", "reborn" };
	const struct sockaddr_in *sin = (const void *)&event->node;
	char text[INET_ADDRSTRLEN];

	printf("socket %d: %s port %d %s reason %u dropped %llu", i,
	       inet_ntop(AF_INET, &sin->sin_addr, text, sizeof(text)),
	       ntohs(sin->sin_port),
	       event->state < 4 ? names[event->state] : "?", event->reason,
	       (unsigned long long)event->dropped_msgs);
	if (event->state == XRDS_NODE_DOWN)
		show_silence(event);
	else
		printf(" after %lld ms", (long long)event->down_ns / 1000000);
	putchar('\n');
	fflush(stdout);
}

static void take_signal(int fd)
{
	int why;

	do {
		why = sigio_reason(&signals, fd, tap_ms(SIGNAL_MS));
		if (!why)
			errx(1, "no signal");
	} while (why != POLL_PRI);
}

static void take(int i, int fd)
{
	char control[1024], data[16];
	struct iovec iov = { data, sizeof(data) };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct xrds_node_event event;
	struct cmsghdr *c;

	if (recvmsg(fd, &m, MSG_DONTWAIT) < 0) {
		if (errno != EAGAIN)
			err(1, "recvmsg");
		return;
	}
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_RDS || c->cmsg_type != XRDS_CMSG_NODE)
			continue;
		memcpy(&event, CMSG_DATA(c), sizeof(event));
		if (nr == 1)
			take_signal(fd);
		show(i, &event);
		if (event.state == XRDS_NODE_DOWN)
			send_all(fd);
	}
}

static void ask_again(int signo)
{
	(void)signo;	/* poll() ends by it */
}

static void show_again(int fd)
{
	socklen_t len = sizeof(int);
	int on = 1, error;

	error = setsockopt(fd, SOL_RDS, XRDS_NODE_EVENTS, &on, sizeof(on)) ?
		errno : 0;
	on = -1;
	if (getsockopt(fd, SOL_RDS, XRDS_NODE_EVENTS, &on, &len))
		err(1, "XRDS_NODE_EVENTS");
	printf("again: %s, %d\n", strerror(error), on);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct rlimit files = { 4096, 4096 };
	struct sockaddr_in local;
	struct pollfd *fds;
	int i;

	if (argc != 6)
		errx(1, "LOCAL REMOTE PORT SOCKETS MESSAGES");
	turns_begin();
	setrlimit(RLIMIT_NOFILE, &files);
	to = addr_of(argv[2], atoi(argv[3]));
	nr = atoi(argv[4]);
	msgs = atoi(argv[5]);
	fds = calloc(nr + 1, sizeof(*fds));
	for (i = 0; i <= nr; i++) {
		fds[i].fd = socket(AF_RDS, SOCK_SEQPACKET, 0);
		fds[i].events = POLLPRI;
		local = addr_of(argv[1], atoi(argv[3]) + OWN_PORTS + i);
		if (fds[i].fd < 0 ||
		    bind(fds[i].fd, (void *)&local, sizeof(local)))
			err(1, "socket %d", i);
	}
	signal(SIGUSR1, ask_again);
	printf("bound\n");
	fflush(stdout);
	if (nr == 1)
		sigio_start(fds[0].fd, &signals);
	begin(fds);
	for (;;) {
		if (poll(fds, nr + 1, -1) < 0) {
			if (errno != EINTR)
				err(1, "poll");
			show_again(fds[0].fd);
			continue;
		}
		for (i = 0; i <= nr; i++)
			if (fds[i].revents)
				take(i, fds[i].fd);
	}
}
