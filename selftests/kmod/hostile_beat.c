// SPDX-License-Identifier: GPL-2.0-only
/*
 * Heartbeats, as nodes with Oracle's kernel send them. Nothing is wrong here.
 */
#include "hostile.h"

/* The peer keeps nothing that is acknowledged. */
static void send_ack(struct hostile_link *link)
{
	struct hostile_buf *buf = hostile_link_buf(link, false);
	struct xrds_wire_msg wm = { .ack = READ_ONCE(link->got) };

	if (!buf)
		return;
	xrds_wire_hdr_encode(buf->data, &wm);
	if (!hostile_link_send(link, buf, sizeof(struct xrds_hdr)))
		wait_event_timeout(link->wait, !READ_ONCE(buf->busy) ||
				   READ_ONCE(link->down), HZ);
}

static bool beats(struct hostile_link *link, u32 nr)
{
	return atomic_read(&link->beats) >= nr || READ_ONCE(link->down) ||
	       hostile_over();
}

/* What a node with Oracle's kernel does on an idle connection, about once a
 * minute: a heartbeat, which the other end has to answer.
 */
int hostile_beat(const struct hostile_order *order)
{
	struct hostile_link *link = hostile_link_dial(order, XRDS_VER_4_1);
	struct xrds_wire_msg wm = {
		.flags = XRDS_F_HB_PING | XRDS_F_ACK_REQUIRED,
	};
	struct hostile_buf *buf;
	int ret = 0;
	u32 i;

	if (!link)
		return -ECONNREFUSED;
	hostile_count(HOSTILE_C_LINKS);
	for (i = 1; i <= order->count && !ret; i++) {
		buf = hostile_link_buf(link, false);
		if (!buf) {
			ret = -ENOTCONN;
			break;
		}
		wm.seq = i;
		wm.ack = READ_ONCE(link->got);
		xrds_wire_hdr_encode(buf->data, &wm);
		if (hostile_link_send(link, buf, sizeof(struct xrds_hdr)))
			ret = -ENOTCONN;
		else if (!wait_event_timeout(link->wait, beats(link, i),
					     HOSTILE_WAIT_SECONDS * HZ))
			ret = -ETIMEDOUT;
		else if (READ_ONCE(link->down) || hostile_over())
			ret = -ENOTCONN;
	}
	send_ack(link);
	hostile_link_free(link);
	return ret;
}
