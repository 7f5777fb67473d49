// SPDX-License-Identifier: GPL-2.0-only
/*
 * The histogram of latencies, the load of the system during the measurement,
 * and the output.
 *
 * The histogram has STEPS buckets of equal width between two powers of two, so
 * a value read from it is at most 1/STEPS too low.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "perf.h"
#include "text.h"

enum { MAX_ITEMS = 24 + 2 * MAX_OUTLIERS };

static struct result own;
struct result *result = &own;

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

/* One process writes, and its parent reads. */
void report_done(uint64_t count)
{
	__atomic_store_n(&result->done, result->done + count, __ATOMIC_RELAXED);
}

static void add_outlier(struct result *r, const struct outlier *o)
{
	uint32_t i = r->nr_outliers;

	if (i < opt.outliers)
		r->nr_outliers++;
	else if (!i || r->outliers[--i].ns >= o->ns)
		return;
	for (; i && r->outliers[i - 1].ns < o->ns; i--)
		r->outliers[i] = r->outliers[i - 1];
	r->outliers[i] = *o;
}

static void note_outlier(uint64_t ns)
{
	struct outlier o = { .ns = ns, .host = result->host };

	if (result->nr_outliers == opt.outliers &&
	    result->outliers[opt.outliers - 1].ns >= ns)
		return;
	o.at_ns = now_ns() - result->begin_ns;
	add_outlier(result, &o);
}

void report_latency(uint64_t ns)
{
	struct result *r = result;

	if (ns > __atomic_load_n(&r->worst_ns, __ATOMIC_RELAXED))
		__atomic_store_n(&r->worst_ns, ns, __ATOMIC_RELAXED);
	r->buckets[bucket_of(ns)]++;
	if (!r->latency.count || ns < r->latency.min)
		r->latency.min = ns;
	if (ns > r->latency.max)
		r->latency.max = ns;
	r->latency.count++;
	r->latency.sum += ns;
	if (opt.outliers)
		note_outlier(ns);
}

void report_add(const struct result *task)
{
	struct result *r = result;

	if (!r->begin_ns || task->begin_ns < r->begin_ns)
		r->begin_ns = task->begin_ns;
	if (task->end_ns > r->end_ns)
		r->end_ns = task->end_ns;
	r->done += task->done;
	r->cpu_ns += task->cpu_ns;
	if (task->latency.count &&
	    (!r->latency.count || task->latency.min < r->latency.min))
		r->latency.min = task->latency.min;
	if (task->latency.max > r->latency.max)
		r->latency.max = task->latency.max;
	r->latency.count += task->latency.count;
	r->latency.sum += task->latency.sum;
	for (unsigned int i = 0; i < BUCKETS; i++)
		r->buckets[i] += task->buckets[i];
	for (uint32_t i = 0; i < task->nr_outliers; i++)
		add_outlier(r, &task->outliers[i]);
}

static uint64_t percentile(double percent)
{
	uint64_t rank = own.latency.count * percent / 100, seen = 0;

	if (rank >= own.latency.count)
		return own.latency.max;
	for (unsigned int i = 0; i < BUCKETS; i++) {
		seen += own.buckets[i];
		if (seen > rank)
			return bucket_ns(i) < own.latency.min ? own.latency.min :
							    bucket_ns(i);
	}
	return own.latency.max;
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
		if (sscanf(line, "cpu%*u %*u %*u %*u %*u %*u %*u %" SCNu64,
			   &value) == 1)
			sum += value;
	}
	free(line);
	fclose(file);
	return sum;
}

uint64_t report_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void look_at_system(struct system *s)
{
	uint64_t value;
	char *line = NULL;
	size_t room = 0;
	FILE *file;

	memset(s, 0, sizeof(*s));
	s->busy_ns = busy_ns();
	s->cpu_ns = report_cpu_ns();
	file = fopen("/proc/stat", "re");
	if (!file)
		return;
	while (getline(&line, &room, file) > 0) {
		if (sscanf(line, "ctxt %" SCNu64, &value) == 1)
			s->switches = value;
		else if (sscanf(line, "softirq %" SCNu64, &value) == 1)
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
	if (opt.mode != WRITE && opt.mode != READ)
		return "none";
	return opt.notices ? "notice" : "barrier";
}

/* The values of the summary, for JSON and CSV. Text has quotes. */
static struct item {
	const char *group;	/* NULL: none */
	char name[24];
	char value[32];
} items[MAX_ITEMS];
static int nr_items;

static struct item *item(const char *group, const char *name)
{
	struct item *new = &items[nr_items++];

	new->group = group;
	snprintf(new->name, sizeof(new->name), "%s", name);
	return new;
}

static void add_text(const char *name, const char *value)
{
	struct item *new = item(NULL, name);

	snprintf(new->value, sizeof(new->value), "\"%s\"", value);
}

static void add_number(const char *group, const char *name, uint64_t value)
{
	struct item *new = item(group, name);

	snprintf(new->value, sizeof(new->value), "%" PRIu64, value);
}

static void add_real(const char *group, const char *name, double value,
		     int digits)
{
	struct item *new = item(group, name);

	snprintf(new->value, sizeof(new->value), "%.*f", digits, value);
}

static void add_latency(void)
{
	static const char group[] = "latency_ns";
	char name[16];

	add_number(group, "count", own.latency.count);
	add_number(group, "min", own.latency.min);
	add_real(group, "mean", (double)own.latency.sum / own.latency.count, 0);
	for (int i = 0; i < NR_PERCENTS; i++) {
		snprintf(name, sizeof(name), "p%g", percents[i]);
		add_number(group, name, percentile(percents[i]));
	}
	add_number(group, "max", own.latency.max);
}

/* Of a message, or of its answer if that is larger */
uint32_t report_bytes(void)
{
	return opt.mode == ECHO && opt.answer > opt.bytes ? opt.answer :
							    opt.bytes;
}

static void add_all(uint64_t messages, uint64_t ns, const struct system *used)
{
	add_text("mode", mode_names[opt.mode]);
	add_number(NULL, "bytes", opt.bytes);
	add_number(NULL, "answer_bytes", opt.answer);
	add_number(NULL, "depth", opt.depth);
	add_number(NULL, "sockets", opt.sockets);
	add_number(NULL, "tasks", opt.tasks);
	add_text("completion", completion());
	add_number(NULL, "messages", messages);
	add_number(NULL, "elapsed_ns", ns);
	add_real(NULL, "ns_per_message", (double)ns / messages, 1);
	add_real(NULL, "bytes_per_second",
		 (double)messages * report_bytes() * NSEC_PER_SEC / ns, 0);
	add_number(NULL, "context_switches", used->switches);
	add_number(NULL, "softirqs", used->softirqs);
	add_number(NULL, "cpu_ns", used->cpu_ns);
	add_number(NULL, "busy_ns", used->busy_ns);
	if (own.latency.count)
		add_latency();
}

static void csv(void)
{
	char name[24];

	for (uint32_t i = 0; i < own.nr_outliers; i++) {
		snprintf(name, sizeof(name), "outlier%u_ns", i + 1);
		add_number(NULL, name, own.outliers[i].ns);
		snprintf(name, sizeof(name), "outlier%u_s", i + 1);
		add_real(NULL, name, (double)own.outliers[i].at_ns / NSEC_PER_SEC,
			 3);
	}
	for (int i = 0; i < nr_items; i++)
		printf("%s%s%s%s", i ? "," : "", items[i].group ?: "",
		       items[i].group ? "_" : "", items[i].name);
	for (int i = 0; i < nr_items; i++)
		printf("%c%s", i ? ',' : '\n', items[i].value);
	putchar('\n');
}

static void json_histogram(void)
{
	const char *comma = "";

	printf(",\"histogram\":[");
	for (unsigned int i = 0; i < BUCKETS; i++) {
		if (!own.buckets[i])
			continue;
		printf("%s[%" PRIu64 ",%" PRIu64 "]", comma, bucket_ns(i), own.buckets[i]);
		comma = ",";
	}
	printf("]");
}

static void json_outliers(void)
{
	const struct outlier *o = own.outliers;

	printf(",\"outliers\":[");
	for (uint32_t i = 0; i < own.nr_outliers; i++, o++) {
		printf("%s{\"ns\":%" PRIu64 ",\"at_s\":%.3f", i ? "," : "", o->ns,
		       (double)o->at_ns / NSEC_PER_SEC);
		if (opt.mesh) {
			printf(",\"host\":");
			text_json(o->host);
		}
		printf("}");
	}
	printf("]");
}

static void json_parts(const struct result *parts, uint32_t nr)
{
	printf(",\"peers\":[");
	for (uint32_t i = 0; i < nr; i++) {
		printf("%s{\"host\":", i ? "," : "");
		text_json(parts[i].host);
		printf(",\"messages\":%" PRIu64 ",\"max_ns\":%" PRIu64 "}",
		       parts[i].done, parts[i].latency.max);
	}
	printf("]");
}

static void json(const struct result *parts, uint32_t nr_parts)
{
	const char *group = NULL;

	for (int i = 0; i < nr_items; i++) {
		const char *separator = i ? "," : "{";

		if (items[i].group && !group) {
			printf(",\"%s\":", items[i].group);
			separator = "{";
		}
		group = items[i].group;
		printf("%s\"%s\":%s", separator, items[i].name, items[i].value);
	}
	if (group)
		printf("}");
	if (opt.histogram && own.latency.count)
		json_histogram();
	if (opt.outliers)
		json_outliers();
	if (nr_parts)
		json_parts(parts, nr_parts);
	printf("}\n");
}

static void text_histogram(void)
{
	for (unsigned int i = 0; i < BUCKETS; i++) {
		if (own.buckets[i])
			printf("  %12.3f us %10" PRIu64 "\n", bucket_ns(i) / 1000.0,
			       own.buckets[i]);
	}
}

static void text_outliers(void)
{
	const struct outlier *o = own.outliers;

	for (uint32_t i = 0; i < own.nr_outliers; i++, o++)
		printf("  outlier: %.3f us at %.3f s%s%s\n", o->ns / 1000.0,
		       (double)o->at_ns / NSEC_PER_SEC, opt.mesh ? ", " : "",
		       opt.mesh ? o->host : "");
}

static void text_latency(void)
{
	printf("  latency (us): min %.3f mean %.3f", own.latency.min / 1000.0,
	       (double)own.latency.sum / own.latency.count / 1000.0);
	for (int i = 0; i < NR_PERCENTS; i++)
		printf(" %g%% %.3f", percents[i],
		       percentile(percents[i]) / 1000.0);
	printf(" max %.3f\n", own.latency.max / 1000.0);
	if (opt.histogram)
		text_histogram();
	text_outliers();
}

static void text(uint64_t messages, uint64_t ns, const struct system *used)
{
	printf("%s of %u bytes, depth %u, %u sockets, %u tasks: %" PRIu64 " in %.3f s\n",
	       mode_names[opt.mode], opt.bytes, opt.depth, opt.sockets,
	       opt.tasks, messages, (double)ns / NSEC_PER_SEC);
	printf("  %.0f a second, %.3f us each, %.3f MB/s, %.3f Gbit/s\n",
	       (double)messages * NSEC_PER_SEC / ns,
	       (double)ns / messages / 1000.0,
	       (double)messages * report_bytes() * 1000 / ns,
	       (double)messages * report_bytes() * 8 / ns);
	printf("  each: %.2f context switches and %.2f softirqs of this system\n",
	       (double)used->switches / messages,
	       (double)used->softirqs / messages);
	printf("  each: %.3f us of CPU in this program, %.3f in this system\n",
	       (double)used->cpu_ns / messages / 1000.0,
	       (double)used->busy_ns / messages / 1000.0);
	if (own.latency.count)
		text_latency();
}

static void text_parts(const struct result *parts, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		printf("  %s: %" PRIu64, parts[i].host, parts[i].done);
		if (parts[i].latency.count)
			printf(", slowest %.3f us",
			       parts[i].latency.max / 1000.0);
		putchar('\n');
	}
}

static void output(uint64_t messages, uint64_t ns, const struct result *parts,
		   uint32_t nr_parts)
{
	struct system after;

	look_at_system(&after);
	after.switches -= before.switches;
	after.softirqs -= before.softirqs;
	after.cpu_ns += own.cpu_ns - before.cpu_ns;
	after.busy_ns -= before.busy_ns;
	messages = messages ?: 1;
	if (opt.json || opt.csv)
		add_all(messages, ns, &after);
	if (opt.json) {
		json(parts, nr_parts);
	} else if (opt.csv) {
		csv();
	} else {
		text(messages, ns, &after);
		text_parts(parts, nr_parts);
	}
	fflush(stdout);
}

void report_end(uint64_t messages, uint64_t elapsed_ns)
{
	output(messages, elapsed_ns, NULL, 0);
}

void report_parts(const struct result *parts, uint32_t nr_parts)
{
	output(own.done, own.end_ns - own.begin_ns, parts, nr_parts);
}
