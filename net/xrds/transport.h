/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The seam between connections and transports, which carry messages between two
 * nodes: the objects that pass it, the operations of a transport, and the API:
 * all functions of other folders that a transport may call.
 *
 * Loopback is always there; RDMA registers when its module is loaded. The core
 * calls a transport by its operations only.
 */
#ifndef _XRDS_TRANSPORT_H
#define _XRDS_TRANSPORT_H

#include <linux/bvec.h>
#include <linux/list.h>
#include <linux/net.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "conn/fq.h"
#include "msg.h"
#include "op.h"
#include "xrds.h"

/* --------------------------------------------------------- a connection */

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
 * @legacy:	in a legacy version
 *
 * Transports embed it as the first member of their own structure.
 */
struct xrds_request {
	u8 epoch;
	bool legacy;
};

enum {
	XRDS_CONG_PENDING	= 32,	/* ports of one delta update */
	XRDS_CTL_INLINE_BYTES	= 208,	/* largest payload of xmit_ctl() */
	XRDS_CORK_BYTES		= 1024,	/* payload of a message that may wait for others */
};

/**
 * struct xrds_closing - progress of the orderly end of a connection, and its
 *	reason; all of it is the worker's
 * @kill:	the connection ends for good
 * @removed:	its device goes away
 * @idle:	it was idle
 * @drained:	its namespace is drained
 * @answered:	the peer's BYE_ACK has come
 * @peer:	the peer's BYE has come
 * @gone:	the peer has disconnected
 * @error:	how, negative errno
 */
struct xrds_closing {
	bool kill;
	bool removed;
	bool idle;
	bool drained;
	bool answered;
	bool peer;
	bool gone;
	int error;
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
 * struct xrds_legacy - what is different toward a peer that speaks a legacy
 *	version, see legacy.c
 * @on:		the endpoint speaks one, or the last one did; worker, while
 *		nothing can be posted; also read without a lock
 * @heard:	the last message of the peer was in one; receive path
 * @numbered:	@tx_seq has been set ahead for such peers; worker
 * @old_offer:	the peer has refused our request without a reason that we know:
 *		the next one offers the oldest version; worker, and the
 *		transport while it asks
 * @answers:	the peer's kernel answers heartbeats: a heartbeat of its own, or
 *		an answer, has said so; receive path, reset by the worker without
 *		an endpoint
 * @ping:	heartbeat that was sent last, with a reference, or NULL; worker
 * @unanswered:	times that a heartbeat was due since a message was received;
 *		worker
 * @heard_next:	conn->rx_next when the last heartbeat was due; worker
 * @confirmed:	acknowledgment that the peer's device has taken; completions
 * @ack:	acknowledgment in the peer's request or reply; worker
 * @was:	messages that are queued may be for such a peer; @lock
 * @told:	it was told of a congested port, since an orderly end: it may wait,
 *		and not find out that the connection is lost; worker, also read
 *		without
 */
struct xrds_legacy {
	bool on;
	bool heard;
	bool numbered;
	bool old_offer;
	bool answers;
	u8 unanswered;
	struct xrds_msg *ping;
	u64 heard_next;
	u64 confirmed;
	u64 ack;
	bool was;
	bool told;
};

/**
 * struct xrds_conn - the reliable connection between two nodes
 * @node:	in xn->conns until dead
 * @key:	which
 * @xn:		namespace
 * @id:		number that no other one has had, ascending in @list; constant
 * @user:	its creator, with a reference; NULL: the peer has asked for it
 * @list:	in xn->conn_list; xn->lock, RCU readers
 * @ref:	the table's, one for pending work, and each user's
 * @rcu:	for lookups
 * @trans:	transport
 * @work:	the state worker; the only writer of @state
 * @state:	enum xrds_state
 * @deadline:	jiffies when @state times out, 0: never; worker
 * @backoff_ms:	delay after the next failure; worker
 * @backing_off: DOWN, and @deadline is when to dial again; worker
 * @dial:	place in a row of dialq.c while it waits to dial
 * @dial_waits:	it does; @xn->dialq.lock
 * @shares:	of the users who have flows here; @lock
 * @nr_shares:	length of @shares; @lock
 * @beat_at:	jiffies when the next heartbeat is due, 0: never; worker
 * @peer:	see conn/peer.c, with a reference; NULL over loopback; constant
 * @peer_entry: in @peer->conns; xn->lock
 * @peer_up:	it counts in @peer->nr_up; worker
 * @heard_at:	jiffies when anything was heard of the peer or its device; receive
 *		path and completions
 * @probe_at:	jiffies when the last probe was sent, 0: none; worker
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
 * @legacy:	see there
 * @events:	bit mask of enum xrds_event; @lock
 * @ep_gen:	generation of the endpoint; events of earlier ones are
 *		ignored; @lock
 * @error:	reason of XRDS_EV_ERROR, negative errno; @lock
 * @pending:	request that waits for the worker, owned by the transport;
 *		@lock
 * @no_flush:	the peer's device refuses empty writes, so each request is signalled;
 *		written by completions, read when an endpoint is made
 * @no_bundles:	there was no memory to take one apart, so we want none any more;
 *		written by the receive path, read when an endpoint is made
 * @hello:	the peer's clear-to-send; written by the receive path before
 *		XRDS_EV_CTS, read by the worker after it
 * @tx_lock:	L2
 * @ep:		the transport's endpoint, NULL without; @tx_lock
 * @tx_open:	messages may be posted; @tx_lock
 * @tx_bundles:	several messages may go together; @tx_lock
 * @tx_corked:	small messages wait for the transport, which pumps soon, so that
 *		they go together; written under @tx_lock
 * @tx_bulk:	large message that the transport has in part, with a reference,
 *		or NULL; written under @tx_lock and @lock
 * @tx_held:	messages wait until @tx_bulk has sent as much as they have; @tx_lock
 * @tx_seq:	last sequence number given out; @lock, and read under @tx_lock
 * @tx_beat_due: a heartbeat must be sent; @tx_lock
 * @tx_ask_due:	an acknowledgment must be asked for; written under @tx_lock,
 *		set under @lock as well
 * @tx_asked:	number of the last message that was in front of such a question;
 *		written under @tx_lock while @tx_ask_due
 * @tx_closing:	no message is sent any more; @tx_lock
 * @tx_taken:	steps of the pump in this hold of @tx_lock
 * @tx_bye:	XRDS_CTL_BYE or XRDS_CTL_BYE_ACK, which is due, or 0; @tx_lock
 * @tx_bye_ack: value of the acknowledgment in BYE; @tx_lock
 * @tx_ack_due:	an acknowledgment must be sent even without data; atomic
 *		flag, set by the receive path
 * @tx_ack_sent: value of the last acknowledgment sent; @tx_lock
 * @lock:	L3
 * @own:	flow of the kernel's own messages
 * @fq:		users with something to send; @lock
 * @fq_past:	users that have no flow any more; @lock
 * @bulk_over:	messages with more payload are large, bytes; @lock
 * @again:	messages with a number that are to be sent again, before all
 *		others, oldest first; @lock
 * @inflight:	handed over and not acknowledged, by sequence; @lock
 * @acked:	highest acknowledgment taken; @lock
 * @acked_before: the same when the peer had last forgotten us, or when we were
 *		made: last number of the connections before us; worker
 * @ops:	ops of messages that have not ended, oldest first; @lock
 * @nr_msgs:	messages in all queues; @lock
 * @nr_ops:	those of them with an op; @lock
 * @nr_new:	those of them without a number; @lock
 * @stamp:	messages queued, ever; @lock
 * @stamp_stopped: the same when the last endpoint began to end; @lock
 * @kmsgs:	those of them that are the kernel's own; @lock
 * @acking:	the connection's work is to end messages up to @acked; @lock
 * @tx_node:	node that the queued messages are for, 0: none
 *		yet, or any; @lock
 * @tx_life:	times that the peer was found to be another node than @tx_node;
 *		messages queued earlier are stale; @lock
 * @tx_life_open: the same when it was opened last; worker
 * @tx_bytes:	payload of the messages that have got a number; @lock
 * @tx_unasked:	messages sent since one asked for an acknowledgment; @tx_lock
 * @ctl_msg:	a control message too large for xmit_ctl() that waits for
 *		room; @tx_lock
 * @peer_node:	node that @rx_next belongs to, 0: none yet, or a legacy one;
 *		written by the receive path
 * @reborn:	sources may be there of another node than @peer_node; set by the
 *		receive path before XRDS_EV_CTS, or by the worker, which clears it
 * @rx_next:	next sequence number expected; receive path, or with a message
 *		that passes all queues @lock
 * @rx_bytes:	payload of the messages received; as @rx_next
 * @rx_stopped:	a message could be neither taken nor refused: nothing that
 *		follows on this endpoint is taken; receive path
 * @rx_refused:	the message at hand was refused; receive path
 * @rx_ack:	number to be acknowledged, 0: none; receive path, reset by the
 *		worker without an endpoint
 * @rx_unacked_msgs: received since the last acknowledgment; receive path
 * @rx_unacked_bytes: the same in bytes
 * @rx_batch:	more messages are about to come at once; receive path
 * @rx_batch_ack: one of them has asked for an acknowledgment; receive path
 * @ack_work:	sends an acknowledgment that found no data to ride on
 * @push_work:	posts messages that have waited for others; with a reference
 * @cong:	map of the congested ports of the peer, NULL before the first one;
 *		written by the worker
 * @flows:	flows that use this connection; @lock
 * @nr_waiters:	those of them whose sender waits for a port; @lock
 * @gates:	ports of the peer that are shut, and have flows; @lock
 * @refused_due: streams of the peer that are refused, and the peer was not told,
 *		by number; @lock
 * @refused:	those that it was told of; @lock
 * @nr_refused_streams: length of both; written under @lock
 * @refused_floor: lowest number in @refused_due, 0: none; written under @lock
 * @links:	our ports whose changes the peer is told of, or that senders wait for
 *		over loopback; @lock
 * @nr_cong_links: those of them that are congested, and have senders there;
 *		xn->cong_lock
 * @cong_ports:	our ports whose state must be told; @lock
 * @cong_nr:	entries of @cong_ports; @lock
 * @cong_full:	all state must be told; @lock
 * @cong_filling: a message with that is made; @tx_lock
 * @cong_rx:	congestion updates that wait for the worker
 * @cong_rx_mem: their memory, bytes
 * @up_at:	jiffies when it last came up; worker
 * @nr_dials:	attempts of this side; worker
 * @dialled_at:	jiffies when the last of them began; worker
 * @asked_at:	jiffies when it last sent a request; worker
 * @down_by:	why it was up no more last, enum xrds_down_reason; worker
 * @lost_at:	jiffies when it was last lost while it was up; worker
 * @lost_by:	reason of that, negative errno, 0: it was never lost; worker
 * @nr_lost:	times that it was lost while it was up; worker
 * @left_at:	jiffies when its last endpoint that was up was taken away; worker
 * @failed_at:	jiffies when an attempt last failed, or it was last lost; worker
 * @failed_by:	reason of that, negative errno, 0: neither has happened; worker
 * @log_at:	jiffies of its last line in the log that told a failure; worker
 * @log_due:	the log has a failure, and not that it is up again; worker
 */
struct xrds_conn {
	struct rhash_head node;
	struct xrds_conn_key key;
	struct xrds_net *xn;
	u64 id;
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
	struct xrds_dial dial;
	bool dial_waits;
	struct list_head shares;
	u32 nr_shares;
	unsigned long beat_at;
	struct xrds_peer *peer;
	struct list_head peer_entry;
	bool peer_up;
	unsigned long probe_at;
	struct xrds_closing closing;
	struct xrds_quiet quiet;
	bool settled;
	u8 epoch;
	bool dialled;
	bool failed;
	u32 retries;
	u32 nr_refused;
	bool crossed;
	struct xrds_legacy legacy;

	/* tx */
	spinlock_t tx_lock;		/* L2 */
	void *ep;
	bool tx_open;
	bool tx_bundles;
	bool tx_corked;
	struct xrds_msg *tx_bulk;
	bool tx_held;
	u64 tx_seq;
	u64 tx_ack_sent;
	u64 tx_bye_ack;
	u64 tx_asked;
	u32 tx_unasked;
	u32 tx_taken;
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
	bool no_flush;
	struct xrds_flow *own;
	struct xrds_fq fq;
	struct xrds_fq_past fq_past;
	u32 bulk_over;
	struct list_head again;
	struct list_head inflight;
	struct list_head ops;
	u64 acked;
	u64 acked_before;
	u64 tx_bytes;
	u64 tx_node;
	u64 stamp;
	u64 stamp_stopped;
	u32 tx_life;
	u32 tx_life_open;
	u32 nr_msgs;
	u32 nr_ops;
	u32 nr_new;
	u32 kmsgs;
	bool acking;
	struct list_head flows;
	u32 nr_waiters;
	struct list_head gates;
	struct list_head refused_due;
	struct list_head refused;
	u32 nr_refused_streams;
	u64 refused_floor;
	struct list_head links;
	u32 nr_cong_links;
	u16 cong_ports[XRDS_CONG_PENDING];
	u8 cong_nr;
	bool cong_full;
	bool cong_filling;

	/* rx */
	struct xrds_wire_hello hello ____cacheline_aligned_in_smp;
	u64 peer_node;
	bool reborn;
	u64 rx_next;
	u64 rx_bytes;
	bool rx_stopped;
	bool rx_refused;
	u64 rx_ack;
	u32 rx_unacked_msgs;
	u32 rx_unacked_bytes;
	bool rx_batch;
	bool rx_batch_ack;
	struct delayed_work ack_work;
	struct delayed_work push_work;
	unsigned long *cong;
	struct sk_buff_head cong_rx;
	atomic_t cong_rx_mem;
	unsigned long up_at;
	u32 nr_dials;
	unsigned long dialled_at;
	unsigned long asked_at;
	u32 down_by;
	unsigned long heard_at;
	unsigned long lost_at;
	unsigned long left_at;
	int lost_by;
	u32 nr_lost;
	unsigned long failed_at;
	int failed_by;
	unsigned long log_at;
	bool log_due;
};

/* Addresses of a message that the peer has sent: over loopback the connection
 * is the sender's.
 */
static inline const struct in6_addr *
xrds_conn_rx_daddr(const struct xrds_conn *conn)
{
	return conn->key.loop ? &conn->key.faddr : &conn->key.laddr;
}

static inline const struct in6_addr *
xrds_conn_rx_saddr(const struct xrds_conn *conn)
{
	return conn->key.loop ? &conn->key.laddr : &conn->key.faddr;
}

/* The peer has sent something, or its device has acknowledged something. No
 * lock: the writers agree on the time.
 */
static inline void xrds_conn_heard(struct xrds_conn *conn)
{
	WRITE_ONCE(conn->heard_at, jiffies);
}

/* ----------------------------------------------------------- transport */

/* mainline's number; it is not among RDS_TRANS_* */
enum { XRDS_TRANS_LOOP = 3 };

/* xrds_transport.caps */
#define XRDS_CAP_RDMA		1	/* RDMA ops and memory regions */

enum { XRDS_DEVICE_NAME_BYTES = 64 };

/**
 * struct xrds_conn_detail - what dumps say of an endpoint
 * @device:	name of the device
 * @shared_rq:	receives from the device's shared receive queue
 * @qpn:	number of the queue pair
 * @peer_qpn:	the same of the peer's, 0: not known
 * @version:	of the protocol, 256 * major + minor, 0: not known
 * @mtu:	of the path, bytes, 0: not known
 * @fragment:	most payload of a fragment, bytes
 * @send_slots:	work requests that may be posted
 * @send_used:	those of them that are
 * @credits:	fragments that the peer has granted and that are not used
 * @recv_window: most fragments granted to the peer at a time
 * @retry_count: retransmissions before the peer counts as dead
 * @rtt_ns:	round trip of a send, smoothed, 0: not known
 */
struct xrds_conn_detail {
	char device[XRDS_DEVICE_NAME_BYTES];
	bool shared_rq;
	u32 qpn;
	u32 peer_qpn;
	u32 version;
	u32 mtu;
	u32 fragment;
	u32 send_slots;
	u32 send_used;
	u32 credits;
	u32 recv_window;
	u32 retry_count;
	u64 rtt_ns;
};

/**
 * struct xrds_device_detail - what dumps say of a device
 * @name:	its name
 * @guid:	its number in the world
 * @shared_rq:	endpoints share a receive queue
 * @fences:	can be trusted with fences
 * @atomics:	has atomic operations
 * @endpoints:	queue pairs of connections
 * @regions:	memory regions
 * @recv_posted: buffers in the shared receive queue
 * @recv_bytes:	size of one of them, 0: there is no queue
 * @max_qp:	queue pairs
 * @max_qp_wr:	work requests of a queue pair
 * @max_cqe:	entries of a completion queue
 * @max_sge:	gather entries of a send
 * @max_srq:	shared receive queues
 * @max_srq_wr:	buffers of a shared receive queue
 * @max_mr:	memory regions
 * @max_mr_pages: pages of one of them
 * @max_rd_atomic: reads and atomics under way at a time
 */
struct xrds_device_detail {
	char name[XRDS_DEVICE_NAME_BYTES];
	u64 guid;
	bool shared_rq;
	bool fences;
	bool atomics;
	u32 endpoints;
	u32 regions;
	u32 recv_posted;
	u32 recv_bytes;
	u32 max_qp;
	u32 max_qp_wr;
	u32 max_cqe;
	u32 max_sge;
	u32 max_srq;
	u32 max_srq_wr;
	u32 max_mr;
	u32 max_mr_pages;
	u32 max_rd_atomic;
};

/**
 * struct xrds_transport - what carries messages between two nodes
 * @name:	name in dumps and log lines
 * @owner:	module
 * @type:	RDS_TRANS_*, XRDS_TRANS_LOOP
 * @caps:	XRDS_CAP_*
 * @node:	list of transports
 * @leaving:	being unregistered: no connection is made any more
 * @local:	is the address one of this transport's in the namespace?
 *		Returns 0 or -EADDRNOTAVAIL. Process context.
 * @listen_get:	a socket is about to be bound to such an address: be ready for
 *		requests. Process context, may sleep. Optional. Returns 0 or a
 *		negative errno.
 * @listen_put:	one that was, or was about to be, has gone. As @listen_get.
 * @dial:	start an attempt: make an endpoint, resolve the address. Later
 *		steps are announced by XRDS_EV_RESOLVED.
 *		Returns 0 or a negative errno.
 * @advance:	a step of resolving is done. Returns -EINPROGRESS while steps
 *		remain, 0 when the request was sent, else a negative errno.
 * @accept:	take the pending request (xrds_conn_take_pending()), make an
 *		endpoint for it and reply. Returns 0 or a negative errno. This
 *		and the next only where xrds_conn_request() is called.
 * @refuse:	reject and free a pending request.
 * @start:	the endpoint is established: post receive buffers, send the
 *		clear-to-send. Returns 0 or a negative errno.
 * @stop:	take conn->ep away (under tx_lock), disconnect, wait until the
 *		device has returned all buffers, free it. Bounded; does
 *		nothing without endpoint.
 * @flushed:	does the peer's device have all that counts for the end of the
 *		connection? Returns 1; 0: not yet, XRDS_EV_IDLE follows; or a
 *		negative errno: it never will. Optional: it always has.
 * @payload:	process context, may sleep: take the payload of a message from a
 *		program, in the skb that its receiver will get; it becomes
 *		msg->skb. Returns it or an ERR_PTR(). Optional: without it the
 *		payload goes into msg->bv.
 * @prepare:	process context, may sleep: make what xmit() will need for the
 *		message. Optional. Returns 0 or a negative errno. Its object
 *		for msg->rop is in one piece, which the core frees with the op.
 * @xmit:	post a whole message; msg->seq and msg->flags are set, but with
 *		msg->bulk it is xrds_txq_bulk_number() that sets msg->seq: to be
 *		called when the last of the message is about to be posted. Called
 *		with tx_lock held and conn->tx_open. Takes its own reference
 *		on the message for as long as it needs it. Returns 0; -EAGAIN
 *		when it lacks slots or credits, in which case it calls
 *		xrds_tx_pump() once they come; any other error breaks the
 *		connection. Unless it answers -EAGAIN it ends msg->rop, by
 *		xrds_rop_done() exactly once, not later than in @stop. It may
 *		take those that go next with it: xrds_tx_dequeue_small(). It
 *		calls xrds_txq_bulk_went() for each part of a message with
 *		msg->bulk, and is called again with it to go on while
 *		conn->tx_held.
 * @mr_reg:	register mr->pin for the access asked for; sets mr->key.rkey and
 *		mr->offset. Process context, may sleep. Returns 0 or a negative
 *		errno. This and the next two only with XRDS_CAP_RDMA.
 * @mr_unreg:	make the key void; when it returns no peer touches the memory,
 *		for certain with mr->invalidate, else as far as the device goes
 *		by that. Process context, may sleep.
 * @describe:	fill in the endpoint's row of RDS_INFO_IB_CONNECTIONS. Called
 *		with tx_lock held and an endpoint that is up. Only
 *		RDS_TRANS_IB has it.
 * @detail:	fill in the endpoint's attributes for netlink. Called with
 *		tx_lock held and an endpoint. Optional.
 * @device:	fill in those of the device with this number, from 0.
 *		Process context, may sleep. Optional. Returns 0, -ENOENT when
 *		there are no more, -EAGAIN when the namespace does not see
 *		this one.
 * @xmit_ctl:	post a control message of at most XRDS_CTL_INLINE_BYTES, or
 *		an acknowledgment (type 0). Called as xmit(), same returns; and
 *		-EINPROGRESS for a keepalive that cannot be posted now, while
 *		the device sends something else: that tells as much.
 *
 * dial, advance, accept, start, flushed, stop run in the connection's work and
 * may sleep, but wait for nothing that is not bounded.
 */
struct xrds_transport {
	const char *name;
	struct module *owner;
	u32 type;
	u32 caps;
	struct list_head node;
	bool leaving;

	int (*local)(struct net *net, const struct in6_addr *addr, u32 scope);
	int (*listen_get)(struct net *net);
	void (*listen_put)(struct net *net);
	int (*dial)(struct xrds_conn *conn);
	int (*advance)(struct xrds_conn *conn);
	int (*accept)(struct xrds_conn *conn);
	void (*refuse)(struct xrds_conn *conn, struct xrds_request *req);
	int (*start)(struct xrds_conn *conn);
	int (*flushed)(struct xrds_conn *conn);
	void (*stop)(struct xrds_conn *conn);
	struct sk_buff *(*payload)(struct iov_iter *from, u32 len);
	int (*prepare)(struct xrds_conn *conn, struct xrds_msg *msg);
	int (*xmit)(struct xrds_conn *conn, struct xrds_msg *msg);
	int (*xmit_ctl)(struct xrds_conn *conn, u8 type, const void *data,
			u32 len);
	int (*mr_reg)(struct xrds_mr *mr);
	void (*mr_unreg)(struct xrds_mr *mr);
	void (*describe)(const struct xrds_conn *conn,
			 struct rds6_info_rdma_connection *row);
	void (*detail)(const struct xrds_conn *conn,
		       struct xrds_conn_detail *d);
	int (*device)(const struct net *net, unsigned int nr,
		      struct xrds_device_detail *d);
};

/* ------------------------------------------------- the API of transports */

/* conn/ */
struct xrds_conn *xrds_conn_find(struct xrds_net *xn,
				 const struct xrds_conn_key *key);
struct xrds_conn *xrds_conn_find_or_create(struct xrds_net *xn,
					   struct xrds_user *user,
					   const struct xrds_conn_key *key,
					   const struct xrds_transport *trans,
					   gfp_t gfp);
void xrds_conn_get(struct xrds_conn *conn);
void xrds_conn_put(struct xrds_conn *conn);
void xrds_conn_event(struct xrds_conn *conn, enum xrds_event ev);
void xrds_conn_ep_event(struct xrds_conn *conn, u32 gen, enum xrds_event ev,
			int error);
void xrds_conn_wire_error(struct xrds_conn *conn, u32 gen,
			  enum xrds_wire_err err);
bool xrds_conn_request(struct xrds_conn *conn, struct xrds_request *req);
struct xrds_request *xrds_conn_take_pending(struct xrds_conn *conn);
void xrds_rx_hello(struct xrds_conn *conn, u32 gen,
		   const struct xrds_wire_hello *hello);
void xrds_conn_fill_hello(struct xrds_conn *conn,
			  struct xrds_wire_hello *hello);
void xrds_conn_net_end_transport(const struct xrds_transport *trans);
void xrds_conn_net_end_all(struct list_head *nets,
			   const struct xrds_transport *trans);
bool xrds_conn_netns_unused(const struct xrds_net *xn);
void xrds_legacy_heard(struct xrds_conn *conn);
void xrds_legacy_confirm(struct xrds_conn *conn, u64 ack);
void xrds_legacy_start(struct xrds_conn *conn, u32 gen, u64 ack);
u64 xrds_legacy_ack(const struct xrds_conn *conn);
void xrds_tx_pump(struct xrds_conn *conn);
bool xrds_tx_waits(struct xrds_conn *conn);
bool xrds_tx_has_small(struct xrds_conn *conn, u32 room);
struct xrds_msg *xrds_tx_dequeue_small(struct xrds_conn *conn, u32 room);
u64 xrds_tx_ack_value(struct xrds_conn *conn);
void xrds_tx_need_ack(struct xrds_conn *conn);
int xrds_tx_acked(struct xrds_conn *conn, u64 ack);
void xrds_tx_op_failed(struct xrds_conn *conn, struct xrds_msg *msg);
bool xrds_txq_bulk_went(struct xrds_conn *conn, u32 bytes);
u64 xrds_txq_bulk_number(struct xrds_conn *conn, struct xrds_msg *msg);
void xrds_rx_msg(struct xrds_conn *conn, const struct xrds_wire_msg *wm,
		 struct sk_buff *skb);

/* Several messages are about to come at once; context as xrds_rx_msg(). */
static inline void xrds_rx_batch_begin(struct xrds_conn *conn)
{
	conn->rx_batch = true;
}

/* They have come; context as xrds_rx_msg(). */
static inline void xrds_rx_batch_end(struct xrds_conn *conn)
{
	conn->rx_batch = false;
	if (!conn->rx_batch_ack)
		return;
	conn->rx_batch_ack = false;
	xrds_tx_need_ack(conn);
}

void xrds_cong_recv(struct xrds_conn *conn, enum xrds_ctl_type type,
		    struct sk_buff *skb);
void xrds_refuse_recv(struct xrds_conn *conn, struct sk_buff *skb);

/* rdma/ */
void xrds_rop_done(struct xrds_rop *rop, s32 status);
struct xrds_mr *xrds_mr_find(struct xrds_net *xn, const struct in6_addr *addr,
			     u32 rkey);
void xrds_mr_put(struct xrds_mr *mr);
void xrds_mr_used(struct xrds_net *xn, const struct in6_addr *addr, u32 rkey);
bool xrds_mr_make_dead(struct xrds_mr *mr, u32 lost);
void xrds_mr_lost(struct xrds_mr *mr);
void xrds_mr_flush(struct xrds_net *xn);

/* transport.c */
void xrds_transport_register(struct xrds_transport *trans);
void xrds_transport_unregister(struct xrds_transport *trans);
const struct xrds_transport *xrds_transport_get(u32 type);
const struct xrds_transport *xrds_transport_for(struct net *net,
						const struct in6_addr *addr,
						u32 scope);
int xrds_transport_device(const struct net *net, unsigned int *nr,
			  struct xrds_device_detail *d, const char **transport,
			  unsigned int *gone);
void xrds_transport_device_gone(void);

/* loop/loop.c */
extern struct xrds_transport xrds_loop_transport;
int xrds_loop_init(void);
void xrds_loop_exit(void);
void xrds_loop_look(struct xrds_conn *conn);

/* loop/rdma.c */
int xrds_loop_rdma_mr_reg(struct xrds_mr *mr);
void xrds_loop_rdma_mr_unreg(struct xrds_mr *mr);
/* most bytes that an op over loopback copies with softirqs off */
enum { XRDS_LOOP_PIECE_BYTES = 64 << 10 };
s32 xrds_loop_rdma(struct xrds_conn *conn, const struct xrds_rop *rop);
s32 xrds_loop_rdma_long(struct xrds_conn *conn, const struct xrds_rop *rop,
			const bool *stop);

#endif /* _XRDS_TRANSPORT_H */
