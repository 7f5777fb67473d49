#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Several waiters on one socket: what one can do wakes one.
# nodes: 1
# timeout: 120
# modules: xrds

exec test_exclusive
