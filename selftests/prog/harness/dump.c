// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDS_INFO_* dumps. The call answers ENOSPC with the length it needs; on
 * success it returns the size of one row.
 */
#include <stdlib.h>

#include "dump.h"
#include "tap.h"

int dump_try(int fd, int what, struct dump *d)
{
	socklen_t len = 0;
	int ret;

	*d = (struct dump){ 0 };
	ret = getsockopt(fd, SOL_RDS, what, NULL, &len);
	while (ret < 0 && errno == ENOSPC) {
		d->rows = realloc(d->rows, len);
		ret = getsockopt(fd, SOL_RDS, what, d->rows, &len);
	}
	if (ret <= 0)
		return -1;
	d->each = ret;
	d->nr = len / d->each;
	return 0;
}

struct dump dump_read(int fd, int what, size_t each)
{
	struct dump d;

	tap_context("dump %d", what);
	must(dump_try(fd, what, &d));
	if (d.each != each)
		tap_fail("rows of %zu bytes, not %zu", d.each, each);
	tap_context("%s", "");
	return d;
}

size_t dump_rows(int fd, int what)
{
	struct dump d;
	size_t nr;

	must(dump_try(fd, what, &d));
	nr = d.nr;
	dump_free(&d);
	return nr;
}

void dump_free(struct dump *d)
{
	free(d->rows);
	*d = (struct dump){ 0 };
}
