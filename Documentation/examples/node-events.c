// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nodes that come and go: one poll() waits for messages and for these events.
 *
 *   node-events LOCAL PORT               reports the nodes that send to it
 *   node-events LOCAL PORT REMOTE PORT   sends a message, and reports that node
 *
 * xrds(7) explains XRDS_NODE_EVENTS. The nodes send nothing for it: the kernel
 * finds out that one is silent, and tells each socket that has sent to it or
 * received from it. The programs run until they are killed.
 *
 * Messages to a node that is down wait for it. When the node is up again, none was
 * lost. When it is reborn, the sockets that it had are gone, and so is all that
 * they were sent: the program begins anew, here with its first message.
 */
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/xrds.h>

static int fd;
static struct addrinfo *peer;

static void send_first(void)
{
	if (peer && sendto(fd, "hello", 5, MSG_DONTWAIT, peer->ai_addr,
			   peer->ai_addrlen) < 0)
		err(1, "sendto");
}

static void report(const struct xrds_node_event *event)
{
	char host[NI_MAXHOST];

	if (getnameinfo((const struct sockaddr *)&event->node,
			sizeof(event->node), host, sizeof(host), NULL, 0,
			NI_NUMERICHOST))
		errx(1, "an address that is none");
	if (event->state == XRDS_NODE_DOWN)
		printf("%s is down\n", host);
	else if (event->state == XRDS_NODE_UP)
		printf("%s is up again after %.1f s\n", host,
		       event->down_ns / 1e9);
	else if (event->state == XRDS_NODE_REBORN)
		printf("%s is reborn, and %llu messages were dropped\n", host,
		       (unsigned long long)event->dropped_msgs);
	if (event->state == XRDS_NODE_REBORN)
		send_first();
}

/* Read one message or event; 0: nothing left. */
static int receive(void)
{
	char text[16], control[1024] __attribute__((aligned(8)));
	struct iovec iov = { text, sizeof(text) };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct xrds_node_event event;
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);
	struct cmsghdr *c;

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < 0)
		err(1, "recvmsg");
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_RDS || c->cmsg_type != XRDS_CMSG_NODE)
			continue;
		memcpy(&event, CMSG_DATA(c), sizeof(event));
		report(&event);
	}
	if (n)
		printf("received: %.*s\n", (int)n, text);
	return 1;
}

static struct addrinfo *address(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *ai;

	if (getaddrinfo(host, port, &hints, &ai))
		errx(2, "%s %s is not an address", host, port);
	return ai;
}

int main(int argc, char **argv)
{
	struct pollfd pfd = { .events = POLLIN };
	struct addrinfo *local;
	int on = 1;

	if (argc != 3 && argc != 5)
		errx(2, "usage: %s LOCAL PORT [REMOTE PORT]", argv[0]);
	setlinebuf(stdout);
	local = address(argv[1], argv[2]);
	fd = socket(AF_RDS, SOCK_SEQPACKET, 0);
	if (fd < 0 || bind(fd, local->ai_addr, local->ai_addrlen) ||
	    setsockopt(fd, SOL_RDS, XRDS_NODE_EVENTS, &on, sizeof(on)))
		err(1, "socket");
	if (argc == 5)
		peer = address(argv[3], argv[4]);
	send_first();
	pfd.fd = fd;
	for (;;) {
		while (receive())
			;
		if (poll(&pfd, 1, -1) < 0 && errno != EINTR)
			err(1, "poll");
	}
}
