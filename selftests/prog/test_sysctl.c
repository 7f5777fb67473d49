// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sysctls: which there are, their defaults and their ranges.
 *
 * The table is written by hand. rxe/sysctl compares the defaults with those of
 * xrds(7), and check/docs the ranges.
 *
 * timeout: 60
 * modules: xrds_ib
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sock.h"
#include "tap.h"

enum {
	ALL_MEMORY	= -1,	/* default: the memory of the machine, in KiB */
	QUARTER		= -2,	/* a quarter of it */
	THIRTY_SECOND	= -3,	/* a thirty-second of it */
};

#define ANY		0xffffffffLL	/* as much as there is room for */
#define HOUR_MS		3600000LL
#define DAY_MS		86400000LL

/**
 * struct value - one sysctl
 * @name:	below /proc/sys/net
 * @usual:	default, or ALL_MEMORY, QUARTER, THIRTY_SECOND
 * @min:	least value
 * @max:	greatest value; the same if it cannot be written
 */
struct value {
	const char *name;
	long long usual;
	long long min;
	long long max;
};

static const struct value values[] = {
	{ "rds/reconnect_min_delay_ms", 1, 1, HOUR_MS },
	{ "rds/reconnect_max_delay_ms", 1000, 1, HOUR_MS },
	{ "rds/max_unacked_packets", 32, 1, ANY },
	{ "rds/max_unacked_bytes", 262144, 1, ANY },
	{ "rds/ping_enable", 1, 0, 1 },
	{ "rds/pf_rds", 21, 21, 21 },
	{ "rds/sol_rds", 276, 276, 276 },
	{ "rds/sock_max_peers", 8192, 1, 65536 },
	{ "rds/conn_heartbeat_interval_secs", 5, 0, 3600 },
	{ "rds/reconnect_passive_min_delay_ms", 3000, 0, ANY },
	{ "rds/conn_heartbeat_timeout_secs", 10, 0, ANY },
	{ "rds/dr_sock_cancel_delay_ms", 6000, 0, ANY },
	{ "rds/enable_payload_csums", 0, 0, ANY },
	{ "rds/shutdown_trace_start_time", 0, 0, ANY },
	{ "rds/shutdown_trace_end_time", 0, 0, ANY },
	{ "rds/ib/max_recv_allocation", 32768, 0, ANY },
	{ "rds/ib/flow_control", 0, 0, ANY },
	{ "rds/ib/max_unsolicited_wr", 16, 0, ANY },
	{ "rds/ib/disable_unmap_mr_cpu_assignment", 0, 0, ANY },
	{ "rds/ib/frwr_gc_interval", 5000, 0, ANY },
	{ "rds/ib/frwr_ibmr_gc_idle_time", 1000, 0, ANY },
	{ "rds/ib/frwr_ibmr_qrtn_time", 300000, 0, ANY },
	{ "rds/ib/frwr_poll_timeout_secs", 10, 0, ANY },
	{ "rds/ib/conn_dev_free_delay", 10000, 0, ANY },
	{ "rds/ib/yield_after_ms", 2000, 0, ANY },
	{ "rds/ib/cm_watchdog_ms", 0, 0, ANY },
	{ "rds/ib/check_conn_addrs", 1, 0, ANY },
	{ "rds/ib/refill_from_send", 2, 0, ANY },
	{ "rds/ib/ring_low_permille", 250, 0, ANY },
	{ "rds/ib/ring_mid_permille", 375, 0, ANY },
	{ "rds/ib/local_ack_timeout", 16, 12, 20 },
	{ "rds/ib/max_send_wr", 60, 16, 4096 },
	{ "rds/ib/max_recv_wr", 1024, 64, 16384 },
	{ "rds/ib/max_unsignaled_wr", 16, 1, 64 },
	{ "xrds/linger_ms", 60000, 0, HOUR_MS },
	{ "xrds/sock_max_dests", 8192, 1, 65536 },
	{ "xrds/connect_timeout_ms", 10000, 1, HOUR_MS },
	{ "xrds/heartbeat_ms", 5000, 0, HOUR_MS },
	{ "xrds/peer_dead_ms", 5000, 500, HOUR_MS },
	{ "xrds/uek_rows", 0, 0, 1 },
	{ "xrds/idle_ms", 300000, 0, DAY_MS },
	{ "xrds/sock_max_recv_kb", 262144, 0, 1048576 },
	{ "xrds/max_memory_kb", QUARTER, 0, ANY },
	{ "xrds/max_pinned_kb", ALL_MEMORY, 0, ANY },
	{ "xrds/max_keys", 131072, 0, ANY },
	{ "xrds/max_connections", 65536, 0, ANY },
	{ "xrds/max_recv_kb", QUARTER, 0, ANY },
	{ "xrds/max_sources_kb", THIRTY_SECOND, 0, ANY },
	{ "xrds/max_connects_per_s", 1000, 1, ANY },
	{ "xrds/user_percent", 50, 1, 100 },
	{ "xrds/unprivileged", 1, 0, 1 },
	{ "xrds/loop/delay_ms", 0, 0, HOUR_MS },
	{ "xrds/loop/loss_permille", 0, 0, 1000 },
	{ "xrds/loop/bounce_ms", 0, 0, HOUR_MS },
	{ "xrds/ib/max_unsignaled_wr", 16, 1, 64 },
	{ "xrds/ib/recv_window", 40, 8, 1024 },
	{ "xrds/ib/retry_count", 6, 0, 6 },
	{ "xrds/ib/ack_timeout", 16, 12, 20 },
	{ "xrds/ib/max_half_open", 1024, 1, 65536 },
	{ "xrds/ib/max_conns", 16384, 1, 1048576 },
	{ "xrds/ib/bundle_bytes", 4096, 0, 4096 },
	{ "xrds/ib/autocork_us", 50, 0, 1000000 },
};

static int value_try(const struct value *v, int flags)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/net/%s", v->name);
	return open(path, flags | O_CLOEXEC);
}

static int value_open(const struct value *v, int flags)
{
	return must(value_try(v, flags));
}

static long long value_read(const struct value *v)
{
	char text[32] = "";
	int fd = value_open(v, O_RDONLY);

	must(read(fd, text, sizeof(text) - 1));
	close(fd);
	return strtoll(text, NULL, 10);
}

/* 0, or -1 with errno */
static int value_write(const struct value *v, long long value)
{
	int fd = value_open(v, O_WRONLY), ret, error;
	char text[32];

	ret = write(fd, text, snprintf(text, sizeof(text), "%lld", value));
	error = errno;
	close(fd);
	errno = error;
	return ret < 0 ? -1 : 0;
}

static long long memory_kb(void)
{
	long long kb = -1;
	FILE *f = fopen("/proc/meminfo", "re");

	if (!f || fscanf(f, "MemTotal: %lld", &kb) != 1)
		tap_fail("no MemTotal");
	fclose(f);
	return kb;
}

static long long value_usual(const struct value *v)
{
	if (v->usual == ALL_MEMORY)
		return memory_kb();
	if (v->usual == QUARTER)
		return memory_kb() / 4;
	if (v->usual == THIRTY_SECOND)
		return memory_kb() / 32;
	return v->usual;
}

/* ------------------------------------------------------------------ cases */

static void defaults(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		tap_context("%s", values[i].name);
		check_eq(value_read(&values[i]), value_usual(&values[i]));
	}
}

static void ranges(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		const struct value *v = &values[i];

		tap_context("%s", v->name);
		if (v->min == v->max) {
			check_err(value_try(v, O_WRONLY), EACCES);
			continue;
		}
		check_ret(value_write(v, v->max), 0);
		check_eq(value_read(v), v->max);
		check_err(value_write(v, v->max + 1), EINVAL);
		check_eq(value_read(v), v->max);
		check_ret(value_write(v, v->min), 0);
		check_eq(value_read(v), v->min);
		check_err(value_write(v, v->min - 1), EINVAL);
		check_eq(value_read(v), v->min);
	}
}

static bool in_table(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		if (!strcmp(values[i].name, name))
			return true;
	return false;
}

/* How many there are in a directory below /proc/sys/net, and below that */
static size_t count(const char *dir)
{
	char path[512];
	struct dirent *entry;
	size_t nr = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/sys/net/%s", dir);
	d = opendir(path);
	if (!d)
		tap_fail("no %s", path);
	while ((entry = readdir(d))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		if (entry->d_type == DT_DIR) {
			nr += count(path);
			continue;
		}
		nr++;
		tap_context("%s", path);
		check(in_table(path));
	}
	closedir(d);
	tap_context("%s", "");
	return nr;
}

static void complete(void)
{
	check_eq(count("rds") + count("xrds"), ARRAY_SIZE(values));
}

/* Two names of one value, perhaps in other units */
static const struct {
	const char *name;
	const char *alias;
	long long value;
	long long seen;
} aliases[] = {
	{ "xrds/sock_max_dests", "rds/sock_max_peers", 500, 500 },
	{ "xrds/heartbeat_ms", "rds/conn_heartbeat_interval_secs", 7000, 7 },
	{ "xrds/ib/ack_timeout", "rds/ib/local_ack_timeout", 14, 14 },
	{ "xrds/ib/max_unsignaled_wr", "rds/ib/max_unsignaled_wr", 8, 8 },
};

static void other_names(void)
{
	struct value beats = { .name = "xrds/heartbeat_ms" };
	struct value beats_s = { .name = "rds/conn_heartbeat_interval_secs" };

	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++) {
		struct value ours = { .name = aliases[i].name };
		struct value theirs = { .name = aliases[i].alias };
		long long unit = aliases[i].value / aliases[i].seen;

		tap_context("%s", aliases[i].alias);
		must(value_write(&ours, aliases[i].value));
		check_eq(value_read(&theirs), aliases[i].seen);
		must(value_write(&theirs, aliases[i].seen + 1));
		check_eq(value_read(&ours), (aliases[i].seen + 1) * unit);
	}
	/* 0 would say that there are none */
	tap_context("half a second");
	must(value_write(&beats, 500));
	check_eq(value_read(&beats_s), 1);
}

static const struct tap_case cases[] = {
	{ "complete", "each sysctl is in the table of this test", complete,
	  TAP_SAME_NETNS, 0 },
	{ "defaults", "each has its default", defaults, TAP_SAME_NETNS, 0 },
	{ "defaults_netns", "also in a new network namespace", defaults, 0, 0 },
	{ "other_names", "a knob of Oracle's kernel is another name of ours",
	  other_names, 0, 0 },
	{ "ranges", "each takes its bounds, and beyond them fails with EINVAL",
	  ranges, 0, 0 },
};

int main(int argc, char **argv)
{
	return tap_main(argc, argv, cases, ARRAY_SIZE(cases));
}
