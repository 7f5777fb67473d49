// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/net/rds: a line for each socket of the namespace that the reader may see,
 * in parts of any size, while sockets come and go.
 *
 * timeout: 60
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "congest.h"
#include "sock.h"
#include "tap.h"

enum {
	NOBODY		= 65534,
	STABLE		= 1000,		/* sockets that stay */
	ROUNDS		= 20,
	FILE_BYTES	= 1 << 20,
};

#define PROC	"/proc/net/rds"

static char text[FILE_BYTES];

/* Reads the file in parts of so many bytes; returns its number of lines without
 * the head.
 */
static int lines(size_t part)
{
	int fd = must(open(PROC, O_RDONLY | O_CLOEXEC)), n = -1;
	size_t len = 0;
	ssize_t ret;

	do {
		ret = must(read(fd, text + len, part));
		len += ret;
		must(len + part < sizeof(text) ? 0 : -1);
	} while (ret > 0);
	close(fd);
	text[len] = '\0';
	for (char *p = text; (p = strchr(p, '\n')); p++)
		n++;
	check(!strncmp(text, "Id Local Peer ", 14));
	return n;
}

/* The line of a socket, by its inode, or NULL */
static const char *line_of(int fd)
{
	static char line[256];
	char link[64] = "", want[32];
	unsigned long inode;
	char path[32], *end, *start;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	must(readlink(path, link, sizeof(link) - 1));
	if (sscanf(link, "socket:[%lu]", &inode) != 1)
		tap_fail("%s is no socket", link);
	snprintf(want, sizeof(want), " %lu\n", inode);
	end = strstr(text, want);
	if (!end)
		return NULL;
	for (start = end; start > text && start[-1] != '\n'; start--)
		;
	snprintf(line, sizeof(line), "%.*s", (int)(end - start), start);
	return line;
}

static void fields(void)
{
	union addr to, self;
	int tx = rds_bound(&self), rx = small_receiver(&to);
	char local[80], peer[80], state[16];
	unsigned int id, rcvbuf, dests, uid;
	unsigned long long sendq, recvq;
	const char *line;
	int open_fd = rds_socket(), n;

	must(connect(tx, &to.sa, sizeof(to)));
	congest(tx, &to);
	check_eq(lines(FILE_BYTES / 2), 3);
	line = line_of(rx);
	if (!check(line))
		return;
	n = sscanf(line, "%u %79s %79s %llu %llu %u %15s %u %u", &id, local,
		   peer, &sendq, &recvq, &rcvbuf, state, &dests, &uid);
	if (!check_eq(n, 9))
		return;
	check(!strcmp(state, "congested"));
	check(recvq > rcvbuf);
	check(strstr(local, strchr(tap_host, ':') ? "[::1]:" : "127.0.0.1:"));
	check(!strcmp(peer, "-"));
	check_eq(uid, 0);
	check_eq(lines(FILE_BYTES / 2), 3);
	line = line_of(tx);
	if (!check(line))
		return;
	check(strstr(line, local));
	check(strstr(line, " open 1 0"));
	close(open_fd);
	close(tx);
	close(rx);
}

static void complete(void)
{
	static const size_t parts[] = { 1 << 16, 4096, 100, 7 };
	struct rlimit files = { 2 * STABLE, 2 * STABLE };
	static int fds[STABLE];
	int others[ROUNDS];

	must(setrlimit(RLIMIT_NOFILE, &files));
	for (int i = 0; i < STABLE; i++)
		fds[i] = rds_socket();
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		tap_context("%zu bytes", parts[i]);
		check_eq(lines(parts[i]), STABLE);
		check(line_of(fds[0]));
		check(line_of(fds[STABLE - 1]));
	}
	/* a file that is open while its sockets go */
	int file = must(open(PROC, O_RDONLY | O_CLOEXEC));

	must(read(file, text, 1000));
	for (int i = 0; i < STABLE; i++)
		close(fds[i]);
	for (int i = 0; i < ROUNDS; i++)
		others[i] = rds_socket();
	while (must(read(file, text, 1000)) > 0)
		;
	close(file);
	check_eq(lines(100), ROUNDS);
	for (int i = 0; i < ROUNDS; i++)
		close(others[i]);
}

static void users(void)
{
	int fd = rds_bound(NULL), own;
	pid_t pid = must(fork());

	if (!pid) {
		must(setresgid(NOBODY, NOBODY, NOBODY));
		must(setresuid(NOBODY, NOBODY, NOBODY));
		check_eq(lines(4096), 0);
		own = rds_bound(NULL);
		check_eq(lines(4096), 1);
		check(line_of(own));
		tap_child_exit();
	}
	tap_child_join(pid);
	check_eq(lines(4096), 1);
	close(fd);
}

static void namespaces(void)
{
	int fd = rds_bound(NULL);
	pid_t pid = must(fork());

	if (!pid) {
		tap_new_netns();
		check_eq(lines(4096), 0);
		close(rds_bound(NULL));
		tap_child_exit();
	}
	tap_child_join(pid);
	check_eq(lines(4096), 1);
	close(fd);
}

static const struct tap_case cases[] = {
	{ "fields", "addresses, bytes and state of a socket", fields,
	  TAP_EACH_FAMILY, 0 },
	{ "complete", "each socket once, in parts of any size", complete, 0, 0 },
	{ "users", "users see their own sockets", users, 0, 0 },
	{ "namespaces", "a namespace has its own file", namespaces, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
