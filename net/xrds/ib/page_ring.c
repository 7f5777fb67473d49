// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages of receive buffers that are used again.
 *
 * The page of a large payload goes to the reader's socket, and its buffer needs
 * another page. New pages are expensive: many kernels clear each of them
 * (init_on_alloc), which costs as much as a copy of the payload. So a receive
 * queue keeps a reference on each page that it has given to a message, in that
 * order. When the oldest page has no other user, it goes to the next buffer;
 * the device writes to it before anything reads it.
 *
 *   posted -> in a message (ring) -> read by a program -> reused -> posted
 *
 * A page in the ring is mostly in use by a message. The ring keeps more memory
 * than that only until it is full, when the oldest reference is dropped, or
 * until no page was added for a while, when all are dropped. ring->lock guards
 * it.
 */
#include "ib/ib.h"

/* All pages are dropped when none was added for so long. */
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
 * xrds_ib_page_ring_keep - keep a reference on a page of a message
 * @ring: pages of a receive queue
 * @page: page; its own reference goes to the message
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
 * xrds_ib_page_ring_reuse - take the oldest page, if it has no other user
 * @ring: pages of a receive queue
 *
 * Context: process.
 * Return: the page with its only reference, or NULL.
 */
struct page *xrds_ib_page_ring_reuse(struct xrds_ib_page_ring *ring)
{
	struct page *page = NULL;

	spin_lock_bh(&ring->lock);
	/* only the ring has the page, so the count cannot rise */
	if (ring->nr && page_ref_count(ring->pages[ring->first]) == 1)
		page = xrds_ib_page_ring_pop(ring);
	spin_unlock_bh(&ring->lock);
	return page;
}

/**
 * xrds_ib_page_ring_init - make an empty ring
 * @ring: pages of a receive queue
 * @most: pages to keep, at most
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
 * xrds_ib_page_ring_exit - drop all pages
 * @ring: pages of a receive queue that has no endpoint any more
 *
 * Context: process.
 */
void xrds_ib_page_ring_exit(struct xrds_ib_page_ring *ring)
{
	cancel_delayed_work_sync(&ring->trim);
	xrds_ib_page_ring_drop(ring);
}
