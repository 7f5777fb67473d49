/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Edge-triggered epoll against a model: a few sockets that send at random, read
 * at random, and ask for events at random.
 *
 * The model knows the events that each socket is due: space when it was refused
 * since it was told last, and has not tried again with success; input as the
 * program says. A socket that must be told of input is not read when all stop:
 * if epoll does not report it then, an edge is lost.
 */
#ifndef _XRDS_TEST_EDGES_H
#define _XRDS_TEST_EDGES_H

#include "pattern.h"
#include "sock.h"
#include "types.h"

enum {
	EDGES_SOCKETS	= 4,
	EDGES_BATCH	= 16,		/* messages in a row, less than that */
};

/**
 * struct edges_socket - a socket, and where its number is sent to
 * @fd:		the socket
 * @dest:	messages for this number go there
 * @sent:	to @dest, and accepted
 * @got:	read from @fd
 * @input:	it must be told of input
 * @refused:	it must be told of space
 * @refuser:	by the destination of this number
 */
struct edges_socket {
	int fd;
	union addr dest;
	u64 sent;
	u64 got;
	bool input;
	bool refused;
	int refuser;
};

extern struct edges_socket edges[EDGES_SOCKETS];
extern struct prng edges_dice;
/* Events and refused messages so far */
extern long long edges_told;
extern long long edges_refusals;

/* Begins anew, without sockets; the seed is said with each failed check */
void edges_begin(void);
/* Takes a bound socket in */
void edges_add(int number, int fd, const union addr *dest);
void edges_end(void);

/* Asks for events, and notes them */
void edges_look(int ms);
/*
 * Sends up to a batch to one destination, until refused; its number, or -1 if
 * nothing was accepted.
 */
int edges_send(struct edges_socket *s);
/* Reads so many messages at most; whether there were fewer */
bool edges_read(struct edges_socket *s, int most);
/*
 * Reads and looks until no socket waits for input, as @waits says, or for
 * space. Ends the case if one still does after @ms; otherwise returns how often
 * it looked.
 */
long edges_settle(bool (*waits)(int number), void (*read_all)(int number),
		  int ms);

#endif /* _XRDS_TEST_EDGES_H */
