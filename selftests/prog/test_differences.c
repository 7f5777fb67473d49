// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tables of Documentation/differences.rst, "Every number", and the outcome of
 * each call. differences.py makes differences.h of the tables.
 *
 * modules: xrds_ib
 */
#include <arpa/inet.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "congest.h"
#include "dump.h"
#include "rdma.h"
#include "sock.h"
#include "tap.h"

enum kind { OPTION, CMSG, IOCTL, DUMP, SYSCTL, PARAMETER };

struct row {
	enum kind kind;
	unsigned int number;
	const char *name;
	const char *first;
	const char *second;
};

#define ROW(_kind, _number, _name, _first, _second) \
	{ _kind, _number, _name, _first, _second },

static const struct row rows[] = {
#include "differences.h"
};

/* The outcome of a call, in the words of the tables */
static const char *outcome(long long ret)
{
	return ret >= 0 ? "works" : tap_errno_name(errno);
}

static void check_outcome(const char *want, const char *got)
{
	if (!check(!strcmp(want, got)))
		tap_diag("the table says %s, and it is %s", want, got);
}

/* Calls @fn for each row of a table; there must be some. */
static void each(enum kind kind, void (*fn)(const struct row *row))
{
	size_t i, n = 0;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].kind != kind)
			continue;
		tap_context("%s", rows[i].name);
		fn(&rows[i]);
		n++;
	}
	check(n > 2);
}

/* ----------------------------------------------------------- socket options */

static int set_reset(int fd, const struct row *row)
{
	struct xrds_uek_reset four = { .src = inet_addr("127.0.0.1") };
	struct xrds_uek_reset6 six = { .src = { [15] = 1 } };

	if (row->number == XRDS_UEK_CONN_RESET6)
		return setsockopt(fd, SOL_RDS, row->number, &six, sizeof(six));
	return setsockopt(fd, SOL_RDS, row->number, &four, sizeof(four));
}

static int set_transport(const struct row *row)
{
	int fd = rds_socket(), value = RDS_TRANS_IB, ret;

	ret = setsockopt(fd, SOL_RDS, row->number, &value, sizeof(value));
	close(fd);
	return ret;
}

static int set_memory(int fd, const struct row *row)
{
	char *mem = pages(PAGE_BYTES);
	union addr self = rds_self(fd);
	u64 cookie;
	int ret;

	if (row->number == RDS_GET_MR_FOR_DEST)
		ret = mr_get_for(fd, &self, mem, PAGE_BYTES, 0, &cookie);
	else
		ret = mr_get(fd, mem, PAGE_BYTES, 0, &cookie);
	if (ret || row->number != RDS_FREE_MR)
		return ret;
	return mr_free(fd, cookie);
}

static int set_option(int fd, const struct row *row)
{
	struct rds_rx_trace_so trace = { .rx_traces = 1 };
	union addr self = rds_self(fd);
	char barrier[24] = "";
	int on = 1;

	switch (row->number) {
	case RDS_CANCEL_SENT_TO:
		return setsockopt(fd, SOL_RDS, row->number, &self,
				  sizeof(self));
	case RDS_GET_MR:
	case RDS_GET_MR_FOR_DEST:
	case RDS_FREE_MR:
		return set_memory(fd, row);
	case 4:
		return setsockopt(fd, SOL_RDS, row->number, barrier,
				  sizeof(barrier));
	case SO_RDS_MSG_RXPATH_LATENCY:
		return setsockopt(fd, SOL_RDS, row->number, &trace,
				  sizeof(trace));
	case SO_RDS_TRANSPORT:
	case XRDS_UEK_CONN_RESET6:
	case XRDS_UEK_TRANSPORT:
		return strstr(row->name, "RESET") ? set_reset(fd, row) :
						    set_transport(row);
	default:
		return setsockopt(fd, SOL_RDS, row->number, &on, sizeof(on));
	}
}

static int get_option(int fd, const struct row *row)
{
	int value[8] = { 0 };
	socklen_t len = sizeof(int);

	if (row->number == SO_RDS_TRANSPORT && strstr(row->name, "RESET"))
		len = sizeof(struct xrds_uek_reset);
	return getsockopt(fd, SOL_RDS, row->number, value, &len);
}

static void option(const struct row *row)
{
	int fd = rds_bound(NULL);

	check_outcome(row->first, outcome(set_option(fd, row)));
	check_outcome(row->second, outcome(get_option(fd, row)));
	close(fd);
}

static void options(void)
{
	each(OPTION, option);
}

/* --------------------------------------------------------- control messages */

static long send_op(int fd, const struct target *t, const struct row *row)
{
	static char local[8] __aligned(8);
	u64 old;
	struct op op;

	switch (row->number) {
	case RDS_CMSG_RDMA_ARGS:
		op = op_write(t, 0, local, sizeof(local));
		break;
	case RDS_CMSG_ATOMIC_FADD:
	case RDS_CMSG_MASKED_ATOMIC_FADD:
		op = op_fadd(t, 0, 1, &old);
		break;
	default:
		op = op_cswp(t, 0, 0, 0, &old);
	}
	op.type = row->number;
	if (row->number == RDS_CMSG_MASKED_ATOMIC_CSWP) {
		op.atomic.m_cswp.compare_mask = ~0ull;
		op.atomic.m_cswp.swap_mask = ~0ull;
	}
	return op_run(fd, &t->addr, &op) == RDS_RDMA_SUCCESS ? 0 : -1;
}

static long send_map(int fd, const union addr *to)
{
	u64 cookie;
	struct rds_get_mr_args args = {
		.vec = { (uintptr_t)pages(PAGE_BYTES), PAGE_BYTES },
		.cookie_addr = (uintptr_t)&cookie,
	};

	return rds_send_cmsg(fd, to, RDS_CMSG_RDMA_MAP, &args, sizeof(args));
}

/* The key of a region of the sender */
static long send_dest(int fd, const union addr *to)
{
	u64 cookie;

	must(mr_get(fd, pages(PAGE_BYTES), PAGE_BYTES, 0, &cookie));
	return rds_send_cmsg(fd, to, RDS_CMSG_RDMA_DEST, &cookie,
			     sizeof(cookie));
}

static long send_zcopy(int fd, const union addr *to)
{
	struct ctl ctl = { 0 };
	u32 cookie = 1;

	rds_set_int(fd, SOL_SOCKET, SO_ZEROCOPY, 1);
	ctl_add(&ctl, RDS_CMSG_ZCOPY_COOKIE, &cookie, sizeof(cookie));
	return ctl_send(fd, to, &ctl, "", 0, MSG_ZEROCOPY);
}

static long send_cmsg(int fd, const struct target *t, const struct row *row)
{
	struct xrds_uek_asend ask = { .user_token = 1 };
	/* the lengths that recvmsg() has for them */
	static const size_t lengths[] = {
		[RDS_CMSG_RDMA_STATUS] = sizeof(struct rds_rdma_notify),
		[RDS_CMSG_CONG_UPDATE] = sizeof(u64),
		[RDS_CMSG_RXPATH_LATENCY] = sizeof(struct rds_cmsg_rx_trace),
		[XRDS_UEK_CMSG_INQ] = sizeof(int),
		[RDS_CMSG_ZCOPY_COMPLETION] = sizeof(struct rds_zcopy_cookies),
	};
	char zero[64] = "";

	/* it shares its number with one that cannot be sent */
	if (strstr(row->name, "ZCOPY_COOKIE"))
		return send_zcopy(fd, &t->addr);
	switch (row->number) {
	case RDS_CMSG_RDMA_ARGS:
	case RDS_CMSG_ATOMIC_FADD:
	case RDS_CMSG_ATOMIC_CSWP:
	case RDS_CMSG_MASKED_ATOMIC_FADD:
	case RDS_CMSG_MASKED_ATOMIC_CSWP:
		return send_op(fd, t, row);
	case RDS_CMSG_RDMA_DEST:
		return send_dest(fd, &t->addr);
	case RDS_CMSG_RDMA_MAP:
		return send_map(fd, &t->addr);
	case XRDS_UEK_CMSG_ASYNC_SEND:
		return rds_send_cmsg(fd, &t->addr, row->number, &ask,
				     sizeof(ask));
	default:
		return rds_send_cmsg(fd, &t->addr, row->number, zero,
				     lengths[row->number]);
	}
}

/* Does a control message of this type come within the time? */
static bool comes(int fd, int type)
{
	char control[512] __aligned(8), data[64];
	struct iovec iov = { data, sizeof(data) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;

	if (!(poll_one(fd, POLLIN, tap_ms(WAIT_MS)) & POLLIN))
		return false;
	must(recvmsg(fd, &msg, MSG_DONTWAIT));
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_RDS && c->cmsg_type == type)
			return true;
	return false;
}

static bool status_comes(void)
{
	struct xrds_uek_asend ask = { .flags = XRDS_UEK_SEND_NOTIFY_ME };
	union addr to;
	int tx = rds_bound(NULL);

	rds_bound(&to);
	must(rds_send_cmsg(tx, &to, XRDS_UEK_CMSG_ASYNC_SEND, &ask,
			   sizeof(ask)));
	return comes(tx, RDS_CMSG_RDMA_STATUS);
}

static bool completion_comes(void)
{
	int tx = rds_bound(NULL);
	union addr to;

	rds_bound(&to);
	must(send_zcopy(tx, &to));
	return comes(tx, RDS_CMSG_ZCOPY_COMPLETION);
}

static bool update_comes(void)
{
	int tx = rds_bound(NULL), rx;
	union addr to;

	rx = small_receiver(&to);
	rds_set_int(tx, SOL_RDS, RDS_CONG_MONITOR, 1);
	congest(tx, &to);
	return drain_until(rx, tx, POLLIN) &&
	       comes(tx, RDS_CMSG_CONG_UPDATE);
}

/* With a message that is sent to a socket which has asked for it */
static bool message_has(int option, int type)
{
	struct rds_rx_trace_so trace = { .rx_traces = 1 };
	int tx = rds_bound(NULL), rx, on = 1;
	union addr to;

	rx = rds_bound(&to);
	if (option == SO_RDS_MSG_RXPATH_LATENCY)
		must(setsockopt(rx, SOL_RDS, option, &trace, sizeof(trace)));
	else if (option)
		must(setsockopt(rx, SOL_RDS, option, &on, sizeof(on)));
	if (type == RDS_CMSG_RDMA_DEST)
		must(send_dest(tx, &to));
	else
		must(rds_send(tx, "x", 1, 0, &to));
	return comes(rx, type);
}

static bool received(unsigned int type)
{
	switch (type) {
	case RDS_CMSG_RDMA_DEST:
		return message_has(0, type);
	case RDS_CMSG_RDMA_STATUS:
		return status_comes();
	case RDS_CMSG_CONG_UPDATE:
		return update_comes();
	case RDS_CMSG_RXPATH_LATENCY:
		return message_has(SO_RDS_MSG_RXPATH_LATENCY, type);
	case XRDS_UEK_CMSG_INQ:
		return message_has(XRDS_UEK_INQ, type);
	case RDS_CMSG_ZCOPY_COMPLETION:
		return completion_comes();
	default:
		return false;
	}
}

static void control(const struct row *row)
{
	struct target t;
	int fd = rds_bound(NULL);

	target_open(&t, PAGE_BYTES, RDS_RDMA_READWRITE);
	check_outcome(row->first, outcome(send_cmsg(fd, &t, row)));
	close(fd);
	target_close(&t);
	/* two share a number, and one of them is served */
	if (row->number == XRDS_UEK_CMSG_INQ && !strstr(row->name, "INQ"))
		return;
	check_outcome(row->second, received(row->number) ? "comes" : "never");
}

static void controls(void)
{
	each(CMSG, control);
}

/* ------------------------------------------------------------------- others */

static void call(const struct row *row)
{
	int fd = rds_bound(NULL);
	u8 tos = 3;

	check_outcome(row->first, outcome(ioctl(fd, row->number, &tos)));
	close(fd);
}

static void calls(void)
{
	each(IOCTL, call);
}

static void dump(const struct row *row)
{
	int fd = rds_bound(NULL), ret;
	struct dump d = { 0 };

	ret = dump_try(fd, row->number, &d);
	check_outcome(row->first, outcome(ret));
	if (!ret)
		dump_free(&d);
	close(fd);
}

static void dumps(void)
{
	each(DUMP, dump);
}

/* Writes the value that is there, if the file may be written. */
static int rewrite(const char *path)
{
	char text[32] = "";
	FILE *file = fopen(path, "re");
	int ret;

	if (!file)
		return -1;
	check(fgets(text, sizeof(text), file));
	fclose(file);
	file = fopen(path, "we");
	/* constants */
	if (!file)
		return errno == EACCES ? 0 : -1;
	ret = fputs(text, file) < 0 ? -1 : 0;
	return fclose(file) ? -1 : ret;
}

static void sysctl(const struct row *row)
{
	char path[128];
	char *p;
	int ret;

	snprintf(path, sizeof(path), "/proc/sys/net/rds/%s", row->name);
	for (p = path; *p; p++)
		if (*p == '.')
			*p = '/';
	ret = rewrite(path);
	if (!strcmp(row->first, "absent"))
		check_err(ret, ENOENT);
	else
		check_ret(ret, 0);
}

static void sysctls(void)
{
	/* the transport has its own when a socket was bound */
	close(rds_bound(NULL));
	each(SYSCTL, sysctl);
}

static void parameter(const struct row *row)
{
	static const char * const modules[] = { "xrds", "xrds_ib" };
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(modules); i++) {
		snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s",
			 modules[i], row->name);
		check_err(access(path, F_OK), ENOENT);
	}
	check(!strcmp(row->first, "ignored"));
}

static void parameters(void)
{
	each(PARAMETER, parameter);
}

static const struct tap_case cases[] = {
	{ "options", "socket options: as the table says", options, 0, 0 },
	{ "controls", "control messages", controls, 0, 60 },
	{ "calls", "ioctls", calls, 0, 0 },
	{ "dumps", "RDS_INFO_*", dumps, 0, 0 },
	{ "sysctls", "sysctls", sysctls, 0, 0 },
	{ "parameters", "module parameters", parameters, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
