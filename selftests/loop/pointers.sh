#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Bad user pointers are EFAULT in every call and do no harm.
# nodes: 1
# timeout: 120
# modules: xrds

exec test_pointers
