// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wire format: the exchange of two nodes before the first message.
 *
 *   request  ->            private data: addresses, versions offered
 *            <-  reply     private data: the version chosen; or a refusal
 *   hello   <->  hello     XRDS mode only: clear-to-send, limits, credits
 *
 * Private data travels in the connection manager's messages, between a header
 * and padding that the connection manager may add. Legacy nodes send it in the
 * same layout, so a version is found by comparing offers. The hello is the
 * first control message each way. It tells which node the sender is, and which
 * one it takes the receiver for, so that the messages left of an earlier
 * connection are sent again or dropped.
 *
 * As in hdr.c all functions are pure, and believe nothing: each length is
 * compared with the bytes that arrived, and values out of bounds are refused.
 * Whether addresses are those of the connection, and a hello comes first, is
 * for the caller to find out.
 */
#include <linux/export.h>
#include <linux/string.h>
#include <asm/byteorder.h>
#include "wire/wire.h"

/* The hello as it travels */
struct hello_layout {
	__be16	revision;
	__be16	flags;
	__be32	frag_bytes;
	__be16	credits;
	__be16	tags;
	__u8	lane;
	__u8	epoch;
	__u8	zero[2];
	__be64	node;
	__be64	peer_node;
	__be64	ack;
	__be64	reserved;
};

static_assert(sizeof(struct hello_layout) == XRDS_WIRE_HELLO_BYTES);

/* Private data behind the two addresses */
struct priv_layout {
	__u8	major;
	__u8	minor;
	__be16	mask;
	__u8	tos;
	__u8	epoch;
	__be16	payload;
	__be64	ack;
	__be32	credits;
	__be32	pad;
};

static_assert(2 * 4 + sizeof(struct priv_layout) == XRDS_WIRE_PRIV_V4_BYTES);
static_assert(2 * 16 + sizeof(struct priv_layout) == XRDS_WIRE_PRIV_V6_BYTES);

/* ---------------------------------------------------------------- hello */

/**
 * xrds_wire_hello_encode() - write a clear-to-send
 * @buf:	XRDS_WIRE_HELLO_BYTES, of any alignment
 * @hello:	its fields
 *
 * Context: any.
 */
void xrds_wire_hello_encode(void *buf, const struct xrds_wire_hello *hello)
{
	struct hello_layout h = {
		.revision	= __cpu_to_be16(hello->revision),
		.flags		= __cpu_to_be16(hello->flags),
		.frag_bytes	= __cpu_to_be32(hello->frag_bytes),
		.credits	= __cpu_to_be16(hello->credits),
		.tags		= __cpu_to_be16(hello->tags),
		.lane		= hello->lane,
		.epoch		= hello->epoch,
		.node		= __cpu_to_be64(hello->node),
		.peer_node	= __cpu_to_be64(hello->peer_node),
		.ack		= __cpu_to_be64(hello->ack),
	};

	memcpy(buf, &h, sizeof(h));
}
EXPORT_SYMBOL_GPL(xrds_wire_hello_encode);

/* Flags that a revision up to ours knows */
static __u16 hello_flags(__u16 revision)
{
	__u16 flags = XRDS_HELLO_BUNDLES | XRDS_HELLO_KNOWN;

	if (revision == XRDS_REVISION_UNCHECKED)
		flags |= XRDS_HELLO_UNCHECKED;
	if (revision == XRDS_REVISION_NUMBERED)
		flags |= XRDS_HELLO_NUMBERED;
	if (revision >= XRDS_REVISION_SHORT)
		flags |= XRDS_HELLO_SHORT;
	return flags;
}

/**
 * xrds_wire_hello_decode() - read and validate a clear-to-send
 * @hello:	its fields; undefined on error
 * @buf:	payload of the control message, of any alignment
 * @bytes:	its length
 *
 * A later revision than ours may give reserved fields and flags a meaning, so
 * they have to be zero only up to ours.
 *
 * Context: any.
 * Return: XRDS_WIRE_OK, CTL_LEN for a wrong length, or HELLO.
 */
enum xrds_wire_err xrds_wire_hello_decode(struct xrds_wire_hello *hello,
					  const void *buf, __u32 bytes)
{
	struct hello_layout h;

	if (bytes != sizeof(h))
		return XRDS_WIRE_CTL_LEN;
	memcpy(&h, buf, sizeof(h));

	hello->revision = __be16_to_cpu(h.revision);
	hello->flags = __be16_to_cpu(h.flags);
	hello->frag_bytes = __be32_to_cpu(h.frag_bytes);
	hello->credits = __be16_to_cpu(h.credits);
	hello->tags = __be16_to_cpu(h.tags);
	hello->lane = h.lane;
	hello->epoch = h.epoch;
	hello->node = __be64_to_cpu(h.node);
	hello->peer_node = __be64_to_cpu(h.peer_node);
	hello->ack = __be64_to_cpu(h.ack);

	if (hello->revision < XRDS_REVISION_FIRST)
		return XRDS_WIRE_HELLO;
	if (hello->revision <= XRDS_REVISION &&
	    (hello->flags & ~hello_flags(hello->revision) || h.zero[0] ||
	     h.zero[1] || h.reserved))
		return XRDS_WIRE_HELLO;
	if (hello->frag_bytes < XRDS_WIRE_MIN_FRAG_BYTES ||
	    hello->frag_bytes > XRDS_WIRE_MAX_FRAG_BYTES ||
	    hello->frag_bytes % XRDS_WIRE_FRAG_UNIT_BYTES)
		return XRDS_WIRE_HELLO;
	if (!hello->credits || hello->credits > XRDS_WIRE_MAX_HELLO_CREDITS)
		return XRDS_WIRE_HELLO;
	if (!hello->tags || !hello->node)
		return XRDS_WIRE_HELLO;
	/* an acknowledgment of nobody's messages */
	if (!hello->peer_node && hello->ack)
		return XRDS_WIRE_HELLO;
	return XRDS_WIRE_OK;
}
EXPORT_SYMBOL_GPL(xrds_wire_hello_decode);

/* --------------------------------------------------------- private data */

static const __u8 v4_mapped[12] = { [10] = 0xff, [11] = 0xff };

static __u32 v4_value(const __u8 *mapped)
{
	__be32 x;

	memcpy(&x, mapped + sizeof(v4_mapped), sizeof(x));
	return __be32_to_cpu(x);
}

/* Whether a node can have this address. */
static int addr_valid(const struct in6_addr *addr, int v6)
{
	static const struct in6_addr none;
	const __u8 *a = addr->s6_addr;

	if (v6)
		return memcmp(addr, &none, sizeof(none)) && a[0] != 0xff &&
		       memcmp(a, v4_mapped, sizeof(v4_mapped));
	/* neither unspecified, nor multicast, nor broadcast */
	return v4_value(a) && (a[12] & 0xf0) != 0xe0 &&
	       v4_value(a) != 0xffffffff;
}

static void v4_get(struct in6_addr *addr, const __u8 *p)
{
	memcpy(addr->s6_addr, v4_mapped, sizeof(v4_mapped));
	memcpy(addr->s6_addr + sizeof(v4_mapped), p, 4);
}

/**
 * xrds_wire_priv_encode() - write the private data of a request or reply
 * @buf:	XRDS_WIRE_PRIV_V6_BYTES, of any alignment
 * @priv:	its fields
 * @v6:		the addresses are IPv6, not IPv4 mapped
 *
 * Context: any.
 * Return: bytes written, XRDS_WIRE_PRIV_V4_BYTES or XRDS_WIRE_PRIV_V6_BYTES.
 */
__u32 xrds_wire_priv_encode(void *buf, const struct xrds_wire_priv *priv,
			    int v6)
{
	struct priv_layout tail = {
		.major		= priv->major,
		.minor		= priv->minor,
		.mask		= __cpu_to_be16(priv->mask),
		.tos		= priv->tos,
		.epoch		= priv->epoch,
		.payload	= __cpu_to_be16(priv->payload),
		.ack		= __cpu_to_be64(priv->ack),
		.credits	= __cpu_to_be32(priv->credits),
	};
	__u32 skip = v6 ? 0 : 12;
	__u32 size = 16 - skip;
	__u8 *p = buf;

	memcpy(p, priv->saddr.s6_addr + skip, size);
	memcpy(p + size, priv->daddr.s6_addr + skip, size);
	memcpy(p + 2 * size, &tail, sizeof(tail));
	return 2 * size + sizeof(tail);
}
EXPORT_SYMBOL_GPL(xrds_wire_priv_encode);

/**
 * xrds_wire_priv_decode() - read and validate private data
 * @priv:	its fields; undefined on error
 * @buf:	private data of the event, of any alignment
 * @bytes:	its length; the connection manager may have padded it
 * @v6:		the connection is between IPv6 addresses
 *
 * Whether the addresses are those of the connection, and whether there is a
 * common version, is for the caller to find out.
 *
 * Context: any.
 * Return: XRDS_WIRE_OK, PRIV_LEN if there is too little, or PRIV_ADDR if an
 * address cannot be that of a node.
 */
enum xrds_wire_err xrds_wire_priv_decode(struct xrds_wire_priv *priv,
					 const void *buf, __u32 bytes, int v6)
{
	__u32 size = v6 ? 16 : 4;
	struct priv_layout tail;
	const __u8 *p = buf;

	if (bytes < 2 * size + sizeof(tail))
		return XRDS_WIRE_PRIV_LEN;
	if (v6) {
		memcpy(priv->saddr.s6_addr, p, size);
		memcpy(priv->daddr.s6_addr, p + size, size);
	} else {
		v4_get(&priv->saddr, p);
		v4_get(&priv->daddr, p + size);
	}
	memcpy(&tail, p + 2 * size, sizeof(tail));
	priv->major = tail.major;
	priv->minor = tail.minor;
	priv->mask = __be16_to_cpu(tail.mask);
	priv->tos = tail.tos;
	priv->epoch = tail.epoch;
	priv->payload = __be16_to_cpu(tail.payload);
	priv->ack = __be64_to_cpu(tail.ack);
	priv->credits = __be32_to_cpu(tail.credits);

	if (!addr_valid(&priv->saddr, v6) || !addr_valid(&priv->daddr, v6))
		return XRDS_WIRE_PRIV_ADDR;
	return XRDS_WIRE_OK;
}
EXPORT_SYMBOL_GPL(xrds_wire_priv_decode);

/**
 * xrds_wire_priv_version() - version to answer a request with
 * @priv:	private data of the request
 * @mask:	minor versions of major 4 that this side speaks
 *
 * Context: any.
 * Return: XRDS_VER_*, the highest that both sides speak; 0: none, refuse.
 */
int xrds_wire_priv_version(const struct xrds_wire_priv *priv, __u16 mask)
{
	__u16 common = priv->mask & mask;

	if (priv->major == 3 && priv->minor == 1)
		return XRDS_VER_3_1;
	if (priv->major != 4)
		return 0;
	if (common & XRDS_WIRE_MASK_XRDS)
		return XRDS_VER_XRDS;
	if (common & XRDS_WIRE_MASK_4_1)
		return XRDS_VER_4_1;
	if (common & XRDS_WIRE_MASK_4_0)
		return XRDS_VER_4_0;
	return 0;
}
EXPORT_SYMBOL_GPL(xrds_wire_priv_version);

/**
 * xrds_wire_priv_version_chosen() - version that a reply settles on
 * @priv:	private data of the reply
 * @mask:	minor versions of major 4 that the request offered
 *
 * Context: any.
 * Return: XRDS_VER_*; 0: the peer chose a version that was not offered.
 */
int xrds_wire_priv_version_chosen(const struct xrds_wire_priv *priv, __u16 mask)
{
	int ver = XRDS_VER(priv->major, priv->minor);

	switch (ver) {
	case XRDS_VER_3_1:
		return ver;
	case XRDS_VER_4_0:
	case XRDS_VER_4_1:
	case XRDS_VER_XRDS:
		return mask & (1 << priv->minor) ? ver : 0;
	default:
		return 0;
	}
}
EXPORT_SYMBOL_GPL(xrds_wire_priv_version_chosen);

/**
 * xrds_wire_priv_legacy_payload() - payload of a fragment of a legacy connection
 * @priv:	private data of the peer
 * @ver:	negotiated version, XRDS_VER_*
 *
 * Both sides take the lower one of their two sizes, and know few sizes. That of
 * this side is XRDS_WIRE_CLASSIC_MAX_PAYLOAD.
 *
 * Context: any.
 * Return: bytes, of each fragment but the last one.
 */
__u32 xrds_wire_priv_legacy_payload(const struct xrds_wire_priv *priv, int ver)
{
	return ver == XRDS_VER_4_1 &&
	       priv->payload >= XRDS_WIRE_CLASSIC_MAX_PAYLOAD ?
	       XRDS_WIRE_CLASSIC_MAX_PAYLOAD : XRDS_WIRE_CLASSIC_PAYLOAD;
}
EXPORT_SYMBOL_GPL(xrds_wire_priv_legacy_payload);

/**
 * xrds_wire_reject_encode() - write the private data of a refusal
 * @buf:	XRDS_WIRE_REJECT_BYTES, of any alignment
 * @reason:	why the request is refused
 *
 * In the byte order of the machine, which is how legacy nodes read it.
 *
 * Context: any.
 * Return: bytes written.
 */
__u32 xrds_wire_reject_encode(void *buf, enum xrds_wire_reject reason)
{
	__u32 v = reason;

	memcpy(buf, &v, sizeof(v));
	return sizeof(v);
}
EXPORT_SYMBOL_GPL(xrds_wire_reject_encode);

/**
 * xrds_wire_reject_decode() - read the private data of a refusal
 * @buf:	private data of the event, of any alignment; may be NULL if
 *		@bytes is 0
 * @bytes:	its length
 *
 * Context: any.
 * Return: the reason, read in either byte order; XRDS_REJECT_NONE if there is
 * none or it is not known.
 */
enum xrds_wire_reject xrds_wire_reject_decode(const void *buf, __u32 bytes)
{
	const __u8 *p = buf;
	__u8 v;

	if (bytes < XRDS_WIRE_REJECT_BYTES || p[1] || p[2] || (p[0] && p[3]))
		return XRDS_REJECT_NONE;
	v = p[0] | p[3];
	return v <= XRDS_REJECT_CROSSED ? v : XRDS_REJECT_NONE;
}
EXPORT_SYMBOL_GPL(xrds_wire_reject_decode);
