// SPDX-License-Identifier: GPL-2.0-only
/*
 * "make demo" runs this on the nodes: an ordinary user of AF_RDS sockets.
 *
 *   demo ping LOCAL REMOTE COUNT	messages to port 0, which the kernel answers
 *   demo recv LOCAL REMOTE		check what "send" sends
 *   demo send LOCAL REMOTE
 *   demo offer LOCAL			memory for "use" (demo_rdma.c)
 *   demo use LOCAL REMOTE		RDMA, until the other node dies
 *
 * Both ends of send and recv know the plan, so the receiver compares every byte with the one
 * that must come next: nothing may be missing, doubled, changed or out of order.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include "demo.h"

enum {
	BUFFER_BYTES	= 4 << 20,	/* send and receive buffer */
	MAX_BYTES	= 1 << 20,
	PING_TIMEOUT_S	= 10,
};

static const struct {
	size_t	bytes;
	int	messages;
} plan[] = {
	{ 1, 100 }, { 64, 100 }, { 1024, 100 }, { 4096, 100 }, { 4097, 50 },
	{ 65536, 20 }, { MAX_BYTES, 5 },
};

#define PLAN_SIZE (sizeof(plan) / sizeof(plan[0]))

double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

struct sockaddr_storage parse(const char *text, uint16_t port)
{
	struct sockaddr_storage ss = {};
	struct sockaddr_in6 *sin6 = (void *)&ss;
	struct sockaddr_in *sin = (void *)&ss;

	if (inet_pton(AF_INET, text, &sin->sin_addr) == 1) {
		sin->sin_family = AF_INET;
		sin->sin_port = htons(port);
	} else if (inet_pton(AF_INET6, text, &sin6->sin6_addr) == 1) {
		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(port);
	} else {
		errx(2, "%s is no address", text);
	}
	return ss;
}

socklen_t length(const struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_INET ? sizeof(struct sockaddr_in) :
					  sizeof(struct sockaddr_in6);
}

int open_socket(const char *local, uint16_t port, int timeout_s)
{
	struct sockaddr_storage ss = parse(local, port);
	struct timeval tv = { .tv_sec = timeout_s };
	int bytes = BUFFER_BYTES;
	int fd = socket(AF_RDS, SOCK_SEQPACKET, 0);

	if (fd < 0)
		err(1, "socket");
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	if (bind(fd, (void *)&ss, length(&ss)))
		err(1, "bind to %s", local);
	return fd;
}

static int ping(const char *local, const char *remote, int count)
{
	struct sockaddr_storage ss = parse(remote, 0);
	int fd = open_socket(local, 0, PING_TIMEOUT_S);
	double min = 1e9, max = 0, sum = 0, first = 0;

	for (int i = 0; i <= count; i++) {
		double start = now_ms(), ms;

		if (sendto(fd, NULL, 0, 0, (void *)&ss, length(&ss)) < 0)
			err(1, "send to %s", remote);
		if (recv(fd, NULL, 0, 0) < 0)
			err(1, "no answer from %s", remote);
		ms = now_ms() - start;
		if (!i) {
			first = ms;	/* brought the connection up */
			continue;
		}
		min = ms < min ? ms : min;
		max = ms > max ? ms : max;
		sum += ms;
	}
	printf("%d %.1f %.2f %.2f %.2f\n", count, first, min, sum / count, max);
	return 0;
}

/* The content of a message, by its place in the stream. */
static void fill(uint8_t *data, size_t bytes, uint32_t sequence)
{
	uint32_t x = sequence * 2654435761u + 1;

	for (size_t i = 0; i < bytes; i++) {
		x = x * 1664525 + 1013904223;
		data[i] = x >> 24;
	}
}

static int send_all(const char *local, const char *remote)
{
	static uint8_t data[MAX_BYTES];
	struct sockaddr_storage ss = parse(remote, PORT);
	int fd = open_socket(local, 0, TIMEOUT_S);
	uint32_t sequence = 0;

	for (size_t i = 0; i < PLAN_SIZE; i++) {
		for (int n = 0; n < plan[i].messages; n++) {
			fill(data, plan[i].bytes, sequence++);
			if (sendto(fd, data, plan[i].bytes, 0, (void *)&ss,
				   length(&ss)) < 0)
				err(1, "send %zu bytes", plan[i].bytes);
		}
	}
	/* The answer says that all of it was read. */
	if (recv(fd, data, sizeof(data), 0) < 0)
		err(1, "no answer");
	return 0;
}

static void receive(int fd, size_t bytes, uint32_t sequence,
		    struct sockaddr_storage *from)
{
	static uint8_t data[MAX_BYTES + 1], wanted[MAX_BYTES];
	socklen_t len = sizeof(*from);
	ssize_t got = recvfrom(fd, data, sizeof(data), 0, (void *)from, &len);

	if (got < 0)
		err(1, "message %u of %zu bytes did not come", sequence, bytes);
	fill(wanted, bytes, sequence);
	if ((size_t)got != bytes || memcmp(data, wanted, bytes))
		errx(1, "message %u: wanted %zu bytes, these %zd are others",
		     sequence, bytes, got);
}

static int receive_all(const char *local, const char *remote)
{
	struct sockaddr_storage from;
	int fd = open_socket(local, PORT, TIMEOUT_S);
	uint32_t sequence = 0;

	printf("ready for %s\n", remote);
	fflush(stdout);
	for (size_t i = 0; i < PLAN_SIZE; i++) {
		double start = now_ms();

		for (int n = 0; n < plan[i].messages; n++)
			receive(fd, plan[i].bytes, sequence++, &from);
		printf("%zu %d %.3f\n", plan[i].bytes, plan[i].messages,
		       now_ms() - start);
		fflush(stdout);
	}
	if (sendto(fd, "thanks", 6, 0, (void *)&from, length(&from)) < 0)
		err(1, "answer");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "ping"))
		return ping(argv[2], argv[3], atoi(argv[4]));
	if (argc == 4 && !strcmp(argv[1], "recv"))
		return receive_all(argv[2], argv[3]);
	if (argc == 4 && !strcmp(argv[1], "send"))
		return send_all(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "offer"))
		return offer_memory(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "use"))
		return use_memory(argv[2], argv[3]);
	errx(2, "usage: demo ping|recv|send|offer|use LOCAL [REMOTE [COUNT]]");
}
