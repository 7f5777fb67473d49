// SPDX-License-Identifier: GPL-2.0-only
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "tap.h"
#include "zcopy.h"

enum {
	NR_BUFFERS	= 24,
	HUGE_EACH	= 4,		/* one in so many has huge pages */
	HUGE_BYTES	= 2 << 20,
	PIECES		= 3,
	GAP		= 64,		/* between pieces: else they are one */
	SPOILED		= 0x5a,
};

static struct zbuf {
	char *data;
	bool busy;
} zbufs[NR_BUFFERS];

static unsigned int nr_busy;

void zcopy_init(void)
{
	char *mem = mmap(NULL, (NR_BUFFERS + 1L) * HUGE_BYTES,
			 PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mem == MAP_FAILED)
		tap_fail("no memory");
	mem += HUGE_BYTES - (uintptr_t)mem % HUGE_BYTES;
	for (int i = 0; i < NR_BUFFERS; i++, mem += HUGE_BYTES) {
		/* a kernel may have none */
		madvise(mem, HUGE_BYTES, i % HUGE_EACH ? MADV_NOHUGEPAGE :
							 MADV_HUGEPAGE);
		/* at the start of a page, and at any other byte */
		zbufs[i].data = mem + i / 2 * 997;
	}
}

bool zcopy_ready(void)
{
	return nr_busy < NR_BUFFERS;
}

bool zcopy_idle(void)
{
	return !nr_busy;
}

/* Copies the payload to a buffer, in pieces; returns their number. */
static int zcopy_fill(struct iovec *iov, char *to, const char *data, size_t len,
		      int want)
{
	size_t cut, done = 0;
	int nr = 0;

	while (done < len) {
		cut = nr == want - 1 ? len - done : (len + want - 1) / want;
		if (cut > len - done)
			cut = len - done;
		memcpy(to, data + done, cut);
		iov[nr++] = (struct iovec){ to, cut };
		to += cut + GAP;
		done += cut;
	}
	return nr;
}

ssize_t zcopy_send(int fd, const void *data, size_t len, int flags,
		   const union addr *to)
{
	char control[CMSG_SPACE(sizeof(u32))] __aligned(8) = "";
	struct iovec iov[PIECES];
	struct msghdr m = {
		.msg_name = (void *)to,
		.msg_namelen = addr_len(to),
		.msg_iov = iov,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	ssize_t ret;
	u32 i = 0;

	while (i < NR_BUFFERS && zbufs[i].busy)
		i++;
	if (i == NR_BUFFERS) {
		errno = ENOMEM;
		return -1;
	}
	m.msg_iovlen = zcopy_fill(iov, zbufs[i].data, data, len,
				  1 + i % PIECES);
	c->cmsg_level = SOL_RDS;
	c->cmsg_type = RDS_CMSG_ZCOPY_COOKIE;
	c->cmsg_len = CMSG_LEN(sizeof(i));
	memcpy(CMSG_DATA(c), &i, sizeof(i));
	ret = sendmsg(fd, &m, flags | MSG_ZEROCOPY);
	if (ret >= 0) {
		zbufs[i].busy = true;
		nr_busy++;
	}
	return ret;
}

static void zcopy_free(const struct rds_zcopy_cookies *told)
{
	for (u32 n = 0; n < told->num; n++) {
		u32 i = told->cookies[n];

		if (i >= NR_BUFFERS || !zbufs[i].busy)
			tap_fail("completion of %u, which is not sent", i);
		memset(zbufs[i].data, SPOILED, MSG_MAX_BYTES + PIECES * GAP);
		zbufs[i].busy = false;
		nr_busy--;
	}
}

ssize_t zcopy_recv(int fd, void *data, size_t len, union addr *from,
		   bool *mark)
{
	char control[4 * CMSG_SPACE(sizeof(struct rds_zcopy_cookies))]
		__aligned(8);
	struct iovec iov = { data, len };
	struct msghdr m = {
		.msg_name = from,
		.msg_namelen = sizeof(*from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct rds_zcopy_cookies told;
	struct cmsghdr *c;
	ssize_t ret;

	memset(from, 0, sizeof(*from));
	*mark = false;
	ret = recvmsg(fd, &m, MSG_DONTWAIT);
	if (ret < 0)
		return ret;
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_type == XRDS_CMSG_EOS)
			*mark = true;
		if (c->cmsg_type != RDS_CMSG_ZCOPY_COMPLETION)
			continue;
		*mark = true;
		memcpy(&told, CMSG_DATA(c), sizeof(told));
		zcopy_free(&told);
	}
	return ret;
}
