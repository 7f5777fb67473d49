#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# recvmsg(): flags, timeouts, names and lengths.
# nodes: 1
# timeout: 120
# modules: xrds

exec test_recv
