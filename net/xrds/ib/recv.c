// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receiving: from a completion to a whole message.
 *
 * Each SEND of the peer takes one buffer and has one completion: a header and
 * perhaps payload, or payload with a short header in the completion. In the
 * order of this file: the header is decoded; the first one must be a hello, and
 * each later one must use a credit; credits and acknowledgment take effect; a
 * control message is acted upon, a fragment joins its message; a complete
 * message goes to the core, and the messages of a bundle one after the other,
 * copied out of the buffer. Last of all the buffer returns to its queue, and
 * only then can its credit be granted again.
 *
 * All completions of an endpoint come through one completion queue, polled by
 * one CPU at a time, so ep->rx needs no lock. After the endpoint was made dead
 * a second poller helps to drain the queue, see ep.c; then completions only
 * return their buffers, which is safe on any CPU.
 *
 * The endpoint ends when the peer violates Documentation/xrds-wire.rst: the
 * first violation is reported, everything behind it ignored. Of a completion
 * that reports an error only wr_cqe, status and vendor_err are valid. An RDMA
 * write with immediate data takes a buffer as well, but does not fill it: the
 * buffer may hold another peer's data and must not be parsed. The memory that a
 * peer can use here is bounded, by the credits that it was granted and by two
 * messages of 1 MiB for each connection, one for each tag. All peers together have a
 * bound for that as well: a peer may send a part of a message, and never the rest.
 */
#include <linux/kmemleak.h>
#include <linux/sched/clock.h>

#include "ib/ib.h"

enum {
	/* payloads up to this size are copied, and the buffer keeps its pages */
	XRDS_IB_COPY_BYTES	= 4096,

	/* Memory of messages of which a part has arrived: so much of each message is
	 * not counted, the rest in steps, and a namespace may always have some.
	 */
	XRDS_IB_PART_FREE	= 128 << 10,
	XRDS_IB_PART_STEP	= 256 << 10,
	XRDS_IB_PARTS_LEAST	= 64 << 20,
};

/* all that is parsed is in the first page of a buffer, and an skb has space for
 * all of them
 */
static_assert(XRDS_WIRE_MAX_BUNDLE_BYTES <= PAGE_SIZE);
static_assert(XRDS_IB_BUF_PAGES <= MAX_SKB_FRAGS);

static void xrds_ib_recv_hello_done(struct ib_cq *cq, struct ib_wc *wc);

/* -------------------------------------------------------------- payload */

static struct sk_buff *xrds_ib_skb_reserved(struct xrds_ib_buf *buf)
{
	struct sk_buff *skb = buf->skb;

	buf->skb = NULL;
	return skb;
}

static struct sk_buff *xrds_ib_skb_copy(struct xrds_ib_ep *ep,
					const void *data, u32 len)
{
	struct sk_buff *skb = xrds_msg_alloc_skb(len, GFP_ATOMIC | __GFP_NOWARN);

	if (!skb) {
		xrds_ib_count(ep->xin, XRDS_IB_C_RX_COPY_NO_MEM);
		return NULL;
	}
	skb_put_data(skb, data, len);
	xrds_ib_count(ep->xin, XRDS_IB_C_RX_COPIED);
	return skb;
}

/* The payload of a buffer, from an offset on, in an skb of its own; cannot fail.
 */
static struct sk_buff *xrds_ib_skb_from(struct xrds_ib_ep *ep,
					struct xrds_ib_buf *buf, u32 at,
					u32 len)
{
	struct sk_buff *skb;

	if (len <= XRDS_IB_COPY_BYTES && at + len <= buf->sge[0].length) {
		skb = xrds_ib_skb_copy(ep, xrds_ib_buf_data(buf) + at, len);
		if (skb)
			return skb;
	}
	skb = xrds_ib_skb_reserved(buf);
	if (len)
		xrds_ib_buf_give(buf, skb, at, len);
	return skb;
}

/* Append the payload of a buffer to a message in ep->rx; cannot fail. */
static void xrds_ib_skb_append(struct xrds_ib_rx_msg *rmsg,
			       struct xrds_ib_buf *buf, u32 at, u32 len)
{
	struct sk_buff *head = rmsg->head;
	struct sk_buff *last = rmsg->last;
	u32 truesize = last->truesize;

	if (skb_shinfo(last)->nr_frags + buf->wr.num_sge > MAX_SKB_FRAGS) {
		last = xrds_ib_skb_reserved(buf);
		if (rmsg->last == head)
			skb_shinfo(head)->frag_list = last;
		else
			rmsg->last->next = last;
		rmsg->last = last;
		truesize = 0;
	}
	xrds_ib_buf_give(buf, last, at, len);
	if (last == head)
		return;
	head->len += len;
	head->data_len += len;
	head->truesize += last->truesize - truesize;
}

/* -------------------------------------------------------------- control */

static enum xrds_wire_err xrds_ib_recv_hello(struct xrds_ib_ep *ep,
					     const void *payload, u32 len)
{
	struct xrds_wire_hello hello;
	enum xrds_wire_err err;

	err = xrds_wire_hello_decode(&hello, payload, len);
	if (err)
		return err;
	/* the lower limit of both sides applies, for the core as well */
	hello.revision = min_t(u16, hello.revision, XRDS_REVISION);
	hello.flags &= ep->hello_flags | XRDS_HELLO_KNOWN;
	hello.frag_bytes = min(hello.frag_bytes, ep->rq->buf_bytes);
	ep->rx.max_payload = hello.frag_bytes - XRDS_WIRE_HDR_BYTES;
	ep->rx.bundles = hello.flags & XRDS_HELLO_BUNDLES;
	ep->rx.brief = hello.flags & XRDS_HELLO_SHORT;
	ep->rx.hello = true;
	xrds_ib_event_not_half_open(ep);
	xrds_ib_send_open(ep, &hello);
	xrds_rx_hello(ep->conn, ep->gen, &hello);
	return XRDS_WIRE_OK;
}

/* Everything but the hello */
static enum xrds_wire_err xrds_ib_recv_ctl(struct xrds_ib_ep *ep,
					   const struct xrds_wire_msg *wm,
					   struct xrds_ib_buf *buf)
{
	struct xrds_conn *conn = ep->conn;

	switch (wm->dport) {
	case XRDS_CTL_CONG:
	case XRDS_CTL_CONG_MAP:
		xrds_cong_recv(conn, wm->dport,
			       xrds_ib_skb_from(ep, buf, XRDS_WIRE_HDR_BYTES,
						wm->len));
		return XRDS_WIRE_OK;
	case XRDS_CTL_REFUSED:
		xrds_refuse_recv(conn, xrds_ib_skb_from(ep, buf,
							XRDS_WIRE_HDR_BYTES,
							wm->len));
		return XRDS_WIRE_OK;
	case XRDS_CTL_BYE:
		if (ep->rx.bye)
			return XRDS_WIRE_CTL_STATE;
		ep->rx.bye = true;
		xrds_conn_ep_event(conn, ep->gen, XRDS_EV_BYE, 0);
		return XRDS_WIRE_OK;
	case XRDS_CTL_BYE_ACK:
		if (!READ_ONCE(ep->tx.bye_sent) || ep->rx.bye_ack)
			return XRDS_WIRE_CTL_STATE;
		/* the refill reads it, too */
		WRITE_ONCE(ep->rx.bye_ack, true);
		xrds_conn_ep_event(conn, ep->gen, XRDS_EV_BYE_ACK, 0);
		return XRDS_WIRE_OK;
	case XRDS_CTL_KEEPALIVE:
		ep->rx.busy = false;
		if (wm->flags & XRDS_F_ACK_REQUIRED)
			xrds_tx_need_ack(conn);
		return XRDS_WIRE_OK;
	default:
		/* a second hello; the decoder lets nothing else through */
		return XRDS_WIRE_CTL_STATE;
	}
}

/* ------------------------------------------------------------ fragments */

/* Count the memory of a message that arrives in parts. Returns whether the endpoint is
 * to end, as there is too much of that in the namespace. Up to twice the bound those
 * end whose peers use small fragments, which take much more memory than their payload.
 */
static bool xrds_ib_recv_charge(struct xrds_ib_ep *ep,
				struct xrds_ib_rx_msg *rmsg)
{
	const struct xrds_net *xn = xrds_net(ep->xin->net);
	u64 most, used;

	if (likely(rmsg->head->truesize <= rmsg->charged + XRDS_IB_PART_FREE))
		return false;
	rmsg->charged += XRDS_IB_PART_STEP;
	/* half of max_recv_kb, which is in KiB */
	most = max_t(u64, (u64)READ_ONCE(xn->max[XRDS_LIMIT_RECV]) << 9,
		     XRDS_IB_PARTS_LEAST);
	used = atomic64_add_return(XRDS_IB_PART_STEP, &ep->xin->parts);
	return used > 2 * most ||
	       (used > most && rmsg->charged > 4 * rmsg->head->len +
					       XRDS_IB_PART_STEP);
}

static void xrds_ib_recv_uncharge(struct xrds_ib_ep *ep,
				  struct xrds_ib_rx_msg *rmsg)
{
	if (likely(!rmsg->charged))
		return;
	atomic64_sub(rmsg->charged, &ep->xin->parts);
	rmsg->charged = 0;
}

static void xrds_ib_recv_drop(struct xrds_ib_ep *ep)
{
	struct xrds_ib_rx_msg *rmsg;

	for (rmsg = ep->rx.msg; rmsg < ep->rx.msg + XRDS_IB_TAGS; rmsg++) {
		xrds_ib_recv_uncharge(ep, rmsg);
		kfree_skb(rmsg->head);
		rmsg->head = NULL;
		rmsg->last = NULL;
	}
}

/* A message is complete. */
static enum xrds_wire_err xrds_ib_recv_whole(struct xrds_ib_ep *ep,
					     struct xrds_ib_rx_msg *rmsg)
{
	struct sk_buff *skb = rmsg->head;
	enum xrds_wire_err err;

	err = xrds_ib_legacy_check_csum(&rmsg->reasm.first, skb);
	if (err)
		return err;
	xrds_ib_recv_uncharge(ep, rmsg);
	rmsg->head = NULL;
	rmsg->last = NULL;
	xrds_ib_count(ep->xin, XRDS_IB_C_RX_TOTAL_INCS);
	if (unlikely(rmsg->reasm.first.kind == XRDS_KIND_CONG_MAP))
		xrds_cong_recv(ep->conn, XRDS_CTL_CONG_MAP, skb);
	else
		xrds_rx_msg(ep->conn, &rmsg->reasm.first, skb);
	return XRDS_WIRE_OK;
}

/* A fragment, with its payload at an offset of the buffer */
static enum xrds_wire_err xrds_ib_recv_frag(struct xrds_ib_ep *ep,
					    const struct xrds_wire_msg *wm,
					    struct xrds_ib_buf *buf, u32 at,
					    u32 len)
{
	struct xrds_ib_rx *rx = &ep->rx;
	struct xrds_ib_rx_msg *rmsg;
	enum xrds_wire_err err;
	u64 hdr_at;
	int done;

	/* a peer completes its messages before it sends either of these */
	if (rx->bye || rx->bye_ack)
		return XRDS_WIRE_CTL_STATE;
	if (wm->tag >= XRDS_IB_TAGS)
		return XRDS_WIRE_TAG;
	rmsg = &rx->msg[wm->tag];
	hdr_at = rmsg->head ? 0 : local_clock();
	err = xrds_wire_reasm_add(&rmsg->reasm, wm, len, rx->max_payload,
				  ep->version, &done);
	if (err)
		return err;
	len = rmsg->reasm.take;

	if (rmsg->head && !len) {
		/* a legacy heartbeat, before the message is complete */
		return XRDS_WIRE_OK;
	} else if (rmsg->head) {
		xrds_ib_skb_append(rmsg, buf, at, len);
		if (unlikely(xrds_ib_recv_charge(ep, rmsg)) && !done) {
			/* the peer sends it again on the next endpoint */
			xrds_ib_count(ep->xin, XRDS_IB_C_RX_PARTS_LIMIT);
			rx->failed = true;
			xrds_ib_recv_drop(ep);
			xrds_ib_event_fail(ep, XRDS_EV_ERROR, -ENOBUFS);
		}
	} else {
		rmsg->head = xrds_ib_skb_from(ep, buf, at, len);
		rmsg->last = rmsg->head;
		xrds_skb_trace(rmsg->head)->at[XRDS_RX_HDR] = hdr_at;
		xrds_skb_trace(rmsg->head)->at[XRDS_RX_START] = local_clock();
	}
	return done ? xrds_ib_recv_whole(ep, rmsg) : XRDS_WIRE_OK;
}

/* -------------------------------------------------------------- bundles */

/* Take one message of a bundle, at its place in the buffer. Without memory for
 * it the endpoint ends: the message is not acknowledged, and comes again on the
 * next endpoint, which has no bundles: a message that comes alone has memory
 * reserved.
 */
static enum xrds_wire_err xrds_ib_recv_bundled(struct xrds_ib_ep *ep,
					       const struct xrds_wire_msg *wm,
					       const void *payload)
{
	struct xrds_ib_rx *rx = &ep->rx;
	struct xrds_ib_rx_msg *rmsg;
	u64 hdr_at = local_clock();
	enum xrds_wire_err err;
	int done;

	if (wm->tag >= XRDS_IB_TAGS)
		return XRDS_WIRE_TAG;
	rmsg = &rx->msg[wm->tag];
	/* it is whole, but another one of this tag may be incomplete */
	err = xrds_wire_reasm_add(&rmsg->reasm, wm, wm->len, rx->max_payload,
				  ep->version, &done);
	if (err)
		return err;
	rmsg->head = xrds_ib_skb_copy(ep, payload, wm->len);
	rmsg->last = rmsg->head;
	if (!rmsg->head) {
		rx->failed = true;
		WRITE_ONCE(ep->conn->no_bundles, true);
		xrds_ib_event_fail(ep, XRDS_EV_ERROR, -ENOMEM);
		return XRDS_WIRE_OK;
	}
	xrds_skb_trace(rmsg->head)->at[XRDS_RX_HDR] = hdr_at;
	xrds_skb_trace(rmsg->head)->at[XRDS_RX_START] = local_clock();
	return xrds_ib_recv_whole(ep, rmsg);
}

/* Several messages in one SEND; @wm is the first, and becomes the last. */
static enum xrds_wire_err xrds_ib_recv_bundle(struct xrds_ib_ep *ep,
					      struct xrds_wire_msg *wm,
					      const void *data, u32 bytes)
{
	struct xrds_wire_bundle b;
	enum xrds_wire_err err;

	if (ep->rx.bye || ep->rx.bye_ack)
		return XRDS_WIRE_CTL_STATE;
	xrds_ib_count(ep->xin, XRDS_IB_C_RX_BUNDLES);
	xrds_rx_batch_begin(ep->conn);
	err = xrds_wire_bundle_first(&b, wm, bytes);
	while (!err) {
		err = xrds_ib_recv_bundled(ep, wm, data + b.payload);
		if (err || ep->rx.failed)
			break;
		xrds_ib_count(ep->xin, XRDS_IB_C_RX_BUNDLED);
		if (b.next == bytes)
			break;
		err = xrds_wire_bundle_next(&b, wm, data);
		if (!err)
			xrds_wire_context_note(&ep->rx.ctx, wm);
	}
	xrds_rx_batch_end(ep->conn);
	return err;
}

/* -------------------------------------------------------------- headers */

/* A header behind the hello, in XRDS mode */
static enum xrds_wire_err xrds_ib_recv_credit(struct xrds_ib_ep *ep,
					      const struct xrds_wire_msg *wm)
{
	/* each buffer in the device's queue was posted and granted before */
	if (READ_ONCE(ep->tx.granted) == ep->rx.received)
		return XRDS_WIRE_CREDIT;
	if (!wm->credit)
		return XRDS_WIRE_OK;
	xrds_ib_count(ep->xin, XRDS_IB_C_RX_CREDIT_UPDATES);
	return xrds_ib_send_credits(ep, wm->credit) ? XRDS_WIRE_OK :
						      XRDS_WIRE_CREDIT;
}

static int xrds_ib_recv_version(struct xrds_ib_ep *ep, const void *data,
				u32 bytes)
{
	int version = READ_ONCE(ep->version);

	return likely(version) ? version :
				 xrds_ib_legacy_guess_version(ep, data, bytes);
}

/* The part of a message that is the same in each kind of buffer. @done is set
 * when nothing of it is left to take: a hello, or an acknowledgment alone.
 */
static enum xrds_wire_err xrds_ib_recv_hdr(struct xrds_ib_ep *ep,
					   struct xrds_wire_msg *wm,
					   const void *data, u32 bytes,
					   bool *done)
{
	enum xrds_wire_err err;

	*done = true;
	err = xrds_wire_hdr_decode(wm, data, bytes,
				   xrds_ib_recv_version(ep, data, bytes));
	if (err)
		return err;

	if (xrds_ib_ep_xrds(ep)) {
		xrds_wire_context_note(&ep->rx.ctx, wm);
		if (!ep->rx.hello && wm->kind == XRDS_KIND_CTL &&
		    wm->dport == XRDS_CTL_HELLO)
			return xrds_ib_recv_hello(ep, data +
						  XRDS_WIRE_HDR_BYTES,
						  bytes - XRDS_WIRE_HDR_BYTES);
		if (!ep->rx.hello)
			return XRDS_WIRE_CTL_STATE;
		err = xrds_ib_recv_credit(ep, wm);
		if (err)
			return err;
	} else {
		xrds_ib_legacy_received(ep);
	}
	if (xrds_tx_acked(ep->conn, wm->ack))
		return XRDS_WIRE_ACK;
	ep->rx.ack_only = wm->kind == XRDS_KIND_ACK;
	ep->rx.busy = !ep->rx.ack_only;
	*done = ep->rx.ack_only;
	return XRDS_WIRE_OK;
}

/* A SEND without a header: a fragment of a message, and nothing else */
static enum xrds_wire_err xrds_ib_recv_short(struct xrds_ib_ep *ep,
					     struct xrds_ib_buf *buf,
					     u32 bytes, u32 imm)
{
	struct xrds_wire_msg wm;
	enum xrds_wire_err err;

	if (!ep->rx.brief)
		return XRDS_WIRE_OPCODE;
	err = xrds_wire_short_decode(&wm, &ep->rx.ctx, imm, bytes);
	if (!err)
		err = xrds_ib_recv_credit(ep, &wm);
	if (err)
		return err;
	if (xrds_tx_acked(ep->conn, wm.ack))
		return XRDS_WIRE_ACK;
	ep->rx.ack_only = false;
	ep->rx.busy = true;
	return xrds_ib_recv_frag(ep, &wm, buf, 0, bytes);
}

static enum xrds_wire_err xrds_ib_recv_one(struct xrds_ib_ep *ep,
					   struct xrds_ib_buf *buf, u32 bytes)
{
	const void *data = xrds_ib_buf_data(buf);
	u32 len = bytes - XRDS_WIRE_HDR_BYTES;
	struct xrds_wire_msg wm;
	enum xrds_wire_err err;
	bool done;

	err = xrds_ib_recv_hdr(ep, &wm, data, bytes, &done);
	if (err || done)
		return err;
	if (wm.kind == XRDS_KIND_CTL)
		return xrds_ib_recv_ctl(ep, &wm, buf);
	/* the first message, if there are several */
	if (ep->rx.bundles && xrds_wire_bundled(&wm, len))
		return xrds_ib_recv_bundle(ep, &wm, data, bytes);
	return xrds_ib_recv_frag(ep, &wm, buf, XRDS_WIRE_HDR_BYTES, len);
}

/* ---------------------------------------------------------- completions */

static void xrds_ib_recv_failed(struct xrds_ib_ep *ep, const struct ib_wc *wc)
{
	if (READ_ONCE(ep->dead))
		return;
	xrds_ib_count(ep->xin, XRDS_IB_C_RX_COMP_ERROR);
	xrds_ib_event_fail(ep, XRDS_EV_ERROR, xrds_ib_event_wc_errno(wc));
}

/* Does the endpoint still take messages? */
static bool xrds_ib_recv_wanted(struct xrds_ib_ep *ep)
{
	if (!READ_ONCE(ep->dead) && !ep->rx.failed)
		return true;
	xrds_ib_count(ep->xin, XRDS_IB_C_RX_DROP_DEAD);
	return false;
}

static void xrds_ib_recv_violation(struct xrds_ib_ep *ep,
				   enum xrds_wire_err err)
{
	ep->rx.failed = true;
	xrds_ib_recv_drop(ep);
	xrds_ib_event_wire_error(ep, err);
}

/* Has the peer sent something else than a SEND, or had the device invalidate a key
 * with it? No peer of ours does either.
 */
static bool xrds_ib_recv_odd(const struct ib_wc *wc)
{
	return wc->opcode != IB_WC_RECV ||
	       wc->wc_flags & IB_WC_WITH_INVALIDATE;
}

/* Give @bytes of a buffer to the processor, or back to the device. They are not more
 * than its size.
 */
static __always_inline void
xrds_ib_recv_sync(struct xrds_ib_buf *buf, u32 bytes,
		  void (*sync)(struct ib_device *dev, u64 addr, size_t size,
			       enum dma_data_direction dir))
{
	u32 i, part;

	for (i = 0; bytes; i++, bytes -= part) {
		part = min(bytes, buf->sge[i].length);
		sync(buf->rq->ibdev->dev, buf->sge[i].addr, part,
		     DMA_FROM_DEVICE);
	}
}

/* A buffer of the receive queue has completed. */
static void xrds_ib_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct xrds_ib_buf *buf = container_of(wc->wr_cqe, struct xrds_ib_buf,
					       cqe);
	struct xrds_ib_ep *ep = cq->cq_context;
	enum xrds_wire_err err;
	bool hello;

	if (wc->status != IB_WC_SUCCESS) {
		xrds_ib_recv_failed(ep, wc);
		xrds_ib_rq_failed(buf->rq);
		xrds_ib_buf_return(buf->rq, buf);
		return;
	}
	if (!xrds_ib_recv_wanted(ep)) {
		xrds_ib_buf_return(buf->rq, buf);
		return;
	}

	xrds_conn_heard(ep->conn);
	xrds_ib_count(ep->xin, XRDS_IB_C_RX_TOTAL_FRAGS);
	if (xrds_ib_recv_odd(wc)) {
		xrds_ib_buf_return(buf->rq, buf);
		xrds_ib_recv_violation(ep, XRDS_WIRE_OPCODE);
		return;
	}
	xrds_ib_recv_sync(buf, wc->byte_len, ib_dma_sync_single_for_cpu);
	hello = !ep->rx.hello;
	/* legacy versions do not look at immediate data */
	if (wc->wc_flags & IB_WC_WITH_IMM && xrds_ib_ep_xrds(ep))
		err = xrds_ib_recv_short(ep, buf, wc->byte_len,
					 be32_to_cpu(wc->ex.imm_data));
	else
		err = xrds_ib_recv_one(ep, buf, wc->byte_len);
	if (buf->wr.num_sge)
		xrds_ib_recv_sync(buf, wc->byte_len,
				  ib_dma_sync_single_for_device);
	xrds_ib_buf_return(buf->rq, buf);
	if (err) {
		xrds_ib_recv_violation(ep, err);
		return;
	}
	/* after the buffer was returned: only now may its credit be granted */
	if (!hello) {
		WRITE_ONCE(ep->rx.received, ep->rx.received + 1);
		xrds_ib_share_fit(ep, ep->rx.busy);
	}
	if (ep->rx.ack_only)
		xrds_ib_send_update(ep);
	else
		xrds_ib_send_update_low(ep);
}

const struct xrds_ib_rq_ops xrds_ib_recv_ops = {
	.done	= xrds_ib_recv_done,
	.grant	= xrds_ib_send_update_low,
};

/* The first message of a legacy peer, in the buffer for the hello */
static enum xrds_wire_err xrds_ib_recv_first(struct xrds_ib_ep *ep,
					     const struct xrds_wire_msg *wm,
					     u32 len)
{
	struct xrds_ib_rx_msg *rmsg = ep->rx.msg;
	enum xrds_wire_err err;
	int done;

	err = xrds_wire_reasm_add(&rmsg->reasm, wm, len, 0, ep->version, &done);
	if (err)
		return err;
	rmsg->head = xrds_ib_skb_copy(ep, ep->rx.hello_buf +
				      XRDS_WIRE_HDR_BYTES,
				      rmsg->reasm.take);
	rmsg->last = rmsg->head;
	if (!rmsg->head) {
		/* the peer sends it again on the next endpoint */
		ep->rx.failed = true;
		xrds_ib_event_fail(ep, XRDS_EV_ERROR, -ENOMEM);
	} else if (done) {
		return xrds_ib_recv_whole(ep, rmsg);
	}
	return XRDS_WIRE_OK;
}

/* The one buffer that an own receive queue has before the hello */
static void xrds_ib_recv_hello_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct xrds_ib_ep *ep = cq->cq_context;
	struct xrds_ib_rx *rx = &ep->rx;
	enum xrds_wire_err err;
	struct xrds_wire_msg wm;
	bool done;

	if (wc->status != IB_WC_SUCCESS) {
		xrds_ib_recv_failed(ep, wc);
		return;
	}
	if (!xrds_ib_recv_wanted(ep))
		return;
	if (xrds_ib_recv_odd(wc)) {
		xrds_ib_recv_violation(ep, XRDS_WIRE_OPCODE);
		return;
	}

	ib_dma_sync_single_for_cpu(ep->ibdev->dev, rx->hello_dma,
				   rx->hello_bytes, DMA_FROM_DEVICE);
	err = xrds_ib_recv_hdr(ep, &wm, rx->hello_buf, wc->byte_len, &done);
	/* short headers are agreed upon with it, not before */
	if (!err && wc->wc_flags & IB_WC_WITH_IMM && xrds_ib_ep_xrds(ep))
		err = XRDS_WIRE_OPCODE;
	else if (!err && !done)
		err = xrds_ib_recv_first(ep, &wm,
					 wc->byte_len - XRDS_WIRE_HDR_BYTES);
	if (err)
		xrds_ib_recv_violation(ep, err);
}

/* ------------------------------------------------------------- lifetime */

/**
 * xrds_ib_recv_init - make the buffer for the peer's hello
 * @ep: endpoint with a receive queue of its own
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int xrds_ib_recv_init(struct xrds_ib_ep *ep)
{
	struct ib_device *dev = ep->ibdev->dev;
	struct xrds_ib_rx *rx = &ep->rx;
	void *buf;

	rx->hello_bytes = xrds_ib_ep_xrds(ep) ? XRDS_IB_HELLO_BYTES :
						XRDS_IB_FIRST_BYTES;
	buf = kmalloc(rx->hello_bytes, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	rx->hello_dma = ib_dma_map_single(dev, buf, rx->hello_bytes,
					  DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(dev, rx->hello_dma)) {
		kfree(buf);
		return -ENOMEM;
	}
	rx->hello_buf = buf;
	rx->hello_cqe.done = xrds_ib_recv_hello_done;
	return 0;
}

/**
 * xrds_ib_recv_post_hello - post the buffer for the peer's hello
 * @ep: endpoint with a queue pair and a receive queue of its own
 *
 * Context: process, before the peer knows the queue pair.
 * Return: 0 or a negative errno.
 */
int xrds_ib_recv_post_hello(struct xrds_ib_ep *ep)
{
	struct ib_sge sge = {
		.addr	= ep->rx.hello_dma,
		.length	= ep->rx.hello_bytes,
		.lkey	= ep->ibdev->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe	 = &ep->rx.hello_cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	return ib_post_recv(ep->qp, &wr, NULL);
}

/**
 * xrds_ib_recv_free - free incomplete messages and the buffer for the hello
 * @ep: endpoint without queue pair and completion queue
 *
 * Context: process.
 */
void xrds_ib_recv_free(struct xrds_ib_ep *ep)
{
	struct xrds_ib_rx *rx = &ep->rx;

	xrds_ib_recv_drop(ep);
	if (!rx->hello_buf)
		return;
	/* it may be posted, see xrds_ib_sq_keep_memory() */
	if (ep->tx.kept) {
		kmemleak_not_leak(rx->hello_buf);
		return;
	}
	ib_dma_unmap_single(ep->ibdev->dev, rx->hello_dma,
			    rx->hello_bytes, DMA_FROM_DEVICE);
	kfree(rx->hello_buf);
}
