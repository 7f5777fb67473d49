// SPDX-License-Identifier: GPL-2.0-only
/*
 * System calls on RDS sockets and their outcome: a line each with a name, the
 * value returned or the error, and everything else that the program sees. It is
 * run with mainline RDS and with XRDS, and the lines are compared; so it uses
 * nothing that only one of them has, and prints nothing that may vary.
 *
 *   helper_print_calls		on the loopback
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "sock.h"
#include "tap.h"

#define PORT	4000

static char name[128];
static char big[MSG_MAX_BYTES + 1];

static void __printf(1, 2) call(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	errno = 0;
}

static void tell(long long ret)
{
	if (ret < 0)
		printf("%s: %lld %s\n", name, ret, tap_errno_name(errno));
	else
		printf("%s: %lld\n", name, ret);
	fflush(stdout);
}

/* A call whose value is a descriptor, which says nothing */
static void tell_fd(int fd)
{
	tell(fd < 0 ? fd : 0);
	if (fd >= 0)
		close(fd);
}

static union addr lo(int port)
{
	return addr_of("127.0.0.1", port);
}

static int bound(int port)
{
	union addr a = lo(port);
	int fd = rds_socket();

	must(bind(fd, &a.sa, sizeof(a.in)));
	return fd;
}

/* ------------------------------------------------------ socket, bind, connect */

static void sockets(void)
{
	static const struct { const char *text; int type, protocol; } kinds[] = {
		{ "seqpacket", SOCK_SEQPACKET, 0 },
		{ "seqpacket_1", SOCK_SEQPACKET, 1 },
		{ "seqpacket_cloexec", SOCK_SEQPACKET | SOCK_CLOEXEC, 0 },
		{ "seqpacket_nonblock", SOCK_SEQPACKET | SOCK_NONBLOCK, 0 },
		{ "stream", SOCK_STREAM, 0 }, { "dgram", SOCK_DGRAM, 0 },
		{ "raw", SOCK_RAW, 0 }, { "rdm", SOCK_RDM, 0 },
		{ "packet", SOCK_PACKET, 0 }, { "negative", -1, 0 },
	};
	int fds[2];

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		call("socket_%s", kinds[i].text);
		tell_fd(socket(AF_RDS, kinds[i].type, kinds[i].protocol));
	}
	call("socketpair");
	tell(socketpair(AF_RDS, SOCK_SEQPACKET, 0, fds));
}

struct where {
	const char *text;
	const char *host;
	int port;
};

static const struct where places[] = {
	{ "any4", "0.0.0.0", PORT }, { "broadcast", "255.255.255.255", PORT },
	{ "multicast4", "224.0.0.1", PORT }, { "far4", "192.0.2.1", PORT },
	{ "lo4", "127.0.0.1", PORT }, { "lo4_other", "127.1.2.3", PORT },
	{ "port0", "127.0.0.1", 0 }, { "port1", "127.0.0.1", 1 },
	{ "port65535", "127.0.0.1", 65535 },
	{ "any6", "::", PORT }, { "multicast6", "ff02::1", PORT },
	{ "linklocal_noscope", "fe80::1", PORT }, { "far6", "2001:db8::1", PORT },
	{ "lo6", "::1", PORT }, { "mapped_lo", "::ffff:127.0.0.1", PORT },
	{ "mapped_any", "::ffff:0.0.0.0", PORT },
	{ "mapped_multicast", "::ffff:224.0.0.1", PORT },
};

/* Addresses that are none, by bind() and connect() */
static void bad_addresses(const char *what,
			  int (*try)(int, const struct sockaddr *, socklen_t))
{
	struct sockaddr_storage ss = { .ss_family = AF_INET };
	union addr a = lo(PORT);
	int fd = rds_socket();

	for (int len = 0; len < 16; len += 3) {
		call("%s_len%d", what, len);
		tell(try(fd, &a.sa, len));
	}
	call("%s_len_negative", what);
	tell(try(fd, &a.sa, -1));
	call("%s_len_huge", what);
	tell(try(fd, &a.sa, 129));
	call("%s_null", what);
	tell(try(fd, NULL, sizeof(a.in)));
	a = addr_of("::1", PORT);
	call("%s_v6_short", what);
	tell(try(fd, &a.sa, sizeof(a.in6) - 8));
	ss.ss_family = AF_UNIX;
	call("%s_unix", what);
	tell(try(fd, (struct sockaddr *)&ss, sizeof(ss)));
	ss.ss_family = AF_RDS;
	call("%s_rds", what);
	tell(try(fd, (struct sockaddr *)&ss, sizeof(ss)));
	ss.ss_family = AF_UNSPEC;
	call("%s_unspec", what);
	tell(try(fd, (struct sockaddr *)&ss, sizeof(ss)));
	close(fd);
}

static void binds(void)
{
	union addr a, b = lo(PORT + 1);
	int fd, other;

	bad_addresses("bind", bind);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		a = addr_of(places[i].host, places[i].port);
		fd = rds_socket();
		call("bind_%s", places[i].text);
		tell(bind(fd, &a.sa, addr_len(&a)));
		close(fd);
	}
	fd = bound(PORT);
	call("bind_again");
	tell(bind(fd, &b.sa, sizeof(b.in)));
	a = lo(PORT);
	other = rds_socket();
	call("bind_taken");
	tell(bind(other, &a.sa, sizeof(a.in)));
	call("bind_after_taken");
	tell(bind(other, &b.sa, sizeof(b.in)));
	close(other);
	other = rds_socket();
	rds_set_int(other, SOL_SOCKET, SO_REUSEADDR, 1);
	call("bind_taken_reuseaddr");
	tell(bind(other, &a.sa, sizeof(a.in)));
	a = addr_of("127.0.0.2", PORT);
	call("bind_taken_other_address");
	tell(bind(other, &a.sa, sizeof(a.in)));
	close(other);
	close(fd);
	fd = rds_socket();
	a = lo(PORT);
	call("bind_given_up");
	tell(bind(fd, &a.sa, sizeof(a.in)));
	close(fd);
}

static void tell_name(int ret, const union addr *a, socklen_t len)
{
	if (ret)
		tell(ret);
	else
		printf("%s: family %d length %d port %d\n", name,
		       a->sa.sa_family, len,
		       a->sa.sa_family ? addr_port(a) : 0);
}

static void names_of(const char *what, int fd)
{
	socklen_t len = sizeof(union addr);
	union addr a = { 0 };
	int ret;

	call("getsockname_%s", what);
	ret = getsockname(fd, &a.sa, &len);
	tell_name(ret, &a, len);
	memset(&a, 0, sizeof(a));
	len = sizeof(a);
	call("getpeername_%s", what);
	ret = getpeername(fd, &a.sa, &len);
	tell_name(ret, &a, len);
}

static void connects(void)
{
	union addr a = lo(PORT);
	socklen_t len;
	int fd;

	bad_addresses("connect", connect);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		a = addr_of(places[i].host, places[i].port);
		fd = rds_socket();
		call("connect_%s", places[i].text);
		tell(connect(fd, &a.sa, addr_len(&a)));
		close(fd);
	}
	fd = rds_socket();
	names_of("unbound", fd);
	a = addr_of("127.0.0.1", PORT + 1);
	must(connect(fd, &a.sa, sizeof(a.in)));
	names_of("connected", fd);
	call("connect_again");
	tell(connect(fd, &a.sa, sizeof(a.in)));
	a = lo(PORT);
	must(bind(fd, &a.sa, sizeof(a.in)));
	names_of("both", fd);
	a = addr_of("::1", PORT);
	call("connect_other_family");
	tell(connect(fd, &a.sa, sizeof(a.in6)));
	names_of("mixed", fd);
	len = -1;
	call("getsockname_len_negative");
	tell(getsockname(fd, &a.sa, &len));
	len = 4;
	call("getsockname_len4");
	tell(getsockname(fd, &a.sa, &len));
	call("getsockname_null");
	tell(getsockname(fd, NULL, &len));
	close(fd);
}

/* ------------------------------------------------------ calls not for RDS */

static void others(void)
{
	char text[8] = "";
	int fd = rds_socket(), ret;

	for (int i = 0; i < 2; i++) {
		const char *what = i ? "bound" : "unbound";

		if (i) {
			close(fd);
			fd = bound(PORT);
		}
		call("listen_%s", what);
		tell(listen(fd, 1));
		call("accept_%s", what);
		tell_fd(accept(fd, NULL, NULL));
		for (int how = -1; how < 4; how++) {
			int sock = i ? bound(PORT + 2) : rds_socket();

			call("shutdown_%s_%d", what, how);
			tell(shutdown(sock, how));
			close(sock);
		}
	}
	call("mmap");
	tell(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ?
	     -1 : 0);
	call("lseek");
	tell(lseek(fd, 0, SEEK_SET));
	call("pread");
	tell(pread(fd, text, 1, 0));
	call("ftruncate");
	tell(ftruncate(fd, 0));
	call("fsync");
	tell(fsync(fd));
	call("fcntl_getfl");
	tell(fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK));
	call("fcntl_nonblock");
	tell(fcntl(fd, F_SETFL, O_NONBLOCK));
	call("read_nonblock");
	tell(read(fd, text, 1));
	call("dup_close");
	ret = dup(fd);
	tell(close(ret));
	call("close");
	tell(close(fd));
	call("close_again");
	tell(close(fd));
}

static void ioctls(void)
{
	static const struct { const char *text; unsigned long cmd; } cmds[] = {
		{ "gettos", SIOCRDSGETTOS }, { "settos", SIOCRDSSETTOS },
		{ "fionread", FIONREAD }, { "outq", SIOCOUTQ },
		{ "atmark", SIOCATMARK }, { "private2", SIOCPROTOPRIVATE + 2 },
		{ "private15", SIOCPROTOPRIVATE + 15 }, { "zero", 0 },
		{ "gstamp", SIOCGSTAMP }, { "gstampns", SIOCGSTAMPNS },
		{ "gpgrp", SIOCGPGRP }, { "tcgets", 0x5401 },
	};
	char data[256];

	for (size_t i = 0; i < ARRAY_SIZE(cmds); i++) {
		int fd = rds_socket();

		memset(data, 0, sizeof(data));
		call("ioctl_%s_unbound", cmds[i].text);
		tell(ioctl(fd, cmds[i].cmd, data));
		close(fd);
		fd = bound(PORT);
		call("ioctl_%s_bound", cmds[i].text);
		tell(ioctl(fd, cmds[i].cmd, data));
		call("ioctl_%s_null", cmds[i].text);
		tell(ioctl(fd, cmds[i].cmd, NULL));
		close(fd);
	}
}

/* ---------------------------------------------------------------- options */

static void set_options(const char *what, int fd)
{
	static const struct { const char *text; int option; } options[] = {
		{ "zero", 0 }, { "cancel", RDS_CANCEL_SENT_TO },
		{ "free_mr", RDS_FREE_MR }, { "barrier", 4 },
		{ "recverr", RDS_RECVERR }, { "monitor", RDS_CONG_MONITOR },
		{ "thirteen", 13 },
		{ "latency", SO_RDS_MSG_RXPATH_LATENCY },
		{ "stamp_old", 29 }, { "stamp_new", 63 },
		{ "counters", RDS_INFO_COUNTERS }, { "minus1", -1 },
	};
	static const int lens[] = { 0, 1, 4, 8, 15 };
	char data[64] = "";

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(lens); j++) {
			call("set_%s_%s_%d", what, options[i].text, lens[j]);
			tell(setsockopt(fd, SOL_RDS, options[i].option, data,
					lens[j]));
		}
		call("set_%s_%s_null", what, options[i].text);
		tell(setsockopt(fd, SOL_RDS, options[i].option, NULL, 4));
		call("set_%s_%s_negative", what, options[i].text);
		tell(setsockopt(fd, SOL_RDS, options[i].option, data, -1));
	}
	call("set_%s_level", what);
	tell(setsockopt(fd, SOL_RDS + 1, RDS_RECVERR, data, 4));
	call("set_%s_level_ip", what);
	tell(setsockopt(fd, SOL_IP, 1, data, 4));
}

static void get_options(const char *what, int fd)
{
	static const struct { const char *text; int option; } options[] = {
		{ "zero", 0 }, { "cancel", RDS_CANCEL_SENT_TO },
		{ "get_mr", RDS_GET_MR }, { "barrier", 4 },
		{ "recverr", RDS_RECVERR }, { "monitor", RDS_CONG_MONITOR },
		{ "transport", SO_RDS_TRANSPORT }, { "nine", 9 },
		{ "latency", SO_RDS_MSG_RXPATH_LATENCY }, { "stamp", 29 },
		{ "flows", 10002 }, { "tcp_sockets", RDS_INFO_TCP_SOCKETS },
		{ "stats", 10009 }, { "iwarp", RDS_INFO_IWARP_CONNECTIONS },
		{ "before_info", 9999 }, { "after_info", 10018 },
		{ "minus1", -1 },
	};
	static const int lens[] = { -1, 0, 3, 4, 8 };
	char data[64] = "";
	socklen_t len;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(lens); j++) {
			len = lens[j];
			call("get_%s_%s_%d", what, options[i].text, lens[j]);
			tell(getsockopt(fd, SOL_RDS, options[i].option, data,
					&len));
		}
	}
	len = 4;
	call("get_%s_recverr_null", what);
	tell(getsockopt(fd, SOL_RDS, RDS_RECVERR, NULL, &len));
	call("get_%s_recverr_nolen", what);
	tell(getsockopt(fd, SOL_RDS, RDS_RECVERR, data, NULL));
	call("get_%s_level", what);
	tell(getsockopt(fd, SOL_RDS + 1, RDS_RECVERR, data, &len));
}

static void get_value(const char *what, int fd, int level, int option)
{
	int value = 0x55555555, ret;
	socklen_t len = sizeof(value);

	call("value_%s", what);
	ret = getsockopt(fd, level, option, &value, &len);
	if (ret)
		tell(ret);
	else
		printf("%s: %d length %d\n", name, value, len);
}

static void transports(void)
{
	static const int types[] = { -1, 0, 1, 3, 7 };
	union addr a = lo(PORT);
	int fd = rds_socket();

	get_value("transport_unbound", fd, SOL_RDS, SO_RDS_TRANSPORT);
	for (int len = 0; len < 9; len += 8) {
		call("transport_len%d", len);
		tell(setsockopt(fd, SOL_RDS, SO_RDS_TRANSPORT, &a, len));
	}
	call("transport_null");
	tell(setsockopt(fd, SOL_RDS, SO_RDS_TRANSPORT, NULL, 4));
	close(fd);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		fd = rds_socket();
		call("transport_%d", types[i]);
		tell(setsockopt(fd, SOL_RDS, SO_RDS_TRANSPORT, &types[i], 4));
		call("transport_%d_again", types[i]);
		tell(setsockopt(fd, SOL_RDS, SO_RDS_TRANSPORT, &types[i], 4));
		close(fd);
	}
	fd = rds_socket();
	rds_set_int(fd, SOL_RDS, SO_RDS_TRANSPORT, RDS_TRANS_IB);
	get_value("transport_ib", fd, SOL_RDS, SO_RDS_TRANSPORT);
	call("ioctl_settos_transport");
	tell(ioctl(fd, SIOCRDSSETTOS, &(rds_tos_t){ 3 }));
	call("transport_ib_bind_lo");
	tell(bind(fd, &a.sa, sizeof(a.in)));
	get_value("transport_ib_after", fd, SOL_RDS, SO_RDS_TRANSPORT);
	close(fd);
	fd = bound(PORT);
	get_value("transport_lo", fd, SOL_RDS, SO_RDS_TRANSPORT);
	call("transport_bound");
	tell(setsockopt(fd, SOL_RDS, SO_RDS_TRANSPORT, &types[1], 4));
	close(fd);
}

static void trace_option(const char *what, int fd, int n, int a, int b, int c)
{
	struct rds_rx_trace_so so = { n, { a, b, c } };

	call("latency_%s", what);
	tell(setsockopt(fd, SOL_RDS, SO_RDS_MSG_RXPATH_LATENCY, &so,
			sizeof(so)));
}

static void options(void)
{
	int fd = rds_socket();

	set_options("unbound", fd);
	get_options("unbound", fd);
	close(fd);
	fd = bound(PORT);
	set_options("bound", fd);
	get_options("bound", fd);
	get_value("type", fd, SOL_SOCKET, SO_TYPE);
	get_value("domain", fd, SOL_SOCKET, SO_DOMAIN);
	get_value("protocol", fd, SOL_SOCKET, SO_PROTOCOL);
	get_value("error", fd, SOL_SOCKET, SO_ERROR);
	get_value("acceptconn", fd, SOL_SOCKET, SO_ACCEPTCONN);
	get_value("sndbuf", fd, SOL_SOCKET, SO_SNDBUF);
	get_value("rcvbuf", fd, SOL_SOCKET, SO_RCVBUF);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, 100000);
	get_value("sndbuf_set", fd, SOL_SOCKET, SO_SNDBUF);
	get_value("recverr", fd, SOL_RDS, RDS_RECVERR);
	rds_set_int(fd, SOL_RDS, RDS_RECVERR, 17);
	get_value("recverr_set", fd, SOL_RDS, RDS_RECVERR);
	trace_option("0", fd, 0, 0, 0, 0);
	trace_option("1", fd, 1, 2, 9, 9);
	trace_option("3", fd, 3, 0, 1, 2);
	trace_option("4", fd, 4, 0, 1, 2);
	trace_option("bad_pos", fd, 2, 0, 3, 0);
	close(fd);
	transports();
}

/* ------------------------------------------------------------------- send */

static ssize_t to_lo(int fd, const void *data, size_t len, int flags)
{
	union addr a = lo(PORT);

	return sendto(fd, data, len, flags, &a.sa, sizeof(a.in));
}

static void send_flags(int fd)
{
	static const struct { const char *text; int flag; } flags[] = {
		{ "oob", MSG_OOB }, { "peek", MSG_PEEK },
		{ "dontroute", MSG_DONTROUTE }, { "ctrunc", MSG_CTRUNC },
		{ "trunc", MSG_TRUNC }, { "dontwait", MSG_DONTWAIT },
		{ "eor", MSG_EOR }, { "waitall", MSG_WAITALL },
		{ "confirm", MSG_CONFIRM }, { "errqueue", MSG_ERRQUEUE },
		{ "nosignal", MSG_NOSIGNAL }, { "more", MSG_MORE },
		{ "zerocopy", MSG_ZEROCOPY }, { "fastopen", MSG_FASTOPEN },
		{ "proxy", MSG_PROXY }, { "fin", MSG_FIN }, { "syn", MSG_SYN },
	};

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		call("send_%s", flags[i].text);
		tell(to_lo(fd, "x", 1, flags[i].flag));
	}
}

/* Reads what has come; has all that @fd sent come? */
static bool drained(void *fd)
{
	bool sent = !rds_outq(*(int *)fd);

	while (poll_one(*(int *)fd, POLLIN, 0) & POLLIN &&
	       recv(*(int *)fd, big, sizeof(big), MSG_DONTWAIT) >= 0)
		;
	return sent;
}

/* Nothing may come later: one that fills the socket would stop the next send. */
static void drain(int fd)
{
	must_wait(drained, &fd, WAIT_MS);
}

/* Of the faults of a call that has several, which is told? */
static void send_too_long(void)
{
	int fd = rds_socket();
	union addr a;

	call("send_unbound_1m_and_1");
	tell(to_lo(fd, big, sizeof(big), 0));
	close(fd);
	fd = bound(PORT + 5);
	call("send_nowhere_1m_and_1");
	tell(send(fd, big, sizeof(big), 0));
	a = addr_of("0.0.0.0", PORT);
	call("send_to_any4_1m_and_1");
	tell(sendto(fd, big, sizeof(big), 0, &a.sa, addr_len(&a)));
	close(fd);
	fd = rds_bound_to("::1", PORT, NULL);
	call("send6_to_lo4_1m_and_1");
	tell(to_lo(fd, big, sizeof(big), 0));
	close(fd);
}

static void send_where(void)
{
	union addr a;
	int fd = rds_socket();

	call("send_unbound");
	tell(to_lo(fd, "x", 1, 0));
	call("send_unbound_nowhere");
	tell(send(fd, "x", 1, 0));
	close(fd);
	fd = bound(PORT + 5);
	call("send_nowhere");
	tell(send(fd, "x", 1, 0));
	call("write_nowhere");
	tell(write(fd, "x", 1));
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (!strncmp(places[i].text, "far", 3) ||
		    !strcmp(places[i].text, "port0"))
			continue;
		a = addr_of(places[i].host, places[i].port);
		call("send_to_%s", places[i].text);
		tell(sendto(fd, "x", 1, 0, &a.sa, addr_len(&a)));
	}
	a = lo(PORT);
	for (int len = 0; len < 16; len += 5) {
		call("send_addr_len%d", len);
		tell(sendto(fd, "x", 1, 0, &a.sa, len));
	}
	call("send_addr_long");
	tell(sendto(fd, "x", 1, 0, &a.sa, sizeof(a)));
	a.sa.sa_family = AF_UNIX;
	call("send_addr_unix");
	tell(sendto(fd, "x", 1, 0, &a.sa, sizeof(a.in)));
	a.sa.sa_family = AF_UNSPEC;
	call("send_addr_unspec");
	tell(sendto(fd, "x", 1, 0, &a.sa, sizeof(a.in)));
	a = lo(PORT);
	must(connect(fd, &a.sa, sizeof(a.in)));
	call("send_connected");
	tell(send(fd, "x", 1, 0));
	call("write_connected");
	tell(write(fd, "x", 1));
	must_wait(rds_all_acked, &fd, WAIT_MS);
	close(fd);
	fd = rds_bound_to("::1", PORT, NULL);
	call("send6_to_lo4");
	tell(to_lo(fd, "x", 1, 0));
	close(fd);
}

static void sends(void)
{
	struct mmsghdr two[2] = { 0 };
	struct iovec iov = { big, 10 };
	union addr a = lo(PORT);
	int fd = bound(PORT);

	send_flags(fd);
	send_where();
	send_too_long();
	drain(fd);
	call("send_empty");
	tell(to_lo(fd, NULL, 0, 0));
	call("send_fault");
	tell(to_lo(fd, (void *)8, 10, 0));
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUFFORCE, 4 << 20);
	call("send_1m");
	tell(to_lo(fd, big, MSG_MAX_BYTES, 0));
	call("send_1m_and_1");
	tell(to_lo(fd, big, MSG_MAX_BYTES + 1, 0));
	call("send_huge");
	tell(to_lo(fd, big, 1 << 30, 0));
	drain(fd);
	for (int i = 0; i < 2; i++) {
		two[i].msg_hdr.msg_name = &a;
		two[i].msg_hdr.msg_namelen = sizeof(a.in);
		two[i].msg_hdr.msg_iov = &iov;
		two[i].msg_hdr.msg_iovlen = 1;
	}
	call("sendmmsg");
	tell(sendmmsg(fd, two, 2, 0));
	a.in.sin_addr.s_addr = 0;
	call("sendmmsg_bad");
	tell(sendmmsg(fd, two, 2, 0));
	drain(fd);
	a = lo(PORT);
	rds_set_int(fd, SOL_SOCKET, SO_SNDBUF, 4000);
	call("send_above_sndbuf");
	tell(to_lo(fd, big, 4001, MSG_DONTWAIT));
	drain(fd);
	close(fd);
}

/* ---------------------------------------------------------- control messages */

struct ctl {
	int level, type;
	size_t len;		/* of the data */
	int add;		/* to cmsg_len */
};

/* The data of one */
struct ctl_data {
	char bytes[128];
};

static ssize_t send_ctl(int fd, const struct ctl *ctl, size_t nr,
			const struct ctl_data *data)
{
	char control[512] __aligned(8) = "";
	struct iovec iov = { "x", 1 };
	union addr a = lo(PORT);
	struct msghdr msg = {
		.msg_name = &a, .msg_namelen = sizeof(a.in),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	size_t used = 0;

	for (size_t i = 0; i < nr; i++) {
		cmsg = (struct cmsghdr *)(control + used);
		cmsg->cmsg_level = ctl[i].level;
		cmsg->cmsg_type = ctl[i].type;
		cmsg->cmsg_len = CMSG_LEN(ctl[i].len) + ctl[i].add;
		memcpy(CMSG_DATA(cmsg), data[i].bytes, ctl[i].len);
		used += CMSG_SPACE(ctl[i].len);
	}
	msg.msg_controllen = used;
	return sendmsg(fd, &msg, 0);
}

/* An op and a cookie in one call, neither of which has a fault of its own */
static void pairs(int fd)
{
	static char memory[4096] __aligned(4096);
	u64 cookie;
	struct rds_iovec vec = { (uintptr_t)memory, 8 };
	struct rds_rdma_args rdma = {
		.cookie = 1, .remote_vec = { 0, 8 }, .nr_local = 1,
		.local_vec_addr = (uintptr_t)&vec,
	};
	struct rds_atomic_args fadd = {
		.cookie = 1, .local_addr = (uintptr_t)memory,
	};
	struct rds_get_mr_args map = {
		.vec = { (uintptr_t)memory, sizeof(memory) },
		.cookie_addr = (uintptr_t)&cookie,
	};
	static const struct ctl ctl[] = {
		{ SOL_RDS, RDS_CMSG_RDMA_ARGS, sizeof(rdma), 0 },
		{ SOL_RDS, RDS_CMSG_RDMA_MAP, sizeof(map), 0 },
		{ SOL_RDS, RDS_CMSG_ATOMIC_FADD, sizeof(fadd), 0 },
	};
	struct ctl_data data[3] = { { "" } };

	memcpy(data[0].bytes, &rdma, sizeof(rdma));
	memcpy(data[1].bytes, &map, sizeof(map));
	memcpy(data[2].bytes, &fadd, sizeof(fadd));
	call("cmsg_args_map");
	tell(send_ctl(fd, ctl, 2, data));
	call("cmsg_map_fadd");
	tell(send_ctl(fd, ctl + 1, 2, data + 1));
}

static void cmsgs(void)
{
	static const struct { const char *text; struct ctl ctl; } one[] = {
		{ "type0", { SOL_RDS, 0, 8, 0 } },
		{ "type10", { SOL_RDS, 10, 8, 0 } },
		{ "type99", { SOL_RDS, 99, 8, 0 } },
		{ "status", { SOL_RDS, RDS_CMSG_RDMA_STATUS, 16, 0 } },
		{ "cong", { SOL_RDS, RDS_CMSG_CONG_UPDATE, 8, 0 } },
		{ "latency", { SOL_RDS, RDS_CMSG_RXPATH_LATENCY, 32, 0 } },
		{ "zcopy", { SOL_RDS, RDS_CMSG_ZCOPY_COOKIE, 4, 0 } },
		{ "zcopy_done", { SOL_RDS, RDS_CMSG_ZCOPY_COMPLETION, 36, 0 } },
		{ "dest", { SOL_RDS, RDS_CMSG_RDMA_DEST, 8, 0 } },
		{ "dest_short", { SOL_RDS, RDS_CMSG_RDMA_DEST, 4, 0 } },
		{ "dest_long", { SOL_RDS, RDS_CMSG_RDMA_DEST, 16, 0 } },
		{ "map_short", { SOL_RDS, RDS_CMSG_RDMA_MAP, 8, 0 } },
		{ "args_short", { SOL_RDS, RDS_CMSG_RDMA_ARGS, 8, 0 } },
		{ "args_zero", { SOL_RDS, RDS_CMSG_RDMA_ARGS, 56, 0 } },
		{ "fadd_short", { SOL_RDS, RDS_CMSG_ATOMIC_FADD, 8, 0 } },
		{ "other_level", { SOL_IP, 99, 8, 0 } },
		{ "rights", { SOL_SOCKET, SCM_CREDENTIALS, 12, 0 } },
		{ "len_short", { SOL_RDS, RDS_CMSG_RDMA_DEST, 8, -9 } },
		{ "len_long", { SOL_RDS, RDS_CMSG_RDMA_DEST, 8, 100 } },
	};
	static const struct ctl both[] = {
		{ SOL_RDS, RDS_CMSG_RDMA_DEST, 8, 0 },
		{ SOL_RDS, RDS_CMSG_RDMA_ARGS, 56, 0 },
	};
	static const struct ctl twice[] = {
		{ SOL_RDS, RDS_CMSG_RDMA_DEST, 8, 0 },
		{ SOL_RDS, RDS_CMSG_RDMA_DEST, 8, 0 },
	};
	struct ctl_data data[2] = { { "" } };
	int fd = bound(PORT);

	for (size_t i = 0; i < ARRAY_SIZE(one); i++) {
		call("cmsg_%s", one[i].text);
		tell(send_ctl(fd, &one[i].ctl, 1, data));
	}
	call("cmsg_dest_args");
	tell(send_ctl(fd, both, 2, data));
	call("cmsg_dest_twice");
	tell(send_ctl(fd, twice, 2, data));
	pairs(fd);
	drain(fd);
	close(fd);
}

static void regions(void)
{
	struct rds_get_mr_for_dest_args dest = { 0 };
	struct rds_free_mr_args gone = { .cookie = 12345 };
	static char memory[4096] __aligned(4096);
	struct rds_get_mr_args args = { 0 };
	u64 cookie = 0;
	int fd = rds_socket();

	args.vec.addr = (unsigned long)memory;
	args.vec.bytes = sizeof(memory);
	args.cookie_addr = (unsigned long)&cookie;
	dest.vec = args.vec;
	dest.cookie_addr = args.cookie_addr;
	for (int i = 0; i < 2; i++) {
		const char *what = i ? "bound" : "unbound";

		call("get_mr_%s_short", what);
		tell(setsockopt(fd, SOL_RDS, RDS_GET_MR, &args, 8));
		call("get_mr_%s", what);
		tell(setsockopt(fd, SOL_RDS, RDS_GET_MR, &args, sizeof(args)));
		call("get_mr_for_dest_%s_short", what);
		tell(setsockopt(fd, SOL_RDS, RDS_GET_MR_FOR_DEST, &dest, 8));
		call("get_mr_for_dest_%s", what);
		tell(setsockopt(fd, SOL_RDS, RDS_GET_MR_FOR_DEST, &dest,
				sizeof(dest)));
		call("free_mr_%s_unknown", what);
		tell(setsockopt(fd, SOL_RDS, RDS_FREE_MR, &gone, sizeof(gone)));
		close(fd);
		fd = bound(PORT);
	}
	close(fd);
}

/* ---------------------------------------------------------------- receive */

struct take {
	int flags;
	size_t len;
	size_t control;
	bool named;
};

/* Receives, and prints all that came with it but the data */
static void take(int fd, const struct take *t)
{
	char control[256] __aligned(8) = "";
	struct iovec iov = { big, t->len };
	union addr from = { 0 };
	struct msghdr msg = {
		.msg_name = t->named ? &from : NULL,
		.msg_namelen = t->named ? sizeof(from) : 0,
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = t->control ? control : NULL,
		.msg_controllen = t->control,
	};
	ssize_t ret = recvmsg(fd, &msg, t->flags);
	struct cmsghdr *cmsg;

	if (ret < 0) {
		tell(ret);
		return;
	}
	printf("%s: %zd flags %#x", name, ret, msg.msg_flags);
	if (t->named)
		printf(" name %d", msg.msg_namelen);
	for (cmsg = CMSG_FIRSTHDR(&msg); cmsg; cmsg = CMSG_NXTHDR(&msg, cmsg))
		printf(" cmsg %d/%d/%zu", cmsg->cmsg_level, cmsg->cmsg_type,
		       (size_t)cmsg->cmsg_len);
	printf("\n");
	fflush(stdout);
}

static void takes(int fd, const char *what, int flags, size_t len,
		  size_t control, bool named)
{
	const struct take t = { flags, len, control, named };

	call("recv_%s", what);
	take(fd, &t);
}

/* A message of 10 bytes that has come */
static void come(int fd)
{
	must(to_lo(fd, big, 10, 0));
	if (!(poll_one(fd, POLLIN, WAIT_MS) & POLLIN))
		tap_fail("nothing came");
}

static void recv_empty(void)
{
	int fd = rds_socket();

	takes(fd, "unbound", MSG_DONTWAIT, 10, 0, false);
	close(fd);
	fd = bound(PORT);
	takes(fd, "none", MSG_DONTWAIT, 10, 0, false);
	takes(fd, "none_oob", MSG_DONTWAIT | MSG_OOB, 10, 0, false);
	takes(fd, "none_peek", MSG_DONTWAIT | MSG_PEEK, 10, 0, false);
	takes(fd, "none_errqueue", MSG_DONTWAIT | MSG_ERRQUEUE, 10, 0, false);
	rds_timeout(fd, SO_RCVTIMEO, 50);
	takes(fd, "none_timeout", 0, 10, 0, false);
	close(fd);
}

static void recv_some(void)
{
	static const struct { const char *text; int flags; } flags[] = {
		{ "plain", 0 }, { "trunc", MSG_TRUNC }, { "peek", MSG_PEEK },
		{ "peek_trunc", MSG_PEEK | MSG_TRUNC },
		{ "dontwait", MSG_DONTWAIT }, { "waitall", MSG_WAITALL },
		{ "oob", MSG_OOB }, { "cloexec", MSG_CMSG_CLOEXEC },
		{ "errqueue", MSG_ERRQUEUE | MSG_DONTWAIT },
		{ "nosignal", MSG_NOSIGNAL }, { "dontroute", MSG_DONTROUTE },
	};
	static const int lens[] = { 0, 4, 10, 100 };
	char text[32];
	int fd = bound(PORT);

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(lens); j++) {
			snprintf(text, sizeof(text), "%s_%d", flags[i].text,
				 lens[j]);
			come(fd);
			takes(fd, text, flags[i].flags, lens[j], 64, true);
			drain(fd);
		}
	}
	come(fd);
	call("recv_fault");
	tell(recv(fd, (void *)8, 10, 0));
	call("recv_after_fault");
	tell(recv(fd, big, 10, MSG_DONTWAIT));
	come(fd);
	call("read");
	tell(read(fd, big, 4));
	call("read_rest");
	tell(recv(fd, big, 10, MSG_DONTWAIT));
	must(to_lo(fd, NULL, 0, 0));
	poll_one(fd, POLLIN, WAIT_MS);
	takes(fd, "empty_message", 0, 10, 0, true);
	close(fd);
}

static void recv_with(void)
{
	static const size_t rooms[] = { 0, 8, 16, 24, 128 };
	struct rds_rx_trace_so so = { 3, { 0, 1, 2 } };
	char text[32];
	int fd = bound(PORT);

	rds_set_int(fd, SOL_SOCKET, SO_TIMESTAMP, 1);
	for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
		come(fd);
		snprintf(text, sizeof(text), "stamp_%zu", rooms[i]);
		takes(fd, text, 0, 10, rooms[i], false);
	}
	rds_set_int(fd, SOL_SOCKET, SO_TIMESTAMP, 0);
	come(fd);
	takes(fd, "stamp_off", 0, 10, 128, false);
	rds_set_int(fd, SOL_RDS, 29, 1);
	come(fd);
	takes(fd, "stamp_rds", 0, 10, 128, false);
	rds_set_int(fd, SOL_RDS, 29, 0);
	must(setsockopt(fd, SOL_RDS, SO_RDS_MSG_RXPATH_LATENCY, &so,
			sizeof(so)));
	come(fd);
	takes(fd, "latency", 0, 10, 128, false);
	rds_set_int(fd, SOL_RDS, 63, 1);
	come(fd);
	takes(fd, "all", 0, 10, 256, true);
	close(fd);
}

static void recv_many(void)
{
	struct timespec limit = { 5, 0 };
	struct iovec iov = { big, 100 };
	struct mmsghdr two[3] = { 0 };
	int fd = bound(PORT);

	for (int i = 0; i < 3; i++) {
		two[i].msg_hdr.msg_iov = &iov;
		two[i].msg_hdr.msg_iovlen = 1;
	}
	come(fd);
	must(to_lo(fd, big, 20, 0));
	call("recvmmsg");
	tell(recvmmsg(fd, two, 2, 0, &limit));
	call("recvmmsg_none");
	tell(recvmmsg(fd, two, 3, MSG_DONTWAIT, NULL));
	close(fd);
}

/* ------------------------------------------------------------------- poll */

static void tell_poll(const char *what, int fd)
{
	call("poll_%s", what);
	tell(poll_one(fd, 0x7fff, 0));
}

static void polls(void)
{
	union addr a = lo(PORT);
	int fd = rds_socket();

	tell_poll("unbound", fd);
	must(bind(fd, &a.sa, sizeof(a.in)));
	tell_poll("bound", fd);
	come(fd);
	tell_poll("data", fd);
	drain(fd);
	tell_poll("read", fd);
	must(connect(fd, &a.sa, sizeof(a.in)));
	tell_poll("connected", fd);
	close(fd);
}

/* A receiver that does not read, and its sender */
static void crowded(void)
{
	int fd = bound(PORT), to = bound(PORT + 1), n;
	union addr a = lo(PORT + 1);

	rds_set_int(to, SOL_SOCKET, SO_RCVBUF, 4096);
	must(rds_send(fd, big, 1000, 0, &a));
	poll_one(to, POLLIN, WAIT_MS);
	for (n = 1; n < 20; n++) {
		if (rds_send(fd, big, 1000, MSG_DONTWAIT, &a) < 0)
			break;
		/* its receiver has heard of it */
		must_wait(rds_all_acked, &fd, WAIT_MS);
	}
	printf("crowded_sent: %s\n", n == 20 ? "all" : "not all");
	close(fd);
	close(to);
}

static void all(void)
{
	signal(SIGPIPE, SIG_IGN);
	sockets();
	binds();
	connects();
	others();
	ioctls();
	options();
	sends();
	cmsgs();
	regions();
	recv_empty();
	recv_some();
	recv_with();
	recv_many();
	polls();
	crowded();
	printf("end\n");
}

int main(void)
{
	all();
	return 0;
}
