#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# xrds-perf does what its manual says in each of its modes, counts what it was
# told to, and leaves nothing behind. How long it takes is not looked at.
# nodes: 1
# timeout: 120
# modules: xrds

. "$(dirname "$0")/../lib/lib.sh"

# perf MESSAGES OPTION...: a run of so many, that says so in JSON
perf() {
	local number=$1 out

	shift
	out=$(xrds-perf -j -n "$number" "$@") || return
	echo "$out"
	[[ $out == *"\"messages\":$number,"* && $out == "{"*"}" ]]
}

serving() {
	grep -q ready "$log"
}

for address in 127.0.0.1 ::1; do
	background xrds-perf -s "$address"
	wait_for 30 serving || fail "server at $address" "$(cat "$log")"
	check "$address: echo" perf 100 "$address"
	check "$address: depth, sockets, sizes" \
		perf 200 -d 8 -S 4 -l 4K -a 100 "$address"
	check "$address: stream" perf 100 -m stream -l 64K "$address"
	check "$address: more than buffers hold" \
		perf 50 -m stream -l 16K -b 64K -B 64K "$address"
	for mode in write read; do
		check "$address: $mode, barriers" \
			perf 40 -m "$mode" -l 4K -d 16 "$address"
		check "$address: $mode, notices" \
			perf 40 -m "$mode" -l 4K -d 16 -N "$address"
		check "$address: $mode, nothing said to the server" \
			perf 40 -m "$mode" -l 64K -d 32 -q "$address"
	done
	check "$address: other sockets, other destinations" \
		perf 50 -i 20 -D 20 "$address"
	check "$address: with rests" perf 20 -P 500 "$address"
	check "$address: for a time, with a histogram" \
		xrds-perf -t 0.1 -H "$address"
done
background xrds-perf -s -u
wait_for 30 serving || fail "AF_UNIX server" "$(cat "$log")"
check "AF_UNIX: echo" perf 100 -u -d 4
check "AF_UNIX: stream" perf 100 -u -m stream
check_fails "a mode that there is not" xrds-perf -m nothing 127.0.0.1
check_fails "no host" xrds-perf -n 1
finish
