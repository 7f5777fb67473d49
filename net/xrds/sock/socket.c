// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sockets: their life, and the calls that are not send, receive or options.
 *
 * A socket is made by socket(), bound once, and closed. Binding decides the
 * transport, by the address. Closing takes the socket out of the bind table,
 * drops what it has not read, and leaves what it has sent: its connections go
 * on delivering, for net.xrds.linger_ms at most, see linger.c, and every
 * message refers to the socket through its destination. Behind them goes the
 * end of each stream, see eos.c. SO_LINGER waits for that, or with a time of
 * zero drops the messages.
 */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sockios.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <asm/ioctls.h>

#include "conn/conn.h"
#include "sock/dest.h"
#include "msg.h"
#include "rdma/rdma.h"
#include "sock/sock.h"
#include "transport.h"
#include "xrds.h"

/* No owner: the file that refers to the socket pins the module through
 * proto_ops, and a closed socket shall not.
 */
struct proto xrds_socket_proto = {
	.name		= "XRDS",
	.obj_size	= sizeof(struct xrds_sock),
};

/* ---------------------------------------------------------------- close */

static int xrds_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	struct xrds_sock *xs;
	struct xrds_net *xn;

	if (!sk)
		return 0;
	xs = xrds_sk(sk);
	xn = xs->xn;

	xrds_send_push(xs);
	/* nobody reads news any more */
	if (xs->node_events)
		xrds_dest_watch_all(xs, false);
	/* while the destinations are still sure to stay */
	if (xs->bound)
		xrds_linger_begin(xs);
	sock_orphan(sk);
	sock->sk = NULL;
	sock_prot_inuse_add(sock_net(sk), &xrds_socket_proto, -1);

	spin_lock_bh(&xn->lock);
	list_del_rcu(&xs->xn_node);
	spin_unlock_bh(&xn->lock);
	xa_erase(&xn->sock_ids, xs->id);
	if (xrds_conn_netns_unused(xn))
		xrds_conn_net_look_idle(xn);

	if (xs->bound) {
		xrds_bind_del(xs);
		xrds_recv_purge(xs);
		xrds_srctab_free_all(xs);
		xrds_reply_stop(xs);
		xrds_cong_unbind(&xs->port);
		xrds_notify_purge(xs);
		xrds_mr_free_all(&xs->rdma);
		xrds_rdma_peer_close_all(&xs->rdma);
		xrds_dest_close_all(xs);
		xrds_linger_wait(xs);
		xrds_linger_start(xs);
		if (xs->trans->listen_put)
			xs->trans->listen_put(sock_net(sk));
	}
	if (xs->trans)
		module_put(xs->trans->owner);
	sock_put(sk);
	return 0;
}

/* The last reference is gone, and a grace period over. */
static void xrds_sock_destruct(struct sock *sk)
{
	struct xrds_net *xn = xrds_sk(sk)->xn;

	__skb_queue_purge(&sk->sk_receive_queue);
	__skb_queue_purge(&sk->sk_error_queue);
	put_pid(xrds_sk(sk)->pid);
	xrds_limit_uncharge(xn, xrds_sk(sk)->user, XRDS_LIMIT_MEM,
			    XRDS_SOCK_COST_BYTES);
	xrds_user_put(xrds_sk(sk)->user);
	if (atomic_dec_and_test(&xn->nr_socks))
		wake_up_all(&xn->gone);
}

/* ----------------------------------------------------- bind and connect */

/* The transport of an address, with a reference, or ERR_PTR(). */
static const struct xrds_transport *
xrds_bind_transport(const struct xrds_sock *xs, const struct xrds_addr *a)
{
	struct net *net = sock_net(&xs->sk);
	const struct xrds_transport *trans;

	/* rdma_cm looks for the address in tables that IPv6 has not made. No
	 * socket has such an address, so no call gets further with one.
	 */
	if (!ipv6_addr_v4mapped(&a->addr) && !ipv6_mod_enabled())
		return ERR_PTR(-EADDRNOTAVAIL);
	if (xs->trans)
		return xs->trans->local(net, &a->addr, a->scope) ?
		       ERR_PTR(-ENOPROTOOPT) : xs->trans;
	trans = xrds_transport_for(net, &a->addr, a->scope);
	return trans ?: ERR_PTR(-EADDRNOTAVAIL);
}

/* Are they link-local, and of two interfaces? No message goes between them. */
static bool xrds_scopes_differ(u32 local, u32 peer)
{
	return local && peer && local != peer;
}

static int xrds_bind(struct socket *sock, struct sockaddr_unsized *uaddr,
		     int len)
{
	struct xrds_sock *xs = xrds_sk(sock->sk);
	const struct xrds_transport *trans, *asked;
	struct xrds_addr a;
	int ret;

	if (xrds_addr_parse(&a, uaddr, len) || xrds_addr_check_dest(&a))
		return -EINVAL;

	lock_sock(&xs->sk);
	ret = -EINVAL;
	if (xs->bound ||
	    (xs->connected && xrds_scopes_differ(a.scope, xs->peer.scope)))
		goto out;

	asked = xs->trans;
	trans = xrds_bind_transport(xs, &a);
	ret = PTR_ERR_OR_ZERO(trans);
	if (ret)
		goto out;

	ret = trans->listen_get ? trans->listen_get(sock_net(&xs->sk)) : 0;
	if (ret)
		goto put;
	/* lookups may find us from the insertion on: no rollback after it */
	xs->trans = trans;
	ret = xrds_bind_add(xs, &a);
	if (!ret) {
		/* pairs with the load-acquire in xrds_sk_bound() */
		smp_store_release(&xs->bound, true);
		goto out;
	}
	if (trans->listen_put)
		trans->listen_put(sock_net(&xs->sk));
put:
	xs->trans = asked;
	if (!asked)
		module_put(trans->owner);
out:
	release_sock(&xs->sk);
	return ret;
}

/* Both locks: calls look under the first, dumps under the second. */
static int xrds_set_peer(struct xrds_sock *xs, const struct xrds_addr *peer)
{
	int ret = 0;

	lock_sock(&xs->sk);
	if (peer && xs->bound &&
	    xrds_scopes_differ(xs->bind.scope, peer->scope)) {
		ret = -EINVAL;
		goto out;
	}
	spin_lock_bh(&xs->lock);
	xs->connected = peer;
	if (peer)
		xs->peer = *peer;
	spin_unlock_bh(&xs->lock);
out:
	release_sock(&xs->sk);
	return ret;
}

static int xrds_connect(struct socket *sock, struct sockaddr_unsized *uaddr,
			int len, int flags)
{
	struct xrds_sock *xs = xrds_sk(sock->sk);
	struct xrds_addr a;
	int ret;

	if (len < (int)sizeof(uaddr->sa_family))
		return -EINVAL;

	if (uaddr->sa_family == AF_UNSPEC)
		return xrds_set_peer(xs, NULL);

	ret = xrds_addr_parse(&a, uaddr, len);
	if (ret)
		return ret;
	ret = xrds_addr_check_dest(&a);
	/* mainline's word for such addresses of IPv6, mapped ones included */
	if (ret && uaddr->sa_family == AF_INET6 &&
	    !(ipv6_addr_type(&a.addr) & IPV6_ADDR_UNICAST))
		return -EPROTOTYPE;
	if (ret)
		return ret;
	return xrds_set_peer(xs, &a);
}

/* Messages that were sent before go out, and behind them the end of the stream.
 */
static int xrds_shutdown(struct socket *sock, int how)
{
	struct xrds_sock *xs = xrds_sk(sock->sk);
	struct sock *sk = &xs->sk;
	int ret = 0;

	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;

	lock_sock(sk);
	if (!xs->bound) {
		ret = -ENOTCONN;
		goto out;
	}
	if (how != SHUT_RD && !(sk->sk_shutdown & SEND_SHUTDOWN)) {
		WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | SEND_SHUTDOWN);
		xrds_eos_begin(xs, XRDS_EOS_FINISHED, false);
	}
	if (how != SHUT_WR)
		xrds_recv_shutdown(xs);
	sk->sk_state_change(sk);
out:
	release_sock(sk);
	return ret;
}

static int xrds_getname(struct socket *sock, struct sockaddr *uaddr, int peer)
{
	struct xrds_sock *xs = xrds_sk(sock->sk);
	struct xrds_addr a;

	lock_sock(&xs->sk);
	if (peer && xs->connected) {
		a = xs->peer;
	} else if (!peer && xs->bound) {
		a.addr = xs->bind.addr;
		a.scope = xs->bind.scope;
		a.port = xs->bind.port;
	} else if (!peer && xs->connected) {
		/* as mainline: the wildcard of the peer's family */
		a = (struct xrds_addr){};
		if (ipv6_addr_v4mapped(&xs->peer.addr))
			ipv6_addr_set_v4mapped(htonl(INADDR_ANY), &a.addr);
	} else {
		release_sock(&xs->sk);
		if (peer)
			return -ENOTCONN;
		/* and without a peer no family */
		memset(uaddr, 0, sizeof(struct sockaddr_in));
		return sizeof(struct sockaddr_in);
	}
	release_sock(&xs->sk);

	return xrds_addr_build_name(&a, uaddr);
}

/* ------------------------------------------------------- poll and ioctl */

/* select() for writing alone has EPOLLWRBAND among its events, and would take
 * news for room. It asks for EPOLLERR, but for EPOLLHUP only when it is for
 * reading as well. poll() and epoll add both to the program's events. io_uring
 * adds neither when it looks for the first time.
 */
static bool xrds_poll_room_only(const poll_table *wait)
{
	__poll_t events = poll_requested_events(wait);

	return events & (EPOLLOUT | EPOLLWRNORM) && events & EPOLLERR &&
	       !(events & (EPOLLIN | EPOLLHUP));
}

/* Does this call report the news of congestion, so that it is news no more? Not
 * if the caller does not ask for it. epoll_ctl() only looks whether there is
 * something for epoll_wait(), which polls again.
 */
static bool xrds_poll_takes_news(const poll_table *wait)
{
	return poll_requested_events(wait) & (EPOLLIN | EPOLLWRBAND) &&
	       !xrds_poll_room_only(wait) && !xrds_in_epoll_ctl();
}

static __poll_t xrds_poll(struct file *file, struct socket *sock,
			  poll_table *wait)
{
	struct sock *sk = sock->sk;
	struct xrds_sock *xs = xrds_sk(sk);
	__poll_t mask = 0;

	sock_poll_wait(file, sock, wait);

	if (xrds_recv_ready(xs, !READ_ONCE(xs->marks_passed)))
		mask |= EPOLLIN | EPOLLRDNORM;
	mask |= xrds_notify_pending(xs);

	spin_lock_bh(&xs->lock);
	if (!xs->nr_refused || xs->nr_ready || xs->ready_gone || xs->ending)
		mask |= EPOLLOUT | EPOLLWRNORM;
	if (xs->cong_news) {
		mask |= EPOLLIN | EPOLLWRBAND;
		if (xrds_poll_takes_news(wait))
			xs->cong_news = false;
	}
	spin_unlock_bh(&xs->lock);
	if (xrds_poll_room_only(wait))
		mask &= ~EPOLLWRBAND;

	if (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	else if (READ_ONCE(xs->all_ended))
		mask |= EPOLLRDHUP;
	if (mask & EPOLLRDHUP && READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN)
		mask |= EPOLLHUP;

	if (xrds_sk_err_ours(sk) ||
	    !skb_queue_empty_lockless(&sk->sk_error_queue))
		mask |= EPOLLERR;
	return mask;
}

static int xrds_ioctl_outq(struct xrds_sock *xs, int __user *arg)
{
	u64 bytes;

	spin_lock_bh(&xs->lock);
	bytes = xs->queued_bytes;
	spin_unlock_bh(&xs->lock);
	return put_user((int)min_t(u64, bytes, INT_MAX), arg);
}

/* Once, and before anything was sent: connections are found by it. */
static int xrds_ioctl_set_tos(struct xrds_sock *xs, rds_tos_t __user *arg)
{
	rds_tos_t tos;
	int ret = 0;

	if (get_user(tos, arg))
		return -EFAULT;
	lock_sock(&xs->sk);
	spin_lock_bh(&xs->lock);
	/* bind() chooses one, or SO_RDS_TRANSPORT before it */
	if (!xs->trans)
		ret = -ENOIOCTLCMD;
	else if (xs->tos || xs->nr_dests)
		ret = -EINVAL;
	else
		WRITE_ONCE(xs->tos, tos);
	spin_unlock_bh(&xs->lock);
	release_sock(&xs->sk);
	return ret;
}

static int xrds_ioctl_barrier(struct socket *sock, void __user *arg)
{
	struct xrds_sock *xs = xrds_sk(sock->sk);
	struct xrds_barrier b;
	int ret;

	if (copy_from_user(&b, arg, sizeof(b)))
		return -EFAULT;
	if (!xrds_sk_bound(xs))
		return -ENOTCONN;
	ret = xrds_barrier(&xs->rdma, &b, sock->file->f_flags & O_NONBLOCK);
	if ((!ret || ret == -EAGAIN || ret == -ETIMEDOUT) &&
	    copy_to_user(arg, &b, sizeof(b)))
		return -EFAULT;
	return ret;
}

static int xrds_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	struct xrds_sock *xs = xrds_sk(sock->sk);
	void __user *argp = (void __user *)arg;

	switch (cmd) {
	case SIOCINQ:
		return put_user(xrds_recv_inq(xs), (int __user *)argp);
	case SIOCOUTQ:
		return xrds_ioctl_outq(xs, argp);
	case SIOCRDSGETTOS:
		return put_user(READ_ONCE(xs->tos), (rds_tos_t __user *)argp);
	case SIOCXRDSBARRIER:
		return xrds_ioctl_barrier(sock, argp);
	case SIOCRDSSETTOS:
		return xrds_ioctl_set_tos(xs, argp);
	default:
		return -ENOIOCTLCMD;
	}
}

/* The arguments look the same to programs of 32 bits. */
static int __maybe_unused xrds_compat_ioctl(struct socket *sock,
					    unsigned int cmd, unsigned long arg)
{
	return xrds_ioctl(sock, cmd, (unsigned long)compat_ptr(arg));
}

static const struct proto_ops xrds_proto_ops = {
	.family		= AF_RDS,
	.owner		= THIS_MODULE,
	.release	= xrds_release,
	.bind		= xrds_bind,
	.connect	= xrds_connect,
	.socketpair	= sock_no_socketpair,
	.accept		= sock_no_accept,
	.getname	= xrds_getname,
	.poll		= xrds_poll,
	.ioctl		= xrds_ioctl,
	XRDS_COMPAT_IOCTL(xrds_compat_ioctl)
	.listen		= sock_no_listen,
	.shutdown	= xrds_shutdown,
	.setsockopt	= xrds_setsockopt,
	.getsockopt	= xrds_getsockopt,
	.sendmsg	= xrds_sendmsg,
	.recvmsg	= xrds_recvmsg,
	.mmap		= sock_no_mmap,
};

/* --------------------------------------------------------------- socket */

/* A socket on the account of its maker, or ERR_PTR() */
static struct sock *xrds_sock_alloc(struct xrds_net *xn, int kern)
{
	struct xrds_user *user = xrds_user_get_current();
	struct sock *sk;
	int ret = -ENOMEM;
	u32 id;

	if (!user)
		return ERR_PTR(ret);
	ret = xrds_limit_charge(xn, user, XRDS_LIMIT_MEM, XRDS_SOCK_COST_BYTES);
	if (ret)
		goto err_user;
	ret = -ENOMEM;
	/* the number is its own from here on, and nobody finds it by that */
	if (xa_alloc_cyclic(&xn->sock_ids, &id, NULL, xa_limit_31b,
			    &xn->next_sock_id, GFP_KERNEL_ACCOUNT) < 0)
		goto err_charge;
	sk = sk_alloc(xn->net, AF_RDS, GFP_KERNEL, &xrds_socket_proto, kern);
	if (!sk)
		goto err_id;
	xrds_sk(sk)->xn = xn;
	xrds_sk(sk)->user = user;
	xrds_sk(sk)->id = id;
	return sk;

err_id:
	xa_erase(&xn->sock_ids, id);
err_charge:
	xrds_limit_uncharge(xn, user, XRDS_LIMIT_MEM, XRDS_SOCK_COST_BYTES);
err_user:
	xrds_user_put(user);
	return ERR_PTR(ret);
}

/* Sockets may be kept for those who administer the network: of the host, as
 * anybody may be the administrator of a namespace of his own.
 */
static bool xrds_may_create(struct xrds_net *xn, int kern)
{
	if (kern || READ_ONCE(xn->unprivileged) || capable(CAP_NET_ADMIN))
		return true;
	xrds_count(xn, XRDS_C_LIMIT_UNPRIVILEGED);
	return false;
}

static int xrds_create(struct net *net, struct socket *sock, int protocol,
		       int kern)
{
	struct xrds_net *xn = xrds_net(net);
	struct xrds_sock *xs;
	struct sock *sk;

	if (sock->type != SOCK_SEQPACKET || protocol)
		return -ESOCKTNOSUPPORT;
	if (!xrds_may_create(xn, kern))
		return -EPERM;

	sk = xrds_sock_alloc(xn, kern);
	if (IS_ERR(sk))
		return PTR_ERR(sk);

	sock_init_data(sock, sk);
	sock->ops = &xrds_proto_ops;
	sk->sk_protocol = protocol;
	sk->sk_destruct = xrds_sock_destruct;
	sk->sk_write_space = xrds_space_changed;
	/* lookups through the bind table and the destinations use RCU */
	sock_set_flag(sk, SOCK_RCU_FREE);

	xs = xrds_sk(sk);
	xs->uid = current_euid();
	xs->pid = get_pid(task_tgid(current));
	mutex_init(&xs->walk_lock);
	spin_lock_init(&xs->lock);
	INIT_LIST_HEAD(&xs->xn_node);
	INIT_LIST_HEAD(&xs->dests);
	INIT_LIST_HEAD(&xs->idle_dests);
	timerqueue_init(&xs->linger_node);
	INIT_LIST_HEAD(&xs->recv_wait_node);
	xrds_link_init_port(&xs->port, xn, xs->user, &xs->bind);
	xs->rdma.sk = sk;
	xs->rdma.xn = xn;
	xs->rdma.user = xs->user;
	xs->rdma.bind = &xs->bind;
	xs->rdma.lock = &xs->lock;
	INIT_LIST_HEAD(&xs->rdma.nodes);
	INIT_LIST_HEAD(&xs->rdma.events);
	INIT_LIST_HEAD(&xs->rdma.notices);
	INIT_LIST_HEAD(&xs->rdma.mrs);
	INIT_LIST_HEAD(&xs->rdma.lost);
	INIT_LIST_HEAD(&xs->cleared);
	INIT_LIST_HEAD(&xs->news);
	INIT_LIST_HEAD(&xs->zcopied);
	INIT_LIST_HEAD(&xs->unnamed);
	INIT_LIST_HEAD(&xs->eos_due);
	INIT_LIST_HEAD(&xs->past);
	INIT_DELAYED_WORK(&xs->eos_work, xrds_eos_work);
	INIT_LIST_HEAD(&xs->sources);
	INIT_LIST_HEAD(&xs->srcq.ready);
	INIT_LIST_HEAD(&xs->srcq.held);
	INIT_LIST_HEAD(&xs->srcq.barred);
	INIT_LIST_HEAD(&xs->srcq.marks);
	INIT_DELAYED_WORK(&xs->reply_work, xrds_reply_work);
	init_waitqueue_head(&xs->drained);
	atomic_inc(&xn->nr_socks);

	sock_prot_inuse_add(net, &xrds_socket_proto, 1);
	spin_lock_bh(&xn->lock);
	list_add_tail_rcu(&xs->xn_node, &xn->socks);
	spin_unlock_bh(&xn->lock);
	/* its place is reserved: nothing is allocated, nothing can fail */
	xa_store(&xn->sock_ids, xs->id, xs, GFP_KERNEL);
	return 0;
}

const struct net_proto_family xrds_socket_family = {
	.family		= AF_RDS,
	.create		= xrds_create,
	.owner		= THIS_MODULE,
};
