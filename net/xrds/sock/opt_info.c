// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDS_INFO_*: the objects of a namespace, in rows, through getsockopt().
 *
 * Layout and protocol are mainline RDS's; net.xrds.uek_rows adds the fields that
 * Oracle's UEK kernel has behind them. The call returns the size of a row,
 * and the length of all rows in optlen; a buffer that is too short gets
 * -ENOSPC, and the length that would do. Each dump exists twice: one has IPv4
 * only, the other has everything, IPv4 mapped into IPv6. A number
 * without rows of any loaded module is -ENOPROTOOPT. Anyone may ask, about the
 * namespace of the socket that is asked through.
 *
 * A walk counts all rows and fills in those that its buffer has room for. The
 * buffer is the kernel's, so that no lock is held while user space is written
 * to, and it is made for as many rows as the walk before has counted: the
 * size of a program's buffer never makes the kernel allocate more than the rows
 * need. Tables may change between two rows; each row is of one moment. No lock is
 * held for longer than a row, or some of messages, see opt_info_msg.c. An object
 * that is there all the while has one row.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/module.h>

#include "conn/conn.h"
#include "sock/sock.h"
#include "transport.h"
#include "xrds.h"

enum {
	/* walks until a table that grows all the time is given up on */
	XRDS_DUMP_TRIES		= 4,
	/* rows that may be added between two walks */
	XRDS_DUMP_SLACK		= 16,
	/* others get the processor in between */
	XRDS_DUMP_COPY_BYTES	= 64 << 10,
};

/* ---------------------------------------------------------- connections */

/* Messages that have no sequence number yet will get the next ones. */
static u64 xrds_conn_next_tx(struct xrds_conn *conn)
{
	lockdep_assert_held(&conn->lock);

	return conn->tx_seq + conn->nr_new + 1;
}

/* As mainline: 0 until something was received. */
static u64 xrds_conn_next_rx(const struct xrds_conn *conn)
{
	u64 next = READ_ONCE(conn->rx_next);

	return next > 1 ? next : 0;
}

static u8 xrds_conn_info_flags(const struct xrds_conn *conn)
{
	u8 flags = 0;

	switch (READ_ONCE(conn->state)) {
	case XRDS_ST_RESOLVING:
	case XRDS_ST_CONNECTING:
	case XRDS_ST_WAIT_CTS:
		return RDS_INFO_CONNECTION_FLAG_CONNECTING;
	case XRDS_ST_UP:
		flags = RDS_INFO_CONNECTION_FLAG_CONNECTED;
		if (conn->nr_new || !list_empty(&conn->again))
			flags |= RDS_INFO_CONNECTION_FLAG_SENDING;
		return flags;
	default:
		return 0;
	}
}

/* A connection that is not DEAD keeps its transport. */
static void xrds_dump_conn(struct xrds_dump *d, struct xrds_conn *conn)
{
	u64 tx, rx = xrds_conn_next_rx(conn);
	struct rds6_info_connection *row6;
	struct rds_info_connection *row4;
	u8 flags;

	lockdep_assert_held(&conn->lock);

	row6 = xrds_dump_row(d);
	row4 = (void *)row6;
	if (!row6)
		return;
	tx = xrds_conn_next_tx(conn);
	flags = xrds_conn_info_flags(conn);
	if (d->v6) {
		row6->next_tx_seq = tx;
		row6->next_rx_seq = rx;
		row6->laddr = conn->key.laddr;
		row6->faddr = conn->key.faddr;
		row6->flags = flags;
		strscpy((char *)row6->transport, conn->trans->name,
			sizeof(row6->transport));
	} else {
		row4->next_tx_seq = tx;
		row4->next_rx_seq = rx;
		row4->laddr = conn->key.laddr.s6_addr32[3];
		row4->faddr = conn->key.faddr.s6_addr32[3];
		row4->flags = flags;
		row4->tos = conn->key.tos;
		strscpy((char *)row4->transport, conn->trans->name,
			sizeof(row4->transport));
	}
}

static int xrds_dump_conns(struct xrds_dump *d)
{
	struct xrds_conn *conn = NULL;

	while ((conn = xrds_conn_net_walk(d->xn, conn))) {
		if (!xrds_dump_takes(d, &conn->key.laddr))
			continue;
		spin_lock_bh(&conn->lock);
		if (conn->state != XRDS_ST_DEAD)
			xrds_dump_conn(d, conn);
		spin_unlock_bh(&conn->lock);
	}
	return 0;
}

static_assert(sizeof(struct xrds_uek_path) == 37);
static_assert(sizeof(struct xrds_uek_conn_paths) == 346);

/* Jiffies of the past as seconds since 1970; 0 for none */
static s64 xrds_dump_seconds(unsigned long at)
{
	return at ? ktime_get_real_seconds() - (long)(jiffies - at) / HZ : 0;
}

static u32 xrds_dump_reason(const struct xrds_conn *conn)
{
	switch (READ_ONCE(conn->lost_by)) {
	case -ECONNABORTED:
		return XRDS_UEK_REASON_USER_RESET;
	case -ETIMEDOUT:
		return XRDS_UEK_REASON_TIMEOUT;
	default:
		return XRDS_UEK_REASON_NONE;
	}
}

static void xrds_dump_path(struct xrds_conn *conn,
			   struct xrds_uek_conn_paths *row)
{
	struct xrds_uek_path *path = &row->paths[0];

	memcpy(row->local_addr, &conn->key.laddr, sizeof(row->local_addr));
	memcpy(row->peer_addr, &conn->key.faddr, sizeof(row->peer_addr));
	row->tos = conn->key.tos;
	row->npaths = 1;
	path->attempt_time = xrds_dump_seconds(READ_ONCE(conn->dialled_at));
	path->connect_time = xrds_dump_seconds(READ_ONCE(conn->up_at));
	path->reset_time = xrds_dump_seconds(READ_ONCE(conn->lost_at));
	path->disconnect_reason = xrds_dump_reason(conn);
	path->connect_attempts = READ_ONCE(conn->retries);
	spin_lock_bh(&conn->lock);
	path->flags = xrds_conn_info_flags(conn);
	/* a transport may go when its connections are dead */
	if (conn->state != XRDS_ST_DEAD)
		strscpy((char *)row->transport, conn->trans->name,
			sizeof(row->transport));
	spin_unlock_bh(&conn->lock);
}

static int xrds_dump_paths(struct xrds_dump *d)
{
	struct xrds_conn *conn = NULL;
	void *row;

	while ((conn = xrds_conn_net_walk(d->xn, conn))) {
		if (!xrds_dump_takes(d, &conn->key.laddr))
			continue;
		row = xrds_dump_row(d);
		if (row)
			xrds_dump_path(conn, row);
	}
	return 0;
}

static void xrds_dump_rdma_conn(struct xrds_conn *conn, void *row, bool v6)
{
	struct rds6_info_rdma_connection all = {
		.src_addr = conn->key.laddr,
		.dst_addr = conn->key.faddr,
		.tos	  = conn->key.tos,
	};
	struct rds_info_rdma_connection *row4 = row;

	/* tx_lock keeps the endpoint */
	spin_lock_bh(&conn->tx_lock);
	if (conn->ep && READ_ONCE(conn->state) == XRDS_ST_UP)
		conn->trans->describe(conn, &all);
	spin_unlock_bh(&conn->tx_lock);

	/* the rows end with padding, which is zero and stays it */
	if (v6) {
		memcpy(row, &all, offsetofend(struct rds6_info_rdma_connection, sl));
	} else {
		row4->src_addr = all.src_addr.s6_addr32[3];
		row4->dst_addr = all.dst_addr.s6_addr32[3];
		memcpy(row4->src_gid, all.src_gid, sizeof(row4->src_gid));
		memcpy(row4->dst_gid, all.dst_gid, sizeof(row4->dst_gid));
		row4->max_send_wr = all.max_send_wr;
		row4->max_recv_wr = all.max_recv_wr;
		row4->max_send_sge = all.max_send_sge;
		row4->rdma_mr_max = all.rdma_mr_max;
		row4->rdma_mr_size = all.rdma_mr_size;
		row4->tos = all.tos;
		row4->sl = all.sl;
	}
}

static_assert(sizeof(struct rds_info_rdma_connection) +
	      sizeof(struct xrds_uek_rdma_more) == 176);
static_assert(sizeof(struct rds6_info_rdma_connection) +
	      sizeof(struct xrds_uek_rdma_more) == 200);

static void xrds_dump_rdma_more(struct xrds_dump *d, struct xrds_conn *conn,
				struct xrds_uek_rdma_more *row)
{
	struct xrds_conn_detail detail = {};

	/* tx_lock keeps the endpoint */
	spin_lock_bh(&conn->tx_lock);
	if (conn->ep && READ_ONCE(conn->state) == XRDS_ST_UP)
		conn->trans->detail(conn, &detail);
	spin_unlock_bh(&conn->tx_lock);
	row->fragment = detail.fragment;
	row->recv_window = min_t(u32, detail.recv_window, U16_MAX);
	row->credits = min_t(u32, detail.credits, U16_MAX);
	row->qpn = -1;
	row->peer_qpn = -1;
	if (detail.qpn && ns_capable(d->xn->net->user_ns, CAP_NET_ADMIN)) {
		row->qpn = detail.qpn;
		row->peer_qpn = detail.peer_qpn;
	}
	spin_lock_bh(&conn->lock);
	row->tx_bytes = conn->tx_bytes;
	spin_unlock_bh(&conn->lock);
	row->rx_bytes = READ_ONCE(conn->rx_bytes);
	row->vectors[0] = -1;
	row->vectors[1] = -1;
}

static int xrds_dump_rdma_conns(struct xrds_dump *d)
{
	const struct xrds_transport *trans = xrds_transport_get(RDS_TRANS_IB);
	struct xrds_conn *conn = NULL;
	void *row;

	if (!trans)
		return -ENOPROTOOPT;

	while ((conn = xrds_conn_net_walk(d->xn, conn))) {
		if (conn->trans != trans ||
		    !xrds_dump_takes(d, &conn->key.laddr))
			continue;
		row = xrds_dump_row(d);
		if (row)
			xrds_dump_rdma_conn(conn, row, d->v6);
		if (row && d->tail)
			xrds_dump_rdma_more(d, conn, row + d->tail);
	}
	module_put(trans->owner);
	return 0;
}

/* There are no sockets of TCP: rds-info takes an error for a failure. */
static int xrds_dump_none(struct xrds_dump *d)
{
	return 0;
}

/* -------------------------------------------------------------- sockets */

static void xrds_dump_sock(struct xrds_sock *xs, void *row, bool v6)
{
	struct rds6_info_socket *row6 = row;
	struct rds_info_socket *row4 = row;
	struct xrds_addr peer = {};

	/* see xrds_connect() */
	spin_lock_bh(&xs->lock);
	if (xs->connected)
		peer = xs->peer;
	spin_unlock_bh(&xs->lock);

	if (v6) {
		row6->sndbuf = xrds_sk_sndbuf(xs);
		row6->rcvbuf = xrds_sk_rcvbuf(xs);
		if (xrds_sk_bound(xs)) {
			row6->bound_addr = xs->bind.addr;
			row6->bound_port = htons(xs->bind.port);
		}
		row6->connected_addr = peer.addr;
		row6->connected_port = htons(peer.port);
		row6->inum = sock_i_ino(&xs->sk);
	} else {
		row4->sndbuf = xrds_sk_sndbuf(xs);
		row4->rcvbuf = xrds_sk_rcvbuf(xs);
		row4->bound_addr = xs->bind.addr.s6_addr32[3];
		row4->bound_port = htons(xs->bind.port);
		row4->connected_addr = peer.addr.s6_addr32[3];
		row4->connected_port = htons(peer.port);
		row4->inum = sock_i_ino(&xs->sk);
	}
}

static_assert(sizeof(struct xrds_uek_socket_more) == 8);

/* The process is told as by netlink: to the user, and to administrators. */
static void xrds_dump_sock_more(struct xrds_dump *d, struct xrds_sock *xs,
				struct xrds_uek_socket_more *row)
{
	if (uid_eq(current_euid(), xs->uid) ||
	    ns_capable(d->xn->net->user_ns, CAP_NET_ADMIN))
		row->pid = xrds_sk_pid(xs);
	row->congested = READ_ONCE(xs->port.congested) ? 1 : -1;
}

/* Sockets that are not bound are in the larger dump only. */
static int xrds_dump_socks(struct xrds_dump *d)
{
	struct xrds_sock *xs = NULL;
	void *row;

	while ((xs = xrds_walk_sock(d->xn, xs))) {
		if (!d->v6 && (!xrds_sk_bound(xs) ||
			       !ipv6_addr_v4mapped(&xs->bind.addr)))
			continue;
		row = xrds_dump_row(d);
		if (row)
			xrds_dump_sock(xs, row, d->v6);
		if (row && d->tail)
			xrds_dump_sock_more(d, xs, row + d->tail);
	}
	return 0;
}

/* ----------------------------------------------------------------- call */

/**
 * struct xrds_dump_kind - one of the dumps
 * @walk:	makes the rows; NULL: there is no such dump. Returns 0 or a
 *		negative errno
 * @each:	size of a row, bytes
 * @more:	size of the fields that Oracle's UEK kernel has behind it, bytes
 * @v6:		has addresses of both families
 */
struct xrds_dump_kind {
	int (*walk)(struct xrds_dump *d);
	u16 each;
	u16 more;
	bool v6;
};

static int xrds_dump_counter(void *arg, const struct xrds_counter_row *from)
{
	struct rds_info_counter *row = xrds_dump_row(arg);

	if (row) {
		strscpy((char *)row->name, from->name, sizeof(row->name));
		row->value = from->value;
	}
	return 0;
}

/* The counters, those of transports included. */
static int xrds_dump_counters(struct xrds_dump *d)
{
	return xrds_stats_each(d->xn, xrds_dump_counter, d);
}

#define XRDS_DUMP(_what, _walk, _row, _v6, ...) \
	[(_what) - RDS_INFO_FIRST] = { \
		.walk = _walk, .each = sizeof(struct _row), .v6 = _v6, \
		##__VA_ARGS__ }
#define XRDS_MORE(_row)		.more = sizeof(struct _row)

static const struct xrds_dump_kind
xrds_dump_kinds[XRDS_INFO_LAST - RDS_INFO_FIRST + 1] = {
	XRDS_DUMP(RDS_INFO_COUNTERS, xrds_dump_counters,
		  rds_info_counter, false),
	XRDS_DUMP(RDS_INFO_CONNECTIONS, xrds_dump_conns,
		  rds_info_connection, false),
	XRDS_DUMP(RDS_INFO_SEND_MESSAGES, xrds_opt_info_msg_send,
		  rds_info_message, false),
	XRDS_DUMP(RDS_INFO_RETRANS_MESSAGES, xrds_opt_info_msg_retrans,
		  rds_info_message, false),
	XRDS_DUMP(RDS_INFO_RECV_MESSAGES, xrds_opt_info_msg_recv,
		  rds_info_message, false),
	XRDS_DUMP(RDS_INFO_SOCKETS, xrds_dump_socks,
		  rds_info_socket, false, XRDS_MORE(xrds_uek_socket_more)),
	XRDS_DUMP(RDS_INFO_TCP_SOCKETS, xrds_dump_none,
		  rds_info_tcp_socket, false),
	XRDS_DUMP(RDS_INFO_IB_CONNECTIONS, xrds_dump_rdma_conns,
		  rds_info_rdma_connection, false,
		  XRDS_MORE(xrds_uek_rdma_more)),
	XRDS_DUMP(RDS6_INFO_CONNECTIONS, xrds_dump_conns,
		  rds6_info_connection, true),
	XRDS_DUMP(RDS6_INFO_SEND_MESSAGES, xrds_opt_info_msg_send,
		  rds6_info_message, true),
	XRDS_DUMP(RDS6_INFO_RETRANS_MESSAGES, xrds_opt_info_msg_retrans,
		  rds6_info_message, true),
	XRDS_DUMP(RDS6_INFO_RECV_MESSAGES, xrds_opt_info_msg_recv,
		  rds6_info_message, true),
	XRDS_DUMP(RDS6_INFO_SOCKETS, xrds_dump_socks,
		  rds6_info_socket, true, XRDS_MORE(xrds_uek_socket_more)),
	XRDS_DUMP(RDS6_INFO_TCP_SOCKETS, xrds_dump_none,
		  rds6_info_tcp_socket, true),
	XRDS_DUMP(RDS6_INFO_IB_CONNECTIONS, xrds_dump_rdma_conns,
		  rds6_info_rdma_connection, true,
		  XRDS_MORE(xrds_uek_rdma_more)),
	XRDS_DUMP(XRDS_UEK_INFO_CONN_PATHS, xrds_dump_paths,
		  xrds_uek_conn_paths, false),
	XRDS_DUMP(XRDS_UEK_INFO6_CONN_PATHS, xrds_dump_paths,
		  xrds_uek_conn_paths, true),
};

/* Walk until all rows have found room, or cannot. */
static int xrds_dump_make(struct xrds_dump *d, const struct xrds_dump_kind *k,
			  size_t most)
{
	int tries = XRDS_DUMP_TRIES;
	int ret;

	for (;;) {
		d->nr = 0;
		ret = k->walk(d);
		if (ret || d->nr <= d->room)
			return ret;
		if (d->nr > most || !tries--)
			return -ENOSPC;
		kvfree(d->rows);
		d->room = min_t(size_t, most, d->nr + XRDS_DUMP_SLACK);
		d->rows = kvcalloc(d->room, d->each, GFP_KERNEL_ACCOUNT);
		if (!d->rows)
			return -ENOMEM;
		cond_resched();
	}
}

static int xrds_dump_copy(char __user *to, const char *rows, size_t bytes)
{
	size_t n;

	for (; bytes; bytes -= n) {
		n = min_t(size_t, bytes, XRDS_DUMP_COPY_BYTES);
		if (copy_to_user(to, rows, n))
			return -EFAULT;
		to += n;
		rows += n;
		cond_resched();
	}
	return 0;
}

/**
 * xrds_opt_info_getsockopt - RDS_INFO_*
 * @sk: socket
 * @optname: which
 * @optval: user buffer
 * @optlen: user's length; out: bytes written or needed
 *
 * Context: process, may sleep.
 * Return: size of one row, or -ENOSPC, -EFAULT, -EINVAL, -ENOMEM,
 * -ENOPROTOOPT.
 */
int xrds_opt_info_getsockopt(struct sock *sk, int optname, char __user *optval,
			     int __user *optlen)
{
	const struct xrds_dump_kind *kind;
	struct xrds_dump d = {};
	int len, ret;
	u64 bytes;

	if (get_user(len, optlen))
		return -EFAULT;
	/* the length of the rows, rounded up to pages, is an int as well */
	if (len < 0 || len > INT_MAX - (int)PAGE_SIZE + 1)
		return -EINVAL;

	kind = &xrds_dump_kinds[optname - RDS_INFO_FIRST];
	if (!kind->walk)
		return -ENOPROTOOPT;
	d.xn = xrds_sk(sk)->xn;
	d.v6 = kind->v6;
	d.each = kind->each;
	if (kind->more && READ_ONCE(d.xn->uek_rows)) {
		d.tail = kind->each;
		d.each += kind->more;
	}

	ret = xrds_dump_make(&d, kind, len / d.each);
	bytes = (u64)d.nr * d.each;
	if (!ret)
		ret = xrds_dump_copy(optval, d.rows, bytes);
	kvfree(d.rows);
	if ((!ret || ret == -ENOSPC) &&
	    put_user((int)min_t(u64, bytes, INT_MAX), optlen))
		return -EFAULT;
	return ret ?: d.each;
}
