/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * XRDS over RDMA: the transport's objects, and the functions that its files
 * share.
 *
 * A connection (struct xrds_conn) belongs to the core and outlives any number
 * of queue pairs. An endpoint (struct xrds_ib_ep) is one life of one queue
 * pair: it is never reset, always destroyed and replaced. The endpoints of a
 * device share its receive queue, if the device has shared ones; else each
 * endpoint has its own.
 *
 * The files, from the top down. A file calls those below it, never one above.
 *
 *   main.c       module, namespaces, counters, device client, operations
 *   sysctl.c     sysctls
 *   listen.c     listeners of the connection manager
 *   lost.c       regions whose device fails or loses their address
 *   cm.c         connection manager: dial, accept, its events
 *   cm_req.c     requests of peers, until they are accepted or refused
 *   ep.c         life of an endpoint
 *   recv.c       receive completions, reassembly, control messages
 *   send.c       messages and control messages to send, send completions
 *   bundle.c     several messages in one SEND
 *   frag.c       the fragments of a message, one after the other
 *   legacy.c     differences toward a legacy peer
 *   watch.c      whether a send queue goes on
 *   sq.c         send queue: send contexts, credits
 *   rdma.c       RDMA ops in front of messages
 *   rq.c         receive queue: its users and its size
 *   share.c      credits that the users of a receive queue may have
 *   buf.c        receive buffers: posted, returned, filled again
 *   page_ring.c  pages of receive buffers that are used again
 *   mr.c         memory regions
 *   frwr.c       objects for memory regions, and their pool
 *   key.c        addresses of regions, which no dead key reaches
 *   regq.c       registration queue: makes keys valid and invalid
 *   dev.c        devices, and the device of an address
 *   cm_id.c      deferred destroy of connection manager identifiers
 *   event.c      an endpoint's reports to its connection
 *   stuck.c      queue pairs that their device does not destroy
 *   quirks.c     behaviour of devices that needs a workaround
 *   port.c       whether a port has the address that a peer claims
 *
 * Send contexts and messages to send are in ib/tx.h, receive queues in ib/rx.h,
 * memory regions in ib/mr.h; this header includes them.
 *
 * Locks. The connection manager's handler mutex is outermost: handlers record
 * an event and return, and none of the locks below is held while rdma_cm is
 * called. conn->tx_lock (L2 of xrds.h) guards the sending side of an endpoint.
 * In addition:
 *
 *   xrds_ib_devs_lock   mutex; list of devices
 *   ibdev->rq_lock      mutex; ibdev->rq, ibdev->old_rqs
 *   m->lock             mutex of a memory region; its registration
 *   regq->sem           registration queue: readers post, a writer replaces;
 *                       taken inside m->lock
 *   rq->ep_lock         mutex; rq->eps, rq->stuck; tx_lock is taken inside
 *   ibdev->lock         spin; ibdev->eps, ibdev->mrs; conn->lock is taken
 *                       inside
 *   rq->lock            spin; buffers; leaf
 *   rq->page_ring.lock  spin; pages; leaf
 *   ibdev->mr_pool.lock spin; free objects for memory regions; leaf
 *   xrds_ib_keys_lock   spin; keys of dead regions; leaf
 */
#ifndef _XRDS_IB_H
#define _XRDS_IB_H

#ifndef XRDS_IB
#error "ib/ib.h is for ib/ only"
#endif

#include <linux/completion.h>
#include <linux/mutex.h>
#include <net/netns/generic.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "transport.h"
#include "ib/mr.h"
#include "ib/rx.h"
#include "ib/tx.h"
#include "msg.h"
#include "xrds.h"

/* --------------------------------------------------------------- main.c */

enum xrds_ib_counter {
#define X(sym, name, ...) XRDS_IB_C_##sym
#include "ib/list_counters.h"
#undef X
	XRDS_IB_C_NR
};

struct xrds_ib_counters {
	u64	v[XRDS_IB_C_NR];
};

/* Sysctls of mainline and of Oracle's UEK kernel without effect here */
enum xrds_ib_inert {
	XRDS_IB_INERT_RECV_ALLOCATION,
	XRDS_IB_INERT_FLOW_CONTROL,
	XRDS_IB_INERT_UNSOLICITED_WR,
	XRDS_IB_INERT_UNMAP_CPU,
	XRDS_IB_INERT_GC_INTERVAL,
	XRDS_IB_INERT_GC_IDLE,
	XRDS_IB_INERT_QUARANTINE,
	XRDS_IB_INERT_POLL_TIMEOUT_S,
	XRDS_IB_INERT_FREE_DELAY,
	XRDS_IB_INERT_YIELD_MS,
	XRDS_IB_INERT_WATCHDOG_MS,
	XRDS_IB_INERT_CHECK_ADDRS,
	XRDS_IB_INERT_REFILL,
	XRDS_IB_INERT_RING_LOW,
	XRDS_IB_INERT_RING_MID,
	XRDS_IB_INERT_NR
};

/**
 * struct xrds_ib_net - the transport's state of one network namespace
 * @net:	the namespace
 * @transport:	this transport
 * @listen_lock: mutex; @listen and @listen_users
 * @listen:	listeners for IPv4 and IPv6, or NULL; @listen_lock
 * @listen_users: calls of xrds_ib_listen_get() without a put; @listen_lock
 * @counters:	per-CPU counters
 * @half_open:	requests and accepted endpoints whose peer has not said hello
 * @parts:	memory of large messages of which a part has arrived, bytes
 * @ctl_rds:	sysctls under net/rds/ib
 * @ctl_xrds:	sysctls under net/xrds/ib
 * @max_send_wr: send work requests of an endpoint
 * @max_recv_wr: upper limit for receive buffers of a shared receive queue
 * @max_unsignaled_wr: send work requests without a signal in a row
 * @recv_window: receive buffers granted to one peer
 * @retry_count: retransmissions before a peer counts as dead
 * @ack_timeout: exponent of the time before the first retransmission, which
 *		is 4.096 us * 2 ^ @ack_timeout
 * @max_half_open: upper limit of @half_open
 * @max_conns:	connections made by peers; above it a request gets no new one
 * @bundle_bytes: upper limit for a SEND with several messages, bytes; 0: no
 *		such SENDs in either direction
 * @autocork_us: small messages wait for the completion of a SEND if the round trip
 *		is not longer; 0: none does
 * @inert:	values that were written, by enum xrds_ib_inert
 */
struct xrds_ib_net {
	struct net *net;
	const struct xrds_transport *transport;
	struct mutex listen_lock;	/* listen, listen_users */
	struct rdma_cm_id *listen[2];
	unsigned int listen_users;
	struct xrds_ib_counters __percpu *counters;
	atomic_t half_open;
	atomic64_t parts;

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
	unsigned int autocork_us;
	unsigned int inert[XRDS_IB_INERT_NR];
};

/* Counters of devices are added to those of the first namespace. Devices exist
 * before the transport has namespaces, and after it has left them.
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

static inline void xrds_ib_rq_count(enum xrds_ib_counter c)
{
	this_cpu_inc(xrds_ib_dev_counters.v[c]);
}

static inline void xrds_ib_rq_kick_refill(struct xrds_ib_rq *rq,
					  unsigned int ms)
{
	queue_delayed_work(xrds_ib_wq, &rq->refill, msecs_to_jiffies(ms));
}

/* ------------------------------------------------------------- sysctl.c */

int xrds_ib_sysctl_init(struct xrds_ib_net *xin);
void xrds_ib_sysctl_exit(struct xrds_ib_net *xin);

/* ------------------------------------------------------------- listen.c */

int xrds_ib_listen_get(struct net *net);
void xrds_ib_listen_put(struct net *net);

/* --------------------------------------------------------------- lost.c */

int xrds_ib_lost_init(void);
void xrds_ib_lost_exit(void);
void xrds_ib_lost_event(struct ib_event_handler *handler,
			struct ib_event *event);

/* ----------------------------------------------------------------- cm.c */

int xrds_ib_cm_dial(struct xrds_conn *conn);
int xrds_ib_cm_advance(struct xrds_conn *conn);
int xrds_ib_cm_accept(struct xrds_conn *conn);
int xrds_ib_cm_start(struct xrds_conn *conn);

/* ------------------------------------------------------------- cm_req.c */

/**
 * struct xrds_ib_cm_req - a request that waits for the connection's work item
 * @base:	must be first
 * @id:		its identifier
 * @xin:	namespace; counted in its half_open
 * @withdrawn:	the peer, or the device, is gone; handler mutex of @id
 * @version:	XRDS_VER_*
 * @ack:	acknowledgment in the private data of a legacy peer
 * @payload:	payload of a fragment to a legacy peer, bytes
 * @peer_qpn:	number of the peer's queue pair
 * @responder:	RDMA reads of the peer in progress, at most
 * @initiator:	RDMA reads of this side in progress, at most
 */
struct xrds_ib_cm_req {
	struct xrds_request base;
	struct rdma_cm_id *id;
	struct xrds_ib_net *xin;
	bool withdrawn;
	int version;
	u64 ack;
	u32 payload;
	u32 peer_qpn;
	u8 responder;
	u8 initiator;
};

static inline bool xrds_ib_conn_v6(const struct xrds_conn_key *key)
{
	return !ipv6_addr_v4mapped(&key->laddr);
}

int xrds_ib_cm_req_listen(struct rdma_cm_id *id, struct rdma_cm_event *event);
void xrds_ib_cm_req_refuse(struct xrds_conn *conn, struct xrds_request *base);
void xrds_ib_cm_req_free(struct xrds_ib_cm_req *req);

/* ----------------------------------------------------------------- ep.c */

enum {
	XRDS_IB_RD_ATOMIC	= 8,	/* RDMA reads in progress */
	/* time for the device to report the guilty op, before the end */
	XRDS_IB_NAK_MS		= 100,
	/* time for all that is posted to complete at the end; the same after an
	 * end of the device's at which that was not enough; and so long after
	 */
	XRDS_IB_DRAIN_MS	= 3000,
	XRDS_IB_DRAIN_BRIEF_MS	= 20,
	XRDS_IB_DRAIN_REST_MS	= 10000,
	/* a local address is away for so long: its connections end */
	XRDS_IB_GONE_MS		= 1000,
};

/* The event that an active endpoint waits for; written by the worker */
enum xrds_ib_step {
	XRDS_IB_STEP_ADDR,	/* address is being resolved */
	XRDS_IB_STEP_ROUTE,	/* route is being resolved */
	XRDS_IB_STEP_CONNECT,	/* request or reply is sent */
};

/* Bits of ep->once, each set by the first of several possible callers */
enum {
	XRDS_IB_FAILED,		/* a reason to end was reported */
	XRDS_IB_HALF_OPEN,	/* counted in xin->half_open */
	XRDS_IB_QP_ERROR,	/* the queue pair has reported an error */
	XRDS_IB_PEER_GONE,	/* the peer has disconnected during an op */
};

/**
 * struct xrds_ib_marker - last work request of a queue that is drained
 * @cqe:	completion
 * @done:	completed when the work request is
 */
struct xrds_ib_marker {
	struct ib_cqe cqe;
	struct completion done;
};

/**
 * struct xrds_ib_ep - one life of one queue pair
 * @conn:	connection, with a reference
 * @xin:	namespace
 * @gen:	conn->ep_gen when it was made
 * @id:		identifier of the connection manager
 * @step:	see enum xrds_ib_step; worker
 * @passive:	the peer has dialled
 * @old_offer:	this side has dialled, and offers the oldest version
 * @version:	XRDS_VER_*, 0 until known; written once, but for the minor one
 * @hello_flags: XRDS_HELLO_* of our hello, constant
 * @ack:	acknowledgment in the private data of a legacy peer
 * @peer_qpn:	number of the peer's queue pair, from its request or reply
 * @once:	bits, see above
 * @dead:	being destroyed: completions only return their buffers
 * @ibdev:	device, with a reference; NULL until it is known
 * @dev_entry:	in ibdev->eps; ibdev->lock
 * @gone_since:	jiffies: the local address was found to be nobody's; 0: it is there;
 *		worker of lost.c
 * @cq:		completion queue of sends and receives
 * @qp:		queue pair, same as id->qp
 * @rq:		receive queue, with a reference
 * @rq_entry:	in rq->eps, or rq->stuck; rq->ep_lock
 * @granting:	counted in rq->nr_users; rq->ep_lock
 * @watch:	finds a queue pair that is stuck, has reported an error, or was
 *		disconnected by the peer during an op
 * @bulk_work:	posts more of a large message
 * @sq_end:	of the send queue
 * @rq_end:	of the endpoint's own receive queue
 * @tx:		sending side
 * @rx:		receiving side
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
	u16 hello_flags;
	u64 ack;
	u32 peer_qpn;
	unsigned long once;
	bool dead;
	struct xrds_ib_dev *ibdev;
	struct list_head dev_entry;
	unsigned long gone_since;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct xrds_ib_rq *rq;
	struct list_head rq_entry;
	bool granting;
	struct delayed_work watch;
	struct work_struct bulk_work;
	struct xrds_ib_marker sq_end;
	struct xrds_ib_marker rq_end;
	struct xrds_ib_tx tx;
	struct xrds_ib_rx rx ____cacheline_aligned_in_smp;
};

static inline bool xrds_ib_ep_xrds(const struct xrds_ib_ep *ep)
{
	return READ_ONCE(ep->version) == XRDS_VER_XRDS;
}

/* Outstanding SENDs of the peer; without conn->tx_lock only an estimate */
static inline u32 xrds_ib_ep_outstanding(const struct xrds_ib_ep *ep)
{
	return READ_ONCE(ep->tx.granted) - READ_ONCE(ep->rx.received);
}

struct xrds_ib_ep *xrds_ib_ep_alloc(struct xrds_conn *conn);
int xrds_ib_ep_setup(struct xrds_ib_ep *ep);
void xrds_ib_ep_publish(struct xrds_ib_ep *ep);
void xrds_ib_ep_describe(const struct xrds_conn *conn,
			 struct rds6_info_rdma_connection *row);
void xrds_ib_ep_detail(const struct xrds_conn *conn,
		       struct xrds_conn_detail *d);
void xrds_ib_ep_destroy(struct xrds_ib_ep *ep);
void xrds_ib_ep_stop(struct xrds_conn *conn);

/* ------------------------------------------------------------- legacy.c */

u16 xrds_ib_legacy_mask(void);
bool xrds_ib_legacy_set_version(struct xrds_ib_ep *ep, int version);
int xrds_ib_legacy_guess_version(struct xrds_ib_ep *ep, const void *data,
				 u32 bytes);
void xrds_ib_legacy_received(struct xrds_ib_ep *ep);
void xrds_ib_legacy_hdr(struct xrds_wire_msg *wm);
enum xrds_wire_err xrds_ib_legacy_check_csum(const struct xrds_wire_msg *wm,
					     const struct sk_buff *skb);
void xrds_ib_legacy_sent(struct xrds_ib_ep *ep, struct xrds_ib_sctx *sctx);

/* -------------------------------------------------------------- stuck.c */

void xrds_ib_stuck_add(struct xrds_ib_rq *rq, struct xrds_ib_ep *ep);
bool xrds_ib_stuck_retry(struct xrds_ib_rq *rq);

/* ------------------------------------------------------------- quirks.c */

/**
 * struct xrds_ib_quirks - behaviour of a device that needs a workaround
 * @weak_fences: a fence may wait for ever if a read follows it
 * @late_copies: invalidating a key does not stop a packet that is being copied
 * @spare_pages: entries that a page list must have behind the last page
 * @fixed_cqs:	completion queues of the kernel keep the size they begin with
 * @no_atomics:	atomics of the kernel are refused when they are posted
 */
struct xrds_ib_quirks {
	bool weak_fences;
	bool late_copies;
	u8 spare_pages;
	bool fixed_cqs;
	bool no_atomics;
};

int xrds_ib_quirks_probe(struct xrds_ib_dev *ibdev);
void xrds_ib_quirks_stop_cq(struct ib_cq *cq);
void xrds_ib_quirks_restart_cq(struct ib_cq *cq);
void xrds_ib_quirks_free_cq(struct ib_cq *cq);

/* ---------------------------------------------------------------- dev.c */

/**
 * struct xrds_ib_dev - an RDMA device
 * @entry:	in the list of devices until removal; xrds_ib_devs_lock
 * @dev:	the device
 * @pd:		protection domain of all queue pairs
 * @ref:	one until removal, one for each endpoint, receive queue and
 *		memory region
 * @gone:	completed when @ref is zero
 * @lock:	guards @eps, @mrs and @removed
 * @eps:	endpoints, which are told of the removal
 * @nr_eps:	length of @eps; @lock
 * @mrs:	memory regions, which the removal ends
 * @nr_mrs:	length of @mrs; @lock
 * @removed:	removal has begun; also read under @rq_lock
 * @handler:	gets the device's reports
 * @failed:	the device has failed, its regions are still to be ended; not bool,
 *		as no architecture must exchange a byte
 * @scan:	last walk over all devices that came here; xrds_ib_devs_lock
 * @rq_lock:	guards @rq and the old queues
 * @rq:		shared receive queue for new endpoints, NULL until needed
 * @old_rqs:	those that it has replaced and endpoints still use; @rq_lock
 * @nr_old_rqs:	length of @old_rqs; @rq_lock
 * @shared:	endpoints share a receive queue
 * @quirks:	behaviour that needs a workaround, constant
 * @no_atomics:	its keys cannot allow atomics
 * @stuck:	it has kept an object at the second attempt to destroy it
 * @brief_until: jiffies until which its endpoints have little time to drain
 * @regq:	registration queue
 * @mr_pool:	free objects for memory regions
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
	struct ib_event_handler handler;
	u32 failed;
	u32 scan;
	struct mutex rq_lock;		/* rq */
	struct xrds_ib_rq *rq;
	struct list_head old_rqs;
	u32 nr_old_rqs;
	bool shared;
	struct xrds_ib_quirks quirks;
	bool no_atomics;
	bool stuck;
	unsigned long brief_until;
	struct xrds_ib_regq regq;
	struct xrds_ib_mr_pool mr_pool;
};

/* The caller has a reference. */
static inline void xrds_ib_dev_get(struct xrds_ib_dev *ibdev)
{
	refcount_inc(&ibdev->ref);
}

void xrds_ib_dev_publish(struct xrds_ib_dev *ibdev);
void xrds_ib_dev_make_dead(struct xrds_ib_dev *ibdev);
struct xrds_ib_dev *xrds_ib_dev_find(const struct ib_device *dev);
struct xrds_ib_dev *xrds_ib_dev_find_addr(struct net *net,
					  const struct in6_addr *addr,
					  u32 scope);
struct xrds_ib_dev *xrds_ib_dev_next(u32 scan);
bool xrds_ib_dev_has_lost(struct xrds_ib_dev *ibdev, struct net *net,
			  const struct in6_addr *addr, u32 scope);
bool xrds_ib_dev_conn_moved(struct xrds_ib_dev *ibdev,
			    const struct xrds_conn *conn);
bool xrds_ib_dev_conn_gone(const struct xrds_conn *conn);
bool xrds_ib_dev_fail_moved(struct xrds_ib_dev *ibdev);
int xrds_ib_dev_local(struct net *net, const struct in6_addr *addr, u32 scope);
void xrds_ib_dev_put(struct xrds_ib_dev *ibdev);
int xrds_ib_dev_add_ep(struct xrds_ib_dev *ibdev, struct xrds_ib_ep *ep);
void xrds_ib_dev_del_ep(struct xrds_ib_dev *ibdev, struct xrds_ib_ep *ep);
int xrds_ib_dev_detail(const struct net *net, unsigned int nr,
		       struct xrds_device_detail *d);

/* -------------------------------------------------------------- cm_id.c */

bool xrds_ib_cm_id_up(const struct rdma_cm_id *id);
void xrds_ib_cm_id_destroy(struct rdma_cm_id *id, bool tells);
int xrds_ib_cm_id_init(void);
void xrds_ib_cm_id_exit(void);

/* -------------------------------------------------------------- event.c */

void xrds_ib_event_fail(struct xrds_ib_ep *ep, enum xrds_event ev, int error);
void xrds_ib_event_wire_error(struct xrds_ib_ep *ep, enum xrds_wire_err err);
void xrds_ib_event_not_half_open(struct xrds_ib_ep *ep);
int xrds_ib_event_wc_errno(const struct ib_wc *wc);

#endif /* _XRDS_IB_H */
