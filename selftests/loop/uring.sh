#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# io_uring's poll reports what poll() does, and its sends wait where they can.
# nodes: 1
# timeout: 120
# modules: xrds

exec test_uring
