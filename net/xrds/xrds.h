/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * XRDS core: objects, and the functions that files share.
 *
 * The sections stand in the order in which a message meets the files: af_xrds,
 * opt, addr, send, dest, space, conn, xmit, transport, recv, cong, and what all
 * of them use. No RDMA type is known here.
 *
 * Locks, outermost first. A lock may be taken while holding those above it,
 * never the other way round; two locks of one level are never nested.
 *
 *   L1  lock_sock(sk)              bind state, options          process
 *   L2  conn->tx_lock              posting order, conn->ep,     process, BH
 *                                  sequence numbers
 *   L3  conn->lock                 send queue, in flight, acks  process, BH
 *   L4  xs->lock                   destinations, their space    process, BH
 *   L5  sk_receive_queue.lock,     leaves                       process, BH
 *       xn->lock, xn->cong_lock
 *
 * A connection's state is written by its work item only. Nothing of ours is
 * held while rdma_cm is called, nor taken in a way that could wait for it.
 *
 * tx_lock is a spin lock, not a mutex, so that a completion which returns
 * credits or send slots can post what waits for them at once: handing that to
 * a work item would cost a quarter of a round trip on soft-RoCE.
 */
#ifndef _XRDS_H
#define _XRDS_H

#include <linux/bvec.h>
#include <linux/in6.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/net.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/ipv6.h>
#include <net/sock.h>

#include "compat.h"
#include "wire.h"
#include <linux/xrds.h>

struct xrds_conn;
struct xrds_dest;
struct xrds_mr;
struct xrds_msg;
struct xrds_net;
struct xrds_rop;
struct xrds_sock;
struct xrds_transport;

/* ------------------------------------------------------------ counters */

enum xrds_counter {
#define X(sym, name, ...) XRDS_C_##sym
#include "list_counters.h"
#undef X
	/* one per enum xrds_wire_err, in its order */
	XRDS_C_WIRE,
	XRDS_C_NR = XRDS_C_WIRE + XRDS_WIRE_NR_ERRORS,
};

struct xrds_counters {
	u64	v[XRDS_C_NR];
};

/**
 * struct xrds_extra_counters - counters that a transport adds to the dump
 * @node:	xrds_counters_register()
 * @nr:		how many there are
 * @names:	their names
 * @helps:	what they count, a line each
 * @sum:	fills in @nr values for the namespace
 */
struct xrds_extra_counters {
	struct list_head node;
	unsigned int nr;
	const char * const *names;
	const char * const *helps;
	void (*sum)(struct net *net, u64 *values);
};

/* ------------------------------------------------------------- limit.c */

/* What is bounded; their counters follow XRDS_C_LIMIT_MEM in this order */
enum xrds_limit {
	XRDS_LIMIT_MEM,		/* bytes of sockets and what they send */
	XRDS_LIMIT_PINNED,	/* bytes */
	XRDS_LIMIT_KEYS,
	XRDS_LIMIT_CONNS,
	XRDS_LIMITS
};

/* What objects count for beside payload, about their size and the core's */
enum {
	XRDS_SOCK_COST_BYTES	= 4096,
	XRDS_DEST_COST_BYTES	= 1024,
	XRDS_MSG_COST_BYTES	= 1024,
	XRDS_SOURCE_COST_BYTES	= 256,
};

/**
 * struct xrds_rate - how often in this second
 * @lock:	a leaf
 * @since:	jiffies when the second began; @lock
 * @nr:		how often since; @lock
 */
struct xrds_rate {
	spinlock_t lock;		/* since, nr */
	unsigned long since;
	unsigned int nr;
};

/**
 * struct xrds_user - what one user has, in all namespaces
 * @node:	in the table
 * @uid:	who
 * @trusted:	has CAP_SYS_RESOURCE: not bound
 * @ref:	one for each socket, and for what outlives that
 * @used:	what it has
 * @dials:	attempts to connect
 */
struct xrds_user {
	struct hlist_node node;
	kuid_t uid;
	bool trusted;
	refcount_t ref;
	atomic64_t used[XRDS_LIMITS];
	struct xrds_rate dials;
};

struct xrds_user *xrds_user_get_current(void);
struct xrds_user *xrds_user_get(struct xrds_user *user);
void xrds_user_put(struct xrds_user *user);
int xrds_limit_charge(struct xrds_net *xn, struct xrds_user *user,
		      enum xrds_limit l, u64 n);
void xrds_limit_force(struct xrds_net *xn, struct xrds_user *user,
		      enum xrds_limit l, u64 n);
void xrds_limit_uncharge(struct xrds_net *xn, struct xrds_user *user,
			 enum xrds_limit l, u64 n);
bool xrds_limit_dial(struct xrds_net *xn, struct xrds_user *user);
void xrds_limit_net_init(struct xrds_net *xn);

/* ------------------------------------------------------- per namespace */

enum { XRDS_SYSCTL_DIRS = 3 };

/**
 * struct xrds_net - all state of one network namespace
 * @net:	the namespace; no reference, pernet exit comes first
 * @born:	jiffies when it was made: no socket is older
 * @binds:	bound sockets by (address, port, scope)
 * @conns:	connections by struct xrds_conn_key
 * @dests:	destinations by struct xrds_dest_key
 * @nodes:	nodes that RDMA ops went to, by struct xrds_node_key
 * @mrs:	memory regions by struct xrds_mr_key
 * @sources:	who has spoken to a socket, by struct xrds_dest_key
 * @counters:	per-CPU counters
 * @lock:	guards @socks, @conn_list and @lingering
 * @socks:	all sockets, RCU readers
 * @sock_ids:	the same sockets by their numbers, RCU readers
 * @next_sock_id: where the search for the next number begins; @sock_ids
 * @conn_list:	all connections, RCU readers
 * @lingering:	closed sockets that still deliver, by their deadline
 * @linger_work: gives up on them at their deadline
 * @nr_conns:	connections not yet freed
 * @nr_socks:	sockets not yet destroyed, closed ones included
 * @nr_dests:	destinations not yet freed
 * @nr_msgs:	messages not yet freed
 * @nr_rops:	RDMA ops not yet freed
 * @nr_mrs:	memory regions not yet freed
 * @gone:	woken when @nr_conns or @nr_socks falls
 * @cong_lock:	guards @cong_socks
 * @cong_socks:	sockets that are congested
 * @exiting:	the namespace or the module is going away
 * @used:	what there is of what is bounded
 * @dials:	attempts to connect
 * @max:	bounds of @used; KiB for bytes
 * @max_dials:	attempts to connect in a second
 * @user_percent: of the bounds for one user; that of the first namespace
 * @unprivileged: sockets need no capability
 * @sysctl:	registrations of the directories of knobs
 * @reconnect_min_ms: first delay between attempts, milliseconds
 * @reconnect_max_ms: bound of the growing delay, milliseconds
 * @max_unacked_packets: messages received before an acknowledgment is sent
 * @max_unacked_bytes: bytes received before an acknowledgment is sent
 * @ping_enable: answer messages to port 0
 * @linger_ms:	how long a closed socket delivers, milliseconds
 * @sock_max_dests: destinations one socket may hold queues for
 * @sock_max_recv_kb: memory of what waits in one socket, beside what
 *		SO_RCVBUF allows, KiB
 * @connect_timeout_ms: bound of one attempt to connect, milliseconds
 * @heartbeat_ms: longest silence on a connection, milliseconds; 0: any
 * @idle_ms:	age at which an idle connection is collected, milliseconds; 0:
 *		none
 * @loop_delay_ms: loopback: delay of each message
 * @loop_loss_permille: loopback: chance that a message is lost, which resets
 *		the connection as on a reliable QP
 * @loop_bounce_ms: loopback: period of forced connection resets
 */
struct xrds_net {
	struct net *net;
	unsigned long born;
	struct rhashtable binds;
	struct rhashtable conns;
	struct rhashtable dests;
	struct rhashtable nodes;
	struct rhashtable mrs;
	struct rhashtable sources;
	struct xrds_counters __percpu *counters;
	spinlock_t lock;		/* lists of this namespace */
	struct list_head socks;
	struct xarray sock_ids;
	u32 next_sock_id;
	struct list_head conn_list;
	struct list_head lingering;
	struct delayed_work linger_work;
	atomic_t nr_conns;
	atomic_t nr_socks;
	atomic_t nr_dests;
	atomic_t nr_msgs;
	atomic_t nr_rops;
	atomic_t nr_mrs;
	wait_queue_head_t gone;
	spinlock_t cong_lock;		/* cong_socks */
	struct list_head cong_socks;
	bool exiting;
	atomic64_t used[XRDS_LIMITS];
	struct xrds_rate dials;

	unsigned int max[XRDS_LIMITS];
	unsigned int max_dials;
	unsigned int user_percent;
	unsigned int unprivileged;
	struct ctl_table_header *sysctl[XRDS_SYSCTL_DIRS];
	unsigned int reconnect_min_ms;
	unsigned int reconnect_max_ms;
	unsigned int max_unacked_packets;
	unsigned int max_unacked_bytes;
	unsigned int ping_enable;
	unsigned int linger_ms;
	unsigned int sock_max_dests;
	unsigned int sock_max_recv_kb;
	unsigned int connect_timeout_ms;
	unsigned int heartbeat_ms;
	unsigned int idle_ms;
	unsigned int loop_delay_ms;
	unsigned int loop_loss_permille;
	unsigned int loop_bounce_ms;
};

struct xrds_net *xrds_net(const struct net *net);

static inline void xrds_count(struct xrds_net *xn, enum xrds_counter c)
{
	this_cpu_inc(xn->counters->v[c]);
}

static inline void xrds_count_add(struct xrds_net *xn, enum xrds_counter c,
				  u64 n)
{
	this_cpu_add(xn->counters->v[c], n);
}

/* sysctl.c */
int xrds_sysctl_net_init(struct xrds_net *xn);
void xrds_sysctl_net_exit(struct xrds_net *xn);

/* stats.c */
void xrds_counters_register(struct xrds_extra_counters *extra);
void xrds_counters_unregister(struct xrds_extra_counters *extra);
struct xrds_dump;

/**
 * struct xrds_counter_row - a counter as dumps have it
 * @name:	its name
 * @help:	what it counts, in a line
 * @value:	its value
 * @level:	it is how much there is now
 */
struct xrds_counter_row {
	const char *name;
	const char *help;
	u64 value;
	bool level;
};

typedef int (*xrds_counter_fn)(void *arg, const struct xrds_counter_row *row);

int xrds_counters_each(struct xrds_net *xn, xrds_counter_fn fn, void *arg);
int xrds_counters_dump(struct xrds_dump *d);
const char *xrds_counter_name(enum xrds_counter c);

/* -------------------------------------------------------------- info.c */

/**
 * struct xrds_dump - rows of an RDS_INFO_* dump
 * @xn:		namespace
 * @v6:		rows have IPv6 addresses, else IPv4
 * @rows:	the rows, zeroed; NULL: none
 * @each:	size of one, bytes
 * @room:	how many @rows has room for
 * @nr:		how many there are
 */
struct xrds_dump {
	struct xrds_net *xn;
	bool v6;
	void *rows;
	size_t each;
	size_t room;
	size_t nr;
};

void *xrds_dump_row(struct xrds_dump *d);
int xrds_info_getsockopt(struct sock *sk, int optname, char __user *optval,
			 int __user *optlen);

/* ----------------------------------------------------------- netlink.c */

int xrds_nl_init(void);
void xrds_nl_exit(void);
void xrds_nl_conn_up(struct xrds_conn *conn);
void xrds_nl_conn_down(struct xrds_conn *conn, unsigned int reason, int error);

/* -------------------------------------------------------------- addr.c */

/**
 * struct xrds_addr - a parsed socket address
 * @addr:	address, IPv4 mapped
 * @scope:	interface index of a link-local address, else 0
 * @port:	port, host byte order
 */
struct xrds_addr {
	struct in6_addr addr;
	u32	scope;
	u16	port;
};

/**
 * struct xrds_bind_key - key of the bind table
 * @addr:	address, IPv4 mapped
 * @scope:	interface index of a link-local address, else 0
 * @port:	port, host byte order; 32 bits wide so that there is no padding
 */
struct xrds_bind_key {
	struct in6_addr addr;
	u32	scope;
	u32	port;
};

int xrds_addr_parse(struct xrds_addr *out, const void *sa, int len);
int xrds_addr_check_dest(const struct xrds_addr *a);
int xrds_addr_build(const struct xrds_addr *a, struct sockaddr_storage *ss);
bool xrds_addr_is_loopback(const struct in6_addr *addr);

int xrds_bind_init(struct xrds_net *xn);
void xrds_bind_exit(struct xrds_net *xn);
int xrds_bind_add(struct xrds_sock *xs, const struct xrds_addr *a);
void xrds_bind_del(struct xrds_sock *xs);
struct xrds_sock *xrds_bind_lookup(struct xrds_net *xn,
				   const struct in6_addr *addr, u32 scope,
				   u16 port);

/* ----------------------------------------------------------- af_xrds.c */

/**
 * struct xrds_sock - one AF_RDS socket
 * @sk:		must be first
 * @xn:		namespace state
 * @user:	who made it, with a reference
 * @id:		number in xn->sock_ids; constant
 * @xn_node:	in xn->socks; xn->lock, RCU readers
 * @bind_node:	in xn->binds while bound
 * @bind:	bound address and port; written once under lock_sock before
 *		@bound is set
 * @bound:	@bind is valid; store-release after, load-acquire before it
 * @peer:	default destination of connect(); written under lock_sock and
 *		@lock, read under either
 * @connected:	@peer is valid; guarded the same way
 * @trans:	transport that owns the bound address, with a module
 *		reference; written as @bind. Before that what SO_RDS_TRANSPORT
 *		has asked for; lock_sock
 * @tos:	type of service of connections this socket uses; @lock
 * @lock:	L4, see the head of this file
 * @dests:	destinations of this socket; @lock
 * @last_dest:	the one that was used last, or NULL; written under @lock, RCU
 *		readers
 * @idle_dests:	those of them with nothing queued, oldest first; @lock
 * @nr_dests:	length of @dests; @lock
 * @nr_refused:	destinations that refused the last send; @lock
 * @nr_ready:	those of them that would accept it now; @lock
 * @queued_bytes: payload accepted and not yet acknowledged; @lock
 * @queued_msgs: the same in messages; @lock
 * @reply_reserve: XRDS_REPLY_RESERVE, bytes; @lock
 * @nr_promises: reservations for replies not used yet; @lock
 * @dest_sndbuf: default of XRDS_DEST_SNDBUF, 0: SO_SNDBUF's value; @lock
 * @nodes:	nodes that RDMA ops went to; @lock
 * @nr_nodes:	length of @nodes; @lock
 * @nr_armed:	nodes at which a barrier is armed; @lock
 * @events:	nodes at which what was waited for has come about; @lock
 * @notices:	ops whose end the program has not read yet; @lock
 * @mrs:	memory regions; @lock
 * @ending:	the socket sends nothing more: its streams end; @lock
 * @eos_reason:	what the marks say, enum xrds_eos_reason; @lock
 * @held:	connection with messages of a sendmmsg() that wait for its last,
 *		with a reference; exchanged without lock
 * @eos_due:	destinations whose mark is to be queued; @lock
 * @nr_eos:	marks that are not acknowledged yet, due ones included; @lock
 * @eos_work:	queues marks that become due
 * @drained:	woken when everything is acknowledged after close
 * @linger_node: in xn->lingering after close; xn->lock
 * @linger_end:	jiffies when a closed socket gives up
 * @rcv_bytes:	payload charged in sk_receive_queue; its lock
 * @congested:	over the receive limit and not yet drained to half of it;
 *		sk_receive_queue.lock
 * @cong_node:	in xn->cong_socks while @congested; xn->cong_lock
 * @sources:	who has spoken to this socket; those whose stream has ended
 *		come first; sk_receive_queue.lock, as all down to @all_ended
 * @last_source: the last of them to speak
 * @nr_sources:	length of @sources
 * @nr_open:	sources whose stream has not ended
 * @heard:	there was a source
 * @sources_lost: one could not be noted
 * @all_ended:	every stream has ended, as far as we know
 * @rx_trace:	SO_RDS_MSG_RXPATH_LATENCY; @lock
 * @recverr:	RDS_RECVERR; lock_sock
 * @cong_monitor: RDS_CONG_MONITOR; @lock
 * @cong_eagain: XRDS_CONG_EAGAIN; lock_sock
 * @cong_news:	a destination that refused us for congestion is clear again,
 *		RDS_CONG_MONITOR is off, and no poll has reported it yet; @lock
 * @cleared:	the same destinations while RDS_CONG_MONITOR is on; @lock
 */
struct xrds_sock {
	struct sock sk;
	struct xrds_net *xn;
	struct xrds_user *user;
	u32 id;
	struct list_head xn_node;
	struct rhash_head bind_node;
	struct xrds_bind_key bind;
	bool bound;
	struct xrds_addr peer;
	bool connected;
	const struct xrds_transport *trans;
	u8 tos;

	spinlock_t lock;		/* L4 */
	struct list_head dests;
	struct xrds_dest *last_dest;
	struct list_head idle_dests;
	u32 nr_dests;
	u32 nr_refused;
	u32 nr_ready;
	u64 queued_bytes;
	u64 queued_msgs;
	u32 reply_reserve;
	u32 nr_promises;
	u32 dest_sndbuf;
	struct list_head nodes;
	u32 nr_nodes;
	u32 nr_armed;
	struct list_head events;
	struct list_head notices;
	struct list_head mrs;
	bool ending;
	u32 eos_reason;
	struct xrds_conn *held;
	struct list_head eos_due;
	u32 nr_eos;
	struct delayed_work eos_work;
	wait_queue_head_t drained;
	struct list_head linger_node;
	unsigned long linger_end;

	u64 rcv_bytes;
	bool congested;
	struct list_head cong_node;

	struct list_head sources;
	struct xrds_source *last_source;
	u32 nr_sources;
	u32 nr_open;
	bool heard;
	bool sources_lost;
	bool all_ended;

	struct rds_rx_trace_so rx_trace;
	bool recverr;
	bool cong_monitor;
	bool cong_eagain;
	bool cong_news;
	struct list_head cleared;
};

void xrds_sock_drained(struct xrds_sock *xs);

static inline struct xrds_sock *xrds_sk(const struct sock *sk)
{
	return (struct xrds_sock *)sk;
}

/* The payload bytes asked for: the core stores twice that */
static inline u32 xrds_sk_rcvbuf(const struct xrds_sock *xs)
{
	return READ_ONCE(xs->sk.sk_rcvbuf) / 2;
}

static inline u32 xrds_sk_sndbuf(const struct xrds_sock *xs)
{
	return READ_ONCE(xs->sk.sk_sndbuf) / 2;
}

static inline bool xrds_sk_bound(const struct xrds_sock *xs)
{
	/* pairs with the store-release in xrds_bind() */
	return smp_load_acquire(&xs->bound);
}

/* --------------------------------------------------------------- opt.c */

int xrds_setsockopt(struct socket *sock, int level, int optname,
		    sockptr_t optval, unsigned int optlen);
int xrds_getsockopt(struct socket *sock, int level, int optname,
		    char __user *optval, int __user *optlen);

/* -------------------------------------------------------------- send.c */

/* What a message costs at least, in the send space of its destination and in
 * the receive buffer: empty messages need memory too.
 */
enum { XRDS_MSG_MIN_CHARGE_BYTES = 128 };

static inline u32 xrds_msg_charge(u32 len)
{
	return max_t(u32, len, XRDS_MSG_MIN_CHARGE_BYTES);
}

/**
 * struct xrds_msg - a message on its way out
 * @ref:	one for the list it is on, one per posting
 * @node:	on exactly one of conn->sendq and conn->inflight; conn->lock
 * @xn:		namespace, for accounting
 * @dest:	where its space is charged, with a reference; NULL for messages
 *		of the kernel itself
 * @accepted:	jiffies when it was queued
 * @seq:	sequence number; 0 until first transmission; conn->tx_lock
 * @len:	payload, bytes
 * @sport:	source port
 * @dport:	destination port
 * @flags:	XRDS_F_* of its header; conn->tx_lock
 * @has:	XRDS_HAS_RDMA, XRDS_HAS_RDMA_DEST: which keys its header has
 * @rdma_rkey:	see struct xrds_wire_msg
 * @dest_rkey:	see struct xrds_wire_msg
 * @dest_off:	see struct xrds_wire_msg
 * @rop:	op in front of it, with a reference; ends at the transport once
 *		@posted is set
 * @posted:	was handed to the transport at least once, or is now; conn->lock,
 *		constant once @ended is set
 * @ended:	was taken out of the queues; conn->lock
 * @eos_reason:	with XRDS_F_EOS: enum xrds_eos_reason
 * @skb:	loopback: the receiver's view, made when the message was
 * @nr_bv:	entries of @bv
 * @bv:		payload; each holds a page reference
 */
struct xrds_msg {
	refcount_t ref;
	struct list_head node;
	struct xrds_net *xn;
	struct xrds_dest *dest;
	unsigned long accepted;
	u64 seq;
	u32 len;
	u16 sport;
	u16 dport;
	u8 flags;
	u8 has;
	bool posted;
	bool ended;
	u32 eos_reason;
	u32 rdma_rkey;
	u32 dest_rkey;
	u32 dest_off;
	struct xrds_rop *rop;
	struct sk_buff *skb;
	unsigned int nr_bv;
	struct bio_vec bv[];
};

int xrds_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
void xrds_send_push(struct xrds_sock *xs);
struct xrds_msg *xrds_msg_alloc(struct xrds_net *xn, unsigned int nr_bv,
				gfp_t gfp);
void xrds_msg_put(struct xrds_msg *msg);
struct page *xrds_msg_page(u32 len, u32 *bytes);
int xrds_msg_frag(struct bio_vec *bv, struct iov_iter *from, u32 len);

static inline void xrds_msg_get(struct xrds_msg *msg)
{
	refcount_inc(&msg->ref);
}

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

/* The mark at the end of a stream, see eos.c */
enum xrds_eos_state {
	XRDS_EOS_NONE,		/* the stream goes on, or never began */
	XRDS_EOS_DUE,		/* everything before it is acknowledged */
	XRDS_EOS_QUEUED,	/* its connection has it */
	XRDS_EOS_DONE,		/* acknowledged, or given up */
};

/**
 * struct xrds_dest - what one socket has under way to one destination
 * @node:	in xn->dests while @linked
 * @key:	which; key.xs holds a reference on the socket
 * @rcu:	for the lookup
 * @ref:	the table's, each message's, each caller's
 * @xs_node:	in xs->dests while @linked; xs->lock
 * @idle_node:	in xs->idle_dests while nothing is queued; xs->lock
 * @cong_node:	in cong_conn->cong_waiters after a refusal for congestion;
 *		both that connection's lock and xs->lock
 * @cong_conn:	connection whose list that is; guarded the same way
 * @cleared_node: in xs->cleared after it has become clear; xs->lock
 * @promises:	reservations for replies not used yet; xs->lock
 * @holds:	messages from it are held back for want of space; xs->lock
 * @spoken:	a message was sent to it; xs->lock
 * @eos:	how far the end of the stream is; xs->lock
 * @eos_node:	in xs->eos_due; xs->lock
 * @linked:	still found by lookups; xs->lock
 * @conn:	connection to the node, with a reference; written under both
 *		that connection's lock and xs->lock, read under either
 * @conn_node:	in conn->users while @conn is set; guarded the same way
 * @space:	senders blocked in sendmsg() wait here for space and for the
 *		end of congestion
 * @sndbuf:	XRDS_DEST_SNDBUF, 0: the socket's default; xs->lock; bytes
 * @charged:	space in use, see xrds_msg_charge(); xs->lock; bytes
 * @queued_bytes: payload accepted and not acknowledged; xs->lock
 * @queued_msgs: the same in messages; xs->lock
 * @acked_msgs:	acknowledged so far; xs->lock
 * @last_progress_ns: CLOCK_MONOTONIC of the last acknowledgment; xs->lock
 * @want:	charge of the send that was refused last; xs->lock; bytes
 * @refused:	the last send was refused; xs->lock
 * @ready:	refused, and would be accepted now; xs->lock
 * @cong_refused: it was refused for congestion; xs->lock
 * @unread:	replies that it has sent while this socket was congested, and
 *		that were not read yet; xs->lock; bytes
 */
struct xrds_dest {
	struct rhash_head node;
	struct xrds_dest_key key;
	struct rcu_head rcu;
	refcount_t ref;
	struct list_head xs_node;
	struct list_head idle_node;
	struct list_head cong_node;
	struct xrds_conn *cong_conn;
	struct list_head cleared_node;
	u32 promises;
	bool holds;
	bool spoken;
	bool linked;
	u8 eos;
	struct list_head eos_node;
	struct xrds_conn *conn;
	struct list_head conn_node;
	wait_queue_head_t space;
	u32 sndbuf;
	u32 want;
	u64 charged;
	u64 queued_bytes;
	u64 queued_msgs;
	u64 acked_msgs;
	u64 last_progress_ns;
	bool refused;
	bool ready;
	bool cong_refused;
	u64 unread;
};

int xrds_dest_init(struct xrds_net *xn);
void xrds_dest_exit(struct xrds_net *xn);
struct xrds_dest *xrds_dest_get_for(struct xrds_sock *xs,
				    const struct xrds_addr *to);
struct xrds_dest *xrds_dest_find(struct xrds_sock *xs,
				 const struct xrds_addr *to);
void xrds_dest_put(struct xrds_dest *dest);
void xrds_dest_unlink(struct xrds_dest *dest);
void xrds_dest_release(struct xrds_dest *dest);
struct xrds_conn *xrds_dest_conn(struct xrds_dest *dest);
void xrds_dest_forget_conn(struct xrds_conn *conn);
void xrds_dest_close_all(struct xrds_sock *xs);
int xrds_dest_status(struct xrds_sock *xs, struct xrds_dest_status *st);
int xrds_dest_get_sndbuf(struct xrds_sock *xs, struct xrds_dest_sndbuf *arg);

/* ------------------------------------------------------------- space.c */

u32 xrds_dest_sndbuf(const struct xrds_dest *dest);
u64 xrds_dest_promised(const struct xrds_dest *dest);
int xrds_dest_reserve(struct xrds_dest *dest, struct xrds_conn *conn, u32 len,
		      long timeo);
void xrds_dest_done(struct xrds_dest *dest, u32 msgs, u64 bytes, u64 charge,
		    bool acked);
void xrds_dest_eos_done(struct xrds_dest *dest);
void xrds_dest_uncongested(struct xrds_dest *dest, bool waiting);
bool xrds_dest_can_promise(struct xrds_dest *dest);
void xrds_dest_promise(struct xrds_dest *dest);
void xrds_dest_renew_promise(struct xrds_dest *dest);
int xrds_dest_release_promise(struct xrds_sock *xs,
			      const struct xrds_addr *to);
void xrds_dest_break_promises(struct xrds_sock *xs);
void xrds_dest_read_reply(struct xrds_dest *dest, u32 charge);
bool xrds_dest_ack_wanted(struct xrds_dest *dest);
void xrds_space_changed(struct sock *sk);
int xrds_dest_set_sndbuf(struct xrds_sock *xs,
			 const struct xrds_dest_sndbuf *arg);

/* --------------------------------------------------------------- eos.c */

/**
 * struct xrds_source - who has spoken to a socket
 * @node:	in xn->sources while @linked
 * @key:	the socket that heard it, and its address
 * @list:	in xs->sources; sk_receive_queue.lock, as all below
 * @heard_at:	jiffies of its last message
 * @ended:	its stream has ended
 * @linked:	the socket still has it
 * @rcu:	for the walk of all sources
 */
struct xrds_source {
	struct rhash_head node;
	struct xrds_dest_key key;
	struct list_head list;
	unsigned long heard_at;
	bool ended;
	bool linked;
	struct rcu_head rcu;
};

bool xrds_eos_pending(const struct xrds_dest *dest);
bool xrds_eos_owe(struct xrds_dest *dest);
void xrds_eos_kick(struct xrds_sock *xs);
void xrds_eos_work(struct work_struct *work);
void xrds_eos_begin(struct xrds_sock *xs, u32 reason, bool closing);
void xrds_eos_give_up(struct xrds_sock *xs);

struct xrds_skb_cb;
int xrds_source_init(struct xrds_net *xn);
void xrds_source_exit(struct xrds_net *xn);
bool xrds_source_hear(struct xrds_sock *xs, const struct xrds_skb_cb *cb,
		      unsigned long reborn);
bool xrds_source_ended(struct xrds_sock *xs, const struct xrds_addr *from);
void xrds_source_lost_all(struct xrds_conn *conn);
void xrds_source_free_all(struct xrds_sock *xs);

/* --------------------------------------------------------------- pin.c */

/**
 * struct xrds_pin - pinned memory of a process
 * @pages:	pages
 * @nr_pages:	how many; charged to @mm
 * @bv:		the bytes in them
 * @nr_bv:	how many pieces
 * @bytes:	sum of all
 * @write:	pinned for writing
 * @mm:		whose memory it is
 * @xn:		namespace that it is charged to
 * @user:	and the user, with a reference
 * @work:	gives it back
 */
struct xrds_pin {
	struct page **pages;
	unsigned int nr_pages;
	struct bio_vec *bv;
	unsigned int nr_bv;
	u64 bytes;
	bool write;
	struct mm_struct *mm;
	struct xrds_net *xn;
	struct xrds_user *user;
	struct work_struct work;
};

extern struct workqueue_struct *xrds_pin_wq;
int xrds_pin_init(void);
void xrds_pin_exit(void);
struct xrds_pin *xrds_pin_user(struct xrds_sock *xs,
			       const struct rds_iovec *vec, unsigned int nr,
			       u64 max_bytes, bool write);
void xrds_pin_free(struct xrds_pin *pin);

/* ---------------------------------------------------------------- mr.c */

#define XRDS_MR_FLAGS	(RDS_RDMA_READWRITE | RDS_RDMA_INVALIDATE | \
			 RDS_RDMA_USE_ONCE | RDS_RDMA_DONTWAIT)

enum { XRDS_MR_MAX_BYTES = 1 << 30 };

/**
 * struct xrds_mr_key - key of the table of memory regions
 * @addr:	address the owner is bound to
 * @rkey:	key that peers use
 */
struct xrds_mr_key {
	struct in6_addr addr;
	u32 rkey;
};

/**
 * struct xrds_mr - a memory region
 * @node:	in xn->mrs while @linked
 * @key:	which
 * @xn:		namespace
 * @user:	on whose account it is, with a reference
 * @xs:		owner; no reference, closing it ends the region
 * @xs_node:	in xs->mrs while @linked; xs->lock
 * @linked:	found by lookups; xs->lock
 * @ref:	the table's, and those of accesses over loopback
 * @rcu:	for lookups
 * @work:	ends a region that was used
 * @trans:	transport it is registered with
 * @pin:	memory
 * @offset:	where in the key's address space the memory begins
 * @write:	peers may write
 * @use_once:	ends when it was used
 * @invalidate:	RDS_RDMA_INVALIDATE: an access that has begun is waited for,
 *		whatever that takes; set by who registers or ends it
 * @lock:	loopback: guards access and @dead
 * @dead:	loopback: the key is void; @lock
 * @priv:	the transport's
 */
struct xrds_mr {
	struct rhash_head node;
	struct xrds_mr_key key;
	struct xrds_net *xn;
	struct xrds_user *user;
	struct xrds_sock *xs;
	struct list_head xs_node;
	bool linked;
	refcount_t ref;
	struct rcu_head rcu;
	struct work_struct work;
	const struct xrds_transport *trans;
	struct xrds_pin *pin;
	u32 offset;
	bool write;
	bool use_once;
	bool invalidate;
	spinlock_t lock;		/* access over loopback, dead */
	bool dead;
	void *priv;
};

int xrds_mr_init(struct xrds_net *xn);
void xrds_mr_exit(struct xrds_net *xn);
struct xrds_mr *xrds_mr_find(struct xrds_net *xn, const struct in6_addr *addr,
			     u32 rkey);
bool xrds_mr_owned(struct xrds_sock *xs, u64 cookie);
void xrds_mr_put(struct xrds_mr *mr);
void xrds_mr_used(struct xrds_net *xn, const struct in6_addr *addr, u32 rkey);
int xrds_mr_create(struct xrds_sock *xs, const struct rds_get_mr_args *args,
		   u64 *cookie);
int xrds_mr_free(struct xrds_sock *xs, const struct rds_free_mr_args *args);
void xrds_mr_free_all(struct xrds_sock *xs);

/* -------------------------------------------------------------- rdma.c */

#define XRDS_ROP_FLAGS	(RDS_RDMA_READWRITE | RDS_RDMA_FENCE | \
			 RDS_RDMA_INVALIDATE | RDS_RDMA_USE_ONCE | \
			 RDS_RDMA_DONTWAIT | RDS_RDMA_NOTIFY_ME | \
			 RDS_RDMA_SILENT)

enum { XRDS_ROP_MAX_BYTES = 1 << 30 };

enum xrds_rop_op {
	XRDS_ROP_READ,		/* from the peer's memory into ours */
	XRDS_ROP_WRITE,		/* from ours into the peer's */
	XRDS_ROP_FADD,		/* fetch and add, at the peer's */
	XRDS_ROP_CSWP,		/* compare and swap, at the peer's */
};

/**
 * struct xrds_node_key - key of the table of nodes
 * @xs:		socket
 * @addr:	address, IPv4 mapped
 * @scope:	interface index of a link-local address, else 0
 * @zero:	no padding in a key
 */
struct xrds_node_key {
	struct xrds_sock *xs;
	struct in6_addr addr;
	u32 scope;
	u32 zero;
};

/**
 * struct xrds_node - RDMA ops of one socket toward one node
 * @node:	in xn->nodes
 * @key:	which; lives as long as the socket
 * @rcu:	for lookups
 * @xs_node:	in xs->nodes, which only grows; xs->lock, RCU readers
 * @ops:	ops that have not left, by identifier; xs->lock
 * @issued:	last identifier given out; xs->lock
 * @completed:	high-water mark; written under xs->lock
 * @armed:	identifier a barrier is armed for, 0: none; xs->lock
 * @event_node:	in xs->events; xs->lock
 * @wait:	barriers that block
 */
struct xrds_node {
	struct rhash_head node;
	struct xrds_node_key key;
	struct rcu_head rcu;
	struct list_head xs_node;
	struct list_head ops;
	u64 issued;
	u64 completed;
	u64 armed;
	struct list_head event_node;
	wait_queue_head_t wait;
};

/**
 * struct xrds_rop - an RDMA op or atomic
 * @node:	in to->ops, from its issue until it leaves; xs->lock
 * @notice_node: in xs->notices; xs->lock
 * @ref:	the message's, the FIFO's, the notice's
 * @xs:		socket, with a reference
 * @to:		node it goes to
 * @trans:	transport
 * @pin:	local memory
 * @id:		identifier; 0 until issued; xs->lock
 * @token:	the program's name for it
 * @raddr:	remote address
 * @rkey:	remote key
 * @op:		enum xrds_rop_op
 * @masked:	an atomic with masks
 * @notify:	the program wants a notice
 * @silent:	an immediate message without payload is not delivered
 * @fence:	the immediate message waits for the op
 * @id_asked:	the program was told the identifier
 * @done:	has ended; xs->lock
 * @status:	how; before that what the transport knows of a failure
 * @compare_add: operand of an atomic
 * @swap:	operand of an atomic
 * @compare_mask: mask of an atomic
 * @swap_mask:	mask of an atomic
 * @priv:	the transport's
 */
struct xrds_rop {
	struct list_head node;
	struct list_head notice_node;
	refcount_t ref;
	struct xrds_sock *xs;
	struct xrds_node *to;
	const struct xrds_transport *trans;
	struct xrds_pin *pin;
	u64 id;
	u64 token;
	u64 raddr;
	u32 rkey;
	u8 op;
	bool masked;
	bool notify;
	bool silent;
	bool fence;
	bool id_asked;
	bool done;
	s32 status;
	u64 compare_add;
	u64 swap;
	u64 compare_mask;
	u64 swap_mask;
	void *priv;
};

int xrds_node_init(struct xrds_net *xn);
void xrds_node_exit(struct xrds_net *xn);
struct xrds_node *xrds_node_find(struct xrds_sock *xs,
				 const struct xrds_addr *to);
void xrds_node_marks(struct xrds_sock *xs, const struct xrds_addr *to,
		     u64 *issued, u64 *completed);
struct xrds_node *xrds_node_get_for(struct xrds_sock *xs,
				    const struct xrds_addr *to);
void xrds_node_arm(struct xrds_sock *xs, struct xrds_node *node, u64 id);
void xrds_node_free_all(struct xrds_sock *xs);
struct xrds_rop *xrds_rop_from_args(struct xrds_sock *xs,
				    const struct rds_rdma_args *args);
struct xrds_rop *xrds_rop_from_atomic(struct xrds_sock *xs,
				      const struct rds_atomic_args *args,
				      int type);
void xrds_rop_issue(struct xrds_rop *rop);
void xrds_rop_done(struct xrds_rop *rop, s32 status);
void xrds_rop_put(struct xrds_rop *rop);
int xrds_barrier(struct xrds_sock *xs, struct xrds_barrier *b, bool nonblock);
__poll_t xrds_notices_pending(struct xrds_sock *xs);
bool xrds_cmsg_room(const struct msghdr *m, size_t len);
int xrds_notices_read(struct xrds_sock *xs, struct msghdr *m);
void xrds_notices_purge(struct xrds_sock *xs);

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
 * @crossed:	a request was refused as crossing since it came up; worker
 * @classic:	see there
 * @inc:	our incarnation; random, never 0, constant
 * @events:	bit mask of enum xrds_event; @lock
 * @ep_gen:	generation of the endpoint; events of earlier ones are
 *		ignored; @lock
 * @error:	reason of XRDS_EV_ERROR, negative errno; @lock
 * @pending:	request that waits for the worker, owned by the transport;
 *		@lock
 * @hello:	the peer's clear-to-send; written by the receive path before
 *		XRDS_EV_CTS, read by the worker after it
 * @tx_lock:	L2
 * @ep:		the transport's endpoint, NULL without; @tx_lock
 * @tx_open:	messages may be posted; @tx_lock
 * @tx_bundles:	several messages may go together; @tx_lock
 * @tx_seq:	last sequence number given out; @tx_lock
 * @tx_beat_due: a heartbeat must be sent; @tx_lock
 * @tx_closing:	no message is sent any more; @tx_lock
 * @tx_bye:	XRDS_CTL_BYE or XRDS_CTL_BYE_ACK, which is due, or 0; @tx_lock
 * @tx_ack_due:	an acknowledgment must be sent even without data; atomic
 *		flag, set by the receive path
 * @tx_ack_sent: value of the last acknowledgment sent; @tx_lock
 * @lock:	L3
 * @sendq:	not handed to the transport, oldest first; @lock
 * @inflight:	handed over and not acknowledged, by sequence; @lock
 * @acked:	highest acknowledgment taken; @lock
 * @kmsgs:	messages of the kernel itself in @sendq and @inflight; @lock
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
	bool crossed;
	struct xrds_classic classic;
	u64 inc;

	/* tx */
	spinlock_t tx_lock;		/* L2 */
	void *ep;
	bool tx_open;
	bool tx_bundles;
	u64 tx_seq;
	u64 tx_ack_sent;
	u64 tx_peer_inc;
	u32 tx_unasked;
	bool tx_beat_due;
	bool tx_closing;
	u8 tx_bye;
	unsigned long tx_ack_due;
	struct xrds_msg *ctl_msg;

	spinlock_t lock ____cacheline_aligned_in_smp;	/* L3 */
	u32 events;
	u32 ep_gen;
	int error;
	struct xrds_request *pending;
	struct list_head sendq;
	struct list_head inflight;
	u64 acked;
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
u32 xrds_xmit_done(struct list_head *list, bool acked, s32 status);
void xrds_xmit_end(struct xrds_conn *conn, struct xrds_msg *msg,
		   struct list_head *list);
bool xrds_xmit_waits(struct xrds_conn *conn, u32 room);
struct xrds_msg *xrds_xmit_also(struct xrds_conn *conn, u32 room);
void xrds_xmit_pump(struct xrds_conn *conn);
int xrds_xmit_acked(struct xrds_conn *conn, u64 ack);
void xrds_xmit_need_ack(struct xrds_conn *conn);
bool xrds_xmit_beat(struct xrds_conn *conn);
u64 xrds_xmit_ack_value(struct xrds_conn *conn);
unsigned long xrds_xmit_peer_reborn(const struct xrds_conn *conn,
				    const struct xrds_wire_hello *h);
int xrds_xmit_open(struct xrds_conn *conn, const struct xrds_wire_hello *h);
void xrds_xmit_close(struct xrds_conn *conn);
void xrds_xmit_drop_ops(struct xrds_conn *conn, bool unposted);
void xrds_xmit_drop_all(struct xrds_conn *conn);
void xrds_xmit_settle(struct xrds_conn *conn);
void xrds_xmit_cancel(struct xrds_sock *xs, const struct xrds_addr *to,
		      bool marks);
bool xrds_xmit_wanted(const struct xrds_conn *conn);
u64 xrds_xmit_inflight(struct xrds_conn *conn, const struct xrds_dest *dest);

/* ----------------------------------------------------------- transport */

/* mainline's number for what is not among RDS_TRANS_* */
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
 * @enter:	a socket is about to be bound to such an address: be ready for
 *		requests. Process context, may sleep. Optional. Returns 0 or a
 *		negative errno.
 * @leave:	one that was, or was about to be, has gone. As @enter.
 * @dial:	start an attempt: make an endpoint, resolve the address. Later
 *		steps are announced by XRDS_EV_RESOLVED.
 *		Returns 0 or a negative errno.
 * @advance:	a step of resolving is done. Returns -EINPROGRESS while steps
 *		remain, 0 when the request was sent, else a negative errno.
 * @accept:	take the pending request (xrds_conn_take_pending()), make an
 *		endpoint for it and reply. Returns 0 or a negative errno.
 * @refuse:	reject and free a pending request.
 * @start:	the endpoint is established: post receive buffers, send the
 *		clear-to-send. Returns 0 or a negative errno.
 * @stop:	take conn->ep away (under tx_lock), disconnect, wait until the
 *		device has returned all buffers, free it. Bounded; does
 *		nothing without endpoint.
 * @flush:	wait, for a bounded time, until the peer's device has all that
 *		was posted. Returns whether it has. Optional: it always has.
 * @payload:	process context, may sleep: take the payload of a message from a
 *		program, in the skb that its receiver will get; it becomes
 *		msg->skb. Returns it or an ERR_PTR(). Optional: without it the
 *		payload goes into msg->bv.
 * @direct:	with @payload: hand that of a message, and what else is known of
 *		it, to the receiver at once. Returns 0, and has consumed the
 *		skb; -EAGAIN: the message is to be queued. Process context.
 * @prepare:	process context, may sleep: make what xmit() will need for the
 *		message. Optional. Returns 0 or a negative errno.
 * @xmit:	post a whole message; msg->seq and msg->flags are set. Called
 *		with tx_lock held and conn->tx_open. Takes its own reference
 *		on the message for as long as it needs it. Returns 0; -EAGAIN
 *		when it lacks slots or credits, in which case it calls
 *		xrds_xmit_pump() once they come; any other error breaks the
 *		connection. Unless it answers -EAGAIN it ends msg->rop, by
 *		xrds_rop_done() exactly once, not later than in @stop. It may
 *		take the messages behind this one with it: xrds_xmit_also().
 * @mr_reg:	register mr->pin for the access asked for; sets mr->key.rkey and
 *		mr->offset. Process context, may sleep. Returns 0 or a negative
 *		errno. This and the next two only with XRDS_CAP_RDMA.
 * @mr_unreg:	make the key void; when it returns no peer touches the memory,
 *		for certain with mr->invalidate, else as far as the device goes
 *		by that. Process context, may sleep.
 * @rop_free:	free what prepare() made for an op. Any context. Optional.
 * @describe:	fill in what RDS_INFO_IB_CONNECTIONS says of the endpoint. Called
 *		with tx_lock held and an endpoint that is up. Only
 *		RDS_TRANS_IB has it.
 * @detail:	fill in what the netlink family says of the endpoint. Called with
 *		tx_lock held and an endpoint. Optional.
 * @device:	fill in what it says of the device with this number, from 0.
 *		Process context, may sleep. Optional. Returns 0, -ENOENT when
 *		there are no more, -EAGAIN when the namespace does not see
 *		this one.
 * @xmit_ctl:	post a control message of at most XRDS_CTL_INLINE_BYTES, or
 *		an acknowledgment (type 0). Called as xmit(), same returns.
 *
 * dial, advance, accept, start, flush, stop run in the connection's work and
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
	int (*enter)(struct net *net);
	void (*leave)(struct net *net);
	int (*dial)(struct xrds_conn *conn);
	int (*advance)(struct xrds_conn *conn);
	int (*accept)(struct xrds_conn *conn);
	void (*refuse)(struct xrds_conn *conn, struct xrds_request *req);
	int (*start)(struct xrds_conn *conn);
	bool (*flush)(struct xrds_conn *conn);
	void (*stop)(struct xrds_conn *conn);
	struct sk_buff *(*payload)(struct iov_iter *from, u32 len);
	int (*direct)(struct xrds_conn *conn, struct xrds_wire_msg *wm,
		      struct sk_buff *skb);
	int (*prepare)(struct xrds_conn *conn, struct xrds_msg *msg);
	int (*xmit)(struct xrds_conn *conn, struct xrds_msg *msg);
	int (*xmit_ctl)(struct xrds_conn *conn, u8 type, const void *data,
			u32 len);
	int (*mr_reg)(struct xrds_mr *mr);
	void (*mr_unreg)(struct xrds_mr *mr);
	void (*rop_free)(struct xrds_rop *rop);
	void (*describe)(const struct xrds_conn *conn,
			 struct rds6_info_rdma_connection *row);
	void (*detail)(const struct xrds_conn *conn,
		       struct xrds_conn_detail *d);
	int (*device)(const struct net *net, unsigned int nr,
		      struct xrds_device_detail *d);
};

/* transport.c */
void xrds_transport_register(struct xrds_transport *trans);
void xrds_transport_unregister(struct xrds_transport *trans);
const struct xrds_transport *xrds_transport_get(u32 type);
const struct xrds_transport *xrds_transport_for(struct net *net,
						const struct in6_addr *addr,
						u32 scope);
int xrds_transport_device(const struct net *net, unsigned int *nr,
			  struct xrds_device_detail *d, const char **transport);
int xrds_transport_enter(const struct xrds_transport *trans, struct net *net);
void xrds_transport_leave(const struct xrds_transport *trans, struct net *net);

/* loop.c */
extern struct xrds_transport xrds_loop_transport;

/* loop_rdma.c */
int xrds_loop_mr_reg(struct xrds_mr *mr);
void xrds_loop_mr_unreg(struct xrds_mr *mr);
s32 xrds_loop_rdma(struct xrds_conn *conn, const struct xrds_rop *rop);

/* ----------------------------------------------------------- monitor.c */

__poll_t xrds_monitor_note(struct xrds_dest *dest);
void xrds_monitor_set(struct xrds_sock *xs, bool on);
int xrds_monitor_read(struct xrds_sock *xs, struct msghdr *m);

/* ------------------------------------------------------------- reply.c */

bool xrds_reply_ready(struct xrds_sock *xs);
struct sk_buff *xrds_reply_dequeue(struct xrds_sock *xs, bool peek,
				   bool marks);
int xrds_reply_set(struct xrds_sock *xs, u32 bytes);
bool xrds_reply_came(struct xrds_sock *xs, const struct sk_buff *skb);
void xrds_reply_read(struct xrds_sock *xs, const struct sk_buff *skb);

/* -------------------------------------------------------------- recv.c */

/**
 * struct xrds_skb_cb - what a queued message remembers
 * @saddr:	source address, IPv4 mapped
 * @scope:	its scope
 * @len:	payload, bytes
 * @charge:	what it costs of the receive buffer, bytes
 * @sport:	source port
 * @flags:	XRDS_F_EOS; XRDS_F_REPLY when it has come as a reply while the
 *		socket was congested, and is counted by its destination
 * @eos_reason:	with XRDS_F_EOS
 * @cookie:	RDMA cookie that came with it; 0: none
 */
struct xrds_skb_cb {
	struct in6_addr saddr;
	u32 scope;
	u32 len;
	u32 charge;
	u16 sport;
	u8 flags;
	u8 eos_reason;
	u64 cookie;
};

static inline struct xrds_skb_cb *xrds_skb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct xrds_skb_cb) >
		     sizeof_field(struct sk_buff, cb));
	return (struct xrds_skb_cb *)skb->cb;
}

/* Where a message passes on its way in: what RDS_CMSG_RXPATH_LATENCY measures
 * lies between them.
 */
enum xrds_rx_point {
	XRDS_RX_HDR,		/* a header that begins a message */
	XRDS_RX_START,		/* its first fragment is taken */
	XRDS_RX_END,		/* it is whole, and queued on the socket */
	XRDS_RX_POINTS
};

static_assert((int)XRDS_RX_POINTS == (int)RDS_MSG_RX_DGRAM_TRACE_MAX);

/**
 * struct xrds_skb_trace - what a queued message remembers for those who look
 *	closely; in front of its payload
 * @seq:	sequence number
 * @at:		local_clock() at each point, 0: nobody has looked
 * @tos:	type of service of the connection
 */
struct xrds_skb_trace {
	u64 seq;
	u64 at[XRDS_RX_POINTS];
	u8 tos;
};

static inline struct xrds_skb_trace *xrds_skb_trace(const struct sk_buff *skb)
{
	return (struct xrds_skb_trace *)skb->head;
}

struct sk_buff *xrds_skb_alloc(u32 len, gfp_t gfp);
void xrds_recv_msg(struct xrds_conn *conn, const struct xrds_wire_msg *wm,
		   struct sk_buff *skb);
void xrds_recv_batch(struct xrds_conn *conn, bool on);
void xrds_recv_ack_work(struct work_struct *work);
int xrds_recvmsg(struct socket *sock, struct msghdr *msg, size_t size,
		 int flags);
void xrds_recv_purge(struct xrds_sock *xs);
bool xrds_recv_uncharge(struct xrds_sock *xs, const struct sk_buff *skb);
bool xrds_recv_drop_mark(struct xrds_sock *xs, struct sk_buff *skb);
bool xrds_recv_ready(struct xrds_sock *xs);
void xrds_recv_shutdown(struct xrds_sock *xs);
int xrds_recv_inq(struct xrds_sock *xs);

/* ------------------------------------------------------------- trace.c */

void xrds_trace_queued(struct xrds_sock *xs, struct sk_buff *skb);
int xrds_trace_read(struct xrds_sock *xs, struct sk_buff *skb,
		    struct msghdr *m);
int xrds_trace_set(struct xrds_sock *xs, const struct rds_rx_trace_so *arg);
int xrds_stamp_set(struct xrds_sock *xs, int optname, bool on);

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

#endif /* _XRDS_H */
