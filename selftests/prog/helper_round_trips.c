// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: small round trips of one user, and their times.
 *
 *   helper_round_trips serve LOCAL PORT
 *   helper_round_trips ask LOCAL REMOTE PORT UID COUNT SECONDS
 *   helper_round_trips again LOCAL REMOTE PORT UID MIB
 *
 * The server says "ready" and sends back each message. The other side makes COUNT
 * round trips of 64 bytes, one after the other, but begins none after SECONDS
 * and waits for none longer than that. It says how many there were and how long
 * they took. A script judges these figures.
 *
 * With "again" it sends so many messages of 1 MiB first, says "sent", and makes one
 * round trip at SIGUSR1. It says "answered" then.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"

enum {
	BYTES		= 64,
	MAX_COUNT	= 100000,
	LARGE_BYTES	= 1 << 20,
	FOREVER_S	= 3600,
};

static long long took_us[MAX_COUNT];

static long long now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000LL + ts.tv_nsec / 1000;
}

static void __noreturn serve(const char *local, int port)
{
	int fd = rds_bound_to(local, port, NULL);
	char data[BYTES];
	union addr from;
	ssize_t len;
	bool mark;

	printf("ready\n");
	fflush(stdout);
	for (;;) {
		poll_one(fd, POLLIN, -1);
		len = rds_recv_or_mark(fd, data, sizeof(data), &from, &mark);
		if (len < 0 || mark)
			continue;
		if (rds_send(fd, data, len, MSG_DONTWAIT, &from) < 0)
			printf("no answer: %s\n", tap_errno_name(errno));
	}
}

/* False at the deadline */
static bool round_trip(int fd, const union addr *to, int number,
		       long long end_us)
{
	char data[BYTES] = { 0 }, back[BYTES];
	long long left = end_us - now_us();

	memcpy(data, &number, sizeof(number));
	if (left <= 0)
		return false;
	check_ret(rds_send(fd, data, BYTES, MSG_DONTWAIT, to), BYTES);
	while (rds_recv(fd, back, BYTES, MSG_DONTWAIT, NULL) < 0) {
		left = end_us - now_us();
		if (left <= 0)
			return false;
		poll_one(fd, POLLIN, left / 1000 + 1);
	}
	check(!memcmp(data, back, BYTES));
	return true;
}

static int by_size(const void *a, const void *b)
{
	const long long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void ask(int fd, const union addr *to, int count, long long end_us)
{
	long long start;
	int n = 0;

	/* one that opens the connection does not count */
	if (round_trip(fd, to, -1, end_us)) {
		for (; n < count; n++) {
			start = now_us();
			if (!round_trip(fd, to, n, end_us))
				break;
			took_us[n] = now_us() - start;
		}
	}
	qsort(took_us, n, sizeof(took_us[0]), by_size);
	printf("%d of %d round trips", n, count);
	if (n)
		printf(", median_us=%lld p99_us=%lld most_us=%lld",
		       took_us[n / 2], took_us[n * 99 / 100], took_us[n - 1]);
	printf("\n");
}

static void send_large(int fd, const union addr *to)
{
	static char data[LARGE_BYTES];
	char back[BYTES];

	check_ret(rds_send(fd, data, sizeof(data), 0, to), sizeof(data));
	check_ret(rds_recv(fd, back, sizeof(back), 0, NULL), sizeof(back));
}

static void again(int fd, const union addr *to, int mib)
{
	sigset_t go;
	int sig;

	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	sigprocmask(SIG_BLOCK, &go, NULL);
	while (mib--)
		send_large(fd, to);
	printf("sent\n");
	fflush(stdout);
	sigwait(&go, &sig);
	check(round_trip(fd, to, 0, now_us() + FOREVER_S * 1000000LL));
	printf("answered\n");
}

int main(int argc, char **argv)
{
	bool asks = argc == 8 && !strcmp(argv[1], "ask");
	struct linger abort = { 1, 0 };
	union addr to;
	int fd;

	if (argc == 4 && !strcmp(argv[1], "serve"))
		serve(argv[2], atoi(argv[3]));
	if (!asks && (argc != 7 || strcmp(argv[1], "again")))
		tap_fail("usage: helper_round_trips serve|ask|again ...");
	if (atoi(argv[6]) < 1 || atoi(argv[6]) > MAX_COUNT)
		tap_fail("helper_round_trips: %s", argv[6]);
	must(setresuid(atoi(argv[5]), atoi(argv[5]), atoi(argv[5])));
	fd = rds_bound_to(argv[2], 0, NULL);
	must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
	to = addr_of(argv[3], atoi(argv[4]));
	if (asks)
		ask(fd, &to, atoi(argv[6]),
		    now_us() + tap_ms(atoi(argv[7]) * 1000) * 1000LL);
	else
		again(fd, &to, atoi(argv[6]));
	fflush(stdout);
	tap_child_exit();
}
