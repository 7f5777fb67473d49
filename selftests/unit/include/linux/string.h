/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in: what the files of wire take from the kernel's header. */
#ifndef _UNIT_LINUX_STRING_H
#define _UNIT_LINUX_STRING_H

#include <string.h>

#endif /* _UNIT_LINUX_STRING_H */
