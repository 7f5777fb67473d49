/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/xrds.yaml */
/* YNL-GEN uapi header */

#ifndef _UAPI_LINUX_XRDS_NETLINK_H
#define _UAPI_LINUX_XRDS_NETLINK_H

#define XRDS_FAMILY_NAME	"xrds"
#define XRDS_FAMILY_VERSION	1

/**
 * enum xrds_conn_state - State of a connection.
 * @XRDS_CONN_STATE_DOWN: No endpoint.
 * @XRDS_CONN_STATE_RESOLVING: Resolving address and route.
 * @XRDS_CONN_STATE_CONNECTING: The request or the reply is sent.
 * @XRDS_CONN_STATE_WAIT_CTS: This side has sent its clear-to-send.
 * @XRDS_CONN_STATE_UP: The peer's clear-to-send has come.
 * @XRDS_CONN_STATE_CLOSING: This side has sent its BYE.
 * @XRDS_CONN_STATE_PARTING: This side answers the BYE of the peer.
 * @XRDS_CONN_STATE_DEAD: The connection is not used any more.
 */
enum xrds_conn_state {
	XRDS_CONN_STATE_DOWN,
	XRDS_CONN_STATE_RESOLVING,
	XRDS_CONN_STATE_CONNECTING,
	XRDS_CONN_STATE_WAIT_CTS,
	XRDS_CONN_STATE_UP,
	XRDS_CONN_STATE_CLOSING,
	XRDS_CONN_STATE_PARTING,
	XRDS_CONN_STATE_DEAD,
};

/**
 * enum xrds_down_reason - Reason why a connection is not up any more.
 * @XRDS_DOWN_REASON_NONE: It is up, or was never up.
 * @XRDS_DOWN_REASON_LOST: It was lost; error has the errno.
 * @XRDS_DOWN_REASON_REPLACED: The peer has connected anew.
 * @XRDS_DOWN_REASON_IDLE: It was not used for net.xrds.idle_ms.
 * @XRDS_DOWN_REASON_PEER: The peer has closed it in order.
 * @XRDS_DOWN_REASON_DEVICE: The device is being removed.
 * @XRDS_DOWN_REASON_GONE: The namespace ends or the module is unloaded.
 */
enum xrds_down_reason {
	XRDS_DOWN_REASON_NONE,
	XRDS_DOWN_REASON_LOST,
	XRDS_DOWN_REASON_REPLACED,
	XRDS_DOWN_REASON_IDLE,
	XRDS_DOWN_REASON_PEER,
	XRDS_DOWN_REASON_DEVICE,
	XRDS_DOWN_REASON_GONE,
};

/**
 * enum xrds_peer_state - State of the node at the other end of connections.
 * @XRDS_PEER_STATE_IDLE: No connection is up, and nothing shows that the node is
 *   gone.
 * @XRDS_PEER_STATE_UP: A connection is up, or was so less than
 *   net.xrds.peer_dead_ms ago.
 * @XRDS_PEER_STATE_DOWN: Nothing was heard of it for net.xrds.peer_dead_ms.
 * @XRDS_PEER_STATE_REBORN: In notifications. Up, and another node than before at
 *   its address.
 */
enum xrds_peer_state {
	XRDS_PEER_STATE_IDLE,
	XRDS_PEER_STATE_UP,
	XRDS_PEER_STATE_DOWN,
	XRDS_PEER_STATE_REBORN,
};

/**
 * enum xrds_socket_flag
 * @XRDS_SOCKET_FLAG_BOUND: Has an address.
 * @XRDS_SOCKET_FLAG_CONNECTED: Has a default destination.
 * @XRDS_SOCKET_FLAG_CONGESTED: Its receive queue exceeds SO_RCVBUF.
 * @XRDS_SOCKET_FLAG_ENDING: It is shut down for sending.
 */
enum xrds_socket_flag {
	XRDS_SOCKET_FLAG_BOUND = 1,
	XRDS_SOCKET_FLAG_CONNECTED = 2,
	XRDS_SOCKET_FLAG_CONGESTED = 4,
	XRDS_SOCKET_FLAG_ENDING = 8,
};

/**
 * enum xrds_dest_flag
 * @XRDS_DEST_FLAG_BLOCKED: It refused the last send, and would do so now.
 * @XRDS_DEST_FLAG_CONGESTED: The destination is congested.
 * @XRDS_DEST_FLAG_EOS_SENT: The stream to it has ended.
 * @XRDS_DEST_FLAG_CLOSED: The socket is closed and still delivers messages.
 */
enum xrds_dest_flag {
	XRDS_DEST_FLAG_BLOCKED = 1,
	XRDS_DEST_FLAG_CONGESTED = 2,
	XRDS_DEST_FLAG_EOS_SENT = 4,
	XRDS_DEST_FLAG_CLOSED = 8,
};

/**
 * enum xrds_region_flag
 * @XRDS_REGION_FLAG_WRITE: Peers may write.
 * @XRDS_REGION_FLAG_USE_ONCE: It ends when an op has used it.
 */
enum xrds_region_flag {
	XRDS_REGION_FLAG_WRITE = 1,
	XRDS_REGION_FLAG_USE_ONCE = 2,
};

/**
 * enum xrds_conn_flag
 * @XRDS_CONN_FLAG_DIALLED: This side has sent the request.
 * @XRDS_CONN_FLAG_FAILED: The last attempt failed.
 * @XRDS_CONN_FLAG_CLASSIC: The peer speaks a legacy version of the protocol.
 * @XRDS_CONN_FLAG_WAITING: Messages wait to be sent.
 * @XRDS_CONN_FLAG_SHARED_RQ: Receives from the device's shared receive queue.
 */
enum xrds_conn_flag {
	XRDS_CONN_FLAG_DIALLED = 1,
	XRDS_CONN_FLAG_FAILED = 2,
	XRDS_CONN_FLAG_CLASSIC = 4,
	XRDS_CONN_FLAG_WAITING = 8,
	XRDS_CONN_FLAG_SHARED_RQ = 16,
};

/**
 * enum xrds_device_flag
 * @XRDS_DEVICE_FLAG_SHARED_RQ: Endpoints share a receive queue.
 * @XRDS_DEVICE_FLAG_FENCES: It orders fenced work requests correctly.
 * @XRDS_DEVICE_FLAG_ATOMICS: Has atomic operations.
 */
enum xrds_device_flag {
	XRDS_DEVICE_FLAG_SHARED_RQ = 1,
	XRDS_DEVICE_FLAG_FENCES = 2,
	XRDS_DEVICE_FLAG_ATOMICS = 4,
};

enum xrds_a_socket {
	XRDS_A_SOCKET_PAD = 1,
	XRDS_A_SOCKET_ID,
	XRDS_A_SOCKET_INODE,
	XRDS_A_SOCKET_UID,
	XRDS_A_SOCKET_LADDR,
	XRDS_A_SOCKET_LPORT,
	XRDS_A_SOCKET_FADDR,
	XRDS_A_SOCKET_FPORT,
	XRDS_A_SOCKET_SCOPE,
	XRDS_A_SOCKET_TRANSPORT,
	XRDS_A_SOCKET_FLAGS,
	XRDS_A_SOCKET_TOS,
	XRDS_A_SOCKET_SNDBUF,
	XRDS_A_SOCKET_RCVBUF,
	XRDS_A_SOCKET_QUEUED_BYTES,
	XRDS_A_SOCKET_QUEUED_MSGS,
	XRDS_A_SOCKET_RECV_BYTES,
	XRDS_A_SOCKET_DESTS,
	XRDS_A_SOCKET_NODES,

	__XRDS_A_SOCKET_MAX,
	XRDS_A_SOCKET_MAX = (__XRDS_A_SOCKET_MAX - 1)
};

enum xrds_a_dest {
	XRDS_A_DEST_PAD = 1,
	XRDS_A_DEST_SOCKET,
	XRDS_A_DEST_LADDR,
	XRDS_A_DEST_LPORT,
	XRDS_A_DEST_FADDR,
	XRDS_A_DEST_FPORT,
	XRDS_A_DEST_SCOPE,
	XRDS_A_DEST_FLAGS,
	XRDS_A_DEST_CONN_STATE,
	XRDS_A_DEST_SNDBUF,
	XRDS_A_DEST_QUEUED_BYTES,
	XRDS_A_DEST_QUEUED_MSGS,
	XRDS_A_DEST_ACKED_MSGS,
	XRDS_A_DEST_PROGRESS_NS,

	__XRDS_A_DEST_MAX,
	XRDS_A_DEST_MAX = (__XRDS_A_DEST_MAX - 1)
};

enum xrds_a_node {
	XRDS_A_NODE_PAD = 1,
	XRDS_A_NODE_SOCKET,
	XRDS_A_NODE_LADDR,
	XRDS_A_NODE_LPORT,
	XRDS_A_NODE_FADDR,
	XRDS_A_NODE_SCOPE,
	XRDS_A_NODE_ISSUED,
	XRDS_A_NODE_COMPLETED,
	XRDS_A_NODE_ARMED,

	__XRDS_A_NODE_MAX,
	XRDS_A_NODE_MAX = (__XRDS_A_NODE_MAX - 1)
};

enum xrds_a_conn {
	XRDS_A_CONN_PAD = 1,
	XRDS_A_CONN_LADDR,
	XRDS_A_CONN_FADDR,
	XRDS_A_CONN_SCOPE,
	XRDS_A_CONN_TOS,
	XRDS_A_CONN_LANE,
	XRDS_A_CONN_TRANSPORT,
	XRDS_A_CONN_STATE,
	XRDS_A_CONN_FLAGS,
	XRDS_A_CONN_RETRIES,
	XRDS_A_CONN_UP_MS,
	XRDS_A_CONN_TX_SEQ,
	XRDS_A_CONN_ACKED_SEQ,
	XRDS_A_CONN_RX_SEQ,
	XRDS_A_CONN_DEVICE,
	XRDS_A_CONN_QPN,
	XRDS_A_CONN_PEER_QPN,
	XRDS_A_CONN_VERSION,
	XRDS_A_CONN_MTU,
	XRDS_A_CONN_FRAGMENT,
	XRDS_A_CONN_SEND_SLOTS,
	XRDS_A_CONN_SEND_USED,
	XRDS_A_CONN_CREDITS,
	XRDS_A_CONN_RECV_WINDOW,
	XRDS_A_CONN_RETRY_COUNT,
	XRDS_A_CONN_RTT_NS,
	XRDS_A_CONN_REASON,
	XRDS_A_CONN_ERROR,
	XRDS_A_CONN_FAILED_MS,
	XRDS_A_CONN_LOST,
	XRDS_A_CONN_TX_BYTES,
	XRDS_A_CONN_RX_BYTES,

	__XRDS_A_CONN_MAX,
	XRDS_A_CONN_MAX = (__XRDS_A_CONN_MAX - 1)
};

enum xrds_a_region {
	XRDS_A_REGION_PAD = 1,
	XRDS_A_REGION_SOCKET,
	XRDS_A_REGION_UID,
	XRDS_A_REGION_LADDR,
	XRDS_A_REGION_LPORT,
	XRDS_A_REGION_RKEY,
	XRDS_A_REGION_BYTES,
	XRDS_A_REGION_PAGES,
	XRDS_A_REGION_FLAGS,
	XRDS_A_REGION_TRANSPORT,

	__XRDS_A_REGION_MAX,
	XRDS_A_REGION_MAX = (__XRDS_A_REGION_MAX - 1)
};

enum xrds_a_counter {
	XRDS_A_COUNTER_PAD = 1,
	XRDS_A_COUNTER_NAME,
	XRDS_A_COUNTER_VALUE,
	XRDS_A_COUNTER_HELP,
	XRDS_A_COUNTER_LEVEL,

	__XRDS_A_COUNTER_MAX,
	XRDS_A_COUNTER_MAX = (__XRDS_A_COUNTER_MAX - 1)
};

enum xrds_a_device {
	XRDS_A_DEVICE_PAD = 1,
	XRDS_A_DEVICE_NAME,
	XRDS_A_DEVICE_TRANSPORT,
	XRDS_A_DEVICE_GUID,
	XRDS_A_DEVICE_FLAGS,
	XRDS_A_DEVICE_ENDPOINTS,
	XRDS_A_DEVICE_REGIONS,
	XRDS_A_DEVICE_RECV_POSTED,
	XRDS_A_DEVICE_RECV_BYTES,
	XRDS_A_DEVICE_MAX_QP,
	XRDS_A_DEVICE_MAX_QP_WR,
	XRDS_A_DEVICE_MAX_CQE,
	XRDS_A_DEVICE_MAX_SGE,
	XRDS_A_DEVICE_MAX_SRQ,
	XRDS_A_DEVICE_MAX_SRQ_WR,
	XRDS_A_DEVICE_MAX_MR,
	XRDS_A_DEVICE_MAX_MR_PAGES,
	XRDS_A_DEVICE_MAX_RD_ATOMIC,

	__XRDS_A_DEVICE_MAX,
	XRDS_A_DEVICE_MAX = (__XRDS_A_DEVICE_MAX - 1)
};

enum xrds_a_peer {
	XRDS_A_PEER_PAD = 1,
	XRDS_A_PEER_LADDR,
	XRDS_A_PEER_FADDR,
	XRDS_A_PEER_SCOPE,
	XRDS_A_PEER_STATE,
	XRDS_A_PEER_SINCE_MS,
	XRDS_A_PEER_REASON,
	XRDS_A_PEER_CONNS,
	XRDS_A_PEER_UP_CONNS,
	XRDS_A_PEER_WATCHES,
	XRDS_A_PEER_SILENT_MS,
	XRDS_A_PEER_OUTAGE_MS,

	__XRDS_A_PEER_MAX,
	XRDS_A_PEER_MAX = (__XRDS_A_PEER_MAX - 1)
};

enum xrds_cmd {
	XRDS_CMD_SOCKET_GET = 1,
	XRDS_CMD_DEST_GET,
	XRDS_CMD_NODE_GET,
	XRDS_CMD_CONN_GET,
	XRDS_CMD_REGION_GET,
	XRDS_CMD_COUNTER_GET,
	XRDS_CMD_DEVICE_GET,
	XRDS_CMD_CONN_UP_NTF,
	XRDS_CMD_CONN_DOWN_NTF,
	XRDS_CMD_PEER_GET,
	XRDS_CMD_PEER_NTF,
	XRDS_CMD_CONN_RESET,

	__XRDS_CMD_MAX,
	XRDS_CMD_MAX = (__XRDS_CMD_MAX - 1)
};

#define XRDS_MCGRP_CONN	"conn"

#endif /* _UAPI_LINUX_XRDS_NETLINK_H */
