// SPDX-License-Identifier: GPL-2.0-only
/* Compiles on every kernel: if it does not, the probes can not be believed. */
#include <linux/module.h>

int probe(void)
{
	return 0;
}
