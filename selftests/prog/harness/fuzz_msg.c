// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages for fuzzers: arguments of sendmsg(), recvmsg() and their relatives.
 */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "fuzz.h"
#include "tap.h"

enum {
	PIECE_BYTES	= 256 * 1024,
	BATCH		= 4,
	CMSGS		= 4,
};

static __thread struct fuzz_msg messages[BATCH];
static __thread struct mmsghdr batch[BATCH];

int fuzz_send_flags(struct fuzz *f)
{
	static const int flags[] = {
		MSG_EOR, MSG_MORE, MSG_OOB, MSG_ZEROCOPY, MSG_CONFIRM,
		MSG_DONTROUTE, MSG_FASTOPEN, MSG_PROXY, MSG_PEEK,
	};
	int some = 0;

	if (fuzz_one_in(f, 12))
		some = flags[fuzz_below(f, ARRAY_SIZE(flags))];
	if (fuzz_one_in(f, 64))
		some = fuzz_value(f);
	if (!f->patient || !fuzz_one_in(f, 8))
		some |= MSG_DONTWAIT;
	return some |
	       (fuzz_one_in(f, 2) ? MSG_NOSIGNAL : 0);
}

int fuzz_recv_flags(struct fuzz *f)
{
	static const int flags[] = {
		MSG_PEEK, MSG_TRUNC, MSG_WAITALL, MSG_OOB, MSG_ERRQUEUE,
		MSG_CMSG_CLOEXEC, MSG_PEEK | MSG_TRUNC, MSG_CTRUNC,
	};
	int some = 0;

	if (fuzz_one_in(f, 4))
		some = flags[fuzz_below(f, ARRAY_SIZE(flags))];
	if (fuzz_one_in(f, 64))
		some = fuzz_value(f);
	return some | (f->patient && fuzz_one_in(f, 12) ? 0 : MSG_DONTWAIT);
}

static void vector(struct fuzz *f, struct fuzz_msg *m)
{
	size_t nr = fuzz_one_in(f, 3) ? fuzz_below(f, ARRAY_SIZE(m->iov)) + 1 : 1;
	bool good = !fuzz_one_in(f, 3);
	size_t len;
	u64 at;

	for (size_t i = 0; i < nr; i++) {
		len = fuzz_length(f, fuzz_one_in(f, 8) ? PIECE_BYTES : 20000);
		at = good ? fuzz_mem_good(f, len) : fuzz_mem_any(f, len);
		m->iov[i].iov_base = (void *)(uintptr_t)at;
		m->iov[i].iov_len = fuzz_one_in(f, 64) ? fuzz_value(f) : len;
	}
	m->msg.msg_iov = fuzz_mem_copy(f, m->iov, sizeof(m->iov));
	m->msg.msg_iovlen = fuzz_one_in(f, 64) ? fuzz_value(f) : nr;
}

/* One more control message; where the next one goes */
static size_t control_one(struct fuzz *f, struct fuzz_msg *m, size_t at)
{
	struct cmsghdr *cmsg = (void *)(m->control + at);
	int type = fuzz_cmsg_type(f);
	size_t len;

	memset(cmsg, 0, CMSG_SPACE(256));
	len = fuzz_content(f, type, CMSG_DATA(cmsg));
	if (fuzz_one_in(f, 24))
		len = fuzz_below(f, 200);
	cmsg->cmsg_level = fuzz_one_in(f, 32) ? fuzz_int(f) : SOL_RDS;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = fuzz_one_in(f, 48) ? fuzz_value(f) : CMSG_LEN(len);
	return at + CMSG_SPACE(len);
}

static void control(struct fuzz *f, struct fuzz_msg *m)
{
	size_t nr = 0, at = 0;

	if (fuzz_one_in(f, 3))
		nr = fuzz_one_in(f, 3) ? 1 + fuzz_below(f, CMSGS) : 1;
	while (nr-- && at + CMSG_SPACE(256) <= sizeof(m->control))
		at = control_one(f, m, at);
	m->msg.msg_control = fuzz_mem_copy(f, m->control, sizeof(m->control));
	m->msg.msg_controllen = fuzz_one_in(f, 64) ? fuzz_value(f) : at;
}

void fuzz_msg_send(struct fuzz *f, struct fuzz_msg *m)
{
	memset(&m->msg, 0, sizeof(m->msg));
	if (!fuzz_one_in(f, 6)) {
		m->msg.msg_namelen = fuzz_addr(f, &m->name);
		m->msg.msg_name = fuzz_mem_copy(f, &m->name, sizeof(m->name));
	}
	vector(f, m);
	control(f, m);
}

void fuzz_msg_recv(struct fuzz *f, struct fuzz_msg *m)
{
	memset(&m->msg, 0, sizeof(m->msg));
	if (!fuzz_one_in(f, 3)) {
		m->msg.msg_name = &m->name;
		if (fuzz_one_in(f, 8))
			m->msg.msg_name = (void *)(uintptr_t)fuzz_mem_any(f,
							sizeof(m->name));
		m->msg.msg_namelen = fuzz_one_in(f, 8) ? fuzz_value(f) :
							 sizeof(m->name);
	}
	vector(f, m);
	if (fuzz_one_in(f, 4))
		return;
	m->msg.msg_control = fuzz_mem_copy(f, m->control, sizeof(m->control));
	m->msg.msg_controllen = fuzz_one_in(f, 4) ?
				fuzz_below(f, sizeof(m->control)) :
				sizeof(m->control);
}

/* ---------------------------------------------------------------- the calls */

long fuzz_call_sendmsg(struct fuzz *f)
{
	struct fuzz_msg *m = &messages[0];

	fuzz_msg_send(f, m);
	return sendmsg(fuzz_fd(f), fuzz_mem_copy(f, &m->msg, sizeof(m->msg)),
		       fuzz_send_flags(f));
}

long fuzz_call_recvmsg(struct fuzz *f)
{
	struct fuzz_msg *m = &messages[0];

	fuzz_msg_recv(f, m);
	return recvmsg(fuzz_fd(f), fuzz_mem_copy(f, &m->msg, sizeof(m->msg)),
		       fuzz_recv_flags(f));
}

long fuzz_call_sendmmsg(struct fuzz *f)
{
	for (int i = 0; i < BATCH; i++) {
		fuzz_msg_send(f, &messages[i]);
		batch[i].msg_hdr = messages[i].msg;
	}
	return sendmmsg(fuzz_fd(f), fuzz_mem_copy(f, batch, sizeof(batch)),
			1 + fuzz_below(f, BATCH), fuzz_send_flags(f));
}

long fuzz_call_recvmmsg(struct fuzz *f)
{
	struct timespec ts = { .tv_nsec = fuzz_below(f, 4000000) };

	for (int i = 0; i < BATCH; i++) {
		fuzz_msg_recv(f, &messages[i]);
		batch[i].msg_hdr = messages[i].msg;
	}
	return recvmmsg(fuzz_fd(f), fuzz_mem_copy(f, batch, sizeof(batch)),
			1 + fuzz_below(f, BATCH), fuzz_recv_flags(f),
			fuzz_one_in(f, 2) ? &ts : NULL);
}

long fuzz_call_sendto(struct fuzz *f)
{
	size_t len = fuzz_length(f, PIECE_BYTES);
	union addr to;
	socklen_t to_len = fuzz_addr(f, &to);
	void *name = fuzz_one_in(f, 4) ? NULL :
					 fuzz_mem_copy(f, &to, sizeof(to));

	return sendto(fuzz_fd(f), (void *)(uintptr_t)fuzz_mem_any(f, len), len,
		      fuzz_send_flags(f), name, to_len);
}

long fuzz_call_recvfrom(struct fuzz *f)
{
	size_t len = fuzz_length(f, PIECE_BYTES);
	socklen_t name_len = fuzz_int(f);
	union addr from;
	void *name = fuzz_one_in(f, 2) ? NULL :
					 fuzz_mem_copy(f, &from, sizeof(from));

	return recvfrom(fuzz_fd(f), (void *)(uintptr_t)fuzz_mem_any(f, len),
			len, fuzz_recv_flags(f), name, &name_len);
}

long fuzz_call_write(struct fuzz *f)
{
	size_t len = fuzz_length(f, 100000);

	return write(fuzz_fd(f), (void *)(uintptr_t)fuzz_mem_any(f, len), len);
}

long fuzz_call_read(struct fuzz *f)
{
	size_t len = fuzz_length(f, 100000);

	return read(fuzz_fd(f), (void *)(uintptr_t)fuzz_mem_any(f, len), len);
}

/* From a socket to a socket by a pipe, and from a file to a socket */
long fuzz_call_splice(struct fuzz *f)
{
	int in = fuzz_fd(f), out = fuzz_fd(f), file, pair[2];
	size_t len = fuzz_length(f, 60000);
	long ret;

	if (fuzz_one_in(f, 2)) {
		file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		ret = sendfile(out, file, NULL, len);
		close(file);
		return ret;
	}
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK))
		return -1;
	if (fuzz_one_in(f, 2)) {
		ret = splice(in, NULL, pair[1], NULL, len, SPLICE_F_NONBLOCK);
	} else {
		ret = write(pair[1], f->scratch, len < sizeof(f->scratch) ?
						 len : sizeof(f->scratch));
	}
	if (ret > 0)
		ret = splice(pair[0], NULL, out, NULL, ret, SPLICE_F_NONBLOCK);
	close(pair[0]);
	close(pair[1]);
	return ret;
}
