#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# RDMA reads and writes, their messages and notices, thousands of them.
# nodes: 1
# timeout: 400
# modules: xrds

exec test_rdma
