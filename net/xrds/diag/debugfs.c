// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults on demand, for tests: files in xrds/ of debugfs.
 *
 *   break	whatever is written to it, all connections of the writer's
 *		network namespace fail, as if their queue pairs had
 */
#include <linux/debugfs.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>

#include "diag/diag.h"
#include "conn/conn.h"
#include "xrds.h"

static struct dentry *xrds_inject_dir;

static ssize_t xrds_inject_break(struct file *file, const char __user *buf,
				 size_t len, loff_t *pos)
{
	xrds_conn_break_all(xrds_net(current->nsproxy->net_ns));
	return len;
}

static const struct file_operations xrds_inject_break_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.write	= xrds_inject_break,
};

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
