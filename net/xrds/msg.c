// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages on their way out: memory and references.
 *
 * A message owns page references in bio_vecs. Small payloads share pages
 * through the task's page fragment; large ones take high-order pages as long
 * as these are cheap to get. All of it is charged to the memory cgroup of the
 * sender. Over loopback the payload may be the receiver's skb instead.
 *
 * send.c makes messages of what programs send; the kernel's own have no
 * destination. The list that a message is on has a reference, and so has who
 * posts it. With the last one go the payload, and the references on the op and
 * the destination: that may end these, so neither conn->lock (L3) nor xs->lock
 * (L4) is held then.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/uio.h>

#include "msg.h"
#include "upcall.h"
#include "xrds.h"

enum {
	/* payloads up to this come from the shared page fragment */
	XRDS_MSG_FRAG_BYTES	= 4096,
	/* a whole message */
	XRDS_MSG_MAX_ORDER	= 8,
};

/**
 * xrds_msg_alloc - make a message without payload memory
 * @xn: namespace
 * @nr_bv: room for this many bio_vecs
 * @gfp: allocation flags
 *
 * Context: as @gfp says.
 * Return: the message with one reference, or NULL.
 */
struct xrds_msg *xrds_msg_alloc(struct xrds_net *xn, unsigned int nr_bv,
				gfp_t gfp)
{
	struct xrds_msg *msg;

	msg = kzalloc(struct_size(msg, bv, nr_bv), gfp);
	if (!msg)
		return NULL;
	refcount_set(&msg->ref, 1);
	INIT_LIST_HEAD(&msg->node);
	INIT_LIST_HEAD(&msg->flow_node);
	msg->xn = xn;
	atomic_inc(&xn->nr_msgs);
	return msg;
}

/**
 * xrds_msg_put - drop a reference on a message
 * @msg: message
 *
 * Context: any, without L3 or L4.
 */
void xrds_msg_put(struct xrds_msg *msg)
{
	unsigned int i;

	if (!refcount_dec_and_test(&msg->ref))
		return;

	for (i = 0; i < msg->nr_bv; i++)
		put_page(msg->bv[i].bv_page);
	kfree_skb(msg->skb);
	xrds_upcall_msg_free(msg);
	atomic_dec(&msg->xn->nr_msgs);
	kfree(msg);
}
EXPORT_SYMBOL_GPL(xrds_msg_put);

/**
 * xrds_skb_alloc - make an skb that can be queued on a socket
 * @len: room for payload, bytes
 * @gfp: allocation flags
 *
 * Context: as @gfp says.
 * Return: the skb, empty, or NULL.
 */
struct sk_buff *xrds_skb_alloc(u32 len, gfp_t gfp)
{
	const u32 room = ALIGN(sizeof(struct xrds_skb_trace), 8);
	struct sk_buff *skb = alloc_skb(room + len, gfp);

	if (!skb)
		return NULL;
	memset(skb->head, 0, room);
	skb_reserve(skb, room);
	return skb;
}
EXPORT_SYMBOL_GPL(xrds_skb_alloc);

/**
 * xrds_msg_page - pages of the highest order that is cheap
 * @len: the need, which they do not exceed by a page, bytes
 * @bytes: result: their length
 *
 * Context: process.
 * Return: the pages, or NULL.
 */
struct page *xrds_msg_page(u32 len, u32 *bytes)
{
	int order = min_t(int, get_order(len), XRDS_MSG_MAX_ORDER);
	gfp_t gfp = GFP_KERNEL_ACCOUNT, cheap;
	struct page *page;

	/* not more than asked: 1 MiB is one, 40 KiB is 32 + 8 */
	while (order && (PAGE_SIZE << order) > PAGE_ALIGN(len))
		order--;
	for (; order; order--) {
		/* those that are seldom there are not worth anybody's work */
		cheap = gfp & ~(order > PAGE_ALLOC_COSTLY_ORDER ?
				__GFP_RECLAIM : __GFP_DIRECT_RECLAIM);
		page = alloc_pages(cheap | __GFP_COMP | __GFP_NOWARN |
				   __GFP_NORETRY, order);
		if (page)
			goto out;
	}
	page = alloc_page(gfp);
out:
	*bytes = PAGE_SIZE << order;
	return page;
}

/**
 * xrds_msg_frag - take a small payload from a program
 * @bv: result: where it is, with a reference on the page
 * @from: where from
 * @len: how much, at most a page
 *
 * Context: process.
 * Return: 0, -ENOMEM, -EFAULT.
 */
int xrds_msg_frag(struct bio_vec *bv, struct iov_iter *from, u32 len)
{
	struct page_frag *pfrag = &current->task_frag;

	if (!skb_page_frag_refill(len, pfrag, GFP_KERNEL_ACCOUNT))
		return -ENOMEM;
	/* refill provides space for a page at most */
	if (copy_from_iter(page_address(pfrag->page) + pfrag->offset, len,
			   from) != len)
		return -EFAULT;
	get_page(pfrag->page);
	bv->bv_page = pfrag->page;
	bv->bv_offset = pfrag->offset;
	bv->bv_len = len;
	/* keep the next message's payload aligned */
	pfrag->offset += min_t(u32, ALIGN(len, SMP_CACHE_BYTES),
			       pfrag->size - pfrag->offset);
	return 0;
}

static int xrds_msg_copy_small(struct xrds_msg *msg, struct iov_iter *from)
{
	int ret = xrds_msg_frag(&msg->bv[0], from, msg->len);

	msg->nr_bv = !ret;
	return ret;
}

static int xrds_msg_copy_large(struct xrds_msg *msg, struct iov_iter *from)
{
	u32 left = msg->len, bytes, n;
	struct bio_vec *bv;
	struct page *page;

	while (left) {
		page = xrds_msg_page(left, &bytes);
		if (!page)
			return -ENOMEM;
		n = min(left, bytes);
		bv = &msg->bv[msg->nr_bv++];
		bv->bv_page = page;
		bv->bv_offset = 0;
		bv->bv_len = n;
		/* in one go: it is not from highmem */
		if (copy_from_iter(page_address(page), n, from) != n)
			return -EFAULT;
		left -= n;
	}
	return 0;
}

/**
 * xrds_msg_around - make a message whose payload the receiver gets as it is
 * @xn: namespace
 * @skb: payload; consumed, also on error
 * @len: its length, bytes
 *
 * Context: process.
 * Return: the message with one reference, or ERR_PTR(-ENOMEM).
 */
struct xrds_msg *xrds_msg_around(struct xrds_net *xn, struct sk_buff *skb,
				 u32 len)
{
	struct xrds_msg *msg;

	msg = xrds_msg_alloc(xn, 0, GFP_KERNEL_ACCOUNT);
	if (!msg) {
		kfree_skb(skb);
		return ERR_PTR(-ENOMEM);
	}
	msg->len = len;
	msg->skb = skb;
	return msg;
}

/**
 * xrds_msg_from_user - make a message with a copy of a program's payload
 * @xn: namespace
 * @m: what the program sends
 * @len: its length, bytes
 *
 * Context: process, may sleep.
 * Return: the message with one reference, or ERR_PTR(): -ENOMEM, -EFAULT.
 */
struct xrds_msg *xrds_msg_from_user(struct xrds_net *xn, struct msghdr *m,
				    u32 len)
{
	bool small = len <= XRDS_MSG_FRAG_BYTES;
	struct xrds_msg *msg;
	int ret = 0;

	msg = xrds_msg_alloc(xn, small ? !!len : DIV_ROUND_UP(len, PAGE_SIZE),
			     GFP_KERNEL_ACCOUNT);
	if (!msg)
		return ERR_PTR(-ENOMEM);
	msg->len = len;
	if (len)
		ret = small ? xrds_msg_copy_small(msg, &m->msg_iter) :
			      xrds_msg_copy_large(msg, &m->msg_iter);
	if (ret) {
		xrds_msg_put(msg);
		return ERR_PTR(ret);
	}
	xrds_count_add(xn, XRDS_C_COPY_FROM_USER, len);
	return msg;
}
