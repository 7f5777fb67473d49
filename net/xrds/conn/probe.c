// SPDX-License-Identifier: GPL-2.0-only
/*
 * Probes: is the peer of a connection that is up still there?
 *
 * A connection whose node is watched (peer.c) is probed when nothing was heard
 * for a quarter of peer_dead_ms. The probe is a heartbeat, which the peer's device
 * acknowledges. So silence has one meaning: neither a message nor an
 * acknowledgment of the device has come. When peer_dead_ms are over, and half of
 * them since the probe, the connection is lost. The second condition is for a
 * node that was stopped itself: it has sent no probe meanwhile, and must not take
 * its own silence for that of the peer.
 *
 * Heartbeats are sent beside that on all connections (attempt.c), every
 * heartbeat_ms. They find a dead peer as fast as the device does.
 *
 * All of it runs in the connection's work.
 */
#include "conn/conn.h"
#include "transport.h"
#include "xrds.h"

enum {
	/* parts of peer_dead_ms after which a silent peer is probed */
	XRDS_PROBE_PARTS	= 4,
};

static unsigned long xrds_probe_dead(const struct xrds_conn *conn)
{
	return msecs_to_jiffies(READ_ONCE(conn->xn->peer_dead_ms));
}

/* Was nothing heard since the last probe? */
static bool xrds_probe_pending(const struct xrds_conn *conn)
{
	return conn->probe_at &&
	       time_before(READ_ONCE(conn->heard_at), conn->probe_at);
}

/**
 * xrds_probe_begin - a connection has come up
 * @conn: connection
 *
 * Context: the connection's work.
 */
void xrds_probe_begin(struct xrds_conn *conn)
{
	xrds_conn_heard(conn);
	conn->probe_at = 0;
}

/**
 * xrds_probe_check_at - when is a probe due, or the peer dead?
 * @conn: connection that is up
 *
 * Context: the connection's work.
 * Return: jiffies, 0: never.
 */
unsigned long xrds_probe_check_at(const struct xrds_conn *conn)
{
	unsigned long heard = READ_ONCE(conn->heard_at);
	unsigned long dead = xrds_probe_dead(conn);
	unsigned long at = heard + dead / XRDS_PROBE_PARTS;

	if (!xrds_peer_watched(conn))
		return 0;
	if (xrds_probe_pending(conn)) {
		at = heard + dead;
		if (time_before(at, conn->probe_at + dead / 2))
			at = conn->probe_at + dead / 2;
	}
	return at ?: 1;
}

/**
 * xrds_probe_silent - is the peer dead?
 * @conn: connection that is up
 *
 * Context: the connection's work.
 * Return: whether a probe was not answered in time.
 */
bool xrds_probe_silent(const struct xrds_conn *conn)
{
	unsigned long at = xrds_probe_check_at(conn);

	return at && xrds_probe_pending(conn) && time_after_eq(jiffies, at);
}

/**
 * xrds_probe_due - is it time for a probe?
 * @conn: connection that is up
 *
 * Context: the connection's work.
 * Return: whether it is; then the caller sends it.
 */
bool xrds_probe_due(struct xrds_conn *conn)
{
	unsigned long at = xrds_probe_check_at(conn);

	if (!at || xrds_probe_pending(conn) || time_before(jiffies, at))
		return false;
	conn->probe_at = jiffies ?: 1;
	return true;
}

/**
 * xrds_probe_bound_ms - bound a wait for a peer that may be gone
 * @conn: connection
 * @ms: the bound of other connections
 *
 * Context: the connection's work.
 * Return: milliseconds; less if the node is watched.
 */
unsigned int xrds_probe_bound_ms(const struct xrds_conn *conn, unsigned int ms)
{
	if (!xrds_peer_watched(conn))
		return ms;
	return min(ms, READ_ONCE(conn->xn->peer_dead_ms) / 2);
}
