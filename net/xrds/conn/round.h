/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns: deficit round robin, with newcomers first. Pure; see round.c.
 */
#ifndef _XRDS_CONN_ROUND_H
#define _XRDS_CONN_ROUND_H

#include <linux/list.h>
#include <linux/types.h>

enum {
	/* share of a newcomer, before the others send, bytes */
	XRDS_ROUND_FIRST_BYTES	= 16 << 10,
	/* share of each in its turn, bytes; a SEND is not larger */
	XRDS_ROUND_TURN_BYTES	= 64 << 10,
	/* turns that one call passes over */
	XRDS_ROUND_STEPS	= 64,
};

/**
 * struct xrds_turn - a member of a round
 * @node:	in the round; else empty
 * @credit:	what it may still send in this turn, bytes; less than 0: what it
 *		has sent beyond it
 * @since:	value of round->turns when it got in line, or has left
 */
struct xrds_turn {
	struct list_head node;
	s32 credit;
	u32 since;
};

/**
 * struct xrds_round - members that take turns
 * @fresh:	newcomers
 * @busy:	the line of those that have used up what they had; by @since
 * @nr:		members
 * @turns:	how many have got in line, ever
 */
struct xrds_round {
	struct list_head fresh;
	struct list_head busy;
	u32 nr;
	u32 turns;
};

void xrds_round_init(struct xrds_round *round);
void xrds_round_init_turn(struct xrds_turn *turn);
void xrds_round_add(struct xrds_round *round, struct xrds_turn *turn);
void xrds_round_del(struct xrds_round *round, struct xrds_turn *turn);
struct xrds_turn *xrds_round_first(struct xrds_round *round);
void xrds_round_charge(struct xrds_round *round, struct xrds_turn *turn,
		       u32 bytes);
void xrds_round_refund(struct xrds_round *round, struct xrds_turn *turn,
		       u32 bytes);

#endif /* _XRDS_CONN_ROUND_H */
