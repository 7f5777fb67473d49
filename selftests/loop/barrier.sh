#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Identifiers, the barrier, and the events that it gives.
# nodes: 1
# timeout: 180
# modules: xrds

exec test_barrier
