/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * XRDS over RDMA: a device's objects for memory regions, and the functions that
 * register and unregister regions. ib.h includes it.
 */
#ifndef _XRDS_IB_MR_H
#define _XRDS_IB_MR_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/dma-direction.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/rwsem.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

struct xrds_ib_dev;
struct xrds_ib_net;
struct xrds_mr;
struct xrds_user;

/* --------------------------------------------------------------- regq.c */

/**
 * struct xrds_ib_regq - registration queue of a device
 * @sem:	readers post, a writer makes the queue pair or destroys it
 * @avail:	work requests that can still be posted
 * @wait:	woken when @avail rises, or @broken is set
 * @nr_left:	work requests that xrds_ib_regq_settle() is to be called for
 * @cq:		completion queue, or NULL; @sem
 * @qp:		queue pair, connected to itself, or NULL; @sem
 * @gen:	number of queue pairs that were destroyed; @sem
 * @broken:	it has failed and must be replaced; set by readers
 * @hung:	the device did not answer; set by readers
 * @retry_at:	jiffies when it may be tried again after that
 */
struct xrds_ib_regq {
	struct rw_semaphore sem;
	atomic_t avail;
	wait_queue_head_t wait;
	atomic_t nr_left;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u32 gen;
	bool broken;
	bool hung;
	unsigned long retry_at;
};

/**
 * struct xrds_ib_regwr - a work request for the registration queue
 * @cqe:	completion
 * @done:	completed when the work request is
 * @brief:	the caller does not wait long: it exits, or closes the socket
 * @status:	result
 * @posted:	the device may still have it, and nobody waits for that
 * @gen:	regq->gen when it was posted
 * @deadline:	jiffies when the device should have completed it
 * @wr:		IB_WR_LOCAL_INV
 * @reg:	IB_WR_REG_MR
 */
struct xrds_ib_regwr {
	struct ib_cqe cqe;
	struct completion done;
	bool brief;
	enum ib_wc_status status;
	bool posted;
	u32 gen;
	unsigned long deadline;
	union {
		struct ib_send_wr wr;
		struct ib_reg_wr reg;
	};
};

void xrds_ib_regq_init(struct xrds_ib_regq *regq);
void xrds_ib_regq_exit(struct xrds_ib_dev *ibdev);
int xrds_ib_regq_do(struct xrds_ib_dev *ibdev, struct xrds_ib_regwr *w);
void xrds_ib_regq_settle(struct xrds_ib_dev *ibdev, struct xrds_ib_regwr *w);

/* ---------------------------------------------------------------- key.c */

/**
 * struct xrds_ib_key - the number and the pages of a region
 * @node:	in xrds_ib_keys_tree, by @rkey and @first
 * @rkey:	number, as the device knows it
 * @first:	first page, as peers count
 * @end:	the page behind the last one; 0: not in the tree
 */
struct xrds_ib_key {
	struct rb_node node;
	u32 rkey;
	u32 first;
	u32 end;
};

int xrds_ib_key_init(void);
void xrds_ib_key_exit(void);
int xrds_ib_key_draw(struct xrds_ib_key *key, u32 rkey, u32 pages);
void xrds_ib_key_retire(struct xrds_ib_key *key, const struct xrds_user *user);

/* --------------------------------------------------------------- frwr.c */

/**
 * struct xrds_ib_mr_pool - objects for memory regions that have no region
 * @lock:	guards the rest
 * @stuck:	objects that the device did not destroy, or may still be using,
 *		with their memory
 * @work:	destroys those in @stuck
 * @free:	objects to be used again, longest unused first
 * @nr:		length of @free
 * @pages:	pages that all of them together can hold
 */
struct xrds_ib_mr_pool {
	spinlock_t lock;		/* stuck, free, nr, pages */
	struct list_head stuck;
	struct work_struct work;
	struct list_head free;
	u32 nr;
	u32 pages;
};

/**
 * struct xrds_ib_frwr - a memory region object of the device
 * @entry:	in ibdev->mr_pool while it has no region
 * @mr:		the object
 * @pages:	number of pages it can hold
 * @w:		work request that makes its key valid or invalid
 * @sgt:	memory of the region that it had, while it is stuck
 * @dir:	direction in which that is mapped for the device, or DMA_NONE
 */
struct xrds_ib_frwr {
	struct list_head entry;
	struct ib_mr *mr;
	u32 pages;
	struct xrds_ib_regwr w;
	struct sg_table sgt;
	enum dma_data_direction dir;
};

struct xrds_ib_frwr *xrds_ib_frwr_get(struct xrds_ib_net *xin,
				      struct xrds_ib_dev *ibdev, u32 pages);
void xrds_ib_frwr_put(struct xrds_ib_dev *ibdev, struct xrds_ib_frwr *frwr);
bool xrds_ib_frwr_dereg(struct xrds_ib_dev *ibdev, struct xrds_ib_frwr *frwr);
void xrds_ib_frwr_stick(struct xrds_ib_dev *ibdev, struct xrds_ib_frwr *frwr);
u32 xrds_ib_frwr_page_bytes(const struct xrds_ib_dev *ibdev);
u32 xrds_ib_frwr_entries(const struct xrds_ib_dev *ibdev, u32 pages);
void xrds_ib_frwr_init(struct xrds_ib_mr_pool *pool);
void xrds_ib_frwr_exit(struct xrds_ib_dev *ibdev);

/* ----------------------------------------------------------------- mr.c */

int xrds_ib_mr_reg(struct xrds_mr *mr);
void xrds_ib_mr_unreg(struct xrds_mr *mr);
void xrds_ib_mr_remove_all(struct xrds_ib_dev *ibdev, u32 lost);
void xrds_ib_mr_remove_moved(struct xrds_ib_dev *ibdev);
void xrds_ib_mr_may_move(void);

#endif /* _XRDS_IB_MR_H */
