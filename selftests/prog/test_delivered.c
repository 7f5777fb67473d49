// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of delivery: how long a closed socket goes on.
 *
 * timeout: 120
 */
#include <string.h>
#include <unistd.h>

#include "counters.h"
#include "sock.h"
#include "tap.h"

enum {
	LINGER_S	= 4,
};

/* ----------------------------------------------------------------- close() */

static bool given_up(void *arg)
{
	return counter_now("send_drop_closed") > *(long long *)arg;
}

/* close() waits for as long as the kernel delivers: nothing is left after it. */
static void linger_once(void)
{
	struct linger value = { .l_onoff = 1, .l_linger = LINGER_S };
	long long dropped = counter_now("send_drop_closed");
	int tx = rds_bound(NULL), rx;
	long long start;
	union addr to;

	rx = rds_bound(&to);
	stall_loop();
	knob("net/xrds/linger_ms", LINGER_S * 1000);
	check_ret(rds_send(tx, "x", 1, 0, &to), 1);
	must(setsockopt(tx, SOL_SOCKET, SO_LINGER, &value, sizeof(value)));
	start = tap_now_ms();
	close(tx);
	check(tap_wait(given_up, &dropped, 2 * LINGER_S * 1000));
	check_range(tap_now_ms() - start, 0, 2 * LINGER_S * 1000 - 1);
	close(rx);
}

static const struct tap_case cases[] = {
	{ "linger_once", "linger_ms begins with close(), not after its wait",
	  linger_once, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
