#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# poll() and epoll report what they should, and wake nobody else.
# nodes: 1
# timeout: 180
# modules: xrds

exec test_poll
