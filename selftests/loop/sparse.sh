#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Memory that a device only reads is not written to: holes of files on ext4, also
# of a full one, stay holes.
# nodes: 1
# timeout: 120
# modules: xrds
# kernels: 6.1 6.12 7.2

. "$(dirname "$0")/../lib/lib.sh"

modprobe brd rd_nr=1 rd_size=16384 && modprobe ext4 &&
	mke2fs -F /dev/ram0 > /dev/null && mkdir -p "$xrds_tmp/ext4" &&
	mount -t ext4 /dev/ram0 "$xrds_tmp/ext4" || exit 1
at_exit "cd /; umount $xrds_tmp/ext4; modprobe -r brd"
echo 4 > /proc/sys/vm/nr_hugepages
at_exit "echo 0 > /proc/sys/vm/nr_hugepages"
cd "$xrds_tmp/ext4" && helper_sparse
exit
