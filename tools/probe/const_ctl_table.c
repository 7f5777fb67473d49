// SPDX-License-Identifier: GPL-2.0-only
/* Since 6.11 handlers of sysctls get a const table. */
#include <linux/sysctl.h>

static int handler(const struct ctl_table *table, int write, void *buffer,
		   size_t *lenp, loff_t *ppos)
{
	return 0;
}

proc_handler *const probe = handler;
