// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files for tests, in xrds/ of debugfs.
 *
 *   break	whatever is written to it, all connections of the writer's
 *		network namespace fail, as if their queue pairs had
 *   holds	for each kind of loop under a spin lock its name, the most steps
 *		that it has made in one hold, and its bound; a line each, see
 *		hold.c
 */
#include <linux/debugfs.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/seq_file.h>

#include "diag/diag.h"
#include "conn/conn.h"
#include "xrds.h"

static struct dentry *xrds_inject_dir;

static ssize_t xrds_inject_break(struct file *file, const char __user *buf,
				 size_t len, loff_t *pos)
{
	const struct xrds_conn_match all = { .tos = -1 };

	xrds_conn_net_reset(xrds_net(current->nsproxy->net_ns), &all);
	return len;
}

static const struct file_operations xrds_inject_break_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.write	= xrds_inject_break,
};

static int xrds_holds_show(struct seq_file *seq, void *v)
{
	struct xrds_hold_kind kind;
	u32 hold, most;

	for (hold = 0; hold < XRDS_HOLDS; hold++) {
		most = xrds_hold_most(hold, &kind);
		seq_printf(seq, "%s %u %u\n", kind.name, most, kind.most);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(xrds_holds);

/**
 * xrds_debugfs_init - module init
 *
 * Context: process.
 */
void xrds_debugfs_init(void)
{
	/* without debugfs there are no files, and nobody asks for them */
	xrds_inject_dir = debugfs_create_dir("xrds", NULL);
	debugfs_create_file("break", 0200, xrds_inject_dir, NULL,
			    &xrds_inject_break_fops);
	debugfs_create_file("holds", 0400, xrds_inject_dir, NULL,
			    &xrds_holds_fops);
}

/**
 * xrds_debugfs_exit - module exit
 *
 * Context: process; when it returns nobody is in a file.
 */
void xrds_debugfs_exit(void)
{
	debugfs_remove(xrds_inject_dir);
}
