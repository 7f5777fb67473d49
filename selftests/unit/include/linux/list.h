/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header, as far as round.c uses it. */
#ifndef _UNIT_LINUX_LIST_H
#define _UNIT_LINUX_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list_head {
	struct list_head *next;
	struct list_head *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline void list_add(struct list_head *node, struct list_head *head)
{
	node->next = head->next;
	node->prev = head;
	node->next->prev = node;
	head->next = node;
}

static inline void list_add_tail(struct list_head *node, struct list_head *head)
{
	list_add(node, head->prev);
}

static inline void list_del_init(struct list_head *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	INIT_LIST_HEAD(node);
}

static inline void list_move(struct list_head *node, struct list_head *head)
{
	list_del_init(node);
	list_add(node, head);
}

static inline void list_move_tail(struct list_head *node,
				  struct list_head *head)
{
	list_del_init(node);
	list_add_tail(node, head);
}

#define list_first_entry(head, type, member) \
	((type *)((char *)(head)->next - offsetof(type, member)))

#define list_first_entry_or_null(head, type, member) ({ \
	struct list_head *__head = (head); \
	list_empty(__head) ? NULL : list_first_entry(__head, type, member); \
})

#endif /* _UNIT_LINUX_LIST_H */
