// SPDX-License-Identifier: GPL-2.0-only
/*
 * Classic peers, the transport's share; classic.c has the core's.
 *
 * Who answers a request knows from it which version the endpoint speaks. Who
 * dials learns it from the reply; but the peer's first message may overtake
 * the connection manager's word of that. Then the message itself says it: in
 * XRDS mode it is a hello, and only there. The three classic versions look the
 * same.
 *
 *   dial: version 0 -> guessed from the first message, or settled by the reply
 *   accept: settled by the request
 *
 * A classic peer has no credits. It sends as much as its own queue holds, and
 * what finds no receive buffer is tried again (RNR). So the completion queue
 * must have room for all buffers of the shared receive queue, not only for a
 * window. That is much, so who dials and does not know the peer begins with
 * the small one and has it enlarged here.
 *
 * Fragments carry 4096 bytes each, all of them the same header. What only XRDS
 * mode has is left out of it: xrds_ib_classic_hdr().
 */
#include <linux/moduleparam.h>

#include "ib.h"

static bool xrds_ib_classic_only;
module_param_named(classic, xrds_ib_classic_only, bool, 0444);
MODULE_PARM_DESC(classic, "Speak the versions of mainline RDS only, for tests (default N)");

/**
 * xrds_ib_classic_mask - the minor versions of major 4 that this node speaks
 *
 * Context: any.
 * Return: XRDS_WIRE_MASK_*.
 */
u16 xrds_ib_classic_mask(void)
{
	return xrds_ib_classic_only ? XRDS_WIRE_MASK & ~XRDS_WIRE_MASK_XRDS :
				      XRDS_WIRE_MASK;
}

/**
 * xrds_ib_classic_known - is the peer known to be a classic one?
 * @ep: endpoint that is being set up
 *
 * Context: the connection's work.
 * Return: whether it is, by its request or by the last connection.
 */
bool xrds_ib_classic_known(const struct xrds_ib_ep *ep)
{
	return ep->passive ? !xrds_ib_ep_xrds(ep) : ep->conn->classic.on;
}

/**
 * xrds_ib_classic_settle - the connection manager has told the version
 * @ep: endpoint
 * @version: XRDS_VER_*
 *
 * Context: the connection manager's handler, or the connection's work before
 * the peer knows the queue pair.
 * Return: false when the peer's first message was of another kind.
 */
bool xrds_ib_classic_settle(struct xrds_ib_ep *ep, int version)
{
	int guess = cmpxchg(&ep->version, 0, version);

	if (!guess)
		return true;
	/* one of them only */
	if (guess != version &&
	    (guess == XRDS_VER_XRDS || version == XRDS_VER_XRDS))
		return false;
	WRITE_ONCE(ep->version, version);
	return true;
}

/**
 * xrds_ib_classic_guess - find out the version from the first message
 * @ep: endpoint without version
 * @data: the message
 * @bytes: its length
 *
 * Context: completions.
 * Return: XRDS_VER_*.
 */
int xrds_ib_classic_guess(struct xrds_ib_ep *ep, const void *data, u32 bytes)
{
	int guess = xrds_wire_is_hello(data, bytes) ? XRDS_VER_XRDS :
						      XRDS_VER_3_1;

	return cmpxchg(&ep->version, 0, guess) ?: guess;
}

/**
 * xrds_ib_classic_recvs - how many receives of a classic peer may complete
 * @ep: endpoint with a receive queue
 *
 * Context: the connection's work.
 * Return: as many as the device was asked to have room for.
 */
u32 xrds_ib_classic_recvs(const struct xrds_ib_ep *ep)
{
	return ep->rq->srq ? ep->rq->max_bufs + XRDS_IB_MAX_LOST :
			     ep->tx.window;
}

static int xrds_ib_classic_enlarge(struct xrds_ib_ep *ep)
{
	int cqe = ep->tx.nr + XRDS_IB_EXTRA_SEND_WR +
		  xrds_ib_classic_recvs(ep) + 1;

	return ep->cq->cqe < cqe ? ib_resize_cq(ep->cq, cqe) : 0;
}

/**
 * xrds_ib_classic_start - the connection to a classic peer is established
 * @ep: endpoint
 *
 * Context: the connection's work.
 * Return: 0; a negative errno when the device cannot enlarge a completion
 * queue: then the next attempt makes a large one.
 */
int xrds_ib_classic_start(struct xrds_ib_ep *ep)
{
	xrds_ib_ep_not_half_open(ep);
	xrds_classic_start(ep->conn, ep->gen, ep->ack);
	return xrds_ib_classic_enlarge(ep);
}

/**
 * xrds_ib_classic_heard - a message of a classic peer has come
 * @ep: endpoint
 *
 * Context: completions.
 */
void xrds_ib_classic_heard(struct xrds_ib_ep *ep)
{
	if (ep->rx.hello)
		return;
	ep->rx.hello = true;
	xrds_classic_heard(ep->conn);
	/* the connection manager's last message may come later, or be lost */
	if (ep->passive)
		xrds_conn_ep_event(ep->conn, ep->gen, XRDS_EV_ESTABLISHED, 0);
}

/**
 * xrds_ib_classic_hdr - what a header says to a classic peer
 * @wm: header as it would be in XRDS mode
 *
 * A message that only follows an op, and is not to be delivered, goes to a port
 * that nobody can have: there it is acknowledged and dropped, and the key of
 * the op is not given up, as if no message had been sent.
 *
 * Context: any.
 */
void xrds_ib_classic_hdr(struct xrds_wire_msg *wm)
{
	wm->flags &= XRDS_F_CONG_BITMAP | XRDS_F_ACK_REQUIRED |
		     XRDS_F_RETRANSMITTED;
	if (wm->seq && !wm->sport && !wm->dport)
		wm->flags |= XRDS_F_HB_PONG;
	if (!(wm->has & XRDS_HAS_SILENT))
		return;
	wm->has = 0;
	wm->sport = XRDS_IB_NO_PORT;
	wm->dport = XRDS_IB_NO_PORT;
}

/**
 * xrds_ib_classic_sent - the device of a classic peer has taken a SEND
 * @ep: endpoint
 * @slot: that has completed; its header is still there
 *
 * Context: completions, conn->tx_lock held.
 */
void xrds_ib_classic_sent(struct xrds_ib_ep *ep, struct xrds_ib_slot *slot)
{
	const struct xrds_hdr *hdr;
	u32 offset;

	lockdep_assert_held(&ep->conn->tx_lock);

	if (slot->rop)
		return;
	hdr = xrds_ib_slot_hdr(ep, slot, &offset);
	xrds_classic_confirm(ep->conn, be64_to_cpu(hdr->ack));
}
