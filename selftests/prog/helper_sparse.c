// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that a device only reads, of a file on a real file system: nothing is
 * written to the file. It is run in a directory of that file system, with the
 * cases that make sense there.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rdma.h"
#include "sock.h"
#include "tap.h"

enum {
	HOLE_PAGES	= 16,
	HOLE_BYTES	= HOLE_PAGES * PAGE_BYTES,
	BLOCK_BYTES	= 512,		/* as stat() counts */
	HUGE_BYTES	= 2 << 20,
	MAX_HUGE	= 64,		/* more than there are */
	WRITABLE	= RDS_RDMA_READWRITE,
	READ_ONLY	= 0,
};

/* A file without a block, mapped as asked */
static char *hole_of(int *fd, size_t bytes, int prot, int flags)
{
	char name[] = "holeXXXXXX";
	int writable = must(mkstemp(name));
	char *mem;

	must(ftruncate(writable, bytes));
	*fd = must(open(name, prot & PROT_WRITE ? O_RDWR : O_RDONLY));
	must(unlink(name));
	close(writable);
	mem = mmap(NULL, bytes, prot, flags, *fd, 0);
	if (mem == MAP_FAILED)
		tap_fail("mmap: %s", tap_errno_name(errno));
	return mem;
}

static char *hole(int *fd, int flags)
{
	return hole_of(fd, HOLE_BYTES, PROT_READ | PROT_WRITE, flags);
}

/* Blocks of such a file when a program has read the hole: tmpfs and hugetlbfs
 * allocate these
 */
static long long blocks_by_reading(size_t bytes)
{
	struct stat now;
	int fd;
	char *mem = hole_of(&fd, bytes, PROT_READ, MAP_SHARED);

	check(filled(mem, HOLE_BYTES, 0));
	munmap(mem, bytes);
	must(fsync(fd));
	must(fstat(fd, &now));
	close(fd);
	return now.st_blocks;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* The file is as it was when it was made, but may have that many blocks. */
static void check_untouched(int fd, const struct stat *before, long long blocks)
{
	struct stat now;

	must(fsync(fd));
	must(fstat(fd, &now));
	check_eq(now.st_blocks, blocks);
	check(same_time(&now.st_mtim, &before->st_mtim));
	check(same_time(&now.st_ctim, &before->st_ctim));
}

/* An op writes the hole into a peer's memory. */
static void write_hole(const char *mem)
{
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;

	target_open(&t, HOLE_BYTES, WRITABLE);
	memset(t.mem, 'x', HOLE_BYTES);
	op = op_write(&t, 0, mem, HOLE_BYTES);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(filled(t.mem, HOLE_BYTES, 0));
	target_close(&t);
	close(fd);
}

static void source(void)
{
	long long blocks = blocks_by_reading(HOLE_BYTES);
	struct stat before;
	int file;
	char *mem = hole(&file, MAP_SHARED);

	must(fstat(file, &before));
	check_eq(before.st_blocks, 0);
	write_hole(mem);
	munmap(mem, HOLE_BYTES);
	check_untouched(file, &before, blocks);
}

/* Of huge pages, by a file that only may be read */
static void source_huge(void)
{
	long long blocks = blocks_by_reading(HUGE_BYTES);
	struct stat before;
	int file;
	char *mem = hole_of(&file, HUGE_BYTES, PROT_READ, MAP_SHARED);

	must(fstat(file, &before));
	check_eq(before.st_blocks, 0);
	write_hole(mem);
	munmap(mem, HUGE_BYTES);
	check_untouched(file, &before, blocks);
}

static void region_of(int prot, u64 flags)
{
	int file, fd = rds_bound(NULL);
	char *mem = hole_of(&file, HOLE_BYTES, prot, MAP_SHARED);
	char *into = pages(HOLE_BYTES);
	struct target t = { .mem = mem, .bytes = HOLE_BYTES };
	long long blocks = blocks_by_reading(HOLE_BYTES);
	struct stat before;
	struct op op;

	must(fstat(file, &before));
	t.fd = rds_bound(&t.addr);
	must(mr_get(t.fd, mem, HOLE_BYTES, flags, &t.cookie));
	memset(into, 'x', HOLE_BYTES);
	op = op_read(&t, 0, into, HOLE_BYTES);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(filled(into, HOLE_BYTES, 0));
	target_close(&t);
	close(fd);
	check_untouched(file, &before, blocks);
}

static void region(void)
{
	region_of(PROT_READ | PROT_WRITE, READ_ONLY);
}

static void region_once(void)
{
	region_of(PROT_READ | PROT_WRITE, RDS_RDMA_USE_ONCE);
}

static void region_prot_read(void)
{
	region_of(PROT_READ, READ_ONLY);
}

/* Writes until there is no space left. */
static void fill(int fd)
{
	static char data[1 << 16];
	size_t len = sizeof(data);
	ssize_t ret;

	memset(data, 'f', sizeof(data));
	while (len) {
		ret = write(fd, data, len);
		if (ret < 0 && errno != ENOSPC)
			tap_fail("write: %s", tap_errno_name(errno));
		if (ret < (ssize_t)len)
			len /= 2;
	}
}

static void full(void)
{
	char name[] = "fullXXXXXX";
	int file, filler = must(mkstemp(name));
	char *mem = hole(&file, MAP_SHARED);
	struct stat before;

	must(unlink(name));
	fill(filler);
	check_err(write(file, "x", 1), ENOSPC);
	must(fstat(file, &before));
	write_hole(mem);
	munmap(mem, HOLE_BYTES);
	check_untouched(file, &before, 0);
}

/* A full tmpfs has no page for a hole, not even for a reader: the op is refused, and
 * can be sent when there is space.
 */
static void full_tmpfs(void)
{
	char name[] = "fullXXXXXX";
	int file, fd = rds_bound(NULL), filler = must(mkstemp(name));
	char *mem = hole(&file, MAP_SHARED);
	struct stat before;
	struct target t;
	struct op op;

	must(unlink(name));
	must(fstat(file, &before));
	target_open(&t, HOLE_BYTES, WRITABLE);
	fill(filler);
	op = op_write(&t, 0, mem, HOLE_BYTES);
	check_err(op_send(fd, &t.addr, &op), EFAULT);
	check_untouched(file, &before, 0);
	must(ftruncate(filler, 0));
	write_hole(mem);
	munmap(mem, HOLE_BYTES);
	target_close(&t);
	close(fd);
}

/* The same if all huge pages are others' */
static void full_hugetlbfs(void)
{
	int file, fd = rds_bound(NULL);
	char *mem = hole_of(&file, HUGE_BYTES, PROT_READ,
			    MAP_SHARED | MAP_NORESERVE);
	char *others[MAX_HUGE];
	struct stat before;
	struct target t;
	struct op op;
	int nr = 0;

	must(fstat(file, &before));
	while (nr < MAX_HUGE) {
		others[nr] = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1,
				  0);
		if (others[nr] == MAP_FAILED)
			break;
		others[nr++][0] = 'f';
	}
	check_range(nr, 1, MAX_HUGE - 1);
	target_open(&t, HOLE_BYTES, WRITABLE);
	op = op_write(&t, 0, mem, HOLE_BYTES);
	check_err(op_send(fd, &t.addr, &op), EFAULT);
	check_untouched(file, &before, 0);
	while (nr)
		munmap(others[--nr], HUGE_BYTES);
	write_hole(mem);
	munmap(mem, HUGE_BYTES);
	target_close(&t);
	close(fd);
}

/*
 * A private mapping is not like that: the page of a program that stores into it
 * is another one then, and the device must see it.
 */
static void private(void)
{
	int file, fd = rds_bound(NULL);
	char *mem = hole(&file, MAP_PRIVATE), *into = pages(PAGE_BYTES);
	struct target t = { .mem = mem, .bytes = HOLE_BYTES };
	struct op op;

	check_eq(mem[0], 0);
	t.fd = rds_bound(&t.addr);
	must(mr_get(t.fd, mem, HOLE_BYTES, READ_ONLY, &t.cookie));
	memset(mem, 'n', PAGE_BYTES);
	op = op_read(&t, 0, into, PAGE_BYTES);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(filled(into, PAGE_BYTES, 'n'));
	target_close(&t);
	close(fd);
}

/* One buffer: private memory, then the hole, then private memory again */
static void mixed(void)
{
	char *all = pages(HOLE_BYTES + 2 * PAGE_BYTES), *mem;
	size_t bytes = HOLE_BYTES + 2 * PAGE_BYTES;
	int file, fd = rds_bound(NULL);
	long long blocks = blocks_by_reading(HOLE_BYTES);
	struct stat before;
	struct target t;
	struct op op;

	mem = hole(&file, MAP_SHARED);
	munmap(mem, HOLE_BYTES);
	mem = mmap(all + PAGE_BYTES, HOLE_BYTES, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED, file, 0);
	if (mem == MAP_FAILED)
		tap_fail("mmap: %s", tap_errno_name(errno));
	must(fstat(file, &before));
	memset(all, 'a', PAGE_BYTES);
	memset(all + bytes - PAGE_BYTES, 'z', PAGE_BYTES);
	target_open(&t, bytes, WRITABLE);
	op = op_write(&t, 0, all, bytes);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(!memcmp(t.mem, all, bytes));
	check_untouched(file, &before, blocks);
	target_close(&t);
	close(fd);
}

/* An op writes memory of that content into a peer's. */
static void write_stamped(const char *mem, size_t bytes)
{
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;

	target_open(&t, bytes, WRITABLE);
	op = op_write(&t, 0, mem, bytes);
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(stamped(t.mem, bytes, 1));
	target_close(&t);
	close(fd);
}

/* Nobody may write to it any more, through any mapping. */
static char *seal(int file)
{
	char *mem;

	must(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK));
	mem = mmap(NULL, HOLE_BYTES, PROT_READ, MAP_SHARED, file, 0);
	if (mem == MAP_FAILED)
		tap_fail("mmap: %s", tap_errno_name(errno));
	return mem;
}

static void sealed(void)
{
	int file = must(memfd_create("sealed", MFD_ALLOW_SEALING));
	static char data[HOLE_BYTES];

	stamp(data, sizeof(data), 1);
	check_eq(write(file, data, sizeof(data)), sizeof(data));
	write_stamped(seal(file), HOLE_BYTES);
}

/* Its pages are allocated for a reader, as a tmpfs does. */
static void sealed_hole(void)
{
	int file = must(memfd_create("sealed", MFD_ALLOW_SEALING));
	struct stat before;
	char *mem;

	must(ftruncate(file, HOLE_BYTES));
	mem = seal(file);
	must(fstat(file, &before));
	check_eq(before.st_blocks, 0);
	write_hole(mem);
	munmap(mem, HOLE_BYTES);
	check_untouched(file, &before, HOLE_BYTES / BLOCK_BYTES);
}

static void read_only(void)
{
	char name[] = "onlyXXXXXX";
	static char data[HOLE_BYTES];
	int file = must(mkstemp(name)), again;
	struct stat before;
	char *mem;

	stamp(data, sizeof(data), 1);
	check_eq(write(file, data, sizeof(data)), sizeof(data));
	must(fsync(file));
	must(fstat(file, &before));
	again = must(open(name, O_RDONLY));
	must(unlink(name));
	must(fstat(file, &before));
	mem = mmap(NULL, HOLE_BYTES, PROT_READ, MAP_SHARED, again, 0);
	if (mem == MAP_FAILED)
		tap_fail("mmap: %s", tap_errno_name(errno));
	write_stamped(mem, HOLE_BYTES);
	check_untouched(file, &before, before.st_blocks);
}

static void huge(void)
{
	char *mem;

	for (int i = 0; i < 2; i++) {
		tap_context("%s", i ? "private" : "shared");
		mem = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE,
			   MAP_ANONYMOUS | MAP_HUGETLB |
			   (i ? MAP_PRIVATE : MAP_SHARED), -1, 0);
		if (mem == MAP_FAILED)
			tap_fail("mmap: %s", tap_errno_name(errno));
		stamp(mem, HOLE_BYTES, 1);
		write_stamped(mem, HOLE_BYTES);
		munmap(mem, HUGE_BYTES);
	}
}

static const struct tap_case cases[] = {
	{ "source", "a write out of a hole leaves the file as it is", source,
	  0, 0 },
	{ "region", "so does a read of a region that is lent for reading",
	  region, 0, 0 },
	{ "region_once", "and of one that is lent for a single op", region_once,
	  0, 0 },
	{ "region_prot_read", "and of one that the program only may read",
	  region_prot_read, 0, 0 },
	{ "source_huge", "and a write out of a hole of huge pages", source_huge,
	  0, 0 },
	{ "full", "a write out of a hole of a full file system succeeds", full,
	  0, 60 },
	{ "full_tmpfs", "of a full tmpfs it does when there is space again",
	  full_tmpfs, 0, 60 },
	{ "full_hugetlbfs", "so does one of hugetlbfs without a free page",
	  full_hugetlbfs, 0, 60 },
	{ "private", "a store into a private mapping is seen by the device",
	  private, 0, 0 },
	{ "mixed", "a buffer of private and shared mappings is read whole",
	  mixed, 0, 0 },
	{ "sealed", "so is a memfd that is sealed against writes", sealed,
	  0, 0 },
	{ "sealed_hole", "its holes, too", sealed_hole, 0, 0 },
	{ "read_only", "so is a file that is opened for reading", read_only,
	  0, 0 },
	{ "huge", "so are huge pages", huge, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
