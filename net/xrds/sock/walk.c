// SPDX-License-Identifier: GPL-2.0-only
/*
 * All sockets of a namespace, one after the other, without a lock in between.
 */
#include "sock/sock.h"
#include "xrds.h"

/**
 * xrds_walk_sock_after - the first socket of a namespace above a number
 * @xn: namespace
 * @id: number
 *
 * Context: process.
 * Return: the socket, with a reference; NULL: there is none.
 */
struct xrds_sock *xrds_walk_sock_after(struct xrds_net *xn, unsigned long id)
{
	struct xrds_sock *next;

	/* freed sockets stay valid until the end of the grace period */
	rcu_read_lock();
	do {
		next = xa_find_after(&xn->sock_ids, &id, ULONG_MAX, XA_PRESENT);
	} while (next && !refcount_inc_not_zero(&next->sk.sk_refcnt));
	rcu_read_unlock();
	return next;
}

/**
 * xrds_walk_sock - the next socket of a namespace
 * @xn: namespace
 * @xs: the one before, whose reference is dropped; NULL: begin
 *
 * One that is there all the time is visited once.
 *
 * Context: process, may sleep.
 * Return: the socket, with a reference; NULL: there is none.
 */
struct xrds_sock *xrds_walk_sock(struct xrds_net *xn, struct xrds_sock *xs)
{
	struct xrds_sock *next = xrds_walk_sock_after(xn, xs ? xs->id : 0);

	if (xs)
		sock_put(&xs->sk);
	cond_resched();
	return next;
}
