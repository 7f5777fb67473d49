// SPDX-License-Identifier: GPL-2.0-only
/*
 * Legacy peers, the transport's part; conn/legacy.c has the core's part.
 *
 * The side that answers a request knows from it which version the endpoint has.
 * The side that dials learns the version from the reply; but the peer's first
 * message may come before the connection manager reports the reply. Then the
 * version is guessed from the message: in XRDS mode it is a control message, in
 * a legacy version it is not. The three legacy versions look the same.
 *
 *   dial: version 0 -> guessed from the first message, or set by the reply
 *   accept: set by the request
 *
 * A legacy peer has no credits. It sends as much as its own queue holds, and a
 * SEND that finds no receive buffer is repeated (RNR).
 *
 * Each fragment carries 4096 bytes, and all have the same header. Oracle's
 * kernels name a larger size in their private data. XRDS goes up to 8192 bytes,
 * because a send context has space for two pieces of payload, which may be pages.
 * xrds_ib_legacy_hdr() removes the fields that only XRDS mode has.
 *
 * Oracle's kernels may also send a checksum of the payload. A message with a
 * wrong one is a violation like others: it is not acknowledged, and comes again
 * on the next connection.
 */
#include <linux/moduleparam.h>

#include "ib/ib.h"

static bool xrds_ib_legacy_only;
module_param_named(classic, xrds_ib_legacy_only, bool, 0444);
MODULE_PARM_DESC(classic, "Speak the versions of mainline RDS only, for tests (default N)");

/**
 * xrds_ib_legacy_mask - the minor versions of major 4 that this node supports
 *
 * Context: any.
 * Return: XRDS_WIRE_MASK_*.
 */
u16 xrds_ib_legacy_mask(void)
{
	return xrds_ib_legacy_only ? XRDS_WIRE_MASK & ~XRDS_WIRE_MASK_XRDS :
				      XRDS_WIRE_MASK;
}

/**
 * xrds_ib_legacy_set_version - set the version told by the connection manager
 * @ep: endpoint
 * @version: XRDS_VER_*
 *
 * Context: the connection manager's handler, or the connection's work before
 * the peer knows the queue pair.
 * Return: false when the peer's first message was of another kind.
 */
bool xrds_ib_legacy_set_version(struct xrds_ib_ep *ep, int version)
{
	int guess = cmpxchg(&ep->version, 0, version);

	if (!guess)
		return true;
	/* only one of the two is XRDS mode */
	if (guess != version &&
	    (guess == XRDS_VER_XRDS || version == XRDS_VER_XRDS))
		return false;
	WRITE_ONCE(ep->version, version);
	return true;
}

/**
 * xrds_ib_legacy_guess_version - tell the version from the first message
 * @ep: endpoint without version
 * @data: the message
 * @bytes: its length
 *
 * Context: completions.
 * Return: XRDS_VER_*.
 */
int xrds_ib_legacy_guess_version(struct xrds_ib_ep *ep, const void *data,
				 u32 bytes)
{
	int guess = xrds_wire_hdr_is_hello(data, bytes) ? XRDS_VER_XRDS :
							  XRDS_VER_3_1;

	return cmpxchg(&ep->version, 0, guess) ?: guess;
}

/**
 * xrds_ib_legacy_received - a message of a legacy peer has come
 * @ep: endpoint
 *
 * Context: completions.
 */
void xrds_ib_legacy_received(struct xrds_ib_ep *ep)
{
	if (ep->rx.hello)
		return;
	ep->rx.hello = true;
	xrds_legacy_heard(ep->conn);
	/* the connection manager's last message may come later, or be lost */
	if (ep->passive)
		xrds_conn_ep_event(ep->conn, ep->gen, XRDS_EV_ESTABLISHED, 0);
}

/**
 * xrds_ib_legacy_hdr - change a header for a legacy peer
 * @wm: header for XRDS mode
 *
 * A message that only follows an op, and is not to be delivered, goes to a port
 * that no socket can have: there it is acknowledged and dropped, and the key of
 * the op stays valid, as if no message had been sent.
 *
 * Context: any.
 */
void xrds_ib_legacy_hdr(struct xrds_wire_msg *wm)
{
	u8 known = XRDS_F_CONG_BITMAP | XRDS_F_ACK_REQUIRED |
		   XRDS_F_RETRANSMITTED;

	/* a heartbeat or its answer; with ports these bits are of XRDS mode */
	if (wm->seq && !wm->sport && !wm->dport) {
		known |= XRDS_F_HB_PING | XRDS_F_HB_PONG;
		wm->has = XRDS_HAS_CAP_BITS;
		wm->cap_bits = XRDS_CAP_HEARTBEAT;
	}
	wm->flags &= known;
	if (!(wm->has & XRDS_HAS_SILENT))
		return;
	wm->has = 0;
	wm->sport = XRDS_IB_NO_PORT;
	wm->dport = XRDS_IB_NO_PORT;
}

/**
 * xrds_ib_legacy_check_csum - compare a payload with its checksum
 * @wm: header of a whole message
 * @skb: its payload
 *
 * Context: completions.
 * Return: XRDS_WIRE_OK, also if the message has no checksum; PAYLOAD.
 */
enum xrds_wire_err xrds_ib_legacy_check_csum(const struct xrds_wire_msg *wm,
					     const struct sk_buff *skb)
{
	__sum16 sum;

	if (likely(!(wm->has & XRDS_HAS_CSUM)))
		return XRDS_WIRE_OK;
	/* in memory it has the order of bytes of the payload */
	sum = ~csum_fold(skb_checksum(skb, 0, skb->len, 0));
	return xrds_wire_csum_same(wm->csum,
				   le16_to_cpu((__force __le16)sum)) ?
	       XRDS_WIRE_OK : XRDS_WIRE_PAYLOAD;
}

/**
 * xrds_ib_legacy_sent - the device of a legacy peer has taken a SEND
 * @ep: endpoint
 * @sctx: send context that has completed; its header is still there
 *
 * Context: completions, conn->tx_lock held.
 */
void xrds_ib_legacy_sent(struct xrds_ib_ep *ep, struct xrds_ib_sctx *sctx)
{
	const struct xrds_hdr *hdr;
	u32 offset;

	lockdep_assert_held(&ep->conn->tx_lock);

	if (sctx->rop)
		return;
	hdr = xrds_ib_sq_hdr(ep, sctx, &offset);
	xrds_legacy_confirm(ep->conn, be64_to_cpu(hdr->ack));
}
