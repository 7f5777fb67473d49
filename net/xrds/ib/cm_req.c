// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests of peers for a connection.
 *
 *   checked (handler) -> conn->pending -> accepted (cm.c) or refused (worker)
 *
 * A request is checked in the listener's handler, as only its content tells to
 * which connection it belongs: length and addresses of its private data, the port
 * that it came from, its version, and how many requests are half open. Then it
 * waits in conn->pending for the connection's work item, which accepts or refuses
 * it.
 *
 * A waiting request has a handler of its own, since the peer may withdraw it or
 * the device may be removed. The worker takes the identifier over with the
 * handler mutex held. So an event goes either to the request's handler, and the
 * worker finds the request withdrawn, or to the endpoint's handler.
 *
 * A legacy node refuses each request with the same code, for three reasons: it
 * knows none of the offered versions, it is dialling itself, or it has just
 * found that the old connection is lost. Therefore the next attempt first waits
 * a moment for the peer's own request, and then offers the oldest version.
 */
#include <linux/ipv6.h>
#include <net/arp.h>
#include <net/ndisc.h>
#include <net/neighbour.h>
#include <rdma/ib_cm.h>

#include "ib/ib.h"
#include "ib/port.h"

/**
 * xrds_ib_cm_req_free - free a request; its identifier has another owner
 * @req: request
 *
 * Context: process.
 */
void xrds_ib_cm_req_free(struct xrds_ib_cm_req *req)
{
	atomic_dec(&req->xin->half_open);
	kfree(req);
}

/* Handler of a waiting request, which can only become void */
static int xrds_ib_cm_req_void(struct rdma_cm_id *id,
			       struct rdma_cm_event *event)
{
	struct xrds_ib_cm_req *req = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		req->withdrawn = true;
		break;
	default:
		break;
	}
	/* the worker, which has an event for the request, destroys it */
	return 0;
}

static void xrds_ib_cm_req_reject(struct rdma_cm_id *id,
				  enum xrds_wire_reject reason)
{
	u8 data[XRDS_WIRE_REJECT_BYTES];

	rdma_reject(id, data, xrds_wire_reject_encode(data, reason),
		    IB_CM_REJ_CONSUMER_DEFINED);
}

/* The addresses as the connection manager has resolved them */
static void xrds_ib_cm_req_key(const struct rdma_cm_id *id,
			       struct xrds_conn_key *key)
{
	const struct rdma_addr *route = &id->route.addr;
	struct xrds_addr addr;

	memset(key, 0, sizeof(*key));
	/* always one of the two families */
	if (!xrds_addr_parse(&addr, &route->src_addr, sizeof(route->src_addr)))
		key->laddr = addr.addr;
	if (!xrds_addr_parse(&addr, &route->dst_addr, sizeof(route->dst_addr)))
		key->faddr = addr.addr;
	if (ipv6_addr_type(&key->faddr) & IPV6_ADDR_LINKLOCAL)
		key->scope = route->dev_addr.bound_dev_if;
}

static struct neighbour *xrds_ib_cm_req_neigh(const struct xrds_conn_key *key,
					      struct net_device *dev)
{
	struct neigh_table *table = &arp_tbl;
	const void *addr = &key->faddr.s6_addr32[3];
	struct neighbour *neigh;

	/* without IPv6 there is no listener for it, and no such table */
	if (IS_ENABLED(CONFIG_IPV6) && ipv6_mod_enabled() &&
	    xrds_ib_conn_v6(key)) {
		table = &nd_tbl;
		addr = &key->faddr;
	}
	neigh = neigh_lookup(table, addr, dev);
	return neigh ?: neigh_create(table, addr, dev);
}

/* The hardware address that the IP network has for a peer. If it has none, or is
 * not @sure of it, it asks. Returns its length.
 */
static u32 xrds_ib_cm_req_hw(const struct rdma_cm_id *id,
			     const struct xrds_conn_key *key, u8 *hw,
			     bool *sure)
{
	const struct rdma_dev_addr *from = &id->route.addr.dev_addr;
	struct net_device *dev = dev_get_by_index(from->net,
						  from->bound_dev_if);
	struct neighbour *neigh;
	u32 bytes = 0;

	if (!dev)
		return 0;
	neigh = xrds_ib_cm_req_neigh(key, dev);
	if (!IS_ERR(neigh)) {
		*sure = READ_ONCE(neigh->nud_state) & NUD_CONNECTED;
		if (READ_ONCE(neigh->nud_state) & NUD_VALID) {
			neigh_ha_snapshot((char *)hw, neigh, dev);
			bytes = dev->addr_len;
		}
		neigh_event_send(neigh, NULL);
		neigh_release(neigh);
	}
	dev_put(dev);
	return bytes;
}

/* Has the port that the queue pair will be connected to the address that the
 * sender of the request claims? Over InfiniBand a node that has failed over to
 * another port has it before the network has noticed.
 */
static enum xrds_ib_proof xrds_ib_cm_req_prove(const struct rdma_cm_id *id,
					       const struct xrds_conn_key *key)
{
	const struct sa_path_rec *path = id->route.path_rec;
	u8 hw[MAX_ADDR_LEN];
	struct xrds_ib_claim claim = {
		.roce	= rdma_protocol_roce(id->device, id->port_num),
		.hw	= hw,
	};
	enum xrds_ib_proof proof;
	bool sure = true;

	if (!path)
		return XRDS_IB_FORGED;
	memcpy(claim.addr, &key->faddr, sizeof(claim.addr));
	memcpy(claim.gid, &path->dgid, sizeof(claim.gid));
	if (!claim.roce)
		claim.hw_bytes = xrds_ib_cm_req_hw(id, key, hw, &sure);
	proof = xrds_ib_port_prove(&claim);
	return proof == XRDS_IB_FORGED && !sure ? XRDS_IB_UNPROVEN : proof;
}

/* Returns the fault of a request, or XRDS_WIRE_OK. */
static enum xrds_wire_err
xrds_ib_cm_req_check(const struct rdma_conn_param *param,
		     const struct xrds_conn_key *key,
		     enum xrds_ib_proof proof, struct xrds_wire_priv *priv)
{
	enum xrds_wire_err err;

	err = xrds_wire_priv_decode(priv, param->private_data,
				    param->private_data_len,
				    xrds_ib_conn_v6(key));
	if (err) {
		/* no version is known */
		memset(priv, 0, sizeof(*priv));
		return err;
	}
	if (!ipv6_addr_equal(&priv->saddr, &key->faddr) ||
	    !ipv6_addr_equal(&priv->daddr, &key->laddr) ||
	    proof == XRDS_IB_FORGED)
		return XRDS_WIRE_PRIV_ADDR;
	if (!xrds_wire_priv_version(priv, xrds_ib_legacy_mask()))
		return XRDS_WIRE_PRIV_VERSION;
	return XRDS_WIRE_OK;
}

/* Find the connection of a request. A new one is made for a peer only while
 * there are less than max_conns; no other limit bounds the memory that peers
 * can use here. Connections of local users have limits of their own, and are
 * not counted.
 */
static struct xrds_conn *xrds_ib_cm_req_conn(struct xrds_ib_net *xin,
					     const struct xrds_conn_key *key)
{
	struct xrds_net *xn = xrds_net(xin->net);
	struct xrds_conn *conn = xrds_conn_find(xn, key);
	u32 most = READ_ONCE(xin->max_conns);

	if (conn)
		return conn;
	if (atomic_read(&xn->nr_asked) >= most) {
		WRITE_ONCE(xn->asked_refused_at, most);
		xrds_ib_count(xin, XRDS_IB_C_CONNECT_MAX_CONNS);
		return ERR_PTR(-ENOSPC);
	}
	conn = xrds_conn_find_or_create(xn, NULL, key, xin->transport,
					GFP_KERNEL);
	if (IS_ERR(conn))
		xrds_ib_count(xin, XRDS_IB_C_CONNECT_NO_MEM);
	return conn;
}

/* Let the request wait for its connection's work item. */
static int xrds_ib_cm_req_queue(struct xrds_ib_net *xin, struct rdma_cm_id *id,
				const struct rdma_conn_param *param,
				const struct xrds_conn_key *key,
				enum xrds_ib_proof proof,
				const struct xrds_wire_priv *priv)
{
	struct xrds_ib_cm_req *req;
	struct xrds_conn *conn;
	int ret = -EALREADY;

	if (proof == XRDS_IB_UNPROVEN) {
		xrds_ib_count(xin, XRDS_IB_C_CONNECT_UNPROVEN);
		return -EAGAIN;
	}
	if (READ_ONCE(xrds_net(xin->net)->drain_by)) {
		xrds_ib_count(xin, XRDS_IB_C_CONNECT_DRAINED);
		return -ESHUTDOWN;
	}
	if (atomic_inc_return(&xin->half_open) >
	    READ_ONCE(xin->max_half_open)) {
		atomic_dec(&xin->half_open);
		xrds_ib_count(xin, XRDS_IB_C_CONNECT_HALF_OPEN);
		return -EBUSY;
	}
	req = kzalloc(sizeof(*req), GFP_KERNEL);
	if (!req) {
		atomic_dec(&xin->half_open);
		xrds_ib_count(xin, XRDS_IB_C_CONNECT_NO_MEM);
		return -ENOMEM;
	}
	req->version = xrds_wire_priv_version(priv, xrds_ib_legacy_mask());
	req->base.epoch = priv->epoch;
	req->base.legacy = req->version != XRDS_VER_XRDS;
	req->ack = priv->ack;
	req->payload = xrds_wire_priv_legacy_payload(priv, req->version);
	req->peer_qpn = param->qp_num;
	req->id = id;
	req->xin = xin;
	req->responder = param->responder_resources;
	req->initiator = param->initiator_depth;

	conn = xrds_ib_cm_req_conn(xin, key);
	if (IS_ERR(conn)) {
		xrds_ib_cm_req_free(req);
		return PTR_ERR(conn);
	}
	/* before the worker can see it */
	id->context = req;
	id->event_handler = xrds_ib_cm_req_void;
	if (xrds_conn_request(conn, &req->base)) {
		ret = 0;
	} else {
		xrds_ib_count(xin, XRDS_IB_C_CONNECT_RACED);
		xrds_ib_cm_req_free(req);
	}
	xrds_conn_put(conn);
	return ret;
}

/* The reason that the peer gets; legacy nodes know one only. */
static enum xrds_wire_reject
xrds_ib_cm_req_reason(const struct xrds_wire_priv *priv, int error)
{
	if (xrds_wire_priv_version(priv, xrds_ib_legacy_mask()) !=
	    XRDS_VER_XRDS)
		return XRDS_REJECT_VERSION;
	return error == -EALREADY ? XRDS_REJECT_CROSSED : XRDS_REJECT_NONE;
}

static int xrds_ib_cm_req_judge(struct rdma_cm_id *id,
				const struct rdma_conn_param *param)
{
	struct xrds_ib_net *xin = id->context;
	struct xrds_wire_priv priv;
	struct xrds_conn_key key;
	struct xrds_addr_text text;
	enum xrds_ib_proof proof;
	enum xrds_wire_err err;
	int ret;

	xrds_ib_count(xin, XRDS_IB_C_CONNECT_REQUESTS);
	xrds_ib_cm_req_key(id, &key);
	proof = xrds_ib_cm_req_prove(id, &key);
	err = xrds_ib_cm_req_check(param, &key, proof, &priv);
	if (err) {
		xrds_ib_count(xin, err == XRDS_WIRE_PRIV_VERSION ?
				   XRDS_IB_C_CONNECT_NO_VERSION :
				   XRDS_IB_C_CONNECT_BAD_PRIV);
		net_warn_ratelimited("xrds: %s: request refused: %s\n",
				     xrds_addr_text(&key.faddr, &text),
				     xrds_wire_strerror(err));
		xrds_ib_cm_req_reject(id, xrds_ib_cm_req_reason(&priv, -EPROTO));
		return -EPROTO;
	}
	key.tos = priv.tos;
	ret = xrds_ib_cm_req_queue(xin, id, param, &key, proof, &priv);
	if (ret) {
		/* peers ask again and again while the namespace is drained */
		if (ret != -ESHUTDOWN)
			net_warn_ratelimited("xrds: %s: request not taken: %pe\n",
					     xrds_addr_text(&key.faddr, &text),
					     ERR_PTR(ret));
		xrds_ib_cm_req_reject(id, xrds_ib_cm_req_reason(&priv, ret));
	}
	/* with another value than 0 the manager destroys the identifier */
	return ret;
}

/**
 * xrds_ib_cm_req_listen - handler of a listener
 * @id: identifier of a request
 * @event: event of @id
 *
 * Context: process, handler mutexes of listener and @id held.
 * Return: 0; with a negative errno the manager destroys @id.
 */
int xrds_ib_cm_req_listen(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return xrds_ib_cm_req_judge(id, &event->param.conn);
	return 0;
}

/**
 * xrds_ib_cm_req_refuse - refuse a request
 * @conn: connection
 * @base: request, which is freed
 *
 * Context: the connection's work.
 */
void xrds_ib_cm_req_refuse(struct xrds_conn *conn, struct xrds_request *base)
{
	struct xrds_ib_cm_req *req = container_of(base, struct xrds_ib_cm_req,
						  base);

	xrds_ib_count(req->xin, XRDS_IB_C_CONNECT_REFUSED);
	if (xrds_ib_cm_id_up(req->id))
		xrds_ib_cm_req_reject(req->id, base->legacy ?
				      XRDS_REJECT_VERSION :
				      XRDS_REJECT_CROSSED);
	/* this waits for a handler that uses the request */
	xrds_ib_cm_id_destroy(req->id, true);
	xrds_ib_cm_req_free(req);
}
