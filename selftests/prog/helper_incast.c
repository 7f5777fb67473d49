// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many connections send to one node at once.
 *
 *   helper_incast drain COUNT LOCAL...
 *		reads so many messages at these addresses, and says "drained"
 *   helper_incast send EACH CONNS LOCAL REMOTE [LOCAL REMOTE]...
 *		so many connections for each pair of addresses, with a type of
 *		service each. One message goes over each of them; when all of
 *		these are acknowledged, EACH messages of many sizes, as fast as
 *		they go. Says "sent" when the peer's kernel has all of them.
 *
 * Messages of one connection come in order, each once.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/ioctl.h>
#include <linux/sockios.h>

#include "sock.h"
#include "tap.h"

enum {
	PORT	= 4700,
	MOST	= 128,
	BYTES	= 65536,
};

static char data[BYTES];

/**
 * struct sender - a socket, and so a connection
 * @fd:		socket
 * @to:		its destination
 * @next:	number of its next message
 * @end:	where it stops
 */
struct sender {
	int fd;
	union addr to;
	u32 next;
	u32 end;
};

static struct sender senders[MOST];
static int nr;

static void say(const char *word)
{
	printf("%s\n", word);
	fflush(stdout);
}

/* Most are small. The lengths of one connection are another's in other order. */
static size_t length(const struct sender *s)
{
	static const size_t lengths[] = { 64, 4096, 200, 16384, 64, 1000, 40000 };

	return lengths[(s->next + s->fd) % (sizeof(lengths) /
					    sizeof(lengths[0]))];
}

static void add(const char *local, const char *remote, int conns)
{
	struct sender *s;

	for (int tos = 0; tos < conns; tos++) {
		if (nr == MOST)
			tap_fail("more than %d connections", MOST);
		s = &senders[nr++];
		s->fd = rds_bound_to(local, 0, NULL);
		s->to = addr_of(remote, PORT);
		must(ioctl(s->fd, SIOCRDSSETTOS, &(rds_tos_t){ tos }));
	}
}

/* One more message, if there is room. Returns whether there was. */
static bool send_one(struct sender *s)
{
	ssize_t ret;

	memcpy(data, &s->next, sizeof(s->next));
	ret = rds_send(s->fd, data, length(s), MSG_DONTWAIT, &s->to);
	if (ret < 0 && (errno == EAGAIN || errno == ENOBUFS))
		return false;
	must(ret);
	s->next++;
	return true;
}

/* In turns, so that all connections are busy */
static void send_all(void)
{
	struct pollfd fds[MOST];
	int blocked, left;

	do {
		blocked = 0;
		left = 0;
		for (int i = 0; i < nr; i++) {
			fds[i] = (struct pollfd){ .fd = -1 };
			if (senders[i].next == senders[i].end)
				continue;
			left++;
			if (send_one(&senders[i]))
				continue;
			fds[i] = (struct pollfd){ .fd = senders[i].fd,
						  .events = POLLOUT };
			blocked++;
		}
		if (left && blocked == left)
			must(poll(fds, nr, -1));
	} while (left);
}

static bool acknowledged(void *unused __attribute__((unused)))
{
	int bytes;

	for (int i = 0; i < nr; i++) {
		must(ioctl(senders[i].fd, SIOCOUTQ, &bytes));
		if (bytes)
			return false;
	}
	return true;
}

static void send_to(int each)
{
	for (int i = 0; i < nr; i++)
		senders[i].end = senders[i].next + each;
	send_all();
	must_wait(acknowledged, NULL, tap_ms(12 * WAIT_MS));
}

/* Addresses of senders, in the order in which they came */
static struct sender *sender_of(const union addr *from)
{
	int i;

	for (i = 0; i < nr; i++)
		if (addr_same(&senders[i].to, from))
			return &senders[i];
	if (nr == MOST)
		tap_fail("more than %d senders", MOST);
	senders[nr].to = *from;
	return &senders[nr++];
}

static void receive(int fd)
{
	union addr from;
	struct sender *s;
	u32 number;

	must(rds_recv(fd, data, sizeof(data), 0, &from));
	memcpy(&number, data, sizeof(number));
	s = sender_of(&from);
	if (number != s->next)
		tap_fail("message %u instead of %u", number, s->next);
	s->next++;
}

static void drain(int left, int n, char **hosts)
{
	struct pollfd fds[MOST];
	int i;

	for (i = 0; i < n; i++)
		fds[i] = (struct pollfd){
			.fd = rds_bound_to(hosts[i], PORT, NULL),
			.events = POLLIN,
		};
	say("draining");
	while (left) {
		must(poll(fds, n, -1));
		for (i = 0; i < n; i++) {
			if (!(fds[i].revents & POLLIN))
				continue;
			receive(fds[i].fd);
			left--;
		}
	}
	say("drained");
}

int main(int argc, char **argv)
{
	if (argc >= 4 && argc < MOST && !strcmp(argv[1], "drain")) {
		drain(atoi(argv[2]), argc - 3, argv + 3);
		return 0;
	}
	if (argc < 6 || argc % 2 || strcmp(argv[1], "send"))
		tap_fail("usage: drain COUNT LOCAL... | send EACH CONNS LOCAL REMOTE...");
	for (int i = 4; i < argc; i += 2)
		add(argv[i], argv[i + 1], atoi(argv[3]));
	send_to(1);
	say("connected");
	send_to(atoi(argv[2]));
	say("sent");
	for (;;)
		pause();
}
