// SPDX-License-Identifier: GPL-2.0-only
/*
 * User memory that a device may touch: pinned, charged, given back.
 *
 * One object holds the pages of one or more ranges of a process, as bio_vecs
 * with the exact bytes asked for. They are counted in the VmPin of the process,
 * as other RDMA memory is, which RLIMIT_MEMLOCK limits. The count is that of
 * the address space in which they were pinned. It is corrected when they are
 * given back, also by another process, and after the first one has exited.
 *
 * Giving pages back may sleep, and the last user may be a completion: it is
 * done by a work item.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "rdma/rdma.h"
#include "xrds.h"

struct workqueue_struct *xrds_pin_wq;

static void xrds_pin_uncharge(struct xrds_net *xn, struct xrds_user *user,
			      u64 pages)
{
	xrds_limit_uncharge(xn, user, XRDS_LIMIT_PINNED, pages << PAGE_SHIFT);
}

static void xrds_pin_work(struct work_struct *work)
{
	struct xrds_pin *pin = container_of(work, struct xrds_pin, work);

	unpin_user_pages_dirty_lock(pin->pages, pin->nr_pages, pin->write);
	atomic64_sub(pin->nr_pages, &pin->mm->pinned_vm);
	xrds_pin_uncharge(pin->xn, pin->user, pin->nr_pages);
	xrds_user_put(pin->user);
	mmdrop(pin->mm);
	kvfree(pin->pages);
	kvfree(pin->bv);
	kfree(pin);
}

/**
 * xrds_pin_free - give pinned memory back
 * @pin: pinned memory that nobody touches any more; NULL does nothing
 *
 * Context: any.
 */
void xrds_pin_free(struct xrds_pin *pin)
{
	if (pin)
		queue_work(xrds_pin_wq, &pin->work);
}

/* Count pages as pinned by the calling process, if its limit allows it. Never
 * more than that even for a moment: it would refuse others what they may have.
 */
static bool xrds_pin_count(u64 pages)
{
	atomic64_t *pinned = &current->mm->pinned_vm;
	u64 limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	s64 now = atomic64_read(pinned);

	do {
		if (now + pages > limit && !capable(CAP_IPC_LOCK))
			return false;
	} while (!atomic64_try_cmpxchg(pinned, &now, now + pages));
	return true;
}

/* The same, and by its user */
static int xrds_pin_charge(struct xrds_rdma_sock *rs, u64 pages)
{
	int ret;

	if (!xrds_pin_count(pages)) {
		/* pages of ops that have ended may still be counted */
		flush_workqueue(xrds_pin_wq);
		if (!xrds_pin_count(pages))
			return -ENOMEM;
	}
	ret = xrds_limit_charge(rs->xn, rs->user, XRDS_LIMIT_PINNED,
				pages << PAGE_SHIFT);
	if (ret)
		atomic64_sub(pages, &current->mm->pinned_vm);
	return ret;
}

/* Pages that a range touches; 0 when it is empty or wraps. */
static u64 xrds_pin_pages(const struct rds_iovec *vec)
{
	u64 end;

	if (!vec->bytes || check_add_overflow(vec->addr, vec->bytes, &end))
		return 0;
	return ((end - 1) >> PAGE_SHIFT) - (vec->addr >> PAGE_SHIFT) + 1;
}

/* Is the mapping at @start a shared one? *nr becomes what of the pages are in
 * it. A program that changes its mappings meanwhile has the pages of either of
 * them.
 */
static bool xrds_pin_shared(unsigned long start, int *nr)
{
	const struct vm_area_struct *vma;
	bool shared = false;

	mmap_read_lock(current->mm);
	vma = vma_lookup(current->mm, start);
	if (vma) {
		shared = vma->vm_flags & VM_MAYSHARE;
		*nr = min_t(unsigned long, *nr,
			    (vma->vm_end - start) >> PAGE_SHIFT);
	}
	mmap_read_unlock(current->mm);
	return shared;
}

/* Pin pages for a device that only reads them. Pages of a private mapping that
 * nobody has written to yet are shared with others: the program's next store
 * would get it a page of its own, which the device does not see. So they are
 * pinned as if to be written, if the program may read them. Those of a shared
 * mapping stay the same, and to pin them for writing would write to the file:
 * its holes would get blocks, and it another time.
 */
static int xrds_pin_read(unsigned long start, int nr, struct page **pages)
{
	unsigned int flags = FOLL_LONGTERM;

	if (!xrds_pin_shared(start, &nr))
		flags |= FOLL_WRITE | FOLL_FORCE;
	if (fault_in_readable((const char __user *)start,
			      (size_t)nr << PAGE_SHIFT))
		return -EFAULT;
	return pin_user_pages_fast(start, nr, flags, pages);
}

/* Pin one range and describe it; on error @pin has the pages pinned so far. */
static int xrds_pin_range(struct xrds_pin *pin, const struct rds_iovec *vec)
{
	struct page **pages = pin->pages + pin->nr_pages;
	int want = xrds_pin_pages(vec), got = 0, n, i;
	u32 offset = offset_in_page(vec->addr);
	u64 left = vec->bytes;
	unsigned long start;
	u32 bytes;

	while (got < want) {
		start = (vec->addr & PAGE_MASK) + ((u64)got << PAGE_SHIFT);
		n = pin->write ?
		    pin_user_pages_fast(start, want - got, FOLL_LONGTERM |
					FOLL_WRITE, pages + got) :
		    xrds_pin_read(start, want - got, pages + got);
		if (n <= 0)
			break;
		got += n;
	}
	pin->nr_pages += got;
	if (got < want)
		return -EFAULT;

	for (i = 0; i < want; i++) {
		bytes = min_t(u64, left, PAGE_SIZE - offset);
		pin->bv[pin->nr_bv].bv_page = pages[i];
		pin->bv[pin->nr_bv].bv_offset = offset;
		pin->bv[pin->nr_bv++].bv_len = bytes;
		left -= bytes;
		offset = 0;
	}
	pin->bytes += vec->bytes;
	return 0;
}

/**
 * xrds_pin_user - pin ranges of the calling process
 * @rs: socket that it is for
 * @vec: the ranges
 * @nr: how many, at least one
 * @max_bytes: most that all together may be
 * @write: the memory will be written to
 *
 * Context: process, may sleep; no lock of ours held.
 * Return: the memory, or ERR_PTR(): -EINVAL for an empty range, -EMSGSIZE,
 * -EFAULT, -ENOMEM, also when RLIMIT_MEMLOCK does not allow it, -EPERM when
 * that is zero, -EDQUOT when the user or the namespace has too much pinned.
 */
struct xrds_pin *xrds_pin_user(struct xrds_rdma_sock *rs,
			       const struct rds_iovec *vec, unsigned int nr,
			       u64 max_bytes, bool write)
{
	u64 pages = 0, bytes = 0, n;
	struct xrds_pin *pin;
	unsigned int i;
	int ret;

	if (!can_do_mlock())
		return ERR_PTR(-EPERM);
	for (i = 0; i < nr; i++) {
		n = xrds_pin_pages(&vec[i]);
		if (!n)
			return ERR_PTR(-EINVAL);
		pages += n;
		if (check_add_overflow(bytes, vec[i].bytes, &bytes) ||
		    bytes > max_bytes)
			return ERR_PTR(-EMSGSIZE);
	}

	pin = kzalloc(sizeof(*pin), GFP_KERNEL_ACCOUNT);
	if (!pin)
		return ERR_PTR(-ENOMEM);
	INIT_WORK(&pin->work, xrds_pin_work);
	pin->write = write;
	pin->pages = kvmalloc_array(pages, sizeof(*pin->pages),
				    GFP_KERNEL_ACCOUNT);
	pin->bv = kvmalloc_array(pages, sizeof(*pin->bv), GFP_KERNEL_ACCOUNT);
	ret = -ENOMEM;
	if (!pin->pages || !pin->bv)
		goto err_free;
	ret = xrds_pin_charge(rs, pages);
	if (ret)
		goto err_free;

	for (i = 0; i < nr && !ret; i++)
		ret = xrds_pin_range(pin, &vec[i]);
	if (ret)
		goto err_unpin;
	pin->xn = rs->xn;
	pin->user = xrds_user_get(rs->user);
	pin->mm = current->mm;
	mmgrab(pin->mm);
	return pin;

err_unpin:
	unpin_user_pages(pin->pages, pin->nr_pages);
	atomic64_sub(pages, &current->mm->pinned_vm);
	xrds_pin_uncharge(rs->xn, rs->user, pages);
err_free:
	kvfree(pin->bv);
	kvfree(pin->pages);
	kfree(pin);
	return ERR_PTR(ret);
}

/**
 * xrds_pin_init - module init
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int xrds_pin_init(void)
{
	xrds_pin_wq = alloc_workqueue("xrds_pin", WQ_UNBOUND, 0);
	return xrds_pin_wq ? 0 : -ENOMEM;
}

/**
 * xrds_pin_exit - module exit
 *
 * Context: process; nothing is pinned, or about to be given back, after this.
 */
void xrds_pin_exit(void)
{
	destroy_workqueue(xrds_pin_wq);
}
