// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: many flows that always have something queued, and a reader
 * that counts what comes.
 *
 *   helper_flood sink LOCAL PORT STEP NR...
 *   helper_flood send LOCAL REMOTE PORT NR BYTES QUEUED UID
 *
 * The sink binds NR ports for each group, the first group at PORT, the next one
 * GROUP ports above, and says "ready". It reads as fast as it can, without the
 * payload. When STEP bytes have come it says "bytes", and how many of them each
 * group has got.
 *
 * The sender has a socket for each of NR ports, and keeps QUEUED messages of BYTES
 * in its send space. When each had to wait for space it says "busy".
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"

enum {
	GROUP		= 2000,
	MAX_GROUPS	= 4,
	MAX_BYTES	= 1 << 20,
	RCVBUF		= 8 << 20,
	EVENTS		= 64,
	/* messages that are read of one socket before the others */
	BATCH		= 64,
};

static char data[MAX_BYTES];

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

static void many_files(void)
{
	struct rlimit limit = { GROUP + 100, GROUP + 100 };

	must(setrlimit(RLIMIT_NOFILE, &limit));
}

static void watch(int ep, int fd, __u32 events, __u64 what)
{
	struct epoll_event ev = { .events = events, .data.u64 = what };

	must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
}

static long long drain(int fd)
{
	long long sum = 0;
	ssize_t len;

	for (int i = 0; i < BATCH; i++) {
		len = recv(fd, data, 1, MSG_DONTWAIT | MSG_TRUNC);
		if (len < 0)
			break;
		sum += len;
	}
	return sum;
}

static void report(long long *bytes, int groups)
{
	printf("bytes");
	for (int g = 0; g < groups; g++)
		printf(" %lld", bytes[g]);
	memset(bytes, 0, groups * sizeof(*bytes));
	say("");
}

static void __noreturn sink(const char *local, int port, long long step,
			    char **nr, int groups)
{
	long long bytes[MAX_GROUPS] = { 0 }, sum = 0, got;
	int ep = must(epoll_create1(0)), fd;
	struct epoll_event ev[EVENTS];

	for (int g = 0; g < groups; g++) {
		for (int i = 0; i < atoi(nr[g]); i++) {
			fd = rds_bound_to(local, port + g * GROUP + i, NULL);
			rds_set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, RCVBUF);
			watch(ep, fd, EPOLLIN, (__u64)g << 32 | fd);
		}
	}
	say("ready");
	for (;;) {
		int n = epoll_wait(ep, ev, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			got = drain((int)ev[i].data.u64);
			bytes[ev[i].data.u64 >> 32] += got;
			sum += got;
		}
		if (sum < step)
			continue;
		sum = 0;
		report(bytes, groups);
	}
}

/* Sends until there is no space; whether there was none. */
static bool fill(int fd, size_t bytes)
{
	for (int i = 0; i < BATCH; i++) {
		if (send(fd, data, bytes, MSG_DONTWAIT) >= 0)
			continue;
		check(errno == EAGAIN || errno == ENOBUFS);
		return true;
	}
	return false;
}

static void __noreturn flood(char **argv)
{
	int nr = atoi(argv[3]), queued = atoi(argv[5]), uid = atoi(argv[6]);
	size_t bytes = atoi(argv[4]);
	int ep = must(epoll_create1(0)), waiting = 0;
	bool *waited = calloc(nr, sizeof(*waited));
	int *fds = calloc(nr, sizeof(*fds));
	struct linger abort = { 1, 0 };
	struct epoll_event ev[EVENTS];
	union addr to;

	check(waited && fds && nr > 0 && bytes <= MAX_BYTES);
	must(setresuid(uid, uid, uid));
	for (int i = 0; i < nr; i++) {
		fds[i] = rds_bound_to(argv[0], 0, NULL);
		must(setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &abort,
				sizeof(abort)));
		/* the kernel doubles it */
		rds_set_int(fds[i], SOL_SOCKET, SO_SNDBUF, queued * bytes / 2);
		to = addr_of(argv[1], atoi(argv[2]) + i);
		must(connect(fds[i], &to.sa, addr_len(&to)));
		watch(ep, fds[i], EPOLLOUT | EPOLLET, i);
	}
	for (;;) {
		int n = epoll_wait(ep, ev, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			int k = ev[i].data.u64;

			while (!fill(fds[k], bytes))
				;
			if (waited[k])
				continue;
			waited[k] = true;
			if (++waiting == nr)
				say("busy");
		}
	}
}

int main(int argc, char **argv)
{
	many_files();
	if (argc >= 6 && argc <= 5 + MAX_GROUPS && !strcmp(argv[1], "sink"))
		sink(argv[2], atoi(argv[3]), atoll(argv[4]), argv + 5, argc - 5);
	if (argc == 9 && !strcmp(argv[1], "send"))
		flood(argv + 2);
	tap_fail("usage: helper_flood sink|send ...");
}
