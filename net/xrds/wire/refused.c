// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wire format: which messages a receiver has refused.
 *
 * In XRDS mode a receiver that has no memory for a message drops it with all
 * later ones of its flow (source port, destination port), and names the flow and
 * the first number in a list. Entries have one size and the list has no head, so
 * the length of the control message tells their number. Legacy nodes have
 * nothing like it.
 *
 * As in hdr.c all functions are pure, and believe nothing: the decoder of headers
 * has checked the length with xrds_wire_refused_count(), and each entry is
 * checked where it is read. A receiver reads all entries before it acts on one.
 * Only the core calls these functions, so nothing is exported. conn/refuse.c
 * decides whether a number was sent, and which messages are sent again.
 */
#include <linux/string.h>
#include <asm/byteorder.h>
#include "wire/wire.h"

struct refused_layout {
	__be64	seq;
	__be16	sport;
	__be16	dport;
	__be32	zero;
};

static_assert(sizeof(struct refused_layout) == XRDS_WIRE_REFUSED_BYTES);

/**
 * xrds_wire_refused_put() - write one entry of a list of refused messages
 * @buf:	space for XRDS_WIRE_REFUSED_BYTES per entry, of any alignment
 * @index:	which entry, from 0, below XRDS_WIRE_REFUSED_MAX_ENTRIES
 * @entry:	its content
 *
 * Context: any.
 */
void xrds_wire_refused_put(void *buf, __u16 index,
			   const struct xrds_wire_refused *entry)
{
	struct refused_layout layout = {
		.seq	= __cpu_to_be64(entry->seq),
		.sport	= __cpu_to_be16(entry->sport),
		.dport	= __cpu_to_be16(entry->dport),
	};

	memcpy((__u8 *)buf + index * sizeof(layout), &layout, sizeof(layout));
}

/**
 * xrds_wire_refused_count() - number of entries in a list of refused messages
 * @bytes:	length of the list
 *
 * Context: any.
 * Return: the number, from 1 to XRDS_WIRE_REFUSED_MAX_ENTRIES, or
 * -XRDS_WIRE_REFUSED if no list has this length.
 */
int xrds_wire_refused_count(__u32 bytes)
{
	if (!bytes || bytes % XRDS_WIRE_REFUSED_BYTES ||
	    bytes / XRDS_WIRE_REFUSED_BYTES > XRDS_WIRE_REFUSED_MAX_ENTRIES)
		return -XRDS_WIRE_REFUSED;
	return bytes / XRDS_WIRE_REFUSED_BYTES;
}

/**
 * xrds_wire_refused_entry() - read and validate one entry of a list
 * @buf:	the list, of any alignment
 * @index:	which entry, below xrds_wire_refused_count()
 * @entry:	its content; undefined on error
 *
 * Context: any.
 * Return: XRDS_WIRE_OK, or REFUSED.
 */
enum xrds_wire_err xrds_wire_refused_entry(const void *buf, __u16 index,
					   struct xrds_wire_refused *entry)
{
	struct refused_layout layout;

	memcpy(&layout, (const __u8 *)buf + index * sizeof(layout),
	       sizeof(layout));
	entry->seq = __be64_to_cpu(layout.seq);
	entry->sport = __be16_to_cpu(layout.sport);
	entry->dport = __be16_to_cpu(layout.dport);
	if (!entry->seq || !entry->sport || !entry->dport || layout.zero)
		return XRDS_WIRE_REFUSED;
	return XRDS_WIRE_OK;
}
