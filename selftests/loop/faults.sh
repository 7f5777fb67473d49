#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Lost connections lose, double and reorder nothing: the loopback's knobs lose
# messages (which resets the connection), delay them and reset periodically.
# Its counters prove that this happened.
# nodes: 1
# timeout: 300
# modules: xrds

. "$(dirname "$0")/../lib/lib.sh"

knobs=/proc/sys/net/xrds/loop
max_delay=/proc/sys/net/rds/reconnect_max_delay_ms

# A connection that never lasts backs off; this test wants thousands of them.
at_exit "echo $(cat $max_delay) > $max_delay"
echo 5 > $max_delay

reset() {
	echo 0 > $knobs/loss_permille
	echo 0 > $knobs/bounce_ms
	echo 0 > $knobs/delay_ms
}
at_exit reset

# run DESCRIPTION LOSS BOUNCE DELAY TEST_STREAM-ARGUMENTS...: the counters say that
# messages were lost, and connections reset.
run() {
	local what=$1 loss=$2 bounce=$3 lost bounced

	lost=$(helper_counter loop_lost)
	bounced=$(helper_counter loop_bounced)
	echo "$2" > $knobs/loss_permille
	echo "$3" > $knobs/bounce_ms
	echo "$4" > $knobs/delay_ms
	shift 4
	check "$what" helper_stream "$@"
	reset
	[ "$loss" = 0 ] || check "$what: really" \
		[ "$(helper_counter loop_lost)" -gt "$lost" ]
	[ "$bounce" = 0 ] || check "$what: resets, really" \
		[ "$(helper_counter loop_bounced)" -gt "$bounced" ]
}

run "1 % of messages lost" 10 0 0 -l 127.0.0.1 -c 10000 -m 65536
run "30 % of messages lost" 300 0 0 -l ::1 -c 300 -s 2 -S 2

# The period is that of connections made from now on: new addresses.
run "a reset every 20 ms" 0 20 0 -l 127.0.0.2 -c 10000 -m 65536 -S 3
run "a reset every 3 ms, with delay" 0 3 1 -l 127.0.0.3 -c 1000 -m 65536 -S 4

# A reset takes along what is delayed: small queues, or nothing ever arrives.
run "all at once, small buffers" 20 50 2 \
	-l 127.0.0.4 -s 1 -c 1000 -m 65536 -S 5 -b 8192 -B 8192
run "delay only" 0 0 20 -l ::1 -c 2000 -m 16384 -S 6
finish
