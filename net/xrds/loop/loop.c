// SPDX-License-Identifier: GPL-2.0-only
/*
 * The loopback transport: sender and receiver on one node.
 *
 * A message goes straight from the sender's queue into the receiver's: its
 * payload is copied into the skb that the receiver will get, in sendmsg(),
 * where memory may be waited for. Unless earlier ones wait it is not queued at
 * all: direct.c puts it into the receiver's queue, and all that the connection does
 * is to give it a number. The connection passes the same states, sequence numbers
 * and limits as one over the wire; its endpoint is its own peer.
 *
 * It is also the test bed. Three knobs under net.xrds.loop make the transport
 * slow (delay_ms), lossy (loss_permille: a message is lost, which resets the
 * connection, as on a reliable QP) or unstable (bounce_ms: a reset at that
 * period). With any of them on, messages take a queue and a work item. A new
 * delay holds for messages under way, too: a test can stop them for as long as
 * it needs, and let them go.
 *
 * A long op is carried out by a work item, as its copy would take too long with
 * softirqs off; messages behind it wait.
 *
 * Deliveries of queued messages of one connection never overlap: they run under
 * conn->tx_lock, from xmit or from the works.
 */
#include <linux/random.h>

#include "transport.h"
#include "msg.h"
#include "xrds.h"

/* Long copies take as long as their users like: it is for loopback alone. */
static struct workqueue_struct *xrds_loop_wq;

/**
 * struct xrds_loop_ep - one life of a loopback connection
 * @conn:	connection; stop() ends us before it goes
 * @gen:	conn->ep_gen
 * @broken:	a loss has happened, or we end: nothing is delivered any more
 * @op:		message whose long op is being carried out, with a reference;
 *		nothing passes it; conn->tx_lock
 * @op_work:	carries it out
 * @queue:	messages under way, oldest first; conn->tx_lock
 * @work:	delivers from @queue
 * @bounce:	forces a reset
 */
struct xrds_loop_ep {
	struct xrds_conn *conn;
	u32 gen;
	bool broken;
	struct xrds_msg *op;
	struct work_struct op_work;
	struct list_head queue;
	struct delayed_work work;
	struct delayed_work bounce;
};

/**
 * struct xrds_loop_item - a message under way
 * @node:	in ep->queue
 * @msg:	with a reference
 * @sent:	jiffies when it was sent; it arrives net.xrds.loop.delay_ms later
 */
struct xrds_loop_item {
	struct list_head node;
	struct xrds_msg *msg;
	unsigned long sent;
};

static int xrds_loop_local(struct net *net, const struct in6_addr *addr,
			   u32 scope)
{
	return xrds_addr_is_loopback(addr) ? 0 : -EADDRNOTAVAIL;
}

/* The message has arrived, and so ended its op, if any. */
static void xrds_loop_deliver(struct xrds_conn *conn, struct xrds_msg *msg,
			      s32 status)
{
	struct xrds_wire_msg wm = {
		.seq	= msg->seq,
		.len	= msg->len,
		.sport	= msg->sport,
		.dport	= msg->dport,
		.flags	= msg->flags,
		.has	= msg->has & ~XRDS_HAS_RDMA,
		.dest_rkey = msg->dest_rkey,
		.dest_off = msg->dest_off,
	};
	struct sk_buff *skb = msg->skb;
	struct xrds_rop *rop = msg->rop;
	bool deliver = true;

	lockdep_assert_held(&conn->tx_lock);

	if (msg->flags & XRDS_F_EOS) {
		wm.has |= XRDS_HAS_EOS;
		wm.eos_reason = msg->eos_reason;
	}

	if (rop) {
		deliver = !status && !rop->silent;
		/* its message may have been cancelled meanwhile */
		if (!status)
			xrds_mr_used(conn->xn, &conn->key.faddr, rop->rkey);
		xrds_rop_done(rop, status);
	}

	/* a delivered message is acknowledged at once, so it comes here once */
	msg->skb = NULL;
	if (deliver) {
		xrds_rx_msg(conn, &wm, skb);
	} else {
		kfree_skb(skb);
		/* received all the same: the next clear-to-send says so */
		WRITE_ONCE(conn->rx_next, msg->seq + 1);
	}
	if (unlikely(status))
		xrds_tx_op_failed(conn, msg);
	xrds_tx_acked(conn, msg->seq);
}

static void xrds_loop_item_free(struct xrds_loop_item *item)
{
	list_del(&item->node);
	xrds_msg_put(item->msg);
	kfree(item);
}

/* The message is lost; an op is not repeated, so it ends. */
static void xrds_loop_lose(struct xrds_msg *msg)
{
	if (msg->rop)
		xrds_rop_done(msg->rop, RDS_RDMA_DROPPED);
}

static bool xrds_loop_long(const struct xrds_rop *rop)
{
	return rop && rop->bytes > XRDS_LOOP_PIECE_BYTES;
}

/* Nothing is before the message, and no op is under way. */
static void xrds_loop_take(struct xrds_loop_ep *ep, struct xrds_msg *msg)
{
	struct xrds_conn *conn = ep->conn;
	struct xrds_rop *rop = msg->rop;

	lockdep_assert_held(&conn->tx_lock);

	if (!xrds_loop_long(rop)) {
		xrds_loop_deliver(conn, msg,
				  rop ? xrds_loop_rdma(conn, rop) : 0);
		return;
	}
	xrds_msg_get(msg);
	ep->op = msg;
	queue_work(xrds_loop_wq, &ep->op_work);
}

static void xrds_loop_op_work(struct work_struct *work)
{
	struct xrds_loop_ep *ep = container_of(work, struct xrds_loop_ep,
					       op_work);
	struct xrds_conn *conn = ep->conn;
	struct xrds_msg *msg = ep->op;
	s32 status;

	/* constant until we say that it is done */
	status = xrds_loop_rdma_long(conn, msg->rop, &ep->broken);

	spin_lock_bh(&conn->tx_lock);
	ep->op = NULL;
	if (ep->broken || !conn->tx_open) {
		xrds_loop_lose(msg);
	} else {
		xrds_loop_deliver(conn, msg, status);
		if (!list_empty(&ep->queue))
			queue_delayed_work(xrds_loop_wq, &ep->work, 0);
	}
	spin_unlock_bh(&conn->tx_lock);
	xrds_msg_put(msg);
	/* messages that xmit() did not take */
	xrds_tx_pump(conn);
}

/**
 * xrds_loop_look - the delay of messages has changed
 * @conn: loopback connection
 *
 * Context: any, without conn->tx_lock.
 */
void xrds_loop_look(struct xrds_conn *conn)
{
	struct xrds_loop_ep *ep;

	spin_lock_bh(&conn->tx_lock);
	ep = conn->ep;
	if (ep)
		mod_delayed_work(xrds_loop_wq, &ep->work, 0);
	spin_unlock_bh(&conn->tx_lock);
}

/* The oldest message under way if it arrives now, or NULL */
static struct xrds_loop_item *xrds_loop_due(struct xrds_loop_ep *ep)
{
	unsigned int ms = READ_ONCE(ep->conn->xn->loop_delay_ms);
	unsigned long now = jiffies, at;
	struct xrds_loop_item *item;

	lockdep_assert_held(&ep->conn->tx_lock);

	item = list_first_entry_or_null(&ep->queue, struct xrds_loop_item,
					node);
	if (!item || ep->broken || ep->op || !ep->conn->tx_open)
		return NULL;
	at = item->sent + msecs_to_jiffies(ms);
	if (!time_after(at, now))
		return item;
	queue_delayed_work(xrds_loop_wq, &ep->work, at - now);
	return NULL;
}

static void xrds_loop_work(struct work_struct *work)
{
	struct xrds_loop_ep *ep = container_of(to_delayed_work(work),
					       struct xrds_loop_ep, work);
	struct xrds_loop_item *item;
	u32 n;

	do {
		spin_lock_bh(&ep->conn->tx_lock);
		for (n = 0; n < XRDS_LOOP_BATCH; n++) {
			item = xrds_loop_due(ep);
			if (!item)
				break;
			xrds_loop_take(ep, item->msg);
			xrds_loop_item_free(item);
		}
		spin_unlock_bh(&ep->conn->tx_lock);
		xrds_hold_count(XRDS_HOLD_LOOP, n);
		cond_resched();
	} while (n == XRDS_LOOP_BATCH);
}

static void xrds_loop_bounce(struct work_struct *work)
{
	struct xrds_loop_ep *ep = container_of(to_delayed_work(work),
					       struct xrds_loop_ep, bounce);

	xrds_count(ep->conn->xn, XRDS_C_LOOP_BOUNCED);
	xrds_conn_ep_event(ep->conn, ep->gen, XRDS_EV_ERROR, -ECONNRESET);
}

static int xrds_loop_dial(struct xrds_conn *conn)
{
	struct xrds_loop_ep *ep;

	ep = kzalloc(sizeof(*ep), GFP_KERNEL);
	if (!ep)
		return -ENOMEM;
	ep->conn = conn;
	ep->gen = conn->ep_gen;
	INIT_WORK(&ep->op_work, xrds_loop_op_work);
	INIT_LIST_HEAD(&ep->queue);
	INIT_DELAYED_WORK(&ep->work, xrds_loop_work);
	INIT_DELAYED_WORK(&ep->bounce, xrds_loop_bounce);

	spin_lock_bh(&conn->tx_lock);
	conn->ep = ep;
	spin_unlock_bh(&conn->tx_lock);
	xrds_conn_ep_event(conn, ep->gen, XRDS_EV_RESOLVED, 0);
	return 0;
}

static int xrds_loop_advance(struct xrds_conn *conn)
{
	xrds_conn_ep_event(conn, conn->ep_gen, XRDS_EV_ESTABLISHED, 0);
	return 0;
}

static int xrds_loop_start(struct xrds_conn *conn)
{
	unsigned int bounce_ms = READ_ONCE(conn->xn->loop_bounce_ms);
	struct xrds_loop_ep *ep = conn->ep;
	struct xrds_wire_hello hello;

	xrds_conn_fill_hello(conn, &hello);
	/* we are our peer: it has received what we have */
	xrds_rx_hello(conn, ep->gen, &hello);
	if (bounce_ms)
		queue_delayed_work(xrds_loop_wq, &ep->bounce,
				   msecs_to_jiffies(bounce_ms));
	return 0;
}

static void xrds_loop_stop(struct xrds_conn *conn)
{
	struct xrds_loop_item *item, *tmp;
	struct xrds_loop_ep *ep;

	/* make_dead: xmit finds no endpoint, the core has closed already */
	spin_lock_bh(&conn->tx_lock);
	ep = conn->ep;
	conn->ep = NULL;
	if (ep)
		WRITE_ONCE(ep->broken, true);
	spin_unlock_bh(&conn->tx_lock);
	if (!ep)
		return;

	/* drain; broken, so no work queues another any more */
	cancel_delayed_work_sync(&ep->bounce);
	cancel_work_sync(&ep->op_work);
	cancel_delayed_work_sync(&ep->work);

	/* nobody else has a pointer */
	if (ep->op) {
		xrds_loop_lose(ep->op);
		xrds_msg_put(ep->op);
	}
	list_for_each_entry_safe(item, tmp, &ep->queue, node) {
		xrds_loop_lose(item->msg);
		xrds_loop_item_free(item);
	}
	kfree(ep);
}

/* Copy the next piece of payload into a page of its own. */
static int xrds_loop_add_page(struct sk_buff *skb, struct iov_iter *from,
			      u32 left)
{
	struct page *page;
	u32 bytes, n;

	page = xrds_msg_page(left, &bytes);
	if (!page)
		return -ENOMEM;
	n = min(left, bytes);
	skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, 0, n, bytes);
	return copy_from_iter(page_address(page), n, from) == n ? n : -EFAULT;
}

/* More pages than one skb takes go to further ones on its frag_list. */
static int xrds_loop_add_pages(struct sk_buff *head, struct iov_iter *from,
			       u32 len)
{
	struct sk_buff **next = &skb_shinfo(head)->frag_list;
	struct sk_buff *skb = head;
	u32 before = 0;
	int n;

	while (len) {
		if (skb_shinfo(skb)->nr_frags == MAX_SKB_FRAGS) {
			skb = alloc_skb(0, GFP_KERNEL_ACCOUNT);
			if (!skb)
				return -ENOMEM;
			*next = skb;
			next = &skb->next;
			before = 0;
		}
		n = xrds_loop_add_page(skb, from, len);
		if (n < 0)
			return n;
		len -= n;
		if (skb == head)
			continue;
		head->len += n;
		head->data_len += n;
		head->truesize += skb->truesize - before;
		before = skb->truesize;
	}
	return 0;
}

/* Take the payload as the receiver will get it: it is not copied again. A small
 * one is in the skb itself, others in pages of their own.
 */
static struct sk_buff *xrds_loop_payload(struct iov_iter *from, u32 len)
{
	bool linear = len <= XRDS_MSG_SMALL_BYTES;
	struct sk_buff *skb;
	int ret = 0;

	skb = xrds_msg_alloc_skb(linear ? len : 0, GFP_KERNEL_ACCOUNT);
	if (!skb)
		return ERR_PTR(-ENOMEM);
	if (!linear)
		ret = xrds_loop_add_pages(skb, from, len);
	else if (copy_from_iter(__skb_put(skb, len), len, from) != len)
		ret = -EFAULT;
	if (ret) {
		kfree_skb(skb);
		return ERR_PTR(ret);
	}
	return skb;
}

/* The kernel's own messages are empty. */
static int xrds_loop_prepare(struct xrds_conn *conn, struct xrds_msg *msg)
{
	/* the answer to a ping is made in softirq context */
	gfp_t gfp = msg->flow ? GFP_KERNEL_ACCOUNT : GFP_ATOMIC | __GFP_NOWARN;

	if (!msg->skb)
		msg->skb = xrds_msg_alloc_skb(0, gfp);
	return msg->skb ? 0 : -ENOMEM;
}

/* The connection is to be reset. Until then all posted messages are lost: none
 * arrives behind one that was lost before, and an op that has ended so, and
 * waits to be dropped, does not come a second time.
 */
static void xrds_loop_break(struct xrds_loop_ep *ep, int error)
{
	WRITE_ONCE(ep->broken, true);
	xrds_conn_ep_event(ep->conn, ep->gen, XRDS_EV_ERROR, error);
}

static int xrds_loop_queue(struct xrds_loop_ep *ep, struct xrds_msg *msg,
			   unsigned int delay_ms)
{
	struct xrds_loop_item *item;

	/* only with a knob on */
	item = kmalloc(sizeof(*item), GFP_ATOMIC);
	if (!item)
		return -ENOMEM;
	item->msg = msg;
	item->sent = jiffies;
	xrds_msg_get(msg);
	list_add_tail(&item->node, &ep->queue);
	queue_delayed_work(xrds_loop_wq, &ep->work,
			   msecs_to_jiffies(delay_ms));
	return 0;
}

static int xrds_loop_xmit(struct xrds_conn *conn, struct xrds_msg *msg)
{
	struct xrds_net *xn = conn->xn;
	unsigned int loss = READ_ONCE(xn->loop_loss_permille);
	unsigned int delay_ms = READ_ONCE(xn->loop_delay_ms);
	struct xrds_loop_ep *ep = conn->ep;

	lockdep_assert_held(&conn->tx_lock);

	/* its work pumps when it is done */
	if (unlikely(ep->op))
		return -EAGAIN;
	if (unlikely(loss) && reciprocal_scale(get_random_u32(), 1000) < loss) {
		xrds_count(xn, XRDS_C_LOOP_LOST);
		xrds_loop_break(ep, -ECONNRESET);
	}
	if (likely(!ep->broken && !delay_ms && list_empty(&ep->queue))) {
		xrds_loop_take(ep, msg);
		return 0;
	}
	if (!ep->broken && xrds_loop_queue(ep, msg, delay_ms))
		xrds_loop_break(ep, -ENOMEM);
	/* it stays in flight, and is sent again unless it is an op */
	if (ep->broken)
		xrds_loop_lose(msg);
	return 0;
}

/* Neither acknowledgments nor congestion updates travel over loopback. */
static int xrds_loop_xmit_ctl(struct xrds_conn *conn, u8 type,
			      const void *data, u32 len)
{
	return 0;
}

/**
 * xrds_loop_init - make the transport's work queue
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int xrds_loop_init(void)
{
	xrds_loop_wq = alloc_workqueue("xrds_loop", WQ_UNBOUND, 0);
	return xrds_loop_wq ? 0 : -ENOMEM;
}

/**
 * xrds_loop_exit - destroy it
 *
 * Context: process. No connection is left.
 */
void xrds_loop_exit(void)
{
	destroy_workqueue(xrds_loop_wq);
}

struct xrds_transport xrds_loop_transport = {
	.name		= "loopback",
	.owner		= THIS_MODULE,
	.type		= XRDS_TRANS_LOOP,
	.caps		= XRDS_CAP_RDMA,
	.local		= xrds_loop_local,
	.dial		= xrds_loop_dial,
	.advance	= xrds_loop_advance,
	.start		= xrds_loop_start,
	.stop		= xrds_loop_stop,
	.payload	= xrds_loop_payload,
	.prepare	= xrds_loop_prepare,
	.xmit		= xrds_loop_xmit,
	.xmit_ctl	= xrds_loop_xmit_ctl,
	.mr_reg		= xrds_loop_rdma_mr_reg,
	.mr_unreg	= xrds_loop_rdma_mr_unreg,
};
