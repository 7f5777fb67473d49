/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fuzzers as processes: their effects on each other and on namespaces, and
 * their beginning.
 */
#ifndef _XRDS_TEST_FUZZ_PROC_H
#define _XRDS_TEST_FUZZ_PROC_H

#include "fuzz.h"

/* Sockets pass from process to process */
long fuzz_call_give(struct fuzz *f);
long fuzz_call_take(struct fuzz *f);
/* A child that goes on with the same sockets, and is killed some time */
long fuzz_call_fork(struct fuzz *f);
/* To another network namespace and back */
long fuzz_call_netns(struct fuzz *f);
/* Sysctls, which ordinary users may not */
long fuzz_call_knob(struct fuzz *f);

/* The rest of the life of a process; its number decides on the user */
void fuzz_process(u64 seed, int number) __noreturn;

#endif /* _XRDS_TEST_FUZZ_PROC_H */
