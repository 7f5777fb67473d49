// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device's objects for memory regions, and the pool of those without a region.
 *
 *   allocated -> has a region (mr.c) -> in the pool -> has another one ...
 *                       |                  |
 *                       +---> destroyed <--+
 *                       +---> stuck, with the memory -> destroyed
 *
 * The pool is bounded, by objects and by the pages they can hold. It is a queue:
 * eight bits of a key change from one use to the next, and an object at the end of
 * the queue does not soon get a key again that a peer may still have.
 *
 * An object is stuck while the device may still be using it, or when its driver has
 * failed to destroy it. It keeps the memory of its region, mapped. A work item
 * destroys it when the time is over, and tries again before the device goes.
 */
#include "ib/ib.h"

enum {
	XRDS_IB_POOL_MRS	= 256,
	XRDS_IB_POOL_PAGES	= 32768,
	XRDS_IB_MR_MIN_PAGES	= 8,
};

/**
 * xrds_ib_frwr_stick - the device keeps an object
 * @ibdev: device
 * @frwr: object; for as long as the device has it, frwr->sgt is its memory
 *
 * Context: process.
 */
void xrds_ib_frwr_stick(struct xrds_ib_dev *ibdev, struct xrds_ib_frwr *frwr)
{
	struct xrds_ib_mr_pool *pool = &ibdev->mr_pool;
	struct sg_page_iter iter;

	for_each_sgtable_page(&frwr->sgt, &iter, 0)
		get_page(sg_page_iter_page(&iter));
	spin_lock(&pool->lock);
	list_add_tail(&frwr->entry, &pool->stuck);
	spin_unlock(&pool->lock);
}

/**
 * xrds_ib_frwr_dereg - have the device destroy an object
 * @ibdev: device
 * @frwr: object that the device does not use; the caller's in either case
 *
 * Context: process, may sleep.
 * Return: true if the device has destroyed it.
 */
bool xrds_ib_frwr_dereg(struct xrds_ib_dev *ibdev, struct xrds_ib_frwr *frwr)
{
	if (!ib_dereg_mr(frwr->mr))
		return true;
	xrds_ib_rq_count(XRDS_IB_C_MR_STUCK);
	dev_warn_once(&ibdev->dev->dev,
		      "xrds: a memory region was not destroyed, its memory stays\n");
	return false;
}

/* The device has destroyed an object that it kept before. */
static void xrds_ib_frwr_unstick(struct xrds_ib_dev *ibdev,
				 struct xrds_ib_frwr *frwr)
{
	struct sg_page_iter iter;

	if (frwr->dir != DMA_NONE)
		ib_dma_unmap_sgtable_attrs(ibdev->dev, &frwr->sgt, frwr->dir,
					   0);
	for_each_sgtable_page(&frwr->sgt, &iter, 0)
		put_page(sg_page_iter_page(&iter));
	sg_free_table(&frwr->sgt);
	kfree(frwr);
}

static void xrds_ib_frwr_destroy(struct xrds_ib_dev *ibdev,
				 struct xrds_ib_frwr *frwr)
{
	if (xrds_ib_frwr_dereg(ibdev, frwr))
		kfree(frwr);
	else
		xrds_ib_frwr_stick(ibdev, frwr);
}

/* The objects that the device was still using, and those that it has kept */
static void xrds_ib_frwr_settle(struct work_struct *work)
{
	struct xrds_ib_mr_pool *pool = container_of(work,
						    struct xrds_ib_mr_pool,
						    work);
	struct xrds_ib_dev *ibdev = container_of(pool, struct xrds_ib_dev,
						 mr_pool);
	struct xrds_ib_frwr *frwr, *tmp;
	LIST_HEAD(todo);
	LIST_HEAD(kept);

	spin_lock(&pool->lock);
	list_splice_init(&pool->stuck, &todo);
	spin_unlock(&pool->lock);
	list_for_each_entry_safe(frwr, tmp, &todo, entry) {
		xrds_ib_regq_settle(ibdev, &frwr->w);
		list_del(&frwr->entry);
		if (xrds_ib_frwr_dereg(ibdev, frwr))
			xrds_ib_frwr_unstick(ibdev, frwr);
		else
			list_add_tail(&frwr->entry, &kept);
	}
	spin_lock(&pool->lock);
	list_splice(&kept, &pool->stuck);
	spin_unlock(&pool->lock);
}

/**
 * xrds_ib_frwr_page_bytes - size of the pages that a region is described by
 * @ibdev: device
 *
 * Context: any.
 * Return: that of the kernel's pages, or 4 KiB where the device has none of that
 * size.
 */
u32 xrds_ib_frwr_page_bytes(const struct xrds_ib_dev *ibdev)
{
	return ibdev->dev->attrs.page_size_cap & PAGE_SIZE ? PAGE_SIZE : SZ_4K;
}

/**
 * xrds_ib_frwr_entries - length of the page list of a region
 * @ibdev: device
 * @pages: pages of the kernel
 *
 * Context: any.
 * Return: entries.
 */
u32 xrds_ib_frwr_entries(const struct xrds_ib_dev *ibdev, u32 pages)
{
	return pages * (PAGE_SIZE / xrds_ib_frwr_page_bytes(ibdev)) +
	       ibdev->quirks.spare_pages;
}

/* Few sizes, so that a free object often fits. */
static u32 xrds_ib_frwr_pages(const struct xrds_ib_dev *ibdev, u32 pages)
{
	u32 max = ibdev->dev->attrs.max_fast_reg_page_list_len;

	pages = xrds_ib_frwr_entries(ibdev, pages);
	return min(max, max_t(u32, roundup_pow_of_two(pages),
			      XRDS_IB_MR_MIN_PAGES));
}

static struct xrds_ib_frwr *xrds_ib_frwr_unused(struct xrds_ib_dev *ibdev,
						u32 pages)
{
	struct xrds_ib_mr_pool *pool = &ibdev->mr_pool;
	struct xrds_ib_frwr *frwr, *found = NULL;

	spin_lock(&pool->lock);
	list_for_each_entry(frwr, &pool->free, entry) {
		if (frwr->pages != pages)
			continue;
		found = frwr;
		list_del(&frwr->entry);
		pool->nr--;
		pool->pages -= pages;
		break;
	}
	spin_unlock(&pool->lock);
	return found;
}

/**
 * xrds_ib_frwr_put - an object has no region any more
 * @ibdev: device
 * @frwr: object whose key is void; nobody's from now on
 *
 * Context: process, may sleep.
 */
void xrds_ib_frwr_put(struct xrds_ib_dev *ibdev, struct xrds_ib_frwr *frwr)
{
	struct xrds_ib_mr_pool *pool = &ibdev->mr_pool;
	bool fits;

	spin_lock(&pool->lock);
	fits = pool->nr < XRDS_IB_POOL_MRS &&
	       pool->pages + frwr->pages <= XRDS_IB_POOL_PAGES;
	if (fits) {
		list_add_tail(&frwr->entry, &pool->free);
		pool->nr++;
		pool->pages += frwr->pages;
	}
	spin_unlock(&pool->lock);
	if (!fits)
		xrds_ib_frwr_destroy(ibdev, frwr);
}

/**
 * xrds_ib_frwr_get - get an object for a region
 * @xin: namespace that counts it
 * @ibdev: device
 * @pages: pages of the kernel that it has to hold
 *
 * Context: process, may sleep.
 * Return: an object, the caller's, or an ERR_PTR().
 */
struct xrds_ib_frwr *xrds_ib_frwr_get(struct xrds_ib_net *xin,
				      struct xrds_ib_dev *ibdev, u32 pages)
{
	struct xrds_ib_frwr *frwr;
	struct ib_mr *mr;

	pages = xrds_ib_frwr_pages(ibdev, pages);
	frwr = xrds_ib_frwr_unused(ibdev, pages);
	if (frwr) {
		xrds_ib_count(xin, XRDS_IB_C_MR_POOL_REUSED);
		return frwr;
	}
	frwr = kzalloc(sizeof(*frwr), GFP_KERNEL);
	if (!frwr)
		return ERR_PTR(-ENOMEM);
	mr = ib_alloc_mr(ibdev->pd, IB_MR_TYPE_MEM_REG, pages);
	if (IS_ERR(mr)) {
		kfree(frwr);
		return ERR_CAST(mr);
	}
	frwr->mr = mr;
	frwr->pages = pages;
	frwr->dir = DMA_NONE;
	xrds_ib_count(xin, XRDS_IB_C_MR_POOL_ALLOC);
	return frwr;
}

/**
 * xrds_ib_frwr_init - prepare the pool of a device
 * @pool: zeroed pool
 *
 * Context: process.
 */
void xrds_ib_frwr_init(struct xrds_ib_mr_pool *pool)
{
	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->stuck);
	INIT_WORK(&pool->work, xrds_ib_frwr_settle);
	INIT_LIST_HEAD(&pool->free);
}

/**
 * xrds_ib_frwr_exit - empty the pool of a device
 * @ibdev: device that nobody uses any more
 *
 * Objects that the device still keeps are lost on purpose.
 *
 * Context: process, may sleep.
 */
void xrds_ib_frwr_exit(struct xrds_ib_dev *ibdev)
{
	struct xrds_ib_mr_pool *pool = &ibdev->mr_pool;

	spin_lock(&pool->lock);
	list_splice_tail_init(&pool->free, &pool->stuck);
	spin_unlock(&pool->lock);
	queue_work(xrds_ib_wq, &pool->work);
	flush_work(&pool->work);
	if (!list_empty(&pool->stuck))
		ibdev->stuck = true;
}
