# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Failing allocations, on the debug kernel, without a word in its log. fail-nth
# (helper_fail_nth) strikes the task that asks for it; inject_marked those that
# the module xrds_inject marks; inject_workers the kernel's workers, which start
# connections.

FAULTS=/sys/kernel/debug

# inject_quiet: every kind may fail anywhere, and says nothing.
inject_quiet() {
	local kind

	for kind in failslab fail_page_alloc fail_usercopy fail_futex; do
		[ -d "$FAULTS/$kind" ] || continue
		echo 0 > "$FAULTS/$kind/verbose"
	done
	echo N > $FAULTS/failslab/ignore-gfp-wait
	echo N > $FAULTS/fail_page_alloc/ignore-gfp-wait
	echo 0 > $FAULTS/fail_page_alloc/min-order
}

# inject_marked KIND PERCENT TIMES [AFTER]: strike tasks that are marked; until
# inject_end, TIMES at most, and not before they had so much: bytes (failslab),
# pages (fail_page_alloc).
inject_marked() {
	inject_quiet
	echo Y > "$FAULTS/$1/task-filter"
	echo "${4:-0}" > "$FAULTS/$1/space"
	echo "$3" > "$FAULTS/$1/times"
	echo "$2" > "$FAULTS/$1/probability"
}

# inject_workers KIND PERCENT TIMES: all of the kernel's workers are marked.
inject_workers() {
	local comm name

	# workers to come inherit it from kthreadd
	for comm in /proc/[0-9]*/comm; do
		read -r name < "$comm" || continue
		case "$name" in
		kthreadd | kworker/*) echo 1 > "${comm%/comm}/make-it-fail" ;;
		esac
	done 2> /dev/null
	inject_marked "$@"
}

# inject_end KIND TIMES: no more; prints how often it has failed.
inject_end() {
	echo 0 > "$FAULTS/$1/probability"
	echo $(($2 - $(cat "$FAULTS/$1/times")))
}

# inject_had KIND AFTER: memory that marked tasks had, if less than AFTER.
inject_had() {
	echo $(($2 - $(cat "$FAULTS/$1/space")))
}
