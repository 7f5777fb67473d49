// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hostile programs: random calls by many processes of several users that share
 * sockets, see harness/fuzz.h. They can be killed at any time, nothing of
 * theirs is left then, and others do not suffer: two bystanders that exchange
 * messages lose none, and are never refused because of the fuzzers. The fuzzers
 * are other programs (helper_fuzzers.c), generation after generation of them,
 * and have no memory and no descriptor of this one.
 *
 * FUZZ_SEED, FUZZ_SECONDS, FUZZ_PROCESSES, and FUZZ_CALLS (of each thread, in
 * the place of a time) choose another run than the usual one; FUZZ_HOSTS are
 * addresses to aim at beside the local ones, separated by commas. With
 * FUZZ_COMPANY=1 there are other sockets; their owner checks that nothing is
 * left.
 */
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counters.h"
#include "fuzz.h"
#include "tap.h"

enum {
	SECONDS		= 6,
	PROCESSES	= 6,
	FEW_PROCESSES	= 4,	/* on a slow kernel */
	GENERATION_MS	= 1500,	/* at least */
	LONG_MS		= 8000,	/* and in long runs, to get more done */
	GENERATIONS	= 4,	/* in short ones */
	KILL_MS		= 1000,
	CATCH_UP_MS	= 20000,
	SETTLE_MS	= 20000,
	LINGER_MS	= 1000,
	USER_PERCENT	= 30,	/* three users: they leave a tenth */
	LEFT_BYTES	= 64 * 1024,
	WINDOW		= 8,
	BURST		= 16,
	BYSTANDER_BYTES	= 20000,
	RECORDS		= 4096,
	LEAST		= 1,	/* of each thing that fuzzers get done */
	RESULT_FD	= 100,
};

static long setting(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text && *text ? atol(text) : otherwise;
}

/* ----------------------------------------------------------------- bystanders */

/* Shared by both, and by the process that started them */
static struct bystanders {
	bool stop;
	u64 sent[2];
	u64 rcvd[2];
	bool stopped[2];	/* nothing more is sent */
} *traffic;

struct bystander {
	int fd, me;
	union addr peer;
	char *out, *in;
};

static struct pattern_key key_of(int from, u64 seq)
{
	return (struct pattern_key){ from, !from, seq };
}

/* Whether there was room */
static bool bystander_send(struct bystander *b)
{
	u64 seq = traffic->sent[b->me];
	struct pattern_key key = key_of(b->me, seq);
	size_t len = pattern_size(&key, BYSTANDER_BYTES);

	if (READ_ONCE(traffic->stop))
		WRITE_ONCE(traffic->stopped[b->me], true);
	if (traffic->stopped[b->me] ||
	    seq >= traffic->rcvd[b->me] + WINDOW)
		return false;
	pattern_fill(b->out, len, &key);
	if (rds_send(b->fd, b->out, len, MSG_DONTWAIT, &b->peer) < 0) {
		if (errno != EAGAIN && errno != ENOBUFS)
			tap_fail("bystander %d cannot send: %s", b->me,
				 tap_errno_name(errno));
		return false;
	}
	WRITE_ONCE(traffic->sent[b->me], seq + 1);
	return true;
}

/* Whether there was something. Messages of others do not matter. */
static bool bystander_recv(struct bystander *b)
{
	struct pattern_key key = key_of(!b->me, traffic->rcvd[b->me]);
	size_t len = pattern_size(&key, BYSTANDER_BYTES);
	union addr from;
	char why[256];
	ssize_t got;

	got = rds_recv(b->fd, b->in, MSG_MAX_BYTES, MSG_DONTWAIT, &from);
	if (got < 0 && errno == EAGAIN)
		return false;
	if (got < 0)
		tap_fail("bystander %d cannot receive: %s", b->me,
			 tap_errno_name(errno));
	if (!addr_same(&from, &b->peer))
		return true;
	if (got != (ssize_t)len || !pattern_same(b->in, len, &key)) {
		pattern_explain(b->in, got, &key, why, sizeof(why));
		tap_fail("bystander %d, message %llu, %zd bytes: %s", b->me,
			 key.seq, got, why);
	}
	WRITE_ONCE(traffic->rcvd[b->me], key.seq + 1);
	return true;
}

/* Messages of others do not keep it from sending. */
static void bystander_turn(struct bystander *b)
{
	bool some = false;

	for (int i = 0; i < BURST && bystander_recv(b); i++)
		some = true;
	/* the window limits it, so not for space alone */
	if (!bystander_send(b) && !some)
		poll_one(b->fd, POLLIN, 10);
}

static bool all_came(int to)
{
	return READ_ONCE(traffic->stopped[!to]) &&
	       READ_ONCE(traffic->rcvd[to]) == traffic->sent[!to];
}

static pid_t bystander(int me, const int *fds, const union addr *peer)
{
	struct bystander b = { .fd = fds[me], .me = me, .peer = *peer };
	pid_t pid = must(fork());

	if (pid)
		return pid;
	close(fds[!me]);
	b.out = malloc(BYSTANDER_BYTES);
	b.in = malloc(MSG_MAX_BYTES);
	if (!b.out || !b.in)
		tap_fail("no memory");
	while (!traffic->stopped[me] || !all_came(me))
		bystander_turn(&b);
	tap_child_exit();
}

static void bystanders_start(pid_t *pids)
{
	union addr addr[2];
	int fds[2];

	traffic = mmap(NULL, sizeof(*traffic), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (traffic == MAP_FAILED)
		tap_fail("no memory");
	for (int i = 0; i < 2; i++)
		fds[i] = rds_bound_to(tap_host, FUZZ_BYSTANDERS + i, &addr[i]);
	for (int i = 0; i < 2; i++)
		pids[i] = bystander(i, fds, &addr[!i]);
	for (int i = 0; i < 2; i++)
		close(fds[i]);
}

static bool bystanders_even(void *arg)
{
	(void)arg;
	return all_came(0) && all_came(1);
}

/* All messages that were sent have come, and then they end. */
static void bystanders_end(const pid_t *pids)
{
	WRITE_ONCE(traffic->stop, true);
	check(tap_wait(bystanders_even, NULL, CATCH_UP_MS));
	tap_diag("bystanders: %llu and %llu messages, %llu and %llu received",
		 traffic->sent[0], traffic->sent[1], traffic->rcvd[1],
		 traffic->rcvd[0]);
	check(traffic->rcvd[0] > 0 && traffic->rcvd[1] > 0);
	for (int i = 0; i < 2; i++) {
		if (!bystanders_even(NULL))
			kill(pids[i], SIGKILL);
		tap_child_join(pids[i]);
	}
}

/* -------------------------------------------------------------------- fuzzers */

static int generation_ms(void)
{
	long ms = setting("FUZZ_SECONDS", SECONDS) * 1000 / GENERATIONS;

	ms = ms < LONG_MS ? ms : LONG_MS;
	return ms > tap_ms(GENERATION_MS) ? ms : tap_ms(GENERATION_MS);
}

/* In the place of this process, with nothing of it but standard output */
static void become_fuzzers(u64 seed, int processes, int result)
{
	char numbers[5][24];

	snprintf(numbers[0], sizeof(numbers[0]), "%d", RESULT_FD);
	snprintf(numbers[1], sizeof(numbers[1]), "%llu", seed);
	snprintf(numbers[2], sizeof(numbers[2]), "%d", processes);
	snprintf(numbers[3], sizeof(numbers[3]), "%d", generation_ms());
	snprintf(numbers[4], sizeof(numbers[4]), "%ld",
		 setting("FUZZ_CALLS", 0));
	must(dup2(result, RESULT_FD));
	must(close_range(STDERR_FILENO + 1, RESULT_FD - 1, 0));
	must(close_range(RESULT_FD + 1, ~0u, 0));
	execlp("helper_fuzzers", "helper_fuzzers", numbers[0], numbers[1],
	       numbers[2],
	       numbers[3], numbers[4], tap_host, NULL);
	tap_fail("fuzzers: %s", tap_errno_name(errno));
}

static void generation(u64 seed, int processes, struct fuzz_result *r)
{
	int result[2];
	ssize_t got;
	pid_t pid;

	must(pipe(result));
	pid = must(fork());
	if (!pid)
		become_fuzzers(seed, processes, result[1]);
	close(result[1]);
	got = must(read(result[0], r, sizeof(*r)));
	close(result[0]);
	tap_context("fuzzers with seed %llu", seed);
	tap_child_join(pid);
	if (got != sizeof(*r))
		tap_fail("no result of fuzzers with seed %llu", seed);
	check_eq(r->crashed, 0);
	check_range(r->ours_ms, 0, KILL_MS);
	/* a machine that is busy otherwise is not to blame on the fuzzers */
	check_range(r->turns_ms, 0, tap_ms(KILL_MS));
	tap_context("%s", "");
	if (tap_verbose || r->turns_ms > KILL_MS)
		tap_diag("seed %llu: killed in %d ms, %d turns; asleep %d in XRDS, %d else",
			 seed, r->took_ms, r->turns_ms, r->ours_ms,
			 r->asleep_ms);
}

static void add(struct fuzz_result *sum, const struct fuzz_result *r)
{
	for (int i = 0; i < FUZZ_CALLS; i++) {
		sum->calls[i] += r->calls[i];
		sum->fine[i] += r->fine[i];
	}
	sum->struck += r->struck;
}

static int by_size(const void *a, const void *b)
{
	const long long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Messages of the fuzzers so far, or fewer: the bystanders go on meanwhile, and
 * each may have sent one that it has not counted yet.
 */
static long long queued(const struct counters *before)
{
	long long all = counter_now("send_queued") -
			counters_get(before, "send_queued");

	return all - READ_ONCE(traffic->sent[0]) -
	       READ_ONCE(traffic->sent[1]) - 2;
}

/* For so long, and until they have had a message accepted */
static void generations(u64 seed, int processes, long seconds,
			const struct counters *before)
{
	long long end = tap_now_ms() + seconds * 1000;
	struct prng prng = { seed };
	struct fuzz_result sum = { 0 }, r;
	long long took[RECORDS], longest = 0;
	int nr = 0;

	do {
		generation(prng_next(&prng), processes, &r);
		add(&sum, &r);
		took[nr % RECORDS] = r.turns_ms;
		longest = r.took_ms > longest ? r.took_ms : longest;
		nr++;
	} while (!setting("FUZZ_CALLS", 0) &&
		 (tap_now_ms() < end || queued(before) < LEAST));

	fuzz_report(&sum);
	nr = nr < RECORDS ? nr : RECORDS;
	qsort(took, nr, sizeof(took[0]), by_size);
	tap_diag("%d generations, killed in %lld ms, half of them in %lld; %lld by the clock",
		 nr, took[nr - 1], took[(nr - 1) / 2], longest);
}

/* --------------------------------------------------------------------- the run */

/* Fuzzers change them; these are the values while they do not, and the ones
 * before come back at the end.
 */
static void knobs(void)
{
	knob("net/xrds/loop/delay_ms", 0);
	knob("net/xrds/loop/loss_permille", 0);
	knob("net/xrds/loop/bounce_ms", 0);
	knob("net/xrds/idle_ms", 1000);
	knob("net/xrds/heartbeat_ms", 0);
	knob("net/xrds/linger_ms", LINGER_MS);
	knob("net/rds/ping_enable", 1);
	knob("net/rds/max_unacked_packets", 32);
	knob("net/xrds/user_percent", USER_PERCENT);
}

static bool settled(void *arg)
{
	static const char * const none[] = { "obj_dests", "obj_msgs",
		"obj_rops", "obj_mrs", "used_pinned", "used_keys" };
	struct counters c = counters_read();
	/* one is enough */
	bool ok = counters_get(&c, "obj_socks") == 1 &&
		  counters_get(&c, "used_memory") <= LEFT_BYTES;

	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		ok = ok && !counters_get(&c, none[i]);
	if (arg)
		counters_print(&c);
	counters_free(&c);
	return ok;
}

/* How far the calls got: messages and ops of the fuzzers. If all of their
 * messages were refused, nothing was tested. Ops are rare, and a short run may
 * have none. The bystanders have ended: their counters do not change.
 */
static void achieved(const struct counters *before)
{
	static const struct {
		const char *name;
		bool ours;	/* the bystanders have a part in it */
		int least;
	} all[] = {
		{ "send_queued", true, LEAST }, { "recv_delivered", true, 0 },
		{ "send_rdma", false, 0 }, { "rdma_done", false, 0 },
		{ "rdma_failed", false, 0 }, { "cong_send_error", false, 0 },
		{ "limit_mem", false, 0 }, { "limit_pinned", false, 0 },
		{ "limit_keys", false, 0 },
	};
	struct counters now = counters_read();
	long long grown, ours = traffic->sent[0] + traffic->sent[1];
	char text[512];
	size_t at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		grown = counters_get(&now, all[i].name) -
			counters_get(before, all[i].name);
		grown -= all[i].ours ? ours : 0;
		tap_context("%s", all[i].name);
		check_range(grown, all[i].least, LLONG_MAX);
		at += snprintf(text + at, sizeof(text) - at, "%s %lld ",
			       all[i].name, grown);
	}
	tap_context("%s", "");
	tap_diag("by the fuzzers: %s", text);
	counters_free(&now);
}

static void fuzz(void)
{
	int processes = setting("FUZZ_PROCESSES", tap_ms(1) > 1 ?
				FEW_PROCESSES : PROCESSES);
	long seconds = setting("FUZZ_SECONDS", SECONDS);
	u64 seed = setting("FUZZ_SEED", 1);
	struct counters before;
	pid_t pids[2];

	tap_diag("FUZZ_SEED=%llu FUZZ_SECONDS=%ld FUZZ_PROCESSES=%d", seed,
		 seconds, processes);
	knobs();
	pattern_init(seed);
	before = counters_read();
	bystanders_start(pids);
	generations(seed, processes, seconds, &before);
	knobs();
	bystanders_end(pids);
	achieved(&before);
	counters_free(&before);
	if (!setting("FUZZ_COMPANY", 0) &&
	    !check(tap_wait(settled, NULL, SETTLE_MS)))
		settled((void *)1);
}

int main(int argc, char **argv)
{
	const struct tap_case cases[] = {
		{ "fuzz", "random calls do no harm to others, and leave nothing",
		  fuzz, TAP_SAME_NETNS, 100 + 2 * setting("FUZZ_SECONDS", SECONDS)
		},
	};

	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
