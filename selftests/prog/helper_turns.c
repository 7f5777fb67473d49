// SPDX-License-Identifier: GPL-2.0-only
/*
 * For scripts: helper_turns COMMAND [ARGUMENT]...
 *
 * Runs a command, and says "took N ms" at its end: turns of the node, so a host that
 * stops it does not count. The exit status is that of the command.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "turns.h"

int main(int argc, char **argv)
{
	long long start;
	int status;
	pid_t pid;

	if (argc < 2)
		tap_fail("usage: helper_turns COMMAND [ARGUMENT]...");
	turns_begin();
	start = tap_now_ms();
	pid = must(fork());
	if (!pid) {
		execvp(argv[1], argv + 1);
		tap_fail("%s: %s", argv[1], tap_errno_name(errno));
	}
	must(waitpid(pid, &status, 0));
	printf("took %lld ms\n", turns_since(start));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
