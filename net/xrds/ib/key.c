// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys: a peer that has the key of one region reaches no other one with it.
 *
 * A device finds a region by its key, a number of 32 bits that is unique on
 * this device, while the region lives. Devices number independently, so regions
 * of two devices may have the same number at the same time. Later regions get
 * it again: soon when a device is added anew or is reset, as it counts from the
 * beginning then. When an address moves, the peer's op goes to another device,
 * with the key of a region of the old one. Peers may keep a key for ever, and no
 * device can tell them apart by it.
 *
 * It can by the address. An access has the key and an address, and the device
 * refuses one outside the region's range. The cookie of a region has 32 bits
 * for the address of its first byte, of which the device determines only those
 * in its page. The others are drawn at random for each region, so that also a
 * peer that tries keys has to try 2^20 of these addresses, and breaks its
 * connection with each of them.
 *
 *   drawn, in the tree -> dead, in the tree and in a row -> forgotten
 *
 * An accident needs no luck: all regions are in one tree, those of all devices
 * and namespaces together, from before their key is valid. No two regions there
 * have the same number and a page in common. A region that dies leaves its
 * place in the tree to one of XRDS_IB_KEYS records, with no gap between. If all
 * records are in use, the oldest one of the user who has the most of them is
 * used again: a user who registers often forgets his own regions, and not those
 * of users with fewer.
 */
#include <linux/hash.h>
#include <linux/list.h>
#include <linux/random.h>
#include <linux/rbtree.h>
#include <linux/vmalloc.h>

#include "ib/ib.h"

enum {
	XRDS_IB_KEYS		= 16384,
	XRDS_IB_KEY_ROW_BITS	= 6,
	XRDS_IB_KEY_ROWS	= 1 << XRDS_IB_KEY_ROW_BITS,
	XRDS_IB_KEY_TRIES	= 16,
	XRDS_IB_KEY_PAGES	= 1U << (32 - PAGE_SHIFT),
};

/**
 * struct xrds_ib_dead_key - record of a dead region
 * @key:	its key
 * @entry:	in the row of its user
 */
struct xrds_ib_dead_key {
	struct xrds_ib_key key;
	struct list_head entry;
};

/**
 * struct xrds_ib_key_row - the dead regions of a user
 * @uid:	the user
 * @dead:	records, oldest first
 * @nr:		length of @dead; 0: the row is nobody's
 */
struct xrds_ib_key_row {
	u32 uid;
	struct list_head dead;
	u32 nr;
};

/* guards all of them; leaf */
static DEFINE_SPINLOCK(xrds_ib_keys_lock);
static struct rb_root xrds_ib_keys_tree = RB_ROOT;
static struct xrds_ib_key_row xrds_ib_key_rows[XRDS_IB_KEY_ROWS];
static struct xrds_ib_dead_key *xrds_ib_dead_keys;
static u32 xrds_ib_nr_dead_keys;	/* records that were used before */

static int xrds_ib_key_cmp(struct rb_node *node, const struct rb_node *other)
{
	const struct xrds_ib_key *a = rb_entry(node, struct xrds_ib_key, node);
	const struct xrds_ib_key *b = rb_entry(other, struct xrds_ib_key, node);

	if (a->rkey != b->rkey)
		return a->rkey < b->rkey ? -1 : 1;
	if (a->end <= b->first)
		return -1;
	/* 0: they have a page in common */
	return a->first >= b->end;
}

/* The tree is balanced: its depth grows with the logarithm of the regions. */
static bool xrds_ib_key_insert(struct xrds_ib_key *key)
{
	bool taken;

	spin_lock(&xrds_ib_keys_lock);
	taken = rb_find_add(&key->node, &xrds_ib_keys_tree, xrds_ib_key_cmp);
	spin_unlock(&xrds_ib_keys_lock);
	return !taken;
}

/**
 * xrds_ib_key_draw - an address range for a region
 * @key: the region's, zeroed; result. The byte addresses of all its pages fit
 *	into 32 bits: programs move the offset in a cookie.
 * @rkey: its number
 * @pages: its length, pages
 *
 * Until xrds_ib_key_retire() no other region gets it.
 *
 * Context: process.
 * Return: 0; -EEXIST when no range was found: the region needs another number.
 */
int xrds_ib_key_draw(struct xrds_ib_key *key, u32 rkey, u32 pages)
{
	int tries = XRDS_IB_KEY_TRIES;

	key->rkey = rkey;
	do {
		key->first = get_random_u32() >> PAGE_SHIFT;
		key->end = key->first + pages;
		if (key->end <= XRDS_IB_KEY_PAGES && xrds_ib_key_insert(key))
			return 0;
	} while (--tries);
	key->end = 0;
	return -EEXIST;
}

/* A record, in the row of its user: one that was never used, or else the oldest
 * of the longest row.
 */
static struct xrds_ib_dead_key *xrds_ib_key_record(u32 uid)
{
	struct xrds_ib_key_row *row, *own = NULL, *unused = NULL;
	struct xrds_ib_key_row *longest = xrds_ib_key_rows;
	struct xrds_ib_dead_key *dead;

	lockdep_assert_held(&xrds_ib_keys_lock);

	for (row = xrds_ib_key_rows;
	     row < xrds_ib_key_rows + XRDS_IB_KEY_ROWS; row++) {
		if (!row->nr)
			unused = row;
		else if (row->uid == uid)
			own = row;
		if (row->nr > longest->nr)
			longest = row;
	}
	/* more users than rows: some have one together */
	row = own ?: unused ?:
	      &xrds_ib_key_rows[hash_32(uid, XRDS_IB_KEY_ROW_BITS)];
	if (!row->nr)
		row->uid = uid;

	if (xrds_ib_nr_dead_keys < XRDS_IB_KEYS) {
		dead = &xrds_ib_dead_keys[xrds_ib_nr_dead_keys++];
	} else {
		dead = list_first_entry(&longest->dead, struct xrds_ib_dead_key,
					entry);
		list_del(&dead->entry);
		rb_erase(&dead->key.node, &xrds_ib_keys_tree);
		longest->nr--;
	}
	list_add_tail(&dead->entry, &row->dead);
	row->nr++;
	return dead;
}

/**
 * xrds_ib_key_retire - a region dies
 * @key: its key; nothing is done if that was not drawn, or is retired
 * @user: its user, or NULL
 *
 * To be called before the device can give the number to another region.
 *
 * Context: process.
 */
void xrds_ib_key_retire(struct xrds_ib_key *key, const struct xrds_user *user)
{
	u32 uid = user ? __kuid_val(user->uid) : 0;
	struct xrds_ib_dead_key *dead;

	if (!key->end)
		return;
	spin_lock(&xrds_ib_keys_lock);
	dead = xrds_ib_key_record(uid);
	dead->key = *key;
	rb_replace_node(&key->node, &dead->key.node, &xrds_ib_keys_tree);
	spin_unlock(&xrds_ib_keys_lock);
	key->end = 0;
}

/**
 * xrds_ib_key_init - get memory for the keys of dead regions
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int xrds_ib_key_init(void)
{
	int i;

	for (i = 0; i < XRDS_IB_KEY_ROWS; i++)
		INIT_LIST_HEAD(&xrds_ib_key_rows[i].dead);
	xrds_ib_dead_keys = vcalloc(XRDS_IB_KEYS, sizeof(*xrds_ib_dead_keys));
	return xrds_ib_dead_keys ? 0 : -ENOMEM;
}

/**
 * xrds_ib_key_exit - give it back
 *
 * Context: process, when no region is left.
 */
void xrds_ib_key_exit(void)
{
	vfree(xrds_ib_dead_keys);
}
