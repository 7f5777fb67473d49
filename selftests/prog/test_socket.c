// SPDX-License-Identifier: GPL-2.0-only
/*
 * socket(), bind(), connect() and the names of a socket.
 *
 * timeout: 120
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "counters.h"
#include "sock.h"
#include "tap.h"

enum {
	FAILED_BINDS	= 1000,
	PORTS		= 200,
	RESERVED_PORT	= 1,
};

static int bind_host(int fd, const char *host, u16 port)
{
	union addr a = addr_of(host, port);

	return bind(fd, &a.sa, addr_len(&a));
}

static int connect_host(int fd, const char *host, u16 port)
{
	union addr a = addr_of(host, port);

	return connect(fd, &a.sa, addr_len(&a));
}

static bool v6(void)
{
	return strchr(tap_host, ':');
}

/* ----------------------------------------------------------------- socket */

static void types(void)
{
	static const int others[] = {
		SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_DCCP,
	};
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		tap_context("type %d", others[i]);
		check_err(socket(AF_RDS, others[i], 0), ESOCKTNOSUPPORT);
	}
	tap_context("protocol 1");
	check_err(socket(AF_RDS, SOCK_SEQPACKET, 1), ESOCKTNOSUPPORT);
	tap_context("flags");
	fd = must(socket(AF_RDS, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
			 0));
	check(fcntl(fd, F_GETFL) & O_NONBLOCK);
	check(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	check_eq(rds_get_int(fd, SOL_SOCKET, SO_TYPE), SOCK_SEQPACKET);
	check_eq(rds_get_int(fd, SOL_SOCKET, SO_DOMAIN), AF_RDS);
	check_eq(rds_get_int(fd, SOL_SOCKET, SO_PROTOCOL), 0);
	close(fd);
}

static void unsupported(void)
{
	int fd = rds_bound(NULL), pair[2];

	check_err(listen(fd, 1), EOPNOTSUPP);
	check_err(accept(fd, NULL, NULL), EOPNOTSUPP);
	check_err(socketpair(AF_RDS, SOCK_SEQPACKET, 0, pair), EOPNOTSUPP);
	close(fd);
}

static void unprivileged(void)
{
	union addr self;
	char byte;
	int fd;

	must(setresgid(65534, 65534, 65534));
	must(setresuid(65534, 65534, 65534));
	fd = rds_bound(&self);
	check_ret(rds_send(fd, "x", 1, 0, &self), 1);
	check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL), 1);
	close(fd);
}

static void in_protocols(void)
{
	long long before = protocol_sockets();
	int fd = rds_socket();

	if (check(before >= 0))
		check_eq(protocol_sockets(), before + 1);
	close(fd);
}

/* ------------------------------------------------------------------- bind */

static void bind_wildcard(void)
{
	int fd = rds_socket();

	check_err(bind_host(fd, "0.0.0.0", 4000), EINVAL);
	check_err(bind_host(fd, "::", 4000), EINVAL);
	check_err(bind_host(fd, "::ffff:0.0.0.0", 4000), EINVAL);
	close(fd);
}

static void bind_group(void)
{
	static const char * const hosts[] = {
		"224.0.0.1", "255.255.255.255", "ff02::1", "::ffff:224.0.0.1",
	};
	int fd = rds_socket();

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		tap_context("%s", hosts[i]);
		check_err(bind_host(fd, hosts[i], 4000), EINVAL);
	}
	close(fd);
}

static void bind_not_ours(void)
{
	int fd = rds_socket();

	check_err(bind_host(fd, "192.0.2.1", 4000), EADDRNOTAVAIL);
	check_err(bind_host(fd, "2001:db8::1", 4000), EADDRNOTAVAIL);
	/* and the socket is as good as new */
	check_ret(bind_host(fd, tap_host, 0), 0);
	close(fd);
}

static void bind_bad_address(void)
{
	union addr a = addr_of(tap_host, 4000);
	int fd = rds_socket();

	for (int len = 0; len < (int)addr_len(&a); len++) {
		tap_context("length %d", len);
		/* an IPv6 address without scope is as old as RFC 2133 */
		if (v6() && len >= (int)offsetof(struct sockaddr_in6,
						 sin6_scope_id))
			break;
		check_err(bind(fd, &a.sa, len), EINVAL);
	}
	tap_context("family");
	a.sa.sa_family = AF_UNIX;
	check_err(bind(fd, &a.sa, addr_len(&a)), EINVAL);
	a.sa.sa_family = AF_UNSPEC;
	check_err(bind(fd, &a.sa, addr_len(&a)), EINVAL);
	close(fd);
}

static void bind_link_local(void)
{
	int fd = rds_socket();

	check_err(bind_host(fd, "fe80::1", 4000), EINVAL);
	close(fd);
}

static void bind_reserved(void)
{
	int fd = rds_socket();

	check_err(bind_host(fd, tap_host, RESERVED_PORT), EINVAL);
	close(fd);
}

static void bind_twice(void)
{
	int fd = rds_socket();
	union addr before, after;

	must(bind_host(fd, tap_host, 0));
	before = rds_self(fd);
	check_err(bind_host(fd, tap_host, 0), EINVAL);
	check_err(bind_host(fd, tap_host, 4001), EINVAL);
	after = rds_self(fd);
	check(addr_same(&before, &after));
	close(fd);
}

static void bind_in_use(void)
{
	int a = rds_socket(), b = rds_socket(), c = rds_socket();

	must(bind_host(a, tap_host, 4000));
	check_err(bind_host(b, tap_host, 4000), EADDRINUSE);
	check_ret(bind_host(b, tap_host, 4001), 0);
	close(a);
	check_ret(bind_host(c, tap_host, 4000), 0);
	close(b);
	close(c);
}

static void bind_mapped(void)
{
	int a = rds_socket(), b = rds_socket();
	union addr want = addr_of("127.0.0.1", 4000), self;

	must(bind_host(a, "::ffff:127.0.0.1", 4000));
	self = rds_self(a);
	check(addr_same(&self, &want));
	check_err(bind_host(b, "127.0.0.1", 4000), EADDRINUSE);
	close(a);
	close(b);
}

static void bind_two_addresses(void)
{
	int a = rds_bound_to("127.0.0.1", 4000, NULL);
	int b = rds_bound_to("::1", 4000, NULL);
	int c = rds_bound_to("127.0.0.2", 4000, NULL);

	close(a);
	close(b);
	close(c);
}

static void bind_any_port(void)
{
	int fds[PORTS];
	union addr self;
	u16 ports[PORTS];

	for (int i = 0; i < PORTS; i++) {
		fds[i] = rds_bound(&self);
		ports[i] = addr_port(&self);
		check(ports[i] > RESERVED_PORT);
		for (int j = 0; j < i; j++)
			if (ports[i] == ports[j])
				tap_fail("port %u given out twice", ports[i]);
	}
	for (int i = 0; i < PORTS; i++)
		close(fds[i]);
}

static void write_ipv4(const char *name, const char *value)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/%s", name);
	fd = must(open(path, O_WRONLY | O_CLOEXEC));
	check_ret(write(fd, value, strlen(value)), strlen(value));
	close(fd);
}

static void bind_port_range(void)
{
	enum { FIRST = 40000, LAST = 40003, RESERVED = 40001 };
	int fds[LAST - FIRST];
	union addr self;

	/* the range is the namespace's, and one of our own has no device */
	tap_new_netns();
	tap_host = strchr(tap_host, ':') ? "::1" : "127.0.0.1";
	write_ipv4("ip_local_port_range", "40000 40003");
	write_ipv4("ip_local_reserved_ports", "40001");
	for (int i = 0; i < LAST - FIRST; i++) {
		fds[i] = rds_bound(&self);
		check_range(addr_port(&self), FIRST, LAST);
		check(addr_port(&self) != RESERVED);
	}
	check_err(bind_host(rds_socket(), tap_host, 0), EADDRINUSE);
	/* a bind() that names it may have it */
	close(rds_bound_to(tap_host, RESERVED, NULL));
	for (int i = 0; i < LAST - FIRST; i++)
		close(fds[i]);
}

static void bind_free_after_close(void)
{
	union addr self;
	char byte;

	for (int i = 0; i < PORTS; i++) {
		int fd = rds_bound_to(tap_host, 4000, &self);

		/* its end is not held up by messages that it still has to
		 * deliver
		 */
		check_ret(rds_send(fd, "x", 1, 0, &self), 1);
		check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL), 1);
		close(fd);
	}
}

static bool refs_are(void *arg)
{
	return module_refs("xrds") == *(long long *)arg;
}

static void bind_leak(void)
{
	long long xrds = module_refs("xrds"), ib = module_refs("xrds_ib");
	long long sockets = protocol_sockets();
	int fd, taken;

	if (xrds < 0)
		tap_skip("module xrds is not loaded");
	taken = rds_bound_to(tap_host, 4000, NULL);
	for (int i = 0; i < FAILED_BINDS; i++) {
		fd = rds_socket();
		check_err(bind_host(fd, "192.0.2.1", 4000), EADDRNOTAVAIL);
		check_err(bind_host(fd, tap_host, 4000), EADDRINUSE);
		check_err(bind_host(fd, "0.0.0.0", 0), EINVAL);
		close(fd);
	}
	close(taken);
	/* destruction of the last ones may wait for a grace period */
	tap_wait(refs_are, &xrds, WAIT_MS);
	check_eq(module_refs("xrds"), xrds);
	check_eq(module_refs("xrds_ib"), ib);
	check_eq(protocol_sockets(), sockets);
}

/* ------------------------------------------------------------------ names */

static void getsockname_unbound(void)
{
	socklen_t len = sizeof(union addr);
	int fd = rds_socket();
	union addr a;

	/* a fresh socket has a name of zeroes, the family included */
	check_ret(getsockname(fd, &a.sa, &len), 0);
	check_eq(a.sa.sa_family, AF_UNSPEC);
	check_eq(addr_port(&a), 0);
	close(fd);
}

static void getsockname_bound(void)
{
	union addr want = addr_of(tap_host, 4000), a;
	int fd = rds_bound_to(tap_host, 4000, NULL);
	socklen_t len = sizeof(a);
	unsigned char *byte = (unsigned char *)&a;

	memset(&a, 0xa5, sizeof(a));
	must(getsockname(fd, &a.sa, &len));
	check_eq(len, addr_len(&want));
	check(addr_same(&a, &want));
	for (size_t i = len; i < sizeof(a); i++)
		if (byte[i] != 0xa5)
			tap_fail("byte %zu beyond the name was written", i);
	if (!v6())
		for (size_t i = 0; i < sizeof(a.in.sin_zero); i++)
			check_eq(a.in.sin_zero[i], 0);

	len = 4;
	memset(&a, 0xa5, sizeof(a));
	must(getsockname(fd, &a.sa, &len));
	check_eq(len, addr_len(&want));
	check_eq(byte[4], 0xa5);
	close(fd);
}

/* ---------------------------------------------------------------- connect */

static void getpeername_states(void)
{
	union addr want = addr_of(tap_host, 4001), a = { 0 };
	socklen_t len = sizeof(a);
	int fd = rds_socket();

	check_err(getpeername(fd, &a.sa, &len), ENOTCONN);
	must(bind_host(fd, tap_host, 0));
	check_err(getpeername(fd, &a.sa, &len), ENOTCONN);
	must(connect(fd, &want.sa, addr_len(&want)));
	len = sizeof(a);
	check_ret(getpeername(fd, &a.sa, &len), 0);
	check_eq(len, addr_len(&want));
	check(addr_same(&a, &want));
	close(fd);
}

static void connect_again(void)
{
	union addr want = addr_of(tap_host, 4002), a = { 0 };
	socklen_t len = sizeof(a);
	int fd = rds_bound(NULL);

	must(connect_host(fd, tap_host, 4001));
	must(connect_host(fd, tap_host, 4002));
	must(getpeername(fd, &a.sa, &len));
	check(addr_same(&a, &want));
	close(fd);
}

static void connect_dissolve(void)
{
	union addr unspec = { .sa.sa_family = AF_UNSPEC }, a, self;
	int fd = rds_bound(&self);
	socklen_t len = sizeof(a);
	char byte;

	must(connect(fd, &self.sa, addr_len(&self)));
	check_ret(send(fd, "x", 1, 0), 1);
	check_ret(connect(fd, &unspec.sa, sizeof(unspec.sa)), 0);
	check_err(getpeername(fd, &a.sa, &len), ENOTCONN);
	check_err(send(fd, "x", 1, MSG_DONTWAIT), ENOTCONN);
	/* the name is still there, and sent messages arrive */
	check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL), 1);
	check_ret(rds_send(fd, "y", 1, 0, &self), 1);
	check_ret(rds_recv_within(fd, &byte, 1, WAIT_MS, NULL), 1);
	/* dissolving nothing is fine */
	check_ret(connect(fd, &unspec.sa, sizeof(unspec.sa)), 0);
	close(fd);
}

static void connect_bad(void)
{
	union addr a = addr_of(tap_host, 4001);
	int fd = rds_bound(NULL);

	check_err(connect_host(fd, "224.0.0.1", 4001), EINVAL);
	check_err(connect_host(fd, "255.255.255.255", 4001), EINVAL);
	check_err(connect_host(fd, "0.0.0.0", 4001), EDESTADDRREQ);
	check_err(connect_host(fd, "::", 4001), EPROTOTYPE);
	check_err(connect(fd, &a.sa, 3), EINVAL);
	a.sa.sa_family = AF_UNIX;
	check_err(connect(fd, &a.sa, addr_len(&a)), EAFNOSUPPORT);
	check_err(send(fd, "x", 1, MSG_DONTWAIT), ENOTCONN);
	close(fd);
}

static void connect_no_filter(void)
{
	int a = rds_bound(NULL), b = rds_bound(NULL);
	union addr to = rds_self(a), from, b_name = rds_self(b);
	char byte;

	must(connect_host(a, tap_host, 4999));
	check_ret(rds_send(b, "x", 1, 0, &to), 1);
	check_ret(rds_recv_within(a, &byte, 1, WAIT_MS, &from), 1);
	check(addr_same(&from, &b_name));
	close(a);
	close(b);
}

/* The name that lsof shows */
static void protocol_name(void)
{
	char path[64], name[16] = "";
	int fd = rds_socket();

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	must(getxattr(path, "system.sockprotoname", name, sizeof(name)));
	check(!strcmp(name, "XRDS"));
	close(fd);
}

static const struct tap_case cases[] = {
	{ "types", "only SOCK_SEQPACKET with protocol 0 exists", types, 0, 0 },
	{ "unsupported", "listen, accept, socketpair answer EOPNOTSUPP",
	  unsupported, 0, 0 },
	{ "unprivileged", "no capability is needed", unprivileged, 0, 0 },
	{ "protocols", "/proc/net/protocols shows XRDS and counts its sockets",
	  in_protocols, 0, 0 },
	{ "protocol_name", "its name for lsof is XRDS", protocol_name, 0, 0 },
	{ "bind_wildcard", "the wildcard address is refused", bind_wildcard,
	  0, 0 },
	{ "bind_group", "multicast and broadcast are refused", bind_group,
	  0, 0 },
	{ "bind_not_ours", "an address that is not local is EADDRNOTAVAIL",
	  bind_not_ours, TAP_EACH_FAMILY, 0 },
	{ "bind_bad_address", "short addresses and other families are EINVAL",
	  bind_bad_address, TAP_EACH_FAMILY, 0 },
	{ "bind_link_local", "a link-local address needs a scope",
	  bind_link_local, 0, 0 },
	{ "bind_reserved", "port 1 is reserved", bind_reserved,
	  TAP_EACH_FAMILY, 0 },
	{ "bind_twice", "a second bind is EINVAL and changes nothing",
	  bind_twice, TAP_EACH_FAMILY, 0 },
	{ "bind_in_use", "a taken port is EADDRINUSE, until it is closed",
	  bind_in_use, TAP_EACH_FAMILY, 0 },
	{ "bind_mapped", "an IPv4 mapped address is the IPv4 address",
	  bind_mapped, 0, 0 },
	{ "bind_two_addresses", "a port is taken per address",
	  bind_two_addresses, 0, 0 },
	{ "bind_any_port", "port 0 picks a free port, never 0 or 1",
	  bind_any_port, TAP_EACH_FAMILY, 0 },
	{ "bind_port_range", "one of ip_local_port_range that is not reserved",
	  bind_port_range, TAP_EACH_FAMILY, 0 },
	{ "bind_free_after_close", "a closed socket's port is free at once",
	  bind_free_after_close, TAP_EACH_FAMILY, 0 },
	{ "bind_leak", "1000 failed binds leak no reference and no socket",
	  bind_leak, TAP_EACH_FAMILY, 60 },
	{ "getsockname_unbound", "an unbound socket's name is all zero",
	  getsockname_unbound, 0, 0 },
	{ "getsockname", "the name is exact in content and length",
	  getsockname_bound, TAP_EACH_FAMILY, 0 },
	{ "getpeername", "the peer is ENOTCONN until connect",
	  getpeername_states, TAP_EACH_FAMILY, 0 },
	{ "connect_again", "connect may be repeated", connect_again,
	  TAP_EACH_FAMILY, 0 },
	{ "connect_dissolve", "AF_UNSPEC dissolves the default destination",
	  connect_dissolve, TAP_EACH_FAMILY, 0 },
	{ "connect_bad", "bad destinations are refused and leave none",
	  connect_bad, TAP_EACH_FAMILY, 0 },
	{ "connect_no_filter", "connect does not filter what is received",
	  connect_no_filter, TAP_EACH_FAMILY, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
