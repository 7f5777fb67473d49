// SPDX-License-Identifier: GPL-2.0-only
/*
 * A hostile peer: xrds_hostile, in the place of xrds_ib, speaks the wire format
 * of RDS over RDMA wrongly on purpose. It listens where RDS listens, and takes
 * orders by a write to /proc/xrds_hostile, which returns when the order is
 * done, or at a signal:
 *
 *   KIND PEER LOCAL SEED COUNT [TOS [OTHER]]
 *
 *   xrds		COUNT wrong packets, on connections of the native version
 *   classic	the same in versions 3.1, 4.0 and 4.1
 *   brief		COUNT connections that end with the first packet
 *   torn		COUNT connections that end in the middle of the first one
 *   gang	the same with all COUNT of them, 256 at most, at once
 *   storm		COUNT requests, most of them wrong or never completed
 *   pretend	COUNT requests in the name of OTHER
 *   flood		COUNT good packets to port 5000, whether it is read or not
 *   maps		COUNT congestion maps, one right after the other
 *   lists	the same with lists of ports
 *   partial	COUNT connections with two messages each that never end, until a
 *		signal comes
 *   withhold	COUNT messages of PEER are taken, and acknowledged all at once; the
 *		connection stays until a signal comes; not wrong at all
 *   ahead	a hello that acknowledges number 2^SEED, then a ping with number COUNT
 *		+ 1; an error if no answer comes
 *   invalidate	a message that has PEER's device invalidate the key SEED
 *   beat		COUNT heartbeats as Oracle's kernels send them; not wrong at all
 *   deaf		the same, and no answer is acknowledged before the last one
 *   uek		heartbeats as Oracle's kernels send and answer them, COUNT at
 *		least each way, and SEED messages, which return; not wrong either
 *   mute	the same; after that it answers and acknowledges nothing
 *   sums	a message for each of the right payload checksums, then, if SEED
 *		is not 0, one with a wrong checksum
 *   borne	case SEED of the packets that mainline tolerates; not wrong either
 *   refuse	from now on all requests are refused
 *   answer	from now on they are not
 *   cross	from now on each request gets the answer that we will dial
 *   spoil	from now on each request gets a connection with an error at once
 *
 * All that is random follows from SEED. Several writers are several attackers.
 * Reading gives counters. "wire_NAME N": the other end must have found this error
 * N times. "unsure N": it may have found N more, of any name. See hostile_link.c.
 */
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "hostile.h"

enum { MAX_ORDER_BYTES = 256 };

static atomic64_t counters[HOSTILE_NR_COUNTERS];
static atomic64_t expected[XRDS_WIRE_NR_ERRORS];
static bool stopping;

static const char * const counter_names[] = {
	[HOSTILE_C_LINKS]	= "links",
	[HOSTILE_C_NO_LINK]	= "no_link",
	[HOSTILE_C_WRONG]	= "wrong",
	[HOSTILE_C_HARMLESS]	= "harmless",
	[HOSTILE_C_BEHIND]	= "behind",
	[HOSTILE_C_RDMA]	= "rdma",
	[HOSTILE_C_CLOSED]	= "closed",
	[HOSTILE_C_SURVIVED]	= "survived",
	[HOSTILE_C_STARVED]	= "starved",
	[HOSTILE_C_REQUESTS]	= "requests",
	[HOSTILE_C_ANSWERED]	= "answered",
	[HOSTILE_C_REJECTED]	= "rejected",
	[HOSTILE_C_NO_VERSION]	= "no_version",
	[HOSTILE_C_ASKED]	= "asked",
	[HOSTILE_C_ACCEPTED]	= "accepted",
	[HOSTILE_C_BEATS]	= "beats",
	[HOSTILE_C_PINGS]	= "pings",
	[HOSTILE_C_BROKEN]	= "broken",
	[HOSTILE_C_UNSURE]	= "unsure",
};

static const char * const error_names[] = {
#define X(sym, name, text) #name
#include "wire/list_errors.h"
#undef X
};

void hostile_count(enum hostile_counter c)
{
	atomic64_inc(&counters[c]);
}

/* The other end must find this error. */
void hostile_expect(enum xrds_wire_err err)
{
	atomic64_inc(&expected[err]);
}

/* Is it time to leave? */
bool hostile_over(void)
{
	return READ_ONCE(stopping) ||
	       (!(current->flags & PF_KTHREAD) && signal_pending(current));
}

static int obey(const char *kind, const struct hostile_order *order)
{
	if (!strcmp(kind, "xrds"))
		return hostile_dial(order, XRDS_VER_XRDS);
	if (!strcmp(kind, "classic"))
		return hostile_dial(order, 0);
	if (!strcmp(kind, "brief"))
		return hostile_brief(order);
	if (!strcmp(kind, "torn"))
		return hostile_torn(order);
	if (!strcmp(kind, "gang"))
		return hostile_gang(order);
	if (!strcmp(kind, "storm"))
		return hostile_storm(order);
	if (!strcmp(kind, "pretend"))
		return hostile_pretend(order);
	if (!strcmp(kind, "flood"))
		return hostile_flood(order, HOSTILE_DATA);
	if (!strcmp(kind, "maps"))
		return hostile_flood(order, HOSTILE_MAPS);
	if (!strcmp(kind, "lists"))
		return hostile_flood(order, HOSTILE_LISTS);
	if (!strcmp(kind, "partial"))
		return hostile_partial(order);
	if (!strcmp(kind, "withhold"))
		return hostile_withhold(order);
	if (!strcmp(kind, "ahead"))
		return hostile_ahead(order);
	if (!strcmp(kind, "invalidate"))
		return hostile_invalidate(order);
	if (!strcmp(kind, "beat"))
		return hostile_beat(order);
	if (!strcmp(kind, "deaf"))
		return hostile_deaf(order);
	if (!strcmp(kind, "uek"))
		return hostile_uek(order, false);
	if (!strcmp(kind, "mute"))
		return hostile_uek(order, true);
	if (!strcmp(kind, "sums"))
		return hostile_sums(order);
	if (!strcmp(kind, "borne"))
		return hostile_borne(order);
	if (!strcmp(kind, "refuse"))
		return hostile_refuse(true);
	if (!strcmp(kind, "answer"))
		return hostile_refuse(false);
	if (!strcmp(kind, "cross"))
		return hostile_cross();
	if (!strcmp(kind, "spoil"))
		return hostile_spoil();
	return -EINVAL;
}

static int parse_addr(const char *text, struct sockaddr_storage *ss)
{
	char port[8];

	snprintf(port, sizeof(port), "%d", strchr(text, ':') ?
		 XRDS_WIRE_PORT_V6 : XRDS_WIRE_PORT_V4);
	return inet_pton_with_scope(&init_net, AF_UNSPEC, text, port, ss);
}

static ssize_t hostile_write(struct file *file, const char __user *from,
			     size_t bytes, loff_t *pos)
{
	char kind[16], peer[48], local[48], other[48];
	struct hostile_order order = {};
	char text[MAX_ORDER_BYTES];
	int n, ret;

	if (bytes >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, bytes))
		return -EFAULT;
	text[bytes] = '\0';
	n = sscanf(text, "%15s %47s %47s %u %u %u %47s", kind, peer, local,
		   &order.seed, &order.count, &order.tos, other);
	if (n < 5 || parse_addr(peer, &order.peer) ||
	    parse_addr(local, &order.local) ||
	    (n == 7 && parse_addr(other, &order.other)))
		return -EINVAL;
	/* where from: any port */
	((struct sockaddr_in *)&order.local)->sin_port = 0;
	hostile_answer_seed(order.seed);
	ret = obey(kind, &order);
	return ret ?: bytes;
}

static int hostile_show(struct seq_file *file, void *data)
{
	int i;

	for (i = 0; i < HOSTILE_NR_COUNTERS; i++)
		seq_printf(file, "%s %lld\n", counter_names[i],
			   (s64)atomic64_read(&counters[i]));
	for (i = 1; i < XRDS_WIRE_NR_ERRORS; i++)
		seq_printf(file, "wire_%s %lld\n", error_names[i],
			   (s64)atomic64_read(&expected[i]));
	return 0;
}

static int hostile_open(struct inode *inode, struct file *file)
{
	return single_open(file, hostile_show, NULL);
}

static const struct proc_ops hostile_ops = {
	.proc_open	= hostile_open,
	.proc_read	= seq_read,
	.proc_lseek	= seq_lseek,
	.proc_release	= single_release,
	.proc_write	= hostile_write,
};

static int __init hostile_init(void)
{
	int ret = hostile_listen();

	if (ret)
		return ret;
	if (proc_create("xrds_hostile", 0600, NULL, &hostile_ops))
		return 0;
	WRITE_ONCE(stopping, true);
	hostile_unlisten();
	return -ENOMEM;
}

static void __exit hostile_exit(void)
{
	WRITE_ONCE(stopping, true);
	/* waits for those who write */
	remove_proc_entry("xrds_hostile", NULL);
	hostile_unlisten();
}

module_init(hostile_init);
module_exit(hostile_exit);
MODULE_DESCRIPTION("A peer that breaks the rules, for tests of XRDS");
MODULE_LICENSE("GPL");
