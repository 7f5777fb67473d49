// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMA between two nodes, for tests: both sides of the calls.
 *
 * A call is one message, its answer another. Messages are not lost when a
 * connection is, so a call needs no repetition.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pattern.h"
#include "remote.h"
#include "tap.h"

#define MAGIC 0x72656d6f74650001ull

enum call_what {
	CALL_NOP,
	CALL_GET,
	CALL_FREE,
	CALL_STAMP,
	CALL_STAMPED,
	CALL_DIGEST,
	CALL_PEEK,
	CALL_POKE,
	CALL_HEARD,
	CALL_WRITE,
	CALL_READ,
};

/* Call and answer; in an answer @arg is the value and @error an errno */
struct call {
	u64 magic;
	u32 what;
	int error;
	u64 number;
	u64 offset;
	u64 bytes;
	u64 arg;
	u64 flags;
};

_Static_assert(sizeof(struct call) <= sizeof(((struct got *)0)->data),
	       "an answer fits");

const char *remote_host;
int remote_argc;
char **remote_argv;
static int signals, asked;

/* ------------------------------------------------------------ remote side */

struct server {
	int fd;
	int ops;		/* socket for ops of its own */
	char *mem;
	struct remote_heard heard;
};

static void heard(struct server *s, const struct got *got)
{
	u64 number;

	/* sockets of programs under test that are closed */
	if (got->ended)
		return;
	s->heard.count++;
	if (got->ret != sizeof(number))
		return;
	memcpy(&number, got->data, sizeof(number));
	s->heard.disorder += number <= s->heard.last;
	s->heard.last = number;
}

static u64 serve_op(struct server *s, const struct call *c,
		    const struct got *got)
{
	struct target t = { .cookie = got->has_cookie ? got->cookie : c->arg };
	char *mem = s->mem + c->offset;
	struct op op;

	op = c->what == CALL_WRITE ? op_write(&t, 0, mem, c->bytes) :
				     op_read(&t, 0, mem, c->bytes);
	op_set(&op, RDS_RDMA_SILENT, 0);
	return op_run(s->ops, &got->from, &op);
}

/* The device may be away for a while */
static int serve_get(struct server *s, struct call *c, const struct got *got)
{
	long long end = tap_now_ms() + tap_ms(WAIT_MS);

	while (mr_get_for(s->fd, &got->from, s->mem + c->offset, c->bytes,
			  c->flags, &c->arg)) {
		if (errno != ENODEV || tap_now_ms() > end)
			return errno;
		poll(NULL, 0, 10);
	}
	return 0;
}

static void serve_one(struct server *s, struct call *c, const struct got *got)
{
	char *mem = s->mem + c->offset;

	c->error = 0;
	switch (c->what) {
	case CALL_NOP:
		break;
	case CALL_GET:
		c->error = serve_get(s, c, got);
		break;
	case CALL_FREE:
		if (mr_free(s->fd, c->arg))
			c->error = errno;
		break;
	case CALL_STAMP:
		stamp(mem, c->bytes, c->arg);
		break;
	case CALL_STAMPED:
		c->arg = stamped(mem, c->bytes, c->arg);
		break;
	case CALL_DIGEST:
		c->arg = digest(mem, c->bytes);
		break;
	case CALL_PEEK:
		memcpy(&c->arg, mem, sizeof(c->arg));
		break;
	case CALL_POKE:
		memcpy(mem, &c->arg, sizeof(c->arg));
		break;
	case CALL_HEARD:
		c->arg = s->heard.count;
		c->offset = s->heard.last;
		c->bytes = s->heard.disorder;
		break;
	default:
		c->arg = serve_op(s, c, got);
		break;
	}
}

static bool call_sane(const struct call *c)
{
	return c->magic == MAGIC && c->offset <= REMOTE_BYTES &&
	       c->bytes <= REMOTE_BYTES - c->offset;
}

void remote_serve(const char *local, u64 bytes)
{
	struct server s = { .mem = pages(REMOTE_BYTES) };
	struct got got;
	struct call c;
	u64 cookie = 0;

	s.fd = rds_bound_to(local, REMOTE_PORT, NULL);
	s.ops = rds_bound_to(local, 0, NULL);
	if (bytes)
		must(mr_get(s.fd, s.mem, bytes, RDS_RDMA_READWRITE, &cookie));
	remote_say("ready %llu", cookie);
	for (;;) {
		if (got_within(s.fd, &got, WAIT_MS) < 0)
			continue;
		memcpy(&c, got.data, sizeof(c));
		if (got.ret != sizeof(c) || !call_sane(&c)) {
			heard(&s, &got);
			continue;
		}
		serve_one(&s, &c, &got);
		must(rds_send(s.fd, &c, sizeof(c), 0, &got.from));
	}
}

/* ------------------------------------------------------------------ calls */

static void call_begin(struct call *c, enum call_what what)
{
	static u64 number;

	c->magic = MAGIC;
	c->what = what;
	c->number = ++number;
}

static void call_end(struct remote *r, struct call *c)
{
	u64 number = c->number;

	if (rds_recv_within(r->fd, c, sizeof(*c), REMOTE_WAIT_MS, NULL) !=
	    sizeof(*c))
		tap_fail("call %u: no answer: %s", c->what,
			 tap_errno_name(errno));
	if (c->number != number)
		tap_fail("call %llu is answered by %llu", number, c->number);
	if (c->error)
		tap_fail("call %u: remote error %s", c->what,
			 tap_errno_name(c->error));
}

static u64 call(struct remote *r, enum call_what what, struct call c)
{
	call_begin(&c, what);
	must(rds_send(r->fd, &c, sizeof(c), 0, &r->to));
	call_end(r, &c);
	return c.arg;
}

void remote_open_at(struct remote *r, const char *host)
{
	r->fd = rds_bound(NULL);
	r->to = addr_of(host, REMOTE_PORT);
}

void remote_open(struct remote *r)
{
	remote_open_at(r, remote_host);
}

void remote_nop(struct remote *r)
{
	call(r, CALL_NOP, (struct call){ 0 });
}

struct target remote_get(struct remote *r, u64 offset, u64 bytes, u64 flags)
{
	struct target t = { .fd = -1, .addr = r->to, .bytes = bytes };

	t.cookie = call(r, CALL_GET, (struct call){
		.offset = offset, .bytes = bytes, .flags = flags });
	return t;
}

void remote_free(struct remote *r, const struct target *t)
{
	call(r, CALL_FREE, (struct call){ .arg = t->cookie });
}

void remote_stamp(struct remote *r, u64 offset, u64 bytes, u64 seed)
{
	call(r, CALL_STAMP, (struct call){
		.offset = offset, .bytes = bytes, .arg = seed });
}

bool remote_stamped(struct remote *r, u64 offset, u64 bytes, u64 seed)
{
	return call(r, CALL_STAMPED, (struct call){
		.offset = offset, .bytes = bytes, .arg = seed });
}

u64 remote_digest(struct remote *r, u64 offset, u64 bytes)
{
	return call(r, CALL_DIGEST, (struct call){
		.offset = offset, .bytes = bytes });
}

u64 remote_peek(struct remote *r, u64 offset)
{
	return call(r, CALL_PEEK, (struct call){ .offset = offset });
}

void remote_poke(struct remote *r, u64 offset, u64 value)
{
	call(r, CALL_POKE, (struct call){ .offset = offset, .arg = value });
}

struct remote_heard remote_heard(struct remote *r)
{
	struct call c = { 0 };

	call_begin(&c, CALL_HEARD);
	must(rds_send(r->fd, &c, sizeof(c), 0, &r->to));
	call_end(r, &c);
	return (struct remote_heard){ c.arg, c.offset, c.bytes };
}

int remote_write_here(struct remote *r, u64 cookie, u64 offset, u64 bytes)
{
	return call(r, CALL_WRITE, (struct call){
		.offset = offset, .bytes = bytes, .arg = cookie });
}

int remote_read_here(struct remote *r, u64 cookie, u64 offset, u64 bytes)
{
	return call(r, CALL_READ, (struct call){
		.offset = offset, .bytes = bytes, .arg = cookie });
}

int remote_write_mapped(struct remote *r, struct rds_get_mr_args *map,
			u64 offset)
{
	struct call c = { .offset = offset, .bytes = map->vec.bytes };
	struct ctl ctl = { 0 };

	call_begin(&c, CALL_WRITE);
	ctl_add(&ctl, RDS_CMSG_RDMA_MAP, map, sizeof(*map));
	must(ctl_send(r->fd, &r->to, &ctl, &c, sizeof(c), 0));
	call_end(r, &c);
	return c.arg;
}

/* ---------------------------------------------------------------- notices */

void tally_add(struct tally *t, const struct got *got)
{
	for (int i = 0; i < got->nr_status; i++) {
		switch (got->status[i].status) {
		case RDS_RDMA_SUCCESS:
			t->success++;
			break;
		case RDS_RDMA_REMOTE_ERROR:
			t->remote_error++;
			break;
		case RDS_RDMA_DROPPED:
			t->dropped++;
			break;
		default:
			t->other++;
			break;
		}
	}
	t->done += got->nr_status;
}

bool tally_all(int fd, struct tally *t, int ms)
{
	long long end = tap_now_ms() + tap_ms(ms);
	struct got got;

	while (t->done < t->sent && tap_now_ms() < end)
		if (got_within(fd, &got, 100) >= 0)
			tally_add(t, &got);
	return t->done >= t->sent;
}

void tally_print(const char *name, const struct tally *t)
{
	printf("%s: sent=%llu done=%llu ", name, t->sent, t->done);
	remote_say("success=%llu remote=%llu dropped=%llu other=%llu",
		   t->success, t->remote_error, t->dropped, t->other);
}

/* ------------------------------------------------------------------- main */

long long remote_arg(int number, long long otherwise)
{
	/* a cookie may have the highest bit */
	return number < remote_argc ?
	       (long long)strtoull(remote_argv[number], NULL, 0) : otherwise;
}

void remote_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

bool remote_stop(void)
{
	return __atomic_load_n(&signals, __ATOMIC_RELAXED) > asked;
}

static bool answered(void *arg)
{
	(void)arg;
	return __atomic_load_n(&signals, __ATOMIC_RELAXED) >= asked;
}

void remote_ask(const char *what, int number)
{
	asked++;
	remote_say("%s %d", what, number);
	if (!tap_wait(answered, NULL, REMOTE_WAIT_MS))
		tap_fail("%s %d: nobody does that", what, number);
}

/* The signal interrupts nobody else */
static void *stop_thread(void *arg)
{
	int sig;

	for (;;) {
		sigwait(arg, &sig);
		__atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void stop_on_signal(void)
{
	static sigset_t set;
	pthread_t thread;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pthread_create(&thread, NULL, stop_thread, &set);
}

int remote_main(int argc, char **argv, const struct mode *modes, size_t nr)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; argc > 3 && i < nr; i++) {
		if (strcmp(argv[1], modes[i].name))
			continue;
		stop_on_signal();
		tap_host = argv[2];
		remote_host = argv[3];
		remote_argc = argc - 4;
		remote_argv = argv + 4;
		modes[i].run();
		tap_child_exit();
	}
	tap_fail("usage: %s MODE LOCAL REMOTE [ARGUMENT...]", argv[0]);
}
