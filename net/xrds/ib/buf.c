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
 * The page is a large one. In fragmented memory there may be none: then the
 * buffer has several small pages, and the device fills them one after the other.
 * The header, and all that is parsed, is in the first one. No page is worth the
 * OOM killer: without memory for it the refill tries again a little later.
 *
 * rq->lock guards the lists and their lengths.
 */
#include <linux/moduleparam.h>

#include "ib/ib.h"

static unsigned int xrds_ib_frag_kib = 32;
module_param_named(frag_kib, xrds_ib_frag_kib, uint, 0444);
MODULE_PARM_DESC(frag_kib, "KiB of receive buffers and so of fragments: 16, 32 or 64, rounded up (default 32)");

enum {
	/* receive work requests of one call to the device */
	XRDS_IB_POST_BATCH	= 16,
	XRDS_IB_MIN_SPARE	= 8,
	XRDS_IB_MAX_SPARE	= 64,
	XRDS_IB_MAX_READY	= XRDS_IB_MAX_SPARE + XRDS_IB_POST_BATCH,
	/* delay after a refill that found no memory */
	XRDS_IB_RETRY_MS	= 100,
};

/* The refill tries again: nobody is killed for its memory. */
#define XRDS_IB_BUF_GFP	(GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL)

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

/* --------------------------------------------------------------- memory */

static void xrds_ib_buf_unmap(struct xrds_ib_buf *buf)
{
	struct ib_device *dev = buf->rq->ibdev->dev;
	int i;

	for (i = 0; i < buf->wr.num_sge; i++)
		ib_dma_unmap_page(dev, buf->sge[i].addr, buf->sge[i].length,
				  DMA_FROM_DEVICE);
	buf->wr.num_sge = 0;
}

static void xrds_ib_buf_free_pages(struct xrds_ib_buf *buf)
{
	int i, nr = buf->wr.num_sge;

	xrds_ib_buf_unmap(buf);
	for (i = 0; i < nr; i++)
		put_page(buf->page[i]);
}

/**
 * xrds_ib_buf_give - give the pages of a buffer to a message
 * @buf: buffer that has completed; it has no pages afterwards
 * @skb: message, with place for as many fragments as the buffer has pages
 * @at: where the payload begins, bytes; in the first page
 * @len: length of the payload, bytes
 *
 * Context: completions.
 */
void xrds_ib_buf_give(struct xrds_ib_buf *buf, struct sk_buff *skb, u32 at,
		      u32 len)
{
	int i, nr = buf->wr.num_sge;

	xrds_ib_buf_unmap(buf);
	if (nr == 1)
		xrds_ib_page_ring_keep(&buf->rq->page_ring, buf->page[0]);
	for (i = 0; i < nr; i++) {
		u32 bytes = buf->sge[i].length;
		u32 part = min(len, bytes - at);

		if (part)
			skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags,
					buf->page[i], at, part,
					max_t(u32, bytes, PAGE_SIZE));
		else
			put_page(buf->page[i]);
		len -= part;
		at = 0;
	}
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

	/* Pairs with the barrier in xrds_ib_share_avail(): either that sees the
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
	u32 i;

	buf = kzalloc(sizeof(*buf), XRDS_IB_BUF_GFP);
	if (!buf)
		return NULL;
	buf->rq = rq;
	buf->cqe.done = rq->ops->done;
	buf->wr.wr_cqe = &buf->cqe;
	buf->wr.sg_list = buf->sge;
	for (i = 0; i < ARRAY_SIZE(buf->sge); i++)
		buf->sge[i].lkey = rq->ibdev->pd->local_dma_lkey;

	spin_lock_bh(&rq->lock);
	list_add_tail(&buf->all_entry, &rq->bufs);
	spin_unlock_bh(&rq->lock);
	return buf;
}

/* Add a page to a buffer; frees it if it cannot be mapped. */
static bool xrds_ib_buf_add(struct xrds_ib_buf *buf, struct page *page,
			    u32 bytes)
{
	struct ib_device *dev = buf->rq->ibdev->dev;
	u32 n = buf->wr.num_sge;
	u64 dma;

	dma = ib_dma_map_page(dev, page, 0, bytes, DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(dev, dma)) {
		put_page(page);
		return false;
	}
	buf->page[n] = page;
	buf->sge[n].addr = dma;
	buf->sge[n].length = bytes;
	buf->wr.num_sge++;
	return true;
}

/* Give a buffer new pages of an order, as many as it needs. */
static bool xrds_ib_buf_add_new(struct xrds_ib_buf *buf, unsigned int order,
				gfp_t effort)
{
	gfp_t gfp = GFP_KERNEL | __GFP_COMP | __GFP_NOWARN | effort;
	struct xrds_ib_rq *rq = buf->rq;
	u32 bytes = min_t(u32, rq->buf_bytes, PAGE_SIZE << order);
	int node = ibdev_to_node(rq->ibdev->dev);
	struct page *page;
	u32 had;

	for (had = 0; had < rq->buf_bytes; had += bytes) {
		page = alloc_pages_node(node, gfp, order);
		if (!page || !xrds_ib_buf_add(buf, page, bytes)) {
			xrds_ib_buf_free_pages(buf);
			return false;
		}
	}
	return true;
}

/* Give a buffer memory: a page of an earlier message, or a new one, or several
 * small ones.
 */
static bool xrds_ib_buf_add_pages(struct xrds_ib_buf *buf)
{
	struct xrds_ib_rq *rq = buf->rq;
	struct page *page = xrds_ib_page_ring_reuse(&rq->page_ring);

	if (page)
		return xrds_ib_buf_add(buf, page, rq->buf_bytes);
	if (rq->order > rq->small_order) {
		if (xrds_ib_buf_add_new(buf, rq->order, __GFP_NORETRY))
			return true;
		xrds_ib_rq_count(XRDS_IB_C_RQ_SMALL_PAGES);
	}
	return xrds_ib_buf_add_new(buf, rq->small_order, __GFP_RETRY_MAYFAIL);
}

/* Give a buffer pages and an skb, if they are missing. */
static bool xrds_ib_buf_equip(struct xrds_ib_buf *buf)
{
	if (!buf->skb)
		buf->skb = xrds_msg_alloc_skb(0, XRDS_IB_BUF_GFP);
	if (!buf->skb)
		return false;
	return buf->wr.num_sge || xrds_ib_buf_add_pages(buf);
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
	filled = xrds_ib_buf_equip(buf);

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
 * xrds_ib_buf_return - take back a buffer that has completed
 * @rq: receive queue
 * @buf: buffer, with or without its pages
 *
 * Posts it again, or another one in its place, or has it refilled.
 *
 * Context: completions.
 */
void xrds_ib_buf_return(struct xrds_ib_rq *rq, struct xrds_ib_buf *buf)
{
	bool post, refill;
	u32 have, want;

	spin_lock_bh(&rq->lock);
	WRITE_ONCE(rq->nr_posted, rq->nr_posted - 1);
	want = xrds_ib_buf_want(rq);
	have = rq->nr_posted + rq->nr_ready;
	/* there are fewer users than before */
	if (have >= want + XRDS_IB_POST_BATCH)
		xrds_ib_buf_free_pages(buf);
	if (buf->wr.num_sge && buf->skb) {
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
		xrds_ib_buf_free_pages(buf);
		kfree_skb(buf->skb);
		kfree(buf);
	}
}
