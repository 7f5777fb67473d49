// SPDX-License-Identifier: GPL-2.0-only
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "netns.h"
#include "tap.h"

#define OUTSIDE "mark"

/* A namespace that ends at once. One end of a pair is in it: the other one, which
 * is in ours, goes with it.
 */
static void make_mark(void)
{
	pid_t home = getpid(), pid = must(fork());
	char command[96];

	if (!pid) {
		tap_new_netns();
		snprintf(command, sizeof(command),
			 "ip link add inside type veth peer name " OUTSIDE
			 " netns %d", home);
		check_eq(system(command), 0);
		tap_child_exit();
	}
	tap_child_join(pid);
}

static bool mark_gone(void *unused)
{
	(void)unused;
	return !if_nametoindex(OUTSIDE);
}

/* The kernel cleans namespaces up in batches, and of each batch the devices first.
 * When the first mark is gone, all that have ended before are in its batch, or in
 * an earlier one; the second one is in a later batch.
 */
bool netns_settled(int ms)
{
	for (int i = 0; i < 2; i++) {
		make_mark();
		if (!tap_wait(mark_gone, NULL, ms))
			return false;
	}
	return true;
}
