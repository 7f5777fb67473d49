/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RDMA between two nodes, for tests.
 *
 * The remote side serves: it has memory that it registers, fills, looks at and
 * forgets as it is told by messages, and it counts what else it receives. The
 * side under test has modes, one for each scenario; it is started as "PROGRAM
 * MODE LOCAL REMOTE [ARGUMENT...]", says on a line of its own what a script
 * waits for, and its exit status is the verdict. SIGUSR1 says that the script
 * has done as it was asked, and ends the modes that go on until then.
 */
#ifndef _XRDS_TEST_REMOTE_H
#define _XRDS_TEST_REMOTE_H

#include "rdma.h"
#include "sock.h"
#include "types.h"

enum {
	REMOTE_PORT	= 4200,
	REMOTE_BYTES	= 4 << 20,	/* of served memory */
	REMOTE_WAIT_MS	= 60000,	/* for calls that may need a reconnect */
	DEVICE_BYTES	= 511 * 4096,	/* most that soft-RoCE registers */
};

/* ------------------------------------------------------------ remote side */

/* Serves at an address; registers @bytes of its memory before it says "ready"
 * and the cookie
 */
void remote_serve(const char *local, u64 bytes) __noreturn;

/* -------------------------------------------------------- side under test */

/**
 * struct remote - who serves
 * @fd:		a socket for calls to it
 * @to:		its address
 */
struct remote {
	int fd;
	union addr to;
};

/* Toward the node that was given, or another */
void remote_open(struct remote *r);
void remote_open_at(struct remote *r, const char *host);

/* Each of these ends the program if there is no answer */
void remote_nop(struct remote *r);
/* A part of the memory, registered; only the cookie and the size are known */
struct target remote_get(struct remote *r, u64 offset, u64 bytes, u64 flags);
void remote_free(struct remote *r, const struct target *t);
void remote_stamp(struct remote *r, u64 offset, u64 bytes, u64 seed);
bool remote_stamped(struct remote *r, u64 offset, u64 bytes, u64 seed);
u64 remote_digest(struct remote *r, u64 offset, u64 bytes);
u64 remote_peek(struct remote *r, u64 offset);
void remote_poke(struct remote *r, u64 offset, u64 value);

/* Other messages that it has got: their number, the last, if of 8 bytes, and
 * the number of these that were not greater than the one before
 */
struct remote_heard {
	u64 count;
	u64 last;
	u64 disorder;
};

struct remote_heard remote_heard(struct remote *r);

/* Has it write to memory of ours, or read from it; as op_run(). With @map
 * memory is registered with the call, else it has the cookie.
 */
int remote_write_here(struct remote *r, u64 cookie, u64 offset, u64 bytes);
int remote_read_here(struct remote *r, u64 cookie, u64 offset, u64 bytes);
int remote_write_mapped(struct remote *r, struct rds_get_mr_args *map,
			u64 offset);

/* ---------------------------------------------------------------- notices */

/* How ops have ended */
struct tally {
	u64 sent;
	u64 done;
	u64 success;
	u64 remote_error;
	u64 dropped;
	u64 other;
};

void tally_add(struct tally *t, const struct got *got);
/* Reads notices until all that were sent have ended; false at the deadline */
bool tally_all(int fd, struct tally *t, int ms);
/* "NAME: sent=3 success=..." */
void tally_print(const char *name, const struct tally *t);

/* ------------------------------------------------------------------- main */

struct mode {
	const char *name;
	void (*run)(void);
};

/* Arguments of the command line */
extern const char *remote_host;
extern int remote_argc;
extern char **remote_argv;
/* SIGUSR1 has come */
bool remote_stop(void);
/* Says "WHAT N" and waits for SIGUSR1, which is none to stop */
void remote_ask(const char *what, int number);

/* The argument of this number, or another value */
long long remote_arg(int number, long long otherwise);
/* A line for scripts, at once */
void remote_say(const char *format, ...) __printf(1, 2);
int remote_main(int argc, char **argv, const struct mode *modes, size_t nr);

#endif /* _XRDS_TEST_REMOTE_H */
