// SPDX-License-Identifier: GPL-2.0-only
/*
 * For scripts: helper_netns_settled [COMMAND [ARGUMENT]...]
 *
 * Runs a command in a network namespace of its own. Ends when that is cleaned up,
 * and all others that have ended. The exit status is that of the command.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "netns.h"
#include "tap.h"

enum { LIMIT_MS = 60000 };

/* Returns its exit status; its namespace is about to be cleaned up. */
static int run(char **command)
{
	pid_t home = getpid(), pid = must(fork());
	int status;

	if (!pid) {
		tap_new_netns();
		netns_mark(home);
		execvp(command[0], command);
		tap_fail("%s: %s", command[0], tap_errno_name(errno));
	}
	must(waitpid(pid, &status, 0));
	if (!netns_ends(LIMIT_MS))
		tap_fail("the namespace of the command goes on");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	int status = argc > 1 ? run(argv + 1) : 0;

	if (!netns_settled(LIMIT_MS))
		tap_fail("a namespace is not cleaned up");
	return status;
}
