// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many streams that end: each is a socket that sends a few messages and ends in
 * a given way. The receiver checks that each brings its messages in order, then
 * one mark with the reason that is expected, and nothing behind it. Each stream has
 * a port of its own, so a mark that comes twice is not taken for the mark of
 * another stream, of which no message has come. The receiver reads until a last
 * message comes. It is sent when no socket has anything left to deliver.
 *
 *   helper_stream_ends recv LOCAL PORT STREAMS MESSAGES REASON
 *   helper_stream_ends deaf LOCAL PORT STREAMS MESSAGES
 *   helper_stream_ends send LOCAL REMOTE PORT STREAMS MESSAGES HOW
 *   helper_stream_ends last LOCAL REMOTE PORT
 *   helper_stream_ends both LOCAL REMOTE PORT STREAMS MESSAGES HOW
 *
 * HOW is close, shutdown, abort, die, or hold: with that they stay open until
 * the process is killed. Only a stream that ends in order must bring all of its
 * messages. "recv" says "ready" at the beginning and "all ended" at the end;
 * "send" says "sent" when all streams have got that far, and "last" sends the last
 * message. "deaf" is a receiver that says "deaf" when it has all messages and reads
 * no more: the streams end, but it gets no mark.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counters.h"
#include "sock.h"
#include "tap.h"

enum {
	MAX_BYTES	= 40000,
	LIMIT_MS	= 180000,	/* a node may be booted meanwhile */
	MAX_STREAMS	= 2000,
	FIRST_PORT	= 10000,
	PORT_GROUPS	= 16,		/* receivers at one time */
	MARK_ROOM	= CMSG_SPACE(sizeof(u32)),
};

/* Head of each message: the stream, and its place in it */
struct head {
	u32 stream;
	u32 number;
};

#define NO_STREAM	(~0u)	/* of the last message */

static struct stream {
	u32 next;	/* message */
	bool ended;
} all[MAX_STREAMS];

static char data[MAX_BYTES];

/* Of all sizes, the same at both ends */
static size_t bytes_of(u32 stream, u32 number)
{
	u32 n = (stream * 31 + number * 7) % 11;

	return sizeof(struct head) + (n < 8 ? n * 64 : n * 3600);
}

/* Where the first of the streams to a receiver comes from */
static u16 first_source(u16 port)
{
	return FIRST_PORT + port % PORT_GROUPS * MAX_STREAMS;
}

/* ---------------------------------------------------------------- receive */

static ssize_t recv_one(int fd, union addr *from, int *reason)
{
	long long end = tap_now_ms() + tap_ms(LIMIT_MS);
	char control[MARK_ROOM] __aligned(8);
	struct iovec iov = { data, sizeof(data) };
	struct msghdr m;
	struct cmsghdr *c;
	ssize_t ret;

	for (;;) {
		m = (struct msghdr){ .msg_name = from,
				     .msg_namelen = sizeof(*from),
				     .msg_iov = &iov, .msg_iovlen = 1,
				     .msg_control = control,
				     .msg_controllen = sizeof(control) };
		ret = recvmsg(fd, &m, MSG_DONTWAIT);
		if (ret >= 0 || errno != EAGAIN || tap_now_ms() > end)
			break;
		poll_one(fd, POLLIN, 1000);
	}
	*reason = -1;
	c = must(ret) || !m.msg_controllen ? NULL : CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_RDS && c->cmsg_type == XRDS_CMSG_EOS)
		memcpy(reason, CMSG_DATA(c), sizeof(u32));
	return ret;
}

/* False if it is the last of all */
static bool message(u32 number, ssize_t len)
{
	struct head head;

	if (len < (ssize_t)sizeof(head))
		tap_fail("stream %u: %zd bytes", number, len);
	memcpy(&head, data, sizeof(head));
	if (head.stream == NO_STREAM)
		return false;
	tap_context("stream %u", head.stream);
	check_eq(head.stream, number);
	check(!all[number].ended);
	check_eq(head.number, all[number].next);
	check_eq(len, bytes_of(head.stream, head.number));
	all[number].next++;
	return true;
}

/* Of a stream that was aborted, or lost, messages may be missing. */
static void mark(u32 number, u32 messages, int reason, int want)
{
	tap_context("mark of stream %u", number);
	check_eq(reason, want);
	check(!all[number].ended);
	if (want == XRDS_EOS_FINISHED)
		check_eq(all[number].next, messages);
	all[number].ended = true;
}

static void receive(const char *local, int port, u32 streams, u32 messages,
		    int want)
{
	int fd = rds_bound_to(local, port, NULL), reason;
	u32 ended = 0, number;
	union addr from;
	ssize_t len;

	printf("ready\n");
	fflush(stdout);
	for (;;) {
		len = recv_one(fd, &from, &reason);
		number = addr_port(&from) - first_source(port);
		if (reason < 0 && number >= streams && !message(0, len))
			break;
		if (number >= streams)
			tap_fail("port %u: no stream", addr_port(&from));
		if (reason < 0) {
			check(message(number, len));
			continue;
		}
		mark(number, messages, reason, want);
		ended++;
	}
	tap_context("at the end");
	check_eq(ended, streams);
	printf("all ended\n");
	fflush(stdout);
}

struct ends {
	int fd;
	int port;
	u32 streams;
	union addr from;	/* one of the sources; all are of one node */
};

static bool all_ended(void *arg)
{
	struct xrds_dest_status st;
	struct ends *e = arg;

	for (u32 number = 0; number < e->streams; number++) {
		addr_set_port(&e->from, first_source(e->port) + number);
		must(dest_status(e->fd, &e->from, &st));
		if (!(st.flags & XRDS_DEST_EOS_RCVD))
			return false;
	}
	return true;
}

static void deaf(const char *local, int port, int streams, int messages)
{
	struct ends e = { .fd = rds_bound_to(local, port, NULL),
			  .port = port, .streams = streams };
	int reason;
	ssize_t len;

	printf("ready\n");
	fflush(stdout);
	for (int i = 0; i < streams * messages; i++) {
		len = recv_one(e.fd, &e.from, &reason);
		check_eq(reason, -1);
		check(message(addr_port(&e.from) - first_source(port), len));
	}
	must(shutdown(e.fd, SHUT_RD));
	printf("deaf\n");
	fflush(stdout);
	must_wait(all_ended, &e, LIMIT_MS);
	check_ret(recv_one(e.fd, &e.from, &reason), 0);
	check_eq(reason, -1);
	printf("all ended\n");
	fflush(stdout);
}

/* ------------------------------------------------------------------- send */

static void send_messages(int fd, const union addr *to, u32 stream, u32 nr)
{
	struct head head = { .stream = stream };
	size_t len;

	for (head.number = 0; head.number < nr; head.number++) {
		len = bytes_of(stream, head.number);
		memcpy(data, &head, sizeof(head));
		check_ret(rds_send(fd, data, len, 0, to), len);
	}
}

static void end(int fd, const char *how)
{
	struct linger abort = { .l_onoff = 1 };

	if (!strcmp(how, "abort"))
		must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort,
				sizeof(abort)));
	if (!strcmp(how, "shutdown"))
		must(shutdown(fd, SHUT_WR));
	if (!strcmp(how, "die"))
		kill(getpid(), SIGKILL);
	if (!strcmp(how, "hold"))
		return;
	close(fd);
}

static void stream(const char *local, const union addr *to, u32 number,
		   u32 messages, const char *how)
{
	u16 port = first_source(addr_port(to)) + number;
	int fd = rds_bound_to(local, port, NULL);

	send_messages(fd, to, number, messages);
	end(fd, how);
}

static bool nothing_queued(void *arg)
{
	(void)arg;
	return !counter_now("obj_msgs");
}

/* Behind all streams: when no socket has anything left to deliver. */
static void send_last(const char *local, const char *remote, int port)
{
	struct head head = { .stream = NO_STREAM };
	union addr to = addr_of(remote, port);
	int fd = rds_bound_to(local, FIRST_PORT - 1, NULL);

	must_wait(nothing_queued, NULL, LIMIT_MS);
	memcpy(data, &head, sizeof(head));
	check_ret(rds_send(fd, data, MAX_BYTES, 0, &to), MAX_BYTES);
	close(fd);
}

static void send_all(const char *local, const char *remote, int port,
		     int streams, u32 messages, const char *how)
{
	union addr to = addr_of(remote, port);
	pid_t pid;

	for (int i = 0; i < streams; i++) {
		if (strcmp(how, "die")) {
			stream(local, &to, i, messages, how);
			continue;
		}
		pid = must(fork());
		if (!pid)
			stream(local, &to, i, messages, how);
		must(waitpid(pid, NULL, 0));
	}
	printf("sent\n");
	fflush(stdout);
	while (!strcmp(how, "hold"))
		pause();
}

static void both(char **argv)
{
	int abort = !strcmp(argv[7], "abort"), ready[2];
	pid_t pid;
	char c;

	must(pipe(ready));
	pid = must(fork());
	if (!pid) {
		dup2(ready[1], STDOUT_FILENO);
		receive(argv[3], atoi(argv[4]), atoi(argv[5]), atoi(argv[6]),
			abort ? XRDS_EOS_ABORTED : XRDS_EOS_FINISHED);
		tap_child_exit();
	}
	must(read(ready[0], &c, 1));
	send_all(argv[2], argv[3], atoi(argv[4]), atoi(argv[5]), atoi(argv[6]),
		 argv[7]);
	send_last(argv[2], argv[3], atoi(argv[4]));
	tap_child_join(pid);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (argc == 7 && !strcmp(mode, "recv"))
		receive(argv[2], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]),
			atoi(argv[6]));
	else if (argc == 6 && !strcmp(mode, "deaf"))
		deaf(argv[2], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]));
	else if (argc == 8 && !strcmp(mode, "send"))
		send_all(argv[2], argv[3], atoi(argv[4]), atoi(argv[5]),
			 atoi(argv[6]), argv[7]);
	else if (argc == 5 && !strcmp(mode, "last"))
		send_last(argv[2], argv[3], atoi(argv[4]));
	else if (argc == 8 && !strcmp(mode, "both"))
		both(argv);
	else
		tap_fail("usage: helper_stream_ends recv|deaf|send|last|both ...");
	tap_child_exit();
}
