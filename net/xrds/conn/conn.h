/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections: their state and their end, transmission, and congestion.
 *
 * A connection is made by the first message toward a node or by the node's
 * request, and outlives any number of endpoints, which are the transport's.
 * All others set events. The connection's work takes them, and it alone writes
 * the state, so no lock guards that. conn->tx_lock (L2)
 * keeps the order in which messages are posted, and the endpoint in place
 * meanwhile; conn->lock (L3) guards the queues and the events. The queues are
 * those of flows (flow.h) and the two lists of messages that have a number.
 * Fields of the receive path have one writer, for a transport hands up one
 * message of a connection at a time.
 */
#ifndef _XRDS_CONN_H
#define _XRDS_CONN_H

#if XRDS_LEVEL < 2
#error "for conn/ and the folders above, see Kbuild"
#endif

#include <linux/list.h>
#include <linux/workqueue.h>

#include "conn/flow.h"
#include "transport.h"
#include "upcall.h"
#include "xrds.h"

/* -------------------------------------------------------------- peer.c */

/**
 * struct xrds_peer_key - key of the table of peers
 * @laddr:	local address, IPv4 mapped
 * @faddr:	the node's address, IPv4 mapped
 * @scope:	interface index of link-local addresses, else 0
 */
struct xrds_peer_key {
	struct in6_addr laddr;
	struct in6_addr faddr;
	u32 scope;
};

/* Stands for the identity of a node that has none */
#define XRDS_NODE_LEGACY	U64_MAX

/**
 * struct xrds_peer - the node at the other end of connections
 * @node:	in xn->peers
 * @key:	which; constant
 * @xn:		namespace; constant
 * @rcu:	for dumps
 * @users:	references: connections, watches, queued work; xn->peer_lock, as all
 *		below
 * @conns:	connections to it that are in the table; written under xn->lock, RCU
 * @nr_conns:	connections to it
 * @nr_up:	those of them that are up
 * @watches:	sockets that watch it, those that were told last at the tail
 * @nr_watches:	length of @watches; also read without the lock
 * @looked:	its connections know that it is watched
 * @state:	enum xrds_peer_state
 * @reason:	why its last connection ended, enum xrds_down_reason
 * @changes:	times that sockets were to be told something
 * @births:	times that it was found to be another node than before
 * @births_told: the same when sockets were told last
 * @heard_node:	its number, as the last hello said, or XRDS_NODE_LEGACY
 * @identity:	the same when its last connection was opened
 * @known:	@identity is valid
 * @heard_ns:	CLOCK_MONOTONIC of the last sign of life, since @nr_up is 0
 * @since_ns:	CLOCK_MONOTONIC of the last change of @state
 * @outage_ns:	how long nothing was heard when it came up last
 * @due:	jiffies when it is down, while @work is queued
 * @work:	finds that it is down; queued with a reference
 */
struct xrds_peer {
	struct rhash_head node;
	struct xrds_peer_key key;
	struct xrds_net *xn;
	struct rcu_head rcu;
	u32 users;
	struct list_head conns;
	u32 nr_conns;
	u32 nr_up;
	struct list_head watches;
	u32 nr_watches;
	bool looked;
	u32 state;
	u32 reason;
	u32 changes;
	u32 births;
	u32 births_told;
	u64 heard_node;
	u64 identity;
	bool known;
	u64 heard_ns;
	u64 since_ns;
	u64 outage_ns;
	unsigned long due;
	struct delayed_work work;
};

extern const struct rhashtable_params xrds_peer_params;

void xrds_peer_exit(struct xrds_net *xn);
struct xrds_peer *xrds_peer_get(struct xrds_net *xn,
				const struct xrds_peer_key *key, gfp_t gfp);
void xrds_peer_put(struct xrds_peer *peer);
int xrds_peer_join(struct xrds_conn *conn, gfp_t gfp);
void xrds_peer_leave(struct xrds_conn *conn);
bool xrds_peer_watched(const struct xrds_conn *conn);
void xrds_peer_watch(struct xrds_peer *peer, struct list_head *entry);
void xrds_peer_unwatch(struct xrds_peer *peer, struct list_head *entry);
bool xrds_peer_look(struct xrds_peer *peer);
void xrds_peer_identify(struct xrds_conn *conn);
bool xrds_peer_note_node(struct xrds_conn *conn, u64 node);
u64 xrds_peer_node(struct xrds_net *xn, const struct xrds_peer_key *key);
void xrds_peer_up(struct xrds_conn *conn);
void xrds_peer_down(struct xrds_conn *conn, unsigned int reason, int error);
void xrds_peer_failed(struct xrds_conn *conn);

/* ----------------------------------------------------------- sibling.c */

void xrds_sibling_look(struct xrds_conn *conn);
void xrds_sibling_meet(struct xrds_conn *conn, u64 node);

/* -------------------------------------------------------------- conn.c */

extern const struct rhashtable_params xrds_conn_params;
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
void xrds_conn_unhash(struct xrds_conn *conn);
unsigned long xrds_conn_deadline(unsigned int ms);

/* Is it to another node, and does its namespace have none of those? */
static inline bool xrds_conn_drained(const struct xrds_conn *conn)
{
	return READ_ONCE(conn->xn->drain_by) && !conn->key.loop;
}

/* Does it have messages to deliver? */
static inline bool xrds_conn_wanted(const struct xrds_conn *conn)
{
	lockdep_assert_held(&conn->lock);

	return conn->nr_msgs;
}

/* Does a legacy peer perhaps wait for a port of ours? It remembers the state of ports
 * when the connection is lost, and sends nothing that would tell it of that. So the
 * connection is made again, as in-tree RDS does, and begins with the state of all.
 */
static inline bool xrds_conn_awaited(const struct xrds_conn *conn)
{
	return READ_ONCE(conn->legacy.told) && conn->legacy.heard &&
	       !xrds_conn_netns_unused(conn->xn);
}

/* --------------------------------------------------------------- net.c */

/**
 * struct xrds_conn_match - some connections of a namespace
 * @laddr:	their local address, NULL: any
 * @faddr:	their foreign address, NULL: any
 * @tos:	their type of service, negative: any
 */
struct xrds_conn_match {
	const struct in6_addr *laddr;
	const struct in6_addr *faddr;
	int tos;
};

struct xrds_conn *xrds_conn_net_walk(struct xrds_net *xn, struct xrds_conn *conn);
void xrds_conn_net_look_idle(struct xrds_net *xn);
unsigned int xrds_conn_net_reset(struct xrds_net *xn,
				 const struct xrds_conn_match *m);
void xrds_conn_net_drain(struct xrds_net *xn);
void xrds_conn_net_undrain(struct xrds_net *xn);
unsigned int xrds_conn_net_nr_ends(struct xrds_net *xn);
bool xrds_conn_net_gone(struct xrds_net *xn, const struct xrds_transport *trans);

/* ------------------------------------------------------------- dialq.c */

bool xrds_dialq_enter(struct xrds_conn *conn, struct xrds_user *dialler);
void xrds_dialq_join(struct xrds_share *share);
void xrds_dialq_quit(struct xrds_share *share);
void xrds_dialq_leave(struct xrds_conn *conn);
void xrds_dialq_init(struct xrds_net *xn);

/* --------------------------------------------------------------- fsm.c */

const char *xrds_fsm_state_name(enum xrds_state state);
const char *xrds_fsm_event_name(enum xrds_event ev);
void xrds_fsm_set(struct xrds_conn *conn, enum xrds_state state,
		  unsigned long deadline);
void xrds_fsm_stop(struct xrds_conn *conn);
void xrds_fsm_pause(struct xrds_conn *conn, unsigned int ms);
void xrds_fsm_down(struct xrds_conn *conn);
void xrds_fsm_failed(struct xrds_conn *conn);
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
void xrds_attempt_turn(struct xrds_conn *conn, int error);

/* -------------------------------------------------------------- idle.c */

bool xrds_idle_unused(struct xrds_conn *conn);
bool xrds_idle_dials(const struct xrds_conn *conn);
bool xrds_idle_timed_out(const struct xrds_conn *conn);
unsigned long xrds_idle_check_at(const struct xrds_conn *conn);

/* ------------------------------------------------------------- probe.c */

void xrds_probe_begin(struct xrds_conn *conn);
unsigned long xrds_probe_check_at(const struct xrds_conn *conn);
bool xrds_probe_silent(const struct xrds_conn *conn);
bool xrds_probe_due(struct xrds_conn *conn);
unsigned int xrds_probe_bound_ms(const struct xrds_conn *conn, unsigned int ms);

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
void xrds_legacy_close(struct xrds_conn *conn);
bool xrds_legacy_beat(struct xrds_conn *conn);

/* ------------------------------------------------------------------- tx.c */

void xrds_tx_push_work(struct work_struct *work);
int xrds_tx_queue(struct xrds_conn *conn, struct xrds_msg *msg, bool pump);
int xrds_tx_queue_more(struct xrds_conn *conn, struct xrds_msg *msg);
void xrds_tx_ask(struct xrds_conn *conn, struct xrds_flow *flow, u64 room);
bool xrds_tx_beat(struct xrds_conn *conn);

/* ------------------------------------------------------------------ txq.c */

enum xrds_state xrds_txq_append(struct xrds_conn *conn, struct xrds_msg *msg);
struct xrds_msg *xrds_txq_next(struct xrds_conn *conn);
bool xrds_txq_pass(struct xrds_conn *conn, struct xrds_msg *msg);
bool xrds_txq_take(struct xrds_conn *conn, struct xrds_msg *msg);
bool xrds_txq_back(struct xrds_conn *conn, struct xrds_msg *msg, bool unsent);
u64 xrds_txq_direct(struct xrds_conn *conn, const struct xrds_flow *flow,
		    u32 bytes);
void xrds_txq_went(struct xrds_conn *conn, struct xrds_msg *msg);
void xrds_txq_unsend(struct xrds_conn *conn, struct xrds_msg *msg);
bool xrds_txq_end(struct xrds_conn *conn, struct xrds_msg *msg,
		  struct list_head *list);
void xrds_txq_bulk_close(struct xrds_conn *conn);

/* ------------------------------------------------------------- tx_acked.c */

void xrds_tx_acked_rest(struct xrds_conn *conn);

/* ------------------------------------------------------------ tx_resume.c */

int xrds_tx_resume_open(struct xrds_conn *conn, const struct xrds_wire_hello *h);
void xrds_tx_resume_sort(struct xrds_conn *conn, u64 ack, bool forgot);
bool xrds_tx_resume_meet(struct xrds_conn *conn, u64 node);
void xrds_tx_resume_close(struct xrds_conn *conn);
void xrds_tx_resume_drop_posted(struct xrds_conn *conn);
void xrds_tx_resume_drop_ops(struct xrds_conn *conn);
void xrds_tx_resume_drop_answers(struct xrds_conn *conn);
void xrds_tx_resume_clear_posted(struct xrds_conn *conn);
void xrds_tx_resume_drop_all(struct xrds_conn *conn);

/* -------------------------------------------------------------- link.c */

/**
 * struct xrds_port - a port of ours, and whether it is congested
 * @xn:		namespace
 * @user:	owner of the socket, which has the reference; charged for the links
 * @bind:	its address and number; constant once bound
 * @node:	in xn->cong_ports while @congested; xn->cong_lock
 * @links:	connections that are told of its changes; xn->cong_lock, as all
 *		below but @congested
 * @late:	in xn->cong_late or xn->cong_late_all while xn->cong_work is to tell
 *		more of them
 * @changes:	times that @congested has changed
 * @turns:	batches of its links that xn->cong_work has taken
 * @unlinked:	there was no memory for a link, or its user had too many
 * @all_due:	all connections of the address are to be told
 * @closed:	it gets no links any more
 * @congested:	its socket is over the receive limit and not yet drained to half
 *		of it; the lock of the socket's receive queue
 */
struct xrds_port {
	struct xrds_net *xn;
	struct xrds_user *user;
	const struct xrds_bind_key *bind;
	struct list_head node;
	struct list_head links;
	struct list_head late;
	u32 changes;
	u32 turns;
	bool unlinked;
	bool all_due;
	bool closed;
	bool congested;
};

/* Begin the port of a socket, zeroed */
static inline void xrds_link_init_port(struct xrds_port *port,
				       struct xrds_net *xn,
				       struct xrds_user *user,
				       const struct xrds_bind_key *bind)
{
	port->xn = xn;
	port->user = user;
	port->bind = bind;
	INIT_LIST_HEAD(&port->node);
	INIT_LIST_HEAD(&port->links);
	INIT_LIST_HEAD(&port->late);
}

/**
 * struct xrds_link_batch - connections that are to be told of a port
 * @port:	the port; it may be gone, and only tells links apart
 * @bind:	its address and number
 * @conns:	the connections, each with a reference
 * @nr:		their number
 * @all:	all others of the address as well
 */
struct xrds_link_batch {
	struct xrds_port *port;
	struct xrds_bind_key bind;
	struct xrds_conn *conns[XRDS_LINK_BATCH];
	u32 nr;
	bool all;
};

bool xrds_link_heard(struct xrds_conn *conn, struct xrds_port *port);
bool xrds_link_told(struct xrds_conn *conn, struct xrds_port *port);
bool xrds_link_waits(struct xrds_conn *conn, u16 port);
bool xrds_link_again(struct xrds_conn *conn, u16 port);
void xrds_link_cleared(struct xrds_conn *conn, struct xrds_port *port);
void xrds_link_leave(struct xrds_conn *conn);
void xrds_link_stop(struct xrds_port *port);
void xrds_link_close(struct xrds_port *port);
void xrds_link_change(struct xrds_port *port);
bool xrds_link_next(struct xrds_port *port, struct xrds_link_batch *batch);
bool xrds_link_next_all(struct xrds_port *port, struct xrds_link_batch *batch);
bool xrds_link_next_late(struct xrds_net *xn, struct xrds_link_batch *batch);

/* -------------------------------------------------------------- wait.c */

bool xrds_wait_begin(struct xrds_conn *conn, struct xrds_flow *flow);
void xrds_wait_end(struct xrds_flow *flow);
bool xrds_wait_open_gate(struct xrds_conn *conn, struct xrds_gate *gate);
bool xrds_wait_open_gates(struct xrds_conn *conn, struct list_head *list);
void xrds_wait_open_local(struct xrds_conn *conn, u16 port);

/* -------------------------------------------------------------- cong.c */

void xrds_cong_mark(struct xrds_conn *conn, u16 port);
void xrds_cong_tell(struct xrds_conn *conn, struct xrds_port *port);
void xrds_cong_local_full(struct xrds_port *port);
void xrds_cong_local_clear(struct xrds_port *port);
void xrds_cong_unbind(struct xrds_port *port);
void xrds_cong_tell_work(struct work_struct *work);
bool xrds_cong_work(struct xrds_conn *conn);
void xrds_cong_open(struct xrds_conn *conn);
void xrds_cong_close(struct xrds_conn *conn);
int xrds_cong_xmit(struct xrds_conn *conn);
bool xrds_cong_told(struct xrds_conn *conn);

/* ------------------------------------------------------------ refuse.c */

bool xrds_refuse_drops(struct xrds_conn *conn, const struct xrds_wire_msg *wm);
bool xrds_refuse_note(struct xrds_conn *conn, const struct xrds_wire_msg *wm);
int xrds_refuse_xmit(struct xrds_conn *conn);
void xrds_refuse_close(struct xrds_conn *conn);
void xrds_refuse_forget(struct xrds_conn *conn);

/* The acknowledgment to send: nothing that was refused, and not yet said to be */
static inline u64 xrds_refuse_ack(const struct xrds_conn *conn)
{
	/* pairs with the store-release in xrds_rx_msg() */
	u64 ack = smp_load_acquire(&conn->rx_ack);
	u64 floor = READ_ONCE(conn->refused_floor);

	return floor && floor <= ack ? floor - 1 : ack;
}

/* ---------------------------------------------------------------- rx.c */

void xrds_rx_ack_work(struct work_struct *work);

#endif /* _XRDS_CONN_H */
