// SPDX-License-Identifier: GPL-2.0-only
/*
 * Atomics: the value that they leave at the target and the value that they
 * bring back, compared with a model, plain and masked, alone and from several
 * sockets at once.
 *
 * timeout: 180
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pattern.h"
#include "rdma.h"
#include "tap.h"

enum {
	RANDOM_OPS	= 500,
	SEED		= 4,
	THREADS		= 3,
	THREAD_OPS	= 300,
	SOME		= 50,		/* that succeed in spite of resets */
	OFFSET		= 40,		/* of the word in the target */
};

#define WRITABLE RDS_RDMA_READWRITE

/* As the InfiniBand masked atomics: a set bit of the mask ends a field */
static u64 model_masked_add(u64 a, u64 b, u64 nocarry)
{
	u64 sum = 0, carry = 0;

	for (int i = 0; i < 64; i++) {
		u64 bit = (a >> i & 1) + (b >> i & 1) + carry;

		sum |= (bit & 1) << i;
		carry = nocarry >> i & 1 ? 0 : bit >> 1;
	}
	return sum;
}

static u64 model(const struct op *op, u64 old)
{
	const struct rds_atomic_args *a = &op->atomic;

	switch (op->type) {
	case RDS_CMSG_ATOMIC_FADD:
		return old + a->fadd.add;
	case RDS_CMSG_MASKED_ATOMIC_FADD:
		return model_masked_add(old, a->m_fadd.add,
					a->m_fadd.nocarry_mask);
	case RDS_CMSG_ATOMIC_CSWP:
		return old == a->cswp.compare ? a->cswp.swap : old;
	default:
		if ((old ^ a->m_cswp.compare) & a->m_cswp.compare_mask)
			return old;
		return (old & ~a->m_cswp.swap_mask) |
		       (a->m_cswp.swap & a->m_cswp.swap_mask);
	}
}

static u64 *word_of(const struct target *t)
{
	return (u64 *)(t->mem + OFFSET);
}

/* Runs it on a target that holds @old, and compares */
static void atomic_one(int fd, const struct target *t, struct op *op, u64 old)
{
	u64 want = model(op, old);
	u64 back = ~old;

	*word_of(t) = old;
	op->atomic.local_addr = (uintptr_t)&back;
	check_eq(op_run(fd, &t->addr, op), RDS_RDMA_SUCCESS);
	check_eq(back, old);
	check_eq(*word_of(t), want);
	check_eq(word_of(t)[-1], 0);
	check_eq(word_of(t)[1], 0);
}

/* Each value on each old one */
static void pairs(const u64 *values, size_t nr,
		  struct op (*make)(const struct target *t, u64 value))
{
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;

	target_open(&t, PAGE_BYTES, WRITABLE);
	for (size_t i = 0; i < nr; i++) {
		for (size_t j = 0; j < nr; j++) {
			tap_context("%#llx, was %#llx", values[j], values[i]);
			op = make(&t, values[j]);
			atomic_one(fd, &t, &op, values[i]);
		}
	}
	target_close(&t);
	close(fd);
}

static struct op add_value(const struct target *t, u64 value)
{
	return op_fadd(t, OFFSET, value, NULL);
}

static void fadd(void)
{
	static const u64 values[] = { 0, 1, 7, ~0ull, 1ull << 63, 0xffffffff };

	pairs(values, ARRAY_SIZE(values), add_value);
}

static struct op swap_value(const struct target *t, u64 value)
{
	return op_cswp(t, OFFSET, value, 42, NULL);
}

static void cswp(void)
{
	static const u64 values[] = { 0, 1, ~0ull, 0x0123456789abcdef };

	pairs(values, ARRAY_SIZE(values), swap_value);
}

/* Known results, so that kernel and model cannot be wrong the same way */
static void masked_known(void)
{
	static const struct { u64 old, add, nocarry, sum; } adds[] = {
		/* two fields of 32 bits; the lower one overflows */
		{ 0x00000001ffffffff, 1, 0x80000000, 0x0000000100000000 },
		/* fields of a byte, all of which overflow */
		{ 0xffffffffffffffff, 0x0101010101010101, 0x8080808080808080,
		  0 },
		/* no boundary: as the plain one */
		{ 0xff, 1, 0, 0x100 },
		/* each bit a field of its own: exclusive or */
		{ 0xf0f0, 0xffff, ~0ull, 0x0f0f },
	};
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;
	u64 back;

	target_open(&t, PAGE_BYTES, WRITABLE);
	for (size_t i = 0; i < ARRAY_SIZE(adds); i++) {
		tap_context("sum %zu", i);
		check_eq(model_masked_add(adds[i].old, adds[i].add,
					  adds[i].nocarry), adds[i].sum);
		*word_of(&t) = adds[i].old;
		op = op_fadd(&t, OFFSET, 0, &back);
		op.type = RDS_CMSG_MASKED_ATOMIC_FADD;
		op.atomic.m_fadd.add = adds[i].add;
		op.atomic.m_fadd.nocarry_mask = adds[i].nocarry;
		check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
		check_eq(back, adds[i].old);
		check_eq(*word_of(&t), adds[i].sum);
	}
	tap_context("swap");
	*word_of(&t) = 0x1122334455667788;
	op = op_cswp(&t, OFFSET, 0, 0, &back);
	op.type = RDS_CMSG_MASKED_ATOMIC_CSWP;
	op.atomic.m_cswp.compare = 0x88;
	op.atomic.m_cswp.compare_mask = 0xff;
	op.atomic.m_cswp.swap = ~0ull;
	op.atomic.m_cswp.swap_mask = 0xff00;
	check_eq(op_run(fd, &t.addr, &op), RDS_RDMA_SUCCESS);
	check_eq(*word_of(&t), 0x112233445566ff88);
	target_close(&t);
	close(fd);
}

static struct op random_op(struct prng *prng, const struct target *t, u64 old)
{
	static const int types[] = {
		RDS_CMSG_ATOMIC_FADD, RDS_CMSG_ATOMIC_CSWP,
		RDS_CMSG_MASKED_ATOMIC_FADD, RDS_CMSG_MASKED_ATOMIC_CSWP,
	};
	struct op op = op_cswp(t, OFFSET, 0, 0, NULL);

	op.type = types[prng_below(prng, ARRAY_SIZE(types))];
	/* the first two words are add and mask, or compare and swap */
	op.atomic.m_cswp.compare = prng_below(prng, 2) ? old : prng_next(prng);
	op.atomic.m_cswp.swap = prng_next(prng);
	op.atomic.m_cswp.compare_mask = prng_next(prng) & prng_next(prng) &
					prng_next(prng);
	op.atomic.m_cswp.swap_mask = prng_next(prng);
	return op;
}

static void random_ops(void)
{
	struct prng prng = { .state = SEED };
	int fd = rds_bound(NULL);
	struct target t;
	struct op op;
	u64 old;

	target_open(&t, PAGE_BYTES, WRITABLE);
	for (int i = 0; i < RANDOM_OPS; i++) {
		old = prng_next(&prng);
		op = random_op(&prng, &t, old);
		tap_context("op %d, type %d", i, op.type);
		atomic_one(fd, &t, &op, old);
	}
	target_close(&t);
	close(fd);
}

/* ------------------------------------------------------------ many at once */

struct adder {
	const struct target *t;
	u64 olds[THREAD_OPS];
};

static void *adder_thread(void *arg)
{
	struct adder *a = arg;
	int fd = rds_bound(NULL);
	struct xrds_barrier b;
	struct op op;

	for (int i = 0; i < THREAD_OPS; i++) {
		op = op_fadd(a->t, OFFSET, 1, &a->olds[i]);
		/* nobody reads messages there */
		op_set(&op, RDS_RDMA_SILENT, 0);
		must(op_send(fd, &a->t->addr, &op));
	}
	check_ret(barrier(fd, &a->t->addr, THREAD_OPS, 0, tap_ms(WAIT_MS), &b),
		  0);
	close(fd);
	return NULL;
}

/* Each old value is seen once: none was added to twice, or not at all */
static void concurrent_adds(void)
{
	static struct adder adders[THREADS];
	static bool seen[THREADS * THREAD_OPS];
	pthread_t threads[THREADS];
	struct target t;

	target_open(&t, PAGE_BYTES, WRITABLE);
	for (int i = 0; i < THREADS; i++) {
		adders[i].t = &t;
		pthread_create(&threads[i], NULL, adder_thread, &adders[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	check_eq(*word_of(&t), ARRAY_SIZE(seen));
	for (int i = 0; i < THREADS; i++) {
		for (int j = 0; j < THREAD_OPS; j++) {
			u64 old = adders[i].olds[j];

			if (!check(old < ARRAY_SIZE(seen)))
				continue;
			check(!seen[old]);
			seen[old] = true;
		}
	}
	target_close(&t);
}

/* Atomic toward the owner's own instructions as well */
static void owner_adds_too(void)
{
	struct adder adder = { 0 };
	pthread_t thread;
	struct target t;

	loop_only();
	target_open(&t, PAGE_BYTES, WRITABLE);
	adder.t = &t;
	pthread_create(&thread, NULL, adder_thread, &adder);
	for (int i = 0; i < THREAD_OPS; i++) {
		__atomic_add_fetch(word_of(&t), 1ull << 32, __ATOMIC_SEQ_CST);
		sched_yield();
	}
	pthread_join(thread, NULL);
	check_eq(*word_of(&t), (u64)THREAD_OPS << 32 | THREAD_OPS);
	target_close(&t);
}

enum { LOSSY_OPS = 2000, LOSSY_BATCH = 16 };

/* Sends as many as may be under way, each for a word of its own */
static int lossy_send(int fd, const struct target *t, int sent, int done)
{
	static u64 old;
	struct op op;

	while (sent < LOSSY_OPS && sent - done < LOSSY_BATCH) {
		op = op_fadd(t, sent * sizeof(u64), 1, &old);
		op.msg_flags = MSG_DONTWAIT;
		op_set(&op, RDS_RDMA_SILENT | RDS_RDMA_NOTIFY_ME, sent);
		if (op_send(fd, &t->addr, &op) < 0)
			break;
		sent++;
	}
	return sent;
}

/* Resets lose ops, but none is carried out twice: a word whose op has succeeded
 * is 1, one whose op was dropped 0 or 1.
 */
static void at_most_once(void)
{
	static int status[LOSSY_OPS];
	int fd = rds_bound(NULL), sent = 0, done = 0, good = 0, lost = 0;
	struct target t;
	struct got got;

	loop_only();
	memset(status, -1, sizeof(status));
	knob("net/rds/reconnect_max_delay_ms", 5);
	knob("net/xrds/loop/loss_permille", 30);
	knob("net/xrds/loop/bounce_ms", 20);
	target_open(&t, LOSSY_OPS * sizeof(u64), WRITABLE);
	while (done < LOSSY_OPS) {
		/* not all at once, or a reset takes most of them */
		sent = lossy_send(fd, &t, sent, done);
		if (got_within(fd, &got, WAIT_MS) < 0)
			break;
		for (int i = 0; i < got.nr_status; i++) {
			u64 op = got.status[i].user_token;

			check_eq(status[op], -1);
			status[op] = got.status[i].status;
			done++;
		}
	}
	check_eq(sent, LOSSY_OPS);
	for (int i = 0; i < LOSSY_OPS; i++) {
		u64 word = ((u64 *)t.mem)[i];

		tap_context("op %d", i);
		good += status[i] == RDS_RDMA_SUCCESS;
		lost += status[i] == RDS_RDMA_DROPPED;
		check_range(word, status[i] == RDS_RDMA_SUCCESS, 1);
	}
	tap_context("%d done, %d lost", good, lost);
	check_eq(good + lost, LOSSY_OPS);
	/* or the test shows nothing */
	check(good >= SOME);
	check(lost > 0);
	target_close(&t);
	close(fd);
}

static const struct tap_case cases[] = {
	{ "fadd", "fetch and add: the sum there, the old value here", fadd,
	  TAP_EACH_FAMILY, 0 },
	{ "cswp", "compare and swap: both outcomes", cswp, TAP_EACH_FAMILY, 0 },
	{ "masked_known", "masks: results worked out by hand", masked_known,
	  0, 0 },
	{ "random_ops", "random ops of all four kinds, against a model",
	  random_ops, TAP_EACH_FAMILY, 0 },
	{ "concurrent_adds", "several sockets add to one word, each exactly once",
	  concurrent_adds, TAP_EACH_FAMILY, 60 },
	{ "owner_adds_too", "and the owner adds to the other half of it",
	  owner_adds_too, 0, 60 },
	{ "at_most_once", "resets lose atomics and repeat none", at_most_once,
	  0, 120 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
