// SPDX-License-Identifier: GPL-2.0-only
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lazy.h"
#include "rdma.h"
#include "sock.h"
#include "tap.h"

enum { TOUCHED_MS = 10000 };

void lazy_open(struct lazy *lazy)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };

	lazy->fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (lazy->fd < 0)
		tap_skip("no userfaultfd");
	lazy->page = pages(PAGE_BYTES);
	reg.range.start = (uintptr_t)lazy->page;
	reg.range.len = PAGE_BYTES;
	must(ioctl(lazy->fd, UFFDIO_API, &api));
	must(ioctl(lazy->fd, UFFDIO_REGISTER, &reg));
}

void lazy_await(const struct lazy *lazy)
{
	check_eq(poll_one(lazy->fd, POLLIN, tap_ms(TOUCHED_MS)), POLLIN);
}

void lazy_fill(const struct lazy *lazy)
{
	struct uffdio_zeropage zero = {
		.range = { (uintptr_t)lazy->page, PAGE_BYTES },
	};

	must(ioctl(lazy->fd, UFFDIO_ZEROPAGE, &zero));
}

void lazy_close(struct lazy *lazy)
{
	close(lazy->fd);
}
