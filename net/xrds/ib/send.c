// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sending: messages and control messages become work requests, and their
 * completions come back.
 *
 * A message becomes one fragment or more, each with a header in front; the work
 * requests of its op (rdma.c), if it has one, go before them (frag.c). If send
 * contexts or credits are short, the rest waits until a completion frees send
 * contexts or the peer grants credits; the code that handles these events posts
 * the rest. So a message is either not taken at all, or sent as a whole unless
 * the endpoint ends.
 *
 * A completion is requested for the last fragment of a message with an op or
 * with much memory, for the last work request of a call if its message goes on,
 * for each max_unsignaled_wr-th, and for a control message with a buffer if no
 * other signal is pending or the buffer is the last. One of these, or the write
 * that the watch posts in the end (watch.c), retires the other work requests.
 *
 * Each header grants the credits that are available here. When nothing else is
 * sent to the peer and it has used half of its share, a header is sent alone.
 *
 * All of it runs under conn->tx_lock, in the context of a sender, or of
 * completions. It must never wait, and never allocate.
 */
#include "ib/ib.h"
#include "tracepoints.h"

/* ------------------------------------------------------------- control */

static bool xrds_ib_send_ctl_full(const struct xrds_ib_tx *tx)
{
	return tx->ctl_used == BIT(XRDS_IB_CTL_BUFS) - 1;
}

/* Write header and payload. The caller has checked that a buffer is free. */
static void xrds_ib_send_ctl_fill(struct xrds_ib_ep *ep,
				  struct xrds_ib_sctx *sctx,
				  const struct xrds_wire_msg *wm,
				  const void *data)
{
	u32 offset;
	void *hdr;

	if (wm->len) {
		sctx->ctl = ffz(ep->tx.ctl_used);
		ep->tx.ctl_used |= BIT(sctx->ctl);
	}
	hdr = xrds_ib_sq_hdr(ep, sctx, &offset);
	xrds_wire_hdr_encode(hdr, wm);
	xrds_wire_context_note(&ep->tx.ctx, wm);
	if (wm->len)
		memcpy(hdr + XRDS_WIRE_HDR_BYTES, data, wm->len);
	xrds_ib_sq_sync(ep, sctx, offset, XRDS_WIRE_HDR_BYTES + wm->len);
}

static int xrds_ib_send_ctl_post(struct xrds_ib_ep *ep,
				 struct xrds_wire_msg *wm, const void *data)
{
	struct xrds_ib_tx *tx = &ep->tx;
	struct xrds_ib_sctx *sctx;

	lockdep_assert_held(&ep->conn->tx_lock);

	sctx = xrds_ib_sq_take(tx);
	xrds_ib_send_ctl_fill(ep, sctx, wm, data);
	/* mainline RDS polls nothing until a solicited message comes, and we
	 * must know which acknowledgments it has got
	 */
	if (!xrds_ib_ep_xrds(ep)) {
		sctx->wr.send_flags |= IB_SEND_SOLICITED;
		xrds_ib_sq_signal(ep, sctx);
	}
	/* a control message without a buffer waits for a completion that frees
	 * one, and the end of the connection waits for the last completion
	 */
	tx->run++;
	if (xrds_ib_sq_wants_signal(ep, sctx) || tx->bye_sent || tx->closed ||
	    (wm->flags && !tx->nr_signaled) || xrds_ib_send_ctl_full(tx))
		xrds_ib_sq_signal(ep, sctx);
	xrds_ib_count(ep->xin, XRDS_IB_C_TX_CTL);
	return xrds_ib_sq_post(ep, sctx);
}

/* BYE and BYE_ACK follow all fragments, and are only sent where the peer can
 * receive them.
 */
static int xrds_ib_send_ctl_bye(struct xrds_ib_ep *ep, u8 type)
{
	struct xrds_ib_tx *tx = &ep->tx;

	if (tx->cursor[0].msg || tx->cursor[1].msg)
		return -EAGAIN;
	if (!xrds_ib_cm_id_up(ep->id))
		return -ENETDOWN;
	if (type == XRDS_CTL_BYE_ACK) {
		tx->closed = true;
		tx->closed_at = tx->retired + tx->used + 1;
	} else {
		/* the receive path reads it when a BYE_ACK comes */
		WRITE_ONCE(tx->bye_sent, true);
	}
	return 0;
}

/* Acknowledgment or control message that uses a credit. A legacy peer knows
 * acknowledgments only: one is sent in place of a heartbeat, or of the end.
 */
static int xrds_ib_send_ctl_credit(struct xrds_ib_ep *ep, u8 type,
				   const void *data, u32 len)
{
	u32 grant = xrds_ib_sq_grantable(ep);
	struct xrds_ib_tx *tx = &ep->tx;
	struct xrds_wire_msg wm = {
		.len	= len,
		.dport	= type,
		.flags	= type ? XRDS_F_CONTROL : 0,
	};
	int ret = 0;

	if (!xrds_ib_sq_can_send(ep, grant))
		return -EAGAIN;
	if (len && xrds_ib_send_ctl_full(tx)) {
		xrds_ib_count(ep->xin, XRDS_IB_C_TX_CTL_FULL);
		return -EAGAIN;
	}

	switch (type) {
	case XRDS_CTL_KEEPALIVE:
		wm.flags |= XRDS_F_ACK_REQUIRED;
		break;
	case XRDS_CTL_BYE:
	case XRDS_CTL_BYE_ACK:
		ret = xrds_ib_send_ctl_bye(ep, type);
		break;
	}
	if (ret)
		return ret;
	if (!xrds_ib_ep_xrds(ep)) {
		wm.dport = 0;
		wm.flags = 0;
	}
	/* a message that ends a refusal may have come since it was put on the
	 * list, and must still be in flight when the peer reads that
	 */
	if (type != XRDS_CTL_REFUSED)
		wm.ack = xrds_tx_ack_value(ep->conn);
	wm.credit = xrds_ib_sq_spend(ep, &grant, XRDS_WIRE_MAX_CREDIT);
	return xrds_ib_send_ctl_post(ep, &wm, data);
}

/**
 * xrds_ib_send_ctl - post a control message or an acknowledgment
 * @conn: connection with an endpoint that is up
 * @type: enum xrds_ctl_type; 0: acknowledgment
 * @data: payload
 * @len: its length, at most XRDS_CTL_INLINE_BYTES
 *
 * Context: any, conn->tx_lock held.
 * Return: 0; -EAGAIN without send context or credit, then xrds_tx_pump()
 * follows, or when the endpoint is about to end; -EINPROGRESS instead for a
 * keepalive while the device sends something;
 * other negative errno: the endpoint is broken.
 */
int xrds_ib_send_ctl(struct xrds_conn *conn, u8 type, const void *data,
		     u32 len)
{
	struct xrds_ib_ep *ep = conn->ep;
	int ret;

	lockdep_assert_held(&conn->tx_lock);
	BUILD_BUG_ON(XRDS_WIRE_HDR_BYTES + XRDS_CTL_INLINE_BYTES >
		     XRDS_IB_CTL_BYTES);

	/* that was reported */
	if (ep->tx.broken)
		return -EAGAIN;
	ret = ep->tx.closed ? -EAGAIN :
			      xrds_ib_send_ctl_credit(ep, type, data, len);
	if (ret == -EAGAIN) {
		ep->tx.blocked = true;
		ep->tx.ctl_blocked = true;
		if (type == XRDS_CTL_KEEPALIVE && ep->tx.used)
			ret = -EINPROGRESS;
	}
	return ret;
}

/* Has the peer's device all that counts? SENDs behind BYE_ACK do not. Returns as
 * xrds_ib_send_flushed().
 */
static int xrds_ib_send_arrived(const struct xrds_ib_tx *tx)
{
	if (tx->closed && (s32)(tx->retired - tx->closed_at) >= 0)
		return 1;
	return tx->broken ? -EIO : !tx->used;
}

/**
 * xrds_ib_send_flushed - does the peer's device have all that counts?
 * @conn: connection that sends nothing more
 *
 * Context: the connection's work.
 * Return: 1: it has; 0: not yet, xrds_ib_send_done() reports when; -EIO: it
 * never will.
 */
int xrds_ib_send_flushed(struct xrds_conn *conn)
{
	/* only the connection's work changes it */
	struct xrds_ib_ep *ep = conn->ep;
	int ret;

	spin_lock_bh(&conn->tx_lock);
	ret = xrds_ib_send_arrived(&ep->tx);
	spin_unlock_bh(&conn->tx_lock);
	return ret;
}

/**
 * xrds_ib_send_hello - tell the peer that it may send
 * @ep: endpoint whose receive buffers are posted
 *
 * Context: the connection's work.
 * Return: 0 or a negative errno.
 */
int xrds_ib_send_hello(struct xrds_ib_ep *ep)
{
	struct xrds_conn *conn = ep->conn;
	u8 data[XRDS_WIRE_HELLO_BYTES];
	struct xrds_wire_hello hello;
	struct xrds_wire_msg wm = {
		.len	= sizeof(data),
		.dport	= XRDS_CTL_HELLO,
		.flags	= XRDS_F_CONTROL,
	};
	u32 avail;
	int ret;

	xrds_conn_fill_hello(conn, &hello);
	hello.flags |= ep->hello_flags;
	hello.frag_bytes = ep->rq->buf_bytes;
	hello.tags = XRDS_IB_TAGS;

	spin_lock_bh(&conn->tx_lock);
	/* at least one: the others follow when the queue has been filled */
	avail = max(xrds_ib_share_avail(ep->rq, ep->tx.share), 1U);
	WRITE_ONCE(ep->tx.granted, avail);
	ep->tx.greeted = true;
	hello.credits = avail;
	xrds_wire_hello_encode(data, &hello);
	ret = xrds_ib_send_ctl_post(ep, &wm, data);
	spin_unlock_bh(&conn->tx_lock);
	return ret;
}

/* A side that has said BYE_ACK sends nothing more but credits: the peer may have
 * spent its last one on others of ours, and need one to acknowledge, or for its own
 * BYE_ACK. Once that has come it needs none.
 */
static bool xrds_ib_send_grants(const struct xrds_ib_ep *ep)
{
	const struct xrds_ib_tx *tx = &ep->tx;

	if (!tx->greeted || tx->broken)
		return false;
	if (!tx->closed)
		return true;
	return tx->bye_sent ? !READ_ONCE(ep->rx.bye_ack) :
			      READ_ONCE(ep->conn->acked) < ep->conn->tx_seq;
}

/* Grant the available credits, if there are @enough. */
static void xrds_ib_send_grant(struct xrds_ib_ep *ep, u32 enough)
{
	struct xrds_conn *conn = ep->conn;
	int ret = 0;

	/* an estimate, so that the common case takes no lock */
	if (xrds_ib_ep_outstanding(ep) + enough > READ_ONCE(ep->tx.share) ||
	    !xrds_ib_ep_xrds(ep))
		return;

	spin_lock_bh(&conn->tx_lock);
	if (conn->ep == ep && xrds_ib_send_grants(ep) &&
	    xrds_ib_sq_grantable(ep) >= enough) {
		ret = xrds_ib_send_ctl_credit(ep, 0, NULL, 0);
		if (!ret)
			xrds_ib_count(ep->xin, XRDS_IB_C_TX_CREDIT_UPDATES);
	}
	spin_unlock_bh(&conn->tx_lock);
	/* without a send context: the completion that frees one tries again */
	if (ret && ret != -EAGAIN)
		xrds_ib_event_fail(ep, XRDS_EV_ERROR, ret);
}

/**
 * xrds_ib_send_update - grant the peer its available credits, if they are many
 * @ep: endpoint
 *
 * At least two: the last SEND of the peer may have been nothing but a grant. Two
 * sides that answer each grant with one would go on for ever.
 *
 * Context: any, without conn->tx_lock.
 */
void xrds_ib_send_update(struct xrds_ib_ep *ep)
{
	xrds_ib_send_grant(ep, max(READ_ONCE(ep->tx.share) / 2, 2U));
}

/**
 * xrds_ib_send_update_low - grant the peer credits, if it has few
 * @ep: endpoint whose peer has sent a message, or that had none to grant
 *
 * A peer with few credits may wait for one: buffers were short, or a large
 * message leaves these credits to others.
 *
 * Context: any, without conn->tx_lock.
 */
void xrds_ib_send_update_low(struct xrds_ib_ep *ep)
{
	if (xrds_ib_ep_outstanding(ep) <= READ_ONCE(ep->tx.share) / 2)
		xrds_ib_send_grant(ep, 1);
}

/* ------------------------------------------------------------- messages */

/**
 * xrds_ib_send_msg - post a message
 * @conn: connection with an endpoint that is up
 * @msg: message, or the large one that is sent in part; a reference is taken until
 *	it is sent or the endpoint ends
 *
 * Context: any, conn->tx_lock held.
 * Return: 0, the message was taken; -EAGAIN without send context or credit,
 * then xrds_tx_pump() follows, or when the endpoint is about to end; other
 * negative errno: the endpoint is broken. Unless it is -EAGAIN, the op of the
 * message ends with its completion or with the endpoint.
 */
int xrds_ib_send_msg(struct xrds_conn *conn, struct xrds_msg *msg)
{
	struct xrds_ib_ep *ep = conn->ep;
	struct xrds_ib_tx *tx = &ep->tx;
	bool bulk;

	lockdep_assert_held(&conn->tx_lock);

	/* if it is broken, that was reported, and an op that is not taken here
	 * ends with those that wait
	 */
	if (tx->broken || tx->cursor[0].msg || tx->bye_sent || tx->closed) {
		tx->blocked = true;
		return -EAGAIN;
	}
	if (msg == tx->cursor[1].msg)
		return xrds_ib_frag_post(ep, 1);
	/* a large message begins at once: small ones may pass it */
	if (!msg->bulk && (tx->busy_bytes >= XRDS_IB_BUSY_BYTES ||
			   !xrds_ib_sq_can_send(ep, xrds_ib_sq_grantable(ep)))) {
		tx->blocked = true;
		return -EAGAIN;
	}
	if (!msg->bulk && tx->cursor[1].msg) {
		tx->passed++;
		xrds_ib_count(ep->xin, XRDS_IB_C_TX_PASSING);
	}
	if (!msg->bulk && tx->nr_bulk)
		tx->shared_at = jiffies ?: 1;
	if (!msg->bulk && xrds_ib_bundle_wanted(ep, msg) &&
	    xrds_ib_bundle_post(ep, msg))
		return 0;
	bulk = msg->bulk;
	xrds_ib_frag_begin(ep, bulk, msg);
	if (bulk && xrds_ib_frag_bulk_shares(tx)) {
		queue_work(xrds_ib_wq, &ep->bulk_work);
		return 0;
	}
	return xrds_ib_frag_post(ep, bulk);
}

static int xrds_ib_send_bulk_more(struct xrds_ib_ep *ep, bool in_work)
{
	struct xrds_ib_tx *tx = &ep->tx;
	int ret;

	if (!tx->cursor[1].msg)
		return 0;
	if (!in_work && !xrds_ib_frag_bulk_turn(ep)) {
		queue_work(xrds_ib_wq, &ep->bulk_work);
		return 0;
	}
	ret = xrds_ib_frag_post(ep, 1);
	/* the next large message may begin */
	tx->blocked |= !tx->cursor[1].msg;
	return ret;
}

/* Send contexts or credits have become free: post more of the messages that are
 * posted in part. Returns 1 if the core was told to come again and can, 0, or a
 * negative errno.
 */
static int xrds_ib_send_more(struct xrds_ib_ep *ep, bool in_work)
{
	struct xrds_ib_tx *tx = &ep->tx;
	int ret;

	lockdep_assert_held(&ep->conn->tx_lock);

	/* The endpoint is being destroyed, or is about to be. The connection has
	 * taken back the large message: its last fragment would have no number.
	 */
	if (ep->conn->ep != ep || !ep->conn->tx_open || tx->broken)
		return 0;
	if (tx->cursor[0].msg) {
		ret = xrds_ib_frag_post(ep, 0);
		if (ret)
			return ret;
	}
	if (!tx->cursor[0].msg) {
		ret = xrds_ib_send_bulk_more(ep, in_work);
		if (ret)
			return ret;
	} else if (!tx->ctl_blocked) {
		/* all messages wait behind it */
		return 0;
	}
	if (!tx->blocked || !xrds_ib_sq_can_send(ep, xrds_ib_sq_grantable(ep)))
		return 0;
	tx->blocked = false;
	tx->ctl_blocked = false;
	return 1;
}

/* The steps that follow xrds_ib_send_more(), without the lock */
static void xrds_ib_send_after(struct xrds_ib_ep *ep, int more)
{
	if (more > 0)
		xrds_tx_pump(ep->conn);
	else if (more < 0)
		xrds_ib_event_fail(ep, XRDS_EV_ERROR, more);
}

static void xrds_ib_send_bulk_work(struct work_struct *work)
{
	struct xrds_ib_ep *ep = container_of(work, struct xrds_ib_ep,
					     bulk_work);
	int more;

	spin_lock_bh(&ep->conn->tx_lock);
	more = xrds_ib_send_more(ep, true);
	spin_unlock_bh(&ep->conn->tx_lock);
	xrds_ib_send_after(ep, more);
}

/**
 * xrds_ib_send_open - the peer's hello has come
 * @ep: endpoint
 * @hello: its content, with the limits of both sides
 *
 * Context: completions.
 */
void xrds_ib_send_open(struct xrds_ib_ep *ep,
		       const struct xrds_wire_hello *hello)
{
	spin_lock_bh(&ep->conn->tx_lock);
	ep->tx.credits = hello->credits;
	ep->tx.most_credits = hello->credits;
	ep->tx.payload = hello->frag_bytes - XRDS_WIRE_HDR_BYTES;
	ep->tx.brief = hello->flags & XRDS_HELLO_SHORT;
	if (hello->flags & XRDS_HELLO_BUNDLES)
		ep->tx.bundle = READ_ONCE(ep->xin->bundle_bytes);
	spin_unlock_bh(&ep->conn->tx_lock);
}

/**
 * xrds_ib_send_credits - the peer has granted credits
 * @ep: endpoint
 * @credits: how many
 *
 * Context: completions, without conn->tx_lock.
 * Return: false when the peer has granted more than the protocol allows.
 */
bool xrds_ib_send_credits(struct xrds_ib_ep *ep, u32 credits)
{
	struct xrds_ib_tx *tx = &ep->tx;
	int more;

	spin_lock_bh(&ep->conn->tx_lock);
	if (tx->credits + credits > XRDS_IB_MAX_CREDITS) {
		spin_unlock_bh(&ep->conn->tx_lock);
		return false;
	}
	tx->credits += credits;
	tx->most_credits = max(tx->most_credits, tx->credits);
	trace_xrds_credit_got(ep->conn, credits, tx->credits);
	more = xrds_ib_send_more(ep, false);
	spin_unlock_bh(&ep->conn->tx_lock);
	xrds_ib_send_after(ep, more);
	return true;
}

/* Context: completions, or the drain of a dead endpoint */
static void xrds_ib_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct xrds_ib_sctx *sctx = container_of(wc->wr_cqe,
						 struct xrds_ib_sctx, cqe);
	struct xrds_ib_ep *ep = cq->cq_context;
	LIST_HEAD(ended);
	int more = 0;

	spin_lock_bh(&ep->conn->tx_lock);
	if (wc->status == IB_WC_SUCCESS) {
		xrds_conn_heard(ep->conn);
		if (!xrds_ib_ep_xrds(ep))
			xrds_ib_legacy_sent(ep, sctx);
		xrds_ib_sq_retire(ep, sctx, &ended);
		more = xrds_ib_send_more(ep, false);
	} else {
		ep->tx.broken = true;
		if (sctx->rop)
			xrds_ib_rdma_op_failed(ep, sctx->rop, wc);
		else if (sctx->wr.opcode == IB_WR_RDMA_WRITE)
			xrds_ib_watch_flush_failed(ep, wc);
	}
	if (ep->conn->tx_closing && xrds_ib_send_arrived(&ep->tx))
		xrds_conn_event(ep->conn, XRDS_EV_IDLE);
	spin_unlock_bh(&ep->conn->tx_lock);
	xrds_ib_rdma_end_ops(&ended, RDS_RDMA_SUCCESS);

	if (wc->status != IB_WC_SUCCESS) {
		xrds_ib_count(ep->xin, XRDS_IB_C_TX_COMP_ERROR);
		xrds_ib_event_fail(ep, XRDS_EV_ERROR,
				   xrds_ib_event_wc_errno(wc));
		return;
	}
	xrds_ib_send_after(ep, more);
	xrds_ib_send_update(ep);
}

/**
 * xrds_ib_send_init - prepare an endpoint for sending
 * @ep: endpoint whose device is known
 *
 * Context: process.
 * Return: 0 or -ENOMEM; xrds_ib_sq_free() undoes it in either case.
 */
int xrds_ib_send_init(struct xrds_ib_ep *ep)
{
	if (READ_ONCE(ep->xin->bundle_bytes) &&
	    !READ_ONCE(ep->conn->no_bundles))
		ep->hello_flags |= XRDS_HELLO_BUNDLES;
	/* iWARP has no immediate data */
	if (!rdma_protocol_iwarp(ep->ibdev->dev, ep->id->port_num))
		ep->hello_flags |= XRDS_HELLO_SHORT;
	ep->tx.window = READ_ONCE(ep->xin->recv_window);
	ep->tx.payload = XRDS_WIRE_CLASSIC_PAYLOAD;
	INIT_WORK(&ep->bulk_work, xrds_ib_send_bulk_work);
	xrds_ib_watch_init(ep);
	return xrds_ib_sq_init(ep, xrds_ib_send_done);
}
