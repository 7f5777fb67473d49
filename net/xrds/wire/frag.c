// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wire format: a message that comes in several SENDs.
 *
 * Each fragment has the message's header, so fields of the message itself must
 * stay the same from the first to the last. In XRDS mode a fragment has an
 * index, and messages with different tags may come interleaved; those whose tag
 * is not 0 have their number in the last fragment only, so that messages are
 * complete in the order of their numbers. The legacy versions have neither. Each
 * connection has one of two sizes there; both are taken at any time, because
 * only their sum counts. A message begins with the first fragment and ends with
 * its last byte or with any error.
 *
 * A fragment with a short header has neither length nor number: a bit tells the
 * last one, and the length of the message is that of its fragments. Both kinds
 * of header may occur in one message, but with a number in one of them no short
 * one follows.
 *
 * As in hdr.c the function is pure, and believes nothing: a length is compared
 * with the rest of the message before it counts. The caller copies or links the
 * payload, and calls for one message after the other.
 */
#include <linux/export.h>
#include "wire/wire.h"

/* Flags that may differ between the fragments of one message */
#define FLAGS_PER_FRAG	(XRDS_F_ACK_REQUIRED | XRDS_F_RETRANSMITTED)

/* Other differences of a legacy header are ignored: the first header counts. */
static int same_message(const struct xrds_wire_msg *a,
			const struct xrds_wire_msg *b)
{
	return (a->seq == b->seq || a->tag) && a->len == b->len &&
	       a->sport == b->sport && a->dport == b->dport;
}

static int same_xrds_message(const struct xrds_wire_msg *a,
			     const struct xrds_wire_msg *b)
{
	return same_message(a, b) && a->tag == b->tag && a->kind == b->kind &&
	       !((a->flags ^ b->flags) & ~FLAGS_PER_FRAG);
}

/* Does a full header belong to the message that was begun? In one whose headers
 * were short so far it tells the length, and perhaps the number.
 */
static int reasm_same(struct xrds_wire_reasm *r,
		      const struct xrds_wire_msg *msg, int legacy)
{
	if (legacy)
		return same_message(&r->first, msg);
	if (r->open) {
		if (msg->len < r->got)
			return 0;
		r->open = 0;
		r->first.len = msg->len;
		r->first.seq = msg->seq;
	}
	return same_xrds_message(&r->first, msg);
}

/* The functions below take the next fragment, or return an error. @last: in: 0;
 * out: it is the last one.
 */
static enum xrds_wire_err reasm_legacy(struct xrds_wire_reasm *r,
				       __u32 payload, int *last)
{
	__u32 rest = r->first.len - r->got;

	if (payload > XRDS_WIRE_CLASSIC_MAX_PAYLOAD)
		return XRDS_WIRE_FRAG_LEN;
	r->take = payload < rest ? payload : rest;
	*last = r->take == rest;
	if (!*last && (!payload || payload % XRDS_WIRE_CLASSIC_PAYLOAD))
		return XRDS_WIRE_FRAG_LEN;
	return XRDS_WIRE_OK;
}

static enum xrds_wire_err reasm_full(struct xrds_wire_reasm *r,
				     const struct xrds_wire_msg *msg,
				     __u32 payload, __u32 max_payload,
				     int *last)
{
	__u32 rest = r->first.len - r->got;

	if (msg->frag != r->next)
		return XRDS_WIRE_FRAG;
	if (payload > max_payload || payload > rest || (r->next && !payload))
		return XRDS_WIRE_FRAG_LEN;
	*last = payload == rest;
	if (!*last && payload < XRDS_WIRE_MIN_FRAG_PAYLOAD)
		return XRDS_WIRE_FRAG_LEN;
	if (msg->tag && *last != !!msg->seq)
		return XRDS_WIRE_SEQ;
	r->take = payload;
	return XRDS_WIRE_OK;
}

/* The length of an open message is that of its fragments. */
static enum xrds_wire_err reasm_short(struct xrds_wire_reasm *r,
				      const struct xrds_wire_msg *msg,
				      __u32 payload, __u32 max_payload,
				      int *last)
{
	__u32 rest = (r->open ? XRDS_WIRE_MAX_MSG_BYTES : r->first.len) -
		     r->got;

	*last = msg->brief == XRDS_BRIEF_LAST;
	if (!r->next && !msg->dport)
		return XRDS_WIRE_SLOT;
	if (r->next && msg->frag != r->next % XRDS_WIRE_SLOTS)
		return XRDS_WIRE_FRAG;
	if (payload > max_payload || payload > rest ||
	    (r->next && !payload))
		return XRDS_WIRE_FRAG_LEN;
	if (*last && payload < rest && !r->open)
		return XRDS_WIRE_FRAG_LEN;
	if (!*last && (payload < XRDS_WIRE_MIN_FRAG_PAYLOAD || payload == rest))
		return XRDS_WIRE_FRAG_LEN;
	if (r->open)
		r->first.len = r->got + payload;
	r->take = payload;
	return XRDS_WIRE_OK;
}

/**
 * xrds_wire_reasm_add() - take the next fragment of a message
 * @r:		progress of the message; zeroed before its first use
 * @msg:	decoded header of the fragment
 * @payload:	bytes behind that header
 * @max_payload: most that one fragment with a full header may carry (XRDS)
 * @ver:	negotiated version, XRDS_VER_*
 * @done:	set to 1 if the message is complete, else to 0
 *
 * There is one @r per tag, and only one in legacy modes. Acknowledgments and
 * control messages are not fragments; they may arrive between those of a
 * message and must not be given to this function. A legacy heartbeat in such a
 * place is no more than an acknowledgment: its number is ignored, as it is
 * higher than that of the incomplete message. After an error @r is ready for a
 * new message. When a message is complete, @r->first has the header of its
 * first fragment, with the message's number.
 *
 * Context: any; calls for the same @r are serialised by the caller.
 * Return: XRDS_WIRE_OK; FRAG if the index is not the next one, FRAG_HDR if the
 * header does not belong to the message, FRAG_LEN if the payload is too long
 * or too short, SEQ if the number of a tagged message is not in its last
 * fragment, SLOT if a message begins with a short header of an empty slot.
 */
enum xrds_wire_err xrds_wire_reasm_add(struct xrds_wire_reasm *r,
				       const struct xrds_wire_msg *msg,
				       __u32 payload, __u32 max_payload,
				       int ver, int *done)
{
	int legacy = ver != XRDS_VER_XRDS;
	enum xrds_wire_err err;
	int belongs = 1, last = 0;

	*done = 0;
	r->take = 0;
	if (!r->busy) {
		r->first = *msg;
		r->got = 0;
		r->next = 0;
		r->open = msg->brief;
	} else if (legacy && !payload && !msg->sport && !msg->dport) {
		return XRDS_WIRE_OK;
	} else if (msg->brief) {
		/* with its number known it has full headers only */
		belongs = !r->first.seq && !r->first.has &&
			  r->first.kind == XRDS_KIND_DATA;
	} else {
		belongs = reasm_same(r, msg, legacy);
	}
	/* any error ends the message */
	r->busy = 0;
	if (!belongs)
		return XRDS_WIRE_FRAG_HDR;

	if (legacy)
		err = reasm_legacy(r, payload, &last);
	else if (msg->brief)
		err = reasm_short(r, msg, payload,
				  max_payload + XRDS_WIRE_HDR_BYTES, &last);
	else
		err = reasm_full(r, msg, payload, max_payload, &last);
	if (err)
		return err;

	/* at most 256 fragments, as all but the last have the least payload */
	r->got += r->take;
	r->next++;
	r->busy = !last;
	*done = last;
	r->first.seq = msg->seq;
	return XRDS_WIRE_OK;
}
EXPORT_SYMBOL_GPL(xrds_wire_reasm_add);
