// SPDX-License-Identifier: GPL-2.0-only
/*
 * A message that is posted in part: its op first, then its fragments, each with
 * a header of its own, as send contexts and credits allow. Most of the headers
 * are short ones, which are no part of the payload: so 4 KiB of payload are one
 * packet, and a fragment fills its packets and its buffer.
 *
 *   xrds_ib_frag_begin -> xrds_ib_frag_post -> ... -> xrds_ib_frag_post -> sent
 *
 * All work requests that can be posted at a time go to the device in one call.
 * tx->cursor keeps the position until a completion frees send contexts or the
 * peer grants credits; the code that handles these events posts the next part.
 * So a message that was begun is sent as a whole unless the endpoint ends.
 *
 * There is a cursor for each of the two tags. All other messages wait behind
 * the one with tag 0: it has a sequence number already, and theirs are higher.
 * The one with tag 1 is a large message, which small ones may pass, see
 * conn/txq.c. A small message must not wait for much that the device was given
 * before it, so the number of fragments of the large message in progress is
 * limited: to a few if small messages do go beside it, else to as many as keep
 * the link busy, see window.c. The large message also leaves some credits to the others;
 * but after a number of small messages it has its turn, and may use any credit.
 * It also has it if the others have sent more than it has: then they wait.
 *
 * An op can have more work requests than there are send contexts, and each
 * takes as long as the link needs for much memory. So an op leaves a few send
 * contexts for messages that must not wait until its end: the heartbeat,
 * without which the peer would count the connection as dead, and credits.
 *
 * Everything is reserved before anything is posted: send context, credit,
 * mapping. A message whose payload cannot be mapped waits; if no completion comes
 * meanwhile the watch has it tried again. After that only the call to the device
 * can fail. Then the work
 * requests that the device took will complete when the queue pair is drained,
 * the others are undone, and the endpoint is of no further use; unless the
 * device has taken nothing of an op, which then fails alone.
 *
 * A message that must wait for its op has a fence. On some devices no read may
 * follow a fence, see quirks.c: there a read waits until the message with the
 * fence is done. If another message waits already, which may have a read, there
 * is no fence, and this one waits in tx->cursor until its op has completed.
 *
 * All of it runs under conn->tx_lock. It must never wait, and never allocate.
 */
#include "ib/ib.h"

enum {
	/* this part of a large message's window is used while small messages go
	 * beside it
	 */
	XRDS_IB_BULK_SHARED_PART = 4,
	/* small messages count as present for so long after the last one */
	XRDS_IB_SHARED_MS	= 100,
	/* credits that a large message leaves to others, but no larger share of
	 * the credits that the peer has granted than that: the peer grants more
	 * when half of them are used
	 */
	XRDS_IB_BULK_CREDITS	= 6,
	XRDS_IB_BULK_CREDITS_PART = 4,
	/* sends that pass a large message between two of its fragments, when
	 * credits are short
	 */
	XRDS_IB_BULK_PASSED	= 4,
	/* send contexts that an op leaves to heartbeats and credits */
	XRDS_IB_CTL_RESERVE	= 4,
};

static_assert(2 * XRDS_IB_BULK_CREDITS <= XRDS_IB_BUSY_CREDITS);

/* Map the next piece of payload, at most so much. Without memory for a mapping
 * the cursor stays.
 */
static int xrds_ib_frag_map(struct xrds_ib_ep *ep, struct xrds_ib_cursor *cur,
			    struct xrds_ib_sctx *sctx, u32 avail)
{
	u32 left = cur->left, first = cur->bv, bv_off = cur->bv_off;
	struct ib_device *dev = ep->ibdev->dev;

	while (avail && sctx->wr.num_sge < ep->tx.sge) {
		const struct bio_vec *bv = &cur->msg->bv[cur->bv];
		u32 n = min(bv->bv_len - cur->bv_off, avail);
		struct ib_sge *sge;
		u64 dma;

		dma = ib_dma_map_page(dev, bv->bv_page,
				      bv->bv_offset + cur->bv_off, n,
				      DMA_TO_DEVICE);
		if (ib_dma_mapping_error(dev, dma)) {
			xrds_ib_count(ep->xin, XRDS_IB_C_TX_SG_MAPPING_FAILURE);
			cur->left = left;
			cur->bv = first;
			cur->bv_off = bv_off;
			return -EAGAIN;
		}
		sge = &sctx->sge[sctx->wr.num_sge++];
		sge->addr = dma;
		sge->length = n;
		sge->lkey = ep->ibdev->pd->local_dma_lkey;

		avail -= n;
		cur->left -= n;
		cur->bv_off += n;
		if (cur->bv_off == bv->bv_len) {
			cur->bv++;
			cur->bv_off = 0;
		}
	}
	return 0;
}

/**
 * xrds_ib_frag_wire_msg - the header fields of a message
 * @ep: endpoint
 * @msg: message; without payload if its op was refused
 * @wm: result, without the fields that differ between SENDs
 *
 * Context: any, conn->tx_lock held.
 */
void xrds_ib_frag_wire_msg(const struct xrds_ib_ep *ep,
			   const struct xrds_msg *msg, struct xrds_wire_msg *wm)
{
	bool refused = msg->rop && xrds_ib_rdma_op_refused(msg);

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
	if (refused || (msg->rop && msg->rop->silent))
		wm->has |= XRDS_HAS_SILENT;
	if (!xrds_ib_ep_xrds(ep)) {
		xrds_ib_legacy_hdr(wm);
	} else if (!wm->sport && !wm->dport) {
		/* it was made for a legacy peer, which an XRDS node has
		 * replaced
		 */
		wm->flags &= ~(XRDS_F_HB_PING | XRDS_F_HB_PONG);
		wm->sport = XRDS_IB_NO_PORT;
		wm->dport = XRDS_IB_NO_PORT;
	}
}

/* Go to the first fragment of a message. It may have a number that it has not kept:
 * a large one that was cancelled.
 */
static void xrds_ib_frag_rewind(struct xrds_ib_ep *ep, u8 tag, u64 seq)
{
	struct xrds_ib_cursor *cur = &ep->tx.cursor[tag];
	const struct xrds_msg *msg = cur->msg;

	xrds_ib_frag_wire_msg(ep, msg, &cur->wm);
	cur->wm.seq = seq;
	cur->wm.tag = tag;
	cur->left = cur->wm.len;
	cur->bv = 0;
	cur->bv_off = 0;
	cur->fence = msg->rop && xrds_ib_rdma_op_fenced(msg);
}

/**
 * xrds_ib_frag_begin - set the cursor to a message; nothing is posted yet
 * @ep: endpoint
 * @tag: 1 if the others may pass it, else 0; its cursor is free
 * @msg: message; a reference is taken
 *
 * Context: any, conn->tx_lock held.
 */
void xrds_ib_frag_begin(struct xrds_ib_ep *ep, u8 tag, struct xrds_msg *msg)
{
	xrds_msg_get(msg);
	ep->tx.cursor[tag].msg = msg;
	ep->tx.cursor[tag].op_end = ep->tx.retired;
	if (tag)
		ep->tx.passed = 0;
	xrds_ib_frag_rewind(ep, tag, msg->seq);
}

/**
 * xrds_ib_frag_bulk_shares - do small messages go beside the large ones?
 * @tx: sending side of an endpoint
 *
 * Context: any, conn->tx_lock held.
 * Return: true if one was sent lately.
 */
bool xrds_ib_frag_bulk_shares(const struct xrds_ib_tx *tx)
{
	return tx->shared_at &&
	       time_before(jiffies, tx->shared_at +
				    msecs_to_jiffies(XRDS_IB_SHARED_MS));
}

/**
 * xrds_ib_frag_bulk_turn - has a large message its turn?
 * @ep: endpoint
 *
 * Context: any, conn->tx_lock held.
 * Return: true if enough other messages have passed it, or they wait for it.
 */
bool xrds_ib_frag_bulk_turn(const struct xrds_ib_ep *ep)
{
	return ep->tx.passed >= XRDS_IB_BULK_PASSED || ep->conn->tx_held;
}

/* The limit for fragments of a large message in progress */
static u32 xrds_ib_frag_bulk_max(const struct xrds_ib_tx *tx)
{
	u32 frags = tx->bulk_window.frags;

	return xrds_ib_frag_bulk_shares(tx) ? frags / XRDS_IB_BULK_SHARED_PART :
					 frags;
}

/* May another fragment of a large message be posted? */
static bool xrds_ib_frag_bulk_ready(const struct xrds_ib_ep *ep)
{
	const struct xrds_ib_tx *tx = &ep->tx;
	u32 share = tx->most_credits / XRDS_IB_BULK_CREDITS_PART;

	if (xrds_ib_frag_bulk_turn(ep))
		return tx->nr_bulk < tx->bulk_window.frags;
	return tx->nr_bulk < xrds_ib_frag_bulk_max(tx) &&
	       tx->credits > min_t(u32, share, XRDS_IB_BULK_CREDITS);
}

/* Count one more fragment of a large message. The first half of them is
 * signalled, so that it completes before the second half does.
 */
static void xrds_ib_frag_bulk_count(struct xrds_ib_ep *ep,
				    struct xrds_ib_sctx *sctx)
{
	struct xrds_ib_tx *tx = &ep->tx;

	sctx->bulk = true;
	tx->nr_bulk++;
	tx->passed = 0;
	if (++tx->bulk_run < xrds_ib_frag_bulk_max(tx) / 2)
		return;
	tx->bulk_run = 0;
	xrds_ib_sq_signal(ep, sctx);
	/* not each of them, as reading the clock takes time, nor while only a part
	 * of the window is used
	 */
	if (!xrds_ib_frag_bulk_shares(tx) &&
	    (!tx->bulk_sctx || xrds_ib_window_fresh(&tx->bulk_window))) {
		tx->bulk_sctx = sctx;
		xrds_ib_window_begin(&tx->bulk_window, ktime_get_ns());
	}
}

/* A fragment of a large message with this payload is about to go out. */
static void xrds_ib_frag_bulk_went(struct xrds_ib_ep *ep,
				   struct xrds_ib_cursor *cur, u32 bytes)
{
	struct xrds_conn *conn = ep->conn;

	/* the core comes again for messages that were held back */
	if (xrds_txq_bulk_went(conn, bytes + XRDS_WIRE_HDR_BYTES))
		ep->tx.blocked = true;
	if (!cur->left)
		cur->wm.seq = xrds_txq_bulk_number(conn, cur->msg);
}

/* Can the next fragment have a short header? A message with an op has none, as
 * the device may refuse the op when the headers are made. A large message gets
 * its number with the last fragment.
 */
static bool xrds_ib_frag_brief(const struct xrds_ib_ep *ep,
			       const struct xrds_ib_cursor *cur, u32 most)
{
	const struct xrds_wire_msg *wm = &cur->wm;
	bool last = cur->left <= most;
	struct xrds_wire_msg numbered;

	if (!ep->tx.brief || cur->msg->rop || (wm->frag && wm->seq))
		return false;
	if (!cur->msg->bulk || !last)
		return xrds_wire_short_fits(&ep->tx.ctx, wm, last);
	numbered = *wm;
	numbered.seq = ep->conn->tx_seq + 1;
	return xrds_wire_short_fits(&ep->tx.ctx, &numbered, last);
}

/* Is the payload copied and not mapped? */
static bool xrds_ib_frag_small(const struct xrds_ib_tx *tx,
			       const struct xrds_ib_cursor *cur)
{
	return cur->left && cur->left == cur->wm.len &&
	       cur->left <= tx->slot_bytes - XRDS_WIRE_HDR_BYTES;
}

/* So many bytes of payload go without a header. */
static void xrds_ib_frag_put_short(struct xrds_ib_ep *ep,
				   struct xrds_ib_cursor *cur,
				   struct xrds_ib_sctx *sctx, u32 bytes,
				   u32 copied, u32 *grant)
{
	struct xrds_wire_msg *wm = &cur->wm;
	u32 imm, offset;

	wm->credit = xrds_ib_sq_spend(ep, grant, XRDS_WIRE_SHORT_CREDIT);
	imm = xrds_wire_short_encode(&ep->tx.ctx, wm, !cur->left, bytes);
	sctx->wr.opcode = IB_WR_SEND_WITH_IMM;
	sctx->wr.ex.imm_data = cpu_to_be32(imm);
	if (copied) {
		xrds_msg_copy_to(cur->msg, xrds_ib_sq_hdr(ep, sctx, &offset));
		xrds_ib_sq_sync(ep, sctx, offset, copied);
	} else {
		sctx->wr.sg_list = &sctx->sge[1];
		sctx->wr.num_sge--;
	}
	xrds_ib_count(ep->xin, XRDS_IB_C_TX_SHORT);
}

static void xrds_ib_frag_put_full(struct xrds_ib_ep *ep,
				  struct xrds_ib_cursor *cur,
				  struct xrds_ib_sctx *sctx, u32 copied,
				  u32 *grant)
{
	struct xrds_wire_msg *wm = &cur->wm;
	struct xrds_hdr *hdr;
	u32 offset;

	wm->credit = xrds_ib_sq_spend(ep, grant, XRDS_WIRE_MAX_CREDIT);
	hdr = xrds_ib_sq_hdr(ep, sctx, &offset);
	xrds_wire_hdr_encode(hdr, wm);
	xrds_wire_context_note(&ep->tx.ctx, wm);
	if (copied)
		xrds_msg_copy_to(cur->msg, hdr + 1);
	xrds_ib_sq_sync(ep, sctx, offset, sizeof(*hdr) + copied);
}

/* Has the device got work requests of an op that it has not done? */
static bool xrds_ib_frag_op_posted(const struct xrds_ib_tx *tx,
				   const struct xrds_ib_cursor *cur)
{
	return (s32)(tx->retired - cur->op_end) < 0;
}

/* Fill a send context with the next fragment. */
static int xrds_ib_frag_fill(struct xrds_ib_ep *ep, struct xrds_ib_cursor *cur,
			     struct xrds_ib_sctx *sctx, u32 *grant)
{
	u32 left = cur->left, most = ep->tx.payload;
	struct xrds_wire_msg *wm = &cur->wm;
	u32 copied = 0;
	bool brief;
	int ret;

	wm->ack = xrds_tx_ack_value(ep->conn);
	brief = xrds_ib_frag_brief(ep, cur, most + XRDS_WIRE_HDR_BYTES);
	if (brief)
		most += XRDS_WIRE_HDR_BYTES;
	if (xrds_ib_frag_small(&ep->tx, cur)) {
		copied = left;
		cur->left = 0;
	} else {
		ret = xrds_ib_frag_map(ep, cur, sctx, min(most, left));
		if (ret)
			return ret;
	}
	if (cur->msg->bulk)
		xrds_ib_frag_bulk_went(ep, cur, left - cur->left);
	if (brief)
		xrds_ib_frag_put_short(ep, cur, sctx, left - cur->left, copied,
				       grant);
	else
		xrds_ib_frag_put_full(ep, cur, sctx, copied, grant);
	if (xrds_ib_ep_xrds(ep))
		wm->frag++;

	if (cur->fence && xrds_ib_frag_op_posted(&ep->tx, cur)) {
		sctx->wr.send_flags |= IB_SEND_FENCE;
		ep->tx.nr_fenced++;
	}
	cur->fence = false;
	if (!cur->left) {
		sctx->msg = cur->msg;
		cur->msg = NULL;
		sctx->wr.send_flags |= IB_SEND_SOLICITED;
	}
	xrds_ib_count(ep->xin, XRDS_IB_C_TX_FRAGS);
	return 0;
}

/* Has the message an op with work requests that are not filled? */
static bool xrds_ib_frag_op_left(const struct xrds_ib_cursor *cur)
{
	return cur->msg->rop && xrds_ib_rdma_op_remaining(cur->msg);
}

/* Must an op wait for a fence in front of it, or a message for its op? Either
 * is signalled: the message as it has an op, the op as none followed it.
 */
static bool xrds_ib_frag_fence_holds(const struct xrds_ib_ep *ep,
				     const struct xrds_ib_cursor *cur)
{
	if (!ep->ibdev->quirks.weak_fences)
		return false;
	if (xrds_ib_frag_op_left(cur))
		return ep->tx.nr_fenced && cur->msg->rop->op != XRDS_ROP_WRITE;
	return cur->fence && xrds_ib_frag_op_posted(&ep->tx, cur) &&
	       xrds_tx_waits(ep->conn);
}

/* Are there a send context and a credit for the next work request of a message?
 */
static bool xrds_ib_frag_may_post(struct xrds_ib_ep *ep, u8 tag, u32 grant)
{
	struct xrds_ib_tx *tx = &ep->tx;
	const struct xrds_ib_cursor *cur = &tx->cursor[tag];

	if (xrds_ib_frag_fence_holds(ep, cur))
		return false;
	if (xrds_ib_frag_op_left(cur)) {
		if (tx->used + XRDS_IB_CTL_RESERVE < tx->nr)
			return true;
		xrds_ib_count(ep->xin, XRDS_IB_C_TX_RING_FULL);
		return false;
	}
	/* a message with a sequence number must not wait any more */
	if (cur->msg->bulk && !xrds_ib_frag_bulk_ready(ep))
		return false;
	return xrds_ib_sq_can_send(ep, grant);
}

/* Fill a send context with the next work request of a message. */
static int xrds_ib_frag_next(struct xrds_ib_ep *ep, u8 tag,
			     struct xrds_ib_sctx *sctx, u32 *grant)
{
	struct xrds_ib_cursor *cur = &ep->tx.cursor[tag];
	int ret;

	sctx->tag = tag;
	if (!xrds_ib_frag_op_left(cur)) {
		ret = xrds_ib_frag_fill(ep, cur, sctx, grant);
		if (!ret && tag)
			xrds_ib_frag_bulk_count(ep, sctx);
		else if (!ret)
			xrds_ib_sq_count(&ep->tx, sctx);
		return ret;
	}
	ret = xrds_ib_rdma_op_fill(ep, sctx, cur->msg);
	cur->op_end = ep->tx.retired + ep->tx.used;
	return ret;
}

/* Fill all send contexts that can be posted now, in a chain that begins with
 * @first; NULL if there is none.
 */
static int xrds_ib_frag_chain(struct xrds_ib_ep *ep, u8 tag, u32 grant,
			      struct xrds_ib_sctx **first)
{
	struct xrds_ib_tx *tx = &ep->tx;
	struct xrds_ib_sctx *last = NULL, *sctx;
	int ret;

	*first = NULL;
	while (tx->cursor[tag].msg && xrds_ib_frag_may_post(ep, tag, grant)) {
		sctx = xrds_ib_sq_take(tx);
		ret = xrds_ib_frag_next(ep, tag, sctx, &grant);
		if (ret == -EAGAIN) {
			xrds_ib_sq_untake(ep, sctx);
			xrds_ib_watch_mapping(ep);
			break;
		}
		if (last)
			last->wr.next = &sctx->wr;
		else
			*first = sctx;
		last = sctx;
		if (ret) {
			xrds_ib_sq_untake(ep, *first);
			tx->broken = true;
			return ret;
		}
		tx->run++;
		if (xrds_ib_sq_wants_signal(ep, sctx))
			xrds_ib_sq_signal(ep, sctx);
		if (sctx->msg && !sctx->msg->rop)
			xrds_ib_sq_cork(ep, sctx);
	}
	/* its completion lets the message go on */
	if (last && tx->cursor[tag].msg)
		xrds_ib_sq_signal(ep, last);
	return 0;
}

/**
 * xrds_ib_frag_post - post as much of a message as can be posted now
 * @ep: endpoint
 * @tag: index of its cursor
 *
 * Context: any, conn->tx_lock held.
 * Return: 0, or a negative errno: the endpoint is broken.
 */
int xrds_ib_frag_post(struct xrds_ib_ep *ep, u8 tag)
{
	struct xrds_ib_tx *tx = &ep->tx;
	const struct xrds_msg *msg = tx->cursor[tag].msg;
	bool fresh = msg->rop && xrds_ib_rdma_op_fresh(msg);
	u32 credits = tx->credits, granted = tx->granted;
	u16 head = tx->head;
	struct xrds_ib_sctx *first;
	int ret;

	lockdep_assert_held(&ep->conn->tx_lock);

	ret = xrds_ib_frag_chain(ep, tag, xrds_ib_sq_grantable(ep), &first);
	if (!ret && first)
		ret = xrds_ib_sq_post(ep, first);
	if (!ret || !fresh || tx->head != head)
		return ret;

	/* The device has nothing of the op, so it fails alone. */
	tx->broken = false;
	tx->credits = credits;
	WRITE_ONCE(tx->granted, granted);
	xrds_ib_rdma_op_refuse(ep, msg);
	xrds_ib_frag_rewind(ep, tag, tx->cursor[tag].wm.seq);
	return xrds_ib_frag_post(ep, tag);
}
