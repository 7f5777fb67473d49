// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several hosts at once, each with a process of its own, which prints the lines
 * of its host. The parent prints the statistics, in the order of the hosts, when
 * all have ended. It passes signals that end the program on to them.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ping.h"

/* The result of a host, in memory that all processes share */
struct host {
	pid_t pid;
	bool done;
	char to_text[NI_MAXHOST], from_text[NI_MAXHOST];
	struct statistics stats;
	long long ms;
};

static struct host *hosts;
static int nr_hosts;

static void pass_on(int sig)
{
	(void)sig;
	for (int i = 0; i < nr_hosts; i++)
		if (hosts[i].pid)
			kill(hosts[i].pid, SIGTERM);
}

/* Signals are blocked: one that comes now is passed on to this child, too. */
static void start(struct host *host, const char *name, int family,
		  const sigset_t *mask)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		die("fork", errno);
	if (pid) {
		host->pid = pid;
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		exit(EXIT_ERROR);
	catch_signals(on_signal);
	sigprocmask(SIG_SETMASK, mask, NULL);
	host->ms = ping(name, family);
	host->stats = stats;
	memcpy(host->to_text, to_text, sizeof(to_text));
	memcpy(host->from_text, from_text, sizeof(from_text));
	host->done = true;
	exit(0);
}

static int finish(const struct host *host)
{
	if (!host->done)
		return EXIT_ERROR;
	stats = host->stats;
	memcpy(to_text, host->to_text, sizeof(to_text));
	memcpy(from_text, host->from_text, sizeof(from_text));
	return print_statistics(host->ms);
}

int ping_hosts(char **names, int nr, int family)
{
	int status = 0, ret;
	sigset_t stop, mask;

	hosts = mmap(NULL, nr * sizeof(*hosts), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (hosts == MAP_FAILED)
		die("memory", errno);
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, &mask);
	catch_signals(pass_on);
	for (; nr_hosts < nr; nr_hosts++)
		start(&hosts[nr_hosts], names[nr_hosts], family, &mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	for (int i = 0; i < nr; i++) {
		while (waitpid(hosts[i].pid, NULL, 0) < 0 && errno == EINTR)
			;
		hosts[i].pid = 0;
	}
	for (int i = 0; i < nr; i++) {
		ret = finish(&hosts[i]);
		if (ret > status)
			status = ret;
	}
	return status;
}
