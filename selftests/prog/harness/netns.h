/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ends of network namespaces for tests.
 */
#ifndef _XRDS_TEST_NETNS_H
#define _XRDS_TEST_NETNS_H

#include <stdbool.h>
#include <sys/types.h>

/* Marks the caller's namespace. A process is not the last that keeps one: sockets
 * that it has closed may do so for a moment.
 */
void netns_mark(pid_t home);
/* At home: is there one that is marked? */
bool netns_marked(void);
/* Waits, at home, until the marked namespace is about to be cleaned up. */
bool netns_ends(int ms);
/* Waits until all namespaces are cleaned up that have ended; false if they are
 * not after about twice this time
 */
bool netns_settled(int ms);

#endif /* _XRDS_TEST_NETNS_H */
