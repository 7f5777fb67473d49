// SPDX-License-Identifier: GPL-2.0-only
/*
 * The floor of "make bench": the cost of messages with plain verbs, on one
 * connection between two local RDMA devices, with nothing above them. All is
 * done in completions: nobody sleeps, nothing is copied and nothing allocated.
 *
 * A write of "MODE SIZE DEPTH COUNT" to /proc/xrds_floor runs one measurement,
 * and reading gives the nanoseconds it took. COUNT is of messages or ops, and
 * DEPTH of them are on their way at a time:
 *
 *   echo		a SEND of SIZE bytes is answered by one of 16 bytes
 *   stream		SENDs of SIZE bytes
 *   write, read	RDMA ops of SIZE bytes
 *   write+send, read+send	each followed by a SEND of 48 bytes
 *
 * Every SEND is signalled, as is every op that none follows.
 *
 * "idle WRS SGES COUNT" makes so many connections more, which do nothing, with
 * send queues of that size, and without receive or completion queues of their
 * own: the least memory of a connection. Reading gives their number.
 */
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

enum {
	PORT		= 18700,
	MAX_BYTES	= 1 << 20,
	MAX_DEPTH	= 64,
	NR_RECVS	= 2 * MAX_DEPTH,
	NR_SENDS	= 4 * MAX_DEPTH,
	NR_CQES		= NR_RECVS + NR_SENDS,
	READS		= 16,		/* at a time, of a queue pair */
	ANSWER_BYTES	= 16,
	FOLLOW_BYTES	= 48,
	WAIT_MS		= 10000,
	RUN_MS		= 600000,
	ORDER_BYTES	= 64,
	MAX_IDLE	= 1000,
	SRQ_WRS		= 16,
	BACKLOG		= 16,
};

enum mode {
	MODE_ECHO, MODE_STREAM, MODE_WRITE, MODE_READ, MODE_WRITE_SEND,
	MODE_READ_SEND, NR_MODES
};

static const char * const mode_names[NR_MODES] = {
	[MODE_ECHO]	= "echo",
	[MODE_STREAM]	= "stream",
	[MODE_WRITE]	= "write",
	[MODE_READ]	= "read",
	[MODE_WRITE_SEND]	= "write+send",
	[MODE_READ_SEND]	= "read+send",
};

/* One end of the connection. */
struct end {
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_srq *srq;	/* of idle connections, nothing is in it */
	void *buf;		/* MAX_BYTES, for all that is sent or comes */
	u64 dma;
	struct ib_cqe recv_cqe;
	struct ib_cqe send_cqe;
};

static char *from = "10.7.0.1";
module_param(from, charp, 0444);
MODULE_PARM_DESC(from, "address of the end that sends");

static char *to = "10.7.0.2";
module_param(to, charp, 0444);
MODULE_PARM_DESC(to, "address of the end that answers");

static struct end ends[2];
static struct end *const near = &ends[0];
static struct end *const far = &ends[1];
static struct rdma_cm_id *listener;
static struct rdma_cm_id *dialing;
/* both ends of idle connections */
static struct rdma_cm_id *idle[2 * MAX_IDLE];
static unsigned int nr_idle;
static u32 idle_wrs, idle_sges;
static struct sockaddr_storage here, there;
static DECLARE_COMPLETION(near_event);	/* of the connection manager */
static DECLARE_COMPLETION(far_event);
static int cm_status;

static DEFINE_MUTEX(lock);	/* one measurement at a time */
static struct {
	enum mode mode;
	u32 bytes;
	u32 to_post;		/* for completions to post */
	u32 to_come;		/* not completed yet */
	int error;
	struct completion over;
} run;
static u64 took_ns;

/* ------------------------------------------------------------------ posting */

static void stop_run(int error)
{
	run.error = error;
	complete(&run.over);
}

static void post_recv(struct end *end)
{
	struct ib_sge sge = {
		.addr = end->dma,
		.length = MAX_BYTES,
		.lkey = end->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe = &end->recv_cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};
	int ret = ib_post_recv(end->id->qp, &wr, NULL);

	if (ret)
		stop_run(ret);
}

static void post_send(struct end *end, u32 bytes)
{
	struct ib_sge sge = {
		.addr = end->dma,
		.length = bytes,
		.lkey = end->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &end->send_cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};
	int ret = ib_post_send(end->id->qp, &wr, NULL);

	if (ret)
		stop_run(ret);
}

static void post_rdma(enum ib_wr_opcode opcode, bool followed)
{
	struct ib_sge sge = {
		.addr = near->dma,
		.length = run.bytes,
		.lkey = near->pd->local_dma_lkey,
	};
	struct ib_sge tail_sge = {
		.addr = near->dma,
		.length = FOLLOW_BYTES,
		.lkey = near->pd->local_dma_lkey,
	};
	struct ib_send_wr tail = {
		.wr_cqe = &near->send_cqe,
		.sg_list = &tail_sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};
	struct ib_rdma_wr op = {
		.wr.next = followed ? &tail : NULL,
		.wr.wr_cqe = &near->send_cqe,
		.wr.sg_list = &sge,
		.wr.num_sge = 1,
		.wr.opcode = opcode,
		.wr.send_flags = followed ? 0 : IB_SEND_SIGNALED,
		.remote_addr = far->dma,
		.rkey = far->pd->unsafe_global_rkey,
	};
	int ret;

	if (followed && opcode == IB_WR_RDMA_READ)
		tail.send_flags |= IB_SEND_FENCE;
	ret = ib_post_send(near->id->qp, &op.wr, NULL);
	if (ret)
		stop_run(ret);
}

static void post_one(void)
{
	switch (run.mode) {
	case MODE_WRITE:
	case MODE_WRITE_SEND:
		post_rdma(IB_WR_RDMA_WRITE, run.mode == MODE_WRITE_SEND);
		break;
	case MODE_READ:
	case MODE_READ_SEND:
		post_rdma(IB_WR_RDMA_READ, run.mode == MODE_READ_SEND);
		break;
	default:
		post_send(near, run.bytes);
	}
}

/* One is complete: the next, or the end. */
static void go_on(void)
{
	if (run.to_post) {
		run.to_post--;
		post_one();
	}
	if (!--run.to_come)
		complete(&run.over);
}

/* -------------------------------------------------------------- completions */

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct end *end = cq->cq_context;

	if (wc->status) {
		if (wc->status != IB_WC_WR_FLUSH_ERR)
			stop_run(-EIO);
		return;
	}
	post_recv(end);
	if (run.mode != MODE_ECHO)
		return;
	if (end == far)
		post_send(far, ANSWER_BYTES);
	else
		go_on();
}

static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	if (wc->status) {
		if (wc->status != IB_WC_WR_FLUSH_ERR)
			stop_run(-EIO);
		return;
	}
	if (run.mode != MODE_ECHO)
		go_on();
}

/* --------------------------------------------------------------- connection */

static int open_end(struct end *end, struct rdma_cm_id *id)
{
	struct ib_qp_init_attr attr = {
		.cap.max_send_wr = NR_SENDS,
		.cap.max_recv_wr = NR_RECVS,
		.cap.max_send_sge = 1,
		.cap.max_recv_sge = 1,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	int ret;

	end->id = id;
	end->recv_cqe.done = recv_done;
	end->send_cqe.done = send_done;
	end->buf = alloc_pages_exact(MAX_BYTES, GFP_KERNEL | __GFP_ZERO);
	if (!end->buf)
		return -ENOMEM;
	end->dma = ib_dma_map_single(id->device, end->buf, MAX_BYTES,
				     DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(id->device, end->dma)) {
		end->dma = 0;
		return -EIO;
	}
	end->pd = ib_alloc_pd(id->device, IB_PD_UNSAFE_GLOBAL_RKEY);
	if (IS_ERR(end->pd))
		return PTR_ERR(end->pd);
	end->cq = ib_alloc_cq(id->device, end, NR_CQES, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(end->cq))
		return PTR_ERR(end->cq);
	attr.send_cq = end->cq;
	attr.recv_cq = end->cq;
	ret = rdma_create_qp(id, end->pd, &attr);
	if (ret)
		return ret;
	for (int i = 0; i < NR_RECVS; i++)
		post_recv(end);
	return 0;
}

static void close_end(struct end *end)
{
	struct ib_device *device = end->id ? end->id->device : NULL;

	if (!end->id)
		return;
	if (end->id->qp) {
		rdma_disconnect(end->id);
		ib_drain_qp(end->id->qp);
		rdma_destroy_qp(end->id);
	}
	if (!IS_ERR_OR_NULL(end->srq))
		ib_destroy_srq(end->srq);
	if (!IS_ERR_OR_NULL(end->cq))
		ib_free_cq(end->cq);
	if (!IS_ERR_OR_NULL(end->pd))
		ib_dealloc_pd(end->pd);
	if (end->dma)
		ib_dma_unmap_single(device, end->dma, MAX_BYTES,
				    DMA_BIDIRECTIONAL);
	if (end->buf)
		free_pages_exact(end->buf, MAX_BYTES);
	rdma_destroy_id(end->id);
}

static int open_idle(struct end *end, struct rdma_cm_id *id)
{
	struct ib_srq_init_attr srq = {
		.attr.max_wr = SRQ_WRS,
		.attr.max_sge = 1,
	};
	struct ib_qp_init_attr attr = {
		.cap.max_send_wr = idle_wrs,
		.cap.max_send_sge = idle_sges,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.send_cq = end->cq,
		.recv_cq = end->cq,
	};

	if (nr_idle == ARRAY_SIZE(idle))
		return -ENOSPC;
	idle[nr_idle++] = id;
	if (IS_ERR_OR_NULL(end->srq))
		end->srq = ib_create_srq(end->pd, &srq);
	if (IS_ERR(end->srq))
		return PTR_ERR(end->srq);
	attr.srq = end->srq;
	return rdma_create_qp(id, end->pd, &attr);
}

/* Nothing was posted to any of them. */
static void close_idle(void)
{
	while (nr_idle) {
		struct rdma_cm_id *id = idle[--nr_idle];

		rdma_disconnect(id);
		if (id->qp)
			rdma_destroy_qp(id);
		rdma_destroy_id(id);
	}
}

static struct rdma_conn_param params = {
	.responder_resources	= READS,
	.initiator_depth	= READS,
	.retry_count		= 6,
	.rnr_retry_count	= 7,
};

static int accept_end(struct rdma_cm_id *id)
{
	int ret;

	ret = far->id ? open_idle(far, id) : open_end(far, id);
	if (!ret)
		ret = rdma_accept(id, &params);
	if (ret) {
		cm_status = ret;
		complete(&far_event);
	}
	/* close_end() or close_idle() does it */
	return ret == -ENOSPC ? ret : 0;
}

static int on_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return accept_end(id);
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ESTABLISHED:
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	default:
		pr_err("xrds_floor: %s\n", rdma_event_msg(event->event));
		cm_status = event->status ?: -ECONNREFUSED;
	}
	complete(id == dialing ? &near_event : &far_event);
	return 0;
}

static int parse(const char *text, u16 port, struct sockaddr_storage *ss)
{
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	return inet_pton_with_scope(&init_net, AF_UNSPEC, text, service, ss);
}

static int await(struct completion *event)
{
	if (!wait_for_completion_timeout(event, msecs_to_jiffies(WAIT_MS)))
		return -ETIMEDOUT;
	return cm_status;
}

static struct rdma_cm_id *create_id(void)
{
	return rdma_create_id(&init_net, on_event, NULL, RDMA_PS_TCP,
			      IB_QPT_RC);
}

static int listen(void)
{
	int ret;

	listener = create_id();
	if (IS_ERR(listener)) {
		ret = PTR_ERR(listener);
		listener = NULL;
		return ret;
	}
	ret = rdma_bind_addr(listener, (struct sockaddr *)&there);
	return ret ?: rdma_listen(listener, BACKLOG);
}

static int dial(int (*open)(struct end *end, struct rdma_cm_id *id))
{
	struct rdma_cm_id *id = create_id();
	int ret;

	if (IS_ERR(id))
		return PTR_ERR(id);
	dialing = id;
	ret = rdma_resolve_addr(id, (struct sockaddr *)&here,
				(struct sockaddr *)&there, WAIT_MS);
	ret = ret ?: await(&near_event);
	ret = ret ?: rdma_resolve_route(id, WAIT_MS);
	ret = ret ?: await(&near_event);
	if (ret) {
		rdma_destroy_id(id);
		return ret;
	}
	ret = open(near, id);
	ret = ret ?: rdma_connect(id, &params);
	ret = ret ?: await(&near_event);
	return ret ?: await(&far_event);
}

/* --------------------------------------------------------------- measurement */

static int measure(u32 depth, u32 count)
{
	u64 begin;

	depth = min(depth, count);
	run.to_post = count - depth;
	run.to_come = count;
	run.error = 0;
	reinit_completion(&run.over);
	begin = ktime_get_ns();
	/* completions are for later: they count on requests posted here */
	local_bh_disable();
	while (depth--)
		post_one();
	local_bh_enable();
	if (!wait_for_completion_timeout(&run.over, msecs_to_jiffies(RUN_MS)))
		return -ETIMEDOUT;
	took_ns = ktime_get_ns() - begin;
	return run.error;
}

static int dial_idle(u32 count)
{
	int ret = 0;

	if (count > MAX_IDLE - nr_idle / 2)
		return -ENOSPC;
	while (!ret && count--)
		ret = dial(open_idle);
	took_ns = nr_idle / 2;
	return ret;
}

static ssize_t floor_write(struct file *file, const char __user *text,
			   size_t bytes, loff_t *pos)
{
	char order[ORDER_BYTES], name[16];
	u32 depth, count;
	int ret;

	if (bytes >= sizeof(order))
		return -EINVAL;
	if (copy_from_user(order, text, bytes))
		return -EFAULT;
	order[bytes] = '\0';
	mutex_lock(&lock);
	ret = -EINVAL;
	if (sscanf(order, "idle %u %u %u", &idle_wrs, &idle_sges,
		   &count) == 3) {
		ret = dial_idle(count);
		goto out;
	}
	if (sscanf(order, "%15s %u %u %u", name, &run.bytes, &depth,
		   &count) != 4)
		goto out;
	run.mode = match_string(mode_names, NR_MODES, name);
	if ((int)run.mode < 0 || run.bytes > MAX_BYTES || !depth ||
	    depth > MAX_DEPTH || !count)
		goto out;
	ret = measure(depth, count);
out:
	mutex_unlock(&lock);
	return ret ?: bytes;
}

static int floor_show(struct seq_file *seq, void *v)
{
	seq_printf(seq, "%llu\n", took_ns);
	return 0;
}

static int floor_open(struct inode *inode, struct file *file)
{
	return single_open(file, floor_show, NULL);
}

static const struct proc_ops floor_ops = {
	.proc_open	= floor_open,
	.proc_read	= seq_read,
	.proc_write	= floor_write,
	.proc_lseek	= seq_lseek,
	.proc_release	= single_release,
};

static void disconnect(void)
{
	/* no request comes once there is no listener */
	if (listener)
		rdma_destroy_id(listener);
	close_idle();
	close_end(near);
	close_end(far);
}

static int __init floor_init(void)
{
	int ret;

	init_completion(&run.over);
	ret = parse(from, 0, &here) ?: parse(to, PORT, &there);
	ret = ret ?: listen();
	ret = ret ?: dial(open_end);
	if (!ret && !proc_create("xrds_floor", 0600, NULL, &floor_ops))
		ret = -ENOMEM;
	if (ret)
		disconnect();
	return ret;
}

static void __exit floor_exit(void)
{
	remove_proc_entry("xrds_floor", NULL);
	disconnect();
}

module_init(floor_init);
module_exit(floor_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("cost of messages with plain verbs");
