#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Socket options, control messages and ioctls, good and bad.
# nodes: 1
# timeout: 120
# modules: xrds

exec test_options
