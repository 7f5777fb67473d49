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
 * The last user may be a completion, which must not sleep. Pages that a device
 * has only read, or that are dirty already, are given back there and then. A
 * page that must become dirty has to be locked, and the owner of a file system
 * in user space keeps its pages locked for as long as it likes. That is done by
 * a work item, as is much memory. Each user's memory is given back in a queue
 * of its own, one piece after the other, and nobody but that user waits for it.
 * A namespace does not wait for it either: namespaces end one after the other.
 * The module cannot be unloaded meanwhile: that would wait for the lock, and
 * cannot be killed. It waits only for memory that it gives up itself, of ops of
 * sockets that are closed.
 *
 *   in use -> xrds_pin_free(): given back
 *                              or in user->unpins and xn->unpins -> given back
 *
 * The user is charged until the end, the namespace until its own end.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "rdma/rdma.h"
#include "xrds.h"

enum {
	/* more than that is given back by a work item */
	XRDS_PIN_HERE_PAGES	= 256,
};

static struct workqueue_struct *xrds_pin_wq;

/* A leaf; held for a few instructions, however much a user has. */
static DEFINE_SPINLOCK(xrds_pin_lock);	/* unpins of users and namespaces */

/* Take memory that was given back off the lists. Returns whether its user has
 * more, which then refers to the user as well.
 */
static bool xrds_pin_done(struct xrds_pin *pin)
{
	struct xrds_user *user = pin->user;
	bool more;

	spin_lock_bh(&xrds_pin_lock);
	xrds_limit_uncharge(pin->xn, user, XRDS_LIMIT_PINNED,
			    (u64)pin->nr_pages << PAGE_SHIFT);
	list_del(&pin->xn_node);
	list_del(&pin->user_node);
	more = !list_empty(&user->unpins);
	/* pairs with xrds_pin_nr_unpinned(): behind the charges */
	smp_store_release(&user->nr_unpinned, user->nr_unpinned + 1);
	spin_unlock_bh(&xrds_pin_lock);
	wake_up_all(&user->unpinned);
	return more;
}

/* Runs once from the time when a user's list gets its first entry until the list
 * is empty, so it is the only one that removes entries. The first one is freed
 * last: another user's work item at the same place would wait for this one.
 */
static void xrds_pin_work(struct work_struct *work)
{
	struct xrds_pin *first = container_of(work, struct xrds_pin, work);
	struct xrds_user *user = first->user;
	bool holds_module = first->holds_module;
	struct xrds_pin *pin;
	bool more;

	do {
		spin_lock_bh(&xrds_pin_lock);
		pin = list_first_entry(&user->unpins, struct xrds_pin,
				       user_node);
		spin_unlock_bh(&xrds_pin_lock);
		unpin_user_pages_dirty_lock(pin->pages, pin->nr_pages,
					    pin->write);
		atomic64_sub(pin->nr_pages, &pin->mm->pinned_vm);
		more = xrds_pin_done(pin);
		xrds_user_put(user);
		mmdrop(pin->mm);
		if (pin != first)
			kvfree(pin);
		cond_resched();
	} while (more);
	kvfree(first);
	/* xrds_pin_exit() waits for the rest of this function */
	if (holds_module)
		module_put(THIS_MODULE);
}

/* Can it be given back without sleeping? A page that is dirty need not be locked:
 * the device has done with it, so its new data will be written to its file.
 */
static bool xrds_pin_easy(const struct xrds_pin *pin)
{
	unsigned int i;

	if (pin->nr_pages > XRDS_PIN_HERE_PAGES)
		return false;
	for (i = 0; pin->write && i < pin->nr_pages; i++)
		if (!PageDirty(pin->pages[i]))
			return false;
	return true;
}

/* Give memory back at once, if that is possible. Returns whether the rest of it
 * is freed as well. The last reference on an address space is dropped by the
 * work item, as that takes locks which completions must not take.
 */
static bool xrds_pin_free_here(struct xrds_pin *pin)
{
	if (!xrds_pin_easy(pin))
		return false;
	unpin_user_pages(pin->pages, pin->nr_pages);
	atomic64_sub(pin->nr_pages, &pin->mm->pinned_vm);
	xrds_limit_uncharge(pin->xn, pin->user, XRDS_LIMIT_PINNED,
			    (u64)pin->nr_pages << PAGE_SHIFT);
	pin->nr_pages = 0;
	if (!atomic_add_unless(&pin->mm->mm_count, -1, 1))
		return false;
	xrds_user_put(pin->user);
	kvfree(pin);
	return true;
}

/**
 * xrds_pin_free - give pinned memory back
 * @pin: pinned memory that nobody touches any more; NULL does nothing
 *
 * Context: any.
 */
void xrds_pin_free(struct xrds_pin *pin)
{
	struct xrds_user *user;
	bool first;

	if (!pin || xrds_pin_free_here(pin))
		return;
	user = pin->user;
	spin_lock_bh(&xrds_pin_lock);
	first = list_empty(&user->unpins);
	list_add_tail(&pin->user_node, &user->unpins);
	list_add_tail(&pin->xn_node, &pin->xn->unpins);
	WRITE_ONCE(user->nr_unpins, user->nr_unpins + 1);
	spin_unlock_bh(&xrds_pin_lock);
	if (!first)
		return;
	pin->holds_module = try_module_get(THIS_MODULE);
	queue_work(xrds_pin_wq, &pin->work);
}

/**
 * xrds_pin_net_exit - a namespace goes: leave its memory to the users
 * @xn: namespace without sockets
 *
 * Context: process.
 */
void xrds_pin_net_exit(struct xrds_net *xn)
{
	struct xrds_pin *pin;

	do {
		spin_lock_bh(&xrds_pin_lock);
		pin = list_first_entry_or_null(&xn->unpins, struct xrds_pin,
					       xn_node);
		if (pin) {
			list_del_init(&pin->xn_node);
			pin->xn = NULL;
		}
		spin_unlock_bh(&xrds_pin_lock);
	} while (pin);
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
static int xrds_pin_try_charge(struct xrds_rdma_sock *rs, u64 pages)
{
	int ret;

	if (!xrds_pin_count(pages))
		return -ENOMEM;
	ret = xrds_limit_charge(rs->xn, rs->user, XRDS_LIMIT_PINNED,
				pages << PAGE_SHIFT);
	if (ret)
		atomic64_sub(pages, &current->mm->pinned_vm);
	return ret;
}

static u32 xrds_pin_nr_unpinned(struct xrds_user *user)
{
	/* pairs with the store-release in xrds_pin_done() */
	return smp_load_acquire(&user->nr_unpinned);
}

/* The same, and again when all is given back that the user has given up so far:
 * memory of ops that have ended may still be charged.
 */
static int xrds_pin_charge(struct xrds_rdma_sock *rs, u64 pages, long *timeo)
{
	struct xrds_user *user = rs->user;
	/* before the attempt: it may be given back behind that */
	u32 before = xrds_pin_nr_unpinned(user);
	int ret = xrds_pin_try_charge(rs, pages);
	u32 nr = READ_ONCE(user->nr_unpins);
	long left;

	if (!ret || !*timeo || nr == before)
		return ret;
	left = wait_event_killable_timeout(user->unpinned,
					   (s32)(xrds_pin_nr_unpinned(user) -
						 nr) >= 0, *timeo);
	if (left < 0)
		return -EINTR;
	*timeo = left;
	return xrds_pin_try_charge(rs, pages);
}

/* Pages that a range touches; 0 when it is empty or wraps. */
static u64 xrds_pin_pages(const struct rds_iovec *vec)
{
	u64 end;

	if (!vec->bytes || check_add_overflow(vec->addr, vec->bytes, &end))
		return 0;
	return ((end - 1) >> PAGE_SHIFT) - (vec->addr >> PAGE_SHIFT) + 1;
}

/* Is the mapping at @start a shared one, or read-only and of huge pages, which the
 * kernel refuses to pin for writing? *nr becomes what of the pages are in it. A
 * program that changes its mappings meanwhile has the pages of either of them.
 */
static bool xrds_pin_only_read(unsigned long start, int *nr)
{
	const struct vm_area_struct *vma;
	bool only_read = false;

	/* as the functions that pin do */
	start = untagged_addr(start);
	mmap_read_lock(current->mm);
	vma = vma_lookup(current->mm, start);
	if (vma) {
		only_read = vma->vm_flags & VM_MAYSHARE ||
			    (vma->vm_flags & (VM_HUGETLB | VM_WRITE)) ==
			    VM_HUGETLB;
		*nr = min_t(unsigned long, *nr,
			    (vma->vm_end - start) >> PAGE_SHIFT);
	}
	mmap_read_unlock(current->mm);
	return only_read;
}

/* Pin pages for a device that only reads them. Pages of a private mapping that
 * nobody has written to yet are shared with others: the program's next store
 * would get it a page of its own, which the device does not see. So they are
 * pinned as if to be written, if the program may read them. Those of a shared
 * mapping stay the same, and to pin them for writing would write to the file:
 * its holes would get blocks, and it another time. Anonymous huge pages that are
 * shared with a child are copied when they are pinned.
 */
static int xrds_pin_read(unsigned long start, int nr, struct page **pages)
{
	unsigned int flags = FOLL_LONGTERM;

	if (!xrds_pin_only_read(start, &nr))
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
	int want = xrds_pin_pages(vec), got = 0, n = 0, i;
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
		return n == -ENOMEM || n == -EINTR || n == -EOPNOTSUPP ?
		       n : -EFAULT;

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

/* One object with both arrays behind it */
static struct xrds_pin *xrds_pin_alloc(u64 pages, bool write)
{
	struct xrds_pin *pin;

	pin = kvmalloc(size_add(struct_size(pin, bv, pages),
				array_size(pages, sizeof(*pin->pages))),
		       GFP_KERNEL_ACCOUNT);
	if (!pin)
		return NULL;
	memset(pin, 0, sizeof(*pin));
	INIT_WORK(&pin->work, xrds_pin_work);
	pin->write = write;
	pin->pages = (struct page **)&pin->bv[pages];
	return pin;
}

/**
 * xrds_pin_user - pin ranges of the calling process
 * @rs: socket that it is for
 * @vec: the ranges
 * @nr: how many, at least one
 * @max_bytes: most that all together may be
 * @write: the memory will be written to
 * @timeo: how long to wait for memory that the same user has given up, if more
 *	may not be pinned without it, jiffies; on return the rest of it
 *
 * Context: process, may sleep; no lock of ours held.
 * Return: the memory, or ERR_PTR(): -EINVAL for an empty range, -EMSGSIZE,
 * -EFAULT, -EOPNOTSUPP for memory of a DAX file, -ENOMEM, also when
 * RLIMIT_MEMLOCK does not allow it, -EPERM when that is zero, -EDQUOT when the
 * user or the namespace has too much pinned, -EINTR when killed.
 */
struct xrds_pin *xrds_pin_user(struct xrds_rdma_sock *rs,
			       const struct rds_iovec *vec, unsigned int nr,
			       u64 max_bytes, bool write, long *timeo)
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

	pin = xrds_pin_alloc(pages, write);
	if (!pin)
		return ERR_PTR(-ENOMEM);
	ret = xrds_pin_charge(rs, pages, timeo);
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
	xrds_limit_uncharge(rs->xn, rs->user, XRDS_LIMIT_PINNED,
			    pages << PAGE_SHIFT);
err_free:
	kvfree(pin);
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
	/* as many users as possible may have their file systems hold theirs up */
	xrds_pin_wq = alloc_workqueue("xrds_pin", WQ_UNBOUND,
				      WQ_UNBOUND_MAX_ACTIVE);
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
