// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attempts to connect: dialled by this side or asked for by the peer, crossed,
 * established, opened; and how they fail.
 */
#include <linux/random.h>
#include <linux/xrds_netlink.h>

#include "conn/conn.h"
#include "transport.h"
#include "upcall.h"
#include "xrds.h"

/* a connection that lasted this long reconnects without delay */
#define XRDS_CONN_STABLE	HZ
/* a request of ours that was not answered for so long is lost */
#define XRDS_CONN_ASKED		(2 * HZ)

enum {
	/* how long to wait for the request that ours has lost against */
	XRDS_CROSSED_MS		= 100,
	/* how often, before that is taken for a refusal like others */
	XRDS_CROSSED_MAX	= 20,
	/* between two failures of a connection that have lines in the log */
	XRDS_LOG_PAUSE_S	= 10,
	/* between looks whether a drained connection has delivered all */
	XRDS_DRAIN_LOOK_MS	= 100,
	/* heartbeats that are more frequent are no use, and may be due all the time */
	XRDS_BEAT_LEAST_MS	= 100,
};

static unsigned long xrds_attempt_deadline(const struct xrds_conn *conn)
{
	return xrds_conn_deadline(READ_ONCE(conn->xn->connect_timeout_ms));
}

/* 0: no heartbeat */
static u32 xrds_attempt_beat_ms(const struct xrds_conn *conn)
{
	u32 ms = READ_ONCE(conn->xn->heartbeat_ms);

	return ms ? max_t(u32, ms, XRDS_BEAT_LEAST_MS) : 0;
}

/* Connections that came up together do not beat together. 0: no heartbeat */
static unsigned long xrds_attempt_next_beat(const struct xrds_conn *conn)
{
	u32 ms = xrds_attempt_beat_ms(conn);

	if (!ms || conn->key.loop)
		return 0;
	return xrds_conn_deadline(ms / 2 + reciprocal_scale(get_random_u32(),
							     ms / 2 + 1));
}

/* The earlier one of two times; 0: never */
static unsigned long xrds_attempt_earlier(unsigned long a, unsigned long b)
{
	return !a || (b && time_before(b, a)) ? b : a;
}

/* The next thing to do in UP: a heartbeat, a probe, or a look whether it is idle
 * or drained
 */
static void xrds_attempt_set_up(struct xrds_conn *conn)
{
	unsigned long at = xrds_attempt_earlier(xrds_idle_check_at(conn),
						conn->beat_at);

	at = xrds_attempt_earlier(at, xrds_probe_check_at(conn));
	if (xrds_conn_drained(conn))
		at = xrds_attempt_earlier(at,
					  xrds_conn_deadline(XRDS_DRAIN_LOOK_MS));
	xrds_fsm_set(conn, XRDS_ST_UP, at);
}

/* For dumps; a crossed request is no failure. */
static void xrds_attempt_note_fail(struct xrds_conn *conn, int error)
{
	if (error == -EALREADY)
		return;
	WRITE_ONCE(conn->failed_at, jiffies);
	WRITE_ONCE(conn->failed_by, error);
}

/* One line for the failures in a row, and one when the connection is up again. A
 * connection that fails again and again has a few of them, not a line each time.
 */
static void xrds_attempt_log_fail(struct xrds_conn *conn, int error)
{
	struct xrds_addr_text text;

	/* the connection goes on, or the transport has told the reason */
	if (conn->log_due || error == -EALREADY || error == -ECONNREFUSED)
		return;
	if (conn->log_at &&
	    time_before(jiffies, conn->log_at + XRDS_LOG_PAUSE_S * HZ))
		return;
	conn->log_due = true;
	conn->log_at = jiffies;
	xrds_addr_text(&conn->key.faddr, &text);
	if (conn->state == XRDS_ST_UP)
		net_info_ratelimited("xrds: %s: connection lost: %pe\n",
				     text.s, ERR_PTR(error));
	else
		net_info_ratelimited("xrds: %s: cannot connect (%s): %pe\n",
				     text.s, xrds_fsm_state_name(conn->state),
				     ERR_PTR(error));
}

static void xrds_attempt_log_up(struct xrds_conn *conn)
{
	struct xrds_addr_text text;

	if (!conn->log_due)
		return;
	conn->log_due = false;
	net_info_ratelimited("xrds: %s: connection up again after %llu ms\n",
			     xrds_addr_text(&conn->key.faddr, &text),
			     jiffies64_to_msecs(jiffies - conn->log_at));
}

/* Is the peer away for longer than a closed socket would deliver to it? */
static bool xrds_attempt_gone(const struct xrds_conn *conn)
{
	unsigned long ms = READ_ONCE(conn->xn->linger_ms);

	return time_after(jiffies, conn->left_at + msecs_to_jiffies(ms));
}

/**
 * xrds_attempt_fail - give an attempt or a connection up
 * @conn: connection
 * @error: why, negative errno
 *
 * Context: the connection's work.
 */
void xrds_attempt_fail(struct xrds_conn *conn, int error)
{
	bool up = conn->state == XRDS_ST_UP, stable = false;

	/* a peer whose own request never comes is one that refuses */
	if (error == -EALREADY && conn->nr_refused++ >= XRDS_CROSSED_MAX)
		error = -ECONNREFUSED;
	xrds_attempt_note_fail(conn, error);
	/* a program that is told next finds the line */
	xrds_attempt_log_fail(conn, error);
	if (up) {
		xrds_peer_down(conn, XRDS_DOWN_REASON_LOST, error);
		WRITE_ONCE(conn->lost_at, jiffies);
		WRITE_ONCE(conn->lost_by, error);
		WRITE_ONCE(conn->nr_lost, conn->nr_lost + 1);
		stable = time_after(jiffies, conn->up_at + XRDS_CONN_STABLE);
	}
	xrds_fsm_stop(conn);
	/* counted when nothing travels over this endpoint any more */
	if (up)
		xrds_count(conn->xn, XRDS_C_CONN_RESET);
	if (error == -EALREADY) {
		/* no loss: the peer's own request is on its way */
		xrds_fsm_pause(conn, XRDS_CROSSED_MS);
		return;
	}
	/* ops are not for later */
	xrds_tx_resume_drop_ops(conn);
	if (!up && xrds_attempt_gone(conn)) {
		xrds_tx_resume_drop_answers(conn);
		WRITE_ONCE(conn->legacy.told, false);
	}
	if (!up) {
		WRITE_ONCE(conn->retries, conn->retries + 1);
		xrds_peer_failed(conn);
	}
	if (stable)
		conn->backoff_ms = 0;
	xrds_fsm_failed(conn);
}

/**
 * xrds_attempt_expire - no answer came in time
 * @conn: connection
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_attempt_expire(struct xrds_conn *conn, int error)
{
	xrds_count(conn->xn, XRDS_C_CONN_TIMEOUT);
	xrds_attempt_fail(conn, -ETIMEDOUT);
}

/* Dials are charged to the creator until the connection was up once, then to
 * the namespace only. Others share the connection then, and the peer decides
 * how often it is lost. Over loopback they are always charged to the creator:
 * the owner of a namespace can break connections there.
 */
static struct xrds_user *xrds_attempt_dialler(const struct xrds_conn *conn)
{
	bool known = conn->peer_node || conn->legacy.heard;

	return known && !conn->key.loop ? NULL : conn->user;
}

static void xrds_attempt_go(struct xrds_conn *conn)
{
	int ret;

	WRITE_ONCE(conn->dialled, true);
	WRITE_ONCE(conn->nr_dials, conn->nr_dials + 1);
	WRITE_ONCE(conn->dialled_at, jiffies);
	xrds_count(conn->xn, XRDS_C_CONN_DIAL);
	xrds_fsm_set(conn, XRDS_ST_RESOLVING,
		     xrds_attempt_deadline(conn));
	ret = xrds_conn_drained(conn) ? -ESHUTDOWN : conn->trans->dial(conn);
	if (ret)
		xrds_attempt_fail(conn, ret);
}

static void xrds_attempt_begin(struct xrds_conn *conn)
{
	/* an attempt that fails at once takes nothing of max_connects_per_s */
	if (xrds_conn_drained(conn)) {
		xrds_dialq_leave(conn);
		xrds_attempt_go(conn);
	} else if (xrds_dialq_enter(conn, xrds_attempt_dialler(conn))) {
		xrds_attempt_go(conn);
	} else {
		xrds_fsm_set(conn, XRDS_ST_DOWN, 0);
	}
}

/* Is there a reason to dial? Without one the connection is idle. */
static bool xrds_attempt_wanted(struct xrds_conn *conn)
{
	bool dials;

	spin_lock_bh(&conn->lock);
	dials = xrds_idle_dials(conn);
	spin_unlock_bh(&conn->lock);
	if (!dials)
		xrds_close_go_idle(conn);
	return dials;
}

/**
 * xrds_attempt_dial - something is queued: dial, unless backing off
 * @conn: connection
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_attempt_dial(struct xrds_conn *conn, int error)
{
	if (!conn->backing_off)
		xrds_attempt_begin(conn);
}

/**
 * xrds_attempt_redial - the back-off is over: dial if there is a reason
 * @conn: connection
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_attempt_redial(struct xrds_conn *conn, int error)
{
	conn->backing_off = false;
	if (xrds_attempt_wanted(conn))
		xrds_attempt_begin(conn);
}

/**
 * xrds_attempt_turn - it is allowed to dial now, if there is a reason
 * @conn: connection
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_attempt_turn(struct xrds_conn *conn, int error)
{
	if (!conn->backing_off && xrds_attempt_wanted(conn))
		xrds_attempt_go(conn);
}

/**
 * xrds_attempt_advance - the next step of resolving
 * @conn: connection
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_attempt_advance(struct xrds_conn *conn, int error)
{
	int ret = conn->trans->advance(conn);

	if (ret == -EINPROGRESS)
		return;
	if (ret) {
		xrds_attempt_fail(conn, ret);
		return;
	}
	WRITE_ONCE(conn->asked_at, jiffies);
	xrds_fsm_set(conn, XRDS_ST_CONNECTING, xrds_attempt_deadline(conn));
}

/**
 * xrds_attempt_accept - take the peer's request
 * @conn: connection
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_attempt_accept(struct xrds_conn *conn, int error)
{
	int ret;

	/* an event may tell of one that an earlier step has taken */
	if (!READ_ONCE(conn->pending))
		return;
	xrds_dialq_leave(conn);
	WRITE_ONCE(conn->dialled, false);
	xrds_count(conn->xn, XRDS_C_CONN_ACCEPT);
	ret = conn->trans->accept(conn);
	if (ret)
		xrds_attempt_fail(conn, ret);
	else
		xrds_fsm_set(conn, XRDS_ST_CONNECTING,
			     xrds_attempt_deadline(conn));
}

/**
 * xrds_attempt_replace - drop the endpoint and take the peer's request
 * @conn: connection
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_attempt_replace(struct xrds_conn *conn, int error)
{
	bool up = conn->state == XRDS_ST_UP;

	if (!READ_ONCE(conn->pending))
		return;
	if (up)
		xrds_peer_down(conn, XRDS_DOWN_REASON_REPLACED, 0);
	xrds_fsm_stop(conn);
	if (up)
		xrds_count(conn->xn, XRDS_C_CONN_RESET);
	xrds_fsm_set(conn, XRDS_ST_DOWN, 0);
	/* only this work takes the request away */
	xrds_attempt_accept(conn, 0);
}

/* A legacy peer that dials refuses our request meanwhile, without regard to the
 * addresses. It dials again only when it has lost the connection.
 */
static bool xrds_attempt_asked_classic(struct xrds_conn *conn)
{
	bool legacy;

	spin_lock_bh(&conn->lock);
	legacy = conn->pending && conn->pending->legacy;
	spin_unlock_bh(&conn->lock);
	return legacy;
}

/**
 * xrds_attempt_cross - both sides have dialled
 * @conn: connection
 * @error: not used
 *
 * The attempt of the lower address goes on. But a request of ours that was not
 * answered for so long has not crossed: it was lost, and the connection manager
 * takes seconds to send it again.
 *
 * Context: the connection's work.
 */
void xrds_attempt_cross(struct xrds_conn *conn, int error)
{
	if (!conn->dialled || xrds_attempt_asked_classic(conn) ||
	    time_after(jiffies, conn->asked_at + XRDS_CONN_ASKED)) {
		xrds_attempt_replace(conn, 0);
		return;
	}
	xrds_count(conn->xn, XRDS_C_CONN_CROSSED);
	if (ipv6_addr_cmp(&conn->key.laddr, &conn->key.faddr) < 0)
		xrds_fsm_refuse(conn);
	else
		xrds_attempt_replace(conn, 0);
}

/**
 * xrds_attempt_renew - a request meets a connection that is established
 * @conn: connection
 * @error: not used
 *
 * If we had dialled the connection, the request may have crossed ours: then it
 * carries the epoch the peer had before, which its hello told us. It is refused
 * once. A peer that has lost the connection asks again.
 *
 * Context: the connection's work.
 */
void xrds_attempt_renew(struct xrds_conn *conn, int error)
{
	bool crossed = conn->dialled && !conn->crossed;
	struct xrds_request *req;

	spin_lock_bh(&conn->lock);
	req = conn->pending;
	if (req && (req->legacy ||
		    (conn->state == XRDS_ST_UP &&
		     req->epoch != (u8)(conn->hello.epoch - 1))))
		crossed = false;
	spin_unlock_bh(&conn->lock);

	if (!crossed) {
		xrds_attempt_replace(conn, 0);
		return;
	}
	conn->crossed = true;
	xrds_count(conn->xn, XRDS_C_CONN_CROSSED);
	xrds_fsm_refuse(conn);
}

/* Returns whether the endpoint has begun to receive. */
static bool xrds_attempt_ready(struct xrds_conn *conn)
{
	int ret;

	conn->epoch++;
	conn->crossed = false;
	conn->settled = false;
	WRITE_ONCE(conn->legacy.on, false);
	ret = conn->trans->start(conn);
	if (ret) {
		xrds_attempt_fail(conn, ret);
		return false;
	}
	xrds_fsm_set(conn, XRDS_ST_WAIT_CTS,
		     xrds_attempt_deadline(conn));
	return true;
}

/**
 * xrds_attempt_start - established: post receive buffers, send the hello
 * @conn: connection
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_attempt_start(struct xrds_conn *conn, int error)
{
	xrds_attempt_ready(conn);
}

/**
 * xrds_attempt_start_early - the same; the peer's hello has overtaken the news
 * @conn: connection
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_attempt_start_early(struct xrds_conn *conn, int error)
{
	if (xrds_attempt_ready(conn))
		xrds_conn_event(conn, XRDS_EV_CTS);
}

/**
 * xrds_attempt_open - the peer is ready: data may flow
 * @conn: connection
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_attempt_open(struct xrds_conn *conn, int error)
{
	int ret = 0;

	/* the messages that are dropped next belong to the change */
	xrds_peer_identify(conn);
	if (conn->legacy.on)
		xrds_legacy_open(conn);
	else
		ret = xrds_tx_resume_open(conn, &conn->hello);
	if (ret) {
		xrds_count(conn->xn, XRDS_C_WIRE + XRDS_WIRE_HELLO);
		xrds_attempt_fail(conn, ret);
		return;
	}
	xrds_count(conn->xn, XRDS_C_CONN_UP);
	xrds_attempt_log_up(conn);
	WRITE_ONCE(conn->up_at, jiffies);
	WRITE_ONCE(conn->failed, false);
	WRITE_ONCE(conn->retries, 0);
	conn->nr_refused = 0;
	memset(&conn->closing, 0, sizeof(conn->closing));
	conn->quiet.since = jiffies;
	conn->beat_at = xrds_attempt_next_beat(conn);
	xrds_probe_begin(conn);
	xrds_attempt_set_up(conn);
	xrds_cong_open(conn);
	xrds_tx_pump(conn);
	/* it takes as long as sockets watch the node */
	xrds_peer_up(conn);
	/* each message looks at its own source, so this has time */
	if (conn->reborn) {
		conn->reborn = false;
		queue_work(xrds_conn_wq, &conn->xn->lost_work);
	}
}

/* A peer that has lost the connection, or is gone, does not say so. But its
 * device does not acknowledge a heartbeat then, and that breaks the connection.
 * Without heartbeats a side that only waits, for an acknowledgment or for the
 * end of congestion, would wait for ever.
 */
static bool xrds_attempt_beat(struct xrds_conn *conn)
{
	if (!xrds_tx_beat(conn) ||
	    (conn->legacy.on && !xrds_legacy_beat(conn)))
		return false;
	conn->beat_at = xrds_attempt_next_beat(conn);
	return true;
}

/**
 * xrds_attempt_tick - UP: is it time for a heartbeat or a probe, or for the end?
 * @conn: connection
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_attempt_tick(struct xrds_conn *conn, int error)
{
	u32 ms = xrds_attempt_beat_ms(conn);
	bool late = false;

	if (xrds_close_collect(conn))
		return;
	/* it may have been switched on or off, or be due sooner than before */
	if (!conn->beat_at || !ms ||
	    time_after(conn->beat_at, xrds_conn_deadline(ms)))
		conn->beat_at = xrds_attempt_next_beat(conn);
	else if (time_after_eq(jiffies, conn->beat_at))
		late = !xrds_attempt_beat(conn);
	if (late || xrds_probe_silent(conn)) {
		xrds_attempt_expire(conn, 0);
		return;
	}
	/* one that waits for a credit is as good */
	if (xrds_probe_due(conn))
		xrds_attempt_beat(conn);
	xrds_attempt_set_up(conn);
}

/**
 * xrds_attempt_go_idle - DOWN: is the connection needed?
 * @conn: connection
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_attempt_go_idle(struct xrds_conn *conn, int error)
{
	if (!conn->backing_off && xrds_attempt_wanted(conn))
		xrds_attempt_begin(conn);
}
