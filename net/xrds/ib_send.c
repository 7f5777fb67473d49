// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sending: from a message to work requests, and back when they complete.
 *
 * Each work request takes a slot of the endpoint's ring (ib_slot.c). A message
 * becomes one fragment or more, each with a header of its own in front; the
 * work requests of its op (ib_rdma.c), if it has one, go before them. All that
 * slots and credits allow go to the device in one call. The rest of a message
 * waits in tx->part, and the core's next message behind it, until a
 * completion brings slots or the peer brings credits; whoever brings them
 * posts what waits. So a message is either not taken at all, or will be sent
 * as a whole unless the endpoint ends.
 *
 * Everything is reserved before anything is posted: slot, credit, mapping.
 * What can fail after that is the call to the device. Then those work requests
 * that it took will complete when the queue pair is drained, the others are
 * undone, and the endpoint is of no further use; unless it has taken nothing of
 * an op, which then fails alone.
 *
 * What somebody waits for is signalled: the last fragment of a message with an
 * op or with much memory, the last of a call if its message goes on, every
 * max_unsignaled_wr-th, a control message with a buffer if no other signal is
 * under way or the buffer is the last. The rest comes back with the next of
 * these, or with what the watch posts in the end, see ib_slot.c.
 *
 * A message that must wait for its op has a fence, or on devices that cannot be
 * trusted with it, see ib_dev.c, waits in tx->part until the op has completed.
 *
 * Credits. Each SEND but the hello uses one that the peer has granted, and
 * each header returns what this side can grant. The last credit is kept for a
 * header that grants some: otherwise two sides without credits could both
 * have some to give and no way to say so. When nothing else goes to the peer
 * and it has used half of its window, a header goes on its own.
 *
 * All of it runs under conn->tx_lock, in the context of whoever sends, or of
 * completions. It must never wait, and never allocate.
 */
#include "ib.h"
#include "tracepoints.h"

/**
 * xrds_ib_grantable - credits that can be granted now
 * @ep: endpoint
 *
 * Context: any, conn->tx_lock held.
 * Return: how many.
 */
u32 xrds_ib_grantable(struct xrds_ib_ep *ep)
{
	u32 outstanding = ep->tx.granted - READ_ONCE(ep->rx.received);
	u32 room = xrds_ib_rq_room(ep->rq, ep->tx.window);

	return room > outstanding ? room - outstanding : 0;
}

/* Is there a slot and a credit for one more SEND that grants @grant? */
static bool xrds_ib_can_send(struct xrds_ib_ep *ep, u32 grant)
{
	struct xrds_ib_tx *tx = &ep->tx;

	if (tx->used == tx->nr) {
		xrds_ib_count(ep->xin, XRDS_IB_C_TX_RING_FULL);
		return false;
	}
	if (!xrds_ib_ep_xrds(ep) || tx->credits > 1 || (tx->credits && grant))
		return true;
	xrds_ib_count(ep->xin, XRDS_IB_C_TX_THROTTLE);
	return false;
}

/* ------------------------------------------------------------ fragments */

/* Map the next piece of payload, as much as one fragment carries. */
static int xrds_ib_frag_map(struct xrds_ib_ep *ep, struct xrds_ib_slot *slot)
{
	struct xrds_ib_part *part = &ep->tx.part;
	u32 room = min(ep->tx.payload, part->left);
	struct ib_device *dev = ep->ibdev->dev;

	while (room && slot->wr.num_sge < XRDS_IB_SGE) {
		const struct bio_vec *bv = &part->msg->bv[part->bv];
		u32 n = min(bv->bv_len - part->bv_off, room);
		struct ib_sge *sge;
		u64 dma;

		dma = ib_dma_map_page(dev, bv->bv_page,
				      bv->bv_offset + part->bv_off, n,
				      DMA_TO_DEVICE);
		if (ib_dma_mapping_error(dev, dma)) {
			xrds_ib_count(ep->xin, XRDS_IB_C_TX_SG_MAPPING_FAILURE);
			return -ENOMEM;
		}
		sge = &slot->sge[slot->wr.num_sge++];
		sge->addr = dma;
		sge->length = n;

		room -= n;
		part->left -= n;
		part->bv_off += n;
		if (part->bv_off == bv->bv_len) {
			part->bv++;
			part->bv_off = 0;
		}
	}
	return 0;
}

/**
 * xrds_ib_spend - use one credit, return as many as one header can
 * @ep: endpoint
 * @grant: what can be granted; less what is
 *
 * Context: any, conn->tx_lock held.
 * Return: what goes into the header.
 */
u8 xrds_ib_spend(struct xrds_ib_ep *ep, u32 *grant)
{
	u32 n = min_t(u32, *grant, XRDS_WIRE_MAX_CREDIT);

	if (!xrds_ib_ep_xrds(ep))
		return 0;
	*grant -= n;
	ep->tx.credits--;
	WRITE_ONCE(ep->tx.granted, ep->tx.granted + n);
	if (n)
		trace_xrds_credit_grant(ep->conn, n, ep->tx.granted -
					READ_ONCE(ep->rx.received));
	return n;
}

/**
 * xrds_ib_msg_wire - what the header of a message says
 * @ep: endpoint
 * @msg: message; an op that was refused takes the payload with it
 * @wm: result, without what differs between SENDs
 *
 * Context: any, conn->tx_lock held.
 */
void xrds_ib_msg_wire(const struct xrds_ib_ep *ep, const struct xrds_msg *msg,
		      struct xrds_wire_msg *wm)
{
	bool refused = xrds_ib_op_refused(msg);

	*wm = (struct xrds_wire_msg){
		.seq		= msg->seq,
		.len		= refused ? 0 : msg->len,
		.sport		= msg->sport,
		.dport		= msg->dport,
		.flags		= msg->flags,
		.has		= refused ? 0 : msg->has,
		.rdma_rkey	= msg->rdma_rkey,
		.dest_rkey	= msg->dest_rkey,
		.dest_off	= msg->dest_off,
	};
	if (msg->flags & XRDS_F_EOS) {
		wm->has |= XRDS_HAS_EOS;
		wm->eos_reason = msg->eos_reason;
	}
	if (refused || (msg->rop && msg->rop->silent && !msg->len))
		wm->has |= XRDS_HAS_SILENT;
	if (!xrds_ib_ep_xrds(ep))
		xrds_ib_classic_hdr(wm);
}

/* What the fragments of a message begin with */
static void xrds_ib_part_rewind(struct xrds_ib_ep *ep)
{
	struct xrds_ib_part *part = &ep->tx.part;
	const struct xrds_msg *msg = part->msg;
	struct xrds_wire_msg wm;

	xrds_ib_msg_wire(ep, msg, &wm);
	xrds_wire_hdr_encode(&part->hdr, &wm);
	part->left = wm.len;
	part->bv = 0;
	part->bv_off = 0;
	part->frag = 0;
	part->fence = xrds_ib_op_fenced(msg);
}

static void xrds_ib_part_begin(struct xrds_ib_ep *ep, struct xrds_msg *msg)
{
	xrds_msg_get(msg);
	ep->tx.part.msg = msg;
	ep->tx.part.op_end = ep->tx.retired;
	xrds_ib_part_rewind(ep);
}

/* Fill one slot with the next fragment. */
static int xrds_ib_frag_fill(struct xrds_ib_ep *ep, struct xrds_ib_slot *slot,
			     u32 *grant)
{
	struct xrds_ib_tx *tx = &ep->tx;
	struct xrds_ib_part *part = &tx->part;
	struct xrds_hdr *hdr;
	u32 offset;
	int ret;

	ret = xrds_ib_frag_map(ep, slot);
	if (ret)
		return ret;

	hdr = xrds_ib_slot_hdr(ep, slot, &offset);
	*hdr = part->hdr;
	xrds_wire_hdr_update(hdr, xrds_xmit_ack_value(ep->conn),
			     xrds_ib_spend(ep, grant), 0,
			     xrds_ib_ep_xrds(ep) ? part->frag++ : 0);
	xrds_ib_slot_sync(ep, slot, offset, sizeof(*hdr));

	if (part->fence && ep->ibdev->fences)
		slot->wr.send_flags |= IB_SEND_FENCE;
	part->fence = false;
	if (!part->left) {
		slot->msg = part->msg;
		part->msg = NULL;
		slot->wr.send_flags |= IB_SEND_SOLICITED;
	}
	xrds_ib_count(ep->xin, XRDS_IB_C_TX_FRAGS);
	return 0;
}

/* Is there what the next work request of the message in mid-way needs? */
static bool xrds_ib_part_ready(struct xrds_ib_ep *ep, u32 grant)
{
	struct xrds_ib_tx *tx = &ep->tx;

	if (xrds_ib_op_left(tx->part.msg)) {
		if (tx->used < tx->nr)
			return true;
		xrds_ib_count(ep->xin, XRDS_IB_C_TX_RING_FULL);
		return false;
	}
	/* the last of the op is signalled, as nothing followed it */
	if (tx->part.fence && !ep->ibdev->fences &&
	    (s32)(tx->retired - tx->part.op_end) < 0)
		return false;
	return xrds_ib_can_send(ep, grant);
}

/* Fill a slot with the next work request of the message in mid-way. */
static int xrds_ib_part_fill(struct xrds_ib_ep *ep, struct xrds_ib_slot *slot,
			     u32 *grant)
{
	struct xrds_ib_tx *tx = &ep->tx;
	int ret;

	if (!xrds_ib_op_left(tx->part.msg))
		return xrds_ib_frag_fill(ep, slot, grant);
	ret = xrds_ib_op_fill(ep, slot, tx->part.msg);
	tx->part.op_end = tx->retired + tx->used;
	return ret;
}

/* Fill slots with what can be posted now, chained from @first on; NULL if
 * nothing can.
 */
static int xrds_ib_part_chain(struct xrds_ib_ep *ep, u32 grant,
			      struct xrds_ib_slot **first)
{
	struct xrds_ib_tx *tx = &ep->tx;
	struct xrds_ib_slot *last = NULL, *slot;
	int ret;

	*first = NULL;
	while (tx->part.msg && xrds_ib_part_ready(ep, grant)) {
		slot = xrds_ib_slot_take(tx);
		if (last)
			last->wr.next = &slot->wr;
		else
			*first = slot;
		last = slot;
		ret = xrds_ib_part_fill(ep, slot, &grant);
		if (ret) {
			xrds_ib_slot_untake(ep, *first);
			tx->broken = true;
			return ret;
		}
		tx->run++;
		if (xrds_ib_slot_awaited(ep, slot))
			xrds_ib_slot_signal(ep, slot);
	}
	/* one whose message goes on later */
	if (last && tx->part.msg)
		xrds_ib_slot_signal(ep, last);
	return 0;
}

/* Post what slots and credits allow of the message in mid-way. */
static int xrds_ib_part_post(struct xrds_ib_ep *ep)
{
	struct xrds_ib_tx *tx = &ep->tx;
	bool fresh = xrds_ib_op_fresh(tx->part.msg);
	u32 credits = tx->credits, granted = tx->granted;
	u16 head = tx->head;
	struct xrds_ib_slot *first;
	int ret;

	lockdep_assert_held(&ep->conn->tx_lock);

	ret = xrds_ib_part_chain(ep, xrds_ib_grantable(ep), &first);
	if (!ret && first)
		ret = xrds_ib_slot_post(ep, first);
	if (!ret || !fresh || tx->head != head)
		return ret;

	/* The device has nothing of the op, so it fails alone. */
	tx->broken = false;
	tx->credits = credits;
	WRITE_ONCE(tx->granted, granted);
	xrds_ib_op_refuse(ep, tx->part.msg);
	xrds_ib_part_rewind(ep);
	return xrds_ib_part_post(ep);
}

/* ------------------------------------------------------------- control */

static bool xrds_ib_ctl_full(const struct xrds_ib_tx *tx)
{
	return tx->ctl_used == BIT(XRDS_IB_CTL_SLOTS) - 1;
}

/* Writes header and payload; the caller has seen that there is a buffer. */
static void xrds_ib_ctl_fill(struct xrds_ib_ep *ep, struct xrds_ib_slot *slot,
			     const struct xrds_wire_msg *wm, const void *data)
{
	u32 offset;
	void *hdr;

	if (wm->len) {
		slot->ctl = ffz(ep->tx.ctl_used);
		ep->tx.ctl_used |= BIT(slot->ctl);
	}
	hdr = xrds_ib_slot_hdr(ep, slot, &offset);
	xrds_wire_hdr_encode(hdr, wm);
	if (wm->len)
		memcpy(hdr + XRDS_WIRE_HDR_BYTES, data, wm->len);
	xrds_ib_slot_sync(ep, slot, offset, XRDS_WIRE_HDR_BYTES + wm->len);
}

static int xrds_ib_ctl_post(struct xrds_ib_ep *ep, struct xrds_wire_msg *wm,
			    const void *data)
{
	struct xrds_ib_tx *tx = &ep->tx;
	struct xrds_ib_slot *slot;

	lockdep_assert_held(&ep->conn->tx_lock);

	slot = xrds_ib_slot_take(tx);
	xrds_ib_ctl_fill(ep, slot, wm, data);
	/* mainline looks at nothing before it is woken by one of these, and we
	 * must know what it has been told
	 */
	if (!xrds_ib_ep_xrds(ep)) {
		slot->wr.send_flags |= IB_SEND_SOLICITED;
		xrds_ib_slot_signal(ep, slot);
	}
	/* who finds no buffer waits for a completion that brings one, and who
	 * ends the connection for the last one
	 */
	tx->run++;
	if (xrds_ib_slot_awaited(ep, slot) || tx->bye_sent || tx->closed ||
	    (wm->flags && !tx->nr_signaled) || xrds_ib_ctl_full(tx))
		xrds_ib_slot_signal(ep, slot);
	xrds_ib_count(ep->xin, XRDS_IB_C_TX_CTL);
	return xrds_ib_slot_post(ep, slot);
}

/* What ends the connection stands behind all fragments, and only where the
 * peer can hear it.
 */
static int xrds_ib_ctl_bye(struct xrds_ib_ep *ep, u8 type)
{
	struct xrds_ib_tx *tx = &ep->tx;

	if (tx->part.msg)
		return -EAGAIN;
	if (!xrds_ib_id_up(ep->id))
		return -ENETDOWN;
	if (type == XRDS_CTL_BYE_ACK)
		tx->closed = true;
	else
		/* the receive path looks at it when a BYE_ACK comes */
		WRITE_ONCE(tx->bye_sent, true);
	return 0;
}

/* Acknowledgment or control message that uses a credit. A classic peer knows
 * acknowledgments only: one stands for a heartbeat, or for the end.
 */
static int xrds_ib_ctl_send(struct xrds_ib_ep *ep, u8 type, const void *data,
			    u32 len)
{
	u32 grant = xrds_ib_grantable(ep);
	struct xrds_ib_tx *tx = &ep->tx;
	struct xrds_wire_msg wm = {
		.len	= len,
		.dport	= type,
		.flags	= type ? XRDS_F_CONTROL : 0,
	};
	int ret = 0;

	if (!xrds_ib_can_send(ep, grant))
		return -EAGAIN;
	if (len && xrds_ib_ctl_full(tx)) {
		xrds_ib_count(ep->xin, XRDS_IB_C_TX_CTL_FULL);
		return -EAGAIN;
	}

	switch (type) {
	case XRDS_CTL_KEEPALIVE:
		wm.flags |= XRDS_F_ACK_REQUIRED;
		break;
	case XRDS_CTL_BYE:
	case XRDS_CTL_BYE_ACK:
		ret = xrds_ib_ctl_bye(ep, type);
		break;
	}
	if (ret)
		return ret;
	if (!xrds_ib_ep_xrds(ep)) {
		wm.dport = 0;
		wm.flags = 0;
	}
	wm.ack = xrds_xmit_ack_value(ep->conn);
	wm.credit = xrds_ib_spend(ep, &grant);
	return xrds_ib_ctl_post(ep, &wm, data);
}

/**
 * xrds_ib_xmit_ctl - post a control message or an acknowledgment
 * @conn: connection with an endpoint that is up
 * @type: enum xrds_ctl_type; 0: acknowledgment
 * @data: payload
 * @len: its length, at most XRDS_CTL_INLINE_BYTES
 *
 * Context: any, conn->tx_lock held.
 * Return: 0; -EAGAIN without slot or credit, then xrds_xmit_pump() follows;
 * other negative errno: the endpoint is broken.
 */
int xrds_ib_xmit_ctl(struct xrds_conn *conn, u8 type, const void *data,
		     u32 len)
{
	struct xrds_ib_ep *ep = conn->ep;
	int ret;

	lockdep_assert_held(&conn->tx_lock);
	BUILD_BUG_ON(XRDS_WIRE_HDR_BYTES + XRDS_CTL_INLINE_BYTES >
		     XRDS_IB_CTL_BYTES);

	if (ep->tx.broken)
		return -ENOTCONN;
	ret = ep->tx.closed ? -EAGAIN : xrds_ib_ctl_send(ep, type, data, len);
	if (ret == -EAGAIN)
		ep->tx.blocked = true;
	return ret;
}

static bool xrds_ib_flushed(struct xrds_ib_ep *ep, bool *broken)
{
	struct xrds_ib_tx *tx = &ep->tx;
	bool empty;

	spin_lock_bh(&ep->conn->tx_lock);
	*broken = tx->broken;
	empty = !tx->used;
	spin_unlock_bh(&ep->conn->tx_lock);
	return empty || *broken;
}

/**
 * xrds_ib_flush - wait until the peer's device has all that was posted
 * @conn: connection that has sent its BYE
 *
 * Context: the connection's work.
 * Return: whether it has.
 */
bool xrds_ib_flush(struct xrds_conn *conn)
{
	/* only the connection's work changes it */
	struct xrds_ib_ep *ep = conn->ep;
	bool broken = true;

	wait_event_timeout(ep->tx.emptied, xrds_ib_flushed(ep, &broken),
			   msecs_to_jiffies(XRDS_IB_FLUSH_MS));
	return xrds_ib_flushed(ep, &broken) && !broken;
}

/**
 * xrds_ib_send_hello - tell the peer that it may send
 * @ep: endpoint whose receive buffers are posted
 *
 * Context: the connection's work.
 * Return: 0 or a negative errno.
 */
int xrds_ib_send_hello(struct xrds_ib_ep *ep)
{
	struct xrds_conn *conn = ep->conn;
	u8 data[XRDS_WIRE_HELLO_BYTES];
	struct xrds_wire_hello hello;
	struct xrds_wire_msg wm = {
		.len	= sizeof(data),
		.dport	= XRDS_CTL_HELLO,
		.flags	= XRDS_F_CONTROL,
	};
	u32 room;
	int ret;

	xrds_conn_fill_hello(conn, &hello);
	hello.revision = ep->revision;
	hello.frag_bytes = ep->rq->buf_bytes;
	hello.tags = 1;

	spin_lock_bh(&conn->tx_lock);
	/* one at least: the rest follows when the queue has been filled */
	room = max(xrds_ib_rq_room(ep->rq, ep->tx.window), 1U);
	WRITE_ONCE(ep->tx.granted, room);
	hello.credits = room;
	xrds_wire_hello_encode(data, &hello);
	ret = xrds_ib_ctl_post(ep, &wm, data);
	spin_unlock_bh(&conn->tx_lock);
	return ret;
}

/**
 * xrds_ib_send_update - grant the peer credits that wait, if they are many
 * @ep: endpoint
 *
 * Context: any, without conn->tx_lock.
 */
void xrds_ib_send_update(struct xrds_ib_ep *ep)
{
	u32 outstanding = READ_ONCE(ep->tx.granted) -
			  READ_ONCE(ep->rx.received);
	struct xrds_conn *conn = ep->conn;
	struct xrds_ib_tx *tx = &ep->tx;
	u32 enough = max(tx->window / 2, 1U);
	int ret = 0;

	/* a guess, to keep the lock out of the common case */
	if (outstanding + enough > tx->window || !xrds_ib_ep_xrds(ep))
		return;

	spin_lock_bh(&conn->tx_lock);
	if (conn->ep == ep && tx->granted && !tx->broken && !tx->closed &&
	    xrds_ib_grantable(ep) >= enough) {
		ret = xrds_ib_ctl_send(ep, 0, NULL, 0);
		if (!ret)
			xrds_ib_count(ep->xin, XRDS_IB_C_TX_CREDIT_UPDATES);
	}
	spin_unlock_bh(&conn->tx_lock);
	/* without a slot: the completion that brings one tries again */
	if (ret && ret != -EAGAIN)
		xrds_ib_ep_fail(ep, XRDS_EV_ERROR, ret);
}

/* ------------------------------------------------------------- messages */

/**
 * xrds_ib_xmit - post a message
 * @conn: connection with an endpoint that is up
 * @msg: message; a reference is taken until it is sent or the endpoint ends
 *
 * Context: any, conn->tx_lock held.
 * Return: 0, the message was taken; -EAGAIN without slot or credit, then
 * xrds_xmit_pump() follows, or when the endpoint is about to end; other
 * negative errno: the endpoint is broken. Unless it is -EAGAIN, the op of the
 * message ends with its completion or with the endpoint.
 */
int xrds_ib_xmit(struct xrds_conn *conn, struct xrds_msg *msg)
{
	struct xrds_ib_ep *ep = conn->ep;
	struct xrds_ib_tx *tx = &ep->tx;

	lockdep_assert_held(&conn->tx_lock);

	/* who broke it has reported it, and an op that is not taken here ends
	 * with those that wait
	 */
	if (tx->broken || tx->part.msg || tx->bye_sent || tx->closed ||
	    !xrds_ib_can_send(ep, xrds_ib_grantable(ep))) {
		tx->blocked = true;
		return -EAGAIN;
	}
	if (xrds_ib_bundle_wanted(ep, msg) && xrds_ib_bundle_post(ep, msg))
		return 0;
	xrds_ib_part_begin(ep, msg);
	return xrds_ib_part_post(ep);
}

/* Slots or credits have come: go on with the message in mid-way. Returns 1 if
 * the core waits for room and there is some, 0, or a negative errno.
 */
static int xrds_ib_send_more(struct xrds_ib_ep *ep)
{
	struct xrds_ib_tx *tx = &ep->tx;
	int ret;

	lockdep_assert_held(&ep->conn->tx_lock);

	/* the endpoint is being taken down, or is about to be */
	if (ep->conn->ep != ep || tx->broken)
		return 0;
	if (tx->part.msg) {
		ret = xrds_ib_part_post(ep);
		if (ret || tx->part.msg)
			return ret;
	}
	if (!tx->blocked || !xrds_ib_can_send(ep, xrds_ib_grantable(ep)))
		return 0;
	tx->blocked = false;
	return 1;
}

/* What is to be done without the lock after xrds_ib_send_more() */
static void xrds_ib_send_after(struct xrds_ib_ep *ep, int more)
{
	if (more > 0)
		xrds_xmit_pump(ep->conn);
	else if (more < 0)
		xrds_ib_ep_fail(ep, XRDS_EV_ERROR, more);
}

/**
 * xrds_ib_send_open - the peer's hello has come
 * @ep: endpoint
 * @hello: its content
 *
 * Context: completions.
 */
void xrds_ib_send_open(struct xrds_ib_ep *ep,
		       const struct xrds_wire_hello *hello)
{
	spin_lock_bh(&ep->conn->tx_lock);
	ep->tx.credits = hello->credits;
	ep->tx.payload = min(hello->frag_bytes, ep->rq->buf_bytes) -
			 XRDS_WIRE_HDR_BYTES;
	if (hello->revision >= XRDS_REVISION_BUNDLES)
		ep->tx.bundle = READ_ONCE(ep->xin->bundle_bytes);
	spin_unlock_bh(&ep->conn->tx_lock);
}

/**
 * xrds_ib_send_credits - the peer has granted credits
 * @ep: endpoint
 * @credits: how many
 *
 * Context: completions, without conn->tx_lock.
 * Return: false when there are more than there may be.
 */
bool xrds_ib_send_credits(struct xrds_ib_ep *ep, u32 credits)
{
	struct xrds_ib_tx *tx = &ep->tx;
	int more;

	spin_lock_bh(&ep->conn->tx_lock);
	if (tx->credits + credits > XRDS_IB_MAX_CREDITS) {
		spin_unlock_bh(&ep->conn->tx_lock);
		return false;
	}
	tx->credits += credits;
	trace_xrds_credit_got(ep->conn, credits, tx->credits);
	more = xrds_ib_send_more(ep);
	spin_unlock_bh(&ep->conn->tx_lock);
	xrds_ib_send_after(ep, more);
	return true;
}

/* Context: completions, or the drain of a dead endpoint */
static void xrds_ib_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct xrds_ib_slot *slot = container_of(wc->wr_cqe,
						 struct xrds_ib_slot, cqe);
	struct xrds_ib_ep *ep = cq->cq_context;
	LIST_HEAD(ended);
	int more = 0;

	spin_lock_bh(&ep->conn->tx_lock);
	if (wc->status == IB_WC_SUCCESS) {
		if (!xrds_ib_ep_xrds(ep))
			xrds_ib_classic_sent(ep, slot);
		xrds_ib_slot_retire(ep, slot, &ended);
		more = xrds_ib_send_more(ep);
	} else {
		ep->tx.broken = true;
		if (slot->rop)
			xrds_ib_op_failed(ep, slot->rop, wc);
	}
	if (ep->tx.bye_sent && (!ep->tx.used || ep->tx.broken))
		wake_up(&ep->tx.emptied);
	spin_unlock_bh(&ep->conn->tx_lock);
	xrds_ib_op_end(&ended, RDS_RDMA_SUCCESS);

	if (wc->status != IB_WC_SUCCESS) {
		xrds_ib_count(ep->xin, XRDS_IB_C_TX_COMP_ERROR);
		xrds_ib_ep_fail(ep, XRDS_EV_ERROR, xrds_ib_wc_errno(wc));
		return;
	}
	xrds_ib_send_after(ep, more);
	xrds_ib_send_update(ep);
}

/**
 * xrds_ib_send_init - make what an endpoint needs to send
 * @ep: endpoint whose device is known
 *
 * Context: process.
 * Return: 0 or -ENOMEM; xrds_ib_slots_free() undoes it in either case.
 */
int xrds_ib_send_init(struct xrds_ib_ep *ep)
{
	ep->revision = XRDS_REVISION;
	if (!READ_ONCE(ep->xin->bundle_bytes) ||
	    READ_ONCE(ep->conn->no_bundles))
		ep->revision = XRDS_REVISION_FIRST;
	ep->tx.window = READ_ONCE(ep->xin->recv_window);
	ep->tx.payload = XRDS_WIRE_CLASSIC_PAYLOAD;
	init_waitqueue_head(&ep->tx.emptied);
	return xrds_ib_slots_init(ep, xrds_ib_send_done);
}
