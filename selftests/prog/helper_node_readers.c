// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two readers of the events of one node: helper_node_readers LOCAL REMOTE PORT MESSAGES
 *
 * Says "watching" when it is connected. After the event that REMOTE is down it sends
 * MESSAGES messages, and says "queued". Of the next event a reader gets EFAULT. Then
 * another one takes it, into memory that is not there: "sleeps". The first thread
 * prints the events that it reads meanwhile, until the node is there again. Then the
 * reader that sleeps goes on, and prints its own one.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lazy.h"
#include "sock.h"
#include "tap.h"

enum { LIMIT_MS = 60000 };

static struct lazy memory;
static int fd;

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

/* Read an event into @control. Returns as recvmsg(). */
static ssize_t take(void *control, struct xrds_node_event *event)
{
	char data[16];
	struct iovec iov = { data, sizeof(data) };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(sizeof(*event)),
	};
	ssize_t ret = recvmsg(fd, &m, MSG_DONTWAIT);
	struct cmsghdr *c = ret < 0 ? NULL : CMSG_FIRSTHDR(&m);

	memset(event, 0, sizeof(*event));
	if (c && c->cmsg_level == SOL_RDS && c->cmsg_type == XRDS_CMSG_NODE)
		memcpy(event, CMSG_DATA(c), sizeof(*event));
	return ret;
}

static void await_news(void)
{
	check_eq(poll_one(fd, POLLPRI, LIMIT_MS), POLLPRI);
}

/* Print the next event. Returns its state. */
static unsigned int print(const char *who, void *control)
{
	static const char * const names[] = { "none", "up", "down", "reborn" };
	struct xrds_node_event event;

	must(take(control, &event));
	printf("%s: %s dropped %llu\n", who,
	       event.state < ARRAY_SIZE(names) ? names[event.state] : "?",
	       (unsigned long long)event.dropped_msgs);
	fflush(stdout);
	return event.state;
}

static void *sleeper(void *arg)
{
	(void)arg;
	print("sleeper", memory.page);
	return NULL;
}

static void begin(const char *local, const union addr *to)
{
	fd = rds_bound_to(local, 0, NULL);
	rds_set_int(fd, SOL_RDS, XRDS_NODE_EVENTS, 1);
	must(rds_send(fd, "x", 1, 0, to));
	must_wait(rds_all_acked, &fd, LIMIT_MS);
	say("watching");
}

int main(int argc, char **argv)
{
	char control[CMSG_SPACE(sizeof(struct xrds_node_event))];
	struct xrds_node_event event;
	pthread_t reader;
	unsigned int state;
	union addr to;

	if (argc != 5)
		tap_fail("usage: helper_node_readers LOCAL REMOTE PORT MESSAGES");
	to = addr_of(argv[2], atoi(argv[3]));
	begin(argv[1], &to);
	await_news();
	check_eq(print("main", control), XRDS_NODE_DOWN);
	for (int i = 0; i < atoi(argv[4]); i++)
		must(rds_send(fd, "x", 1, MSG_DONTWAIT, &to));
	say("queued");
	await_news();
	check_err(take((void *)1, &event), EFAULT);
	await_news();
	lazy_open(&memory);
	check_eq(pthread_create(&reader, NULL, sleeper, NULL), 0);
	lazy_await(&memory);
	say("sleeps");
	do {
		await_news();
		state = print("main", control);
	} while (state == XRDS_NODE_DOWN);
	lazy_fill(&memory);
	pthread_join(reader, NULL);
	tap_child_exit();
}
