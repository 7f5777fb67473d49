// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: memory that its owner takes back while the remote side
 * reads or writes it. See remote.h for the command line; the owner is here.
 *
 * Bytes that the owner stores after RDS_FREE_MR stay, and are not read. With
 * RDS_RDMA_INVALIDATE that is so from the return of the call on. Without it
 * soft-RoCE may still be at a packet; it is certainly done with it when the op
 * of that has ended.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pattern.h"
#include "remote.h"
#include "tap.h"

enum {
	BYTES		= 96 * 1024,
	SEED		= 5,
	HITS		= 2,		/* ops that are to be caught under way */
	WARM_UP		= 2,		/* ops that are left alone first */
	LIMIT_US	= 1000000,
	MAX_ROUNDS	= 60,
	POISON		= 'p',
};

#define WRITABLE RDS_RDMA_READWRITE

static struct remote r;
static char *mem;
static int owner;

/* One op of the remote side's */
struct peer_op {
	pthread_t thread;
	bool write;
	u64 cookie;
	int status;
	long us;		/* from the call to the answer */
};

static long now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000L + ts.tv_nsec / 1000;
}

static void *peer_thread(void *arg)
{
	struct peer_op *p = arg;
	long start = now_us();

	p->status = p->write ? remote_write_here(&r, p->cookie, 0, BYTES) :
			       remote_read_here(&r, p->cookie, 0, BYTES);
	p->us = now_us() - start;
	return NULL;
}

static void peer_begin(struct peer_op *p)
{
	must(mr_get(owner, mem, BYTES, WRITABLE, &p->cookie));
	/* both have the same, so any poison at the other side shows */
	stamp(mem, BYTES, SEED);
	if (p->write)
		memset(mem, 0, BYTES);
	pthread_create(&p->thread, NULL, peer_thread, p);
}

static void end_region(u64 cookie, u32 flags)
{
	struct rds_free_mr_args args = { .cookie = cookie, .flags = flags };

	check_ret(setsockopt(owner, SOL_RDS, RDS_FREE_MR, &args, sizeof(args)),
		  0);
}

/* Free it some time after the op has begun; true if that fails for it */
static bool round_of(struct peer_op *p, u32 flags, long after_us)
{
	peer_begin(p);
	usleep(after_us);
	end_region(p->cookie, flags);
	if (flags)
		memset(mem, POISON, BYTES);
	pthread_join(p->thread, NULL);
	if (!flags)
		memset(mem, POISON, BYTES);
	/* Soft-RoCE refuses the packets of a write, but a read in the middle it
	 * just ends, with the connection: it does not say why.
	 */
	if (p->write && p->status != RDS_RDMA_SUCCESS)
		check_eq(p->status, RDS_RDMA_REMOTE_ERROR);
	check(p->status != RDS_RDMA_CANCELED);
	check(p->status >= 0);
	check(filled(mem, BYTES, POISON));
	check(remote_stamped(&r, 0, BYTES, SEED));
	return p->status != RDS_RDMA_SUCCESS;
}

static void rounds(bool write, u32 flags)
{
	struct peer_op p = { .write = write };
	struct prng dice = { .state = now_us() };
	int hits = 0, n;
	long whole = LIMIT_US;

	tap_context("%s, flags %u", write ? "writes" : "reads", flags);
	for (n = 0; n < MAX_ROUNDS && hits < HITS; n++) {
		/* how long one takes that nobody disturbs */
		if (n < WARM_UP) {
			peer_begin(&p);
			pthread_join(p.thread, NULL);
			check_eq(p.status, RDS_RDMA_SUCCESS);
			check(stamped(mem, BYTES, SEED));
			end_region(p.cookie, flags);
			whole = p.us < whole ? p.us : whole;
			continue;
		}
		hits += round_of(&p, flags, prng_below(&dice, whole));
		/* the load that slowed it down may be over */
		whole = p.us < whole ? p.us : whole;
	}
	check_eq(hits, HITS);
	/* an op that comes later finds no region */
	check_eq(write ? remote_write_here(&r, p.cookie, 0, BYTES) :
			 remote_read_here(&r, p.cookie, 0, BYTES),
		 RDS_RDMA_REMOTE_ERROR);
	check(filled(mem, BYTES, POISON));
	remote_say("%s, flags %u: caught %d of %d", write ? "writes" : "reads",
		   flags, hits, n - WARM_UP);
}

static void freed(void)
{
	mem = pages(BYTES);
	owner = rds_bound(NULL);
	remote_open(&r);
	remote_stamp(&r, 0, BYTES, SEED);
	for (int i = 0; i < 4; i++)
		rounds(i % 2, i / 2 ? RDS_RDMA_INVALIDATE : 0);
	close(owner);
	check_pinned_falls(0);
}

static const struct mode modes[] = {
	{ "freed", freed },
};

int main(int argc, char **argv)
{
	return remote_main(argc, argv, modes, ARRAY_SIZE(modes));
}
