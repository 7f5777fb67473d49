// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a peer can have the other end keep: messages of which the last fragment
 * never comes, and messages that are not acknowledged.
 */
#include <linux/slab.h>

#include "hostile.h"

enum {
	MOST_LINKS	= 64,
	LARGE_BYTES	= 1 << 20,
	CREDITS		= 32767,
};

/* All fragments of a message but the last, as small as they may be */
static void send_part(struct hostile_link *link, u16 tag)
{
	u32 i, n = LARGE_BYTES / XRDS_WIRE_MIN_FRAG_PAYLOAD - 1;
	struct xrds_wire_msg wm = {
		.seq	= !tag,
		.len	= LARGE_BYTES,
		.sport	= 4000,
		.dport	= 5000,
		.tag	= tag,
	};
	struct hostile_buf *buf;

	for (i = 0; i < n; i++) {
		buf = hostile_link_buf(link, true);
		if (!buf)
			return;
		wm.frag = i;
		xrds_wire_hdr_encode(buf->data, &wm);
		buf->count = HOSTILE_C_HARMLESS;
		if (hostile_link_send(link, buf, XRDS_WIRE_HDR_BYTES +
				      XRDS_WIRE_MIN_FRAG_PAYLOAD))
			return;
	}
}

static bool left(struct hostile_link *link)
{
	return READ_ONCE(link->down) || hostile_over();
}

/* So many connections, on each of them two messages without an end. They stay
 * until a signal comes, or the other end hangs up.
 */
int hostile_partial(const struct hostile_order *order)
{
	u32 i, n = min_t(u32, order->count, MOST_LINKS);
	struct hostile_order next = *order;
	struct hostile_link **links;
	u16 tag;

	links = kcalloc(n, sizeof(*links), GFP_KERNEL);
	if (!links)
		return -ENOMEM;
	for (i = 0; i < n && !hostile_over(); i++) {
		next.tos = i;
		links[i] = hostile_link_dial(&next, XRDS_VER_XRDS);
		if (!links[i])
			continue;
		links[i]->gen.node = HOSTILE_NODE;
		if (!hostile_link_hello(links[i]))
			continue;
		for (tag = 0; tag < HOSTILE_TAGS; tag++)
			send_part(links[i], tag);
		hostile_count(HOSTILE_C_LINKS);
	}
	for (i = 0; i < n; i++) {
		if (!links[i])
			continue;
		wait_event_interruptible(links[i]->wait, left(links[i]));
		if (!hostile_over())
			hostile_count(HOSTILE_C_CLOSED);
		hostile_link_free(links[i]);
	}
	kfree(links);
	return hostile_over() ? -EINTR : 0;
}

/* A node that takes messages, one in each SEND, and has had them up to @ack. It knows
 * the other end by that one's hello.
 */
static bool send_plain_hello(struct hostile_link *link, u64 ack)
{
	struct hostile_buf *buf = hostile_link_buf(link, false);
	struct xrds_wire_msg wm = {
		.len	= XRDS_WIRE_HELLO_BYTES,
		.dport	= XRDS_CTL_HELLO,
		.flags	= XRDS_F_CONTROL,
	};
	struct xrds_wire_hello hello = {
		.revision	= XRDS_REVISION_FIRST,
		.frag_bytes	= HOSTILE_BUF_BYTES,
		.credits	= CREDITS,
		.tags		= 1,
		.node		= 1,
		.flags		= ack ? XRDS_HELLO_KNOWN : 0,
		.peer_node	= READ_ONCE(link->node),
		.ack		= ack,
	};

	if (!buf)
		return false;
	xrds_wire_hello_encode(buf->data + XRDS_WIRE_HDR_BYTES, &hello);
	xrds_wire_hdr_encode(buf->data, &wm);
	return !hostile_link_send(link, buf, XRDS_WIRE_HDR_BYTES + wm.len);
}

static bool got_all(struct hostile_link *link, u32 nr)
{
	u64 got = READ_ONCE(link->got);

	return (got && got - link->first + 1 >= nr) || left(link);
}

/* COUNT messages of the other end are taken, and then acknowledged all at once. */
int hostile_withhold(const struct hostile_order *order)
{
	struct hostile_link *link = hostile_link_dial(order, XRDS_VER_XRDS);
	struct xrds_wire_msg wm = {};
	struct hostile_buf *buf;
	int ret = -ENOTCONN;

	if (!link)
		return -ECONNREFUSED;
	hostile_count(HOSTILE_C_LINKS);
	if (!send_plain_hello(link, 0))
		goto out;
	wait_event_interruptible(link->wait, got_all(link, order->count));
	buf = left(link) ? NULL : hostile_link_buf(link, true);
	if (!buf)
		goto out;
	wm.ack = READ_ONCE(link->got);
	xrds_wire_hdr_encode(buf->data, &wm);
	buf->count = HOSTILE_C_HARMLESS;
	if (!hostile_link_send(link, buf, XRDS_WIRE_HDR_BYTES))
		ret = 0;
	/* until the test has seen what becomes of it */
	wait_event_interruptible(link->wait, left(link));
out:
	hostile_link_free(link);
	return hostile_over() ? -EINTR : ret;
}

/* A node that has received numbers up to 2^SEED, whether they were sent or not. Does the
 * other end answer its ping, with a higher number? The ping's number is COUNT + 1.
 */
int hostile_ahead(const struct hostile_order *order)
{
	struct hostile_link *link = hostile_link_dial(order, XRDS_VER_XRDS);
	u64 ack = 1ULL << order->seed % 64;
	struct hostile_buf *buf = NULL;
	int ret;

	if (!link)
		return -ECONNREFUSED;
	hostile_count(HOSTILE_C_LINKS);
	wait_event_interruptible(link->wait,
				 READ_ONCE(link->node) || left(link));
	link->gen.seq = order->count;
	if (send_plain_hello(link, ack))
		buf = hostile_link_buf(link, true);
	if (buf && !hostile_link_send(link, buf,
				      hostile_gen_ping(&link->gen, buf->data)))
		wait_event_interruptible(link->wait, got_all(link, 1));
	ret = READ_ONCE(link->got) > ack ? 0 : -ENOTCONN;
	hostile_link_free(link);
	return hostile_over() ? -EINTR : ret;
}
