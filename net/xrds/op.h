/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RDMA, as far as connections and transports see it: the RDMA part of a socket,
 * pinned memory, memory regions and ops. rdma/ owns all of these objects.
 * transport.h includes this header.
 */
#ifndef _XRDS_OP_H
#define _XRDS_OP_H

#include <linux/bvec.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/workqueue.h>

#include "xrds.h"

struct xrds_rdma_peer;

/**
 * struct xrds_notice - RDS_CMSG_RDMA_STATUS, to come or to be read
 * @node:	in rs->notices once it can be read; rs->lock
 * @rop:	the op that it is a part of; NULL: of a message, which owns it
 *		until it can be read
 * @token:	the program's name for the op or the message
 * @status:	how that has ended, or a part of it; rs->lock
 * @waits:	ends that must come first; rs->lock
 * @wanted:	also after a success
 */
struct xrds_notice {
	struct list_head node;
	struct xrds_rop *rop;
	u64 token;
	s32 status;
	u8 waits;
	bool wanted;
};

/**
 * struct xrds_rdma_sock - what a socket has of RDMA
 * @sk:		the socket that it is a member of
 * @xn:		the socket's namespace
 * @user:	the socket's user
 * @bind:	where the socket is bound
 * @lock:	the socket's lock, L4; it guards all that follows
 * @nodes:	nodes that ops went to; also RCU readers
 * @nr_nodes:	length of @nodes
 * @nr_armed:	nodes with a barrier armed
 * @events:	nodes where the awaited has come about
 * @notices:	notices to read
 * @mrs:	memory regions
 * @lost:	those of @mrs that the owner has still to be told of
 * @recverr:	RDS_RECVERR; no lock
 */
struct xrds_rdma_sock {
	struct sock *sk;
	struct xrds_net *xn;
	struct xrds_user *user;
	const struct xrds_bind_key *bind;
	spinlock_t *lock;		/* L4 of its socket */
	struct list_head nodes;
	u32 nr_nodes;
	u32 nr_armed;
	struct list_head events;
	struct list_head notices;
	struct list_head mrs;
	struct list_head lost;
	bool recverr;
};

/**
 * struct xrds_pin - pinned memory of a process
 * @pages:	pages, behind @bv
 * @nr_pages:	how many; charged to @mm
 * @nr_bv:	how many pieces
 * @bytes:	sum of all
 * @write:	pinned for writing
 * @mm:		the process's memory
 * @xn:		namespace that it is charged to; NULL: it has gone
 * @user:	and the user, with a reference
 * @user_node:	in user->unpins while it is to be given back; lock in pin.c
 * @xn_node:	in xn->unpins at that time; the same
 * @work:	gives back @user's memory, if this is the first of it
 * @holds_module: which keeps the module loaded
 * @bv:		the bytes in @pages
 */
struct xrds_pin {
	struct page **pages;
	unsigned int nr_pages;
	unsigned int nr_bv;
	u64 bytes;
	bool write;
	struct mm_struct *mm;
	struct xrds_net *xn;
	struct xrds_user *user;
	struct list_head user_node;
	struct list_head xn_node;
	struct work_struct work;
	bool holds_module;
	struct bio_vec bv[];
};

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
 * @node:	in xn->mrs until @ended
 * @key:	which
 * @xn:		namespace
 * @user:	user that is charged, with a reference
 * @rs:		owner; no reference, closing it ends the region. While @linked was
 *		seen under RCU it is there
 * @rs_node:	in rs->mrs while @linked; rs->lock
 * @lost_node:	in rs->lost until its owner has read of it; rs->lock
 * @linked:	found by lookups; rs->lock, and set under @lock as well
 * @ended:	the key is void, and the region in no table
 * @ref:	the table's, and those of accesses over loopback
 * @rcu:	for lookups
 * @used_node:	in xn->mrs_used, when it was used and is to end; lock in mr.c
 * @trans:	transport it is registered with
 * @pin:	memory
 * @offset:	where in the key's address space the memory begins
 * @write:	peers may write
 * @use_once:	ends when it was used
 * @invalidate:	RDS_RDMA_INVALIDATE: an access that has begun is waited for
 *		without bound; set where the region is made or ended
 * @closing:	its socket is being closed, and does not wait for the device
 * @lock:	guards @dead, @lost and access over loopback
 * @dead:	the key is void; @lock
 * @lost:	enum xrds_mr_lost, or 0: its owner has ended it; @lock
 * @priv:	the transport's
 */
struct xrds_mr {
	struct rhash_head node;
	struct xrds_mr_key key;
	struct xrds_net *xn;
	struct xrds_user *user;
	struct xrds_rdma_sock *rs;
	struct list_head rs_node;
	struct list_head lost_node;
	bool linked;
	bool ended;
	refcount_t ref;
	struct rcu_head rcu;
	struct list_head used_node;
	const struct xrds_transport *trans;
	struct xrds_pin *pin;
	u32 offset;
	bool write;
	bool use_once;
	bool invalidate;
	bool closing;
	spinlock_t lock;		/* access over loopback, dead, lost */
	bool dead;
	u32 lost;
	void *priv;
};

/* The name of a region, as peers are told it */
static inline u64 xrds_mr_cookie(const struct xrds_mr *mr)
{
	return (u64)mr->offset << 32 | mr->key.rkey;
}

enum xrds_rop_op {
	XRDS_ROP_READ,		/* from the peer's memory into ours */
	XRDS_ROP_WRITE,		/* from ours into the peer's */
	XRDS_ROP_FADD,		/* fetch and add, at the peer's */
	XRDS_ROP_CSWP,		/* compare and swap, at the peer's */
};

/**
 * struct xrds_rop - an RDMA op or atomic
 * @node:	in to->ops, from its issue until it leaves; rs->lock
 * @conn_node:	in conn->ops while @msg is in a queue of it; conn->lock
 * @turn_node:	in to->waiting, until it was posted or has ended; rs->lock
 * @msg:	immediate message that the op belongs to; conn->lock
 * @notice:	see there
 * @ref:	the message's, the FIFO's, the notice's
 * @rs:		socket, with a reference
 * @to:		node it goes to
 * @pin:	local memory, until the op is done
 * @bytes:	of it
 * @id:		identifier; 0 until issued; rs->lock
 * @raddr:	remote address
 * @rkey:	remote key
 * @offset:	the cookie's other half, which @raddr includes
 * @op:		enum xrds_rop_op
 * @masked:	an atomic with masks
 * @silent:	the immediate message is not delivered
 * @fence:	the immediate message waits for the op
 * @id_asked:	the program was told the identifier
 * @done:	has ended; rs->lock
 * @status:	how; before that the transport's verdict of a failure
 * @compare_add: operand of an atomic
 * @swap:	operand of an atomic
 * @compare_mask: mask of an atomic
 * @swap_mask:	mask of an atomic
 * @priv:	the transport's, used with the message only, and freed with it by
 *		kvfree(): the transport's module may have gone by then
 */
struct xrds_rop {
	struct list_head node;
	struct list_head conn_node;
	struct list_head turn_node;
	struct xrds_msg *msg;
	struct xrds_notice notice;
	refcount_t ref;
	struct xrds_rdma_sock *rs;
	struct xrds_rdma_peer *to;
	struct xrds_pin *pin;
	u64 bytes;
	u64 id;
	u64 raddr;
	u32 rkey;
	u32 offset;
	u8 op;
	bool masked;
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

#endif /* _XRDS_OP_H */
