// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receive buffers.
 *
 *   empty --fill--> ready --post--> posted --completion--> ready or empty
 *
 * A buffer is a page, mapped for the device, and an skb without data. A small
 * payload is copied out of the page, and the buffer is ready again at once. The
 * page of a large payload goes to the message in the skb, which was allocated
 * in advance so that this cannot fail; the buffer is then empty until the
 * refill has given it another page and skb. So a completion allocates nothing.
 * The queue has some more ready buffers than it posts, so that a completion
 * need not wait for the refill.
 *
 * rq->lock guards the lists and their lengths.
 */
#include <linux/moduleparam.h>

#include "ib/ib.h"

static unsigned int xrds_ib_frag_kib = 32;
module_param_named(frag_kib, xrds_ib_frag_kib, uint, 0444);
MODULE_PARM_DESC(frag_kib, "Size of receive buffers and so of fragments, 16 to 64 KiB (default 32)");

enum {
	/* receive work requests of one call to the device */
	XRDS_IB_POST_BATCH	= 16,
	/* post when so many are missing: each call costs the device a lock */
	XRDS_IB_POST_DEFICIT	= 8,
	XRDS_IB_MIN_SPARE	= 8,
	XRDS_IB_MAX_SPARE	= 64,
	XRDS_IB_MAX_READY	= XRDS_IB_MAX_SPARE + XRDS_IB_POST_BATCH,
	/* delay after a refill that found no memory */
	XRDS_IB_RETRY_MS	= 100,
};

/**
 * xrds_ib_buf_bytes - size of receive buffers
 *
 * Context: any.
 * Return: bytes.
 */
u32 xrds_ib_buf_bytes(void)
{
	u32 kib = clamp_t(u32, xrds_ib_frag_kib,
			  XRDS_WIRE_MIN_FRAG_BYTES >> 10,
			  XRDS_WIRE_MAX_FRAG_BYTES >> 10);

	return roundup_pow_of_two(kib) << 10;
}

/* Wanted number of posted and ready buffers together */
static u32 xrds_ib_buf_want(const struct xrds_ib_rq *rq)
{
	return rq->target + clamp_t(u32, rq->target / 4, XRDS_IB_MIN_SPARE,
				    XRDS_IB_MAX_SPARE);
}

/* -------------------------------------------------------------- posting */

/* Chain ready buffers, at most a batch of them; counts them as posted. */
static struct ib_recv_wr *xrds_ib_buf_take_ready(struct xrds_ib_rq *rq,
						 u32 *nr)
{
	struct ib_recv_wr *first = NULL, **link = &first;
	struct xrds_ib_buf *buf;
	u32 n = 0;

	spin_lock_bh(&rq->lock);
	while (n < XRDS_IB_POST_BATCH && rq->nr_ready && !rq->stopped &&
	       rq->nr_posted + n < rq->target) {
		buf = list_first_entry(&rq->ready, struct xrds_ib_buf, entry);
		list_del_init(&buf->entry);
		rq->nr_ready--;
		*link = &buf->wr;
		link = (struct ib_recv_wr **)&buf->wr.next;
		n++;
	}
	*link = NULL;
	WRITE_ONCE(rq->nr_posted, rq->nr_posted + n);
	spin_unlock_bh(&rq->lock);

	*nr = n;
	return first;
}

/* The device did not take these buffers: make them ready again. Perhaps no
 * completion follows that would post them, so the refill does it; a refill that
 * was cancelled finds @stopped set here.
 */
static void xrds_ib_buf_untake(struct xrds_ib_rq *rq,
			       const struct ib_recv_wr *wr)
{
	struct xrds_ib_buf *buf;

	spin_lock_bh(&rq->lock);
	if (!rq->stopped)
		xrds_ib_rq_kick_refill(rq, XRDS_IB_RETRY_MS);
	for (; wr; wr = wr->next) {
		buf = container_of(wr, struct xrds_ib_buf, wr);
		list_add(&buf->entry, &rq->ready);
		rq->nr_ready++;
		WRITE_ONCE(rq->nr_posted, rq->nr_posted - 1);
	}
	spin_unlock_bh(&rq->lock);
}

static void xrds_ib_buf_post(struct xrds_ib_rq *rq)
{
	const struct ib_recv_wr *bad;
	struct ib_recv_wr *first;
	int ret;
	u32 n;

	do {
		first = xrds_ib_buf_take_ready(rq, &n);
		if (!first)
			break;
		/* from here on posted buffers may complete and return */
		bad = first;
		ret = rq->srq ? ib_post_srq_recv(rq->srq, first, &bad) :
				ib_post_recv(rq->qp, first, &bad);
		if (ret) {
			xrds_ib_rq_count(XRDS_IB_C_RQ_POST_ERROR);
			xrds_ib_buf_untake(rq, bad);
			break;
		}
	} while (n == XRDS_IB_POST_BATCH);

	/* Pairs with the barrier in xrds_ib_rq_avail(): either that sees the
	 * posted buffers, or this side sees that it withheld credits because
	 * there were none.
	 */
	smp_mb();
	if (READ_ONCE(rq->withheld))
		xrds_ib_rq_kick_refill(rq, 0);
}

/* ------------------------------------------------------------ refilling */

static struct xrds_ib_buf *xrds_ib_buf_new(struct xrds_ib_rq *rq)
{
	struct xrds_ib_buf *buf;

	buf = kzalloc(sizeof(*buf), GFP_KERNEL);
	if (!buf)
		return NULL;
	buf->rq = rq;
	buf->cqe.done = rq->ops->done;
	buf->wr.wr_cqe = &buf->cqe;
	buf->wr.sg_list = &buf->sge;
	buf->wr.num_sge = 1;
	buf->sge.length = rq->buf_bytes;
	buf->sge.lkey = rq->ibdev->pd->local_dma_lkey;

	spin_lock_bh(&rq->lock);
	list_add_tail(&buf->all_entry, &rq->bufs);
	spin_unlock_bh(&rq->lock);
	return buf;
}

/* Give a buffer a page and an skb, if they are missing. */
static bool xrds_ib_buf_equip(struct xrds_ib_rq *rq, struct xrds_ib_buf *buf)
{
	struct ib_device *dev = rq->ibdev->dev;
	struct page *page;
	u64 dma;

	if (!buf->skb)
		buf->skb = xrds_skb_alloc(0, GFP_KERNEL | __GFP_NOWARN);
	if (!buf->skb)
		return false;
	if (buf->page)
		return true;

	page = xrds_ib_page_ring_reuse(&rq->page_ring);
	if (!page)
		page = alloc_pages_node(ibdev_to_node(dev),
					GFP_KERNEL | __GFP_COMP | __GFP_NOWARN,
					rq->order);
	if (!page)
		return false;
	dma = ib_dma_map_page(dev, page, 0, rq->buf_bytes, DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(dev, dma)) {
		__free_pages(page, rq->order);
		return false;
	}
	buf->page = page;
	buf->dma = dma;
	buf->sge.addr = dma;
	return true;
}

/* An empty buffer to fill; false when there are enough. */
static bool xrds_ib_buf_wanted(struct xrds_ib_rq *rq, struct xrds_ib_buf **buf)
{
	bool lacks;

	*buf = NULL;
	spin_lock_bh(&rq->lock);
	/* when the device refuses buffers, many ready ones are of no use */
	lacks = !rq->stopped && rq->nr_ready < XRDS_IB_MAX_READY &&
		rq->nr_posted + rq->nr_ready < xrds_ib_buf_want(rq);
	if (lacks) {
		*buf = list_first_entry_or_null(&rq->empty, struct xrds_ib_buf,
						entry);
		if (*buf)
			list_del_init(&(*buf)->entry);
	}
	spin_unlock_bh(&rq->lock);
	return lacks;
}

static bool xrds_ib_buf_fill_one(struct xrds_ib_rq *rq,
				 struct xrds_ib_buf *buf)
{
	bool filled;

	if (!buf)
		buf = xrds_ib_buf_new(rq);
	if (!buf)
		return false;
	filled = xrds_ib_buf_equip(rq, buf);

	spin_lock_bh(&rq->lock);
	if (filled) {
		list_add_tail(&buf->entry, &rq->ready);
		rq->nr_ready++;
	} else {
		list_add(&buf->entry, &rq->empty);
	}
	spin_unlock_bh(&rq->lock);
	return filled;
}

/**
 * xrds_ib_buf_fill - make buffers ready and post them, up to the target
 * @rq: receive queue
 *
 * Context: process, may sleep.
 */
void xrds_ib_buf_fill(struct xrds_ib_rq *rq)
{
	struct xrds_ib_buf *buf;
	bool filled = true;
	u32 n = 0;

	while (xrds_ib_buf_wanted(rq, &buf)) {
		filled = xrds_ib_buf_fill_one(rq, buf);
		if (!filled)
			break;
		if (++n % XRDS_IB_POST_BATCH == 0)
			xrds_ib_buf_post(rq);
	}
	xrds_ib_buf_post(rq);
	if (filled)
		return;
	xrds_ib_rq_count(XRDS_IB_C_RQ_NO_MEM);
	xrds_ib_rq_kick_refill(rq, XRDS_IB_RETRY_MS);
}

/**
 * xrds_ib_buf_unmap - take the page from a buffer
 * @rq: receive queue
 * @buf: buffer that the device has completed
 *
 * Context: any.
 * Return: the page, with its reference.
 */
struct page *xrds_ib_buf_unmap(struct xrds_ib_rq *rq, struct xrds_ib_buf *buf)
{
	struct page *page = buf->page;

	ib_dma_unmap_page(rq->ibdev->dev, buf->dma, rq->buf_bytes,
			  DMA_FROM_DEVICE);
	buf->page = NULL;
	return page;
}

/**
 * xrds_ib_buf_return - take back a buffer that has completed
 * @rq: receive queue
 * @buf: buffer, with or without its page
 *
 * Posts it again, or another one in its place, or has it refilled.
 *
 * Context: completions.
 */
void xrds_ib_buf_return(struct xrds_ib_rq *rq, struct xrds_ib_buf *buf)
{
	struct page *surplus = NULL;
	bool post, refill;
	u32 have, want;

	spin_lock_bh(&rq->lock);
	WRITE_ONCE(rq->nr_posted, rq->nr_posted - 1);
	want = xrds_ib_buf_want(rq);
	have = rq->nr_posted + rq->nr_ready;
	/* there are fewer users than before */
	if (buf->page && have >= want + XRDS_IB_POST_BATCH)
		surplus = xrds_ib_buf_unmap(rq, buf);
	if (buf->page && buf->skb) {
		list_add(&buf->entry, &rq->ready);
		rq->nr_ready++;
		have++;
	} else {
		list_add(&buf->entry, &rq->empty);
	}
	post = rq->nr_ready && !rq->stopped &&
	       (rq->nr_posted + XRDS_IB_POST_DEFICIT <= rq->target ||
		rq->nr_posted <= rq->target / 4);
	refill = !rq->stopped && have + max(want / 8, 4U) <= want;
	spin_unlock_bh(&rq->lock);

	if (surplus)
		__free_pages(surplus, rq->order);
	if (post) {
		xrds_ib_rq_count(XRDS_IB_C_RQ_REPOST);
		xrds_ib_buf_post(rq);
	}
	if (refill)
		xrds_ib_rq_kick_refill(rq, 0);
}

/**
 * xrds_ib_buf_free_all - free the buffers of a queue
 * @rq: receive queue whose buffers the device has given up
 *
 * Context: process.
 */
void xrds_ib_buf_free_all(struct xrds_ib_rq *rq)
{
	struct xrds_ib_buf *buf, *tmp;

	list_for_each_entry_safe(buf, tmp, &rq->bufs, all_entry) {
		if (buf->page)
			__free_pages(xrds_ib_buf_unmap(rq, buf), rq->order);
		kfree_skb(buf->skb);
		kfree(buf);
	}
}
