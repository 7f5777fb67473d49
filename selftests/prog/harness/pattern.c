// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages whose content and position can be checked.
 *
 * Bodies are cut out of a stream of random bytes that is made once, at an
 * offset that is a hash of the key: filling and checking run at the speed of
 * memcpy and memcmp, which matters in an emulated machine, and still no two
 * places of the stream look alike.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"
#include "tap.h"

enum {
	STREAM_BYTES	= 1 << 21,
	OFFSETS		= 1 << 20,	/* the rest is the longest message */
	MAGIC		= 0x78524453,
};

struct head {
	u32 magic;
	u32 from;
	u32 to;
	u32 len;
	u64 seq;
	u64 seed;
	u64 sum;	/* of everything, this field being 0 */
};

static_assert(sizeof(struct head) == PATTERN_HEAD_BYTES, "no padding");

static u64 seed;
static unsigned char *stream;

static u64 mix(u64 z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

u64 prng_next(struct prng *prng)
{
	prng->state += 0x9e3779b97f4a7c15ull;
	return mix(prng->state);
}

u64 prng_below(struct prng *prng, u64 bound)
{
	return prng_next(prng) % bound;
}

void pattern_init(u64 new_seed)
{
	struct prng prng = { new_seed };
	u64 word;

	seed = new_seed;
	if (!stream)
		stream = malloc(STREAM_BYTES);
	if (!stream)
		tap_fail("no memory");
	for (size_t i = 0; i < STREAM_BYTES; i += sizeof(word)) {
		word = prng_next(&prng);
		memcpy(stream + i, &word, sizeof(word));
	}
}

static u64 hash(const struct pattern_key *key, u64 salt)
{
	u64 ends = (u64)key->from << 32 | key->to;

	return mix(mix(mix(seed ^ salt) + ends) + key->seq);
}

static const unsigned char *body(const struct pattern_key *key, size_t len)
{
	return stream + hash(key, len) % OFFSETS;
}

static u64 checksum(const unsigned char *data, size_t len)
{
	u64 sum = len, word;

	for (; len >= sizeof(word); data += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, data, sizeof(word));
		sum = (sum ^ word) * 0x100000001b3ull;
		sum ^= sum >> 32;
	}
	for (; len; len--)
		sum = (sum ^ *data++) * 0x100000001b3ull;
	return sum;
}

static u64 head_sum(const struct head *head, const void *data, size_t len)
{
	struct head copy = *head;

	copy.sum = 0;
	return checksum((unsigned char *)&copy, sizeof(copy)) +
	       checksum((const unsigned char *)data + sizeof(copy),
			len - sizeof(copy));
}

static void fill_head(struct head *head, size_t len,
		      const struct pattern_key *key)
{
	*head = (struct head){
		.magic = MAGIC,
		.from = key->from,
		.to = key->to,
		.len = len,
		.seq = key->seq,
		.seed = seed,
	};
}

void pattern_fill(void *data, size_t len, const struct pattern_key *key)
{
	struct head head;

	memcpy(data, body(key, len), len);
	if (len < sizeof(head))
		return;
	fill_head(&head, len, key);
	head.sum = head_sum(&head, data, len);
	memcpy(data, &head, sizeof(head));
}

bool pattern_same(const void *data, size_t len, const struct pattern_key *key)
{
	const unsigned char *want = body(key, len);
	const unsigned char *got = data;
	struct head head, got_head;

	if (len < sizeof(head))
		return !memcmp(got, want, len);
	fill_head(&head, len, key);
	memcpy(&got_head, got, sizeof(got_head));
	head.sum = got_head.sum;	/* covered by the memcmp() below */
	return !memcmp(&head, &got_head, sizeof(head)) &&
	       !memcmp(got + sizeof(head), want + sizeof(head),
		       len - sizeof(head));
}

bool pattern_intact(const void *data, size_t len, struct pattern_key *key)
{
	struct head head;

	if (len < sizeof(head))
		return false;
	memcpy(&head, data, sizeof(head));
	*key = (struct pattern_key){ head.from, head.to, head.seq };
	return head.magic == MAGIC && head.len == len &&
	       head.sum == head_sum(&head, data, len);
}

void pattern_explain(const void *data, size_t len,
		     const struct pattern_key *key, char *text, size_t size)
{
	size_t want_len = pattern_size(key, OFFSETS);
	const unsigned char *want = body(key, len);
	const unsigned char *got = data;
	struct pattern_key is;
	struct head head;
	size_t at;

	if (pattern_intact(data, len, &is)) {
		memcpy(&head, data, sizeof(head));
		snprintf(text, size,
			 "it is intact, but message %llu from %u to %u of seed %llu",
			 is.seq, is.from, is.to,
			 head.seed);
		return;
	}
	for (at = len < sizeof(head) ? 0 : sizeof(head); at < len; at++)
		if (got[at] != want[at])
			break;
	snprintf(text, size,
		 "its bytes differ from offset %zu (length by the schedule: %zu)",
		 at < len ? at : 0, want_len);
}

size_t pattern_size(const struct pattern_key *key, size_t max)
{
	static const u32 edges[] = {
		0, 1, 47, 48, 49, 4047, 4048, 4049, 4095, 4096, 4097,
		16335, 16336, 16337, 16383, 16384, 16385, 32671, 32672, 32673,
	};
	static const struct { u32 permille, max; } classes[] = {
		{ 40, 0 }, { 560, 256 }, { 270, 4096 }, { 60, 16384 },
		{ 17, 65536 }, { 2, 262144 }, { 1, 1 << 20 },
	};
	struct prng prng = { hash(key, 1) };
	u32 draw = prng_below(&prng, 1000);
	size_t len;

	for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
		if (draw < classes[i].permille) {
			len = prng_below(&prng, classes[i].max + 1ull);
			return len < max ? len : max;
		}
		draw -= classes[i].permille;
	}
	len = edges[prng_below(&prng, ARRAY_SIZE(edges))];
	return len < max ? len : max;
}

u64 digest(const void *data, size_t len)
{
	u64 sum = 0xcbf29ce484222325ull;
	const unsigned char *p = data;

	while (len--)
		sum = (sum ^ *p++) * 0x100000001b3ull;
	return sum;
}
