// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that cannot be given back, because one of its pages stays locked: only
 * its user waits for it, and only within the bounds of the call. Nobody waits
 * for memory that no lock is needed for.
 *
 * modules: xrds xrds_pagelock
 * timeout: 180
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "netns.h"
#include "rdma.h"
#include "tap.h"

#define PAGE_FILE "/sys/kernel/debug/xrds_pagelock/page"
#define WRITABLE RDS_RDMA_READWRITE

enum {
	STUCK_USER	= 1001,
	OTHER_USER	= 1002,
	LIMIT_PAGES	= 16,
	ROUNDS		= 100,
	SHORT_MS	= 100,
};

static const size_t limit = LIMIT_PAGES * PAGE_BYTES;

static void be_user(uid_t user)
{
	struct rlimit rlim = { limit, limit };

	must(setrlimit(RLIMIT_MEMLOCK, &rlim));
	must(setresgid(user, user, user));
	must(setresuid(user, user, user));
}

/* The page stays locked until every process has closed @file */
static void lock_page(int file, const char *mem)
{
	check_eq(must(write(file, &mem, sizeof(mem))), sizeof(mem));
}

/* All that the process may pin is given up, and not given back. */
static int stuck_socket(int file)
{
	char *mem = pages(limit);
	int fd = rds_bound(NULL);
	u64 cookie;

	must(mr_get(fd, mem, limit, WRITABLE, &cookie));
	lock_page(file, mem);
	must(mr_free(fd, cookie));
	return fd;
}

struct stuck {
	int file;
	pid_t pid;
};

/* A process of another user; it calls @then with its socket. */
static void stuck_start(struct stuck *s, void (*then)(int fd))
{
	int pipe_fd[2], fd;
	char byte;

	s->file = must(open(PAGE_FILE, O_WRONLY));
	must(pipe(pipe_fd));
	s->pid = must(fork());
	if (!s->pid) {
		be_user(STUCK_USER);
		fd = stuck_socket(s->file);
		close(s->file);
		must(write(pipe_fd[1], "r", 1));
		then(fd);
		tap_child_exit();
	}
	check_eq(must(read(pipe_fd[0], &byte, 1)), 1);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

static void stay(int fd)
{
	(void)fd;
	pause();
}

static void stuck_end(struct stuck *s)
{
	close(s->file);
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
}

/* ---------------------------------------------------------------- others */

/* All that one may pin, again and again, by regions and by ops */
static void use_all(void)
{
	char *mem = pages(limit);
	int fd = rds_bound(NULL);
	struct target t = { 0 };
	struct op op;
	u64 cookie;

	t.addr = rds_self(fd);
	for (int i = 0; i < ROUNDS; i++) {
		tap_context("round %d", i);
		if (!check_ret(mr_get(fd, mem, limit, WRITABLE, &cookie), 0))
			break;
		check_ret(mr_free(fd, cookie), 0);
		op = op_read(&t, 0, mem, limit);
		op_set(&op, RDS_RDMA_SILENT, 0);
		check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_REMOTE_ERROR);
	}
	close(fd);
	check_pinned_falls(0);
}

static void others(void)
{
	struct stuck s;
	pid_t pid;

	stuck_start(&s, stay);
	pid = must(fork());
	if (!pid) {
		/* so that it ends when this process does */
		close(s.file);
		be_user(OTHER_USER);
		use_all();
		tap_child_exit();
	}
	tap_child_join(pid);
	stuck_end(&s);
}

/* -------------------------------------------------------------- the user */

/* Calls that may not wait, or not for long, fail */
static void bounded(void)
{
	int file = must(open(PAGE_FILE, O_WRONLY)), fd;
	struct target t = { 0 };
	long long begin;
	struct op op;
	char byte;

	be_user(STUCK_USER);
	fd = stuck_socket(file);
	t.addr = rds_self(fd);
	op = op_read(&t, 0, &byte, 1);
	op.msg_flags = MSG_DONTWAIT;
	check_err(op_send(fd, &t.addr, &op), ENOMEM);

	rds_timeout(fd, SO_SNDTIMEO, SHORT_MS);
	op.msg_flags = 0;
	begin = tap_tick_ms();
	check_err(op_send(fd, &t.addr, &op), ENOMEM);
	check(tap_now_ms() - begin >= SHORT_MS);
	close(file);
	check_pinned_falls(0);
	close(fd);
}

static void want_more(int fd)
{
	u64 cookie;

	check_ret(mr_get(fd, pages(limit), limit, WRITABLE, &cookie), 0);
}

static void want_more_by_op(int fd)
{
	struct target t = { .addr = rds_self(fd) };
	struct op op = op_read(&t, 0, pages(limit), limit);

	check_ret(op_send(fd, &t.addr, &op), 0);
}

/* Waits in the kernel, for no signal that a program could handle */
static bool asleep(void *pid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", *(pid_t *)pid);
	f = fopen(path, "r");
	if (!f)
		return false;
	check_eq(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
	fclose(f);
	return state == 'D';
}

static void waits(void (*want)(int fd), bool killed)
{
	struct stuck s;
	int status;

	stuck_start(&s, want);
	check(tap_wait(asleep, &s.pid, WAIT_MS));
	if (killed) {
		must(kill(s.pid, SIGKILL));
		check_eq(waitpid(s.pid, &status, 0), s.pid);
		check(WIFSIGNALED(status));
		close(s.file);
	} else {
		close(s.file);
		tap_child_join(s.pid);
	}
}

static void served(void)
{
	waits(want_more, false);
	waits(want_more_by_op, false);
}

static void killed(void)
{
	waits(want_more, true);
	waits(want_more_by_op, true);
}

/* ------------------------------------------------------------- namespaces */

/* A namespace ends whose memory cannot be given back: namespaces that end behind
 * it do, too.
 */
static void namespace(void)
{
	int file = must(open(PAGE_FILE, O_WRONLY));
	pid_t home = getpid(), pid = must(fork());

	if (!pid) {
		tap_new_netns();
		netns_mark(home);
		be_user(STUCK_USER);
		stuck_socket(file);
		tap_child_exit();
	}
	tap_child_join(pid);
	check(netns_ends(WAIT_MS));
	check(netns_settled(WAIT_MS));
	close(file);
}

/* ------------------------------------------------------------- the module */

static void leave(int fd)
{
	close(fd);
}

static bool has_ended(void *pid)
{
	siginfo_t info = { 0 };

	must(waitid(P_PID, *(pid_t *)pid, &info, WEXITED | WNOHANG | WNOWAIT));
	return info.si_pid;
}

/* Unloading is refused at once: it could not be killed when it waited. */
static void module(void)
{
	struct stuck s;
	int status;
	pid_t pid;

	stuck_start(&s, leave);
	tap_child_join(s.pid);
	pid = must(fork());
	if (!pid) {
		close(s.file);
		execlp("rmmod", "rmmod", "xrds", NULL);
		_exit(127);
	}
	check(tap_wait(has_ended, &pid, WAIT_MS));
	close(s.file);
	check_eq(waitpid(pid, &status, 0), pid);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	check_pinned_falls(0);
}

/* --------------------------------------------------------------- at once */

static void use_once(int fd, char *mem, u64 flags)
{
	u64 cookie;

	must(mr_get(fd, mem, limit, flags, &cookie));
	must(mr_free(fd, cookie));
}

/* The kernel locks only pages that are to become dirty. Others are given back
 * although pages of the same user are locked.
 */
static void at_once(void)
{
	int file = must(open(PAGE_FILE, O_WRONLY)), fd = rds_bound(NULL);
	char *mem = pages(limit), *dirty = pages(limit);
	long before = pinned_kb(), stuck;
	u64 cookie;

	use_once(fd, dirty, WRITABLE);
	check_pinned_falls(before);
	must(mr_get(fd, mem, 1, WRITABLE, &cookie));
	lock_page(file, mem);
	must(mr_free(fd, cookie));
	stuck = before + PAGE_BYTES / 1024;
	check_eq(pinned_kb(), stuck);

	tap_context("only read");
	use_once(fd, pages(limit), 0);
	check_eq(pinned_kb(), stuck);
	tap_context("dirty already");
	use_once(fd, dirty, WRITABLE);
	check_eq(pinned_kb(), stuck);
	close(file);
	close(fd);
	check_pinned_falls(before);
}

static const struct tap_case cases[] = {
	{ "others", "another user pins all it may, again and again", others,
	  0, 0 },
	{ "bounded", "MSG_DONTWAIT waits for nothing, SO_SNDTIMEO bounds it",
	  bounded, 0, 0 },
	{ "served", "a call gets memory that was given back meanwhile", served,
	  0, 0 },
	{ "killed", "a call that waits for it can be killed", killed, 0, 0 },
	{ "namespace", "namespaces end, also the one that it was pinned in",
	  namespace, 0, 0 },
	{ "module", "unloading is refused, and does not wait", module, 0, 0 },
	{ "at_once", "memory that needs no lock is given back at once", at_once,
	  0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
