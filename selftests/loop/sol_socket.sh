#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Socket options of other levels: what is accepted without effect is documented.
# nodes: 1
# timeout: 120
# modules: xrds

exec test_sol_socket
