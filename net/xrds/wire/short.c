// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wire format: short headers.
 *
 * A SEND may have no header. The 32 bits of its immediate data stand for one
 * then, and the payload fills whole packets. They are enough because a queue
 * pair keeps the order: both ends of a direction keep a context, which holds
 * what the headers before have said.
 *
 *   full header ----> context ----> the sender leaves out what is in it
 *        |
 *       wire
 *        |
 *        v
 *   full header ----> context ----> the receiver takes it from there
 *
 * Both ends call xrds_wire_context_note() for the same full headers in the same
 * order, and so their contexts are the same at the same point of the stream. The
 * slot of a flow is a function of its ports, which neither end has to tell the
 * other. Two flows with the same slot take it from each other, and have full
 * headers if they alternate.
 *
 * A device that loses a SEND, or delivers one twice, would have the receiver give
 * wrong numbers from there on. And one that puts a packet into a SEND twice would
 * make a longer message of it, as no header has the length. So a short header has
 * the low bits of the number and the length together, and the receiver compares
 * them.
 *
 * As in hdr.c the functions are pure, and believe nothing: all values of the 32
 * bits are valid input, and xrds_wire_reasm_add() refuses the fragments that do
 * not fit.
 */
#include <linux/export.h>
#include "wire/wire.h"

/* Layout of the immediate data */
enum {
	SHORT_SLOT_MASK		= XRDS_WIRE_SLOTS - 1,
	SHORT_TAG		= XRDS_WIRE_SLOTS,
	SHORT_MORE		= 0x0100,
	SHORT_ASK		= 0x0200,
	SHORT_CREDIT_SHIFT	= 10,
	SHORT_CHECK_SHIFT	= 16,
	SHORT_CHECK_MASK	= 0x0f,
	SHORT_ACK_SHIFT		= 20,
	SHORT_ACK_MASK		= 0x0fff,
};

static __u32 flow_ports(const struct xrds_wire_msg *msg)
{
	return (__u32)msg->sport << 16 | msg->dport;
}

/* Multiplication spreads ports that are alike, or differ by the same. */
static __u32 flow_slot(__u32 ports)
{
	return (ports * 0x9e3779b1U) >> 25;
}

/* One SEND more or less changes it, and so does one packet: its payload is a power
 * of two, from 256 bytes to 4096.
 */
static __u32 short_check(const struct xrds_wire_context *ctx, __u32 bytes)
{
	return (ctx->seq + (bytes >> 8) + (bytes >> 12)) & SHORT_CHECK_MASK;
}

/**
 * xrds_wire_context_note() - a full header has its place in the stream
 * @ctx:	context of the direction; zeroed before the first SEND
 * @msg:	its content
 *
 * For each header of each SEND, in their order: at the sender before it writes
 * the next header, at the receiver after it has decoded this one. The header
 * behind an RDMA operation leaves nothing: it is taken back if the device
 * refuses the operation.
 *
 * Context: any; calls for the same @ctx are serialised by the caller.
 */
void xrds_wire_context_note(struct xrds_wire_context *ctx,
			    const struct xrds_wire_msg *msg)
{
	__u32 ports = flow_ports(msg);

	if (msg->has & XRDS_HAS_RDMA)
		return;
	if (msg->ack > ctx->ack)
		ctx->ack = msg->ack;
	if (msg->seq)
		ctx->seq = msg->seq;
	if (msg->sport && msg->dport)
		ctx->ports[flow_slot(ports)] = ports;
}
EXPORT_SYMBOL_GPL(xrds_wire_context_note);

/**
 * xrds_wire_short_fits() - does a short header say all that a full one would?
 * @ctx:	context of the sender
 * @msg:	content of the header, with the acknowledgment that is due; in the
 *		last fragment with the message's number
 * @last:	it is the last fragment, as far as the sender knows
 *
 * No header of this message has carried its number yet.
 *
 * Context: any; calls for the same @ctx are serialised by the caller.
 * Return: whether it does.
 */
int xrds_wire_short_fits(const struct xrds_wire_context *ctx,
			 const struct xrds_wire_msg *msg, int last)
{
	__u32 ports = flow_ports(msg);

	if (msg->has || msg->flags & ~XRDS_F_ACK_REQUIRED || !msg->dport ||
	    msg->tag > 1)
		return 0;
	/* an acknowledgment that goes back has no effect */
	if (msg->ack > ctx->ack && msg->ack - ctx->ack > SHORT_ACK_MASK)
		return 0;
	if (!msg->frag && ctx->ports[flow_slot(ports)] != ports)
		return 0;
	return !last || msg->seq == ctx->seq + 1;
}
EXPORT_SYMBOL_GPL(xrds_wire_short_fits);

/**
 * xrds_wire_short_encode() - make the immediate data of a SEND without header
 * @ctx:	context of the sender
 * @msg:	content of the header, which fits; credits up to
 *		XRDS_WIRE_SHORT_CREDIT
 * @last:	it is the last fragment
 * @bytes:	payload of the SEND
 *
 * Context: any; calls for the same @ctx are serialised by the caller.
 * Return: the immediate data.
 */
__u32 xrds_wire_short_encode(struct xrds_wire_context *ctx,
			     const struct xrds_wire_msg *msg, int last,
			     __u32 bytes)
{
	__u32 imm = msg->frag ? msg->frag % XRDS_WIRE_SLOTS :
				flow_slot(flow_ports(msg));

	if (msg->ack > ctx->ack)
		ctx->ack = msg->ack;
	if (last)
		ctx->seq++;
	else
		imm |= SHORT_MORE;
	if (msg->tag)
		imm |= SHORT_TAG;
	if (msg->flags & XRDS_F_ACK_REQUIRED)
		imm |= SHORT_ASK;
	return imm | (__u32)msg->credit << SHORT_CREDIT_SHIFT |
	       short_check(ctx, bytes) << SHORT_CHECK_SHIFT |
	       (__u32)(ctx->ack & SHORT_ACK_MASK) << SHORT_ACK_SHIFT;
}
EXPORT_SYMBOL_GPL(xrds_wire_short_encode);

/**
 * xrds_wire_short_decode() - read the immediate data of a SEND without header
 * @msg:	its content, as that of a full header. The length is that of the
 *		message if it is complete with this fragment, else unknown, which
 *		@brief tells. The ports are those of the first fragment.
 * @ctx:	context of the receiver
 * @imm:	immediate data
 * @bytes:	payload of the SEND
 *
 * The message is for xrds_wire_reasm_add() only, which finds what else does not
 * fit.
 *
 * Context: any; calls for the same @ctx are serialised by the caller.
 * Return: XRDS_WIRE_OK, or ORDER: it is not the SEND that comes next, or not as it
 * was sent.
 */
enum xrds_wire_err xrds_wire_short_decode(struct xrds_wire_msg *msg,
					  struct xrds_wire_context *ctx,
					  __u32 imm, __u32 bytes)
{
	__u32 slot = imm & SHORT_SLOT_MASK;
	int more = !!(imm & SHORT_MORE);

	ctx->ack += ((imm >> SHORT_ACK_SHIFT) - ctx->ack) & SHORT_ACK_MASK;
	if (!more)
		ctx->seq++;
	*msg = (struct xrds_wire_msg){
		.seq	= more ? 0 : ctx->seq,
		.ack	= ctx->ack,
		.sport	= ctx->ports[slot] >> 16,
		.dport	= ctx->ports[slot],
		.tag	= imm & SHORT_TAG ? 1 : 0,
		.frag	= slot,
		.flags	= imm & SHORT_ASK ? XRDS_F_ACK_REQUIRED : 0,
		.credit	= (imm >> SHORT_CREDIT_SHIFT) & XRDS_WIRE_SHORT_CREDIT,
		.kind	= XRDS_KIND_DATA,
		.brief	= more ? XRDS_BRIEF_MORE : XRDS_BRIEF_LAST,
	};
	return ((imm >> SHORT_CHECK_SHIFT) & SHORT_CHECK_MASK) ==
	       short_check(ctx, bytes) ? XRDS_WIRE_OK : XRDS_WIRE_ORDER;
}
EXPORT_SYMBOL_GPL(xrds_wire_short_decode);
