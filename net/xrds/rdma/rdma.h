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
 * All lists are guarded by rs->lock (L4). A region has a lock of its own for
 * access over loopback; it is a leaf. No RDMA type of the kernel's is known
 * here: a transport hangs its own objects on @priv.
 */
#ifndef _XRDS_RDMA_H
#define _XRDS_RDMA_H

#if XRDS_LEVEL < 3
#error "for rdma/ and the folders above, see Kbuild"
#endif

#include <linux/bvec.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "transport.h"
#include "upcall.h"
#include "xrds.h"

/* --------------------------------------------------------------- pin.c */

int xrds_pin_init(void);
void xrds_pin_exit(void);
void xrds_pin_net_exit(struct xrds_net *xn);
struct xrds_pin *xrds_pin_user(struct xrds_rdma_sock *rs,
			       const struct rds_iovec *vec, unsigned int nr,
			       u64 max_bytes, bool write, long *timeo);
void xrds_pin_free(struct xrds_pin *pin);

/* ---------------------------------------------------------------- mr.c */

#define XRDS_MR_FLAGS	(RDS_RDMA_READWRITE | RDS_RDMA_INVALIDATE | \
			 RDS_RDMA_USE_ONCE | RDS_RDMA_DONTWAIT)

enum { XRDS_MR_MAX_BYTES = 1 << 30 };

extern const struct rhashtable_params xrds_mr_params;

int xrds_mr_load(void);
void xrds_mr_unload(void);
void xrds_mr_work(struct work_struct *work);
void xrds_mr_get(struct xrds_mr *mr);
bool xrds_mr_owned(struct xrds_rdma_sock *rs, u64 cookie);
int xrds_mr_create(struct xrds_rdma_sock *rs,
		   const struct xrds_transport *trans,
		   const struct rds_get_mr_args *args, u64 *cookie,
		   long *timeo);
int xrds_mr_free(struct xrds_rdma_sock *rs, const struct rds_free_mr_args *args);
void xrds_mr_free_all(struct xrds_rdma_sock *rs);

/* ---------------------------------------------------------------- op.c */

#define XRDS_ROP_FLAGS	(RDS_RDMA_READWRITE | RDS_RDMA_FENCE | \
			 RDS_RDMA_INVALIDATE | RDS_RDMA_USE_ONCE | \
			 RDS_RDMA_DONTWAIT | RDS_RDMA_NOTIFY_ME | \
			 RDS_RDMA_SILENT | XRDS_UEK_REMOTE_COMPLETE)

enum { XRDS_ROP_MAX_BYTES = 1 << 30 };

struct xrds_rop *xrds_rop_from_args(struct xrds_rdma_sock *rs,
				    const struct xrds_transport *trans,
				    const struct rds_rdma_args *args,
				    long *timeo);
struct xrds_rop *xrds_rop_from_atomic(struct xrds_rdma_sock *rs,
				      const struct xrds_transport *trans,
				      const struct rds_atomic_args *args,
				      int type, long *timeo);
void xrds_rop_get(struct xrds_rop *rop);
void xrds_rop_put(struct xrds_rop *rop);

/* ------------------------------------------------------------ notice.c */

struct xrds_notice *xrds_notice_alloc(struct xrds_rdma_sock *rs, u64 token,
				      bool wanted);
void xrds_notice_free(struct xrds_rdma_sock *rs, struct xrds_notice *n);
bool xrds_notice_end(struct xrds_rdma_sock *rs, struct xrds_notice *n,
		     s32 status);
void xrds_notice_msg_end(struct xrds_rdma_sock *rs, struct xrds_notice *n,
			 s32 status);

/* ----------------------------------------------------------- barrier.c */

/**
 * struct xrds_rdma_peer_key - key of the table of nodes
 * @rs:		socket
 * @addr:	address, IPv4 mapped
 * @scope:	interface index of a link-local address, else 0
 * @zero:	no padding in a key
 */
struct xrds_rdma_peer_key {
	struct xrds_rdma_sock *rs;
	struct in6_addr addr;
	u32 scope;
	u32 zero;
};

/**
 * struct xrds_rdma_peer - RDMA ops of one socket toward one node
 * @node:	in xn->nodes
 * @key:	which
 * @rcu:	for lookups
 * @rs_node:	in rs->nodes until the socket is closed; rs->lock, RCU readers
 * @ops:	ops that have not left, by identifier; rs->lock
 * @waiting:	those that were not posted, by identifier; rs->lock
 * @issued:	last identifier given out; rs->lock
 * @completed:	high-water mark; written under rs->lock
 * @armed:	identifier a barrier is armed for, 0: none; rs->lock
 * @event_node:	in rs->events; rs->lock
 * @closed:	the socket is closed: the node goes with its last op; rs->lock
 * @wait:	barriers that block
 */
struct xrds_rdma_peer {
	struct rhash_head node;
	struct xrds_rdma_peer_key key;
	struct rcu_head rcu;
	struct list_head rs_node;
	struct list_head ops;
	struct list_head waiting;
	u64 issued;
	u64 completed;
	u64 armed;
	struct list_head event_node;
	bool closed;
	wait_queue_head_t wait;
};

extern const struct rhashtable_params xrds_rdma_peer_params;

struct xrds_rdma_peer *xrds_rdma_peer_find(struct xrds_rdma_sock *rs,
					   const struct xrds_addr *to);
void xrds_rdma_peer_marks(struct xrds_rdma_sock *rs, const struct xrds_addr *to,
			  u64 *issued, u64 *completed);
struct xrds_rdma_peer *xrds_rdma_peer_find_or_create(struct xrds_rdma_sock *rs,
						     const struct xrds_addr *to);
void xrds_rdma_peer_close_all(struct xrds_rdma_sock *rs);
void xrds_rdma_peer_left(struct xrds_rdma_peer *node);
void xrds_barrier_wake_sock(struct xrds_rdma_sock *rs, __poll_t mask);
void xrds_barrier_wake(struct xrds_rdma_sock *rs, struct xrds_rdma_peer *node,
		       __poll_t mask);
bool xrds_barrier_event(struct xrds_rdma_sock *rs, struct xrds_rdma_peer *node,
			bool asked);
void xrds_barrier_arm(struct xrds_rdma_sock *rs, struct xrds_rdma_peer *node,
		      u64 id);
void xrds_barrier_clear(struct xrds_rdma_peer *node);
int xrds_barrier(struct xrds_rdma_sock *rs, struct xrds_barrier *b,
		 bool nonblock);

#endif /* _XRDS_RDMA_H */
