// SPDX-License-Identifier: GPL-2.0-only
/*
 * Is a connection idle? Answers only; close.c ends connections.
 *
 * A connection is idle when it has nothing to deliver, no flow waits on it, no
 * socket watches its node, and nothing has come or gone for idle_ms. In a
 * namespace without sockets every connection is.
 */
#include "conn/conn.h"
#include "xrds.h"

enum {
	/* parts of idle_ms after which the worker looks again */
	XRDS_IDLE_LOOKS		= 4,
	/* how often, when no socket can use it any more; and at most */
	XRDS_ORPHAN_MS		= 100,
};

/**
 * xrds_idle_unused - has it nothing to deliver, no waiter, watcher or request?
 * @conn: connection
 *
 * Context: any, conn->lock held.
 * Return: whether it is so.
 */
bool xrds_idle_unused(struct xrds_conn *conn)
{
	lockdep_assert_held(&conn->lock);

	return !xrds_conn_wanted(conn) && !conn->nr_waiters &&
	       !conn->pending && !xrds_peer_watched(conn);
}

/**
 * xrds_idle_dials - is a connection without endpoint to be made again?
 * @conn: connection
 *
 * Context: any, conn->lock held.
 * Return: whether something is queued, a socket watches the node, or the peer may
 * wait for a port.
 */
bool xrds_idle_dials(const struct xrds_conn *conn)
{
	lockdep_assert_held(&conn->lock);

	return xrds_conn_wanted(conn) || xrds_peer_watched(conn) ||
	       xrds_conn_awaited(conn);
}

/* Was it never up, and it was tried, or no flow uses it? Its first user may be gone,
 * and such a connection must leave nothing behind.
 */
static bool xrds_idle_never_up(const struct xrds_conn *conn)
{
	return conn->state == XRDS_ST_DOWN && !conn->peer_node &&
	       !conn->legacy.heard &&
	       (conn->ep_gen > 1 || list_empty_careful(&conn->flows));
}

/**
 * xrds_idle_timed_out - has nothing come or gone for idle_ms?
 * @conn: connection
 *
 * Context: the connection's work.
 * Return: whether it is so; true without sockets in its namespace, and soon if it
 * was never up.
 */
bool xrds_idle_timed_out(const struct xrds_conn *conn)
{
	unsigned int ms = READ_ONCE(conn->xn->idle_ms);

	if (xrds_conn_netns_unused(conn->xn))
		return true;
	/* a sender that has just made it is about to use it */
	if (xrds_idle_never_up(conn))
		ms = XRDS_ORPHAN_MS;
	return ms && time_after_eq(jiffies, conn->quiet.since +
					    msecs_to_jiffies(ms));
}

/**
 * xrds_idle_check_at - when to look whether a connection is idle
 * @conn: connection
 *
 * Context: the connection's work.
 * Return: jiffies, 0: never.
 */
unsigned long xrds_idle_check_at(const struct xrds_conn *conn)
{
	unsigned int ms = READ_ONCE(conn->xn->idle_ms);
	unsigned long soon, due;

	if (xrds_conn_netns_unused(conn->xn) || xrds_idle_never_up(conn))
		return xrds_conn_deadline(XRDS_ORPHAN_MS);
	if (!ms)
		return 0;
	due = conn->quiet.since + msecs_to_jiffies(ms);
	soon = xrds_conn_deadline(max_t(unsigned int, ms / XRDS_IDLE_LOOKS,
					XRDS_ORPHAN_MS));
	if (time_after(due, jiffies) && time_before(due, soon))
		soon = due;
	return soon ?: 1;
}
