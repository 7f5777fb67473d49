// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests, between link-local addresses of a network interface:
 *
 *   helper_linklocal serve DEVICE LOCAL PORT	answers one message
 *   helper_linklocal ask DEVICE LOCAL REMOTE PORT	sends it
 *   helper_linklocal refuse DEVICE LOCAL REMOTE ERROR
 *	sends, and expects this error's name; an address is link-local if it is
 *	of fe80::/10, and the remote one of the loopback device if ERROR is
 *	EINVAL: connect() and bind() refuse it then, too
 *
 * The server sends its answer to the source address as recvmsg() gives it.
 * It says "ready" once it is bound.
 */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"

enum { LIMIT_MS = 30000 };

static u32 scope;

static union addr scoped(const char *host, u16 port)
{
	union addr a = addr_of(host, port);

	if (!scope)
		tap_fail("no such interface");
	if (a.sa.sa_family == AF_INET6 &&
	    IN6_IS_ADDR_LINKLOCAL(&a.in6.sin6_addr))
		a.in6.sin6_scope_id = scope;
	return a;
}

static int bound(const char *host, u16 port)
{
	union addr a = scoped(host, port);
	int fd = rds_socket();

	must(bind(fd, &a.sa, addr_len(&a)));
	return fd;
}

static void expect(int fd, const char *text, union addr *from)
{
	char data[16] = "";

	check_ret(rds_recv_within(fd, data, sizeof(data), tap_ms(LIMIT_MS),
				  from), strlen(text));
	check(!strcmp(data, text));
	check_eq(from->in6.sin6_scope_id, scope);
}

static void serve(const char *local, u16 port)
{
	int fd = bound(local, port);
	union addr from = { 0 };

	printf("ready\n");
	fflush(stdout);
	expect(fd, "question", &from);
	check_ret(rds_send(fd, "answer", 6, 0, &from), 6);
	must_wait(rds_all_acked, &fd, LIMIT_MS);
}

static void ask(const char *local, const char *remote, u16 port)
{
	union addr to = scoped(remote, port), from = { 0 };
	int fd = bound(local, 0);

	check_ret(rds_send(fd, "question", 8, 0, &to), 8);
	expect(fd, "answer", &from);
	check(addr_same(&from, &to));
}

static void expect_peer(int fd, const union addr *want)
{
	union addr peer = { 0 };
	socklen_t len = sizeof(peer);

	check_ret(getpeername(fd, &peer.sa, &len), 0);
	check(addr_same(&peer, want));
	check_eq(peer.in6.sin6_scope_id, want->in6.sin6_scope_id);
}

/* A default destination that is of another interface than the socket */
static void refuse_connected(const char *local, const union addr *to)
{
	union addr at = scoped(local, 0), before = *to;
	int fd = bound(local, 0);

	before.in6.sin6_scope_id = scope;
	tap_context("connect() of a bound socket");
	must(connect(fd, &before.sa, addr_len(&before)));
	check_err(connect(fd, &to->sa, addr_len(to)), EINVAL);
	expect_peer(fd, &before);
	close(fd);

	tap_context("bind() of a connected socket");
	fd = rds_socket();
	must(connect(fd, &to->sa, addr_len(to)));
	check_err(bind(fd, &at.sa, addr_len(&at)), EINVAL);
	expect_peer(fd, to);
	must(connect(fd, &before.sa, addr_len(&before)));
	check_ret(bind(fd, &at.sa, addr_len(&at)), 0);
	close(fd);
}

/* In the call, and by connect(); nothing is queued, no connection made */
static void refuse(const char *local, const char *remote, const char *error)
{
	union addr to = scoped(remote, 4000);
	struct xrds_dest_status st;
	bool two = !strcmp(error, "EINVAL");
	int fd = bound(local, 0);

	if (two)
		to.in6.sin6_scope_id = if_nametoindex("lo");
	for (int i = 0; i < 2 - two; i++) {
		tap_context("connected: %d", i);
		if (i)
			must(connect(fd, &to.sa, addr_len(&to)));
		check_ret(rds_send(fd, "x", 1, MSG_DONTWAIT, i ? NULL : &to),
			  -1);
		check(!strcmp(tap_errno_name(errno), error));
	}
	if (two)
		refuse_connected(local, &to);
	check_eq(rds_outq(fd), 0);
	check_ret(dest_status(fd, &to, &st), 0);
	check_eq(st.state, XRDS_DEST_IDLE);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";

	scope = argc > 2 ? if_nametoindex(argv[2]) : 0;
	if (argc == 5 && !strcmp(mode, "serve"))
		serve(argv[3], atoi(argv[4]));
	else if (argc == 6 && !strcmp(mode, "ask"))
		ask(argv[3], argv[4], atoi(argv[5]));
	else if (argc == 6 && !strcmp(mode, "refuse"))
		refuse(argv[3], argv[4], argv[5]);
	else
		tap_fail("usage: helper_linklocal MODE DEVICE LOCAL ...");
	tap_child_exit();
}
