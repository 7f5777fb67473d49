// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests: a program that has ended leaves work to be done, and meanwhile
 * xrds_ib is unloaded.
 *
 *   helper_exit_unload HOST keys	keys that were used for the last time
 *   helper_exit_unload HOST op	an op over loopback
 *
 * HOST is an address of an RDMA device. The sysctl net.xrds.loop.delay_ms is to
 * be set: it says when the ops are done. They are done together, so there are
 * many keys to be ended then; they are waited for, the single op is not. The
 * module is unloaded from here, so that no time passes in between.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rdma.h"
#include "tap.h"

enum { KEYS = 512 };

static void keys(int fd)
{
	static struct target t;
	struct got got;
	int done = 0;
	struct op op;

	target_open(&t, PAGE_BYTES, RDS_RDMA_READWRITE | RDS_RDMA_USE_ONCE);
	for (int i = 0; i < KEYS; i++) {
		if (i)
			must(mr_get(t.fd, t.mem, PAGE_BYTES,
				    RDS_RDMA_READWRITE | RDS_RDMA_USE_ONCE,
				    &t.cookie));
		op = op_write(&t, 0, "k", 1);
		op_set(&op, RDS_RDMA_NOTIFY_ME | RDS_RDMA_SILENT, 0);
		must(op_send(fd, &t.addr, &op));
	}
	while (done < KEYS) {
		must(got_within(fd, &got, WAIT_MS));
		for (int i = 0; i < got.nr_status; i++)
			check_eq(got.status[i].status, RDS_RDMA_SUCCESS);
		done += got.nr_status;
	}
	close(t.fd);
}

static void one_op(int fd)
{
	struct target t;
	struct op op;

	target_open(&t, PAGE_BYTES, RDS_RDMA_READWRITE);
	op = op_write(&t, 0, "o", 1);
	must(op_send(fd, &t.addr, &op));
	close(t.fd);
}

int main(int argc, char **argv)
{
	int fd;

	if (argc != 3 || (strcmp(argv[2], "keys") && strcmp(argv[2], "op")))
		tap_fail("usage: helper_exit_unload HOST keys|op");
	tap_host = argv[1];
	fd = rds_bound(NULL);
	if (argv[2][0] == 'k')
		keys(fd);
	else
		one_op(fd);
	close(fd);
	must(syscall(SYS_delete_module, "xrds_ib", O_NONBLOCK));
	tap_child_exit();
}
