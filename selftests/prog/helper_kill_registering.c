// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_kill_registering LOCAL ROUNDS
 *
 * In each round a process whose threads register memory all the time is killed.
 * Then this program registers some, which must succeed: the device has answered
 * all that the dead process had asked for.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma.h"
#include "sock.h"
#include "tap.h"

enum {
	THREADS		= 4,
	BYTES		= 4096,
	LONGEST_US	= 20000,	/* of a process's life */
};

static const char *local;

static void *registers(void *arg)
{
	int fd = rds_bound_to(local, 0, NULL);
	char *mem = aligned_alloc(BYTES, BYTES);
	u64 cookie;

	for (;;) {
		must(mr_get(fd, mem, BYTES, RDS_RDMA_READWRITE, &cookie));
		must(mr_free(fd, cookie));
	}
	return arg;
}

static void __noreturn register_for_ever(void)
{
	pthread_t thread;

	for (int i = 1; i < THREADS; i++)
		check_eq(pthread_create(&thread, NULL, registers, NULL), 0);
	registers(NULL);
	exit(1);
}

int main(int argc, char **argv)
{
	static char mem[BYTES] __attribute__((aligned(BYTES)));
	u64 cookie;
	int fd;

	if (argc != 3)
		tap_fail("usage: helper_kill_registering LOCAL ROUNDS");
	local = argv[1];
	fd = rds_bound_to(local, 0, NULL);
	for (int round = 0; round < atoi(argv[2]); round++) {
		pid_t pid = fork();

		if (!pid)
			register_for_ever();
		/* another moment each time */
		usleep(1 + round * 7919 % LONGEST_US);
		must(kill(pid, SIGKILL));
		check_eq(waitpid(pid, NULL, 0), pid);
		if (mr_get(fd, mem, BYTES, RDS_RDMA_READWRITE, &cookie))
			tap_fail("round %d: %s", round, tap_errno_name(errno));
		must(mr_free(fd, cookie));
	}
	tap_child_exit();
}
