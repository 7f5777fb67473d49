// SPDX-License-Identifier: GPL-2.0-only
/*
 * Behaviour of devices that needs a workaround.
 *
 * Nothing here asks which driver a device has. xrds_ib_quirks_probe() examines
 * the device when it is added, and the other files read the result in
 * ibdev->quirks, which is constant.
 *
 * A device that is given kernel addresses in place of DMA addresses is a
 * software device: its driver copies the data on a CPU. The known ones are
 * soft-RoCE and the drivers on rdmavt. The faults of soft-RoCE are assumed of
 * each software device; the workarounds do no harm to a device without the
 * fault:
 *
 * - Fences. Soft-RoCE counts the reads in progress, and a fence waits until
 *   there are none. When it has lost a packet, it begins again with the oldest
 *   work request that is not acknowledged. If that one has a fence, and a read
 *   behind it was in progress as well, the fence waits for a read that waits
 *   for the fence. No timer runs then, and no error comes. So no read may be
 *   posted behind a fence that is not acknowledged, see frag.c.
 * - The end of a key. Soft-RoCE checks the key of each packet first and copies
 *   then, and invalidating does not wait for a copy on another CPU. Destroying
 *   the region object does.
 * - The page list. Soft-RoCE (6.1) reads the entry behind the last page after
 *   it has copied that page, so the list needs one entry more.
 *
 * No other user in the kernel has a completion queue enlarged that is in use, and
 * Linux 7.1 has no call for it any more. The code of mlx5 for that, up to 7.0, puts
 * completions that wait into wrong slots. So only those of a software device are
 * enlarged, if it does that.
 *
 * Some drivers take atomics from programs only, and report each that the kernel
 * posts in the log. One is tried, on a queue pair that was never connected.
 *
 * Devices on rdmavt are not used. Their key 0 stands for all memory of the
 * kernel, and a peer that is connected to a queue pair of the kernel can use
 * it; and a key that is invalidated during a write stays valid for the rest of
 * that write. Their key for local DMA is 0, which no other known software
 * device has.
 */
#include "ib/ib.h"

enum {
	/* entries of the completion queue that is tried, and more of them */
	XRDS_IB_PROBE_CQE	= 16,
	XRDS_IB_PROBE_MORE_CQE	= 64,
};

static void xrds_ib_quirks_done(struct ib_cq *cq, struct ib_wc *wc)
{
}

/* Does the driver take an atomic? The queue pair has failed, so that no device
 * performs it.
 */
static bool xrds_ib_quirks_takes_atomic(struct ib_qp *qp)
{
	static struct ib_cqe cqe = { .done = xrds_ib_quirks_done };
	struct ib_sge sge = {
		.length	= sizeof(u64),
		.lkey	= qp->pd->local_dma_lkey,
	};
	struct ib_atomic_wr wr = {
		.wr.opcode	= IB_WR_ATOMIC_FETCH_AND_ADD,
		.wr.wr_cqe	= &cqe,
		.wr.sg_list	= &sge,
		.wr.num_sge	= 1,
	};
	struct ib_qp_attr attr = {
		.qp_state	= IB_QPS_INIT,
		.port_num	= rdma_start_port(qp->device),
	};

	/* if that is not possible, the device is believed */
	if (ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
				    IB_QP_PORT | IB_QP_ACCESS_FLAGS))
		return true;
	attr.qp_state = IB_QPS_ERR;
	return ib_modify_qp(qp, &attr, IB_QP_STATE) ||
	       !ib_post_send(qp, &wr.wr, NULL);
}

/* If the device does not destroy the queue pair, the completion queue stays in
 * use.
 */
static int xrds_ib_quirks_try_qp(struct xrds_ib_dev *ibdev, struct ib_cq *cq)
{
	struct ib_qp_init_attr attr = {
		.send_cq		= cq,
		.recv_cq		= cq,
		.sq_sig_type		= IB_SIGNAL_REQ_WR,
		.qp_type		= IB_QPT_RC,
		.cap.max_send_wr	= 1,
		.cap.max_send_sge	= 1,
		.cap.max_recv_wr	= 1,
		.cap.max_recv_sge	= 1,
	};
	struct ib_qp *qp = ib_create_qp(ibdev->pd, &attr);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	ibdev->quirks.no_atomics = !xrds_ib_quirks_takes_atomic(qp);
	ibdev->stuck = ib_destroy_qp(qp);
	if (ibdev->stuck)
		xrds_ib_rq_count(XRDS_IB_C_EP_STUCK);
	return 0;
}

/* Use a queue pair and a completion queue in the ways that not all devices
 * allow.
 */
static int xrds_ib_quirks_try(struct xrds_ib_dev *ibdev)
{
	struct ib_cq *cq;
	int ret;

	cq = ib_alloc_cq_any(ibdev->dev, NULL, XRDS_IB_PROBE_CQE,
			     IB_POLL_SOFTIRQ);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	ibdev->quirks.fixed_cqs = !ib_uses_virt_dma(ibdev->dev) ||
				  ib_resize_cq(cq, XRDS_IB_PROBE_MORE_CQE);
	ret = xrds_ib_quirks_try_qp(ibdev, cq);
	if (ibdev->stuck)
		xrds_ib_quirks_stop_cq(cq);
	else
		xrds_ib_quirks_free_cq(cq);
	return ret;
}

/**
 * xrds_ib_quirks_probe - examine the behaviour of a device
 * @ibdev: device with a protection domain; its quirks are set
 *
 * Context: process.
 * Return: 0; -EOPNOTSUPP when peers could reach memory that no key allows; an
 * errno of the driver.
 */
int xrds_ib_quirks_probe(struct xrds_ib_dev *ibdev)
{
	bool software = ib_uses_virt_dma(ibdev->dev);
	struct xrds_ib_quirks *quirks = &ibdev->quirks;

	if (software && !ibdev->pd->local_dma_lkey)
		return -EOPNOTSUPP;
	quirks->weak_fences = software;
	quirks->late_copies = software;
	quirks->spare_pages = software;
	return xrds_ib_quirks_try(ibdev);
}

/**
 * xrds_ib_quirks_stop_cq - nothing is called from a completion queue any more
 * @cq: completion queue with a softirq poller; it is lost if nobody frees it
 *
 * Context: process, may sleep.
 */
void xrds_ib_quirks_stop_cq(struct ib_cq *cq)
{
	irq_poll_disable(&cq->iop);
}

/**
 * xrds_ib_quirks_restart_cq - it was stopped, and can be freed after all
 * @cq: completion queue
 *
 * Context: process.
 */
void xrds_ib_quirks_restart_cq(struct ib_cq *cq)
{
	irq_poll_enable(&cq->iop);
}

/**
 * xrds_ib_quirks_free_cq - free a completion queue with a softirq poller
 * @cq: completion queue without queue pair
 *
 * ib_free_cq() waits until the poller says that it is done, but it says so
 * before it arms the queue for the last time. That is in softirq context, so a
 * grace period is behind it; nothing starts the poller again meanwhile.
 *
 * Context: process, may sleep.
 */
void xrds_ib_quirks_free_cq(struct ib_cq *cq)
{
	irq_poll_disable(&cq->iop);
	synchronize_rcu_expedited();
	irq_poll_enable(&cq->iop);
	ib_free_cq(cq);
}
