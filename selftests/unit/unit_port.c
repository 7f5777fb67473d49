// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of ib/port.c: which ports have which addresses.
 */
#include "unit.h"
#include "ib/port.h"

static const __u8 gid[XRDS_IB_GID_BYTES] = {
	0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x24, 0x8a, 0x07, 3, 0, 0x9e, 0x16, 0xd2,
};

/* flags and the number of the interface's queue pair, then the GID */
static const __u8 hw[XRDS_IB_HW_BYTES] = {
	0x80, 0, 2, 8,
	0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x24, 0x8a, 0x07, 3, 0, 0x9e, 0x16, 0xd2,
};

static void roce(void)
{
	struct xrds_ib_claim claim = {
		.roce = true,
		.addr = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.gid = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
	};
	unsigned int i;

	CHECK(xrds_ib_port_prove(&claim) == XRDS_IB_PROVEN);
	for (i = 0; i < sizeof(claim.gid); i++) {
		claim.gid[i] ^= 1;
		CHECK(xrds_ib_port_prove(&claim) == XRDS_IB_FORGED);
		claim.gid[i] ^= 1;
	}
	/* the answer of the IP network is of no interest */
	claim.hw = hw;
	claim.hw_bytes = sizeof(hw);
	CHECK(xrds_ib_port_prove(&claim) == XRDS_IB_PROVEN);
}

static void infiniband(void)
{
	struct xrds_ib_claim claim = {
		.addr = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.hw = hw,
		.hw_bytes = sizeof(hw),
	};
	__u8 other[sizeof(hw)];
	unsigned int i;

	memcpy(claim.gid, gid, sizeof(gid));
	CHECK(xrds_ib_port_prove(&claim) == XRDS_IB_PROVEN);
	claim.hw = other;
	for (i = 0; i < sizeof(other); i++) {
		memcpy(other, hw, sizeof(other));
		other[i] ^= 0x80;
		/* the queue pair of the interface may be another one */
		CHECK(xrds_ib_port_prove(&claim) ==
		      (i < 4 ? XRDS_IB_PROVEN : XRDS_IB_FORGED));
	}
	/* a port whose GID is the address: that is RoCE's rule */
	memcpy(claim.gid, claim.addr, sizeof(claim.gid));
	claim.hw = hw;
	CHECK(xrds_ib_port_prove(&claim) == XRDS_IB_FORGED);
}

static void unresolved(void)
{
	struct xrds_ib_claim claim = {
		.addr = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.gid = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
	};

	CHECK(xrds_ib_port_prove(&claim) == XRDS_IB_UNPROVEN);
	/* an Ethernet address of some neighbour proves nothing */
	claim.hw = hw;
	claim.hw_bytes = 6;
	CHECK(xrds_ib_port_prove(&claim) == XRDS_IB_FORGED);
}

const struct unit_test unit_port_tests[] = {
	{ roce, "a RoCE port has its addresses as GIDs" },
	{ infiniband, "an InfiniBand port has the GID of its interface" },
	{ unresolved, "an address without a neighbour proves nothing" },
	{ }
};
