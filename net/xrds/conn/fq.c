// SPDX-License-Identifier: GPL-2.0-only
/*
 * Start-time fair queueing, with newcomers first.
 *
 * Each member has a start tag, the number of bytes at which its next message
 * stands in virtual time. The member with the lowest tag sends, and the message's
 * bytes are added to the tag. So two members that always have something to send
 * have sent the same number of bytes, but for one message each. Virtual time is
 * the lowest tag of all that wait.
 *
 * A member without anything to send waits in no line and keeps its tag. When it
 * comes back, a lower tag is raised to XRDS_FQ_FIRST_BYTES before virtual time. So
 * a newcomer may send that much before all others. A member that comes and goes,
 * however often, sends no more than one that stays, and that much. So the tags of
 * the last members that ceased to exist are kept for those that are made anew.
 *
 * A member that was held back, although it had something to send, may catch up: a
 * lower tag is raised to XRDS_FQ_CATCH_UP_BYTES before virtual time. Newcomers do
 * not wait for that: their tags are not above the lowest one.
 *
 * There are two lines, one for each class. They share the tags: members of
 * different lines can be compared, and flow.c does.
 *
 * This file is pure: it knows neither flows nor locks. Its callers hold
 * conn->lock.
 */
#include <linux/minmax.h>

#include "conn/fq.h"

/**
 * xrds_fq_init - make a queue without members
 * @fq: queue
 *
 * Context: any.
 */
void xrds_fq_init(struct xrds_fq *fq)
{
	int i;

	for (i = 0; i < XRDS_CLASSES; i++)
		fq->line[i] = RB_ROOT_CACHED;
	/* tags are never less than 0 */
	fq->now = XRDS_FQ_CATCH_UP_BYTES + XRDS_FQ_FIRST_BYTES;
}

/**
 * xrds_fq_init_node - make a member of no queue
 * @member: member
 *
 * Context: any.
 */
void xrds_fq_init_node(struct xrds_fq_node *member)
{
	int i;

	for (i = 0; i < XRDS_CLASSES; i++)
		RB_CLEAR_NODE(&member->node[i]);
	member->start = 0;
}

/**
 * xrds_fq_forget - a member ceases to exist
 * @past: members that have gone
 * @member: member that waits in no line
 * @id: its id, not 0
 *
 * Context: any.
 */
void xrds_fq_forget(struct xrds_fq_past *past, const struct xrds_fq_node *member,
		    u64 id)
{
	int i;

	/* a place that is free, else that of the oldest */
	for (i = 0; i < XRDS_FQ_PAST && past->tag[i].id; i++)
		;
	if (i == XRDS_FQ_PAST) {
		i = past->next;
		past->next = (past->next + 1) % XRDS_FQ_PAST;
	}
	past->tag[i].id = id;
	past->tag[i].start = member->start;
}

/**
 * xrds_fq_recall - a member exists again
 * @past: members that have gone
 * @member: member that was initialised
 * @id: its id
 *
 * Context: any.
 */
void xrds_fq_recall(struct xrds_fq_past *past, struct xrds_fq_node *member,
		    u64 id)
{
	int i;

	for (i = 0; i < XRDS_FQ_PAST; i++) {
		if (past->tag[i].id != id)
			continue;
		member->start = past->tag[i].start;
		past->tag[i].id = 0;
		break;
	}
}

static struct xrds_fq_node *xrds_fq_member(struct rb_node *node,
					   enum xrds_class class)
{
	return container_of(node, struct xrds_fq_node, node[class]);
}

static void xrds_fq_insert(struct xrds_fq *fq, struct xrds_fq_node *member,
			   enum xrds_class class)
{
	struct rb_root_cached *line = &fq->line[class];
	struct rb_node **link = &line->rb_root.rb_node;
	struct rb_node *parent = NULL;
	bool first = true;

	while (*link) {
		parent = *link;
		if (member->start < xrds_fq_member(parent, class)->start) {
			link = &parent->rb_left;
		} else {
			link = &parent->rb_right;
			first = false;
		}
	}
	rb_link_node(&member->node[class], parent, link);
	rb_insert_color_cached(&member->node[class], line, first);
}

static bool xrds_fq_waits(const struct xrds_fq_node *member,
			  enum xrds_class class)
{
	return !RB_EMPTY_NODE(&member->node[class]);
}

static void xrds_fq_erase(struct xrds_fq *fq, struct xrds_fq_node *member,
			  enum xrds_class class)
{
	rb_erase_cached(&member->node[class], &fq->line[class]);
	RB_CLEAR_NODE(&member->node[class]);
}

/* Does a member wait in a line with others? */
static bool xrds_fq_waits_among(const struct xrds_fq *fq,
				const struct xrds_fq_node *member,
				enum xrds_class class)
{
	const struct rb_node *node = &member->node[class];
	bool alone = fq->line[class].rb_root.rb_node == node &&
		     !node->rb_left && !node->rb_right;

	return !alone && xrds_fq_waits(member, class);
}

static void xrds_fq_set_start(struct xrds_fq *fq, struct xrds_fq_node *member,
			      u64 start)
{
	bool moves[XRDS_CLASSES];
	int i;

	for (i = 0; i < XRDS_CLASSES; i++) {
		moves[i] = xrds_fq_waits_among(fq, member, i);
		if (moves[i])
			xrds_fq_erase(fq, member, i);
	}
	member->start = start;
	for (i = 0; i < XRDS_CLASSES; i++)
		if (moves[i])
			xrds_fq_insert(fq, member, i);
}

/* The lowest tag in the lines; @none if they are empty */
static u64 xrds_fq_lowest(const struct xrds_fq *fq, u64 none)
{
	const struct xrds_fq_node *small = xrds_fq_first(fq, XRDS_SMALL);
	const struct xrds_fq_node *large = xrds_fq_first(fq, XRDS_LARGE);

	if (small && large)
		return min(small->start, large->start);
	if (small)
		return small->start;
	return large ? large->start : none;
}

/* One that waits in the other line was not away. */
static void xrds_fq_join(struct xrds_fq *fq, struct xrds_fq_node *member,
			 enum xrds_class class, u64 least)
{
	if (!xrds_fq_waits(member, XRDS_SMALL) &&
	    !xrds_fq_waits(member, XRDS_LARGE))
		member->start = max(member->start, least);
	xrds_fq_insert(fq, member, class);
}

/**
 * xrds_fq_add - a member has something to send
 * @fq: queue
 * @member: member that does not wait in this line
 * @class: which line
 *
 * Context: any.
 */
void xrds_fq_add(struct xrds_fq *fq, struct xrds_fq_node *member,
		 enum xrds_class class)
{
	u64 lowest = xrds_fq_lowest(fq, fq->now);

	fq->now = max(fq->now, lowest);
	xrds_fq_join(fq, member, class,
		     min(lowest, fq->now - XRDS_FQ_FIRST_BYTES));
}

/**
 * xrds_fq_add_late - the same; it had that before, and was held back
 * @fq: queue
 * @member: member that does not wait in this line
 * @class: which line
 *
 * Context: any.
 */
void xrds_fq_add_late(struct xrds_fq *fq, struct xrds_fq_node *member,
		      enum xrds_class class)
{
	fq->now = max(fq->now, xrds_fq_lowest(fq, fq->now));
	xrds_fq_join(fq, member, class, fq->now - XRDS_FQ_CATCH_UP_BYTES);
}

/**
 * xrds_fq_del - a member has nothing to send, or must not
 * @fq: queue
 * @member: member that waits in this line
 * @class: which line
 *
 * Context: any.
 */
void xrds_fq_del(struct xrds_fq *fq, struct xrds_fq_node *member,
		 enum xrds_class class)
{
	xrds_fq_erase(fq, member, class);
	fq->now = max(fq->now, xrds_fq_lowest(fq, member->start));
}

/**
 * xrds_fq_first - whose turn is it?
 * @fq: queue
 * @class: in which line
 *
 * Context: any.
 * Return: the member, which stays, or NULL: nobody waits.
 */
struct xrds_fq_node *xrds_fq_first(const struct xrds_fq *fq,
				   enum xrds_class class)
{
	struct rb_node *node = rb_first_cached(&fq->line[class]);

	return node ? xrds_fq_member(node, class) : NULL;
}

/**
 * xrds_fq_pass - a member sends while nobody waits
 * @fq: queue with empty lines
 * @member: member
 * @bytes: how much
 *
 * The same as to add it, to charge it and to take it out again.
 *
 * Context: any.
 */
void xrds_fq_pass(struct xrds_fq *fq, struct xrds_fq_node *member, u64 bytes)
{
	member->start = max(member->start, fq->now - XRDS_FQ_FIRST_BYTES);
	member->start += bytes;
	fq->now = max(fq->now, member->start);
}

/**
 * xrds_fq_charge - a member sends
 * @fq: queue
 * @member: member, whether it waits or not
 * @bytes: how much
 *
 * Context: any.
 */
void xrds_fq_charge(struct xrds_fq *fq, struct xrds_fq_node *member, u64 bytes)
{
	xrds_fq_set_start(fq, member, member->start + bytes);
}

/**
 * xrds_fq_refund - it could not send, after all
 * @fq: queue
 * @member: the member that was charged last
 * @bytes: how much that was
 *
 * Context: any.
 */
void xrds_fq_refund(struct xrds_fq *fq, struct xrds_fq_node *member, u64 bytes)
{
	xrds_fq_set_start(fq, member, member->start - bytes);
}
