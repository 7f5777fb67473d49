// SPDX-License-Identifier: GPL-2.0-only
/*
 * Socket options: from a system call's argument to the function of the file
 * that owns the matter. Here sizes and addresses are judged, and the argument
 * is copied in and out; nothing else.
 *
 * An option of XRDS must have exactly its size when set, and at least that much
 * space when read. An option of mainline RDS is taken with the sizes that
 * mainline takes.
 */
#include "conn/conn.h"
#include "sock/dest.h"
#include "msg.h"
#include "rdma/rdma.h"
#include "sock/sock.h"
#include "transport.h"
#include "xrds.h"

/* Destinations and sources are walked in steps: all of it, or nothing. */
static int xrds_set_node_events(struct xrds_sock *xs, bool on)
{
	bool was;
	int ret;

	lock_sock(&xs->sk);
	was = READ_ONCE(xs->node_events);
	ret = xrds_dest_watch_all(xs, on);
	if (ret && !was)
		xrds_dest_watch_all(xs, false);
	release_sock(&xs->sk);
	return ret;
}

/* Options that are on or off. Those of other implementations may be longer than an int. */
static int xrds_set_flag(struct xrds_sock *xs, int optname, sockptr_t optval,
			 unsigned int optlen)
{
	bool longer = optname == RDS_RECVERR || optname == RDS_CONG_MONITOR ||
		      optname == XRDS_UEK_INQ;
	int value;

	if (longer ? optlen < sizeof(value) : optlen != sizeof(value))
		return -EINVAL;
	if (copy_from_sockptr(&value, optval, sizeof(value)))
		return -EFAULT;

	switch (optname) {
	case RDS_RECVERR:
		WRITE_ONCE(xs->rdma.recverr, !!value);
		break;
	case RDS_CONG_MONITOR:
		xrds_monitor_set(xs, value);
		break;
	case XRDS_UEK_INQ:
		WRITE_ONCE(xs->inq, !!value);
		break;
	case XRDS_CONG_EAGAIN:
		WRITE_ONCE(xs->cong_eagain, !!value);
		break;
	case XRDS_DELIVERED_EVENT:
		xrds_delivered_set(xs, value);
		break;
	case XRDS_NODE_EVENTS:
		return xrds_set_node_events(xs, value);
	}
	return 0;
}

/* The socket is locked. */
static int xrds_sockopt_set_dest_sndbuf(struct xrds_sock *xs,
					const struct xrds_dest_sndbuf *arg)
{
	struct xrds_dest *dest;
	struct xrds_addr to;
	__poll_t mask;
	bool linked;
	int ret;

	if (arg->reserved)
		return -EINVAL;
	if (arg->dest.ss_family == AF_UNSPEC) {
		WRITE_ONCE(xs->dest_sndbuf, arg->bytes);
		xrds_space_changed(&xs->sk);
		return 0;
	}
	ret = xrds_addr_parse(&to, &arg->dest, sizeof(arg->dest));
	if (ret || xrds_addr_check_dest(&to))
		return -EINVAL;
	if (!xrds_sk_bound(xs))
		return -ENOTCONN;
	ret = xrds_dest_addr_fits(xs, &to);
	if (ret)
		return ret;

	do {
		dest = xrds_dest_find_or_create(xs, &to);
		if (IS_ERR(dest))
			return PTR_ERR(dest);
		spin_lock_bh(&xs->lock);
		/* else another thread needed its place, meanwhile */
		linked = dest->linked;
		WRITE_ONCE(dest->sndbuf, arg->bytes);
		mask = xrds_space_resized(dest);
		spin_unlock_bh(&xs->lock);
		xrds_space_wake(&dest->flow, mask);
		xrds_dest_put(dest);
	} while (!linked);
	return 0;
}

static int xrds_set_dest_sndbuf(struct xrds_sock *xs, sockptr_t optval,
				unsigned int optlen)
{
	struct xrds_dest_sndbuf arg;
	int ret;

	if (optlen != sizeof(arg))
		return -EINVAL;
	if (copy_from_sockptr(&arg, optval, sizeof(arg)))
		return -EFAULT;
	lock_sock(&xs->sk);
	ret = xrds_sockopt_set_dest_sndbuf(xs, &arg);
	release_sock(&xs->sk);
	return ret;
}

/* No address: to all destinations. */
static int xrds_cancel_sent_to(struct xrds_sock *xs, sockptr_t optval,
			       unsigned int optlen)
{
	struct sockaddr_storage ss;
	struct xrds_addr to;

	if (!xrds_sk_bound(xs))
		return -ENOTCONN;
	if (!optlen) {
		if (mutex_lock_killable(&xs->walk_lock))
			return -EINTR;
		xrds_cancel_all(xs);
		mutex_unlock(&xs->walk_lock);
		return 0;
	}
	if (optlen < sizeof(struct sockaddr_in) || optlen > sizeof(ss))
		return -EINVAL;
	if (copy_from_sockptr(&ss, optval, optlen))
		return -EFAULT;
	/* mainline does not look at the family, nor at the interface */
	if (!ss.ss_family)
		ss.ss_family = optlen < sizeof(struct sockaddr_in6) ? AF_INET :
								      AF_INET6;
	if (xrds_addr_parse(&to, &ss, optlen))
		return -EINVAL;
	/* a socket with a link-local address sends through its interface alone */
	to.scope = to.scope ?: xs->bind.scope;
	xrds_cancel_to(xs, &to);
	return 0;
}

static int xrds_set_reply_reserve(struct xrds_sock *xs, sockptr_t optval,
				  unsigned int optlen)
{
	u32 bytes;
	int ret;

	if (optlen != sizeof(bytes))
		return -EINVAL;
	if (copy_from_sockptr(&bytes, optval, sizeof(bytes)))
		return -EFAULT;
	if (mutex_lock_killable(&xs->walk_lock))
		return -EINTR;
	ret = xrds_reply_set(xs, bytes);
	mutex_unlock(&xs->walk_lock);
	return ret;
}

static int xrds_reply_release(struct xrds_sock *xs, sockptr_t optval,
			      unsigned int optlen)
{
	struct sockaddr_storage ss;
	struct xrds_addr to;

	if (optlen != sizeof(ss))
		return -EINVAL;
	if (copy_from_sockptr(&ss, optval, sizeof(ss)))
		return -EFAULT;
	if (xrds_addr_parse(&to, &ss, sizeof(ss)))
		return -EINVAL;
	return xrds_sockopt_release_reply(xs, &to);
}

/* The arguments of RDS_GET_MR_FOR_DEST end with those of RDS_GET_MR. */
static_assert(offsetof(struct rds_get_mr_for_dest_args, vec) +
	      sizeof(struct rds_get_mr_args) ==
	      sizeof(struct rds_get_mr_for_dest_args));
static_assert(offsetof(struct rds_get_mr_for_dest_args, flags) ==
	      offsetof(struct rds_get_mr_for_dest_args, vec) +
	      offsetof(struct rds_get_mr_args, flags));

/* @skip bytes before the arguments are not looked at: keys serve every peer, so a
 * destination says nothing that is needed.
 */
static int xrds_get_mr(struct xrds_sock *xs, sockptr_t optval,
		       unsigned int optlen, size_t skip)
{
	long timeo = MAX_SCHEDULE_TIMEOUT;
	struct rds_get_mr_args args;
	u64 cookie;

	if (optlen != skip + sizeof(args))
		return -EINVAL;
	if (copy_from_sockptr_offset(&args, optval, skip, sizeof(args)))
		return -EFAULT;
	if (!xrds_sk_bound(xs))
		return -ENOTCONN;
	return xrds_mr_create(&xs->rdma, xs->trans, &args, &cookie, &timeo);
}

static int xrds_free_mr(struct xrds_sock *xs, sockptr_t optval,
			unsigned int optlen)
{
	struct rds_free_mr_args args;

	if (optlen != sizeof(args))
		return -EINVAL;
	if (copy_from_sockptr(&args, optval, sizeof(args)))
		return -EFAULT;
	/* it has no region at all */
	if (!xrds_sk_bound(xs))
		return -EINVAL;
	return xrds_mr_free(&xs->rdma, &args);
}

/* Once, and before the bound address decides. */
static int xrds_set_transport(struct xrds_sock *xs, sockptr_t optval,
			      unsigned int optlen)
{
	int type, ret = 0, fault = 0;

	/* not with the socket locked: a fault may last */
	if (optlen == sizeof(type))
		fault = copy_from_sockptr(&type, optval, sizeof(type));
	lock_sock(&xs->sk);
	if (xs->trans)
		ret = -EOPNOTSUPP;
	else if (optlen != sizeof(type))
		ret = -EINVAL;
	else if (fault)
		ret = -EFAULT;
	else if (type < 0 || type >= RDS_TRANS_COUNT)
		ret = -EINVAL;
	if (!ret) {
		xs->trans = xrds_transport_get(type);
		ret = xs->trans ? 0 : -ENOPROTOOPT;
	}
	release_sock(&xs->sk);
	return ret;
}

/* mainline's errors: a size that is wrong is a fault */
static int xrds_set_stamp(struct xrds_sock *xs, int optname, sockptr_t optval,
			  unsigned int optlen)
{
	int value;

	if (optlen != sizeof(value) ||
	    copy_from_sockptr(&value, optval, sizeof(value)))
		return -EFAULT;
	return xrds_timestamp_set_sock(xs, optname, value);
}

static int xrds_set_trace(struct xrds_sock *xs, sockptr_t optval,
			  unsigned int optlen)
{
	struct rds_rx_trace_so arg;

	if (optlen != sizeof(arg) ||
	    copy_from_sockptr(&arg, optval, sizeof(arg)))
		return -EFAULT;
	return xrds_timestamp_set(xs, &arg);
}

/**
 * xrds_setsockopt - proto_ops.setsockopt
 * @sock: socket
 * @level: SOL_RDS; SOL_SOCKET does not come here
 * @optname: option
 * @optval: argument
 * @optlen: its size, bytes
 *
 * Context: process, may sleep.
 * Return: 0, -ENOPROTOOPT for an unknown option, -EINVAL for a wrong size, and the
 * errors of each option in xrds(7).
 */
int xrds_setsockopt(struct socket *sock, int level, int optname,
		    sockptr_t optval, unsigned int optlen)
{
	struct xrds_sock *xs = xrds_sk(sock->sk);

	if (level != SOL_RDS)
		return -ENOPROTOOPT;

	switch (optname) {
	case RDS_CANCEL_SENT_TO:
		return xrds_cancel_sent_to(xs, optval, optlen);
	case RDS_RECVERR:
	case RDS_CONG_MONITOR:
	case XRDS_UEK_INQ:
	case XRDS_CONG_EAGAIN:
	case XRDS_DELIVERED_EVENT:
	case XRDS_NODE_EVENTS:
		return xrds_set_flag(xs, optname, optval, optlen);
	case SO_RDS_TRANSPORT:
		/* the same number */
		if (optlen == sizeof(struct xrds_uek_reset))
			return xrds_opt_uek_reset4(xs, optval);
		fallthrough;
	case XRDS_UEK_TRANSPORT:
		return xrds_set_transport(xs, optval, optlen);
	case XRDS_UEK_CONN_RESET6:
		return xrds_opt_uek_reset6(xs, optval, optlen);
	case XRDS_DEST_SNDBUF:
		return xrds_set_dest_sndbuf(xs, optval, optlen);
	case RDS_GET_MR:
		return xrds_get_mr(xs, optval, optlen, 0);
	case RDS_GET_MR_FOR_DEST:
		return xrds_get_mr(xs, optval, optlen,
				   offsetof(struct rds_get_mr_for_dest_args, vec));
	case RDS_FREE_MR:
		return xrds_free_mr(xs, optval, optlen);
	case XRDS_REPLY_RESERVE:
		return xrds_set_reply_reserve(xs, optval, optlen);
	case XRDS_REPLY_RELEASE:
		return xrds_reply_release(xs, optval, optlen);
	case SO_TIMESTAMP_OLD:
	case SO_TIMESTAMP_NEW:
		return xrds_set_stamp(xs, optname, optval, optlen);
	case SO_RDS_MSG_RXPATH_LATENCY:
		return xrds_set_trace(xs, optval, optlen);
	default:
		return -ENOPROTOOPT;
	}
}

static int xrds_get_int(int value, char __user *optval, int __user *optlen,
			int len)
{
	if (len < (int)sizeof(value))
		return -EINVAL;
	if (put_user(value, (int __user *)optval) ||
	    put_user((int)sizeof(value), optlen))
		return -EFAULT;
	return 0;
}

static int xrds_opt_transport(struct xrds_sock *xs)
{
	int type;

	lock_sock(&xs->sk);
	type = xs->trans ? xs->trans->type : RDS_TRANS_NONE;
	release_sock(&xs->sk);
	return type;
}

static int xrds_sockopt_get_dest_sndbuf(struct xrds_sock *xs,
					struct xrds_dest_sndbuf *arg)
{
	struct xrds_dest *dest;
	struct xrds_addr to;

	arg->bytes = READ_ONCE(xs->dest_sndbuf) ?: xrds_sk_sndbuf(xs);
	arg->reserved = 0;
	if (arg->dest.ss_family == AF_UNSPEC)
		return 0;
	if (xrds_addr_parse(&to, &arg->dest, sizeof(arg->dest)) ||
	    xrds_addr_check_dest(&to))
		return -EINVAL;
	dest = xrds_dest_find(xs, &to);
	if (dest) {
		arg->bytes = xrds_space_sndbuf(dest);
		xrds_dest_put(dest);
	}
	return 0;
}

static int xrds_get_dest_sndbuf(struct xrds_sock *xs, char __user *optval,
				int __user *optlen, int len)
{
	struct xrds_dest_sndbuf arg;
	int ret;

	if (len < (int)sizeof(arg))
		return -EINVAL;
	if (copy_from_user(&arg, optval, sizeof(arg)))
		return -EFAULT;
	ret = xrds_sockopt_get_dest_sndbuf(xs, &arg);
	if (ret)
		return ret;
	if (copy_to_user(optval, &arg, sizeof(arg)) ||
	    put_user((int)sizeof(arg), optlen))
		return -EFAULT;
	return 0;
}

static void xrds_opt_fill_status(struct xrds_dest *dest,
				 struct xrds_dest_status *st)
{
	struct xrds_sock *xs = dest->key.xs;

	st->sndbuf = xrds_space_sndbuf(dest);
	spin_lock_bh(&xs->lock);
	st->reserved_bytes = xrds_space_nr_reserved(dest) * xs->reply_reserve;
	st->queued_bytes = dest->queued_bytes;
	st->queued_msgs = dest->queued_msgs;
	st->acked_msgs = dest->acked_msgs;
	st->last_progress_ns = dest->last_progress_ns;
	if (xrds_dest_blocked(dest))
		st->flags |= XRDS_DEST_BLOCKED;
	if (dest->eos == XRDS_EOS_QUEUED || dest->eos == XRDS_EOS_DONE)
		st->flags |= XRDS_DEST_EOS_SENT;
	spin_unlock_bh(&xs->lock);
}

static u64 xrds_opt_inflight(const struct xrds_dest *dest,
			     struct xrds_conn *conn)
{
	u64 bytes = 0;

	spin_lock_bh(&conn->lock);
	if (dest && dest->flow.conn == conn)
		bytes = dest->flow.inflight_bytes;
	spin_unlock_bh(&conn->lock);
	return bytes;
}

/* Something queued means that a connection is being made, or soon will be. */
static u32 xrds_opt_conn_state(const struct xrds_conn *conn, bool queued)
{
	enum xrds_state state = READ_ONCE(conn->state);

	if (state == XRDS_ST_UP)
		return XRDS_DEST_UP;
	if (READ_ONCE(conn->failed))
		return XRDS_DEST_ERROR;
	if (queued || state == XRDS_ST_RESOLVING ||
	    state == XRDS_ST_CONNECTING || state == XRDS_ST_WAIT_CTS)
		return XRDS_DEST_CONNECTING;
	return XRDS_DEST_IDLE;
}

/* A destination that was never used is empty. Its connection may have other users:
 * then the state of that is told.
 */
static int xrds_sockopt_dest_status(struct xrds_sock *xs,
				    struct xrds_dest_status *st)
{
	struct xrds_conn *conn;
	struct xrds_dest *dest;
	struct xrds_addr to;

	if (xrds_addr_parse(&to, &st->dest, sizeof(st->dest)) ||
	    xrds_addr_check_dest(&to))
		return -EINVAL;
	if (!xrds_sk_bound(xs))
		return -ENOTCONN;

	memset_startat(st, 0, state);
	st->sndbuf = READ_ONCE(xs->dest_sndbuf) ?: xrds_sk_sndbuf(xs);
	xrds_rdma_peer_marks(&xs->rdma, &to, &st->rdma_issued,
			     &st->rdma_completed);
	if (xrds_source_ended(xs, &to))
		st->flags |= XRDS_DEST_EOS_RCVD;

	dest = xrds_dest_find(xs, &to);
	if (dest)
		xrds_opt_fill_status(dest, st);
	else
		xrds_past_status(xs, &to, &st->acked_msgs,
				 &st->last_progress_ns);
	conn = dest ? xrds_flow_conn(&dest->flow) : NULL;
	/* others may use one */
	if (!conn)
		conn = xrds_dest_peek_conn(xs, &to);
	if (conn) {
		st->state = xrds_opt_conn_state(conn, st->queued_msgs);
		/* some of it may have been queued since */
		st->inflight_bytes = min(xrds_opt_inflight(dest, conn),
					 st->queued_bytes);
		if (xrds_gate_port_shut(conn, to.port))
			st->flags |= XRDS_DEST_CONGESTED;
		xrds_conn_put(conn);
	}
	if (dest)
		xrds_dest_put(dest);
	return 0;
}

static int xrds_get_dest_status(struct xrds_sock *xs, char __user *optval,
				int __user *optlen, int len)
{
	struct xrds_dest_status st;
	int ret;

	if (len < (int)sizeof(st))
		return -EINVAL;
	if (copy_from_user(&st, optval, sizeof(st)))
		return -EFAULT;
	ret = xrds_sockopt_dest_status(xs, &st);
	if (ret)
		return ret;
	if (copy_to_user(optval, &st, sizeof(st)) ||
	    put_user((int)sizeof(st), optlen))
		return -EFAULT;
	return 0;
}

/**
 * xrds_getsockopt - proto_ops.getsockopt
 * @sock: socket
 * @level: SOL_RDS; SOL_SOCKET does not come here
 * @optname: option
 * @optval: argument and result
 * @optlen: in: room, out: size of the result, bytes
 *
 * Context: process, may sleep.
 * Return: 0, -ENOPROTOOPT for an unknown option, -EINVAL for too little room,
 * -ENOSPC with RDS_INFO_*.
 */
int xrds_getsockopt(struct socket *sock, int level, int optname,
		    char __user *optval, int __user *optlen)
{
	struct xrds_sock *xs = xrds_sk(sock->sk);
	int len;

	if (level != SOL_RDS)
		return -ENOPROTOOPT;
	if ((optname >= RDS_INFO_FIRST && optname <= RDS_INFO_LAST) ||
	    (optname >= XRDS_UEK_INFO_CONN_PATHS && optname <= XRDS_INFO_LAST))
		return xrds_opt_info_getsockopt(&xs->sk, optname, optval,
						optlen);
	if (get_user(len, optlen))
		return -EFAULT;

	/* a negative length is too short for each of them */
	switch (optname) {
	case RDS_RECVERR:
		return xrds_get_int(READ_ONCE(xs->rdma.recverr), optval, optlen,
				    len);
	case RDS_CONG_MONITOR:
		return xrds_get_int(READ_ONCE(xs->cong_monitor), optval,
				    optlen, len);
	case XRDS_CONG_EAGAIN:
		return xrds_get_int(READ_ONCE(xs->cong_eagain), optval, optlen,
				    len);
	case XRDS_NODE_EVENTS:
		return xrds_get_int(READ_ONCE(xs->node_events), optval, optlen,
				    len);
	case XRDS_DELIVERED_EVENT:
		return xrds_get_int(READ_ONCE(xs->delivered_event), optval,
				    optlen, len);
	case SO_RDS_TRANSPORT:
	case XRDS_UEK_TRANSPORT:
		return xrds_get_int(xrds_opt_transport(xs), optval, optlen,
				    len);
	case XRDS_UEK_INQ:
		return xrds_get_int(READ_ONCE(xs->inq), optval, optlen, len);
	case XRDS_DEST_SNDBUF:
		return xrds_get_dest_sndbuf(xs, optval, optlen, len);
	case XRDS_DEST_STATUS:
		return xrds_get_dest_status(xs, optval, optlen, len);
	case XRDS_REPLY_RESERVE:
		return xrds_get_int(READ_ONCE(xs->reply_reserve), optval,
				    optlen, len);
	default:
		return -ENOPROTOOPT;
	}
}

/**
 * xrds_sockopt_release_reply - XRDS_REPLY_RELEASE
 * @xs: socket
 * @to: destination that is not going to be answered
 *
 * Context: process.
 * Return: 0, or -EINVAL when nothing is reserved for it.
 */
int xrds_sockopt_release_reply(struct xrds_sock *xs, const struct xrds_addr *to)
{
	struct xrds_dest *dest = xrds_dest_find(xs, to);
	__poll_t mask = 0;
	int ret = -EINVAL;

	if (!dest)
		return -EINVAL;
	spin_lock_bh(&xs->lock);
	if (xrds_space_nr_reserved(dest)) {
		xrds_space_release_replies(dest, 1);
		mask = xrds_space_freed(dest);
		xrds_reply_retry(xs);
		ret = 0;
	}
	spin_unlock_bh(&xs->lock);
	xrds_space_wake(&dest->flow, mask);
	xrds_dest_put(dest);
	return ret;
}
