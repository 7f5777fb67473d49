// SPDX-License-Identifier: GPL-2.0-only
/*
 * All network namespaces: those that have a name in /run/netns ("ip netns"), and
 * those of processes. Each is visited once. A netlink socket belongs to the
 * namespace in which it was made.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "info.h"
#include "text.h"

enum { PATH_BYTES = 320 };

static ino_t *seen;
static size_t nr_seen;
static bool barred;		/* one may not be entered */

static bool is_new(int fd)
{
	struct stat st;
	size_t i;

	if (fstat(fd, &st))
		return false;
	for (i = 0; i < nr_seen; i++)
		if (seen[i] == st.st_ino)
			return false;
	seen = realloc(seen, (nr_seen + 1) * sizeof(*seen));
	if (!seen) {
		fprintf(stderr, "xrds-info: no memory\n");
		exit(EXIT_ERROR);
	}
	seen[nr_seen++] = st.st_ino;
	return true;
}

/* One that may not be entered is left out, and so is one that has gone. */
static void visit(const char *path, const char *name,
		  void (*fn)(const char *name))
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		barred |= errno == EACCES || errno == EPERM;
		return;
	}
	if (is_new(fd)) {
		if (!setns(fd, CLONE_NEWNET))
			fn(name);
		else
			barred |= errno == EPERM;
	}
	close(fd);
}

static void visit_dir(const char *dir, const char *below, const char *prefix,
		      bool numbers, void (*fn)(const char *name))
{
	char path[PATH_BYTES], name[PATH_BYTES];
	struct dirent *entry;
	DIR *d = opendir(dir);

	if (!d)
		return;
	while ((entry = readdir(d))) {
		if (*entry->d_name == '.' ||
		    (numbers && !isdigit((unsigned char)*entry->d_name)))
			continue;
		snprintf(path, sizeof(path), "%s/%.255s%s", dir, entry->d_name,
			 below);
		snprintf(name, sizeof(name), "%s%.255s", prefix, entry->d_name);
		visit(path, text_printable(name), fn);
	}
	closedir(d);
}

/* Call @fn in each namespace, our own one first. Returns whether these are all. */
bool netns_each(void (*fn)(const char *name))
{
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	nr_seen = 0;
	barred = false;
	if (own >= 0 && is_new(own))
		fn("own");
	visit_dir("/run/netns", "", "", false, fn);
	visit_dir("/proc", "/ns/net", "of process ", true, fn);
	if (own >= 0) {
		if (nr_seen > 1 && setns(own, CLONE_NEWNET))
			perror("xrds-info: setns");
		close(own);
	}
	if (barred)
		fprintf(stderr, "xrds-info: there may be more: it takes CAP_SYS_ADMIN\n");
	return !barred;
}
