// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions: memory of a program that peers may read or write by key.
 *
 * A region is registered with the transport of the socket's bound address,
 * whether there is a connection or not, for exactly the bytes and the access
 * asked for. It is found by (bound address, key) in the namespace, and listed
 * at its socket. It ends by RDS_FREE_MR, by use if it is to be used once, or
 * with its socket.
 *
 * The end has four steps. The region leaves its socket's list, which the first
 * of those who would end it does. Lookups do not find it any more. The transport
 * invalidates the key: when that has returned, no peer touches the memory. Then the
 * region leaves the table, and the pages are given back.
 *
 * Regions that were used are destroyed by a work, one after the other, and others'
 * may be before one. RDS_FREE_MR takes it from the work and destroys it, or waits if
 * the work has begun with it.
 *
 * A device that goes makes its keys void, as does a move of the address to
 * another device. The transport ends such a region, and the owner is told, once
 * (XRDS_CMSG_MR_LOST). The region stays in the table until its program ends it.
 * A device that comes counts its keys from the beginning, and may give one away
 * that such a region has. Peers know it as that region's, so it must not become
 * another's: that one is registered again, with the next key.
 *
 * Over loopback a peer's access is a copy, made under mr->lock, and the same
 * lock invalidates.
 */
#include <linux/wait_bit.h>

#include "rdma/rdma.h"
#include "tracepoints.h"
#include "transport.h"
#include "xrds.h"

/* keys in a row that may belong to regions without device */
enum { XRDS_MR_TRIES = 256 };

/* Ends regions that were used. Each namespace has one work, which is bounded. Pinned
 * memory is given back elsewhere, as its owner decides how long that takes.
 */
static struct workqueue_struct *xrds_mr_wq;
static DEFINE_SPINLOCK(xrds_mr_used_lock);	/* mrs_used of namespaces */

const struct rhashtable_params xrds_mr_params = {
	.key_len	= sizeof(struct xrds_mr_key),
	.key_offset	= offsetof(struct xrds_mr, key),
	.head_offset	= offsetof(struct xrds_mr, node),
	.automatic_shrinking = true,
};

/**
 * xrds_mr_get - take a reference on a region
 * @mr: region, found under the lock of its list
 *
 * Context: any.
 */
void xrds_mr_get(struct xrds_mr *mr)
{
	refcount_inc(&mr->ref);
	trace_xrds_ref_get("mr", mr, refcount_read(&mr->ref), _RET_IP_);
}

/**
 * xrds_mr_put - drop a reference on a region
 * @mr: region
 *
 * Context: any.
 */
void xrds_mr_put(struct xrds_mr *mr)
{
	trace_xrds_ref_put("mr", mr, refcount_read(&mr->ref) - 1, _RET_IP_);
	if (!refcount_dec_and_test(&mr->ref))
		return;
	xrds_pin_free(mr->pin);
	xrds_limit_uncharge(mr->xn, mr->user, XRDS_LIMIT_KEYS, 1);
	xrds_user_put(mr->user);
	atomic_dec(&mr->xn->nr_mrs);
	kfree_rcu(mr, rcu);
}

/* Returns a region, be it about to end, with a reference, or NULL. */
static struct xrds_mr *xrds_mr_lookup(struct xrds_net *xn,
				      const struct in6_addr *addr, u32 rkey)
{
	struct xrds_mr_key key = { .addr = *addr, .rkey = rkey };
	struct xrds_mr *mr;

	rcu_read_lock();
	mr = rhashtable_lookup(&xn->mrs, &key, xrds_mr_params);
	if (mr && !refcount_inc_not_zero(&mr->ref))
		mr = NULL;
	rcu_read_unlock();
	if (mr)
		trace_xrds_ref_get("mr", mr, refcount_read(&mr->ref), _RET_IP_);
	return mr;
}

/**
 * xrds_mr_find - look a region up
 * @xn: namespace
 * @addr: address that its socket is bound to
 * @rkey: key
 *
 * Context: any.
 * Return: the region with a reference, or NULL: there is none, or it is about to
 * end.
 */
struct xrds_mr *xrds_mr_find(struct xrds_net *xn, const struct in6_addr *addr,
			     u32 rkey)
{
	struct xrds_mr *mr = xrds_mr_lookup(xn, addr, rkey);

	if (!mr || READ_ONCE(mr->linked))
		return mr;
	xrds_mr_put(mr);
	return NULL;
}

/* Does a cookie that has its number name this region of the socket? A program may
 * have moved the offset within the region, as with in-tree RDS. The cookie of
 * a region that has ended may have the number, too, but lies outside (ib/key.c).
 */
static bool xrds_mr_named(const struct xrds_mr *mr,
			  const struct xrds_rdma_sock *rs, u64 cookie)
{
	return mr->rs == rs &&
	       (u64)upper_32_bits(cookie) - mr->offset < mr->pin->bytes;
}

/**
 * xrds_mr_owned - is it the cookie of a region of this socket?
 * @rs: bound socket
 * @cookie: cookie
 *
 * Context: any.
 * Return: whether it is.
 */
bool xrds_mr_owned(struct xrds_rdma_sock *rs, u64 cookie)
{
	struct xrds_mr *mr = xrds_mr_find(rs->xn, &rs->bind->addr,
					  lower_32_bits(cookie));
	bool owned = mr && xrds_mr_named(mr, rs, cookie);

	if (mr)
		xrds_mr_put(mr);
	return owned;
}

/* Take it out of its socket's list; true for the one who did. The socket must be
 * there.
 */
static bool xrds_mr_unlink(struct xrds_mr *mr)
{
	struct xrds_rdma_sock *rs = mr->rs;
	bool linked;

	spin_lock_bh(rs->lock);
	linked = mr->linked;
	if (linked) {
		WRITE_ONCE(mr->linked, false);
		list_del_init(&mr->rs_node);
		list_del_init(&mr->lost_node);
	}
	spin_unlock_bh(rs->lock);
	return linked;
}

/* The key is void from here on; may sleep. */
static void xrds_mr_destroy(struct xrds_mr *mr)
{
	mr->trans->mr_unreg(mr);
	trace_xrds_mr_unreg(mr);
	rhashtable_remove_fast(&mr->xn->mrs, &mr->node, xrds_mr_params);
	WRITE_ONCE(mr->ended, true);
	/* pairs with the one in wait_var_event() */
	smp_mb();
	wake_up_var(&mr->ended);
	/* the table's reference; loopback may have one for a moment */
	xrds_mr_put(mr);
}

/**
 * xrds_mr_work - end a namespace's regions that were used
 * @work: xn->mrs_work
 *
 * Context: process, may sleep.
 */
void xrds_mr_work(struct work_struct *work)
{
	struct xrds_net *xn = container_of(work, struct xrds_net, mrs_work);
	struct xrds_mr *mr;

	for (;;) {
		spin_lock_bh(&xrds_mr_used_lock);
		mr = list_first_entry_or_null(&xn->mrs_used, struct xrds_mr,
					      used_node);
		if (mr)
			list_del_init(&mr->used_node);
		spin_unlock_bh(&xrds_mr_used_lock);
		if (!mr)
			break;
		xrds_mr_destroy(mr);
		cond_resched();
	}
}

/* Take a region that was used from the work; true if that has not begun with it. */
static bool xrds_mr_take_used(struct xrds_mr *mr)
{
	bool taken;

	spin_lock_bh(&xrds_mr_used_lock);
	taken = !list_empty(&mr->used_node);
	list_del_init(&mr->used_node);
	spin_unlock_bh(&xrds_mr_used_lock);
	return taken;
}

/**
 * xrds_mr_load - module init
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int xrds_mr_load(void)
{
	xrds_mr_wq = alloc_workqueue("xrds_mr", WQ_UNBOUND, 0);
	return xrds_mr_wq ? 0 : -ENOMEM;
}

/**
 * xrds_mr_unload - module exit
 *
 * Context: process; there are no regions any more.
 */
void xrds_mr_unload(void)
{
	destroy_workqueue(xrds_mr_wq);
}

/**
 * xrds_mr_used - a peer has used a key for the last time
 * @xn: namespace
 * @addr: our address
 * @rkey: key that the peer's op has used
 *
 * Ends a region that was to be used once.
 *
 * Context: any.
 */
void xrds_mr_used(struct xrds_net *xn, const struct in6_addr *addr, u32 rkey)
{
	struct xrds_mr *mr;

	/* the socket of a region that is found is freed later */
	rcu_read_lock();
	mr = xrds_mr_find(xn, addr, rkey);
	if (mr && mr->use_once && xrds_mr_unlink(mr)) {
		/* its process may exit at once, and others get the pages */
		mr->invalidate = true;
		spin_lock_bh(&xrds_mr_used_lock);
		list_add_tail(&mr->used_node, &xn->mrs_used);
		spin_unlock_bh(&xrds_mr_used_lock);
		queue_work(xrds_mr_wq, &xn->mrs_work);
	}
	rcu_read_unlock();
	if (mr)
		xrds_mr_put(mr);
}

/**
 * xrds_mr_flush - wait for the ends of a namespace's regions that were used
 * @xn: namespace
 *
 * A region whose socket is closed may still be about to end in that way. Then
 * it is all that needs the module of its transport.
 *
 * Context: process, may sleep; bounded as transport->mr_unreg() is.
 */
void xrds_mr_flush(struct xrds_net *xn)
{
	flush_work(&xn->mrs_work);
}
EXPORT_SYMBOL_GPL(xrds_mr_flush);

/* Its owner has something to read. */
static void xrds_mr_tell_lost(struct xrds_mr *mr)
{
	struct xrds_rdma_sock *rs = mr->rs;
	bool told;

	spin_lock_bh(rs->lock);
	told = mr->linked;
	if (told)
		list_add_tail(&mr->lost_node, &rs->lost);
	spin_unlock_bh(rs->lock);
	if (told)
		rs->sk->sk_data_ready(rs->sk);
}

/**
 * xrds_mr_make_dead - refuse further access over loopback
 * @mr: region that the transport is going to end
 * @lost: enum xrds_mr_lost; 0 when its owner ends it
 *
 * Context: any, without mr->lock.
 * Return: whether xrds_mr_lost() is to be called when the key is void.
 */
bool xrds_mr_make_dead(struct xrds_mr *mr, u32 lost)
{
	bool tell;

	spin_lock_bh(&mr->lock);
	mr->dead = true;
	mr->lost = lost;
	/* else xrds_mr_insert() finds it dead, and tells */
	tell = lost && mr->linked;
	spin_unlock_bh(&mr->lock);
	return tell;
}
EXPORT_SYMBOL_GPL(xrds_mr_make_dead);

/**
 * xrds_mr_lost - tell a region's owner that the key is void
 * @mr: region; the transport keeps its owner from ending it
 *
 * Context: process, without rs->lock.
 */
void xrds_mr_lost(struct xrds_mr *mr)
{
	/* the socket of a linked region is open, and is freed no sooner than a
	 * grace period after it is closed
	 */
	rcu_read_lock();
	if (READ_ONCE(mr->linked))
		xrds_mr_tell_lost(mr);
	rcu_read_unlock();
}
EXPORT_SYMBOL_GPL(xrds_mr_lost);

/* Peers find it from here on. Its device may have gone in the meantime. When the
 * lock is dropped another thread may free the region.
 */
static int xrds_mr_insert(struct xrds_mr *mr)
{
	struct xrds_rdma_sock *rs = mr->rs;
	bool lost = false;
	int ret;

	spin_lock_bh(rs->lock);
	ret = rhashtable_lookup_insert_fast(&mr->xn->mrs, &mr->node,
					    xrds_mr_params);
	if (!ret) {
		spin_lock(&mr->lock);
		WRITE_ONCE(mr->linked, true);
		lost = mr->dead;
		spin_unlock(&mr->lock);
		list_add_tail(&mr->rs_node, &rs->mrs);
		if (lost)
			list_add_tail(&mr->lost_node, &rs->lost);
		trace_xrds_mr_reg(mr);
	}
	spin_unlock_bh(rs->lock);
	if (lost)
		rs->sk->sk_data_ready(rs->sk);
	return ret && ret != -EEXIST ? -ENOMEM : ret;
}

/* Get it a key, tell the caller, and let peers find it. */
static int xrds_mr_publish(struct xrds_mr *mr,
			   const struct rds_get_mr_args *args, u64 *cookie)
{
	int ret;

	mr->dead = false;
	mr->lost = 0;
	ret = mr->trans->mr_reg(mr);
	if (ret)
		return ret;
	*cookie = xrds_mr_cookie(mr);
	ret = -EFAULT;
	if (!args->cookie_addr ||
	    !put_user(*cookie,
		      (u64 __user *)u64_to_user_ptr(args->cookie_addr)))
		ret = xrds_mr_insert(mr);
	if (ret)
		mr->trans->mr_unreg(mr);
	return ret;
}

/**
 * xrds_mr_create - register memory of the calling program
 * @rs: bound socket
 * @trans: the transport of its address
 * @args: memory and flags; args->cookie_addr, if not zero, gets the cookie
 * @cookie: result
 * @timeo: how long to wait for memory that is being given back, see
 *	xrds_pin_user()
 *
 * Context: process, may sleep; no lock of ours held.
 * Return: 0, -EINVAL, -EFAULT, -EMSGSIZE beyond the device's limit,
 * -EPERM or -ENOMEM beyond RLIMIT_MEMLOCK, -EDQUOT beyond the bounds of the
 * user or the namespace, -EOPNOTSUPP when the transport has
 * no RDMA, -ENODEV when its device is gone, -EINTR when killed.
 */
int xrds_mr_create(struct xrds_rdma_sock *rs,
		   const struct xrds_transport *trans,
		   const struct rds_get_mr_args *args, u64 *cookie, long *timeo)
{
	unsigned int tries = 0;
	struct xrds_mr *mr;
	int ret;

	if (!(trans->caps & XRDS_CAP_RDMA))
		return -EOPNOTSUPP;
	if (args->flags & ~(u64)XRDS_MR_FLAGS)
		return -EINVAL;

	ret = xrds_limit_charge(rs->xn, rs->user, XRDS_LIMIT_KEYS, 1);
	if (ret)
		return ret;
	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr) {
		xrds_limit_uncharge(rs->xn, rs->user, XRDS_LIMIT_KEYS, 1);
		return -ENOMEM;
	}
	refcount_set(&mr->ref, 1);
	spin_lock_init(&mr->lock);
	INIT_LIST_HEAD(&mr->rs_node);
	INIT_LIST_HEAD(&mr->lost_node);
	INIT_LIST_HEAD(&mr->used_node);
	mr->xn = rs->xn;
	mr->user = xrds_user_get(rs->user);
	mr->rs = rs;
	mr->trans = trans;
	mr->write = args->flags & RDS_RDMA_READWRITE;
	mr->use_once = args->flags & RDS_RDMA_USE_ONCE;
	mr->invalidate = args->flags & RDS_RDMA_INVALIDATE;
	mr->key.addr = rs->bind->addr;
	atomic_inc(&rs->xn->nr_mrs);

	/* a peer may write to it: the pages then hold its data, too */
	mr->pin = xrds_pin_user(rs, &args->vec, 1, XRDS_MR_MAX_BYTES, mr->write,
				timeo);
	if (IS_ERR(mr->pin)) {
		ret = PTR_ERR(mr->pin);
		mr->pin = NULL;
		goto err_put;
	}
	do {
		ret = xrds_mr_publish(mr, args, cookie);
	} while (ret == -EEXIST && ++tries < XRDS_MR_TRIES);
	if (!ret)
		return 0;
	if (ret == -EEXIST)
		ret = -ENOMEM;

err_put:
	xrds_mr_put(mr);
	return ret;
}

/**
 * xrds_mr_free - RDS_FREE_MR
 * @rs: socket
 * @args: cookie; 0 ends nothing, as nothing ended is kept
 *
 * When it has returned no peer can touch the memory, also if an op that has used the
 * region has ended it; with RDS_RDMA_INVALIDATE on no device.
 *
 * Context: process, may sleep, bounded as transport->mr_unreg() is.
 * Return: 0, -EINVAL for an unknown cookie, -EINTR when killed.
 */
int xrds_mr_free(struct xrds_rdma_sock *rs, const struct rds_free_mr_args *args)
{
	struct xrds_mr *mr;
	int ret = -EINVAL;

	if (args->flags & ~(u64)RDS_RDMA_INVALIDATE)
		return -EINVAL;
	if (!args->cookie)
		return 0;
	mr = xrds_mr_lookup(rs->xn, &rs->bind->addr, (u32)args->cookie);
	if (!mr)
		return -EINVAL;
	if (!xrds_mr_named(mr, rs, args->cookie))
		goto out;
	if (xrds_mr_unlink(mr)) {
		mr->invalidate |= args->flags & RDS_RDMA_INVALIDATE;
		xrds_mr_destroy(mr);
		ret = 0;
	} else if (xrds_mr_take_used(mr)) {
		xrds_mr_destroy(mr);
	} else if (wait_var_event_killable(&mr->ended, READ_ONCE(mr->ended))) {
		ret = -EINTR;
	}
out:
	xrds_mr_put(mr);
	return ret;
}

/**
 * xrds_mr_free_all - the socket is closed
 * @rs: socket
 *
 * Context: process, may sleep.
 */
void xrds_mr_free_all(struct xrds_rdma_sock *rs)
{
	struct xrds_mr *mr;

	for (;;) {
		spin_lock_bh(rs->lock);
		mr = list_first_entry_or_null(&rs->mrs, struct xrds_mr,
					      rs_node);
		if (mr)
			xrds_mr_get(mr);
		spin_unlock_bh(rs->lock);
		if (!mr)
			break;
		if (xrds_mr_unlink(mr)) {
			mr->closing = true;
			xrds_mr_destroy(mr);
		}
		xrds_mr_put(mr);
	}
}
