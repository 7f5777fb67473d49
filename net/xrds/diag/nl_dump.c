// SPDX-License-Identifier: GPL-2.0-only
/*
 * Walks of the dumps of the netlink family.
 *
 * A dump is made in steps; between two of them nothing is held, and anything
 * may come and go. No step holds a spin lock for longer than one row, nor stays
 * in one grace period for longer than XRDS_NL_BATCH of them.
 *
 * Sockets are found by their numbers, which each keeps for its life: the dump
 * goes on with the next higher one. So a socket that is there all the time is
 * told of exactly once. The nodes of a socket are in a list that only grows
 * as long as the socket is there, so that a position in it is good for ever. That
 * position is counted anew in each step, within one grace period.
 *
 * Destinations, connections, peers and memory regions are in hash tables, and the
 * table's own iterator goes on where it was. The row that found no room is
 * looked at again, see rhashtable_walk_peek(). If that row has left, or the table
 * is resized, an object that is there all the time may be in the dump twice, or
 * not at all: then the dump is marked as interrupted.
 *
 * Objects are read under RCU. Those of the tables leave them before they drop
 * the reference on their socket, whose memory outlives a grace
 * period after that. Only a region may stay longer, while its key ends: it is not
 * linked then, and has no row.
 */
#include "diag/netlink.h"

/* rows that are looked at, shown or not, before others get the processor */
enum { XRDS_NL_BATCH = 64 };

/* The objects that the requester of a dump may see */
static struct xrds_nl_view xrds_nl_view(struct netlink_callback *cb)
{
	const struct net *net = sock_net(cb->skb->sk);
	const struct sock *sk = NETLINK_CB(cb->skb).sk;

	return (struct xrds_nl_view){
		.xn = xrds_net(net),
		.admin = netlink_ns_capable(cb->skb, net->user_ns,
					    CAP_NET_ADMIN),
		.uid = sk->sk_socket->file->f_cred->euid,
		.user_ns = sk_user_ns(sk),
	};
}

/* ---------------------------------------------------------------- sockets */

static u32 xrds_nl_sock_flags(const struct xrds_sock *xs)
{
	return (xrds_sk_bound(xs) ? XRDS_SOCKET_FLAG_BOUND : 0) |
	       (xs->connected ? XRDS_SOCKET_FLAG_CONNECTED : 0) |
	       (READ_ONCE(xs->port.congested) ? XRDS_SOCKET_FLAG_CONGESTED : 0) |
	       (xs->ending ? XRDS_SOCKET_FLAG_ENDING : 0);
}

static bool xrds_nl_put_bind(struct sk_buff *skb, const struct xrds_sock *xs)
{
	if (!xrds_sk_bound(xs))
		return false;
	return nla_put_in6_addr(skb, XRDS_A_SOCKET_LADDR, &xs->bind.addr) ||
	       nla_put_u16(skb, XRDS_A_SOCKET_LPORT, xs->bind.port) ||
	       (xs->bind.scope &&
		nla_put_u32(skb, XRDS_A_SOCKET_SCOPE, xs->bind.scope)) ||
	       nla_put_string(skb, XRDS_A_SOCKET_TRANSPORT, xs->trans->name);
}

/* The fields that xs->lock guards; L4 is a leaf, and so is filling a message.
 */
static bool xrds_nl_put_locked(struct sk_buff *skb, struct xrds_sock *xs)
{
	lockdep_assert_held(&xs->lock);

	if (xs->connected &&
	    (nla_put_in6_addr(skb, XRDS_A_SOCKET_FADDR, &xs->peer.addr) ||
	     nla_put_u16(skb, XRDS_A_SOCKET_FPORT, xs->peer.port)))
		return true;
	return nla_put_u32(skb, XRDS_A_SOCKET_FLAGS, xrds_nl_sock_flags(xs)) ||
	       nla_put_u8(skb, XRDS_A_SOCKET_TOS, xs->tos) ||
	       nla_put_u64_64bit(skb, XRDS_A_SOCKET_QUEUED_BYTES,
				 xs->queued_bytes, XRDS_A_SOCKET_PAD) ||
	       nla_put_u64_64bit(skb, XRDS_A_SOCKET_QUEUED_MSGS,
				 xs->queued_msgs, XRDS_A_SOCKET_PAD) ||
	       nla_put_u32(skb, XRDS_A_SOCKET_DESTS, xs->nr_dests) ||
	       nla_put_u32(skb, XRDS_A_SOCKET_NODES, xs->rdma.nr_nodes);
}

/**
 * struct xrds_nl_walk - a step of a dump that goes by sockets
 * @skb:	part of the answer
 * @cb:		the dump; args[0] is the number of the socket to go on with,
 *		args[1] the position among its objects
 * @view:	who looks
 */
struct xrds_nl_walk {
	struct sk_buff *skb;
	struct netlink_callback *cb;
	struct xrds_nl_view view;
};

static int xrds_nl_put_sock(struct xrds_nl_walk *w, struct xrds_sock *xs)
{
	u32 uid = from_kuid_munged(w->view.user_ns, xs->uid);
	u32 sndbuf = READ_ONCE(xs->dest_sndbuf) ?: xrds_sk_sndbuf(xs);
	struct sk_buff *skb = w->skb;
	void *hdr = xrds_nl_dump_put(skb, w->cb, XRDS_CMD_SOCKET_GET);
	bool full;

	if (!hdr)
		return -EMSGSIZE;
	spin_lock_bh(&xs->lock);
	full = xrds_nl_put_locked(skb, xs);
	spin_unlock_bh(&xs->lock);
	full = full || xrds_nl_put_bind(skb, xs) ||
	       nla_put_u32(skb, XRDS_A_SOCKET_ID, xs->id) ||
	       nla_put_u64_64bit(skb, XRDS_A_SOCKET_INODE, sock_i_ino(&xs->sk),
				 XRDS_A_SOCKET_PAD) ||
	       nla_put_u32(skb, XRDS_A_SOCKET_UID, uid) ||
	       nla_put_u32(skb, XRDS_A_SOCKET_PID, xrds_sk_pid(xs)) ||
	       nla_put_u32(skb, XRDS_A_SOCKET_SNDBUF, sndbuf) ||
	       nla_put_u32(skb, XRDS_A_SOCKET_RCVBUF, xrds_sk_rcvbuf(xs)) ||
	       nla_put_u64_64bit(skb, XRDS_A_SOCKET_RECV_BYTES,
				 READ_ONCE(xs->rcv_bytes), XRDS_A_SOCKET_PAD);
	return xrds_nl_dump_end(skb, hdr, full);
}

/* Calls @row with each socket that may be seen, until it does not return 0. */
static int xrds_nl_each_sock(struct xrds_nl_walk *w,
			     int (*row)(struct xrds_nl_walk *w,
					struct xrds_sock *xs))
{
	struct netlink_callback *cb = w->cb;
	unsigned long id = cb->args[0];
	unsigned int left = XRDS_NL_BATCH;
	struct xrds_sock *xs;
	int ret = 0;

	rcu_read_lock();
	for (;;) {
		xs = xa_find(&w->view.xn->sock_ids, &id, ULONG_MAX, XA_PRESENT);
		if (!xs)
			break;
		/* another socket is in the place of the last one */
		if (id != cb->args[0])
			cb->args[1] = 0;
		cb->args[0] = id;
		if (xrds_nl_sees(&w->view, xs))
			ret = row(w, xs);
		if (ret)
			break;
		cb->args[0] = ++id;
		cb->args[1] = 0;
		if (!--left) {
			rcu_read_unlock();
			cond_resched();
			rcu_read_lock();
			left = XRDS_NL_BATCH;
		}
	}
	rcu_read_unlock();
	return w->skb->len;
}

/**
 * xrds_nl_dump_socks - XRDS_CMD_SOCKET_GET
 * @skb: part of the answer
 * @cb: the dump
 *
 * Context: process, may sleep.
 * Return: length of the part, 0: there is no more.
 */
int xrds_nl_dump_socks(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct xrds_nl_walk w = {
		.skb = skb, .cb = cb, .view = xrds_nl_view(cb),
	};

	return xrds_nl_each_sock(&w, xrds_nl_put_sock);
}

/* ------------------------------------------------------------------ nodes */

static int xrds_nl_put_node(struct sk_buff *skb, struct netlink_callback *cb,
			    struct xrds_sock *xs, const struct xrds_rdma_peer *node)
{
	void *hdr = xrds_nl_dump_put(skb, cb, XRDS_CMD_NODE_GET);
	u64 issued, completed, armed;
	bool full;

	if (!hdr)
		return -EMSGSIZE;
	spin_lock_bh(&xs->lock);
	issued = node->issued;
	completed = node->completed;
	armed = node->armed;
	spin_unlock_bh(&xs->lock);
	full = nla_put_u32(skb, XRDS_A_NODE_SOCKET, xs->id) ||
	       nla_put_in6_addr(skb, XRDS_A_NODE_LADDR, &xs->bind.addr) ||
	       nla_put_u16(skb, XRDS_A_NODE_LPORT, xs->bind.port) ||
	       nla_put_in6_addr(skb, XRDS_A_NODE_FADDR, &node->key.addr) ||
	       (node->key.scope &&
		nla_put_u32(skb, XRDS_A_NODE_SCOPE, node->key.scope)) ||
	       nla_put_u64_64bit(skb, XRDS_A_NODE_ISSUED, issued,
				 XRDS_A_NODE_PAD) ||
	       nla_put_u64_64bit(skb, XRDS_A_NODE_COMPLETED, completed,
				 XRDS_A_NODE_PAD) ||
	       nla_put_u64_64bit(skb, XRDS_A_NODE_ARMED, armed,
				 XRDS_A_NODE_PAD);
	return xrds_nl_dump_end(skb, hdr, full);
}

static int xrds_nl_sock_nodes(struct xrds_nl_walk *w, struct xrds_sock *xs)
{
	const struct xrds_rdma_peer *node;
	long pos = 0;
	int ret;

	list_for_each_entry_rcu(node, &xs->rdma.nodes, rs_node) {
		if (pos++ < w->cb->args[1])
			continue;
		ret = xrds_nl_put_node(w->skb, w->cb, xs, node);
		if (ret)
			return ret;
		w->cb->args[1] = pos;
	}
	return 0;
}

/**
 * xrds_nl_dump_nodes - XRDS_CMD_NODE_GET
 * @skb: part of the answer
 * @cb: the dump
 *
 * Context: process, may sleep.
 * Return: length of the part, 0: there is no more.
 */
int xrds_nl_dump_nodes(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct xrds_nl_walk w = {
		.skb = skb, .cb = cb, .view = xrds_nl_view(cb),
	};

	return xrds_nl_each_sock(&w, xrds_nl_sock_nodes);
}

/* ----------------------------------------------------------- destinations */

/* programs compare the flags with those of XRDS_DEST_STATUS in <linux/xrds.h> */
static_assert(XRDS_DEST_FLAG_CONGESTED == XRDS_DEST_CONGESTED);
static_assert(XRDS_DEST_FLAG_BLOCKED == XRDS_DEST_BLOCKED);
static_assert(XRDS_DEST_FLAG_EOS_SENT == XRDS_DEST_EOS_SENT);
static_assert(XRDS_DEST_FLAG_EOS_RCVD == XRDS_DEST_EOS_RCVD);

static u32 xrds_nl_dest_flags(const struct xrds_dest *dest)
{
	bool sent = dest->eos == XRDS_EOS_QUEUED || dest->eos == XRDS_EOS_DONE;

	return (xrds_dest_blocked(dest) ? XRDS_DEST_FLAG_BLOCKED : 0) |
	       (sent ? XRDS_DEST_FLAG_EOS_SENT : 0) |
	       (sock_flag(&dest->key.xs->sk, SOCK_DEAD) ?
		XRDS_DEST_FLAG_CLOSED : 0);
}

static bool xrds_nl_put_dest_key(struct sk_buff *skb,
				 const struct xrds_dest *dest)
{
	const struct xrds_dest_key *key = &dest->key;
	const struct xrds_sock *xs = key->xs;

	return nla_put_u32(skb, XRDS_A_DEST_SOCKET, xs->id) ||
	       nla_put_in6_addr(skb, XRDS_A_DEST_LADDR, &xs->bind.addr) ||
	       nla_put_u16(skb, XRDS_A_DEST_LPORT, xs->bind.port) ||
	       nla_put_in6_addr(skb, XRDS_A_DEST_FADDR, &key->addr) ||
	       nla_put_u16(skb, XRDS_A_DEST_FPORT, key->port) ||
	       (key->scope &&
		nla_put_u32(skb, XRDS_A_DEST_SCOPE, key->scope));
}

static bool xrds_nl_put_progress(struct sk_buff *skb,
				 const struct xrds_dest *dest)
{
	return nla_put_u64_64bit(skb, XRDS_A_DEST_QUEUED_BYTES,
				 dest->queued_bytes, XRDS_A_DEST_PAD) ||
	       nla_put_u64_64bit(skb, XRDS_A_DEST_QUEUED_MSGS,
				 dest->queued_msgs, XRDS_A_DEST_PAD) ||
	       nla_put_u64_64bit(skb, XRDS_A_DEST_ACKED_MSGS,
				 dest->acked_msgs, XRDS_A_DEST_PAD) ||
	       nla_put_u64_64bit(skb, XRDS_A_DEST_PROGRESS_NS,
				 dest->last_progress_ns, XRDS_A_DEST_PAD);
}

static int xrds_nl_fill_dest(struct sk_buff *skb,
			     const struct xrds_nl_view *view, void *obj)
{
	struct xrds_dest *dest = obj;
	struct xrds_sock *xs = dest->key.xs;
	struct xrds_addr to = {
		.addr = dest->key.addr,
		.scope = dest->key.scope,
		.port = dest->key.port,
	};
	struct xrds_conn *conn;
	u32 flags;
	bool full;

	if (!xrds_nl_sees(view, xs))
		return -ENOENT;
	spin_lock_bh(&xs->lock);
	full = xrds_nl_put_progress(skb, dest);
	flags = xrds_nl_dest_flags(dest);
	conn = dest->flow.conn;
	if (conn)
		xrds_conn_get(conn);
	spin_unlock_bh(&xs->lock);
	if (conn) {
		full |= !!nla_put_u32(skb, XRDS_A_DEST_CONN_STATE,
				      READ_ONCE(conn->state));
		if (xrds_gate_shut(conn, &dest->flow))
			flags |= XRDS_DEST_FLAG_CONGESTED;
		xrds_conn_put(conn);
	}
	if (xrds_source_ended(xs, &to))
		flags |= XRDS_DEST_FLAG_EOS_RCVD;
	if (full || xrds_nl_put_dest_key(skb, dest) ||
	    nla_put_u32(skb, XRDS_A_DEST_FLAGS, flags) ||
	    nla_put_u32(skb, XRDS_A_DEST_SNDBUF, xrds_space_sndbuf(dest)))
		return -EMSGSIZE;
	return 0;
}

/* ----------------------------------------------------------- connections */

static int xrds_nl_fill_table_conn(struct sk_buff *skb,
				   const struct xrds_nl_view *view, void *obj)
{
	return xrds_nl_conn_fill(skb, obj, view->admin) ?:
	       xrds_nl_conn_fill_past(skb, obj);
}

/* ------------------------------------------------------------------ peers */

static int xrds_nl_fill_table_peer(struct sk_buff *skb,
				   const struct xrds_nl_view *view, void *obj)
{
	return xrds_nl_peer_fill(skb, obj, XRDS_PEER_STATE_IDLE);
}

/* ---------------------------------------------------------------- regions */

static int xrds_nl_put_mr(struct sk_buff *skb, const struct xrds_nl_view *view,
			  const struct xrds_mr *mr)
{
	const struct xrds_sock *xs = xrds_sk_of(mr->rs);
	u32 flags = (mr->write ? XRDS_REGION_FLAG_WRITE : 0) |
		    (mr->use_once ? XRDS_REGION_FLAG_USE_ONCE : 0);
	u32 uid = from_kuid_munged(view->user_ns, xs->uid);

	if (nla_put_u32(skb, XRDS_A_REGION_SOCKET, xs->id) ||
	    nla_put_u32(skb, XRDS_A_REGION_UID, uid) ||
	    nla_put_in6_addr(skb, XRDS_A_REGION_LADDR, &mr->key.addr) ||
	    nla_put_u16(skb, XRDS_A_REGION_LPORT, xs->bind.port) ||
	    nla_put_u32(skb, XRDS_A_REGION_RKEY, mr->key.rkey) ||
	    nla_put_u64_64bit(skb, XRDS_A_REGION_BYTES, mr->pin->bytes,
			      XRDS_A_REGION_PAD) ||
	    nla_put_u32(skb, XRDS_A_REGION_PAGES, mr->pin->nr_pages) ||
	    nla_put_u32(skb, XRDS_A_REGION_FLAGS, flags) ||
	    nla_put_string(skb, XRDS_A_REGION_TRANSPORT, mr->trans->name))
		return -EMSGSIZE;
	return 0;
}

/* The pages go with the last reference; the socket stays for the grace period
 * in which the region was still linked.
 */
static int xrds_nl_fill_mr(struct sk_buff *skb,
			   const struct xrds_nl_view *view, void *obj)
{
	struct xrds_mr *mr = obj;
	int ret = -ENOENT;

	if (!refcount_inc_not_zero(&mr->ref))
		return ret;
	if (READ_ONCE(mr->linked) && xrds_nl_sees(view, xrds_sk_of(mr->rs)))
		ret = xrds_nl_put_mr(skb, view, mr);
	xrds_mr_put(mr);
	return ret;
}

/* ----------------------------------------------------------- hash tables */

/**
 * struct xrds_nl_kind - a table that is dumped
 * @table:	its place in struct xrds_net
 * @fill:	puts the attributes of an object, in RCU context. Returns 0,
 *		-EMSGSIZE when there is no room, -ENOENT when it is not shown.
 */
struct xrds_nl_kind {
	size_t table;
	int (*fill)(struct sk_buff *skb, const struct xrds_nl_view *view,
		    void *obj);
};

static const struct xrds_nl_kind xrds_nl_kinds[] = {
	[XRDS_CMD_DEST_GET] = { offsetof(struct xrds_net, dests), xrds_nl_fill_dest },
	[XRDS_CMD_CONN_GET] = { offsetof(struct xrds_net, conns), xrds_nl_fill_table_conn },
	[XRDS_CMD_PEER_GET] = { offsetof(struct xrds_net, peers), xrds_nl_fill_table_peer },
	[XRDS_CMD_REGION_GET] = { offsetof(struct xrds_net, mrs), xrds_nl_fill_mr },
};

/**
 * struct xrds_nl_table - a dump of a table
 * @iter:	where it is
 * @cmd:	XRDS_CMD_*
 */
struct xrds_nl_table {
	struct rhashtable_iter iter;
	u8 cmd;
};

/**
 * xrds_nl_dump_start_table - begin the dump of a table
 * @cb: the dump; its command has an entry in xrds_nl_kinds
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int xrds_nl_dump_start_table(struct netlink_callback *cb)
{
	struct xrds_nl_table *t = kzalloc(sizeof(*t), GFP_KERNEL_ACCOUNT);
	void *xn = xrds_net(sock_net(cb->skb->sk));

	if (!t)
		return -ENOMEM;
	t->cmd = genl_dumpit_info(cb)->op.cmd;
	rhashtable_walk_enter(xn + xrds_nl_kinds[t->cmd].table, &t->iter);
	cb->args[0] = (long)t;
	/* the number of times that the table was resized, see below */
	cb->seq = 1;
	cb->prev_seq = 1;
	return 0;
}

/* Returns 0, or -EMSGSIZE when there is no room for the row. */
static int xrds_nl_table_row(struct sk_buff *skb, struct netlink_callback *cb,
			     const struct xrds_nl_view *view, void *obj)
{
	const struct xrds_nl_table *t = (void *)cb->args[0];
	void *hdr = xrds_nl_dump_put(skb, cb, t->cmd);
	int ret;

	if (!hdr)
		return -EMSGSIZE;
	ret = xrds_nl_kinds[t->cmd].fill(skb, view, obj);
	if (ret) {
		genlmsg_cancel(skb, hdr);
		return ret == -EMSGSIZE ? ret : 0;
	}
	/* it marks a row once for each change, and that row is one that is shown */
	genl_dump_check_consistent(cb, hdr);
	genlmsg_end(skb, hdr);
	return 0;
}

/* Shows at most XRDS_NL_BATCH rows. Returns 1 when there may be more, 0 at the
 * end, -EMSGSIZE when there is no room.
 */
static int xrds_nl_table_batch(struct sk_buff *skb, struct netlink_callback *cb,
			       const struct xrds_nl_view *view)
{
	struct xrds_nl_table *t = (void *)cb->args[0];
	unsigned int left = XRDS_NL_BATCH;
	void *obj, *at = t->iter.p;
	int ret = 1;

	if (rhashtable_walk_start_check(&t->iter)) {
		/* not each kernel forgets by itself what it was at */
		t->iter.p = NULL;
		cb->seq++;
	} else if (at && !t->iter.p) {
		/* it has left, and it goes on by its place in the chain */
		cb->seq++;
	}
	obj = rhashtable_walk_peek(&t->iter);
	for (; obj; obj = rhashtable_walk_next(&t->iter)) {
		/* resized: rows may come again */
		if (IS_ERR(obj)) {
			cb->seq++;
			continue;
		}
		if (!left--)
			break;
		ret = xrds_nl_table_row(skb, cb, view, obj);
		if (ret)
			break;
		ret = 1;
	}
	rhashtable_walk_stop(&t->iter);
	return obj ? ret : 0;
}

/**
 * xrds_nl_dump_table - the next part of a dump of a table
 * @skb: part of the answer
 * @cb: the dump
 *
 * Context: process, may sleep.
 * Return: length of the part, 0: there is no more.
 */
int xrds_nl_dump_table(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct xrds_nl_view view = xrds_nl_view(cb);

	while (xrds_nl_table_batch(skb, cb, &view) > 0)
		cond_resched();
	return skb->len;
}

/**
 * xrds_nl_dump_done_table - a dump of a table has ended, or was given up
 * @cb: the dump
 *
 * Context: process.
 * Return: 0.
 */
int xrds_nl_dump_done_table(struct netlink_callback *cb)
{
	struct xrds_nl_table *t = (void *)cb->args[0];

	if (t) {
		rhashtable_walk_exit(&t->iter);
		kfree(t);
	}
	return 0;
}

/**
 * xrds_nl_dump_put - begin a row
 * @skb: part of the answer
 * @cb: the dump
 * @cmd: XRDS_CMD_*
 *
 * Context: any.
 * Return: the row's head, for genlmsg_end(); NULL: there is no room.
 */
void *xrds_nl_dump_put(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd)
{
	return genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			   &xrds_netlink_family, NLM_F_MULTI, cmd);
}
