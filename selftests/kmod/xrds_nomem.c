// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests: no memory for received messages that are copied, or for messages
 * that the kernel sends of its own accord, or no pages but small ones.
 *
 * Fault injection strikes whoever allocates, soft-RoCE and the connection
 * manager too, and is not in each kernel. This makes one of two functions of
 * XRDS return NULL where it may not wait, each so many calls, and nothing else.
 *
 * With min_order the page allocator has no pages of that order or above for
 * kernel threads, softirqs and the calls of helper_stream, as if memory was
 * fragmented. Other processes still have them: without a page table of two pages
 * none could begin.
 */
#include <linux/atomic.h>
#include <linux/gfp.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>

static unsigned int every, every_sent;
module_param(every, uint, 0644);
MODULE_PARM_DESC(every, "Received messages: which of them fail; 0: none");
module_param(every_sent, uint, 0644);
MODULE_PARM_DESC(every_sent, "The same for messages that are sent");

static unsigned int min_order;
module_param(min_order, uint, 0644);
MODULE_PARM_DESC(min_order, "Lowest order of pages that there are none of; 0: all");

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

static int fail(struct pt_regs *regs)
{
	atomic_inc(&failed);
	/* it has not begun, so this one returns to its caller */
	instruction_pointer_set(regs, (unsigned long)no_memory);
	return 1;
}

static int strike(struct pt_regs *regs, gfp_t gfp, unsigned int n)
{
	if (!n || gfpflags_allow_blocking(gfp) ||
	    atomic_inc_return(&calls) % n)
		return 0;
	return fail(regs);
}

/* xrds_msg_alloc_skb(len, gfp) */
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

/* the page allocator(gfp, order, ...) */
static int strike_pages(struct kprobe *probe, struct pt_regs *regs)
{
	unsigned int min = READ_ONCE(min_order);

	if (!min || regs_get_kernel_argument(regs, 1) < min ||
	    regs_get_kernel_argument(regs, 0) & __GFP_NOFAIL ||
	    !(in_serving_softirq() || current->flags & PF_KTHREAD ||
	      !strcmp(current->comm, "helper_stream")))
		return 0;
	return fail(regs);
}

/* With it the probe is not optimized, which would ignore where it goes on. */
static void unoptimized(struct kprobe *probe, struct pt_regs *regs,
			unsigned long flags)
{
}

static struct kprobe received = {
	.symbol_name	= "xrds_msg_alloc_skb",
	.pre_handler	= strike_received,
	.post_handler	= unoptimized,
};

static struct kprobe sent = {
	.symbol_name	= "xrds_msg_alloc",
	.pre_handler	= strike_sent,
	.post_handler	= unoptimized,
};

static struct kprobe pages = {
	.pre_handler	= strike_pages,
	.post_handler	= unoptimized,
};

static struct kprobe *probes[] = { &received, &sent };

/* names of the page allocator; a newer kernel has an older one, too, which
 * calls the newer
 */
static const char * const allocators[] = {
	"__alloc_frozen_pages_noprof", "__alloc_pages_noprof", "__alloc_pages",
};

static int __init register_allocator(void)
{
	unsigned int i;
	int ret = -ENOENT;

	for (i = 0; ret == -ENOENT && i < ARRAY_SIZE(allocators); i++) {
		pages.symbol_name = allocators[i];
		ret = register_kprobe(&pages);
	}
	return ret;
}

static int __init xrds_nomem_init(void)
{
	int ret = register_allocator();

	if (ret)
		return ret;
	ret = register_kprobes(probes, ARRAY_SIZE(probes));
	if (ret)
		unregister_kprobe(&pages);
	return ret;
}

static void __exit xrds_nomem_exit(void)
{
	unregister_kprobes(probes, ARRAY_SIZE(probes));
	unregister_kprobe(&pages);
}

module_init(xrds_nomem_init);
module_exit(xrds_nomem_exit);
MODULE_DESCRIPTION("No memory for messages of XRDS");
MODULE_LICENSE("GPL");
