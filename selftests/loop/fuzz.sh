#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Random calls by many processes of several users do no harm to others, and
# leave nothing. On the debug kernel allocations and copies fail beside that,
# in the calls of those processes alone.
# nodes: 1
# timeout: 180
# modules: xrds

. "$(dirname "$0")/../lib/inject.sh"

if [ -d "$FAULTS/failslab" ]; then
	inject_quiet
	# a page that is not there would be reported in the log: see rxe/fuzz
	echo 20 > "$FAULTS/fail_page_alloc/min-order"
fi
exec helper_fuzz -a 127.0.0.1
