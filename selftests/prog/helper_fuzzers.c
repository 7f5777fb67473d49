// SPDX-License-Identifier: GPL-2.0-only
/*
 * A generation of fuzzers (harness/fuzz.h): starts them, lets them make their
 * calls for a while, kills all of them at once, and reports the result.
 *
 *   helper_fuzzers RESULT SEED PROCESSES MS CALLS ADDRESS
 *
 * A program of its own, as fuzzers may damage all that they can reach: so they
 * share memory and descriptors with this process only, and it gives no verdict.
 * It counts in its own memory, and writes a struct fuzz_result to the
 * descriptor RESULT, which the fuzzers do not have. With CALLS each thread
 * makes so many, and there is no limit of time. FUZZ_HOSTS names more addresses
 * to aim at.
 *
 * A process that is killed ends as soon as it gets processor time, unless it
 * waits. So it is looked at in turns of a few milliseconds each, and the
 * verdict is about the number of turns in which a process waits in a function
 * of ours. Other work of the machine makes a turn longer, and it still counts
 * as one turn.
 */
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"
#include "fuzz_proc.h"
#include "tap.h"

enum {
	MAX_PROCESSES	= 64,
	START_MS	= 60000,
	STUCK_MS	= 60000,
	STEP_MS		= 10,
	EXPLAIN_MS	= 1000,
	STACK_BYTES	= 4096,
	PATH_BYTES	= 320,
};

static struct fuzz_result result;

/* ------------------------------------------------------------------- starting */

static void add_host(const char *host)
{
	if (fuzz_shared->nr_hosts < FUZZ_HOSTS)
		fuzz_shared->hosts[fuzz_shared->nr_hosts++] = addr_of(host, 0);
}

static void share(u64 limit)
{
	char *list = getenv("FUZZ_HOSTS");

	fuzz_shared = mmap(NULL, sizeof(*fuzz_shared), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fuzz_shared == MAP_FAILED)
		tap_fail("no memory");
	add_host(tap_host);
	add_host(strchr(tap_host, ':') ? tap_host : "127.0.0.1");
	add_host("127.0.0.2");
	for (char *host = list ? strtok(list, ",") : NULL; host;
	     host = strtok(NULL, ","))
		add_host(host);
	fuzz_shared->nr_good = fuzz_shared->nr_hosts;
	add_host("::1");
	add_host("::ffff:127.0.0.1");
	add_host("0.0.0.0");
	add_host("224.0.0.1");
	fuzz_shared->targets[0] = FUZZ_BYSTANDERS;
	fuzz_shared->targets[1] = FUZZ_BYSTANDERS + 1;
	fuzz_shared->targets[2] = 1;
	fuzz_shared->targets[3] = 4000;
	fuzz_shared->limit = limit;
	must(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
			fuzz_shared->exchange));
	fuzz_mem_share();
}

/* A process group of them, which the first one leads */
static pid_t start(u64 seed, int nr)
{
	struct prng prng = { seed };
	pid_t group = 0, pid;
	u64 own;

	for (int i = 0; i < nr; i++) {
		own = prng_next(&prng);
		pid = must(fork());
		if (!pid) {
			setpgid(0, group);
			fuzz_process(own, i);
		}
		setpgid(pid, group);
		group = group ? group : pid;
	}
	return group;
}

/* Takes note of processes that have ended; whether there is one left */
static bool anybody(pid_t group)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-group, &status, WNOHANG)) > 0) {
		if (WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL :
					  !WEXITSTATUS(status))
			continue;
		tap_diag("fuzzer %d ended with status %#x", pid, status);
		result.crashed++;
	}
	/* children of fuzzers become ours when those are gone */
	return !pid || !kill(-group, 0);
}

static bool all_ready(void *arg)
{
	return READ_ONCE(fuzz_shared->ready) >= *(int *)arg;
}

static void let_run(pid_t group, int nr, int ms)
{
	must_wait(all_ready, &nr, START_MS);
	if (!fuzz_shared->limit)
		usleep(ms * 1000);
	while (fuzz_shared->limit && anybody(group))
		usleep(STEP_MS * 1000);
}

/* -------------------------------------------------------------------- killing */

/* The state of all threads of a group: none sleeps, some do, some of them in
 * ours
 */
enum look { AWAKE, ASLEEP, OURS };

static bool contents(const char *folder, const char *name, char *text,
		     size_t size)
{
	char path[PATH_BYTES];
	size_t got = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%.200s/%s", folder, name);
	file = fopen(path, "r");
	if (file) {
		got = fread(text, 1, size - 1, file);
		fclose(file);
	}
	text[got] = '\0';
	return got;
}

/* Of the group, and waiting for something */
static bool sleeps(const char *folder, pid_t group)
{
	char text[512], *at, state;
	int of;

	if (!contents(folder, "stat", text, sizeof(text)))
		return false;
	/* its name may have spaces and brackets */
	at = strrchr(text, ')');
	if (!at || sscanf(at, ") %c %*d %d", &state, &of) != 2)
		return false;
	return of == group && strchr("SDI", state);
}

static enum look look_at(const char *folder, pid_t group, bool explain)
{
	char stack[STACK_BYTES];

	if (!sleeps(folder, group))
		return AWAKE;
	contents(folder, "stack", stack, sizeof(stack));
	if (!stack[0])
		return AWAKE;
	if (explain) {
		tap_diag("%s waits:", folder);
		for (char *line = strtok(stack, "\n"); line;
		     line = strtok(NULL, "\n"))
			tap_diag("  %s", line);
	}
	return strstr(stack, "[xrds") ? OURS : ASLEEP;
}

/* Calls visit for each entry of a folder that is a number */
static enum look look_in(const char *folder, pid_t group, bool explain)
{
	enum look most = AWAKE, now;
	char path[PATH_BYTES];
	struct dirent *entry;
	DIR *dir = opendir(folder);

	while (dir && (entry = readdir(dir))) {
		if (!isdigit(entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "%.200s/%.16s", folder,
			 entry->d_name);
		now = look_at(path, group, explain);
		most = now > most ? now : most;
	}
	if (dir)
		closedir(dir);
	return most;
}

static enum look look(pid_t group, bool explain)
{
	enum look most = AWAKE, now;
	char path[PATH_BYTES];
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	while (dir && (entry = readdir(dir))) {
		if (!isdigit(entry->d_name[0]))
			continue;
		/* no other process has anything to do with it */
		if (getpgid(atoi(entry->d_name)) != group)
			continue;
		snprintf(path, sizeof(path), "/proc/%.16s/task", entry->d_name);
		now = look_in(path, group, explain);
		most = now > most ? now : most;
	}
	if (dir)
		closedir(dir);
	return most;
}

static void kill_all(pid_t group)
{
	long long begin = tap_now_ms();
	bool explain;

	kill(-group, SIGKILL);
	while (anybody(group)) {
		if (tap_now_ms() - begin > tap_ms(STUCK_MS)) {
			look(group, true);
			tap_fail("fuzzers cannot be killed");
		}
		usleep(STEP_MS * 1000);
		result.turns_ms += STEP_MS;
		/* looking takes time; often all are gone by then */
		if (result.turns_ms < STEP_MS * 10)
			continue;
		explain = result.turns_ms % EXPLAIN_MS == 0;
		switch (look(group, explain)) {
		case OURS:
			result.ours_ms += STEP_MS;
			break;
		case ASLEEP:
			result.asleep_ms += STEP_MS;
			break;
		default:
			break;
		}
	}
	result.took_ms = tap_now_ms() - begin;
}

int main(int argc, char **argv)
{
	int fd, processes;
	pid_t group;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 7) {
		printf("usage: helper_fuzzers RESULT SEED PROCESSES MS CALLS ADDRESS\n");
		return 2;
	}
	fd = atoi(argv[1]);
	processes = atoi(argv[3]);
	tap_host = argv[6];
	if (processes < 1 || processes > MAX_PROCESSES)
		tap_fail("%s processes are not possible", argv[3]);

	/* the program that started us may be killed: then end as well */
	must(prctl(PR_SET_PDEATHSIG, SIGKILL));
	must(prctl(PR_SET_CHILD_SUBREAPER, 1));
	share(strtoull(argv[5], NULL, 0));
	group = start(strtoull(argv[2], NULL, 0), processes);
	let_run(group, processes, atoi(argv[4]));
	kill_all(group);
	memcpy(result.calls, fuzz_shared->calls, sizeof(result.calls));
	memcpy(result.fine, fuzz_shared->fine, sizeof(result.fine));
	result.struck = fuzz_shared->struck;
	must(write(fd, &result, sizeof(result)));
	return 0;
}
