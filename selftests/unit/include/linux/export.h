/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header, as far as wire/ uses it. */
#ifndef _UNIT_LINUX_EXPORT_H
#define _UNIT_LINUX_EXPORT_H

/* one program: nothing to export, but the semicolon needs a declaration */
#define EXPORT_SYMBOL_GPL(symbol)	extern int unit_exported_##symbol

#endif /* _UNIT_LINUX_EXPORT_H */
