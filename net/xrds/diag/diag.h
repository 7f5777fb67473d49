/* SPDX-License-Identifier: GPL-2.0-only */
/* Observation and tuning: netlink, /proc/net, sysctls, debugfs. */
#ifndef _XRDS_DIAG_H
#define _XRDS_DIAG_H

#if XRDS_LEVEL < 5
#error "for diag/ and the folders above, see Kbuild"
#endif

#include "xrds.h"

/* ----------------------------------------------------------- netlink.c */

int xrds_netlink_init(void);
void xrds_netlink_exit(void);

/* ------------------------------------------------------------ sysctl.c */

int xrds_sysctl_net_init(struct xrds_net *xn);
void xrds_sysctl_net_exit(struct xrds_net *xn);

/* -------------------------------------------------------------- proc.c */

int xrds_proc_net_init(struct xrds_net *xn);
void xrds_proc_net_exit(struct xrds_net *xn);

/* ----------------------------------------------------------- debugfs.c */

void xrds_debugfs_init(void);
void xrds_debugfs_exit(void);

#endif /* _XRDS_DIAG_H */
