/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hostile peer: the header of its files. See hostile_main.c.
 */
#ifndef _XRDS_HOSTILE_H
#define _XRDS_HOSTILE_H

#include <linux/prandom.h>
#include <linux/socket.h>
#include <rdma/rdma_cm.h>

#include "wire/wire.h"

enum {
	HOSTILE_BUF_BYTES	= 16 << 10,
	/* more than the largest buffer that XRDS may have */
	HOSTILE_OVERSIZE_BYTES	= XRDS_WIRE_MAX_FRAG_BYTES + HOSTILE_BUF_BYTES,
	HOSTILE_NR_SGES		= HOSTILE_OVERSIZE_BYTES / HOSTILE_BUF_BYTES,
	HOSTILE_NR_SENDS	= 32,
	HOSTILE_NR_RECVS	= 32,
	HOSTILE_WAIT_SECONDS	= 10,
	HOSTILE_TAGS		= 2,	/* that XRDS takes */
	HOSTILE_NODE		= 1,	/* number of a node with many connections at once */
};

/* Events that are counted; hostile_main.c has their names */
enum hostile_counter {
	HOSTILE_C_LINKS,	/* connections that came up */
	HOSTILE_C_NO_LINK,	/* that did not */
	HOSTILE_C_WRONG,	/* malformed packets */
	HOSTILE_C_HARMLESS,	/* of those, to be borne, and taken */
	HOSTILE_C_BEHIND,	/* of those, behind a fatal one */
	HOSTILE_C_RDMA,		/* of those, RDMA ops */
	HOSTILE_C_CLOSED,	/* fatal: the peer hung up */
	HOSTILE_C_SURVIVED,	/* fatal: the peer did not */
	HOSTILE_C_STARVED,	/* no credit came */
	HOSTILE_C_REQUESTS,	/* sent by storms */
	HOSTILE_C_ANSWERED,	/* of those, accepted */
	HOSTILE_C_REJECTED,	/* refused by the peer */
	HOSTILE_C_NO_VERSION,	/* of those, for want of a common version */
	HOSTILE_C_ASKED,	/* requests of the peer */
	HOSTILE_C_ACCEPTED,	/* of those, accepted */
	HOSTILE_C_BEATS,	/* heartbeats that the peer has answered */
	HOSTILE_C_PINGS,	/* heartbeats of the peer */
	HOSTILE_C_BROKEN,	/* connections that ended before anything fatal */
	HOSTILE_C_UNSURE,	/* errors that the peer may have found, or not */
	HOSTILE_NR_COUNTERS
};

/**
 * struct hostile_order - what was asked for by a write to /proc/xrds_hostile
 * @peer:	where to
 * @local:	where from
 * @other:	address to pretend to have
 * @seed:	of all that is random
 * @count:	how many packets or requests
 * @tos:	type of service
 */
struct hostile_order {
	struct sockaddr_storage peer;
	struct sockaddr_storage local;
	struct sockaddr_storage other;
	u32 seed;
	u32 count;
	u32 tos;
};

/**
 * struct hostile_gen - makes the packets of one connection
 * @rnd:	all that is random
 * @ver:	XRDS_VER_*
 * @hello:	a valid clear-to-send was made
 * @bundles:	it said that bundles may come
 * @brief:	and short headers
 * @with_imm:	the next SEND has immediate data
 * @imm:	the immediate data
 * @ctx:	context of short headers, from the others
 * @bye:	a BYE was made
 * @open:	the peer has answered a message: it takes acknowledgments
 * @port:	where data goes, 0: to random ports
 * @seq:	last sequence number used
 * @node:	number of the node; a connection to an earlier one ends
 * @granted:	credits granted
 * @max_payload: size of a fragment in the private data; 0: it names none
 * @reasm:	where the peer is with its messages, by tag
 * @last:	header of the last packet
 * @last_bytes:	its length
 */
struct hostile_gen {
	struct rnd_state rnd;
	int ver;
	bool hello;
	bool bundles;
	bool brief;
	bool with_imm;
	u32 imm;
	struct xrds_wire_context ctx;
	bool bye;
	bool open;
	u16 port;
	u64 seq;
	u64 node;
	u32 granted;
	u32 max_payload;
	struct xrds_wire_reasm reasm[HOSTILE_TAGS];
	struct xrds_hdr last;
	u32 last_bytes;
};

struct hostile_link;
struct hostile_uek;

/**
 * struct hostile_buf - a buffer and its work request
 * @cqe:	completion
 * @data:	HOSTILE_BUF_BYTES
 * @dma:	the same for the device
 * @busy:	posted
 * @count:	counter to raise when it was taken, or HOSTILE_NR_COUNTERS
 * @expect:	error that the peer must find once it was taken, or XRDS_WIRE_OK
 */
struct hostile_buf {
	struct ib_cqe cqe;
	void *data;
	u64 dma;
	bool busy;
	enum hostile_counter count;
	enum xrds_wire_err expect;
};

/**
 * struct hostile_link - one connection
 * @id:		identifier
 * @pd:		protection domain
 * @cq:		completion queue, of both directions
 * @wait:	for the user of the link
 * @event:	last event of the connection manager but disconnection
 * @down:	it has ended
 * @credits:	granted by the peer and not used
 * @first:	number of the peer's first message, 0: none has come
 * @got:	number of its last one
 * @node:	number of that node, from its hello
 * @acked:	acknowledged by that peer
 * @beats:	heartbeats that it has answered
 * @pings:	heartbeats of its own
 * @payload:	size of a fragment in its reply, bytes
 * @uek:	see hostile_uek.c
 * @unsure:	the peer may end it at any time, see hostile_link.c
 * @fatal:	buffer with the error that the peer must find, or NULL
 * @found:	the peer's device has taken it
 * @gen:	makes packets
 * @send:	for SENDs
 * @recv:	for SENDs of the peer
 * @work:	of a link that the peer has dialled
 */
struct hostile_link {
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	wait_queue_head_t wait;
	enum rdma_cm_event_type event;
	bool down;
	enum rdma_cm_event_type end;	/* that ended it; or ESTABLISHED, */
	enum ib_wc_status status;	/* and this did */
	atomic_t credits;
	u64 first;
	u64 got;
	u64 node;
	u64 acked;
	atomic_t beats;
	atomic_t pings;
	u32 payload;
	struct hostile_uek *uek;
	bool unsure;
	struct hostile_buf *fatal;
	bool found;
	struct hostile_gen gen;
	struct hostile_buf send[HOSTILE_NR_SENDS];
	struct hostile_buf recv[HOSTILE_NR_RECVS];
	struct work_struct work;
};

/* The messages of hostile_flood() */
enum hostile_what {
	HOSTILE_DATA, HOSTILE_MAPS, HOSTILE_LISTS,
};

/* hostile_main.c */
void hostile_count(enum hostile_counter c);
void hostile_expect(enum xrds_wire_err err);
bool hostile_over(void);

/* hostile_gen.c */
u32 hostile_random(struct hostile_gen *gen, u32 below);
void hostile_fill(struct hostile_gen *gen, void *buf, u32 bytes);
void hostile_gen_seal(struct xrds_hdr *hdr);
void hostile_gen_note(struct hostile_gen *gen, const void *buf, u32 bytes);
u64 hostile_gen_node(void);
u32 hostile_gen_hello(struct hostile_gen *gen, void *buf);
u32 hostile_gen_data(struct hostile_gen *gen, void *buf, u32 len);
u32 hostile_gen_map(struct hostile_gen *gen, void *buf);
u32 hostile_gen_list(struct hostile_gen *gen, void *buf);
u32 hostile_gen_ping(struct hostile_gen *gen, void *buf);
u32 hostile_gen_wrong(struct hostile_gen *gen, void *buf, bool fatal,
		      enum xrds_wire_err *err);
u32 hostile_gen_priv(struct hostile_gen *gen, void *buf, u32 room,
		     const struct sockaddr_storage *from,
		     const struct sockaddr_storage *to, u8 tos, bool wrong);

/* hostile_link.c */
struct hostile_link *hostile_link_alloc(u32 seed);
int hostile_link_event(struct rdma_cm_id *id, struct rdma_cm_event *event);
bool hostile_link_wait(struct hostile_link *link,
		       enum rdma_cm_event_type event);
int hostile_link_resolve(struct hostile_link *link,
			 const struct hostile_order *order);
int hostile_link_setup(struct hostile_link *link);
bool hostile_link_hello(struct hostile_link *link);
void hostile_link_unsure(struct hostile_link *link);
void hostile_link_spoil(struct hostile_link *link);
u32 hostile_link_attack(struct hostile_link *link, u32 most);
void hostile_link_free(struct hostile_link *link);
int hostile_dial(const struct hostile_order *order, int ver);
int hostile_brief(const struct hostile_order *order);
int hostile_torn(const struct hostile_order *order);
int hostile_gang(const struct hostile_order *order);
struct hostile_link *hostile_link_dial(const struct hostile_order *order,
				       int ver);
struct hostile_link *hostile_link_dial_uek(const struct hostile_order *order,
					   struct hostile_uek *uek);
struct hostile_buf *hostile_link_buf(struct hostile_link *link, bool credit);
int hostile_link_send(struct hostile_link *link, struct hostile_buf *buf,
		      u32 bytes);
int hostile_flood(const struct hostile_order *order, enum hostile_what what);
int hostile_invalidate(const struct hostile_order *order);

/* hostile_beat.c */
int hostile_beat(const struct hostile_order *order);
int hostile_deaf(const struct hostile_order *order);
int hostile_borne(const struct hostile_order *order);
int hostile_send_beat(struct hostile_link *link, u64 seq, u64 ack, u8 flags);
int hostile_send_last(struct hostile_link *link, u64 seq);

/* hostile_keep.c */
int hostile_partial(const struct hostile_order *order);
int hostile_withhold(const struct hostile_order *order);
int hostile_ahead(const struct hostile_order *order);

/* hostile_uek.c */
int hostile_uek(const struct hostile_order *order, bool mute);
int hostile_sums(const struct hostile_order *order);
bool hostile_uek_recv(struct hostile_link *link, const void *data, u32 bytes);

/* hostile_storm.c */
int hostile_storm(const struct hostile_order *order);
int hostile_pretend(const struct hostile_order *order);
int hostile_cross(void);
int hostile_refuse(bool refuse);
int hostile_spoil(void);
void hostile_answer_seed(u32 seed);
int hostile_listen(void);
void hostile_unlisten(void);

#endif
