/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * XRDS over RDMA: receive queues, and the receiving side of an endpoint. ib.h
 * includes it.
 */
#ifndef _XRDS_IB_RX_H
#define _XRDS_IB_RX_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "transport.h"

struct xrds_ib_dev;
struct xrds_ib_ep;
struct xrds_ib_rq;

enum {
	/* size of the buffer for the first message: a hello, or the message of
	 * a peer that turns out to be a legacy one
	 */
	XRDS_IB_HELLO_BYTES	= 128,
	XRDS_IB_FIRST_BYTES	= XRDS_WIRE_CLASSIC_FRAG_BYTES,
	/* messages whose fragments alternate */
	XRDS_IB_TAGS		= 2,
};

/* ---------------------------------------------------------- page_ring.c */

enum { XRDS_IB_PAGE_RING = 256 };	/* pages, at most */

/**
 * struct xrds_ib_page_ring - pages of received messages
 * @lock:	guards the rest
 * @pages:	the pages, with a reference each
 * @first:	index of the oldest
 * @nr:		number of pages
 * @most:	upper limit of @nr, constant
 * @at:		jiffies when the last page was added
 * @trim:	drops all pages when none was added for a while
 */
struct xrds_ib_page_ring {
	spinlock_t lock;		/* pages, first, nr */
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

/* ---------------------------------------------------------------- buf.c */

enum {
	/* pages of a buffer, each of any order */
	XRDS_IB_BUF_PAGES	= XRDS_WIRE_MAX_FRAG_BYTES / SZ_4K,
};

/**
 * struct xrds_ib_buf - a receive buffer
 * @cqe:	completion
 * @wr:		work request; has as many entries as the buffer has pages
 * @entry:	in rq->ready, or rq->empty, or neither while posted; rq->lock
 * @all_entry:	in rq->bufs
 * @rq:		receive queue
 * @skb:	reserved, so that giving the pages to a message cannot fail;
 *		NULL when used
 * @sge:	of @wr: the pages, mapped for the device
 * @page:	memory: one page of rq->order, or several of rq->small_order, or
 *		none after they went to a message
 */
struct xrds_ib_buf {
	struct ib_cqe cqe;
	struct ib_recv_wr wr;
	struct list_head entry;
	struct list_head all_entry;
	struct xrds_ib_rq *rq;
	struct sk_buff *skb;
	struct ib_sge sge[XRDS_IB_BUF_PAGES];
	struct page *page[XRDS_IB_BUF_PAGES];
};

/* The header, and the begin of the payload */
static inline void *xrds_ib_buf_data(const struct xrds_ib_buf *buf)
{
	return page_address(buf->page[0]);
}

enum {
	/* post when so many are missing: each call costs the device a lock */
	XRDS_IB_POST_DEFICIT	= 8,
};

u32 xrds_ib_buf_bytes(void);
void xrds_ib_buf_fill(struct xrds_ib_rq *rq);
void xrds_ib_buf_give(struct xrds_ib_buf *buf, struct sk_buff *skb, u32 at,
		      u32 len);
void xrds_ib_buf_return(struct xrds_ib_rq *rq, struct xrds_ib_buf *buf);
void xrds_ib_buf_free_all(struct xrds_ib_rq *rq);

/* ----------------------------------------------------------------- rq.c */

enum {
	/* endpoints that may have lost a buffer before the queue is replaced */
	XRDS_IB_MAX_LOST	= 32,
	/* old shared queues of a device, before one is taken from its endpoints */
	XRDS_IB_MAX_OLD_RQS	= 8,
	/* Credits that each user of a shared queue of any size may have
	 * outstanding: one for the last message that must grant some, two for
	 * others.
	 */
	XRDS_IB_FIRST_CREDITS	= 3,
	/* that a busy peer gets even if the others have used the queue up */
	XRDS_IB_BUSY_CREDITS	= 12,
};

/**
 * struct xrds_ib_rq_ops - calls of a receive queue to the receive path
 * @done:	a buffer has completed; xrds_ib_buf_return() takes it back
 * @grant:	an endpoint may grant the credits that it had to withhold;
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
 * @qp:		the endpoint's queue pair, if not shared; set before the first
 *		buffer is posted
 * @buf_bytes:	size of a buffer
 * @order:	the same as page order
 * @small_order: order of pages for a buffer when there is none of @order: the
 *		lowest of which the device takes enough for a buffer
 * @asked_bufs:	the capacity that was asked for; the device may have less
 * @max_bufs:	capacity of the device's queue, beside lost buffers
 * @most_bufs:	the same with them, or fewer if a completion queue was not
 *		enlarged; @ep_lock
 * @cq_bufs:	shared queue only: the completion queue of each endpoint has
 *		entries for so many buffers; changed under @ep_lock
 * @refill:	gives empty buffers a page and an skb
 * @window:	most credits of a user: the largest of theirs; @ep_lock
 * @ep_lock:	guards @eps, @stuck, @nr_users, @nr_lost and @window
 * @old_entry:	in ibdev->old_rqs when another queue has replaced it
 * @eps:	endpoints that receive from it
 * @stuck:	endpoints whose queue pair is not destroyed
 * @nr_users:	endpoints that have granted credits
 * @nr_lost:	endpoints that may have lost a buffer
 * @withheld:	credits were not granted because buffers were short; see
 *		xrds_ib_share_avail()
 * @broken:	shared queue only: the device has given it up
 * @armed:	the device will report when it runs low; the event that clears
 *		it starts the refill
 * @page_ring:	pages of received messages, to be used again
 * @lock:	guards the fields below
 * @bufs:	all buffers, posted ones included
 * @ready:	buffers that can be posted
 * @empty:	buffers without page or skb
 * @nr_ready:	length of @ready
 * @nr_posted:	posted and not completed; also read without @lock, where an
 *		old value does no harm
 * @target:	number of buffers to be posted; also read without @lock
 * @first:	shared queue only, as the next two: buffers kept for the first
 *		credits of users; all three are also read without @lock
 * @extra:	sum of the parts of shares above XRDS_IB_FIRST_CREDITS
 * @limit:	upper limit of @extra, but for small shares
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
	unsigned int small_order;
	u32 asked_bufs;
	u32 max_bufs;
	u32 most_bufs;
	u32 cq_bufs;
	u32 window;
	struct delayed_work refill;

	struct mutex ep_lock;		/* eps, nr_users, nr_lost */
	struct list_head old_entry;
	struct list_head eps;
	struct list_head stuck;
	u32 nr_users;
	u32 nr_lost;
	u32 withheld;
	bool broken;
	u32 armed;
	struct xrds_ib_page_ring page_ring;

	spinlock_t lock;		/* the fields below */
	struct list_head bufs;
	struct list_head ready;
	struct list_head empty;
	u32 nr_ready;
	u32 nr_posted;
	u32 target;
	u32 first;
	u32 extra;
	u32 limit;
	bool stopped;
};

struct xrds_ib_rq *xrds_ib_rq_create(struct xrds_ib_dev *ibdev,
				     const struct xrds_ib_rq_ops *ops,
				     u32 window);
struct xrds_ib_rq *xrds_ib_rq_get_shared(struct xrds_ib_dev *ibdev,
					 const struct xrds_ib_rq_ops *ops,
					 u32 max_bufs, u32 window);
void xrds_ib_rq_put(struct xrds_ib_rq *rq);
u32 xrds_ib_rq_max_sge(const struct xrds_ib_rq *rq);
int xrds_ib_rq_attach(struct xrds_ib_rq *rq, struct xrds_ib_ep *ep);
int xrds_ib_rq_grow(struct xrds_ib_rq *rq, struct xrds_ib_ep *ep);
void xrds_ib_rq_detach(struct xrds_ib_rq *rq, struct xrds_ib_ep *ep);
void xrds_ib_rq_lost(struct xrds_ib_rq *rq);
void xrds_ib_rq_failed(struct xrds_ib_rq *rq);

/* -------------------------------------------------------------- share.c */

u32 xrds_ib_share_avail(struct xrds_ib_rq *rq, u32 share);
void xrds_ib_share_grow(struct xrds_ib_ep *ep, u32 want);
void xrds_ib_share_fit(struct xrds_ib_ep *ep, bool busy);
void xrds_ib_share_return(struct xrds_ib_ep *ep);

/* --------------------------------------------------------------- recv.c */

/**
 * struct xrds_ib_rx_msg - a message that is being received
 * @reasm:	progress
 * @head:	its payload so far
 * @last:	@head or the last skb of its frag_list
 * @charged:	its share of the namespace's @parts, bytes
 */
struct xrds_ib_rx_msg {
	struct xrds_wire_reasm reasm;
	struct sk_buff *head;
	struct sk_buff *last;
	u32 charged;
};

/**
 * struct xrds_ib_rx - the receiving side of an endpoint; completions only,
 *	which the completion queue serialises
 * @received:	SENDs that used a credit, ever; also read by senders
 * @max_payload: largest payload behind a full header, bytes
 * @msg:	messages that are being received, by tag
 * @hello:	the peer's hello has come
 * @bundles:	a SEND may have several messages
 * @brief:	a SEND may have a short header
 * @ctx:	context of the short headers of the peer
 * @ack_only:	the last SEND was an acknowledgment and nothing else
 * @busy:	it shows that the peer has something to send
 * @bye:	the peer's BYE has come
 * @bye_ack:	the peer's BYE_ACK has come
 * @failed:	the peer broke the protocol: nothing more is taken from it
 * @hello_cqe:	completion of the buffer for the hello
 * @hello_buf:	own receive queue only: takes the first message
 * @hello_dma:	DMA address of @hello_buf
 * @hello_bytes: size of @hello_buf
 */
struct xrds_ib_rx {
	u32 received;
	u32 max_payload;
	struct xrds_ib_rx_msg msg[XRDS_IB_TAGS];
	bool hello;
	bool bundles;
	bool brief;
	struct xrds_wire_context ctx;
	bool ack_only;
	bool busy;
	bool bye;
	bool bye_ack;
	bool failed;
	struct ib_cqe hello_cqe;
	void *hello_buf;
	u64 hello_dma;
	u32 hello_bytes;
};

extern const struct xrds_ib_rq_ops xrds_ib_recv_ops;

int xrds_ib_recv_init(struct xrds_ib_ep *ep);
int xrds_ib_recv_post_hello(struct xrds_ib_ep *ep);
void xrds_ib_recv_free(struct xrds_ib_ep *ep);

#endif /* _XRDS_IB_RX_H */
