// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nodes and barriers: the RDMA ops of one socket toward one node, in order.
 *
 * A node keeps the ops in a FIFO; see op.c for how they enter and leave it. Its
 * high-water mark is the identifier of the last op that left. A barrier is an
 * identifier at a node. It is reached when the mark is: when its op has ended, and
 * all before it. A program waits at it, or arms it. An armed barrier that is reached
 * makes an event, for poll() and a control message. Where none is armed the end of
 * any op whose identifier was asked for makes one.
 *
 * A node is kept until its socket is closed, even when all its ops have ended:
 * identifiers toward it go on where they were, and a barrier for an old one is
 * answered. One that has ops then goes with the last of them. So nodes have a bound
 * of their own, many times that of destinations (xrds_net_max_past()), and each is
 * on the account of the socket's user.
 *
 * Nothing is allocated when an op ends: the node itself is on the socket's list
 * of events. All lists here are guarded by the socket's lock (L4).
 */
#include "rdma/rdma.h"
#include "xrds.h"

const struct rhashtable_params xrds_rdma_peer_params = {
	.key_len	= sizeof(struct xrds_rdma_peer_key),
	.key_offset	= offsetof(struct xrds_rdma_peer, key),
	.head_offset	= offsetof(struct xrds_rdma_peer, node),
	.automatic_shrinking = true,
};

static void xrds_rdma_peer_key_init(struct xrds_rdma_peer_key *key,
				    struct xrds_rdma_sock *rs,
				    const struct xrds_addr *to)
{
	memset(key, 0, sizeof(*key));
	key->rs = rs;
	key->addr = to->addr;
	key->scope = to->scope;
}

/**
 * xrds_rdma_peer_find - look a node up
 * @rs: socket
 * @to: address; the port is ignored
 *
 * Context: any; the node stays until the socket is closed.
 * Return: the node or NULL.
 */
struct xrds_rdma_peer *xrds_rdma_peer_find(struct xrds_rdma_sock *rs,
					   const struct xrds_addr *to)
{
	struct xrds_rdma_peer_key key;
	struct xrds_rdma_peer *node;

	xrds_rdma_peer_key_init(&key, rs, to);
	rcu_read_lock();
	node = rhashtable_lookup(&rs->xn->nodes, &key, xrds_rdma_peer_params);
	rcu_read_unlock();
	return node;
}

/**
 * xrds_rdma_peer_marks - identifiers and high-water mark toward a node
 * @rs: socket
 * @to: address; the port is ignored
 * @issued: last identifier given out
 * @completed: high-water mark
 *
 * Context: any.
 */
void xrds_rdma_peer_marks(struct xrds_rdma_sock *rs, const struct xrds_addr *to,
			  u64 *issued, u64 *completed)
{
	struct xrds_rdma_peer *node = xrds_rdma_peer_find(rs, to);

	spin_lock_bh(rs->lock);
	*issued = node ? node->issued : 0;
	*completed = node ? node->completed : 0;
	spin_unlock_bh(rs->lock);
}

static struct xrds_rdma_peer *xrds_rdma_peer_alloc(struct xrds_rdma_sock *rs,
						   const struct xrds_addr *to)
{
	struct xrds_rdma_peer *node;
	int ret;

	ret = xrds_limit_charge(rs->xn, rs->user, XRDS_LIMIT_MEM,
				XRDS_PEER_COST_BYTES);
	if (ret)
		return ERR_PTR(ret);
	node = kzalloc(sizeof(*node), GFP_KERNEL_ACCOUNT);
	if (!node) {
		xrds_limit_uncharge(rs->xn, rs->user, XRDS_LIMIT_MEM,
				    XRDS_PEER_COST_BYTES);
		return ERR_PTR(-ENOMEM);
	}
	xrds_rdma_peer_key_init(&node->key, rs, to);
	INIT_LIST_HEAD(&node->ops);
	INIT_LIST_HEAD(&node->waiting);
	INIT_LIST_HEAD(&node->event_node);
	init_waitqueue_head(&node->wait);
	return node;
}

static void xrds_rdma_peer_free(struct xrds_rdma_peer *node)
{
	struct xrds_rdma_sock *rs = node->key.rs;

	xrds_limit_uncharge(rs->xn, rs->user, XRDS_LIMIT_MEM,
			    XRDS_PEER_COST_BYTES);
	kfree_rcu(node, rcu);
}

/**
 * xrds_rdma_peer_find_or_create - find or make a node
 * @rs: bound socket
 * @to: address; the port is ignored
 *
 * Context: process, may sleep, socket locked.
 * Return: the node, or ERR_PTR(): -ENOMEM, -EDQUOT, -ENFILE when there are too
 * many.
 */
struct xrds_rdma_peer *xrds_rdma_peer_find_or_create(struct xrds_rdma_sock *rs,
						     const struct xrds_addr *to)
{
	struct xrds_rdma_peer *node = xrds_rdma_peer_find(rs, to);

	sock_owned_by_me(rs->sk);

	if (node)
		return node;
	if (rs->nr_nodes >= xrds_net_max_past(rs->xn))
		return ERR_PTR(-ENFILE);
	node = xrds_rdma_peer_alloc(rs, to);
	if (IS_ERR(node))
		return node;

	/* the socket's lock lets nobody else insert the same */
	if (rhashtable_insert_fast(&rs->xn->nodes, &node->node,
				   xrds_rdma_peer_params)) {
		xrds_rdma_peer_free(node);
		return ERR_PTR(-ENOMEM);
	}
	spin_lock_bh(rs->lock);
	list_add_tail_rcu(&node->rs_node, &rs->nodes);
	rs->nr_nodes++;
	spin_unlock_bh(rs->lock);
	return node;
}

/**
 * xrds_barrier_wake_sock - wake those who wait for notices and events of a socket
 * @rs: socket
 * @mask: events for poll()
 *
 * Context: any, without L4.
 */
void xrds_barrier_wake_sock(struct xrds_rdma_sock *rs, __poll_t mask)
{
	struct socket_wq *wq;

	rcu_read_lock();
	wq = rcu_dereference(rs->sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_poll(&wq->wait, mask);
	sk_wake_async(rs->sk, SOCK_WAKE_WAITD, POLL_IN);
	rcu_read_unlock();
}

/**
 * xrds_barrier_wake - wake those who wait for completions of a socket
 * @rs: socket
 * @node: node whose mark may have moved
 * @mask: events for poll(), 0: none
 *
 * Context: any, without L4.
 */
void xrds_barrier_wake(struct xrds_rdma_sock *rs, struct xrds_rdma_peer *node,
		       __poll_t mask)
{
	wake_up_interruptible(&node->wait);
	if (mask)
		xrds_barrier_wake_sock(rs, mask);
}

/**
 * xrds_barrier_event - has what the program waits for at a node come about?
 * @rs: socket
 * @node: node whose mark may have moved
 * @asked: an op has left whose identifier the program was told
 *
 * Context: any, rs->lock held.
 * Return: whether it has; the node is on the list of events then.
 */
bool xrds_barrier_event(struct xrds_rdma_sock *rs, struct xrds_rdma_peer *node,
			bool asked)
{
	lockdep_assert_held(rs->lock);

	if (node->armed) {
		if (node->completed < node->armed)
			return false;
		node->armed = 0;
		rs->nr_armed--;
	} else if (!asked || rs->nr_armed) {
		return false;
	}
	if (list_empty(&node->event_node))
		list_add_tail(&node->event_node, &rs->events);
	return true;
}

/**
 * xrds_barrier_clear - the event of a node was told, or is not wanted any more
 * @node: node
 *
 * Context: any, the socket's lock (L4) held.
 */
void xrds_barrier_clear(struct xrds_rdma_peer *node)
{
	list_del_init(&node->event_node);
}

static bool xrds_rdma_peer_busy(const struct xrds_rdma_peer *node)
{
	return !list_empty(&node->ops) || !list_empty(&node->waiting);
}

/* Nobody finds a node any more. */
static void xrds_rdma_peer_remove(struct xrds_rdma_peer *node)
{
	rhashtable_remove_fast(&node->key.rs->xn->nodes, &node->node,
			       xrds_rdma_peer_params);
	xrds_rdma_peer_free(node);
}

/**
 * xrds_rdma_peer_close_all - the socket is closed
 * @rs: socket, SOCK_DEAD is set
 *
 * Frees the nodes without ops. The others go with their last op.
 *
 * Context: process, may sleep.
 */
void xrds_rdma_peer_close_all(struct xrds_rdma_sock *rs)
{
	struct xrds_rdma_peer *node;
	u32 n;

	do {
		spin_lock_bh(rs->lock);
		for (n = 0; n < XRDS_END_BATCH && !list_empty(&rs->nodes); n++) {
			node = list_first_entry(&rs->nodes,
						struct xrds_rdma_peer, rs_node);
			list_del_rcu(&node->rs_node);
			xrds_barrier_clear(node);
			node->closed = true;
			if (!xrds_rdma_peer_busy(node))
				xrds_rdma_peer_remove(node);
		}
		spin_unlock_bh(rs->lock);
		xrds_hold_count(XRDS_HOLD_END, n);
		cond_resched();
	} while (n == XRDS_END_BATCH);
}

/**
 * xrds_rdma_peer_left - ops have left a list of a node just now
 * @node: node; of a closed socket it goes with the last op, after a grace period
 *
 * Context: any, the socket's lock (L4) held.
 */
void xrds_rdma_peer_left(struct xrds_rdma_peer *node)
{
	if (unlikely(node->closed) && !xrds_rdma_peer_busy(node))
		xrds_rdma_peer_remove(node);
}

/**
 * xrds_barrier_arm - ask to be told when an op and all before it have ended
 * @rs: socket
 * @node: node
 * @id: identifier of the op, at most the last one issued
 *
 * Replaces what was armed for this node before; an event that has come about is
 * still told. When this one has come about already it is there at once.
 *
 * Context: any.
 */
void xrds_barrier_arm(struct xrds_rdma_sock *rs, struct xrds_rdma_peer *node,
		      u64 id)
{
	bool event;

	spin_lock_bh(rs->lock);
	if (!node->armed)
		rs->nr_armed++;
	node->armed = id;
	event = xrds_barrier_event(rs, node, false);
	spin_unlock_bh(rs->lock);
	if (event)
		xrds_barrier_wake(rs, node, EPOLLIN | EPOLLRDBAND);
}

static void xrds_barrier_report(struct xrds_rdma_sock *rs,
				struct xrds_rdma_peer *node,
				struct xrds_barrier *b)
{
	spin_lock_bh(rs->lock);
	b->completed = node ? node->completed : 0;
	b->issued = node ? node->issued : 0;
	if (node)
		xrds_barrier_clear(node);
	spin_unlock_bh(rs->lock);
}

static int xrds_barrier_wait(struct xrds_rdma_sock *rs,
			     struct xrds_rdma_peer *node,
			     struct xrds_barrier *b)
{
	long timeo = b->timeout_ms ? (long)msecs_to_jiffies(b->timeout_ms) :
				     sock_rcvtimeo(rs->sk, 0);
	long left;

	/* An op that has begun ends with its connection at the latest. One behind
	 * messages to a port whose program does not read waits for that program, and
	 * so does this call, until a signal.
	 */
	left = wait_event_interruptible_timeout(node->wait,
						READ_ONCE(node->completed) >=
						b->rdma_id, timeo);
	if (left < 0)
		return -EINTR;
	xrds_barrier_report(rs, node, b);
	return left ? 0 : -ETIMEDOUT;
}

/**
 * xrds_barrier - SIOCXRDSBARRIER
 * @rs: socket
 * @b: argument; completed and issued are filled in for 0, -EAGAIN, -ETIMEDOUT
 * @nonblock: the file does not block
 *
 * Context: process, may sleep.
 * Return: 0 when the op has ended with all before it, -EAGAIN when it has not
 * and the barrier is armed, -ETIMEDOUT, -EINTR, -EINVAL.
 */
int xrds_barrier(struct xrds_rdma_sock *rs, struct xrds_barrier *b, bool nonblock)
{
	struct xrds_rdma_peer *node;
	struct xrds_addr to;

	if (b->flags & ~XRDS_BARRIER_NONBLOCK ||
	    xrds_addr_parse(&to, &b->dest, sizeof(b->dest)) ||
	    xrds_addr_check_dest(&to))
		return -EINVAL;

	node = xrds_rdma_peer_find(rs, &to);
	xrds_barrier_report(rs, node, b);
	if (b->rdma_id > b->issued)
		return -EINVAL;
	if (b->rdma_id <= b->completed)
		return 0;
	if (nonblock || b->flags & XRDS_BARRIER_NONBLOCK) {
		xrds_barrier_arm(rs, node, b->rdma_id);
		return -EAGAIN;
	}
	return xrds_barrier_wait(rs, node, b);
}
