#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Congestion ends when half of the receive buffer has been read.
# nodes: 1
# timeout: 60
# modules: xrds

exec test_drained
