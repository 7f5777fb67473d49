/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header, as far as fq.c and window.c use it. */
#ifndef _UNIT_LINUX_MINMAX_H
#define _UNIT_LINUX_MINMAX_H

#include <linux/types.h>

static inline u64 min(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 max(u64 a, u64 b)
{
	return a > b ? a : b;
}

static inline u64 clamp(u64 a, u64 least, u64 most)
{
	return min(max(a, least), most);
}

#endif /* _UNIT_LINUX_MINMAX_H */
