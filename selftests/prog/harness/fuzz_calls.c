// SPDX-License-Identifier: GPL-2.0-only
/*
 * The calls of fuzzers, but for messages, and the loop that makes them.
 *
 * No call may hold a thread up for long: a timer of its own interrupts it. On
 * kernels that inject faults some calls have an allocation or a copy that
 * fails; it is this thread's, and nobody else's. These are not interrupted, as
 * the allocation that fails could be that of the signal's stack frame, so they
 * are calls that do not wait.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "fuzz.h"
#include "fuzz_proc.h"
#include "tap.h"

enum {
	TICK_NS		= 10000000,
	MAX_NTH		= 40,
	INTERNAL_ERRNO	= 512,	/* from here on */
};

struct fuzz_shared *fuzz_shared;
struct fuzz_process fuzz_self;

/* -------------------------------------------------------------- descriptors */

int fuzz_fd(struct fuzz *f)
{
	int fd = -1;

	for (int i = 0; i < 4 && fd < 0; i++)
		fd = READ_ONCE(fuzz_self.fds[fuzz_below(f, FUZZ_SLOTS)]);
	return fd;
}

void fuzz_fd_add(struct fuzz *f, int fd)
{
	int *slot = &fuzz_self.fds[fuzz_below(f, FUZZ_SLOTS)];
	int old;

	if (fd < 0)
		return;
	old = __atomic_exchange_n(slot, fd, __ATOMIC_ACQ_REL);
	if (old >= 0)
		close(old);
}

int fuzz_socket(struct fuzz *f, int type, int protocol)
{
	int fd = socket(AF_RDS, type, protocol);
	union addr a = fuzz_addr_own(f);

	if (fd >= 0)
		bind(fd, &a.sa, addr_len(&a));
	fuzz_fd_add(f, fd);
	return fd;
}

static long call_socket(struct fuzz *f)
{
	int type = SOCK_SEQPACKET | SOCK_CLOEXEC, protocol = 0, fd;

	if (fuzz_one_in(f, 32))
		type = fuzz_value(f);
	if (fuzz_one_in(f, 32))
		protocol = fuzz_value(f);
	if (fuzz_one_in(f, 4))
		type |= SOCK_NONBLOCK;
	/* unbound ones get nowhere */
	if (!fuzz_one_in(f, 4))
		return fuzz_socket(f, type, protocol);
	fd = socket(AF_RDS, type, protocol);
	fuzz_fd_add(f, fd);
	return fd;
}

static long call_close(struct fuzz *f)
{
	int *slot = &fuzz_self.fds[fuzz_below(f, FUZZ_SLOTS)];
	int fd = READ_ONCE(*slot);

	if (fuzz_one_in(f, 2))
		fd = __atomic_exchange_n(slot, -1, __ATOMIC_ACQ_REL);
	return fd < 0 ? -1 : close(fd);
}

/* Closed so that queued messages go, or are waited for */
static long call_abort(struct fuzz *f)
{
	struct linger linger = { 1, fuzz_one_in(f, 2) ? 0 : fuzz_int(f) };
	int fd = fuzz_fd(f);

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return fd < 0 ? -1 : close(fd);
}

static long call_dup(struct fuzz *f)
{
	int fd = fuzz_fd(f);

	fd = fuzz_one_in(f, 2) ? dup(fd) : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	fuzz_fd_add(f, fd);
	return fd;
}

static long call_fcntl(struct fuzz *f)
{
	int fd = fuzz_fd(f);

	switch (fuzz_below(f, 4)) {
	case 0:
		return fcntl(fd, F_SETFL, O_NONBLOCK);
	case 1:
		return fcntl(fd, F_SETFL, O_ASYNC);
	case 2:
		return fcntl(fd, F_SETOWN, getpid());
	default:
		return fcntl(fd, F_SETFL, 0);
	}
}

/* ---------------------------------------------------------------- addresses */

static long call_bind(struct fuzz *f)
{
	union addr a = fuzz_addr_own(f);
	socklen_t len = addr_len(&a);

	if (fuzz_one_in(f, 6))
		len = fuzz_addr(f, &a);
	return bind(fuzz_fd(f), fuzz_mem_copy(f, &a, sizeof(a)), len);
}

static long call_connect(struct fuzz *f)
{
	union addr a;
	socklen_t len = fuzz_addr(f, &a);

	return connect(fuzz_fd(f), fuzz_mem_copy(f, &a, sizeof(a)), len);
}

static long call_name(struct fuzz *f)
{
	socklen_t len = fuzz_one_in(f, 4) ? fuzz_value(f) : sizeof(union addr);
	void *name = (void *)(uintptr_t)fuzz_mem_any(f, sizeof(union addr));
	int fd = fuzz_fd(f);

	return fuzz_one_in(f, 2) ? getsockname(fd, name, &len) :
				   getpeername(fd, name, &len);
}

static long call_shutdown(struct fuzz *f)
{
	return shutdown(fuzz_fd(f), fuzz_one_in(f, 16) ? fuzz_int(f) :
						(int)fuzz_below(f, 3));
}

/* Calls that sockets of this family do not support */
static long call_other(struct fuzz *f)
{
	int fd = fuzz_fd(f), pair[2];

	switch (fuzz_below(f, 4)) {
	case 0:
		return listen(fd, fuzz_int(f));
	case 1:
		return accept(fd, NULL, NULL);
	case 2:
		return socketpair(AF_RDS, SOCK_SEQPACKET, 0, pair);
	default:
		return mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) ==
		       MAP_FAILED ? -1 : 0;
	}
}

/* -------------------------------------------------------------------- options */

static const int options[] = {
	RDS_CANCEL_SENT_TO, RDS_GET_MR, RDS_GET_MR, RDS_GET_MR, RDS_FREE_MR,
	RDS_FREE_MR, RDS_RECVERR, RDS_CONG_MONITOR, RDS_GET_MR_FOR_DEST,
	RDS_GET_MR_FOR_DEST, SO_RDS_TRANSPORT, SO_RDS_MSG_RXPATH_LATENCY,
	XRDS_DEST_STATUS, XRDS_DEST_SNDBUF, XRDS_REPLY_RESERVE,
	XRDS_REPLY_RELEASE, XRDS_CONG_EAGAIN, XRDS_DELIVERED_EVENT,
};

/* The argument of an option, well-formed; its length */
static socklen_t argument(struct fuzz *f, int option, void *data)
{
	struct rds_get_mr_for_dest_args *get = data;
	struct xrds_dest_sndbuf *sndbuf = data;
	struct rds_free_mr_args *release = data;
	union addr a;

	memset(data, 0, 512);
	fuzz_addr(f, &a);
	switch (option) {
	case RDS_GET_MR:
		return fuzz_content(f, RDS_CMSG_RDMA_MAP, data);
	case RDS_GET_MR_FOR_DEST:
		fuzz_content(f, RDS_CMSG_RDMA_MAP, &get->vec);
		memcpy(&get->dest_addr, &a, sizeof(a));
		return sizeof(*get);
	case RDS_FREE_MR:
		release->cookie = fuzz_one_in(f, 8) ? 0 : fuzz_cookie(f);
		release->flags = fuzz_one_in(f, 8) ? fuzz_value(f) :
						     fuzz_below(f, 16);
		return sizeof(*release);
	case XRDS_DEST_SNDBUF:
		memcpy(&sndbuf->dest, &a, sizeof(a));
		sndbuf->bytes = fuzz_one_in(f, 4) ? fuzz_value(f) :
						    fuzz_below(f, 100000);
		return sizeof(*sndbuf);
	case XRDS_DEST_STATUS:
		memcpy(data, &a, sizeof(a));
		return sizeof(struct xrds_dest_status);
	case RDS_CANCEL_SENT_TO:
	case XRDS_REPLY_RELEASE:
		memcpy(data, &a, sizeof(a));
		return option == XRDS_REPLY_RELEASE ? sizeof(a) : addr_len(&a);
	case SO_RDS_MSG_RXPATH_LATENCY:
		memcpy(data, &(u32){ fuzz_value(f) }, sizeof(u32));
		return sizeof(struct rds_rx_trace_so);
	default:
		memcpy(data, &(int){ fuzz_int(f) }, sizeof(int));
		return sizeof(int);
	}
}

/* An option, with its argument in @f->scratch; now and then another length */
static int draw_option(struct fuzz *f, socklen_t *len)
{
	int option = options[fuzz_below(f, ARRAY_SIZE(options))];

	*len = argument(f, option, f->scratch);
	if (fuzz_one_in(f, 24))
		option = fuzz_below(f, 120);
	if (fuzz_one_in(f, 12))
		*len = fuzz_int(f);
	return option;
}

static long call_setsockopt(struct fuzz *f)
{
	socklen_t len;
	int option = draw_option(f, &len);

	return setsockopt(fuzz_fd(f), fuzz_one_in(f, 64) ? fuzz_int(f) :
			  SOL_RDS, option,
			  fuzz_mem_copy(f, f->scratch, 512), len);
}

static long call_getsockopt(struct fuzz *f)
{
	socklen_t len;
	int option = draw_option(f, &len);

	return getsockopt(fuzz_fd(f), SOL_RDS, option,
			  fuzz_mem_copy(f, f->scratch, 512), &len);
}

static long call_info(struct fuzz *f)
{
	int option = RDS_INFO_FIRST + fuzz_below(f, RDS_INFO_LAST + 1 -
						 RDS_INFO_FIRST);
	socklen_t len = fuzz_one_in(f, 2) ? sizeof(f->scratch) : fuzz_value(f);
	void *to = f->scratch;

	if (fuzz_one_in(f, 4))
		to = (void *)(uintptr_t)fuzz_mem_any(f, sizeof(f->scratch));
	else if (len > sizeof(f->scratch))
		len = sizeof(f->scratch);
	return getsockopt(fuzz_fd(f), SOL_RDS, option, to, &len);
}

/* Those of all sockets: any number, with time limits now and then */
static long call_solsocket(struct fuzz *f)
{
	static const int common[] = {
		SO_SNDBUF, SO_RCVBUF, SO_SNDBUFFORCE, SO_RCVBUFFORCE,
		SO_SNDTIMEO, SO_RCVTIMEO, SO_LINGER, SO_RCVLOWAT, SO_PRIORITY,
		SO_TIMESTAMP, SO_ERROR, SO_TIMESTAMPING, SO_ZEROCOPY,
	};
	int values[4] = { fuzz_int(f), fuzz_int(f), 0, 0 };
	int option = common[fuzz_below(f, ARRAY_SIZE(common))];
	socklen_t len = sizeof(int);
	long ret;

	if (option == SO_SNDTIMEO || option == SO_RCVTIMEO) {
		values[0] = 0;
		values[2] = fuzz_below(f, 20000);
		len = sizeof(struct timeval);
	}
	if (option == SO_LINGER)
		len = sizeof(struct linger);
	if (fuzz_one_in(f, 4))
		option = fuzz_below(f, 80);
	if (fuzz_one_in(f, 12))
		len = fuzz_int(f);
	/* as much as the kernel likes to tell, wherever it fits */
	if (fuzz_one_in(f, 4)) {
		*(int *)f->scratch = 0;
		ret = getsockopt(fuzz_fd(f), SOL_SOCKET, option, f->scratch,
				 &len);
		if (option == SO_ERROR && !ret)
			fuzz_check_errno(*(int *)f->scratch);
		return ret;
	}
	return setsockopt(fuzz_fd(f), SOL_SOCKET, option,
			  fuzz_mem_copy(f, values, sizeof(values)), len);
}

static long call_ioctl(struct fuzz *f)
{
	static const unsigned int commands[] = {
		SIOCRDSSETTOS, SIOCRDSGETTOS, SIOCXRDSBARRIER, SIOCXRDSBARRIER,
		SIOCXRDSBARRIER, SIOCINQ, SIOCOUTQ, FIONBIO, FIOASYNC,
	};
	unsigned int command = commands[fuzz_below(f, ARRAY_SIZE(commands))];
	void *arg = f->scratch;

	memset(f->scratch, 0, 512);
	if (command == SIOCXRDSBARRIER)
		fuzz_content(f, XRDS_CMSG_BARRIER, f->scratch);
	if (command == SIOCXRDSBARRIER && !f->patient)
		((struct xrds_barrier *)f->scratch)->timeout_ms = 1;
	if (command != SIOCXRDSBARRIER)
		memcpy(f->scratch, &(int){ fuzz_int(f) }, sizeof(int));
	/* those of the family only: others administer interfaces */
	if (fuzz_one_in(f, 24))
		command = SIOCPROTOPRIVATE + fuzz_below(f, 16);
	if (fuzz_one_in(f, 12))
		arg = (void *)(uintptr_t)fuzz_mem_any(f, 200);
	return ioctl(fuzz_fd(f), command, fuzz_mem_copy(f, arg, 200));
}

/* -------------------------------------------------------------------- waiting */

static long call_poll(struct fuzz *f)
{
	struct pollfd fds[4];
	int ms = fuzz_one_in(f, 4) ? fuzz_int(f) : (int)fuzz_below(f, 4);

	if (!f->patient)
		ms = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i].fd = fuzz_fd(f);
		fds[i].events = fuzz_one_in(f, 2) ? POLLIN | POLLOUT :
						    fuzz_value(f);
	}
	return poll(fuzz_mem_copy(f, fds, sizeof(fds)), ARRAY_SIZE(fds), ms);
}

static long call_select(struct fuzz *f)
{
	struct timeval tv = { .tv_usec = fuzz_below(f, 4000) };
	fd_set in, out, other;
	int fd;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&other);
	for (int i = 0; i < 6; i++) {
		fd = fuzz_fd(f);
		if (fd >= 0 && fd < FD_SETSIZE)
			FD_SET(fd, i & 1 ? &in : i & 2 ? &out : &other);
	}
	return select(FD_SETSIZE, &in, &out, &other, &tv);
}

static long call_epoll(struct fuzz *f)
{
	static const int ops[] = { EPOLL_CTL_ADD, EPOLL_CTL_ADD, EPOLL_CTL_MOD,
				   EPOLL_CTL_DEL };
	static const u32 flags[] = { 0, EPOLLET, EPOLLONESHOT, EPOLLEXCLUSIVE };
	struct epoll_event events[4], event = {
		.events = EPOLLIN | (fuzz_one_in(f, 2) ? EPOLLOUT : 0) |
			  flags[fuzz_below(f, ARRAY_SIZE(flags))],
	};

	if (fuzz_one_in(f, 8))
		event.events = fuzz_value(f);
	if (fuzz_one_in(f, 3))
		return epoll_wait(fuzz_self.epoll, events, 4, fuzz_below(f, 3));
	return epoll_ctl(fuzz_self.epoll, ops[fuzz_below(f, ARRAY_SIZE(ops))],
			 fuzz_fd(f), &event);
}

/* ----------------------------------------------------------------------- run */

static const struct call {
	const char *name;
	unsigned int weight;
	long (*run)(struct fuzz *f);
	bool faultless;		/* not where failures are injected */
} calls[] = {
	{ "socket", 20, call_socket, false },
	{ "close", 6, call_close, false },
	{ "abort", 3, call_abort, false },
	{ "dup", 3, call_dup, false },
	{ "fcntl", 3, call_fcntl, false },
	{ "bind", 8, call_bind, false },
	{ "connect", 8, call_connect, false },
	{ "name", 4, call_name, false },
	{ "shutdown", 1, call_shutdown, false },
	{ "other", 2, call_other, false },
	{ "setsockopt", 24, call_setsockopt, false },
	{ "getsockopt", 16, call_getsockopt, false },
	{ "info", 2, call_info, false },
	{ "solsocket", 12, call_solsocket, false },
	{ "ioctl", 16, call_ioctl, false },
	{ "poll", 8, call_poll, false },
	{ "select", 4, call_select, false },
	{ "epoll", 8, call_epoll, false },
	{ "sendmsg", 60, fuzz_call_sendmsg, false },
	{ "recvmsg", 50, fuzz_call_recvmsg, false },
	{ "sendmmsg", 6, fuzz_call_sendmmsg, false },
	{ "recvmmsg", 6, fuzz_call_recvmmsg, false },
	{ "sendto", 16, fuzz_call_sendto, false },
	{ "recvfrom", 16, fuzz_call_recvfrom, false },
	{ "write", 6, fuzz_call_write, true },
	{ "read", 6, fuzz_call_read, true },
	{ "splice", 3, fuzz_call_splice, true },
	{ "io_uring", 12, fuzz_call_ring, true },
	{ "give", 4, fuzz_call_give, true },
	{ "take", 8, fuzz_call_take, true },
	{ "fork", 2, fuzz_call_fork, true },
	{ "netns", 1, fuzz_call_netns, true },
	{ "knob", 2, fuzz_call_knob, true },
};

_Static_assert(ARRAY_SIZE(calls) <= FUZZ_CALLS, "struct fuzz_shared");

/* The call of this thread, for the report of its death */
static __thread const struct call *doing;

const char *fuzz_doing(void)
{
	return doing ? doing->name : "nothing yet";
}

void fuzz_check_errno(int number)
{
	if (number < INTERNAL_ERRNO)
		return;
	tap_diag("fuzzer %d: %s: errno %d", getpid(), fuzz_doing(), number);
	_exit(1);
}

static void interruptible(bool on)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(on ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL);
}

static void nth_set(struct fuzz *f, int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", nth);

	/* the copy may fail, being what was asked for */
	while (pwrite(f->nth_fd, text, len, 0) < 0)
		if (errno != EFAULT)
			tap_fail("fail-nth: %s", strerror(errno));
}

/* This copy may be the one that fails: then nothing did before. */
static void nth_end(struct fuzz *f)
{
	char text[16] = "";

	if (pread(f->nth_fd, text, sizeof(text) - 1, 0) > 0 && text[0] == '0')
		__atomic_fetch_add(&fuzz_shared->struck, 1, __ATOMIC_RELAXED);
	nth_set(f, 0);
}

static void call_one(struct fuzz *f)
{
	static unsigned int total;
	unsigned int sum = 0, at;
	const struct call *c;
	bool fails;
	long ret;

	/* the same in all threads */
	if (!total) {
		for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
			sum += calls[i].weight;
		total = sum;
	}
	at = fuzz_below(f, total);
	for (c = calls; at >= c->weight; c++)
		at -= c->weight;
	doing = c;

	fails = f->nth_fd >= 0 && !c->faultless && fuzz_one_in(f, 4);
	f->patient = !fails;
	if (fails) {
		interruptible(false);
		nth_set(f, 1 + fuzz_below(f, MAX_NTH));
	}
	errno = 0;
	ret = c->run(f);
	if (ret < 0)
		fuzz_check_errno(errno);
	if (fails) {
		nth_end(f);
		interruptible(true);
	}
	__atomic_fetch_add(&fuzz_shared->calls[c - calls], 1, __ATOMIC_RELAXED);
	if (ret >= 0)
		__atomic_fetch_add(&fuzz_shared->fine[c - calls], 1,
				   __ATOMIC_RELAXED);
}

/* Interrupts this thread again and again; it ends with the process. */
static void tick(void)
{
	struct itimerspec every = {
		.it_interval.tv_nsec = TICK_NS,
		.it_value.tv_nsec = TICK_NS,
	};
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = SIGALRM,
	};
	int id;

	event._sigev_un._tid = syscall(SYS_gettid);
	/* not by the library, which may want memory */
	must(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id));
	must(syscall(SYS_timer_settime, id, 0, &every, NULL));
}

/* A slot may have the number of a socket that has been closed: once more, and
 * it would be fail-nth, and then failures would not end with the call.
 */
static int nth_open(void)
{
	int fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);

	for (int i = 0; fd >= 0 && i < FUZZ_SLOTS; i++)
		if (fuzz_self.fds[i] == fd)
			fuzz_self.fds[i] = -1;
	return fd;
}

void fuzz_run(u64 seed, pthread_barrier_t *opened)
{
	struct fuzz f = { .prng = { seed }, .nth_fd = nth_open() };

	if (opened)
		pthread_barrier_wait(opened);
	fuzz_ring_open();
	tick();
	for (u64 i = 0; !fuzz_shared->limit || i < fuzz_shared->limit; i++)
		call_one(&f);
}

void fuzz_report(const struct fuzz_result *r)
{
	char text[1024] = "";
	size_t at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		at += snprintf(text + at, sizeof(text) - at, "%s %llu/%llu ",
			       calls[i].name, r->fine[i], r->calls[i]);
	tap_diag("%s", text);
	if (r->struck)
		tap_diag("%llu failures were injected", r->struck);
}
