#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Programs of 32 bits can use what is new.
# nodes: 1
# timeout: 60
# modules: xrds

exec test_compat
