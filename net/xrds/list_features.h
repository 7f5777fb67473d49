/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Features that programs and administrators can ask for: X(name, revision, help).
 * Included with X() defined. A revision grows when the feature changes for its
 * users.
 */
X("wire", 6, "wire format between XRDS nodes; this node supports 3 to 5, too")
X("wire-legacy", 1, "wire formats 3.1 and 4.1 of mainline")
X("uek", 2, "options, control messages, rows and heartbeats of UEK")
X("dest-status", 1, "XRDS_DEST_STATUS and XRDS_DEST_SNDBUF")
X("reply", 1, "XRDS_REPLY_RESERVE and XRDS_REPLY_RELEASE")
X("cong-eagain", 1, "XRDS_CONG_EAGAIN, XRDS_CMSG_CONG_CLEARED")
X("node-events", 1, "XRDS_NODE_EVENTS")
X("delivered", 1, "XRDS_DELIVERED_EVENT")
X("eos", 1, "XRDS_CMSG_EOS: ends of streams")
X("barrier", 1, "SIOCXRDSBARRIER, XRDS_CMSG_BARRIER and XRDS_CMSG_RDMA_ID")
X("zerocopy", 1, "MSG_ZEROCOPY with RDS_CMSG_ZCOPY_COOKIE, over all transports")
X("mr-lost", 1, "XRDS_CMSG_MR_LOST")
X("conn-reset", 1, "an administrator resets connections")
X("drain", 1, "an administrator ends connections to other nodes in order")
