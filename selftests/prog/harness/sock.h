/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * AF_RDS sockets, addresses and sysctls for tests.
 */
#ifndef _XRDS_TEST_SOCK_H
#define _XRDS_TEST_SOCK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <linux/xrds.h>

#include "types.h"

#ifndef AF_RDS
#define AF_RDS 21
#endif

enum {
	MSG_MAX_BYTES	= 1 << 20,	/* largest message */
	WAIT_MS		= 10000,	/* for events that are due at once */
};

/* A socket address of either family; zeroed memory is AF_UNSPEC */
union addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_storage ss;
};

/* Fails the case if @host is no address */
union addr addr_of(const char *host, u16 port);
socklen_t addr_len(const union addr *a);
u16 addr_port(const union addr *a);
void addr_set_port(union addr *a, u16 port);
bool addr_same(const union addr *a, const union addr *b);
/* "10.0.0.1:4000"; one of a few static buffers */
const char *addr_text(const union addr *a);

/* All of these end the case on failure */
int rds_socket(void);
/* Bound to tap_host, or @host; *self, if given, becomes its address */
int rds_bound(union addr *self);
int rds_bound_to(const char *host, u16 port, union addr *self);
union addr rds_self(int fd);
void rds_set_int(int fd, int level, int option, int value);
int rds_get_int(int fd, int level, int option);
void rds_timeout(int fd, int option, int ms);
void rds_nonblock(int fd);
/*
 * Payload accepted and not acknowledged. Of in-tree RDS, which has no SIOCOUTQ:
 * messages. It has the last ones acknowledged only where
 * net.rds.max_unacked_packets is 0.
 */
int rds_outq(int fd);
/* All of it is acknowledged; @fd points to the socket, for tap_wait() */
bool rds_all_acked(void *fd);

/* The system calls, with errno as they leave it */
ssize_t rds_send(int fd, const void *data, size_t len, int flags,
		 const union addr *to);
ssize_t rds_recv(int fd, void *data, size_t len, int flags, union addr *from);
/* What there is; is it the mark that a stream has ended? */
ssize_t rds_recv_or_mark(int fd, void *data, size_t len, union addr *from,
			 bool *mark);
/* recvmsg with a deadline: -1 with ETIMEDOUT after @ms */
ssize_t rds_recv_within(int fd, void *data, size_t len, int ms,
			union addr *from);
/* sendmsg with one control message of level SOL_RDS */
ssize_t rds_send_cmsg(int fd, const union addr *to, int type, const void *data,
		      size_t len);

/* poll() one socket; the events, 0 at the timeout */
int poll_one(int fd, int events, int ms);

/* XRDS_REPLY_RESERVE and XRDS_REPLY_RELEASE; 0 or -1 */
int rds_reserve(int fd, u32 bytes);
int rds_release(int fd, const union addr *to);

/* Reads the status of a destination; 0 or -1 */
int dest_status(int fd, const union addr *to, struct xrds_dest_status *st);

/*
 * Writes a sysctl of this network namespace ("net/xrds/loop/delay_ms") until
 * the end of the case, which fails if there is none.
 */
void knob(const char *name, long value);
bool knob_exists(const char *name);

/*
 * From now on nothing that is sent over the loopback arrives or is acknowledged:
 * destinations without progress. It ends with a delay of 0, or with the case.
 */
void stall_loop(void);

#endif /* _XRDS_TEST_SOCK_H */
