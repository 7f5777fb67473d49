// SPDX-License-Identifier: GPL-2.0-only
/*
 * sendmsg(): from a program's call to a message in the queue of a flow.
 *
 * The order matters. Flags, address and control messages are judged first;
 * then the destination's space is reserved, waiting for it if that was asked;
 * only then is memory allocated and the payload copied, with no lock held.
 * After that nothing can fail but the copy itself. The flow of the destination
 * joins its connection if it has none (flow.c), and the message waits in the
 * flow's queue for its turn (tx.c). It stays with the connection until the peer
 * has acknowledged it.
 *
 * A plain message over loopback mostly takes none of these steps, see direct.c.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>

#include "conn/conn.h"
#include "sock/dest.h"
#include "msg.h"
#include "rdma/rdma.h"
#include "sock/sock.h"
#include "transport.h"
#include "xrds.h"

/* pages that sendfile() offers are copied */
#define XRDS_SEND_FLAGS	(MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR | \
			 MSG_CMSG_COMPAT | MSG_BATCH | MSG_ZEROCOPY | \
			 MSG_SPLICE_PAGES)

/**
 * struct xrds_send_args - what the control messages of one call ask for
 * @timeo:	how long the call may still wait, jiffies; 0: not at all
 * @rop:	op, with a reference
 * @notice:	of a message without op; the message's once that is queued
 * @zcopy:	completion of a send with MSG_ZEROCOPY; the message's, or the
 *		socket's, once that is queued
 * @id_addr:	where the program wants its identifier, or 0
 * @has_id:	@id_addr was given
 * @has_barrier: @barrier was given
 * @has_cookie:	@cookie goes with the message
 * @mapped:	@cookie is of a region that this call has made
 * @cookie:	key and offset of memory offered to the receiver
 * @barrier:	where the barrier to arm is, with @has_barrier
 */
struct xrds_send_args {
	long timeo;
	struct xrds_rop *rop;
	struct xrds_notice *notice;
	struct xrds_zcopy *zcopy;
	u64 id_addr;
	bool has_id;
	bool has_barrier;
	bool has_cookie;
	bool mapped;
	u64 cookie;
	struct xrds_barrier *barrier;
};

static int xrds_send_cmsg_op(struct xrds_sock *xs, struct cmsghdr *cmsg,
			     size_t len, struct xrds_send_args *args)
{
	bool atomic = cmsg->cmsg_type != RDS_CMSG_RDMA_ARGS;
	struct xrds_rop *rop;

	/* both kinds of cookie go with plain messages only, as in mainline; an
	 * op has a notice of its own
	 */
	if (args->rop || args->has_cookie || args->notice || args->zcopy ||
	    len != (atomic ? sizeof(struct rds_atomic_args) :
			     sizeof(struct rds_rdma_args)))
		return -EINVAL;
	rop = atomic ? xrds_rop_from_atomic(&xs->rdma, xs->trans, CMSG_DATA(cmsg),
					    cmsg->cmsg_type, &args->timeo) :
		       xrds_rop_from_args(&xs->rdma, xs->trans, CMSG_DATA(cmsg),
					  &args->timeo);
	if (IS_ERR(rop))
		return PTR_ERR(rop);
	args->rop = rop;
	return 0;
}

static int xrds_send_cmsg_cookie(struct xrds_sock *xs, struct cmsghdr *cmsg,
				 size_t len, struct xrds_send_args *args)
{
	int ret;

	if (args->rop || args->has_cookie)
		return -EINVAL;
	if (cmsg->cmsg_type == RDS_CMSG_RDMA_DEST) {
		if (len != sizeof(args->cookie))
			return -EINVAL;
		memcpy(&args->cookie, CMSG_DATA(cmsg), sizeof(args->cookie));
		if (!xrds_mr_owned(&xs->rdma, args->cookie))
			return -EINVAL;
	} else {
		if (len != sizeof(struct rds_get_mr_args))
			return -EINVAL;
		ret = xrds_mr_create(&xs->rdma, xs->trans, CMSG_DATA(cmsg),
				     &args->cookie, &args->timeo);
		if (ret)
			return ret;
		args->mapped = true;
	}
	args->has_cookie = true;
	return 0;
}

/* That kernel ignores other flags, and its programs leave them unset. */
static int xrds_send_cmsg_notice(struct xrds_sock *xs, struct cmsghdr *cmsg,
				 size_t len, struct xrds_send_args *args)
{
	struct xrds_uek_asend arg;
	struct xrds_notice *n;

	if (args->rop || args->notice || len != sizeof(arg))
		return -EINVAL;
	memcpy(&arg, CMSG_DATA(cmsg), sizeof(arg));
	n = xrds_notice_alloc(&xs->rdma, arg.user_token,
			      arg.flags & XRDS_UEK_SEND_NOTIFY_ME);
	if (IS_ERR(n))
		return PTR_ERR(n);
	args->notice = n;
	return 0;
}

static int xrds_send_cmsg_zcopy(struct xrds_sock *xs, struct cmsghdr *cmsg,
				size_t len, struct xrds_send_args *args)
{
	u32 cookie;

	if (args->rop || args->zcopy || len != sizeof(cookie))
		return -EINVAL;
	memcpy(&cookie, CMSG_DATA(cmsg), sizeof(cookie));
	args->zcopy = xrds_zcopy_alloc(xs, cookie);
	return args->zcopy ? 0 : -ENOMEM;
}

static int xrds_send_cmsg_barrier(struct cmsghdr *cmsg, size_t len,
				  struct xrds_send_args *args)
{
	if (args->has_barrier || len != sizeof(*args->barrier))
		return -EINVAL;
	memcpy(args->barrier, CMSG_DATA(cmsg), sizeof(*args->barrier));
	if (args->barrier->flags & ~XRDS_BARRIER_NONBLOCK)
		return -EINVAL;
	args->has_barrier = true;
	return 0;
}

static int xrds_send_cmsg(struct xrds_sock *xs, struct cmsghdr *cmsg,
			  struct xrds_send_args *args)
{
	size_t len = cmsg->cmsg_len - CMSG_LEN(0);

	switch (cmsg->cmsg_type) {
	case RDS_CMSG_RDMA_ARGS:
	case RDS_CMSG_ATOMIC_FADD:
	case RDS_CMSG_ATOMIC_CSWP:
	case RDS_CMSG_MASKED_ATOMIC_FADD:
	case RDS_CMSG_MASKED_ATOMIC_CSWP:
		return xrds_send_cmsg_op(xs, cmsg, len, args);
	case RDS_CMSG_RDMA_DEST:
	case RDS_CMSG_RDMA_MAP:
		return xrds_send_cmsg_cookie(xs, cmsg, len, args);
	case XRDS_UEK_CMSG_ASYNC_SEND:
		return xrds_send_cmsg_notice(xs, cmsg, len, args);
	case RDS_CMSG_ZCOPY_COOKIE:
		return xrds_send_cmsg_zcopy(xs, cmsg, len, args);
	case XRDS_CMSG_RDMA_ID:
		if (args->has_id || len != sizeof(args->id_addr))
			return -EINVAL;
		memcpy(&args->id_addr, CMSG_DATA(cmsg), sizeof(args->id_addr));
		args->has_id = true;
		return 0;
	case XRDS_CMSG_BARRIER:
		return xrds_send_cmsg_barrier(cmsg, len, args);
	default:
		return -EINVAL;
	}
}

/* Without an op there is no identifier, and no barrier for "this op". A cookie
 * and MSG_ZEROCOPY come together, and want SO_ZEROCOPY.
 */
static int xrds_send_cmsgs(struct xrds_sock *xs, struct msghdr *m,
			   struct xrds_send_args *args)
{
	struct cmsghdr *cmsg;
	int ret;

	for_each_cmsghdr(cmsg, m) {
		if (!CMSG_OK(m, cmsg))
			return -EINVAL;
		if (cmsg->cmsg_level != SOL_RDS)
			continue;
		ret = xrds_send_cmsg(xs, cmsg, args);
		if (ret)
			return ret;
	}
	if (!args->rop && (args->has_id ||
			   (args->has_barrier && !args->barrier->rdma_id)))
		return -EINVAL;
	if (!args->zcopy != !(m->msg_flags & MSG_ZEROCOPY) ||
	    (args->zcopy && !sock_flag(&xs->sk, SOCK_ZEROCOPY)))
		return -EINVAL;
	return 0;
}

/* The call has failed: release all that it has prepared. */
static void xrds_send_undo(struct xrds_sock *xs, struct xrds_send_args *args)
{
	struct rds_free_mr_args free = { .cookie = args->cookie };

	if (args->mapped)
		xrds_mr_free(&xs->rdma, &free);
	if (args->notice)
		xrds_notice_free(&xs->rdma, args->notice);
	xrds_zcopy_free(xs, args->zcopy);
}

/* Where to: the address of the call, else that of connect(). */
static int xrds_send_addr(struct xrds_sock *xs, struct msghdr *m,
			  struct xrds_addr *to)
{
	int ret = 0;

	if (m->msg_name && m->msg_namelen) {
		ret = xrds_addr_parse(to, m->msg_name, m->msg_namelen);
		if (ret || xrds_addr_check_dest(to))
			return -EINVAL;
	} else {
		spin_lock_bh(&xs->lock);
		if (xs->connected)
			*to = xs->peer;
		else
			ret = -ENOTCONN;
		spin_unlock_bh(&xs->lock);
		if (ret)
			return ret;
	}

	if (!xrds_sk_bound(xs))
		return -ENOTCONN;
	return xrds_dest_addr_fits(xs, to);
}

/* ------------------------------------------------------------- sendmmsg */

static void xrds_send_pump_held(struct xrds_conn *conn)
{
	if (!conn)
		return;
	xrds_tx_pump(conn);
	xrds_conn_put(conn);
}

/* Is it worth to try again? Lockless; the attempt takes the lock. */
static bool xrds_send_retry(const struct xrds_dest *dest)
{
	return !xrds_dest_blocked(dest) || READ_ONCE(dest->key.xs->ending);
}

/* Set space aside for one message. @bound: how long the call may wait, jiffies;
 * 0: not at all. @timeo: how much of that is left, for all attempts of the call.
 * The space stays reserved until xrds_upcall_flow_done(). Nothing was copied yet
 * when this refuses.
 *
 * Returns 0; 1: a reservation for a reply was used, see
 * xrds_space_renew_reply(); -EAGAIN: no space, -ENOBUFS: congested, both only
 * without waiting; -ETIMEDOUT; -EINTR or -ERESTARTSYS on a signal; -EPIPE: the
 * socket is shut down; -ESTALE: destination and connection must be looked up
 * again; -EDQUOT: the user or the namespace has too much queued.
 */
static int xrds_send_reserve(struct xrds_dest *dest, struct xrds_conn *conn,
			     u32 len, long bound, long *timeo)
{
	struct xrds_net *xn = dest->key.xs->xn;
	int ret;

	for (;;) {
		/* nobody would be told by it that congestion has ended */
		if (READ_ONCE(conn->state) == XRDS_ST_DEAD)
			return -ESTALE;
		/* the attempt after the last wait is not patient any more */
		ret = xrds_space_try_reserve(dest, conn, len, *timeo);
		if (ret >= 0 || ret == -ESTALE || ret == -EPIPE ||
		    ret == -EDQUOT)
			return ret;
		/* messages that must go first may wait for our pump */
		xrds_send_push(dest->key.xs);
		if (!*timeo)
			break;
		xrds_count(xn, ret == -ENOBUFS ? XRDS_C_CONG_SEND_BLOCKED :
						 XRDS_C_SEND_QUEUE_FULL);
		*timeo = wait_event_interruptible_timeout(dest->space,
							  xrds_send_retry(dest),
							  *timeo);
		if (*timeo < 0) {
			if (ret == -ENOBUFS)
				xrds_space_interrupted(dest);
			return sock_intr_errno(bound);
		}
	}

	if (bound)
		return -ETIMEDOUT;
	xrds_count(xn, ret == -ENOBUFS ? XRDS_C_CONG_SEND_ERROR :
					 XRDS_C_SEND_QUEUE_FULL);
	return ret;
}

/**
 * xrds_send_push - post what a sendmmsg() of this socket has queued so far
 * @xs: socket
 *
 * Context: process, without L2, L3, L4.
 */
void xrds_send_push(struct xrds_sock *xs)
{
	if (READ_ONCE(xs->held))
		xrds_send_pump_held(xchg(&xs->held, NULL));
}

/* Messages wait at a connection: those at another one need not any more. */
static void xrds_send_hold(struct xrds_sock *xs, struct xrds_conn *conn)
{
	if (READ_ONCE(xs->held) == conn)
		return;
	xrds_conn_get(conn);
	xrds_send_pump_held(xchg(&xs->held, conn));
}

/* Queue a message. A connection that ended meanwhile, which it does only with
 * nothing queued, is replaced. @more: there is another one behind it. Returns 0, or a
 * negative errno; -ESTALE: the message is to be made anew, for another node.
 */
static int xrds_send_queue(struct xrds_dest *dest, struct xrds_conn *conn,
			   struct xrds_msg *msg, bool more)
{
	struct xrds_conn *next = NULL;
	int ret;

	for (;;) {
		ret = conn->trans->prepare ? conn->trans->prepare(conn, msg) :
					     0;
		if (!ret)
			ret = more ? xrds_tx_queue_more(conn, msg) :
				     xrds_tx_queue(conn, msg, true);
		if (ret > 0)
			xrds_send_hold(dest->key.xs, conn);
		if (next)
			xrds_conn_put(next);
		if (ret != -ESTALE || msg->scattered)
			return min(ret, 0);
		next = xrds_dest_conn(dest);
		if (IS_ERR(next))
			return PTR_ERR(next);
		conn = next;
	}
}

/* The node that the barrier is about; NULL and 0: there is none to arm. */
static int xrds_send_barrier_node(struct xrds_sock *xs,
				  const struct xrds_send_args *args,
				  struct xrds_rdma_peer *to,
				  struct xrds_rdma_peer **node)
{
	const struct xrds_barrier *b = args->barrier;
	struct xrds_addr addr;
	u64 issued;

	*node = NULL;
	if (!args->has_barrier)
		return 0;
	*node = to;
	if (b->dest.ss_family != AF_UNSPEC) {
		if (xrds_addr_parse(&addr, &b->dest, sizeof(b->dest)))
			return -EINVAL;
		*node = xrds_rdma_peer_find(&xs->rdma, &addr);
	}
	if (!*node || (!b->rdma_id && *node != to))
		return -EINVAL;
	issued = READ_ONCE((*node)->issued) + (args->rop && *node == to);
	return b->rdma_id > issued ? -EINVAL : 0;
}

/* With the socket locked no page fault is waited for: it may last as long as
 * some program likes, and a thread that waits for the lock cannot be killed.
 * Returns 0, or -EFAULT: it may be worth a try once the page is there.
 */
static int xrds_send_tell_id(const struct xrds_send_args *args, u64 id)
{
	int ret;

	pagefault_disable();
	ret = put_user(id, (u64 __user *)u64_to_user_ptr(args->id_addr));
	pagefault_enable();
	return ret;
}

/* An op gets its identifier and is queued in one go, so that the order of
 * identifiers is that of the queue: the socket's lock keeps other ops out.
 * The program learns the identifier before the op exists. A fault while it is
 * told refuses the op, and the identifier goes to the next.
 */
static int xrds_send_try_op(struct xrds_sock *xs, struct xrds_dest *dest,
			    struct xrds_conn *conn, struct xrds_msg *msg,
			    const struct xrds_send_args *args, bool *told)
{
	struct xrds_addr to = { .addr = dest->key.addr,
				.scope = dest->key.scope };
	struct xrds_rdma_peer *node, *armed;
	u64 id = 0;
	int ret;

	lock_sock(&xs->sk);
	node = args->rop ? xrds_rdma_peer_find_or_create(&xs->rdma, &to) :
			   xrds_rdma_peer_find(&xs->rdma, &to);
	ret = PTR_ERR_OR_ZERO(node);
	if (!ret)
		ret = xrds_send_barrier_node(xs, args, node, &armed);
	if (ret)
		goto out;
	if (args->rop) {
		args->rop->to = node;
		id = node->issued + 1;
		if (args->has_id) {
			args->rop->id_asked = true;
			ret = xrds_send_tell_id(args, id);
			*told = !ret;
			if (ret)
				goto out;
		}
	}
	ret = xrds_send_queue(dest, conn, msg, false);
	if (!ret && armed)
		xrds_barrier_arm(&xs->rdma, armed,
				 args->barrier->rdma_id ?: id);
out:
	release_sock(&xs->sk);
	return ret;
}

static int xrds_send_queue_op(struct xrds_sock *xs, struct xrds_dest *dest,
			      struct xrds_conn *conn, struct xrds_msg *msg,
			      const struct xrds_send_args *args)
{
	bool told = true;
	int ret;

	for (;;) {
		ret = xrds_send_try_op(xs, dest, conn, msg, args, &told);
		if (told)
			return ret;
		/* have the page made, and try again, unless it is taken away
		 * again and again: then it ends with a signal
		 */
		if (put_user(0ULL, (u64 __user *)
			     u64_to_user_ptr(args->id_addr)))
			return -EFAULT;
		if (signal_pending(current))
			return -EINTR;
		cond_resched();
		told = true;
	}
}

static void xrds_send_fill(struct xrds_msg *msg,
			   const struct xrds_send_args *args)
{
	if (args->has_cookie) {
		msg->has |= XRDS_HAS_RDMA_DEST;
		msg->dest_rkey = (u32)args->cookie;
		msg->dest_off = args->cookie >> 32;
	}
	if (args->rop) {
		xrds_rop_get(args->rop);
		msg->rop = args->rop;
		/* with something in it the message is delivered all the same */
		if (msg->len)
			msg->rop->silent = false;
		msg->has |= XRDS_HAS_RDMA;
		msg->rdma_rkey = args->rop->rkey;
	}
	if (args->rop && args->rop->notice.waits > 1)
		msg->notice = &args->rop->notice;
	else
		msg->notice = args->notice;
}

/* Make the message. Returns it, or ERR_PTR(). */
static struct xrds_msg *xrds_send_msg(struct xrds_sock *xs,
				      const struct xrds_dest *dest,
				      const struct xrds_conn *conn,
				      struct msghdr *m, u32 len,
				      struct xrds_send_args *args)
{
	struct xrds_msg *msg = NULL;
	struct sk_buff *skb;

	if (conn->trans->payload) {
		skb = conn->trans->payload(&m->msg_iter, len);
		if (IS_ERR(skb))
			return ERR_CAST(skb);
		xrds_count_add(xs->xn, XRDS_C_COPY_FROM_USER, len);
		return xrds_msg_around(xs->xn, skb, len);
	}
	/* a ping is for any node, and in-tree RDS may be there by then */
	if (unlikely(args->zcopy) && dest->key.port)
		msg = xrds_zcopy_msg(xs, conn, args->zcopy, &m->msg_iter, len,
				     &args->timeo);
	return msg ?: xrds_msg_from_user(xs->xn, m, len);
}

/* Space is reserved: make the message and queue it. */
static int xrds_send_one(struct xrds_sock *xs, struct xrds_dest *dest,
			 struct xrds_conn *conn, struct msghdr *m, u32 len,
			 struct xrds_send_args *args, bool reply)
{
	struct xrds_msg *msg = xrds_send_msg(xs, dest, conn, m, len, args);
	bool zcopy;
	int ret;

	if (IS_ERR(msg)) {
		ret = PTR_ERR(msg);
		goto err_space;
	}
	msg->sport = xs->bind.port;
	msg->dport = dest->key.port;
	msg->flow = &dest->flow;
	xrds_flow_get(&dest->flow);
	xrds_send_fill(msg, args);
	zcopy = msg->zcopy;
	if (reply)
		msg->flags |= XRDS_F_REPLY;

	if (args->rop || args->has_barrier)
		ret = xrds_send_queue_op(xs, dest, conn, msg, args);
	else
		ret = xrds_send_queue(dest, conn, msg,
				      m->msg_flags & MSG_BATCH);
	if (ret) {
		/* for another try, or xrds_send_undo() */
		msg->notice = NULL;
		xrds_zcopy_undo(msg);
		xrds_msg_put(msg);
		goto err_space;
	}
	xrds_count(xs->xn, XRDS_C_SEND_QUEUED);
	if (zcopy) {
		xrds_count(xs->xn, XRDS_C_SEND_ZCOPY);
		/* else sendmmsg() takes the message for one sent in part */
		iov_iter_advance(&m->msg_iter, len);
	} else if (unlikely(args->zcopy)) {
		xrds_zcopy_end(xs, args->zcopy);
	}
	return len;

err_space:
	if (reply)
		xrds_space_renew_reply(dest);
	xrds_upcall_flow_done(dest, 1, len, xrds_msg_charge(len),
			      xrds_msg_mem(len), false);
	return ret;
}

/* Reserve space for a message, and queue it. */
static int xrds_send_queued(struct xrds_dest *dest, struct msghdr *m, u32 len,
			    long bound, struct xrds_send_args *args)
{
	struct xrds_conn *conn = xrds_dest_conn(dest);
	int ret;

	if (IS_ERR(conn))
		return PTR_ERR(conn);
	ret = xrds_send_reserve(dest, conn, len, bound, &args->timeo);
	if (ret >= 0)
		ret = xrds_send_one(dest->key.xs, dest, conn, m, len, args,
				    ret);
	xrds_conn_put(conn);
	return ret;
}

static bool xrds_send_plain(const struct xrds_send_args *args)
{
	return !args->rop && !args->has_barrier && !args->has_cookie &&
	       !args->notice && !args->zcopy;
}

static int xrds_send_to(struct xrds_sock *xs, const struct xrds_addr *to,
			struct msghdr *m, u32 len, long bound,
			struct xrds_send_args *args)
{
	struct xrds_dest *dest;
	int ret;

	do {
		dest = xrds_dest_find_or_create(xs, to);
		if (IS_ERR(dest))
			return PTR_ERR(dest);
		ret = xrds_send_plain(args) ? xrds_direct_send(dest, m, len) :
					      -EAGAIN;
		if (ret == -EAGAIN)
			ret = xrds_send_queued(dest, m, len, bound, args);
		xrds_dest_put(dest);
	} while (ret == -ESTALE);
	return ret;
}

static int xrds_send_broken(const struct msghdr *m)
{
	if (!(m->msg_flags & MSG_NOSIGNAL))
		send_sig(SIGPIPE, current, 0);
	return -EPIPE;
}

/* A message with control messages. They need much of the stack, which is zeroed
 * at each call: the usual message shall not pay for that.
 */
static noinline_for_stack int
xrds_send_with_cmsgs(struct xrds_sock *xs, const struct xrds_addr *to,
		     struct msghdr *m, u32 len, long bound)
{
	struct xrds_barrier barrier;
	struct xrds_send_args args = { .timeo = bound, .barrier = &barrier };
	int ret;

	ret = xrds_send_cmsgs(xs, m, &args);
	if (!ret)
		ret = xrds_send_to(xs, to, m, len, bound, &args);
	if (ret < 0)
		xrds_send_undo(xs, &args);
	if (args.rop)
		xrds_rop_put(args.rop);
	return ret;
}

static int xrds_send_call(struct xrds_sock *xs, struct msghdr *m, size_t len)
{
	long bound = sock_sndtimeo(&xs->sk, m->msg_flags & MSG_DONTWAIT);
	struct xrds_send_args args = { .timeo = bound };
	struct xrds_addr to;
	int ret;

	if (m->msg_flags & ~XRDS_SEND_FLAGS)
		return -EOPNOTSUPP;
	/* an op would pin memory, and a destination be made, in vain */
	if (READ_ONCE(xs->ending))
		return xrds_send_broken(m);
	ret = xrds_send_addr(xs, m, &to);
	if (ret)
		return ret;
	if (len > XRDS_WIRE_MAX_MSG_BYTES)
		return -EMSGSIZE;

	ret = m->msg_controllen || m->msg_flags & MSG_ZEROCOPY ?
	      xrds_send_with_cmsgs(xs, &to, m, len, bound) :
	      xrds_send_to(xs, &to, m, len, bound, &args);
	if (ret == -ENOBUFS && READ_ONCE(xs->cong_eagain))
		ret = -EAGAIN;
	if (ret == -EPIPE)
		ret = xrds_send_broken(m);
	return ret;
}

/**
 * xrds_sendmsg - proto_ops.sendmsg
 * @sock: socket
 * @m: message
 * @len: payload, bytes
 *
 * Each message of a sendmmsg() comes with MSG_BATCH but the last, or the first
 * that fails, behind which no other comes.
 *
 * Context: process, may sleep unless MSG_DONTWAIT.
 * Return: @len, or a negative errno, see xrds(7).
 */
int xrds_sendmsg(struct socket *sock, struct msghdr *m, size_t len)
{
	struct xrds_sock *xs = xrds_sk(sock->sk);
	int ret = xrds_send_call(xs, m, len);

	if (ret < 0 || !(m->msg_flags & MSG_BATCH))
		xrds_send_push(xs);
	return ret;
}
