#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Shared, killed and closed sockets, and network namespaces.
# nodes: 1
# timeout: 240
# modules: xrds

exec test_sharing
