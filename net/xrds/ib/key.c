// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys: a peer that has the key of a dead region reaches no other one with it.
 *
 * A device finds a region by its key, a number of 32 bits that is unique on
 * this device, while the region lives. Later regions get the number again: soon
 * when a device is added anew or is reset, as it counts from the beginning then;
 * and at once when an address moves, as the peer's op goes to another device
 * then. Peers may keep a key for ever, and no device can tell them apart by it.
 *
 * It can by the address. An access has the key and an address, and the device
 * refuses one outside the region's range. The cookie of a region has 32 bits
 * for the address of its first byte, of which the device determines only those
 * in its page. The others are drawn at random for each region, so that also a
 * peer that tries keys has to try 2^20 of these addresses, and breaks its
 * connection with each of them.
 *
 * An accident needs no luck: the last XRDS_IB_KEYS regions that died are
 * remembered, those of all devices and namespaces together. A region gets no
 * address that was, with the same key, one of theirs.
 */
#include <linux/hash.h>
#include <linux/hashtable.h>
#include <linux/random.h>
#include <linux/vmalloc.h>

#include "ib/ib.h"

enum {
	XRDS_IB_KEYS		= 16384,
	XRDS_IB_KEY_BITS	= 12,
	XRDS_IB_KEY_TRIES	= 16,
};

/**
 * struct xrds_ib_key - a dead region
 * @node:	in xrds_ib_keys_hash, by @rkey
 * @rkey:	its key
 * @first:	its first page, as peers count
 * @end:	the page behind its last one
 */
struct xrds_ib_key {
	struct hlist_node node;
	u32 rkey;
	u32 first;
	u32 end;
};

/* guards all three; leaf */
static DEFINE_SPINLOCK(xrds_ib_keys_lock);
static DEFINE_HASHTABLE(xrds_ib_keys_hash, XRDS_IB_KEY_BITS);
static struct xrds_ib_key *xrds_ib_keys;
static u32 xrds_ib_keys_next;

/* At most XRDS_IB_KEYS steps, if all of them had the same key. */
static bool xrds_ib_key_taken(u32 rkey, u32 first, u32 end)
{
	const struct xrds_ib_key *key;

	lockdep_assert_held(&xrds_ib_keys_lock);

	hash_for_each_possible(xrds_ib_keys_hash, key, node, rkey) {
		if (key->rkey == rkey && first < key->end && key->first < end)
			return true;
	}
	return false;
}

/**
 * xrds_ib_key_draw - an address range for a region
 * @rkey: its key
 * @pages: its length, pages
 * @first: result, the first page; its byte address fits into 32 bits
 *
 * Context: process.
 * Return: 0; -EEXIST when no range was found: the region needs another key.
 */
int xrds_ib_key_draw(u32 rkey, u32 pages, u32 *first)
{
	int tries = XRDS_IB_KEY_TRIES;
	bool taken;

	do {
		*first = get_random_u32() >> PAGE_SHIFT;
		spin_lock(&xrds_ib_keys_lock);
		taken = xrds_ib_key_taken(rkey, *first, *first + pages);
		spin_unlock(&xrds_ib_keys_lock);
	} while (taken && --tries);
	return taken ? -EEXIST : 0;
}

/**
 * xrds_ib_key_remember - a region dies
 * @rkey: its key, which no other region has before this returns
 * @first: its first page
 * @pages: its length, pages
 *
 * Context: process.
 */
void xrds_ib_key_remember(u32 rkey, u32 first, u32 pages)
{
	struct xrds_ib_key *key;

	spin_lock(&xrds_ib_keys_lock);
	key = &xrds_ib_keys[xrds_ib_keys_next++ % XRDS_IB_KEYS];
	hash_del(&key->node);
	key->rkey = rkey;
	key->first = first;
	key->end = first + pages;
	hash_add(xrds_ib_keys_hash, &key->node, rkey);
	spin_unlock(&xrds_ib_keys_lock);
}

/**
 * xrds_ib_key_init - get memory for the keys of dead regions
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int xrds_ib_key_init(void)
{
	xrds_ib_keys = vcalloc(XRDS_IB_KEYS, sizeof(*xrds_ib_keys));
	return xrds_ib_keys ? 0 : -ENOMEM;
}

/**
 * xrds_ib_key_exit - give it back
 *
 * Context: process.
 */
void xrds_ib_key_exit(void)
{
	vfree(xrds_ib_keys);
}
