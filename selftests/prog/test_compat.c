// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs of 32 bits on a kernel of 64: ioctls, and control messages in a
 * buffer of the size that they need there.
 *
 * Their system calls are made by a program of 64 bits, through the old gate
 * and with memory below 4 GiB.
 *
 * timeout: 60
 */
#include <linux/sockios.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "congest.h"
#include "rdma.h"
#include "sock.h"
#include "tap.h"

#ifndef __x86_64__
#error "for x86 only"
#endif

/* Numbers of system calls there */
enum {
	NR_GETPID	= 20,
	NR_IOCTL	= 54,
	NR_RECVMSG	= 372,
};

enum { WAITED_US = 2000 };

struct iovec32 {
	u32 base;
	u32 len;
};

struct msghdr32 {
	u32 name;
	u32 namelen;
	u32 iov;
	u32 iovlen;
	u32 control;
	u32 controllen;
	u32 flags;
};

struct cmsghdr32 {
	u32 len;
	u32 level;
	u32 type;
};

struct trace32 {
	u8 traces;
	u8 pos[RDS_MSG_RX_DGRAM_TRACE_MAX];
	u64 ns[RDS_MSG_RX_DGRAM_TRACE_MAX];
} __attribute__((packed));

/* Arguments of the kernel lie here, below 4 GiB */
struct low {
	struct msghdr32 msg;
	struct iovec32 iov;
	struct {
		struct cmsghdr32 head;
		u32 reason;
	} control;
	char data[16];
	char room[512];
	struct xrds_barrier barrier;
	u8 tos;
};

static u32 low32(const void *mem)
{
	return (uintptr_t)mem;
}

static long call32(u32 nr, u32 a, u32 b, u32 c)
{
	int ret;

	asm volatile("int $0x80" : "=a" (ret)
		     : "0" (nr), "b" (a), "c" (b), "d" (c)
		     : "memory", "r8", "r9", "r10", "r11");
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

/* Memory for arguments; NULL where there are no such programs */
static struct low *low_memory(void)
{
	int status;
	pid_t pid;
	void *mem;

	pid = must(fork());
	if (!pid)
		_exit(call32(NR_GETPID, 0, 0, 0) != getpid());
	must(waitpid(pid, &status, 0));
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		tap_diag("this kernel runs no programs of 32 bits");
		return NULL;
	}
	mem = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (mem == MAP_FAILED)
		tap_fail("mmap: %s", tap_errno_name(errno));
	return mem;
}

static void ioctls(void)
{
	struct low *low = low_memory();
	union addr self;
	int fd;

	if (!low)
		return;
	fd = rds_bound(&self);
	low->tos = 3;
	check_ret(call32(NR_IOCTL, fd, SIOCRDSSETTOS, low32(&low->tos)), 0);
	low->tos = 0;
	check_ret(call32(NR_IOCTL, fd, SIOCRDSGETTOS, low32(&low->tos)), 0);
	check_eq(low->tos, 3);
	memcpy(&low->barrier.dest, &self, sizeof(self));
	low->barrier.issued = 1;
	check_ret(call32(NR_IOCTL, fd, SIOCXRDSBARRIER, low32(&low->barrier)),
		  0);
	check_eq(low->barrier.issued, 0);
	low->barrier.rdma_id = 1;
	check_err(call32(NR_IOCTL, fd, SIOCXRDSBARRIER, low32(&low->barrier)),
		  EINVAL);
	check_err(call32(NR_IOCTL, fd, SIOCXRDSBARRIER, 8), EFAULT);
	check_err(call32(NR_IOCTL, fd, SIOCXRDSBARRIER + 1,
			 low32(&low->barrier)), ENOTTY);
	close(fd);
}

static int recv32_into(struct low *low, int fd, const void *control, u32 len)
{
	low->iov.base = low32(low->data);
	low->iov.len = sizeof(low->data);
	low->msg = (struct msghdr32){
		.iov = low32(&low->iov), .iovlen = 1,
		.control = low32(control),
		.controllen = len,
	};
	return call32(NR_RECVMSG, fd, low32(&low->msg), MSG_DONTWAIT);
}

static int recv32(struct low *low, int fd)
{
	return recv32_into(low, fd, &low->control, sizeof(low->control));
}

static void end_of_stream(void)
{
	struct low *low = low_memory();
	int tx = rds_bound(NULL), rx;
	union addr to;

	if (!low)
		return;
	rx = rds_bound(&to);
	check_ret(rds_send(tx, "x", 1, 0, &to), 1);
	check_eq(poll_one(rx, POLLIN, tap_ms(WAIT_MS)), POLLIN);
	check_ret(recv32(low, rx), 1);
	check_eq(low->msg.controllen, 0);
	low->control.reason = -1;
	close(tx);
	check_eq(poll_one(rx, POLLIN, tap_ms(WAIT_MS)), POLLIN);
	check_ret(recv32(low, rx), 0);
	check_eq(low->msg.flags & MSG_CTRUNC, 0);
	check_eq(low->msg.controllen, sizeof(low->control));
	check_eq(low->control.head.len, sizeof(low->control));
	check_eq(low->control.head.level, SOL_RDS);
	check_eq(low->control.head.type, XRDS_CMSG_EOS);
	check_eq(low->control.reason, XRDS_EOS_FINISHED);
	close(rx);
}

static void congestion_ended(void)
{
	int fd = rds_bound(NULL), rx;
	struct low *low = low_memory();
	struct sockaddr_storage dest;
	struct cmsghdr32 *c;
	union addr to;
	u64 mask;

	if (!low)
		return;
	rds_set_int(fd, SOL_RDS, RDS_CONG_MONITOR, 1);
	rx = small_receiver(&to);
	congest(fd, &to);
	close(rx);
	check_eq(poll_one(fd, POLLIN, tap_ms(WAIT_MS)), POLLIN);
	check_ret(recv32_into(low, fd, low->room, sizeof(low->room)), 0);
	check_eq(low->msg.flags & MSG_CTRUNC, 0);
	c = (void *)low->room;
	check_eq(c->level, SOL_RDS);
	check_eq(c->type, RDS_CMSG_CONG_UPDATE);
	check_eq(c->len, sizeof(*c) + sizeof(mask));
	memcpy(&mask, c + 1, sizeof(mask));
	check_eq(mask, RDS_CONG_MONITOR_MASK(addr_port(&to)));
	/* there the length of each is rounded up to four bytes */
	c = (void *)c + c->len;
	check_eq(c->level, SOL_RDS);
	check_eq(c->type, XRDS_CMSG_CONG_CLEARED);
	check_eq(c->len, sizeof(*c) + sizeof(dest));
	memcpy(&dest, c + 1, sizeof(dest));
	check(addr_same((const union addr *)&dest, &to));
	check_eq((char *)c + c->len - low->room, low->msg.controllen);
	close(fd);
}

/* There the structure has no padding at its end. */
static void status(void)
{
	struct low *low = low_memory();
	int fd = rds_bound(NULL);
	struct rds_rdma_notify n;
	struct cmsghdr32 *c;
	struct target t;
	struct op op;
	char byte;
	u32 len;

	if (!low)
		return;
	c = (void *)low->room;
	len = sizeof(*c) + offsetof(struct rds_rdma_notify, status) +
	      sizeof(n.status);
	target_open(&t, PAGE_BYTES, RDS_RDMA_READWRITE);
	op = op_write(&t, 0, &byte, 1);
	op_set(&op, RDS_RDMA_NOTIFY_ME, 77);
	must(op_send(fd, &t.addr, &op));
	check_eq(poll_one(fd, POLLIN, tap_ms(WAIT_MS)), POLLIN);
	check_ret(recv32_into(low, fd, low->room, len - 1), 0);
	check_eq(low->msg.flags & MSG_CTRUNC, MSG_CTRUNC);
	check_ret(recv32_into(low, fd, low->room, len), 0);
	check_eq(low->msg.flags & MSG_CTRUNC, 0);
	check_eq(low->msg.controllen, len);
	check_eq(c->type, RDS_CMSG_RDMA_STATUS);
	check_eq(c->len, len);
	memcpy(&n, c + 1, len - sizeof(*c));
	check_eq(n.user_token, 77);
	check_eq(n.status, RDS_RDMA_SUCCESS);
	check_eq(poll_one(fd, POLLIN, 0), 0);
	target_close(&t);
	close(fd);
}

/* There the latencies are not aligned to eight bytes. */
static void latencies(void)
{
	struct rds_rx_trace_so so = { 1, { RDS_MSG_RX_DGRAM_DELIVERED } };
	struct low *low = low_memory();
	struct trace32 trace;
	struct cmsghdr32 *c;
	union addr self;
	int fd;

	if (!low)
		return;
	c = (void *)low->room;
	fd = rds_bound(&self);
	must(setsockopt(fd, SOL_RDS, SO_RDS_MSG_RXPATH_LATENCY, &so,
			sizeof(so)));
	check_ret(rds_send(fd, "x", 1, 0, &self), 1);
	check_eq(poll_one(fd, POLLIN, tap_ms(WAIT_MS)), POLLIN);
	usleep(WAITED_US);
	check_ret(recv32_into(low, fd, low->room, sizeof(*c) + sizeof(trace)),
		  1);
	check_eq(low->msg.flags & MSG_CTRUNC, 0);
	check_eq(c->type, RDS_CMSG_RXPATH_LATENCY);
	check_eq(c->len, sizeof(*c) + sizeof(trace));
	memcpy(&trace, c + 1, sizeof(trace));
	check_eq(trace.traces, 1);
	check_eq(trace.pos[0], RDS_MSG_RX_DGRAM_DELIVERED);
	/* nanoseconds, and less than a minute */
	check(trace.ns[0] > WAITED_US * 900ull && trace.ns[0] < 60000000000ull);
	close(fd);
}

static const struct tap_case cases[] = {
	{ "ioctls", "barriers and types of service", ioctls, 0, 0 },
	{ "end_of_stream", "a mark needs no more room than it has there",
	  end_of_stream, 0, 0 },
	{ "congestion_ended", "addresses of destinations that are congested no more",
	  congestion_ended, 0, 0 },
	{ "status", "the outcome of an op needs no room for padding", status,
	  0, 0 },
	{ "latencies", "the latencies of a message are where it expects them",
	  latencies, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
