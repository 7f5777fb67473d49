/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User-space stand-in for the kernel's header, as far as fq.c uses it: a tree
 * that nobody balances.
 */
#ifndef _UNIT_LINUX_RBTREE_H
#define _UNIT_LINUX_RBTREE_H

#include <stdbool.h>
#include <stddef.h>

struct rb_node {
	struct rb_node *parent;		/* itself: in no tree */
	struct rb_node *rb_left;
	struct rb_node *rb_right;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
	struct rb_node *rb_leftmost;
};

#define RB_ROOT_CACHED		((struct rb_root_cached) { })
#define RB_EMPTY_ROOT(root)	(!(root)->rb_node)
#define rb_first_cached(root)	((root)->rb_leftmost)

#ifndef container_of
#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))
#endif

static inline bool RB_EMPTY_NODE(const struct rb_node *node)
{
	return node->parent == node;
}

static inline void RB_CLEAR_NODE(struct rb_node *node)
{
	node->parent = node;
}

static inline void rb_link_node(struct rb_node *node, struct rb_node *parent,
				struct rb_node **link)
{
	node->parent = parent;
	node->rb_left = NULL;
	node->rb_right = NULL;
	*link = node;
}

static inline void rb_insert_color_cached(struct rb_node *node,
					  struct rb_root_cached *root,
					  bool leftmost)
{
	if (leftmost)
		root->rb_leftmost = node;
}

/* What leads to @node leads to @to from now on. */
static inline void unit_rb_replace(struct rb_root *root, struct rb_node *node,
				   struct rb_node *to)
{
	if (!node->parent)
		root->rb_node = to;
	else if (node->parent->rb_left == node)
		node->parent->rb_left = to;
	else
		node->parent->rb_right = to;
	if (to)
		to->parent = node->parent;
}

static inline struct rb_node *unit_rb_leftmost(struct rb_node *node)
{
	while (node && node->rb_left)
		node = node->rb_left;
	return node;
}

static inline void rb_erase_cached(struct rb_node *node,
				   struct rb_root_cached *root)
{
	struct rb_node *next = unit_rb_leftmost(node->rb_right);

	if (!node->rb_left || !node->rb_right) {
		unit_rb_replace(&root->rb_root, node,
				node->rb_left ? node->rb_left : node->rb_right);
	} else {
		if (next != node->rb_right) {
			unit_rb_replace(&root->rb_root, next, next->rb_right);
			next->rb_right = node->rb_right;
			next->rb_right->parent = next;
		}
		unit_rb_replace(&root->rb_root, node, next);
		next->rb_left = node->rb_left;
		next->rb_left->parent = next;
	}
	root->rb_leftmost = unit_rb_leftmost(root->rb_root.rb_node);
}

#endif /* _UNIT_LINUX_RBTREE_H */
