// SPDX-License-Identifier: GPL-2.0-only
/*
 * Refused messages: their receiver had no memory for them.
 *
 * No node refuses messages yet. So a list of them is checked, and has no effect.
 * Lists arrive on the receive path, which may not sleep; they are small, and
 * are read from a copy on the stack.
 */
#include <linux/skbuff.h>

#include "conn/conn.h"

static enum xrds_wire_err xrds_refuse_check(const struct sk_buff *skb)
{
	u8 buf[XRDS_WIRE_REFUSED_MAX_ENTRIES * XRDS_WIRE_REFUSED_BYTES];
	int i, count = xrds_wire_refused_count(skb->len);
	struct xrds_wire_refused entry;
	enum xrds_wire_err err;

	BUILD_BUG_ON(sizeof(buf) > XRDS_CTL_INLINE_BYTES);
	if (count < 0)
		return -count;
	if (skb_copy_bits(skb, 0, buf, skb->len))
		return XRDS_WIRE_REFUSED;
	for (i = 0; i < count; i++) {
		err = xrds_wire_refused_entry(buf, i, &entry);
		if (err)
			return err;
	}
	return XRDS_WIRE_OK;
}

/**
 * xrds_refuse_recv - the peer has refused messages
 * @conn: connection
 * @skb: payload of its XRDS_CTL_REFUSED; consumed
 *
 * Context: the receive path.
 */
void xrds_refuse_recv(struct xrds_conn *conn, struct sk_buff *skb)
{
	enum xrds_wire_err err = xrds_refuse_check(skb);

	kfree_skb(skb);
	if (err)
		xrds_conn_wire_error(conn, READ_ONCE(conn->ep_gen), err);
}
EXPORT_SYMBOL_GPL(xrds_refuse_recv);
