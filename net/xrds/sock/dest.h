/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Destinations: the messages of one socket to one address and port; and
 * sources, the senders that a socket has heard of.
 *
 * A destination comes with the first message to it, and goes when it is idle
 * and room is wanted for others, or when its socket is closed and the last
 * message is acknowledged. Its send space is its own, so one that takes nothing
 * does not hold up others. xs->lock (L4) guards it; its flow is guarded by its
 * connection's lock (L3) as well, which is taken first. Sources belong to the
 * receive queue of their socket.
 */
#ifndef _XRDS_DEST_H
#define _XRDS_DEST_H

#if XRDS_LEVEL < 4
#error "for sock/ and the folders above, see Kbuild"
#endif

#include <linux/list.h>
#include <linux/rhashtable.h>
#include <linux/refcount.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "conn/conn.h"
#include "sock/dest_send.h"
#include "xrds.h"

struct xrds_skb_cb;
struct xrds_watch;

/* -------------------------------------------------------------- dest.c */

/**
 * struct xrds_dest_key - key of the table of destinations
 * @xs:		the sending socket
 * @addr:	address, IPv4 mapped
 * @scope:	interface index of a link-local address, else 0
 * @port:	port; 32 bits wide so that there is no padding
 */
struct xrds_dest_key {
	struct xrds_sock *xs;
	struct in6_addr addr;
	u32 scope;
	u32 port;
};

static inline struct xrds_dest_key xrds_dest_key(struct xrds_sock *xs,
						 const struct xrds_addr *addr)
{
	return (struct xrds_dest_key){
		.xs	= xs,
		.addr	= addr->addr,
		.scope	= addr->scope,
		.port	= addr->port,
	};
}

/* The mark at the end of a stream, see eos.c */
enum xrds_eos_state {
	XRDS_EOS_NONE,		/* the stream goes on, or never began */
	XRDS_EOS_DUE,		/* the mark is to be queued */
	XRDS_EOS_QUEUED,	/* its connection has it */
	XRDS_EOS_DONE,		/* acknowledged, or given up */
};

/**
 * struct xrds_bind_last - the last answer of a lookup of one address and port
 * @xs:		the socket, without a reference; NULL: there was none
 * @unbinds:	xn->unbinds before the lookup
 */
struct xrds_bind_last {
	struct xrds_sock *xs;
	s64 unbinds;
};

/**
 * struct xrds_dest_link - a place in the list of a socket's destinations
 * @node:	in xs->dests; xs->lock
 * @cursor:	of a walk, see dest_walk.c, and of no destination
 */
struct xrds_dest_link {
	struct list_head node;
	bool cursor;
};

/**
 * struct xrds_dest - what one socket has under way to one destination
 * @node:	in xn->dests while @linked
 * @key:	which; key.xs holds a reference on the socket
 * @rcu:	for the lookup
 * @flow:	its part in the connection; flow.ref: the table's, each
 *		message's, each caller's
 * @receiver:	over loopback: the socket there; xs->lock
 * @xs_link:	in xs->dests while @linked; xs->lock
 * @idle_node:	in xs->idle_dests while nothing is queued; xs->lock
 * @cleared_node: in xs->cleared after it has become clear, then in xs->unnamed or
 *		with a reader; xs->lock
 * @reservations:	reservations for replies not used yet; xs->lock, and read
 *		without it for an estimate, by xrds_space_nr_reserved()
 * @reserve_gen: xs->reserve_gen when @reservations and @holds were last right; the
 *		same
 * @holds:	messages from it are held back for want of space; xs->lock
 * @eos:	how far the end of the stream is; xs->lock
 * @eos_node:	in xs->eos_due; xs->lock
 * @linked:	still found by lookups; xs->lock
 * @unnamed:	it is in xs->unnamed; xs->lock
 * @space:	senders blocked in sendmsg() wait here for space and for the
 *		end of congestion
 * @sndbuf:	XRDS_DEST_SNDBUF, 0: the socket's default; xs->lock; bytes
 * @charged:	space in use, see xrds_msg_charge(); xs->lock; bytes
 * @queued_bytes: payload accepted and not acknowledged; xs->lock
 * @queued_msgs: the same in messages; xs->lock
 * @acked_msgs:	acknowledged so far; xs->lock
 * @last_progress_ns: CLOCK_MONOTONIC of the last acknowledgment; xs->lock
 * @want:	charge of the send that was refused last; xs->lock, and read
 *		without it for an estimate; bytes
 * @send:	enum xrds_dest_send; the same
 * @watch:	of its node, or NULL; xs->lock
 * @unread:	replies that it has sent while this socket was congested, and
 *		that were not read yet; xs->lock; bytes
 */
struct xrds_dest {
	struct rhash_head node;
	struct xrds_dest_key key;
	struct rcu_head rcu;
	struct xrds_flow flow;
	struct xrds_bind_last receiver;
	struct xrds_dest_link xs_link;
	struct list_head idle_node;
	struct list_head cleared_node;
	u32 reservations;
	u32 reserve_gen;
	bool holds;
	bool linked;
	bool unnamed;
	u8 eos;
	u8 send;
	struct list_head eos_node;
	wait_queue_head_t space;
	u32 sndbuf;
	u32 want;
	u64 charged;
	u64 queued_bytes;
	u64 queued_msgs;
	u64 acked_msgs;
	u64 last_progress_ns;
	u64 unread;
	struct xrds_watch *watch;
};

/* NULL stays NULL */
static inline struct xrds_dest *xrds_dest_of(struct xrds_flow *flow)
{
	return flow ? container_of(flow, struct xrds_dest, flow) : NULL;
}

/* Would another send wait, as the last one did? Without the lock an estimate */
static inline bool xrds_dest_blocked(const struct xrds_dest *dest)
{
	return xrds_dest_send_blocked(READ_ONCE(dest->send));
}

static inline void xrds_dest_put(struct xrds_dest *dest)
{
	xrds_flow_put(&dest->flow);
}

extern const struct rhashtable_params xrds_dest_params;

int xrds_dest_addr_fits(const struct xrds_sock *xs, const struct xrds_addr *to);
struct xrds_dest *xrds_dest_find_or_create(struct xrds_sock *xs,
					   const struct xrds_addr *to);
struct xrds_dest *xrds_dest_find(struct xrds_sock *xs,
				 const struct xrds_addr *to);
void xrds_dest_unlink(struct xrds_dest *dest);
void xrds_dest_release(struct xrds_dest *dest);
struct xrds_conn *xrds_dest_conn(struct xrds_dest *dest);
struct xrds_conn *xrds_dest_peek_conn(const struct xrds_sock *xs,
				      const struct xrds_addr *to);
void xrds_dest_close_all(struct xrds_sock *xs);
int xrds_dest_watch_all(struct xrds_sock *xs, bool on);

/* --------------------------------------------------------- dest_walk.c */

/**
 * struct xrds_dest_walk - a walk of a socket's destinations
 * @xs:		socket
 * @at:		its place in the list
 * @end:	where it ends
 */
struct xrds_dest_walk {
	struct xrds_sock *xs;
	struct xrds_dest_link at;
	struct xrds_dest_link end;
};

void xrds_dest_walk_begin(struct xrds_dest_walk *walk, struct xrds_sock *xs);
struct xrds_dest *xrds_dest_walk_next(struct xrds_dest_walk *walk);
void xrds_dest_walk_end(struct xrds_dest_walk *walk);
void xrds_dest_walk_all(struct xrds_sock *xs, void (*visit)(struct xrds_dest *dest));

/* ------------------------------------------------------------ direct.c */

int xrds_direct_send(struct xrds_dest *dest, struct msghdr *m, u32 len);

/* ------------------------------------------------------------- space.c */

int xrds_space_try_reserve(struct xrds_dest *dest, struct xrds_conn *conn,
			   u32 len, bool patient);
__poll_t xrds_space_set(struct xrds_dest *dest, enum xrds_dest_event event);
void xrds_space_interrupted(struct xrds_dest *dest);
__poll_t xrds_space_resized(struct xrds_dest *dest);
__poll_t xrds_space_freed(struct xrds_dest *dest);

u32 xrds_space_sndbuf(const struct xrds_dest *dest);
u32 xrds_space_nr_reserved(const struct xrds_dest *dest);
void xrds_upcall_flow_done(struct xrds_dest *dest, u32 msgs, u64 bytes,
			   u64 charge, u64 mem, bool acked);
void xrds_upcall_eos_done(struct xrds_dest *dest);
bool xrds_space_can_reserve_reply(struct xrds_dest *dest);
int xrds_space_reserve_reply(struct xrds_dest *dest);
void xrds_space_release_replies(struct xrds_dest *dest, u32 nr);
void xrds_space_renew_reply(struct xrds_dest *dest);
void xrds_space_release_all(struct xrds_sock *xs);
void xrds_space_reply_read(struct xrds_dest *dest, u32 charge);
void xrds_space_changed(struct sock *sk);

/* ----------------------------------------------------------- sockopt.c */

int xrds_sockopt_release_reply(struct xrds_sock *xs,
			       const struct xrds_addr *to);

/* ------------------------------------------------------------ cancel.c */

void xrds_cancel_to(struct xrds_sock *xs, const struct xrds_addr *to);
void xrds_cancel_all(struct xrds_sock *xs);
void xrds_cancel_end(struct xrds_dest *dest);
void xrds_cancel_all_ends(struct xrds_sock *xs);

/* -------------------------------------------------------------- node.c */

enum {
	/* destinations or sources that a step of a walk looks at */
	XRDS_WATCH_BATCH	= 8,
};

extern const struct rhashtable_params xrds_node_params;

int xrds_node_watch(struct xrds_watch **watch, const struct xrds_dest_key *key);
void xrds_node_unwatch(struct xrds_watch **watch);
bool xrds_node_down(struct xrds_watch *watch);
void xrds_node_wake(struct sock *sk);
void xrds_node_dropped(struct xrds_dest *dest, u32 msgs);
int xrds_node_read(struct xrds_sock *xs, struct msghdr *m);

/* ----------------------------------------------------------- monitor.c */

__poll_t xrds_monitor_note(struct xrds_dest *dest);
void xrds_monitor_set(struct xrds_sock *xs, bool on);
bool xrds_monitor_unnamed(struct xrds_sock *xs, const struct msghdr *m);
int xrds_monitor_read(struct xrds_sock *xs, struct msghdr *m, int before);

/* -------------------------------------------------------------- past.c */

extern const struct rhashtable_params xrds_past_params;

int xrds_past_add(const struct xrds_dest *dest);
void xrds_past_restore(struct xrds_dest *dest);
void xrds_past_status(struct xrds_sock *xs, const struct xrds_addr *to,
		      u64 *acked_msgs, u64 *last_progress_ns);
bool xrds_past_take(struct xrds_sock *xs, struct xrds_addr *to);

/* --------------------------------------------------------------- eos.c */

/**
 * struct xrds_source - a sender that a socket has heard of
 * @node:	in xn->sources while @linked
 * @key:	the socket that heard it, and its address
 * @list:	in xs->sources; sk_receive_queue.lock, as all below
 * @first:	messages of it that were sorted, see srcq.c; NULL: none
 * @last:	the last of them
 * @nr_data:	those of them that are no ends of streams
 * @data_node:	while there are such: in xs->srcq.ready, .held or .barred
 * @mark_node:	in xs->srcq.marks while the first is the end of a stream
 * @peer:	node that its last message came from, or XRDS_NODE_LEGACY
 * @conn:	conn->id of the connection that brought it; 0: the source was made
 *		for its messages, and nothing is known of its stream
 * @watch:	of its node, or NULL
 * @ended:	its stream has ended, or nothing is known of it
 * @linked:	the socket still has it
 * @rcu:	for the walk of all sources
 */
struct xrds_source {
	struct rhash_head node;
	struct xrds_dest_key key;
	struct list_head list;
	struct sk_buff *first;
	struct sk_buff *last;
	u32 nr_data;
	struct list_head data_node;
	struct list_head mark_node;
	u64 peer;
	u64 conn;
	struct xrds_watch *watch;
	bool ended;
	bool linked;
	struct rcu_head rcu;
};

/* Is the end of a stream under way? xs->lock held. */
static inline bool xrds_dest_eos_pending(const struct xrds_dest *dest)
{
	return dest->eos == XRDS_EOS_DUE || dest->eos == XRDS_EOS_QUEUED;
}

bool xrds_dest_eos_due(struct xrds_dest *dest);
void xrds_dest_eos_kick(struct xrds_sock *xs);
void xrds_eos_work(struct work_struct *work);
void xrds_eos_begin(struct xrds_sock *xs, u32 reason, bool closing);
void xrds_eos_give_up(struct xrds_sock *xs);

bool xrds_source_has_ended(struct xrds_sock *xs, const struct xrds_skb_cb *cb);
bool xrds_source_note(struct xrds_sock *xs, const struct xrds_skb_cb *cb,
		      const struct xrds_conn *conn, bool *contact);
bool xrds_source_ended(struct xrds_sock *xs, const struct xrds_addr *from);

/* ------------------------------------------------------------ srctab.c */

extern const struct rhashtable_params xrds_srctab_params;

void xrds_srctab_set_lost(struct xrds_sock *xs, const struct xrds_dest_key *key,
			  bool lost);
struct xrds_source *xrds_srctab_add(struct xrds_sock *xs,
				    const struct xrds_dest_key *key);
struct xrds_source *xrds_srctab_find(struct xrds_sock *xs,
				     const struct xrds_dest_key *key);
struct xrds_source *xrds_srctab_of(struct xrds_sock *xs, struct sk_buff *skb);
void xrds_srctab_place(struct xrds_sock *xs, struct xrds_source *src);
int xrds_srctab_watch(struct xrds_sock *xs, struct xrds_source *src);
int xrds_srctab_watch_some(struct xrds_sock *xs, struct xrds_dest_key *keys);
void xrds_srctab_free_all(struct xrds_sock *xs);

/* -------------------------------------------------------------- srcq.c */

void xrds_srcq_enqueue(struct xrds_sock *xs, struct sk_buff *skb);
void xrds_srcq_requeue(struct xrds_sock *xs, struct sk_buff *skb);
void xrds_srcq_unlink(struct xrds_sock *xs, struct sk_buff *skb);
bool xrds_srcq_sort(struct xrds_sock *xs);
struct sk_buff *xrds_srcq_data(const struct xrds_source *src);
void xrds_srcq_ready_all(struct xrds_sock *xs);
void xrds_srcq_set(struct xrds_sock *xs, u32 reserve);
void xrds_srcq_unhold(struct xrds_sock *xs, const struct xrds_dest_key *key);
bool xrds_srcq_bar(struct xrds_sock *xs, const struct xrds_addr *from);

#endif /* _XRDS_DEST_H */
