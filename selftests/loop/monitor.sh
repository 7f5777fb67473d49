#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# RDS_CONG_MONITOR and the notices it brings.
# nodes: 1
# timeout: 120
# modules: xrds

exec test_monitor
