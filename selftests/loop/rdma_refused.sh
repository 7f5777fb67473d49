#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# RDMA ops that are refused leave nothing behind.
# nodes: 1
# timeout: 120
# modules: xrds

exec test_rdma_refused
