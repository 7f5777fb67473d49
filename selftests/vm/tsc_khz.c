// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints the frequency of this machine's time stamp counter in kHz, or 0 if it
 * has none.
 *
 * Guests under TCG see the host's counter. A guest finds its frequency out at
 * boot, against an emulated timer, and on a busy host it can be wrong by a
 * factor of two or three: then its clock and all its timeouts are, too.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>

enum { WINDOW_MS = 100, TRIES = 1000 };

struct sample {
	uint64_t ns;
	uint64_t tsc;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Both at one moment: the try that was interrupted the least. */
static struct sample take(void)
{
	uint64_t best = UINT64_MAX;
	struct sample sample = {};

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = now_ns();
		uint64_t tsc = __rdtsc();
		uint64_t took = now_ns() - before;

		if (took < best) {
			best = took;
			sample.ns = before + took / 2;
			sample.tsc = tsc;
		}
	}
	return sample;
}

static uint64_t tsc_khz(void)
{
	struct timespec window = { .tv_nsec = WINDOW_MS * 1000000 };
	struct sample first = take(), last;

	nanosleep(&window, NULL);
	last = take();
	return (last.tsc - first.tsc) * 1000000 / (last.ns - first.ns);
}
#else
static uint64_t tsc_khz(void)
{
	return 0;
}
#endif

int main(void)
{
	printf("%llu\n", (unsigned long long)tsc_khz());
	return 0;
}
