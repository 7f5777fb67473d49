/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hints of the tools: the likely cause of an error, and the remedy.
 */
#ifndef XRDS_HINT_H
#define XRDS_HINT_H

/* XRDS does not serve AF_RDS. */
const char *hint_no_family(void);
/* A socket cannot be created with this errno; "": nothing is known. */
const char *hint_socket(int error);
/* An address cannot be bound with this errno; "": nothing is known. */
const char *hint_bind(int error);
/* Memory cannot be registered with this errno; "": nothing is known. */
const char *hint_memory(int error);

#endif /* XRDS_HINT_H */
