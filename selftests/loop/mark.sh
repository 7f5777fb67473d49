#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The high-water mark under load and faults, and no wake-up lost.
# nodes: 1
# timeout: 600
# modules: xrds

exec test_mark
