// SPDX-License-Identifier: GPL-2.0-only
/*
 * Heartbeats, as nodes with Oracle's kernel send them. Nothing is wrong here.
 */
#include "hostile.h"

enum {
	/* answers to heartbeats that may wait at the other end */
	MAX_PONGS	= 256,
};

static bool heard(struct hostile_link *link, u32 nr)
{
	return atomic_read(&link->beats) >= nr || READ_ONCE(link->down) ||
	       hostile_over();
}

static int wait_for_beats(struct hostile_link *link, u32 nr)
{
	if (!wait_event_timeout(link->wait, heard(link, nr),
				HOSTILE_WAIT_SECONDS * HZ))
		return -ETIMEDOUT;
	return READ_ONCE(link->down) || hostile_over() ? -ENOTCONN : 0;
}

static int send_hdr(struct hostile_link *link, const struct xrds_wire_msg *wm)
{
	struct hostile_buf *buf = hostile_link_buf(link, false);

	if (!buf)
		return -ENOTCONN;
	xrds_wire_hdr_encode(buf->data, wm);
	return hostile_link_send(link, buf, sizeof(struct xrds_hdr)) ?
	       -ENOTCONN : 0;
}

static int send_beat(struct hostile_link *link, u64 seq, u64 ack)
{
	struct xrds_wire_msg wm = {
		.seq = seq, .ack = ack,
		.flags = XRDS_F_HB_PING | XRDS_F_ACK_REQUIRED,
	};

	return send_hdr(link, &wm);
}

static bool acknowledged(struct hostile_link *link, u64 seq)
{
	return READ_ONCE(link->acked) >= seq || READ_ONCE(link->down) ||
	       hostile_over();
}

/* Acknowledges all that has come, with a message to a port that nobody can have.
 * When that is acknowledged in turn the peer keeps nothing, and does not dial to
 * send it again.
 */
static int send_last(struct hostile_link *link, u64 seq)
{
	struct xrds_wire_msg wm = {
		.seq = seq, .ack = READ_ONCE(link->got), .sport = 1, .dport = 1,
		.flags = XRDS_F_ACK_REQUIRED,
	};
	int ret = send_hdr(link, &wm);

	if (ret)
		return ret;
	if (!wait_event_timeout(link->wait, acknowledged(link, seq),
				HOSTILE_WAIT_SECONDS * HZ))
		return -ETIMEDOUT;
	return READ_ONCE(link->down) || hostile_over() ? -ENOTCONN : 0;
}

/* What a node with Oracle's kernel does on an idle connection, about once a
 * minute: a heartbeat, which the other end has to answer.
 */
int hostile_beat(const struct hostile_order *order)
{
	struct hostile_link *link = hostile_link_dial(order, XRDS_VER_4_1);
	int ret = 0;
	u32 i;

	if (!link)
		return -ECONNREFUSED;
	hostile_count(HOSTILE_C_LINKS);
	for (i = 1; i <= order->count && !ret; i++)
		ret = send_beat(link, i, READ_ONCE(link->got)) ?:
		      wait_for_beats(link, i);
	ret = ret ?: send_last(link, i);
	hostile_link_free(link);
	return ret;
}

/* So many heartbeats, and no answer is acknowledged before the last of them was
 * sent: until as many have come as may wait, or for as long as is usual.
 */
int hostile_deaf(const struct hostile_order *order)
{
	struct hostile_link *link = hostile_link_dial(order, XRDS_VER_4_1);
	int ret = 0;
	u32 i;

	if (!link)
		return -ECONNREFUSED;
	hostile_count(HOSTILE_C_LINKS);
	for (i = 1; i <= order->count && !ret; i++)
		ret = send_beat(link, i, 0);
	/* there are none if there was no memory for them */
	if (!ret && wait_for_beats(link, min_t(u32, MAX_PONGS,
					       order->count)) == -ENOTCONN)
		ret = -ENOTCONN;
	ret = ret ?: send_last(link, i);
	hostile_link_free(link);
	return ret;
}
