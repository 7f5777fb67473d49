/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that is not there yet: a call that touches it sleeps until it is filled.
 */
#ifndef _XRDS_TEST_LAZY_H
#define _XRDS_TEST_LAZY_H

struct lazy {
	int fd;
	char *page;
};

/* Makes a page; skips the case without userfaultfd */
void lazy_open(struct lazy *lazy);
/* Waits until a call sleeps for it */
void lazy_await(const struct lazy *lazy);
/* With zeroes */
void lazy_fill(const struct lazy *lazy);
/* The page stays; a call that sleeps goes on. */
void lazy_close(struct lazy *lazy);

#endif /* _XRDS_TEST_LAZY_H */
