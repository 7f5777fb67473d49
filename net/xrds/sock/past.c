// SPDX-License-Identifier: GPL-2.0-only
/*
 * Destinations of the past: their addresses, for the end of the stream.
 *
 * A destination that gives its place to another one (dest.c) has read all
 * messages that were sent to it. Its receiver has still to read the end of the
 * stream. The mark is not sent when the destination is evicted, as the stream
 * may go on. So its address is kept, on the account of the socket's user. There
 * are two ways out:
 *
 *   evicted -> kept -> made anew by the next message to it; its stream goes on
 *                   -> made anew when all streams end (eos.c), for the mark
 *
 * A socket keeps xrds_net_max_past() addresses. Above that the oldest is
 * forgotten, and counted (send_drop_eos): no message went there for longest, so
 * its receiver is mostly gone. A server that answers clients with ever new
 * addresses would grow without bound otherwise.
 *
 * Everything here is guarded by xs->lock (L4).
 */
#include "conn/conn.h"
#include "sock/dest.h"
#include "sock/sock.h"
#include "xrds.h"

/**
 * struct xrds_past - a destination that was evicted, and has read no end
 * @node:	in xn->past
 * @key:	which
 * @list:	in xs->past; xs->lock
 * @acked_msgs: see struct xrds_dest
 * @last_progress_ns: the same
 * @rcu:	for lookups of others
 */
struct xrds_past {
	struct rhash_head node;
	struct xrds_dest_key key;
	struct list_head list;
	u64 acked_msgs;
	u64 last_progress_ns;
	struct rcu_head rcu;
};

const struct rhashtable_params xrds_past_params = {
	.key_len	= sizeof(struct xrds_dest_key),
	.key_offset	= offsetof(struct xrds_past, key),
	.head_offset	= offsetof(struct xrds_past, node),
	.automatic_shrinking = true,
};

static void xrds_past_forget(struct xrds_past *past)
{
	struct xrds_sock *xs = past->key.xs;

	lockdep_assert_held(&xs->lock);

	rhashtable_remove_fast(&xs->xn->past, &past->node, xrds_past_params);
	list_del(&past->list);
	xs->nr_past--;
	xrds_limit_uncharge(xs->xn, xs->user, XRDS_LIMIT_MEM,
			    XRDS_DEST_COST_BYTES);
	kfree_rcu(past, rcu);
}

/**
 * xrds_past_add - remember the address of a destination that is evicted
 * @dest: idle destination; nothing is done if its stream never began, or has
 *	ended
 *
 * It costs as much as the destination did: to send the mark that is needed
 * again.
 *
 * Context: any, xs->lock held.
 * Return: 0, -EDQUOT or -ENOMEM.
 */
int xrds_past_add(const struct xrds_dest *dest)
{
	struct xrds_sock *xs = dest->key.xs;
	struct xrds_past *past;
	int ret;

	lockdep_assert_held(&xs->lock);

	if (!READ_ONCE(dest->flow.begun) || dest->eos != XRDS_EOS_NONE)
		return 0;
	ret = xrds_limit_charge(xs->xn, xs->user, XRDS_LIMIT_MEM,
				XRDS_DEST_COST_BYTES);
	if (ret)
		return ret;
	past = kzalloc(sizeof(*past),
		       GFP_ATOMIC | __GFP_NOWARN | __GFP_ACCOUNT);
	if (!past)
		goto err_uncharge;
	past->key = dest->key;
	past->acked_msgs = dest->acked_msgs;
	past->last_progress_ns = dest->last_progress_ns;
	if (rhashtable_insert_fast(&xs->xn->past, &past->node,
				   xrds_past_params))
		goto err_free;
	list_add_tail(&past->list, &xs->past);
	if (++xs->nr_past > xrds_net_max_past(xs->xn)) {
		xrds_past_forget(list_first_entry(&xs->past, struct xrds_past,
						  list));
		xrds_delivered_drop_eos(xs);
	}
	return 0;

err_free:
	kfree(past);
err_uncharge:
	xrds_limit_uncharge(xs->xn, xs->user, XRDS_LIMIT_MEM,
			    XRDS_DEST_COST_BYTES);
	return -ENOMEM;
}

/**
 * xrds_past_restore - a destination was made, maybe one that was evicted
 * @dest: destination
 *
 * Context: any, xs->lock held.
 */
void xrds_past_restore(struct xrds_dest *dest)
{
	struct xrds_sock *xs = dest->key.xs;
	struct xrds_past *past;

	lockdep_assert_held(&xs->lock);

	if (!xs->nr_past)
		return;
	past = rhashtable_lookup_fast(&xs->xn->past, &dest->key,
				      xrds_past_params);
	if (!past)
		return;
	xrds_flow_begin(&dest->flow);
	dest->acked_msgs += past->acked_msgs;
	dest->last_progress_ns = dest->last_progress_ns ?: past->last_progress_ns;
	xrds_past_forget(past);
}

/**
 * xrds_past_status - what a destination that was evicted had got done
 * @xs: socket
 * @to: its address
 * @acked_msgs: result, left alone if nothing is known
 * @last_progress_ns: the same
 *
 * Context: any, without L4.
 */
void xrds_past_status(struct xrds_sock *xs, const struct xrds_addr *to,
		      u64 *acked_msgs, u64 *last_progress_ns)
{
	struct xrds_dest_key key = xrds_dest_key(xs, to);
	const struct xrds_past *past;

	spin_lock_bh(&xs->lock);
	past = rhashtable_lookup_fast(&xs->xn->past, &key, xrds_past_params);
	if (past) {
		*acked_msgs = past->acked_msgs;
		*last_progress_ns = past->last_progress_ns;
	}
	spin_unlock_bh(&xs->lock);
}

/**
 * xrds_past_take - take the address of the oldest evicted destination
 * @xs: socket
 * @to: address and port
 *
 * Context: any, without L4.
 * Return: whether there is one; it is forgotten.
 */
bool xrds_past_take(struct xrds_sock *xs, struct xrds_addr *to)
{
	struct xrds_past *past;

	spin_lock_bh(&xs->lock);
	past = list_first_entry_or_null(&xs->past, struct xrds_past, list);
	if (past) {
		to->addr = past->key.addr;
		to->scope = past->key.scope;
		to->port = past->key.port;
		xrds_past_forget(past);
	}
	spin_unlock_bh(&xs->lock);
	return past;
}
