// SPDX-License-Identifier: GPL-2.0-only
/*
 * Endpoints: one life of one queue pair.
 *
 *   alloc -> setup -> publish -> (hello both ways, traffic) -> destroy
 *
 * An endpoint is made by its connection's work item when that dials or accepts,
 * and destroyed by it. It reports events to the connection, with the generation
 * it was made for, and never changes the connection's state itself. It has
 * references on its connection, on its device once that is known, and on its
 * receive queue.
 *
 * conn->ep refers to the endpoint while the core may send through it. It is
 * also found by the handler of the connection manager (id->context), the
 * completion queue (cq->cq_context), the device's list, the receive queue's
 * list, and its own two works. Destruction has three steps:
 *
 * make_dead: conn->ep is cleared under tx_lock, so nothing is posted any more;
 * ep->dead is set, so completions only return their buffers; the endpoint
 * leaves the two lists, each under the lock that their readers hold.
 *
 * drain: the queue pair goes to the error state, in which each posted work
 * request completes. A marker at the end of the send queue, and one in the
 * receive queue if the endpoint has its own, tell when all have. With a shared
 * receive queue there is no marker. Posted buffers stay with that queue. The
 * buffers that this queue pair took have their completions in the completion
 * queue before the marker of the send queue, or within the time that destroying
 * the queue pair takes, or they are lost, see rq.c. The wait is bounded, as a
 * completion queue that has failed has no completions any more: the destruction
 * of the queue pair ends all of its work requests as well. The works of a failed
 * device's connections would together keep those of all others from running. So
 * after one that is late its endpoints wait for a moment only, and lose one time-out
 * together. ib_drain_qp() is not used: it waits without bound, and on newer kernels
 * up to a minute for the event "last work request reached", which some drivers never
 * send.
 *
 * destroy: the queue pair is destroyed first, then the works are cancelled,
 * because events of the queue pair start the watch. The remaining completions
 * are read, then the completion queue is freed with its poller: see
 * xrds_ib_quirks_free_cq(). From then on no completion refers to the endpoint,
 * and send contexts, headers and incomplete messages are freed. Then comes the
 * identifier, see cm_id.c; its destruction waits for its handler. Last is the
 * reference on the receive queue. If the device does not destroy the queue pair,
 * the endpoint's memory stays with that, see stuck.c.
 *
 * No step needs the peer, and each waits for the device only: neither a dead
 * peer nor the removal of a device holds it up.
 */
#include "ib/ib.h"

/* --------------------------------------------------------------- events */

/* Asynchronous event of the queue pair. Some drivers report it from their
 * interrupt handler, where conn->lock cannot be taken: the watch does the rest.
 * After an invalid request of the peer the driver may not have sent the error
 * answer yet, and would not send it after the queue pair goes to the error
 * state; but the answer tells the peer which op is guilty. The peer then
 * disconnects, mostly long before the delay is over.
 */
static void xrds_ib_ep_qp_event(struct ib_event *event, void *context)
{
	struct xrds_ib_ep *ep = context;
	unsigned int ms = 0;

	switch (event->event) {
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
		ms = XRDS_IB_NAK_MS;
		fallthrough;
	case IB_EVENT_QP_FATAL:
		xrds_ib_count(ep->xin, XRDS_IB_C_EP_QP_EVENT);
		set_bit(XRDS_IB_QP_ERROR, &ep->once);
		mod_delayed_work(xrds_ib_wq, &ep->watch,
				 msecs_to_jiffies(ms));
		break;
	default:
		/* The event that the peer's first message came before the
		 * connection manager's is handled by xrds_ib_cm_start(); see
		 * above for the last work request.
		 */
		break;
	}
}

/* ---------------------------------------------------------------- setup */

/**
 * xrds_ib_ep_alloc - allocate an endpoint
 * @conn: connection that dials or accepts
 *
 * Context: the connection's work.
 * Return: the endpoint, without device and queue pair, or NULL.
 */
struct xrds_ib_ep *xrds_ib_ep_alloc(struct xrds_conn *conn)
{
	struct xrds_ib_ep *ep;

	ep = kzalloc(sizeof(*ep), GFP_KERNEL);
	if (!ep)
		return NULL;
	xrds_conn_get(conn);
	atomic_inc(&conn->xn->nr_on_devices);
	ep->conn = conn;
	ep->xin = xrds_ib_net(conn->xn->net);
	/* it changes only when the connection's work stops an endpoint */
	ep->gen = READ_ONCE(conn->ep_gen);
	INIT_LIST_HEAD(&ep->dev_entry);
	INIT_LIST_HEAD(&ep->rq_entry);
	xrds_ib_count(ep->xin, XRDS_IB_C_EP_CREATED);
	return ep;
}

/* Until the peer's hello an own queue has only the buffer for it. */
static int xrds_ib_ep_setup_rq(struct xrds_ib_ep *ep)
{
	/* all namespaces use the same shared queue */
	const struct xrds_ib_net *first = xrds_ib_net(&init_net);
	struct xrds_ib_dev *ibdev = ep->ibdev;
	struct xrds_ib_rq *rq = ERR_PTR(-EOPNOTSUPP);
	u32 window = ep->tx.window;

	if (ibdev->shared)
		rq = xrds_ib_rq_get_shared(ibdev, &xrds_ib_recv_ops,
					   READ_ONCE(first->max_recv_wr),
					   READ_ONCE(first->recv_window));
	/* it may have no more of them, or none although it advertises them */
	if (IS_ERR(rq) && PTR_ERR(rq) != -ENODEV)
		rq = xrds_ib_rq_create(ibdev, &xrds_ib_recv_ops, window);
	if (IS_ERR(rq))
		return PTR_ERR(rq);
	ep->rq = rq;
	/* not more than the whole queue, which the device may limit */
	ep->tx.window = min(window, rq->max_bufs);
	ep->tx.share = rq->srq ? XRDS_IB_FIRST_CREDITS : ep->tx.window;
	return rq->srq ? 0 : xrds_ib_recv_init(ep);
}

static int xrds_ib_ep_setup_qp(struct xrds_ib_ep *ep)
{
	struct ib_device *dev = ep->ibdev->dev;
	u32 nr_recv = READ_ONCE(ep->rq->cq_bufs);
	struct xrds_ib_tx *tx = &ep->tx;
	struct ib_qp_init_attr attr = {
		.event_handler	= xrds_ib_ep_qp_event,
		.qp_context	= ep,
		.srq		= ep->rq->srq,
		.sq_sig_type	= IB_SIGNAL_REQ_WR,
		.qp_type	= IB_QPT_RC,
		.cap.max_send_wr  = xrds_ib_sq_max_wr(tx),
		.cap.max_send_sge = max(tx->sge, tx->op_sge),
	};
	struct ib_cq *cq;
	int ret;

	if (!ep->rq->srq) {
		/* the buffer for the hello, and the marker of the drain */
		nr_recv = tx->window + 2;
		attr.cap.max_recv_wr = nr_recv;
		attr.cap.max_recv_sge = xrds_ib_rq_max_sge(ep->rq);
	}

	/* all work requests can complete without overrun */
	cq = ib_alloc_cq_any(dev, ep, attr.cap.max_send_wr + nr_recv + 1,
			     IB_POLL_SOFTIRQ);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	ep->cq = cq;
	attr.send_cq = cq;
	attr.recv_cq = cq;

	ret = xrds_ib_rq_attach(ep->rq, ep);
	if (ret)
		return ret;
	ret = rdma_create_qp(ep->id, ep->ibdev->pd, &attr);
	if (ret)
		return ret;
	ep->qp = ep->id->qp;
	if (ep->rq->srq)
		return 0;
	ep->rq->qp = ep->qp;
	return xrds_ib_recv_post_hello(ep);
}

/* From here on the removal of the device, and a move or the end of the address, end the
 * endpoint. One since the identifier was bound is seen here.
 */
static int xrds_ib_ep_setup_dev(struct xrds_ib_ep *ep)
{
	int ret;

	ret = xrds_ib_dev_add_ep(ep->ibdev, ep);
	if (ret)
		return ret;
	/* pairs with the one in xrds_ib_lost_addr() */
	smp_mb();
	return xrds_ib_dev_conn_gone(ep->conn) ||
	       xrds_ib_dev_conn_moved(ep->ibdev, ep->conn) ? -EADDRNOTAVAIL : 0;
}

/**
 * xrds_ib_ep_setup - give an endpoint a queue pair
 * @ep: endpoint whose identifier is bound to a device
 *
 * Context: the connection's work.
 * Return: 0 or a negative errno; xrds_ib_ep_destroy() undoes it in either
 * case.
 */
int xrds_ib_ep_setup(struct xrds_ib_ep *ep)
{
	int ret;

	ep->ibdev = xrds_ib_dev_find(ep->id->device);
	if (!ep->ibdev)
		return -ENODEV;
	ret = xrds_ib_send_init(ep);
	if (!ret)
		ret = xrds_ib_ep_setup_dev(ep);
	if (!ret)
		ret = xrds_ib_ep_setup_rq(ep);
	if (!ret)
		ret = xrds_ib_ep_setup_qp(ep);
	if (ret)
		return ret;

	/* these take effect when the queue pair is connected */
	ret = rdma_set_ack_timeout(ep->id, READ_ONCE(ep->xin->ack_timeout));
	if (!ret)
		ret = rdma_set_min_rnr_timer(ep->id, IB_RNR_TIMER_000_64);
	return ret;
}

/**
 * xrds_ib_ep_publish - let the core find an endpoint
 * @ep: endpoint
 *
 * Context: the connection's work.
 */
void xrds_ib_ep_publish(struct xrds_ib_ep *ep)
{
	spin_lock_bh(&ep->conn->tx_lock);
	ep->conn->ep = ep;
	spin_unlock_bh(&ep->conn->tx_lock);
}

/**
 * xrds_ib_ep_describe - an endpoint's row of RDS_INFO_IB_CONNECTIONS
 * @conn: connection that is up
 * @row: result
 *
 * Context: any, tx_lock held, which keeps the endpoint.
 */
void xrds_ib_ep_describe(const struct xrds_conn *conn,
			 struct rds6_info_rdma_connection *row)
{
	const struct xrds_ib_ep *ep = conn->ep;
	const struct ib_device_attr *attrs = &ep->ibdev->dev->attrs;
	union ib_gid src, dst;

	/* it reads constant data after the route was resolved, and takes no
	 * lock
	 */
	rdma_read_gids(ep->id, &src, &dst);
	memcpy(row->src_gid, &src, sizeof(row->src_gid));
	memcpy(row->dst_gid, &dst, sizeof(row->dst_gid));
	if (ep->id->route.path_rec)
		row->sl = ep->id->route.path_rec->sl;
	row->max_send_wr = ep->tx.nr;
	row->max_recv_wr = ep->tx.window;
	row->max_send_sge = ep->tx.sge;
	row->rdma_mr_max = attrs->max_mr;
	row->rdma_mr_size = attrs->max_fast_reg_page_list_len;
}

/**
 * xrds_ib_ep_detail - an endpoint's attributes for the netlink family
 * @conn: connection whose hello was sent
 * @d: result, zeroed
 *
 * Context: any, tx_lock held, which keeps the endpoint.
 */
void xrds_ib_ep_detail(const struct xrds_conn *conn, struct xrds_conn_detail *d)
{
	const struct xrds_ib_ep *ep = conn->ep;
	const struct sa_path_rec *path = ep->id->route.path_rec;

	strscpy(d->device, ep->ibdev->dev->name, sizeof(d->device));
	d->shared_rq = ep->rq->srq;
	d->qpn = ep->qp->qp_num;
	d->peer_qpn = ep->peer_qpn;
	d->version = READ_ONCE(ep->version);
	/* constant since the route was resolved */
	if (path)
		d->mtu = ib_mtu_enum_to_int(path->mtu);
	d->fragment = ep->tx.payload;
	d->send_slots = ep->tx.nr;
	d->send_used = ep->tx.used;
	d->credits = ep->tx.credits;
	d->recv_window = ep->tx.window;
	d->retry_count = READ_ONCE(ep->xin->retry_count);
	d->rtt_ns = ep->tx.rtt_ns;
}

/* ------------------------------------------------------------- teardown */

static void xrds_ib_ep_make_dead(struct xrds_ib_ep *ep)
{
	struct xrds_conn *conn = ep->conn;

	WRITE_ONCE(ep->dead, true);
	spin_lock_bh(&conn->tx_lock);
	if (conn->ep == ep)
		conn->ep = NULL;
	spin_unlock_bh(&conn->tx_lock);

	if (ep->ibdev)
		xrds_ib_dev_del_ep(ep->ibdev, ep);
	if (ep->rq)
		xrds_ib_rq_detach(ep->rq, ep);
}

static void xrds_ib_ep_reap(struct xrds_ib_ep *ep)
{
	/* it runs beside the softirq poller: that is safe once ep->dead is set
	 */
	ib_process_cq_direct(ep->cq, ep->cq->cqe);
}

static void xrds_ib_ep_marker_done(struct ib_cq *cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct xrds_ib_marker, cqe)->done);
}

/* Both queues have space for it. */
static int xrds_ib_ep_post_markers(struct xrds_ib_ep *ep)
{
	struct ib_rdma_wr last_send = {
		.wr.opcode	= IB_WR_RDMA_WRITE,
		.wr.wr_cqe	= &ep->sq_end.cqe,
	};
	struct ib_recv_wr last_recv = { .wr_cqe = &ep->rq_end.cqe };
	int ret;

	init_completion(&ep->sq_end.done);
	init_completion(&ep->rq_end.done);
	ep->sq_end.cqe.done = xrds_ib_ep_marker_done;
	ep->rq_end.cqe.done = xrds_ib_ep_marker_done;
	ret = ib_post_send(ep->qp, &last_send.wr, NULL);
	if (ret)
		return ret;
	if (!ep->rq->srq)
		return ib_post_recv(ep->qp, &last_recv, NULL);
	complete(&ep->rq_end.done);
	return 0;
}

/* Wait until all that was posted has completed. Returns false if the device did
 * not report that in time. Then the next ones have little time, and as long as they
 * are late as well, those behind them.
 */
static bool xrds_ib_ep_wait_drained(struct xrds_ib_ep *ep)
{
	unsigned long *until = &ep->ibdev->brief_until;
	bool brief = time_before(jiffies, READ_ONCE(*until));
	unsigned long left = msecs_to_jiffies(brief ? XRDS_IB_DRAIN_BRIEF_MS :
						      XRDS_IB_DRAIN_MS);

	left = wait_for_completion_timeout(&ep->sq_end.done, left);
	if (left && wait_for_completion_timeout(&ep->rq_end.done, left))
		return true;
	WRITE_ONCE(*until, jiffies + msecs_to_jiffies(XRDS_IB_DRAIN_REST_MS));
	return false;
}

/* Returns whether the device has done with all that was posted. */
static bool xrds_ib_ep_drain(struct xrds_ib_ep *ep)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	bool drained;

	if (xrds_ib_cm_id_up(ep->id))
		rdma_disconnect(ep->id);
	/* rdma_disconnect() does this first: no harm */
	ib_modify_qp(ep->qp, &attr, IB_QP_STATE);
	xrds_ib_ep_reap(ep);
	drained = !xrds_ib_ep_post_markers(ep) && xrds_ib_ep_wait_drained(ep);
	if (!drained)
		xrds_ib_count(ep->xin, XRDS_IB_C_EP_DRAIN_LATE);
	/* with the queue pair mlx4 and mlx5 drop its entries in the completion
	 * queue, and with them buffers of a shared receive queue
	 */
	xrds_ib_ep_reap(ep);
	return drained;
}

/* End the queue pair; returns false if the device did not destroy it. */
static bool xrds_ib_ep_destroy_qp(struct xrds_ib_ep *ep)
{
	bool drained = xrds_ib_ep_drain(ep), destroyed;

	rdma_destroy_qp(ep->id);
	/* rdma_cm does not say it, but each queue pair counts as a user */
	destroyed = !atomic_read(&ep->cq->usecnt);
	if (!destroyed) {
		xrds_ib_count(ep->xin, XRDS_IB_C_EP_STUCK);
		xrds_ib_stuck_add(ep->rq, ep);
	}
	cancel_delayed_work_sync(&ep->watch);
	cancel_work_sync(&ep->bulk_work);
	/* it does not use memory any more when all has completed */
	if (!destroyed && !drained)
		xrds_ib_sq_keep_memory(ep);
	return destroyed;
}

/* Could the peer's device send? It can after the reply, of either side. */
static bool xrds_ib_ep_reached(const struct xrds_ib_ep *ep)
{
	return ep->passive ? ep->step == XRDS_IB_STEP_CONNECT : ep->peer_qpn;
}

/* May the peer's manager know of it? */
static bool xrds_ib_ep_asked(const struct xrds_ib_ep *ep)
{
	return ep->passive || ep->step == XRDS_IB_STEP_CONNECT;
}

/* A message that the peer had begun to send may have taken a buffer, the first
 * message as well.
 */
static bool xrds_ib_ep_lossy(const struct xrds_ib_ep *ep)
{
	return xrds_ib_ep_reached(ep) && !ep->rx.bye && !ep->rx.bye_ack;
}

/**
 * xrds_ib_ep_destroy - end an endpoint, at any stage of its setup
 * @ep: endpoint
 *
 * Context: the connection's work.
 */
void xrds_ib_ep_destroy(struct xrds_ib_ep *ep)
{
	struct xrds_conn *conn = ep->conn;
	struct xrds_ib_rq *rq = ep->rq;
	bool stuck = false;

	xrds_ib_ep_make_dead(ep);

	if (ep->qp)
		stuck = !xrds_ib_ep_destroy_qp(ep);
	if (ep->cq && !stuck) {
		xrds_ib_ep_reap(ep);
		xrds_ib_quirks_free_cq(ep->cq);
	}
	/* no completion runs, and none will */
	if (ep->ibdev) {
		xrds_ib_sq_free(ep);
		xrds_ib_recv_free(ep);
	}
	if (rq)
		xrds_ib_share_return(ep);
	if (rq && xrds_ib_ep_lossy(ep))
		xrds_ib_rq_lost(rq);
	/* no handler runs behind this, and none will */
	if (ep->id)
		xrds_ib_cm_id_destroy(ep->id, xrds_ib_ep_asked(ep));
	xrds_ib_event_not_half_open(ep);
	if (ep->ibdev)
		xrds_ib_dev_put(ep->ibdev);

	atomic_dec(&conn->xn->nr_on_devices);
	xrds_ib_count(ep->xin, XRDS_IB_C_EP_FREED);
	/* a stuck one is now its receive queue's */
	if (!stuck)
		kfree(ep);
	if (rq)
		xrds_ib_rq_put(rq);
	xrds_conn_put(conn);
}

/**
 * xrds_ib_ep_stop - end the endpoint of a connection, if it has one
 * @conn: connection
 *
 * Context: the connection's work.
 */
void xrds_ib_ep_stop(struct xrds_conn *conn)
{
	/* only the connection's work changes it */
	if (conn->ep)
		xrds_ib_ep_destroy(conn->ep);
}
