// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two sides that begin to talk at the same moment: helper_dial_at_once LOCAL
 * REMOTE ROUNDS [PORT], on both nodes.
 *
 * In each round both tell each other over UDP that they are ready, and then send
 * a message each, as fast as they can. When they have told each other that these
 * have arrived they let idle collection end the connection, which it must not do
 * before: so a round has one connection. A message that comes twice, at any time
 * until the connection has ended, late, or is of another round ends the program
 * with status 1. The last line tells the longest and the mean time from the start
 * of a round until the other side's message was there. Then it waits for SIGUSR1:
 * the end of its stream takes a connection, too.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"
#include "turns.h"

enum {
	PORT		= 4700,
	REPEAT_MS	= 20,		/* a lost UDP packet is sent again */
	GONE_MS		= 20000,	/* for the end of the connection */
	IDLE_MS		= 20,		/* when it may end */
	ROUND_MS	= 30000,
};

static int rds, udp;
static union addr peer, udp_peer;
static u32 unknown;

static bool is_gone(void *arg)
{
	struct xrds_dest_status st;

	(void)arg;
	return must(dest_status(rds, &peer, &st)) == 0 &&
	       st.state == XRDS_DEST_IDLE && !st.queued_msgs;
}

/* Whether the node may end idle connections */
static void collect(bool on)
{
	knob("net/xrds/idle_ms", on ? IDLE_MS : 0);
}

static bool hears(u32 step, int ms)
{
	struct pollfd pfd = { .fd = udp, .events = POLLIN };
	u32 got;

	while (must(poll(&pfd, 1, ms)) > 0) {
		if (recv(udp, &got, sizeof(got), 0) == sizeof(got) &&
		    got >= step)
			return true;
	}
	return false;
}

/* Both are here when this returns, one of them a packet's way earlier. Each
 * round has two of these steps.
 */
static void sync_with_peer(u32 step)
{
	long long end = tap_now_ms() + tap_ms(GONE_MS);

	do {
		/* it may not have its socket yet */
		if (sendto(udp, &step, sizeof(step), 0, &udp_peer.sa,
			   addr_len(&udp_peer)) < 0 && errno != ECONNREFUSED)
			tap_fail("sendto: %s", tap_errno_name(errno));
		if (tap_now_ms() > end)
			tap_fail("step %u: the other side is not there", step);
	} while (!hears(step, REPEAT_MS));
	/* our answer to its step may be lost: repeat it */
	sendto(udp, &step, sizeof(step), 0, &udp_peer.sa,
	       addr_len(&udp_peer));
}

/* Any node may send to any port; and the peer leaves after the last round. */
static ssize_t from_peer(u32 *got, int ms)
{
	long long end = tap_now_ms() + tap_ms(ms), left;
	union addr from;
	ssize_t len;
	bool mark;

	for (;;) {
		left = end - tap_now_ms();
		len = rds_recv_or_mark(rds, got, sizeof(*got), &from, &mark);
		if (len >= 0 && !mark && addr_same(&from, &peer))
			return len;
		unknown += len >= 0 && !addr_same(&from, &peer);
		if (len >= 0)
			continue;
		if (errno != EAGAIN || left <= 0)
			return len;
		poll_one(rds, POLLIN, left);
	}
}

/* How many ms that took, in turns of the node */
static long long meet(u32 round)
{
	long long start = tap_now_ms();
	u32 got = 0;
	ssize_t len;

	must(rds_send(rds, &round, sizeof(round), 0, &peer));
	len = from_peer(&got, ROUND_MS);
	if (len != sizeof(got) || got != round)
		tap_fail("round %u: %zd bytes, round %u: %s", round, len, got,
			 len < 0 ? tap_errno_name(errno) : "wrong");
	return turns_since(start);
}

/* The connection ends, and has brought nothing else. */
static void part(u32 round)
{
	u32 got = 0;

	collect(true);
	if (!tap_wait(is_gone, NULL, GONE_MS))
		tap_fail("round %u: the connection stays", round);
	if (from_peer(&got, 0) >= 0)
		tap_fail("round %u: another message, of round %u", round, got);
	collect(false);
}

int main(int argc, char **argv)
{
	long long took, longest = 0, sum = 0, start = tap_now_ms();
	u16 port = argc > 4 ? atoi(argv[4]) : PORT;
	u32 round, rounds;
	union addr self;
	sigset_t set;
	int sig;

	if (argc < 4)
		tap_fail("usage: helper_dial_at_once LOCAL REMOTE ROUNDS [PORT]");
	rounds = atoi(argv[3]);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	must(sigprocmask(SIG_BLOCK, &set, NULL));
	turns_begin();
	rds = rds_bound_to(argv[1], port, NULL);
	peer = addr_of(argv[2], port);
	self = addr_of(argv[1], port);
	udp_peer = peer;
	udp = must(socket(self.sa.sa_family, SOCK_DGRAM, 0));
	must(bind(udp, &self.sa, addr_len(&self)));
	/* so that both sockets are bound before the first message */
	collect(false);
	for (round = 1; round <= rounds; round++) {
		sync_with_peer(2 * round - 1);
		took = meet(round);
		sync_with_peer(2 * round);
		part(round);
		sum += took;
		if (took > longest)
			longest = took;
	}
	printf("meet: rounds=%u longest_ms=%lld mean_ms=%lld secs=%lld unknown=%u\n",
	       rounds, longest, sum / (rounds ?: 1),
	       (tap_now_ms() - start) / 1000, unknown);
	fflush(stdout);
	sigwait(&set, &sig);
	return 0;
}
