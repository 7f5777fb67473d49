// SPDX-License-Identifier: GPL-2.0-only
/*
 * The steps that lead to a state of a connection: writing it, taking the
 * endpoint away, going DOWN with a back-off, and DEAD.
 *
 * All of it runs in the connection's work, which alone writes the state.
 * attempt.c and close.c use these steps; state.c says which event leads to
 * which.
 */
#include "conn/conn.h"
#include "tracepoints.h"
#include "transport.h"
#include "upcall.h"
#include "xrds.h"

/* The events that only the endpoint of that moment gives meaning to. */
#define XRDS_EP_EVENTS	(BIT(XRDS_EV_REMOVED) | BIT(XRDS_EV_ERROR) | \
			 BIT(XRDS_EV_RESOLVED) | BIT(XRDS_EV_ESTABLISHED) | \
			 BIT(XRDS_EV_CTS) | BIT(XRDS_EV_BYE) | \
			 BIT(XRDS_EV_BYE_ACK))

/* the least delay between attempts in a drained namespace, milliseconds */
#define XRDS_DRAINED_MS		100U

/* in the order of enum xrds_state */
static const char * const xrds_fsm_state_names[] = {
#define X(sym, text) text
#include "list_states.h"
#undef X
};

static_assert(ARRAY_SIZE(xrds_fsm_state_names) == XRDS_ST_NR);

/**
 * xrds_fsm_state_name - the name of a state in dumps and log lines
 * @state: state
 *
 * Context: any.
 * Return: the name.
 */
const char *xrds_fsm_state_name(enum xrds_state state)
{
	return state < XRDS_ST_NR ? xrds_fsm_state_names[state] : "?";
}

/* in the order of enum xrds_event */
static const char * const xrds_fsm_event_names[] = {
#define X(sym, text) text
#include "list_events.h"
#undef X
};

static_assert(ARRAY_SIZE(xrds_fsm_event_names) == XRDS_EV_NR);

/**
 * xrds_fsm_event_name - the name of an event in traces
 * @ev: event
 *
 * Context: any.
 * Return: the name.
 */
const char *xrds_fsm_event_name(enum xrds_event ev)
{
	return ev < XRDS_EV_NR ? xrds_fsm_event_names[ev] : "?";
}

/**
 * xrds_fsm_set - write a connection's state
 * @conn: connection
 * @state: state
 * @deadline: jiffies when it times out, 0: never
 *
 * Context: the connection's work.
 */
void xrds_fsm_set(struct xrds_conn *conn, enum xrds_state state,
		  unsigned long deadline)
{
	spin_lock_bh(&conn->lock);
	trace_xrds_conn_state(conn, state);
	WRITE_ONCE(conn->state, state);
	conn->deadline = deadline;
	spin_unlock_bh(&conn->lock);
}

/**
 * xrds_fsm_stop - take the endpoint away, with all it may still announce
 * @conn: connection
 *
 * Context: the connection's work.
 */
void xrds_fsm_stop(struct xrds_conn *conn)
{
	if (conn->state == XRDS_ST_UP || conn->state == XRDS_ST_CLOSING ||
	    conn->state == XRDS_ST_PARTING)
		conn->left_at = jiffies;
	/* Its end ends ops, and programs hear of that. Ops that they send then are
	 * for the next one, see xrds_tx_resume_drop_ops().
	 */
	spin_lock_bh(&conn->lock);
	conn->stamp_stopped = conn->stamp;
	spin_unlock_bh(&conn->lock);
	xrds_tx_resume_close(conn);
	conn->trans->stop(conn);
	/* nothing is acknowledged any more */
	while (READ_ONCE(conn->acking)) {
		xrds_tx_acked_rest(conn);
		cond_resched();
	}
	cancel_delayed_work_sync(&conn->ack_work);
	/* the next endpoint begins with a hello of its own */
	WRITE_ONCE(conn->rx_ack, 0);
	xrds_legacy_close(conn);
	xrds_cong_close(conn);
	xrds_refuse_close(conn);
	xrds_tx_resume_drop_posted(conn);

	spin_lock_bh(&conn->lock);
	conn->ep_gen++;
	conn->events &= ~XRDS_EP_EVENTS;
	spin_unlock_bh(&conn->lock);
}

/* The delay before the next attempt: none after a connection that lasted,
 * then doubling between the bounds, and a random part of it so that nodes
 * which lost the same switch do not come back in step.
 */
static unsigned int xrds_fsm_backoff(struct xrds_conn *conn)
{
	struct xrds_net *xn = conn->xn;
	unsigned int max = READ_ONCE(xn->reconnect_max_ms);
	unsigned int ms = conn->backoff_ms;

	conn->backoff_ms = clamp(ms * 2, READ_ONCE(xn->reconnect_min_ms), max);
	return ms ? ms / 2 + reciprocal_scale(get_random_u32(), ms / 2 + 1) :
		    0;
}

/**
 * xrds_fsm_pause - to DOWN; then the next attempt, if there is a reason
 * @conn: connection without endpoint
 * @ms: delay of that attempt, milliseconds
 *
 * Context: the connection's work.
 */
void xrds_fsm_pause(struct xrds_conn *conn, unsigned int ms)
{
	conn->backing_off = ms;
	conn->quiet.since = jiffies;
	/* A sender queues its message under the lock, and then looks at the
	 * state: either it sees DOWN, or we see the message.
	 */
	spin_lock_bh(&conn->lock);
	trace_xrds_conn_state(conn, XRDS_ST_DOWN);
	WRITE_ONCE(conn->state, XRDS_ST_DOWN);
	if (ms || xrds_idle_dials(conn))
		conn->deadline = xrds_conn_deadline(ms);
	else
		conn->deadline = xrds_idle_check_at(conn);
	spin_unlock_bh(&conn->lock);
	wake_up_all(&conn->xn->gone);
}

/**
 * xrds_fsm_down - a connection has no endpoint any more
 * @conn: connection
 *
 * Context: the connection's work.
 */
void xrds_fsm_down(struct xrds_conn *conn)
{
	WRITE_ONCE(conn->failed, false);
	xrds_fsm_pause(conn, 0);
}

/**
 * xrds_fsm_failed - the same: it was lost, so the next attempt may have to wait
 * @conn: connection
 *
 * Context: the connection's work.
 */
void xrds_fsm_failed(struct xrds_conn *conn)
{
	unsigned int ms = xrds_fsm_backoff(conn);

	WRITE_ONCE(conn->failed, true);
	/* its attempts fail at once, so nothing else bounds them */
	if (xrds_conn_drained(conn))
		ms = max(ms, XRDS_DRAINED_MS);
	xrds_fsm_pause(conn, ms);
}

/**
 * xrds_fsm_refuse - reject the request that waits, if one does
 * @conn: connection
 *
 * Context: the connection's work.
 */
void xrds_fsm_refuse(struct xrds_conn *conn)
{
	struct xrds_request *req = xrds_conn_take_pending(conn);

	if (!req)
		return;
	xrds_count(conn->xn, XRDS_C_CONN_REFUSED);
	conn->trans->refuse(conn, req);
}

/**
 * xrds_fsm_dead - the last steps for a connection that is DEAD
 * @conn: connection without endpoint, not in the table any more
 *
 * Context: the connection's work.
 */
void xrds_fsm_dead(struct xrds_conn *conn)
{
	/* an event may have queued us again before; none can any more */
	cancel_delayed_work(&conn->work);

	/* a request that came in between */
	xrds_fsm_refuse(conn);
	xrds_dialq_leave(conn);
	xrds_cong_close(conn);
	xrds_refuse_forget(conn);
	xrds_link_leave(conn);
	/* wakes flows that began to wait before they could see DEAD */
	xrds_flow_leave_all(conn);
	xrds_tx_resume_drop_all(conn);
	wake_up_all(&conn->xn->gone);
}

/**
 * xrds_fsm_kill - make_dead, see the head of conn.c
 * @conn: connection
 * @error: not used
 *
 * Context: the connection's work.
 */
void xrds_fsm_kill(struct xrds_conn *conn, int error)
{
	xrds_fsm_stop(conn);
	xrds_fsm_refuse(conn);

	spin_lock_bh(&conn->lock);
	xrds_conn_unhash(conn);
	trace_xrds_conn_state(conn, XRDS_ST_DEAD);
	WRITE_ONCE(conn->state, XRDS_ST_DEAD);
	spin_unlock_bh(&conn->lock);
	xrds_fsm_dead(conn);
}
