/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Dumps: libmnl does not look for an error at their end, and stops at the first
 * row that is marked as interrupted.
 */
#ifndef XRDS_DUMP_H
#define XRDS_DUMP_H

#include <stdbool.h>

#include <libmnl/libmnl.h>

/* The errno with which a dump has ended; 0: none, or it goes on */
static inline int dump_error(const void *data, int len)
{
	const struct nlmsghdr *nlh = data;

	for (; mnl_nlmsg_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len))
		if (nlh->nlmsg_type == NLMSG_DONE &&
		    mnl_nlmsg_get_payload_len(nlh) >= sizeof(int))
			return -*(const int *)mnl_nlmsg_get_payload(nlh);
	return 0;
}

/* Take the marks away; returns whether there was one. */
static inline bool dump_unmark(void *data, int len)
{
	struct nlmsghdr *nlh = data;
	bool marked = false;

	for (; mnl_nlmsg_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len)) {
		marked |= nlh->nlmsg_flags & NLM_F_DUMP_INTR;
		nlh->nlmsg_flags &= ~NLM_F_DUMP_INTR;
	}
	return marked;
}

#endif /* XRDS_DUMP_H */
