#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Send space, the receive limit and congestion bound and wake senders.
# nodes: 1
# timeout: 240
# modules: xrds

exec test_space
