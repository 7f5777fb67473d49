#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Atomics are right, whole, and carried out at most once.
# nodes: 1
# timeout: 180
# modules: xrds

exec test_atomic
