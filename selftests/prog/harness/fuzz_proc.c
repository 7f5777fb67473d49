// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzers as processes: several users, sockets that pass between them,
 * children, namespaces.
 *
 * Even the fuzzers that run as root give away what makes them exempt from the
 * bounds of a user: so these always leave room for others.
 */
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "fuzz.h"
#include "fuzz_proc.h"
#include "tap.h"

enum {
	THREADS		= 2,	/* that call, in each process */
	ROOTS		= 3,	/* one process of so many */
	MOVED		= 6,
	USERS		= 2,
	FIRST_USER	= 2001,
	MAX_DEPTH	= 1,
	MAX_NETNS	= 2,	/* of a thread; they take long to end */
	MAX_FILES	= 256,
	LOCKED_BYTES	= 192 * 1024,
};

/* ------------------------------------------------------------------- sharing */

long fuzz_call_give(struct fuzz *f)
{
	char control[CMSG_SPACE(2 * sizeof(int))] __aligned(8) = { 0 };
	int fds[2] = { fuzz_fd(f), fuzz_fd(f) };
	struct iovec iov = { fds, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(cmsg), fds, sizeof(fds));
	return sendmsg(fuzz_shared->exchange[fuzz_below(f, 2)], &msg,
		       MSG_DONTWAIT | MSG_NOSIGNAL);
}

long fuzz_call_take(struct fuzz *f)
{
	char control[CMSG_SPACE(2 * sizeof(int))] __aligned(8);
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	int fds[2];
	long ret;

	ret = recvmsg(fuzz_shared->exchange[fuzz_below(f, 2)], &msg,
		      MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	cmsg = ret < 0 ? NULL : CMSG_FIRSTHDR(&msg);
	if (!cmsg || cmsg->cmsg_type != SCM_RIGHTS)
		return ret;
	memcpy(fds, CMSG_DATA(cmsg), sizeof(fds));
	for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= cmsg->cmsg_len &&
	     i < ARRAY_SIZE(fds); i++)
		fuzz_fd_add(f, fds[i]);
	return ret;
}

static void child_run(u64 seed)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fuzz_self.depth++;
	fuzz_self.child = 0;
	/* of the threads it is the only one here */
	fuzz_run(seed, NULL);
	_exit(0);
}

/* The end of a fuzzer is that of its parent, if it was not killed. */
static void check_end(pid_t pid, int status)
{
	if (WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL :
				  !WEXITSTATUS(status))
		return;
	tap_diag("fuzzer %d ended with status %#x", pid, status);
	_exit(1);
}

/* One at a time: the next call of this kind kills it. */
long fuzz_call_fork(struct fuzz *f)
{
	u64 seed = prng_next(&f->prng);
	int status;
	pid_t pid;

	if (fuzz_self.depth >= MAX_DEPTH)
		return -1;
	pid = __atomic_exchange_n(&fuzz_self.child, 0, __ATOMIC_ACQ_REL);
	if (pid > 0) {
		kill(pid, SIGKILL);
		if (waitpid(pid, &status, 0) != pid)
			return -1;
		check_end(pid, status);
		return pid;
	}
	pid = fork();
	if (!pid)
		child_run(seed);
	if (pid > 0)
		WRITE_ONCE(fuzz_self.child, pid);
	return pid;
}

/* ---------------------------------------------------------------- namespaces */

static void lo_up(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	ioctl(fd, SIOCSIFFLAGS, &ifr);
	close(fd);
}

/* This thread's; sockets stay where they were made, and are there for all. */
long fuzz_call_netns(struct fuzz *f)
{
	static __thread int made;
	static __thread bool away;
	long ret;

	(void)f;
	if (fuzz_self.netns < 0)
		return -1;
	if (away) {
		ret = setns(fuzz_self.netns, CLONE_NEWNET);
		away = ret < 0;
		return ret;
	}
	if (made == MAX_NETNS)
		return -1;
	ret = unshare(CLONE_NEWNET);
	if (ret < 0)
		return ret;
	made++;
	away = true;
	lo_up();
	return 0;
}

long fuzz_call_knob(struct fuzz *f)
{
	/* nothing that makes others wait for long */
	static const struct {
		const char *name;
		unsigned int below;
	} knobs[] = {
		{ "net/xrds/loop/delay_ms", 6 },
		{ "net/xrds/loop/loss_permille", 40 },
		{ "net/xrds/loop/bounce_ms", 60 },
		{ "net/xrds/idle_ms", 500 },
		{ "net/xrds/heartbeat_ms", 100 },
		{ "net/xrds/linger_ms", 1500 },
		{ "net/rds/ping_enable", 2 },
		{ "net/rds/max_unacked_packets", 40 },
	};
	size_t i = fuzz_below(f, ARRAY_SIZE(knobs));
	char path[96], text[16];
	long ret;
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/%s", knobs[i].name);
	snprintf(text, sizeof(text), "%llu",
		 fuzz_one_in(f, 2) ? 0 : fuzz_below(f, knobs[i].below));
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ret = write(fd, text, strlen(text));
	close(fd);
	return ret;
}

/* ------------------------------------------------------------------- the user */

static void drop_resource(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];
	u32 mask = ~(1u << CAP_SYS_RESOURCE);

	must(syscall(SYS_capget, &head, data));
	data[0].effective &= mask;
	data[0].permitted &= mask;
	must(syscall(SYS_capset, &head, data));
}

static void limit(int what, unsigned long value)
{
	struct rlimit rlimit = { value, value };

	must(setrlimit(what, &rlimit));
}

static void become(int number)
{
	uid_t uid = FIRST_USER + number % USERS;

	limit(RLIMIT_NOFILE, MAX_FILES);
	if (number % ROOTS == 0) {
		fuzz_self.root = true;
		fuzz_self.netns = must(open("/proc/self/ns/net",
					    O_RDONLY | O_CLOEXEC));
		drop_resource();
		return;
	}
	fuzz_self.netns = -1;
	limit(RLIMIT_MEMLOCK, LOCKED_BYTES);
	must(setgroups(0, NULL));
	must(setresgid(uid, uid, uid));
	must(setresuid(uid, uid, uid));
	/* else what is below /proc/self is not its own */
	must(prctl(PR_SET_DUMPABLE, 1));
}

/* Some live in a namespace of their own, where they may administer: they have
 * sockets of both.
 */
static void move(void)
{
	if (!unshare(CLONE_NEWUSER | CLONE_NEWNET))
		lo_up();
	/* its privileges have changed, and that takes these away */
	must(prctl(PR_SET_DUMPABLE, 1));
	must(prctl(PR_SET_PDEATHSIG, SIGKILL));
}

/* ---------------------------------------------------------------------- life */

static void interrupted(int signal)
{
	(void)signal;
}

/* The mapping that an address is in, as the kernel says it */
static void show_mapping(const char *what, unsigned long at)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[256];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 &&
		    at >= start && at < end)
			tap_diag("%s %#lx is %#lx behind the start of %s", what,
				 at, at - start, line);
	if (maps)
		fclose(maps);
}

/* An earlier call may have damaged the memory. */
static void crashed(int number, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	tap_diag("fuzzer %d crashed in %s: signal %d, code %d, address %p",
		 getpid(), fuzz_doing(), number, info->si_code, info->si_addr);
	tap_diag("thread %ld, depth %d, trap %lld, error %#llx",
		 syscall(SYS_gettid), fuzz_self.depth, regs[REG_TRAPNO],
		 regs[REG_ERR]);
	show_mapping("ip", regs[REG_RIP]);
	show_mapping("sp", regs[REG_RSP]);
	/* and now for good */
	signal(number, SIG_DFL);
}

static void explain(int signal)
{
	struct sigaction action = {
		.sa_sigaction = crashed,
		.sa_flags = SA_SIGINFO,
	};

	must(sigaction(signal, &action, NULL));
}

static void handle(int signal, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	/* not SA_RESTART: calls shall end */
	must(sigaction(signal, &action, NULL));
}

/* Nobody closes anything before all have opened what is theirs */
static pthread_barrier_t opened;

static void *run(void *arg)
{
	fuzz_run((uintptr_t)arg, &opened);
	return NULL;
}

/* Standard output, for the last words, and the pair that passes sockets on;
 * nothing else of the program that has started us.
 */
static void keep_few(void)
{
	int low = fuzz_shared->exchange[0], high = fuzz_shared->exchange[1];

	if (low > STDERR_FILENO + 1)
		must(close_range(STDERR_FILENO + 1, low - 1, 0));
	if (high > low + 1)
		must(close_range(low + 1, high - 1, 0));
	must(close_range(high + 1, ~0u, 0));
}

void fuzz_process(u64 seed, int number)
{
	struct fuzz f = { .prng = { seed }, .nth_fd = -1 };
	pthread_t threads[THREADS - 1];

	keep_few();
	for (int i = 0; i < FUZZ_SLOTS; i++)
		fuzz_self.fds[i] = -1;
	handle(SIGALRM, interrupted);
	explain(SIGSEGV);
	explain(SIGBUS);
	handle(SIGPIPE, SIG_IGN);
	handle(SIGIO, SIG_IGN);
	fuzz_mem_open();
	fuzz_self.epoll = must(epoll_create1(EPOLL_CLOEXEC));
	become(number);
	must(prctl(PR_SET_PDEATHSIG, SIGKILL));
	for (int i = 0; i < FUZZ_SLOTS; i++)
		fuzz_socket(&f, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	/* a namespace of one's own takes its time on slow kernels */
	__atomic_fetch_add(&fuzz_shared->ready, 1, __ATOMIC_RELEASE);
	if (number % MOVED == 2)
		move();
	fuzz_mem_start(prng_next(&f.prng));
	pthread_barrier_init(&opened, NULL, THREADS);
	for (int i = 0; i < THREADS - 1; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)
				   prng_next(&f.prng)))
			tap_fail("no thread");
	fuzz_run(prng_next(&f.prng), &opened);
	for (int i = 0; i < THREADS - 1; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}
