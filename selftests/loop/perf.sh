#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# xrds-perf does what its manual says in each of its modes and with each option,
# counts what it was told to, finds wrong payload, and leaves nothing behind. How
# long it takes is not looked at.
# nodes: 1
# timeout: 180
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

# wrong PATTERN OPTION...: payload is wrong, and xrds-perf tells where
wrong() {
	local pattern=$1 out status

	shift
	out=$("$@" 2>&1) && status=0 || status=$?
	echo "$out"
	[ "$status" = 2 ] && grep -qE "wrong payload: $pattern" <<< "$out"
}

# tampering N COMMAND...: a process that sends one wrong byte
tampering() {
	TAMPER=$1 LD_PRELOAD=$(command -v helper_tamper) "${@:2}"
}

BYTE="byte [0-9]+ is 0x[0-9a-f]+ instead of 0x[0-9a-f]+"
here=127.0.0.1
check "verify: echo" perf 500 -v -d 8 -S 4 -l 4K -a 100 "$here"
check "verify: echo of nothing" perf 50 -v -l 0 -a 0 "$here"
check "verify: stream" perf 200 -v -m stream -l 16K -S 3 "$here"
check "verify: stream of batches" perf 500 -v -m stream -l 333 -M 7 "$here"
check "verify: write" perf 100 -v -m write -l 5000 -d 16 "$here"
check "verify: write, nothing said to the server" \
	perf 100 -v -m write -l 256K -d 16 -q "$here"
check "verify: read" perf 100 -v -m read -l 5000 -d 16 "$here"
check "verify: read, notices" perf 100 -v -m read -l 5000 -d 16 -N "$here"
for mode in write read; do
	check "verify: $mode, vectors of buffers, RDS_GET_MR" \
		perf 100 -v -m "$mode" -l 5000 -d 4 -L 7 -g "$here"
	check "verify: $mode, more buffers than bytes" \
		perf 20 -v -m "$mode" -l 3 -L 8 "$here"
done
check "verify: a wrong message of echo" wrong "message 149 of port [0-9]+: $BYTE" \
	tampering 150 xrds-perf -v -n 300 -d 4 "$here"
check "verify: the last message is wrong" wrong "message 83 of .*: $BYTE" \
	tampering 84 xrds-perf -v -n 52 "$here"
check "verify: a wrong message of a stream" wrong "message 50 of .*: $BYTE" \
	tampering 150 xrds-perf -v -n 300 -m stream -S 3 -l 4K "$here"
check "verify: a wrong write of several buffers" \
	wrong "memory after turn 9 of writes: byte 24999 is" \
	tampering 66 xrds-perf -v -n 80 -d 8 -L 4 -l 20000 -m write "$here"
check "verify: a wrong write" wrong "memory after turn 9 of writes: $BYTE" \
	tampering 72 xrds-perf -v -n 80 -d 8 -m write "$here"
background tampering 100 xrds-perf -s -p 18801 "$here"
wait_for 30 serving || fail "tampering server" "$(cat "$log")"
check "verify: a wrong answer" wrong "answer 99 to port [0-9]+: $BYTE" \
	xrds-perf -v -n 200 -p 18801 "$here"
check "verify: a wrong read" wrong "read 3 of turn 1: $BYTE" \
	xrds-perf -v -n 200 -d 4 -m read -p 18801 "$here"
check "and it is not noticed without" perf 200 -p 18801 "$here"

tasks() {
	local out

	out=$(xrds-perf -j -n 50 -T 3 -d 4 "$here") || return
	echo "$out"
	[[ $out == *'"tasks":3,'*'"messages":150,'*'"latency_ns":{"count":150,'* ]]
}

# Each message waits until it is due.
rate() {
	local out

	out=$(xrds-perf -j -n 50 -r 100 "$@" "$here") || return
	echo "$out"
	[[ $out =~ \"elapsed_ns\":([0-9]+), ]] &&
		[ "${BASH_REMATCH[1]}" -ge 490000000 ]
}

csv() {
	local out

	out=$(xrds-perf --csv -n 100 -o 2 "$here") || return
	echo "$out"
	[ "$(wc -l <<< "$out")" = 2 ] &&
		[ "$(head -n 1 <<< "$out" | tr -cd ,)" = \
		  "$(tail -n 1 <<< "$out" | tr -cd ,)" ] &&
		[[ $out == mode,bytes,*,messages,*,latency_ns_p99,*,outlier2_s*'
"echo",64,16,1,1,1,"none",100,'* ]]
}

# below NUMBER OPTION...: a run that ends by its time, after fewer messages than that
below() {
	local number=$1 out

	shift
	out=$(xrds-perf -j "$@" "$here") || return
	echo "$out"
	[[ $out =~ \"messages\":([0-9]+), ]] &&
		[ "${BASH_REMATCH[1]}" -lt "$number" ]
}

# Rates are those of the larger direction.
answers() {
	local out bytes

	out=$(xrds-perf -j -n 200 -l 1 -a 64K -d 8 "$here") || return
	echo "$out"
	[[ $out =~ \"elapsed_ns\":([0-9]+),.*\"bytes_per_second\":([0-9]+) ]] ||
		return
	# 200 answers, but for rounding
	bytes=$((BASH_REMATCH[1] * BASH_REMATCH[2] / 1000000000))
	[ "$((bytes / 65536))" -ge 199 ] && [ "$((bytes / 65536))" -le 200 ]
}

# It has as many messages as the client, without those of the warm-up.
view() {
	background xrds-perf -s -p 18805 "$here"
	wait_for 30 serving || return
	xrds-perf -n 150 -p 18805 -l 256 -T 2 "$here" &&
		xrds-perf -n 70 -p 18805 -m stream -v "$here" &&
		xrds-perf -n 40 -p 18805 -m write -d 8 "$here"
	timeout 20 xrds-perf -A 2 -p 18805 -t 60 "$here"
	wait_for 10 grep -q "^$here: echo of 64 bytes: ended early, after [1-9]" "$log"
	cat "$log"
	[ "$(grep -c "^$here: echo of 256 bytes: 150 messages in [0-9.]* s" "$log")" = 2 ] &&
		grep -q "^$here: stream of 64 bytes: 70 messages in" "$log" &&
		grep -q "^$here: write of 64 bytes: 40 messages in" "$log" &&
		grep -q "^$here: echo of 64 bytes: ended early" "$log"
}

outliers() {
	local out

	out=$(xrds-perf -j -n 100 --outliers=3 "$here") || return
	echo "$out"
	[[ $out =~ \"max\":([0-9]+)\},\"outliers\":\[(.*)\] ]] &&
		[[ ${BASH_REMATCH[2]} == "{\"ns\":${BASH_REMATCH[1]},\"at_s\":"* ]] &&
		[ "$(tr -cd "{" <<< "${BASH_REMATCH[2]}")" = "{{{" ]
}

tos() {
	perf 50 -Q 40 "$here" || return
	xrds-info -j connections tos=40 | grep -q '"tos": 40'
}

# Each of three addresses exchanges messages with the two others.
mesh() {
	local i pids=() logs=() nodes=(127.0.0.11 127.0.0.12 127.0.0.13)

	for i in 0 1 2; do
		background xrds-perf -X -v -n 100 -I "${nodes[i]}" "$@" \
			"${nodes[@]}"
		pids+=("$pid")
		logs+=("$log")
	done
	for i in 0 1 2; do
		wait "${pids[i]}" || { cat "${logs[@]}"; return 1; }
		[ "$(grep -c "127.0.0.1[123]: 100" "${logs[i]}")" = 2 ] || {
			cat "${logs[i]}"; return 1; }
		! grep -q "${nodes[i]}:" "${logs[i]}" || return
	done
}

# Keys that are used once: no more are left than there are ops in a turn.
once() {
	background xrds-perf -U -m read -d 8 -t 60 "$@" "$here"
	wait_for 30 seen_once || { cat "$log"; return 1; }
	wait_for 30 grep -qE "^ *[0-9]+ s: [1-9]" "$log" &&
		wait_for 30 few_keys && kill -0 "$pid" &&
		kill -9 "$pid" && wait_for 30 no_keys
}

# A work item frees them; keys that stay become more and more.
few_keys() {
	[ "$(helper_counter used_keys)" -le 8 ]
}

seen_once() {
	xrds-info -j regions flags=use-once | grep -q '"flags": .*"use-once"'
}

no_keys() {
	[ "$(helper_counter used_keys)" = 0 ]
}

# The connection is reset again and again, with a back-off in between, and nothing
# is lost or wrong.
reset() {
	local before run

	before=$(helper_counter conn_reset)
	# a run has few of them if the node stands still
	for run in 1 2 3 4 5; do
		echo "run $run"
		xrds-perf -v -R 0.3 -t 4 "$@" "$here" || return
		[ "$(helper_counter conn_reset)" -lt "$((before + 2))" ] || return 0
	done
	return 1
}

# It ends, with all of its processes, and so does the child of the server.
aborted() {
	local status

	timeout 20 xrds-perf -A 0.5 -t 60 -T 2 -m write "$here"
	status=$?
	[ "$status" = 2 ] && wait_for 30 no_keys && perf 20 "$here"
}

check "MSG_ZEROCOPY" perf 200 -m stream -l 8K -z "$here"
check "registrations" perf 200 -m map -l 64K -g "$here"
check "registrations by messages" perf 200 -m map -l 64K "$here"
for mode in write read; do
	check "$mode, keys for one use" perf 100 -v -U -m "$mode" -l 5000 -d 16 "$here"
	check "$mode, keys for one use, RDS_GET_MR, notices" \
		perf 100 -v -U -g -N -m "$mode" -l 256K -d 16 "$here"
done
check "keys for one use end" once
check_fails "keys for one use of an echo" xrds-perf -n 1 -U "$here"
check "resets: echo" reset -d 8 -S 4
check "resets: stream" reset -m stream -l 4K
check "resets: write" reset -m write -q -d 8
check "resets: read, notices" reset -m read -q -N -d 8
check_fails "resets: write with messages" xrds-perf -n 1 -R 1 -m write "$here"
check "aborted" aborted
check_fails "MSG_ZEROCOPY of an echo" xrds-perf -n 1 -z "$here"
check "tasks: one result" tasks
check "rate: echo" rate
check "rate: echo, several in flight" rate -d 4
check "rate: stream" rate -m stream
check "rate: read" rate -m read
check "time: batches of a stream" below 4032 -t 0.1 -m stream -M 63 -l 1M
check "time: large messages of a stream" below 64 -t 0.0001 -m stream -l 1M
check "time: echo" below 64 -t 0.0001 -l 1M -a 1M
check "time: registrations" below 64 -t 0.0001 -m map -l 1M -g
check "CSV" csv
check "outliers, the slowest one first" outliers
check "answers that are larger than messages" answers
check "the server's view" view
check "type of service" tos
for mode in echo stream write; do
	check "mesh: $mode" mesh -m "$mode"
done
check "mesh: with tasks" mesh -n 50 -T 2
check_fails "mesh: none of the addresses is here" \
	xrds-perf -X 192.0.2.1 192.0.2.2
check_fails "outliers of a stream" xrds-perf -o 1 -m stream "$here"
check_fails "JSON and CSV" xrds-perf -n 1 -j -c "$here"
check_fails "a pause and a rate" xrds-perf -n 1 -P 1 -r 1000 "$here"
background xrds-perf -s -u
wait_for 30 serving || fail "AF_UNIX server" "$(cat "$log")"
check "AF_UNIX: echo" perf 100 -u -d 4 -v
check "AF_UNIX: stream" perf 100 -u -m stream -v
check "AF_UNIX: a wrong message" wrong "message 149 of port 0: $BYTE" \
	tampering 150 xrds-perf -u -v -n 300
check "AF_UNIX: a stream, whatever the size of answers" \
	perf 100 -u -m stream -a 0
for option in -l -a; do
	check_fails "AF_UNIX: nothing $option" xrds-perf -n 1 -u "$option" 0
done
check_fails "a mode that there is not" xrds-perf -m nothing 127.0.0.1
check_fails "no host" xrds-perf -n 1
finish
