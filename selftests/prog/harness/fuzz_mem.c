// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that a program should not give to the kernel, for fuzzers.
 *
 * Each kind is one area. Some are changed by a thread while calls use them: one
 * is unmapped, mapped anew and protected in turn, one is filled by userfaultfd
 * when it likes to. Each has an address of its own, far away from the others
 * and from all other memory: so the bytes beyond its end, and the hole that one
 * is at times, are nobody's memory.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fuzz.h"
#include "rdma.h"
#include "tap.h"

enum {
	AREA_BYTES	= 256 * 1024,
	LAZY_BYTES	= 32 * 1024,
	FLIP_BYTES	= 64 * 1024,
	CUT_BYTES	= 20 * 1024,	/* of a file that is mapped beyond */
	PAUSE_US	= 2000,
	LAZY_US		= 300,
	LAZIER_US	= 10000,
};

enum area {
	AREA_PLAIN,
	AREA_SHARED,		/* with all other fuzzers */
	AREA_READ_ONLY,
	AREA_NONE,		/* no access */
	AREA_CUT,		/* of a file that is shorter */
	AREA_FLIP,		/* changes meanwhile */
	AREA_LAZY,		/* by userfaultfd */
	AREAS
};

#define AREA_AT(which)	((char *)(0x10000000ul * (1 + (which))))
#define FLIP_AT		AREA_AT(AREA_FLIP)
#define LAZY_AT		AREA_AT(AREA_LAZY)

static struct {
	char *at;
	size_t bytes;
} areas[AREAS];
static int lazy_fd = -1;

static void map(enum area which, size_t bytes, int prot, int flags, int fd)
{
	areas[which].at = mmap(AREA_AT(which), bytes, prot,
			       flags | MAP_FIXED_NOREPLACE, fd, 0);
	areas[which].bytes = bytes;
	if (areas[which].at != AREA_AT(which))
		tap_fail("mmap: %s", tap_errno_name(errno));
}

void fuzz_mem_share(void)
{
	map(AREA_SHARED, AREA_BYTES, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1);
}

/* ------------------------------------------------------------ userfaultfd */

/* There may be none, or not for us: then the area is plain memory. */
static void lazy_open(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { (uintptr_t)LAZY_AT, LAZY_BYTES },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	lazy_fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (lazy_fd < 0)
		return;
	if (ioctl(lazy_fd, UFFDIO_API, &api) ||
	    ioctl(lazy_fd, UFFDIO_REGISTER, &reg)) {
		close(lazy_fd);
		lazy_fd = -1;
	}
}

static void lazy_fill(struct prng *prng, u64 address)
{
	static const char page[PAGE_BYTES] __aligned(PAGE_BYTES);
	struct uffdio_range range = { address & -(u64)PAGE_BYTES, PAGE_BYTES };
	struct uffdio_zeropage zero = { .range = range };
	struct uffdio_copy copy = {
		.dst = range.start,
		.src = (uintptr_t)page,
		.len = PAGE_BYTES,
	};

	usleep(prng_below(prng, prng_below(prng, 16) ? LAZY_US : LAZIER_US));
	if (prng_below(prng, 2))
		ioctl(lazy_fd, UFFDIO_COPY, &copy);
	else
		ioctl(lazy_fd, UFFDIO_ZEROPAGE, &zero);
	/* it may be there by another way: nobody shall sleep on */
	ioctl(lazy_fd, UFFDIO_WAKE, &range);
	if (!prng_below(prng, 4))
		madvise(LAZY_AT, LAZY_BYTES, MADV_DONTNEED);
}

static void *lazy_run(void *arg)
{
	struct prng prng = { .state = (uintptr_t)arg };
	struct pollfd pfd = { .fd = lazy_fd, .events = POLLIN };
	struct uffd_msg msg;

	for (;;) {
		if (poll(&pfd, 1, 10) <= 0) {
			madvise(LAZY_AT, LAZY_BYTES, MADV_DONTNEED);
			continue;
		}
		if (read(lazy_fd, &msg, sizeof(msg)) == sizeof(msg) &&
		    msg.event == UFFD_EVENT_PAGEFAULT)
			lazy_fill(&prng, msg.arg.pagefault.address);
	}
	return NULL;
}

/* ------------------------------------------------------- what changes else */

static void flip(struct prng *prng)
{
	static const int prots[] = {
		PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE,
	};
	size_t from = prng_below(prng, FLIP_BYTES / PAGE_BYTES) * PAGE_BYTES;
	int prot = prots[prng_below(prng, ARRAY_SIZE(prots))];

	switch (prng_below(prng, 6)) {
	case 0:
		munmap(FLIP_AT + from, FLIP_BYTES - from);
		break;
	case 1:
		mprotect(FLIP_AT + from, FLIP_BYTES - from, prot);
		break;
	case 2:
		madvise(FLIP_AT + from, FLIP_BYTES - from, MADV_DONTNEED);
		break;
	default:
		mmap(FLIP_AT, FLIP_BYTES, PROT_READ | PROT_WRITE, MAP_FIXED |
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		break;
	}
}

static void *flip_run(void *arg)
{
	struct prng prng = { .state = (uintptr_t)arg };
	char *shared = areas[AREA_SHARED].at;
	size_t at;

	for (;;) {
		flip(&prng);
		at = prng_below(&prng, AREA_BYTES - 64);
		for (int i = 0; i < 64; i++)
			shared[at + i] = prng_next(&prng);
		usleep(prng_below(&prng, PAUSE_US));
	}
	return NULL;
}

void fuzz_mem_open(void)
{
	int file = must(memfd_create("cut", MFD_CLOEXEC));
	int private = MAP_PRIVATE | MAP_ANONYMOUS;
	int rw = PROT_READ | PROT_WRITE;

	must(ftruncate(file, CUT_BYTES));
	map(AREA_PLAIN, AREA_BYTES, rw, private, -1);
	map(AREA_READ_ONLY, AREA_BYTES, PROT_READ, private, -1);
	map(AREA_NONE, AREA_BYTES, PROT_NONE, private, -1);
	map(AREA_CUT, 2 * CUT_BYTES, rw, MAP_SHARED, file);
	map(AREA_FLIP, FLIP_BYTES, rw, private, -1);
	map(AREA_LAZY, LAZY_BYTES, rw, private, -1);
	close(file);
	lazy_open();
}

static void thread(void *(*run)(void *arg), u64 seed)
{
	pthread_t id;

	if (pthread_create(&id, NULL, run, (void *)(uintptr_t)seed))
		tap_fail("no thread");
	pthread_detach(id);
}

void fuzz_mem_start(u64 seed)
{
	thread(flip_run, seed);
	if (lazy_fd >= 0)
		thread(lazy_run, seed + 1);
}

/* -------------------------------------------------------------- addresses */

static u64 within(struct fuzz *f, enum area which, size_t bytes)
{
	size_t room = areas[which].bytes;
	u64 at = fuzz_below(f, room);

	/* mostly inside, at times across the end */
	if (at + bytes > room && !fuzz_one_in(f, 4))
		at = bytes < room ? room - bytes : 0;
	if (fuzz_one_in(f, 2))
		at &= -8;
	return (uintptr_t)areas[which].at + at;
}

u64 fuzz_mem_good(struct fuzz *f, size_t bytes)
{
	return within(f, fuzz_one_in(f, 3) ? AREA_SHARED : AREA_PLAIN, bytes);
}

u64 fuzz_mem_any(struct fuzz *f, size_t bytes)
{
	if (!fuzz_one_in(f, 6))
		return fuzz_mem_good(f, bytes);
	if (fuzz_one_in(f, 8))
		return fuzz_value(f);
	return within(f, fuzz_below(f, AREAS), bytes);
}

void *fuzz_mem_copy(struct fuzz *f, void *data, size_t bytes)
{
	struct iovec from = { data, bytes }, to = { .iov_len = bytes };

	if (!fuzz_one_in(f, 24))
		return data;
	to.iov_base = (void *)(uintptr_t)within(f, fuzz_below(f, AREAS), bytes);
	/* bytes that cannot be written are left as they are; a fault is not
	 * ours
	 */
	process_vm_writev(getpid(), &from, 1, &to, 1, 0);
	return to.iov_base;
}
