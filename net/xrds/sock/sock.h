/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sockets: their fields, and the lock of each.
 *
 * A socket is made by socket(), bound once, and closed. Its messages refer to
 * it through their destination until they are acknowledged. lock_sock() guards
 * the fields that only calls of programs change: options, the binding, the
 * peer. xs->lock (L4) guards those that others reach as well: destinations and
 * their queues, RDMA ops and their notices, memory regions. The messages that
 * have come in, and their sources, belong to sk_receive_queue.lock.
 */
#ifndef _XRDS_SOCK_H
#define _XRDS_SOCK_H

#if XRDS_LEVEL < 4
#error "for sock/ and the folders above, see Kbuild"
#endif

#include <linux/list.h>
#include <linux/net.h>
#include <linux/pid.h>
#include <linux/rhashtable.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/compat.h>
#include <net/sock.h>

#include "conn/conn.h"
#include "transport.h"
#include "xrds.h"

struct xrds_bind_last;
struct xrds_dest;
struct xrds_source;

/* Has a socket whose streams end nothing left to deliver? */
enum xrds_delivered {
	XRDS_DELIVERED_NOT,	/* it has, or its streams go on */
	XRDS_DELIVERED_NEWS,	/* it has nothing left */
	XRDS_DELIVERED_TOLD,	/* and the program knows */
};

/* Open streams without a source that a socket can tell from others */
enum { XRDS_LOST_MOST = 8 };

/* ----------------------------------------------------------- socket.c */

/**
 * struct xrds_srcq - messages of a socket by source, see srcq.c
 * @ready:	sources with messages that may be read; sk_receive_queue.lock, as
 *		for all below
 * @held:	those whose replies have no space
 * @barred:	those that no destination could be made for
 * @marks:	those whose first message is the end of a stream
 * @unsorted:	with XRDS_REPLY_RESERVE: where sorting goes on in
 *		sk_receive_queue; NULL: all messages are sorted
 */
struct xrds_srcq {
	struct list_head ready;
	struct list_head held;
	struct list_head barred;
	struct list_head marks;
	struct sk_buff *unsorted;
};

/**
 * struct xrds_sock - one AF_RDS socket
 * @sk:		must be first
 * @xn:		namespace state
 * @user:	the user that it is charged to, with a reference
 * @uid:	its creator
 * @pid:	the process that made it, with a reference
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
 *		reference; written as @bind. Before that the choice of
 *		SO_RDS_TRANSPORT; lock_sock
 * @tos:	type of service of connections this socket uses; @lock
 * @walk_lock:	of options that walk @dests, one at a time
 * @lock:	L4, see xrds.h
 * @dests:	destinations of this socket; @lock
 * @last_dest:	the one that was used last, or NULL; written under @lock, RCU
 *		readers
 * @idle_dests:	those of them with nothing queued, oldest first; @lock
 * @nr_dests:	length of @dests; @lock
 * @nr_refused:	destinations that refused the last send; @lock
 * @nr_ready:	those of them that would accept it now; @lock
 * @ready_gone:	one of these has given its place to another: sends that may be
 *		tried until that is no reason for POLLOUT any more; @lock
 * @queued_bytes: payload accepted and not yet acknowledged; @lock
 * @queued_msgs: the same in messages; @lock
 * @reply_reserve: XRDS_REPLY_RESERVE, bytes; @lock and sk_receive_queue.lock, read
 *		under either
 * @nr_reservations: reservations for replies not used yet; @lock
 * @reserve_gen: how often all of them were given back at once; @lock, and read
 *		without it for an estimate
 * @reply_work:	makes destinations for barred sources, see reply.c
 * @reply_retry_ms: delay of the next attempt; @lock
 * @reply_probe: it has made one that nothing is reserved for yet; @lock
 * @dest_sndbuf: default of XRDS_DEST_SNDBUF, 0: SO_SNDBUF's value; @lock
 * @rdma:	see there
 * @ending:	the socket sends nothing more: its streams end; @lock
 * @eos_reason:	reason in the marks, enum xrds_eos_reason; @lock
 * @held:	connection with messages of a sendmmsg() that wait for its last,
 *		with a reference; exchanged without lock
 * @eos_due:	destinations whose mark is to be queued; @lock
 * @nr_eos:	marks that are not acknowledged yet, due ones included; @lock
 * @eos_callers: shutdown() or close() at work on these; @lock
 * @delivered:	enum xrds_delivered; @lock, and exchanged by readers
 * @undelivered: a message or a mark was dropped that the program has not
 *		cancelled; never reset, and read after @delivered
 * @delivered_event: XRDS_DELIVERED_EVENT; @lock
 * @eos_work:	queues marks that become due
 * @past:	destinations that were evicted, and wait for the end of their
 *		stream, oldest first; @lock
 * @nr_past:	length of @past; @lock
 * @drained:	woken when everything is acknowledged after close
 * @linger_node: in xn->lingering after close; xn->lock. Its time is when the socket
 *		gives up, and written before
 * @rcv_bytes:	payload charged in sk_receive_queue; its lock
 * @rcv_mem:	memory of the messages in it; its lock, and read without for an
 *		estimate; bytes
 * @rcv_nr:	messages that were queued there, ever; its lock
 * @rcv_payload: payload of them; its lock; bytes
 * @rcv_marks:	ends of streams in it; its lock
 * @reply_mem:	memory of replies in it; its lock, and read without for an
 *		estimate; bytes
 * @loss_told:	sk_err says that replies or ends of streams were lost, and nothing
 *		was read since; its lock
 * @losses:	how often sk_err was set for that; its lock
 * @recv_wait_node: in xn->recv_waiting while the socket is congested for the
 *		unread messages of others; xn->cong_lock
 * @port:	see there
 * @marks_passed: nothing but ends of streams waits, and the last reader peeked
 *		and had no room for them: poll() does not report them until
 *		there is news; sk_receive_queue.lock
 * @sources:	senders to this socket, in the order in which they are
 *		forgotten: those whose stream has ended come first;
 *		sk_receive_queue.lock, as all down to @all_ended
 * @srcq:	their messages
 * @last_source: the last of them to speak
 * @nr_sources:	length of @sources
 * @nr_open:	sources whose stream has not ended
 * @heard:	there was a source
 * @lost:	streams that may be open, and have no source: their fingerprints
 * @nr_lost:	length of @lost; XRDS_LOST_MOST + 1: there were more, and it stays so
 * @all_ended:	every stream has ended, as far as we know
 * @rx_trace:	SO_RDS_MSG_RXPATH_LATENCY; @lock
 * @cong_monitor: RDS_CONG_MONITOR; @lock
 * @cong_eagain: XRDS_CONG_EAGAIN; no lock
 * @inq:	XRDS_UEK_INQ; no lock
 * @cong_news:	a destination that refused us for congestion is clear again,
 *		RDS_CONG_MONITOR is off, and no poll has reported it yet; @lock
 * @cleared:	the same destinations while RDS_CONG_MONITOR is on; @lock
 * @node_events: XRDS_NODE_EVENTS; lock_sock, @lock and sk_receive_queue.lock,
 *		read under any of them
 * @next_source: source that is to be watched next, while @node_events begins or
 *		ends; sk_receive_queue.lock, whether it is NULL is read without
 * @news:	nodes that the program is to be told of; xn->peer_lock
 * @unnamed:	those of which a reader was told the ports only; @lock
 * @zcopied:	completions of MSG_ZEROCOPY that wait to be read; @lock
 */
struct xrds_sock {
	struct sock sk;
	struct xrds_net *xn;
	struct xrds_user *user;
	kuid_t uid;
	struct pid *pid;
	u32 id;
	struct list_head xn_node;
	struct rhash_head bind_node;
	struct xrds_bind_key bind;
	bool bound;
	struct xrds_addr peer;
	bool connected;
	const struct xrds_transport *trans;
	u8 tos;

	struct mutex walk_lock;		/* L1 */
	spinlock_t lock;		/* L4 */
	struct list_head dests;
	struct xrds_dest *last_dest;
	struct list_head idle_dests;
	u32 nr_dests;
	u32 nr_refused;
	u32 nr_ready;
	u32 ready_gone;
	u64 queued_bytes;
	u64 queued_msgs;
	u32 reply_reserve;
	u32 nr_reservations;
	u32 reserve_gen;
	struct delayed_work reply_work;
	u32 reply_retry_ms;
	bool reply_probe;
	u32 dest_sndbuf;
	struct xrds_rdma_sock rdma;
	bool ending;
	u32 eos_reason;
	struct xrds_conn *held;
	struct list_head eos_due;
	u32 nr_eos;
	u32 eos_callers;
	u32 delivered;
	bool undelivered;
	bool delivered_event;
	struct delayed_work eos_work;
	struct list_head past;
	u32 nr_past;
	wait_queue_head_t drained;
	struct timerqueue_node linger_node;

	u64 rcv_bytes;
	u64 rcv_mem;
	u32 rcv_nr;
	u64 rcv_payload;
	u32 rcv_marks;
	u64 reply_mem;
	u32 losses;
	bool loss_told;
	struct list_head recv_wait_node;
	struct xrds_port port;
	bool marks_passed;

	struct list_head sources;
	struct xrds_srcq srcq;
	struct xrds_source *last_source;
	u32 nr_sources;
	u32 nr_open;
	bool heard;
	u32 lost[XRDS_LOST_MOST];
	u32 nr_lost;
	bool all_ended;

	struct rds_rx_trace_so rx_trace;
	bool cong_monitor;
	bool cong_eagain;
	bool inq;
	bool cong_news;
	struct list_head cleared;

	bool node_events;
	struct xrds_source *next_source;
	struct list_head news;
	struct list_head unnamed;
	struct list_head zcopied;
};

static inline struct xrds_sock *xrds_sk(const struct sock *sk)
{
	return (struct xrds_sock *)sk;
}

static inline struct xrds_sock *xrds_sk_of(const struct xrds_rdma_sock *rs)
{
	return xrds_sk(rs->sk);
}

/* The process that made it, as the reader numbers processes; 0 when it has ended,
 * as another process may have its number then
 */
static inline pid_t xrds_sk_pid(const struct xrds_sock *xs)
{
	return pid_has_task(xs->pid, PIDTYPE_TGID) ? pid_vnr(xs->pid) : 0;
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

/* ------------------------------------------------------------ socket.c */

extern struct proto xrds_socket_proto;
extern const struct net_proto_family xrds_socket_family;

/* -------------------------------------------------------------- walk.c */

struct xrds_sock *xrds_walk_sock_after(struct xrds_net *xn, unsigned long id);
struct xrds_sock *xrds_walk_sock(struct xrds_net *xn, struct xrds_sock *xs);

/* ------------------------------------------------------------ linger.c */

void xrds_linger_begin(struct xrds_sock *xs);
void xrds_linger_wait(struct xrds_sock *xs);
void xrds_linger_start(struct xrds_sock *xs);
void xrds_upcall_drained(struct xrds_sock *xs);
void xrds_linger_work(struct work_struct *work);

/* ------------------------------------------------------------ notify.c */

/* Does a control message with so many bytes of content fit? */
static inline bool xrds_cmsg_room(const struct msghdr *m, size_t len)
{
	/* of programs of 32 bits; padding for the next one is not needed */
	size_t need = m->msg_flags & MSG_CMSG_COMPAT ?
		      sizeof(struct compat_cmsghdr) + len : CMSG_LEN(len);

	return m->msg_control && m->msg_controllen >= need;
}

__poll_t xrds_notify_mask(struct xrds_sock *xs);

/* The poll mask of notices and events, of which there are mostly none. Lockless;
 * a woken thread looks again.
 */
static inline __poll_t xrds_notify_pending(struct xrds_sock *xs)
{
	if (likely(list_empty(&xs->rdma.notices) && list_empty(&xs->rdma.lost) &&
		   list_empty(&xs->rdma.events) && list_empty(&xs->cleared) &&
		   list_empty(&xs->news) && list_empty(&xs->zcopied) &&
		   READ_ONCE(xs->delivered) != XRDS_DELIVERED_NEWS))
		return 0;
	return xrds_notify_mask(xs);
}

int xrds_notify_read(struct xrds_sock *xs, struct msghdr *m);
void xrds_notify_purge(struct xrds_sock *xs);

/* --------------------------------------------------------- delivered.c */

void xrds_delivered_drop_eos(struct xrds_sock *xs);
bool xrds_delivered_check(struct xrds_sock *xs);
bool xrds_delivered_pending(const struct xrds_sock *xs);
void xrds_delivered_wake(struct xrds_sock *xs);
int xrds_delivered_read(struct xrds_sock *xs, struct msghdr *m);
void xrds_delivered_set(struct xrds_sock *xs, bool on);

/* ------------------------------------------------------------- zcopy.c */

struct xrds_zcopy *xrds_zcopy_alloc(struct xrds_sock *xs, u32 cookie);
void xrds_zcopy_free(struct xrds_sock *xs, struct xrds_zcopy *zc);
struct xrds_msg *xrds_zcopy_msg(struct xrds_sock *xs,
				const struct xrds_conn *conn,
				struct xrds_zcopy *zc,
				const struct iov_iter *from, u32 len,
				long *timeo);
void xrds_zcopy_undo(struct xrds_msg *msg);
void xrds_zcopy_end(struct xrds_sock *xs, struct xrds_zcopy *zc);
int xrds_zcopy_read(struct xrds_sock *xs, struct msghdr *m);
void xrds_zcopy_purge(struct xrds_sock *xs);

/* ----------------------------------------------------------- sockopt.c */

int xrds_setsockopt(struct socket *sock, int level, int optname,
		    sockptr_t optval, unsigned int optlen);
int xrds_getsockopt(struct socket *sock, int level, int optname,
		    char __user *optval, int __user *optlen);

/* ---------------------------------------------------------- opt_info.c */

/**
 * struct xrds_dump - rows of an RDS_INFO_* dump
 * @xn:		namespace
 * @v6:		rows have IPv6 addresses, else IPv4
 * @rows:	the rows, zeroed; NULL: none
 * @each:	size of one, bytes
 * @tail:	where the fields of Oracle's UEK kernel begin in a row, bytes; 0:
 *		rows have none
 * @room:	how many @rows has room for
 * @nr:		how many there are
 */
struct xrds_dump {
	struct xrds_net *xn;
	bool v6;
	void *rows;
	size_t each;
	size_t tail;
	size_t room;
	size_t nr;
};

enum { XRDS_INFO_LAST = XRDS_UEK_INFO6_CONN_PATHS };

/* The next row of a dump, all zero; NULL when it is only counted */
static inline void *xrds_dump_row(struct xrds_dump *d)
{
	size_t i = d->nr++;

	return i < d->room ? d->rows + i * d->each : NULL;
}

/* Does an address belong into this dump? */
static inline bool xrds_dump_takes(const struct xrds_dump *d,
				   const struct in6_addr *addr)
{
	return d->v6 || ipv6_addr_v4mapped(addr);
}

int xrds_opt_info_getsockopt(struct sock *sk, int optname, char __user *optval,
			     int __user *optlen);

/* ------------------------------------------------------ opt_info_msg.c */

int xrds_opt_info_msg_send(struct xrds_dump *d);
int xrds_opt_info_msg_retrans(struct xrds_dump *d);
int xrds_opt_info_msg_recv(struct xrds_dump *d);
/* ----------------------------------------------------------- opt_uek.c */

int xrds_opt_uek_reset4(struct xrds_sock *xs, sockptr_t optval);
int xrds_opt_uek_reset6(struct xrds_sock *xs, sockptr_t optval,
			unsigned int optlen);

/* -------------------------------------------------------------- bind.c */

extern const struct rhashtable_params xrds_bind_params;

int xrds_bind_add(struct xrds_sock *xs, const struct xrds_addr *a);
void xrds_bind_del(struct xrds_sock *xs);
struct xrds_sock *xrds_bind_lookup(struct xrds_net *xn,
				   const struct in6_addr *addr, u32 scope,
				   u16 port);
struct xrds_sock *xrds_bind_lookup_again(struct xrds_net *xn,
					 struct xrds_bind_last *last,
					 const struct in6_addr *addr, u32 scope,
					 u16 port);

/* -------------------------------------------------------------- send.c */

int xrds_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
void xrds_send_push(struct xrds_sock *xs);

/* -------------------------------------------------------------- recv.c */

/* The end of a stream, for a reader with such a control buffer */
enum xrds_recv_marks {
	XRDS_MARKS_DROP,	/* none: it must not see the mark */
	XRDS_MARKS_STAY,	/* too small: it learns only that there is a mark */
	XRDS_MARKS_TAKE,	/* large enough: it reads the mark */
};

/**
 * struct xrds_recv_news - what is told of a message that has come
 * @xs:		its receiver; NULL: nothing is told
 * @data:	it can be read
 * @lost:	it was dropped, and the receiver has an error for that
 * @contact:	it may be the first that its connection brings
 * @congested:	it has made the receiver congested
 * @ended:	all streams to the receiver have ended by it
 */
struct xrds_recv_news {
	struct xrds_sock *xs;
	bool data;
	bool lost;
	bool contact;
	bool congested;
	bool ended;
};

bool xrds_recv_direct_fits(struct xrds_dest *dest, struct xrds_conn *conn,
			   struct sk_buff *skb);
enum xrds_counter xrds_recv_direct(struct xrds_dest *dest,
				   struct xrds_conn *conn, struct sk_buff *skb,
				   u64 seq, u32 len,
				   struct xrds_recv_news *news);
void xrds_recv_tell(struct xrds_conn *conn, const struct xrds_recv_news *news);
int xrds_recvmsg(struct socket *sock, struct msghdr *msg, size_t size,
		 int flags);
void xrds_recv_purge(struct xrds_sock *xs);
bool xrds_recv_ready(struct xrds_sock *xs, bool marks);
void xrds_recv_shutdown(struct xrds_sock *xs);
int xrds_recv_inq(struct xrds_sock *xs);

/* ------------------------------------------------------------ sk_err.c */

/* Is there an error, and is it the socket's own? */
static inline bool xrds_sk_err_ours(const struct sock *sk)
{
	return READ_ONCE(sk->sk_err) == ENOBUFS;
}

int xrds_sk_err_forget(struct xrds_sock *xs, int error);

/* ------------------------------------------------------------ rcvbuf.c */

bool xrds_rcvbuf_tight(const struct xrds_sock *xs, u32 more);
bool xrds_rcvbuf_overflows(struct xrds_sock *xs, struct sk_buff *skb,
			   bool legacy);
bool xrds_rcvbuf_taken(struct xrds_sock *xs, struct sk_buff *skb);
bool xrds_rcvbuf_tell_loss(struct xrds_sock *xs);
void xrds_rcvbuf_own(struct xrds_sock *xs, struct sk_buff *skb);
void xrds_rcvbuf_charge_skb(struct xrds_sock *xs, struct sk_buff *skb);
bool xrds_rcvbuf_congests(struct xrds_sock *xs);
bool xrds_rcvbuf_refuses(struct xrds_sock *xs, const struct sk_buff *skb);
void xrds_rcvbuf_admit(const struct xrds_conn *conn, u16 port, u32 len);
void xrds_rcvbuf_work(struct work_struct *work);
bool xrds_rcvbuf_close(struct xrds_sock *xs);
bool xrds_rcvbuf_uncharge(struct xrds_sock *xs, const struct sk_buff *skb);
bool xrds_rcvbuf_drop_mark(struct xrds_sock *xs, struct sk_buff *skb);

/* ------------------------------------------------------------- reply.c */

bool xrds_reply_ready(struct xrds_sock *xs, bool marks);
struct sk_buff *xrds_reply_dequeue(struct xrds_sock *xs, bool peek,
				   enum xrds_recv_marks marks);
int xrds_reply_set(struct xrds_sock *xs, u32 bytes);
void xrds_reply_retry(struct xrds_sock *xs);
void xrds_reply_work(struct work_struct *work);
void xrds_reply_stop(struct xrds_sock *xs);
bool xrds_reply_came(struct xrds_sock *xs, const struct sk_buff *skb);
void xrds_reply_read(struct xrds_sock *xs, const struct sk_buff *skb);

/* --------------------------------------------------------- timestamp.c */

/* SO_TIMESTAMP, SO_TIMESTAMPNS or SO_TIMESTAMPING of receiving in software */
#define XRDS_STAMP_FLAGS	(BIT(SOCK_RCVTSTAMP) | \
				 BIT(SOCK_TIMESTAMPING_RX_SOFTWARE))

/* Does a socket ask when its messages come, or how long they take? */
static inline bool xrds_timestamp_wanted(const struct xrds_sock *xs)
{
	return unlikely(READ_ONCE(xs->sk.sk_flags) & XRDS_STAMP_FLAGS ||
			READ_ONCE(xs->rx_trace.rx_traces));
}

void xrds_timestamp_queued(struct xrds_sock *xs, struct sk_buff *skb);
int xrds_timestamp_read(struct xrds_sock *xs, struct sk_buff *skb,
			struct msghdr *m);
int xrds_timestamp_set(struct xrds_sock *xs, const struct rds_rx_trace_so *arg);
int xrds_timestamp_set_sock(struct xrds_sock *xs, int optname, bool on);

#endif /* _XRDS_SOCK_H */
