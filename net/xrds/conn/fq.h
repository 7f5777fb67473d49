/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fair queueing: members with a backlog share what is sent. Pure; see fq.c.
 */
#ifndef _XRDS_CONN_FQ_H
#define _XRDS_CONN_FQ_H

#include <linux/rbtree.h>
#include <linux/types.h>

enum {
	/* bytes that a newcomer may send before the others */
	XRDS_FQ_FIRST_BYTES	= 16 << 10,
	/* bytes that a member that was held back may catch up on */
	XRDS_FQ_CATCH_UP_BYTES	= 1 << 20,
	/* members that have gone and are remembered */
	XRDS_FQ_PAST		= 8,
};

/* The next message of a member: one that goes as a whole, or a large one, of
 * which the transport has one at a time in part.
 */
enum xrds_class {
	XRDS_SMALL,
	XRDS_LARGE,
	XRDS_CLASSES
};

/**
 * struct xrds_fq_node - a member of a queue
 * @node:	in each line that it waits in; else empty
 * @start:	its start tag: where its next message stands in virtual time
 */
struct xrds_fq_node {
	struct rb_node node[XRDS_CLASSES];
	u64 start;
};

/**
 * struct xrds_fq - members that share
 * @line:	those that wait, by start tag
 * @now:	virtual time: the lowest start tag in the lines, but it does not
 *		go back; bytes
 */
struct xrds_fq {
	struct rb_root_cached line[XRDS_CLASSES];
	u64 now;
};

/**
 * struct xrds_fq_past - the tags of members that have gone
 * @tag:	their ids and start tags; an id of 0: no such
 * @next:	place of the one that goes next
 */
struct xrds_fq_past {
	struct {
		u64 id;
		u64 start;
	} tag[XRDS_FQ_PAST];
	u8 next;
};

void xrds_fq_init(struct xrds_fq *fq);
void xrds_fq_init_node(struct xrds_fq_node *member);
void xrds_fq_forget(struct xrds_fq_past *past, const struct xrds_fq_node *member,
		    u64 id);
void xrds_fq_recall(struct xrds_fq_past *past, struct xrds_fq_node *member,
		    u64 id);
void xrds_fq_add(struct xrds_fq *fq, struct xrds_fq_node *member,
		 enum xrds_class class);
void xrds_fq_add_late(struct xrds_fq *fq, struct xrds_fq_node *member,
		      enum xrds_class class);
void xrds_fq_del(struct xrds_fq *fq, struct xrds_fq_node *member,
		 enum xrds_class class);
struct xrds_fq_node *xrds_fq_first(const struct xrds_fq *fq,
				   enum xrds_class class);
void xrds_fq_pass(struct xrds_fq *fq, struct xrds_fq_node *member, u64 bytes);
void xrds_fq_charge(struct xrds_fq *fq, struct xrds_fq_node *member, u64 bytes);
void xrds_fq_refund(struct xrds_fq *fq, struct xrds_fq_node *member, u64 bytes);

static inline bool xrds_fq_empty(const struct xrds_fq *fq,
				 enum xrds_class class)
{
	return RB_EMPTY_ROOT(&fq->line[class].rb_root);
}

#endif /* _XRDS_CONN_FQ_H */
