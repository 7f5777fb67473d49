/* SPDX-License-Identifier: GPL-2.0-only */
/* The version of the modules, the tools and the packages */
#ifndef _XRDS_VERSION_H
#define _XRDS_VERSION_H

#define XRDS_VERSION	"0.1"

#endif /* _XRDS_VERSION_H */
