#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# socket(), bind() and connect() follow the rules and leak nothing.
# nodes: 1
# timeout: 120
# modules: xrds

exec test_socket
