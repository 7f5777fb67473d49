// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wire format: several messages in one SEND, which is a bundle.
 *
 * A bundle does not say that it is one: its bytes go on behind the payload of
 * its first message, with another header. A receiver decodes the first header as
 * any other, finds with xrds_wire_bundled() that more follows, and then reads
 * message after message until the bytes are used up:
 *
 *   hdr_decode -> bundle_first -> (take it) -> bundle_next -> (take it) -> ...
 *
 * As in hdr.c all functions are pure, and believe nothing: each length is
 * compared with the rest of the SEND before the next header is read.
 */
#include <linux/export.h>
#include "wire/wire.h"

/**
 * xrds_wire_bundled() - is there another message behind the first of a SEND?
 * @msg:	decoded header of the SEND
 * @payload:	bytes behind that header
 *
 * Context: any.
 * Return: whether there is, or bytes that should not be there.
 */
int xrds_wire_bundled(const struct xrds_wire_msg *msg, __u32 payload)
{
	return msg->len < payload && msg->kind != XRDS_KIND_ACK &&
	       msg->kind != XRDS_KIND_CTL;
}
EXPORT_SYMBOL_GPL(xrds_wire_bundled);

/* The message of an op has a SEND of its own. */
#define HAS_OP	(XRDS_HAS_RDMA | XRDS_HAS_RDMA_BYTES | XRDS_HAS_SILENT)

/* Takes the message whose header is at b->next. */
static enum xrds_wire_err bundle_take(struct xrds_wire_bundle *b,
				      const struct xrds_wire_msg *msg)
{
	/* the decoder has seen that the header is there */
	__u32 room = b->bytes - b->next - XRDS_WIRE_HDR_BYTES;

	if (b->nr == XRDS_WIRE_MAX_BUNDLE_MSGS)
		return XRDS_WIRE_BUNDLE;
	if (msg->kind == XRDS_KIND_ACK || msg->kind == XRDS_KIND_CTL)
		return XRDS_WIRE_BUNDLE;
	if (msg->frag || !msg->seq || msg->len > room || (msg->has & HAS_OP))
		return XRDS_WIRE_BUNDLE;
	/* the first has said it */
	if (b->nr && (msg->ack || msg->credit))
		return XRDS_WIRE_BUNDLE;

	b->payload = b->next + XRDS_WIRE_HDR_BYTES;
	b->next = b->payload + msg->len;
	b->nr++;
	return XRDS_WIRE_OK;
}

/**
 * xrds_wire_bundle_first() - begin to read a SEND with several messages
 * @b:		the SEND; undefined on error
 * @msg:	decoded header of the SEND
 * @bytes:	length of the SEND
 *
 * Context: any.
 * Return: XRDS_WIRE_OK, or BUNDLE.
 */
enum xrds_wire_err xrds_wire_bundle_first(struct xrds_wire_bundle *b,
					  const struct xrds_wire_msg *msg,
					  __u32 bytes)
{
	b->bytes = bytes;
	b->payload = 0;
	b->next = 0;
	b->nr = 0;
	if (bytes < XRDS_WIRE_HDR_BYTES || bytes > XRDS_WIRE_MAX_BUNDLE_BYTES)
		return XRDS_WIRE_BUNDLE;
	return bundle_take(b, msg);
}
EXPORT_SYMBOL_GPL(xrds_wire_bundle_first);

/**
 * xrds_wire_bundle_next() - read the next message of a SEND
 * @b:		the SEND, of which b->next is below b->bytes; undefined on error
 * @msg:	content of its header; undefined on error
 * @buf:	the SEND, of any alignment
 *
 * Context: any.
 * Return: XRDS_WIRE_OK, BUNDLE, or the error of xrds_wire_hdr_decode().
 */
enum xrds_wire_err xrds_wire_bundle_next(struct xrds_wire_bundle *b,
					 struct xrds_wire_msg *msg,
					 const void *buf)
{
	enum xrds_wire_err err;

	err = xrds_wire_hdr_decode(msg, (const __u8 *)buf + b->next,
				   b->bytes - b->next, XRDS_VER_XRDS);
	return err ? err : bundle_take(b, msg);
}
EXPORT_SYMBOL_GPL(xrds_wire_bundle_next);
