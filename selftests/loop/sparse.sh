#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Memory that a device only reads is not written to: holes of files on ext4, also
# of a full one, stay holes. A tmpfs and hugetlbfs allocate pages for a reader, and
# their files do not change either.
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
mkdir "$xrds_tmp/tmpfs" "$xrds_tmp/hugetlbfs" &&
	mount -t tmpfs -o size=4m tmpfs "$xrds_tmp/tmpfs" &&
	mount -t hugetlbfs -o pagesize=2M none "$xrds_tmp/hugetlbfs" || exit 1
at_exit "cd /; umount $xrds_tmp/tmpfs $xrds_tmp/hugetlbfs"

# on PLACE CASE...: where files are made, and the cases that make sense there
on() {
	local place=$1 name

	shift
	for name in "$@"; do
		check "$name: on $place" \
			eval "cd $xrds_tmp/$place && helper_sparse -t $name"
	done
}

on ext4 source region region_once region_prot_read full private mixed sealed \
	sealed_hole read_only huge
on tmpfs source region region_once region_prot_read full_tmpfs private mixed \
	read_only
on hugetlbfs source_huge full_hugetlbfs
finish
