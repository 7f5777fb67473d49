// SPDX-License-Identifier: GPL-2.0-only
/*
 * The watch over a send queue. It runs while the queue is not empty, or waits for
 * mappings, and when the queue pair has failed or its peer has gone.
 *
 * A work request without a signal, with none behind it for a while, is retired by
 * the completion of an empty write, the flush.
 *
 * A queue pair can get stuck without any completion, not even with an error.
 * Soft-RoCE's requester does so in two ways. It may wait because too many packets
 * are not acknowledged, or behind a fence; if the reason ends at the same moment on
 * another CPU, nothing wakes the requester, but the next work request does. So when
 * nothing has moved for a while, an empty write is posted: the nudge. And when a
 * packet finds no route while others wait for their acknowledgment, the requester
 * stops for good: then the endpoint is ended.
 *
 * conn->tx_lock guards the queue.
 */
#include "ib/ib.h"

enum {
	/* time without progress before the device is nudged */
	XRDS_IB_NUDGE_MS	= 500,
};

/**
 * xrds_ib_watch_flush_failed - an empty write has completed with an error
 * @ep: endpoint, which ends
 * @wc: completion
 *
 * The InfiniBand specification has the responder ignore the key of an empty write
 * (C9-88). Where a device does not, the next endpoint does without.
 *
 * Context: completions, with or without conn->tx_lock.
 */
void xrds_ib_watch_flush_failed(struct xrds_ib_ep *ep, const struct ib_wc *wc)
{
	struct xrds_addr_text text;

	if (xrds_ib_event_wc_errno(wc) != -EREMOTEIO)
		return;
	xrds_ib_count(ep->xin, XRDS_IB_C_TX_FLUSH_REFUSED);
	WRITE_ONCE(ep->conn->no_flush, true);
	net_info_ratelimited("xrds: %s: its device refuses empty writes, so each message has a completion\n",
			     xrds_addr_text(&ep->conn->key.faddr, &text));
}

/* Context: completions, or the drain of a dead endpoint */
static void xrds_ib_watch_nudged(struct ib_cq *cq, struct ib_wc *wc)
{
	struct xrds_ib_ep *ep = cq->cq_context;

	spin_lock_bh(&ep->conn->tx_lock);
	ep->tx.nudging = false;
	spin_unlock_bh(&ep->conn->tx_lock);
	if (wc->status == IB_WC_SUCCESS)
		return;
	xrds_ib_watch_flush_failed(ep, wc);
	xrds_ib_event_fail(ep, XRDS_EV_ERROR, xrds_ib_event_wc_errno(wc));
}

/* Make the device look at its queue, which has space for one more. */
static void xrds_ib_watch_nudge(struct xrds_ib_ep *ep)
{
	struct xrds_ib_tx *tx = &ep->tx;
	struct ib_send_wr *wr = &tx->nudge.wr;

	lockdep_assert_held(&ep->conn->tx_lock);

	if (tx->nudging || ep->conn->ep != ep || !tx->max_run)
		return;
	tx->nudge_cqe.done = xrds_ib_watch_nudged;
	wr->wr_cqe = &tx->nudge_cqe;
	wr->opcode = IB_WR_RDMA_WRITE;
	wr->send_flags = IB_SEND_SIGNALED;
	if (ib_post_send(ep->qp, wr, NULL))
		return;
	tx->nudging = true;
	xrds_ib_count(ep->xin, XRDS_IB_C_TX_NUDGED);
}

/* No posted work request is signalled, and none has followed for a while. The
 * completion of an empty write behind them retires them. There is a free send
 * context, because more than half of them are never without a signal. Nothing
 * is needed after the BYE or BYE_ACK, which is signalled.
 */
static int xrds_ib_watch_flush(struct xrds_ib_ep *ep)
{
	struct xrds_ib_sctx *sctx;

	lockdep_assert_held(&ep->conn->tx_lock);

	if (ep->conn->ep != ep)
		return 0;
	sctx = xrds_ib_sq_take(&ep->tx);
	sctx->wr.opcode = IB_WR_RDMA_WRITE;
	sctx->wr.num_sge = 0;
	sctx->rdma.remote_addr = 0;
	sctx->rdma.rkey = 0;
	xrds_ib_sq_signal(ep, sctx);
	xrds_ib_count(ep->xin, XRDS_IB_C_TX_FLUSHED);
	return xrds_ib_sq_post(ep, sctx);
}

/* Examine a queue that is not empty, that waits for mappings, or has failed. */
static void xrds_ib_watch_work(struct work_struct *work)
{
	struct xrds_ib_ep *ep = container_of(to_delayed_work(work),
					     struct xrds_ib_ep, watch);
	unsigned long nudge = msecs_to_jiffies(XRDS_IB_NUDGE_MS);
	struct xrds_ib_tx *tx = &ep->tx;
	bool busy, stalled;
	int ret = 0;

	if (test_bit(XRDS_IB_QP_ERROR, &ep->once) ||
	    test_bit(XRDS_IB_PEER_GONE, &ep->once)) {
		xrds_ib_event_fail(ep, XRDS_EV_ERROR,
				   test_bit(XRDS_IB_PEER_GONE, &ep->once) ?
				   -ECONNRESET : -EIO);
		return;
	}
	spin_lock_bh(&ep->conn->tx_lock);
	if (tx->used && !tx->nr_signaled && !tx->broken)
		ret = xrds_ib_watch_flush(ep);
	if (tx->unmapped && !tx->broken) {
		tx->unmapped = false;
		queue_work(xrds_ib_wq, &ep->bulk_work);
	}
	busy = tx->nr_signaled && !tx->broken;
	stalled = busy && time_after(jiffies, tx->progress + tx->stall);
	if (busy && !stalled && time_after(jiffies, tx->progress + nudge))
		xrds_ib_watch_nudge(ep);
	spin_unlock_bh(&ep->conn->tx_lock);

	if (ret) {
		xrds_ib_event_fail(ep, XRDS_EV_ERROR, ret);
	} else if (stalled) {
		xrds_ib_count(ep->xin, XRDS_IB_C_TX_STALLED);
		xrds_ib_event_fail(ep, XRDS_EV_ERROR, -ETIMEDOUT);
	} else if (busy) {
		queue_delayed_work(xrds_ib_wq, &ep->watch,
				   msecs_to_jiffies(XRDS_IB_WATCH_MS));
	}
}

/**
 * xrds_ib_watch_mapping - payload could not be mapped: try again before long
 * @ep: endpoint
 *
 * Context: any, conn->tx_lock held.
 */
void xrds_ib_watch_mapping(struct xrds_ib_ep *ep)
{
	lockdep_assert_held(&ep->conn->tx_lock);

	ep->tx.unmapped = true;
	/* an acknowledgment was to go with it */
	ep->conn->tx_ack_sent = 0;
	queue_delayed_work(xrds_ib_wq, &ep->watch,
			   msecs_to_jiffies(XRDS_IB_WATCH_MS));
}

/**
 * xrds_ib_watch_fail_late - give the device a moment to report the guilty op
 * @ep: endpoint whose peer has disconnected
 *
 * Context: any, without conn->tx_lock.
 * Return: true if an op is in progress; then the watch ends the endpoint.
 */
bool xrds_ib_watch_fail_late(struct xrds_ib_ep *ep)
{
	struct xrds_ib_tx *tx = &ep->tx;
	bool late = false;
	u16 n, i;

	spin_lock_bh(&ep->conn->tx_lock);
	/* else the guilty op is known, or the watch is about to be cancelled */
	if (ep->conn->ep == ep && !tx->broken) {
		for (n = 0, i = tx->tail; n < tx->used && !late; n++) {
			late = tx->ring[i].rop;
			i = i + 1 == tx->nr ? 0 : i + 1;
		}
	}
	if (late) {
		set_bit(XRDS_IB_PEER_GONE, &ep->once);
		mod_delayed_work(xrds_ib_wq, &ep->watch,
				 msecs_to_jiffies(XRDS_IB_NAK_MS));
	}
	spin_unlock_bh(&ep->conn->tx_lock);
	return late;
}

/* Longer than the device takes to report a dead peer, if it does. It may wait
 * for up to four times the time that it was given (InfiniBand specification,
 * 9.7.6.1.3).
 */
static unsigned long xrds_ib_watch_stall(const struct xrds_ib_net *xin)
{
	u64 retry_ns = 4096ULL << READ_ONCE(xin->ack_timeout);
	u64 all_ns = retry_ns * (READ_ONCE(xin->retry_count) + 1);

	return max(nsecs_to_jiffies(4 * all_ns),
		   msecs_to_jiffies(XRDS_IB_STALL_MS));
}

/**
 * xrds_ib_watch_init - prepare the watch of an endpoint
 * @ep: endpoint whose namespace is known; it cancels ep->watch at its end
 *
 * Context: process.
 */
void xrds_ib_watch_init(struct xrds_ib_ep *ep)
{
	ep->tx.stall = xrds_ib_watch_stall(ep->xin);
	INIT_DELAYED_WORK(&ep->watch, xrds_ib_watch_work);
}
