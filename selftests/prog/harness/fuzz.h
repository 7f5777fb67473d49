/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Random system calls on AF_RDS sockets, structured enough to get somewhere.
 *
 * A fuzzer is a process with a table of sockets, memory of every bad kind, and
 * a few threads that call. The calls of a thread follow from its seed; their
 * outcome follows from the calls of other threads meanwhile, which is the
 * purpose.
 *
 * Fuzzers share what is in struct fuzz_shared, and a pair of datagram sockets,
 * by which they pass sockets on to each other. They share nothing with anybody
 * else: they are started by a program of their own (helper_fuzzers.c), and tell
 * the kernel to overwrite no memory but theirs.
 */
#ifndef _XRDS_TEST_FUZZ_H
#define _XRDS_TEST_FUZZ_H

#include <pthread.h>

#include "pattern.h"
#include "sock.h"
#include "types.h"

enum {
	FUZZ_SLOTS	= 24,		/* sockets that a fuzzer has */
	FUZZ_HOSTS	= 12,
	FUZZ_COOKIES	= 64,
	FUZZ_CALLS	= 48,		/* kinds, at most */
	FUZZ_PORT	= 5200,
	FUZZ_PORTS	= 12,
	FUZZ_TARGETS	= 4,		/* ports of others, aimed at on purpose */
	FUZZ_BYSTANDERS	= FUZZ_PORT + 100,	/* two of them */
};

/**
 * struct fuzz_shared - what all fuzzers see
 * @ready:	processes that have begun
 * @calls:	so often a call was made, by its kind
 * @fine:	and so often it was no error
 * @struck:	failures that were injected
 * @cookies:	of regions, whosoever; lately made
 * @ids:	identifiers of ops that were stored lately
 * @hosts:	addresses that are worth a try; the first two may be bound
 * @nr_hosts:	of @hosts
 * @nr_good:	of these, the first ones that messages may go to
 * @targets:	ports that are aimed at beside the usual ones
 * @exchange:	passes descriptors on; nonblocking
 * @limit:	calls of a thread; 0: no limit
 */
struct fuzz_shared {
	int ready;
	u64 calls[FUZZ_CALLS];
	u64 fine[FUZZ_CALLS];
	u64 struck;
	u64 cookies[FUZZ_COOKIES];
	u64 ids[FUZZ_COOKIES];
	union addr hosts[FUZZ_HOSTS];
	int nr_hosts;
	int nr_good;
	u16 targets[FUZZ_TARGETS];
	int exchange[2];
	u64 limit;
};

extern struct fuzz_shared *fuzz_shared;

/**
 * struct fuzz_result - the outcome of a generation of fuzzers
 * @calls:	as fuzz_shared has it
 * @fine:	likewise
 * @struck:	likewise
 * @crashed:	processes that ended by something else than our signal
 * @took_ms:	from the signal until all were gone, by the clock
 * @turns_ms:	the same, without other work of the machine
 * @ours_ms:	of that, somebody waited in XRDS
 * @asleep_ms:	of that, somebody waited elsewhere
 */
struct fuzz_result {
	u64 calls[FUZZ_CALLS];
	u64 fine[FUZZ_CALLS];
	u64 struck;
	int crashed;
	int took_ms;
	int turns_ms;
	int ours_ms;
	int asleep_ms;
};

/**
 * struct fuzz_process - a fuzzer, seen by its threads
 * @fds:	sockets, and -1; no lock: races are welcome
 * @epoll:	epoll instance
 * @netns:	the namespace to come back to, or -1
 * @root:	not an ordinary user
 * @child:	a process that this one has forked, or 0
 * @depth:	how many forks away from the first
 */
struct fuzz_process {
	int fds[FUZZ_SLOTS];
	int epoll;
	int netns;
	bool root;
	pid_t child;
	int depth;
};

extern struct fuzz_process fuzz_self;

/**
 * struct fuzz - a thread that calls
 * @prng:	decides
 * @nth_fd:	fail-nth of this thread, or -1
 * @patient:	the call may wait: there is a signal that ends it
 * @scratch:	memory that is always good, for arguments
 */
struct fuzz {
	struct prng prng;
	int nth_fd;
	bool patient;
	char scratch[4096] __aligned(16);
};

/* ------------------------------------------------------------- fuzz_mem.c */

/* Maps memory of all kinds; before anything is forked that shall share some */
void fuzz_mem_share(void);
/* The rest of it, in each process, and while it has its privileges */
void fuzz_mem_open(void);
/* Starts the threads that change it meanwhile */
void fuzz_mem_start(u64 seed);
/* An address that so many bytes might be read from or written to */
u64 fuzz_mem_any(struct fuzz *f, size_t bytes);
/* The same, where it is likely to work */
u64 fuzz_mem_good(struct fuzz *f, size_t bytes);
/* An argument to be: a copy of it in memory of any kind, as far as possible */
void *fuzz_mem_copy(struct fuzz *f, void *data, size_t bytes);

/* ---------------------------------------------------------- fuzz_values.c */

bool fuzz_one_in(struct fuzz *f, unsigned int n);
u64 fuzz_below(struct fuzz *f, u64 bound);
/* One of the values that are interesting somewhere */
u64 fuzz_value(struct fuzz *f);
int fuzz_int(struct fuzz *f);
/* A length, mostly small, at most as given or a little more */
size_t fuzz_length(struct fuzz *f, size_t most);
/* An address of any kind, and the length that is told with it */
socklen_t fuzz_addr(struct fuzz *f, union addr *a);
/* One that may be bound */
union addr fuzz_addr_own(struct fuzz *f);
u64 fuzz_cookie(struct fuzz *f);
/* Fills the content of a control message; its right length */
size_t fuzz_content(struct fuzz *f, int type, void *data);
/* A type of control message */
int fuzz_cmsg_type(struct fuzz *f);

/* ------------------------------------------------------------- fuzz_msg.c */

/* One message, with its parts in memory that is the thread's */
struct fuzz_msg {
	struct msghdr msg;
	union addr name;
	struct iovec iov[8];
	char control[1024] __aligned(8);
};

void fuzz_msg_send(struct fuzz *f, struct fuzz_msg *m);
void fuzz_msg_recv(struct fuzz *f, struct fuzz_msg *m);
int fuzz_send_flags(struct fuzz *f);
int fuzz_recv_flags(struct fuzz *f);

long fuzz_call_sendmsg(struct fuzz *f);
long fuzz_call_recvmsg(struct fuzz *f);
long fuzz_call_sendmmsg(struct fuzz *f);
long fuzz_call_recvmmsg(struct fuzz *f);
long fuzz_call_sendto(struct fuzz *f);
long fuzz_call_recvfrom(struct fuzz *f);
long fuzz_call_write(struct fuzz *f);
long fuzz_call_read(struct fuzz *f);
long fuzz_call_splice(struct fuzz *f);

/* ----------------------------------------------------------- fuzz_ring.c */

/* io_uring of a thread; nothing happens where the kernel has none */
void fuzz_ring_open(void);
long fuzz_call_ring(struct fuzz *f);

/* ---------------------------------------------------------- fuzz_calls.c */

int fuzz_fd(struct fuzz *f);
void fuzz_fd_add(struct fuzz *f, int fd);
/* A socket, bound if that succeeds, or -1 */
int fuzz_socket(struct fuzz *f, int type, int protocol);
/* Calls until it is told to stop; first it waits for all that opened is for */
void fuzz_run(u64 seed, pthread_barrier_t *opened);
/* The call that this thread makes, or made last */
const char *fuzz_doing(void);
/* Ends the process if @number is an errno that no program may see */
void fuzz_check_errno(int number);
/* How often each kind of call was made, and was no error */
void fuzz_report(const struct fuzz_result *r);

#endif /* _XRDS_TEST_FUZZ_H */
