// SPDX-License-Identifier: GPL-2.0-only
/*
 * A node with Oracle's kernel, or one that behaves so. When its connection is up
 * it sends a heartbeat, which says that it answers heartbeats itself. Then it
 * sends one after the other, answers those of the other end, and acknowledges
 * what asks for it. Each message that comes is sent back to ECHO_PORT, with a
 * checksum of its payload, in fragments of the size that both sides have agreed
 * on. Fragments of the other end must have that size as well.
 *
 * Completions note what has come; all SENDs are those of one task.
 */
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <net/checksum.h>

#include "hostile.h"

enum {
	ECHO_PORT	= 3000,
	/* of a message that is sent back; of one with a checksum */
	MAX_ECHO_BYTES	= 64 << 10,
	SUM_BYTES	= 20001,
	END_SECONDS	= 60,		/* until a peer is given up that is mute */
	/* the size of a fragment that the other end has to choose */
	FRAG_PAYLOAD	= XRDS_WIRE_CLASSIC_MAX_PAYLOAD,
};

/**
 * struct uek_msg - a message on its way back
 * @entry:	in uek->msgs
 * @sport:	its source port
 * @len:	length of @data
 * @got:	bytes that have come
 * @data:	payload
 */
struct uek_msg {
	struct list_head entry;
	u16 sport;
	u32 len;
	u32 got;
	u8 data[];
};

/**
 * struct hostile_uek - what the node has to do
 * @lock:	guards @msgs
 * @msgs:	messages that are complete
 * @partial:	the message that is not, or NULL; completions
 * @wrong:	a fragment had another size than agreed on
 * @asked:	a message has asked for an acknowledgment
 * @seq:	last number used; task
 * @pings:	heartbeats sent; task
 * @pongs:	heartbeats of the other end that were answered; task
 * @echoes:	messages sent back; task
 */
struct hostile_uek {
	spinlock_t lock;		/* msgs */
	struct list_head msgs;
	struct uek_msg *partial;
	bool wrong;
	bool asked;
	u64 seq;
	u32 pings;
	u32 pongs;
	u32 echoes;
};

/* ------------------------------------------------------------ receiving */

static struct uek_msg *msg_begin(const struct xrds_hdr *hdr)
{
	u32 len = be32_to_cpu(hdr->len);
	struct uek_msg *msg;

	if (len > MAX_ECHO_BYTES)
		return NULL;
	msg = kmalloc(struct_size(msg, data, len), GFP_KERNEL);
	if (!msg)
		return NULL;
	msg->sport = be16_to_cpu(hdr->sport);
	msg->len = len;
	msg->got = 0;
	return msg;
}

/* Data of a socket. Returns whether the message is complete. */
static bool recv_data(struct hostile_uek *uek, const struct xrds_hdr *hdr,
		      u32 payload)
{
	struct uek_msg *msg = uek->partial ?: msg_begin(hdr);

	uek->partial = msg;
	if (!msg || payload != min_t(u32, msg->len - msg->got, FRAG_PAYLOAD)) {
		WRITE_ONCE(uek->wrong, true);
		return false;
	}
	memcpy(msg->data + msg->got, hdr + 1, payload);
	msg->got += payload;
	if (msg->got < msg->len)
		return false;
	uek->partial = NULL;
	spin_lock_bh(&uek->lock);
	list_add_tail(&msg->entry, &uek->msgs);
	spin_unlock_bh(&uek->lock);
	return true;
}

/* Returns whether a message is complete, or was none. */
bool hostile_uek_recv(struct hostile_link *link, const void *data, u32 bytes)
{
	struct hostile_uek *uek = link->uek;
	const struct xrds_hdr *hdr = data;
	bool whole = true;

	/* not the messages that only ask, nor maps, which are one fragment */
	if (hdr->sport && hdr->dport && be16_to_cpu(hdr->dport) != 1)
		whole = recv_data(uek, hdr, bytes - sizeof(*hdr));
	else if (hdr->len && be32_to_cpu(hdr->len) != bytes - sizeof(*hdr))
		WRITE_ONCE(uek->wrong, true);
	if (!whole || !hdr->seq)
		return whole;
	WRITE_ONCE(link->got, be64_to_cpu(hdr->seq));
	if (hdr->flags & XRDS_F_ACK_REQUIRED) {
		/* pairs with the xchg() in send_ack(): it finds the number */
		smp_store_release(&uek->asked, true);
	}
	return true;
}

/* -------------------------------------------------------------- sending */

/* As Oracle's kernels add it up */
static u32 payload_sum(const void *data, u32 bytes)
{
	return (__force u32)csum_partial(data, bytes, 0);
}

static int send_data(struct hostile_link *link, u16 dport, const void *data,
		     u32 len, u32 csum)
{
	struct xrds_wire_msg wm = {
		.seq = ++link->uek->seq, .ack = READ_ONCE(link->got),
		.len = len, .sport = 4000, .dport = dport, .csum = csum,
		.has = len ? XRDS_HAS_CSUM : 0, .flags = XRDS_F_ACK_REQUIRED,
	};
	struct hostile_buf *buf;
	u32 at = 0, n;
	int ret;

	do {
		buf = hostile_link_buf(link, false);
		if (!buf)
			return -ENOTCONN;
		n = min_t(u32, len - at, FRAG_PAYLOAD);
		xrds_wire_hdr_encode(buf->data, &wm);
		memcpy(buf->data + XRDS_WIRE_HDR_BYTES, data + at, n);
		ret = hostile_link_send(link, buf, XRDS_WIRE_HDR_BYTES + n);
		at += n;
	} while (!ret && at < len);
	return ret ? -ENOTCONN : 0;
}

static struct uek_msg *next_msg(struct hostile_uek *uek)
{
	struct uek_msg *msg;

	spin_lock_bh(&uek->lock);
	msg = list_first_entry_or_null(&uek->msgs, struct uek_msg, entry);
	if (msg)
		list_del(&msg->entry);
	spin_unlock_bh(&uek->lock);
	return msg;
}

static int send_back(struct hostile_link *link, struct uek_msg *msg)
{
	int ret = send_data(link, ECHO_PORT, msg->data, msg->len,
			    payload_sum(msg->data, msg->len));

	kfree(msg);
	link->uek->echoes++;
	return ret;
}

static int send_ack(struct hostile_link *link)
{
	struct hostile_buf *buf = hostile_link_buf(link, false);
	struct xrds_wire_msg wm = {};

	if (!buf)
		return -ENOTCONN;
	xchg(&link->uek->asked, false);
	wm.ack = READ_ONCE(link->got);
	xrds_wire_hdr_encode(buf->data, &wm);
	return hostile_link_send(link, buf, XRDS_WIRE_HDR_BYTES) ?
	       -ENOTCONN : 0;
}

static int send_beat(struct hostile_link *link, u8 flags)
{
	return hostile_send_beat(link, ++link->uek->seq,
				 READ_ONCE(link->got), flags);
}

/* ---------------------------------------------------------------- orders */

/* One behind the other, and as many as the other end sends */
static bool ping_due(struct hostile_link *link)
{
	struct hostile_uek *uek = link->uek;

	return atomic_read(&link->beats) == uek->pings &&
	       uek->pings <= uek->pongs;
}

static bool anything_due(struct hostile_link *link)
{
	struct hostile_uek *uek = link->uek;

	return READ_ONCE(link->down) || hostile_over() ||
	       READ_ONCE(uek->wrong) || !list_empty(&uek->msgs) ||
	       READ_ONCE(uek->asked) || ping_due(link) ||
	       atomic_read(&link->pings) != uek->pongs;
}

/* Send one thing that is due. */
static int act(struct hostile_link *link)
{
	struct hostile_uek *uek = link->uek;
	struct uek_msg *msg;

	if (!wait_event_timeout(link->wait, anything_due(link),
				HOSTILE_WAIT_SECONDS * HZ))
		return -ETIMEDOUT;
	if (READ_ONCE(link->down) || hostile_over())
		return -ENOTCONN;
	if (READ_ONCE(uek->wrong))
		return -EPROTO;
	msg = next_msg(uek);
	if (msg)
		return send_back(link, msg);
	if (atomic_read(&link->pings) != uek->pongs) {
		uek->pongs++;
		return send_beat(link, XRDS_F_HB_PONG);
	}
	if (!ping_due(link))
		return send_ack(link);
	uek->pings++;
	return send_beat(link, XRDS_F_HB_PING);
}

static bool hung_up(struct hostile_link *link)
{
	return READ_ONCE(link->down) || hostile_over();
}

/* The other end has to end the connection. */
static int wait_for_end(struct hostile_link *link)
{
	if (!wait_event_timeout(link->wait, hung_up(link), END_SECONDS * HZ))
		return -ETIMEDOUT;
	return hostile_over() ? -EINTR : 0;
}

static struct hostile_link *uek_dial(const struct hostile_order *order)
{
	struct hostile_uek *uek = kzalloc(sizeof(*uek), GFP_KERNEL);
	struct hostile_link *link;

	if (!uek)
		return NULL;
	spin_lock_init(&uek->lock);
	INIT_LIST_HEAD(&uek->msgs);
	link = hostile_link_dial_uek(order, uek);
	if (link)
		hostile_count(HOSTILE_C_LINKS);
	else
		kfree(uek);
	return link;
}

static void uek_free(struct hostile_link *link)
{
	struct hostile_uek *uek = link->uek;
	struct uek_msg *msg;

	/* no completion comes after this */
	hostile_link_free(link);
	while ((msg = next_msg(uek)))
		kfree(msg);
	kfree(uek->partial);
	kfree(uek);
}

/* Heartbeats both ways and messages. After that a mute one answers nothing: its
 * device is there, and its kernel is not.
 */
int hostile_uek(const struct hostile_order *order, bool mute)
{
	struct hostile_link *link = uek_dial(order);
	struct hostile_uek *uek;
	int ret;

	if (!link)
		return -ECONNREFUSED;
	uek = link->uek;
	ret = link->payload == FRAG_PAYLOAD ? 0 : -EPROTO;
	while (!ret && (uek->pongs < order->count ||
			atomic_read(&link->beats) < order->count ||
			atomic_read(&link->beats) != uek->pings ||
			uek->echoes < order->seed))
		ret = act(link);
	if (!ret)
		ret = mute ? send_ack(link) ?: wait_for_end(link) :
			     hostile_send_last(link, ++uek->seq);
	uek_free(link);
	return ret;
}

/* Messages with a payload checksum: even length, odd length, all zero, all one;
 * then perhaps one of which a bit has changed.
 */
int hostile_sums(const struct hostile_order *order)
{
	static const u32 lens[] = { 64, SUM_BYTES, SUM_BYTES, SUM_BYTES };
	u8 *data = kzalloc(SUM_BYTES, GFP_KERNEL);
	struct hostile_link *link;
	int i, ret = 0;
	u32 csum;

	if (!data)
		return -ENOMEM;
	link = uek_dial(order);
	if (!link) {
		kfree(data);
		return -ECONNREFUSED;
	}
	for (i = 0; i < ARRAY_SIZE(lens) && !ret; i++) {
		if (i < 2)
			hostile_fill(&link->gen, data, lens[i]);
		else
			memset(data, i == 2 ? 0 : 0xff, lens[i]);
		ret = send_data(link, ECHO_PORT, data, lens[i],
				payload_sum(data, lens[i]));
	}
	if (!ret && order->seed) {
		csum = payload_sum(data, SUM_BYTES);
		data[order->seed % SUM_BYTES] ^= 0x10;
		hostile_expect(XRDS_WIRE_PAYLOAD);
		ret = send_data(link, ECHO_PORT, data, SUM_BYTES, csum);
	}
	if (!ret)
		ret = order->seed ? wait_for_end(link) :
				    hostile_send_last(link, ++link->uek->seq);
	uek_free(link);
	kfree(data);
	return ret;
}
