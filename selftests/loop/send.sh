#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# sendmsg(): destinations, flags and sizes, and what they answer.
# nodes: 1
# timeout: 180
# modules: xrds

exec test_send
