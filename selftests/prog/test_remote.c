// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: RDMA reads, writes and atomics, and the memory they use,
 * while nothing is wrong with the network. See remote.h for the command line.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pattern.h"
#include "remote.h"
#include "tap.h"

enum {
	VECTORS		= 1024,		/* UIO_MAXIOV */
	GUARD		= 64,		/* bytes around what is written */
	ROOM		= 512 * 1024,
};

#define WRITABLE RDS_RDMA_READWRITE

/* ------------------------------------------------------------------ smoke */

static void smoke(void)
{
	char *mem = pages(PAGE_BYTES);
	int fd = rds_bound(NULL);
	struct target t;
	struct remote r;
	struct op op;
	u64 old = 0;

	remote_open(&r);
	t = remote_get(&r, 0, PAGE_BYTES, WRITABLE);
	stamp(mem, PAGE_BYTES, 1);
	op = op_write(&t, 0, mem, PAGE_BYTES);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(remote_stamped(&r, 0, PAGE_BYTES, 1));
	remote_stamp(&r, 0, PAGE_BYTES, 2);
	op = op_read(&t, 0, mem, PAGE_BYTES);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(stamped(mem, PAGE_BYTES, 2));
	remote_poke(&r, 8, 40);
	op = op_fadd(&t, 8, 2, &old);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check_eq(old, 40);
	check_eq(remote_peek(&r, 8), 42);
	op = op_cswp(&t, 8, 42, 7, &old);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check_eq(old, 42);
	check_eq(remote_peek(&r, 8), 7);
	remote_free(&r, &t);
}

static const struct mode modes[] = {
	{ "smoke", smoke },
};

int main(int argc, char **argv)
{
	return remote_main(argc, argv, modes, ARRAY_SIZE(modes));
}
