// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests: received messages that find no memory to be copied to.
 *
 * Fault injection strikes whoever allocates, soft-RoCE and the connection
 * manager too, and is not in each kernel. This makes one function of XRDS
 * return NULL where it may not wait, each so many calls, and nothing else.
 */
#include <linux/atomic.h>
#include <linux/gfp.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static unsigned int every;
module_param(every, uint, 0644);
MODULE_PARM_DESC(every, "Which of the calls that may not wait fail; 0: none");

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

/* xrds_skb_alloc(len, gfp) */
static int strike(struct kprobe *probe, struct pt_regs *regs)
{
	gfp_t gfp = regs_get_kernel_argument(regs, 1);
	unsigned int n = READ_ONCE(every);

	if (!n || gfpflags_allow_blocking(gfp) ||
	    atomic_inc_return(&calls) % n)
		return 0;
	atomic_inc(&failed);
	/* it has not begun, so this one returns to its caller */
	instruction_pointer_set(regs, (unsigned long)no_memory);
	return 1;
}

/* With it the probe is not optimized, which would ignore where it goes on. */
static void unoptimized(struct kprobe *probe, struct pt_regs *regs,
			unsigned long flags)
{
}

static struct kprobe probe = {
	.symbol_name	= "xrds_skb_alloc",
	.pre_handler	= strike,
	.post_handler	= unoptimized,
};

static int __init xrds_nomem_init(void)
{
	return register_kprobe(&probe);
}

static void __exit xrds_nomem_exit(void)
{
	unregister_kprobe(&probe);
}

module_init(xrds_nomem_init);
module_exit(xrds_nomem_exit);
MODULE_DESCRIPTION("No memory for received messages of XRDS");
MODULE_LICENSE("GPL");
