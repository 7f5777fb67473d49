// SPDX-License-Identifier: GPL-2.0-only
/* struct proto_ops has a member sendpage (until 6.4). */
#include <linux/net.h>

void *probe(struct proto_ops *ops)
{
	return ops->sendpage;
}
