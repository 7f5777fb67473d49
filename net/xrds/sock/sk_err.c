// SPDX-License-Identifier: GPL-2.0-only
/*
 * Errors that the socket core keeps in sk_err.
 *
 * A recvmmsg() that has got messages returns their number, even if a later
 * receive fails. The core then stores the error of that receive in sk_err, if
 * it is not EAGAIN, and the next call returns it, or SO_ERROR. It is about a
 * wait that is over, though: a time-out, or a signal, and then the number may
 * be ERESTARTSYS, which no program is to see.
 *
 * The core stores the error after recvmsg() has returned, so recvmsg() cannot
 * clear it. The kernel closes files whose last reference was dropped in a
 * system call just before the task returns to its program. So a receive that
 * fails drops such a file, and its release clears sk_err. Another thread may
 * look in between; poll() and recvmsg() know then that the error is not the
 * socket's.
 *
 * The socket has one error of its own, ENOBUFS: messages were lost, see recv.c.
 * If the core has stored its error over that one, it is put back.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/slab.h>

#include "msg.h"
#include "sock/sock.h"
#include "xrds.h"

/**
 * struct xrds_sk_err - a receive that has failed
 * @xs:		its socket, with a reference
 * @losses:	xs->losses that the program had been told of
 */
struct xrds_sk_err {
	struct xrds_sock *xs;
	u32 losses;
};

/* Context: process, the system call is over for the task that has made it. */
static int xrds_sk_err_release(struct inode *inode, struct file *file)
{
	struct xrds_sk_err *failed = file->private_data;
	struct xrds_sock *xs = failed->xs;
	struct sock *sk = &xs->sk;

	spin_lock_bh(&sk->sk_receive_queue.lock);
	if (sk->sk_err && !xrds_sk_err_ours(sk))
		WRITE_ONCE(sk->sk_err,
			   xs->losses != failed->losses ? ENOBUFS : 0);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	kfree(failed);
	sock_put(sk);
	return 0;
}

static const struct file_operations xrds_sk_err_fops = {
	.owner		= THIS_MODULE,
	.release	= xrds_sk_err_release,
};

/**
 * xrds_sk_err_forget - the core must not keep the error of this receive
 * @xs: socket
 * @error: the error of recvmsg(), negative
 *
 * Context: process.
 * Return: @error, for recvmsg() to return; or, without memory, -EINTR in the
 * place of -ERESTARTSYS, as the core may keep it then.
 */
int xrds_sk_err_forget(struct xrds_sock *xs, int error)
{
	struct sock *sk = &xs->sk;
	struct xrds_sk_err *failed;
	struct file *file;

	/* the core does not keep the first; the second is the socket's own */
	if (error == -EAGAIN || error == -ENOBUFS)
		return error;
	failed = kmalloc(sizeof(*failed), GFP_KERNEL);
	if (!failed)
		goto err;
	spin_lock_bh(&sk->sk_receive_queue.lock);
	failed->xs = xs;
	failed->losses = xs->losses - xrds_sk_err_ours(sk);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	file = anon_inode_getfile("[xrds]", &xrds_sk_err_fops, failed,
				  O_RDONLY);
	if (IS_ERR(file)) {
		kfree(failed);
		goto err;
	}
	sock_hold(sk);
	fput(file);
	return error;
err:
	return error == -ERESTARTSYS ? -EINTR : error;
}
