// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nodes that a socket watches, because XRDS_NODE_EVENTS is on.
 *
 * A watch ties a socket to a peer (conn/peer.c). The socket has one for each node
 * that it has a destination or a source at; these have the references, and the
 * watch goes with the last of them. It is allocated when the option is set, or
 * with a new destination or source: an event allocates nothing. The watch keeps
 * the connection to the node in place (conn/idle.c) and has it probed
 * (conn/probe.c).
 *
 * News is not queued: a watch that has news is on xs->news, and
 * the reader gets the state that the peer has then. So a slow reader misses
 * states in between, and needs no memory. That the node was reborn is no state,
 * and is not missed: a watch remembers how many births were told. The reader that
 * takes it may sleep, so it counts as told from then on, until that has failed.
 *
 * A change is told in batches: the watches that were not told of it stand at the
 * head of the peer's list, and each goes to the tail.
 *
 * All of it is guarded by xn->peer_lock (L6). A destination's reference on its
 * watch is guarded by xs->lock (L4), a source's by the lock of the receive queue
 * (L5). A watch is unlinked before its socket is freed.
 */
#include <linux/xrds_netlink.h>

#include "conn/conn.h"
#include "sock/dest.h"
#include "sock/sock.h"
#include "upcall.h"
#include "xrds.h"

enum {
	/* sockets that are told under one hold of the lock */
	XRDS_NODE_BATCH		= 16,
};

/**
 * struct xrds_watch - a node that a socket watches
 * @node:	in xn->watches
 * @key:	the socket and the address; the port is 0; constant
 * @rcu:	for the table
 * @peer:	the node, with a reference; constant
 * @users:	destinations and sources at the node, and a reader
 * @peer_entry:	in peer->watches
 * @news_entry:	in xs->news while there is something to tell
 * @change:	peer->changes when it was told
 * @is_new:	nothing has been told yet
 * @births:	peer->births when the program was told
 * @dropped:	messages dropped since, as they were for an earlier node
 */
struct xrds_watch {
	struct rhash_head node;
	struct xrds_dest_key key;
	struct rcu_head rcu;
	struct xrds_peer *peer;
	u32 users;
	struct list_head peer_entry;
	struct list_head news_entry;
	u32 change;
	bool is_new;
	u32 births;
	u64 dropped;
};

const struct rhashtable_params xrds_node_params = {
	.key_len	= sizeof(struct xrds_dest_key),
	.key_offset	= offsetof(struct xrds_watch, key),
	.head_offset	= offsetof(struct xrds_watch, node),
	.automatic_shrinking = true,
};

/* -------------------------------------------------------------- watches */

static struct xrds_watch *xrds_node_alloc(const struct xrds_dest_key *key)
{
	struct xrds_sock *xs = key->xs;
	struct xrds_peer_key peer_key = {
		.laddr	= xs->bind.addr,
		.faddr	= key->addr,
		.scope	= key->scope,
	};
	struct xrds_watch *watch;
	int ret;

	ret = xrds_limit_charge(xs->xn, xs->user, XRDS_LIMIT_MEM,
				XRDS_WATCH_COST_BYTES);
	if (ret)
		return ERR_PTR(ret);
	watch = kzalloc(sizeof(*watch), GFP_ATOMIC | __GFP_NOWARN);
	if (!watch)
		goto err_charge;
	watch->key = *key;
	watch->users = 1;
	INIT_LIST_HEAD(&watch->news_entry);
	watch->peer = xrds_peer_get(xs->xn, &peer_key,
				    GFP_ATOMIC | __GFP_NOWARN);
	if (watch->peer)
		return watch;
	kfree(watch);
err_charge:
	xrds_limit_uncharge(xs->xn, xs->user, XRDS_LIMIT_MEM,
			    XRDS_WATCH_COST_BYTES);
	return ERR_PTR(-ENOMEM);
}

static void xrds_node_free(struct xrds_watch *watch)
{
	struct xrds_sock *xs = watch->key.xs;

	xrds_limit_uncharge(xs->xn, xs->user, XRDS_LIMIT_MEM,
			    XRDS_WATCH_COST_BYTES);
	xrds_peer_put(watch->peer);
	kfree_rcu(watch, rcu);
}

/**
 * xrds_node_wake - tell the program that there are node events
 * @sk: socket
 *
 * Context: any; no spin lock of ours held, as it takes as long as there are
 * threads that wait.
 */
void xrds_node_wake(struct sock *sk)
{
	struct socket_wq *wq;

	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_poll(&wq->wait, EPOLLIN | EPOLLPRI);
	sk_wake_async(sk, SOCK_WAKE_WAITD, POLL_PRI);
	rcu_read_unlock();
}

/* The socket's watch with this key, or @new, which may be NULL, or an ERR_PTR() */
static struct xrds_watch *xrds_node_insert(const struct xrds_dest_key *key,
					   struct xrds_watch *new)
{
	struct xrds_net *xn = key->xs->xn;
	struct xrds_watch *watch;

	spin_lock_bh(&xn->peer_lock);
	watch = rhashtable_lookup_fast(&xn->watches, key, xrds_node_params);
	if (watch) {
		watch->users++;
	} else if (new && rhashtable_insert_fast(&xn->watches, &new->node,
						 xrds_node_params)) {
		watch = ERR_PTR(-ENOMEM);
	} else if (new) {
		watch = new;
		watch->change = watch->peer->changes;
		watch->is_new = true;
		watch->births = watch->peer->births;
		xrds_peer_watch(watch->peer, &watch->peer_entry);
	}
	spin_unlock_bh(&xn->peer_lock);
	return watch;
}

/* Nodes that this one is itself do not come and go. */
static bool xrds_node_local(const struct xrds_dest_key *key)
{
	return key->xs->trans == &xrds_loop_transport ||
	       ipv6_addr_equal(&key->addr, &key->xs->bind.addr);
}

/**
 * xrds_node_watch - a socket watches the node of a destination or source
 * @watch: result; unchanged if there is one already, NULL for the own node
 * @to: key of the destination or source
 *
 * Context: any, without L6; the lock that guards @watch is held.
 * Return: 0, -ENOMEM, -EDQUOT.
 */
int xrds_node_watch(struct xrds_watch **watch, const struct xrds_dest_key *to)
{
	struct xrds_dest_key key = *to;
	struct xrds_watch *found, *new;

	if (*watch || xrds_node_local(to))
		return 0;
	key.scope = key.scope ?: key.xs->bind.scope;
	key.port = 0;
	found = xrds_node_insert(&key, NULL);
	if (!found) {
		new = xrds_node_alloc(&key);
		if (IS_ERR(new))
			return PTR_ERR(new);
		found = xrds_node_insert(&key, new);
		if (found != new)
			xrds_node_free(new);
	}
	if (IS_ERR(found))
		return PTR_ERR(found);
	*watch = found;
	return 0;
}

/* There is something to tell. Watches that are told go to the end of the peer's
 * list: xrds_node_next() looks as far as the first of them.
 */
static void xrds_node_news(struct xrds_watch *watch)
{
	struct xrds_peer *peer = watch->peer;

	lockdep_assert_held(&peer->xn->peer_lock);

	watch->change = peer->changes;
	watch->is_new = false;
	list_move_tail(&watch->peer_entry, &peer->watches);
	if (list_empty(&watch->news_entry))
		list_add_tail(&watch->news_entry, &watch->key.xs->news);
}

/**
 * xrds_node_down - is it news that a node is down?
 * @watch: watch of a destination or source, or NULL
 *
 * It is for a new watch: nothing else would tell. A source whose message has just
 * come does not ask.
 *
 * Context: any, without L6; the lock that guards @watch is held.
 * Return: whether it is; then xrds_node_wake() follows without locks.
 */
bool xrds_node_down(struct xrds_watch *watch)
{
	struct xrds_sock *xs;
	bool news;

	if (!watch)
		return false;
	xs = watch->key.xs;
	spin_lock_bh(&xs->xn->peer_lock);
	news = watch->is_new && watch->peer->state == XRDS_PEER_STATE_DOWN;
	watch->is_new = false;
	if (news)
		xrds_node_news(watch);
	spin_unlock_bh(&xs->xn->peer_lock);
	return news;
}

static void xrds_node_put(struct xrds_watch *watch)
{
	struct xrds_net *xn = watch->key.xs->xn;
	bool last;

	spin_lock_bh(&xn->peer_lock);
	last = !--watch->users;
	if (last) {
		rhashtable_remove_fast(&xn->watches, &watch->node,
				       xrds_node_params);
		xrds_peer_unwatch(watch->peer, &watch->peer_entry);
		list_del(&watch->news_entry);
	}
	spin_unlock_bh(&xn->peer_lock);
	if (last)
		xrds_node_free(watch);
}

/**
 * xrds_node_unwatch - a destination or source goes, or the option is off
 * @watch: its watch, or NULL; NULL after it
 *
 * Context: any, without L6; the lock that guards @watch is held.
 */
void xrds_node_unwatch(struct xrds_watch **watch)
{
	if (!*watch)
		return;
	xrds_node_put(*watch);
	*watch = NULL;
}

/* --------------------------------------------------------------- events */

/**
 * xrds_node_dropped - messages of a socket were dropped, as they were for a node
 *	that another one has replaced
 * @dest: their destination
 * @msgs: how many
 *
 * The replacement is known already, and the program was not told yet. Otherwise
 * it is the same node, which has forgotten the connection.
 *
 * Context: any, without L4, L6.
 */
void xrds_node_dropped(struct xrds_dest *dest, u32 msgs)
{
	struct xrds_sock *xs = dest->key.xs;
	struct xrds_watch *watch;

	spin_lock_bh(&xs->lock);
	watch = dest->watch;
	if (watch) {
		spin_lock(&xs->xn->peer_lock);
		if (watch->births != watch->peer->births)
			watch->dropped += msgs;
		spin_unlock(&xs->xn->peer_lock);
	}
	spin_unlock_bh(&xs->lock);
}

/* The next sockets that are to be told, each with a reference. Returns how many.
 */
static u32 xrds_node_next(struct xrds_peer *peer, struct sock **sks)
{
	struct xrds_watch *watch;
	struct xrds_sock *xs;
	u32 n = 0;

	spin_lock_bh(&peer->xn->peer_lock);
	while (n < XRDS_NODE_BATCH) {
		watch = list_first_entry_or_null(&peer->watches,
						 struct xrds_watch, peer_entry);
		if (!watch || watch->change == peer->changes)
			break;
		xrds_node_news(watch);
		xs = watch->key.xs;
		sock_hold(&xs->sk);
		sks[n++] = &xs->sk;
	}
	spin_unlock_bh(&peer->xn->peer_lock);
	return n;
}

/**
 * xrds_node_tell - tell the sockets that watch a node of its change
 * @peer: the node; the caller has a reference
 *
 * A change that comes meanwhile begins anew, and both callers share the rest.
 *
 * Context: process, may sleep.
 */
void xrds_node_tell(struct xrds_peer *peer)
{
	struct sock *sks[XRDS_NODE_BATCH];
	u32 n;

	while ((n = xrds_node_next(peer, sks))) {
		while (n--) {
			xrds_node_wake(sks[n]);
			sock_put(sks[n]);
		}
		cond_resched();
	}
}

/* What is there to tell? It counts as told. */
static void xrds_node_fill(struct xrds_watch *watch,
			   struct xrds_node_event *event)
{
	const struct xrds_peer *peer = watch->peer;

	lockdep_assert_held(&peer->xn->peer_lock);

	if (peer->state == XRDS_PEER_STATE_DOWN) {
		event->state = XRDS_NODE_DOWN;
		event->reason = peer->reason;
		event->down_ns = peer->heard_ns;
		return;
	}
	event->state = XRDS_NODE_UP;
	event->down_ns = peer->outage_ns;
	if (watch->births == peer->births)
		return;
	event->state = XRDS_NODE_REBORN;
	event->dropped_msgs = watch->dropped;
	watch->births = peer->births;
	watch->dropped = 0;
}

/* Take the next watch that has news, with a reference. */
static struct xrds_watch *xrds_node_take(struct xrds_sock *xs,
					 struct xrds_node_event *event)
{
	struct xrds_watch *watch;

	memset(event, 0, sizeof(*event));
	spin_lock_bh(&xs->xn->peer_lock);
	watch = list_first_entry_or_null(&xs->news, struct xrds_watch,
					 news_entry);
	if (watch) {
		watch->users++;
		list_del_init(&watch->news_entry);
		xrds_node_fill(watch, event);
	}
	spin_unlock_bh(&xs->xn->peer_lock);
	return watch;
}

/* The program could not be given the event: it is to be told again. */
static void xrds_node_untake(struct xrds_sock *xs, struct xrds_watch *watch,
			     const struct xrds_node_event *event)
{
	spin_lock_bh(&xs->xn->peer_lock);
	if (event->state == XRDS_NODE_REBORN) {
		watch->births = watch->peer->births - 1;
		watch->dropped += event->dropped_msgs;
	}
	if (list_empty(&watch->news_entry))
		list_add(&watch->news_entry, &xs->news);
	spin_unlock_bh(&xs->xn->peer_lock);
}

/**
 * xrds_node_read - give one event to a reader
 * @xs: socket
 * @m: result; without room the event stays, and MSG_CTRUNC is set
 *
 * Context: process.
 * Return: 1, 0 when there is none or no room, or -EFAULT: it stays.
 */
int xrds_node_read(struct xrds_sock *xs, struct msghdr *m)
{
	struct xrds_node_event event;
	struct xrds_watch *watch;
	struct xrds_addr addr;
	int ret;

	if (list_empty_careful(&xs->news))
		return 0;
	if (!xrds_cmsg_room(m, sizeof(event))) {
		m->msg_flags |= MSG_CTRUNC;
		return 0;
	}
	watch = xrds_node_take(xs, &event);
	if (!watch)
		return 0;
	addr.addr = watch->key.addr;
	addr.scope = watch->key.scope;
	addr.port = 0;
	xrds_addr_build_name(&addr, &event.node);
	ret = put_cmsg(m, SOL_RDS, XRDS_CMSG_NODE, sizeof(event), &event);
	if (ret)
		xrds_node_untake(xs, watch, &event);
	xrds_node_put(watch);
	return ret ?: 1;
}
