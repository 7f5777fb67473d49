/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory of programs that a device may reach, and the RDMA ops that do.
 *
 * Pinned memory belongs to one memory region or one op, and is given back when
 * the device is done with it. A region is its socket's: peers reach it by its
 * key until it is freed, used up, or the socket is closed. An op goes in front
 * of a message, to a node; the node keeps the ops of one socket toward it in
 * order, and its high-water mark says how many of them have ended.
 *
 * All lists are guarded by xs->lock (L4). A region has a lock of its own for
 * access over loopback; it is a leaf. No RDMA type of the kernel's is known
 * here: what a transport needs of those hangs on @priv.
 */
#ifndef _XRDS_RDMA_H
#define _XRDS_RDMA_H

#include <linux/bvec.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "xrds.h"

/* --------------------------------------------------------------- pin.c */

/**
 * struct xrds_pin - pinned memory of a process
 * @pages:	pages
 * @nr_pages:	how many; charged to @mm
 * @bv:		the bytes in them
 * @nr_bv:	how many pieces
 * @bytes:	sum of all
 * @write:	pinned for writing
 * @mm:		whose memory it is
 * @xn:		namespace that it is charged to
 * @user:	and the user, with a reference
 * @work:	gives it back
 */
struct xrds_pin {
	struct page **pages;
	unsigned int nr_pages;
	struct bio_vec *bv;
	unsigned int nr_bv;
	u64 bytes;
	bool write;
	struct mm_struct *mm;
	struct xrds_net *xn;
	struct xrds_user *user;
	struct work_struct work;
};

extern struct workqueue_struct *xrds_pin_wq;
int xrds_pin_init(void);
void xrds_pin_exit(void);
struct xrds_pin *xrds_pin_user(struct xrds_sock *xs,
			       const struct rds_iovec *vec, unsigned int nr,
			       u64 max_bytes, bool write);
void xrds_pin_free(struct xrds_pin *pin);

/* ---------------------------------------------------------------- mr.c */

#define XRDS_MR_FLAGS	(RDS_RDMA_READWRITE | RDS_RDMA_INVALIDATE | \
			 RDS_RDMA_USE_ONCE | RDS_RDMA_DONTWAIT)

enum { XRDS_MR_MAX_BYTES = 1 << 30 };

/**
 * struct xrds_mr_key - key of the table of memory regions
 * @addr:	address the owner is bound to
 * @rkey:	key that peers use
 */
struct xrds_mr_key {
	struct in6_addr addr;
	u32 rkey;
};

/**
 * struct xrds_mr - a memory region
 * @node:	in xn->mrs while @linked
 * @key:	which
 * @xn:		namespace
 * @user:	on whose account it is, with a reference
 * @xs:		owner; no reference, closing it ends the region
 * @xs_node:	in xs->mrs while @linked; xs->lock
 * @linked:	found by lookups; xs->lock
 * @ref:	the table's, and those of accesses over loopback
 * @rcu:	for lookups
 * @work:	ends a region that was used
 * @trans:	transport it is registered with
 * @pin:	memory
 * @offset:	where in the key's address space the memory begins
 * @write:	peers may write
 * @use_once:	ends when it was used
 * @invalidate:	RDS_RDMA_INVALIDATE: an access that has begun is waited for,
 *		whatever that takes; set by who registers or ends it
 * @lock:	loopback: guards access and @dead
 * @dead:	loopback: the key is void; @lock
 * @priv:	the transport's
 */
struct xrds_mr {
	struct rhash_head node;
	struct xrds_mr_key key;
	struct xrds_net *xn;
	struct xrds_user *user;
	struct xrds_sock *xs;
	struct list_head xs_node;
	bool linked;
	refcount_t ref;
	struct rcu_head rcu;
	struct work_struct work;
	const struct xrds_transport *trans;
	struct xrds_pin *pin;
	u32 offset;
	bool write;
	bool use_once;
	bool invalidate;
	spinlock_t lock;		/* access over loopback, dead */
	bool dead;
	void *priv;
};

int xrds_mr_init(struct xrds_net *xn);
void xrds_mr_exit(struct xrds_net *xn);
struct xrds_mr *xrds_mr_find(struct xrds_net *xn, const struct in6_addr *addr,
			     u32 rkey);
bool xrds_mr_owned(struct xrds_sock *xs, u64 cookie);
void xrds_mr_put(struct xrds_mr *mr);
void xrds_mr_flush(void);
void xrds_mr_used(struct xrds_net *xn, const struct in6_addr *addr, u32 rkey);
int xrds_mr_create(struct xrds_sock *xs, const struct rds_get_mr_args *args,
		   u64 *cookie);
int xrds_mr_free(struct xrds_sock *xs, const struct rds_free_mr_args *args);
void xrds_mr_free_all(struct xrds_sock *xs);

/* -------------------------------------------------------------- rdma.c */

#define XRDS_ROP_FLAGS	(RDS_RDMA_READWRITE | RDS_RDMA_FENCE | \
			 RDS_RDMA_INVALIDATE | RDS_RDMA_USE_ONCE | \
			 RDS_RDMA_DONTWAIT | RDS_RDMA_NOTIFY_ME | \
			 RDS_RDMA_SILENT)

enum { XRDS_ROP_MAX_BYTES = 1 << 30 };

enum xrds_rop_op {
	XRDS_ROP_READ,		/* from the peer's memory into ours */
	XRDS_ROP_WRITE,		/* from ours into the peer's */
	XRDS_ROP_FADD,		/* fetch and add, at the peer's */
	XRDS_ROP_CSWP,		/* compare and swap, at the peer's */
};

/**
 * struct xrds_node_key - key of the table of nodes
 * @xs:		socket
 * @addr:	address, IPv4 mapped
 * @scope:	interface index of a link-local address, else 0
 * @zero:	no padding in a key
 */
struct xrds_node_key {
	struct xrds_sock *xs;
	struct in6_addr addr;
	u32 scope;
	u32 zero;
};

/**
 * struct xrds_node - RDMA ops of one socket toward one node
 * @node:	in xn->nodes
 * @key:	which; lives as long as the socket
 * @rcu:	for lookups
 * @xs_node:	in xs->nodes, which only grows; xs->lock, RCU readers
 * @ops:	ops that have not left, by identifier; xs->lock
 * @issued:	last identifier given out; xs->lock
 * @completed:	high-water mark; written under xs->lock
 * @armed:	identifier a barrier is armed for, 0: none; xs->lock
 * @event_node:	in xs->events; xs->lock
 * @wait:	barriers that block
 */
struct xrds_node {
	struct rhash_head node;
	struct xrds_node_key key;
	struct rcu_head rcu;
	struct list_head xs_node;
	struct list_head ops;
	u64 issued;
	u64 completed;
	u64 armed;
	struct list_head event_node;
	wait_queue_head_t wait;
};

/**
 * struct xrds_rop - an RDMA op or atomic
 * @node:	in to->ops, from its issue until it leaves; xs->lock
 * @conn_node:	in conn->ops while @msg is in a queue of it; conn->lock
 * @msg:	immediate message, whose the op is; conn->lock
 * @notice_node: in xs->notices; xs->lock
 * @ref:	the message's, the FIFO's, the notice's
 * @xs:		socket, with a reference
 * @to:		node it goes to
 * @pin:	local memory
 * @id:		identifier; 0 until issued; xs->lock
 * @token:	the program's name for it
 * @raddr:	remote address
 * @rkey:	remote key
 * @op:		enum xrds_rop_op
 * @masked:	an atomic with masks
 * @notify:	the program wants a notice
 * @silent:	the immediate message is not delivered
 * @fence:	the immediate message waits for the op
 * @id_asked:	the program was told the identifier
 * @done:	has ended; xs->lock
 * @status:	how; before that what the transport knows of a failure
 * @compare_add: operand of an atomic
 * @swap:	operand of an atomic
 * @compare_mask: mask of an atomic
 * @swap_mask:	mask of an atomic
 * @priv:	the transport's, freed with the op by kvfree(): its module may have
 *		gone by then
 */
struct xrds_rop {
	struct list_head node;
	struct list_head conn_node;
	struct xrds_msg *msg;
	struct list_head notice_node;
	refcount_t ref;
	struct xrds_sock *xs;
	struct xrds_node *to;
	struct xrds_pin *pin;
	u64 id;
	u64 token;
	u64 raddr;
	u32 rkey;
	u8 op;
	bool masked;
	bool notify;
	bool silent;
	bool fence;
	bool id_asked;
	bool done;
	s32 status;
	u64 compare_add;
	u64 swap;
	u64 compare_mask;
	u64 swap_mask;
	void *priv;
};

int xrds_node_init(struct xrds_net *xn);
void xrds_node_exit(struct xrds_net *xn);
struct xrds_node *xrds_node_find(struct xrds_sock *xs,
				 const struct xrds_addr *to);
void xrds_node_marks(struct xrds_sock *xs, const struct xrds_addr *to,
		     u64 *issued, u64 *completed);
struct xrds_node *xrds_node_get_for(struct xrds_sock *xs,
				    const struct xrds_addr *to);
void xrds_node_free_all(struct xrds_sock *xs);
struct xrds_rop *xrds_rop_from_args(struct xrds_sock *xs,
				    const struct rds_rdma_args *args);
struct xrds_rop *xrds_rop_from_atomic(struct xrds_sock *xs,
				      const struct rds_atomic_args *args,
				      int type);
void xrds_rop_issue(struct xrds_rop *rop);
void xrds_rop_done(struct xrds_rop *rop, s32 status);
void xrds_rop_put(struct xrds_rop *rop);

/* ------------------------------------------------------------ notice.c */

void xrds_notice_wake(struct xrds_sock *xs, struct xrds_node *node,
		      __poll_t mask);
bool xrds_notice_event(struct xrds_sock *xs, struct xrds_node *node,
		       bool asked);
void xrds_node_arm(struct xrds_sock *xs, struct xrds_node *node, u64 id);
int xrds_barrier(struct xrds_sock *xs, struct xrds_barrier *b, bool nonblock);
bool xrds_cmsg_room(const struct msghdr *m, size_t len);
__poll_t xrds_notices_pending(struct xrds_sock *xs);
int xrds_notices_read(struct xrds_sock *xs, struct msghdr *m);
void xrds_notices_purge(struct xrds_sock *xs);

#endif /* _XRDS_RDMA_H */
