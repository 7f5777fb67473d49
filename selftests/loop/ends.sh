#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A thousand streams end with messages under way; the mark is behind them all,
# also when messages are late or the connection breaks.
# nodes: 1
# timeout: 240
# modules: xrds

. "$(dirname "$0")/../lib/lib.sh"

knob() { echo "$2" > "/proc/sys/net/xrds/loop/$1"; }

check "close()" helper_stream_ends both 127.0.0.1 127.0.0.2 4001 500 10 close
check "shutdown() and close()" \
	helper_stream_ends both ::1 ::1 4002 500 10 shutdown
check "processes that die" \
	helper_stream_ends both 127.0.0.1 127.0.0.2 4003 50 10 die
check "aborted" helper_stream_ends both 127.0.0.1 127.0.0.2 4004 300 10 abort
knob delay_ms 2
check "late messages" \
	helper_stream_ends both 127.0.0.1 127.0.0.2 4005 200 10 close
check "late messages, aborted" \
	helper_stream_ends both 127.0.0.1 127.0.0.2 4006 200 10 abort
knob bounce_ms 20

# Runs a test; the connection has to break meanwhile.
broken() {
	local before

	before=$(helper_counter loop_bounced)
	"$@" && [ "$(helper_counter loop_bounced)" -gt "$before" ]
}

check "a connection that breaks" \
	broken helper_stream_ends both 127.0.0.3 127.0.0.4 4007 300 10 close
check "the same, shutdown()" \
	broken helper_stream_ends both 127.0.0.3 127.0.0.4 4008 300 10 shutdown
check "the same, aborted" \
	broken helper_stream_ends both 127.0.0.5 127.0.0.6 4009 300 10 abort
finish
