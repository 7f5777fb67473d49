// SPDX-License-Identifier: GPL-2.0-only
/* register_net_sysctl_sz() (since 6.6): takes the length of the table. */
#include <net/net_namespace.h>

void *probe(struct net *net, struct ctl_table *table)
{
	return register_net_sysctl_sz(net, "net/xrds", table, 1);
}
