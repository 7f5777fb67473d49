/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Unit tests: declarations that the test files share.
 *
 * A test is a function without arguments; it fails if one of its CHECKs does.
 * Each file has a table of its tests, unit_main.c runs them all and prints
 * one TAP line for each.
 */
#ifndef _UNIT_H
#define _UNIT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "wire/wire.h"

struct unit_test {
	void (*run)(void);
	const char *name;
};

/* ended by an entry without a function */
extern const struct unit_test unit_hdr_tests[];
extern const struct unit_test unit_classic_tests[];
extern const struct unit_test unit_reasm_tests[];
extern const struct unit_test unit_bundle_tests[];
extern const struct unit_test unit_short_tests[];
extern const struct unit_test unit_ctl_tests[];
extern const struct unit_test unit_priv_tests[];
extern const struct unit_test unit_fq_tests[];
extern const struct unit_test unit_port_tests[];
extern const struct unit_test unit_dest_tests[];
extern const struct unit_test unit_window_tests[];

/* which errors a decoder has returned since the start */
extern unsigned int unit_seen[XRDS_WIRE_NR_ERRORS];

void unit_fail(const char *file, int line, const char *what);
__u64 unit_random(void);
__u32 unit_below(__u32 n);

/* Internet checksum, word by word, of a header in wire order */
__u16 unit_csum(const __u8 *hdr);
void unit_seal(__u8 *hdr);

/* Decodes from a buffer of exactly this size, so that the sanitizer sees it. */
int unit_decode(struct xrds_wire_msg *msg, const void *buf, __u32 bytes,
		int ver);
/* The same for a message that is encoded first, with @payload bytes behind. */
int unit_try(const struct xrds_wire_msg *msg, __u32 payload, int ver);
/* The same for a message of which one field is changed */
#define TRY_WITH(base, field, value, payload, ver) \
	({ \
		struct xrds_wire_msg changed = (base); \
		changed.field = (value); \
		unit_try(&changed, payload, ver); \
	})
int unit_same(const struct xrds_wire_msg *a, const struct xrds_wire_msg *b);
/* Space that the extension headers in @has, XRDS_HAS_*, take */
__u32 unit_ext_bytes(__u16 has);
int unit_note(enum xrds_wire_err err);

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#define CHECK(expr) \
	do { \
		if (!(expr)) \
			unit_fail(__FILE__, __LINE__, #expr); \
	} while (0)

#endif /* _UNIT_H */
