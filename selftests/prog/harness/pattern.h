/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages whose content and position can be checked.
 *
 * Each message is a function of (seed, sender, receiver, sequence, length):
 * both ends can make it, so a receiver that knows the next message compares all
 * of it. From PATTERN_HEAD_BYTES on a message begins with a header that
 * describes it and carries a checksum, to tell damage from a wrong order.
 */
#ifndef _XRDS_TEST_PATTERN_H
#define _XRDS_TEST_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "types.h"

struct prng {
	u64 state;
};

u64 prng_next(struct prng *prng);
/* 0 to bound - 1 */
u64 prng_below(struct prng *prng, u64 bound);

struct pattern_key {
	u32 from;
	u32 to;
	u64 seq;
};

enum { PATTERN_HEAD_BYTES = 40 };

/* Makes the stream that bodies are cut from; once, before anything else */
void pattern_init(u64 seed);
void pattern_fill(void *data, size_t len, const struct pattern_key *key);
bool pattern_same(const void *data, size_t len, const struct pattern_key *key);
/* A description of a message that is not the expected one */
void pattern_explain(const void *data, size_t len,
		     const struct pattern_key *key, char *text, size_t size);
/* Checks header and checksum alone, without knowing seed or position */
bool pattern_intact(const void *data, size_t len, struct pattern_key *key);

/*
 * The length of a message, the same at both ends: mostly small, some at the
 * edges of fragments, a few up to max bytes.
 */
size_t pattern_size(const struct pattern_key *key, size_t max);

/* 64-bit FNV-1a */
u64 digest(const void *data, size_t len);

#endif /* _XRDS_TEST_PATTERN_H */
