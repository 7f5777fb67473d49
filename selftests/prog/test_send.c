// SPDX-License-Identifier: GPL-2.0-only
/*
 * sendmsg(): destinations, flags, sizes and the errors for bad ones. Send space
 * and congestion are in test_space.
 *
 * timeout: 180
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "counters.h"
#include "pattern.h"
#include "sock.h"
#include "tap.h"

enum {
	BATCH		= 16,
	DROPPED		= 5,
	RACE_ROUNDS	= 300,
	PING_STARTS	= 1000,
	FIRST_SENDS	= 8000,
	FIRST_PORT	= 20000,
	SUCCESSORS	= 3,
};

static void *buffer(size_t len)
{
	void *data = calloc(1, len + 1);

	if (!data)
		tap_fail("no memory");
	return data;
}

/* ----------------------------------------------------------- destinations */

static void unbound(void)
{
	union addr to = addr_of(tap_host, 4000);
	int fd = rds_socket();

	check_err(rds_send(fd, "x", 1, MSG_DONTWAIT, &to), ENOTCONN);
	must(connect(fd, &to.sa, addr_len(&to)));
	check_err(send(fd, "x", 1, MSG_DONTWAIT), ENOTCONN);
	close(fd);
}

static void no_destination(void)
{
	int fd = rds_bound(NULL);

	check_err(send(fd, "x", 1, MSG_DONTWAIT), ENOTCONN);
	check_err(write(fd, "x", 1), ENOTCONN);
	close(fd);
}

static void bad_destination(void)
{
	static const char * const hosts[] = {
		"0.0.0.0", "255.255.255.255", "224.0.0.1", "::", "ff02::1",
		"::ffff:0.0.0.0", "::ffff:224.0.0.1",
	};
	int fd = rds_bound(NULL);
	union addr to;

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		tap_context("%s", hosts[i]);
		to = addr_of(hosts[i], 4000);
		check_err(rds_send(fd, "x", 1, MSG_DONTWAIT, &to), EINVAL);
	}
	to = addr_of(tap_host, 4000);
	for (socklen_t len = 1; len < sizeof(to.in); len++) {
		tap_context("length %u", len);
		check_err(sendto(fd, "x", 1, MSG_DONTWAIT, &to.sa, len),
			  EINVAL);
	}
	tap_context("family");
	to.sa.sa_family = AF_UNIX;
	check_err(sendto(fd, "x", 1, MSG_DONTWAIT, &to.sa, sizeof(to.in6)),
		  EINVAL);
	close(fd);
}

static void mixed_families(void)
{
	union addr to4 = addr_of("127.0.0.1", 4000);
	union addr to6 = addr_of("::1", 4000);
	union addr mapped = addr_of("::ffff:127.0.0.1", 4000);
	int fd4 = rds_bound_to("127.0.0.1", 4000, NULL);
	int fd6 = rds_bound_to("::1", 4000, NULL);
	struct xrds_dest_sndbuf space = { .bytes = 65536 };
	char byte;

	memcpy(&space.dest, &to6, sizeof(to6));
	check_err(setsockopt(fd4, SOL_RDS, XRDS_DEST_SNDBUF, &space,
			     sizeof(space)), EOPNOTSUPP);
	check_err(rds_send(fd4, "x", 1, MSG_DONTWAIT, &to6), EOPNOTSUPP);
	check_err(rds_send(fd6, "x", 1, MSG_DONTWAIT, &to4), EOPNOTSUPP);
	check_err(rds_send(fd6, "x", 1, MSG_DONTWAIT, &mapped), EOPNOTSUPP);
	check_ret(rds_send(fd4, "x", 1, MSG_DONTWAIT, &mapped), 1);
	check_ret(rds_recv_within(fd4, &byte, 1, WAIT_MS, NULL), 1);
	close(fd4);
	close(fd6);
}

static void name_over_connect(void)
{
	int a = rds_bound(NULL), b = rds_bound(NULL), c = rds_bound(NULL);
	union addr to_b = rds_self(b), to_c = rds_self(c);
	char byte;

	must(connect(a, &to_b.sa, addr_len(&to_b)));
	check_ret(rds_send(a, "c", 1, 0, &to_c), 1);
	check_ret(write(a, "b", 1), 1);
	check_ret(rds_recv_within(c, &byte, 1, WAIT_MS, NULL), 1);
	check_eq(byte, 'c');
	check_ret(rds_recv_within(b, &byte, 1, WAIT_MS, NULL), 1);
	check_eq(byte, 'b');
	close(a);
	close(b);
	close(c);
}

static void unbound_port(void)
{
	long long before = counter_now("recv_drop_no_sock");
	int a = rds_bound(NULL), b = rds_bound(NULL);
	union addr to = rds_self(b), live = rds_self(a);
	char byte;

	close(b);
	for (int i = 0; i < DROPPED; i++)
		check_ret(rds_send(a, "x", 1, MSG_DONTWAIT, &to), 1);
	check(counter_reaches("recv_drop_no_sock", before + DROPPED, WAIT_MS));
	check_eq(counter_now("recv_drop_no_sock"), before + DROPPED);
	/* it concerns nobody else */
	check_ret(rds_send(a, "y", 1, MSG_DONTWAIT, &live), 1);
	check_ret(rds_recv_within(a, &byte, 1, WAIT_MS, NULL), 1);
	close(a);
}

/* A sender that knows its receiver sends to the socket that is there now. */
static void successor(void)
{
	int fd = rds_bound(NULL), rx = rds_bound(NULL);
	union addr to = rds_self(rx);
	long long dropped;
	char byte;

	for (int i = 0; i < SUCCESSORS; i++) {
		tap_context("receiver %d", i);
		for (int j = 0; j < 2; j++) {
			check_ret(rds_send(fd, "x", 1, 0, &to), 1);
			check_ret(rds_recv_within(rx, &byte, 1, WAIT_MS, NULL),
				  1);
		}
		close(rx);
		dropped = counter_now("recv_drop_no_sock");
		check_ret(rds_send(fd, "y", 1, 0, &to), 1);
		must_wait(rds_all_acked, &fd, WAIT_MS);
		check_eq(counter_now("recv_drop_no_sock"), dropped + 1);
		rx = rds_bound_to(tap_host, addr_port(&to), NULL);
	}
	close(rx);
	close(fd);
}

/* A message that is received at once makes none be lost that is under way. */
static void passed(void)
{
	int fast = rds_bound(NULL), late = rds_bound(NULL);
	int rx = rds_bound(NULL);
	union addr to = rds_self(rx);
	char byte;

	check_ret(rds_send(fast, "x", 1, 0, &to), 1);
	check_ret(rds_recv_within(rx, &byte, 1, WAIT_MS, NULL), 1);
	stall_loop();
	for (int i = 0; i < BATCH; i++)
		check_ret(rds_send(late, "l", 1, 0, &to), 1);
	knob("net/xrds/loop/delay_ms", 0);
	check_ret(rds_send(fast, "f", 1, 0, &to), 1);
	for (int i = 0; i < BATCH + 1; i++)
		check_ret(rds_recv_within(rx, &byte, 1, WAIT_MS, NULL), 1);
	close(rx);
	close(late);
	close(fast);
}

static void ping(void)
{
	union addr port0 = addr_of(tap_host, 0), from;
	int fd = rds_bound(NULL);
	char byte;

	check_ret(rds_send(fd, NULL, 0, 0, &port0), 0);
	check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, &from), 0);
	check(addr_same(&from, &port0));
	close(fd);
}

/* Had the first one been answered, there would be three answers. */
static void ping_disabled(void)
{
	union addr port0 = addr_of(tap_host, 0), from;
	long long before = counter_now("recv_drop_ping");
	int fd = rds_bound(NULL);
	char byte;

	knob("net/rds/ping_enable", 0);
	/* with a byte: SIOCOUTQ counts bytes */
	check_ret(rds_send(fd, "x", 1, 0, &port0), 1);
	check(tap_wait(rds_all_acked, &fd, WAIT_MS));
	check_eq(counter_now("recv_drop_ping"), before + 1);
	knob("net/rds/ping_enable", 1);
	for (int i = 0; i < 2; i++) {
		check_ret(rds_send(fd, NULL, 0, 0, &port0), 0);
		check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, &from), 0);
	}
	check_err(rds_recv(fd, &byte, 1, MSG_DONTWAIT, &from), EAGAIN);
	close(fd);
}

/* ------------------------------------------------------------------ flags */

static void flags_accepted(void)
{
	static const int flags[] = {
		MSG_DONTWAIT, MSG_NOSIGNAL, MSG_EOR,
		MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR,
	};
	union addr self;
	int fd = rds_bound(&self);
	char byte;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		tap_context("flags %#x", flags[i]);
		check_ret(rds_send(fd, "x", 1, flags[i], &self), 1);
		check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL), 1);
	}
	close(fd);
}

static void flags_refused(void)
{
	static const int flags[] = {
		MSG_OOB, MSG_PEEK, MSG_DONTROUTE, MSG_CTRUNC, MSG_PROXY,
		MSG_TRUNC, MSG_WAITALL, MSG_FIN, MSG_SYN, MSG_CONFIRM, MSG_RST,
		MSG_ERRQUEUE, MSG_MORE, MSG_FASTOPEN,
		/* not MSG_WAITFORONE: on 6.12 the bit is the kernel's own,
		 * which takes it off before anybody sees it
		 */
	};
	union addr self;
	int fd = rds_bound(&self);
	char byte;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		tap_context("flag %#x", flags[i]);
		check_err(rds_send(fd, "x", 1, flags[i], &self), EOPNOTSUPP);
		check_err(rds_send(fd, "x", 1, flags[i] | MSG_DONTWAIT, &self),
			  EOPNOTSUPP);
	}
	tap_context("nothing was sent");
	check_ret(rds_send(fd, "y", 1, 0, &self), 1);
	check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL), 1);
	check_eq(byte, 'y');
	close(fd);
}

/* Up to a page, as before Linux 6.5 more of them are flagged as a part. */
static void spliced(void)
{
	static const size_t lens[] = { 1, 100, 4096 };
	char sent[4096], got[4097];
	int mem = must(memfd_create("sent", 0));
	union addr self;
	int fd = rds_bound(&self);
	off_t off;

	pattern_init(1);
	must(connect(fd, &self.sa, addr_len(&self)));
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		struct pattern_key key = { 1, 3, lens[i] };

		tap_context("%zu bytes", lens[i]);
		pattern_fill(sent, lens[i], &key);
		must(pwrite(mem, sent, lens[i], 0));
		off = 0;
		check_ret(sendfile(fd, mem, &off, lens[i]), (ssize_t)lens[i]);
		if (check_ret(rds_recv_within(fd, got, sizeof(got), WAIT_MS,
					      NULL), (ssize_t)lens[i]))
			check(pattern_same(got, lens[i], &key));
	}
	close(mem);
	close(fd);
}

/* ------------------------------------------------------------------ sizes */

static void round_trip(int fd, const union addr *self, size_t len, void *data,
		       void *got)
{
	struct pattern_key key = { 1, 2, len };

	tap_context("%zu bytes", len);
	pattern_fill(data, len, &key);
	check_ret(rds_send(fd, data, len, 0, self), (ssize_t)len);
	if (check_ret(rds_recv_within(fd, got, MSG_MAX_BYTES + 1, WAIT_MS,
				      NULL), (ssize_t)len))
		check(pattern_same(got, len, &key));
}

static void sizes(void)
{
	static const size_t lens[] = {
		0, 1, 7, 8, 47, 48, 49, 4047, 4048, 4049, 4095, 4096, 4097,
		16335, 16336, 16337, 16383, 16384, 16385, 32671, 32672, 32673,
		32767, 32768, 32769, 65487, 65488, 65489, 65535, 65536, 65537,
		262144, MSG_MAX_BYTES - 1, MSG_MAX_BYTES,
	};
	void *data = buffer(MSG_MAX_BYTES), *got = buffer(MSG_MAX_BYTES);
	union addr self;
	int fd = rds_bound(&self);

	pattern_init(1);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++)
		round_trip(fd, &self, lens[i], data, got);
	close(fd);
}

static void too_large(void)
{
	static const size_t lens[] = {
		MSG_MAX_BYTES + 1, MSG_MAX_BYTES + 4096, 1 << 24,
	};
	void *data = buffer(1 << 24);
	union addr self;
	int fd = rds_bound(&self);

	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		tap_context("%zu bytes", lens[i]);
		check_err(rds_send(fd, data, lens[i], MSG_DONTWAIT, &self),
			  EMSGSIZE);
	}
	tap_context("2 GiB");
	check_err(rds_send(fd, data, 1ul << 31, MSG_DONTWAIT, &self), EMSGSIZE);
	tap_context("nothing was sent");
	check_eq(poll_one(fd, POLLIN, 0), 0);
	close(fd);
}

static void larger_than_sndbuf(void)
{
	void *data = buffer(MSG_MAX_BYTES), *got = buffer(MSG_MAX_BYTES);
	union addr self;
	int fd = rds_bound(&self);

	pattern_init(2);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, 8192);
	round_trip(fd, &self, MSG_MAX_BYTES, data, got);
	close(fd);
}

static void empty(void)
{
	union addr self, from;
	int fd = rds_bound(&self);
	char byte = 'z';

	for (int i = 0; i < BATCH; i++)
		check_ret(rds_send(fd, NULL, 0, 0, &self), 0);
	for (int i = 0; i < BATCH; i++) {
		check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, &from), 0);
		check(addr_same(&from, &self));
	}
	check_eq(byte, 'z');
	check_err(rds_recv(fd, &byte, 1, MSG_DONTWAIT, NULL), EAGAIN);
	close(fd);
}

static void vector(void)
{
	char a[3] = "abc", b[5] = "defgh", got[16] = "";
	struct iovec iov[] = {
		{ a, 3 }, { NULL, 0 }, { b, 5 }, { a, 0 }, { a, 1 },
	};
	union addr self;
	int fd = rds_bound(&self);
	struct msghdr msg = {
		.msg_name = &self, .msg_namelen = addr_len(&self),
		.msg_iov = iov, .msg_iovlen = ARRAY_SIZE(iov),
	};

	check_ret(sendmsg(fd, &msg, 0), 9);
	check_ret(rds_recv_within(fd, got, sizeof(got), WAIT_MS, NULL), 9);
	check(!memcmp(got, "abcdefgha", 9));
	close(fd);
}

static void batch(void)
{
	struct mmsghdr out[BATCH] = { 0 }, in[BATCH] = { 0 };
	struct iovec iov[BATCH], iov_in[BATCH];
	unsigned char data[BATCH], got[BATCH];
	union addr self, from[BATCH];
	int fd = rds_bound(&self), n = 0, ret;

	for (int i = 0; i < BATCH; i++) {
		data[i] = i;
		iov[i] = (struct iovec){ &data[i], 1 };
		iov_in[i] = (struct iovec){ &got[i], 1 };
		out[i].msg_hdr = (struct msghdr){
			.msg_name = &self, .msg_namelen = addr_len(&self),
			.msg_iov = &iov[i], .msg_iovlen = 1,
		};
		in[i].msg_hdr = (struct msghdr){
			.msg_name = &from[i], .msg_namelen = sizeof(from[i]),
			.msg_iov = &iov_in[i], .msg_iovlen = 1,
		};
	}
	check_ret(sendmmsg(fd, out, BATCH, 0), BATCH);
	for (; n < BATCH; n += ret) {
		if (!poll_one(fd, POLLIN, tap_ms(WAIT_MS)))
			tap_fail("%d of %d messages arrived", n, BATCH);
		ret = must(recvmmsg(fd, in + n, BATCH - n, MSG_DONTWAIT, NULL));
	}
	for (int i = 0; i < BATCH; i++) {
		tap_context("message %d", i);
		check_eq(out[i].msg_len, 1);
		check_eq(in[i].msg_len, 1);
		check_eq(got[i], i);
		check(addr_same(&from[i], &self));
	}
	close(fd);
}

static void order(void)
{
	union addr to[2], from;
	int fd[2] = { rds_bound(&to[0]), rds_bound(&to[1]) };
	int self = rds_bound(NULL);
	u32 number;

	for (u32 i = 0; i < 2 * 500; i++)
		check_ret(rds_send(self, &i, sizeof(i), 0, &to[i % 2]),
			  sizeof(i));
	for (u32 i = 0; i < 2 * 500; i++) {
		must(rds_recv_within(fd[i % 2], &number, sizeof(number),
				     WAIT_MS, &from));
		if (number != i)
			tap_fail("message %u came when %u was due", number, i);
	}
	close(self);
}

/* ------------------------------------------------------------------ races */

struct race {
	int fd;
	union addr to;
	pthread_barrier_t start;
};

static void *race_send(void *arg)
{
	struct race *race = arg;

	pthread_barrier_wait(&race->start);
	rds_send(race->fd, "x", 1, MSG_DONTWAIT, &race->to);
	return NULL;
}

static void *race_bind(void *arg)
{
	struct race *race = arg;
	union addr a = addr_of(tap_host, 0);

	pthread_barrier_wait(&race->start);
	bind(race->fd, &a.sa, addr_len(&a));
	return NULL;
}

static void *race_close(void *arg)
{
	struct race *race = arg;

	pthread_barrier_wait(&race->start);
	close(race->fd);
	return NULL;
}

static void races(void)
{
	int sink = rds_bound(NULL);
	struct race race = { .to = rds_self(sink) };
	pthread_t threads[3];
	char byte;

	pthread_barrier_init(&race.start, NULL, 3);
	for (int i = 0; i < tap_count(RACE_ROUNDS); i++) {
		race.fd = rds_socket();
		pthread_create(&threads[0], NULL, race_send, &race);
		pthread_create(&threads[1], NULL, race_bind, &race);
		pthread_create(&threads[2], NULL, race_close, &race);
		for (int j = 0; j < 3; j++)
			pthread_join(threads[j], NULL);
		while (rds_recv(sink, &byte, 1, MSG_DONTWAIT, NULL) >= 0)
			;
	}
	/* still in order */
	check_ret(rds_send(sink, "y", 1, 0, &race.to), 1);
	do
		must(rds_recv_within(sink, &byte, 1, WAIT_MS, NULL));
	while (byte != 'y');
	close(sink);
}

struct pinger {
	const char *host;
	pthread_barrier_t *start;
};

static void *ping_many(void *arg)
{
	struct pinger *p = arg;
	int fd = rds_bound_to(p->host, 0, NULL);
	union addr port0 = addr_of(p->host, 0);

	/* an answer says that the connection is up */
	pthread_barrier_wait(p->start);
	while (rds_recv(fd, NULL, 0, MSG_DONTWAIT, NULL) < 0)
		rds_send(fd, NULL, 0, MSG_DONTWAIT, &port0);
	close(fd);
	return NULL;
}

static void ping_starts(void)
{
	pthread_barrier_t start;
	pthread_t threads[2];
	char host[24];

	pthread_barrier_init(&start, NULL, ARRAY_SIZE(threads));
	for (int i = 1; i <= tap_count(PING_STARTS); i++) {
		struct pinger pinger = { .host = host, .start = &start };

		/* a connection that has not been used before */
		snprintf(host, sizeof(host), "127.1.%d.%d", i / 250, i % 250);
		tap_context("%s", host);
		for (size_t j = 0; j < ARRAY_SIZE(threads); j++)
			pthread_create(&threads[j], NULL, ping_many, &pinger);
		for (size_t j = 0; j < ARRAY_SIZE(threads); j++)
			pthread_join(threads[j], NULL);
	}
	pthread_barrier_destroy(&start);
}

struct first_sends {
	int fd;
	int count;
	int arrived;
};

/* Both are there before either sends. */
static void *first_send(void *arg)
{
	struct first_sends *f = arg;
	union addr to;

	for (int i = 0; i < f->count; i++) {
		to = addr_of(tap_host, FIRST_PORT + i);
		__atomic_add_fetch(&f->arrived, 1, __ATOMIC_ACQ_REL);
		while (__atomic_load_n(&f->arrived, __ATOMIC_ACQUIRE) <
		       2 * (i + 1))
			sched_yield();
		must(rds_send(f->fd, "f", 1, MSG_DONTWAIT, &to));
	}
	return NULL;
}

/* Two are the first to send to a destination: the messages of both are found,
 * and can be cancelled.
 */
static void first_sends(void)
{
	struct first_sends f = { rds_bound(NULL), tap_count(FIRST_SENDS), 0 };
	pthread_t threads[2];

	stall_loop();
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_create(&threads[i], NULL, first_send, &f);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	check(rds_outq(f.fd));
	must(setsockopt(f.fd, SOL_RDS, RDS_CANCEL_SENT_TO, NULL, 0));
	check_eq(rds_outq(f.fd), 0);
	close(f.fd);
}

/* In-tree RDS goes by the length of the address alone. */
static void no_family(void)
{
	union addr to = addr_of(tap_host, FIRST_PORT), other;
	int fd = rds_bound(NULL);

	stall_loop();
	must(rds_send(fd, "f", 1, MSG_DONTWAIT, &to));
	check_eq(rds_outq(fd), 1);
	other = to;
	other.sa.sa_family = AF_UNSPEC;
	check_ret(setsockopt(fd, SOL_RDS, RDS_CANCEL_SENT_TO, &other,
			     addr_len(&to)), 0);
	check_eq(rds_outq(fd), 0);
	other.sa.sa_family = AF_UNIX;
	check_err(setsockopt(fd, SOL_RDS, RDS_CANCEL_SENT_TO, &other,
			     addr_len(&to)), EINVAL);
	close(fd);
}

static const struct tap_case cases[] = {
	{ "unbound", "an unbound socket cannot send: ENOTCONN", unbound,
	  TAP_EACH_FAMILY, 0 },
	{ "no_destination", "without a destination: ENOTCONN", no_destination,
	  TAP_EACH_FAMILY, 0 },
	{ "bad_destination", "wildcard, group and short addresses: EINVAL",
	  bad_destination, TAP_EACH_FAMILY, 0 },
	{ "mixed_families", "IPv4 to IPv6 and back: EOPNOTSUPP",
	  mixed_families, 0, 0 },
	{ "name_over_connect", "msg_name overrides connect for one message",
	  name_over_connect, TAP_EACH_FAMILY, 0 },
	{ "unbound_port", "a message to an unbound port is dropped and counted",
	  unbound_port, TAP_EACH_FAMILY, 0 },
	{ "successor", "the socket that has the port now gets the messages",
	  successor, TAP_EACH_FAMILY, 0 },
	{ "passed", "a message that waits nowhere costs none that wait",
	  passed, TAP_EACH_FAMILY, 0 },
	{ "ping", "port 0 answers an empty message", ping, TAP_EACH_FAMILY, 0 },
	{ "ping_disabled", "with net.rds.ping_enable=0 it does not",
	  ping_disabled, TAP_EACH_FAMILY, 0 },
	{ "flags_accepted", "MSG_DONTWAIT, MSG_NOSIGNAL, MSG_EOR are accepted",
	  flags_accepted, 0, 0 },
	{ "flags_refused", "every other flag is EOPNOTSUPP and sends nothing",
	  flags_refused, 0, 0 },
	{ "spliced", "sendfile() sends a message", spliced, 0, 0 },
	{ "sizes", "0 to 1 MiB arrive whole, with default buffers", sizes,
	  TAP_EACH_FAMILY, 60 },
	{ "too_large", "above 1 MiB: EMSGSIZE", too_large, TAP_EACH_FAMILY, 0 },
	{ "larger_than_sndbuf", "an empty destination accepts any message",
	  larger_than_sndbuf, TAP_EACH_FAMILY, 0 },
	{ "empty", "zero-length messages are delivered, each one", empty,
	  TAP_EACH_FAMILY, 0 },
	{ "vector", "a message is gathered from all its buffers", vector,
	  0, 0 },
	{ "batch", "sendmmsg and recvmmsg move several messages", batch,
	  TAP_EACH_FAMILY, 0 },
	{ "order", "messages to each of two destinations stay in order", order,
	  TAP_EACH_FAMILY, 0 },
	{ "ping_starts", "pings go while the connection comes up", ping_starts,
	  0, 60 },
	{ "first_sends", "two threads are the first to send to a destination",
	  first_sends, 0, 60 },
	{ "no_family", "a message is cancelled by an address without family",
	  no_family, TAP_EACH_FAMILY, 0 },
	{ "races", "send, bind and close at once harm nobody", races, 0, 60 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
