// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parts: objects that flows of one connection share, found by a key.
 *
 * The share of a user, a port of the peer, the flows between two ports, a stream
 * of the peer that we refuse, and a port of ours whose changes matter: each is
 * an object that begins with a struct xrds_part, and all of them are in one table
 * of the namespace. A part is made by its first user, and goes with the last.
 * conn->lock guards it; other connections may pass it in the table, so its memory
 * outlives a grace period.
 */
#include "conn/conn.h"
#include "xrds.h"

const struct rhashtable_params xrds_part_params = {
	.key_len	= sizeof(struct xrds_part_key),
	.key_offset	= offsetof(struct xrds_part, key),
	.head_offset	= offsetof(struct xrds_part, node),
	.automatic_shrinking = true,
};

/**
 * xrds_part_find - find a part
 * @conn: connection
 * @kind: of which kind
 * @id: which
 *
 * Context: any, conn->lock held.
 * Return: the part, without a reference, or NULL.
 */
struct xrds_part *xrds_part_find(struct xrds_conn *conn,
				 enum xrds_part_kind kind, u64 id)
{
	struct xrds_part_key key = { .conn = conn, .id = id, .kind = kind };

	lockdep_assert_held(&conn->lock);

	return rhashtable_lookup_fast(&conn->xn->parts, &key, xrds_part_params);
}

/**
 * xrds_part_make - make a part that does not exist
 * @conn: connection
 * @kind: of which kind
 * @id: which
 * @size: of the object that begins with it, bytes
 *
 * Context: any, conn->lock held.
 * Return: the part with one reference, the rest of the object zeroed, or NULL
 * without memory.
 */
struct xrds_part *xrds_part_make(struct xrds_conn *conn,
				 enum xrds_part_kind kind, u64 id, size_t size)
{
	struct xrds_part *part;

	lockdep_assert_held(&conn->lock);

	part = kzalloc(size, GFP_ATOMIC | __GFP_NOWARN | __GFP_ACCOUNT);
	if (!part)
		return NULL;
	part->key.conn = conn;
	part->key.id = id;
	part->key.kind = kind;
	part->users = 1;
	if (rhashtable_insert_fast(&conn->xn->parts, &part->node,
				   xrds_part_params)) {
		kfree(part);
		return NULL;
	}
	return part;
}

/**
 * xrds_part_get - take a reference on a part
 * @part: part
 *
 * Context: any, conn->lock held.
 */
void xrds_part_get(struct xrds_part *part)
{
	lockdep_assert_held(&part->key.conn->lock);

	part->users++;
}

/**
 * xrds_part_put - drop a reference on a part
 * @part: part
 *
 * Context: any, conn->lock held.
 */
void xrds_part_put(struct xrds_part *part)
{
	struct xrds_conn *conn = part->key.conn;

	lockdep_assert_held(&conn->lock);

	if (--part->users)
		return;
	rhashtable_remove_fast(&conn->xn->parts, &part->node, xrds_part_params);
	kfree_rcu(part, rcu);
}
