#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Memory that is not there: each system call with its n-th allocation or copy
# failing ends with an errno and works when called again; connections whose
# start fails for lack of memory start later, and nothing is lost or doubled.
# nodes: 1
# timeout: 300
# modules: xrds
# kernels: debug

. "$(dirname "$0")/../lib/lib.sh"
. "$(dirname "$0")/../lib/inject.sh"

TIMES=1000
knobs=/proc/sys/net/xrds/loop
max_delay=/proc/sys/net/rds/reconnect_max_delay_ms

# Resets make it many starts; the delay between them is not what is tested.
at_exit "echo 0 > $knobs/bounce_ms; echo $(cat $max_delay) > $max_delay"
echo 5 > $max_delay

calls() {
	local name names

	names=$(helper_fail_nth -l | cut -d: -f1)
	check "there are calls to try" [ -n "$names" ]
	for name in $names; do
		check "$name, with every failure" helper_fail_nth -t "$name"
	done
}

# start KIND PERCENT ADDRESS
start() {
	local count

	echo 5 > $knobs/bounce_ms
	inject_workers "$1" "$2" $TIMES
	check "messages while connections fail to start, $1" \
		helper_stream -l "$3" -c 1000 -m 16384 -s 2
	count=$(inject_end "$1" $TIMES)
	echo 0 > $knobs/bounce_ms
	diag "$1 struck $count times"
	check "$1 struck" [ "$count" -gt 0 ]
	check "messages after $1" helper_stream -l "$3" -c 100
}

inject_quiet
calls
start failslab 20 127.0.0.2
finish
