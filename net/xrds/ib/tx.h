/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * XRDS over RDMA: send contexts, and the sending side of an endpoint. ib.h
 * includes it.
 */
#ifndef _XRDS_IB_TX_H
#define _XRDS_IB_TX_H

#include <linux/list.h>
#include <rdma/ib_verbs.h>

#include "ib/rx.h"
#include "ib/window.h"
#include "msg.h"
#include "transport.h"

struct xrds_ib_ep;

enum {
	/* gather entries of a send: the header, and two pieces of payload or, if
	 * the device takes as many, the five pages that 16 KiB may be in
	 */
	XRDS_IB_MIN_SGE		= 3,
	XRDS_IB_SGE		= 6,
	/* scatter entries of an op: they fill two units of a send queue */
	XRDS_IB_OP_SGE		= 6,
	/* The same of a software device, 76 KiB of single pages. An entry of the
	 * send queue of soft-RoCE has 512 bytes, with 4 to 19 of them.
	 */
	XRDS_IB_SOFT_OP_SGE	= 19,
	/* payload that is copied behind its header: to map it would cost more */
	XRDS_IB_SLOT_PAYLOAD	= 64,
	XRDS_IB_SLOT_BYTES	= XRDS_WIRE_HDR_BYTES + XRDS_IB_SLOT_PAYLOAD,
	XRDS_IB_CTL_BUFS	= 4,	/* control messages with payload */
	XRDS_IB_CTL_BYTES	= 256,	/* header and XRDS_CTL_INLINE_BYTES */
	XRDS_IB_MAX_CREDITS	= 32767,
	/* payload of small messages that the device is given at a time: later
	 * messages may be of somebody else, and wait for all of it
	 */
	XRDS_IB_BUSY_BYTES	= 256 << 10,
	/* a nudge, and the marker of the drain */
	XRDS_IB_EXTRA_SEND_WR	= 2,
	/* the watch looks at a queue that is not empty */
	XRDS_IB_WATCH_MS	= 250,
	/* a queue pair is stuck when nothing has completed for so long */
	XRDS_IB_STALL_MS	= 5000,
	/* a port that no socket can have: legacy peers reserve it */
	XRDS_IB_NO_PORT		= 1,
};

/* ----------------------------------------------------------------- sq.c */

/**
 * struct xrds_ib_sctx - send context: one send work request
 * @cqe:	completion; of this send context and those before it
 * @wr:		work request
 * @rdma:	the same of a read or write
 * @atomic:	the same of an atomic
 * @send:	the same of a SEND
 * @sge:	its memory; the first is the header, with little payload behind it
 *		or in its place, the others mapped payload; a short header does
 *		not use the first
 * @rop:	op of which this is a part, kept by its message behind it; NULL
 *		for a SEND
 * @msg:	message that ends with this fragment, with a reference, or NULL
 * @bundle:	memory of a bundle, mapped as the second of @sge, or NULL
 * @ctl:	number of the control buffer in use, or -1
 * @tag:	index of its message in tx->cursor
 * @bulk:	a fragment with tag 1, counted in tx->nr_bulk
 * @bytes:	its share of tx->busy_bytes
 */
struct xrds_ib_sctx {
	struct ib_cqe cqe;
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
		struct {
			struct ib_send_wr send;
			struct ib_sge sge[XRDS_IB_SGE];
		};
	};
	struct xrds_rop *rop;
	struct xrds_msg *msg;
	void *bundle;
	s8 ctl;
	u8 tag;
	bool bulk;
	u32 bytes;
};

static_assert(!offsetof(struct ib_rdma_wr, wr));
static_assert(!offsetof(struct ib_atomic_wr, wr));

/**
 * struct xrds_ib_cursor - a message that is posted in part: its op first, then
 *	its fragments
 * @msg:	with a reference; NULL: none
 * @wm:		header of its next fragment
 * @left:	payload not posted, bytes
 * @bv:		index of the first bio_vec not wholly posted
 * @bv_off:	bytes of that bio_vec that are posted
 * @fence:	the first fragment waits for the op
 * @op_end:	value of tx->retired when the device has done the op
 */
struct xrds_ib_cursor {
	struct xrds_msg *msg;
	struct xrds_wire_msg wm;
	u32 left;
	u32 bv;
	u32 bv_off;
	bool fence;
	u32 op_end;
};

/**
 * struct xrds_ib_tx - the sending side of an endpoint; conn->tx_lock
 * @ring:	@nr send contexts
 * @nr:		length of @ring
 * @head:	next to use
 * @tail:	oldest in use
 * @used:	number in use
 * @retired:	number retired, ever
 * @busy_bytes:	payload in use, but for fragments with tag 1
 * @run:	posted since the last signalled one
 * @nr_signaled: signalled ones in use
 * @nr_fenced:	those with a fence in use
 * @max_run:	sysctl max_unsignaled_wr when the endpoint was made; 0: no empty
 *		writes
 * @sge:	gather entries that a SEND may have
 * @op_sge:	scatter entries that a write may have
 * @read_sge:	scatter entries that a read may have
 * @ctl_used:	bit mask of control buffers in use
 * @slot_bytes:	size of a slot, XRDS_IB_SLOT_BYTES; without much memory only that
 *		of a header
 * @hdrs:	@nr slots with a header and little payload, then control buffers
 * @hdrs_dma:	DMA address of @hdrs
 * @hdrs_bytes:	size of @hdrs
 * @credits:	SENDs that the peer has granted and that are not used
 * @most_credits: highest value that @credits has had
 * @granted:	SENDs granted to the peer, ever
 * @window:	upper limit of @share, constant
 * @share:	upper limit of outstanding SENDs of the peer; written under the
 *		receive queue's lock, also read without it
 * @payload:	largest payload behind a full header, bytes
 * @greeted:	the hello was sent, headers may grant credits
 * @brief:	the peer takes short headers
 * @ctx:	context of the short headers to the peer
 * @bundle:	upper limit for a SEND with several messages, bytes; 0: there
 *		are none
 * @cursor:	messages of which some fragments are not posted, by tag
 * @cork:	SEND, or NULL; small messages wait for its completion, to go together
 * @cork_seq:	number of the last message in the last cork, or before it
 * @nr_bulk:	fragments with tag 1 in use
 * @bulk_run:	of those posted since the last that was signalled as one
 * @bulk_window: how many fragments with tag 1 may be in use
 * @bulk_sctx:	the one of them that is being measured, or NULL
 * @passed:	other messages sent since the last of them
 * @shared_at:	jiffies when another message was sent beside them, 0: never
 * @blocked:	the core was told to come again
 * @ctl_blocked: the core was told to come again with a control message
 * @unmapped:	a fragment waits for memory for its mapping
 * @broken:	a call to the device failed
 * @kept:	the device may use all that is posted for good: its memory and
 *		mappings stay
 * @closed:	BYE_ACK was sent, nothing but credits may follow it
 * @closed_at:	value of @retired when the device has done BYE_ACK
 * @bye_sent:	BYE was sent
 * @progress:	jiffies of the last completion, or of the first signalled post
 *		since
 * @stall:	jiffies without progress after which it is stuck
 * @rtt_ns:	round trip of a send, smoothed, 0: none was measured
 * @rtt_sctx:	send context that is being measured, or NULL
 * @rtt_start:	when it was posted, CLOCK_MONOTONIC
 * @rtt_next:	jiffies when the next measurement may start
 * @nudging:	@nudge is posted
 * @nudge:	an empty write that makes the device look at the queue
 * @nudge_cqe:	its completion
 */
struct xrds_ib_tx {
	struct xrds_ib_sctx *ring;
	u16 nr;
	u16 head;
	u16 tail;
	u16 used;
	u32 retired;
	u32 busy_bytes;
	u16 run;
	u16 nr_signaled;
	u16 nr_fenced;
	u16 max_run;
	u8 sge;
	u8 op_sge;
	u8 read_sge;
	u8 ctl_used;
	u16 slot_bytes;
	void *hdrs;
	u64 hdrs_dma;
	u32 hdrs_bytes;
	u32 credits;
	u32 most_credits;
	u32 granted;
	u32 window;
	u32 share;
	u32 payload;
	bool greeted;
	bool brief;
	struct xrds_wire_context ctx;
	u32 bundle;
	const struct xrds_ib_sctx *cork;
	u64 cork_seq;
	struct xrds_ib_cursor cursor[XRDS_IB_TAGS];
	u32 nr_bulk;
	u32 bulk_run;
	struct xrds_ib_window bulk_window;
	const struct xrds_ib_sctx *bulk_sctx;
	u32 passed;
	unsigned long shared_at;
	bool blocked;
	bool ctl_blocked;
	bool unmapped;
	bool broken;
	bool kept;
	bool closed;
	u32 closed_at;
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

/* Work requests of a send queue, and so their completions, at a time */
static inline u32 xrds_ib_sq_max_wr(const struct xrds_ib_tx *tx)
{
	return tx->nr + XRDS_IB_EXTRA_SEND_WR;
}

struct xrds_ib_sctx *xrds_ib_sq_take(struct xrds_ib_tx *tx);
void xrds_ib_sq_count(struct xrds_ib_tx *tx, struct xrds_ib_sctx *sctx);
void xrds_ib_sq_signal(struct xrds_ib_ep *ep, struct xrds_ib_sctx *sctx);
void xrds_ib_sq_cork(struct xrds_ib_ep *ep, struct xrds_ib_sctx *sctx);
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
u32 xrds_ib_sq_grantable(struct xrds_ib_ep *ep);
bool xrds_ib_sq_can_send(struct xrds_ib_ep *ep, u32 grant);
u8 xrds_ib_sq_spend(struct xrds_ib_ep *ep, u32 *grant, u32 most);
int xrds_ib_sq_init(struct xrds_ib_ep *ep,
		    void (*done)(struct ib_cq *cq, struct ib_wc *wc));
void xrds_ib_sq_keep_memory(struct xrds_ib_ep *ep);
void xrds_ib_sq_free(struct xrds_ib_ep *ep);

/* -------------------------------------------------------------- watch.c */

void xrds_ib_watch_init(struct xrds_ib_ep *ep);
void xrds_ib_watch_flush_failed(struct xrds_ib_ep *ep, const struct ib_wc *wc);
void xrds_ib_watch_mapping(struct xrds_ib_ep *ep);
bool xrds_ib_watch_fail_late(struct xrds_ib_ep *ep);

/* --------------------------------------------------------------- rdma.c */

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

/* --------------------------------------------------------------- frag.c */

void xrds_ib_frag_wire_msg(const struct xrds_ib_ep *ep,
			   const struct xrds_msg *msg,
			   struct xrds_wire_msg *wm);
void xrds_ib_frag_begin(struct xrds_ib_ep *ep, u8 tag, struct xrds_msg *msg);
int xrds_ib_frag_post(struct xrds_ib_ep *ep, u8 tag);
bool xrds_ib_frag_bulk_shares(const struct xrds_ib_tx *tx);
bool xrds_ib_frag_bulk_turn(const struct xrds_ib_ep *ep);

/* ------------------------------------------------------------- bundle.c */

bool xrds_ib_bundle_wanted(const struct xrds_ib_ep *ep,
			   const struct xrds_msg *msg);
bool xrds_ib_bundle_post(struct xrds_ib_ep *ep, const struct xrds_msg *msg);

/* --------------------------------------------------------------- send.c */

int xrds_ib_send_init(struct xrds_ib_ep *ep);
int xrds_ib_send_hello(struct xrds_ib_ep *ep);
void xrds_ib_send_open(struct xrds_ib_ep *ep,
		       const struct xrds_wire_hello *hello);
bool xrds_ib_send_credits(struct xrds_ib_ep *ep, u32 credits);
void xrds_ib_send_update(struct xrds_ib_ep *ep);
void xrds_ib_send_update_low(struct xrds_ib_ep *ep);
int xrds_ib_send_msg(struct xrds_conn *conn, struct xrds_msg *msg);
int xrds_ib_send_ctl(struct xrds_conn *conn, u8 type, const void *data,
		     u32 len);
int xrds_ib_send_flushed(struct xrds_conn *conn);

#endif /* _XRDS_IB_TX_H */
