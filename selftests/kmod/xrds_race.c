// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests: races that are seldom come about. A parameter arms one of them, for so
 * many milliseconds of waiting at each place, and it happens once:
 *
 *   refused	the peer is told of a refusal while the message comes that ends it:
 *		the work that tells waits for that message, and it for the list to
 *		be made, and the list for the message to be received. Nobody else
 *		tells meanwhile.
 *   resume	a message that ends a refusal is cancelled while it is handed to
 *		the device, which has no room for it.
 *
 * "held" counts the races that were waited for, "met" those that came about. Both
 * sides of a race need a processor.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <asm/linkage.h>

#include "msg.h"
#include "transport.h"
#include "wire/wire.h"

static unsigned int refused, resume;
module_param(refused, uint, 0644);
MODULE_PARM_DESC(refused, "Wait so long for a refusal and its end, ms; 0: not");
module_param(resume, uint, 0644);
MODULE_PARM_DESC(resume, "Wait so long for a message to be cancelled, ms; 0: not");

static atomic_t held, met;

static int count_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(kp->arg));
}

static const struct kernel_param_ops count_ops = { .get = count_get };

module_param_cb(held, &count_ops, &held, 0444);
MODULE_PARM_DESC(held, "How many races were waited for");
module_param_cb(met, &count_ops, &met, 0444);
MODULE_PARM_DESC(met, "How many of them came about");

/* The message that ends a refusal has come; the list of refusals is made */
static bool come, listed;

void xrds_race_return(void);
asm(".text\n\t"
	".type xrds_race_return, @function\n"
	"xrds_race_return:\n\t"
	ASM_RET
	".size xrds_race_return, .-xrds_race_return\n");

/* The function is not called, and returns this. */
static int fails(struct pt_regs *regs, int error)
{
	regs->ax = error;
	regs->ip = (unsigned long)xrds_race_return;
	return 1;
}

static bool wait_for(const bool *flag, unsigned int ms)
{
	while (!READ_ONCE(*flag) && ms--)
		mdelay(1);
	return READ_ONCE(*flag);
}

/* -------------------------------------------------------------- refused */

/* xrds_tx_pump(conn) */
static int before_pump(struct kprobe *p, struct pt_regs *regs)
{
	const struct xrds_conn *conn = (void *)regs->di;
	unsigned int ms = READ_ONCE(refused);

	if (ms && !in_serving_softirq() && READ_ONCE(conn->tx_open) &&
	    READ_ONCE(conn->refused_floor))
		wait_for(&come, ms);
	return 0;
}

/* xrds_refuse_drops(conn, wm) */
static int before_drops(struct kprobe *p, struct pt_regs *regs)
{
	const struct xrds_wire_msg *wm = (void *)regs->si;
	unsigned int ms = READ_ONCE(refused);

	if (!ms || !(wm->flags & XRDS_F_RESUME))
		return 0;
	atomic_inc(&held);
	WRITE_ONCE(come, true);
	wait_for(&listed, ms);
	return 0;
}

/* xrds_ib_send_ctl(conn, type, ...) */
static int before_ctl(struct kprobe *p, struct pt_regs *regs)
{
	const struct xrds_conn *conn = (void *)regs->di;
	u64 ack = READ_ONCE(conn->rx_ack);
	unsigned int ms = READ_ONCE(refused);

	if (!ms || (u8)regs->si != XRDS_CTL_REFUSED)
		return 0;
	if (!READ_ONCE(come))
		return fails(regs, -EAGAIN);
	WRITE_ONCE(listed, true);
	while (READ_ONCE(conn->rx_ack) == ack && ms--)
		mdelay(1);
	if (READ_ONCE(conn->rx_ack) != ack)
		atomic_inc(&met);
	WRITE_ONCE(refused, 0);
	WRITE_ONCE(come, false);
	WRITE_ONCE(listed, false);
	return 0;
}

/* --------------------------------------------------------------- resume */

/* xrds_ib_send_msg(conn, msg) */
static int before_msg(struct kprobe *p, struct pt_regs *regs)
{
	const struct xrds_msg *msg = (void *)regs->si;
	unsigned int ms = READ_ONCE(resume);

	if (!ms || !(msg->flags & XRDS_F_RESUME))
		return 0;
	WRITE_ONCE(resume, 0);
	atomic_inc(&held);
	if (!wait_for(&msg->ended, ms))
		return 0;
	atomic_inc(&met);
	return fails(regs, -EAGAIN);
}

/* With it a probe can change the flow of the program: it is not optimized. */
static void after(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
}

#define PROBE(_symbol, _before)						\
	{ .symbol_name = _symbol, .pre_handler = _before, .post_handler = after }

static struct kprobe race_probes[] = {
	PROBE("xrds_tx_pump", before_pump),
	PROBE("xrds_refuse_drops", before_drops),
	PROBE("xrds_ib_send_ctl", before_ctl),
	PROBE("xrds_ib_send_msg", before_msg),
};

static int __init xrds_race_init(void)
{
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(race_probes); i++) {
		ret = register_kprobe(&race_probes[i]);
		if (ret)
			goto err_probes;
	}
	return 0;

err_probes:
	while (i--)
		unregister_kprobe(&race_probes[i]);
	return ret;
}

static void __exit xrds_race_exit(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(race_probes); i++)
		unregister_kprobe(&race_probes[i]);
}

module_init(xrds_race_init);
module_exit(xrds_race_exit);
MODULE_DESCRIPTION("Races of XRDS that come about, for tests");
MODULE_LICENSE("GPL");
