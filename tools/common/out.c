// SPDX-License-Identifier: GPL-2.0-only
/*
 * Output that cannot be written is an error: a full disk would otherwise look
 * like an end in order.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "out.h"

enum { EXIT_ERROR = 2 };

void out_flush(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return;
	fprintf(stderr, "%s: the output cannot be written\n",
		program_invocation_short_name);
	_exit(EXIT_ERROR);
}

void out_check(void)
{
	int fd;

	/* else a socket would get the number of a closed output, and the text
	 * would go into it
	 */
	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	close(fd);
	atexit(out_flush);
}
