// SPDX-License-Identifier: GPL-2.0-only
/*
 * For two-node tests, between link-local addresses of a network interface:
 *
 *   helper_linklocal serve DEVICE LOCAL PORT	answers one message
 *   helper_linklocal ask DEVICE LOCAL REMOTE PORT	sends it
 *
 * The server sends its answer to the source address as recvmsg() gives it.
 * It says "ready" once it is bound.
 */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sock.h"
#include "tap.h"

enum { LIMIT_MS = 30000 };

static u32 scope;

static union addr scoped(const char *host, u16 port)
{
	union addr a = addr_of(host, port);

	if (!scope)
		tap_fail("no such interface");
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

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";

	scope = argc > 2 ? if_nametoindex(argv[2]) : 0;
	if (argc == 5 && !strcmp(mode, "serve"))
		serve(argv[3], atoi(argv[4]));
	else if (argc == 6 && !strcmp(mode, "ask"))
		ask(argv[3], argv[4], atoi(argv[5]));
	else
		tap_fail("usage: helper_linklocal serve|ask DEVICE LOCAL ...");
	tap_child_exit();
}
