#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A call that ends early leaves no error for another call.
# nodes: 1
# timeout: 120
# modules: xrds

exec test_sk_err
