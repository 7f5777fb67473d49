#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Each sysctl has its default, takes the values of its range, and no other.
# nodes: 1
# timeout: 60
# modules: xrds_ib

exec test_sysctl
