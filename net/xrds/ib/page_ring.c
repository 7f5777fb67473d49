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
#define XRDS_IB_LEND_IDLE	(HZ / 2)

static struct page *xrds_ib_lent_pop(struct xrds_ib_lent *lent)
{
	struct page *page = lent->ring[lent->first];

	lockdep_assert_held(&lent->lock);

	lent->first = (lent->first + 1) % XRDS_IB_LENT;
	lent->nr--;
	return page;
}

static void xrds_ib_lent_drop(struct xrds_ib_lent *lent)
{
	struct page *page;

	do {
		spin_lock_bh(&lent->lock);
		page = lent->nr ? xrds_ib_lent_pop(lent) : NULL;
		spin_unlock_bh(&lent->lock);
		if (page)
			put_page(page);
	} while (page);
}

static void xrds_ib_lent_trim(struct work_struct *work)
{
	struct xrds_ib_lent *lent = container_of(to_delayed_work(work),
						 struct xrds_ib_lent, trim);
	unsigned long end = READ_ONCE(lent->at) + XRDS_IB_LEND_IDLE;

	if (time_before(jiffies, end))
		queue_delayed_work(xrds_ib_wq, &lent->trim, end - jiffies);
	else
		xrds_ib_lent_drop(lent);
}

/**
 * xrds_ib_lend - keep a reference on a page that goes up
 * @lent: pages of a receive queue
 * @page: page whose own reference goes up
 *
 * Context: completions.
 */
void xrds_ib_lend(struct xrds_ib_lent *lent, struct page *page)
{
	struct page *oldest = NULL;

	get_page(page);
	spin_lock_bh(&lent->lock);
	if (lent->nr >= lent->most)
		oldest = xrds_ib_lent_pop(lent);
	lent->ring[(lent->first + lent->nr++) % XRDS_IB_LENT] = page;
	WRITE_ONCE(lent->at, jiffies);
	spin_unlock_bh(&lent->lock);

	if (oldest)
		put_page(oldest);
	if (!delayed_work_pending(&lent->trim))
		queue_delayed_work(xrds_ib_wq, &lent->trim,
				   XRDS_IB_LEND_IDLE);
}

/**
 * xrds_ib_lend_back - a page that nobody uses any more
 * @lent: pages of a receive queue
 *
 * Context: process.
 * Return: the page with its only reference, or NULL.
 */
struct page *xrds_ib_lend_back(struct xrds_ib_lent *lent)
{
	struct page *page = NULL;

	spin_lock_bh(&lent->lock);
	/* nobody but us can make it more than one again */
	if (lent->nr && page_ref_count(lent->ring[lent->first]) == 1)
		page = xrds_ib_lent_pop(lent);
	spin_unlock_bh(&lent->lock);
	return page;
}

/**
 * xrds_ib_lent_init - nothing is lent yet
 * @lent: pages of a receive queue
 * @most: how many to keep, at most
 *
 * Context: process.
 */
void xrds_ib_lent_init(struct xrds_ib_lent *lent, u32 most)
{
	lent->most = min_t(u32, most, XRDS_IB_LENT);
	spin_lock_init(&lent->lock);
	INIT_DELAYED_WORK(&lent->trim, xrds_ib_lent_trim);
}

/**
 * xrds_ib_lent_exit - give up what is lent
 * @lent: pages of a receive queue that lends no more
 *
 * Context: process.
 */
void xrds_ib_lent_exit(struct xrds_ib_lent *lent)
{
	cancel_delayed_work_sync(&lent->trim);
	xrds_ib_lent_drop(lent);
}
