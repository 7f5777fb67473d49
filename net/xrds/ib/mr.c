// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions: the device's side of struct xrds_mr.
 *
 *   pinned -> in ibdev->mrs -> mapped for the device -> key valid
 *     -> key invalid -> unmapped
 *
 * A region is registered with the device that has its socket's address, by fast
 * registration (FRWR): a memory region object of the device is taken from a
 * pool (frwr.c), gets the list of pages, and is made valid by a work request
 * (regq.c), each time with another key, and another address (key.c). First and last
 * byte are those that the program named.
 *
 * A region is ended by its owner, or because it is lost: its device fails or is
 * removed, or its address moves to another device. The first of them does it,
 * under m->lock: the key is made invalid, after which no peer accesses the
 * memory, and the memory is unmapped. An owner invalidates, so that the object
 * can be used again; if the device does not confirm that, or the region is
 * lost, the object is destroyed, which makes the key invalid as well. The owner
 * frees the rest.
 *
 * A device that has invalidated a key does not access the memory any more,
 * except for late copies (quirks.c): with RDS_RDMA_INVALIDATE, when a region has ended
 * by use, and when the socket is closed, such a device has the object destroyed. In the
 * latter cases a work does it, and keeps the pages until then.
 *
 * A device may not answer in time, or its driver fail to destroy an object. Then
 * the key may stay valid, and the object keeps the memory, mapped.
 *
 * Each region has a reference on its device until it has ended.
 */
#include <linux/dma-map-ops.h>

#include "ib/ib.h"

/**
 * struct xrds_ib_mr - a region of a socket, registered
 * @ref:	one of the owner, one while the removal of the device ends it
 * @mr:		the core's region; valid while @ibdev is set
 * @lock:	guards @ibdev and all that belongs to it
 * @entry:	in ibdev->mrs; ibdev->lock
 * @ibdev:	device, with a reference; NULL once it has ended
 * @xin:	namespace
 * @scope:	interface index of a link-local address, else 0
 * @frwr:	object, or NULL
 * @key:	its number and pages, from the draw until the region is dead
 * @sgt:	the memory
 * @mapped:	@sgt is mapped for the device
 * @write:	peers may write
 */
struct xrds_ib_mr {
	refcount_t ref;
	struct xrds_mr *mr;
	struct mutex lock;		/* ibdev */
	struct list_head entry;
	struct xrds_ib_dev *ibdev;
	struct xrds_ib_net *xin;
	u32 scope;
	struct xrds_ib_frwr *frwr;
	struct xrds_ib_key key;
	struct sg_table sgt;
	bool mapped;
	bool write;
};

/* times that all regions were to be looked at */
static atomic_t xrds_ib_mr_looks;

/* ------------------------------------------------------------- the end */

static enum dma_data_direction xrds_ib_mr_dir(const struct xrds_ib_mr *m)
{
	return m->write ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
}

/* Does the caller not wait for the device? */
static bool xrds_ib_mr_brief(const struct xrds_ib_mr *m)
{
	return m->mr->closing || current->flags & PF_EXITING;
}

static int xrds_ib_mr_invalidate(struct xrds_ib_mr *m)
{
	int ret;

	m->frwr->w.brief = xrds_ib_mr_brief(m);
	m->frwr->w.wr = (struct ib_send_wr) {
		.opcode			= IB_WR_LOCAL_INV,
		.ex.invalidate_rkey	= m->frwr->mr->rkey,
	};
	ret = xrds_ib_regq_do(m->ibdev, &m->frwr->w);
	if (ret && ret != -EINTR)
		xrds_ib_count(m->xin, XRDS_IB_C_MR_INV_ERROR);
	return ret;
}

/* With the object the key is void. As long as the device has it, or is making
 * the key valid or void, the memory is the object's. A process that exits does
 * not wait for the device, nor one that closes the socket.
 */
static void xrds_ib_mr_destroy_frwr(struct xrds_ib_mr *m)
{
	struct xrds_ib_frwr *frwr = m->frwr;
	bool later = frwr->w.posted || xrds_ib_mr_brief(m);

	m->frwr = NULL;
	xrds_ib_count(m->xin, XRDS_IB_C_MR_DESTROYED);
	if (!later && xrds_ib_frwr_dereg(m->ibdev, frwr)) {
		kfree(frwr);
		return;
	}
	swap(frwr->sgt, m->sgt);
	if (m->mapped)
		frwr->dir = xrds_ib_mr_dir(m);
	m->mapped = false;
	xrds_ib_frwr_stick(m->ibdev, frwr);
	if (later)
		queue_work(xrds_ib_wq, &m->ibdev->mr_pool.work);
}

/* First step of a region's end: it leaves the device's list, and is dead.
 * Returns whether its owner is to be told.
 */
static bool xrds_ib_mr_make_dead(struct xrds_ib_mr *m, u32 lost)
{
	struct xrds_ib_dev *ibdev = m->ibdev;

	spin_lock_bh(&ibdev->lock);
	if (!list_empty(&m->entry))
		ibdev->nr_mrs--;
	list_del_init(&m->entry);
	spin_unlock_bh(&ibdev->lock);

	/* before the device can give the key to another region */
	xrds_ib_key_retire(&m->key, m->mr->user);

	/* for ops over loopback, which do not use the device */
	return xrds_mr_make_dead(m->mr, lost);
}

/* Last step, when the key is void */
static void xrds_ib_mr_unmap(struct xrds_ib_mr *m)
{
	struct xrds_ib_dev *ibdev = m->ibdev;

	if (m->mapped)
		ib_dma_unmap_sgtable_attrs(ibdev->dev, &m->sgt,
					   xrds_ib_mr_dir(m), 0);
	sg_free_table(&m->sgt);
	m->ibdev = NULL;
	xrds_ib_dev_put(ibdev);
}

/* End a region, and keep its registration object for another one if possible. */
static void xrds_ib_mr_end(struct xrds_ib_mr *m)
{
	lockdep_assert_held(&m->lock);

	xrds_ib_mr_make_dead(m, 0);
	/* others get the pages of a process that exits: no late copy may reach them */
	if (xrds_ib_mr_invalidate(m) ||
	    (m->ibdev->quirks.late_copies && xrds_ib_mr_brief(m))) {
		xrds_ib_mr_destroy_frwr(m);
	} else {
		xrds_ib_frwr_put(m->ibdev, m->frwr);
		m->frwr = NULL;
	}
	xrds_ib_mr_unmap(m);
}

/* End a region, at any stage of its registration, with its registration object;
 * do nothing if it has ended before.
 */
static void xrds_ib_mr_destroy(struct xrds_ib_mr *m, u32 lost)
{
	bool tell;

	lockdep_assert_held(&m->lock);

	if (!m->ibdev)
		return;
	tell = xrds_ib_mr_make_dead(m, lost);
	if (m->frwr)
		xrds_ib_mr_destroy_frwr(m);
	xrds_ib_mr_unmap(m);
	if (tell)
		xrds_mr_lost(m->mr);
}

static void xrds_ib_mr_get(struct xrds_ib_mr *m)
{
	refcount_inc(&m->ref);
}

static void xrds_ib_mr_put(struct xrds_ib_mr *m)
{
	if (!refcount_dec_and_test(&m->ref))
		return;
	mutex_destroy(&m->lock);
	kfree(m);
}

/* The first region of a device, with a reference; its turn comes last now. */
static struct xrds_ib_mr *xrds_ib_mr_next(struct xrds_ib_dev *ibdev)
{
	struct xrds_ib_mr *m;

	spin_lock_bh(&ibdev->lock);
	m = list_first_entry_or_null(&ibdev->mrs, struct xrds_ib_mr, entry);
	if (m) {
		list_move_tail(&m->entry, &ibdev->mrs);
		xrds_ib_mr_get(m);
	}
	spin_unlock_bh(&ibdev->lock);
	return m;
}

/**
 * xrds_ib_mr_remove_all - end the regions of a device, and tell their owners
 * @ibdev: device, with a reference
 * @lost: enum xrds_mr_lost
 *
 * Context: process, may sleep.
 */
void xrds_ib_mr_remove_all(struct xrds_ib_dev *ibdev, u32 lost)
{
	struct xrds_ib_mr *m;

	while ((m = xrds_ib_mr_next(ibdev))) {
		mutex_lock(&m->lock);
		xrds_ib_mr_destroy(m, lost);
		mutex_unlock(&m->lock);
		xrds_ib_mr_put(m);
	}
}

static bool xrds_ib_mr_has_moved(const struct xrds_ib_mr *m)
{
	lockdep_assert_held(&m->lock);

	/* the namespace stays as long as the region has a device */
	return m->ibdev && xrds_ib_dev_has_lost(m->ibdev, m->xin->net,
						&m->mr->key.addr, m->scope);
}

/**
 * xrds_ib_mr_remove_moved - end the regions whose address has moved
 * @ibdev: device, with a reference
 *
 * The regions that it has when this begins are looked at once each.
 *
 * Context: process, may sleep.
 */
void xrds_ib_mr_remove_moved(struct xrds_ib_dev *ibdev)
{
	u32 left = READ_ONCE(ibdev->nr_mrs);
	struct xrds_ib_mr *m;

	while (left-- && (m = xrds_ib_mr_next(ibdev))) {
		mutex_lock(&m->lock);
		if (xrds_ib_mr_has_moved(m))
			xrds_ib_mr_destroy(m, XRDS_MR_ADDRESS_MOVED);
		mutex_unlock(&m->lock);
		xrds_ib_mr_put(m);
	}
}

/**
 * xrds_ib_mr_may_move - regions are about to be looked at: an address may have moved
 *
 * Context: any.
 */
void xrds_ib_mr_may_move(void)
{
	atomic_inc(&xrds_ib_mr_looks);
	/* either a region is found, or its registration sees that */
	smp_mb__after_atomic();
}

/* --------------------------------------------------------- registration */

/* Do the device and the program see the same memory while it is mapped? With bounce
 * buffers the device has a copy, and without coherence each has its own. Data that a
 * peer writes would reach the program only when the region ends.
 */
static bool xrds_ib_mr_shares(struct ib_device *dev)
{
	return ib_uses_virt_dma(dev) ||
	       (dma_max_mapping_size(dev->dma_device) == SIZE_MAX &&
		dev_is_dma_coherent(dev->dma_device));
}

static int xrds_ib_mr_map(struct xrds_ib_mr *m, const struct xrds_pin *pin)
{
	struct ib_device *dev = m->ibdev->dev;
	int ret;

	if (!xrds_ib_mr_shares(dev))
		return -EOPNOTSUPP;
	ret = sg_alloc_table_from_pages_segment(&m->sgt, pin->pages,
						pin->nr_pages,
						pin->bv[0].bv_offset,
						pin->bytes,
						ib_dma_max_seg_size(dev),
						GFP_KERNEL);
	if (ret)
		return ret;
	ret = ib_dma_map_sgtable_attrs(dev, &m->sgt, xrds_ib_mr_dir(m), 0);
	if (ret)
		return ret;
	m->mapped = true;
	return 0;
}

static int xrds_ib_mr_access(const struct xrds_ib_mr *m)
{
	int access = IB_ACCESS_REMOTE_READ;

	if (m->write)
		access |= IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE;
	if (m->write && m->ibdev->dev->attrs.atomic_cap != IB_ATOMIC_NONE &&
	    !READ_ONCE(m->ibdev->no_atomics))
		access |= IB_ACCESS_REMOTE_ATOMIC;
	return access;
}

/* Describe the pages to the object and make its key valid. */
static int xrds_ib_mr_validate(struct xrds_ib_mr *m, const struct xrds_pin *pin)
{
	struct ib_reg_wr *reg = &m->frwr->w.reg;
	struct ib_mr *mr = m->frwr->mr;
	int ret;

	m->frwr->w.brief = xrds_ib_mr_brief(m);
	ret = ib_map_mr_sg(mr, m->sgt.sgl, m->sgt.nents, NULL,
			   xrds_ib_frwr_page_bytes(m->ibdev));
	if (ret != m->sgt.nents)
		return ret < 0 ? ret : -EMSGSIZE;
	/* An IOMMU with smaller pages than the kernel's may move the memory within
	 * its page. Then the device would take its place from the wrong bits.
	 */
	if ((mr->iova ^ pin->bv[0].bv_offset) & (mr->page_size - 1))
		return -EOPNOTSUPP;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	*reg = (struct ib_reg_wr) {
		.wr.opcode	= IB_WR_REG_MR,
		.mr		= mr,
		.key		= mr->rkey,
		.access		= xrds_ib_mr_access(m),
	};
	ret = xrds_ib_key_draw(&m->key, mr->rkey, pin->nr_pages);
	if (ret)
		return ret;
	/* a device that has a part of the first page has its end: the offset is
	 * the same
	 */
	mr->iova = ((u64)m->key.first << PAGE_SHIFT) + pin->bv[0].bv_offset;
	ret = xrds_ib_regq_do(m->ibdev, &m->frwr->w);
	if (ret != -EINVAL || !(reg->access & IB_ACCESS_REMOTE_ATOMIC))
		return ret;
	/* some mlx5 devices refuse remote atomics, but accept the rest */
	reg->access &= ~IB_ACCESS_REMOTE_ATOMIC;
	ret = xrds_ib_regq_do(m->ibdev, &m->frwr->w);
	if (!ret)
		WRITE_ONCE(m->ibdev->no_atomics, true);
	return ret;
}

/* From here on the end of the device, and a move of the address, end the region: they
 * wait for its lock. A move since the device was found is seen here.
 */
static int xrds_ib_mr_publish(struct xrds_ib_mr *m, int seen)
{
	struct xrds_ib_dev *ibdev = m->ibdev;
	int ret = -ENODEV;

	lockdep_assert_held(&m->lock);

	spin_lock_bh(&ibdev->lock);
	if (!ibdev->removed) {
		list_add_tail(&m->entry, &ibdev->mrs);
		ibdev->nr_mrs++;
		ret = 0;
	}
	spin_unlock_bh(&ibdev->lock);
	if (ret)
		return ret;
	/* pairs with the one in xrds_ib_mr_may_move() */
	smp_mb();
	return seen != atomic_read(&xrds_ib_mr_looks) && xrds_ib_mr_has_moved(m) ?
	       -EEXIST : 0;
}

static int xrds_ib_mr_start(struct xrds_ib_mr *m, struct xrds_mr *mr)
{
	const struct xrds_pin *pin = mr->pin;
	struct xrds_ib_frwr *frwr;
	int ret;

	lockdep_assert_held(&m->lock);

	ret = xrds_ib_mr_map(m, pin);
	if (ret)
		return ret;
	frwr = xrds_ib_frwr_get(m->xin, m->ibdev, pin->nr_pages);
	if (IS_ERR(frwr))
		return PTR_ERR(frwr);
	m->frwr = frwr;
	ret = xrds_ib_mr_validate(m, pin);
	if (ret)
		return ret;
	mr->key.rkey = frwr->mr->rkey;
	mr->offset = frwr->mr->iova;
	return 0;
}

/**
 * xrds_ib_mr_reg - register memory
 * @mr: region with its memory pinned
 *
 * Context: process, may sleep, bounded.
 * Return: 0; -ENODEV when no device has the socket's address, -EMSGSIZE when
 * its device cannot take so many pages, -EOPNOTSUPP when the device uses bounce
 * buffers, or has the memory at another place in its page, -EEXIST to try
 * again: the key needs another number (key.c), or the address has moved; -EIO
 * when the device failed, -ENOMEM, or an errno of the driver.
 */
int xrds_ib_mr_reg(struct xrds_mr *mr)
{
	struct xrds_ib_net *xin = xrds_ib_net(mr->xn->net);
	const struct xrds_bind_key *bind = mr->rs->bind;
	int seen = atomic_read(&xrds_ib_mr_looks);
	struct xrds_ib_dev *ibdev;
	struct xrds_ib_mr *m;
	int ret;

	atomic_inc(&mr->xn->nr_on_devices);
	/* Before the address is looked up; it pairs with the barrier in
	 * xrds_ib_lost_addr().
	 */
	smp_mb__after_atomic();
	ibdev = xrds_ib_dev_find_addr(mr->xn->net, &bind->addr, bind->scope);
	if (!ibdev) {
		ret = -ENODEV;
		goto err_count;
	}
	ret = -EMSGSIZE;
	if (xrds_ib_frwr_entries(ibdev, mr->pin->nr_pages) >
	    ibdev->dev->attrs.max_fast_reg_page_list_len)
		goto err_dev;
	ret = -ENOMEM;
	m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	if (!m)
		goto err_dev;
	refcount_set(&m->ref, 1);
	m->mr = mr;
	mutex_init(&m->lock);
	INIT_LIST_HEAD(&m->entry);
	m->ibdev = ibdev;
	m->xin = xin;
	m->scope = bind->scope;
	m->write = mr->write;

	mutex_lock(&m->lock);
	ret = xrds_ib_mr_publish(m, seen) ?: xrds_ib_mr_start(m, mr);
	if (ret)
		xrds_ib_mr_destroy(m, 0);
	mutex_unlock(&m->lock);
	if (ret) {
		xrds_ib_count(xin, XRDS_IB_C_MR_REG_ERROR);
		xrds_ib_mr_put(m);
		goto err_count;
	}
	mr->priv = m;
	xrds_ib_count(xin, XRDS_IB_C_MR_REG);
	return 0;

err_dev:
	xrds_ib_count(xin, XRDS_IB_C_MR_REG_ERROR);
	xrds_ib_dev_put(ibdev);
err_count:
	atomic_dec(&mr->xn->nr_on_devices);
	return ret;
}

/**
 * xrds_ib_mr_unreg - make the key of a region invalid
 * @mr: region that was registered
 *
 * When it returns no peer accesses the memory by this key; with mr->invalidate
 * no late copy (quirks.c) does either.
 *
 * Context: process, may sleep, bounded.
 */
void xrds_ib_mr_unreg(struct xrds_mr *mr)
{
	struct xrds_ib_mr *m = mr->priv;

	xrds_ib_count(m->xin, XRDS_IB_C_MR_UNREG);
	mutex_lock(&m->lock);
	if (m->ibdev && mr->invalidate && m->ibdev->quirks.late_copies &&
	    !xrds_ib_mr_brief(m))
		xrds_ib_mr_destroy(m, 0);
	else if (m->ibdev)
		xrds_ib_mr_end(m);
	mutex_unlock(&m->lock);
	mr->priv = NULL;
	xrds_ib_mr_put(m);
	atomic_dec(&mr->xn->nr_on_devices);
}
