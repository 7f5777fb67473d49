/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header, as far as window.c uses it. */
#ifndef _UNIT_LINUX_MATH64_H
#define _UNIT_LINUX_MATH64_H

#include <linux/types.h>

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

#endif /* _UNIT_LINUX_MATH64_H */
