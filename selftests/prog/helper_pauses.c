// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages with pauses in between: helper_pauses LOCAL REMOTE MAX_MS [SEED
 * [PORT]], on both nodes.
 *
 * Each side sends numbered messages to the other until SIGUSR1, and then says
 * that there are no more. It makes random pauses of up to MAX_MS, and now and then
 * sends several in a row or a large one; so a connection that is collected when it
 * is idle for a similar time ends at every moment there is. Each message must come
 * once, and in order.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "sock.h"
#include "tap.h"

enum {
	PORT		= 4800,
	LARGE		= 200000,
	LARGE_EVERY	= 16,
	ROW_EVERY	= 8,
	HELLO_MS	= 100,
	STALL_MS	= 60000,
};

#define LAST	(~0u)		/* the number of the message that is the last */

static sig_atomic_t stop_asked;
static u32 sent, received, unknown;
static bool heard, all_received;
static char buffer[LARGE], out[LARGE];
static union addr peer;
static int fd;

static void receive(void)
{
	union addr from;
	u32 number;
	bool mark;

	while (rds_recv_or_mark(fd, buffer, sizeof(buffer), &from,
				&mark) >= 0) {
		/* any node may send to any port */
		unknown += !addr_same(&from, &peer);
		/* the other side leaves when it has read everything */
		if (mark || !addr_same(&from, &peer))
			continue;
		memcpy(&number, buffer, sizeof(number));
		heard = true;
		/* a hello, before the other side has heard us */
		if (!number)
			continue;
		if (all_received)
			tap_fail("message %u after the last", number);
		if (number == LAST) {
			all_received = true;
			continue;
		}
		if (number != received + 1)
			tap_fail("message %u after %u", number, received);
		received++;
	}
	if (errno != EAGAIN)
		tap_fail("recvmsg: %s", tap_errno_name(errno));
}

/* Two sides that wait in sendmsg(), each for the other to read, wait for ever:
 * a large message is more than a receive buffer. So read meanwhile.
 */
static void send_number(u32 number)
{
	bool large = number && number != LAST && number % LARGE_EVERY == 0;
	size_t len = large ? LARGE : sizeof(number);
	struct pollfd pfd = { .fd = fd, .events = POLLIN | POLLOUT };

	memcpy(out, &number, sizeof(number));
	while (rds_send(fd, out, len, MSG_DONTWAIT, &peer) < 0) {
		if (errno != EAGAIN && errno != ENOBUFS)
			tap_fail("sendmsg: %s", tap_errno_name(errno));
		if (!poll(&pfd, 1, tap_ms(STALL_MS)))
			tap_fail("no space for message %u", number);
		receive();
	}
}

static void wait_ms(int ms)
{
	long long end = tap_now_ms() + ms, left;
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	while ((left = end - tap_now_ms()) > 0 && poll(&pfd, 1, left))
		receive();
	receive();
}

static bool acknowledged(void *arg)
{
	int bytes;

	(void)arg;
	receive();
	return !must(ioctl(fd, SIOCOUTQ, &bytes)) && !bytes;
}

static void say_hello(void)
{
	long long end = tap_now_ms() + tap_ms(STALL_MS);

	/* messages that come before a socket is bound are dropped, not kept */
	do {
		send_number(0);
		wait_ms(HELLO_MS);
		if (tap_now_ms() > end)
			tap_fail("the other side is not there");
	} while (!heard);
	send_number(0);
}

static void on_stop(int signum)
{
	(void)signum;
	__atomic_store_n(&stop_asked, 1, __ATOMIC_RELAXED);
}

static bool received_all(void *arg)
{
	(void)arg;
	receive();
	return all_received;
}

int main(int argc, char **argv)
{
	u16 port = argc > 5 ? atoi(argv[5]) : PORT;
	int max_ms;

	if (argc < 4)
		tap_fail("usage: helper_pauses LOCAL REMOTE MAX_MS [SEED [PORT]]");
	max_ms = atoi(argv[3]);
	srand(argc > 4 ? atoi(argv[4]) : 1);
	signal(SIGUSR1, on_stop);
	fd = rds_bound_to(argv[1], port, NULL);
	peer = addr_of(argv[2], port);
	say_hello();
	while (!__atomic_load_n(&stop_asked, __ATOMIC_RELAXED)) {
		send_number(++sent);
		if (rand() % ROW_EVERY)
			wait_ms(rand() % (max_ms + 1));
	}
	send_number(LAST);
	if (!tap_wait(received_all, NULL, STALL_MS))
		tap_fail("received %u, and no last one", received);
	if (!tap_wait(acknowledged, NULL, STALL_MS))
		tap_fail("not all was acknowledged");
	wait_ms(max_ms);
	printf("pulse: sent=%u received=%u unknown=%u\n", sent, received,
	       unknown);
	return 0;
}
