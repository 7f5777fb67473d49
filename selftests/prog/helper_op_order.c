// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests: helper_op_order MODE LOCAL REMOTE PORT, see remote.h
 *
 * Ops of one socket to a node reach the wire in the order of their identifiers,
 * however many messages wait for each of its ports. The socket has many messages
 * queued to PORT. The receiver there does not read. It has none queued to the port
 * behind that.
 * Ops go to the two in turn, on the same words of served memory: a write of the
 * number of the round, and an atomic that raises another word to it and only
 * works behind that of the round before.
 *
 * backlog: all is queued while the other node stands still
 * congested: the port is congested, its messages are refused; others are not
 * large: PORT is read and has none queued; the messages behind the ops there are
 * large
 */
#include <string.h>

#include "congest.h"
#include "remote.h"
#include "tap.h"

enum {
	ROUNDS		= 24,
	OPS		= 2,		/* of each round */
	MESSAGES	= 8,
	CHUNK		= 4096,
	LARGE		= 200000,
	LIMIT_MS	= 60000,
};

static char data[MSG_MAX_BYTES];
static u64 values[ROUNDS + 1], old[ROUNDS + 1], ids[OPS * ROUNDS];

struct order {
	int fd;
	struct remote remote;
	struct target target;
	union addr ports[2];
	bool large;
};

static void begin(struct order *o)
{
	struct xrds_dest_sndbuf arg = { .bytes = 4 * MESSAGES * MSG_MAX_BYTES };

	o->large = false;
	remote_open(&o->remote);
	o->target = remote_get(&o->remote, 0, PAGE_BYTES, RDS_RDMA_READWRITE);
	o->fd = rds_bound(NULL);
	must(setsockopt(o->fd, SOL_RDS, XRDS_DEST_SNDBUF, &arg, sizeof(arg)));
	for (int i = 0; i < 2; i++)
		o->ports[i] = addr_of(remote_host, remote_arg(0, 0) + i);
}

static void op(struct order *o, struct op *op, const union addr *to, int n)
{
	op->id = &ids[n];
	op->payload = &values[n / OPS + 1];
	op->len = sizeof(values[0]);
	if (o->large && to == o->ports) {
		op->payload = data;
		op->len = LARGE;
	}
	op_set(op, RDS_RDMA_NOTIFY_ME, n + 1);
	must(op_send(o->fd, to, op));
	check_eq(ids[n], n + 1);
}

/* Those of a round go to the same port; rounds take turns. */
static void send_ops(struct order *o, bool only_second)
{
	for (int i = 1; i <= ROUNDS; i++) {
		const union addr *to = &o->ports[only_second || !(i & 1)];
		struct op write, swap;

		values[i] = i;
		write = op_write(&o->target, 0, &values[i], sizeof(values[i]));
		swap = op_cswp(&o->target, 8, i - 1, i, &old[i]);
		op(o, &write, to, OPS * (i - 1));
		op(o, &swap, to, OPS * (i - 1) + 1);
	}
}

/* The mark rises, notices come in order, and the last round's values remain. */
static void check_order(struct order *o)
{
	long long end = tap_now_ms() + tap_ms(LIMIT_MS);
	u64 last = 0, now = 0, done = 0;
	struct got got;

	while (done < OPS * ROUNDS && tap_now_ms() < end) {
		now = mark(o->fd, &o->target.addr);
		check(now >= last);
		last = now;
		if (got_within(o->fd, &got, 100) < 0)
			continue;
		for (int i = 0; i < got.nr_status; i++) {
			check_eq(got.status[i].user_token, ++done);
			check_eq(got.status[i].status, RDS_RDMA_SUCCESS);
		}
	}
	check_eq(done, OPS * ROUNDS);
	check_eq(mark(o->fd, &o->target.addr), OPS * ROUNDS);
	for (int i = 1; i <= ROUNDS; i++)
		check_eq(old[i], i - 1);
	check_eq(remote_peek(&o->remote, 0), ROUNDS);
	check_eq(remote_peek(&o->remote, 8), ROUNDS);
}

static void backlog(void)
{
	struct order o;

	begin(&o);
	remote_ask("hold", 1);
	for (int i = 0; i < MESSAGES; i++)
		must(rds_send(o.fd, data, sizeof(data), 0, &o.ports[0]));
	send_ops(&o, false);
	remote_ask("go", 1);
	check_order(&o);
	remote_say("done");
}

/* Messages to the congested port wait; ops to the other one do not. */
static void congested(void)
{
	struct order o;

	begin(&o);
	send_until(o.fd, &o.ports[0], CHUNK, ENOBUFS, LIMIT_MS);
	send_ops(&o, true);
	check_order(&o);
	remote_say("done");
}

static void large(void)
{
	struct order o;

	begin(&o);
	o.large = true;
	send_ops(&o, false);
	check_order(&o);
	remote_say("done");
}

static const struct mode modes[] = {
	{ "backlog", backlog },
	{ "congested", congested },
	{ "large", large },
};

int main(int argc, char **argv)
{
	return remote_main(argc, argv, modes, ARRAY_SIZE(modes));
}
