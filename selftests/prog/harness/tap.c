// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs test cases and reports them as TAP.
 *
 * The parent forks a process group for each case, waits for it with a
 * deadline, kills what is left of the group and prints the verdict, then what
 * the case had to say: TAP readers take diagnostics for the line above them.
 * A process that survives SIGKILL is itself a finding: it is reported and left
 * behind.
 */
#include <fcntl.h>
#include <getopt.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

enum {
	CASE_LIMIT_S	= 30,
	KILL_LIMIT_MS	= 5000,
	WAIT_STEP_MS	= 10,
	EXIT_FAIL	= 1,
	EXIT_SKIP	= 4,
	REASON_BYTES	= 128,
	DEBUG_SLOW	= 4,
};

enum verdict { PASS, FAIL, SKIP };

const char *tap_host = "127.0.0.1";
bool tap_verbose;

static const char *host_arg;
static bool failed;
static char context[160];
static char *skip_reason;	/* shared with the cases */
static int output = -1;		/* output of the case */

static void diag(const char *format, va_list args)
{
	char text[1024];

	vsnprintf(text, sizeof(text), format, args);
	printf("# %s\n", text);
}

void tap_diag(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	diag(format, args);
	va_end(args);
}

void tap_note(const char *format, ...)
{
	va_list args;

	if (!tap_verbose)
		return;
	va_start(args, format);
	diag(format, args);
	va_end(args);
}

void tap_context(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(context, sizeof(context), format, args);
	va_end(args);
}

void tap_skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(skip_reason, REASON_BYTES, format, args);
	va_end(args);
	exit(failed ? EXIT_FAIL : EXIT_SKIP);
}

void tap_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	diag(format, args);
	va_end(args);
	exit(EXIT_FAIL);
}

void tap_child_exit(void)
{
	exit(failed ? EXIT_FAIL : 0);
}

void tap_child_join(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		tap_fail("waitpid %d: %s", pid, tap_errno_name(errno));
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		tap_diag("process %d ended with status %#x", pid, status);
		failed = true;
	}
}

static void on_alarm(int sig)
{
	(void)sig;
}

void tap_interrupt(int ms, int flags)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = flags };
	struct timeval period = { ms / 1000, ms % 1000 * 1000 };
	struct itimerval timer = { period, period };

	must(sigaction(SIGALRM, &action, NULL));
	must(setitimer(ITIMER_REAL, &timer, NULL));
}

int tap_kill(pid_t pid, int *status)
{
	const struct timespec step = { .tv_nsec = WAIT_STEP_MS * 1000000 };
	int turns = 0;

	must(kill(pid, SIGKILL));
	while (!must(waitpid(pid, status, WNOHANG))) {
		nanosleep(&step, NULL);
		turns++;
	}
	return turns * WAIT_STEP_MS;
}

void tap_kill_busy(void (*busy)(int ready))
{
	int pipe_fd[2], status;
	char byte;
	pid_t pid;

	must(pipe(pipe_fd));
	pid = must(fork());
	if (!pid) {
		busy(pipe_fd[1]);
		for (;;)
			pause();
	}
	close(pipe_fd[1]);
	if (read(pipe_fd[0], &byte, 1) != 1)
		tap_fail("the process did not get ready");
	check_range(tap_kill(pid, &status), 0, tap_ms(TAP_KILL_MS));
	check(WIFSIGNALED(status));
	close(pipe_fd[0]);
}

const char *tap_errno_name(int error)
{
	static char number[16];
	const char *name = strerrorname_np(error);

	if (name)
		return name;
	snprintf(number, sizeof(number), "errno %d", error);
	return number;
}

/* ----------------------------------------------------------------- checks */

static void report(const struct tap_where *where, const char *want,
		   const char *got)
{
	const char *file = strrchr(where->file, '/');

	failed = true;
	printf("# %s:%d: %s%s%s: expected %s, got %s\n",
	       file ? file + 1 : where->file, where->line,
	       context, context[0] ? ": " : "", where->text, want, got);
}

bool tap_check(bool ok, const struct tap_where *where)
{
	if (!ok)
		report(where, "true", "false");
	return ok;
}

bool tap_check_range(long long got, long long min, long long max,
		     const struct tap_where *where)
{
	char want_text[64], got_text[32];

	if (got >= min && got <= max)
		return true;
	snprintf(want_text, sizeof(want_text), "%lld to %lld", min, max);
	snprintf(got_text, sizeof(got_text), "%lld", got);
	report(where, want_text, got_text);
	return false;
}

bool tap_check_eq(long long got, long long want, const struct tap_where *where)
{
	char want_text[32], got_text[32];

	if (got == want)
		return true;
	snprintf(want_text, sizeof(want_text), "%lld", want);
	snprintf(got_text, sizeof(got_text), "%lld", got);
	report(where, want_text, got_text);
	return false;
}

bool tap_check_ret(long long got, long long want,
		   const struct tap_where *where)
{
	int error = errno;
	char want_text[32];

	if (got != -1)
		return tap_check_eq(got, want, where);
	if (want == -1)
		return true;
	snprintf(want_text, sizeof(want_text), "%lld", want);
	report(where, want_text, tap_errno_name(error));
	return false;
}

bool tap_check_err(long long got, int want, const struct tap_where *where)
{
	int error = errno;
	char got_text[32];

	if (got == -1 && error == want)
		return true;
	if (got == -1)
		snprintf(got_text, sizeof(got_text), "%s",
			 tap_errno_name(error));
	else
		snprintf(got_text, sizeof(got_text), "success (%lld)", got);
	report(where, strerrorname_np(want), got_text);
	return false;
}

long long tap_must(long long got, const struct tap_where *where)
{
	if (got >= 0)
		return got;
	report(where, "success", tap_errno_name(errno));
	exit(EXIT_FAIL);
}

/* ------------------------------------------------------------------- time */

static long long clock_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

long long tap_now_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

long long tap_tick_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC_COARSE);
}

static int slowness(void)
{
	const char *slow = getenv("XRDS_SLOW");
	int factor = slow ? atoi(slow) : 1;

	/* a kernel with kmemleak has lockdep and KASAN too */
	if (!slow && !access("/sys/kernel/debug/kmemleak", F_OK))
		factor = DEBUG_SLOW;
	return factor > 1 ? factor : 1;
}

int tap_ms(int ms)
{
	return ms * slowness();
}

int tap_count(int count)
{
	return (count - 1) / slowness() + 1;
}

bool tap_wait(bool (*cond)(void *arg), void *arg, int ms)
{
	const struct timespec step = { .tv_nsec = WAIT_STEP_MS * 1000000 };
	long long end = tap_now_ms() + tap_ms(ms);

	while (!cond(arg)) {
		if (tap_now_ms() >= end)
			return cond(arg);
		nanosleep(&step, NULL);
	}
	return true;
}

/* ------------------------------------------------------------------ cases */

void tap_new_netns(void)
{
	struct ifreq ifr = { .ifr_name = "lo" };
	int fd;

	must(unshare(CLONE_NEWNET));
	fd = must(socket(AF_INET, SOCK_DGRAM, 0));
	must(ioctl(fd, SIOCGIFFLAGS, &ifr));
	ifr.ifr_flags |= IFF_UP;
	must(ioctl(fd, SIOCSIFFLAGS, &ifr));
	close(fd);
}

static void run_child(const struct tap_case *c)
{
	setpgid(0, 0);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	if (!host_arg && !(c->flags & TAP_SAME_NETNS))
		tap_new_netns();
	c->run();
	tap_child_exit();
}

static bool reaped(pid_t pid, int *status, long long end)
{
	const struct timespec step = { .tv_nsec = WAIT_STEP_MS * 1000000 };

	for (;;) {
		if (waitpid(pid, status, WNOHANG) == pid)
			return true;
		if (tap_now_ms() >= end)
			return false;
		nanosleep(&step, NULL);
	}
}

/* Into the output of the case */
static void say(const char *format, int value)
{
	dprintf(output, format, value);
}

static enum verdict wait_child(const struct tap_case *c, pid_t pid)
{
	int limit_s = c->limit_s ? c->limit_s : CASE_LIMIT_S;
	enum verdict verdict = FAIL;
	int status;

	setpgid(pid, pid);
	if (reaped(pid, &status, tap_now_ms() + tap_ms(limit_s * 1000))) {
		if (WIFSIGNALED(status))
			say("# killed by signal %d\n", WTERMSIG(status));
		else if (WEXITSTATUS(status) == EXIT_SKIP)
			verdict = SKIP;
		else if (!WEXITSTATUS(status))
			verdict = PASS;
	} else {
		say("# not ended after %d s\n", tap_ms(limit_s * 1000) / 1000);
		kill(-pid, SIGKILL);
		if (!reaped(pid, &status, tap_now_ms() + tap_ms(KILL_LIMIT_MS)))
			say("# process %d cannot be killed\n", pid);
	}
	kill(-pid, SIGKILL);
	return verdict;
}

static void output_open(void)
{
	fflush(stdout);
	skip_reason[0] = '\0';
	output = must(memfd_create("output", MFD_CLOEXEC));
	must(fcntl(output, F_SETFL, O_APPEND));
}

static void output_show(void)
{
	char text[4096];
	ssize_t n;

	lseek(output, 0, SEEK_SET);
	while ((n = read(output, text, sizeof(text))) > 0)
		fwrite(text, 1, n, stdout);
	close(output);
	fflush(stdout);
}

/* The kernel's log says which case ran when something was wrong with it */
static void log_case(const struct tap_case *c, const char *suffix)
{
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	char line[160];
	int len;

	if (fd < 0)
		return;
	len = snprintf(line, sizeof(line), "<4>test case: %s: %s%s\n",
		       program_invocation_short_name, c->name, suffix);
	if (write(fd, line, len) < 0)
		tap_note("/dev/kmsg: %s", tap_errno_name(errno));
	close(fd);
}

static enum verdict run_case(const struct tap_case *c, const char *suffix)
{
	const char *expect_all = getenv("XRDS_EXPECT_ALL");
	bool all = expect_all && !strcmp(expect_all, "1");
	long long start = tap_now_ms();
	static int number;
	enum verdict v;
	pid_t pid;

	output_open();
	log_case(c, suffix);
	pid = must(fork());
	if (!pid)
		run_child(c);
	v = wait_child(c, pid);
	if (v == SKIP && all)
		v = FAIL;
	printf("%s %d - %s%s: %s # ", v == FAIL ? "not ok" : "ok", ++number,
	       c->name, suffix, c->proves);
	if (v == SKIP)
		printf("SKIP %s\n", skip_reason);
	else
		printf("%lld ms\n", tap_now_ms() - start);
	if (skip_reason[0] && all)
		tap_diag("skipped: %s", skip_reason);
	output_show();
	return v;
}

static int count(const struct tap_case *c)
{
	return c->flags & TAP_EACH_FAMILY && !host_arg ? 2 : 1;
}

static void print_usage(const char *program, int code)
{
	printf("usage: %s [-v] [-l] [-t NAME] [-n TIMES] [-a ADDRESS]\n"
	       "  -t NAME     run this case only (may be repeated by commas)\n"
	       "  -n TIMES    run the cases so many times\n"
	       "  -a ADDRESS  use this local address, in this network namespace\n"
	       "  -l          list the cases\n"
	       "  -v          show what happens\n", program);
	exit(code);
}

static bool wanted(const struct tap_case *c, const char *names)
{
	size_t len = strlen(c->name);

	if (!names)
		return true;
	for (const char *p = names; (p = strstr(p, c->name)); p++)
		if ((p == names || p[-1] == ',') &&
		    (!p[len] || p[len] == ','))
			return true;
	return false;
}

static bool run_all(const struct tap_case *cases, size_t nr, const char *names)
{
	bool ok = true;

	for (size_t i = 0; i < nr; i++) {
		if (!wanted(&cases[i], names))
			continue;
		tap_host = host_arg ? host_arg : "127.0.0.1";
		ok &= run_case(&cases[i], "") != FAIL;
		if (count(&cases[i]) == 1)
			continue;
		tap_host = "::1";
		ok &= run_case(&cases[i], ".v6") != FAIL;
	}
	return ok;
}

int tap_main(int argc, char **argv, const struct tap_case *cases, size_t nr)
{
	const char *names = NULL;
	int times = 1, plan = 0;
	bool ok = true;
	int opt;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((opt = getopt(argc, argv, "a:hln:t:v")) != -1) {
		switch (opt) {
		case 'a':
			host_arg = optarg;
			break;
		case 'l':
			for (size_t i = 0; i < nr; i++)
				printf("%s: %s\n", cases[i].name,
				       cases[i].proves);
			return 0;
		case 'n':
			times = atoi(optarg);
			break;
		case 't':
			names = optarg;
			break;
		case 'v':
			tap_verbose = true;
			break;
		default:
			print_usage(argv[0], opt == 'h' ? 0 : 2);
		}
	}
	for (size_t i = 0; i < nr; i++)
		if (wanted(&cases[i], names))
			plan += count(&cases[i]);
	if (!plan || optind != argc)
		print_usage(argv[0], 2);

	skip_reason = mmap(NULL, REASON_BYTES, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (skip_reason == MAP_FAILED)
		return 1;
	printf("TAP version 13\n1..%d\n", plan * times);
	while (times--)
		ok &= run_all(cases, nr, names);
	return ok ? 0 : 1;
}
