// SPDX-License-Identifier: GPL-2.0-only
/*
 * Headers and messages, for the unit tests and the fuzz target: the checksum,
 * computed another way than the decoder does, and comparison.
 */
#include "unit.h"

__u16 unit_csum(const __u8 *hdr)
{
	__u32 sum = 0;
	int i;

	for (i = 0; i < XRDS_WIRE_HDR_BYTES; i += 2) {
		if (i == 30)
			continue;
		sum += hdr[i] << 8 | hdr[i + 1];
		if (sum > 0xffff)
			sum -= 0xffff;
	}
	return 0xffff - sum;
}

void unit_seal(__u8 *hdr)
{
	__u16 csum = unit_csum(hdr);

	hdr[30] = csum >> 8;
	hdr[31] = csum & 0xff;
}

__u32 unit_ext_bytes(__u16 has)
{
	/* type and body, in the order of XRDS_HAS_* */
	static const __u8 lengths[] = { 5, 9, 9, 3, 5, 2, 5, 1, 5, 9 };
	__u32 bytes = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		if (has & 1 << i)
			bytes += lengths[i];
	}
	return bytes;
}

int unit_same(const struct xrds_wire_msg *a, const struct xrds_wire_msg *b)
{
	return a->seq == b->seq && a->ack == b->ack && a->len == b->len &&
	       a->sport == b->sport && a->dport == b->dport &&
	       a->tag == b->tag && a->frag == b->frag &&
	       a->flags == b->flags && a->credit == b->credit &&
	       a->has == b->has && a->cap_bits == b->cap_bits &&
	       a->csum == b->csum && a->sport_idx == b->sport_idx &&
	       a->npaths == b->npaths && a->gen_num == b->gen_num &&
	       a->rdma_rkey == b->rdma_rkey && a->dest_rkey == b->dest_rkey &&
	       a->dest_off == b->dest_off && a->rdma_bytes == b->rdma_bytes &&
	       a->rdma_dir == b->rdma_dir && a->kind == b->kind &&
	       a->eos_reason == b->eos_reason;
}
