// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hostile peer's requests, and its answers to those of the other end.
 *
 * A storm is many requests at a time, without any queue pair behind them: with
 * private data of every length, with data that is wrong, or with good data, but
 * then without the last message that would complete the connection, or taken
 * back at once. A request may also come in the name of another node.
 *
 * A request of the other end is refused with data of any length, never answered,
 * answered with nonsense, or gets a connection like those that we dial.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "hostile.h"

enum {
	AT_A_TIME	= 64,
	MAX_ANSWERS	= 64,
	MAX_ASKED_BYTES	= XRDS_WIRE_PRIV_V6_BYTES,
	MAX_REP_BYTES	= 196,
	MAX_REJ_BYTES	= 148,
};

/* ---------------------------------------------------------------- storms */

static int ask(struct hostile_link *link, const struct hostile_order *order,
	       bool wrong)
{
	u8 data[MAX_ASKED_BYTES];
	struct rdma_conn_param param = {
		.private_data	= data,
		.retry_count	= 6,
		.rnr_retry_count = 7,
		.qp_num		= hostile_random(&link->gen, 1 << 24),
	};

	param.private_data_len =
		hostile_gen_priv(&link->gen, data, sizeof(data), &order->local,
				 &order->peer, order->tos, wrong);
	hostile_count(HOSTILE_C_REQUESTS);
	if (wrong)
		hostile_count(HOSTILE_C_WRONG);
	return rdma_connect(link->id, &param);
}

static struct hostile_link *storm_one(const struct hostile_order *order,
				      u32 seed)
{
	struct hostile_link *link = hostile_link_alloc(seed);
	struct hostile_order next = *order;
	u32 how;

	if (!link)
		return NULL;
	how = hostile_random(&link->gen, 4);
	next.tos += hostile_random(&link->gen, 64);
	link->gen.ver = hostile_random(&link->gen, 4) ? XRDS_VER_XRDS :
							XRDS_VER_4_1;
	if (hostile_link_resolve(link, &next) || ask(link, &next, how < 2) ||
	    how == 2) {
		hostile_link_free(link);
		return NULL;
	}
	return link;
}

static void storm_free(struct hostile_link *link)
{
	if (!link)
		return;
	if (READ_ONCE(link->event) == RDMA_CM_EVENT_CONNECT_RESPONSE)
		hostile_count(HOSTILE_C_ANSWERED);
	hostile_link_free(link);
}

int hostile_storm(const struct hostile_order *order)
{
	struct hostile_link **ring;
	u32 i;

	ring = kcalloc(AT_A_TIME, sizeof(*ring), GFP_KERNEL);
	if (!ring)
		return -ENOMEM;
	for (i = 0; i < order->count && !hostile_over(); i++) {
		storm_free(ring[i % AT_A_TIME]);
		ring[i % AT_A_TIME] = storm_one(order, order->seed + i);
	}
	for (i = 0; i < AT_A_TIME; i++)
		storm_free(ring[i]);
	kfree(ring);
	return hostile_over() ? -EINTR : 0;
}

/* Requests that are good, but name another node as their source. */
int hostile_pretend(const struct hostile_order *order)
{
	struct hostile_order next = *order;
	struct hostile_link *link;
	u32 i;

	next.local = order->other;
	for (i = 0; i < order->count && !hostile_over(); i++) {
		link = hostile_link_alloc(order->seed + i);
		if (!link)
			return -ENOMEM;
		link->gen.ver = XRDS_VER_XRDS;
		if (!hostile_link_resolve(link, order)) {
			/* the connection manager tells it to the other end */
			link->id->route.addr.src_addr = order->other;
			if (!ask(link, &next, false))
				hostile_link_wait(link,
						  RDMA_CM_EVENT_CONNECT_RESPONSE);
		}
		storm_free(link);
	}
	return hostile_over() ? -EINTR : 0;
}

/* --------------------------------------------------------------- answers */

static struct rdma_cm_id *listeners[2];
static struct workqueue_struct *answer_wq;
static atomic_t nr_answers = ATOMIC_INIT(0);	/* under way */
static atomic_t answers = ATOMIC_INIT(0);	/* so far */
static u32 answer_seed;
static bool refusing;
static bool crossing;
static bool spoiling;

/* Answers to come follow from the seed of the last order. */
void hostile_answer_seed(u32 seed)
{
	WRITE_ONCE(answer_seed, seed);
}

/* While all are refused every link is one that this side has dialled. */
int hostile_refuse(bool refuse)
{
	WRITE_ONCE(refusing, refuse);
	return 0;
}

/* Refuse each request as one that has crossed ours, and never send ours. */
int hostile_cross(void)
{
	WRITE_ONCE(crossing, true);
	return 0;
}

/* Accept each request, and break the protocol as soon as the link is up. */
int hostile_spoil(void)
{
	WRITE_ONCE(spoiling, true);
	return 0;
}

static void refuse(struct hostile_link *link)
{
	u8 data[XRDS_WIRE_REJECT_BYTES];

	rdma_reject(link->id, data,
		    xrds_wire_reject_encode(data, XRDS_REJECT_CROSSED),
		    IB_CM_REJ_CONSUMER_DEFINED);
}

/* A request gets no answer, nonsense, or the connection that it asks for. */
static void answer(struct hostile_link *link)
{
	static const int versions[] = {
		XRDS_VER_XRDS, XRDS_VER_4_1, XRDS_VER_3_1,
	};
	const struct rdma_addr *route = &link->id->route.addr;
	bool spoil = READ_ONCE(spoiling);
	u32 how = spoil ? 7 : hostile_random(&link->gen, 8);
	struct rdma_conn_param param = {
		.rnr_retry_count = 7,
		.responder_resources = 4,
		.initiator_depth = 4,
	};
	u8 data[MAX_REP_BYTES];
	int ret;

	if (READ_ONCE(crossing)) {
		refuse(link);
		return;
	}
	hostile_fill(&link->gen, data, sizeof(data));
	if (how == 0) {
		wait_event_timeout(link->wait, READ_ONCE(link->down) ||
				   hostile_over(), 2 * HZ);
		return;
	}
	if (how == 1) {
		rdma_reject(link->id, data,
			    hostile_random(&link->gen, MAX_REJ_BYTES + 1),
			    IB_CM_REJ_CONSUMER_DEFINED);
		return;
	}
	if (hostile_link_setup(link))
		return;
	link->gen.ver = spoil ? XRDS_VER_XRDS :
				versions[hostile_random(&link->gen, 3)];
	param.private_data = data;
	param.private_data_len =
		hostile_gen_priv(&link->gen, data, sizeof(data),
				 &route->src_addr, &route->dst_addr, 0,
				 how == 2);
	hostile_link_unsure(link);
	rdma_lock_handler(link->id);
	ret = rdma_accept(link->id, &param);
	rdma_unlock_handler(link->id);
	if (ret)
		return;
	hostile_count(HOSTILE_C_ACCEPTED);
	if (!hostile_link_wait(link, RDMA_CM_EVENT_ESTABLISHED))
		return;
	if (spoil)
		hostile_link_spoil(link);
	else
		hostile_link_attack(link, U32_MAX);
}

static void answer_work(struct work_struct *work)
{
	struct hostile_link *link = container_of(work, struct hostile_link,
						 work);

	answer(link);
	hostile_link_free(link);
	atomic_dec(&nr_answers);
}

/* Context: the connection manager's handler; other than 0 refuses */
static int listen_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct hostile_link *link;
	u32 seed;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	hostile_count(HOSTILE_C_ASKED);
	if (READ_ONCE(refusing))
		return -EBUSY;
	if (atomic_inc_return(&nr_answers) > MAX_ANSWERS)
		goto err_count;
	seed = atomic_inc_return(&answers);
	link = hostile_link_alloc(READ_ONCE(answer_seed) + seed);
	if (!link)
		goto err_count;
	link->id = id;
	id->context = link;
	id->event_handler = hostile_link_event;
	INIT_WORK(&link->work, answer_work);
	queue_work(answer_wq, &link->work);
	return 0;

err_count:
	atomic_dec(&nr_answers);
	return -EBUSY;
}

static struct rdma_cm_id *listen_on(const struct sockaddr_storage *any)
{
	struct rdma_cm_id *id;
	int ret;

	id = rdma_create_id(&init_net, listen_event, NULL, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id))
		return id;
	ret = any->ss_family == AF_INET6 ? rdma_set_afonly(id, 1) : 0;
	if (!ret)
		ret = rdma_bind_addr(id, (struct sockaddr *)any);
	if (!ret)
		ret = rdma_listen(id, MAX_ANSWERS);
	if (!ret)
		return id;
	rdma_destroy_id(id);
	return ERR_PTR(ret);
}

int hostile_listen(void)
{
	struct sockaddr_storage any[2] = {};
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&any[1];
	struct sockaddr_in *sin = (struct sockaddr_in *)&any[0];
	int i;

	sin->sin_family = AF_INET;
	sin->sin_port = htons(XRDS_WIRE_PORT_V4);
	sin6->sin6_family = AF_INET6;
	sin6->sin6_port = htons(XRDS_WIRE_PORT_V6);
	answer_wq = alloc_workqueue("xrds_hostile", WQ_UNBOUND, 0);
	if (!answer_wq)
		return -ENOMEM;
	for (i = 0; i < 2; i++) {
		struct rdma_cm_id *id = listen_on(&any[i]);

		if (IS_ERR(id)) {
			hostile_unlisten();
			return PTR_ERR(id);
		}
		listeners[i] = id;
	}
	return 0;
}

void hostile_unlisten(void)
{
	int i;

	for (i = 0; i < 2; i++)
		if (listeners[i])
			rdma_destroy_id(listeners[i]);
	destroy_workqueue(answer_wq);
}
