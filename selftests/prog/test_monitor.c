// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDS_CONG_MONITOR: sockets are told of destinations that are no longer
 * congested, by mask and by address, once.
 *
 * timeout: 120
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "congest.h"
#include "lazy.h"
#include "rdma.h"
#include "sock.h"
#include "tap.h"
#include "waker.h"

enum {
	CHUNK		= 4096,
	SPACE		= 64 * 1024,
	MAX_CLEARED	= 8,
	PATIENCE_MS	= 50,
	NEWS		= POLLIN | POLLWRBAND,
	MASK_ROOM	= CMSG_SPACE(sizeof(u64)),
	ONE_ROOM	= CMSG_SPACE(sizeof(struct sockaddr_storage)),
	NOTICE_ROOM	= CMSG_SPACE(sizeof(struct rds_rdma_notify)),
	ENOUGH_ROOM	= 1024,
};

static char chunk[CHUNK];

/**
 * struct told - what one recvmsg() says of congestion
 * @ret:	its value
 * @flags:	msg_flags
 * @mask:	RDS_CMSG_CONG_UPDATE, 0: none
 * @nr:		addresses of XRDS_CMSG_CONG_CLEARED
 * @cleared:	the addresses
 * @other:	other control messages
 */
struct told {
	ssize_t ret;
	int flags;
	u64 mask;
	int nr;
	struct sockaddr_storage cleared[MAX_CLEARED];
	int other;
};

static void listen_to(struct told *told, int fd, size_t room)
{
	char control[2048] __aligned(8), data[CHUNK];
	struct iovec iov = { data, sizeof(data) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = room ? control : NULL,
			    .msg_controllen = room };
	struct cmsghdr *c;
	size_t len;

	memset(told, 0, sizeof(*told));
	told->ret = recvmsg(fd, &m, MSG_DONTWAIT);
	told->flags = m.msg_flags;
	if (told->ret < 0)
		return;
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		len = c->cmsg_len - CMSG_LEN(0);
		if (c->cmsg_level == SOL_RDS &&
		    c->cmsg_type == RDS_CMSG_CONG_UPDATE &&
		    len == sizeof(told->mask)) {
			memcpy(&told->mask, CMSG_DATA(c), len);
		} else if (c->cmsg_level == SOL_RDS &&
			   c->cmsg_type == XRDS_CMSG_CONG_CLEARED &&
			   len <= sizeof(told->cleared)) {
			memcpy(told->cleared, CMSG_DATA(c), len);
			told->nr = len / sizeof(told->cleared[0]);
		} else {
			told->other++;
		}
	}
}

static bool names(const struct told *told, const union addr *addr)
{
	for (int i = 0; i < told->nr; i++) {
		if (addr_same((const union addr *)&told->cleared[i], addr))
			return true;
	}
	return false;
}

/* A receiver, and @fd refused by it for congestion */
static int congested(int fd, union addr *to)
{
	int rx = small_receiver(to);

	congest(fd, to);
	return rx;
}

static void told_once(void)
{
	int fd = rds_bound(NULL), rx;
	struct told told;
	union addr to;

	rds_set_int(fd, SOL_RDS, RDS_CONG_MONITOR, 1);
	rx = congested(fd, &to);
	check_eq(poll_one(fd, NEWS, 0), 0);
	check_eq(drain_until(rx, fd, NEWS), NEWS);
	/* it is a notice as well */
	check_eq(poll_one(fd, POLLRDNORM, 0), POLLRDNORM);
	/* level: until it is read */
	check_eq(poll_one(fd, NEWS, 0), NEWS);
	check_eq(poll_one(fd, NEWS, 0), NEWS);

	listen_to(&told, fd, 2 * MASK_ROOM + 2 * ONE_ROOM);
	check_ret(told.ret, 0);
	check_eq(told.flags & MSG_CTRUNC, 0);
	check_eq(told.mask, RDS_CONG_MONITOR_MASK(addr_port(&to)));
	check_eq(told.nr, 1);
	check(names(&told, &to));
	check_eq(told.other, 0);

	check_eq(poll_one(fd, NEWS, 0), 0);
	listen_to(&told, fd, 2 * MASK_ROOM + 2 * ONE_ROOM);
	check_err(told.ret, EAGAIN);
	close(fd);
	close(rx);
}

/* A socket with news of two destinations that are not congested any more */
static int two_cleared(union addr *to)
{
	int fd = rds_bound(NULL), rx[2];

	rds_set_int(fd, SOL_RDS, RDS_CONG_MONITOR, 1);
	for (int i = 0; i < 2; i++)
		rx[i] = congested(fd, &to[i]);
	for (int i = 0; i < 2; i++)
		close(rx[i]);
	check_eq(poll_one(fd, NEWS, tap_ms(WAIT_MS)), NEWS);
	return fd;
}

/* One call tells both, by mask and by address */
static void expect_both(int fd, const union addr *to)
{
	struct told told;

	listen_to(&told, fd, ENOUGH_ROOM);
	check_ret(told.ret, 0);
	check_eq(told.flags & MSG_CTRUNC, 0);
	check_eq(told.mask, RDS_CONG_MONITOR_MASK(addr_port(&to[0])) |
			    RDS_CONG_MONITOR_MASK(addr_port(&to[1])));
	check_eq(told.nr, 2);
	check(names(&told, &to[0]));
	check(names(&told, &to[1]));
	listen_to(&told, fd, ENOUGH_ROOM);
	check_err(told.ret, EAGAIN);
}

/* To a reader without space for an address the mask says it all, once: it can
 * sleep. The addresses are for a reader that has space.
 */
static void mask_only(void)
{
	struct told told;
	union addr to[2];
	int fd;

	fd = two_cleared(to);
	listen_to(&told, fd, MASK_ROOM);
	check_ret(told.ret, 0);
	check(told.flags & MSG_CTRUNC);
	check_eq(told.mask, RDS_CONG_MONITOR_MASK(addr_port(&to[0])) |
			    RDS_CONG_MONITOR_MASK(addr_port(&to[1])));
	check_eq(told.nr, 0);
	check_eq(poll_one(fd, NEWS, 0), 0);
	listen_to(&told, fd, MASK_ROOM);
	check_err(told.ret, EAGAIN);
	listen_to(&told, fd, 0);
	check_err(told.ret, EAGAIN);
	expect_both(fd, to);
	close(fd);
}

/* Destinations whose addresses nobody asks for do not use the places up. */
static void mask_only_places(void)
{
	struct told told;
	union addr to[2], more;
	int fd, rx;

	fd = two_cleared(to);
	knob("net/xrds/sock_max_dests", 2);
	rx = rds_bound(&more);
	/* news is not given up for a place */
	check_err(rds_send(fd, "x", 1, MSG_DONTWAIT, &more), ENFILE);
	listen_to(&told, fd, MASK_ROOM);
	check_ret(told.ret, 0);
	check_ret(rds_send(fd, "x", 1, MSG_DONTWAIT, &more), 1);
	listen_to(&told, fd, ENOUGH_ROOM);
	check_ret(told.ret, 0);
	check_eq(told.nr, 1);
	close(fd);
	close(rx);
}

/* A notice of an op waits to be read */
static void give_notice(int fd, struct target *t)
{
	static char byte;
	struct op op;

	target_open(t, PAGE_BYTES, RDS_RDMA_READWRITE);
	op = op_write(t, 0, &byte, 1);
	op_set(&op, RDS_RDMA_NOTIFY_ME, 0);
	check_ret(op_send(fd, &t->addr, &op), 0);
	check_eq(poll_one(fd, POLLRDNORM, tap_ms(WAIT_MS)), POLLRDNORM);
}

/* The space that notices left is not all that the program has */
static void behind_notices(void)
{
	struct target target;
	struct told told;
	union addr to[2];
	int fd;

	loop_only();
	fd = two_cleared(to);
	give_notice(fd, &target);
	listen_to(&told, fd, NOTICE_ROOM + MASK_ROOM);
	check_ret(told.ret, 0);
	check(told.flags & MSG_CTRUNC);
	check_eq(told.other, 1);
	check_eq(told.mask, 0);
	check_eq(poll_one(fd, NEWS, 0), NEWS);
	expect_both(fd, to);
	close(fd);
	target_close(&target);
}

/* ------------------------------------------------------ that cannot be copied */

static ssize_t listen_at(int fd, void *control, size_t room)
{
	struct msghdr m = { .msg_control = control, .msg_controllen = room };

	return recvmsg(fd, &m, MSG_DONTWAIT);
}

static void no_copy(void)
{
	char *wall = before_wall(PROT_READ | PROT_WRITE);
	union addr to[2];
	int fd;

	fd = two_cleared(to);
	/* neither the addresses, nor even the mask */
	check_err(listen_at(fd, wall - MASK_ROOM, ENOUGH_ROOM), EFAULT);
	check_eq(poll_one(fd, NEWS, 0), NEWS);
	check_eq(poll_one(fd, NEWS, 0), NEWS);
	check_err(listen_at(fd, wall, ENOUGH_ROOM), EFAULT);
	check_eq(poll_one(fd, NEWS, 0), NEWS);
	expect_both(fd, to);
	close(fd);
}

static struct {
	int fd;
	struct lazy memory;
} late;

static void *listen_late(void *arg)
{
	(void)arg;
	check_err(listen_at(late.fd, late.memory.page, PAGE_BYTES), EFAULT);
	return NULL;
}

static bool woken(void *arg)
{
	const struct waker *w = arg;

	return READ_ONCE(w->returns);
}

/* A thread that looks while another one has the news sees none, and sleeps. The
 * other one cannot take it: the memory goes away.
 */
static void poll_meanwhile(int fd, int events)
{
	pthread_t reader;
	struct waker w;

	late.fd = fd;
	lazy_open(&late.memory);
	check_eq(pthread_create(&reader, NULL, listen_late, NULL), 0);
	lazy_await(&late.memory);
	waker_start(&w, fd, events);
	must(munmap(late.memory.page, PAGE_BYTES));
	lazy_close(&late.memory);
	pthread_join(reader, NULL);
	check(tap_wait(woken, &w, WAIT_MS));
	waker_stop(&w);
	check_eq(w.seen, events);
}

static void no_copy_wakes(void)
{
	struct target target;
	union addr to[2];
	int fd;

	loop_only();
	fd = two_cleared(to);
	poll_meanwhile(fd, NEWS);
	expect_both(fd, to);
	give_notice(fd, &target);
	poll_meanwhile(fd, POLLIN | POLLRDNORM);
	close(fd);
	target_close(&target);
}

static void little_room(void)
{
	struct told told[2];
	union addr to[2];
	int fd;

	fd = two_cleared(to);

	listen_to(&told[0], fd, 0);
	check_ret(told[0].ret, 0);
	check(told[0].flags & MSG_CTRUNC);
	check_eq(poll_one(fd, NEWS, 0), NEWS);

	for (int i = 0; i < 2; i++) {
		listen_to(&told[i], fd, MASK_ROOM + ONE_ROOM);
		check_ret(told[i].ret, 0);
		check_eq(!!(told[i].flags & MSG_CTRUNC), !i);
		check_eq(told[i].nr, 1);
	}
	for (int i = 0; i < 2; i++)
		check(names(&told[0], &to[i]) != names(&told[1], &to[i]));
	check_eq(poll_one(fd, NEWS, 0), 0);
	close(fd);
}

static void data_passes(void)
{
	int fd = rds_bound(NULL), tx = rds_bound(NULL), rx;
	union addr self = rds_self(fd), to;
	struct told told;

	rds_set_int(fd, SOL_RDS, RDS_CONG_MONITOR, 1);
	rx = congested(fd, &to);
	close(rx);
	check_eq(poll_one(fd, NEWS, tap_ms(WAIT_MS)), NEWS);
	/* a reader without room for news gets data */
	check_ret(rds_send(tx, "x", 1, 0, &self), 1);
	check_eq(poll_one(fd, POLLIN | POLLRDNORM, tap_ms(WAIT_MS)),
		 POLLIN | POLLRDNORM);
	listen_to(&told, fd, 0);
	check_ret(told.ret, 1);
	check(told.flags & MSG_CTRUNC);
	listen_to(&told, fd, MASK_ROOM + ONE_ROOM);
	check_ret(told.ret, 0);
	check(names(&told, &to));
	close(fd);
	close(tx);
}

static void not_for_others(void)
{
	int fd = rds_bound(NULL), other = rds_bound(NULL), rx;
	struct told told;
	union addr to;

	rds_set_int(fd, SOL_RDS, RDS_CONG_MONITOR, 1);
	rds_set_int(other, SOL_RDS, RDS_CONG_MONITOR, 1);
	rx = congested(fd, &to);
	check_eq(drain_until(rx, fd, NEWS), NEWS);
	/* it was not refused, so it is not told */
	check_eq(poll_one(other, NEWS, 0), 0);
	listen_to(&told, other, MASK_ROOM + ONE_ROOM);
	check_err(told.ret, EAGAIN);
	close(fd);
	close(other);
	close(rx);
}

static void switched_off(void)
{
	int fd = rds_bound(NULL), rx;
	struct told told;
	union addr to;

	rds_set_int(fd, SOL_RDS, RDS_CONG_MONITOR, 1);
	check_eq(rds_get_int(fd, SOL_RDS, RDS_CONG_MONITOR), 1);
	rx = congested(fd, &to);
	check_eq(drain_until(rx, fd, NEWS), NEWS);
	rds_set_int(fd, SOL_RDS, RDS_CONG_MONITOR, 0);
	check_eq(rds_get_int(fd, SOL_RDS, RDS_CONG_MONITOR), 0);
	check_eq(poll_one(fd, NEWS, 0), 0);
	listen_to(&told, fd, MASK_ROOM + ONE_ROOM);
	check_err(told.ret, EAGAIN);
	close(fd);
	close(rx);
}

/* ------------------------------------------------- sends that may wait */

struct sender {
	pthread_t thread;
	int fd;
	union addr to;
	ssize_t ret;
};

static void *send_waiting(void *arg)
{
	struct sender *s = arg;

	s->ret = rds_send(s->fd, chunk, CHUNK, 0, &s->to);
	return NULL;
}

static bool waits(void *arg)
{
	struct xrds_dest_status st;
	struct sender *s = arg;

	return !dest_status(s->fd, &s->to, &st) &&
	       st.flags & XRDS_DEST_BLOCKED;
}

static void wait_out(bool monitor)
{
	int other = rds_bound(NULL), rx;
	struct sender s = { .fd = rds_bound(NULL) };
	struct told told;

	rds_set_int(s.fd, SOL_RDS, RDS_CONG_MONITOR, monitor);
	rx = congested(other, &s.to);
	check_eq(pthread_create(&s.thread, NULL, send_waiting, &s), 0);
	must_wait(waits, &s, WAIT_MS);
	check_eq(drain_until(rx, other, NEWS), NEWS);
	pthread_join(s.thread, NULL);
	check_eq(s.ret, CHUNK);
	check_eq(poll_one(s.fd, NEWS, 0), 0);
	listen_to(&told, s.fd, MASK_ROOM + ONE_ROOM);
	check_err(told.ret, EAGAIN);
	close(s.fd);
	close(other);
	close(rx);
}

static void waited_out(void)
{
	wait_out(true);
}

static void waited_out_off(void)
{
	wait_out(false);
}

static void send_interrupted(int fd, const union addr *to)
{
	tap_interrupt(PATIENCE_MS, 0);
	check_err(rds_send(fd, chunk, CHUNK, 0, to), EINTR);
	tap_interrupt(0, 0);
}

static void given_up(void)
{
	int other = rds_bound(NULL), fd[4], rx;
	union addr to;

	rx = congested(other, &to);
	/* in turn with the option and without it */
	for (int i = 0; i < 4; i++) {
		fd[i] = rds_bound(NULL);
		rds_set_int(fd[i], SOL_RDS, RDS_CONG_MONITOR, i % 2);
	}
	for (int i = 0; i < 2; i++) {
		rds_timeout(fd[i], SO_SNDTIMEO, PATIENCE_MS);
		check_err(rds_send(fd[i], chunk, CHUNK, 0, &to), ETIMEDOUT);
		send_interrupted(fd[2 + i], &to);
	}
	check_eq(drain_until(rx, other, NEWS), NEWS);
	for (int i = 0; i < 4; i++) {
		tap_context("socket %d", i);
		check_eq(poll_one(fd[i], NEWS, tap_ms(WAIT_MS)), NEWS);
		close(fd[i]);
	}
	close(other);
	close(rx);
}

static const struct tap_case cases[] = {
	{ "told_once", "the end of congestion is told once, by name and mask",
	  told_once, TAP_EACH_FAMILY, 0 },
	{ "mask_only", "no space for addresses: the mask, once; they come later",
	  mask_only, TAP_EACH_FAMILY, 0 },
	{ "mask_only_places", "such destinations give their place to others",
	  mask_only_places, 0, 0 },
	{ "behind_notices", "nor are they lost where notices took the space",
	  behind_notices, 0, 0 },
	{ "no_copy", "news that cannot be copied out is told again", no_copy,
	  0, 0 },
	{ "no_copy_wakes", "and wakes those that have looked meanwhile",
	  no_copy_wakes, 0, 0 },
	{ "little_room", "news that find no room are told later", little_room,
	  0, 0 },
	{ "data_passes", "without room for news data is read", data_passes,
	  0, 0 },
	{ "not_for_others", "a socket that was not refused is not told",
	  not_for_others, 0, 0 },
	{ "switched_off", "news that wait go when the option does",
	  switched_off, 0, 0 },
	{ "waited_out", "a send that waits and succeeds was not refused",
	  waited_out, TAP_EACH_FAMILY, 0 },
	{ "waited_out_off", "nor is it news without the option",
	  waited_out_off, 0, 0 },
	{ "given_up", "ETIMEDOUT and EINTR are refusals", given_up, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
