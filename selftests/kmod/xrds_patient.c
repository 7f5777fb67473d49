// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests: a module or a device that goes waits long for its peers.
 *
 * It gives the messages of closed sockets two seconds, and its connections two more
 * to end in order. A busy host stops a node for longer, and then the end is none in
 * order, by right. With this module each of these waits is a minute: so a test judges
 * how connections end, and not how fast the nodes are. "stretched" counts the waits.
 *
 * It is loaded behind xrds, and once more when xrds has been loaded again.
 */
#include <linux/atomic.h>
#include <linux/kprobes.h>
#include <linux/module.h>

enum {
	USUAL_MS	= 2000,		/* XRDS_CONN_FLUSH_MS, XRDS_CLOSE_MS */
	LONG_MS		= 60000,
};

static atomic_t stretched;

static int stretched_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(&stretched));
}

static const struct kernel_param_ops stretched_ops = { .get = stretched_get };

module_param_cb(stretched, &stretched_ops, NULL, 0444);
MODULE_PARM_DESC(stretched, "How many waits were made long");

/* xrds_conn_deadline(ms) */
static int before_deadline(struct kprobe *probe, struct pt_regs *regs)
{
	if ((u32)regs->di == USUAL_MS) {
		regs->di = LONG_MS;
		atomic_inc(&stretched);
	}
	return 0;
}

static struct kprobe deadline = {
	.symbol_name	= "xrds_conn_deadline",
	.pre_handler	= before_deadline,
};

static int __init xrds_patient_init(void)
{
	return register_kprobe(&deadline);
}

static void __exit xrds_patient_exit(void)
{
	unregister_kprobe(&deadline);
}

module_init(xrds_patient_init);
module_exit(xrds_patient_exit);
MODULE_DESCRIPTION("Modules and devices that go wait long for their peers");
MODULE_LICENSE("GPL");
