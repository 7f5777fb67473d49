// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wire format: which ports of a node are congested.
 *
 * In XRDS mode a node sends lists of the ports that have changed, or one that
 * replaces all earlier ones; a list has a head and entries of one size,
 * so it is written entry by entry where it is sent from. Legacy nodes send a
 * map with a bit for each port.
 *
 * As in hdr.c all functions are pure, and believe nothing: a list is checked as
 * a whole, entry by entry, before any entry is handed out. Only the core calls
 * them, so nothing is exported. conn/cong.c decides whether a list was asked
 * for, and which senders wait for a port.
 */
#include <linux/string.h>
#include <asm/byteorder.h>
#include "wire/wire.h"

/* Head of a congestion list, and its entries */
struct cong_layout {
	__be16	flags;
	__be16	count;
};

struct cong_entry_layout {
	__be16	port;
	__u8	congested;
	__u8	zero;
};

static_assert(sizeof(struct cong_layout) == 4);
static_assert(sizeof(struct cong_entry_layout) == 4);

#define CONG_FULL	0x0001	/* cong_layout.flags */

/**
 * xrds_wire_cong_bytes() - length of a congestion list
 * @count:	number of entries
 *
 * Context: any.
 * Return: bytes.
 */
__u32 xrds_wire_cong_bytes(__u16 count)
{
	return sizeof(struct cong_layout) +
	       count * sizeof(struct cong_entry_layout);
}

/**
 * xrds_wire_cong_begin() - write the head of a congestion list
 * @buf:	xrds_wire_cong_bytes() of @count, of any alignment
 * @full:	the list replaces all earlier state
 * @count:	entries that follow, at most XRDS_WIRE_CONG_MAX_ENTRIES
 *
 * Context: any.
 */
void xrds_wire_cong_begin(void *buf, __u8 full, __u16 count)
{
	struct cong_layout head = {
		.flags	= __cpu_to_be16(full ? CONG_FULL : 0),
		.count	= __cpu_to_be16(count),
	};

	memcpy(buf, &head, sizeof(head));
}

/**
 * xrds_wire_cong_put() - write one entry of a congestion list
 * @buf:	the list that xrds_wire_cong_begin() was called for
 * @index:	which entry, from 0
 * @port:	a port of the node that sends the list
 * @congested:	whether messages to it must wait
 *
 * Context: any.
 */
void xrds_wire_cong_put(void *buf, __u16 index, __u16 port, __u8 congested)
{
	struct cong_entry_layout entry = {
		.port		= __cpu_to_be16(port),
		.congested	= congested ? 1 : 0,
	};

	memcpy((__u8 *)buf + xrds_wire_cong_bytes(index), &entry,
	       sizeof(entry));
}

/**
 * xrds_wire_cong_decode() - validate a congestion list
 * @cong:	the list; refers to @buf; undefined on error
 * @buf:	payload of the control message, of any alignment
 * @bytes:	its length
 *
 * Context: any.
 * Return: XRDS_WIRE_OK, CTL_LEN for a wrong length, or CONG.
 */
enum xrds_wire_err xrds_wire_cong_decode(struct xrds_wire_cong *cong,
					 const void *buf, __u32 bytes)
{
	struct cong_layout head;
	__u16 flags, i;

	if (bytes < sizeof(head))
		return XRDS_WIRE_CTL_LEN;
	memcpy(&head, buf, sizeof(head));
	flags = __be16_to_cpu(head.flags);
	cong->count = __be16_to_cpu(head.count);
	cong->full = flags & CONG_FULL;
	cong->entries = (const __u8 *)buf + sizeof(head);

	if ((flags & ~CONG_FULL) || cong->count > XRDS_WIRE_CONG_MAX_ENTRIES)
		return XRDS_WIRE_CONG;
	if (bytes != xrds_wire_cong_bytes(cong->count))
		return XRDS_WIRE_CTL_LEN;
	for (i = 0; i < cong->count; i++) {
		struct cong_entry_layout entry;

		memcpy(&entry, cong->entries + i * sizeof(entry),
		       sizeof(entry));
		if (!entry.port || entry.congested > 1 || entry.zero)
			return XRDS_WIRE_CONG;
	}
	return XRDS_WIRE_OK;
}

/**
 * xrds_wire_cong_entry() - read one entry of a congestion list
 * @cong:	a list that xrds_wire_cong_decode() accepted
 * @index:	which entry, below @cong->count
 * @port:	its port
 * @congested:	1 or 0
 *
 * Context: any.
 */
void xrds_wire_cong_entry(const struct xrds_wire_cong *cong, __u16 index,
			  __u16 *port, __u8 *congested)
{
	struct cong_entry_layout entry;

	memcpy(&entry, cong->entries + index * sizeof(entry), sizeof(entry));
	*port = __be16_to_cpu(entry.port);
	*congested = entry.congested & 1;
}

/**
 * xrds_wire_cong_map_test() - look up a port in a congestion map
 * @map:	XRDS_WIRE_CONG_MAP_BYTES
 * @port:	which
 *
 * Context: any.
 * Return: 1 if the port is congested, else 0.
 */
int xrds_wire_cong_map_test(const void *map, __u16 port)
{
	const __u8 *bits = map;

	return bits[port / 8] >> (port % 8) & 1;
}

/**
 * xrds_wire_cong_map_set() - mark a port as congested in a map
 * @map:	XRDS_WIRE_CONG_MAP_BYTES
 * @port:	which
 *
 * Context: any.
 */
void xrds_wire_cong_map_set(void *map, __u16 port)
{
	__u8 *bits = map;

	bits[port / 8] |= 1 << (port % 8);
}
