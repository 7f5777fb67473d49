// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests between two nodes of which either may run in-tree RDS: it uses
 * nothing but calls that both stacks have. "helper_legacy MODE LOCAL REMOTE
 * [NUMBER]", see remote.h.
 *
 *   ping    the kernel of the other node answers
 *   owner   offers memory with messages: use-once keys, one a round
 *   reader, writer, silent
 *           reads from that memory, or writes to it, with a message or without
 *   source  sends until it is stopped, waits until it may go on, sends the rest
 *   sink    reads nothing until SIGUSR1, then everything
 */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "remote.h"
#include "tap.h"

enum {
	PORT		= 4300,		/* of owner and source; others: + 1 */
	LIMIT_MS	= 40000,	/* of each wait */
	MEMORY		= 256 << 10,
	LEAST_BYTES	= 1000,
	SEND_BYTES	= 4096,		/* messages of source */
	SMALL_BUFFER	= 64 << 10,	/* receive buffer of sink */
	MAX_BEFORE_STOP	= 4096,		/* messages that must be enough for it */
	TRY_MS		= 20,
};

/* Owner and actor tell each other a round by this */
struct word {
	u64 magic;
	u64 round;
	u64 bytes;
	u64 seed;		/* of the bytes in memory after the op */
};

#define MAGIC	0x7373616c63737864ull
#define THE_END	(~0ull)		/* number of the last message of source */

static int side(u16 port, u16 other, union addr *to)
{
	*to = addr_of(remote_host, other);
	return rds_bound_to(tap_host, port, NULL);
}

/* The op on the owner's memory */
enum act { READ, WRITE, SILENT };

/* ------------------------------------------------------------------- ping */

static void ping(void)
{
	union addr to = addr_of(remote_host, 0), from;
	int fd = rds_bound_to(tap_host, 0, NULL);
	char byte;

	for (int i = 0; i < remote_arg(0, 1); i++) {
		check_eq(rds_send(fd, NULL, 0, 0, &to), 0);
		check_eq(rds_recv_within(fd, &byte, 1, LIMIT_MS, &from), 0);
		check(addr_same(&from, &to));
	}
}

/* --------------------------------------------------------- owner and actor */

static void expect_word(int fd, struct got *got, struct word *word, u64 round)
{
	check_eq(got_within(fd, got, LIMIT_MS), sizeof(*word));
	memcpy(word, got->data, sizeof(*word));
	check(word->magic == MAGIC);
	check_eq(word->round, round);
}

/* Congestion and a connection that is not up yet pass. */
static void send_word(int fd, const union addr *to, const struct word *word,
		      const struct ctl *ctl)
{
	long long end = tap_now_ms() + tap_ms(LIMIT_MS);
	ssize_t ret;

	for (;;) {
		ret = ctl_send(fd, to, ctl, word, sizeof(*word), MSG_DONTWAIT);
		if (ret >= 0 || (errno != EAGAIN && errno != ENOBUFS) ||
		    tap_now_ms() > end)
			break;
		usleep(TRY_MS * 1000);
	}
	check_eq(ret, sizeof(*word));
}

static u64 round_bytes(int round)
{
	u64 bytes = LEAST_BYTES + round * 7919ull * 5;

	return bytes < MEMORY ? bytes : MEMORY;
}

/* Offers memory that begins in the middle of a page. */
static void offer(int fd, const union addr *to, char *mem, struct word *word)
{
	struct rds_get_mr_args args = {
		.vec = { (u64)(unsigned long)mem, word->bytes },
		.flags = RDS_RDMA_USE_ONCE | RDS_RDMA_READWRITE,
	};
	struct ctl ctl = { 0 };
	u64 cookie;

	args.cookie_addr = (u64)(unsigned long)&cookie;
	ctl_add(&ctl, RDS_CMSG_RDMA_MAP, &args, sizeof(args));
	send_word(fd, to, word, &ctl);
}

static void owner(void)
{
	char *mem = pages(MEMORY + PAGE_BYTES) + 100;
	struct ctl none = { 0 };
	struct word word;
	struct got got;
	union addr to;
	int fd = side(PORT, PORT + 1, &to);

	remote_say("ready");
	expect_word(fd, &got, &word, 0);
	send_word(fd, &to, &word, &none);
	for (int i = 1; i <= remote_arg(0, 1); i++) {
		word = (struct word){ MAGIC, i, round_bytes(i), i };
		stamp(mem, MEMORY, i);
		offer(fd, &to, mem, &word);
		/* a silent op has no message: this is of the message that
		 * follows it
		 */
		expect_word(fd, &got, &word, i);
		check(!got.has_cookie);
		check(stamped(mem, word.bytes, word.seed));
	}
}

static void act_once(int fd, const union addr *to, const struct got *got,
		     struct word *word, char *mem, enum act act)
{
	struct target t = { .fd = fd, .addr = *to, .bytes = word->bytes,
			    .cookie = got->cookie };
	struct ctl none = { 0 };
	struct got notice;
	struct op op;

	check(got->has_cookie);
	if (act == READ) {
		memset(mem, 0, word->bytes);
		op = op_read(&t, 0, mem, word->bytes);
		/* The owner changes its memory when the message comes. A read
		 * may still be repeated then; in-tree RDS has the message wait
		 * for it only if asked.
		 */
		op_set(&op, RDS_RDMA_FENCE, 0);
	} else {
		word->seed += 1000;
		stamp(mem, word->bytes, word->seed);
		op = op_write(&t, 0, mem, word->bytes);
	}
	if (act != SILENT) {
		op.payload = word;
		op.len = sizeof(*word);
		check_eq(op_run(fd, to, &op), RDS_RDMA_SUCCESS);
	} else {
		/* in-tree RDS tells of the op when more has been sent */
		op_set(&op, RDS_RDMA_SILENT | RDS_RDMA_NOTIFY_ME, word->round);
		must(op_send(fd, to, &op));
		send_word(fd, to, word, &none);
		check_eq(got_within(fd, &notice, LIMIT_MS), 0);
		check_eq(notice.nr_status, 1);
		check_eq(notice.status[0].user_token, word->round);
		check_eq(notice.status[0].status, RDS_RDMA_SUCCESS);
	}
	if (act == READ)
		check(stamped(mem, word->bytes, word->seed));
}

static void actor(enum act act)
{
	struct word word = { .magic = MAGIC };
	char *mem = pages(MEMORY);
	struct ctl none = { 0 };
	struct got got;
	union addr to;
	int fd = side(PORT + 1, PORT, &to);

	send_word(fd, &to, &word, &none);
	expect_word(fd, &got, &word, 0);
	for (int i = 1; i <= remote_arg(0, 1); i++) {
		expect_word(fd, &got, &word, i);
		act_once(fd, &to, &got, &word, mem, act);
	}
	check(tap_wait(rds_all_acked, &fd, LIMIT_MS));
}

static void reader(void)
{
	actor(READ);
}

static void writer(void)
{
	actor(WRITE);
}

static void silent(void)
{
	actor(SILENT);
}

/* ------------------------------------------------------------ source, sink */

/* Sends message @i; false if it was refused for congestion. */
static bool send_number(int fd, const union addr *to, u64 i)
{
	static char data[SEND_BYTES];
	ssize_t ret;

	memcpy(data, &i, sizeof(i));
	ret = rds_send(fd, data, sizeof(data), MSG_DONTWAIT, to);
	if (ret < 0 && errno == ENOBUFS)
		return false;
	if (ret < 0 && errno == EAGAIN) {
		poll_one(fd, POLLOUT, TRY_MS);
		return send_number(fd, to, i);
	}
	check_eq(ret, sizeof(data));
	return true;
}

/* Until it is not refused any more */
static void insist(int fd, const union addr *to, u64 i)
{
	long long end = tap_now_ms() + tap_ms(LIMIT_MS);

	while (!send_number(fd, to, i)) {
		if (tap_now_ms() > end)
			tap_fail("message %llu is still refused", i);
		usleep(TRY_MS * 1000);
	}
}

static void source(void)
{
	union addr to;
	int fd = side(PORT, PORT + 1, &to);
	u64 i = 0, last;

	while (i < MAX_BEFORE_STOP && send_number(fd, &to, i))
		i++;
	check(i < MAX_BEFORE_STOP);
	remote_say("congested");
	insist(fd, &to, i++);
	remote_say("released");
	for (last = i + remote_arg(0, 1); i < last; i++)
		insist(fd, &to, i);
	insist(fd, &to, THE_END);
	check(tap_wait(rds_all_acked, &fd, LIMIT_MS));
}

static void sink(void)
{
	static char data[SEND_BYTES];
	union addr to, from;
	u64 i = 0, got;
	int fd;

	fd = side(PORT + 1, PORT, &to);
	rds_set_int(fd, SOL_SOCKET, SO_RCVBUF, SMALL_BUFFER);
	remote_say("ready");
	while (!remote_stop())
		usleep(TRY_MS * 1000);
	for (;; i++) {
		check_eq(rds_recv_within(fd, data, sizeof(data), LIMIT_MS,
					 &from), sizeof(data));
		memcpy(&got, data, sizeof(got));
		check(addr_same(&from, &to));
		if (got == THE_END)
			break;
		if (!check_eq(got, i))
			break;
	}
	check(i > (u64)remote_arg(0, 1));
}

/* ------------------------------------------------------------------- main */

int main(int argc, char **argv)
{
	static const struct mode modes[] = {
		{ "ping", ping }, { "owner", owner }, { "reader", reader },
		{ "writer", writer }, { "silent", silent },
		{ "source", source }, { "sink", sink },
	};

	return remote_main(argc, argv, modes, ARRAY_SIZE(modes));
}
