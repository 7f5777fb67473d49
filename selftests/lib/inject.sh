# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Failing allocations, on the debug kernel, without a word in its log. fail-nth
# (test_inject) strikes the task that asks for it; inject_workers strikes the
# kernel's workers, which start connections, with a probability.

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

# inject_workers KIND PERCENT TIMES: until inject_end, TIMES at most.
inject_workers() {
	local comm

	inject_quiet
	# workers to come inherit it from kthreadd
	for comm in /proc/[0-9]*/comm; do
		case "$(cat "$comm" 2> /dev/null)" in
		kthreadd | kworker/*) echo 1 > "${comm%/comm}/make-it-fail" ;;
		esac
	done 2> /dev/null
	echo Y > "$FAULTS/$1/task-filter"
	echo "$3" > "$FAULTS/$1/times"
	echo "$2" > "$FAULTS/$1/probability"
}

# inject_end KIND TIMES: no more; prints how often it has failed.
inject_end() {
	echo 0 > "$FAULTS/$1/probability"
	echo $(($2 - $(cat "$FAULTS/$1/times")))
}
