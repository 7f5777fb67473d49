// SPDX-License-Identifier: GPL-2.0-only
/*
 * For scripts: helper_hold_socket LOCAL [REMOTE COUNT [PORT]]
 *
 * Holds a bound socket open until it is killed, with COUNT messages of 4 KiB
 * queued to a port of REMOTE (or as many as fit). Says "holding N" when it
 * has them, and then what becomes of the connection: "state NAME". With 0 for
 * COUNT it goes on sending, and waits in sendmsg().
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"

enum {
	BYTES	= 4096,
	PORT	= 4999,
	LOOK_MS	= 20,
};

static const char *state_name(unsigned int state)
{
	static const char * const names[] = {
		[XRDS_DEST_IDLE]	= "idle",
		[XRDS_DEST_CONNECTING]	= "connecting",
		[XRDS_DEST_UP]		= "up",
		[XRDS_DEST_ERROR]	= "error",
	};

	return state < ARRAY_SIZE(names) ? names[state] : "unknown";
}

static void __noreturn watch(int fd, const union addr *to)
{
	unsigned int state = ~0u;
	struct xrds_dest_status st;

	for (;; poll(NULL, 0, LOOK_MS)) {
		must(dest_status(fd, to, &st));
		if (st.state == state)
			continue;
		state = st.state;
		printf("state %s\n", state_name(state));
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	int count = argc > 3 ? atoi(argv[3]) : -1, n = 0, fd;
	static char data[BYTES];
	union addr to;

	if (argc < 2 || argc == 3)
		tap_fail("usage: helper_hold_socket LOCAL [REMOTE COUNT [PORT]]");
	fd = rds_bound_to(argv[1], 0, NULL);
	if (count >= 0)
		to = addr_of(argv[2], argc > 4 ? atoi(argv[4]) : PORT);
	for (; n < count || !count; n++)
		if (rds_send(fd, data, sizeof(data), MSG_DONTWAIT, &to) < 0)
			break;
	printf("holding %d\n", n);
	fflush(stdout);
	while (!count)
		rds_send(fd, data, sizeof(data), 0, &to);
	if (count > 0)
		watch(fd, &to);
	for (;;)
		pause();
}
