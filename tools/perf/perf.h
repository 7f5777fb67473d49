/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations that the files of xrds-perf share.
 *
 * The client sends an order to the server's socket. The server forks a child
 * with a socket of its own. The child answers "ready", and the measured
 * messages go to its socket. A "sync" tells the child how many messages were
 * sent so far. The child answers when all of them have arrived, so the clock
 * starts and stops when nothing is in flight. "bye" ends the child.
 *
 * With --use-once the client asks for "keys" before each turn of RDMA ops, and
 * gets a "key" for each op.
 *
 * The child may get no message of RDMA ops and registrations, or none in a long
 * pause, so "alive" tells it each minute that the client is there.
 *
 * With --verify all payload has patterns. A child that finds a wrong one sends
 * "bad" with a description to the socket that sent the order, and goes on.
 */
#ifndef XRDS_PERF_H
#define XRDS_PERF_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

#include <linux/xrds.h>

#ifndef AF_RDS
#define AF_RDS 21
#endif

#define NSEC_PER_SEC	1000000000ull
#define NSEC_PER_MSEC	1000000ull

enum {
	DEFAULT_PORT	= 18800,
	STRANGE_PORT	= 20000,	/* the first of them */
	MAX_STRANGERS	= 10000,
	MAX_BYTES	= 1 << 20,	/* of a message, and of a region */
	MAX_DEPTH	= 1024,
	MAX_SOCKETS	= 1024,
	MAX_BATCH	= 64,
	MAX_TASKS	= 1024,
	MAX_VECTORS	= 128,
	MAX_OUTLIERS	= 100,
	MAX_NODES	= 256,		/* of a mesh */
	MAX_UNREAD	= 64,		/* completions of MSG_ZEROCOPY */
	PATIENCE_S	= 30,		/* wait for a silent peer */
	CHILD_PATIENCE_S = 600,		/* the same, of a server's child */
	EXIT_ERROR	= 2,
};

enum mode { ECHO, STREAM, WRITE, READ, MAP, NR_MODES };

extern const char * const mode_names[NR_MODES];

struct options {
	bool server;
	enum mode mode;
	uint32_t bytes;		/* of a message or op */
	uint32_t answer;	/* bytes */
	uint32_t depth;		/* in flight at a time, per socket */
	uint32_t batch;		/* messages of a stream in one call */
	uint32_t sockets;
	uint32_t idle;		/* additional sockets that do nothing */
	uint32_t strangers;	/* unbound ports to send to first */
	uint32_t buffer;	/* bytes, SO_SNDBUF; 0: as is */
	uint32_t room;		/* bytes, SO_RCVBUF; 0: as is */
	uint64_t count;		/* messages or ops; 0: for a time */
	uint64_t time_ns;
	uint32_t warm_up;	/* messages or ops before the clock starts */
	uint64_t pause_ns;	/* before a message or turn, about */
	uint64_t rate;		/* messages or ops of a task a second; 0: any */
	uint32_t tasks;		/* processes; in a mesh, for each peer */
	uint32_t outliers;	/* show so many */
	uint32_t vectors;	/* local buffers of an op */
	bool get_mr;		/* RDS_GET_MR, not RDS_CMSG_RDMA_MAP */
	bool use_once;		/* a region for each op */
	uint64_t reset_ns;	/* between resets of the connections; 0: none */
	uint64_t abort_ns;	/* end in the midst of it after this time; 0: no */
	uint8_t tos;
	bool mesh;
	bool verify;		/* patterns of payload */
	bool notices;		/* wait for notices of RDMA ops, no barriers */
	bool silent;		/* the server gets no message of an op */
	bool zcopy;		/* MSG_ZEROCOPY */
	bool over_unix;		/* AF_UNIX, for comparison */
	bool json;
	bool csv;
	bool histogram;
	int family;		/* of addresses */
	const char *source;	/* address to send from */
	const char *host;	/* the server's address */
	uint16_t port;
};

extern struct options opt;

/* ----------------------------------------------------------------- sock.c */

enum kind { ORDER = 1, READY, SYNC, DONE, BYE, BAD, KEYS, KEY, ALIVE };

#define PERF_MAGIC	0x58705246u	/* "XpRF" */

enum { NOTE_TEXT = 128 };

/* A message between the two programs; all in network order. */
struct note {
	uint32_t magic;
	uint32_t kind;
	uint32_t mode;
	uint32_t bytes;
	uint32_t answer;
	uint32_t depth;
	uint32_t buffer;
	uint32_t room;
	uint32_t tos;
	uint32_t verify;
	uint32_t get_mr;
	uint32_t use_once;
	uint32_t total_high;	/* messages sent so far; of KEYS: how many */
	uint32_t total_low;
	uint32_t written;	/* bytes of memory that the server has to check */
	char text[NOTE_TEXT];	/* of BAD: a description */
};

struct address {
	struct sockaddr_storage ss;
	socklen_t len;
};

/* A result of a receive call: a note, a message, a notice, or nothing */
struct arrival {
	ssize_t bytes;		/* of the message; -1: EAGAIN */
	struct address from;
	unsigned int notices;	/* of RDMA ops */
	unsigned int zcopied;	/* completions of MSG_ZEROCOPY */
	bool failed;		/* a notice reports a failure */
	int status;		/* of that, RDS_RDMA_* */
	bool news;		/* of nodes */
	bool reborn;		/* the peer's node is another one than before */
	bool ended;		/* the sender is gone */
	bool cookie_came;
	uint64_t cookie;
};

void __attribute__((noreturn)) die(const char *what, int error);
/* The same, with a hint for errors of registered memory */
void __attribute__((noreturn)) die_memory(const char *what, int error);
uint64_t now_ns(void);
void resolve(const char *name, uint16_t port, struct address *address);
void set_port(struct address *address, uint16_t port);
uint16_t get_port(const struct address *address);
void choose_source(const struct address *to, struct address *from);
int open_socket(const struct address *address);
/* Reset the connection between these nodes. */
void reset_connection(const struct address *from, const struct address *to);
/* The same; returns an errno instead if the address cannot be bound. */
int try_socket(const struct address *address);
void set_buffers(int fd);
void *take_memory(size_t bytes);
void set_patience(int fd, uint32_t seconds);

void receive(int fd, void *buf, size_t room, struct arrival *arrival);
/* The same without waiting; returns false when there is nothing. */
bool receive_now(int fd, void *buf, size_t room, struct arrival *arrival);
/* Ask for news of the nodes that are sent to; mainline has none. */
void want_news(int fd);
void send_plain(int fd, const struct address *to, const void *buf,
		size_t bytes);
/* With MSG_ZEROCOPY */
void send_zcopy(int fd, const struct address *to, const void *buf,
		size_t bytes);
void want_zcopy(int fd);
void send_batch(int fd, const struct address *to, const void *buf,
		size_t bytes, size_t stride, uint32_t count);
void send_control(int fd, const struct address *to, const void *buf,
		  size_t bytes, void *control, size_t control_bytes);
void put_control(void *control, size_t *used, int type, const void *data,
		 size_t bytes);

void send_note(int fd, const struct address *to, enum kind what,
	       uint64_t total, uint32_t written);
void send_bad(int fd, const struct address *to, const char *text);
bool is_note(const void *buf, ssize_t bytes);
uint64_t note_total(const struct note *note);

/* -------------------------------------------------------------- pattern.c */

/* Patterns; messages and answers count from 0 for each port of the client. */
uint64_t pattern_of_message(uint16_t port, uint64_t number);
uint64_t pattern_of_answer(uint16_t port, uint64_t number);
/* The server's memory for reads is turn 0. */
uint64_t pattern_of_memory(uint64_t turn);

/* The part of a pattern that begins at @offset */
void pattern_fill(void *buf, size_t bytes, uint64_t pattern, uint64_t offset);
/* Returns false, and describes the first difference, if it is not there. */
bool pattern_check(const void *buf, size_t bytes, uint64_t pattern,
		   uint64_t offset, char *text, size_t text_bytes);

/* ----------------------------------------------------------------- pace.c */

/* A task begins: its pauses are not those of another task or program. */
void pace_seed(void);
/* Is there a pace? Without one all messages are due. */
bool pace_is_set(void);
/* The first message is due. */
void pace_begin(uint64_t now);
bool pace_due(uint64_t now);
/* So many messages are sent. */
void pace_plan(uint64_t now, uint32_t count);
/* Wait until a message is due. */
void pace_wait(void);
/* The same; returns true if there is something to read before. */
bool pace_wait_or(int fd);

/* ----------------------------------------------- server.c, client.c, task.c */

/* Where in the server's memory the ops of a turn have their bytes */
uint64_t op_offset(uint32_t index);
/* Serve so many clients; 0: any number, until the process is killed. */
void serve(uint32_t clients);
/* Returns when the client is ready for the measurement; the first one of a peer
 * tells of its node.
 */
void client_prepare(bool first);
void client_run(void);
/* Look whether the server is there, and tell it that the client is. */
void client_look(uint64_t now);
/* Run the tasks, each a client with a process of its own. */
void run_tasks(char **peers, uint32_t nr_peers);
/* Run a node of a mesh of these addresses. */
void run_mesh(char **addresses, uint32_t nr_addresses);

/* --------------------------------------------------------------- report.c */

enum {
	STEP_BITS	= 5,
	STEPS		= 1 << STEP_BITS,
	BUCKETS		= (64 - STEP_BITS + 1) * STEPS,
};

struct outlier {
	uint64_t ns;
	uint64_t at_ns;		/* since the start */
	const char *host;
};

/* The result of a task, or of several */
struct result {
	uint64_t done;		/* by now; others read it, as they do worst_ns */
	uint64_t worst_ns;	/* of this second */
	uint64_t begin_ns, end_ns;
	uint64_t cpu_ns;
	struct {
		uint64_t count, sum, min, max;
	} latency;
	uint64_t buckets[BUCKETS];
	uint32_t nr_outliers;
	struct outlier outliers[MAX_OUTLIERS];	/* slowest first */
	const char *host;
};

/* That of this process, to which the next two functions add */
extern struct result *result;

/* So many messages or ops are done; the second counts one, and its time. */
void report_done(uint64_t count);
void report_latency(uint64_t ns);
/* Add the result of a task to that of this process. */
void report_add(const struct result *task);
uint64_t report_cpu_ns(void);
/* The payload of a message that its rate is computed from */
uint32_t report_bytes(void);
void report_begin(void);
void report_end(uint64_t messages, uint64_t elapsed_ns);
/* The same, with a part for each of these results */
void report_parts(const struct result *parts, uint32_t nr_parts);

#endif /* XRDS_PERF_H */
