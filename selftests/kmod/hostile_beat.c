// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets that legacy peers send or may send: heartbeats as nodes with Oracle's
 * kernel have them, and packets that mainline tolerates. No connection may end
 * for one of them.
 */
#include <linux/string.h>

#include "hostile.h"

enum {
	MAX_STEPS	= 3,
	/* of each connection: higher than those of all steps */
	BEAT_SEQ	= 100,
	/* answers to heartbeats that may wait at the other end */
	MAX_PONGS	= 256,
	OWN		= 0x5a,	/* payload of a message */
	SURPLUS		= 0xa5,	/* bytes behind it */
};

/* A SEND: a header with any content, and so many bytes behind it. One whose
 * flags, payload and number are 0 is none.
 */
struct borne_step {
	u64 seq;
	u32 len;
	u16 sport, dport;
	u8 flags;
	u16 payload;
	bool junk;		/* in fields that only XRDS mode has */
	bool unsealed;		/* no checksum */
	u8 ext[XRDS_WIRE_EXT_BYTES];
};

/* rxe/heartbeat.py describes each, and the right reaction to it. */
static const struct borne_step borne[][MAX_STEPS] = {
	{ { 5, 8192, 1, 2, 0x01, 4096 }, { 5, 8192, 1, 2, 0x01, 4096 } },
	{ { 0, 5000, 0, 0, 0x01, 4096 }, { 0, 5000, 0, 0, 0x01, 904 } },
	{ { 0, 8192, 0, 0, 0x03, 4096 }, { 0, 8192, 0, 0, 0x03, 4096 } },
	{ { 1, 64, 4000, 3000, 0x81, 64 } },
	{ { 0, 100, 0, 0, 0x00, 100 } },
	{ { 0, 5000, 0, 0, 0x20, 0 }, { 1, 0xffffffff, 0, 0, 0x02, 0 } },
	{ { 0, 8192, 0, 0, 0x01, 0 } },
	{ { 1, 64, 4000, 3000, 0x00, 100 } },
	{ { 1, 5000, 4000, 3000, 0x00, 4096 },
	  { 1, 5000, 4000, 3000, 0xe0, 904 } },
	{ { 1, 5000, 4000, 3000, 0x00, 4096 }, { 2, 0, 0, 0, 0x0a, 0 },
	  { 1, 5000, 4000, 3000, 0x00, 904 } },
	{ { 1, 0, 0, 0, 0x18, 0 } },
	{ { 1, 64, 4000, 3000, 0x00, 64, .ext = { 9, 1, 2, 3, 4, 0, 6 } } },
	{ { 1, 16384, 4000, 3000, 0x00, 8192 },
	  { 1, 16384, 4000, 3000, 0x00, 4096 },
	  { 1, 16384, 4000, 3000, 0x00, 4096 } },
	{ { 1, 64, 4000, 3000, 0xf8, 64 } },
	{ { 1, 64, 4000, 3000, 0x00, 64, .ext = { 200, 1, 2, 3 } } },
	{ { 1, 64, 4000, 3000, 0x00, 64,
	    .ext = { 1, [5] = 1, [10] = 1, [15] = 2 } } },
	{ { 1, 64, 4000, 3000, 0x00, 64, .ext = { 8, 7, 8, 9 } } },
	{ { 1, 64, 4000, 3000, 0x00, 64, .junk = true } },
	{ { 1, 64, 0, 3000, 0x00, 64 } },
	{ { 1, 64, 4000, 3000, 0x00, 64, .unsealed = true } },
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

/* A heartbeat or an answer, as Oracle's kernels send them */
int hostile_send_beat(struct hostile_link *link, u64 seq, u64 ack, u8 flags)
{
	struct xrds_wire_msg wm = {
		.seq = seq, .ack = ack, .flags = flags | XRDS_F_ACK_REQUIRED,
		.has = XRDS_HAS_CAP_BITS, .cap_bits = XRDS_CAP_HEARTBEAT,
	};

	return send_hdr(link, &wm);
}

/* One of a kernel that says nothing of its own answers */
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
int hostile_send_last(struct hostile_link *link, u64 seq)
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

/* A node with Oracle's kernel sends a heartbeat on an idle connection about once
 * a minute; the other end has to answer.
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
	ret = ret ?: hostile_send_last(link, i);
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
	ret = ret ?: hostile_send_last(link, i);
	hostile_link_free(link);
	return ret;
}

static int send_step(struct hostile_link *link, const struct borne_step *step)
{
	struct hostile_buf *buf = hostile_link_buf(link, false);
	struct xrds_wire_msg wm = {
		.seq = step->seq, .ack = READ_ONCE(link->got), .len = step->len,
		.sport = step->sport, .dport = step->dport,
		.flags = step->flags,
	};
	u32 own = min_t(u32, step->payload, step->len);
	struct xrds_hdr *hdr;
	u8 *payload;

	if (!buf)
		return -ENOTCONN;
	hdr = buf->data;
	payload = buf->data + sizeof(*hdr);
	memset(payload, OWN, own);
	memset(payload + own, SURPLUS, step->payload - own);
	/* no port is congested */
	if (step->flags == XRDS_F_CONG_BITMAP)
		memset(payload, 0, step->payload);
	if (step->junk) {
		wm.credit = 0xff;
		wm.tag = 0xffff;
		wm.frag = 0xffff;
	}
	xrds_wire_hdr_encode(hdr, &wm);
	memcpy(hdr->ext, step->ext, sizeof(hdr->ext));
	/* the checksum, which must be right, counts the extensions */
	hostile_gen_seal(hdr);
	if (step->unsealed)
		hdr->csum = 0;
	return hostile_link_send(link, buf, sizeof(*hdr) + step->payload) ?
	       -ENOTCONN : 0;
}

/* One of the cases above, order->seed, and a heartbeat behind it: the answer to
 * the heartbeat says that the connection has outlived the case.
 */
int hostile_borne(const struct hostile_order *order)
{
	struct hostile_link *link;
	int i, ret = 0;

	if (order->seed >= ARRAY_SIZE(borne))
		return -EINVAL;
	link = hostile_link_dial(order, XRDS_VER_4_1);
	if (!link)
		return -ECONNREFUSED;
	hostile_count(HOSTILE_C_LINKS);
	for (i = 0; i < MAX_STEPS && !ret; i++) {
		const struct borne_step *step = &borne[order->seed][i];

		if (step->seq || step->flags || step->payload)
			ret = send_step(link, step);
	}
	ret = ret ?: send_beat(link, BEAT_SEQ, READ_ONCE(link->got)) ?:
	      wait_for_beats(link, 1) ?:
	      hostile_send_last(link, BEAT_SEQ + 1);
	hostile_link_free(link);
	return ret;
}
