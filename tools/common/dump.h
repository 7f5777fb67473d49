/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The end of a dump: libmnl does not look for an error there.
 */
#ifndef XRDS_DUMP_H
#define XRDS_DUMP_H

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

#endif /* XRDS_DUMP_H */
