#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The tools tell what an administrator needs: the congested receiver and its
# program, whole texts in a pipe, the reason of silence and of errors.
# nodes: 1
# timeout: 120
# modules: xrds

. "$(dirname "$0")/../lib/lib.sh"

PORT=4321

saw() {
	grep -q "$1" "$log"
}

# table WIDTH PATTERN OPTION...: a table of that width has a line like that
table() {
	local width=$1 pattern=$2 out

	shift 2
	out=$(COLUMNS=$width xrds-info "$@") || return
	echo "$out"
	[ -z "$(cut -c "$((width + 1))-" <<< "$out" | tr -d '\n')" ] || return 1
	grep -q "$pattern" <<< "$out"
}

# words PATTERN COMMAND...: the command fails by itself, and tells that
words() {
	local pattern=$1 out status

	shift
	out=$(timeout 30 "$@" 2>&1) && status=0 || status=$?
	echo "$out"
	[ "$status" -gt 0 ] && [ "$status" -lt 124 ] && grep -q "$pattern" <<< "$out"
}

versions() {
	local tool version

	version=$(modinfo -F version xrds)
	[ "$version" = "$(modinfo -F version xrds_ib)" ] || return 1
	for tool in xrds-info xrds-perf xrds-ping xrds-trace; do
		[ "$($tool --version)" = "$tool $version" ] || return 1
		[ "$($tool -V)" = "$tool $version" ] || return 1
	done
}

congested() {
	xrds-info -j sockets flags=congested | grep -q "\"lport\": $PORT"
}

pipe() {
	xrds-info -a counters |
		grep -q "pings not answered because net.rds.ping_enable is 0"
}

messages() {
	local out number

	out=$(xrds-info -j messages queue=receive "lport=$PORT")
	echo "$out"
	# of helper_hold_socket, 4096 bytes each; as many as the socket has
	number=$(grep -c '"bytes": 4096, "seq": [1-9]' <<< "$out")
	xrds-info -j sockets "lport=$PORT" |
		grep "\"recv-bytes\": $((number * 4096))," &&
		[ "$number" -gt 0 ] &&
		! xrds-info messages "lport=$PORT" | grep -E "send|in-flight" &&
		! xrds-info -j all | grep '"messages"'
}

columns() {
	local out

	out=$(xrds-info -o lport,program,flags sockets "lport=$PORT")
	echo "$out"
	[ "$(wc -l <<< "$out")" = 3 ] &&
		[[ $out == *lport*PROGRAM*flags* ]] &&
		[[ $out == *"$PORT"*"helper_late_rea/"*"bound,congested"* ]]
}

# The name of a program may have anything: a terminal must not obey it.
names() {
	local program=$xrds_tmp/$'\e[31m\xffred' out

	cp "$(command -v helper_hold_socket)" "$program"
	background "$program" 127.0.0.78
	wait_for 20 saw holding || return
	out=$(xrds-info sockets laddr=127.0.0.78 &&
		xrds-info -j sockets laddr=127.0.0.78)
	echo "$out"
	[ "$(grep -cF '?[31m?red/' <<< "$out")" = 2 ]
}

# Three columns that are wider than the terminal
narrow() {
	local out

	out=$(COLUMNS=40 xrds-info -o program,flags,laddr sockets "lport=$PORT")
	echo "$out"
	[[ $out == *"helper_late_rea/"*"bound,congested  127.0.0.1:$PORT"* ]]
}

namespaces() {
	local out

	out=$(xrds-info -N -j sockets)
	echo "$out"
	[[ $out == *'"namespace": "own"'*'"of process'*'"laddr": "127.0.0.77"'* ]] &&
		! xrds-info sockets | grep -q 127.0.0.77
}

failed_connection() {
	local out

	out=$(xrds-info -j connections)
	echo "$out"
	[[ $out == *'"error": "Software caused connection abort"'*'"lost": '[1-9]* ]]
}

ping_disabled() {
	local status

	echo 0 > /proc/sys/net/rds/ping_enable
	words "the node does not answer pings" xrds-ping -O -c 2 -w 3 127.0.0.1
	status=$?
	echo 1 > /proc/sys/net/rds/ping_enable
	return "$status"
}

set_up() {
	local out

	out=$(xrds-ping -i 0 -c 3 -s 1K 127.0.0.9)
	echo "$out"
	[ "$(grep -c "the connection was made" <<< "$out")" = 1 ] &&
		[[ $out == *"3 sent, 3 answered"*"first answer, over a new"*"round trip min"* ]] &&
		! xrds-ping -c 1 127.0.0.9 | grep "connection was made"
}

# A number that begins with 0 is decimal, one that begins with 0x hexadecimal.
leading_zero() {
	local out

	out=$(xrds-ping -j -i 0 -c 08 -s 010 127.0.0.1 &&
		xrds-ping -j -i 0 -c 1 -s 0x10K 127.0.0.1)
	echo "$out"
	[[ $out == *'"bytes": 10, "sent": 8,'*'"bytes": 16384, "sent": 1,'* ]]
}

# The statistics of each host, in the order of the arguments
several() {
	local out

	out=$(xrds-ping -i 0 -c 3 127.0.0.21 127.0.0.22) || return
	echo "$out"
	[ "$(grep -c "^answer from 127.0.0.2[12]: " <<< "$out")" = 6 ] &&
		[[ $out == *"--- 127.0.0.21: 3 sent, 3 answered"*"--- 127.0.0.22: 3 sent, 3 answered"* ]] &&
		[ "$(xrds-ping -j -i 0 -c 3 127.0.0.21 127.0.0.22 |
			grep -c '^{"host": .*"answered": 3.*}$')" = 2 ]
}

# One of them is wrong: the others have their statistics.
one_wrong() {
	local out status

	out=$(xrds-ping -c 1 not-a-host 127.0.0.1 2>&1) && status=0 || status=$?
	echo "$out"
	[ "$status" = 2 ] &&
		[[ $out == *"xrds-ping: not-a-host: "*"--- 127.0.0.1: 1 sent, 1 answered"* ]]
}

# A signal to the parent ends all; each has answered all.
signalled() {
	background xrds-ping 127.0.0.21 127.0.0.22
	wait_for 20 saw "from 127.0.0.21: seq=1" &&
		wait_for 20 saw "from 127.0.0.22: seq=1" &&
		kill "$pid" && wait "$pid" &&
		saw "^--- 127.0.0.21: " && saw "^--- 127.0.0.22: "
}

# The statistics only
quiet() {
	local out

	echo 0 > /proc/sys/net/rds/ping_enable
	out=$(xrds-ping -q -O -c 3 -i 0.2 -w 10 127.0.0.1 2>&1)
	echo 1 > /proc/sys/net/rds/ping_enable
	echo "$out"
	[[ $out == *"3 sent, 0 answered"* ]] && ! grep "no answer yet" <<< "$out"
}

# Memory that is offered after it was asked for
late_memory() {
	local probes

	background xrds-ping -r 4998 -c 2 -i 0 -w 60 127.0.0.1
	probes=$pid
	wait_for 20 saw "does xrds-ping -l 4998 run there" || return
	background xrds-ping -l 4998 127.0.0.1
	wait "$probes"
}

# Output that cannot be written is an error, with a closed output as well.
full() {
	local tool output

	for tool in "xrds-info counters" "xrds-info -j counters" \
		"xrds-ping -c 1 127.0.0.1" "xrds-ping -h" "xrds-perf -h" \
		"xrds-trace -V"; do
		for output in "> /dev/full" ">&-" "<&- >&- 2>&-"; do
			sh -c "exec $tool $output" && return 1
			[ $? = 2 ] || return
		done
	done
	return 0
}

# Each tool that needs a socket tells why there is none.
unprivileged() {
	local tool status=0

	echo 0 > /proc/sys/net/xrds/unprivileged
	for tool in "xrds-ping -c 1 127.0.0.1" "xrds-perf -n 1 127.0.0.1" \
		"xrds-info messages"; do
		# shellcheck disable=SC2086
		words "net.xrds.unprivileged" unshare -U $tool || status=1
	done
	# and it prints no half of an object
	[ -z "$(unshare -U xrds-info -j status messages)" ] || status=1
	echo 1 > /proc/sys/net/xrds/unprivileged
	return "$status"
}

# A client whose server is killed ends at once, and tells it
server_killed() {
	local server client

	background xrds-perf -s -p 18801 127.0.0.1
	server=$pid
	wait_for 20 saw ready || return
	background xrds-perf -p 18801 -t 60 -l 4K "$@" 127.0.0.1
	client=$pid
	# a line for each second
	wait_for 20 saw " [0-9]* s: [1-9].* Gbit/s" || { cat "$log"; return 1; }
	xargs kill -9 "$server" < "/proc/$server/task/$server/children"
	wait_for 10 saw "xrds-perf: .*server.* ended" || { cat "$log"; return 1; }
	wait "$client"
	[ $? = 2 ]
}

# the modules say the same in a file, in their ELF notes and when they are loaded
features() {
	local want out notes=/sys/module/xrds/notes/.note.XRDS

	want=$(modinfo -F feature xrds | sort)
	out=$(xrds-info features | awk '$2 ~ /^[0-9]/ { print $1, $2 }' | sort)
	echo "$want"
	echo "$out"
	[ "$(wc -l <<< "$out")" -gt 5 ] && [[ $out == *"drain 1"* ]] &&
		[ "$want" = "$out" ] &&
		[ "$(tr '\0' '\n' < "$notes" | grep -a "^[a-z-]* [0-9]*$" |
			sort)" = "$out" ]
}

drained() {
	xrds-info drain && table 80 "yes" status &&
		xrds-info -j drain | grep -q '{"drained": true, "conns": 0}' &&
		xrds-info undrain &&
		! xrds-info -j undrain | grep drained
}

# They take no option but -j.
alone() {
	local word

	for word in drain undrain events "reset all"; do
		# shellcheck disable=SC2086
		words "no option but -j" xrds-info -N $word || return
	done
	for word in -w -a -l -olport; do
		words "no option but -j" xrds-info "$word" drain || return
	done
	! xrds-info -j status | grep drained
}

# JSON of a verb; no such connection is an error
reset_json() {
	local out

	out=$(xrds-info -j reset 127.0.0.1 127.0.0.1) || return
	echo "$out"
	[ "$(grep -c '"faddr": "127.0.0.1"' <<< "$out")" = 1 ] &&
		! xrds-info reset 127.0.0.1 127.0.0.99
}

# Bytes a second of a connection
rates() {
	local out

	background xrds-ping -q -i 0.05 -s 4K 127.0.0.1
	out=$(timeout 30 xrds-info -w1 connections faddr=127.0.0.1 |
		sed '/up  *[0-9]\{4,\}\.[0-9]  *[0-9]\{4,\}/q')
	kill "$pid"
	echo "$out"
	[[ $out == *"STATE  TX/s "*" RX/s"* ]] &&
		grep -Eq "127.0.0.1 +127.0.0.1 +up +[0-9]{4,}\.[0-9] +[0-9]{4,}" \
			<<< "$out" &&
		! xrds-info connections | grep "TX/s"
}

# Two turns of counters
watched() {
	[ "$(timeout 30 xrds-info -w0.5 counters |
		grep -m4 -cE '^[0-9]{4}-|PER/s')" = 4 ]
}

# The way of the order that a client sends to its server; a delay keeps it from
# being queued directly at the receiver. The kernel may forget to wake the reader of
# its trace: then the events of another run do.
traced() {
	local trace step

	background xrds-trace -c 1 018802
	trace=$log
	wait_for 20 saw listening || return
	background xrds-perf -s -p 18802 127.0.0.1
	wait_for 20 saw ready || return
	echo 5 > /proc/sys/net/xrds/loop/delay_ms
	log=$trace
	for _ in 1 2 3 4; do
		xrds-perf -p 18802 -n 1 127.0.0.1
		! wait_for 5 saw acknowledged || break
	done
	echo 0 > /proc/sys/net/xrds/loop/delay_ms
	cat "$trace"
	saw "^\[127.0.0.1\]:[0-9]* -> \[127.0.0.1\]:18802 seq [1-9][0-9]*, " &&
		for step in "0 us  queued" "[0-9] us  posted" \
			"[1-9][0-9]* us  received: recv_queued" \
			"[1-9][0-9]* us  acknowledged"; do
			saw "$step" || return
		done
}

# A signal ends it at once, when there is no event as well.
trace_ends() {
	background xrds-trace 18803
	wait_for 20 saw listening && kill "$pid" && wait "$pid"
}

untraced() {
	! ls -d /sys/kernel/tracing/instances/xrds-trace*
}

check "--version" versions
check "the way of a message" traced
check "a trace that is ended" trace_ends
check "nothing is left of the trace" wait_for 10 untraced
check "features" features
check "drain and undrain" drained
check "verbs and events, with other options" alone
background helper_late_reader 127.0.0.1 "$PORT" 4096
wait_for 20 saw ready
background helper_hold_socket 127.0.0.1 127.0.0.1 10 "$PORT"
background unshare -n sh -c \
	"ip link set lo up; exec helper_hold_socket 127.0.0.77"
wait_for 20 saw holding
check "the congested receiver" wait_for 20 congested
check "at 80 columns" table 80 ":$PORT .* congested" sockets
check "and the program that has it" table 100 "$PORT .* helper_late_rea/" sockets
check "messages that were not read" wait_for 20 messages
check "a pipe has whole texts" pipe
check "columns and rows that were asked for" columns
check "names of programs" names
check "a narrow terminal has the first columns" narrow
check_fails "no such column" xrds-info -o nothing sockets
check_fails "no such attribute" xrds-info sockets nothing=1
check "all namespaces" namespaces
check "all namespaces, without privilege" words CAP_SYS_ADMIN \
	unshare -U xrds-info -N sockets
check "a connection is reset" xrds-info reset all
check "the same, in JSON" reset_json
check "watching connections: rates" rates
check "time and error of a connection" wait_for 20 failed_connection
check "watching counters: the time, and rates" watched
check "ping: it does not answer" ping_disabled
check "ping: nothing but statistics" quiet
check "ping: the set-up has a time of its own" set_up
ip address add 10.9.9.9/32 dev lo
check "ping: several hosts" several
check "ping: one of them is wrong" one_wrong
check "ping: several hosts, and a signal" signalled
check_fails "trace: a port of more than 16 bits" timeout 10 xrds-trace 65536
check_fails "ping: memory that is offered for a time" \
	timeout 10 xrds-ping -l 4999 -w 1 127.0.0.1
check_fails "ping: memory at several addresses" \
	xrds-ping -l 4999 127.0.0.1 127.0.0.2
check "ping: memory that is offered later" late_memory
check "ping: no time to stop after" words "'0' is not a time" \
	xrds-ping -w 0 127.0.0.1
check "ping: a suffix is no size" words "is not a size" \
	xrds-ping -s K 127.0.0.1
check "ping: numbers with a leading zero" leading_zero
check "ping: 0x is no size" words "is not a size" \
	xrds-ping -s 0x 127.0.0.1
check "perf: a size of more than 64 bits" words "17592186044417M" \
	xrds-perf -n 1 -l 17592186044417M 127.0.0.1
check "ping: no xrds_ib" words "xrds_ib is not loaded: modprobe xrds_ib" \
	xrds-ping -c 1 -I 10.9.9.9 10.9.9.9
check "perf: no xrds_ib" words "xrds_ib is not loaded: modprobe xrds_ib" \
	xrds-perf -n 1 -I 10.9.9.9 10.9.9.9
check "info: no devices, and no xrds_ib" \
	table 80 "none (xrds_ib is not loaded: modprobe xrds_ib)" devices
check "output that cannot be written" full
check "no sockets for this user" unprivileged
check "perf: no server" words "nobody listens: is xrds-perf -s" \
	xrds-perf -n 1 127.0.0.1
check "perf: server killed, echo" server_killed
check "perf: server killed, stream" server_killed -m stream
check "perf: server killed, write" server_killed -m write
finish
