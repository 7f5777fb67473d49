// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does a port have the address that the sender of a request claims?
 *
 * Anybody who may send requests can put any address into one, and the connection
 * to the node with that address would be replaced. But the path to the sender
 * names the port that the queue pair will be connected to. A RoCE port has its
 * addresses as GIDs. An InfiniBand port has one GID of its own, and the interface
 * of IPoIB has that in its hardware address, which the IP network resolves as any
 * other (RFC 4391, section 9.1.1: flags, number of a queue pair, GID).
 *
 * With RoCE packets go to the port of the GID. Over InfiniBand packets go to the
 * sender's LID, and the sender's kernel has written the GID of the path. There the
 * comparison detects a false address, but not a kernel that lies about its GID as
 * well.
 */
#include <linux/string.h>

#include "ib/port.h"

/**
 * xrds_ib_port_prove - compare a port with an address
 * @claim: address and port
 *
 * Context: any.
 * Return: whether the port has the address.
 */
enum xrds_ib_proof xrds_ib_port_prove(const struct xrds_ib_claim *claim)
{
	const u8 *gid = claim->addr;

	if (!claim->roce) {
		if (!claim->hw_bytes)
			return XRDS_IB_UNPROVEN;
		if (claim->hw_bytes != XRDS_IB_HW_BYTES)
			return XRDS_IB_FORGED;
		gid = claim->hw + XRDS_IB_HW_BYTES - XRDS_IB_GID_BYTES;
	}
	return memcmp(claim->gid, gid, XRDS_IB_GID_BYTES) ? XRDS_IB_FORGED :
							    XRDS_IB_PROVEN;
}
