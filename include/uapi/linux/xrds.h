/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * XRDS user API: additions of the xrds module to <linux/rds.h> for AF_RDS
 * sockets. The family, the socket type, the option level and all numbers of
 * mainline RDS stay as they are. xrds(7), xrds-rdma(7) and xrds-barrier(7)
 * describe the calls.
 *
 * All structures have the same layout on 32 and 64 bit. Fields named reserved
 * must be zero on input and are zero on output. getsockopt() reads only the
 * member dest of its structure; all other members are output.
 */
#ifndef _UAPI_LINUX_XRDS_H
#define _UAPI_LINUX_XRDS_H

#include <linux/types.h>
#include <linux/socket.h>
#include <linux/sockios.h>
#include <linux/rds.h>

/* Socket options, level SOL_RDS */
#define XRDS_DEST_STATUS	101	/* get: struct xrds_dest_status */
#define XRDS_DEST_SNDBUF	102	/* set, get: struct xrds_dest_sndbuf */
#define XRDS_REPLY_RESERVE	103	/* set, get: __u32, bytes per message */
#define XRDS_REPLY_RELEASE	104	/* set: struct sockaddr_storage */
#define XRDS_CONG_EAGAIN	105	/* set, get: int, boolean */
#define XRDS_DELIVERED_EVENT	107	/* set, get: int, boolean */

/* Control messages, level SOL_RDS */
#define XRDS_CMSG_RDMA_ID	101	/* sendmsg: __u64, user address of a __u64 */
#define XRDS_CMSG_BARRIER	102	/* sendmsg: struct xrds_barrier
					 * recvmsg: struct xrds_barrier_event
					 */
#define XRDS_CMSG_EOS		103	/* recvmsg: __u32, enum xrds_eos_reason */
#define XRDS_CMSG_CONG_CLEARED	104	/* recvmsg: struct sockaddr_storage[] */

#define SIOCXRDSBARRIER		(SIOCPROTOPRIVATE + 8)

/* xrds_barrier.flags */
#define XRDS_BARRIER_NONBLOCK	1

/**
 * struct xrds_barrier - wait for RDMA ops, or arm a barrier for them
 * @dest:	node the ops went to; the port is ignored
 * @rdma_id:	in: identifier to wait for, with all earlier ones toward @dest;
 *		0 reports without waiting
 * @completed:	out: high-water mark toward @dest
 * @issued:	out: last identifier given out toward @dest
 * @flags:	in: XRDS_BARRIER_NONBLOCK
 * @timeout_ms:	in: bound of a blocking wait in milliseconds; 0 takes
 *		SO_RCVTIMEO
 */
struct xrds_barrier {
	struct __kernel_sockaddr_storage dest;
	__u64	rdma_id;
	__u64	completed;
	__u64	issued;
	__u32	flags;
	__u32	timeout_ms;
};

/**
 * struct xrds_barrier_event - a barrier was reached
 * @dest:	node the ops went to
 * @completed:	high-water mark toward @dest
 * @issued:	last identifier given out toward @dest
 */
struct xrds_barrier_event {
	struct __kernel_sockaddr_storage dest;
	__u64	completed;
	__u64	issued;
};

/**
 * struct xrds_dest_sndbuf - send space of a destination
 * @dest:	destination; family AF_UNSPEC means the default of every
 *		destination that has no value of its own
 * @bytes:	payload bytes that may be queued
 * @reserved:	zero
 */
struct xrds_dest_sndbuf {
	struct __kernel_sockaddr_storage dest;
	__u32	bytes;
	__u32	reserved;
};

/* xrds_dest_status.state */
enum xrds_dest_state {
	XRDS_DEST_IDLE		= 0,	/* no connection, and none needed */
	XRDS_DEST_CONNECTING	= 1,
	XRDS_DEST_UP		= 2,
	XRDS_DEST_ERROR		= 3,	/* last attempt failed, will retry */
};

/* xrds_dest_status.flags */
#define XRDS_DEST_CONGESTED	1	/* the destination asked senders to stop */
#define XRDS_DEST_BLOCKED	2	/* it refused this socket's last send and
					 * has not become writable since
					 */
#define XRDS_DEST_EOS_SENT	4
#define XRDS_DEST_EOS_RCVD	8

/**
 * struct xrds_dest_status - progress toward one destination
 * @dest:		in: the destination asked about
 * @state:		enum xrds_dest_state
 * @flags:		XRDS_DEST_CONGESTED and the flags beside it
 * @sndbuf:		payload bytes that may be queued
 * @reserved_bytes:	send space reserved for replies
 * @queued_bytes:	accepted and not yet acknowledged by the peer's kernel
 * @queued_msgs:	the same in messages
 * @inflight_bytes:	of @queued_bytes, handed to the transport
 * @acked_msgs:		acknowledged since the socket was bound
 * @last_progress_ns:	CLOCK_MONOTONIC of the last acknowledgment; 0 if none
 * @rdma_issued:	last RDMA identifier given out toward the node
 * @rdma_completed:	high-water mark toward the node
 */
struct xrds_dest_status {
	struct __kernel_sockaddr_storage dest;
	__u32	state;
	__u32	flags;
	__u32	sndbuf;
	__u32	reserved_bytes;
	__u64	queued_bytes;
	__u64	queued_msgs;
	__u64	inflight_bytes;
	__u64	acked_msgs;
	__u64	last_progress_ns;
	__u64	rdma_issued;
	__u64	rdma_completed;
};

/* Payload of XRDS_CMSG_EOS */
enum xrds_eos_reason {
	XRDS_EOS_FINISHED	= 0,	/* the sender shut down or closed */
	XRDS_EOS_LOST		= 1,	/* the sender's node lost the socket */
	XRDS_EOS_ABORTED	= 2,	/* the sender aborted */

	/* with XRDS_DELIVERED_EVENT, of the socket's own streams, without source */
	XRDS_EOS_DELIVERED	= 3,	/* all that was sent is acknowledged */
	XRDS_EOS_UNDELIVERED	= 4,	/* nothing is left, but some was dropped */
};

#endif /* _UAPI_LINUX_XRDS_H */
