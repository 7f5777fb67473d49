// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shares: all flows that one user has on a connection belong to one.
 *
 * The users of a connection share it by their shares (fq.c), and a connection that
 * waits to dial has a place in the row of each (dialq.c). Each flow has a reference.
 * conn->lock guards shares.
 */
#include "conn/conn.h"
#include "xrds.h"

/**
 * xrds_share_get - find or make the share of a user
 * @conn: connection
 * @user: user
 *
 * Context: any, conn->lock held.
 * Return: the share with a reference, or NULL without memory.
 */
struct xrds_share *xrds_share_get(struct xrds_conn *conn,
				  struct xrds_user *user)
{
	u64 id = (unsigned long)user;
	struct xrds_share *share;

	share = (struct xrds_share *)xrds_part_find(conn, XRDS_PART_SHARE, id);
	if (share) {
		xrds_part_get(&share->part);
		return share;
	}
	share = (struct xrds_share *)xrds_part_make(conn, XRDS_PART_SHARE, id,
						    sizeof(*share));
	if (share) {
		xrds_fq_init_node(&share->node);
		xrds_fq_recall(&conn->fq_past, &share->node, id);
		xrds_fq_init(&share->fq);
		list_add_tail(&share->conn_node, &conn->shares);
		conn->nr_shares++;
		INIT_LIST_HEAD(&share->dial.node);
		share->dial.conn = conn;
		share->dial.user = user;
		xrds_dialq_join(share);
	}
	return share;
}

/**
 * xrds_share_put - drop a reference on a share
 * @share: share
 *
 * Context: any, conn->lock held.
 */
void xrds_share_put(struct xrds_share *share)
{
	const struct xrds_part_key *key = &share->part.key;

	if (share->part.users == 1) {
		xrds_fq_forget(&key->conn->fq_past, &share->node, key->id);
		xrds_dialq_quit(share);
		list_del(&share->conn_node);
		key->conn->nr_shares--;
	}
	xrds_part_put(&share->part);
}
