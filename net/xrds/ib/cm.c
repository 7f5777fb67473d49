// SPDX-License-Identifier: GPL-2.0-only
/*
 * The connection manager, both sides.
 *
 *   dial:    rdma_resolve_addr -> rdma_resolve_route -> queue pair,
 *            rdma_connect -> reply -> established
 *   accept:  request (cm_req.c) -> queue pair, rdma_accept -> established
 *   then:    start posts receive buffers and sends the hello
 *
 * Each step is taken by the connection's work item. A handler of the connection
 * manager runs with the manager's mutex held, so it only records an event and
 * returns. Requests are the exception: cm_req.c checks them in the handler.
 *
 * Private data tells which versions a node supports, see xrds-wire.rst. The
 * version belongs to the endpoint, and the code for hello, credits and fragment
 * size asks the endpoint; legacy.c has the differences of legacy versions.
 */
#include <rdma/ib_cm.h>

#include "ib/ib.h"

/* -------------------------------------------------- endpoint's handler */

static void xrds_ib_log_refused(struct xrds_ib_ep *ep, const char *why)
{
	struct xrds_addr_text text;

	net_info_ratelimited("xrds: %s: connection refused: %s\n",
			     xrds_addr_text(&ep->conn->key.faddr, &text), why);
}

/* Does the reply to our request come from the peer that was dialled? */
static int xrds_ib_replied(struct xrds_ib_ep *ep,
			   const struct rdma_conn_param *param)
{
	const struct xrds_conn_key *key = &ep->conn->key;
	struct xrds_wire_priv priv;
	enum xrds_wire_err err;
	int version;

	err = xrds_wire_priv_decode(&priv, param->private_data,
				    param->private_data_len,
				    xrds_ib_conn_v6(key));
	if (!err && (!ipv6_addr_equal(&priv.saddr, &key->faddr) ||
		     !ipv6_addr_equal(&priv.daddr, &key->laddr)))
		err = XRDS_WIRE_PRIV_ADDR;
	version = err ? 0 : xrds_wire_priv_version_chosen(&priv,
							  xrds_ib_legacy_mask());
	if (!err && (!version || !xrds_ib_legacy_set_version(ep, version)))
		err = XRDS_WIRE_PRIV_VERSION;
	if (err) {
		xrds_ib_count(ep->xin, XRDS_IB_C_CONNECT_BAD_PRIV);
		xrds_ib_event_wire_error(ep, err);
		return -EPROTO;
	}
	/* the event makes both visible to the worker, which sends after it */
	ep->ack = priv.ack;
	if (version != XRDS_VER_XRDS)
		ep->tx.payload = xrds_wire_priv_legacy_payload(&priv, version);
	return 0;
}

static void xrds_ib_established(struct xrds_ib_ep *ep,
				const struct rdma_conn_param *param)
{
	int ret = 0;

	if (!ep->passive) {
		/* it can send from here on, be its reply good or not */
		ep->peer_qpn = param->qp_num;
		ret = xrds_ib_replied(ep, param);
	}
	if (ret)
		xrds_ib_event_fail(ep, XRDS_EV_ERROR, ret);
	else
		xrds_conn_ep_event(ep->conn, ep->gen, XRDS_EV_ESTABLISHED, 0);
}

/* The peer may have disconnected because of an op of ours. Its device has
 * reported the error before, but that completion may not be processed yet.
 */
static void xrds_ib_disconnected(struct xrds_ib_ep *ep)
{
	xrds_ib_count(ep->xin, XRDS_IB_C_EP_DISCONNECTED);
	if (!xrds_ib_watch_fail_late(ep))
		xrds_ib_event_fail(ep, XRDS_EV_ERROR, -ECONNRESET);
}

static void xrds_ib_rejected(struct xrds_ib_ep *ep,
			     const struct rdma_cm_event *event)
{
	const char *why = rdma_reject_msg(ep->id, event->status);
	const struct rdma_conn_param *param = &event->param.conn;
	enum xrds_wire_reject reason = XRDS_REJECT_NONE;
	int error = -ECONNREFUSED;

	/* a peer that disconnects before its manager knows the connection to be
	 * established sends a reject
	 */
	if (READ_ONCE(ep->version)) {
		xrds_ib_disconnected(ep);
		return;
	}
	if (event->status == IB_CM_REJ_CONSUMER_DEFINED)
		reason = xrds_wire_reject_decode(param->private_data,
						 param->private_data_len);
	if (reason == XRDS_REJECT_CROSSED) {
		/* the peer's own request is on its way, so this is no failure
		 */
		error = -EALREADY;
	} else if (reason == XRDS_REJECT_VERSION) {
		why = "no common protocol version";
		if (!ep->old_offer) {
			WRITE_ONCE(ep->conn->legacy.old_offer, true);
			error = -EALREADY;
		}
	}
	/* log only the first failure in a row, see conn/attempt.c */
	if (error != -EALREADY && !READ_ONCE(ep->conn->failed))
		xrds_ib_log_refused(ep, why);
	xrds_ib_count(ep->xin, XRDS_IB_C_CONNECT_REJECTED);
	xrds_ib_event_fail(ep, XRDS_EV_ERROR, error);
}

/* Context: process, handler mutex of @id held; must not wait for the worker */
static int xrds_ib_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct xrds_ib_ep *ep = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		xrds_conn_ep_event(ep->conn, ep->gen, XRDS_EV_RESOLVED, 0);
		return 0;
	case RDMA_CM_EVENT_ESTABLISHED:
		xrds_ib_established(ep, &event->param.conn);
		break;
	case RDMA_CM_EVENT_REJECTED:
		xrds_ib_rejected(ep, event);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		xrds_ib_count(ep->xin, XRDS_IB_C_CONNECT_UNREACHABLE);
		xrds_ib_event_fail(ep, XRDS_EV_ERROR, -EHOSTUNREACH);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		xrds_ib_disconnected(ep);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		xrds_ib_event_fail(ep, XRDS_EV_ERROR, -EADDRNOTAVAIL);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		xrds_ib_event_fail(ep, XRDS_EV_REMOVED, -ENODEV);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		xrds_ib_event_fail(ep, XRDS_EV_ERROR, -ECONNABORTED);
		break;
	default:
		break;
	}
	/* the worker destroys the identifier */
	return 0;
}

/* -------------------------------------------------------------- dialling */

/* The identifier is bound first. rdma_resolve_addr() would do that as well, but
 * warns when the device is removed between its two steps; with a bound
 * identifier it only refuses to resolve.
 */
static int xrds_ib_resolve_addr(struct xrds_ib_ep *ep)
{
	const struct xrds_conn_key *key = &ep->conn->key;
	struct xrds_addr local = {
		.addr	= key->laddr,
		.scope	= key->scope,
	};
	struct xrds_addr peer = {
		.addr	= key->faddr,
		.scope	= key->scope,
		.port	= xrds_ib_conn_v6(key) ? XRDS_WIRE_PORT_V6 :
						 XRDS_WIRE_PORT_V4,
	};
	struct sockaddr_storage src, dst;
	int ret;

	xrds_addr_build(&local, &src);
	xrds_addr_build(&peer, &dst);
	ret = rdma_bind_addr(ep->id, (struct sockaddr *)&src);
	if (ret)
		return ret;
	ep->step = XRDS_IB_STEP_ADDR;
	return rdma_resolve_addr(ep->id, NULL, (struct sockaddr *)&dst,
				 READ_ONCE(ep->conn->xn->connect_timeout_ms));
}

/**
 * xrds_ib_cm_dial - start an attempt to connect
 * @conn: connection without endpoint
 *
 * Context: the connection's work.
 * Return: 0, XRDS_EV_RESOLVED or XRDS_EV_ERROR follows; or a negative errno.
 */
int xrds_ib_cm_dial(struct xrds_conn *conn)
{
	struct net *net = conn->xn->net;
	struct xrds_ib_ep *ep;
	struct rdma_cm_id *id;
	int ret;

	ep = xrds_ib_ep_alloc(conn);
	if (!ep)
		return -ENOMEM;
	/* an answer to a ping may wait, and no socket holds the namespace for
	 * it
	 */
	if (!maybe_get_net(net)) {
		xrds_ib_ep_destroy(ep);
		return -ENETDOWN;
	}
	id = rdma_create_id(net, xrds_ib_cm_event, ep, RDMA_PS_TCP, IB_QPT_RC);
	put_net(net);
	if (IS_ERR(id)) {
		xrds_ib_ep_destroy(ep);
		return PTR_ERR(id);
	}
	ep->id = id;
	ep->old_offer = READ_ONCE(conn->legacy.old_offer);
	rdma_set_service_type(id, conn->key.tos);
	xrds_ib_ep_publish(ep);

	ret = xrds_ib_resolve_addr(ep);
	if (ret) {
		xrds_ib_count(ep->xin, XRDS_IB_C_CONNECT_UNREACHABLE);
		xrds_ib_ep_destroy(ep);
	}
	return ret;
}

static void xrds_ib_fill_priv(const struct xrds_ib_ep *ep,
			      struct xrds_wire_priv *priv)
{
	const struct xrds_conn *conn = ep->conn;

	*priv = (struct xrds_wire_priv) {
		.saddr	= conn->key.laddr,
		.daddr	= conn->key.faddr,
		.mask	= xrds_ib_legacy_mask(),
		.tos	= conn->key.tos,
		.epoch	= conn->epoch,
		.ack	= xrds_legacy_ack(conn),
	};
}

/* RNR retries without end (7): a shared queue grants more buffers than it has
 * posted, a legacy peer grants no credits, and buffers of an own queue count as
 * posted a moment before they are. A peer that posts none is ended by the watch.
 */
static void xrds_ib_fill_param(const struct xrds_ib_ep *ep,
			       struct rdma_conn_param *param)
{
	const struct ib_device_attr *attrs = &ep->ibdev->dev->attrs;

	*param = (struct rdma_conn_param) {
		.responder_resources = min_t(u32, XRDS_IB_RD_ATOMIC,
					     max(attrs->max_qp_rd_atom, 0)),
		.initiator_depth = min_t(u32, XRDS_IB_RD_ATOMIC,
					 max(attrs->max_qp_init_rd_atom, 0)),
		.retry_count = READ_ONCE(ep->xin->retry_count),
		.rnr_retry_count = 7,
	};
}

static int xrds_ib_connect(struct xrds_ib_ep *ep)
{
	u8 data[XRDS_WIRE_PRIV_V6_BYTES];
	struct rdma_conn_param param;
	struct xrds_wire_priv priv;
	int ret;

	/* a request without route can break the port, see cm_id.c */
	if (!xrds_ib_cm_id_up(ep->id)) {
		xrds_ib_count(ep->xin, XRDS_IB_C_CONNECT_UNREACHABLE);
		return -ENETDOWN;
	}
	ret = xrds_ib_ep_setup(ep);
	if (ret) {
		xrds_ib_count(ep->xin, XRDS_IB_C_CONNECT_SETUP_ERROR);
		return ret;
	}
	xrds_ib_fill_priv(ep, &priv);
	priv.major = ep->old_offer && !priv.tos ? 3 : 4;
	priv.minor = 1;
	priv.payload = XRDS_WIRE_CLASSIC_MAX_PAYLOAD;
	xrds_ib_fill_param(ep, &param);
	param.private_data = data;
	param.private_data_len =
		xrds_wire_priv_encode(data, &priv,
				      xrds_ib_conn_v6(&ep->conn->key));

	ep->step = XRDS_IB_STEP_CONNECT;
	WRITE_ONCE(ep->conn->legacy.old_offer, false);
	return rdma_connect(ep->id, &param);
}

/**
 * xrds_ib_cm_advance - a step of resolving is done
 * @conn: connection that dials
 *
 * Context: the connection's work.
 * Return: -EINPROGRESS while steps remain, 0 when the request was sent, or
 * another negative errno.
 */
int xrds_ib_cm_advance(struct xrds_conn *conn)
{
	int timeout = READ_ONCE(conn->xn->connect_timeout_ms);
	struct xrds_ib_ep *ep = conn->ep;
	int ret;

	switch (ep->step) {
	case XRDS_IB_STEP_ADDR:
		ep->step = XRDS_IB_STEP_ROUTE;
		ret = rdma_resolve_route(ep->id, timeout);
		return ret ?: -EINPROGRESS;
	case XRDS_IB_STEP_ROUTE:
		return xrds_ib_connect(ep);
	default:
		return -EINVAL;
	}
}

/* ------------------------------------------------------------- accepting */

/* Make the request's identifier the endpoint's. */
static int xrds_ib_take_over(struct xrds_ib_ep *ep, struct xrds_ib_cm_req *req)
{
	struct rdma_cm_id *id = req->id;
	int ret = 0;

	rdma_lock_handler(id);
	if (req->withdrawn)
		ret = -ECONNRESET;
	id->context = ep;
	id->event_handler = xrds_ib_cm_event;
	ep->id = id;
	rdma_unlock_handler(id);
	return ret;
}

static int xrds_ib_reply(struct xrds_ib_ep *ep,
			 const struct xrds_ib_cm_req *req)
{
	u8 data[XRDS_WIRE_PRIV_V6_BYTES];
	struct rdma_conn_param param;
	struct xrds_wire_priv priv;
	int ret;

	xrds_ib_fill_priv(ep, &priv);
	priv.major = ep->version >> 8;
	priv.minor = ep->version & 0xff;
	if (!xrds_ib_ep_xrds(ep))
		priv.payload = ep->tx.payload;
	xrds_ib_fill_param(ep, &param);
	param.responder_resources = min(param.responder_resources,
					req->responder);
	param.initiator_depth = min(param.initiator_depth, req->initiator);
	param.private_data = data;
	param.private_data_len =
		xrds_wire_priv_encode(data, &priv,
				      xrds_ib_conn_v6(&ep->conn->key));

	ep->step = XRDS_IB_STEP_CONNECT;
	rdma_lock_handler(ep->id);
	ret = rdma_accept(ep->id, &param);
	rdma_unlock_handler(ep->id);
	return ret;
}

/**
 * xrds_ib_cm_accept - accept the request that waits
 * @conn: connection without endpoint
 *
 * Context: the connection's work.
 * Return: 0, XRDS_EV_ESTABLISHED or XRDS_EV_ERROR follows; or a negative
 * errno, then the request is refused.
 */
int xrds_ib_cm_accept(struct xrds_conn *conn)
{
	struct xrds_request *base = xrds_conn_take_pending(conn);
	struct xrds_ib_cm_req *req;
	struct xrds_ib_ep *ep;
	int ret;

	if (!base)
		return -ENOENT;
	req = container_of(base, struct xrds_ib_cm_req, base);
	ep = xrds_ib_ep_alloc(conn);
	if (!ep) {
		xrds_ib_cm_req_refuse(conn, base);
		return -ENOMEM;
	}
	ep->passive = true;
	ep->version = req->version;
	ep->ack = req->ack;
	ep->peer_qpn = req->peer_qpn;
	/* the endpoint is half open in place of the request */
	atomic_inc(&req->xin->half_open);
	set_bit(XRDS_IB_HALF_OPEN, &ep->once);

	ret = xrds_ib_take_over(ep, req);
	if (ret) {
		xrds_ib_count(ep->xin, XRDS_IB_C_CONNECT_WITHDRAWN);
		goto out;
	}
	/* like a request, a reply without route can break the port */
	if (!xrds_ib_cm_id_up(ep->id)) {
		xrds_ib_count(ep->xin, XRDS_IB_C_CONNECT_UNREACHABLE);
		ret = -ENETDOWN;
		goto out;
	}
	ret = xrds_ib_ep_setup(ep);
	if (ret) {
		xrds_ib_count(ep->xin, XRDS_IB_C_CONNECT_SETUP_ERROR);
		goto out;
	}
	ep->tx.payload = req->payload;
	xrds_ib_ep_publish(ep);
	ret = xrds_ib_reply(ep, req);
out:
	xrds_ib_cm_req_free(req);
	/* destroying an identifier that was not accepted refuses the request */
	if (ret)
		xrds_ib_ep_destroy(ep);
	return ret;
}

/**
 * xrds_ib_cm_start - the connection is established: grant the peer credits
 * @conn: connection with an endpoint
 *
 * Context: the connection's work.
 * Return: 0 or a negative errno.
 */
int xrds_ib_cm_start(struct xrds_conn *conn)
{
	struct xrds_ib_ep *ep = conn->ep;
	int ret;

	/* The peer's first message may have come before the last one of the
	 * connection manager. The queue pair accepts that. rdma_notify() is not
	 * called on purpose: after it the manager forgets to cancel its reply
	 * if the connection ends at that moment, repeats the reply for a
	 * minute, and for as long the identifier cannot be destroyed.
	 */
	ret = xrds_ib_rq_grow(ep->rq, ep);
	if (ret)
		return ret;
	/* its own request was the answer to the one that it has refused */
	WRITE_ONCE(conn->legacy.old_offer, false);
	if (xrds_ib_ep_xrds(ep))
		return xrds_ib_send_hello(ep);
	xrds_ib_event_not_half_open(ep);
	xrds_legacy_start(conn, ep->gen, ep->ack);
	return 0;
}
