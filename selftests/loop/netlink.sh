#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Dumps and news of the netlink family: complete, restartable, and for whom.
# nodes: 1
# timeout: 240
# modules: xrds

exec test_netlink
