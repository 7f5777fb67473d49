// SPDX-License-Identifier: GPL-2.0-only
/*
 * sendmmsg(): its messages may wait for the last one, to go together. However
 * the call ends, all messages that it has taken come, in order and at once.
 *
 * timeout: 120
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"

enum {
	MOST		= 64,	/* messages of a call */
	SMALL		= 64,	/* bytes */
	MIDDLE		= 1000,
	LITTLE_SPACE	= 8192,
};

/* Messages of a call; each has its number in its first bytes. */
static struct mmsghdr *messages;
static struct iovec iov[MOST];
static u32 data[MOST][MIDDLE / sizeof(u32)];
static u32 next_number;

static void prepare(unsigned int nr, union addr *to, size_t bytes)
{
	if (!messages)
		messages = calloc(MOST, sizeof(*messages));
	for (unsigned int i = 0; i < nr; i++) {
		data[i][0] = next_number++;
		iov[i] = (struct iovec){ data[i], bytes };
		messages[i] = (struct mmsghdr){
			.msg_hdr = {
				.msg_name = to,
				.msg_namelen = addr_len(to),
				.msg_iov = &iov[i],
				.msg_iovlen = 1,
			},
		};
	}
}

static void expect(int fd, u32 number)
{
	static char buf[MIDDLE];
	u32 got;

	must(rds_recv_within(fd, buf, sizeof(buf), WAIT_MS, NULL));
	memcpy(&got, buf, sizeof(got));
	check_eq(got, number);
}

static void expect_nothing(int fd)
{
	u32 got;

	check_err(rds_recv(fd, &got, sizeof(got), MSG_DONTWAIT, NULL), EAGAIN);
}

static void in_order(void)
{
	union addr to;
	int sink = rds_bound(&to), fd = rds_bound(NULL);
	u32 first = next_number;

	for (int round = 1; round <= MOST; round++) {
		prepare(round, &to, SMALL);
		check_ret(sendmmsg(fd, messages, round, 0), round);
		for (int i = 0; i < round; i++) {
			check_eq(messages[i].msg_len, SMALL);
			expect(sink, first++);
		}
	}
	close(fd);
	close(sink);
}

/* All messages that were sent come, no others do, and more can follow. */
static void ended_early(int fd, int sink, u32 first, union addr *to)
{
	expect(sink, first);
	expect(sink, first + 1);
	prepare(1, to, SMALL);
	check_ret(sendmmsg(fd, messages, 1, 0), 1);
	expect(sink, next_number - 1);
	expect_nothing(sink);
}

static void bad_payload(void)
{
	union addr to;
	int sink = rds_bound(&to), fd = rds_bound(NULL);
	u32 first = next_number;

	prepare(5, &to, SMALL);
	iov[2].iov_base = (void *)16;
	check_ret(sendmmsg(fd, messages, 5, 0), 2);
	ended_early(fd, sink, first, &to);
	close(fd);
	close(sink);
}

/* The kernel does not ask the socket any more. */
static void bad_header(void)
{
	long page = sysconf(_SC_PAGESIZE);
	u32 first = next_number;
	union addr to;
	int sink = rds_bound(&to), fd = rds_bound(NULL);
	char *mem = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mmsghdr *edge;

	check(mem != MAP_FAILED);
	must(mprotect(mem + page, page, PROT_NONE));
	edge = (struct mmsghdr *)(mem + page) - 2;
	prepare(2, &to, SMALL);
	memcpy(edge, messages, 2 * sizeof(*edge));
	check_ret(sendmmsg(fd, edge, 5, 0), 2);
	ended_early(fd, sink, first, &to);
	munmap(mem, 2 * page);
	close(fd);
	close(sink);
}

static void too_long(void)
{
	static char large[MSG_MAX_BYTES + 1];
	union addr to;
	int sink = rds_bound(&to), fd = rds_bound(NULL);
	u32 first = next_number;

	prepare(5, &to, SMALL);
	iov[2] = (struct iovec){ large, sizeof(large) };
	check_ret(sendmmsg(fd, messages, 5, 0), 2);
	ended_early(fd, sink, first, &to);
	close(fd);
	close(sink);
}

static void no_space(void)
{
	u32 first = next_number;
	union addr to;
	int sink = rds_bound(&to), fd = rds_bound(NULL), sent;

	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, LITTLE_SPACE);
	prepare(MOST, &to, MIDDLE);
	sent = must(sendmmsg(fd, messages, MOST, MSG_DONTWAIT));
	check_range(sent, 1, MOST);
	while (sent--)
		expect(sink, first++);
	expect_nothing(sink);
	close(fd);
	close(sink);
}

static void waits_for_space(void)
{
	u32 first = next_number;
	union addr to;
	int sink = rds_bound(&to), fd = rds_bound(NULL);

	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, LITTLE_SPACE);
	prepare(MOST, &to, MIDDLE);
	check_ret(sendmmsg(fd, messages, MOST, 0), MOST);
	for (int i = 0; i < MOST; i++)
		expect(sink, first++);
	close(fd);
	close(sink);
}

static void two_receivers(void)
{
	u32 first = next_number;
	union addr to[2];
	int sinks[2], fd = rds_bound(NULL);

	for (int i = 0; i < 2; i++)
		sinks[i] = rds_bound(&to[i]);
	prepare(MOST, &to[0], SMALL);
	for (int i = 1; i < MOST; i += 2)
		messages[i].msg_hdr.msg_name = &to[1];
	check_ret(sendmmsg(fd, messages, MOST, 0), MOST);
	for (int i = 0; i < MOST; i++)
		expect(sinks[i % 2], first++);
	for (int i = 0; i < 2; i++)
		close(sinks[i]);
	close(fd);
}

/* Nobody comes behind it. */
static void batch_flag_alone(void)
{
	union addr to;
	int sink = rds_bound(&to), fd = rds_bound(NULL);
	u32 number = next_number++;

	for (int i = 0; i < 3; i++) {
		check_ret(rds_send(fd, &number, sizeof(number), MSG_BATCH, &to),
			  sizeof(number));
		expect(sink, number);
	}
	close(fd);
	close(sink);
}

static void closed_behind_it(void)
{
	union addr to;
	int sink = rds_bound(&to), fd = rds_bound(NULL);
	u32 number = next_number++;

	check_ret(rds_send(fd, &number, sizeof(number), MSG_BATCH, &to),
		  sizeof(number));
	close(fd);
	expect(sink, number);
	close(sink);
}

static const struct tap_case cases[] = {
	{ "in_order", "1 to 64 messages of a call come in order",
	  in_order, TAP_EACH_FAMILY, 0 },
	{ "bad_payload", "those in front of one that cannot be read come",
	  bad_payload, 0, 0 },
	{ "bad_header", "those come that the call has taken before a fault",
	  bad_header, 0, 0 },
	{ "too_long", "those in front of one that is too long come",
	  too_long, 0, 0 },
	{ "no_space", "without space a call takes some of them, and they come",
	  no_space, 0, 0 },
	{ "waits_for_space", "a call gets the space that it waits for",
	  waits_for_space, 0, 0 },
	{ "two_receivers", "messages to two receivers by turns come",
	  two_receivers, TAP_EACH_FAMILY, 0 },
	{ "batch_flag_alone", "MSG_BATCH and nothing behind it: it comes",
	  batch_flag_alone, 0, 0 },
	{ "closed_behind_it", "the same, and the socket is closed",
	  closed_behind_it, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
