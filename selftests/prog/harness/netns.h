/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ends of network namespaces for tests.
 */
#ifndef _XRDS_TEST_NETNS_H
#define _XRDS_TEST_NETNS_H

#include <stdbool.h>

/* Waits until all namespaces are cleaned up that have ended; false if they are
 * not after about twice this time
 */
bool netns_settled(int ms);

#endif /* _XRDS_TEST_NETNS_H */
