// SPDX-License-Identifier: GPL-2.0-only
/*
 * When a message came, and how long it took: SO_TIMESTAMP, and the latencies
 * of SO_RDS_MSG_RXPATH_LATENCY.
 *
 * A message passes three points before recvmsg(), enum xrds_rx_point. The
 * transport notes the first two in front of its payload; over loopback all three
 * are one moment, and it notes none. The third, and the time of day, are noted
 * when it is queued on a socket that asks for them. A message that was queued
 * before the socket asked has no latencies: they read as zero.
 */
#include <linux/sched/clock.h>

#include "msg.h"
#include "sock/sock.h"
#include "xrds.h"

/* SO_TIMESTAMP, SO_TIMESTAMPNS or SO_TIMESTAMPING of receiving in software */
static bool xrds_stamp_wanted(const struct xrds_sock *xs)
{
	return READ_ONCE(xs->sk.sk_flags) & XRDS_STAMP_FLAGS;
}

/**
 * xrds_timestamp_queued - a message is queued on a socket
 * @xs: socket with xrds_timestamp_wanted()
 * @skb: message
 *
 * Context: any, sk_receive_queue.lock held.
 */
void xrds_timestamp_queued(struct xrds_sock *xs, struct sk_buff *skb)
{
	u64 *at = xrds_skb_trace(skb)->at;

	if (xrds_stamp_wanted(xs))
		__net_timestamp(skb);
	if (!READ_ONCE(xs->rx_trace.rx_traces))
		return;
	at[XRDS_RX_END] = local_clock();
	if (!at[XRDS_RX_HDR]) {
		at[XRDS_RX_HDR] = at[XRDS_RX_END];
		at[XRDS_RX_START] = at[XRDS_RX_END];
	}
}

static u64 xrds_trace_between(const struct sk_buff *skb, unsigned int point,
			      u64 now)
{
	const u64 *at = xrds_skb_trace(skb)->at;
	u64 end;

	if (!at[XRDS_RX_HDR] || !at[XRDS_RX_END])
		return 0;
	end = point == XRDS_RX_END ? now : at[point + 1];
	/* clocks of two CPUs may differ a little */
	return end > at[point] ? end - at[point] : 0;
}

static int xrds_trace_put(struct msghdr *m, struct rds_cmsg_rx_trace *trace)
{
	struct xrds_compat_rx_trace compat;

	if (!(m->msg_flags & MSG_CMSG_COMPAT))
		return put_cmsg(m, SOL_RDS, RDS_CMSG_RXPATH_LATENCY,
				sizeof(*trace), trace);
	/* there may be padding in it, too */
	memset(&compat, 0, sizeof(compat));
	compat.rx_traces = trace->rx_traces;
	memcpy(compat.rx_trace_pos, trace->rx_trace_pos,
	       sizeof(compat.rx_trace_pos));
	memcpy(compat.rx_trace, trace->rx_trace, sizeof(compat.rx_trace));
	return put_cmsg(m, SOL_RDS, RDS_CMSG_RXPATH_LATENCY, sizeof(compat),
			&compat);
}

/**
 * xrds_timestamp_read - tell when a message came, and how long it took
 * @xs: socket with xrds_timestamp_wanted()
 * @skb: message
 * @m: where to
 *
 * Context: process.
 * Return: 0 or -EFAULT.
 */
int xrds_timestamp_read(struct xrds_sock *xs, struct sk_buff *skb,
			struct msghdr *m)
{
	struct rds_cmsg_rx_trace trace;
	struct rds_rx_trace_so want;
	unsigned int i;
	u64 now;

	if (xrds_stamp_wanted(xs))
		__sock_recv_timestamp(m, &xs->sk, skb);
	if (!READ_ONCE(xs->rx_trace.rx_traces))
		return 0;

	now = local_clock();
	spin_lock_bh(&xs->lock);
	want = xs->rx_trace;
	spin_unlock_bh(&xs->lock);
	/* there is padding in it */
	memset(&trace, 0, sizeof(trace));
	trace.rx_traces = want.rx_traces;
	for (i = 0; i < want.rx_traces; i++) {
		trace.rx_trace_pos[i] = want.rx_trace_pos[i];
		trace.rx_trace[i] = xrds_trace_between(skb,
						       want.rx_trace_pos[i],
						       now);
	}
	return xrds_trace_put(m, &trace);
}

/**
 * xrds_timestamp_set - SO_RDS_MSG_RXPATH_LATENCY
 * @xs: socket
 * @arg: which latencies; none: no more
 *
 * Context: process.
 * Return: 0, -EFAULT for a latency that there is not.
 */
int xrds_timestamp_set(struct xrds_sock *xs, const struct rds_rx_trace_so *arg)
{
	struct rds_rx_trace_so want = {};
	int ret = 0;
	unsigned int i;

	/* a wrong value turns all traces off, as in mainline */
	if (arg->rx_traces > RDS_MSG_RX_DGRAM_TRACE_MAX)
		return -EFAULT;
	for (i = 0; i < arg->rx_traces; i++)
		if (arg->rx_trace_pos[i] >= RDS_MSG_RX_DGRAM_TRACE_MAX)
			ret = -EFAULT;
	if (!ret)
		want = *arg;

	spin_lock_bh(&xs->lock);
	WRITE_ONCE(xs->rx_trace.rx_traces, want.rx_traces);
	memcpy(xs->rx_trace.rx_trace_pos, want.rx_trace_pos,
	       sizeof(want.rx_trace_pos));
	spin_unlock_bh(&xs->lock);
	return ret;
}

/**
 * xrds_timestamp_set_sock - SO_TIMESTAMP at level SOL_RDS, as in mainline
 * @xs: socket
 * @optname: SO_TIMESTAMP_OLD or SO_TIMESTAMP_NEW
 * @on: whether
 *
 * Context: process.
 * Return: 0.
 */
int xrds_timestamp_set_sock(struct xrds_sock *xs, int optname, bool on)
{
	struct sock *sk = &xs->sk;

	lock_sock(sk);
	sock_valbool_flag(sk, SOCK_TSTAMP_NEW,
			  on && optname == SO_TIMESTAMP_NEW);
	/* SO_TIMESTAMPNS at the other level: the last one counts */
	sock_reset_flag(sk, SOCK_RCVTSTAMPNS);
	sock_valbool_flag(sk, SOCK_RCVTSTAMP, on);
	release_sock(sk);
	return 0;
}
