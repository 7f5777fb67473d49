#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Memory regions: keys, bounds, access, and how they end.
# nodes: 1
# timeout: 120
# modules: xrds

exec test_region
