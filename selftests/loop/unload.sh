#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The module is refused to go while a socket is open, goes at any time
# without, and leaves nothing: again and again, and right after traffic.
# nodes: 1
# timeout: 240
# modules: xrds

. "$(dirname "$0")/../lib/lib.sh"

ROUNDS=30

refused_with_socket() {
	background helper_hold_socket 127.0.0.1
	wait_for 10 grep -q holding "$log" || return 1
	! rmmod xrds 2> "$xrds_tmp/rmmod" || return 1
	grep -qi "in use" "$xrds_tmp/rmmod" || return 1
	# it still works, for old and for new sockets
	helper_stream -l 127.0.0.1 -c 100 || return 1
	kill -9 "$pid"
	wait "$pid" 2> /dev/null
	wait_for 10 rmmod xrds
}

after_traffic() {
	local i

	for ((i = 0; i < ROUNDS; i++)); do
		modprobe xrds || return 1
		helper_stream -l 127.0.0.1 -c 100 -S "$i" || return 1
		rmmod xrds || return 1
	done
}

# Killed senders leave connections with messages that are still delayed.
with_messages_queued() {
	local i

	for ((i = 0; i < 5; i++)); do
		modprobe xrds || return 1
		echo 1000 > /proc/sys/net/xrds/loop/delay_ms
		background helper_hold_socket 127.0.0.1 127.0.0.1 100
		wait_for 10 grep -q holding "$log" || return 1
		kill -9 "$pid"
		wait "$pid" 2> /dev/null
		wait_for 10 rmmod xrds || return 1
	done
}

check "refused while a socket is open, fine afterwards" refused_with_socket
check "$ROUNDS times right after traffic" after_traffic
check "with messages of dead processes queued" with_messages_queued
modprobe xrds
check "with nothing used" rmmod xrds
check "the family is gone" bash -c '! grep -q XRDS /proc/net/protocols'
modprobe xrds
check "and comes back" helper_stream -l 127.0.0.1 -c 100
finish
