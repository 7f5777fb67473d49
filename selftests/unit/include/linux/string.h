/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header, as far as wire/ uses it. */
#ifndef _UNIT_LINUX_STRING_H
#define _UNIT_LINUX_STRING_H

#include <string.h>

#endif /* _UNIT_LINUX_STRING_H */
