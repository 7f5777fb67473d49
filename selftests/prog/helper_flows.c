// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests with a hostile node: helper_flows LOCAL REMOTE PORT PORTS EACH
 *
 * Sends EACH small messages to each of PORTS ports, and says "queued". Says
 * "delivered" when all of them are acknowledged.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sock.h"
#include "tap.h"

enum {
	BYTES		= 64,
	LIMIT_MS	= 120000,
};

int main(int argc, char **argv)
{
	static const char data[BYTES];
	int fd, i, ports, each;
	union addr to;

	if (argc != 6)
		tap_fail("usage: helper_flows LOCAL REMOTE PORT PORTS EACH");
	fd = rds_bound_to(argv[1], 0, NULL);
	to = addr_of(argv[2], 0);
	ports = atoi(argv[4]);
	each = atoi(argv[5]);
	for (i = 0; i < ports * each; i++) {
		addr_set_port(&to, atoi(argv[3]) + i % ports);
		check_ret(rds_send(fd, data, BYTES, 0, &to), BYTES);
	}
	puts("queued");
	fflush(stdout);
	must_wait(rds_all_acked, &fd, LIMIT_MS);
	puts("delivered");
	return 0;
}
