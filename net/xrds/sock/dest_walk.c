// SPDX-License-Identifier: GPL-2.0-only
/*
 * Walks of all destinations of a socket.
 *
 * A program decides how many destinations there are. So a walk drops xs->lock (L4)
 * now and then. A cursor keeps its place in the list meanwhile, and another one is
 * where the list ended at the beginning: destinations that are made during the
 * walk are behind that, and need no visit.
 *
 * System calls that walk hold xs->walk_lock or the socket's lock, so the cursors in
 * the list are those of a few.
 */
#include "sock/dest.h"
#include "sock/sock.h"
#include "xrds.h"

/**
 * xrds_dest_walk_begin - begin to walk a socket's destinations
 * @walk: the walk, not initialised
 * @xs: socket
 *
 * Context: any, without L4.
 */
void xrds_dest_walk_begin(struct xrds_dest_walk *walk, struct xrds_sock *xs)
{
	walk->xs = xs;
	walk->at.cursor = true;
	walk->end.cursor = true;
	spin_lock_bh(&xs->lock);
	list_add(&walk->at.node, &xs->dests);
	list_add_tail(&walk->end.node, &xs->dests);
	spin_unlock_bh(&xs->lock);
}

/**
 * xrds_dest_walk_next - the next destination of a walk
 * @walk: the walk
 *
 * Context: any, xs->lock held.
 * Return: the destination, without a reference; NULL at the end.
 */
struct xrds_dest *xrds_dest_walk_next(struct xrds_dest_walk *walk)
{
	struct xrds_dest_link *next;

	lockdep_assert_held(&walk->xs->lock);

	/* a few are cursors of others */
	for (;;) {
		next = list_next_entry(&walk->at, node);
		if (next == &walk->end)
			return NULL;
		list_move(&walk->at.node, &next->node);
		if (!next->cursor)
			return container_of(next, struct xrds_dest, xs_link);
	}
}

/**
 * xrds_dest_walk_end - end a walk
 * @walk: the walk
 *
 * Context: any, without L4.
 */
void xrds_dest_walk_end(struct xrds_dest_walk *walk)
{
	spin_lock_bh(&walk->xs->lock);
	list_del(&walk->at.node);
	list_del(&walk->end.node);
	spin_unlock_bh(&walk->xs->lock);
}

/**
 * xrds_dest_walk_all - do something with all destinations of a socket
 * @xs: socket
 * @visit: called with xs->lock held
 *
 * Context: any, without L4.
 */
void xrds_dest_walk_all(struct xrds_sock *xs, void (*visit)(struct xrds_dest *dest))
{
	struct xrds_dest *dest;
	struct xrds_dest_walk walk;
	u32 n;

	xrds_dest_walk_begin(&walk, xs);
	do {
		n = 0;
		spin_lock_bh(&xs->lock);
		while (n < XRDS_END_BATCH && (dest = xrds_dest_walk_next(&walk))) {
			visit(dest);
			n++;
		}
		spin_unlock_bh(&xs->lock);
		xrds_hold_count(XRDS_HOLD_END, n);
	} while (n == XRDS_END_BATCH);
	xrds_dest_walk_end(&walk);
}
