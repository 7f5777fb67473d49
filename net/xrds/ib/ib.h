/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * XRDS over RDMA: objects of the transport, and the functions its files share.
 *
 * A connection (struct xrds_conn) is the core's and outlives any number of
 * queue pairs. One life of one queue pair is an endpoint; it is never reset,
 * always thrown away and replaced. Endpoints of a device share its receive
 * queue, if the device can, else each has one of its own.
 *
 *   main.c       module, namespaces, sysctls, counters, operations table
 *   dev.c   devices: come, go, what endpoints share
 *   cm.c    connection manager, both sides
 *   listen.c  its listeners; which device has an address
 *   cm_id.c    end of an identifier of the connection manager
 *   ep.c    life of an endpoint
 *   sq.c  send contexts, and the watch over them
 *   frag.c  a message in mid-way: fragments, and credits spent
 *   send.c  messages and control messages, credits granted
 *   bundle.c  several messages in one SEND
 *   rdma.c  RDMA ops in front of messages
 *   rq.c    receive queue: buffers posted, refilled
 *   page_ring.c  pages that were handed up, and come back
 *   recv.c  completions: credits, reassembly, control messages
 *   legacy.c  what is different toward a legacy peer
 *   regq.c  registration queue: makes keys and makes them void
 *   mr.c    memory regions, and the pool of objects for them
 *
 * Locks. The connection manager's handler mutex is outermost: handlers record
 * an event and leave, and none of the locks below is held while rdma_cm is
 * called. conn->tx_lock (L2 of xrds.h) guards all that an endpoint sends.
 * Beside it:
 *
 *   xrds_ib_devs_lock   mutex; list of devices
 *   ibdev->rq_lock      mutex; ibdev->rq
 *   m->lock             mutex of a memory region; what it has of its device
 *   regq->sem           registration queue: readers post, a writer replaces;
 *                       taken inside m->lock
 *   rq->ep_lock         mutex; rq->eps; tx_lock is taken inside
 *   ibdev->lock         spin; ibdev->eps; conn->lock is taken inside
 *   rq->lock            spin; buffers; leaf
 *   rq->page_ring.lock       spin; pages that were handed up; leaf
 *   ibdev->mr_pool.lock spin; free objects for memory regions; leaf
 */
#ifndef _XRDS_IB_H
#define _XRDS_IB_H

#include <linux/completion.h>
#include <linux/mutex.h>
#include <net/netns/generic.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "transport.h"
#include "ib/mr.h"
#include "msg.h"
#include "xrds.h"

struct xrds_ib_dev;
struct xrds_ib_ep;
struct xrds_ib_rq;

/* ------------------------------------------------------------- main.c */

enum xrds_ib_counter {
#define X(sym, name, ...) XRDS_IB_C_##sym
#include "ib/list_counters.h"
#undef X
	XRDS_IB_C_NR
};

struct xrds_ib_counters {
	u64	v[XRDS_IB_C_NR];
};

/**
 * struct xrds_ib_net - the transport's state of one network namespace
 * @net:	the namespace
 * @transport:	this transport
 * @listen_lock: held by those who come to listen or go
 * @listen:	listeners for IPv4 and IPv6, NULL where there is none;
 *		@listen_lock
 * @listen_users: calls of xrds_ib_listen_get() not undone yet; @listen_lock
 * @counters:	per-CPU counters
 * @half_open:	requests and accepted endpoints whose peer has not said hello
 * @ctl_rds:	sysctls under net/rds/ib
 * @ctl_xrds:	sysctls under net/xrds/ib
 * @max_send_wr: send work requests of an endpoint
 * @max_recv_wr: most receive buffers of a shared receive queue
 * @max_unsignaled_wr: send work requests without a signal in a row
 * @recv_window: receive buffers granted to one peer
 * @retry_count: retransmissions before a peer counts as dead
 * @ack_timeout: exponent of the time before the first retransmission, which
 *		is 4.096 us * 2 ^ @ack_timeout
 * @max_half_open: bound of @half_open
 * @max_conns:	connections of peers beyond which a request gets no new one
 * @bundle_bytes: most bytes of a SEND with several messages; 0: there are none,
 *		either way
 */
struct xrds_ib_net {
	struct net *net;
	const struct xrds_transport *transport;
	struct mutex listen_lock;	/* listen, listen_users */
	struct rdma_cm_id *listen[2];
	unsigned int listen_users;
	struct xrds_ib_counters __percpu *counters;
	atomic_t half_open;

	struct ctl_table_header *ctl_rds;
	struct ctl_table_header *ctl_xrds;
	unsigned int max_send_wr;
	unsigned int max_recv_wr;
	unsigned int max_unsignaled_wr;
	unsigned int recv_window;
	unsigned int retry_count;
	unsigned int ack_timeout;
	unsigned int max_half_open;
	unsigned int max_conns;
	unsigned int bundle_bytes;
};

/* What belongs to devices counts in the first namespace, but devices are there
 * before the transport knows of it, and after it has forgotten it.
 */
DECLARE_PER_CPU(struct xrds_ib_counters, xrds_ib_dev_counters);

extern struct workqueue_struct *xrds_ib_wq;
extern unsigned int xrds_ib_net_id;

/* It lives as long as the namespace and the module. */
static inline struct xrds_ib_net *xrds_ib_net(const struct net *net)
{
	return net_generic(net, xrds_ib_net_id);
}

static inline void xrds_ib_count(struct xrds_ib_net *xin,
				 enum xrds_ib_counter c)
{
	this_cpu_inc(xin->counters->v[c]);
}

static inline void xrds_ib_count_add(struct xrds_ib_net *xin,
				     enum xrds_ib_counter c, u64 n)
{
	this_cpu_add(xin->counters->v[c], n);
}

/* ------------------------------------------------------------- sysctl.c */

int xrds_ib_sysctl_init(struct xrds_ib_net *xin);
void xrds_ib_sysctl_exit(struct xrds_ib_net *xin);

/* -------------------------------------------------------------- quirks.c */

/**
 * struct xrds_ib_quirks - where a device differs from what verbs promise
 * @no_fences:	a fence may wait for ever
 * @late_copies: a packet that is being copied is not stopped by invalidating
 *		its key
 * @spare_pages: entries that a page list must have behind the last page
 */
struct xrds_ib_quirks {
	bool no_fences;
	bool late_copies;
	u8 spare_pages;
};

int xrds_ib_quirks_probe(struct xrds_ib_dev *ibdev);
void xrds_ib_quirks_free_cq(struct ib_cq *cq);

/* ---------------------------------------------------------- dev.c */

/**
 * struct xrds_ib_dev - an RDMA device
 * @entry:	in the list of devices until removal; xrds_ib_devs_lock
 * @dev:	the device
 * @pd:		protection domain of all queue pairs
 * @ref:	one until removal, one for each endpoint, receive queue and
 *		memory region
 * @gone:	completed when @ref is zero
 * @lock:	guards @eps, @mrs and @removed
 * @eps:	endpoints, to be told of removal
 * @nr_eps:	how many; @lock
 * @mrs:	memory regions, ended by removal
 * @nr_mrs:	how many; @lock
 * @removed:	removal has begun; also read under @rq_lock
 * @rq_lock:	guards @rq
 * @rq:		shared receive queue for new endpoints, NULL until needed
 * @shared:	the device has shared receive queues and they are wanted
 * @quirks:	how it behaves, constant
 * @no_atomics:	it makes no keys that are good for atomics
 * @regq:	registration queue
 * @mr_pool:	objects for memory regions that are free
 */
struct xrds_ib_dev {
	struct list_head entry;
	struct ib_device *dev;
	struct ib_pd *pd;
	refcount_t ref;
	struct completion gone;
	spinlock_t lock;		/* eps, mrs, removed */
	struct list_head eps;
	u32 nr_eps;
	struct list_head mrs;
	u32 nr_mrs;
	bool removed;
	struct mutex rq_lock;		/* rq */
	struct xrds_ib_rq *rq;
	bool shared;
	struct xrds_ib_quirks quirks;
	bool no_atomics;
	struct xrds_ib_regq regq;
	struct xrds_ib_mr_pool mr_pool;
};

void xrds_ib_dev_publish(struct xrds_ib_dev *ibdev);
void xrds_ib_dev_make_dead(struct xrds_ib_dev *ibdev);
struct xrds_ib_dev *xrds_ib_dev_get(const struct ib_device *dev);
struct xrds_ib_dev *xrds_ib_dev_for(struct net *net,
				    const struct in6_addr *addr, u32 scope);
int xrds_ib_dev_local(struct net *net, const struct in6_addr *addr, u32 scope);
void xrds_ib_dev_hold(struct xrds_ib_dev *ibdev);
void xrds_ib_dev_put(struct xrds_ib_dev *ibdev);
int xrds_ib_dev_add_ep(struct xrds_ib_dev *ibdev, struct xrds_ib_ep *ep);
void xrds_ib_dev_del_ep(struct xrds_ib_dev *ibdev, struct xrds_ib_ep *ep);
int xrds_ib_dev_detail(const struct net *net, unsigned int nr,
		       struct xrds_device_detail *d);

/* ----------------------------------------------------------- rq.c */

enum {
	/* nobody is bound to it: the kernel of a legacy peer keeps it */
	XRDS_IB_NO_PORT		= 1,
	/* receive work requests of one call to the device */
	XRDS_IB_POST_BATCH	= 16,
	/* endpoints that may have lost a buffer before the queue is replaced */
	XRDS_IB_MAX_LOST	= 32,
};

enum { XRDS_IB_PAGE_RING = 256 };	/* pages, at most */

/**
 * struct xrds_ib_page_ring - pages that a receive queue has handed up
 * @lock:	guards the rest
 * @pages:	the pages, with a reference each
 * @first:	place of the oldest
 * @nr:		how many
 * @most:	bound of @nr, constant
 * @at:		jiffies when the last was handed up
 * @trim:	gives them up when none was for a while
 */
struct xrds_ib_page_ring {
	spinlock_t lock;		/* ring, first, nr */
	struct page *pages[XRDS_IB_PAGE_RING];
	u32 first;
	u32 nr;
	u32 most;
	unsigned long at;
	struct delayed_work trim;
};

void xrds_ib_page_ring_init(struct xrds_ib_page_ring *ring, u32 most);
void xrds_ib_page_ring_exit(struct xrds_ib_page_ring *ring);
void xrds_ib_page_ring_keep(struct xrds_ib_page_ring *ring, struct page *page);
struct page *xrds_ib_page_ring_reuse(struct xrds_ib_page_ring *ring);

/**
 * struct xrds_ib_buf - a receive buffer
 * @cqe:	completion
 * @wr:		work request
 * @sge:	of @wr
 * @entry:	in rq->ready, or rq->empty, or neither while posted; rq->lock
 * @all_entry:	in rq->bufs
 * @rq:		receive queue
 * @page:	memory, mapped for the device; NULL when handed up
 * @dma:	its address
 * @skb:	set aside so that handing @page up cannot fail; NULL when used
 */
struct xrds_ib_buf {
	struct ib_cqe cqe;
	struct ib_recv_wr wr;
	struct ib_sge sge;
	struct list_head entry;
	struct list_head all_entry;
	struct xrds_ib_rq *rq;
	struct page *page;
	u64 dma;
	struct sk_buff *skb;
};

/**
 * struct xrds_ib_rq_ops - what a receive queue tells the receive path
 * @done:	a buffer has completed; it goes back with xrds_ib_rq_return()
 * @grant:	there are buffers for credits that an endpoint had to withhold;
 *		called with rq->ep_lock held
 */
struct xrds_ib_rq_ops {
	void (*done)(struct ib_cq *cq, struct ib_wc *wc);
	void (*grant)(struct xrds_ib_ep *ep);
};

/**
 * struct xrds_ib_rq - a queue of receive buffers
 * @ref:	one for each endpoint, one for ibdev->rq
 * @ops:	the receive path
 * @ibdev:	device, with a reference
 * @srq:	shared receive queue, or NULL
 * @qp:		the queue pair it belongs to, if not shared; set before the
 *		first buffer is posted
 * @buf_bytes:	size of a buffer
 * @order:	the same as page order
 * @max_bufs:	most that the device's queue takes
 * @refill:	makes buffers ready again that were handed up
 * @window:	buffers wanted for each busy user: the largest of theirs; @ep_lock
 * @ep_lock:	guards @eps, @nr_users, @busy, @nr_lost and @window
 * @eps:	endpoints that receive from it
 * @nr_users:	those of them that have granted credits
 * @busy:	shared queue only: so many of them have their @window
 * @nr_lost:	endpoints that may have taken a buffer with them
 * @low:	shared queue only: it has run low since the last refill; set by
 *		anybody, cleared by the refill
 * @withheld:	credits were not granted for want of buffers; see
 *		xrds_ib_rq_avail()
 * @armed:	the device will tell when it runs low; whoever clears it tells
 *		the refill
 * @page_ring: pages that were handed up
 * @lock:	guards what follows
 * @bufs:	all buffers, posted ones included
 * @ready:	buffers that can be posted
 * @empty:	buffers without page or skb
 * @nr_ready:	length of @ready
 * @nr_posted:	posted and not completed; also read without @lock, where a
 *		value that was right a moment ago will do
 * @target:	as many shall be posted; also read without @lock
 * @stopped:	nothing is posted any more; also read without @lock
 */
struct xrds_ib_rq {
	refcount_t ref;
	const struct xrds_ib_rq_ops *ops;
	struct xrds_ib_dev *ibdev;
	struct ib_srq *srq;
	struct ib_qp *qp;
	u32 buf_bytes;
	unsigned int order;
	u32 max_bufs;
	u32 window;
	struct delayed_work refill;

	struct mutex ep_lock;		/* eps, nr_users, busy, nr_lost */
	struct list_head eps;
	u32 nr_users;
	u32 busy;
	u32 nr_lost;
	bool low;
	bool withheld;
	bool armed;
	struct xrds_ib_page_ring page_ring;

	spinlock_t lock;		/* what follows */
	struct list_head bufs;
	struct list_head ready;
	struct list_head empty;
	u32 nr_ready;
	u32 nr_posted;
	u32 target;
	bool stopped;
};

struct xrds_ib_rq *xrds_ib_rq_create(struct xrds_ib_dev *ibdev,
				     const struct xrds_ib_rq_ops *ops,
				     u32 window);
struct xrds_ib_rq *xrds_ib_rq_get_shared(struct xrds_ib_dev *ibdev,
					 const struct xrds_ib_rq_ops *ops,
					 u32 max_bufs, u32 window);
void xrds_ib_rq_put(struct xrds_ib_rq *rq);
void xrds_ib_rq_attach(struct xrds_ib_rq *rq, struct xrds_ib_ep *ep);
int xrds_ib_rq_grow(struct xrds_ib_rq *rq, struct xrds_ib_ep *ep);
void xrds_ib_rq_detach(struct xrds_ib_rq *rq, struct xrds_ib_ep *ep);
void xrds_ib_rq_lost(struct xrds_ib_rq *rq);
u32 xrds_ib_rq_avail(struct xrds_ib_rq *rq, u32 window);
struct page *xrds_ib_rq_unmap(struct xrds_ib_rq *rq, struct xrds_ib_buf *buf);
void xrds_ib_rq_return(struct xrds_ib_rq *rq, struct xrds_ib_buf *buf);
void xrds_ib_rq_failed(struct xrds_ib_rq *rq);

/* ----------------------------------------------------------- cm.c */

enum {
	/* gather entries of a send: the header and two pieces of payload */
	XRDS_IB_SGE		= 3,
	/* scatter entries of an op: what fills two units of a send queue */
	XRDS_IB_OP_SGE		= 6,
	XRDS_IB_CTL_BUFS	= 4,	/* control messages with payload */
	XRDS_IB_CTL_BYTES	= 256,	/* header and XRDS_CTL_INLINE_BYTES */
	/* the buffer that takes the first message: a hello, or what a peer
	 * sends that turns out to be legacy
	 */
	XRDS_IB_HELLO_BYTES	= 128,
	XRDS_IB_FIRST_BYTES	= XRDS_WIRE_CLASSIC_FRAG_BYTES,
	XRDS_IB_MAX_CREDITS	= 32767,
	/* messages whose fragments alternate */
	XRDS_IB_TAGS		= 2,
	XRDS_IB_RD_ATOMIC	= 8,	/* RDMA reads under way */
	XRDS_IB_EXTRA_SEND_WR	= 2,	/* a nudge, and the drain's marker */
	/* for a device to tell whose op the peer's device has refused */
	XRDS_IB_NAK_MS		= 100,
	/* a queue pair that completes nothing for so long at least is stuck */
	XRDS_IB_STALL_MS	= 5000,
};

/* What an active endpoint waits for; written by the worker */
enum xrds_ib_step {
	XRDS_IB_STEP_ADDR,	/* address is being resolved */
	XRDS_IB_STEP_ROUTE,	/* route is being resolved */
	XRDS_IB_STEP_CONNECT,	/* request or reply is sent */
};

/* Bits of ep->once: what is done once, whoever comes first */
enum {
	XRDS_IB_FAILED,		/* a reason to end was reported */
	XRDS_IB_HALF_OPEN,	/* counted in xin->half_open */
	XRDS_IB_QP_ERROR,	/* the queue pair has reported an error */
	XRDS_IB_PEER_GONE,	/* the peer has disconnected under an op */
};

/**
 * struct xrds_ib_sctx - one send work request
 * @cqe:	completion; of this send context and those before it
 * @wr:		work request
 * @rdma:	the same of a read or write
 * @atomic:	the same of an atomic
 * @sge:	of a SEND; the first is the header, the others mapped payload
 * @rop:	op that this is part of, kept by its message behind it; NULL
 *		for a SEND
 * @msg:	message that ends with this fragment, with a reference, or NULL
 * @bundle:	memory of a bundle, mapped as the second of @sge, or NULL
 * @ctl:	number of the control buffer in use, or -1
 * @tag:	which part of the endpoint it is of
 * @bulk:	a fragment with tag 1, counted in tx->nr_bulk
 */
struct xrds_ib_sctx {
	struct ib_cqe cqe;
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
	};
	struct ib_sge sge[XRDS_IB_SGE];
	struct xrds_rop *rop;
	struct xrds_msg *msg;
	struct page *bundle;
	s8 ctl;
	u8 tag;
	bool bulk;
};

static_assert(!offsetof(struct ib_rdma_wr, wr));
static_assert(!offsetof(struct ib_atomic_wr, wr));

/**
 * struct xrds_ib_cursor - a message of which some is posted: its op first, then
 *	its fragments
 * @msg:	with a reference; NULL: none
 * @hdr:	header of its fragments
 * @left:	payload not posted, bytes
 * @bv:		index of the first bio_vec not wholly posted
 * @bv_off:	bytes of it that are
 * @frag:	index of the next fragment
 * @fence:	the first fragment waits for the op
 * @op_end:	where tx->retired will be when the device has done the op
 */
struct xrds_ib_cursor {
	struct xrds_msg *msg;
	struct xrds_hdr hdr;
	u32 left;
	u32 bv;
	u32 bv_off;
	u16 frag;
	bool fence;
	u32 op_end;
};

/**
 * struct xrds_ib_tx - what an endpoint sends; all under conn->tx_lock
 * @send contexts:	ring of @nr
 * @nr:		send contexts
 * @head:	next to use
 * @tail:	oldest in use
 * @used:	in use
 * @retired:	retired, ever
 * @run:	posted since the last signalled one
 * @nr_signaled: of those in use
 * @max_run:	sysctl max_unsignaled_wr when it was made
 * @op_sge:	most scatter entries of a write
 * @read_sge:	most scatter entries of a read
 * @ctl_used:	bit mask of control buffers in use
 * @hdrs:	headers, then control buffers
 * @hdrs_dma:	their address
 * @hdrs_bytes:	their size
 * @credits:	SENDs that the peer has granted and that are not used
 * @most_credits: most that @credits has been
 * @granted:	SENDs granted to the peer, ever
 * @window:	most of them outstanding
 * @payload:	most payload of a fragment, bytes
 * @bundle:	most bytes of a SEND with several messages, 0: there are none
 * @cursor:	messages of which some fragments are not posted, by tag
 * @nr_bulk:	fragments with tag 1 in use
 * @bulk_run:	of those posted since one was signalled for being one
 * @passed:	other messages sent since the last of them
 * @shared_at:	jiffies when another message was sent beside them, 0: never
 * @blocked:	the core was told to come again
 * @ctl_blocked: with a control message
 * @broken:	a call to the device failed
 * @closed:	BYE_ACK was sent, nothing may follow it
 * @bye_sent:	BYE was sent
 * @progress:	jiffies when something completed last, or when the first
 *		signalled one was posted since
 * @stall:	jiffies without progress after which it is stuck
 * @rtt_ns:	round trip of a send, smoothed, 0: none was measured
 * @rtt_sctx:	send context of the send that is being measured, or NULL
 * @rtt_start:	when it was posted, CLOCK_MONOTONIC
 * @rtt_next:	jiffies when the next one may be
 * @nudging:	@nudge is posted
 * @nudge:	makes the device look at the queue
 * @nudge_cqe:	its completion
 */
struct xrds_ib_tx {
	struct xrds_ib_sctx *ring;
	u16 nr;
	u16 head;
	u16 tail;
	u16 used;
	u32 retired;
	u16 run;
	u16 nr_signaled;
	u16 max_run;
	u8 op_sge;
	u8 read_sge;
	u8 ctl_used;
	void *hdrs;
	u64 hdrs_dma;
	u32 hdrs_bytes;
	u32 credits;
	u32 most_credits;
	u32 granted;
	u32 window;
	u32 payload;
	u32 bundle;
	struct xrds_ib_cursor cursor[XRDS_IB_TAGS];
	u32 nr_bulk;
	u32 bulk_run;
	u32 passed;
	unsigned long shared_at;
	bool blocked;
	bool ctl_blocked;
	bool broken;
	bool closed;
	bool bye_sent;
	unsigned long progress;
	unsigned long stall;
	u64 rtt_ns;
	const struct xrds_ib_sctx *rtt_sctx;
	u64 rtt_start;
	unsigned long rtt_next;
	bool nudging;
	struct ib_rdma_wr nudge;
	struct ib_cqe nudge_cqe;
};

/**
 * struct xrds_ib_rx_msg - a message that is being received
 * @reasm:	progress
 * @head:	its payload so far
 * @last:	@head or the last skb of its frag_list
 */
struct xrds_ib_rx_msg {
	struct xrds_wire_reasm reasm;
	struct sk_buff *head;
	struct sk_buff *last;
};

/**
 * struct xrds_ib_rx - what an endpoint receives; completions only, which its
 *	completion queue serialises
 * @received:	SENDs that used a credit, ever; also read by senders
 * @max_payload: most payload of a fragment, bytes
 * @msg:	messages that are being received, by tag
 * @hello:	the peer's hello has come
 * @bundles:	a SEND may have several messages
 * @ack_only:	the last SEND was an acknowledgment and nothing else
 * @bye:	the peer's BYE has come
 * @bye_ack:	the peer's BYE_ACK has come
 * @failed:	the peer broke the protocol: nothing more is taken from it
 * @hello_cqe:	completion of the buffer for the hello
 * @hello_buf:	own receive queue only: takes the first message
 * @hello_dma:	its address
 * @hello_bytes: its size
 */
struct xrds_ib_rx {
	u32 received;
	u32 max_payload;
	struct xrds_ib_rx_msg msg[XRDS_IB_TAGS];
	bool hello;
	bool bundles;
	bool ack_only;
	bool bye;
	bool bye_ack;
	bool failed;
	struct ib_cqe hello_cqe;
	void *hello_buf;
	u64 hello_dma;
	u32 hello_bytes;
};

/**
 * struct xrds_ib_ep - one life of one queue pair
 * @conn:	connection, with a reference
 * @xin:	namespace
 * @gen:	conn->ep_gen when it was made
 * @id:		identifier of the connection manager
 * @step:	what it waits for; worker
 * @passive:	the peer has dialled
 * @old_offer:	we have, and offer the oldest version
 * @version:	XRDS_VER_*, 0 until known; written once, but for the minor one
 * @revision:	of XRDS mode that we speak, constant
 * @ack:	what the peer's private data acknowledges, legacy
 * @peer_qpn:	number of the peer's queue pair, from its request or reply
 * @once:	bits, see above
 * @dead:	being torn down: completions only give their buffers back
 * @ibdev:	device, with a reference; NULL until it is known
 * @dev_entry:	in ibdev->eps; ibdev->lock
 * @cq:		completion queue of sends and receives
 * @qp:		queue pair, same as id->qp
 * @rq:		receive queue, with a reference
 * @rq_entry:	in rq->eps; rq->ep_lock
 * @granting:	counted in rq->nr_users; rq->ep_lock
 * @watch:	finds a queue pair that is stuck, has reported an error, or was left
 *		by the peer under an op
 * @bulk_work:	posts more of a large message
 * @tx:		see there
 * @rx:		see there
 */
struct xrds_ib_ep {
	struct xrds_conn *conn;
	struct xrds_ib_net *xin;
	u32 gen;
	struct rdma_cm_id *id;
	enum xrds_ib_step step;
	bool passive;
	bool old_offer;
	int version;
	u16 revision;
	u64 ack;
	u32 peer_qpn;
	unsigned long once;
	bool dead;
	struct xrds_ib_dev *ibdev;
	struct list_head dev_entry;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct xrds_ib_rq *rq;
	struct list_head rq_entry;
	bool granting;
	struct delayed_work watch;
	struct work_struct bulk_work;
	struct xrds_ib_tx tx;
	struct xrds_ib_rx rx ____cacheline_aligned_in_smp;
};

static inline bool xrds_ib_ep_xrds(const struct xrds_ib_ep *ep)
{
	return READ_ONCE(ep->version) == XRDS_VER_XRDS;
}

static inline u16 xrds_ib_port(bool v6)
{
	return v6 ? XRDS_WIRE_PORT_V6 : XRDS_WIRE_PORT_V4;
}

int xrds_ib_cm_listen_event(struct rdma_cm_id *id, struct rdma_cm_event *event);
int xrds_ib_cm_dial(struct xrds_conn *conn);
int xrds_ib_cm_advance(struct xrds_conn *conn);
int xrds_ib_cm_accept(struct xrds_conn *conn);
void xrds_ib_cm_refuse(struct xrds_conn *conn, struct xrds_request *req);
int xrds_ib_cm_start(struct xrds_conn *conn);

/* ------------------------------------------------------- listen.c */

int xrds_ib_listen_get(struct net *net);
void xrds_ib_listen_put(struct net *net);

/* ----------------------------------------------------------- cm_id.c */

bool xrds_ib_cm_id_up(const struct rdma_cm_id *id);
void xrds_ib_cm_id_destroy(struct rdma_cm_id *id);
int xrds_ib_cm_id_init(void);
void xrds_ib_cm_id_exit(void);

/* ----------------------------------------------------------- ep.c */

struct xrds_ib_ep *xrds_ib_ep_alloc(struct xrds_conn *conn);
int xrds_ib_ep_setup(struct xrds_ib_ep *ep);
void xrds_ib_ep_publish(struct xrds_ib_ep *ep);
void xrds_ib_ep_describe(const struct xrds_conn *conn,
			 struct rds6_info_rdma_connection *row);
void xrds_ib_ep_detail(const struct xrds_conn *conn,
		       struct xrds_conn_detail *d);
void xrds_ib_ep_destroy(struct xrds_ib_ep *ep);
void xrds_ib_event_fail(struct xrds_ib_ep *ep, enum xrds_event ev, int error);
void xrds_ib_event_wire_error(struct xrds_ib_ep *ep, enum xrds_wire_err err);
void xrds_ib_event_not_half_open(struct xrds_ib_ep *ep);
int xrds_ib_event_wc_errno(const struct ib_wc *wc);
void xrds_ib_ep_stop(struct xrds_conn *conn);

/* --------------------------------------------------------- sq.c */

struct xrds_ib_sctx *xrds_ib_sq_take(struct xrds_ib_tx *tx);
void xrds_ib_sq_signal(struct xrds_ib_ep *ep, struct xrds_ib_sctx *sctx);
bool xrds_ib_sq_wants_signal(const struct xrds_ib_ep *ep,
			     const struct xrds_ib_sctx *sctx);
void xrds_ib_sq_retire(struct xrds_ib_ep *ep,
		       const struct xrds_ib_sctx *until,
		       struct list_head *ended);
void xrds_ib_sq_untake(struct xrds_ib_ep *ep, struct xrds_ib_sctx *from);
int xrds_ib_sq_post(struct xrds_ib_ep *ep, struct xrds_ib_sctx *first);
void *xrds_ib_sq_hdr(struct xrds_ib_ep *ep, struct xrds_ib_sctx *sctx,
		     u32 *offset);
void xrds_ib_sq_sync(struct xrds_ib_ep *ep, struct xrds_ib_sctx *sctx,
		     u32 offset, u32 bytes);
bool xrds_ib_sq_fail_late(struct xrds_ib_ep *ep);
int xrds_ib_sq_init(struct xrds_ib_ep *ep,
		    void (*done)(struct ib_cq *cq, struct ib_wc *wc));
void xrds_ib_sq_free(struct xrds_ib_ep *ep);

/* ------------------------------------------------------- bundle.c */

bool xrds_ib_bundle_wanted(const struct xrds_ib_ep *ep,
			   const struct xrds_msg *msg);
bool xrds_ib_bundle_post(struct xrds_ib_ep *ep, const struct xrds_msg *msg);

/* --------------------------------------------------------- frag.c */

u8 xrds_ib_sq_spend(struct xrds_ib_ep *ep, u32 *grant);
void xrds_ib_frag_wire_msg(const struct xrds_ib_ep *ep,
			   const struct xrds_msg *msg,
			   struct xrds_wire_msg *wm);
void xrds_ib_frag_begin(struct xrds_ib_ep *ep, u8 tag, struct xrds_msg *msg);
int xrds_ib_frag_post(struct xrds_ib_ep *ep, u8 tag);
bool xrds_ib_frag_bulk_shares(const struct xrds_ib_tx *tx);
bool xrds_ib_frag_bulk_turn(const struct xrds_ib_tx *tx);

/* --------------------------------------------------------- send.c */

u32 xrds_ib_sq_grantable(struct xrds_ib_ep *ep);
bool xrds_ib_sq_can_send(struct xrds_ib_ep *ep, u32 grant);
int xrds_ib_send_init(struct xrds_ib_ep *ep);
int xrds_ib_send_hello(struct xrds_ib_ep *ep);
void xrds_ib_send_open(struct xrds_ib_ep *ep,
		       const struct xrds_wire_hello *hello);
bool xrds_ib_send_credits(struct xrds_ib_ep *ep, u32 credits);
void xrds_ib_send_update(struct xrds_ib_ep *ep, bool asked);
int xrds_ib_send_msg(struct xrds_conn *conn, struct xrds_msg *msg);
int xrds_ib_send_ctl(struct xrds_conn *conn, u8 type, const void *data,
		     u32 len);
int xrds_ib_send_flushed(struct xrds_conn *conn);

/* --------------------------------------------------------- rdma.c */

int xrds_ib_rdma_prepare(struct xrds_conn *conn, struct xrds_msg *msg);
bool xrds_ib_rdma_op_remaining(const struct xrds_msg *msg);
bool xrds_ib_rdma_op_fresh(const struct xrds_msg *msg);
bool xrds_ib_rdma_op_fenced(const struct xrds_msg *msg);
bool xrds_ib_rdma_op_refused(const struct xrds_msg *msg);
int xrds_ib_rdma_op_fill(struct xrds_ib_ep *ep, struct xrds_ib_sctx *sctx,
			 const struct xrds_msg *msg);
void xrds_ib_rdma_op_unmap(struct xrds_ib_ep *ep,
			   const struct xrds_ib_sctx *sctx);
void xrds_ib_rdma_op_refuse(struct xrds_ib_ep *ep, const struct xrds_msg *msg);
void xrds_ib_rdma_op_failed(struct xrds_ib_ep *ep, struct xrds_rop *rop,
			    const struct ib_wc *wc);
void xrds_ib_rdma_op_collect(struct xrds_msg *msg, struct list_head *ended);
void xrds_ib_rdma_end_ops(struct list_head *ended, s32 status);

/* ------------------------------------------------------ legacy.c */

u16 xrds_ib_legacy_mask(void);
bool xrds_ib_legacy_known(const struct xrds_ib_ep *ep);
bool xrds_ib_legacy_set_version(struct xrds_ib_ep *ep, int version);
int xrds_ib_legacy_guess_version(struct xrds_ib_ep *ep, const void *data,
				 u32 bytes);
u32 xrds_ib_legacy_max_recvs(const struct xrds_ib_ep *ep);
int xrds_ib_legacy_start(struct xrds_ib_ep *ep);
void xrds_ib_legacy_received(struct xrds_ib_ep *ep);
void xrds_ib_legacy_hdr(struct xrds_wire_msg *wm);
void xrds_ib_legacy_sent(struct xrds_ib_ep *ep, struct xrds_ib_sctx *sctx);

/* --------------------------------------------------------- recv.c */

int xrds_ib_recv_init(struct xrds_ib_ep *ep);
int xrds_ib_recv_post_hello(struct xrds_ib_ep *ep);
void xrds_ib_recv_free(struct xrds_ib_ep *ep);
extern const struct xrds_ib_rq_ops xrds_ib_recv_ops;

#endif /* _XRDS_IB_H */
