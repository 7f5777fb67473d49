// SPDX-License-Identifier: GPL-2.0-only
/*
 * Turns: deficit round robin, with newcomers first.
 *
 *   fresh  -- its credit is used up -->  busy -- and again --> tail of busy
 *
 * The members of a round have something to send. A newcomer may send
 * XRDS_ROUND_FIRST_BYTES before all others. Then it waits for its turn among the
 * busy ones, of which each may send XRDS_ROUND_TURN_BYTES. A member that sends
 * more than it may, because a message is in one piece, waits for as many turns
 * as that takes. A member without anything to send leaves. When it comes back it
 * is a newcomer if each member that was in line when it left has had a turn; else
 * it has the credit that was left. So members that come and go, however many, are
 * not served first all the time.
 *
 * This file is pure: it knows neither flows nor locks. Its callers hold
 * conn->lock. No call looks at more than XRDS_ROUND_STEPS members.
 */
#include "conn/round.h"

/**
 * xrds_round_init - make an empty round
 * @round: round
 *
 * Context: any.
 */
void xrds_round_init(struct xrds_round *round)
{
	INIT_LIST_HEAD(&round->fresh);
	INIT_LIST_HEAD(&round->busy);
	round->nr = 0;
	round->turns = 0;
}

/**
 * xrds_round_init_turn - make a member of no round
 * @turn: member
 *
 * Context: any.
 */
void xrds_round_init_turn(struct xrds_turn *turn)
{
	INIT_LIST_HEAD(&turn->node);
	turn->credit = XRDS_ROUND_FIRST_BYTES;
	turn->since = 0;
}

/* A member goes to the end of the line. */
static void xrds_round_line_up(struct xrds_round *round, struct xrds_turn *turn)
{
	list_move_tail(&turn->node, &round->busy);
	turn->since = ++round->turns;
}

/**
 * xrds_round_add - a member has something to send
 * @round: round
 * @turn: member of no round
 *
 * Context: any.
 */
void xrds_round_add(struct xrds_round *round, struct xrds_turn *turn)
{
	const struct xrds_turn *oldest;

	oldest = list_first_entry_or_null(&round->busy, struct xrds_turn, node);
	if (!oldest || (s32)(oldest->since - turn->since) > 0)
		turn->credit = XRDS_ROUND_FIRST_BYTES;
	if (turn->credit > 0)
		list_add_tail(&turn->node, &round->fresh);
	else
		xrds_round_line_up(round, turn);
	round->nr++;
}

/**
 * xrds_round_del - a member has nothing to send, or must not
 * @round: round
 * @turn: member
 *
 * Context: any.
 */
void xrds_round_del(struct xrds_round *round, struct xrds_turn *turn)
{
	list_del_init(&turn->node);
	turn->since = round->turns;
	round->nr--;
}

/**
 * xrds_round_first - whose turn is it?
 * @round: round
 *
 * Context: any.
 * Return: the member, which stays, or NULL: there is none.
 */
struct xrds_turn *xrds_round_first(struct xrds_round *round)
{
	struct xrds_turn *turn;
	int steps;

	if (!list_empty(&round->fresh))
		return list_first_entry(&round->fresh, struct xrds_turn, node);
	if (list_empty(&round->busy))
		return NULL;

	for (steps = XRDS_ROUND_STEPS; steps; steps--) {
		turn = list_first_entry(&round->busy, struct xrds_turn, node);
		if (turn->credit <= 0)
			turn->credit += XRDS_ROUND_TURN_BYTES;
		if (turn->credit > 0)
			break;
		xrds_round_line_up(round, turn);
	}
	/* after so many steps the head is early, which costs the others less
	 * than the steps
	 */
	return list_first_entry(&round->busy, struct xrds_turn, node);
}

/**
 * xrds_round_charge - a member sends
 * @round: round
 * @turn: member, or one that has just left
 * @bytes: how much
 *
 * Context: any.
 */
void xrds_round_charge(struct xrds_round *round, struct xrds_turn *turn,
		       u32 bytes)
{
	turn->credit -= bytes;
	if (turn->credit <= 0 && !list_empty(&turn->node))
		xrds_round_line_up(round, turn);
}

/**
 * xrds_round_refund - it could not send, after all
 * @round: round
 * @turn: the member that was charged last
 * @bytes: how much that was
 *
 * It keeps its turn, also before newcomers: that is over with the same message.
 *
 * Context: any.
 */
void xrds_round_refund(struct xrds_round *round, struct xrds_turn *turn,
		       u32 bytes)
{
	bool over = turn->credit <= 0;

	turn->credit += bytes;
	if (over && turn->credit > 0 && !list_empty(&turn->node))
		list_move(&turn->node, &round->fresh);
}
