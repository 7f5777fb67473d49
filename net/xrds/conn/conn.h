/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections: their state and their end, transmission, and congestion.
 *
 * A connection is made by the first message toward a node or by the node's
 * request, and outlives any number of endpoints, which are the transport's.
 * All others set events. The connection's work takes them, and it alone writes
 * the state, so no lock guards that. conn->tx_lock (L2)
 * keeps the order in which messages are posted, and the endpoint in place
 * meanwhile; conn->lock (L3) guards the queues and the events. Fields of the
 * receive path have one writer, for a transport hands up one message of a
 * connection at a time.
 */
#ifndef _XRDS_CONN_H
#define _XRDS_CONN_H

#if XRDS_LEVEL < 2
#error "for conn/ and the folders above, see Kbuild"
#endif

#include <linux/list.h>
#include <linux/workqueue.h>

#include "transport.h"
#include "upcall.h"
#include "xrds.h"

/* -------------------------------------------------------------- conn.c */

extern struct workqueue_struct *xrds_conn_wq;

/**
 * struct xrds_conn_works - what the works of a connection do
 * @state:	acts on events
 * @ack:	sends an acknowledgment that found no data to ride on
 * @push:	posts what a sendmmsg() has left behind
 */
struct xrds_conn_works {
	work_func_t state;
	work_func_t ack;
	work_func_t push;
};

int xrds_conn_init(const struct xrds_conn_works *works);
void xrds_conn_exit(void);
int xrds_conn_net_init(struct xrds_net *xn);
void xrds_conn_net_exit(struct xrds_net *xn);
void xrds_conn_delay_ack(struct xrds_conn *conn, unsigned int ms);
void xrds_conn_push_later(struct xrds_conn *conn);
bool xrds_conn_net_gone(struct xrds_net *xn, const struct xrds_transport *trans);
void xrds_conn_unhash(struct xrds_conn *conn);
void xrds_conn_arm(struct xrds_conn *conn);
unsigned long xrds_conn_deadline(unsigned int ms);
void xrds_conn_look_idle(struct xrds_net *xn);
void xrds_conn_break_all(struct xrds_net *xn);

/* -------------------------------------------------------------- flow.c */

/**
 * struct xrds_flow - what one socket has on one connection toward one port
 * @ref:	references on the destination that it is a member of
 * @port:	the peer's port; constant
 * @begun:	a message was sent, and no ping: the stream ends with a mark
 * @lock:	its socket's, L4
 * @conn:	connection to the node, with a reference; written under both
 *		that connection's lock and @lock, read under either
 * @conn_node:	in conn->flows while @conn is set; guarded the same way
 * @msgs:	messages that @conn has, oldest first; that connection's lock
 * @last_nr:	messages that were ever in @msgs; the same
 * @inflight_bytes: payload of those that were transmitted; the same
 * @unasked:	charges of messages that went out since an acknowledgment was
 *		asked for; tx_lock of its connection; bytes
 * @cong_node:	in cong_conn->cong_waiters after a refusal for congestion;
 *		both that connection's lock and @lock
 * @cong_conn:	connection whose list that is; guarded the same way
 */
struct xrds_flow {
	refcount_t ref;
	u16 port;
	bool begun;
	spinlock_t *lock;		/* L4 of its socket */
	struct xrds_conn *conn;
	struct list_head conn_node;
	struct list_head msgs;
	u32 last_nr;
	u64 inflight_bytes;
	u64 unasked;
	struct list_head cong_node;
	struct xrds_conn *cong_conn;
};

void xrds_flow_init(struct xrds_flow *flow, u16 port, spinlock_t *lock);
struct xrds_conn *xrds_flow_conn(struct xrds_flow *flow);
struct xrds_conn *xrds_flow_join(struct xrds_flow *flow,
				 struct xrds_conn *conn);
void xrds_flow_leave(struct xrds_flow *flow, bool last);
void xrds_flow_leave_all(struct xrds_conn *conn);
void xrds_flow_put(struct xrds_flow *flow);

/* A message can fail no more: its stream has begun, and will end with a mark. A
 * ping begins none. The message still has its space, and whether a mark is due
 * is asked under @flow->lock when that is given back.
 */
static inline void xrds_flow_begin(struct xrds_flow *flow)
{
	WRITE_ONCE(flow->begun, flow->port != 0);
}

static inline void xrds_flow_get(struct xrds_flow *flow)
{
	refcount_inc(&flow->ref);
}

/* --------------------------------------------------------------- fsm.c */

const char *xrds_fsm_state_name(enum xrds_state state);
const char *xrds_fsm_event_name(enum xrds_event ev);
void xrds_fsm_set(struct xrds_conn *conn, enum xrds_state state,
		  unsigned long deadline);
void xrds_fsm_stop(struct xrds_conn *conn);
void xrds_fsm_pause(struct xrds_conn *conn, unsigned int ms);
void xrds_fsm_down(struct xrds_conn *conn, bool failed);
void xrds_fsm_refuse(struct xrds_conn *conn);
void xrds_fsm_dead(struct xrds_conn *conn);
void xrds_fsm_kill(struct xrds_conn *conn, int error);

/* ------------------------------------------------------------- state.c */

void xrds_state_work(struct work_struct *work);

/* ----------------------------------------------------------- attempt.c */

void xrds_attempt_fail(struct xrds_conn *conn, int error);
void xrds_attempt_expire(struct xrds_conn *conn, int error);
void xrds_attempt_dial(struct xrds_conn *conn, int error);
void xrds_attempt_redial(struct xrds_conn *conn, int error);
void xrds_attempt_advance(struct xrds_conn *conn, int error);
void xrds_attempt_accept(struct xrds_conn *conn, int error);
void xrds_attempt_replace(struct xrds_conn *conn, int error);
void xrds_attempt_cross(struct xrds_conn *conn, int error);
void xrds_attempt_renew(struct xrds_conn *conn, int error);
void xrds_attempt_start(struct xrds_conn *conn, int error);
void xrds_attempt_start_early(struct xrds_conn *conn, int error);
void xrds_attempt_open(struct xrds_conn *conn, int error);
void xrds_attempt_tick(struct xrds_conn *conn, int error);
void xrds_attempt_go_idle(struct xrds_conn *conn, int error);

/* -------------------------------------------------------------- idle.c */

bool xrds_idle_unused(struct xrds_conn *conn);
bool xrds_idle_no_socks(const struct xrds_conn *conn);
bool xrds_idle_timed_out(const struct xrds_conn *conn);
bool xrds_idle_never_up(const struct xrds_conn *conn);
unsigned long xrds_idle_check_at(const struct xrds_conn *conn);

/* ------------------------------------------------------------- close.c */

bool xrds_close_collect(struct xrds_conn *conn);
void xrds_close_go_idle(struct xrds_conn *conn);
void xrds_close_leave(struct xrds_conn *conn, int error);
void xrds_close_unplug(struct xrds_conn *conn, int error);
void xrds_close_part(struct xrds_conn *conn, int error);
void xrds_close_answer(struct xrds_conn *conn, int error);
void xrds_close_answered(struct xrds_conn *conn, int error);
void xrds_close_gone(struct xrds_conn *conn, int error);
void xrds_close_overtaken(struct xrds_conn *conn, int error);
void xrds_close_check(struct xrds_conn *conn, int error);
void xrds_close_expire(struct xrds_conn *conn, int error);

/* --------------------------------------------------------------- legacy.c */

bool xrds_legacy_duplicate(struct xrds_conn *conn,
			   const struct xrds_wire_msg *wm);
void xrds_legacy_open(struct xrds_conn *conn);
void xrds_legacy_beat(struct xrds_conn *conn);

/* ------------------------------------------------------------------- tx.c */

void xrds_tx_push_work(struct work_struct *work);
int xrds_tx_queue(struct xrds_conn *conn, struct xrds_msg *msg, bool pump);
int xrds_tx_queue_more(struct xrds_conn *conn, struct xrds_msg *msg);
void xrds_tx_ask(struct xrds_conn *conn, struct xrds_flow *flow, u64 room);
bool xrds_tx_beat(struct xrds_conn *conn);

/* ------------------------------------------------------------------ txq.c */

enum {
	/* as many end under one hold of a lock that others wait for */
	XRDS_END_BATCH	= 1024,
};

enum xrds_state xrds_txq_append(struct xrds_conn *conn, struct xrds_msg *msg);
bool xrds_txq_take(struct xrds_conn *conn, struct xrds_msg *msg);
void xrds_txq_set_inflight(struct xrds_msg *msg, bool on);
void xrds_txq_end(struct xrds_conn *conn, struct xrds_msg *msg,
		  struct list_head *list);

bool xrds_txq_bulk_keeps(struct xrds_conn *conn, struct xrds_msg *msg);
struct xrds_msg *xrds_txq_bulk_next(struct xrds_conn *conn);
bool xrds_txq_bulk_take(struct xrds_conn *conn, struct xrds_msg *msg);
void xrds_txq_bulk_back(struct xrds_conn *conn, struct xrds_msg *msg,
			bool untried);
void xrds_txq_bulk_open(struct xrds_conn *conn, u32 over);
void xrds_txq_bulk_close(struct xrds_conn *conn);

/* ------------------------------------------------------------ tx_resume.c */

int xrds_tx_resume_open(struct xrds_conn *conn, const struct xrds_wire_hello *h);
void xrds_tx_resume_close(struct xrds_conn *conn);
void xrds_tx_resume_drop_ops(struct xrds_conn *conn, bool unposted);
void xrds_tx_resume_clear_posted(struct xrds_conn *conn);
void xrds_tx_resume_drop_all(struct xrds_conn *conn);

/* -------------------------------------------------------------- cong.c */

/**
 * struct xrds_port - a port of ours, and whether it is congested
 * @xn:		namespace
 * @bind:	its address and number; constant once bound
 * @node:	in xn->cong_ports while @congested; xn->cong_lock
 * @congested:	its socket is over the receive limit and not yet drained to half
 *		of it; the lock of the socket's receive queue
 */
struct xrds_port {
	struct xrds_net *xn;
	const struct xrds_bind_key *bind;
	struct list_head node;
	bool congested;
};

bool xrds_cong_blocked(struct xrds_conn *conn, u16 port);
bool xrds_cong_wait(struct xrds_conn *conn, struct xrds_flow *flow);
void xrds_cong_unwait(struct xrds_flow *flow);
void xrds_cong_local(struct xrds_port *port, bool congested);
bool xrds_cong_work(struct xrds_conn *conn);
void xrds_cong_open(struct xrds_conn *conn);
void xrds_cong_close(struct xrds_conn *conn);
int xrds_cong_xmit(struct xrds_conn *conn);
bool xrds_cong_told(struct xrds_conn *conn);

/* ---------------------------------------------------------------- rx.c */

void xrds_rx_ack_work(struct work_struct *work);

#endif /* _XRDS_CONN_H */
