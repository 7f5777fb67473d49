// SPDX-License-Identifier: GPL-2.0-only
/*
 * For scripts: helper_killed PID [COUNTER VALUE]...
 *
 * Kills a process, waits until it has ended and until each of these counters has its
 * value, and says "took N ms": turns of the node, so a host that stops it does not
 * count.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "counters.h"
#include "tap.h"
#include "turns.h"

enum { STEP_MS = 10 };

static bool all_have(int nr, char **pairs)
{
	struct counters c = counters_read();
	bool have = true;

	for (int i = 0; i < nr; i += 2)
		have &= counters_get(&c, pairs[i]) == atoll(pairs[i + 1]);
	counters_free(&c);
	return have;
}

int main(int argc, char **argv)
{
	long long start;
	int pid, fd;

	if (argc < 2 || argc % 2)
		tap_fail("usage: helper_killed PID [COUNTER VALUE]...");
	pid = atoi(argv[1]);
	fd = must(syscall(SYS_pidfd_open, pid, 0));
	turns_begin();
	start = tap_now_ms();
	must(kill(pid, SIGKILL));
	/* it is readable when the process has ended, and need not be our child */
	poll_one(fd, POLLIN, -1);
	while (argc > 2 && !all_have(argc - 2, argv + 2))
		poll(NULL, 0, STEP_MS);
	printf("took %lld ms\n", turns_since(start));
	return 0;
}
