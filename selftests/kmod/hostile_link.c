// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hostile peer's connections.
 *
 * A link comes up like any connection of RDS, begins like a well-behaved peer,
 * and then sends packets of which each is wrong. Most are harmless, so that one
 * connection carries many; the last one is fatal: then the other end must hang
 * up. The link waits for that.
 *
 * The other end must find the fatal error if its device has taken the packet, so
 * the error is counted when the SEND has completed. It is not counted where the
 * other end may find another error, or none, and the link is "unsure":
 * - The other end has dialled the connection. It may not know yet which version
 *   was agreed on, or it may give up.
 * - The link sends more than it was granted. The other end may be about to grant
 *   more.
 * - The other end's device finds the error, and packets are behind it.
 * - The SEND has not completed.
 *
 * Everything waits with a bound. A link belongs to one task, or work item;
 * handlers of the connection manager and completions only note what has come.
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include "hostile.h"

enum {
	MAX_HARMLESS	= 60,
	MAX_BEHIND	= 6,
	/* An attempt is refused while the peer dials itself, for two seconds if
	 * nobody answers it, and while it still takes the last one apart: so
	 * many in a row, and before the next one waits AGAIN_MS.
	 */
	MAX_REFUSED	= 20,
	AGAIN_MS	= 200,
	OVERRUN		= 400,
	LINK_NUMBERS	= 1 << 20,	/* more than one link uses */
	PATIENCE_SECONDS = 3,	/* for a credit, or a buffer */
	GRANT_HZ	= 4,	/* after this part of a second: another error */
	ACK_TIMEOUT	= 20,	/* 4.3 s: the other node may stand still */
};

/* --------------------------------------------------------------- events */

/* The size of fragments that the other end names */
static void note_reply(struct hostile_link *link,
		       const struct rdma_conn_param *param)
{
	bool v6 = link->id->route.addr.dst_addr.ss_family == AF_INET6;
	struct xrds_wire_priv priv;

	if (!xrds_wire_priv_decode(&priv, param->private_data,
				   param->private_data_len, v6))
		link->payload = priv.payload;
}

int hostile_link_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct hostile_link *link = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		WRITE_ONCE(link->event, event->event);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		note_reply(link, &event->param.conn);
		WRITE_ONCE(link->event, event->event);
		break;
	case RDMA_CM_EVENT_REJECTED:
		hostile_count(HOSTILE_C_REJECTED);
		if (xrds_wire_reject_decode(event->param.conn.private_data,
					    event->param.conn.private_data_len) ==
		    XRDS_REJECT_VERSION)
			hostile_count(HOSTILE_C_NO_VERSION);
		fallthrough;
	default:
		link->end = event->event;
		WRITE_ONCE(link->down, true);
		break;
	}
	wake_up_all(&link->wait);
	return 0;
}

bool hostile_link_wait(struct hostile_link *link,
		       enum rdma_cm_event_type event)
{
	wait_event_timeout(link->wait,
			   READ_ONCE(link->event) == event ||
			   READ_ONCE(link->down) || hostile_over(),
			   HOSTILE_WAIT_SECONDS * HZ);
	return READ_ONCE(link->event) == event && !READ_ONCE(link->down);
}

/* The peer may find one error, of any name. */
void hostile_link_unsure(struct hostile_link *link)
{
	if (!xchg(&link->unsure, true))
		hostile_count(HOSTILE_C_UNSURE);
}

static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct hostile_buf *buf = container_of(wc->wr_cqe, struct hostile_buf,
					       cqe);
	struct hostile_link *link = cq->cq_context;

	if (wc->status != IB_WC_SUCCESS) {
		if (!READ_ONCE(link->down))
			link->status = wc->status;
		WRITE_ONCE(link->down, true);
	} else {
		if (buf->count < HOSTILE_NR_COUNTERS)
			hostile_count(buf->count);
		if (buf->expect) {
			WRITE_ONCE(link->found, true);
			if (!READ_ONCE(link->unsure))
				hostile_expect(buf->expect);
		}
	}
	WRITE_ONCE(buf->busy, false);
	wake_up_all(&link->wait);
}

static int post_recv(struct hostile_link *link, struct hostile_buf *buf)
{
	struct ib_sge sge = {
		.addr	= buf->dma,
		.length	= HOSTILE_BUF_BYTES,
		.lkey	= link->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe	 = &buf->cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	return ib_post_recv(link->id->qp, &wr, NULL);
}

/* Only credits and numbers are looked at. */
static void recv_xrds(struct hostile_link *link, void *data, u32 bytes)
{
	struct xrds_wire_hello hello;
	struct xrds_wire_msg wm;

	if (xrds_wire_hdr_decode(&wm, data, bytes, XRDS_VER_XRDS))
		return;
	atomic_add(wm.credit, &link->credits);
	if (wm.seq && !link->first)
		link->first = wm.seq;
	if (wm.seq)
		WRITE_ONCE(link->got, wm.seq);
	if (wm.kind == XRDS_KIND_CTL && wm.dport == XRDS_CTL_HELLO &&
	    !xrds_wire_hello_decode(&hello, data + XRDS_WIRE_HDR_BYTES,
				    wm.len)) {
		atomic_add(hello.credits, &link->credits);
		WRITE_ONCE(link->node, hello.node);
	}
	wake_up_all(&link->wait);
}

/* Only acknowledgments are looked at, and answers to heartbeats. */
static void recv_legacy(struct hostile_link *link, const struct xrds_hdr *hdr,
			u32 bytes)
{
	if (link->uek && !hostile_uek_recv(link, hdr, bytes))
		return;
	if (hdr->seq)
		WRITE_ONCE(link->got, be64_to_cpu(hdr->seq));
	WRITE_ONCE(link->acked, be64_to_cpu(hdr->ack));
	if (!hdr->sport && !hdr->dport && hdr->flags & XRDS_F_HB_PONG) {
		hostile_count(HOSTILE_C_BEATS);
		atomic_inc(&link->beats);
	} else if (!hdr->sport && !hdr->dport && hdr->flags & XRDS_F_HB_PING) {
		hostile_count(HOSTILE_C_PINGS);
		atomic_inc(&link->pings);
	}
	wake_up_all(&link->wait);
}

/* The same of a SEND without a header */
static void recv_short(struct hostile_link *link, u32 imm)
{
	atomic_add(imm >> 10 & XRDS_WIRE_SHORT_CREDIT, &link->credits);
	WRITE_ONCE(link->got, link->got + 1);
	wake_up_all(&link->wait);
}

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct hostile_buf *buf = container_of(wc->wr_cqe, struct hostile_buf,
					       cqe);
	struct hostile_link *link = cq->cq_context;

	if (wc->status != IB_WC_SUCCESS) {
		if (!READ_ONCE(link->down))
			link->status = wc->status;
		WRITE_ONCE(link->down, true);
		wake_up_all(&link->wait);
		return;
	}
	if (link->gen.ver != XRDS_VER_XRDS)
		recv_legacy(link, buf->data, wc->byte_len);
	else if (wc->wc_flags & IB_WC_WITH_IMM)
		recv_short(link, be32_to_cpu(wc->ex.imm_data));
	else
		recv_xrds(link, buf->data, wc->byte_len);
	post_recv(link, buf);
}

/* ---------------------------------------------------------------- setup */

static atomic64_t last_number;

struct hostile_link *hostile_link_alloc(u32 seed)
{
	struct hostile_link *link = kvzalloc(sizeof(*link), GFP_KERNEL);

	if (!link)
		return NULL;
	init_waitqueue_head(&link->wait);
	link->event = RDMA_CM_EVENT_ADDR_CHANGE;
	link->end = RDMA_CM_EVENT_ESTABLISHED;
	prandom_seed_state(&link->gen.rnd, seed);
	/* the peer may remember the numbers of those before */
	link->gen.seq = atomic64_add_return(LINK_NUMBERS, &last_number);
	link->gen.node = hostile_gen_node();
	return link;
}

static int map_buf(struct hostile_link *link, struct hostile_buf *buf,
		   bool send)
{
	buf->cqe.done = send ? send_done : recv_done;
	buf->data = kzalloc(HOSTILE_BUF_BYTES, GFP_KERNEL);
	if (!buf->data)
		return -ENOMEM;
	buf->dma = ib_dma_map_single(link->id->device, buf->data,
				     HOSTILE_BUF_BYTES, DMA_BIDIRECTIONAL);
	if (!ib_dma_mapping_error(link->id->device, buf->dma))
		return 0;
	kfree(buf->data);
	buf->data = NULL;
	return -ENOMEM;
}

static void unmap_buf(struct hostile_link *link, struct hostile_buf *buf)
{
	if (!buf->data)
		return;
	ib_dma_unmap_single(link->id->device, buf->dma, HOSTILE_BUF_BYTES,
			    DMA_BIDIRECTIONAL);
	kfree(buf->data);
}

static int setup_bufs(struct hostile_link *link)
{
	int i, ret = 0;

	for (i = 0; i < HOSTILE_NR_SENDS && !ret; i++)
		ret = map_buf(link, &link->send[i], true);
	for (i = 0; i < HOSTILE_NR_RECVS && !ret; i++) {
		ret = map_buf(link, &link->recv[i], false);
		if (!ret)
			ret = post_recv(link, &link->recv[i]);
	}
	return ret;
}

/* A queue pair, and buffers for SENDs of the other end. hostile_link_free()
 * undoes it, also after a failure.
 */
int hostile_link_setup(struct hostile_link *link)
{
	struct ib_qp_init_attr attr = {
		.sq_sig_type	= IB_SIGNAL_ALL_WR,
		.qp_type	= IB_QPT_RC,
		.cap.max_send_wr  = HOSTILE_NR_SENDS + 1,
		.cap.max_recv_wr  = HOSTILE_NR_RECVS + 1,
		.cap.max_send_sge = HOSTILE_NR_SGES,
		.cap.max_recv_sge = 1,
	};
	struct ib_device *dev = link->id->device;
	int ret;

	if (!dev)
		return -ENODEV;
	link->pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(link->pd)) {
		ret = PTR_ERR(link->pd);
		link->pd = NULL;
		return ret;
	}
	link->cq = ib_alloc_cq_any(dev, link, HOSTILE_NR_SENDS +
				   HOSTILE_NR_RECVS + 2, IB_POLL_WORKQUEUE);
	if (IS_ERR(link->cq)) {
		ret = PTR_ERR(link->cq);
		link->cq = NULL;
		return ret;
	}
	attr.send_cq = link->cq;
	attr.recv_cq = link->cq;
	ret = rdma_create_qp(link->id, link->pd, &attr);
	if (!ret)
		ret = rdma_set_ack_timeout(link->id, ACK_TIMEOUT);
	return ret ?: setup_bufs(link);
}

void hostile_link_free(struct hostile_link *link)
{
	int i;

	if (link->id && link->id->qp) {
		rdma_disconnect(link->id);
		ib_drain_qp(link->id->qp);
		rdma_destroy_qp(link->id);
	}
	if (link->cq)
		ib_free_cq(link->cq);
	for (i = 0; i < HOSTILE_NR_SENDS; i++)
		unmap_buf(link, &link->send[i]);
	for (i = 0; i < HOSTILE_NR_RECVS; i++)
		unmap_buf(link, &link->recv[i]);
	if (link->pd)
		ib_dealloc_pd(link->pd);
	if (link->id)
		rdma_destroy_id(link->id);
	kvfree(link);
}

/* Address and route */
int hostile_link_resolve(struct hostile_link *link,
			 const struct hostile_order *order)
{
	struct sockaddr_storage to = order->peer, from = order->local;
	struct rdma_cm_id *id;
	int ret;

	id = rdma_create_id(&init_net, hostile_link_event, link, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	link->id = id;
	ret = rdma_resolve_addr(id, (struct sockaddr *)&from,
				(struct sockaddr *)&to, 5000);
	if (ret)
		return ret;
	if (!hostile_link_wait(link, RDMA_CM_EVENT_ADDR_RESOLVED))
		return -EHOSTUNREACH;
	ret = rdma_resolve_route(id, 5000);
	if (ret)
		return ret;
	return hostile_link_wait(link, RDMA_CM_EVENT_ROUTE_RESOLVED) ?
	       0 : -EHOSTUNREACH;
}

/* -------------------------------------------------------------- sending */

static struct hostile_buf *free_buf(struct hostile_link *link)
{
	int i;

	for (i = 0; i < HOSTILE_NR_SENDS; i++)
		if (!READ_ONCE(link->send[i].busy))
			return &link->send[i];
	return NULL;
}

static bool may_send(struct hostile_link *link, bool credit)
{
	if (READ_ONCE(link->down) || hostile_over())
		return true;
	return free_buf(link) && (!credit || atomic_read(&link->credits) > 0);
}

/* A buffer, and a credit if wanted; NULL when the link is down. */
struct hostile_buf *hostile_link_buf(struct hostile_link *link, bool credit)
{
	struct hostile_buf *buf;

	credit = credit && link->gen.ver == XRDS_VER_XRDS;
	/* a peer that has got our last message grants nothing more */
	if (credit && link->gen.bye && atomic_read(&link->credits) <= 0)
		return NULL;
	if (!wait_event_timeout(link->wait, may_send(link, credit),
				(credit ? PATIENCE_SECONDS :
				 HOSTILE_WAIT_SECONDS) * HZ)) {
		hostile_count(HOSTILE_C_STARVED);
		hostile_link_unsure(link);
		WRITE_ONCE(link->down, true);
		return NULL;
	}
	if (READ_ONCE(link->down) || hostile_over())
		return NULL;
	if (credit)
		atomic_dec(&link->credits);
	buf = free_buf(link);
	buf->count = HOSTILE_NR_COUNTERS;
	buf->expect = XRDS_WIRE_OK;
	return buf;
}

static int post_wr(struct hostile_link *link, struct hostile_buf *buf,
		   struct ib_send_wr *wr)
{
	int ret;

	wr->wr_cqe = &buf->cqe;
	buf->busy = true;
	ret = ib_post_send(link->id->qp, wr, NULL);
	if (ret) {
		buf->busy = false;
		WRITE_ONCE(link->down, true);
	}
	return ret;
}

/* One SEND, also of more than the other end has room for */
int hostile_link_send(struct hostile_link *link, struct hostile_buf *buf,
		      u32 bytes)
{
	struct ib_sge sge[HOSTILE_NR_SGES];
	struct ib_send_wr wr = {
		.opcode		= IB_WR_SEND,
		.sg_list	= sge,
		.send_flags	= IB_SEND_SOLICITED,
	};

	if (link->gen.with_imm) {
		wr.opcode = IB_WR_SEND_WITH_IMM;
		wr.ex.imm_data = cpu_to_be32(link->gen.imm);
		link->gen.with_imm = false;
	} else {
		hostile_gen_note(&link->gen, buf->data, bytes);
	}
	do {
		sge[wr.num_sge].addr = buf->dma;
		sge[wr.num_sge].length = min_t(u32, bytes, HOSTILE_BUF_BYTES);
		sge[wr.num_sge].lkey = link->pd->local_dma_lkey;
		bytes -= sge[wr.num_sge++].length;
	} while (bytes);
	return post_wr(link, buf, &wr);
}

bool hostile_link_hello(struct hostile_link *link)
{
	struct hostile_buf *buf = hostile_link_buf(link, false);

	if (!buf)
		return false;
	link->gen.hello = true;
	return !hostile_link_send(link, buf, hostile_gen_hello(&link->gen, buf->data));
}

/* The peer must find this error in the buffer that is sent next. */
static void expect(struct hostile_link *link, struct hostile_buf *buf,
		   enum xrds_wire_err err)
{
	buf->expect = err;
	link->fatal = buf;
}

static bool send_wrong(struct hostile_link *link, bool fatal, bool behind,
		       enum xrds_wire_err *err)
{
	struct hostile_buf *buf = hostile_link_buf(link, !behind);
	u32 bytes;

	if (!buf)
		return false;
	bytes = hostile_gen_wrong(&link->gen, buf->data, fatal, err);
	if (!bytes)
		return false;
	hostile_count(HOSTILE_C_WRONG);
	if (behind)
		hostile_count(HOSTILE_C_BEHIND);
	else if (fatal)
		expect(link, buf, *err);
	else
		buf->count = HOSTILE_C_HARMLESS;
	return !hostile_link_send(link, buf, bytes);
}

/* Wait until the peer sends messages. From then on it looks at acknowledgments,
 * too.
 */
static void ping(struct hostile_link *link)
{
	struct hostile_buf *buf = hostile_link_buf(link, true);

	if (!buf || hostile_link_send(link, buf,
				      hostile_gen_ping(&link->gen, buf->data)))
		return;
	wait_event_timeout(link->wait, READ_ONCE(link->got) ||
			   READ_ONCE(link->down) || hostile_over(),
			   PATIENCE_SECONDS * HZ);
	link->gen.open = READ_ONCE(link->got);
}

/* ---------------------------------------------------------------- fatal */

/* Memory that was not offered, in all the ways there are */
static bool send_rdma(struct hostile_link *link)
{
	static const enum ib_wr_opcode opcodes[] = {
		IB_WR_RDMA_READ, IB_WR_RDMA_WRITE, IB_WR_ATOMIC_FETCH_AND_ADD,
		IB_WR_SEND_WITH_INV, IB_WR_RDMA_WRITE_WITH_IMM,
	};
	struct hostile_gen *gen = &link->gen;
	struct hostile_buf *buf = hostile_link_buf(link, true);
	struct ib_atomic_wr atomic = {};
	struct ib_rdma_wr rdma = {};
	struct ib_send_wr *wr;
	struct ib_sge sge;

	if (!buf)
		return false;
	hostile_count(HOSTILE_C_WRONG);
	hostile_count(HOSTILE_C_RDMA);
	rdma.wr.opcode = opcodes[hostile_random(gen, ARRAY_SIZE(opcodes))];
	hostile_fill(gen, &rdma.rkey, sizeof(rdma.rkey));
	hostile_fill(gen, &rdma.remote_addr, sizeof(rdma.remote_addr));
	sge.addr = buf->dma;
	sge.length = 1 + hostile_random(gen, 4096);
	sge.lkey = link->pd->local_dma_lkey;
	wr = &rdma.wr;
	wr->sg_list = &sge;
	/* of no bytes needs no key, and takes a buffer */
	wr->num_sge = wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM ? 0 : 1;
	if (wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM)
		expect(link, buf, XRDS_WIRE_OPCODE);
	if (wr->opcode == IB_WR_SEND_WITH_INV)
		wr->ex.invalidate_rkey = rdma.rkey;
	if (wr->opcode != IB_WR_ATOMIC_FETCH_AND_ADD)
		return !post_wr(link, buf, wr);
	sge.length = sizeof(u64);
	atomic.wr = *wr;
	atomic.remote_addr = rdma.remote_addr & ~7ULL;
	atomic.rkey = rdma.rkey;
	return !post_wr(link, buf, &atomic.wr);
}

static bool send_oversize(struct hostile_link *link)
{
	struct hostile_buf *buf = hostile_link_buf(link, true);

	if (!buf)
		return false;
	hostile_count(HOSTILE_C_WRONG);
	hostile_gen_data(&link->gen, buf->data, 1 << 20);
	return !hostile_link_send(link, buf, HOSTILE_OVERSIZE_BYTES);
}

/* The first packet of a message whose second one cannot be read: it takes a
 * buffer, and nothing else ever comes.
 */
static bool send_torn(struct hostile_link *link)
{
	struct hostile_buf *buf = hostile_link_buf(link, false);
	struct ib_sge sge[2] = {};
	struct ib_send_wr wr = {
		.opcode		= IB_WR_SEND,
		.sg_list	= sge,
		.num_sge	= ARRAY_SIZE(sge),
	};

	if (!buf)
		return false;
	hostile_count(HOSTILE_C_WRONG);
	sge[0].addr = buf->dma;
	sge[0].length = 4096;
	sge[0].lkey = link->pd->local_dma_lkey;
	sge[1].addr = buf->dma;
	sge[1].length = 4096;
	return !post_wr(link, buf, &wr);
}

/* Far more than was granted */
static bool send_overrun(struct hostile_link *link)
{
	struct xrds_wire_msg wm = {};
	struct hostile_buf *buf;
	u32 i;

	hostile_link_unsure(link);
	for (i = 0; i < OVERRUN; i++) {
		buf = hostile_link_buf(link, false);
		if (!buf)
			break;
		hostile_count(HOSTILE_C_WRONG);
		hostile_count(HOSTILE_C_BEHIND);
		xrds_wire_hdr_encode(buf->data, &wm);
		if (hostile_link_send(link, buf, sizeof(struct xrds_hdr)))
			break;
	}
	return i;
}

static bool hung_up(struct hostile_link *link, unsigned long timeout)
{
	return wait_event_timeout(link->wait, READ_ONCE(link->down) ||
				  hostile_over(), timeout);
}

static bool send_fatal(struct hostile_link *link)
{
	bool xrds = link->gen.ver == XRDS_VER_XRDS;
	enum xrds_wire_err err;

	switch (hostile_random(&link->gen, 16)) {
	case 0:
		return send_rdma(link);
	case 1:
		return send_oversize(link);
	case 2:
		if (xrds && link->gen.hello && send_overrun(link) &&
		    hung_up(link, HZ / GRANT_HZ))
			return true;
		fallthrough;
	default:
		return send_wrong(link, true, false, &err);
	}
}

/* The completion of the SEND may come later than the disconnection. */
static void conclude(struct hostile_link *link)
{
	if (hung_up(link, HOSTILE_WAIT_SECONDS * HZ))
		hostile_count(HOSTILE_C_CLOSED);
	else
		hostile_count(HOSTILE_C_SURVIVED);
	if (!link->fatal)
		return;
	wait_event_timeout(link->wait, READ_ONCE(link->found) ||
			   !READ_ONCE(link->fatal->busy),
			   PATIENCE_SECONDS * HZ);
	if (!READ_ONCE(link->found))
		hostile_link_unsure(link);
}

/* More wrong packets, which the peer must not look at. A worker of the peer finds
 * the error of a congestion update, and these could be looked at before; so could
 * those behind an error that the peer's device finds.
 */
static void send_behind(struct hostile_link *link)
{
	u32 n = hostile_random(&link->gen, MAX_BEHIND);
	enum xrds_wire_err err;

	if (link->fatal && link->fatal->expect == XRDS_WIRE_CONG)
		return;
	if (!link->fatal && hostile_random(&link->gen, 4))
		return;
	if (!link->fatal)
		hostile_link_unsure(link);
	while (n-- && send_wrong(link, hostile_random(&link->gen, 2), true,
				 &err))
		;
}

/* The peer must not hang up before the fatal packet, unless a BYE was sent, or the node
 * is another one.
 */
static void check_whole(const struct hostile_link *link)
{
	if (!READ_ONCE(link->down) || link->unsure || link->gen.bye ||
	    link->gen.node != hostile_gen_node() || hostile_over())
		return;
	hostile_count(HOSTILE_C_BROKEN);
	pr_info("%pISc: ended early: version %u, %s, %s\n",
		&link->id->route.addr.src_addr, link->gen.ver,
		rdma_event_msg(link->end), ib_wc_status_msg(link->status));
}

/* Misbehave on a link that is up, for about so many packets. Returns how many
 * it were.
 */
u32 hostile_link_attack(struct hostile_link *link, u32 most)
{
	u32 n = min(hostile_random(&link->gen, MAX_HARMLESS), most), sent = 0;
	bool xrds = link->gen.ver == XRDS_VER_XRDS;
	enum xrds_wire_err err;

	hostile_count(HOSTILE_C_LINKS);
	/* one in eight breaks the silence in another way than by a hello */
	if (xrds && hostile_random(&link->gen, 8) && !hostile_link_hello(link))
		return 0;
	if (xrds && !link->gen.hello)
		n = 0;
	else if (hostile_random(&link->gen, 2))
		ping(link);
	while (sent < n && send_wrong(link, false, false, &err))
		sent++;
	check_whole(link);
	/* one in eight just goes */
	if (!hostile_random(&link->gen, 8) && sent)
		return sent;
	if (!send_fatal(link))
		return sent;
	send_behind(link);
	conclude(link);
	return sent + 1;
}

/* Have the peer open the connection, and close it. */
void hostile_link_spoil(struct hostile_link *link)
{
	enum xrds_wire_err err;

	hostile_count(HOSTILE_C_LINKS);
	if (!hostile_link_hello(link))
		return;
	ping(link);
	if (send_wrong(link, true, false, &err))
		conclude(link);
}

/* -------------------------------------------------------------- dialling */

static int connect_link(struct hostile_link *link,
			const struct hostile_order *order)
{
	u8 data[XRDS_WIRE_PRIV_V6_BYTES];
	struct rdma_conn_param param = {
		.private_data	= data,
		.retry_count	= 6,
		.rnr_retry_count = 7,
		.responder_resources = 4,
		.initiator_depth = 4,
	};
	int ret;

	ret = hostile_link_resolve(link, order) ?: hostile_link_setup(link);
	if (ret)
		return ret;
	param.private_data_len =
		hostile_gen_priv(&link->gen, data, sizeof(data), &order->local,
				 &order->peer, order->tos, false);
	ret = rdma_connect(link->id, &param);
	if (ret)
		return ret;
	return hostile_link_wait(link, RDMA_CM_EVENT_ESTABLISHED) ?
	       0 : -ECONNREFUSED;
}

static struct hostile_link *dial(const struct hostile_order *order, u32 seed,
				 int ver)
{
	struct hostile_link *link = hostile_link_alloc(seed);

	if (!link)
		return NULL;
	link->gen.ver = ver;
	if (!connect_link(link, order))
		return link;
	hostile_count(HOSTILE_C_NO_LINK);
	hostile_link_free(link);
	return NULL;
}

/* Connections with wrong packets, one after the other. @ver 0: legacy ones */
int hostile_dial(const struct hostile_order *order, int ver)
{
	static const int legacy[] = {
		XRDS_VER_3_1, XRDS_VER_4_0, XRDS_VER_4_1,
	};
	struct hostile_order next = *order;
	u32 sent = 0, failed = 0, n;
	struct hostile_link *link;

	for (n = 0; sent < order->count && failed < MAX_REFUSED; n++) {
		if (hostile_over())
			return -EINTR;
		/* 3.1 has no type of service but 0 */
		next.tos = order->tos + n % 4;
		link = dial(&next, order->seed + n,
			    ver ?: legacy[n % ARRAY_SIZE(legacy)]);
		if (!link) {
			failed++;
			msleep_interruptible(AGAIN_MS);
			continue;
		}
		failed = 0;
		sent += hostile_link_attack(link, order->count - sent);
		hostile_link_free(link);
	}
	return sent < order->count ? -ECONNREFUSED : 0;
}

struct hostile_link *hostile_link_dial(const struct hostile_order *order,
				       int ver)
{
	struct hostile_link *link = NULL;
	u32 n;

	for (n = 0; n < MAX_REFUSED && !hostile_over(); n++) {
		link = dial(order, order->seed + n, ver);
		if (link)
			break;
		msleep_interruptible(AGAIN_MS);
	}
	return link;
}

/* As a node with Oracle's kernel dials: it names a size of fragments. */
struct hostile_link *hostile_link_dial_uek(const struct hostile_order *order,
					   struct hostile_uek *uek)
{
	struct hostile_link *link = hostile_link_alloc(order->seed);

	if (!link)
		return NULL;
	link->gen.ver = XRDS_VER_4_1;
	link->gen.max_payload = 16384;
	link->uek = uek;
	if (!connect_link(link, order))
		return link;
	hostile_count(HOSTILE_C_NO_LINK);
	hostile_link_free(link);
	return NULL;
}

static bool all_taken(struct hostile_link *link)
{
	int i;

	for (i = 0; i < HOSTILE_NR_SENDS; i++)
		if (READ_ONCE(link->send[i].busy))
			return false;
	return true;
}

/* Connections that end with the first packet: the manager of the other end may
 * not have heard yet that they are established.
 */
int hostile_brief(const struct hostile_order *order)
{
	struct hostile_order next = *order;
	struct hostile_link *link;
	enum xrds_wire_err err;
	u32 i;

	for (i = 0; i < order->count && !hostile_over(); i++) {
		next.tos = order->tos + i % 4;
		link = dial(&next, order->seed + i,
			    i % 2 ? XRDS_VER_XRDS : XRDS_VER_4_1);
		if (!link)
			continue;
		hostile_count(HOSTILE_C_LINKS);
		if (link->gen.ver == XRDS_VER_XRDS)
			hostile_link_hello(link);
		else
			send_wrong(link, false, false, &err);
		wait_event_timeout(link->wait, READ_ONCE(link->down) ||
				   all_taken(link), HZ);
		hostile_link_free(link);
	}
	return hostile_over() ? -EINTR : 0;
}

/* Connections whose first message never ends */
int hostile_torn(const struct hostile_order *order)
{
	struct hostile_link *link;
	u32 i;

	for (i = 0; i < order->count && !hostile_over(); i++) {
		link = hostile_link_dial(order, XRDS_VER_XRDS);
		if (!link)
			continue;
		hostile_count(HOSTILE_C_LINKS);
		if (send_torn(link))
			hung_up(link, HZ);
		hostile_link_free(link);
	}
	return hostile_over() ? -EINTR : 0;
}

static bool torn_off(struct hostile_link *link)
{
	return READ_ONCE(link->down) || all_taken(link);
}

/* As many of these at once, which all share the peer's buffers */
int hostile_gang(const struct hostile_order *order)
{
	struct hostile_order next = *order;
	struct hostile_link **links;
	u32 i, n = min(order->count, 256U);

	links = kcalloc(n, sizeof(*links), GFP_KERNEL);
	if (!links)
		return -ENOMEM;
	for (i = 0; i < n && !hostile_over(); i++) {
		next.tos = i;
		links[i] = hostile_link_dial(&next, XRDS_VER_XRDS);
		if (!links[i])
			continue;
		links[i]->gen.node = HOSTILE_NODE;
		hostile_count(HOSTILE_C_LINKS);
	}
	for (i = 0; i < n; i++)
		if (links[i] && send_torn(links[i]))
			wait_event_timeout(links[i]->wait, torn_off(links[i]),
					   HZ);
	for (i = 0; i < n; i++)
		if (links[i])
			hostile_link_free(links[i]);
	kfree(links);
	return hostile_over() ? -EINTR : 0;
}

static u32 make_flood(struct hostile_link *link, enum hostile_what what,
		      void *buf)
{
	switch (what) {
	case HOSTILE_MAPS:
		return hostile_gen_map(&link->gen, buf);
	case HOSTILE_LISTS:
		return hostile_gen_list(&link->gen, buf);
	default:
		return hostile_gen_data(&link->gen, buf, 16000);
	}
}

/* Well-formed packets without end: data to a port, whether or not its owner
 * reads, or congestion maps or lists.
 */
int hostile_flood(const struct hostile_order *order, enum hostile_what what)
{
	struct hostile_link *link = hostile_link_dial(order, XRDS_VER_XRDS);
	struct hostile_buf *buf;
	u32 i, bytes;

	if (!link)
		return -ECONNREFUSED;
	link->gen.port = order->tos ? 0 : 5000;
	if (!hostile_link_hello(link))
		goto out;
	for (i = 0; i < order->count; i++) {
		buf = hostile_link_buf(link, true);
		if (!buf)
			break;
		bytes = make_flood(link, what, buf->data);
		buf->count = HOSTILE_C_HARMLESS;
		if (hostile_link_send(link, buf, bytes))
			break;
	}
	hung_up(link, HZ);
out:
	hostile_link_free(link);
	return 0;
}

/* A good message that has the device invalidate a key: SEED */
int hostile_invalidate(const struct hostile_order *order)
{
	struct hostile_link *link = hostile_link_dial(order, XRDS_VER_XRDS);
	struct ib_send_wr wr = {
		.opcode		= IB_WR_SEND_WITH_INV,
		.num_sge	= 1,
		.ex.invalidate_rkey = order->seed,
	};
	struct hostile_buf *buf = NULL;
	struct ib_sge sge;

	if (!link)
		return -ECONNREFUSED;
	hostile_count(HOSTILE_C_LINKS);
	if (hostile_link_hello(link))
		buf = hostile_link_buf(link, true);
	if (buf) {
		hostile_count(HOSTILE_C_WRONG);
		sge.addr = buf->dma;
		sge.length = hostile_gen_ping(&link->gen, buf->data);
		sge.lkey = link->pd->local_dma_lkey;
		wr.sg_list = &sge;
		expect(link, buf, XRDS_WIRE_OPCODE);
		if (!post_wr(link, buf, &wr))
			conclude(link);
	}
	hostile_link_free(link);
	return buf ? 0 : -ENOTCONN;
}
