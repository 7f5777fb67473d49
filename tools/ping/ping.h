/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * xrds-ping:
 *
 *   xrds-ping.c  arguments, addresses, messages to port 0, statistics
 *   hosts.c      several hosts at once
 *   rdma.c       RDMA probes instead of messages
 *   why.c        the reason why nothing is answered
 *   serve.c      offers memory for RDMA probes
 */
#ifndef XRDS_PING_H
#define XRDS_PING_H

#include <netdb.h>
#include <stdbool.h>
#include <sys/socket.h>

#include <linux/xrds.h>

#ifndef AF_RDS
#define AF_RDS 21
#endif

enum {
	MAX_BYTES	= 1 << 20,
	EXIT_SILENT	= 1,		/* not all were answered */
	EXIT_ERROR	= 2,
};

#define NSEC_PER_SEC	1000000000ll
#define NSEC_PER_MSEC	1000000ll

struct options {
	const char *source;
	unsigned long count;		/* 0: no end */
	long long interval_ns;
	long long deadline_ns;		/* 0: none */
	unsigned long bytes;
	bool sized;			/* the option -s was given */
	unsigned short rdma;		/* port with memory; 0: messages */
	unsigned short serve;		/* offer memory at this port */
	unsigned char tos;		/* type of service */
	bool quiet;
	bool json;
	bool late;			/* report pings that are not answered yet */
	bool dates;			/* in front of each line */
};

struct statistics {
	unsigned long sent, received;
	unsigned long timed;		/* answers in the times that follow */
	double min, max, sum, sum2;	/* milliseconds */
	double setup;			/* with the connection; 0: it was up */
};

extern struct options opt;
extern struct statistics stats;
extern struct sockaddr_storage to, from;
extern socklen_t addr_len;
extern char to_text[NI_MAXHOST], from_text[NI_MAXHOST];

void __attribute__((noreturn)) die(const char *what, int error);
long long now_ns(void);
void set_port(struct sockaddr_storage *ss, unsigned short port);
/* Returns a socket, or -errno after a line about an error that is new. */
int try_socket(int flags);
int open_socket(int flags);
/* Print the time, with the option -D. */
void put_date(void);
/* Must the loop end, because of a signal, the time or the count? */
bool finished(long long now, long long end);
/* An answer came after this time; @what names it in a line of its own. */
void answered(const char *what, unsigned long seq, long long ns);

void on_signal(int sig);
void catch_signals(void (*handler)(int sig));
/* Ping a host; returns the time that it took, in milliseconds. */
long long ping(const char *name, int family);
/* Returns the exit status. */
int print_statistics(long long ms);

/* hosts.c; returns the exit status. */
int ping_hosts(char **names, int nr, int family);

/* why.c */
bool why_connected(void);
void why_silent(void);

void rdma_loop(void);
void serve(void);			/* does not return */

#endif /* XRDS_PING_H */
