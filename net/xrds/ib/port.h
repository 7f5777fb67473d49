/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Does a port have the address that the sender of a request claims? Pure; see
 * port.c.
 */
#ifndef _XRDS_IB_PORT_H
#define _XRDS_IB_PORT_H

#include <linux/types.h>

enum {
	XRDS_IB_GID_BYTES	= 16,
	/* hardware address of an IPoIB interface; the GID of its port is at the
	 * end
	 */
	XRDS_IB_HW_BYTES	= 20,
};

enum xrds_ib_proof {
	XRDS_IB_PROVEN,
	XRDS_IB_UNPROVEN,	/* not known before the network has answered */
	XRDS_IB_FORGED
};

/**
 * struct xrds_ib_claim - what a node knows of the sender of a request
 * @roce:	the port is a RoCE port; else an InfiniBand one
 * @addr:	IPv6 address that it claims; an IPv4 one is mapped
 * @gid:	of the port that the queue pair would be connected to
 * @hw:		InfiniBand only: hardware address that the IP network has for
 *		@addr
 * @hw_bytes:	length of @hw; 0: not known yet
 */
struct xrds_ib_claim {
	bool roce;
	u8 addr[XRDS_IB_GID_BYTES];
	u8 gid[XRDS_IB_GID_BYTES];
	const u8 *hw;
	u32 hw_bytes;
};

enum xrds_ib_proof xrds_ib_port_prove(const struct xrds_ib_claim *claim);

#endif /* _XRDS_IB_PORT_H */
