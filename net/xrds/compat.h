/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only place that knows that kernels differ. Each XRDS_HAVE_ symbol is
 * found by compiling a snippet (tools/probe/) against the kernel's headers;
 * the code elsewhere reads like the newest supported kernel's.
 */
#ifndef _XRDS_COMPAT_H
#define _XRDS_COMPAT_H

#include <linux/compat.h>
#include <linux/errno.h>
#include <linux/percpu_counter.h>
#include <linux/ptrace.h>
#include <linux/rds.h>
#include <linux/sched.h>
#include <linux/socket.h>
#include <linux/sysctl.h>
#include <linux/uio.h>
#include <net/net_namespace.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

/* in a kernel's tree, Linux 7.2 or later; else Kbuild includes xrds-probes.h */
#ifndef _XRDS_PROBES_H
#define XRDS_HAVE_CONST_CTL_TABLE		1
#define XRDS_HAVE_IB_RESIZE_CQ			0
#define XRDS_HAVE_REGISTER_NET_SYSCTL_SZ	1
#define XRDS_HAVE_SOCKADDR_UNSIZED		1
#endif

#if !XRDS_HAVE_SOCKADDR_UNSIZED
#define sockaddr_unsized sockaddr
#endif

#if XRDS_HAVE_CONST_CTL_TABLE
#define XRDS_CTL_CONST	const
#else
#define XRDS_CTL_CONST
#endif

/* the member is there only if 32-bit programs can be, and so are types of theirs */
#ifdef CONFIG_COMPAT
#define XRDS_COMPAT_IOCTL(_ioctl)	.compat_ioctl = _ioctl,

/* struct rds_rdma_notify as they have it: on i386 nothing is behind the status */
struct xrds_compat_notify {
	compat_u64 user_token;
	compat_int_t status;
};

/* struct rds_cmsg_rx_trace: on i386 the latencies follow the positions at once */
struct xrds_compat_rx_trace {
	u8 rx_traces;
	u8 rx_trace_pos[RDS_MSG_RX_DGRAM_TRACE_MAX];
	compat_u64 rx_trace[RDS_MSG_RX_DGRAM_TRACE_MAX];
};
#else
#define XRDS_COMPAT_IOCTL(_ioctl)
#define xrds_compat_notify		rds_rdma_notify
#define xrds_compat_rx_trace		rds_cmsg_rx_trace
#endif

/* epoll_ctl() of 32-bit programs, where they have their own numbers */
#if defined(__NR_ia32_epoll_ctl)
#define XRDS_NR_COMPAT_EPOLL_CTL	__NR_ia32_epoll_ctl
#elif defined(CONFIG_ARM64)
#define XRDS_NR_COMPAT_EPOLL_CTL	251
#elif defined(CONFIG_MIPS)
/* o32, and n32 */
#define XRDS_NR_COMPAT_EPOLL_CTL	\
	(test_thread_flag(TIF_32BIT_REGS) ? 4249 : 6208)
#else
#define XRDS_NR_COMPAT_EPOLL_CTL	__NR_epoll_ctl
#endif

/* Is ->poll called by epoll_ctl()? Its arguments do not tell: EPOLL_CTL_MOD has
 * those of epoll_wait(), and EPOLL_CTL_ADD those of io_uring. Of a thread of the
 * kernel's own the answer is no.
 */
static inline bool xrds_in_epoll_ctl(void)
{
	return !(current->flags & PF_KTHREAD) &&
	       syscall_get_nr(current, current_pt_regs()) ==
	       (in_compat_syscall() ? XRDS_NR_COMPAT_EPOLL_CTL :
				      __NR_epoll_ctl);
}

/* percpu_counter_add_batch(), without a call while the processor keeps its part
 * to itself
 */
static inline void xrds_percpu_counter_add(struct percpu_counter *counter, s64 n,
					   s32 batch)
{
#ifdef CONFIG_SMP
	s64 part;

	preempt_disable();
	part = __this_cpu_read(*counter->counters) + n;
	if (likely(part < batch && part > -batch))
		this_cpu_add(*counter->counters, n);
	else
		percpu_counter_add_batch(counter, n, batch);
	preempt_enable();
#else
	percpu_counter_add_batch(counter, n, batch);
#endif
}

#if !XRDS_HAVE_REGISTER_NET_SYSCTL_SZ
/* the table must have an empty entry at its end */
static inline struct ctl_table_header *
register_net_sysctl_sz(struct net *net, const char *path,
		       struct ctl_table *table, size_t size)
{
	return register_net_sysctl(net, path, table);
}
#endif

#if !XRDS_HAVE_IB_RESIZE_CQ
struct ib_cq;

/* a queue of the kernel's own keeps its size; a larger one is made anew */
static inline int ib_resize_cq(struct ib_cq *cq, int cqe)
{
	return -EOPNOTSUPP;
}
#endif

/* sendfile(), which calls sendmsg() without a flag before Linux 6.5 */
#ifndef MSG_SPLICE_PAGES
#define MSG_SPLICE_PAGES	0
#endif

/* where the next bytes of a program's memory are */
#ifndef iter_iov_addr
static inline void __user *iter_iov_addr(const struct iov_iter *i)
{
	return (iter_is_ubuf(i) ? i->ubuf : i->iov->iov_base) + i->iov_offset;
}
#endif

#endif /* _XRDS_COMPAT_H */
