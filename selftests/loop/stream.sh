#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Over the loopback every message arrives once and in order, by content: on
# both families, with small buffers, and with many sockets.
# nodes: 1
# timeout: 300
# modules: xrds

. "$(dirname "$0")/../lib/lib.sh"

check "IPv4, 20000 messages each way" helper_stream -l 127.0.0.1 -c 20000
check "IPv6, 20000 messages each way" helper_stream -l ::1 -c 20000 -S 2
check "small buffers" helper_stream -l 127.0.0.1 -c 5000 -S 3 -b 8192 -B 8192
check "one socket a side, large messages among small ones" \
	helper_stream -l 127.0.0.1 -s 1 -c 5000 -S 4
check "40 sockets a side" helper_stream -l 127.0.0.1 -s 40 -c 16000 -m 4096 -S 5
check "several addresses" \
	helper_stream -l 127.0.0.1,127.0.0.2 -r 127.0.0.3,127.0.0.4 -c 5000 -S 6
finish
