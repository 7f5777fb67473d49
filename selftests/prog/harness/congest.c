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
	RCVBUF		= 64 * 1024,
	LOOK_MS		= 100,
	SLOWLY_MS	= 30000,	/* for one message */
	DRAIN_MS	= 10,
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

struct delivery {
	int fd;
	const union addr *to;
};

static bool delivered(void *arg)
{
	const struct delivery *d = arg;
	struct xrds_dest_status st;

	must(dest_status(d->fd, d->to, &st));
	return !st.queued_msgs;
}

void congest(int fd, const union addr *to)
{
	static const char data[CONGEST_BYTES];
	struct delivery d = { fd, to };

	/* once the connection is up nothing waits for it that the receiver would
	 * not take any more
	 */
	if (rds_send(fd, data, sizeof(data), MSG_DONTWAIT, to) >= 0)
		must_wait(delivered, &d, WAIT_MS);
	send_until(fd, to, CONGEST_BYTES, ENOBUFS, WAIT_MS);
}

/* It is acknowledged, or waits: the news of congestion came after it was accepted. */
static bool went_or_waits(void *arg)
{
	const struct delivery *d = arg;
	struct xrds_dest_status st;

	must(dest_status(d->fd, d->to, &st));
	return !st.queued_msgs ||
	       (st.flags & XRDS_DEST_CONGESTED && !st.inflight_bytes);
}

void congest_slowly(int fd, const union addr *to, size_t bytes)
{
	static const char data[MSG_MAX_BYTES];
	struct delivery d = { fd, to };

	while (rds_send(fd, data, bytes, MSG_DONTWAIT, to) >= 0)
		must_wait(went_or_waits, &d, SLOWLY_MS);
	check_eq(errno, ENOBUFS);
	must(setsockopt(fd, SOL_RDS, RDS_CANCEL_SENT_TO, to, addr_len(to)));
	must_wait(rds_all_acked, &fd, SLOWLY_MS);
}

int drain(int fd)
{
	static char data[MSG_MAX_BYTES];
	int n = 0;

	while (rds_recv(fd, data, sizeof(data), MSG_DONTWAIT, NULL) >= 0)
		n++;
	return n;
}

int drain_until(int rx, int fd, int events)
{
	long long end = tap_now_ms() + tap_ms(WAIT_MS);
	int seen;

	do {
		drain(rx);
		seen = poll_one(fd, events, DRAIN_MS);
	} while (!seen && tap_now_ms() < end);
	return seen;
}

int small_receiver(union addr *self)
{
	int fd = rds_bound(self);

	rds_set_int(fd, SOL_SOCKET, SO_RCVBUF, RCVBUF);
	return fd;
}
