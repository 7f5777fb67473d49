// SPDX-License-Identifier: GPL-2.0-only
/*
 * Addresses, sockets, one call to send and one to receive. The calls hide the
 * differences between XRDS, mainline's AF_RDS and AF_UNIX from the other files.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "hint.h"
#include "perf.h"

enum { CONTROL_BYTES = 2048 };

static void __attribute__((noreturn)) die_with(const char *what, int error,
					       const char *hint)
{
	fflush(stdout);
	fprintf(stderr, "xrds-perf: %s: %s%s\n", what, strerror(error), hint);
	exit(EXIT_ERROR);
}

void die(const char *what, int error)
{
	die_with(what, error, "");
}

void die_memory(const char *what, int error)
{
	die_with(what, error, hint_memory(error));
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* Memory whose pages are populated already */
void *take_memory(size_t bytes)
{
	void *mem = mmap(NULL, bytes ?: 1, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (mem == MAP_FAILED)
		die("memory", errno);
	return mem;
}

/* --------------------------------------------------------------- addresses */

static void resolve_unix(uint16_t port, struct address *address)
{
	struct sockaddr_un *un = (void *)&address->ss;
	int len;

	un->sun_family = AF_UNIX;
	/* an abstract name */
	len = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1,
		       "xrds-perf.%u", port);
	address->len = offsetof(struct sockaddr_un, sun_path) + 1 + len;
}

void set_port(struct address *address, uint16_t port)
{
	if (address->ss.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&address->ss)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&address->ss)->sin_port = htons(port);
}

uint16_t get_port(const struct address *address)
{
	if (address->ss.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&address->ss)->sin6_port);
	if (address->ss.ss_family == AF_INET)
		return ntohs(((struct sockaddr_in *)&address->ss)->sin_port);
	return 0;
}

void resolve(const char *name, uint16_t port, struct address *address)
{
	struct addrinfo hints = {
		.ai_family = opt.family,
		.ai_socktype = SOCK_DGRAM,
	};
	struct addrinfo *found;
	int ret;

	memset(address, 0, sizeof(*address));
	if (opt.over_unix) {
		resolve_unix(port, address);
		return;
	}
	ret = getaddrinfo(name, NULL, &hints, &found);
	if (ret) {
		fprintf(stderr, "xrds-perf: %s: %s\n", name,
			ret == EAI_SYSTEM ? strerror(errno) :
			gai_strerror(ret));
		exit(EXIT_ERROR);
	}
	memcpy(&address->ss, found->ai_addr, found->ai_addrlen);
	address->len = found->ai_addrlen;
	freeaddrinfo(found);
	set_port(address, port);
}

/* Get the address from which the kernel would send UDP there, with port 0. */
void choose_source(const struct address *to, struct address *from)
{
	int fd = socket(to->ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("socket", errno);
	if (connect(fd, (const struct sockaddr *)&to->ss, to->len))
		die("no route to it", errno);
	from->len = sizeof(from->ss);
	if (getsockname(fd, (struct sockaddr *)&from->ss, &from->len))
		die("getsockname", errno);
	close(fd);
	set_port(from, 0);
}

/* ----------------------------------------------------------------- sockets */

static void set_buffer(int fd, int option, uint32_t bytes)
{
	int value = bytes;

	if (value && setsockopt(fd, SOL_SOCKET, option, &value, sizeof(value)))
		die("socket buffers", errno);
}

void set_buffers(int fd)
{
	set_buffer(fd, SO_SNDBUF, opt.buffer);
	set_buffer(fd, SO_RCVBUF, opt.room ?: opt.buffer);
}

void set_patience(int fd, uint32_t seconds)
{
	struct timeval tv = { .tv_sec = seconds };

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)))
		die("SO_RCVTIMEO", errno);
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)))
		die("SO_SNDTIMEO", errno);
}

/* Make a socket, bound to an address; with AF_UNIX to none. */
int try_socket(const struct address *address)
{
	int fd = socket(opt.over_unix ? AF_UNIX : AF_RDS,
			SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int error = errno;

	if (fd < 0)
		die_with("socket", error, hint_socket(error));
	if (address &&
	    bind(fd, (const struct sockaddr *)&address->ss, address->len)) {
		error = errno;
		close(fd);
		return -error;
	}
	if (opt.tos && ioctl(fd, SIOCRDSSETTOS, &opt.tos))
		die("SIOCRDSSETTOS", errno);
	return fd;
}

int open_socket(const struct address *address)
{
	int fd = try_socket(address);

	if (fd < 0)
		die_with("bind", -fd, hint_bind(-fd));
	return fd;
}

static void map_address(const struct address *address, __u8 *mapped)
{
	const struct sockaddr_in6 *in6 = (void *)&address->ss;
	const struct sockaddr_in *in = (void *)&address->ss;

	if (address->ss.ss_family == AF_INET6) {
		memcpy(mapped, &in6->sin6_addr, sizeof(in6->sin6_addr));
		return;
	}
	mapped[10] = 0xff;
	mapped[11] = 0xff;
	memcpy(mapped + 12, &in->sin_addr, sizeof(in->sin_addr));
}

void reset_connection(const struct address *from, const struct address *to)
{
	struct xrds_uek_reset6 args = { .tos = opt.tos };
	int fd = open_socket(NULL);

	map_address(from, args.src);
	map_address(to, args.dst);
	if (setsockopt(fd, SOL_RDS, XRDS_UEK_CONN_RESET6, &args, sizeof(args)))
		die("reset", errno);
	close(fd);
}

void want_zcopy(int fd)
{
	int on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)))
		die("SO_ZEROCOPY", errno);
}

void want_news(int fd)
{
	int on = 1;

	/* without, a peer that is gone is found when the time is up */
	setsockopt(fd, SOL_RDS, XRDS_NODE_EVENTS, &on, sizeof(on));
}

/* ---------------------------------------------------------------- messages */

void put_control(void *control, size_t *used, int type, const void *data,
		 size_t bytes)
{
	struct cmsghdr *c = (void *)((char *)control + *used);

	c->cmsg_level = SOL_RDS;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(c), data, bytes);
	*used += CMSG_SPACE(bytes);
}

/* Send; waits for send space. */
static void send_flags(int fd, const struct address *to, const void *buf,
		       size_t bytes, void *control, size_t control_bytes,
		       int flags)
{
	struct iovec iov = { (void *)buf, bytes };
	struct msghdr m = {
		.msg_name = to->len ? (void *)&to->ss : NULL,
		.msg_namelen = to->len,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = control_bytes,
	};

	while (sendmsg(fd, &m, flags) < 0) {
		if (errno != EINTR)
			die_with("send", errno, control_bytes ?
				 hint_memory(errno) : "");
	}
}

void send_control(int fd, const struct address *to, const void *buf,
		  size_t bytes, void *control, size_t control_bytes)
{
	send_flags(fd, to, buf, bytes, control, control_bytes, 0);
}

void send_plain(int fd, const struct address *to, const void *buf,
		size_t bytes)
{
	send_control(fd, to, buf, bytes, NULL, 0);
}

/* All have the same cookie: their number is enough. */
void send_zcopy(int fd, const struct address *to, const void *buf, size_t bytes)
{
	char control[CMSG_SPACE(sizeof(uint32_t))]
		__attribute__((aligned(8))) = {};
	uint32_t cookie = 0;
	size_t used = 0;

	put_control(control, &used, RDS_CMSG_ZCOPY_COOKIE, &cookie,
		    sizeof(cookie));
	send_flags(fd, to, buf, bytes, control, used, MSG_ZEROCOPY);
}

/* Send so many messages, which are @stride bytes apart, with as few calls as
 * possible. Mainline's AF_RDS sends only the last message of a sendmmsg(): there
 * each message takes a call.
 */
void send_batch(int fd, const struct address *to, const void *buf,
		size_t bytes, size_t stride, uint32_t count)
{
	struct mmsghdr messages[MAX_BATCH] = {};
	struct iovec iov[MAX_BATCH];
	static bool refused;
	uint32_t i, done = 0;
	int ret;

	for (i = 0; i < count; i++) {
		messages[i].msg_hdr.msg_name = to->len ? (void *)&to->ss : NULL;
		messages[i].msg_hdr.msg_namelen = to->len;
		iov[i].iov_base = (char *)buf + i * stride;
		iov[i].iov_len = bytes;
		messages[i].msg_hdr.msg_iov = &iov[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	while (done < count) {
		ret = refused ? -1 : sendmmsg(fd, messages + done,
					      count - done, 0);
		refused = refused || (ret < 0 && errno == EOPNOTSUPP);
		if (ret > 0) {
			done += ret;
		} else if (refused) {
			send_plain(fd, to, iov[done].iov_base, bytes);
			done++;
		} else if (errno != EINTR) {
			die("send", errno);
		}
	}
}

/* The peer's node went down or came up. Returns whether it is another one now. */
static bool node_news(const struct cmsghdr *c)
{
	struct xrds_node_event event;
	char host[NI_MAXHOST] = "?";

	memcpy(&event, CMSG_DATA(c), sizeof(event));
	getnameinfo((struct sockaddr *)&event.node, sizeof(event.node), host,
		    sizeof(host), NULL, 0, NI_NUMERICHOST);
	switch (event.state) {
	case XRDS_NODE_DOWN:
		fprintf(stderr, "xrds-perf: %s is down\n", host);
		break;
	case XRDS_NODE_UP:
		fprintf(stderr, "xrds-perf: %s is up again after %.1f s\n",
			host, (double)event.down_ns / NSEC_PER_SEC);
		break;
	case XRDS_NODE_REBORN:
		fprintf(stderr, "xrds-perf: %s has restarted\n", host);
		return true;
	}
	return false;
}

static void look_at(const struct cmsghdr *c, struct arrival *arrival)
{
	struct rds_zcopy_cookies zcopied;
	struct rds_rdma_notify notify;

	if (c->cmsg_level != SOL_RDS)
		return;
	switch (c->cmsg_type) {
	case RDS_CMSG_RDMA_STATUS:
		memcpy(&notify, CMSG_DATA(c), sizeof(notify));
		arrival->notices++;
		if (notify.status != RDS_RDMA_SUCCESS) {
			arrival->failed = true;
			arrival->status = notify.status;
		}
		break;
	case RDS_CMSG_ZCOPY_COMPLETION:
		memcpy(&zcopied, CMSG_DATA(c), sizeof(zcopied));
		arrival->zcopied += zcopied.num;
		break;
	case XRDS_CMSG_NODE:
		arrival->news = true;
		arrival->reborn |= node_news(c);
		break;
	case RDS_CMSG_RDMA_DEST:
		memcpy(&arrival->cookie, CMSG_DATA(c), sizeof(arrival->cookie));
		arrival->cookie_came = true;
		break;
	case XRDS_CMSG_EOS:
		arrival->ended = true;
		break;
	}
}

/* One call. Returns false when there is nothing to read in time. */
static bool receive_once(int fd, void *buf, size_t room, int flags,
			 struct arrival *arrival)
{
	char control[CONTROL_BYTES] __attribute__((aligned(8)));
	struct iovec iov = { buf, room };
	struct msghdr m = {
		.msg_name = &arrival->from.ss,
		.msg_namelen = sizeof(arrival->from.ss),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};

	arrival->notices = 0;
	arrival->zcopied = 0;
	arrival->failed = false;
	arrival->news = false;
	arrival->reborn = false;
	arrival->ended = false;
	arrival->cookie_came = false;
	do
		arrival->bytes = recvmsg(fd, &m, flags);
	while (arrival->bytes < 0 && errno == EINTR);
	if (arrival->bytes < 0) {
		if (errno == EAGAIN || errno == ETIMEDOUT)
			return false;
		die("receive", errno);
	}
	arrival->from.len = m.msg_namelen;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		look_at(c, arrival);
	/* a connection that the other end has closed */
	if (opt.over_unix && !arrival->bytes)
		arrival->ended = true;
	return true;
}

bool receive_now(int fd, void *buf, size_t room, struct arrival *arrival)
{
	return receive_once(fd, buf, room, MSG_DONTWAIT, arrival);
}

/* Waits for a message or for notices. News are told, and come alone. */
void receive(int fd, void *buf, size_t room, struct arrival *arrival)
{
	do {
		if (!receive_once(fd, buf, room, 0, arrival))
			die("the peer is silent", ETIMEDOUT);
		if (arrival->reborn)
			arrival->ended = true;
	} while (arrival->news && !arrival->notices && !arrival->ended);
}

/* ------------------------------------------------------------------- notes */

void send_note(int fd, const struct address *to, enum kind what,
	       uint64_t total, uint32_t written)
{
	struct note note = {
		.magic = htonl(PERF_MAGIC),
		.kind = htonl(what),
		.mode = htonl(opt.mode),
		.bytes = htonl(opt.bytes),
		.answer = htonl(opt.answer),
		.depth = htonl(opt.depth),
		.buffer = htonl(opt.buffer),
		.room = htonl(opt.room),
		.tos = htonl(opt.tos),
		.verify = htonl(opt.verify),
		.get_mr = htonl(opt.get_mr),
		.use_once = htonl(opt.use_once),
		.total_high = htonl(total >> 32),
		.total_low = htonl(total),
		.written = htonl(written),
	};

	send_plain(fd, to, &note, sizeof(note));
}

void send_bad(int fd, const struct address *to, const char *text)
{
	struct note note = {
		.magic = htonl(PERF_MAGIC),
		.kind = htonl(BAD),
	};

	snprintf(note.text, sizeof(note.text), "%s", text);
	send_plain(fd, to, &note, sizeof(note));
}

bool is_note(const void *buf, ssize_t bytes)
{
	return bytes == sizeof(struct note) &&
	       ((const struct note *)buf)->magic == htonl(PERF_MAGIC);
}

uint64_t note_total(const struct note *note)
{
	return (uint64_t)ntohl(note->total_high) << 32 | ntohl(note->total_low);
}
