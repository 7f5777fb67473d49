/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Destinations that refuse messages, and receivers that end that.
 */
#ifndef _XRDS_TEST_CONGEST_H
#define _XRDS_TEST_CONGEST_H

#include <stddef.h>

#include "sock.h"

/*
 * Sends messages of @bytes until one is refused with @error; how many bytes
 * were accepted. A full destination is waited for if that is another error, as
 * it takes more when messages are acknowledged. Ends the case after @ms, or at
 * any other error.
 */
long send_until(int fd, const union addr *to, size_t bytes, int error, int ms);
/* Sends messages of 4 KiB until the destination is congested */
void congest(int fd, const union addr *to);
/*
 * The same with messages of @bytes, one acknowledged before the next goes, so that
 * none waits, which would congest the destination again
 */
void congest_slowly(int fd, const union addr *to, size_t bytes);
/* Reads all messages that are there, without waiting; how many */
int drain(int fd);
/*
 * Reads what comes to @rx until poll() reports any of @events on @fd; which, or
 * 0 if none was reported in time.
 */
int drain_until(int rx, int fd, int events);
/* A bound socket that is congested soon: it has a receive buffer of 64 KiB */
int small_receiver(union addr *self);

#endif /* _XRDS_TEST_CONGEST_H */
