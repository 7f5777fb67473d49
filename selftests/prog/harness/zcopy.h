/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sending with MSG_ZEROCOPY from a number of buffers, each of which is spoiled
 * when the kernel says that it needs it no more.
 */
#ifndef _XRDS_TEST_ZCOPY_H
#define _XRDS_TEST_ZCOPY_H

#include <stdbool.h>

#include "sock.h"
#include "types.h"

/* Makes the buffers: aligned and not, of huge pages where there are some */
void zcopy_init(void);
/* Is there a buffer for the next message? Are all of them free? */
bool zcopy_ready(void);
bool zcopy_idle(void);
/*
 * Sends a copy of @data from a buffer, in one to three pieces. -1 with ENOMEM
 * without a buffer.
 */
ssize_t zcopy_send(int fd, const void *data, size_t len, int flags,
		   const union addr *to);
/* As rds_recv_or_mark(); completions free their buffers, and are as a mark */
ssize_t zcopy_recv(int fd, void *data, size_t len, union addr *from,
		   bool *mark);

#endif /* _XRDS_TEST_ZCOPY_H */
