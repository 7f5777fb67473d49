// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shares: the credits that the users of a receive queue may have outstanding.
 *
 * Each credit of a peer stands for a buffer. With a queue of its own an endpoint
 * grants the buffers that are posted and not reserved. In a shared queue each
 * user has a share: the most credits that its peer may have outstanding. The
 * first few of each are hardly ever used by all peers at once, and there are
 * buffers for those of many peers, not of all. Above that:
 *
 *   half of a share is used              it doubles, up to the window and to the
 *                                        rest below the limit for the sum of shares
 *   there is no rest                     it grows to XRDS_IB_BUSY_CREDITS, still
 *   the sum is above the limit           a larger share shrinks to that, as far
 *                                        as the peer has used its credits
 *
 * The sum of the shares sets the number of buffers to be posted, up to the size of
 * the queue. Until they are posted, as well as after more were used than the
 * refill could replace, a peer with more than its first credits gets no new ones;
 * after the refill, rq->ops->grant() is called for the endpoints. So no SEND
 * fails to find a buffer while many peers are busy. Where more of them begin at the
 * same moment than there are buffers for, where even XRDS_IB_BUSY_CREDITS for each
 * are more than the queue has, or where memory is short, the RNR retry of a peer's
 * queue pair covers the time until the refill has caught up.
 *
 * rq->lock guards the shares and their sum, rq->extra.
 */
#include "ib/ib.h"

/* Are there buffers for all that the peers may send? Some of those may have been
 * used already: the sum is an upper limit.
 */
static bool xrds_ib_share_backed(const struct xrds_ib_rq *rq)
{
	u32 extra = min(READ_ONCE(rq->extra), READ_ONCE(rq->limit));

	return READ_ONCE(rq->nr_posted) >=
	       READ_ONCE(rq->first) + extra + READ_ONCE(rq->nr_lost);
}

static bool xrds_ib_share_crowded(const struct xrds_ib_rq *rq)
{
	return READ_ONCE(rq->extra) > READ_ONCE(rq->limit);
}

/**
 * xrds_ib_share_avail - the number of credits an endpoint may have outstanding
 * @rq: its receive queue
 * @share: its share
 *
 * Context: any.
 * Return: the number.
 */
u32 xrds_ib_share_avail(struct xrds_ib_rq *rq, u32 share)
{
	if (!rq->srq)
		return min(share, READ_ONCE(rq->nr_posted));
	if (share <= XRDS_IB_FIRST_CREDITS)
		return share;
	/* it will shrink */
	if (unlikely(xrds_ib_share_crowded(rq)))
		share = min_t(u32, share, XRDS_IB_BUSY_CREDITS);
	if (xrds_ib_share_backed(rq))
		return share;

	if (!READ_ONCE(rq->withheld)) {
		WRITE_ONCE(rq->withheld, true);
		xrds_ib_rq_count(XRDS_IB_C_RQ_LOW);
	}
	/* pairs with the barriers in xrds_ib_buf_post() and xrds_ib_share_wake() */
	smp_mb();
	return xrds_ib_share_backed(rq) ? share : XRDS_IB_FIRST_CREDITS;
}

/* There are to be more buffers, or credits need not be withheld any more. */
static void xrds_ib_share_wake(struct xrds_ib_rq *rq, bool more)
{
	/* pairs with the barrier in xrds_ib_share_avail() */
	smp_mb();
	if (more || READ_ONCE(rq->withheld))
		xrds_ib_rq_kick_refill(rq, 0);
}

static void xrds_ib_share_set(struct xrds_ib_ep *ep, u32 share)
{
	struct xrds_ib_rq *rq = ep->rq;

	lockdep_assert_held(&rq->lock);

	WRITE_ONCE(rq->extra, rq->extra + share - ep->tx.share);
	WRITE_ONCE(ep->tx.share, share);
}

/**
 * xrds_ib_share_grow - an endpoint wants a larger share
 * @ep: endpoint with a shared queue
 * @want: credits, not less than its share
 *
 * It gets that or, where the sum would be above the limit, the rest up to the
 * limit, but not less than a busy one needs.
 *
 * Context: process or completions, one at a time for an endpoint.
 */
void xrds_ib_share_grow(struct xrds_ib_ep *ep, u32 want)
{
	u32 left, share = ep->tx.share;
	struct xrds_ib_rq *rq = ep->rq;

	spin_lock_bh(&rq->lock);
	left = rq->limit > rq->extra ? rq->limit - rq->extra : 0;
	if (want - share > left) {
		xrds_ib_rq_count(XRDS_IB_C_RQ_CROWDED);
		want = max(share + left, min_t(u32, want, XRDS_IB_BUSY_CREDITS));
	}
	xrds_ib_share_set(ep, want);
	spin_unlock_bh(&rq->lock);
	xrds_ib_share_wake(rq, true);
}

/* The sum is above the limit, which a smaller share can mend, at least in part. */
static void xrds_ib_share_shrink(struct xrds_ib_ep *ep, u32 least)
{
	struct xrds_ib_rq *rq = ep->rq;
	u32 over;

	spin_lock_bh(&rq->lock);
	over = rq->extra > rq->limit ? rq->extra - rq->limit : 0;
	if (over)
		xrds_ib_rq_count(XRDS_IB_C_RQ_CROWDED);
	xrds_ib_share_set(ep, max(least, ep->tx.share -
					 min(over, ep->tx.share)));
	spin_unlock_bh(&rq->lock);
	xrds_ib_share_wake(rq, false);
}

/**
 * xrds_ib_share_fit - the peer of an endpoint has used a credit
 * @ep: endpoint
 * @busy: for a message, not for an acknowledgment or a heartbeat
 *
 * The lock is taken a few times in the life of an endpoint, or where the queue is
 * used up.
 *
 * Context: completions.
 */
void xrds_ib_share_fit(struct xrds_ib_ep *ep, bool busy)
{
	u32 share = ep->tx.share, outstanding = xrds_ib_ep_outstanding(ep);
	const struct xrds_ib_rq *rq = ep->rq;
	u32 least;

	if (!rq->srq || !xrds_ib_ep_xrds(ep))
		return;
	if (unlikely(xrds_ib_share_crowded(rq) && share > XRDS_IB_BUSY_CREDITS)) {
		least = max_t(u32, outstanding, XRDS_IB_BUSY_CREDITS);
		if (least < share)
			xrds_ib_share_shrink(ep, least);
	} else if (busy && outstanding <= share / 2 && share < ep->tx.window &&
		   (READ_ONCE(rq->extra) < READ_ONCE(rq->limit) ||
		    share < XRDS_IB_BUSY_CREDITS)) {
		xrds_ib_share_grow(ep, min(2 * share, ep->tx.window));
	}
}

/**
 * xrds_ib_share_return - an endpoint needs no buffers any more
 * @ep: endpoint with a receive queue and without completions
 *
 * Context: process.
 */
void xrds_ib_share_return(struct xrds_ib_ep *ep)
{
	struct xrds_ib_rq *rq = ep->rq;

	if (!rq->srq)
		return;
	spin_lock_bh(&rq->lock);
	xrds_ib_share_set(ep, XRDS_IB_FIRST_CREDITS);
	spin_unlock_bh(&rq->lock);
	xrds_ib_share_wake(rq, false);
}
