#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# XRDS_REPLY_RESERVE: reserved replies, and requests that are held back.
# nodes: 1
# timeout: 180
# modules: xrds

exec test_reply
