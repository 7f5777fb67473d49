// SPDX-License-Identifier: GPL-2.0-only
/*
 * When congestion ends: as soon as half of SO_RCVBUF is left to be read, and not
 * before.
 *
 * timeout: 60
 */
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "congest.h"
#include "sock.h"
#include "tap.h"

enum {
	CHUNK		= 4096,
	SPACE		= 64 * 1024,
	QUIET_MS	= 20,
};

static char chunk[CHUNK];

static int unread(int fd)
{
	int bytes;

	must(ioctl(fd, SIOCINQ, &bytes));
	return bytes;
}

static void clears_at_half(void)
{
	int tx = rds_bound(NULL), rx, left;
	union addr to;

	rx = small_receiver(&to);
	congest(tx, &to);
	/* nothing more is on its way */
	must_wait(rds_all_acked, &tx, WAIT_MS);
	left = unread(rx);
	check(left > SPACE);
	for (; left > SPACE / 2; left -= CHUNK) {
		check_eq(poll_one(tx, POLLOUT, QUIET_MS), 0);
		check_ret(rds_recv(rx, chunk, CHUNK, MSG_DONTWAIT, NULL),
			  CHUNK);
	}
	check_eq(unread(rx), left);
	check_eq(poll_one(tx, POLLOUT, tap_ms(WAIT_MS)), POLLOUT);
	check_ret(rds_send(tx, chunk, CHUNK, MSG_DONTWAIT, &to), CHUNK);
	close(tx);
	close(rx);
}

static const struct tap_case cases[] = {
	{ "clears_at_half", "congestion ends with half of SO_RCVBUF, not before or after",
	  clears_at_half, TAP_EACH_FAMILY, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
