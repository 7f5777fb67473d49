#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Time stamps and latencies of messages, and SO_RDS_TRANSPORT.
# nodes: 1
# timeout: 120
# modules: xrds

exec test_trace
