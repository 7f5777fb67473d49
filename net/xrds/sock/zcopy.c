// SPDX-License-Identifier: GPL-2.0-only
/*
 * MSG_ZEROCOPY: the device reads the payload from the program's memory.
 *
 *   sendmsg(): pinned -> queued -> sent, acknowledged, or dropped
 *     -> the last reference on the message goes -> xrds_zcopy_end(): unpinned
 *     -> recvmsg(): RDS_CMSG_ZCOPY_COMPLETION
 *
 * Every posting of a message has a reference on it. So the last one goes when no
 * device can read the memory any more, which may be long after the program could
 * send the next message: it is told then that the memory is its own again.
 *
 * The payload is copied all the same where that is cheaper, or the only way: a
 * small one, one in many pieces, memory of the kernel, and everything over
 * loopback. Then the completion comes at once.
 *
 * Nothing is allocated when a completion comes. Those that wait to be read are in
 * xs->zcopied, under xs->lock (L4).
 */
#include <linux/uio.h>

#include "compat.h"
#include "msg.h"
#include "rdma/rdma.h"
#include "sock/sock.h"
#include "transport.h"
#include "wire/wire.h"
#include "xrds.h"

enum {
	/* Up to this a copy is cheaper, and such a message may go in a bundle,
	 * or without a signal of its own.
	 */
	XRDS_ZCOPY_COPIED_BYTES	= 4096,
	/* ranges of one message */
	XRDS_ZCOPY_RANGES	= 8,
};

static_assert((int)XRDS_ZCOPY_COPIED_BYTES >= XRDS_WIRE_MAX_BUNDLE_BYTES);

/**
 * xrds_zcopy_alloc - make the completion of a send
 * @xs: socket
 * @cookie: the program's name for it
 *
 * Those of a socket that nobody has read take no more than net.core.optmem_max.
 *
 * Context: process, may sleep.
 * Return: the completion, NULL without memory.
 */
struct xrds_zcopy *xrds_zcopy_alloc(struct xrds_sock *xs, u32 cookie)
{
	struct xrds_zcopy *zc = sock_kmalloc(&xs->sk, sizeof(*zc),
					     GFP_KERNEL_ACCOUNT);

	if (zc)
		*zc = (struct xrds_zcopy){ .cookie = cookie };
	return zc;
}

/**
 * xrds_zcopy_free - a completion was read, or nobody will read it
 * @xs: socket
 * @zc: completion, on no list; NULL does nothing
 *
 * Context: any.
 */
void xrds_zcopy_free(struct xrds_sock *xs, struct xrds_zcopy *zc)
{
	if (zc)
		sock_kfree_s(&xs->sk, zc, sizeof(*zc));
}

/* The ranges of the program's memory. Returns their number, 0 for too many. */
static unsigned int xrds_zcopy_ranges(const struct iov_iter *from,
				      struct rds_iovec *vec)
{
	struct iov_iter i = *from;
	unsigned int nr = 0;
	size_t n;

	while (iov_iter_count(&i)) {
		n = iov_iter_single_seg_count(&i);
		if (n && nr == XRDS_ZCOPY_RANGES)
			return 0;
		if (n)
			vec[nr++] = (struct rds_iovec){
				.addr = (uintptr_t)iter_iov_addr(&i),
				.bytes = n,
			};
		iov_iter_advance(&i, n);
	}
	return nr;
}

static phys_addr_t xrds_zcopy_start(const struct bio_vec *bv)
{
	return page_to_phys(bv->bv_page) + bv->bv_offset;
}

/* Describe the memory in as few pieces as possible. */
static void xrds_zcopy_fill(struct xrds_msg *msg, const struct xrds_pin *pin)
{
	struct bio_vec *last = NULL;
	const struct bio_vec *bv;
	unsigned int i;

	for (i = 0; i < pin->nr_bv; i++) {
		bv = &pin->bv[i];
		if (last && xrds_zcopy_start(last) + last->bv_len ==
			    xrds_zcopy_start(bv)) {
			last->bv_len += bv->bv_len;
			continue;
		}
		last = &msg->bv[msg->nr_bv++];
		*last = *bv;
	}
}

/* Is no fragment of the fixed size of a legacy peer in more than two pieces? If
 * none of the larger size is, none of the smaller one is, which divides it.
 */
static bool xrds_zcopy_fits_legacy(const struct xrds_msg *msg)
{
	u32 i, end = 0, frag, cut = U32_MAX;

	for (i = 0; i + 1 < msg->nr_bv; i++) {
		end += msg->bv[i].bv_len;
		if (!(end % XRDS_WIRE_CLASSIC_MAX_PAYLOAD))
			continue;
		frag = end / XRDS_WIRE_CLASSIC_MAX_PAYLOAD;
		if (frag == cut)
			return false;
		cut = frag;
	}
	return true;
}

/* Can it be sent in fragments that the peer takes? A SEND has two pieces of payload
 * on every device. Each fragment but the last has a minimal size, and a fixed one
 * unless it is for an XRDS node: no other node gets it then.
 */
static bool xrds_zcopy_fits(struct xrds_msg *msg, const struct xrds_conn *conn)
{
	unsigned int i;

	for (i = 1; i + 1 < msg->nr_bv; i++)
		if (msg->bv[i].bv_len < XRDS_WIRE_MIN_FRAG_PAYLOAD)
			return false;
	msg->scattered = !xrds_zcopy_fits_legacy(msg);
	/* looked at again when it is queued */
	return !msg->scattered || READ_ONCE(conn->tx_node);
}

/**
 * xrds_zcopy_msg - make a message of a program's memory
 * @xs: socket
 * @conn: connection that it will go over
 * @zc: its completion, which is the message's on success
 * @from: the memory; it is not advanced
 * @len: its length, bytes
 * @timeo: as of xrds_pin_user()
 *
 * Context: process, may sleep; no lock of ours held.
 * Return: the message with one reference; NULL if the payload is to be copied;
 * ERR_PTR(): as xrds_pin_user(), but -EMSGSIZE.
 */
struct xrds_msg *xrds_zcopy_msg(struct xrds_sock *xs,
				const struct xrds_conn *conn,
				struct xrds_zcopy *zc,
				const struct iov_iter *from, u32 len,
				long *timeo)
{
	struct rds_iovec vec[XRDS_ZCOPY_RANGES];
	struct xrds_msg *msg;
	struct xrds_pin *pin;
	unsigned int nr;

	if (len <= XRDS_ZCOPY_COPIED_BYTES || !user_backed_iter(from))
		return NULL;
	nr = xrds_zcopy_ranges(from, vec);
	if (!nr)
		return NULL;
	pin = xrds_pin_user(&xs->rdma, vec, nr, len, false, timeo);
	if (IS_ERR(pin))
		return ERR_CAST(pin);
	msg = xrds_msg_alloc(xs->xn, pin->nr_bv, GFP_KERNEL_ACCOUNT);
	if (!msg) {
		xrds_pin_free(pin);
		return ERR_PTR(-ENOMEM);
	}
	msg->len = len;
	msg->borrowed = true;
	xrds_zcopy_fill(msg, pin);
	if (!xrds_zcopy_fits(msg, conn)) {
		xrds_pin_free(pin);
		xrds_msg_put(msg);
		return NULL;
	}
	zc->pin = pin;
	msg->zcopy = zc;
	return msg;
}

/**
 * xrds_zcopy_undo - a message could not be queued
 * @msg: message; its completion, if it has one, is the caller's again
 *
 * Context: process.
 */
void xrds_zcopy_undo(struct xrds_msg *msg)
{
	if (!msg->zcopy)
		return;
	xrds_pin_free(msg->zcopy->pin);
	msg->zcopy->pin = NULL;
	msg->zcopy = NULL;
}

/**
 * xrds_zcopy_end - a program's memory is its own again
 * @xs: socket
 * @zc: completion; the socket owns it from now on
 *
 * Context: any, without L4.
 */
void xrds_zcopy_end(struct xrds_sock *xs, struct xrds_zcopy *zc)
{
	bool dead;

	xrds_pin_free(zc->pin);
	zc->pin = NULL;
	spin_lock_bh(&xs->lock);
	dead = sock_flag(&xs->sk, SOCK_DEAD);
	if (!dead)
		list_add_tail(&zc->node, &xs->zcopied);
	spin_unlock_bh(&xs->lock);
	if (dead)
		xrds_zcopy_free(xs, zc);
	else
		xrds_barrier_wake_sock(&xs->rdma, EPOLLIN | EPOLLRDNORM);
}

/**
 * xrds_zcopy_read - give completions to a reader
 * @xs: socket
 * @m: result, with room for one control message of them
 *
 * Context: process.
 * Return: 1, 0 when there is none, or -EFAULT: they stay.
 */
int xrds_zcopy_read(struct xrds_sock *xs, struct msghdr *m)
{
	struct rds_zcopy_cookies cookies = {};
	struct xrds_zcopy *zc, *tmp;
	LIST_HEAD(told);
	int ret;

	spin_lock_bh(&xs->lock);
	list_for_each_entry_safe(zc, tmp, &xs->zcopied, node) {
		if (cookies.num == RDS_MAX_ZCOOKIES)
			break;
		cookies.cookies[cookies.num++] = zc->cookie;
		list_move_tail(&zc->node, &told);
	}
	spin_unlock_bh(&xs->lock);
	if (!cookies.num)
		return 0;

	ret = put_cmsg(m, SOL_RDS, RDS_CMSG_ZCOPY_COMPLETION, sizeof(cookies),
		       &cookies);
	if (ret) {
		spin_lock_bh(&xs->lock);
		list_splice(&told, &xs->zcopied);
		spin_unlock_bh(&xs->lock);
		return ret;
	}
	list_for_each_entry_safe(zc, tmp, &told, node)
		xrds_zcopy_free(xs, zc);
	return 1;
}

/**
 * xrds_zcopy_purge - drop what a closed socket has not read
 * @xs: socket, SOCK_DEAD is set
 *
 * Context: process, may sleep.
 */
void xrds_zcopy_purge(struct xrds_sock *xs)
{
	struct xrds_zcopy *zc, *tmp;
	LIST_HEAD(drop);

	spin_lock_bh(&xs->lock);
	list_splice_init(&xs->zcopied, &drop);
	spin_unlock_bh(&xs->lock);
	list_for_each_entry_safe(zc, tmp, &drop, node) {
		xrds_zcopy_free(xs, zc);
		cond_resched();
	}
}
