// SPDX-License-Identifier: GPL-2.0-only
/*
 * Brings sockets into a state and prints every RDS_INFO_* dump of it, a line
 * for each row, with a name. It is run with mainline RDS and with XRDS, and the
 * lines are compared, so it prints nothing that may vary.
 *
 *   helper_print_dumps LOCAL4 LOCAL6 SILENT4 SILENT6
 *
 * LOCAL are addresses of an RDMA device of this node, SILENT ones in its
 * networks that nobody has.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "counters.h"
#include "dump.h"
#include "sock.h"
#include "tap.h"

enum { PORT = 4000, PEER = 5000, MAX_ROWS = 64, LINE = 400 };

static char lines[MAX_ROWS][LINE];
static int nr_lines;
static u64 inums[16];
static int nr_inums;

static void __printf(1, 2) row(const char *format, ...)
{
	va_list args;

	if (nr_lines == MAX_ROWS)
		tap_fail("too many rows");
	va_start(args, format);
	vsnprintf(lines[nr_lines++], LINE, format, args);
	va_end(args);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The order of rows is nobody's business. */
static void print_rows(const char *name)
{
	qsort(lines, nr_lines, LINE, by_text);
	for (int i = 0; i < nr_lines; i++)
		printf("%s_%d: %s\n", name, i, lines[i]);
	nr_lines = 0;
}

/* One of a few static buffers */
static const char *text4(const void *addr)
{
	static char buffers[4][INET_ADDRSTRLEN];
	static int next;

	next = (next + 1) % 4;
	inet_ntop(AF_INET, addr, buffers[next], INET_ADDRSTRLEN);
	return buffers[next];
}

static const char *text6(const void *addr)
{
	static char buffers[4][INET6_ADDRSTRLEN];
	static int next;

	next = (next + 1) % 4;
	inet_ntop(AF_INET6, addr, buffers[next], INET6_ADDRSTRLEN);
	return buffers[next];
}

/* Which of our sockets */
static int number(u64 inum)
{
	for (int i = 0; i < nr_inums; i++)
		if (inums[i] == inum)
			return i;
	return -1;
}

static void print_sockets(int fd)
{
	const struct rds6_info_socket *s6;
	const struct rds_info_socket *s;
	struct dump d;

	d = dump_read(fd, RDS_INFO_SOCKETS, sizeof(*s));
	s = d.rows;
	for (size_t i = 0; i < d.nr; i++, s++)
		row("socket %d %s %d to %s %d sndbuf %u rcvbuf %u",
		    number(s->inum), text4(&s->bound_addr),
		    ntohs(s->bound_port), text4(&s->connected_addr),
		    ntohs(s->connected_port), s->sndbuf, s->rcvbuf);
	print_rows("info_sockets");
	dump_free(&d);
	d = dump_read(fd, RDS6_INFO_SOCKETS, sizeof(*s6));
	s6 = d.rows;
	for (size_t i = 0; i < d.nr; i++, s6++)
		row("socket %d %s %d to %s %d sndbuf %u rcvbuf %u",
		    number(s6->inum), text6(&s6->bound_addr),
		    ntohs(s6->bound_port), text6(&s6->connected_addr),
		    ntohs(s6->connected_port), s6->sndbuf, s6->rcvbuf);
	print_rows("info6_sockets");
	dump_free(&d);
}

/* That it is trying comes and goes; that it is up does not. */
static void print_connections(int fd)
{
	const struct rds6_info_connection *c6;
	const struct rds_info_connection *c;
	struct dump d;

	d = dump_read(fd, RDS_INFO_CONNECTIONS, sizeof(*c));
	c = d.rows;
	for (size_t i = 0; i < d.nr; i++, c++)
		row("%s to %s %.16s tx %llu rx %llu up %d tos %d",
		    text4(&c->laddr), text4(&c->faddr), (char *)c->transport,
		    c->next_tx_seq, c->next_rx_seq,
		    !!(c->flags & RDS_INFO_CONNECTION_FLAG_CONNECTED), c->tos);
	print_rows("info_connections");
	dump_free(&d);
	d = dump_read(fd, RDS6_INFO_CONNECTIONS, sizeof(*c6));
	c6 = d.rows;
	for (size_t i = 0; i < d.nr; i++, c6++)
		row("%s to %s %.16s tx %llu rx %llu up %d",
		    text6(&c6->laddr), text6(&c6->faddr),
		    (char *)c6->transport, c6->next_tx_seq, c6->next_rx_seq,
		    !!(c6->flags & RDS_INFO_CONNECTION_FLAG_CONNECTED));
	print_rows("info6_connections");
	dump_free(&d);
}

static void print_messages(int fd, const char *name, int what)
{
	const struct rds_info_message *m;
	struct dump d = dump_read(fd, what, sizeof(*m));

	m = d.rows;
	for (size_t i = 0; i < d.nr; i++, m++)
		row("%s %d to %s %d seq %llu len %u flags %d tos %d",
		    text4(&m->laddr), ntohs(m->lport), text4(&m->faddr),
		    ntohs(m->fport), m->seq, m->len, m->flags, m->tos);
	print_rows(name);
	dump_free(&d);
}

static void print_messages6(int fd, const char *name, int what)
{
	const struct rds6_info_message *m;
	struct dump d = dump_read(fd, what, sizeof(*m));

	m = d.rows;
	for (size_t i = 0; i < d.nr; i++, m++)
		row("%s %d to %s %d seq %llu len %u flags %d tos %d",
		    text6(&m->laddr), ntohs(m->lport), text6(&m->faddr),
		    ntohs(m->fport), m->seq, m->len, m->flags, m->tos);
	print_rows(name);
	dump_free(&d);
}

static void print_rdma(int fd)
{
	const struct rds6_info_rdma_connection *c6;
	const struct rds_info_rdma_connection *c;
	struct dump d;

	d = dump_read(fd, RDS_INFO_IB_CONNECTIONS, sizeof(*c));
	c = d.rows;
	for (size_t i = 0; i < d.nr; i++, c++)
		row("%s to %s gids %s %s wr %u %u mr %u tos %d sl %d",
		    text4(&c->src_addr), text4(&c->dst_addr),
		    text6(c->src_gid), text6(c->dst_gid), c->max_send_wr,
		    c->max_recv_wr, c->rdma_mr_max, c->tos, c->sl);
	print_rows("info_rdma");
	dump_free(&d);
	d = dump_read(fd, RDS6_INFO_IB_CONNECTIONS, sizeof(*c6));
	c6 = d.rows;
	for (size_t i = 0; i < d.nr; i++, c6++)
		row("%s to %s gids %s %s wr %u %u mr %u tos %d sl %d",
		    text6(&c6->src_addr), text6(&c6->dst_addr),
		    text6(c6->src_gid), text6(c6->dst_gid), c6->max_send_wr,
		    c6->max_recv_wr, c6->rdma_mr_max, c6->tos, c6->sl);
	print_rows("info6_rdma");
	dump_free(&d);
}

static void print_counters(void)
{
	static const char * const names[] = {
		"send_queued", "recv_queued", "recv_delivered",
		"copy_from_user", "copy_to_user", "recv_drop_no_sock",
		"send_queue_full", "recv_ping", "send_pong",
	};
	struct counters c = counters_read();

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		printf("info_counter_%s: %lld\n", names[i],
		       counters_get(&c, names[i]));
	counters_free(&c);
}

static int sock_at(const char *host, int port)
{
	int fd = rds_bound_to(host, port, NULL);
	struct stat st;

	must(fstat(fd, &st));
	inums[nr_inums++] = st.st_ino;
	return fd;
}

static bool came(void *arg)
{
	struct dump d = dump_read(*(int *)arg, RDS6_INFO_RECV_MESSAGES,
				  sizeof(struct rds6_info_message));
	size_t nr = d.nr;

	dump_free(&d);
	return nr == 5;
}

static void send_to(int fd, const char *host, int port, size_t len)
{
	static char data[100000];
	union addr to = addr_of(host, port);

	must(rds_send(fd, data, len, 0, &to));
}

int main(int argc, char **argv)
{
	union addr a;
	char text[100];
	int fd, fd6, lo, lo6, sink;

	if (argc != 5)
		return 2;
	fd = sock_at(argv[1], PORT);
	fd6 = sock_at(argv[2], PORT);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, 200000);
	a = addr_of(argv[3], PEER);
	must(connect(sock_at(argv[1], PORT + 1), &a.sa, addr_len(&a)));
	a = addr_of(argv[4], PEER);
	must(connect(sock_at(argv[2], PORT + 1), &a.sa, addr_len(&a)));
	send_to(fd, argv[3], PEER, 10);
	send_to(fd, argv[3], PEER + 1, 2000);
	send_to(fd, argv[3], PEER, 100000);
	send_to(fd6, argv[4], PEER, 700);

	lo = sock_at("127.0.0.1", PORT);
	lo6 = sock_at("::1", PORT);
	sink = sock_at("127.0.0.1", PORT + 1);
	rds_set_int(sink, SOL_SOCKET, SO_RCVBUF, 50000);
	/* behind the others it would pass some: it has nothing before it */
	send_to(lo, "127.0.0.1", PORT, 0);
	for (int i = 0; i < 3; i++)
		send_to(lo, "127.0.0.1", PORT + 1, 100 + i);
	send_to(lo6, "::1", PORT, 64);
	must_wait(came, &fd, WAIT_MS);
	must(rds_recv_within(sink, text, sizeof(text), WAIT_MS, NULL));

	print_sockets(fd);
	print_connections(fd);
	print_messages(fd, "info_send", RDS_INFO_SEND_MESSAGES);
	print_messages(fd, "info_retrans", RDS_INFO_RETRANS_MESSAGES);
	print_messages(fd, "info_recv", RDS_INFO_RECV_MESSAGES);
	print_messages6(fd, "info6_send", RDS6_INFO_SEND_MESSAGES);
	print_messages6(fd, "info6_retrans", RDS6_INFO_RETRANS_MESSAGES);
	print_messages6(fd, "info6_recv", RDS6_INFO_RECV_MESSAGES);
	print_rdma(fd);
	print_counters();
	printf("end\n");
	return 0;
}
