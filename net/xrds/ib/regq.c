// SPDX-License-Identifier: GPL-2.0-only
/*
 * The registration queue, which makes keys valid and invalid.
 *
 * A key is made valid by a work request, and a work request needs a connected
 * queue pair. Keys exist before any connection and outlive all of them, so each
 * device has a queue pair for nothing else, connected to itself; no packet
 * leaves it. It is made when the first region is registered.
 *
 *   none -> connected -> broken -> none
 *
 * A caller posts one work request and sleeps until it has completed. Readers of
 * regq->sem post; a writer makes the queue pair, or destroys it, while nothing
 * is being posted. regq->avail counts the free entries of the send queue.
 *
 * All waits are bounded, and a process that is killed or exits ends its own. close()
 * waits for a moment only. A device
 * that answers with an error breaks the queue, and the next caller makes another
 * one. A device that does not answer in time breaks it as well, and for a while
 * each caller gets an error at once: however many there are, they lose one
 * time-out together.
 *
 * A caller whose wait ends early leaves its work request with the device. It has
 * xrds_ib_regq_settle() called by a work item, which waits for the rest of the
 * time, and then destroys the queue pair. The result of the work request is then
 * unknown: the memory region must not be used again.
 */
#include <rdma/ib_cache.h>

#include "ib/ib.h"

enum {
	XRDS_IB_REGQ_DEPTH	= 64,
	/* of a work request, each time with the queue of another failure */
	XRDS_IB_REGQ_TRIES	= 3,
	XRDS_IB_REGQ_WAIT_MS	= 5000,
	/* the same for a process that exits, or closes a socket */
	XRDS_IB_REGQ_EXIT_MS	= 100,
	/* time without attempts after one that was not answered */
	XRDS_IB_REGQ_REST_MS	= 10000,
	XRDS_IB_REGQ_HOPS	= 64,
	XRDS_IB_REGQ_TIMEOUT	= 14,	/* 67 ms; nothing is ever lost */
	XRDS_IB_REGQ_RETRIES	= 6,
};

/* -------------------------------------------------------------- connect */

/* The route from an Ethernet port to itself, by its last address. The queue pair keeps
 * its place in the table when the address goes. The first places are for the default
 * addresses, which have no other ones: one of these is taken if there is nothing else.
 */
static int xrds_ib_regq_route_by(struct ib_device *dev, u32 port,
				 const struct ib_port_attr *pa,
				 enum ib_gid_type type,
				 struct rdma_ah_attr *ah)
{
	const struct ib_gid_attr *attr;
	union ib_gid gid;
	int i, ret = -ENODEV;

	for (i = pa->gid_tbl_len - 1; i >= 0 && ret; i--) {
		attr = rdma_get_gid_attr(dev, port, i);
		if (IS_ERR(attr))
			continue;
		/* ib_core looks this up for programs, but not for kernel users
		 */
		if (attr->gid_type == type)
			ret = rdma_read_gid_l2_fields(attr, NULL,
						      ah->roce.dmac);
		gid = attr->gid;
		if (!ret)
			rdma_ah_set_grh(ah, &gid, 0, i, XRDS_IB_REGQ_HOPS, 0);
		rdma_put_gid_attr(attr);
	}
	return ret;
}

/* Any address will do; old devices know the first version of RoCE only. */
static int xrds_ib_regq_route_roce(struct ib_device *dev, u32 port,
				   const struct ib_port_attr *pa,
				   struct rdma_ah_attr *ah)
{
	int ret = xrds_ib_regq_route_by(dev, port, pa,
					IB_GID_TYPE_ROCE_UDP_ENCAP, ah);

	return ret ? xrds_ib_regq_route_by(dev, port, pa, IB_GID_TYPE_ROCE, ah)
		   : 0;
}

/* Functions of one adapter may have the same LID: then packets need a GID. */
static int xrds_ib_regq_route_ib(struct ib_device *dev, u32 port,
				 const struct ib_port_attr *pa,
				 struct rdma_ah_attr *ah)
{
	union ib_gid gid;
	int ret;

	rdma_ah_set_dlid(ah, pa->lid);
	if (!rdma_is_grh_required(dev, port))
		return 0;
	ret = rdma_query_gid(dev, port, 0, &gid);
	if (!ret)
		rdma_ah_set_grh(ah, &gid, 0, 0, XRDS_IB_REGQ_HOPS, 0);
	return ret;
}

/* The route from a port of the device to itself: the first port that has one */
static int xrds_ib_regq_route(struct ib_device *dev, struct rdma_ah_attr *ah)
{
	struct ib_port_attr pa;
	int ret = -ENODEV;
	u32 port;

	rdma_for_each_port(dev, port) {
		if (ib_query_port(dev, port, &pa))
			continue;
		memset(ah, 0, sizeof(*ah));
		ah->type = rdma_ah_find_type(dev, port);
		rdma_ah_set_port_num(ah, port);
		if (rdma_protocol_roce(dev, port))
			ret = xrds_ib_regq_route_roce(dev, port, &pa, ah);
		else if (pa.lid)
			ret = xrds_ib_regq_route_ib(dev, port, &pa, ah);
		if (!ret)
			break;
	}
	return ret;
}

static int xrds_ib_regq_connect(struct ib_device *dev, struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.path_mtu		= IB_MTU_256,
		.dest_qp_num		= qp->qp_num,
		.max_rd_atomic		= 1,
		.max_dest_rd_atomic	= 1,
		.timeout		= XRDS_IB_REGQ_TIMEOUT,
		.retry_cnt		= XRDS_IB_REGQ_RETRIES,
		.rnr_retry		= XRDS_IB_REGQ_RETRIES,
	};
	int ret;

	ret = xrds_ib_regq_route(dev, &attr.ah_attr);
	if (ret)
		return ret;
	attr.port_num = rdma_ah_get_port_num(&attr.ah_attr);

	attr.qp_state = IB_QPS_INIT;
	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
				      IB_QP_PORT | IB_QP_ACCESS_FLAGS);
	if (ret)
		return ret;
	attr.qp_state = IB_QPS_RTR;
	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
				      IB_QP_DEST_QPN | IB_QP_RQ_PSN |
				      IB_QP_MAX_DEST_RD_ATOMIC |
				      IB_QP_MIN_RNR_TIMER);
	if (ret)
		return ret;
	attr.qp_state = IB_QPS_RTS;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT |
				       IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
				       IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

/* ------------------------------------------------------------- lifetime */

/* If the device does not destroy the queue pair, that is lost with its
 * completion queue, from which nothing is called any more.
 */
static void xrds_ib_regq_destroy(struct xrds_ib_dev *ibdev)
{
	struct xrds_ib_regq *regq = &ibdev->regq;

	lockdep_assert_held_write(&regq->sem);

	if (regq->qp && ib_destroy_qp(regq->qp)) {
		xrds_ib_quirks_stop_cq(regq->cq);
		ibdev->stuck = true;
		xrds_ib_rq_count(XRDS_IB_C_EP_STUCK);
	} else if (regq->cq) {
		xrds_ib_quirks_free_cq(regq->cq);
	}
	regq->qp = NULL;
	regq->cq = NULL;
	WRITE_ONCE(regq->gen, regq->gen + 1);
	WRITE_ONCE(regq->broken, false);
}

/* Work requests at a time. On soft-RoCE a LOCAL_INV waits for all of them before
 * it, and can miss the end of that wait, see watch.c.
 */
static int xrds_ib_regq_depth(const struct xrds_ib_dev *ibdev)
{
	return ibdev->quirks.weak_fences ? 1 : min_t(int, XRDS_IB_REGQ_DEPTH,
						   ibdev->dev->attrs.max_qp_wr);
}

static int xrds_ib_regq_create(struct xrds_ib_dev *ibdev)
{
	struct xrds_ib_regq *regq = &ibdev->regq;
	int depth = xrds_ib_regq_depth(ibdev);
	struct ib_qp_init_attr attr = {
		.sq_sig_type		= IB_SIGNAL_REQ_WR,
		.qp_type		= IB_QPT_RC,
		.cap.max_send_wr	= depth,
		.cap.max_send_sge	= 1,
		.cap.max_recv_wr	= 1,
		.cap.max_recv_sge	= 1,
	};
	struct ib_cq *cq;
	struct ib_qp *qp;
	int ret;

	lockdep_assert_held_write(&regq->sem);

	cq = ib_alloc_cq_any(ibdev->dev, regq, depth + 1, IB_POLL_SOFTIRQ);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	regq->cq = cq;
	attr.send_cq = cq;
	attr.recv_cq = cq;
	qp = ib_create_qp(ibdev->pd, &attr);
	if (IS_ERR(qp)) {
		xrds_ib_regq_destroy(ibdev);
		return PTR_ERR(qp);
	}
	regq->qp = qp;
	atomic_set(&regq->avail, depth);
	ret = xrds_ib_regq_connect(ibdev->dev, qp);
	if (ret)
		xrds_ib_regq_destroy(ibdev);
	return ret;
}

/* Make a queue pair that can be posted to, in place of a broken one or of none.
 */
static int xrds_ib_regq_renew(struct xrds_ib_dev *ibdev)
{
	struct xrds_ib_regq *regq = &ibdev->regq;

	lockdep_assert_held_write(&regq->sem);

	if (regq->qp && !regq->broken)
		return 0;
	if (regq->hung && time_before(jiffies, regq->retry_at))
		return -EIO;
	regq->hung = false;
	xrds_ib_regq_destroy(ibdev);
	return xrds_ib_regq_create(ibdev);
}

/**
 * xrds_ib_regq_init - prepare the registration queue of a device
 * @regq: zeroed queue
 *
 * Context: process.
 */
void xrds_ib_regq_init(struct xrds_ib_regq *regq)
{
	init_rwsem(&regq->sem);
	init_waitqueue_head(&regq->wait);
}

/**
 * xrds_ib_regq_exit - destroy the registration queue
 * @ibdev: device that nobody uses any more
 *
 * Context: process.
 */
void xrds_ib_regq_exit(struct xrds_ib_dev *ibdev)
{
	down_write(&ibdev->regq.sem);
	xrds_ib_regq_destroy(ibdev);
	up_write(&ibdev->regq.sem);
}

/* -------------------------------------------------------------- posting */

static void xrds_ib_regq_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct xrds_ib_regwr *w = container_of(wc->wr_cqe,
					       struct xrds_ib_regwr, cqe);
	struct xrds_ib_regq *regq = cq->cq_context;

	atomic_inc(&regq->avail);
	wake_up(&regq->wait);
	w->status = wc->status;
	complete(&w->done);
}

static void xrds_ib_regq_break(struct xrds_ib_regq *regq)
{
	WRITE_ONCE(regq->broken, true);
	wake_up_all(&regq->wait);
}

static void xrds_ib_regq_hang(struct xrds_ib_regq *regq)
{
	regq->retry_at = jiffies + msecs_to_jiffies(XRDS_IB_REGQ_REST_MS);
	WRITE_ONCE(regq->hung, true);
	xrds_ib_regq_break(regq);
}

/* Take an entry of the send queue; false while there is none. If somebody else's
 * work request has failed meanwhile this one needs another queue: -ESTALE.
 */
static bool xrds_ib_regq_take(struct xrds_ib_regq *regq, int *ret)
{
	*ret = READ_ONCE(regq->broken) ? -ESTALE : 0;
	return *ret || atomic_dec_if_positive(&regq->avail) >= 0;
}

/* An entry wakes one of those who wait. Returns as wait_event_killable_timeout(). */
static long xrds_ib_regq_wait(struct xrds_ib_regq *regq, int *ret, long timeout)
{
	long left;

	if (xrds_ib_regq_take(regq, ret))
		return timeout;
	left = ___wait_event(regq->wait,
			     ___wait_cond_timeout(xrds_ib_regq_take(regq, ret)),
			     TASK_KILLABLE, 1, timeout,
			     __ret = schedule_timeout(__ret));
	/* it may have been woken in the last moment, and nobody else was */
	return !left && xrds_ib_regq_take(regq, ret) ? 1 : left;
}

static int xrds_ib_regq_post(struct xrds_ib_regq *regq,
			     struct xrds_ib_regwr *w)
{
	unsigned long wait = msecs_to_jiffies(w->brief ? XRDS_IB_REGQ_EXIT_MS :
							 XRDS_IB_REGQ_WAIT_MS);
	int ret = 0;
	long left;

	lockdep_assert_held_read(&regq->sem);

	/* a process loses that time once, not for each of its regions */
	if (w->brief && atomic_read(&regq->nr_left))
		return -EINTR;
	left = xrds_ib_regq_wait(regq, &ret, wait);
	if (left <= 0)
		return left || w->brief ? -EINTR : -EIO;
	if (ret)
		return ret;
	w->gen = regq->gen;
	w->deadline = jiffies + msecs_to_jiffies(XRDS_IB_REGQ_WAIT_MS);
	ret = ib_post_send(regq->qp, &w->wr, NULL);
	if (ret) {
		xrds_ib_regq_break(regq);
		return ret;
	}
	left = wait_for_completion_killable_timeout(&w->done, wait);
	if (left > 0 && w->status == IB_WC_SUCCESS)
		return 0;
	if (left > 0) {
		xrds_ib_regq_break(regq);
		return w->status == IB_WC_WR_FLUSH_ERR ? -ESTALE : -EIO;
	}
	w->posted = true;
	atomic_inc(&regq->nr_left);
	if (left || w->brief)
		return -EINTR;
	xrds_ib_regq_hang(regq);
	return -EIO;
}

static int xrds_ib_regq_try(struct xrds_ib_dev *ibdev, struct xrds_ib_regwr *w)
{
	struct xrds_ib_regq *regq = &ibdev->regq;
	int ret;

	w->cqe.done = xrds_ib_regq_done;
	w->wr.wr_cqe = &w->cqe;
	w->wr.send_flags = IB_SEND_SIGNALED;
	w->posted = false;
	init_completion(&w->done);

	/* nor does one that is in a hurry make another queue */
	if (w->brief && !down_read_trylock(&regq->sem))
		return -EINTR;
	ret = w->brief ? 0 : down_read_killable(&regq->sem);
	if (ret)
		return ret;
	if (!regq->qp || READ_ONCE(regq->broken)) {
		up_read(&regq->sem);
		if (w->brief)
			return -EINTR;
		ret = down_write_killable(&regq->sem);
		if (ret)
			return ret;
		ret = xrds_ib_regq_renew(ibdev);
		downgrade_write(&regq->sem);
	}
	if (!ret)
		ret = xrds_ib_regq_post(regq, w);
	up_read(&regq->sem);
	return ret;
}

/**
 * xrds_ib_regq_do - post one work request and wait for it
 * @ibdev: device, with a reference
 * @w: work request; opcode, arguments and w->brief are set
 *
 * One that has failed takes the queue along. The others are posted again.
 *
 * After an error the device may still have the work request: then w->posted is
 * set, and xrds_ib_regq_settle() is to be called.
 *
 * Context: process, may sleep, bounded; ends early when the process is killed.
 * Return: 0; -EIO when the device did not do it, or did not answer; -EINTR when
 * the process is killed or exits; other negative errno when there is no queue.
 */
int xrds_ib_regq_do(struct xrds_ib_dev *ibdev, struct xrds_ib_regwr *w)
{
	int tries = XRDS_IB_REGQ_TRIES, ret;

	do {
		ret = xrds_ib_regq_try(ibdev, w);
	} while (ret == -ESTALE && --tries);
	return ret == -ESTALE ? -EIO : ret;
}

/**
 * xrds_ib_regq_settle - wait until the device does not have a work request
 * @ibdev: device
 * @w: work request; nothing is done unless w->posted is set
 *
 * Context: process, may sleep, bounded; for a work item.
 */
void xrds_ib_regq_settle(struct xrds_ib_dev *ibdev, struct xrds_ib_regwr *w)
{
	struct xrds_ib_regq *regq = &ibdev->regq;
	long left = w->deadline - jiffies;
	bool done;

	if (!w->posted)
		return;
	w->posted = false;
	done = wait_for_completion_timeout(&w->done, max(left, 0L));
	/* with its queue pair the work request has gone as well */
	if (!done && READ_ONCE(regq->gen) == w->gen) {
		xrds_ib_regq_hang(regq);
		down_write(&regq->sem);
		if (regq->gen == w->gen)
			xrds_ib_regq_destroy(ibdev);
		up_write(&regq->sem);
	}
	atomic_dec(&regq->nr_left);
}
