#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Edge-triggered epoll against a model.
# nodes: 1
# timeout: 300
# modules: xrds

exec test_edges
