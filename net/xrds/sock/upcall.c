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

/* Was a message lost, and not by the wish of the program? */
static void xrds_upcall_note_loss(const struct xrds_msg *msg,
				  enum xrds_counter fate)
{
	if (fate != XRDS_C_SEND_ACKED && fate != XRDS_C_SEND_DROP_CLOSED &&
	    msg->flow)
		WRITE_ONCE(xrds_dest_of(msg->flow)->key.xs->undelivered, true);
}

/* Messages that end together, summed up so that each lock is taken once. */
struct xrds_done {
	struct xrds_dest *dest;
	u64 bytes;
	u64 charge;
	u64 mem;
	u32 msgs;
	bool acked;
	bool stale;
};

static void xrds_done_flush(struct xrds_done *done)
{
	if (!done->dest)
		return;
	xrds_upcall_flow_done(done->dest, done->msgs, done->bytes, done->charge,
			      done->mem, done->acked);
	if (done->stale)
		xrds_node_dropped(done->dest, done->msgs);
	xrds_dest_put(done->dest);
	memset(done, 0, offsetof(struct xrds_done, acked));
}

static void xrds_done_notice(struct xrds_msg *msg, s32 status)
{
	struct xrds_notice *n = msg->notice;

	/* a reader may free it; transports may still have the message */
	WRITE_ONCE(msg->notice, NULL);
	xrds_notice_msg_end(&xrds_dest_of(msg->flow)->key.xs->rdma, n, status);
}

/**
 * xrds_upcall_msgs_done - end messages
 * @xn: their namespace
 * @list: of messages; its references are dropped
 * @fate: XRDS_C_SEND_ACKED, or why they are dropped; counts them, but not the
 *	ends of streams
 * @status: how an op ends that the transport never had, which ends the others;
 *	and how the notice of a message does that is dropped, unless an op of it may
 *	have been done
 *
 * Context: any, without L3, L4.
 */
void xrds_upcall_msgs_done(struct xrds_net *xn, struct list_head *list,
			   enum xrds_counter fate, s32 status)
{
	struct xrds_done done = {
		.acked = fate == XRDS_C_SEND_ACKED,
		.stale = fate == XRDS_C_SEND_DROP_STALE_PEER,
	};
	struct xrds_msg *msg, *tmp;
	u32 n = 0;

	list_for_each_entry_safe(msg, tmp, list, node) {
		list_del_init(&msg->node);
		if (done.acked)
			trace_xrds_msg_ack(msg);
		else
			trace_xrds_msg_drop(msg, fate);
		xrds_upcall_note_loss(msg, fate);
		if (msg->rop && !msg->posted)
			xrds_rop_done(msg->rop, status);
		if (unlikely(msg->notice))
			xrds_done_notice(msg, done.acked ? RDS_RDMA_SUCCESS :
					 msg->rop && msg->posted ?
					 RDS_RDMA_DROPPED : status);
		if (msg->flags & XRDS_F_EOS) {
			xrds_upcall_eos_done(xrds_dest_of(msg->flow));
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
			done.mem += xrds_msg_mem(msg->len);
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
 * Nothing reads its payload any more.
 *
 * Context: any, without L3 or L4.
 */
void xrds_upcall_msg_free(struct xrds_msg *msg)
{
	/* it was never queued */
	if (msg->notice && !msg->notice->rop)
		xrds_notice_free(&xrds_dest_of(msg->flow)->key.xs->rdma,
				 msg->notice);
	if (msg->rop) {
		/* the op may stay for as long as its notice is not read */
		kvfree(msg->rop->priv);
		msg->rop->priv = NULL;
		xrds_rop_put(msg->rop);
	}
	if (msg->zcopy)
		xrds_zcopy_end(xrds_dest_of(msg->flow)->key.xs, msg->zcopy);
	if (msg->flow)
		xrds_flow_put(msg->flow);
}

/* Nothing is under way: an open socket keeps the destination. Returns whether
 * it goes, and is to be released.
 */
static bool xrds_upcall_go_idle(struct xrds_dest *dest)
{
	struct xrds_sock *xs = dest->key.xs;

	lockdep_assert_held(&xs->lock);

	if (sock_flag(&xs->sk, SOCK_DEAD)) {
		xrds_dest_unlink(dest);
		return true;
	}
	list_move_tail(&dest->idle_node, &xs->idle_dests);
	xrds_reply_retry(xs);
	return false;
}

/* Has a socket that is closed, or sends nothing more, delivered everything? */
static bool xrds_upcall_none_left(struct xrds_sock *xs)
{
	if (sock_flag(&xs->sk, SOCK_DEAD))
		return !xs->queued_msgs && !xs->nr_eos;
	return xrds_delivered_check(xs);
}

/**
 * xrds_upcall_flow_done - messages of a destination need their space no more
 * @dest: destination; the caller keeps its reference
 * @msgs: how many
 * @bytes: their payload
 * @charge: their charge to the space
 * @mem: their memory, see xrds_msg_mem()
 * @acked: the peer has them; else they were dropped
 *
 * Context: any, without L4.
 */
void xrds_upcall_flow_done(struct xrds_dest *dest, u32 msgs, u64 bytes,
			   u64 charge, u64 mem, bool acked)
{
	struct xrds_sock *xs = dest->key.xs;
	bool gone = false, owes = false, drained;
	__poll_t mask;

	xrds_limit_uncharge(xs->xn, xs->user, XRDS_LIMIT_MEM, mem);
	spin_lock_bh(&xs->lock);
	WRITE_ONCE(dest->charged, dest->charged - charge);
	dest->queued_bytes -= bytes;
	dest->queued_msgs -= msgs;
	xs->queued_bytes -= bytes;
	xs->queued_msgs -= msgs;
	if (acked) {
		dest->acked_msgs += msgs;
		dest->last_progress_ns = ktime_get_ns();
	}
	mask = xrds_space_freed(dest);
	if (!dest->queued_msgs && dest->linked && !xrds_dest_eos_pending(dest)) {
		owes = xrds_dest_eos_due(dest);
		gone = !owes && xrds_upcall_go_idle(dest);
	}
	drained = xrds_upcall_none_left(xs);
	spin_unlock_bh(&xs->lock);

	xrds_space_wake(&dest->flow, mask);
	if (owes)
		xrds_dest_eos_kick(xs);
	if (drained)
		xrds_upcall_drained(xs);
	if (gone)
		xrds_dest_release(dest);
}

/**
 * xrds_upcall_eos_done - the end of a stream is acknowledged, or given up
 * @dest: destination; the caller keeps its reference
 *
 * Context: any, without L4.
 */
void xrds_upcall_eos_done(struct xrds_dest *dest)
{
	struct xrds_sock *xs = dest->key.xs;
	bool gone = false, drained;

	spin_lock_bh(&xs->lock);
	dest->eos = XRDS_EOS_DONE;
	xs->nr_eos--;
	if (!dest->queued_msgs && dest->linked)
		gone = xrds_upcall_go_idle(dest);
	drained = xrds_upcall_none_left(xs);
	spin_unlock_bh(&xs->lock);

	if (drained)
		xrds_upcall_drained(xs);
	if (gone)
		xrds_dest_release(dest);
}

/**
 * xrds_upcall_drained - a socket has nothing left to deliver
 * @xs: socket, closed or shut down; the caller has a reference
 *
 * Context: any, without L4, L5.
 */
void xrds_upcall_drained(struct xrds_sock *xs)
{
	struct xrds_net *xn = xs->xn;
	bool was;

	spin_lock_bh(&xn->lock);
	was = timerqueue_node_queued(&xs->linger_node);
	if (was)
		timerqueue_del(&xn->lingering, &xs->linger_node);
	spin_unlock_bh(&xn->lock);

	wake_up_all(&xs->drained);
	xrds_delivered_wake(xs);
	if (was)
		sock_put(&xs->sk);
}
