/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RDS_INFO_* dumps.
 */
#ifndef _XRDS_TEST_DUMP_H
#define _XRDS_TEST_DUMP_H

#include <stddef.h>

#include "sock.h"

/**
 * struct dump - rows of one dump
 * @rows:	the rows
 * @each:	size of one in bytes, as the kernel has said
 * @nr:		how many there are
 */
struct dump {
	void *rows;
	size_t each;
	size_t nr;
};

/* Asks as often as the dump grows; -1 and errno, e.g. ENOPROTOOPT */
int dump_try(int fd, int what, struct dump *d);
/* The same, and a case that cannot go on without it, or with other rows */
struct dump dump_read(int fd, int what, size_t each);
/* How many rows it has */
size_t dump_rows(int fd, int what);
void dump_free(struct dump *d);

#endif /* _XRDS_TEST_DUMP_H */
