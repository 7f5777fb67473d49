#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Many sockets: those are woken that wait for what happened.
# nodes: 1
# timeout: 200
# modules: xrds

exec test_crowd
