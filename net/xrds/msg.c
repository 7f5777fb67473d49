// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages on their way out: memory and references.
 *
 * The payload of a message is in bio_vecs. A small one is in the same slab
 * object as the message; a large one has pages, of a high order as long as these
 * are cheap to get, and no larger than it needs. Page fragments are not used: a
 * message would keep a page of 32 KiB alive, and be charged for its part of it.
 * All of it is charged to the memory cgroup of the sender. Over loopback the
 * payload may be the receiver's skb instead, and with MSG_ZEROCOPY it is memory
 * of the program (sock/zcopy.c).
 *
 * send.c makes the messages of programs; the kernel's own have no destination.
 * The list that a message is on has a reference, and so has each posting of it.
 * With the last one go the payload, and the references on the op and
 * the destination: that may end these, so neither conn->lock (L3) nor xs->lock
 * (L4) is held then.
 */
#include <linux/mm.h>
#include <linux/uio.h>

#include "msg.h"
#include "upcall.h"
#include "xrds.h"

enum {
	/* a whole message */
	XRDS_MSG_MAX_ORDER	= 8,
};

/* Make a message; @len bytes behind its bio_vecs are not cleared. */
static struct xrds_msg *xrds_msg_make(struct xrds_net *xn, unsigned int nr_bv,
				      u32 len, gfp_t gfp)
{
	struct xrds_msg *msg;
	size_t bytes;

	bytes = struct_size(msg, bv, nr_bv);
	msg = kmalloc(bytes + len, gfp);
	if (!msg)
		return NULL;
	memset(msg, 0, bytes);
	refcount_set(&msg->ref, 1);
	INIT_LIST_HEAD(&msg->node);
	INIT_LIST_HEAD(&msg->flow_node);
	msg->xn = xn;
	atomic_inc(&xn->nr_msgs);
	return msg;
}

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
	return xrds_msg_make(xn, nr_bv, 0, gfp);
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

	for (i = 0; i < msg->nr_bv && !msg->borrowed && !msg->kept; i++)
		put_page(msg->bv[i].bv_page);
	kfree_skb(msg->skb);
	xrds_upcall_msg_free(msg);
	atomic_dec(&msg->xn->nr_msgs);
	if (!msg->kept)
		kfree(msg);
}
EXPORT_SYMBOL_GPL(xrds_msg_put);

/**
 * xrds_msg_alloc_skb - make an skb that can be queued on a socket
 * @len: room for payload, bytes
 * @gfp: allocation flags
 *
 * Context: as @gfp says.
 * Return: the skb, empty, or NULL.
 */
struct sk_buff *xrds_msg_alloc_skb(u32 len, gfp_t gfp)
{
	struct sk_buff *skb = alloc_skb(XRDS_SKB_TRACE_BYTES + len, gfp);

	if (!skb)
		return NULL;
	memset(skb->head, 0, XRDS_SKB_TRACE_BYTES);
	skb_reserve(skb, XRDS_SKB_TRACE_BYTES);
	return skb;
}
EXPORT_SYMBOL_GPL(xrds_msg_alloc_skb);

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

static int xrds_msg_copy_small(struct xrds_msg *msg, struct iov_iter *from)
{
	struct bio_vec *bv = msg->bv;
	void *payload = bv + 1;

	msg->borrowed = true;
	if (!msg->len)
		return 0;
	bv->bv_page = virt_to_page(payload);
	bv->bv_offset = offset_in_page(payload);
	bv->bv_len = msg->len;
	msg->nr_bv = 1;
	return copy_from_iter(payload, msg->len, from) == msg->len ? 0 :
								    -EFAULT;
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
 * @m: the program's message
 * @len: its length, bytes
 *
 * Context: process, may sleep.
 * Return: the message with one reference, or ERR_PTR(): -ENOMEM, -EFAULT.
 */
struct xrds_msg *xrds_msg_from_user(struct xrds_net *xn, struct msghdr *m,
				    u32 len)
{
	bool small = len <= XRDS_MSG_SMALL_BYTES;
	struct xrds_msg *msg;
	int ret;

	if (small)
		msg = xrds_msg_make(xn, !!len, len, GFP_KERNEL_ACCOUNT);
	else
		msg = xrds_msg_alloc(xn, DIV_ROUND_UP(len, PAGE_SIZE),
				     GFP_KERNEL_ACCOUNT);
	if (!msg)
		return ERR_PTR(-ENOMEM);
	msg->len = len;
	ret = small ? xrds_msg_copy_small(msg, &m->msg_iter) :
		      xrds_msg_copy_large(msg, &m->msg_iter);
	if (ret) {
		xrds_msg_put(msg);
		return ERR_PTR(ret);
	}
	xrds_count_add(xn, XRDS_C_COPY_FROM_USER, len);
	return msg;
}

/**
 * xrds_msg_copy_to - copy the payload of a message
 * @msg: message with its payload in pages
 * @to: memory for msg->len bytes
 *
 * Context: any.
 * Return: the length of the payload, bytes.
 */
u32 xrds_msg_copy_to(const struct xrds_msg *msg, void *to)
{
	const struct bio_vec *bv;
	u32 at = 0;

	/* no kernel of 64 bits has highmem */
	for (bv = msg->bv; bv < msg->bv + msg->nr_bv; bv++) {
		memcpy(to + at, page_address(bv->bv_page) + bv->bv_offset,
		       bv->bv_len);
		at += bv->bv_len;
	}
	return at;
}
EXPORT_SYMBOL_GPL(xrds_msg_copy_to);
