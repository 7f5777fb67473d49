// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_dest_status LOCAL REMOTE PORT
 *
 * Compares what XRDS_DEST_STATUS says of messages under way with the dumps of
 * messages. A receiver reads at PORT of REMOTE.
 *
 * First all messages are acknowledged: "idle". After SIGUSR1 the peer is cut
 * off, and messages are queued: "cut". It is expected back then; "done" when
 * all are acknowledged.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dump.h"
#include "sock.h"
#include "tap.h"

enum {
	BYTES		= 4096,
	SPACE		= 1 << 20,
	FIRST		= 10,
	LIMIT_MS	= 60000,
};

static char data[BYTES];
static union addr to;
static int fd;

static u64 now_ns(void)
{
	struct timespec ts;

	must(clock_gettime(CLOCK_MONOTONIC, &ts));
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static struct xrds_dest_status status(void)
{
	struct xrds_dest_status st;

	must(dest_status(fd, &to, &st));
	return st;
}

/* Payload of the socket's messages in a dump; there is only one destination */
static u64 dumped(int what)
{
	struct dump d = dump_read(fd, what, sizeof(struct rds6_info_message));
	const struct rds6_info_message *m = d.rows;
	u16 port = addr_port(&to);
	u64 bytes = 0;

	for (size_t i = 0; i < d.nr; i++)
		if (ntohs(m[i].fport) == port)
			bytes += m[i].len;
	dump_free(&d);
	return bytes;
}

/*
 * Looks until nothing has moved, neither in the time between two dumps nor in
 * the status; only then may they be compared.
 */
static struct xrds_dest_status still(u64 *posted, u64 *waiting)
{
	long long end = tap_now_ms() + tap_ms(WAIT_MS);
	struct xrds_dest_status st, last;

	while (tap_now_ms() < end) {
		st = status();
		*posted = dumped(RDS6_INFO_RETRANS_MESSAGES);
		*waiting = dumped(RDS6_INFO_SEND_MESSAGES);
		last = status();
		if (!memcmp(&st, &last, sizeof(st)) &&
		    *posted == dumped(RDS6_INFO_RETRANS_MESSAGES))
			return st;
		poll(NULL, 0, 10);
	}
	tap_fail("messages move though the peer is cut off");
}

static int send_until_full(void)
{
	int n = 0;

	while (rds_send(fd, data, BYTES, MSG_DONTWAIT, &to) == BYTES)
		n++;
	check_eq(errno, EAGAIN);
	return n;
}

/* Until nothing is queued. Acknowledgments and progress go together. */
static struct xrds_dest_status acknowledged(struct xrds_dest_status before)
{
	long long end = tap_now_ms() + tap_ms(LIMIT_MS);
	struct xrds_dest_status st;

	for (;;) {
		u64 latest;

		st = status();
		latest = now_ns();
		check(st.inflight_bytes <= st.queued_bytes);
		check_eq(st.last_progress_ns > before.last_progress_ns,
			 st.acked_msgs > before.acked_msgs);
		check(st.last_progress_ns <= latest);
		if (!st.queued_msgs)
			return st;
		if (tap_now_ms() > end)
			tap_fail("%llu messages are still queued",
				 st.queued_msgs);
		before = st;
		poll(NULL, 0, 1);
	}
}

static void say(const char *text)
{
	printf("%s\n", text);
	fflush(stdout);
}

static void idle(struct xrds_dest_status *st)
{
	u64 began = now_ns();

	*st = status();
	check_eq(st->inflight_bytes, 0);
	check_eq(st->last_progress_ns, 0);
	for (int i = 0; i < FIRST; i++)
		check_ret(rds_send(fd, data, BYTES, 0, &to), BYTES);
	*st = acknowledged(*st);
	check_eq(st->acked_msgs, FIRST);
	check_eq(st->inflight_bytes, 0);
	check(st->last_progress_ns > began);
}

static void cut(struct xrds_dest_status *st, int *queued)
{
	u64 progress = st->last_progress_ns, posted, waiting;

	*queued = send_until_full();
	*st = still(&posted, &waiting);
	printf("%llu bytes of %llu are in flight\n", posted, posted + waiting);
	check_eq(st->queued_bytes, (u64)*queued * BYTES);
	check_eq(posted + waiting, st->queued_bytes);
	check_eq(st->inflight_bytes, posted);
	check(posted > 0);
	check(waiting > 0);
	check_eq(st->acked_msgs, FIRST);
	check_eq(st->last_progress_ns, progress);
}

int main(int argc, char **argv)
{
	struct xrds_dest_status st;
	sigset_t set;
	int queued, sig;
	u64 last;

	if (argc != 4)
		tap_fail("usage: helper_dest_status LOCAL REMOTE PORT");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = rds_bound_to(argv[1], 0, NULL);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, SPACE);
	to = addr_of(argv[2], atoi(argv[3]));
	idle(&st);
	say("idle");
	sigwait(&set, &sig);
	cut(&st, &queued);
	last = now_ns();
	say("cut");
	st = acknowledged(st);
	check_eq(st.acked_msgs, FIRST + queued);
	check_eq(st.queued_bytes, 0);
	check_eq(st.inflight_bytes, 0);
	check(st.last_progress_ns > last);
	say("done");
	tap_child_exit();
}
