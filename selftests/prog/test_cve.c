// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults of net/rds, each under the number of its public advisory: the cases
 * that no other test has. selftests/faults.rst says which tests stand for which
 * advisory.
 *
 * timeout: 300
 */
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma.h"
#include "tap.h"

enum {
	RACE_ROUNDS	= 300,
	VANISH_ROUNDS	= 20,
	NETNS_ROUNDS	= 8,	/* of each process */
	NETNS_AT_ONCE	= 3,
	NOTICES		= 400,
	READERS		= 4,
	LAST_OPTION	= 160,
	NOBODY		= 65534,
	ROOM		= 2048,
};

/* XRDS_CVE_ROUNDS multiplies the rounds of races. */
static int rounds(int n)
{
	const char *text = getenv("XRDS_CVE_ROUNDS");

	return n * (text ? atoi(text) : 1);
}

/* A message to itself arrives: the socket and its transport work. */
static void works(const char *host)
{
	union addr self;
	int fd = rds_bound_to(host, 0, &self);
	char byte = 0;

	check_ret(rds_send(fd, "w", 1, 0, &self), 1);
	check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL), 1);
	check_eq(byte, 'w');
	close(fd);
}

/* ------------------------------------------- no RDMA device has the address */

static const struct kind {
	const char *name;
	const char *with;	/* other arguments of ip link add */
} kinds[] = {
	{ "dummy", "type dummy" },
	{ "veth", "type veth peer name peer0" },
	{ "bridge", "type bridge" },
	{ "bond", "type bond" },
	{ "macvlan", "link base0 type macvlan" },
	{ "ipvlan", "link base0 type ipvlan" },
	{ "vlan", "link base0 type vlan id 7" },
	{ "ifb", "type ifb" },
	{ "vxlan", "type vxlan id 7 dstport 4789" },
	{ "gre", "type gre local 10.9.0.1 remote 10.9.0.2" },
	{ "ipip", "type ipip local 10.9.0.1 remote 10.9.0.2" },
	{ "sit", "type sit local 10.9.0.1 remote 10.9.0.2" },
	{ "wireguard", "type wireguard" },
	{ "tun", "" },
};

static int command(const char *format, const char *with)
{
	char text[256];
	int len;

	len = snprintf(text, sizeof(text), format, with);
	snprintf(text + len, sizeof(text) - len, " > /dev/null 2>&1");
	return system(text);
}

static bool kind_add(const struct kind *k)
{
	if (!*k->with)
		return !command("ip tuntap add dev dut0 mode %s", k->name);
	return !command("ip link add dut0 %s", k->with);
}

static void bind_refused(const char *host, int error)
{
	union addr a = addr_of(host, 0);
	int fd = rds_socket();

	check_err(bind(fd, &a.sa, addr_len(&a)), error);
	/* nothing of the attempt is left: another address may be had */
	a = addr_of("127.0.0.1", 0);
	check_ret(bind(fd, &a.sa, addr_len(&a)), 0);
	close(fd);
}

static void *binder(void *arg)
{
	union addr a = addr_of("10.8.0.1", 0);
	int fd;

	while (!atomic_load((atomic_bool *)arg)) {
		fd = socket(AF_RDS, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		if (fd < 0)
			continue;
		bind(fd, &a.sa, addr_len(&a));
		close(fd);
	}
	return NULL;
}

static void kind_vanishes(void)
{
	atomic_bool stop = false;
	pthread_t thread;

	if (pthread_create(&thread, NULL, binder, &stop))
		tap_fail("no thread");
	for (int i = 0; i < rounds(VANISH_ROUNDS); i++) {
		check_eq(command("ip link add dut0 %s", "type dummy"), 0);
		command("ip addr add 10.8.0.1/24 dev %s", "dut0");
		command("ip link del %s", "dut0");
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}

static void cve_2013_7339(void)
{
	int tried = 0;

	command("ip link add base0 %s", "type dummy");
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!kind_add(&kinds[i]))
			continue;
		tap_context("%s", kinds[i].name);
		tried++;
		command("ip link set %s up", "dut0");
		check_eq(command("ip addr add 10.8.0.1/24 dev %s", "dut0"), 0);
		bind_refused("10.8.0.1", EADDRNOTAVAIL);
		if (!command("ip addr add fd08::1/64 dev %s nodad", "dut0"))
			bind_refused("fd08::1", EADDRNOTAVAIL);
		check_eq(command("ip link del %s", "dut0"), 0);
		bind_refused("10.8.0.1", EADDRNOTAVAIL);
	}
	tap_note("%d kinds of interfaces", tried);
	if (!tried)
		tap_skip("this kernel has none of the kinds");
	kind_vanishes();
	works("127.0.0.1");
}

/* --------------------------------------- an unbound socket sends, and binds */

enum racer { RACE_BIND, RACE_CONNECT, RACE_SEND, RACE_CLOSE, RACERS };

struct race {
	atomic_int fd;
	union addr to;
	pthread_barrier_t begin, end;
	enum racer turn;
	bool over;
};

static void race_one(struct race *race, enum racer which)
{
	union addr a = addr_of(tap_host, 0);
	int fd = race->fd;

	switch (which) {
	case RACE_BIND:
		bind(fd, &a.sa, addr_len(&a));
		break;
	case RACE_CONNECT:
		connect(fd, &race->to.sa, addr_len(&race->to));
		send(fd, "c", 1, MSG_DONTWAIT);
		break;
	case RACE_SEND:
		rds_send(fd, "s", 1, MSG_DONTWAIT, &race->to);
		break;
	case RACE_CLOSE:
		close(fd);
		break;
	case RACERS:
		break;
	}
}

struct runner {
	struct race *race;
	enum racer which;
};

static void *race_run(void *arg)
{
	struct runner *r = arg;

	for (;;) {
		pthread_barrier_wait(&r->race->begin);
		if (r->race->over)
			return NULL;
		race_one(r->race, r->which);
		pthread_barrier_wait(&r->race->end);
	}
}

static void cve_2015_6937(void)
{
	int sink = rds_bound(NULL);
	struct race race = { .to = rds_self(sink) };
	struct runner runners[RACERS];
	pthread_t threads[RACERS];
	char byte;

	pthread_barrier_init(&race.begin, NULL, RACERS + 1);
	pthread_barrier_init(&race.end, NULL, RACERS + 1);
	for (int i = 0; i < RACERS; i++) {
		runners[i] = (struct runner){ &race, i };
		if (pthread_create(&threads[i], NULL, race_run, &runners[i]))
			tap_fail("no thread");
	}
	for (int i = 0; i < rounds(RACE_ROUNDS); i++) {
		atomic_store(&race.fd, rds_socket());
		pthread_barrier_wait(&race.begin);
		pthread_barrier_wait(&race.end);
		while (rds_recv(sink, &byte, 1, MSG_DONTWAIT, NULL) >= 0)
			;
	}
	race.over = true;
	pthread_barrier_wait(&race.begin);
	for (int i = 0; i < RACERS; i++)
		pthread_join(threads[i], NULL);
	works(tap_host);
	close(sink);
}

/* ------------------------------------- every option in every socket state */

static int state_unbound(void)
{
	return rds_socket();
}

static int state_connected_unbound(void)
{
	union addr to = addr_of(tap_host, 4000);
	int fd = rds_socket();

	must(connect(fd, &to.sa, addr_len(&to)));
	return fd;
}

static int state_bound(void)
{
	return rds_bound(NULL);
}

static int state_connected(void)
{
	union addr to = addr_of(tap_host, 4000);
	int fd = rds_bound(NULL);

	must(connect(fd, &to.sa, addr_len(&to)));
	return fd;
}

/* Something sent, something to be read */
static int state_busy(void)
{
	union addr self;
	int fd = rds_bound(&self);

	must(rds_send(fd, "b", 1, 0, &self));
	return fd;
}

static int state_shut(int how)
{
	int fd = state_busy();

	must(shutdown(fd, how));
	return fd;
}

static int state_shut_read(void)
{
	return state_shut(SHUT_RD);
}

static int state_shut_write(void)
{
	return state_shut(SHUT_WR);
}

static int state_shut_both(void)
{
	return state_shut(SHUT_RDWR);
}

static const struct state {
	const char *name;
	int (*open)(void);
} states[] = {
	{ "unbound", state_unbound },
	{ "connected, unbound", state_connected_unbound },
	{ "bound", state_bound },
	{ "connected", state_connected },
	{ "busy", state_busy },
	{ "shut for reading", state_shut_read },
	{ "shut for writing", state_shut_write },
	{ "shut", state_shut_both },
};

/* Sizes that options have, and others */
static const int sizes[] = { 0, 1, 4, 8, 16, 24, 28, 32, 128, 136, 152, 160,
			     ROOM };

static void any_option(int fd, int option)
{
	static char data[ROOM];
	socklen_t len;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		for (int fill = 0; fill < 2; fill++) {
			memset(data, fill ? 0xff : 0, sizeof(data));
			setsockopt(fd, SOL_RDS, option, data, sizes[i]);
			memset(data, fill ? 0xff : 0, sizeof(data));
			len = sizes[i];
			getsockopt(fd, SOL_RDS, option, data, &len);
		}
}

/* A region is for bound sockets only, in every other state. */
static void regions(int fd, bool bound)
{
	char *mem = pages(PAGE_BYTES);
	union addr self = addr_of(tap_host, 4000);
	u64 cookie = 0;

	if (bound) {
		check_ret(mr_get(fd, mem, 100, RDS_RDMA_READWRITE, &cookie), 0);
		check_ret(mr_free(fd, cookie), 0);
		check_ret(mr_get_for(fd, &self, mem, 100, 0, &cookie), 0);
		check_ret(mr_free(fd, cookie), 0);
	} else {
		check_err(mr_get(fd, mem, 100, 0, &cookie), ENOTCONN);
		check_err(mr_get_for(fd, &self, mem, 100, 0, &cookie),
			  ENOTCONN);
		check_err(mr_free(fd, 1), EINVAL);
	}
}

static void cve_2018_7492(void)
{
	char data[ROOM] = "";
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		tap_context("%s", states[i].name);
		fd = states[i].open();
		regions(fd, i > 1);
		for (int option = 0; option < LAST_OPTION; option++)
			any_option(fd, option);
		for (int option = RDS_INFO_FIRST - 1;
		     option <= RDS_INFO_LAST + 1; option++)
			any_option(fd, option);
		for (int j = 0; j < 16; j++)
			ioctl(fd, SIOCPROTOPRIVATE + j, data);
		close(fd);
	}
	works(tap_host);
	check_pinned_falls(0);
}

/* ----------------------------------------- namespaces that end under traffic */

/* Sockets on several addresses send to each other, and none is closed. */
static void netns_traffic(int round)
{
	static char chunk[8192];
	union addr to[4];
	int fd[4];

	tap_new_netns();
	knob("net/xrds/loop/delay_ms", round % 2 * 10);
	knob("net/xrds/loop/bounce_ms", round % 3 * 3);
	for (int i = 0; i < 4; i++)
		fd[i] = rds_bound_to(i & 1 ? "::1" : i ? "127.0.0.2" :
				     "127.0.0.1", 0, &to[i]);
	for (int n = 0; n < 40; n++)
		for (int i = 0; i < 4; i++)
			rds_send(fd[i], chunk, sizeof(chunk) >> n % 9,
				 MSG_DONTWAIT, &to[(i + 2 * (n & 1)) & 3]);
	if (round % 4 == 3)
		kill(getpid(), SIGKILL);
	_exit(0);
}

static void netns_loop(void)
{
	int status;
	pid_t pid;

	for (int i = 0; i < rounds(NETNS_ROUNDS); i++) {
		pid = must(fork());
		if (!pid)
			netns_traffic(i);
		must(waitpid(pid, &status, 0));
		check(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL :
					    !WEXITSTATUS(status));
	}
	tap_child_exit();
}

static void cve_2019_11815(void)
{
	pid_t pids[NETNS_AT_ONCE];

	for (int i = 0; i < NETNS_AT_ONCE; i++) {
		pids[i] = must(fork());
		if (!pids[i])
			netns_loop();
	}
	for (int i = 0; i < NETNS_AT_ONCE; i++)
		tap_child_join(pids[i]);
	works(tap_host);
}

/* ---------------------------------- notices, empty queues, several readers */

struct readers {
	int fd;
	atomic_int status, empty, wrong;
	atomic_bool stop;
	atomic_uchar seen[NOTICES];
};

static void *reader(void *arg)
{
	struct readers *r = arg;
	struct got got;
	ssize_t ret;

	while (!atomic_load(&r->stop)) {
		ret = got_now(r->fd, &got, ROOM / 2);
		if (ret < 0) {
			if (errno != EAGAIN)
				atomic_fetch_add(&r->wrong, 1);
			atomic_fetch_add(&r->empty, 1);
			sched_yield();
			continue;
		}
		for (int i = 0; i < got.nr_status; i++) {
			u64 token = got.status[i].user_token;

			if (token >= NOTICES ||
			    atomic_fetch_add(&r->seen[token], 1))
				atomic_fetch_add(&r->wrong, 1);
			atomic_fetch_add(&r->status, 1);
		}
	}
	return NULL;
}

static bool all_read(void *arg)
{
	return atomic_load((atomic_int *)arg) >= NOTICES;
}

static bool some_empty(void *arg)
{
	return atomic_load((atomic_int *)arg) >= READERS;
}

static void cve_2023_1078(void)
{
	struct readers r = { .fd = rds_bound(NULL) };
	pthread_t threads[READERS];
	struct target target;
	struct op op;

	target_open(&target, PAGE_BYTES, RDS_RDMA_READWRITE);
	for (int i = 0; i < READERS; i++)
		if (pthread_create(&threads[i], NULL, reader, &r))
			tap_fail("no thread");
	must_wait(some_empty, &r.empty, WAIT_MS);
	for (int i = 0; i < NOTICES; i++) {
		op = op_write(&target, 0, "n", 1);
		op_set(&op, RDS_RDMA_NOTIFY_ME | RDS_RDMA_SILENT, i);
		must(op_send(r.fd, &target.addr, &op));
	}
	check(tap_wait(all_read, &r.status, WAIT_MS));
	atomic_store(&r.stop, true);
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	check_eq(r.status, NOTICES);
	check_eq(r.wrong, 0);
	check_quiet(r.fd);
	close(r.fd);
	target_close(&target);
}

/* ------------------------------------------- all positions of a latency trace */

static int ask(int fd, int n, int where, int value)
{
	struct rds_rx_trace_so so = { .rx_traces = n };

	so.rx_trace_pos[where] = value;
	return setsockopt(fd, SOL_RDS, SO_RDS_MSG_RXPATH_LATENCY, &so,
			  sizeof(so));
}

static void cve_2024_23849(void)
{
	union addr self;
	int fd = rds_bound(&self);
	char byte;

	for (int where = 0; where < RDS_MSG_RX_DGRAM_TRACE_MAX; where++)
		for (int value = 0; value < 256; value++) {
			tap_context("position %d is %d", where, value);
			/* mainline's off by one let the first bad one in */
			if (value < RDS_MSG_RX_DGRAM_TRACE_MAX)
				check_ret(ask(fd, where + 1, where, value), 0);
			else
				check_err(ask(fd, where + 1, where, value),
					  EFAULT);
			must(rds_send(fd, "t", 1, 0, &self));
			must(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL));
		}
	for (int n = RDS_MSG_RX_DGRAM_TRACE_MAX + 1; n < 256; n++) {
		tap_context("%d positions", n);
		check_err(ask(fd, n, 0, 0), EFAULT);
	}
	close(fd);
}

/* --------------------------------------------- keys of another namespace */

/* The same address and port twice, and keys that count from the same number: a
 * key of one namespace is none in the other.
 */
static void wrong_namespace(void)
{
	struct target ours, theirs = { 0 };
	union addr self;
	struct op op;
	int ours_fd, theirs_fd;

	ours_fd = rds_bound(NULL);
	ours.fd = rds_bound_to(tap_host, 4000, &ours.addr);
	ours.mem = pages(PAGE_BYTES);
	ours.bytes = PAGE_BYTES;
	must(mr_get(ours.fd, ours.mem, PAGE_BYTES, RDS_RDMA_READWRITE,
		    &ours.cookie));

	tap_new_netns();
	theirs_fd = rds_bound(NULL);
	theirs.fd = rds_bound_to(tap_host, 4000, &self);
	theirs.addr = self;
	theirs.cookie = ours.cookie;
	op = op_write(&theirs, 0, "x", 1);
	check_eq(op_run(theirs_fd, &theirs.addr, &op), RDS_RDMA_REMOTE_ERROR);
	check(filled(ours.mem, PAGE_BYTES, 0));

	op = op_write(&ours, 0, "o", 1);
	check_eq(op_run(ours_fd, &ours.addr, &op), RDS_RDMA_SUCCESS);
	check_eq(ours.mem[0], 'o');
	close(theirs_fd);
	close(theirs.fd);
	close(ours_fd);
	target_close(&ours);
}

/* ------------------------------------------------ atomics of a common user */

/* Each kind ends once, with a notice, and is done with its memory. */
static void atomics_of_user(void)
{
	static const int kinds[] = { RDS_CMSG_ATOMIC_FADD, RDS_CMSG_ATOMIC_CSWP,
				     RDS_CMSG_MASKED_ATOMIC_FADD,
				     RDS_CMSG_MASKED_ATOMIC_CSWP };
	struct target target;
	struct op op;
	int fd;
	u64 old;

	must(setresuid(NOBODY, NOBODY, NOBODY));
	fd = rds_bound(NULL);
	target_open(&target, PAGE_BYTES, RDS_RDMA_READWRITE);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		for (int silent = 0; silent < 2; silent++) {
			tap_context("kind %d, silent %d", kinds[i], silent);
			*(u64 *)target.mem = 7;
			old = 0;
			op = op_fadd(&target, 0, 0, &old);
			op.type = kinds[i];
			op_set(&op, silent ? RDS_RDMA_SILENT : 0, 0);
			check_eq(op_run(fd, &target.addr, &op),
				 RDS_RDMA_SUCCESS);
			check_eq(old, 7);
			check_quiet(fd);
			check_eq(mark(fd, &target.addr),
				 issued(fd, &target.addr));
		}
	target_close(&target);
	check_pinned_falls(0);
	close(fd);
}

static const struct tap_case cases[] = {
	{ "cve_2013_7339", "any interface without RDMA device is refused",
	  cve_2013_7339, 0, 90 },
	{ "cve_2015_6937", "bind, connect, send and close race", cve_2015_6937,
	  TAP_EACH_FAMILY, 60 },
	{ "cve_2018_7492", "every option in every state of a socket",
	  cve_2018_7492, TAP_EACH_FAMILY, 60 },
	{ "cve_2019_11815", "namespaces end under traffic, several at once",
	  cve_2019_11815, 0, 120 },
	{ "cve_2023_1078", "many readers, each notice once, or nothing",
	  cve_2023_1078, TAP_EACH_FAMILY, 60 },
	{ "cve_2024_23849", "every position of a latency trace",
	  cve_2024_23849, 0, 60 },
	{ "atomics_of_user", "atomics of a common user end once, masked or not",
	  atomics_of_user, TAP_EACH_FAMILY, 0 },
	{ "wrong_namespace", "a key is none in another namespace",
	  wrong_namespace, TAP_EACH_FAMILY, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
