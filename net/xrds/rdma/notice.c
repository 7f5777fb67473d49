// SPDX-License-Identifier: GPL-2.0-only
/*
 * Notices: a control message says how one op, or one message, has ended.
 *
 * An op has its notice in it. The notice comes when the op ends. With
 * XRDS_UEK_REMOTE_COMPLETE it comes when the immediate message has ended, too:
 * then the peer's kernel has acknowledged it, so the peer's program can see the
 * data of a write. The status is that of the first failure, if one failed.
 *
 * A message has one if its sender asked by XRDS_UEK_CMSG_ASYNC_SEND. It is made
 * with the message, so that nothing is allocated when that ends.
 *
 * A notice comes at most once, on the list that recvmsg() takes it from
 * (notify.c).
 */
#include "rdma/rdma.h"
#include "tracepoints.h"
#include "xrds.h"

/**
 * xrds_notice_alloc - make the notice of a message
 * @rs: socket; its user is charged until the notice is freed
 * @token: the program's name for it
 * @wanted: it comes after a success as well
 *
 * Context: process, may sleep.
 * Return: the notice, or ERR_PTR(): -ENOMEM, -EDQUOT.
 */
struct xrds_notice *xrds_notice_alloc(struct xrds_rdma_sock *rs, u64 token,
				      bool wanted)
{
	struct xrds_notice *n;
	int ret;

	ret = xrds_limit_charge(rs->xn, rs->user, XRDS_LIMIT_MEM,
				XRDS_NOTICE_COST_BYTES);
	if (ret)
		return ERR_PTR(ret);
	n = kzalloc(sizeof(*n), GFP_KERNEL_ACCOUNT);
	if (!n) {
		xrds_limit_uncharge(rs->xn, rs->user, XRDS_LIMIT_MEM,
				    XRDS_NOTICE_COST_BYTES);
		return ERR_PTR(-ENOMEM);
	}
	n->token = token;
	n->wanted = wanted;
	n->waits = 1;
	return n;
}

/**
 * xrds_notice_free - the notice of a message was read, or nobody will read it
 * @rs: its socket
 * @n: notice, of no op
 *
 * Context: any.
 */
void xrds_notice_free(struct xrds_rdma_sock *rs, struct xrds_notice *n)
{
	xrds_limit_uncharge(rs->xn, rs->user, XRDS_LIMIT_MEM,
			    XRDS_NOTICE_COST_BYTES);
	kfree(n);
}

/**
 * xrds_notice_end - the op or the message of a notice has ended
 * @rs: socket
 * @n: notice
 * @status: RDS_RDMA_SUCCESS, or why it failed
 *
 * Context: any, rs->lock held.
 * Return: whether it can be read now; a reader may free it once the lock is
 * dropped.
 */
bool xrds_notice_end(struct xrds_rdma_sock *rs, struct xrds_notice *n,
		     s32 status)
{
	struct xrds_rop *rop = n->rop;

	lockdep_assert_held(rs->lock);

	/* a cancelled message may end while its op still uses the memory */
	n->status = n->status ?: status;
	if (--n->waits || sock_flag(rs->sk, SOCK_DEAD))
		return false;
	/* the failure of a message with a notice is always told */
	if (!n->wanted && (!n->status || (rop && !READ_ONCE(rs->recverr))))
		return false;
	/* as xrds_rop_get() does, but op.c calls this file */
	if (rop) {
		refcount_inc(&rop->ref);
		trace_xrds_ref_get("rop", rop, refcount_read(&rop->ref),
				   _THIS_IP_);
	}
	list_add_tail(&n->node, &rs->notices);
	return true;
}

/**
 * xrds_notice_msg_end - a message with a notice has ended
 * @rs: socket
 * @n: notice; it is the message's no more
 * @status: RDS_RDMA_SUCCESS, or why it was dropped
 *
 * Context: any, without L3, L4.
 */
void xrds_notice_msg_end(struct xrds_rdma_sock *rs, struct xrds_notice *n,
			 s32 status)
{
	bool of_op = n->rop, comes;

	spin_lock_bh(rs->lock);
	comes = xrds_notice_end(rs, n, status);
	spin_unlock_bh(rs->lock);
	if (comes)
		xrds_barrier_wake_sock(rs, EPOLLIN | EPOLLRDNORM);
	else if (!of_op)
		xrds_notice_free(rs, n);
}
