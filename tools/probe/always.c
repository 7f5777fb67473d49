// SPDX-License-Identifier: GPL-2.0-only
/* Compiles on every kernel: if it does not, no probe means anything. */
#include <linux/module.h>

int probe(void)
{
	return 0;
}
