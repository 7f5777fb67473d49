#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# No byte that the kernel did not mean to show reaches a program.
# nodes: 1
# timeout: 180
# modules: xrds

exec test_leak
