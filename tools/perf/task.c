// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks: each is a client with a process and sockets of its own. The parent
 * starts all of them at the same time when each is ready, prints a line a second
 * and adds up their results, which are in memory that they share. If one fails
 * then all end.
 *
 * A node of a mesh has tasks for each other node, and a server for their tasks.
 * It ends when its own tasks have ended and those of the others, too.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "perf.h"

/* In memory that all processes share */
struct task {
	bool ready;
	struct result result;
};

static struct task *tasks;
static pid_t pids[MAX_TASKS + 1];	/* 0: ended */
static uint32_t nr_tasks, nr_pids;
static int go[2];			/* closed by the parent: go */

/* --------------------------------------------------------------- processes */

static void __attribute__((noreturn)) end_all(void)
{
	for (uint32_t i = 0; i < nr_pids; i++) {
		if (pids[i])
			kill(pids[i], SIGKILL);
	}
	exit(EXIT_ERROR);
}

/* Returns how many processes are left. */
static uint32_t reap(void)
{
	uint32_t i, left = 0;
	int status;

	for (i = 0; i < nr_pids; i++) {
		if (!pids[i])
			continue;
		if (!waitpid(pids[i], &status, WNOHANG)) {
			left++;
			continue;
		}
		pids[i] = 0;
		if (status)
			end_all();
	}
	return left;
}

/* A process of ours; it does not outlive us. Returns true in the child. */
static bool spawn(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		die("fork", errno);
	if (pid) {
		pids[nr_pids++] = pid;
		return false;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		exit(EXIT_ERROR);
	return true;
}

/* Wait until something happens to a process; false: the time is up. */
static bool wait_event(uint64_t until_ns)
{
	uint64_t now = now_ns(), left = until_ns > now ? until_ns - now : 0;
	struct timespec ts = { left / NSEC_PER_SEC, left % NSEC_PER_SEC };
	sigset_t events;

	sigemptyset(&events);
	sigaddset(&events, SIGCHLD);
	sigaddset(&events, SIGUSR1);
	return sigtimedwait(&events, NULL, &ts) > 0 || errno != EAGAIN;
}

static void block_events(void)
{
	sigset_t events;

	sigemptyset(&events);
	sigaddset(&events, SIGCHLD);
	sigaddset(&events, SIGUSR1);
	sigprocmask(SIG_BLOCK, &events, NULL);
}

static void __attribute__((noreturn)) run_task(struct task *task, char *peer,
					       bool first)
{
	char byte;

	close(go[1]);
	prctl(PR_SET_TIMERSLACK, 1);
	pace_seed();
	opt.host = peer;
	result = &task->result;
	client_prepare(first);
	__atomic_store_n(&task->ready, true, __ATOMIC_RELEASE);
	kill(getppid(), SIGUSR1);
	if (read(go[0], &byte, 1) < 0)
		die("the parent", errno);
	client_run();
	exit(0);
}

/* ----------------------------------------------------------------- seconds */

static void print_second(unsigned long second, uint64_t *last)
{
	uint64_t count = 0, worst = 0, ns;

	for (uint32_t i = 0; i < nr_tasks; i++) {
		struct result *r = &tasks[i].result;

		count += __atomic_load_n(&r->done, __ATOMIC_RELAXED);
		ns = __atomic_exchange_n(&r->worst_ns, 0, __ATOMIC_RELAXED);
		worst = ns > worst ? ns : worst;
	}
	printf("%4lu s: %" PRIu64 ", %.3f Gbit/s", second, count - *last,
	       (double)(count - *last) * report_bytes() * 8 / 1e9);
	*last = count;
	if (worst)
		printf(", slowest %.3f us", worst / 1000.0);
	putchar('\n');
	fflush(stdout);
}

/* --------------------------------------------------------------------- run */

static bool all_ready(void)
{
	for (uint32_t i = 0; i < nr_tasks; i++) {
		if (!__atomic_load_n(&tasks[i].ready, __ATOMIC_ACQUIRE))
			return false;
	}
	return true;
}

static void wait_all_ready(void)
{
	while (!all_ready()) {
		reap();
		wait_event(now_ns() + NSEC_PER_SEC);
	}
}

static void reset_connections(char **peers, uint32_t nr_peers)
{
	struct address to, from;

	for (uint32_t i = 0; i < nr_peers; i++) {
		resolve(peers[i], 0, &to);
		if (opt.source)
			resolve(opt.source, 0, &from);
		else
			choose_source(&to, &from);
		reset_connection(&from, &to);
	}
}

/* The time of something that happens once in this time; 0: never */
static uint64_t first_at(uint64_t every_ns)
{
	return every_ns ? now_ns() + every_ns : UINT64_MAX;
}

/* Until all processes have ended; lines are printed while tasks run. */
static void wait_end(char **peers, uint32_t nr_peers)
{
	uint64_t reset_at = first_at(opt.reset_ns);
	uint64_t abort_at = first_at(opt.abort_ns);
	uint64_t line_at = first_at(NSEC_PER_SEC), last = 0, next;
	bool lines = !opt.json && !opt.csv;
	unsigned long second = 0;

	while (reap()) {
		next = reset_at < abort_at ? reset_at : abort_at;
		if (wait_event(line_at < next ? line_at : next))
			continue;
		if (now_ns() >= abort_at) {
			fprintf(stderr, "xrds-perf: aborted\n");
			end_all();
		}
		if (now_ns() >= reset_at) {
			reset_connections(peers, nr_peers);
			reset_at += opt.reset_ns;
		}
		if (now_ns() < line_at)
			continue;
		line_at += NSEC_PER_SEC;
		if (lines)
			print_second(++second, &last);
	}
}

void run_tasks(char **peers, uint32_t nr_peers)
{
	struct result *parts;

	nr_tasks = nr_peers * opt.tasks;
	tasks = mmap(NULL, nr_tasks * sizeof(*tasks), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	parts = calloc(nr_peers, sizeof(*parts));
	if (tasks == MAP_FAILED || !parts || pipe(go))
		die("start", errno);
	block_events();
	for (uint32_t i = 0; i < nr_tasks; i++) {
		if (spawn())
			run_task(&tasks[i], peers[i % nr_peers], i < nr_peers);
	}
	wait_all_ready();
	report_begin();
	close(go[1]);
	wait_end(peers, nr_peers);
	for (uint32_t i = 0; i < nr_tasks; i++) {
		struct result *sum = result;

		report_add(&tasks[i].result);
		result = &parts[i % nr_peers];
		result->host = tasks[i].result.host;
		report_add(&tasks[i].result);
		result = sum;
	}
	report_parts(parts, opt.mesh ? nr_peers : 0);
}

/* -------------------------------------------------------------------- mesh */

static bool is_own(const char *name)
{
	struct address address, source;
	int fd;

	resolve(name, 0, &address);
	if (opt.source) {
		resolve(opt.source, 0, &source);
		return !memcmp(&address, &source, sizeof(address));
	}
	fd = try_socket(&address);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

void run_mesh(char **addresses, uint32_t nr_addresses)
{
	char *peers[MAX_NODES], *own = NULL;
	uint32_t nr_peers = 0;

	for (uint32_t i = 0; i < nr_addresses; i++) {
		if (!own && is_own(addresses[i]))
			own = addresses[i];
		else
			peers[nr_peers++] = addresses[i];
	}
	if (!own) {
		fprintf(stderr, "xrds-perf: -X: this node has none of the addresses\n");
		exit(EXIT_ERROR);
	}
	opt.source = own;
	opt.host = own;
	block_events();
	if (spawn()) {
		opt.tos = 0;
		serve(nr_peers * opt.tasks);
	}
	run_tasks(peers, nr_peers);
}
