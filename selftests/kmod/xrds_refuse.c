// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests: RDMA devices that refuse work requests.
 *
 * Soft-RoCE takes each request unless the queue is full, and then XRDS posts
 * nothing. This stands between the two and refuses one request of so many,
 * with the errno of a full queue; those before it in the same chain have been
 * posted, as a driver does it. Queue pairs of other types than those of
 * connections, the connection manager's above all, are spared, and so are
 * requests of ib_drain_qp(): it relies on them, and warns when one is refused.
 *
 * All devices must be of one driver; loading fails otherwise.
 */
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <rdma/ib_verbs.h>

static unsigned int send, recv;
module_param(send, uint, 0644);
MODULE_PARM_DESC(send, "Which of the send requests are refused; 0: none");
module_param(recv, uint, 0644);
MODULE_PARM_DESC(recv, "Which of the receive requests are refused; 0: none");

static atomic_t sends, recvs, refused_sends, refused_recvs;

static int refused_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(kp->arg));
}

static const struct kernel_param_ops refused_ops = { .get = refused_get };

module_param_cb(refused_sends, &refused_ops, &refused_sends, 0444);
MODULE_PARM_DESC(refused_sends, "How many send requests were refused");
module_param_cb(refused_recvs, &refused_ops, &refused_recvs, 0444);
MODULE_PARM_DESC(refused_recvs, "How many receive requests were refused");

/* The driver's own, of all devices */
static struct {
	enum rdma_driver_id driver_id;
	int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *first,
			 const struct ib_send_wr **bad);
	int (*post_recv)(struct ib_qp *qp, const struct ib_recv_wr *first,
			 const struct ib_recv_wr **bad);
	int (*post_srq_recv)(struct ib_srq *srq, const struct ib_recv_wr *first,
			     const struct ib_recv_wr **bad);
} real;

static bool mixed;

/* Only a request that drains a queue has no buffer and is not signalled. */
static bool send_spared(const struct ib_send_wr *wr)
{
	return !wr->num_sge && !(wr->send_flags & IB_SEND_SIGNALED);
}

static bool strike(unsigned int every, atomic_t *requests, atomic_t *refused)
{
	if (!every || atomic_inc_return(requests) % every)
		return false;
	atomic_inc(refused);
	return true;
}

static int refuse_post_send(struct ib_qp *qp, const struct ib_send_wr *first,
			    const struct ib_send_wr **bad)
{
	struct ib_send_wr *last = NULL;
	const struct ib_send_wr *wr;
	int ret = 0;

	for (wr = first; wr && qp->qp_type == IB_QPT_RC; wr = wr->next) {
		if (!send_spared(wr) &&
		    strike(READ_ONCE(send), &sends, &refused_sends))
			break;
		last = (struct ib_send_wr *)wr;
	}
	if (!wr || qp->qp_type != IB_QPT_RC)
		return real.post_send(qp, first, bad);
	/* posted ones may complete and be used again, so the chain stays cut */
	if (last) {
		last->next = NULL;
		ret = real.post_send(qp, first, bad);
	}
	if (ret)
		return ret;
	*bad = wr;
	return -ENOMEM;
}

/* The first request that is refused: those of the chain before it are taken */
static const struct ib_recv_wr *recv_cut(const struct ib_recv_wr *first)
{
	struct ib_recv_wr *last = NULL;
	const struct ib_recv_wr *wr;

	for (wr = first; wr; wr = wr->next) {
		if (wr->num_sge &&
		    strike(READ_ONCE(recv), &recvs, &refused_recvs))
			break;
		last = (struct ib_recv_wr *)wr;
	}
	if (wr && last)
		last->next = NULL;
	return wr;
}

static int refuse_post_srq_recv(struct ib_srq *srq,
				const struct ib_recv_wr *first,
				const struct ib_recv_wr **bad)
{
	const struct ib_recv_wr *wr = recv_cut(first);
	int ret = 0;

	if (wr != first)
		ret = real.post_srq_recv(srq, first, bad);
	if (ret || !wr)
		return ret;
	*bad = wr;
	return -ENOMEM;
}

static int refuse_post_recv(struct ib_qp *qp, const struct ib_recv_wr *first,
			    const struct ib_recv_wr **bad)
{
	const struct ib_recv_wr *wr = NULL;
	int ret = 0;

	if (qp->qp_type == IB_QPT_RC)
		wr = recv_cut(first);
	if (wr != first)
		ret = real.post_recv(qp, first, bad);
	if (ret || !wr)
		return ret;
	*bad = wr;
	return -ENOMEM;
}

static int refuse_add(struct ib_device *dev)
{
	if (real.post_send && real.driver_id != dev->ops.driver_id) {
		mixed = true;
		return -EOPNOTSUPP;
	}
	real.driver_id = dev->ops.driver_id;
	real.post_send = dev->ops.post_send;
	real.post_recv = dev->ops.post_recv;
	real.post_srq_recv = dev->ops.post_srq_recv;
	dev->ops.post_send = refuse_post_send;
	dev->ops.post_recv = refuse_post_recv;
	dev->ops.post_srq_recv = refuse_post_srq_recv;
	return 0;
}

static void refuse_remove(struct ib_device *dev, void *data)
{
	dev->ops.post_send = real.post_send;
	dev->ops.post_recv = real.post_recv;
	dev->ops.post_srq_recv = real.post_srq_recv;
}

static struct ib_client client = {
	.name	= "xrds_refuse",
	.add	= refuse_add,
	.remove	= refuse_remove,
};

static int __init xrds_refuse_init(void)
{
	int ret = ib_register_client(&client);

	if (!ret && mixed) {
		ib_unregister_client(&client);
		ret = -EOPNOTSUPP;
	}
	return ret;
}

static void __exit xrds_refuse_exit(void)
{
	ib_unregister_client(&client);
	/* nobody is in these functions any more, not even preempted */
	synchronize_rcu_tasks();
}

module_init(xrds_refuse_init);
module_exit(xrds_refuse_exit);
MODULE_DESCRIPTION("RDMA devices that refuse work requests");
MODULE_LICENSE("GPL");
