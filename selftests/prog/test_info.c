// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDS_INFO_* dumps: the protocol, the rows, and the namespace that they are of.
 *
 * timeout: 120
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dump.h"
#include "sock.h"
#include "tap.h"

enum {
	POISON	= 0xa5,
	MSGS	= 5,		/* messages queued */
	LEN	= 700,		/* bytes of each */
	TOS	= 3,
};

static const struct {
	int what;
	size_t each;
} dumps[] = {
	{ RDS_INFO_COUNTERS, 40 },
	{ RDS_INFO_CONNECTIONS, 42 },
	{ RDS_INFO_SEND_MESSAGES, 26 },
	{ RDS_INFO_RETRANS_MESSAGES, 26 },
	{ RDS_INFO_RECV_MESSAGES, 26 },
	{ RDS_INFO_SOCKETS, 28 },
	{ RDS6_INFO_CONNECTIONS, 65 },
	{ RDS6_INFO_SEND_MESSAGES, 50 },
	{ RDS6_INFO_RETRANS_MESSAGES, 50 },
	{ RDS6_INFO_RECV_MESSAGES, 50 },
	{ RDS6_INFO_SOCKETS, 52 },
	/* without rows: there is no such transport */
	{ RDS_INFO_TCP_SOCKETS, 41 },
	{ RDS6_INFO_TCP_SOCKETS, 64 },
};

/* An address as dumps for both families have it */
static struct in6_addr mapped(const union addr *a)
{
	struct in6_addr all = { 0 };

	if (a->sa.sa_family == AF_INET6)
		return a->in6.sin6_addr;
	all.s6_addr[10] = 0xff;
	all.s6_addr[11] = 0xff;
	memcpy(&all.s6_addr[12], &a->in.sin_addr, 4);
	return all;
}

static bool is_v6(const union addr *a)
{
	return a->sa.sa_family == AF_INET6;
}

/* @row: struct in6_addr of a packed row */
static bool same(const void *row, const union addr *a)
{
	struct in6_addr all = mapped(a);

	return !memcmp(row, &all, sizeof(all));
}

/* --------------------------------------------------------------- protocol */

static void check_protocol(int fd, int what, size_t each)
{
	unsigned char *data, room[64];
	socklen_t len = 0, need;
	int ret;

	ret = getsockopt(fd, SOL_RDS, what, NULL, &len);
	if (!len) {
		check_ret(ret, each);
		len = sizeof(room);
		check_ret(getsockopt(fd, SOL_RDS, what, room, &len), each);
		check_eq(len, 0);
		return;
	}
	check(ret == -1 && errno == ENOSPC);
	check(!(len % each));
	need = len;
	data = malloc(need + each);
	memset(data, POISON, need + each);
	len = need - 1;
	check_err(getsockopt(fd, SOL_RDS, what, data, &len), ENOSPC);
	check_eq(len, need);
	len = need;
	check_ret(getsockopt(fd, SOL_RDS, what, data, &len), each);
	check_eq(len, need);
	memset(data, POISON, need + each);
	len = need + each;
	check_ret(getsockopt(fd, SOL_RDS, what, data, &len), each);
	check_eq(len, need);
	for (size_t i = need; i < need + each; i++)
		if (data[i] != POISON)
			tap_fail("byte %zu of %u was written", i, need);
	free(data);

	/* the size that the program gives for its buffer is not believed */
	len = INT_MAX - 65536;
	check_err(getsockopt(fd, SOL_RDS, what, NULL, &len), EFAULT);
}

static void protocol(void)
{
	union addr self;
	int fd = rds_bound(&self);
	socklen_t len = -1;
	char byte = 0;

	must(rds_send(fd, &byte, 1, 0, &self));
	check_eq(poll_one(fd, POLLIN, WAIT_MS), POLLIN);
	for (size_t i = 0; i < ARRAY_SIZE(dumps); i++) {
		tap_context("dump %d", dumps[i].what);
		check_protocol(fd, dumps[i].what, dumps[i].each);
		len = -1;
		check_err(getsockopt(fd, SOL_RDS, dumps[i].what, NULL, &len),
			  EINVAL);
		len = INT_MAX;
		check_err(getsockopt(fd, SOL_RDS, dumps[i].what, NULL, &len),
			  EINVAL);
		check_err(getsockopt(fd, SOL_RDS, dumps[i].what, NULL, NULL),
			  EFAULT);
		check_err(setsockopt(fd, SOL_RDS, dumps[i].what, &byte, 1),
			  ENOPROTOOPT);
	}
	close(fd);
}

static void unregistered(void)
{
	static const int none[] = {
		10002, 10009, RDS_INFO_IWARP_CONNECTIONS,
		/* without a transport that has any */
		RDS_INFO_IB_CONNECTIONS, RDS6_INFO_IB_CONNECTIONS,
	};
	char room[256];
	socklen_t len;
	int fd = rds_socket();

	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		tap_context("dump %d", none[i]);
		len = 0;
		check_err(getsockopt(fd, SOL_RDS, none[i], NULL, &len),
			  ENOPROTOOPT);
		len = sizeof(room);
		check_err(getsockopt(fd, SOL_RDS, none[i], room, &len),
			  ENOPROTOOPT);
		check_eq(len, sizeof(room));
	}
	close(fd);
}

/* ---------------------------------------------------------------- sockets */

static u64 inode(int fd)
{
	struct stat st;

	must(fstat(fd, &st));
	return st.st_ino;
}

static const struct rds6_info_socket *row6_of(const struct dump *d, int fd)
{
	const struct rds6_info_socket *row = d->rows;
	u64 inum = inode(fd);

	for (size_t i = 0; i < d->nr; i++)
		if (row[i].inum == inum)
			return &row[i];
	return NULL;
}

static const struct rds_info_socket *row4_of(const struct dump *d, int fd)
{
	const struct rds_info_socket *row = d->rows;
	u64 inum = inode(fd);

	for (size_t i = 0; i < d->nr; i++)
		if (row[i].inum == inum)
			return &row[i];
	return NULL;
}

static void sockets(void)
{
	static const struct in6_addr any;
	const struct rds6_info_socket *row6;
	const struct rds_info_socket *row4;
	int unbound = rds_socket(), bound, connected;
	union addr a, b, far = addr_of(tap_host, 777);
	struct dump d4, d6;

	bound = rds_bound(&a);
	connected = rds_bound(&b);
	rds_set_int(connected, SOL_SOCKET, SO_SNDBUF, 10000);
	rds_set_int(connected, SOL_SOCKET, SO_RCVBUF, 20000);
	must(connect(connected, &far.sa, addr_len(&far)));
	d4 = dump_read(unbound, RDS_INFO_SOCKETS, sizeof(*row4));
	d6 = dump_read(unbound, RDS6_INFO_SOCKETS, sizeof(*row6));

	check_eq(d6.nr, 3);
	row6 = row6_of(&d6, unbound);
	check(row6 && !row6->bound_port && !row6->connected_port &&
	      !memcmp(&row6->bound_addr, &any, sizeof(any)));
	row6 = row6_of(&d6, bound);
	check(row6 && same(&row6->bound_addr, &a) && !row6->connected_port &&
	      ntohs(row6->bound_port) == addr_port(&a) &&
	      !memcmp(&row6->connected_addr, &any, sizeof(any)));
	row6 = row6_of(&d6, connected);
	check(row6 && same(&row6->bound_addr, &b) &&
	      same(&row6->connected_addr, &far) &&
	      ntohs(row6->bound_port) == addr_port(&b) &&
	      ntohs(row6->connected_port) == 777 &&
	      row6->sndbuf == 10000 && row6->rcvbuf == 20000);

	check_eq(d4.nr, is_v6(&a) ? 0 : 2);
	check(!row4_of(&d4, unbound));
	row4 = row4_of(&d4, connected);
	if (!is_v6(&a))
		check(row4 && row4->bound_addr == b.in.sin_addr.s_addr &&
		      row4->connected_addr == far.in.sin_addr.s_addr &&
		      ntohs(row4->bound_port) == addr_port(&b) &&
		      ntohs(row4->connected_port) == 777 &&
		      row4->sndbuf == 10000 && row4->rcvbuf == 20000);
	dump_free(&d4);
	dump_free(&d6);

	/* dissolved, and closed */
	must(connect(connected, &(struct sockaddr){ .sa_family = AF_UNSPEC },
		     sizeof(struct sockaddr)));
	close(bound);
	d6 = dump_read(unbound, RDS6_INFO_SOCKETS, sizeof(*row6));
	check_eq(d6.nr, 2);
	row6 = row6_of(&d6, connected);
	check(row6 && !row6->connected_port &&
	      !memcmp(&row6->connected_addr, &any, sizeof(any)));
	dump_free(&d6);
	close(connected);
	close(unbound);
}

/* --------------------------------------------------------------- messages */

/* Rows of one dump in both forms: MSGS messages between here and there */
static void check_msgs(int fd, int what4, int what6, const union addr *here,
		       const union addr *there)
{
	const struct rds6_info_message *row6;
	const struct rds_info_message *row4;
	struct dump d;

	d = dump_read(fd, what6, sizeof(*row6));
	row6 = d.rows;
	check_eq(d.nr, MSGS);
	for (size_t i = 0; i < d.nr; i++)
		check(row6[i].seq == i + 1 && row6[i].len == LEN + i &&
		      same(&row6[i].laddr, here) &&
		      same(&row6[i].faddr, there) &&
		      ntohs(row6[i].lport) == addr_port(here) &&
		      ntohs(row6[i].fport) == addr_port(there) &&
		      !row6[i].flags && row6[i].tos == TOS);
	dump_free(&d);

	d = dump_read(fd, what4, sizeof(*row4));
	row4 = d.rows;
	check_eq(d.nr, is_v6(here) ? 0 : MSGS);
	for (size_t i = 0; i < d.nr; i++)
		check(row4[i].seq == i + 1 && row4[i].len == LEN + i &&
		      row4[i].laddr == here->in.sin_addr.s_addr &&
		      row4[i].faddr == there->in.sin_addr.s_addr &&
		      ntohs(row4[i].lport) == addr_port(here) &&
		      ntohs(row4[i].fport) == addr_port(there) &&
		      !row4[i].flags && row4[i].tos == TOS);
	dump_free(&d);
}

static bool all_under_way(void *arg)
{
	return dump_rows(*(int *)arg, RDS6_INFO_RETRANS_MESSAGES) == MSGS;
}

static bool all_came(void *arg)
{
	return dump_rows(*(int *)arg, RDS6_INFO_RECV_MESSAGES) == MSGS;
}

static void queue_msgs(int fd, const union addr *to)
{
	static char data[LEN + MSGS];
	rds_tos_t tos = TOS;

	must(ioctl(fd, SIOCRDSSETTOS, &tos));
	for (int i = 0; i < MSGS; i++)
		must(rds_send(fd, data, LEN + i, 0, to));
}

static void messages_out(void)
{
	union addr self, far = addr_of(tap_host, 4000);
	int fd = rds_bound(&self);

	stall_loop();
	queue_msgs(fd, &far);
	must_wait(all_under_way, &fd, WAIT_MS);
	check_msgs(fd, RDS_INFO_RETRANS_MESSAGES, RDS6_INFO_RETRANS_MESSAGES,
		   &self, &far);
	check_eq(dump_rows(fd, RDS6_INFO_SEND_MESSAGES), 0);
	check_eq(dump_rows(fd, RDS6_INFO_RECV_MESSAGES), 0);
	close(fd);
}

static void messages_in(void)
{
	union addr a, b;
	int fd = rds_bound(&a), to = rds_bound(&b);

	queue_msgs(fd, &b);
	must_wait(all_came, &fd, WAIT_MS);
	check_msgs(fd, RDS_INFO_RECV_MESSAGES, RDS6_INFO_RECV_MESSAGES, &b,
		   &a);
	/* the end of the stream is no message */
	close(fd);
	fd = rds_socket();
	check_eq(poll_one(to, POLLRDHUP, WAIT_MS), POLLRDHUP);
	check_eq(dump_rows(fd, RDS6_INFO_RECV_MESSAGES), MSGS);
	close(to);
	check_eq(dump_rows(fd, RDS6_INFO_RECV_MESSAGES), 0);
	close(fd);
}

/* ------------------------------------------------------------ connections */

static void connections(void)
{
	const struct rds6_info_connection *row6;
	const struct rds_info_connection *row4;
	union addr a, b;
	int fd = rds_bound(&a), to = rds_bound(&b);
	char data[LEN + MSGS];
	struct dump d;

	check_eq(dump_rows(fd, RDS6_INFO_CONNECTIONS), 0);
	queue_msgs(fd, &b);
	for (int i = 0; i < MSGS; i++)
		must(rds_recv_within(to, data, sizeof(data), WAIT_MS, NULL));
	d = dump_read(fd, RDS6_INFO_CONNECTIONS, sizeof(*row6));
	row6 = d.rows;
	check_eq(d.nr, 1);
	check(d.nr == 1 && row6->next_tx_seq == MSGS + 1 &&
	      row6->next_rx_seq == MSGS + 1 && same(&row6->laddr, &a) &&
	      same(&row6->faddr, &b) &&
	      row6->flags == RDS_INFO_CONNECTION_FLAG_CONNECTED &&
	      !memcmp(row6->transport, "loopback\0\0\0\0\0\0\0",
		      sizeof(row6->transport)));
	dump_free(&d);
	d = dump_read(fd, RDS_INFO_CONNECTIONS, sizeof(*row4));
	row4 = d.rows;
	check_eq(d.nr, is_v6(&a) ? 0 : 1);
	check(!d.nr ||
	      (row4->next_tx_seq == MSGS + 1 && row4->tos == TOS &&
	       row4->laddr == a.in.sin_addr.s_addr &&
	       row4->faddr == b.in.sin_addr.s_addr &&
	       row4->flags == RDS_INFO_CONNECTION_FLAG_CONNECTED));
	dump_free(&d);
	close(fd);
	close(to);
}

/* -------------------------------------------------------------- namespace */

static void other_namespace(void)
{
	union addr self;
	int fd = rds_bound(&self), other;
	char byte = 0;

	must(rds_send(fd, &byte, 1, 0, &self));
	check_eq(poll_one(fd, POLLIN, WAIT_MS), POLLIN);
	tap_new_netns();
	other = rds_socket();
	must(setuid(65534));
	for (size_t i = 1; i < ARRAY_SIZE(dumps); i++) {
		tap_context("dump %d", dumps[i].what);
		check_eq(dump_rows(other, dumps[i].what),
			 dumps[i].what == RDS6_INFO_SOCKETS);
	}
	/* the namespace is the socket's, not the caller's */
	check_eq(dump_rows(fd, RDS6_INFO_SOCKETS), 1);
	check_eq(dump_rows(fd, RDS6_INFO_RECV_MESSAGES), 1);
	close(fd);
	close(other);
}

/* -------------------------------------------------------------- into a file */

/* A dump that goes to mapped pages of a file is in the file afterwards. The row
 * lies across two pages that no access has brought in before.
 */
static void into_file(void)
{
	enum { EACH = sizeof(struct rds6_info_socket), BEFORE = EACH / 2 };
	int fd = rds_bound(NULL), file = must(open("/tmp", O_TMPFILE | O_RDWR,
						   0600));
	long page = sysconf(_SC_PAGESIZE);
	socklen_t len = EACH;
	struct dump d;
	char *mem, row[EACH];

	must(ftruncate(file, 2 * page));
	mem = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	check(mem != MAP_FAILED);
	check_ret(getsockopt(fd, SOL_RDS, RDS6_INFO_SOCKETS,
			     mem + page - BEFORE, &len), EACH);
	check_eq(len, EACH);
	must(munmap(mem, 2 * page));
	must(fsync(file));
	check_ret(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
	check_ret(pread(file, row, EACH, page - BEFORE), EACH);
	d = dump_read(fd, RDS6_INFO_SOCKETS, EACH);
	check_eq(d.nr, 1);
	check(!memcmp(row, d.rows, EACH));
	dump_free(&d);
	close(file);
	close(fd);
}

/* --------------------------------------------------------- while it changes */

static void growing(void)
{
	enum { SOCKS = 100, MET = 20 };
	long long until = tap_now_ms() + tap_ms(WAIT_MS);
	int fd, status, met = 0;
	pid_t child = must(fork());

	if (!child) {
		for (;;) {
			int fds[SOCKS];

			for (int j = 0; j < SOCKS; j++)
				fds[j] = rds_bound(NULL);
			for (int j = 0; j < SOCKS; j++)
				close(fds[j]);
		}
	}
	fd = rds_socket();
	while (met < MET && tap_now_ms() < until) {
		struct dump d = dump_read(fd, RDS6_INFO_SOCKETS,
					  sizeof(struct rds6_info_socket));
		const struct rds6_info_socket *row = d.rows;

		for (size_t j = 0; j < d.nr; j++)
			if (!row[j].sndbuf || !row[j].rcvbuf)
				tap_fail("row %zu of %zu is empty", j, d.nr);
		check_range(d.nr, 1, SOCKS + 1);
		met += d.nr > 1 && d.nr <= SOCKS;
		dump_free(&d);
	}
	tap_kill(child, &status);
	check(WIFSIGNALED(status));
	check_eq(met, MET);
	close(fd);
}

static const struct tap_case cases[] = {
	{ "protocol", "lengths, ENOSPC, and no byte too many", protocol,
	  TAP_EACH_FAMILY, 0 },
	{ "unregistered", "a dump that does not exist is ENOPROTOOPT",
	  unregistered, 0, 0 },
	{ "sockets", "unbound, bound and connected sockets", sockets,
	  TAP_EACH_FAMILY, 0 },
	{ "messages_out", "messages under way, with addresses", messages_out,
	  TAP_EACH_FAMILY, 0 },
	{ "messages_in", "messages not read, with addresses", messages_in,
	  TAP_EACH_FAMILY, 0 },
	{ "connections", "a connection, its numbers and state", connections,
	  TAP_EACH_FAMILY, 0 },
	{ "other_namespace", "a dump is of one namespace, without privilege",
	  other_namespace, 0, 0 },
	{ "into_file", "a dump into a file's pages is in the file", into_file,
	  0, 0 },
	{ "growing", "a table that changes: whole rows", growing, 0, 120 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
