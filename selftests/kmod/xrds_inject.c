// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests with failing allocations: fault injection with a task filter
 * strikes where XRDS starts connections, and nowhere else.
 *
 * Fault injection can tell tasks apart, but workers serve everybody, and its
 * filter of stack traces is not to be had on x86-64 in 6.1. So this marks a
 * task (make_it_fail) while it is in one of our functions that run in workers
 * of others. Further down some functions of the kernel are spared, because
 * they themselves do not survive a failure:
 *
 *   rxe_create_qp	deletes timers that it has not set up yet
 *   cma_alloc_port	leaves empty nodes in an XArray that has to be empty when
 *			rdma_cm is unloaded
 *
 * Loading fails unless all of these functions are there.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>

enum {
	MAX_TASKS	= 256,	/* within one function at a time */
};

static int enter(struct kretprobe_instance *instance, bool fail)
{
	/* All of them may sleep, so it is the task's: a look at the context
	 * would see that of the probe.
	 */
	*(int *)instance->data = current->make_it_fail;
	current->make_it_fail = fail;
	return 0;
}

static int enter_ours(struct kretprobe_instance *instance,
		      struct pt_regs *regs)
{
	return enter(instance, true);
}

static int enter_spared(struct kretprobe_instance *instance,
			struct pt_regs *regs)
{
	return enter(instance, false);
}

static int leave(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	current->make_it_fail = *(int *)instance->data;
	return 0;
}

#define WITHIN(name, on_entry)				\
	{						\
		.kp.symbol_name	= name,			\
		.entry_handler	= on_entry,		\
		.handler	= leave,		\
		.data_size	= sizeof(int),		\
		.maxactive	= MAX_TASKS,		\
	}

static struct kretprobe probes[] = {
	WITHIN("xrds_state_work", enter_ours),
	WITHIN("xrds_ib_cm_req_listen", enter_ours),
	WITHIN("xrds_ib_cm_event", enter_ours),
	WITHIN("xrds_ib_rq_refill", enter_ours),
	WITHIN("rxe_create_qp", enter_spared),
	WITHIN("cma_alloc_port", enter_spared),
};

static struct kretprobe *list[ARRAY_SIZE(probes)];

static int __init xrds_inject_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		list[i] = &probes[i];
	return register_kretprobes(list, ARRAY_SIZE(list));
}

static void __exit xrds_inject_exit(void)
{
	unregister_kretprobes(list, ARRAY_SIZE(list));
}

module_init(xrds_inject_init);
module_exit(xrds_inject_exit);
MODULE_DESCRIPTION("Fault injection where XRDS starts connections");
MODULE_LICENSE("GPL");
