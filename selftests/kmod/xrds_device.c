// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests: RDMA devices that fail as adapters do.
 *
 * This stands between XRDS and a device of soft-RoCE, in the device's table of
 * operations. It is loaded before XRDS, so that it also sees the first things
 * that are done to a device. /proc/xrds_device takes orders, one a write:
 *
 *   latch QPN		from the next completion of that queue pair on, its
 *			completion queue has none any more, as after an overflow
 *   latch_all 0|1	the same for all connected queue pairs
 *   fail VERB COUNT	so many calls of that operation fail; "post_op" is the
 *			posting of an RDMA op, "post_reg" that of a registration
 *   lose_inv 0|1	a request that makes a key invalid is taken, and lost
 *   no_atomics 0|1	atomics are advertised, and refused when they are posted
 *   nak_empty 0|1	the peer refuses a write without payload
 *   hold_alloc 0|1	the memory of a new registration waits until this is 0
 *   hold_dereg 0|1	so does the end of a registration
 *   shift_iova BYTES	the memory of regions is elsewhere in its first page for the
 *			device, as behind an IOMMU with smaller pages
 *   limit NAME VALUE	a limit of devices that are added from now on
 *   draw PAGE COUNT	so many random first pages of regions are that page
 *   raise srq|device	the event that says that it has failed
 *   raise qp QPN	the same, at the next completion of that queue pair
 *
 * Devices number their regions alike: from the same number if they are new, and
 * without the random part that soft-RoCE adds.
 *
 * It shows counts:
 *
 *   latched		completion queues
 *   noted, changed	pieces of memory that were posted to the queue pair of the
 *			order "latch" since that; those that had another
 *			content at the end of the queue pair
 *   failed, lost_invs, atomics, raised, drawn, held	what the orders say
 *   short_cqs		completions that were looked at while their queue had
 *			fewer entries than there were requests that could
 *			complete there: buffers of the shared receive queue that
 *			was made last, and a full send queue
 */
#include <linux/atomic.h>
#include <linux/jhash.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

enum {
	ORDER_BYTES	= 64,
	NOTES		= 256,
};

enum verb {
	DESTROY_QP, DESTROY_SRQ, DEREG_MR, CREATE_SRQ, ALLOC_MR, MAP_MR_SG,
	CREATE_CQ, RESIZE_CQ, POST_OP, POST_REG, NR_VERBS
};

static const char * const verb_names[NR_VERBS] = {
	[DESTROY_QP]	= "destroy_qp",
	[DESTROY_SRQ]	= "destroy_srq",
	[DEREG_MR]	= "dereg_mr",
	[CREATE_SRQ]	= "create_srq",
	[ALLOC_MR]	= "alloc_mr",
	[MAP_MR_SG]	= "map_mr_sg",
	[CREATE_CQ]	= "create_cq",
	[RESIZE_CQ]	= "resize_cq",
	[POST_OP]	= "post_op",
	[POST_REG]	= "post_reg",
};

/* All of them have the size of an int. */
static const struct {
	const char *name;
	size_t place;
} limits[] = {
#define LIMIT(name) { #name, offsetof(struct ib_device_attr, name) }
	LIMIT(max_send_sge),
	LIMIT(max_sge_rd),
	LIMIT(max_fast_reg_page_list_len),
	LIMIT(max_qp_wr),
	LIMIT(max_srq),
#undef LIMIT
};

/* The driver's own operations, the same for all of its devices */
static typeof_member(struct ib_device, ops) real;

static atomic_t to_fail[NR_VERBS];
static int wanted[ARRAY_SIZE(limits)];	/* one more than that; 0: as it is */
static unsigned int latch_qpn, fatal_qpn;
static unsigned int page, shift_iova;
static bool latch_all, lose_inv, no_atomics, nak_empty, hold_alloc, hold_dereg;
static DECLARE_WAIT_QUEUE_HEAD(hold_wait);
static atomic_t held;
static u8 *payload;
static atomic_t latched, failed, lost_invs, atomics, raised, short_cqs;
static atomic_t to_draw, drawn;

/* Memory of the queue pair that is latched; its users post one after another. */
static struct {
	const void *data;
	u32 bytes;
	u32 hash;
} notes[NOTES];
static unsigned int nr_notes, nr_changed;

static DEFINE_XARRAY(latched_cqs);	/* by address */
static struct ib_srq *last_srq;
static struct ib_srq *kept_srq;		/* XRDS does not ask again */
static atomic_t posted;			/* buffers in it */
static unsigned int send_wrs;		/* of the queue pairs that use it */

static bool fails(enum verb verb)
{
	if (atomic_dec_if_positive(&to_fail[verb]) < 0)
		return false;
	atomic_inc(&failed);
	return true;
}

/* -------------------------------------------------------- completion queues */

static void latch(struct ib_cq *cq)
{
	if (!xa_insert_bh(&latched_cqs, (unsigned long)cq, cq, GFP_ATOMIC))
		atomic_inc(&latched);
}

static bool is_latched(struct ib_cq *cq)
{
	return xa_load(&latched_cqs, (unsigned long)cq);
}

static void look(struct ib_cq *cq, const struct ib_wc *wc)
{
	struct ib_event event = {
		.device		= cq->device,
		.element.qp	= wc->qp,
		.event		= IB_EVENT_QP_FATAL,
	};

	if (!wc->qp)
		return;
	if (wc->qp->qp_num == READ_ONCE(latch_qpn) ||
	    (READ_ONCE(latch_all) && wc->qp->qp_type == IB_QPT_RC))
		latch(cq);
	if (wc->qp->qp_num == READ_ONCE(fatal_qpn)) {
		WRITE_ONCE(fatal_qpn, 0);
		atomic_inc(&raised);
		wc->qp->event_handler(&event, wc->qp->qp_context);
	}
	if (!wc->qp->srq || wc->qp->srq != READ_ONCE(last_srq))
		return;
	if (atomic_read(&posted) + READ_ONCE(send_wrs) > cq->cqe)
		atomic_inc(&short_cqs);
	/* the opcode of one that has failed is not set */
	if (!wc->status && wc->opcode & IB_WC_RECV)
		atomic_dec(&posted);
}

static int failing_poll_cq(struct ib_cq *cq, int max, struct ib_wc *wc)
{
	int n, i;

	if (is_latched(cq))
		return 0;
	n = real.poll_cq(cq, max, wc);
	for (i = 0; i < n; i++)
		look(cq, &wc[i]);
	return is_latched(cq) ? 0 : n;
}

static int failing_create_cq(struct ib_cq *cq,
			     const struct ib_cq_init_attr *attr, void *data)
{
	return fails(CREATE_CQ) ? -ENOMEM : real.create_cq(cq, attr, data);
}

#if XRDS_HAVE_IB_RESIZE_CQ
static int failing_resize_cq(struct ib_cq *cq, int cqe, struct ib_udata *udata)
{
	return fails(RESIZE_CQ) ? -ENOMEM : real.resize_cq(cq, cqe, udata);
}
#endif

static int failing_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	xa_erase_bh(&latched_cqs, (unsigned long)cq);
	return real.destroy_cq(cq, udata);
}

/* --------------------------------------------------- queue pairs and queues */

static int failing_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr,
			     struct ib_udata *udata)
{
	if (attr->srq)
		WRITE_ONCE(send_wrs, attr->cap.max_send_wr);
	return real.create_qp(qp, attr, udata);
}

/* Soft-RoCE's are virtual ones, unless xrds_dma has made DMA addresses of them. */
static const void *memory_at(u64 addr)
{
	return addr < PAGE_OFFSET ? phys_to_virt(addr) :
				    (const void *)(uintptr_t)addr;
}

static void note(const struct ib_send_wr *wr)
{
	int i;

	for (; wr; wr = wr->next) {
		for (i = 0; i < wr->num_sge && nr_notes < NOTES; i++) {
			notes[nr_notes].data = memory_at(wr->sg_list[i].addr);
			notes[nr_notes].bytes = wr->sg_list[i].length;
			notes[nr_notes].hash = jhash(notes[nr_notes].data,
						     wr->sg_list[i].length, 0);
			nr_notes++;
		}
	}
}

static void compare_notes(void)
{
	unsigned int i;

	for (i = 0; i < nr_notes; i++)
		nr_changed += notes[i].hash !=
			      jhash(notes[i].data, notes[i].bytes, 0);
}

static int failing_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	if (qp->qp_type == IB_QPT_RC && fails(DESTROY_QP))
		return -EIO;
	if (qp->qp_num == latch_qpn)
		compare_notes();
	return real.destroy_qp(qp, udata);
}

static int failing_create_srq(struct ib_srq *srq, struct ib_srq_init_attr *attr,
			      struct ib_udata *udata)
{
	if (fails(CREATE_SRQ))
		return -EOPNOTSUPP;
	WRITE_ONCE(last_srq, srq);
	atomic_set(&posted, 0);
	return real.create_srq(srq, attr, udata);
}

static int failing_destroy_srq(struct ib_srq *srq, struct ib_udata *udata)
{
	cmpxchg(&last_srq, srq, NULL);
	if (fails(DESTROY_SRQ)) {
		kept_srq = srq;
		return -EIO;
	}
	return real.destroy_srq(srq, udata);
}

static int failing_post_srq_recv(struct ib_srq *srq,
				 const struct ib_recv_wr *wr,
				 const struct ib_recv_wr **bad)
{
	const struct ib_recv_wr *at;

	for (at = wr; at && srq == READ_ONCE(last_srq); at = at->next)
		atomic_inc(&posted);
	return real.post_srq_recv(srq, wr, bad);
}

static bool is_atomic(const struct ib_send_wr *wr)
{
	return wr->opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
	       wr->opcode == IB_WR_ATOMIC_FETCH_AND_ADD;
}

/* A write without payload is none. */
static bool is_op(const struct ib_send_wr *wr)
{
	return is_atomic(wr) || wr->opcode == IB_WR_RDMA_READ ||
	       (wr->opcode == IB_WR_RDMA_WRITE && wr->num_sge);
}

/* The specification has a peer look at no key if nothing is written. This writes a
 * byte with a key that nobody has.
 */
static int post_for_nak(struct ib_qp *qp, const struct ib_send_wr *wr,
			const struct ib_send_wr **bad)
{
	struct ib_rdma_wr copy = *rdma_wr(wr);
	const struct ib_send_wr *ignored;
	struct ib_sge sge = {
		.addr	= (uintptr_t)payload,
		.length	= 1,
		.lkey	= qp->pd->local_dma_lkey,
	};

	copy.wr.sg_list = &sge;
	copy.wr.num_sge = 1;
	*bad = wr;
	return real.post_send(qp, &copy.wr, &ignored);
}

/* Only a chain's first: XRDS posts an op's requests in front of the message. */
static int failing_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			     const struct ib_send_wr **bad)
{
	if (wr->opcode == IB_WR_LOCAL_INV && READ_ONCE(lose_inv)) {
		atomic_inc(&lost_invs);
		return 0;
	}
	if (is_atomic(wr) && READ_ONCE(no_atomics)) {
		atomic_inc(&atomics);
		*bad = wr;
		return -EOPNOTSUPP;
	}
	if ((is_op(wr) && fails(POST_OP)) ||
	    (wr->opcode == IB_WR_REG_MR && fails(POST_REG))) {
		*bad = wr;
		return -EINVAL;
	}
	if (wr->opcode == IB_WR_RDMA_WRITE && !wr->num_sge &&
	    READ_ONCE(nak_empty))
		return post_for_nak(qp, wr, bad);
	/* none of them completes: the first completion is lost already */
	if (qp->qp_num == READ_ONCE(latch_qpn))
		note(wr);
	return real.post_send(qp, wr, bad);
}

/* ------------------------------------------------------------------ regions */

static void wait_while(const bool *hold)
{
	if (!READ_ONCE(*hold))
		return;
	atomic_inc(&held);
	wait_event(hold_wait, !READ_ONCE(*hold));
}

static struct ib_mr *failing_alloc_mr(struct ib_pd *pd, enum ib_mr_type type,
				      u32 max)
{
	struct ib_mr *mr = fails(ALLOC_MR) ? ERR_PTR(-ENOMEM) :
					     real.alloc_mr(pd, type, max);

	wait_while(&hold_alloc);
	if (!IS_ERR(mr))
		ib_update_fast_reg_key(mr, 0);
	return mr;
}

static int failing_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	wait_while(&hold_dereg);
	return fails(DEREG_MR) ? -EIO : real.dereg_mr(mr, udata);
}

static int failing_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int n,
			     unsigned int *offset)
{
	int ret = fails(MAP_MR_SG) ? -EINVAL :
				     real.map_mr_sg(mr, sg, n, offset);

	mr->iova ^= READ_ONCE(shift_iova);
	return ret;
}

static u32 drawn_page(void)
{
	return READ_ONCE(page) << PAGE_SHIFT;
}

/* get_random_u32(), for one caller */
static int draw(struct kprobe *probe, struct pt_regs *regs)
{
	char caller[32];

	if (!atomic_read(&to_draw))
		return 0;
	scnprintf(caller, sizeof(caller), "%ps",
		  (void *)regs_get_kernel_stack_nth(regs, 0));
	if (!strstarts(caller, "xrds_ib_key_draw") ||
	    atomic_dec_if_positive(&to_draw) < 0)
		return 0;
	atomic_inc(&drawn);
	/* it has not begun, so this one returns to its caller */
	instruction_pointer_set(regs, (unsigned long)drawn_page);
	return 1;
}

/* With it the probe is not optimized, which would ignore where it goes on. */
static void unoptimized(struct kprobe *probe, struct pt_regs *regs,
			unsigned long flags)
{
}

static struct kprobe random = {
	.symbol_name	= "get_random_u32",
	.pre_handler	= draw,
	.post_handler	= unoptimized,
};

/* ------------------------------------------------------------------ devices */

static void set_limits(struct ib_device_attr *attrs)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(limits); i++)
		if (wanted[i])
			*(int *)((void *)attrs + limits[i].place) =
				wanted[i] - 1;
}

static int failing_add(struct ib_device *dev)
{
	if (dev->ops.driver_id != RDMA_DRIVER_RXE)
		return -EOPNOTSUPP;
	real = dev->ops;
	dev->ops.poll_cq = failing_poll_cq;
	/* since 6.11 the last argument has another type */
	dev->ops.create_cq = (void *)failing_create_cq;
#if XRDS_HAVE_IB_RESIZE_CQ
	dev->ops.resize_cq = failing_resize_cq;
#endif
	dev->ops.destroy_cq = failing_destroy_cq;
	dev->ops.create_qp = failing_create_qp;
	dev->ops.destroy_qp = failing_destroy_qp;
	dev->ops.create_srq = failing_create_srq;
	dev->ops.destroy_srq = failing_destroy_srq;
	dev->ops.post_srq_recv = failing_post_srq_recv;
	dev->ops.post_send = failing_post_send;
	dev->ops.alloc_mr = failing_alloc_mr;
	dev->ops.dereg_mr = failing_dereg_mr;
	dev->ops.map_mr_sg = failing_map_mr_sg;
	set_limits(&dev->attrs);
	return 0;
}

static void failing_remove(struct ib_device *dev, void *data)
{
	struct ib_srq *srq = kept_srq;
	struct ib_pd *pd;

	dev->ops = real;
	if (!srq || srq->device != dev)
		return;
	kept_srq = NULL;
	pd = srq->pd;
	ib_destroy_srq(srq);
	ib_dealloc_pd(pd);
}

static struct ib_client client = {
	.name	= "xrds_device",
	.add	= failing_add,
	.remove	= failing_remove,
};

/* ------------------------------------------------------------------- orders */

static int raise(enum ib_event_type type)
{
	struct ib_event event = { .event = type };
	struct ib_srq *srq = READ_ONCE(last_srq);

	if (!srq)
		return -ENOENT;
	event.device = srq->device;
	event.element.srq = srq;
	atomic_inc(&raised);
	if (type == IB_EVENT_SRQ_ERR)
		srq->event_handler(&event, srq->srq_context);
	else
		ib_dispatch_event(&event);
	return 0;
}

static int obey(char *order)
{
	unsigned int number, n;
	char name[32];
	size_t i;
	int verb;

	if (sscanf(order, "latch %u", &n) == 1) {
		WRITE_ONCE(latch_qpn, n);
	} else if (sscanf(order, "latch_all %u", &n) == 1) {
		WRITE_ONCE(latch_all, n);
	} else if (sscanf(order, "lose_inv %u", &n) == 1) {
		WRITE_ONCE(lose_inv, n);
	} else if (sscanf(order, "no_atomics %u", &n) == 1) {
		WRITE_ONCE(no_atomics, n);
	} else if (sscanf(order, "nak_empty %u", &n) == 1) {
		WRITE_ONCE(nak_empty, n);
	} else if (sscanf(order, "hold_alloc %u", &n) == 1) {
		WRITE_ONCE(hold_alloc, n);
		wake_up_all(&hold_wait);
	} else if (sscanf(order, "hold_dereg %u", &n) == 1) {
		WRITE_ONCE(hold_dereg, n);
		wake_up_all(&hold_wait);
	} else if (sscanf(order, "shift_iova %u", &n) == 1) {
		WRITE_ONCE(shift_iova, n);
	} else if (sscanf(order, "raise qp %u", &n) == 1) {
		WRITE_ONCE(fatal_qpn, n);
	} else if (sysfs_streq(order, "raise srq")) {
		return raise(IB_EVENT_SRQ_ERR);
	} else if (sysfs_streq(order, "raise device")) {
		return raise(IB_EVENT_DEVICE_FATAL);
	} else if (sscanf(order, "fail %31s %u", name, &n) == 2) {
		verb = match_string(verb_names, NR_VERBS, name);
		if (verb < 0)
			return verb;
		atomic_set(&to_fail[verb], n);
	} else if (sscanf(order, "draw %u %u", &number, &n) == 2) {
		WRITE_ONCE(page, number);
		atomic_set(&to_draw, n);
	} else if (sscanf(order, "limit %31s %u", name, &n) == 2) {
		for (i = 0; strcmp(limits[i].name, name); i++)
			if (i == ARRAY_SIZE(limits) - 1)
				return -EINVAL;
		wanted[i] = n + 1;
	} else {
		return -EINVAL;
	}
	return 0;
}

static ssize_t failing_write(struct file *file, const char __user *text,
			     size_t bytes, loff_t *pos)
{
	char order[ORDER_BYTES];
	int ret;

	if (bytes >= sizeof(order))
		return -EINVAL;
	if (copy_from_user(order, text, bytes))
		return -EFAULT;
	order[bytes] = '\0';
	ret = obey(order);
	return ret ?: bytes;
}

static int failing_show(struct seq_file *seq, void *v)
{
	seq_printf(seq, "noted %u\nchanged %u\n", nr_notes, nr_changed);
	seq_printf(seq, "latched %d\nfailed %d\nlost_invs %d\natomics %d\n",
		   atomic_read(&latched), atomic_read(&failed),
		   atomic_read(&lost_invs), atomic_read(&atomics));
	seq_printf(seq, "raised %d\ndrawn %d\nshort_cqs %d\nheld %d\n",
		   atomic_read(&raised), atomic_read(&drawn),
		   atomic_read(&short_cqs), atomic_read(&held));
	return 0;
}

static int failing_open(struct inode *inode, struct file *file)
{
	return single_open(file, failing_show, NULL);
}

static const struct proc_ops failing_ops = {
	.proc_open	= failing_open,
	.proc_read	= seq_read,
	.proc_write	= failing_write,
	.proc_lseek	= seq_lseek,
	.proc_release	= single_release,
};

static int __init xrds_device_init(void)
{
	int ret;

	payload = kzalloc(1, GFP_KERNEL);
	if (!payload)
		return -ENOMEM;
	ret = register_kprobe(&random);
	if (ret)
		goto err_payload;
	ret = ib_register_client(&client);
	if (ret)
		goto err_probe;
	ret = -ENOMEM;
	if (!proc_create("xrds_device", 0600, NULL, &failing_ops))
		goto err_client;
	return 0;

err_client:
	ib_unregister_client(&client);
err_probe:
	unregister_kprobe(&random);
err_payload:
	kfree(payload);
	return ret;
}

static void __exit xrds_device_exit(void)
{
	remove_proc_entry("xrds_device", NULL);
	ib_unregister_client(&client);
	unregister_kprobe(&random);
	/* nobody is in these functions any more, not even preempted */
	synchronize_rcu_tasks();
	xa_destroy(&latched_cqs);
	kfree(payload);
}

module_init(xrds_device_init);
module_exit(xrds_device_exit);
MODULE_DESCRIPTION("RDMA devices that fail as adapters do");
MODULE_LICENSE("GPL");
