// SPDX-License-Identifier: GPL-2.0-only
/*
 * The send queue: send contexts and credits.
 *
 *   taken -> filled (send.c, bundle.c, frag.c, rdma.c) -> posted -> retired
 *
 * Each work request has a send context, with space for a header of its own,
 * from before it is posted until it has completed. Send contexts are taken and
 * retired in order; those that the device did not accept are returned from the
 * end.
 *
 * Signals. Completions come in order, so one retires its send context and all
 * before it. A completion is requested only where something waits for it, see
 * xrds_ib_sq_wants_signal(). A small message is not signalled, because its
 * completion would cost half as much as the message itself: a later completion
 * retires it, or if none follows, that of an empty write which the watch posts.
 * So a completion comes for each posted work request in the end. The reference
 * on a message is dropped with its last fragment, which ends its op, too. A
 * completion with an error, which comes for unsignalled work requests as well,
 * retires nothing: posted send contexts stay until the queue pair is destroyed,
 * as the device may still read them.
 *
 * Corks. A cork is a SEND whose completion is awaited. When some messages are on
 * their way, neither acknowledged nor completed, small ones that come next wait for
 * that of the last one. Then they go together (bundle.c). So a message alone is never
 * delayed, and of many at once each is for about a round trip of the device, and only
 * where that is short (net.xrds.ib.autocork_us). If a packet is lost the core sends
 * them in a moment. As many as make a good SEND do not wait. TCP does the same
 * (tcp_autocorking), and Nagle's algorithm has the rule.
 *
 * Credits. Each SEND but the hello uses one that the peer has granted, and each
 * header grants the credits that are available here. The last credit is kept
 * for a header that grants some: otherwise two sides without credits could both
 * have some to grant and no way to say so.
 *
 * All of it runs under conn->tx_lock.
 */
#include <linux/kmemleak.h>
#include <linux/vmalloc.h>

#include "ib/ib.h"
#include "tracepoints.h"

enum {
	/* a message with no more memory than this may keep it longer */
	XRDS_IB_QUIET_BYTES	= 4096,
	/* time between two measurements of the round trip */
	XRDS_IB_RTT_MS		= 100,
	/* of a longer round trip this fraction of the difference counts */
	XRDS_IB_RTT_WEIGHT	= 8,
	/* messages on their way behind which others wait */
	XRDS_IB_CORK_MSGS	= 4,
	/* with more payload in use a round trip may not be short; some of it may have
	 * arrived, but no completion has said so
	 */
	XRDS_IB_CORK_BUSY_BYTES	= 16384,
	/* a SEND that can take two of those that wait */
	XRDS_IB_CORK_BUNDLE	= 2 * (XRDS_WIRE_HDR_BYTES + XRDS_CORK_BYTES),
};

static u32 xrds_ib_sq_index(const struct xrds_ib_tx *tx,
			    const struct xrds_ib_sctx *sctx)
{
	return sctx - tx->ring;
}

/**
 * xrds_ib_sq_take - take the next send context, for a SEND until it is changed
 * @tx: ring with a free send context
 *
 * Context: any, conn->tx_lock held.
 * Return: the send context.
 */
struct xrds_ib_sctx *xrds_ib_sq_take(struct xrds_ib_tx *tx)
{
	struct xrds_ib_sctx *sctx = &tx->ring[tx->head];

	tx->used++;
	tx->head = tx->head + 1 == tx->nr ? 0 : tx->head + 1;
	sctx->wr.next = NULL;
	sctx->wr.opcode = IB_WR_SEND;
	sctx->wr.send_flags = 0;
	sctx->wr.sg_list = sctx->sge;
	sctx->wr.num_sge = 1;
	sctx->rop = NULL;
	sctx->msg = NULL;
	sctx->bundle = NULL;
	sctx->ctl = -1;
	sctx->tag = 0;
	sctx->bulk = false;
	sctx->bytes = 0;
	return sctx;
}

/* The mapped pieces of payload, and their number */
static const struct ib_sge *xrds_ib_sq_payload(const struct xrds_ib_sctx *sctx,
					       int *nr)
{
	*nr = sctx->wr.num_sge - (sctx->wr.sg_list == sctx->sge);
	return &sctx->sge[1];
}

/**
 * xrds_ib_sq_count - count the payload of a send context
 * @tx: its ring
 * @sctx: send context that is filled
 *
 * Context: any, conn->tx_lock held.
 */
void xrds_ib_sq_count(struct xrds_ib_tx *tx, struct xrds_ib_sctx *sctx)
{
	const struct ib_sge *sge;
	int i, nr;

	sge = xrds_ib_sq_payload(sctx, &nr);
	for (i = 0; i < nr; i++)
		sctx->bytes += sge[i].length;
	tx->busy_bytes += sctx->bytes;
}

/* A send is measured whose completion is requested anyway, while none other is
 * awaited; not each of them, because reading the clock takes time.
 */
static void xrds_ib_sq_rtt_begin(struct xrds_ib_tx *tx,
				 const struct xrds_ib_sctx *sctx)
{
	if (tx->rtt_ns && time_before(jiffies, tx->rtt_next))
		return;
	tx->rtt_sctx = sctx;
	tx->rtt_start = ktime_get_ns();
}

/* Long messages and late completions make a measured round trip longer, nothing
 * makes it shorter: so a shorter one counts at once.
 */
static void xrds_ib_sq_rtt_end(struct xrds_ib_tx *tx)
{
	u64 ns = ktime_get_ns() - tx->rtt_start;

	tx->rtt_sctx = NULL;
	tx->rtt_next = jiffies + msecs_to_jiffies(XRDS_IB_RTT_MS);
	ns = max(ns, 1ULL);
	xrds_ib_window_rtt(&tx->bulk_window, ns);
	if (!tx->rtt_ns || ns < tx->rtt_ns)
		tx->rtt_ns = ns;
	else
		tx->rtt_ns += (ns - tx->rtt_ns) / XRDS_IB_RTT_WEIGHT;
}

static void xrds_ib_sq_bulk_end(struct xrds_ib_tx *tx)
{
	tx->bulk_sctx = NULL;
	xrds_ib_window_end(&tx->bulk_window, ktime_get_ns());
}

/**
 * xrds_ib_sq_signal - request the completion of a send context
 * @ep: endpoint
 * @sctx: send context that is not posted
 *
 * Context: any, conn->tx_lock held.
 */
void xrds_ib_sq_signal(struct xrds_ib_ep *ep, struct xrds_ib_sctx *sctx)
{
	if (sctx->wr.send_flags & IB_SEND_SIGNALED)
		return;
	sctx->wr.send_flags |= IB_SEND_SIGNALED;
	ep->tx.run = 0;
	if (!ep->tx.nr_signaled++) {
		ep->tx.progress = jiffies;
		xrds_ib_sq_rtt_begin(&ep->tx, sctx);
	}
	xrds_ib_count(ep->xin, XRDS_IB_C_TX_SIGNALED);
}

/**
 * xrds_ib_sq_wants_signal - must the completion of a send context be requested?
 * @ep: endpoint
 * @sctx: send context that is filled
 *
 * The completion of an op's message raises the high-water mark. That of a large
 * message frees much memory. When half of the ring is in use, messages may soon
 * wait for send contexts. Toward a legacy peer only completions tell which
 * acknowledgments its device has taken.
 *
 * Context: any, conn->tx_lock held.
 * Return: true if it must.
 */
bool xrds_ib_sq_wants_signal(const struct xrds_ib_ep *ep,
			     const struct xrds_ib_sctx *sctx)
{
	const struct xrds_ib_tx *tx = &ep->tx;

	if (tx->run >= tx->max_run || tx->used > tx->nr / 2)
		return true;
	return sctx->msg && (sctx->msg->rop || !xrds_ib_ep_xrds(ep) ||
			     sctx->msg->len > XRDS_IB_QUIET_BYTES);
}

static bool xrds_ib_sq_corks(const struct xrds_ib_ep *ep)
{
	u64 most_ns = (u64)READ_ONCE(ep->xin->autocork_us) * NSEC_PER_USEC;
	const struct xrds_conn *conn = ep->conn;
	const struct xrds_ib_tx *tx = &ep->tx;
	u64 done = max(READ_ONCE(conn->acked), tx->cork_seq);

	return conn->tx_seq - done >= XRDS_IB_CORK_MSGS &&
	       tx->bundle >= XRDS_IB_CORK_BUNDLE && !tx->nr_bulk && !tx->cursor[1].msg &&
	       tx->busy_bytes <= XRDS_IB_CORK_BUSY_BYTES &&
	       tx->rtt_ns && tx->rtt_ns <= most_ns;
}

/**
 * xrds_ib_sq_cork - let small messages wait for a SEND, if that is worth while
 * @ep: endpoint
 * @sctx: the SEND, which ends one message or more and is not posted
 *
 * Context: any, conn->tx_lock held.
 */
void xrds_ib_sq_cork(struct xrds_ib_ep *ep, struct xrds_ib_sctx *sctx)
{
	struct xrds_ib_tx *tx = &ep->tx;

	lockdep_assert_held(&ep->conn->tx_lock);

	if (tx->cork || !xrds_ib_sq_corks(ep))
		return;
	xrds_ib_sq_signal(ep, sctx);
	tx->cork = sctx;
	tx->cork_seq = ep->conn->tx_seq;
	WRITE_ONCE(ep->conn->tx_corked, true);
	xrds_ib_count(ep->xin, XRDS_IB_C_TX_CORKS);
}

/* The messages that have waited may go. xrds_ib_send_more() follows, or the endpoint
 * ends.
 */
static void xrds_ib_sq_uncork(struct xrds_ib_ep *ep)
{
	ep->tx.cork = NULL;
	if (ep->conn->ep != ep)
		return;
	WRITE_ONCE(ep->conn->tx_corked, false);
	ep->tx.blocked = true;
}

static void xrds_ib_sq_unmap_frag(struct xrds_ib_ep *ep,
				  const struct xrds_ib_sctx *sctx)
{
	const struct ib_sge *sge;
	int i, nr;

	sge = xrds_ib_sq_payload(sctx, &nr);
	for (i = 0; i < nr; i++)
		ib_dma_unmap_page(ep->ibdev->dev, sge[i].addr, sge[i].length,
				  DMA_TO_DEVICE);
}

static void xrds_ib_sq_free_bundle(struct xrds_ib_ep *ep,
				   struct xrds_ib_sctx *sctx)
{
	ib_dma_unmap_single(ep->ibdev->dev, sctx->sge[1].addr,
			    XRDS_WIRE_MAX_BUNDLE_BYTES, DMA_TO_DEVICE);
	kfree(sctx->bundle);
	sctx->bundle = NULL;
}

/* End the mappings of a send context, and free what belongs to it alone. */
static void xrds_ib_sq_free_memory(struct xrds_ib_ep *ep,
				   struct xrds_ib_sctx *sctx)
{
	if (ep->tx.kept)
		return;
	if (sctx->rop)
		xrds_ib_rdma_op_unmap(ep, sctx);
	else if (sctx->bundle)
		xrds_ib_sq_free_bundle(ep, sctx);
	else
		xrds_ib_sq_unmap_frag(ep, sctx);
}

/* Free everything in a send context but a message that ends there. */
static void xrds_ib_sq_release(struct xrds_ib_ep *ep, struct xrds_ib_sctx *sctx)
{
	xrds_ib_sq_free_memory(ep, sctx);
	if (sctx->ctl >= 0)
		ep->tx.ctl_used &= ~BIT(sctx->ctl);
	if (sctx->wr.send_flags & IB_SEND_SIGNALED)
		ep->tx.nr_signaled--;
	if (sctx->wr.send_flags & IB_SEND_FENCE)
		ep->tx.nr_fenced--;
	ep->tx.nr_bulk -= sctx->bulk;
	ep->tx.busy_bytes -= sctx->bytes;
	ep->tx.used--;
}

/* The device has finished with a message. */
static void xrds_ib_sq_msg_done(struct xrds_msg *msg, struct list_head *ended)
{
	trace_xrds_msg_done(msg);
	if (msg->rop)
		xrds_ib_rdma_op_collect(msg, ended);
	else
		xrds_msg_put(msg);
}

/**
 * xrds_ib_sq_retire - a send context has completed, and all before it
 * @ep: endpoint
 * @until: send context
 * @ended: gets the messages whose ops have ended, see xrds_ib_rdma_end_ops()
 *
 * Context: any, conn->tx_lock held.
 */
void xrds_ib_sq_retire(struct xrds_ib_ep *ep,
		       const struct xrds_ib_sctx *until,
		       struct list_head *ended)
{
	struct xrds_ib_tx *tx = &ep->tx;
	u32 n = (xrds_ib_sq_index(tx, until) + tx->nr - tx->tail) % tx->nr + 1;
	struct xrds_ib_sctx *sctx;

	lockdep_assert_held(&ep->conn->tx_lock);

	/* a later completion has retired this one already */
	if (n > tx->used)
		return;
	tx->progress = jiffies;
	if (tx->rtt_sctx == until)
		xrds_ib_sq_rtt_end(tx);
	while (n--) {
		sctx = &tx->ring[tx->tail];
		tx->tail = tx->tail + 1 == tx->nr ? 0 : tx->tail + 1;
		tx->retired++;
		tx->bulk_window.done += sctx->bulk;
		if (sctx == tx->bulk_sctx)
			xrds_ib_sq_bulk_end(tx);
		if (sctx == tx->cork)
			xrds_ib_sq_uncork(ep);
		xrds_ib_sq_release(ep, sctx);
		if (sctx->msg)
			xrds_ib_sq_msg_done(sctx->msg, ended);
	}
}

/**
 * xrds_ib_sq_untake - return a send context, and all behind it, unposted
 * @ep: endpoint
 * @from: send context
 *
 * Context: any, conn->tx_lock held.
 */
void xrds_ib_sq_untake(struct xrds_ib_ep *ep, struct xrds_ib_sctx *from)
{
	struct xrds_ib_tx *tx = &ep->tx;
	struct xrds_ib_sctx *sctx;

	do {
		tx->head = (tx->head ?: tx->nr) - 1;
		sctx = &tx->ring[tx->head];
		if (sctx == tx->bulk_sctx)
			tx->bulk_sctx = NULL;
		if (sctx == tx->cork)
			xrds_ib_sq_uncork(ep);
		xrds_ib_sq_release(ep, sctx);
		/* its earlier fragments may be in progress: keep it until then
		 */
		if (sctx->msg)
			tx->cursor[sctx->tag].msg = sctx->msg;
	} while (sctx != from);
}

/**
 * xrds_ib_sq_post - hand a chain of send contexts to the device
 * @ep: endpoint
 * @first: the first; the last is the last one taken
 *
 * Context: any, conn->tx_lock held.
 * Return: 0, or a negative errno but -EAGAIN and -EBUSY: the endpoint is broken.
 */
int xrds_ib_sq_post(struct xrds_ib_ep *ep, struct xrds_ib_sctx *first)
{
	const struct ib_send_wr *bad = &first->wr;
	int ret;

	ret = ib_post_send(ep->qp, &first->wr, &bad);
	if (ret) {
		xrds_ib_count(ep->xin, XRDS_IB_C_TX_POST_ERROR);
		ep->tx.broken = true;
		xrds_ib_sq_untake(ep, container_of(bad, struct xrds_ib_sctx,
						   wr));
		/* these two tell callers that nothing is broken */
		if (ret == -EAGAIN || ret == -EBUSY)
			ret = -EIO;
	}
	if (!delayed_work_pending(&ep->watch))
		queue_delayed_work(xrds_ib_wq, &ep->watch,
				   msecs_to_jiffies(XRDS_IB_WATCH_MS));
	return ret;
}

/**
 * xrds_ib_sq_hdr - the memory for the header of a send context
 * @ep: endpoint
 * @sctx: send context
 * @offset: result: the same for xrds_ib_sq_sync()
 *
 * Context: any, conn->tx_lock held.
 * Return: tx->slot_bytes for a header and little payload, or space for a control
 * message if it has a buffer.
 */
void *xrds_ib_sq_hdr(struct xrds_ib_ep *ep, struct xrds_ib_sctx *sctx,
		     u32 *offset)
{
	struct xrds_ib_tx *tx = &ep->tx;

	*offset = sctx->ctl >= 0 ?
		  tx->nr * tx->slot_bytes + sctx->ctl * XRDS_IB_CTL_BYTES :
		  xrds_ib_sq_index(tx, sctx) * tx->slot_bytes;
	return tx->hdrs + *offset;
}

/**
 * xrds_ib_sq_sync - let the device see a header that is written
 * @ep: endpoint
 * @sctx: send context
 * @offset: from xrds_ib_sq_hdr()
 * @bytes: length
 *
 * Context: any, conn->tx_lock held.
 */
void xrds_ib_sq_sync(struct xrds_ib_ep *ep, struct xrds_ib_sctx *sctx,
		     u32 offset, u32 bytes)
{
	sctx->sge[0].addr = ep->tx.hdrs_dma + offset;
	sctx->sge[0].length = bytes;
	sctx->sge[0].lkey = ep->ibdev->pd->local_dma_lkey;
	ib_dma_sync_single_for_device(ep->ibdev->dev, sctx->sge[0].addr, bytes,
				      DMA_TO_DEVICE);
}

/* -------------------------------------------------------------- credits */

/**
 * xrds_ib_sq_grantable - credits that can be granted now
 * @ep: endpoint
 *
 * Context: any, conn->tx_lock held.
 * Return: how many.
 */
u32 xrds_ib_sq_grantable(struct xrds_ib_ep *ep)
{
	u32 outstanding = ep->tx.granted - READ_ONCE(ep->rx.received);
	u32 avail = xrds_ib_share_avail(ep->rq, READ_ONCE(ep->tx.share));

	return avail > outstanding ? avail - outstanding : 0;
}

/**
 * xrds_ib_sq_can_send - is there a send context and a credit for one more SEND?
 * @ep: endpoint
 * @grant: credits that it grants
 *
 * Context: any, conn->tx_lock held.
 * Return: true if there is.
 */
bool xrds_ib_sq_can_send(struct xrds_ib_ep *ep, u32 grant)
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

/**
 * xrds_ib_sq_spend - use one credit, grant as many as one header can
 * @ep: endpoint
 * @grant: in: credits available; out: credits left after this header
 * @most: upper limit for this kind of header
 *
 * Context: any, conn->tx_lock held.
 * Return: the credits for the header.
 */
u8 xrds_ib_sq_spend(struct xrds_ib_ep *ep, u32 *grant, u32 most)
{
	u32 n = min(*grant, most);

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

/* ------------------------------------------------------------- lifetime */

/* The ring itself, and the limits of its use */
static int xrds_ib_sq_alloc(struct xrds_ib_ep *ep)
{
	struct xrds_ib_net *xin = ep->xin;
	const struct ib_device_attr *attrs = &ep->ibdev->dev->attrs;
	u32 op_sge = ib_uses_virt_dma(ep->ibdev->dev) ? XRDS_IB_SOFT_OP_SGE :
							XRDS_IB_OP_SGE;
	struct xrds_ib_tx *tx = &ep->tx;

	tx->nr = min_t(u32, READ_ONCE(xin->max_send_wr),
		       attrs->max_qp_wr - XRDS_IB_EXTRA_SEND_WR);
	if (!READ_ONCE(ep->conn->no_flush))
		tx->max_run = min_t(u32, READ_ONCE(xin->max_unsignaled_wr),
				    tx->nr / 2);
	xrds_ib_window_init(&tx->bulk_window, 2 * tx->nr / 3);
	tx->sge = min_t(u32, XRDS_IB_SGE, attrs->max_send_sge);
	tx->op_sge = min_t(u32, op_sge, attrs->max_send_sge);
	tx->read_sge = min_t(u32, tx->op_sge, max(attrs->max_sge_rd, 1));
	/* whole pages: kmalloc() would take the next power of two */
	tx->ring = vcalloc(tx->nr, sizeof(*tx->ring));
	return tx->ring ? 0 : -ENOMEM;
}

/* Headers of send contexts, and control buffers, mapped once */
static bool xrds_ib_sq_alloc_slots(struct xrds_ib_ep *ep, u16 bytes, gfp_t effort)
{
	struct ib_device *dev = ep->ibdev->dev;
	struct xrds_ib_tx *tx = &ep->tx;

	tx->slot_bytes = bytes;
	tx->hdrs_bytes = tx->nr * bytes + XRDS_IB_CTL_BUFS * XRDS_IB_CTL_BYTES;
	tx->hdrs = alloc_pages_exact(tx->hdrs_bytes,
				     GFP_KERNEL | __GFP_ZERO | effort);
	if (!tx->hdrs)
		return false;
	tx->hdrs_dma = ib_dma_map_single(dev, tx->hdrs, tx->hdrs_bytes,
					 DMA_TO_DEVICE);
	if (!ib_dma_mapping_error(dev, tx->hdrs_dma))
		return true;
	free_pages_exact(tx->hdrs, tx->hdrs_bytes);
	tx->hdrs = NULL;
	return false;
}

/* Small pages have no room for payload, and a bounce buffer may have none. */
static int xrds_ib_sq_alloc_hdrs(struct xrds_ib_ep *ep)
{
	return xrds_ib_sq_alloc_slots(ep, XRDS_IB_SLOT_BYTES,
				      __GFP_NORETRY | __GFP_NOWARN) ||
	       xrds_ib_sq_alloc_slots(ep, XRDS_WIRE_HDR_BYTES, 0) ? 0 : -ENOMEM;
}

/**
 * xrds_ib_sq_init - make the ring of an endpoint
 * @ep: endpoint whose device is known
 * @done: completion of each send context
 *
 * Context: process.
 * Return: 0 or -ENOMEM; xrds_ib_sq_free() undoes it in either case.
 */
int xrds_ib_sq_init(struct xrds_ib_ep *ep,
		    void (*done)(struct ib_cq *cq, struct ib_wc *wc))
{
	struct xrds_ib_tx *tx = &ep->tx;
	u32 i;
	int ret;

	ret = xrds_ib_sq_alloc(ep);
	if (!ret)
		ret = xrds_ib_sq_alloc_hdrs(ep);
	if (ret)
		return ret;

	for (i = 0; i < tx->nr; i++) {
		struct xrds_ib_sctx *sctx = &tx->ring[i];

		sctx->cqe.done = done;
		sctx->wr.wr_cqe = &sctx->cqe;
	}
	return 0;
}

static void xrds_ib_sq_keep_pin(const struct xrds_pin *pin)
{
	u32 i;

	/* none if the op has ended, and the peer has refused the message */
	for (i = 0; pin && i < pin->nr_pages; i++)
		get_page(pin->pages[i]);
}

/* A message with a reference of its own would keep its socket, and with that the
 * namespace and the modules: it ends as always, and only its memory stays.
 */
static void xrds_ib_sq_keep_msg(struct xrds_msg *msg)
{
	msg->kept = true;
	kmemleak_not_leak(msg);
	xrds_ib_sq_keep_pin(msg->rop ? msg->rop->pin : NULL);
	xrds_ib_sq_keep_pin(msg->zcopy ? msg->zcopy->pin : NULL);
}

/* Of a connection that has ended */
static void xrds_ib_sq_done_late(struct ib_cq *cq, struct ib_wc *wc)
{
}

/**
 * xrds_ib_sq_keep_memory - keep all that is posted for good
 * @ep: dead endpoint whose queue pair may still use it
 *
 * Messages and ops end as always, but none of their memory becomes anybody
 * else's, and no mapping for the device ends.
 *
 * Context: process.
 */
void xrds_ib_sq_keep_memory(struct xrds_ib_ep *ep)
{
	struct xrds_ib_tx *tx = &ep->tx;
	u32 n, i, tag;

	spin_lock_bh(&ep->conn->tx_lock);
	tx->kept = true;
	for (i = 0; i < tx->nr; i++)
		tx->ring[i].cqe.done = xrds_ib_sq_done_late;
	tx->nudge_cqe.done = xrds_ib_sq_done_late;
	for (n = 0, i = tx->tail; n < tx->used; n++) {
		if (tx->ring[i].msg)
			xrds_ib_sq_keep_msg(tx->ring[i].msg);
		i = i + 1 == tx->nr ? 0 : i + 1;
	}
	for (tag = 0; tag < XRDS_IB_TAGS; tag++)
		if (tx->cursor[tag].msg)
			xrds_ib_sq_keep_msg(tx->cursor[tag].msg);
	spin_unlock_bh(&ep->conn->tx_lock);
}

/**
 * xrds_ib_sq_free - free the ring of an endpoint, and end the messages in it
 * @ep: endpoint without queue pair and completion queue
 *
 * Context: process.
 */
void xrds_ib_sq_free(struct xrds_ib_ep *ep)
{
	struct xrds_ib_tx *tx = &ep->tx;
	LIST_HEAD(ended);
	u32 last, tag;

	/* they were sent without signal, or not done when the queue pair ended
	 */
	spin_lock_bh(&ep->conn->tx_lock);
	last = (tx->head ?: tx->nr) - 1;
	if (tx->used)
		xrds_ib_sq_retire(ep, &tx->ring[last], &ended);
	for (tag = 0; tag < XRDS_IB_TAGS; tag++)
		if (tx->cursor[tag].msg)
			xrds_ib_sq_msg_done(tx->cursor[tag].msg, &ended);
	spin_unlock_bh(&ep->conn->tx_lock);
	xrds_ib_rdma_end_ops(&ended, RDS_RDMA_DROPPED);

	if (tx->hdrs && !tx->kept) {
		ib_dma_unmap_single(ep->ibdev->dev, tx->hdrs_dma,
				    tx->hdrs_bytes, DMA_TO_DEVICE);
		free_pages_exact(tx->hdrs, tx->hdrs_bytes);
	}
	/* completions may still come, see stuck.c */
	if (!tx->kept)
		vfree(tx->ring);
}
