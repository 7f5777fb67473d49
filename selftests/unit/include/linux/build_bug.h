/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header, as far as wire.h uses it. */
#ifndef _UNIT_LINUX_BUILD_BUG_H
#define _UNIT_LINUX_BUILD_BUG_H

#define static_assert(expr)	_Static_assert(expr, #expr)

#endif /* _UNIT_LINUX_BUILD_BUG_H */
