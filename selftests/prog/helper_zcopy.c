// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_zcopy hold|limits|fail|batch LOCAL REMOTE PORT
 *
 * hold: meets the receiver with a message, says "met", and waits for SIGUSR1.
 * Then it sends a message with MSG_ZEROCOPY, and says "busy" if its memory stays
 * pinned. It says "free" when the completion comes: the memory is its own.
 * limits: RLIMIT_MEMLOCK and the quality of the memory bound what may be sent.
 * fail: whichever allocation or copy of a send fails, nothing stays pinned; says
 * how many have failed. For the debug kernel.
 * batch: a sendmmsg() sends all of its messages.
 * The exit status is the verdict.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rdma.h"
#include "sock.h"
#include "tap.h"

enum {
	COOKIE		= 7,
	BYTES		= 1 << 18,
	BYTES_PAGES	= BYTES >> 12,
	QUIET_MS	= 500,
	LIMIT_MS	= 120000,
	NOBODY		= 65534,
	MAX_NTH		= 1000,		/* far more than a send needs */
	BATCH		= 4,		/* messages of one sendmmsg() */
	EACH		= BYTES / BATCH,
};

static union addr to;
static int fd;
static char *data;
static long pinned_before;	/* in-tree RDS leaves some of its own counted */

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

static ssize_t send_from(const void *from, size_t len)
{
	u32 cookie = COOKIE;
	struct ctl ctl = { 0 };

	ctl_add(&ctl, RDS_CMSG_ZCOPY_COOKIE, &cookie, sizeof(cookie));
	return ctl_send(fd, &to, &ctl, from, len, MSG_ZEROCOPY);
}

static void await_completion(void)
{
	struct got got;

	check_ret(got_within(fd, &got, LIMIT_MS), 0);
	if (check_eq(got.nr_zcopied, 1))
		check_eq(got.zcopied[0], COOKIE);
}

static void hold(void)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	check_ret(rds_send(fd, "x", 1, 0, &to), 1);
	must_wait(rds_all_acked, &fd, LIMIT_MS);
	say("met");
	sigwait(&set, &sig);
	check_ret(send_from(data, BYTES), BYTES);
	if (!poll_one(fd, POLLIN, QUIET_MS) &&
	    check_eq(pinned_pages() - pinned_before, BYTES_PAGES))
		say("busy");
	await_completion();
	check_eq(pinned_pages(), pinned_before);
	say("free");
}

static void limits(void)
{
	struct rlimit half = { BYTES / 2, BYTES / 2 }, none = { 0, 0 };

	tap_context("read-only memory");
	must(mprotect(data, BYTES, PROT_READ));
	check_ret(send_from(data, BYTES), BYTES);
	await_completion();
	tap_context("no memory");
	must(mprotect(data, BYTES, PROT_NONE));
	check_err(send_from(data, BYTES), EFAULT);
	must(mprotect(data, BYTES, PROT_READ | PROT_WRITE));

	must(setresuid(NOBODY, NOBODY, NOBODY));
	must(setrlimit(RLIMIT_MEMLOCK, &half));
	tap_context("more than may be locked");
	check_err(send_from(data, BYTES), ENOMEM);
	tap_context("less than that");
	check_ret(send_from(data, BYTES / 2), BYTES / 2);
	await_completion();
	must(setrlimit(RLIMIT_MEMLOCK, &none));
	tap_context("nothing may be locked");
	check_err(send_from(data, BYTES), EPERM);
	tap_context("a copy of it");
	check_ret(send_from(data, 4096), 4096);
	await_completion();
	check_eq(poll_one(fd, POLLIN, QUIET_MS), 0);
}

/* Sends with the allocation or copy of this number failing. Did one fail? */
static bool send_failing(int nth)
{
	int nth_fd = must(open("/proc/thread-self/fail-nth", O_RDWR));
	char text[16];
	bool struck;
	ssize_t ret;
	int error;

	tap_context("failure %d", nth);
	snprintf(text, sizeof(text), "%d", nth);
	must(pwrite(nth_fd, text, strlen(text), 0));
	ret = send_from(data, BYTES);
	error = errno;
	memset(text, 0, sizeof(text));
	/* the failure may be left for this call */
	struck = pread(nth_fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
	while (pwrite(nth_fd, "0", 1, 0) < 0)
		;
	close(nth_fd);
	if (ret < 0)
		check(error == ENOMEM || error == EFAULT);
	else if (check_eq(ret, BYTES))
		await_completion();
	check_eq(poll_one(fd, POLLIN, 0), 0);
	return struck;
}

static void fail(void)
{
	int nth = 1;

	/* a page fault must not fail in its place */
	must(mlockall(MCL_CURRENT | MCL_FUTURE));
	while (send_failing(nth) && nth < MAX_NTH)
		nth++;
	check_range(nth, 3, MAX_NTH - 1);
	must_wait(rds_all_acked, &fd, LIMIT_MS);
	check_eq(pinned_pages(), pinned_before);
	printf("%d failures\n", nth - 1);
}

static void batch(void)
{
	struct mmsghdr m[BATCH] = { 0 };
	struct ctl ctl[BATCH] = { 0 };
	struct iovec iov[BATCH];
	struct got got;
	u32 done = 0;

	for (u32 i = 0; i < BATCH; i++) {
		ctl_add(&ctl[i], RDS_CMSG_ZCOPY_COOKIE, &i, sizeof(i));
		iov[i] = (struct iovec){ data + i * EACH, EACH };
		m[i].msg_hdr = (struct msghdr){
			.msg_name = &to, .msg_namelen = addr_len(&to),
			.msg_iov = &iov[i], .msg_iovlen = 1,
			.msg_control = ctl[i].data,
			.msg_controllen = ctl[i].len,
		};
	}
	check_ret(sendmmsg(fd, m, BATCH, MSG_ZEROCOPY), BATCH);
	for (u32 i = 0; i < BATCH; i++)
		check_eq(m[i].msg_len, EACH);
	while (done < BATCH && check_ret(got_within(fd, &got, LIMIT_MS), 0))
		for (int i = 0; i < got.nr_zcopied; i++)
			check_eq(got.zcopied[i], done++);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		tap_fail("usage: helper_zcopy hold|limits|fail|batch LOCAL REMOTE PORT");
	fd = rds_bound_to(argv[2], 0, NULL);
	to = addr_of(argv[3], atoi(argv[4]));
	rds_set_int(fd, SOL_SOCKET, SO_ZEROCOPY, 1);
	data = pages(BYTES);
	memset(data, COOKIE, BYTES);
	pinned_before = pinned_pages();
	if (!strcmp(argv[1], "hold"))
		hold();
	else if (!strcmp(argv[1], "limits"))
		limits();
	else if (!strcmp(argv[1], "batch"))
		batch();
	else
		fail();
	tap_child_exit();
}
