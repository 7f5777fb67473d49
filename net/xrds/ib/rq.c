// SPDX-License-Identifier: GPL-2.0-only
/*
 * The receive queue: its users and its size.
 *
 * One queue serves all endpoints of a device that can share one, else each
 * endpoint has its own. buf.c has the life of the buffers, share.c the credits
 * that stand for them.
 *
 * A peer that ignores its credits can take all buffers of a shared queue, and an
 * adapter stops a completion queue that overflows. So the completion queue of
 * each endpoint has entries for all buffers that may be posted, and is enlarged
 * before there are more of them.
 *
 * A device may lose a buffer when a queue pair ends between the first and the
 * last packet of a message: soft-RoCE forgets the buffer that was being filled,
 * and it never completes. Only the destruction of the shared queue brings it
 * back. So endpoints that do not end in order are counted, the queue posts one
 * more buffer for each, and after XRDS_IB_MAX_LOST of them new endpoints get a
 * new queue. The old queue is freed with its last endpoint. It ends its endpoints
 * when it has lost as many buffers as it may post, or when it is the one that
 * fewest use of more than XRDS_IB_MAX_OLD_RQS old queues. A queue that many
 * endpoints have enlarged is replaced as well when it has no user any more, as
 * posted buffers cannot be taken back in any other way, and so is one that was made
 * for another value of the sysctl.
 *
 * A device may give up a shared queue, which it reports. Then its endpoints end,
 * and new ones get another queue. An endpoint for which the device makes no
 * shared queue gets its own.
 *
 * rq->ep_lock guards the users, rq->lock the buffers and their target.
 */
#include <linux/kmemleak.h>

#include "ib/ib.h"

enum {
	/* endpoints that a shared queue has buffers for at first */
	XRDS_IB_FIRST_BUSY	= 4,
};

static u32 xrds_ib_rq_low_mark(const struct xrds_ib_rq *rq)
{
	return READ_ONCE(rq->target) / 4;
}

/* ------------------------------------------------------------ refilling */

/* Let the endpoints grant the credits that they had to withhold. */
static void xrds_ib_rq_grant(struct xrds_ib_rq *rq)
{
	struct xrds_ib_ep *ep;

	mutex_lock(&rq->ep_lock);
	list_for_each_entry(ep, &rq->eps, rq_entry)
		rq->ops->grant(ep);
	mutex_unlock(&rq->ep_lock);
}

/* Request an event before the device runs out of buffers; it comes once. */
static void xrds_ib_rq_arm(struct xrds_ib_rq *rq)
{
	struct ib_srq_attr attr = { .srq_limit = xrds_ib_rq_low_mark(rq) };

	/* nor while it is being destroyed: an event may have come late */
	if (!rq->srq || !attr.srq_limit || READ_ONCE(rq->stopped) ||
	    xchg(&rq->armed, true))
		return;
	/* some devices cannot; completions notice it as well, a little later */
	ib_modify_srq(rq->srq, &attr, IB_SRQ_LIMIT);
}

static void xrds_ib_rq_fill(struct xrds_ib_rq *rq)
{
	xrds_ib_buf_fill(rq);
	xrds_ib_rq_arm(rq);
}

/* The completion queue of an endpoint gets entries for so many buffers. */
static int xrds_ib_rq_fit_cq(const struct xrds_ib_ep *ep, u32 bufs)
{
	int cqe = xrds_ib_sq_max_wr(&ep->tx) + bufs + 1;

	return ep->cq->cqe < cqe ? ib_resize_cq(ep->cq, cqe) : 0;
}

/* The number of buffers that each completion queue has entries for: as many as
 * may be in the device's queue when so many are posted, or fewer if one of the
 * completion queues cannot be enlarged.
 */
static u32 xrds_ib_rq_fit_cqs(struct xrds_ib_rq *rq, u32 bufs)
{
	struct xrds_ib_ep *ep;
	u32 enough;

	lockdep_assert_held(&rq->ep_lock);

	bufs = min(bufs, rq->most_bufs);
	if (bufs <= rq->cq_bufs)
		return bufs;
	enough = min(max(bufs, 2 * rq->cq_bufs), rq->most_bufs);
	list_for_each_entry(ep, &rq->eps, rq_entry) {
		if (!xrds_ib_rq_fit_cq(ep, enough))
			continue;
		xrds_ib_rq_count(XRDS_IB_C_RQ_NO_CQ);
		/* as long as the queue is in use: that another try would
		 * succeed is not known
		 */
		rq->most_bufs = rq->cq_bufs;
		return rq->cq_bufs;
	}
	WRITE_ONCE(rq->cq_bufs, enough);
	return bufs;
}

static void xrds_ib_rq_set_target(struct xrds_ib_rq *rq, u32 target, u32 first,
				  u32 limit)
{
	spin_lock_bh(&rq->lock);
	if (rq->srq && target > rq->target && rq->target)
		xrds_ib_rq_count(XRDS_IB_C_RQ_WIDENED);
	WRITE_ONCE(rq->target, target);
	WRITE_ONCE(rq->first, first);
	WRITE_ONCE(rq->limit, limit);
	spin_unlock_bh(&rq->lock);
}

/* Set the target: as many buffers as the users' shares need, within limits. A
 * quarter of the queue is left for buffers that are being refilled, and as many as
 * may be missing before some are posted.
 */
static void xrds_ib_rq_retarget(struct xrds_ib_rq *rq)
{
	u32 users = clamp_t(u32, rq->nr_users, 2, XRDS_IB_FIRST_BUSY);
	u32 base, missing, target, most, extra = READ_ONCE(rq->extra);

	lockdep_assert_held(&rq->ep_lock);

	if (!rq->srq) {
		xrds_ib_rq_set_target(rq, rq->nr_users ? rq->window : 0, 0, 0);
		return;
	}
	base = min(users * rq->window, rq->max_bufs / 4);
	missing = max(base / 4, min_t(u32, base / 2, XRDS_IB_POST_DEFICIT));
	target = min(base + extra + extra / 2, rq->max_bufs) + rq->nr_lost;
	target = xrds_ib_rq_fit_cqs(rq, target);
	most = min(rq->max_bufs, rq->most_bufs - min(rq->nr_lost, rq->most_bufs));
	most -= most / 4;
	xrds_ib_rq_set_target(rq, target,
			      min3(rq->nr_users * XRDS_IB_FIRST_CREDITS,
				   base - missing, most),
			      most > base ? most - base : 0);
}

/* All endpoints of a queue end, and their connections are made anew. */
static void xrds_ib_rq_fail_eps(struct xrds_ib_rq *rq, int err)
{
	struct xrds_ib_ep *ep;

	lockdep_assert_held(&rq->ep_lock);

	list_for_each_entry(ep, &rq->eps, rq_entry)
		xrds_ib_event_fail(ep, XRDS_EV_ERROR, err);
}

/* The device has given up a shared queue: no endpoint receives from it. */
static void xrds_ib_rq_end_eps(struct xrds_ib_rq *rq)
{
	spin_lock_bh(&rq->lock);
	WRITE_ONCE(rq->stopped, true);
	spin_unlock_bh(&rq->lock);
	mutex_lock(&rq->ep_lock);
	xrds_ib_rq_fail_eps(rq, -EIO);
	mutex_unlock(&rq->ep_lock);
}

static void xrds_ib_rq_refill(struct work_struct *work)
{
	struct xrds_ib_rq *rq = container_of(to_delayed_work(work),
					     struct xrds_ib_rq, refill);
	bool withheld = false;

	if (READ_ONCE(rq->broken)) {
		xrds_ib_rq_end_eps(rq);
		return;
	}
	xrds_ib_rq_count(XRDS_IB_C_RQ_REFILL);
	if (rq->srq) {
		mutex_lock(&rq->ep_lock);
		xrds_ib_rq_retarget(rq);
		mutex_unlock(&rq->ep_lock);
		/* before it: a refill that finds no memory waits for its turn */
		withheld = xchg(&rq->withheld, false);
	}
	xrds_ib_rq_fill(rq);
	if (!rq->srq || withheld || xchg(&rq->withheld, false))
		xrds_ib_rq_grant(rq);
}

/* The device has fewer buffers than the limit that was set, or has given the
 * queue up. Context: any.
 */
static void xrds_ib_rq_event(struct ib_event *event, void *context)
{
	struct xrds_ib_rq *rq = context;

	switch (event->event) {
	case IB_EVENT_SRQ_LIMIT_REACHED:
		xrds_ib_rq_count(XRDS_IB_C_RQ_LIMIT);
		WRITE_ONCE(rq->armed, false);
		break;
	case IB_EVENT_SRQ_ERR:
		xrds_ib_rq_count(XRDS_IB_C_RQ_BROKEN);
		WRITE_ONCE(rq->broken, true);
		break;
	default:
		return;
	}
	xrds_ib_rq_kick_refill(rq, 0);
}

/**
 * xrds_ib_rq_failed - a receive has failed: the queue pair is broken
 * @rq: its receive queue
 *
 * A buffer that is posted to an endpoint's own queue now fails at once, and
 * would be posted again until the connection's work runs. A shared queue stays
 * in use by its other endpoints.
 *
 * Context: completions.
 */
void xrds_ib_rq_failed(struct xrds_ib_rq *rq)
{
	if (rq->srq)
		return;
	spin_lock_bh(&rq->lock);
	WRITE_ONCE(rq->stopped, true);
	spin_unlock_bh(&rq->lock);
}

/* ---------------------------------------------------------------- users */

/**
 * xrds_ib_rq_attach - an endpoint will receive from a queue
 * @rq: receive queue
 * @ep: endpoint with a completion queue and without a queue pair
 *
 * Context: process.
 * Return: 0; -EIO when the device has given the queue up; another negative errno
 * when it does not enlarge a completion queue.
 */
int xrds_ib_rq_attach(struct xrds_ib_rq *rq, struct xrds_ib_ep *ep)
{
	int ret = 0;

	mutex_lock(&rq->ep_lock);
	/* the queue may have got more buffers since that was made */
	if (rq->srq)
		ret = xrds_ib_rq_fit_cq(ep, rq->cq_bufs);
	/* else the refill will see the endpoint */
	if (READ_ONCE(rq->broken))
		ret = -EIO;
	if (!ret)
		list_add_tail(&ep->rq_entry, &rq->eps);
	mutex_unlock(&rq->ep_lock);
	return ret;
}

/**
 * xrds_ib_rq_grow - an endpoint is about to grant credits
 * @rq: receive queue
 * @ep: endpoint that was attached
 *
 * Context: process.
 * Return: 0; -ENOMEM when there is not a single buffer.
 */
int xrds_ib_rq_grow(struct xrds_ib_rq *rq, struct xrds_ib_ep *ep)
{
	mutex_lock(&rq->ep_lock);
	ep->granting = true;
	rq->nr_users++;
	/* the sysctl may have been raised since then, or be that of another
	 * namespace
	 */
	rq->window = max(rq->window, ep->tx.window);
	xrds_ib_rq_retarget(rq);
	mutex_unlock(&rq->ep_lock);
	/* a legacy peer sends without credits */
	if (rq->srq && !xrds_ib_ep_xrds(ep))
		xrds_ib_share_grow(ep, ep->tx.window);

	xrds_ib_rq_fill(rq);
	/* a broken queue reports its own error */
	return READ_ONCE(rq->nr_posted) || READ_ONCE(rq->stopped) ? 0 : -ENOMEM;
}

/* There are too many old queues: a peer may have made them so on purpose. The one
 * that fewest endpoints use ends them.
 */
static void xrds_ib_rq_end_old(struct xrds_ib_dev *ibdev)
{
	struct xrds_ib_rq *rq, *least = NULL;

	lockdep_assert_held(&ibdev->rq_lock);

	list_for_each_entry(rq, &ibdev->old_rqs, old_entry)
		if (!least || READ_ONCE(rq->nr_users) < READ_ONCE(least->nr_users))
			least = rq;
	xrds_ib_rq_count(XRDS_IB_C_RQ_ENDED);
	mutex_lock(&least->ep_lock);
	xrds_ib_rq_fail_eps(least, -ENOBUFS);
	mutex_unlock(&least->ep_lock);
}

/* The device's queue becomes an old one. The caller gets the device's reference
 * on it.
 */
static struct xrds_ib_rq *xrds_ib_rq_make_old(struct xrds_ib_dev *ibdev)
{
	struct xrds_ib_rq *rq = ibdev->rq;

	lockdep_assert_held(&ibdev->rq_lock);

	xrds_ib_rq_count(XRDS_IB_C_RQ_REPLACED);
	ibdev->rq = NULL;
	list_add_tail(&rq->old_entry, &ibdev->old_rqs);
	if (++ibdev->nr_old_rqs > XRDS_IB_MAX_OLD_RQS)
		xrds_ib_rq_end_old(ibdev);
	return rq;
}

/* New endpoints get another queue in place of this one, which is worn out. The
 * caller has a reference on it.
 */
static void xrds_ib_rq_retire(struct xrds_ib_rq *rq)
{
	struct xrds_ib_dev *ibdev = rq->ibdev;
	struct xrds_ib_rq *old = NULL;

	mutex_lock(&ibdev->rq_lock);
	if (ibdev->rq == rq)
		old = xrds_ib_rq_make_old(ibdev);
	mutex_unlock(&ibdev->rq_lock);
	if (old)
		xrds_ib_rq_put(old);
}

/**
 * xrds_ib_rq_detach - an endpoint grants nothing more
 * @rq: receive queue
 * @ep: endpoint that was attached
 *
 * When it returns the refill does not visit the endpoint any more.
 *
 * Context: process.
 */
void xrds_ib_rq_detach(struct xrds_ib_rq *rq, struct xrds_ib_ep *ep)
{
	bool last = false;

	mutex_lock(&rq->ep_lock);
	list_del_init(&ep->rq_entry);
	if (ep->granting) {
		ep->granting = false;
		rq->nr_users--;
		last = !rq->nr_users;
		xrds_ib_rq_retarget(rq);
	}
	mutex_unlock(&rq->ep_lock);

	if (rq->srq) {
		/* many had it, not just a busy one that may come back at once */
		if (last && READ_ONCE(rq->nr_posted) >
			    XRDS_IB_FIRST_BUSY * rq->window)
			xrds_ib_rq_retire(rq);
		return;
	}
	spin_lock_bh(&rq->lock);
	WRITE_ONCE(rq->stopped, true);
	spin_unlock_bh(&rq->lock);
	cancel_delayed_work_sync(&rq->refill);
}

/**
 * xrds_ib_rq_lost - an endpoint may have lost a buffer
 * @rq: its receive queue
 *
 * Context: process.
 */
void xrds_ib_rq_lost(struct xrds_ib_rq *rq)
{
	bool worn;

	if (!rq->srq)
		return;
	mutex_lock(&rq->ep_lock);
	/* Endpoints that had the queue before it was worn may add many more. A
	 * buffer that is really lost has left its place in the device's queue
	 * to another one. Above the limit the remaining endpoints are better
	 * off with another queue.
	 */
	worn = ++rq->nr_lost == XRDS_IB_MAX_LOST;
	if (rq->nr_lost + XRDS_IB_MAX_LOST > rq->most_bufs)
		xrds_ib_rq_fail_eps(rq, -ENOBUFS);
	xrds_ib_rq_retarget(rq);
	mutex_unlock(&rq->ep_lock);

	if (worn)
		xrds_ib_rq_retire(rq);
}

/* ------------------------------------------------------------- lifetime */

/**
 * xrds_ib_rq_max_sge - entries of a work request for a buffer
 * @rq: receive queue
 *
 * Context: any.
 * Return: the pages that a buffer may have.
 */
u32 xrds_ib_rq_max_sge(const struct xrds_ib_rq *rq)
{
	return 1U << (rq->order - rq->small_order);
}

/* The lowest order of pages of which @max_sge make a buffer */
static unsigned int xrds_ib_rq_small_order(unsigned int order, u32 max_sge)
{
	unsigned int most = ilog2(clamp(max_sge, 1U, XRDS_IB_BUF_PAGES));

	return order > most ? order - most : 0;
}

static int xrds_ib_rq_create_srq(struct xrds_ib_rq *rq, u32 max_bufs)
{
	struct xrds_ib_dev *ibdev = rq->ibdev;
	struct ib_srq_init_attr attr = {
		.event_handler	= xrds_ib_rq_event,
		.srq_context	= rq,
		.srq_type	= IB_SRQT_BASIC,
		.attr.max_sge	= xrds_ib_rq_max_sge(rq),
	};
	struct ib_srq *srq;

	/* sends have the other half of a completion queue */
	attr.attr.max_wr = min3(max_bufs + XRDS_IB_MAX_LOST,
				(u32)ibdev->dev->attrs.max_srq_wr,
				(u32)ibdev->dev->attrs.max_cqe / 2);
	if (attr.attr.max_wr <= 2 * XRDS_IB_MAX_LOST)
		return -EOPNOTSUPP;
	rq->max_bufs = attr.attr.max_wr - XRDS_IB_MAX_LOST;
	rq->most_bufs = attr.attr.max_wr;
	rq->cq_bufs = XRDS_IB_MAX_LOST +
		      (ibdev->quirks.fixed_cqs ? rq->max_bufs :
		       min(XRDS_IB_FIRST_BUSY * rq->window, rq->max_bufs));

	srq = ib_create_srq(ibdev->pd, &attr);
	if (IS_ERR(srq))
		return PTR_ERR(srq);
	rq->srq = srq;
	return 0;
}

static struct xrds_ib_rq *xrds_ib_rq_alloc(struct xrds_ib_dev *ibdev,
					   const struct xrds_ib_rq_ops *ops,
					   u32 max_sge, u32 max_bufs,
					   u32 window)
{
	struct xrds_ib_rq *rq;

	rq = kzalloc(sizeof(*rq), GFP_KERNEL);
	if (!rq)
		return NULL;
	refcount_set(&rq->ref, 1);
	rq->ops = ops;
	rq->ibdev = ibdev;
	rq->buf_bytes = xrds_ib_buf_bytes();
	rq->order = get_order(rq->buf_bytes);
	rq->small_order = xrds_ib_rq_small_order(rq->order, max_sge);
	rq->asked_bufs = max_bufs;
	rq->max_bufs = max_bufs;
	rq->window = window;
	INIT_DELAYED_WORK(&rq->refill, xrds_ib_rq_refill);
	mutex_init(&rq->ep_lock);
	INIT_LIST_HEAD(&rq->old_entry);
	INIT_LIST_HEAD(&rq->eps);
	INIT_LIST_HEAD(&rq->stuck);
	spin_lock_init(&rq->lock);
	INIT_LIST_HEAD(&rq->bufs);
	INIT_LIST_HEAD(&rq->ready);
	INIT_LIST_HEAD(&rq->empty);
	xrds_ib_page_ring_init(&rq->page_ring, max_bufs);
	xrds_ib_dev_get(ibdev);
	return rq;
}

/**
 * xrds_ib_rq_create - make a receive queue for one endpoint
 * @ibdev: device
 * @ops: the receive path
 * @window: buffers wanted once the endpoint has granted credits
 *
 * Context: process.
 * Return: the queue with one reference, or an ERR_PTR().
 */
struct xrds_ib_rq *xrds_ib_rq_create(struct xrds_ib_dev *ibdev,
				     const struct xrds_ib_rq_ops *ops,
				     u32 window)
{
	struct xrds_ib_rq *rq;

	rq = xrds_ib_rq_alloc(ibdev, ops, ibdev->dev->attrs.max_recv_sge,
			      window, window);
	return rq ?: ERR_PTR(-ENOMEM);
}

/* The queue is filled at once, so that the first message of each endpoint, for
 * which no credit was granted, finds a buffer.
 */
static struct xrds_ib_rq *
xrds_ib_rq_create_shared(struct xrds_ib_dev *ibdev,
			 const struct xrds_ib_rq_ops *ops,
			 u32 max_bufs, u32 window)
{
	struct xrds_ib_rq *rq;
	int ret;

	rq = xrds_ib_rq_alloc(ibdev, ops, ibdev->dev->attrs.max_srq_sge,
			      max_bufs, window);
	if (!rq)
		return ERR_PTR(-ENOMEM);
	ret = xrds_ib_rq_create_srq(rq, max_bufs);
	if (ret) {
		xrds_ib_rq_count(XRDS_IB_C_RQ_NO_SRQ);
		xrds_ib_rq_put(rq);
		return ERR_PTR(ret);
	}
	mutex_lock(&rq->ep_lock);
	xrds_ib_rq_retarget(rq);
	mutex_unlock(&rq->ep_lock);
	xrds_ib_rq_fill(rq);
	return rq;
}

/**
 * xrds_ib_rq_get_shared - the receive queue that endpoints of a device share
 * @ibdev: device with shared receive queues
 * @ops: the receive path
 * @max_bufs: most buffers; a queue that was made for another number is replaced
 * @window: buffers of a new queue for each endpoint
 *
 * Context: process.
 * Return: the queue with a reference, or an ERR_PTR().
 */
struct xrds_ib_rq *xrds_ib_rq_get_shared(struct xrds_ib_dev *ibdev,
					 const struct xrds_ib_rq_ops *ops,
					 u32 max_bufs, u32 window)
{
	struct xrds_ib_rq *rq, *old = NULL;

	mutex_lock(&ibdev->rq_lock);
	if (ibdev->rq && READ_ONCE(ibdev->rq->broken))
		swap(ibdev->rq, old);
	else if (ibdev->rq && ibdev->rq->asked_bufs != max_bufs)
		old = xrds_ib_rq_make_old(ibdev);
	rq = ibdev->rq;
	if (READ_ONCE(ibdev->removed))
		rq = ERR_PTR(-ENODEV);
	else if (!rq)
		rq = xrds_ib_rq_create_shared(ibdev, ops, max_bufs, window);
	if (!IS_ERR(rq)) {
		ibdev->rq = rq;
		refcount_inc(&rq->ref);
	}
	mutex_unlock(&ibdev->rq_lock);
	if (old)
		xrds_ib_rq_put(old);
	return rq;
}

/* ib_destroy_srq() does not tell whether the device has done it. */
static bool xrds_ib_rq_destroy_srq(const struct xrds_ib_rq *rq)
{
	return !rq->srq || !ib_destroy_srq_user(rq->srq, NULL);
}

/* The device keeps the queue for good. */
static void xrds_ib_rq_lose(struct xrds_ib_rq *rq)
{
	struct xrds_ib_dev *ibdev = rq->ibdev;

	xrds_ib_rq_count(XRDS_IB_C_RQ_STUCK);
	dev_warn_once(&ibdev->dev->dev,
		      "xrds: a receive queue was not destroyed, its memory stays\n");
	kmemleak_not_leak(rq);
	if (rq->srq)
		WRITE_ONCE(rq->srq->event_handler, NULL);
	cancel_delayed_work_sync(&rq->refill);
	WRITE_ONCE(ibdev->stuck, true);
	xrds_ib_dev_put(ibdev);
}

static void xrds_ib_rq_destroy(struct xrds_ib_rq *rq)
{
	if (!list_empty(&rq->old_entry)) {
		mutex_lock(&rq->ibdev->rq_lock);
		list_del_init(&rq->old_entry);
		rq->ibdev->nr_old_rqs--;
		mutex_unlock(&rq->ibdev->rq_lock);
	}

	/* make_dead: the refill finds nothing to do from now on */
	spin_lock_bh(&rq->lock);
	WRITE_ONCE(rq->stopped, true);
	spin_unlock_bh(&rq->lock);
	cancel_delayed_work_sync(&rq->refill);
	xrds_ib_page_ring_exit(&rq->page_ring);

	/* drain: the device returns the buffers, and sends no more events; or it
	 * has kept a queue pair or the queue, then it may use them for good
	 */
	if (!xrds_ib_stuck_retry(rq) || !xrds_ib_rq_destroy_srq(rq)) {
		xrds_ib_rq_lose(rq);
		return;
	}
	/* an event may have started it again */
	cancel_delayed_work_sync(&rq->refill);

	/* destroy: each queue pair that could fill a buffer held a reference,
	 * and its completion queue, which refers to buffers, was freed before
	 * that.
	 */
	xrds_ib_buf_free_all(rq);
	mutex_destroy(&rq->ep_lock);
	xrds_ib_dev_put(rq->ibdev);
	kfree(rq);
}

/**
 * xrds_ib_rq_put - drop a reference on a receive queue
 * @rq: queue
 *
 * Context: process; not the refill.
 */
void xrds_ib_rq_put(struct xrds_ib_rq *rq)
{
	if (refcount_dec_and_test(&rq->ref))
		xrds_ib_rq_destroy(rq);
}
