// SPDX-License-Identifier: GPL-2.0-only
/*
 * Breaks all connections of this node again and again: helper_break_conns TIMES,
 * while something else sends over them both ways.
 *
 * Each time it waits until there is a connection, over which a message has
 * come; it prints how long that took, in microseconds: to the connection, and
 * from there to the first message.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "counters.h"
#include "sock.h"
#include "tap.h"

#define KNOB "/sys/kernel/debug/xrds/break"

enum {
	LIMIT_MS	= 30000,
	LOOK_US		= 200,
};

struct seen {
	long long up, delivered;
};

struct times {
	long long sum, least, most;
};

static long long now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000LL + ts.tv_nsec / 1000;
}

static struct seen look(void)
{
	struct counters all = counters_read();
	struct seen seen = {
		.up = counters_get(&all, "conn_up"),
		.delivered = counters_get(&all, "recv_queued"),
	};

	counters_free(&all);
	return seen;
}

static void note(struct times *times, long long us)
{
	if (!times->sum || us < times->least)
		times->least = us;
	if (us > times->most)
		times->most = us;
	times->sum += us;
}

static void break_once(int fd, int number, struct times *to_up,
		       struct times *to_msg)
{
	long long start = now_us(), up = 0;
	struct seen before = look(), seen;

	must(write(fd, "1", 1));
	for (;;) {
		seen = look();
		if (!up && seen.up > before.up) {
			up = now_us();
			before.delivered = seen.delivered;
		}
		if (up && seen.delivered > before.delivered)
			break;
		if (now_us() - start > tap_ms(LIMIT_MS) * 1000LL)
			tap_fail("break %d: %s after %d ms", number,
				 up ? "no message" : "no connection",
				 tap_ms(LIMIT_MS));
		usleep(LOOK_US);
	}
	note(to_up, up - start);
	note(to_msg, now_us() - up);
}

static void print(const char *what, const struct times *times, int n)
{
	printf(" %s_mean=%lld %s_least=%lld %s_most=%lld", what,
	       times->sum / n, what, times->least, what, times->most);
}

int main(int argc, char **argv)
{
	struct times to_up = {}, to_msg = {};
	int times = argc == 2 ? atoi(argv[1]) : 0;
	int fd, n;

	if (times < 1)
		tap_fail("usage: helper_break_conns TIMES");
	fd = must(open(KNOB, O_WRONLY));
	for (n = 1; n <= times; n++)
		break_once(fd, n, &to_up, &to_msg);
	printf("break: times=%d", times);
	print("up", &to_up, times);
	print("message", &to_msg, times);
	printf("\n");
	return 0;
}
