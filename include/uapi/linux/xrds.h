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
#define XRDS_NODE_EVENTS	106	/* set, get: int, boolean */
#define XRDS_DELIVERED_EVENT	107	/* set, get: int, boolean */

/*
 * Options of Oracle's UEK kernel at the same level. <linux/rds.h> of that
 * kernel has other names for them. The length tells number 8 from
 * SO_RDS_TRANSPORT of mainline, which takes an int.
 */
#define XRDS_UEK_CONN_RESET	8	/* set: struct xrds_uek_reset */
#define XRDS_UEK_TRANSPORT	9	/* set, get: int, as SO_RDS_TRANSPORT */
#define XRDS_UEK_CONN_RESET6	11	/* set: struct xrds_uek_reset6 */
#define XRDS_UEK_INQ		12	/* set, get: int, boolean */

/* Control messages, level SOL_RDS */
#define XRDS_CMSG_RDMA_ID	101	/* sendmsg: __u64, user address of a __u64 */
#define XRDS_CMSG_BARRIER	102	/* sendmsg: struct xrds_barrier
					 * recvmsg: struct xrds_barrier_event
					 */
#define XRDS_CMSG_EOS		103	/* recvmsg: __u32, enum xrds_eos_reason */
#define XRDS_CMSG_CONG_CLEARED	104	/* recvmsg: struct sockaddr_storage[] */
#define XRDS_CMSG_NODE		105	/* recvmsg: struct xrds_node_event */
#define XRDS_CMSG_MR_LOST	106	/* recvmsg: struct xrds_mr_event */

/* The same of Oracle's UEK kernel */
#define XRDS_UEK_CMSG_ASYNC_SEND 10	/* sendmsg: struct xrds_uek_asend */
#define XRDS_UEK_CMSG_INQ	12	/* recvmsg: int, bytes still queued */

#define SIOCXRDSBARRIER		(SIOCPROTOPRIVATE + 8)

/* A flag of rds_rdma_args and rds_atomic_args of that kernel, and one of
 * xrds_uek_asend
 */
#define XRDS_UEK_REMOTE_COMPLETE 0x80	/* notify when the peer's kernel has it */
#define XRDS_UEK_SEND_NOTIFY_ME	0x100	/* notify of a success, too */

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

/* xrds_mr_event.reason */
enum xrds_mr_lost {
	XRDS_MR_DEVICE_REMOVED	= 1,	/* the device of its address has gone */
	XRDS_MR_ADDRESS_MOVED	= 2,	/* another device has the address now */
	XRDS_MR_DEVICE_FAILED	= 3,	/* the device has reported that it failed */
};

/**
 * struct xrds_mr_event - the key of a memory region is void
 * @cookie:	the region; RDS_FREE_MR gives its memory back
 * @reason:	enum xrds_mr_lost
 * @reserved:	zero
 */
struct xrds_mr_event {
	__u64	cookie;
	__u32	reason;
	__u32	reserved;
};

/**
 * struct xrds_uek_asend - a notice of a message is wanted
 * @user_token:	comes with the notice
 * @flags:	XRDS_UEK_SEND_NOTIFY_ME; others are ignored
 */
struct xrds_uek_asend {
	__u64	user_token;
	__u64	flags;
};

/**
 * struct xrds_uek_reset - connections to be made anew
 * @tos:	type of service
 * @pad:	ignored
 * @src:	address of this node, network byte order
 * @dst:	address of the peer; 0: all peers and types of service
 */
struct xrds_uek_reset {
	__u8	tos;
	__u8	pad[3];
	__be32	src;
	__be32	dst;
};

/**
 * struct xrds_uek_reset6 - the same with IPv6 addresses
 * @tos:	type of service
 * @pad:	ignored
 * @src:	address of this node, may be a mapped one
 * @dst:	address of the peer; unspecified: all peers and types of service
 */
struct xrds_uek_reset6 {
	__u8	tos;
	__u8	pad[3];
	__u8	src[16];
	__u8	dst[16];
};

/* Dumps of Oracle's UEK kernel, as RDS_INFO_*: rows are xrds_uek_conn_paths,
 * with IPv4 addresses only, and with all
 */
#define XRDS_UEK_INFO_CONN_PATHS	10020
#define XRDS_UEK_INFO6_CONN_PATHS	10021

#define XRDS_UEK_PATHS		8

/* xrds_uek_path.disconnect_reason; that kernel has more */
#define XRDS_UEK_REASON_NONE		0
#define XRDS_UEK_REASON_USER_RESET	1
#define XRDS_UEK_REASON_TIMEOUT		6

/**
 * struct xrds_uek_path - a path of a connection
 * @attempt_time:	when this side last began an attempt, seconds since 1970; 0:
 *		never
 * @connect_time:	when it came up last
 * @reset_time:		when it was lost last
 * @disconnect_reason:	why, XRDS_UEK_REASON_*
 * @connect_attempts:	attempts that failed since it was up last
 * @index:		of the path
 * @flags:		RDS_INFO_CONNECTION_FLAG_*
 */
struct xrds_uek_path {
	__s64	attempt_time;
	__s64	connect_time;
	__s64	reset_time;
	__u32	disconnect_reason;
	__u32	connect_attempts;
	__u32	index;
	__u8	flags;
} __attribute__((packed));

/**
 * struct xrds_uek_conn_paths - a connection and its paths
 * @local_addr:	address on this node, IPv4 mapped
 * @peer_addr:	the other one
 * @transport:	its name
 * @tos:	type of service
 * @npaths:	1
 * @paths:	the first @npaths of them are used
 */
struct xrds_uek_conn_paths {
	__u8	local_addr[16];
	__u8	peer_addr[16];
	__u8	transport[16];
	__u8	tos;
	__u8	npaths;
	struct xrds_uek_path paths[XRDS_UEK_PATHS];
} __attribute__((packed));

/*
 * Rows of that kernel's RDS_INFO_* are longer than those of <linux/rds.h>: with
 * the sysctl net.xrds.uek_rows the next two stand behind these, without a gap.
 */

/**
 * struct xrds_uek_socket_more - behind rds_info_socket and rds6_info_socket
 * @pid:	process that made the socket; 0: it has ended, or is not for this
 *		reader
 * @congested:	1, or -1 if it is not
 */
struct xrds_uek_socket_more {
	__s32	pid;
	__s32	congested;
} __attribute__((packed));

/**
 * struct xrds_uek_rdma_more - behind rds_info_rdma_connection and its twin
 * @fragment:	most payload of a fragment, bytes
 * @recv_window: most fragments granted to the peer
 * @credits:	fragments that the peer has granted and that are not used
 * @qpn:	number of the queue pair; -1: none, or not for this reader
 * @recv_ring:	0
 * @peer_qpn:	the same of the peer's
 * @send_ring:	0
 * @pad:	0
 * @tx_bytes:	payload that was sent
 * @rx_bytes:	payload that was received
 * @rdma_bytes:	0
 * @polls:	0
 * @vectors:	of completions; -1: not known
 */
struct xrds_uek_rdma_more {
	__u32	fragment;
	__u16	recv_window;
	__u16	credits;
	__s32	qpn;
	__u32	recv_ring[2];
	__s32	peer_qpn;
	__u32	send_ring[2];
	__u32	pad;
	__u64	tx_bytes;
	__u64	rx_bytes;
	__u64	rdma_bytes[2];
	__u64	polls[4];
	__s32	vectors[2];
} __attribute__((packed));

/* Payload of XRDS_CMSG_EOS */
enum xrds_eos_reason {
	XRDS_EOS_FINISHED	= 0,	/* the sender shut down or closed */
	XRDS_EOS_LOST		= 1,	/* the sender's node lost the socket */
	XRDS_EOS_ABORTED	= 2,	/* the sender aborted */

	/* with XRDS_DELIVERED_EVENT, of the socket's own streams, without source */
	XRDS_EOS_DELIVERED	= 3,	/* all that was sent is acknowledged */
	XRDS_EOS_UNDELIVERED	= 4,	/* nothing is left, but some was dropped */
};

/* xrds_node_event.state */
enum xrds_node_state {
	XRDS_NODE_UP		= 1,	/* it is connected again */
	XRDS_NODE_DOWN		= 2,	/* nothing was heard of it for too long */
	XRDS_NODE_REBORN	= 3,	/* connected, and without its old sockets */
};

/**
 * struct xrds_node_event - a node has come or gone
 * @node:	its address; the port is 0
 * @state:	enum xrds_node_state
 * @reason:	DOWN: enum xrds_down_reason of <linux/xrds_netlink.h>; else 0
 * @down_ns:	UP, REBORN: how long nothing was heard; DOWN: since when,
 *		CLOCK_MONOTONIC
 * @dropped_msgs: REBORN: messages of this socket that were dropped, because
 *		they were for the node that was there before; else 0
 */
struct xrds_node_event {
	struct __kernel_sockaddr_storage node;
	__u32	state;
	__u32	reason;
	__u64	down_ns;
	__u64	dropped_msgs;
};

#endif /* _UAPI_LINUX_XRDS_H */
