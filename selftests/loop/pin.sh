#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Pinned memory: limits, munmap, fork, and processes that die.
# nodes: 1
# timeout: 180
# modules: xrds

exec test_pin
