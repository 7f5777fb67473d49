// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages with pauses in between: test_pulse LOCAL REMOTE COUNT MAX_MS
 * [SEED [PORT]], on both nodes.
 *
 * Each side sends COUNT numbered messages to the other, with random pauses of
 * up to MAX_MS, and now and then several in a row or a large one; so a
 * connection that is collected when it is idle for a similar time ends at
 * every moment there is. Each message must come once, and in order.
 */
#include <poll.h>
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

static u32 sent, received, count;
static bool heard;
static char buffer[LARGE], out[LARGE];
static union addr peer;
static int fd;

static void receive(void)
{
	union addr from;
	u32 number;

	while (rds_recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT, &from) >= 0) {
		memcpy(&number, buffer, sizeof(number));
		heard = true;
		/* a hello, before the other side has heard us */
		if (!number)
			continue;
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
	size_t len = number && number % LARGE_EVERY == 0 ? LARGE :
							   sizeof(number);
	struct pollfd pfd = { .fd = fd, .events = POLLIN | POLLOUT };

	memcpy(out, &number, sizeof(number));
	while (rds_send(fd, out, len, MSG_DONTWAIT, &peer) < 0) {
		if (errno != EAGAIN && errno != ENOBUFS)
			tap_fail("sendmsg: %s", tap_errno_name(errno));
		if (must(poll(&pfd, 1, tap_ms(STALL_MS))) == 0)
			tap_fail("no space for message %u", number);
		receive();
	}
}

static void wait_ms(int ms)
{
	long long end = tap_now_ms() + ms, left;
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	while ((left = end - tap_now_ms()) > 0 &&
	       must(poll(&pfd, 1, left)) > 0)
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

	/* what comes before a socket is bound is dropped, not kept */
	do {
		send_number(0);
		wait_ms(HELLO_MS);
		if (tap_now_ms() > end)
			tap_fail("the other side is not there");
	} while (!heard);
	send_number(0);
}

int main(int argc, char **argv)
{
	u16 port = argc > 6 ? atoi(argv[6]) : PORT;
	long long stalled;
	int max_ms;

	if (argc < 5)
		tap_fail("usage: test_pulse LOCAL REMOTE COUNT MAX_MS [SEED [PORT]]");
	count = atoi(argv[3]);
	max_ms = atoi(argv[4]);
	srand(argc > 5 ? atoi(argv[5]) : 1);
	fd = rds_bound_to(argv[1], port, NULL);
	peer = addr_of(argv[2], port);
	say_hello();
	while (sent < count) {
		send_number(++sent);
		if (rand() % ROW_EVERY)
			wait_ms(rand() % (max_ms + 1));
	}
	stalled = tap_now_ms() + tap_ms(STALL_MS);
	while (received < count) {
		if (tap_now_ms() > stalled)
			tap_fail("received %u of %u", received, count);
		wait_ms(HELLO_MS);
	}
	if (!tap_wait(acknowledged, NULL, STALL_MS))
		tap_fail("not all was acknowledged");
	wait_ms(max_ms);
	printf("pulse: sent=%u received=%u\n", sent, received);
	return 0;
}
