// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMA over loopback: ops are copies between pinned pages of two sockets of
 * one node.
 *
 * The key is looked up among the regions of the destination address, and
 * judged as a device would: it must exist, allow the access, and cover every
 * byte. Unlike a device, loopback sees the cookie's offset apart from the place in
 * the region, and both halves of the cookie must be right: in a large region most
 * offsets would do. Copies are made under mr->lock, which invalidation takes too, so that a
 * region is never touched after its key is void. A long op is copied in pieces,
 * by a work that gives way to others between them; if the key is made void
 * meanwhile the op fails with a part of it done, as on a device. An op that
 * fails takes its immediate message with it, as one over the wire does.
 *
 * A socket of another transport may own the region (both sockets are bound to
 * the same address of an RDMA device): only the fields that all transports
 * set in a region are used.
 */
#include <linux/highmem.h>
#include <linux/random.h>
#include <linux/sched.h>

#include "transport.h"
#include "xrds.h"

/**
 * xrds_loop_rdma_mr_reg - give a region a key
 * @mr: region
 *
 * Context: process.
 * Return: 0.
 */
int xrds_loop_rdma_mr_reg(struct xrds_mr *mr)
{
	const u32 bytes = mr->pin->bytes + sizeof(u64);

	/* Neither is to be guessed, and an op needs both. The table refuses a
	 * key that is in use. Atomics are aligned as their memory is. Programs
	 * move the offset in a cookie: it fits into 32 bits up to the last byte.
	 */
	mr->key.rkey = get_random_u32();
	mr->offset = ALIGN_DOWN(reciprocal_scale(get_random_u32(), U32_MAX - bytes),
				sizeof(u64)) |
		     mr->pin->bv[0].bv_offset % sizeof(u64);
	return 0;
}

/**
 * xrds_loop_rdma_mr_unreg - make a key void
 * @mr: region
 *
 * Context: process.
 */
void xrds_loop_rdma_mr_unreg(struct xrds_mr *mr)
{
	xrds_mr_make_dead(mr, 0);
}

/**
 * struct xrds_loop_pos - a place in pinned memory
 * @pin: memory
 * @i: piece
 * @off: offset into it, bytes
 */
struct xrds_loop_pos {
	const struct xrds_pin *pin;
	unsigned int i;
	u32 off;
};

/* Every piece but the first and the last is a whole page. */
static void xrds_loop_seek(struct xrds_loop_pos *pos,
			   const struct xrds_pin *pin, u64 at)
{
	const struct bio_vec *first = &pin->bv[0];

	pos->pin = pin;
	pos->i = 0;
	pos->off = at;
	if (at >= first->bv_len) {
		at -= first->bv_len;
		pos->i = 1 + (at >> PAGE_SHIFT);
		pos->off = offset_in_page(at);
	}
}

static u32 xrds_loop_left(const struct xrds_loop_pos *pos)
{
	return pos->pin->bv[pos->i].bv_len - pos->off;
}

static void xrds_loop_step(struct xrds_loop_pos *pos, u32 n)
{
	pos->off += n;
	if (pos->off == pos->pin->bv[pos->i].bv_len) {
		pos->i++;
		pos->off = 0;
	}
}

static void xrds_loop_copy(struct xrds_loop_pos *to, struct xrds_loop_pos *from,
			   u64 bytes)
{
	const struct bio_vec *tv, *fv;
	u32 n;

	while (bytes) {
		n = min3((u64)xrds_loop_left(to), (u64)xrds_loop_left(from),
			 bytes);
		tv = &to->pin->bv[to->i];
		fv = &from->pin->bv[from->i];
		memcpy_page(tv->bv_page, tv->bv_offset + to->off,
			    fv->bv_page, fv->bv_offset + from->off, n);
		xrds_loop_step(to, n);
		xrds_loop_step(from, n);
		bytes -= n;
	}
}

/* Add field by field: a bit in @nocarry is the highest of its field. */
static u64 xrds_loop_masked_add(u64 a, u64 b, u64 nocarry)
{
	u64 low = ~nocarry;

	/* the highest bits are added without carry, so none leaves a field */
	return ((a & low) + (b & low)) ^ ((a ^ b) & nocarry);
}

static u64 xrds_loop_atomic_new(const struct xrds_rop *rop, u64 old)
{
	if (rop->op == XRDS_ROP_FADD)
		return xrds_loop_masked_add(old, rop->compare_add,
					    rop->compare_mask);
	if ((old ^ rop->compare_add) & rop->compare_mask)
		return old;
	return (old & ~rop->swap_mask) | (rop->swap & rop->swap_mask);
}

/* Atomic toward programs, too: they see the same memory. */
static void xrds_loop_atomic(const struct xrds_rop *rop, struct xrds_mr *mr,
			     u64 at)
{
	const struct bio_vec *local = &rop->pin->bv[0];
	struct xrds_loop_pos pos;
	u64 old, seen;
	void *base;
	u64 *word;

	xrds_loop_seek(&pos, mr->pin, at);
	base = kmap_local_page(mr->pin->bv[pos.i].bv_page);
	word = base + mr->pin->bv[pos.i].bv_offset + pos.off;
	old = READ_ONCE(*word);
	while ((seen = cmpxchg64(word, old,
				 xrds_loop_atomic_new(rop, old))) != old)
		old = seen;
	kunmap_local(base);
	memcpy_to_page(local->bv_page, local->bv_offset, (char *)&old,
		       sizeof(old));
}

/* The checks of a device; mr->lock is held. */
static bool xrds_loop_allowed(const struct xrds_rop *rop,
			      const struct xrds_mr *mr)
{
	bool write = rop->op != XRDS_ROP_READ;
	u64 at = rop->raddr - rop->offset;

	lockdep_assert_held(&mr->lock);

	return !mr->dead && at <= mr->pin->bytes &&
	       rop->pin->bytes <= mr->pin->bytes - at && (!write || mr->write);
}

/**
 * struct xrds_loop_move - a copy that is made piece by piece
 * @to:		where the next byte goes
 * @from:	where it is
 */
struct xrds_loop_move {
	struct xrds_loop_pos to;
	struct xrds_loop_pos from;
};

static void xrds_loop_move_init(struct xrds_loop_move *move,
				const struct xrds_rop *rop,
				const struct xrds_mr *mr)
{
	bool write = rop->op == XRDS_ROP_WRITE;
	struct xrds_loop_pos *remote = write ? &move->to : &move->from;
	struct xrds_loop_pos *local = write ? &move->from : &move->to;

	/* a vector's pieces are of any length: begin at the first */
	*local = (struct xrds_loop_pos){ .pin = rop->pin };
	xrds_loop_seek(remote, mr->pin, rop->raddr - mr->offset);
}

/* The region that both halves of an op's cookie belong to, with a reference, or NULL.
 * At the address of a device the regions have keys of the device. These have so few
 * random bits that a user may not guess often: on the wire a wrong key costs a
 * connection.
 */
static struct xrds_mr *xrds_loop_mr(const struct xrds_conn *conn,
				    const struct xrds_rop *rop)
{
	bool device = !xrds_addr_is_loopback(&conn->key.faddr);
	struct xrds_mr *mr;

	if (device && xrds_limit_guesses(rop->rs->user))
		return NULL;
	mr = xrds_mr_find(conn->xn, &conn->key.faddr, rop->rkey);
	if (mr && mr->offset == rop->offset)
		return mr;
	if (mr)
		xrds_mr_put(mr);
	if (device)
		xrds_limit_wrong_key(rop->rs->user);
	return NULL;
}

/**
 * xrds_loop_rdma - carry out a short op
 * @conn: loopback connection
 * @rop: op
 *
 * Context: BH disabled.
 * Return: its status.
 */
s32 xrds_loop_rdma(struct xrds_conn *conn, const struct xrds_rop *rop)
{
	s32 status = RDS_RDMA_REMOTE_ERROR;
	struct xrds_loop_move move;
	struct xrds_mr *mr;

	mr = xrds_loop_mr(conn, rop);
	if (!mr)
		return status;
	spin_lock(&mr->lock);
	if (xrds_loop_allowed(rop, mr)) {
		if (rop->op == XRDS_ROP_FADD || rop->op == XRDS_ROP_CSWP) {
			xrds_loop_atomic(rop, mr, rop->raddr - mr->offset);
		} else {
			xrds_loop_move_init(&move, rop, mr);
			xrds_loop_copy(&move.to, &move.from, rop->pin->bytes);
		}
		status = RDS_RDMA_SUCCESS;
	}
	spin_unlock(&mr->lock);
	xrds_mr_put(mr);
	return status;
}

/**
 * xrds_loop_rdma_long - carry out a long read or write
 * @conn: loopback connection
 * @rop: op
 * @stop: set when nobody wants it any more
 *
 * Context: process, may sleep.
 * Return: its status; that of an op that was stopped means nothing.
 */
s32 xrds_loop_rdma_long(struct xrds_conn *conn, const struct xrds_rop *rop,
			const bool *stop)
{
	u64 n, left = rop->pin->bytes;
	struct xrds_loop_move move;
	struct xrds_mr *mr;
	bool good = true;

	mr = xrds_loop_mr(conn, rop);
	if (!mr)
		return RDS_RDMA_REMOTE_ERROR;
	xrds_loop_move_init(&move, rop, mr);
	while (good && left) {
		n = min_t(u64, left, XRDS_LOOP_PIECE_BYTES);
		spin_lock_bh(&mr->lock);
		good = xrds_loop_allowed(rop, mr) && !READ_ONCE(*stop);
		if (good)
			xrds_loop_copy(&move.to, &move.from, n);
		spin_unlock_bh(&mr->lock);
		left -= n;
		cond_resched();
	}
	xrds_mr_put(mr);
	return good ? RDS_RDMA_SUCCESS : RDS_RDMA_REMOTE_ERROR;
}
