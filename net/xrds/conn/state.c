// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state of a connection, and the work item that alone writes it.
 *
 * Everybody else records an event and queues the work (conn.c). The table has the
 * effect of each event in each state; it has a cell for every pair, so that a
 * forgotten one would be seen. Deadlines (of an attempt, of back-off, of the
 * next heartbeat) are the same work item, delayed.
 *
 * Crossed requests. When both sides dial, the attempt of the lower address
 * wins, and the other side takes that. A request of the peer which meets a
 * connection that is already up either crossed the attempt that led to it, or
 * means that the peer has lost the connection and dials anew; the epoch in the
 * request tells them apart. A side that has lost against a request waits for
 * it, and does not back off.
 *
 * The orderly end (close.c has its steps). A ends, B is the peer; queue pairs
 * keep the order, the connection manager's messages may overtake them. All of
 * these end with every accepted message delivered once and in order:
 *
 * - B's data crosses A's BYE. It arrives before B's BYE_ACK, is taken as ever,
 *   and A acknowledges it before it disconnects. B ends only when it has that
 *   acknowledgment, even if it hears of the disconnection first.
 * - Data is queued at A or B after BYE or BYE_ACK. It stays queued, not posted,
 *   and its side dials as soon as it is DOWN. The other side may be CLOSING or
 *   PARTING still: it takes the request for the disconnection, ends as above,
 *   and only then accepts. Or it is gone: then a new connection accepts.
 * - A forgets the connection, B does not. A is the same node, so B goes on to
 *   receive where it was: A's numbers are higher (xrds_conn_unhash()). The
 *   messages that B has queued were not received by A, even if they were posted
 *   (xrds_tx_resume_clear_posted()).
 * - B has queued messages that were posted on an earlier endpoint, not on this
 *   one, when BYE comes. They count as not posted for the same reason.
 * - Both say BYE. Each answers the other's; BYE_ACK is then the last word of
 *   either. The side that has it, and has answered, disconnects when the answer
 *   has arrived; the other one hears of it early at worst, and waits for the
 *   BYE_ACK that is there already.
 * - B's BYE comes while A has no credit for its own: A answers instead.
 * - A fragment of a message is sent, the rest not: BYE and BYE_ACK wait for it.
 * - No credit comes, the peer is dead, or its device is. The deadline, or the
 *   queue pair, ends it like a loss: both keep their numbers. B reads A's
 *   disconnection without BYE_ACK like any other.
 * - A request of B meets a connection that has become DEAD but is still found:
 *   it is refused as crossed, and B asks again.
 * - The module, the namespace or the device goes while the end is under way:
 *   it goes on, with the shorter deadline, and then that follows.
 */
#include "conn/conn.h"
#include "transport.h"

typedef void (*xrds_state_fn)(struct xrds_conn *conn, int error);

/* The event stays pending until the state changes. */
static void xrds_state_keep(struct xrds_conn *conn, int error)
{
}

static void xrds_state_pump(struct xrds_conn *conn, int error)
{
	xrds_tx_pump(conn);
}

/* The action of each event; NULL: none */
static const xrds_state_fn xrds_state_table[XRDS_ST_NR][XRDS_EV_NR] = {
	[XRDS_ST_DOWN] = {
		[XRDS_EV_DESTROY]	= xrds_fsm_kill,
		[XRDS_EV_REMOVED]	= NULL,
		[XRDS_EV_ERROR]		= NULL,
		[XRDS_EV_REQUEST]	= xrds_attempt_accept,
		[XRDS_EV_RESOLVED]	= NULL,
		[XRDS_EV_ESTABLISHED]	= NULL,
		[XRDS_EV_CTS]		= NULL,
		[XRDS_EV_BYE]		= NULL,
		[XRDS_EV_BYE_ACK]	= NULL,
		[XRDS_EV_TURN]		= xrds_attempt_turn,
		[XRDS_EV_IDLE]		= xrds_attempt_go_idle,
		[XRDS_EV_WANT]		= xrds_attempt_dial,
		[XRDS_EV_TIMEOUT]	= xrds_attempt_redial,
	},
	[XRDS_ST_RESOLVING] = {
		[XRDS_EV_DESTROY]	= xrds_fsm_kill,
		[XRDS_EV_REMOVED]	= xrds_attempt_fail,
		[XRDS_EV_ERROR]		= xrds_attempt_fail,
		[XRDS_EV_REQUEST]	= xrds_attempt_replace,
		[XRDS_EV_RESOLVED]	= xrds_attempt_advance,
		[XRDS_EV_ESTABLISHED]	= NULL,
		[XRDS_EV_CTS]		= NULL,
		[XRDS_EV_BYE]		= NULL,
		[XRDS_EV_BYE_ACK]	= NULL,
		[XRDS_EV_TURN]		= NULL,
		[XRDS_EV_IDLE]		= NULL,
		[XRDS_EV_WANT]		= NULL,
		[XRDS_EV_TIMEOUT]	= xrds_attempt_expire,
	},
	[XRDS_ST_CONNECTING] = {
		[XRDS_EV_DESTROY]	= xrds_fsm_kill,
		[XRDS_EV_REMOVED]	= xrds_attempt_fail,
		[XRDS_EV_ERROR]		= xrds_attempt_fail,
		[XRDS_EV_REQUEST]	= xrds_attempt_cross,
		[XRDS_EV_RESOLVED]	= NULL,
		[XRDS_EV_ESTABLISHED]	= xrds_attempt_start,
		[XRDS_EV_CTS]		= xrds_attempt_start_early,
		[XRDS_EV_BYE]		= xrds_state_keep,
		[XRDS_EV_BYE_ACK]	= NULL,
		[XRDS_EV_TURN]		= NULL,
		[XRDS_EV_IDLE]		= NULL,
		[XRDS_EV_WANT]		= NULL,
		[XRDS_EV_TIMEOUT]	= xrds_attempt_expire,
	},
	[XRDS_ST_WAIT_CTS] = {
		[XRDS_EV_DESTROY]	= xrds_fsm_kill,
		[XRDS_EV_REMOVED]	= xrds_attempt_fail,
		[XRDS_EV_ERROR]		= xrds_attempt_fail,
		[XRDS_EV_REQUEST]	= xrds_attempt_renew,
		[XRDS_EV_RESOLVED]	= NULL,
		[XRDS_EV_ESTABLISHED]	= NULL,
		[XRDS_EV_CTS]		= xrds_attempt_open,
		[XRDS_EV_BYE]		= xrds_state_keep,
		[XRDS_EV_BYE_ACK]	= NULL,
		[XRDS_EV_TURN]		= NULL,
		[XRDS_EV_IDLE]		= NULL,
		[XRDS_EV_WANT]		= NULL,
		[XRDS_EV_TIMEOUT]	= xrds_attempt_expire,
	},
	[XRDS_ST_UP] = {
		[XRDS_EV_DESTROY]	= xrds_close_leave,
		[XRDS_EV_REMOVED]	= xrds_close_unplug,
		[XRDS_EV_ERROR]		= xrds_attempt_fail,
		[XRDS_EV_REQUEST]	= xrds_attempt_renew,
		[XRDS_EV_RESOLVED]	= NULL,
		[XRDS_EV_ESTABLISHED]	= NULL,
		[XRDS_EV_CTS]		= NULL,
		[XRDS_EV_BYE]		= xrds_close_part,
		[XRDS_EV_BYE_ACK]	= NULL,
		[XRDS_EV_TURN]		= NULL,
		[XRDS_EV_IDLE]		= xrds_attempt_tick,
		[XRDS_EV_WANT]		= xrds_state_pump,
		[XRDS_EV_TIMEOUT]	= xrds_attempt_tick,
	},
	[XRDS_ST_CLOSING] = {
		[XRDS_EV_DESTROY]	= xrds_close_leave,
		[XRDS_EV_REMOVED]	= xrds_close_unplug,
		[XRDS_EV_ERROR]		= xrds_close_gone,
		[XRDS_EV_REQUEST]	= xrds_close_overtaken,
		[XRDS_EV_RESOLVED]	= NULL,
		[XRDS_EV_ESTABLISHED]	= NULL,
		[XRDS_EV_CTS]		= NULL,
		[XRDS_EV_BYE]		= xrds_close_answer,
		[XRDS_EV_BYE_ACK]	= xrds_close_answered,
		[XRDS_EV_TURN]		= NULL,
		[XRDS_EV_IDLE]		= xrds_close_check,
		[XRDS_EV_WANT]		= xrds_state_keep,
		[XRDS_EV_TIMEOUT]	= xrds_close_expire,
	},
	[XRDS_ST_PARTING] = {
		[XRDS_EV_DESTROY]	= xrds_close_leave,
		[XRDS_EV_REMOVED]	= xrds_close_unplug,
		[XRDS_EV_ERROR]		= xrds_close_gone,
		[XRDS_EV_REQUEST]	= xrds_close_overtaken,
		[XRDS_EV_RESOLVED]	= NULL,
		[XRDS_EV_ESTABLISHED]	= NULL,
		[XRDS_EV_CTS]		= NULL,
		[XRDS_EV_BYE]		= NULL,
		[XRDS_EV_BYE_ACK]	= NULL,
		[XRDS_EV_TURN]		= NULL,
		[XRDS_EV_IDLE]		= xrds_close_check,
		[XRDS_EV_WANT]		= xrds_state_keep,
		[XRDS_EV_TIMEOUT]	= xrds_close_expire,
	},
};

/* The action of the next event that has one, or NULL. */
static xrds_state_fn xrds_state_next(struct xrds_conn *conn, int *error)
{
	xrds_state_fn action = NULL;
	enum xrds_event ev;

	spin_lock_bh(&conn->lock);
	/* not of a deadline that the action before has replaced */
	conn->events &= ~BIT(XRDS_EV_TIMEOUT);
	if (conn->deadline && time_after_eq(jiffies, conn->deadline))
		conn->events |= BIT(XRDS_EV_TIMEOUT);
	for (ev = 0; ev < XRDS_EV_NR; ev++) {
		if (!(conn->events & BIT(ev)))
			continue;
		action = xrds_state_table[conn->state][ev];
		if (action == xrds_state_keep) {
			action = NULL;
			continue;
		}
		conn->events &= ~BIT(ev);
		if (ev == XRDS_EV_TIMEOUT)
			conn->deadline = 0;
		if (action)
			break;
	}
	*error = ev == XRDS_EV_ERROR ? conn->error : -ENODEV;
	spin_unlock_bh(&conn->lock);
	return action;
}

/* Queue the work for the state's deadline. */
static void xrds_state_arm(struct xrds_conn *conn)
{
	unsigned long now = jiffies;

	spin_lock_bh(&conn->lock);
	/* If the work was queued again meanwhile it stays queued for at once:
	 * mod_delayed_work() would put it off.
	 */
	if (conn->deadline)
		queue_delayed_work(xrds_conn_wq, &conn->work,
				   time_after(conn->deadline, now) ?
				   conn->deadline - now : 0);
	spin_unlock_bh(&conn->lock);
}

/**
 * xrds_state_work - act on the events of a connection
 * @work: its work
 *
 * Context: process; the only writer of conn->state.
 */
void xrds_state_work(struct work_struct *work)
{
	struct xrds_conn *conn = container_of(to_delayed_work(work),
					      struct xrds_conn, work);
	xrds_state_fn action;
	int error;

	xrds_tx_acked_rest(conn);
	while ((action = xrds_state_next(conn, &error))) {
		action(conn, error);
		/* a backlog over loopback is copied here, part by part */
		cond_resched();
		if (conn->state == XRDS_ST_DEAD) {
			/* the table's reference; nothing refers to work */
			xrds_conn_put(conn);
			return;
		}
	}
	if (xrds_cong_work(conn))
		xrds_tx_pump(conn);
	xrds_state_arm(conn);
}
