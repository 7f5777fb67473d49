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

/**
 * xrds_wire_reasm_add() - take the next fragment of a message
 * @r:		progress of the message; zeroed before its first use
 * @msg:	decoded header of the fragment
 * @payload:	bytes behind that header
 * @max_payload: most that one fragment may carry (XRDS)
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
 * fragment.
 */
enum xrds_wire_err xrds_wire_reasm_add(struct xrds_wire_reasm *r,
				       const struct xrds_wire_msg *msg,
				       __u32 payload, __u32 max_payload,
				       int ver, int *done)
{
	int legacy = ver != XRDS_VER_XRDS;
	__u32 rest;
	int last;

	*done = 0;
	r->take = 0;
	if (!r->busy) {
		r->first = *msg;
		r->got = 0;
		r->next = 0;
	} else if (legacy && !payload && !msg->sport && !msg->dport) {
		return XRDS_WIRE_OK;
	}
	if (r->busy && !(legacy ? same_message(&r->first, msg) :
				  same_xrds_message(&r->first, msg))) {
		r->busy = 0;
		return XRDS_WIRE_FRAG_HDR;
	}
	/* any error below ends the message */
	r->busy = 0;
	if (!legacy && msg->frag != r->next)
		return XRDS_WIRE_FRAG;

	if (legacy)
		max_payload = XRDS_WIRE_CLASSIC_MAX_PAYLOAD;
	rest = r->first.len - r->got;
	if (payload > max_payload)
		return XRDS_WIRE_FRAG_LEN;
	if (legacy && payload > rest)
		payload = rest;
	if (payload > rest)
		return XRDS_WIRE_FRAG_LEN;
	if (payload < rest && payload < XRDS_WIRE_MIN_FRAG_PAYLOAD)
		return XRDS_WIRE_FRAG_LEN;
	if (legacy && payload < rest && payload % XRDS_WIRE_CLASSIC_PAYLOAD)
		return XRDS_WIRE_FRAG_LEN;
	last = payload == rest;
	if (msg->tag && last != !!msg->seq)
		return XRDS_WIRE_SEQ;

	/* at most 256 fragments, as all but the last have the least payload */
	r->take = payload;
	r->got += payload;
	r->next++;
	r->busy = !last;
	*done = last;
	r->first.seq = msg->seq;
	return XRDS_WIRE_OK;
}
EXPORT_SYMBOL_GPL(xrds_wire_reasm_add);
