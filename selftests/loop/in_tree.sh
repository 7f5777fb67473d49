#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In-tree RDS has the family: loading fails with a line that names the module,
# and nothing stays behind. Without it, loading works.
# nodes: 1
# timeout: 120
# modules: rds

. "$(dirname "$0")/../lib/lib.sh"

refused() {
	! modprobe xrds 2> "$xrds_tmp/err" || return 1
	dmesg | tail -n 5 | grep -F "xrds: PF_RDS is held by module rds: close its sockets" || return 1
	! dmesg | tail -n 5 | grep -F "duplicate" || return 1
	[ ! -e /sys/module/xrds ] && [ ! -e /proc/sys/net/xrds ] &&
		[ -e /proc/sys/net/rds/ping_enable ]
}

hint() {
	xrds-info 2>&1 | grep -F "in-tree rds is loaded: modprobe -r" &&
		xrds-ping -c 1 127.0.0.1 2>&1 | grep -F "in-tree rds is loaded"
}

accepted() {
	modprobe -r rds && modprobe xrds || return 1
	[ -e /proc/sys/net/rds/ping_enable ] || return 1
	helper_stream -l 127.0.0.1 -c 100
}

check "refused while in-tree RDS has the family, with a reason" refused
check "the tools name it, too" hint
check "fine afterwards" accepted
finish
