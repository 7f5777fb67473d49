// SPDX-License-Identifier: GPL-2.0-only
/*
 * For scripts: helper_netns_settled
 *
 * Ends when all network namespaces are cleaned up that have ended.
 */
#include "netns.h"
#include "tap.h"

enum { LIMIT_MS = 60000 };

int main(void)
{
	if (!netns_settled(LIMIT_MS))
		tap_fail("a namespace is not cleaned up");
	return 0;
}
