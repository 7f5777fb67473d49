// SPDX-License-Identifier: GPL-2.0-only
/*
 * AF_RDS sockets, addresses and sysctls for tests.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"

enum {
	STALL_MS	= 3600000,	/* no test takes so long */
	TEXT_BUFFERS	= 4,
	MAX_KNOBS	= 12,
};

/* --------------------------------------------------------------- addresses */

union addr addr_of(const char *host, u16 port)
{
	union addr a = { 0 };

	if (inet_pton(AF_INET, host, &a.in.sin_addr) == 1) {
		a.in.sin_family = AF_INET;
		a.in.sin_port = htons(port);
	} else if (inet_pton(AF_INET6, host, &a.in6.sin6_addr) == 1) {
		a.in6.sin6_family = AF_INET6;
		a.in6.sin6_port = htons(port);
	} else {
		tap_fail("'%s' is not an IP address", host);
	}
	return a;
}

socklen_t addr_len(const union addr *a)
{
	return a->sa.sa_family == AF_INET6 ? sizeof(a->in6) : sizeof(a->in);
}

u16 addr_port(const union addr *a)
{
	return ntohs(a->sa.sa_family == AF_INET6 ? a->in6.sin6_port :
		     a->in.sin_port);
}

void addr_set_port(union addr *a, u16 port)
{
	if (a->sa.sa_family == AF_INET6)
		a->in6.sin6_port = htons(port);
	else
		a->in.sin_port = htons(port);
}

bool addr_same(const union addr *a, const union addr *b)
{
	if (a->sa.sa_family != b->sa.sa_family || addr_port(a) != addr_port(b))
		return false;
	if (a->sa.sa_family == AF_INET6)
		return !memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr,
			       sizeof(a->in6.sin6_addr));
	return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
}

const char *addr_text(const union addr *a)
{
	static char texts[TEXT_BUFFERS][INET6_ADDRSTRLEN + 16];
	static int next;
	char *text = texts[next++ % TEXT_BUFFERS];
	char host[INET6_ADDRSTRLEN];

	if (a->sa.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a->in6.sin6_addr, host, sizeof(host));
		snprintf(text, sizeof(texts[0]), "[%s]:%u", host, addr_port(a));
	} else if (a->sa.sa_family == AF_INET) {
		inet_ntop(AF_INET, &a->in.sin_addr, host, sizeof(host));
		snprintf(text, sizeof(texts[0]), "%s:%u", host, addr_port(a));
	} else {
		snprintf(text, sizeof(texts[0]), "family %d", a->sa.sa_family);
	}
	return text;
}

/* ----------------------------------------------------------------- sockets */

int rds_socket(void)
{
	return must(socket(AF_RDS, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

int rds_bound_to(const char *host, u16 port, union addr *self)
{
	union addr a = addr_of(host, port);
	int fd = rds_socket();

	must(bind(fd, &a.sa, addr_len(&a)));
	if (self)
		*self = rds_self(fd);
	return fd;
}

int rds_bound(union addr *self)
{
	return rds_bound_to(tap_host, 0, self);
}

union addr rds_self(int fd)
{
	union addr a = { 0 };
	socklen_t len = sizeof(a);

	must(getsockname(fd, &a.sa, &len));
	return a;
}

void rds_set_int(int fd, int level, int option, int value)
{
	must(setsockopt(fd, level, option, &value, sizeof(value)));
}

int rds_get_int(int fd, int level, int option)
{
	socklen_t len = sizeof(int);
	int value = 0;

	must(getsockopt(fd, level, option, &value, &len));
	return value;
}

void rds_timeout(int fd, int option, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	must(setsockopt(fd, SOL_SOCKET, option, &tv, sizeof(tv)));
}

void rds_nonblock(int fd)
{
	must(fcntl(fd, F_SETFL, O_NONBLOCK));
}

ssize_t rds_send(int fd, const void *data, size_t len, int flags,
		 const union addr *to)
{
	return sendto(fd, data, len, flags, to ? &to->sa : NULL,
		      to ? addr_len(to) : 0);
}

ssize_t rds_recv(int fd, void *data, size_t len, int flags, union addr *from)
{
	socklen_t from_len = sizeof(*from);

	if (from)
		memset(from, 0, sizeof(*from));
	return recvfrom(fd, data, len, flags, from ? &from->sa : NULL,
			from ? &from_len : NULL);
}

ssize_t rds_recv_or_mark(int fd, void *data, size_t len, union addr *from,
			 bool *mark)
{
	char control[CMSG_SPACE(sizeof(u32))] __aligned(8);
	struct iovec iov = { data, len };
	struct msghdr m = {
		.msg_name = from,
		.msg_namelen = sizeof(*from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	ssize_t ret;

	memset(from, 0, sizeof(*from));
	ret = recvmsg(fd, &m, MSG_DONTWAIT);
	c = ret < 0 || !m.msg_controllen ? NULL : CMSG_FIRSTHDR(&m);
	*mark = c && c->cmsg_level == SOL_RDS &&
		c->cmsg_type == XRDS_CMSG_EOS;
	return ret;
}

ssize_t rds_recv_within(int fd, void *data, size_t len, int ms,
			union addr *from)
{
	long long end = tap_now_ms() + tap_ms(ms);
	ssize_t ret;

	for (;;) {
		long long left = end - tap_now_ms();

		ret = rds_recv(fd, data, len, MSG_DONTWAIT, from);
		if (ret >= 0 || errno != EAGAIN)
			return ret;
		if (left <= 0)
			break;
		poll_one(fd, POLLIN, left);
	}
	errno = ETIMEDOUT;
	return -1;
}

ssize_t rds_send_cmsg(int fd, const union addr *to, int type, const void *data,
		      size_t len)
{
	char control[CMSG_SPACE(512)] __aligned(8) = { 0 };
	char payload[] = "payload";
	struct iovec iov = { payload, sizeof(payload) };
	struct msghdr msg = {
		.msg_name = (void *)&to->sa,
		.msg_namelen = addr_len(to),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(len),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	if (len > 512)
		tap_fail("control message of %zu bytes", len);
	cmsg->cmsg_level = SOL_RDS;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(cmsg), data, len);
	return sendmsg(fd, &msg, MSG_DONTWAIT);
}

int poll_one(int fd, int events, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	return must(poll(&pfd, 1, ms)) ? pfd.revents : 0;
}

int rds_reserve(int fd, u32 bytes)
{
	return setsockopt(fd, SOL_RDS, XRDS_REPLY_RESERVE, &bytes,
			  sizeof(bytes));
}

int rds_release(int fd, const union addr *to)
{
	return setsockopt(fd, SOL_RDS, XRDS_REPLY_RELEASE, &to->ss,
			  sizeof(to->ss));
}

int dest_status(int fd, const union addr *to, struct xrds_dest_status *st)
{
	socklen_t len = sizeof(*st);

	memset(st, 0, sizeof(*st));
	memcpy(&st->dest, to, sizeof(*to));
	return getsockopt(fd, SOL_RDS, XRDS_DEST_STATUS, st, &len);
}

/* How many messages from a port a dump of in-tree RDS has */
static int messages_from(int fd, u16 port, int which)
{
	struct rds6_info_message *list;
	socklen_t len = 0, size;
	int n = 0, got;

	if (getsockopt(fd, SOL_RDS, which, NULL, &len) >= 0)
		return 0;
	if (errno != ENOSPC)
		return 0;
	/* it may have grown when it is read */
	len += 64 * sizeof(*list);
	list = calloc(1, len);
	size = len;
	got = list ? getsockopt(fd, SOL_RDS, which, list, &size) : -1;
	if (got < 0)
		n = 1;			/* ask again */
	for (socklen_t i = 0; got > 0 && (i + 1) * sizeof(*list) <= size; i++)
		n += ntohs(list[i].lport) == port;
	free(list);
	return n;
}

int rds_outq(int fd)
{
	static const int lists[] = {
		RDS6_INFO_SEND_MESSAGES, RDS6_INFO_RETRANS_MESSAGES,
		RDS6_INFO_SEND_MESSAGES,
	};
	union addr self = rds_self(fd);
	int bytes = 0;

	if (!ioctl(fd, SIOCOUTQ, &bytes))
		return bytes;
	/*
	 * Messages that wait are in the first list, and those that are sent and
	 * not acknowledged in the second; a connection that is lost takes them
	 * back to the first.
	 */
	for (size_t i = 0; i < ARRAY_SIZE(lists) && !bytes; i++)
		bytes = messages_from(fd, addr_port(&self), lists[i]);
	return bytes;
}

bool rds_all_acked(void *fd)
{
	return !rds_outq(*(int *)fd);
}

/* ----------------------------------------------------------------- sysctls */

static struct saved_knob {
	char path[96];
	char value[32];
} saved_knobs[MAX_KNOBS];
static int nr_saved;
static pid_t knobs_owner;

static bool knob_write(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, value, strlen(value)) == (ssize_t)strlen(value);
	close(fd);
	return ok;
}

static void knobs_restore(void)
{
	if (getpid() != knobs_owner)
		return;
	while (nr_saved--)
		knob_write(saved_knobs[nr_saved].path,
			   saved_knobs[nr_saved].value);
}

static void knob_save(const char *path)
{
	struct saved_knob *saved = &saved_knobs[nr_saved];
	int fd;

	for (int i = 0; i < nr_saved; i++)
		if (!strcmp(saved_knobs[i].path, path))
			return;
	if (nr_saved == MAX_KNOBS)
		tap_fail("too many knobs");
	fd = must(open(path, O_RDONLY | O_CLOEXEC));
	must(read(fd, saved->value, sizeof(saved->value) - 1));
	close(fd);
	strcpy(saved->path, path);
	if (!nr_saved++) {
		knobs_owner = getpid();
		atexit(knobs_restore);
	}
}

void knob(const char *name, long value)
{
	char path[sizeof(saved_knobs[0].path)], text[32];

	snprintf(path, sizeof(path), "/proc/sys/%s", name);
	snprintf(text, sizeof(text), "%ld", value);
	if (access(path, F_OK))
		tap_fail("no sysctl %s", name);
	knob_save(path);
	if (!knob_write(path, text))
		tap_fail("%s = %s: %s", path, text, tap_errno_name(errno));
}

bool knob_exists(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/%s", name);
	return !access(path, F_OK);
}

void stall_loop(void)
{
	knob("net/xrds/loop/delay_ms", STALL_MS);
}
