// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state of a connection, and the work item that alone writes it.
 *
 * Everybody else records an event and queues the work (conn.c); the table in
 * state_table.c says what each event means in each state. Deadlines (of an
 * attempt, of back-off, of the next heartbeat) are the same work item, delayed.
 *
 * Crossed requests. When both sides dial, the attempt of the lower address
 * wins, and the other side takes that. A request of the peer which meets a
 * connection that is already up either crossed the attempt that led to it, or
 * means that the peer has lost the connection and dials anew; the epoch in the
 * request tells them apart. Who has lost against a request waits for it, and
 * does not back off.
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
 * - A forgets the connection, B does not. B meets another incarnation, begins
 *   to receive with number 1, and what it has queued was not received by the
 *   old one, whatever was tried (xrds_xmit_settle()).
 * - B has queued messages that were posted on an earlier endpoint, not on this
 *   one, when BYE comes. They count as not posted for the same reason.
 * - Both say BYE. Each answers the other's; BYE_ACK is then the last word of
 *   either. Who has it, and has answered, disconnects when the answer has
 *   arrived; the other one hears of it early at worst, and waits for the
 *   BYE_ACK that is there already.
 * - B's BYE comes while A has no credit for its own: A answers instead.
 * - A fragment of a message is sent, the rest not: BYE and BYE_ACK wait for it.
 * - No credit comes, the peer is dead, or its device is. The deadline, or the
 *   queue pair, ends it like a loss: both keep what they know. B reads A's
 *   disconnection without BYE_ACK like any other.
 * - A request of B meets a connection that has become DEAD but is still found:
 *   it is refused as crossed, and B asks again.
 * - The module, the namespace or the device goes while the end is under way:
 *   it goes on, with the shorter deadline, and then that follows.
 */
#include <linux/random.h>

#include <linux/xrds_netlink.h>

#include "conn/conn.h"
#include "conn/state.h"
#include "tracepoints.h"
#include "transport.h"

/* a connection that lasted this long reconnects without delay */
#define XRDS_CONN_STABLE	HZ
/* a request of ours that was not answered for so long is lost */
#define XRDS_CONN_ASKED		(2 * HZ)

enum {
	/* how long to wait for the request that ours has lost against */
	XRDS_CROSSED_MS		= 100,
	/* how often, before that is taken for a refusal like others */
	XRDS_CROSSED_MAX	= 20,
	/* before the next look whether a connection may be tried */
	XRDS_DIAL_WAIT_MS	= 100,
};

/* The events that only the endpoint of that moment gives meaning to. */
#define XRDS_EP_EVENTS	(BIT(XRDS_EV_REMOVED) | BIT(XRDS_EV_ERROR) | \
			 BIT(XRDS_EV_RESOLVED) | BIT(XRDS_EV_ESTABLISHED) | \
			 BIT(XRDS_EV_CTS) | BIT(XRDS_EV_BYE) | \
			 BIT(XRDS_EV_BYE_ACK))

/**
 * xrds_state_set - write a connection's state
 * @conn: connection
 * @state: state
 * @deadline: jiffies when it times out, 0: never
 *
 * Context: the connection's work.
 */
void xrds_state_set(struct xrds_conn *conn, enum xrds_state state,
		    unsigned long deadline)
{
	spin_lock_bh(&conn->lock);
	trace_xrds_conn_state(conn, state);
	WRITE_ONCE(conn->state, state);
	conn->deadline = deadline;
	spin_unlock_bh(&conn->lock);
}

/**
 * xrds_state_deadline - a deadline for xrds_state_set()
 * @ms: in so many milliseconds
 *
 * Context: any.
 * Return: jiffies, not 0.
 */
unsigned long xrds_state_deadline(unsigned int ms)
{
	/* 0 means none */
	return (jiffies + msecs_to_jiffies(ms)) ?: 1;
}

static unsigned long xrds_attempt_deadline(const struct xrds_conn *conn)
{
	return xrds_state_deadline(READ_ONCE(conn->xn->connect_timeout_ms));
}

/* Connections that came up together do not beat together. 0: no heartbeat */
static unsigned long xrds_beat_deadline(const struct xrds_conn *conn)
{
	u32 ms = READ_ONCE(conn->xn->heartbeat_ms);

	if (!ms || conn->key.loop)
		return 0;
	return xrds_state_deadline(ms / 2 + reciprocal_scale(get_random_u32(),
							     ms / 2 + 1));
}

/* The next thing to do in UP: a heartbeat, or a look whether it is idle */
static void xrds_state_set_up(struct xrds_conn *conn)
{
	unsigned long at = xrds_close_look_at(conn);

	if (!at || (conn->beat_at && time_before(conn->beat_at, at)))
		at = conn->beat_at;
	xrds_state_set(conn, XRDS_ST_UP, at);
}

/**
 * xrds_state_stop - take the endpoint away, with all it may still announce
 * @conn: connection
 *
 * Context: the connection's work.
 */
void xrds_state_stop(struct xrds_conn *conn)
{
	xrds_xmit_close(conn);
	conn->trans->stop(conn);
	cancel_delayed_work_sync(&conn->ack_work);
	/* who comes next says first what it knows */
	WRITE_ONCE(conn->rx_ack, 0);
	xrds_cong_close(conn);
	xrds_xmit_drop_ops(conn, false);

	spin_lock_bh(&conn->lock);
	conn->ep_gen++;
	conn->events &= ~XRDS_EP_EVENTS;
	spin_unlock_bh(&conn->lock);
}

/* The delay before the next attempt: none after a connection that lasted,
 * then doubling between the bounds, and a random part of it so that nodes
 * which lost the same switch do not come back in step.
 */
static unsigned int xrds_state_backoff(struct xrds_conn *conn)
{
	struct xrds_net *xn = conn->xn;
	unsigned int max = READ_ONCE(xn->reconnect_max_ms);
	unsigned int ms = conn->backoff_ms;

	conn->backoff_ms = clamp(ms * 2, READ_ONCE(xn->reconnect_min_ms), max);
	return ms ? ms / 2 + reciprocal_scale(get_random_u32(), ms / 2 + 1) :
		    0;
}

/* To DOWN; a new attempt is due after a time, when something is queued. */
static void xrds_state_pause(struct xrds_conn *conn, unsigned int ms)
{
	conn->backing_off = ms;
	conn->quiet.since = jiffies;
	/* A sender queues its message under the lock, and then looks at the
	 * state: either it sees DOWN, or we see the message.
	 */
	spin_lock_bh(&conn->lock);
	trace_xrds_conn_state(conn, XRDS_ST_DOWN);
	WRITE_ONCE(conn->state, XRDS_ST_DOWN);
	if (ms || xrds_xmit_wanted(conn))
		conn->deadline = xrds_state_deadline(ms);
	else
		conn->deadline = xrds_close_look_at(conn);
	spin_unlock_bh(&conn->lock);
	wake_up_all(&conn->xn->gone);
}

/**
 * xrds_state_down - a connection has no endpoint any more
 * @conn: connection
 * @failed: it was lost, so the next attempt may have to wait
 *
 * Context: the connection's work.
 */
void xrds_state_down(struct xrds_conn *conn, bool failed)
{
	WRITE_ONCE(conn->failed, failed);
	xrds_state_pause(conn, failed ? xrds_state_backoff(conn) : 0);
}

static void xrds_state_fail(struct xrds_conn *conn, int error)
{
	bool stable = false;

	/* a peer whose own request never comes is one that refuses */
	if (error == -EALREADY && conn->nr_refused++ >= XRDS_CROSSED_MAX)
		error = -ECONNREFUSED;
	if (conn->state == XRDS_ST_UP) {
		xrds_count(conn->xn, XRDS_C_CONN_RESET);
		xrds_nl_conn_down(conn, XRDS_DOWN_REASON_LOST, error);
		stable = time_after(jiffies, conn->up_at + XRDS_CONN_STABLE);
	}
	/* the first failure of a row is worth a line, each retry is not */
	if (!conn->failed && error != -ECONNREFUSED && error != -EALREADY)
		net_info_ratelimited("xrds: %pI6c: connection %s: error %d\n",
				     &conn->key.faddr,
				     xrds_state_name(conn->state), error);
	xrds_state_stop(conn);
	if (error == -EALREADY) {
		/* no loss: the peer's own request is on its way */
		xrds_state_pause(conn, XRDS_CROSSED_MS);
		return;
	}
	/* ops are not for later */
	xrds_xmit_drop_ops(conn, true);
	WRITE_ONCE(conn->retries, conn->retries + 1);
	if (stable)
		conn->backoff_ms = 0;
	xrds_state_down(conn, true);
}

/* Whose attempt is it? A connection is made for its first user. One that has been
 * up is of use to whoever shares it, and must not wait for all the others that he
 * has asked for; how often it is lost is for the peer to say, not for him. Over
 * loopback it is: who has a namespace of his own has the knobs for it.
 */
static struct xrds_user *xrds_state_dialler(const struct xrds_conn *conn)
{
	bool known = conn->peer_inc || conn->classic.heard;

	return known && !conn->key.loop ? NULL : conn->user;
}

static void xrds_state_dial(struct xrds_conn *conn)
{
	int ret;

	if (!xrds_limit_dial(conn->xn, xrds_state_dialler(conn))) {
		xrds_count(conn->xn, XRDS_C_LIMIT_DIALS);
		xrds_state_pause(conn, XRDS_DIAL_WAIT_MS / 2 +
				 reciprocal_scale(get_random_u32(),
						  XRDS_DIAL_WAIT_MS / 2));
		return;
	}
	WRITE_ONCE(conn->dialled, true);
	xrds_count(conn->xn, XRDS_C_CONN_DIAL);
	xrds_state_set(conn, XRDS_ST_RESOLVING,
		       xrds_attempt_deadline(conn));
	ret = conn->trans->dial(conn);
	if (ret)
		xrds_state_fail(conn, ret);
}

static void xrds_state_redial(struct xrds_conn *conn)
{
	bool wanted;

	conn->backing_off = false;
	spin_lock_bh(&conn->lock);
	wanted = xrds_xmit_wanted(conn);
	spin_unlock_bh(&conn->lock);
	if (wanted)
		xrds_state_dial(conn);
	else
		xrds_close_rest(conn);
}

static void xrds_state_advance(struct xrds_conn *conn)
{
	int ret = conn->trans->advance(conn);

	if (ret == -EINPROGRESS)
		return;
	if (ret) {
		xrds_state_fail(conn, ret);
		return;
	}
	conn->asked_at = jiffies;
	xrds_state_set(conn, XRDS_ST_CONNECTING, xrds_attempt_deadline(conn));
}

static void xrds_state_accept(struct xrds_conn *conn)
{
	int ret;

	/* the peer may have taken it back */
	if (!READ_ONCE(conn->pending))
		return;
	WRITE_ONCE(conn->dialled, false);
	xrds_count(conn->xn, XRDS_C_CONN_ACCEPT);
	ret = conn->trans->accept(conn);
	if (ret)
		xrds_state_fail(conn, ret);
	else
		xrds_state_set(conn, XRDS_ST_CONNECTING,
			       xrds_attempt_deadline(conn));
}

static void xrds_state_refuse(struct xrds_conn *conn)
{
	struct xrds_request *req = xrds_conn_take_pending(conn);

	if (!req)
		return;
	xrds_count(conn->xn, XRDS_C_CONN_REFUSED);
	conn->trans->refuse(conn, req);
}

static void xrds_state_replace(struct xrds_conn *conn)
{
	if (!READ_ONCE(conn->pending))
		return;
	if (conn->state == XRDS_ST_UP) {
		xrds_count(conn->xn, XRDS_C_CONN_RESET);
		xrds_nl_conn_down(conn, XRDS_DOWN_REASON_REPLACED, 0);
	}
	xrds_state_stop(conn);
	xrds_state_set(conn, XRDS_ST_DOWN, 0);
	xrds_state_accept(conn);
	/* it may have been taken back, and messages may wait */
	if (conn->state == XRDS_ST_DOWN)
		xrds_state_down(conn, false);
}

/* A classic peer that dials refuses what we send it meanwhile, whatever the
 * addresses; and it dials over a connection only when it has lost it.
 */
static bool xrds_state_asked_classic(struct xrds_conn *conn)
{
	bool classic;

	spin_lock_bh(&conn->lock);
	classic = conn->pending && conn->pending->classic;
	spin_unlock_bh(&conn->lock);
	return classic;
}

/* Both dialled: the attempt of the lower address goes on. But one that has not
 * been answered by now has not crossed: it was lost, and the connection
 * manager takes seconds to send it again.
 */
static void xrds_state_cross(struct xrds_conn *conn)
{
	if (!conn->dialled || xrds_state_asked_classic(conn) ||
	    time_after(jiffies, conn->asked_at + XRDS_CONN_ASKED)) {
		xrds_state_replace(conn);
		return;
	}
	xrds_count(conn->xn, XRDS_C_CONN_CROSSED);
	if (ipv6_addr_cmp(&conn->key.laddr, &conn->key.faddr) < 0)
		xrds_state_refuse(conn);
	else
		xrds_state_replace(conn);
}

/* A request meets a connection that has been established. If we had dialled
 * it, the request may have crossed ours: then it carries the epoch the peer
 * had before, which its clear-to-send told us. It is refused once; a peer
 * that means it asks again.
 */
static void xrds_state_renew(struct xrds_conn *conn)
{
	bool crossed = conn->dialled && !conn->crossed;
	struct xrds_request *req;

	spin_lock_bh(&conn->lock);
	req = conn->pending;
	if (req && (req->classic ||
		    (conn->state == XRDS_ST_UP &&
		     req->epoch != (u8)(conn->hello.epoch - 1))))
		crossed = false;
	spin_unlock_bh(&conn->lock);

	if (!crossed) {
		xrds_state_replace(conn);
		return;
	}
	conn->crossed = true;
	xrds_count(conn->xn, XRDS_C_CONN_CROSSED);
	xrds_state_refuse(conn);
}

static void xrds_state_start(struct xrds_conn *conn, bool early)
{
	int ret;

	conn->epoch++;
	conn->crossed = false;
	conn->settled = false;
	WRITE_ONCE(conn->classic.on, false);
	ret = conn->trans->start(conn);
	if (ret) {
		xrds_state_fail(conn, ret);
		return;
	}
	xrds_state_set(conn, XRDS_ST_WAIT_CTS,
		       xrds_attempt_deadline(conn));
	if (early)
		xrds_conn_event(conn, XRDS_EV_CTS);
}

static void xrds_state_open(struct xrds_conn *conn)
{
	bool known = conn->classic.on ||
		     conn->hello.inc == conn->tx_peer_inc;
	int ret = 0;

	if (conn->classic.on)
		xrds_classic_open(conn);
	else
		ret = xrds_xmit_open(conn, &conn->hello);
	if (ret) {
		xrds_count(conn->xn, XRDS_C_WIRE + XRDS_WIRE_HELLO);
		xrds_state_fail(conn, ret);
		return;
	}
	xrds_count(conn->xn, XRDS_C_CONN_UP);
	WRITE_ONCE(conn->up_at, jiffies);
	WRITE_ONCE(conn->failed, false);
	WRITE_ONCE(conn->retries, 0);
	conn->nr_refused = 0;
	memset(&conn->closing, 0, sizeof(conn->closing));
	conn->quiet.since = jiffies;
	conn->beat_at = xrds_beat_deadline(conn);
	xrds_state_set_up(conn);
	xrds_nl_conn_up(conn);
	if (conn->reborn && !known)
		xrds_source_lost_all(conn);
	xrds_cong_open(conn);
	xrds_xmit_pump(conn);
}

/* A peer that has lost the connection, or is gone, does not say so: but what is
 * sent to it then is not acknowledged by its device, which breaks the
 * connection. Else a side that only waits, for an acknowledgment or for the end
 * of congestion, would wait for ever.
 */
static bool xrds_state_beat(struct xrds_conn *conn)
{
	if (xrds_xmit_beat(conn)) {
		conn->beat_at = xrds_beat_deadline(conn);
		return true;
	}
	xrds_count(conn->xn, XRDS_C_CONN_TIMEOUT);
	xrds_state_fail(conn, -ETIMEDOUT);
	return false;
}

static void xrds_state_tick(struct xrds_conn *conn)
{
	if (xrds_close_collect(conn))
		return;
	/* it may have been switched on meanwhile */
	if (!conn->beat_at)
		conn->beat_at = xrds_beat_deadline(conn);
	else if (time_after_eq(jiffies, conn->beat_at) &&
		 !xrds_state_beat(conn))
		return;
	xrds_state_set_up(conn);
}

static void xrds_state_rest(struct xrds_conn *conn)
{
	bool wanted;

	spin_lock_bh(&conn->lock);
	wanted = xrds_xmit_wanted(conn);
	spin_unlock_bh(&conn->lock);
	if (!wanted && !conn->backing_off)
		xrds_close_rest(conn);
}

/**
 * xrds_state_bury - what is left to do for a connection that is DEAD
 * @conn: connection without endpoint, not in the table any more
 *
 * Context: the connection's work.
 */
void xrds_state_bury(struct xrds_conn *conn)
{
	/* an event may have queued us again before; none can any more */
	cancel_delayed_work(&conn->work);

	/* a request that came in between */
	xrds_state_refuse(conn);
	xrds_xmit_drop_all(conn);
	/* those that came to wait before they could see DEAD */
	xrds_cong_close(conn);
	xrds_flow_leave_all(conn);
	wake_up_all(&conn->xn->gone);
}

/**
 * xrds_state_kill - make_dead, see the head of conn.c
 * @conn: connection
 *
 * Context: the connection's work.
 */
void xrds_state_kill(struct xrds_conn *conn)
{
	xrds_state_stop(conn);
	xrds_state_refuse(conn);

	xrds_conn_unhash(conn);

	spin_lock_bh(&conn->lock);
	trace_xrds_conn_state(conn, XRDS_ST_DEAD);
	WRITE_ONCE(conn->state, XRDS_ST_DEAD);
	spin_unlock_bh(&conn->lock);
	xrds_state_bury(conn);
}

/* The actions that have to do with an orderly end */
static void xrds_state_act_closing(struct xrds_conn *conn,
				   enum xrds_action action, int error)
{
	switch (action) {
	case XRDS_DO_LEAVE:
		xrds_close_for(conn, XRDS_EV_DESTROY);
		break;
	case XRDS_DO_UNPLUG:
		xrds_close_for(conn, XRDS_EV_REMOVED);
		break;
	case XRDS_DO_PART:
		xrds_close_part(conn);
		break;
	case XRDS_DO_ANSWER:
		xrds_close_answer(conn);
		break;
	case XRDS_DO_ANSWERED:
		xrds_close_answered(conn);
		break;
	case XRDS_DO_GONE:
		xrds_close_gone(conn, error);
		break;
	case XRDS_DO_OVERTAKEN:
		/* the peer may have taken it back */
		if (READ_ONCE(conn->pending))
			xrds_close_gone(conn, -ECONNRESET);
		break;
	case XRDS_DO_CHECK:
		xrds_close_check(conn);
		break;
	case XRDS_DO_GIVE_UP:
		xrds_close_expire(conn);
		break;
	default:
		break;
	}
}

static void xrds_state_act(struct xrds_conn *conn, enum xrds_action action,
			   int error)
{
	switch (action) {
	case XRDS_DO_NOTHING:
	case XRDS_DO_KEEP:
		break;
	case XRDS_DO_DIAL:
		if (!conn->backing_off)
			xrds_state_dial(conn);
		break;
	case XRDS_DO_REDIAL:
		xrds_state_redial(conn);
		break;
	case XRDS_DO_ADVANCE:
		xrds_state_advance(conn);
		break;
	case XRDS_DO_ACCEPT:
		xrds_state_accept(conn);
		break;
	case XRDS_DO_REPLACE:
		xrds_state_replace(conn);
		break;
	case XRDS_DO_CROSS:
		xrds_state_cross(conn);
		break;
	case XRDS_DO_RENEW:
		xrds_state_renew(conn);
		break;
	case XRDS_DO_START:
		xrds_state_start(conn, false);
		break;
	case XRDS_DO_START_EARLY:
		xrds_state_start(conn, true);
		break;
	case XRDS_DO_OPEN:
		xrds_state_open(conn);
		break;
	case XRDS_DO_PUMP:
		xrds_xmit_pump(conn);
		break;
	case XRDS_DO_TICK:
		xrds_state_tick(conn);
		break;
	case XRDS_DO_REST:
		xrds_state_rest(conn);
		break;
	case XRDS_DO_FAIL:
		xrds_state_fail(conn, error);
		break;
	case XRDS_DO_EXPIRE:
		xrds_count(conn->xn, XRDS_C_CONN_TIMEOUT);
		xrds_state_fail(conn, -ETIMEDOUT);
		break;
	case XRDS_DO_KILL:
		xrds_state_kill(conn);
		break;
	default:
		xrds_state_act_closing(conn, action, error);
		break;
	}
}

/* The next thing to do, or XRDS_DO_NOTHING when no event asks for any. */
static enum xrds_action xrds_state_next(struct xrds_conn *conn, int *error)
{
	enum xrds_action action = XRDS_DO_NOTHING;
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
		if (action == XRDS_DO_KEEP) {
			action = XRDS_DO_NOTHING;
			continue;
		}
		conn->events &= ~BIT(ev);
		if (ev == XRDS_EV_TIMEOUT)
			conn->deadline = 0;
		if (action != XRDS_DO_NOTHING)
			break;
	}
	*error = ev == XRDS_EV_ERROR ? conn->error : -ENODEV;
	spin_unlock_bh(&conn->lock);
	return action;
}

/**
 * xrds_state_work - look at what has happened to a connection
 * @work: its work
 *
 * Context: process; the only writer of conn->state.
 */
void xrds_state_work(struct work_struct *work)
{
	struct xrds_conn *conn = container_of(to_delayed_work(work),
					      struct xrds_conn, work);
	enum xrds_action action;
	int error;

	while ((action = xrds_state_next(conn, &error)) != XRDS_DO_NOTHING) {
		xrds_state_act(conn, action, error);
		/* a backlog over loopback is copied here, part by part */
		cond_resched();
		if (conn->state == XRDS_ST_DEAD) {
			/* the table's reference; nothing refers to work */
			xrds_conn_put(conn);
			return;
		}
	}
	xrds_cong_work(conn);
	xrds_conn_arm(conn);
}
