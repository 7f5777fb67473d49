// SPDX-License-Identifier: GPL-2.0-only
/*
 * recvmsg(): flags, timeouts, names, lengths, and the two ioctls that count.
 *
 * timeout: 120
 */
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "lazy.h"
#include "pattern.h"
#include "rdma.h"
#include "sock.h"
#include "tap.h"
#include "turns.h"
#include "waker.h"

enum {
	TIMEOUT_MS	= 300,
	EARLY_MS	= 10,		/* a tick of the slowest kernel */
	PATIENCE_MS	= 20000,	/* of a call that must not wait */
	LATE_MS		= 3000,
	POISON		= 0xa5,
	FILL_BYTES	= 4096,
	RCVBUF_BYTES	= 65536,
	MOST		= 1000,		/* messages; far more than fit */
	FAULTS		= 8,
};

/* A socket that has the message "hello" to itself waiting */
static int with_hello(union addr *self)
{
	int fd = rds_bound(self);

	must(rds_send(fd, "hello", 5, 0, self));
	if (!poll_one(fd, POLLIN, tap_ms(WAIT_MS)))
		tap_fail("nothing arrived");
	return fd;
}

static struct msghdr message(struct iovec *iov, void *data, size_t len,
			     void *name, size_t name_len)
{
	*iov = (struct iovec){ data, len };
	return (struct msghdr){
		.msg_name = name, .msg_namelen = name_len,
		.msg_iov = iov, .msg_iovlen = 1,
	};
}

static void empty_queue(void)
{
	int fd = rds_bound(NULL);
	char byte;

	check_err(rds_recv(fd, &byte, 1, MSG_DONTWAIT, NULL), EAGAIN);
	rds_nonblock(fd);
	check_err(rds_recv(fd, &byte, 1, 0, NULL), EAGAIN);
	check_err(read(fd, &byte, 1), EAGAIN);
	close(fd);
}

static void timeout(void)
{
	int fd = rds_bound(NULL);
	long long start;
	char byte;

	rds_timeout(fd, SO_RCVTIMEO, TIMEOUT_MS);
	turns_begin();
	start = tap_tick_ms();
	check_err(rds_recv(fd, &byte, 1, 0, NULL), ETIMEDOUT);
	check_took(start, TIMEOUT_MS - EARLY_MS, TIMEOUT_MS + tap_ms(LATE_MS));
	/* MSG_DONTWAIT wins */
	rds_timeout(fd, SO_RCVTIMEO, PATIENCE_MS);
	start = tap_now_ms();
	check_err(rds_recv(fd, &byte, 1, MSG_DONTWAIT, NULL), EAGAIN);
	check_range(tap_now_ms() - start, 0, PATIENCE_MS - 1);
	close(fd);
}

static void interrupted(void)
{
	int fd = rds_bound(NULL);
	char byte;

	tap_interrupt(TIMEOUT_MS, 0);
	check_err(rds_recv(fd, &byte, 1, 0, NULL), EINTR);
	close(fd);
}

static bool slept_again(void *arg)
{
	return waker_sleeps(arg) > 1;
}

static void restarted(void)
{
	union addr self;
	int fd = rds_bound(&self);
	struct waker w;

	tap_interrupt(0, SA_RESTART);
	waker_start_reader(&w, fd);
	check_eq(pthread_kill(w.thread, SIGALRM), 0);
	must_wait(slept_again, &w, WAIT_MS);
	check_ret(rds_send(fd, "x", 1, 0, &self), 1);
	check_eq(pthread_join(w.thread, NULL), 0);
	close(fd);
}

static void *late_sender(void *arg)
{
	union addr to = rds_self(*(int *)arg);
	int fd = rds_bound(NULL);

	check_ret(rds_send(fd, "x", 1, 0, &to), 1);
	close(fd);
	return NULL;
}

static void blocking(void)
{
	int fd = rds_bound(NULL);
	pthread_t thread;
	char byte = 0;

	pthread_create(&thread, NULL, late_sender, &fd);
	check_ret(rds_recv(fd, &byte, 1, 0, NULL), 1);
	check_eq(byte, 'x');
	pthread_join(thread, NULL);
	close(fd);
}

struct reader {
	int fd;
	int flags;
	pthread_t thread;
	pid_t tid;
	ssize_t ret;
};

static void *reader_thread(void *arg)
{
	struct reader *r = arg;
	char byte;

	WRITE_ONCE(r->tid, gettid());
	r->ret = rds_recv(r->fd, &byte, 1, r->flags, NULL);
	return NULL;
}

/* Is it asleep, as far as one can see? */
static bool asleep(void *arg)
{
	struct reader *r = arg;
	char path[64], state = 0;
	FILE *f;

	if (!READ_ONCE(r->tid))
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", r->tid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(f);
	return state == 'S';
}

static void reader_start(struct reader *r, int fd, int flags)
{
	*r = (struct reader){ .fd = fd, .flags = flags };
	pthread_create(&r->thread, NULL, reader_thread, r);
	must_wait(asleep, r, WAIT_MS);
}

static bool returned(void *arg)
{
	struct reader *r = arg;

	return !pthread_tryjoin_np(r->thread, NULL);
}

/* A reader that only peeks takes neither the message nor the wake-up from
 * another.
 */
static void peek_wakes(void)
{
	struct reader peeker, reader;
	union addr self;
	int fd = rds_bound(&self);

	for (int i = 0; i < 5; i++) {
		reader_start(&peeker, fd, MSG_PEEK);
		reader_start(&reader, fd, 0);
		check_ret(rds_send(fd, "x", 1, 0, &self), 1);
		must_wait(returned, &reader, WAIT_MS);
		check_ret(reader.ret, 1);
		/* the reader may have been the first */
		check_ret(rds_send(fd, "y", 1, 0, &self), 1);
		must_wait(returned, &peeker, WAIT_MS);
		check_ret(peeker.ret, 1);
		while (rds_recv(fd, &(char){ 0 }, 1, MSG_DONTWAIT, NULL) >= 0)
			;
	}
	close(fd);
}

static void unbound(void)
{
	int fd = rds_socket();
	char byte;

	check_err(rds_recv(fd, &byte, 1, MSG_DONTWAIT, NULL), EAGAIN);
	rds_timeout(fd, SO_RCVTIMEO, TIMEOUT_MS);
	check_err(rds_recv(fd, &byte, 1, 0, NULL), ETIMEDOUT);
	close(fd);
}

/* ------------------------------------------------------------------ flags */

static void peek(void)
{
	union addr self, from;
	int fd = with_hello(&self);
	char data[8] = "";

	for (int i = 0; i < 3; i++) {
		memset(data, 0, sizeof(data));
		check_ret(rds_recv(fd, data, sizeof(data),
				   MSG_PEEK | MSG_DONTWAIT, &from), 5);
		check(!memcmp(data, "hello", 5));
		check(addr_same(&from, &self));
	}
	check(poll_one(fd, POLLIN, 0) & POLLIN);
	/* part of it, and how long it is */
	check_ret(rds_recv(fd, data, 2, MSG_PEEK | MSG_DONTWAIT, NULL), 2);
	check_ret(rds_recv(fd, data, 2, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT,
			   NULL), 5);
	check_ret(rds_recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT,
			   NULL), 5);
	check_ret(rds_recv(fd, data, sizeof(data), MSG_DONTWAIT, NULL), 5);
	check_err(rds_recv(fd, data, sizeof(data), MSG_PEEK | MSG_DONTWAIT,
			   NULL), EAGAIN);
	close(fd);
}

static void truncated(void)
{
	char data[8];
	struct iovec iov;
	struct msghdr msg = message(&iov, data, 2, NULL, 0);
	union addr self;
	int fd = with_hello(&self);

	memset(data, POISON, sizeof(data));
	check_ret(recvmsg(fd, &msg, MSG_DONTWAIT), 2);
	check_eq(msg.msg_flags & MSG_TRUNC, MSG_TRUNC);
	check(!memcmp(data, "he", 2));
	check_eq((unsigned char)data[2], POISON);
	/* the rest of the message is gone, not the next one's beginning */
	check_err(recvmsg(fd, &msg, MSG_DONTWAIT), EAGAIN);

	must(rds_send(fd, "hello", 5, 0, &self));
	check(poll_one(fd, POLLIN, tap_ms(WAIT_MS)));
	check_ret(recvmsg(fd, &msg, MSG_DONTWAIT | MSG_TRUNC), 5);
	check_eq(msg.msg_flags & MSG_TRUNC, MSG_TRUNC);

	must(rds_send(fd, "hi", 2, 0, &self));
	check(poll_one(fd, POLLIN, tap_ms(WAIT_MS)));
	check_ret(recvmsg(fd, &msg, MSG_DONTWAIT), 2);
	check_eq(msg.msg_flags & MSG_TRUNC, 0);
	close(fd);
}

static void no_space(void)
{
	struct iovec iov;
	struct msghdr msg = message(&iov, NULL, 0, NULL, 0);
	union addr self;
	int fd = with_hello(&self);

	check_ret(recvmsg(fd, &msg, MSG_DONTWAIT), 0);
	check_eq(msg.msg_flags & MSG_TRUNC, MSG_TRUNC);
	check_err(recvmsg(fd, &msg, MSG_DONTWAIT), EAGAIN);
	close(fd);
}

static void flags_out(void)
{
	char data[8], control[64];
	struct iovec iov;
	struct msghdr msg = message(&iov, data, sizeof(data), NULL, 0);
	union addr self;
	int fd = with_hello(&self);

	msg.msg_control = control;
	msg.msg_controllen = sizeof(control);
	msg.msg_flags = -1;
	check_ret(recvmsg(fd, &msg, MSG_DONTWAIT), 5);
	check_eq(msg.msg_flags & ~MSG_EOR, 0);
	check_eq(msg.msg_controllen, 0);
	close(fd);
}

static void scatter(void)
{
	char a[2], b[4], c[4];
	struct iovec iov[] = { { a, 2 }, { NULL, 0 }, { b, 1 }, { c, 4 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 4 };
	union addr self;
	int fd = with_hello(&self);

	memset(b, POISON, sizeof(b));
	memset(c, POISON, sizeof(c));
	check_ret(recvmsg(fd, &msg, MSG_DONTWAIT), 5);
	check(!memcmp(a, "he", 2) && b[0] == 'l' && !memcmp(c, "lo", 2));
	check_eq((unsigned char)b[1], POISON);
	check_eq((unsigned char)c[2], POISON);
	close(fd);
}

/* ------------------------------------------------------------------ names */

static void source_name(void)
{
	unsigned char raw[sizeof(union addr)];
	char data[8];
	struct iovec iov;
	struct msghdr msg = message(&iov, data, sizeof(data), raw, sizeof(raw));
	union addr self, from;
	int fd = with_hello(&self);

	memset(raw, POISON, sizeof(raw));
	check_ret(recvmsg(fd, &msg, MSG_DONTWAIT), 5);
	memcpy(&from, raw, sizeof(from));
	check(addr_same(&from, &self));
	if (!check_eq(msg.msg_namelen, addr_len(&self)))
		return;
	for (size_t i = msg.msg_namelen; i < sizeof(raw); i++)
		if (raw[i] != POISON)
			tap_fail("byte %zu beyond the name was written", i);
	if (from.sa.sa_family == AF_INET) {
		for (size_t i = 0; i < sizeof(from.in.sin_zero); i++)
			check_eq(from.in.sin_zero[i], 0);
	} else {
		check_eq(from.in6.sin6_flowinfo, 0);
		check_eq(from.in6.sin6_scope_id, 0);
	}
	close(fd);
}

static void name_short(void)
{
	unsigned char raw[sizeof(union addr)];
	char data[8];
	struct iovec iov;
	struct msghdr msg = message(&iov, data, sizeof(data), raw, 4);
	union addr self;
	int fd = with_hello(&self);

	memset(raw, POISON, sizeof(raw));
	check_ret(recvmsg(fd, &msg, MSG_DONTWAIT), 5);
	check_eq(msg.msg_namelen, addr_len(&self));
	for (size_t i = 4; i < sizeof(raw); i++)
		if (raw[i] != POISON)
			tap_fail("byte %zu beyond the name was written", i);
	close(fd);
}

static void name_none(void)
{
	char data[8];
	struct iovec iov;
	struct msghdr msg = message(&iov, data, sizeof(data), NULL, 0);
	union addr self;
	int fd = with_hello(&self);

	check_ret(recvmsg(fd, &msg, MSG_DONTWAIT), 5);
	close(fd);
}

static void several_senders(void)
{
	enum { SENDERS = 8, EACH = 50 };
	int tx[SENDERS], rx, who;
	union addr to, from, names[SENDERS];
	u32 next[SENDERS] = { 0 };
	struct { u32 who, number; } data;

	rx = rds_bound(&to);
	for (int i = 0; i < SENDERS; i++)
		tx[i] = rds_bound(&names[i]);
	for (u32 n = 0; n < EACH; n++)
		for (int i = 0; i < SENDERS; i++) {
			data.who = i;
			data.number = n;
			check_ret(rds_send(tx[i], &data, sizeof(data), 0, &to),
				  sizeof(data));
		}
	for (int n = 0; n < SENDERS * EACH; n++) {
		must(rds_recv_within(rx, &data, sizeof(data), WAIT_MS, &from));
		who = data.who;
		if (who >= SENDERS || !addr_same(&from, &names[who]))
			tap_fail("%s is not sender %d", addr_text(&from), who);
		if (data.number != next[who]++)
			tap_fail("sender %d: message %u, not %u", who,
				 data.number, next[who] - 1);
	}
	close(rx);
}

/* --------------------------------------------------------------- counting */

struct inq {
	int fd;
	int bytes;
};

static bool inq_is(void *arg)
{
	const struct inq *want = arg;
	int bytes = -1;

	must(ioctl(want->fd, SIOCINQ, &bytes));
	return bytes == want->bytes;
}

static void inq(void)
{
	char data[100] = "";
	union addr self;
	int fd = rds_bound(&self), bytes = -1;

	check_ret(ioctl(fd, SIOCINQ, &bytes), 0);
	check_eq(bytes, 0);
	must(rds_send(fd, data, 7, 0, &self));
	must(rds_send(fd, data, 100, 0, &self));
	/* all that can be read, as with TCP */
	must_wait(inq_is, &((struct inq){ fd, 107 }), WAIT_MS);
	must(rds_recv(fd, data, sizeof(data), MSG_DONTWAIT, NULL));
	check_ret(ioctl(fd, SIOCINQ, &bytes), 0);
	check_eq(bytes, 100);
	/* a message that is cut short is read, all of it */
	must(rds_recv(fd, data, 1, MSG_DONTWAIT, NULL));
	check_ret(ioctl(fd, FIONREAD, &bytes), 0);
	check_eq(bytes, 0);
	close(fd);
}

static void outq(void)
{
	char data[100] = "";
	int fd = rds_bound(NULL), rx, bytes = -1;
	union addr to;

	rx = rds_bound(&to);
	check_ret(ioctl(fd, SIOCOUTQ, &bytes), 0);
	check_eq(bytes, 0);
	stall_loop();
	must(rds_send(fd, data, 7, 0, &to));
	must(rds_send(fd, data, 100, 0, &to));
	check_ret(ioctl(fd, SIOCOUTQ, &bytes), 0);
	check_eq(bytes, 107);
	knob("net/xrds/loop/delay_ms", 0);
	/* until the peer's kernel has them: nobody reads */
	must_wait(rds_all_acked, &fd, WAIT_MS);
	close(fd);
	close(rx);
}

static void delayed(void)
{
	union addr self;
	int fd = rds_bound(&self);
	long long start;
	char data[8];

	knob("net/xrds/loop/delay_ms", 200);
	start = tap_tick_ms();
	must(rds_send(fd, "hello", 5, 0, &self));
	check_ret(rds_recv_within(fd, data, sizeof(data), WAIT_MS, NULL), 5);
	check_range(tap_now_ms() - start, 200 - EARLY_MS, tap_ms(WAIT_MS));
	close(fd);
}

static void queued_before_bind(void)
{
	union addr to = addr_of(tap_host, 4000);
	int fd = rds_bound(NULL), rx, bytes;
	char byte;

	check_ret(rds_send(fd, "a", 1, 0, &to), 1);
	/* it is dropped and acknowledged, not kept */
	must_wait(rds_all_acked, &fd, WAIT_MS);
	rx = rds_bound_to(tap_host, 4000, NULL);
	check_ret(rds_send(fd, "b", 1, 0, &to), 1);
	check_ret(rds_recv_within(rx, &byte, 1, WAIT_MS, NULL), 1);
	check_eq(byte, 'b');
	check_ret(ioctl(rx, SIOCINQ, &bytes), 0);
	check_eq(bytes, 0);
	close(fd);
	close(rx);
}

/*
 * How many messages a receiver takes before it is congested; they are numbered.
 * Each has been delivered before the next is sent. So the receiver's messages
 * decide which one is refused, and not the time of delivery.
 */
static int fill(int tx, const union addr *to, int begun)
{
	static int data[FILL_BYTES / sizeof(int)];
	int n = begun;

	for (; n < MOST; n++) {
		must_wait(rds_all_acked, &tx, WAIT_MS);
		data[0] = n;
		if (rds_send(tx, data, sizeof(data), MSG_DONTWAIT, to) < 0)
			break;
	}
	check(n < MOST);
	check_eq(errno, ENOBUFS);
	return n;
}

/* A message that cannot be copied out stays where it was, and counts. */
static void fault_back(void)
{
	int tx = rds_bound(NULL), usual, n, rx[2];
	int data[FILL_BYTES / sizeof(int)];
	union addr to[2];

	for (int i = 0; i < 2; i++) {
		rx[i] = rds_bound(&to[i]);
		rds_set_int(rx[i], SOL_SOCKET, SO_RCVBUF, RCVBUF_BYTES);
	}
	usual = fill(tx, &to[0], 0);
	data[0] = 0;
	check_eq(rds_send(tx, data, sizeof(data), 0, &to[1]), sizeof(data));
	data[0] = 1;
	check_eq(rds_send(tx, data, sizeof(data), 0, &to[1]), sizeof(data));
	must_wait(rds_all_acked, &tx, WAIT_MS);
	for (int i = 0; i < FAULTS; i++) {
		check_err(rds_recv(rx[1], (void *)8, FILL_BYTES, MSG_DONTWAIT,
				   NULL), EFAULT);
		check_eq(rds_recv(rx[1], data, sizeof(data),
				  MSG_PEEK | MSG_DONTWAIT, NULL), sizeof(data));
		check_eq(data[0], 0);
	}
	check_eq(fill(tx, &to[1], 2), usual);
	for (n = 0; n < usual; n++) {
		check_eq(rds_recv(rx[1], data, sizeof(data), MSG_DONTWAIT,
				  NULL), sizeof(data));
		check_eq(data[0], n);
	}
}

static struct {
	int fd;
	struct lazy memory;
} late;

static void *read_late(void *arg)
{
	(void)arg;
	check_err(rds_recv(late.fd, late.memory.page, PAGE_BYTES, 0, NULL),
		  EFAULT);
	return NULL;
}

/* A thread that looks while another one has the message sees none, and sleeps. The
 * other one cannot take it: the memory goes away.
 */
static void fault_wakes(void)
{
	struct reader reader;
	pthread_t first;
	union addr self;

	late.fd = with_hello(&self);
	lazy_open(&late.memory);
	check_eq(pthread_create(&first, NULL, read_late, NULL), 0);
	lazy_await(&late.memory);
	reader_start(&reader, late.fd, 0);
	must(munmap(late.memory.page, PAGE_BYTES));
	lazy_close(&late.memory);
	pthread_join(first, NULL);
	must_wait(returned, &reader, WAIT_MS);
	check_ret(reader.ret, 1);
	close(late.fd);
}

static const struct tap_case cases[] = {
	{ "empty_queue", "nothing to read: EAGAIN when it must not wait",
	  empty_queue, 0, 0 },
	{ "timeout", "SO_RCVTIMEO bounds the wait: ETIMEDOUT", timeout, 0, 0 },
	{ "interrupted", "a signal ends the wait: EINTR", interrupted, 0, 0 },
	{ "restarted", "with SA_RESTART it goes on", restarted, 0, 0 },
	{ "blocking", "a reader that waits is woken", blocking,
	  TAP_EACH_FAMILY, 0 },
	{ "peek_wakes", "although another reader, which peeks, is woken too",
	  peek_wakes, 0, 60 },
	{ "unbound", "an unbound socket has nothing to read", unbound, 0, 0 },
	{ "peek", "MSG_PEEK leaves the message, MSG_TRUNC tells its length",
	  peek, TAP_EACH_FAMILY, 0 },
	{ "truncated", "a short buffer cuts the message and MSG_TRUNC says so",
	  truncated, TAP_EACH_FAMILY, 0 },
	{ "no_space", "a read of nothing consumes the message", no_space,
	  0, 0 },
	{ "flags_out", "no flag and no control message without reason",
	  flags_out, 0, 0 },
	{ "scatter", "a message is spread over all buffers, no byte further",
	  scatter, 0, 0 },
	{ "name", "msg_name is the source, exact in content and length",
	  source_name, TAP_EACH_FAMILY, 0 },
	{ "name_short", "a short name buffer is filled and no byte more",
	  name_short, TAP_EACH_FAMILY, 0 },
	{ "name_none", "the source is optional", name_none, 0, 0 },
	{ "several_senders", "several senders share a port, each in order",
	  several_senders, TAP_EACH_FAMILY, 0 },
	{ "inq", "SIOCINQ counts the bytes that can be read", inq,
	  TAP_EACH_FAMILY, 0 },
	{ "outq", "SIOCOUTQ counts the bytes that the peer's kernel lacks",
	  outq, TAP_EACH_FAMILY, 0 },
	{ "fault_back", "a message that cannot be copied out stays, and counts",
	  fault_back, TAP_EACH_FAMILY, 0 },
	{ "fault_wakes", "and wakes a reader that has looked meanwhile",
	  fault_wakes, 0, 0 },
	{ "delayed", "the loopback's delay knob delays", delayed, 0, 0 },
	{ "queued_before_bind", "a port's earlier messages are not its own",
	  queued_before_bind, TAP_EACH_FAMILY, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
