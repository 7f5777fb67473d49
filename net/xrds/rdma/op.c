// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMA ops: reads, writes and atomics that sendmsg() asks for, their
 * identifiers, and how they end.
 *
 *   parsed, memory pinned -> identifier, queued with its immediate message
 *     -> posted -> xrds_rop_done() -> leaves its node's FIFO, in order
 *
 * An op that is accepted gets an identifier and will end, exactly once, in
 * xrds_rop_done(), also when its connection or its socket goes. Identifiers
 * count up from one for each (socket, node), in the order in which the ops are
 * queued, which is the order in which they reach the wire. The node keeps its
 * ops in a FIFO. The high-water mark is read off its head: ended ops leave from
 * there, and the mark is the identifier of the last that left. So it never
 * moves backward and never passes an op that may still touch memory: a
 * transport ends an op only when its device is done with it. How a program
 * learns of it, see notify.c.
 *
 * All lists here are guarded by rs->lock (L4).
 */
#include <linux/uio.h>

#include "conn/conn.h"
#include "msg.h"
#include "rdma/rdma.h"
#include "tracepoints.h"
#include "transport.h"
#include "xrds.h"

/**
 * xrds_rop_get - take a reference on an op
 * @rop: op that the caller has a reference on, or finds under the socket's lock
 *
 * Context: any.
 */
void xrds_rop_get(struct xrds_rop *rop)
{
	refcount_inc(&rop->ref);
	trace_xrds_ref_get("rop", rop, refcount_read(&rop->ref), _RET_IP_);
}

/**
 * xrds_rop_put - drop a reference on an op
 * @rop: op
 *
 * Context: any, without L3, L4.
 */
void xrds_rop_put(struct xrds_rop *rop)
{
	struct xrds_rdma_sock *rs = rop->rs;

	trace_xrds_ref_put("rop", rop, refcount_read(&rop->ref) - 1, _RET_IP_);
	if (!refcount_dec_and_test(&rop->ref))
		return;
	xrds_pin_free(rop->pin);
	atomic_dec(&rs->xn->nr_rops);
	xrds_limit_uncharge(rs->xn, rs->user, XRDS_LIMIT_MEM,
			    XRDS_ROP_COST_BYTES);
	kfree(rop);
	sock_put(rs->sk);
}

static void xrds_rop_count(const struct xrds_rop *rop, s32 status)
{
	struct xrds_net *xn = rop->rs->xn;

	xrds_count(xn, status ? XRDS_C_RDMA_FAILED : XRDS_C_RDMA_DONE);
	if (!status && rop->op == XRDS_ROP_WRITE)
		xrds_count_add(xn, XRDS_C_SEND_RDMA_BYTES, rop->bytes);
	if (!status && rop->op == XRDS_ROP_READ)
		xrds_count_add(xn, XRDS_C_RECV_RDMA_BYTES, rop->bytes);
}

/* Ops that have ended leave the FIFO for @left, as far as none before them has
 * not. Returns whether there may be more.
 */
static bool xrds_rop_leave(struct xrds_rdma_sock *rs,
			   struct xrds_rdma_peer *node, struct list_head *left,
			   __poll_t *mask)
{
	struct xrds_rop *head, *tmp;
	bool asked = false;
	u32 n = 0;

	lockdep_assert_held(rs->lock);

	list_for_each_entry_safe(head, tmp, &node->ops, node) {
		if (!head->done || n == XRDS_END_BATCH)
			break;
		WRITE_ONCE(node->completed, head->id);
		asked |= head->id_asked;
		list_move_tail(&head->node, left);
		n++;
	}
	xrds_hold_count(XRDS_HOLD_END, n);
	if (!n)
		return false;
	trace_xrds_rop_hwm(node);
	if (!node->closed && xrds_barrier_event(rs, node, asked))
		*mask |= EPOLLIN | EPOLLRDBAND;
	xrds_rdma_peer_left(node);
	return n == XRDS_END_BATCH;
}

static void xrds_rop_put_all(struct list_head *left)
{
	struct xrds_rop *rop, *tmp;

	list_for_each_entry_safe(rop, tmp, left, node) {
		list_del_init(&rop->node);
		xrds_rop_put(rop);
	}
}

/* The rest of very many that waited for one op; under rcu_read_lock() */
static void xrds_rop_leave_more(struct xrds_rdma_sock *rs,
				struct xrds_rdma_peer *node)
{
	LIST_HEAD(left);
	__poll_t mask;
	bool more;

	do {
		mask = 0;
		spin_lock_bh(rs->lock);
		more = xrds_rop_leave(rs, node, &left, &mask);
		spin_unlock_bh(rs->lock);
		xrds_barrier_wake(rs, node, mask);
		xrds_rop_put_all(&left);
	} while (more);
}

/**
 * xrds_rop_done - an op has ended
 * @rop: op; nothing touches its memory any more
 * @status: RDS_RDMA_SUCCESS, or why it failed
 *
 * The only place where an op ends. The transport's first verdict counts, if
 * it has noted one in rop->status.
 *
 * Context: any, without L4.
 */
void xrds_rop_done(struct xrds_rop *rop, s32 status)
{
	struct xrds_rdma_sock *rs = rop->rs;
	struct xrds_rdma_peer *node = rop->to;
	struct xrds_pin *pin;
	__poll_t mask = 0;
	LIST_HEAD(left);
	bool more;

	/* The notice may stay unread for as long as the program likes. When the
	 * program learns of the end, it may pin as much again.
	 */
	pin = rop->pin;
	rop->pin = NULL;
	xrds_pin_free(pin);

	/* the node of a closed socket may go with this op, or one beside it */
	rcu_read_lock();
	spin_lock_bh(rs->lock);
	if (WARN_ON_ONCE(rop->done)) {
		spin_unlock_bh(rs->lock);
		rcu_read_unlock();
		return;
	}
	rop->done = true;
	if (!rop->status)
		rop->status = status;
	trace_xrds_rop_done(rop);
	more = xrds_rop_leave(rs, node, &left, &mask);
	if (xrds_notice_end(rs, &rop->notice, rop->status))
		mask |= EPOLLIN | EPOLLRDNORM;
	spin_unlock_bh(rs->lock);

	xrds_rop_count(rop, status);
	xrds_barrier_wake(rs, node, mask);
	if (unlikely(more))
		xrds_rop_leave_more(rs, node);
	rcu_read_unlock();
	xrds_rop_put_all(&left);
}
EXPORT_SYMBOL_GPL(xrds_rop_done);

/**
 * xrds_rop_issue - give an op its identifier
 * @rop: op that is being queued
 *
 * From here on it will end. The caller makes sure that nobody else issues ops
 * toward the node, so the identifier is the one the program was told.
 *
 * Context: any, socket locked, conn->lock held: the order of identifiers is
 * that of the queue.
 */
void xrds_rop_issue(struct xrds_rop *rop)
{
	struct xrds_rdma_sock *rs = rop->rs;

	spin_lock_bh(rs->lock);
	rop->id = ++rop->to->issued;
	/* the FIFO's reference */
	xrds_rop_get(rop);
	list_add_tail(&rop->node, &rop->to->ops);
	list_add_tail(&rop->turn_node, &rop->to->waiting);
	trace_xrds_rop_new(rop);
	spin_unlock_bh(rs->lock);
	if (rop->op <= XRDS_ROP_WRITE)
		xrds_count(rs->xn, XRDS_C_SEND_RDMA);
}

/**
 * xrds_rop_first - may an op be posted now?
 * @rop: op that was not posted
 *
 * Ops reach the wire in the order of their identifiers. The ports of their
 * immediate messages do not change that.
 *
 * Context: any, conn->lock held.
 * Return: false while an earlier op of its socket waits that goes to the same
 * node.
 */
bool xrds_rop_first(const struct xrds_rop *rop)
{
	bool first;

	spin_lock_bh(rop->rs->lock);
	first = list_is_first(&rop->turn_node, &rop->to->waiting);
	spin_unlock_bh(rop->rs->lock);
	return first;
}

/**
 * xrds_rop_pass - an op was posted, or ends without that
 * @rop: op; nothing is done if that was told before
 * @conn: its connection
 *
 * Context: any, conn->lock held.
 * Return: the flow whose op is the first now, valid as long as the lock is held;
 * NULL: there is none, or it is on another connection.
 */
struct xrds_flow *xrds_rop_pass(struct xrds_rop *rop,
				const struct xrds_conn *conn)
{
	struct xrds_rop *next = NULL;
	struct xrds_flow *flow = NULL;

	spin_lock_bh(rop->rs->lock);
	if (!list_empty(&rop->turn_node)) {
		list_del_init(&rop->turn_node);
		next = list_first_entry_or_null(&rop->to->waiting,
						struct xrds_rop, turn_node);
		xrds_rdma_peer_left(rop->to);
	}
	/* an op leaves the list before its message ends, and rs->lock is the
	 * flow's
	 */
	if (next && next->msg->flow->conn == conn)
		flow = next->msg->flow;
	spin_unlock_bh(rop->rs->lock);
	return flow;
}

static struct xrds_rop *xrds_rop_alloc(struct xrds_rdma_sock *rs,
				       const struct xrds_transport *trans)
{
	struct xrds_rop *rop;
	int ret;

	if (!(trans->caps & XRDS_CAP_RDMA))
		return ERR_PTR(-EOPNOTSUPP);
	/* as long as its notice is not read */
	ret = xrds_limit_charge(rs->xn, rs->user, XRDS_LIMIT_MEM,
				XRDS_ROP_COST_BYTES);
	if (ret)
		return ERR_PTR(ret);
	rop = kzalloc(sizeof(*rop), GFP_KERNEL_ACCOUNT);
	if (!rop) {
		xrds_limit_uncharge(rs->xn, rs->user, XRDS_LIMIT_MEM,
				    XRDS_ROP_COST_BYTES);
		return ERR_PTR(-ENOMEM);
	}
	refcount_set(&rop->ref, 1);
	INIT_LIST_HEAD(&rop->node);
	INIT_LIST_HEAD(&rop->conn_node);
	INIT_LIST_HEAD(&rop->turn_node);
	rop->notice.rop = rop;
	rop->rs = rs;
	sock_hold(rs->sk);
	atomic_inc(&rs->xn->nr_rops);
	return rop;
}

static void xrds_rop_set_flags(struct xrds_rop *rop, u64 flags)
{
	rop->notice.wanted = flags & RDS_RDMA_NOTIFY_ME;
	/* its own end, and perhaps that of its immediate message */
	rop->notice.waits = flags & XRDS_UEK_REMOTE_COMPLETE ? 2 : 1;
	rop->silent = flags & RDS_RDMA_SILENT;
	rop->fence = flags & RDS_RDMA_FENCE;
}

/* Pin the memory of a vector. */
static struct xrds_pin *xrds_rop_pin(struct xrds_rdma_sock *rs,
				     const struct rds_rdma_args *args,
				     bool write, long *timeo)
{
	struct rds_iovec few[UIO_FASTIOV], *vec = few;
	struct xrds_pin *pin = ERR_PTR(-EFAULT);

	if (!args->nr_local)
		return ERR_PTR(-EINVAL);
	if (args->nr_local > UIO_MAXIOV)
		return ERR_PTR(-EMSGSIZE);
	if (args->nr_local > UIO_FASTIOV)
		vec = kvmalloc_array(args->nr_local, sizeof(*vec), GFP_KERNEL);
	if (!vec)
		return ERR_PTR(-ENOMEM);
	if (!copy_from_user(vec, u64_to_user_ptr(args->local_vec_addr),
			    args->nr_local * sizeof(*vec)))
		pin = xrds_pin_user(rs, vec, args->nr_local,
				    XRDS_ROP_MAX_BYTES, write, timeo);
	if (vec != few)
		kvfree(vec);
	return pin;
}

/**
 * xrds_rop_from_args - RDS_CMSG_RDMA_ARGS
 * @rs: bound socket
 * @trans: the transport of its address
 * @args: the control message
 * @timeo: how long to wait for memory that is being given back, see
 *	xrds_pin_user()
 *
 * Context: process, may sleep.
 * Return: the op with its memory pinned, or ERR_PTR(): -EINVAL, -EMSGSIZE,
 * -EFAULT, -ENOMEM, -EPERM, -EDQUOT, -EOPNOTSUPP, -EINTR when killed.
 */
struct xrds_rop *xrds_rop_from_args(struct xrds_rdma_sock *rs,
				    const struct xrds_transport *trans,
				    const struct rds_rdma_args *args,
				    long *timeo)
{
	bool write = args->flags & RDS_RDMA_READWRITE;
	struct xrds_rop *rop;
	struct xrds_pin *pin;
	u64 end;

	if (args->flags & ~(u64)XRDS_ROP_FLAGS)
		return ERR_PTR(-EINVAL);
	rop = xrds_rop_alloc(rs, trans);
	if (IS_ERR(rop))
		return rop;
	/* a remote write reads our memory */
	pin = xrds_rop_pin(rs, args, !write, timeo);
	if (IS_ERR(pin)) {
		xrds_rop_put(rop);
		return ERR_CAST(pin);
	}
	rop->pin = pin;
	rop->bytes = pin->bytes;
	rop->op = write ? XRDS_ROP_WRITE : XRDS_ROP_READ;
	rop->rkey = (u32)args->cookie;
	rop->offset = args->cookie >> 32;
	rop->notice.token = args->user_token;
	xrds_rop_set_flags(rop, args->flags);
	if (pin->bytes > args->remote_vec.bytes ||
	    check_add_overflow(args->remote_vec.addr, (u64)rop->offset,
			       &rop->raddr) ||
	    check_add_overflow(rop->raddr, pin->bytes, &end)) {
		xrds_rop_put(rop);
		return ERR_PTR(-EINVAL);
	}
	return rop;
}

static void xrds_rop_set_atomic(struct xrds_rop *rop,
				const struct rds_atomic_args *args, int type)
{
	rop->swap_mask = ~0ULL;
	rop->compare_mask = ~0ULL;
	switch (type) {
	case RDS_CMSG_ATOMIC_FADD:
		rop->op = XRDS_ROP_FADD;
		rop->compare_add = args->fadd.add;
		rop->compare_mask = 0;
		break;
	case RDS_CMSG_MASKED_ATOMIC_FADD:
		rop->op = XRDS_ROP_FADD;
		rop->masked = true;
		rop->compare_add = args->m_fadd.add;
		rop->compare_mask = args->m_fadd.nocarry_mask;
		break;
	case RDS_CMSG_ATOMIC_CSWP:
		rop->op = XRDS_ROP_CSWP;
		rop->compare_add = args->cswp.compare;
		rop->swap = args->cswp.swap;
		break;
	case RDS_CMSG_MASKED_ATOMIC_CSWP:
		rop->op = XRDS_ROP_CSWP;
		rop->masked = true;
		rop->compare_add = args->m_cswp.compare;
		rop->swap = args->m_cswp.swap;
		rop->compare_mask = args->m_cswp.compare_mask;
		rop->swap_mask = args->m_cswp.swap_mask;
		break;
	}
}

/**
 * xrds_rop_from_atomic - RDS_CMSG_ATOMIC_FADD and its relatives
 * @rs: bound socket
 * @trans: the transport of its address
 * @args: the control message
 * @type: its type
 * @timeo: as in xrds_rop_from_args()
 *
 * Context: process, may sleep.
 * Return: as xrds_rop_from_args().
 */
struct xrds_rop *xrds_rop_from_atomic(struct xrds_rdma_sock *rs,
				      const struct xrds_transport *trans,
				      const struct rds_atomic_args *args,
				      int type, long *timeo)
{
	struct rds_iovec vec = {
		.addr	= args->local_addr,
		.bytes	= sizeof(u64),
	};
	struct xrds_rop *rop;
	struct xrds_pin *pin;

	/* the device wants both in one piece */
	if (args->flags & ~(u64)XRDS_ROP_FLAGS || vec.addr % sizeof(u64))
		return ERR_PTR(-EINVAL);
	rop = xrds_rop_alloc(rs, trans);
	if (IS_ERR(rop))
		return rop;
	pin = xrds_pin_user(rs, &vec, 1, vec.bytes, true, timeo);
	if (IS_ERR(pin)) {
		xrds_rop_put(rop);
		return ERR_CAST(pin);
	}
	rop->pin = pin;
	rop->bytes = pin->bytes;
	rop->rkey = (u32)args->cookie;
	rop->offset = args->cookie >> 32;
	rop->notice.token = args->user_token;
	xrds_rop_set_flags(rop, args->flags);
	xrds_rop_set_atomic(rop, args, type);
	if (check_add_overflow(args->remote_addr, (u64)rop->offset,
			       &rop->raddr) || rop->raddr % sizeof(u64)) {
		xrds_rop_put(rop);
		return ERR_PTR(-EINVAL);
	}
	return rop;
}
