/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Test cases, checks and time limits.
 *
 * A program lists its cases in a table and calls tap_main(). Each case runs in
 * a process of its own and, unless it asks otherwise, in a network namespace
 * of its own with lo up; it ends within its time limit or fails. A failed
 * check fails the case and the case goes on; a failed must() ends it. Results
 * are TAP, one line a case, with the time it took.
 *
 * Environment: XRDS_EXPECT_ALL=1 turns a skipped case into a failed one;
 * XRDS_SLOW=N multiplies every time limit by N.
 */
#ifndef _XRDS_TEST_TAP_H
#define _XRDS_TEST_TAP_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "types.h"

enum {
	TAP_EACH_FAMILY	= 1,	/* run on 127.0.0.1 and on ::1 */
	TAP_SAME_NETNS	= 2,	/* do not make a network namespace */
};

/**
 * struct tap_case - one test case
 * @name:	short and unique in the program
 * @proves:	one line
 * @run:	the test
 * @flags:	TAP_*
 * @limit_s:	time limit in seconds, 0 = 30
 */
struct tap_case {
	const char *name;
	const char *proves;
	void (*run)(void);
	unsigned int flags;
	unsigned int limit_s;
};

/* The address under test: of the loopback, or that of -a */
extern const char *tap_host;
/* -v: show what happens */
extern bool tap_verbose;

int tap_main(int argc, char **argv, const struct tap_case *cases, size_t nr);

/* A line of diagnostics; the second only with -v */
void tap_diag(const char *format, ...) __printf(1, 2);
void tap_note(const char *format, ...) __printf(1, 2);
/* The present attempt, shown with each failed check; "" for none */
void tap_context(const char *format, ...) __printf(1, 2);
void tap_skip(const char *format, ...) __printf(1, 2) __noreturn;
/* Fails the case and ends it */
void tap_fail(const char *format, ...) __printf(1, 2) __noreturn;
/* A network namespace of the caller's own, with lo up */
void tap_new_netns(void);
/* For a process that a case forked: ends with the verdict so far */
void tap_child_exit(void) __noreturn;
/* Waits for such a process and takes its verdict over */
void tap_child_join(pid_t pid);

struct tap_where {
	const char *file;
	int line;
	const char *text;
};

#define TAP_HERE(text) (&(const struct tap_where){ __FILE__, __LINE__, text })

bool tap_check(bool ok, const struct tap_where *where);
bool tap_check_eq(long long got, long long want, const struct tap_where *where);
bool tap_check_ret(long long got, long long want,
		   const struct tap_where *where);
bool tap_check_err(long long got, int want, const struct tap_where *where);
bool tap_check_range(long long got, long long min, long long max,
		     const struct tap_where *where);
long long tap_must(long long got, const struct tap_where *where);

/* Each returns whether it held */
#define check(cond)	tap_check(!!(cond), TAP_HERE(#cond))
#define check_eq(got, want) tap_check_eq(got, want, TAP_HERE(#got))
#define check_range(got, min, max) \
	tap_check_range(got, min, max, TAP_HERE(#got))
/* System calls: the value returned, or the error */
#define check_ret(call, want) tap_check_ret(call, want, TAP_HERE(#call))
#define check_err(call, want) tap_check_err(call, want, TAP_HERE(#call))
/* A system call that the case cannot go on without; returns its value */
#define must(call)	tap_must(call, TAP_HERE(#call))

/*
 * SIGALRM every so many milliseconds, which does nothing but end a call: again
 * and again, as the first may come before the call. With 0 no more of them.
 * @flags: SA_RESTART or 0
 */
void tap_interrupt(int ms, int flags);
/* Kills a process, and waits: how many ms, as turns of 10 ms of this process. A
 * machine that stands still meanwhile does not count.
 */
int tap_kill(pid_t pid, int *status);

enum { TAP_KILL_MS = 1000 };	/* a killed process ends within */

/*
 * Runs @busy in a process, which writes a byte to its argument when it is ready,
 * and kills that: it must end promptly.
 */
void tap_kill_busy(void (*busy)(int ready));

/* "EAGAIN", "0" or the number */
const char *tap_errno_name(int error);

/* Milliseconds of CLOCK_MONOTONIC */
long long tap_now_ms(void);
/* The same clock as the kernel's timers see it: at its last tick. A timer that
 * is set after that never ends before its time, however late a tick is.
 */
long long tap_tick_ms(void);
/* A time limit, multiplied as XRDS_SLOW asks */
int tap_ms(int ms);
/* How often to repeat what is left to chance: less where a kernel is slow */
int tap_count(int count);
/* Calls cond(arg) until it holds, @ms at most; whether it held */
bool tap_wait(bool (*cond)(void *arg), void *arg, int ms);
/* The same, and a case that cannot go on without it */
#define must_wait(cond, arg, ms) \
	tap_must(tap_wait(cond, arg, ms) ? 0 : (errno = ETIMEDOUT, -1), \
		 TAP_HERE("wait for " #cond))

#endif /* _XRDS_TEST_TAP_H */
