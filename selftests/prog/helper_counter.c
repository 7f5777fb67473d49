// SPDX-License-Identifier: GPL-2.0-only
/*
 * For scripts: prints one counter of this network namespace, or all.
 */
#include <stdio.h>

#include "counters.h"

int main(int argc, char **argv)
{
	struct counters all;

	if (argc == 2) {
		printf("%lld\n", counter_now(argv[1]));
		return 0;
	}
	all = counters_read();
	for (size_t i = 0; i < all.nr; i++)
		printf("%.32s %llu\n", all.all[i].name, all.all[i].value);
	counters_free(&all);
	return 0;
}
