#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# RDS_INFO_* dumps: protocol, rows, and whose they are.
# nodes: 1
# timeout: 120
# modules: xrds

exec test_info
