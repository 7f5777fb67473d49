// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of the parts that need no kernel: the runner, and helpers of the tests.
 *
 * Usage: unit_wire [seed]. The seed of the random tests is printed, so that a
 * failure can be repeated.
 */
#include <time.h>
#include "unit.h"

unsigned int unit_seen[XRDS_WIRE_NR_ERRORS];

static unsigned int failures;
static __u64 random_state;

void unit_fail(const char *file, int line, const char *what)
{
	/* a loop that fails would bury the first line that matters */
	if (failures++ < 10)
		printf("# %s:%d: %s\n", file, line, what);
}

__u64 unit_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

__u32 unit_below(__u32 n)
{
	return (unit_random() >> 16) % n;
}

int unit_note(enum xrds_wire_err err)
{
	CHECK((unsigned int)err < XRDS_WIRE_NR_ERRORS);
	unit_seen[err]++;
	return err;
}

int unit_decode(struct xrds_wire_msg *msg, const void *buf, __u32 bytes,
		int ver)
{
	__u32 have = bytes < XRDS_WIRE_HDR_BYTES ? bytes : XRDS_WIRE_HDR_BYTES;
	__u8 *copy = malloc(have + 1);
	int err;

	/* one byte in, so that no alignment is relied upon */
	memcpy(copy + 1, buf, have);
	memset(msg, 0xa5, sizeof(*msg));
	err = unit_note(xrds_wire_hdr_decode(msg, copy + 1, bytes, ver));
	free(copy);
	return err;
}

int unit_try(const struct xrds_wire_msg *msg, __u32 payload, int ver)
{
	struct xrds_wire_msg out;
	struct xrds_hdr hdr;

	xrds_wire_hdr_encode(&hdr, msg);
	return unit_decode(&out, &hdr, sizeof(hdr) + payload, ver);
}

/* These depend on the state of the connection, or on a whole payload; no decoder
 * can return them.
 */
static int is_stateful(int err)
{
	return err == XRDS_WIRE_ACK || err == XRDS_WIRE_CTL_STATE ||
	       err == XRDS_WIRE_OPCODE || err == XRDS_WIRE_PRIV_VERSION ||
	       err == XRDS_WIRE_PAYLOAD;
}

static void all_errors_reached(void)
{
	int err;

	for (err = 0; err < XRDS_WIRE_NR_ERRORS; err++) {
		if (is_stateful(err) || unit_seen[err])
			continue;
		printf("# never returned: %s\n", xrds_wire_strerror(err));
		CHECK(unit_seen[err]);
	}
}

/* last, as it looks at the errors that the others have seen */
static const struct unit_test unit_last_tests[] = {
	{ all_errors_reached, "every error of the decoders was reached" },
	{ }
};

static const struct unit_test * const tables[] = {
	unit_hdr_tests, unit_classic_tests, unit_reasm_tests, unit_bundle_tests,
	unit_short_tests, unit_ctl_tests, unit_priv_tests, unit_fq_tests,
	unit_port_tests, unit_dest_tests, unit_window_tests, unit_last_tests, NULL
};

int main(int argc, char **argv)
{
	const struct unit_test * const *table;
	const struct unit_test *test;
	int count = 0, failed = 0;
	__u64 seed;

	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (__u64)time(NULL);
	random_state = seed * 0x9e3779b97f4a7c15 + 1;
	if (!random_state)
		random_state = 1;
	setvbuf(stdout, NULL, _IOLBF, 0);

	for (table = tables; *table; table++)
		for (test = *table; test->run; test++)
			count++;
	printf("TAP version 13\n1..%d\n# seed %llu\n", count,
	       (unsigned long long)seed);

	count = 0;
	for (table = tables; *table; table++) {
		for (test = *table; test->run; test++) {
			failures = 0;
			test->run();
			printf("%sok %d - wire: %s\n", failures ? "not " : "",
			       ++count, test->name);
			failed += !!failures;
		}
	}
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
