// SPDX-License-Identifier: GPL-2.0-only
/*
 * Type of service, between two nodes.
 *
 *   helper_tos_echo serve LOCAL
 *		sends every message back, until it is killed
 *   helper_tos_echo LOCAL REMOTE
 *		sockets of two types of service talk to it
 *
 * The ioctls keep their rules; messages of both sockets come back, each once
 * and in order. Says "talked" then, and stays until it is killed, so that
 * somebody can count connections.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/ioctl.h>

#include "sock.h"
#include "tap.h"

enum {
	PORT	= 4600,
	TOS	= 0x20,
	COUNT	= 200,
};

static void serve(const char *host)
{
	int fd = rds_bound_to(host, PORT, NULL);
	union addr from;
	char data[64];
	ssize_t len;

	printf("serving\n");
	fflush(stdout);
	for (;;) {
		len = must(rds_recv(fd, data, sizeof(data), 0, &from));
		must(rds_send(fd, data, len, 0, &from));
	}
}

static rds_tos_t tos_of(int fd)
{
	rds_tos_t tos = 0xff;

	must(ioctl(fd, SIOCRDSGETTOS, &tos));
	return tos;
}

static int set_tos(int fd, rds_tos_t tos)
{
	return ioctl(fd, SIOCRDSSETTOS, &tos);
}

static void rules_before_bind(void)
{
	int fd = rds_socket();

	check(set_tos(fd, TOS) < 0);
	check_eq(tos_of(fd), 0);
	close(fd);
}

static void rules_once(int fd)
{
	check_eq(tos_of(fd), 0);
	check_err(ioctl(fd, SIOCRDSSETTOS, NULL), EFAULT);
	check_ret(set_tos(fd, TOS), 0);
	check_eq(tos_of(fd), TOS);
	check_err(set_tos(fd, TOS), EINVAL);
	check_err(set_tos(fd, 0), EINVAL);
	check_eq(tos_of(fd), TOS);
}

static void talk(int fd, const union addr *to)
{
	union addr from;
	int n, got = -1;

	for (n = 0; n < COUNT; n++) {
		must(rds_send(fd, &n, sizeof(n), 0, to));
		must(rds_recv_within(fd, &got, sizeof(got), WAIT_MS, &from));
		if (!check_eq(got, n) || !check(addr_same(&from, to)))
			break;
	}
}

int main(int argc, char **argv)
{
	int plain, other;
	union addr to;

	if (argc != 3)
		tap_fail("usage: helper_tos_echo serve LOCAL | LOCAL REMOTE");
	if (!strcmp(argv[1], "serve"))
		serve(argv[2]);
	to = addr_of(argv[2], PORT);
	plain = rds_bound_to(argv[1], 0, NULL);
	other = rds_bound_to(argv[1], 0, NULL);
	rules_before_bind();
	rules_once(other);
	talk(plain, &to);
	talk(other, &to);
	/* the connection is found by it now */
	check_err(set_tos(plain, TOS), EINVAL);
	check_eq(tos_of(plain), 0);
	printf("talked\n");
	fflush(stdout);
	for (;;)
		pause();
}
