/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Trace points, /sys/kernel/tracing/events/xrds; Documentation/tracing.rst
 * follows a message and an RDMA op through them.
 *
 *   conn_event, conn_state    an event of a connection, a change of its state
 *   msg_queue, _post, _done,  a message of this node: accepted, handed to the
 *   _ack, _drop               transport, done by the device, acknowledged
 *   msg_rx                    a message of a peer, and the counter of its outcome
 *   rop_new, _post, _done,    an RDMA op, and the mark that it moves
 *   rop_hwm
 *   mr_reg, mr_unreg          a memory region
 *   credit_got, credit_grant  fragments that may be sent
 *   cong_local, cong_peer     a port, ours or a peer's, and its congestion
 *   ref_get, ref_put          references, and the code that takes or drops them
 *
 * Addresses are IPv6, those of IPv4 mapped into it. A message is found by its
 * two ends and its number, an op by its socket, its node and its identifier.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM xrds

#if !defined(_XRDS_TRACEPOINTS_H) || defined(TRACE_HEADER_MULTI_READ)
#define _XRDS_TRACEPOINTS_H

#include <linux/tracepoint.h>

#include "msg.h"
#include "transport.h"
#include "xrds.h"

#define XRDS_TP_ADDRS \
	__array(u8, laddr, 16) \
	__array(u8, faddr, 16)

#define XRDS_TP_SET(_field, _addr) memcpy(__entry->_field, _addr, 16)

/* ------------------------------------------------------------ connections */

TRACE_EVENT(xrds_conn_event,
	TP_PROTO(const struct xrds_conn *conn, unsigned int event, int error),
	TP_ARGS(conn, event, error),
	TP_STRUCT__entry(
		XRDS_TP_ADDRS
		__field(u8, tos)
		__field(int, error)
		__array(char, state, 12)
		__array(char, event, 12)
	),
	TP_fast_assign(
		XRDS_TP_SET(laddr, &conn->key.laddr);
		XRDS_TP_SET(faddr, &conn->key.faddr);
		__entry->tos = conn->key.tos;
		__entry->error = error;
		strscpy(__entry->state, xrds_fsm_state_name(conn->state), 12);
		strscpy(__entry->event, xrds_fsm_event_name(event), 12);
	),
	TP_printk("%pI6c->%pI6c tos=%u state=%s event=%s error=%d",
		  __entry->laddr, __entry->faddr, __entry->tos,
		  __entry->state, __entry->event, __entry->error)
);

TRACE_EVENT(xrds_conn_state,
	TP_PROTO(const struct xrds_conn *conn, unsigned int state),
	TP_ARGS(conn, state),
	TP_STRUCT__entry(
		XRDS_TP_ADDRS
		__field(u8, tos)
		__array(char, from, 12)
		__array(char, to, 12)
	),
	TP_fast_assign(
		XRDS_TP_SET(laddr, &conn->key.laddr);
		XRDS_TP_SET(faddr, &conn->key.faddr);
		__entry->tos = conn->key.tos;
		strscpy(__entry->from, xrds_fsm_state_name(conn->state), 12);
		strscpy(__entry->to, xrds_fsm_state_name(state), 12);
	),
	TP_printk("%pI6c->%pI6c tos=%u %s->%s",
		  __entry->laddr, __entry->faddr, __entry->tos,
		  __entry->from, __entry->to)
);

/* --------------------------------------------------------------- messages */

#define XRDS_TP_MSG_FIELDS		\
	XRDS_TP_ADDRS			\
	__field(u16, sport)		\
	__field(u16, dport)		\
	__field(u64, seq)		\
	__field(u32, len)		\
	__field(u8, flags)		\
	__field(u64, rop)

/* The kernel's own messages have no destination. */
#define XRDS_TP_MSG_SET(_msg)						\
	do {								\
		const struct xrds_msg *m = (_msg);			\
		const struct xrds_dest *dest = xrds_dest_of(m->flow);	\
									\
		memset(__entry->laddr, 0, 16);				\
		memset(__entry->faddr, 0, 16);				\
		if (dest) {						\
			XRDS_TP_SET(laddr, &dest->key.xs->bind.addr);	\
			XRDS_TP_SET(faddr, &dest->key.addr);		\
		}							\
		__entry->sport = m->sport;				\
		__entry->dport = m->dport;				\
		__entry->seq = m->seq;					\
		__entry->len = m->len;					\
		__entry->flags = m->flags;				\
		__entry->rop = m->rop ? m->rop->id : 0;			\
	} while (0)

#define XRDS_TP_MSG_FORMAT \
	"[%pI6c]:%u->[%pI6c]:%u seq=%llu len=%u flags=0x%x op=%llu"
#define XRDS_TP_MSG_ARGS						\
	__entry->laddr, __entry->sport, __entry->faddr, __entry->dport,	\
	__entry->seq, __entry->len, __entry->flags, __entry->rop

DECLARE_EVENT_CLASS(xrds_msg,
	TP_PROTO(const struct xrds_msg *msg),
	TP_ARGS(msg),
	TP_STRUCT__entry(XRDS_TP_MSG_FIELDS),
	TP_fast_assign(XRDS_TP_MSG_SET(msg);),
	TP_printk(XRDS_TP_MSG_FORMAT, XRDS_TP_MSG_ARGS)
);

#define XRDS_TP_MSG(_name) \
	DEFINE_EVENT(xrds_msg, xrds_msg_##_name, \
		     TP_PROTO(const struct xrds_msg *msg), TP_ARGS(msg))

XRDS_TP_MSG(queue);
XRDS_TP_MSG(post);
XRDS_TP_MSG(done);
XRDS_TP_MSG(ack);

TRACE_EVENT(xrds_msg_drop,
	TP_PROTO(const struct xrds_msg *msg, enum xrds_counter reason),
	TP_ARGS(msg, reason),
	TP_STRUCT__entry(
		XRDS_TP_MSG_FIELDS
		__array(char, reason, 24)
	),
	TP_fast_assign(
		XRDS_TP_MSG_SET(msg);
		strscpy(__entry->reason, xrds_stats_name(reason), 24);
	),
	TP_printk(XRDS_TP_MSG_FORMAT " %s", XRDS_TP_MSG_ARGS, __entry->reason)
);

TRACE_EVENT(xrds_msg_rx,
	TP_PROTO(const struct xrds_conn *conn, const struct xrds_wire_msg *wm,
		 enum xrds_counter result),
	TP_ARGS(conn, wm, result),
	TP_STRUCT__entry(
		XRDS_TP_ADDRS
		__field(u16, sport)
		__field(u16, dport)
		__field(u64, seq)
		__field(u32, len)
		__field(u8, flags)
		__array(char, result, 24)
	),
	TP_fast_assign(
		XRDS_TP_SET(laddr, &conn->key.laddr);
		XRDS_TP_SET(faddr, &conn->key.faddr);
		__entry->sport = wm->sport;
		__entry->dport = wm->dport;
		__entry->seq = wm->seq;
		__entry->len = wm->len;
		__entry->flags = wm->flags;
		strscpy(__entry->result, xrds_stats_name(result), 24);
	),
	TP_printk("[%pI6c]:%u<-[%pI6c]:%u seq=%llu len=%u flags=0x%x %s",
		  __entry->laddr, __entry->dport, __entry->faddr,
		  __entry->sport, __entry->seq, __entry->len, __entry->flags,
		  __entry->result)
);

/* --------------------------------------------------------------- RDMA ops */

/* for programs that read recorded traces */
TRACE_DEFINE_ENUM(XRDS_ROP_READ);
TRACE_DEFINE_ENUM(XRDS_ROP_WRITE);
TRACE_DEFINE_ENUM(XRDS_ROP_FADD);
TRACE_DEFINE_ENUM(XRDS_ROP_CSWP);

DECLARE_EVENT_CLASS(xrds_rop,
	TP_PROTO(const struct xrds_rop *rop),
	TP_ARGS(rop),
	TP_STRUCT__entry(
		XRDS_TP_ADDRS
		__field(u16, lport)
		__field(u64, id)
		__field(u8, op)
		__field(u64, bytes)
		__field(u32, rkey)
		__field(s32, status)
	),
	TP_fast_assign(
		XRDS_TP_SET(laddr, &rop->rs->bind->addr);
		XRDS_TP_SET(faddr, &rop->to->key.addr);
		__entry->lport = rop->rs->bind->port;
		__entry->id = rop->id;
		__entry->op = rop->op;
		__entry->bytes = rop->bytes;
		__entry->rkey = rop->rkey;
		__entry->status = rop->status;
	),
	TP_printk("[%pI6c]:%u->%pI6c id=%llu %s bytes=%llu rkey=0x%x status=%d",
		  __entry->laddr, __entry->lport, __entry->faddr, __entry->id,
		  __print_symbolic(__entry->op,
				   { XRDS_ROP_READ, "read" },
				   { XRDS_ROP_WRITE, "write" },
				   { XRDS_ROP_FADD, "fadd" },
				   { XRDS_ROP_CSWP, "cswp" }),
		  __entry->bytes, __entry->rkey, __entry->status)
);

#define XRDS_TP_ROP(_name) \
	DEFINE_EVENT(xrds_rop, xrds_rop_##_name, \
		     TP_PROTO(const struct xrds_rop *rop), TP_ARGS(rop))

XRDS_TP_ROP(new);
XRDS_TP_ROP(post);
XRDS_TP_ROP(done);

TRACE_EVENT(xrds_rop_hwm,
	TP_PROTO(const struct xrds_rdma_peer *node),
	TP_ARGS(node),
	TP_STRUCT__entry(
		XRDS_TP_ADDRS
		__field(u16, lport)
		__field(u64, completed)
		__field(u64, issued)
	),
	TP_fast_assign(
		XRDS_TP_SET(laddr, &node->key.rs->bind->addr);
		XRDS_TP_SET(faddr, &node->key.addr);
		__entry->lport = node->key.rs->bind->port;
		__entry->completed = node->completed;
		__entry->issued = node->issued;
	),
	TP_printk("[%pI6c]:%u->%pI6c completed=%llu issued=%llu",
		  __entry->laddr, __entry->lport, __entry->faddr,
		  __entry->completed, __entry->issued)
);

/* ---------------------------------------------------------------- regions */

DECLARE_EVENT_CLASS(xrds_mr,
	TP_PROTO(const struct xrds_mr *mr),
	TP_ARGS(mr),
	TP_STRUCT__entry(
		__array(u8, laddr, 16)
		__field(u32, rkey)
		__field(u64, bytes)
		__field(bool, write)
		__field(bool, use_once)
	),
	TP_fast_assign(
		XRDS_TP_SET(laddr, &mr->key.addr);
		__entry->rkey = mr->key.rkey;
		__entry->bytes = mr->pin ? mr->pin->bytes : 0;
		__entry->write = mr->write;
		__entry->use_once = mr->use_once;
	),
	TP_printk("%pI6c rkey=0x%x bytes=%llu write=%u use_once=%u",
		  __entry->laddr, __entry->rkey, __entry->bytes,
		  __entry->write, __entry->use_once)
);

#define XRDS_TP_MR(_name) \
	DEFINE_EVENT(xrds_mr, xrds_mr_##_name, \
		     TP_PROTO(const struct xrds_mr *mr), TP_ARGS(mr))

XRDS_TP_MR(reg);
XRDS_TP_MR(unreg);

/* ---------------------------------------------------------------- credits */

DECLARE_EVENT_CLASS(xrds_credit,
	TP_PROTO(const struct xrds_conn *conn, u32 n, u32 now),
	TP_ARGS(conn, n, now),
	TP_STRUCT__entry(
		XRDS_TP_ADDRS
		__field(u32, n)
		__field(u32, now)
	),
	TP_fast_assign(
		XRDS_TP_SET(laddr, &conn->key.laddr);
		XRDS_TP_SET(faddr, &conn->key.faddr);
		__entry->n = n;
		__entry->now = now;
	),
	TP_printk("%pI6c->%pI6c credits=%u now=%u",
		  __entry->laddr, __entry->faddr, __entry->n, __entry->now)
);

#define XRDS_TP_CREDIT(_name) \
	DEFINE_EVENT(xrds_credit, xrds_credit_##_name, \
		     TP_PROTO(const struct xrds_conn *conn, u32 n, u32 now), \
		     TP_ARGS(conn, n, now))

XRDS_TP_CREDIT(got);
XRDS_TP_CREDIT(grant);

/* ------------------------------------------------------------- congestion */

DECLARE_EVENT_CLASS(xrds_cong,
	TP_PROTO(const struct in6_addr *addr, u16 port, bool congested),
	TP_ARGS(addr, port, congested),
	TP_STRUCT__entry(
		__array(u8, addr, 16)
		__field(u16, port)
		__field(bool, congested)
	),
	TP_fast_assign(
		XRDS_TP_SET(addr, addr);
		__entry->port = port;
		__entry->congested = congested;
	),
	TP_printk("[%pI6c]:%u congested=%u",
		  __entry->addr, __entry->port, __entry->congested)
);

#define XRDS_TP_CONG(_name) \
	DEFINE_EVENT(xrds_cong, xrds_cong_##_name, \
		     TP_PROTO(const struct in6_addr *addr, u16 port, \
			      bool congested), \
		     TP_ARGS(addr, port, congested))

XRDS_TP_CONG(local);
XRDS_TP_CONG(peer);

/* ------------------------------------------------------------- references */

DECLARE_EVENT_CLASS(xrds_ref,
	TP_PROTO(const char *what, const void *object, unsigned int left,
		 unsigned long caller),
	TP_ARGS(what, object, left, caller),
	TP_STRUCT__entry(
		__array(char, what, 8)
		__field(const void *, object)
		__field(unsigned int, left)
		__field(unsigned long, caller)
	),
	TP_fast_assign(
		strscpy(__entry->what, what, 8);
		__entry->object = object;
		__entry->left = left;
		__entry->caller = caller;
	),
	TP_printk("%s %p refs=%u by %pS", __entry->what, __entry->object,
		  __entry->left, (void *)__entry->caller)
);

#define XRDS_TP_REF(_name) \
	DEFINE_EVENT(xrds_ref, xrds_ref_##_name, \
		     TP_PROTO(const char *what, const void *object, \
			      unsigned int left, unsigned long caller), \
		     TP_ARGS(what, object, left, caller))

XRDS_TP_REF(get);
XRDS_TP_REF(put);

#endif /* _XRDS_TRACEPOINTS_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE tracepoints
#include <trace/define_trace.h>
