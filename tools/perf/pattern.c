// SPDX-License-Identifier: GPL-2.0-only
/*
 * Patterns of payload, for --verify. A pattern is an endless sequence of bytes
 * that looks random. Each message has one of its own, so a message that is lost,
 * comes twice or comes in the place of another one is found as well as one with
 * wrong bytes. Both ends compute the pattern: the port of the client's socket
 * and the number of the message are all that it follows from.
 */
#include <stdio.h>

#include "perf.h"

enum { WORD = sizeof(uint64_t) };

uint64_t pattern_of_message(uint16_t port, uint64_t number)
{
	return (uint64_t)port << 48 ^ number << 1;
}

uint64_t pattern_of_answer(uint16_t port, uint64_t number)
{
	return pattern_of_message(port, number) | 1;
}

uint64_t pattern_of_memory(uint64_t turn)
{
	return pattern_of_message(0, turn);
}

/* Multiplications by odd constants, and shifts between them: splitmix64 */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t word_of(uint64_t pattern, uint64_t index)
{
	return mix(mix(pattern) + index * 0x9e3779b97f4a7c15ull);
}

static uint8_t byte_of(uint64_t word, uint64_t at)
{
	return word >> at % WORD * 8;
}

void pattern_fill(void *buf, size_t bytes, uint64_t pattern, uint64_t offset)
{
	uint64_t word = word_of(pattern, offset / WORD);
	uint8_t *out = buf;

	for (size_t i = 0; i < bytes; i++) {
		if ((offset + i) % WORD == 0)
			word = word_of(pattern, (offset + i) / WORD);
		out[i] = byte_of(word, offset + i);
	}
}

bool pattern_check(const void *buf, size_t bytes, uint64_t pattern,
		   uint64_t offset, char *text, size_t text_bytes)
{
	uint64_t word = word_of(pattern, offset / WORD);
	const uint8_t *in = buf;

	for (size_t i = 0; i < bytes; i++) {
		if ((offset + i) % WORD == 0)
			word = word_of(pattern, (offset + i) / WORD);
		if (in[i] == byte_of(word, offset + i))
			continue;
		snprintf(text, text_bytes, "byte %zu is 0x%02x instead of 0x%02x",
			 i, in[i], byte_of(word, offset + i));
		return false;
	}
	return true;
}
