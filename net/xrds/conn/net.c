// SPDX-License-Identifier: GPL-2.0-only
/*
 * The connections of a namespace or a transport, all together: their end, and
 * events for all of them.
 *
 * A namespace or a transport that goes lets its connections deliver the
 * messages of closed sockets, ends them in order, and waits for the last of
 * their workers. Both waits are bounded. The kernel ends namespaces in batches,
 * and those of a batch wait together.
 */
#include "conn/conn.h"
#include "tracepoints.h"
#include "transport.h"
#include "xrds.h"

/* how long unload waits for closed sockets' messages to be taken */
enum { XRDS_CONN_FLUSH_MS = 2000 };

/**
 * xrds_conn_net_walk - the next connection of a namespace
 * @xn: namespace
 * @conn: the connection before, its reference is dropped; NULL: begin
 *
 * One that is there all the time is visited once. It may be DEAD by the time the
 * caller looks at it: then its transport may be gone.
 *
 * Context: process.
 * Return: the connection, with a reference, or NULL.
 */
struct xrds_conn *xrds_conn_net_walk(struct xrds_net *xn, struct xrds_conn *conn)
{
	struct list_head *at = &xn->conn_list;
	struct xrds_conn *pos, *next = NULL;
	u64 id = conn ? conn->id : 0;

	rcu_read_lock();
	if (conn) {
		/* on the list until it is DEAD; after that by the numbers */
		spin_lock_bh(&conn->lock);
		if (conn->state != XRDS_ST_DEAD)
			at = &conn->list;
		spin_unlock_bh(&conn->lock);
	}
	pos = list_entry(at, struct xrds_conn, list);
	list_for_each_entry_continue_rcu(pos, &xn->conn_list, list) {
		if (pos->id <= id || !refcount_inc_not_zero(&pos->ref))
			continue;
		next = pos;
		break;
	}
	rcu_read_unlock();
	if (next)
		trace_xrds_ref_get("conn", next, refcount_read(&next->ref),
				   _RET_IP_);
	if (conn)
		xrds_conn_put(conn);
	cond_resched();
	return next;
}

/**
 * xrds_conn_net_look_idle - have every connection look what is due, and whether it is idle
 * @xn: namespace
 *
 * Context: process.
 */
void xrds_conn_net_look_idle(struct xrds_net *xn)
{
	struct xrds_conn *conn = NULL;

	while ((conn = xrds_conn_net_walk(xn, conn)))
		xrds_conn_event(conn, XRDS_EV_IDLE);
}

/**
 * xrds_conn_net_drain - end a namespace's connections to other nodes, in order
 * @xn: namespace
 *
 * They deliver what is queued first, but no longer than connect_timeout_ms. Until
 * xrds_conn_net_undrain() attempts of either side fail, and messages stay queued.
 *
 * Context: process.
 */
void xrds_conn_net_drain(struct xrds_net *xn)
{
	unsigned int ms = READ_ONCE(xn->connect_timeout_ms);

	/* a second call does not put it off */
	cmpxchg(&xn->drain_by, 0, xrds_conn_deadline(ms));
	xrds_conn_net_look_idle(xn);
}

/**
 * xrds_conn_net_undrain - allow connections to other nodes again
 * @xn: namespace
 *
 * Those with queued messages are made after their back-off.
 *
 * Context: process.
 */
void xrds_conn_net_undrain(struct xrds_net *xn)
{
	WRITE_ONCE(xn->drain_by, 0);
}

/**
 * xrds_conn_net_nr_ends - the number of connections to other nodes that have not ended
 * @xn: namespace
 *
 * Context: process.
 * Return: the number.
 */
unsigned int xrds_conn_net_nr_ends(struct xrds_net *xn)
{
	struct xrds_conn *conn = NULL;
	unsigned int nr = 0;
	u32 state;

	while ((conn = xrds_conn_net_walk(xn, conn))) {
		state = READ_ONCE(conn->state);
		nr += !conn->key.loop && state != XRDS_ST_DOWN &&
		      state != XRDS_ST_DEAD;
	}
	return nr;
}

static bool xrds_conn_matches(const struct xrds_conn *conn,
			      const struct xrds_conn_match *m)
{
	const struct xrds_conn_key *key = &conn->key;

	return (!m->laddr || ipv6_addr_equal(&key->laddr, m->laddr)) &&
	       (!m->faddr || ipv6_addr_equal(&key->faddr, m->faddr)) &&
	       (m->tos < 0 || key->tos == m->tos);
}

/**
 * xrds_conn_net_reset - have connections made anew
 * @xn: namespace
 * @m: connections
 *
 * They fail, as if their queue pairs had. Messages that the peer does not have
 * are sent again over the next endpoint, with their numbers.
 *
 * Context: process.
 * Return: the number of connections.
 */
unsigned int xrds_conn_net_reset(struct xrds_net *xn,
				 const struct xrds_conn_match *m)
{
	struct xrds_conn *conn = NULL;
	unsigned int nr = 0;

	while ((conn = xrds_conn_net_walk(xn, conn))) {
		if (!xrds_conn_matches(conn, m))
			continue;
		xrds_conn_ep_event(conn, READ_ONCE(conn->ep_gen),
				   XRDS_EV_ERROR, -ECONNABORTED);
		nr++;
	}
	return nr;
}

/* Can a connection deliver what is queued? It is up, or about to be, and has
 * not failed yet. One that ends in order comes up again if something is queued.
 */
static bool xrds_conn_promising(const struct xrds_conn *conn)
{
	enum xrds_state state = READ_ONCE(conn->state);

	return state == XRDS_ST_UP ||
	       (state != XRDS_ST_DEAD && !READ_ONCE(conn->failed));
}

/* Has no connection of this transport messages that it may deliver? */
static bool xrds_conn_net_flushed(struct xrds_net *xn,
				  const struct xrds_transport *trans)
{
	struct xrds_conn *conn;
	bool flushed = true;

	rcu_read_lock();
	list_for_each_entry_rcu(conn, &xn->conn_list, list) {
		if ((trans && conn->trans != trans) ||
		    !xrds_conn_promising(conn))
			continue;
		spin_lock_bh(&conn->lock);
		flushed = !xrds_conn_wanted(conn);
		spin_unlock_bh(&conn->lock);
		if (!flushed)
			break;
	}
	rcu_read_unlock();
	return flushed;
}

/**
 * xrds_conn_net_gone - have all connections ended?
 * @xn: namespace
 * @trans: only those of this transport; NULL: all
 *
 * Context: process.
 * Return: whether they have.
 */
bool xrds_conn_net_gone(struct xrds_net *xn, const struct xrds_transport *trans)
{
	struct xrds_conn *conn;
	bool gone = true;

	rcu_read_lock();
	list_for_each_entry_rcu(conn, &xn->conn_list, list) {
		if (!trans || conn->trans == trans) {
			gone = false;
			break;
		}
	}
	rcu_read_unlock();
	return gone;
}

/* Let the messages of closed sockets go out, where the peer takes them, until
 * this time. Without any socket the messages are the kernel's own answers.
 */
static void xrds_conn_net_flush(struct xrds_net *xn,
				const struct xrds_transport *trans,
				unsigned long until)
{
	long left = until - jiffies;

	/* a caller that makes a connection meanwhile has seen that it must
	 * not, or its connection is on the list
	 */
	spin_lock_bh(&xn->lock);
	spin_unlock_bh(&xn->lock);

	if (left > 0)
		wait_event_timeout(xn->gone, !atomic_read(&xn->nr_socks) ||
				   xrds_conn_net_flushed(xn, trans), left);
}

static void xrds_conn_net_destroy(struct xrds_net *xn,
				  const struct xrds_transport *trans)
{
	struct xrds_conn *conn;

	rcu_read_lock();
	list_for_each_entry_rcu(conn, &xn->conn_list, list) {
		if (!trans || conn->trans == trans)
			xrds_conn_event(conn, XRDS_EV_DESTROY);
	}
	rcu_read_unlock();
}

/* Works have a reference on a connection or a socket, but for those of the namespace
 * itself, which its exit cancels. When none is left in a namespace that goes, no work
 * of it runs; the queue itself is that of all namespaces.
 */
static void xrds_conn_net_wait(struct xrds_net *xn)
{
	/* Each worker's waits are bounded, so is this. The messages are gone
	 * then, so closed sockets go, and with them the rest.
	 */
	wait_event(xn->gone,
		   !atomic_read(&xn->nr_conns) && !atomic_read(&xn->nr_socks));
}

/* End the connections of one transport in a namespace that stays: the module of
 * the transport is on its way out.
 */
static void xrds_conn_net_unload(struct xrds_net *xn,
				 const struct xrds_transport *trans)
{
	unsigned long until = xrds_conn_deadline(XRDS_CONN_FLUSH_MS);
	int i;

	/* first the messages, then the ends of streams that they make due */
	for (i = 0; i < 2; i++) {
		xrds_conn_net_flush(xn, trans, until);
		flush_workqueue(xrds_conn_wq);
	}
	xrds_conn_net_destroy(xn, trans);
	wait_event(xn->gone, xrds_conn_net_gone(xn, trans));
	/* Their workers may still be in the last lines, and those that queue
	 * the ends of streams may have met a connection before it was dead.
	 */
	flush_workqueue(xrds_conn_wq);
}

/**
 * xrds_conn_net_end_all - end all connections of namespaces
 * @nets: namespaces, by net->exit_list
 * @trans: in a namespace that stays, only those of this transport, which finds
 *	no new ones any more; NULL: all namespaces go
 *
 * The messages of closed sockets go out first, where the peer takes them, and
 * then the connections end in order, both for a bounded time, which is the same
 * for all of the namespaces: one thread ends the namespaces of the host.
 *
 * Context: process, may sleep.
 */
void xrds_conn_net_end_all(struct list_head *nets,
			   const struct xrds_transport *trans)
{
	unsigned long until = xrds_conn_deadline(XRDS_CONN_FLUSH_MS);
	struct net *net;

	list_for_each_entry(net, nets, exit_list) {
		if (!xrds_net(net)->exiting)
			xrds_conn_net_unload(xrds_net(net), trans);
	}
	list_for_each_entry(net, nets, exit_list) {
		if (xrds_net(net)->exiting)
			xrds_conn_net_flush(xrds_net(net), NULL, until);
	}
	list_for_each_entry(net, nets, exit_list) {
		if (xrds_net(net)->exiting)
			xrds_conn_net_destroy(xrds_net(net), NULL);
	}
	list_for_each_entry(net, nets, exit_list) {
		if (xrds_net(net)->exiting)
			xrds_conn_net_wait(xrds_net(net));
	}
	/* the callbacks that brought these to zero may still be waking us */
	rcu_barrier();
}
EXPORT_SYMBOL_GPL(xrds_conn_net_end_all);

/* A namespace with connections of a transport, with a reference: others come
 * and go while these are waited for. One that is going ends its own.
 */
static struct net *xrds_conn_net_of(const struct xrds_transport *trans)
{
	struct net *net, *found = NULL;

	down_read(&net_rwsem);
	for_each_net(net) {
		if (xrds_conn_net_gone(xrds_net(net), trans))
			continue;
		found = maybe_get_net(net);
		if (found)
			break;
	}
	up_read(&net_rwsem);
	return found;
}

/**
 * xrds_conn_net_end_transport - end the connections of a transport
 * @trans: transport that was unregistered
 *
 * Context: process, may sleep; the module is on its way out.
 */
void xrds_conn_net_end_transport(const struct xrds_transport *trans)
{
	struct net *net;

	while ((net = xrds_conn_net_of(trans))) {
		xrds_conn_net_unload(xrds_net(net), trans);
		put_net(net);
	}
}
EXPORT_SYMBOL_GPL(xrds_conn_net_end_transport);
