/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters: ours by RDS_INFO_COUNTERS, the RDMA device's from sysfs, and a
 * few that /proc has.
 */
#ifndef _XRDS_TEST_COUNTERS_H
#define _XRDS_TEST_COUNTERS_H

#include <stddef.h>

#include "sock.h"
#include "types.h"

struct counters {
	size_t nr;
	struct rds_info_counter *all;
};

/* Reads all of this network namespace; the caller frees. */
struct counters counters_read(void);
void counters_free(struct counters *c);
/* The value of a name, or -1 */
long long counters_get(const struct counters *c, const char *name);
void counters_print(const struct counters *c);

/* One of ours, now; ends the case if there is none of this name */
long long counter_now(const char *name);
/* One of the RDMA device, now; -1 if there is none */
long long hw_counter(const char *device, const char *name);
/* References of a loaded module; -1 if it is not loaded */
long long module_refs(const char *module);
/* Sockets of XRDS in this network namespace, /proc/net/protocols; or -1 */
long long protocol_sockets(void);
/* Memory of the node that could be had, bytes; pages that the processors keep at
 * hand, some MiB, are such
 */
long long memory_available(void);

/* Waits until a counter of ours is @least or more; false at the deadline */
bool counter_reaches(const char *name, long long least, int ms);

#endif /* _XRDS_TEST_COUNTERS_H */
