// SPDX-License-Identifier: GPL-2.0-only
#include <fcntl.h>
#include <unistd.h>

#include "sigio.h"
#include "tap.h"

void sigio_start(int fd, sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGRTMIN);
	must(sigprocmask(SIG_BLOCK, set, NULL));
	must(fcntl(fd, F_SETSIG, SIGRTMIN));
	must(fcntl(fd, F_SETOWN, getpid()));
	must(fcntl(fd, F_SETFL, must(fcntl(fd, F_GETFL)) | O_ASYNC));
}

int sigio_reason(const sigset_t *set, int fd, int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };
	siginfo_t info;

	if (sigtimedwait(set, &info, &ts) < 0)
		return 0;
	check_eq(info.si_fd, fd);
	return info.si_code;
}
