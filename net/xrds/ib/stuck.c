// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue pairs that their device does not destroy.
 *
 *   endpoint -> stuck, in rq->stuck -> destroyed with the receive queue, or lost
 *
 * A driver may fail to destroy a queue pair, for instance because its device has
 * failed and does not answer. The device may then go on to use the memory that
 * was posted, and to report events and completions. So the queue pair keeps its
 * completion queue, its shared receive queue with all buffers, and the memory of
 * its endpoint. Nothing is called for it any more: it has no event handler, and
 * the poller of its completion queue is disabled. All else of the endpoint ends
 * as always, and neither its connection nor a module waits.
 *
 * The end of the receive queue, at the latest the removal of the device, is the
 * time for a second attempt. If that fails as well, or if the device does not
 * destroy a shared receive queue, the receive queue, the protection domain and
 * this module's object for the device are lost on purpose.
 *
 * rq->ep_lock guards rq->stuck.
 */
#include <linux/vmalloc.h>

#include "ib/ib.h"

/**
 * xrds_ib_stuck_add - the device did not destroy a queue pair
 * @rq: the endpoint's receive queue
 * @ep: endpoint, detached from it
 *
 * Context: process, may sleep.
 */
void xrds_ib_stuck_add(struct xrds_ib_rq *rq, struct xrds_ib_ep *ep)
{
	struct ib_device *dev = rq->ibdev->dev;

	WRITE_ONCE(ep->qp->event_handler, NULL);
	xrds_ib_quirks_stop_cq(ep->cq);
	mutex_lock(&rq->ep_lock);
	list_add_tail(&ep->rq_entry, &rq->stuck);
	mutex_unlock(&rq->ep_lock);
	dev_warn_once(&dev->dev,
		      "xrds: a queue pair was not destroyed, its memory stays\n");
}

/**
 * xrds_ib_stuck_retry - try again to destroy the queue pairs of a receive queue
 * @rq: receive queue without endpoints
 *
 * Context: process, may sleep.
 * Return: whether the device has destroyed all of them.
 */
bool xrds_ib_stuck_retry(struct xrds_ib_rq *rq)
{
	struct xrds_ib_ep *ep, *tmp;

	list_for_each_entry_safe(ep, tmp, &rq->stuck, rq_entry) {
		if (ib_destroy_qp(ep->qp))
			continue;
		list_del(&ep->rq_entry);
		xrds_ib_quirks_restart_cq(ep->cq);
		xrds_ib_quirks_free_cq(ep->cq);
		if (ep->tx.kept)
			vfree(ep->tx.ring);
		kfree(ep);
	}
	return list_empty(&rq->stuck);
}
