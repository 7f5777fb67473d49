// SPDX-License-Identifier: GPL-2.0-only
/*
 * The histogram of latencies, the load of the system during the measurement,
 * and the output.
 *
 * The histogram has STEPS buckets of equal width between two powers of two, so
 * a value read from it is at most 1/STEPS too low.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "perf.h"

enum {
	STEP_BITS	= 5,
	STEPS		= 1 << STEP_BITS,
	BUCKETS		= (64 - STEP_BITS + 1) * STEPS,
};

static uint64_t buckets[BUCKETS];
static struct {
	uint64_t count, sum, min, max;
} latency;

static const double percents[] = { 50, 90, 99, 99.9 };

#define NR_PERCENTS ((int)(sizeof(percents) / sizeof(*percents)))

/* Values of /proc/stat, /proc/schedstat and our own clock */
struct system {
	uint64_t switches;
	uint64_t softirqs;
	uint64_t cpu_ns;
	uint64_t busy_ns;	/* of all processors; 0: not counted */
};

static struct system before;

/* --------------------------------------------------------------- histogram */

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int shift;

	if (ns < STEPS)
		return ns;
	shift = 63 - __builtin_clzll(ns) - STEP_BITS;
	return (shift + 1) * STEPS + (ns >> shift) - STEPS;
}

/* The lower bound of a bucket */
static uint64_t bucket_ns(unsigned int bucket)
{
	unsigned int shift;

	if (bucket < STEPS)
		return bucket;
	shift = bucket / STEPS - 1;
	return (uint64_t)(STEPS + bucket % STEPS) << shift;
}

/* --------------------------------------------------------- line a second */

/* Written by the thread that measures, read by the one that prints */
static uint64_t done_now, worst_ns;

void report_done(uint64_t count)
{
	__atomic_store_n(&done_now, done_now + count, __ATOMIC_RELAXED);
}

static void report_worst(uint64_t ns)
{
	if (ns > __atomic_load_n(&worst_ns, __ATOMIC_RELAXED))
		__atomic_store_n(&worst_ns, ns, __ATOMIC_RELAXED);
}

static void sleep_until(const struct timespec *ts)
{
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, ts, NULL))
		;
}

static void *print_seconds(void *arg)
{
	uint64_t last = done_now, count, worst;
	unsigned long second = 0;
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	for (;;) {
		ts.tv_sec++;
		sleep_until(&ts);
		count = __atomic_load_n(&done_now, __ATOMIC_RELAXED) - last;
		last += count;
		worst = __atomic_exchange_n(&worst_ns, 0, __ATOMIC_RELAXED);
		printf("%4lu s: %lu, %.3f Gbit/s", ++second, count,
		       (double)count * opt.bytes * 8 / 1e9);
		if (worst)
			printf(", slowest %.3f us", worst / 1000.0);
		putchar('\n');
		fflush(stdout);
	}
	return NULL;
}

void report_seconds(void)
{
	pthread_t thread;

	if (!opt.json && !pthread_create(&thread, NULL, print_seconds, NULL))
		pthread_detach(thread);
}

void report_latency(uint64_t ns)
{
	report_worst(ns);
	buckets[bucket_of(ns)]++;
	if (!latency.count || ns < latency.min)
		latency.min = ns;
	if (ns > latency.max)
		latency.max = ns;
	latency.count++;
	latency.sum += ns;
}

static uint64_t percentile(double percent)
{
	uint64_t rank = latency.count * percent / 100, seen = 0;

	if (rank >= latency.count)
		return latency.max;
	for (unsigned int i = 0; i < BUCKETS; i++) {
		seen += buckets[i];
		if (seen > rank)
			return bucket_ns(i) < latency.min ? latency.min :
							    bucket_ns(i);
	}
	return latency.max;
}

/* ------------------------------------------------------------------ system */

/*
 * How long processors had a task to run. The kernel adds a task's time when the
 * task leaves its processor, so we sleep for the shortest possible time.
 */
static uint64_t busy_ns(void)
{
	struct timespec shortest = { .tv_nsec = 1 };
	uint64_t value, sum = 0;
	char *line = NULL;
	size_t room = 0;
	FILE *file;

	nanosleep(&shortest, NULL);
	file = fopen("/proc/schedstat", "re");
	if (!file)
		return 0;
	while (getline(&line, &room, file) > 0) {
		if (sscanf(line, "cpu%*u %*u %*u %*u %*u %*u %*u %lu",
			   &value) == 1)
			sum += value;
	}
	free(line);
	fclose(file);
	return sum;
}

static void look_at_system(struct system *s)
{
	struct timespec ts;
	unsigned long value;
	char *line = NULL;
	size_t room = 0;
	FILE *file;

	memset(s, 0, sizeof(*s));
	s->busy_ns = busy_ns();
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	s->cpu_ns = ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
	file = fopen("/proc/stat", "re");
	if (!file)
		return;
	while (getline(&line, &room, file) > 0) {
		if (sscanf(line, "ctxt %lu", &value) == 1)
			s->switches = value;
		else if (sscanf(line, "softirq %lu", &value) == 1)
			s->softirqs = value;
	}
	free(line);
	fclose(file);
}

void report_begin(void)
{
	look_at_system(&before);
}

/* ------------------------------------------------------------------ output */

static const char *completion(void)
{
	if (opt.mode == ECHO || opt.mode == STREAM)
		return "none";
	return opt.notices ? "notice" : "barrier";
}

static void json_latency(void)
{
	const char *comma = "";

	printf(",\"latency_ns\":{\"count\":%lu,\"min\":%lu,\"mean\":%.0f",
	       latency.count, latency.min,
	       (double)latency.sum / latency.count);
	for (int i = 0; i < NR_PERCENTS; i++)
		printf(",\"p%g\":%lu", percents[i], percentile(percents[i]));
	printf(",\"max\":%lu}", latency.max);
	if (!opt.histogram)
		return;
	printf(",\"histogram\":[");
	for (unsigned int i = 0; i < BUCKETS; i++) {
		if (!buckets[i])
			continue;
		printf("%s[%lu,%lu]", comma, bucket_ns(i), buckets[i]);
		comma = ",";
	}
	printf("]");
}

static void json(uint64_t messages, uint64_t ns, const struct system *used)
{
	printf("{\"mode\":\"%s\",\"bytes\":%u,\"answer_bytes\":%u",
	       mode_names[opt.mode], opt.bytes, opt.answer);
	printf(",\"depth\":%u,\"sockets\":%u,\"completion\":\"%s\"",
	       opt.depth, opt.sockets, completion());
	printf(",\"messages\":%lu,\"elapsed_ns\":%lu,\"ns_per_message\":%.1f",
	       messages, ns, (double)ns / messages);
	printf(",\"bytes_per_second\":%.0f,\"context_switches\":%lu",
	       (double)messages * opt.bytes * NSEC_PER_SEC / ns,
	       used->switches);
	printf(",\"softirqs\":%lu,\"cpu_ns\":%lu,\"busy_ns\":%lu",
	       used->softirqs, used->cpu_ns, used->busy_ns);
	if (latency.count)
		json_latency();
	printf("}\n");
}

static void text_histogram(void)
{
	for (unsigned int i = 0; i < BUCKETS; i++) {
		if (buckets[i])
			printf("  %12.3f us %10lu\n", bucket_ns(i) / 1000.0,
			       buckets[i]);
	}
}

static void text(uint64_t messages, uint64_t ns, const struct system *used)
{
	printf("%s of %u bytes, depth %u, %u sockets: %lu in %.3f s\n",
	       mode_names[opt.mode], opt.bytes, opt.depth, opt.sockets,
	       messages, (double)ns / NSEC_PER_SEC);
	printf("  %.0f a second, %.3f us each, %.3f MB/s, %.3f Gbit/s\n",
	       (double)messages * NSEC_PER_SEC / ns,
	       (double)ns / messages / 1000.0,
	       (double)messages * opt.bytes * 1000 / ns,
	       (double)messages * opt.bytes * 8 / ns);
	printf("  each: %.2f context switches and %.2f softirqs of this system\n",
	       (double)used->switches / messages,
	       (double)used->softirqs / messages);
	printf("  each: %.3f us of CPU in this program, %.3f in this system\n",
	       (double)used->cpu_ns / messages / 1000.0,
	       (double)used->busy_ns / messages / 1000.0);
	if (!latency.count)
		return;
	printf("  latency (us): min %.3f mean %.3f", latency.min / 1000.0,
	       (double)latency.sum / latency.count / 1000.0);
	for (int i = 0; i < NR_PERCENTS; i++)
		printf(" %g%% %.3f", percents[i],
		       percentile(percents[i]) / 1000.0);
	printf(" max %.3f\n", latency.max / 1000.0);
	if (opt.histogram)
		text_histogram();
}

void report_end(uint64_t messages, uint64_t elapsed_ns)
{
	struct system after;

	look_at_system(&after);
	after.switches -= before.switches;
	after.softirqs -= before.softirqs;
	after.cpu_ns -= before.cpu_ns;
	after.busy_ns -= before.busy_ns;
	messages = messages ?: 1;
	if (opt.json)
		json(messages, elapsed_ns, &after);
	else
		text(messages, elapsed_ns, &after);
	fflush(stdout);
}
