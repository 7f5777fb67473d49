// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests: no memory for received messages that are copied, or for messages
 * that the kernel sends of its own accord.
 *
 * Fault injection strikes whoever allocates, soft-RoCE and the connection
 * manager too, and is not in each kernel. This makes one of two functions of
 * XRDS return NULL where it may not wait, each so many calls, and nothing else.
 */
#include <linux/atomic.h>
#include <linux/gfp.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static unsigned int every, every_sent;
module_param(every, uint, 0644);
MODULE_PARM_DESC(every, "Received messages: which of them fail; 0: none");
module_param(every_sent, uint, 0644);
MODULE_PARM_DESC(every_sent, "The same for messages that are sent");

static atomic_t calls, failed;

static int struck_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(&failed));
}

static const struct kernel_param_ops struck_ops = { .get = struck_get };

module_param_cb(struck, &struck_ops, NULL, 0444);
MODULE_PARM_DESC(struck, "How many have failed");

static void *no_memory(void)
{
	return NULL;
}

static int strike(struct pt_regs *regs, gfp_t gfp, unsigned int n)
{
	if (!n || gfpflags_allow_blocking(gfp) ||
	    atomic_inc_return(&calls) % n)
		return 0;
	atomic_inc(&failed);
	/* it has not begun, so this one returns to its caller */
	instruction_pointer_set(regs, (unsigned long)no_memory);
	return 1;
}

/* xrds_skb_alloc(len, gfp) */
static int strike_received(struct kprobe *probe, struct pt_regs *regs)
{
	return strike(regs, regs_get_kernel_argument(regs, 1),
		      READ_ONCE(every));
}

/* xrds_msg_alloc(xn, nr_bv, gfp) */
static int strike_sent(struct kprobe *probe, struct pt_regs *regs)
{
	return strike(regs, regs_get_kernel_argument(regs, 2),
		      READ_ONCE(every_sent));
}

/* With it the probe is not optimized, which would ignore where it goes on. */
static void unoptimized(struct kprobe *probe, struct pt_regs *regs,
			unsigned long flags)
{
}

static struct kprobe received = {
	.symbol_name	= "xrds_skb_alloc",
	.pre_handler	= strike_received,
	.post_handler	= unoptimized,
};

static struct kprobe sent = {
	.symbol_name	= "xrds_msg_alloc",
	.pre_handler	= strike_sent,
	.post_handler	= unoptimized,
};

static struct kprobe *probes[] = { &received, &sent };

static int __init xrds_nomem_init(void)
{
	return register_kprobes(probes, ARRAY_SIZE(probes));
}

static void __exit xrds_nomem_exit(void)
{
	unregister_kprobes(probes, ARRAY_SIZE(probes));
}

module_init(xrds_nomem_init);
module_exit(xrds_nomem_exit);
MODULE_DESCRIPTION("No memory for messages of XRDS");
MODULE_LICENSE("GPL");
