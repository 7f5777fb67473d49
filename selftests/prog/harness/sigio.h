/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events of a socket as signals.
 */
#ifndef _XRDS_TEST_SIGIO_H
#define _XRDS_TEST_SIGIO_H

#include <signal.h>

/* From now on they are a signal that is queued; @set is for sigio_reason(). */
void sigio_start(int fd, sigset_t *set);
/* The reason of the next signal, or 0 */
int sigio_reason(const sigset_t *set, int fd, int ms);

#endif /* _XRDS_TEST_SIGIO_H */
