// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters: ours by RDS_INFO_COUNTERS, the RDMA device's from sysfs, and a
 * few that /proc has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counters.h"
#include "dump.h"
#include "tap.h"

struct counters counters_read(void)
{
	int fd = rds_socket();
	struct dump d = dump_read(fd, RDS_INFO_COUNTERS,
				  sizeof(struct rds_info_counter));

	close(fd);
	return (struct counters){ .all = d.rows, .nr = d.nr };
}

void counters_free(struct counters *c)
{
	free(c->all);
	c->all = NULL;
	c->nr = 0;
}

long long counters_get(const struct counters *c, const char *name)
{
	for (size_t i = 0; i < c->nr; i++)
		if (!strncmp((const char *)c->all[i].name, name,
			     sizeof(c->all[i].name)))
			return c->all[i].value;
	return -1;
}

void counters_print(const struct counters *c)
{
	for (size_t i = 0; i < c->nr; i++)
		if (c->all[i].value)
			tap_diag("%.32s %llu", c->all[i].name,
				 c->all[i].value);
}

long long counter_now(const char *name)
{
	struct counters c = counters_read();
	long long value = counters_get(&c, name);

	counters_free(&c);
	if (value < 0)
		tap_fail("no counter %s", name);
	return value;
}

static long long read_number(const char *path)
{
	FILE *file = fopen(path, "r");
	long long value = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%lld", &value) != 1)
		value = -1;
	fclose(file);
	return value;
}

long long hw_counter(const char *device, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path),
		 "/sys/class/infiniband/%s/ports/1/hw_counters/%s", device,
		 name);
	return read_number(path);
}

long long module_refs(const char *module)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/module/%s/refcnt", module);
	return read_number(path);
}

long long protocol_sockets(void)
{
	FILE *file = fopen("/proc/net/protocols", "r");
	long long size, sockets, found = -1;
	char line[256], name[64];

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%63s %lld %lld", name, &size, &sockets) == 3 &&
		    !strcmp(name, "XRDS"))
			found = sockets;
	fclose(file);
	return found;
}

/* The sum of the numbers in all lines of a file that look like @format */
static long long sum_of(const char *path, const char *format)
{
	FILE *file = fopen(path, "r");
	long long sum = 0, value;
	char line[256];

	if (!file)
		tap_fail("no %s", path);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, format, &value) == 1)
			sum += value;
	fclose(file);
	return sum;
}

long long memory_available(void)
{
	return sum_of("/proc/meminfo", "MemAvailable: %lld") * 1024 +
	       sum_of("/proc/zoneinfo", " count: %lld") * sysconf(_SC_PAGESIZE);
}

struct reach {
	const char *name;
	long long least;
};

static bool reached(void *arg)
{
	const struct reach *r = arg;

	return counter_now(r->name) >= r->least;
}

bool counter_reaches(const char *name, long long least, int ms)
{
	struct reach r = { name, least };

	return tap_wait(reached, &r, ms);
}
