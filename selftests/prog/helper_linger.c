// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_linger LOCAL REMOTE PORT SECONDS [PORTS]
 *
 * Says "connected" once a message to each port was acknowledged, waits for SIGCONT,
 * sends another one to the first, closes with SO_LINGER, and says how many
 * milliseconds close() took, by the clock and in turns of the node.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"
#include "turns.h"

int main(int argc, char **argv)
{
	struct linger linger = { .l_onoff = 1 };
	long long start;
	union addr to;
	sigset_t set;
	int fd, sig, ports;

	if (argc != 5 && argc != 6)
		tap_fail("usage: helper_linger LOCAL REMOTE PORT SECONDS [PORTS]");
	ports = argc > 5 ? atoi(argv[5]) : 1;
	sigemptyset(&set);
	sigaddset(&set, SIGCONT);
	must(sigprocmask(SIG_BLOCK, &set, NULL));
	linger.l_linger = atoi(argv[4]);
	fd = rds_bound_to(argv[1], 0, NULL);
	to = addr_of(argv[2], atoi(argv[3]));
	must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	for (int i = ports; i-- > 0;) {
		addr_set_port(&to, atoi(argv[3]) + i);
		must(rds_send(fd, "a", 1, 0, &to));
	}
	must_wait(rds_all_acked, &fd, 60000);
	printf("connected\n");
	fflush(stdout);
	sigwait(&set, &sig);
	must(rds_send(fd, "b", 1, 0, &to));
	turns_begin();
	start = tap_now_ms();
	close(fd);
	printf("closed after %lld ms, %lld in turns\n", tap_now_ms() - start,
	       turns_since(start));
	return 0;
}
