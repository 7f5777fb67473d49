// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: RDMA ops and memory regions while a script takes the
 * devices of both nodes away and brings them back. See remote.h for the
 * command line.
 */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "pattern.h"
#include "remote.h"
#include "tap.h"
#include "turns.h"

/* ------------------------------------------------------------------ churn */

enum {
	SLOTS		= 32,		/* ops under way */
	SLOT_BYTES	= 8 * 1024,
	OWN_BYTES	= 64 * 1024,
	OWN_EVERY	= 64,		/* ops, for one the other way */
	LIMIT_MS	= 60000,	/* for the end of all ops */
	SEED		= 5,
	OWN_SEED	= 6,
	POISON		= 'p',
};

#define WRITABLE RDS_RDMA_READWRITE

static struct churn {
	struct remote r;
	int fd;
	struct target t;	/* is read, until its device has gone */
	char *mem;
	int status[SLOTS];	/* -1: not known */
	struct tally tally;
	u64 mark;

	int own_fd;		/* the region that is offered */
	char *own;
	u64 own_cookie;
	u64 renewed, own_renewed, own_writes;
} churn;

/* Registers again when the device is there again */
static void own_register(struct churn *c)
{
	long long end = tap_now_ms() + tap_ms(LIMIT_MS);

	while (mr_get(c->own_fd, c->own, OWN_BYTES, WRITABLE, &c->own_cookie)) {
		if (errno != ENODEV || tap_now_ms() > end)
			tap_fail("RDS_GET_MR: %s", tap_errno_name(errno));
		poll(NULL, 0, 10);
	}
}

/* For this node as well, which needs no device to write */
static void own_is_void(struct churn *c)
{
	struct target t = { .addr = rds_self(c->own_fd),
			    .cookie = c->own_cookie };
	char byte = 0;
	struct op op;

	op = op_write(&t, 0, &byte, 1);
	check_eq(op_run(c->own_fd, &t.addr, &op), RDS_RDMA_REMOTE_ERROR);
}

/* The other node writes here. The key ends with the device; to give the region
 * back is right all the same.
 */
static void own_write(struct churn *c)
{
	int status = remote_write_here(&c->r, c->own_cookie, SLOT_BYTES,
				       OWN_BYTES);

	switch (status) {
	case RDS_RDMA_SUCCESS:
		check(stamped(c->own, OWN_BYTES, OWN_SEED));
		memset(c->own, 0, OWN_BYTES);
		c->own_writes++;
		break;
	case RDS_RDMA_REMOTE_ERROR:
		own_is_void(c);
		must(mr_free(c->own_fd, c->own_cookie));
		check_err(mr_free(c->own_fd, c->own_cookie), EINVAL);
		own_register(c);
		c->own_renewed++;
		break;
	case RDS_RDMA_DROPPED:
		break;
	default:
		tap_fail("status %d", status);
	}
}

static void churn_notices(struct churn *c)
{
	struct got got;

	while (got_within(c->fd, &got, 0) >= 0) {
		tally_add(&c->tally, &got);
		for (int i = 0; i < got.nr_status; i++)
			c->status[got.status[i].user_token % SLOTS] =
				got.status[i].status;
	}
}

/* The mark has reached it: its notice is there, and the memory is ours */
static void churn_take(struct churn *c, u64 number)
{
	char *slot = c->mem + number % SLOTS * SLOT_BYTES;
	int *status = &c->status[number % SLOTS];
	struct xrds_barrier b;

	must(barrier(c->fd, &c->t.addr, number + 1, 0, tap_ms(LIMIT_MS), &b));
	check(b.completed >= c->mark);
	c->mark = b.completed;
	churn_notices(c);
	check(*status >= 0);
	if (*status == RDS_RDMA_SUCCESS)
		check(stamped(slot, SLOT_BYTES, SEED));
	memset(slot, 0, SLOT_BYTES);
	if (*status != RDS_RDMA_REMOTE_ERROR)
		return;
	/* those behind it have the same key, and are no reason to ask again */
	if (number < c->renewed)
		return;
	remote_free(&c->r, &c->t);
	c->t = remote_get(&c->r, 0, SLOT_BYTES, 0);
	c->renewed = c->tally.sent;
}

static void churn_issue(struct churn *c)
{
	u64 number = c->tally.sent, id;
	struct op op;

	op = op_read(&c->t, 0, c->mem + number % SLOTS * SLOT_BYTES,
		     SLOT_BYTES);
	op.id = &id;
	op_set(&op, RDS_RDMA_SILENT | RDS_RDMA_NOTIFY_ME, number);
	c->status[number % SLOTS] = -1;
	must(op_send(c->fd, &c->t.addr, &op));
	check_eq(id, ++c->tally.sent);
}

static void churn_open(struct churn *c)
{
	remote_open(&c->r);
	c->fd = rds_bound(NULL);
	c->mem = pages(SLOTS * SLOT_BYTES);
	c->own_fd = rds_bound(NULL);
	c->own = pages(OWN_BYTES);
	remote_stamp(&c->r, 0, SLOT_BYTES, SEED);
	remote_stamp(&c->r, SLOT_BYTES, OWN_BYTES, OWN_SEED);
	c->t = remote_get(&c->r, 0, SLOT_BYTES, 0);
	own_register(c);
}

/* Until SIGUSR1 */
static void churn_run(void)
{
	struct churn *c = &churn;
	u64 n;

	churn_open(c);
	for (n = 0; !remote_stop() || n < SLOTS; n++) {
		if (n >= SLOTS)
			churn_take(c, n - SLOTS);
		if (n % OWN_EVERY == OWN_EVERY - 1)
			own_write(c);
		churn_issue(c);
		if (n == SLOTS)
			remote_say("flowing");
	}
	remote_say("sent %llu", n);
	for (u64 i = n - SLOTS; i < n; i++)
		churn_take(c, i);
	check_eq(mark(c->fd, &c->t.addr), c->tally.sent);
	check_eq(issued(c->fd, &c->t.addr), c->tally.sent);
	check_eq(c->tally.done, c->tally.sent);
	check_eq(c->tally.other, 0);
	check_quiet(c->fd);
	must(mr_free(c->own_fd, c->own_cookie));
	check_pinned_falls(0);
	remote_say("own: writes=%llu renewed=%llu", c->own_writes,
		   c->own_renewed);
	tally_print("churn", &c->tally);
}

/* ------------------------------------------------------------------- keys */

enum { REGIONS = 600 };

/* Says "ready" with regions that will lose their device, and at SIGUSR1, when
 * there is another, registers as many. None has a key that one of the others
 * had, though those are good for nothing any more.
 */
static void keys(void)
{
	char *mem = pages(PAGE_BYTES);
	int fd = rds_bound(NULL);
	u64 cookies[2 * REGIONS];

	for (int i = 0; i < REGIONS; i++)
		must(mr_get(fd, mem, PAGE_BYTES, 0, &cookies[i]));
	remote_say("ready");
	while (!remote_stop())
		poll(NULL, 0, 10);
	for (int i = REGIONS; i < 2 * REGIONS; i++) {
		must(mr_get(fd, mem, PAGE_BYTES, 0, &cookies[i]));
		for (int j = 0; j < i; j++)
			check(cookies[i] != cookies[j]);
	}
	for (int i = 0; i < 2 * REGIONS; i++)
		must(mr_free(fd, cookies[i]));
	check_pinned_falls(0);
}

/* A key has eight bits that change with each use of the device's object */
enum { STALE_ROUNDS = 256 };

/* Registers as many regions as before; returns how many have the number of an
 * old one. None has its address.
 */
static int stale_round(int fd, char *mem, const u64 *old)
{
	u64 cookies[REGIONS];
	int again = 0;

	for (int i = 0; i < REGIONS; i++) {
		must(mr_get(fd, mem, PAGE_BYTES, 0, &cookies[i]));
		for (int j = 0; j < REGIONS; j++) {
			again += (u32)cookies[i] == (u32)old[j];
			check(cookies[i] != old[j]);
		}
	}
	for (int i = 0; i < REGIONS; i++)
		must(mr_free(fd, cookies[i]));
	return again;
}

/* Says "ready" when it has freed its regions, and at SIGUSR1, when there is
 * another device, registers others until one has an old number.
 */
static void stale(void)
{
	char *mem = pages(PAGE_BYTES);
	int fd = rds_bound(NULL);
	int again = 0, rounds = 0;
	u64 old[REGIONS];

	for (int i = 0; i < REGIONS; i++)
		must(mr_get(fd, mem, PAGE_BYTES, 0, &old[i]));
	for (int i = 0; i < REGIONS; i++)
		must(mr_free(fd, old[i]));
	remote_say("ready");
	while (!remote_stop())
		poll(NULL, 0, 10);
	while (!again && rounds++ < STALE_ROUNDS)
		again = stale_round(fd, mem, old);
	check(again > 0);
	remote_say("%d numbers again after %d rounds", again, rounds);
	close(fd);
	check_pinned_falls(0);
}

/* Registers and frees as many regions as the argument says. */
static void spend(void)
{
	char *mem = pages(PAGE_BYTES);
	int fd = rds_bound(NULL);
	u64 cookie;

	for (long long left = remote_arg(0, 1); left; left--) {
		must(mr_get(fd, mem, PAGE_BYTES, 0, &cookie));
		must(mr_free(fd, cookie));
	}
	check_pinned_falls(0);
}

/* ------------------------------------------------------------------- lost */

enum {
	LOST		= 300,
	/* with room for this many of them at once */
	LOST_AT_ONCE	= 3,
};

/* One of the cookies, which is told for the first time */
static void lost_check(int fd, const struct xrds_mr_event *event,
		       u64 *cookies, u32 reason)
{
	check_eq(event->reason, reason);
	check_eq(event->reserved, 0);
	for (int i = 0; i < LOST; i++) {
		if (cookies[i] != event->cookie)
			continue;
		must(mr_free(fd, cookies[i]));
		cookies[i] = 0;
		return;
	}
	tap_fail("cookie %llx", event->cookie);
}

/* Registers regions, says "ready", and is told of each that it is lost, for the
 * reason that is the argument. A region that was freed is not told of, nor is
 * a socket with another address.
 */
static void lost(void)
{
	size_t room = LOST_AT_ONCE * CMSG_SPACE(sizeof(struct xrds_mr_event));
	int fd = rds_bound(NULL), loop = rds_bound_to("127.0.0.1", 0, NULL);
	char *mem = pages(PAGE_BYTES);
	u64 cookies[LOST], cookie, kept;
	struct got got;

	for (int i = 0; i < LOST; i++)
		must(mr_get(fd, mem, PAGE_BYTES, WRITABLE, &cookies[i]));
	must(mr_get(loop, mem, PAGE_BYTES, WRITABLE, &kept));
	must(mr_get(fd, mem, PAGE_BYTES, WRITABLE, &cookie));
	must(mr_free(fd, cookie));
	check_quiet(fd);
	remote_say("ready");
	for (int left = LOST; left; left -= got.nr_lost) {
		must(poll_one(fd, POLLIN, tap_ms(LIMIT_MS)) - 1);
		check_eq(got_now(fd, &got, room), 0);
		check_range(got.nr_lost, 1, LOST_AT_ONCE);
		if (got.flags & MSG_CTRUNC)
			check(left > got.nr_lost);
		for (int i = 0; i < got.nr_lost; i++)
			lost_check(fd, &got.lost[i], cookies,
				   remote_arg(0, 0));
	}
	check_quiet(fd);
	check_quiet(loop);
	must(mr_free(loop, kept));
	check_pinned_falls(0);
}

/* Says "ready", and registers a region. Its address has moved by the end of the call. */
static void moved(void)
{
	int fd = rds_bound(NULL);
	char *mem = pages(PAGE_BYTES);
	struct got got;
	u64 cookie;

	remote_say("ready");
	must(mr_get(fd, mem, PAGE_BYTES, WRITABLE, &cookie));
	check_ret(got_within(fd, &got, tap_ms(LIMIT_MS)), 0);
	check_eq(got.nr_lost, 1);
	check_eq(got.lost[0].cookie, cookie);
	check_eq(got.lost[0].reason, XRDS_MR_ADDRESS_MOVED);
}

/* Registers as many regions, says "ready", and closes their socket at SIGUSR1. */
static void closes(void)
{
	char *mem = pages(PAGE_BYTES);
	int fd = rds_bound(NULL);
	long long begin;
	u64 cookie;

	for (int i = 0; i < LOST; i++)
		must(mr_get(fd, mem, PAGE_BYTES, WRITABLE, &cookie));
	remote_say("ready");
	while (!remote_stop())
		poll(NULL, 0, 10);
	turns_begin();
	begin = tap_now_ms();
	close(fd);
	remote_say("closed after %lld ms", turns_since(begin));
}

/* Says "ready", and at SIGUSR1 has the other node use a region, which ends it. As
 * soon as this node wants to end it, too, no peer can touch the memory.
 */
static void used(void)
{
	char *mem = pages(PAGE_BYTES);
	int fd = rds_bound(NULL);
	struct remote r;
	u64 cookie;

	remote_open(&r);
	must(mr_get(fd, mem, PAGE_BYTES, WRITABLE | RDS_RDMA_USE_ONCE, &cookie));
	remote_say("ready");
	while (!remote_stop())
		poll(NULL, 0, 10);
	check_eq(remote_write_here(&r, cookie, 0, PAGE_BYTES), RDS_RDMA_SUCCESS);
	check_err(mr_free(fd, cookie), EINVAL);
	memset(mem, POISON, PAGE_BYTES);
	check_eq(remote_write_here(&r, cookie, 0, PAGE_BYTES),
		 RDS_RDMA_REMOTE_ERROR);
	check(filled(mem, PAGE_BYTES, POISON));
	close(fd);
	check_pinned_falls(0);
}

/* ------------------------------------------------------------------ binds */

/* A socket that is bound just before its device goes: it gets a region or an
 * error, an op to itself goes over the loopback, and a message to the other
 * node waits.
 */
static void bound_works(int fd, const union addr *to, char *mem)
{
	u64 cookie;

	if (mr_get(fd, mem, PAGE_BYTES, 0, &cookie))
		check_eq(errno, ENODEV);
	must(rds_send(fd, "x", 1, MSG_DONTWAIT, to));
}

/* Binds, uses and closes sockets of the node's address until SIGUSR1, with and
 * without a device behind it.
 */
static void binds(void)
{
	union addr self = addr_of(tap_host, 0), to = addr_of(remote_host, 9);
	struct linger abort = { .l_onoff = 1 };
	char *mem = pages(PAGE_BYTES);
	u64 bound = 0, refused = 0;
	int fd;

	remote_say("binding");
	while (!remote_stop()) {
		fd = rds_socket();
		if (!bind(fd, &self.sa, addr_len(&self))) {
			bound++;
			bound_works(fd, &to, mem);
		} else {
			check_eq(errno, EADDRNOTAVAIL);
			refused++;
		}
		must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort,
				sizeof(abort)));
		close(fd);
	}
	check_pinned_falls(0);
	remote_say("binds: bound=%llu refused=%llu", bound, refused);
}

static const struct mode modes[] = {
	{ "binds", binds },
	{ "closes", closes },
	{ "keys", keys },
	{ "lost", lost },
	{ "moved", moved },
	{ "spend", spend },
	{ "stale", stale },
	{ "used", used },
	{ "churn", churn_run },
};

int main(int argc, char **argv)
{
	return remote_main(argc, argv, modes, ARRAY_SIZE(modes));
}
