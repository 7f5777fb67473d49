#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What users and namespaces may have: bounds are kept, and say so.
# nodes: 1
# timeout: 240
# modules: xrds

exec test_limits
