// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reports of an endpoint to its connection.
 *
 * An endpoint never changes the state of its connection. It reports an event,
 * with the generation (ep->gen) that it was made for, and the connection's work
 * item acts on it. The first error of an endpoint is the one that counts.
 */
#include "ib/ib.h"

/**
 * xrds_ib_event_fail - report that an endpoint must end
 * @ep: endpoint
 * @ev: XRDS_EV_ERROR or XRDS_EV_REMOVED
 * @error: reason, negative errno
 *
 * The first error counts.
 *
 * Context: any, without conn->lock.
 */
void xrds_ib_event_fail(struct xrds_ib_ep *ep, enum xrds_event ev, int error)
{
	if (ev == XRDS_EV_ERROR &&
	    (READ_ONCE(ep->dead) || test_and_set_bit(XRDS_IB_FAILED,
						     &ep->once)))
		return;
	xrds_conn_ep_event(ep->conn, ep->gen, ev, error);
}

/**
 * xrds_ib_event_wire_error - report that the peer broke the protocol
 * @ep: endpoint
 * @err: the violation
 *
 * Context: any, without conn->lock.
 */
void xrds_ib_event_wire_error(struct xrds_ib_ep *ep, enum xrds_wire_err err)
{
	if (READ_ONCE(ep->dead) || test_and_set_bit(XRDS_IB_FAILED, &ep->once))
		return;
	xrds_conn_wire_error(ep->conn, ep->gen, err);
}

/**
 * xrds_ib_event_not_half_open - the peer has said hello, or never will
 * @ep: endpoint
 *
 * Context: any.
 */
void xrds_ib_event_not_half_open(struct xrds_ib_ep *ep)
{
	if (test_and_clear_bit(XRDS_IB_HALF_OPEN, &ep->once))
		atomic_dec(&ep->xin->half_open);
}

/**
 * xrds_ib_event_wc_errno - the error of a failed completion
 * @wc: completion
 *
 * Context: any.
 * Return: negative errno.
 */
int xrds_ib_event_wc_errno(const struct ib_wc *wc)
{
	switch (wc->status) {
	case IB_WC_RETRY_EXC_ERR:
	case IB_WC_RESP_TIMEOUT_ERR:
		return -ETIMEDOUT;
	case IB_WC_WR_FLUSH_ERR:
		return -ECONNRESET;
	case IB_WC_RNR_RETRY_EXC_ERR:
		return -ENOBUFS;
	case IB_WC_REM_INV_REQ_ERR:
	case IB_WC_REM_ACCESS_ERR:
	case IB_WC_REM_OP_ERR:
	case IB_WC_REM_ABORT_ERR:
		return -EREMOTEIO;
	default:
		return -EIO;
	}
}
