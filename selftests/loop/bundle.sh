#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# sendmmsg(): whatever way a call ends, what it has taken comes.
# nodes: 1
# timeout: 120
# modules: xrds

exec test_bundle
