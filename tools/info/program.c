// SPDX-License-Identifier: GPL-2.0-only
/*
 * The programs that have sockets open. /proc/PID/fd has a link for each socket,
 * and its text has the inode of the socket. The dump of sockets has that
 * inode, too. A user sees the processes that he may look at.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "info.h"
#include "text.h"

enum { NAME_BYTES = 32 };

static struct holder {
	uint64_t inode;
	int pid;
} *holders;
static size_t nr_holders, max_holders;

static void add(uint64_t inode, int pid)
{
	if (nr_holders == max_holders) {
		max_holders = 2 * max_holders + 64;
		holders = realloc(holders, max_holders * sizeof(*holders));
		if (!holders) {
			fprintf(stderr, "xrds-info: no memory\n");
			exit(EXIT_ERROR);
		}
	}
	holders[nr_holders].inode = inode;
	holders[nr_holders++].pid = pid;
}

static void scan_process(int proc, const char *pid)
{
	char path[NAME_BYTES], link[NAME_BYTES + 1];
	struct dirent *entry;
	uint64_t inode;
	ssize_t n;
	DIR *dir;
	int fd;

	snprintf(path, sizeof(path), "%.20s/fd", pid);
	fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		n = readlinkat(fd, entry->d_name, link, sizeof(link) - 1);
		if (n <= 0)
			continue;
		link[n] = '\0';
		if (sscanf(link, "socket:[%" SCNu64, &inode) == 1)
			add(inode, atoi(pid));
	}
	closedir(dir);
}

static int compare(const void *a, const void *b)
{
	const struct holder *one = a, *other = b;

	if (one->inode != other->inode)
		return one->inode < other->inode ? -1 : 1;
	return one->pid - other->pid;
}

/* Look anew which programs there are. */
void program_scan(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	nr_holders = 0;
	if (!proc)
		return;
	while ((entry = readdir(proc)))
		if (isdigit((unsigned char)*entry->d_name))
			scan_process(dirfd(proc), entry->d_name);
	closedir(proc);
	if (nr_holders)
		qsort(holders, nr_holders, sizeof(*holders), compare);
}

/* The first process that has the socket: its name and number; "": none is seen */
const char *program_text(uint64_t inode, char *out)
{
	size_t low = 0, high = nr_holders, mid;
	char path[NAME_BYTES], name[NAME_BYTES] = "?";
	FILE *file;

	while (low < high) {
		mid = (low + high) / 2;
		if (holders[mid].inode < inode)
			low = mid + 1;
		else
			high = mid;
	}
	*out = '\0';
	if (low == nr_holders || holders[low].inode != inode)
		return out;
	snprintf(path, sizeof(path), "/proc/%d/comm", holders[low].pid);
	file = fopen(path, "re");
	if (file) {
		if (fgets(name, sizeof(name), file))
			name[strcspn(name, "\n")] = '\0';
		fclose(file);
	}
	snprintf(out, TEXT_MAX, "%s/%d", name, holders[low].pid);
	return text_printable(out);
}
