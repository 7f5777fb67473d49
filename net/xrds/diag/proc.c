// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/net/rds: the sockets of a namespace, a line each, for machines that do
 * not have xrds-info. As with netlink, a reader without CAP_NET_ADMIN in the
 * namespace sees those of its own user.
 *
 * The position in the file is the number of a socket, which it keeps for its
 * life. So a socket that exists during the whole read has exactly one line. The
 * reader holds a reference on the socket that it looks at, and no lock between
 * two of them.
 */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#include "diag/diag.h"
#include "sock/dest.h"
#include "sock/sock.h"
#include "xrds.h"

enum { XRDS_PROC_ADDR_BYTES = INET6_ADDRSTRLEN + sizeof("[]:65535") };

static void *xrds_proc_start(struct seq_file *seq, loff_t *pos)
{
	struct xrds_sock *xs;

	if (!*pos)
		return SEQ_START_TOKEN;
	if (*pos > U32_MAX)
		return NULL;
	xs = xrds_walk_sock_after(xrds_net(seq_file_net(seq)), *pos - 1);
	if (xs)
		*pos = xs->id;
	return xs;
}

static void *xrds_proc_next(struct seq_file *seq, void *v, loff_t *pos)
{
	struct xrds_sock *xs = v == SEQ_START_TOKEN ? NULL : v;

	xs = xrds_walk_sock(xrds_net(seq_file_net(seq)), xs);
	*pos = xs ? xs->id : *pos + 1;
	return xs;
}

static void xrds_proc_stop(struct seq_file *seq, void *v)
{
	struct xrds_sock *xs = v;

	if (v && v != SEQ_START_TOKEN)
		sock_put(&xs->sk);
}

static bool xrds_proc_sees(struct seq_file *seq, const struct xrds_sock *xs)
{
	return uid_eq(seq->file->f_cred->euid, xs->uid) ||
	       file_ns_capable(seq->file, seq_file_net(seq)->user_ns,
			       CAP_NET_ADMIN);
}

static void xrds_proc_addr(struct seq_file *seq, const struct in6_addr *addr,
			   u16 port)
{
	char both[XRDS_PROC_ADDR_BYTES];
	struct xrds_addr_text text;

	xrds_addr_text(addr, &text);
	snprintf(both, sizeof(both), ipv6_addr_v4mapped(addr) ? "%s:%u" :
								"[%s]:%u",
		 text.s, port);
	seq_printf(seq, " %-21s", both);
}

static int xrds_proc_show(struct seq_file *seq, void *v)
{
	struct user_namespace *user_ns = seq_user_ns(seq);
	struct xrds_sock *xs = v;
	struct xrds_addr peer;
	bool connected, ending;
	u64 queued;
	u32 dests;

	if (v == SEQ_START_TOKEN) {
		seq_puts(seq, "Id Local Peer SendQ RecvQ RcvBuf State Dests Uid Inode\n");
		return 0;
	}
	if (!xrds_proc_sees(seq, xs))
		return 0;
	spin_lock_bh(&xs->lock);
	connected = xs->connected;
	peer = xs->peer;
	ending = xs->ending;
	queued = xs->queued_bytes;
	dests = xs->nr_dests;
	spin_unlock_bh(&xs->lock);

	seq_printf(seq, "%u", xs->id);
	if (xrds_sk_bound(xs))
		xrds_proc_addr(seq, &xs->bind.addr, xs->bind.port);
	else
		seq_printf(seq, " %-21s", "-");
	if (connected)
		xrds_proc_addr(seq, &peer.addr, peer.port);
	else
		seq_printf(seq, " %-21s", "-");
	seq_printf(seq, " %llu %llu %u %s %u %u %llu\n", queued,
		   READ_ONCE(xs->rcv_bytes), xrds_sk_rcvbuf(xs),
		   READ_ONCE(xs->port.congested) ? "congested" :
		   ending ? "ending" : "open",
		   dests, from_kuid_munged(user_ns, xs->uid),
		   /* its type depends on the kernel */
		   (u64)sock_i_ino(&xs->sk));
	return 0;
}

static const struct seq_operations xrds_proc_ops = {
	.start	= xrds_proc_start,
	.next	= xrds_proc_next,
	.stop	= xrds_proc_stop,
	.show	= xrds_proc_show,
};

/**
 * xrds_proc_net_init - show the file
 * @xn: namespace
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int xrds_proc_net_init(struct xrds_net *xn)
{
	if (IS_ENABLED(CONFIG_PROC_FS) &&
	    !proc_create_net("rds", 0444, xn->net->proc_net, &xrds_proc_ops,
			     sizeof(struct seq_net_private)))
		return -ENOMEM;
	return 0;
}

/**
 * xrds_proc_net_exit - remove the file
 * @xn: namespace
 *
 * Context: process; when it returns nobody reads it.
 */
void xrds_proc_net_exit(struct xrds_net *xn)
{
	remove_proc_entry("rds", xn->net->proc_net);
}
