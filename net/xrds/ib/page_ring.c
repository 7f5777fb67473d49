// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages of receive buffers that went up, and come back.
 *
 * The page of a large payload goes to the reader's socket, and its buffer
 * needs another one. New pages are not cheap: many kernels clear each of them
 * (init_on_alloc), which costs as much as copying the payload would. So a
 * receive queue keeps a reference on what it has lent, in the order of lending.
 * When the oldest has no other user any more, it is taken back for the next
 * buffer; the device writes to it before anybody reads it.
 *
 *   posted -> lent (ring) -> read by a program -> taken back -> posted
 *
 * What is lent is in use by a message anyway. The references keep more than
 * that only until the ring is full, which drops the oldest, or until nothing
 * was lent for a while, which drops all.
 */
#include "ib/ib.h"

/* Without lending for so long the pages are given up. */
#define XRDS_IB_PAGE_RING_IDLE	(HZ / 2)

static struct page *xrds_ib_page_ring_pop(struct xrds_ib_page_ring *ring)
{
	struct page *page = ring->pages[ring->first];

	lockdep_assert_held(&ring->lock);

	ring->first = (ring->first + 1) % XRDS_IB_PAGE_RING;
	ring->nr--;
	return page;
}

static void xrds_ib_page_ring_drop(struct xrds_ib_page_ring *ring)
{
	struct page *page;

	do {
		spin_lock_bh(&ring->lock);
		page = ring->nr ? xrds_ib_page_ring_pop(ring) : NULL;
		spin_unlock_bh(&ring->lock);
		if (page)
			put_page(page);
	} while (page);
}

static void xrds_ib_page_ring_trim(struct work_struct *work)
{
	struct xrds_ib_page_ring *ring =
		container_of(to_delayed_work(work), struct xrds_ib_page_ring,
			     trim);
	unsigned long end = READ_ONCE(ring->at) + XRDS_IB_PAGE_RING_IDLE;

	if (time_before(jiffies, end))
		queue_delayed_work(xrds_ib_wq, &ring->trim, end - jiffies);
	else
		xrds_ib_page_ring_drop(ring);
}

/**
 * xrds_ib_page_ring_keep - keep a reference on a page that goes up
 * @ring: pages of a receive queue
 * @page: page whose own reference goes up
 *
 * Context: completions.
 */
void xrds_ib_page_ring_keep(struct xrds_ib_page_ring *ring, struct page *page)
{
	struct page *oldest = NULL;

	get_page(page);
	spin_lock_bh(&ring->lock);
	if (ring->nr >= ring->most)
		oldest = xrds_ib_page_ring_pop(ring);
	ring->pages[(ring->first + ring->nr++) % XRDS_IB_PAGE_RING] = page;
	WRITE_ONCE(ring->at, jiffies);
	spin_unlock_bh(&ring->lock);

	if (oldest)
		put_page(oldest);
	if (!delayed_work_pending(&ring->trim))
		queue_delayed_work(xrds_ib_wq, &ring->trim,
				   XRDS_IB_PAGE_RING_IDLE);
}

/**
 * xrds_ib_page_ring_reuse - a page that nobody uses any more
 * @ring: pages of a receive queue
 *
 * Context: process.
 * Return: the page with its only reference, or NULL.
 */
struct page *xrds_ib_page_ring_reuse(struct xrds_ib_page_ring *ring)
{
	struct page *page = NULL;

	spin_lock_bh(&ring->lock);
	/* nobody but us can make it more than one again */
	if (ring->nr && page_ref_count(ring->pages[ring->first]) == 1)
		page = xrds_ib_page_ring_pop(ring);
	spin_unlock_bh(&ring->lock);
	return page;
}

/**
 * xrds_ib_page_ring_init - nothing is lent yet
 * @ring: pages of a receive queue
 * @most: how many to keep, at most
 *
 * Context: process.
 */
void xrds_ib_page_ring_init(struct xrds_ib_page_ring *ring, u32 most)
{
	ring->most = min_t(u32, most, XRDS_IB_PAGE_RING);
	spin_lock_init(&ring->lock);
	INIT_DELAYED_WORK(&ring->trim, xrds_ib_page_ring_trim);
}

/**
 * xrds_ib_page_ring_exit - give up what is lent
 * @ring: pages of a receive queue that lends no more
 *
 * Context: process.
 */
void xrds_ib_page_ring_exit(struct xrds_ib_page_ring *ring)
{
	cancel_delayed_work_sync(&ring->trim);
	xrds_ib_page_ring_drop(ring);
}
