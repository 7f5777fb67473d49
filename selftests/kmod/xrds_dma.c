// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests: soft-RoCE with DMA addresses, as an adapter has them.
 *
 * Soft-RoCE takes virtual addresses. So ib_dma_map_page() and its relatives map
 * nothing for it, and no mistake in a mapping shows. A device of it that is added
 * behind this module belongs to a platform device. Its users map their memory for
 * that: with bounce buffers if the kernel was booted with swiotlb=force, and
 * under the eyes of CONFIG_DMA_API_DEBUG. A request's addresses become virtual
 * ones while the driver copies it.
 *
 * The memory that the driver finds is that which was mapped. Like an adapter it
 * does not see what a program writes to memory behind a bounce buffer without a
 * sync, and a program does not see what the device writes.
 *
 * XRDS takes such a device for an adapter, but it has the faults of soft-RoCE, which
 * have workarounds (net/xrds/ib/quirks.c). So XRDS is told of them. With the
 * parameter "faultless" it is not, and works as it does on an adapter.
 *
 * With the parameter "every" mappings of XRDS fail, of pages and of regions.
 *
 * The core of RDMA maps memory for its own messages as soon as there is a device.
 * So the device is changed where it is registered. The module stays for good.
 */
#include <linux/atomic.h>
#include <linux/dma-mapping.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

#include "ib/ib.h"

#ifndef CONFIG_X86_64
#error "the arguments of a function are changed in registers of x86"
#endif

static bool faultless;
module_param(faultless, bool, 0444);
MODULE_PARM_DESC(faultless, "Do without the workarounds for soft-RoCE");

static unsigned int every;
module_param(every, uint, 0644);
MODULE_PARM_DESC(every, "Mappings: which of them fail; 0: none");

static atomic_t calls, failed;

static int failed_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(&failed));
}

static const struct kernel_param_ops failed_ops = { .get = failed_get };

module_param_cb(failed, &failed_ops, NULL, 0444);
MODULE_PARM_DESC(failed, "How many have failed");

static struct platform_device *dma_dev;

/* The driver's own operations, the same for all of its devices */
static typeof_member(struct ib_device, ops) real;

static u64 to_virt(u64 addr)
{
	return addr < PAGE_OFFSET ? (uintptr_t)phys_to_virt(addr) : addr;
}

static u64 to_dma(u64 addr)
{
	return addr < PAGE_OFFSET ? addr : virt_to_phys((void *)addr);
}

static void change_list(struct ib_sge *sge, int nr, u64 (*change)(u64 addr))
{
	int i;

	for (i = 0; i < nr; i++)
		sge[i].addr = change(sge[i].addr);
}

static void change_sends(const struct ib_send_wr *wr, u64 (*change)(u64 addr))
{
	for (; wr; wr = wr->next)
		change_list(wr->sg_list, wr->num_sge, change);
}

static void change_recvs(const struct ib_recv_wr *wr, u64 (*change)(u64 addr))
{
	for (; wr; wr = wr->next)
		change_list(wr->sg_list, wr->num_sge, change);
}

static int dma_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad)
{
	int ret;

	change_sends(wr, to_virt);
	ret = real.post_send(qp, wr, bad);
	change_sends(wr, to_dma);
	return ret;
}

static int dma_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad)
{
	int ret;

	change_recvs(wr, to_virt);
	ret = real.post_recv(qp, wr, bad);
	change_recvs(wr, to_dma);
	return ret;
}

static int dma_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr,
			     const struct ib_recv_wr **bad)
{
	int ret;

	change_recvs(wr, to_virt);
	ret = real.post_srq_recv(srq, wr, bad);
	change_recvs(wr, to_dma);
	return ret;
}

static int dma_map_mr_sg(struct ib_mr *mr, struct scatterlist *sgl, int nents,
			 unsigned int *offset)
{
	struct scatterlist *sg;
	int ret, i;

	for_each_sg(sgl, sg, nents, i)
		sg_dma_address(sg) = to_virt(sg_dma_address(sg));
	ret = real.map_mr_sg(mr, sgl, nents, offset);
	for_each_sg(sgl, sg, nents, i)
		sg_dma_address(sg) = to_dma(sg_dma_address(sg));
	return ret;
}

/* ib_register_device(dev, name, dma_device) is about to run. */
static int change_device(struct kprobe *probe, struct pt_regs *regs)
{
	struct ib_device *dev = (void *)regs->di;

	if (dev->ops.driver_id != RDMA_DRIVER_RXE)
		return 0;
	real = dev->ops;
	dev->ops.post_send = dma_post_send;
	dev->ops.post_recv = dma_post_recv;
	dev->ops.post_srq_recv = dma_post_srq_recv;
	dev->ops.map_mr_sg = dma_map_mr_sg;
	regs->dx = (uintptr_t)&dma_dev->dev;
	return 0;
}

/* ib_set_client_data(dev, client, data): if the client is XRDS, it has just found
 * out what the device needs.
 */
static int tell_faults(struct kprobe *probe, struct pt_regs *regs)
{
	const struct ib_device *dev = (void *)regs->di;
	const struct ib_client *client = (void *)regs->si;
	struct xrds_ib_dev *ibdev = (void *)regs->dx;

	if (faultless || dev->dma_device != &dma_dev->dev ||
	    strcmp(client->name, "xrds"))
		return 0;
	ibdev->quirks.weak_fences = true;
	ibdev->quirks.late_copies = true;
	ibdev->quirks.spare_pages = true;
	return 0;
}

static dma_addr_t no_page(void)
{
	return DMA_MAPPING_ERROR;
}

static int no_region(void)
{
	return -ENOMEM;
}

/* The core of RDMA maps its messages by the same functions. */
static bool called_by_xrds(struct pt_regs *regs)
{
	char name[KSYM_SYMBOL_LEN];

	sprint_symbol(name, *(unsigned long *)regs->sp);
	return strstr(name, "[xrds_ib]");
}

static int strike(struct pt_regs *regs, const void *instead)
{
	unsigned int n = READ_ONCE(every);

	if (!n || (void *)regs->di != &dma_dev->dev || !called_by_xrds(regs) ||
	    atomic_inc_return(&calls) % n)
		return 0;
	atomic_inc(&failed);
	/* it has not begun, so this one returns to its caller */
	instruction_pointer_set(regs, (unsigned long)instead);
	return 1;
}

/* dma_map_page_attrs(dev, ...) */
static int strike_page(struct kprobe *probe, struct pt_regs *regs)
{
	return strike(regs, no_page);
}

/* dma_map_sgtable(dev, ...) */
static int strike_region(struct kprobe *probe, struct pt_regs *regs)
{
	return strike(regs, no_region);
}

/* With it the probe is not optimized, which would ignore where it goes on. */
static void unoptimized(struct kprobe *probe, struct pt_regs *regs,
			unsigned long flags)
{
}

static struct kprobe device = {
	.symbol_name	= "ib_register_device",
	.pre_handler	= change_device,
};

static struct kprobe faults = {
	.symbol_name	= "ib_set_client_data",
	.pre_handler	= tell_faults,
};

static struct kprobe pages = {
	.symbol_name	= "dma_map_page_attrs",
	.pre_handler	= strike_page,
	.post_handler	= unoptimized,
};

static struct kprobe regions = {
	.symbol_name	= "dma_map_sgtable",
	.pre_handler	= strike_region,
	.post_handler	= unoptimized,
};

static struct kprobe *probes[] = { &device, &faults, &pages, &regions };

static int __init xrds_dma_init(void)
{
	const struct platform_device_info info = {
		.name		= "xrds_dma",
		.id		= PLATFORM_DEVID_NONE,
		.dma_mask	= DMA_BIT_MASK(64),
	};
	int ret;

	dma_dev = platform_device_register_full(&info);
	if (IS_ERR(dma_dev))
		return PTR_ERR(dma_dev);
	ret = register_kprobes(probes, ARRAY_SIZE(probes));
	if (ret)
		platform_device_unregister(dma_dev);
	return ret;
}

module_init(xrds_dma_init);
MODULE_DESCRIPTION("soft-RoCE with DMA addresses, as an adapter has them");
MODULE_LICENSE("GPL");
