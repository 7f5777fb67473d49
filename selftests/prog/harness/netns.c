// SPDX-License-Identifier: GPL-2.0-only
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "netns.h"
#include "tap.h"

#define OUTSIDE "mark"

/* One end of a pair is in the namespace: the other one, which is at home, goes with
 * it.
 */
void netns_mark(pid_t home)
{
	char command[128];

	/* busybox does not look at "peer" and what is behind it, and says nothing */
	snprintf(command, sizeof(command),
		 "ip link add in type veth && ip link set veth0 name %s && ip link set %s netns %d",
		 OUTSIDE, OUTSIDE, home);
	check_eq(system(command), 0);
}

bool netns_marked(void)
{
	return if_nametoindex(OUTSIDE);
}

/* A namespace that ends at once */
static void make_marked(void)
{
	pid_t home = getpid(), pid = must(fork());

	if (!pid) {
		tap_new_netns();
		netns_mark(home);
		tap_child_exit();
	}
	tap_child_join(pid);
}

static bool mark_gone(void *unused)
{
	(void)unused;
	return !netns_marked();
}

bool netns_ends(int ms)
{
	return tap_wait(mark_gone, NULL, ms);
}

/* The kernel cleans namespaces up in batches, and of each batch the devices first.
 * When the first mark is gone, all that have ended before are in its batch, or in
 * an earlier one; the second one is in a later batch.
 */
bool netns_settled(int ms)
{
	for (int i = 0; i < 2; i++) {
		make_marked();
		if (!netns_ends(ms))
			return false;
	}
	return true;
}
