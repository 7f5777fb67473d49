/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections: their state and their end, what they send, and what they know of
 * congestion.
 *
 * A connection is made by the first message toward a node or by the node's
 * request, and outlives any number of endpoints, which are the transport's.
 * Whoever has something to say to it sets an event; the work takes the events
 * and is alone in writing the state, so no lock guards that. conn->tx_lock (L2)
 * keeps the order in which messages are posted, and the endpoint in place
 * meanwhile; conn->lock (L3) guards the queues and the events. Fields of the
 * receive path have one writer, for a transport hands up one message of a
 * connection at a time.
 */
#ifndef _XRDS_CONN_H
#define _XRDS_CONN_H

#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "xrds.h"

/* -------------------------------------------------------------- conn.c */

/* States of a connection. Only its work item writes them.
 *
 *   DOWN -> RESOLVING -> CONNECTING -> WAIT_CTS -> UP -> CLOSING -> DOWN
 *
 * The side that ends a connection is CLOSING, the other one PARTING.
 * A request that is accepted goes from DOWN to CONNECTING. Every error leads
 * to DOWN, from where a new attempt starts when something is queued. DEAD is
 * final: the table no longer has the connection.
 */
enum xrds_state {
#define X(sym, text) XRDS_ST_##sym
#include "list_states.h"
#undef X
	XRDS_ST_NR
};

enum xrds_event {
#define X(sym, text) XRDS_EV_##sym
#include "list_events.h"
#undef X
	XRDS_EV_NR
};

/**
 * struct xrds_conn_key - which connection
 * @laddr:	local address, IPv4 mapped
 * @faddr:	foreign address, IPv4 mapped
 * @scope:	interface index of link-local addresses, else 0
 * @tos:	type of service
 * @lane:	number among the connections of the pair
 * @loop:	served by the loopback transport
 * @zero:	no padding in a key
 */
struct xrds_conn_key {
	struct in6_addr laddr;
	struct in6_addr faddr;
	u32	scope;
	u8	tos;
	u8	lane;
	u8	loop;
	u8	zero;
};

/**
 * struct xrds_request - a peer's request that waits for the worker
 * @epoch:	of struct xrds_wire_priv
 * @classic:	in a classic version
 *
 * Transports embed it as the first member of their own structure.
 */
struct xrds_request {
	u8 epoch;
	bool classic;
};

enum {
	XRDS_CONG_PENDING	= 32,	/* ports of one delta update */
	XRDS_CTL_INLINE_BYTES	= 208,	/* largest payload of xmit_ctl() */
	/* streams that are told apart, by hash, when small messages pass */
	XRDS_BULK_STREAMS_BITS	= 6,
	XRDS_BULK_STREAMS	= 1 << XRDS_BULK_STREAMS_BITS,
};

/**
 * struct xrds_closing - how far the orderly end of a connection has got, and
 *	what comes after it; all of it is the worker's
 * @kill:	the connection ends for good
 * @removed:	its device goes away
 * @idle:	it was idle
 * @answered:	the peer's BYE_ACK has come
 * @peer:	the peer's BYE has come
 * @gone:	the peer has disconnected
 */
struct xrds_closing {
	bool kill;
	bool removed;
	bool idle;
	bool answered;
	bool peer;
	bool gone;
};

/**
 * struct xrds_quiet - since when a connection is idle; all of it is the
 *	worker's
 * @tx_seq:	conn->tx_seq when it was looked at last
 * @rx_next:	the same of conn->rx_next
 * @since:	jiffies when it was found changed, or went DOWN
 */
struct xrds_quiet {
	u64 tx_seq;
	u64 rx_next;
	unsigned long since;
};

/**
 * struct xrds_classic - what is different toward a peer that speaks a classic
 *	version, see classic.c
 * @on:		the endpoint speaks one, or the last one did; worker, while
 *		nothing can be posted; also read without a lock
 * @heard:	the last message of the peer was in one; receive path
 * @numbered:	@tx_seq has been set ahead for such peers; worker
 * @old_offer:	the peer has refused our request without a reason that we know:
 *		the next one offers the oldest version; worker, and the
 *		transport while it asks
 * @confirmed:	acknowledgment that the peer's device has taken; completions
 * @ack:	what the peer has acknowledged in its request or reply; worker
 */
struct xrds_classic {
	bool on;
	bool heard;
	bool numbered;
	bool old_offer;
	u64 confirmed;
	u64 ack;
};

/**
 * struct xrds_conn - the reliable connection between two nodes
 * @node:	in xn->conns until dead
 * @key:	which
 * @xn:		namespace
 * @user:	who has it made, with a reference; NULL: its peer
 * @list:	in xn->conn_list; xn->lock, RCU readers
 * @ref:	the table's, one for pending work, and each user's
 * @rcu:	for lookups
 * @trans:	transport
 * @work:	the state worker; the only writer of @state
 * @state:	enum xrds_state
 * @deadline:	jiffies when @state times out, 0: never; worker
 * @backoff_ms:	delay after the next failure; worker
 * @backing_off: DOWN, and @deadline is when to dial again; worker
 * @beat_at:	jiffies when the next heartbeat is due, 0: never; worker
 * @closing:	see there
 * @quiet:	see there
 * @settled:	the last endpoint ended in order, so that neither side has
 *		anything to ask the other's memory for; worker
 * @epoch:	times it came up, see struct xrds_wire_priv; worker
 * @dialled:	this side sent the request; worker
 * @failed:	the last attempt failed; worker
 * @retries:	attempts that failed since it was up last; worker
 * @nr_refused:	times since then that the peer has refused a request for which
 *		another one was to come; worker
 * @crossed:	a request was refused as crossing since it came up; worker
 * @classic:	see there
 * @inc:	our incarnation; random, never 0, constant
 * @events:	bit mask of enum xrds_event; @lock
 * @ep_gen:	generation of the endpoint; events of earlier ones are
 *		ignored; @lock
 * @error:	reason of XRDS_EV_ERROR, negative errno; @lock
 * @pending:	request that waits for the worker, owned by the transport;
 *		@lock
 * @no_bundles:	there was no memory to take one apart, so we want none any more;
 *		written by the receive path, read when an endpoint is made
 * @hello:	the peer's clear-to-send; written by the receive path before
 *		XRDS_EV_CTS, read by the worker after it
 * @tx_lock:	L2
 * @ep:		the transport's endpoint, NULL without; @tx_lock
 * @tx_open:	messages may be posted; @tx_lock
 * @tx_bundles:	several messages may go together; @tx_lock
 * @tx_bulk:	large message that the transport has in part, with a reference,
 *		or NULL; written under @tx_lock and @lock
 * @tx_seq:	last sequence number given out; @tx_lock
 * @tx_beat_due: a heartbeat must be sent; @tx_lock
 * @tx_ask_due:	an acknowledgment must be asked for; written under @tx_lock,
 *		set under @lock as well
 * @tx_asked:	number of the last message that was in front of such a question;
 *		written under @tx_lock while @tx_ask_due
 * @tx_closing:	no message is sent any more; @tx_lock
 * @tx_bye:	XRDS_CTL_BYE or XRDS_CTL_BYE_ACK, which is due, or 0; @tx_lock
 * @tx_ack_due:	an acknowledgment must be sent even without data; atomic
 *		flag, set by the receive path
 * @tx_ack_sent: value of the last acknowledgment sent; @tx_lock
 * @lock:	L3
 * @sendq:	not handed to the transport, oldest first; @lock
 * @bulkq:	large ones, and what must not pass them, oldest first; the
 *		transport may have the first in part; @lock
 * @nr_bulk:	large ones on @bulkq; @lock
 * @bulk_over:	messages with more payload are large, bytes; @lock
 * @stamp:	messages queued, ever; @lock
 * @bulk_last:	the last one that was put on @bulkq, by streams; @lock
 * @inflight:	handed over and not acknowledged, by sequence; @lock
 * @acked:	highest acknowledgment taken; @lock
 * @ops:	ops of messages in the three queues, oldest first; @lock
 * @nr_new:	messages in the three queues without a number yet; @lock
 * @kmsgs:	messages of the kernel itself in the three queues; @lock
 * @tx_peer_inc: incarnation of the peer that @inflight was sent to, 0: none
 *		yet; @tx_lock
 * @tx_unasked:	messages sent since one asked for an acknowledgment; @tx_lock
 * @ctl_msg:	a control message too large for xmit_ctl() that waits for
 *		room; @tx_lock
 * @peer_inc:	incarnation that @rx_next belongs to, 0: none yet; written by
 *		the receive path
 * @reborn:	jiffies when the peer came back without the sockets it had, 0:
 *		it has not; written by the receive path
 * @rx_next:	next sequence number expected; receive path
 * @rx_stopped:	a message was refused, and so is what follows it on this
 *		endpoint; receive path
 * @rx_ack:	what is to be acknowledged, 0: nothing; receive path, reset by
 *		the worker when there is none
 * @rx_unacked_msgs: received since the last acknowledgment; receive path
 * @rx_unacked_bytes: the same in bytes
 * @rx_batch:	more messages are about to come at once; receive path
 * @rx_batch_ack: one of them has asked for an acknowledgment; receive path
 * @ack_work:	sends an acknowledgment that found no data to ride on
 * @push_work:	posts what a sendmmsg() has left behind; with a reference
 * @cong:	congested ports of the peer, as values; its own lock
 * @users:	destinations that refer to this connection; @lock
 * @cong_waiters: destinations that were refused for them; @lock
 * @cong_ports:	our ports whose state must be told; @lock
 * @cong_nr:	entries of @cong_ports; @lock
 * @cong_full:	all state must be told; @lock
 * @cong_rx:	congestion updates that wait for the worker
 * @up_at:	jiffies when it last came up; worker
 * @asked_at:	jiffies when it last sent a request; worker
 */
struct xrds_conn {
	struct rhash_head node;
	struct xrds_conn_key key;
	struct xrds_net *xn;
	struct xrds_user *user;
	struct list_head list;
	refcount_t ref;
	struct rcu_head rcu;
	const struct xrds_transport *trans;

	struct delayed_work work;
	enum xrds_state state;
	unsigned long deadline;
	unsigned int backoff_ms;
	bool backing_off;
	unsigned long beat_at;
	struct xrds_closing closing;
	struct xrds_quiet quiet;
	bool settled;
	u8 epoch;
	bool dialled;
	bool failed;
	u32 retries;
	u32 nr_refused;
	bool crossed;
	struct xrds_classic classic;
	u64 inc;

	/* tx */
	spinlock_t tx_lock;		/* L2 */
	void *ep;
	bool tx_open;
	bool tx_bundles;
	struct xrds_msg *tx_bulk;
	u64 tx_seq;
	u64 tx_ack_sent;
	u64 tx_peer_inc;
	u64 tx_asked;
	u32 tx_unasked;
	bool tx_beat_due;
	bool tx_ask_due;
	bool tx_closing;
	u8 tx_bye;
	unsigned long tx_ack_due;
	struct xrds_msg *ctl_msg;

	spinlock_t lock ____cacheline_aligned_in_smp;	/* L3 */
	u32 events;
	u32 ep_gen;
	int error;
	struct xrds_request *pending;
	bool no_bundles;
	struct list_head sendq;
	struct list_head bulkq;
	struct list_head inflight;
	struct list_head ops;
	u32 nr_bulk;
	u32 bulk_over;
	u32 stamp;
	u32 bulk_last[XRDS_BULK_STREAMS];
	u64 acked;
	u64 nr_new;
	u32 kmsgs;
	struct list_head users;
	struct list_head cong_waiters;
	u16 cong_ports[XRDS_CONG_PENDING];
	u8 cong_nr;
	bool cong_full;

	/* rx */
	struct xrds_wire_hello hello ____cacheline_aligned_in_smp;
	u64 peer_inc;
	unsigned long reborn;
	u64 rx_next;
	bool rx_stopped;
	u64 rx_ack;
	u32 rx_unacked_msgs;
	u32 rx_unacked_bytes;
	bool rx_batch;
	bool rx_batch_ack;
	struct delayed_work ack_work;
	struct delayed_work push_work;
	struct xarray cong;
	struct sk_buff_head cong_rx;
	unsigned long up_at;
	unsigned long asked_at;
};

extern struct workqueue_struct *xrds_conn_wq;
int xrds_conn_init(void);
void xrds_conn_exit(void);
int xrds_conn_net_init(struct xrds_net *xn);
void xrds_conn_net_exit(struct xrds_net *xn);
struct xrds_conn *xrds_conn_find(struct xrds_net *xn,
				 const struct xrds_conn_key *key);
struct xrds_conn *xrds_conn_get_for(struct xrds_net *xn, struct xrds_user *user,
				    const struct xrds_conn_key *key,
				    const struct xrds_transport *trans,
				    gfp_t gfp);
void xrds_conn_get(struct xrds_conn *conn);
void xrds_conn_put(struct xrds_conn *conn);
void xrds_conn_event(struct xrds_conn *conn, enum xrds_event ev);
void xrds_conn_ep_event(struct xrds_conn *conn, u32 gen, enum xrds_event ev,
			int error);
void xrds_conn_delay_ack(struct xrds_conn *conn, unsigned int ms);
void xrds_conn_push_later(struct xrds_conn *conn);
bool xrds_conn_request(struct xrds_conn *conn, struct xrds_request *req);
struct xrds_request *xrds_conn_take_pending(struct xrds_conn *conn);
void xrds_conn_hello(struct xrds_conn *conn, u32 gen,
		     const struct xrds_wire_hello *hello);
void xrds_conn_fill_hello(struct xrds_conn *conn,
			  struct xrds_wire_hello *hello);
bool xrds_conns_gone(struct xrds_net *xn, const struct xrds_transport *trans);
void xrds_conn_destroy_all(struct xrds_net *xn,
			   const struct xrds_transport *trans);
void xrds_conn_wire_error(struct xrds_conn *conn, u32 gen,
			  enum xrds_wire_err err);
void xrds_conn_unhash(struct xrds_conn *conn);
void xrds_conn_arm(struct xrds_conn *conn);
void xrds_conn_look_idle(struct xrds_net *xn);
bool xrds_conns_orphaned(const struct xrds_net *xn);
void xrds_conn_break_all(struct xrds_net *xn);
bool xrds_conn_has_socks(const struct xrds_conn *conn);

/* ------------------------------------------------------------ inject.c */

void xrds_inject_init(void);
void xrds_inject_exit(void);

/* ------------------------------------------------------------- state.c */

unsigned long xrds_state_deadline(unsigned int ms);
void xrds_state_set(struct xrds_conn *conn, enum xrds_state state,
		    unsigned long deadline);
void xrds_state_stop(struct xrds_conn *conn);
void xrds_state_down(struct xrds_conn *conn, bool failed);
void xrds_state_kill(struct xrds_conn *conn);
void xrds_state_bury(struct xrds_conn *conn);
void xrds_state_work(struct work_struct *work);
const char *xrds_state_name(enum xrds_state state);
const char *xrds_event_name(enum xrds_event ev);

/* ------------------------------------------------------------- close.c */

unsigned long xrds_close_look_at(const struct xrds_conn *conn);
bool xrds_close_collect(struct xrds_conn *conn);
bool xrds_close_forget(struct xrds_conn *conn);
void xrds_close_rest(struct xrds_conn *conn);
void xrds_close_for(struct xrds_conn *conn, enum xrds_event ev);
void xrds_close_part(struct xrds_conn *conn);
void xrds_close_answer(struct xrds_conn *conn);
void xrds_close_answered(struct xrds_conn *conn);
void xrds_close_gone(struct xrds_conn *conn, int error);
void xrds_close_check(struct xrds_conn *conn);
void xrds_close_expire(struct xrds_conn *conn);
int xrds_close_xmit(struct xrds_conn *conn);

/* ----------------------------------------------------------- classic.c */

void xrds_classic_heard(struct xrds_conn *conn);
bool xrds_classic_duplicate(struct xrds_conn *conn,
			    const struct xrds_wire_msg *wm);
void xrds_classic_confirm(struct xrds_conn *conn, u64 ack);
void xrds_classic_start(struct xrds_conn *conn, u32 gen, u64 ack);
void xrds_classic_open(struct xrds_conn *conn);
u64 xrds_classic_ack(const struct xrds_conn *conn);
void xrds_classic_skip_marks(struct xrds_conn *conn);
bool xrds_classic_ask(const struct xrds_conn *conn);
void xrds_classic_beat(struct xrds_conn *conn);

/* -------------------------------------------------------------- xmit.c */

int xrds_xmit_queue(struct xrds_conn *conn, struct xrds_msg *msg, bool pump);
int xrds_xmit_queue_more(struct xrds_conn *conn, struct xrds_msg *msg);
bool xrds_xmit_waits(struct xrds_conn *conn, u32 room);
struct xrds_msg *xrds_xmit_also(struct xrds_conn *conn, u32 room);
void xrds_xmit_pump(struct xrds_conn *conn);
void xrds_xmit_ask(struct xrds_conn *conn, struct xrds_dest *dest, u64 room);
void xrds_xmit_need_ack(struct xrds_conn *conn);
bool xrds_xmit_beat(struct xrds_conn *conn);
u64 xrds_xmit_ack_value(struct xrds_conn *conn);
bool xrds_xmit_wanted(const struct xrds_conn *conn);
void xrds_xmit_set_inflight(struct xrds_msg *msg, bool on);

/* --------------------------------------------------------- xmit_bulk.c */

bool xrds_bulk_keeps(struct xrds_conn *conn, struct xrds_msg *msg);
struct xrds_msg *xrds_bulk_next(struct xrds_conn *conn);
bool xrds_bulk_take(struct xrds_conn *conn, struct xrds_msg *msg);
void xrds_bulk_back(struct xrds_conn *conn, struct xrds_msg *msg, bool untried);
void xrds_bulk_number(struct xrds_conn *conn, struct xrds_msg *msg);
void xrds_bulk_open(struct xrds_conn *conn, u32 over);
void xrds_bulk_close(struct xrds_conn *conn);

/* --------------------------------------------------------- xmit_done.c */

enum {
	/* as many end under one hold of a lock that others wait for */
	XRDS_END_BATCH	= 1024,
};

void xrds_xmit_done(struct xrds_net *xn, struct list_head *list,
		    enum xrds_counter fate, s32 status);
void xrds_xmit_end(struct xrds_conn *conn, struct xrds_msg *msg,
		   struct list_head *list);
int xrds_xmit_acked(struct xrds_conn *conn, u64 ack);
void xrds_xmit_drop_all(struct xrds_conn *conn);

/* --------------------------------------------------------- xmit_open.c */

unsigned long xrds_xmit_peer_reborn(const struct xrds_conn *conn,
				    const struct xrds_wire_hello *h);
int xrds_xmit_open(struct xrds_conn *conn, const struct xrds_wire_hello *h);
void xrds_xmit_close(struct xrds_conn *conn);
void xrds_xmit_drop_ops(struct xrds_conn *conn, bool unposted);
void xrds_xmit_settle(struct xrds_conn *conn);

/* -------------------------------------------------------------- cong.c */

bool xrds_cong_blocked(struct xrds_conn *conn, u16 port);
bool xrds_cong_wait(struct xrds_conn *conn, struct xrds_dest *dest);
void xrds_cong_unwait(struct xrds_dest *dest);
void xrds_cong_local(struct xrds_sock *xs, bool congested);
void xrds_cong_recv(struct xrds_conn *conn, enum xrds_ctl_type type,
		    struct sk_buff *skb);
void xrds_cong_work(struct xrds_conn *conn);
void xrds_cong_open(struct xrds_conn *conn);
void xrds_cong_close(struct xrds_conn *conn);
int xrds_cong_xmit(struct xrds_conn *conn);
bool xrds_cong_told(struct xrds_conn *conn);

#endif /* _XRDS_CONN_H */
