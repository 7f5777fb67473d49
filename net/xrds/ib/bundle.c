// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bundles: several small messages in one SEND.
 *
 * When the core hands over a message while others wait behind it, those that
 * fit go with it, each behind a header of its own: one work request, one credit
 * and one completion for all of them. Messages wait because send contexts or
 * credits are short, because another CPU was posting, because the program has
 * announced more (sendmmsg(), see conn/tx.c), or behind a cork (sq.c).
 *
 * Payloads are copied into memory that belongs to the send context until it
 * completes: a scatter entry for each would cost more than so few bytes. The
 * device reads no message, and the send context holds none: each waits in the
 * core's list for its acknowledgment, and is sent again from there. Without
 * memory the message goes alone.
 *
 * A message with an op has a SEND of its own, as its completion ends the op,
 * and so has a control message. A peer that does not know bundles, as its hello
 * tells, gets none.
 *
 * All of it runs under conn->tx_lock.
 */
#include "ib/ib.h"

static void *xrds_ib_bundle_alloc(struct xrds_ib_ep *ep, u64 *dma)
{
	struct ib_device *dev = ep->ibdev->dev;
	void *data;

	/* a message can go without, so not from the reserves */
	data = kmalloc(XRDS_WIRE_MAX_BUNDLE_BYTES, GFP_NOWAIT | __GFP_NOWARN);
	if (!data)
		goto err_count;
	*dma = ib_dma_map_single(dev, data, XRDS_WIRE_MAX_BUNDLE_BYTES,
				 DMA_TO_DEVICE);
	if (ib_dma_mapping_error(dev, *dma))
		goto err_data;
	return data;

err_data:
	kfree(data);
err_count:
	xrds_ib_count(ep->xin, XRDS_IB_C_TX_BUNDLE_NO_MEM);
	return NULL;
}

/**
 * xrds_ib_bundle_wanted - should other messages go with this one?
 * @ep: endpoint
 * @msg: message
 *
 * Context: xrds_ib_send_msg(), conn->tx_lock held.
 * Return: whether it should.
 */
bool xrds_ib_bundle_wanted(const struct xrds_ib_ep *ep,
			   const struct xrds_msg *msg)
{
	u32 least = 2 * XRDS_WIRE_HDR_BYTES + msg->len;

	/* the last credit is kept for a header that grants some */
	if (least > ep->tx.bundle || ep->tx.credits < 2 || msg->rop ||
	    (msg->flags & XRDS_F_CONTROL))
		return false;
	return xrds_tx_has_small(ep->conn, ep->tx.bundle - least);
}

/* The header of the first message; its ack and credit stand for the whole SEND.
 */
static void xrds_ib_bundle_head(struct xrds_ib_ep *ep,
				struct xrds_ib_sctx *sctx,
				const struct xrds_msg *msg)
{
	u32 offset, grant = xrds_ib_sq_grantable(ep);
	struct xrds_wire_msg wm;
	struct xrds_hdr *hdr;

	xrds_ib_frag_wire_msg(ep, msg, &wm);
	wm.ack = xrds_tx_ack_value(ep->conn);
	wm.credit = xrds_ib_sq_spend(ep, &grant, XRDS_WIRE_MAX_CREDIT);
	hdr = xrds_ib_sq_hdr(ep, sctx, &offset);
	xrds_wire_hdr_encode(hdr, &wm);
	xrds_wire_context_note(&ep->tx.ctx, &wm);
	xrds_ib_sq_sync(ep, sctx, offset, sizeof(*hdr));
}

/* Fill the memory with the payload of the first message and with the others.
 * Returns the number of bytes.
 */
static u32 xrds_ib_bundle_fill(struct xrds_ib_ep *ep, void *data,
			       const struct xrds_msg *first)
{
	u32 most = ep->tx.bundle - XRDS_WIRE_HDR_BYTES, nr = 1;
	u32 at = xrds_msg_copy_to(first, data);
	struct xrds_wire_msg wm;
	struct xrds_msg *msg;
	struct xrds_hdr hdr;

	while (nr < XRDS_WIRE_MAX_BUNDLE_MSGS && at + sizeof(hdr) <= most) {
		msg = xrds_tx_dequeue_small(ep->conn, most - at - sizeof(hdr));
		if (!msg)
			break;
		xrds_ib_frag_wire_msg(ep, msg, &wm);
		/* its place may not be aligned */
		xrds_wire_hdr_encode(&hdr, &wm);
		xrds_wire_context_note(&ep->tx.ctx, &wm);
		memcpy(data + at, &hdr, sizeof(hdr));
		at += sizeof(hdr);
		at += xrds_msg_copy_to(msg, data + at);
		xrds_msg_put(msg);
		nr++;
	}
	xrds_ib_count(ep->xin, XRDS_IB_C_TX_BUNDLES);
	xrds_ib_count_add(ep->xin, XRDS_IB_C_TX_BUNDLED, nr);
	return at;
}

/**
 * xrds_ib_bundle_post - post a message together with those that wait behind it
 * @ep: endpoint with a send context and a credit
 * @msg: message without op
 *
 * A failing call to the device is reported from here: the messages that were
 * taken stay in flight, in order, until the connection is up again.
 *
 * Context: xrds_ib_send_msg(), conn->tx_lock held.
 * Return: false without memory; then no message was taken.
 */
bool xrds_ib_bundle_post(struct xrds_ib_ep *ep, const struct xrds_msg *msg)
{
	struct xrds_ib_sctx *sctx;
	struct ib_sge *sge;
	void *data;
	u64 dma;
	int ret;

	lockdep_assert_held(&ep->conn->tx_lock);

	data = xrds_ib_bundle_alloc(ep, &dma);
	if (!data)
		return false;
	sctx = xrds_ib_sq_take(&ep->tx);
	sctx->bundle = data;
	xrds_ib_bundle_head(ep, sctx, msg);
	sge = &sctx->sge[1];
	sge->addr = dma;
	sge->lkey = ep->ibdev->pd->local_dma_lkey;
	sge->length = xrds_ib_bundle_fill(ep, data, msg);
	if (sge->length) {
		sctx->wr.num_sge++;
		ib_dma_sync_single_for_device(ep->ibdev->dev, dma, sge->length,
					      DMA_TO_DEVICE);
	}
	xrds_ib_sq_count(&ep->tx, sctx);
	sctx->wr.send_flags |= IB_SEND_SOLICITED;
	xrds_ib_sq_signal(ep, sctx);
	xrds_ib_sq_cork(ep, sctx);
	xrds_ib_count(ep->xin, XRDS_IB_C_TX_FRAGS);
	ret = xrds_ib_sq_post(ep, sctx);
	if (ret)
		xrds_ib_event_fail(ep, XRDS_EV_ERROR, ret);
	return true;
}
