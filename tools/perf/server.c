// SPDX-License-Identifier: GPL-2.0-only
/*
 * The server: a process that takes orders, and a child for each order. A child
 * lives until "bye" comes or until its client is silent for too long; perf.h
 * has the protocol.
 *
 * The server of a mesh takes one order of each client, which may come twice, and
 * ends with its last child.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf.h"

enum { BACKLOG = 64 };

static struct address here;

/* The work of one child */
struct work {
	int fd;
	struct address client;		/* the client that sent the order */
	uint64_t received;
	struct {
		uint64_t ns, received;
	} begin, end;			/* of the measurement, by the syncs */
	bool syncing;			/* answer the sync ... */
	uint64_t wanted;		/* ... when so many have come */
	struct address waiting;		/* sender of the sync */
	uint32_t written;		/* check so many bytes first */
	uint64_t turn;			/* of RDMA writes */
	char *memory;			/* for RDMA ops */
	bool bad;			/* the client was told of it */
	char *answer;
};

/* ------------------------------------------------------------------- child */

/* Each op of a turn has a place of its own, as long as there is space. */
uint64_t op_offset(uint32_t index)
{
	uint64_t room = MAX_BYTES;

	return opt.bytes ? index % (room / opt.bytes) * opt.bytes : 0;
}

static size_t region_bytes(void)
{
	uint64_t bytes = (uint64_t)opt.bytes * opt.depth;

	if (bytes > MAX_BYTES)
		bytes = MAX_BYTES;
	return bytes ?: 1;
}

/* The kernel registers the memory with the message, or has done so before. */
static void put_key(int fd, void *control, size_t *used,
		    const struct rds_get_mr_args *args)
{
	const rds_rdma_cookie_t *cookie =
		(const void *)(uintptr_t)args->cookie_addr;

	if (!opt.get_mr) {
		put_control(control, used, RDS_CMSG_RDMA_MAP, args,
			    sizeof(*args));
		return;
	}
	if (setsockopt(fd, SOL_RDS, RDS_GET_MR, args, sizeof(*args)))
		die_memory("RDS_GET_MR", errno);
	put_control(control, used, RDS_CMSG_RDMA_DEST, cookie, sizeof(*cookie));
}

/* Add a key to memory, for the modes that need one. */
static void say_ready(struct work *w)
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
		w->memory = take_memory(args.vec.bytes);
		if (opt.verify)
			pattern_fill(w->memory, args.vec.bytes,
				     pattern_of_memory(0), 0);
	}
	if (w->memory && !opt.use_once) {
		args.vec.addr = (uintptr_t)w->memory;
		args.cookie_addr = (uintptr_t)&cookie;
		args.flags = RDS_RDMA_READWRITE;
		put_key(w->fd, control, &used, &args);
	}
	send_control(w->fd, &w->client, &note, sizeof(note),
		     used ? control : NULL, used);
}

/* A region for each op of a turn; each ends with its op. */
static void give_keys(struct work *w, const struct address *to, uint64_t count)
{
	struct note note = {
		.magic = htonl(PERF_MAGIC),
		.kind = htonl(KEY),
	};

	for (uint64_t i = 0; w->memory && i < count && i < opt.depth; i++) {
		char control[256] __attribute__((aligned(8))) = {};
		uint64_t cookie;
		struct rds_get_mr_args args = {
			.vec.addr = (uintptr_t)w->memory + op_offset(i),
			.vec.bytes = opt.bytes,
			.cookie_addr = (uintptr_t)&cookie,
			.flags = RDS_RDMA_READWRITE | RDS_RDMA_USE_ONCE,
		};
		size_t used = 0;

		put_key(w->fd, control, &used, &args);
		send_control(w->fd, to, &note, sizeof(note), control, used);
	}
}

/* ------------------------------------------------------------------ verify */

/* The client learns of the first difference, the cause of all others. */
static void __attribute__((format(printf, 2, 3)))
bad(struct work *w, const char *format, ...)
{
	char text[NOTE_TEXT];
	va_list args;

	if (w->bad)
		return;
	w->bad = true;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "xrds-perf: %s\n", text);
	send_bad(w->fd, &w->client, text);
}

/* Messages that came from each port; a client has one address. */
static uint64_t numbers[UINT16_MAX + 1];

/* Check a message, and make its answer. */
static void verify(struct work *w, const void *buf,
		   const struct arrival *arrival)
{
	uint16_t port = get_port(&arrival->from);
	uint64_t number = numbers[port]++;
	char text[NOTE_TEXT / 2];

	if (opt.mode > STREAM)
		return;
	if ((size_t)arrival->bytes != opt.bytes)
		bad(w, "message %" PRIu64 " of port %u has %zd bytes instead of %u",
		    number, port, arrival->bytes, opt.bytes);
	else if (!pattern_check(buf, opt.bytes, pattern_of_message(port, number),
				0, text, sizeof(text)))
		bad(w, "message %" PRIu64 " of port %u: %s", number, port, text);
	if (opt.mode == ECHO)
		pattern_fill(w->answer, opt.answer,
			     pattern_of_answer(port, number), 0);
}

static void verify_memory(struct work *w)
{
	char text[NOTE_TEXT / 2];

	w->turn++;
	if (w->written <= region_bytes() &&
	    !pattern_check(w->memory, w->written, pattern_of_memory(w->turn), 0,
			   text, sizeof(text)))
		bad(w, "memory after turn %" PRIu64 " of writes: %s", w->turn, text);
}

/* ---------------------------------------------------------------- messages */

/* The last sync before the client's clock starts finds no new message. */
static void measure(struct work *w)
{
	bool idle = w->received == w->end.received;

	if (idle && w->end.received != w->begin.received)
		return;
	w->end.ns = now_ns();
	w->end.received = w->received;
	if (idle || !w->begin.ns)
		w->begin = w->end;
}

static void settle(struct work *w)
{
	if (!w->syncing || w->received < w->wanted)
		return;
	w->syncing = false;
	measure(w);
	if (w->written && w->memory)
		verify_memory(w);
	send_note(w->fd, &w->waiting, DONE, w->received, 0);
}

/* The server's view of a client that has ended: all that has come since the warm-up */
static void __attribute__((noreturn)) finish(const struct work *w, bool bye)
{
	uint64_t count = w->end.received - w->begin.received;
	uint64_t ns = w->end.ns - w->begin.ns;
	char host[NI_MAXHOST] = "AF_UNIX";

	if (opt.mesh)
		exit(0);
	if (w->client.len)
		getnameinfo((const struct sockaddr *)&w->client.ss,
			    w->client.len, host, sizeof(host), NULL, 0,
			    NI_NUMERICHOST);
	printf("%s: %s of %u bytes: ", host, mode_names[opt.mode], opt.bytes);
	if (ns)
		printf("%" PRIu64 " messages in %.3f s, %.0f a second\n", count,
		       (double)ns / NSEC_PER_SEC,
		       (double)count * NSEC_PER_SEC / ns);
	else if (bye)
		printf("no messages\n");
	else
		printf("ended early, after %" PRIu64 " messages\n", w->received);
	exit(0);
}

static void take_note(struct work *w, const struct note *note,
		      const struct arrival *arrival)
{
	switch (ntohl(note->kind)) {
	case SYNC:
		w->waiting = arrival->from;
		w->wanted = note_total(note);
		w->written = ntohl(note->written);
		w->syncing = true;
		settle(w);
		break;
	case KEYS:
		give_keys(w, &arrival->from, note_total(note));
		break;
	case BYE:
		measure(w);
		finish(w, true);
	}
}

static void __attribute__((noreturn)) work(struct work *w)
{
	char *buf = take_memory(MAX_BYTES);
	struct arrival arrival;

	w->answer = take_memory(opt.answer);
	set_buffers(w->fd);
	set_patience(w->fd, CHILD_PATIENCE_S);
	say_ready(w);
	for (;;) {
		receive(w->fd, buf, MAX_BYTES, &arrival);
		if (arrival.ended)
			finish(w, false);
		if (arrival.notices)
			continue;
		if (is_note(buf, arrival.bytes)) {
			take_note(w, (void *)buf, &arrival);
			continue;
		}
		w->received++;
		if (opt.verify)
			verify(w, buf, &arrival);
		if (opt.mode == ECHO)
			send_plain(w->fd, &arrival.from, w->answer, opt.answer);
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
	opt.tos = ntohl(note->tos);
	opt.verify = ntohl(note->verify);
	opt.get_mr = ntohl(note->get_mr);
	opt.use_once = ntohl(note->use_once);
	return ntohl(note->kind) == ORDER && opt.mode < NR_MODES &&
	       opt.bytes <= MAX_BYTES && opt.answer <= MAX_BYTES &&
	       opt.depth <= MAX_DEPTH && (opt.bytes || !opt.use_once);
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

static void start_work(int fd, const struct address *client, bool of_mesh)
{
	struct address mine = here;
	struct work w = { .client = *client };
	pid_t pid = fork();

	if (pid < 0)
		perror("xrds-perf: fork");
	if (pid)
		return;
	if (of_mesh)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(fd);
	set_port(&mine, 0);
	w.fd = open_socket(&mine);
	work(&w);
}

static bool take_order(int fd, struct arrival *arrival)
{
	struct note note;

	receive(fd, &note, sizeof(note), arrival);
	return is_note(&note, arrival->bytes) && understand(&note);
}

/* A client of a mesh repeats its order until it is answered. */
static void serve_mesh(int fd, uint32_t clients)
{
	struct address served[MAX_TASKS];
	struct arrival arrival;
	uint32_t nr = 0, i;
	int status;

	while (nr < clients) {
		if (!take_order(fd, &arrival))
			continue;
		for (i = 0; i < nr; i++) {
			if (!memcmp(&served[i], &arrival.from,
				    sizeof(served[i])))
				break;
		}
		if (i < nr)
			continue;
		served[nr++] = arrival.from;
		start_work(fd, &arrival.from, true);
	}
	close(fd);
	while (wait(&status) > 0) {
		if (status)
			exit(EXIT_ERROR);
	}
	exit(0);
}

void serve(uint32_t clients)
{
	struct arrival arrival;
	int fd;

	resolve(opt.host, opt.port, &here);
	fd = open_socket(&here);
	if (clients)
		serve_mesh(fd, clients);
	signal(SIGCHLD, SIG_IGN);
	if (opt.over_unix)
		serve_unix(fd);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		if (take_order(fd, &arrival))
			start_work(fd, &arrival.from, false);
	}
}
