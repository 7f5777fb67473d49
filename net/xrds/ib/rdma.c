// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMA ops: work requests in front of an immediate message.
 *
 * An op belongs to the message behind it. Its work requests go first, in the
 * same send queue and, if there is space, in the same call to the device; they
 * use no credit and are not signalled, but each has its completion entry: if
 * one fails, that tells which op is guilty.
 *
 *   prepare (sendmsg) -> fill, one send context each (tx_lock) -> message sent
 *     -> xrds_rop_done()
 *
 * The scatter entries that posting needs are allocated when the op is made.
 * They are mapped when they are posted, for the device that the endpoint has
 * then, and unmapped with their send context. So an op that waits for a
 * connection holds no device.
 *
 * The end of the op is the end of its message: completions come in order, and
 * the last fragment is signalled. When the endpoint ends before that, so does
 * the op, but not before the queue pair is destroyed, even if its completions
 * have reported an error: until then the device may access the memory. A
 * failing work request only sets the status of its op.
 *
 * An op that cannot be mapped waits while other work requests of the endpoint are
 * in progress, which may free mappings. With none in progress, or when the driver
 * refuses it, it fails alone: its message is sent without payload, marked so that
 * the peer does not deliver it, and keeps the sequence numbers of the connection
 * complete. The rest of an op that has begun cannot fail alone: the endpoint ends.
 *
 * All of it runs under conn->tx_lock, except preparing and ending.
 */
#include "ib/ib.h"

enum {
	/* size of one scatter entry: as many of them as one work request has are
	 * less than any device takes in it
	 */
	XRDS_IB_OP_PIECE_BYTES	= 128 << 10,
};

/**
 * struct xrds_ib_op - the transport's state of an op
 * @entry:	in a list of ended ops
 * @msg:	immediate message, with its reference, while in that list
 * @at:		bytes of the work requests that are filled
 * @bv:		index of the first bio_vec behind them
 * @nr_bv:	how many bio_vecs there are
 * @next:	index of the first of @sge behind them
 * @refused:	the device did not take it
 * @ended:	it has ended, or is about to
 * @sge:	scatter entries
 */
struct xrds_ib_op {
	struct list_head entry;
	struct xrds_msg *msg;
	u64 at;
	u32 bv;
	u32 nr_bv;
	u32 next;
	bool refused;
	bool ended;
	struct ib_sge sge[];
};

static struct xrds_ib_op *xrds_ib_op(const struct xrds_msg *msg)
{
	return msg->rop->priv;
}

static bool xrds_ib_rop_atomic(const struct xrds_rop *rop)
{
	return rop->op == XRDS_ROP_FADD || rop->op == XRDS_ROP_CSWP;
}

/* Do the masks of an atomic have an effect? */
static bool xrds_ib_rop_masked(const struct xrds_rop *rop)
{
	if (!rop->masked)
		return false;
	if (rop->op == XRDS_ROP_FADD)
		return rop->compare_mask;
	return ~rop->compare_mask || ~rop->swap_mask;
}

/* -------------------------------------------------------------- prepare */

static phys_addr_t xrds_ib_bv_start(const struct bio_vec *bv)
{
	return page_to_phys(bv->bv_page) + bv->bv_offset;
}

/* The length of the piece of contiguous memory that begins with bio_vec @i.
 * Steps over its bio_vecs.
 */
static u32 xrds_ib_op_piece(const struct xrds_pin *pin, u32 *i)
{
	phys_addr_t end = xrds_ib_bv_start(&pin->bv[*i]);
	u32 len = 0;

	do {
		len += pin->bv[*i].bv_len;
		end += pin->bv[*i].bv_len;
		++*i;
	} while (*i < pin->nr_bv && xrds_ib_bv_start(&pin->bv[*i]) == end &&
		 len + pin->bv[*i].bv_len <= XRDS_IB_OP_PIECE_BYTES);
	return len;
}

/* Can the local device do the op? The peer's device answers for itself. */
static int xrds_ib_op_check(const struct xrds_conn *conn,
			    const struct xrds_rop *rop)
{
	const struct ib_device_attr *attrs;
	struct xrds_ib_dev *ibdev;
	enum ib_atomic_cap cap;
	bool can;

	if (!xrds_ib_rop_atomic(rop))
		return 0;
	ibdev = xrds_ib_dev_find_addr(conn->xn->net, &conn->key.laddr,
				      conn->key.scope);
	if (!ibdev)
		return -ENODEV;
	attrs = &ibdev->dev->attrs;
	cap = xrds_ib_rop_masked(rop) ? attrs->masked_atomic_cap :
					attrs->atomic_cap;
	can = cap != IB_ATOMIC_NONE && !ibdev->quirks.no_atomics;
	xrds_ib_dev_put(ibdev);
	return can ? 0 : -EOPNOTSUPP;
}

/**
 * xrds_ib_rdma_prepare - allocate the transport's state of a message's op
 * @conn: connection
 * @msg: message; nothing is done without op, or if it was prepared before
 *
 * Context: process, may sleep; any for a message without op.
 * Return: 0, -ENOMEM, -EOPNOTSUPP for an atomic that the device does not
 * have, -ENODEV.
 */
int xrds_ib_rdma_prepare(struct xrds_conn *conn, struct xrds_msg *msg)
{
	struct xrds_rop *rop = msg->rop;
	struct xrds_ib_op *op;
	u32 i = 0, nr = 0;
	int ret;

	if (!rop || rop->priv)
		return 0;
	ret = xrds_ib_op_check(conn, rop);
	if (ret)
		return ret;
	while (i < rop->pin->nr_bv) {
		xrds_ib_op_piece(rop->pin, &i);
		nr++;
	}
	op = kvzalloc(struct_size(op, sge, nr), GFP_KERNEL_ACCOUNT);
	if (!op)
		return -ENOMEM;
	INIT_LIST_HEAD(&op->entry);
	op->nr_bv = rop->pin->nr_bv;
	rop->priv = op;
	return 0;
}

/* -------------------------------------------------------------- posting */

/**
 * xrds_ib_rdma_op_remaining - has an op work requests that are not filled?
 * @msg: message with an op
 *
 * Context: any, conn->tx_lock held.
 * Return: true if it has.
 */
bool xrds_ib_rdma_op_remaining(const struct xrds_msg *msg)
{
	return !xrds_ib_op(msg)->refused &&
	       xrds_ib_op(msg)->bv < xrds_ib_op(msg)->nr_bv;
}

/**
 * xrds_ib_rdma_op_fresh - has an op no filled work request?
 * @msg: message with an op
 *
 * Context: any, conn->tx_lock held.
 * Return: true if it has.
 */
bool xrds_ib_rdma_op_fresh(const struct xrds_msg *msg)
{
	return xrds_ib_rdma_op_remaining(msg) && !xrds_ib_op(msg)->bv;
}

/**
 * xrds_ib_rdma_op_fenced - must a message wait until its op is done?
 * @msg: message with an op
 *
 * The result of a read or an atomic is in memory before the message is sent; so
 * the receiver of the message may use its memory again.
 *
 * Context: any, conn->tx_lock held.
 * Return: true if it must.
 */
bool xrds_ib_rdma_op_fenced(const struct xrds_msg *msg)
{
	return !xrds_ib_op(msg)->refused &&
	       (msg->rop->fence || msg->rop->op != XRDS_ROP_WRITE);
}

static enum dma_data_direction xrds_ib_op_dir(const struct xrds_rop *rop)
{
	return rop->op == XRDS_ROP_WRITE ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
}

/* Map as many pieces as one work request takes, or as can be mapped; returns their
 * bytes, or 0.
 */
static u32 xrds_ib_op_map(struct xrds_ib_ep *ep, struct xrds_ib_sctx *sctx,
			  struct xrds_ib_op *op)
{
	const struct xrds_pin *pin = sctx->rop->pin;
	struct ib_device *dev = ep->ibdev->dev;
	const struct bio_vec *bv;
	struct ib_sge *sge;
	u32 bytes = 0, i;
	int max;

	max = sctx->rop->op == XRDS_ROP_READ ? ep->tx.read_sge : ep->tx.op_sge;
	sctx->wr.sg_list = &op->sge[op->next];
	sctx->wr.num_sge = 0;
	while (op->bv < op->nr_bv && sctx->wr.num_sge < max) {
		i = op->bv;
		bv = &pin->bv[i];
		sge = &op->sge[op->next];
		sge->length = xrds_ib_op_piece(pin, &i);
		sge->lkey = ep->ibdev->pd->local_dma_lkey;
		sge->addr = ib_dma_map_page(dev, bv->bv_page, bv->bv_offset,
					    sge->length,
					    xrds_ib_op_dir(sctx->rop));
		if (ib_dma_mapping_error(dev, sge->addr)) {
			xrds_ib_count(ep->xin, XRDS_IB_C_TX_SG_MAPPING_FAILURE);
			break;
		}
		bytes += sge->length;
		op->bv = i;
		op->next++;
		sctx->wr.num_sge++;
	}
	return bytes;
}

static void xrds_ib_op_fill_atomic(struct xrds_ib_sctx *sctx)
{
	const struct xrds_rop *rop = sctx->rop;
	bool masked = xrds_ib_rop_masked(rop);
	struct ib_atomic_wr *wr = &sctx->atomic;

	if (rop->op == XRDS_ROP_FADD)
		wr->wr.opcode = masked ? IB_WR_MASKED_ATOMIC_FETCH_AND_ADD :
					 IB_WR_ATOMIC_FETCH_AND_ADD;
	else
		wr->wr.opcode = masked ? IB_WR_MASKED_ATOMIC_CMP_AND_SWP :
					 IB_WR_ATOMIC_CMP_AND_SWP;
	wr->remote_addr = rop->raddr;
	wr->rkey = rop->rkey;
	wr->compare_add = rop->compare_add;
	wr->swap = rop->swap;
	wr->compare_add_mask = rop->compare_mask;
	wr->swap_mask = rop->swap_mask;
}

/**
 * xrds_ib_rdma_op_fill - make the next work request of an op
 * @ep: endpoint
 * @sctx: send context for it
 * @msg: message whose op has work requests that are not filled
 *
 * Context: any, conn->tx_lock held.
 * Return: 0; -EAGAIN when its memory cannot be mapped now, -ENOMEM when nothing is
 * in progress that could change that.
 */
int xrds_ib_rdma_op_fill(struct xrds_ib_ep *ep, struct xrds_ib_sctx *sctx,
			 const struct xrds_msg *msg)
{
	struct xrds_ib_op *op = xrds_ib_op(msg);
	struct xrds_rop *rop = msg->rop;
	u32 bytes;

	lockdep_assert_held(&ep->conn->tx_lock);

	sctx->rop = rop;
	bytes = xrds_ib_op_map(ep, sctx, op);
	if (!bytes)
		return ep->tx.used > 1 ? -EAGAIN : -ENOMEM;
	if (xrds_ib_rop_atomic(rop)) {
		xrds_ib_op_fill_atomic(sctx);
	} else {
		sctx->wr.opcode = rop->op == XRDS_ROP_WRITE ?
				  IB_WR_RDMA_WRITE : IB_WR_RDMA_READ;
		sctx->rdma.remote_addr = rop->raddr + op->at;
		sctx->rdma.rkey = rop->rkey;
	}
	op->at += bytes;
	xrds_ib_count(ep->xin, XRDS_IB_C_TX_OPS);
	return 0;
}

/**
 * xrds_ib_rdma_op_unmap - unmap the memory of a work request of an op
 * @ep: endpoint
 * @sctx: its send context, which the device does not use any more
 *
 * Context: any, conn->tx_lock held.
 */
void xrds_ib_rdma_op_unmap(struct xrds_ib_ep *ep,
			   const struct xrds_ib_sctx *sctx)
{
	int i;

	for (i = 0; i < sctx->wr.num_sge; i++)
		ib_dma_unmap_page(ep->ibdev->dev, sctx->wr.sg_list[i].addr,
				  sctx->wr.sg_list[i].length,
				  xrds_ib_op_dir(sctx->rop));
}

/* -------------------------------------------------------------- the end */

/**
 * xrds_ib_rdma_op_refuse - an op fails before the device has any of it
 * @ep: endpoint
 * @msg: its message, which is sent in any case
 *
 * Context: any, conn->tx_lock held.
 */
void xrds_ib_rdma_op_refuse(struct xrds_ib_ep *ep, const struct xrds_msg *msg)
{
	lockdep_assert_held(&ep->conn->tx_lock);

	xrds_ib_op(msg)->refused = true;
	msg->rop->status = RDS_RDMA_OTHER_ERROR;
	xrds_ib_count(ep->xin, XRDS_IB_C_OP_REFUSED);
}

/**
 * xrds_ib_rdma_op_refused - was the op of a message refused?
 * @msg: message with an op
 *
 * Context: any, conn->tx_lock held.
 * Return: true if it was.
 */
bool xrds_ib_rdma_op_refused(const struct xrds_msg *msg)
{
	return xrds_ib_op(msg)->refused;
}

/**
 * xrds_ib_rdma_op_failed - a work request of an op has completed with an error
 * @ep: endpoint, which ends
 * @rop: op
 * @wc: completion
 *
 * Only an answer of the peer tells the outcome of the op. Else the outcome
 * stays open, and the op ends with the endpoint, see xrds_ib_sq_free().
 *
 * Context: completions, conn->tx_lock held.
 */
void xrds_ib_rdma_op_failed(struct xrds_ib_ep *ep, struct xrds_rop *rop,
			    const struct ib_wc *wc)
{
	lockdep_assert_held(&ep->conn->tx_lock);

	switch (wc->status) {
	case IB_WC_WR_FLUSH_ERR:
		/* another work request has failed */
		break;
	case IB_WC_REM_ACCESS_ERR:
	case IB_WC_REM_INV_REQ_ERR:
	case IB_WC_REM_OP_ERR:
		rop->status = RDS_RDMA_REMOTE_ERROR;
		xrds_ib_count(ep->xin, XRDS_IB_C_OP_REMOTE_ERROR);
		break;
	default:
		/* The outcome is not known: without an acknowledgment the peer
		 * may have done the op, and an error of this device may follow
		 * the peer's answer. The status is that of a lost connection.
		 */
		xrds_ib_count(ep->xin, XRDS_IB_C_OP_OTHER_ERROR);
		break;
	}
}

/**
 * xrds_ib_rdma_op_collect - the message of an op has left the ring
 * @msg: message; its reference goes to the list
 * @ended: list for xrds_ib_rdma_end_ops()
 *
 * Context: any, conn->tx_lock held.
 */
void xrds_ib_rdma_op_collect(struct xrds_msg *msg, struct list_head *ended)
{
	struct xrds_ib_op *op = xrds_ib_op(msg);

	/* the peer has refused the message, and this is its second SEND */
	if (op->ended) {
		xrds_msg_put(msg);
		return;
	}
	op->ended = true;
	op->msg = msg;
	list_add_tail(&op->entry, ended);
}

/**
 * xrds_ib_rdma_end_ops - end ops
 * @ended: the ops, oldest first
 * @status: status of ops that have not failed before
 *
 * Context: any, without conn->tx_lock; the device is done with them.
 */
void xrds_ib_rdma_end_ops(struct list_head *ended, s32 status)
{
	struct xrds_ib_op *op, *tmp;
	struct xrds_msg *msg;

	list_for_each_entry_safe(op, tmp, ended, entry) {
		msg = op->msg;
		list_del_init(&op->entry);
		xrds_rop_done(msg->rop, msg->rop->status ?: status);
		/* this frees the op as well */
		xrds_msg_put(msg);
	}
}
