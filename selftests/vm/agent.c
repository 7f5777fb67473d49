// SPDX-License-Identifier: GPL-2.0-only
/*
 * The last step of a node's init, and its process 1 from then on: runs what
 * the host asks for. Commands run side by side, each with an id of the host's.
 * The channel is a virtio-serial port that carries lines, some of them
 * followed by LEN raw bytes:
 *
 *   host:  run ID LEN	 start LEN bytes of shell text
 *	    kill ID SIG	 signal the process group of a command
 *   agent: hello	 ready
 *	    out ID LEN	 LEN bytes that the command wrote (stdout and stderr)
 *	    exit ID CODE its end, 128 + N for signal N; nothing follows
 *
 * When a command ends, the processes that it has left in its process group are
 * killed, so that no test meets the leftovers of another.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MAX_JOBS	= 64,
	MAX_LINE	= 128,
	MAX_COMMAND	= 1 << 20,	/* bytes */
	CHUNK		= 16384,	/* bytes of output per message */
	RETRY_US	= 10000,	/* the host has not opened its end yet */
};

struct job {
	long	id;
	pid_t	pid;		/* 0 = slot is free */
	int	out;		/* read end of its stdout and stderr */
};

static struct job jobs[MAX_JOBS];
static int host;

static void put(const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(host, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err(1, "agent: write");
		p += n;
		len -= n;
	}
}

static void say(const char *format, ...)
{
	char line[MAX_LINE];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	put(line, len);
}

static void get(void *data, size_t len)
{
	char *p = data;

	while (len) {
		ssize_t n = read(host, p, len);

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			err(1, "agent: read");
		if (n <= 0) {
			usleep(RETRY_US);
			continue;
		}
		p += n;
		len -= n;
	}
}

static void get_line(char *line)
{
	size_t len = 0;

	for (;;) {
		get(line + len, 1);
		if (line[len] == '\n')
			break;
		if (++len == MAX_LINE)
			errx(1, "agent: line too long");
	}
	line[len] = '\0';
}

static struct job *find(long id)
{
	for (int i = 0; i < MAX_JOBS; i++)
		if (jobs[i].pid && jobs[i].id == id)
			return &jobs[i];
	return NULL;
}

static struct job *find_free(void)
{
	for (int i = 0; i < MAX_JOBS; i++)
		if (!jobs[i].pid)
			return &jobs[i];
	return NULL;
}

static void child(const char *command, int out)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	dup2(null, 0);
	dup2(out, 1);
	dup2(out, 2);
	execl("/bin/bash", "bash", "-c", command, NULL);
	_exit(127);
}

static void run(long id, size_t len)
{
	struct job *job = find_free();
	char *command;
	int fds[2];

	if (len > MAX_COMMAND)
		errx(1, "agent: command too long");
	command = calloc(1, len + 1);
	if (!command)
		err(1, "agent: calloc");
	get(command, len);
	if (!job) {
		say("exit %ld 126\n", id);
		free(command);
		return;
	}
	if (pipe2(fds, O_CLOEXEC))
		err(1, "agent: pipe");
	job->pid = fork();
	if (job->pid < 0)
		err(1, "agent: fork");
	if (!job->pid)
		child(command, fds[1]);
	close(fds[1]);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	job->id = id;
	job->out = fds[0];
	free(command);
}

static void serve(void)
{
	char line[MAX_LINE];
	long id, arg;

	get_line(line);
	if (sscanf(line, "run %ld %ld", &id, &arg) == 2) {
		run(id, arg);
	} else if (sscanf(line, "kill %ld %ld", &id, &arg) == 2) {
		struct job *job = find(id);

		if (job)
			kill(-job->pid, arg);
	} else {
		errx(1, "agent: what is '%s'?", line);
	}
}

/* Passes on the output so far; false at its end. */
static int pump(struct job *job)
{
	char data[CHUNK];
	ssize_t n;

	n = read(job->out, data, sizeof(data));
	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	say("out %ld %zd\n", job->id, n);
	put(data, n);
	return 1;
}

static void finish(struct job *job, int status)
{
	char data[CHUNK];
	ssize_t n;

	kill(-job->pid, SIGKILL);
	while (job->out >= 0 && (n = read(job->out, data, sizeof(data))) > 0) {
		say("out %ld %zd\n", job->id, n);
		put(data, n);
	}
	if (job->out >= 0)
		close(job->out);
	job->pid = 0;
	say("exit %ld %d\n", job->id, WIFSIGNALED(status) ?
	    128 + WTERMSIG(status) : WEXITSTATUS(status));
}

static void reap(int sigfd)
{
	struct signalfd_siginfo siginfo;
	int status;
	pid_t pid;

	if (read(sigfd, &siginfo, sizeof(siginfo)) < 0)
		return;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < MAX_JOBS; i++)
			if (jobs[i].pid == pid)
				finish(&jobs[i], status);
}

static void loop(int sigfd)
{
	struct pollfd fds[MAX_JOBS + 2] = {
		{ .fd = host, .events = POLLIN },
		{ .fd = sigfd, .events = POLLIN },
	};

	for (int i = 0; i < MAX_JOBS; i++) {
		fds[i + 2].fd = jobs[i].pid ? jobs[i].out : -1;
		fds[i + 2].events = POLLIN;
	}
	if (poll(fds, MAX_JOBS + 2, -1) < 0 && errno != EINTR)
		err(1, "agent: poll");
	for (int i = 0; i < MAX_JOBS; i++) {
		if (!(fds[i + 2].revents & (POLLIN | POLLHUP)))
			continue;
		if (!pump(&jobs[i])) {
			close(jobs[i].out);
			jobs[i].out = -1;
		}
	}
	if (fds[1].revents)
		reap(sigfd);
	if (fds[0].revents & POLLIN)
		serve();
	else if (fds[0].revents)
		usleep(RETRY_US);
}

int main(int argc, char **argv)
{
	sigset_t chld;
	int sigfd;

	if (argc != 2)
		errx(1, "usage: agent PORT");
	host = open(argv[1], O_RDWR | O_CLOEXEC);
	if (host < 0)
		err(1, "agent: %s", argv[1]);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	sigfd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sigfd < 0)
		err(1, "agent: signalfd");
	say("hello\n");
	for (;;)
		loop(sigfd);
}
