// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests: pages that stay locked, as the owner of a file system in user space
 * can have them.
 *
 * A program writes the address of a page of its own to the file, and the page is
 * locked, and not dirty, until the file is closed for the last time.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pagemap.h>

static struct dentry *dir;

static ssize_t hold(struct file *file, const char __user *buffer, size_t len,
		    loff_t *pos)
{
	unsigned long addr;
	struct page *page;

	if (len != sizeof(addr) || file->private_data)
		return -EINVAL;
	if (copy_from_user(&addr, buffer, sizeof(addr)))
		return -EFAULT;
	if (get_user_pages_fast(addr, 1, FOLL_WRITE, &page) != 1)
		return -EFAULT;
	folio_lock(page_folio(page));
	folio_clear_dirty(page_folio(page));
	file->private_data = page;
	return len;
}

static int let_go(struct inode *inode, struct file *file)
{
	struct page *page = file->private_data;

	if (page) {
		folio_unlock(page_folio(page));
		put_page(page);
	}
	return 0;
}

static const struct file_operations page_fops = {
	.owner		= THIS_MODULE,
	.open		= nonseekable_open,
	.write		= hold,
	.release	= let_go,
};

static int __init xrds_pagelock_init(void)
{
	dir = debugfs_create_dir("xrds_pagelock", NULL);
	debugfs_create_file("page", 0200, dir, NULL, &page_fops);
	return 0;
}

static void __exit xrds_pagelock_exit(void)
{
	debugfs_remove(dir);
}

module_init(xrds_pagelock_init);
module_exit(xrds_pagelock_exit);
MODULE_DESCRIPTION("Pages that stay locked");
MODULE_LICENSE("GPL");
