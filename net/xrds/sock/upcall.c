// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of messages on their way out, for sockets: space is given back,
 * senders are woken, ops that no transport ever had are ended.
 */
#include "msg.h"
#include "rdma/rdma.h"
#include "sock/dest.h"
#include "sock/sock.h"
#include "tracepoints.h"
#include "upcall.h"
#include "xrds.h"

/* Messages that end together, summed up so that each lock is taken once. */
struct xrds_done {
	struct xrds_dest *dest;
	u64 bytes;
	u64 charge;
	u32 msgs;
	bool acked;
};

static void xrds_done_flush(struct xrds_done *done)
{
	if (!done->dest)
		return;
	xrds_dest_done(done->dest, done->msgs, done->bytes, done->charge,
		       done->acked);
	xrds_dest_put(done->dest);
	memset(done, 0, offsetof(struct xrds_done, acked));
}

/**
 * xrds_xmit_done - end messages
 * @xn: their namespace
 * @list: of messages; its references are dropped
 * @fate: XRDS_C_SEND_ACKED, or why they are dropped; counts them, but not the
 *	ends of streams
 * @status: how an op ends that the transport never had; it ends the others
 *
 * Context: any, without L3, L4.
 */
void xrds_xmit_done(struct xrds_net *xn, struct list_head *list,
		    enum xrds_counter fate, s32 status)
{
	struct xrds_done done = { .acked = fate == XRDS_C_SEND_ACKED };
	struct xrds_msg *msg, *tmp;
	u32 n = 0;

	list_for_each_entry_safe(msg, tmp, list, node) {
		list_del_init(&msg->node);
		if (done.acked)
			trace_xrds_msg_ack(msg);
		else
			trace_xrds_msg_drop(msg, fate);
		if (msg->rop && !msg->posted)
			xrds_rop_done(msg->rop, status);
		if (msg->flags & XRDS_F_EOS) {
			xrds_dest_eos_done(xrds_dest_of(msg->flow));
			xrds_msg_put(msg);
			continue;
		}
		n++;
		if (msg->flow) {
			if (done.dest != xrds_dest_of(msg->flow)) {
				xrds_done_flush(&done);
				done.dest = xrds_dest_of(msg->flow);
				xrds_flow_get(&done.dest->flow);
			}
			done.msgs++;
			done.bytes += msg->len;
			done.charge += xrds_msg_charge(msg->len);
		}
		xrds_msg_put(msg);
	}
	xrds_done_flush(&done);
	xrds_count_add(xn, fate, n);
	/* unload and namespace exit may wait for the last; a barrier for each
	 * acknowledgment is little beside the locks that it took
	 */
	if (wq_has_sleeper(&xn->gone))
		wake_up_all(&xn->gone);
}

/**
 * xrds_upcall_msg_free - the last reference on a message is dropped
 * @msg: message
 *
 * Context: any, without L3 or L4.
 */
void xrds_upcall_msg_free(struct xrds_msg *msg)
{
	if (msg->rop)
		xrds_rop_put(msg->rop);
	if (msg->flow)
		xrds_flow_put(msg->flow);
}
