// SPDX-License-Identifier: GPL-2.0-only
/*
 * The high-water mark and the wake-ups that go with it, under concurrency.
 *
 *   test_mark [-c COUNT] [options of all tests]
 *
 * COUNT is how often the hunt for lost wake-ups lets a completion meet a
 * barrier that is being armed, COUNT times for each way to wait; the default
 * is for a quick test, a million is a night's.
 *
 * timeout: 600
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "counters.h"
#include "pattern.h"
#include "rdma.h"
#include "tap.h"
#include "watcher.h"

enum {
	WORKERS		= 3,
	WORKER_OPS	= 1500,
	SOME		= 50,		/* of them that succeed in any case */
	BATCH		= 16,		/* ops between waits, on average */
	SLOTS		= 8,		/* buffers of a worker */
	SLOT_BYTES	= 512,
	GUARD_OPS	= 400,
	ROUNDS		= 1500,
	MAX_PAUSE	= 2000,		/* turns of an empty loop */
	OP_BYTES	= 64 * 1024,
	RACE_CALLS	= 3000,
};

#define WRITABLE RDS_RDMA_READWRITE
#define EVENT (POLLIN | POLLRDBAND)

static int rounds;

/* --------------------------------------------------- the mark under stress */

/* State that is shared by threads that use one socket */
struct stress {
	int fd;
	struct target target;
	int worker_ops;
	pthread_mutex_t lock;		/* of all below */
	bool asked[WORKERS * WORKER_OPS];
	bool told[WORKERS * WORKER_OPS];
	bool id_seen[WORKERS * WORKER_OPS + 1];
	int nr_asked, nr_told, done, failed, dropped;
	bool stop;
	struct watcher watcher;
	pthread_t reader;
};

struct worker {
	struct stress *s;
	int number;
};

static void stress_asked(struct stress *s, int token, bool notify, u64 id)
{
	pthread_mutex_lock(&s->lock);
	s->nr_asked += notify;
	s->asked[token] = notify;
	if (check_range(id, 1, WORKERS * s->worker_ops))
		check(!s->id_seen[id]);
	s->id_seen[id] = true;
	pthread_mutex_unlock(&s->lock);
}

static void *worker_thread(void *arg)
{
	struct worker *w = arg;
	struct prng prng = { .state = 100 + w->number };
	char *mem = pages(SLOTS * PAGE_BYTES);
	struct stress *s = w->s;
	struct xrds_barrier b;
	struct op op;

	for (int i = 0; i < s->worker_ops; i++) {
		char *at = mem + prng_below(&prng, SLOTS) * PAGE_BYTES;
		int token = w->number * s->worker_ops + i;
		bool notify = prng_below(&prng, 2);
		u64 id = 0, bytes = 1 + prng_below(&prng, PAGE_BYTES);

		if (prng_below(&prng, 2))
			op = op_read(&s->target, 0, at, bytes);
		else
			op = op_write(&s->target, 0, at, bytes);
		if (!prng_below(&prng, 10))
			op.rdma.cookie ^= 1 << 30;
		op.id = &id;
		op_set(&op, RDS_RDMA_SILENT |
			    (notify ? RDS_RDMA_NOTIFY_ME : 0), token);
		must(op_send(s->fd, &s->target.addr, &op));
		stress_asked(s, token, notify, id);
		/* not all at once, or a reset takes most of them */
		if (!prng_below(&prng, BATCH))
			check_ret(barrier(s->fd, &s->target.addr, id, 0,
					  tap_ms(WAIT_MS), &b), 0);
	}
	return NULL;
}

static void *reader_thread(void *arg)
{
	struct stress *s = arg;
	struct got got;

	while (!READ_ONCE(s->stop)) {
		/* stop has no wake-up of its own */
		if (!poll_one(s->fd, POLLIN, 50) ||
		    got_within(s->fd, &got, 0) < 0)
			continue;
		pthread_mutex_lock(&s->lock);
		for (int i = 0; i < got.nr_status; i++) {
			u64 token = got.status[i].user_token;

			if (!check(token < ARRAY_SIZE(s->told)))
				continue;
			check(!s->told[token]);
			s->told[token] = true;
			s->nr_told++;
			s->done += got.status[i].status == RDS_RDMA_SUCCESS;
			s->failed += got.status[i].status ==
				     RDS_RDMA_REMOTE_ERROR;
			s->dropped += got.status[i].status ==
				      RDS_RDMA_DROPPED;
		}
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

static bool all_told(void *arg)
{
	struct stress *s = arg;
	bool all;

	pthread_mutex_lock(&s->lock);
	all = s->nr_told >= s->nr_asked;
	pthread_mutex_unlock(&s->lock);
	return all;
}

/* All ops have ended, and all that was asked for has been told */
static void stress_check(struct stress *s, u64 last)
{
	struct xrds_barrier b;

	check_ret(barrier(s->fd, &s->target.addr, last, 0, tap_ms(WAIT_MS),
			  &b), 0);
	check_eq(b.issued, last);
	check_eq(b.completed, last);
	check(tap_wait(all_told, s, WAIT_MS));
}

/* Drops what is queued, again and again; ops under way end as they may */
static void *canceller_thread(void *arg)
{
	struct stress *s = arg;

	while (!READ_ONCE(s->stop)) {
		must(setsockopt(s->fd, SOL_RDS, RDS_CANCEL_SENT_TO, NULL, 0));
		sched_yield();
	}
	return NULL;
}

static struct stress *stress_begin(void)
{
	struct stress *s = calloc(1, sizeof(*s));

	s->worker_ops = tap_count(WORKER_OPS);
	s->fd = rds_bound(NULL);
	target_open(&s->target, PAGE_BYTES, WRITABLE);
	pthread_mutex_init(&s->lock, NULL);
	watcher_start(&s->watcher, s->fd, &s->target.addr);
	pthread_create(&s->reader, NULL, reader_thread, s);
	return s;
}

/* Each notice that came was asked for */
static void stress_end(struct stress *s)
{
	WRITE_ONCE(s->stop, true);
	watcher_end(&s->watcher);
	pthread_join(s->reader, NULL);
	for (int token = 0; token < WORKERS * s->worker_ops; token++)
		check_eq(s->told[token], s->asked[token]);
	check_quiet(s->fd);
	target_close(&s->target);
	close(s->fd);
	check_pinned_falls(0);
}

static void stress(bool resets)
{
	struct stress *s = stress_begin();
	pthread_t workers[WORKERS];
	struct worker w[WORKERS];

	for (int i = 0; i < WORKERS; i++) {
		w[i] = (struct worker){ s, i };
		pthread_create(&workers[i], NULL, worker_thread, &w[i]);
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	stress_check(s, WORKERS * s->worker_ops);
	stress_end(s);
	/* or the test shows nothing */
	check(s->done >= tap_count(SOME));
	check(s->failed > 0);
	check_eq(s->dropped > 0, resets);
	tap_note("%d notices: %d done, %d failed, %d dropped", s->nr_told,
		 s->done, s->failed, s->dropped);
	free(s);
}

static void stress_plain(void)
{
	stress(false);
}

static void make_resets(int loss, int bounce_ms, int delay_ms)
{
	loop_only();
	knob("net/rds/reconnect_max_delay_ms", 5);
	knob("net/xrds/loop/loss_permille", loss);
	knob("net/xrds/loop/bounce_ms", bounce_ms);
	knob("net/xrds/loop/delay_ms", delay_ms);
}

static void stress_loss(void)
{
	make_resets(10, 0, 0);
	stress(true);
}

static void stress_bounce(void)
{
	make_resets(0, 15, 5);
	stress(true);
}

static void stress_cancel(void)
{
	pthread_t worker, canceller;
	struct stress *s;
	struct worker w;

	make_resets(0, 15, 0);
	s = stress_begin();
	w = (struct worker){ s, 0 };
	pthread_create(&canceller, NULL, canceller_thread, s);
	pthread_create(&worker, NULL, worker_thread, &w);
	pthread_join(worker, NULL);
	stress_check(s, s->worker_ops);
	WRITE_ONCE(s->stop, true);
	pthread_join(canceller, NULL);
	stress_end(s);
	free(s);
}

/* A buffer whose identifier is at or below the mark is the program's again:
 * bytes that are stored in it then stay, also if the read was lost.
 */
static void buffers_returned(void)
{
	char *mem[SLOTS];
	u64 ids[SLOTS] = { 0 }, done;
	int fd = rds_bound(NULL);
	struct xrds_barrier b;
	struct target t;
	struct op op;

	make_resets(20, 10, 2);
	target_open(&t, SLOT_BYTES, 0);
	memset(t.mem, 't', SLOT_BYTES);
	for (int i = 0; i < SLOTS; i++) {
		mem[i] = pages(PAGE_BYTES);
		memset(mem[i], 'p', SLOT_BYTES);
	}
	for (int i = 0; i < GUARD_OPS; i++) {
		int slot = i % SLOTS;

		/* poison has been in it since its read was over */
		if (ids[slot])
			check_ret(barrier(fd, &t.addr, ids[slot], 0,
					  tap_ms(WAIT_MS), &b), 0);
		done = mark(fd, &t.addr);
		for (int j = 0; j < SLOTS; j++) {
			if (ids[j] > done)
				continue;
			if (ids[j]) {
				memset(mem[j], 'p', SLOT_BYTES);
				ids[j] = 0;
			}
			check(filled(mem[j], SLOT_BYTES, 'p'));
		}
		op = op_read(&t, 0, mem[slot], SLOT_BYTES);
		op.id = &ids[slot];
		op_set(&op, RDS_RDMA_SILENT, 0);
		must(op_send(fd, &t.addr, &op));
	}
	check(counter_now("conn_reset") > 0);
	target_close(&t);
	close(fd);
}

/* ------------------------------------------------------- lost wake-up hunt */

enum wait {
	WAIT_ARMED,	/* barrier that does not block, poll, recvmsg */
	WAIT_BLOCKED,	/* barrier that does */
	WAIT_UNARMED,	/* poll alone: the identifier was asked for */
	WAIT_EDGE,	/* armed, and an edge of epoll */
	WAIT_NR,
};

struct hunt {
	int fd;
	struct target target;
	int turn;	/* of the round that may begin; the waiter's */
	bool stop;
	int slept[WAIT_NR];
};

static void pause_some(struct prng *prng)
{
	for (u64 n = prng_below(prng, MAX_PAUSE); n; n--)
		__asm__ volatile("" ::: "memory");
}

/* One op a round, as soon as the waiter is ready for it */
static void *hunt_issuer(void *arg)
{
	struct hunt *h = arg;
	struct prng prng = { .state = 1 };
	char *mem = pages(OP_BYTES);
	struct op op;
	u64 id;

	for (int i = 1; !READ_ONCE(h->stop); i++) {
		while (READ_ONCE(h->turn) < i && !READ_ONCE(h->stop))
			sched_yield();
		if (READ_ONCE(h->stop))
			break;
		/* its length is how long it is under way */
		op = op_write(&h->target, 0, mem,
			      1ull << prng_below(&prng, 17));
		op.id = &id;
		op_set(&op, RDS_RDMA_SILENT, 0);
		pause_some(&prng);
		must(op_send(h->fd, &h->target.addr, &op));
		check_eq(id, i);
	}
	return NULL;
}

/* Barrier on an op that is just being issued, or not yet */
static int hunt_barrier(struct hunt *h, u64 id, u32 flags)
{
	struct xrds_barrier b;
	int ret;

	do
		ret = barrier(h->fd, &h->target.addr, id, flags,
			      tap_ms(WAIT_MS), &b);
	while (ret < 0 && errno == EINVAL);
	return ret;
}

static bool hunt_poll(struct hunt *h, int ep, u64 id)
{
	struct epoll_event event = { 0 };
	struct got got;
	int events;

	if (ep >= 0)
		events = must(epoll_wait(ep, &event, 1, tap_ms(WAIT_MS))) ?
			 (int)event.events : 0;
	else
		events = poll_one(h->fd, EVENT, tap_ms(WAIT_MS));
	if (!check_eq(events, EVENT))
		return false;
	check_ret(got_now(h->fd, &got, 1024), 0);
	return check_eq(got.nr_events, 1) &&
	       check(got.events[0].completed >= id);
}

static bool hunt_round(struct hunt *h, int ep, enum wait wait, u64 id)
{
	struct epoll_event edge = { .events = EPOLLIN | EPOLLRDBAND | EPOLLET };

	switch (wait) {
	case WAIT_BLOCKED:
		return check_ret(hunt_barrier(h, id, 0), 0);
	case WAIT_UNARMED:
		h->slept[wait]++;
		return hunt_poll(h, -1, id);
	default:
		if (wait == WAIT_EDGE)
			must(epoll_ctl(ep, EPOLL_CTL_MOD, h->fd, &edge));
		if (!hunt_barrier(h, id, XRDS_BARRIER_NONBLOCK))
			return true;
		if (!check_err(-1, EAGAIN))
			return false;
		h->slept[wait]++;
		return hunt_poll(h, wait == WAIT_EDGE ? ep : -1, id);
	}
}

static void no_wakeup_lost(void)
{
	struct epoll_event none = { 0 };
	int ep = must(epoll_create1(EPOLL_CLOEXEC));
	struct prng prng = { .state = 2 };
	struct hunt h = { 0 };
	pthread_t issuer;
	bool ok = true;

	h.fd = rds_bound(NULL);
	target_open(&h.target, OP_BYTES, WRITABLE);
	must(epoll_ctl(ep, EPOLL_CTL_ADD, h.fd, &none));
	pthread_create(&issuer, NULL, hunt_issuer, &h);
	for (int i = 1; ok && i <= rounds * WAIT_NR; i++) {
		enum wait wait = prng_below(&prng, WAIT_NR);

		tap_context("round %d, wait %d", i, wait);
		/* the round before has left nothing */
		ok = check_eq(poll_one(h.fd, EVENT, 0), 0);
		WRITE_ONCE(h.turn, i);
		pause_some(&prng);
		ok &= hunt_round(&h, ep, wait, i);
		ok &= check_eq(mark(h.fd, &h.target.addr), i);
		if (wait == WAIT_EDGE)
			must(epoll_ctl(ep, EPOLL_CTL_MOD, h.fd, &none));
	}
	tap_context("all rounds");
	WRITE_ONCE(h.stop, true);
	pthread_join(issuer, NULL);
	/* or the test shows nothing */
	check(h.slept[WAIT_ARMED] > 0);
	check(h.slept[WAIT_EDGE] > 0);
	tap_note("armed %d, edge %d, of %d", h.slept[WAIT_ARMED],
		 h.slept[WAIT_EDGE], rounds);
	target_close(&h.target);
	close(ep);
	close(h.fd);
}

/* --------------------------------------------------------- calls in a race */

static void *race_barrier(void *arg)
{
	struct stress *s = arg;
	struct prng prng = { .state = 7 };
	struct xrds_barrier b;
	u64 last, id;

	while (!READ_ONCE(s->stop)) {
		last = issued(s->fd, &s->target.addr);
		id = prng_below(&prng, last + 1);
		if (barrier(s->fd, &s->target.addr, id, prng_below(&prng, 2),
			    tap_ms(WAIT_MS), &b) < 0)
			check_eq(errno, EAGAIN);
	}
	return NULL;
}

/* Several threads arm, wait and read at once while ops are issued and end */
static void concurrent_barriers(void)
{
	struct stress *s = calloc(1, sizeof(*s));
	pthread_t threads[3];
	struct got got;
	struct op op;

	make_resets(5, 20, 0);
	s->fd = rds_bound(NULL);
	target_open(&s->target, PAGE_BYTES, WRITABLE);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, race_barrier, s);
	for (int i = 0; i < tap_count(RACE_CALLS); i++) {
		op = op_write(&s->target, 0, &op, 1);
		op_set(&op, RDS_RDMA_SILENT | RDS_RDMA_NOTIFY_ME, i);
		must(op_send(s->fd, &s->target.addr, &op));
		got_within(s->fd, &got, 0);
	}
	WRITE_ONCE(s->stop, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	target_close(&s->target);
	close(s->fd);
	free(s);
}

static const struct tap_case cases[] = {
	{ "stress_plain", "ops of threads, some fail: mark and notices right",
	  stress_plain, TAP_EACH_FAMILY, 120 },
	{ "stress_loss", "the same while messages are lost", stress_loss,
	  0, 120 },
	{ "stress_bounce", "the same while connections are reset, with delay",
	  stress_bounce, 0, 240 },
	{ "stress_cancel", "ops are cancelled while they are being posted",
	  stress_cancel, 0, 120 },
	{ "buffers_returned", "below the mark a buffer is not touched again",
	  buffers_returned, 0, 120 },
	{ "no_wakeup_lost", "no wake-up is lost when completion meets arming",
	  no_wakeup_lost, 0, 3600 },
	{ "concurrent_barriers",
	  "barriers of several threads against completions",
	  concurrent_barriers, 0, 120 },
};

int main(int argc, char **argv)
{
	rounds = tap_count(ROUNDS);
	if (argc > 2 && !strcmp(argv[1], "-c")) {
		rounds = atoi(argv[2]);
		argv[2] = argv[0];
		argv += 2;
		argc -= 2;
	}
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
