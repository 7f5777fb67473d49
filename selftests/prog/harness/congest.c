// SPDX-License-Identifier: GPL-2.0-only
/*
 * Destinations that refuse messages, and receivers that end that.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "congest.h"
#include "tap.h"

enum {
	CONGEST_BYTES	= 4096,
	LOOK_MS		= 100,
};

long send_until(int fd, const union addr *to, size_t bytes, int error, int ms)
{
	static const char data[MSG_MAX_BYTES];
	long long end = tap_now_ms() + tap_ms(ms);
	long sent = 0;

	for (;;) {
		if (rds_send(fd, data, bytes, MSG_DONTWAIT, to) >= 0) {
			sent += bytes;
			continue;
		}
		if (errno == error)
			return sent;
		if (errno != EAGAIN || tap_now_ms() > end)
			tap_fail("%s after %ld bytes, not %s",
				 tap_errno_name(errno), sent,
				 strerrorname_np(error));
		poll_one(fd, POLLOUT, LOOK_MS);
	}
}

void congest(int fd, const union addr *to)
{
	send_until(fd, to, CONGEST_BYTES, ENOBUFS, WAIT_MS);
}

int drain(int fd)
{
	static char data[MSG_MAX_BYTES];
	int n = 0;

	while (rds_recv(fd, data, sizeof(data), MSG_DONTWAIT, NULL) >= 0)
		n++;
	return n;
}
