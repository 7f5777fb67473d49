// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trace points, in the flesh. Those that a transport calls are exported.
 */
#include "rdma/rdma.h"
#include "sock/dest.h"
#include "sock/sock.h"

#define CREATE_TRACE_POINTS
#include "tracepoints.h"

EXPORT_TRACEPOINT_SYMBOL_GPL(xrds_msg_done);
EXPORT_TRACEPOINT_SYMBOL_GPL(xrds_credit_got);
EXPORT_TRACEPOINT_SYMBOL_GPL(xrds_credit_grant);
