// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peers: the nodes at the other end of connections, and whether they are there.
 *
 * All connections between two addresses share one peer; the type of service makes
 * no difference. Sockets that have asked for it watch the peer (sock/node.c). Then its
 * connections are made without a message, stay when they are idle, and are
 * probed (probe.c).
 *
 *   IDLE -> UP -> DOWN -> UP
 *     \-----------/
 *
 * A peer is up with its first connection. When the last one is lost, or an
 * attempt fails, a work waits until nothing was heard for peer_dead_ms, on any of
 * them, and then the peer is down; unless a connection comes up meanwhile. An
 * orderly end counts the same for a watched peer: whether it was idle or is gone
 * shows when the connection is made again. Without a watch a peer that has ended in
 * order is IDLE, and so is one whose last connection has nothing to send and ends by
 * anything but silence: nobody makes it again.
 *
 * An identity of the peer comes with its hello. Another identity than before is
 * another node: the peer is reborn. xrds_peer_identify() says so before the
 * messages for the old node are dropped, so that sockets count these.
 *
 * Sockets and observers are told when a peer goes down, when it comes up after
 * that, and when it is reborn; not when it is up for the first time.
 *
 * A peer is freed with its last connection and watch. xn->peer_lock (L6) guards
 * everything. Connections over loopback have no peer.
 */
#include <linux/xrds_netlink.h>

#include "conn/conn.h"
#include "transport.h"
#include "upcall.h"
#include "xrds.h"

const struct rhashtable_params xrds_peer_params = {
	.key_len	= sizeof(struct xrds_peer_key),
	.key_offset	= offsetof(struct xrds_peer, key),
	.head_offset	= offsetof(struct xrds_peer, node),
	.automatic_shrinking = true,
};

/* ------------------------------------------------------------- lifetime */

/**
 * xrds_peer_exit - wait until a namespace has no peers
 * @xn: namespace without sockets and connections
 *
 * Context: process, may sleep.
 */
void xrds_peer_exit(struct xrds_net *xn)
{
	/* a work that finds a peer down may be running */
	wait_event(xn->gone, !atomic_read(&xn->peers.nelems));
	/* until it has woken us */
	spin_lock_bh(&xn->peer_lock);
	spin_unlock_bh(&xn->peer_lock);
}

static void xrds_peer_work(struct work_struct *work);

static struct xrds_peer *xrds_peer_alloc(struct xrds_net *xn,
					 const struct xrds_peer_key *key,
					 gfp_t gfp)
{
	struct xrds_peer *peer = kzalloc(sizeof(*peer), gfp);

	if (!peer)
		return NULL;
	peer->xn = xn;
	peer->key = *key;
	peer->since_ns = ktime_get_ns();
	INIT_LIST_HEAD(&peer->conns);
	INIT_LIST_HEAD(&peer->watches);
	INIT_DELAYED_WORK(&peer->work, xrds_peer_work);
	return peer;
}

/* The peer with this key, or @new, which may be NULL; with a reference */
static struct xrds_peer *xrds_peer_insert(struct xrds_net *xn,
					  const struct xrds_peer_key *key,
					  struct xrds_peer *new)
{
	struct xrds_peer *peer;

	spin_lock_bh(&xn->peer_lock);
	peer = rhashtable_lookup_fast(&xn->peers, key, xrds_peer_params);
	if (!peer && new &&
	    !rhashtable_insert_fast(&xn->peers, &new->node, xrds_peer_params))
		peer = new;
	if (peer)
		peer->users++;
	spin_unlock_bh(&xn->peer_lock);
	return peer;
}

/**
 * xrds_peer_get - find or make a peer
 * @xn: namespace
 * @key: which
 * @gfp: allocation flags
 *
 * Context: as @gfp says, without L6.
 * Return: the peer with a reference, or NULL without memory.
 */
struct xrds_peer *xrds_peer_get(struct xrds_net *xn,
				const struct xrds_peer_key *key, gfp_t gfp)
{
	struct xrds_peer *peer, *new;

	peer = xrds_peer_insert(xn, key, NULL);
	if (peer)
		return peer;
	new = xrds_peer_alloc(xn, key, gfp);
	if (!new)
		return NULL;
	peer = xrds_peer_insert(xn, key, new);
	if (peer != new)
		kfree(new);
	return peer;
}

/* A work that is queued, and not running, is nobody's reason to keep the peer. */
static void xrds_peer_disarm(struct xrds_peer *peer)
{
	lockdep_assert_held(&peer->xn->peer_lock);

	if (cancel_delayed_work(&peer->work))
		peer->users--;
}

/**
 * xrds_peer_put - drop a reference on a peer
 * @peer: peer
 *
 * Context: any, without L6.
 */
void xrds_peer_put(struct xrds_peer *peer)
{
	struct xrds_net *xn = peer->xn;

	spin_lock_bh(&xn->peer_lock);
	if (--peer->users == 1)
		xrds_peer_disarm(peer);
	if (!peer->users) {
		rhashtable_remove_fast(&xn->peers, &peer->node,
				       xrds_peer_params);
		kfree_rcu(peer, rcu);
		wake_up_all(&xn->gone);
	}
	spin_unlock_bh(&xn->peer_lock);
}

/**
 * xrds_peer_join - find or make the peer of a new connection
 * @conn: connection
 * @gfp: allocation flags
 *
 * Context: as @gfp says.
 * Return: 0 or -ENOMEM.
 */
int xrds_peer_join(struct xrds_conn *conn, gfp_t gfp)
{
	struct xrds_peer_key key = {
		.laddr	= conn->key.laddr,
		.faddr	= conn->key.faddr,
		.scope	= conn->key.scope,
	};

	if (conn->key.loop)
		return 0;
	conn->peer = xrds_peer_get(conn->xn, &key, gfp);
	if (!conn->peer)
		return -ENOMEM;
	spin_lock_bh(&conn->xn->peer_lock);
	conn->peer->nr_conns++;
	spin_unlock_bh(&conn->xn->peer_lock);
	return 0;
}

/**
 * xrds_peer_leave - a connection is freed
 * @conn: connection
 *
 * Context: any, without L6.
 */
void xrds_peer_leave(struct xrds_conn *conn)
{
	struct xrds_peer *peer = conn->peer;

	if (!peer)
		return;
	spin_lock_bh(&conn->xn->peer_lock);
	peer->nr_conns--;
	spin_unlock_bh(&conn->xn->peer_lock);
	xrds_peer_put(peer);
}

/* -------------------------------------------------------------- watches */

/**
 * xrds_peer_watched - does a socket watch the peer of a connection?
 * @conn: connection
 *
 * A socket that begins to do so raises an event of the connection afterwards:
 * either the connection's work sees the watch, or it looks again.
 *
 * Context: any.
 * Return: whether one does.
 */
bool xrds_peer_watched(const struct xrds_conn *conn)
{
	return conn->peer && READ_ONCE(conn->peer->nr_watches);
}

/* Nothing is heard any more, as far as we know since @heard_ns: the peer is down
 * when that was peer_dead_ms ago.
 */
static void xrds_peer_arm(struct xrds_peer *peer, u64 heard_ns)
{
	unsigned long dead, silent;

	lockdep_assert_held(&peer->xn->peer_lock);

	if (peer->nr_up || peer->state == XRDS_PEER_STATE_DOWN)
		return;
	if (!delayed_work_pending(&peer->work))
		peer->heard_ns = max(peer->heard_ns, heard_ns);
	/* again each time: it may have been changed */
	dead = msecs_to_jiffies(READ_ONCE(peer->xn->peer_dead_ms));
	silent = nsecs_to_jiffies(ktime_get_ns() - peer->heard_ns);
	dead = dead > silent ? dead - silent : 0;
	peer->due = jiffies + dead;
	if (!mod_delayed_work(xrds_conn_wq, &peer->work, dead))
		peer->users++;
}

/**
 * xrds_peer_watch - a socket begins to watch a peer
 * @peer: peer, on which it has a reference
 * @entry: for peer->watches
 *
 * Context: any, xn->peer_lock held.
 */
void xrds_peer_watch(struct xrds_peer *peer, struct list_head *entry)
{
	lockdep_assert_held(&peer->xn->peer_lock);

	list_add_tail(entry, &peer->watches);
	peer->looked &= !!peer->nr_watches;
	WRITE_ONCE(peer->nr_watches, peer->nr_watches + 1);
	xrds_peer_arm(peer, ktime_get_ns());
}

/**
 * xrds_peer_unwatch - a socket ends that
 * @peer: peer
 * @entry: in peer->watches
 *
 * Context: any, xn->peer_lock held.
 */
void xrds_peer_unwatch(struct xrds_peer *peer, struct list_head *entry)
{
	lockdep_assert_held(&peer->xn->peer_lock);

	list_del(entry);
	WRITE_ONCE(peer->nr_watches, peer->nr_watches - 1);
}

/**
 * xrds_peer_look - are a peer's connections to look what is due?
 * @peer: peer
 *
 * Context: any, without L6.
 * Return: whether they are: it was watched by nobody before, and this is the first call
 * since.
 */
bool xrds_peer_look(struct xrds_peer *peer)
{
	bool look;

	spin_lock_bh(&peer->xn->peer_lock);
	look = !peer->looked;
	peer->looked = true;
	spin_unlock_bh(&peer->xn->peer_lock);
	return look;
}

/* --------------------------------------------------------------- states */

static void xrds_peer_set(struct xrds_peer *peer, enum xrds_peer_state state)
{
	lockdep_assert_held(&peer->xn->peer_lock);

	if (peer->state == state)
		return;
	peer->state = state;
	peer->since_ns = ktime_get_ns();
}

static void xrds_peer_tell(struct xrds_peer *peer, enum xrds_peer_state state)
{
	xrds_node_tell(peer);
	xrds_nl_news_peer(peer, state);
}

static void xrds_peer_work(struct work_struct *work)
{
	struct xrds_peer *peer = container_of(to_delayed_work(work),
					      struct xrds_peer, work);
	bool down;

	spin_lock_bh(&peer->xn->peer_lock);
	/* it may have been up, and lost again, since we were queued */
	down = !peer->nr_up && peer->state != XRDS_PEER_STATE_DOWN &&
	       time_after_eq(jiffies, peer->due);
	if (down) {
		xrds_peer_set(peer, XRDS_PEER_STATE_DOWN);
		peer->changes++;
	}
	spin_unlock_bh(&peer->xn->peer_lock);
	if (down)
		xrds_peer_tell(peer, XRDS_PEER_STATE_DOWN);
	xrds_peer_put(peer);
}

/**
 * xrds_peer_identify - a connection is about to be open: who is there?
 * @conn: connection
 *
 * Context: the connection's work.
 */
void xrds_peer_identify(struct xrds_conn *conn)
{
	u64 identity = conn->legacy.on ? 0 : conn->hello.node;
	struct xrds_peer *peer = conn->peer;

	if (!peer)
		return;
	spin_lock_bh(&conn->xn->peer_lock);
	if (peer->known && peer->identity != identity) {
		peer->births++;
		/* streams came over any of its connections */
		conn->reborn = true;
	}
	peer->identity = identity;
	peer->known = true;
	spin_unlock_bh(&conn->xn->peer_lock);
}

/**
 * xrds_peer_note_node - a node has said who it is
 * @conn: connection
 * @node: its identity, or XRDS_NODE_LEGACY
 *
 * No message of the node has come before.
 *
 * Context: the receive path, without L6.
 * Return: whether it is another one than the last that was heard.
 */
bool xrds_peer_note_node(struct xrds_conn *conn, u64 node)
{
	struct xrds_peer *peer = conn->peer;
	bool other;

	if (!peer)
		return false;
	spin_lock_bh(&conn->xn->peer_lock);
	other = peer->heard_node && peer->heard_node != node;
	peer->heard_node = node;
	spin_unlock_bh(&conn->xn->peer_lock);
	return other;
}

/**
 * xrds_peer_node - the node that is at an address now, as far as we know
 * @xn: namespace
 * @key: the addresses
 *
 * Context: any, without L6.
 * Return: its identity, or XRDS_NODE_LEGACY; 0: nobody is known there.
 */
u64 xrds_peer_node(struct xrds_net *xn, const struct xrds_peer_key *key)
{
	struct xrds_peer *peer;
	u64 node = 0;

	spin_lock_bh(&xn->peer_lock);
	peer = rhashtable_lookup_fast(&xn->peers, key, xrds_peer_params);
	if (peer)
		node = peer->heard_node;
	spin_unlock_bh(&xn->peer_lock);
	return node;
}

/**
 * xrds_peer_up - a connection has come up
 * @conn: connection
 *
 * Context: the connection's work.
 */
void xrds_peer_up(struct xrds_conn *conn)
{
	struct xrds_peer *peer = conn->peer;
	bool news, reborn;

	xrds_nl_news_up(conn);
	if (!peer)
		return;
	spin_lock_bh(&conn->xn->peer_lock);
	xrds_peer_disarm(peer);
	reborn = peer->births != peer->births_told;
	news = reborn || peer->state == XRDS_PEER_STATE_DOWN;
	if (news) {
		peer->changes++;
		peer->outage_ns = peer->nr_up ? 0 :
				  ktime_get_ns() - peer->heard_ns;
	}
	peer->births_told = peer->births;
	peer->reason = XRDS_DOWN_REASON_NONE;
	peer->nr_up++;
	xrds_peer_set(peer, XRDS_PEER_STATE_UP);
	spin_unlock_bh(&conn->xn->peer_lock);
	conn->peer_up = true;
	if (news)
		xrds_peer_tell(peer, reborn ? XRDS_PEER_STATE_REBORN :
					      XRDS_PEER_STATE_UP);
}

/**
 * xrds_peer_down - a connection that was up is about to lose its endpoint
 * @conn: connection
 * @reason: enum xrds_down_reason
 * @error: with XRDS_DOWN_REASON_LOST, negative errno
 *
 * Context: the connection's work.
 */
void xrds_peer_down(struct xrds_conn *conn, unsigned int reason, int error)
{
	/* in this order: completions write it meanwhile */
	unsigned long heard = READ_ONCE(conn->heard_at), now = jiffies;
	u64 silent = time_after(now, heard) ? jiffies64_to_nsecs(now - heard) : 0;
	/* ops are not sent again */
	bool idle = error != -ETIMEDOUT &&
		    READ_ONCE(conn->nr_msgs) == READ_ONCE(conn->nr_ops);
	bool orderly = reason == XRDS_DOWN_REASON_IDLE ||
		       reason == XRDS_DOWN_REASON_DRAINED ||
		       reason == XRDS_DOWN_REASON_PEER;
	struct xrds_peer *peer = conn->peer;

	WRITE_ONCE(conn->down_by, reason);
	xrds_nl_news_down(conn, reason, error);
	if (!conn->peer_up)
		return;
	conn->peer_up = false;
	spin_lock_bh(&conn->xn->peer_lock);
	peer->nr_up--;
	peer->reason = reason;
	/* the last one that is lost need not be the last that has heard something */
	peer->heard_ns = max(peer->heard_ns, ktime_get_ns() - silent);
	if (!peer->nr_up && (orderly || idle) && !peer->nr_watches)
		xrds_peer_set(peer, XRDS_PEER_STATE_IDLE);
	else
		xrds_peer_arm(peer, peer->heard_ns);
	spin_unlock_bh(&conn->xn->peer_lock);
}

/**
 * xrds_peer_failed - an attempt has failed
 * @conn: connection
 *
 * Context: the connection's work.
 */
void xrds_peer_failed(struct xrds_conn *conn)
{
	struct xrds_peer *peer = conn->peer;

	if (!peer)
		return;
	spin_lock_bh(&conn->xn->peer_lock);
	if (!peer->nr_up && peer->reason == XRDS_DOWN_REASON_NONE)
		peer->reason = XRDS_DOWN_REASON_LOST;
	xrds_peer_arm(peer, ktime_get_ns());
	spin_unlock_bh(&conn->xn->peer_lock);
}
