// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-rds: programs that "make bench" runs on nodes besides xrds-perf.
 *
 *   bench-rds hold LOCAL COUNT		so many bound sockets, until it is killed
 *   bench-rds turn LOCAL COUNT NODE...	pings of nodes in turn, from one socket
 *   bench-rds urgent COMMAND...	the command is in front of all others
 *   bench-rds promote PID...	so are these tasks
 *   bench-rds demote PID...	and are not any more
 *
 * A ping is an empty message to port 0, which the kernel there answers. Each
 * node is pinged once before the clock starts.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../../tools/perf/perf.h"

enum { PRIORITY = 50, SPARE_FILES = 64 };

const char * const mode_names[NR_MODES] = { [ECHO] = "echo" };

struct options opt = { .depth = 1, .sockets = 1, .tasks = 1, .json = true };

void die(const char *what, int error)
{
	fprintf(stderr, "bench-rds: %s: %s\n", what, strerror(error));
	exit(EXIT_ERROR);
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static struct sockaddr_in address(const char *text)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, text, &sin.sin_addr) != 1)
		die(text, EINVAL);
	return sin;
}

static int bound(const char *text)
{
	int fd = socket(AF_RDS, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_in sin = address(text);

	if (fd < 0 || bind(fd, (void *)&sin, sizeof(sin)))
		die(text, errno);
	return fd;
}

static void hold(const char *local, uint32_t count)
{
	struct rlimit files = { count + SPARE_FILES, count + SPARE_FILES };

	if (setrlimit(RLIMIT_NOFILE, &files))
		die("RLIMIT_NOFILE", errno);
	while (count--)
		bound(local);
	printf("holding\n");
	fflush(stdout);
	for (;;)
		pause();
}

static void ping(int fd, struct sockaddr_in *to)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	char byte;

	if (sendto(fd, "", 0, 0, (void *)to, sizeof(*to)) < 0)
		die("send", errno);
	do {
		if (recvfrom(fd, &byte, 1, 0, (void *)&from, &len) < 0)
			die("receive", errno);
	} while (from.sin_addr.s_addr != to->sin_addr.s_addr);
}

static void turn(const char *local, uint32_t count, uint32_t nr, char **nodes)
{
	struct sockaddr_in *to = calloc(nr, sizeof(*to));
	struct timeval patience = { .tv_sec = PATIENCE_S };
	uint64_t begin, sent, now;
	int fd = bound(local);

	if (!to || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
			      sizeof(patience)))
		die("socket", errno);
	for (uint32_t i = 0; i < nr; i++) {
		to[i] = address(nodes[i]);
		ping(fd, &to[i]);
	}
	report_begin();
	begin = now_ns();
	now = begin;
	for (uint32_t i = 0; i < count; i++) {
		sent = now;
		ping(fd, &to[i % nr]);
		now = now_ns();
		report_latency(now - sent);
	}
	report_end(count, now - begin);
	free(to);
}

static void schedule(pid_t pid, int policy)
{
	struct sched_param param = {
		.sched_priority = policy == SCHED_FIFO ? PRIORITY : 0,
	};

	if (sched_setscheduler(pid, policy, &param))
		die("priority", errno);
}

static void urgent(char **command)
{
	schedule(0, SCHED_FIFO);
	execvp(*command, command);
	die(*command, errno);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "hold"))
		hold(argv[2], strtoul(argv[3], NULL, 0));
	else if (argc > 4 && !strcmp(argv[1], "turn"))
		turn(argv[2], strtoul(argv[3], NULL, 0), argc - 4, argv + 4);
	else if (argc > 2 && !strcmp(argv[1], "urgent"))
		urgent(argv + 2);
	else if (argc > 2 && !strcmp(argv[1], "promote"))
		for (int i = 2; i < argc; i++)
			schedule(strtoul(argv[i], NULL, 0), SCHED_FIFO);
	else if (argc > 2 && !strcmp(argv[1], "demote"))
		for (int i = 2; i < argc; i++)
			schedule(strtoul(argv[i], NULL, 0), SCHED_OTHER);
	else
		die("what to do?", EINVAL);
	return 0;
}
