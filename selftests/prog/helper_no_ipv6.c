// SPDX-License-Identifier: GPL-2.0-only
/*
 * For rxe/ipv6: helper_no_ipv6 -a IPV4-ADDRESS, on a node that has been booted
 * with ipv6.disable=1, or that has IPv6 switched off on eth0.
 *
 * Every call that takes an address is made with IPv6 addresses, by an ordinary
 * user. None of them can be bound, and none of the calls does any harm.
 */
#include <net/if.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "rdma.h"
#include "sock.h"
#include "tap.h"

enum {
	NOBODY		= 65534,
	PORT		= 4000,
};

static char page[PAGE_BYTES] __aligned(PAGE_BYTES);

static bool booted_without(void)
{
	return access("/proc/sys/net/ipv6", F_OK);
}

static void be_nobody(void)
{
	must(setresgid(NOBODY, NOBODY, NOBODY));
	must(setresuid(NOBODY, NOBODY, NOBODY));
}

/* The address that the GID table of eth0's device has, IPv6 or not */
static union addr link_local(void)
{
	union addr a = addr_of("fe80::5054:ff:fe78:7201", PORT);

	a.in6.sin6_scope_id = must((int)if_nametoindex("eth0"));
	return a;
}

static union addr address(unsigned int i)
{
	static const char * const hosts[] = {
		"fd00:1::1", "fd00::1", "fd00::2", "::1", "::2", "2001:db8::1",
	};

	return i < ARRAY_SIZE(hosts) ? addr_of(hosts[i], PORT) : link_local();
}

#define NR_ADDRESSES	7

static void bind_each(void)
{
	be_nobody();
	for (unsigned int i = 0; i < NR_ADDRESSES; i++) {
		union addr a = address(i);
		int fd = rds_socket();

		tap_context("%s", addr_text(&a));
		/* lo keeps its address where only eth0 is switched off */
		if (i == 3 && !booted_without())
			check_ret(bind(fd, &a.sa, addr_len(&a)), 0);
		else
			check_err(bind(fd, &a.sa, addr_len(&a)),
				  EADDRNOTAVAIL);
		close(fd);
	}
}

static void mapped(void)
{
	char text[64] = "::ffff:";
	union addr a;
	int fd = rds_socket();

	be_nobody();
	a = addr_of(strcat(text, tap_host), 0);
	check_ret(bind(fd, &a.sa, addr_len(&a)), 0);
	close(fd);
}

static void get_mr_for_dest(int fd, const union addr *to)
{
	struct rds_get_mr_for_dest_args args = { 0 };
	u64 cookie = 0;

	memcpy(&args.dest_addr, to, sizeof(*to));
	args.vec.addr = (uintptr_t)page;
	args.vec.bytes = sizeof(page);
	args.cookie_addr = (uintptr_t)&cookie;
	/* the address is not needed: keys serve every peer */
	check_ret(setsockopt(fd, SOL_RDS, RDS_GET_MR_FOR_DEST, &args,
			     sizeof(args)), 0);
	check(cookie != 0);
}

static void arm_barrier(int fd, const union addr *to)
{
	struct xrds_barrier b = { .rdma_id = 1 };

	memcpy(&b.dest, to, sizeof(*to));
	check_err(ioctl(fd, SIOCXRDSBARRIER, &b), EINVAL);
	check_err(rds_send_cmsg(fd, to, XRDS_CMSG_BARRIER, &b, sizeof(b)),
		  EOPNOTSUPP);
}

/* An op on memory that nobody has; its message names the address, too */
static void rdma(int fd, const union addr *to)
{
	struct target t = { .cookie = 1 };
	u64 old;
	struct op ops[] = {
		op_write(&t, 0, page, sizeof(page)),
		op_read(&t, 0, page, sizeof(page)),
		op_fadd(&t, 0, 1, &old),
	};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		check_err(op_send(fd, to, &ops[i]), EOPNOTSUPP);
}

static void options(int fd, const union addr *to)
{
	struct xrds_dest_sndbuf space = { .bytes = 4096 };
	struct xrds_dest_status st = { 0 };
	union addr all = *to;
	socklen_t len = sizeof(space);

	memcpy(&space.dest, to, sizeof(*to));
	setsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &space, sizeof(space));
	getsockopt(fd, SOL_RDS, XRDS_DEST_SNDBUF, &space, &len);
	setsockopt(fd, SOL_RDS, XRDS_REPLY_RELEASE, &all, sizeof(all));
	check_ret(setsockopt(fd, SOL_RDS, RDS_CANCEL_SENT_TO, to,
			     addr_len(to)), 0);
	dest_status(fd, to, &st);
	check_range(st.state, XRDS_DEST_IDLE, XRDS_DEST_ERROR);
}

/* A socket that is bound to IPv4: each call that takes another address */
static void calls(void)
{
	int fd = rds_bound(NULL);

	be_nobody();
	for (unsigned int i = 0; i < NR_ADDRESSES; i++) {
		union addr to = address(i);

		tap_context("%s", addr_text(&to));
		check_err(rds_send(fd, "x", 1, 0, &to), EOPNOTSUPP);
		check_ret(connect(fd, &to.sa, addr_len(&to)), 0);
		check_err(send(fd, "x", 1, 0), EOPNOTSUPP);
		get_mr_for_dest(fd, &to);
		arm_barrier(fd, &to);
		rdma(fd, &to);
		options(fd, &to);
	}
	close(fd);
}

static void dumps(void)
{
	int fd = rds_bound(NULL);
	char rows[16384];

	be_nobody();
	for (int i = RDS_INFO_FIRST; i <= RDS_INFO_LAST; i++) {
		socklen_t len = sizeof(rows);
		int ret = getsockopt(fd, SOL_RDS, i, rows, &len);

		tap_context("dump %d", i);
		check(ret >= 0 || errno == ENOPROTOOPT || errno == EACCES);
	}
	close(fd);
}

/* The device's table has a new address a moment later than the interface */
static bool bindable(void *arg)
{
	const union addr *a = arg;
	int fd = rds_socket();
	bool ok = !bind(fd, &a->sa, addr_len(a));

	close(fd);
	return ok;
}

/* IPv6 is switched off under a socket that is bound: its calls come to an end */
static void switched_off(void)
{
	union addr to = addr_of("fd00::2", PORT), self = addr_of("fd00::1", 0);
	int fd;

	if (booted_without()) {
		check(!bindable(&self));
		return;
	}
	knob("net/ipv6/conf/eth0/disable_ipv6", 0);
	must(system("ip addr add fd00::1/64 dev eth0"));
	must_wait(bindable, &self, WAIT_MS);
	fd = rds_bound_to("fd00::1", 0, &self);
	knob("net/ipv6/conf/eth0/disable_ipv6", 1);
	check_ret(rds_send(fd, "x", 1, MSG_DONTWAIT, &to), 1);
	check_ret(rds_send(fd, "x", 1, MSG_DONTWAIT, &self), 1);
	options(fd, &to);
	close(fd);
	fd = rds_socket();
	check_err(bind(fd, &self.sa, addr_len(&self)), EADDRNOTAVAIL);
	close(fd);
}

static void messages(void)
{
	const char * const hosts[] = { tap_host, "127.0.0.1" };

	be_nobody();
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		union addr self;
		int fd = rds_bound_to(hosts[i], 0, &self);
		char byte = 0;

		tap_context("%s", hosts[i]);
		check_ret(rds_send(fd, "x", 1, 0, &self), 1);
		check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL), 1);
		check_eq(byte, 'x');
		close(fd);
	}
}

static const struct tap_case cases[] = {
	{ "bind", "no address of IPv6 can be bound", bind_each,
	  TAP_SAME_NETNS, 0 },
	{ "mapped", "an IPv4-mapped one is the IPv4 address", mapped,
	  TAP_SAME_NETNS, 0 },
	{ "calls", "calls that name an IPv6 address are refused, or need none",
	  calls, TAP_SAME_NETNS, 0 },
	{ "dumps", "RDS_INFO answers", dumps, TAP_SAME_NETNS, 0 },
	{ "switched_off", "a bound socket outlives its IPv6", switched_off,
	  TAP_SAME_NETNS, 0 },
	{ "messages", "IPv4 works with the node itself", messages,
	  TAP_SAME_NETNS, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
