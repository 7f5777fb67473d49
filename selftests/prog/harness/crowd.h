/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A crowd of waiters: many receivers that are all congested, destinations that
 * all of them have refused, and a bystander on the same connection.
 */
#ifndef _XRDS_TEST_CROWD_H
#define _XRDS_TEST_CROWD_H

#include "sock.h"
#include "types.h"

enum {
	CROWD_SENDERS	= 64,		/* at most */
	CROWD_PORTS	= 16384,
};

/**
 * struct crowd - the side of the senders
 * @local:	their address
 * @to:		of the first receiver; the next one has the next port
 * @ports:	receivers
 * @senders:	sockets that each receiver refuses
 * @fds:	these sockets
 * @by_tx:	the bystander's socket that sends
 * @by_rx:	the one at which its message, or the answer, arrives
 * @by_to:	where it sends to
 * @toggled:	receiver that is congested and read, again and again
 * @toggles:	how often it was congested anew
 */
struct crowd {
	const char *local;
	union addr to;
	int ports;
	int senders;
	int fds[CROWD_SENDERS];
	int by_tx;
	int by_rx;
	union addr by_to;
	union addr toggled;
	int toggles;
};

/* Opens receivers that a message congests, and one more that is not of the crowd;
 * fds gets their sockets.
 */
void crowd_listen(const char *host, u16 port, int nr, int *fds);
/* Reads all that comes to the first one and to the last, for good: they toggle. */
void crowd_read(int nr, const int *fds) __noreturn;
/*
 * Congests all ports, has all of the sockets refused by each of them, and calls
 * @release, from which on crowd_read() runs. Checks that only the waiters of that
 * port are looked at, and that the bystander's messages go on as before.
 */
void crowd_check(struct crowd *c, void (*release)(struct crowd *c));

#endif /* _XRDS_TEST_CROWD_H */
