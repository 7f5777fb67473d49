// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: many RDMA ops at once, while a script cuts and mends the
 * network, or ends the remote node. See remote.h for the command line.
 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counters.h"
#include "pattern.h"
#include "remote.h"
#include "tap.h"
#include "turns.h"
#include "watcher.h"

enum {
	SOCKETS		= 4,
	SMALL		= 100,
	LARGE		= 128 * 1024,
	LIMIT_MS	= 60000,	/* for the end of all ops */
	RELEASE_MS	= 1000,		/* of a barrier, as promised */
	WINDOW		= 256,		/* ops, twice what a queue pair takes */
};

#define WRITABLE RDS_RDMA_READWRITE
#define KNOB "/sys/kernel/debug/xrds/break"

/* ------------------------------------------------------------- bystanders */

struct bystander {
	pthread_t thread;
	bool stop;
	long calls;
	int max_ms;
};

/* Calls over another socket, one after the other */
static void *bystander_thread(void *arg)
{
	struct bystander *b = arg;
	struct remote r;

	remote_open(&r);
	while (!READ_ONCE(b->stop)) {
		long long start = tap_now_ms();

		remote_nop(&r);
		if (tap_now_ms() - start > b->max_ms)
			b->max_ms = tap_now_ms() - start;
		b->calls++;
	}
	close(r.fd);
	return NULL;
}

static void bystander_start(struct bystander *b)
{
	memset(b, 0, sizeof(*b));
	pthread_create(&b->thread, NULL, bystander_thread, b);
}

static void bystander_end(struct bystander *b)
{
	WRITE_ONCE(b->stop, true);
	pthread_join(b->thread, NULL);
	remote_say("bystander: calls=%ld max_ms=%d", b->calls, b->max_ms);
}

/* ------------------------------------------------------------------ flood */

/* COUNT ops that no message follows visibly: each notifies, once */
static void flood(void)
{
	u64 count = remote_arg(0, 10000);
	bool *seen = calloc(count, sizeof(*seen));
	struct tally tally = { 0 };
	struct remote_heard before;
	struct bystander bystander;
	int fd = rds_bound(NULL);
	char mem[SMALL] = { 1 };
	struct target t;
	struct remote r;
	struct got got;
	struct op op;

	remote_open(&r);
	t = remote_get(&r, 0, SMALL, WRITABLE);
	before = remote_heard(&r);
	bystander_start(&bystander);
	while (tally.done < count) {
		while (tally.sent < count) {
			op = op_write(&t, 0, mem, sizeof(mem));
			op.msg_flags = MSG_DONTWAIT;
			op_set(&op, RDS_RDMA_SILENT | RDS_RDMA_NOTIFY_ME,
			       tally.sent);
			if (op_send(fd, &t.addr, &op) < 0)
				break;
			tally.sent++;
		}
		if (got_within(fd, &got, WAIT_MS) < 0)
			break;
		tally_add(&tally, &got);
		for (int i = 0; i < got.nr_status; i++) {
			check(!seen[got.status[i].user_token]);
			seen[got.status[i].user_token] = true;
		}
	}
	bystander_end(&bystander);
	tally_print("flood", &tally);
	check_eq(tally.success, count);
	check_quiet(fd);
	check_eq(mark(fd, &t.addr), count);
	check(bystander.calls >= 5);
	check_range(bystander.max_ms, 0, tap_ms(WAIT_MS));
	/* the socket there heard nothing of it */
	check_eq(remote_heard(&r).count, before.count);
}

/* ------------------------------------------------------------ outstanding */

/* When the last op ended, and when the transport has noticed that the connection is
 * lost, or 0 if the last barrier was released without that. How long the silence was
 * is counted in turns of the node.
 */
struct noticed {
	pthread_t thread;
	long long resets, failed, done;
	long long since, when;
	long long silent_ms;
	bool stop;
};

/* Those that end when the transport has noticed are counted behind that */
static bool has_noticed(struct noticed *n)
{
	long long done = counter_now("rdma_done");

	if (counter_now("conn_reset") != n->resets ||
	    counter_now("ib_tx_comp_error") != n->failed)
		return true;
	if (done != n->done)
		n->since = tap_now_ms();
	n->done = done;
	return false;
}

static void *noticed_thread(void *arg)
{
	struct noticed *n = arg;
	bool noticed;

	while (!(noticed = has_noticed(n)) && !READ_ONCE(n->stop))
		poll(NULL, 0, 5);
	n->silent_ms = turns_since(n->since);
	WRITE_ONCE(n->when, noticed ? tap_now_ms() : 0);
	return NULL;
}

static void noticed_start(struct noticed *n)
{
	turns_begin();
	n->resets = counter_now("conn_reset");
	n->failed = counter_now("ib_tx_comp_error");
	n->since = tap_now_ms();
	pthread_create(&n->thread, NULL, noticed_thread, n);
}

static void released_in_time(struct noticed *n, const int *fds,
			     const struct target *t, const struct tally *tallies)
{
	long long when, late_ms;
	struct xrds_barrier b;

	for (int i = 0; i < SOCKETS; i++)
		check_ret(barrier(fds[i], &t->addr, tallies[i].sent, 0,
				  tap_ms(LIMIT_MS), &b), 0);
	when = READ_ONCE(n->when);
	late_ms = when ? turns_since(when) : 0;
	WRITE_ONCE(n->stop, true);
	pthread_join(n->thread, NULL);
	remote_say("released %lld ms after the transport noticed %lld ms of silence",
		   late_ms, n->silent_ms);
	check_range(late_ms, 0, tap_ms(RELEASE_MS));
}

/* Issues reads by several sockets until COUNT are outstanding, says so, and
 * waits for their end
 */
static void outstanding(void)
{
	u64 count = remote_arg(0, 1000), done = 0, sent = 0;
	struct tally tallies[SOCKETS] = { 0 }, sum = { 0 };
	struct noticed noticed = { 0 };
	char *mem = pages(LARGE);
	int fds[SOCKETS];
	struct target t;
	struct remote r;
	struct op op;

	remote_open(&r);
	t = remote_get(&r, 0, LARGE, 0);
	for (int i = 0; i < SOCKETS; i++) {
		fds[i] = rds_bound(NULL);
		rds_set_int(fds[i], SOL_SOCKET, SO_SNDBUF, 1 << 20);
	}
	for (; sent - done < count; sent++) {
		op = op_read(&t, 0, mem, LARGE);
		op_set(&op, RDS_RDMA_SILENT | RDS_RDMA_NOTIFY_ME, sent);
		must(op_send(fds[sent % SOCKETS], &t.addr, &op));
		tallies[sent % SOCKETS].sent++;
		done = 0;
		for (int i = 0; i < SOCKETS; i++)
			done += mark(fds[i], &t.addr);
	}
	noticed_start(&noticed);
	remote_say("outstanding %llu of %llu", sent - done, sent);
	released_in_time(&noticed, fds, &t, tallies);
	for (int i = 0; i < SOCKETS; i++) {
		check(tally_all(fds[i], &tallies[i], LIMIT_MS));
		check_eq(mark(fds[i], &t.addr), tallies[i].sent);
		check_eq(issued(fds[i], &t.addr), tallies[i].sent);
		sum.sent += tallies[i].sent;
		sum.done += tallies[i].done;
		sum.success += tallies[i].success;
		sum.dropped += tallies[i].dropped;
		sum.remote_error += tallies[i].remote_error;
		sum.other += tallies[i].other;
	}
	remote_say("all ended");
	for (int i = 0; i < SOCKETS; i++)
		check_quiet(fds[i]);
	check_eq(sum.done, sum.sent);
	tally_print("outstanding", &sum);
	/* done or lost; one may have met a region that went with its device */
	check_eq(sum.success + sum.dropped + sum.remote_error, sum.sent);
}

/* ------------------------------------------------------------------ marks */

/* Ops of all kinds, each with its identifier, until COUNT were sent or
 * SIGUSR1; every BAD-th has a wrong key. All notify.
 */
static void marks_run(int fd, struct target *t, u64 count, u64 bad)
{
	struct tally tally = { 0 };
	char *mem = pages(LARGE);
	struct watcher watcher;
	struct xrds_barrier b;
	struct got got;
	struct op op;
	u64 id = 0;

	watcher_start(&watcher, fd, &t->addr);
	while (tally.sent < count && !remote_stop()) {
		op = tally.sent % 2 ? op_read(t, 0, mem, SMALL) :
				      op_write(t, SMALL, mem, SMALL);
		if (bad && tally.sent % bad == bad - 1)
			op.rdma.cookie ^= 1 << 30;
		op.id = &id;
		op_set(&op, RDS_RDMA_SILENT | RDS_RDMA_NOTIFY_ME, 0);
		must(op_send(fd, &t->addr, &op));
		check_eq(id, ++tally.sent);
		if (id == 1)
			remote_say("flowing");
		if (id > WINDOW)
			check_ret(barrier(fd, &t->addr, id - WINDOW, 0,
					  tap_ms(LIMIT_MS), &b), 0);
		while (got_within(fd, &got, 0) >= 0)
			tally_add(&tally, &got);
	}
	remote_say("sent %llu", id);
	check_ret(barrier(fd, &t->addr, id, 0, tap_ms(LIMIT_MS), &b), 0);
	check_eq(b.completed, id);
	check_eq(b.issued, id);
	check(tally_all(fd, &tally, WAIT_MS));
	watcher_end(&watcher);
	check_quiet(fd);
	check_eq(tally.done, tally.sent);
	tally_print("marks", &tally);
}

static void marks(void)
{
	int fd = rds_bound(NULL);
	struct target t;
	struct remote r;

	remote_open(&r);
	t = remote_get(&r, 0, LARGE, WRITABLE);
	marks_run(fd, &t, remote_arg(0, 1000), remote_arg(1, 0));
}

/* The same toward a node that is not there */
static void nobody(void)
{
	struct target t = { .addr = addr_of(remote_host, REMOTE_PORT),
			    .cookie = 0x12345678 };

	marks_run(rds_bound(NULL), &t, remote_arg(0, 300), 0);
}

/* Issues COUNT reads into memory of its own, offers some, and stays */
static void hold(void)
{
	u64 count = remote_arg(0, 100), cookie;
	char *mem = pages(LARGE);
	int fd = rds_bound(NULL);
	struct target t;
	struct remote r;
	struct op op;

	remote_open(&r);
	t = remote_get(&r, 0, LARGE, 0);
	must(mr_get(fd, mem, LARGE, WRITABLE, &cookie));
	remote_say("ready");
	while (!remote_stop())
		poll(NULL, 0, 10);
	for (u64 i = 0; i < count; i++) {
		op = op_read(&t, 0, mem, LARGE);
		op_set(&op, RDS_RDMA_SILENT | RDS_RDMA_NOTIFY_ME, i);
		must(op_send(fd, &t.addr, &op));
	}
	remote_say("holding %llu", issued(fd, &t.addr) - mark(fd, &t.addr));
	for (;;)
		pause();
}

/* ---------------------------------------------------------------- refused */

/* A bad op among good ones, again and again: COUNT of each kind */
static void refused_one(struct remote *r, int fd, struct op op, const char *what)
{
	enum { GOOD = 8, BAD = 4711 };
	struct target t = remote_get(r, 0, PAGE_BYTES, WRITABLE);
	struct tally tally = { 0 };
	char mem[SMALL] = { 1 };
	struct op good;
	struct got got;
	int status = -1;

	tap_context("%s", what);
	op_set(&op, RDS_RDMA_SILENT | RDS_RDMA_NOTIFY_ME, BAD);
	for (int i = 0; i < GOOD; i++) {
		if (i == GOOD / 2) {
			must(op_send(fd, &t.addr, &op));
			tally.sent++;
		}
		good = op_write(&t, i * SMALL, mem, sizeof(mem));
		op_set(&good, RDS_RDMA_SILENT | RDS_RDMA_NOTIFY_ME, i);
		must(op_send(fd, &t.addr, &good));
		tally.sent++;
	}
	while (tally.done < tally.sent &&
	       got_within(fd, &got, REMOTE_WAIT_MS) >= 0) {
		tally_add(&tally, &got);
		for (int i = 0; i < got.nr_status; i++)
			if (got.status[i].user_token == BAD)
				status = got.status[i].status;
	}
	check_eq(tally.done, tally.sent);
	check_eq(status, RDS_RDMA_REMOTE_ERROR);
	check_eq(tally.remote_error, 1);
	check_eq(tally.other, 0);
	check_eq(tally.success + tally.dropped, GOOD);
	remote_free(r, &t);
}

static void refused(void)
{
	u64 count = remote_arg(0, 5), old;
	struct target rw, ro, bad;
	char mem[2 * SMALL] = { 0 }, *want;
	int fd = rds_bound(NULL);
	struct remote r;

	remote_open(&r);
	rw = remote_get(&r, PAGE_BYTES + 40, SMALL, WRITABLE);
	ro = remote_get(&r, 2 * PAGE_BYTES, SMALL, 0);
	remote_stamp(&r, 0, 4 * PAGE_BYTES, 1);
	for (u64 i = 0; i < count; i++) {
		bad = rw;
		bad.cookie ^= 1 << (i % 24 + 8);
		refused_one(&r, fd, op_write(&bad, 0, mem, SMALL),
			    "wrong key, write");
		refused_one(&r, fd, op_read(&bad, 0, mem, SMALL),
			    "wrong key, read");
		refused_one(&r, fd, op_write(&rw, 1, mem, SMALL),
			    "one byte behind, write");
		refused_one(&r, fd, op_read(&rw, 0, mem, SMALL + 1),
			    "one byte behind, read");
		bad = rw;
		bad.cookie -= 1ull << 32;
		refused_one(&r, fd, op_write(&bad, 0, mem, SMALL),
			    "one byte before, write");
		refused_one(&r, fd, op_write(&ro, 0, mem, SMALL),
			    "read-only, write");
		refused_one(&r, fd, op_fadd(&ro, 0, 1, &old),
			    "read-only, atomic");
	}
	tap_context("afterwards");
	/* good ops have been to the first page only */
	want = pages(4 * PAGE_BYTES);
	stamp(want, 4 * PAGE_BYTES, 1);
	check(remote_digest(&r, PAGE_BYTES, 3 * PAGE_BYTES) ==
	      digest(want + PAGE_BYTES, 3 * PAGE_BYTES));
	remote_say("refused: rounds=%llu", count);
}

/* ----------------------------------------------------------------- poison */

/* Buffers are poisoned once their reads are below the mark, and looked at
 * again later: nobody may have written to them since. Until SIGUSR1.
 */
enum {
	POISON_SLOTS	= 256,
	POISON_WINDOW	= 32,
	POISON_BYTES	= 16 * 1024,
};

struct poison {
	int fd;
	struct target target;
	char *mem;
	int status[POISON_SLOTS];	/* -1: not known */
	struct tally tally;
};

static char *poison_slot(struct poison *p, u64 number)
{
	return p->mem + number % POISON_SLOTS * POISON_BYTES;
}

static char poison_byte(u64 number)
{
	return number * 7 + number / POISON_SLOTS;
}

static void poison_issue(struct poison *p, u64 number)
{
	struct op op;
	u64 id;

	op = op_read(&p->target, 0, poison_slot(p, number), POISON_BYTES);
	op.id = &id;
	op_set(&op, RDS_RDMA_SILENT | RDS_RDMA_NOTIFY_ME, number);
	p->status[number % POISON_SLOTS] = -1;
	must(op_send(p->fd, &p->target.addr, &op));
	check_eq(id, ++p->tally.sent);
}

static void poison_notices(struct poison *p)
{
	struct got got;

	while (got_within(p->fd, &got, 0) >= 0) {
		tally_add(&p->tally, &got);
		for (int i = 0; i < got.nr_status; i++)
			p->status[got.status[i].user_token % POISON_SLOTS] =
				got.status[i].status;
	}
}

/* The mark has reached it: the memory is ours */
static void poison_take(struct poison *p, u64 number)
{
	char *slot = poison_slot(p, number);
	struct xrds_barrier b;

	must(barrier(p->fd, &p->target.addr, number + 1, 0, tap_ms(LIMIT_MS),
		     &b));
	poison_notices(p);
	if (check(p->status[number % POISON_SLOTS] >= 0) &&
	    !p->status[number % POISON_SLOTS])
		check(stamped(slot, POISON_BYTES, 3));
	memset(slot, poison_byte(number), POISON_BYTES);
}

static void poison_look(struct poison *p, u64 number)
{
	if (!check(filled(poison_slot(p, number), POISON_BYTES,
			  poison_byte(number))))
		tap_fail("buffer of op %llu was written to later", number + 1);
}

static void poison(void)
{
	static struct poison p;
	struct remote r;
	u64 n;

	p.fd = rds_bound(NULL);
	p.mem = pages(POISON_SLOTS * POISON_BYTES);
	remote_open(&r);
	p.target = remote_get(&r, 0, POISON_BYTES, 0);
	remote_stamp(&r, 0, POISON_BYTES, 3);
	for (n = 0; !remote_stop(); n++) {
		if (n >= POISON_WINDOW)
			poison_take(&p, n - POISON_WINDOW);
		if (n >= POISON_SLOTS)
			poison_look(&p, n - POISON_SLOTS);
		poison_issue(&p, n);
		if (n == POISON_SLOTS)
			remote_say("flowing");
	}
	for (u64 i = n - POISON_WINDOW; i < n; i++)
		poison_take(&p, i);
	for (u64 i = n - POISON_SLOTS; i < n; i++)
		poison_look(&p, i);
	check_eq(p.tally.done, p.tally.sent);
	tally_print("poison", &p.tally);
	check_eq(p.tally.success + p.tally.dropped, p.tally.sent);
}

/* ----------------------------------------------------------------- adders */

/* Each adds one to the same word, and in turn to one that no other op adds to,
 * until SIGUSR1. Ops may be lost, but none is carried out twice: no two bring
 * the same value back from the first, and none of the others is 2 in the end,
 * not even one whose op was reported as lost.
 */
enum {
	ADDERS		= 3,
	ADDER_WINDOW	= 16,
	MAX_COUNT	= 1 << 20,
	OWN_WORDS	= 1 << 16,	/* of each */
	OWN_AT		= PAGE_BYTES,
	OWN_BYTES	= ADDERS * OWN_WORDS * sizeof(u64),
};

_Static_assert(OWN_AT + OWN_BYTES <= DEVICE_BYTES, "one region has them");

struct adder {
	pthread_t thread;
	const struct target *target;
	struct tally tally;
	u64 own_at;		/* offset of its words */
	u64 owns;		/* ops that had one */
	u64 word[ADDER_WINDOW];	/* which; OWN_WORDS: the common one */
	u64 common, common_lost;
	bool succeeded[OWN_WORDS];
};

static unsigned char *adder_seen;

static void adder_notices(struct adder *a, const struct got *got,
			  const u64 *olds)
{
	tally_add(&a->tally, got);
	for (int i = 0; i < got->nr_status; i++) {
		u64 token = got->status[i].user_token, old = olds[token];
		bool success = got->status[i].status == RDS_RDMA_SUCCESS;

		if (a->word[token] < OWN_WORDS) {
			a->succeeded[a->word[token]] = success;
			check(!success || !old);
			continue;
		}
		a->common += success;
		a->common_lost += !success;
		if (!success)
			continue;
		if (check(old < MAX_COUNT))
			check_eq(__atomic_fetch_add(&adder_seen[old], 1,
						    __ATOMIC_RELAXED), 0);
	}
}

/* Every other op has a word of its own, while there are any */
static struct op adder_op(struct adder *a, u64 token, u64 *old)
{
	u64 offset = 8;

	a->word[token] = OWN_WORDS;
	if (a->tally.sent % 2 && a->owns < OWN_WORDS) {
		a->word[token] = a->owns++;
		offset = a->own_at + a->word[token] * sizeof(u64);
	}
	return op_fadd(a->target, offset, 1, old);
}

static void *adder_thread(void *arg)
{
	struct adder *a = arg;
	u64 olds[ADDER_WINDOW], tokens[ADDER_WINDOW], free = ADDER_WINDOW;
	int fd = rds_bound(NULL);
	struct got got;
	struct op op;

	for (u64 i = 0; i < free; i++)
		tokens[i] = i;
	while (!remote_stop() || a->tally.done < a->tally.sent) {
		while (free && !remote_stop() && a->tally.sent < MAX_COUNT) {
			u64 token = tokens[--free];

			op = adder_op(a, token, &olds[token]);
			op_set(&op, RDS_RDMA_SILENT | RDS_RDMA_NOTIFY_ME,
			       token);
			must(op_send(fd, &a->target->addr, &op));
			a->tally.sent++;
		}
		if (a->tally.done == a->tally.sent)
			continue;
		if (got_within(fd, &got, LIMIT_MS) < 0)
			tap_fail("%llu of %llu notices", a->tally.done,
				 a->tally.sent);
		adder_notices(a, &got, olds);
		for (int i = 0; i < got.nr_status; i++)
			tokens[free++] = got.status[i].user_token;
	}
	close(fd);
	return NULL;
}

/* Reads the words of an adder back, and compares */
static void adder_words(const struct target *t, const struct adder *a)
{
	u64 *words = (u64 *)pages(OWN_WORDS * sizeof(u64));
	int fd = rds_bound(NULL);
	struct op op;

	check(a->owns > 0);
	op = op_read(t, a->own_at, words, a->owns * sizeof(u64));
	check_eq(op_run(fd, &t->addr, &op), RDS_RDMA_SUCCESS);
	for (u64 i = 0; i < a->owns; i++)
		check_range(words[i], a->succeeded[i], 1);
	close(fd);
}

static void adders(void)
{
	static struct adder all[ADDERS];
	u64 common = 0, common_lost = 0;
	struct tally sum = { 0 };
	struct target t;
	struct remote r;
	u64 count;

	adder_seen = calloc(MAX_COUNT, 1);
	remote_open(&r);
	t = remote_get(&r, 0, OWN_AT + OWN_BYTES, WRITABLE);
	for (int i = 0; i < ADDERS; i++) {
		all[i].target = &t;
		all[i].own_at = OWN_AT + i * OWN_WORDS * sizeof(u64);
		pthread_create(&all[i].thread, NULL, adder_thread, &all[i]);
	}
	remote_say("flowing");
	for (int i = 0; i < ADDERS; i++) {
		pthread_join(all[i].thread, NULL);
		sum.sent += all[i].tally.sent;
		sum.done += all[i].tally.done;
		sum.success += all[i].tally.success;
		sum.dropped += all[i].tally.dropped;
		sum.remote_error += all[i].tally.remote_error;
		sum.other += all[i].tally.other;
		common += all[i].common;
		common_lost += all[i].common_lost;
	}
	count = remote_peek(&r, 8);
	remote_say("counter %llu", count);
	tally_print("adders", &sum);
	check_eq(sum.success + sum.dropped, sum.sent);
	check_range(count, common, common + common_lost);
	for (int i = 0; i < ADDERS; i++)
		adder_words(&t, &all[i]);
}

/* ------------------------------------------------------------------- keys */

/* With a cookie that was given out before there was any connection: writes and
 * reads back until SIGUSR1, while the connection may break
 */
static void keys(void)
{
	struct target t = { .addr = addr_of(remote_host, REMOTE_PORT),
			    .cookie = remote_arg(0, 0) };
	char *mem = pages(LARGE);
	int fd = rds_bound(NULL);
	struct tally tally = { 0 };
	struct op op;
	u64 round = 0;
	int status = -1;

	while (!remote_stop() || status) {
		stamp(mem, LARGE, ++round);
		op = op_write(&t, 0, mem, LARGE);
		status = op_run(fd, &t.addr, &op);
		if (!status) {
			memset(mem, 0, LARGE);
			op = op_read(&t, 0, mem, LARGE);
			status = op_run(fd, &t.addr, &op);
		}
		if (!status)
			check(stamped(mem, LARGE, round));
		check(status == RDS_RDMA_SUCCESS || status == RDS_RDMA_DROPPED);
		tally.sent++;
		tally.success += !status;
		if (round == 3)
			remote_say("flowing");
	}
	tally.done = tally.sent;
	tally.dropped = tally.sent - tally.success;
	tally_print("keys", &tally);
}

/* --------------------------------------------------------------- old keys */

enum { OLD_BYTES = 4 * PAGE_BYTES };	/* as much as is registered */

/* OLD NEW: writes all of a region by the cookie of one that has gone. Nothing of
 * that arrives; a write by the region's own cookie does.
 */
static void old_key(void)
{
	static char data[OLD_BYTES];
	int fd = rds_bound(NULL);
	struct remote r;
	struct target t;
	struct op op;

	remote_open(&r);
	t = (struct target){ .addr = r.to };
	remote_stamp(&r, 0, REMOTE_BYTES, 1);
	stamp(data, sizeof(data), 2);
	for (size_t bytes = sizeof(data); bytes; bytes /= 64) {
		t.cookie = strtoull(remote_argv[0], NULL, 0);
		op = op_write(&t, 0, data, bytes);
		check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_REMOTE_ERROR);
		check(remote_stamped(&r, 0, REMOTE_BYTES, 1));
	}
	t.cookie = strtoull(remote_argv[1], NULL, 0);
	op = op_write(&t, 0, data, sizeof(data));
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check(remote_stamped(&r, 0, sizeof(data), 2));
}

/* --------------------------------------------------------------- one way */

enum { ONE_WAY_OPS = 20 };

struct one_way {
	u64 sent[ONE_WAY_OPS];		/* written, or payload */
	u64 local[ONE_WAY_OPS];		/* brought by reads and atomics */
	int status[ONE_WAY_OPS];
};

static void one_way_send(struct one_way *w, int fd, struct target *t,
			 const char *kind)
{
	struct op op;

	for (u64 i = 0; i < ONE_WAY_OPS; i++) {
		w->sent[i] = i + 1;
		if (!strcmp(kind, "write"))
			op = op_write(t, 8 * i, &w->sent[i], 8);
		else if (!strcmp(kind, "read"))
			op = op_read(t, 8 * i, &w->local[i], 8);
		else
			op = op_fadd(t, 8 * i, i + 1, &w->local[i]);
		op_set(&op, RDS_RDMA_NOTIFY_ME, i);
		op.payload = &w->sent[i];
		op.len = 8;
		w->status[i] = -1;
		must(op_send(fd, &t->addr, &op));
	}
}

static void one_way_wait(struct one_way *w, int fd)
{
	struct tally tally = { .sent = ONE_WAY_OPS };
	struct got got;

	while (tally.done < tally.sent && got_within(fd, &got, LIMIT_MS) >= 0) {
		tally_add(&tally, &got);
		for (int i = 0; i < got.nr_status; i++) {
			check_eq(w->status[got.status[i].user_token], -1);
			w->status[got.status[i].user_token] =
				got.status[i].status;
		}
	}
	tally_print("ended", &tally);
	check_eq(tally.done, tally.sent);
}

/* Says "ready", and at SIGUSR1 sends an op with a wrong key, and nothing after it.
 * Says "ended", and stays.
 */
static void wrong_key(void)
{
	int fd = rds_bound(NULL);
	struct target t;
	struct remote r;
	struct got got;
	struct op op;

	remote_open(&r);
	t = remote_get(&r, 0, SMALL, WRITABLE);
	t.cookie ^= 1 << 30;
	remote_say("ready");
	while (!remote_stop())
		usleep(1000);
	op = op_write(&t, 0, "w", 1);
	op_set(&op, RDS_RDMA_NOTIFY_ME, 0);
	must(op_send(fd, &t.addr, &op));
	must(got_within(fd, &got, WAIT_MS));
	check_eq(got.nr_status, 1);
	check_eq(got.status[0].status, RDS_RDMA_REMOTE_ERROR);
	remote_say("ended");
	pause();
}

/* KIND: says "ready", and at SIGUSR1 sends ops that the script has fail. When they
 * have ended it compares their effect with their status. The memory there begins as
 * zeros for writes and atomics.
 */
static void one_way(void)
{
	const char *kind = remote_argv[0];
	bool reads = !strcmp(kind, "read");
	struct one_way w = { 0 };
	struct remote_heard before;
	u64 done = 0, success = 0, unsaid = 0, rejected = 0, heard;
	int fd = rds_bound(NULL);
	struct target t;
	struct remote r;

	remote_open(&r);
	t = remote_get(&r, 0, 8 * ONE_WAY_OPS, WRITABLE);
	for (u64 i = 0; i < ONE_WAY_OPS; i++)
		remote_poke(&r, 8 * i, reads ? i + 1 : 0);
	before = remote_heard(&r);
	remote_say("ready");
	while (!remote_stop())
		usleep(1000);
	one_way_send(&w, fd, &t, kind);
	one_way_wait(&w, fd);

	for (u64 i = 0; i < ONE_WAY_OPS; i++) {
		u64 there = reads ? w.local[i] : remote_peek(&r, 8 * i);

		check(!there || there == i + 1);
		done += !!there;
		success += w.status[i] == RDS_RDMA_SUCCESS;
		unsaid += there && w.status[i] == RDS_RDMA_DROPPED;
		rejected += w.status[i] == RDS_RDMA_OTHER_ERROR;
		if (w.status[i] == RDS_RDMA_SUCCESS)
			check(there);
		else if (w.status[i] == RDS_RDMA_OTHER_ERROR)
			check(!there);
		else if (w.status[i] != RDS_RDMA_DROPPED)
			tap_fail("op %llu: status %d, memory %llu", i,
				 w.status[i], there);
	}
	heard = remote_heard(&r).count - before.count;
	check_range(heard, success, reads ? ONE_WAY_OPS - rejected : done);
	remote_say("one_way: done=%llu success=%llu unsaid=%llu rejected=%llu heard=%llu",
		   done, success, unsaid, rejected, heard);
}

/* ----------------------------------------------------------------- cancel */

enum { CANCEL_OPS = 1000 };	/* far more than a queue pair takes */

static void cancel_wait(int fd, int *status)
{
	struct got got;
	u64 done = 0;

	while (done < CANCEL_OPS && got_within(fd, &got, LIMIT_MS) >= 0) {
		for (int i = 0; i < got.nr_status; i++) {
			check_eq(status[got.status[i].user_token], -1);
			status[got.status[i].user_token] = got.status[i].status;
		}
		done += got.nr_status;
	}
	check_eq(done, CANCEL_OPS);
}

/* Says "ready", and at SIGUSR1 writes a word each of memory that is all zeros,
 * by more ops than the device takes, and cancels them. Those that had not begun
 * are told apart from the others, and have written nothing. The script has cut
 * the other node off until it reads "ended".
 */
static void cancel(void)
{
	static u64 words[CANCEL_OPS], there[CANCEL_OPS];
	static int status[CANCEL_OPS];
	u64 canceled = 0, dropped = 0;
	int fd = rds_bound(NULL), read;
	long long end;
	struct target t;
	struct remote r;
	struct op op;

	remote_open(&r);
	t = remote_get(&r, 0, sizeof(words), WRITABLE);
	remote_say("ready");
	while (!remote_stop())
		usleep(1000);
	for (u64 i = 0; i < CANCEL_OPS; i++) {
		words[i] = i + 1;
		status[i] = -1;
		op = op_write(&t, 8 * i, &words[i], 8);
		op_set(&op, RDS_RDMA_SILENT | RDS_RDMA_NOTIFY_ME, i);
		must(op_send(fd, &t.addr, &op));
	}
	must(setsockopt(fd, SOL_RDS, RDS_CANCEL_SENT_TO, NULL, 0));
	cancel_wait(fd, status);
	remote_say("ended");
	end = tap_now_ms() + tap_ms(LIMIT_MS);

	/* until the other node can be reached again */
	do {
		op = op_read(&t, 0, there, sizeof(there));
		read = op_run(fd, &t.addr, &op);
	} while (read == RDS_RDMA_DROPPED && tap_now_ms() < end);
	check_eq(read, RDS_RDMA_SUCCESS);
	for (u64 i = 0; i < CANCEL_OPS; i++) {
		canceled += status[i] == RDS_RDMA_CANCELED;
		dropped += status[i] == RDS_RDMA_DROPPED;
		check(!there[i] || there[i] == i + 1);
		check(status[i] != RDS_RDMA_CANCELED || !there[i]);
	}
	remote_say("cancel: canceled=%llu dropped=%llu", canceled, dropped);
}

/* ----------------------------------------------------------------- unread */

enum {
	UNREAD_PIECES	= 256,		/* of an op: a few fill a send queue */
	UNREAD_PAYLOAD	= 4097,		/* of messages without op */
	UNREAD_FILLERS	= 8,		/* more than the server may hold */
	UNREAD_OPS	= 8,		/* behind these */
};

/* Sends a message if there is room for it; returns how many */
static int unread_fill(int fd, const union addr *to)
{
	static char payload[UNREAD_PAYLOAD];

	if (sendto(fd, payload, sizeof(payload), MSG_DONTWAIT, &to->sa,
		   addr_len(to)) >= 0)
		return 1;
	check(errno == ENOBUFS || errno == EAGAIN);
	return 0;
}

/* Sends an op with a message behind it, if there is room for it */
static void unread_op(int fd, struct target *t, char *mem, struct tally *tally)
{
	struct op op = op_write(t, 0, NULL, UNREAD_PIECES * PAGE_BYTES);
	struct rds_iovec vec[UNREAD_PIECES];
	struct got got;

	/* no two pieces side by side */
	for (int i = 0; i < UNREAD_PIECES; i++)
		vec[i] = (struct rds_iovec){
			.addr = (uintptr_t)(mem + 2 * i * PAGE_BYTES),
			.bytes = PAGE_BYTES,
		};
	op_vector(&op, vec, UNREAD_PIECES);
	op.payload = &tally->sent;
	op.len = sizeof(tally->sent);
	op.msg_flags = MSG_DONTWAIT;
	op_set(&op, RDS_RDMA_NOTIFY_ME, tally->sent);
	if (op_send(fd, &t->addr, &op) >= 0)
		tally->sent++;
	else
		check(errno == ENOBUFS || errno == EAGAIN);
	while (got_within(fd, &got, 0) >= 0)
		tally_add(tally, &got);
}

/* ROUNDS times: sends to the server, which the script has stopped until it reads
 * "go", while its node stands still until the script reads "sent". When messages
 * are refused the connection is broken at once. Each op ends, and the server gets
 * no message behind one that was not done.
 */
static void unread(void)
{
	int rounds = remote_arg(0, 5), fd = rds_bound(NULL);
	char *mem = pages(2 * UNREAD_PIECES * PAGE_BYTES);
	struct tally tally = { 0 };
	long long refused, end;
	struct remote_heard heard = { 0 };
	u64 filled = 0, last = UINT64_MAX;
	struct target t;
	struct remote r;

	remote_open(&r);
	t = remote_get(&r, 0, UNREAD_PIECES * PAGE_BYTES, WRITABLE);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, 1 << 20);
	for (int i = 1; i <= rounds; i++) {
		remote_ask("stop", i);
		refused = counter_now("send_refused");
		for (int n = 0; n < UNREAD_FILLERS; n++)
			filled += unread_fill(fd, &t.addr);
		for (int n = 0; n < UNREAD_OPS; n++)
			unread_op(fd, &t, mem, &tally);
		remote_ask("sent", i);
		end = tap_now_ms() + tap_ms(LIMIT_MS);
		while (counter_now("send_refused") == refused)
			if (tap_now_ms() > end)
				tap_fail("nothing was refused");
		check_eq(system("echo 1 > " KNOB), 0);
		remote_ask("go", i);
		check(tally_all(fd, &tally, LIMIT_MS));
		/* it is behind all others */
		must(rds_send(fd, &last, sizeof(last), 0, &t.addr));
		end = tap_now_ms() + tap_ms(LIMIT_MS);
		do {
			heard = remote_heard(&r);
		} while (heard.last != last && tap_now_ms() < end);
		check_eq(heard.last, last);
		last--;
	}
	remote_say("unread: heard %llu, filled %llu", heard.count, filled);
	tally_print("unread", &tally);
	/* those without op come in any case */
	check_range(heard.count - filled - rounds, 0, tally.success);
}

static const struct mode modes[] = {
	{ "flood", flood },
	{ "outstanding", outstanding },
	{ "marks", marks },
	{ "nobody", nobody },
	{ "hold", hold },
	{ "refused", refused },
	{ "poison", poison },
	{ "adders", adders },
	{ "keys", keys },
	{ "old_key", old_key },
	{ "wrong_key", wrong_key },
	{ "one_way", one_way },
	{ "cancel", cancel },
	{ "unread", unread },
};

int main(int argc, char **argv)
{
	return remote_main(argc, argv, modes, ARRAY_SIZE(modes));
}
