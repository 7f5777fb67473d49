// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_serve_memory LOCAL [BYTES]
 *
 * Serves memory (see remote.h) at an address. Says "ready COOKIE"; with BYTES
 * as much of the memory has been registered before, and that is its cookie.
 */
#include <stdlib.h>

#include "remote.h"
#include "tap.h"

int main(int argc, char **argv)
{
	if (argc < 2)
		tap_fail("usage: helper_serve_memory LOCAL [BYTES]");
	remote_serve(argv[1], argc > 2 ? strtoull(argv[2], NULL, 0) : 0);
}
