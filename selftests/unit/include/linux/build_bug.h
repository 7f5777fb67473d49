/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in: what wire.h takes from the kernel's header. */
#ifndef _UNIT_LINUX_BUILD_BUG_H
#define _UNIT_LINUX_BUILD_BUG_H

#define static_assert(expr)	_Static_assert(expr, #expr)

#endif /* _UNIT_LINUX_BUILD_BUG_H */
