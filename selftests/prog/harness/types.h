/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kernel spellings for user space.
 */
#ifndef _XRDS_TEST_TYPES_H
#define _XRDS_TEST_TYPES_H

#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define __printf(a, b)		__attribute__((format(printf, a, b)))
#define __noreturn		__attribute__((noreturn))
#ifndef __aligned
#define __aligned(n)		__attribute__((aligned(n)))
#endif
#define READ_ONCE(x)		__atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define WRITE_ONCE(x, val)	__atomic_store_n(&(x), val, __ATOMIC_RELEASE)

#endif /* _XRDS_TEST_TYPES_H */
