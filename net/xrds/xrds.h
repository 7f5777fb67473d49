/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The core: the namespace with its tables, counters and bounds, addresses, and
 * the order of locks. All files include it. A folder has headers of its own:
 *
 *   sock/   sock.h, dest.h   sockets; destinations, their space, ends of streams
 *   rdma/   rdma.h           pinned memory, memory regions, RDMA ops, barriers
 *   conn/   conn.h           connections: state, flows, transmission, congestion
 *   diag/   diag.h           netlink, sysctls, debugfs
 *   ib/     ib.h             the RDMA transport; no other file knows a type of RDMA
 *   wire/   wire.h           the format
 *
 * and beside this one are msg.h (messages, on their way out and in),
 * transport.h (the seam between connections and transports) and upcall.h (the
 * seam from connections up to sockets). A file sees the headers of its folder
 * and of the folders below it: main, diag, sock, rdma, conn, then loop and ib;
 * the compiler sees to that, see Kbuild. Sections of headers are named after
 * files.
 *
 * Locks, outermost first. A lock may be taken while holding those above it,
 * never the other way round; two locks of one level are never nested.
 *
 *   L1  lock_sock(sk)              bind state, options          process
 *       xs->walk_lock              options that walk all        process
 *                                  destinations
 *   L2  conn->tx_lock              posting order, conn->ep,     process, BH
 *                                  sequence numbers
 *   L3  conn->lock                 queues and order of flows,   process, BH
 *                                  in flight, refusals, events
 *   L4  xs->lock                   destinations, their space,   process, BH
 *                                  order of ops
 *   L5  sk_receive_queue.lock,     leaves                       process, BH
 *       xn->lock, xn->cong_lock
 *   L6  xn->peer_lock              peers, and the sockets that  process, BH
 *                                  watch them
 *
 * A flow ties a destination to a connection. The fields that do so are written
 * under both L3 and L4, and read under either. L4 is the lock of the flow's
 * socket.
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

#include <linux/in6.h>
#include <linux/inet.h>
#include <linux/list.h>
#include <linux/percpu_counter.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/ipv6.h>
#include <net/netns/generic.h>
#include <net/sock.h>

#include "compat.h"
#include "wire/wire.h"
#include <linux/xrds.h>

struct xrds_conn;
struct xrds_dest;
struct xrds_flow;
struct xrds_mr;
struct xrds_msg;
struct xrds_net;
struct xrds_peer;
struct xrds_port;
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
 * struct xrds_counter_text - name and description of a counter
 * @name:	name
 * @help:	the rest, a line
 */
struct xrds_counter_text {
	const char *name;
	const char *help;
};

/**
 * struct xrds_counter_set - counters that are dumped together
 * @node:	xrds_stats_register()
 * @nr:		how many there are
 * @level:	each is how much there is now
 * @texts:	their names and descriptions
 * @sum:	fills in @nr values for the namespace
 */
struct xrds_counter_set {
	struct list_head node;
	unsigned int nr;
	bool level;
	const struct xrds_counter_text *texts;
	void (*sum)(struct net *net, u64 *values);
};

/* -------------------------------------------------------------- hold.c */

enum xrds_hold {
#define X(sym, name) XRDS_HOLD_##sym
#include "list_holds.h"
#undef X
	XRDS_HOLDS
};

/* Steps of a loop in one hold of a spin lock */
enum {
	XRDS_END_BATCH	= 1024,
	XRDS_PUMP_BATCH	= 256,
	XRDS_LINK_BATCH	= 16,
	XRDS_DUMP_BATCH	= 64,
	XRDS_SORT_BATCH	= 64,
	XRDS_LOOP_BATCH	= 64,
};

/**
 * struct xrds_hold_kind - a loop under a spin lock
 * @name:	in debugfs
 * @most:	steps in one hold
 */
struct xrds_hold_kind {
	const char *name;
	u32 most;
};

void xrds_hold_count(enum xrds_hold hold, u32 n);
u32 xrds_hold_most(enum xrds_hold hold, struct xrds_hold_kind *kind);
void xrds_hold_pause(struct rhashtable_iter *iter, u32 n);

/* ------------------------------------------------------------- limit.c */

/* Bounded resources; their counters follow XRDS_C_LIMIT_MEM in this order */
enum xrds_limit {
	XRDS_LIMIT_MEM,		/* bytes of sockets and unacknowledged messages */
	XRDS_LIMIT_PINNED,	/* bytes */
	XRDS_LIMIT_KEYS,
	XRDS_LIMIT_CONNS,
	XRDS_LIMIT_RECV,	/* bytes of messages that wait to be read */
	XRDS_LIMIT_SOURCES,	/* bytes of senders that sockets remember, and of refusals */
	XRDS_LIMITS
};

/* Charges of objects beside payload, about their size and the kernel's */
enum {
	XRDS_SOCK_COST_BYTES	= 4096,
	XRDS_DEST_COST_BYTES	= 1024,
	XRDS_SOURCE_COST_BYTES	= 256,
	XRDS_LINK_COST_BYTES	= 128,
	XRDS_REFUSAL_COST_BYTES	= 128,
	XRDS_PEER_COST_BYTES	= 256,
	XRDS_WATCH_COST_BYTES	= 512,
	XRDS_ROP_COST_BYTES	= 512,
	XRDS_NOTICE_COST_BYTES	= 64,
};

/* xrds_net_max_past() */
enum {
	XRDS_PAST_FACTOR	= 8,	/* times sock_max_dests */
	XRDS_PAST_MIN		= 1024,
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

enum {
	XRDS_DIALQ_BITS		= 8,
};

/**
 * struct xrds_dial - a place in a row of conn/dialq.c; xn->dialq.lock
 * @node:	in the row
 * @conn:	connection that waits; constant
 * @user:	the user who is charged, and has the row; NULL: the peer has it
 */
struct xrds_dial {
	struct list_head node;
	struct xrds_conn *conn;
	struct xrds_user *user;
};

/**
 * struct xrds_dialq - connections that wait to dial, see conn/dialq.c
 * @lock:	inside conn->lock, outside the locks of struct xrds_rate
 * @rows:	their places, by user or by peer, oldest first; @lock
 * @turn:	row that was looked at last; @lock
 * @nr:		how many wait; @lock, also read without
 * @work:	looks at the rows while some wait
 */
struct xrds_dialq {
	spinlock_t lock;		/* rows, turn, nr */
	struct list_head rows[1 << XRDS_DIALQ_BITS];
	unsigned int turn;
	unsigned int nr;
	struct delayed_work work;
};

/**
 * struct xrds_user - what one user has, in all namespaces
 * @node:	in the tree of limit.c
 * @uid:	who
 * @trusted:	has CAP_SYS_RESOURCE: not bound
 * @ref:	one for each socket, and for objects that outlive it
 * @used:	what it has
 * @dials:	attempts to connect
 * @wrong_keys:	ops over loopback with keys that are not good
 * @unpins:	pinned memory that is to be given back, oldest first; this and
 *		the next two are guarded by a lock in pin.c
 * @nr_unpins:	how much ever was, in pieces; also read without
 * @nr_unpinned: how much ever was given back, in pieces; also read without
 * @unpinned:	woken when @nr_unpinned grows
 */
struct xrds_user {
	struct rb_node node;
	kuid_t uid;
	bool trusted;
	refcount_t ref;
	struct percpu_counter used[XRDS_LIMITS];
	struct xrds_rate dials;
	struct xrds_rate wrong_keys;
	struct list_head unpins;
	u32 nr_unpins;
	u32 nr_unpinned;
	wait_queue_head_t unpinned;
};

struct xrds_user *xrds_user_get_current(void);
struct xrds_user *xrds_user_get(struct xrds_user *user);
void xrds_user_put(struct xrds_user *user);
int xrds_limit_charge(struct xrds_net *xn, struct xrds_user *user,
		      enum xrds_limit l, u64 n);
void xrds_limit_uncharge(struct xrds_net *xn, struct xrds_user *user,
			 enum xrds_limit l, u64 n);
bool xrds_limit_over(struct xrds_net *xn, struct xrds_user *user,
		     enum xrds_limit l, u32 quarters);
bool xrds_limit_dial(struct xrds_net *xn, struct xrds_user *user);
bool xrds_limit_guesses(struct xrds_user *user);
void xrds_limit_wrong_key(struct xrds_user *user);
int xrds_limit_net_init(struct xrds_net *xn);
void xrds_limit_net_exit(struct xrds_net *xn);
int xrds_limit_sysctl(XRDS_CTL_CONST struct ctl_table *table, int write,
		      void *buffer, size_t *lenp, loff_t *ppos);

/* ------------------------------------------------------- per namespace */

enum { XRDS_SYSCTL_DIRS = 3 };

/* Sysctls of Oracle's UEK kernel without effect here */
enum xrds_inert {
	XRDS_INERT_PASSIVE_MIN_MS,
	XRDS_INERT_TRACE_START,
	XRDS_INERT_TRACE_END,
	XRDS_INERT_BEAT_TIMEOUT_S,
	XRDS_INERT_CANCEL_MS,
	XRDS_INERT_PAYLOAD_CSUMS,
	XRDS_INERT_NR
};

/**
 * struct xrds_net - all state of one network namespace
 * @net:	the namespace; no reference, pernet exit comes first
 * @node:	identity of this namespace for its peers; random, never 0, constant
 * @binds:	bound sockets by (address, port, scope)
 * @unbinds:	sockets that have left @binds, ever
 * @conns:	connections by struct xrds_conn_key
 * @dests:	destinations by struct xrds_dest_key
 * @nodes:	nodes that RDMA ops went to, by struct xrds_rdma_peer_key
 * @mrs:	memory regions by struct xrds_mr_key
 * @mrs_used:	regions that were used for the last time and are to end, oldest
 *		first; lock in mr.c
 * @mrs_work:	ends them
 * @unpins:	pinned memory that is to be given back; lock in pin.c
 * @sources:	senders to sockets, by struct xrds_dest_key
 * @past:	destinations that were evicted, by struct xrds_dest_key
 * @parts:	objects that flows share, by struct xrds_part_key
 * @peers:	nodes at the other end of connections, by struct xrds_peer_key
 * @watches:	nodes that sockets watch, by struct xrds_dest_key
 * @peer_lock:	L6
 * @counters:	per-CPU counters
 * @lock:	guards @socks, @conn_list, @lingering and @last_seq
 * @socks:	all sockets, RCU readers
 * @sock_ids:	the same sockets by their numbers, RCU readers
 * @next_sock_id: where the search for the next number begins; @sock_ids
 * @conn_list:	all connections, RCU readers
 * @conn_ids:	the last conn->id; @lock
 * @last_seq:	no connection that has ended gave out a higher sequence number,
 *		so that a peer which remembers one takes nothing for a duplicate
 * @forgot:	a connection that knew its peer is gone: sources may be there
 *		of nodes that no connection knows
 * @lingering:	closed sockets that still deliver, by their deadline
 * @linger_work: gives up on them at their deadline
 * @nr_conns:	connections not yet freed
 * @nr_asked:	of these, the ones that peers have asked for
 * @asked_refused_at: with so many of them another one was refused; 0: none was
 * @nr_socks:	sockets not yet destroyed, closed ones included
 * @nr_dests:	destinations not yet freed
 * @nr_msgs:	messages not yet freed
 * @nr_rops:	RDMA ops not yet freed
 * @nr_mrs:	memory regions not yet freed
 * @nr_on_devices: memory regions and endpoints that a device has, or is to have
 * @gone:	woken when @nr_conns or @nr_socks falls
 * @cong_lock:	guards @cong_ports, @cong_late, @recv_waiting, and the links of ports,
 *		see link.c
 * @cong_ports:	ports of sockets that are congested
 * @cong_late:	ports of which more connections are to be told
 * @cong_late_all: ports that lack links, of which all connections are to be told
 * @cong_turn:	turns of @cong_work
 * @cong_work:	tells them
 * @cong_rx_mem: memory of the peers' updates that wait for the workers, bytes
 * @lost_work:	ends the streams of nodes that are gone
 * @recv_waiting: sockets that are congested for the unread messages of others
 * @recv_work:	looks at their accounts
 * @exiting:	the namespace or the module is going away
 * @drain_by:	jiffies until which connections to other nodes may deliver before
 *		they are ended; 0: the namespace is not drained
 * @used:	current usage per limit
 * @dials:	attempts to connect
 * @dialq:	connections that wait to dial
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
 * @sock_max_recv_kb: memory of the messages that wait in one socket, beyond
 *		SO_RCVBUF, KiB
 * @connect_timeout_ms: bound of one attempt to connect, milliseconds
 * @heartbeat_ms: longest silence on a connection, milliseconds; 0: any
 * @peer_dead_ms: silence after which a node counts as down, milliseconds
 * @idle_ms:	age at which an idle connection is collected, milliseconds; 0:
 *		none
 * @loop_delay_ms: loopback: delay of each message
 * @loop_loss_permille: loopback: chance that a message is lost, which resets
 *		the connection as on a reliable QP
 * @loop_bounce_ms: loopback: period of forced connection resets
 * @uek_rows:	rows of RDS_INFO_* are those of Oracle's UEK kernel
 * @inert:	values that were written, by enum xrds_inert
 */
struct xrds_net {
	struct net *net;
	u64 node;
	struct rhashtable binds;
	atomic64_t unbinds;
	struct rhashtable conns;
	struct rhashtable dests;
	struct rhashtable nodes;
	struct rhashtable mrs;
	struct list_head mrs_used;
	struct work_struct mrs_work;
	struct list_head unpins;
	struct rhashtable sources;
	struct rhashtable past;
	struct rhashtable parts;
	struct rhashtable peers;
	struct rhashtable watches;
	spinlock_t peer_lock;		/* L6 */
	struct xrds_counters __percpu *counters;
	spinlock_t lock;		/* lists of this namespace */
	struct list_head socks;
	struct xarray sock_ids;
	u32 next_sock_id;
	struct list_head conn_list;
	u64 conn_ids;
	u64 last_seq;
	bool forgot;
	struct timerqueue_head lingering;
	struct delayed_work linger_work;
	atomic_t nr_conns;
	atomic_t nr_asked;
	u32 asked_refused_at;
	atomic_t nr_socks;
	atomic_t nr_dests;
	atomic_t nr_msgs;
	atomic_t nr_rops;
	atomic_t nr_mrs;
	atomic_t nr_on_devices;
	wait_queue_head_t gone;
	spinlock_t cong_lock;		/* cong_ports, cong_late*, recv_waiting, links */
	struct list_head cong_ports;
	struct list_head cong_late;
	struct list_head cong_late_all;
	u32 cong_turn;
	struct work_struct cong_work;
	atomic64_t cong_rx_mem;
	struct work_struct lost_work;
	struct list_head recv_waiting;
	struct delayed_work recv_work;
	bool exiting;
	unsigned long drain_by;
	struct percpu_counter used[XRDS_LIMITS];
	struct xrds_rate dials;
	struct xrds_dialq dialq;

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
	unsigned int peer_dead_ms;
	unsigned int idle_ms;
	unsigned int loop_delay_ms;
	unsigned int loop_loss_permille;
	unsigned int loop_bounce_ms;
	unsigned int uek_rows;
	unsigned int inert[XRDS_INERT_NR];
};

/* A bound of so many units is so many bytes, or pieces, shifted. */
static inline u8 xrds_limit_shift(enum xrds_limit l)
{
	return l == XRDS_LIMIT_KEYS || l == XRDS_LIMIT_CONNS ? 0 : 10;
}

/* Each processor keeps up to a batch of a counter to itself. So a message mostly
 * touches no memory that processors share. A bound is exact all the same: near
 * it the parts are summed up.
 */
static inline s32 xrds_limit_batch(enum xrds_limit l)
{
	return 64 << xrds_limit_shift(l);
}

/* Charge without regard to the bounds: for messages that are received, a reply
 * whose space was reserved, and what must not fail. Both pointers may be NULL.
 */
static inline void xrds_limit_change(struct xrds_net *xn,
				     struct xrds_user *user, enum xrds_limit l,
				     s64 n)
{
	if (xn)
		xrds_percpu_counter_add(&xn->used[l], n, xrds_limit_batch(l));
	if (user)
		xrds_percpu_counter_add(&user->used[l], n, xrds_limit_batch(l));
}

/* main.c */
extern unsigned int xrds_net_id;

/* Our state of a network namespace; valid as long as it and the module. */
static inline struct xrds_net *xrds_net(const struct net *net)
{
	return net_generic(net, xrds_net_id);
}

/* How many past nodes, and how many evicted destinations, a socket remembers */
static inline u32 xrds_net_max_past(const struct xrds_net *xn)
{
	return max_t(u32, XRDS_PAST_FACTOR * READ_ONCE(xn->sock_max_dests),
		     XRDS_PAST_MIN);
}

static inline void xrds_count(struct xrds_net *xn, enum xrds_counter c)
{
	this_cpu_inc(xn->counters->v[c]);
}

static inline void xrds_count_add(struct xrds_net *xn, enum xrds_counter c,
				  u64 n)
{
	this_cpu_add(xn->counters->v[c], n);
}

/* stats.c */
void xrds_stats_register(struct xrds_counter_set *set);
void xrds_stats_unregister(struct xrds_counter_set *set);

/**
 * struct xrds_counter_row - a counter as dumps have it
 * @name:	its name
 * @help:	description, a line
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

int xrds_stats_each(struct xrds_net *xn, xrds_counter_fn fn, void *arg);
const char *xrds_stats_name(enum xrds_counter c);

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
int xrds_addr_build_name(const struct xrds_addr *a, void *name);
int xrds_addr_build(const struct xrds_addr *a, struct sockaddr_storage *ss);
bool xrds_addr_is_loopback(const struct in6_addr *addr);

/* An address as text, for a log line */
struct xrds_addr_text {
	char s[INET6_ADDRSTRLEN];
};

const char *xrds_addr_text(const struct in6_addr *addr,
			   struct xrds_addr_text *text);

#endif /* _XRDS_H */
