// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections that wait until they may dial (max_connects_per_s).
 *
 * They stand in rows, and the rows take turns: others' connections delay one by a
 * turn of each row, however many they are. The row is that of the user who made
 * the connection, until it was up for the first time. Then it is that of the peer:
 * others share the connection, and the peer decides how often it is lost. The row
 * goes by a hash, so that users or peers may have one together.
 *
 * A connection that was not up has a place in the row of each user who has a flow
 * on it, and the first turn counts: the maker may have made thousands before it,
 * or keep his rate used up. The share has the place, and gives it up with the
 * user's last flow. A place whose connection does not wait any more is left
 * without a turn.
 *
 * The connection's work lets it enter. It leaves with its turn, when it takes
 * the peer's request, and at the latest when it is DEAD (xrds_fsm_dead()), so
 * one in a row has a reference, as a share has one on its connection. A turn is lost
 * that comes when the connection is not DOWN any more; others have the next one. One
 * that has nothing to deliver any more leaves without a turn when it is the first of
 * its row.
 */
#include <linux/hash.h>

#include "conn/conn.h"
#include "xrds.h"

enum {
	/* how often the rows are looked at while some wait */
	XRDS_DIALQ_TICK_MS	= 50,
	/* shares that one hold of a lock looks at */
	XRDS_DIALQ_BATCH	= 64,
};

static void xrds_dialq_add(struct xrds_dialq *q, struct xrds_dial *dial)
{
	const void *whose = dial->user;

	lockdep_assert_held(&q->lock);

	if (!whose)
		whose = dial->conn->peer;
	list_add_tail(&dial->node, &q->rows[hash_ptr(whose, XRDS_DIALQ_BITS)]);
}

/* It does not wait any more. Shares keep their places until these have their turn. */
static void xrds_dialq_remove(struct xrds_dialq *q, struct xrds_conn *conn)
{
	lockdep_assert_held(&q->lock);

	list_del_init(&conn->dial.node);
	conn->dial_waits = false;
	WRITE_ONCE(q->nr, q->nr - 1);
}

/* Is there a reason to dial? The connection's work looks again, under its lock. */
static bool xrds_dialq_wants(const struct xrds_conn *conn)
{
	return READ_ONCE(conn->nr_msgs) || xrds_peer_watched(conn) ||
	       xrds_conn_awaited(conn);
}

/* The next one that may dial now, or has no reason to, with a reference; or NULL.
 * *ev tells it. ERR_PTR(-EAGAIN): there was a place without one that waits.
 */
static struct xrds_conn *xrds_dialq_next(struct xrds_net *xn,
					 enum xrds_event *ev)
{
	struct xrds_dialq *q = &xn->dialq;
	struct xrds_conn *conn = NULL;
	struct xrds_dial *dial;
	unsigned int i;

	spin_lock_bh(&q->lock);
	for (i = 0; i < ARRAY_SIZE(q->rows); i++) {
		q->turn = (q->turn + 1) % ARRAY_SIZE(q->rows);
		dial = list_first_entry_or_null(&q->rows[q->turn],
						struct xrds_dial, node);
		if (!dial)
			continue;
		if (!dial->conn->dial_waits) {
			list_del_init(&dial->node);
			conn = ERR_PTR(-EAGAIN);
			break;
		}
		*ev = xrds_dialq_wants(dial->conn) ? XRDS_EV_TURN :
						     XRDS_EV_IDLE;
		if (*ev == XRDS_EV_TURN && !xrds_limit_dial(xn, dial->user))
			continue;
		conn = dial->conn;
		list_del_init(&dial->node);
		xrds_dialq_remove(q, conn);
		xrds_conn_get(conn);
		break;
	}
	spin_unlock_bh(&q->lock);
	return conn;
}

static void xrds_dialq_tick(struct xrds_dialq *q)
{
	queue_delayed_work(xrds_conn_wq, &q->work,
			   msecs_to_jiffies(XRDS_DIALQ_TICK_MS));
}

static void xrds_dialq_work(struct work_struct *work)
{
	struct xrds_dialq *q = container_of(to_delayed_work(work),
					    struct xrds_dialq, work);
	struct xrds_net *xn = container_of(q, struct xrds_net, dialq);
	struct xrds_conn *conn;
	enum xrds_event ev;

	while ((conn = xrds_dialq_next(xn, &ev))) {
		cond_resched();
		if (IS_ERR(conn))
			continue;
		xrds_conn_event(conn, ev);
		xrds_conn_put(conn);
	}
	if (READ_ONCE(q->nr))
		xrds_dialq_tick(q);
}

/**
 * xrds_dialq_join - a user has flows on a connection, which may wait for its turn
 * @share: the user's, without a place
 *
 * Context: any, conn->lock held.
 */
void xrds_dialq_join(struct xrds_share *share)
{
	struct xrds_dial *dial = &share->dial;
	struct xrds_conn *conn = dial->conn;
	struct xrds_dialq *q = &conn->xn->dialq;

	lockdep_assert_held(&conn->lock);

	spin_lock(&q->lock);
	if (conn->dial_waits && conn->dial.user && conn->dial.user != dial->user &&
	    list_empty(&dial->node))
		xrds_dialq_add(q, dial);
	spin_unlock(&q->lock);
}

/**
 * xrds_dialq_quit - a user has no flow on a connection any more
 * @share: the user's
 *
 * Context: any, conn->lock held.
 */
void xrds_dialq_quit(struct xrds_share *share)
{
	struct xrds_dialq *q = &share->dial.conn->xn->dialq;

	lockdep_assert_held(&share->dial.conn->lock);

	spin_lock(&q->lock);
	list_del_init(&share->dial.node);
	spin_unlock(&q->lock);
}

/* The users who had flows on it before it began to wait; each once, as new ones
 * join by themselves.
 */
static void xrds_dialq_join_all(struct xrds_conn *conn)
{
	u32 left = READ_ONCE(conn->nr_shares);
	struct xrds_share *share;
	u32 n;

	while (left) {
		spin_lock_bh(&conn->lock);
		for (n = 0; left && n < XRDS_DIALQ_BATCH; left--, n++) {
			share = list_first_entry_or_null(&conn->shares,
							 struct xrds_share,
							 conn_node);
			if (!share)
				break;
			list_move_tail(&share->conn_node, &conn->shares);
			xrds_dialq_join(share);
		}
		if (list_empty(&conn->shares))
			left = 0;
		spin_unlock_bh(&conn->lock);
	}
}

/**
 * xrds_dialq_enter - may a connection dial, or does it wait for its turn?
 * @conn: connection; one that waits keeps its place
 * @dialler: user who is charged, or NULL; @conn has a reference
 *
 * Context: the connection's work.
 * Return: whether it may dial now. Otherwise XRDS_EV_TURN says when.
 */
bool xrds_dialq_enter(struct xrds_conn *conn, struct xrds_user *dialler)
{
	struct xrds_dialq *q = &conn->xn->dialq;
	bool enters = false, now = false;

	spin_lock_bh(&q->lock);
	if (!conn->dial_waits) {
		now = !q->nr && xrds_limit_dial(conn->xn, dialler);
		enters = !now;
	}
	if (enters) {
		conn->dial.user = dialler;
		conn->dial_waits = true;
		xrds_dialq_add(q, &conn->dial);
		WRITE_ONCE(q->nr, q->nr + 1);
		xrds_dialq_tick(q);
	}
	spin_unlock_bh(&q->lock);
	if (enters) {
		xrds_count(conn->xn, XRDS_C_LIMIT_DIALS);
		xrds_dialq_join_all(conn);
	}
	return now;
}

/**
 * xrds_dialq_leave - a connection does not wait for its turn any more
 * @conn: connection
 *
 * Context: the connection's work.
 */
void xrds_dialq_leave(struct xrds_conn *conn)
{
	struct xrds_dialq *q = &conn->xn->dialq;

	spin_lock_bh(&q->lock);
	if (conn->dial_waits)
		xrds_dialq_remove(q, conn);
	spin_unlock_bh(&q->lock);
}

/**
 * xrds_dialq_init - make a namespace's rows
 * @xn: namespace
 *
 * Context: process.
 */
void xrds_dialq_init(struct xrds_net *xn)
{
	struct xrds_dialq *q = &xn->dialq;
	unsigned int i;

	spin_lock_init(&q->lock);
	for (i = 0; i < ARRAY_SIZE(q->rows); i++)
		INIT_LIST_HEAD(&q->rows[i]);
	INIT_DELAYED_WORK(&q->work, xrds_dialq_work);
}
