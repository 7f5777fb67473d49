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
 * The connection's work lets it enter. It leaves with its turn, when it takes
 * the peer's request, and at the latest when it is DEAD (xrds_fsm_dead()), so
 * one in a row has a reference. A turn is lost that comes when the connection
 * is not DOWN any more; others have the next one. One that has nothing to deliver any
 * more leaves without a turn when it is the first of its row.
 */
#include <linux/hash.h>

#include "conn/conn.h"
#include "xrds.h"

enum {
	/* how often the rows are looked at while some wait */
	XRDS_DIALQ_TICK_MS	= 50,
};

static struct list_head *xrds_dialq_row(struct xrds_conn *conn)
{
	const void *whose = conn->dialler;

	if (!whose)
		whose = conn->peer;
	return &conn->xn->dialq.rows[hash_ptr(whose, XRDS_DIALQ_BITS)];
}

static void xrds_dialq_remove(struct xrds_dialq *q, struct xrds_conn *conn)
{
	lockdep_assert_held(&q->lock);

	list_del_init(&conn->dial_node);
	WRITE_ONCE(q->nr, q->nr - 1);
}

/* Is there a reason to dial? The connection's work looks again, under its lock. */
static bool xrds_dialq_wants(const struct xrds_conn *conn)
{
	return READ_ONCE(conn->nr_msgs) || xrds_peer_watched(conn);
}

/* The next one that may dial now, or has no reason to, with a reference; or NULL.
 * *ev tells it.
 */
static struct xrds_conn *xrds_dialq_next(struct xrds_net *xn,
					 enum xrds_event *ev)
{
	struct xrds_dialq *q = &xn->dialq;
	struct xrds_conn *conn = NULL;
	unsigned int i;

	spin_lock_bh(&q->lock);
	for (i = 0; i < ARRAY_SIZE(q->rows); i++) {
		q->turn = (q->turn + 1) % ARRAY_SIZE(q->rows);
		conn = list_first_entry_or_null(&q->rows[q->turn],
						struct xrds_conn, dial_node);
		if (!conn)
			continue;
		*ev = xrds_dialq_wants(conn) ? XRDS_EV_TURN : XRDS_EV_IDLE;
		if (*ev == XRDS_EV_IDLE || xrds_limit_dial(xn, conn->dialler))
			break;
		conn = NULL;
	}
	if (conn) {
		xrds_dialq_remove(q, conn);
		xrds_conn_get(conn);
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
		xrds_conn_event(conn, ev);
		xrds_conn_put(conn);
		cond_resched();
	}
	if (READ_ONCE(q->nr))
		xrds_dialq_tick(q);
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
	if (list_empty(&conn->dial_node)) {
		now = !q->nr && xrds_limit_dial(conn->xn, dialler);
		enters = !now;
	}
	if (enters) {
		conn->dialler = dialler;
		list_add_tail(&conn->dial_node, xrds_dialq_row(conn));
		WRITE_ONCE(q->nr, q->nr + 1);
		xrds_dialq_tick(q);
	}
	spin_unlock_bh(&q->lock);
	if (enters)
		xrds_count(conn->xn, XRDS_C_LIMIT_DIALS);
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
	if (!list_empty(&conn->dial_node))
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

/**
 * xrds_dialq_exit - end a namespace's rows
 * @xn: namespace without connections
 *
 * Context: process.
 */
void xrds_dialq_exit(struct xrds_net *xn)
{
	cancel_delayed_work_sync(&xn->dialq.work);
}
