# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# For tests that run inside a node (selftests/loop/*.sh):
#
#   . "$(dirname "$0")/../lib/lib.sh"
#   check "two sockets exchange a message" xrds_prog --this --that
#   finish
#
# Verdicts are TAP on stdout. Each wait is for a condition and has a deadline.
# At exit the functions given to at_exit run, last one first.

xrds_count=0
xrds_failed=0
xrds_exits=()
xrds_tmp=$(mktemp -d)

HW_COUNTERS=/sys/class/infiniband/rxe0/ports/1/hw_counters

xrds_cleanup() {
	local i

	for ((i = ${#xrds_exits[@]} - 1; i >= 0; i--)); do
		eval "${xrds_exits[i]}"
	done
	rm -rf "$xrds_tmp"
}
trap xrds_cleanup EXIT

# at_exit COMMAND: run it when the test ends, however it ends.
at_exit() {
	xrds_exits+=("$*")
}

diag() {
	local line

	while IFS= read -r line; do
		echo "# $line"
	done <<< "$*"
}

pass() {
	xrds_count=$((xrds_count + 1))
	echo "ok $xrds_count - $1"
}

# fail DESCRIPTION [WHY]
fail() {
	xrds_count=$((xrds_count + 1))
	xrds_failed=$((xrds_failed + 1))
	echo "not ok $xrds_count - $1"
	[ $# -lt 2 ] || diag "$2"
}

# skip DESCRIPTION REASON: one verdict that can not be had here.
skip() {
	xrds_count=$((xrds_count + 1))
	echo "ok $xrds_count - $1 # SKIP $2"
}

# skip_all REASON: the whole test makes no sense here.
skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

# check DESCRIPTION COMMAND...: passes if the command does.
check() {
	local what=$1 out status

	shift
	out=$("$@" 2>&1) && status=0 || status=$?
	if [ "$status" = 0 ]; then
		pass "$what"
	else
		fail "$what" "exit $status: $*
$out"
	fi
}

# check_fails DESCRIPTION COMMAND...: passes if the command fails by itself,
# and not by a signal or a time limit.
check_fails() {
	local what=$1 out status

	shift
	out=$("$@" 2>&1) && status=0 || status=$?
	if [ "$status" -gt 0 ] && [ "$status" -lt 124 ]; then
		pass "$what"
	else
		fail "$what" "exit $status: $*
$out"
	fi
}

# check_equal DESCRIPTION WANTED FOUND
check_equal() {
	if [ "$2" = "$3" ]; then
		pass "$1"
	else
		fail "$1" "wanted '$2', found '$3'"
	fi
}

# wait_for SECONDS COMMAND...: until the command succeeds; 1 if it never did.
wait_for() {
	local deadline=$((SECONDS + $1))

	shift
	until "$@" > /dev/null 2>&1; do
		[ "$SECONDS" -le "$deadline" ] || return 1
		sleep 0.05
	done
}

# background COMMAND...: runs it, sets $pid and $log; it is killed at the end.
background() {
	# a new one: "check" counts nothing for those behind it
	log=$(mktemp "$xrds_tmp/log.XXXXXX")
	"$@" > "$log" 2>&1 &
	pid=$!
	at_exit "kill -9 $pid 2> /dev/null; wait $pid 2> /dev/null"
}

# hw_counter NAME: a counter of the RDMA device.
hw_counter() {
	cat "$HW_COUNTERS/$1"
}

# finish: the plan, and the exit status. The last line of a test.
finish() {
	echo "1..$xrds_count"
	[ "$xrds_failed" = 0 ]
	exit
}
