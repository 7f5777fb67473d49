// SPDX-License-Identifier: GPL-2.0-only
/*
 * The server: a process that takes orders, and a child for each order. A child
 * lives until "bye" comes or until its client is silent for too long; perf.h
 * has the protocol.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perf.h"

enum { BACKLOG = 64 };

static struct address here;

/* The work of one child */
struct work {
	int fd;
	struct address client;		/* the client that sent the order */
	uint64_t received;
	uint64_t wanted;		/* answer the sync then; 0: no sync */
	struct address waiting;		/* sender of the sync */
};

/* ------------------------------------------------------------------- child */

static size_t region_bytes(void)
{
	uint64_t bytes = (uint64_t)opt.bytes * opt.depth;

	if (bytes > MAX_BYTES)
		bytes = MAX_BYTES;
	return bytes ?: 1;
}

/* Add a key to memory, for the modes that need one. */
static void say_ready(const struct work *w)
{
	char control[256] __attribute__((aligned(8))) = {};
	struct note note = {
		.magic = htonl(PERF_MAGIC),
		.kind = htonl(READY),
	};
	struct rds_get_mr_args args = {};
	uint64_t cookie;
	size_t used = 0;

	if (opt.mode == WRITE || opt.mode == READ) {
		args.vec.bytes = region_bytes();
		args.vec.addr = (uintptr_t)take_memory(args.vec.bytes);
		args.cookie_addr = (uintptr_t)&cookie;
		args.flags = RDS_RDMA_READWRITE;
		put_control(control, &used, RDS_CMSG_RDMA_MAP, &args,
			    sizeof(args));
	}
	send_control(w->fd, &w->client, &note, sizeof(note),
		     used ? control : NULL, used);
}

static void settle(struct work *w)
{
	if (w->wanted && w->received >= w->wanted) {
		w->wanted = 0;
		send_note(w->fd, &w->waiting, DONE, w->received);
	}
}

static void take_note(struct work *w, const struct note *note,
		      const struct arrival *arrival)
{
	switch (ntohl(note->kind)) {
	case SYNC:
		w->waiting = arrival->from;
		w->wanted = note_total(note);
		if (!w->wanted)
			send_note(w->fd, &w->waiting, DONE, 0);
		settle(w);
		break;
	case BYE:
		exit(0);
	}
}

static void __attribute__((noreturn)) work(struct work *w)
{
	char *answer = take_memory(opt.answer);
	char *buf = take_memory(MAX_BYTES);
	struct arrival arrival;

	set_buffers(w->fd);
	set_patience(w->fd, CHILD_PATIENCE_S);
	say_ready(w);
	for (;;) {
		receive(w->fd, buf, MAX_BYTES, &arrival);
		if (arrival.ended)
			exit(0);
		if (arrival.notices)
			continue;
		if (is_note(buf, arrival.bytes)) {
			take_note(w, (void *)buf, &arrival);
			continue;
		}
		w->received++;
		if (opt.mode == ECHO)
			send_plain(w->fd, &arrival.from, answer, opt.answer);
		if (w->wanted)
			settle(w);
	}
}

/* Do what the client has ordered; its sizes bound the work. */
static bool understand(const struct note *note)
{
	opt.mode = ntohl(note->mode);
	opt.bytes = ntohl(note->bytes);
	opt.answer = ntohl(note->answer);
	opt.depth = ntohl(note->depth);
	opt.buffer = ntohl(note->buffer);
	opt.room = ntohl(note->room);
	return ntohl(note->kind) == ORDER && opt.mode < NR_MODES &&
	       opt.bytes <= MAX_BYTES && opt.answer <= MAX_BYTES &&
	       opt.depth <= MAX_DEPTH;
}

/* ------------------------------------------------------------------ orders */

static void __attribute__((noreturn)) serve_unix(int fd)
{
	struct work w = {};
	struct arrival arrival;
	struct note note;

	if (listen(fd, BACKLOG))
		die("listen", errno);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		w.fd = accept(fd, NULL, NULL);
		if (w.fd < 0)
			die("accept", errno);
		if (!fork()) {
			close(fd);
			receive(w.fd, &note, sizeof(note), &arrival);
			if (!is_note(&note, arrival.bytes) || !understand(&note))
				exit(EXIT_ERROR);
			work(&w);
		}
		close(w.fd);
	}
}

static void start_work(int fd, const struct address *client)
{
	struct address mine = here;
	struct work w = { .client = *client };
	pid_t pid = fork();

	if (pid < 0)
		perror("xrds-perf: fork");
	if (pid)
		return;
	close(fd);
	set_port(&mine, 0);
	w.fd = open_socket(&mine);
	work(&w);
}

void serve(void)
{
	struct arrival arrival;
	struct note note;
	int fd;

	signal(SIGCHLD, SIG_IGN);
	resolve(opt.host, opt.port, &here);
	fd = open_socket(&here);
	if (opt.over_unix)
		serve_unix(fd);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		receive(fd, &note, sizeof(note), &arrival);
		if (is_note(&note, arrival.bytes) && understand(&note))
			start_work(fd, &arrival.from);
	}
}
