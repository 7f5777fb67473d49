// SPDX-License-Identifier: GPL-2.0-only
/*
 * Numbers, addresses and structures for fuzzers.
 */
#include <stdint.h>
#include <string.h>

#include "fuzz.h"
#include "rdma.h"

enum { VECTOR = 16 };

u64 fuzz_below(struct fuzz *f, u64 bound)
{
	return prng_below(&f->prng, bound);
}

bool fuzz_one_in(struct fuzz *f, unsigned int n)
{
	return !fuzz_below(f, n);
}

u64 fuzz_value(struct fuzz *f)
{
	static const u64 values[] = {
		0, 1, 2, 3, 7, 8, 16, 63, 64, 65, 127, 128, 255, 256, 1023,
		1024, 1025, 4095, 4096, 4097, 65535, 65536, 1 << 20,
		(1 << 20) + 1, 0x7ffffffe, 0x7fffffff, 0x80000000, 0xfffffffe,
		0xffffffff, 0x100000000, 0x7ffffffff000, 0x800000000000,
		0xffff888000000000, 0xffffffff81000000, 0x7fffffffffffffff,
		0x8000000000000000, 0xfffffffffffff000, ~0ull - 1, ~0ull,
	};

	switch (fuzz_below(f, 4)) {
	case 0:
		return prng_next(&f->prng);
	case 1:
		return prng_next(&f->prng) >> fuzz_below(f, 64);
	default:
		return values[fuzz_below(f, ARRAY_SIZE(values))];
	}
}

int fuzz_int(struct fuzz *f)
{
	return fuzz_one_in(f, 2) ? (int)fuzz_below(f, 3) : (int)fuzz_value(f);
}

size_t fuzz_length(struct fuzz *f, size_t most)
{
	switch (fuzz_below(f, 6)) {
	case 0:
		return 0;
	case 1:
		return fuzz_below(f, most + 2);
	case 2:
		return (1ul << fuzz_below(f, 13)) - 1 + fuzz_below(f, 3);
	default:
		return fuzz_below(f, 300);
	}
}

/* ---------------------------------------------------------------- addresses */

static u16 port(struct fuzz *f)
{
	switch (fuzz_below(f, 16)) {
	case 0:
		return 0;
	case 1:
		/* those between are for traffic that nobody shall disturb */
		return fuzz_one_in(f, 2) ? fuzz_below(f, 4096) :
					   40000 + fuzz_below(f, 25536);
	case 2:
		return fuzz_shared->targets[fuzz_below(f, FUZZ_TARGETS)];
	default:
		return FUZZ_PORT + fuzz_below(f, FUZZ_PORTS);
	}
}

union addr fuzz_addr_own(struct fuzz *f)
{
	union addr a = fuzz_shared->hosts[fuzz_below(f, 2)];

	addr_set_port(&a, fuzz_one_in(f, 3) ? 0 : port(f));
	return a;
}

socklen_t fuzz_addr(struct fuzz *f, union addr *a)
{
	socklen_t len;

	/* half of it to where most sockets are */
	*a = fuzz_shared->hosts[fuzz_one_in(f, 2) ? 0 :
				fuzz_below(f, fuzz_one_in(f, 4) ?
					   fuzz_shared->nr_hosts :
					   fuzz_shared->nr_good)];
	addr_set_port(a, port(f));
	len = addr_len(a);
	if (!fuzz_one_in(f, 10))
		return len;

	switch (fuzz_below(f, 6)) {
	case 0:
		a->sa.sa_family = fuzz_value(f);
		return len;
	case 1:
		return fuzz_length(f, sizeof(*a));
	case 2:
		for (size_t i = 0; i < sizeof(*a); i++)
			((u8 *)a)[i] = prng_next(&f->prng);
		a->sa.sa_family = fuzz_one_in(f, 2) ? AF_INET : AF_INET6;
		return addr_len(a);
	case 3:
		a->sa.sa_family = AF_UNSPEC;
		return fuzz_one_in(f, 2) ? sizeof(a->in) : sizeof(*a);
	case 4:
		a->in6.sin6_scope_id = fuzz_value(f);
		return sizeof(*a);
	default:
		return fuzz_value(f);
	}
}

/* ------------------------------------------------------------------- regions */

/* Keys of fuzzers, and some that nobody has: a program that guesses another's
 * key may use it, so these are left alone.
 */
u64 fuzz_cookie(struct fuzz *f)
{
	u64 cookie = 0, at;

	for (int i = 0; i < 8 && !cookie; i++) {
		at = fuzz_below(f, FUZZ_COOKIES);
		cookie = READ_ONCE(fuzz_shared->cookies[at]);
	}
	switch (fuzz_below(f, 16)) {
	case 0:
		return cookie + (fuzz_value(f) << 32);
	case 1:
		return (fuzz_value(f) << 32) | (fuzz_one_in(f, 2) ? ~0u : 0);
	default:
		return cookie;
	}
}

static u64 rdma_flags(struct fuzz *f)
{
	return fuzz_one_in(f, 16) ? fuzz_value(f) : fuzz_below(f, 128);
}

/* The cookie comes back to where another call finds it */
static u64 cookie_to(struct fuzz *f)
{
	if (fuzz_one_in(f, 8))
		return fuzz_mem_any(f, sizeof(u64));
	return (uintptr_t)&fuzz_shared->cookies[fuzz_below(f, FUZZ_COOKIES)];
}

/* Half of them are as they should be */
static struct rds_iovec piece(struct fuzz *f)
{
	u64 bytes;

	if (fuzz_one_in(f, 2)) {
		bytes = 1 + fuzz_below(f, fuzz_one_in(f, 2) ? 200 : 20000);
		return (struct rds_iovec){ fuzz_mem_good(f, bytes), bytes };
	}
	bytes = fuzz_one_in(f, 12) ? fuzz_value(f) : fuzz_length(f, 100000);
	return (struct rds_iovec){ fuzz_mem_any(f, bytes), bytes };
}

/* ------------------------------------------------------------------------ ops */

static size_t rdma_args(struct fuzz *f, struct rds_rdma_args *args)
{
	static __thread struct rds_iovec vec[VECTOR];
	u64 nr = 1 + fuzz_below(f, fuzz_one_in(f, 4) ? VECTOR : 1), bytes = 0;

	for (u64 i = 0; i < nr; i++) {
		vec[i] = piece(f);
		bytes += vec[i].bytes;
	}
	args->cookie = fuzz_cookie(f);
	args->remote_vec.addr = fuzz_one_in(f, 4) ? fuzz_value(f) :
						    fuzz_below(f, 64);
	args->remote_vec.bytes = fuzz_one_in(f, 8) ? fuzz_value(f) : bytes;
	args->local_vec_addr = (uintptr_t)fuzz_mem_copy(f, vec, sizeof(vec));
	args->nr_local = fuzz_one_in(f, 12) ? fuzz_value(f) : nr;
	args->flags = rdma_flags(f);
	args->user_token = fuzz_value(f);
	return sizeof(*args);
}

static size_t atomic_args(struct fuzz *f, struct rds_atomic_args *args)
{
	args->cookie = fuzz_cookie(f);
	args->local_addr = fuzz_mem_any(f, sizeof(u64)) & -(u64)8;
	args->remote_addr = fuzz_one_in(f, 4) ? fuzz_value(f) :
						fuzz_below(f, 64) * 8;
	args->m_cswp.compare = fuzz_value(f);
	args->m_cswp.swap = fuzz_value(f);
	args->m_cswp.compare_mask = fuzz_value(f);
	args->m_cswp.swap_mask = fuzz_value(f);
	args->flags = rdma_flags(f);
	args->user_token = fuzz_value(f);
	return sizeof(*args);
}

static size_t barrier_args(struct fuzz *f, struct xrds_barrier *b)
{
	union addr a;

	fuzz_addr(f, &a);
	if (fuzz_one_in(f, 4))
		memset(&a, 0, sizeof(a));
	memcpy(&b->dest, &a, sizeof(b->dest));
	b->rdma_id = fuzz_one_in(f, 6) ? fuzz_value(f) : fuzz_below(f, 12);
	b->flags = fuzz_one_in(f, 12) ? fuzz_value(f) : fuzz_below(f, 2);
	b->timeout_ms = fuzz_one_in(f, 4) ? fuzz_value(f) : fuzz_below(f, 8);
	return sizeof(*b);
}

static size_t map_args(struct fuzz *f, struct rds_get_mr_args *args)
{
	args->vec = piece(f);
	args->cookie_addr = cookie_to(f);
	args->flags = rdma_flags(f);
	return sizeof(*args);
}

size_t fuzz_content(struct fuzz *f, int type, void *data)
{
	u64 value;

	switch (type) {
	case RDS_CMSG_RDMA_ARGS:
		return rdma_args(f, data);
	case RDS_CMSG_ATOMIC_FADD:
	case RDS_CMSG_ATOMIC_CSWP:
	case RDS_CMSG_MASKED_ATOMIC_FADD:
	case RDS_CMSG_MASKED_ATOMIC_CSWP:
		return atomic_args(f, data);
	case RDS_CMSG_RDMA_MAP:
		return map_args(f, data);
	case XRDS_CMSG_BARRIER:
		return barrier_args(f, data);
	case RDS_CMSG_RDMA_DEST:
		value = fuzz_cookie(f);
		break;
	case XRDS_CMSG_RDMA_ID:
		value = (uintptr_t)&fuzz_shared->ids[fuzz_below(f,
								FUZZ_COOKIES)];
		if (fuzz_one_in(f, 4))
			value = fuzz_mem_any(f, sizeof(u64));
		break;
	default:
		value = fuzz_value(f);
		break;
	}
	memcpy(data, &value, sizeof(value));
	return sizeof(value);
}

int fuzz_cmsg_type(struct fuzz *f)
{
	static const int types[] = {
		RDS_CMSG_RDMA_ARGS, RDS_CMSG_RDMA_ARGS, RDS_CMSG_RDMA_ARGS,
		RDS_CMSG_RDMA_DEST, RDS_CMSG_RDMA_MAP, RDS_CMSG_RDMA_MAP,
		RDS_CMSG_ATOMIC_FADD, RDS_CMSG_ATOMIC_CSWP,
		RDS_CMSG_MASKED_ATOMIC_FADD, RDS_CMSG_MASKED_ATOMIC_CSWP,
		XRDS_CMSG_RDMA_ID, XRDS_CMSG_RDMA_ID, XRDS_CMSG_BARRIER,
		XRDS_CMSG_BARRIER,
	};

	if (fuzz_one_in(f, 24))
		return fuzz_one_in(f, 4) ? fuzz_int(f) :
					   (int)fuzz_below(f, 120);
	return types[fuzz_below(f, ARRAY_SIZE(types))];
}
