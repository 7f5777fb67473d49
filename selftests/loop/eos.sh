#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# shutdown(), close(), SO_LINGER, and the ends of streams.
# nodes: 1
# timeout: 120
# modules: xrds

exec test_eos
