// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hints of the tools: the likely cause of an error, and the remedy. The modules
 * that are loaded have a directory in /sys/module.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "hint.h"

const char *hint_no_family(void)
{
	if (!access("/sys/module/rds", F_OK))
		return "in-tree rds is loaded: modprobe -r rds_rdma rds_tcp rds; modprobe xrds_ib";
	return "XRDS is not loaded: modprobe xrds_ib";
}

const char *hint_socket(int error)
{
	static char text[128];

	if (error == EPERM)
		return " (net.xrds.unprivileged: this user may have no sockets)";
	if (error != EAFNOSUPPORT)
		return "";
	snprintf(text, sizeof(text), " (%s)", hint_no_family());
	return text;
}

const char *hint_bind(int error)
{
	if (error == EADDRINUSE)
		return " (another socket has this port: xrds-info sockets)";
	if (error != EADDRNOTAVAIL)
		return "";
	if (access("/sys/module/xrds_ib", F_OK))
		return " (xrds_ib is not loaded: modprobe xrds_ib)";
	return " (no RDMA device has this address: rdma link, ip address)";
}

const char *hint_memory(int error)
{
	switch (error) {
	case ENOMEM:
	case EPERM:
		return " (the limit of locked memory: ulimit -l)";
	case EDQUOT:
		return " (net.xrds.max_pinned_kb or max_keys)";
	default:
		return "";
	}
}
