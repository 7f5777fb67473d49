// SPDX-License-Identifier: GPL-2.0-only
/*
 * The user API headers compile alone, in strict C99, and have one layout on
 * every machine. Nothing here runs; a wrong layout does not compile.
 */
#include <linux/xrds.h>
#include <linux/xrds_netlink.h>
#include <stddef.h>

#define SIZE(type, size) \
	typedef char size_of_##type[sizeof(struct type) == (size) ? 1 : -1]
#define OFFSET(type, field, offset) \
	typedef char offset_of_##type##_##field \
		[offsetof(struct type, field) == (offset) ? 1 : -1]
#define VALUE(name, value) \
	typedef char value_of_##name[(name) == (value) ? 1 : -1]

SIZE(xrds_barrier, 160);
OFFSET(xrds_barrier, dest, 0);
OFFSET(xrds_barrier, rdma_id, 128);
OFFSET(xrds_barrier, completed, 136);
OFFSET(xrds_barrier, issued, 144);
OFFSET(xrds_barrier, flags, 152);
OFFSET(xrds_barrier, timeout_ms, 156);

SIZE(xrds_barrier_event, 144);
OFFSET(xrds_barrier_event, dest, 0);
OFFSET(xrds_barrier_event, completed, 128);
OFFSET(xrds_barrier_event, issued, 136);

SIZE(xrds_dest_sndbuf, 136);
OFFSET(xrds_dest_sndbuf, dest, 0);
OFFSET(xrds_dest_sndbuf, bytes, 128);
OFFSET(xrds_dest_sndbuf, reserved, 132);

SIZE(xrds_dest_status, 200);
OFFSET(xrds_dest_status, dest, 0);
OFFSET(xrds_dest_status, state, 128);
OFFSET(xrds_dest_status, flags, 132);
OFFSET(xrds_dest_status, sndbuf, 136);
OFFSET(xrds_dest_status, reserved_bytes, 140);
OFFSET(xrds_dest_status, queued_bytes, 144);
OFFSET(xrds_dest_status, queued_msgs, 152);
OFFSET(xrds_dest_status, inflight_bytes, 160);
OFFSET(xrds_dest_status, acked_msgs, 168);
OFFSET(xrds_dest_status, last_progress_ns, 176);
OFFSET(xrds_dest_status, rdma_issued, 184);
OFFSET(xrds_dest_status, rdma_completed, 192);

SIZE(xrds_mr_event, 16);
OFFSET(xrds_mr_event, cookie, 0);
OFFSET(xrds_mr_event, reason, 8);
OFFSET(xrds_mr_event, reserved, 12);

VALUE(XRDS_DEST_STATUS, 101);
VALUE(XRDS_DEST_SNDBUF, 102);
VALUE(XRDS_REPLY_RESERVE, 103);
VALUE(XRDS_REPLY_RELEASE, 104);
VALUE(XRDS_CONG_EAGAIN, 105);
VALUE(XRDS_DELIVERED_EVENT, 107);
VALUE(XRDS_CMSG_RDMA_ID, 101);
VALUE(XRDS_CMSG_BARRIER, 102);
VALUE(XRDS_CMSG_EOS, 103);
VALUE(XRDS_CMSG_CONG_CLEARED, 104);
VALUE(XRDS_CMSG_MR_LOST, 106);
VALUE(SIOCXRDSBARRIER, 0x89e8);
VALUE(XRDS_BARRIER_NONBLOCK, 1);
VALUE(XRDS_DEST_IDLE, 0);
VALUE(XRDS_DEST_CONNECTING, 1);
VALUE(XRDS_DEST_UP, 2);
VALUE(XRDS_DEST_ERROR, 3);
VALUE(XRDS_DEST_CONGESTED, 1);
VALUE(XRDS_DEST_BLOCKED, 2);
VALUE(XRDS_DEST_EOS_SENT, 4);
VALUE(XRDS_DEST_EOS_RCVD, 8);
VALUE(XRDS_DEST_FLAG_CONGESTED, 1);
VALUE(XRDS_DEST_FLAG_BLOCKED, 2);
VALUE(XRDS_DEST_FLAG_EOS_SENT, 4);
VALUE(XRDS_DEST_FLAG_EOS_RCVD, 8);
VALUE(XRDS_DEST_FLAG_CLOSED, 16);
VALUE(XRDS_EOS_FINISHED, 0);
VALUE(XRDS_EOS_LOST, 1);
VALUE(XRDS_EOS_ABORTED, 2);
VALUE(XRDS_MR_DEVICE_REMOVED, 1);
VALUE(XRDS_MR_ADDRESS_MOVED, 2);
VALUE(XRDS_MR_DEVICE_FAILED, 3);
VALUE(XRDS_EOS_DELIVERED, 3);
VALUE(XRDS_EOS_UNDELIVERED, 4);
